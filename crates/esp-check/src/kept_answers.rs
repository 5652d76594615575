//! Which answers of pure extern functions a state keeps. See `pure_answers`.

use crate::answer_table::AnswerTable;
use crate::questions::Question;
use crate::waits::waits;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::step::State;
use quaject_esp_ir::cfg::{region_blocks, region_entries};
use quaject_esp_ir::ir::{BlockId, Body, ExternId, FnId, Op};
use quaject_esp_ir::model::{ModelProgram, Role};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The answers that a state keeps beyond the operations that depend on them.
#[derive(Clone, Default, Debug)]
pub(crate) struct KeptAnswers {
    questions: FxHashSet<Question>,
    /// Functions of which every answer is kept.
    functions: FxHashSet<ExternId>,
    /// The number of repetitions of the search.
    rounds: u32,
}

/// The repetitions of a search that add single questions; the next ones add all of a function.
const MAX_SINGLE_ROUNDS: u32 = 8;

impl KeptAnswers {
    pub(crate) fn is_empty(&self) -> bool {
        self.questions.is_empty()
    }

    /// Whether a state keeps the answer to this question.
    pub(crate) fn keeps(&self, question: &Question, state: &State) -> bool {
        self.functions.contains(&question.0) || self.questions.contains(question) || is_in_registers(&question.1, state)
    }

    /// Keeps the answers to these questions too.
    pub(crate) fn keep(&mut self, contradictory: Vec<Question>) {
        self.rounds += 1;
        if self.rounds > MAX_SINGLE_ROUNDS {
            self.functions.extend(contradictory.iter().map(|(function, _)| *function));
        }
        self.questions.extend(contradictory);
    }
}

/// Whether all arguments are numbers that some registers hold.
fn is_in_registers(arguments: &[Datum], state: &State) -> bool {
    arguments.iter().all(|argument| match argument {
        Datum::Int(value) => state.is_in_register(*value as i64),
        Datum::Bool(value) => state.is_in_register(i64::from(*value)),
        Datum::Pid(instance) => state.is_in_register(i64::from(*instance)),
        Datum::Bytes(_) | Datum::Record(_) | Datum::Union(..) | Datum::Array(_) => false,
    })
}

/// How long the answers of pure functions hold.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerScope<'k> {
    /// For the search, as in a table, of the functions of the table; within a step, of the others. Operations that are
    /// waited at call functions of the table only.
    Table(&'k Arc<AnswerTable>),
    /// For the run, as far as operations that are waited at depend on them, and these.
    Run(&'k KeptAnswers),
}

/// The extern functions that conditions and messages of channel operations call: they are evaluated while the instance
/// waits, to decide which operations are possible.
pub(crate) fn functions_in_operations(model: &ModelProgram) -> BTreeSet<ExternId> {
    let program = &model.program;
    let explored = program.processes.iter().zip(&model.roles).filter(|(_, role)| **role != Role::Omitted);
    let mut called = BTreeSet::new();
    let mut functions = Vec::new();
    let mut add_calls = |body: &Body, blocks: &[BlockId], functions: &mut Vec<FnId>| {
        for block in blocks {
            for instruction in &body.blocks[block.0 as usize].instructions {
                match &instruction.op {
                    Op::CallExtern { function, .. } => _ = called.insert(*function),
                    Op::CallFunction { function, .. } => functions.push(*function),
                    _ => {}
                }
            }
        }
    };
    for (process, _) in explored {
        for entry in waits(process).flat_map(region_entries) {
            add_calls(&process.body, &region_blocks(&process.body, entry), &mut functions);
        }
    }
    let mut seen = FxHashSet::default();
    while let Some(function) = functions.pop() {
        if seen.insert(function) {
            let body = &program.functions[function.0 as usize].body;
            let blocks: Vec<BlockId> = (0..body.blocks.len() as u32).map(BlockId).collect();
            add_calls(body, &blocks, &mut functions);
        }
    }
    called
}
