//! Compiles the peers in C that are installed: DPDK's ACL and BPF libraries; and a program for the kernel, by clang,
//! which libbpf loads.

use std::process::Command;

use quaject_bench_peers::{RTE_ACL, XDP, configure};

fn main() {
    println!("cargo::rerun-if-changed=c");
    configure(&[&RTE_ACL, &XDP]);
    if RTE_ACL.is_installed() {
        dpdk();
    }
    if XDP.is_installed() {
        xdp();
    }
}

fn dpdk() {
    let output = Command::new("pkg-config").args(["--cflags", "libdpdk"]).output();
    let output = output.expect("pkg-config is installed with the peer");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut build = cc::Build::new();
    build.file("c/peers.c").opt_level(2).std("gnu11").flag("-Wno-deprecated-declarations");
    for flag in String::from_utf8(output.stdout).expect("flags are text").split_whitespace() {
        build.flag(flag);
    }
    build.compile("peer_dpdk");
    for library in ["rte_acl", "rte_bpf", "rte_eal", "pcap"] {
        println!("cargo::rustc-link-lib={library}");
    }
}

fn xdp() {
    cc::Build::new().file("c/xdp.c").opt_level(2).std("gnu11").compile("peer_xdp");
    println!("cargo::rustc-link-lib=bpf");
    let output = format!("{}/xdp.o", std::env::var("OUT_DIR").expect("cargo says where to"));
    let status = Command::new("clang")
        .args(["-O2", "-g", "-target", "bpf", "-I/usr/include"])
        // Where Debian keeps <asm/types.h>, which is the same for all machines.
        .arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH))
        .args(["-c", "c/xdp.bpf.c", "-o", &output])
        .status();
    assert!(status.is_ok_and(|status| status.success()), "clang compiles it");
}
