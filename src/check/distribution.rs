//! Distributions: sampling statements, density functions, their arguments.

use super::habits;
use super::scope::{Checker, find_variable};
use super::typed::*;
use crate::distribution::{self, Argument, FAMILIES, FamilyFunction, Function, Kind, Tail};
use crate::function::{Builtin, Unary};
use crate::syntax::{self, Diagnostic, Ident, Span, did_you_mean};

impl Checker {
    pub(super) fn sampling(
        &mut self,
        span: Span,
        variate: &syntax::Expr,
        name: &Ident,
        arguments: &[syntax::Expr],
        truncation: Option<&syntax::Truncation>,
    ) -> Option<StatementKind> {
        let variate = self.expression(variate);
        let arguments = self.expressions(arguments);
        let ends = truncation.map(|t| self.truncation_ends(t));
        self.only_in_model(span, "a sampling statement")?;
        let family = distribution::lookup(&name.name);
        if family.is_none() && !self.is_user_function(&name.name) {
            self.unknown_distribution(name);
            return None;
        }
        let (variate, arguments) = (variate?, arguments?);
        if let Some(family) = family {
            self.distribution_arguments(name, family, &variate, &arguments)?;
        }
        let mut checked_truncation = Truncation::default();
        if let (Some(truncation), Some(ends)) = (truncation, ends) {
            self.may_be_truncated(truncation.span, name, family)?;
            checked_truncation = ends?;
            if family.is_some_and(distribution::sums_masses) {
                for end in checked_truncation.ends() {
                    self.known_count(end, "the ends of a truncated count")?;
                }
            }
        }
        let right: Vec<&Expr> = arguments.iter().chain(checked_truncation.ends()).collect();
        if !variate.stage.is_private()
            && let Some(private) = right.iter().find(|e| e.stage.is_private())
        {
            self.prior_reads_record(&variate, private);
            return None;
        }
        if !variate.stage.is_private() && self.flow.since(0).is_private() {
            self.prior_of_each_record(span);
            return None;
        }
        let Some(family) = family else {
            return self.user_sampling(span, name, variate, arguments);
        };
        self.checked.distributions.push(FAMILIES[family].name());
        Some(StatementKind::Sampling {
            family,
            variate,
            arguments,
            truncation: checked_truncation,
        })
    }

    /// The ends of `T[a, b]`: numbers.
    fn truncation_ends(&mut self, truncation: &syntax::Truncation) -> Option<Truncation> {
        let mut end = |e: &Option<syntax::Expr>| -> Option<Option<Expr>> {
            let Some(e) = e else { return Some(None) };
            let e = self.expression(e)?;
            if e.ty.is_number() {
                return Some(Some(e));
            }
            self.wrong_type(
                &e,
                "the ends of a truncation must be numbers",
                "int or real",
            )
        };
        let (lower, upper) = (end(&truncation.lower), end(&truncation.upper));
        Some(Truncation {
            lower: lower?,
            upper: upper?,
        })
    }

    /// Refuses families whose distribution function has no closed form.
    fn may_be_truncated(&mut self, span: Span, name: &Ident, family: Option<usize>) -> Option<()> {
        if family.is_some_and(|f| distribution::has_cdf(f) || distribution::sums_masses(f)) {
            return Some(());
        }
        let what = format!("`{}` cannot be truncated", name.name);
        self.no_distribution_function(span, what);
        None
    }

    /// Probabilities of counts are sums, whose ends must be known.
    fn known_count(&mut self, e: &Expr, what: &str) -> Option<()> {
        if e.stage == Stage::Constant {
            return Some(());
        }
        self.not_constant(e, what)
    }

    fn no_distribution_function(&mut self, span: Span, what: String) {
        let with: Vec<_> = (0..FAMILIES.len())
            .filter(|&f| distribution::has_cdf(f) || distribution::sums_masses(f))
            .map(|f| format!("`{}`", FAMILIES[f].name()))
            .collect();
        self.report(
            Diagnostic::error(
                "E0116",
                span,
                format!("{what}: its distribution function has no closed form here"),
            )
            .label("needs a distribution function")
            .help(format!("these have one: {}", with.join(", "))),
        );
    }

    /// `alpha ~ normal(dist, 1)`: a prior that reads private data.
    fn prior_reads_record(&mut self, variate: &Expr, argument: &Expr) {
        let what = find_variable(variate, &|_| true)
            .map(|id| self.checked.variable(id).role.description())
            .unwrap_or("a constant");
        let mut diagnostic = Diagnostic::error(
            "E0201",
            argument.span,
            "a prior that reads private data: what is left of `~` names no record column, but this does",
        )
        .label(format!("stage {}", argument.stage.name()))
        .note(variate.span, format!("this is {what}"))
        .help("take the column out of the prior; if you mean a term per record, write `target += ..._lpdf(... | ...);`");
        if let Some((span, text)) = self.private_source(argument) {
            diagnostic = diagnostic.note(span, text);
        }
        self.report(diagnostic);
    }

    /// `if (treated) alpha ~ normal(0, 1);`: a prior that would count once for each treated record.
    fn prior_of_each_record(&mut self, span: Span) {
        self.report(
            Diagnostic::error(
                "E0201",
                span,
                "a prior under a condition on a record: what is left of `~` names no record column, and this would count once for each record",
            )
            .label("under a condition on a record")
            .help("take it out of the condition; if you mean a term per record, write `target += ..._lpdf(... | ...);`"),
        );
    }

    fn unknown_distribution(&mut self, name: &Ident) {
        let known = FAMILIES.iter().map(|f| f.name());
        let mut diagnostic = Diagnostic::error(
            "E0126",
            name.span,
            format!("there is no distribution called `{}`", name.name),
        )
        .label("unknown distribution");
        diagnostic = match did_you_mean(&name.name, known) {
            _ if self.is_unread(&name.name) => return,
            _ if habits::family(&name.name).is_some() => {
                diagnostic.help(habits::family(&name.name).unwrap_or_default())
            }
            Some(suggestion) => diagnostic.help(format!("did you mean `{suggestion}`?")),
            None => {
                let names: Vec<_> = FAMILIES.iter().map(|f| format!("`{}`", f.name())).collect();
                diagnostic.help(format!("there are {}", names.join(", ")))
            }
        };
        self.report(diagnostic);
    }

    /// `normal_lpdf(y | mu, sigma)`, and likewise `_lcdf`, `_lccdf` and `_cdf`.
    pub(super) fn density_call(
        &mut self,
        span: Span,
        name: &Ident,
        called: FamilyFunction,
        arguments: &[syntax::Expr],
        conditioned: bool,
    ) -> Option<Expr> {
        let checked = self.expressions(arguments);
        let family = called.family;
        let definition = FAMILIES[family];
        if !called.ending_fits {
            let right = definition.density_suffix();
            self.report(
                Diagnostic::error(
                    "E0113",
                    name.span,
                    format!(
                        "the log density of `{}` ends in `_{right}`",
                        definition.name()
                    ),
                )
                .label("wrong ending")
                .help(format!("write `{}_{right}`", definition.name())),
            );
            return None;
        }
        let mut checked = checked?;
        if !conditioned || checked.is_empty() {
            return self.wants_bar(span, name);
        }
        let variate = checked.remove(0);
        self.distribution_arguments(name, family, &variate, &checked)?;
        let stage = checked.iter().fold(variate.stage, |s, e| s.join(e.stage));
        let variate = Box::new(variate);
        let tail = match called.function {
            Function::LogTail(tail) => Some(tail),
            Function::Cdf => Some(Tail::Lower),
            Function::LogDensity | Function::Draw => None,
        };
        let number = |kind| Expr {
            kind,
            ty: Type::REAL,
            stage,
            span,
        };
        let Some(tail) = tail else {
            return Some(number(ExprKind::LogDensity {
                family,
                variate,
                arguments: checked,
            }));
        };
        if distribution::sums_masses(family) {
            self.known_count(&variate, "a distribution function of counts")?;
        } else if !distribution::has_cdf(family) {
            self.no_distribution_function(name.span, format!("there is no `{}`", name.name));
            return None;
        }
        let log = number(ExprKind::LogTail {
            family,
            tail,
            variate,
            arguments: checked,
        });
        if called.function != Function::Cdf {
            return Some(log);
        }
        Some(number(ExprKind::Call {
            function: Builtin::Unary(Unary::Exp),
            arguments: vec![log],
        }))
    }

    /// Refuses another number of arguments than the signature's.
    pub fn same_number(
        &mut self,
        span: Span,
        name: &str,
        signature: &[Argument],
        arguments: &[Expr],
    ) -> Option<()> {
        if signature.len() == arguments.len() {
            return Some(());
        }
        let names: Vec<_> = signature.iter().map(|a| a.name).collect();
        let message = format!(
            "`{name}` takes {} argument{}, not {}",
            signature.len(),
            if signature.len() == 1 { "" } else { "s" },
            arguments.len()
        );
        self.report(
            Diagnostic::error("E0115", span, message)
                .label(format!("expected `{name}({})`", names.join(", "))),
        );
        None
    }

    /// Checks the variate and the arguments of a distribution against its
    /// signature.
    pub fn distribution_arguments(
        &mut self,
        name: &Ident,
        family: usize,
        variate: &Expr,
        arguments: &[Expr],
    ) -> Option<()> {
        let definition = FAMILIES[family];
        let signature = definition.arguments();
        self.same_number(name.span, definition.name(), signature, arguments)?;
        let mut fits = true;
        let mut check = |checker: &mut Self, what: String, value: &Expr, kind: Kind| {
            if stands_for(kind, value.ty).is_none() {
                let (words, label) = wanted_kind(kind);
                let message = format!("{what} of `{}` must be {words}", definition.name());
                checker.wrong_type::<()>(value, &message, label);
                fits = false;
            }
        };
        check(self, "the variate".into(), variate, definition.variate());
        for (argument, wanted) in arguments.iter().zip(signature) {
            check(self, format!("`{}`", wanted.name), argument, wanted.kind);
        }
        fits.then_some(())
    }
}

/// Whether a value is one value of a kind, or as many as it has elements (or rows).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandsFor {
    One,
    Many,
}

/// How a value of this type is read where a distribution expects this kind; `None` where it does
/// not fit.
pub fn stands_for(kind: Kind, ty: Type) -> Option<StandsFor> {
    use StandsFor::*;
    match (kind, ty.base, ty.array) {
        (Kind::Int, Base::Int, 0) => Some(One),
        (Kind::Int, Base::Int, 1) => Some(Many),
        (Kind::Int, ..) => None,
        (Kind::Real, ..) => match ty.dimensions() {
            0 => Some(One),
            1 => Some(Many),
            _ => None,
        },
        (Kind::Ints(_), Base::Int, 1) => Some(One),
        (Kind::Ints(_), Base::Int, 2) => Some(Many),
        (Kind::Vector(_) | Kind::Row(_), Base::Vector | Base::RowVector, 0) => Some(One),
        (Kind::Vector(_) | Kind::Row(_), Base::Vector | Base::RowVector, 1) => Some(Many),
        (Kind::Row(_), Base::Matrix, 0) => Some(Many),
        (Kind::Matrix(..), Base::Matrix, 0) => Some(One),
        _ => None,
    }
}

/// A kind in words, and as a label.
pub(super) fn wanted_kind(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Int => ("an int, or an array of them", "int or array of int"),
        Kind::Real => (
            "a number, or a vector or array of them",
            "real, vector, row_vector or array of real",
        ),
        Kind::Ints(_) => ("an array of ints", "array of int"),
        Kind::Vector(_) => ("a vector, or an array of them", "vector or array of vector"),
        Kind::Row(_) => (
            "a row of predictors, or a matrix of them",
            "vector, row_vector or matrix",
        ),
        Kind::Matrix(..) => ("a matrix", "matrix"),
    }
}
