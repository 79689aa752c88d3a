//! How draws were made from a likelihood that was released.

use serde_json::Value;

use super::axis::{percent, short};
use super::html::Html;
use super::posterior::{folded, scrolling_table};

/// `start`: the rounds as recorded in `config.json`.
pub(super) fn likelihood(h: &mut Html, start: &Value) {
    let count = |key: &str| start[key].as_u64().unwrap_or(0);
    let rounds = count("rounds");
    h.element("h3", &[], "How the draws were made");
    h.element(
        "p",
        &[],
        format!("The program asked the table questions in {rounds} rounds: which way the parameters should move, and how precisely the rows determine them. Each answer was a sum over all rows with noise added, and each question followed from the answers before it. Together the answers describe the likelihood, which is all that the draws are based on besides the prior. A last question, the certificate, checked it. After that the table was not read again: the draws were made from the prior and those answers, and can be made in any number at no cost in privacy. Their spread includes the noise."),
    );
    folded(h, "The same for statisticians", |h| {
        h.within("p", &[], |h| {
            h.prose(&format!(
                "Newton's method, {rounds} rounds, each more exact by a factor of about two: a Kalman filter of the centre on noisy sums of clipped gradients, in axes in which the information is about the identity. {} The released likelihood is a normal one with the inverse information and the filter's covariance of the centre; its normality is an approximation; prior and constraints are exact: `nuts` drew from prior times likelihood, on the unconstrained scale with the Jacobian of the transforms. The figures below are released ones.",
                information(start["information"].as_str().unwrap_or_default())
            ));
        });
        figures(h, start);
    });
}

fn information(source: &str) -> &'static str {
    match source {
        "public" => {
            "The information of a record is the same for all records and parameters, and so public."
        }
        "law" | "law, bounded gradients" => {
            "The information of a record is the expected one, under the law that the model gives its outcomes, and clipped gradients are centred under that law (conditionally unbiased bounded influence, Künsch, Stefanski and Carroll 1989)."
        }
        "hazard" => {
            "Times may be censored: the information of a record is the integral over its follow-up of the information in an event, under the hazard that the model gives it, and clipped gradients are balanced under that hazard (Andersen, Borgan, Gill and Keiding 1993)."
        }
        _ => {
            "The model gives no law of the outcomes: the information is that of the records' own second derivatives."
        }
    }
}

fn figures(h: &mut Html, start: &Value) {
    let number = |value: &Value| value.as_f64().map_or_else(|| "\u{2013}".to_owned(), short);
    let share = |value: &Value| {
        value
            .as_f64()
            .map_or_else(|| "\u{2013}".to_owned(), percent)
    };
    let surprise: Vec<String> = (start["surprise"].as_array().into_iter().flatten())
        .map(number)
        .collect();
    let rows = [
        (
            "Directions in which the records are informative",
            number(&start["coordinates"]),
        ),
        (
            "Noise in the centre, posterior standard deviations",
            number(&start["centre_sd"]),
        ),
        (
            "The last step, standard deviations of posterior and noise together (at most 2 is expected)",
            number(&start["last_step"]),
        ),
        (
            "Mean square of the gradients in the last rounds, the latest first (1 is expected, at most 3)",
            surprise.join(", "),
        ),
        (
            "Directions whose information cannot be told from noise",
            share(&start["unknown"]),
        ),
        (
            "Squares of gradients\u{2019} lengths that were expected and not seen (at most 10 % is expected)",
            share(&start["untold"]),
        ),
        (
            "Slope of clipped gradients relative to unclipped ones",
            number(&start["efficiency"]),
        ),
        (
            "The certificate\u{2019}s p (at least 0.001 is wanted)",
            number(&start["certificate"]["p"]),
        ),
        (
            "Its noise, posterior standard deviations",
            number(&start["certificate"]["noise"]),
        ),
    ];
    scrolling_table(h, "pinned", "What the rounds released", |h| {
        h.within("tbody", &[], |h| {
            for (what, value) in &rows {
                h.within("tr", &[], |h| {
                    h.element("th", &[("scope", &"row"), ("class", &"wrap")], what);
                    h.element("td", &[], value);
                });
            }
        });
    });
}
