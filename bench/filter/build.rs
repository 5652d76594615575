//! Compiles the peers in C: DPDK's ACL and BPF libraries, from the package libdpdk-dev; and a program for the kernel,
//! by clang, which libbpf-dev loads.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=c");
    let ask = |what: &str| {
        let output = Command::new("pkg-config").args([what, "libdpdk"]).output();
        let output = output.expect("pkg-config runs: `apt install pkg-config libdpdk-dev`");
        String::from_utf8(output.stdout).expect("flags are text")
    };
    let mut build = cc::Build::new();
    build.file("c/peers.c").file("c/xdp.c").opt_level(2).std("gnu11").flag("-Wno-deprecated-declarations");
    for flag in ask("--cflags").split_whitespace() {
        build.flag(flag);
    }
    build.compile("peers");
    for library in ["rte_acl", "rte_bpf", "rte_eal", "pcap", "bpf"] {
        println!("cargo::rustc-link-lib={library}");
    }
    let output = format!("{}/xdp.o", std::env::var("OUT_DIR").expect("cargo says where to"));
    let status = Command::new("clang")
        .args(["-O2", "-g", "-target", "bpf", "-I/usr/include"])
        // Where Debian keeps <asm/types.h>, which is the same for all machines.
        .arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH))
        .args(["-c", "c/xdp.bpf.c", "-o", &output])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "clang compiles it: `apt install clang libbpf-dev`");
}
