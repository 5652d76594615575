//! Lexer, lossless tree, parser, types, ports and diagnostics of ESP, the language of processes and channels.
//! Does no I/O and knows nothing of the IR.
#![forbid(unsafe_code)]

pub mod ast;
pub mod diagnostics;
pub mod hir;
pub mod span;
pub mod types;
