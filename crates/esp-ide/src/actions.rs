//! Corrections that the help of a diagnostic states, and formatting. A correction is offered if the text with it has
//! the problem no more and no other error instead.

use crate::edits::{Edit, apply, difference};
use crate::problems::Problem;
use crate::workspace::Workspace;
use quaject_esp_syntax::diagnostics::Severity;
use quaject_esp_syntax::format;
use std::collections::BTreeMap;

/// A correction of a problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Correction {
    /// What it does.
    pub title: String,
    /// The problem that it removes.
    pub problem: Problem,
    /// The replacements in the file of the problem.
    pub edits: Vec<Edit>,
}

/// The number of corrections that are tried for one request: each is an analysis.
const MAX_TRIED: usize = 16;

impl Workspace {
    /// The corrections of the problems that touch a range of a file.
    pub fn corrections(&self, path: &str, range: (u32, u32)) -> Vec<Correction> {
        let Some(text) = self.text(path) else { return Vec::new() };
        let touched = self.problems(path).iter().filter(|known| known.range.0 <= range.1 && range.0 <= known.range.1);
        let candidates = touched.flat_map(|problem| {
            let edits = candidates(&text, problem);
            edits.into_iter().map(move |(title, edit)| (title, edit, problem))
        });
        let mut offered: Vec<Correction> = Vec::new();
        for (title, edit, problem) in candidates.take(MAX_TRIED) {
            let edits = vec![edit];
            if offered.iter().all(|known| known.edits != edits) && self.removes(path, &text, problem, &edits) {
                offered.push(Correction { title, problem: problem.clone(), edits });
            }
        }
        offered
    }

    /// Whether there are fewer problems of this code and no more errors with the replacements.
    fn removes(&self, path: &str, text: &str, problem: &Problem, edits: &[Edit]) -> bool {
        let changed = BTreeMap::from([(path.to_string(), apply(text, edits))]);
        let programs = self.with_texts(&changed);
        let count = |program: &crate::program::Program, code: Option<&str>| {
            let all = program.inspection.diagnostics.iter();
            all.filter(|known| match code {
                Some(code) => known.code.name() == code,
                None => known.severity() == Severity::Error,
            })
            .count()
        };
        let code = Some(problem.code);
        let is_better = |(before, after): &(&_, crate::program::Program)| {
            let has = count(before, code);
            has == 0 || (count(after, code) < has && count(after, None) <= count(before, None))
        };
        !programs.is_empty() && programs.iter().all(is_better)
    }

    /// The replacements that format a file; none if its syntax has errors.
    pub fn format(&self, path: &str) -> Option<Vec<Edit>> {
        let text = self.text(path)?;
        let formatted = format::format(&*self.parse(path)?).ok()?;
        Some(difference(&text, &formatted))
    }
}

/// The replacements that the help of a problem can mean.
fn candidates(text: &str, problem: &Problem) -> Vec<(String, Edit)> {
    let Some(help) = &problem.help else { return Vec::new() };
    let (start, end) = problem.range;
    let Some(written) = text.get(start as usize..end as usize) else { return Vec::new() };
    let quoted: Vec<&str> = help.split('`').skip(1).step_by(2).collect();
    let mut found = Vec::new();
    let mut offer = |title: String, range: (u32, u32), new: &str| {
        found.push((title, Edit::new(range.0..range.1, new)));
    };
    match quoted[..] {
        [near] if help.starts_with("did you mean `") => {
            // A label is meant with its `#` only where the place has one.
            let new = if written.starts_with('#') { near } else { near.trim_start_matches('#') };
            offer(format!("Change to `{new}`"), problem.range, new);
        }
        [new, ..] if help.starts_with("write `") && !new.contains("..") => {
            offer(format!("Write `{new}`"), problem.range, new);
        }
        _ => {}
    }
    if help.starts_with("drop the `$`") {
        let before = start.saturating_sub(1);
        if text.get(before as usize..start as usize) == Some("$") {
            offer("Drop the `$`".to_string(), (before, start), "");
        }
        if let Some(name) = written.strip_prefix('$') {
            offer("Drop the `$`".to_string(), problem.range, name);
        }
        if let Some(compare) = quoted.iter().find(|new| new.starts_with("==")) {
            let from = if text.get(before as usize..start as usize) == Some("$") { before } else { start };
            offer(format!("Write `{compare}`"), (from, end), compare);
        }
    }
    found
}
