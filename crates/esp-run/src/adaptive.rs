//! `qj run --adaptive`: a run that finds its fast paths itself, and gives them up when they do not pay any more.
//!
//! ```text
//!   watch ──patience──> note ──NOTED──> form ──> run with the path, judged by windows
//!     ^                                  │ none             │ it does not pay
//!     └──────────────────────────────────┴──────────────────┘
//! ```
//!
//! Time is counted in communications of the scheduler, which are what a path saves: a path that pays makes them rare,
//! so nothing is looked at while it does. The run changes its form only between two steps, where every instance stands
//! at a place that both forms have.

use crate::error::HostError;
use crate::machine_code::MachineCode;
use crate::outcome::{RunOutcome, RunReport};
use crate::ports::Ports;
use crate::run::{BUDGET, after, close, open, too_large};
use crate::settings::{Settings, reserve};
use crate::signals::Signals;
use quaject_esp::{AdaptedProgram, Loader, NoSuggestion, Profile, Source, form_hot_path};
use quaject_esp_exec::footprint::data_bytes;
use quaject_esp_exec::interpreter::{Interpreter, OsrDirection};
use quaject_esp_exec::profile::Tally;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::Program;

/// Communications before those that are noted for the first path: shorter runs are left alone.
const FIRST_PATIENCE: u64 = 4_096;
/// How many communications are noted for a path.
const NOTED: u64 = 4_096;
/// How many paths that have paid are kept for the next form, beside the new one.
const MAX_SAVED_SAMPLES: usize = 3;
/// A path that has not saved so many communications is not kept.
const MIN_SAVED: u64 = NOTED / 8;
/// How many communications and entries one window of a path has.
const WINDOW: u64 = 4_096;
/// After a path that was in vain the next one is waited for so many times as long.
const BACK_OFF: u64 = 4;
/// A path that has saved so many times the communications that it was waited for was not in vain.
const PAID_BACK: u64 = 256;
/// A path pays if so much of its fuel is used for each communication beside it, however often it is left.
const LONG_RUN: u64 = 16;
/// Fuel between two looks at the counts: some thousand communications.
const STRIDE: u64 = 8_192;
/// Fuel between two tries to change the form grows from one to this, again and again, so that no rhythm of the program
/// keeps all of them within local code; and how many tries there are.
const MAX_NUDGE: u64 = 64;
const MAX_NUDGES: u64 = 100_000;

/// A run under way.
struct Run<'r, 'w> {
    settings: &'r Settings,
    ports: &'r mut Ports<'w>,
    signals: &'r Signals,
    tell: &'r mut dyn FnMut(&str),
    /// Fuel since output that waits was last written.
    unflushed: u64,
    /// Communications of the scheduler in forms that were left.
    passed: u64,
}

/// Runs a program and forms fast paths of what it does meanwhile. `program` is the source, compiled without fast paths;
/// `tell` is told what is formed and dropped, a line at a time.
///
/// # Errors
/// Why the run could not begin.
pub fn adapt(
    program: &Program,
    settings: &Settings,
    source: &Source,
    loader: &mut dyn Loader,
    tell: &mut dyn FnMut(&str),
) -> Result<RunReport, HostError> {
    reserve(program, settings)?;
    let mut plain = Interpreter::new(program, settings.checks).map_err(too_large)?;
    give_code(&mut plain, program, settings)?;
    let mut ports = open(program, settings)?;
    let signals = Signals::listen()?;
    let mut run = Run { settings, ports: &mut ports, signals: &signals, tell, unflushed: 0, passed: 0 };
    let ending = run.whole(program, plain, source, loader);
    Ok(close(ports, ending))
}

impl Run<'_, '_> {
    fn whole<'p>(
        &mut self,
        program: &'p Program,
        mut plain: Interpreter<'p>,
        source: &Source,
        loader: &mut dyn Loader,
    ) -> RunOutcome {
        let mut patience = FIRST_PATIENCE;
        let mut kept: Vec<String> = Vec::new();
        loop {
            let until = plain.tally().communications.saturating_add(patience);
            if let Some(ending) = self.drive(&mut plain, |tally| tally.communications >= until) {
                return ending;
            }
            plain.profile();
            let until = plain.tally().communications + NOTED;
            if let Some(ending) = self.drive(&mut plain, |tally| tally.communications >= until) {
                return ending;
            }
            let noted = plain.take_profile().expect("it was asked for");
            let count = noted.order().len();
            let noted = Profile::new(program, &noted);
            let begun = self.passed + plain.tally().communications;
            let formed = match self.formed(program, source, loader, &noted, &kept) {
                Ok(formed) => formed,
                Err(reason) => {
                    self.say(begun, &format!("no fast path: {reason}"));
                    patience = patience.saturating_mul(BACK_OFF);
                    continue;
                }
            };
            let (fast, ending) = self.change(&mut plain, &formed.program, &formed, OsrDirection::ToFast);
            let Some(mut fast) = fast else {
                match ending {
                    Some(ending) => return ending,
                    None => {
                        self.say(
                            begun,
                            &format!("no fast path: the program never stands where `{}` does", formed.name),
                        );
                        patience = patience.saturating_mul(BACK_OFF);
                        continue;
                    }
                }
            };
            self.say(begun, &format!("formed `{}`: {}", formed.name, formed.members.join(", ")));
            self.passed += plain.tally().communications;
            let mut judge = Judge::new(&noted, count);
            let dropped = self.judged(&mut fast, &mut judge);
            let tally = fast.tally();
            let counts = counts(tally);
            let ending = match dropped {
                Some(ending) => Some(ending),
                None => {
                    let (back, ending) = self.change(&mut fast, program, &formed, OsrDirection::ToPlain);
                    if let Some(back) = back {
                        plain = back;
                    } else if ending.is_none() {
                        // It stays with the path it has.
                        return self.drive(&mut fast, |_| false).unwrap_or(RunOutcome::Exit(0));
                    }
                    ending
                }
            };
            self.passed += fast.tally().communications;
            if let Some(ending) = ending {
                self.say(self.passed, &format!("`{}` was kept: {counts}", formed.name));
                return ending;
            }
            self.say(self.passed, &format!("dropped `{}`: {counts}", formed.name));
            let saved = judge.saved(tally);
            kept = formed.paths;
            if saved < MIN_SAVED {
                kept.pop();
            }
            kept.drain(..kept.len().saturating_sub(MAX_SAVED_SAMPLES));
            let is_paid = saved >= patience.saturating_mul(PAID_BACK);
            patience = if is_paid { FIRST_PATIENCE } else { patience.saturating_mul(BACK_OFF) };
        }
    }

    /// A path of what was noted, beside those that have paid before if all can be made.
    fn formed(
        &mut self,
        program: &Program,
        source: &Source,
        loader: &mut dyn Loader,
        noted: &Profile,
        kept: &[String],
    ) -> Result<AdaptedProgram, String> {
        let is_checked = self.settings.checks == Checks::On;
        let beside = form_hot_path(source, loader, program, is_checked, noted, kept);
        let formed = match beside {
            Err(_) if !kept.is_empty() => form_hot_path(source, loader, program, is_checked, noted, &[]),
            formed => formed,
        };
        let formed = formed.map_err(|reason| no_path(&reason))?;
        if data_bytes(&formed.program) as u64 > self.settings.memory.0 {
            return Err("with one the data takes more than `--memory`".to_string());
        }
        Ok(formed)
    }

    /// Runs with a path until it does not pay any more, or until the end.
    fn judged(&mut self, fast: &mut Interpreter<'_>, judge: &mut Judge) -> Option<RunOutcome> {
        loop {
            let from = fast.tally();
            let is_over = |tally: Tally| {
                let window = since(tally, from);
                window.communications + window.entries >= WINDOW
            };
            if let Some(ending) = self.drive(fast, is_over) {
                return Some(ending);
            }
            if !judge.pays(since(fast.tally(), from)) {
                return None;
            }
        }
    }

    /// The run as the other form of its program, or how it report before it could change; neither, if it never could.
    fn change<'q>(
        &mut self,
        from: &mut Interpreter<'_>,
        to: &'q Program,
        formed: &AdaptedProgram,
        way: OsrDirection,
    ) -> (Option<Interpreter<'q>>, Option<RunOutcome>) {
        for nudge in 0..MAX_NUDGES {
            match from.replace_on_stack(to, self.settings.checks, &formed.seams, way) {
                Ok(Some(mut moved)) => {
                    return match give_code(&mut moved, to, self.settings) {
                        Ok(()) => (Some(moved), None),
                        Err(_) => (None, None),
                    };
                }
                Ok(None) => {}
                Err(_) => return (None, None),
            }
            if let Some(ending) = self.go_on(from, 1 + nudge % MAX_NUDGE) {
                return (None, Some(ending));
            }
        }
        (None, None)
    }

    /// Runs until the counts say so, or until the end.
    fn drive(&mut self, interpreter: &mut Interpreter<'_>, is_over: impl Fn(Tally) -> bool) -> Option<RunOutcome> {
        while !is_over(interpreter.tally()) {
            if let Some(ending) = self.go_on(interpreter, STRIDE) {
                return Some(ending);
            }
        }
        None
    }

    fn go_on(&mut self, interpreter: &mut Interpreter<'_>, fuel: u64) -> Option<RunOutcome> {
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
        (self.tell)(&format!("adaptive: after {communications} communications: {what}"));
    }
}

/// Whether a path pays.
struct Judge {
    /// Communications of a round without a path.
    round: f64,
    /// The most communications beside the path for each entry; known after the first window.
    most_beside: Option<f64>,
}

impl Judge {
    fn new(noted: &Profile, communications: usize) -> Judge {
        Judge { round: communications as f64 / noted.round_count().max(1) as f64, most_beside: None }
    }

    /// Whether the path has paid in this window: it has to save something at first, and later half of what it could.
    fn pays(&mut self, window: Tally) -> bool {
        let beside = window.communications as f64 / window.entries as f64;
        let is_long = window.fuel_on_paths >= LONG_RUN * window.communications;
        let pays = is_long || beside <= self.most_beside.unwrap_or(0.9 * self.round);
        self.most_beside.get_or_insert((self.round / 2.0).max(1.25 * beside));
        pays
    }

    /// About how many communications it has saved.
    fn saved(&self, tally: Tally) -> u64 {
        let without = tally.entries as f64 * self.round + tally.fuel_on_paths as f64;
        (without as u64).saturating_sub(tally.communications)
    }
}

/// What has happened between two counts.
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
        "{} entries, {} communications beside it, {per_entry:.2} for each entry",
        tally.entries, tally.communications
    )
}

/// Has machine code run local code, if that is the engine.
fn give_code(interpreter: &mut Interpreter<'_>, program: &Program, settings: &Settings) -> Result<(), HostError> {
    if let Some(code) = MachineCode::of_engine(program, settings)? {
        interpreter.use_native(Box::new(code));
    }
    Ok(())
}

/// Why there is no path, in one line.
fn no_path(reason: &NoSuggestion) -> String {
    match reason {
        NoSuggestion::Program(_) => "the program is too large with one".to_string(),
        NoSuggestion::Silence => "nothing was communicated".to_string(),
        NoSuggestion::Foreign(operation) => format!("`{}` has no `{}`", operation.process, operation.statement),
        NoSuggestion::Alone(process) => format!("`{process}` does most, and talks to nobody often"),
        NoSuggestion::Refused(report) => report.lines().next().unwrap_or("it cannot be made").to_string(),
    }
}
