//! Compiles our own C header and the C and C++ peers that are installed: ck_ring, DPDK's rte_ring, the queues of Boost,
//! and a reference that needs a C++ compiler only.

use std::process::Command;

use quaject_bench_peers::{BOOST, CACHED, CK, RTE_RING, configure};

fn main() {
    println!("cargo::rerun-if-changed=peers");
    println!("cargo::rerun-if-changed=../../crates/queue/include");
    configure(&[&CACHED, &BOOST, &CK, &RTE_RING]);
    c("ours", &[]);
    if CK.is_installed() {
        c("ck", &[]);
    }
    if RTE_RING.is_installed() {
        c("rte", &dpdk_flags());
        println!("cargo::rustc-link-lib=dylib=rte_ring");
        println!("cargo::rustc-link-lib=dylib=rte_eal");
    }
    for (peer, name) in [(&CACHED, "cached"), (&BOOST, "boost")] {
        if peer.is_installed() {
            let mut build = cc::Build::new();
            build.cpp(true).compiler("g++").std("c++17").file(format!("peers/{name}.cpp"));
            optimise(&mut build).compile(&format!("peer_{name}"));
        }
    }
}

fn c(name: &str, flags: &[String]) {
    let mut build = cc::Build::new();
    build.file(format!("peers/{name}.c"));
    for flag in flags {
        build.flag(flag);
    }
    optimise(&mut build).compile(&format!("peer_{name}"));
}

fn optimise(build: &mut cc::Build) -> &mut cc::Build {
    // The instructions that rte_ring has are those of this processor, so all contenders have them.
    build.opt_level(3).flag("-march=corei7").include("../../crates/queue/include").warnings(false)
}

fn dpdk_flags() -> Vec<String> {
    let output = Command::new("pkg-config").args(["--cflags", "libdpdk"]).output();
    let output = output.expect("pkg-config is installed with the peer");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("flags are text").split_whitespace().map(str::to_owned).collect()
}
