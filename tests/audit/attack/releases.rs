//! The vault's releases, asked through its public door under a plan made for them, and
//! read back as the integers that they are.

use dpm::Vault;
use dpm::accounting::{Barker, Event, Gaussian, Lattice, Real, Relation, Subsampled, batch_rate};
use dpm::testing::privacy::{
    BarkerScale, BatchPenaltyPlan, BatchPenaltyScale, Charge, GradientScale, InclusionRate,
    NotPrivate, PenaltyPlan, PenaltyScale, PrivateRng, Subsampling, penalty,
};

use super::Broken;

/// A kind of release, with its public numbers. A new one is a variant here and an arm in
/// [`Release::ask`]; every attack on single releases then covers it.
#[derive(Debug, Clone)]
pub enum Release {
    Gradient {
        at: Vec<f64>,
        clip: f64,
        tau: f64,
        batch: Batch,
    },
    LogRatio {
        from: Vec<f64>,
        to: Vec<f64>,
        /// Bound on one record's ratio, nats per unit of distance.
        clip: f64,
        tau: f64,
        temperature: f64,
    },
    BatchLogRatio {
        from: Vec<f64>,
        to: Vec<f64>,
        clip: f64,
        tau: f64,
        temperature: f64,
        batch: Batch,
    },
    /// DP-Barker's test on a batch of `size` out of `records`.
    Barker {
        from: Vec<f64>,
        to: Vec<f64>,
        temperature: f64,
        size: u64,
        records: u64,
    },
}

/// Which records a release is about.
#[derive(Debug, Clone, Copy)]
pub enum Batch {
    All,
    /// Each with this probability.
    Poisson(f64),
    /// So many out of the number of records.
    FixedSize(u64, u64),
}

impl Batch {
    fn subsampling(self) -> Subsampling {
        match self {
            Batch::All => Subsampling::All,
            Batch::Poisson(rate) => Subsampling::Poisson(InclusionRate::new(rate).expect("a rate")),
            Batch::FixedSize(size, _) => Subsampling::FixedSize(size),
        }
    }

    fn event(
        self,
        what: &str,
        clip: f64,
        relation: Relation,
        sigma: f64,
        lattice: Lattice,
    ) -> Event {
        let event = match self {
            Batch::All => Gaussian::of_clip(what, clip, relation, sigma)
                .map(|event| Event::Gaussian(event.on_lattice(lattice))),
            Batch::Poisson(rate) => Subsampled::poisson(what, clip, relation, rate, sigma)
                .map(|event| Event::Subsampled(event.on_lattice(lattice))),
            Batch::FixedSize(size, records) => {
                let rate = batch_rate(size, records).expect("a rate");
                Subsampled::without_replacement(what, clip, relation, rate, sigma)
                    .map(|event| Event::Subsampled(event.on_lattice(lattice)))
            }
        };
        event.expect("an event")
    }

    fn penalty(self, temperature: f64, factor: u8, tau: f64) -> BatchPenaltyScale {
        let scale = match self {
            Batch::All => panic!("a log-ratio of all rows is no batch's"),
            Batch::Poisson(rate) => {
                let rate = InclusionRate::new(rate).expect("a rate");
                BatchPenaltyScale::poisson(rate, temperature, factor, tau)
            }
            Batch::FixedSize(size, records) => {
                BatchPenaltyScale::fixed_size(size, records, temperature, tau)
            }
        };
        scale.expect("a scale")
    }
}

/// An answer of the vault.
pub struct Answer {
    /// In lattice units, which the answer must be whole numbers of.
    pub units: Vec<i128>,
    /// `None` where the width of the noise is a function of rows.
    pub noise: Option<Noise>,
    /// How many of each planned event were charged.
    pub charged: Vec<u64>,
    /// The next bits of the private generator, which tell whether as much was drawn from it.
    pub next_bits: u64,
}

/// The noise and the sensitivity of a sum by its charge.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// In lattice units.
    pub sigma: f64,
    /// How far neighbours may be apart in lattice units, in l2 norm.
    pub sensitivity: f64,
    /// Still to be taken off the answer, in lattice units: known to all.
    pub penalty: f64,
}

/// How many clip bounds apart neighbours are said to be.
fn factor(relation: Relation) -> u8 {
    relation.sensitivity(Real::ONE).to_f64() as u8
}

impl Release {
    /// The event that a plan would have for one such release, as `sampler::Plan` makes it.
    pub fn event(&self, relation: Relation) -> Event {
        let factor = factor(relation);
        match self {
            Release::Gradient {
                at,
                clip,
                tau,
                batch,
            } => {
                let scale = GradientScale::new(*clip, factor, *tau).expect("a scale");
                let (what, sigma) = ("gradient", scale.sigma());
                let ratio = scale.lattice_ratio();
                let lattice = Lattice::new(ratio, at.len() as u64).expect("a lattice");
                batch.event(what, *clip, relation, sigma, lattice)
            }
            Release::LogRatio { clip, tau, .. } => {
                let sigma = (f64::from(factor) * clip * tau).next_down();
                let event = Gaussian::of_clip("log-ratio", *clip, relation, sigma);
                let lattice = Lattice::new(penalty::LATTICE_RATIO, 1).expect("a lattice");
                Event::Gaussian(event.expect("an event").on_lattice(lattice))
            }
            Release::BatchLogRatio {
                tau,
                temperature,
                batch,
                ..
            } => {
                let scale = batch.penalty(*temperature, factor, *tau);
                let lattice = Lattice::new(scale.lattice_ratio(), 1).expect("a lattice");
                // In units of its bound, whatever that is.
                let sigma = f64::from(factor) * tau;
                batch.event("log-ratio", 1.0, relation, sigma, lattice)
            }
            Release::Barker {
                temperature,
                size,
                records,
                ..
            } => {
                let scale = BarkerScale::new(*size, *records, *temperature).expect("a scale");
                let lattice = Lattice::new(scale.lattice_ratio(), 1).expect("a lattice");
                let test = Barker::new("test", *size, *records).expect("an event");
                Event::Barker(test.on_lattice(lattice))
            }
        }
    }

    /// Asks once. `None` where public numbers alone decide, and nothing is asked.
    ///
    /// # Errors
    ///
    /// The answer is not on the lattice that was charged.
    pub fn ask(
        &self,
        vault: &Vault,
        relation: Relation,
        rng: &mut PrivateRng,
    ) -> Result<Option<Answer>, Broken> {
        let event = self.event(relation);
        let meter = NotPrivate::acknowledged().meter(vec![event.clone()]);
        let charge = Charge::first(&meter);
        let sum = || event.release().expect("a sum and its noise");
        // The answer, what is to be added to it, its lattice, and what floats may have cost
        // it relative to its size.
        let (values, penalty, gamma, rounding, noise) = match self {
            Release::Gradient {
                at,
                clip,
                tau,
                batch,
            } => {
                let scale = GradientScale::new(*clip, factor(relation), *tau).expect("a scale");
                let noisy =
                    vault.noisy_batch_gradient(at, &scale, batch.subsampling(), charge, rng);
                let (noise, gamma) = Noise::of_sum(sum());
                let values = noisy.expect("a release").into_inner();
                (values, 0.0, gamma, OF_SUM, Some(noise))
            }
            Release::LogRatio {
                from,
                to,
                clip,
                tau,
                temperature,
            } => {
                let bound = temperature * clip * distance(from, to);
                let scale = PenaltyScale::new(factor(relation), *tau).expect("a scale");
                let PenaltyPlan::Query(query) = scale.plan(bound).expect("a plan") else {
                    return Ok(None);
                };
                let noisy = vault.noisy_log_ratio(from, to, *temperature, &query, charge, rng);
                let noisy = noisy.expect("a release").into_inner();
                // Half a lattice unit, since the penalty is half a variance.
                let gamma = 0.5f64.powi(penalty::J as i32 + 1);
                let noise = Noise {
                    sigma: noisy.sigma / gamma,
                    sensitivity: f64::from(factor(relation)) * bound / gamma,
                    penalty: 0.5 * noisy.sigma * noisy.sigma / gamma,
                };
                let charged = (sum().sensitivity() / sum().sigma()).to_f64();
                if noise.sensitivity / noise.sigma > charged * (1.0 + 1e-12) {
                    return Err(Broken(format!(
                        "a ratio with {noise:?} is charged as one of {charged} times the noise"
                    )));
                }
                // A power of 2 costs nothing, and the penalty stays in: with it taken out,
                // numbers might not fit their digits.
                (vec![noisy.penalised], 0.0, gamma, 0.0, Some(noise))
            }
            Release::BatchLogRatio {
                from,
                to,
                clip,
                tau,
                temperature,
                batch,
            } => {
                let scale = batch.penalty(*temperature, factor(relation), *tau);
                let bound = clip * distance(from, to);
                let BatchPenaltyPlan::Query(query) = scale.plan(bound).expect("a plan") else {
                    return Ok(None);
                };
                let noisy = vault.noisy_batch_log_ratio(from, to, &query, charge, rng);
                let noisy = noisy.expect("a release").into_inner();
                let ratio = sum().lattice().expect("a lattice").ratio().to_f64();
                let noise = Noise {
                    sigma: 1.0 / ratio,
                    sensitivity: (sum().sensitivity() / sum().sigma()).to_f64() / ratio,
                    penalty: 0.0,
                };
                let (values, gamma) = (vec![noisy.penalised], noisy.sigma * ratio);
                // Multiplied, less the penalty, and the same backwards: four roundings.
                let penalty = 0.5 * noisy.sigma * noisy.sigma;
                (values, penalty, gamma, 2f64.powi(-51), Some(noise))
            }
            Release::Barker {
                from,
                to,
                temperature,
                size,
                records,
            } => {
                let scale = BarkerScale::new(*size, *records, *temperature).expect("a scale");
                let noisy = vault.noisy_barker(from, to, &scale, charge, rng);
                let value = noisy.expect("a release").into_inner();
                (vec![value], 0.0, scale.lattice_ratio(), 0.0, None)
            }
        };
        Ok(Some(Answer {
            units: read_back(&values, penalty, gamma, rounding)?,
            noise,
            charged: meter.counts(),
            next_bits: rng.next_u64(),
        }))
    }
}

/// The error of a sum that was multiplied by its lattice and is divided by it again: two roundings.
const OF_SUM: f64 = 1.0 / (1u64 << 51) as f64;

/// The lattice units of an answer to which a penalty is added, of which floats may have cost a
/// share.
fn read_back(values: &[f64], penalty: f64, gamma: f64, rounding: f64) -> Result<Vec<i128>, Broken> {
    let mut units = Vec::with_capacity(values.len());
    for value in values {
        let unit = (value + penalty) / gamma;
        let rounding = rounding * (unit.abs() + penalty / gamma);
        if unit.abs() >= 2f64.powi(53) || rounding >= 0.1 {
            panic!("{unit} units are too many to be read back");
        }
        if (unit - unit.round()).abs() > rounding {
            return Err(Broken(format!(
                "the answer {value:e} is {unit} lattice units, and no whole number of them"
            )));
        }
        units.push(unit.round() as i128);
    }
    Ok(units)
}

impl Noise {
    /// Of a sum of clipped vectors, and its lattice.
    fn of_sum(sum: &Gaussian) -> (Noise, f64) {
        let ratio = sum.lattice().expect("a lattice").ratio().to_f64();
        let gamma = sum.sigma().to_f64() * ratio;
        let noise = Noise {
            sigma: 1.0 / ratio,
            sensitivity: sum.sensitivity().to_f64() / gamma,
            penalty: 0.0,
        };
        (noise, gamma)
    }
}

impl Answer {
    /// That of a sum which was planned outside of a run, asked once.
    ///
    /// # Errors
    ///
    /// It is not on the lattice that was charged.
    pub fn planned(
        event: &Event,
        rng: &mut PrivateRng,
        ask: impl FnOnce(Charge, &mut PrivateRng) -> Vec<f64>,
    ) -> Result<Answer, Broken> {
        let meter = NotPrivate::acknowledged().meter(vec![event.clone()]);
        let charge = Charge::first(&meter);
        let values = ask(charge, rng);
        let (noise, gamma) = Noise::of_sum(event.release().expect("a sum and its noise"));
        Ok(Answer {
            units: read_back(&values, 0.0, gamma, OF_SUM)?,
            noise: Some(noise),
            charged: meter.counts(),
            next_bits: rng.next_u64(),
        })
    }
}

fn distance(from: &[f64], to: &[f64]) -> f64 {
    let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
    from.iter().zip(to).map(square).sum::<f64>().sqrt()
}

/// Asks `times` times about rows of which none counts, so that what comes back is noise,
/// and compares its variance with what was charged, and the number of charges.
///
/// Chi-square with `times` degrees of freedom or more, within 6.5 standard deviations: a
/// false alarm has probability below 1e-9; with 4,000 draws, a sigma 10 % off is 4
/// deviations farther.
///
/// # Errors
///
/// There is less noise than was charged, or more.
pub fn noise_is_as_charged(
    release: &Release,
    vault: &Vault,
    relation: Relation,
    times: u64,
) -> Result<(), Broken> {
    answers_are_noise(times, |rng| {
        let answer = release.ask(vault, relation, rng)?;
        answer.ok_or_else(|| Broken("nothing was asked".to_owned()))
    })
}

/// The same of whatever is asked.
///
/// # Errors
///
/// There is less noise than was charged, or more.
pub fn answers_are_noise(
    times: u64,
    ask: impl Fn(&mut PrivateRng) -> Result<Answer, Broken>,
) -> Result<(), Broken> {
    let mut rng = PrivateRng::insecure(5, NotPrivate::acknowledged());
    let (mut sum, mut count) = (0.0, 0.0);
    for _ in 0..times {
        let answer = ask(&mut rng)?;
        let Some(noise) = answer.noise else {
            return Err(Broken("the noise depends on rows".to_owned()));
        };
        for units in answer.units {
            sum += ((units as f64 + noise.penalty) / noise.sigma).powi(2);
            count += 1.0;
        }
    }
    let deviations = (sum - count) / (2.0 * count).sqrt();
    if deviations.abs() > 6.5 {
        return Err(Broken(format!(
            "the noise has {:.4} times the charged standard deviation",
            (sum / count).sqrt()
        )));
    }
    Ok(())
}

/// Makes `times` releases on one meter.
///
/// # Errors
///
/// The meter has not counted them all.
pub fn releases_are_counted(vault: &Vault, relation: Relation, times: u64) -> Result<(), Broken> {
    let clip = 1.0;
    let at = vec![0.1; vault.density().dimension()];
    let release = Release::Gradient {
        at: at.clone(),
        clip,
        tau: 2.0,
        batch: Batch::All,
    };
    let meter = NotPrivate::acknowledged().meter(vec![release.event(relation).times(times)]);
    let charge = Charge::first(&meter);
    let scale = GradientScale::new(clip, factor(relation), 2.0).expect("a scale");
    let mut rng = PrivateRng::insecure(6, NotPrivate::acknowledged());
    let mut made = 0;
    let mut release =
        || vault.noisy_batch_gradient(&at, &scale, Subsampling::All, charge, &mut rng);
    while made < 2 * times && release().is_ok() {
        made += 1;
    }
    if made != times || meter.counts() != [times] {
        return Err(Broken(format!(
            "of {times} planned releases {made} were made, and {:?} charged",
            meter.counts()
        )));
    }
    Ok(())
}
