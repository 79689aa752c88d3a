//! A model bound to its constants: parameters, transforms, and the two halves of
//! its log density as graphs.
//!
//! ```text
//! log p(theta | X) = prior(theta) + sum over records of likelihood(x_i, theta)
//! ```
//!
//! The prior and the Jacobian are public nodes; the likelihood of one record is
//! a private one. No code in this module reads private rows.

mod blocks;
mod constants;
mod constraint;
mod declared;
mod generate;
mod guessed;
mod interval;
mod private;
mod public;
mod running_sum;
mod sensitivity;
mod trace;
mod transform;
mod value;

pub use constants::{Constants, ConstantsError, nested, numbers};
pub use generate::Generator;
pub use guessed::{Guessed, GuessedLaw};
pub use private::{Graphs, PrivateGraph, PrivateId, PrivateNode, PrivateOp, Scalar, operands};
pub use public::{Binary, Bits, PublicGraph, PublicId, PublicOp};
pub use sensitivity::{Derived, NeedKind, Sensitivity, in_words};
pub use transform::Transform;
pub use value::Shape;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::check::{Checked, Role, examine, on_deep_stack};
use crate::distribution::Algebra;
use crate::syntax::{Diagnostic, Span};
use interval::{Interval, interval};
use trace::{LikelihoodStatement, Tracer};

/// A program and its constants do not fit together. Points into the source.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct BindError {
    pub span: Span,
    pub message: String,
    /// The calls that led into the function that contains `span`, innermost first.
    pub calls: Vec<Span>,
    /// Whether the program itself said so, with `reject`.
    pub rejected: bool,
}

impl BindError {
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        BindError {
            span,
            message: message.into(),
            calls: Vec::new(),
            rejected: false,
        }
    }

    /// The error as a diagnostic that can be rendered with its source.
    pub fn diagnostic(&self) -> Diagnostic {
        let diagnostic = Diagnostic::error("E0300", self.span, self.message.clone());
        self.calls
            .iter()
            .fold(diagnostic.label("here"), |d, &call| {
                d.note(call, "called here")
            })
    }
}

/// One declared parameter.
#[derive(Debug, Clone)]
pub struct Parameter {
    pub name: String,
    pub shape: Shape,
    pub transform: Transform,
    /// The position of its first unconstrained coordinate, in declaration order.
    pub offset: usize,
    /// Their number: fewer than elements for a simplex, for example.
    pub free_length: usize,
}

/// A parameter or transformed parameter as the output shows it.
#[derive(Debug, Clone)]
pub struct Output {
    pub name: String,
    pub shape: Shape,
    pub node: PublicId,
}

/// One scalar column of the record.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordColumn {
    /// As in the header of a data file: `dist`, or `x.1` for an element.
    pub name: String,
    /// The name in the model: `dist`, `x`.
    pub variable: String,
    pub is_int: bool,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    /// The words of a factor, in the order of its ints 1, 2, ...; none for
    /// columns of numbers.
    pub levels: Vec<String>,
    /// Whether the likelihood reads it.
    pub used: bool,
    /// A public guess of how its values are distributed, for records that are made up.
    pub guess: Option<Guessed>,
}

impl RecordColumn {
    /// A column of that name, without bounds, which the likelihood reads.
    pub(crate) fn named(name: &str, is_int: bool) -> RecordColumn {
        RecordColumn {
            name: name.to_owned(),
            variable: name.split('.').next().unwrap_or(name).to_owned(),
            is_int,
            lower: None,
            upper: None,
            levels: Vec::new(),
            used: true,
            guess: None,
        }
    }

    /// Whether a cell may hold a word for true or false: an int whose declared bounds are 0 and 1.
    pub fn is_truth(&self) -> bool {
        let bounds = (self.lower, self.upper);
        self.is_int && self.levels.is_empty() && bounds == (Some(0.0), Some(1.0))
    }
}

/// 1 and 0 for true and false, as Python, R and SQL write them.
pub(crate) fn truth(word: &str) -> Option<f64> {
    match word {
        "True" | "TRUE" | "true" => Some(1.0),
        "False" | "FALSE" | "false" => Some(0.0),
        _ => None,
    }
}

/// A column for which the model has a log density, `y` in `y ~ normal(mu, 1)`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcome {
    pub column: usize,
    /// The variate of the density: the column, or a function of it alone, such as its logarithm.
    pub variate: Scalar,
}

/// Parameters whose prior is a standard distribution that others move and scale, as `a` in
/// `a ~ normal(mu, tau)`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LocationScale {
    /// Their unconstrained coordinates, which are the parameters themselves.
    pub coordinates: Vec<usize>,
    /// Vectors as long, or of length 1.
    pub location: PublicId,
    pub scale: PublicId,
}

/// A model bound to its constants.
#[derive(Debug, Clone)]
pub struct Model {
    #[doc(hidden)]
    pub graphs: Graphs,
    #[doc(hidden)]
    pub parameters: Vec<Parameter>,
    /// Parameters and transformed parameters, in declaration order.
    #[doc(hidden)]
    pub outputs: Vec<Output>,
    #[doc(hidden)]
    pub columns: Vec<RecordColumn>,
    /// The columns that the model explains, in declaration order.
    #[doc(hidden)]
    pub outcomes: Vec<Outcome>,
    /// Number of unconstrained coordinates.
    pub dimension: usize,
    /// The hierarchical part of the prior.
    pub(crate) location_scales: Vec<LocationScale>,
    /// Log prior density on the constrained scale, nats.
    #[doc(hidden)]
    pub prior: PublicId,
    /// Log absolute determinant of the Jacobian of the transforms.
    #[doc(hidden)]
    pub jacobian: PublicId,
    /// One record's log-likelihood, without the part that depends on no parameter.
    #[doc(hidden)]
    pub likelihood: Scalar,
    /// The part of one record's log-likelihood that no parameter changes.
    #[doc(hidden)]
    pub record_constant: Scalar,
    /// All terms of one record's log-likelihood, as statements added them.
    likelihood_terms: Vec<Scalar>,
    likelihood_statements: Vec<LikelihoodStatement>,
    /// The numbers of `transformed record`, and their names.
    of_record: Vec<(String, Scalar)>,
    /// Constants in the file that the model does not declare.
    pub extra_constants: Vec<String>,
    /// The output of `print` statements, a line each.
    pub printed: Vec<String>,
    /// The name of its file without the ending, or `model`.
    pub name: String,
    /// The program; empty where it was bound by itself.
    #[doc(hidden)]
    pub source: String,
    /// The constants as a JSON object, where there are any.
    #[doc(hidden)]
    pub constants: Option<String>,
    /// The guesses of covariates as a codebook of JSON, where there are any.
    #[doc(hidden)]
    pub codebook: Option<String>,
}

/// A program that is not a model, with all its errors.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{rendered}")]
pub struct SourceError {
    pub diagnostics: Vec<Diagnostic>,
    /// The diagnostics with the source lines they point at.
    pub rendered: String,
}

/// A file that does not hold a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelFileError {
    #[error("cannot read the model `{}`: {source}. Expected a text file with a dpm program", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error(
        "`{}` looks like a data file, not a model; its contents are not shown. Were the model and the data given in the wrong order?",
        path.display()
    )]
    Table { path: PathBuf },
    #[error(transparent)]
    Source(#[from] SourceError),
}

/// Text that has passed the checker, or all its errors. `name` stands for the text in messages. A
/// text that is not a program is not shown: it may be data.
pub(crate) fn checked_source(source: &str, name: &str) -> Result<Checked, SourceError> {
    let examined = examine(source);
    let shown = if examined.is_foreign { "" } else { source };
    examined
        .checked
        .ok_or_else(|| SourceError::new(examined.diagnostics, shown, name))
}

/// The text of a model's file, and its name in messages.
pub(crate) fn source_of(path: &Path) -> Result<(String, String), ModelFileError> {
    // No model has such a name, whatever the first words of the table are.
    const TABLES: [&str; 5] = ["csv", "tsv", "tab", "gz", "json"];
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    if TABLES
        .iter()
        .any(|name| extension.eq_ignore_ascii_case(name))
    {
        return Err(ModelFileError::Table {
            path: path.to_path_buf(),
        });
    }
    let text = std::fs::read_to_string(path).map_err(|source| ModelFileError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    Ok((text, path.display().to_string()))
}

impl SourceError {
    pub(crate) fn new(diagnostics: Vec<Diagnostic>, source: &str, name: &str) -> SourceError {
        SourceError {
            rendered: crate::syntax::render(&diagnostics, source, name, false),
            diagnostics,
        }
    }
}

impl Model {
    /// Parses, checks and binds a program.
    ///
    /// Errors: all errors of the program, rendered with its source lines.
    pub fn from_source(source: &str, constants: &Constants) -> Result<Model, SourceError> {
        Model::named(source, "model", constants)
    }

    /// Reads, parses, checks and binds the program of a file.
    ///
    /// Errors: the file cannot be read; all errors of the program, rendered with its source
    /// lines.
    pub fn from_file(
        path: impl AsRef<Path>,
        constants: &Constants,
    ) -> Result<Model, ModelFileError> {
        let (source, name) = source_of(path.as_ref())?;
        Ok(Model::named(&source, &name, constants)?)
    }

    fn named(source: &str, name: &str, constants: &Constants) -> Result<Model, SourceError> {
        let checked = checked_source(source, name)?;
        let model = Model::bind(&checked, constants)
            .map_err(|e| SourceError::new(vec![e.diagnostic()], source, name))?;
        Ok(model.from(source, Path::new(name)))
    }

    /// The same with the program from which it was bound.
    pub(crate) fn from(self, source: &str, path: &Path) -> Model {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy());
        Model {
            name: stem.map_or_else(|| self.name.clone(), |stem| stem.into_owned()),
            source: source.to_owned(),
            ..self
        }
    }

    /// Binds a checked program to its constants.
    ///
    /// Errors: a constant is missing or of the wrong shape, sizes do not fit, an
    /// index may leave its container.
    #[doc(hidden)]
    pub fn bind(checked: &Checked, constants: &Constants) -> Result<Model, BindError> {
        on_deep_stack(|| Model::trace(checked, constants))
    }

    fn trace(checked: &Checked, constants: &Constants) -> Result<Model, BindError> {
        let mut tracer = Tracer::new(checked);
        let declared: Vec<&str> = checked
            .constants
            .iter()
            .map(|&id| checked.variable(id).name.as_str())
            .collect();
        let extra_constants = constants
            .names()
            .filter(|name| !declared.contains(name))
            .map(str::to_string)
            .collect();
        generate::run_constants(&mut tracer, constants)?;
        let columns = declared::bind_record(&mut tracer)?;
        tracer.statements(&checked.transformed_record)?;
        tracer.keep_promises(Role::TransformedRecord)?;
        let of_record = numbers_of_record(&tracer);
        let (parameters, jacobians) = declared::bind_parameters(&mut tracer)?;
        tracer.statements(&checked.transformed_parameter_statements)?;
        tracer.keep_promises(Role::TransformedParameter)?;
        let outputs = outputs(&mut tracer)?;
        tracer.statements(&checked.model)?;

        let dimension = parameters.iter().map(|p| p.free_length).sum();
        let Tracer {
            mut graphs,
            prior,
            likelihood: likelihood_terms,
            likelihood_statements,
            variates,
            location_scales,
            state,
            printed,
            ..
        } = tracer;
        let prior = graphs.sum(&prior);
        let (mut likelihood, record_constant) = split_likelihood(&mut graphs, &likelihood_terms);
        // Where a parameter led to `reject` there is no density, and nothing computed on the way
        // matters.
        let nowhere = Scalar::number(f64::NEG_INFINITY);
        let prior = graphs.select(state.rejected, nowhere, prior);
        likelihood = graphs.select(state.rejected, Scalar::number(0.0), likelihood);
        let prior = graphs.assemble(&[prior]);
        let jacobian = graphs.public.sum(&jacobians);
        let mut model = Model {
            graphs,
            parameters,
            outputs,
            columns,
            outcomes: Vec::new(),
            dimension,
            location_scales,
            prior,
            jacobian,
            likelihood,
            record_constant,
            likelihood_terms,
            likelihood_statements,
            of_record,
            extra_constants,
            printed,
            name: "model".into(),
            source: String::new(),
            constants: constants.text(),
            codebook: None,
        };
        model.mark_used_columns();
        model.outcomes = model.find_outcomes(&variates);
        Ok(model)
    }

    /// The same model, whose likelihood has each record's terms without a parameter too: for densities
    /// that are compared between models.
    pub(crate) fn with_whole_likelihood(mut self) -> Model {
        let parts = [self.likelihood, self.record_constant];
        self.likelihood = self.graphs.sum(&parts);
        self.record_constant = Scalar::number(0.0);
        self
    }

    /// A number of `transformed record`, and its bounds as they follow from those of the columns.
    pub(crate) fn of_record(&self, name: &str) -> Option<(Scalar, [f64; 2])> {
        let (_, value) = self.of_record.iter().find(|(own, _)| own == name)?;
        let column = |column: &RecordColumn| Interval {
            low: column.lower.unwrap_or(f64::NEG_INFINITY),
            high: column.upper.unwrap_or(f64::INFINITY),
            whole: column.is_int,
        };
        let columns: Vec<Interval> = self.columns.iter().map(column).collect();
        let Interval { low, high, .. } = interval(&self.graphs, &columns, *value);
        Some((*value, [low, high]))
    }

    /// The same model, which reads the columns of these numbers too.
    pub(crate) fn reading(mut self, numbers: &[Scalar]) -> Model {
        for (column, _) in self.columns_under(numbers) {
            self.columns[column].used = true;
        }
        self
    }

    /// Header names of all outputs in Stan's order (`beta.1`, `m.2.1`), each
    /// with the output and the storage position it comes from.
    #[doc(hidden)]
    pub fn output_columns(&self) -> Vec<(String, usize, usize)> {
        let mut columns = Vec::new();
        for (k, output) in self.outputs.iter().enumerate() {
            let names = output.shape.column_names(&output.name);
            for (name, position) in names.into_iter().zip(output.shape.column_major_order()) {
                columns.push((name, k, position));
            }
        }
        columns
    }

    /// Private nodes that the likelihood (and its constant part) reads, each after its operands.
    #[doc(hidden)]
    pub fn needed_private_nodes(&self, roots: &[Scalar]) -> Vec<PrivateId> {
        let graph = &self.graphs.private;
        let mut needed = vec![false; graph.nodes().len()];
        for root in roots {
            if let Scalar::Private(id) = root {
                needed[id.0 as usize] = true;
            }
        }
        for i in (0..needed.len()).rev() {
            if needed[i] {
                for operand in operands(&graph.nodes()[i].op) {
                    if let Scalar::Private(id) = operand {
                        needed[id.0 as usize] = true;
                    }
                }
            }
        }
        (0..needed.len())
            .filter(|&i| needed[i])
            .map(|i| PrivateId(i as u32))
            .collect()
    }

    fn mark_used_columns(&mut self) {
        for (column, _) in self.columns_under(&[self.likelihood, self.record_constant]) {
            self.columns[column].used = true;
        }
    }

    /// All terms of one record's log-likelihood, as statements added them.
    #[doc(hidden)]
    pub fn likelihood_terms(&self) -> &[Scalar] {
        &self.likelihood_terms
    }

    /// The columns from which private nodes are computed, in declaration order.
    pub(crate) fn columns_under(&self, roots: &[Scalar]) -> Vec<(usize, PrivateId)> {
        let mut columns: Vec<_> = self
            .needed_private_nodes(roots)
            .into_iter()
            .filter_map(|id| match self.graphs.private.node(id).op {
                PrivateOp::Column(c) => Some((c as usize, id)),
                _ => None,
            })
            .collect();
        columns.sort_unstable();
        columns
    }

    fn find_outcomes(&self, variates: &[Scalar]) -> Vec<Outcome> {
        let mut outcomes: Vec<Outcome> = Vec::new();
        for &variate in variates {
            let columns = self.columns_under(&[variate]);
            for &(column, id) in &columns {
                if outcomes.iter().any(|o| o.column == column) || !self.columns[column].used {
                    continue;
                }
                let alone = columns.len() == 1 && !self.graphs.has_parameter(variate);
                let variate = if alone { variate } else { Scalar::Private(id) };
                outcomes.push(Outcome { column, variate });
            }
        }
        outcomes.sort_by_key(|o| o.column);
        outcomes
    }
}

fn numbers_of_record(tracer: &Tracer) -> Vec<(String, Scalar)> {
    let variables = tracer.checked.variables.iter().enumerate();
    variables
        .filter(|(_, variable)| variable.role == Role::TransformedRecord)
        .filter_map(|(k, variable)| {
            let value = tracer.state.variables[k].as_ref()?;
            let number = match value.shape.length() {
                1 => value.elements(&tracer.graphs).first().copied(),
                _ => None,
            };
            Some((variable.name.clone(), number?))
        })
        .collect()
}

fn outputs(tracer: &mut Tracer) -> Result<Vec<Output>, BindError> {
    let checked = tracer.checked;
    let mut outputs = Vec::new();
    for &id in checked
        .parameters
        .iter()
        .chain(&checked.transformed_parameters)
    {
        let variable = checked.variable(id);
        debug_assert!(matches!(
            variable.role,
            Role::Parameter | Role::TransformedParameter
        ));
        let Some(value) = tracer.state.variables[id.0].clone() else {
            return Err(BindError::new(variable.span, "this variable has no value"));
        };
        let node = value.public_node(&mut tracer.graphs);
        outputs.push(Output {
            name: variable.name.clone(),
            shape: value.shape,
            node,
        });
    }
    Ok(outputs)
}

/// Separates the part that depends on parameters from the rest, which cancels in every ratio and
/// has no gradient.
fn split_likelihood(graphs: &mut Graphs, terms: &[Scalar]) -> (Scalar, Scalar) {
    let mut changing = Vec::new();
    let mut fixed = Vec::new();
    for &term in terms {
        for (addend, positive) in graphs.addends(term) {
            let signed = if positive {
                addend
            } else {
                graphs.negate(addend)
            };
            if graphs.has_parameter(signed) {
                changing.push(signed);
            } else {
                fixed.push(signed);
            }
        }
    }
    (graphs.sum(&changing), graphs.sum(&fixed))
}
