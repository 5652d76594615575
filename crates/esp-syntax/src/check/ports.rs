//! Ports (reference, section 5): the patterns of different instances are disjoint, all together cover the type of the
//! channel, each reading process takes a message that is written, and no instance can only communicate with itself.

use super::coverage::{ANY, Static, TooComplex, Witness, message_witness, too_complex};
use super::load::Integrity;
use super::names::Checker;
use super::walk;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, Boundary, ChannelId, Operation, PatternKind, ProcessId, Sharing};
use crate::span::Span;
use crate::types::TypeId;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use std::hash::BuildHasher;

/// Up to this number, the replicas of a process whose pattern has `@` twice are checked one by one.
const MAX_EXPANDED_REPLICAS: u32 = 256;

/// Up to this number of pairs, each reader of a channel is compared with each writer.
const MAX_COMPARED_ENDS: usize = 1 << 18;

/// One `in` on a channel.
struct Reader {
    process: ProcessId,
    patterns: Vec<Static>,
    /// The parts at which the pattern has `@`.
    own_ids: Vec<Path>,
    /// The patterns in the checked program, for those with several `@`.
    original: Vec<hir::Pattern>,
    span: Span,
}

/// One `out` on a channel.
struct Writer {
    process: ProcessId,
    /// What is known of the message without running the program.
    message: Vec<Static>,
    span: Span,
}

/// Everything that is done on a channel.
#[derive(Default)]
struct Traffic {
    readers: Vec<Reader>,
    writers: Vec<Writer>,
}

/// Checks the ports of every channel.
pub(super) fn check(checker: &mut Checker) {
    let mut traffic: Vec<Traffic> = checker.channels.iter().map(|_| Traffic::default()).collect();
    for process in 0..checker.processes.len() {
        collect(checker, ProcessId(process as u32), &mut traffic);
    }
    let environments = used_by_environments(checker);
    for (index, traffic) in traffic.iter().enumerate() {
        let id = ChannelId(index as u32);
        check_ends(checker, id, traffic, environments.contains(&id));
        let entry = &checker.channels[index];
        if entry.tainted || traffic.readers.is_empty() {
            continue;
        }
        if entry.hir.sharing == Sharing::Ports {
            check_disjoint(checker, id, &traffic.readers);
        }
        check_covered(checker, id, &traffic.readers);
        check_written(checker, id, traffic);
    }
}

fn collect(checker: &Checker, process: ProcessId, traffic: &mut [Traffic]) {
    let Some(hir) = &checker.processes[process.0 as usize].hir else { return };
    // Operations of one process that take the same values have the same port: the first represents all.
    let mut known: FxHashMap<(ChannelId, u64), usize> = FxHashMap::default();
    walk::communications(&hir.body, &mut |communicate| {
        for branch in &communicate.branches {
            match &branch.operation {
                Operation::In(_, channel, patterns) => {
                    let parts: Vec<Static> =
                        patterns.iter().map(|pattern| checker.static_part(pattern, Some(process))).collect();
                    let own_ids = own_id_paths(patterns);
                    let readers = &mut traffic[channel.0 as usize].readers;
                    if own_ids.is_empty() {
                        let key = (*channel, FxBuildHasher.hash_one(&parts));
                        let first = *known.entry(key).or_insert(readers.len());
                        if readers.get(first).is_some_and(|first| first.patterns == parts) {
                            continue;
                        }
                    }
                    let original = if own_ids.len() > 1 { patterns.clone() } else { Vec::new() };
                    let reader = Reader { process, patterns: parts, own_ids, original, span: branch.span };
                    readers.push(reader);
                }
                Operation::Out(_, channel, message) => {
                    let message = message.iter().map(|part| checker.static_value(part, process)).collect();
                    traffic[channel.0 as usize].writers.push(Writer { process, message, span: branch.span });
                }
                Operation::After(..) | Operation::Until(..) => {}
            }
        }
    });
}

/// The parts of a message that patterns compare with the own id.
fn own_id_paths(patterns: &[hir::Pattern]) -> Vec<Path> {
    fn descend(pattern: &hir::Pattern, path: &mut Path, found: &mut Vec<Path>) {
        match &pattern.kind {
            PatternKind::OwnId => found.push(path.clone()),
            PatternKind::Tag(tag, payload) => payload.iter().for_each(|payload| {
                path.push(*tag);
                descend(payload, path, found);
                path.pop();
            }),
            PatternKind::Record(parts) | PatternKind::Array(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    path.push(index as u32);
                    descend(part, path, found);
                    path.pop();
                }
            }
            PatternKind::Any
            | PatternKind::Declare(_)
            | PatternKind::Assign(_)
            | PatternKind::Constant(_)
            | PatternKind::Bytes(_)
            | PatternKind::Among(_)
            | PatternKind::Either(_)
            | PatternKind::Equal(_) => {}
        }
    }
    let mut found = Vec::new();
    for (index, pattern) in patterns.iter().enumerate() {
        descend(pattern, &mut vec![index as u32], &mut found);
    }
    found
}

/// The channels that the environment of a model uses.
fn used_by_environments(checker: &Checker) -> FxHashSet<ChannelId> {
    let mut used = FxHashSet::default();
    for process in checker.models.iter().flat_map(|model| &model.environment) {
        walk::communications(&process.body, &mut |communicate| {
            used.extend(communicate.branches.iter().filter_map(|branch| match &branch.operation {
                Operation::In(_, channel, _) | Operation::Out(_, channel, _) => Some(*channel),
                Operation::After(..) | Operation::Until(..) => None,
            }));
        });
    }
    used
}

/// W0903 and E0407: both ends of a channel have an instance, and not only the same one. The environment of a model may
/// be an end.
fn check_ends(checker: &mut Checker, id: ChannelId, traffic: &Traffic, is_used_by_environment: bool) {
    let entry = &checker.channels[id.0 as usize];
    let (name, span, boundary) = (entry.hir.name.clone(), entry.hir.span, entry.hir.boundary);
    if checker.integrity != Integrity::Whole || entry.tainted || checker.unknown_channels {
        return;
    }
    let written = boundary == Boundary::FromEnvironment || !traffic.writers.is_empty();
    let read = boundary == Boundary::ToEnvironment || !traffic.readers.is_empty();
    let missing = match (written, read) {
        (true, true) => None,
        (false, true) => Some("writes"),
        (true, false) => Some("reads"),
        (false, false) => Some("reads or writes"),
    };
    if let Some(missing) = missing {
        if checker.errors > 0 || is_used_by_environment {
            return;
        }
        checker.report(Diagnostic::new(Code::W0903, span, format!("nothing {missing} `{name}`")));
        return;
    }
    if boundary != Boundary::Internal {
        return;
    }
    let Some(Writer { process: writer, span: first, .. }) = traffic.writers.first() else { return };
    let entry = &checker.processes[writer.0 as usize];
    let alone = entry.replicas == 1 && traffic.writers.iter().all(|other| other.process == *writer);
    if !alone {
        return;
    }
    let process = entry.item.name.text.clone();
    let mut readers = traffic.readers.iter().filter(|reader| reader.process == *writer);
    // On a `shared` channel any reader will do; else each reading instance has a port of its own.
    let shared = checker.channels[id.0 as usize].hir.sharing == Sharing::Shared;
    if shared && traffic.readers.iter().any(|reader| reader.process != *writer) {
        return;
    }
    if let Some(reader) = readers.next() {
        let diagnostic =
            Diagnostic::new(Code::E0407, reader.span, format!("`{process}` can only talk to itself on `{name}`"))
                .label(*first, "this is the only writer")
                .help("a process waits at one operation at a time: keep the value in a variable");
        checker.report(diagnostic);
    }
}

/// E0405: a value determines its reader.
fn check_disjoint(checker: &mut Checker, id: ChannelId, readers: &[Reader]) {
    let types = checker.channels[id.0 as usize].hir.payload.clone();
    let place = best_path(readers);
    let ids = readers.iter().any(|reader| !reader.own_ids.is_empty());
    let mut buckets: FxHashMap<Key, Vec<usize>> = FxHashMap::default();
    let mut open: Vec<usize> = Vec::new();
    let mut compared = 0usize;
    for (index, reader) in readers.iter().enumerate() {
        let key = place.as_ref().and_then(|path| key_at(checker, reader, path, ids));
        let others: Vec<usize> = match &key {
            // A reader that takes anything here overlaps with every reader before it.
            None => (0..index).collect(),
            Some(key) => buckets.get(key).into_iter().flatten().chain(&open).copied().collect(),
        };
        for other in others.into_iter().chain([index]) {
            compared += 1;
            if let Some(witness) = overlap(checker, &readers[other], reader, &types, other == index) {
                report_overlap(checker, id, &readers[other], reader, witness);
                return;
            }
        }
        if compared > checker.coverage_budget {
            return too_complex(checker, Code::E0405, reader.span);
        }
        match key {
            Some(key) => buckets.entry(key).or_default().push(index),
            None => open.push(index),
        }
    }
    checker.coverage_budget -= compared;
}

/// What a reader requires at a path: a constant, or the ids of a process.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Number(i128),
    Process(ProcessId),
    Bytes(Vec<u8>),
    Tag(u32),
}

/// A path to a part: operand number, then part numbers.
type Path = Vec<u32>;

/// Visits each tested part of some patterns, outermost first, with its path.
fn visit_tests<'p>(patterns: &'p [Static], visit: &mut impl FnMut(&[u32], &'p Static)) {
    fn descend<'p>(part: &'p Static, path: &mut Path, visit: &mut impl FnMut(&[u32], &'p Static)) {
        match part {
            Static::Any => {}
            Static::Range(..) | Static::Bytes(_) | Static::Either(_) => visit(path, part),
            Static::Tag(tag, payload) => {
                visit(path, part);
                if let Some(payload) = payload {
                    path.push(*tag);
                    descend(payload, path, visit);
                    path.pop();
                }
            }
            Static::Product(parts) => {
                for (index, part) in parts.iter().enumerate() {
                    path.push(index as u32);
                    descend(part, path, visit);
                    path.pop();
                }
            }
        }
    }
    let mut path = Path::new();
    for (index, pattern) in patterns.iter().enumerate() {
        path.push(index as u32);
        descend(pattern, &mut path, visit);
        path.pop();
    }
}

/// The path at which readers differ most: only those that agree there have to be compared.
fn best_path(readers: &[Reader]) -> Option<Path> {
    if readers.len() < 8 {
        return None;
    }
    let mut seen: FxHashMap<Path, FxHashSet<String>> = FxHashMap::default();
    for reader in readers {
        let mut visited = 0;
        visit_tests(&reader.patterns, &mut |path, head| {
            visited += 1;
            if visited > 16 {
                return;
            }
            let key = match head {
                Static::Tag(tag, _) => format!("tag {tag}"),
                other => format!("{other:?}"),
            };
            seen.entry(path.to_vec()).or_default().insert(key);
        });
    }
    seen.into_iter().max_by_key(|(path, keys)| (keys.len(), std::cmp::Reverse(path.clone()))).map(|(path, _)| path)
}

fn key_at(checker: &Checker, reader: &Reader, wanted: &[u32], ids: bool) -> Option<Key> {
    let mut found = None;
    visit_tests(&reader.patterns, &mut |path, head| {
        if path == wanted {
            found = match head {
                // All ids of a process go into one bucket: a range of them must meet each single one.
                Static::Range(low, high) if ids => {
                    let process = |number| checker.instance(number).map(|(process, _)| process);
                    process(*low).filter(|first| process(high - 1) == Some(*first)).map(Key::Process)
                }
                Static::Range(low, high) => (high - low == 1).then_some(Key::Number(*low)),
                Static::Bytes(bytes) => Some(Key::Bytes(bytes.clone())),
                Static::Tag(tag, _) => Some(Key::Tag(*tag)),
                Static::Any | Static::Product(_) | Static::Either(_) => None,
            };
        }
    });
    found
}

/// A message that two readers can both take. `@` distinguishes the replicas of a process.
fn overlap(checker: &Checker, left: &Reader, right: &Reader, types: &[TypeId], itself: bool) -> Option<Vec<Witness>> {
    if left.process == right.process {
        let replicas = checker.processes[left.process.0 as usize].replicas;
        // Replicas that compare the same part with their own ids take different messages.
        let share_own_id = left.own_ids.iter().any(|path| right.own_ids.contains(path));
        if replicas == 1 || (!left.own_ids.is_empty() && itself) || share_own_id {
            return None;
        }
    }
    left.patterns
        .iter()
        .zip(&right.patterns)
        .zip(types)
        .map(|((left, right), ty)| checker.shared(left, right, *ty))
        .collect()
}

fn report_overlap(checker: &mut Checker, id: ChannelId, left: &Reader, right: &Reader, witness: Vec<Witness>) {
    let channel = checker.channels[id.0 as usize].hir.name.clone();
    let name = |reader: &Reader| checker.processes[reader.process.0 as usize].item.name.text.clone();
    let (a, b) = (name(left), name(right));
    let witness = if witness.is_empty() { "{}".to_string() } else { message_witness(witness).to_string() };
    let message = if left.process == right.process {
        format!("two replicas of `{a}` can both take `{witness}` from `{channel}`")
    } else {
        format!("`{a}` and `{b}` can both take `{witness}` from `{channel}`")
    };
    let mut diagnostic = Diagnostic::new(Code::E0405, right.span, message);
    if left.span != right.span {
        diagnostic = diagnostic.label(left.span, format!("`{a}` takes it here"));
    }
    let help = if left.process == right.process {
        format!("tell them apart by `@`, or make the channel `shared`: `channel {channel}(..) shared;`")
    } else {
        "make the patterns disjoint or the channel `shared`".to_string()
    };
    checker.report(diagnostic.help(help));
}

/// E0406: every message has a reader.
fn check_covered(checker: &mut Checker, id: ChannelId, readers: &[Reader]) {
    let entry = &checker.channels[id.0 as usize];
    let (types, name, span) = (entry.hir.payload.clone(), entry.hir.name.clone(), entry.hir.span);
    if types.is_empty() || checker.integrity != Integrity::Whole || checker.unknown_channels {
        return;
    }
    let mut expanded: Vec<Vec<Static>> = Vec::new();
    let mut rows: Vec<Vec<&Static>> = Vec::new();
    for reader in readers {
        let replicas = checker.processes[reader.process.0 as usize].replicas;
        if reader.own_ids.len() > 1 && replicas > 1 {
            // All replicas together take only the messages in which the ids agree.
            if replicas <= MAX_EXPANDED_REPLICAS {
                expanded.extend((0..replicas).map(|replica| of_replica(checker, reader, replica)));
            }
        } else {
            rows.push(reader.patterns.iter().collect());
        }
    }
    rows.extend(expanded.iter().map(|row| row.iter().collect::<Vec<&Static>>()));
    let query = vec![&ANY; types.len()];
    match checker.uncovered(rows, &query, &types) {
        Ok(None) => {}
        Ok(Some(witness)) => {
            let witness = message_witness(witness);
            let mut diagnostic =
                Diagnostic::new(Code::E0406, span, format!("no process takes `{witness}` from `{name}`"));
            for reader in readers.iter().take(3) {
                let process = &checker.processes[reader.process.0 as usize].item.name.text;
                diagnostic = diagnostic.label(reader.span, format!("`{process}` takes other messages"));
            }
            checker.report(diagnostic.help("add an `in` that takes it, so that its writer does not wait forever"));
        }
        Err(TooComplex) => too_complex(checker, Code::E0406, span),
    }
}

/// W0903: each process that reads a channel takes a message that is written on it.
fn check_written(checker: &mut Checker, id: ChannelId, traffic: &Traffic) {
    let entry = &checker.channels[id.0 as usize];
    let (types, name) = (entry.hir.payload.clone(), entry.hir.name.clone());
    let is_known = entry.hir.boundary == Boundary::Internal && checker.integrity == Integrity::Whole;
    if !is_known || checker.unknown_channels || checker.errors > 0 || traffic.writers.is_empty() {
        return;
    }
    if traffic.readers.len() * traffic.writers.len() > MAX_COMPARED_ENDS {
        return;
    }
    let is_served = |reader: &Reader| {
        traffic.writers.iter().any(|writer| {
            let mut parts = writer.message.iter().zip(&reader.patterns).zip(&types);
            parts.all(|((sent, taken), ty)| checker.shared(sent, taken, *ty).is_some())
        })
    };
    let mut served: FxHashSet<ProcessId> = FxHashSet::default();
    served.extend(traffic.readers.iter().filter(|reader| is_served(reader)).map(|reader| reader.process));
    for reader in traffic.readers.iter().filter(|reader| !served.contains(&reader.process)) {
        let message = format!("nothing writes a message on `{name}` that this takes");
        let help = "it waits forever: correct the pattern, or add the `out`";
        checker.report(Diagnostic::new(Code::W0903, reader.span, message).help(help));
    }
}

/// The static part of a reader's patterns in one replica.
fn of_replica(checker: &Checker, reader: &Reader, replica: u32) -> Vec<Static> {
    fn narrow(part: Static, pattern: &hir::Pattern, own: i128) -> Static {
        match (part, &pattern.kind) {
            (Static::Range(..), PatternKind::OwnId) => Static::Range(own, own + 1),
            (Static::Tag(tag, Some(payload)), PatternKind::Tag(_, Some(inner))) => {
                Static::Tag(tag, Some(Box::new(narrow(*payload, inner, own))))
            }
            (Static::Product(parts), PatternKind::Record(inner) | PatternKind::Array(inner)) => {
                Static::Product(parts.into_iter().zip(inner).map(|(part, inner)| narrow(part, inner, own)).collect())
            }
            (part, _) => part,
        }
    }
    let own = i128::from(checker.processes[reader.process.0 as usize].first_instance + replica);
    reader.patterns.iter().zip(&reader.original).map(|(part, pattern)| narrow(part.clone(), pattern, own)).collect()
}
