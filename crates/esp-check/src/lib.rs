//! Explicit-state model checking of flow IR programs: the reachable states, up to sound reductions, are computed by the
//! IR's own `step`; a violation is reported as a short run. Contains no back end and does no I/O.
//!
//! Safety (deadlock, faults, lost objects) is checked breadth first over the reachable states; LTL properties and
//! starvation are checked as emptiness of a Büchi product; fast paths are checked by weak forward-backward
//! simulation against the program without them.
//!
//! ```text
//!   model of the environment   environment, domain
//!   before the search          exploration_plan (dependencies, state layout), static_matching, instance_set, waits
//!   extern functions           questions, kept_answers, pure_answers (one answer for a whole run), answer_table
//!   state representation       collapse (component states by number), store (visited set), frontier
//!   transition relation        successors (cache, monolithic stepping, partial-order reduction, valuations)
//!   safety                     check (driver), search (parallel breadth-first search), spin_barrier
//!   liveness                   ltl, formula, automaton, negation, deadlines (`until` branches and what moves their
//!                              times), liveness (fair strongly connected components)
//!   counterexamples            reconstruct, minimize, counterexample, counterexample_file, chart, configuration,
//!                              timeline
//!   validation                 concretize, spuriousness, replay_external (a run of another engine)
//!   refinement                 refine (implementation with fast paths against the specification without)
//!   results                    options, timer, refusal, report, unreached
//! ```
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod answer_table;
mod automaton;
mod chart;
mod check;
mod collapse;
mod concretize;
mod configuration;
mod counterexample;
pub mod counterexample_file;
mod deadlines;
mod domain;
mod environment;
mod exploration_plan;
mod formula;
mod frontier;
mod instance_set;
mod kept_answers;
mod liveness;
mod ltl;
mod minimize;
mod negation;
mod options;
mod pure_answers;
mod questions;
mod reconstruct;
mod refine;
mod refusal;
mod replay_external;
mod report;
mod search;
mod spin_barrier;
mod spuriousness;
mod static_matching;
mod store;
mod successors;
mod timeline;
mod timer;
mod unreached;
mod waits;

pub use chart::{chart, run_chart};
pub use check::{check, check_beyond};
pub use concretize::concretize;
pub use configuration::{AwaitedEvent, Configuration, InstanceStatus};
pub use counterexample::{Counterexample, PureAnswer, TraceStep, ViolationKind};
pub use domain::{MAX_VALUES, Unbounded};
pub use liveness::ProductStatistics;
pub use ltl::BadProperty;
pub use options::{
    Compaction, Interrupt, Limit, Limits, Liveness, Options, Progress, Reduction, Symmetry, Unfinished, omission_bound,
};
pub use refine::{
    Mismatch, ObserverOutcome, PathCoverage, Refinement, RefinementCounterexample, RefinementInput, RefinementVerdict,
    build_observer, refine,
};
pub use refusal::{MAX_CHECKED_INSTANCES, Refusal};
pub use replay_external::{ReplayOutcome, replay_external, replay_external_property};
pub use report::{
    Answer, CheckKind, Deadlocks, Engine, Leaks, PathRecord, Report, Verdict, VerdictRecord, line_or_place,
    restrictions, subject, unfinished_text,
};
pub use spuriousness::{Concretization, Spuriousness};
pub use timeline::{Stop, stops};
pub use timer::Timer;
