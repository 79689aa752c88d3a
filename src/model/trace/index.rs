//! Indices: the storage positions that constant ones pick, and a lookup per record for those that
//! come from the record.

use super::super::BindError;
use super::super::interval::{Interval, columns_of, interval};
use super::super::private::{PrivateId, Scalar};
use super::super::value::{Data, Shape, Value};
use super::{Traced, Tracer, check_length};
use crate::check::{Base, Expr, ExprKind, Index, Type};
use crate::function::Algebra;
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
        let (result, places) = self.places(span, shape, indices)?;
        let fixed = |place: Place| match place.moves[..] {
            [] => Ok(place.offset),
            _ => Err(BindError::new(span, "these indices are not constants")),
        };
        let positions = places.into_iter().map(fixed).collect::<Traced<_>>()?;
        Ok((result, positions))
    }

    pub(super) fn index(&mut self, span: Span, base: &Value, indices: &[Index]) -> Traced<Value> {
        let (shape, places) = self.places(span, &base.shape, indices)?;
        if places.iter().all(|p| p.moves.is_empty()) {
            let positions: Vec<usize> = places.iter().map(|p| p.offset).collect();
            let data = self.take(base, &positions);
            return Ok(Value { shape, data });
        }
        let elements = if base.is_private() || !self.are_record_ints(&places) {
            let elements = base.elements(&self.graphs);
            places
                .iter()
                .map(|place| self.choose(span, &elements, place.offset, &place.moves))
                .collect::<Traced<_>>()?
        } else {
            let table = base.public_node(&mut self.graphs);
            places
                .into_iter()
                .map(|place| {
                    let strides = place
                        .moves
                        .iter()
                        .map(|m| (m.stride as u32, m.id))
                        .collect();
                    self.graphs.gather(table, place.offset as u32, strides)
                })
                .collect()
        };
        Ok(Value::of(shape, elements))
    }

    /// The shape that remains, and where each of its elements is, in storage
    /// order.
    fn places(
        &mut self,
        span: Span,
        shape: &Shape,
        indices: &[Index],
    ) -> Traced<(Shape, Vec<Place>)> {
        let mut chosen: Vec<(Vec<Pick>, bool)> = Vec::new();
        for (k, &size) in shape.sizes.iter().enumerate() {
            let range = |from: i64, to: i64| {
                (from..=to)
                    .map(|i| Ok(Pick::Fixed(position(span, i, size)?)))
                    .collect::<Traced<Vec<_>>>()
            };
            chosen.push(match indices.get(k) {
                None => (range(1, size as i64)?, true),
                Some(Index::Single(e)) => (self.picks(e, size)?, false),
                Some(Index::Many(e)) => (self.picks(e, size)?, true),
                Some(Index::Range { from, to }) => {
                    let from = from.as_ref().map_or(Ok(1), |e| self.integer(e))?;
                    let to = to.as_ref().map_or(Ok(size as i64), |e| self.integer(e))?;
                    (range(from, to)?, true)
                }
            });
        }
        let result = Shape {
            ty: indexed_type(shape.ty, &chosen),
            sizes: chosen.iter().filter(|c| c.1).map(|c| c.0.len()).collect(),
        };
        check_length(span, &result.sizes)?;
        let strides = shape.strides();
        let places = result
            .indices()
            .into_iter()
            .map(|index| {
                let mut kept = index.into_iter();
                let mut place = Place::default();
                for ((picks, keeps), &stride) in chosen.iter().zip(&strides) {
                    let k = if *keeps {
                        kept.next().unwrap_or(1) - 1
                    } else {
                        0
                    };
                    match picks[k] {
                        Pick::Fixed(position) => place.offset += position * stride,
                        Pick::Moving { id, low, high } => place.moves.push(Move {
                            stride,
                            id,
                            low,
                            high,
                        }),
                    }
                }
                place
            })
            .collect();
        Ok((result, places))
    }

    /// The elements that an int, or each of an array of ints, picks along a dimension.
    fn picks(&mut self, e: &Expr, size: usize) -> Traced<Vec<Pick>> {
        let value = self.expression(e)?;
        let elements = value.elements(&self.graphs);
        elements
            .iter()
            .map(|&scalar| match scalar {
                Scalar::Number(bits) => {
                    let v = bits.value();
                    if v.fract() != 0.0 || v.abs() >= 9e15 {
                        return Err(BindError::new(e.span, "expected a whole number"));
                    }
                    Ok(Pick::Fixed(position(e.span, v as i64, size)?))
                }
                Scalar::Private(id) => self.moving(e, id, size),
                Scalar::Public(..) => Err(BindError::new(
                    e.span,
                    "an index cannot depend on a parameter alone: write `cond ? a : b`",
                )),
            })
            .collect()
    }

    /// A record's index must not be able to leave the container.
    fn moving(&self, e: &Expr, id: PrivateId, size: usize) -> Traced<Pick> {
        let scalar = Scalar::Private(id);
        let range = interval(&self.graphs, &self.columns, scalar);
        if range.low >= 1.0 && range.high <= size as f64 {
            return Ok(Pick::Moving {
                id,
                low: range.low as usize,
                high: range.high as usize,
            });
        }
        let elements = format!("{size} element{}", if size == 1 { "" } else { "s" });
        let name = match e.kind {
            ExprKind::Variable(id) => Some(self.checked.variable(id)),
            _ => None,
        };
        let bounded = range.low.is_finite() && range.high.is_finite();
        let message = match name {
            Some(v) if bounded => format!(
                "`{0}` may be anything from {1} to {2}, but this dimension has {elements}: declare `{0}` with `lower=1, upper={size}`",
                v.name, range.low, range.high
            ),
            Some(v) => format!(
                "`{}` is used as an index and needs `lower=1, upper={size}`",
                v.name
            ),
            None => {
                let sources: Vec<String> = columns_of(&self.graphs, scalar)
                    .into_iter()
                    .map(|c| {
                        let Interval { low, high, .. } = self.columns[c];
                        let name = &self.column_names[c];
                        match (low.is_finite(), high.is_finite()) {
                            (true, true) => format!("`{name}` is from {low} to {high}"),
                            (true, false) => format!("`{name}` has no upper bound"),
                            (false, true) => format!("`{name}` has no lower bound"),
                            (false, false) => format!("`{name}` has no bounds"),
                        }
                    })
                    .collect();
                let reach = if bounded {
                    format!("may be anything from {} to {}", range.low, range.high)
                } else {
                    "may be any number".to_string()
                };
                format!(
                    "this index {reach}, but this dimension has {elements}: {}; narrow the declared bounds until the index stays in 1..{size}, or write `min(max(i, 1), {size})`",
                    sources.join(", ")
                )
            }
        };
        Err(BindError::new(e.span, message))
    }

    /// Whether every index is known once the data is loaded.
    fn are_record_ints(&self, places: &[Place]) -> bool {
        places
            .iter()
            .flat_map(|p| &p.moves)
            .all(|m| !self.graphs.private.node(m.id).has_parameter)
    }

    /// An element picked per record from a container that is itself private, or by an index that
    /// depends on a parameter: one `cond ? a : b` per candidate.
    fn choose(
        &mut self,
        span: Span,
        elements: &[Scalar],
        offset: usize,
        moves: &[Move],
    ) -> Traced<Scalar> {
        let candidates: usize = moves
            .iter()
            .fold(1, |n, m| n.saturating_mul(m.high - m.low + 1));
        if candidates > MOST_CANDIDATES {
            return Err(BindError::new(
                span,
                format!(
                    "this picks one of {candidates} private elements by a private index; at most {MOST_CANDIDATES} can be told apart: index a parameter or a constant instead"
                ),
            ));
        }
        let Some((first, rest)) = moves.split_first() else {
            return Ok(elements[offset]);
        };
        let position = |k: usize| offset + (k - 1) * first.stride;
        let mut chosen = self.choose(span, elements, position(first.high), rest)?;
        for k in (first.low..first.high).rev() {
            let value = self.choose(span, elements, position(k), rest)?;
            let number = self.graphs.constant(k as f64);
            let here = self.graphs.equal(Scalar::Private(first.id), number);
            chosen = self.graphs.select(here, value, chosen);
        }
        Ok(chosen)
    }
}

/// The most private elements among which one can be picked.
const MOST_CANDIDATES: usize = 64;

/// The element that an index picks along its dimension.
#[derive(Debug, Clone, Copy)]
enum Pick {
    /// A position, counted from 0.
    Fixed(usize),
    /// The element whose number, counted from 1, is given by the record.
    Moving {
        id: PrivateId,
        low: usize,
        high: usize,
    },
}

/// The place of an element: a position, and steps that depend on the record.
#[derive(Debug, Clone, Default)]
struct Place {
    offset: usize,
    moves: Vec<Move>,
}

#[derive(Debug, Clone, Copy)]
struct Move {
    stride: usize,
    id: PrivateId,
    low: usize,
    high: usize,
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

fn indexed_type(ty: Type, chosen: &[(Vec<Pick>, bool)]) -> Type {
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
