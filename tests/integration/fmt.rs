//! `dpm fmt` as a user meets it.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::harness::{Folder, finish, start};

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
    let folder = Folder::new();
    folder.write("a.dpm", MESSY);
    folder.write("b.dpm", NEAT);
    let outcome = folder.dpm("fmt a.dpm b.dpm");
    assert_eq!(outcome.code, 0);
    assert_eq!(outcome.out, "");
    assert_eq!(outcome.err, "formatted a.dpm\n");
    assert_eq!(folder.read("a.dpm"), NEAT);
    let again = folder.dpm("fmt a.dpm b.dpm");
    assert_eq!((again.code, again.err.as_str()), (0, ""));
    // Nothing is left beside them.
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
}

#[test]
fn check_lists_what_would_change_and_changes_nothing() {
    let folder = Folder::new();
    folder.write("a.dpm", MESSY);
    folder.write("b.dpm", NEAT);
    let outcome = folder.dpm("fmt --check a.dpm b.dpm");
    assert_eq!(outcome.code, 1);
    assert_eq!(outcome.out, "a.dpm\n");
    assert!(outcome.err.contains("1 of 2 models would change"));
    assert_eq!(folder.read("a.dpm"), MESSY);
    let neat = folder.dpm("fmt --check b.dpm");
    assert_eq!((neat.code, neat.out.as_str()), (0, ""));
}

#[test]
fn a_file_with_errors_is_left_alone_and_the_others_are_not() {
    let folder = Folder::new();
    let wrong = "model { x = ;\n y = 1 }";
    folder.write("wrong.dpm", wrong);
    folder.write("a.dpm", MESSY);
    let outcome = folder.dpm("fmt wrong.dpm absent.dpm a.dpm");
    assert_eq!(outcome.code, 2);
    let said = outcome.err;
    for part in [
        "error[S001]",
        "wrong.dpm:1:12",
        "error[S002]",
        "`absent.dpm`",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert_eq!(folder.read("wrong.dpm"), wrong);
    assert_eq!(folder.read("a.dpm"), NEAT);
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = Folder::new();
    let mut child = start(folder.command("fmt -").stdin(Stdio::piped()));
    let mut input = child.stdin.take().expect("a pipe");
    input.write_all(MESSY.as_bytes()).expect("written");
    drop(input);
    let outcome = finish(child);
    assert_eq!(outcome.code, 0);
    assert_eq!(outcome.out, NEAT);
    assert_eq!(outcome.err, "");
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::new();
    let (file, link) = (folder.file("a.dpm"), folder.file("link.dpm"));
    fs::write(&file, MESSY).expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("set");
    symlink("a.dpm", &link).expect("linked");
    let outcome = folder.dpm("fmt link.dpm");
    assert_eq!(outcome.code, 0);
    assert_eq!(folder.read("a.dpm"), NEAT);
    assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
    let mode = fs::metadata(&file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
}
