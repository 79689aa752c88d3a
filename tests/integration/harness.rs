//! The program as a user runs it: in a folder of its own, with what it says.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

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
    /// Uniform on [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
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
        let mut limited = Command::new("sh");
        limited
            .args([
                "-c",
                &format!("trap '' XFSZ; ulimit {limit}; exec \"$0\" \"$@\""),
            ])
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
    command.spawn().expect("dpm starts")
}

/// Waits for its end.
pub fn finish(child: Child) -> Outcome {
    let output = child.wait_with_output().expect("dpm ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let outcome = Outcome {
        code: output.status.code().unwrap_or(-1),
        out: text(output.stdout),
        err: text(output.stderr),
    };
    let said = format!("{}{}", outcome.out, outcome.err);
    for word in NEVER_SAID {
        assert!(!said.contains(word), "{said}");
    }
    outcome
}

pub fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}: {text}"))
}
