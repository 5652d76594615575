//! Coverage of the lines of programs, as text in the format of lcov (geninfo(1)), which editors and `genhtml` read.

use quaject_esp_run::LineCoverage;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// How many runs have executed each line with code, by file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct LineCounts(BTreeMap<PathBuf, BTreeMap<u32, u64>>);

impl LineCounts {
    /// The lines of one run; files are named as in `Program::files`.
    pub(crate) fn of_run(files: &[String], lines: &LineCoverage) -> LineCounts {
        let mut counts = LineCounts::default();
        for ((file, line), executed) in lines {
            if let Some(file) = files.get(usize::from(*file)) {
                let count = counts.0.entry(PathBuf::from(file)).or_default().entry(*line).or_default();
                *count += u64::from(*executed);
            }
        }
        counts
    }

    /// Reads what [`LineCounts::lcov`] has written; paths are relative to `folder`.
    pub(crate) fn parse(text: &str, folder: &Path) -> LineCounts {
        let mut counts = LineCounts::default();
        let mut file = PathBuf::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("SF:") {
                file = folder.join(name);
                // One file has one name, whichever program imports it.
                file = file.canonicalize().unwrap_or(file);
            } else if let Some((line, count)) = line.strip_prefix("DA:").and_then(|rest| rest.split_once(','))
                && let (Ok(line), Ok(count)) = (line.parse(), count.parse::<u64>())
            {
                *counts.0.entry(file.clone()).or_default().entry(line).or_default() += count;
            }
        }
        counts
    }

    /// Adds the counts of other runs.
    pub(crate) fn add(&mut self, other: LineCounts) {
        for (file, lines) in other.0 {
            let own = self.0.entry(file).or_default();
            lines.into_iter().for_each(|(line, count)| *own.entry(line).or_default() += count);
        }
    }

    /// The text for tools.
    pub(crate) fn lcov(&self) -> String {
        let mut text = String::from("TN:\n");
        for (file, lines) in &self.0 {
            // Writing to a string does not fail.
            let _ = writeln!(text, "SF:{}", file.display());
            for (line, count) in lines {
                let _ = writeln!(text, "DA:{line},{count}");
            }
            let executed = lines.values().filter(|count| **count > 0).count();
            let _ = writeln!(text, "LF:{}\nLH:{executed}\nend_of_record", lines.len());
        }
        text
    }

    /// A line for each file, named relative to `folder`, with the numbers of its lines that were never executed; and
    /// one for all files.
    pub(crate) fn summary(&self, folder: &Path) -> String {
        let mut text = String::new();
        let (mut all, mut all_executed) = (0, 0);
        for (file, lines) in &self.0 {
            let executed = lines.values().filter(|count| **count > 0).count();
            (all, all_executed) = (all + lines.len(), all_executed + executed);
            let name = file.strip_prefix(folder).unwrap_or(file).display();
            let _ = write!(text, "{executed} of {} lines  {name}", lines.len());
            let missed: Vec<u32> = lines.iter().filter(|(_, count)| **count == 0).map(|(line, _)| *line).collect();
            let _ = match &missed[..] {
                [] => writeln!(text),
                missed => writeln!(text, ", never executed: {}", ranges(missed, lines)),
            };
        }
        let percent = if all == 0 { 100.0 } else { 100.0 * all_executed as f64 / all as f64 };
        let _ = writeln!(text, "coverage: {percent:.1} % of {all} lines with code");
        text
    }
}

/// Ascending lines as ranges: lines without code do not interrupt one.
fn ranges(missed: &[u32], lines: &BTreeMap<u32, u64>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for line in missed {
        match ranges.last_mut() {
            Some((_, last)) if lines.range(*last + 1..*line).next().is_none() => *last = *line,
            Some(_) | None => ranges.push((*line, *line)),
        }
    }
    let text = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::LineCounts;
    use std::path::Path;

    #[test]
    fn counts_of_runs_are_added_and_survive_their_text() {
        let one = LineCounts::parse(
            "TN:\nSF:a.esp\nDA:1,1\nDA:2,0\nDA:4,0\nDA:9,1\nDA:10,0\nend_of_record\n",
            Path::new("/no"),
        );
        let mut both = one.clone();
        both.add(LineCounts::parse("SF:a.esp\nDA:1,3\nDA:10,1\nSF:b.esp\nDA:7,0\n", Path::new("/no")));
        assert_eq!(both, LineCounts::parse(&both.lcov(), Path::new("/no")));
        assert_eq!(
            both.summary(Path::new("/no")),
            "3 of 5 lines  a.esp, never executed: 2-4\n0 of 1 lines  b.esp, never executed: 7\n\
             coverage: 50.0 % of 6 lines with code\n"
        );
        assert!(both.lcov().contains("SF:/no/a.esp\nDA:1,4\n"), "{}", both.lcov());
    }
}
