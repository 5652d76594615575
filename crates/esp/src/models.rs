//! The models of a program by name, and the diagnostics of a check of one.

use crate::{Checked, Source};
use quaject_esp_check::{BadProperty, Unbounded};
use quaject_esp_gen::promela;
use quaject_esp_ir::model::{ModelProgram, Scope, UndecidedKind};
use quaject_esp_lower::{lower_concrete, lower_model, lower_model_with_variables};
use quaject_esp_syntax::check::Loader;
use quaject_esp_syntax::diagnostics::{Code, Diagnostic};
use quaject_esp_syntax::hir::{self, ModelScope, ProcessId};
use quaject_esp_syntax::span::{FileId, LineColumn, SourceMap, Span};
use quaject_esp_syntax::types::Type;

/// The part of a program that is to be explored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModelSelection {
    /// One of its models; absent: all of them, or the whole program if it has none.
    pub model: Option<String>,
    /// One process alone, or some, instead of what the model says.
    pub scope: Option<PartSelection>,
}

/// A part of a program, by names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PartSelection {
    /// One process; the same as a slice with this process only.
    Process(String),
    /// Some processes.
    Slice(Vec<String>),
}

/// A program's models, ready to be explored.
#[derive(Clone, Debug)]
pub struct LoweredModels {
    /// Every file that was read.
    pub sources: SourceMap,
    /// All diagnostics, sorted by location.
    pub diagnostics: Vec<Diagnostic>,
    /// The models; none if a diagnostic is an error.
    pub models: Option<Vec<ModelProgram>>,
    /// The checked program.
    pub program: Option<hir::Program>,
}

/// A name that the program does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownName {
    /// The kind: `model` or `process`.
    pub what: &'static str,
    /// The name.
    pub name: String,
    /// The existing names.
    pub known: Vec<String>,
}

impl std::fmt::Display for UnknownName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the program has no {} `{}`", self.what, self.name)
    }
}

impl std::error::Error for UnknownName {}

/// Reads and checks a program and lowers what is to be explored.
pub fn models(source: Source, loader: &mut dyn Loader, subject: &ModelSelection) -> Result<LoweredModels, UnknownName> {
    lower_models(source, loader, subject, lower_model)
}

/// Likewise, with every variable kept at waits, for display.
pub fn models_with_variables(
    source: Source,
    loader: &mut dyn Loader,
    subject: &ModelSelection,
) -> Result<LoweredModels, UnknownName> {
    lower_models(source, loader, subject, lower_model_with_variables)
}

/// Likewise, without abstractions.
pub(crate) fn models_concrete(
    source: Source,
    loader: &mut dyn Loader,
    subject: &ModelSelection,
) -> Result<LoweredModels, UnknownName> {
    lower_models(source, loader, subject, lower_concrete)
}

type Lower = fn(&hir::Program, Option<&hir::Model>, Option<ModelScope>, &SourceMap) -> ModelProgram;

fn lower_models(
    source: Source,
    loader: &mut dyn Loader,
    subject: &ModelSelection,
    lower_model: Lower,
) -> Result<LoweredModels, UnknownName> {
    let Checked { sources, diagnostics, program } = crate::check(source, loader);
    let Some(program) = program else { return Ok(LoweredModels { sources, diagnostics, models: None, program: None }) };
    let scope = match &subject.scope {
        None => None,
        Some(PartSelection::Process(name)) => Some(ModelScope::Process(process(&program, name)?)),
        Some(PartSelection::Slice(names)) => {
            let processes = names.iter().map(|name| process(&program, name));
            Some(ModelScope::Slice(processes.collect::<Result<_, _>>()?))
        }
    };
    let lower = |model: Option<&hir::Model>| lower_model(&program, model, scope.clone(), &sources);
    let models = match &subject.model {
        Some(name) => {
            let found = program.models.iter().find(|model| model.name == *name).ok_or_else(|| UnknownName {
                what: "model",
                name: name.clone(),
                known: program.models.iter().map(|model| model.name.to_string()).collect(),
            })?;
            vec![lower(Some(found))]
        }
        // A part that is selected by name is in the environment of no model.
        None if program.models.is_empty() || scope.is_some() => vec![lower(None)],
        None => program.models.iter().map(|model| lower(Some(model))).collect(),
    };
    let undecided: Vec<Diagnostic> = models.iter().flat_map(|model| undecided_times(&sources, model)).collect();
    if !undecided.is_empty() {
        let diagnostics = diagnostics.into_iter().chain(undecided).collect();
        return Ok(LoweredModels { sources, diagnostics, models: None, program: None });
    }
    Ok(LoweredModels { sources, diagnostics, models: Some(models), program: Some(program) })
}

/// The comparisons of times of which the model cannot try each result (E0805).
fn undecided_times(sources: &SourceMap, model: &ModelProgram) -> Vec<Diagnostic> {
    let of = describe(model);
    let undecided = model.undecided_times.iter().map(|undecided| {
        let place = undecided.location;
        let span = sources.word_at(FileId(place.file), LineColumn { line: place.line, column: place.column });
        let (message, help) = match undecided.kind {
            UndecidedKind::Matching => (
                format!("{of} cannot compare times where a partner is searched"),
                "compare them before the `alt`, or receive the time with `$t` and compare it in a statement",
            ),
            UndecidedKind::Function => {
                (format!("{of} cannot compare times in a `fn`"), "compare them in the process that calls it")
            }
            UndecidedKind::Divisor => (
                format!("{of} cannot divide by a duration that it does not know"),
                "divide by a constant, as in `d / (1 ms)`",
            ),
            UndecidedKind::Quotient => (
                format!("{of} does not know this number, and it decides what the program does"),
                "compare durations, as in `now - start > (5 ms)`, or let the model forget the variable that holds it",
            ),
        };
        Diagnostic::new(Code::E0805, span, message).help(help)
    });
    undecided.collect()
}

/// A model, as messages call it.
fn describe(model: &ModelProgram) -> String {
    match &model.name {
        Some(name) => format!("model `{name}`"),
        None => "verification".to_string(),
    }
}

/// The whole program in the environment of one of its models; none if the model already is that, as it neither selects
/// a part nor abstracts, or if it compares times where no model can.
pub fn whole_program_model(modelled: &LoweredModels, model: &ModelProgram) -> Option<ModelProgram> {
    let does_more = model.scope != Scope::All || !model.abstractions.is_empty();
    let program = modelled.program.as_ref().filter(|_| does_more)?;
    let written = program.models.iter().find(|written| Some(&written.name) == model.name.as_ref());
    let whole = lower_concrete(program, written, Some(ModelScope::All), &modelled.sources);
    whole.undecided_times.is_empty().then_some(whole)
}

fn process(program: &hir::Program, name: &str) -> Result<ProcessId, UnknownName> {
    let found = program.processes.iter().position(|process| process.name == name);
    found.map(|index| ProcessId(index as u32)).ok_or_else(|| UnknownName {
        what: "process",
        name: name.into(),
        known: program.processes.iter().map(|process| process.name.to_string()).collect(),
    })
}

/// The ranges that a model lacks for its inputs to be enumerable (E0801).
pub fn missing_ranges(program: &hir::Program, model: &ModelProgram, missing: &[Unbounded]) -> Vec<Diagnostic> {
    let of = describe(model);
    let one = |unbounded: &Unbounded| match unbounded {
        Unbounded::Message(channel, number) => {
            let channel = &program.channels[channel.0 as usize];
            let name = &channel.name;
            Diagnostic::new(Code::E0801, channel.span, format!("{of} needs a range for `{name}.{number}`")).help(
                format!("in a `model`: `abstract range {name}.{number} 0..4;`, or an `env` process that uses `{name}`"),
            )
        }
        Unbounded::Result(id) => match program.externs.get(id.0 as usize) {
            Some(function) => {
                let name = &function.name;
                Diagnostic::new(Code::E0801, function.span, format!("{of} needs a range for `{name}`"))
                    .help(format!("in a `model`: `abstract range {name} 0..4;`"))
            }
            None => {
                let name = &model.program.externs[id.0 as usize].name;
                let (span, is_integer) = stand_in(program, name);
                Diagnostic::new(Code::E0801, span, format!("{of} needs a range for `{name}`")).help(if is_integer {
                    format!("in a `model`: `abstract range {name} 0..4;`")
                } else {
                    "its type has too many values and takes no range: leave it as it is".to_string()
                })
            }
        },
    };
    missing.iter().map(one).collect()
}

/// The part of the program that a function of a model, `P.v` or `c.0`, replaces: its declaration, and whether it is an
/// integer.
fn stand_in(program: &hir::Program, name: &str) -> (Span, bool) {
    let (of, part) = name.split_once('.').unwrap_or((name, ""));
    let is_integer = |ty| matches!(program.types.get(ty), Type::Int(_));
    let process = program.processes.iter().find(|process| process.name == of);
    if let Some(local) = process.and_then(|process| process.locals.iter().find(|local| local.name == part)) {
        return (local.span, is_integer(local.ty));
    }
    match program.channels.iter().find(|channel| channel.name == of) {
        Some(channel) => {
            let ty = part.parse().ok().and_then(|number: usize| channel.payload.get(number));
            (channel.span, ty.is_some_and(|ty| is_integer(*ty)))
        }
        None => (Span::default(), true),
    }
}

/// A property that cannot be checked (E0802).
pub fn invalid_property(program: &hir::Program, model: &ModelProgram, bad: &BadProperty) -> Diagnostic {
    let diagnostic = Diagnostic::new(Code::E0802, property_span(program, model, bad.number), bad.message.clone());
    match &bad.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

fn property_span(program: &hir::Program, model: &ModelProgram, number: usize) -> Span {
    let found = program.models.iter().find(|found| Some(&found.name) == model.name.as_ref());
    found.and_then(|found| found.property_spans.get(number)).copied().unwrap_or_default()
}

/// A construct of a model that Promela cannot express (E0804, or E0802 for a property with an unknown name).
pub fn inexpressible(modelled: &LoweredModels, model: &ModelProgram, refusal: &promela::Refusal) -> Diagnostic {
    let place = refusal.location;
    let span = match (&modelled.program, refusal.property) {
        (Some(program), Some(number)) => property_span(program, model, number),
        (Some(_) | None, _) if place.line == 0 => Span::default(),
        (Some(_) | None, _) => {
            modelled.sources.word_at(FileId(place.file), LineColumn { line: place.line, column: place.column })
        }
    };
    Diagnostic::new(refusal.code, span, refusal.message.clone()).help(refusal.help.clone())
}
