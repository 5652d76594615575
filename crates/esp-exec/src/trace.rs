//! Traces: one line per step, the same for every engine, so that a run of generated code can be replayed here.
//!
//! ```text
//!   r I         instance I runs its local code up to its next operation, `yield` or end
//!   c S b R b2  sender S, branch b, communicates with receiver R, branch b2
//!   i I b       instance I, branch b, receives a message from the environment
//!   o I b       instance I, branch b, sends a message to the environment
//!   a I b       instance I, branch b: its time has passed
//!   e I         instance I takes its `else`
//! ```
//!
//! Instances are counted in order of text over all replicas, branches of one operation from 0 in order of text.

use std::fmt;
use std::str::FromStr;

/// One step of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Step {
    /// An instance runs its local code up to its next operation, `yield` or end.
    Local {
        /// The instance.
        instance: u32,
    },
    /// A rendezvous.
    Communicate {
        /// The sending instance.
        sender: u32,
        /// Its branch.
        sender_branch: u32,
        /// The receiving instance.
        receiver: u32,
        /// Its branch.
        receiver_branch: u32,
    },
    /// A message from the environment is received.
    FromEnvironment {
        /// The receiving instance.
        instance: u32,
        /// Its branch.
        branch: u32,
    },
    /// A message is sent to the environment.
    ToEnvironment {
        /// The sending instance.
        instance: u32,
        /// Its branch.
        branch: u32,
    },
    /// A time has passed.
    After {
        /// The instance.
        instance: u32,
        /// Its branch.
        branch: u32,
    },
    /// No open branch can commit.
    Else {
        /// The instance.
        instance: u32,
    },
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Local { instance } => write!(f, "r {instance}"),
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                write!(f, "c {sender} {sender_branch} {receiver} {receiver_branch}")
            }
            Step::FromEnvironment { instance, branch } => write!(f, "i {instance} {branch}"),
            Step::ToEnvironment { instance, branch } => write!(f, "o {instance} {branch}"),
            Step::After { instance, branch } => write!(f, "a {instance} {branch}"),
            Step::Else { instance } => write!(f, "e {instance}"),
        }
    }
}

/// A line that is not a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseStepError(pub String);

impl fmt::Display for ParseStepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected a step such as `r 0` or `c 0 0 1 0`, found `{}`", self.0)
    }
}

impl std::error::Error for ParseStepError {}

impl FromStr for Step {
    type Err = ParseStepError;

    fn from_str(line: &str) -> Result<Step, ParseStepError> {
        let mut words = line.split_ascii_whitespace();
        let letter = words.next();
        let numbers: Option<Vec<u32>> = words.map(|word| word.parse().ok()).collect();
        match (letter, numbers.as_deref()) {
            (Some("r"), Some([instance])) => Ok(Step::Local { instance: *instance }),
            (Some("c"), Some([sender, sender_branch, receiver, receiver_branch])) => Ok(Step::Communicate {
                sender: *sender,
                sender_branch: *sender_branch,
                receiver: *receiver,
                receiver_branch: *receiver_branch,
            }),
            (Some("i"), Some([instance, branch])) => Ok(Step::FromEnvironment { instance: *instance, branch: *branch }),
            (Some("o"), Some([instance, branch])) => Ok(Step::ToEnvironment { instance: *instance, branch: *branch }),
            (Some("a"), Some([instance, branch])) => Ok(Step::After { instance: *instance, branch: *branch }),
            (Some("e"), Some([instance])) => Ok(Step::Else { instance: *instance }),
            (_, _) => Err(ParseStepError(line.to_string())),
        }
    }
}
