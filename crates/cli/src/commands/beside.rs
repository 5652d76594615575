//! `qj verify --fastpath --engine spin`

use super::promela::{generate, spin};
use super::verify::told;
use crate::arguments::Verify;
use crate::terminal::{Status, Stop, Terminal, print_verdict};
use quaject_esp::{LoweredModels, RefinementModel};
use quaject_esp_check::{ObserverOutcome, Options, RefinementInput, build_observer, restrictions, subject};
use quaject_esp_exec::observer::Observer;
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela::{Approximation, Model};
use quaject_esp_ir::ir::{FastPath, Program};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use quaject_esp_run::Trouble;
use quaject_esp_run::spin::{Found, Question, Search};

/// Compares one model's program with its fast paths, `fast`, and without them with Spin: what others see of the one
/// without is worked out first, and Spin looks whether all that is seen of the one with is among it.
pub(crate) fn beside(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    fast: &RefinementModel,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, Stop> {
    let input = RefinementInput {
        specification: model,
        split_specification: &fast.specification,
        implementation: &fast.implementation,
    };
    let observed = build_observer(input, &options.limits);
    let Some(observed) = told(terminal, modelled, model, observed)? else { return Ok(Status::Wrong) };
    let subject = subject(model);
    let observer = match observed {
        ObserverOutcome::Automaton(observer) => observer,
        ObserverOutcome::Unfinished(limit) => {
            let text = format!(
                "NOT VERIFIED: what others see of {subject} takes more {} than the limit allows\n",
                limit.name()
            );
            print_verdict(text.as_bytes())?;
            return Ok(Status::Unfinished);
        }
        ObserverOutcome::MayTerminate => {
            let trouble =
                Trouble::new(format!("{subject} can end, fault or run on without end, which Spin does not compare"));
            return Err(Stop::at(trouble.help("the built-in engine does: leave out `--engine spin`")));
        }
        ObserverOutcome::SharedChannel(channel) => {
            let name = &model.program.channels[channel.0 as usize].name;
            let trouble = Trouble::new(format!(
                "at `{name}` {subject} meets its surroundings and itself, which Spin does not compare"
            ));
            return Err(Stop::at(trouble.help("the built-in engine does: leave out `--engine spin`")));
        }
    };
    let with = ModelProgram { program: fast.implementation.clone(), properties: Vec::new(), ..model.clone() };
    let generated = generate(terminal, modelled, &with, Checks::On, Some(&observer));
    let Some(text) = &generated else { return Ok(Status::Wrong) };
    let search = spin(text, options, arguments)
        .search(text, fast.implementation.instance_count(), Question::Beside)
        .map_err(Stop::at)?;
    let verdict = Beside { model, fast: &fast.implementation, text, search: &search, observer: &observer };
    let told = match arguments.json {
        true => format!("{}\n", verdict.json()),
        false => verdict.text(),
    };
    print_verdict(told.as_bytes())?;
    Ok(match &search.found {
        Found::Nothing if (0..fast.implementation.paths.len()).all(|path| verdict.is_entered(path)) => Status::Done,
        // Of a path that is never entered nothing is known.
        Found::Nothing | Found::NothingSoFar(_) => Status::Unfinished,
        Found::Deadlock(_) | Found::Fault(_) | Found::Property(_) if verdict.is_exact() => Status::Wrong,
        Found::Deadlock(_) | Found::Fault(_) | Found::Property(_) => Status::Unfinished,
    })
}

/// What Spin has found of a program with fast paths beside what is seen of it without.
struct Beside<'a> {
    model: &'a ModelProgram,
    fast: &'a Program,
    text: &'a Model,
    search: &'a Search,
    observer: &'a Observer,
}

impl Beside<'_> {
    /// Whether what Spin checks does no more than the program.
    fn is_exact(&self) -> bool {
        self.text.approximations.is_empty()
    }

    fn is_entered(&self, path: usize) -> bool {
        self.search.entered.contains(&(path as u32))
    }

    fn seconds(&self) -> f64 {
        (self.search.compiling + self.search.searching).as_secs_f64()
    }

    /// Where what Spin checks does more than the program.
    fn doubts(&self) -> Vec<String> {
        let doubt = |doubt: &Approximation| {
            let place = location_text(&self.model.program, doubt.location);
            format!("the model does more than the program at {place}: {}", doubt.what)
        };
        self.text.approximations.iter().map(doubt).collect()
    }

    fn text(&self) -> String {
        let subject = subject(self.model);
        let mut told = match &self.search.found {
            Found::Nothing => format!("with fast paths, Spin sees nothing of {subject} that is not seen without\n"),
            Found::NothingSoFar(why) => {
                format!("NOT VERIFIED: Spin has not compared all of {subject}: {}\n", why.text())
            }
            Found::Deadlock(_) | Found::Fault(_) | Found::Property(_) if self.is_exact() => format!(
                "error `fastpath`: with fast paths, Spin sees of {subject} what is not seen without\n\
                 help: leave out `--engine spin` to see how it comes there\n"
            ),
            Found::Deadlock(_) | Found::Fault(_) | Found::Property(_) => {
                let doubts: String = self.doubts().iter().map(|doubt| format!("{doubt}\n")).collect();
                format!("NOT VERIFIED: what Spin has found may be spurious\n{doubts}")
            }
        };
        let steps: usize = self.observer.edges.iter().map(Vec::len).sum();
        told += &format!(
            "{} states of Spin's beside {} without fast paths, of which others see {steps} steps, {:.3} s\n",
            self.search.states,
            self.observer.edges.len(),
            self.seconds(),
        );
        if self.search.found != Found::Nothing {
            return told;
        }
        for (index, path) in self.fast.paths.iter().enumerate() {
            told += &match self.is_entered(index) {
                true => format!("fast path `{}`: entered\n", path.name),
                false => format!(
                    "fast path `{}`: NEVER ENTERED in these surroundings, so that nothing is said of it\n",
                    path.name
                ),
            };
        }
        told += "covered: every message and call that others see; where all can come to a stand\n";
        told += "not covered: the state in which each path is left; progress";
        let restrictions = restrictions(self.model);
        if !restrictions.is_empty() {
            told += &format!("; anything but {}", restrictions.join("; "));
        }
        told.push('\n');
        told
    }

    fn json(&self) -> serde_json::Value {
        let (verdict, limit) = match &self.search.found {
            Found::Nothing => ("holds", None),
            Found::NothingSoFar(why) => ("unfinished", Some(why.text())),
            Found::Deadlock(_) | Found::Fault(_) | Found::Property(_) if self.is_exact() => ("violated", None),
            Found::Deadlock(_) | Found::Fault(_) | Found::Property(_) => ("unfinished", None),
        };
        let path = |(index, path): (usize, &FastPath)| serde_json::json!({ "name": path.name.as_str(), "entered": self.is_entered(index) });
        serde_json::json!({
            "model": self.model.name.as_deref(),
            "engine": "spin",
            "verdict": verdict,
            "limit": limit,
            "states": self.search.states,
            "plain_states": self.observer.edges.len(),
            "seconds": self.seconds(),
            "restrictions": restrictions(self.model),
            "approximations": self.doubts(),
            "paths": self.fast.paths.iter().enumerate().map(path).collect::<Vec<_>>(),
        })
    }
}
