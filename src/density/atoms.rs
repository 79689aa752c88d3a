//! Values of an outcome with a probability of their own, as simulated records draw them. Whether an outcome has
//! any is not asked of the model: each record has those with which its probabilities sum to 1.

use rand::{Rng, RngExt};

use super::grid::Grid;
use super::support::{atoms, classes};
use crate::function::exp;
use crate::model::{Model, Outcome, Scalar};

/// Values of an outcome that may have a probability of their own.
pub(super) struct Atoms {
    pub values: Vec<f64>,
    /// Whether there are no others.
    pub are_all: bool,
}

impl Atoms {
    /// The sets that an outcome of the model may have; it may also have none.
    pub fn of(model: &Model, outcome: &Outcome, terms: &[Scalar]) -> Vec<Atoms> {
        let sets = atoms(model, outcome.column, terms).into_iter();
        let beside_density = sets.filter(|set| !set.is_empty()).map(|values| Atoms {
            values,
            are_all: false,
        });
        let alone = classes(model, outcome.column, outcome.variate).map(|values| Atoms {
            values,
            are_all: true,
        });
        beside_density.chain(alone).collect()
    }
}

/// The probabilities of the atoms of an outcome, by record.
pub(super) struct AtomsAt<'a> {
    /// For each set, those of its values.
    sets: Vec<(&'a Atoms, Vec<Vec<f64>>)>,
}

impl<'a> AtomsAt<'a> {
    /// `log_densities` gives those of all records at a value of the outcome.
    pub fn new(sets: &'a [Atoms], mut log_densities: impl FnMut(f64) -> Vec<f64>) -> AtomsAt<'a> {
        let mut at = |atoms: &Atoms| {
            let each = atoms.values.iter().map(|x| log_densities(*x));
            each.collect()
        };
        AtomsAt {
            sets: sets.iter().map(|atoms| (atoms, at(atoms))).collect(),
        }
    }

    /// The atom that a record draws, if it draws one. Of the sets and the density alone, those count whose
    /// probabilities are nearest to a sum of 1.
    pub fn draw(&self, i: usize, grid: &Grid, rng: &mut impl Rng) -> Option<f64> {
        if self.sets.is_empty() {
            return None;
        }
        let density = grid.cells().map_or(0.0, |cells| exp(cells.log_mass));
        let off = |total: f64| {
            let off = total.ln().abs();
            if off.is_nan() { f64::INFINITY } else { off }
        };
        let (mut least, mut found) = (off(density), None);
        for (atoms, logs) in &self.sets {
            let of_atoms = logs.iter().map(|of_value| exp(of_value[i])).sum::<f64>();
            let total = of_atoms + if atoms.are_all { 0.0 } else { density };
            if off(total) < least {
                (least, found) = (off(total), Some((atoms, logs, total)));
            }
        }
        let (atoms, logs, total) = found?;
        let mut left = rng.random::<f64>() * total;
        let mut each = atoms.values.iter().zip(logs);
        let chosen = each.find(|(_, of_value)| {
            left -= exp(of_value[i]);
            left <= 0.0
        });
        let last = atoms.values.last().filter(|_| atoms.are_all);
        chosen.map(|(x, _)| *x).or(last.copied())
    }
}
