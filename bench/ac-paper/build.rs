//! Compiles the experiments: the tables twice, with lazily and with eagerly owned stacks; the messages once.

use std::env;

fn main() {
    let include = env::var("DEP_QUAJECT_AC_INCLUDE").expect("quaject-ac says where its headers are");
    let rings = env::var("DEP_QUAJECT_AC_RINGS").expect("quaject-ac says where `quaject/ring.h` is");
    let build = || {
        let mut build = cc::Build::new();
        // Without frame pointers, as compilers do by themselves; the cc crate asks for them with debug information.
        build.std("gnu11").opt_level(2).force_frame_pointer(false).include(&include).include(&rings);
        build
    };
    build().define("PREFIX", "lazy").file("c/tables.c").compile("tables-lazy");
    build().define("PREFIX", "eager").define("QJ_AC_EAGER", None).file("c/tables.c").compile("tables-eager");
    build().file("c/messages.c").file("c/dispatch.c").compile("messages");
    println!("cargo::rerun-if-changed=c");
}
