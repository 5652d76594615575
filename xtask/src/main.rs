//! Tasks of the workspace: `cargo xtask test | bench NAME | install`.
fn main() {}
