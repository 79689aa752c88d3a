//! Random draws from the distributions of the language: `normal_rng(mu, sigma)`.

use super::distribution::{StandsFor, stands_for, wanted_kind};
use super::scope::Checker;
use super::typed::*;
use crate::distribution::{FAMILIES, Kind};
use crate::syntax::{self, Ident, Span};

impl Checker {
    pub(super) fn draw_call(
        &mut self,
        span: Span,
        name: &Ident,
        family: usize,
        arguments: &[syntax::Expr],
        conditioned: bool,
    ) -> Option<Expr> {
        let arguments = self.expressions(arguments);
        self.only_where_random(name)?;
        self.no_bar(span, name, conditioned)?;
        let arguments = arguments?;
        let definition = FAMILIES[family];
        let signature = definition.draw_arguments();
        self.same_number(name.span, &name.name, signature, &arguments)?;
        let mut many = false;
        let mut fits = true;
        for (argument, wanted) in arguments.iter().zip(signature) {
            match stands_for(wanted.kind, argument.ty) {
                Some(stands) => many |= stands == StandsFor::Many,
                None => {
                    let (words, label) = wanted_kind(wanted.kind);
                    let message = format!("`{}` of `{}` must be {words}", wanted.name, name.name);
                    self.wrong_type::<()>(argument, &message, label);
                    fits = false;
                }
            }
        }
        let one = match definition.variate() {
            Kind::Int => Type::INT,
            Kind::Real => Type::REAL,
            Kind::Ints(_) => Type {
                base: Base::Int,
                array: 1,
            },
            Kind::Vector(_) | Kind::Row(_) => Type::VECTOR,
            Kind::Matrix(..) => Type::MATRIX,
        };
        let stage = arguments
            .iter()
            .fold(Stage::Constant, |s, e| s.join(e.stage));
        fits.then_some(Expr {
            kind: ExprKind::Draw { family, arguments },
            // Given containers, it draws an array of as many values as they have elements.
            ty: Type {
                array: one.array + usize::from(many),
                ..one
            },
            stage,
            span,
        })
    }
}
