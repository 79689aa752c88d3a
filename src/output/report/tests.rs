//! Reports of malformed runs, and of runs of many sizes.

use serde_json::json;

use super::{Report, ReportFile, ReportPrior};
use crate::diagnostics::{ChainRecord, Evidence, diagnose};

/// Numbers that look like draws: of chain `c`, parameter `p`, draw `t`.
fn value(c: usize, p: usize, t: usize) -> f64 {
    let x = ((c * 7919 + p * 104_729 + t * 1_299_709) % 1009) as f64 / 1009.0;
    (p % 5) as f64 + x - 0.5
}

fn report(parameters: usize, chains: usize, draws: usize) -> Report {
    let names = (1..=parameters).map(|p| format!("theta[{p}]")).collect();
    let of_chain = |c| {
        let draw = |t| (0..parameters).map(|p| value(c, p, t)).collect();
        (0..draws).map(draw).collect()
    };
    let mut report = Report {
        name: "a-run".into(),
        model: Some("parameters { real a; } // and so on".into()),
        constants: Some("{\"n\": 3}".into()),
        config: json!({ "model": "models/a.dpm", "data": "secret-folder/a.csv", "chains": chains }),
        privacy: json!({
            "private": true, "epsilon": 1.0, "delta": 1e-6, "epsilon_spent": 1.0,
            "relation": "substitute", "unit": "record", "unit_column": null,
            "accountant": "gaussian", "proved": true, "ledger": null,
            "events": [{ "kind": "gaussian", "what": "gradient", "sensitivity": 2.0, "sigma": 60.0,
                         "clip": 1.0, "rate": 1.0, "count": 40, "lattice": null }],
            "released": [{ "what": "gradient", "count": 40 }],
            "assumed_public": ["the model"], "not_protected": ["timing"],
            "software": { "name": "dpm", "version": "0.1.0" },
        }),
        names,
        draws: (0..chains).map(of_chain).collect(),
        acceptance: vec![0.5; chains],
        diagnosis: None,
        prior: ReportPrior::Drawn(vec![(0..100).map(f64::from).collect(); parameters]),
        files: vec![ReportFile {
            name: "chain-1.csv".into(),
            size: 12,
            hash: "00ff".into(),
        }],
    };
    judge(&mut report);
    report
}

fn judge(report: &mut Report) {
    let record = |draws: &Vec<Vec<f64>>| ChainRecord {
        draws: draws.clone(),
        ..ChainRecord::default()
    };
    report.diagnosis = Some(diagnose(&Evidence {
        names: report.names.clone(),
        chains: report.draws.iter().map(record).collect(),
        ..Evidence::default()
    }));
}

/// Panics if tags do not match, or drawings contain values that are not numbers.
fn well_formed(html: &str) {
    let (head, rest) = html.split_once("<style>").expect("a style sheet");
    let (_, body) = rest.split_once("</style>").expect("its end");
    let html = format!("{head}{body}");
    let mut open: Vec<&str> = Vec::new();
    for piece in html.split('<').skip(2) {
        let (tag, text) = piece.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "{text}");
        let name = tag.split([' ', '/']).find(|s| !s.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name));
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        let holds_places = ["path", "circle", "rect", "text"].contains(&name);
        assert!(
            !(holds_places && (tag.contains("NaN") || tag.contains("inf"))),
            "{tag}"
        );
    }
    assert!(open.is_empty(), "{open:?}");
}

fn occurrences(html: &str, what: &str) -> usize {
    html.matches(what).count()
}

// Wrong here: a report that a browser cannot show, or that is too large to mail.
#[test]
fn reports_of_all_sizes_are_whole_and_small() {
    for (parameters, chains) in [(1, 1), (1, 8), (10, 4), (100, 1), (100, 8)] {
        let html = report(parameters, chains, 1000).to_html();
        well_formed(&html);
        assert!(
            html.len() < 3_000_000,
            "{parameters}, {chains}: {} bytes",
            html.len()
        );
        // A density for each, and a figure of traces with a row for each chain.
        assert_eq!(occurrences(&html, "Posterior density of "), parameters);
        assert_eq!(occurrences(&html, "Trace and rank plots of "), parameters);
        assert_eq!(occurrences(&html, "class=\"trace\""), parameters * chains);
        assert_eq!(html.contains("more densities"), parameters == 100);
    }
    let html = report(2000, 2, 20).to_html();
    well_formed(&html);
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    assert!(html.contains("1600 further parameters are not shown"));
}

#[test]
fn the_promise_is_told_in_numbers() {
    let html = report(2, 2, 200).to_html();
    // sqrt(40 * (2/60)^2) = 0.2108, and Phi of half of it is 0.54198.
    assert!(html.contains("at most 54.2\u{202f}% of the time"), "{html}");
    assert!(html.contains("one in 1\u{202f}000\u{202f}000"));
    assert!(html.contains("at most 2.72 times"));
    assert!(!html.contains("NOT PRIVATE"));
    assert!(html.contains("00ff") && html.contains("Signature"));
    assert!(
        !html.contains("secret-folder/a.csv</dd></div><div><dt>Chains"),
        "folders of data"
    );
}

#[test]
fn a_run_without_privacy_says_so_and_has_nothing_to_sign() {
    let mut report = report(2, 2, 200);
    report.privacy["private"] = json!(false);
    report.privacy["statement"] = json!("NOT PRIVATE: `nuts` uses exact values of the data.");
    let html = report.to_html();
    well_formed(&html);
    assert!(html.contains("<strong>NOT PRIVATE</strong>"));
    assert!(html.contains("(NOT PRIVATE)</title>"));
    for promise in [
        "Best guess",
        "Signature",
        "The best that an attack can do",
        "of the time",
    ] {
        assert!(!html.contains(promise), "{promise}");
    }
}

#[test]
fn draws_that_are_none_are_reported() {
    let mut broken = report(3, 2, 200);
    for chain in &mut broken.draws {
        for (t, draw) in chain.iter_mut().enumerate() {
            draw[0] = f64::NAN;
            draw[1] = if t % 2 == 0 { f64::INFINITY } else { t as f64 };
            draw[2] = 3.25;
        }
    }
    broken.acceptance = vec![f64::NAN, 0.0];
    judge(&mut broken);
    let html = broken.to_html();
    well_formed(&html);
    assert!(html.contains("<strong>NOT TO BE USED</strong>"));
    assert!(html.contains("Do not use these draws."));
    assert!(html.contains("400 of 400 draws are NaN or infinite"));
    assert!(html.contains("200 of 400 draws are NaN or infinite"));
    assert!(html.contains("all draws are one number"));

    let mut none = report(0, 0, 0);
    none.diagnosis = None;
    none.config = json!(null);
    none.model = None;
    let html = none.to_html();
    well_formed(&html);
    assert!(html.contains("no draws yet") && html.contains("a-run"));
    well_formed(&report(1, 1, 1).to_html());
    well_formed(&report(2, 3, 2).to_html());
}

// Wrong here: an officer would take draws from a released likelihood for something else, or a
// statistician miss what they rest on.
#[test]
fn draws_from_a_released_likelihood_are_told_as_such() {
    let mut report = report(2, 4, 500);
    report.config["algorithm"] = json!("dp-laplace");
    report.config["start"] = json!({
        "information": "law", "coordinates": 2, "rounds": 5, "foreseen_noise": 0.4, "clip": 0.1,
        "efficiency": 0.93, "last_step": 0.5, "cut": false, "surprise": [0.75, 1.25],
        "unknown": 0.5, "untold": 0.0625, "seen": true, "centre_sd": 1.875,
        "certificate": { "p": 0.375, "noise": 6.5 },
    });
    let html = report.to_html();
    well_formed(&html);
    for expected in [
        "How the draws were made",
        "in 5 rounds",
        "The same for statisticians",
        "under the law that the model gives its outcomes",
        "<td>0.75, 1.25</td>",
        "<td>1.88</td>",
        "<td>0.375</td>",
        "with the privacy noise included",
        "ranks among all",
    ] {
        assert!(html.contains(expected), "{expected}");
    }
    // Missing numbers, as in a run whose rounds were lost.
    report.config["start"] = json!({ "information": "second derivatives", "certificate": null });
    let html = report.to_html();
    well_formed(&html);
    assert!(html.contains("The model gives no law of the outcomes"));
    assert!(html.contains("<td>\u{2013}</td>"));
}

#[test]
fn extreme_numbers_are_drawn_without_complaint() {
    let mut report = report(4, 2, 100);
    for (c, chain) in report.draws.iter_mut().enumerate() {
        for (t, draw) in chain.iter_mut().enumerate() {
            draw[0] = if (t + c) % 2 == 0 { f64::MAX } else { f64::MIN };
            draw[1] = 1e-300 * t as f64;
            draw[2] = 1e15 + t as f64;
            draw[3] = 5.0 + f64::EPSILON * (t % 2) as f64;
        }
    }
    judge(&mut report);
    well_formed(&report.to_html());
}

// Wrong here: the sender of a run could run a script in a privacy officer's browser, or hide what
// the model is.
#[test]
fn hostile_text_stays_text() {
    const HOSTILE: &str = "</code></pre><script>alert(1)</script><img src=http://x/ onerror=\"alert(1)\"> \u{202e}&lt;&#x27;'\" -->";
    let mut report = report(2, 2, 100);
    report.name = HOSTILE.into();
    report.model = Some(format!(
        "// {HOSTILE}\nparameters {{ /* {HOSTILE} */ print(\"{HOSTILE}\"); }}"
    ));
    report.constants = Some(HOSTILE.into());
    report.names = vec![format!("a{HOSTILE}"), "b".into()];
    report.config = json!({ "model": HOSTILE, "data": HOSTILE, HOSTILE: HOSTILE });
    for key in ["accountant", "unit_column", "statement"] {
        report.privacy[key] = json!(HOSTILE);
    }
    report.privacy["not_protected"] = json!([HOSTILE]);
    report.privacy["assumed_public"] = json!([HOSTILE, 3]);
    report.privacy["events"][0]["what"] = json!(HOSTILE);
    report.privacy["software"]["version"] = json!(HOSTILE);
    report.privacy["ledger"] = json!({ "name": HOSTILE, "hash": HOSTILE, "entry": HOSTILE });
    report.files[0].name = HOSTILE.into();
    report.prior = ReportPrior::None(HOSTILE.into());
    judge(&mut report);
    let html = report.to_html();
    well_formed(&html);
    for tag in ["<script", "<img", "<svg onload", "onerror=\"", "\u{202e}"] {
        assert!(!html.contains(tag), "{tag}");
    }
    assert!(occurrences(&html, "&lt;script&gt;") >= 15);
}
