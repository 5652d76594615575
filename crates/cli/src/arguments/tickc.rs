//! The arguments of `qj tickc`.

use super::DependencyOutputs;
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Compile 'C: C with expressions and statements that generate machine code at run time
///
///   object   FILE.o, to be linked with the library quaject-tickc:
///            cc -o prog FILE.o $(pkg-config --libs quaject-tickc)
///   exe      an executable, with the run-time library in it
///   c        the translation, C with GNU extensions; written to -o, by default to
///            standard output
///
/// The C compiler is that of --cc, else that of the variable CC, else cc: GCC or Clang.
/// It preprocesses FILE, finds errors of types, and compiles the translation with -O2.
/// With --stamp, an output that has the right content already is not touched.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj tickc power.tc -o power.o\n  \
    qj tickc power.tc --emit exe -o power && ./power\n  \
    qj tickc power.tc --report    what became of each tick and loop\n  \
    qj tickc power.tc --emit c | less\n  \
    qj tickc -g -I include -D SIZE=64 --cflag=-Wall power.tc -o power.o\n  \
    qj tickc power.tc -o power.o --depfile power.d --stamp power.stamp"
)]
pub(crate) struct Tickc {
    /// The program
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// The output format
    ///
    /// [default: object; none for --report without -o]
    #[arg(long, value_name = "FORM")]
    pub(crate) emit: Option<TickcForm>,
    /// The output file
    ///
    /// [default: the name of FILE, for C standard output]
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    /// Report, per line, what became of each tick and loop
    #[arg(long)]
    pub(crate) report: bool,
    /// Unroll also loops whose counters no operand of `$` depends on, up to so many iterations and 16 KB
    #[arg(long, value_name = "ITERATIONS", default_value_t = quaject_tickc::Options::default().unroll_limit)]
    pub(crate) unroll_limit: u32,
    /// Add information for debuggers
    #[arg(short = 'g')]
    pub(crate) debug: bool,
    /// A folder with headers; may be repeated
    #[arg(short = 'I', value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) include: Vec<PathBuf>,
    /// A macro; may be repeated
    #[arg(short = 'D', value_name = "NAME[=TEXT]")]
    pub(crate) define: Vec<String>,
    /// The C compiler, with options
    #[arg(long, value_name = "COMMAND")]
    pub(crate) cc: Option<String>,
    /// A flag for the C compiler; may be repeated
    #[arg(long = "cflag", value_name = "FLAG", allow_hyphen_values = true)]
    pub(crate) cflags: Vec<String>,
    /// A library or object to link with, as in `-l m`; may be repeated (for --emit exe)
    #[arg(short = 'l', long = "link", value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) link: Vec<String>,
    #[command(flatten)]
    pub(crate) dependencies: DependencyOutputs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TickcForm {
    C,
    Object,
    Exe,
}
