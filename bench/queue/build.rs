//! Compiles the C and C++ peers: boost, ck_ring and DPDK's rte_ring, as installed from the distribution's packages
//! libboost-dev, libck-dev and libdpdk-dev, and our own C header.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=peers");
    println!("cargo::rerun-if-changed=../../crates/queue/include");
    let flags = Command::new("pkg-config").args(["--cflags", "libdpdk"]).output();
    let flags = flags.ok().filter(|output| output.status.success()).map(|output| output.stdout);
    let flags = flags.expect("the peers are packages: apt-get install libdpdk-dev libck-dev libboost-dev pkg-config");
    let flags = String::from_utf8(flags).expect("flags are text");
    let configure = |build: &mut cc::Build| {
        build.opt_level(3).include("../../crates/queue/include").warnings(false);
        for flag in flags.split_whitespace() {
            build.flag(flag);
        }
    };
    let mut c = cc::Build::new();
    configure(c.file("peers/ck.c").file("peers/rte.c").file("peers/ours.c"));
    c.compile("peers_c");
    let mut cpp = cc::Build::new();
    configure(cpp.cpp(true).std("c++17").file("peers/boost.cpp"));
    cpp.compile("peers_cpp");
    println!("cargo::rustc-link-lib=dylib=rte_ring");
    println!("cargo::rustc-link-lib=dylib=rte_eal");
}
