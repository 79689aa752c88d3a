//! Built-in functions: what each accepts, and the type it gives.

use super::operators::elementwise_real;
use super::scope::Checker;
use super::typed::*;
use crate::function::{Builtin, Reduction, Shaping};
use crate::syntax::{Diagnostic, Ident, Span};

impl Checker {
    pub(super) fn call_type(
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
pub(super) fn constant_named(name: &str) -> Option<f64> {
    match name {
        "log2" => Some(std::f64::consts::LN_2),
        "log10" => Some(std::f64::consts::LN_10),
        _ => None,
    }
}
