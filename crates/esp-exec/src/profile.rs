//! Profiles of communications: how often each operation of each instance is done, and in which order. Candidates for
//! fast paths are chosen from it ("Fast Paths in Concurrent Programs", section 3, leaves that to the programmer). A run
//! without a profile pays nothing.

use crate::step::{Step, StepContext};
use quaject_esp_ir::ir::{Operation, Program, SiteId, Terminator};

/// The number of communications recorded in order; later ones are only counted.
const MAX_RECORDED: usize = 1 << 20;

/// A channel operation of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InstanceOperation {
    /// The instance.
    pub instance: u32,
    /// The operation of its process.
    pub site: SiteId,
}

/// A communication: the operations of the sender and the receiver; none for the environment.
pub type Communication = (Option<InstanceOperation>, Option<InstanceOperation>);

/// The communications of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Profile {
    /// Per instance, per operation of its process: the number of times it was done.
    counts: Vec<Vec<u64>>,
    order: Vec<Communication>,
}

impl Profile {
    /// An empty profile.
    pub(crate) fn new(program: &Program) -> Profile {
        let counts = program
            .processes
            .iter()
            .flat_map(|process| std::iter::repeat_n(vec![0; process.sites.len()], process.replicas as usize))
            .collect();
        Profile { counts, order: Vec::new() }
    }

    /// How often an operation was done.
    pub fn count(&self, done: InstanceOperation) -> u64 {
        let counts = self.counts.get(done.instance as usize);
        counts.and_then(|counts| counts.get(done.site.0 as usize)).copied().unwrap_or_default()
    }

    /// Every operation of the program, with how often it was done, in order of text.
    pub fn operations(&self) -> impl Iterator<Item = (InstanceOperation, u64)> + '_ {
        self.counts.iter().enumerate().flat_map(|(instance, counts)| {
            counts.iter().enumerate().map(move |(site, count)| {
                (InstanceOperation { instance: instance as u32, site: SiteId(site as u32) }, *count)
            })
        })
    }

    /// The first communications, about a million, in order.
    pub fn order(&self) -> &[Communication] {
        &self.order
    }

    /// Records a step that is about to be taken.
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
fn done(context: &StepContext<'_>, instance: u32, branch: u32) -> Option<InstanceOperation> {
    let (process, _) = context.code.instances[instance as usize];
    let block = context.wait(instance)?.block;
    let Terminator::Wait(wait) =
        &context.program.processes[process.0 as usize].body.blocks[block.0 as usize].terminator
    else {
        return None;
    };
    match wait.branches.get(branch as usize)?.operation {
        Operation::In { site, .. } | Operation::Out { site, .. } => Some(InstanceOperation { instance, site }),
        Operation::After { .. } => None,
    }
}
