//! Interprocedural value ranges: the intervals of all values of all processes, through internal channels. An integer
//! that a message carries has the join of the senders' intervals. A fast path therefore starts with more facts than one
//! body yields. Flow-insensitive across processes.

use crate::facts::Fact;
use quaject_esp_ir::intervals::{Intervals, intervals_of_receiver};
use quaject_esp_ir::ir::{
    Bind, Boundary, Branch, Operand, Operation, Pattern, Payload, Program, Type, TypeId, TypeTable, Value,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// The visit of a process at which the growing intervals of its messages are widened to their types.
const MAX_VISITS: u32 = 4;

/// Per channel, per part of its messages: the join of what is sent; none before the first send.
type Sent = Vec<Vec<Option<Fact>>>;

/// Per process, per value: the fact that always holds; none for values that are never computed.
pub(crate) fn ranges_of_processes(program: &Program, checked: bool) -> Vec<Vec<Option<Fact>>> {
    let types = &program.types;
    let mut sent: Sent = program.channels.iter().map(|channel| vec![None; channel.payload.len()]).collect();
    let mut found: Vec<Option<Intervals>> = program.processes.iter().map(|_| None).collect();
    let mut visits = vec![0; program.processes.len()];
    let mut worklist: BTreeSet<usize> = (0..program.processes.len()).collect();
    while let Some(process) = worklist.pop_first() {
        visits[process] += 1;
        let is_last = visits[process] == MAX_VISITS;
        let received = if is_last { FxHashMap::default() } else { received(program, process, &sent) };
        let ranges = intervals_of_receiver(&program.processes[process].body, types, checked, &received);
        for (block, branch) in branches(program, process) {
            let Operation::Out { channel, payload, .. } = &branch.operation else { continue };
            let channel = channel.0 as usize;
            let mut has_grown = false;
            for (position, (part, ty)) in sent[channel].iter_mut().zip(&program.channels[channel].payload).enumerate() {
                let of_type = Fact::of_type(types, *ty);
                let fact = match payload {
                    Payload::Ready(passed) => match &passed[position].operand {
                        Operand::Value(value) if is_integer(types, *ty) => ranges.at(block, *value).cloned(),
                        Operand::Value(_) | Operand::Place(_) => Some(of_type.clone()),
                    },
                    Payload::Region(_) => Some(of_type.clone()),
                };
                has_grown |= fact.is_some_and(|fact| join_into(part, &fact));
            }
            if has_grown {
                let is_open = |reader: &usize| visits[*reader] < MAX_VISITS && receives(program, *reader, channel);
                worklist.extend((0..program.processes.len()).filter(is_open));
            }
        }
        found[process] = Some(ranges);
    }
    found.into_iter().map(|ranges| ranges.map_or_else(Vec::new, Intervals::into_facts)).collect()
}

/// Joins a sent fact into a part of a message; whether the part has grown.
fn join_into(part: &mut Option<Fact>, sent: &Fact) -> bool {
    let (low, high) = part.as_ref().map_or((sent.low, sent.high), |part| (part.low, part.high));
    let joined = Fact::between(low.min(sent.low), high.max(sent.high));
    let has_grown = part.as_ref() != Some(&joined);
    *part = Some(joined);
    has_grown
}

fn is_integer(types: &TypeTable, ty: TypeId) -> bool {
    matches!(types.get(ty), Type::Int(_))
}

/// The branches of a process's waits, with their blocks.
fn branches(program: &Program, process: usize) -> impl Iterator<Item = (usize, &Branch)> {
    let blocks = program.processes[process].body.blocks.iter().enumerate();
    blocks.flat_map(|(block, data)| {
        let branches = data.terminator.as_wait().into_iter().flat_map(|wait| &wait.branches);
        branches.map(move |branch| (block, branch))
    })
}

fn receives(program: &Program, process: usize, channel: usize) -> bool {
    let is_here = |branch: &Branch| match &branch.operation {
        Operation::In { channel: from, .. } => from.0 as usize == channel,
        Operation::Out { .. } | Operation::After { .. } => false,
    };
    branches(program, process).any(|(_, branch)| is_here(branch))
}

/// The values that a process receives on internal channels, and their facts; no fact before the first send. Values from
/// the environment are absent.
fn received(program: &Program, process: usize, sent: &Sent) -> FxHashMap<Value, Option<Fact>> {
    let body = &program.processes[process].body;
    let mut received: FxHashMap<Value, Option<Fact>> = FxHashMap::default();
    let mut others = Vec::new();
    for (_, branch) in branches(program, process) {
        let parameters = &body.blocks[branch.then.0 as usize].parameters;
        let mut known = FxHashMap::default();
        if let Operation::In { channel, patterns, .. } = &branch.operation {
            let data = &program.channels[channel.0 as usize];
            for ((pattern, fact), ty) in patterns.iter().zip(&sent[channel.0 as usize]).zip(&data.payload) {
                if let Pattern::Bind(Bind::Parameter(number)) = pattern
                    && data.boundary == Boundary::Internal
                    && is_integer(&program.types, *ty)
                {
                    known.insert(parameters[*number as usize], fact);
                }
            }
        }
        others.extend(parameters.iter().filter(|parameter| !known.contains_key(parameter)));
        for (value, fact) in known {
            let part = received.entry(value).or_default();
            fact.iter().for_each(|fact| _ = join_into(part, fact));
        }
    }
    // Another kind of message binds these as well.
    others.into_iter().for_each(|value| _ = received.remove(value));
    received
}

#[cfg(test)]
mod tests {
    use super::*;
    use quaject_test_environment::compile;
    use std::path::Path;

    /// The interval of all values of this name in a process.
    fn known(text: &str, process: &str, name: &str) -> (i128, i128) {
        let program = compile(Path::new("p.esp"), text);
        let ranges = ranges_of_processes(&program, false);
        let index = program.processes.iter().position(|data| data.name == process).expect("it has the process");
        let values = &program.processes[index].body.values;
        let facts = values.iter().zip(&ranges[index]).filter(|(value, _)| value.name.as_deref() == Some(name));
        let facts: Vec<&Fact> = facts.filter_map(|(_, fact)| fact.as_ref()).collect();
        let (low, high) = (facts.iter().map(|fact| fact.low).min(), facts.iter().map(|fact| fact.high).max());
        (low.expect("it has the value"), high.expect("it has the value"))
    }

    const INT_RANGE: (i128, i128) = (i32::MIN as i128, i32::MAX as i128);

    /// The reader precedes its writer, so that it is first analysed without a send.
    #[test]
    fn a_received_value_has_the_range_of_the_sent_ones() {
        let text = "channel aC(int); channel bC(int); channel endC(int) external in;
            process last { var last = 0; while { in(bC, $n); if (n == -1) break; last = n; } out(endC, last); }
            process pass { while { in(aC, $m); if (m == -1) break; out(bC, m ^ 3); } out(bC, -1); }
            process read { for i in 0..200 { out(aC, i % 100); } out(aC, -1); }";
        assert_eq!(known(text, "pass", "m"), (-1, 99));
        assert_eq!(known(text, "last", "n"), (-1, 127));
        assert_eq!(known(text, "last", "last"), (0, 127));
    }

    #[test]
    fn the_ranges_of_several_senders_are_joined() {
        let text = "channel aC(int); channel endC(int) external in;
            process read { in(aC, $n); in(aC, $m); out(endC, n + m); }
            process low { out(aC, 3); }
            process high { out(aC, 5); }";
        assert_eq!(known(text, "read", "n"), (3, 5));
    }

    /// A counter that two processes pass to each other forever, and a value from the environment.
    #[test]
    fn an_unbounded_value_has_the_range_of_its_type() {
        let text = "channel thereC(int); channel backC(int);
            process up { var n = 0; while { out(thereC, n); in(backC, n); } }
            process down { while { in(thereC, $m); out(backC, m + 1); } }";
        assert_eq!(known(text, "down", "m"), INT_RANGE);
        let text = "channel inputC(int) external out; channel outputC(int) external in;
            process pass { while { in(inputC, $n); out(outputC, n); } }";
        assert_eq!(known(text, "pass", "n"), INT_RANGE);
    }

    /// Branches of one `alt` that receive on an internal channel and from the environment.
    #[test]
    fn each_branch_has_the_range_of_its_channel() {
        let text = "channel aC(int); channel outerC(int) external out; channel endC(int) external in;
            process read { alt { in(aC, $n) { out(endC, n); } in(outerC, $m) { out(endC, m); } } }
            process write { out(aC, 7); }";
        assert_eq!(known(text, "read", "n"), (7, 7));
        assert_eq!(known(text, "read", "m"), INT_RANGE);
    }
}
