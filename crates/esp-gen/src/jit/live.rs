//! Which values matter at each point, so that leaving there writes them back and no register is given away too early.

use super::flow::{Flow, Point, edges, op_uses, terminator_uses};
use super::values::{Form, Values};
use quaject_esp_ir::ir::{BlockId, Terminator, Value};

/// A set of values.
type Set = Vec<u64>;

fn insert(set: &mut Set, value: Value) {
    set[value.0 as usize / 64] |= 1 << (value.0 % 64);
}

fn remove(set: &mut Set, value: Value) {
    set[value.0 as usize / 64] &= !(1 << (value.0 % 64));
}

fn contains(set: &[u64], value: Value) -> bool {
    set[value.0 as usize / 64] >> (value.0 % 64) & 1 == 1
}

/// Liveness of a body's values.
pub(super) struct Live {
    /// A row of bits per point, one per value. Lists of values are shorter for most processes, but grow with the square
    /// of a process's size for some.
    before: Vec<u64>,
    /// Of a row.
    words: usize,
    /// Per point: what it reads.
    pub(super) uses: Vec<Vec<Value>>,
}

impl Live {
    pub(super) fn new(flow: &Flow<'_>, values: &Values) -> Live {
        let uses = uses(flow, values);
        let words = flow.body.values.len().div_ceil(64);
        let mut at_start = vec![vec![0u64; words]; flow.body.blocks.len()];
        let mut before = vec![0; words * flow.points.len()];
        let mut changed = true;
        while changed {
            changed = false;
            for block in flow.order.iter().rev() {
                let live = walk(flow, &uses, &at_start, *block, &mut |_, _| {});
                changed |= at_start[block.0 as usize] != live;
                at_start[block.0 as usize] = live;
            }
        }
        for block in &flow.order {
            walk(flow, &uses, &at_start, *block, &mut |point, set| {
                before[point * words..][..words].copy_from_slice(set);
            });
        }
        Live { before, words, uses }
    }

    pub(super) fn is_live(&self, point: Point, value: Value) -> bool {
        contains(self.row(point), value)
    }

    /// The values that matter before a point, in their order.
    pub(super) fn before(&self, point: Point) -> impl Iterator<Item = Value> + '_ {
        self.row(point).iter().enumerate().flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                (bit < 64).then(|| {
                    rest &= rest - 1;
                    Value(index as u32 * 64 + bit)
                })
            })
        })
    }

    fn row(&self, point: Point) -> &[u64] {
        &self.before[point * self.words..][..self.words]
    }
}

/// Goes backwards over a block; returns what is live at its start.
fn walk(
    flow: &Flow<'_>,
    uses: &[Vec<Value>],
    at_start: &[Set],
    block: BlockId,
    visit: &mut dyn FnMut(Point, &Set),
) -> Set {
    let body = flow.body;
    let mut live = vec![0u64; body.values.len().div_ceil(64)];
    for (to, arguments, _) in edges(body, block) {
        let parameters = &body.blocks[to.0 as usize].parameters;
        let mut there = at_start[to.0 as usize].clone();
        parameters.iter().for_each(|parameter| remove(&mut there, *parameter));
        live.iter_mut().zip(&there).for_each(|(live, there)| *live |= there);
        for (argument, parameter) in arguments.iter().zip(parameters) {
            if contains(&at_start[to.0 as usize], *parameter) {
                insert(&mut live, *argument);
            }
        }
    }
    let points = flow.points_of(block);
    for (index, point) in points.clone().enumerate().rev() {
        if let Some(instruction) = body.blocks[block.0 as usize].instructions.get(index)
            && let Some(result) = instruction.result
        {
            remove(&mut live, result);
        }
        uses[point].iter().for_each(|value| insert(&mut live, *value));
        visit(point, &live);
    }
    live
}

/// Per point: what it reads. A branch that compares reads what it compares; the comparison before it reads nothing.
fn uses(flow: &Flow<'_>, values: &Values) -> Vec<Vec<Value>> {
    let body = flow.body;
    let mut uses = Vec::with_capacity(flow.points.len());
    for block in &flow.order {
        let code = &body.blocks[block.0 as usize];
        for instruction in &code.instructions {
            let is_compared =
                instruction.result.is_some_and(|result| matches!(values.forms[result.0 as usize], Form::Compared(..)));
            uses.push(if is_compared { Vec::new() } else { op_uses(&instruction.op) });
        }
        uses.push(match &code.terminator {
            Terminator::Branch { condition, .. } => match values.forms[condition.0 as usize] {
                Form::Compared(_, a, b) => vec![a, b],
                Form::Own | Form::Constant(_) | Form::Same(_) | Form::Low(_) => vec![*condition],
            },
            terminator => terminator_uses(body, terminator),
        });
    }
    uses
}
