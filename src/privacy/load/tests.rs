use super::survey::Place;
use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A value that must appear in no message.
const SENTINEL: &str = "424242";

fn column(name: &str, is_int: bool, lower: Option<f64>, upper: Option<f64>) -> RecordColumn {
    RecordColumn {
        lower,
        upper,
        ..RecordColumn::named(name, is_int)
    }
}

/// `int<lower=0, upper=1> y; real<lower=0, upper=10> x;`
fn columns() -> Vec<RecordColumn> {
    vec![
        column("y", true, Some(0.0), Some(1.0)),
        column("dist", false, Some(0.0), Some(10.0)),
    ]
}

struct Table {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

fn table(name: &str, bytes: impl AsRef<[u8]>) -> Table {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    Table {
        _folder: folder,
        path,
    }
}

fn read_csv(path: &Path, columns: &[RecordColumn], reading: &Reading) -> Result<Rows, LoadError> {
    read_files(&[path.to_path_buf()], columns, reading)
}

fn survey_csv(
    path: &Path,
    columns: &[RecordColumn],
    reading: &Reading,
    most: usize,
    permission: crate::privacy::NotPrivate,
) -> Result<Survey, LoadError> {
    survey_files(&[path.to_path_buf()], columns, reading, most, permission)
}

fn load_csv(
    path: &Path,
    columns: &[RecordColumn],
    renames: &[(String, String)],
    on_bad_rows: OnBadRows,
) -> Result<Rows, LoadError> {
    let reading = Reading {
        renames,
        on_bad_rows,
        ..Reading::default()
    };
    read_csv(path, columns, &reading)
}

fn load_csv_by_unit(path: &Path, on_bad_rows: OnBadRows, unit: &str) -> Result<Rows, LoadError> {
    let reading = Reading {
        on_bad_rows,
        unit: Some(unit),
        ..Reading::default()
    };
    read_csv(path, &columns(), &reading)
}

fn load(bytes: impl AsRef<[u8]>, on_bad_rows: OnBadRows) -> Result<Rows, LoadError> {
    load_csv(&table("data.csv", bytes).path, &columns(), &[], on_bad_rows)
}

fn failure(bytes: impl AsRef<[u8]>, on_bad_rows: OnBadRows) -> LoadError {
    refused(load(bytes, on_bad_rows))
}

fn refused(loaded: Result<Rows, LoadError>) -> LoadError {
    let error = loaded.err().expect("this file must not load");
    let said = format!("{error} {error:?}");
    assert!(!said.contains(SENTINEL), "{said}");
    error
}

fn gzip(text: impl AsRef<[u8]>) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_ref()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn columns_are_found_by_name_and_others_ignored() {
    let rows = load(
        "id,dist, y \nanne,2.5,1\n\"o,tto\", -3 ,0.0\n",
        OnBadRows::Error,
    )
    .unwrap();
    assert_eq!(rows.n(), 2);
    assert_eq!(rows.columns(), [[1.0, 0.0], [2.5, 0.0]]);
    assert_eq!(rows.missing(), [false, false]);
}

#[test]
fn marks_line_endings_and_quotes_do_not_matter() {
    for text in [
        "\u{feff}y,dist\n1,2\n0,3\n",
        "\u{feff}\"y\",\"dist\"\r\n1,2\r\n0,3",
        "y,dist\r\n1,2\n0,3\r\n",
        "\n\r\ny,dist\n1,2\n0,\"3\"\n",
    ] {
        let rows = load(text, OnBadRows::Error).unwrap();
        assert_eq!(rows.columns(), [[1.0, 0.0], [2.0, 3.0]], "{text:?}");
    }
}

/// n is public under substitution, and must not depend on what is on a line.
#[test]
fn a_line_with_nothing_on_it_is_a_record() {
    let text = "y,dist\n\n1,2\n\n";
    let message = failure(text, OnBadRows::Error).to_string();
    assert!(message.contains("line 2: expected 2 fields"), "{message}");
    let rows = load(text, OnBadRows::Skip).unwrap();
    assert_eq!(rows.missing(), [true, false, true]);
    // In a file of one column its only value is missing.
    let one = table("d.csv", "dist\n\n1\n\"\"\n\n");
    let rows = load_csv(&one.path, &columns()[1..], &[], OnBadRows::Error).unwrap();
    assert_eq!(rows.missing(), [true, false, true, true]);
}

#[test]
fn gzip_is_known_by_its_content() {
    let mut members = gzip("y,dist\n1,2\n");
    members.extend(gzip("0,3\n"));
    for name in ["data.csv.gz", "data.csv"] {
        let rows = load_csv(
            &table(name, &members).path,
            &columns(),
            &[],
            OnBadRows::Error,
        )
        .unwrap();
        assert_eq!(rows.columns(), [[1.0, 0.0], [2.0, 3.0]]);
    }
}

#[test]
fn missing_values_mask_the_row_which_counts() {
    let rows = load("y,dist\n1,\nNA,2\n1,nan\n0,4\n", OnBadRows::Error).unwrap();
    assert_eq!(rows.missing(), [true, true, true, false]);
    assert_eq!(rows.columns(), [[0.0; 4], [0.0, 0.0, 0.0, 4.0]]);
}

#[test]
fn unused_columns_may_be_absent_and_are_not_read() {
    let mut columns = columns();
    columns[0].used = false;
    columns[0].lower = Some(-5.0);
    for text in [
        "dist\n1\n2\n",
        "y,dist\nabc,1\nNA,2\n",
        "y,y,dist\n7,,1\n\"\",\"\",2\n",
    ] {
        let rows = load_csv(&table("d.csv", text).path, &columns, &[], OnBadRows::Error).unwrap();
        assert_eq!(rows.missing(), [false, false]);
        assert_eq!(rows.columns(), [[-5.0, -5.0], [1.0, 2.0]]);
    }
}

#[test]
fn a_model_without_columns_still_counts_records() {
    let table = table("d.csv", "a\n1\nb\n");
    let rows = load_csv(&table.path, &[], &[], OnBadRows::Error).unwrap();
    assert_eq!(rows.n(), 2);
}

#[test]
fn bad_rows_name_line_and_column_and_nothing_else() {
    let number = "expected a number;";
    let whole = "expected 0 or 1, or false or true;";
    let fields = "expected 2 fields separated by commas, as in the header;";
    let quotes = "expected each field with quotation marks around all of it or with none, on one \
                  line (`multiline_records` allows line feeds in quotes);";
    for (row, column, expected) in [
        ("1,x424242", ", column `dist`", number),
        ("1,\"424242 m\"", ", column `dist`", number),
        ("424242,1", ", column `y`", whole),
        ("0.424242,1", ", column `y`", whole),
        ("-424242,NA", ", column `y`", whole),
        ("yes,x424242", ", column `y`", whole),
        ("NA,x424242", ", column `dist`", number),
        ("1", "", fields),
        ("1,2,424242", "", fields),
        ("1,2,", "", fields),
        ("\"1,424242", "", quotes),
        ("1,\"424242", "", quotes),
        ("1,424\"242", ", column `dist`", number),
        ("1,\"424242\" ", "", quotes),
        ("1\r0,424242", ", column `y`", whole),
    ] {
        let text = format!("y,dist\n0,1\n{row}\nzzz,zzz\n");
        let message = failure(&text, OnBadRows::Error).to_string();
        assert!(
            message.contains(&format!("data.csv, line 3{column}: {expected}")),
            "{message}"
        );
        assert!(message.contains("`on_bad_rows skip`"), "{message}");
        let rows = load(&text, OnBadRows::Skip).unwrap();
        assert_eq!(rows.missing(), [false, true, true]);
        assert_eq!(rows.columns(), [[0.0; 3], [1.0, 0.0, 0.0]]);
    }
}

// One thread finds the lines that are bad, and another the cells.
#[test]
fn the_first_error_is_the_one_that_is_told() {
    for between in [0, 1, 5000] {
        for last in ["1,2,3\n", "1,\"2\n", "x,2\n"] {
            let text = format!("y,dist\n1,2\n7,2\n{}{last}", "1,2\n".repeat(between));
            match failure(text, OnBadRows::Error).kind() {
                LoadErrorKind::BadRow {
                    position, column, ..
                } => assert_eq!((*position, column.as_deref()), (3, Some("y"))),
                other => panic!("{between} {last}: {other:?}"),
            }
        }
    }
}

#[test]
fn bytes_that_are_not_utf8_make_a_bad_row_only_where_they_are_read() {
    let read = b"id,y,dist\na,1,2\nb,1,\xff\xfe424242\n";
    let message = failure(read, OnBadRows::Error).to_string();
    assert!(message.contains("line 3, column `dist`"), "{message}");
    assert_eq!(
        load(read, OnBadRows::Skip).unwrap().missing(),
        [false, true]
    );
    let ignored = b"id,y,dist\nJ\xfcrgen,1,2\n";
    assert_eq!(load(ignored, OnBadRows::Error).unwrap().missing(), [false]);
}

#[test]
fn an_infinite_real_without_a_bound_is_bad() {
    let columns = [column("x", false, Some(0.0), None)];
    let table = table("d.csv", "x\n-inf\ninf\n");
    let error = refused(load_csv(&table.path, &columns, &[], OnBadRows::Error));
    assert!(
        error
            .to_string()
            .contains("line 3, column `x`: expected a finite number"),
        "{error}"
    );
    let rows = load_csv(&table.path, &columns, &[], OnBadRows::Skip).unwrap();
    assert_eq!(rows.missing(), [false, true]);
}

fn multiline(text: &str, on_bad_rows: OnBadRows) -> Result<Rows, LoadError> {
    let reading = Reading {
        on_bad_rows,
        multiline: true,
        ..Reading::default()
    };
    read_csv(&table("data.csv", text).path, &columns(), &reading)
}

#[test]
fn the_line_is_that_of_the_file_on_which_the_record_starts() {
    let line_of = |error: &LoadError| match error.kind() {
        LoadErrorKind::BadRow { position, .. } => *position,
        LoadErrorKind::Torn { line, .. } => *line,
        _ => panic!("{error}"),
    };
    for ending in ["\n", "\r\n"] {
        for (text, line) in [
            ("y,dist\nbad,1", 2),
            ("y,dist\nbad,1\n", 2),
            ("\ny,dist\n1,1\n\nbad,1\n", 4),
            ("y,dist,n\n1,1,\"three\n\nlines\"\nbad,1,1\n", 2),
            ("y,dist\n1,1\nbad,\"never closed\n1,1\n", 3),
        ] {
            let error = failure(text.replace('\n', ending), OnBadRows::Error);
            assert_eq!(line_of(&error), line, "{text:?}: {error}");
        }
        for (text, line) in [
            (
                "\n\"y\",dist,\"no\nte\"\n1,1,\"two\nlines\"\nbad,1,\"three\n\nlines\"\n1,1,1\n",
                6,
            ),
            ("y,dist\n1,1\n0,1,\"three\n\nlines\"", 3),
            ("y,dist\n1,1\nbad,\"never closed\n\n1,1\n\n", 3),
        ] {
            let error = refused(multiline(&text.replace('\n', ending), OnBadRows::Error));
            assert_eq!(line_of(&error), line, "{text:?}: {error}");
        }
    }
}

#[test]
fn records_may_span_lines_where_that_is_asked_for() {
    let text = "\"no\nte\",y,dist\n\"a\r\nb\n\",1,2\nc,0,3\n";
    let rows = multiline(text, OnBadRows::Error).unwrap();
    assert_eq!(rows.columns(), [[1.0, 0.0], [2.0, 3.0]]);
    let error = failure(text, OnBadRows::Skip);
    assert!(
        matches!(error.kind(), LoadErrorKind::Torn { line: 1, .. }),
        "{error}"
    );
    // Where a record ends cannot be known: no choice skips it.
    for row in ["1,\"424242", "1,4\"242", "1,\"4\"242", "\"1\",\"2\n0,\"3\""] {
        let text = format!("y,dist\n1,2\n{row}\n1,2\n");
        for choice in [OnBadRows::Error, OnBadRows::Skip] {
            let error = refused(multiline(&text, choice));
            assert!(
                matches!(error.kind(), LoadErrorKind::Torn { line: 3, .. }),
                "{error}"
            );
        }
    }
    let rows = multiline("y,dist\n1\n\n0,\"x\ny\"\n1,2\n", OnBadRows::Skip).unwrap();
    assert_eq!(rows.missing(), [true, true, true, false]);
}

#[test]
fn a_file_that_ends_inside_quotes_stops_every_run() {
    for choice in [OnBadRows::Error, OnBadRows::Skip] {
        for end in ["1,2,\"note", "1,\"2\n", "\"1,2\r\n", "1,2,\""] {
            let error = failure(format!("y,dist,note\n1,2,x\n{end}"), choice);
            assert!(
                matches!(error.kind(), LoadErrorKind::Torn { line: 3, .. }),
                "{end:?}: {error}"
            );
        }
    }
    let rows = load("y,dist,note\n1,2,\"x\n1,2,x\n", OnBadRows::Skip).unwrap();
    assert_eq!(rows.missing(), [true, false]);
    // A mark inside a field without quotes is a character.
    let rows = load("y,dist,note\n1,2,5\" pipe\n", OnBadRows::Error).unwrap();
    assert_eq!(rows.columns(), [[1.0], [2.0]]);
}

#[test]
fn the_line_is_right_far_into_a_file() {
    let mut text = "y,dist\r\n".to_string();
    for _ in 0..50_000 {
        text.push_str("1,2.5\r\n");
    }
    text.push_str("1,x\r\n1,1\r\n");
    let error = failure(&text, OnBadRows::Error);
    assert!(error.to_string().contains("line 50002, "), "{error}");
}

#[test]
fn a_missing_column_is_named_with_what_there_is() {
    let message = failure("y,dits,z\n1,424242,1\n", OnBadRows::Skip).to_string();
    assert!(message.contains("no column named `dist`"), "{message}");
    assert!(message.contains("did you mean `dits`?"), "{message}");
    assert!(message.contains("`y`, `dits`, `z`"), "{message}");
    assert!(message.contains("`columns dist=NAME`"), "{message}");

    let vector = [
        column("x.1", false, None, None),
        column("x.2", false, None, None),
        column("y", false, None, None),
    ];
    let error = refused(load_csv(
        &table("d.csv", "a,b,y\n1,2,3\n").path,
        &vector,
        &[],
        OnBadRows::Error,
    ));
    assert!(
        error.to_string().contains("`columns x=NAME,NAME,...`"),
        "{error}"
    );

    let message = failure("\u{1b}[2Jdist,y\n1,424242\n", OnBadRows::Error).to_string();
    assert!(message.contains("`\\u{1b}[2Jdist`"), "{message:?}");
    assert!(!message.contains('\u{1b}'), "{message:?}");
}

#[test]
fn long_headers_are_cut() {
    let header: Vec<String> = (0..5000)
        .map(|k| format!("column{k}{}", "x".repeat(500)))
        .collect();
    let message = failure(header.join(",") + ",y\n1\n", OnBadRows::Error).to_string();
    assert!(message.contains("and 4961 more"), "{message}");
    assert!(message.len() < 4000, "{message}");
}

/// Without a header line the first line is a record, whatever it contains.
#[test]
fn a_forgotten_header_shows_no_record() {
    for (text, said) in [
        (
            "anne,1,424242\notto,0,3\n",
            "3 fields, some of them numbers",
        ),
        ("anne,no424242\notto,3\n", "2 fields, and none is a column"),
        ("anne\n", "1 field, and none"),
        ("y,424242\n1,3\n", "2 fields, some of them numbers"),
        ("1;424242\n0;3\n", "seems to use ';'"),
        ("anne\t424242\n", "seems to use '\\t'"),
    ] {
        let error = failure(text, OnBadRows::Skip);
        assert!(matches!(error.kind(), LoadErrorKind::NoHeader { .. }));
        let message = error.to_string();
        assert!(!message.contains("anne"), "{message}");
        assert!(message.contains(said), "{message}");
    }
}

#[test]
fn elements_may_be_named_with_brackets() {
    let columns = [
        column("m.1.1", false, None, None),
        column("m.2.1", false, None, None),
        column("x.1", false, None, None),
    ];
    let load = |text: &str, renames: &[(String, String)]| {
        let table = table("d.csv", text);
        load_csv(&table.path, &columns, renames, OnBadRows::Error)
    };
    for header in [
        "m.1.1,m.2.1,x.1",
        "\"m[1,1]\",\"m[2, 1]\",x[1]",
        "m.1.1,\"m[2,1]\",x[1]",
    ] {
        let rows = load(&format!("{header}\n1,2,3\n"), &[]).unwrap();
        assert_eq!(rows.columns(), [[1.0], [2.0], [3.0]], "{header}");
    }
    let both = refused(load("m.1.1,m.2.1,x.1,x[1]\n1,2,3,4\n", &[]));
    assert!(matches!(both.kind(), LoadErrorKind::DuplicateColumn { .. }));
    // A name that was given is taken literally.
    let renames = [("x.1".to_string(), "x[1]".to_string())];
    let rows = load("m.1.1,m.2.1,x.1,x[1]\n1,2,3,4\n", &renames).unwrap();
    assert_eq!(rows.columns()[2], [4.0]);
}

/// `factor("north", "south", "NA") region;`
#[test]
fn factors_are_read_from_words() {
    let mut region = column("region", true, Some(1.0), Some(3.0));
    region.levels = ["north", "south", "NA"].map(str::to_string).to_vec();
    let columns = [region];
    let load = |text: &str, on_bad_rows| {
        let table = table("d.csv", text);
        load_csv(&table.path, &columns, &[], on_bad_rows)
    };
    let text = "region\n south \n\"north\"\nNA\nna\n\"\"\n";
    let rows = load(text, OnBadRows::Error).unwrap();
    assert_eq!(rows.columns(), [[2.0, 1.0, 3.0, 1.0, 1.0]]);
    assert_eq!(rows.missing(), [false, false, false, true, true]);
    let error = refused(load("region\nnorth\nwest424242\n", OnBadRows::Error));
    let said = "line 3, column `region`: expected a level of the factor: \"north\", \"south\"";
    assert!(error.to_string().contains(said), "{error}");
    let rows = load("region\n2\nNorth\nsouth\n", OnBadRows::Skip).unwrap();
    assert_eq!(rows.missing(), [true, true, false]);
}

fn by_unit(text: &str, on_bad_rows: OnBadRows) -> Result<Rows, LoadError> {
    let table = table("data.csv", text);
    load_csv_by_unit(&table.path, on_bad_rows, "who")
}

/// The rows of a unit are contiguous, in an order that does not depend on the file.
#[test]
fn rows_are_grouped_by_unit() {
    let text = "who,y,dist\nanne,1,5\n7,0,1\n anne ,0,6\n7.0,1,2\n\"anne\",0,3\notto,NA,1\n";
    let rows = by_unit(text, OnBadRows::Error).unwrap();
    assert_eq!(rows.n(), 3);
    let units = rows.units().unwrap();
    assert_eq!((units.count, units.ends.as_slice()), (3, &[3, 5][..]));
    assert_eq!(
        rows.columns(),
        [[0.0, 0.0, 1.0, 0.0, 1.0], [3.0, 6.0, 5.0, 1.0, 2.0]]
    );
    let permuted = "who,y,dist\nanne,0,3\nanne,0,6\n7,1,2\nanne,1,5\n7,0,1\notto,1,\n";
    let permuted = by_unit(permuted, OnBadRows::Error).unwrap();
    assert_eq!(rows.columns(), permuted.columns());
}

#[test]
fn a_row_without_a_unit_is_bad() {
    let unit = "column `who`: expected a value that says to which unit the row belongs";
    for (row, said) in [
        ("NA,1,424242", unit),
        (" ,1,2", unit),
        ("\"\",x,424242", unit),
        ("anne,x424242,1", "column `y`: expected 0 or 1"),
        ("anne,1", ": expected 3 fields"),
        (
            "\"anne,1,424242",
            ": expected each field with quotation marks",
        ),
    ] {
        let text = format!("who,y,dist\nanne,1,2\n{row}\notto,1,3\n");
        let error = refused(by_unit(&text, OnBadRows::Error));
        assert!(error.to_string().contains("line 3"), "{error}");
        assert!(error.to_string().contains(said), "{error}");
        let rows = by_unit(&text, OnBadRows::Skip).unwrap();
        assert_eq!((rows.n(), rows.missing().len()), (2, 2), "{row}");
    }
    // Whether a unit counts does not depend on what is wrong with a row.
    for row in [
        "otto,x,1",
        "otto,1",
        "otto",
        "otto,1,2,3",
        "otto,1,\"2",
        "otto,1\",2",
    ] {
        let text = format!("who,y,dist\n{row}\nanne,1,2\n");
        let rows = by_unit(&text, OnBadRows::Skip).unwrap();
        assert_eq!((rows.n(), rows.missing().len()), (2, 1), "{row}");
    }
    // Whether a file loads depends on no value, even where no row has a unit.
    let nobody = by_unit("who,y,dist\n,1,2\n", OnBadRows::Skip).unwrap();
    assert_eq!((nobody.n(), nobody.missing().len()), (0, 0));
}

#[test]
fn the_unit_column_must_be_there_once() {
    let load = |header: &str| {
        let table = table("d.csv", format!("{header}\n1,2,424242\n"));
        load_csv_by_unit(&table.path, OnBadRows::Skip, "who")
    };
    let error = refused(load("y,dist,whom"));
    assert!(matches!(error.kind(), LoadErrorKind::MissingUnit { .. }));
    let message = error.to_string();
    assert!(message.contains("did you mean `whom`?"), "{message}");
    assert!(message.contains("`y`, `dist`, `whom`"), "{message}");
    let error = refused(load("y,dist,424242"));
    assert!(matches!(error.kind(), LoadErrorKind::NoHeader { .. }));
    let table = table("d.csv", "who,y,dist,who\na,1,1,b\n");
    let twice = load_csv_by_unit(&table.path, OnBadRows::Skip, "who");
    let error = refused(twice);
    assert!(matches!(
        error.kind(),
        LoadErrorKind::DuplicateColumn { .. }
    ));
    // It may be one that the model reads, too.
    let rows = load_csv_by_unit(&table.path, OnBadRows::Skip, "y").unwrap();
    assert_eq!(rows.n(), 1);
}

#[test]
fn a_survey_says_where_and_not_what() {
    let survey = |most: usize, unit: Option<&str>| {
        let table = table(
            "d.csv",
            "who,y,dist\na,1,2\na,0,-1\nb,NA,424242\n,1,NA\nb,7,11\nb,1\nc,1,\n\"424\n242\",1,x424242\nd,0,-inf\n",
        );
        let permission = crate::privacy::NotPrivate::acknowledged();
        let reading = Reading {
            unit,
            multiline: most == 1,
            ..Reading::default()
        };
        survey_csv(&table.path, &columns(), &reading, most, permission).unwrap()
    };
    let place = |&position: &u64| Place { file: 0, position };
    let at = |lines: &[u64]| Places {
        count: lines.len() as u64,
        first: lines.iter().map(place).collect(),
    };
    let found = survey(9, None);
    assert!(!format!("{found:?}").contains(SENTINEL));
    assert_eq!(found.records, 10);
    assert_eq!((found.fields, found.multiline), (at(&[7]), at(&[9])));
    assert_eq!(found.torn, at(&[9]));
    assert_eq!(found.bad_rows, at(&[6, 7, 9, 10]));
    assert_eq!(found.missing_rows, at(&[4, 5, 8]));
    let [y, dist] = &found.columns[..] else {
        panic!("two columns")
    };
    assert_eq!(
        (&y.below, &y.missing, &y.bad),
        (&at(&[]), &at(&[4]), &at(&[6]))
    );
    assert_eq!((&dist.below, &dist.above), (&at(&[3, 11]), &at(&[4, 6])));
    assert_eq!((&dist.missing, &dist.bad), (&at(&[5, 8]), &at(&[10])));

    let found = survey(1, Some("who"));
    let unit = found.unit.unwrap();
    assert_eq!((found.records, found.multiline), (9, at(&[9])));
    assert_eq!((unit.count, unit.most_rows), (5, 3));
    assert_eq!(unit.bad, at(&[5]));
    assert_eq!(
        found.bad_rows,
        Places {
            count: 4,
            ..at(&[5])
        }
    );
}

#[test]
fn renames_say_where_a_column_is() {
    let rename = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(a, b)| (a.to_string(), b.to_string()))
            .collect()
    };
    let columns = [
        column("x.1", false, None, None),
        column("x.2", false, None, None),
        column("y", true, None, None),
    ];
    let table = table("d.csv", "y,age,x.1,x.2\n1,2,3,4\n");
    let load =
        |pairs: &[(&str, &str)]| load_csv(&table.path, &columns, &rename(pairs), OnBadRows::Error);
    // A rename replaces the name: then the file's own x.1 is not read as x.1.
    let rows = load(&[("x.1", " age "), ("x.2", "x.1")]).unwrap();
    assert_eq!(rows.columns(), [[2.0], [3.0], [1.0]]);

    let error = refused(load(&[("x.1", "agee")]));
    assert!(
        error.to_string().contains(
            "no column named `agee`, which `columns` gives for `x.1` (did you mean `age`?)"
        ),
        "{error}"
    );
    let error = refused(load(&[("x.3", "age")]));
    assert!(matches!(error.kind(), LoadErrorKind::UnknownRename { .. }));
    assert!(error.to_string().contains("did you mean `x.1`"), "{error}");
    let error = refused(load(&[("x.1", "age"), ("x.1", "y")]));
    assert!(matches!(error.kind(), LoadErrorKind::RepeatedRename { .. }));
}

#[test]
fn a_column_there_twice_is_an_error_only_when_needed() {
    let error = failure("y,dist,dist\n1,2,424242\n", OnBadRows::Skip);
    assert!(matches!(
        error.kind(),
        LoadErrorKind::DuplicateColumn { .. }
    ));
    assert!(load("y,dist,z,z\n1,2,3,4\n", OnBadRows::Error).is_ok());
}

#[test]
fn files_that_are_no_table_say_what_to_do() {
    use LoadErrorKind as Kind;
    for empty in ["", "\u{feff}", "\n\r\n\n"] {
        let error = failure(empty, OnBadRows::Skip);
        assert!(matches!(error.kind(), Kind::Empty(_)), "{error}");
    }
    // A table without records is as good as any.
    assert_eq!(load("y,dist\n", OnBadRows::Error).unwrap().n(), 0);
    for choice in [OnBadRows::Error, OnBadRows::Skip] {
        for text in ["y,dist\r1,424242\r0,3\r", "\"y\",\"dist\"\r1,424242\r"] {
            let error = failure(text, choice);
            let is_told = matches!(error.kind(), Kind::CarriageReturns { .. });
            assert!(is_told, "{error}");
        }
    }
    for bytes in [
        &b"\xff\xfey\0,\0"[..],
        b"\xfe\xff\0y\0,",
        b"y\0,\0d\0\n\0",
        b"PK\x03\x04\xff\xff\n",
        b"y,dist,\xe9\n1,424242,1\n",
    ] {
        let error = failure(bytes, OnBadRows::Skip);
        assert!(matches!(error.kind(), Kind::NotUtf8 { .. }), "{error}");
    }

    let load = |path: &Path| refused(load_csv(path, &columns(), &[], OnBadRows::Skip));
    let plain = table("data.csv.gz", "y,dist\n1,424242\n");
    assert!(matches!(load(&plain.path).kind(), Kind::Misnamed { .. }));
    let whole = gzip("y,dist\n1,424242\n".repeat(2000));
    for (start, end) in [(0, 2), (0, 30), (0, whole.len() - 1), (0, whole.len() - 9)] {
        let cut = table("data.csv.gz", &whole[start..end]);
        assert!(matches!(load(&cut.path).kind(), Kind::Damaged { .. }));
    }
    let empty = table("data.csv.gz", gzip(""));
    assert!(matches!(load(&empty.path).kind(), Kind::Empty(_)));
    assert!(matches!(
        load(&plain.path.join("x")).kind(),
        Kind::Unreadable { .. }
    ));
    assert!(matches!(
        load(Path::new("nul\0.csv")).kind(),
        Kind::Unreadable { .. }
    ));
    assert!(matches!(
        load(Path::new("no/such.csv")).kind(),
        Kind::Unreadable { .. }
    ));
}

/// Files made by changing bytes of a good one: none may panic, every one that
/// loads holds finite numbers in bounds, and both modes agree on good files.
#[test]
fn no_bytes_panic_and_what_loads_is_in_bounds() {
    let good =
        "\u{feff}y,dist,\"na me\"\r\n1,2.5,\"a, b\"\r\n0,NA,c\n1,1e9,\"\"\n0,-inf,\"d \"\"e\"\n";
    let pieces: [&[u8]; 14] = [
        b"\"",
        b",",
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b"nan",
        b"inf",
        b"1e400",
        b"-",
        b"9007199254740993",
        b"\"\"",
        b"\xef\xbb\xbf",
        b"\x1f\x8b",
    ];
    let mut below = random(20_251_121);
    let gzipped = gzip(good);
    let file = table("data.csv", "");
    for round in 0..2000 {
        let mut bytes = if round % 8 == 0 {
            gzipped.clone()
        } else {
            good.as_bytes().to_vec()
        };
        for _ in 0..=below(6) {
            let at = below(bytes.len() + 1);
            match below(4) {
                0 => bytes.truncate(at),
                1 => drop(bytes.splice(at..at, pieces[below(pieces.len())].iter().copied())),
                2 => drop(bytes.splice(at..(at + 1).min(bytes.len()), [])),
                _ => drop(bytes.splice(at..(at + 1).min(bytes.len()), [below(256) as u8])),
            }
        }
        rewrite(&file.path, &bytes);
        let [strict, lenient] = [OnBadRows::Error, OnBadRows::Skip]
            .map(|on_bad_rows| load_csv(&file.path, &columns(), &[], on_bad_rows));
        for rows in [&strict, &lenient].into_iter().flatten() {
            let inside =
                |c: usize, upper: f64| rows.columns()[c].iter().all(|v| (0.0..=upper).contains(v));
            assert!(inside(0, 1.0) && inside(1, 10.0), "{bytes:?}");
            assert!(rows.columns().iter().all(|column| column.len() == rows.n()));
        }
        if let (Ok(strict), Ok(lenient)) = (&strict, &lenient) {
            assert_eq!(strict.columns(), lenient.columns());
            assert_eq!(strict.missing(), lenient.missing());
        }
        // The survey follows the same rules.
        for (unit, multiline) in [(None, false), (Some("y"), false), (Some("y"), true)] {
            let reading = |on_bad_rows| Reading {
                on_bad_rows,
                unit,
                multiline,
                ..Reading::default()
            };
            let permission = crate::privacy::NotPrivate::acknowledged();
            let survey = survey_csv(
                &file.path,
                &columns(),
                &reading(OnBadRows::Error),
                3,
                permission,
            );
            let [strict, lenient] = [OnBadRows::Error, OnBadRows::Skip]
                .map(|on_bad_rows| read_csv(&file.path, &columns(), &reading(on_bad_rows)));
            // It also reports a file that ends inside quotes.
            let kind = lenient.as_ref().err().map(LoadError::kind);
            let is_torn = matches!(kind, Some(LoadErrorKind::Torn { .. }));
            let is_cut = survey.is_ok() && is_torn && !multiline;
            assert!(is_cut || survey.is_ok() == lenient.is_ok(), "{bytes:?}");
            if let (Ok(survey), Ok(lenient)) = (survey, lenient.as_ref()) {
                assert_eq!(survey.bad_rows.count == 0, strict.is_ok(), "{bytes:?}");
                let n = survey.unit.map_or(survey.records, |unit| unit.count);
                assert_eq!(n, lenient.n() as u64, "{bytes:?}");
            }
            for rows in [strict, lenient].into_iter().flatten() {
                let length = rows.missing().len();
                assert!(rows.columns().iter().all(|column| column.len() == length));
                let last = rows.units().map(|u| u.ends.last().copied().unwrap_or(0));
                assert!(last.is_none_or(|end| end == length), "{bytes:?}");
            }
        }
        let stopped_by_a_row = |e: &LoadError| matches!(e.kind(), LoadErrorKind::BadRow { .. });
        if let Err(error) = &lenient {
            assert!(!stopped_by_a_row(error), "{error}");
        }
        if let Err(error) = &strict {
            assert!(stopped_by_a_row(error) || lenient.is_err(), "{error}");
        }
    }
}

/// Overwriting a file may wait for the disk.
fn rewrite(path: &Path, bytes: &[u8]) {
    std::fs::remove_file(path).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// A fixed sequence of numbers below a limit.
fn random(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |limit| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    }
}

/// Anything but a line feed.
fn hostile(below: &mut impl FnMut(usize) -> usize, quotes: bool) -> Vec<u8> {
    const PIECES: [&[u8]; 22] = [
        b"\"",
        b"\"\"",
        b",\"",
        b"\",",
        b",",
        b"\r",
        b"\r\r",
        b"\0",
        b"\xef\xbb\xbf",
        b"\xff\xfe1\0,\0",
        b"\x1f\x8b\x08",
        b"\xe9",
        b"\xe2\x80\xa8",
        b"\x0b\x0c\x1a\x85",
        b"\\\"",
        b"'",
        b"NA",
        b" ",
        b"1,2,3",
        b"0,0.5,",
        b"p1,1,2,",
        b"9007199254740993",
    ];
    let mut line = match below(3) {
        0 => Vec::new(),
        _ => good(below, false),
    };
    for _ in 0..below(5) {
        let at = below(line.len() + 1);
        let random = [below(256) as u8];
        let piece: &[u8] = match below(24) {
            23 => &random,
            22 => &[b'x'; 70_000],
            k => PIECES[k],
        };
        let cut = (at + below(3)).min(line.len());
        line.splice(at..cut, piece.iter().copied());
    }
    line.retain(|&byte| byte != b'\n' && (quotes || byte != b'"'));
    line
}

fn good(below: &mut impl FnMut(usize) -> usize, quotes: bool) -> Vec<u8> {
    let note = match below(3) {
        0 if quotes => "\"a, b\"",
        1 if quotes => "\"\"\"c\"\"\"",
        _ => "d",
    };
    format!("p{},{},{}.5,{note}", below(6), below(2), below(10)).into_bytes()
}

/// The loaded data in comparable form: each row, and each unit's rows, including units that have
/// none.
fn contents(rows: &Rows) -> Vec<Vec<u64>> {
    let row = |r: usize| {
        let mut row: Vec<u64> = rows.columns().iter().map(|c| c[r].to_bits()).collect();
        row.push(u64::from(rows.missing()[r]));
        row
    };
    let Some(units) = rows.units() else {
        return (0..rows.n()).map(row).collect();
    };
    let mut start = 0;
    let mut contents: Vec<Vec<u64>> = Vec::new();
    for &end in &units.ends {
        contents.push((start..end).flat_map(row).collect());
        start = end;
    }
    contents.resize(units.count, Vec::new());
    contents.sort();
    contents
}

/// How many of `some` are not among `others`, each as often as it occurs.
fn unmatched(some: &[Vec<u64>], others: &[Vec<u64>]) -> usize {
    let mut left = others.to_vec();
    let is_left = |x: &&Vec<u64>| match left.iter().position(|other| other == *x) {
        Some(at) => {
            left.swap_remove(at);
            false
        }
        None => true,
    };
    some.iter().filter(is_left).count()
}

/// One line is changed, added or removed, whatever it and the others hold: no other record changes.
/// A run that stops does so because of that line, or stopped before.
#[test]
fn one_line_changes_at_most_one_record() {
    const HEADER: &[u8] = b"who,y,dist,note";
    let mut below = random(17);
    let files = ["a.csv", "b.csv"].map(|name| table(name, ""));
    let mut stopped = 0;
    for round in 0..4000 {
        let multiline = round % 4 == 3;
        let ending: &[u8] = if below(2) == 0 { b"\n" } else { b"\r\n" };
        // Where records may span lines, the promise is for files without other quotes.
        let spoilt = below(3) == 0;
        let mut lines: Vec<Vec<u8>> = Vec::new();
        for _ in 0..1 + below(8) {
            lines.push(if spoilt && below(3) == 0 {
                hostile(&mut below, !multiline)
            } else {
                good(&mut below, !multiline)
            });
        }
        let at = below(lines.len());
        let mut others = lines.clone();
        let key = lines[at].split(|&b| b == b',').next().unwrap_or_default();
        let kind = match below(4) {
            3 if key.contains(&b'"') => 2,
            kind => kind,
        };
        match kind {
            0 => others.insert(at, hostile(&mut below, true)),
            1 => drop(others.remove(at)),
            2 => others[at] = hostile(&mut below, true),
            // The unit stays.
            _ => others[at] = [key, b",", &hostile(&mut below, true)].concat(),
        }
        let is_gzip = round % 5 == 0;
        for (file, lines) in files.iter().zip([&lines, &others]) {
            let mut text = HEADER.to_vec();
            for line in lines {
                text.extend(ending);
                text.extend(line);
            }
            text.extend(ending);
            let bytes = if is_gzip { gzip(&text) } else { text };
            rewrite(&file.path, &bytes);
        }
        for (on_bad_rows, unit) in [
            (OnBadRows::Error, None),
            (OnBadRows::Error, Some("who")),
            (OnBadRows::Skip, None),
            (OnBadRows::Skip, Some("who")),
        ] {
            let reading = Reading {
                on_bad_rows,
                unit,
                multiline,
                ..Reading::default()
            };
            let said = || format!("{lines:?}\n{others:?}\n{reading:?}");
            let [one, other] = [0, 1].map(|f| read_csv(&files[f].path, &columns(), &reading));
            let (one, other) = match (&one, &other) {
                (Ok(one), Ok(other)) => (one, other),
                (Err(error), _) | (_, Err(error)) => {
                    stopped += 1;
                    let first = match error.kind() {
                        LoadErrorKind::BadRow { position, .. } => *position,
                        LoadErrorKind::Torn { line, .. } => *line,
                        _ => panic!("{error}: {}", said()),
                    };
                    // A file that ends inside quotes stops every run.
                    let is_torn = matches!(error.kind(), LoadErrorKind::Torn { .. });
                    assert!(is_torn || on_bad_rows == OnBadRows::Error, "{}", said());
                    let is_of_the_line = first == at as u64 + 2;
                    assert!(is_of_the_line || one.is_err() && other.is_err() || is_torn);
                    continue;
                }
            };
            let counts = (one.n() as i64, other.n() as i64);
            let (one, other) = (contents(one), contents(other));
            let (gone, new) = (unmatched(&one, &other), unmatched(&other, &one));
            if unit.is_some() {
                // The unit to which the line belonged, and the one to which it belongs now.
                let most = if kind == 2 { 2 } else { 1 };
                assert!(gone <= most && new <= most, "{}", said());
                assert!(kind != 3 || multiline || counts.0 == counts.1, "{}", said());
            } else {
                let (mut one, mut other) = (one, other);
                if kind != 0 {
                    one.remove(at);
                }
                if kind != 1 {
                    other.remove(at);
                }
                assert_eq!(one, other, "{}", said());
            }
        }
    }
    assert!(stopped > 1000, "{stopped}");
}

// Wrong here: a division that depends on what records hold, so that changing one changes both parts,
// or moves others from one to the other.
#[test]
fn neighbouring_tables_are_divided_alike() {
    use crate::privacy::split::Split;

    const ROWS: usize = 60;
    let split = Split::new("a", 0.3).unwrap();
    let text = |dist: &[String]| {
        let row = |(i, dist): (usize, &String)| format!("u{},0,{dist}\n", i / 2);
        let rows: String = dist.iter().enumerate().map(row).collect();
        format!("id,y,dist\n{rows}")
    };
    // The values in each part, in order; those of units sorted, since units are in no order.
    let parts = |dist: &[String], unit: Option<&str>| -> [Vec<f64>; 2] {
        let file = table("data.csv", text(dist));
        [split.training(), split.rest()].map(|portion| {
            let reading = Reading {
                on_bad_rows: OnBadRows::Skip,
                unit,
                portion: Some(&portion),
                ..Reading::default()
            };
            let rows = read_csv(&file.path, &columns(), &reading).unwrap();
            assert!(unit.is_none() || rows.n() * 2 >= rows.columns()[1].len());
            rows.columns()[1].clone()
        })
    };
    let own: Vec<String> = (0..ROWS).map(|i| format!("{}", i as f64 / 10.0)).collect();
    for unit in [None, Some("id")] {
        let before = parts(&own, unit);
        let mut all = before.concat();
        all.sort_by(f64::total_cmp);
        assert_eq!(all, (0..ROWS).map(|i| i as f64 / 10.0).collect::<Vec<_>>());
        for changed in (0..ROWS).step_by(7) {
            let mut other = own.clone();
            other[changed] = "9.5".to_owned();
            let after = parts(&other, unit);
            let differ: Vec<usize> = (0..2).filter(|&k| before[k] != after[k]).collect();
            assert_eq!(differ.len(), 1, "{changed}");
            let [a, b] = [&before, &after].map(|parts| &parts[differ[0]]);
            assert_eq!(a.len(), b.len());
            assert_eq!(b.iter().filter(|x| !a.contains(x)).count(), 1);
            assert_eq!(a.iter().filter(|x| !b.contains(x)).count(), 1);
        }
        // The rows of a unit stay together.
        if unit.is_some() {
            for pair in 0..ROWS / 2 {
                let has = |x: usize| before[0].contains(&(x as f64 / 10.0));
                assert_eq!(has(2 * pair), has(2 * pair + 1), "{pair}");
            }
        }
    }
}
