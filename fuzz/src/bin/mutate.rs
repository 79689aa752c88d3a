//! The fuzz targets without libFuzzer: mutants of the repository's own programs
//! and tables, by a fixed random sequence; no coverage guides it.
//!
//! `mutate TARGET SECONDS [SEED]` runs one of parser, checker, formatter, editor, csv.
//! `mutate extremes` times each target on inputs made to be slow.
//!
//! A crash, or an input that takes more than a second, is written to
//! `fuzz/artifacts/TARGET/` and said; the exit code is then 1.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 5] = [
    ("parser", dpm_fuzz::parser),
    ("checker", dpm_fuzz::checker),
    ("formatter", dpm_fuzz::formatter),
    ("editor", dpm_fuzz::editor),
    ("csv", dpm_fuzz::csv),
];

/// No input under 100 kB may take longer.
const LIMIT: Duration = Duration::from_secs(1);

/// Whatever takes this long is taken for endless.
const ENDLESS: Duration = Duration::from_secs(30);

/// Mutants may not grow beyond this.
const LONGEST: usize = 100_000;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if words == ["extremes"] {
        return extremes();
    }
    let known = |name: &str| TARGETS.into_iter().find(|(target, _)| *target == name);
    let (Some((name, target)), Some(seconds)) = (
        words.first().and_then(|name| known(name)),
        words.get(1).and_then(|seconds| seconds.parse().ok()),
    ) else {
        eprintln!(
            "usage: mutate parser|checker|formatter|editor|csv SECONDS [SEED]\n       mutate extremes"
        );
        return ExitCode::from(2);
    };
    let seed = words.get(2).and_then(|seed| seed.parse().ok()).unwrap_or(1);
    fuzz(name, target, Duration::from_secs(seconds), seed)
}

fn fuzz(name: &'static str, target: Target, time: Duration, seed: u64) -> ExitCode {
    let corpus = corpus(name);
    let words: Vec<Vec<u8>> = corpus.iter().flat_map(|text| pieces(text)).collect();
    std::panic::set_hook(Box::new(|_| {}));
    let current = watch(name);
    let mut random = SplitMix(seed);
    let start = Instant::now();
    let (mut runs, mut found, mut slowest) = (0_u64, 0, Duration::ZERO);
    while start.elapsed() < time && found < 20 {
        let mutant = mutate(&corpus, &words, &mut random);
        *current.lock().expect("one writer") = Some((Instant::now(), mutant.clone()));
        let began = worked();
        let outcome = std::panic::catch_unwind(|| target(&mutant));
        let took = worked().saturating_sub(began);
        *current.lock().expect("one writer") = None;
        runs += 1;
        slowest = slowest.max(took);
        if outcome.is_err() || took > LIMIT {
            found += 1;
            let kind = if outcome.is_err() { "crash" } else { "slow" };
            println!("{kind}: {} ({took:?})", keep(name, kind, &mutant).display());
        }
    }
    println!(
        "{name}: {runs} inputs in {:?}, {found} found, slowest {slowest:?}",
        start.elapsed()
    );
    ExitCode::from(u8::from(found > 0))
}

/// Time for which this thread has had a processor, so that other work on the
/// machine does not count; where the system does not say, time that has passed.
fn worked() -> Duration {
    static START: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
    let said = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanoseconds = said.and_then(|said| said.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

/// Stops the program when an input does not end.
fn watch(name: &'static str) -> Arc<Mutex<Option<(Instant, Vec<u8>)>>> {
    let current = Arc::new(Mutex::new(None::<(Instant, Vec<u8>)>));
    let watched = Arc::clone(&current);
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let held = watched.lock().map(|held| held.clone()).unwrap_or_default();
            if let Some((since, input)) = held
                && since.elapsed() > ENDLESS
            {
                println!("endless: {}", keep(name, "endless", &input).display());
                std::process::exit(1);
            }
        }
    });
    current
}

fn keep(name: &str, kind: &str, input: &[u8]) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("artifacts")
        .join(name);
    let mut hash = SplitMix(input.len() as u64);
    for &byte in input {
        hash.0 = hash.0.wrapping_mul(31).wrapping_add(u64::from(byte));
    }
    let path = folder.join(format!("{kind}-{:016x}", hash.next()));
    fs::create_dir_all(&folder).expect("a folder for what is found");
    fs::write(&path, input).expect("a file for what is found");
    path
}

// ------------------------------------------------------------------ mutation

/// Programs of the repository, or tables.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let folders = [
        "tests/good",
        "tests/good/density",
        "tests/bad/syntax",
        "tests/bad/stan",
        "tests/bad/check",
        "tests/bad/bind",
        "models",
    ];
    for folder in folders {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        let mut paths: Vec<PathBuf> = entries.filter_map(|e| e.ok().map(|e| e.path())).collect();
        paths.sort();
        let wanted = |path: &&PathBuf| match name {
            "csv" => path.extension().is_some_and(|e| e == "csv" || e == "gz"),
            _ => path.extension().is_some_and(|e| e == "dpm"),
        };
        let texts = paths
            .iter()
            .filter(wanted)
            .filter_map(|path| fs::read(path).ok());
        found.extend(texts.filter(|text| name != "csv" || text.len() < LONGEST));
    }
    if name == "csv" {
        for table in [
            "x,y,v.1,v.2\n1,0,2,3\n",
            "f,x,y,v.1,v.2\nnorth,1,0,2,3\n\"south, east\",1,0,2,3\n",
            "y,v.2,v.1,x,extra\r\n1,\"1\",NA,-5e3,text\r\n0,nan,,1,\"a \"\"b\"\"\"\r\n",
            "\u{FEFF}x,y,v.1,v.2\n\"1\n\",1,2,3\n\n1e400,0,0x1,inf\n",
        ] {
            found.push([&[0], table.as_bytes()].concat());
            found.push([&[3], table.as_bytes()].concat());
            found.push([&[8], table.as_bytes()].concat());
            found.push([&[16 + 32], table.as_bytes()].concat());
            found.push([&[64 + 2], table.as_bytes()].concat());
            // A line to go after the header.
            found.push(
                [
                    b"\x021,\"0,2,3\n",
                    table.trim_start_matches('\u{FEFF}').as_bytes(),
                ]
                .concat(),
            );
        }
    }
    assert!(!found.is_empty(), "the corpus is beside this crate");
    found
}

/// Runs of letters, runs of blanks, single marks.
fn pieces(text: &[u8]) -> Vec<Vec<u8>> {
    let kind = |byte: u8| match byte {
        _ if byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 128 => 0,
        _ if byte.is_ascii_whitespace() => 1,
        _ => 2,
    };
    let same = |a: &u8, b: &u8| kind(*a) == kind(*b) && kind(*a) != 2;
    text.chunk_by(same).map(<[u8]>::to_vec).collect()
}

const STRANGE: [&str; 24] = [
    "\"",
    "/*",
    "*/",
    "//",
    "}",
    "{",
    ")",
    "(",
    "[",
    "]",
    ";",
    "#",
    "\t",
    "\u{0}",
    "é",
    "\u{FEFF}",
    "\r",
    "\n",
    "<",
    ">",
    "|",
    ".",
    "9223372036854775808",
    "1e-400",
];

fn mutate(corpus: &[Vec<u8>], words: &[Vec<u8>], random: &mut SplitMix) -> Vec<u8> {
    let base = &corpus[random.below(corpus.len())];
    if random.below(8) == 0 {
        return bytes(base.clone(), random);
    }
    let mut mutant = pieces(base);
    for _ in 0..1 << random.below(5) {
        let length = mutant.len();
        if length == 0 {
            break;
        }
        let (a, b) = (random.below(length), random.below(length));
        let word = words[random.below(words.len())].clone();
        match random.below(12) {
            0 => drop(mutant.remove(a)),
            1 => mutant.swap(a, b),
            2 => mutant[a] = word,
            3 => mutant.insert(a, word),
            4 => mutant.insert(a, STRANGE[random.below(STRANGE.len())].into()),
            5 => mutant.truncate(a),
            6 => drop(mutant.drain(a.min(b)..a.max(b).min(a.min(b) + 40))),
            // A stretch again, once or many times.
            7 => {
                let end = a + 1 + random.below((length - a).min(30));
                let stretch = mutant[a..end].to_vec();
                let size: usize = stretch.iter().map(Vec::len).sum();
                let most = (LONGEST / 4) / size.max(1);
                for _ in 0..(1 << random.below(9)).min(most) {
                    mutant.splice(b..b, stretch.iter().cloned());
                }
            }
            // A stretch of another program.
            8 => {
                let other = pieces(&corpus[random.below(corpus.len())]);
                let start = random.below(other.len());
                let end = start + random.below((other.len() - start).min(60) + 1);
                mutant.splice(a..a, other[start..end].iter().cloned());
            }
            9 => mutant.insert(a, format!("/* {a} */").into()),
            10 => mutant.insert(a, format!("// {a}\n").into()),
            _ => mutant.insert(a, if random.below(2) == 0 { "\n" } else { "\n\n" }.into()),
        }
    }
    let mut mutant = mutant.concat();
    mutant.truncate(LONGEST);
    mutant
}

fn bytes(mut mutant: Vec<u8>, random: &mut SplitMix) -> Vec<u8> {
    for _ in 0..1 << random.below(6) {
        let at = random.below(mutant.len());
        let byte = random.next().to_le_bytes()[0];
        match random.below(4) {
            _ if mutant.is_empty() => mutant.push(byte),
            0 => drop(mutant.remove(at)),
            1 => mutant.insert(at, byte),
            2 => mutant[at] ^= 1 << (byte % 8),
            _ => mutant[at] = byte,
        }
    }
    mutant
}

/// Steele, Lea and Flood's SplitMix64: the same mutants on every machine.
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

// ------------------------------------------------------------------ extremes

fn extremes() -> ExitCode {
    let mut slow = 0;
    for (what, text) in extreme_programs() {
        for (name, target) in &TARGETS[..3] {
            let began = worked();
            let outcome = std::panic::catch_unwind(|| target(text.as_bytes()));
            let took = worked().saturating_sub(began);
            // The formatter's target parses five times and formats twice.
            let limit = if *name == "formatter" {
                LIMIT * 5
            } else {
                LIMIT
            };
            let too_slow = took > limit && text.len() <= LONGEST + 300;
            if outcome.is_err() || too_slow || took > LIMIT / 10 {
                let verdict = match (outcome.is_err(), too_slow) {
                    (true, _) => "CRASH",
                    (false, true) => "SLOW",
                    (false, false) => "",
                };
                println!(
                    "{took:>12.3?} {name:<9} {:>9} bytes  {what} {verdict}",
                    text.len()
                );
            }
            slow += u32::from(outcome.is_err() || too_slow);
        }
    }
    println!(
        "{slow} too slow or crashed; those under {:?} are not listed",
        LIMIT / 10
    );
    ExitCode::from(u8::from(slow > 0))
}

fn extreme_programs() -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut add = |what: &str, text: String| found.push((what.to_owned(), text));
    let fill = |unit: &str, size: usize| unit.repeat(size / unit.len());
    for size in [100_000, 900_000, 10_000_000] {
        for unit in [
            "(",
            "{",
            "[",
            "!",
            "-",
            "+",
            ")",
            "}",
            "]",
            "<",
            ">",
            ";",
            ",",
            ":",
            "?",
            "'",
            "\"",
            "/*",
            "//\n",
            "~",
            "=",
            ".",
            "1",
            "a",
            "_",
            "#",
            "\\",
            "|",
            "@",
            "é",
            "\u{0}",
            "\n",
            "1 ",
            "a ",
            "a.",
            "model{",
            "model ",
            "if(",
            "if(a)",
            "else ",
            "for(",
            "real ",
            "real x;",
            "real<lower=",
            "x = ;\n",
            "x = 1\n",
            "x[",
            "f(",
            "({[",
            "a?",
            "a:",
            "({",
            "data{",
            "x;",
            "print(",
            "\"a\" ",
            "functions{",
            "vector[",
            "array[",
            "y~",
            "T[",
            "target+=",
            "/**/",
            "0x ",
            "1e",
            "2y ",
        ] {
            add(&format!("{unit:?}..."), fill(unit, size));
            if size == 100_000 {
                add(
                    &format!("model {{ {unit:?}..."),
                    format!("model {{ {}", fill(unit, size)),
                );
                add(
                    &format!("model {{ x = {unit:?}..."),
                    format!("model {{ x = {}; }}", fill(unit, size)),
                );
                add(
                    &format!("model {{ {unit:?}... }}"),
                    format!("model {{ {} }}", fill(unit, size)),
                );
            }
        }
        let many = |unit: &dyn Fn(usize) -> String| {
            let mut text = String::new();
            for k in 0.. {
                text += &unit(k);
                if text.len() >= size - 300 {
                    return text;
                }
            }
            text
        };
        let half = |unit: &dyn Fn(usize) -> String| {
            let text = &many(unit)[..size / 2];
            text.rsplit_once(';').map_or("", |(a, _)| a).to_owned() + ";"
        };
        let model = |body: String| format!("model {{ {body} }}");
        let parameters = |declared: String| format!("parameters {{ {declared} }} model {{ }}");
        let of_a = |body: String| format!("parameters {{ real a; }} model {{ {body} }}");
        let bodies: Vec<(&str, String)> = vec![
            ("declarations", parameters(many(&|k| format!("real a{k};")))),
            (
                "declarations by comma",
                format!(
                    "parameters {{ real b{}; }} model {{ }}",
                    many(&|k| format!(",a{k}"))
                ),
            ),
            ("locals", model(many(&|k| format!("real a{k}=1;")))),
            ("one name twice", model(many(&|_| "real a;".into()))),
            ("unknown names", model(many(&|k| format!("x{k}=y{k};\n")))),
            (
                "unknown names of one line",
                model(many(&|k| format!("x{k}=y{k};"))),
            ),
            (
                "near names",
                format!(
                    "model {{ {} real s = 0; {} }}",
                    half(&|k| format!("real alpha_{k}=1;")),
                    half(&|k| format!("s = alphq_{k};"))
                ),
            ),
            (
                "long names",
                format!(
                    "model {{ {} real s = 0; {} }}",
                    half(&|k| format!("real {}{k}=1;", "a".repeat(1000))),
                    half(&|k| format!("s={}{k};", "ab".repeat(500)))
                ),
            ),
            (
                "one long name unknown",
                format!("model {{ real s = {}; }}", "a".repeat(size - 40)),
            ),
            (
                "two long names",
                format!(
                    "model {{ real {}b; real s = {}c; }}",
                    "a".repeat(size / 2 - 40),
                    "a".repeat(size / 2 - 40)
                ),
            ),
            (
                "functions",
                format!(
                    "functions {{ {} }} parameters {{ }} model {{ }}",
                    many(&|k| format!("real f{k}(real x){{return x;}}"))
                ),
            ),
            (
                "functions, each calling the next",
                format!(
                    "functions {{ {} real z() {{ return 1; }} }} parameters {{ }} model {{ target += f0(1); }}",
                    many(&|k| format!("real f{k}(real x){{return f{}(x);}}", k + 1))
                ),
            ),
            (
                "functions, each calling the next twice",
                format!(
                    "functions {{ {} real f60(real x) {{ return x; }} }} parameters {{ }} model {{ target += f0(1); }}",
                    (0..60)
                        .map(|k| format!(
                            "real f{k}(real x) {{ return f{n}(x) + f{n}(x); }}\n",
                            n = k + 1
                        ))
                        .collect::<String>()
                ),
            ),
            (
                "arguments",
                format!("model {{ target += f(1{}); }}", fill(",1", size - 40)),
            ),
            (
                "arguments of normal",
                format!(
                    "parameters {{ real a; }} model {{ a ~ normal(1{}); }}",
                    fill(",1", size - 80)
                ),
            ),
            (
                "array literal",
                format!(
                    "transformed constants {{ array[3] int a = {{1{}}}; }}",
                    fill(",1", size - 80)
                ),
            ),
            (
                "matrix literal",
                format!(
                    "transformed constants {{ matrix[3,3] a = [[1]{}]; }}",
                    fill(",[1,2]", size - 80)
                ),
            ),
            (
                "indices",
                format!(
                    "parameters {{ vector[3] a; }} model {{ target += a[1{}]; }}",
                    fill(",1", size - 80)
                ),
            ),
            (
                "sizes",
                format!(
                    "parameters {{ array[1{}] real a; }} model {{ }}",
                    fill(",1", size - 80)
                ),
            ),
            (
                "levels",
                format!(
                    "record {{ factor(\"a\"{}) x; }} parameters {{ }} model {{ }}",
                    many(&|k| format!(",\"{k}\""))
                ),
            ),
            (
                "constraints",
                format!(
                    "parameters {{ real<lower=1{}> x; }} model {{ }}",
                    fill(",upper=1", size - 80)
                ),
            ),
            (
                "printed",
                format!("model {{ print(1{}); }}", fill(",\"a\"", size - 80)),
            ),
            (
                "sums of 300",
                of_a(fill(&format!("target += a{};\n", "+a".repeat(150)), size)),
            ),
            (
                "stages from below",
                format!(
                    "parameters {{ real p; }} model {{ {} for (i in 1:2) {{ {} }} }}",
                    half(&|k| format!("real a{k}=1;")) + " real z = 0;",
                    {
                        let count = size / 36;
                        (0..count)
                            .map(|k| format!("a{k}=a{};", k + 1))
                            .collect::<String>()
                            + &format!("a{count}=p;")
                    }
                ),
            ),
            (
                "stages from below, branches",
                format!(
                    "record {{ real y; }} parameters {{ real p; }} model {{ {} while (0) {{ {} }} }}",
                    (0..size / 40)
                        .map(|k| format!("real a{k}=1;"))
                        .collect::<String>(),
                    {
                        let count = size / 40 - 1;
                        (0..count)
                            .map(|k| format!("a{k}=a{};", k + 1))
                            .collect::<String>()
                            + &format!("a{count}=y*p;")
                    }
                ),
            ),
            (
                "else if",
                format!("model {{ if (1) ; {} }}", fill("else if (1) ; ", size - 40)),
            ),
            ("blocks", fill("model { } ", size)),
            ("foreign blocks", fill("data { } ", size)),
            ("comments", fill("// a\n", size)),
            (
                "trailing comments",
                format!("model {{\n{} }}", fill("a=1; // a\n", size)),
            ),
            (
                "block comments inside",
                format!("model {{ x = {} 1; }}", fill("/* a */", size)),
            ),
            (
                "line comments inside",
                format!("model {{ x = {} 1; }}", fill("// a\n", size)),
            ),
            (
                "deep and long",
                model(fill(
                    &format!("x = {}1{};\n", "(".repeat(90), ")".repeat(90)),
                    size,
                )),
            ),
            (
                "deep brackets again and again",
                model(fill(
                    &format!("x = {}1{};\n", "a[".repeat(90), "]".repeat(90)),
                    size,
                )),
            ),
            (
                "deep ternaries",
                model(fill(&format!("x = {}1;\n", "1?2:".repeat(80)), size)),
            ),
            (
                "deep bodies",
                model(fill(&format!("{};\n", "if(1)".repeat(80)), size)),
            ),
            (
                "deep scopes",
                model(fill(
                    &format!("{}{}\n", "{".repeat(90), "}".repeat(90)),
                    size,
                )),
            ),
            ("missing semicolons", model(fill("x = 1\n", size))),
            ("missing brackets", model(fill("x = (1;\n", size))),
            ("unended texts", model(fill("print(\"a);\n", size))),
            ("wrong types", model(fill("rael x;\n", size))),
            ("bad statements", model(fill("x + 1;\n", size))),
            ("arrows", model(fill("x <- 1;\n", size))),
            (
                "powers",
                model(fill(&format!("x = a{};\n", "^a".repeat(90)), size)),
            ),
            (
                "signs",
                model(fill(&format!("x = {}a;\n", "-".repeat(300)), size)),
            ),
            (
                "transposes",
                model(fill(&format!("x = a{};\n", "'".repeat(300)), size)),
            ),
            (
                "unused parameters",
                parameters(many(&|k| format!("real<lower=0> a{k};\n"))),
            ),
            ("samplings", of_a(fill("a ~ normal(0, 1);\n", size))),
            (
                "unknown distributions",
                of_a(many(&|k| format!("a ~ norml{k}(0, 1);\n"))),
            ),
            (
                "unknown functions",
                of_a(many(&|k| format!("target += exq{k}(0);\n"))),
            ),
        ];
        for (what, text) in bodies {
            add(what, text);
        }
    }
    found
}
