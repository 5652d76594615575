//! The arguments of `qj build`.

use super::DependencyOutputs;
use super::code_generation::{Coding, UnrollChoice};
use super::project::{ImportFolders, ProjectChoice};
use clap::builder::{PossibleValue, PossibleValuesParser};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Compile a program to C, to an executable, or to its intermediate representation
///
///   c      NAME.c and NAME.h, with the run-time header quaject/esp.h: freestanding
///          C99 without allocation, to be built into your program; written to the
///          folder -o, by default the current one
///   exe    an executable whose channels are bound as `qj run` does:
///          ./NAME --bind CHANNEL=DRIVER:ARG ...
///   arduino
///          a library for Arduino in the folder -o: library.properties, the C in src and
///          a sketch in examples, which is yours: it is written if it does not exist
///   ir     the flow IR as text; written to -o, by default to standard output
///   promela
///          a model for Spin of the program or of one of its models; written as ir
///
/// A file that has the right content already is not touched, so that Make and Ninja do
/// not build again what is made of it.
#[derive(Args, Clone, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj build sender.esp --emit c -o firmware/generated\n  \
    qj build sender.esp --emit c --style poll --prefix sender --report\n  \
    qj build                      every program of the project\n  \
    qj build slip.esp --emit arduino --prefix slip -o ~/Arduino/libraries/slip\n  \
    qj build words.esp --emit exe -o words && ./words < README.md\n  \
    qj build words.esp --emit ir | less\n  \
    qj build sender.esp --emit c -o gen --depfile gen/sender.d --stamp gen/sender.stamp\n  \
    qj build sender.esp --emit promela -o sender.pml && spin -a sender.pml"
)]
pub(crate) struct Build {
    /// The program [default: those of the project]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) project: ProjectChoice,
    #[command(flatten)]
    pub(crate) imports: ImportFolders,
    /// The output format; a project can name one
    #[arg(long, value_name = "FORM")]
    pub(crate) emit: Option<EmitForm>,
    /// The output file or folder; for several programs, the folder
    #[arg(short, long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    pub(crate) output: Option<PathBuf>,
    /// The model of the program to write (for --emit promela)
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The interface of the C code to its environment (for --emit c, arduino)
    ///
    /// [default: sans-io; poll for arduino, which has no sans-io]
    #[arg(long, value_name = "STYLE")]
    pub(crate) style: Option<StyleChoice>,
    /// The capacity of a ring in messages, rounded up to a power of two; a full ring drops messages (for --style post)
    ///
    /// [default: 16]
    #[arg(long, value_name = "MESSAGES", value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub(crate) ring: Option<u32>,
    /// The prefix of the names in the generated C (for --emit c, arduino)
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
    /// A flag for the C compiler; may be repeated (for --emit exe)
    #[arg(long = "cflag", value_name = "FLAG", allow_hyphen_values = true)]
    pub(crate) cflags: Vec<String>,
    /// Make signed overflow, wide shifts and stores that lose bits the fault `overflow`
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) checked: Option<bool>,
    /// Print the program after this pass, instead of after all; may be given several times (for --emit ir)
    #[arg(long, value_name = "PASS", value_parser = passes())]
    pub(crate) dump: Vec<String>,
    /// Report RAM and code bytes of each process, bounds on waiting times, and how each process was compiled
    #[arg(long)]
    pub(crate) report: bool,
    #[command(flatten)]
    pub(crate) dependencies: DependencyOutputs,
}

/// The values of `--dump`: the passes, with their purposes.
fn passes() -> PossibleValuesParser {
    let passes = quaject_esp::PASSES.into_iter().map(|pass| {
        let value = PossibleValue::new(pass.name).help(pass.purpose);
        pass.alias.into_iter().fold(value, PossibleValue::alias)
    });
    PossibleValuesParser::new(passes.chain([PossibleValue::new("all").help("after each pass")]))
}

/// Parses an identifier of C.
fn c_name(text: &str) -> Result<String, String> {
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if is_name { Ok(text.to_string()) } else { Err("letters, digits and `_`, no digit first".to_string()) }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum EmitForm {
    C,
    Arduino,
    Ir,
    Exe,
    Promela,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StyleChoice {
    /// The program calls c_ready, c_take and c_put
    Poll,
    /// Interrupts post messages into static rings
    Post,
    /// One function, step(state, input, output, now), without other calls
    SansIo,
}
