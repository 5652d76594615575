//! Language service of ESP over the texts of an editor: diagnostics by program, hover, navigation, symbols, folding,
//! formatting, tokens, completion, renaming and corrections. Places are offsets in bytes. Does no I/O and knows no
//! protocol.
#![forbid(unsafe_code)]

/// The example of the README is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod actions;
mod completion;
mod edits;
mod folding;
mod hover;
mod navigation;
mod paths;
mod positions;
mod problems;
mod program;
mod rename;
mod scopes;
mod symbols;
mod tokens;
mod workspace;

pub use actions::Correction;
pub use completion::{Completion, CompletionKind};
pub use edits::Edit;
pub use folding::{Fold, FoldKind};
pub use hover::Hover;
pub use navigation::Highlight;
pub use positions::{Encoding, Lines, Position};
pub use problems::{Problem, Related};
pub use program::{Files, Location};
pub use rename::RenameError;
pub use symbols::{Symbol, SymbolKind};
pub use tokens::{Token, TokenKind};
pub use workspace::{Roots, Workspace};
