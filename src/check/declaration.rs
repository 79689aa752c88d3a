//! Declarations: types, sizes, constraints.

use super::scope::Checker;
use super::typed::*;
use crate::syntax::{
    self, BaseType, Block, ConstraintKind, Diagnostic, Ident, StatementKind as Syntax,
};

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
        let base = match ty.base {
            BaseType::Int | BaseType::Factor => Some(Base::Int),
            BaseType::Real => Some(Base::Real),
            BaseType::Vector => Some(Base::Vector),
            BaseType::RowVector => Some(Base::RowVector),
            BaseType::Matrix => Some(Base::Matrix),
            _ => None,
        };
        // One message is enough: later uses are checked as if there were the
        // plain type.
        let base = base.unwrap_or_else(|| {
            self.unsupported(ty.span, &format!("the type `{}`", ty.base.keyword()), None);
            match ty.base {
                BaseType::CholeskyFactorCorr
                | BaseType::CholeskyFactorCov
                | BaseType::CorrMatrix
                | BaseType::CovMatrix => Base::Matrix,
                _ => Base::Vector,
            }
        });
        let mut sizes = Vec::new();
        for size in ty.array_sizes.iter().chain(&ty.sizes) {
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
        let [mut lower, mut upper] = [None, None];
        for constraint in &ty.constraints {
            let value = self.expression(&constraint.value);
            match constraint.kind {
                ConstraintKind::Lower | ConstraintKind::Upper => {
                    let value = value.and_then(|v| self.bound(role, v));
                    if constraint.kind == ConstraintKind::Lower {
                        lower = value;
                    } else {
                        upper = value;
                    }
                }
                kind => self.unsupported(
                    constraint.span,
                    &format!("the constraint `{}`", kind.keyword()),
                    Some("scale the parameter in `transformed parameters`"),
                ),
            }
        }
        if role == Role::Local && !ty.constraints.is_empty() {
            self.report(
                Diagnostic::error("E0127", ty.span, "a local variable has no constraints")
                    .label("not allowed here")
                    .help("leave the part in `<...>` out"),
            );
        }
        let levels = (ty.base == BaseType::Factor).then(|| {
            [lower, upper] = self.factor_bounds(ty, role);
            ty.levels.iter().map(|level| level.value.clone()).collect()
        });
        let ty = Type {
            base,
            array: ty.array_sizes.len(),
        };
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
        });
        if let Some(levels) = levels {
            self.checked.levels.insert(id, levels);
        }
        Some(id)
    }

    fn bound(&mut self, role: Role, value: Expr) -> Option<Expr> {
        if value.stage.is_private() {
            return self.not_constant(&value, "bounds");
        }
        if value.stage == Stage::Parameter && role != Role::Parameter {
            return self.not_constant(&value, "these bounds");
        }
        let scalar = value.ty.is_number();
        if !scalar {
            self.unsupported(value.span, "bounds that are containers", None);
            return None;
        }
        Some(value)
    }
}
