//! Indices: the expressions that may be one, and the type that remains after indexing.

use super::scope::Checker;
use super::typed::*;
use crate::syntax::{self, Diagnostic, Span};

impl Checker {
    pub(super) fn index(
        &mut self,
        span: Span,
        base: &syntax::Expr,
        indices: &[syntax::IndexExpr],
    ) -> Option<Expr> {
        let base = self.expression(base);
        let indices = self.indices(indices);
        let (base, indices) = (base?, indices?);
        if base.ty.is_number() && base.stage.is_private() {
            return self.row_index(span, &base);
        }
        let ty = self.indexed_type(span, base.ty, &indices)?;
        let mut stage = base.stage;
        for index in &indices {
            let index_stage = index_stage(index);
            if index_stage.is_private() {
                self.record_index(&base, index)?;
            }
            stage = stage.join(index_stage);
        }
        Some(Expr {
            kind: ExprKind::Index {
                base: Box::new(base),
                indices,
            },
            ty,
            stage,
            span,
        })
    }

    pub fn indices(&mut self, indices: &[syntax::IndexExpr]) -> Option<Vec<Index>> {
        let mut checked = Vec::new();
        let mut failed = false;
        for index in indices {
            match self.one_index(index) {
                Some(index) => checked.push(index),
                None => failed = true,
            }
        }
        (!failed).then_some(checked)
    }

    fn one_index(&mut self, index: &syntax::IndexExpr) -> Option<Index> {
        match index {
            syntax::IndexExpr::At(e) => {
                let e = self.expression(e)?;
                match (e.ty.base, e.ty.array) {
                    (Base::Int, 0) => Some(Index::Single(e)),
                    (Base::Int, 1) => Some(Index::Many(e)),
                    _ => self.wrong_type(&e, "an index must be an int", "int or array of int"),
                }
            }
            syntax::IndexExpr::Range { from, to, .. } => {
                let mut end = |e: &Option<syntax::Expr>| -> Option<Option<Expr>> {
                    match e {
                        None => Some(None),
                        Some(e) => {
                            let e = self.expression(e)?;
                            if e.ty != Type::INT {
                                return self.wrong_type(
                                    &e,
                                    "the ends of a range must be ints",
                                    "int",
                                );
                            }
                            if e.stage != Stage::Constant {
                                return self.not_constant(&e, "the ends of a range");
                            }
                            Some(Some(e))
                        }
                    }
                };
                let (from, to) = (end(from), end(to));
                Some(Index::Range {
                    from: from?,
                    to: to?,
                })
            }
        }
    }

    /// A record column that is an index must have bounds. Whether they keep the index inside its
    /// container is known with the sizes, when the model is bound; the same holds for a computed
    /// index.
    fn record_index(&mut self, base: &Expr, index: &Index) -> Option<()> {
        let (Index::Single(e) | Index::Many(e)) = index else {
            return Some(());
        };
        self.indexed_by_record_number(base, e)?;
        let ExprKind::Variable(id) = e.kind else {
            return Some(());
        };
        let variable = self.checked.variable(id);
        if variable.role != Role::Record || (variable.lower.is_some() && variable.upper.is_some()) {
            return Some(());
        }
        let (declared, name) = (variable.span, variable.name.clone());
        self.report(
            Diagnostic::error(
                "E0206",
                e.span,
                format!("`{name}` is used as an index, but nothing says what values it may take"),
            )
            .label("an index read off the record")
            .note(declared, "declared here")
            .help(format!(
                "declare its bounds, for example `int<lower=1, upper=J> {name};`"
            )),
        );
        None
    }

    /// `y[n]`, where `y` is one record's own number.
    fn row_index<T>(&mut self, span: Span, base: &Expr) -> Option<T> {
        self.report(
            Diagnostic::error("E0111", span, "one record's own value has no index")
                .label(format!("`{}` of this record", base.ty))
                .help("a model is written for one record: leave the index out, and the loop over rows with it"),
        );
        None
    }

    /// The type that remains after indexing.
    pub fn indexed_type(&mut self, span: Span, ty: Type, indices: &[Index]) -> Option<Type> {
        if indices.len() > ty.dimensions() {
            self.report(
                Diagnostic::error(
                    "E0111",
                    span,
                    format!(
                        "too many indices: `{ty}` has {} dimension{}",
                        ty.dimensions(),
                        if ty.dimensions() == 1 { "" } else { "s" }
                    ),
                )
                .label(match indices.len() {
                    1 => "one index".to_string(),
                    n => format!("{n} indices"),
                }),
            );
            return None;
        }
        let keeps = |index: &Index| !matches!(index, Index::Single(_));
        let in_array = indices.len().min(ty.array);
        let array = ty.array - indices[..in_array].iter().filter(|i| !keeps(i)).count();
        let rest = &indices[in_array..];
        let base = match (ty.base, rest) {
            (base, []) => base,
            (Base::Vector | Base::RowVector, [i]) if keeps(i) => ty.base,
            (Base::Vector | Base::RowVector, [_]) => Base::Real,
            (Base::Matrix, [i]) => {
                if keeps(i) {
                    Base::Matrix
                } else {
                    Base::RowVector
                }
            }
            (Base::Matrix, [i, j]) => match (keeps(i), keeps(j)) {
                (true, true) => Base::Matrix,
                (true, false) => Base::Vector,
                (false, true) => Base::RowVector,
                (false, false) => Base::Real,
            },
            (base, _) => base,
        };
        Some(Type { base, array })
    }
}

/// The stage of the values from which an index is computed.
pub(super) fn index_stage(index: &Index) -> Stage {
    match index {
        Index::Single(e) | Index::Many(e) => e.stage,
        Index::Range { from, to } => from
            .iter()
            .chain(to)
            .fold(Stage::Constant, |s, e| s.join(e.stage)),
    }
}
