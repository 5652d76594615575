//! The byte shape of a channel's type, for the drivers `bytes` and `ring`: the part of a message that holds the bytes,
//! and the message that ends the stream.

use crate::drivers::type_name;
use crate::error::{HostCode, HostError};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Channel, IntType, Program, Type, TypeId};

/// The name of the case of a union that ends the stream.
const END_CASE: &str = "eos";

/// A type whose values are bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// An integer: one byte per message, then -1 if the type has it.
    Int(IntType),
    /// `bytes`: up to this many at once, at least one.
    Chunk(usize),
    /// The case of a union that holds bytes, and the one that ends them.
    Case { tag: u32, payload: Payload, end: Option<u32> },
}

/// What the case of a union holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Payload {
    /// One byte.
    Int,
    /// Up to this many bytes.
    Chunk(usize),
}

impl Shape {
    /// The byte shape of a channel; an error if it has none.
    pub(crate) fn of(program: &Program, channel: &Channel, driver: &str) -> Result<Shape, HostError> {
        let shape = match channel.payload.as_slice() {
            [ty] => shape(program, *ty),
            _ => None,
        };
        shape.ok_or_else(|| {
            let types: Vec<String> = channel.payload.iter().map(|ty| type_name(program, *ty)).collect();
            HostError::usage(
                HostCode::Type,
                format!(
                    "driver `{driver}` cannot serve channel `{}`: its messages, `({})`, are not bytes",
                    channel.name,
                    types.join(", ")
                ),
            )
            .help(format!(
                "use `--bind {}=text:PATH`, or a channel of one integer that holds 0 to 255, of `bytes`, or of a union \
                 with such a case and `{END_CASE}`",
                channel.name
            ))
        })
    }

    /// Reads the message at the beginning of `pending`, which is not empty. Returns its length in bytes.
    pub(crate) fn message(self, pending: &[u8], message: &mut Vec<Datum>) -> usize {
        let chunk = |bound: usize| Datum::Bytes(pending[..pending.len().min(bound)].to_vec());
        let (value, length) = match self {
            Shape::Int(_) => (Datum::Int(i128::from(pending[0])), 1),
            Shape::Chunk(bound) => (chunk(bound), pending.len().min(bound)),
            Shape::Case { tag, payload, end: _ } => match payload {
                Payload::Int => (Datum::Union(tag, Some(Box::new(Datum::Int(i128::from(pending[0]))))), 1),
                Payload::Chunk(bound) => (Datum::Union(tag, Some(Box::new(chunk(bound)))), pending.len().min(bound)),
            },
        };
        message.clear();
        message.push(value);
        length
    }

    /// The message that ends the stream.
    pub(crate) fn end(self) -> Option<Datum> {
        match self {
            Shape::Int(int) => int.is_signed().then_some(Datum::Int(-1)),
            Shape::Chunk(_) => None,
            Shape::Case { end, .. } => end.map(|tag| Datum::Union(tag, None)),
        }
    }

    /// The maximum of bytes in a message.
    pub(crate) fn wanted(self) -> usize {
        match self {
            Shape::Int(_) | Shape::Case { payload: Payload::Int, .. } => 1,
            Shape::Chunk(bound) | Shape::Case { payload: Payload::Chunk(bound), .. } => bound,
        }
    }

    /// Whether one message is exactly these bytes.
    pub(crate) fn holds(self, bytes: &[u8]) -> bool {
        match self {
            Shape::Int(_) | Shape::Case { payload: Payload::Int, .. } => bytes.len() == 1,
            Shape::Chunk(bound) | Shape::Case { payload: Payload::Chunk(bound), .. } => bytes.len() <= bound,
        }
    }

    /// Writes a message's bytes to `out`.
    pub(crate) fn write(self, message: &[Datum], out: &mut Vec<u8>) -> Outcome {
        let [value] = message else { return Outcome::NotBytes };
        if self.end().as_ref() == Some(value) {
            return Outcome::End;
        }
        let value = match (self, value) {
            (Shape::Case { tag, .. }, Datum::Union(found, Some(payload))) if tag == *found => payload,
            (Shape::Case { .. }, _) => return Outcome::NotBytes,
            (Shape::Int(_) | Shape::Chunk(_), value) => value,
        };
        match value {
            Datum::Int(value) => match u8::try_from(*value) {
                Ok(byte) => out.push(byte),
                Err(_) => return Outcome::NotBytes,
            },
            Datum::Bytes(bytes) => out.extend_from_slice(bytes),
            Datum::Bool(_) | Datum::Pid(_) | Datum::Record(_) | Datum::Union(..) | Datum::Array(_) => {
                return Outcome::NotBytes;
            }
        }
        Outcome::Written
    }
}

/// The outcome of writing a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Bytes, written.
    Written,
    /// The end of the bytes.
    End,
    /// Neither.
    NotBytes,
}

fn shape(program: &Program, ty: TypeId) -> Option<Shape> {
    if let Type::Union(id) = content(program, ty) {
        let parts = &program.types.aggregate(*id).parts;
        let end = parts.iter().position(|(name, payload)| name == END_CASE && payload.is_none());
        return parts.iter().enumerate().find_map(|(tag, (_, payload))| {
            let payload = match plain(program, (*payload)?)? {
                Shape::Int(_) => Payload::Int,
                Shape::Chunk(bound) => Payload::Chunk(bound),
                Shape::Case { payload, .. } => payload,
            };
            Some(Shape::Case { tag: tag as u32, payload, end: end.map(|tag| tag as u32) })
        });
    }
    plain(program, ty)
}

fn plain(program: &Program, ty: TypeId) -> Option<Shape> {
    match content(program, ty) {
        Type::Int(int) if IntType::max(*int) >= 255 => Some(Shape::Int(*int)),
        Type::Bytes { bound } if *bound > 0 => Some(Shape::Chunk(*bound as usize)),
        Type::Int(_)
        | Type::Bytes { .. }
        | Type::Error
        | Type::Bool
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_)
        | Type::Boxed(_) => None,
    }
}

fn content(program: &Program, ty: TypeId) -> &Type {
    match program.types.get(ty) {
        Type::Boxed(pool) => program.types.get(program.types.pool(*pool).content),
        flat => flat,
    }
}
