//! `dpm check`: is this a model whose posterior can be private?

mod data;
mod sensitivity;

use std::path::PathBuf;

use serde_json::{Value, json};

use super::data_file::{BadRows, DataSettings, names};
use super::failure::Failure;
use super::format::Format;
use super::model_file::{CONSTANTS, Examined, ModelFile};
use super::{Common, pretty, print, say_always};
use crate::check::{Expr, FunctionId, Stage, Statement, StatementKind};
use crate::model::{Derived, Model, Sensitivity};
use crate::privacy::Survey;
use crate::syntax::{Diagnostic, Span, line_column};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example: dpm check models/adult_income.dpm --data models/adult_income.csv.gz\n\nWith --data the answer is about private rows, and no guarantee covers it."
)]
pub(super) struct Arguments {
    /// The model
    model: PathBuf,
    #[arg(long, value_name = "FILE.json", help = CONSTANTS)]
    constants: Option<PathBuf>,
    /// For the curator only: which rows of these data (as for `dpm sample`; can be repeated for more files) are missing, out of bounds or cannot be read (NOT PRIVATE)
    #[arg(long, value_name = "DATA")]
    data: Vec<PathBuf>,
    #[command(flatten)]
    reading: DataSettings,
    /// List every line or row number, not only the first few of each kind
    #[arg(long, requires = "data")]
    all: bool,
    /// How to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

pub(super) fn run(arguments: &Arguments, common: &Common) -> Result<(), Failure> {
    if arguments.data.is_empty() && arguments.reading.is_given() {
        return Err(Failure::input(
            "--columns, --unit, --on-bad-rows and --multiline-records say how to read the data: give it with --data",
        ));
    }
    let examined = Examined::read(&arguments.model)?;
    let said = diagnostics_json(&examined);
    if arguments.format == Format::Json && !examined.is_right() {
        print(&pretty(&json!({
            "model": examined.path.display().to_string(),
            "ok": false,
            "diagnostics": said,
        })))?;
    }
    let file = examined.model_file(common)?;
    file.show_warnings(common);
    let mut found = Collector {
        file: &file,
        called: Vec::new(),
        of_record: false,
        found: Vec::new(),
    };
    found.statements(&file.checked.transformed_parameter_statements);
    found.statements(&file.checked.model);
    let statements = found.found;
    let bound = file.bind_if_given(arguments.constants.as_deref(), common)?;
    let survey = match (&arguments.data[..], &bound) {
        ([], _) => None,
        (_, None) => {
            return Err(Failure::input(
                "what the data should hold depends on the model's constants: give them with --constants",
            ));
        }
        (paths, Some(model)) => {
            let most = if arguments.all {
                usize::MAX
            } else {
                data::PLACES_SHOWN
            };
            if arguments.format == Format::Json {
                say_always(data::WARNING);
            }
            Some(arguments.reading.survey(paths, &model.columns, most)?)
        }
    };
    let sensitivity = bound.as_ref().map(Model::sensitivity);
    print(&match arguments.format {
        Format::Json => {
            let mut answer = json_of(&file, bound.as_ref(), sensitivity.as_ref(), &statements);
            answer["diagnostics"] = said;
            if let Some(survey) = &survey {
                answer["data"] = data::json_of(&names(&arguments.data), survey);
            }
            pretty(&answer)
        }
        Format::Text => {
            let model = describe(&file, bound.as_ref(), sensitivity.as_ref(), &statements);
            let data = survey.as_ref().map(|s| data::describe(&arguments.data, s));
            model + &data.unwrap_or_default()
        }
    })?;
    match &survey {
        Some(survey) => refuse_bad_rows(survey, arguments.reading.on_bad_rows),
        None => Ok(()),
    }
}

/// The diagnostics of the program, for editors: lines and columns count from one,
/// columns in characters, ends exclusive.
fn diagnostics_json(examined: &Examined) -> Value {
    let place = |span: Span| {
        let (line, column) = line_column(&examined.source, span.start);
        let (end_line, end_column) = line_column(&examined.source, span.end);
        json!({"line": line, "column": column, "end_line": end_line, "end_column": end_column})
    };
    let as_json = |d: &Diagnostic| {
        let notes = d.notes.iter().map(|(span, text)| {
            let mut note = place(*span);
            note["message"] = json!(text);
            note
        });
        let mut said = json!({
            "code": d.code,
            "severity": if d.is_error() { "error" } else { "warning" },
            "message": d.message,
            "label": d.label,
            "help": d.help,
            "notes": notes.collect::<Vec<_>>(),
        });
        if let (Value::Object(said), Value::Object(place)) = (&mut said, place(d.span)) {
            said.extend(place);
        }
        said
    };
    Value::Array(examined.diagnostics.iter().map(as_json).collect())
}

/// Data that a run would not load are bad input.
fn refuse_bad_rows(survey: &Survey, on_bad_rows: BadRows) -> Result<(), Failure> {
    match survey.bad_rows.count {
        0 => Ok(()),
        _ if on_bad_rows == BadRows::Skip => Ok(()),
        1 => Err(Failure::input(
            "one row cannot be read; correct it, or use `--on-bad-rows skip`, which treats it as missing",
        )),
        count => Err(Failure::input(format!(
            "{count} rows cannot be read; correct them, or use `--on-bad-rows skip`, which treats them as missing"
        ))),
    }
}

fn json_of(
    file: &ModelFile,
    model: Option<&Model>,
    sensitivity: Option<&Sensitivity>,
    statements: &[Found],
) -> Value {
    let list: Vec<_> = statements
        .iter()
        .map(|s| {
            json!({
                "line": s.line,
                "statement": s.text,
                "kind": s.kind,
                "stage": s.stage.name(),
                "sensitivity": s.derived(sensitivity).map(sensitivity::json_of),
            })
        })
        .collect();
    json!({
        "model": file.path.display().to_string(),
        "ok": true,
        "unconstrained_dimension": model.map(|m| m.dimension),
        "statements": list,
        "sensitivity": sensitivity.map(|s| sensitivity::json_of(&s.record)),
    })
}

fn describe(
    file: &ModelFile,
    model: Option<&Model>,
    sensitivity: Option<&Sensitivity>,
    statements: &[Found],
) -> String {
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
        if let Some(derived) = s.derived(sensitivity) {
            lines.extend(sensitivity::statement_lines(derived));
        }
    }
    lines.extend(
        sensitivity
            .map(sensitivity::record_lines)
            .unwrap_or_default(),
    );
    lines.push(String::new());
    lines.join("\n")
}

struct Found {
    line: usize,
    text: String,
    kind: &'static str,
    stage: Stage,
    span: Span,
}

impl Found {
    /// The bound derived for the statement; none for priors.
    fn derived<'a>(&self, sensitivity: Option<&'a Sensitivity>) -> Option<&'a Derived> {
        let mut statements = sensitivity?.statements.iter();
        Some(&statements.find(|s| s.span == self.span)?.derived)
    }
}

/// Finds every statement that adds to the target.
struct Collector<'a> {
    file: &'a ModelFile,
    /// The functions whose bodies have been searched.
    called: Vec<FunctionId>,
    /// Whether a call around this place is under a condition on a record.
    of_record: bool,
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
                    let around = self.of_record;
                    self.of_record |= statement.conditions.is_private();
                    self.statements(&self.file.checked.function(*function).body);
                    self.of_record = around;
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
            kind: if self.of_record || stage.join(statement.conditions).is_private() {
                "likelihood"
            } else {
                "prior"
            },
            stage,
            span: statement.span,
        });
    }
}
