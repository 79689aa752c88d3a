//! The lines above the draws: a description of the run, as keys and values.

use super::WriteStanCsvError;

/// The header above the draws.
#[derive(Debug, Clone, PartialEq)]
pub struct StanCsvHeader {
    /// The model's name without folder or extension; written as `NAME_model`, whitespace
    /// as underscores, as CmdStan does.
    pub model: String,
    /// The chain's number, from 1.
    pub id: u32,
    /// Sampling iterations before thinning.
    pub num_samples: usize,
    /// Warm-up iterations before thinning; may be zero, see the module's documentation.
    pub num_warmup: usize,
    /// One in `thin` iterations is written; at least 1.
    pub thin: usize,
    /// The sampler's own name, such as `dp-hmc`.
    pub algorithm: String,
    /// The form of the mass matrix; [`Metric::Unit`] for samplers without one.
    pub metric: Metric,
    /// The deepest tree of NUTS; `None` for other samplers.
    pub max_depth: Option<u32>,
    /// Further keys, such as (`privacy_epsilon`, `1`). Single tokens.
    pub extra: Vec<(String, String)>,
}

/// The form of an inverse mass matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    Unit,
    Diagonal,
    Dense,
}

impl StanCsvHeader {
    /// How many draws are written of `iterations`: one in `thin`, the first always.
    pub fn rows(&self, iterations: usize) -> usize {
        iterations.div_ceil(self.thin.max(1))
    }

    /// Whether the draw of an iteration, from 0 within its phase, is written.
    pub fn keeps(&self, iteration: usize) -> bool {
        iteration.is_multiple_of(self.thin.max(1))
    }

    pub(super) fn check(&self) -> Result<(), WriteStanCsvError> {
        if self.thin == 0 {
            return Err(WriteStanCsvError::NoThin);
        }
        refuse_unless(is_token(&self.algorithm), "dpm_algorithm", &self.algorithm)?;
        // cmdstanpy reads `file` as the data file's name, arviz splits stan_version_ keys.
        let mut taken = vec!["file"];
        taken.extend(self.own_keys().into_iter().map(|(key, _)| key));
        for (key, value) in &self.extra {
            let free = !taken.contains(&key.as_str()) && !key.starts_with("stan_version_");
            let word = is_token(key) && is_token(value) && !key.starts_with('#');
            refuse_unless(free && word, key, value)?;
            taken.push(key);
        }
        Ok(())
    }

    /// The keys every header has, in CmdStan's order, then our own.
    pub(super) fn own_keys(&self) -> Vec<(&'static str, String)> {
        let model: String = self
            .model
            .chars()
            .map(|c| if is_token_char(c) && c != '=' { c } else { '_' })
            .collect();
        vec![
            ("model", format!("{model}_model")),
            ("method", "sample".to_owned()),
            ("num_samples", self.num_samples.to_string()),
            ("num_warmup", self.num_warmup.max(1).to_string()),
            ("save_warmup", "0".to_owned()),
            ("thin", self.thin.to_string()),
            ("algorithm", "fixed_param".to_owned()),
            ("metric", self.metric.key().to_owned()),
            ("max_depth", self.max_depth.unwrap_or(0).to_string()),
            ("id", self.id.to_string()),
            ("dpm_algorithm", self.algorithm.clone()),
            ("dpm_num_warmup", self.num_warmup.to_string()),
        ]
    }
}

impl Metric {
    fn key(self) -> &'static str {
        match self {
            Self::Unit => "unit_e",
            Self::Diagonal => "diag_e",
            Self::Dense => "dense_e",
        }
    }
}

fn refuse_unless(good: bool, key: &str, value: &str) -> Result<(), WriteStanCsvError> {
    if good {
        return Ok(());
    }
    Err(WriteStanCsvError::Key {
        key: key.to_owned(),
        value: value.to_owned(),
    })
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && !text.contains('=') && text.chars().all(is_token_char)
}

pub(super) fn is_token_char(c: char) -> bool {
    !c.is_whitespace() && !c.is_control()
}

#[cfg(test)]
mod tests {
    use super::super::tests::header;
    use super::*;

    #[test]
    fn thinning_keeps_the_first_of_each_group() {
        let header = StanCsvHeader {
            thin: 3,
            ..header()
        };
        assert_eq!((header.rows(7), header.rows(6), header.rows(0)), (3, 2, 0));
        let kept: Vec<usize> = (0..7).filter(|&i| header.keeps(i)).collect();
        assert_eq!(kept, [0, 3, 6]);
    }
}
