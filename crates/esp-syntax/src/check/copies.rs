//! The copies of syntax that elaboration makes: as long-lived as the syntax of the files.

use crate::ast;
use typed_arena::Arena;

/// Owns the copies.
#[derive(Default)]
pub(super) struct Copies {
    pub(super) procedures: Arena<ast::Procedure>,
    pub(super) templates: Arena<ast::Template>,
    pub(super) processes: Arena<ast::Process>,
    /// The ends of channels that a procedure without a call is checked with.
    pub(super) channels: Arena<ast::Channel>,
}
