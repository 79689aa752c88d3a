//! The binomial distribution, by the log-odds of success.

use rand::Rng;

use super::deviance::{log_binomial_at_mean, outcomes};
use super::draw::{self, DrawError, numbers};
use super::quantity::Quantity;
use super::{Algebra, Argument, Container, Domain, Family, Kind};
use crate::function::special::inv_logit;
use crate::function::{Form, Unary};

pub(super) static FAMILY: Family = Family {
    name: "binomial_logit",
    documentation: "Binomial with N trials and success probability inv_logit(alpha)",
    variate: Kind::Int,
    support: Domain::CountsTo(0),
    arguments: &[
        Argument::of("N", Kind::Int, Domain::Counts, "trials"),
        Argument::real("alpha", Domain::Real, "log-odds of success"),
    ],
    draw_arguments: None,
    draw,
};

/// The deviance, N times the divergence of y/N from the chance of success, by the
/// log-odds: with p = y/N and s = alpha - logit(p) it is
/// `log(1 + p (exp(s) - 1)) - p s`.
pub(super) fn log_density<'a, A: Algebra>(
    y: Quantity<'a, A>,
    [trials, alpha]: [Quantity<'a, A>; 2],
) -> Quantity<'a, A> {
    let [support, y, failures] = outcomes(y, trials);
    let n = trials.at_least(1.0);
    // The rarer outcome: its count and its log-odds.
    let successes_rarer = failures.less(y).equals(0.0);
    let rarer = successes_rarer.choose(y, failures);
    let sign = successes_rarer.choose(y.constant(1.0), y.constant(-1.0));
    let (part, rest) = (rarer / n, (n - rarer) / n);
    let log_odds = sign * alpha;
    let others = n - rarer;
    let at_least_one = rarer.at_least(1.0);
    let odds = at_least_one / others;
    let observed = odds
        .above(0.5)
        .choose(((at_least_one - others) / others).ln_1p(), odds.ln());
    let off = log_odds - observed;
    // The odds ratio less one, times the part: both forms are exact where this is one, and each
    // fails far out on one side.
    let weighted = part * off.apply(Unary::Expm1);
    let near = n * weighted.ln_1p_minus() + rarer * off.exp_m1_minus();
    let entropy = -part * observed - rest.ln();
    let far = n * (log_odds.ln_1p_exp() - part * log_odds - entropy);
    let is_near = weighted.less(y.constant(1.0).unless(rarer.below(1.0), -2.0));
    let deviance = is_near
        .choose(near, far)
        .noted(Form::BinomialDevianceByLogOdds, [rarer, n, log_odds]);
    -deviance.unless(trials.below(1.0), 0.0) + log_binomial_at_mean(y, failures) + support
}

fn draw(rng: &mut dyn Rng, arguments: &[Container<'_, f64>]) -> Result<Vec<f64>, DrawError> {
    let [trials, alpha] = numbers(arguments);
    draw::binomial(rng, trials, inv_logit(alpha), inv_logit(-alpha))
}
