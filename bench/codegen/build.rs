//! Writes the workload out: a straight line of a thousand operations, once as a table and for every contender as one
//! call, statement or line per operation, so that its compiler sees a thousand different sites. Compiles what is in C
//! and C++, of the peers AsmJit and libtcc those that are installed.

use std::fmt::Write;

use quaject_bench_peers::{ASMJIT, TCC, configure};

/// One operation of the straight line.
#[derive(Clone, Copy)]
struct Operation {
    kind: u32,
    d: u32,
    s: u32,
    displacement: u32,
}

/// The names of the machine registers that `T0` to `T7` stand for on x86-64, 32 bits of them.
const X86_REGISTERS: [&str; 8] = ["r10d", "eax", "r9d", "r8d", "ecx", "edx", "esi", "edi"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rerun-if-changed=../../crates/vcode/include");
    let operations = operations();
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    let write = |name: &str, text: String| {
        std::fs::write(format!("{folder}/{name}"), text).expect("OUT_DIR can be written");
    };
    write("operations.rs", table(&operations) + &rust_sites(&operations));
    write("dynasm_sites.rs", dynasm_sites(&operations));
    write("sites.h", c_sites(&operations));
    write("thousand.c", c_text(&operations));
    cc::Build::new()
        .file("src/ours.c")
        .include("../../crates/vcode/include")
        .include(&folder)
        .opt_level(2)
        .flag("-fno-tree-vectorize")
        // As compilers build programs; in shared objects memory of a thread is found by a call.
        .pic(false)
        .flag("-fPIE")
        .std("gnu11")
        .compile("ours");
    configure(&[&ASMJIT, &TCC]);
    if TCC.is_installed() {
        cc::Build::new().file("src/peers/tcc.c").opt_level(2).compile("peer_tcc");
        link(&["static=tcc", "dylib=dl"]);
    }
    if ASMJIT.is_installed() {
        cc::Build::new()
            .cpp(true)
            .compiler("g++")
            .file("src/peers/asmjit.cpp")
            .include(&folder)
            .define("ASMJIT_STATIC", None)
            .opt_level(2)
            .std("c++17")
            .compile("peer_asmjit");
        link(&["static=asmjit", "dylib=stdc++", "dylib=rt"]);
    }
}

/// Static libraries are found by rustc, which has no folders of its own for them.
fn link(libraries: &[&str]) {
    println!("cargo::rustc-link-search=native=/usr/lib/x86_64-linux-gnu");
    for library in libraries {
        println!("cargo::rustc-link-lib={library}");
    }
}

fn operations() -> Vec<Operation> {
    let mut state = 2463534242_u32;
    let mut random = move |below: u32| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state % below
    };
    (0..1000).map(|_| Operation { kind: random(5), d: random(8), s: random(8), displacement: 4 * random(64) }).collect()
}

/// The operations between the loads and the stores of all registers, which make a whole function of them. These are not
/// in loops: the compiler's analysis of a loop after a thousand sites is deeper than its stack.
fn whole_function(operations: &[Operation]) -> impl Iterator<Item = Operation> {
    let every = |kind| (0..8).map(move |d| Operation { kind, d, s: 0, displacement: 4 * d });
    every(3).chain(operations.iter().copied()).chain(every(4))
}

fn table(operations: &[Operation]) -> String {
    let mut text = String::from("pub const OPERATIONS: [Operation; 1000] = [\n");
    for Operation { kind, d, s, displacement } in operations {
        let name = ["Add", "Sub", "Xor", "Load", "Store"][*kind as usize];
        line(
            &mut text,
            format!("    Operation {{ kind: Kind::{name}, d: {d}, s: {s}, displacement: {displacement} }},"),
        );
    }
    text + "];\n"
}

fn rust_sites(operations: &[Operation]) -> String {
    let mut text = String::from("macro_rules! sites { ($asm:ident, $reg:ident, $base:expr) => {\n");
    for Operation { kind, d, s, displacement } in whole_function(operations) {
        line(
            &mut text,
            match kind {
                0..=2 => {
                    let name = ["addi", "subi", "xori"][kind as usize];
                    format!("    let d = $reg!({d}); $asm.{name}(d, d, $reg!({s}));")
                }
                3 => format!("    $asm.ldii($reg!({d}), $base, {displacement});"),
                _ => format!("    $asm.stii($reg!({d}), $base, {displacement});"),
            },
        );
    }
    text + "} }\n"
}

/// One invocation per site: within one, neighbours that are constant would become one copy of bytes.
fn dynasm_sites(operations: &[Operation]) -> String {
    let mut text = String::from("{\n");
    for Operation { kind, d, s, displacement } in whole_function(operations) {
        let (d, s) = (X86_REGISTERS[d as usize], X86_REGISTERS[s as usize]);
        let instruction = match kind {
            0..=2 => format!("{} {d}, {s}", ["add", "sub", "xor"][kind as usize]),
            3 => format!("mov {d}, [rbx + {displacement}]"),
            _ => format!("mov [rbx + {displacement}], {d}"),
        };
        line(&mut text, format!("    dynasm!(asm ; .arch x64 ; {instruction});"));
    }
    text + "}\n"
}

/// Sites for the header, and for AsmJit.
fn c_sites(operations: &[Operation]) -> String {
    let mut ours = String::from("#define SITES(REG, BASE) \\\n");
    let mut asmjit = String::from("#define ASMJIT_SITES \\\n");
    for Operation { kind, d, s, displacement } in whole_function(operations) {
        let name = ["add", "sub", "xor", "ld", "st"][kind as usize];
        let (x86, from) = (X86_REGISTERS[d as usize], X86_REGISTERS[s as usize]);
        line(
            &mut ours,
            match kind {
                0..=2 => format!("    {{ v_reg d = REG({d}); qjv_{name}i(&a, d, d, REG({s})); }} \\"),
                _ => format!("    qjv_{name}ii(&a, REG({d}), BASE, {displacement}); \\"),
            },
        );
        line(
            &mut asmjit,
            match kind {
                0..=1 => format!("    a.{name}({x86}, {from}); \\"),
                2 => format!("    a.xor_({x86}, {from}); \\"),
                3 => format!("    a.mov({x86}, dword_ptr(rbx, {displacement})); \\"),
                _ => format!("    a.mov(dword_ptr(rbx, {displacement}), {x86}); \\"),
            },
        );
    }
    ours + "\n" + &asmjit + "\n"
}

/// The workload as C text, for the peer that is a C compiler.
fn c_text(operations: &[Operation]) -> String {
    let mut text = String::from("void thousand(unsigned *m) {\n");
    for index in 0..8 {
        line(&mut text, format!("unsigned r{index} = m[{index}];"));
    }
    for Operation { kind, d, s, displacement } in operations {
        let word = displacement / 4;
        line(
            &mut text,
            match kind {
                0..=2 => format!("r{d} {}= r{s};", ["+", "-", "^"][*kind as usize]),
                3 => format!("r{d} = m[{word}];"),
                _ => format!("m[{word}] = r{d};"),
            },
        );
    }
    for index in 0..8 {
        line(&mut text, format!("m[{index}] = r{index};"));
    }
    text + "}\n"
}

fn line(text: &mut String, line: String) {
    writeln!(text, "{line}").expect("a String takes everything");
}
