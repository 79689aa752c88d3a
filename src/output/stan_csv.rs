//! Stan CSV: one chain's draws as CmdStan writes them, for arviz, cmdstanpy and cmdstanr.
//!
//! What the readers require, beyond a header line and rows of numbers (arviz 0.23,
//! cmdstanpy 1.3, cmdstanr):
//!
//! - `# key = value` lines with values of a single token; `method = sample`, `model`, `id`,
//!   `num_samples`, `num_warmup`, `thin`, `save_warmup`, `algorithm` among them.
//! - The first column is `lp__`. Ours is NaN in every row: the log density of the data
//!   is never released. `accept_stat__` follows.
//! - `ceil(num_samples / thin)` rows, and at least two comment lines after them.
//! - cmdstanpy expects the adaptation block of HMC after the warm-up draws unless
//!   the algorithm is `fixed_param`, and takes any file with fewer than seven columns ending in
//!   `__` for `fixed_param`; in a `fixed_param` file it allows no warm-up draws.
//!
//! Hence a file without warm-up draws says `algorithm = fixed_param`; one with them
//! names its own algorithm, has an adaptation block, and is filled up with empty columns
//! (`unused_1__`, NaN) to the seven. The key `dpm_algorithm` is the algorithm either way.
//!
//! - cmdstanpy refuses `num_warmup = 0`. A run without warm-up is therefore written as
//!   `num_warmup = 1`, `save_warmup = 0`: one iteration that no row stands for, so that no reader
//!   drops or miscounts a draw. The key `dpm_num_warmup` is the true number either way.
//! - Of the saved warm-up, arviz takes `floor(num_warmup / thin)` rows and CmdStan writes
//!   `ceil`, so `thin` must divide `num_warmup` where warm-up draws are saved.

mod header;
mod read;

use std::fmt::Write as _;
use std::io::{self, Write};

pub use header::{Metric, StanCsvHeader};
pub(crate) use read::parse_stan_csv;
pub use read::{ReadStanCsvError, StanCsv, read_stan_csv};

use crate::diagnostics::dot_name;
use header::is_token_char;

/// cmdstanpy takes a file with fewer columns ending in `__` for `fixed_param`.
const HMC_COLUMNS: usize = 7;

/// What warm-up arrived at.
#[derive(Debug, Clone, PartialEq)]
pub struct Adaptation {
    /// NaN for a sampler without one.
    pub step_size: f64,
    /// On the unconstrained scale: no row for [`Metric::Unit`], one row, the diagonal, for
    /// [`Metric::Diagonal`], all rows for [`Metric::Dense`].
    pub inverse_metric: Vec<Vec<f64>>,
}

/// Wall-clock seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    pub warmup: f64,
    pub sampling: f64,
}

/// Why a chain cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteStanCsvError {
    #[error("cannot write the draws: {0}")]
    Io(#[from] io::Error),
    #[error("thin must be at least 1")]
    NoThin,
    #[error(
        "{num_warmup} warm-up iterations are not a multiple of thin = {thin}, and readers differ in \
         how many draws of them they expect: choose a multiple, or do not save the warm-up"
    )]
    UnevenWarmup { num_warmup: usize, thin: usize },
    #[error(
        "'{key} = {value}' cannot stand in a Stan CSV header: key and value must be single \
         words without '=', and the key none that the header has of itself"
    )]
    Key { key: String, value: String },
    #[error("'{0}' cannot be a column: a name has no comma, quotation mark, white space or '#'")]
    Column(String),
    #[error("the sampler column '{0}' must end in __ and be none of lp__, accept_stat__")]
    SamplerColumn(String),
    #[error("the parameter '{0}' must not end in __, which marks the sampler's columns")]
    ParameterColumn(String),
    #[error("the column '{0}' appears twice")]
    RepeatedColumn(String),
    #[error("a draw has {found} {what}, expected {expected}")]
    Width {
        what: &'static str,
        found: usize,
        expected: usize,
    },
    #[error(
        "{found} {phase} draws, expected {expected}: {iterations} iterations, one in {thin} kept"
    )]
    Rows {
        phase: &'static str,
        found: usize,
        expected: usize,
        iterations: usize,
        thin: usize,
    },
    #[error("a warm-up draw after the first sampling draw or the end of warm-up")]
    LateWarmup,
    #[error("the end of warm-up is written once, before the first sampling draw")]
    LateAdaptation,
    #[error("the inverse mass matrix does not have the form of the header's metric")]
    InverseMetric,
}

/// Writes one chain, draw by draw: all warm-up draws, [`Self::end_warmup`], all sampling
/// draws, [`Self::finish`].
///
/// It is handed the draws that are kept ([`StanCsvHeader::keeps`]) and checks in the end that
/// they were as many as the header says.
pub struct StanCsvWriter<W: Write> {
    out: W,
    header: StanCsvHeader,
    sampler_columns: usize,
    unused_columns: usize,
    parameters: usize,
    warmup_rows: usize,
    sampling_rows: usize,
    warmup_ended: bool,
    line: String,
}

impl<W: Write> StanCsvWriter<W> {
    /// Writes the header. `sampler_columns` are the sampler's own beyond `lp__` and `accept_stat__`,
    /// their names ending in `__` (`stepsize__`, `n_leapfrog__`). `parameters` are element names
    /// in either spelling, containers column-major
    /// ([`element_names`](crate::diagnostics::element_names) gives them so).
    ///
    /// # Errors
    ///
    /// A header or a name that readers would not take, or the writer's own error.
    pub fn new(
        mut out: W,
        header: StanCsvHeader,
        sampler_columns: &[String],
        parameters: &[String],
    ) -> Result<Self, WriteStanCsvError> {
        header.check()?;
        let unused_columns = if header.writes_warmup() {
            HMC_COLUMNS.saturating_sub(2 + sampler_columns.len())
        } else {
            0
        };
        let mut columns = vec!["lp__".to_owned(), "accept_stat__".to_owned()];
        for name in sampler_columns {
            if !name.ends_with("__") || name == "lp__" || name == "accept_stat__" {
                return Err(WriteStanCsvError::SamplerColumn(name.clone()));
            }
            columns.push(name.clone());
        }
        columns.extend((1..=unused_columns).map(|i| format!("unused_{i}__")));
        for name in parameters {
            if name.ends_with("__") {
                return Err(WriteStanCsvError::ParameterColumn(name.clone()));
            }
            columns.push(dot_name(name));
        }
        check_columns(&columns)?;

        for (key, value) in header.own_keys() {
            writeln!(out, "# {key} = {value}")?;
        }
        for (key, value) in &header.extra {
            writeln!(out, "# {key} = {value}")?;
        }
        writeln!(out, "{}", columns.join(","))?;
        Ok(Self {
            out,
            header,
            sampler_columns: sampler_columns.len(),
            unused_columns,
            parameters: parameters.len(),
            warmup_rows: 0,
            sampling_rows: 0,
            warmup_ended: false,
            line: String::new(),
        })
    }

    /// One kept warm-up draw; left out of the file unless `save_warmup`.
    ///
    /// `accept_stat` is the acceptance probability (NaN where there is none), `sampler` the
    /// values of the sampler's columns, `parameters` those of the parameters.
    ///
    /// # Errors
    ///
    /// A draw of the wrong width, one after the end of warm-up, or the writer's own error.
    pub fn warmup_draw(
        &mut self,
        accept_stat: f64,
        sampler: &[f64],
        parameters: &[f64],
    ) -> Result<(), WriteStanCsvError> {
        if self.warmup_ended {
            return Err(WriteStanCsvError::LateWarmup);
        }
        self.warmup_rows += 1;
        if self.header.writes_warmup() {
            self.row(accept_stat, sampler, parameters)?;
        }
        Ok(())
    }

    /// Writes what warm-up arrived at, for readers that show step sizes and mass matrices. May
    /// be left out by a sampler that has neither.
    ///
    /// # Errors
    ///
    /// Called twice or after a sampling draw, a matrix that is not of the header's metric, or
    /// the writer's own error.
    pub fn end_warmup(&mut self, adaptation: &Adaptation) -> Result<(), WriteStanCsvError> {
        if self.warmup_ended {
            return Err(WriteStanCsvError::LateAdaptation);
        }
        if !self.header.metric.admits(&adaptation.inverse_metric) {
            return Err(WriteStanCsvError::InverseMetric);
        }
        self.adaptation_block(adaptation)
    }

    /// One kept sampling draw; values as in [`Self::warmup_draw`].
    ///
    /// # Errors
    ///
    /// A draw of the wrong width, or the writer's own error.
    pub fn draw(
        &mut self,
        accept_stat: f64,
        sampler: &[f64],
        parameters: &[f64],
    ) -> Result<(), WriteStanCsvError> {
        if !self.warmup_ended {
            self.default_adaptation()?;
        }
        self.sampling_rows += 1;
        self.row(accept_stat, sampler, parameters)
    }

    /// Writes the timing lines and hands the writer back, flushed.
    ///
    /// # Errors
    ///
    /// Fewer or more draws than the header announced, or the writer's own error.
    pub fn finish(mut self, timing: Timing) -> Result<W, WriteStanCsvError> {
        if !self.warmup_ended {
            self.default_adaptation()?;
        }
        let saved = if self.header.writes_warmup() {
            self.header.num_warmup
        } else {
            0
        };
        if saved > 0 {
            self.check_rows("warm-up", self.warmup_rows, saved)?;
        }
        self.check_rows("sampling", self.sampling_rows, self.header.num_samples)?;
        let Timing { warmup, sampling } = timing;
        let total = warmup + sampling;
        writeln!(self.out, "# ")?;
        writeln!(self.out, "#  Elapsed Time: {warmup:.3} seconds (Warm-up)")?;
        writeln!(
            self.out,
            "#                {sampling:.3} seconds (Sampling)"
        )?;
        writeln!(self.out, "#                {total:.3} seconds (Total)")?;
        writeln!(self.out, "# ")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn check_rows(
        &self,
        phase: &'static str,
        found: usize,
        iterations: usize,
    ) -> Result<(), WriteStanCsvError> {
        let (expected, thin) = (self.header.rows(iterations), self.header.thin);
        if found == expected {
            return Ok(());
        }
        Err(WriteStanCsvError::Rows {
            phase,
            found,
            expected,
            iterations,
            thin,
        })
    }

    /// Where the sampler told nothing: the block only if cmdstanpy looks for it.
    fn default_adaptation(&mut self) -> Result<(), WriteStanCsvError> {
        self.warmup_ended = true;
        if !self.header.writes_warmup() {
            return Ok(());
        }
        if self.header.metric != Metric::Unit {
            return Err(WriteStanCsvError::InverseMetric);
        }
        self.adaptation_block(&Adaptation {
            step_size: f64::NAN,
            inverse_metric: Vec::new(),
        })
    }

    fn adaptation_block(&mut self, adaptation: &Adaptation) -> Result<(), WriteStanCsvError> {
        self.warmup_ended = true;
        writeln!(self.out, "# Adaptation terminated")?;
        writeln!(self.out, "# Step size = {}", number(adaptation.step_size))?;
        let title = match self.header.metric {
            Metric::Unit => "No free parameters for unit metric",
            Metric::Diagonal => "Diagonal elements of inverse mass matrix:",
            Metric::Dense => "Elements of inverse mass matrix:",
        };
        writeln!(self.out, "# {title}")?;
        for row in &adaptation.inverse_metric {
            let cells: Vec<String> = row.iter().map(|&x| number(x)).collect();
            writeln!(self.out, "# {}", cells.join(", "))?;
        }
        Ok(())
    }

    fn row(
        &mut self,
        accept_stat: f64,
        sampler: &[f64],
        parameters: &[f64],
    ) -> Result<(), WriteStanCsvError> {
        check_width("sampler values", sampler.len(), self.sampler_columns)?;
        check_width("parameter values", parameters.len(), self.parameters)?;
        self.line.clear();
        self.line.push_str("nan");
        let unused = std::iter::repeat_n(&f64::NAN, self.unused_columns);
        let values = std::iter::once(&accept_stat)
            .chain(sampler)
            .chain(unused)
            .chain(parameters);
        for &value in values {
            self.line.push(',');
            push_number(&mut self.line, value);
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        Ok(())
    }
}

fn check_width(what: &'static str, found: usize, expected: usize) -> Result<(), WriteStanCsvError> {
    if found == expected {
        return Ok(());
    }
    Err(WriteStanCsvError::Width {
        what,
        found,
        expected,
    })
}

fn check_columns(columns: &[String]) -> Result<(), WriteStanCsvError> {
    let mut seen = std::collections::HashSet::new();
    for column in columns {
        let spoils = |c: char| c == ',' || c == '"' || c == '#' || !is_token_char(c);
        if column.is_empty() || column.chars().any(spoils) {
            return Err(WriteStanCsvError::Column(column.clone()));
        }
        if !seen.insert(column.as_str()) {
            return Err(WriteStanCsvError::RepeatedColumn(column.clone()));
        }
    }
    Ok(())
}

fn number(x: f64) -> String {
    let mut text = String::new();
    push_number(&mut text, x);
    text
}

/// The fewest digits that read back as the same double; `nan` and `inf` as CmdStan has them.
pub(super) fn push_number(text: &mut String, x: f64) {
    let plain = x == 0.0 || (1e-5..1e16).contains(&x.abs());
    // Writing to a string cannot fail.
    let _ = match x {
        _ if x.is_nan() => write!(text, "nan"),
        _ if plain || x.is_infinite() => write!(text, "{x}"),
        _ => write!(text, "{x:e}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn header() -> StanCsvHeader {
        StanCsvHeader {
            model: "radon".to_owned(),
            id: 2,
            num_samples: 3,
            num_warmup: 2,
            thin: 1,
            save_warmup: false,
            algorithm: "dp-hmc".to_owned(),
            metric: Metric::Unit,
            max_depth: None,
            extra: vec![("privacy_epsilon".to_owned(), "1".to_owned())],
        }
    }

    pub(super) fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(|&n| n.to_owned()).collect()
    }

    const TIMING: Timing = Timing {
        warmup: 0.5,
        sampling: 1.25,
    };

    fn written(header: StanCsvHeader) -> String {
        let (warmup, samples) = (
            header.rows(header.num_warmup),
            header.rows(header.num_samples),
        );
        let names = strings(&["alpha", "m[2,1]"]);
        let mut writer = StanCsvWriter::new(Vec::new(), header, &[], &names).unwrap();
        for i in 0..warmup {
            writer.warmup_draw(0.5, &[], &[i as f64, 0.25]).unwrap();
        }
        for i in 0..samples {
            writer.draw(1.0, &[], &[i as f64 + 0.1, 1e-7]).unwrap();
        }
        String::from_utf8(writer.finish(TIMING).unwrap()).unwrap()
    }

    #[test]
    fn without_warmup_it_is_fixed_param() {
        assert_eq!(
            written(header()),
            "\
# model = radon_model
# method = sample
# num_samples = 3
# num_warmup = 2
# save_warmup = 0
# thin = 1
# algorithm = fixed_param
# metric = unit_e
# max_depth = 0
# id = 2
# dpm_algorithm = dp-hmc
# dpm_num_warmup = 2
# privacy_epsilon = 1
lp__,accept_stat__,alpha,m.2.1
nan,1,0.1,1e-7
nan,1,1.1,1e-7
nan,1,2.1,1e-7
# 
#  Elapsed Time: 0.500 seconds (Warm-up)
#                1.250 seconds (Sampling)
#                1.750 seconds (Total)
# 
"
        );
    }

    #[test]
    fn with_warmup_it_has_seven_sampler_columns_and_an_adaptation_block() {
        let text = written(StanCsvHeader {
            save_warmup: true,
            ..header()
        });
        assert!(text.contains("# algorithm = dp-hmc\n"), "{text}");
        assert!(text.contains(
            "lp__,accept_stat__,unused_1__,unused_2__,unused_3__,unused_4__,unused_5__,alpha,m.2.1\n\
             nan,0.5,nan,nan,nan,nan,nan,0,0.25\n\
             nan,0.5,nan,nan,nan,nan,nan,1,0.25\n\
             # Adaptation terminated\n# Step size = nan\n# No free parameters for unit metric\n\
             nan,1,nan,nan,nan,nan,nan,0.1,1e-7\n"
        ), "{text}");
    }

    #[test]
    fn no_warmup_at_all_is_announced_as_one_unsaved_iteration() {
        let text = written(StanCsvHeader {
            num_warmup: 0,
            save_warmup: true,
            ..header()
        });
        assert!(
            text.contains("# num_warmup = 1\n# save_warmup = 0\n"),
            "{text}"
        );
        assert!(text.contains("# dpm_num_warmup = 0\n"), "{text}");
    }

    #[test]
    fn a_dense_metric_is_written_row_by_row() {
        let header = StanCsvHeader {
            metric: Metric::Dense,
            num_samples: 0,
            ..header()
        };
        let mut writer = StanCsvWriter::new(Vec::new(), header, &[], &[]).unwrap();
        let square = Adaptation {
            step_size: 0.25,
            inverse_metric: vec![vec![1.0, 0.5], vec![0.5, 2.0]],
        };
        let ragged = Adaptation {
            step_size: 0.25,
            inverse_metric: vec![vec![1.0, 0.5]],
        };
        assert!(matches!(
            writer.end_warmup(&ragged),
            Err(WriteStanCsvError::InverseMetric)
        ));
        writer.end_warmup(&square).unwrap();
        assert!(matches!(
            writer.end_warmup(&square),
            Err(WriteStanCsvError::LateAdaptation)
        ));
        let text = String::from_utf8(writer.finish(TIMING).unwrap()).unwrap();
        assert!(text.contains(
            "# Step size = 0.25\n# Elements of inverse mass matrix:\n# 1, 0.5\n# 0.5, 2\n"
        ));
    }

    #[test]
    fn numbers_keep_every_bit() {
        let values = [
            0.1,
            -0.0,
            1.0 / 3.0,
            5e-324,
            f64::MAX,
            1e16,
            9.999e15,
            -1e-5,
            1e-6,
            f64::INFINITY,
        ];
        for x in values {
            assert_eq!(
                number(x).parse::<f64>().unwrap().to_bits(),
                x.to_bits(),
                "{x:e}"
            );
            assert!(number(x).len() < 25);
        }
        assert_eq!(number(f64::NAN), "nan");
    }

    #[test]
    fn what_readers_would_misread_is_refused() {
        let refused = |header: StanCsvHeader, sampler: &[&str], parameters: &[&str]| {
            let (sampler, parameters) = (strings(sampler), strings(parameters));
            match StanCsvWriter::new(Vec::new(), header, &sampler, &parameters) {
                Ok(_) => panic!("accepted"),
                Err(error) => error,
            }
        };
        use WriteStanCsvError as E;
        let with = |key: &str, value: &str| StanCsvHeader {
            extra: vec![(key.to_owned(), value.to_owned())],
            ..header()
        };
        for (key, value) in [
            ("a b", "1"),
            ("a", "1 2"),
            ("a", ""),
            ("thin", "2"),
            ("dpm_algorithm", "other"),
            ("stan_version_major", "2"),
            ("file", "x"),
            ("a", "b=c"),
            ("a", "1\n2"),
        ] {
            assert!(
                matches!(refused(with(key, value), &[], &["x"]), E::Key { .. }),
                "{key} = {value}"
            );
        }
        assert!(matches!(
            refused(
                StanCsvHeader {
                    thin: 0,
                    ..header()
                },
                &[],
                &[]
            ),
            E::NoThin
        ));
        let uneven = StanCsvHeader {
            thin: 2,
            num_warmup: 5,
            save_warmup: true,
            ..header()
        };
        assert!(matches!(
            refused(uneven, &[], &[]),
            E::UnevenWarmup {
                num_warmup: 5,
                thin: 2
            }
        ));
        assert!(matches!(
            refused(header(), &["energy"], &[]),
            E::SamplerColumn(_)
        ));
        assert!(matches!(
            refused(header(), &["lp__"], &[]),
            E::SamplerColumn(_)
        ));
        assert!(matches!(
            refused(header(), &[], &["x__"]),
            E::ParameterColumn(_)
        ));
        assert!(matches!(refused(header(), &[], &["x y"]), E::Column(_)));
        assert!(matches!(
            refused(header(), &[], &["b.1", "b[1]"]),
            E::RepeatedColumn(_)
        ));
    }

    #[test]
    fn a_wrong_number_of_draws_or_values_is_refused() {
        let new = || StanCsvWriter::new(Vec::new(), header(), &[], &strings(&["x"])).unwrap();
        let mut writer = new();
        assert!(matches!(
            writer.draw(1.0, &[], &[]),
            Err(WriteStanCsvError::Width { .. })
        ));
        assert!(matches!(
            writer.warmup_draw(1.0, &[], &[1.0]),
            Err(WriteStanCsvError::LateWarmup)
        ));
        let error = new().finish(TIMING).unwrap_err();
        assert_eq!(
            error.to_string(),
            "0 sampling draws, expected 3: 3 iterations, one in 1 kept"
        );
    }
}
