//! Compiles the C core and the machine's assembly. Tells dependent build scripts where the headers are
//! (`DEP_QUAJECT_AC_INCLUDE`, and `DEP_QUAJECT_AC_RINGS` for the rings').

use std::path::Path;
use std::{env, fs};

fn main() {
    let system = env::var("CARGO_CFG_TARGET_OS").expect("Cargo sets the target's system");
    assert!(system == "linux", "quaject-ac needs Linux: it has no stacks, polling or assembly for `{system}`");
    let machine = env::var("CARGO_CFG_TARGET_ARCH").expect("Cargo sets the target's machine");
    let assembly = format!("src/asm/{machine}.S");
    assert!(Path::new(&assembly).is_file(), "quaject-ac knows no stack switch for `{machine}`");

    let rings = env::var("DEP_QUAJECT_QUEUE_INCLUDE").expect("quaject-queue says where `quaject/ring.h` is");
    let mut build = cc::Build::new();
    build.std("gnu11").include("include").include(&rings).include("src/c").warnings(true).extra_warnings(true);
    // Exceptions and panics may pass a task that has not waited; the cleanup in `qj_ac_async` must see them.
    build.flag("-fexceptions");
    // Unwinders go by the tables. A frame pointer is a register less: a tenth of what a message costs.
    build.force_frame_pointer(false);
    build.opt_level(2).file(assembly);
    let mut sources: Vec<_> = fs::read_dir("src/c")
        .expect("the crate has C sources")
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .collect();
    sources.sort();
    build.files(sources).compile("quaject-ac");

    let root = env::var("CARGO_MANIFEST_DIR").expect("Cargo sets the package's folder");
    println!("cargo::metadata=include={root}/include");
    println!("cargo::metadata=rings={rings}");
    println!("cargo::rustc-env=QUAJECT_RING_INCLUDE={rings}");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=include");
}
