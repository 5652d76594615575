//! Compiles the passes in C as well as gcc can for this machine.

fn main() {
    println!("cargo::rerun-if-changed=c");
    cc::Build::new().compiler("gcc").opt_level(3).flag("-march=native").file("c/passes.c").compile("passes");
}
