//! Types of random programs, and random values of them for the environment to send.

use fastrand::Rng;
use quaject_esp_exec::datum::Datum;
use quaject_esp_syntax::types::IntType;

/// A type of a random program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ty {
    /// Any integer type.
    Int(IntType),
    /// `bool`
    Bool,
    /// `bytes[<=n]`
    Bytes(u32),
    /// `array[n] of t`
    Array(u32, Box<Ty>),
    /// Index into [`Types::records`].
    Record(usize),
    /// Index into [`Types::unions`].
    Union(usize),
    /// Index into [`Types::boxed`].
    Boxed(usize),
}

/// A type with a pool.
#[derive(Clone, Debug)]
pub struct Boxed {
    /// What its objects hold.
    pub content: Ty,
    /// The number of its objects.
    pub capacity: u32,
}

/// The named types of one program.
#[derive(Default, Debug)]
pub struct Types {
    /// Fields of each record.
    pub records: Vec<Vec<Ty>>,
    /// Payloads of each union's tags.
    pub unions: Vec<Vec<Option<Ty>>>,
    /// Types with a pool.
    pub boxed: Vec<Boxed>,
}

/// Every integer type.
pub const INTS: [IntType; 8] =
    [IntType::U8, IntType::U16, IntType::U32, IntType::U64, IntType::I8, IntType::I16, IntType::I32, IntType::I64];

impl Types {
    /// Up to `count` named types; pools have `plenty` times as many objects as a small program needs.
    pub fn random(rng: &mut Rng, count: usize, plenty: u32) -> Types {
        let mut types = Types::default();
        for _ in 0..count {
            match rng.u32(0..5) {
                0 | 1 => {
                    let fields = (0..rng.usize(1..4)).map(|_| types.any(rng, 1)).collect();
                    types.records.push(fields);
                }
                2 => {
                    let tags = (0..rng.usize(1..5)).map(|_| (rng.u32(0..4) > 0).then(|| types.any(rng, 1))).collect();
                    types.unions.push(tags);
                }
                3 => {
                    let bound = rng.u32(1..12);
                    types.boxed.push(Boxed { content: Ty::Bytes(bound), capacity: plenty * rng.u32(1..7) });
                }
                _ => {
                    let content = if types.records.is_empty() || rng.bool() {
                        let element = types.scalar(rng);
                        Ty::Array(rng.u32(1..5), Box::new(element))
                    } else {
                        Ty::Bytes(rng.u32(1..20))
                    };
                    types.boxed.push(Boxed { content, capacity: plenty * rng.u32(1..7) });
                }
            }
        }
        types
    }

    /// An integer type or `bool`.
    pub fn scalar(&self, rng: &mut Rng) -> Ty {
        if rng.u32(0..6) == 0 {
            Ty::Bool
        } else if rng.bool() {
            Ty::Int(IntType::I32)
        } else {
            Ty::Int(INTS[rng.usize(0..INTS.len())])
        }
    }

    /// Any type, aggregates up to a depth.
    pub fn any(&self, rng: &mut Rng, depth: u32) -> Ty {
        match rng.u32(0..12) {
            0 | 1 if !self.records.is_empty() => Ty::Record(rng.usize(0..self.records.len())),
            2 | 3 if !self.unions.is_empty() => Ty::Union(rng.usize(0..self.unions.len())),
            4 | 5 if !self.boxed.is_empty() => Ty::Boxed(rng.usize(0..self.boxed.len())),
            6 => Ty::Bytes(rng.u32(0..10)),
            7 if depth > 0 => Ty::Array(rng.u32(1..4), Box::new(self.any(rng, depth - 1))),
            _ => self.scalar(rng),
        }
    }

    /// Whether a value of the type has no boxed part.
    pub fn is_flat(&self, ty: &Ty) -> bool {
        match ty {
            Ty::Int(_) | Ty::Bool | Ty::Bytes(_) => true,
            Ty::Array(_, element) => self.is_flat(element),
            Ty::Record(id) => self.records[*id].iter().all(|field| self.is_flat(field)),
            Ty::Union(id) => self.unions[*id].iter().flatten().all(|payload| self.is_flat(payload)),
            Ty::Boxed(_) => false,
        }
    }

    /// The type as ESP writes it.
    pub fn print(&self, ty: &Ty) -> String {
        match ty {
            Ty::Int(int) => int.name().to_string(),
            Ty::Bool => "bool".to_string(),
            // A bound is at least 1.
            Ty::Bytes(bound) => format!("bytes[<={}]", bound + 1),
            Ty::Array(length, element) => format!("array[{length}] of {}", self.print(element)),
            Ty::Record(id) => format!("r{id}"),
            Ty::Union(id) => format!("u{id}"),
            Ty::Boxed(id) => format!("b{id}"),
        }
    }

    /// A random value.
    pub fn datum(&self, rng: &mut Rng, ty: &Ty) -> Datum {
        match ty {
            Ty::Int(int) => Datum::Int(int_value(rng, *int)),
            Ty::Bool => Datum::Bool(rng.bool()),
            Ty::Bytes(bound) => Datum::Bytes((0..rng.u32(0..=bound + 1)).map(|_| rng.u8(..)).collect()),
            Ty::Array(length, element) => Datum::Array((0..*length).map(|_| self.datum(rng, element)).collect()),
            Ty::Record(id) => Datum::Record(self.records[*id].iter().map(|field| self.datum(rng, field)).collect()),
            Ty::Union(id) => {
                let tag = rng.usize(0..self.unions[*id].len());
                let payload = self.unions[*id][tag].as_ref().map(|payload| Box::new(self.datum(rng, payload)));
                Datum::Union(tag as u32, payload)
            }
            Ty::Boxed(id) => self.datum(rng, &self.boxed[*id].content),
        }
    }

    /// The declarations, pools included.
    pub fn declarations(&self) -> String {
        let mut text = String::new();
        for (id, boxed) in self.boxed.iter().enumerate() {
            text += &format!("type b{id} = {};  pool b{id} {};\n", self.print(&boxed.content), boxed.capacity);
        }
        for (id, fields) in self.records.iter().enumerate() {
            let fields: Vec<String> =
                fields.iter().enumerate().map(|(index, field)| format!("f{index}: {}", self.print(field))).collect();
            text += &format!("type r{id} = record {{ {} }};\n", fields.join(", "));
        }
        for (id, tags) in self.unions.iter().enumerate() {
            let tags: Vec<String> = tags
                .iter()
                .enumerate()
                .map(|(index, tag)| match tag {
                    Some(payload) => format!("t{index}: {}", self.print(payload)),
                    None => format!("t{index}"),
                })
                .collect();
            text += &format!("type u{id} = union {{ {} }};\n", tags.join(", "));
        }
        text
    }
}

/// A value that is small, or at the edge of its type.
pub fn int_value(rng: &mut Rng, int: IntType) -> i128 {
    match rng.u32(0..8) {
        0 => int.max(),
        1 => int.min() + i128::from(int == IntType::I64),
        2 => int.wrap(i128::from(rng.u64(..))),
        3 => int.wrap(-1 - i128::from(rng.u32(0..3))).max(int.min() + 1),
        _ => i128::from(rng.u32(0..9)),
    }
}
