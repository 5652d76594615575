//! The arguments of `qj completions` and `qj man`.

use clap::Args;
use clap_complete::Shell;

/// Print the completion script of a shell
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

/// Print the manual page
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj man | man -l -\n  \
    qj man > ~/.local/share/man/man1/qj.1")]
pub(crate) struct Man {}
