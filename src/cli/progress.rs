//! A bar per chain, with the epsilon spent so far; and one for a number of tables or settings. For
//! programs, lines of JSON.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use super::interrupt::Interrupt;
use super::{Common, headings, is_dumb, say_always};
use crate::accounting::{Meter, Query, Real, Relation, account};
use crate::sampler::{Beginning, Draw, Observer, Phase};

/// The epsilon spent so far of a plan.
pub(super) struct Spending<'a> {
    pub meter: &'a Meter,
    pub relation: Relation,
    /// The budget of the run.
    pub total: f64,
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

/// How often a line is written where standard error is no terminal.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, clap::Args)]
pub(super) struct ProgressFlag {
    /// `auto`: a bar, or a line now and then; `json`: a line of JSON on standard error for each hundredth of a stage, even with --quiet
    #[arg(
        long,
        value_enum,
        default_value_t = Form::Auto,
        value_name = "FORM",
        help_heading = headings::OUTPUT,
        hide_short_help = true
    )]
    progress: Form,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Form {
    Auto,
    Json,
}

/// Who wants to know how far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Audience {
    Nobody,
    People,
    Programs,
}

impl ProgressFlag {
    pub fn audience(self, common: &Common) -> Audience {
        match self.progress {
            Form::Json => Audience::Programs,
            Form::Auto if common.quiet => Audience::Nobody,
            Form::Auto => Audience::People,
        }
    }
}

/// How far a stage is, for programs.
#[derive(Debug, Clone, Copy, Serialize)]
struct Step {
    stage: &'static str,
    done: u64,
    total: u64,
    unit: &'static str,
}

impl Step {
    fn learning(done: u64, total: u64) -> Step {
        Step {
            stage: "learning",
            done,
            total,
            unit: "rounds",
        }
    }

    /// Whether there is a line about this step of a stage that begins after `before` steps. That
    /// depends on counts alone, so that the lines do not tell how long a step takes.
    fn is_told(&self, before: u64) -> bool {
        let hundredth = self.total.div_ceil(100).max(1);
        self.done == before + 1 || self.done == self.total || self.done.is_multiple_of(hundredth)
    }

    fn tell(&self, before: u64) {
        if self.is_told(before)
            && let Ok(line) = serde_json::to_string(self)
        {
            say_always(line);
        }
    }
}

/// Bars on standard error, when it is a terminal; otherwise a line now and then, or JSON.
pub(super) struct Progress<'a> {
    audience: Audience,
    bars: Vec<Bar>,
    iterations: u64,
    spending: Option<Spending<'a>>,
    /// The epsilon last worked out, and when to do so again.
    refreshed: Mutex<(Instant, String)>,
    interrupt: Interrupt,
    /// When the next line is due; of a terminal, or where nothing is to be said, never.
    due: Option<Mutex<Instant>>,
    begun: Instant,
    /// When the chains began, and their bars were shown: at once, unless something is learnt before.
    chains_begun: OnceLock<Instant>,
    learning: OnceLock<ProgressBar>,
    /// Held while a line for programs is written, so that they are in order.
    telling: Mutex<()>,
    style: ProgressStyle,
    screen: MultiProgress,
}

struct Bar {
    bar: ProgressBar,
    accept: Mutex<(f64, u64)>,
    /// Iterations that were over before.
    first: u64,
    done: AtomicU64,
}

fn draw_target(audience: Audience) -> ProgressDrawTarget {
    if audience == Audience::People {
        ProgressDrawTarget::stderr_with_hz(5)
    } else {
        ProgressDrawTarget::hidden()
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len} {msg} eta {eta}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// Whether lines are written instead of bars: a terminal that cannot overwrite gets them too.
fn lines(audience: Audience) -> bool {
    let bars_show = std::io::stderr().is_terminal() && !is_dumb(std::env::var_os("TERM"));
    audience == Audience::People && !bars_show
}

/// How many of a number of tables, or of settings, are over.
pub(super) struct CountProgress {
    audience: Audience,
    bar: ProgressBar,
    unit: &'static str,
    all: usize,
    begun: Instant,
    due: Option<Mutex<Instant>>,
}

impl CountProgress {
    pub fn new(unit: &'static str, all: usize, audience: Audience) -> CountProgress {
        let bar = ProgressBar::with_draw_target(Some(all as u64), draw_target(audience));
        bar.set_style(style());
        bar.set_prefix(unit);
        let begun = Instant::now();
        CountProgress {
            audience,
            bar,
            unit,
            all,
            begun,
            due: lines(audience).then(|| Mutex::new(begun + BETWEEN_LINES)),
        }
    }

    /// `note`: what else is known by now, for people.
    pub fn done(&self, done: usize, note: &str) {
        self.bar.set_position(done as u64);
        self.bar.set_message(note.to_string());
        if self.audience == Audience::Programs {
            let step = Step {
                stage: self.unit,
                done: done as u64,
                total: self.all as u64,
                unit: self.unit,
            };
            step.tell(0);
        }
        if due(self.due.as_ref()).is_none() {
            return;
        }
        let each = self.begun.elapsed().as_secs_f64() / done.max(1) as f64;
        let left = Duration::from_secs_f64((each * (self.all - done) as f64).min(1e12));
        let (all, unit) = (self.all, self.unit);
        let comma = if note.is_empty() { "" } else { ", " };
        say_always(format!(
            "{done} of {all} {unit}{comma}{note}, about {} left",
            HumanDuration(left)
        ));
    }
}

impl Drop for CountProgress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The time, where a line is due: none is until the next one.
fn due(due: Option<&Mutex<Instant>>) -> Option<Instant> {
    let mut due = due?.try_lock().ok()?;
    let now = Instant::now();
    if now < *due {
        return None;
    }
    *due = now + BETWEEN_LINES;
    Some(now)
}

impl<'a> Progress<'a> {
    /// `done`: iterations of each chain that were over before, none of a new run. `learns`: whether
    /// something is learnt before the chains.
    pub fn new(
        (chains, learns): (usize, bool),
        iterations: u64,
        done: &[u64],
        spending: Option<Spending<'a>>,
        audience: Audience,
    ) -> Self {
        let screen = MultiProgress::with_draw_target(draw_target(audience));
        let style = style();
        let bars: Vec<Bar> = (0..chains)
            .map(|chain| {
                let hidden = ProgressDrawTarget::hidden();
                let bar = ProgressBar::with_draw_target(Some(iterations), hidden);
                let first = done.get(chain).copied().unwrap_or(0);
                bar.set_style(style.clone());
                bar.set_prefix(format!("chain {}", chain + 1));
                bar.set_position(first);
                Bar {
                    bar,
                    accept: Mutex::new((0.0, 0)),
                    first,
                    done: AtomicU64::new(first),
                }
            })
            .collect();
        let begun = Instant::now();
        let progress = Progress {
            audience,
            bars,
            iterations,
            spending,
            refreshed: Mutex::new((begun, String::new())),
            interrupt: Interrupt::watch(),
            due: lines(audience).then(|| Mutex::new(begun + BETWEEN_LINES)),
            begun,
            chains_begun: OnceLock::new(),
            learning: OnceLock::new(),
            telling: Mutex::new(()),
            style,
            screen,
        };
        if !learns {
            progress.show_chains();
        }
        progress
    }

    /// The chains begin: only now do their bars, and the time that is left, mean something.
    fn show_chains(&self) {
        self.chains_begun.get_or_init(|| {
            for Bar { bar, .. } in &self.bars {
                bar.reset_eta();
                self.screen.add(bar.clone()).tick();
            }
            Instant::now()
        });
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
            let text = format!("epsilon {epsilon:.2} of {}", spending.total);
            *refreshed = (Instant::now() + pause, text);
        }
        refreshed.1.clone()
    }

    /// Iterations of all chains that are over.
    fn done(&self) -> u64 {
        let each = self.bars.iter();
        each.map(|bar| bar.done.load(Ordering::Relaxed)).sum()
    }

    /// Of these, those that were over when this process began.
    fn before(&self) -> u64 {
        self.bars.iter().map(|bar| bar.first).sum()
    }

    /// Notes that a chain has come so far.
    fn count(&self, chain: usize, iterations: u64) {
        let bar = &self.bars[chain];
        if self.audience != Audience::Programs {
            bar.done.store(iterations, Ordering::Relaxed);
            return;
        }
        let Ok(_telling) = self.telling.lock() else {
            return;
        };
        bar.done.store(iterations, Ordering::Relaxed);
        let step = Step {
            stage: "sampling",
            done: self.done(),
            total: self.iterations * self.bars.len() as u64,
            unit: "iterations",
        };
        step.tell(self.before());
    }

    /// A line about all chains, where one is due.
    fn line(&self) -> Option<String> {
        let now = due(self.due.as_ref())?;
        let accept = self.bars.iter().filter_map(|bar| {
            let accept = bar.accept.try_lock().ok()?;
            (accept.1 > 0).then(|| accept.0 / accept.1 as f64)
        });
        let accept: Vec<f64> = accept.collect();
        Some(line(&Standing {
            done: self.done(),
            before: self.before(),
            all: self.iterations * self.bars.len() as u64,
            accept: accept.iter().sum::<f64>() / accept.len().max(1) as f64,
            spent: &self.spent(),
            elapsed: now - *self.chains_begun.get().unwrap_or(&self.begun),
        }))
    }
}

/// Takes the bars off the screen.
impl Drop for Progress<'_> {
    fn drop(&mut self) {
        for bar in &self.bars {
            bar.bar.finish_and_clear();
        }
    }
}

/// How far a run has come, all chains together.
struct Standing<'a> {
    done: u64,
    /// Iterations that were over when this process began.
    before: u64,
    all: u64,
    accept: f64,
    spent: &'a str,
    elapsed: Duration,
}

fn line(standing: &Standing) -> String {
    let Standing {
        done, before, all, ..
    } = *standing;
    let mut text = format!("{done} of {all} iterations, accept {:.2}", standing.accept);
    if !standing.spent.is_empty() {
        text.push_str(", ");
        text.push_str(standing.spent);
    }
    if done > before {
        let each = standing.elapsed.as_secs_f64() / (done - before) as f64;
        let left = Duration::from_secs_f64((each * all.saturating_sub(done) as f64).min(1e12));
        text.push_str(&format!(", about {} left", HumanDuration(left)));
    }
    text
}

impl Observer for Progress<'_> {
    fn iteration(&self, chain: usize, iteration: u64, draw: &Draw) {
        let bar = &self.bars[chain];
        self.count(chain, iteration + 1);
        let mean = {
            let Ok(mut accept) = bar.accept.lock() else {
                return;
            };
            accept.0 += draw.accept_stat;
            accept.1 += 1;
            accept.0 / accept.1 as f64
        };
        if let Some(line) = self.line() {
            say_always(line);
        }
        bar.bar.set_position(iteration + 1);
        if bar.bar.is_hidden() {
            return;
        }
        let phase = match draw.phase {
            Phase::Warmup => "warm-up ",
            Phase::Sampling => "sampling",
        };
        bar.bar
            .set_message(format!("{phase} accept {mean:.2} {}", self.spent()));
    }

    fn learning(&self, over: u64, rounds: u64) {
        if self.audience == Audience::Programs {
            Step::learning(over, rounds).tell(0);
        }
        // The first line at once: a round may take long.
        let begins = self.due.is_some() && self.learning.get().is_none();
        if due(self.due.as_ref()).is_some() || begins {
            let spent = self.spent();
            say_always(format!("learning: {over} of {rounds} rounds, {spent}"));
        }
        let bar = self.learning.get_or_init(|| {
            let bar = self.screen.insert(0, ProgressBar::new(rounds));
            bar.set_style(self.style.clone());
            bar.set_prefix("learning");
            bar
        });
        bar.set_length(rounds);
        bar.set_position(over);
        if !bar.is_hidden() {
            bar.set_message(self.spent());
        }
    }

    fn learnt(&self, _: &Arc<dyn Beginning>) {
        if let Some(bar) = self.learning.get() {
            if let (Audience::Programs, Some(rounds)) = (self.audience, bar.length()) {
                Step::learning(rounds, rounds).tell(0);
            }
            bar.finish_and_clear();
        }
        self.show_chains();
    }

    fn interrupted(&self) -> bool {
        self.interrupt.came()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_at_hundredths_of_a_stage() {
        let told = |before: u64, total: u64| -> Vec<u64> {
            let step = |done| Step {
                done,
                ..Step::learning(0, total)
            };
            let done = (before + 1)..=total;
            done.filter(|&done| step(done).is_told(before)).collect()
        };
        assert_eq!(told(0, 3), [1, 2, 3]);
        // A resumed run says at once where it is.
        assert_eq!(told(983, 1001), [984, 990, 1001]);
        assert_eq!(told(0, 1_000_000).len(), 101);
    }

    #[test]
    fn a_line_says_how_far_the_run_is() {
        let standing = Standing {
            done: 500,
            before: 100,
            all: 2000,
            accept: 0.416,
            spent: "epsilon 0.42 of 1",
            elapsed: Duration::from_secs(60),
        };
        // 400 iterations in a minute, 1500 to go.
        assert_eq!(
            line(&standing),
            "500 of 2000 iterations, accept 0.42, epsilon 0.42 of 1, about 4 minutes left"
        );
        let none = Standing {
            done: 100,
            spent: "",
            ..standing
        };
        assert_eq!(line(&none), "100 of 2000 iterations, accept 0.42");
    }
}
