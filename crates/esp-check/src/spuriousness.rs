//! The relation of a model's counterexample to the program itself.

use crate::counterexample::{Counterexample, ViolationKind};
use crate::options::Limit;
use quaject_esp_ir::ir::Fault;
use quaject_esp_ir::model::{Abstracted, ModelProgram, Scope};

/// A counterexample of a model in relation to the program itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Concretization {
    /// Whether the program has the same violation.
    pub spuriousness: Spuriousness,
    /// The abstractions that the run depends on, as the model writes them.
    pub causes: Vec<String>,
    /// Whether the model is a slice or a single process of the program.
    pub is_slice: bool,
}

/// Whether a violation of a model is one of its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spuriousness {
    /// The program has the same violation.
    Real,
    /// The program does not have the violation.
    Spurious,
    /// The program does not have this run; whether another run ends in the same violation is beyond the limit.
    SpuriousRun(Limit),
    /// The limit was reached first.
    Unknown(Limit),
    /// The program cannot be checked.
    NotChecked,
}

impl Spuriousness {
    /// Its word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Spuriousness::Real => "real",
            Spuriousness::Spurious => "spurious",
            Spuriousness::SpuriousRun(_) => "spurious run",
            Spuriousness::Unknown(_) => "unknown",
            Spuriousness::NotChecked => "not checked",
        }
    }
}

impl Concretization {
    /// The result before any check.
    pub fn unchecked(model: &ModelProgram, counterexample: &Counterexample) -> Concretization {
        Concretization {
            spuriousness: Spuriousness::NotChecked,
            causes: causes(model, counterexample),
            is_slice: model.scope != Scope::All,
        }
    }

    /// Whether the program does not have this violation, or at least not this run.
    pub fn is_spurious(&self) -> bool {
        matches!(self.spuriousness, Spuriousness::Spurious | Spuriousness::SpuriousRun(_))
    }

    /// A real violation has no cause in the abstraction.
    pub(crate) fn decide(&mut self, spuriousness: Spuriousness) {
        self.spuriousness = spuriousness;
        if spuriousness == Spuriousness::Real {
            self.causes.clear();
        }
    }
}

/// The abstractions that the run depends on.
fn causes(model: &ModelProgram, counterexample: &Counterexample) -> Vec<String> {
    let calls = || counterexample.steps.iter().flat_map(|step| &step.calls);
    let is_cause = |part: &&Abstracted| {
        let called = part.stand_in.is_some_and(|function| calls().any(|(called, _)| *called == function));
        let left = match &counterexample.violation {
            ViolationKind::Fault(report) => report.fault == Fault::Range && part.limits.contains(&report.location),
            ViolationKind::NonTermination { .. }
            | ViolationKind::Property { .. }
            | ViolationKind::Starvation { .. }
            | ViolationKind::Leak { .. } => false,
        };
        called || left
    };
    model.abstractions.iter().filter(is_cause).map(ToString::to_string).collect()
}
