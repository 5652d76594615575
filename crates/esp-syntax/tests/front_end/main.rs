//! The public interface of the front end: programs in; trees, diagnostics and formatted text out.

mod explanations;
mod figures;
mod format;
mod hostile;
mod newcomers;
mod support;
mod syntax_errors;
