//! The sums over records that tell how well runs predict them: log predictive densities and their
//! squares, clipped and centred.
//!
//! All of it is a function of the logarithms of a record's predictive densities, one for each run,
//! and of public bounds. The vectors are no longer than [`ScoreBounds::length`], whatever the
//! densities are.

/// The weight of counts beside that of means. The noise of the number of records enters a mean by the
/// mean's distance from the middle of its bounds only.
const COUNT: f64 = 0.5;
/// Of each record's outcome so many are drawn anew, each at another draw of the parameters, for what
/// the model predicts of a statistic.
pub(crate) const REPLICAS: usize = 10;
/// The weight of how they differ. The more, the better their variance is known, and the more noise
/// all else has.
const REPLICA: f64 = 2.0;
/// The sums of a statistic.
const OF_STATISTIC: usize = 2 + REPLICAS;
/// The square of their length: (1 - m)^2 + (1/2 - m)^2 + 4 m (1 - m) for the mean m of the replicas,
/// which is largest at m = 1/4.
const STATISTIC: f64 = 1.375;
/// [`REPLICA`] over the root of [`REPLICAS`], of which the squares of all differences add up to
/// 4 times their variance.
const REPLICA_SHARE: f64 = REPLICA * 0.316_227_766_016_837_9;

/// Between which numbers something is clipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    pub lower: f64,
    pub upper: f64,
}

impl Bounds {
    pub fn middle(self) -> f64 {
        0.5 * (self.lower + self.upper)
    }

    pub fn half_width(self) -> f64 {
        0.5 * (self.upper - self.lower)
    }

    /// From -1 at the lower bound to 1 at the upper one, and not beyond. NaN is the lower bound.
    fn place(self, x: f64) -> f64 {
        if x.is_nan() {
            return -1.0;
        }
        ((x - self.middle()) / self.half_width()).clamp(-1.0, 1.0)
    }
}

/// The bounds of what is summed: public.
#[derive(Debug, Clone)]
pub struct ScoreBounds {
    /// Of the log predictive density of the first run, nats.
    pub density: Bounds,
    /// Of the differences between those of the other runs and the first one's, nats.
    pub differences: Vec<Bounds>,
    /// Whether a record is one outcome of two values, so that there are guesses to be counted.
    pub is_binary: bool,
    /// Of statistics of a record.
    pub statistics: Vec<Bounds>,
    /// The number of records, where neighbours have as many and one is replaced by another: then those
    /// are counted that lack a value, and not all others. Not under zero-out, where a blank must add
    /// nothing.
    pub records: Option<u64>,
}

/// A mean and a mean square, as shares of a half-width, and what was clipped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Moments {
    pub bounds: Bounds,
    pub sum: f64,
    pub sum_of_squares: f64,
}

/// Sums of a statistic, as shares of its bounds' distance from the lower one.
#[derive(Debug, Clone, PartialEq)]
pub struct StatisticSums {
    pub bounds: Bounds,
    /// How much more than the mean of its replicas it is.
    pub difference: f64,
    /// The mean of the replicas.
    pub predicted: f64,
    /// The difference of each replica from that mean.
    pub replicas: [f64; REPLICAS],
}

/// The sums over records, with their noise.
#[derive(Debug, Clone, PartialEq)]
pub struct ScoreSums {
    /// The number of records that count.
    pub count: f64,
    /// Of these, how many are below the lower bound of the density, and above the upper one.
    pub clipped: [f64; 2],
    pub density: Moments,
    pub differences: Vec<Moments>,
    /// Of outcomes of two values, the number of those with a probability above 1/2, and the sum of
    /// the squares of what the probabilities lack to 1 (Brier 1950).
    pub guesses: Option<[f64; 2]>,
    pub statistics: Vec<StatisticSums>,
}

impl ScoreBounds {
    /// The number of sums.
    pub fn coordinates(&self) -> usize {
        self.first_of_statistics() + OF_STATISTIC * self.statistics.len()
    }

    fn first_of_statistics(&self) -> usize {
        5 + 2 * self.differences.len() + if self.is_binary { 2 } else { 0 }
    }

    /// The length that no record's vector exceeds.
    pub fn length(&self) -> f64 {
        let counted = match self.records {
            // A record that lacks a value has no other entry.
            Some(_) => 0.0,
            None => COUNT,
        };
        self.length_of_scores().hypot(counted) * (1.0 + 1e-12)
    }

    /// The same without the entry that counts records. A place u in its bounds adds
    /// u^2 + (u^2 - 1/2)^2 to the square, 5/4 at most; a guess and a Brier score less 1/2 add 1/4
    /// each, and a record that was clipped is counted once. A statistic adds [`STATISTIC`].
    fn length_of_scores(&self) -> f64 {
        let places = 1.25 * (1 + self.differences.len()) as f64;
        let guesses = if self.is_binary { 0.5 } else { 0.0 };
        let statistics = STATISTIC * self.statistics.len() as f64;
        (places + guesses + statistics + COUNT * COUNT).sqrt()
    }

    /// The vector of a record whose log predictive densities are these, one for each run; `None`: of
    /// one that lacks a value. `shares`: each statistic's place between its bounds, from 0 to 1, and
    /// those of its replicas.
    pub(super) fn vector(
        &self,
        densities: Option<&[f64]>,
        shares: &[[f64; 1 + REPLICAS]],
        mut put: impl FnMut(usize, f64),
    ) {
        let Some(densities) = densities else {
            for k in 1..self.coordinates() {
                put(k, 0.0);
            }
            return put(0, self.records.map_or(0.0, |_| self.length_of_scores()));
        };
        let first = densities.first().copied().filter(|first| !first.is_nan());
        let first = first.unwrap_or(f64::NEG_INFINITY);
        let flag = |is: bool| if is { COUNT } else { 0.0 };
        put(0, self.records.map_or(COUNT, |_| 0.0));
        put(1, flag(first < self.density.lower));
        put(2, flag(first > self.density.upper));
        let mut next = 3;
        let mut moments = |u: f64, put: &mut dyn FnMut(usize, f64)| {
            put(next, u);
            put(next + 1, u * u - 0.5);
            next += 2;
        };
        moments(self.density.place(first), &mut put);
        for (bounds, density) in self.differences.iter().zip(densities.iter().skip(1)) {
            // Both may be infinite: then neither is better.
            let difference = if *density == first {
                0.0
            } else {
                density - first
            };
            moments(bounds.place(difference), &mut put);
        }
        if self.is_binary {
            let probability = first.exp().clamp(0.0, 1.0);
            put(next, if probability > 0.5 { 0.5 } else { -0.5 });
            put(next + 1, (1.0 - probability) * (1.0 - probability) - 0.5);
        }
        let firsts = (self.first_of_statistics()..).step_by(OF_STATISTIC);
        for (next, [own, replicas @ ..]) in firsts.zip(shares) {
            let mean = replicas.iter().sum::<f64>() / REPLICAS as f64;
            put(next, own - mean);
            put(next + 1, mean - 0.5);
            for (k, replica) in replicas.iter().enumerate() {
                put(next + 2 + k, REPLICA_SHARE * (replica - mean));
            }
        }
    }

    /// The share of a statistic's bounds' distance at which a value is.
    pub(super) fn share(bounds: Bounds, x: f64) -> f64 {
        0.5 * (bounds.place(x) + 1.0)
    }

    /// The sums of such vectors, named.
    pub fn named(&self, sums: &[f64]) -> ScoreSums {
        let at = |k: usize| sums.get(k).copied().unwrap_or(f64::NAN);
        let count = match self.records {
            Some(n) => n as f64 - at(0) / self.length_of_scores(),
            None => at(0) / COUNT,
        };
        let moments = |k: usize, bounds: Bounds| Moments {
            bounds,
            sum: at(k),
            sum_of_squares: at(k + 1) + 0.5 * count,
        };
        let last = 5 + 2 * self.differences.len();
        ScoreSums {
            count,
            clipped: [at(1), at(2)].map(|sum| sum / COUNT),
            density: moments(3, self.density),
            differences: (self.differences.iter().enumerate())
                .map(|(k, &bounds)| moments(5 + 2 * k, bounds))
                .collect(),
            guesses: (self.is_binary)
                .then(|| [at(last), at(last + 1)].map(|sum| sum + 0.5 * count)),
            statistics: (self.statistics.iter().enumerate())
                .map(|(k, &bounds)| {
                    let first = self.first_of_statistics() + OF_STATISTIC * k;
                    StatisticSums {
                        bounds,
                        difference: at(first),
                        predicted: at(first + 1) + 0.5 * count,
                        replicas: std::array::from_fn(|s| at(first + 2 + s) / REPLICA_SHARE),
                    }
                })
                .collect(),
        }
    }

    /// The standard deviation of the noise of the number of records, over that of the sums.
    pub fn noise_of_count(&self) -> f64 {
        match self.records {
            Some(_) => 1.0 / self.length_of_scores(),
            None => 1.0 / COUNT,
        }
    }

    /// The same of a replica's sum.
    pub fn noise_of_replica() -> f64 {
        1.0 / REPLICA_SHARE
    }

    /// The same of the numbers of records that were clipped.
    pub fn noise_of_clipped() -> f64 {
        1.0 / COUNT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(is_binary: bool, statistics: usize, records: Option<u64>) -> ScoreBounds {
        let between = |lower, upper| Bounds { lower, upper };
        ScoreBounds {
            density: between(-4.0, 0.0),
            differences: vec![between(-1.0, 1.0), between(-0.5, 0.25)],
            is_binary,
            statistics: vec![between(-1.0, 3.0); statistics],
            records,
        }
    }

    fn vector(
        bounds: &ScoreBounds,
        densities: Option<&[f64]>,
        shares: &[[f64; 1 + REPLICAS]],
    ) -> Vec<f64> {
        let mut vector = vec![f64::NAN; bounds.coordinates()];
        bounds.vector(densities, shares, |k, value| vector[k] = value);
        vector
    }

    /// So many replicas at the upper bound, and the statistic itself there or at the lower one.
    fn extreme(own: f64, upper: usize) -> [f64; 1 + REPLICAS] {
        std::array::from_fn(|k| match k {
            0 => own,
            _ => f64::from(u8::from(k <= upper)),
        })
    }

    // Wrong here: a record that moves the sums by more than it is charged for.
    #[test]
    fn no_vector_is_longer_than_the_length() {
        let values = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            -1e300,
            -5.0,
            -4.0,
            -2.0,
            -0.6,
            -1e-9,
            0.0,
            0.3,
            5.0,
        ];
        for (is_binary, statistics, records) in [
            (false, 0, None),
            (true, 0, None),
            (false, 0, Some(9)),
            (true, 0, Some(9)),
            (true, 2, None),
            (false, 2, Some(9)),
        ] {
            let bounds = bounds(is_binary, statistics, records);
            let mut longest = 0.0f64;
            let shares: Vec<_> = (0..=REPLICAS)
                .flat_map(|upper| {
                    [
                        extreme(0.0, upper),
                        extreme(1.0, upper),
                        extreme(0.4, upper),
                    ]
                })
                .collect();
            let mut turn = 0;
            let mut look = |densities: Option<&[f64]>| {
                turn += 1;
                let shares = vec![shares[turn % shares.len()]; statistics];
                let vector = vector(&bounds, densities, &shares);
                assert!(vector.iter().all(|x| x.is_finite()), "{densities:?}");
                let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
                assert!(length <= bounds.length(), "{densities:?}");
                longest = longest.max(length);
            };
            look(None);
            for a in values {
                for b in values {
                    for c in values {
                        look(Some(&[a, b, c]));
                    }
                }
            }
            // The mean of replicas cannot be 1/4 of ten.
            let near = if statistics > 0 { 0.99 } else { 0.999 };
            assert!(
                longest > near * bounds.length(),
                "the bound is no larger than it need be"
            );
        }
    }

    #[test]
    fn sums_are_named_as_they_were_put() {
        let records = [
            [-1.0, -1.5, -0.9],
            [-0.1, -0.2, -0.1],
            [-7.0, -7.5, -7.2],
            [0.5, 0.5, f64::NEG_INFINITY],
        ];
        for n in [None, Some(6)] {
            let bounds = bounds(true, 1, n);
            let mut sums = vec![0.0; bounds.coordinates()];
            // Two lack a value.
            let lacking = [None, None];
            let all = records.iter().map(|record| Some(&record[..]));
            for (k, record) in all.chain(lacking).enumerate() {
                let shares = [extreme(0.75, 2 * k)];
                for (sum, x) in sums.iter_mut().zip(vector(&bounds, record, &shares)) {
                    *sum += x;
                }
            }
            check(&bounds.named(&sums), &bounds);
        }
    }

    fn check(named: &ScoreSums, bounds: &ScoreBounds) {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        near(named.count, 4.0);
        near(named.clipped[0], 1.0);
        near(named.clipped[1], 1.0);
        near(named.density.sum, 0.5 + 0.95 - 1.0 + 1.0);
        near(named.density.sum_of_squares, 0.25 + 0.9025 + 1.0 + 1.0);
        near(named.differences[0].sum, -0.5 - 0.1 - 0.5 + 0.0);
        let last = bounds.differences[1];
        near(last.middle(), -0.125);
        near(named.differences[1].sum, 0.6 + 1.0 / 3.0 - 0.2 - 1.0);
        let [right, brier] = named.guesses.unwrap();
        near(right, 2.0);
        let lack = |x: f64| (1.0 - x.exp().min(1.0)).powi(2);
        near(brier, [-1.0, -0.1, -7.0, 0.5].map(lack).iter().sum());
        // With means of 0, 0.2, 0.4 and 0.6.
        let statistic = &named.statistics[0];
        near(statistic.difference, 4.0 * 0.75 - 1.2);
        near(statistic.predicted, 1.2);
        near(statistic.replicas[0], 3.0 - 1.2);
        near(statistic.replicas[9], -1.2);
    }
}
