//! The arguments of `qj dap`.

use clap::Args;

/// Debug a run that `qj verify` finds, in an editor
///
/// Speaks the Debug Adapter Protocol on standard input and output; editors start it.
/// The arguments of a launch are `program`, a file of `qj verify --trace` or a program
/// that is then verified; `model`, a model of the program; `verifyArguments`, further
/// options of `qj verify`; and `stopOnEntry`. Processes are threads. Steps go from
/// communication to communication, forwards and backwards.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj dap                       an editor starts it and sends requests\n\n\
    A launch configuration:\n  \
    { \"type\": \"qj\", \"request\": \"launch\", \"program\": \"server.esp\", \"model\": \"loss\" }")]
pub(crate) struct Dap {}
