//! The environment of a program under verification: offers the selected message, accepts every message, and resolves
//! each nondeterministic choice (results of extern functions, entering a fast path) from a list of choices, which
//! [`OpenEnvironment::advance`] enumerates.

use crate::answer_table::AnswerTable;
use crate::domain::{self, Unbounded};
use crate::questions::{NumberedAnswer, Questions};
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_ir::ir::{Boundary, ChannelId, ExternId, Op, Purity};
use quaject_esp_ir::model::ModelProgram;
use rustc_hash::FxHashSet;
use std::sync::Arc;

/// Every message and result that the environment can produce.
#[derive(Debug)]
pub(crate) struct EnvironmentValues {
    /// Per channel: the messages that the environment can send; empty for other channels.
    pub(crate) messages: Vec<Vec<Vec<Datum>>>,
    /// Per extern function: its possible results.
    pub(crate) results: Vec<Vec<Option<Datum>>>,
    /// Per extern function: whether its result depends on its arguments only.
    is_pure: Vec<bool>,
    /// What pure functions have been asked.
    pub(crate) questions: Questions,
    /// The answers that are the same in a whole search.
    table: Option<Arc<AnswerTable>>,
}

impl EnvironmentValues {
    /// Enumerates them; the error lists what has too many values.
    pub(crate) fn new(
        model: &ModelProgram,
        table: Option<Arc<AnswerTable>>,
    ) -> Result<EnvironmentValues, Vec<Unbounded>> {
        let mut missing = Vec::new();
        let mut messages = Vec::new();
        for (index, channel) in model.program.channels.iter().enumerate() {
            let id = ChannelId(index as u32);
            messages.push(match (channel.boundary, is_used(model, id)) {
                (Boundary::FromEnvironment, true) => domain::messages(model, id).unwrap_or_else(|unbounded| {
                    missing.push(unbounded);
                    Vec::new()
                }),
                (Boundary::FromEnvironment, false) | (Boundary::Internal | Boundary::ToEnvironment, _) => Vec::new(),
            });
        }
        let called = called_functions(model);
        let mut results = Vec::new();
        for index in 0..model.program.externs.len() as u32 {
            let id = ExternId(index);
            results.push(if called.contains(&id) {
                domain::results(model, id).unwrap_or_else(|unbounded| {
                    missing.push(unbounded);
                    Vec::new()
                })
            } else {
                Vec::new()
            });
        }
        let is_pure = model.program.externs.iter().map(|function| function.purity == Purity::Pure).collect();
        if !missing.is_empty() {
            return Err(missing);
        }
        Ok(EnvironmentValues { messages, results, is_pure, questions: Questions::default(), table })
    }
}

/// Whether a process has an operation on a channel.
pub(crate) fn is_used(model: &ModelProgram, channel: ChannelId) -> bool {
    model.program.processes.iter().flat_map(|process| &process.sites).any(|site| site.channel == channel)
}

fn called_functions(model: &ModelProgram) -> FxHashSet<ExternId> {
    let bodies = model.program.processes.iter().map(|process| &process.body);
    let bodies = bodies.chain(model.program.functions.iter().map(|function| &function.body));
    let mut called = FxHashSet::default();
    for instruction in bodies.flat_map(|body| &body.blocks).flat_map(|block| &block.instructions) {
        if let Op::CallExtern { function, .. } = &instruction.op {
            called.insert(*function);
        }
    }
    called
}

/// Which messages the environment offers. With [`QuiescenceProbe::AllChannelsOffer`], the classification of a quiescent
/// state finds the instances that the environment could wake.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum QuiescenceProbe {
    /// Every channel from the environment offers its first message.
    AllChannelsOffer,
    /// Only the offered message is available.
    Actual,
}

/// The most general environment, as one step observes it.
#[derive(Debug)]
pub(crate) struct OpenEnvironment {
    environment_values: Arc<EnvironmentValues>,
    /// The message on offer: channel and number.
    offered: Option<(ChannelId, usize)>,
    /// Whether every channel offers its first message.
    probe: QuiescenceProbe,
    /// The choices of the next calls by number, and how many have been used.
    choices: Vec<u32>,
    used: usize,
    /// Per used choice: the question that it answers, if it is the result of a pure function.
    answered: Vec<Option<u32>>,
    /// The number of alternatives of each choice.
    widths: Vec<u32>,
    /// Calls since the last rewind, with their results.
    calls: Vec<(ExternId, Option<Datum>)>,
    /// The answers of pure functions that are given, sorted by question.
    given: Vec<NumberedAnswer>,
    /// Whether a pure function answers questions that are not given by its first result instead of a choice.
    answers_rest: bool,
    /// The questions between [`OpenEnvironment::collect_questions`] and the next rewind.
    asked: Vec<u32>,
    collects_questions: bool,
    /// The arguments of those calls, if they are recorded.
    arguments_log: Option<Vec<Vec<Datum>>>,
}

impl OpenEnvironment {
    pub(crate) fn new(environment_values: Arc<EnvironmentValues>) -> OpenEnvironment {
        OpenEnvironment {
            environment_values,
            offered: None,
            probe: QuiescenceProbe::Actual,
            choices: Vec::new(),
            used: 0,
            answered: Vec::new(),
            widths: Vec::new(),
            calls: Vec::new(),
            given: Vec::new(),
            answers_rest: false,
            asked: Vec::new(),
            collects_questions: false,
            arguments_log: None,
        }
    }

    /// Records the arguments of calls from now on.
    pub(crate) fn record_arguments(&mut self) {
        self.arguments_log = Some(Vec::new());
    }

    /// The arguments of each call since the last rewind; empty if they are not recorded.
    pub(crate) fn arguments_log(&self) -> &[Vec<Datum>] {
        self.arguments_log.as_deref().unwrap_or_default()
    }

    pub(crate) fn environment_values(&self) -> &EnvironmentValues {
        &self.environment_values
    }

    /// Offers this message, or none.
    pub(crate) fn offer(&mut self, message: Option<(ChannelId, usize)>) {
        self.offered = message;
    }

    /// Switches the quiescence probe.
    pub(crate) fn set_quiescence_probe(&mut self, probe: QuiescenceProbe) {
        self.probe = probe;
    }

    /// The next calls take these choices, later ones their first alternative.
    pub(crate) fn choose(&mut self, choices: &[u32]) {
        self.choices.clear();
        self.choices.extend_from_slice(choices);
        self.rewind();
    }

    /// Restarts the same choices.
    pub(crate) fn rewind(&mut self) {
        self.used = 0;
        self.collects_questions = false;
        self.answered.clear();
        self.widths.clear();
        self.calls.clear();
        self.arguments_log.iter_mut().for_each(Vec::clear);
    }

    /// The answers of pure functions to these questions, sorted, from now on. Others are chosen, and alike until the
    /// next rewind.
    pub(crate) fn give(&mut self, answers: &[NumberedAnswer]) {
        self.given.clear();
        self.given.extend_from_slice(answers);
        self.answers_rest = false;
    }

    /// As [`Self::give`]; to all other questions the answer is the first result.
    pub(crate) fn give_all(&mut self, answers: &[NumberedAnswer]) {
        self.give(answers);
        self.answers_rest = true;
    }

    /// The answers that were chosen since the last rewind, in order of questions.
    pub(crate) fn chosen_answers(&self) -> Vec<NumberedAnswer> {
        let chosen = self.answered.iter().zip(&self.choices);
        let mut answers: Vec<NumberedAnswer> =
            chosen.filter_map(|(question, choice)| Some(((*question)?, *choice))).collect();
        answers.sort_unstable();
        answers
    }

    /// Collects the questions up to the next rewind.
    pub(crate) fn collect_questions(&mut self) {
        self.asked.clear();
        self.collects_questions = true;
    }

    /// The answers, given or chosen, to the collected questions and to those that satisfy the predicate, sorted.
    pub(crate) fn answers_in_use(&self, is_kept: &dyn Fn(u32) -> bool) -> Vec<NumberedAnswer> {
        let mut answers = self.chosen_answers();
        answers.extend_from_slice(&self.given);
        answers.retain(|(question, _)| self.asked.contains(question) || is_kept(*question));
        answers.sort_unstable();
        answers
    }

    /// The number of a call's result. A pure function answers the same arguments alike.
    fn choose_result(&mut self, function: ExternId, arguments: &[Datum]) -> u32 {
        let width = self.environment_values.results[function.0 as usize].len() as u32;
        if width < 2 {
            return 0;
        }
        if !self.environment_values.is_pure[function.0 as usize] {
            return self.next_choice(width);
        }
        let table = self.environment_values.table.as_ref();
        if let Some(answer) = table.and_then(|table| table.answer(function, arguments, width)) {
            return answer;
        }
        let question = self.environment_values.questions.number(function, arguments);
        if self.collects_questions && !self.asked.contains(&question) {
            self.asked.push(question);
        }
        if let Ok(at) = self.given.binary_search_by_key(&question, |(question, _)| *question) {
            return self.given[at].1;
        }
        if self.answers_rest {
            return 0;
        }
        match self.answered.iter().position(|answered| *answered == Some(question)) {
            Some(at) => self.choices[at],
            None => {
                let answer = self.next_choice(width);
                self.answered[self.used - 1] = Some(question);
                answer
            }
        }
    }

    /// Calls since the last rewind, with their results.
    pub(crate) fn calls(&self) -> &[(ExternId, Option<Datum>)] {
        &self.calls
    }

    /// The number of choices that were used.
    pub(crate) fn choice_count(&self) -> usize {
        self.used
    }

    /// The choices that were used, except answers of pure functions.
    pub(crate) fn choices(&self) -> Box<[u32]> {
        let chosen = self.choices.iter().zip(&self.answered);
        chosen.filter(|(_, answered)| answered.is_none()).map(|(choice, _)| *choice).collect()
    }

    /// The next choice, of `width` alternatives.
    fn next_choice(&mut self, width: u32) -> u32 {
        if self.used == self.choices.len() {
            self.choices.push(0);
        }
        self.widths.push(width);
        self.answered.push(None);
        self.used += 1;
        self.choices[self.used - 1]
    }

    /// Advances to the next combination of choices; false after the last one.
    pub(crate) fn advance(&mut self) -> bool {
        self.choices.truncate(self.used);
        while let (Some(last), Some(width)) = (self.choices.last_mut(), self.widths.get(self.used.wrapping_sub(1))) {
            *last += 1;
            if *last < *width {
                self.rewind();
                return true;
            }
            self.choices.pop();
            self.used -= 1;
            self.answered.truncate(self.used);
        }
        false
    }
}

impl Environment for OpenEnvironment {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        match self.offered {
            Some((offered, number)) if offered == channel => {
                Offer::Message(&self.environment_values.messages[channel.0 as usize][number])
            }
            Some(_) | None => match (self.probe, self.environment_values.messages[channel.0 as usize].first()) {
                (QuiescenceProbe::AllChannelsOffer, Some(message)) => Offer::Message(message),
                (QuiescenceProbe::AllChannelsOffer, None) | (QuiescenceProbe::Actual, _) => Offer::Pending,
            },
        }
    }

    fn take(&mut self, _channel: ChannelId) {}

    fn readiness(&mut self, _channel: ChannelId) -> Readiness {
        Readiness::Ready
    }

    fn put(&mut self, _channel: ChannelId, _message: &[Datum]) {}

    fn now_ns(&mut self) -> i64 {
        0
    }

    fn declines_path_entry(&mut self) -> bool {
        self.next_choice(2) == 1
    }

    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply {
        let choice = self.choose_result(function, arguments);
        match self.environment_values.results[function.0 as usize].get(choice as usize) {
            Some(result) => {
                self.calls.push((function, result.clone()));
                self.arguments_log.iter_mut().for_each(|arguments_log| arguments_log.push(arguments.to_vec()));
                Reply::Returned(result.clone())
            }
            None => Reply::Unresolved,
        }
    }
}
