//! The properties of a model, negated for the emptiness check, and the plan of a search that evaluates their
//! propositions.

use crate::automaton::Automaton;
use crate::exploration_plan::{ExplorationPlan, SuccessorMode};
use crate::kept_answers::{AnswerScope, KeptAnswers};
use crate::ltl::{self, BadProperty};
use crate::options::Symmetry;
use crate::refusal::Refusal;
use quaject_esp_ir::ltl::Proposition;
use quaject_esp_ir::model::ModelProgram;

/// For each of a model's properties, the automaton of its negation, with its atomic propositions.
pub(crate) type Negations = Vec<(Automaton, Vec<Proposition>)>;

pub(crate) fn negations(model: &ModelProgram) -> Result<Negations, Refusal> {
    let negate = |(number, text): (usize, &String)| {
        ltl::negated(&model.program, &model.roles, number, text).map_err(Refusal::Property)
    };
    model.properties.iter().enumerate().map(negate).collect()
}

/// The plan for states that also hold the valuation of a property's atomic propositions; `number` is the property's.
pub(crate) fn plan_with_atoms<'m>(
    model: &'m ModelProgram,
    number: usize,
    atoms: Vec<Proposition>,
    successor_mode: SuccessorMode,
    kept: &KeptAnswers,
) -> Result<ExplorationPlan<'m>, Refusal> {
    let answers = AnswerScope::Run(kept);
    let plan = ExplorationPlan::new(model, successor_mode, Symmetry::Off, answers);
    let mut plan = plan.map_err(Refusal::Unbounded)?.track_deadlines();
    if plan.track_atoms(atoms) {
        return Ok(plan);
    }
    let message = "the property names more than 8 labels of one process".to_string();
    Err(Refusal::Property(BadProperty { number, message, help: None }))
}
