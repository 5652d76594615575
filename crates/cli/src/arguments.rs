//! What can be written after `qj`, with its help. Knows no command's work.

use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;
use quaject_esp_run::{Binding, FaultPlan, Memory, Time};
use std::path::PathBuf;
use std::time::Duration;

/// Checks, runs and compiles programs in ESP, the language of processes and
/// channels for systems code.
#[derive(Parser, Debug)]
#[command(
    name = "qj",
    version,
    max_term_width = 100,
    propagate_version = true,
    after_help = "Exit status:\n  \
                  0  done\n  \
                  1  the program is wrong, or a file cannot be read or made\n  \
                  2  wrong usage: the command line asks for what there is not\n  \
                  3  a fault while running, or its input or output fails under way\n  \
                  4  `qj verify` report at a limit\n\
                  `exit(e)` in a program ends `qj run` with status e. Interrupted (SIGINT, SIGTERM),\n\
                  qj writes its output and dies of the signal: a shell sees 130 or 143.\n\n\
                  Try:\n  \
                  qj init hello && cd hello && qj run hello.esp\n  \
                  qj COMMAND --help            each command's help ends with examples"
)]
pub(crate) struct Arguments {
    /// When to colour messages
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto", help_heading = "Messages")]
    pub(crate) color: ColorChoice,
    /// How to write the compiler's messages on standard error: for people, or one JSON object per line
    #[arg(long, global = true, value_name = "FORM", default_value = "human", help_heading = "Messages")]
    pub(crate) messages: MessageForm,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ColorChoice {
    /// If standard error is a terminal and NO_COLOR is not set
    Auto,
    Always,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum MessageForm {
    /// Text with the source lines and carets
    Human,
    /// A JSON object a line
    Json,
    /// A SARIF 2.1.0 log for each program, for code hosts and editors; other messages are as with json
    Sarif,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Check(Check),
    Run(Run),
    Build(Build),
    Fmt(Fmt),
    Graph(Graph),
    Test(Test),
    Explain(Explain),
    Init(Init),
    Verify(Verify),
    Replay(Replay),
    Profile(Profile),
    Fastpath(Fastpath),
    Asm(Asm),
    Pipe(Pipe),
    Filter(Filter),
    Completions(Completions),
    Man(Man),
}

/// Find every mistake in programs, without running them
///
/// Checks syntax, names, types, definite assignment, purity, that every message
/// has exactly one reader, and more. Each message has a code that `qj explain`
/// explains.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj check main.esp\n  \
    qj check examples/*.esp\n  \
    qj check sender.esp --fast-paths sender.fp\n  \
    qj check --messages json main.esp 2>&1 | jq .code\n  \
    qj check main.esp --verify    also look for runs that go wrong, for 100 ms\n  \
    qj explain E0405")]
pub(crate) struct Check {
    /// Programs; `-` is standard input
    #[arg(required = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// A separate file of fast paths for the program
    #[arg(long, value_name = "FILE.fp", value_hint = ValueHint::FilePath)]
    pub(crate) fast_paths: Vec<PathBuf>,
    /// Also explore the program's models, or all of it, for at most 100 ms: tells runs that go wrong
    #[arg(long)]
    pub(crate) verify: bool,
}

/// Run a program
///
/// Each external channel is served by a driver:
///
///   text:PATH      one message per line, as in ESP: `3 -7`, "GET\r\n", {1, 2},
///                  send |> {7, 4096};
///                  blank lines and lines that begin with // are passed over
///   bytes:PATH     one message per byte; an int reads -1 once at the end, a union
///                  its case `eos`;
///                  a channel of bytes[<=N] takes what is there, at most N at once
///   timer:PERIOD   a tick every 10ms, 2s ...: nothing, or an integer, the number of
///                  the tick;
///                  `timer:10ms,5` closes the channel after 5
///   udp:PORT, udp:ADDR:PORT
///                          datagrams: address, port, bytes
///   tcp:PORT, tcp:ADDR:PORT
///                          connections; `tcp:-` only makes them
///   file:FOLDER            files of a folder: open, read at, write at, close ...
///   tap:NAME, packet:NAME  Ethernet frames of a virtual or of any interface;
///                          `packet:NAME,rules=FILE` sorts them by rules
///   can:NAME, can:PORT     frames of a CAN interface; of a bus of this machine
///   ring:PATH, ring:PATH,size=64K
///                          messages of bytes to or from another process, through
///                          shared memory
///   exec:COMMAND           as bytes: what a shell command reads and writes
///   serial:PATH, serial:PATH,BAUD, pty:PATH
///                          as bytes: a serial line, a terminal of one's own
///
/// Those from `udp` on, but for `ring`, serve a channel in each direction if both
/// are bound to the same: one socket, one folder, one line. The book's chapter on
/// drivers tells what their messages hold; a channel whose type does not fit is
/// refused with one that does. PATH `-` is standard input or output. Without
/// --bind a channel has the driver its declaration names, else `text:-`. At the end of the data a channel is
/// closed. Output is written when the program ends or sleeps, at a fault, and at
/// SIGINT and SIGTERM. A malformed message stops the program as a fault does.
///
/// When nothing can happen any more, the program ends: with status 0 if every
/// process is at rest, else with the fault `deadlock`, which tells who waits for
/// whom.
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
    qj run sender.esp --extern help.c --engine c\n  \
    qj run race.esp --seed 7               another order of execution\n  \
    qj run server.esp --adaptive --report  fast paths found while it runs\n  \
    qj run server.esp --record run.qjr     then: qj replay run.qjr\n  \
    gdb --args qj run pairs.esp --debug-info gdb   then: break pairs.esp:7"
)]
pub(crate) struct Run {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) options: RunOptions,
    /// What executes the program: the reference interpreter, C compiled with `cc` (or $CC), or machine code in memory
    ///
    /// [default: jit where this machine has it, else interp]
    #[arg(long, value_name = "ENGINE")]
    pub(crate) engine: Option<Engine>,
    #[command(flatten)]
    pub(crate) coding: Coding,
    /// Find fast paths while the program runs, and drop those that do not pay any more (engines jit, interp)
    #[arg(long)]
    pub(crate) adaptive: bool,
    /// Say on standard error what became of the processes, and why; how often each fast path was entered, and where it
    /// was left how often; with --adaptive what was formed and dropped, and when
    #[arg(long)]
    pub(crate) report: bool,
    /// Write everything the program learns from outside to FILE, for `qj replay` (engines interp, jit; mode process)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) record: Option<PathBuf>,
    /// Let a debugger or profiler see processes and lines of the program in machine code (engine jit)
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
    /// Lose, double, delay or damage messages of a driver or channel, as in `udp:loss=5%,seed=7`; also dup=, reorder=,
    /// flip=, delay=1ms..20ms, cut=1s/10s
    #[arg(long, value_name = "WHERE:FAULTS")]
    pub(crate) fault: Vec<FaultPlan>,
    /// C source, object or shared library with extern functions
    #[arg(long = "extern", value_name = "FILE.c|LIB.so", value_hint = ValueHint::FilePath)]
    pub(crate) externs: Vec<PathBuf>,
    /// Choose the order of execution at random, always the same for the same N (engines interp, jit)
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Make signed overflow, wide shifts and stores that lose bits the fault `overflow`
    #[arg(long)]
    pub(crate) checked: bool,
    /// How much memory the program's data may take; a run that needs more does not begin
    #[arg(long, value_name = "BYTES", default_value = "32M")]
    pub(crate) memory: Memory,
    /// `virtual`: do not wait for time to pass, jump to the next deadline
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
    /// The interpreter, with machine code made in memory for what each process does by itself
    Jit,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ModeChoice {
    /// Each on its own, scheduled while the program runs
    Process,
    /// Likewise, but that a receiver that stops goes straight back to its sender, where a channel has one of each (with
    /// C; machine code runs such a program as `process` does)
    Direct,
    /// Likewise, but for fast paths, which run as code of one process
    Fastpath,
    /// Those that channels connect as one state machine, where that can be done
    Automata,
    /// Whatever is fastest, fits and shows the same: state machines, else fast paths, else each on its own
    Auto,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum UnrollChoice {
    /// Never
    Off,
    /// Where possible within a limit on code size; `--report` says where, or why not
    Auto,
}

/// How processes become code, in `run` and `build`.
#[derive(Args, Clone, Debug)]
pub(crate) struct Coding {
    /// How processes become code
    ///
    /// [default: auto; fastpath with --fast-paths; process for what is about the processes as they are written: --engine
    /// interp, --seed, --record, --adaptive, --emit ir, --emit promela, pictures]
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeChoice>,
    /// How many times as much code as on their own processes may become as one state machine (for --mode automata,
    /// auto), twice as many where some can be left waiting for ever; what would become more is left out
    ///
    /// [default: 8 for automata; for auto, half as much code again by an estimate, or 3 while that is less than 8 KB]
    #[arg(long, value_name = "TIMES")]
    pub(crate) growth: Option<usize>,
    /// A file of fast paths for the program (for --mode fastpath, which is the default with it, and auto)
    #[arg(long, value_name = "FILE.fp", value_hint = ValueHint::FilePath)]
    pub(crate) fast_paths: Vec<PathBuf>,
}

/// Compile a program to C, to an executable, or to its intermediate form
///
///   c      NAME.c and NAME.h, with the run-time header quaject/esp.h: freestanding
///          C99 without allocation, to be built into your program; written into the
///          folder -o, else into the current one
///   exe    an executable whose channels are bound as `qj run` does:
///          ./NAME --bind CHANNEL=DRIVER:ARG ...
///   ir     the flow IR as text; written to standard output unless -o is given
///   promela
///          a model for Spin, likewise: what the program does, or one of its models
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj build sender.esp --emit c -o firmware/generated\n  \
    qj build sender.esp --emit c --style poll --prefix sender --report\n  \
    qj build words.esp --emit exe -o words && ./words < README.md\n  \
    qj build words.esp --emit ir | less\n  \
    qj build sender.esp --emit promela -o sender.pml && spin -a sender.pml"
)]
pub(crate) struct Build {
    /// The program
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What to make
    #[arg(long, value_name = "FORM")]
    pub(crate) emit: EmitForm,
    /// Where to write it
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    /// Which of the program's models to write (for --emit promela)
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// How the C code meets the outside world (for --emit c)
    ///
    /// [default: sans-io]
    #[arg(long, value_name = "STYLE")]
    pub(crate) style: Option<StyleChoice>,
    /// How many messages a ring holds before it drops, a power of two or rounded up to one (for
    /// --style post)
    ///
    /// [default: 16]
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) ring: Option<u32>,
    /// What the names of the generated C begin with (for --emit c)
    #[arg(long, value_name = "PREFIX", value_parser = c_name)]
    pub(crate) prefix: Option<String>,
    /// C source, object or shared library with extern functions (for --emit exe)
    #[arg(long = "extern", value_name = "FILE.c|LIB.so", value_hint = ValueHint::FilePath)]
    pub(crate) externs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) coding: Coding,
    /// When to unroll loops of state machines, with guards (for --mode automata, auto)
    ///
    /// [default: auto with --mode automata, off with --mode auto]
    #[arg(long, alias = "batch", value_name = "WHEN")]
    pub(crate) unroll: Option<UnrollChoice>,
    /// Make signed overflow, wide shifts and stores that lose bits the fault `overflow`
    #[arg(long)]
    pub(crate) checked: bool,
    /// Print the program after this pass, instead of after all; may be given several times (for --emit ir)
    #[arg(long, value_name = "PASS", value_parser = passes())]
    pub(crate) dump: Vec<String>,
    /// Print RAM and code bytes of each process and the bounds on waiting, and what became of each in its mode
    #[arg(long)]
    pub(crate) report: bool,
}

/// The passes that can be printed after, and what each does.
fn passes() -> PossibleValuesParser {
    let passes = quaject_esp::PASSES.into_iter().map(|pass| {
        let value = PossibleValue::new(pass.name).help(pass.purpose);
        pass.alias.into_iter().fold(value, PossibleValue::alias)
    });
    PossibleValuesParser::new(passes.chain([PossibleValue::new("all").help("after each of them")]))
}

/// A name of C.
fn c_name(text: &str) -> Result<String, String> {
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if is_name { Ok(text.to_string()) } else { Err("letters, digits and `_`, no digit first".to_string()) }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EmitForm {
    C,
    Ir,
    Exe,
    Promela,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum VerifyEngine {
    Builtin,
    Spin,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StyleChoice {
    /// The program calls c_ready, c_take and c_put
    Poll,
    /// Interrupts post messages into static rings
    Post,
    /// One function, step(state, input, output, now), and no other contact
    SansIo,
}

/// Lay programs out in the standard way
///
/// Files are rewritten in place; standard input is rewritten to standard output. A
/// program with syntax errors is left as it is.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj fmt main.esp parts/*.esp\n  \
    qj fmt --check *.esp          for continuous integration\n  \
    qj fmt < main.esp             from an editor")]
pub(crate) struct Fmt {
    /// Programs; none, or `-`, is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Change nothing; list the files that would change and end with status 1 if there are any
    #[arg(long)]
    pub(crate) check: bool,
}

/// Draw processes and channels as SVG
///
/// Boxes are processes, pills are channels, yellow pills are external channels; an
/// arrow into a channel is an `out`, one out of it an `in`.
///
/// With --mode automata, fastpath or auto, what processes have become: boxes are the
/// places where a state machine waits or a fast path begins, white pills are the exits
/// of fast paths, yellow pills their aborts.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj graph main.esp -o main.svg\n  \
    qj graph main.esp > main.svg\n  \
    qj graph main.esp --mode automata -o states.svg")]
pub(crate) struct Graph {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Where to write the picture, instead of standard output
    #[arg(short, long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) coding: Coding,
}

/// Run programs that lie beside their input and expected output
///
/// NAME.esp is a test if there is a NAME.out or a NAME.status beside it. It is run
/// with
///
///   NAME.in           as standard input (nothing, if the file is missing)
///   NAME.args         more arguments of `qj run`, one per line, paths relative to
///                     the folder
///   NAME.CHANNEL.in   as the input of the channel, by the driver its declaration
///                     names, else text
///
/// and must produce
///
///   NAME.out          on standard output (nothing, if the file is missing)
///   NAME.err          on standard error (anything, if the file is missing)
///   NAME.status       as exit status (0, if the file is missing)
///   NAME.CHANNEL.out  on the channel
///
/// Overflow is a fault (`--checked`) and time does not pass but jumps
/// (`--clock virtual`).
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj test                       every test in this folder and those below it\n  \
    qj test examples sieve.esp\n  \
    qj test --engine interp --engine c\n  \
    qj test --bless               write what the programs produce as what is expected"
)]
pub(crate) struct Test {
    /// Programs, and folders to search for them
    #[arg(value_name = "PATH", default_value = ".", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// What executes the programs; may be given twice
    #[arg(long, value_name = "ENGINE", default_value = "interp")]
    pub(crate) engine: Vec<Engine>,
    /// Replace the expected output by what is produced
    #[arg(long)]
    pub(crate) bless: bool,
    /// CliError a program that runs longer
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) timeout: u64,
}

/// Explain a message's code
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj explain E0405\n  \
    qj explain             lists all codes")]
pub(crate) struct Explain {
    /// The code, such as E0405
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

/// Make a new project that runs at once
///
/// Writes NAME.esp, NAME.in and NAME.out into the folder, which may exist; files
/// are never overwritten.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj init echo && cd echo && qj run echo.esp < echo.in\n  \
    qj test")]
pub(crate) struct Init {
    /// The folder; its name is the program's
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
}

/// Seconds, parts of them too.
fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "it is no number of seconds".to_string())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) => Ok(time),
        // More than a clock can count is no limit.
        Err(_) if seconds > 0.0 => Ok(Duration::MAX),
        Err(_) => Err("it is no number of seconds".to_string()),
    }
}

/// Explore every interleaving of a program and show a short run that goes wrong
///
/// Looks for deadlock, false assertions, and every other fault: bounds, division,
/// overflow, ranges, empty pools, use of released memory; and tells which lines no
/// run reaches. Each `model` of the program is explored with its environment, or
/// the program as a whole if there is none. External channels without an `env`
/// carry any message their types and ranges allow, at any time.
///
/// A search that ends at a limit says so, with exit status 4: it has verified
/// nothing.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj verify main.esp\n  \
    qj verify main.esp --model send --threads 2\n  \
    qj verify main.esp --process table       one process against anything its ports allow\n  \
    qj verify main.esp --engine spin         a second opinion\n  \
    qj verify main.esp --max-time 60 --max-memory 4000\n  \
    qj verify main.esp --fastpath            with its fast paths it does nothing else\n  \
    qj verify main.esp --fastpath --engine spin\n  \
    qj verify main.esp --trace run.qjt --chart run.svg && qj replay run.qjt")]
pub(crate) struct Verify {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Explore this model only
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Explore one process alone, for its use of memory
    #[arg(long, value_name = "NAME", conflicts_with = "slice")]
    pub(crate) process: Option<String>,
    /// Explore these processes; the environment does anything their ports allow
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) slice: Vec<String>,
    /// The model checker: the built-in one, or Spin, which needs `spin` and a C compiler
    #[arg(long, value_name = "ENGINE", default_value = "builtin")]
    pub(crate) engine: VerifyEngine,
    /// Check refinement: the program with its fast paths has no behaviour that the program without does not have
    #[arg(long, conflicts_with_all = ["process", "slice"])]
    pub(crate) fastpath: bool,
    /// A file of fast paths for the program (for --fastpath)
    #[arg(long, value_name = "FILE.fp", value_hint = ValueHint::FilePath, requires = "fastpath")]
    pub(crate) fast_paths: Vec<PathBuf>,
    /// How many threads search
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub(crate) threads: u8,
    /// Explore every order of communications, without partial-order reduction; the first run found is a shortest one
    #[arg(long)]
    pub(crate) no_reduction: bool,
    /// Check for starvation: processes that can wait for ever while others continue (weak fairness)
    #[arg(long)]
    pub(crate) progress: bool,
    /// Hash compaction: keep 64 bits of each state; takes less memory, with an omission probability in the verdict
    #[arg(long)]
    pub(crate) compact: bool,
    /// Symmetry reduction: replicas that no value names are interchangeable
    #[arg(long)]
    pub(crate) symmetry: bool,
    /// End after so many states
    #[arg(long, value_name = "N")]
    pub(crate) max_states: Option<u64>,
    /// End when the search takes so many megabytes
    #[arg(long, value_name = "MB", default_value_t = 2048)]
    pub(crate) max_memory: u64,
    /// End after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) max_time: Option<Duration>,
    /// Write the counterexample to FILE, for `qj replay`
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) trace: Option<PathBuf>,
    /// Draw the counterexample as a message-sequence chart
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    pub(crate) chart: Option<PathBuf>,
    /// Write the verdict as one JSON object per model
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a recorded run, or a run that `qj verify` found, again
///
/// The recording holds the program and everything it learnt from outside, so no
/// other file, clock or C function is needed. Every message the program sends is
/// compared with the recorded one and printed with its channel's name. The exit
/// status is that of the recorded run, or 1 if the run differs. A run that was
/// stopped from outside, by a signal or because its input or output failed, is
/// replayed up to there and ends with status 0.
///
/// A run that `qj verify` found is stepped through in a terminal, forwards and
/// backwards: who is where, who waits for whom, what the variables hold. Elsewhere
/// it is printed. The exit status is 3.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj run server.esp --record run.qjr\n  \
    qj replay run.qjr\n  \
    qj verify server.esp --trace wrong.qjt; qj replay wrong.qjt")]
pub(crate) struct Replay {
    /// What `qj run --record` or `qj verify --trace` wrote
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
}

/// Run a program and tell what it communicates again and again
///
/// The program runs on the interpreter, with its drivers, as with `qj run`, and its
/// exit status is told. What it has communicated is written as JSON: how often each
/// operation was done; the operation that a round begins with, which is a message
/// from the world if there are many; the most frequent rounds, of the first million
/// communications. `qj fastpath suggest` reads it.
#[derive(Args, Debug)]
#[command(
    args_override_self = true,
    after_help = "Examples:\n  \
    qj profile pairs.esp -o pairs.profile < numbers\n  \
    qj profile server.esp -o server.profile --bind linesC=text:requests.txt\n  \
    qj fastpath suggest pairs.esp --profile pairs.profile"
)]
pub(crate) struct Profile {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Where to write the profile
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) options: RunOptions,
}

/// Find fast paths
#[derive(Args, Debug)]
#[command(
    disable_help_subcommand = true,
    after_help = "Examples:\n  \
    qj profile pairs.esp -o pairs.profile < numbers\n  \
    qj fastpath suggest pairs.esp --profile pairs.profile -o pairs.fp"
)]
pub(crate) struct Fastpath {
    #[command(subcommand)]
    pub(crate) command: FastpathCommand,
}

#[derive(Subcommand, Debug)]
pub(crate) enum FastpathCommand {
    Suggest(Suggest),
}

/// Write a fast path for what a program does most
///
/// Of a profile, the round that is most frequent becomes a fast path of at most ten
/// lines, to be read and edited: a line for each process that takes part. What is
/// done less than once in 64 rounds leads off the path. A path that cannot be made
/// is not suggested: whoever is farthest from the first process is left out then.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj profile pairs.esp -o pairs.profile < numbers\n  \
    qj fastpath suggest pairs.esp --profile pairs.profile -o pairs.fp\n  \
    qj run pairs.esp --mode fastpath --fast-paths pairs.fp < numbers")]
pub(crate) struct Suggest {
    /// The program; `-` is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What `qj profile` has written
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) profile: PathBuf,
    /// Where to write the fast path, instead of standard output
    #[arg(short, long, value_name = "FILE.fp", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// Write the suggestion as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the completions of a shell
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj completions bash > ~/.local/share/bash-completion/completions/qj\n  \
    qj completions zsh > ~/.zfunc/_qj\n  \
    qj completions fish > ~/.config/fish/completions/qj.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Show portable instructions beside the machine code they become
///
/// FILE holds functions in the portable instructions of vcode:
///
///   function plus1 %i leaf      parameters are a0, a1 ...
///     addii a0, a0, 1
///     reti a0
///
/// `reg x, y` and `float z` declare variables, `local v l` one on the stack of a
/// type, `again:` a label, `#` begins a comment. The instructions are those of
/// docs/vcode-instructions.md.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj asm plus1.vcode\n  \
    qj asm plus1.vcode --machine riscv64 --machine mips --hex\n  \
    qj asm plus1.vcode --machine all\n  \
    qj asm plus1.vcode --step 41            one instruction at a time, with values by name\n  \
    qj asm dot.vcode --step i[1,2] i[3,4] 2  pointers to two ints each; `[1,2]` are longs"
)]
pub(crate) struct Asm {
    /// The functions
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The machine; may be given several times, `all` are all; otherwise the one `qj` runs on
    #[arg(long, value_name = "NAME")]
    pub(crate) machine: Vec<String>,
    /// Show the bytes too
    #[arg(long)]
    pub(crate) hex: bool,
    /// Call the first function with these arguments and show what each instruction does
    #[arg(long, value_name = "ARGUMENT", num_args = 0.., allow_hyphen_values = true)]
    pub(crate) step: Option<Vec<String>>,
}

/// Lead data through steps composed into one pass over memory
///
/// PIPE names steps between bars, done in order:
///
///   copy                      writes the data as they are
///   checksum                  the Internet checksum (RFC 1071)
///   crc32c                    CRC-32C (RFC 3720)
///   swap16, swap32, swap64    reverses the bytes of every 2, 4 or 8
///   xor 0xa5                  exclusive or with 1, 2, 4 or 8 bytes, again and again
///   xor stream                exclusive or with the bytes of a key file (`--key`)
///   count                     counts bytes
///   NAME                      a step of yours, from a file (`-s`)
///
/// What steps find out is printed, a line for each; data that change go to FILE or
/// to standard output, and then what steps find out goes to standard error. A file
/// of steps holds, for example:
///
///   step bump u32be           elements: u8, u16le, u16be, u32le, u32be, u64le, u64be
///     add r0, r0, 1           r0 is the element; add sub mul and or xor min max
///     total max r0            shl shr set; total add xor and or min max
///   end
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj pipe 'checksum | crc32c | count' -r message\n  \
    qj pipe 'copy | checksum | swap32' -r message -w swapped\n  \
    qj pipe 'xor 0x37fa213d' < frame > payload\n  \
    qj pipe 'copy | checksum | swap32' --explain    the machine code\n  \
    qj pipe 'copy | checksum | swap32' --bench      beside its steps one after the other\n  \
    qj pipe 'bump | crc32c' -s steps.pipe -r message -w bumped"
)]
pub(crate) struct Pipe {
    /// The steps
    #[arg(value_name = "PIPE")]
    pub(crate) pipe: String,
    /// Where data come from; `-` or nothing is standard input
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) read: Option<PathBuf>,
    /// Where data go to, if steps change or copy them; `-` or nothing is standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) write: Option<PathBuf>,
    /// The key stream of a step `xor stream`; once for each, in order
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Vec<PathBuf>,
    /// A file of your own steps; may be given several times
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) steps: Vec<PathBuf>,
    /// How to store, instead of what suits the size
    #[arg(long, value_name = "HOW")]
    pub(crate) store: Option<StoreChoice>,
    /// Show the machine code of the pipe
    #[arg(long, conflicts_with_all = ["read", "write", "bench"])]
    pub(crate) explain: bool,
    /// Measure the pipe beside its steps one after the other
    #[arg(long, conflicts_with_all = ["read", "write"])]
    pub(crate) bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StoreChoice {
    /// Through the caches
    Cached,
    /// Through the caches, with source and target prefetched
    Prefetching,
    /// Past the caches, with the source prefetched
    Streaming,
}

/// Classify packets of a capture by many filters at once
///
/// RULES holds one filter a line in the syntax of tcpdump (man pcap-filter),
/// optionally with a name before it; `#` begins a comment:
///
///   web:  tcp port 80 or tcp port 443
///   dns:  udp port 53
///   net 10.0.0.0/8
///
/// libpcap reads the expressions; it is loaded when it is needed. Captures are
/// pcap and pcapng files.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
    qj filter -f rules.txt -r day.pcap --count\n  \
    qj filter -f rules.txt -r day.pcapng --split by-rule/\n  \
    qj filter -f rules.txt --explain              groups, tables and the generated code\n  \
    qj filter -f rules.txt -r day.pcap --check    compare with bpf_filter, packet by packet\n  \
    qj filter -f rules.txt -i eth0 --count        until Ctrl-C\n  \
    qj filter -f rules.txt --emit xdp -o rules.o  for `ip link set eth0 xdp obj rules.o sec xdp`\n  \
    qj filter fuzz --seconds 60                   random filters and packets, every engine"
)]
pub(crate) struct Filter {
    #[command(subcommand)]
    pub(crate) command: Option<FilterCommand>,
    /// The filters; `-` is standard input
    #[arg(short = 'f', long, value_name = "RULES", value_hint = ValueHint::FilePath, required = true)]
    pub(crate) rules: Option<PathBuf>,
    /// The packets; `-` is standard input
    #[arg(short, long, group = "source", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) read: Option<PathBuf>,
    /// In place of a file: what passes this interface, until SIGINT or SIGTERM; `any` is all of them
    #[arg(short, long, group = "source", value_name = "IFACE")]
    pub(crate) interface: Option<String>,
    /// Take what arrives at the interface by AF_XDP, before the system does anything with it: it does not see it
    #[arg(long, requires = "interface")]
    pub(crate) xdp: bool,
    /// End after so many packets of the interface
    #[arg(long, value_name = "N", requires = "interface")]
    pub(crate) packets: Option<u64>,
    /// Print for each filter how many packets it matches
    #[arg(long, group = "work", requires = "source")]
    pub(crate) count: bool,
    /// Write each packet to DIR/NAME.pcap of the first filter that matches it
    #[arg(long, value_name = "DIR", group = "work", requires = "source", value_hint = ValueHint::DirPath)]
    pub(crate) split: Option<PathBuf>,
    /// Print what the filters become: tests, groups, tables, machine code
    #[arg(long, group = "work")]
    pub(crate) explain: bool,
    /// Compare generated code, interpreter and bpf_filter on every packet
    #[arg(long, group = "work", requires = "source")]
    pub(crate) check: bool,
    /// Measure how long a packet takes, beside bpf_filter
    #[arg(long, group = "work", requires = "source")]
    pub(crate) bench: bool,
    /// Write the filters as a program for the kernel's XDP: C, or what clang makes of it if FILE ends in .o
    #[arg(long, value_name = "FORM", group = "work", conflicts_with = "source")]
    pub(crate) emit: Option<Emit>,
    /// Where to; standard output unless it is said
    #[arg(short, long, value_name = "FILE", requires = "emit", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The link type that --explain takes filters to be for, when there is no capture to tell: 1 is Ethernet
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) link_type: i32,
}

/// What filters are written as.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Emit {
    /// A program that counts packets by rule and does with them what a map says
    Xdp,
}

#[derive(Subcommand, Debug)]
pub(crate) enum FilterCommand {
    Fuzz(FilterFuzz),
    Corpus(FilterCorpus),
}

/// Compare every engine with the others on random filters and packets
#[derive(Args, Debug)]
pub(crate) struct FilterFuzz {
    /// The first round; a round that failed is repeated by its number
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) seed: u64,
    /// How many rounds
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub(crate) rounds: Option<u64>,
    /// How long
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) seconds: u64,
}

/// Compare every engine with bpf_filter on the captures and expressions of a folder
///
/// Every pcap and pcapng file below DIR is a capture. In files that end in .rules each
/// line is a filter; in other text files what stands in quotes or fills a line, if
/// libpcap takes it for a filter without asking the network for names. Each filter is
/// compared on every packet of each link type it can be compiled for: by itself, and
/// merged with hundreds of others.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj filter corpus tests/packets\n  \
    qj filter corpus libpcap-1.10.5 --sets 20")]
pub(crate) struct FilterCorpus {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// How many sets of filters are merged for each link type; the first has all of them
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) sets: usize,
    /// Which sets
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) seed: u64,
}

/// Print the manual page
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj man | man -l -\n  \
    qj man > ~/.local/share/man/man1/qj.1")]
pub(crate) struct Man {}
