//! One record's distribution at one outcome: its mass is searched for on a grid, and atoms and
//! cells are weighed against each other.

use super::super::grid::{CELLS, Cells, Grid, REFINEMENTS};
use super::super::nodes::{NODES, Nodes, Point, Rule};
use super::super::scale::Scale;
use super::super::support::Support;
use super::super::{BLOCK, Dependents, Scratch};
use super::{Law, Step, Work};
use crate::function::{exp, ln};
use crate::linear::vectorised;

/// The value of an outcome about which nothing is known: not a special value of any function.
const ANY: [f64; 1] = [0.5];

/// The reason why a record has no distribution at a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Lost {
    /// No mass was found.
    Nowhere,
    /// Too much mass is where an unbounded column ends.
    Endless,
}

/// One record's distribution at one step.
pub(super) struct Conditional<'a> {
    atoms: &'a [f64],
    /// The scale of the rest.
    scale: &'a Scale,
    /// Their probabilities.
    weights: [f64; NODES],
    /// The rest: the components that have any mass.
    parts: Vec<Part<'a>>,
    is_int: bool,
    pub(super) log_mass: f64,
    /// Whether all components were found, and their tails. Those of a beta density with a shape far below 1 are nearer
    /// to 0 or 1 than numbers are.
    pub(super) is_resolved: bool,
}

/// A component of a mixture, or all that are no atoms.
pub(super) struct Part<'a> {
    component: usize,
    cells: Cells<'a>,
    /// Its probability.
    share: f64,
}

/// The components that have any mass, without their shares, and whether any of it lies where an unbounded column ends.
pub(super) fn parts<'a>(grids: impl Iterator<Item = &'a Grid>) -> (Vec<Part<'a>>, bool) {
    let mut leaves = false;
    let mut parts = Vec::new();
    for (component, grid) in grids.enumerate() {
        let Some(cells) = grid.cells() else { continue };
        leaves |= grid.leaves(&cells);
        parts.push(Part {
            component,
            cells,
            share: 0.0,
        });
    }
    (parts, leaves)
}

impl Law<'_> {
    /// The distribution of an outcome for each record of a block.
    pub(super) fn conditionals(
        &self,
        step: &Step,
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
        mut each: impl FnMut(usize, Result<Conditional, Lost>),
    ) {
        let Support {
            atoms,
            range,
            scale,
        } = &step.support;
        self.log_densities_at_atoms(step, base, rows, work);
        let Work {
            program,
            grids,
            trial,
            log_densities,
            atoms: at_atoms,
            flat,
            ..
        } = work;
        if let Some([lower, upper]) = *range {
            let low = lower.unwrap_or(f64::NEG_INFINITY);
            let high = upper.unwrap_or(f64::INFINITY);
            if grids.len() < step.components.len() {
                let of_first = grids[0].clone();
                grids.resize(step.components.len(), of_first);
            }
            for (terms, grids) in step.components.iter().zip(&mut *grids) {
                let grids = &mut grids[..rows];
                grids.fill(Grid::over(step.is_int, lower, upper));
                let mut is_first = true;
                search(grids, |grids| {
                    for cell in 0..CELLS {
                        for (value, grid) in trial.iter_mut().zip(&*grids) {
                            *value = scale.back(grid.middle(cell));
                            // An atom is not part of the density around it.
                            if !step.is_int && atoms.contains(value) {
                                *value = value.next_up();
                            }
                        }
                        let log_densities = &mut log_densities[..rows];
                        let changed = (!is_first || cell > 0).then_some(&step.dependents);
                        let mut block = base.to_vec();
                        block[step.position] = &trial[..rows];
                        self.evaluate_block((terms, changed), &block, program, log_densities);
                        for (grid, &log_density) in grids.iter_mut().zip(&*log_densities) {
                            let middle = grid.middle(cell);
                            let is_in = (low..=high).contains(&middle) && scale.reaches(middle);
                            let log_density = if is_in {
                                log_density
                            } else {
                                f64::NEG_INFINITY
                            };
                            grid.put(cell, log_density, middle);
                        }
                    }
                    if std::mem::take(&mut is_first) {
                        for (flat, grid) in flat.iter_mut().zip(&*grids) {
                            *flat = grid.flat();
                        }
                    }
                });
            }
        }
        let components = range.map_or(0, |_| step.components.len());
        for i in 0..rows {
            let of_components = grids[..components].iter().map(|grids| &grids[i]);
            let (parts, leaves) = parts(of_components);
            let log_densities = (0..atoms.len()).map(|a| at_atoms[a * BLOCK + i]);
            let are_tails_resolved = |part: &Part| part.cells.are_tails_resolved();
            let are_all = parts.len() == components && parts.iter().all(are_tails_resolved);
            let said = |parts| {
                let found = Conditional::new((atoms, scale), log_densities, parts, step.is_int)?;
                Ok(Conditional {
                    is_resolved: are_all || step.is_int,
                    ..found
                })
            };
            // An outcome without bounds may be unused, as in a branch that leaves it out: then any
            // value will do.
            let nothing =
                |said| Conditional::new((&ANY, scale), [said].into_iter(), Vec::new(), step.is_int);
            each(
                i,
                match (leaves, flat[i]) {
                    (false, _) => said(parts),
                    (true, Some(log_density)) => nothing(log_density),
                    (true, None) => Err(Lost::Endless),
                },
            );
        }
    }

    /// The log densities of an outcome at its atoms, `[atom][BLOCK]`, in the work's `atoms`.
    pub(super) fn log_densities_at_atoms(
        &self,
        step: &Step,
        base: &[&[f64]],
        rows: usize,
        work: &mut Work,
    ) {
        let Work {
            program,
            trial,
            atoms,
            ..
        } = work;
        let of_atoms = step.support.atoms.iter().zip(atoms.chunks_exact_mut(BLOCK));
        for (nth, (value, log_densities)) in of_atoms.enumerate() {
            trial.fill(*value);
            let log_densities = &mut log_densities[..rows];
            let changed = (nth > 0).then_some(&step.dependents);
            self.evaluate(
                step,
                (base, changed),
                &trial[..rows],
                program,
                log_densities,
            );
        }
    }

    /// The log densities of an outcome at the values of `trial`, one for each record. `changed` are the
    /// step's dependents, where the program has been evaluated for the same records before.
    pub(super) fn evaluate(
        &self,
        step: &Step,
        (base, changed): (&[&[f64]], Option<&Dependents>),
        trial: &[f64],
        program: &mut Scratch,
        log_densities: &mut [f64],
    ) {
        let mut block = base.to_vec();
        block[step.position] = trial;
        self.evaluate_block((&step.terms, changed), &block, program, log_densities);
    }

    /// The sum of these terms, one for each record of the block.
    pub(super) fn evaluate_block(
        &self,
        (terms, changed): (&[usize], Option<&Dependents>),
        block: &[&[f64]],
        program: &mut Scratch,
        log_densities: &mut [f64],
    ) {
        let rows = log_densities.len();
        match changed {
            Some(changed) => (self.program).forward_again(changed, block, rows, program),
            None => self.program.forward(block, rows, program),
        }
        log_densities.fill(0.0);
        for &term in terms {
            let of_term = self.program.output(term, block, rows, program);
            for (sum, x) in log_densities.iter_mut().zip(of_term) {
                *sum += x;
            }
        }
    }
}

/// Searches for the mass on grids, which `fill` gives the log densities at the middles of their cells.
pub(super) fn search(grids: &mut [Grid], mut fill: impl FnMut(&mut [Grid])) {
    for round in 1.. {
        fill(grids);
        let mut coarse = false;
        if round < REFINEMENTS {
            for grid in grids.iter_mut() {
                coarse |= grid.refine();
            }
        }
        if !coarse {
            break;
        }
    }
    // Twice, since tails are coarse the first time.
    for last in [false, true] {
        let mut laid = false;
        for grid in grids.iter_mut() {
            laid |= grid.lay_at_scores(last);
        }
        if laid {
            fill(grids);
        }
    }
}

impl<'a> Conditional<'a> {
    pub(super) fn new(
        (atoms, scale): (&'a [f64], &'a Scale),
        log_densities: impl Iterator<Item = f64>,
        mut parts: Vec<Part<'a>>,
        is_int: bool,
    ) -> Result<Self, Lost> {
        let mut weights = [0.0; NODES];
        let own = &mut weights[..atoms.len()];
        for (weight, log_density) in own.iter_mut().zip(log_densities) {
            // No mass where the density is not a number.
            *weight = log_density.max(f64::NEG_INFINITY);
        }
        let of_parts = parts.iter().map(|part| part.cells.log_mass);
        let masses = own.iter().copied().chain(of_parts);
        let peak = masses.clone().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = masses.map(|w| exp(w - peak)).sum();
        let log_mass = peak + ln(total);
        let share = |log: f64| exp(log - log_mass);
        for weight in own {
            *weight = share(*weight);
        }
        for part in &mut parts {
            part.share = share(part.cells.log_mass);
        }
        if !log_mass.is_finite() {
            return Err(Lost::Nowhere);
        }
        Ok(Conditional {
            atoms,
            scale,
            weights,
            parts,
            is_int,
            log_mass,
            is_resolved: true,
        })
    }

    /// Nodes by one rule for each component.
    pub(super) fn nodes(&self, rules: &[Rule], into: &mut Nodes) {
        let mut first = self.atoms.len();
        into.values[..first].copy_from_slice(self.atoms);
        into.weights = self.weights;
        for (component, rule) in rules.iter().enumerate() {
            let mut parts = self.parts.iter();
            if let Some(part) = parts.find(|part| part.component == component) {
                rule.nodes(&part.cells, first, part.share, into);
                for value in &mut into.values[first..first + rule.len()] {
                    *value = self.scale.back(*value);
                }
            }
            first += rule.len();
        }
    }

    /// The value that represents one of equal shares.
    pub(super) fn value(&self, point: Point) -> f64 {
        let mut left = point.share;
        for (value, weight) in self.atoms.iter().zip(&self.weights) {
            left -= weight;
            if left <= 0.0 {
                return *value;
            }
        }
        let Some((last, others)) = self.parts.split_last() else {
            return self.atoms.last().copied().unwrap_or(0.0);
        };
        let mut own = last;
        for part in others {
            if left <= part.share {
                own = part;
                break;
            }
            left -= part.share;
        }
        let is_alone = others.is_empty() && self.atoms.is_empty() && !self.is_int;
        let share = (left / own.share).clamp(0.0, 1.0);
        let tails = if is_alone {
            point.tails
        } else {
            [share, 1.0 - share]
        };
        self.scale.back(own.cells.value(tails))
    }
}

vectorised! {
    /// The shares of atoms in the mass of each record, of their log densities, `[atom][BLOCK]`; all
    /// 0 where there is no mass.
    pub(super) fn shares_of(log_densities: &mut [f64]) {
        let mut peaks = [f64::NEG_INFINITY; BLOCK];
        for column in log_densities.chunks_exact(BLOCK) {
            for (peak, &l) in peaks.iter_mut().zip(column) {
                *peak = if l > *peak { l } else { *peak };
            }
        }
        let mut totals = [0.0; BLOCK];
        for column in log_densities.chunks_exact_mut(BLOCK) {
            for ((l, peak), total) in column.iter_mut().zip(&peaks).zip(&mut totals) {
                // No mass where the density is not a number.
                let mass = if *l <= *peak { exp(*l - peak) } else { 0.0 };
                *l = if mass >= 0.0 { mass } else { 0.0 };
                *total += *l;
            }
        }
        for column in log_densities.chunks_exact_mut(BLOCK) {
            for ((mass, total), peak) in column.iter_mut().zip(&totals).zip(&peaks) {
                let share = *mass / total;
                *mass = if *total > 0.0 && peak.is_finite() { share } else { 0.0 };
            }
        }
    }
}
