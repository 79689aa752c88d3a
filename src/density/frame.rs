//! Coordinates in which a density is evaluated.

use serde::{Deserialize, Serialize};

/// theta = centre + axes u: other coordinates u of the unconstrained space, or of a part of it
/// through the centre; and likewise of the interface.
///
/// The log density changes by a constant alone, ln |det axes|, which cancels in every ratio
/// and has no gradient; it is left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    centre: Vec<f64>,
    /// `d x m`, by rows: row i says how far each of the m coordinates of u moves theta_i.
    axes: Vec<f64>,
}

impl Frame {
    /// The unchanged coordinates, about `centre`.
    pub fn about(centre: Vec<f64>) -> Frame {
        let d = centre.len();
        let axes = (0..d * d).map(|k| f64::from(k % (d + 1) == 0)).collect();
        Frame { centre, axes }
    }

    /// `axes`: as many rows as the centre has numbers, m columns, by rows.
    pub(crate) fn new(centre: Vec<f64>, axes: Vec<f64>) -> Frame {
        Frame { centre, axes }
    }

    /// The length of theta.
    pub fn dimension(&self) -> usize {
        self.centre.len()
    }

    /// The length of u.
    pub fn coordinates(&self) -> usize {
        self.axes.len() / self.centre.len().max(1)
    }

    /// theta at u = 0.
    pub fn centre(&self) -> &[f64] {
        &self.centre
    }

    /// Whether it has the right number of numbers, all of them finite.
    pub fn is_sound(&self) -> bool {
        let d = self.centre.len();
        self.axes.len() == d * self.coordinates()
            && self.centre.iter().chain(&self.axes).all(|x| x.is_finite())
    }

    /// theta at `u`.
    pub fn point(&self, u: &[f64]) -> Vec<f64> {
        let moved = self.axes.chunks(self.coordinates().max(1));
        self.centre
            .iter()
            .zip(moved)
            .map(|(c, row)| c + row.iter().zip(u).map(|(a, u)| a * u).sum::<f64>())
            .collect()
    }

    /// The gradient with respect to u of a function with the gradient `g` with respect to theta.
    pub fn pull_back(&self, g: &[f64]) -> Vec<f64> {
        self.pull_back_of(g.iter().copied().enumerate())
    }

    /// The same for a function with these derivatives, and none by the other numbers of theta.
    pub(crate) fn pull_back_of(&self, g: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
        let m = self.coordinates();
        let mut pulled = vec![0.0; m];
        for (j, g) in g {
            for (p, a) in pulled.iter_mut().zip(&self.axes[j * m..]) {
                *p += a * g;
            }
        }
        pulled
    }

    /// The same axes about the point `u`.
    pub fn moved(&self, u: &[f64]) -> Frame {
        Frame {
            centre: self.point(u),
            axes: self.axes.clone(),
        }
    }

    /// The frame about the point `u` of this one, whose axes are `inner` (by rows) in units
    /// of this one's.
    pub fn refined(&self, u: &[f64], inner: &[f64]) -> Frame {
        let (d, m) = (self.dimension(), self.coordinates());
        let mut axes = vec![0.0; d * m];
        for i in 0..d {
            for k in 0..m {
                let a = self.axes[i * m + k];
                for j in 0..m {
                    axes[i * m + j] += a * inner[k * m + j];
                }
            }
        }
        Frame {
            centre: self.point(u),
            axes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_compose_and_gradients_follow() {
        let outer = Frame {
            centre: vec![1.0, -2.0],
            axes: vec![2.0, 1.0, 0.0, 3.0],
        };
        let inner = [0.5, 0.0, -1.0, 2.0];
        let (at, u) = ([0.3, -0.4], [0.7, 0.2]);
        let both = outer.refined(&at, &inner);
        let between: Vec<f64> = (0..2)
            .map(|i| at[i] + inner[2 * i] * u[0] + inner[2 * i + 1] * u[1])
            .collect();
        for (found, expected) in both.point(&u).iter().zip(outer.point(&between)) {
            assert!((found - expected).abs() < 1e-14);
        }
        // f(theta) = theta_1^2 + 3 theta_2
        let f = |u: &[f64]| {
            let theta = both.point(u);
            theta[0] * theta[0] + 3.0 * theta[1]
        };
        let gradient = both.pull_back(&[2.0 * both.point(&u)[0], 3.0]);
        for j in 0..2 {
            let mut moved = [u; 2];
            moved[0][j] += 1e-6;
            moved[1][j] -= 1e-6;
            let slope = (f(&moved[0]) - f(&moved[1])) / 2e-6;
            assert!((slope - gradient[j]).abs() < 1e-8, "{slope} {gradient:?}");
        }
    }
}
