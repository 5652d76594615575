//! The arguments of `qj explain`.

use clap::Args;

/// Explain the code of a message or fault
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj explain E0405\n  \
    qj explain deadlock\n  \
    qj explain             lists all codes")]
pub(crate) struct Explain {
    /// The code, such as E0405
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}
