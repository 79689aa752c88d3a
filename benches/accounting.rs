//! 200 releases of different noise, ten times each, composed by the `pld` accountant and,
//! in the same run, by dp_accounting from PyPI.
//!
//! Run with `cargo bench --bench accounting`. `DPM_PYTHON` names the Python to use
//! (`python3` unless set); without it or without the package (`pip install
//! dp-accounting==0.6.0`) the comparison is left out, and the output says so. Times are CPU
//! seconds of one thread, so the ratio means something on a busy machine.

use std::process::Command;
use std::time::Instant;

use dpm::accounting::{Accountant, Event, Guarantee, GuaranteeBounds, Query, Real, Relation};

const REPEATS: usize = 5;
const DELTA: &str = "1e-5";

/// dp_accounting on the same releases, on the grid `h` of the command line.
const SCRIPT: &str = r#"
import sys, time
from dp_accounting import dp_event
from dp_accounting.pld import pld_privacy_accountant
h, delta = float(sys.argv[1]), float(sys.argv[2])
events = []
for line in sys.stdin:
    rate, sigma, count = line.split()
    gaussian = dp_event.GaussianDpEvent(float(sigma))
    sampled = dp_event.PoissonSampledDpEvent(float(rate), gaussian)
    events.append(dp_event.SelfComposedDpEvent(sampled, int(count)))
start = time.process_time()
accountant = pld_privacy_accountant.PLDAccountant(value_discretization_interval=h)
for event in events:
    accountant.compose(event)
epsilon = accountant.get_epsilon(delta)
print(epsilon, time.process_time() - start)
"#;

fn main() {
    // `cargo test --benches` only wants to know that it compiles and starts.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    let changing: Vec<(f64, f64, u64)> = (1..=200)
        .map(|t| (0.01, 0.8 + 1.2 * f64::from(t) / 200.0, 10))
        .collect();
    let (ours, seconds) = timed(&changing);
    println!("200 sigmas x 10 releases, Poisson q = 0.01, add/remove, epsilon at delta {DELTA}");
    println!("  dpm            {} in {seconds:.3} s", shown(&ours));
    match peer(&changing, 1e-4) {
        Ok((epsilon, theirs)) => {
            println!("  dp_accounting  {epsilon:.6} (an upper bound) in {theirs:.3} s");
            println!("  dp_accounting/dpm {:.1}", theirs / seconds);
        }
        Err(reason) => println!("  dp_accounting  left out: {reason}"),
    }
    let (alike, seconds) = timed(&[(0.01, 1.0, 1000)]);
    println!("1000 releases, sigma 1, Poisson q = 0.01, add/remove, epsilon at delta {DELTA}");
    println!("  dpm            {} in {seconds:.3} s", shown(&alike));
}

fn shown(found: &Guarantee) -> String {
    match found.bounds {
        GuaranteeBounds::Epsilon {
            epsilon_lower: Some(lower),
            epsilon_upper,
        } => format!("{lower:.6} to {epsilon_upper:.6}"),
        _ => format!("{:.6}", found.epsilon),
    }
}

/// The answer, and the median time of an answer: the accountant has one thread.
fn timed(releases: &[(f64, f64, u64)]) -> (Guarantee, f64) {
    let relation = Relation::AddRemove;
    let parse = |(rate, sigma, count): &(f64, f64, u64)| {
        let text = format!("poisson:rate={rate},clip=1,sigma={sigma},count={count}");
        Event::parse(&text, relation).unwrap_or_else(|e| panic!("{e}"))
    };
    let events: Vec<Event> = releases.iter().map(parse).collect();
    let delta: Real = DELTA.parse().unwrap_or_else(|e| panic!("{e}"));
    let query = Query::Epsilon { delta };
    let answer = || {
        Accountant::Pld
            .account(&events, relation, query)
            .unwrap_or_else(|e| panic!("{e}"))
    };
    let found = answer();
    let mut seconds: Vec<f64> = (0..REPEATS)
        .map(|_| {
            let start = Instant::now();
            std::hint::black_box(answer());
            start.elapsed().as_secs_f64()
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    (found, seconds[REPEATS / 2])
}

/// Epsilon and CPU seconds of dp_accounting, or why there are none.
fn peer(releases: &[(f64, f64, u64)], h: f64) -> Result<(f64, f64), String> {
    let python = std::env::var("DPM_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let input: String = releases
        .iter()
        .map(|(rate, sigma, count)| format!("{rate} {sigma} {count}\n"))
        .collect();
    let mut child = Command::new(&python)
        .args(["-c", SCRIPT, &h.to_string(), DELTA])
        .env("OMP_NUM_THREADS", "1")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .map_err(|e| format!("cannot run `{python}`: {e}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended for want of the package no longer reads.
        let _ = std::io::Write::write_all(&mut stdin, input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|e| e.to_string())?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().last().unwrap_or("no message").to_owned();
        return Err(format!("{last} (pip install dp-accounting==0.6.0)"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(epsilon)), Some(Ok(seconds))) => Ok((epsilon, seconds)),
        _ => Err(format!("it printed `{}`", text.trim())),
    }
}
