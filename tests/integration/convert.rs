//! `dpm convert`: what is written where, what is refused. What the readers of other programs
//! make of it is in `tests/readers`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Folder, Outcome, json};

/// Two chains of ten draws of a matrix, a vector and a scalar, without privacy.
fn run() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers/matrix_fixture")
}

fn convert(
    folder: &Folder,
    run: &Path,
    format: &str,
    out: Option<&Path>,
    overwrite: bool,
) -> Outcome {
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let mut arguments = vec![
        "convert".to_owned(),
        path(run),
        "--to".into(),
        format.into(),
    ];
    if let Some(out) = out {
        arguments.extend(["-o".into(), path(out)]);
    }
    if overwrite {
        arguments.push("--overwrite".into());
    }
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    folder.dpm_with(&arguments)
}

/// A private run, from one that is not: what it says of itself is all that differs.
fn private_run(folder: &Path) -> PathBuf {
    let place = folder.join("quiet");
    fs::create_dir(&place).unwrap();
    for chain in ["chain-1.csv", "chain-2.csv"] {
        let text = fs::read_to_string(run().join(chain)).unwrap();
        let text = text.replace("privacy_private = false", "privacy_private = true");
        fs::write(place.join(chain), text).unwrap();
    }
    let report = r#"{"private": true, "statement": "It is (1, 1e-6)-private."}"#;
    fs::write(place.join("privacy.json"), report).unwrap();
    place
}

#[test]
fn conversions_stand_beside_the_run_and_are_replaced_when_asked() {
    let folder = Folder::new();
    let run = private_run(folder.path());
    for format in ["zarr", "parquet", "csv"] {
        let first = convert(&folder, &run, format, None, false);
        assert_eq!(first.code, 0, "{}", first.err);
        assert!(!first.err.contains("NOT PRIVATE"));
        let refused = convert(&folder, &run, format, None, false);
        assert_eq!(refused.code, 1);
        assert!(refused.err.contains("exists already"), "{}", refused.err);
        assert_eq!(convert(&folder, &run, format, None, true).code, 0);
    }
    let expected = ["quiet", "quiet.csv", "quiet.parquet", "quiet.zarr"];
    assert_eq!(folder.names("."), expected);
    let csv = fs::read_to_string(folder.file("quiet.csv")).unwrap();
    let lines: Vec<&str> = csv.lines().collect();
    let header = r#"chain,draw,b[1],b[2],"m[1,1]","m[2,1]","m[1,2]","m[2,2]","m[1,3]","m[2,3]",s"#;
    assert_eq!((lines.len(), lines[0]), (21, header));
    assert!(lines[1].starts_with("0,0,") && lines[20].starts_with("1,9,"));
}

#[test]
fn each_says_what_the_run_promises_and_none_holds_data() {
    let folder = Folder::new();
    let run = private_run(folder.path());
    let zarr = folder.file("new/deep.zarr");
    assert_eq!(convert(&folder, &run, "zarr", Some(&zarr), false).code, 0);
    let json = |path: &str| json(&fs::read_to_string(zarr.join(path)).unwrap());
    for group in ["", "posterior/", "sample_stats/"] {
        let attributes = json(&format!("{group}.zattrs"));
        assert_eq!(attributes["privacy_statement"], "It is (1, 1e-6)-private.");
        assert_eq!(attributes["privacy_private"], "true");
    }
    let files = [
        ".zattrs",
        ".zgroup",
        ".zmetadata",
        "posterior",
        "sample_stats",
    ];
    assert_eq!(folder.names("new/deep.zarr"), files);
    assert_eq!(
        json("posterior/m/.zarray")["shape"],
        serde_json::json!([2, 10, 2, 3])
    );
    assert!(!zarr.join("sample_stats/lp").exists());
    // The last index runs fastest: m[1,1], m[1,2], m[1,3], m[2,1], ...
    let bytes = fs::read(zarr.join("posterior/m/0.0.0.0")).unwrap();
    let numbers: Vec<f64> = bytes
        .chunks_exact(8)
        .map(|eight| f64::from_le_bytes(eight.try_into().unwrap()))
        .collect();
    let first = fs::read_to_string(run.join("chain-1.csv")).unwrap();
    let mut lines = first.lines().filter(|line| !line.starts_with('#'));
    let columns: Vec<&str> = lines.next().unwrap().split(',').collect();
    let row: Vec<f64> = lines
        .next()
        .unwrap()
        .split(',')
        .map(|v| v.parse().unwrap())
        .collect();
    let value = |name: &str| row[columns.iter().position(|c| *c == name).unwrap()];
    let expected = ["m.1.1", "m.1.2", "m.1.3", "m.2.1", "m.2.2", "m.2.3"].map(value);
    assert_eq!(numbers[..6], expected);

    let parquet = folder.file("draws.parquet");
    assert_eq!(
        convert(&folder, &run, "parquet", Some(&parquet), false).code,
        0
    );
    let bytes = fs::read(&parquet).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("privacy_statement") && text.contains("It is (1, 1e-6)-private."));
}

#[test]
fn draws_without_privacy_are_marked_everywhere() {
    let folder = Folder::new();
    for format in ["zarr", "parquet", "csv"] {
        let out = folder.file(format);
        let output = convert(&folder, &run(), format, Some(&out), false);
        assert!(output.code == 0 && output.err.contains("NOT PRIVATE"));
    }
    let csv = fs::read_to_string(folder.file("csv")).unwrap();
    assert!(csv.lines().next().unwrap().ends_with(",privacy"));
    assert!(
        csv.lines()
            .skip(1)
            .all(|line| line.ends_with(",NOT_PRIVATE"))
    );
    let attributes = fs::read_to_string(folder.file("zarr/posterior/.zattrs")).unwrap();
    assert!(attributes.contains("NOT PRIVATE"));
    let parquet = fs::read(folder.file("parquet")).unwrap();
    assert!(String::from_utf8_lossy(&parquet).contains("NOT PRIVATE"));
}

/// A file that is not a conversion is never replaced, whatever is asked.
#[test]
fn the_work_of_others_is_left_alone() {
    let folder = Folder::new();
    let thesis = folder.file("thesis");
    fs::create_dir(&thesis).unwrap();
    fs::write(thesis.join("chapter1.txt"), "years of work").unwrap();
    for format in ["zarr", "parquet", "csv"] {
        let refused = convert(&folder, &run(), format, Some(&thesis), true);
        assert_eq!(refused.code, 1);
        assert!(refused.err.contains("left alone"), "{}", refused.err);
    }
    assert_eq!(folder.names("thesis"), ["chapter1.txt"]);
    let nowhere = convert(&folder, &folder.file("nowhere"), "csv", None, false);
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.err.contains("holds no chain-1.csv"));
    let inside = thesis.join("chapter1.txt/draws.zarr");
    let refused = convert(&folder, &run(), "zarr", Some(&inside), false);
    assert!(refused.err.contains("cannot write"), "{}", refused.err);
    assert_eq!(folder.names("."), ["thesis"]);
}
