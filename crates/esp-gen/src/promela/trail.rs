//! A run of Spin as steps of the program: reads the trail that a verifier writes, with the verifier's own tables. Knows
//! nothing of what the steps do.
//!
//! ```text
//!   trail    2:0:1                                      process 0 takes transition 1
//!   pan.t    trans[0][2] = settr(1,0,10,7,7,"c3?1",..   transition 1 is case 7, or 1 and 2 if it is a jump or `else`
//!   pan.m    case 7: // STATE 2 - model.pml:10 - ..     case 7 is line 10
//! ```
//!
//! Spin's own replay does not suffice: it lets a sender communicate with any receiver that matches. Processes are numbered as in the
//! program, after the claim if there is one. An instance's own code is many transitions and one step.

use super::lines::{Line, Mark};
use quaject_esp_exec::trace::Step;
use quaject_esp_ir::ir::{Fault, Location};
use std::collections::BTreeMap;

/// A run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Trail {
    /// Its steps.
    pub steps: Vec<Step>,
    /// How many of them come before the part that repeats for ever, if one does.
    pub cycle: Option<usize>,
    /// The assertion that failed at its end: fault and place.
    pub fault: Option<(Fault, Location)>,
}

/// The files that a verifier has written.
#[derive(Clone, Copy, Debug)]
pub struct VerifierFiles<'a> {
    /// `pan.t`
    pub transitions: &'a str,
    /// `pan.m`
    pub cases: &'a str,
    /// The trail.
    pub trail: &'a str,
    /// What the verifier output, which names the assertion that failed.
    pub output: &'a str,
}

struct Reader<'a> {
    lines: &'a [Line],
    trail: Trail,
    /// Per instance: whether it has own code to run before anything else.
    running: Vec<bool>,
    /// The sender's half of a rendezvous.
    sender: Option<(u32, u32)>,
}

/// Reads a run of a model with these lines and this many instances.
pub fn read(lines: &[Line], instances: u32, written: VerifierFiles<'_>) -> Trail {
    let places = places(lines, written);
    let mut reader = Reader { lines, trail: Trail::default(), running: vec![true; instances as usize], sender: None };
    let mut first = 0;
    let mut last = 0;
    // The line that each instance executed last.
    let mut at: Vec<Option<usize>> = vec![None; instances as usize];
    for entry in written.trail.lines() {
        let numbers: Vec<i64> = entry.split(':').filter_map(|number| number.trim().parse().ok()).collect();
        match numbers[..] {
            // With a claim, process 0 is the claim.
            [-2, ..] => first = 1,
            [-1, ..] => reader.trail.cycle = Some(reader.trail.steps.len()),
            [depth, process, transition] if depth >= 0 && process >= first => {
                let instance = (process - first) as u32;
                let Some(&place) = places.get(&transition) else { continue };
                if (instance as usize) < reader.running.len() {
                    let before = std::mem::replace(&mut at[instance as usize], place);
                    match place {
                        Some(line) => {
                            last = line;
                            reader.execute(instance, reader.lines.get(line).map_or(Mark::Local, |line| line.mark));
                        }
                        // Without a line of its own it goes on with what was begun: a rendezvous, or own code.
                        None if before.is_some_and(|line| is_in_rendezvous(reader.lines.get(line))) => {
                            at[instance as usize] = before;
                        }
                        None => reader.execute(instance, Mark::Local),
                    }
                }
            }
            _ => {}
        }
    }
    reader.trail.fault = failed(lines, last, written.output, first == 1);
    if reader.trail.cycle.is_none() {
        (0..instances).for_each(|instance| reader.run(instance));
    }
    reader.trail
}

impl Reader<'_> {
    /// An instance runs its own code, if it has not yet.
    fn run(&mut self, instance: u32) {
        if std::mem::replace(&mut self.running[instance as usize], false) {
            self.trail.steps.push(Step::Local { instance });
        }
    }

    fn take(&mut self, instance: u32, step: Step) {
        self.run(instance);
        self.trail.steps.push(step);
        self.running[instance as usize] = true;
    }

    fn execute(&mut self, instance: u32, mark: Mark) {
        match mark {
            Mark::None | Mark::FaultOfMeeting(_) => {}
            Mark::Local | Mark::Enter { .. } | Mark::Fault(_) => self.run(instance),
            Mark::Yield => {
                self.run(instance);
                self.running[instance as usize] = true;
            }
            Mark::Meet { branch, sends: true } => {
                self.run(instance);
                self.sender = Some((instance, branch));
            }
            Mark::Meet { branch, sends: false } => {
                self.run(instance);
                if let Some((sender, sender_branch)) = self.sender.take() {
                    let step = Step::Communicate { sender, sender_branch, receiver: instance, receiver_branch: branch };
                    self.trail.steps.push(step);
                    self.running[sender as usize] = true;
                    self.running[instance as usize] = true;
                }
            }
            Mark::FromEnvironment { branch } => self.take(instance, Step::FromEnvironment { instance, branch }),
            Mark::ToEnvironment { branch } => self.take(instance, Step::ToEnvironment { instance, branch }),
            Mark::After { branch } => self.take(instance, Step::After { instance, branch }),
            Mark::Else => self.take(instance, Step::Else { instance }),
        }
    }
}

/// Whether what follows a line may belong to the rendezvous it is of.
fn is_in_rendezvous(line: Option<&Line>) -> bool {
    line.is_some_and(|line| match line.mark {
        Mark::None | Mark::FaultOfMeeting(_) => true,
        Mark::Meet { .. } => line.text.contains("atomic"),
        Mark::Local
        | Mark::Yield
        | Mark::Enter { .. }
        | Mark::FromEnvironment { .. }
        | Mark::ToEnvironment { .. }
        | Mark::After { .. }
        | Mark::Else
        | Mark::Fault(_) => false,
    })
}

/// The line, from 0, of every transition that does something; none for one that has no line of its own, as `else`.
fn places(lines: &[Line], written: VerifierFiles<'_>) -> BTreeMap<i64, Option<usize>> {
    let mut cases = BTreeMap::new();
    for text in written.cases.lines() {
        if let Some((case, line)) = case_line(text) {
            cases.insert(case, line);
        }
    }
    // Statements that do nothing share a case; they come in the order of the text.
    let mut idle = BTreeMap::new();
    for (process, index) in idle_lines(lines) {
        idle.entry(process).or_insert_with(Vec::new).push(index);
    }
    let mut places = BTreeMap::new();
    let mut idle_transitions: Vec<(usize, i64)> = Vec::new();
    for text in written.transitions.lines() {
        let Some(transition) = transition(text) else { continue };
        match transition.text {
            "(1)" => idle_transitions.push((transition.process, transition.id)),
            // A jump is no step.
            text if text.starts_with("goto ") || text.starts_with('.') || text == "ATOMIC" || text == "IF" => {}
            _ => {
                places.insert(transition.id, cases.get(&transition.case).map(|line| line - 1));
            }
        }
    }
    idle_transitions.sort_unstable();
    for (process, id) in idle_transitions {
        let lines = idle.get_mut(&process).filter(|lines| !lines.is_empty());
        if let Some(lines) = lines {
            places.insert(id, Some(lines.remove(0)));
        }
    }
    places
}

/// Lines that are `skip` or a branch without a condition, with the number of their `proctype`.
fn idle_lines(lines: &[Line]) -> Vec<(usize, usize)> {
    let mut process = None;
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if line.text.starts_with("active ") {
            process = Some(process.map_or(0, |process| process + 1));
        }
        if let Some(process) = process
            && (line.text.ends_with("skip;") || line.text == ":: true ->")
        {
            found.push((process, index));
        }
    }
    found
}

struct Transition<'a> {
    process: usize,
    id: i64,
    case: i64,
    text: &'a str,
}

/// `trans[1][2] = settr(18,0,8,3,3,"c3!1", 1, 4, 0);`
fn transition(text: &str) -> Option<Transition<'_>> {
    let (left, right) = text.split_once("= settr(")?;
    let process = left.split_once("trans[")?.1.split_once(']')?.0.trim().parse().ok()?;
    let (numbers, rest) = right.split_once('"')?;
    let mut numbers = numbers.split(',');
    let id = numbers.next()?.trim().parse().ok()?;
    let case = numbers.nth(2)?.trim().parse().ok()?;
    Some(Transition { process, id, case, text: rest.rsplit_once('"')?.0 })
}

/// `case 7: // STATE 2 - model.pml:10 - [c3?1] (0:0:0 - 1)`: case and line.
fn case_line(text: &str) -> Option<(i64, usize)> {
    let (case, rest) = text.trim_start().strip_prefix("case ")?.split_once(": // STATE ")?;
    let (_, rest) = rest.split_once(".pml:")?;
    let line = rest.split_once(' ')?.0.parse().ok()?;
    Some((case.trim().parse().ok()?, line))
}

/// The assertion that failed: the first one from the last line executed on that reads as the verifier says. With a
/// claim, which the verifier asserts too, one that reads otherwise is not the program's.
fn failed(lines: &[Line], last: usize, output: &str, claims: bool) -> Option<(Fault, Location)> {
    let (_, condition) = output.split_once("assertion violated ")?;
    let condition = bare(condition.split(" (at depth").next()?);
    let mut faults = lines.get(last..)?.iter().filter_map(|line| match line.mark {
        Mark::Fault(fault) | Mark::FaultOfMeeting(fault) => Some((line, fault)),
        Mark::None
        | Mark::Local
        | Mark::Yield
        | Mark::Enter { .. }
        | Mark::Meet { .. }
        | Mark::FromEnvironment { .. }
        | Mark::ToEnvironment { .. }
        | Mark::After { .. }
        | Mark::Else => None,
    });
    let mut first = None;
    let same = faults.find(|(line, fault)| {
        first.get_or_insert((*fault, line.location));
        let text = line.text.split_once("assert(").map_or("", |(_, rest)| rest);
        bare(text.split(");").next().unwrap_or_default()) == condition
    });
    same.map(|(line, fault)| (fault, line.location)).or(first.filter(|_| !claims))
}

/// A condition without what Spin writes otherwise: blanks, parentheses, the words for 0 and 1.
fn bare(text: &str) -> String {
    let text: String = text.chars().filter(|c| !matches!(c, ' ' | '(' | ')')).collect();
    text.replace("false", "0").replace("true", "1")
}
