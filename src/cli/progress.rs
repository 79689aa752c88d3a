//! A bar per chain, with the epsilon spent so far.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Common;
use crate::accounting::{Meter, Query, Real, Relation, account};
use crate::sampler::{Draw, Observer, Phase};

/// What the spent share of a plan amounts to.
pub(super) struct Spending<'a> {
    pub meter: &'a Meter,
    pub relation: Relation,
    pub delta: Real,
}

impl Spending<'_> {
    /// Upper bound on the epsilon of what has been released so far.
    pub fn epsilon(&self) -> Option<f64> {
        let events = self.meter.spent();
        if events.is_empty() {
            return Some(0.0);
        }
        let query = Query::Epsilon { delta: self.delta };
        account(&events, self.relation, query)
            .ok()
            .map(|g| g.epsilon)
    }
}

/// Bars on standard error, when it is a terminal.
pub(super) struct Progress<'a> {
    bars: Vec<Bar>,
    spending: Option<Spending<'a>>,
    /// The epsilon last worked out, and when to do so again.
    refreshed: Mutex<(Instant, String)>,
    _screen: MultiProgress,
}

struct Bar {
    bar: ProgressBar,
    accept: Mutex<(f64, u64)>,
}

impl<'a> Progress<'a> {
    pub fn new(
        chains: usize,
        iterations: u64,
        spending: Option<Spending<'a>>,
        common: &Common,
    ) -> Self {
        let screen = MultiProgress::with_draw_target(if common.quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(5)
        });
        let style = ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len} {msg} eta {eta}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> ");
        let bars = (0..chains)
            .map(|chain| {
                let bar = screen.add(ProgressBar::new(iterations));
                bar.set_style(style.clone());
                bar.set_prefix(format!("chain {}", chain + 1));
                Bar {
                    bar,
                    accept: Mutex::new((0.0, 0)),
                }
            })
            .collect();
        Progress {
            bars,
            spending,
            refreshed: Mutex::new((Instant::now(), String::new())),
            _screen: screen,
        }
    }

    /// Takes the bars off the screen.
    pub fn clear(&self) {
        for bar in &self.bars {
            bar.bar.finish_and_clear();
        }
    }

    fn spent(&self) -> String {
        let Some(spending) = &self.spending else {
            return String::new();
        };
        let Ok(mut refreshed) = self.refreshed.lock() else {
            return String::new();
        };
        if refreshed.1.is_empty() || Instant::now() > refreshed.0 {
            let started = Instant::now();
            let epsilon = spending.epsilon().unwrap_or(f64::NAN);
            // A millisecond for releases of all rows, up to a second for batches.
            let pause = Duration::from_millis(500).max(20 * started.elapsed());
            *refreshed = (Instant::now() + pause, format!("epsilon {epsilon:.3}"));
        }
        refreshed.1.clone()
    }
}

impl Observer for Progress<'_> {
    fn iteration(&self, chain: usize, iteration: u64, draw: &Draw) {
        let bar = &self.bars[chain];
        let Ok(mut accept) = bar.accept.lock() else {
            return;
        };
        accept.0 += draw.accept_stat;
        accept.1 += 1;
        bar.bar.set_position(iteration + 1);
        if bar.bar.is_hidden() {
            return;
        }
        let phase = match draw.phase {
            Phase::Warmup => "warm-up ",
            Phase::Sampling => "sampling",
        };
        bar.bar.set_message(format!(
            "{phase} accept {:.2} {}",
            accept.0 / accept.1 as f64,
            self.spent()
        ));
    }
}
