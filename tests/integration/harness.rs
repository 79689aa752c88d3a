//! The program as a user runs it: in a folder of its own, with what it says.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::RwLock;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Words that no message may hold: signs of a fault of ours, and a value that only the records of
/// tests have.
const NEVER_SAID: [&str; 6] = [
    "panicked",
    "RUST_BACKTRACE",
    "internal error",
    "should not have happened",
    "src/",
    "424242",
];

/// Held while a program starts: until it executes, it has a copy of every lock of this process.
static STARTING: RwLock<()> = RwLock::new(());

/// A guard against tests that hang, and no measure: it is far more than any of them takes.
const GUARD: Duration = Duration::from_secs(600);

/// A folder that is gone when the test is over.
pub struct Folder(tempfile::TempDir);

/// Makes of a test's own kind of folder, `struct Place(Folder)`, a [`Folder`].
macro_rules! folder_of {
    ($place:ident) => {
        impl std::ops::Deref for $place {
            type Target = Folder;

            fn deref(&self) -> &Folder {
                &self.0
            }
        }
    };
}
pub(crate) use folder_of;

/// A logistic regression on one covariate.
pub const LOGISTIC: &str = "\
record {
  int<lower=0, upper=1> y;
  real<lower=-1, upper=1> x;
}
parameters {
  real alpha;
  real<lower=-20> beta;
}
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 2);
  y ~ bernoulli_logit(alpha + beta * x);
}
";

/// Random numbers that are the same in every run: a linear congruential generator (Knuth).
pub struct Lcg(pub u64);

impl Lcg {
    fn next(&mut self) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0
    }

    /// Uniform on [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 33) % limit
    }
}

/// How a run of the program ended, and what it said.
pub struct Outcome {
    /// -1 where a signal ended it.
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.file(name), text).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.file(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub fn json(&self, name: &str) -> Value {
        json(&self.read(name))
    }

    /// Sorted names of what is in a folder of it.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.file(folder)).expect("a folder");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.expect("an entry").file_name();
        let names = entries.map(|entry| name(entry).to_string_lossy().into_owned());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    pub fn command(&self, arguments: &str) -> Command {
        self.command_with(&arguments.split_whitespace().collect::<Vec<_>>())
    }

    fn command_with(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dpm"));
        command.args(arguments).current_dir(self.path());
        command
    }

    /// Under a limit of the shell's: `-f 64` for files of 64 blocks of 512 bytes at most, as on a disk
    /// that is full then; `-v` for KiB of memory.
    #[cfg(unix)]
    pub fn limited(&self, limit: &str, arguments: &str) -> Command {
        self.after(&format!("trap '' XFSZ; ulimit {limit}"), arguments)
    }

    /// Killed by the system in the middle of the write that would make one of its files longer than so
    /// many blocks of 512 bytes: at the same moment of the run, however fast or slow it is.
    #[cfg(unix)]
    pub fn killed_at(&self, blocks: u64, arguments: &str) -> Command {
        self.after(&format!("ulimit -c 0; ulimit -f {blocks}"), arguments)
    }

    /// After these commands of the shell.
    #[cfg(unix)]
    fn after(&self, commands: &str, arguments: &str) -> Command {
        let mut limited = Command::new("sh");
        limited
            .args(["-c", &format!("{commands}; exec \"$0\" \"$@\"")])
            .arg(env!("CARGO_BIN_EXE_dpm"))
            .args(arguments.split_whitespace())
            .current_dir(self.path())
            // Some shells count blocks of 1024 bytes otherwise.
            .env("POSIXLY_CORRECT", "1");
        limited
    }

    pub fn dpm(&self, arguments: &str) -> Outcome {
        finish(start(&mut self.command(arguments)))
    }

    pub fn dpm_with(&self, arguments: &[&str]) -> Outcome {
        finish(start(&mut self.command_with(arguments)))
    }

    pub fn succeeds(&self, arguments: &str) -> Outcome {
        let outcome = self.dpm(arguments);
        assert_eq!(outcome.code, 0, "dpm {arguments}: {}", outcome.err);
        outcome
    }

    /// The command ends with this code and says these words.
    pub fn refuses(&self, arguments: &str, code: i32, words: &[&str]) -> Outcome {
        let outcome = self.dpm(arguments);
        assert_eq!(outcome.code, code, "dpm {arguments}: {}", outcome.err);
        for word in words {
            let said = &outcome.err;
            assert!(
                said.contains(word),
                "dpm {arguments}: no `{word}` in: {said}"
            );
        }
        outcome
    }
}

/// With its output kept for [`finish`].
pub fn start(command: &mut Command) -> Child {
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    spawn(command)
}

/// Starts a program. All of this process are started here, or a test that tries a lock of its own
/// may find it held by a program that is about to start ([`while_none_starts`]).
pub fn spawn(command: &mut Command) -> Child {
    let _starting = STARTING.read().unwrap_or_else(|e| e.into_inner());
    command
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"))
}

/// While no program is starting, and holds a copy of a lock that was released.
pub fn while_none_starts<T>(act: impl FnOnce() -> T) -> T {
    let _none = STARTING.write().unwrap_or_else(|e| e.into_inner());
    act()
}

/// Waits until something is so, with pauses, for as long as the machine needs.
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < GUARD,
            "a guard against hanging: {what} has not come in {GUARD:?}"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for its end.
pub fn finish(child: Child) -> Outcome {
    let output = child.wait_with_output().expect("dpm ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    checked(Outcome {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    })
}

/// It said nothing that is never said.
fn checked(outcome: Outcome) -> Outcome {
    let said = format!("{}{}", outcome.out, outcome.err);
    for word in NEVER_SAID {
        assert!(!said.contains(word), "{said}");
    }
    outcome
}

/// A moment of a run, at which a test stops it. None is found with a clock, so each comes however
/// fast or slow the machine is.
#[derive(Clone, Copy, Debug)]
pub enum Moment {
    /// The program has just started.
    Begun,
    /// Its state is on the disk, and it is about to be charged.
    Saved,
    /// The ledger `l` has so many entries more than it had: one as soon as the charge is written, two
    /// when the end is too, and the run is about to be published.
    Entries(usize),
    /// So many lines of `--progress json` have come: of rounds, and of hundredths of the iterations.
    Line(u64),
}

impl Moment {
    /// Any, of a run that writes so many lines.
    pub fn any(random: &mut Lcg, lines: u64) -> Moment {
        match (8.0 * random.uniform()) as u32 {
            0 => Moment::Begun,
            1 => Moment::Saved,
            2 | 3 => Moment::Entries(1),
            4 => Moment::Entries(2),
            _ => Moment::Line(1 + (random.uniform() * lines as f64) as u64),
        }
    }
}

/// Lines of a ledger.
pub fn entries(folder: &Folder) -> usize {
    let ledger = fs::read(folder.file("l")).unwrap_or_default();
    ledger.iter().filter(|&&byte| byte == b'\n').count()
}

/// A run that a test stops at some moment. Its standard output is not kept.
pub struct Watched {
    child: Child,
    err: BufReader<Box<dyn Read>>,
    said: String,
}

/// What fills up a standard error: a line, as long as one of progress and written in as many pieces.
#[cfg(unix)]
const FILLING: [&[u8]; 2] = [&[b'.'; 69], b"\n"];

impl Watched {
    pub fn start(command: &mut Command) -> Watched {
        let mut child = spawn(command.stdout(Stdio::null()).stderr(Stdio::piped()));
        let err = child.stderr.take().expect("a pipe");
        Watched::new(child, Box::new(err))
    }

    /// On a standard error that has room for so many lines of progress: a run that has written them
    /// waits in the middle of its next one until its end is asked for. So with `--progress json`,
    /// which writes a line for each hundredth, it cannot be over before, however long the test takes.
    #[cfg(unix)]
    pub fn start_with_room(command: &mut Command, lines: usize) -> Watched {
        use std::io::{ErrorKind, Write};
        use std::os::fd::OwnedFd;
        use std::os::unix::net::UnixStream;

        let (mut ours, mut theirs) = UnixStream::pair().expect("sockets");
        theirs.set_nonblocking(true).expect("a socket");
        for piece in FILLING.iter().cycle() {
            match theirs.write(piece) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                written => assert!(written.expect("a socket") > 0),
            }
        }
        theirs.set_nonblocking(false).expect("a socket");
        let mut room = vec![0; lines * FILLING.concat().len()];
        ours.read_exact(&mut room).expect("more than the room");
        let command = command.stdout(Stdio::null()).stderr(OwnedFd::from(theirs));
        let child = spawn(command);
        // The end is seen when nobody else holds it.
        command.stderr(Stdio::null());
        Watched::new(child, Box::new(ours))
    }

    fn new(child: Child, err: Box<dyn Read>) -> Watched {
        Watched {
            child,
            err: BufReader::new(err),
            said: String::new(),
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn is_over(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    /// Waits until that moment of a run in the folder `out`, or until its end. `entries`: those of the
    /// ledger before.
    pub fn wait_for(&mut self, moment: Moment, folder: &Folder, out: &str, entries: usize) {
        let what = format!("{moment:?} of {out}");
        match moment {
            Moment::Begun => {}
            Moment::Saved => {
                let state = folder.file(&format!("{out}/unfinished/run.json"));
                wait_until(&what, || state.exists() || self.is_over());
            }
            Moment::Entries(more) => wait_until(&what, || {
                self::entries(folder) >= entries + more || self.is_over()
            }),
            Moment::Line(number) => {
                for _ in 0..number {
                    if self.err.read_line(&mut self.said).expect("UTF-8") == 0 {
                        break;
                    }
                }
            }
        }
    }

    pub fn kill(mut self) -> Outcome {
        self.child.kill().expect("killed, or over");
        self.finish()
    }

    /// Waits for its end. What it said is without the lines of progress.
    pub fn finish(mut self) -> Outcome {
        self.err.read_to_string(&mut self.said).expect("UTF-8");
        let status = self.child.wait().expect("a child");
        let lines = self.said.lines().map(|line| line.trim_start_matches('.'));
        let lines = lines.filter(|line| !line.is_empty() && !line.starts_with("{\"stage\""));
        checked(Outcome {
            code: status.code().unwrap_or(-1),
            out: String::new(),
            err: lines.flat_map(|line| [line, "\n"]).collect(),
        })
    }
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// A text holds these words.
pub fn says(text: &str, words: &str) {
    assert!(text.contains(words), "no `{words}` in: {text}");
}
