//! Rows of bytes as words: neighbours that are compared with neighbours, and neighbours that are stored, eight at a
//! time in 64 bits. A C compiler does that only where it sees loops. Bytes keep their order in memory: words are
//! little-endian everywhere.
//!
//! ```text
//!   byte[i+k] != byte[i+k+1], k = 0..8      x = word(i) ^ word(i+1); no byte of x is 0
//!   out[j+k] = byte[i+p(k)] ^ c(k)          word(j) = bytes of word(i), moved by their distances, ^ all c
//! ```

use super::unroll::{Unrolled, element};
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, ByteOrder, Instruction, IntType, Location, Op, Place, Projection, SlotId, Type, TypeId,
    TypeTable, UnaryOp, Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a word.
const WORD: i128 = 8;
/// Values that are put into a word one by one, at most; more are stored as quickly by themselves.
const MOST_SINGLE: usize = 4;
/// Distances by which bytes of a row are moved, at most.
const MOST_DISTANCES: usize = 4;
/// The lowest bit of each byte, and the highest.
const LOWEST: i128 = 0x0101_0101_0101_0101;
const HIGHEST: i128 = 0x8080_8080_8080_8080;

/// A byte of a row: where the row is, what its index is counted from, and how far on it is.
type Byte = (SlotId, Value, i128);

/// What is compared: whether to be equal, the first byte's row, the other's, and how much further on that one is.
type Comparison = (bool, SlotId, Value, SlotId, Value, i128);

/// Words that have been read.
#[derive(Default)]
pub(super) struct Rows {
    words: BTreeMap<(Byte, u32), Value>,
}

impl Rows {
    /// Guards, with those that compare rows of bytes as one each.
    pub(super) fn guards(
        &mut self,
        unrolled: &mut Unrolled<'_>,
        body: &Body,
        types: &TypeTable,
        guards: &[Value],
    ) -> Vec<Value> {
        let mut rows: BTreeMap<Comparison, BTreeMap<i128, Value>> = BTreeMap::new();
        for guard in guards {
            let (is_equal, a, b) = match unrolled.op(*guard) {
                Some(Op::Binary(BinaryOp::Equal, a, b)) => (true, *a, *b),
                Some(Op::Binary(BinaryOp::NotEqual, a, b)) => (false, *a, *b),
                _ => continue,
            };
            let bytes = (byte(unrolled, body, types, a), byte(unrolled, body, types, b));
            let (Some((slot_a, base_a, at_a)), Some((slot_b, base_b, at_b))) = bytes else { continue };
            rows.entry((is_equal, slot_a, base_a, slot_b, base_b, at_b - at_a)).or_default().insert(at_a, *guard);
        }
        let mut left: Vec<Value> = guards.to_vec();
        for ((is_equal, slot_a, base_a, slot_b, base_b, distance), row) in rows {
            for at in whole_words(row.keys().copied()) {
                let is_in = |guard: &Value| (at..at + WORD).any(|at| row.get(&at) == Some(guard));
                left.retain(|guard| !is_in(guard));
                let a = self.word(unrolled, (slot_a, base_a, at), 64);
                let b = self.word(unrolled, (slot_b, base_b, at + distance), 64);
                let ty = TypeTable::U64;
                let difference = binary(unrolled, ty, BinaryOp::BitXor, a, b);
                let wrong = match is_equal {
                    true => difference,
                    false => {
                        // A byte that is 0 borrows from above, and had no high bit.
                        let lowest = unrolled.constant(ty, LOWEST);
                        let highest = unrolled.constant(ty, HIGHEST);
                        let less = binary(unrolled, ty, BinaryOp::Subtract, difference, lowest);
                        let op = Op::Unary(UnaryOp::Complement, difference);
                        let low = unrolled.compute(ty, op, Location::default());
                        let borrowed = binary(unrolled, ty, BinaryOp::BitAnd, less, low);
                        binary(unrolled, ty, BinaryOp::BitAnd, borrowed, highest)
                    }
                };
                let zero = unrolled.constant(ty, 0);
                left.push(binary(unrolled, TypeTable::BOOL, BinaryOp::Equal, wrong, zero));
            }
        }
        left
    }

    /// Stores of neighbouring bytes as words.
    pub(super) fn stores(&mut self, unrolled: &mut Unrolled<'_>, body: &Body, types: &TypeTable) {
        let slots: BTreeSet<SlotId> = unrolled.stored.iter().filter_map(|store| Some(target(store)?.0)).collect();
        for slot in slots {
            if !is_bytes(types, body.slots[slot.0 as usize].ty) {
                continue;
            }
            let mut row: BTreeMap<i128, (Value, Location)> = BTreeMap::new();
            let mut bases = BTreeSet::new();
            let mut count = 0;
            for store in &unrolled.stored {
                let Some((_, index, value)) = target(store).filter(|(other, _, _)| *other == slot) else { continue };
                let (base, offset) = unrolled.offset(index);
                bases.insert(base);
                count += 1;
                row.insert(offset, (value, store.location));
            }
            // Each at another place, so that their order does not matter.
            let Some(base) = bases.first().copied().filter(|_| bases.len() == 1 && count == row.len()) else {
                continue;
            };
            for at in whole_words(row.keys().copied()) {
                let bytes: Vec<(Value, Location)> = (at..at + WORD).map(|at| row[&at]).collect();
                let values: Vec<Value> = bytes.iter().map(|(value, _)| *value).collect();
                let Some(word) = self.pack(unrolled, body, types, &values) else { continue };
                let location = bytes[0].1;
                let is_in = |store: &Instruction| {
                    target(store).is_some_and(|(other, index, _)| {
                        other == slot && (at..at + WORD).contains(&unrolled.offset(index).1)
                    })
                };
                let mut stored: Vec<Instruction> =
                    unrolled.stored.iter().filter(|store| !is_in(store)).cloned().collect();
                let offset = unrolled.sum(base, at, location);
                let to = Place { base: Base::Slot(slot), path: Vec::new() };
                let op = Op::StoreNumber { to, offset, bits: 64, order: ByteOrder::Little, value: word };
                stored.push(Instruction { result: None, op, location });
                unrolled.stored = stored;
            }
        }
    }

    /// Eight bytes as a word; none if that takes longer than to store them.
    fn pack(&mut self, unrolled: &mut Unrolled<'_>, body: &Body, types: &TypeTable, values: &[Value]) -> Option<Value> {
        let ty = TypeTable::U64;
        let mut constant = 0i128;
        let mut sources = Vec::new();
        for (position, value) in values.iter().enumerate() {
            let (source, by) = apart(unrolled, types, *value);
            constant |= by << (8 * position);
            sources.extend(source.map(|source| (position, source)));
        }
        let rows: Option<Vec<(usize, Byte)>> =
            sources.iter().map(|(position, source)| Some((*position, byte(unrolled, body, types, *source)?))).collect();
        let mut terms = Vec::new();
        match rows.and_then(|rows| self.moved(unrolled, &rows)) {
            Some(moved) => terms = moved,
            None if sources.len() <= MOST_SINGLE => {
                for (position, source) in sources {
                    let low = convert(unrolled, TypeTable::U8, source);
                    let wide = convert(unrolled, ty, low);
                    terms.push(shift(unrolled, BinaryOp::ShiftLeft, wide, position));
                }
            }
            None => return None,
        }
        let mut word = unrolled.constant(ty, constant);
        if let Some((first, others)) = terms.split_first() {
            let all = others.iter().fold(*first, |all, term| binary(unrolled, ty, BinaryOp::BitOr, all, *term));
            word = binary(unrolled, ty, BinaryOp::BitXor, all, word);
        }
        Some(word)
    }

    /// Bytes of one row, each moved to its position; none if they are of several rows, or too far apart.
    fn moved(&mut self, unrolled: &mut Unrolled<'_>, bytes: &[(usize, Byte)]) -> Option<Vec<Value>> {
        let (_, (slot, base, _)) = *bytes.first()?;
        if bytes.iter().any(|(_, (other, from, _))| (*other, *from) != (slot, base)) {
            return None;
        }
        let low = bytes.iter().map(|(_, (_, _, at))| *at).min()?;
        let high = bytes.iter().map(|(_, (_, _, at))| *at).max()?;
        // Only bytes up to the last one are known to be inside.
        let (first, bits) = match high - low {
            0..4 if high >= 3 => (high - 3, 32),
            0..8 if high >= 7 => (high - 7, 64),
            _ => return None,
        };
        let mut masks: BTreeMap<i128, i128> = BTreeMap::new();
        for (position, (_, _, at)) in bytes {
            *masks.entry(*position as i128 - (at - first)).or_insert(0) |= 0xff << (8 * (at - first));
        }
        if masks.len() > MOST_DISTANCES {
            return None;
        }
        let ty = TypeTable::U64;
        let number = self.word(unrolled, (slot, base, first), bits);
        let word = convert(unrolled, ty, number);
        let term = |(distance, mask): (i128, i128)| {
            let all = (1i128 << bits) - 1;
            let part = match mask == all {
                true => word,
                false => {
                    let mask = unrolled.constant(ty, mask);
                    binary(unrolled, ty, BinaryOp::BitAnd, word, mask)
                }
            };
            let op = if distance < 0 { BinaryOp::ShiftRight } else { BinaryOp::ShiftLeft };
            shift(unrolled, op, part, distance.unsigned_abs() as usize)
        };
        Some(masks.into_iter().map(term).collect())
    }

    /// A word of a row, that begins with this byte.
    fn word(&mut self, unrolled: &mut Unrolled<'_>, byte: Byte, bits: u32) -> Value {
        if let Some(word) = self.words.get(&(byte, bits)) {
            return *word;
        }
        let (slot, base, at) = byte;
        let offset = unrolled.sum(base, at, Location::default());
        let from = Place { base: Base::Slot(slot), path: Vec::new() };
        let ty = if bits == 32 { TypeTable::U32 } else { TypeTable::U64 };
        let op = Op::LoadNumber { from, offset, bits, order: ByteOrder::Little };
        let word = unrolled.compute(ty, op, Location::default());
        self.words.insert((byte, bits), word);
        word
    }
}

/// Where whole words begin, of neighbours.
fn whole_words(places: impl Iterator<Item = i128>) -> Vec<i128> {
    let mut words = Vec::new();
    let mut run: Option<(i128, i128)> = None;
    for at in places {
        let first = match run {
            Some((first, next)) if next == at => first,
            _ => at,
        };
        run = Some((first, at + 1));
        if at + 1 - first == WORD {
            words.push(first);
            run = None;
        }
    }
    words
}

/// The byte of `bytes` that a value is, of whatever type.
fn byte(unrolled: &Unrolled<'_>, body: &Body, types: &TypeTable, mut value: Value) -> Option<Byte> {
    loop {
        match unrolled.op(value)? {
            // What holds every byte keeps it.
            Op::Convert(from) => match types.get(unrolled.ty(value)) {
                Type::Int(int) if IntType::max(*int) >= 255 => value = *from,
                _ => return None,
            },
            Op::Load(place) => {
                let (slot, index) = element(place)?;
                let (base, offset) = unrolled.offset(index);
                let is_row = matches!(types.get(body.slots[slot.0 as usize].ty), Type::Bytes { .. });
                return (is_row && offset >= 0 && unrolled.ty(base) == TypeTable::U64).then_some((slot, base, offset));
            }
            _ => return None,
        }
    }
}

/// The low byte of a value, as another value's low byte and what it is combined with by exclusive or.
fn apart(unrolled: &Unrolled<'_>, types: &TypeTable, mut value: Value) -> (Option<Value>, i128) {
    let mut constant = 0;
    loop {
        if let Some(known) = unrolled.as_constant(value) {
            return (None, constant ^ (known & 0xff));
        }
        match unrolled.op(value) {
            Some(Op::Convert(from)) if matches!(types.get(unrolled.ty(*from)), Type::Int(_)) => value = *from,
            Some(Op::Binary(BinaryOp::BitXor, a, b)) => match (unrolled.as_constant(*a), unrolled.as_constant(*b)) {
                (None, Some(by)) => (value, constant) = (*a, constant ^ (by & 0xff)),
                (Some(by), None) => (value, constant) = (*b, constant ^ (by & 0xff)),
                _ => return (Some(value), constant),
            },
            _ => return (Some(value), constant),
        }
    }
}

/// Whether a type is bytes in a row.
fn is_bytes(types: &TypeTable, ty: TypeId) -> bool {
    match types.get(ty) {
        Type::Bytes { .. } => true,
        Type::Array { element, .. } => *element == TypeTable::U8,
        _ => false,
    }
}

/// What a store of an element writes: the slot, the index, the value.
fn target(store: &Instruction) -> Option<(SlotId, Value, Value)> {
    let Op::Store(place, value) = &store.op else { return None };
    match (place.base, &place.path[..]) {
        (Base::Slot(slot), [Projection::Inside(index)]) => Some((slot, *index, *value)),
        _ => None,
    }
}

fn binary(unrolled: &mut Unrolled<'_>, ty: TypeId, op: BinaryOp, a: Value, b: Value) -> Value {
    unrolled.compute(ty, Op::Binary(op, a, b), Location::default())
}

fn convert(unrolled: &mut Unrolled<'_>, ty: TypeId, value: Value) -> Value {
    match unrolled.ty(value) == ty {
        true => value,
        false => unrolled.compute(ty, Op::Convert(value), Location::default()),
    }
}

/// A word, moved by bytes.
fn shift(unrolled: &mut Unrolled<'_>, op: BinaryOp, word: Value, bytes: usize) -> Value {
    if bytes == 0 {
        return word;
    }
    let count = unrolled.constant(TypeTable::U64, 8 * bytes as i128);
    binary(unrolled, TypeTable::U64, op, word, count)
}
