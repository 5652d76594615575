//! Packet layouts: widths, offsets and byte order of their fields (reference, section 3).

use super::names::Checker;
use super::types::Limits;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir;
use crate::span::Span;
use crate::types::{ByteOrder, TypeId, TypeTable};
use rustc_hash::FxHashMap;

/// Resolves the widths of a layout's fields.
pub(super) fn resolve_item(checker: &mut Checker, entry: usize) {
    let item = checker.layouts[entry].0;
    let mut fields: Vec<hir::LayoutField> = Vec::with_capacity(item.fields.len());
    let mut first_places: FxHashMap<&str, Span> = FxHashMap::default();
    let mut offset = 0u32;
    let mut whole = true;
    for field in &item.fields {
        let limits = Limits { what: "layout width", minimum: 1, maximum: 64 };
        let Some(width) = checker.constant_size(&field.width, limits) else {
            whole = false;
            continue;
        };
        let first = *first_places.entry(&field.name.text).or_insert(field.name.span);
        if first != field.name.span && !field.name.text.is_empty() {
            let message = format!("field `{}` is declared twice", field.name.text);
            let diagnostic = Diagnostic::new(Code::E0204, field.name.span, message).label(first, "first declared here");
            checker.report(diagnostic);
        }
        match field.order {
            ByteOrder::Big => {}
            ByteOrder::Little if matches!(width, 16 | 32 | 64) && offset.is_multiple_of(8) => {}
            ByteOrder::Little => {
                let message = format!("`{}` cannot be little-endian", field.name.text);
                let diagnostic = Diagnostic::new(Code::E0308, field.name.span, message)
                    .help("a `le` field has 16, 32 or 64 bits and begins on a byte");
                checker.report(diagnostic);
            }
        }
        fields.push(hir::LayoutField {
            name: field.name.text.clone(),
            offset_bits: offset,
            width_bits: width,
            order: field.order,
        });
        offset += width;
    }
    if whole && !offset.is_multiple_of(8) {
        let message = format!("layout `{}` has {offset} bits, not whole bytes", item.name.text);
        let missing = offset.next_multiple_of(8) - offset;
        let plural = if missing == 1 { "" } else { "s" };
        let help = format!("add a field of {missing} bit{plural}");
        checker.report(Diagnostic::new(Code::E0308, item.name.span, message).help(help));
    }
    let bytes = offset.div_ceil(8);
    checker.layouts[entry].1 = Some(hir::Layout { name: item.name.text.clone(), fields, bytes });
}

/// The type a layout field reads as: the smallest unsigned one that holds it.
pub(super) fn field_type(width_bits: u32) -> TypeId {
    match width_bits {
        0..=8 => TypeTable::U8,
        9..=16 => TypeTable::U16,
        17..=32 => TypeTable::U32,
        _ => TypeTable::U64,
    }
}
