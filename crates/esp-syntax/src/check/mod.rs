//! Semantic analysis: from syntax to the checked program. Finds every error of section 7 that is not one of syntax;
//! reads no file itself (a [`Loader`] does) and knows nothing of the IR.

mod abstractions;
mod access;
mod allocation;
mod assigned;
mod body;
mod calls;
mod clock;
mod coerce;
mod communicate;
mod conditional;
mod constants;
mod copies;
mod coverage;
mod enumerations;
mod evaluate;
mod expand;
mod expressions;
mod fastpaths;
mod flow;
mod free;
mod idle;
mod interfaces;
mod last_use;
mod layouts;
mod literals;
mod load;
mod loops;
mod manual;
mod models;
mod modules;
mod names;
mod order;
mod patterns;
mod places;
mod ports;
mod record;
mod relocate;
mod signatures;
mod statements;
mod taint;
mod templates;
mod tries;
mod types;
mod uncalled;
mod unused;
mod uses;
mod walk;

pub use load::{Loader, decode};
pub use uses::{Definition, DefinitionKind, ImportedFile, NameUse, Names};

use crate::diagnostics::{Diagnostic, Severity};
use crate::hir;
use crate::span::{FileId, SourceMap};
use copies::Copies;
use names::Checker;
use std::cell::RefCell;

/// What analysis found.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The checked program; none if there was an error.
    pub program: Option<hir::Program>,
    /// All diagnostics, sorted by location.
    pub diagnostics: Vec<Diagnostic>,
}

/// What a tool learns of a program, with or without errors.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// What was understood. After an error it may be incomplete: parts of it name types, functions or layouts that are
    /// wrong, and it cannot be lowered.
    pub program: hir::Program,
    /// The names in the text.
    pub names: Names,
    /// All diagnostics, sorted by location.
    pub diagnostics: Vec<Diagnostic>,
}

/// Checks the program whose root file is `root`.
pub fn analyze(sources: &mut SourceMap, root: FileId, loader: &mut dyn Loader) -> Analysis {
    analyze_with_fast_paths(sources, root, &[], loader)
}

/// Checks a program together with separate `.fp` files, whose fast paths come after those in the source.
pub fn analyze_with_fast_paths(
    sources: &mut SourceMap,
    root: FileId,
    fast_path_files: &[FileId],
    loader: &mut dyn Loader,
) -> Analysis {
    let mut loaded = load::load(sources, root, fast_path_files, loader);
    let diagnostics = std::mem::take(&mut loaded.diagnostics);
    let copies = Copies::default();
    let mut checker = Checker::new(sources, &copies, &loaded.scopes, loaded.integrity, diagnostics);
    check(&mut checker, &loaded);
    let mut diagnostics = checker.take_diagnostics();
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error);
    diagnostics.truncate(2 * names::MAX_REPORTED);
    Analysis { program: if failed { None } else { Some(checker.into_program()) }, diagnostics }
}

/// Checks a program for a tool: what was understood of it is kept in spite of errors, with the names in its text.
pub fn inspect(sources: &mut SourceMap, root: FileId, loader: &mut dyn Loader) -> Inspection {
    let mut loaded = load::load(sources, root, &[], loader);
    let diagnostics = std::mem::take(&mut loaded.diagnostics);
    let (copies, recorder) = (Copies::default(), RefCell::default());
    let mut checker = Checker::new(sources, &copies, &loaded.scopes, loaded.integrity, diagnostics);
    checker.recorder = Some(&recorder);
    check(&mut checker, &loaded);
    let mut diagnostics = checker.take_diagnostics();
    diagnostics.truncate(2 * names::MAX_REPORTED);
    let names = checker.take_names(&recorder, &loaded);
    Inspection { program: checker.into_program(), names, diagnostics }
}

/// The checks in their order.
fn check<'a>(checker: &mut Checker<'a>, loaded: &'a load::Loaded) {
    let items = conditional::items(checker, loaded);
    names::declare(checker, &items);
    order::resolve(checker);
    signatures::resolve(checker);
    conditional::check_assertions(checker);
    statements::check_bodies(checker);
    uncalled::check(checker);
    if checker.has_reached_error_limit() {
        return;
    }
    interfaces::check(checker);
    models::check(checker);
    fastpaths::check(checker);
    flow::check_functions(checker);
    assigned::check(checker);
    ports::check(checker);
    idle::mark(checker);
    loops::check(checker);
    free::check(checker);
    allocation::check(checker);
    tries::check(checker);
    unused::check(checker);
    types::check_memory(checker);
}

impl Checker<'_> {
    /// The diagnostics, sorted.
    fn take_diagnostics(&mut self) -> Vec<Diagnostic> {
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        diagnostics.sort_by_key(|diagnostic| (diagnostic.span.file, diagnostic.span.start, diagnostic.code));
        diagnostics.dedup();
        diagnostics
    }
}
