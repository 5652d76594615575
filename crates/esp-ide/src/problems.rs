//! The problems of each file: what the programs that have the file say of it, each once.

use crate::program::{Location, Program};
use quaject_esp_syntax::diagnostics::Severity;
use std::collections::BTreeMap;

/// A problem of a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// First byte and one past the last.
    pub range: (u32, u32),
    #[allow(missing_docs)]
    pub severity: Severity,
    /// The code, which `qj explain` explains.
    pub code: &'static str,
    /// The cause.
    pub message: String,
    /// The way out.
    pub help: Option<String>,
    /// Further places.
    pub related: Vec<Related>,
    /// The root files of the programs in which it is; empty if it is in all that have the file.
    pub roots: Vec<String>,
}

/// A further place of a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Related {
    #[allow(missing_docs)]
    pub location: Location,
    /// What is there.
    pub text: String,
}

/// The problems of all files that have some.
pub(crate) fn by_file<'p>(programs: impl Iterator<Item = &'p Program>) -> BTreeMap<String, Vec<Problem>> {
    let mut found: BTreeMap<String, Vec<Problem>> = BTreeMap::new();
    let mut programs_of: BTreeMap<&str, usize> = BTreeMap::new();
    for program in programs {
        for file in program.sources.files() {
            *programs_of.entry(&file.name).or_default() += 1;
        }
        for (location, problem) in problems(program) {
            let known = found.entry(location.path).or_default();
            let same = |other: &&mut Problem| {
                (other.range, other.code, &other.message) == (problem.range, problem.code, &problem.message)
            };
            match known.iter_mut().find(same) {
                Some(other) if !other.roots.contains(&program.root) => other.roots.push(program.root.clone()),
                Some(_) => {}
                None => known.push(problem),
            }
        }
    }
    for (path, problems) in &mut found {
        let all = programs_of.get(path.as_str()).copied().unwrap_or(0);
        for problem in problems.iter_mut() {
            if problem.roots.len() >= all {
                problem.roots.clear();
            }
        }
        problems.sort_by(|left, right| (left.range, left.code).cmp(&(right.range, right.code)));
    }
    found
}

fn problems(program: &Program) -> impl Iterator<Item = (Location, Problem)> {
    program.inspection.diagnostics.iter().map(|diagnostic| {
        let location = program.location(diagnostic.span);
        let related = diagnostic
            .labels
            .iter()
            .map(|(span, text)| Related { location: program.location(*span), text: text.clone() })
            .collect();
        let problem = Problem {
            range: location.range,
            severity: diagnostic.severity(),
            code: diagnostic.code.name(),
            message: diagnostic.message.clone(),
            help: diagnostic.help.clone(),
            related,
            roots: vec![program.root.clone()],
        };
        (location, problem)
    })
}
