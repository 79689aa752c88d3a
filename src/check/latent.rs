//! A parameter for every record, in Stan `vector[N] z` and `z[n]`. It is not allowed here, and is
//! recognised by its name, since the number of records has none.

use super::scope::Checker;
use super::typed::*;
use crate::syntax::{self, Diagnostic, Span};

/// Names of the number of rows in Stan programs.
const NUMBERS_OF_RECORDS: &[&str] = &[
    "n",
    "n_obs",
    "nobs",
    "num_obs",
    "n_data",
    "n_rows",
    "nrow",
    "num_rows",
    "n_records",
    "num_records",
    "n_subjects",
    "n_units",
];

/// Names of the number of a row in data files.
const NUMBERS_OF_A_RECORD: &[&str] = &[
    "n",
    "i",
    "id",
    "ii",
    "nn",
    "idx",
    "index",
    "row",
    "row_id",
    "rowid",
    "record",
    "record_id",
    "obs",
    "obs_id",
    "rid",
];

const HELP: &str = "one record alone would inform its own element, so that nothing bounds what that record changes, and the posterior would not be a sum over records; sum the unknown out of the likelihood (`log_mix` or `log_sum_exp` for a discrete one, a closed form such as `student_t`, `beta_binomial` or `neg_binomial_2` for a continuous one), or let records share it, by an `int<lower=1, upper=J>` column that says each record's group";

fn is_one_of(name: &str, list: &[&str]) -> bool {
    list.contains(&name.to_lowercase().as_str())
}

impl Checker {
    /// `vector[N] z;` where no constant is called `N`. Reports it, and returns whether it did.
    pub(super) fn sized_by_records(&mut self, role: Role, size: &syntax::Expr) -> bool {
        let syntax::ExprKind::Variable(name) = &size.kind else {
            return false;
        };
        let sized = matches!(role, Role::Parameter | Role::TransformedParameter);
        if !sized || self.find(name).is_some() || !is_one_of(name, NUMBERS_OF_RECORDS) {
            return false;
        }
        self.per_record_parameter(
            size.span,
            format!(
                "`{name}` is not declared: a model of one record does not know how many there are"
            ),
            "as many elements as records?",
            None,
        );
        true
    }

    /// `z[id]` where the size of `z` and the upper bound of the column `id` are
    /// one constant, named like the number of records.
    pub(super) fn indexed_by_record_number(&mut self, base: &Expr, index: &Expr) -> Option<()> {
        let (ExprKind::Variable(container), ExprKind::Variable(column)) = (&base.kind, &index.kind)
        else {
            return Some(());
        };
        let (container, column) = (
            self.checked.variable(*container),
            self.checked.variable(*column),
        );
        let constant = |e: &Expr| match e.kind {
            ExprKind::Variable(id) => Some(id),
            _ => None,
        };
        let Some(size) = container.sizes.first().and_then(constant) else {
            return Some(());
        };
        let bound = column.upper.as_ref().and_then(constant);
        let parameter = matches!(container.role, Role::Parameter | Role::TransformedParameter);
        let named = is_one_of(&self.checked.variable(size).name, NUMBERS_OF_RECORDS)
            && is_one_of(&column.name, NUMBERS_OF_A_RECORD);
        if !(parameter && column.role == Role::Record && bound == Some(size) && named) {
            return Some(());
        }
        let message = format!(
            "`{}` has an element for every record, as `{}` counts them",
            container.name, column.name
        );
        let note = (container.span, "declared here".to_string());
        self.per_record_parameter(index.span, message, "the number of the record", Some(note));
        None
    }

    fn per_record_parameter(
        &mut self,
        span: Span,
        message: String,
        label: &str,
        note: Option<(Span, String)>,
    ) {
        let mut diagnostic = Diagnostic::error("E0207", span, message)
            .label(label)
            .help(HELP);
        if let Some((span, text)) = note {
            diagnostic = diagnostic.note(span, text);
        }
        self.report(diagnostic);
    }
}
