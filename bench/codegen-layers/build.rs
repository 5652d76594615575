//! Writes the workload out: a straight line of a thousand operations, once as a table and once as a macro with one call
//! per operation, so that the compiler sees a thousand different sites.

use std::fmt::Write;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut state = 2463534242_u32;
    let mut random = move |below: u32| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state % below
    };
    let mut table = String::from("pub const OPERATIONS: [Operation; 1000] = [\n");
    let mut sites = String::from("macro_rules! sites { ($asm:ident, $reg:ident, $base:expr) => {\n");
    for _ in 0..1000 {
        let (kind, d, s, displacement) = (random(5), random(8), random(8), 4 * random(64));
        let (name, line) = match kind {
            0 => ("Add", format!("let d = $reg!({d}); $asm.addi(d, d, $reg!({s}));")),
            1 => ("Sub", format!("let d = $reg!({d}); $asm.subi(d, d, $reg!({s}));")),
            2 => ("Xor", format!("let d = $reg!({d}); $asm.xori(d, d, $reg!({s}));")),
            3 => ("Load", format!("$asm.ldii($reg!({d}), $base, {displacement});")),
            _ => ("Store", format!("$asm.stii($reg!({d}), $base, {displacement});")),
        };
        writeln!(sites, "    {line}").expect("a String takes everything");
        writeln!(table, "    Operation {{ kind: Kind::{name}, d: {d}, s: {s}, displacement: {displacement} }},")
            .expect("a String takes everything");
    }
    table.push_str("];\n");
    sites.push_str("} }\n");
    let folder = std::env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(format!("{folder}/operations.rs"), table + &sites).expect("OUT_DIR can be written");
}
