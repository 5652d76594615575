//! Tells crates with C of their own where `quaject/ring.h` is (`DEP_QUAJECT_QUEUE_INCLUDE`). Compiles nothing.

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets the package's folder");
    println!("cargo::metadata=include={root}/include");
    println!("cargo::rerun-if-changed=build.rs");
}
