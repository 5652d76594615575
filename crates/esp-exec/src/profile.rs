//! What a run communicates: how often each operation of each instance is done, and in which order, for those who look
//! for the paths that matter ("Fast Paths in Concurrent Programs", section 3, leaves it to the programmer). A run that
//! is not asked pays nothing.

use crate::step::{Step, StepContext};
use quaject_esp_ir::ir::{Operation, Program, SiteId, Terminator};

/// How many communications are kept in order; those after them are counted only.
const MAX_RECORDED: usize = 1 << 20;

/// A channel operation of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Done {
    /// Whose.
    pub instance: u32,
    /// Which of its process's.
    pub site: SiteId,
}

/// A communication: who gave and who took, none of which is the world.
pub type Communication = (Option<Done>, Option<Done>);

/// How much of a run was done on fast paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Communications of the scheduler, those on fast paths left out.
    pub communications: u64,
    /// How often a fast path was entered.
    pub entries: u64,
    /// What was done on fast paths: turns of loops of machine code, IR steps of the interpreter.
    pub fuel_on_paths: u64,
}

/// What a run has done with one of its fast paths.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PathCounters {
    /// How often it was entered.
    pub entered: u64,
    /// How often it was tested again after a turn of the others, as some member was about to run.
    pub deferred: u64,
    /// How often it was not entered, as some member was elsewhere.
    pub refused: u64,
    /// How often it was left, by the number of the way out.
    pub left: Vec<u64>,
}

impl PathCounters {
    /// It is left by this way.
    pub(crate) fn leave(&mut self, exit: u32) {
        let exit = exit as usize;
        if exit >= self.left.len() {
            self.left.resize(exit + 1, 0);
        }
        self.left[exit] += 1;
    }
}

/// What a run has communicated.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Per instance, per operation of its process: how often it was done.
    counts: Vec<Vec<u64>>,
    order: Vec<Communication>,
}

impl Profile {
    /// Nothing yet.
    pub(crate) fn new(program: &Program) -> Profile {
        let counts = program
            .processes
            .iter()
            .flat_map(|process| std::iter::repeat_n(vec![0; process.sites.len()], process.replicas as usize))
            .collect();
        Profile { counts, order: Vec::new() }
    }

    /// How often an operation was done.
    pub fn count(&self, done: Done) -> u64 {
        let counts = self.counts.get(done.instance as usize);
        counts.and_then(|counts| counts.get(done.site.0 as usize)).copied().unwrap_or_default()
    }

    /// Every operation of the program, with how often it was done, in order of text.
    pub fn operations(&self) -> impl Iterator<Item = (Done, u64)> + '_ {
        self.counts.iter().enumerate().flat_map(|(instance, counts)| {
            counts
                .iter()
                .enumerate()
                .map(move |(site, count)| (Done { instance: instance as u32, site: SiteId(site as u32) }, *count))
        })
    }

    /// The first communications, about a million, in order.
    pub fn order(&self) -> &[Communication] {
        &self.order
    }

    /// A step is about to be taken.
    pub(crate) fn note(&mut self, step: Step, context: &StepContext<'_>) {
        let communication = match step {
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                (done(context, sender, sender_branch), done(context, receiver, receiver_branch))
            }
            Step::FromEnvironment { instance, branch } => (None, done(context, instance, branch)),
            Step::ToEnvironment { instance, branch } => (done(context, instance, branch), None),
            Step::Local { .. } | Step::After { .. } | Step::Else { .. } => return,
        };
        for done in [communication.0, communication.1].into_iter().flatten() {
            self.counts[done.instance as usize][done.site.0 as usize] += 1;
        }
        if self.order.len() < MAX_RECORDED {
            self.order.push(communication);
        }
    }
}

/// The operation of a branch at which an instance waits.
fn done(context: &StepContext<'_>, instance: u32, branch: u32) -> Option<Done> {
    let (process, _) = context.code.instances[instance as usize];
    let block = context.wait(instance)?.block;
    let Terminator::Wait(wait) =
        &context.program.processes[process.0 as usize].body.blocks[block.0 as usize].terminator
    else {
        return None;
    };
    match wait.branches.get(branch as usize)?.operation {
        Operation::In { site, .. } | Operation::Out { site, .. } => Some(Done { instance, site }),
        Operation::After { .. } => None,
    }
}
