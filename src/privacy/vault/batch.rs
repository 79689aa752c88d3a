//! Releases about a random part of the records, and the same sums without noise for
//! runs that are not private.
//!
//! Each draws its batch from the private generator after it is charged. The batch and its size stay
//! in the vault: whatever the size, one gathered table is summed and noise is added.

use std::num::NonZeroU64;

use super::charge::Mechanism;
use super::table::Table;
use super::{Charge, LogRatio, ReleaseError, Vault};
use crate::privacy::barker::BarkerScale;
use crate::privacy::batch_penalty::BatchPenaltyQuery;
use crate::privacy::gradient::GradientScale;
use crate::privacy::noise::DiscreteGaussian;
use crate::privacy::noisy::Noisy;
use crate::privacy::not_private::NotPrivate;
use crate::privacy::question::Question;
use crate::privacy::randomness::PrivateRng;
use crate::privacy::statistic::Look;
use crate::privacy::subsampling::{Batch, Subsampling};
use crate::privacy::tally::{Sums, Tally};

#[doc(hidden)]
impl Vault {
    /// The sum of clipped gradients at `theta` (unconstrained scale) over all records or a
    /// batch, plus noise. It is not divided by the rate. Where rows share units, a record here
    /// is a unit: its rows' gradients are summed, then clipped.
    ///
    /// # Privacy
    ///
    /// A Gaussian mechanism with discrete noise: [`GradientScale`] has the sensitivity of a
    /// record that is in, `accounting::discrete` the noise; docs/proofs.md, sections 4, 8, 9
    /// and 10. Charged, and the noise drawn, before a row is read; a charge that was planned for
    /// less than `scale` does is refused.
    pub fn noisy_batch_gradient(
        &self,
        theta: &[f64],
        scale: &GradientScale,
        subsampling: Subsampling,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<Vec<f64>>, ReleaseError> {
        self.noisy_sum(
            &Look::gradient(&self.density, theta),
            scale,
            subsampling,
            charge,
            rng,
        )
    }

    /// The sum over a batch of the clipped vectors that `look` computes from records, plus noise.
    ///
    /// # Privacy
    ///
    /// As [`Vault::noisy_batch_gradient`]: whatever the vectors are, they are clipped as
    /// gradients are.
    fn noisy_sum(
        &self,
        look: &Look,
        scale: &GradientScale,
        subsampling: Subsampling,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<Vec<f64>>, ReleaseError> {
        let noise = self.charged_noise(look.coordinates(), scale, subsampling, charge, rng)?;
        let batch = self.batch(subsampling, rng);
        let sum = self.ask(
            &Question::Vectors {
                look,
                scale: *scale,
            },
            batch,
        )?;
        Ok(self.released(&sum, 1, &noise, scale))
    }

    /// The average of `times` releases of the sum of the clipped vectors that `look` computes from
    /// all records, each plus noise: the statistics from which a private start learns.
    ///
    /// # Privacy
    ///
    /// Each release is charged and has its own noise; reading the rows once for all of them changes
    /// neither. Point, coordinates, centre and clip bound of a look may follow from earlier
    /// releases: sensitivity and noise keep the planned proportion, and composition depends on that
    /// alone (docs/proofs.md, sections 5 and 14).
    pub(crate) fn noisy_statistic(
        &self,
        look: &Look,
        scale: &GradientScale,
        times: NonZeroU64,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<Vec<f64>>, ReleaseError> {
        let mut noise = vec![0; look.coordinates()];
        for _ in 0..times.get() {
            let one =
                self.charged_noise(look.coordinates(), scale, Subsampling::All, charge, rng)?;
            for (sum, k) in noise.iter_mut().zip(one) {
                *sum += k;
            }
        }
        let sum = self.ask(
            &Question::Vectors {
                look,
                scale: *scale,
            },
            None,
        )?;
        Ok(self.released(&sum, times.get(), &noise, scale))
    }

    /// The sum that [`Vault::noisy_statistic`] adds noise to.
    pub(crate) fn clipped_statistic(
        &self,
        look: &Look,
        scale: &GradientScale,
        _: NotPrivate,
    ) -> Vec<f64> {
        let sum = self.table.clipped_sum(&self.density, look, scale);
        sum.iter().map(|&units| scale.real(units)).collect()
    }

    /// Charges a release of so many coordinates and draws its noise, in lattice units.
    pub(super) fn charged_noise(
        &self,
        coordinates: usize,
        scale: &GradientScale,
        subsampling: Subsampling,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Vec<i128>, ReleaseError> {
        charged_noise(self.n, coordinates, scale, subsampling, charge, rng)
    }

    /// The average of this many releases of a sum, each with its own noise.
    pub(super) fn released(
        &self,
        sum: &[i128],
        times: u64,
        noise: &[i128],
        scale: &GradientScale,
    ) -> Noisy<Vec<f64>> {
        released(self.n, sum, times, noise, scale)
    }

    /// The quantity that the penalty test compares, from a batch: F + noise - sigma^2/2.
    ///
    /// # Privacy
    ///
    /// A Gaussian mechanism with discrete noise on the batch; sensitivity and sigma of F
    /// are those of `query`, in the fixed proportion 1 : tau. Charged, and the noise
    /// drawn, before a row is read.
    pub fn noisy_batch_log_ratio(
        &self,
        from: &[f64],
        to: &[f64],
        query: &BatchPenaltyQuery,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<LogRatio>, ReleaseError> {
        charge.take(&Mechanism {
            factor: query.sensitivity_factor(),
            sensitivity: query.sensitivity(),
            sigma: query.sigma_units(),
            coordinates: 1,
            subsampling: query.subsampling(),
            records: self.n as u64,
        })?;
        let noise = query.noise().sample(rng);
        #[cfg(test)]
        let noise = crate::planted::noise(vec![noise], query.noise(), rng)[0];
        let batch = self.batch(query.subsampling(), rng);
        let sums = self.sums([from, to], query.tally(), batch)?;
        Ok(Noisy::new(LogRatio {
            penalised: query.penalised(query.value(sums), noise),
            sigma: query.sigma(),
        }))
    }

    /// (n T/b) times a batch's sum of clipped log-likelihood ratios, plus noise of variance
    /// 2 - s2, where s2 is the variance of that estimate over batches.
    ///
    /// # Privacy
    ///
    /// `accounting::Barker`, whose assumptions [`BarkerScale`] guarantees. Charged before a row is
    /// read; the noise, whose width depends on the rows, is drawn afterwards.
    pub fn noisy_barker(
        &self,
        from: &[f64],
        to: &[f64],
        scale: &BarkerScale,
        charge: Charge,
        rng: &mut PrivateRng,
    ) -> Result<Noisy<f64>, ReleaseError> {
        charge.take_barker(scale, self.n as u64)?;
        let batch = self.batch(Subsampling::FixedSize(scale.size()), rng);
        let sums = self.sums([from, to], scale.tally(), batch)?;
        let (mean, sigma) = scale.release(sums);
        let noise = DiscreteGaussian::new(sigma)?.sample(rng);
        Ok(Noisy::new(scale.real(mean + i128::from(noise))))
    }

    /// The gradient at `theta` of the log-likelihood of a batch, exact.
    pub fn batch_gradient(
        &self,
        theta: &[f64],
        subsampling: Subsampling,
        _: NotPrivate,
        rng: &mut PrivateRng,
    ) -> Vec<f64> {
        let z = self.density.interface(theta).z;
        let (_, adjoint) =
            self.over_batch(subsampling, rng, |batch| batch.exact(&self.density, &z));
        let (_, posterior) = self.density.pull_back(theta, &adjoint);
        let (_, prior) = self.density.pull_back(theta, &[]);
        posterior.iter().zip(prior).map(|(p, q)| p - q).collect()
    }

    /// The sum that [`Vault::noisy_batch_gradient`] adds noise to.
    pub fn clipped_batch_gradient(
        &self,
        theta: &[f64],
        scale: &GradientScale,
        subsampling: Subsampling,
        _: NotPrivate,
        rng: &mut PrivateRng,
    ) -> Vec<f64> {
        let sum = self.over_batch(subsampling, rng, |batch| {
            batch.clipped_gradient_sum(&self.density, theta, scale)
        });
        sum.iter().map(|&units| scale.real(units)).collect()
    }

    /// The result of `sum` on a batch that is drawn and gathered here.
    fn over_batch<R>(
        &self,
        subsampling: Subsampling,
        rng: &mut PrivateRng,
        sum: impl FnOnce(&Table) -> R,
    ) -> R {
        match self.batch(subsampling, rng) {
            None => sum(&self.table),
            Some(batch) => sum(&self.table.gather(batch.members())),
        }
    }

    /// A batch, drawn; `None`: all records. The charge has checked that a fixed size is not above the
    /// number of records.
    fn batch(&self, subsampling: Subsampling, rng: &mut PrivateRng) -> Option<Batch> {
        match subsampling {
            Subsampling::Poisson(rate) if !subsampling.is_all() => {
                Some(Batch::poisson(rate, self.n, rng))
            }
            Subsampling::FixedSize(size) => Some(Batch::fixed_size(size as usize, self.n, rng)),
            Subsampling::All | Subsampling::Poisson(_) => None,
        }
    }

    /// The sums of `tally` over the log-ratios of a batch.
    fn sums(
        &self,
        points: [&[f64]; 2],
        tally: Tally,
        batch: Option<Batch>,
    ) -> Result<Sums, ReleaseError> {
        let question = Question::Ratios {
            points,
            temperature: 1.0,
            tally,
        };
        let sums = self.ask(&question, batch)?;
        Ok([sums[0], sums[1]])
    }
}

/// Charges a release about `n` units of so many coordinates and draws its noise, in lattice units.
pub(super) fn charged_noise(
    n: usize,
    coordinates: usize,
    scale: &GradientScale,
    subsampling: Subsampling,
    charge: Charge,
    rng: &mut PrivateRng,
) -> Result<Vec<i128>, ReleaseError> {
    charge.take(&Mechanism {
        factor: scale.sensitivity_factor(),
        sensitivity: scale.sensitivity(),
        sigma: scale.sigma_units(),
        coordinates: coordinates as u64,
        subsampling,
        records: n as u64,
    })?;
    let noise: Vec<i64> = (0..coordinates)
        .map(|_| scale.noise().sample(rng))
        .collect();
    #[cfg(test)]
    let noise = crate::planted::noise(noise, scale.noise(), rng);
    Ok(noise.into_iter().map(i128::from).collect())
}

/// The average of this many releases of a sum, each with its own noise.
pub(super) fn released(
    n: usize,
    sum: &[i128],
    times: u64,
    noise: &[i128],
    scale: &GradientScale,
) -> Noisy<Vec<f64>> {
    let average = |(s, k): (&i128, &i128)| scale.real(s * i128::from(times) + k) / times as f64;
    let released = sum.iter().zip(noise).map(average).collect();
    #[cfg(test)]
    let released = crate::planted::released(released, n);
    #[cfg(not(test))]
    let _ = n;
    Noisy::new(released)
}

#[cfg(test)]
#[path = "batch_tests.rs"]
mod tests;
