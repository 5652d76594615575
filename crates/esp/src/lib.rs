//! The ESP compiler as functions: source text in, programs, C, pictures and diagnostics out. Does no I/O: files come
//! through a [`Loader`]. [`compile`] lists the stages of a compilation; each lives in a crate below this one.
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod adaptive;
mod bands;
mod describe;
mod graph;
mod layout;
mod models;
mod options;
mod pass_manager;
mod paths;
mod picture;
mod pipeline;
mod profile;
mod refinement;
mod states;
mod suggest;

pub use adaptive::{AdaptedProgram, form_hot_path};
pub use describe::type_name;
pub use graph::graph;
pub use models::{
    LoweredModels, ModelSelection, PartSelection, UnknownName, inexpressible, invalid_property, missing_ranges, models,
    models_with_variables, whole_program_model,
};
pub use options::{Emit, File, Mode, Options, Source, Unrolling};
pub use pass_manager::{Dump, Dumped, Optimiser, PASSES, PassName, optimise};
pub use profile::{Operation, Profile};
pub use quaject_esp_opt::groups::{FusionAttempt, FusionOutcome};
pub use quaject_esp_opt::limits::{CodeGrowth, Limits};
pub use quaject_esp_opt::loop_versioning::{UnrollAttempt, UnrollRefusal, UnrolledLoop};
pub use quaject_esp_opt::path::{FormedPath, ManualPaths, PathAttempt};
pub use quaject_esp_opt::path_exit::{ExitReason, IterationCountPlacement, PathExit};
pub use quaject_esp_opt::refusal::Refusal;
pub use quaject_esp_syntax::check::Loader;
pub use refinement::{RefinementModel, RefinementModels, refinement_models};
pub use states::{DrawError, states};
pub use suggest::{SuggestError, Suggestion, suggest};

use pipeline::{Compilation, Pipeline};
use quaject_esp_gen::c;
use quaject_esp_ir::{ir, verify};
use quaject_esp_lower::lower_within;
use quaject_esp_syntax::check::{analyze_with_fast_paths, decode};
use quaject_esp_syntax::diagnostics::{Diagnostic, Severity};
use quaject_esp_syntax::hir;
use quaject_esp_syntax::span::{FileId, SourceMap};

/// A checked program, or why there is none.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Every file that was read; diagnostics refer to them.
    pub sources: SourceMap,
    /// All diagnostics, sorted by location.
    pub diagnostics: Vec<Diagnostic>,
    /// The program; none if a diagnostic is an error.
    pub program: Option<hir::Program>,
}

/// The result of a compilation.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Every file that was read.
    pub sources: SourceMap,
    /// All diagnostics, sorted by location.
    pub diagnostics: Vec<Diagnostic>,
    /// The outputs, or the reason why there are none.
    pub outputs: Result<Outputs, CompileError>,
}

/// Why a compilation has no output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompileError {
    /// A diagnostic is an error.
    Diagnostics,
    /// The program has more instructions than its text justifies, as a very long list of numbers has.
    TooLarge {
        /// The maximum.
        max_instructions: usize,
    },
}

impl std::fmt::Display for CompileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CompileError::Diagnostics => f.write_str("the program has errors"),
            CompileError::TooLarge { max_instructions } => {
                write!(f, "the program is too large: its text expands to more than {max_instructions} instructions")
            }
        }
    }
}

impl std::error::Error for CompileError {}

/// The outputs of a compilation.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// The flow IR.
    pub ir: ir::Program,
    /// The requested text or code.
    pub emitted: Emitted,
    /// The results of fusion in [`Mode::Automata`] and [`Mode::Auto`].
    pub fusion_attempts: Vec<FusionAttempt>,
    /// The results of unrolling loops of fused processes with [`Unrolling::On`].
    pub unroll_attempts: Vec<UnrollAttempt>,
    /// The results for fast paths in [`Mode::FastPath`] and [`Mode::Auto`].
    pub path_attempts: Vec<PathAttempt>,
    /// The program after the requested passes.
    pub dumped: Vec<Dumped>,
}

/// Text or code made of the IR.
#[derive(Clone, Debug)]
pub enum Emitted {
    /// Nothing was requested.
    Nothing,
    /// The IR as text.
    IrText(String),
    /// C.
    C(Box<c::Output>),
}

/// Reads and checks a program.
pub fn check(source: Source, loader: &mut dyn Loader) -> Checked {
    let mut sources = SourceMap::default();
    let mut diagnostics = Vec::new();
    let mut add = |file: File| -> FileId {
        let (id, undecodable) = decode(&mut sources, file.name, file.bytes);
        diagnostics.extend(undecodable);
        id
    };
    let root = add(source.root);
    let fast_paths: Vec<FileId> = source.fast_paths.into_iter().map(add).collect();
    let analysis = analyze_with_fast_paths(&mut sources, root, &fast_paths, loader);
    diagnostics.extend(analysis.diagnostics);
    let failed = diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error);
    Checked { sources, diagnostics, program: if failed { None } else { analysis.program } }
}

/// The maximal number of instructions of a program, so that memory remains in proportion to its text. Programs in
/// practice have one for eight to twenty bytes.
fn max_instructions(sources: &SourceMap) -> usize {
    let written: usize = sources.files().iter().map(|file| file.text.len()).sum();
    // Each expansion of a call counts as the text that it repeats.
    100_000 + (written + sources.expanded_bytes()) / 8
}

/// Compiles a program: the stages, in order. The mode decides which of them do something.
pub fn compile(source: Source, loader: &mut dyn Loader, options: &Options) -> Compiled {
    let Checked { sources, diagnostics, program } = check(source, loader);
    let Some(mut program) = program else {
        return Compiled { sources, diagnostics, outputs: Err(CompileError::Diagnostics) };
    };
    let pipeline = Pipeline::for_mode(options.mode);
    pipeline.retain_fast_paths(&mut program);
    let fast_paths = program.fast_paths.clone();
    let max_instructions = max_instructions(&sources);
    let Some(ir) = lower_within(program, &sources, max_instructions) else {
        return Compiled { sources, diagnostics, outputs: Err(CompileError::TooLarge { max_instructions }) };
    };
    let mut compilation = Compilation::new(pipeline, options, fast_paths, &sources, ir);
    compilation.optimise_bodies();
    compilation.analyse_schedule();
    compilation.fuse_processes();
    compilation.unroll_fused_loops();
    compilation.form_fast_paths();
    compilation.choose_hand_off();
    compilation.run_final_passes();
    let outputs = Ok(compilation.emit());
    Compiled { sources, diagnostics, outputs }
}

/// Returns the program, verified in debug builds.
fn verified(ir: ir::Program) -> ir::Program {
    expect_well_formed(&ir);
    ir
}

/// Verifies a program in debug builds.
fn expect_well_formed(ir: &ir::Program) {
    if cfg!(debug_assertions) {
        let errors = verify::verify(ir);
        assert!(errors.is_empty(), "passes make well-formed programs: {errors:?}");
    }
}
