//! The results of loop unrolling, in words.

use crate::loop_versioning::{MAX_INSTRUCTIONS, UnrollAttempt, UnrollRefusal, UnrolledLoop};
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::text::location_text;

impl UnrollRefusal {
    fn text(self) -> String {
        match self {
            UnrollRefusal::Unsupported(what) => format!("a loop has {what}"),
            UnrollRefusal::NoStream => "no loop reads consecutive elements".to_string(),
            UnrollRefusal::NoPeriod => "the constants of a loop do not recur within few iterations".to_string(),
            UnrollRefusal::TooLarge => format!("it would be more than {MAX_INSTRUCTIONS} instructions"),
            UnrollRefusal::Checked => "overflow is checked at each operation".to_string(),
        }
    }
}

impl UnrollAttempt {
    /// The result in one line.
    pub fn text(&self, program: &Program) -> String {
        match &self.result {
            Err(refusal) => format!("not unrolled: {}: {}", self.process, refusal.text()),
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
