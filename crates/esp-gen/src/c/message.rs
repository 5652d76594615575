//! Messages: filling the view of a message that was computed on arrival, binding the parts of a received message, and
//! ending the counts that a sender gives away. Knows nothing of scheduling.

use super::helpers::{Depth, Helper};
use super::pattern::{Counting, MessagePart, bind_part, binds, message_parts};
use super::plan::End;
use super::values::Lvalue;
use super::writer::{Writer, line};
use crate::layout::View;
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// Where the values of a message computed on arrival are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Still in locals.
    Local,
    /// Parked in the frame of the waiting instance.
    Parked,
}

/// Fills a channel's view with a message computed on arrival.
pub(crate) fn ready_message(code: &mut Writer<'_, '_>, end: End, parts: &[Passed], to: &str, source: Source) {
    let plan = code.plan;
    let parked: BTreeSet<usize> = plan.branch_plan(end).parked_payload.iter().map(|(index, _)| *index).collect();
    let mut moved = 0u64;
    let mut holds_boxes = false;
    for (index, part) in parts.iter().enumerate() {
        let value = code.operand(&part.operand, Location::default());
        let boxes = plan.layouts.has_boxes(value.ty);
        holds_boxes |= boxes;
        if part.transfer == Transfer::Move && boxes {
            moved |= 1 << index;
        }
        let address = if code.is_passed_by_value(value.ty) { "" } else { "&" };
        let text = match source {
            Source::Parked if parked.contains(&index) => {
                format!("{}park.{}.v{index}", plan.frame(end.process), plan.park_name(end))
            }
            Source::Parked | Source::Local => value.text,
        };
        line!(code, "{to}v{index} = {address}{text};");
    }
    if holds_boxes {
        line!(code, "{to}moved = {moved}u;");
    }
}

/// The condition under which a filled message refers to an object without a count, and the number of that fault.
pub(crate) fn dead_message(
    code: &Writer<'_, '_>,
    end: End,
    channel: usize,
    message: &str,
    depth: Depth,
) -> Option<(String, usize)> {
    let values: Vec<Lvalue> = message_parts(code, channel, message, View::Program)
        .into_iter()
        .map(|part| Lvalue { text: part.text, ty: part.ty })
        .collect();
    let dead = code.dead(&values, depth)?;
    let location = code.plan.branch(end).location;
    Some((dead, code.faults.number(Fault::Memory, location, Some(ChannelId(channel as u32)))))
}

/// Ends the sender's counts on what it has moved.
pub(crate) fn release_moved(code: &mut Writer<'_, '_>, channel: usize, message: &str) {
    for (index, part) in message_parts(code, channel, message, View::Program).iter().enumerate() {
        if code.plan.layouts.has_boxes(part.ty) {
            code.block(&format!("if (({message}.moved >> {index} & 1u) != 0u) {{"), |code| {
                code.count(Helper::Release, &Lvalue { text: part.text.clone(), ty: part.ty });
            });
        }
    }
}

/// Where received values are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BindTo {
    /// Values whose storage is a local: parked in the frame until the instance continues.
    Parked,
    /// Their storage.
    Storage,
}

/// Binds the parts of a message to the parameters and slots of a branch's patterns.
pub(crate) fn bind_message(
    code: &mut Writer<'_, '_>,
    end: End,
    patterns: &[Pattern],
    message: &[MessagePart],
    bind_to: BindTo,
) {
    let plan = code.plan;
    let branch = plan.branch(end);
    for (bind, part) in binds(code, patterns, message) {
        let to = match bind {
            Bind::Parameter(index) => {
                let value = code.body().blocks[branch.then.0 as usize].parameters[index as usize];
                let is_parked = plan.branch_plan(end).parked_parameters.contains(&value);
                let text = match (is_parked, bind_to) {
                    (true, BindTo::Parked) => {
                        format!("{}park.{}.p{}", plan.frame(end.process), plan.park_name(end), value.0)
                    }
                    (true, BindTo::Storage) | (false, BindTo::Parked | BindTo::Storage) => code.value(value),
                };
                Lvalue { text, ty: code.value_type(value) }
            }
            Bind::Slot(slot) => Lvalue { text: code.slot(slot), ty: code.body().slots[slot.0 as usize].ty },
        };
        if part.view == View::Program
            && let Some(dead) = code.dead(&[Lvalue { text: part.text.clone(), ty: part.ty }], Depth::Direct)
        {
            let (Operation::In { channel, .. } | Operation::Out { channel, .. }) = &branch.operation else {
                unreachable!("a message is received on a channel")
            };
            let number = code.faults.number(Fault::Memory, branch.location, Some(*channel));
            let raise = code.raise_number(&number.to_string());
            line!(code, "if (ESP_UNLIKELY({dead})) {raise}");
        }
        bind_part(code, &to, &part, Counting::Counted);
    }
}

/// A condition that faulted counts as a match: it faults once the branch is chosen.
pub(crate) fn raise_condition_fault(code: &mut Writer<'_, '_>, end: End) {
    if let Operation::In { condition: Some(_), .. } = &code.plan.branch(end).operation {
        let raise = code.raise_number("r_");
        line!(code, "if (ESP_UNLIKELY(r_ > 1u)) {raise}");
    }
}
