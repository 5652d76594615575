//! The layout of a lookup among the filters of one shape: the bytes that are equal in all filters and are compared with
//! constants, the bytes that vary and form the key, and the widths of the loads. A load may read bytes that no filter
//! tests, but only within the length that the shape requires.

use crate::packet::Packet;
use crate::shape::{Byte, Shape, ShapeBase, ShapeField, Span, Values};

/// A load of 1, 2, 4 or 8 bytes in the machine's byte order, and its mask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Window {
    pub(crate) base: u16,
    pub(crate) offset: u32,
    pub(crate) width: u8,
    pub(crate) mask: u64,
}

impl Window {
    /// All bits it could load.
    pub(crate) fn full(self) -> u64 {
        u64::MAX >> (64 - 8 * u32::from(self.width))
    }

    /// The bit position of the byte at an offset within the loaded number.
    fn place(self, offset: u32) -> Option<u32> {
        let at = offset.checked_sub(self.offset).filter(|at| *at < u32::from(self.width))?;
        Some(8 * if cfg!(target_endian = "little") { at } else { u32::from(self.width) - 1 - at })
    }
}

/// A window and its required value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Constant {
    pub(crate) window: Window,
    pub(crate) value: u64,
}

/// The layout of a lookup among filters of one shape.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) shape: Shape,
    /// The values of bytes and checks that do not vary.
    pub(crate) common: Values,
    /// For each byte of the shape, whether it is part of the key.
    pub(crate) varying: Vec<bool>,
    /// For each check of the shape, whether filters differ in its range.
    pub(crate) listed: Vec<bool>,
    /// The windows that are compared first.
    pub(crate) header: Vec<Constant>,
    /// The windows that form the key, one word each.
    pub(crate) key: Vec<Window>,
}

impl Layout {
    /// The layout for filters with `common` values, except the bytes of `varying` and the checks of `listed`.
    pub(crate) fn new(shape: &Shape, common: Values, varying: Vec<bool>, listed: Vec<bool>) -> Layout {
        let pick = |wanted: bool| -> Vec<Byte> {
            let chosen = shape.bytes.iter().zip(&varying).filter(|(_, varying)| **varying == wanted);
            chosen.map(|(byte, _)| *byte).collect()
        };
        let header = constants(&pick(false), shape, &common, &shape.places);
        let key = cover(&pick(true), &shape.places, Purpose::Key);
        Layout { shape: shape.clone(), common, varying, listed, header, key }
    }

    /// Whether filters with one key differ in ranges, so that each key has a list.
    pub(crate) fn has_lists(&self) -> bool {
        self.listed.contains(&true)
    }

    /// Whether a filter with these values differs from the layout's constants.
    pub(crate) fn differs(&self, values: &Values) -> bool {
        let bytes = self.common.bytes.iter().zip(&values.bytes).zip(&self.varying);
        let mut spans = self.common.spans.iter().zip(&values.spans).zip(&self.listed);
        bytes.into_iter().any(|((own, other), varying)| !varying && own != other)
            || spans.any(|((own, other), listed)| !listed && own != other)
    }

    /// The key of a filter.
    pub(crate) fn key_of(&self, bytes: &[u8]) -> Vec<u64> {
        self.key.iter().map(|window| word(*window, &self.shape.bytes, bytes)).collect()
    }

    /// The values of a filter with this key and these ranges of varying checks.
    pub(crate) fn values_of(&self, key: &[u64], spans: &[Span]) -> Values {
        let mut values = self.common.clone();
        for (window, word) in self.key.iter().zip(key) {
            for (at, byte) in self.shape.bytes.iter().enumerate() {
                if self.varying[at]
                    && byte.base == window.base
                    && let Some(bits) = window.place(byte.offset)
                    // Windows may overlap; each byte counts in one.
                    && (window.mask >> bits) as u8 != 0
                {
                    values.bytes[at] = (word >> bits) as u8 & byte.mask;
                }
            }
        }
        let listed = values.spans.iter_mut().zip(&self.listed).filter(|(_, listed)| **listed);
        for ((own, _), span) in listed.zip(spans) {
            *own = *span;
        }
        values
    }

    /// The ranges of varying checks.
    pub(crate) fn spans_of(&self, spans: &[Span]) -> Vec<Span> {
        spans.iter().zip(&self.listed).filter(|(_, listed)| **listed).map(|(span, _)| *span).collect()
    }

    /// Computes the bases of a packet; `None` if the packet is too short for the shape.
    pub(crate) fn bases(&self, packet: Packet<'_>, bases: &mut Vec<u64>) -> Option<()> {
        bases.clear();
        for place in &self.shape.places {
            let mut at = 0_u64;
            for part in &place.terms {
                at = at.saturating_add(part.moved(number(packet, bases, part.number)?));
            }
            if at.saturating_add(place.need) > u64::from(packet.length) {
                return None;
            }
            bases.push(at);
        }
        Some(())
    }

    /// The key of a packet if it passes the constants and checks: the interpreter of the generated lookup.
    pub(crate) fn key_in(&self, packet: Packet<'_>, bases: &mut Vec<u64>, key: &mut Vec<u64>) -> Option<()> {
        self.bases(packet, bases)?;
        for constant in &self.header {
            if read(packet, bases, constant.window)? != constant.value {
                return None;
            }
        }
        for (at, check) in self.shape.checks.iter().enumerate().filter(|(at, _)| !self.listed[*at]) {
            let number = check_number(packet, bases, check.number)?;
            if !accepts(check, self.common.spans[at], number) {
                return None;
            }
        }
        key.clear();
        for window in &self.key {
            key.push(read(packet, bases, *window)?);
        }
        Some(())
    }

    /// Whether the varying checks hold for these ranges.
    pub(crate) fn passes(&self, packet: Packet<'_>, bases: &[u64], spans: &[Span]) -> bool {
        let checks = self.shape.checks.iter().zip(&self.listed).filter(|(_, listed)| **listed);
        checks.zip(spans).all(|((check, _), span)| {
            check_number(packet, bases, check.number).is_some_and(|number| accepts(check, *span, number))
        })
    }
}

/// Whether a check with this range holds for a number.
fn accepts(check: &crate::shape::Check, span: Span, number: u32) -> bool {
    let inside = (span.low..=span.high).contains(&(number & check.mask));
    inside == (check.sense == crate::ir::Sense::Inside)
}

fn number(packet: Packet<'_>, bases: &[u64], number: ShapeField) -> Option<u32> {
    packet.load(bases[usize::from(number.base)].saturating_add(number.offset.into()), u32::from(number.width))
}

fn check_number(packet: Packet<'_>, bases: &[u64], wanted: Option<ShapeField>) -> Option<u32> {
    match wanted {
        Some(wanted) => number(packet, bases, wanted),
        None => Some(packet.wire_length()),
    }
}

/// The masked value of a window.
fn read(packet: Packet<'_>, bases: &[u64], window: Window) -> Option<u64> {
    let start = usize::try_from(bases[usize::from(window.base)]).ok()?.checked_add(window.offset as usize)?;
    let bytes = packet.data().get(start..start.checked_add(usize::from(window.width))?)?;
    let mut word = [0_u8; 8];
    let at = if cfg!(target_endian = "little") { 0 } else { 8 - bytes.len() };
    word[at..at + bytes.len()].copy_from_slice(bytes);
    Some(u64::from_ne_bytes(word) & window.mask)
}

/// The value of a window on these bytes.
fn word(window: Window, bytes: &[Byte], values: &[u8]) -> u64 {
    let mut word = 0;
    for (byte, value) in bytes.iter().zip(values) {
        if byte.base == window.base
            && let Some(bits) = window.place(byte.offset)
        {
            word |= u64::from(*value) << bits;
        }
    }
    word & window.mask
}

/// Windows on bytes that are the same for all filters, with their values.
pub(crate) fn constants(bytes: &[Byte], shape: &Shape, common: &Values, places: &[ShapeBase]) -> Vec<Constant> {
    let windows = cover(bytes, places, Purpose::Header);
    windows.into_iter().map(|window| Constant { window, value: word(window, &shape.bytes, &common.bytes) }).collect()
}

/// The purpose of windows, which determines the cost of each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Purpose {
    /// Compared with constants.
    Header,
    /// Hashed and compared with the table.
    Key,
}

/// The cheapest windows that cover all of these sorted bytes, by number of instructions (dynamic programming).
pub(crate) fn cover(bytes: &[Byte], places: &[ShapeBase], purpose: Purpose) -> Vec<Window> {
    // Best cost and window from each byte on, from the last to the first.
    let mut best: Vec<(u32, Option<(Window, usize)>)> = vec![(0, None); bytes.len() + 1];
    for from in (0..bytes.len()).rev() {
        let first = bytes[from];
        let need = places[usize::from(first.base)].need;
        let mut chosen = (u32::MAX, None);
        for width in [8_u8, 4, 2, 1] {
            let Some(last_start) = need.checked_sub(u64::from(width)) else { continue };
            let offset = u32::try_from(last_start).unwrap_or(u32::MAX).min(first.offset);
            let mut window = Window { base: first.base, offset, width, mask: 0 };
            let mut next = from;
            while let Some(byte) = bytes.get(next).filter(|byte| byte.base == first.base)
                && let Some(bits) = window.place(byte.offset)
            {
                window.mask |= u64::from(byte.mask) << bits;
                next += 1;
            }
            let wide = u32::from(width == 8);
            let masking = if window.mask == window.full() { 0 } else { 1 + wide };
            let cost = match purpose {
                Purpose::Header => 3 + wide + masking,
                Purpose::Key => 8 + masking,
            };
            let cost = cost + best[next].0;
            if cost < chosen.0 {
                chosen = (cost, Some((window, next)));
            }
        }
        best[from] = chosen;
    }
    let mut windows = Vec::new();
    let mut at = 0;
    while let Some((window, next)) = best[at].1 {
        windows.push(window);
        at = next;
    }
    windows
}
