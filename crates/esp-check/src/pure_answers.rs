//! The answers of pure extern functions. Such a function answers the same arguments alike for a whole run, so a program
//! with them stands for many: one for each table of answers. The search chooses an answer when it is first needed.
//!
//! To keep every answer for the rest of the run would make states of all that was ever asked. So at first an answer
//! holds within its step only, or as long as the operations at which instances wait depend on it; a repeated question
//! may be answered otherwise: an over-approximation of the program. A run that ends in a violation is compared with
//! itself. If it gives two answers to one question, the search is repeated with more answers kept
//! (counterexample-guided abstraction refinement; Clarke, Grumberg, Jha, Lu and Veith, 2000): those to the
//! contradictory questions, and those whose arguments are in registers, since the program can ask them again. A program
//! whose verdict does not depend on what was asked before is so searched as if its functions had no memory.

use crate::counterexample::PureAnswer;
use crate::environment::EnvironmentValues;
use crate::kept_answers::KeptAnswers;
use crate::questions::{NumberedAnswer, Question};
use crate::reconstruct::ResolvedStep;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// A run that ends in a violation, if it gives each question one answer.
pub(crate) enum Consistency {
    /// It does: all of its answers.
    Consistent(Vec<NumberedAnswer>),
    /// It gives these questions several answers.
    Contradictory(Vec<Question>),
}

/// Numbered answers as data.
pub(crate) fn answers_as_data(answers: &[NumberedAnswer], values: &EnvironmentValues) -> Vec<PureAnswer> {
    let answer = |(question, answer): &NumberedAnswer| {
        let (function, arguments) = values.questions.get(*question);
        let result = values.results[function.0 as usize][*answer as usize].clone();
        PureAnswer { function, arguments, result }
    };
    answers.iter().map(answer).collect()
}

/// Repeats a search, with the answers kept that its runs have contradicted, until it finds a consistent run or none.
pub(crate) fn search_consistently<T, E>(
    mut search: impl FnMut(&KeptAnswers) -> Result<Searched<T>, E>,
) -> Result<T, E> {
    let mut kept = KeptAnswers::default();
    loop {
        match search(&kept)? {
            Searched::Done(result) => return Ok(result),
            Searched::Contradictory(questions) => kept.keep(questions),
        }
    }
}

/// The result of a search, or what its run has answered in several ways.
pub(crate) enum Searched<T> {
    /// The result holds for functions that answer alike.
    Done(T),
    /// It was found with several answers to these questions.
    Contradictory(Vec<Question>),
}

/// Whether a run gives each question one answer.
pub(crate) fn consistency(run: &[ResolvedStep], values: &EnvironmentValues) -> Consistency {
    let mut answers: FxHashMap<u32, u32> = FxHashMap::default();
    let mut contradictory = BTreeSet::new();
    for (question, answer) in run.iter().flat_map(|resolved| resolved.answers.iter()) {
        if *answers.entry(*question).or_insert(*answer) != *answer {
            contradictory.insert(*question);
        }
    }
    if !contradictory.is_empty() {
        return Consistency::Contradictory(
            contradictory.into_iter().map(|number| values.questions.get(number)).collect(),
        );
    }
    let mut answers: Vec<NumberedAnswer> = answers.into_iter().collect();
    answers.sort_unstable();
    Consistency::Consistent(answers)
}
