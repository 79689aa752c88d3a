//! A plan in words, and as JSON.

use serde_json::{Value, json};

use crate::accounting::figure;
use crate::privacy::Subsampling;
use crate::sampler::{Plan, Question, Setting};

/// The plan as `dpm plan --format json` prints it.
pub(super) fn json_of(plan: &Plan) -> Value {
    json!({
        "iterations_per_chain": plan.iterations_per_chain,
        "chains": plan.request.chains,
        "algorithm": plan.request.algorithm.name,
        "leapfrog_steps": has_trajectories(plan).then_some(plan.request.leapfrog_steps()),
        "gradients_per_draw": plan.request.algorithm.travels().then_some(plan.request.gradients_per_draw()),
        "tau_gradient": plan.tau(Question::Gradient),
        "tau_log_ratio": plan.tau(Question::LogRatio),
        "events": plan.events,
        "mu": plan.guarantee.mu,
        "proved": plan.guarantee.proved,
        "not_proved": plan.guarantee.not_proved,
        "epsilon": plan.epsilon(),
        "delta": plan.request.delta.to_f64(),
        "relation": plan.request.relation.name(),
        "predicted": predicted(plan),
        "warnings": plan.warnings,
    })
}

/// The noise in terms of the posterior: what of it can be told without data.
fn predicted(plan: &Plan) -> Value {
    let proposal = plan.typical_proposal();
    let gradient = plan.gradient_and_noise();
    json!({
        "proposal_distance": proposal.map(|(distance, _)| distance),
        "log_ratio_noise_sd": proposal.map(|(_, noise)| noise).filter(|noise| noise.is_finite()),
        "gradient_noise_sd": gradient.map(|(noise, _)| noise),
        "gradient_longest": gradient.and_then(|(_, longest)| longest),
    })
}

/// The plan in words.
pub(super) fn describe(plan: &Plan, num_warmup: u64, num_samples: u64) -> Vec<String> {
    let r = &plan.request;
    let mut lines = vec![
        format!(
            "{}: {} chains of {} iterations ({num_warmup} warm-up, {num_samples} kept){}",
            r.algorithm.name,
            r.chains,
            plan.iterations_per_chain,
            if has_trajectories(plan) {
                format!(", {} leapfrog steps each", r.leapfrog_steps())
            } else {
                String::new()
            }
        ),
        format!(
            "epsilon {} at delta {:e}, relation {}{}",
            figure(plan.epsilon()),
            r.delta.to_f64(),
            r.relation,
            unproved(plan),
        ),
    ];
    let width = plan.events.iter().map(|event| event.what().chars().count());
    let width = width.max().unwrap_or(0);
    for (event, planned) in plan.events.iter().zip(&plan.lines) {
        let batches = batches(planned.line.subsampling);
        let Some(g) = event.release() else {
            lines.push(format!(
                "  {:>8} x {}{batches}",
                event.count(),
                event.what()
            ));
            continue;
        };
        lines.push(format!(
            "  {:>8} x {:<width$} one record's share at most {:.4e}, noise sd {:.4e} ({:.1} x the sensitivity){batches}",
            g.count(),
            g.what(),
            g.clip().map_or(f64::NAN, |c| c.to_f64()),
            g.sigma().to_f64(),
            g.sigma().to_f64() / g.sensitivity().to_f64(),
        ));
    }
    lines.extend(describe_predicted(plan));
    lines
}

fn describe_predicted(plan: &Plan) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some((distance, noise)) = plan.typical_proposal() {
        lines.push(format!(
            "  a proposal at distance {distance:.2e} is tested with noise of sd {noise:.3} nats (above 2 almost everything is rejected)"
        ));
    }
    if let Some((noise, longest)) = plan.gradient_and_noise() {
        let records = match longest {
            Some(longest) => format!("; all records together pull by at most {longest:.4e}"),
            None => String::new(),
        };
        lines.push(format!(
            "  a gradient has noise of sd {noise:.4e} on each coordinate{records}"
        ));
    }
    lines
}

fn batches(subsampling: Subsampling) -> String {
    match subsampling {
        Subsampling::All => String::new(),
        Subsampling::Poisson(rate) => {
            format!(", batches of each record with probability {}", rate.rate())
        }
        Subsampling::FixedSize(size) => format!(", batches of {size} records"),
    }
}

fn has_trajectories(plan: &Plan) -> bool {
    plan.request.algorithm.has(Setting::leapfrog_steps)
}

/// The assumptions behind an epsilon that rests on more than proofs.
pub(super) fn unproved(plan: &Plan) -> String {
    let proviso = plan.guarantee.proviso();
    proviso.map_or(String::new(), |proviso| format!("; provided {proviso}"))
}
