//! A noisy histogram of the lengths of gradients.

use crate::privacy::Bins;

/// Bins count if they are above `VISIBLE` sds of their noise, and the fullest one, from which the
/// others are found, if it is above `FULLEST` sds.
const VISIBLE: f64 = 3.0;
const FULLEST: f64 = 4.0;

/// The part of a histogram that rises above its noise.
#[derive(Debug)]
pub(crate) struct LengthHistogram {
    counts: Vec<f64>,
}

impl LengthHistogram {
    /// From counts whose noise has this standard deviation: the bins around the fullest one, up
    /// to the first that is lost in the noise, so that a distant bin filled by noise alone is not
    /// mistaken for a length. `None` where nothing is visible.
    pub fn visible(counts: &[f64], sd: f64) -> Option<LengthHistogram> {
        let seen = |bin: &usize| counts[*bin] > VISIBLE * sd;
        let fullest = (0..counts.len()).max_by(|a, b| counts[*a].total_cmp(&counts[*b]))?;
        if counts[fullest] <= FULLEST * sd {
            return None;
        }
        let mut visible = vec![0.0; counts.len()];
        let above = (fullest + 1..counts.len()).take_while(seen);
        let below = (0..fullest).rev().take_while(seen);
        for bin in above.chain(below).chain([fullest]) {
            visible[bin] = counts[bin];
        }
        Some(LengthHistogram { counts: visible })
    }

    /// The number of records.
    pub fn records(&self) -> f64 {
        self.counts.iter().sum()
    }

    /// The upper end of the bin up to which this share of the records lies.
    pub fn quantile(&self, share: f64) -> f64 {
        let whole = self.records();
        let mut below = 0.0;
        let mut last = 0;
        for (bin, count) in self.filled() {
            below += count;
            last = bin;
            if below >= share * whole {
                break;
            }
        }
        upper_end(last)
    }

    /// The length that about `records` records exceed: within a bin, logarithms of lengths are
    /// assumed to be evenly spread.
    pub fn exceeded_by(&self, records: f64) -> f64 {
        let mut above = 0.0;
        let mut lowest = upper_end(0);
        for (bin, count) in self.filled().rev() {
            let [from, to] = ends(bin);
            if above + count > records {
                let share = ((records - above) / count).clamp(0.0, 1.0);
                return to * (from / to).powf(share);
            }
            above += count;
            lowest = from;
        }
        lowest
    }

    /// The ratio of the mean square of the lengths to that after clipping, at least 1.
    pub fn lost_by_clipping(&self, clip: f64) -> f64 {
        let mean = |bound: f64| -> f64 {
            self.filled()
                .map(|(bin, count)| {
                    let [from, to] = ends(bin);
                    count * (from * to).min(bound * bound)
                })
                .sum()
        };
        (mean(f64::INFINITY) / mean(clip)).max(1.0)
    }

    fn filled(&self) -> impl DoubleEndedIterator<Item = (usize, f64)> {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|(_, count)| *count > 0.0)
    }
}

fn upper_end(bin: usize) -> f64 {
    Bins::ALL.upper_end(bin)
}

/// The lengths at which a bin begins and ends.
fn ends(bin: usize) -> [f64; 2] {
    let to = upper_end(bin);
    // Bins are equally wide on the logarithmic scale.
    [to * upper_end(0) / upper_end(1), to]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(filled: &[(usize, f64)]) -> Vec<f64> {
        let mut counts = vec![0.0; 40];
        for (bin, count) in filled {
            counts[*bin] = *count;
        }
        counts
    }

    #[test]
    fn what_stands_apart_is_noise() {
        let counts = histogram(&[(3, 35.0), (9, 40.0), (10, 500.0), (11, 31.0), (13, 99.0)]);
        let lengths = LengthHistogram::visible(&counts, 10.0).unwrap();
        assert_eq!(lengths.records(), 571.0);
        // 40 of 571 are below the bin 10.
        assert_eq!(lengths.quantile(0.05), upper_end(9));
        assert_eq!(lengths.quantile(0.5), upper_end(10));
        assert_eq!(lengths.quantile(1.0), upper_end(11));
        assert!(LengthHistogram::visible(&histogram(&[(5, 39.0)]), 10.0).is_none());
        assert!(LengthHistogram::visible(&[], 10.0).is_none());
    }

    #[test]
    fn a_length_that_some_exceed_is_inside_of_its_bin() {
        let lengths =
            LengthHistogram::visible(&histogram(&[(10, 100.0), (11, 40.0)]), 1.0).unwrap();
        assert_eq!(lengths.exceeded_by(0.0), upper_end(11));
        let half = (upper_end(10) * upper_end(11)).sqrt();
        assert!((lengths.exceeded_by(20.0) / half - 1.0).abs() < 1e-12);
        assert!((lengths.exceeded_by(40.0) / upper_end(10) - 1.0).abs() < 1e-12);
        assert!((lengths.exceeded_by(1e9) / upper_end(9) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn clipping_in_the_middle_loses_what_is_above() {
        let lengths = LengthHistogram::visible(&histogram(&[(10, 100.0), (12, 100.0)]), 0.0);
        // With no noise at all the empty bin between them ends the run.
        assert_eq!(lengths.unwrap().records(), 100.0);
        let lengths = LengthHistogram {
            counts: histogram(&[(10, 100.0), (12, 100.0)]),
        };
        assert_eq!(lengths.lost_by_clipping(upper_end(12)), 1.0);
        // Two bins are an octave: squares of 1 and 4, of which the second is cut to 1.
        let lost = lengths.lost_by_clipping((ends(10)[0] * ends(10)[1]).sqrt());
        assert!((lost - 2.5).abs() < 1e-12, "{lost}");
    }
}
