//! The results of loop unrolling, in words.

use crate::loop_versioning::{MAX_INSTRUCTIONS, UnrollAttempt, UnrollRefusal, UnrolledLoop};
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::text::location_text;
use std::error::Error;
use std::fmt::{Display, Formatter, Result as FormatResult};

impl Display for UnrollRefusal {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> FormatResult {
        match self {
            UnrollRefusal::Unsupported(what) => write!(formatter, "a loop has {what}"),
            UnrollRefusal::NoStream => formatter.write_str("no loop reads consecutive elements"),
            UnrollRefusal::NoPeriod => {
                formatter.write_str("the constants of a loop do not recur within few iterations")
            }
            UnrollRefusal::TooLarge => write!(formatter, "it would be more than {MAX_INSTRUCTIONS} instructions"),
            UnrollRefusal::Checked => formatter.write_str("overflow is checked at each operation"),
        }
    }
}

impl Error for UnrollRefusal {}

impl UnrollAttempt {
    /// The result in one line.
    pub fn text(&self, program: &Program) -> String {
        match &self.result {
            Err(refusal) => format!("not unrolled: {}: {refusal}", self.process),
            Ok(loops) => {
                let loops: Vec<String> = loops.iter().map(|unrolled| unrolled_text(unrolled, program)).collect();
                format!("unrolled: {}: {}", self.process, loops.join("; "))
            }
        }
    }
}

fn unrolled_text(unrolled: &UnrolledLoop, program: &Program) -> String {
    let UnrolledLoop { location, iterations, elements, recurrence_steps, instructions } = unrolled;
    let place = location_text(program, *location);
    let steps = match recurrence_steps {
        0 => String::new(),
        steps => format!(", {steps} steps of a linear recurrence at once"),
    };
    format!("{elements} elements in {iterations} iterations at {place}{steps}, {instructions} additional instructions")
}
