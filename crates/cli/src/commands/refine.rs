//! `qj verify --fastpath`

use super::verify::{json_of_run, no_such, options, told, watched};
use crate::arguments::{Verify, VerifyEngine};
use crate::terminal::{Status, Stop, Terminal, print_verdict, say};
use quaject_esp::{Limits, LoweredModels, ModelSelection, RefinementModel, refinement_models};
use quaject_esp_check::{
    Mismatch, Options, PathCoverage, Refinement, RefinementInput, RefinementVerdict, refine as compare,
};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_run::disk::open_program;
use quaject_esp_run::{Interrupts, Trouble, die_of};

pub(crate) fn refine(terminal: &Terminal, arguments: &Verify) -> Result<Status, Stop> {
    refuse_idle_options(arguments)?;
    let (source, mut disk) = open_program(&arguments.file, &arguments.fast_paths).map_err(Stop::at)?;
    let subject = ModelSelection { model: arguments.model.clone(), scope: None };
    let compared = refinement_models(source, &mut disk, &subject, Limits::default()).map_err(no_such)?;
    let modelled = &compared.modelled;
    terminal.diagnostics(&modelled.sources, &modelled.diagnostics);
    let (Some(models), Some(fast)) = (&modelled.models, &compared.models) else { return Ok(Status::Wrong) };
    if fast.iter().all(|fast| fast.extractions.is_empty() && fast.left_out.is_empty()) {
        let trouble = Trouble::new(format!("`{}` has no fast paths to compare", arguments.file.display()));
        return Err(Stop::at(
            trouble
                .help("write one, name its file with `--fast-paths FILE.fp`, or have one found: `qj fastpath suggest`"),
        ));
    }
    let interrupts = Interrupts::listen().map_err(Stop::at)?;
    let options = options(arguments, &interrupts);
    let mut status = Status::Done;
    for (model, fast) in models.iter().zip(fast) {
        let found = one(terminal, modelled, model, fast, &options, arguments)?;
        // An error outweighs an open question.
        if status != Status::Wrong && found != Status::Done {
            status = found;
        }
        if let (Status::Unfinished, Some(signal)) = (found, interrupts.signal()) {
            die_of(signal);
        }
    }
    Ok(status)
}

/// Refuses what a comparison cannot do: whoever asks for it expects an answer.
fn refuse_idle_options(arguments: &Verify) -> Result<(), Stop> {
    let options = [
        ("--progress", arguments.progress),
        ("--compact", arguments.compact),
        ("--symmetry", arguments.symmetry),
        ("--threads", arguments.threads > 1),
        ("--trace", arguments.trace.is_some()),
        ("--chart", arguments.chart.is_some()),
    ];
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let trouble = Trouble::usage(format!("`{option}` has no meaning with `--fastpath`"));
            Err(Stop::at(
                trouble.help("leave it out; without `--fastpath` it speaks of the program without fast paths"),
            ))
        }
        None => Ok(()),
    }
}

/// Compares one model's program with and without its fast paths.
fn one(
    terminal: &Terminal,
    modelled: &LoweredModels,
    model: &ModelProgram,
    fast: &RefinementModel,
    options: &Options,
    arguments: &Verify,
) -> Result<Status, Stop> {
    for extraction in fast.extractions.iter().filter(|extraction| extraction.result.is_err()) {
        say(&format!("warning: {}\n", extraction.text(&fast.implementation)));
    }
    for (path, process) in &fast.left_out {
        say(&format!("warning: no fast path {path}: the model leaves out `{process}`\n"));
    }
    if fast.implementation.paths.is_empty() {
        let of = model.name.as_ref().map_or_else(String::new, |name| format!(" of model `{name}`"));
        let trouble = Trouble::new(format!("no fast path{of} could be formed, so that nothing can be compared"));
        return Err(Stop::at(trouble.help("the warnings above say why; `qj build --report` says what would help")));
    }
    if arguments.engine == VerifyEngine::Spin {
        return super::beside::beside(terminal, modelled, model, fast, options, arguments);
    }
    let input = RefinementInput {
        specification: model,
        split_specification: &fast.specification,
        implementation: &fast.implementation,
    };
    let compared = watched(|progress| compare(input, &options.limits, progress));
    let Some(report) = told(terminal, modelled, model, compared)? else { return Ok(Status::Wrong) };
    if arguments.json {
        let mut line = json_of(model, &report).to_string();
        line.push('\n');
        print_verdict(line.as_bytes())?;
    } else {
        print_verdict(report.text(model).as_bytes())?;
    }
    Ok(match &report.verdict {
        RefinementVerdict::Holds if report.paths.iter().all(|path| path.is_entered) => Status::Done,
        // Of a path that is never entered nothing is known.
        RefinementVerdict::Holds | RefinementVerdict::Unfinished(_) => Status::Unfinished,
        RefinementVerdict::Violated(_) => Status::Wrong,
    })
}

/// The verdict for programs.
fn json_of(model: &ModelProgram, report: &Refinement) -> serde_json::Value {
    let program = &model.program;
    let (verdict, limit, difference) = match &report.verdict {
        RefinementVerdict::Holds => ("holds", None, None),
        RefinementVerdict::Violated(difference) => ("violated", None, Some(difference)),
        RefinementVerdict::Unfinished(limit) => ("unfinished", Some(limit.name()), None),
    };
    let never = |odd: &Mismatch| match odd {
        Mismatch::ExitState { never, .. } => never.iter().map(|instance| program.instance_name(*instance)).collect(),
        Mismatch::Code
        | Mismatch::InitialState
        | Mismatch::VisibleAction
        | Mismatch::Termination { .. }
        | Mismatch::Quiescence
        | Mismatch::StuckOnPath
        | Mismatch::Divergence => Vec::new(),
    };
    let path = |path: &PathCoverage| {
        serde_json::json!({
            "name": path.name.as_str(),
            "entered": path.is_entered,
            "left": path.exits_taken,
            "ways_out": path.exits,
        })
    };
    serde_json::json!({
        "model": model.name.as_deref(),
        "verdict": verdict,
        "limit": limit,
        "states": report.states,
        "plain_states": report.spec_states,
        "steps": report.transitions,
        "depth": report.depth,
        "seconds": report.elapsed.as_secs_f64(),
        "bytes": report.bytes,
        "restrictions": report.restrictions,
        "paths": report.paths.iter().map(path).collect::<Vec<_>>(),
        "problem": difference.map(|difference| difference.mismatch.name()),
        "explanation": difference.map(|difference| difference.mismatch.text(program)),
        "never": difference.map(|difference| never(&difference.mismatch)),
        "run": difference.map(|difference| json_of_run(program, &difference.steps)),
    })
}
