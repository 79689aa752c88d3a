//! How long gradients are by the model's law, which is public as far as covariates are.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::density::{BLOCK, Density, Frame, Law, Simulator};
use crate::sampler::form::Form;

/// Of records that are made up; one block.
const SEED: u64 = 1;
const RECORDS: usize = if BLOCK < 256 { BLOCK } else { 256 };

/// The mean length of gradients that are weighed by their squares, over the root mean square, of
/// made-up records at the frame's centre: 1 where all are as long. Infinite where outcomes have few
/// values: of these one that is rare may have most of the information, how rare it is depends on
/// covariates, and made-up ones do not tell.
pub(super) fn reach_of_law(form: &Form, density: &Density, law: &Law, frame: &Frame) -> f64 {
    if !law.is_costly() {
        return f64::INFINITY;
    }
    let point = frame.centre();
    let theta = match form.space.is_parameters() {
        true => point.to_vec(),
        // Covariates do not depend on the parameters.
        false => form.middle.clone(),
    };
    let rng = &mut ChaCha8Rng::seed_from_u64(SEED);
    let raw = Simulator::new(density).records(&theta, RECORDS, None, rng);
    let columns: Vec<&[f64]> = law.columns().iter().map(|&c| &raw[c][..]).collect();
    let sight = law.sight(&form.space, point, frame);
    let mut scratch = law.scratch_at(&sight.z, frame.coordinates());
    let [mut mass, mut squares, mut cubes] = [0.0; 3];
    law.scores(
        &columns,
        RECORDS,
        &sight.jacobian,
        &mut scratch,
        |_, node| {
            for (i, p) in node.probabilities.iter().enumerate() {
                let of_record = node.gradients.iter().skip(i).step_by(BLOCK);
                let square: f64 = of_record.map(|g| g * g).sum();
                mass += p;
                squares += p * square;
                cubes += p * square * square.sqrt();
            }
        },
    );
    let reach = cubes / squares / (squares / mass).sqrt();
    match reach.is_finite() {
        true => reach.max(1.0),
        false => f64::INFINITY,
    }
}
