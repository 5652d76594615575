//! The C back end: one freestanding C99 file and one header per program, process-based as in the ESP papers. All
//! processes are one function of labels and jumps; an instance is a program counter and a frame of the values that must
//! survive its waits. Knows nothing of how the C is compiled or run.
//!
//! A plan is computed first, as plain data; emitters only read it. Every file uses only files above it in this list:
//!
//! ```text
//!   options, names, owner     options; C names; attribution of lines
//!   storage                   liveness, storage assignment, slot colouring
//!   plan                      names, program counters, ends of channels, priority arbitration, hand-off
//!   faults, helpers           tables of fault sites; functions that follow the structure of a type
//!   writer, values            text under construction; values, places, edges
//!   constants                 constants as C objects
//!   arithmetic, extern_call, instruction, control, pattern      straight-line code, switches, patterns
//!   wait_state, message       blocked bits and open branches; filling and binding messages
//!   ready_list, hand_off, continuation, path_call               how instances stop and continue
//!   functions                 pure functions, regions of waits
//!   environment, priority, partner_search, rendezvous           how branches commit
//!   wait, path_transitions, process, path_functions, dispatch   the code of processes
//!   enumerations, types, frame, interface, header, channel_ends declarations and the ends of external channels
//!   quiescence, scheduler, entry_points, program                the scheduler and the complete C file
//!   report                    memory and bounds
//!   sketch                    the sketch of an Arduino library
//! ```

mod arithmetic;
mod braces;
mod channel_ends;
mod constants;
mod continuation;
mod control;
mod dispatch;
mod entry_points;
mod enumerations;
mod environment;
mod extern_call;
mod faults;
mod frame;
mod functions;
mod hand_off;
mod header;
mod helpers;
mod instruction;
mod interface;
mod message;
mod names;
mod options;
mod owner;
mod partner_search;
mod path_call;
mod path_functions;
mod path_transitions;
mod pattern;
mod plan;
mod priority;
mod process;
mod program;
mod quiescence;
mod ready_list;
mod rendezvous;
mod report;
mod scheduler;
mod sketch;
mod storage;
mod types;
mod values;
mod wait;
mod wait_state;
mod writer;

pub use options::{LineMarks, Options, Style, TraceMode};
pub use owner::Owner;
pub use report::{CodeBytes, EntryReport, FunctionReport, ProcessReport, Report, StackBytes, StackUse};
pub use sketch::sketch;

use crate::layout::Abi;
use quaject_esp_ir::ir::Program;

/// Generated C.
#[derive(Clone, Debug)]
pub struct Output {
    /// The C file.
    pub source: String,
    /// The header, to be written as [`Options::header_name`]; includes `quaject/esp.h`, which is
    /// [`crate::RUNTIME_HEADER`].
    pub header: String,
    /// The owner of each line of [`Output::source`].
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
    let (source, owners) = program::write(&plan, &faults, &helpers);
    Output { source, header, owners, report: report::make(&plan), abi: Abi::of(program, &plan.prefix) }
}
