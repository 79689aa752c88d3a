//! Non-centred coordinates of a hierarchical model: where a prior moves and scales a parameter by others, as in
//! `a ~ normal(mu, tau)`, its coordinate is z in a = mu + tau z.
//!
//! Where records say little about each a, the posterior of a and tau is a funnel, whose density has no
//! bound as tau goes to 0; that of z and tau is none (Papaspiliopoulos, Roberts and Sköld 2007, *A general
//! framework for the parametrization of hierarchical models*).

use std::borrow::Cow;
use std::collections::HashMap;

use super::Density;
use super::public::PublicValues;
use crate::model::{LocationScale, PublicId};

/// A parameter may be moved by another that is moved itself, so many times over.
const LAYERS: usize = 4;

/// A map from non-centred coordinates to the unconstrained parameters.
pub(crate) struct NonCentred<'a> {
    density: &'a Density,
    /// Those of one layer are moved by others of earlier ones only.
    layers: Vec<Layer>,
}

struct Layer {
    parts: Vec<Part>,
    /// The nodes that give locations and scales.
    order: Vec<usize>,
}

/// Coordinates with the elements of location and scale that belong to them.
struct Part {
    location: PublicId,
    scale: PublicId,
    /// `[coordinate, element of location, element of scale]`
    places: Vec<[usize; 3]>,
}

/// A point by its coordinates and by its parameters.
pub(crate) struct Place<'a> {
    pub theta: Vec<f64>,
    layers: &'a [Layer],
    values: Vec<PublicValues<'a>>,
}

impl<'a> NonCentred<'a> {
    /// The coordinates of the model's hierarchical parameters that are `wanted`; all others stay as they
    /// are.
    pub fn of(density: &'a Density, wanted: impl Fn(usize) -> bool) -> NonCentred<'a> {
        let graph = &density.model.graphs.public;
        let mut left: Vec<(Part, Vec<bool>)> = Vec::new();
        let mut is_moved = vec![false; density.dimension()];
        for LocationScale {
            coordinates,
            location,
            scale,
        } in &density.model.location_scales
        {
            let element = |id: PublicId, k: usize| if graph.length(id) == 1 { 0 } else { k };
            let mut places = Vec::new();
            for (k, &j) in coordinates.iter().enumerate() {
                if wanted(j) && !is_moved[j] {
                    is_moved[j] = true;
                    places.push([j, element(*location, k), element(*scale, k)]);
                }
            }
            if !places.is_empty() {
                let movers = graph.coordinates_under(&[*location, *scale], density.dimension());
                let part = Part {
                    location: *location,
                    scale: *scale,
                    places,
                };
                left.push((part, movers));
            }
        }
        let mut layers = Vec::new();
        for _ in 0..LAYERS {
            let ready = |movers: &[bool]| !movers.iter().zip(&is_moved).any(|(a, b)| *a && *b);
            let (now, later): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|(_, movers)| ready(movers));
            left = later;
            let parts: Vec<Part> = now.into_iter().map(|(part, _)| part).collect();
            for [j, ..] in parts.iter().flat_map(|part| &part.places) {
                is_moved[*j] = false;
            }
            if parts.is_empty() {
                break;
            }
            let roots = parts.iter().flat_map(|part| [part.location, part.scale]);
            layers.push(Layer {
                order: density.public.order(graph, roots),
                parts,
            });
        }
        NonCentred { density, layers }
    }

    /// Whether the coordinates are the unconstrained parameters.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }

    /// The point with these coordinates.
    pub fn place(&self, coordinates: &[f64]) -> Place<'_> {
        let mut theta = coordinates.to_vec();
        let mut values = Vec::with_capacity(self.layers.len());
        for layer in &self.layers {
            let found = self.values(layer, &theta);
            for ([j, ..], [location, scale]) in layer.moves(&found) {
                theta[j] = location + scale * theta[j];
            }
            values.push(found);
        }
        Place {
            theta,
            layers: &self.layers,
            values,
        }
    }

    /// For each coordinate, whether it is moved.
    pub fn moved(&self) -> Vec<bool> {
        let mut moved = vec![false; self.density.dimension()];
        for part in self.layers.iter().flat_map(|layer| &layer.parts) {
            part.places.iter().for_each(|[j, ..]| moved[*j] = true);
        }
        moved
    }

    /// The log prior of coordinates.
    pub fn log_prior(&self, coordinates: &[f64]) -> f64 {
        let place = self.place(coordinates);
        let none = vec![0.0; coordinates.len()];
        self.density.log_prior(&place.theta) + place.pull_back(coordinates, none).0
    }

    /// The coordinates of these parameters.
    pub fn coordinates(&self, theta: &[f64]) -> Vec<f64> {
        let mut coordinates = theta.to_vec();
        for layer in &self.layers {
            for ([j, ..], [location, scale]) in layer.moves(&self.values(layer, theta)) {
                coordinates[j] = (theta[j] - location) / scale;
            }
        }
        coordinates
    }

    /// The mean square distance from their locations of all parameters that share a scale, for each of these;
    /// 0 for others. It takes the place of the square of the scale, which is far too large where the density of the
    /// coordinates is highest.
    pub fn spread(&self, theta: &[f64]) -> Vec<f64> {
        let mut spread = vec![0.0; theta.len()];
        for layer in &self.layers {
            let values = self.values(layer, theta);
            let mut of_scale: HashMap<(PublicId, usize), Vec<(usize, f64)>> = HashMap::new();
            for part in &layer.parts {
                let locations = values.get(part.location);
                for &[j, location, scale] in &part.places {
                    let square = (theta[j] - locations[location]).powi(2);
                    let sharing = of_scale.entry((part.scale, scale)).or_default();
                    sharing.push((j, square));
                }
            }
            for sharing in of_scale.values() {
                let sum: f64 = sharing.iter().map(|(_, square)| square).sum();
                for (j, _) in sharing {
                    spread[*j] = sum / sharing.len() as f64;
                }
            }
        }
        spread
    }

    fn values(&self, layer: &Layer, theta: &[f64]) -> PublicValues<'_> {
        let Density { public, model, .. } = self.density;
        public.at(&model.graphs.public, Cow::Owned(layer.order.clone()), theta)
    }
}

impl Layer {
    /// The places, with location and scale.
    fn moves(&self, values: &PublicValues) -> Vec<([usize; 3], [f64; 2])> {
        let of_part = |part: &Part| {
            let (locations, scales) = (values.get(part.location), values.get(part.scale));
            let of_place = |&place: &[usize; 3]| (place, [locations[place[1]], scales[place[2]]]);
            part.places.iter().map(of_place).collect::<Vec<_>>()
        };
        self.parts.iter().flat_map(of_part).collect()
    }
}

impl Place<'_> {
    /// The log determinant of the map, and the gradient with respect to the coordinates of that plus a
    /// function with this gradient with respect to the parameters.
    pub fn pull_back(&self, coordinates: &[f64], mut gradient: Vec<f64>) -> (f64, Vec<f64>) {
        let mut log_determinant = 0.0;
        for (layer, values) in self.layers.iter().zip(&self.values).rev() {
            let mut weights = Vec::new();
            for part in &layer.parts {
                let scales = values.get(part.scale);
                let mut of_location = vec![0.0; values.get(part.location).len()];
                let mut of_scale = vec![0.0; scales.len()];
                for &[j, location, scale] in &part.places {
                    log_determinant += scales[scale].ln();
                    of_location[location] += gradient[j];
                    of_scale[scale] += gradient[j] * coordinates[j] + scales[scale].recip();
                    gradient[j] *= scales[scale];
                }
                weights.push((part.location, of_location));
                weights.push((part.scale, of_scale));
            }
            let weights = weights.iter().map(|(id, weights)| (*id, &weights[..]));
            for (g, more) in (gradient.iter_mut()).zip(values.gradient(weights, coordinates.len()))
            {
                *g += more;
            }
        }
        (log_determinant, gradient)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Constants, Model};

    const NESTED: &str = "record { int<lower=1, upper=4> school; real y; }
        parameters {
          real mu;
          real<lower=0> tau;
          real<lower=0> omega;
          vector[2] district;
          vector[4] school_effect;
          real rho;
        }
        model {
          mu ~ normal(0, 1);
          tau ~ exponential(1);
          omega ~ exponential(1);
          for (k in 1:4)
            school_effect[k] ~ student_t(4, district[k <= 2 ? 1 : 2], omega);
          district ~ normal(mu, tau);
          rho ~ normal(0, 1);
          y ~ normal(school_effect[school], 1);
        }";

    fn density(source: &str) -> Density {
        Density::new(Model::from_source(source, &Constants::none()).unwrap())
    }

    #[test]
    fn layers_of_a_hierarchy_are_moved_one_after_the_other() {
        let density = density(NESTED);
        let map = NonCentred::of(&density, |_| true);
        let (mu, tau, omega) = (0.3, 0.7_f64, 0.2_f64);
        let z = [0.5, -1.0, 0.1, 0.2, 0.3, 0.4];
        let mut coordinates = vec![mu, tau.ln(), omega.ln()];
        coordinates.extend(z);
        coordinates.push(2.0);
        let theta = map.place(&coordinates).theta;
        let district = [mu + tau * z[0], mu + tau * z[1]];
        let mut expected = coordinates.clone();
        expected[3..5].copy_from_slice(&district);
        for k in 0..4 {
            expected[5 + k] = district[k / 2] + omega * z[2 + k];
        }
        let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
        assert!(close(&theta, &expected), "{theta:?} {expected:?}");
        assert!(close(&map.coordinates(&theta), &coordinates));
    }

    // The density of the coordinates is that of the parameters times the determinant, and its gradient
    // is that of differences.
    #[test]
    fn gradients_are_those_of_differences() {
        let density = density(NESTED);
        let map = NonCentred::of(&density, |j| j != 6);
        let at = |coordinates: &[f64]| {
            let place = map.place(coordinates);
            let (log_prior, gradient) = density.pull_back(&place.theta, &[]);
            let (log_determinant, gradient) = place.pull_back(coordinates, gradient);
            (log_prior + log_determinant, gradient)
        };
        let coordinates: Vec<f64> = (0..10).map(|j| 0.1 * f64::from(j) - 0.35).collect();
        let (_, gradient) = at(&coordinates);
        for j in 0..10 {
            let moved = |by: f64| {
                let mut moved = coordinates.clone();
                moved[j] += by;
                at(&moved).0
            };
            let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
            assert!(
                (slope - gradient[j]).abs() < 1e-6,
                "{j}: {slope} {gradient:?}"
            );
        }
    }

    // Oracle: given z the density of tau is its prior's, exp(-tau) tau in log tau. If it failed: the determinant would
    // be missing, or have the wrong sign.
    #[test]
    fn coordinates_do_not_depend_on_the_scale() {
        let density = density(NESTED);
        let map = NonCentred::of(&density, |_| true);
        let at = |tau: f64| {
            let mut coordinates = vec![0.3, tau.ln(), 0.1];
            coordinates.extend([0.5, -1.0, 0.1, 0.2, 0.3, 0.4, 2.0]);
            map.log_prior(&coordinates)
        };
        let is_moved = |j: usize| (3..9).contains(&j);
        assert!((0..10).all(|j| map.moved()[j] == is_moved(j)));
        let expected = |tau: f64| tau.ln() - tau;
        let found = at(0.4) - at(1.7);
        assert!(
            (found - expected(0.4) + expected(1.7)).abs() < 1e-9,
            "{found}"
        );
    }

    // Oracle: the distances from mu are -1, 1 and 3 with tau, and 2 with 1.
    #[test]
    fn parameters_that_share_a_scale_are_so_far_apart() {
        let density = density(
            "record { int<lower=1, upper=4> t; real y; }
            parameters { vector[4] x; real mu; real<lower=0> tau; }
            model {
              for (k in 1:3) x[k] ~ normal(mu, tau);
              x[4] ~ normal(mu, 1);
              y ~ normal(x[t], 1);
            }",
        );
        let map = NonCentred::of(&density, |_| true);
        let spread = map.spread(&[1.0, 3.0, 5.0, 4.0, 2.0, 0.3]);
        assert_eq!(spread, [11.0 / 3.0, 11.0 / 3.0, 11.0 / 3.0, 4.0, 0.0, 0.0]);
    }

    // A parameter that is moved by itself, as in a walk that is written as one statement, stays.
    #[test]
    fn a_parameter_does_not_move_itself() {
        let density = density(
            "record { int<lower=1, upper=4> t; real y; }
            parameters { vector[4] x; real<lower=0> tau; }
            model {
              x[1] ~ normal(0, tau);
              x[2:4] ~ normal(x[1:3], tau);
              y ~ normal(x[t], 1);
            }",
        );
        let map = NonCentred::of(&density, |_| true);
        let theta = map.place(&[1.0, 2.0, 3.0, 4.0, 2f64.ln()]).theta;
        assert!((theta[0] - 2.0).abs() < 1e-12);
        assert_eq!(theta[1..4], [2.0, 3.0, 4.0]);
    }
}
