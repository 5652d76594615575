//! What a translation did to each tick, for readers of its report.

use std::fmt;

/// A remark on one place of the text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The byte of the text that it is about.
    pub offset: u32,
    /// What was done.
    pub event: Event,
}

/// What a translation does to ticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A tick expression was translated.
    Tick {
        /// The nodes that it consists of.
        nodes: usize,
    },
    /// A loop is unrolled while its tick is evaluated.
    Unrolled {
        /// The induction variable.
        variable: String,
        /// The iterations beyond which it stays a loop; none if it cannot.
        limit: Option<u32>,
    },
    /// A loop has more iterations than the limit, or the limit is 0, and is not unrolled.
    Kept {
        /// The induction variable.
        variable: String,
        /// The limit.
        limit: u32,
    },
    /// A condition is decided while its tick is evaluated, and only one branch is generated.
    Decided,
}

impl fmt::Display for Event {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Tick { nodes } => write!(out, "tick of {nodes} nodes"),
            Event::Unrolled { variable, limit: None } => {
                write!(out, "loop over `{variable}` is unrolled: operands of `$` depend on it")
            }
            Event::Unrolled { variable, limit: Some(limit) } => {
                write!(out, "loop over `{variable}` is unrolled, up to {limit} iterations and 16 KB")
            }
            Event::Kept { variable, limit: 0 } => {
                write!(out, "loop over `{variable}` stays a loop: no operand of `$` depends on it")
            }
            Event::Kept { variable, limit } => {
                write!(out, "loop over `{variable}` stays a loop: it has more than {limit} iterations")
            }
            Event::Decided => write!(out, "condition is decided when the tick is evaluated"),
        }
    }
}
