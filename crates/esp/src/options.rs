//! What to compile, to what, and how. Data only.

use crate::pass_manager::{Dump, Optimiser};
use quaject_esp_gen::c;
use quaject_esp_opt::limits::Limits;
use quaject_esp_opt::path::ManualPaths;
use quaject_esp_opt::path_exit::IterationCountPlacement;

/// A source file: its name as messages print it, and its bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// The name.
    pub name: String,
    /// The bytes, which may not be valid text.
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

/// The output of a compilation.
#[derive(Clone, Debug)]
pub enum Emit {
    /// The flow IR alone, for the interpreter.
    Ir,
    /// The flow IR, also as text.
    IrText,
    /// C as well.
    C(c::Options),
}

/// How processes become code.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Every process separately, scheduled at run time.
    #[default]
    Process,
    /// Likewise, but on a channel with one reader and one writer, a reader that stops hands control directly back to
    /// its writer.
    Direct,
    /// As `Process`, but the fast paths of the program run as code of one process.
    FastPath,
    /// Processes that channels connect are fused into one, where possible.
    Automata,
    /// Likewise, where fusion is possible and not observable. Elsewhere the fast paths of the program run as code of
    /// one process, and everything else as in `Direct` if that is not observable, or as in `Process`.
    Auto,
}

/// Whether loops of fused processes are unrolled, which is not observable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Unrolling {
    /// Never.
    #[default]
    Off,
    /// Where possible.
    On,
}

/// How to compile a program, and to what.
#[derive(Clone, Debug)]
pub struct Options {
    /// The output.
    pub emit: Emit,
    /// How processes become code.
    pub mode: Mode,
    /// Whether overflow is a fault, which passes then preserve.
    pub checked: bool,
    /// Where fast paths count their iterations.
    pub iteration_counts: IterationCountPlacement,
    /// The treatment of fast paths that are C functions.
    pub manual: ManualPaths,
    /// The limits on the code of fused processes and fast paths.
    pub limits: Limits,
    /// Whether loops of fused processes are unrolled.
    pub unrolling: Unrolling,
    /// Whether passes run besides those that make the mode's form.
    pub optimiser: Optimiser,
    /// The passes after which the program is printed.
    pub dump: Dump,
}

impl Options {
    /// The program as written.
    pub fn new(emit: Emit) -> Options {
        Options {
            emit,
            mode: Mode::Process,
            checked: false,
            iteration_counts: IterationCountPlacement::FeedbackVertices,
            manual: ManualPaths::Call,
            limits: Limits::default(),
            unrolling: Unrolling::default(),
            optimiser: Optimiser::default(),
            dump: Dump::default(),
        }
    }
}
