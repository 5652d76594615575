//! Compiles the run-time library, `libquaject-tickc.a`. Where vcode has no machine for it the file is empty.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// The machines of vcode, as Cargo names them.
const MACHINES: &[&str] = &["x86_64", "aarch64", "riscv64"];

fn main() {
    let variable = |name: &str| env::var(name).unwrap_or_else(|_| panic!("Cargo sets {name}"));
    println!("cargo::rerun-if-changed=src/runtime");
    println!("cargo::rerun-if-changed=include");
    let library = Path::new(&variable("OUT_DIR")).join("libquaject-tickc.a");
    let is_supported = MACHINES.contains(&variable("CARGO_CFG_TARGET_ARCH").as_str());
    if variable("CARGO_CFG_TARGET_OS") != "linux" || !is_supported {
        fs::write(library, "").expect("Cargo's output folder can be written");
        return;
    }
    let vcode = env::var("DEP_QUAJECT_VCODE_INCLUDE").expect("quaject-vcode says where `quaject/vcode.h` is");
    println!("cargo::rerun-if-changed={vcode}");
    let mut build = cc::Build::new();
    build.std("gnu11").include("include").include(vcode).opt_level(2).warnings(true).extra_warnings(true);
    // Programs that qj links need no search path, so nothing is to be linked with the crate.
    build.cargo_metadata(false).files(sources()).compile("quaject-tickc");
}

/// The C files of the library.
fn sources() -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = fs::read_dir("src/runtime")
        .expect("the crate has C sources")
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "c"))
        .collect();
    sources.sort();
    sources
}
