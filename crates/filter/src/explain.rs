//! Prints a classifier for `--explain`: the comparisons, hash functions and lists of each stage, and the code of each
//! chunk.

use crate::layout::{Layout, Window};
use crate::ranges::{Index, Ranges};
use crate::shape::{ShapeBase, ShapeField};
use crate::stage::{Chunk, Stage};
use std::fmt::Write as _;

/// Describes chunks; `count` returns how many filters a stage has.
pub(crate) fn explain(chunks: &[&Chunk], count: impl Fn(&Stage) -> usize) -> String {
    let mut text = String::new();
    for (number, chunk) in chunks.iter().enumerate() {
        let _ = writeln!(text, "chunk {number}");
        for (at, stage) in chunk.stages.iter().enumerate() {
            let filters = count(stage);
            let plural = if filters == 1 { "" } else { "s" };
            match stage {
                Stage::Group(data) => {
                    let _ = writeln!(text, "  stage {at}: {filters} filter{plural} of one shape");
                    layout(&mut text, &data.layout);
                    let hash = data.table.hash;
                    let slots = data.table.slot_count();
                    let _ = match (data.layout.key.is_empty(), hash.bucket_bits) {
                        (true, _) => writeln!(text, "    found    when all is as above"),
                        (false, None) if hash.part.is_some() => {
                            writeln!(
                                text,
                                "    hash     32 bits multiplied, top {} bits: {slots} slots",
                                hash.slot_bits
                            )
                        }
                        (false, None) => {
                            writeln!(text, "    hash     multiplied, top {} bits: {slots} slots", hash.slot_bits)
                        }
                        (false, Some(bits)) => {
                            let buckets = 1_u64 << bits;
                            writeln!(text, "    hash     displaced by one of {buckets} multipliers: {slots} slots")
                        }
                    };
                    if let Some(template) = &data.template {
                        let headers = if template.optionless.is_some() { ", of IPv4 headers of 20 bytes" } else { "" };
                        let start = template.start;
                        let _ = writeln!(text, "    template bytes from {start} on all at once{headers}");
                    }
                }
                Stage::Ranges(own) => {
                    let _ = writeln!(text, "  stage {at}: {filters} filter{plural} of ranges and prefixes");
                    ranges(&mut text, own);
                }
                Stage::Program(filter) => {
                    let _ = writeln!(text, "  stage {at}: a program that is run as it is");
                    for line in crate::bpf::Disassembly(&filter.program).to_string().lines() {
                        let _ = writeln!(text, "    {line}");
                    }
                }
            }
        }
        code(&mut text, chunk);
    }
    text
}

fn layout(text: &mut String, layout: &Layout) {
    for (at, place) in layout.shape.places.iter().enumerate() {
        let _ = writeln!(text, "    length   {}: {} bytes", base(at, place), place.need);
    }
    for constant in &layout.header {
        let _ =
            writeln!(text, "    compare  {} with {}", window(constant.window), bytes(constant.value, constant.window));
    }
    for (at, check) in layout.shape.checks.iter().enumerate() {
        let what = match check.number {
            Some(number) => format!("[b{} + {}:{}]", number.base, number.offset, number.width),
            None => "length".to_owned(),
        };
        let sense = match check.sense {
            crate::ir::Sense::Inside => "in",
            crate::ir::Sense::Outside => "not in",
        };
        let range = if layout.listed[at] {
            "the range of the filter".to_owned()
        } else {
            format!("{:#x}..={:#x}", layout.common.spans[at].low, layout.common.spans[at].high)
        };
        let _ = writeln!(text, "    check    {what} & {:#x} {sense} {range}", check.mask);
    }
    for own in &layout.key {
        let _ = writeln!(text, "    key      {}", window(*own));
    }
}

fn ranges(text: &mut String, own: &Ranges) {
    let what = |number: Option<ShapeField>| match number {
        Some(number) => format!("[b{} + {}:{}]", number.base, number.offset, number.width),
        None => "length".to_owned(),
    };
    for (at, place) in own.places.iter().enumerate().filter(|(_, place)| !place.terms.is_empty()) {
        let _ = writeln!(text, "    base     {}", base(at, place));
    }
    for fixed in &own.fixed {
        let (low, high) = (fixed.low, fixed.high);
        let _ = writeln!(text, "    check    {} & {:#x} in {low:#x}..={high:#x}", what(fixed.number), fixed.mask);
    }
    for (at, axis) in own.axes.iter().enumerate() {
        let _ = writeln!(text, "    axis     {at}: rows of {} bytes together", 8 * axis.rows.len());
        for dimension in &axis.dimensions {
            let Index { root, steps, .. } = &dimension.index;
            let _ = writeln!(
                text,
                "    index    {} & {:#x}: {} intervals, found from {} cells in {steps} comparisons",
                what(dimension.number),
                dimension.mask,
                dimension.index.intervals(),
                root.len()
            );
        }
    }
    if let Some(tree) = &own.tree {
        let (boxes, cells, nodes, lists) = tree.sizes();
        let _ = writeln!(
            text,
            "    tree     {boxes} boxes, {cells} cells of the root, {nodes} words of nodes, {lists} of lists; else, and for all that match:"
        );
    }
    let blocks = own.words / own.block_words;
    let _ = writeln!(text, "    and      {blocks} blocks of {} words, those with bits in all axes", own.block_words);
}

fn base(at: usize, place: &ShapeBase) -> String {
    if place.terms.is_empty() {
        return "b0 = start".to_owned();
    }
    let part = |part: &crate::shape::ShapeTerm| {
        let sign = if part.shift < 0 { ">>" } else { "<<" };
        let number = part.number;
        let by = part.shift.unsigned_abs();
        format!("([b{} + {}:{}] & {:#x}) {sign} {by}", number.base, number.offset, number.width, part.mask)
    };
    format!("b{at} = {}", place.terms.iter().map(part).collect::<Vec<_>>().join(" + "))
}

fn window(window: Window) -> String {
    let place = format!("[b{} + {}:{}]", window.base, window.offset, window.width);
    if window.mask == window.full() { place } else { format!("{place} & {}", bytes(window.mask, window)) }
}

/// The bytes of a number as they are in the packet.
fn bytes(number: u64, window: Window) -> String {
    let all = number.to_ne_bytes();
    let width = usize::from(window.width);
    let own = if cfg!(target_endian = "little") { &all[..width] } else { &all[8 - width..] };
    own.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn code(text: &mut String, chunk: &Chunk) {
    match &chunk.code {
        Some(code) => code.write_listing(text),
        None => {
            let _ = writeln!(text, "  code     none: it is interpreted");
        }
    }
}
