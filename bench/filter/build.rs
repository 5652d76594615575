//! Compiles the peers in C: DPDK's ACL and BPF libraries, from the package libdpdk-dev.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=c");
    let ask = |what: &str| {
        let output = Command::new("pkg-config").args([what, "libdpdk"]).output();
        let output = output.expect("pkg-config runs: `apt install pkg-config libdpdk-dev`");
        String::from_utf8(output.stdout).expect("flags are text")
    };
    let mut build = cc::Build::new();
    build.file("c/peers.c").opt_level(2).std("gnu11").flag("-Wno-deprecated-declarations");
    for flag in ask("--cflags").split_whitespace() {
        build.flag(flag);
    }
    build.compile("peers");
    for library in ["rte_acl", "rte_bpf", "rte_eal", "pcap"] {
        println!("cargo::rustc-link-lib={library}");
    }
}
