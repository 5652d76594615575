//! The arguments of `qj lsp`.

use clap::Args;

/// Serve an editor: the Language Server Protocol on standard input and output
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj lsp                       an editor starts it and sends requests\n\n\
    Settings for Neovim, Helix and Emacs are in editors/ and in the book's chapter\n\
    on editors.")]
pub(crate) struct Lsp {
    /// Accepted and not needed: editors add it
    #[arg(long, hide = true)]
    stdio: bool,
}
