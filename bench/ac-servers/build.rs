//! Compiles the example servers as functions, and the client.

use std::env;

fn main() {
    let include = env::var("DEP_QUAJECT_AC_INCLUDE").expect("quaject-ac says where its headers are");
    let rings = env::var("DEP_QUAJECT_AC_RINGS").expect("quaject-ac says where `quaject/ring.h` is");
    for server in ["echo", "httpd"] {
        let mut build = cc::Build::new();
        build.std("gnu11").opt_level(2).include(&include).include(&rings);
        build.define("main", Some(format!("{server}_main").as_str()));
        build.file(format!("../../crates/ac/examples/c/{server}.c")).compile(server);
    }
    cc::Build::new().std("gnu11").opt_level(2).file("c/client.c").compile("client");
    println!("cargo::rerun-if-changed=c");
    println!("cargo::rerun-if-changed=../../crates/ac/examples/c");
}
