//! Indices: the storage positions that constant ones pick, and a lookup per
//! record for those read off the record.

use super::super::BindError;
use super::super::private::Scalar;
use super::super::value::{Data, Shape, Value};
use super::{Traced, Tracer, check_length};
use crate::check::{Base, Expr, ExprKind, Index, Type};
use crate::syntax::Span;

impl Tracer<'_> {
    pub(super) fn take(&mut self, value: &Value, positions: &[usize]) -> Data {
        match &value.data {
            Data::Public(id) if positions.len() > 1 => {
                let positions: Vec<u32> = positions.iter().map(|&p| p as u32).collect();
                Data::Public(self.graphs.public.take(*id, &positions))
            }
            Data::Public(id) if self.graphs.public.constant_values(*id).is_none() => Data::of(
                positions
                    .iter()
                    .map(|&p| Scalar::Public(*id, p as u32))
                    .collect(),
            ),
            _ => {
                let elements = value.elements(&self.graphs);
                Data::of(positions.iter().map(|&p| elements[p]).collect())
            }
        }
    }

    /// The shape and storage positions that constant indices pick.
    pub(super) fn positions(
        &mut self,
        span: Span,
        shape: &Shape,
        indices: &[Index],
    ) -> Traced<(Shape, Vec<usize>)> {
        let mut chosen: Vec<(Vec<usize>, bool)> = Vec::new();
        for (k, &size) in shape.sizes.iter().enumerate() {
            let all = || ((0..size).collect(), true);
            chosen.push(match indices.get(k) {
                None => all(),
                Some(Index::Single(e)) => {
                    let i = self.integer(e)?;
                    (vec![position(e.span, i, size)?], false)
                }
                Some(Index::Many(e)) => {
                    let list = self.expression(e)?;
                    let mut picked = Vec::new();
                    for &s in list.elements(&self.graphs).iter() {
                        let Some(v) = s.as_number() else {
                            return Err(BindError::new(e.span, "these indices are not constants"));
                        };
                        picked.push(position(e.span, v as i64, size)?);
                    }
                    (picked, true)
                }
                Some(Index::Range { from, to }) => {
                    let from = from.as_ref().map_or(Ok(1), |e| self.integer(e))?;
                    let to = to.as_ref().map_or(Ok(size as i64), |e| self.integer(e))?;
                    let mut picked = Vec::new();
                    for i in from..=to {
                        picked.push(position(span, i, size)?);
                    }
                    (picked, true)
                }
            });
        }
        let ty = indexed_type(shape.ty, &chosen);
        let result = Shape {
            ty,
            sizes: chosen.iter().filter(|c| c.1).map(|c| c.0.len()).collect(),
        };
        check_length(span, &result.sizes)?;
        let strides = shape.strides();
        // Visit in the storage order of the result.
        let kept: Vec<usize> = (0..chosen.len()).filter(|&k| chosen[k].1).collect();
        let fixed: usize = (0..chosen.len())
            .filter(|&k| !chosen[k].1)
            .map(|k| chosen[k].0[0] * strides[k])
            .sum();
        let positions = result
            .indices()
            .into_iter()
            .map(|index| {
                fixed
                    + kept
                        .iter()
                        .zip(&index)
                        .map(|(&k, &i)| chosen[k].0[i - 1] * strides[k])
                        .sum::<usize>()
            })
            .collect();
        Ok((result, positions))
    }

    pub(super) fn index(&mut self, span: Span, base: &Value, indices: &[Index]) -> Traced<Value> {
        let private = |index: &Index| matches!(index, Index::Single(e) if e.stage.is_private());
        if !indices.iter().any(private) {
            let (shape, positions) = self.positions(span, &base.shape, indices)?;
            let data = self.take(base, &positions);
            return Ok(Value { shape, data });
        }
        // Indices read off the record: fix them at 1 to find the positions that
        // the public ones pick, and add a stride for each.
        let strides = base.shape.strides();
        let mut public = Vec::new();
        let mut moves = Vec::new();
        for (k, index) in indices.iter().enumerate() {
            match index {
                Index::Single(e) if e.stage.is_private() => {
                    self.check_index_bounds(e, base.shape.sizes[k])?;
                    let Scalar::Private(id) = self.expression(e)?.only(&self.graphs) else {
                        return Err(BindError::new(e.span, "expected a record column"));
                    };
                    moves.push((strides[k] as u32, id));
                    public.push(Index::Single(Expr {
                        kind: ExprKind::Int(1),
                        ..e.clone()
                    }));
                }
                other => public.push(other.clone()),
            }
        }
        let (shape, positions) = self.positions(span, &base.shape, &public)?;
        let table = base.public_node(&mut self.graphs);
        let elements = positions
            .iter()
            .map(|&p| self.graphs.gather(table, p as u32, moves.clone()))
            .collect();
        Ok(Value {
            shape,
            data: Data::of(elements),
        })
    }

    /// A record's index must not be able to leave the container.
    fn check_index_bounds(&self, e: &Expr, size: usize) -> Traced<()> {
        let ExprKind::Variable(id) = e.kind else {
            return Err(BindError::new(e.span, "expected a record column"));
        };
        let name = &self.checked.variable(id).name;
        match self.column_bounds[id.0] {
            Some((lower, upper)) if lower >= 1.0 && upper <= size as f64 => Ok(()),
            Some((lower, upper)) => Err(BindError::new(
                e.span,
                format!(
                    "`{name}` may be anything from {lower} to {upper}, but this dimension has {size} element{}: declare `{name}` with `lower=1, upper={size}`",
                    if size == 1 { "" } else { "s" }
                ),
            )),
            None => Err(BindError::new(
                e.span,
                format!("`{name}` is used as an index and needs `lower=1, upper={size}`"),
            )),
        }
    }
}

fn position(span: Span, index: i64, size: usize) -> Traced<usize> {
    if index >= 1 && index as usize <= size {
        return Ok(index as usize - 1);
    }
    Err(BindError::new(
        span,
        format!("index {index} is outside 1..{size}"),
    ))
}

fn indexed_type(ty: Type, chosen: &[(Vec<usize>, bool)]) -> Type {
    let array = chosen[..ty.array].iter().filter(|c| c.1).count();
    let base = match (ty.base, &chosen[ty.array..]) {
        (Base::Vector | Base::RowVector, [c]) if !c.1 => Base::Real,
        (Base::Matrix, [i, j]) => match (i.1, j.1) {
            (true, true) => Base::Matrix,
            (true, false) => Base::Vector,
            (false, true) => Base::RowVector,
            (false, false) => Base::Real,
        },
        (base, _) => base,
    };
    Type { base, array }
}
