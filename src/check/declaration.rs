//! Declarations: types, sizes, constraints.

use super::constraint::Constraints;
use super::scope::Checker;
use super::typed::*;
use crate::syntax::{self, BaseType, Block, Diagnostic, Ident, StatementKind as Syntax};

impl Checker {
    /// `constants`, `record` and `parameters` hold declarations without values.
    pub fn declarations_only(&mut self, block: &Block, role: Role) {
        self.block = role;
        let keyword = block.kind.keyword();
        for statement in &block.statements {
            match &statement.kind {
                Syntax::Empty => {}
                Syntax::Declaration { ty, name, value } => {
                    let Some(id) = self.declaration(ty, name, role) else {
                        continue;
                    };
                    match role {
                        Role::Constant => self.checked.constants.push(id),
                        Role::Record => self.checked.record.push(id),
                        _ => self.checked.parameters.push(id),
                    }
                    if let Some(value) = value {
                        let instead = match role {
                            Role::Constant => {
                                "its value comes from the constants file; compute it in `transformed constants`"
                            }
                            Role::Record => {
                                "its value comes from the data; compute it in `transformed record`"
                            }
                            _ => {
                                "it is what the sampler finds; compute it in `transformed parameters`"
                            }
                        };
                        self.report(
                            Diagnostic::error(
                                "E0120",
                                value.span,
                                format!("a declaration in `{keyword}` has no value"),
                            )
                            .label("not allowed here")
                            .help(instead),
                        );
                    }
                }
                _ => self.report(
                    Diagnostic::error(
                        "E0121",
                        statement.span,
                        format!("`{keyword}` holds declarations only"),
                    )
                    .label("a statement")
                    .help("move it to `model` or to a `transformed` block"),
                ),
            }
        }
    }

    /// A declaration: its type, sizes and bounds.
    pub(super) fn declaration(
        &mut self,
        ty: &syntax::SizedType,
        name: &Ident,
        role: Role,
    ) -> Option<VariableId> {
        let (base, joint) = base_of(ty.base);
        let mut sizes = Vec::new();
        for size in ty.array_sizes.iter().chain(&ty.sizes) {
            if self.sized_by_records(role, size) {
                continue;
            }
            let Some(size) = self.expression(size) else {
                continue;
            };
            if size.ty != Type::INT {
                self.wrong_type::<()>(&size, "a size must be an int", "int");
            } else if size.stage != Stage::Constant {
                self.not_constant::<()>(&size, "a size");
            } else {
                sizes.push(size);
            }
        }
        if joint.is_some_and(Joint::is_matrix) && ty.sizes.len() == 1 {
            // `corr_matrix[K]` has K rows and K columns.
            sizes.extend(sizes.last().cloned());
        }
        let array = ty.array_sizes.len();
        let Constraints {
            mut lower,
            mut upper,
            structure,
        } = self.constraints(ty, role, Type { base, array }, joint);
        let levels = (ty.base == BaseType::Factor).then(|| {
            [lower, upper] = self.factor_bounds(ty, role);
            ty.levels.iter().map(|level| level.value.clone()).collect()
        });
        let ty = Type { base, array };
        if role == Role::Parameter && ty.base == Base::Int && levels.is_none() {
            self.report(
                Diagnostic::error(
                    "E0128",
                    name.span,
                    "a parameter cannot be an int: samplers move in continuous space",
                )
                .label("an int parameter")
                .help("sum the discrete unknown out of the likelihood, with `log_sum_exp`"),
            );
        }
        let id = self.declare(Variable {
            name: name.name.clone(),
            span: name.span,
            role,
            ty,
            stage: match role {
                Role::Record | Role::TransformedRecord => Stage::Record,
                Role::Parameter | Role::TransformedParameter => Stage::Parameter,
                _ => Stage::Constant,
            },
            sizes,
            lower,
            upper,
            structure,
        });
        if let Some(levels) = levels {
            self.checked.levels.insert(id, levels);
        }
        Some(id)
    }
}

/// The type of the values, and how their elements depend on each other.
fn base_of(declared: BaseType) -> (Base, Option<Joint>) {
    let joint = match declared {
        BaseType::Int | BaseType::Factor => return (Base::Int, None),
        BaseType::Real => return (Base::Real, None),
        BaseType::Vector => return (Base::Vector, None),
        BaseType::RowVector => return (Base::RowVector, None),
        BaseType::Matrix => return (Base::Matrix, None),
        BaseType::Ordered => Joint::Ordered,
        BaseType::PositiveOrdered => Joint::PositiveOrdered,
        BaseType::Simplex => Joint::Simplex,
        BaseType::UnitVector => Joint::UnitVector,
        BaseType::SumToZeroVector => Joint::SumToZero,
        BaseType::CholeskyFactorCorr => Joint::CholeskyFactorCorr,
        BaseType::CholeskyFactorCov => Joint::CholeskyFactorCov,
        BaseType::CorrMatrix => Joint::CorrMatrix,
        BaseType::CovMatrix => Joint::CovMatrix,
    };
    let base = if joint.is_matrix() {
        Base::Matrix
    } else {
        Base::Vector
    };
    (base, Some(joint))
}
