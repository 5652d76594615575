//! A counterexample: one run with its messages, calls and locations, and the violation at its end. Input of every
//! presentation (text, chart, file, stepper); independent of how it was found.

use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::{ChannelId, ExternId, Fault, Location};
use quaject_esp_ir::text::fault_name;

/// A run and its violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counterexample {
    /// The violation.
    pub violation: ViolationKind,
    /// Every step. The last one is the violation itself if the violation is a step.
    pub steps: Vec<TraceStep>,
    /// For an infinite run: the first step of the cycle. None for a run that ends in the violation.
    pub cycle: Option<usize>,
    /// The answers of pure functions in the run; to all other arguments they return their first value.
    pub answers: Vec<PureAnswer>,
}

/// An answer of a pure function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PureAnswer {
    /// The function.
    pub function: ExternId,
    /// Its arguments.
    pub arguments: Vec<Datum>,
    /// Its result.
    pub result: Option<Datum>,
}

/// A violation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ViolationKind {
    /// The run ends in a fault, or in a deadlock.
    Fault(Box<FaultReport>),
    /// Local code of an instance does not terminate.
    NonTermination {
        /// The instance.
        instance: u32,
        /// Where its step begins.
        location: Location,
    },
    /// The run does not satisfy a property: an infinite run, or one that violates it whatever follows.
    Property {
        /// The property's text.
        property: String,
        /// Of a run without a cycle: the labels and variables that the property names, with their values at its end.
        values: Vec<(String, String)>,
    },
    /// An instance waits forever while others continue.
    Starvation {
        /// The instance.
        instance: u32,
        /// Where it waits.
        location: Location,
    },
    /// An object is no longer reachable and will never be released.
    Leak {
        /// The boxed type.
        pool: String,
        /// The instance that held it last.
        instance: u32,
    },
}

/// One step of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TraceStep {
    /// The step.
    pub step: Step,
    /// The message with its channel, if the step has one.
    pub message: Option<(ChannelId, Vec<Datum>)>,
    /// Calls of extern functions with their results.
    pub calls: Vec<(ExternId, Option<Datum>)>,
    /// The locations of the participants: the sender or the only one, then the receiver.
    pub locations: Vec<Location>,
}

impl ViolationKind {
    /// Its word in messages and JSON.
    pub fn name(&self) -> &'static str {
        match self {
            ViolationKind::Fault(report) => fault_name(report.fault),
            ViolationKind::NonTermination { .. } => "nontermination",
            ViolationKind::Property { .. } => "property",
            ViolationKind::Starvation { .. } => "starvation",
            ViolationKind::Leak { .. } => "leak",
        }
    }

    /// Whether the last step of the run is the violation.
    pub fn is_step(&self) -> bool {
        match self {
            ViolationKind::Fault(report) => report.fault != Fault::Deadlock,
            ViolationKind::NonTermination { .. } => true,
            ViolationKind::Property { values, .. } => !values.is_empty(),
            ViolationKind::Starvation { .. } | ViolationKind::Leak { .. } => false,
        }
    }
}
