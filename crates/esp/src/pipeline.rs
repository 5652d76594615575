//! The pipeline of a compilation: a mode selects which stages run, and each stage is a method of [`Compilation`], which
//! `compile` calls in order. The table of modes is [`Pipeline::for_mode`]; a stage does not know the mode.

use crate::options::{Emit, Mode, Options, Unrolling};
use crate::pass_manager::{Optimiser, PassManager};
use crate::paths::specifications;
use crate::{Emitted, Outputs};
use quaject_esp_gen::c;
use quaject_esp_ir::{ir, text};
use quaject_esp_opt::groups::{FusionAttempt, fuse_all, fuse_if_schedule_independent};
use quaject_esp_opt::limits::Limits;
use quaject_esp_opt::loop_versioning::{UnrollAttempt, unroll_loops};
use quaject_esp_opt::observability::ScheduleIndependence;
use quaject_esp_opt::path::{self, BackOff, ManualPaths, PathAttempt, form_paths};
use quaject_esp_opt::refusal::Refusal;
use quaject_esp_syntax::hir;
use quaject_esp_syntax::span::SourceMap;

/// When a stage that changes the schedule runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// Never.
    Skipped,
    /// Wherever it is possible.
    Enabled,
    /// Only where the schedule is not observable.
    IfUnobservable,
}

/// The stages of a mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pipeline {
    fusion: Stage,
    fast_paths: Stage,
    direct_hand_off: Stage,
}

impl Pipeline {
    pub(crate) fn for_mode(mode: Mode) -> Pipeline {
        use Stage::{Enabled, IfUnobservable, Skipped};
        let (fusion, fast_paths, direct_hand_off) = match mode {
            Mode::Process => (Skipped, Skipped, Skipped),
            Mode::Direct => (Skipped, Skipped, Enabled),
            Mode::FastPath => (Skipped, Enabled, Skipped),
            Mode::Automata => (Enabled, Skipped, Skipped),
            Mode::Auto => (IfUnobservable, IfUnobservable, IfUnobservable),
        };
        Pipeline { fusion, fast_paths, direct_hand_off }
    }

    /// Removes the fast paths that the mode ignores, together with their predicates.
    pub(crate) fn retain_fast_paths(self, program: &mut hir::Program) {
        match self.fast_paths {
            Stage::Skipped => program.fast_paths.clear(),
            Stage::Enabled | Stage::IfUnobservable => {}
        }
    }

    /// The treatment of manual paths: omitted by a stage that preserves the observable schedule, because a C function
    /// cannot be analysed.
    fn manual_paths(self, wanted: ManualPaths) -> ManualPaths {
        match self.fast_paths {
            Stage::Skipped | Stage::Enabled => wanted,
            Stage::IfUnobservable => ManualPaths::Omit,
        }
    }

    fn needs_schedule_analysis(self) -> bool {
        [self.fusion, self.fast_paths, self.direct_hand_off].contains(&Stage::IfUnobservable)
    }
}

/// A program between lowering and code generation, with what the stages have recorded.
pub(crate) struct Compilation<'a> {
    pipeline: Pipeline,
    options: &'a Options,
    manual: ManualPaths,
    fast_paths: Vec<hir::FastPath>,
    sources: &'a SourceMap,
    passes: PassManager<'a>,
    independence: Option<ScheduleIndependence>,
    /// The first process that fusion added.
    first_fused: usize,
    fusion_attempts: Vec<FusionAttempt>,
    unroll_attempts: Vec<UnrollAttempt>,
    path_attempts: Vec<PathAttempt>,
}

impl<'a> Compilation<'a> {
    pub(crate) fn new(
        pipeline: Pipeline,
        options: &'a Options,
        fast_paths: Vec<hir::FastPath>,
        sources: &'a SourceMap,
        program: ir::Program,
    ) -> Compilation<'a> {
        let manual = pipeline.manual_paths(options.manual);
        let has_functions = fast_paths.iter().any(|path| path.function.is_some());
        let optimiser = match manual {
            // C functions access the variables of processes by name.
            ManualPaths::Call if has_functions => Optimiser::Off,
            ManualPaths::Call | ManualPaths::Omit => options.optimiser,
        };
        let first_fused = program.processes.len();
        let mut passes = PassManager::new(program, options.checked, optimiser, &options.dump);
        passes.record("lower", 0);
        Compilation {
            pipeline,
            options,
            manual,
            fast_paths,
            sources,
            passes,
            independence: None,
            first_fused,
            fusion_attempts: Vec::new(),
            unroll_attempts: Vec::new(),
            path_attempts: Vec::new(),
        }
    }

    /// Runs the passes over each body, until nothing changes.
    pub(crate) fn optimise_bodies(&mut self) {
        self.passes.run_to_fixed_point(0);
    }

    /// Analyses whether the schedule is observable, if a stage depends on it.
    pub(crate) fn analyse_schedule(&mut self) {
        let program = &self.passes.program;
        let is_needed = self.pipeline.needs_schedule_analysis();
        self.independence = is_needed.then(|| ScheduleIndependence::analyze(program, self.options.checked));
    }

    /// Fuses processes that channels connect.
    pub(crate) fn fuse_processes(&mut self) {
        let (checked, limits) = (self.options.checked, self.options.limits);
        let program = &mut self.passes.program;
        self.fusion_attempts = match (self.pipeline.fusion, &self.independence) {
            (Stage::Skipped, _) => return,
            (Stage::IfUnobservable, Some(independence)) => {
                fuse_if_schedule_independent(program, checked, limits, independence)
            }
            (Stage::Enabled, _) | (Stage::IfUnobservable, None) => fuse_all(program, checked, limits),
        };
        self.passes.record("fuse", 0);
        self.passes.run_to_fixed_point(self.first_fused);
    }

    /// Unrolls loops of fused processes.
    pub(crate) fn unroll_fused_loops(&mut self) {
        match (self.pipeline.fusion, self.options.unrolling) {
            (Stage::Skipped, _) | (_, Unrolling::Off) => return,
            (Stage::Enabled | Stage::IfUnobservable, Unrolling::On) => {}
        }
        self.unroll_attempts = unroll_loops(&mut self.passes.program, self.first_fused, self.options.checked);
        self.passes.record("unroll", 0);
        self.passes.run_to_fixed_point(self.first_fused);
    }

    /// Forms the fast paths of the program.
    pub(crate) fn form_fast_paths(&mut self) {
        match self.pipeline.fast_paths {
            Stage::Skipped => return,
            Stage::Enabled | Stage::IfUnobservable => {}
        }
        let program = &self.passes.program;
        let specifications = specifications(&self.fast_paths, program, self.sources);
        self.path_attempts = match self.schedule_violation() {
            Some(refusal) => path::refuse_all(program, &specifications, &refusal),
            // Avoids the analysis and the copy of a large program.
            None if specifications.is_empty() => Vec::new(),
            None => {
                let options = path::Options {
                    checked: self.options.checked,
                    iteration_counts: self.options.iteration_counts,
                    manual: self.manual,
                    // The size of a path that the program names is not limited relative to its processes.
                    limits: Limits { growth: Limits::default().growth, ..self.options.limits },
                    back_off: BackOff::On,
                };
                let formed = form_paths(program, &specifications, options);
                self.passes.program = formed.program;
                formed.path_attempts
            }
        };
        self.passes.record("fast-paths", 0);
    }

    /// Chooses the instance that runs after a receiver has stopped: queued or direct hand-off.
    pub(crate) fn choose_hand_off(&mut self) {
        self.passes.program.hand_off = match (self.pipeline.direct_hand_off, self.schedule_violation()) {
            (Stage::Enabled, _) | (Stage::IfUnobservable, None) => ir::HandOff::Direct,
            (Stage::Skipped, _) | (Stage::IfUnobservable, Some(_)) => ir::HandOff::Queued,
        };
    }

    /// Runs the passes that require the final processes.
    pub(crate) fn run_final_passes(&mut self) {
        self.passes.run_final_passes();
    }

    /// Emits the output that the options request.
    pub(crate) fn emit(self) -> Outputs {
        let Compilation { options, passes, fusion_attempts, unroll_attempts, path_attempts, .. } = self;
        let PassManager { program: ir, dumped, .. } = passes;
        let emitted = match &options.emit {
            Emit::Ir => Emitted::Nothing,
            Emit::IrText => Emitted::IrText(text::print(&ir)),
            Emit::C(options) => Emitted::C(Box::new(c::generate(&ir, options))),
        };
        Outputs { ir, emitted, fusion_attempts, unroll_attempts, path_attempts, dumped }
    }

    /// Why the schedule of the program is observable, if that was analysed.
    fn schedule_violation(&self) -> Option<Refusal> {
        self.independence.as_ref().and_then(ScheduleIndependence::violation)
    }
}
