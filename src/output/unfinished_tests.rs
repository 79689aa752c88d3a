use serde_json::json;

use super::super::run_directory::RunDirectory;
use super::*;
use crate::accounting::Grant;
use crate::planted_tests::STARTING;
use crate::sampler::Phase;

fn run_state() -> RunState {
    let mut run_state = RunState::new(json!({ "chains": 2 }), Value::Null, "model {}".into());
    run_state.token = Some("t1".into());
    run_state.chains = 2;
    run_state
}

fn checkpoint(done: u64, draws: u64) -> Checkpoint {
    let draw = |i: u64| Draw {
        phase: Phase::Sampling,
        accept_stat: f64::NAN,
        step_size: 0.1,
        divergent: false,
        sampler: vec![],
        values: vec![i as f64 / 3.0, f64::INFINITY],
    };
    let learnt = "{\"adaptation\":null,\"step_size\":0.1,\"covariance\":null,\"metric\":\"unit\"}";
    Checkpoint {
        grant: Grant {
            id: done.to_string(),
            after: None,
            released: vec![done],
        },
        done,
        granted: done + 2,
        lost: 0,
        accepted: 0,
        sampled: done,
        first_release: None,
        position: 1 << 65,
        walker: Value::from(7),
        warmup: serde_json::from_str(learnt).unwrap(),
        draws: (done - draws..done).map(draw).collect(),
    }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let base = tempfile::tempdir().unwrap();
    let place = base.path().join("run");
    (base, place)
}

/// Takes a lock that was released. Other tests of this process start programs, which hold copies of
/// its locks for the moment between fork and exec: none does meanwhile.
fn settled<T>(act: impl FnOnce() -> T) -> T {
    let _none = STARTING.read().unwrap_or_else(|e| e.into_inner());
    act()
}

type Opened = (Unfinished, RunState, Vec<Option<SavedChain>>);

fn open_again(place: &Path) -> Result<Opened, UnfinishedError> {
    settled(|| Unfinished::open(place))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |e: io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn what_was_kept_is_what_is_read() {
    let (base, place) = place();
    let run = Unfinished::create(&place, &run_state()).unwrap();
    assert_eq!(names(base.path()), ["run"]);
    run.keep(0, &checkpoint(0, 0)).unwrap();
    run.keep(0, &checkpoint(2, 2)).unwrap();
    run.keep(0, &checkpoint(5, 3)).unwrap();
    drop(run);
    let (run, read, begun) = open_again(&place).unwrap();
    assert_eq!(read.token.as_deref(), Some("t1"));
    assert!(begun[1].is_none());
    let first = begun[0].as_ref().unwrap();
    assert_eq!((first.last.done, first.last.granted), (5, 7));
    assert_eq!(first.last.position, 1 << 65);
    let values: Vec<f64> = first.draws.iter().map(|d| d.values[0]).collect();
    assert_eq!(values, [0.0, 1.0 / 3.0, 2.0 / 3.0, 1.0, 4.0 / 3.0]);
    // And continues from there.
    run.keep(0, &checkpoint(6, 1)).unwrap();
    drop(run);
    let (_, _, begun) = open_again(&place).unwrap();
    assert_eq!(begun[0].as_ref().unwrap().draws.len(), 6);
}

// Wrong here: a kill between two writes, or in one, loses the run or counts a draw twice,
// or an iteration that was granted is granted again.
#[test]
fn whatever_a_kill_leaves_the_last_checkpoint_counts() {
    let (_base, place) = place();
    let folder = place.join(FOLDER);
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let write = |name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    let run = Unfinished::create(&place, &run_state()).unwrap();
    let mut known = vec![(
        read("chain-1.even"),
        read("chain-1.odd"),
        read("chain-1.draws"),
    )];
    for done in 0..5 {
        run.keep(0, &checkpoint(done, done.min(1))).unwrap();
        known.push((
            read("chain-1.even"),
            read("chain-1.odd"),
            read("chain-1.draws"),
        ));
    }
    drop(run);
    for (number, pair) in known.windows(2).enumerate() {
        let (before, after) = (&pair[0], &pair[1]);
        let (name, old, new) = match number % 2 {
            0 => ("chain-1.even", &before.0, &after.0),
            _ => ("chain-1.odd", &before.1, &after.1),
        };
        let last = |kept: Option<&SavedChain>| kept.map(|b| (b.last.done, b.draws.len() as u64));
        let expected = (number > 0).then(|| (number as u64 - 1, number as u64 - 1));
        // The draws come first, whole or in part.
        for length in before.2.len()..=after.2.len() {
            write("chain-1.even", &before.0);
            write("chain-1.odd", &before.1);
            write("chain-1.draws", &after.2[..length]);
            let (_, _, begun) = open_again(&place).unwrap();
            assert_eq!(last(begun[0].as_ref()), expected);
            assert_eq!(read("chain-1.draws"), before.2);
        }
        // Then the checkpoint over the one before the last.
        let two_lines = |bytes: &[u8]| -> Vec<Vec<u8>> {
            let lines = bytes.split(|&byte| byte == b'\n').take(2);
            lines.map(<[u8]>::to_vec).collect()
        };
        let mut counted = 0;
        for length in 1..=new.len() {
            let mut torn = new[..length].to_vec();
            torn.extend(old.iter().skip(length));
            write(name, &torn);
            write("chain-1.draws", &after.2);
            let (_, _, begun) = open_again(&place).unwrap();
            let whole = two_lines(&torn) == two_lines(new);
            counted += usize::from(whole);
            let expected = if whole {
                Some((number as u64, number as u64))
            } else {
                expected
            };
            assert_eq!(last(begun[0].as_ref()), expected, "{number} {length}");
        }
        assert!(counted > 0 && counted < new.len());
        write("run.json.new", b"{");
    }
}

#[test]
fn what_no_kill_leaves_is_damage() {
    let (_base, place) = place();
    let folder = place.join(FOLDER);
    let run = Unfinished::create(&place, &run_state()).unwrap();
    run.keep(0, &checkpoint(0, 0)).unwrap();
    run.keep(0, &checkpoint(2, 2)).unwrap();
    drop(run);
    let read = |name: &str| fs::read(folder.join(name)).unwrap();
    let breaks = |name: &str, bytes: &[u8], word: &str| {
        let right = read(name);
        fs::write(folder.join(name), bytes).unwrap();
        let error = open_again(&place).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        fs::write(folder.join(name), right).unwrap();
    };
    let draws = read("chain-1.draws");
    breaks(
        "chain-1.draws",
        &draws[..draws.len() - 1],
        "draws are missing",
    );
    let mut edited = draws.clone();
    edited[3] = b'#';
    breaks("chain-1.draws", &edited, "is not as dpm writes it");
    let joined = String::from_utf8(draws).unwrap().replacen("}\n{", "} {", 1);
    breaks(
        "chain-1.draws",
        format!("{joined} ").as_bytes(),
        "is not as dpm writes it",
    );
    let even = read("chain-1.even");
    fs::write(folder.join("chain-1.even"), "torn").unwrap();
    breaks("chain-1.odd", b"torn", "both of its checkpoints are broken");
    fs::write(folder.join("chain-1.even"), "").unwrap();
    breaks("chain-1.odd", b"torn", "both of its checkpoints are broken");
    fs::write(folder.join("chain-1.even"), even).unwrap();
    let known = String::from_utf8(read(RUN)).unwrap();
    for (from, to) in [
        ("\"format\":3", "\"format\":2"),
        ("\"version\":\"0", "\"version\":\"9"),
    ] {
        assert!(known.contains(from), "{known}");
        breaks(RUN, known.replace(from, to).as_bytes(), "was begun by dpm");
    }
    breaks(
        RUN,
        known.replace("chains", "chain").as_bytes(),
        "is not as dpm writes it",
    );
    open_again(&place).unwrap();
}

#[test]
fn one_process_at_a_time() {
    let (_base, place) = place();
    assert!(matches!(
        Unfinished::open(&place),
        Err(UnfinishedError::None(_))
    ));
    let run = Unfinished::create(&place, &run_state()).unwrap();
    assert!(matches!(
        Unfinished::open(&place),
        Err(UnfinishedError::UnderWay(_))
    ));
    for overwrite in [false, true] {
        let error = RunDirectory::check(&place, overwrite).unwrap_err();
        assert!(matches!(error, RunDirectoryError::UnderWay(_)), "{error}");
    }
    assert!(Unfinished::create(&place, &run_state()).is_err());
    drop(run);
    let run = open_again(&place).unwrap();
    assert!(is_under_way(&place));
    drop(run);
    let error = settled(|| RunDirectory::check(&place, false)).unwrap_err();
    assert!(matches!(error, RunDirectoryError::Unfinished(_)), "{error}");
    assert!(error.to_string().contains("is not finished"), "{error}");
    settled(|| RunDirectory::check(&place, true)).unwrap();
}

// Wrong here: an earlier run is gone before the new one has anything to show, or a state
// that nothing was released on stays behind.
#[test]
fn an_older_run_stays_until_there_is_a_new_one() {
    let (base, place) = place();
    let old = RunDirectory::create(&place, false).unwrap();
    old.write("privacy.json", "old").unwrap();
    old.publish(false).unwrap();
    let run = Unfinished::create(&place, &run_state()).unwrap();
    assert_eq!(names(&place), ["privacy.json", FOLDER]);
    run.discard();
    drop(run);
    assert_eq!(names(&place), ["privacy.json"]);
    drop(settled(|| Unfinished::create(&place, &run_state())).unwrap());
    // Discarded for another run.
    let mut other = run_state();
    other.model = "other".into();
    let run = settled(|| Unfinished::create(&place, &other)).unwrap();
    run.keep(1, &checkpoint(2, 2)).unwrap();
    assert_eq!(names(&place), ["privacy.json", FOLDER]);

    // The results so far, and the state.
    let partial = RunDirectory::of_unfinished(&run).unwrap();
    partial.write("privacy.json", "partial").unwrap();
    run.copy_into(partial.path()).unwrap();
    partial.publish(false).unwrap();
    drop(run);
    assert_eq!(fs::read(place.join("privacy.json")).unwrap(), b"partial");
    let (run, read, begun) = open_again(&place).unwrap();
    assert_eq!(read.model, "other");
    assert_eq!(begun[1].as_ref().unwrap().draws.len(), 2);
    run.keep(1, &checkpoint(4, 2)).unwrap();
    let whole = RunDirectory::of_unfinished(&run).unwrap();
    whole.write("privacy.json", "whole").unwrap();
    whole.publish(false).unwrap();
    assert_eq!(names(&place), ["privacy.json"]);
    assert_eq!(fs::read(place.join("privacy.json")).unwrap(), b"whole");
    assert_eq!(names(base.path()), ["run"]);

    let fresh = base.path().join("fresh");
    let run = Unfinished::create(&fresh, &run_state()).unwrap();
    run.discard();
    assert!(!fresh.exists());
}
