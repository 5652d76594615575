//! A fast path for a program that runs: of what it has communicated in a while, a form of the program with that path,
//! and where its places are in the other. Says nothing of when that is worth while.

use crate::suggest::suggest_within;
use crate::{Checked, Limits, Loader, NoOutput, NoSuggestion, Profile, Source, check, paths, verified};
use quaject_esp_exec::interpreter::OsrMap;
use quaject_esp_ir::ir::Program;
use quaject_esp_opt::path::{self, extract};

/// How much work one attempt may be: the program stands still meanwhile.
const MAX_FUEL: usize = 50_000;

/// A program with fast paths that were found.
#[derive(Debug)]
pub struct Formed {
    /// The name of the path that is new.
    pub name: String,
    /// Who is on it, the trigger first.
    pub members: Vec<String>,
    /// The specifications of all paths, the new one last.
    pub paths: Vec<String>,
    /// The program with the paths.
    pub program: Program,
    /// Where places of the program are in it.
    pub seams: OsrMap,
}

/// Makes a fast path of what a profile says is done most, beside those that were found before. `plain` is the source,
/// compiled without fast paths.
///
/// # Errors
/// Why there is none.
pub fn form(
    source: &Source,
    loader: &mut dyn Loader,
    plain: &Program,
    checked: bool,
    profile: &Profile,
    before: &[String],
) -> Result<Formed, NoSuggestion> {
    let mut with_paths = source.clone();
    for text in before {
        with_paths.root.bytes.extend(format!("\n{text}").into_bytes());
    }
    let suggestion = suggest_within(&with_paths, loader, profile, MAX_FUEL)?;
    with_paths.root.bytes.extend(format!("\n{}", suggestion.text).into_bytes());
    let Checked { sources, program, .. } = check(with_paths, loader);
    let program = program.ok_or(NoSuggestion::Program(NoOutput::Wrong))?;
    let mut specifications = paths::specifications(&program.fast_paths, plain, &sources);
    let paths: Vec<String> = before.iter().cloned().chain([suggestion.text]).collect();
    // The program may name some itself.
    specifications.retain(|specification| {
        let head = format!("fastpath {} {{", specification.name);
        paths.iter().any(|text| text.starts_with(&head))
    });
    let limits = Limits { fuel: MAX_FUEL, ..Limits::default() };
    let made = extract(plain, &specifications, path::Options { checked, limits, ..path::Options::default() });
    if made.program.paths.is_empty() {
        let report: Vec<String> = made.extractions.iter().map(|extraction| extraction.text(plain)).collect();
        return Err(NoSuggestion::Refused(report.join("\n")));
    }
    let seams = OsrMap::new(plain, &made.without, &made.program);
    let program = verified(made.program);
    Ok(Formed { name: suggestion.name, members: suggestion.members, paths, program, seams })
}
