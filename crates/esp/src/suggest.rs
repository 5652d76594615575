//! Fast paths found, not only given: of a profile, the specification of its most frequent round, short enough that a
//! person reads and edits it. A specification is only suggested if its path can be made.
//!
//! ```text
//!   entry of the profile ----------> trigger, and its start
//!   whom it reaches by messages ---> members, nearest first
//!   what they do first in it ------> their starts and exits
//!   operations that are rare ------> statements that lead off the path
//!   all other operations ----------> transparent
//! ```

use crate::profile::{self, Profile, RARE, by_name, end};
use crate::{Compiled, Emit, Limits, Loader, Mode, NoOutput, Options, Source, compile};
use quaject_esp_exec::profile::Done;
use quaject_esp_ir::ir::{Boundary, Direction, Operation, Program, SiteId, Terminator};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

/// With a line for the name and one for the brace, ten lines.
const MOST_MEMBERS: usize = 8;

/// How much work one attempt may be: a path that takes more is no path that a person would read. All attempts together
/// take a second or two.
const MAX_FUEL: usize = 500_000;

/// What the path is called, if nothing in the program is.
const NAME: &str = "hotPath";

/// A specification whose path can be made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suggestion {
    /// The path's name.
    pub name: String,
    /// Its text, at most ten lines.
    pub text: String,
    /// The members' names, the trigger first.
    pub members: Vec<String>,
    /// Who takes part, too, but is left to the slow code, as with it the path could not be made.
    pub left_out: Vec<String>,
    /// What `--report` says of the path.
    pub report: String,
}

/// Why nothing is suggested.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoSuggestion {
    /// The program by itself is wrong.
    Program(NoOutput),
    /// Nothing was communicated while it was profiled.
    Silence,
    /// The profile speaks of an operation that the program does not have.
    Foreign(profile::Operation),
    /// Whoever sets the pace meets nobody often enough.
    Alone(String),
    /// No path could be made; what was said of the last that was tried.
    Refused(String),
}

/// Suggests a fast path for what a profile says is done most.
///
/// # Errors
/// Why there is none.
pub fn suggest(source: &Source, loader: &mut dyn Loader, profile: &Profile) -> Result<Suggestion, NoSuggestion> {
    suggest_within(source, loader, profile, MAX_FUEL)
}

/// Likewise, with less work for each attempt.
pub(crate) fn suggest_within(
    source: &Source,
    loader: &mut dyn Loader,
    profile: &Profile,
    fuel: usize,
) -> Result<Suggestion, NoSuggestion> {
    let plain = compile(source.clone(), loader, &Options::new(Emit::Ir));
    let program = plain.outputs.map_err(NoSuggestion::Program)?.ir;
    let hot = Hot::new(&program, profile)?;
    let mut members = hot.members();
    let all: Vec<String> = members.iter().map(|member| program.instance_name(member.instance)).collect();
    if members.len() < 2 {
        return Err(NoSuggestion::Alone(all.concat()));
    }
    let texts: Vec<&str> = plain.sources.files().iter().map(|file| file.text.as_str()).collect();
    let name = free_name(&texts);
    let mut refusal = String::new();
    while members.len() >= 2 {
        let text = specification(&program, &name, &members);
        match tried(source, loader, &name, &text, fuel) {
            Ok(report) => {
                let left_out = all[members.len()..].to_vec();
                let members = all[..members.len()].to_vec();
                return Ok(Suggestion { name, text, members, left_out, report });
            }
            Err(reason) => refusal = reason,
        }
        members.pop();
    }
    Err(NoSuggestion::Refused(refusal))
}

/// Makes the path of a specification: what is said of it, or of why it cannot be made.
fn tried(source: &Source, loader: &mut dyn Loader, name: &str, text: &str, fuel: usize) -> Result<String, String> {
    let mut source = source.clone();
    source.root.bytes.extend(format!("\n{text}").into_bytes());
    let limits = Limits { fuel, ..Limits::default() };
    let options = Options { mode: Mode::FastPath, limits, ..Options::new(Emit::Ir) };
    let Compiled { diagnostics, outputs, .. } = compile(source, loader, &options);
    let wrong = || diagnostics.first().map_or_else(String::new, |diagnostic| diagnostic.message.clone());
    let outputs = outputs.map_err(|_| wrong())?;
    let extraction = outputs.extractions.iter().find(|extraction| extraction.name == name).ok_or_else(wrong)?;
    let text = extraction.text(&outputs.ir);
    if extraction.result.is_ok() { Ok(text) } else { Err(text) }
}

/// A name that stands in none of these texts.
fn free_name(texts: &[&str]) -> String {
    let is_free = |name: &String| !texts.iter().any(|text| text.contains(name.as_str()));
    let numbered = (2u32..).map(|number| format!("{NAME}{number}"));
    std::iter::once(NAME.to_string()).chain(numbered).find(is_free).expect("texts are finite")
}

struct Member {
    instance: u32,
    start: SiteId,
    /// Whether it often does something else where it starts: a path that ended whenever it comes back there would be
    /// left at once.
    has_choice: bool,
    /// Operations that lead off the path.
    off: Vec<SiteId>,
}

/// What a profile says of a program.
struct Hot<'a> {
    program: &'a Program,
    entry: Done,
    counts: BTreeMap<Done, u64>,
    first: HashMap<Done, u64>,
}

impl Hot<'_> {
    fn new<'a>(program: &'a Program, profile: &Profile) -> Result<Hot<'a>, NoSuggestion> {
        let names = by_name(program);
        let find = |operation: &profile::Operation| {
            names.get(operation).copied().ok_or_else(|| NoSuggestion::Foreign(operation.clone()))
        };
        let entry = find(profile.entry.as_ref().ok_or(NoSuggestion::Silence)?)?;
        // Operations of which the profile says nothing have not been done.
        let mut counts: BTreeMap<Done, u64> = names.values().map(|done| (*done, 0)).collect();
        for (operation, count) in &profile.operations {
            counts.insert(find(operation)?, *count);
        }
        let first = profile.first.iter().map(|(operation, count)| Ok((find(operation)?, *count)));
        Ok(Hot { program, entry, first: first.collect::<Result<_, _>>()?, counts })
    }

    fn is_often(&self, done: Done) -> bool {
        let rounds = self.counts.get(&self.entry).copied().unwrap_or_default();
        self.counts.get(&done).is_some_and(|count| *count > 0 && count.saturating_mul(RARE) >= rounds)
    }

    /// The operations of an instance.
    fn operations(&self, instance: u32) -> impl Iterator<Item = Done> {
        let least = Done { instance, site: SiteId(0) };
        self.counts.range(least..).map(|(done, _)| *done).take_while(move |done| done.instance == instance)
    }

    /// Channels inside the program on which an instance often does something, in this direction.
    fn channels(&self, instance: u32, wanted: Direction) -> Vec<u32> {
        let often = self.operations(instance).filter(|done| self.is_often(*done));
        let ends = often.map(|done| end(self.program, done));
        ends.filter(|(_, direction, boundary)| *direction == wanted && *boundary == Boundary::Internal)
            .map(|(channel, ..)| channel)
            .collect()
    }

    /// The trigger and whomever its messages reach; then whoever else they talk to; nearest first.
    fn members(&self) -> Vec<Member> {
        let instances = self.program.instance_count();
        let ends = |direction: Direction| -> Vec<Vec<u32>> {
            (0..instances).map(|instance| self.channels(instance, direction)).collect()
        };
        let (takes, gives) = (ends(Direction::In), ends(Direction::Out));
        let meet = |from: &[Vec<u32>], a: u32, to: &[Vec<u32>], b: u32| {
            from[a as usize].iter().any(|channel| to[b as usize].contains(channel))
        };
        let mut order = vec![self.entry.instance];
        for links in [[(&gives, &takes)].as_slice(), [(&gives, &takes), (&takes, &gives)].as_slice()] {
            let mut at = 0;
            while at < order.len() && order.len() < MOST_MEMBERS {
                let near = (0..instances).filter(|other| {
                    !order.contains(other) && links.iter().any(|(from, to)| meet(from, order[at], to, *other))
                });
                let near: Vec<u32> = near.collect();
                order.extend(near);
                at += 1;
            }
        }
        order.truncate(MOST_MEMBERS);
        order.into_iter().filter_map(|instance| self.member(instance)).collect()
    }

    fn member(&self, instance: u32) -> Option<Member> {
        let often: Vec<Done> = self.operations(instance).filter(|done| self.is_often(*done)).collect();
        let start = if instance == self.entry.instance { Some(self.entry) } else { self.start(&often) }?;
        let off = self.operations(instance).filter(|done| !often.contains(done)).map(|done| done.site);
        let has_choice = often.iter().any(|other| *other != start && self.share_wait(start, *other));
        Some(Member { instance, start: start.site, has_choice, off: off.collect() })
    }

    /// Whether two operations of an instance are branches of one `alt`.
    fn share_wait(&self, one: Done, other: Done) -> bool {
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

    /// Where an instance waits before a round: at what it does first in most of them; of what is about as frequent, the
    /// first in the text.
    fn start(&self, often: &[Done]) -> Option<Done> {
        let inside = |done: &&Done| end(self.program, **done).2 == Boundary::Internal;
        let weight = |done: &Done| self.first.get(done).copied().unwrap_or_default();
        let most = often.iter().filter(inside).map(weight).max()?;
        often.iter().filter(inside).find(|done| weight(done) >= most - most / 4).copied()
    }
}

/// The specification as people write it: a line for each process.
fn specification(program: &Program, name: &str, members: &[Member]) -> String {
    let mut text = format!("fastpath {name} {{\n");
    let names: Vec<String> = members.iter().map(|member| program.instance_name(member.instance)).collect();
    let width = names.iter().map(String::len).max().unwrap_or_default();
    let mut aliases: Vec<String> = Vec::new();
    for (number, (member, process)) in members.iter().zip(&names).enumerate() {
        let words = |site: SiteId| crate::profile::statement(program, Done { instance: member.instance, site });
        let mut start = words(member.start);
        let mut statements = vec![start.clone()];
        if start.contains('/') {
            start = alias(&start, &aliases);
            aliases.push(start.clone());
            statements[0] += &format!(" as {start}");
        }
        statements.extend(member.off.iter().map(|site| words(*site)));
        let statements = statements.join(", ");
        let goes_on =
            if number == 0 || member.has_choice { format!("follows {start}*;") } else { format!("exit {start};") };
        writeln!(text, "  process {process:<width$} {{ statement {statements}; start {start}; {goes_on} }}")
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
