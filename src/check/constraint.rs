//! The constraints in `<...>` of a declaration, and the types that are constraints by themselves.

use super::scope::Checker;
use super::typed::*;
use crate::syntax::{self, ConstraintKind, Diagnostic, SizedType};

/// The constraints of one declaration.
pub(super) struct Constraints {
    pub lower: Option<Expr>,
    pub upper: Option<Expr>,
    pub structure: Structure,
}

impl Checker {
    /// Checks the constraints of a declaration whose values have the type
    /// `variable`.
    pub(super) fn constraints(
        &mut self,
        ty: &SizedType,
        role: Role,
        variable: Type,
        joint: Option<Joint>,
    ) -> Constraints {
        let mut found = [None, None, None, None];
        for constraint in &ty.constraints {
            let value = self.expression(&constraint.value);
            let value = value.and_then(|v| self.bound(role, constraint.kind, variable, v));
            found[constraint.kind as usize] = value;
        }
        let [lower, upper, offset, multiplier] = found;
        self.constraints_fit(ty, role, variable, joint);
        let structure = match joint {
            Some(joint) => Structure::Joint(joint),
            None if offset.is_some() || multiplier.is_some() => {
                Structure::Affine { offset, multiplier }
            }
            None => Structure::Free,
        };
        Constraints {
            lower,
            upper,
            structure,
        }
    }

    /// Whether these constraints are allowed together, on this type, in this block.
    fn constraints_fit(
        &mut self,
        ty: &SizedType,
        role: Role,
        variable: Type,
        joint: Option<Joint>,
    ) {
        let constrained = !ty.constraints.is_empty() || joint.is_some();
        if role == Role::Local && constrained {
            let plain = if variable.base == Base::Matrix {
                "declare it `matrix[R, C]`"
            } else {
                "declare it `vector[K]`"
            };
            self.report(
                Diagnostic::error("E0127", ty.span, "a local variable has no constraints")
                    .label("not allowed here")
                    .help(match joint {
                        Some(_) => plain,
                        None => "leave the part in `<...>` out",
                    }),
            );
            return;
        }
        if let (Some(joint), Role::Record | Role::TransformedRecord) = (joint, role) {
            self.report(
                Diagnostic::error(
                    "E0150",
                    ty.span,
                    format!("a record column cannot be {}", joint.with_article()),
                )
                .label("columns are bounded one by one")
                .help(
                    "declare it `vector<lower=a, upper=b>[K]`, or `matrix<lower=a, upper=b>[R, C]`",
                ),
            );
            return;
        }
        let scales = |c: &&syntax::Constraint| {
            matches!(c.kind, ConstraintKind::Offset | ConstraintKind::Multiplier)
        };
        let scale = ty.constraints.iter().find(scales);
        let bound = ty.constraints.iter().find(|c| !scales(c));
        if let (Some(joint), Some(first)) = (joint, ty.constraints.first()) {
            let keyword = joint.keyword();
            self.report(
                Diagnostic::error(
                    "E0151",
                    first.span,
                    format!("`{keyword}` has no `{}`", first.kind.keyword()),
                )
                .label("not allowed here")
                .help(format!(
                    "`{keyword}` is the whole constraint: leave the part in `<...>` out"
                )),
            );
        } else if let (Some(scale), Some(bound)) = (scale, bound) {
            self.report(
                Diagnostic::error(
                    "E0151",
                    scale.span,
                    format!(
                        "`{}` and `{}` do not go together",
                        bound.kind.keyword(),
                        scale.kind.keyword()
                    ),
                )
                .label("a scale for the sampler")
                .note(bound.span, "a bound on the values")
                .help("leave one of them out: a bounded parameter has the scale of its transform"),
            );
        } else if let Some(scale) = scale
            && role != Role::Parameter
        {
            self.report(
                Diagnostic::error(
                    "E0151",
                    scale.span,
                    format!("only a parameter has `{}`", scale.kind.keyword()),
                )
                .label("not allowed here")
                .help("it tells the sampler the scale of an unknown: leave it out"),
            );
        }
    }

    /// One value in `<...>`: a public number, or a container with one for every element.
    fn bound(
        &mut self,
        role: Role,
        kind: ConstraintKind,
        variable: Type,
        value: Expr,
    ) -> Option<Expr> {
        let keyword = kind.keyword();
        let what = match kind {
            ConstraintKind::Lower | ConstraintKind::Upper => "bounds".to_string(),
            _ => format!("`{keyword}`"),
        };
        if value.stage.is_private() {
            return self.not_constant(&value, &what);
        }
        let follows_parameters = matches!(
            role,
            Role::Parameter | Role::TransformedParameter | Role::GeneratedQuantity
        );
        if value.stage == Stage::Parameter && !follows_parameters {
            return self.not_constant(&value, "these bounds");
        }
        let element = Type::scalar(variable.base);
        if value.ty.is_number() || element.accepts(value.ty) || variable.accepts(value.ty) {
            return Some(value);
        }
        let mut wanted = vec!["a number".to_string()];
        for ty in [element, variable] {
            let words = format!("a `{ty}`");
            if !ty.is_number() && !wanted.contains(&words) {
                wanted.push(words);
            }
        }
        self.report(
            Diagnostic::error(
                "E0152",
                value.span,
                format!(
                    "`{keyword}` of a `{variable}` must be {}",
                    wanted.join(" or ")
                ),
            )
            .label(format!("this is `{}`", value.ty))
            .help("give one number for all elements, or a container with one for each"),
        );
        None
    }
}
