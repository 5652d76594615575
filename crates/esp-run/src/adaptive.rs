//! `qj run --adaptive`: profiles a run, forms a fast path of its most frequent iteration, continues with it by on-stack
//! replacement, and drops it when it is no longer profitable.
//!
//! ```text
//!   plain run ──delay──> profile ──PROFILED──> form ──> run with the path, measured by windows
//!     ^                                      │ none             │ it is not profitable
//!     └──────────────────────────────────────┴──────────────────┘
//! ```
//!
//! Time is counted in communications of the scheduler, because a path saves these: while a path is profitable they are
//! rare, and so are the checks. The run changes its form only between two steps, at which every instance is at a
//! location that both forms have.

use crate::error::HostError;
use crate::machine_code::MachineCode;
use crate::outcome::{RunOutcome, RunReport};
use crate::ports::Ports;
use crate::run::{BUDGET, after, close, open, too_large};
use crate::settings::{Settings, reserve};
use crate::signals::Signals;
use quaject_esp::{AdaptedProgram, Loader, Profile, Source, SuggestError, form_hot_path};
use quaject_esp_exec::footprint::data_bytes;
use quaject_esp_exec::interpreter::{Interpreter, OsrDirection};
use quaject_esp_exec::path_counters::Tally;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::Program;

/// Communications before the first profile: shorter runs are not changed.
const FIRST_DELAY: u64 = 4_096;
/// Communications of a profile.
const PROFILED: u64 = 4_096;
/// The maximum number of earlier profitable paths that the next form has in addition to the new one.
const MAX_KEPT_PATHS: usize = 3;
/// The minimum number of saved communications for which a path is kept.
const MIN_SAVED: u64 = PROFILED / 8;
/// Communications and entries of one window in which the profit of a path is measured.
const WINDOW: u64 = 4_096;
/// The factor by which the delay grows after an unprofitable path.
const BACK_OFF: u64 = 4;
/// A path was profitable if it has saved this multiple of the communications of its delay.
const PAID_BACK: u64 = 256;
/// A path is profitable if it uses this much fuel per communication outside of it, regardless of its number of exits.
const LONG_RUN: u64 = 16;
/// Fuel between two checks of the counts: some thousand communications.
const STRIDE: u64 = 8_192;
/// The maximum fuel between two attempts to change the form, to which it grows from one repeatedly, so that no period
/// of the program makes all attempts fail; and the maximum number of attempts.
const MAX_ATTEMPT_FUEL: u64 = 64;
const MAX_ATTEMPTS: u64 = 100_000;

/// A run in progress.
struct Run<'r, 'w> {
    settings: &'r Settings,
    ports: &'r mut Ports<'w>,
    signals: &'r Signals,
    report: &'r mut dyn FnMut(&str),
    /// Fuel since pending output was last written.
    unflushed: u64,
    /// Communications of the scheduler in earlier forms.
    earlier_communications: u64,
}

/// Runs a program and forms fast paths meanwhile. `program` is the source, compiled without fast paths; `report`
/// receives a line for each path that is formed or dropped.
///
/// # Errors
/// Why the run could not begin.
pub fn adapt(
    program: &Program,
    settings: &Settings,
    source: &Source,
    loader: &mut dyn Loader,
    report: &mut dyn FnMut(&str),
) -> Result<RunReport, HostError> {
    reserve(program, settings)?;
    let mut plain = Interpreter::new(program, settings.checks).map_err(too_large)?;
    use_machine_code(&mut plain, program, settings)?;
    let mut ports = open(program, settings)?;
    let signals = Signals::listen()?;
    let mut run =
        Run { settings, ports: &mut ports, signals: &signals, report, unflushed: 0, earlier_communications: 0 };
    let outcome = run.alternate(program, plain, source, loader);
    Ok(close(ports, outcome))
}

impl Run<'_, '_> {
    /// Runs without a path and with one, in turn, to the end.
    fn alternate<'p>(
        &mut self,
        program: &'p Program,
        mut plain: Interpreter<'p>,
        source: &Source,
        loader: &mut dyn Loader,
    ) -> RunOutcome {
        let mut delay = FIRST_DELAY;
        let mut kept: Vec<String> = Vec::new();
        loop {
            let until = plain.tally().communications.saturating_add(delay);
            if let Some(ending) = self.drive(&mut plain, |tally| tally.communications >= until) {
                return ending;
            }
            plain.profile();
            let until = plain.tally().communications + PROFILED;
            if let Some(ending) = self.drive(&mut plain, |tally| tally.communications >= until) {
                return ending;
            }
            let profile = plain.take_profile().expect("it was asked for");
            let count = profile.order().len();
            let profile = Profile::new(program, &profile);
            let begun = self.earlier_communications + plain.tally().communications;
            let formed = match self.formed(program, source, loader, &profile, &kept) {
                Ok(formed) => formed,
                Err(reason) => {
                    self.say(begun, &format!("no fast path: {reason}"));
                    delay = delay.saturating_mul(BACK_OFF);
                    continue;
                }
            };
            let (fast, ending) = self.change_form(&mut plain, &formed.program, &formed, OsrDirection::ToFast);
            let Some(mut fast) = fast else {
                match ending {
                    Some(ending) => return ending,
                    None => {
                        self.say(
                            begun,
                            &format!("no fast path: the program is never at a location that `{}` has", formed.name),
                        );
                        delay = delay.saturating_mul(BACK_OFF);
                        continue;
                    }
                }
            };
            self.say(begun, &format!("formed `{}`: {}", formed.name, formed.members.join(", ")));
            self.earlier_communications += plain.tally().communications;
            let mut profit = ProfitMeasure::new(&profile, count);
            let dropped = self.run_while_profitable(&mut fast, &mut profit);
            let tally = fast.tally();
            let counts = counts(tally);
            let ending = match dropped {
                Some(ending) => Some(ending),
                None => {
                    let (back, ending) = self.change_form(&mut fast, program, &formed, OsrDirection::ToPlain);
                    if let Some(back) = back {
                        plain = back;
                    } else if ending.is_none() {
                        // The run continues with its present path.
                        return self.drive(&mut fast, |_| false).unwrap_or(RunOutcome::Exit(0));
                    }
                    ending
                }
            };
            self.earlier_communications += fast.tally().communications;
            if let Some(ending) = ending {
                self.say(self.earlier_communications, &format!("`{}` was kept: {counts}", formed.name));
                return ending;
            }
            self.say(self.earlier_communications, &format!("dropped `{}`: {counts}", formed.name));
            let saved = profit.saved(tally);
            kept = formed.paths;
            if saved < MIN_SAVED {
                kept.pop();
            }
            kept.drain(..kept.len().saturating_sub(MAX_KEPT_PATHS));
            let is_paid = saved >= delay.saturating_mul(PAID_BACK);
            delay = if is_paid { FIRST_DELAY } else { delay.saturating_mul(BACK_OFF) };
        }
    }

    /// Forms the path of a profile, together with the earlier profitable ones if possible.
    fn formed(
        &mut self,
        program: &Program,
        source: &Source,
        loader: &mut dyn Loader,
        profile: &Profile,
        kept: &[String],
    ) -> Result<AdaptedProgram, String> {
        let is_checked = self.settings.checks == Checks::On;
        let with_earlier = form_hot_path(source, loader, program, is_checked, profile, kept);
        let formed = match with_earlier {
            Err(_) if !kept.is_empty() => form_hot_path(source, loader, program, is_checked, profile, &[]),
            formed => formed,
        };
        let formed = formed.map_err(|reason| no_path(&reason))?;
        if data_bytes(&formed.program) as u64 > self.settings.memory.0 {
            return Err("with one the data takes more than `--memory`".to_string());
        }
        Ok(formed)
    }

    /// Runs with a path while it is profitable, or until the end.
    fn run_while_profitable(&mut self, fast: &mut Interpreter<'_>, profit: &mut ProfitMeasure) -> Option<RunOutcome> {
        loop {
            let from = fast.tally();
            let is_over = |tally: Tally| {
                let window = since(tally, from);
                window.communications + window.entries >= WINDOW
            };
            if let Some(ending) = self.drive(fast, is_over) {
                return Some(ending);
            }
            if !profit.is_profitable(since(fast.tally(), from)) {
                return None;
            }
        }
    }

    /// Continues the run with the other form of its program. Returns the outcome instead if the run ends before that,
    /// and nothing if no attempt succeeds.
    fn change_form<'q>(
        &mut self,
        from: &mut Interpreter<'_>,
        to: &'q Program,
        formed: &AdaptedProgram,
        direction: OsrDirection,
    ) -> (Option<Interpreter<'q>>, Option<RunOutcome>) {
        for attempt in 0..MAX_ATTEMPTS {
            match from.replace_on_stack(to, self.settings.checks, &formed.osr_map, direction) {
                Ok(Some(mut moved)) => {
                    return match use_machine_code(&mut moved, to, self.settings) {
                        Ok(()) => (Some(moved), None),
                        Err(_) => (None, None),
                    };
                }
                Ok(None) => {}
                Err(_) => return (None, None),
            }
            if let Some(ending) = self.run_for(from, 1 + attempt % MAX_ATTEMPT_FUEL) {
                return (None, Some(ending));
            }
        }
        (None, None)
    }

    /// Runs until `is_over` holds for the counts, or until the end.
    fn drive(&mut self, interpreter: &mut Interpreter<'_>, is_over: impl Fn(Tally) -> bool) -> Option<RunOutcome> {
        while !is_over(interpreter.tally()) {
            if let Some(ending) = self.run_for(interpreter, STRIDE) {
                return Some(ending);
            }
        }
        None
    }

    fn run_for(&mut self, interpreter: &mut Interpreter<'_>, fuel: u64) -> Option<RunOutcome> {
        match interpreter.run(self.ports, fuel) {
            Outcome::Budget if self.unflushed < BUDGET => {
                self.unflushed += fuel;
                None
            }
            outcome => {
                self.unflushed = 0;
                after(outcome, self.ports, self.signals)
            }
        }
    }

    fn say(&mut self, communications: u64, what: &str) {
        (self.report)(&format!("adaptive: after {communications} communications: {what}"));
    }
}

/// The measurement of the profit of a path.
struct ProfitMeasure {
    /// Communications of a round without a path.
    round: f64,
    /// The limit on communications outside of the path for each entry; set after the first window.
    max_outside: Option<f64>,
}

impl ProfitMeasure {
    fn new(profile: &Profile, communications: usize) -> ProfitMeasure {
        ProfitMeasure { round: communications as f64 / profile.round_count().max(1) as f64, max_outside: None }
    }

    /// Whether the path was profitable in this window. The first window must have a tenth fewer communications per
    /// entry than a round without the path; a later one at most half of those of a round, or 1.25 times those of the
    /// first window.
    fn is_profitable(&mut self, window: Tally) -> bool {
        let outside = window.communications as f64 / window.entries as f64;
        let is_long = window.fuel_on_paths >= LONG_RUN * window.communications;
        let is_profitable = is_long || outside <= self.max_outside.unwrap_or(0.9 * self.round);
        self.max_outside.get_or_insert((self.round / 2.0).max(1.25 * outside));
        is_profitable
    }

    /// An estimate of the communications it has saved.
    fn saved(&self, tally: Tally) -> u64 {
        let without = tally.entries as f64 * self.round + tally.fuel_on_paths as f64;
        (without as u64).saturating_sub(tally.communications)
    }
}

/// The difference of two counts.
fn since(now: Tally, before: Tally) -> Tally {
    Tally {
        communications: now.communications - before.communications,
        entries: now.entries - before.entries,
        fuel_on_paths: now.fuel_on_paths - before.fuel_on_paths,
    }
}

fn counts(tally: Tally) -> String {
    let per_entry = tally.communications as f64 / tally.entries.max(1) as f64;
    format!(
        "{} entries, {} communications outside of it, {per_entry:.2} for each entry",
        tally.entries, tally.communications
    )
}

/// Uses machine code for local code, if the engine has it.
fn use_machine_code(
    interpreter: &mut Interpreter<'_>,
    program: &Program,
    settings: &Settings,
) -> Result<(), HostError> {
    if let Some(code) = MachineCode::of_engine(program, settings)? {
        interpreter.use_native(Box::new(code));
    }
    Ok(())
}

/// Why there is no path, in one line.
fn no_path(reason: &SuggestError) -> String {
    match reason {
        SuggestError::Compile(_) => "the program is too large with one".to_string(),
        SuggestError::NoCommunication => "nothing was communicated".to_string(),
        SuggestError::UnknownOperation(operation) => {
            format!("`{}` has no `{}`", operation.process, operation.statement)
        }
        SuggestError::NoPartner(process) => format!("`{process}` does most, and communicates with no process often"),
        SuggestError::PathRefused(report) => report.lines().next().unwrap_or("it cannot be made").to_string(),
    }
}
