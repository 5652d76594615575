//! The frame of an instance as a C structure: the members that hold what survives its waits, with their layout.

use super::plan::{End, Plan, ProcessPlan, shared_name};
use super::storage::ValueStorage;
use crate::layout::{Extent, View, structure, union};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// A member of a frame.
pub(crate) struct Member {
    pub(crate) text: String,
    pub(crate) extent: Extent,
}

impl Member {
    fn typed(plan: &Plan<'_>, ty: TypeId, name: &str) -> Member {
        let text = format!("{} {name};", plan.types[ty.0 as usize]);
        Member { text, extent: plan.layouts.extent(ty, View::Program) }
    }

    /// An array of `count` unsigned integers of this size.
    fn words(count: usize, name: &str, bytes: u64) -> Member {
        let extent = Extent { size: bytes * count as u64, align: bytes };
        Member { text: format!("uint{}_t {name};", bytes * 8), extent }
    }
}

/// The members of a process's frame.
pub(crate) fn frame_members(plan: &Plan<'_>, index: usize) -> Vec<Member> {
    let process = &plan.processes[index];
    let mut members = value_members(plan, index);
    members.extend(slot_members(plan, index));
    members.extend(wait_members(process));
    members.extend(park_member(plan, index));
    // Small ones first: they are used most, and machines address the beginning of a structure by shorter instructions.
    members.sort_by_key(|member| member.extent.size);
    members
}

fn value_members(plan: &Plan<'_>, index: usize) -> Vec<Member> {
    let body = &plan.program.processes[index].body;
    let mut classes = BTreeSet::new();
    let framed = plan.processes[index].storage.values.iter().filter_map(|storage| match storage {
        ValueStorage::Frame(class) => classes.insert(*class).then_some(*class),
        ValueStorage::Local(_) | ValueStorage::Constant(_) | ValueStorage::OwnId => None,
    });
    framed.map(|class| Member::typed(plan, body.values[class.0 as usize].ty, &plan.version(body, class))).collect()
}

/// Slots in the frame; those with one address are a union.
fn slot_members(plan: &Plan<'_>, index: usize) -> Vec<Member> {
    let (storage, body) = (&plan.processes[index].storage, &plan.program.processes[index].body);
    let colouring = &storage.colouring;
    let mut members = Vec::new();
    for slot in (0..body.slots.len() as u32).map(SlotId) {
        if !storage.is_framed(slot) || colouring.inside.contains_key(&slot) {
            continue;
        }
        let Some(group) = colouring.group(slot) else {
            members.push(slot_member(plan, index, slot));
            continue;
        };
        let shared = &colouring.shared[group];
        if shared[0] == slot {
            let shared: Vec<Member> = shared.iter().map(|slot| slot_member(plan, index, *slot)).collect();
            let extents: Vec<Extent> = shared.iter().map(|member| member.extent).collect();
            let lines: String = shared.iter().map(|member| format!("        {}\n", member.text)).collect();
            let text = format!("union {{\n{lines}    }} {};", shared_name(group));
            members.push(Member { text, extent: union(&extents) });
        }
    }
    members
}

/// A slot, with a comment that names the slots inside it.
fn slot_member(plan: &Plan<'_>, index: usize, slot: SlotId) -> Member {
    let (storage, body) = (&plan.processes[index].storage, &plan.program.processes[index].body);
    let mut member = Member::typed(plan, body.slots[slot.0 as usize].ty, &plan.slot_name(body, slot));
    let inside = storage.colouring.inside.iter().filter(|(_, place)| place.base == Base::Slot(slot));
    let inside: Vec<String> = inside.map(|(slot, _)| plan.slot_name(body, *slot)).collect();
    if !inside.is_empty() {
        member.text += &format!(" /* contains {} */", inside.join(", "));
    }
    member
}

/// What waits store: arrival stamp, deadlines, open branches, the branch at which the next search begins.
fn wait_members(process: &ProcessPlan) -> Vec<Member> {
    let mut members = Vec::new();
    if process.waits.iter().any(|wait| wait.has_arrival_stamp) {
        members.push(Member::words(1, "stamp", 8));
    }
    if process.deadlines > 0 {
        members.push(Member {
            text: format!("esp_time deadline[{}];", process.deadlines),
            extent: Extent { size: 8 * process.deadlines as u64, align: 8 },
        });
    }
    if process.mask_words > 0 {
        members.push(Member::words(process.mask_words, &format!("open[{}]", process.mask_words), 4));
    }
    let rotating = process.waits.iter().filter(|wait| wait.rotates);
    members.extend(rotating.map(|wait| Member::words(1, &format!("next{}", wait.block.0), 4)));
    members
}

/// The union of what each branch parks: operands `v`, received parameters `p`, locals of a paused path `s`.
fn park_member(plan: &Plan<'_>, process: usize) -> Option<Member> {
    let body = &plan.program.processes[process].body;
    let (mut lines, mut extents) = (String::new(), Vec::new());
    let waits = 0..plan.processes[process].waits.len();
    for end in waits.flat_map(|wait| plan.ends(process, wait)) {
        let parked = parked_values(plan, end);
        if parked.is_empty() {
            continue;
        }
        let ty = |value: &Value| body.values[value.0 as usize].ty;
        let fields: String =
            parked.iter().map(|(name, value)| format!(" {} {name};", plan.types[ty(value).0 as usize])).collect();
        lines += &format!("        struct {{{fields} }} {};\n", plan.park_name(end));
        let members: Vec<Extent> =
            parked.iter().map(|(_, value)| plan.layouts.extent(ty(value), View::Program)).collect();
        extents.push(structure(&members).0);
    }
    (!lines.is_empty()).then(|| Member { text: format!("union {{\n{lines}    }} park;"), extent: union(&extents) })
}

fn parked_values(plan: &Plan<'_>, end: End) -> Vec<(String, Value)> {
    let branch = plan.branch_plan(end);
    let payload = branch.parked_payload.iter().map(|(number, value)| (format!("v{number}"), *value));
    let parameters = branch.parked_parameters.iter().map(|value| (format!("p{}", value.0), *value));
    let paused = branch.paused.iter().map(|value| (format!("s{}", value.0), *value));
    payload.chain(parameters).chain(paused).collect()
}
