//! Lexer, lossless tree, parser, types, ports and diagnostics of ESP, the language of processes and channels.
//! Does no I/O and knows nothing of the IR.
#![forbid(unsafe_code)]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod ast;
pub mod check;
pub mod diagnostics;
mod foreign;
pub mod format;
pub mod hir;
pub mod lexer;
pub mod literal;
mod lower;
pub mod parser;
pub mod standard;
pub mod tree;
pub mod types;

pub use quaject_diagnostic::span;
