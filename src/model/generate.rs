//! Generated quantities: the program run once more for each draw, whose
//! parameters are numbers.
//!
//! Here the program is interpreted, where binding a model traces it. Since every value is a number,
//! every branch is either taken or not, and every loop ends by itself.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::constants::Constants;
use super::private::{Graphs, Scalar};
use super::trace::{State, Tracer};
use super::value::{Data, Shape, Value};
use super::{BindError, declared};
use crate::check::{Base, Checked, Role, VariableId};
use crate::syntax::Span;

/// Draws in `transformed constants` come from this seed: a model is the same
/// each time it is bound.
const SEED_OF_CONSTANTS: u64 = 0x6470_6d00;

/// A program bound to its constants, to be run for draws of its parameters.
///
/// Deep recursion needs [`crate::check::on_deep_stack`] around the generator.
pub struct Generator<'a> {
    checked: &'a Checked,
    /// The constants and transformed constants.
    constants: State,
    /// The parameters, in declaration order.
    parameters: Vec<(String, Shape)>,
    /// The generated quantities, in declaration order.
    quantities: Vec<(VariableId, Shape)>,
    random: ChaCha8Rng,
    /// The output of `print` while the constants were bound.
    pub printed: Vec<String>,
}

/// The results for one draw.
pub struct Generated {
    /// In the order of [`Generator::names`].
    pub values: Vec<f64>,
    /// The output of `print`.
    pub printed: Vec<String>,
}

impl<'a> Generator<'a> {
    /// Binds a program to its constants.
    ///
    /// Errors: as [`super::Model::bind`].
    pub fn new(checked: &'a Checked, constants: &Constants) -> Result<Self, BindError> {
        let mut tracer = Tracer::new(checked);
        run_constants(&mut tracer, constants)?;
        let parameters = checked
            .parameters
            .iter()
            .map(|&id| {
                let shape = tracer.declared_shape(id)?;
                Ok((checked.variable(id).name.clone(), shape))
            })
            .collect::<Result<_, BindError>>()?;
        let quantities = checked
            .generated_quantities
            .iter()
            .map(|&id| Ok((id, tracer.declared_shape(id)?)))
            .collect::<Result<_, BindError>>()?;
        // The graph is dropped, so that each draw starts with an empty one.
        let mut constants = tracer.state;
        for value in constants.variables.iter_mut().flatten() {
            value.data = Data::Elements(value.elements(&tracer.graphs));
        }
        Ok(Generator {
            checked,
            constants,
            parameters,
            quantities,
            random: ChaCha8Rng::seed_from_u64(0),
            printed: tracer.printed,
        })
    }

    /// Names and shapes of the parameters, in declaration order.
    pub fn parameters(&self) -> &[(String, Shape)] {
        &self.parameters
    }

    /// Where the elements of each parameter stand, in storage order, by where `place` has the column of
    /// that name.
    ///
    /// # Errors
    ///
    /// The first element that has no column, and its parameter.
    pub fn places(
        &self,
        place: impl Fn(&str) -> Option<usize>,
    ) -> Result<Vec<Vec<usize>>, [String; 2]> {
        let mut found = Vec::new();
        for (name, shape) in &self.parameters {
            let mut places = vec![0; shape.length()];
            let elements = shape.column_names(name);
            for (element, position) in elements.into_iter().zip(shape.column_major_order()) {
                places[position] = place(&element).ok_or_else(|| [element, name.clone()])?;
            }
            found.push(places);
        }
        Ok(found)
    }

    /// Column names in Stan's order and spelling: `y.1`, `m.2.1`.
    pub fn names(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (id, shape) in &self.quantities {
            names.extend(shape.column_names(&self.checked.variable(*id).name));
        }
        names
    }

    /// Starts the random numbers of a chain, counted from 1: the same seed and chain give the same
    /// numbers.
    pub fn start_chain(&mut self, seed: u64, chain: u64) {
        self.random = ChaCha8Rng::seed_from_u64(seed);
        self.random.set_stream(chain);
    }

    /// Runs `transformed parameters` and `generated quantities` for one draw.
    /// `parameters` holds each parameter's elements in storage order.
    ///
    /// Errors: sizes do not fit, an index leaves its container, a value violates a
    /// declared bound; with [`BindError::rejected`] set, the program rejects the
    /// draw.
    pub fn run(&mut self, parameters: &[Vec<f64>]) -> Result<Generated, BindError> {
        let checked = self.checked;
        let mut tracer = Tracer::new(checked);
        tracer.state = self.constants.clone();
        for ((&id, (_, shape)), elements) in checked
            .parameters
            .iter()
            .zip(&self.parameters)
            .zip(parameters)
        {
            tracer.state.variables[id.0] = Some(Value::of(
                shape.clone(),
                elements.iter().map(|&v| Scalar::number(v)).collect(),
            ));
        }
        tracer.statements(&checked.transformed_parameter_statements)?;
        tracer.random = Some(self.random.clone());
        let outcome = tracer.statements(&checked.generated_statements);
        // Also after a rejection, so that the next draw uses new random numbers.
        if let Some(random) = tracer.random.take() {
            self.random = random;
        }
        outcome?;
        tracer.keep_promises(Role::GeneratedQuantity)?;
        let mut values = Vec::new();
        for (id, shape) in &self.quantities {
            values.extend(quantity(&tracer, *id, shape)?);
        }
        Ok(Generated {
            values,
            printed: tracer.printed,
        })
    }
}

/// Binds constants and runs `transformed constants`.
pub(super) fn run_constants(tracer: &mut Tracer, constants: &Constants) -> Result<(), BindError> {
    declared::bind_constants(tracer, constants)?;
    tracer.random = Some(ChaCha8Rng::seed_from_u64(SEED_OF_CONSTANTS));
    tracer.statements(&tracer.checked.transformed_constants)?;
    tracer.random = None;
    tracer.keep_promises(Role::TransformedConstant)
}

/// The value of a generated quantity, in Stan's order.
fn quantity(tracer: &Tracer, id: VariableId, shape: &Shape) -> Result<Vec<f64>, BindError> {
    let variable = tracer.checked.variable(id);
    let fail = |message: String| BindError::new(variable.span, message);
    let name = &variable.name;
    let elements = match &tracer.state.variables[id.0] {
        Some(value) if value.shape.sizes == shape.sizes => value.elements(&tracer.graphs),
        Some(value) => {
            return Err(fail(format!(
                "the sizes of `{name}` are not the same for every draw: {} and {}",
                shape.describe(),
                value.shape.describe()
            )));
        }
        None => return Err(fail(format!("`{name}` has no value"))),
    };
    let numbers: Vec<f64> = elements
        .iter()
        .map(|&e| number(&tracer.graphs, variable.span, e))
        .collect::<Result<_, _>>()?;
    if variable.ty.base == Base::Int
        && let Some(bad) = numbers.iter().find(|v| v.fract() != 0.0)
    {
        return Err(BindError::new(
            variable.span,
            if bad.is_nan() {
                format!("`{name}` is `int` and was given no value")
            } else {
                format!("`{name}` is `int`, but is {bad}")
            },
        ));
    }
    let order = shape.column_major_order();
    Ok(order
        .into_iter()
        .map(|position| numbers[position])
        .collect())
}

/// Constants fold while the graph is built, so that every value is a number.
fn number(graphs: &Graphs, span: Span, scalar: Scalar) -> Result<f64, BindError> {
    let folded = match scalar {
        Scalar::Public(id, i) => graphs
            .public
            .constant_values(id)
            .and_then(|values| values.get(i as usize).copied()),
        other => other.as_number(),
    };
    folded.ok_or_else(|| BindError::new(span, "the value of this is not known"))
}
