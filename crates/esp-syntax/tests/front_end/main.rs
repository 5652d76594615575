//! The front end as its users meet it: programs go in, trees, messages and formatted text come out.

mod explanations;
mod figures;
mod format;
mod hostile;
mod support;
mod syntax_errors;
