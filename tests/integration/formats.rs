//! Data in each format and from each place, as a user gives them.

use std::io::Write as _;
use std::process::Stdio;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int32Array, RecordBatch, StringArray};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use parquet::arrow::ArrowWriter;

use crate::harness::{Folder, LOGISTIC, Lcg, Outcome, finish, folder_of, json, says, start};

const RUN: &str = "--epsilon 2 --delta 1e-6 --chains 2 --num-warmup 5 --num-samples 10 --algorithm dp-hmc --clip-gradient 2 --clip-log-ratio 1 --leapfrog-steps 3 --step-size 0.01 --insecure-noise-seed 11 --no-report --quiet";

struct Place(Folder);

folder_of!(Place);

impl Place {
    fn new() -> Place {
        let place = Place(Folder::new());
        place.write("m.dpm", LOGISTIC);
        place
    }

    /// With these bytes on standard input.
    fn piped(&self, arguments: &str, bytes: &[u8]) -> Outcome {
        let mut child = start(self.command(arguments).stdin(Stdio::piped()));
        let mut input = child.stdin.take().expect("a pipe");
        let bytes = bytes.to_vec();
        // The program may end before it has read all.
        let writer = std::thread::spawn(move || drop(input.write_all(&bytes)));
        let outcome = finish(child);
        writer.join().expect("a writer");
        outcome
    }

    fn draws(&self, run: &str) -> String {
        self.read(&format!("{run}/chain-1.csv")) + &self.read(&format!("{run}/chain-2.csv"))
    }
}

fn rows() -> Vec<(Option<i32>, f64)> {
    let mut random = Lcg(5);
    let row = |i: u32| {
        let x = 2.4 * random.uniform() - 1.2;
        let y = i32::from(random.uniform() < 0.5 + x / 3.0);
        ((i % 17 != 3).then_some(y), x)
    };
    (0..200).map(row).collect()
}

fn csv(rows: &[(Option<i32>, f64)]) -> String {
    rows.iter().fold("y,x\n".to_owned(), |text, (y, x)| {
        text + &y.map_or(String::new(), |y| y.to_string()) + &format!(",{x}\n")
    })
}

fn batch(rows: &[(Option<i32>, f64)]) -> RecordBatch {
    let columns: [(&str, ArrayRef); 2] = [
        (
            "x",
            Arc::new(rows.iter().map(|r| Some(r.1)).collect::<Float64Array>()),
        ),
        (
            "y",
            Arc::new(rows.iter().map(|r| r.0).collect::<Int32Array>()),
        ),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).expect("a batch")
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).expect("a writer");
    writer.write(batch).expect("a batch");
    writer.close().expect("a file");
    bytes
}

fn formats(rows: &[(Option<i32>, f64)]) -> Vec<(&'static str, Vec<u8>)> {
    let text = csv(rows);
    let batch = batch(rows);
    let (mut file, mut stream) = (Vec::new(), Vec::new());
    let mut writer = FileWriter::try_new(&mut file, &batch.schema()).expect("a writer");
    writer.write(&batch).expect("a batch");
    writer.finish().expect("a file");
    drop(writer);
    let mut writer = StreamWriter::try_new(&mut stream, &batch.schema()).expect("a writer");
    writer.write(&batch).expect("a batch");
    writer.finish().expect("a stream");
    drop(writer);
    vec![
        ("d.csv", text.clone().into_bytes()),
        (
            "d.csv.zst",
            zstd::encode_all(text.as_bytes(), 1).expect("zstd"),
        ),
        ("d.parquet", parquet(&batch)),
        ("d.feather", file),
        ("d.arrows", stream),
    ]
}

#[test]
fn a_run_is_the_same_whatever_brings_the_data() {
    let place = Place::new();
    let rows = rows();
    let mut expected = None;
    for (name, bytes) in formats(&rows) {
        place.write(name, &bytes);
        place.succeeds(&format!("sample m.dpm {name} {RUN} --out file --overwrite"));
        let draws = place.draws("file");
        assert_eq!(&draws, expected.get_or_insert(draws.clone()), "{name}");
        assert_eq!(place.json("file/config.json")["data"], name);
        let outcome = place.piped(
            &format!("sample m.dpm - {RUN} --out pipe --overwrite"),
            &bytes,
        );
        assert_eq!(outcome.code, 0, "{name}: {}", outcome.err);
        assert_eq!(place.draws("pipe"), draws, "{name}");
        // A pipe that ends early says so, and leaves nothing.
        let cut = match name {
            "d.csv" => continue,
            _ => &bytes[..bytes.len() / 2],
        };
        let outcome = place.piped(&format!("sample m.dpm - {RUN} --out cut"), cut);
        assert_eq!(outcome.code, 2, "{name}: {}", outcome.err);
        assert!(
            outcome
                .err
                .contains("standard input is a damaged or truncated"),
            "{}",
            outcome.err
        );
        assert!(!place.file("cut").exists());
    }
    let draws = expected.expect("draws");
    std::fs::create_dir_all(place.file("parts/a")).expect("a folder");
    for (name, part) in [
        ("parts/a/0.parquet", &rows[..70]),
        ("parts/b.parquet", &rows[70..]),
    ] {
        place.write(name, parquet(&batch(part)));
    }
    place.write("parts/_SUCCESS", "");
    for data in [
        "parts",
        "parts/a/0.parquet parts/b.parquet",
        "parts/**/*.parquet",
    ] {
        place.succeeds(&format!("sample m.dpm {data} {RUN} --out file --overwrite"));
        assert_eq!(place.draws("file"), draws, "{data}");
        // Which parts there are may follow from the rows.
        let files = std::fs::read_dir(place.file("file")).expect("a run");
        for file in files.map(|file| file.expect("a file").path()) {
            let written = std::fs::read(&file).expect("a file of the run");
            let written = String::from_utf8_lossy(&written);
            assert!(!written.contains("0.parquet"), "{data}: {file:?}");
        }
    }
    let config = place.json("file/config.json");
    assert_eq!(config["data"], "parts/**/*.parquet");
    let mut points = place.command("log-prob m.dpm parts --points p.json --not-private");
    place.write("p.json", r#"[{"params": {"alpha": 1, "beta": 0.5}}]"#);
    let by_parts = finish(start(&mut points));
    let whole = place.succeeds("log-prob m.dpm d.csv --points p.json --not-private");
    assert_eq!(by_parts.out, whole.out);
}

#[test]
fn a_check_tells_rows_of_files() {
    let place = Place::new();
    let mut rows = rows();
    rows.truncate(6);
    rows[2].0 = Some(424_242);
    place.write("a.parquet", parquet(&batch(&rows)));
    place.write("b.parquet", parquet(&batch(&rows[2..])));
    let one = place.dpm("check m.dpm --data a.parquet");
    assert_eq!(one.code, 2);
    assert!(one.out.contains("1   bad: row 3\n"), "{}", one.out);
    let two = place.dpm("check m.dpm --data a.parquet --data b.parquet");
    says(&two.out, "a.parquet b.parquet: 10 records in 2 files");
    says(&two.out, "bad: rows 3 of a.parquet; 1 of b.parquet\n");
    let said = place.dpm("check m.dpm --data ?.parquet --format json");
    let data = &json(&said.out)["data"];
    assert_eq!(data["path"], "?.parquet");
    assert_eq!(data["files"], serde_json::json!(["a.parquet", "b.parquet"]));
    let bad = serde_json::json!({"count": 2, "rows": [3, 1], "files": [0, 1]});
    assert_eq!(data["bad_rows"], bad);
    let outcome = place.piped("check m.dpm --data -", csv(&rows).as_bytes());
    assert!(outcome.out.contains("bad: line 4\n"), "{}", outcome.out);
}

#[test]
fn what_cannot_be_read_is_refused_before_anything_is_written() {
    let place = Place::new();
    let rows = rows();
    let good = parquet(&batch(&rows));
    place.write("good.parquet", &good);
    place.write("cut.parquet", &good[..good.len() - 100]);
    place.write("text.parquet", csv(&rows));
    std::fs::create_dir_all(place.file("empty")).expect("a folder");
    std::fs::create_dir_all(place.file("mixed")).expect("a folder");
    place.write("mixed/a.csv", csv(&rows));
    place.write("mixed/b.parquet", &good);
    let words: ArrayRef = Arc::new(StringArray::from(vec!["424242"]));
    let one: ArrayRef = Arc::new(Int32Array::from(vec![1]));
    let other = RecordBatch::try_from_iter([("x", words), ("y", one)]).expect("a batch");
    place.write("other.parquet", parquet(&other));
    for (data, words) in [
        (
            "cut.parquet",
            "cut.parquet is a damaged or truncated Parquet file",
        ),
        (
            "text.parquet",
            "text.parquet is not a Parquet file, though its name says so",
        ),
        ("empty", "the folder empty has no data files"),
        ("no*thing", "no file matches the pattern `no*thing`"),
        ("nothing.parquet", "cannot read nothing.parquet"),
        (
            "mixed",
            "mixed/b.parquet is a Parquet file, and the first file is text",
        ),
        (
            "good.parquet good.parquet",
            "good.parquet is given more than once",
        ),
        (
            "good.parquet other.parquet",
            "the column `x` of other.parquet has text",
        ),
    ] {
        place.refuses(&format!("sample m.dpm {data} {RUN}"), 2, &[words]);
        assert!(!place.file("m-run").exists());
    }
    let text = csv(&rows);
    let in_a_row = text.rfind(',').expect("a row");
    for (bytes, said) in [
        ("", "standard input is empty"),
        (
            &text[..in_a_row],
            "standard input, line 201: expected 2 fields",
        ),
    ] {
        let outcome = place.piped(&format!("sample m.dpm - {RUN}"), bytes.as_bytes());
        assert_eq!(outcome.code, 2);
        assert!(outcome.err.contains(said), "{}", outcome.err);
        assert!(!place.file("m-run").exists());
    }
}

// Wrong here: several runs of the same data, each charged or each released, where the user wanted one.
// With MPI: tests/cluster.
#[cfg(not(feature = "mpi"))]
#[test]
fn without_mpi_none_of_several_processes_runs() {
    let place = Place::new();
    place.write("data.csv", csv(&rows()));
    for names in [
        ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"],
        ["PMI_RANK", "PMI_SIZE"],
        ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"],
    ] {
        for (rank, ranks, code) in [("1", "4", 2), ("0", "1", 0)] {
            let arguments = format!("sample m.dpm data.csv {RUN} --overwrite");
            let mut command = place.command(&arguments);
            command.env(names[0], rank).env(names[1], ranks);
            let outcome = finish(start(&mut command));
            assert_eq!(outcome.code, code, "{}", outcome.err);
            assert_eq!(outcome.err.contains("--features mpi"), code == 2);
        }
    }
}
