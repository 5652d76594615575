//! Verdicts as JSON. Every engine and every kind of check writes one object with the same keys; a key that does not
//! apply is null. Keys under an earlier name are written too, for one version.

use super::{Answer, Report, Verdict};
use crate::counterexample::TraceStep;
use crate::liveness::ProductStatistics;
use crate::options::Options;
use crate::spuriousness::Concretization;
use quaject_esp_exec::datum::print_message;
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use serde_json::{Value, json};

/// The engine that produced a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Engine {
    /// This crate's search.
    Builtin,
    /// Spin.
    Spin,
}

/// The question that a verdict answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CheckKind {
    /// Whether a model has a violation.
    Model,
    /// Whether the program with fast paths refines the program without.
    Refinement,
}

/// The verdict on one model.
#[derive(Clone, PartialEq, Debug)]
pub struct VerdictRecord {
    /// The model's name.
    pub model: Option<String>,
    /// The engine.
    pub engine: Engine,
    /// The question.
    pub check: CheckKind,
    /// `holds`, `violated` or `unfinished`.
    pub verdict: &'static str,
    /// The limit at which the check ended.
    pub limit: Option<String>,
    /// The model's properties with their answers.
    pub properties: Vec<(String, Answer)>,
    /// The answer for absence of starvation, or `not asked`.
    pub starvation_freedom: &'static str,
    /// States visited; of a refinement check, those of the implementation.
    pub states: u64,
    /// States of the specification.
    pub spec_states: Option<u64>,
    /// Transitions taken.
    pub transitions: Option<u64>,
    /// Steps from the initial state to the farthest state.
    pub depth: Option<u32>,
    /// The products with the properties' automata.
    pub product: Option<ProductStatistics>,
    /// Time used.
    pub seconds: f64,
    /// Memory used.
    pub bytes: Option<u64>,
    /// A bound on the omission probability of hash compaction.
    pub omission: Option<f64>,
    /// The restrictions of the environment.
    pub restrictions: Vec<String>,
    /// Lines that no run reaches.
    pub unreached: Vec<String>,
    /// The coverage of fast paths.
    pub paths: Vec<PathRecord>,
    /// The violation in a word.
    pub problem: Option<&'static str>,
    /// The violation in a sentence.
    pub explanation: Option<String>,
    /// Of a mismatch where a path is left: the instances in no reachable state.
    pub never: Option<Vec<String>>,
    /// The first step of the cycle of an infinite run.
    pub cycle: Option<usize>,
    /// Whether the violation is one of the program itself.
    pub spuriousness: Option<&'static str>,
    /// The abstractions that the violation depends on.
    pub causes: Option<Vec<String>>,
    /// Other violations of the model that its program does not have.
    pub spurious: Vec<Value>,
    /// If only spurious violations were found: the verdict on everything else.
    pub beyond: Option<&'static str>,
    /// The run, as `run_to_json` writes it.
    pub run: Option<Vec<Value>>,
}

/// The coverage of a fast path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathRecord {
    /// Its name.
    pub name: String,
    /// Whether it was entered.
    pub is_entered: bool,
    /// The exits that were taken, and all exits, if the engine counts them.
    pub exits: Option<(usize, usize)>,
}

impl Engine {
    /// Its word in JSON.
    fn name(self) -> &'static str {
        match self {
            Engine::Builtin => "builtin",
            Engine::Spin => "spin",
        }
    }
}

impl CheckKind {
    /// Its word in JSON.
    fn name(self) -> &'static str {
        match self {
            CheckKind::Model => "model",
            CheckKind::Refinement => "refinement",
        }
    }
}

impl VerdictRecord {
    /// A record without optional facts.
    pub fn new(model: &ModelProgram, check: CheckKind, verdict: &'static str) -> VerdictRecord {
        VerdictRecord {
            model: model.name.as_ref().map(ToString::to_string),
            engine: Engine::Builtin,
            check,
            verdict,
            limit: None,
            properties: Vec::new(),
            starvation_freedom: "not asked",
            states: 0,
            spec_states: None,
            transitions: None,
            depth: None,
            product: None,
            seconds: 0.0,
            bytes: None,
            omission: None,
            restrictions: Vec::new(),
            unreached: Vec::new(),
            paths: Vec::new(),
            problem: None,
            explanation: None,
            never: None,
            cycle: None,
            spuriousness: None,
            causes: None,
            spurious: Vec::new(),
            beyond: None,
            run: None,
        }
    }

    /// The object.
    pub fn to_json(&self) -> Value {
        let property =
            |(property, answer): &(String, Answer)| json!({ "property": property, "verdict": answer.name() });
        json!({
            "model": self.model,
            "engine": self.engine.name(),
            "check": self.check.name(),
            "verdict": self.verdict,
            "limit": self.limit,
            "properties": self.properties.iter().map(property).collect::<Vec<_>>(),
            "starvation_freedom": self.starvation_freedom,
            "states": self.states,
            "spec_states": self.spec_states,
            "transitions": self.transitions,
            "depth": self.depth,
            "product_states": self.product.map(|product| product.states),
            "product_transitions": self.product.map(|product| product.transitions),
            "product_bytes": self.product.map(|product| product.bytes),
            "seconds": self.seconds,
            "bytes": self.bytes,
            "omission": self.omission,
            "restrictions": self.restrictions,
            "unreached": self.unreached,
            "paths": self.paths.iter().map(PathRecord::to_json).collect::<Vec<_>>(),
            "problem": self.problem,
            "explanation": self.explanation,
            "never": self.never,
            "cycle": self.cycle,
            "spuriousness": self.spuriousness,
            "causes": self.causes,
            "spurious": self.spurious,
            "beyond": self.beyond,
            "run": self.run,
            // Earlier names of `starvation_freedom`, `transitions`, `spec_states`, `spuriousness` and `causes`.
            "progress": self.starvation_freedom,
            "steps": self.transitions,
            "plain_states": self.spec_states,
            "label": self.spuriousness,
            "approximations": self.causes,
        })
    }
}

impl PathRecord {
    fn to_json(&self) -> Value {
        let (taken, exits) = self.exits.unzip();
        json!({
            "name": self.name,
            "entered": self.is_entered,
            "exits_taken": taken,
            "exits": exits,
            // Earlier names of `exits_taken` and `exits`.
            "left": taken,
            "ways_out": exits,
        })
    }
}

impl Report {
    /// The record of this report.
    pub fn record(
        &self,
        model: &ModelProgram,
        options: &Options,
        concretization: Option<&Concretization>,
    ) -> VerdictRecord {
        let program = &model.program;
        let (limit, counterexample) = match &self.verdict {
            Verdict::Holds => (None, None),
            Verdict::Violated(counterexample) => (None, Some(counterexample)),
            Verdict::Unfinished(unfinished) => (Some(unfinished.name().to_string()), None),
        };
        VerdictRecord {
            limit,
            properties: self.properties.clone(),
            starvation_freedom: self.starvation_freedom.map_or("not asked", Answer::name),
            states: self.states,
            transitions: Some(self.transitions),
            depth: Some(self.depth),
            product: (self.product.states > 0).then_some(self.product),
            seconds: self.elapsed.as_secs_f64(),
            bytes: Some(self.bytes),
            omission: self.omission(options),
            restrictions: self.restrictions.clone(),
            unreached: self.unreached.iter().map(|at| super::line_or_place(program, *at)).collect(),
            problem: counterexample.map(|counterexample| counterexample.violation.name()),
            explanation: counterexample.map(|counterexample| counterexample.violation.text(program)),
            cycle: counterexample.and_then(|counterexample| counterexample.cycle),
            spuriousness: concretization.map(|concretization| concretization.spuriousness.name()),
            causes: concretization.map(|concretization| concretization.causes.clone()),
            run: counterexample.map(|counterexample| run_to_json(program, &counterexample.steps)),
            ..VerdictRecord::new(model, CheckKind::Model, self.verdict.name())
        }
    }
}

/// The steps of a run.
pub(crate) fn run_to_json(program: &Program, steps: &[TraceStep]) -> Vec<Value> {
    let step = |traced: &TraceStep| {
        let message = traced.message.as_ref().map(|(channel, message)| {
            let channel = &program.channels[channel.0 as usize];
            let values = print_message(program, &channel.payload, message);
            json!({ "channel": channel.name.as_str(), "values": values })
        });
        let at: Vec<String> = traced.locations.iter().map(|at| location_text(program, *at)).collect();
        json!({ "step": traced.step.to_string(), "message": message, "at": at })
    };
    steps.iter().map(step).collect()
}
