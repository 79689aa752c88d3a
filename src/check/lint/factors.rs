//! The density as a graph: the parameters on which each of its terms depends, directly or through
//! other variables.

use std::collections::{BTreeMap, BTreeSet};

use super::super::typed::*;
use super::variables_in;

/// One term of the density.
pub(super) struct Factor<'a> {
    /// The parameters that it depends on.
    pub parameters: BTreeSet<VariableId>,
    /// The parameters in each expression on the left of `~`, or of the bar.
    pub variates: Vec<BTreeSet<VariableId>>,
    /// Whether it is part of the likelihood.
    pub private: bool,
    /// The sampling statement: family, variate, arguments.
    pub sampling: Option<(usize, &'a Expr, &'a [Expr])>,
    /// Whether it is in a branch.
    pub conditional: bool,
}

#[derive(Default)]
pub(super) struct Factors<'a> {
    pub all: Vec<Factor<'a>>,
    /// The variables from which each variable is directly computed.
    sources: BTreeMap<VariableId, BTreeSet<VariableId>>,
    /// Named in the bounds of a parameter, on which its Jacobian depends.
    in_bounds: BTreeSet<VariableId>,
    /// Named in some expression.
    read: BTreeSet<VariableId>,
    /// The variables that decide whether the statements at this place run.
    context: Vec<BTreeSet<VariableId>>,
    branches: usize,
}

impl<'a> Factors<'a> {
    pub fn of(checked: &'a Checked) -> Self {
        let mut factors = Factors::default();
        for variable in &checked.variables {
            let affine = match &variable.structure {
                Structure::Affine { offset, multiplier } => [offset.as_ref(), multiplier.as_ref()],
                _ => [None, None],
            };
            let bounds = [variable.lower.as_ref(), variable.upper.as_ref()];
            for e in variable
                .sizes
                .iter()
                .chain(bounds.into_iter().chain(affine).flatten())
            {
                let found = factors.note(e);
                if variable.role == Role::Parameter {
                    factors.in_bounds.extend(found);
                }
            }
        }
        for block in [
            &checked.transformed_constants,
            &checked.transformed_record,
            &checked.transformed_parameter_statements,
            &checked.model,
        ] {
            factors.statements(block);
        }
        // Generated quantities and functions read variables, but have no terms here.
        let terms = factors.all.len();
        factors.statements(&checked.generated_statements);
        for function in &checked.functions {
            factors.statements(&function.body);
        }
        factors.all.truncate(terms);
        factors.finish(checked);
        factors
    }

    /// Whether the density depends on the parameter.
    pub fn in_density(&self, parameter: VariableId) -> bool {
        let in_term = |f: &Factor| f.parameters.contains(&parameter);
        self.in_bounds.contains(&parameter) || self.all.iter().any(in_term)
    }

    /// Whether some expression names the variable.
    pub fn is_read(&self, id: VariableId) -> bool {
        self.read.contains(&id)
    }

    fn note(&mut self, e: &Expr) -> BTreeSet<VariableId> {
        let found = variables_in(e);
        self.read.extend(&found);
        found
    }

    fn around(&self) -> BTreeSet<VariableId> {
        self.context.iter().flatten().copied().collect()
    }

    fn gives(&mut self, variable: VariableId, mut sources: BTreeSet<VariableId>) {
        sources.extend(self.around());
        self.sources.entry(variable).or_default().extend(sources);
    }

    fn inside(&mut self, condition: BTreeSet<VariableId>, body: &'a Statement) {
        self.context.push(condition);
        self.statement(body);
        self.context.pop();
    }

    fn statements(&mut self, statements: &'a [Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &'a Statement) {
        match &statement.kind {
            StatementKind::Declare { variable, value } => {
                if let Some(value) = value {
                    let sources = self.note(value);
                    self.gives(*variable, sources);
                }
            }
            StatementKind::Assign {
                variable,
                indices,
                value,
                ..
            } => {
                let mut sources = self.note(value);
                for index in indices {
                    match index {
                        Index::Single(e) | Index::Many(e) => sources.extend(self.note(e)),
                        Index::Range { from, to } => {
                            for e in from.iter().chain(to) {
                                sources.extend(self.note(e));
                            }
                        }
                    }
                }
                self.gives(*variable, sources);
            }
            StatementKind::Target { value } => {
                let found = self.note(value);
                let mut variates = Vec::new();
                density_variates(value, &mut variates);
                let private = value.stage.join(statement.conditions).is_private();
                self.factor(found, variates, private, None);
            }
            StatementKind::Sampling {
                family,
                variate,
                arguments,
                truncation,
            } => {
                let left = self.note(variate);
                let mut found = left.clone();
                let mut private = variate.stage.join(statement.conditions).is_private();
                for argument in arguments.iter().chain(truncation.ends()) {
                    found.extend(self.note(argument));
                    private |= argument.stage.is_private();
                }
                let sampling = Some((*family, variate, &arguments[..]));
                self.factor(found, vec![left], private, sampling);
            }
            StatementKind::ForRange {
                variable,
                from,
                to,
                body,
            } => {
                let mut sources = self.note(from);
                sources.extend(self.note(to));
                self.gives(*variable, sources.clone());
                self.inside(sources, body);
            }
            StatementKind::ForEach {
                variable,
                container,
                body,
            } => {
                let sources = self.note(container);
                self.gives(*variable, sources);
                self.statement(body);
            }
            StatementKind::If {
                condition,
                then,
                otherwise,
            } => {
                let sources = self.note(condition);
                self.branches += 1;
                self.inside(sources.clone(), then);
                if let Some(otherwise) = otherwise {
                    self.inside(sources, otherwise);
                }
                self.branches -= 1;
            }
            StatementKind::While { condition, body } => {
                let sources = self.note(condition);
                self.inside(sources, body);
            }
            StatementKind::Return(Some(e)) => {
                self.note(e);
            }
            StatementKind::Print(parts) | StatementKind::Reject(parts) => {
                for part in parts {
                    if let Printed::Value(e) = part {
                        self.note(e);
                    }
                }
            }
            StatementKind::Call { arguments, .. } => {
                // It may add to the target: one term of all its arguments.
                let mut found = BTreeSet::new();
                let mut private = statement.conditions.is_private();
                for argument in arguments {
                    found.extend(self.note(argument));
                    private |= argument.stage.is_private();
                }
                self.factor(found, Vec::new(), private, None);
            }
            StatementKind::Block(statements) => self.statements(statements),
            StatementKind::Break | StatementKind::Continue | StatementKind::Return(None) => {}
        }
    }

    fn factor(
        &mut self,
        mut parameters: BTreeSet<VariableId>,
        variates: Vec<BTreeSet<VariableId>>,
        private: bool,
        sampling: Option<(usize, &'a Expr, &'a [Expr])>,
    ) {
        parameters.extend(self.around());
        self.all.push(Factor {
            parameters,
            variates,
            private,
            sampling,
            conditional: self.branches > 0,
        });
    }

    /// Replaces every variable by the parameters from which it is computed.
    fn finish(&mut self, checked: &Checked) {
        let sources = &self.sources;
        let parameters = |found: &mut BTreeSet<VariableId>| {
            let mut seen = BTreeSet::new();
            let mut rest: Vec<VariableId> = found.iter().copied().collect();
            while let Some(id) = rest.pop() {
                if seen.insert(id) {
                    rest.extend(sources.get(&id).into_iter().flatten());
                }
            }
            seen.retain(|&id| checked.variable(id).role == Role::Parameter);
            *found = seen;
        };
        for factor in &mut self.all {
            parameters(&mut factor.parameters);
            factor.variates.iter_mut().for_each(parameters);
        }
    }
}

/// The variates of the densities that are added up in an expression.
fn density_variates(e: &Expr, found: &mut Vec<BTreeSet<VariableId>>) {
    match &e.kind {
        ExprKind::LogDensity { variate, .. } => found.push(variables_in(variate)),
        ExprKind::Binary { left, right, .. } => {
            density_variates(left, found);
            density_variates(right, found);
        }
        ExprKind::Call { arguments, .. } => {
            arguments.iter().for_each(|a| density_variates(a, found));
        }
        _ => {}
    }
}
