//! The C back end: one freestanding C99 file and one header per program, process-based as in the ESP papers.
//! All processes are one function of labels and jumps; an instance is a program counter and a frame of the values
//! that must survive its waits. Knows nothing of how the C is compiled or run.
//!
//! ```text
//!   analysis   which values survive a wait            functions    pure functions, regions of waits
//!   names      C names                                matching     who meets whom, the search among several instances
//!   plan       names, program counters, ends          process      blocks, waits, the dispatch table
//!   types      declarations of types                  meeting      rendezvous
//!   header     the program's header                   outside      the world and the clock, by hooks
//!   paths      the ways in and out of fast paths          path_functions  their code, beside
//!   code       values, places, edges                  schedule     ready list, turns, polling, entry points
//!   instruction, arithmetic   straight-line code      rest, report   what rest means; memory and bounds
//! ```

pub(crate) mod analysis;
mod arithmetic;
mod code;
mod direct;
mod faults;
mod functions;
mod header;
mod helpers;
mod hooks;
mod instruction;
mod interface;
mod matching;
mod meeting;
pub(crate) mod names;
mod outside;
mod path_functions;
mod paths;
mod pattern;
mod plan;
mod priority;
mod process;
mod report;
mod rest;
mod schedule;
mod types;

pub use code::Owner;
pub use report::{CodeBytes, FunctionReport, ProcessReport, Report};

use crate::Checks;
use crate::layout::Abi;
use quaject_esp_ir::ir::Program;

/// What to generate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Prefix of every public name, so that several programs link together: `foo_t`, `foo_step`, `foo_c_ready`.
    /// Without one they are `esp_t`, `esp_step`, `c_ready`.
    pub prefix: Option<String>,
    /// The header's file name, as the source includes it; the source has the same stem.
    pub header_name: String,
    /// How messages reach the program and leave it.
    pub style: Style,
    /// Whether debuggers and compilers see the ESP source.
    pub lines: LineMarks,
    /// Which arithmetic faults.
    pub checks: Checks,
    /// Whether choices can be watched.
    pub trace: TraceMode,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            prefix: None,
            header_name: "program.h".to_string(),
            style: Style::Poll,
            lines: LineMarks::Source,
            checks: Checks::None,
            trace: TraceMode::None,
        }
    }
}

/// How messages reach the program and leave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// The program calls C functions: `c_ready`, `c_take`, `c_put`.
    Poll,
    /// Interrupts call `esp_post_c`; the program takes from a ring. Output is as in [`Style::Poll`].
    Post {
        /// Messages in each ring, rounded up to a power of two.
        ring: u32,
    },
    /// Messages go in and out through the arguments of `esp_step`; all state is in `esp_t`.
    SansIo,
}

impl Style {
    /// Whether messages go in and out through the arguments of `esp_step`.
    pub(crate) fn is_sans_io(self) -> bool {
        match self {
            Style::SansIo => true,
            Style::Poll | Style::Post { .. } => false,
        }
    }
}

/// Whether `#line` leads debuggers and compilers to the ESP source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineMarks {
    /// It does.
    Source,
    /// They see the C.
    None,
}

/// Whether each choice is told to a callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceMode {
    /// To the function set with `esp_trace`.
    Callback,
    /// Not at all; costs nothing.
    None,
}

/// Generated C.
#[derive(Clone, Debug)]
pub struct Output {
    /// The C file.
    pub source: String,
    /// The header, to be written as [`Options::header_name`]; includes `quaject/esp.h`, which is
    /// [`crate::RUNTIME_HEADER`].
    pub header: String,
    /// Whose code each line of [`Output::source`] is.
    pub owners: Vec<Owner>,
    /// Memory and bounds.
    pub report: Report,
    /// How a loader talks to the program, if it was generated in the style [`Style::SansIo`].
    pub abi: Abi,
}

/// Generates C for a program that the IR's verifier accepts.
pub fn generate(program: &Program, options: &Options) -> Output {
    let plan = plan::Plan::new(program, options);
    let faults = faults::Faults::default();
    let helpers = helpers::Helpers::default();
    let header = header::write(&plan);
    let (source, owners) = schedule::write(&plan, &faults, &helpers);
    Output { source, header, owners, report: report::make(&plan), abi: Abi::of(program, &plan.prefix) }
}
