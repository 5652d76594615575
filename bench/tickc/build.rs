//! Translates the programs in 'C and compiles them with gcc, as well as the run-time library, and the peers that
//! are installed.

use quaject_bench_peers::{LIBGCCJIT, TCC, configure};
use std::path::PathBuf;
use std::process::Command;

const TICKC: &str = "../../crates/tickc";
const VCODE: &str = "../../crates/vcode";

fn compiler() -> cc::Build {
    let mut build = cc::Build::new();
    build.compiler("gcc").std("gnu11").opt_level(2).force_frame_pointer(false).warnings(false);
    // As programs are compiled by default.
    build.pic(false).flag("-fPIE");
    build.include("c").include(format!("{TICKC}/include")).include(format!("{VCODE}/include"));
    build
}

fn main() {
    for changed in ["c", "build.rs", TICKC, &format!("{VCODE}/include")] {
        println!("cargo::rerun-if-changed={changed}");
    }
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let arguments = ["-E", "-x", "c", "-fno-dollars-in-identifiers", "-Ic", "c/programs.tc"];
    let preprocessed = Command::new("gcc").args(arguments).output().expect("gcc starts");
    assert!(preprocessed.status.success(), "{}", String::from_utf8_lossy(&preprocessed.stderr));
    let text = String::from_utf8(preprocessed.stdout).expect("the programs are ASCII");
    let translation = quaject_tickc::translate(&text);
    let messages: Vec<String> = translation.diagnostics.iter().map(|own| own.located_message(&text)).collect();
    assert!(messages.is_empty(), "{messages:#?}");
    let translated = format!("{folder}/programs.c");
    let text = format!("#include <quaject/tickc.h>\n{}", translation.text);
    std::fs::write(&translated, text).expect("OUT_DIR can be written");
    println!("cargo::rustc-env=TRANSLATED={translated}");
    let plain = format!("{folder}/plain.c");
    std::fs::copy("c/programs.tc", &plain).expect("OUT_DIR can be written");
    println!("cargo::rustc-env=PLAIN={plain}");
    compiler().file(&translated).compile("programs");
    let mut runtime = compiler();
    let sources = std::fs::read_dir(format!("{TICKC}/src/runtime")).expect("the crate has a run-time library");
    for source in sources.filter_map(Result::ok).filter(|own| own.path().extension().is_some_and(|own| own == "c")) {
        runtime.file(source.path());
    }
    runtime.compile("tickc");
    configure(&[&TCC, &LIBGCCJIT]);
    if TCC.is_installed() {
        compiler().define("HAS_LIBTCC", None).file("c/peers.c").compile("peer_libtcc");
        println!("cargo::rustc-link-lib=tcc");
    }
    if LIBGCCJIT.is_installed() {
        // Its header is among those of gcc, its library above them.
        let headers = gcc_headers();
        let mut build = compiler();
        build.include(&headers).define("HAS_LIBGCCJIT", None).file("c/peers.c").compile("peer_libgccjit");
        println!("cargo::rustc-link-search=native={}", headers.parent().unwrap_or(&headers).display());
        println!("cargo::rustc-link-lib=gccjit");
    }
}

/// The folder of gcc's own headers.
fn gcc_headers() -> PathBuf {
    let output = Command::new("gcc").arg("-print-file-name=include").output().expect("gcc starts");
    PathBuf::from(String::from_utf8_lossy(&output.stdout).trim())
}
