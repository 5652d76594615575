//! Attribution of the lines of the generated C file to processes, functions and the scheduler, so that a size report
//! can attribute machine code to its source. Markers are written between the lines and removed when the file is
//! complete.

/// The part of the program that a line of the C file belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Owner {
    /// A process, by its number in order of text.
    Process(usize),
    /// A pure function, by its number in order of text.
    Function(usize),
    /// The scheduler, the entry points, and code that several processes share.
    Scheduler,
}

/// First word of a marker line; marker lines are not part of the finished file.
const MARKER: &str = "#owner ";

/// The marker line that attributes the lines after it.
pub(crate) fn owner_line(owner: Owner) -> String {
    match owner {
        Owner::Process(index) => format!("{MARKER}process {index}\n"),
        Owner::Function(index) => format!("{MARKER}function {index}\n"),
        Owner::Scheduler => format!("{MARKER}scheduler\n"),
    }
}

/// The owner that a marker line names; none if the line is not a marker.
pub(crate) fn parse_owner_line(line: &str) -> Option<Owner> {
    let words = line.strip_prefix(MARKER)?;
    let (kind, number) = words.split_once(' ').unwrap_or((words, "0"));
    let number = number.parse().unwrap_or(0);
    Some(match kind {
        "process" => Owner::Process(number),
        "function" => Owner::Function(number),
        _ => Owner::Scheduler,
    })
}
