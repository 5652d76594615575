//! The counts of a run: lines of the kernel's log (`kernel/src/counts.rs`), and the table of them.

use std::fmt::Write as _;

/// What a line of counts begins with.
pub(super) const PREFIX: &str = "count: ";

/// The calls of one number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CallCount {
    name: String,
    /// Those that ran to their end without another thread in between.
    calls: u64,
    /// Those that let another thread run.
    switched: u64,
    /// The instructions of the former, and the least of one.
    instructions: u64,
    least: u64,
}

impl CallCount {
    /// Reads what stands behind the prefix.
    pub(super) fn read(line: &str) -> Option<CallCount> {
        let (name, numbers) = line.split_once(' ')?;
        let numbers: Vec<u64> = numbers.split(' ').map_while(|number| number.parse().ok()).collect();
        let [calls, switched, instructions, least] = numbers[..] else { return None };
        Some(CallCount { name: name.to_owned(), calls, switched, instructions, least })
    }

    fn mean(&self) -> f64 {
        self.instructions as f64 / self.calls.max(1) as f64
    }

    /// As an object.
    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "call": self.name,
            "calls": self.calls,
            "switched": self.switched,
            "instructions": self.instructions,
            "least": self.least,
        })
    }
}

/// The table, a line for each call, those with the largest sum first.
pub(super) fn table(counts: &[CallCount]) -> String {
    let mut sorted: Vec<&CallCount> = counts.iter().collect();
    sorted.sort_by_key(|count| std::cmp::Reverse(count.instructions));
    let mut table = format!("{:<20} {:>10} {:>10} {:>12} {:>10}\n", "call", "calls", "switched", "mean", "least");
    for count in sorted {
        let CallCount { name, calls, switched, least, .. } = count;
        let mean = count.mean();
        writeln!(table, "{name:<20} {calls:>10} {switched:>10} {mean:>12.1} {least:>10}")
            .expect("a string takes everything");
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read() {
        let count = CallCount::read("read 2 1 700 300").expect("it is well-formed");
        let expected = CallCount { name: "read".into(), calls: 2, switched: 1, instructions: 700, least: 300 };
        assert_eq!(count, expected);
        for line in ["", "read", "read 1 2 3", "read 1 2 3 x", "read 1 2 3 4 5"] {
            assert_eq!(CallCount::read(line), None, "{line}");
        }
    }

    #[test]
    fn the_table_begins_with_the_largest_sum() {
        let counts = ["a 1 0 10 10", "b 4 2 50 11"].map(|line| CallCount::read(line).expect("it is well-formed"));
        let table = table(&counts);
        let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["call", "calls", "switched", "mean", "least"]);
        assert_eq!(lines[1], ["b", "4", "2", "12.5", "11"]);
        assert_eq!(lines[2], ["a", "1", "0", "10.0", "10"]);
    }
}
