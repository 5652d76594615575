//! Adaptive optimisation: forms a fast path for the most frequent communications of a running program, and the map
//! between the states of both forms (on-stack replacement). The decision when to do so is the runtime's.

use crate::suggest::suggest_within;
use crate::{Checked, CompileError, Limits, Loader, Profile, Source, SuggestError, check, paths, verified};
use quaject_esp_exec::interpreter::OsrMap;
use quaject_esp_ir::ir::Program;
use quaject_esp_opt::path::{self, form_paths};

/// The fuel of one attempt: the program is suspended during it.
const MAX_FUEL: usize = 50_000;

/// A program with fast paths from profiles.
#[derive(Debug)]
pub struct AdaptedProgram {
    /// The name of the path that is new.
    pub name: String,
    /// Its members, the trigger first.
    pub members: Vec<String>,
    /// The specifications of all paths, the new one last.
    pub paths: Vec<String>,
    /// The program with the paths.
    pub program: Program,
    /// Where places of the program are in it.
    pub osr_map: OsrMap,
}

/// Forms a fast path for the most frequent round of a profile, besides those formed before. `plain` is the source,
/// compiled without fast paths.
///
/// # Errors
/// Why there is none.
pub fn form_hot_path(
    source: &Source,
    loader: &mut dyn Loader,
    plain: &Program,
    checked: bool,
    profile: &Profile,
    before: &[String],
) -> Result<AdaptedProgram, SuggestError> {
    let mut with_paths = source.clone();
    for text in before {
        with_paths.root.bytes.extend(format!("\n{text}").into_bytes());
    }
    let suggestion = suggest_within(&with_paths, loader, profile, MAX_FUEL)?;
    with_paths.root.bytes.extend(format!("\n{}", suggestion.text).into_bytes());
    let Checked { sources, program, .. } = check(with_paths, loader);
    let program = program.ok_or(SuggestError::Compile(CompileError::Diagnostics))?;
    let mut specifications = paths::specifications(&program.fast_paths, plain, &sources);
    let paths: Vec<String> = before.iter().cloned().chain([suggestion.text]).collect();
    // Others are the program's own.
    specifications.retain(|specification| {
        let head = format!("fastpath {} {{", specification.name);
        paths.iter().any(|text| text.starts_with(&head))
    });
    let limits = Limits { fuel: MAX_FUEL, ..Limits::default() };
    let made = form_paths(plain, &specifications, path::Options { checked, limits, ..path::Options::default() });
    if made.program.paths.is_empty() {
        let report: Vec<String> = made.path_attempts.iter().map(|attempt| attempt.text(plain)).collect();
        return Err(SuggestError::PathRefused(report.join("\n")));
    }
    let osr_map = OsrMap::new(plain, &made.without, &made.program);
    let program = verified(made.program);
    Ok(AdaptedProgram { name: suggestion.name, members: suggestion.members, paths, program, osr_map })
}
