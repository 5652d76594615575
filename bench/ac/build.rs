//! Compiles our side with both C compilers, and the C++ peers, whose libraries come from Debian
//! (libboost-context-dev, libboost-fiber-dev).

use std::env;

fn main() {
    let include = env::var("DEP_QUAJECT_AC_INCLUDE").expect("quaject-ac says where its headers are");
    for compiler in ["gcc", "clang"] {
        let mut build = cc::Build::new();
        build.compiler(compiler).std("gnu11").opt_level(2).include(&include);
        // As compilers do by themselves at this level; the cc crate asks for frame pointers with debug information.
        build.force_frame_pointer(false);
        build.define("PREFIX", compiler).file("c/ours.c").compile(&format!("ours-{compiler}"));
    }
    let mut peers = cc::Build::new();
    peers.cpp(true).std("c++20").opt_level(2).flag_if_supported("-fcoroutines").force_frame_pointer(false);
    peers.file("c/peers.cpp").compile("peers");
    for library in ["boost_context", "boost_fiber"] {
        println!("cargo::rustc-link-lib=dylib={library}");
    }
    println!("cargo::rerun-if-changed=c");
}
