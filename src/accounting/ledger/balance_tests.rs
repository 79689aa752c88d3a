use super::super::super::accountant::{Accountant, Query};
use super::super::super::barker::Barker;
use super::super::super::calibrate::mu_for_budget;
use super::super::super::event::Event;
use super::super::super::relation::Relation;
use super::super::super::release::{Gaussian, Lattice};
use super::super::super::subsampled::Subsampled;
use super::*;

fn budget(epsilon: &str) -> Budget {
    Budget::new(
        epsilon.parse::<Real>().unwrap(),
        "1e-6".parse::<Real>().unwrap(),
    )
    .unwrap()
}

/// `count` releases with this noise multiplier, on a lattice of this fineness.
fn run(multiplier: f64, count: u64, ratio: f64) -> Vec<Event> {
    let gaussian = Gaussian::of_clip("sum", 1.0, Relation::Substitute, 2.0 * multiplier).unwrap();
    let lattice = Lattice::new(ratio, 3).unwrap();
    vec![Event::Gaussian(gaussian.on_lattice(lattice).times(count))]
}

const FINE: f64 = 9.094947017729282e-13; // 2^-40

fn cost(multiplier: f64, count: u64, ratio: f64) -> Cost {
    Measure::Gaussian
        .cost(&run(multiplier, count, ratio), Relation::Substitute)
        .unwrap()
}

fn accounted(events: &[Event]) -> f64 {
    let query = Query::Epsilon {
        delta: budget("1").delta(),
    };
    Accountant::Gaussian
        .account(events, Relation::Substitute, query)
        .unwrap()
        .epsilon
}

// Oracle: the accountant on the events of all runs at once. Wrong here: the ledger sums
// epsilons, or forgets a run.
#[test]
fn runs_cost_what_their_events_cost_together() {
    let mut balance = Balance::new(Measure::Gaussian, budget("5"));
    let mut events = Vec::new();
    for (multiplier, count) in [(30.0, 100), (50.0, 400), (200.0, 10_000), (11.0, 1)] {
        let alone = accounted(&run(multiplier, count, FINE));
        let before = balance.spent();
        balance.charge(cost(multiplier, count, FINE), None);
        events.extend(run(multiplier, count, FINE));
        let together = accounted(&events);
        // The allowance for lattices is wider than what the lattices need.
        let excess = balance.spent() / together - 1.0;
        assert!((0.0..2e-6).contains(&excess), "{excess:e}");
        assert!(before == 0.0 || balance.spent() < before + alone);
    }
    assert!(balance.holds());
}

#[test]
fn a_quote_adds_up_and_says_what_still_fits() {
    let mut balance = Balance::new(Measure::Gaussian, budget("1"));
    balance.charge(cost(60.0, 100, FINE), None);
    let quote = balance.quote(cost(60.0, 100, FINE), None);
    assert!(quote.fits && quote.short_by == 0.0);
    assert_eq!(quote.total, 1.0);
    assert_eq!(quote.spent + quote.requested, quote.spent_after);
    assert!(quote.requested < quote.alone && quote.alone == quote.spent);

    let quote = balance.quote(cost(10.0, 100, FINE), None);
    assert!(!quote.fits);
    let sum = quote.spent + quote.remaining + quote.short_by;
    assert!((sum - quote.spent_after).abs() < 1e-12, "{quote:?}");
    assert!((quote.spent + quote.remaining - quote.total).abs() < 1e-12);

    // A run of the size that is said to fit does, and one a little larger does not.
    let of_epsilon = |epsilon: f64| {
        let mu = mu_for_budget(Real::exact(epsilon), balance.budget.delta(), Real::ZERO).unwrap();
        cost((0.5 / mu).sqrt(), 1, FINE)
    };
    assert!(
        balance
            .with(of_epsilon(quote.room * (1.0 - 1e-5)), None)
            .holds()
    );
    assert!(
        !balance
            .with(of_epsilon(quote.room * (1.0 + 1e-5)), None)
            .holds()
    );
}

// Wrong here: a budget of 1 would refuse the run that was planned for a budget of 1.
#[test]
fn a_first_run_that_just_fits_by_itself_fits() {
    for epsilon in ["0.1", "1", "15"] {
        let budget = budget(epsilon);
        let draws = cost(1.0, 1000, FINE).total_variation;
        let mu = mu_for_budget(budget.epsilon(), budget.delta(), draws).unwrap();
        let multiplier = (500.0 / mu).sqrt() * (1.0 + 1e-15);
        let mut balance = Balance::new(Measure::Gaussian, budget);
        assert!(
            balance.with(cost(multiplier, 1000, FINE), None).holds(),
            "{epsilon}"
        );
        balance.charge(cost(multiplier, 1000, FINE), None);
        assert!(balance.spent() <= budget.epsilon().to_f64());
        assert!(!balance.with(cost(multiplier, 1000, FINE), None).holds());
        assert!(!balance.with(cost(1e6, 1, FINE), None).holds());
    }
}

// Wrong here: an analyst could spend in lattice what was not spent in mu, path by path,
// and the bound would hold for no path's choice.
#[test]
fn coarse_lattices_have_an_allowance_of_their_own() {
    let mut balance = Balance::new(Measure::Gaussian, budget("1"));
    balance.charge(cost(1000.0, 1, FINE), None);
    // Almost free in mu; 3 draws at this ratio are a tenth of delta.
    let coarse = cost(1e6, 1, 7.4e-4);
    let alone = Balance::new(Measure::Gaussian, budget("1")).with(coarse, None);
    assert!(alone.holds());
    let quote = balance.quote(coarse, None);
    assert!(!quote.fits);
    assert_eq!(quote.requested, f64::INFINITY);
    // First, such a run makes room for others like it.
    let mut balance = Balance::new(Measure::Gaussian, budget("1"));
    let coarse = cost(1000.0, 1, 1e-5);
    for run in 0..1000 {
        let after = balance.with(coarse, None);
        assert!(after.holds(), "{run} {after:?}");
        balance.charge(coarse, None);
    }
    assert!(!balance.with(coarse, None).with(coarse, None).holds());
}

// Wrong here: samples on a ledger that cost less than the accountant says of all of them,
// or a sum that is not the one of the ledger's accountant.
#[test]
fn sampled_runs_cost_what_their_order_says_of_all_of_them() {
    let relation = Relation::AddRemove;
    let budget = budget("3");
    let measure = Measure::of(Accountant::Rdp, budget).unwrap();
    let mut balance = Balance::new(measure, budget);
    let mut events = Vec::new();
    for sigma in 10.. {
        let text = format!("poisson:rate=0.02,clip=1,sigma=1.{sigma},count=50");
        let event = vec![Event::parse(&text, relation).unwrap()];
        let after = balance.with(measure.cost(&event, relation).unwrap(), None);
        if !after.holds() {
            break;
        }
        balance = after;
        events.extend(event);
    }
    let query = Query::Epsilon {
        delta: budget.delta(),
    };
    let best = Accountant::Rdp.account(&events, relation, query).unwrap();
    let (spent, room) = (balance.spent(), balance.room());
    assert!(
        events.len() > 5 && spent <= 3.0 && room > 0.0,
        "{spent} {room} {balance:?}"
    );
    // The order was fixed before anything was known of the runs.
    assert!(best.epsilon <= balance.spent() && balance.spent() < 1.3 * best.epsilon);
    let other = Event::parse("gaussian:clip=1,sigma=30", relation).unwrap();
    let zcdp = Measure::Zcdp
        .cost(&[other.clone(), other], relation)
        .unwrap();
    assert_eq!((zcdp.amounts.at(0) * Real::exact(900.0)).to_f64(), 1.0);
    assert!(Measure::Zcdp.cost(&events, relation).is_err());
}

#[test]
fn a_lifted_charge_is_no_charge() {
    let (one, two) = (cost(40.0, 100, FINE), cost(70.0, 300, FINE));
    let mut balance = Balance::new(Measure::Gaussian, budget("2"));
    balance.charge(one, None);
    let before = balance.clone();
    balance.charge(two, None);
    balance.lift(two, None);
    // Rounded up, and by nothing that a user sees.
    assert!(
        balance.amounts().at(0) >= before.amounts().at(0)
            && balance.total_variation >= before.total_variation
    );
    assert!(
        ((balance.amounts().at(0) - before.amounts().at(0)) / before.amounts().at(0)).to_f64()
            < 1e-29
    );
    assert_eq!(balance.spent(), before.spent());
    balance.lift(one, None);
    assert_eq!((balance.spent(), balance.amounts()), (0.0, Amounts::ZERO));
    assert!(balance.allowance.is_none());
}

// 10^5 runs, each chosen at random with what is left in view: none is let through that
// takes the whole past the budget, and the budget is used up to the last thousandth.
// Oracle: the accountant on all events, at the end of each budget.
#[test]
fn adaptive_runs_never_pass_the_budget() {
    let mut state = 1u64;
    let mut uniform = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut runs, mut refused) = (0, 0);
    while runs < 100_000 {
        let epsilon = ["0.1", "1", "3", "10"][(4.0 * uniform()) as usize];
        let budget = budget(epsilon);
        let mut balance = Balance::new(Measure::Gaussian, budget);
        let mut granted: Vec<Event> = Vec::new();
        let mut misses = 0;
        // When little is left, smaller and smaller runs are requested.
        while misses < 12 && granted.len() < 2000 {
            let count = 1 + (1000.0 * uniform()) as u64;
            let scale = 4f64.powf(f64::from(misses) + 3.0 * uniform());
            let multiplier = 5.0 / epsilon.parse::<f64>().unwrap() * (count as f64).sqrt() * scale;
            let events = run(multiplier, count, FINE);
            let after = balance.with(
                Measure::Gaussian
                    .cost(&events, Relation::Substitute)
                    .unwrap(),
                None,
            );
            runs += 1;
            if after.holds() {
                balance = after;
                granted.extend(events);
                // Sometimes a run that released nothing is lifted.
                if uniform() < 0.05 {
                    balance.lift(cost(multiplier, count, FINE), None);
                    granted.pop();
                }
            } else {
                refused += 1;
                misses += 1;
            }
        }
        let spent = accounted(&granted);
        assert!(spent <= budget.epsilon().to_f64(), "{spent} of {epsilon}");
        assert!(
            spent > 0.999 * budget.epsilon().to_f64() || misses < 12,
            "{spent} of {epsilon}"
        );
    }
    assert!(refused > 1000, "{refused}");
}

/// A division, by its number, and whether a run reads what it holds out.
type Side = Option<(usize, bool)>;

// Wrong here: a unit whose runs cost more together than the ledger says; or parts of different
// divisions that are taken for ones without a record in common. Oracle: the accountant on the events
// of all runs that read a unit, for each combination of parts that it may be in. The dearest of them
// is what is spent.
#[test]
fn no_unit_costs_more_than_is_spent_and_one_costs_as_much() {
    let part = |split: &str, held_out: f64, is_held_out| Part {
        split: split.to_owned(),
        held_out,
        is_held_out,
    };
    // The same name with another share is another division.
    let divisions = [("a", 0.2), ("b", 0.2), ("a", 0.5)];
    let mut state = 3u64;
    let mut below = move |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for _ in 0..40 {
        let mut balance = Balance::new(Measure::Gaussian, budget("30"));
        let mut charged: Vec<(Vec<Event>, Side)> = Vec::new();
        for _ in 0..1 + below(7) {
            let (multiplier, count) = (40.0 + 10.0 * below(9) as f64, 1 + below(300));
            let place = match below(5) {
                0 => None,
                k => Some((below(3) as usize, k % 2 == 0)),
            };
            let part = place.map(|(division, is_held_out)| {
                let (split, held_out) = divisions[division];
                part(split, held_out, is_held_out)
            });
            balance.charge(cost(multiplier, count, FINE), part.as_ref());
            if below(4) == 0 {
                balance.lift(cost(multiplier, count, FINE), part.as_ref());
            } else {
                charged.push((run(multiplier, count, FINE), place));
            }
        }
        let of_unit = |sides: [bool; 3]| {
            let read = charged.iter().filter(|(_, place)| {
                place.is_none_or(|(division, is_held_out)| sides[division] == is_held_out)
            });
            let events: Vec<Event> = read.flat_map(|(events, _)| events.clone()).collect();
            if events.is_empty() {
                0.0
            } else {
                accounted(&events)
            }
        };
        let sides = |k: u8| [0, 1, 2].map(|bit| k >> bit & 1 == 1);
        let dearest = (0..8).map(|k| of_unit(sides(k))).fold(0.0, f64::max);
        let spent = balance.spent();
        assert!(dearest <= spent, "{dearest} {spent}: {charged:?}");
        assert!(
            spent <= dearest * (1.0 + 1e-5) + 1e-12,
            "{dearest} {spent}: {charged:?}"
        );
    }
}

/// 2,000 tests of the minibatch-penalty sampler on Poisson batches, on a lattice.
fn batches(sigma: f64, relation: Relation) -> Vec<Event> {
    let release = Subsampled::poisson("log-ratio", 1.0, relation, 0.01, sigma).unwrap();
    let lattice = Lattice::new(FINE, 1).unwrap();
    vec![Event::Subsampled(release.on_lattice(lattice).times(2000))]
}

// Wrong here: a run that a budget of 20 takes is refused by one of 50, whose epsilon is so
// large that the discrete noise's term passes delta there.
#[test]
fn a_larger_budget_takes_what_a_smaller_one_does() {
    for (relation, sigma) in [
        (Relation::AddRemove, 0.6483),
        (Relation::Substitute, 0.7089),
    ] {
        let events = batches(sigma, relation);
        let query = Query::Epsilon {
            delta: budget("1").delta(),
        };
        let pld = Accountant::Pld.account(&events, relation, query).unwrap();
        assert!((8.9..9.1).contains(&pld.epsilon), "{pld:?}");
        for order in [None, Some(2), Some(3), Some(4)] {
            let mut taken = false;
            for epsilon in [
                "10", "12", "15", "20", "27", "30", "35", "50", "100", "1000", "1e9",
            ] {
                let budget = budget(epsilon);
                let usual = Measure::of(Accountant::Rdp, budget).unwrap();
                let measure = order.map_or(usual, |order| Measure::Rdp { order });
                let cost = measure.cost(&events, relation).unwrap();
                let quote = Balance::new(measure, budget).quote(cost, None);
                assert!(quote.fits || !taken, "{epsilon} {order:?} {quote:?}");
                assert!(quote.requested < 25.0, "{epsilon} {order:?} {quote:?}");
                taken |= quote.fits;
                if !quote.fits {
                    continue;
                }
                // A second such run fits where there is room.
                let balance = Balance::new(measure, budget).with(cost, None);
                let second = balance.quote(cost, None);
                assert_eq!(second.fits, second.spent_after <= quote.total, "{second:?}");
            }
            assert!(taken);
        }
    }
}

// Wrong here: what is beyond the budget is said to have no price at all.
#[test]
fn a_run_beyond_the_budget_has_a_finite_price() {
    for relation in Relation::ALL {
        for epsilon in ["0.5", "2", "4", "8", "30"] {
            let budget = budget(epsilon);
            for order in [2, 3, 5, 9, 20, 60] {
                let measure = Measure::Rdp { order };
                for sigma in [0.3, 0.5, 0.8, 1.5] {
                    let cost = measure.cost(&batches(sigma, relation), relation).unwrap();
                    let quote = Balance::new(measure, budget).quote(cost, None);
                    let finite = quote.requested.is_finite() && quote.alone.is_finite();
                    // The noise on a lattice has no epsilon beyond this.
                    let least = cost.amounts.iter().reduce(Real::min).unwrap();
                    let beyond = relation != Relation::Substitute && least > Real::exact(20.0);
                    assert!(
                        finite || beyond,
                        "{relation} {epsilon} {order} {sigma} {quote:?}"
                    );
                    assert_eq!(quote.fits, quote.requested <= quote.remaining, "{quote:?}");
                }
            }
        }
    }
}

// Wrong here: a first run without a lattice's term leaves none to any later run.
#[test]
fn runs_with_and_without_a_lattices_term_share_a_large_budget() {
    let relation = Relation::Substitute;
    for epsilon in ["4", "20", "30", "100", "1000"] {
        let budget = budget(epsilon);
        let measure = Measure::of(Accountant::Rdp, budget).unwrap();
        let cost = |events: &[Event]| measure.cost(events, relation).unwrap();
        let first = cost(&batches(3.0, relation));
        assert_eq!(first.total_variation, Real::ZERO);
        let tests = Barker::new("accept", 1000, 100_000).unwrap();
        let tests = tests.on_lattice(Lattice::new(FINE, 1).unwrap()).times(500);
        let balance = Balance::new(measure, budget).with(first, None);
        let quote = balance.quote(cost(&[Event::Barker(tests)]), None);
        assert!(quote.fits, "{epsilon} {quote:?}");
    }
}

// Wrong here: the main order, which suits releases about all rows, prices samples of little
// noise at hundreds of times the best order's epsilon. Oracle: the accountant with the best.
#[test]
fn samples_cost_nearly_what_the_best_order_says_whatever_the_budget() {
    let mut worst: f64 = 1.0;
    for (relation, rate, sigma, count) in [
        (Relation::AddRemove, 0.001, 0.72, 300),
        (Relation::AddRemove, 0.001, 0.66, 30_000),
        (Relation::AddRemove, 0.01, 0.75, 300),
        (Relation::AddRemove, 0.01, 1.54, 3000),
        (Relation::AddRemove, 0.05, 11.0, 30_000),
        (Relation::Substitute, 0.001, 0.75, 3000),
        (Relation::Substitute, 0.01, 0.64, 300),
        (Relation::Substitute, 0.05, 8.65, 300),
    ] {
        let release = Subsampled::poisson("x", 1.0, relation, rate, sigma).unwrap();
        let events = [Event::Subsampled(release.times(count))];
        let delta = budget("1").delta();
        let best = Accountant::Rdp
            .account(&events, relation, Query::Epsilon { delta })
            .unwrap()
            .epsilon;
        for factor in [1.0, 1.3, 2.0, 5.0] {
            let budget = Budget::new(best * factor, delta).unwrap();
            let measure = Measure::of(Accountant::Rdp, budget).unwrap();
            let cost = measure.cost(&events, relation).unwrap();
            let spent = Balance::new(measure, budget).with(cost, None).spent();
            assert!(
                spent >= best * (1.0 - 1e-9),
                "{rate} {sigma} {spent} {best}"
            );
            worst = worst.max(spent / best);
        }
    }
    assert!(worst < 1.4, "{worst}");
}
