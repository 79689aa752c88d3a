//! One table in every format, which must load alike.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::basic::{Compression, GzipLevel, ZstdLevel};
use ::parquet::file::properties::WriterProperties;
use arrow_array::types::{ArrowPrimitiveType, Float16Type, Int32Type};
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, DictionaryArray,
    Float32Array, Float64Array, Int8Array, Int64Array, LargeStringArray, NullArray, PrimitiveArray,
    RecordBatch, StringArray, StringViewArray, UInt16Array, UInt64Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use flate2::write::GzEncoder;

use super::*;
use crate::privacy::NotPrivate;

fn column(name: &str, is_int: bool, lower: f64, upper: f64, levels: &[&str]) -> RecordColumn {
    RecordColumn {
        lower: Some(lower),
        upper: Some(upper),
        levels: levels.iter().map(|level| level.to_string()).collect(),
        ..RecordColumn::named(name, is_int)
    }
}

/// `int<lower=0, upper=1> y; real<lower=0, upper=10> x; factor("north", "south, east") g;`
fn columns() -> Vec<RecordColumn> {
    vec![
        column("y", true, 0.0, 1.0, &[]),
        column("x", false, 0.0, 10.0, &[]),
        column("g", true, 1.0, 2.0, &["north", "south, east"]),
    ]
}

/// Who, y, x and g of each row.
type Row = (Option<i64>, Option<i64>, Option<f64>, Option<&'static str>);

const GOOD: [Row; 7] = [
    (Some(1), Some(0), Some(2.5), Some("north")),
    (Some(2), Some(1), Some(-3.0), Some("south, east")),
    (Some(1), Some(1), Some(1e9), Some("north")),
    (Some(3), None, Some(0.1), Some("north")),
    (Some(3), Some(0), None, Some("north")),
    (Some(9), Some(0), Some(f64::NAN), None),
    (Some(2), Some(0), Some(f64::INFINITY), Some("south, east")),
];

/// The same rows and some that cannot be read.
fn bad() -> Vec<Row> {
    let mut rows = GOOD.to_vec();
    rows.insert(3, (Some(4), Some(424_242), Some(1.0), Some("north")));
    rows.insert(5, (Some(4), Some(1), Some(1.0), Some("424242")));
    rows.insert(6, (None, Some(1), Some(1.0), Some("north")));
    rows
}

fn batch(rows: &[Row]) -> RecordBatch {
    let columns: [(&str, ArrayRef); 5] = [
        ("note", Arc::new(Date32Array::from(vec![3; rows.len()]))),
        (
            "x",
            Arc::new(rows.iter().map(|r| r.2).collect::<Float64Array>()),
        ),
        (
            "who",
            Arc::new(rows.iter().map(|r| r.0).collect::<Int64Array>()),
        ),
        (
            "y",
            Arc::new(rows.iter().map(|r| r.1).collect::<Int64Array>()),
        ),
        (
            "g",
            Arc::new(rows.iter().map(|r| r.3).collect::<StringArray>()),
        ),
    ];
    named(columns)
}

fn named<const N: usize>(columns: [(&str, ArrayRef); N]) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap()
}

fn csv(rows: &[Row]) -> Vec<u8> {
    let mut text = String::from("note,x,who,y,g\n");
    for (who, y, x, g) in rows {
        let [who, y] = [who, y].map(|v| v.map_or(String::new(), |v| v.to_string()));
        let x = x.map_or(String::from("NA"), |x| x.to_string());
        let g = g.map_or(String::new(), |g| format!("\"{g}\""));
        text += &format!("1970-01-04,{x},{who},{y},{g}\n");
    }
    text.into_bytes()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn parquet(batch: &RecordBatch, compression: Compression, has_dictionary: bool) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_dictionary_enabled(has_dictionary)
        .set_max_row_group_row_count(Some(3))
        .set_data_page_row_count_limit(2)
        .set_write_batch_size(1)
        .build();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    bytes
}

/// In batches of two rows.
fn arrow(batch: &RecordBatch, compression: Option<CompressionType>, is_file: bool) -> Vec<u8> {
    let options = IpcWriteOptions::default();
    let options = options.try_with_compression(compression).unwrap();
    let pieces = (0..batch.num_rows()).step_by(2);
    let pieces = pieces.map(|at| batch.slice(at, 2.min(batch.num_rows() - at)));
    let mut bytes = Vec::new();
    if is_file {
        let mut writer =
            FileWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
        pieces.for_each(|piece| writer.write(&piece).unwrap());
        writer.finish().unwrap();
        drop(writer);
    } else {
        let mut writer =
            StreamWriter::try_new_with_options(&mut bytes, &batch.schema(), options).unwrap();
        pieces.for_each(|piece| writer.write(&piece).unwrap());
        writer.finish().unwrap();
        drop(writer);
    }
    bytes
}

/// A table in each format, with names that say nothing of it.
fn formats(rows: &[Row]) -> Vec<(&'static str, Vec<u8>)> {
    let typed = batch(rows);
    let text = csv(rows);
    vec![
        ("csv", text.clone()),
        ("csv.gz", gzip(&text)),
        ("csv.zst", zstd::encode_all(&text[..], 1).unwrap()),
        ("parquet", parquet(&typed, Compression::UNCOMPRESSED, false)),
        ("snappy", parquet(&typed, Compression::SNAPPY, true)),
        (
            "gzip",
            parquet(&typed, Compression::GZIP(GzipLevel::default()), true),
        ),
        ("lz4", parquet(&typed, Compression::LZ4, false)),
        ("lz4 raw", parquet(&typed, Compression::LZ4_RAW, true)),
        (
            "zstd",
            parquet(&typed, Compression::ZSTD(ZstdLevel::default()), false),
        ),
        (
            "parquet.gz",
            gzip(&parquet(&typed, Compression::SNAPPY, true)),
        ),
        ("file", arrow(&typed, None, true)),
        (
            "file of lz4",
            arrow(&typed, Some(CompressionType::LZ4_FRAME), true),
        ),
        ("stream", arrow(&typed, None, false)),
        (
            "stream of zstd",
            arrow(&typed, Some(CompressionType::ZSTD), false),
        ),
        ("stream.gz", gzip(&arrow(&typed, None, false))),
    ]
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }
}

/// The loaded values, or the message.
fn loaded(paths: &[PathBuf], reading: &Reading) -> Result<Vec<Vec<u64>>, String> {
    let rows = read_files(paths, &columns(), reading).map_err(|error| {
        let said = format!("{error} {error:?}");
        assert!(!said.contains("424242"), "{said}");
        error.to_string()
    })?;
    let of_column = |column: &Vec<f64>| column.iter().map(|v| v.to_bits()).collect();
    let mut all: Vec<Vec<u64>> = rows.columns().iter().map(of_column).collect();
    all.push(rows.missing().iter().map(|&m| m.into()).collect());
    all.push(vec![rows.n() as u64]);
    all.push(
        rows.units()
            .map_or(Vec::new(), |u| u.ends.iter().map(|&e| e as u64).collect()),
    );
    Ok(all)
}

/// The survey in words, with rows in place of lines.
fn surveyed(paths: &[PathBuf]) -> String {
    let reading = Reading {
        unit: Some("who"),
        ..Reading::default()
    };
    let permission = NotPrivate::acknowledged();
    let mut survey = survey_files(paths, &columns(), &reading, 100, permission).unwrap();
    survey.files.clear();
    let mut said = format!("{survey:?}");
    if survey.form == Form::Lines {
        said = said.replace("form: Lines", "form: Rows");
        for line in 2..100 {
            said = said.replace(
                &format!("position: {line} "),
                &format!("position: {} ", line - 1),
            );
        }
    }
    said
}

fn readings() -> [Reading<'static>; 4] {
    [
        (OnBadRows::Error, None),
        (OnBadRows::Skip, None),
        (OnBadRows::Error, Some("who")),
        (OnBadRows::Skip, Some("who")),
    ]
    .map(|(on_bad_rows, unit)| Reading {
        on_bad_rows,
        unit,
        ..Reading::default()
    })
}

#[test]
fn every_format_has_the_same_rows_errors_and_survey() {
    for rows in [GOOD.to_vec(), bad()] {
        let place = Place::new();
        let text = [place.write("text", csv(&rows))];
        for (name, bytes) in formats(&rows) {
            let path = [place.write("other", bytes)];
            for reading in readings() {
                let expected = loaded(&text, &reading).map_err(|said| {
                    let said = said.replace("text, line 5", "other, row 4");
                    said.replace("text, line 8", "other, row 7")
                });
                let found = loaded(&path, &reading);
                let found = found.map_err(|said| said.replace("other, line 5", "other, row 4"));
                assert_eq!(found, expected, "{name} {reading:?}");
            }
            assert_eq!(surveyed(&path), surveyed(&text), "{name}");
        }
    }
}

// If it failed: the same column of 0 and 1 would be read from one format and refused in another, or
// read by its values and not by its declaration.
#[test]
fn words_of_truth_are_read_in_every_format_where_the_declaration_says_0_or_1() {
    const WORDS: [&str; 9] = [
        "True", "False", "TRUE", "FALSE", "true", "false", "1", "", "424242",
    ];
    let words = || StringArray::from(WORDS.to_vec());
    let dictionary: DictionaryArray<Int32Type> = WORDS.into_iter().collect();
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(words()),
        Arc::new(LargeStringArray::from(WORDS.to_vec())),
        Arc::new(StringViewArray::from(WORDS.to_vec())),
        Arc::new(dictionary),
    ];
    let truth = column("k", true, 0.0, 1.0, &[]);
    let expected = vec![1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0, -1.0, -1.0];
    for array in &arrays {
        for found in read_column(&truth, array.clone()) {
            assert_eq!(found, Ok(expected.clone()));
        }
    }
    let text = format!("k\n{}\n", WORDS.join("\n"));
    let place = Place::new();
    let read = |column: &RecordColumn, on_bad_rows| {
        let reading = Reading {
            on_bad_rows,
            ..Reading::default()
        };
        read_files(&[place.path("t")], std::slice::from_ref(column), &reading)
    };
    for bytes in [
        text.clone().into_bytes(),
        gzip(text.as_bytes()),
        zstd::encode_all(text.as_bytes(), 1).unwrap(),
    ] {
        place.write("t", bytes);
        let rows = read(&truth, OnBadRows::Skip).unwrap();
        let columns = rows.columns();
        let cells = columns[0].iter().zip(rows.missing());
        let found: Vec<f64> = cells.map(|(&v, &m)| if m { -1.0 } else { v }).collect();
        assert_eq!(found, expected);
        let said = read(&truth, OnBadRows::Error).err().unwrap().to_string();
        assert!(said.contains("0 or 1, or false or true"), "{said}");
        assert!(!said.contains("424242"), "{said}");
        // Whatever else it holds, a column that is declared otherwise has numbers.
        for other in [
            column("k", true, 0.0, 2.0, &[]),
            column("k", false, 0.0, 1.0, &[]),
        ] {
            let said = read(&other, OnBadRows::Error).err().unwrap().to_string();
            assert!(said.contains("line 2") && !said.contains("True"), "{said}");
        }
    }
}

#[test]
fn a_table_in_parts_is_the_table() {
    let rows = bad();
    for k in 0..formats(&rows).len() {
        let place = Place::new();
        let whole = [place.write("whole", csv(&rows))];
        let part = |range: std::ops::Range<usize>| formats(&rows[range]).remove(k).1;
        let parts = [
            place.write("table/a/part-0", part(0..4)),
            place.write("table/a/part-1", part(4..4)),
            place.write("table/b=c/part-0", part(4..10)),
        ];
        place.write("table/_SUCCESS", "");
        place.write("table/.part.crc", "x");
        place.write("table/_temporary/part-2", "x");
        for reading in readings() {
            let on_bad_rows = OnBadRows::Skip;
            let reading = Reading {
                on_bad_rows,
                ..reading
            };
            let expected = loaded(&whole, &reading);
            assert!(expected.is_ok());
            for paths in [
                &parts[..],
                &[place.path("table")],
                &[place.path("table/*")],
                &[place.path("table/**/part-?")],
                &[place.path("table/a"), place.path("table/b=c/part-0")],
            ] {
                assert_eq!(loaded(paths, &reading), expected, "{k} {paths:?}");
            }
        }
        // Places are of each file.
        let said = loaded(&parts, &readings()[0]).unwrap_err();
        assert!(
            said.contains("part-0, ") && said.contains("column `y`"),
            "{said}"
        );
        let permission = NotPrivate::acknowledged();
        let (columns, reading) = (columns(), Reading::default());
        let survey = survey_files(&parts, &columns, &reading, 100, permission).unwrap();
        let first = survey.form == Form::Lines;
        let bad = survey
            .bad_rows
            .first
            .iter()
            .map(|p| (p.file, p.position - u64::from(first)));
        assert_eq!(bad.collect::<Vec<_>>(), [(0, 4), (2, 2)]);
        assert_eq!(survey.files.len(), 3);
    }
}

#[test]
fn folders_give_columns() {
    let place = Place::new();
    let whole = [place.write("whole", csv(&GOOD[..3]))];
    let typed = batch(&GOOD[..3]).project(&[0, 1, 2, 3]).unwrap();
    for (at, folder) in ["north", "south%2C%20east", "north"].iter().enumerate() {
        let bytes = parquet(&typed.slice(at, 1), Compression::SNAPPY, true);
        place.write(&format!("t/k={at}/g={folder}/0.parquet"), bytes);
    }
    let reading = &readings()[0];
    let expected = loaded(&whole, reading);
    assert_eq!(loaded(&[place.path("t")], reading), expected);
    let missing = parquet(&typed.slice(0, 1), Compression::SNAPPY, true);
    place.write("t/k=3/g=__HIVE_DEFAULT_PARTITION__/0.parquet", missing);
    let rows = read_files(&[place.path("t")], &columns(), reading).unwrap();
    assert_eq!(rows.missing(), [false, false, false, true]);
    let by_folder = Reading {
        unit: Some("k"),
        ..*reading
    };
    assert_eq!(
        read_files(&[place.path("t")], &columns(), &by_folder)
            .unwrap()
            .n(),
        4
    );
    // The first line of a text without a header is not shown, whatever its folder is called.
    place.write("u/g=north/0.csv", "Anne,hello\n");
    let said = loaded(&[place.path("u")], reading).unwrap_err();
    assert!(
        said.contains("has 2 fields") || !said.contains("Anne"),
        "{said}"
    );
    assert!(!said.contains("hello"), "{said}");
}

fn read_column(column: &RecordColumn, array: ArrayRef) -> Vec<Result<Vec<f64>, String>> {
    let place = Place::new();
    let batch = named([(&column.name, array)]);
    let columns = [column.clone()];
    let reading = Reading {
        on_bad_rows: OnBadRows::Skip,
        ..Reading::default()
    };
    let typed = [
        parquet(&batch, Compression::SNAPPY, true),
        arrow(&batch, None, true),
        arrow(&batch, Some(CompressionType::ZSTD), false),
    ];
    let read = |bytes: &Vec<u8>| {
        let rows = read_files(&[place.write("t", bytes)], &columns, &reading);
        let rows = rows.map_err(|error| error.to_string())?;
        let columns = rows.columns();
        let cells = columns[0].iter().zip(rows.missing());
        Ok(cells.map(|(&v, &m)| if m { -1.0 } else { v }).collect())
    };
    typed.iter().map(read).collect()
}

#[test]
fn types_are_read_exactly_or_not_at_all() {
    let real = column("x", false, 0.0, 1e30, &[]);
    let int = column("k", true, 0.0, 1e17, &[]);
    let many = 1 << 53;
    let cases: Vec<(&RecordColumn, ArrayRef, &[f64])> = vec![
        (
            &real,
            Arc::new(Int8Array::from(vec![Some(3), None, Some(-3)])),
            &[3.0, -1.0, 0.0],
        ),
        (
            &int,
            Arc::new(UInt16Array::from(vec![u16::MAX])),
            &[65535.0],
        ),
        (
            &int,
            Arc::new(Int64Array::from(vec![many, many + 1, -1])),
            &[9007199254740992.0, -1.0, -1.0],
        ),
        (
            &real,
            Arc::new(UInt64Array::from(vec![7, u64::MAX])),
            &[7.0, 18446744073709551615.0],
        ),
        (
            &int,
            Arc::new(UInt64Array::from(vec![7, u64::MAX])),
            &[7.0, -1.0],
        ),
        (
            &int,
            Arc::new(BooleanArray::from(vec![Some(true), Some(false), None])),
            &[1.0, 0.0, -1.0],
        ),
        (
            &real,
            Arc::new(Float32Array::from(vec![0.5, f32::INFINITY, f32::NAN])),
            &[0.5, 1e30, -1.0],
        ),
        (
            &int,
            Arc::new(Float64Array::from(vec![2.0, 2.5])),
            &[2.0, -1.0],
        ),
        (
            &int,
            Arc::new(StringArray::from(vec!["2", " 3.0 ", "x", "NA"])),
            &[2.0, 3.0, -1.0, -1.0],
        ),
        (&real, Arc::new(LargeStringArray::from(vec!["2.5"])), &[2.5]),
        (
            &real,
            Arc::new(StringViewArray::from(vec![
                "2.5",
                "a long text that is not in the view",
            ])),
            &[2.5, -1.0],
        ),
        (&real, Arc::new(NullArray::new(2)), &[-1.0, -1.0]),
        (
            &real,
            Arc::new(
                Decimal128Array::from(vec![Some(1), None, Some(12345)])
                    .with_precision_and_scale(10, 3)
                    .unwrap(),
            ),
            &[0.001, -1.0, 12.345],
        ),
        (
            &int,
            Arc::new(
                Decimal256Array::from(vec![Some(700.into()), Some(701.into())])
                    .with_precision_and_scale(40, 2)
                    .unwrap(),
            ),
            &[7.0, -1.0],
        ),
        (
            &real,
            Arc::new(
                vec![Some("7"), None, Some("8"), Some("7")]
                    .into_iter()
                    .collect::<DictionaryArray<Int32Type>>(),
            ),
            &[7.0, -1.0, 8.0, 7.0],
        ),
    ];
    for (column, array, expected) in cases {
        for found in read_column(column, array.clone()) {
            assert_eq!(found.as_deref(), Ok(expected), "{:?}", array.data_type());
        }
    }
    let half = PrimitiveArray::<Float16Type>::from(vec![
        <Float16Type as ArrowPrimitiveType>::Native::from_f32(0.5),
    ]);
    for found in read_column(&real, Arc::new(half)) {
        assert_eq!(found, Ok(vec![0.5]));
    }
    for found in read_column(&real, Arc::new(Date32Array::from(vec![424_242]))) {
        let said = found.unwrap_err();
        assert!(
            said.contains("column `x`") && said.contains("Date32"),
            "{said}"
        );
    }
    // As in a text, a number stands for the level that is written so.
    let levels = column("g", true, 1.0, 3.0, &["3", "1", "north"]);
    for found in read_column(&levels, Arc::new(Int64Array::from(vec![1, 3, 2]))) {
        assert_eq!(found, Ok(vec![2.0, 1.0, -1.0]));
    }
}

/// The message for files, which hold no value and names one of them.
fn refusal(paths: &[PathBuf]) -> String {
    let refused = readings().map(|reading| loaded(paths, &reading).unwrap_err());
    refused[1].clone()
}

#[test]
fn what_is_damaged_or_does_not_fit_is_refused() {
    let place = Place::new();
    let rows = bad();
    let refusal_of = |name: &str, bytes: &[u8]| refusal(&[place.write(name, bytes)]);
    for (name, bytes) in formats(&rows).into_iter().skip(1) {
        for cut in [bytes.len() - 1, bytes.len() - 9, bytes.len() / 2, 9] {
            let said = refusal_of("cut", &bytes[..cut]);
            assert!(
                said.contains("damaged or truncated"),
                "{name} {cut}: {said}"
            );
        }
    }
    for name in [
        "t.parquet",
        "t.arrow",
        "t.csv.zst",
        "t.feather",
        "t.PARQUET",
    ] {
        let said = refusal_of(name, &csv(&rows));
        assert!(said.contains("though its name says so"), "{said}");
    }
    let good = parquet(&batch(&rows), Compression::SNAPPY, true);
    let mut locked = good.clone();
    let end = locked.len();
    locked[end - 4..].copy_from_slice(b"PARE");
    assert!(refusal_of("t", &locked).contains("encrypted"));
    fs::create_dir_all(place.path("empty/_x")).unwrap();
    assert!(refusal(&[place.path("empty")]).contains("has no data files"));
    assert!(refusal(&[place.path("no*such")]).contains("no file matches"));
    assert!(refusal(&[place.path("nothing.parquet")]).contains("cannot read"));

    let a = place.write("f/a", &good);
    let b = place.write("f/b", csv(&rows));
    let said = refusal(&[place.path("f")]);
    assert!(
        said.contains("f/b is text, and the first file is a Parquet file"),
        "{said}"
    );
    let said = refusal(&[a.clone(), place.path("f"), b.clone()]);
    assert!(said.contains("f/a is given more than once"), "{said}");
    let typed = batch(&rows);
    for (other, said) in [
        (
            typed.project(&[0, 1, 2, 3]).unwrap(),
            "f/b has no column named `g`",
        ),
        (
            named([
                ("x", Arc::new(StringArray::from(vec!["1"]))),
                ("y", Arc::new(Int64Array::from(vec![1]))),
                ("g", Arc::new(StringArray::from(vec!["north"]))),
                ("who", Arc::new(StringArray::from(vec!["1"]))),
            ]),
            "the column `x` of",
        ),
    ] {
        place.write("f/b", parquet(&other, Compression::SNAPPY, true));
        let found = refusal(&[place.path("f")]);
        assert!(found.contains(said) && found.contains("f/b"), "{found}");
    }
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(place.path("f"), place.path("f/again")).unwrap();
        assert!(refusal(&[place.path("f")]).contains("neither a file nor a folder"));
    }
}

/// Files made by changing bytes of good ones: none may panic, none says a value.
#[test]
fn no_bytes_of_typed_files_panic() {
    let place = Place::new();
    let files = formats(&bad()).split_off(3);
    let mut state = 20_251_121_u64;
    let mut below = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
    let rounds = std::env::var("ROUNDS").map_or(4000, |n| n.parse().unwrap());
    for _ in 0..rounds {
        let (name, good) = &files[below(files.len())];
        let mut bytes = good.clone();
        for _ in 0..=below(3) {
            let at = below(bytes.len());
            match below(5) {
                0 => bytes[at] = below(256) as u8,
                1 => bytes[at] ^= 1 << below(8),
                2 => bytes[at] = [0, 0xff, 0x7f, 0x80][below(4)],
                3 => drop(bytes.drain(at..(at + below(4)).min(bytes.len()))),
                _ => {
                    let end = (at + 4).min(bytes.len());
                    bytes[at..end].fill([0, 0xff, 0x7f][below(3)]);
                }
            }
        }
        let path = [place.write("t", &bytes)];
        let _ = (name, loaded(&path, &readings()[below(4)]));
        fs::remove_file(&path[0]).unwrap();
    }
}
