//! `dpm fmt` as a user meets it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const MESSY: &str = "record{real x;}parameters { real a; } // one\nmodel {x~normal(a,1);}";
const NEAT: &str = "record {
  real x;
}
parameters {
  real a;
}  // one
model {
  x ~ normal(a, 1);
}
";

#[test]
fn files_are_written_in_form_and_once() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.dpm"), MESSY).expect("written");
    fs::write(folder.path().join("b.dpm"), NEAT).expect("written");
    let outcome = dpm(folder.path(), &["fmt", "a.dpm", "b.dpm"]);
    assert_eq!(outcome.status.code(), Some(0));
    assert_eq!(text(&outcome.stdout), "");
    assert_eq!(text(&outcome.stderr), "formatted a.dpm\n");
    assert_eq!(read(folder.path(), "a.dpm"), NEAT);
    let again = dpm(folder.path(), &["fmt", "a.dpm", "b.dpm"]);
    assert_eq!((again.status.code(), text(&again.stderr)), (Some(0), ""));
    // Nothing is left beside them.
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn check_lists_what_would_change_and_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.dpm"), MESSY).expect("written");
    fs::write(folder.path().join("b.dpm"), NEAT).expect("written");
    let outcome = dpm(folder.path(), &["fmt", "--check", "a.dpm", "b.dpm"]);
    assert_eq!(outcome.status.code(), Some(1));
    assert_eq!(text(&outcome.stdout), "a.dpm\n");
    assert!(text(&outcome.stderr).contains("1 of 2 models would change"));
    assert_eq!(read(folder.path(), "a.dpm"), MESSY);
    let neat = dpm(folder.path(), &["fmt", "--check", "b.dpm"]);
    assert_eq!((neat.status.code(), text(&neat.stdout)), (Some(0), ""));
}

#[test]
fn a_file_with_errors_is_left_alone_and_the_others_are_not() {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = "model { x = ;\n y = 1 }";
    fs::write(folder.path().join("wrong.dpm"), wrong).expect("written");
    fs::write(folder.path().join("a.dpm"), MESSY).expect("written");
    let outcome = dpm(folder.path(), &["fmt", "wrong.dpm", "absent.dpm", "a.dpm"]);
    assert_eq!(outcome.status.code(), Some(2));
    let said = text(&outcome.stderr);
    for part in [
        "error[S001]",
        "wrong.dpm:1:12",
        "error[S002]",
        "`absent.dpm`",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(read(folder.path(), "wrong.dpm"), wrong);
    assert_eq!(read(folder.path(), "a.dpm"), NEAT);
}

#[test]
fn standard_input_goes_to_standard_output() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dpm"))
        .args(["fmt", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("dpm starts");
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(MESSY.as_bytes()).expect("written");
    drop(input);
    let outcome = child.wait_with_output().expect("dpm ends");
    assert_eq!(outcome.status.code(), Some(0));
    assert_eq!(text(&outcome.stdout), NEAT);
    assert_eq!(text(&outcome.stderr), "");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().expect("a folder");
    let (file, link) = (folder.path().join("a.dpm"), folder.path().join("link.dpm"));
    fs::write(&file, MESSY).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
    symlink("a.dpm", &link).expect("linked");
    let outcome = dpm(folder.path(), &["fmt", "link.dpm"]);
    assert_eq!(outcome.status.code(), Some(0));
    assert_eq!(read(folder.path(), "a.dpm"), NEAT);
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}

fn dpm(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dpm"))
        .current_dir(folder)
        .args(arguments)
        .output()
        .expect("dpm runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("text")
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).expect("a file")
}
