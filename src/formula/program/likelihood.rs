//! The likelihood of one record, and the parameters of its family.

use super::Program;
use crate::formula::family::Family;
use crate::formula::tree::Argument;

impl Program<'_> {
    pub(super) fn likelihood(&mut self, y: &str, etas: &[String]) {
        let others: Vec<String> = self
            .priors
            .others
            .iter()
            .map(|other| {
                let name = self.take(other.name);
                self.parameters
                    .push(format!("{} {name};  // {}", other.declaration, other.about));
                self.model_priors.push(format!("{name} ~ {};", other.prior));
                name
            })
            .collect();
        let eta = etas.first().map_or("0", |eta| eta);
        let other = |i: usize| others.get(i).map_or("", |name| name);
        let argument = self.outcome.addition.as_ref().map(|a| &a.argument);
        let times = |name: &str, arguments: &str| match argument {
            Some(Argument::Column(c)) => format!(
                "target += {} == 1 ? {name}_lccdf({y} | {arguments}) : {name}_lpdf({y} | {arguments});",
                c.name
            ),
            Some(Argument::OneMinus(c)) => format!(
                "target += {} == 1 ? {name}_lpdf({y} | {arguments}) : {name}_lccdf({y} | {arguments});",
                c.name
            ),
            _ => format!("{y} ~ {name}({arguments});"),
        };
        let hurdle = |hu: &str, positive: String| {
            format!(
                "target += {y} == 0 ? bernoulli_lpmf(1 | {hu}) : bernoulli_lpmf(0 | {hu}) + {positive};"
            )
        };
        let statement = match self.family {
            Family::Gaussian => format!("{y} ~ normal({eta}, {});", other(0)),
            Family::Student => format!("{y} ~ student_t({}, {eta}, {});", other(1), other(0)),
            Family::Lognormal => format!("{y} ~ lognormal({eta}, {});", other(0)),
            Family::Bernoulli => format!("{y} ~ bernoulli_logit({eta});"),
            Family::Binomial => {
                let trials = match argument {
                    Some(Argument::Number(count)) => count.to_string(),
                    Some(Argument::Column(column)) => column.name.clone(),
                    _ => String::new(),
                };
                format!("{y} ~ binomial_logit({trials}, {eta});")
            }
            Family::Poisson => format!("{y} ~ poisson_log({eta});"),
            Family::NegativeBinomial => format!("{y} ~ neg_binomial_2_log({eta}, {});", other(0)),
            Family::Cumulative => format!("{y} ~ ordered_logistic({eta}, {});", self.thresholds),
            Family::Categorical => format!("{y} ~ categorical_logit([0, {}]');", etas.join(", ")),
            Family::Weibull => times("weibull", &format!("{}, exp({eta})", other(0))),
            Family::Exponential => times("exponential", &format!("exp(-{eta})")),
            Family::HurdlePoisson => hurdle(
                other(0),
                format!("poisson_log_lpmf({y} | {eta}) - log1m_exp(-exp({eta}))"),
            ),
            Family::HurdleLognormal => hurdle(
                other(1),
                format!("lognormal_lpdf({y} | {eta}, {})", other(0)),
            ),
        };
        self.model.push(statement);
        if let (Some(Argument::Column(column)), Family::Weibull | Family::Exponential) =
            (argument, self.family)
        {
            self.notes.push(format!(
                "`cens({0})` means that {0} is 1 where the time is censored, as in brms; if 1 is the event, write `cens(1 - {0})`",
                column.name
            ));
        }
    }
}
