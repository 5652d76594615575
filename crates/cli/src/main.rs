//! `qj`: arguments, files and terminals. Holds no logic that a library user would want.
fn main() {}
