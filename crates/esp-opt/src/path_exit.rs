//! The exits of a fast path: where control leaves the path's code for the general code of its members, and why. All but
//! the normal exit are side exits, as those of a trace in a tracing compiler. Data only.

use quaject_esp_ir::ir::Location;

/// An exit of a path: the reason, and the locations at which the members resume.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PathExit {
    /// The reason.
    pub reason: ExitReason,
    /// Per member: where in the source text it resumes.
    pub at: Vec<Location>,
}

/// Why a path exits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ExitReason {
    /// Every member is at its exit.
    Normal,
    /// This member reaches a statement of interest with which the path expression does not continue.
    Deviation(usize),
    /// A predicate of this member is false.
    PredicateFalse(usize),
    /// The environment is not ready for this member.
    EnvironmentNotReady(usize),
    /// This member would fault, yield or end, or is at an operation that paths leave to the general code: `pri alt`,
    /// `else`, a payload that allocates or changes reference counts.
    NotExecutable(usize),
    /// No member can run.
    NoneRunnable,
    /// Test only: an exit that is forced where this member proceeds: [`IterationCountPlacement::Forced`].
    Forced(usize),
    /// Values on whose equality the path is specialised differ at its start.
    ValuesDiffer,
    /// The run has reached its maximal number of iterations.
    IterationLimit,
}

/// Where a path counts its iterations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum IterationCountPlacement {
    /// At the blocks of a feedback vertex set.
    #[default]
    FeedbackVertices,
    /// Test only: at every node, so that an exit can be forced at any of them.
    EveryNode,
    /// Test only: as `FeedbackVertices`. In addition, the exploration takes a side exit at the decision with this
    /// number, in exploration order, of those on whether the path continues. Tests check that the general code
    /// continues from there.
    Forced(u32),
}
