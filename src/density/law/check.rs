//! Whether the terms of an outcome are its density, and how its score grows: judged on public records
//! made up from the declarations, at public parameters.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

use super::super::simulate::Simulator;
use super::super::support::Support;
use super::super::{BLOCK, Frame, Sight, Space};
use super::conditional::Lost;
use super::standard::Standard;
use super::{Law, Located, NoLaw, RECORDS, Step, TOLERANCE};

/// An integral whose log is this near to 0 is 1 to the accuracy of the grid. One that is further
/// off may be that of a density whose tail is cut off by a bound.
const EXACT: f64 = 1e-4;
/// The scales of the public parameters, normal about the centre, at which integrals are computed: wide ones
/// to detect a difference, narrow ones for models that cannot be evaluated far out.
const SCALES: [f64; 8] = [1.0, 1.0, 0.3, 0.1, 0.03, 0.01, 1e-4, 1e-6];
/// Where nothing else is found, integrals at scales from `WIDE` on may be off by more, since the grid is
/// less accurate where an outcome spreads over several orders of magnitude: their logs count less by this.
const WIDE: f64 = 1.0;
const WIDE_WEIGHT: f64 = 0.2;
/// The share of records that may be wrong: a peak that the grid misses.
const ODD: f64 = 0.02;
/// The share of records of which the integral must be known at two places or more.
pub(super) const JUDGED: f64 = 0.1;
/// How far out an outcome is where scores are compared, in units of the outermost node, and by
/// how much one that is not bounded has grown: a score that is linear in the outcome by ten, one
/// that grows as its logarithm by less than two.
const NEAR: f64 = 3.0;
const FAR: f64 = 30.0;
const GROWN: f64 = 3.0;

/// The log of an integral that is to be 1, and the weight of its error.
#[derive(Clone, Copy)]
struct Mass {
    log: f64,
    weight: f64,
}

impl Law<'_> {
    /// Whether gradients stay within a few times those at nodes, however far an outcome is from its
    /// expectation, as for ints with few values and for heavy tails. Checked on public records at
    /// `theta`, in coordinates of the space about the point that represents it.
    pub(crate) fn scores_are_bounded(
        &self,
        theta: &[f64],
        (space, frame): (&Space, &Frame),
        seed: u64,
    ) -> bool {
        if self.steps.iter().all(|s| s.support.range.is_none()) {
            return true;
        }
        let rng = &mut ChaCha8Rng::seed_from_u64(seed);
        let records = self.public_records(theta, rng);
        let columns: Vec<&[f64]> = self.sources.iter().map(|&c| &records[c][..]).collect();
        let Sight { z, jacobian } = self.sight(space, frame.centre(), frame);
        let mut scratch = self.scratch_at(&z);
        let Located {
            values,
            probabilities,
        } = self.locate(&columns, RECORDS, &mut scratch);
        let work = &mut scratch.work;
        let count = self.nodes();
        let mut grown = 0;
        let mut judged = 0_u32;
        for (k, step) in self.steps.iter().enumerate() {
            if step.support.range.is_none() {
                continue;
            }
            for (side, in_logs) in [(-1.0, false), (1.0, false), (-1.0, true), (1.0, true)] {
                // Lengths of gradients at outcomes that are `times` as far out as any node; also on
                // the scale of logarithms where all nodes are positive.
                let mut lengths = |times: f64| -> Vec<f64> {
                    let far: Vec<f64> = (0..RECORDS)
                        .map(|i| {
                            let nodes = (0..count)
                                .filter(|j| probabilities[j * BLOCK + i] > 0.0)
                                .map(|j| values[(k * count + j) * BLOCK + i])
                                .filter(|x| !step.support.atoms.contains(x))
                                .map(|x| if in_logs { x.ln() } else { x });
                            let ends = (f64::INFINITY, f64::NEG_INFINITY);
                            // Not a number where a node has no logarithm.
                            let (low, high) = nodes.fold(ends, |(l, h), x| {
                                if x.is_nan() {
                                    (x, x)
                                } else {
                                    (if l > x { x } else { l }, if h < x { x } else { h })
                                }
                            });
                            let middle = 0.5 * (low + high);
                            let x = middle + side * times * (high - middle);
                            if in_logs { x.exp() } else { x }
                        })
                        .collect();
                    let mut block = columns.clone();
                    block[step.position] = &far;
                    let gradients =
                        self.program
                            .gradients(&block, RECORDS, &jacobian, &mut work.program);
                    let square =
                        |i: usize| gradients.chunks(BLOCK).map(|g| g[i] * g[i]).sum::<f64>();
                    (0..RECORDS).map(|i| square(i).sqrt()).collect()
                };
                let (near, far) = (lengths(NEAR), lengths(FAR));
                for (near, far) in near.iter().zip(&far) {
                    if near.is_finite() && far.is_finite() {
                        judged += 1;
                        grown += usize::from(*far > GROWN * near);
                    }
                }
            }
        }
        (grown as f64) < JUDGED * f64::from(judged.max(1))
    }

    /// Records made up from the declarations.
    pub(super) fn public_records(&self, centre: &[f64], rng: &mut impl Rng) -> Vec<Vec<f64>> {
        Simulator::new(self.density)
            .by_bounds()
            .records(centre, RECORDS, None, rng)
    }

    /// The step with its support: one on which its standard variable has a density, or else the outcome. The components
    /// of a mixture, where there are such, are searched for by themselves if that gives a density.
    pub(super) fn check(
        &self,
        step: &Step,
        (supports, standards, components): (Vec<Support>, &[Standard], &[Vec<usize>]),
        records: &[Vec<f64>],
        places: &[Vec<f64>],
    ) -> Result<Step, NoLaw> {
        if !components.is_empty() {
            let step = Step {
                components: components.to_vec(),
                ..step.clone()
            };
            let tried = (supports.clone(), standards, &[][..]);
            let with_components = self.check(&step, tried, records, places);
            if with_components.is_ok() {
                return with_components;
            }
        }
        // The sharper test comes before the other: it finds densities that are too far out for a grid.
        for standard in standards {
            let of_supports = supports.iter().filter_map(|support| {
                let step = Step {
                    support: support.clone(),
                    standard: Some(standard.clone()),
                    ..step.clone()
                };
                Some((self.standard_off_one(&step, records, places)?, step))
            });
            if let Some((_, step)) = of_supports.min_by(|(a, _), (b, _)| a.total_cmp(b)) {
                return Ok(step);
            }
        }
        self.supported(step, supports, records, places)
    }

    /// The step with its support: the first on which the density of the outcome integrates to 1, or else the one on which
    /// it is nearest to that, or else one on which its integral does not depend on parameters.
    fn supported(
        &self,
        step: &Step,
        supports: Vec<Support>,
        records: &[Vec<f64>],
        places: &[Vec<f64>],
    ) -> Result<Step, NoLaw> {
        let with = |support: &Support| Step {
            support: support.clone(),
            ..step.clone()
        };
        let block: Vec<&[f64]> = self.sources.iter().map(|&c| &records[c][..]).collect();
        let mut nearest = Nearest::default();
        let mut nearest_weighted = Nearest::default();
        let mut constant = None;
        let mut least: Option<f64> = None;
        for support in supports {
            let step = with(&support);
            let masses = self.masses(&step, &block, places);
            if masses.judged() < JUDGED {
                continue;
            }
            let off_one = masses.off_one();
            if off_one <= EXACT {
                return Ok(step);
            }
            if nearest.takes(off_one, &support) {
                continue;
            }
            nearest_weighted.takes(masses.off_one_weighted(), &support);
            let moved = masses.moved();
            if moved <= TOLERANCE && constant.is_none() {
                constant = Some(support);
            }
            least = Some(least.map_or(moved, |l| l.min(moved)));
        }
        let outcome = step.name.clone();
        let found = nearest.0.map(|(_, support)| support).or(constant);
        found
            .or(nearest_weighted.0.map(|(_, support)| support))
            .map(|support| with(&support))
            .ok_or(match least {
                Some(moved) => NoLaw::NotNormalised {
                    outcome,
                    factor: moved.exp(),
                },
                None => NoLaw::NotFound { outcome },
            })
    }

    /// The integrals of an outcome's terms for each record of which they are known at two places or
    /// more.
    fn masses(&self, step: &Step, block: &[&[f64]], places: &[Vec<f64>]) -> Masses {
        let mut endless = [false; RECORDS];
        let Masses(mut of_records) = Masses::at(places, |theta, add| {
            let mut work = self.work(&self.interface(theta), RECORDS);
            self.conditionals(step, block, RECORDS, &mut work, |i, found| match found {
                Ok(conditional) if conditional.is_resolved => add(i, conditional.log_mass),
                Ok(_) => {}
                Err(Lost::Endless) => endless[i] = true,
                Err(Lost::Nowhere) => {}
            });
        });
        // Far out a mean may be beyond all bounds, but not everywhere.
        for (of_record, _) in
            (of_records.iter_mut().zip(endless)).filter(|(m, e)| m.len() < 2 && *e)
        {
            *of_record = [0.0, f64::INFINITY]
                .map(|log| Mass { log, weight: 1.0 })
                .to_vec();
        }
        Masses(of_records)
    }
}

/// The integrals of an outcome's terms on one support, by record and place.
pub(super) struct Masses(Vec<Vec<Mass>>);

impl Masses {
    /// The integrals whose logs `find` adds at each of the public places, by record.
    pub fn at(
        places: &[Vec<f64>],
        mut find: impl FnMut(&[f64], &mut dyn FnMut(usize, f64)),
    ) -> Masses {
        let mut of_records = vec![Vec::new(); RECORDS];
        for (theta, scale) in places.iter().zip(SCALES) {
            let weight = if scale < WIDE { 1.0 } else { WIDE_WEIGHT };
            find(theta, &mut |i, log| {
                of_records[i].push(Mass { log, weight })
            });
        }
        Masses(of_records)
    }

    /// The logs of records for which they are known at two places or more.
    fn known(&self) -> impl Iterator<Item = &[Mass]> {
        let logs = self.0.iter().map(Vec::as_slice);
        logs.filter(|of_record| of_record.len() > 1)
    }

    /// The share of records for which they are.
    pub fn judged(&self) -> f64 {
        self.known().count() as f64 / self.0.len() as f64
    }

    /// How far the logs are from 0.
    pub fn off_one(&self) -> f64 {
        self.bound(|of_record| of_record.iter().map(|m| m.log.abs()).fold(0.0, f64::max))
    }

    /// The same, with less weight for wide scales.
    fn off_one_weighted(&self) -> f64 {
        let weighted = |m: &Mass| m.weight * m.log.abs();
        self.bound(|of_record| of_record.iter().map(weighted).fold(0.0, f64::max))
    }

    /// How far the logs of a record are from each other.
    pub fn moved(&self) -> f64 {
        self.bound(|of_record| {
            let logs = || of_record.iter().map(|m| m.log);
            logs().fold(f64::NEG_INFINITY, f64::max) - logs().fold(f64::INFINITY, f64::min)
        })
    }

    /// The value that the figure exceeds in a few odd records only.
    fn bound(&self, figure: impl Fn(&[Mass]) -> f64) -> f64 {
        let mut figures: Vec<f64> = self.known().map(figure).collect();
        figures.sort_by(f64::total_cmp);
        figures[((1.0 - ODD) * (figures.len() - 1) as f64).floor() as usize]
    }
}

/// The support that is least far off, of those that are near enough.
#[derive(Default)]
struct Nearest(Option<(f64, Support)>);

impl Nearest {
    /// Whether this support is the nearest so far; it is kept then.
    fn takes(&mut self, off: f64, support: &Support) -> bool {
        let is_nearest = off <= self.0.as_ref().map_or(TOLERANCE, |(least, _)| *least);
        if is_nearest {
            self.0 = Some((off, support.clone()));
        }
        is_nearest
    }
}

/// Public parameters about a centre, at which is checked what must hold everywhere.
pub(in crate::density) fn public_places(centre: &[f64], rng: &mut impl Rng) -> Vec<Vec<f64>> {
    let mut about = |scale: f64| {
        let noise = |c: &f64| c + scale * Distribution::<f64>::sample(&StandardNormal, rng);
        centre.iter().map(noise).collect()
    };
    SCALES.iter().map(|&scale| about(scale)).collect()
}
