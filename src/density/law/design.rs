//! Which combinations of the outcomes' values are nodes.

use rand::Rng;

use super::super::nodes::{NODES, Point, Rule, points};
use super::{Law, Step};

/// The most nodes where outcomes are joined.
const MOST_NODES: usize = 256;
/// The fewest nodes of a real outcome among several outcomes.
const FEWEST: usize = 4;

/// The values of the outcomes that make up a node.
pub(super) enum Design {
    /// All combinations of each step's atoms and nodes. Each of its components has nodes by a rule.
    Product(Vec<Vec<Rule>>),
    /// The same points for all records, equally weighted.
    Points(Vec<Vec<Point>>),
}

impl Law<'_> {
    /// The number of nodes: at most 16, or 256 where outcomes are joined.
    pub fn nodes(&self) -> usize {
        match &self.design {
            Design::Product(rules) => self.counts(rules).product(),
            Design::Points(points) => points.len(),
        }
    }

    /// How many nodes each step has; all that are joined have those of the first.
    fn counts<'s>(&'s self, rules: &'s [Vec<Rule>]) -> impl Iterator<Item = usize> + 's {
        let steps = self.steps.iter().enumerate().zip(rules);
        steps.map(|((k, step), rules)| match step.joined {
            Some(joined) if joined.first == k => self.joined_points.len(),
            Some(_) => 1,
            None => step.support.atoms.len() + rules.iter().map(Rule::len).sum::<usize>(),
        })
    }

    /// Which of a step's own nodes is part of node `j`.
    pub(super) fn digit(&self, j: usize, step: usize) -> usize {
        match &self.design {
            Design::Product(rules) => {
                let step = self.steps[step].joined.map_or(step, |joined| joined.first);
                let earlier: usize = self.counts(rules).take(step).product();
                let own = self.counts(rules).nth(step).unwrap_or(1);
                j / earlier % own
            }
            Design::Points(_) => j,
        }
    }

    /// Groups of nodes that agree in the values on which a step depends.
    pub(super) fn groups(&self, step: usize) -> Vec<Vec<usize>> {
        let key = |j: usize| -> Vec<usize> {
            let given = self.steps[step].given.iter();
            given.map(|&other| self.digit(j, other)).collect()
        };
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for j in 0..self.nodes() {
            match groups.iter_mut().find(|g| key(g[0]) == key(j)) {
                Some(group) => group.push(j),
                None => groups.push(vec![j]),
            }
        }
        groups
    }

    /// All values of all outcomes, or those of some and nodes for one other, if they fit; otherwise
    /// points.
    pub(super) fn design(&self, rng: &mut impl Rng) -> Design {
        let spread = |s: &&Step| s.support.range.is_some();
        let atoms = |s: &Step| s.support.atoms.len();
        let known = self.steps.iter().filter(|s| !spread(s)).map(atoms);
        let known = known.fold(1, usize::saturating_mul).min(2 * MOST_NODES);
        let room = NODES / known;
        let others: Vec<&Step> = self.steps.iter().filter(spread).collect();
        let fits = match others[..] {
            [] => room > 0,
            [one] => room >= FEWEST * one.components.len() + atoms(one),
            // Those that are joined have nodes of their own.
            _ => {
                let first = |step: &&Step| step.joined.map(|joined| joined.first);
                let of_first = first(&others[0]);
                let are_joined = of_first.is_some() && others.iter().all(|s| first(s) == of_first);
                are_joined && self.joined_points.len() <= MOST_NODES / known
            }
        };
        if !fits {
            return Design::Points(points(self.steps.len(), rng));
        }
        let rules = |s: &Step| -> Vec<Rule> {
            if spread(&s) && s.joined.is_none() {
                Rule::of_parts(s.components.len(), room - atoms(s))
            } else {
                Vec::new()
            }
        };
        Design::Product(self.steps.iter().map(rules).collect())
    }
}
