//! The arguments of `qj run`, and those of its options that other commands share.

use super::code_generation::Coding;
use super::project::{ImportFolders, ProjectChoice};
use clap::{Args, ValueEnum, ValueHint};
use quaject_esp_run::{Binding, FaultPlan, Memory, Time};
use std::path::PathBuf;

/// Run a program
///
/// Each external channel is served by a driver:
///
///   text:PATH      one message per line, as in ESP: `3 -7`, "GET\r\n", {1, 2},
///                  send |> {7, 4096};
///                  blank lines and lines that begin with // are ignored
///   bytes:PATH     one message per byte; an int reads -1 once at the end, a union
///                  its case `eos`;
///                  a channel of bytes[<=N] receives what is available, at most N
///   hex:PATH       as bytes, in hexadecimal digits: a line `7e 01 0a` is a message of a
///                  channel of bytes[<=N], or three of a channel of one byte
///   timer:PERIOD   a tick every 10ms, 2s ...: an empty message, or an integer, the
///                  number of the tick;
///                  `timer:10ms,5` closes the channel after 5 ticks
///   udp:PORT, udp:ADDR:PORT
///                          datagrams: address, port, bytes
///   tcp:PORT, tcp:ADDR:PORT
///                          connections; `tcp:-` accepts none, and only connects
///   file:FOLDER            files of a folder: open, read at, write at, close ...
///   tap:NAME, packet:NAME  Ethernet frames of a TAP interface, or of any interface;
///                          `packet:NAME,rules=FILE` sorts them by rules
///   can:NAME, can:PORT     frames of a CAN interface, or of a simulated bus
///   ring:PATH, ring:PATH,size=64K
///                          messages of bytes to or from another process, through
///                          shared memory
///   exec:COMMAND           as bytes: standard input and output of a shell command
///   serial:PATH, serial:PATH,BAUD, pty:PATH
///                          as bytes: a serial line, a new pseudo-terminal
///
/// Each driver from `udp` on, except `ring`, serves two channels of opposite
/// directions if both are bound to the same socket, folder or line. The chapter of
/// the book on drivers describes their messages. A channel of an unsuitable type is
/// an error, which names a suitable type. PATH `-` is standard input or output.
/// Without --bind a channel has the driver that its declaration names, else
/// `text:-`. A channel is closed at the end of its data. Output is written when the
/// program ends or sleeps, at a fault, and at SIGINT and SIGTERM. A malformed
/// message stops the program like a fault.
///
/// The program ends when no step is possible: with status 0 if no process is
/// blocked forever, else with the fault `deadlock`, which lists the blocked
/// processes and what each waits for.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    // Later options replace earlier ones, those of `NAME.args` those of `qj test`.
    args_override_self = true,
    after_help = "Examples:\n  \
    qj run hello.esp\n  \
    printf '3 4\\n' | qj run add.esp\n  \
    qj run words.esp --bind inputC=bytes:README.md --bind totalC=text:totals.txt\n  \
    qj run clock.esp --bind tickC=timer:500ms,10\n  \
    qj run echo.esp --bind inC=udp:7 --bind outC=udp:7 --fault udp:loss=5%,seed=7\n  \
    qj run framer.esp --bind lineC=hex:-   then: 7e 01 0a\n  \
    qj run host.esp --pcap host.pcap       then: tcpdump -r host.pcap\n  \
    qj run sieve.esp --chart sieve.svg     its messages, as a chart\n  \
    qj run sender.esp --extern help.c --engine c\n  \
    qj run race.esp --seed 7               another schedule\n  \
    qj run server.esp --adaptive --report  fast paths found while it runs\n  \
    qj run server.esp --record run.qjr     then: qj replay run.qjr\n  \
    gdb --args qj run pairs.esp --debug-info gdb   then: break pairs.esp:7"
)]
pub(crate) struct Run {
    /// The program; `-` is standard input [default: that of the project]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectChoice,
    #[command(flatten)]
    pub(crate) imports: ImportFolders,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// What executes the program: the reference interpreter, C compiled with `cc` (or $CC), or machine code in memory
    ///
    /// [default: jit where this machine has it, else interp]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<Engine>,
    #[command(flatten)]
    pub(crate) coding: Coding,
    /// Form fast paths while the program runs, and drop those that are no longer profitable (engines jit, interp)
    #[arg(long)]
    pub(crate) adaptive: bool,
    /// Report on standard error how the processes were compiled, and why; the entries and side exits of each fast path,
    /// with counts; with --adaptive the fast paths that were formed and dropped, with times
    #[arg(long)]
    pub(crate) report: bool,
    /// Record every input of the program in FILE, for `qj replay` (engines interp, jit; mode process)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,
    /// Write to FILE which lines of the program were executed, in the format of lcov (engine interp, mode process)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) coverage: Option<PathBuf>,
    /// Draw the first 1000 messages of the run as a message-sequence chart, SVG (engine interp, mode process)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) chart: Option<PathBuf>,
    /// Emit debug information that maps machine code to processes and lines of the program (engine jit)
    #[arg(long, value_name = "TOOL")]
    pub(crate) debug_info: Option<DebugTool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum DebugTool {
    /// Breakpoints by process and by line, steps, stacks: `gdb --args qj run ...`
    Gdb,
    /// Samples by process and by line: `perf record -k mono`, `perf inject --jit`
    Perf,
}

#[derive(Args, Clone, Debug, Default)]
pub(crate) struct RunOptions {
    /// Serve an external channel by a driver, as in `linesC=text:in.txt`
    #[arg(long, value_name = "CHANNEL=DRIVER:ARG")]
    pub(crate) bind: Vec<Binding>,
    /// Inject faults into messages of a driver or channel: loss, duplication, delay, damage; as in
    /// `udp:loss=5%,seed=7`; also dup=, reorder=, flip=, delay=1ms..20ms, cut=1s/10s
    #[arg(long, value_name = "WHERE:FAULTS")]
    pub(crate) fault: Vec<FaultPlan>,
    /// C source, object or shared library with extern functions
    #[arg(long = "extern", value_name = "FILE.c|LIB.so", value_hint = ValueHint::FilePath)]
    pub(crate) externs: Vec<PathBuf>,
    /// Write the frames that `tap`, `packet` and `can` carry to a capture
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) pcap: Option<PathBuf>,
    /// Choose the schedule at random, reproducibly for each N (engines interp, jit)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Make signed overflow, wide shifts and stores that lose bits the fault `overflow`
    #[arg(long)]
    pub(crate) checked: bool,
    /// The memory limit of the program's data; a program that needs more is not started
    #[arg(long, value_name = "BYTES", default_value = "32M")]
    pub(crate) memory: Memory,
    /// `virtual`: advance to the next deadline at once instead of waiting for it
    #[arg(long, value_name = "CLOCK", default_value = "real")]
    pub(crate) clock: ClockChoice,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub(crate) enum ClockChoice {
    #[default]
    Real,
    Virtual,
}

impl ClockChoice {
    pub(crate) fn time(self) -> Time {
        match self {
            ClockChoice::Real => Time::Real,
            ClockChoice::Virtual => Time::Virtual,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Engine {
    /// The reference interpreter
    Interp,
    /// Generated C, compiled and loaded
    C,
    /// The interpreter, with machine code for the local code of each process
    Jit,
}
