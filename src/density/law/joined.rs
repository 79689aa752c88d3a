//! Outcomes with a joint density only, as those of a multivariate normal distribution: nodes of all at once.

use super::super::BLOCK;
use super::super::joint::{Normal, normals};
use super::super::support::Support;
use super::check::{JUDGED, Masses};
use super::{Drawn, Joined, Law, NoLaw, RECORDS, Scale, Step, TOLERANCE, Work};
use crate::model::Model;

/// The most outcomes that may be joined.
const MOST: usize = 7;

impl Law<'_> {
    /// The steps of joined outcomes, if their density is that of a normal distribution for public records at public
    /// parameters.
    ///
    /// Errors: they have another.
    pub(super) fn join(
        &self,
        drawn: &Drawn,
        steps: &[Step],
        records: &[Vec<f64>],
        places: &[Vec<f64>],
    ) -> Result<Vec<Step>, NoLaw> {
        let model = &self.density.model;
        let names: Vec<String> = steps.iter().map(|step| step.name.clone()).collect();
        let other = NoLaw::Joined {
            outcomes: names.clone(),
        };
        if steps.len() > MOST || steps.iter().any(|step| step.is_int) {
            return Err(other);
        }
        let base: Vec<&[f64]> = self.sources.iter().map(|&c| &records[c][..]).collect();
        let mut least: Option<f64> = None;
        for scales in scales(model, drawn) {
            let with = |(step, scale): (&Step, Scale)| Step {
                support: Support {
                    scale,
                    range: Some([None; 2]),
                    atoms: Vec::new(),
                },
                ..step.clone()
            };
            let steps: Vec<Step> = steps.iter().zip(scales).map(with).collect();
            let masses = Masses::at(places, |theta, add| {
                let mut work = self.work(&self.interface(theta), RECORDS);
                let found = self.normals(&steps, &base, RECORDS, &mut work);
                for (i, normal) in found.into_iter().enumerate() {
                    if let Some(normal) = normal {
                        add(i, normal.log_mass);
                    }
                }
            });
            if masses.judged() < JUDGED {
                continue;
            }
            if masses.off_one() <= TOLERANCE {
                return Ok(steps);
            }
            let moved = masses.moved();
            least = Some(least.map_or(moved, |l| l.min(moved)));
        }
        Err(least.map_or(other, |moved| NoLaw::NotNormalised {
            outcome: names.join("`, `"),
            factor: moved.exp(),
        }))
    }

    /// Puts joined outcomes into the nodes of a group: into `values`, `[outcome][node][BLOCK]` from the first of
    /// them on, and into `probabilities`, which are 0 where there is no distribution.
    pub(super) fn find_joined(
        &self,
        joined: Joined,
        group: &[usize],
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
        (values, probabilities): (&mut [f64], &mut [f64]),
    ) {
        let steps = &self.steps[joined.first..][..joined.count];
        let normals = self.normals(steps, base, rows, work);
        let each = self.nodes() * BLOCK;
        for &j in group {
            let point = &self.joined_points[self.digit(j, joined.first)];
            for (i, normal) in normals.iter().enumerate() {
                let at = j * BLOCK + i;
                let Some(normal) = normal else {
                    probabilities[at] = 0.0;
                    continue;
                };
                probabilities[at] *= point.weight;
                for (k, step) in steps.iter().enumerate() {
                    let value = normal.value(k, &point.scores);
                    values[k * each + at] = step.support.scale.back(value);
                }
            }
        }
    }

    /// The joint distribution of the outcomes of these steps, of each record of a block.
    pub(super) fn normals(
        &self,
        steps: &[Step],
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
    ) -> Vec<Option<Normal>> {
        let Work {
            program,
            log_densities,
            ..
        } = work;
        let mut is_first = true;
        normals(steps.len(), rows, |variates| {
            let trial = |(step, of_variate): (&Step, &Vec<f64>)| -> Vec<f64> {
                let scale = &step.support.scale;
                of_variate.iter().map(|v| scale.back(*v)).collect()
            };
            let trials: Vec<Vec<f64>> = steps.iter().zip(variates).map(trial).collect();
            let mut block = base.to_vec();
            for (step, trial) in steps.iter().zip(&trials) {
                block[step.position] = trial;
            }
            let changed = (!std::mem::take(&mut is_first)).then_some(&steps[0].dependents);
            let log_densities = &mut log_densities[..rows];
            self.evaluate_block((&steps[0].terms, changed), &block, program, log_densities);
            log_densities.to_vec()
        })
    }
}

/// The scales on which joined outcomes may have a density: those of its variates, and their own.
fn scales(model: &Model, drawn: &Drawn) -> Vec<Vec<Scale>> {
    let outcomes = || drawn.outcomes.iter().map(|&k| &model.outcomes[k]);
    let of_variates: Option<Vec<Scale>> = outcomes()
        .map(|o| Scale::of(model, o.column, o.variate))
        .collect();
    let own = vec![Scale::default(); drawn.outcomes.len()];
    let mut scales: Vec<Vec<Scale>> = of_variates.into_iter().collect();
    if !scales.contains(&own) {
        scales.push(own);
    }
    scales
}
