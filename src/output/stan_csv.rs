//! Stan CSV: one chain's draws as CmdStan writes them, for arviz, cmdstanpy and cmdstanr.
//!
//! The requirements of the readers, beyond a header line and rows of numbers (arviz 0.23, cmdstanpy
//! 1.3, cmdstanr):
//!
//! - `# key = value` lines with values of a single token; `method = sample`, `model`, `id`,
//!   `num_samples`, `num_warmup`, `thin`, `save_warmup`, `algorithm` among them.
//! - The first column is `lp__`. Ours is NaN in every row: the log density of the data
//!   is never released. `accept_stat__` follows.
//! - `ceil(num_samples / thin)` rows, and at least two comment lines after them.
//! - cmdstanpy expects the adaptation block of HMC unless the algorithm is `fixed_param`, and
//!   `cmdstanr::as_cmdstan_fit` refuses a `fixed_param` unless it is told not to check diagnostics,
//!   and wants the columns of NUTS from all others. So chains of NUTS under the unit metric, which
//!   those of dp-laplace are, are written as `algorithm = hmc`, `engine = nuts` with that block; all
//!   others as `algorithm = fixed_param`. The key `dpm_algorithm` is the algorithm.
//! - cmdstanpy refuses `num_warmup = 0`. A run without warm-up is therefore written as
//!   `num_warmup = 1`, `save_warmup = 0`: one iteration without a row, so that no reader drops or
//!   miscounts a draw. The key `dpm_num_warmup` is the true number either way.

mod header;
mod read;

use std::fmt::Write as _;
use std::io::{self, Write};

pub use header::{Metric, StanCsvHeader};
pub(crate) use read::parse_stan_csv;
pub use read::{ReadStanCsvError, StanCsv, read_stan_csv};

use crate::diagnostics::dot_name;
use header::is_token_char;

/// Wall-clock seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Timing {
    pub warmup: f64,
    pub sampling: f64,
}

/// The reason why a chain cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteStanCsvError {
    #[error("cannot write the draws: {0}")]
    Io(#[from] io::Error),
    #[error("thin must be at least 1")]
    NoThin,
    #[error(
        "'{key} = {value}' cannot stand in a Stan CSV header: key and value must be single \
         words without '=', and the key must not be one of the header's own"
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
        "{found} sampling draws, expected {expected}: {iterations} iterations, one in {thin} kept"
    )]
    Rows {
        found: usize,
        expected: usize,
        iterations: usize,
        thin: usize,
    },
}

/// Writes one chain: all its sampling draws, then [`Self::finish`].
///
/// It is given the draws that are kept ([`StanCsvHeader::keeps`]) and checks at the end that their
/// number is that in the header.
pub struct StanCsvWriter<W: Write> {
    out: W,
    header: StanCsvHeader,
    sampler_columns: usize,
    parameters: usize,
    rows: usize,
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
    /// A header or a name that readers would not accept, or the writer's own error.
    pub fn new(
        mut out: W,
        header: StanCsvHeader,
        sampler_columns: &[String],
        parameters: &[String],
    ) -> Result<Self, WriteStanCsvError> {
        header.check()?;
        let mut columns = vec!["lp__".to_owned(), "accept_stat__".to_owned()];
        for name in sampler_columns {
            if !name.ends_with("__") || name == "lp__" || name == "accept_stat__" {
                return Err(WriteStanCsvError::SamplerColumn(name.clone()));
            }
            columns.push(name.clone());
        }
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
        if let Some(lines) = header.adaptation() {
            out.write_all(lines.as_bytes())?;
        }
        Ok(Self {
            out,
            header,
            sampler_columns: sampler_columns.len(),
            parameters: parameters.len(),
            rows: 0,
            line: String::new(),
        })
    }

    /// One kept sampling draw.
    ///
    /// `accept_stat` is the acceptance probability (NaN where there is none), `sampler` the
    /// values of the sampler's columns, `parameters` those of the parameters.
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
        self.rows += 1;
        check_width("sampler values", sampler.len(), self.sampler_columns)?;
        check_width("parameter values", parameters.len(), self.parameters)?;
        self.line.clear();
        self.line.push_str("nan");
        let values = std::iter::once(&accept_stat)
            .chain(sampler)
            .chain(parameters);
        for &value in values {
            self.line.push(',');
            push_number(&mut self.line, value);
        }
        self.line.push('\n');
        self.out.write_all(self.line.as_bytes())?;
        Ok(())
    }

    /// Writes the timing lines and returns the writer, flushed.
    ///
    /// # Errors
    ///
    /// Fewer or more draws than the header announced, or the writer's own error.
    pub fn finish(mut self, timing: Timing) -> Result<W, WriteStanCsvError> {
        let iterations = self.header.num_samples;
        let (found, expected) = (self.rows, self.header.rows(iterations));
        if found != expected {
            return Err(WriteStanCsvError::Rows {
                found,
                expected,
                iterations,
                thin: self.header.thin,
            });
        }
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
            algorithm: "dp-hmc".to_owned(),
            metric: Metric::Unit,
            max_depth: None,
            nuts_step_size: None,
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
        let samples = header.rows(header.num_samples);
        let names = strings(&["alpha", "m[2,1]"]);
        let mut writer = StanCsvWriter::new(Vec::new(), header, &[], &names).unwrap();
        for i in 0..samples {
            writer.draw(1.0, &[], &[i as f64 + 0.1, 1e-7]).unwrap();
        }
        String::from_utf8(writer.finish(TIMING).unwrap()).unwrap()
    }

    #[test]
    fn chains_of_nuts_are_written_as_such() {
        let header = StanCsvHeader {
            num_samples: 0,
            max_depth: Some(10),
            nuts_step_size: Some(0.25),
            ..header()
        };
        let writer = StanCsvWriter::new(Vec::new(), header, &[], &strings(&["mu"])).unwrap();
        let text = String::from_utf8(writer.finish(TIMING).unwrap()).unwrap();
        for lines in [
            "# algorithm = hmc\n# engine = nuts\n# metric = unit_e\n# max_depth = 10\n",
            "mu\n# Adaptation terminated\n# Step size = 0.25\n# No free parameters",
        ] {
            assert!(text.contains(lines), "{text}");
        }
    }

    #[test]
    fn it_has_no_warmup_and_is_fixed_param() {
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
    fn no_warmup_at_all_is_announced_as_one_unsaved_iteration() {
        let text = written(StanCsvHeader {
            num_warmup: 0,
            ..header()
        });
        assert!(
            text.contains("# num_warmup = 1\n# save_warmup = 0\n"),
            "{text}"
        );
        assert!(text.contains("# dpm_num_warmup = 0\n"), "{text}");
    }

    #[test]
    fn numbers_keep_every_bit() {
        let number = |x: f64| {
            let mut text = String::new();
            push_number(&mut text, x);
            text
        };
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
        let header_with = |key: &str, value: &str| StanCsvHeader {
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
                matches!(refused(header_with(key, value), &[], &["x"]), E::Key { .. }),
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
        let error = new().finish(TIMING).unwrap_err();
        assert_eq!(
            error.to_string(),
            "0 sampling draws, expected 3: 3 iterations, one in 1 kept"
        );
    }
}
