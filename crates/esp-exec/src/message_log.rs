//! The messages of a run, with the steps that communicate them, for message-sequence charts. An interpreter that keeps
//! no log does nothing for it.

use crate::datum::Datum;
use crate::environment::Offer;
use crate::step::{Step, StepContext, channel_of};
use quaject_esp_ir::ir::{ChannelId, Location};

/// A step that communicates, or a time that has passed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LoggedStep {
    /// The step.
    pub step: Step,
    /// Its message, if it has one and its evaluation does not fault.
    pub message: Option<(ChannelId, Vec<Datum>)>,
    /// The location of the operation: the sender's, or the only one.
    pub location: Location,
}

/// The first steps of a run that communicate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MessageLog {
    /// The steps, in order.
    pub steps: Vec<LoggedStep>,
    /// The number of later ones.
    pub omitted: u64,
    max: usize,
}

impl MessageLog {
    /// An empty log of at most `max` steps.
    pub fn new(max: usize) -> MessageLog {
        MessageLog { steps: Vec::new(), omitted: 0, max }
    }

    /// Notes a step that is about to be taken.
    pub(crate) fn note(&mut self, step: Step, context: &mut StepContext<'_>) {
        let (instance, branch) = match step {
            Step::Communicate { sender, sender_branch, .. } => (sender, sender_branch),
            Step::FromEnvironment { instance, branch }
            | Step::ToEnvironment { instance, branch }
            | Step::After { instance, branch } => (instance, branch),
            Step::Local { .. } | Step::Else { .. } => return,
        };
        if self.steps.len() == self.max {
            self.omitted += 1;
            return;
        }
        let code = context.open(instance, branch);
        let location = code.map_or_else(Location::default, |code| code.location);
        let message = match step {
            Step::FromEnvironment { .. } => {
                code.and_then(channel_of).and_then(|channel| match context.environment.peek(channel) {
                    Offer::Message(message) => Some((channel, message.to_vec())),
                    Offer::Pending | Offer::Closed => None,
                })
            }
            Step::Communicate { .. } | Step::ToEnvironment { .. } => context.message(instance, branch),
            Step::After { .. } | Step::Local { .. } | Step::Else { .. } => None,
        };
        self.steps.push(LoggedStep { step, message, location });
    }
}
