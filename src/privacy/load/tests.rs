use super::*;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write;
use std::path::PathBuf;

/// A value that must show in no message.
const SENTINEL: &str = "424242";

fn column(name: &str, is_int: bool, lower: Option<f64>, upper: Option<f64>) -> RecordColumn {
    RecordColumn {
        name: name.to_string(),
        variable: name.split('.').next().unwrap_or(name).to_string(),
        is_int,
        lower,
        upper,
        used: true,
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

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
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
fn marks_line_endings_quotes_and_blank_lines_do_not_matter() {
    for text in [
        "\u{feff}y,dist\n1,2\n0,3\n",
        "\u{feff}\"y\",\"dist\"\r\n1,2\r\n0,3",
        "y,dist\r1,2\r0,3\r",
        "\n\ny,dist\n\n1,2\n\n\n0,\"3\"\n\n",
    ] {
        let rows = load(text, OnBadRows::Error).unwrap();
        assert_eq!(rows.columns(), [[1.0, 0.0], [2.0, 3.0]], "{text:?}");
    }
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
    let whole = "expected a whole number from 0 to 1;";
    let fields = "expected 2 fields separated by commas, as in the header;";
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
    ] {
        let text = format!("y,dist\n0,1\n{row}\nzzz,zzz\n");
        let message = failure(&text, OnBadRows::Error).to_string();
        assert!(
            message.contains(&format!("data.csv, line 3{column}: {expected}")),
            "{message}"
        );
        assert!(message.contains("`--on-bad-rows skip`"), "{message}");
        let rows = load(&text, OnBadRows::Skip).unwrap();
        assert_eq!(rows.missing(), [false, true, true]);
        assert_eq!(rows.columns(), [[0.0; 3], [1.0, 0.0, 0.0]]);
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

#[test]
fn the_line_is_that_of_the_file_on_which_the_record_starts() {
    for ending in ["\n", "\r\n", "\r"] {
        for (text, line) in [
            ("y,dist\nbad,1", 2),
            ("y,dist\nbad,1\n", 2),
            ("y,dist\n1,1\n\n\nbad,1\n0,1\n", 5),
            (
                "\n\"y\",dist,\"no\nte\"\n1,1,\"two\nlines\"\n\nbad,1,\"three\n\nlines\"\n1,1,1\n",
                7,
            ),
            ("y,dist\n1,1\nbad,1,\"three\n\nlines\"", 3),
            ("y,dist\n\nbad,\"never closed\n\n1,1\n\n", 3),
        ] {
            let text = text.replace('\n', ending);
            let error = failure(&text, OnBadRows::Error);
            assert!(
                matches!(error.kind(), LoadErrorKind::BadRow { position, .. } if *position == line),
                "{text:?}: {error}"
            );
        }
    }
}

#[test]
fn the_line_is_right_far_into_a_file() {
    let mut text = "y,dist\r\n".to_string();
    for _ in 0..50_000 {
        text.push_str("1,2.5\r\n");
    }
    text.push_str("\r\n1,x\r\n1,1\r\n");
    let error = failure(&text, OnBadRows::Error);
    assert!(error.to_string().contains("line 50003, "), "{error}");
}

#[test]
fn a_missing_column_is_named_with_what_there_is() {
    let message = failure("y,dits,z\n1,424242,1\n", OnBadRows::Skip).to_string();
    assert!(message.contains("no column named `dist`"), "{message}");
    assert!(message.contains("did you mean `dits`?"), "{message}");
    assert!(message.contains("`y`, `dits`, `z`"), "{message}");
    assert!(message.contains("`--columns dist=NAME`"), "{message}");

    let vector = [
        column("x.1", false, None, None),
        column("x.2", false, None, None),
    ];
    let error = refused(load_csv(
        &table("d.csv", "a,b\n1,2\n").path,
        &vector,
        &[],
        OnBadRows::Error,
    ));
    assert!(
        error.to_string().contains("`--columns x=NAME,NAME,...`"),
        "{error}"
    );

    let message = failure("y;dist\n1;424242\n", OnBadRows::Error).to_string();
    assert!(message.contains("separated by commas"), "{message}");

    let message = failure("\u{1b}[2Jy,b\n1,424242\n", OnBadRows::Error).to_string();
    assert!(!message.contains('\u{1b}'), "{message:?}");
}

#[test]
fn long_headers_are_cut() {
    let header: Vec<String> = (0..5000)
        .map(|k| format!("column{k}{}", "x".repeat(500)))
        .collect();
    let message = failure(header.join(",") + "\n1\n", OnBadRows::Error).to_string();
    assert!(message.contains("and 4960 more"), "{message}");
    assert!(message.len() < 4000, "{message}");
}

#[test]
fn a_forgotten_header_shows_no_record() {
    let error = failure("anne,1,424242\notto,0,3\n", OnBadRows::Error);
    assert!(matches!(error.kind(), LoadErrorKind::NoHeader { .. }));
    assert!(!error.to_string().contains("anne"), "{error}");
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
    // A rename replaces the name: the file's own x.1 is not read for x.1 then.
    let rows = load(&[("x.1", " age "), ("x.2", "x.1")]).unwrap();
    assert_eq!(rows.columns(), [[2.0], [3.0], [1.0]]);

    let error = refused(load(&[("x.1", "agee")]));
    assert!(
        error.to_string().contains(
            "no column named `agee`, which `--columns` gives for `x.1` (did you mean `age`?)"
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
    let error = failure("y,dist\n\n", OnBadRows::Skip);
    assert!(matches!(error.kind(), Kind::NoRows(_)), "{error}");
    for bytes in [
        &b"\xff\xfey\0,\0"[..],
        b"\xfe\xff\0y\0,",
        b"y\0,\0d\0\n\0",
        b"PAR1\xff\xff\n",
        b"y,dist,\xe9\n1,424242,1\n",
    ] {
        let error = failure(bytes, OnBadRows::Skip);
        assert!(matches!(error.kind(), Kind::NotUtf8 { .. }), "{error}");
    }

    let load = |path: &Path| refused(load_csv(path, &columns(), &[], OnBadRows::Skip));
    let plain = table("data.csv.gz", "y,dist\n1,424242\n");
    assert!(matches!(load(&plain.path).kind(), Kind::NotGzip { .. }));
    let whole = gzip(&"y,dist\n1,424242\n".repeat(2000));
    for (start, end) in [(0, 2), (0, 30), (0, whole.len() - 1), (0, whole.len() - 9)] {
        let cut = table("data.csv.gz", &whole[start..end]);
        assert!(matches!(load(&cut.path).kind(), Kind::DamagedGzip { .. }));
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
    let folder = plain.path.parent().unwrap();
    assert!(matches!(load(folder).kind(), Kind::Directory { .. }));
}

/// Files made by changing bytes of a good one: none may panic, every one that
/// loads holds finite numbers in bounds, and both modes agree on good files.
#[test]
fn no_bytes_panic_and_what_loads_is_in_bounds() {
    let good =
        "\u{feff}y,dist,\"na\nme\"\r\n1,2.5,\"a, b\"\r\n0,NA,c\n\n1,1e9,\"\"\n0,-inf,\"d \"\"e\"\n";
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
    let mut state = 20_251_121_u64;
    let mut below = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % limit
    };
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
        std::fs::write(&file.path, &bytes).unwrap();
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
        let stopped_by_a_row = |e: &LoadError| matches!(e.kind(), LoadErrorKind::BadRow { .. });
        if let Err(error) = &lenient {
            assert!(!stopped_by_a_row(error), "{error}");
        }
        if let Err(error) = &strict {
            assert!(stopped_by_a_row(error) || lenient.is_err(), "{error}");
        }
    }
}
