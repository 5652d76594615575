//! The questions that pure extern functions are asked, by number. Knows neither the environment nor the search.

use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::ExternId;
use rustc_hash::FxHashMap;
use std::sync::RwLock;

/// A call of a pure function: the function and its arguments.
pub(crate) type Question = (ExternId, Vec<Datum>);

/// A question by its number, and the number of its result.
pub(crate) type NumberedAnswer = (u32, u32);

/// The questions so far, by number. Shared by the threads of a search.
#[derive(Default, Debug)]
pub(crate) struct Questions(RwLock<(Vec<Question>, FxHashMap<Question, u32>)>);

impl Questions {
    /// The number of a question; adds it if it is new.
    pub(crate) fn number(&self, function: ExternId, arguments: &[Datum]) -> u32 {
        let question = (function, arguments.to_vec());
        if let Some(known) = self.0.read().expect("no thread panics with the questions").1.get(&question) {
            return *known;
        }
        let (questions, numbers) = &mut *self.0.write().expect("no thread panics with the questions");
        *numbers.entry(question).or_insert_with_key(|question| {
            questions.push(question.clone());
            questions.len() as u32 - 1
        })
    }

    /// The question of this number.
    pub(crate) fn get(&self, number: u32) -> Question {
        self.0.read().expect("no thread panics with the questions").0[number as usize].clone()
    }
}
