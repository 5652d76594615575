//! Fast paths in Promela. The location of an instance that can be captured is a global number, and its values are
//! global, so that the trigger of a path can capture it and set where it resumes.
//!
//! ```text
//!   place[m]  0           anywhere else
//!             1 ..        at the wait with this number, where a path can capture it
//!             RESUMED ..  about to resume at the block with this number
//!             CAPTURED    captured by a path
//! ```
//!
//! A sender that communicates from such a wait adds its own number to the message. The receiver then updates the
//! locations of both in the step of the rendezvous.

use super::expression::Expr;
use super::value_usage::Usage;
use quaject_esp_ir::ir::*;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The location of an instance that a path has captured.
pub(super) const CAPTURED: u32 = 255;
/// The location, plus the number of the block, of an instance that is about to resume.
pub(super) const RESUMED: u32 = 128;

/// A member's names, which the trigger knows too.
pub(super) struct CapturedMember {
    pub(super) instance: u32,
    pub(super) usage: Rc<Usage>,
    pub(super) variables: BTreeMap<Value, String>,
    pub(super) slots: Vec<String>,
}

/// The plan of fast paths.
#[derive(Default)]
pub(super) struct Paths {
    /// The array of locations.
    pub(super) place: String,
    /// A hidden variable that is set where a path is entered, so that the entry is a reachable statement.
    pub(super) entered: String,
    /// The waits at which instances can be captured, by number from 1.
    pub(super) starts: BTreeMap<(ProcessId, BlockId), u32>,
    /// The blocks at which they resume, by number from 0.
    pub(super) resumes: BTreeMap<ProcessId, BTreeMap<BlockId, u32>>,
    pub(super) captured: BTreeMap<ProcessId, CapturedMember>,
    /// Slots of triggers that replace a member's slot.
    pub(super) aliases: BTreeMap<(ProcessId, SlotId), String>,
    /// The channels on which instances communicate at such waits: messages name their sender.
    pub(super) named_sender_channels: BTreeSet<ChannelId>,
}

impl Paths {
    /// Whether messages of a channel name their sender.
    pub(super) fn names_sender(&self, channel: ChannelId) -> bool {
        self.named_sender_channels.contains(&channel)
    }

    /// The number of a wait at which an instance can be captured.
    pub(super) fn start(&self, process: ProcessId, block: BlockId) -> Option<u32> {
        self.starts.get(&(process, block)).copied()
    }

    /// The member's slot that a trigger's slot is an alias of.
    pub(super) fn alias(&self, process: ProcessId, slot: SlotId) -> Option<&str> {
        self.aliases.get(&(process, slot)).map(String::as_str)
    }

    /// The location of an instance.
    pub(super) fn place(&self, instance: &Expr) -> Expr {
        Expr::tight(format!("{}[{}]", self.place, instance.text))
    }

    /// The declarations of the locations and of the variable that is set where a path is entered.
    pub(super) fn declarations(&self, program: &Program) -> Option<[String; 2]> {
        let place = || format!("byte {}[{}];", self.place, program.instance_count());
        (!self.place.is_empty()).then(|| [place(), format!("hidden byte {};", self.entered)])
    }

    /// Where a process resumes after a path: at the block if its location is the number.
    pub(super) fn resumes(&self, process: ProcessId) -> impl Iterator<Item = (u32, BlockId)> {
        let blocks = self.resumes.get(&process).into_iter().flatten();
        blocks.map(|(block, number)| (RESUMED + number, *block))
    }
}
