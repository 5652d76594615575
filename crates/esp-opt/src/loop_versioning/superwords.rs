//! Superword-level parallelism in 64-bit registers (Larsen and Amarasinghe, "Exploiting Superword Level Parallelism",
//! 2000): adjacent bytes that are compared with adjacent bytes, and adjacent bytes that are stored, as words of eight.
//! A C compiler vectorises only loops, not this straight-line code. Words are little-endian on every machine, so that
//! bytes keep their order in memory.
//!
//! ```text
//!   byte[i+k] != byte[i+k+1], k = 0..8      x = word(i) ^ word(i+1); no byte of x is 0
//!   out[j+k] = byte[i+p(k)] ^ c(k)          word(j) = bytes of word(i), shifted by their distances, ^ all c
//! ```

use super::unrolled::Unrolled;
use crate::places::slot_element;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Body, ByteOrder, Instruction, IntType, Location, Op, Place, Projection, SlotId, Type, TypeId,
    TypeTable, UnaryOp, Value,
};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a word.
const WORD: i128 = 8;
/// The maximal number of single values that are inserted into a word; individual stores of more are as fast.
const MAX_SINGLE_BYTES: usize = 4;
/// The maximal number of distances by which the bytes of a stream are shifted.
const MAX_DISTANCES: usize = 4;
/// The lowest bit of each byte, and the highest bit of each.
const LOWEST: i128 = 0x0101_0101_0101_0101;
const HIGHEST: i128 = 0x8080_8080_8080_8080;

/// A byte of an array stream: the array, the base of its index, and the offset.
type StreamByte = (SlotId, Value, i128);

/// A comparison of two streams: whether for equality, the first stream, the second, and its distance.
type Comparison = (bool, SlotId, Value, SlotId, Value, i128);

/// The words loaded so far.
#[derive(Default)]
pub(super) struct Superwords {
    words: BTreeMap<(StreamByte, u32), Value>,
}

impl Superwords {
    /// Combines guards that compare streams of bytes into word comparisons.
    pub(super) fn combine_guards(
        &mut self,
        unrolled: &mut Unrolled<'_>,
        body: &Body,
        types: &TypeTable,
        guards: &[Value],
    ) -> Vec<Value> {
        let mut streams: BTreeMap<Comparison, BTreeMap<i128, Value>> = BTreeMap::new();
        for guard in guards {
            let (is_equal, a, b) = match unrolled.op(*guard) {
                Some(Op::Binary(BinaryOp::Equal, a, b)) => (true, *a, *b),
                Some(Op::Binary(BinaryOp::NotEqual, a, b)) => (false, *a, *b),
                _ => continue,
            };
            let bytes = (byte(unrolled, body, types, a), byte(unrolled, body, types, b));
            let (Some((slot_a, base_a, at_a)), Some((slot_b, base_b, at_b))) = bytes else { continue };
            streams.entry((is_equal, slot_a, base_a, slot_b, base_b, at_b - at_a)).or_default().insert(at_a, *guard);
        }
        let mut remaining: Vec<Value> = guards.to_vec();
        for ((is_equal, slot_a, base_a, slot_b, base_b, distance), stream) in streams {
            for at in word_starts(stream.keys().copied()) {
                let is_in = |guard: &Value| (at..at + WORD).any(|at| stream.get(&at) == Some(guard));
                remaining.retain(|guard| !is_in(guard));
                let a = self.word(unrolled, (slot_a, base_a, at), 64);
                let b = self.word(unrolled, (slot_b, base_b, at + distance), 64);
                let ty = TypeTable::U64;
                let difference = binary(unrolled, ty, BinaryOp::BitXor, a, b);
                let differing = match is_equal {
                    true => difference,
                    false => {
                        // Nonzero if and only if a byte of the difference is 0: such a byte borrows from the next one
                        // and has no high bit itself (Mycroft's test).
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
                remaining.push(binary(unrolled, TypeTable::BOOL, BinaryOp::Equal, differing, zero));
            }
        }
        remaining
    }

    /// Combines stores of adjacent bytes into word stores.
    pub(super) fn combine_stores(&mut self, unrolled: &mut Unrolled<'_>, body: &Body, types: &TypeTable) {
        let slots: BTreeSet<SlotId> = unrolled.stored.iter().filter_map(|store| Some(target(store)?.0)).collect();
        for slot in slots {
            if !is_bytes(types, body.slots[slot.0 as usize].ty) {
                continue;
            }
            let mut stream: BTreeMap<i128, (Value, Location)> = BTreeMap::new();
            let mut bases = BTreeSet::new();
            let mut count = 0;
            for store in &unrolled.stored {
                let Some((_, index, value)) = target(store).filter(|(other, _, _)| *other == slot) else { continue };
                let (base, offset) = unrolled.offset(index);
                bases.insert(base);
                count += 1;
                stream.insert(offset, (value, store.location));
            }
            // Distinct elements, so that the order of the stores is irrelevant.
            let Some(base) = bases.first().copied().filter(|_| bases.len() == 1 && count == stream.len()) else {
                continue;
            };
            for at in word_starts(stream.keys().copied()) {
                let bytes: Vec<(Value, Location)> = (at..at + WORD).map(|at| stream[&at]).collect();
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

    /// Eight bytes as a word; none if individual stores are faster.
    fn pack(&mut self, unrolled: &mut Unrolled<'_>, body: &Body, types: &TypeTable, values: &[Value]) -> Option<Value> {
        let ty = TypeTable::U64;
        let mut constant = 0i128;
        let mut sources = Vec::new();
        for (position, value) in values.iter().enumerate() {
            let (source, by) = split_xor(unrolled, types, *value);
            constant |= by << (8 * position);
            sources.extend(source.map(|source| (position, source)));
        }
        let streams: Option<Vec<(usize, StreamByte)>> =
            sources.iter().map(|(position, source)| Some((*position, byte(unrolled, body, types, *source)?))).collect();
        let mut terms = Vec::new();
        match streams.and_then(|streams| self.shifted_bytes(unrolled, &streams)) {
            Some(shifted) => terms = shifted,
            None if sources.len() <= MAX_SINGLE_BYTES => {
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

    /// Bytes of one stream, each shifted to its position; none if they are of several streams, or too far apart.
    fn shifted_bytes(&mut self, unrolled: &mut Unrolled<'_>, bytes: &[(usize, StreamByte)]) -> Option<Vec<Value>> {
        let (_, (slot, base, _)) = *bytes.first()?;
        if bytes.iter().any(|(_, (other, from, _))| (*other, *from) != (slot, base)) {
            return None;
        }
        let low = bytes.iter().map(|(_, (_, _, at))| *at).min()?;
        let high = bytes.iter().map(|(_, (_, _, at))| *at).max()?;
        // Only bytes up to the last one are known to be in range.
        let (first, bits) = match high - low {
            0..4 if high >= 3 => (high - 3, 32),
            0..8 if high >= 7 => (high - 7, 64),
            _ => return None,
        };
        let mut masks: BTreeMap<i128, i128> = BTreeMap::new();
        for (position, (_, _, at)) in bytes {
            *masks.entry(*position as i128 - (at - first)).or_insert(0) |= 0xff << (8 * (at - first));
        }
        if masks.len() > MAX_DISTANCES {
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

    /// The word of a stream that starts with this byte.
    fn word(&mut self, unrolled: &mut Unrolled<'_>, byte: StreamByte, bits: u32) -> Value {
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

/// The offsets of disjoint words of adjacent bytes.
fn word_starts(places: impl Iterator<Item = i128>) -> Vec<i128> {
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

/// The stream byte that a value is, whatever its type.
fn byte(unrolled: &Unrolled<'_>, body: &Body, types: &TypeTable, mut value: Value) -> Option<StreamByte> {
    loop {
        match unrolled.op(value)? {
            // A conversion to a type that holds every byte keeps the byte.
            Op::Convert(from) => match types.get(unrolled.ty(value)) {
                Type::Int(int) if IntType::max(*int) >= 255 => value = *from,
                _ => return None,
            },
            Op::Load(place) => {
                let (slot, index) = slot_element(place)?;
                let (base, offset) = unrolled.offset(index);
                let is_stream = matches!(types.get(body.slots[slot.0 as usize].ty), Type::Bytes { .. });
                return (is_stream && offset >= 0 && unrolled.ty(base) == TypeTable::U64)
                    .then_some((slot, base, offset));
            }
            _ => return None,
        }
    }
}

/// The low byte of a value, as the low byte of another value and the constant that it is xored with.
fn split_xor(unrolled: &Unrolled<'_>, types: &TypeTable, mut value: Value) -> (Option<Value>, i128) {
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

/// Whether a type is a sequence of bytes.
fn is_bytes(types: &TypeTable, ty: TypeId) -> bool {
    match types.get(ty) {
        Type::Bytes { .. } => true,
        Type::Array { element, .. } => *element == TypeTable::U8,
        _ => false,
    }
}

/// The slot, index and value of a store of an element.
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

/// A word, shifted by bytes.
fn shift(unrolled: &mut Unrolled<'_>, op: BinaryOp, word: Value, bytes: usize) -> Value {
    if bytes == 0 {
        return word;
    }
    let count = unrolled.constant(TypeTable::U64, 8 * bytes as i128);
    binary(unrolled, TypeTable::U64, op, word, count)
}
