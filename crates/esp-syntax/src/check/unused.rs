//! Variables that are never read (W0907).

use super::body::{BodyFacts, Role};
use super::load::Integrity;
use super::names::{Checker, MOST_REPORTED};
use crate::diagnostics::{Code, Diagnostic};

/// Warns about them. A name that begins with `_` is meant not to be read; the counter of a `for` need not be.
pub(super) fn check(checker: &mut Checker) {
    if checker.integrity != Integrity::Whole || checker.errors > 0 {
        return;
    }
    let facts =
        checker.functions.iter().map(|entry| &entry.facts).chain(checker.processes.iter().map(|entry| &entry.facts));
    let found: Vec<Diagnostic> = facts.flat_map(unread).collect();
    found.into_iter().for_each(|diagnostic| checker.report(diagnostic));
}

fn unread(facts: &BodyFacts) -> Vec<Diagnostic> {
    let unread = facts.locals.iter().filter(|local| {
        local.reads == 0 && local.role != Role::Counter && !local.name.is_empty() && !local.name.starts_with('_')
    });
    // No more of them are kept, and a text can have very many.
    unread
        .take(MOST_REPORTED)
        .map(|local| {
            let help = match local.role {
                Role::Received => "write `_` instead".to_string(),
                Role::Variable | Role::Parameter | Role::Counter => {
                    format!("drop it, or call it `_{}` if it is meant", local.name)
                }
            };
            Diagnostic::new(Code::W0907, local.span, format!("`{}` is never read", local.name)).help(help)
        })
        .collect()
}
