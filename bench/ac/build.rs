//! Compiles our side with gcc, and with clang where it is installed; and the C++ peers that are installed.

use std::env;

use quaject_bench_peers::{BOOST_CONTEXT, BOOST_FIBER, CLANG, COROUTINES, configure};

fn main() {
    println!("cargo::rerun-if-changed=c");
    configure(&[&CLANG, &COROUTINES, &BOOST_CONTEXT, &BOOST_FIBER]);
    ours("gcc");
    if CLANG.is_installed() {
        ours("clang");
    }
    for (peer, name, library) in [
        (&COROUTINES, "coroutines", None),
        // The library of fibers uses that of contexts, so it is linked first.
        (&BOOST_FIBER, "boost_fiber", Some("boost_fiber")),
        (&BOOST_CONTEXT, "boost_context", Some("boost_context")),
    ] {
        if peer.is_installed() {
            let mut build = cc::Build::new();
            build.cpp(true).compiler("g++").std("c++20").opt_level(2).flag_if_supported("-fcoroutines");
            build.force_frame_pointer(false).file(format!("c/{name}.cpp")).compile(&format!("peer_{name}"));
            if let Some(library) = library {
                println!("cargo::rustc-link-lib=dylib={library}");
            }
        }
    }
}

fn ours(compiler: &str) {
    let include = env::var("DEP_QUAJECT_AC_INCLUDE").expect("quaject-ac says where its headers are");
    let mut build = cc::Build::new();
    build.compiler(compiler).std("gnu11").opt_level(2).include(&include);
    // As compilers do by themselves at this level; the cc crate asks for frame pointers with debug information.
    build.force_frame_pointer(false);
    build.define("PREFIX", compiler).file("c/ours.c").compile(&format!("ours-{compiler}"));
}
