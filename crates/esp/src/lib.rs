//! The ESP compiler as functions: source text in, programs, C, pictures and diagnostics out. Does no I/O: files come
//! through a [`Loader`]. The passes are listed in [`compile`]; each lives in a crate below this one.
#![forbid(unsafe_code)]

mod adaptive;
mod compared;
mod describe;
mod graph;
mod layout;
mod models;
mod optimise;
mod paths;
mod picture;
mod profile;
mod states;
mod suggest;

pub use adaptive::{Formed, form};
pub use compared::{Compared, Fast, compared};
pub use describe::type_name;
pub use graph::graph;
pub use models::{
    Modelled, NoSuch, Part, Subject, bad_property, missing_ranges, models, models_with_variables, unsayable, whole,
};
pub use optimise::{Dump, Dumped, Optimiser, PASSES, optimise};
pub use profile::{Operation, Profile};
pub use quaject_esp_opt::batch::{Attempt as BatchAttempt, Batched, Reason};
pub use quaject_esp_opt::groups::{Attempt, Outcome};
pub use quaject_esp_opt::limits::{CodeGrowth, Limits};
pub use quaject_esp_opt::path::{Extraction, Made, Manual};
pub use quaject_esp_opt::path_exit::{ExitReason, IterationCountPlacement, PathExit};
pub use quaject_esp_opt::refusal::Refusal;
pub use quaject_esp_syntax::check::Loader;
pub use states::{NoPicture, states};
pub use suggest::{NoSuggestion, Suggestion, suggest};

use optimise::Optimising;
use quaject_esp_gen::c;
use quaject_esp_ir::{ir, text, verify};
use quaject_esp_lower::lower_within;
use quaject_esp_opt::batch::batch;
use quaject_esp_opt::groups::{fuse_all, fuse_unseen};
use quaject_esp_opt::order::Order;
use quaject_esp_opt::path::{self, extract};
use quaject_esp_syntax::check::{analyze_with_fast_paths, decode};
use quaject_esp_syntax::diagnostics::{Diagnostic, Severity};
use quaject_esp_syntax::hir;
use quaject_esp_syntax::span::{FileId, SourceMap};

/// A source file: its name as messages print it, and its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The name.
    pub name: String,
    /// The bytes, of which it is not yet known whether they are text.
    pub bytes: Vec<u8>,
}

/// What to compile: a root file, and separate files of fast paths for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// The file that imports the others.
    pub root: File,
    /// `.fp` files.
    pub fast_paths: Vec<File>,
}

/// A checked program, or why there is none.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Every file that was read, by which diagnostics name their places.
    pub sources: SourceMap,
    /// Everything there is to say, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The program; none if a diagnostic is an error.
    pub program: Option<hir::Program>,
}

/// What to make of a program.
#[derive(Clone, Debug)]
pub enum Emit {
    /// The flow IR alone, for the interpreter.
    Ir,
    /// The flow IR as text, too.
    IrText,
    /// C, too.
    C(c::Options),
}

/// How a program becomes code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Every process on its own, scheduled as the program runs.
    #[default]
    Process,
    /// Likewise, but that a receiver that stops goes back to its sender, where a channel has one of each.
    Direct,
    /// Likewise, but that the fast paths which the program names run as code of one process.
    FastPath,
    /// Processes that channels connect become one, wherever that can be done.
    Automata,
    /// Likewise, wherever that can be done and nobody can tell; elsewhere, the fast paths that the program names run as code
    /// of one process, and all else as in `Direct`, if nobody can tell, or as in `Process`.
    Auto,
}

/// Whether loops of fused processes do several turns at once, where nobody can tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Batching {
    /// One turn at a time.
    #[default]
    Off,
    /// Where it can be done.
    On,
}

/// What to compile a program to, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to make of it.
    pub emit: Emit,
    /// How it becomes code.
    pub mode: Mode,
    /// Whether overflow is a fault, which passes then keep.
    pub checked: bool,
    /// Where runs of fast paths are counted.
    pub iteration_counts: IterationCountPlacement,
    /// What becomes of fast paths that are C functions.
    pub manual: Manual,
    /// How large the code of fused processes and of fast paths may become.
    pub limits: Limits,
    /// Whether loops of fused processes do several turns at once.
    pub batching: Batching,
    /// Whether passes run, beside those that make the mode's form.
    pub optimiser: Optimiser,
    /// After which passes the program is printed.
    pub dump: Dump,
}

impl Options {
    /// The program as it is written.
    pub fn new(emit: Emit) -> Options {
        let (mode, iteration_counts, manual) = (Mode::Process, IterationCountPlacement::LoopHeads, Manual::Called);
        let (limits, batching) = (Limits::default(), Batching::default());
        let (optimiser, dump) = (Optimiser::default(), Dump::default());
        Options { emit, mode, checked: false, iteration_counts, manual, limits, batching, optimiser, dump }
    }
}

/// What was made of a program.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Every file that was read.
    pub sources: SourceMap,
    /// Everything there is to say, sorted by place.
    pub diagnostics: Vec<Diagnostic>,
    /// The outputs, or why there are none.
    pub outputs: Result<Outputs, NoOutput>,
}

/// Why nothing was made of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoOutput {
    /// A diagnostic is an error.
    Wrong,
    /// It would take more memory than a text of its size should. No program that people write is so dense, but a very
    /// long list of numbers is.
    TooLarge {
        /// How many instructions it may have.
        most_instructions: usize,
    },
}

/// The outputs of a compilation.
#[derive(Clone, Debug)]
pub struct Outputs {
    /// The flow IR.
    pub ir: ir::Program,
    /// The text or code that was asked for.
    pub emitted: Emitted,
    /// What became of groups of processes in [`Mode::Automata`] and [`Mode::Auto`].
    pub attempts: Vec<Attempt>,
    /// What became of the loops of fused processes with [`Batching::On`].
    pub batches: Vec<BatchAttempt>,
    /// What became of fast paths in [`Mode::FastPath`] and [`Mode::Auto`].
    pub extractions: Vec<Extraction>,
    /// The program after the passes that were asked for.
    pub dumped: Vec<Dumped>,
}

/// Text or code made of the IR.
#[derive(Clone, Debug)]
pub enum Emitted {
    /// Nothing was asked for.
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

/// How many instructions a program of so many bytes may have, so that what it takes in memory keeps in proportion to its
/// text. Programs that people write have one for eight to twenty bytes.
fn most_instructions(sources: &SourceMap) -> usize {
    100_000 + sources.files().iter().map(|file| file.text.len()).sum::<usize>() / 8
}

/// Compiles a program: the passes, in order.
pub fn compile(source: Source, loader: &mut dyn Loader, options: &Options) -> Compiled {
    let Checked { sources, diagnostics, program } = check(source, loader);
    let Some(mut program) = program else { return Compiled { sources, diagnostics, outputs: Err(NoOutput::Wrong) } };
    match options.mode {
        Mode::FastPath | Mode::Auto => {}
        // Their predicates are not computed either.
        Mode::Process | Mode::Direct | Mode::Automata => program.fast_paths.clear(),
    }
    let fast_paths = program.fast_paths.clone();
    let most_instructions = most_instructions(&sources);
    let Some(ir) = lower_within(program, &sources, most_instructions) else {
        return Compiled { sources, diagnostics, outputs: Err(NoOutput::TooLarge { most_instructions }) };
    };
    let manual = match options.mode {
        // Nobody can tell whether they show the same.
        Mode::Auto => Manual::LeftOut,
        Mode::Process | Mode::Direct | Mode::FastPath | Mode::Automata => options.manual,
    };
    let optimiser = match manual == Manual::Called && fast_paths.iter().any(|path| path.function.is_some()) {
        // C functions know the variables of processes by name.
        true => Optimiser::Off,
        false => options.optimiser,
    };
    let (checked, dump) = (options.checked, &options.dump);
    let mut work = Optimising { program: ir, checked, optimiser, dump, dumped: Vec::new() };
    work.done("lower", 0);
    work.each(0);
    let order = match options.mode {
        Mode::Auto => Some(Order::of(&work.program, checked)),
        Mode::Process | Mode::Direct | Mode::FastPath | Mode::Automata => None,
    };
    let seen = order.as_ref().and_then(Order::seen_by_any);
    let (mut attempts, mut batches) = (Vec::new(), Vec::new());
    let mut extractions = Vec::new();
    match options.mode {
        Mode::Process | Mode::Direct | Mode::FastPath => {}
        Mode::Automata | Mode::Auto => {
            let alone = work.program.processes.len();
            (work.program, attempts) = match &order {
                Some(order) => fuse_unseen(work.program, checked, options.limits, order),
                None => fuse_all(work.program, checked, options.limits),
            };
            work.done("fuse", 0);
            work.each(alone);
            match options.batching {
                Batching::Off => {}
                Batching::On => {
                    batches = batch(&mut work.program, alone, checked);
                    work.done("batch", 0);
                    work.each(alone);
                }
            }
        }
    }
    match options.mode {
        Mode::Process | Mode::Direct | Mode::Automata => {}
        Mode::FastPath | Mode::Auto => {
            let specifications = paths::specifications(&fast_paths, &work.program, &sources);
            // What was asked for by name is not measured against the code of its processes.
            let limits = Limits { growth: Limits::default().growth, ..options.limits };
            let (iteration_counts, back_off) = (options.iteration_counts, path::BackOff::On);
            let options = path::Options { checked, iteration_counts, manual, limits, back_off };
            extractions = match &seen {
                Some(refusal) => path::refused(&work.program, &specifications, refusal),
                // Nothing of the program is looked at that takes memory, nor copied.
                None if specifications.is_empty() => Vec::new(),
                None => {
                    let made = extract(&work.program, &specifications, options);
                    work.program = made.program;
                    made.extractions
                }
            };
            work.done("paths", 0);
        }
    }
    work.program.hand_off = match options.mode {
        Mode::Direct => ir::HandOff::Direct,
        Mode::Auto if seen.is_none() => ir::HandOff::Direct,
        Mode::Process | Mode::FastPath | Mode::Automata | Mode::Auto => ir::HandOff::Queued,
    };
    work.last();
    let Optimising { program: ir, dumped, .. } = work;
    let emitted = match &options.emit {
        Emit::Ir => Emitted::Nothing,
        Emit::IrText => Emitted::IrText(text::print(&ir)),
        Emit::C(options) => Emitted::C(Box::new(c::generate(&ir, options))),
    };
    Compiled { sources, diagnostics, outputs: Ok(Outputs { ir, emitted, attempts, batches, extractions, dumped }) }
}

/// The program, verified in debug builds.
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
