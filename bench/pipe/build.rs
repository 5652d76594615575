//! Compiles the loops in C twice: as compilers do by default, without vectors, and as well as gcc can for this machine;
//! and those by hand. Links ISA-L (package libisal-dev) where it is installed.

use quaject_bench_peers::{ISAL, configure};

fn main() {
    println!("cargo::rerun-if-changed=c");
    let build = |name: &str, level, flags: &[&str]| {
        let mut build = cc::Build::new();
        build.compiler("gcc").opt_level(level).define("NAME(x)", format!("{name}_##x").as_str());
        for flag in flags {
            build.flag(flag);
        }
        build.file("c/loops.c").compile(&format!("loops_{name}"));
    };
    build("o2", 2, &["-fno-tree-vectorize"]);
    build("o3", 3, &["-march=native"]);
    configure(&[&ISAL]);
    if ISAL.is_installed() {
        println!("cargo::rustc-link-lib=isal");
    }
    cc::Build::new().compiler("gcc").opt_level(3).flag("-march=native").file("c/hand.c").compile("loops_by_hand");
}
