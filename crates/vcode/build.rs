//! Tells crates with C of their own where `quaject/vcode.h` is (`DEP_QUAJECT_VCODE_INCLUDE`). Compiles nothing.

fn main() {
    let root = std::env::var("CARGO_MANIFEST_DIR").expect("Cargo sets the package's folder");
    println!("cargo::metadata=include={root}/include");
    println!("cargo::rerun-if-changed=build.rs");
}
