//! A program's models by name, and what a check of one needs said about the source.

use crate::{Checked, Source};
use quaject_esp_check::{BadProperty, Unbounded};
use quaject_esp_gen::promela;
use quaject_esp_ir::model::{ModelProgram, Scope};
use quaject_esp_lower::{lower_concrete, lower_model, lower_model_with_variables};
use quaject_esp_syntax::check::Loader;
use quaject_esp_syntax::diagnostics::{Code, Diagnostic};
use quaject_esp_syntax::hir::{self, ModelScope, ProcessId};
use quaject_esp_syntax::span::{FileId, LineColumn, SourceMap, Span};
use quaject_esp_syntax::types::Type;

/// What of a program is to be explored.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Subject {
    /// One of its models; absent: all of them, or the program as a whole if it has none.
    pub model: Option<String>,
    /// One process alone, or some, instead of what the model says.
    pub scope: Option<Part>,
}

/// A part of a program, by names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Part {
    /// One process, for its use of memory.
    Process(String),
    /// Some processes.
    Slice(Vec<String>),
}

/// A program's models, ready to be explored.
#[derive(Clone, Debug)]
pub struct Modelled {
    /// Every file that was read.
    pub sources: SourceMap,
    /// Everything there is to say, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The models; none if a diagnostic is an error.
    pub models: Option<Vec<ModelProgram>>,
    /// The checked program.
    pub program: Option<hir::Program>,
}

/// A name that the program does not have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoSuch {
    /// What it should be: `model` or `process`.
    pub what: &'static str,
    /// The name.
    pub name: String,
    /// Those there are.
    pub known: Vec<String>,
}

/// Reads and checks a program and lowers what is to be explored.
pub fn models(source: Source, loader: &mut dyn Loader, subject: &Subject) -> Result<Modelled, NoSuch> {
    models_by(source, loader, subject, lower_model)
}

/// Likewise, with every variable kept where its process waits, for those who show them.
pub fn models_with_variables(source: Source, loader: &mut dyn Loader, subject: &Subject) -> Result<Modelled, NoSuch> {
    models_by(source, loader, subject, lower_model_with_variables)
}

/// Likewise, with nothing inside abstracted.
pub(crate) fn models_concrete(source: Source, loader: &mut dyn Loader, subject: &Subject) -> Result<Modelled, NoSuch> {
    models_by(source, loader, subject, lower_concrete)
}

type Lower = fn(&hir::Program, Option<&hir::Model>, Option<ModelScope>, &SourceMap) -> ModelProgram;

fn models_by(
    source: Source,
    loader: &mut dyn Loader,
    subject: &Subject,
    lower_model: Lower,
) -> Result<Modelled, NoSuch> {
    let Checked { sources, diagnostics, program } = crate::check(source, loader);
    let Some(program) = program else { return Ok(Modelled { sources, diagnostics, models: None, program: None }) };
    let scope = match &subject.scope {
        None => None,
        Some(Part::Process(name)) => Some(ModelScope::Process(process(&program, name)?)),
        Some(Part::Slice(names)) => {
            let processes = names.iter().map(|name| process(&program, name));
            Some(ModelScope::Slice(processes.collect::<Result<_, _>>()?))
        }
    };
    let lower = |model: Option<&hir::Model>| lower_model(&program, model, scope.clone(), &sources);
    let models = match &subject.model {
        Some(name) => {
            let found = program.models.iter().find(|model| model.name == *name).ok_or_else(|| NoSuch {
                what: "model",
                name: name.clone(),
                known: program.models.iter().map(|model| model.name.to_string()).collect(),
            })?;
            vec![lower(Some(found))]
        }
        // A part that is asked for by name is not in the environment of any model.
        None if program.models.is_empty() || scope.is_some() => vec![lower(None)],
        None => program.models.iter().map(|model| lower(Some(model))).collect(),
    };
    Ok(Modelled { sources, diagnostics, models: Some(models), program: Some(program) })
}

/// The program itself in the surroundings of a model of it; nothing if the model does no more than that, as it neither
/// is of a part nor abstracts anything.
pub fn whole(modelled: &Modelled, model: &ModelProgram) -> Option<ModelProgram> {
    let does_more = model.scope != Scope::All || !model.abstractions.is_empty();
    let program = modelled.program.as_ref().filter(|_| does_more)?;
    let written = program.models.iter().find(|written| Some(&written.name) == model.name.as_ref());
    Some(lower_concrete(program, written, Some(ModelScope::All), &modelled.sources))
}

fn process(program: &hir::Program, name: &str) -> Result<ProcessId, NoSuch> {
    let found = program.processes.iter().position(|process| process.name == name);
    found.map(|index| ProcessId(index as u32)).ok_or_else(|| NoSuch {
        what: "process",
        name: name.into(),
        known: program.processes.iter().map(|process| process.name.to_string()).collect(),
    })
}

/// What a model would have to say before all that can come from outside can be tried (E0801).
pub fn missing_ranges(program: &hir::Program, model: &ModelProgram, missing: &[Unbounded]) -> Vec<Diagnostic> {
    let of = match &model.name {
        Some(name) => format!("model `{name}`"),
        None => "verification".to_string(),
    };
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

/// What a function of a model, `P.v` or `c.0`, stands in for: where that is declared, and whether it is an integer.
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
pub fn bad_property(program: &hir::Program, model: &ModelProgram, bad: &BadProperty) -> Diagnostic {
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

/// What Promela cannot say of a model (E0804, or E0802 for a property that names what there is not).
pub fn unsayable(modelled: &Modelled, model: &ModelProgram, refusal: &promela::Refusal) -> Diagnostic {
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
