//! Profile-guided fast paths: derives from a profile the specification of its most frequent round, short enough to be
//! read and edited. A specification is suggested only if its path can be formed.
//!
//! ```text
//!   entry of the profile -----------------> trigger, and its start
//!   instances that its messages reach ----> members, nearest first
//!   their first operations in a round ----> their starts and exits
//!   rare operations ----------------------> statements that deviate from the path
//!   all other operations -----------------> transparent
//! ```

use crate::profile::{self, Profile, RARE, by_name, end};
use crate::{CompileError, Compiled, Emit, Limits, Loader, Mode, Options, Source, compile};
use quaject_esp_exec::profile::InstanceOperation;
use quaject_esp_ir::ir::{Boundary, Direction, Operation, Program, SiteId, Terminator};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// With a line for the name and one for the brace, ten lines.
const MAX_MEMBERS: usize = 8;

/// The fuel of one attempt: a path that reads more is too large to be read. All attempts together take one or two
/// seconds.
const MAX_FUEL: usize = 500_000;

/// The name of the path, if it is free in the program.
const NAME: &str = "hotPath";

/// A specification whose path can be formed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suggestion {
    /// The path's name.
    pub name: String,
    /// Its text, at most ten lines.
    pub text: String,
    /// The members' names, the trigger first.
    pub members: Vec<String>,
    /// Participants that remain in the general code, as the path cannot be formed with them.
    pub excluded: Vec<String>,
    /// The report on the path.
    pub report: String,
}

/// Why there is no suggestion.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SuggestError {
    /// The program itself has errors.
    Compile(CompileError),
    /// The profile has no communication.
    NoCommunication,
    /// The profile has an operation that the program lacks.
    UnknownOperation(profile::Operation),
    /// The process of the entry operation, which communicates with no other process often enough for a path.
    NoPartner(String),
    /// No path could be formed; the report on the last attempt.
    PathRefused(String),
}

impl std::fmt::Display for SuggestError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SuggestError::Compile(error) => write!(f, "{error}"),
            SuggestError::NoCommunication => f.write_str("nothing was communicated"),
            SuggestError::UnknownOperation(operation) => {
                write!(f, "`{}` has no `{}`", operation.process, operation.statement)
            }
            SuggestError::NoPartner(process) => {
                write!(f, "`{process}` communicates with no other process often enough for a fast path")
            }
            SuggestError::PathRefused(report) => write!(f, "no fast path can be formed\n{report}"),
        }
    }
}

impl std::error::Error for SuggestError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            SuggestError::Compile(error) => Some(error),
            SuggestError::NoCommunication
            | SuggestError::UnknownOperation(_)
            | SuggestError::NoPartner(_)
            | SuggestError::PathRefused(_) => None,
        }
    }
}

/// Suggests a fast path for the most frequent round of a profile.
///
/// # Errors
/// [`SuggestError`] if there is none.
pub fn suggest(source: &Source, loader: &mut dyn Loader, profile: &Profile) -> Result<Suggestion, SuggestError> {
    suggest_within(source, loader, profile, MAX_FUEL)
}

/// Likewise, with this fuel for each attempt.
pub(crate) fn suggest_within(
    source: &Source,
    loader: &mut dyn Loader,
    profile: &Profile,
    fuel: usize,
) -> Result<Suggestion, SuggestError> {
    let plain = compile(source.clone(), loader, &Options::new(Emit::Ir));
    let program = plain.outputs.map_err(SuggestError::Compile)?.ir;
    let hot = ResolvedProfile::new(&program, profile)?;
    let mut members = hot.members();
    let all: Vec<String> = members.iter().map(|member| program.instance_name(member.instance)).collect();
    if members.len() < 2 {
        return Err(SuggestError::NoPartner(all.concat()));
    }
    let texts: Vec<&str> = plain.sources.files().iter().map(|file| file.text.as_str()).collect();
    let name = free_name(&texts);
    let mut refusal = String::new();
    while members.len() >= 2 {
        let text = specification(&program, &name, &members);
        match form_path(source, loader, &name, &text, fuel) {
            Ok(report) => {
                let excluded = all[members.len()..].to_vec();
                let members = all[..members.len()].to_vec();
                return Ok(Suggestion { name, text, members, excluded, report });
            }
            Err(reason) => refusal = reason,
        }
        members.pop();
    }
    Err(SuggestError::PathRefused(refusal))
}

/// Forms the path of a specification; returns the report on it, or on its refusal.
fn form_path(source: &Source, loader: &mut dyn Loader, name: &str, text: &str, fuel: usize) -> Result<String, String> {
    let mut source = source.clone();
    source.root.bytes.extend(format!("\n{text}").into_bytes());
    let limits = Limits { fuel, ..Limits::default() };
    let options = Options { mode: Mode::FastPath, limits, ..Options::new(Emit::Ir) };
    let Compiled { diagnostics, outputs, .. } = compile(source, loader, &options);
    let wrong = || diagnostics.first().map_or_else(String::new, |diagnostic| diagnostic.message.clone());
    let outputs = outputs.map_err(|_| wrong())?;
    let attempt = outputs.path_attempts.iter().find(|attempt| attempt.name == name).ok_or_else(wrong)?;
    let text = attempt.text(&outputs.ir);
    if attempt.result.is_ok() { Ok(text) } else { Err(text) }
}

/// A name that occurs in none of these texts.
fn free_name(texts: &[&str]) -> String {
    let is_free = |name: &String| !texts.iter().any(|text| text.contains(name.as_str()));
    let numbered = (2u32..).map(|number| format!("{NAME}{number}"));
    std::iter::once(NAME.to_string()).chain(numbered).find(is_free).expect("texts are finite")
}

struct Member {
    instance: u32,
    start: SiteId,
    /// Whether the wait at its start has another frequent branch: a path that ends on return to the start would exit at
    /// once.
    has_choice: bool,
    /// Operations that lead off the path.
    off: Vec<SiteId>,
}

/// A profile, resolved in a program.
struct ResolvedProfile<'a> {
    program: &'a Program,
    entry: InstanceOperation,
    counts: BTreeMap<InstanceOperation, u64>,
    first: HashMap<InstanceOperation, u64>,
}

impl ResolvedProfile<'_> {
    fn new<'a>(program: &'a Program, profile: &Profile) -> Result<ResolvedProfile<'a>, SuggestError> {
        let names = by_name(program);
        let find = |operation: &profile::Operation| {
            names.get(operation).copied().ok_or_else(|| SuggestError::UnknownOperation(operation.clone()))
        };
        let entry = find(profile.entry.as_ref().ok_or(SuggestError::NoCommunication)?)?;
        // Operations that the profile lacks were not executed.
        let mut counts: BTreeMap<InstanceOperation, u64> = names.values().map(|done| (*done, 0)).collect();
        for (operation, count) in &profile.operations {
            counts.insert(find(operation)?, *count);
        }
        let first = profile.first.iter().map(|(operation, count)| Ok((find(operation)?, *count)));
        Ok(ResolvedProfile { program, entry, first: first.collect::<Result<_, _>>()?, counts })
    }

    fn is_frequent(&self, done: InstanceOperation) -> bool {
        let rounds = self.counts.get(&self.entry).copied().unwrap_or_default();
        self.counts.get(&done).is_some_and(|count| *count > 0 && count.saturating_mul(RARE) >= rounds)
    }

    /// The operations of an instance.
    fn operations(&self, instance: u32) -> impl Iterator<Item = InstanceOperation> {
        let least = InstanceOperation { instance, site: SiteId(0) };
        self.counts.range(least..).map(|(done, _)| *done).take_while(move |done| done.instance == instance)
    }

    /// The internal channels that an instance frequently uses in this direction.
    fn channels(&self, instance: u32, wanted: Direction) -> Vec<u32> {
        let frequent = self.operations(instance).filter(|done| self.is_frequent(*done));
        let ends = frequent.map(|done| end(self.program, done));
        ends.filter(|(_, direction, boundary)| *direction == wanted && *boundary == Boundary::Internal)
            .map(|(channel, ..)| channel)
            .collect()
    }

    /// The trigger and the instances that its messages reach, then the others that communicate with these; nearest
    /// first.
    fn members(&self) -> Vec<Member> {
        let instances = self.program.instance_count();
        let ends = |direction: Direction| -> Vec<Vec<u32>> {
            (0..instances).map(|instance| self.channels(instance, direction)).collect()
        };
        let (reads, writes) = (ends(Direction::In), ends(Direction::Out));
        let are_connected = |from: &[Vec<u32>], a: u32, to: &[Vec<u32>], b: u32| {
            from[a as usize].iter().any(|channel| to[b as usize].contains(channel))
        };
        let mut order = vec![self.entry.instance];
        for links in [[(&writes, &reads)].as_slice(), [(&writes, &reads), (&reads, &writes)].as_slice()] {
            let mut at = 0;
            while at < order.len() && order.len() < MAX_MEMBERS {
                let near = (0..instances).filter(|other| {
                    !order.contains(other) && links.iter().any(|(from, to)| are_connected(from, order[at], to, *other))
                });
                let near: Vec<u32> = near.collect();
                order.extend(near);
                at += 1;
            }
        }
        order.truncate(MAX_MEMBERS);
        order.into_iter().filter_map(|instance| self.member(instance)).collect()
    }

    fn member(&self, instance: u32) -> Option<Member> {
        let frequent: Vec<InstanceOperation> =
            self.operations(instance).filter(|done| self.is_frequent(*done)).collect();
        let start = if instance == self.entry.instance { Some(self.entry) } else { self.start(&frequent) }?;
        let off = self.operations(instance).filter(|done| !frequent.contains(done)).map(|done| done.site);
        let has_choice = frequent.iter().any(|other| *other != start && self.share_wait(start, *other));
        Some(Member { instance, start: start.site, has_choice, off: off.collect() })
    }

    /// Whether two operations of an instance are branches of one `alt`.
    fn share_wait(&self, one: InstanceOperation, other: InstanceOperation) -> bool {
        let (process, _) = self.program.process_of(one.instance).expect("a profile names instances of its program");
        self.program.processes[process.0 as usize].body.blocks.iter().any(|block| {
            let Terminator::Wait(wait) = &block.terminator else { return false };
            let has = |wanted: SiteId| {
                wait.branches.iter().any(|branch| match branch.operation {
                    Operation::In { site, .. } | Operation::Out { site, .. } => site == wanted,
                    Operation::After { .. } => false,
                })
            };
            has(one.site) && has(other.site)
        })
    }

    /// The operation at which an instance waits before a round: its most frequent first one; among similar frequencies,
    /// the first in the source.
    fn start(&self, frequent: &[InstanceOperation]) -> Option<InstanceOperation> {
        let inside = |done: &&InstanceOperation| end(self.program, **done).2 == Boundary::Internal;
        let weight = |done: &InstanceOperation| self.first.get(done).copied().unwrap_or_default();
        let max_weight = frequent.iter().filter(inside).map(weight).max()?;
        frequent.iter().filter(inside).find(|done| weight(done) >= max_weight - max_weight / 4).copied()
    }
}

/// The specification as source text, one line for each process.
fn specification(program: &Program, name: &str, members: &[Member]) -> String {
    let mut text = format!("fastpath {name} {{\n");
    let names: Vec<String> = members.iter().map(|member| program.instance_name(member.instance)).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let mut aliases: Vec<String> = Vec::new();
    for (number, (member, process)) in members.iter().zip(&names).enumerate() {
        let words =
            |site: SiteId| crate::profile::statement(program, InstanceOperation { instance: member.instance, site });
        let mut start = words(member.start);
        let mut statements = vec![start.clone()];
        if start.contains('/') {
            start = alias(&start, &aliases);
            aliases.push(start.clone());
            statements[0] += &format!(" as {start}");
        }
        statements.extend(member.off.iter().map(|site| words(*site)));
        let statements = statements.join(", ");
        let continuation =
            if number == 0 || member.has_choice { format!("follows {start}*;") } else { format!("exit {start};") };
        writeln!(text, "  process {process:<width$} {{ statement {statements}; start {start}; {continuation} }}")
            .expect("writing to a string does not fail");
    }
    text + "}\n"
}

/// A short name for an operation: the channel's first letter as a capital, numbered if need be.
fn alias(statement: &str, taken: &[String]) -> String {
    let letter = statement.chars().next().map_or('S', |first| first.to_ascii_uppercase());
    let numbered = (2u32..).map(|number| format!("{letter}{number}"));
    let is_free = |name: &String| !taken.contains(name);
    std::iter::once(letter.to_string()).chain(numbered).find(is_free).expect("few names are taken")
}
