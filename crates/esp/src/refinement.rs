//! The models of a refinement check: the implementation, with fast paths, and the specification, the same program
//! without.

use crate::models::{UnknownName, models_concrete};
use crate::{Loader, LoweredModels, ModelSelection, Source, paths, verified};
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::model::{ModelProgram, Role};
use quaject_esp_opt::limits::Limits;
use quaject_esp_opt::path::{self, BackOff, ManualPaths, PathAttempt, form_paths};
use quaject_esp_opt::path_spec::PathSpec;

/// The models of a program, each with and without fast paths, without abstractions.
#[derive(Clone, Debug)]
pub struct RefinementModels {
    /// The sources, and the models without fast paths.
    pub modelled: LoweredModels,
    /// The models in order; none if a diagnostic is an error.
    pub models: Option<Vec<RefinementModel>>,
}

/// A model with and without fast paths.
#[derive(Clone, Debug)]
pub struct RefinementModel {
    /// With fast paths.
    pub implementation: Program,
    /// Without fast paths, its blocks split where paths may exit.
    pub specification: Program,
    /// The result for each fast path.
    pub path_attempts: Vec<PathAttempt>,
    /// The fast paths of which the model leaves out a process, each with the name of that process.
    pub excluded: Vec<(String, String)>,
}

/// Reads and checks a program, lowers the selected models and forms their fast paths.
///
/// # Errors
///
/// The program has no model or process of a selected name.
pub fn refinement_models(
    source: Source,
    loader: &mut dyn Loader,
    subject: &ModelSelection,
    path_limits: Limits,
) -> Result<RefinementModels, UnknownName> {
    let modelled = models_concrete(source, loader, subject)?;
    let (Some(models), Some(program)) = (&modelled.models, &modelled.program) else {
        return Ok(RefinementModels { modelled, models: None });
    };
    let models = models.iter().map(|model| {
        let specifications = paths::specifications(&program.fast_paths, &model.program, &modelled.sources);
        let (mut possible, mut excluded) = (Vec::new(), Vec::new());
        for specification in specifications {
            match first_omitted(model, &specification) {
                None => possible.push(specification),
                Some(process) => excluded.push((specification.name.to_string(), process)),
            }
        }
        // For the checker overflow is a fault, and it explores every bypass of a path.
        let (limits, manual, back_off) = (path_limits, ManualPaths::Omit, BackOff::Off);
        let options = path::Options { checked: true, limits, manual, back_off, ..path::Options::default() };
        let made = form_paths(&model.program, &possible, options);
        let (implementation, specification) = (verified(made.program), verified(made.without));
        RefinementModel { implementation, specification, path_attempts: made.path_attempts, excluded }
    });
    let models = models.collect();
    Ok(RefinementModels { modelled, models: Some(models) })
}

/// The first process of a fast path that a model leaves out.
fn first_omitted(model: &ModelProgram, specification: &PathSpec) -> Option<String> {
    let is_omitted = |instance: &u32| model.role(*instance) == Role::Omitted;
    let mut instances = specification.members.iter().map(|part| part.instance);
    instances.find(is_omitted).map(|instance| model.program.instance_name(instance))
}
