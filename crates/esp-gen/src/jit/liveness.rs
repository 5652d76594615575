//! Liveness of values at each point of the emitted code: what an exit has to write back, and when a register is free.

use super::code_layout::{CodeLayout, Point, op_uses, terminator_uses, weighted_edges};
use super::value_forms::{ValueForm, ValueForms};
use quaject_esp_ir::dataflow::solve_backward;
use quaject_esp_ir::ir::{BlockId, Terminator, Value};
use quaject_esp_ir::sets::DenseSet;

/// Liveness of a body's values.
pub(super) struct Liveness {
    /// Per point: the values that are live before it.
    before: Vec<DenseSet>,
    /// Per point: the values that it reads.
    pub(super) uses: Vec<Vec<Value>>,
}

impl Liveness {
    pub(super) fn new(layout: &CodeLayout<'_>, values: &ValueForms) -> Liveness {
        let uses = uses(layout, values);
        let bound = layout.body.values.len();
        let mut at_start = vec![DenseSet::new(bound); layout.body.blocks.len()];
        solve_backward(layout.body, &layout.order, |block| {
            let live = walk(layout, &uses, &at_start, block, &mut |_, _| {});
            let has_changed = at_start[block.0 as usize] != live;
            at_start[block.0 as usize] = live;
            has_changed
        });
        let mut before = vec![DenseSet::default(); layout.points.len()];
        for block in &layout.order {
            walk(layout, &uses, &at_start, *block, &mut |point, set| before[point] = set.clone());
        }
        Liveness { before, uses }
    }

    pub(super) fn is_live(&self, point: Point, value: Value) -> bool {
        self.before[point].contains(value.0 as usize)
    }

    /// The values that are live before a point, in their order.
    pub(super) fn before(&self, point: Point) -> impl Iterator<Item = Value> + '_ {
        self.before[point].numbers().map(|number| Value(number as u32))
    }
}

/// Walks a block backwards. `visit` gets what is live before each point; the result is what is live at its start.
fn walk(
    layout: &CodeLayout<'_>,
    uses: &[Vec<Value>],
    at_start: &[DenseSet],
    block: BlockId,
    visit: &mut dyn FnMut(Point, &DenseSet),
) -> DenseSet {
    let body = layout.body;
    let mut live = DenseSet::new(body.values.len());
    for (to, arguments, _) in weighted_edges(body, block) {
        let parameters = &body.blocks[to.0 as usize].parameters;
        let mut there = at_start[to.0 as usize].clone();
        parameters.iter().for_each(|parameter| there.remove(parameter.0 as usize));
        live.add_all(&there);
        for (argument, parameter) in arguments.iter().zip(parameters) {
            if at_start[to.0 as usize].contains(parameter.0 as usize) {
                live.insert(argument.0 as usize);
            }
        }
    }
    let points = layout.points_of(block);
    for (index, point) in points.clone().enumerate().rev() {
        if let Some(instruction) = body.blocks[block.0 as usize].instructions.get(index)
            && let Some(result) = instruction.result
        {
            live.remove(result.0 as usize);
        }
        uses[point].iter().for_each(|value| live.insert(value.0 as usize));
        visit(point, &live);
    }
    live
}

/// Per point: the values that it reads. A fused comparison is read by its branch, not where it stands.
fn uses(layout: &CodeLayout<'_>, values: &ValueForms) -> Vec<Vec<Value>> {
    let body = layout.body;
    let mut uses = Vec::with_capacity(layout.points.len());
    for block in &layout.order {
        let code = &body.blocks[block.0 as usize];
        for instruction in &code.instructions {
            let is_fused = instruction
                .result
                .is_some_and(|result| matches!(values.forms[result.0 as usize], ValueForm::FusedCompare(..)));
            uses.push(if is_fused { Vec::new() } else { op_uses(&instruction.op) });
        }
        uses.push(match &code.terminator {
            Terminator::Branch { condition, .. } => match values.forms[condition.0 as usize] {
                ValueForm::FusedCompare(_, a, b) => vec![a, b],
                ValueForm::Computed | ValueForm::Constant(_) | ValueForm::Alias(_) | ValueForm::Truncated(_) => {
                    vec![*condition]
                }
            },
            terminator => terminator_uses(body, terminator),
        });
    }
    uses
}
