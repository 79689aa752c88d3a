//! The information that the records have at the viewpoint, by a noisy clipped sum.

use super::{ReleasedInformation, RoundInputs, Search, frame_at};
use crate::density::Law;
use crate::linear::Matrix;
use crate::privacy::{Bins, Expected};
use crate::sampler::contract::oracle::{Oracle, SampleError};
use crate::sampler::laplace::form::blocks::Blocks;
use crate::sampler::laplace::form::{Form, Information};
use crate::sampler::laplace::histogram::Histogram;
use crate::sampler::laplace::lines::{self, QueryPoint};
use crate::sampler::laplace::reach::{self, Lost};
use crate::sampler::laplace::response::{Response, is_like_real, root_of};

/// The clip bound of records' information clips up to this share of the records, or `BALANCE` times
/// the number that balances the noise: what is clipped lies in several directions.
const CLIPPED_INFORMATION: f64 = 0.002;
const BALANCE: f64 = 4.0;
/// From the third round on, looks at the information are averaged while steps are below this many
/// posterior sds.
const NEAR: f64 = 12.0;
/// The law is believed to change the information by at most this factor, or its inverse.
const CHANGE: f64 = 1e4;
/// Looks that are not carried to other places are averaged while the law changes the information by at most this
/// factor, or its inverse, in any direction.
const ALIKE: f64 = 2.0;
/// The step of numerical differences, in posterior sds.
const STEP: f64 = 0.3;

/// The information in all records, in axes.
pub(super) struct ClippedInformation {
    pub information: Matrix,
    /// The approximate largest eigenvalue of its noise.
    pub spread: f64,
    /// The noise in each coordinate, over that in those which no group has.
    pub factors: Vec<f64>,
    /// The part that clipping takes away, in rounds in wide directions.
    pub lost: Option<Lost>,
}

impl Search {
    /// Turns to the axes in which the information at the centre is the identity by the law, given that it
    /// was at the place of the last look.
    pub(super) fn carry_axes(
        &mut self,
        ground: &RoundInputs,
        law: Option<&Law>,
    ) -> Result<(), SampleError> {
        let Some((look, law)) = self.looks.last().zip(law) else {
            return Ok(());
        };
        let records = (ground.form, ground.simulated);
        if let Some(blocks) = &ground.form.blocks {
            self.carry_blocks(records, law, blocks);
            return Ok(());
        }
        let Some(carried) = self.carried(records, law, look) else {
            return Ok(());
        };
        let (_, own) = self.prior(ground)?;
        self.carry_by(&carried, &own.between(&self.axes));
        Ok(())
    }

    /// The same where the records' information F becomes E F E', with E = `carried`, beside the prior's `own`.
    fn carry_by(&mut self, carried: &Matrix, own: &Matrix) {
        let told = (&Matrix::identity(own.rows()) - own).with_eigenvalues(|e| e.max(0.0));
        let foreseen = &told.between(&carried.transposed()) + own;
        let inner = foreseen.with_eigenvalues(|e| e.max(1e-12).sqrt().recip());
        let outer = foreseen.with_eigenvalues(|e| e.max(1e-12).sqrt());
        if inner.is_finite() && outer.is_finite() {
            self.axes = &self.axes * &inner;
            self.inverse = &outer * &self.inverse;
            // The law's change is no error of what was assumed: only the turn counts.
            self.turned_by(&(&inner * carried));
        }
    }

    /// The same by a factor for each coordinate, which leaves the axes of groups what they are.
    fn carry_blocks(&mut self, records: (&Form, &[Vec<f64>]), law: &Law, blocks: &Blocks) {
        let look = self.looks.last();
        let changes = look.and_then(|look| self.changes(records, law, look, blocks));
        if let Some(changes) = changes {
            let back: Vec<f64> = changes.iter().map(|x| x.recip()).collect();
            self.axes = &Matrix::diagonal(&back) * &self.axes;
            self.inverse = &self.inverse * &Matrix::diagonal(&changes);
        }
    }

    /// The information about y in all records.
    pub(super) fn information(
        &mut self,
        ground: &RoundInputs,
        law: Option<&Law>,
        (k, nth): (usize, usize),
        oracle: &mut dyn Oracle,
    ) -> Result<ClippedInformation, SampleError> {
        let RoundInputs {
            form,
            density,
            plan,
            shares,
            ..
        } = *ground;
        let temperature = plan.request.temperature;
        if form.information == Information::Public {
            let records = temperature * self.records;
            return Ok(ClippedInformation {
                information: (&self.axes.transposed() * &self.axes).scaled(records),
                spread: 0.0,
                factors: vec![1.0; form.coordinates as usize],
                lost: None,
            });
        }
        let m = form.coordinates as usize;
        let frame = self.frame(form);
        let expected = form
            .expected(density, law, &frame)
            .unwrap_or_else(|| Expected::by_differences(density, &form.space, &frame, STEP));
        let signed = form.information == Information::Curvature && k + 1 == shares.rounds();
        let [of_lengths, of_sum] = if signed {
            [lines::CURVATURE_LENGTHS, lines::CURVATURE]
        } else {
            [lines::INFORMATION_LENGTHS, lines::INFORMATION]
        };
        let unit = m as f64 / (temperature * self.records);
        let ask = QueryPoint {
            form,
            plan,
            frame: &frame,
            expected: Some(&expected),
            unit,
        };
        let times = shares.others[k];
        let (counts, sd) = ask.histogram(of_lengths, times, oracle)?;
        if nth == 0 {
            self.count(plan, &counts);
        }
        let lengths = Histogram::seen(&counts, sd, (Bins::INFORMATION, unit), self.records);
        let tau = plan.lines[of_sum].tau / (times as f64).sqrt();
        let root = (2.0 * m as f64).sqrt();
        let (clip, lost) = match &lengths {
            None => {
                self.blind = true;
                (2.0 * unit, 1.0)
            }
            Some(lengths) => {
                let noise = tau * root;
                // The axes of the first round are those of simulated records, whose covariates need
                // not be like the real ones.
                let clip = match law.filter(|_| nth > 0) {
                    Some(law) => {
                        let change = self.change_since_axes((form, ground.simulated), law);
                        let norm = reach::norm_over_trace(form, density, law, &frame);
                        let mean = unit * change * norm;
                        lengths
                            .with_mean(mean)
                            .bound_of_least_error(noise, BALANCE.recip())
                    }
                    None => {
                        let clipped = (BALANCE * noise).max(CLIPPED_INFORMATION * self.records);
                        lengths.exceeded_by(clipped)
                    }
                };
                (clip, lengths.lost_factor(clip))
            }
        };
        let sum = ask.sum(of_sum, clip, f64::INFINITY, times, oracle)?;
        let scale = temperature * lost;
        let found = Matrix::of_triangle(&sum, m).scaled(scale);
        let factors = self.lost_by_groups(form, &found, clip * temperature * self.records);
        let found = Matrix::new(m, m, |i, j| found[(i, j)] * factors[i].max(factors[j]));
        let spread = scale * clip * ask.noise(of_sum, times) * root;
        if signed {
            self.looks.clear();
        }
        self.looks.push(ReleasedInformation {
            information: found.between(&self.inverse),
            spread,
            inverse: self.inverse.clone(),
            place: self.place().clone(),
            moved: 0.0,
            factors: factors.clone(),
        });
        // Later, with covariates unlike the simulated ones, this would hide information that is there.
        let lost = law
            .filter(|_| k < shares.wide)
            .map(|law| reach::lost(form, density, law, &frame, clip));
        let near = self.steps.last().is_some_and(|step| step.length < NEAR);
        if nth >= 2 && near && self.looks.len() > 1 {
            Ok(ClippedInformation {
                lost,
                ..self.averaged(ground, law)
            })
        } else {
            Ok(ClippedInformation {
                information: found,
                spread,
                factors,
                lost,
            })
        }
    }

    /// The information that simulated records have in the frame where it was 1 at the place of the last look; `None`
    /// where there is no law.
    ///
    /// Real records may be unlike these: those of a small group are. But for each of its records there is the same change.
    pub(super) fn information_by_law(
        &self,
        ground: &RoundInputs,
        law: Option<&Law>,
    ) -> Option<Matrix> {
        let law = law?;
        let look = self.looks.last()?;
        if law.has_real_outcomes_only() || look.place == *self.place() {
            // The axes allow for it, or nothing has changed.
            return Some(Matrix::identity(self.centre.len()));
        }
        let (root, change) = self.change((ground.form, ground.simulated), law, look)?;
        let moved = &(&root * &change) * &root.inverse();
        Some(&moved * &moved.transposed()).filter(Matrix::is_finite)
    }

    /// Carries the information that was seen from the place of the last look to the centre, as far as the law tells
    /// how it changes on the way; else nothing of it is believed to be there.
    pub(super) fn carry_seen(&mut self, records: (&Form, &[Vec<f64>]), law: Option<&Law>) {
        let changed = || {
            let (law, look) = law.zip(self.looks.last())?;
            if records.0.blocks.is_some() {
                return None;
            }
            let (root, change) = self.change(records, law, look)?;
            let is_guide = law.has_real_outcomes_only() || is_like_real(&(&root * &root));
            let moved = &(&root * &change) * &root.inverse();
            let seen = self.seen.between(&self.axes).between(&moved.transposed());
            Some(seen.between(&self.inverse)).filter(|seen| is_guide && seen.is_finite())
        };
        self.seen = changed().unwrap_or_else(|| self.seen.scaled(0.0));
    }

    /// The curvature of the log density in the frame, without a decline that neither the noise nor the last step nor the
    /// information `by_law` explains; of this effective number of records.
    ///
    /// Records that tell of a direction which few others tell of are clipped the more, the longer its axis is. If that
    /// were taken for less information, the axis would become longer with each round.
    pub(super) fn without_decline(
        &self,
        curvature: Matrix,
        spread: f64,
        by_law: &Matrix,
        effective: f64,
    ) -> Matrix {
        let Some((before, step)) = self.history.last().zip(self.steps.last()) else {
            return curvature;
        };
        let (mut values, vectors) = curvature.eigen();
        let m = values.len();
        let moved = step.length * (m as f64 / effective.max(1.0)).sqrt();
        for (j, value) in values.iter_mut().enumerate() {
            let direction: Vec<f64> = (0..m).map(|i| vectors[(i, j)]).collect();
            let squares = direction.iter().zip(&before.hidden);
            let seen: f64 = squares
                .filter(|(_, hidden)| !**hidden)
                .map(|(x, _)| x * x)
                .sum();
            let expected = by_law.form(&direction).min(1.0);
            *value = value.max(seen * expected * (1.0 - spread - moved));
        }
        Matrix::diagonal(&values).between(&vectors.transposed())
    }

    /// The information about each group's coordinates over that of its records clipped at `clip` over the number
    /// of records; 1 for other coordinates.
    ///
    /// A record tells each group about the same. If it were left out that the records of small groups are clipped,
    /// the axes of these would become longer with each round, and their records would be clipped the more.
    fn lost_by_groups(&self, form: &Form, found: &Matrix, clip: f64) -> Vec<f64> {
        let mut lost = vec![1.0; found.rows()];
        let Some(blocks) = &form.blocks else {
            return lost;
        };
        let squares = |j: usize| {
            (0..found.rows())
                .map(|i| self.axes[(i, j)].powi(2))
                .sum::<f64>()
        };
        let told = |j: usize| found[(j, j)].max(0.0) / squares(j);
        let places = blocks.places();
        let of_place = places
            .iter()
            .map(|place| place.iter().map(|&j| told(j)).sum());
        let of_place: Vec<f64> = of_place.collect();
        for group in &blocks.groups {
            let length: f64 = group
                .iter()
                .zip(&of_place)
                .map(|(&j, told)| told * squares(j))
                .sum();
            for &j in group {
                lost[j] = (length / clip).max(1.0);
            }
        }
        lost
    }

    /// The average information over the looks whose steps were short, carried to here and weighted by
    /// their noise in these axes.
    fn averaged(&self, ground: &RoundInputs, law: Option<&Law>) -> ClippedInformation {
        let m = self.centre.len();
        let (mut sum, mut weights) = (Matrix::new(m, m, |_, _| 0.0), 0.0);
        let mut squares = vec![0.0; m];
        for look in &self.looks {
            let is_alike =
                || law.is_none_or(|law| self.is_alike((ground.form, ground.simulated), law, look));
            if look.moved < NEAR && is_alike() {
                let carry = law
                    .and_then(|law| self.carried((ground.form, ground.simulated), law, look))
                    .unwrap_or_else(|| Matrix::identity(m))
                    .transposed();
                let stretch = (&(&look.inverse * &self.axes) * &carry).norm();
                let weight = (look.spread * stretch * stretch).powi(-2);
                let here = look.information.between(&self.axes).between(&carry);
                sum = &sum + &here.scaled(weight);
                weights += weight;
                for (square, factor) in squares.iter_mut().zip(&look.factors) {
                    *square += weight * factor * factor;
                }
            }
        }
        ClippedInformation {
            information: sum.scaled(1.0 / weights),
            spread: weights.sqrt().recip(),
            factors: squares.iter().map(|s| (s / weights).sqrt()).collect(),
            lost: None,
        }
    }

    /// The E of F' = E F E', where F is the information at the place of a look and F' that at the centre,
    /// in these axes, as simulated records have it; `None` where there is none. Of counts and classes it depends on
    /// covariates, and those of simulated records need not be like the real ones: carried information made intervals
    /// of twelve tables a tenth wider.
    fn carried(
        &self,
        (form, simulated): (&Form, &[Vec<f64>]),
        law: &Law,
        look: &ReleasedInformation,
    ) -> Option<Matrix> {
        if let Some(blocks) = &form.blocks {
            let changes = self.changes((form, simulated), law, look, blocks)?;
            let change = &(&self.inverse * &Matrix::diagonal(&changes)) * &self.axes;
            return Some(change.transposed()).filter(Matrix::is_finite);
        }
        if !self.is_carried(law, look) {
            return None;
        }
        let (root, change) = self.change((form, simulated), law, look)?;
        Some(&(&root * &change) * &root.inverse()).filter(Matrix::is_finite)
    }

    /// The root R of the information that simulated records have at the place of a look, in these axes, and a C such
    /// that R C C' R' is that at the place from which records are looked at now.
    fn change(
        &self,
        (form, simulated): (&Form, &[Vec<f64>]),
        law: &Law,
        look: &ReleasedInformation,
    ) -> Option<(Matrix, Matrix)> {
        let told = |place: &[f64]| {
            let frame = frame_at(form, &self.origin, place, &self.axes);
            Response::new(form, simulated, law, &frame, 1.0).information()
        };
        let (before, now) = (told(&look.place)?, told(self.place())?);
        let root = root_of(&before);
        let back = root.inverse();
        let change = (root_of(&now).with_eigenvalues(|e| e * e).between(&back))
            .with_eigenvalues(|e| e.clamp(CHANGE.recip(), CHANGE).sqrt());
        Some((root, change)).filter(|(_, change)| change.is_finite())
    }

    /// The trace of the information over that of the information for which the axes were made, as simulated
    /// records have it. Towards a rare class it falls with each step; if that were not known, what is not there
    /// would be looked for among the longest records.
    fn change_since_axes(&self, records: (&Form, &[Vec<f64>]), law: &Law) -> f64 {
        let last = self.looks.last();
        let Some((root, change)) = last.and_then(|look| self.not_carried(records, law, look))
        else {
            return 1.0;
        };
        let moved = &(&root * &change) * &root.inverse();
        let ratio = moved.norm().powi(2) / moved.rows() as f64;
        if ratio.is_finite() { ratio } else { 1.0 }
    }

    /// Whether the law has information near that of a look here, in all directions.
    fn is_alike(
        &self,
        records: (&Form, &[Vec<f64>]),
        law: &Law,
        look: &ReleasedInformation,
    ) -> bool {
        let change = self.not_carried(records, law, look);
        change.is_none_or(|(_, change)| {
            let (roots, _) = change.eigen();
            (roots.iter()).all(|e| (ALIKE.recip()..=ALIKE).contains(&(e * e)))
        })
    }

    /// The change since a look, where axes and averages do not allow for it. `None` where they do, there is none,
    /// or simulated records are unlike the real ones.
    fn not_carried(
        &self,
        (form, simulated): (&Form, &[Vec<f64>]),
        law: &Law,
        look: &ReleasedInformation,
    ) -> Option<(Matrix, Matrix)> {
        let is_here = look.place == *self.place();
        if is_here || form.blocks.is_some() || law.has_real_outcomes_only() {
            return None;
        }
        let change = self.change((form, simulated), law, look);
        change.filter(|(root, _)| is_like_real(&(root * root)))
    }

    /// Whether the information has changed since a look, by a known amount.
    fn is_carried(&self, law: &Law, look: &ReleasedInformation) -> bool {
        law.has_real_outcomes_only() && look.place != *self.place()
    }

    /// The roots of the changes of the information about each coordinate from the place of a look to here, the same
    /// for all groups, as simulated records have it.
    fn changes(
        &self,
        (form, simulated): (&Form, &[Vec<f64>]),
        law: &Law,
        look: &ReleasedInformation,
        blocks: &Blocks,
    ) -> Option<Vec<f64>> {
        if !self.is_carried(law, look) {
            return None;
        }
        let m = self.centre.len();
        let told = |at: &[f64]| {
            let frame = frame_at(form, &self.origin, at, &Matrix::identity(m));
            let told = Response::new(form, simulated, law, &frame, 1.0).information()?;
            let mut told: Vec<f64> = (0..m).map(|j| told[(j, j)]).collect();
            for place in blocks.places() {
                let sum: f64 = place.iter().map(|&j| told[j]).sum();
                place.iter().for_each(|&j| told[j] = sum);
            }
            Some(told)
        };
        let (before, now) = (told(&look.place)?, told(self.place())?);
        let change = |(before, now): (&f64, &f64)| {
            let ratio = now / before;
            if ratio.is_finite() {
                ratio.clamp(CHANGE.recip(), CHANGE).sqrt()
            } else {
                1.0
            }
        };
        Some(before.iter().zip(&now).map(change).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::Density;
    use crate::model::{Constants, Model};
    use crate::sampler::laplace::response::simulated;
    use crate::sampler::laplace::search::{Movement, Step};

    // Oracle: the information of m is 1 / s^2, and that of log s is 2 everywhere. If it failed: after a step to a wider
    // scale, information would be too small to be seen in the noise, and steps would be far too short.
    #[test]
    fn information_is_carried_to_another_scale() {
        let source = "record { real y; } parameters { real m; real<lower=0> s; }
            model { m ~ normal(0, 1); s ~ lognormal(0, 1); y ~ normal(m, s); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let law = form.law(&density).unwrap();
        let mut search = Search::new(&form, &density, &[0.0, 0.0], Some(400));
        let m = search.centre.len();
        let look = ReleasedInformation {
            information: Matrix::identity(m),
            spread: 0.1,
            inverse: Matrix::identity(m),
            place: search.centre.clone(),
            moved: 0.0,
            factors: vec![1.0; m],
        };
        let simulated = simulated(&form, &density);
        assert_eq!(search.carried((&form, &simulated), &law, &look), None);
        search.centre = form.lift.times(&[0.0, 4f64.ln()]);
        let carried = search.carried((&form, &simulated), &law, &look).unwrap();
        let scales = Matrix::diagonal(&[0.25, 1.0]);
        let oracle = &(&form.base.transposed() * &scales) * &form.lift.transposed();
        let off = (&carried - &oracle).norm();
        assert!(off < 0.02, "{carried:?} {oracle:?}");
    }

    // Oracle: F' = E E' where F is the identity, so that it is the identity in the new axes, and coordinates turn by
    // the rotation (E E')^(-1/2) E. If it failed: a step would be taken for too long or too short because the scale
    // has changed since, or the information of one axis for that of another.
    #[test]
    fn information_that_the_law_changes_is_no_sign_of_a_wrong_step() {
        let mut search = Search::at(vec![0.0; 2], Matrix::identity(2), 100.0);
        search.history.push(Step {
            axes: Matrix::identity(2),
            wider: 1.0,
            taken: Matrix::identity(2),
            added: Matrix::identity(2),
            hidden: vec![true; 2],
            since: Matrix::identity(2),
        });
        let carried = Matrix::new(2, 2, |i, j| [[0.25, 0.1], [0.0, 1.2]][i][j]);
        search.carry_by(&carried, &Matrix::new(2, 2, |_, _| 0.0));
        let off = |a: Matrix| (&a - &Matrix::identity(2)).norm();
        let now = &carried * &carried.transposed();
        assert!(off(now.between(&search.axes)) < 1e-9);
        let since = &search.history[0].since;
        assert!(off(&since.transposed() * since) < 1e-9, "{since:?}");
        // F' in the new axes, where F is another: since F since'.
        let other = Matrix::new(2, 2, |i, j| [[0.3, 0.1], [0.1, 0.7]][i][j]);
        let seen = other.between(&carried.transposed()).between(&search.axes);
        let turned = other.between(&since.transposed());
        assert!((&seen - &turned).norm() < 1e-9, "{seen:?} {turned:?}");
    }

    // Oracle: the information of log-odds a is p (1 - p): 1/4 at 0, 0.045 at -3, and 0.245 at -0.3. If it failed: towards
    // a rare class, information that is not there any more would be looked for among the longest records, and the
    // noise of such a clip bound would hide all that there is.
    #[test]
    fn the_information_of_a_rarer_class_is_known_to_be_less() {
        let source = "record { int<lower=0, upper=1> y; } parameters { real a; }
            model { a ~ normal(0, 3); y ~ bernoulli_logit(a); }";
        assert_eq!(change_to(source, &[0.0]), (1.0, true));
        for (level, oracle, is_alike) in [(-0.3, 0.98, true), (-3.0, 0.18, false)] {
            let (change, found) = change_to(source, &[level]);
            assert!((change - oracle).abs() < 0.01, "{level}: {change}");
            assert_eq!(found, is_alike);
        }
    }

    // The axes are those of a column whose values are about 1. Declared fifty times as wide, its simulated values make
    // nearly all classes certain. If it failed: the clip bound would follow from records that do not exist; on real
    // wells, whose columns are so, means were off by hundreds of sds.
    #[test]
    fn records_unlike_the_real_ones_change_nothing() {
        let with_bound = |bound: usize| {
            format!(
                "record {{ int<lower=0, upper=1> y; real<lower=-{bound}, upper={bound}> x; }}
                parameters {{ real a; real b; }}
                model {{ a ~ normal(0, 2); b ~ normal(0, 2); y ~ bernoulli_logit(a + b * x); }}"
            )
        };
        let (like, is_alike) = change_to(&with_bound(2), &[-3.0, 0.5]);
        assert!(like < 0.5 && !is_alike, "{like}");
        assert_eq!(change_to(&with_bound(50), &[-3.0, 0.5]), (1.0, true));
    }

    /// The change of the information from a look with all parameters at 0 to this place, in axes in which parameters
    /// are what they are; and whether it is alike.
    fn change_to(source: &str, theta: &[f64]) -> (f64, bool) {
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap();
        let law = form.law(&density).unwrap();
        let search = moved_to(&form, theta);
        let simulated = simulated(&form, &density);
        let records = (&form, &*simulated);
        let is_alike = search.is_alike(records, &law, &search.looks[0]);
        (search.change_since_axes(records, &law), is_alike)
    }

    /// A search at this place after a look from where all parameters are 0.
    fn moved_to(form: &Form, theta: &[f64]) -> Search {
        let m = theta.len();
        let mut search = Search::at(vec![0.0; m], Matrix::identity(m), 400.0);
        search.axes = form.lift.clone();
        search.inverse = form.base.clone();
        search.looks.push(ReleasedInformation {
            information: Matrix::identity(m),
            spread: 0.1,
            inverse: form.base.clone(),
            place: vec![0.0; m],
            moved: 0.0,
            factors: vec![1.0; m],
        });
        search.centre = form.lift.times(theta);
        search
    }

    // Oracle: p (1 - p) again. If it failed: of a class that is rarer than noise, nothing would be known that was seen on
    // the way to it, and the answer would be the prior's; or as much as where it was frequent.
    #[test]
    fn what_was_seen_of_a_frequent_class_is_less_of_a_rare_one() {
        let kept = |bound: usize, a: f64| {
            let source = format!(
                "record {{ int<lower=0, upper=1> y; real<lower=-{bound}, upper={bound}> x; }}
                parameters {{ real a; real b; }}
                model {{ a ~ normal(0, 3); b ~ normal(0, 3); y ~ bernoulli_logit(a + b * x); }}"
            );
            let density = Density::new(Model::from_source(&source, &Constants::none()).unwrap());
            let form = Form::of(&density).unwrap();
            let mut search = moved_to(&form, &[a, 0.0]);
            search.seen = Matrix::diagonal(&[8.0, 8.0]).between(&form.base);
            let law = form.law(&density);
            search.carry_seen((&form, &simulated(&form, &density)), law.as_ref());
            search.seen.between(&form.lift)[(0, 0)] / 8.0
        };
        assert!((kept(1, -3.0) - 0.18).abs() < 0.01, "{}", kept(1, -3.0));
        assert!((kept(1, 0.0) - 1.0).abs() < 1e-6);
        // Records unlike the real ones tell nothing of the way.
        assert_eq!(kept(100, -3.0), 0.0);
    }

    // Oracle: the information of a[g] is 1 / s^2, and that of log s is 2 everywhere. If it failed: after a step of the
    // scale, all groups would be lost in noise; or the inverse of the axes would be that of others, and each round
    // would be further off.
    #[test]
    fn axes_of_groups_are_carried_to_another_scale() {
        let source = "record { real<lower=-99, upper=99> y; int<lower=1, upper=30> g; }
            parameters { vector[30] a; real mu; real<lower=0> s; }
            model { mu ~ normal(0, 1); a ~ normal(mu, 1); s ~ lognormal(0, 1); y ~ normal(a[g], s); }";
        let density = Density::new(Model::from_source(source, &Constants::none()).unwrap());
        let form = Form::of(&density).unwrap().by_groups().unwrap();
        let m = form.coordinates as usize;
        let shared = form.blocks.as_ref().unwrap().shared[0];
        let mut search = Search::at(vec![0.0; form.base.rows()], Matrix::identity(m), 400.0);
        // What is shared moves groups as well, as in an elimination.
        search.axes = Matrix::new(m, m, |i, j| match (i == j, j == shared) {
            (true, _) => 0.2,
            (_, true) => 0.05,
            _ => 0.0,
        });
        search.inverse = Matrix::new(m, m, |i, j| match (i == j, j == shared) {
            (true, _) => 5.0,
            (_, true) => -1.25,
            _ => 0.0,
        });
        search.looks.push(ReleasedInformation {
            information: Matrix::identity(m),
            spread: 0.1,
            inverse: search.inverse.clone(),
            place: search.centre.clone(),
            moved: 0.0,
            factors: vec![1.0; m],
        });
        let mut wider = vec![0.0; form.base.rows()];
        *wider.last_mut().unwrap() = 4f64.ln();
        search.centre = form.lift.times(&wider);
        let simulated = simulated(&form, &density);
        let law = form.law(&density).unwrap();
        let blocks = form.blocks.as_ref().unwrap();
        let changes = search.changes((&form, &simulated), &law, &search.looks[0], blocks);
        for (j, change) in changes.unwrap().into_iter().enumerate() {
            let oracle = if j == shared { 1.0 } else { 0.25 };
            assert!((change - oracle).abs() < 0.02, "{j}: {change}");
        }
        search.carry_blocks((&form, &simulated), &law, blocks);
        assert!((search.axes[(0, 0)] - 0.8).abs() < 0.05);
        let off = (&(&search.axes * &search.inverse) - &Matrix::identity(m)).norm();
        assert!(off < 1e-9, "{off}");
    }

    // Nine groups of 111 records and one with a single record, each of which tells .25 of its group. If it failed: the
    // axis of the small group would become longer with each round.
    #[test]
    fn what_is_clipped_of_a_small_group_is_known() {
        let blocks = Blocks {
            shared: vec![10],
            groups: (0..10).map(|j| vec![j]).collect(),
        };
        let form = Form {
            blocks: Some(blocks),
            ..Form::unknown(11)
        };
        let mut search = Search::at(vec![0.0; 11], Matrix::identity(11), 1000.0);
        let records = |j: usize| if j == 9 { 1.0_f64 } else { 111.0 };
        let square = |j: usize| 4.0 / records(j);
        search.axes = Matrix::new(11, 11, |i, j| if i == j { square(i).sqrt() } else { 0.0 });
        let clip = 0.05;
        let told = |j: usize| records(j) * (0.25 * square(j)).min(clip);
        let found = Matrix::diagonal(&(0..11).map(told).collect::<Vec<_>>());
        let lost = search.lost_by_groups(&form, &found, clip * 1000.0);
        assert!((lost[9] - 20.0).abs() < 0.1, "{lost:?}");
        assert!(
            lost[..9].iter().chain(&lost[10..]).all(|x| *x == 1.0),
            "{lost:?}"
        );
    }

    // If it failed: the axis of a small group would become longer with each round, or stay short where the law says that
    // there is less information than there was, as on the way to a rare class.
    #[test]
    fn information_does_not_fall_without_a_reason() {
        let mut search = Search::at(vec![0.0; 2], Matrix::identity(2), 1e4);
        let seen = Matrix::diagonal(&[0.3, 0.2]);
        let kept = |search: &Search, by_law: &Matrix| {
            let kept = search.without_decline(seen.clone(), 0.1, by_law, 1e4);
            [kept[(0, 0)], kept[(1, 1)]]
        };
        let same = Matrix::identity(2);
        // Before the first step, nothing was seen.
        assert_eq!(kept(&search, &same), [0.3, 0.2]);
        search.history.push(Step {
            axes: same.clone(),
            wider: 1.0,
            taken: same.clone(),
            added: same.clone(),
            hidden: vec![false, true],
            since: same.clone(),
        });
        let mut step = Movement {
            length: 0.0,
            widths: 0.0,
            cut: false,
            surprise: 0.0,
        };
        search.steps.push(step);
        assert_eq!(kept(&search, &same), [0.9, 0.2]);
        let less = Matrix::diagonal(&[0.25, 1.0]);
        assert_eq!(kept(&search, &less), [0.3, 0.2]);
        // A step of a whole sd of a record leads anywhere.
        step.length = 1e2 / 2.0_f64.sqrt();
        search.steps.push(step);
        assert_eq!(kept(&search, &same), [0.3, 0.2]);
    }
}
