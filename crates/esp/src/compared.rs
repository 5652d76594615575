//! A program's models with and without its fast paths, for those who compare the two.

use crate::models::{NoSuch, models_concrete};
use crate::{Loader, Modelled, Source, Subject, paths, verified};
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::model::{ModelProgram, Role};
use quaject_esp_opt::limits::Limits;
use quaject_esp_opt::path::{self, BackOff, Extraction, Manual, extract};
use quaject_esp_opt::path_spec::PathSpec;

/// A program's models, each with and without fast paths. Nothing inside is abstracted.
#[derive(Clone, Debug)]
pub struct Compared {
    /// What was read, and the models without fast paths.
    pub modelled: Modelled,
    /// The models in order; none if a diagnostic is an error.
    pub models: Option<Vec<Fast>>,
}

/// A model's program with fast paths.
#[derive(Clone, Debug)]
pub struct Fast {
    /// The program with fast paths.
    pub program: Program,
    /// The program without, its blocks cut where paths may be left.
    pub cut: Program,
    /// What became of each fast path.
    pub extractions: Vec<Extraction>,
    /// Fast paths of which the model leaves out a process, with its name.
    pub left_out: Vec<(String, String)>,
}

/// Reads and checks a program, lowers what is to be explored and forms the fast paths there.
///
/// # Errors
///
/// The program has no model or process of a name that was asked for.
pub fn compared(
    source: Source,
    loader: &mut dyn Loader,
    subject: &Subject,
    path_limits: Limits,
) -> Result<Compared, NoSuch> {
    let modelled = models_concrete(source, loader, subject)?;
    let (Some(models), Some(program)) = (&modelled.models, &modelled.program) else {
        return Ok(Compared { modelled, models: None });
    };
    let models = models.iter().map(|model| {
        let specifications = paths::specifications(&program.fast_paths, &model.program, &modelled.sources);
        let (mut possible, mut left_out) = (Vec::new(), Vec::new());
        for specification in specifications {
            match first_left_out(model, &specification) {
                None => possible.push(specification),
                Some(process) => left_out.push((specification.name.to_string(), process)),
            }
        }
        // The checker takes overflow for a fault, and tries all ways to decline a path.
        let (limits, manual, back_off) = (path_limits, Manual::LeftOut, BackOff::Off);
        let options = path::Options { checked: true, limits, manual, back_off, ..path::Options::default() };
        let made = extract(&model.program, &possible, options);
        let (program, cut) = (verified(made.program), verified(made.without));
        Fast { program, cut, extractions: made.extractions, left_out }
    });
    let models = models.collect();
    Ok(Compared { modelled, models: Some(models) })
}

/// The first process of a fast path that a model leaves out.
fn first_left_out(model: &ModelProgram, specification: &PathSpec) -> Option<String> {
    let is_left_out = |instance: &u32| model.role(*instance) == Role::LeftOut;
    let mut instances = specification.members.iter().map(|part| part.instance);
    instances.find(is_left_out).map(|instance| model.program.instance_name(instance))
}
