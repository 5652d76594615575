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
mod relocate;
mod signatures;
mod statements;
mod taint;
mod templates;
mod tries;
mod types;
mod uncalled;
mod unused;
mod walk;

pub use load::{Loader, decode};

use crate::diagnostics::{Diagnostic, Severity};
use crate::hir;
use crate::span::{FileId, SourceMap};
use copies::Copies;
use names::Checker;

/// What analysis found.
#[derive(Clone, Debug)]
pub struct Analysis {
    /// The checked program; none if there was an error.
    pub program: Option<hir::Program>,
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
    let mut diagnostics = std::mem::take(&mut loaded.diagnostics);
    let items = conditional::items(sources, &loaded, &mut diagnostics);
    let copies = Copies::default();
    let mut checker = Checker::new(sources, &copies, &loaded.scopes, loaded.integrity, diagnostics);
    names::declare(&mut checker, &items);
    order::resolve(&mut checker);
    signatures::resolve(&mut checker);
    conditional::check_assertions(&mut checker);
    statements::check_bodies(&mut checker);
    uncalled::check(&mut checker);
    if checker.has_reached_error_limit() {
        return checker.finish();
    }
    interfaces::check(&mut checker);
    models::check(&mut checker);
    fastpaths::check(&mut checker);
    flow::check_functions(&mut checker);
    assigned::check(&mut checker);
    ports::check(&mut checker);
    idle::mark(&mut checker);
    loops::check(&mut checker);
    free::check(&mut checker);
    allocation::check(&mut checker);
    tries::check(&mut checker);
    unused::check(&mut checker);
    types::check_memory(&mut checker);
    checker.finish()
}

impl Checker<'_> {
    /// Sorts the diagnostics and hands the program over if it has no error.
    fn finish(mut self) -> Analysis {
        self.diagnostics.sort_by_key(|diagnostic| (diagnostic.span.file, diagnostic.span.start, diagnostic.code));
        self.diagnostics.dedup();
        let failed = self.diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error);
        let mut diagnostics = std::mem::take(&mut self.diagnostics);
        diagnostics.truncate(2 * names::MAX_REPORTED);
        Analysis { program: if failed { None } else { Some(self.into_program()) }, diagnostics }
    }
}
