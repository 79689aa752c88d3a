//! `dpm check`: is this a model whose posterior can be private?

use std::path::PathBuf;

use serde_json::{Value, json};

use super::failure::Failure;
use super::model_file::ModelFile;
use super::{Common, pretty, print};
use crate::check::{Expr, FunctionId, Stage, Statement, StatementKind};
use crate::model::Model;
use crate::syntax::line_column;

#[derive(Debug, clap::Args)]
#[command(after_help = "Example: dpm check models/adult_income.dpm")]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    /// Public constants (default: MODEL with .constants.json for .dpm, where that exists)
    #[arg(long, value_name = "FILE.json")]
    constants: Option<PathBuf>,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    let file = ModelFile::read(&arguments.model, common)?;
    file.show_warnings(common);
    let mut found = Collector {
        file: &file,
        called: Vec::new(),
        found: Vec::new(),
    };
    found.statements(&file.checked.transformed_parameter_statements);
    found.statements(&file.checked.model);
    let statements = found.found;
    // Sizes are known only with the constants; types and stages without.
    let given = arguments.constants.as_deref();
    let unbound = !file.checked.constants.is_empty() && file.constants_path(given).is_none();
    let bound = if unbound {
        None
    } else {
        Some(file.bind(given, common)?)
    };
    print(&match arguments.format {
        Format::Json => pretty(&json_of(&file, bound.as_ref(), &statements)),
        Format::Text => describe(&file, bound.as_ref(), &statements),
    })
}

fn json_of(file: &ModelFile, model: Option<&Model>, statements: &[Found]) -> Value {
    let list: Vec<_> = statements
        .iter()
        .map(|s| {
            json!({
                "line": s.line,
                "statement": s.text,
                "kind": s.kind,
                "stage": s.stage.name(),
                "sensitivity": null,
            })
        })
        .collect();
    json!({
        "model": file.path.display().to_string(),
        "ok": true,
        "unconstrained_dimension": model.map(|m| m.dimension),
        "statements": list,
    })
}

fn describe(file: &ModelFile, model: Option<&Model>, statements: &[Found]) -> String {
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    let mut lines = vec![format!(
        "{}: types and stages are right",
        file.path.display()
    )];
    lines.push(match model {
        Some(model) => {
            let used = model.columns.iter().filter(|c| c.used).count();
            format!(
                "{} unconstrained parameter{}, {used} record column{} read",
                model.dimension,
                plural(model.dimension),
                plural(used),
            )
        }
        None => "sizes were not checked: give the constants with --constants".to_string(),
    });
    for s in statements {
        lines.push(format!("  line {:>4}  {:<10}  {}", s.line, s.kind, s.text));
    }
    lines.push(
        "sensitivity: no bound is derived by this version; --clip-gradient and --clip-log-ratio bound each record's contribution instead\n"
            .to_string(),
    );
    lines.join("\n")
}

struct Found {
    line: usize,
    text: String,
    kind: &'static str,
    stage: Stage,
}

/// Finds every statement that adds to the target.
struct Collector<'a> {
    file: &'a ModelFile,
    /// The functions whose bodies have been searched.
    called: Vec<FunctionId>,
    found: Vec<Found>,
}

impl Collector<'_> {
    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        let stage = match &statement.kind {
            StatementKind::Sampling {
                variate, arguments, ..
            } => arguments
                .iter()
                .fold(variate.stage, |s: Stage, e: &Expr| s.join(e.stage)),
            StatementKind::Target { value } => value.stage,
            StatementKind::ForRange { body, .. }
            | StatementKind::ForEach { body, .. }
            | StatementKind::While { body, .. } => return self.statement(body),
            StatementKind::If {
                then, otherwise, ..
            } => {
                self.statement(then);
                if let Some(otherwise) = otherwise {
                    self.statement(otherwise);
                }
                return;
            }
            StatementKind::Block(inner) => return self.statements(inner),
            // What a function adds is found at its own lines, for each combination
            // of stages once.
            StatementKind::Call { function, .. } => {
                if !self.called.contains(function) {
                    self.called.push(*function);
                    self.statements(&self.file.checked.function(*function).body);
                }
                return;
            }
            _ => return,
        };
        let source = &self.file.source;
        let text = source.get(statement.span.range()).unwrap_or_default();
        self.found.push(Found {
            line: line_column(source, statement.span.start).0,
            text: text.split_whitespace().collect::<Vec<_>>().join(" "),
            kind: if stage.is_private() {
                "likelihood"
            } else {
                "prior"
            },
            stage,
        });
    }
}
