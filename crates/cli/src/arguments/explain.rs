//! The arguments of `qj explain`.

use clap::Args;

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
