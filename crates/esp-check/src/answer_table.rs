//! The answers of pure extern functions as one table for a whole search, and the tables in turn. A comparison of two
//! programs needs one table for both: an answer of one program is an answer of the other. An entry is added with its
//! first answer when the question is first asked, so the tables that are tried differ in answers that matter only.

use crate::questions::Question;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::ExternId;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::RwLock;

/// The maximum number of tables that are tried.
pub(crate) const MAX_ANSWER_TABLES: u32 = 1 << 12;

/// A table of answers to the questions so far.
#[derive(Debug)]
pub(crate) struct AnswerTable {
    /// The functions whose answers are in the table.
    functions: BTreeSet<ExternId>,
    entries: RwLock<Entries>,
}

#[derive(Default, Debug)]
struct Entries {
    /// In order of the first time each was asked.
    order: Vec<TableEntry>,
    numbers: FxHashMap<Question, usize>,
}

#[derive(Debug)]
struct TableEntry {
    question: Question,
    /// The number of the result, of `width` results.
    answer: u32,
    width: u32,
}

impl AnswerTable {
    /// The first table: every answer is the first result.
    pub(crate) fn new(functions: BTreeSet<ExternId>) -> AnswerTable {
        AnswerTable { functions, entries: RwLock::default() }
    }

    /// The answer to a question, the number of one of `width` results; none if the function is not in the table.
    pub(crate) fn answer(&self, function: ExternId, arguments: &[Datum], width: u32) -> Option<u32> {
        if !self.functions.contains(&function) {
            return None;
        }
        let question = (function, arguments.to_vec());
        let entries = &mut *self.entries.write().expect("no thread panics with the table");
        if let Some(known) = entries.numbers.get(&question) {
            return Some(entries.order[*known].answer);
        }
        entries.numbers.insert(question.clone(), entries.order.len());
        entries.order.push(TableEntry { question, answer: 0, width });
        Some(0)
    }

    /// Changes to the next table; false after the last one. The search is repeated with it from the start: it asks the
    /// questions that are kept in the same order, because up to the changed one their answers are the same.
    pub(crate) fn advance(&self) -> bool {
        let Entries { order, numbers } = &mut *self.entries.write().expect("no thread panics with the table");
        while let Some(last) = order.last_mut() {
            last.answer += 1;
            if last.answer < last.width {
                return true;
            }
            numbers.remove(&last.question);
            order.pop();
        }
        false
    }
}
