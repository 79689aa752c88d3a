//! The statement beside synthetic tables: what they are, and what they are good for and not.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Drawn, Origin, Synthesis};
use crate::accounting::Event;
use crate::diagnostics::{Decision, Severity};
use crate::output::RunLedger;

/// The description of synthetic tables in `FILE.about.json`.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct About {
    /// The run's directory, as it was named.
    run: String,
    private: bool,
    /// The run's promise, in a sentence.
    statement: String,
    /// Those of the run; null where it has no promise.
    epsilon: Value,
    delta: Value,
    relation: Value,
    unit: Value,
    /// Epsilon that the tables cost beyond the run's.
    further_epsilon: f64,
    /// The release of the covariates' distributions, if there was one.
    covariates: Option<OfCovariates>,
    /// Of the text of the run's model, and of its constants where there are any.
    model_sha256: String,
    constants_sha256: Option<String>,
    rows: usize,
    seed: u64,
    public_sample: Option<String>,
    tables: Vec<TableOf>,
    columns: Vec<ColumnOf>,
    /// The decision of the run's diagnosis.
    decision: Decision,
    /// The diagnosis's verdicts of this severity.
    problems: Vec<String>,
    good_for: Vec<String>,
    not_good_for: Vec<String>,
    notes: Vec<String>,
    version: &'static str,
}

#[derive(Debug, Clone, Serialize)]
struct TableOf {
    file: String,
    #[serde(flatten)]
    drawn: Drawn,
}

/// The question to the data about covariates.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct OfCovariates {
    pub epsilon: f64,
    pub delta: f64,
    pub relation: &'static str,
    pub unit: String,
    /// Whether the noise is the operating system's, and not made from a seed.
    pub private: bool,
    /// Standard deviation of the noise of the share of a cell.
    pub noise_of_share: f64,
    /// The file of what was released.
    pub codebook: String,
    pub events: [Event; 1],
    pub ledger: Option<RunLedger>,
}

#[derive(Debug, Clone, Serialize)]
struct ColumnOf {
    name: String,
    origin: Origin,
    lower: Option<f64>,
    upper: Option<f64>,
}

impl About {
    /// The statement for tables that were written to `files`, each from its draw.
    pub fn new(
        synthesis: &Synthesis,
        files: &[String],
        drawn: Vec<Drawn>,
        public_sample: Option<String>,
        covariates: Option<OfCovariates>,
    ) -> About {
        let (run, model) = (synthesis.run, synthesis.density.model());
        let report = run.report();
        let diagnosis = run.diagnosis();
        let problems = diagnosis.verdicts.iter();
        let problems = problems.filter(|v| v.severity == Severity::Problem);
        let hash = |text: &str| format!("{:x}", Sha256::digest(text));
        let columns = model.columns.iter().zip(synthesis.origins());
        let mut about = About {
            run: run.place().display().to_string(),
            private: run.is_private() && covariates.as_ref().is_none_or(|of| of.private),
            statement: run.statement().to_owned(),
            epsilon: report["epsilon"].clone(),
            delta: report["delta"].clone(),
            relation: report["relation"].clone(),
            unit: report["unit"].clone(),
            further_epsilon: covariates.as_ref().map_or(0.0, |of| of.epsilon),
            covariates,
            model_sha256: hash(&model.source),
            constants_sha256: model.constants.as_deref().map(hash),
            rows: synthesis.rows,
            seed: synthesis.seed,
            public_sample,
            tables: files
                .iter()
                .zip(drawn)
                .map(|(file, drawn)| TableOf {
                    file: file.clone(),
                    drawn,
                })
                .collect(),
            columns: columns
                .map(|(column, origin)| ColumnOf {
                    name: column.name.clone(),
                    origin,
                    lower: column.lower,
                    upper: column.upper,
                })
                .collect(),
            decision: diagnosis.decision,
            problems: problems.map(|v| v.sentence.clone()).collect(),
            good_for: Vec::new(),
            not_good_for: Vec::new(),
            notes: Vec::new(),
            version: env!("CARGO_PKG_VERSION"),
        };
        about.judge(run.is_unfinished(), run.config());
        about
    }

    fn judge(&mut self, is_unfinished: bool, config: &Value) {
        let predicted = self.names(|origin| origin == Origin::PosteriorPredictive);
        let unlike = self.names(|origin| matches!(origin, Origin::Uniform | Origin::StandIn));
        self.good_for = vec![
            "writing and testing the code of an analysis, and teaching: columns, types, words and bounds are those of the data".to_owned(),
            match self.tables.len() {
                1 => format!("a look at what the model says about {predicted}; for estimates with intervals, several tables are needed (--tables)"),
                m => format!("estimates of what the model describes ({predicted}), with intervals from all {m} tables: `dpm pool --rule full`"),
            },
        ];
        self.not_good_for = vec![
            "relations that the model does not have: interactions, curves, groups and dependences between columns that it leaves out are not in the tables, even if they are in the data".to_owned(),
            "checking the model: the tables agree with it by construction".to_owned(),
            "standard errors from one table treated as data: they ignore the uncertainty of the draw".to_owned(),
        ];
        let alone = self.names(|origin| matches!(origin, Origin::Guess | Origin::PrivateMarginal));
        if !alone.is_empty() {
            self.not_good_for.push(format!(
                "relations among covariates ({alone}), which were drawn independently of each other, and whatever depends on these relations, such as means of outcomes over the population"
            ));
        }
        if let Some(of) = &self.covariates {
            let columns = self.names(|origin| origin == Origin::PrivateMarginal);
            self.good_for.push(format!(
                "each covariate by itself ({columns}): shares of values and of ranges, whose privacy noise has a standard deviation of {:.4}; within a range values are spread evenly",
                of.noise_of_share
            ));
        }
        if !unlike.is_empty() {
            self.not_good_for.push(format!(
                "anything about {unlike} alone: the model does not describe {}, so that the values are made up from the declared bounds and are not like the real ones; an estimate that depends on how they are distributed is not one of the data",
                if unlike.contains(',') { "these columns" } else { "this column" }
            ));
        }
        self.notes = vec![
            if self.private && self.covariates.is_some() {
                "The run's noise of privacy is in the tables, through the draws, and that of the covariates' release. The promise of the run and that of the release cover them together, and further tables from both cost nothing."
            } else if self.private {
                "The run's noise of privacy is in the tables, through the draws. They are post-processing of released draws: the promise of the run covers them, and further tables from it cost nothing."
            } else {
                "NOT PRIVATE: the run has no privacy, and neither have these tables. Further tables change nothing about that."
            }
            .to_owned(),
            "More tables or rows bring no more information on the data than the run's draws have.".to_owned(),
            "Values stay between their declared bounds, and none is missing.".to_owned(),
        ];
        if self
            .unit
            .as_str()
            .is_some_and(|unit| unit != crate::output::RECORD)
        {
            self.notes.push(
                "Rows are drawn independently: which rows belong to one unit is not in the tables."
                    .to_owned(),
            );
        }
        if config["temperature"].is_number() {
            self.notes.push(
                "The run was tempered: its draws spread more than a posterior, and intervals by `dpm pool` are too wide.".to_owned(),
            );
        }
        if is_unfinished {
            self.notes
                .push("The run is not finished, and these are not all of its draws.".to_owned());
        }
    }

    /// The columns of such an origin.
    fn names(&self, which: impl Fn(Origin) -> bool) -> String {
        let columns = self.columns.iter().filter(|column| which(column.origin));
        let names: Vec<&str> = columns.map(|column| column.name.as_str()).collect();
        names.join(", ")
    }

    /// The columns whose values are made up from bounds alone.
    pub fn made_up(&self) -> String {
        self.names(|origin| matches!(origin, Origin::Uniform | Origin::StandIn))
    }

    /// The problems of the run's diagnosis.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The same for people, as Markdown.
    pub fn to_markdown(&self) -> String {
        let mut text = String::from("# Synthetic tables\n\n");
        if !self.private {
            text.push_str("**NOT PRIVATE**\n\n");
        }
        let _ = writeln!(
            text,
            "{} table{} of {} rows, drawn from the model of the run `{}` at released draws of its parameters, one draw for each table. No row is a record of the data.\n\n{}",
            self.tables.len(),
            if self.tables.len() == 1 { "" } else { "s" },
            self.rows,
            self.run,
            self.statement
        );
        if let Some(of) = &self.covariates {
            let _ = writeln!(
                text,
                "\nThe distributions of the covariates were released from the data for epsilon {:.6} at delta {:e} ({}, unit {}), in addition to the run. They are in `{}`, which `dpm synth --metadata` takes for further tables, free of charge.",
                of.epsilon, of.delta, of.relation, of.unit, of.codebook
            );
        }
        if !self.problems.is_empty() {
            let _ = writeln!(text, "\n**{}**\n", self.decision.sentence());
            list(&mut text, &self.problems);
        }
        for (title, sentences) in [
            ("Good for", &self.good_for),
            ("Not good for", &self.not_good_for),
            ("Notes", &self.notes),
        ] {
            let _ = writeln!(text, "\n## {title}\n");
            list(&mut text, sentences);
        }
        text.push_str("\n## Columns\n\n| column | values |\n|---|---|\n");
        for column in &self.columns {
            let _ = writeln!(text, "| `{}` | {} |", column.name, in_words(column.origin));
        }
        text.push_str("\n## Tables\n\n| file | chain | draw |\n|---|---|---|\n");
        for TableOf { file, drawn } in &self.tables {
            let _ = writeln!(text, "| `{file}` | {} | {} |", drawn.chain, drawn.draw);
        }
        let _ = writeln!(
            text,
            "\nSeed {}, model (SHA-256) `{}`, dpm {}",
            self.seed, self.model_sha256, self.version
        );
        text
    }
}

fn list(text: &mut String, sentences: &[String]) {
    for sentence in sentences {
        let _ = writeln!(text, "- {sentence}");
    }
}

fn in_words(origin: Origin) -> &'static str {
    match origin {
        Origin::PosteriorPredictive => {
            "posterior predictive: drawn from the model at the table's draw"
        }
        Origin::PublicSample => "from the rows of the public sample",
        Origin::PrivateMarginal => {
            "from the column's own distribution in the data, released with noise; independent of other covariates"
        }
        Origin::Guess => {
            "from the public guess of the codebook, each column by itself: as like the real ones as the guess is"
        }
        Origin::Uniform => "uniform between the declared bounds: not like the real ones",
        Origin::StandIn => {
            "a standard normal or exponential distribution, since a bound is missing: not like the real ones"
        }
    }
}
