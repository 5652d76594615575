//! Variables that are never read (W0907), by the program or by a property of a model.

use super::body::{BodyFacts, Role};
use super::load::Integrity;
use super::names::{Checker, MAX_REPORTED};
use crate::diagnostics::{Code, Diagnostic};
use crate::hir;
use smol_str::SmolStr;

/// Warns about them. A name that begins with `_` is meant not to be read; the counter of a `for` need not be.
pub(super) fn check(checker: &mut Checker) {
    if checker.integrity != Integrity::Whole || checker.errors > 0 {
        return;
    }
    let asked: Vec<(SmolStr, SmolStr)> = checker.models.iter().flat_map(hir::Model::observed).collect();
    let functions = checker.functions.iter().flat_map(|entry| unread(&entry.facts, &|_| false));
    let processes = checker.processes.iter().flat_map(|entry| {
        let name = entry.hir.as_ref().map(|process| &process.name);
        unread(&entry.facts, &|local| asked.iter().any(|(process, asked)| Some(process) == name && asked == local))
    });
    let found: Vec<Diagnostic> = functions.chain(processes).collect();
    found.into_iter().for_each(|diagnostic| checker.report(diagnostic));
}

fn unread(facts: &BodyFacts, is_asked: &dyn Fn(&SmolStr) -> bool) -> Vec<Diagnostic> {
    let unread = facts.locals.iter().filter(|local| {
        local.reads == 0
            && local.role != Role::Counter
            && !local.name.is_empty()
            && !local.name.starts_with('_')
            && !is_asked(&local.name)
    });
    // No more of them are kept, and a text can have very many.
    unread
        .take(MAX_REPORTED)
        .map(|local| {
            let message = match local.role {
                Role::Result => "the result of this call is never read".to_string(),
                Role::Variable | Role::Parameter | Role::Received | Role::Counter => {
                    format!("`{}` is never read", local.name)
                }
            };
            let help = match local.role {
                Role::Result => "assign it, to a name like `_done` if that is meant".to_string(),
                Role::Received => "write `_` instead".to_string(),
                Role::Variable | Role::Parameter | Role::Counter => {
                    format!("drop it, or call it `_{}` if it is meant", local.name)
                }
            };
            Diagnostic::new(Code::W0907, local.span, message).help(help)
        })
        .collect()
}
