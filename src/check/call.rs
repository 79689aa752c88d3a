//! Calls: what functions and distributions accept, and what they give.

use super::operators::elementwise_real;
use super::scope::Checker;
use super::typed::*;
use crate::distribution::{self, FAMILIES};
use crate::function::{self, Builtin, Reduction, Shaping};
use crate::syntax::{self, Diagnostic, Ident, Span, did_you_mean};

impl Checker {
    pub(super) fn call(
        &mut self,
        span: Span,
        name: &Ident,
        arguments: &[syntax::Expr],
        conditioned: bool,
    ) -> Option<Expr> {
        if let Some((family, suffix_fits)) = distribution::lookup_density_function(&name.name) {
            return self.density_call(span, name, family, suffix_fits, arguments, conditioned);
        }
        let arguments = self.expressions(arguments);
        let Some(builtin) = self.builtin(name) else {
            self.unknown_function(name);
            return None;
        };
        let arguments = arguments?;
        // `log2()` is a constant, `log2(x)` a function.
        let builtin = match (builtin, arguments.is_empty()) {
            (Builtin::Unary(_), true) => match constant_named(&name.name) {
                Some(value) => Builtin::Constant(value),
                None => builtin,
            },
            _ => builtin,
        };
        let ty = self.call_type(span, name, builtin, &arguments)?;
        let stage = match builtin {
            // A size is public, whatever it is the size of.
            Builtin::Shaping(
                Shaping::Size | Shaping::NumElements | Shaping::Rows | Shaping::Cols,
            ) => Stage::Constant,
            _ => arguments
                .iter()
                .fold(Stage::Constant, |s, e| s.join(e.stage)),
        };
        Some(Expr {
            kind: ExprKind::Call {
                function: builtin,
                arguments,
            },
            ty,
            stage,
            span,
        })
    }

    fn builtin(&self, name: &Ident) -> Option<Builtin> {
        function::lookup(&name.name)
    }

    fn unknown_function(&mut self, name: &Ident) {
        if self.is_user_function(&name.name) {
            return;
        }
        let stem = [
            "_lpdf", "_lpmf", "_lcdf", "_lccdf", "_cdf", "_rng", "_lupdf", "_lupmf",
        ]
        .iter()
        .find_map(|suffix| name.name.strip_suffix(suffix));
        let known_family = |stem: &str| {
            distribution::lookup(stem).is_some() || distribution::NOT_SUPPORTED_YET.contains(&stem)
        };
        if function::catalogue::NOT_SUPPORTED_YET.contains(&name.name.as_str())
            || stem.is_some_and(known_family)
        {
            self.unsupported(name.span, &format!("`{}`", name.name), None);
            return;
        }
        let mut diagnostic = Diagnostic::error(
            "E0112",
            name.span,
            format!("there is no function called `{}`", name.name),
        )
        .label("unknown function");
        if let Some(suggestion) = did_you_mean(&name.name, function::names()) {
            diagnostic = diagnostic.help(format!("did you mean `{suggestion}`?"));
        }
        self.report(diagnostic);
    }

    fn density_call(
        &mut self,
        span: Span,
        name: &Ident,
        family: usize,
        suffix_fits: bool,
        arguments: &[syntax::Expr],
        conditioned: bool,
    ) -> Option<Expr> {
        let checked = self.expressions(arguments);
        let definition = FAMILIES[family];
        if !suffix_fits {
            let right = match definition.variate() {
                distribution::Number::Int => "lpmf",
                distribution::Number::Real => "lpdf",
            };
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
            self.report(
                Diagnostic::error(
                    "E0114",
                    span,
                    format!("`{}` wants a bar after the variate", name.name),
                )
                .label("expected `|`")
                .help(format!("write `{}(y | ...)`", name.name)),
            );
            return None;
        }
        let variate = checked.remove(0);
        self.distribution_arguments(name, family, &variate, &checked)?;
        let stage = checked.iter().fold(variate.stage, |s, e| s.join(e.stage));
        Some(Expr {
            kind: ExprKind::LogDensity {
                family,
                variate: Box::new(variate),
                arguments: checked,
            },
            ty: Type::REAL,
            stage,
            span,
        })
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
        if signature.len() != arguments.len() {
            let names: Vec<_> = signature.iter().map(|a| a.name).collect();
            self.report(
                Diagnostic::error(
                    "E0115",
                    name.span,
                    format!(
                        "`{}` takes {} argument{}, not {}",
                        definition.name(),
                        signature.len(),
                        if signature.len() == 1 { "" } else { "s" },
                        arguments.len()
                    ),
                )
                .label(format!(
                    "expected `{}({})`",
                    definition.name(),
                    names.join(", ")
                )),
            );
            return None;
        }
        let mut fits = true;
        if !vectorises(variate.ty, definition.variate()) {
            let wanted = wanted_number(definition.variate());
            self.wrong_type::<()>(
                variate,
                &format!(
                    "the variate of `{}` must be {}",
                    definition.name(),
                    wanted.0
                ),
                wanted.1,
            );
            fits = false;
        }
        for (argument, wanted) in arguments.iter().zip(signature) {
            if !vectorises(argument.ty, wanted.number) {
                let words = wanted_number(wanted.number);
                self.wrong_type::<()>(
                    argument,
                    &format!(
                        "`{}` of `{}` must be {}",
                        wanted.name,
                        definition.name(),
                        words.0
                    ),
                    words.1,
                );
                fits = false;
            }
        }
        fits.then_some(())
    }

    fn call_type(
        &mut self,
        span: Span,
        name: &Ident,
        builtin: Builtin,
        arguments: &[Expr],
    ) -> Option<Type> {
        let wanted = match builtin {
            Builtin::Constant(_) => 0,
            Builtin::Unary(_) | Builtin::Reduction(_) => 1,
            Builtin::Elementwise2(_) | Builtin::DotProduct => 2,
            Builtin::Shaping(shaping) => match shaping {
                Shaping::RepVector | Shaping::RepRowVector => 2,
                Shaping::RepMatrix => arguments.len().clamp(2, 3),
                Shaping::RepArray => arguments.len().clamp(2, 4),
                _ => 1,
            },
        };
        // `min` and `max` also exist for two ints, `log_sum_exp` for whatever goes
        // together element by element.
        if let (Builtin::Reduction(reduction), [a, b]) = (builtin, arguments) {
            match reduction {
                Reduction::LogSumExp => return self.elementwise_call(name, arguments),
                Reduction::Minimum | Reduction::Maximum
                    if a.ty == Type::INT && b.ty == Type::INT =>
                {
                    return Some(Type::INT);
                }
                Reduction::Minimum | Reduction::Maximum if a.ty.is_number() && b.ty.is_number() => {
                    self.report(
                        Diagnostic::error(
                            "E0105",
                            span,
                            format!("`{}` of two numbers is for ints", name.name),
                        )
                        .label("expected two ints, or a container")
                        .help(format!("write `f{}` for reals", name.name)),
                    );
                    return None;
                }
                _ => {}
            }
        }
        if arguments.len() != wanted {
            self.report(
                Diagnostic::error(
                    "E0115",
                    span,
                    format!(
                        "`{}` takes {wanted} argument{}, not {}",
                        name.name,
                        if wanted == 1 { "" } else { "s" },
                        arguments.len()
                    ),
                )
                .label(format!("expected {wanted}")),
            );
            return None;
        }
        match builtin {
            Builtin::Constant(_) => Some(Type::REAL),
            Builtin::Unary(_) => {
                let ty = arguments[0].ty;
                if ty == Type::INT && ["abs"].contains(&name.name.as_str()) {
                    return Some(Type::INT);
                }
                Some(Type {
                    base: if ty.base == Base::Int {
                        Base::Real
                    } else {
                        ty.base
                    },
                    array: ty.array,
                })
            }
            Builtin::Elementwise2(_) => self.elementwise_call(name, arguments),
            Builtin::Reduction(reduction) => {
                let ty = arguments[0].ty;
                let fits = match reduction {
                    Reduction::DotSelf => ty == Type::VECTOR || ty == Type::ROW_VECTOR,
                    _ => ty.dimensions() >= 1 && (ty.array == 0 || ty.dimensions() == 1),
                };
                if !fits {
                    return self.wrong_type(
                        &arguments[0],
                        &format!("`{}` folds a container into a number", name.name),
                        if reduction == Reduction::DotSelf {
                            "vector or row_vector"
                        } else {
                            "vector, row_vector, matrix or an array of numbers"
                        },
                    );
                }
                let ints = arguments[0].ty.base == Base::Int;
                Some(match name.name.as_str() {
                    "sum" | "min" | "max" | "prod" if ints => Type::INT,
                    _ => Type::REAL,
                })
            }
            Builtin::DotProduct => {
                for argument in arguments {
                    let same_kind = argument.ty.array == arguments[0].ty.array;
                    if argument.ty.dimensions() != 1 || !same_kind {
                        return self.wrong_type(
                            argument,
                            "`dot_product` multiplies two vectors (or two arrays) element by element and sums",
                            if same_kind {
                                "vector, row_vector or array of real"
                            } else {
                                "the same kind as the first"
                            },
                        );
                    }
                }
                Some(Type::REAL)
            }
            Builtin::Shaping(shaping) => self.shaping_type(shaping, name, arguments),
        }
    }

    /// The type of a function of two numbers applied element by element.
    fn elementwise_call(&mut self, name: &Ident, arguments: &[Expr]) -> Option<Type> {
        let (a, b) = (&arguments[0], &arguments[1]);
        elementwise_real(a.ty, b.ty).or_else(|| {
            self.wrong_type(
                b,
                &format!("the arguments of `{}` have different shapes", name.name),
                &format!("`{}` or a number", a.ty),
            )
        })
    }

    fn shaping_type(&mut self, shaping: Shaping, name: &Ident, arguments: &[Expr]) -> Option<Type> {
        use Shaping::*;
        let sizes = match shaping {
            RepVector | RepRowVector | RepArray | RepMatrix => &arguments[1..],
            _ => &[],
        };
        for size in sizes {
            if size.ty != Type::INT {
                return self.wrong_type(
                    size,
                    &format!("a size in `{}` must be an int", name.name),
                    "int",
                );
            }
            if size.stage != Stage::Constant {
                return self.not_constant(size, "a size");
            }
        }
        let first = &arguments[0];
        match shaping {
            Size => Some(Type::INT),
            NumElements if first.ty.dimensions() == 0 => self.wrong_type(
                first,
                "`num_elements` counts the elements of a container",
                "vector, row_vector, matrix or array",
            ),
            NumElements => Some(Type::INT),
            Rows | Cols => {
                if first.ty.array > 0 || first.ty.is_number() {
                    return self.wrong_type(
                        first,
                        &format!("`{}` is about vectors and matrices", name.name),
                        "vector, row_vector or matrix",
                    );
                }
                Some(Type::INT)
            }
            RepMatrix if sizes.len() == 1 => {
                if first.ty != Type::VECTOR && first.ty != Type::ROW_VECTOR {
                    return self.wrong_type(
                        first,
                        "`rep_matrix` with one size repeats a vector",
                        "vector or row_vector",
                    );
                }
                Some(Type::MATRIX)
            }
            RepVector | RepRowVector | RepMatrix => {
                if !first.ty.is_number() {
                    return self.wrong_type(
                        first,
                        &format!("`{}` repeats a number", name.name),
                        "real",
                    );
                }
                Some(match shaping {
                    RepVector => Type::VECTOR,
                    RepRowVector => Type::ROW_VECTOR,
                    _ => Type::MATRIX,
                })
            }
            RepArray => Some(Type {
                base: first.ty.base,
                array: first.ty.array + sizes.len(),
            }),
            ToVector | ToRowVector | ToArray1d
                if first.ty.dimensions() == 0
                    || (first.ty.array > 0 && first.ty.dimensions() > first.ty.array)
                    || (first.ty.array > 1 && shaping != ToArray1d) =>
            {
                self.wrong_type(
                    first,
                    &format!("`{}` flattens one container of numbers", name.name),
                    "vector, row_vector, matrix or array of numbers",
                )
            }
            ToVector => Some(Type::VECTOR),
            ToRowVector => Some(Type::ROW_VECTOR),
            ToArray1d => Some(Type {
                base: if first.ty.base == Base::Int {
                    Base::Int
                } else {
                    Base::Real
                },
                array: 1,
            }),
        }
    }
}

/// Mathematical constants that share a name with a function.
fn constant_named(name: &str) -> Option<f64> {
    match name {
        "log2" => Some(std::f64::consts::LN_2),
        "log10" => Some(std::f64::consts::LN_10),
        _ => None,
    }
}

/// Whether a value of this type can stand for one or many numbers of the kind.
fn vectorises(ty: Type, number: distribution::Number) -> bool {
    ty.dimensions() <= 1
        && match number {
            distribution::Number::Int => ty.base == Base::Int,
            distribution::Number::Real => true,
        }
}

fn wanted_number(number: distribution::Number) -> (&'static str, &'static str) {
    match number {
        distribution::Number::Int => ("an int, or an array of them", "int or array of int"),
        distribution::Number::Real => (
            "a number, or a vector or array of them",
            "real, vector, row_vector or array of real",
        ),
    }
}
