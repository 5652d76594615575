//! What is always so of the values of every process, whoever sends what it receives: an integer that a message brings
//! is one that some sender has where it sends. So a path begins with more than each body knows of itself. Sees whole
//! programs, knows no order of events.

use crate::facts::Fact;
use crate::ranges::{Ranges, ranges_of_receiver};
use quaject_esp_ir::ir::{
    Bind, Boundary, Branch, Operand, Operation, Pattern, Payload, Program, Type, TypeId, TypeTable, Value,
};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// How often a process is looked at, as what it receives has grown, before that can be anything.
const MOST_LOOKS: u32 = 4;

/// Per channel, per part of its messages: what it is; none as long as nobody sends.
type Sent = Vec<Vec<Option<Fact>>>;

/// Per process, per value: what is always so; none of values that are never computed.
pub(crate) fn ranges_of_all(program: &Program, checked: bool) -> Vec<Vec<Option<Fact>>> {
    let types = &program.types;
    let mut sent: Sent = program.channels.iter().map(|channel| vec![None; channel.payload.len()]).collect();
    let mut found: Vec<Option<Ranges>> = program.processes.iter().map(|_| None).collect();
    let mut looks = vec![0; program.processes.len()];
    let mut due: BTreeSet<usize> = (0..program.processes.len()).collect();
    while let Some(process) = due.pop_first() {
        looks[process] += 1;
        let is_last = looks[process] == MOST_LOOKS;
        let received = if is_last { FxHashMap::default() } else { received(program, process, &sent) };
        let ranges = ranges_of_receiver(&program.processes[process].body, types, checked, &received);
        for (block, branch) in branches(program, process) {
            let Operation::Out { channel, payload, .. } = &branch.operation else { continue };
            let channel = channel.0 as usize;
            let mut has_grown = false;
            for (position, (part, ty)) in sent[channel].iter_mut().zip(&program.channels[channel].payload).enumerate() {
                let whole = Fact::of_type(types, *ty);
                let given = match payload {
                    Payload::Ready(passed) => match &passed[position].operand {
                        Operand::Value(value) if is_integer(types, *ty) => ranges.at(block, *value).cloned(),
                        Operand::Value(_) | Operand::Place(_) => Some(whole.clone()),
                    },
                    Payload::Region(_) => Some(whole.clone()),
                };
                has_grown |= given.is_some_and(|given| grow(part, &given));
            }
            if has_grown {
                let is_open = |reader: &usize| looks[*reader] < MOST_LOOKS && receives(program, *reader, channel);
                due.extend((0..program.processes.len()).filter(is_open));
            }
        }
        found[process] = Some(ranges);
    }
    found.into_iter().map(|ranges| ranges.map_or_else(Vec::new, Ranges::everywhere)).collect()
}

/// Takes in what somebody sends; whether that is new.
fn grow(part: &mut Option<Fact>, given: &Fact) -> bool {
    let (low, high) = part.as_ref().map_or((given.low, given.high), |part| (part.low, part.high));
    let joined = Fact::between(low.min(given.low), high.max(given.high));
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

/// The values that messages bring to a process, and what they are: none as long as nobody sends them. Of others, as of
/// what the world sends, nothing is said.
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
            fact.iter().for_each(|fact| _ = grow(part, fact));
        }
    }
    // Some other message leads there as well.
    others.into_iter().for_each(|value| _ = received.remove(value));
    received
}

#[cfg(test)]
mod tests {
    use super::*;
    use quaject_test_environment::compile;
    use std::path::Path;

    /// What is so of a process's values of this name, all of them together.
    fn known(text: &str, process: &str, name: &str) -> (i128, i128) {
        let program = compile(Path::new("p.esp"), text);
        let ranges = ranges_of_all(&program, false);
        let index = program.processes.iter().position(|data| data.name == process).expect("it has the process");
        let values = &program.processes[index].body.values;
        let facts = values.iter().zip(&ranges[index]).filter(|(value, _)| value.name.as_deref() == Some(name));
        let facts: Vec<&Fact> = facts.filter_map(|(_, fact)| fact.as_ref()).collect();
        let (low, high) = (facts.iter().map(|fact| fact.low).min(), facts.iter().map(|fact| fact.high).max());
        (low.expect("it has the value"), high.expect("it has the value"))
    }

    const WHOLE: (i128, i128) = (i32::MIN as i128, i32::MAX as i128);

    /// The reader before its writer, so that it is looked at with nothing sent.
    #[test]
    fn what_a_message_brings_is_what_somebody_sends() {
        let text = "channel aC(int); channel bC(int); channel endC(int) external in;
            process last { var last = 0; while { in(bC, $n); if (n == -1) break; last = n; } out(endC, last); }
            process pass { while { in(aC, $m); if (m == -1) break; out(bC, m ^ 3); } out(bC, -1); }
            process read { for i in 0..200 { out(aC, i % 100); } out(aC, -1); }";
        assert_eq!(known(text, "pass", "m"), (-1, 99));
        assert_eq!(known(text, "last", "n"), (-1, 127));
        assert_eq!(known(text, "last", "last"), (0, 127));
    }

    #[test]
    fn of_several_senders_the_widest() {
        let text = "channel aC(int); channel endC(int) external in;
            process read { in(aC, $n); in(aC, $m); out(endC, n + m); }
            process low { out(aC, 3); }
            process high { out(aC, 5); }";
        assert_eq!(known(text, "read", "n"), (3, 5));
    }

    /// A count that goes round two processes for ever, and what the world sends.
    #[test]
    fn what_nothing_bounds_can_be_anything() {
        let text = "channel thereC(int); channel backC(int);
            process up { var n = 0; while { out(thereC, n); in(backC, n); } }
            process down { while { in(thereC, $m); out(backC, m + 1); } }";
        assert_eq!(known(text, "down", "m"), WHOLE);
        let text = "channel inputC(int) external out; channel outputC(int) external in;
            process pass { while { in(inputC, $n); out(outputC, n); } }";
        assert_eq!(known(text, "pass", "n"), WHOLE);
    }

    /// Branches of one `alt` bring it from a channel that is known and from the world.
    #[test]
    fn branches_each_bring_their_own() {
        let text = "channel aC(int); channel worldC(int) external out; channel endC(int) external in;
            process read { alt { in(aC, $n) { out(endC, n); } in(worldC, $m) { out(endC, m); } } }
            process write { out(aC, 7); }";
        assert_eq!(known(text, "read", "n"), (7, 7));
        assert_eq!(known(text, "read", "m"), WHOLE);
    }
}
