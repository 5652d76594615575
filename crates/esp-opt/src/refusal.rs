//! Refusals: why a group of processes is not fused, or a fast path not formed. Data only; the texts are in `report`.

use crate::limits::LimitKind;
use quaject_esp_ir::ir::{ChannelId, Location, ProcessId};
use smol_str::SmolStr;

/// Why a group was not fused, or a path not formed. The general code remains: the processes run unchanged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// A channel has both ends in the group and one outside of it; or a process outside selects on it by `pri alt` or
    /// `else`, which depends on whether a partner waits.
    SharedChannel {
        /// The channel.
        channel: ChannelId,
    },
    /// A process has a construct that the product does not express.
    Unsupported {
        /// The process.
        process: ProcessId,
        /// The construct, as a noun.
        what: &'static str,
        /// Its location.
        location: Location,
    },
    /// The product exceeds a limit.
    LimitExceeded {
        /// Which limit.
        kind: LimitKind,
        /// Its value.
        limit: usize,
        /// The process whose removal reduces the states most, if the group has several.
        costliest: Option<ProcessId>,
    },
    /// The process is a member of a fused process already.
    AlreadyFused {
        /// The process.
        process: ProcessId,
    },
    /// The path is a C function, which this target cannot call.
    ManualPath {
        /// Its name.
        function: SmolStr,
    },
    /// After a side exit, a member that waited at this channel without the path waits there only after this process has
    /// run, which observes the absence by `pri alt` or `else`.
    ObservesAbsence {
        /// The channel.
        channel: ChannelId,
        /// The observing process.
        process: ProcessId,
    },
    /// The output of the program may depend on the schedule, which fusion would fix.
    ScheduleDependent {
        /// The process with the construct.
        process: ProcessId,
        /// The construct through which the schedule is observable, as a noun.
        what: &'static str,
        /// Its location.
        location: Location,
    },
    /// Under the schedule that the product would fix, this process may starve.
    MayStarve {
        /// The process.
        process: ProcessId,
    },
}
