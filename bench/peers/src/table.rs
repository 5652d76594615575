//! The table: packages, the peers that need them, and the benchmarks that compare with the peers.

use crate::Sign::{Header, Library, Program};
use crate::{Package, Peer};

static ASMJIT_DEV: Package =
    Package { name: "libasmjit-dev", holds: "AsmJit", signs: &[Header("asmjit/asmjit.h"), Library("libasmjit.a")] };
static BOOST_DEV: Package =
    Package { name: "libboost-dev", holds: "the queues of Boost", signs: &[Header("boost/lockfree/queue.hpp")] };
static BOOST_CONTEXT_DEV: Package = Package {
    name: "libboost-context-dev",
    holds: "the coroutines of Boost",
    // The headers of all libraries of Boost are in one package.
    signs: &[Header("boost/context/fiber.hpp"), Library("libboost_context.so")],
};
static BOOST_FIBER_DEV: Package = Package {
    name: "libboost-fiber-dev",
    holds: "the fibers of Boost",
    signs: &[Header("boost/fiber/all.hpp"), Library("libboost_fiber.so")],
};
static BPF_DEV: Package =
    Package { name: "libbpf-dev", holds: "XDP in the kernel", signs: &[Header("bpf/libbpf.h"), Library("libbpf.so")] };
static CK_DEV: Package =
    Package { name: "libck-dev", holds: "Concurrency Kit's ck_ring", signs: &[Header("ck_ring.h")] };
static CLANG_PACKAGE: Package =
    Package { name: "clang", holds: "contenders in C and C++", signs: &[Program("clang"), Program("clang++")] };
static DPDK_DEV: Package = Package {
    name: "libdpdk-dev",
    holds: "DPDK's libraries",
    signs: &[Library("pkgconfig/libdpdk.pc"), Header("dpdk/rte_ring.h")],
};
static GCC: Package = Package { name: "gcc", holds: "the C compiler", signs: &[Program("gcc"), Program("cc")] };
static GXX: Package = Package { name: "g++", holds: "contenders in C++", signs: &[Program("g++")] };
static GCCJIT_DEV: Package = Package {
    name: "libgccjit-12-dev",
    holds: "libgccjit",
    signs: &[Library("gcc/x86_64-linux-gnu/12/include/libgccjit.h")],
};
static GOLANG: Package = Package { name: "golang-go", holds: "goroutines and channels of Go", signs: &[Program("go")] };
static ISAL_DEV: Package =
    Package { name: "libisal-dev", holds: "the CRC of ISA-L", signs: &[Header("isa-l.h"), Library("libisal.so")] };
static PCAP: Package = Package { name: "libpcap0.8", holds: "filters of libpcap", signs: &[Library("libpcap.so.0.8")] };
static PCAP_DEV: Package = Package {
    name: "libpcap-dev",
    holds: "programs of libpcap for DPDK",
    signs: &[Header("pcap/pcap.h"), Library("libpcap.so")],
};
static PKG_CONFIG: Package =
    Package { name: "pkg-config", holds: "the flags of DPDK", signs: &[Program("pkg-config")] };
static SPIN_PACKAGE: Package = Package { name: "spin", holds: "Spin", signs: &[Program("spin")] };
static TCC_DEV: Package =
    Package { name: "libtcc-dev", holds: "libtcc", signs: &[Header("libtcc.h"), Library("libtcc.a")] };
static CURL: Package = Package { name: "curl", holds: "the client of the servers", signs: &[Program("curl")] };
static TFTPD: Package = Package { name: "tftpd-hpa", holds: "the server tftpd-hpa", signs: &[Program("in.tftpd")] };

pub static ASMJIT: Peer = Peer { name: "AsmJit", key: "asmjit", packages: &[&GXX, &ASMJIT_DEV] };
pub static BOOST: Peer = Peer { name: "the queues of Boost", key: "boost", packages: &[&GXX, &BOOST_DEV] };
pub static BOOST_CONTEXT: Peer =
    Peer { name: "Boost.Context", key: "boost_context", packages: &[&GXX, &BOOST_CONTEXT_DEV] };
pub static BOOST_FIBER: Peer =
    Peer { name: "Boost.Fiber", key: "boost_fiber", packages: &[&GXX, &BOOST_CONTEXT_DEV, &BOOST_FIBER_DEV] };
pub static CACHED: Peer = Peer { name: "the cached-index reference", key: "cached", packages: &[&GXX] };
pub static CK: Peer = Peer { name: "ck_ring", key: "ck", packages: &[&CK_DEV] };
pub static CLANG: Peer = Peer { name: "what clang compiles", key: "clang", packages: &[&CLANG_PACKAGE] };
pub static COROUTINES: Peer = Peer { name: "C++20 coroutines by g++", key: "coroutines", packages: &[&GXX] };
pub static LIBGCCJIT: Peer = Peer { name: "libgccjit", key: "libgccjit", packages: &[&GCCJIT_DEV] };
pub static GO: Peer = Peer { name: "Go", key: "go", packages: &[&GOLANG] };
pub static ISAL: Peer = Peer { name: "ISA-L", key: "isal", packages: &[&ISAL_DEV] };
pub static LIBPCAP: Peer = Peer { name: "libpcap", key: "libpcap", packages: &[&PCAP] };
pub static RTE_ACL: Peer =
    Peer { name: "rte_acl and rte_bpf", key: "rte_acl", packages: &[&PKG_CONFIG, &DPDK_DEV, &PCAP_DEV] };
pub static RTE_RING: Peer = Peer { name: "rte_ring", key: "rte_ring", packages: &[&PKG_CONFIG, &DPDK_DEV] };
pub static SPIN: Peer = Peer { name: "Spin", key: "spin", packages: &[&SPIN_PACKAGE, &GCC] };
pub static TCC: Peer = Peer { name: "libtcc", key: "tcc", packages: &[&TCC_DEV] };
pub static TFTPD_HPA: Peer = Peer { name: "tftpd-hpa", key: "tftpd_hpa", packages: &[&TFTPD] };
pub static XDP: Peer = Peer { name: "XDP", key: "xdp", packages: &[&CLANG_PACKAGE, &BPF_DEV] };

/// The peers of each benchmark that has such.
pub static PEERS: &[(&str, &[&Peer])] = &[
    ("ac", &[&CLANG, &COROUTINES, &BOOST_CONTEXT, &BOOST_FIBER, &GO]),
    ("codegen", &[&ASMJIT, &TCC]),
    ("filter", &[&LIBPCAP, &RTE_ACL, &XDP]),
    ("filters-process", &[&CLANG, &COROUTINES, &GO]),
    ("pipe", &[&ISAL]),
    ("queue", &[&CACHED, &BOOST, &CK, &RTE_RING]),
    ("tftp", &[&TFTPD_HPA]),
    ("tickc", &[&TCC, &LIBGCCJIT]),
    ("verify", &[&SPIN]),
];

/// What a benchmark needs whatever it compares with.
pub static REQUIRED: &[(&str, &[&Package])] = &[
    ("ac", &[&GCC]),
    ("ac-paper", &[&GCC]),
    ("ac-servers", &[&GCC]),
    ("codegen", &[&GCC]),
    ("codegen-vectors", &[&GCC]),
    ("filter", &[&GCC]),
    ("filters-process", &[&GCC]),
    ("pipe", &[&GCC]),
    ("queue", &[&GCC]),
    ("tcp-responder", &[&GCC]),
    ("tftp", &[&GCC, &CURL]),
    ("tickc", &[&GCC]),
];
