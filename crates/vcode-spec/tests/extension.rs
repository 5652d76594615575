//! One line in a specification adds a family of instructions to Rust, C, decoder, documentation and tests.

use std::path::Path;

use quaject_vcode_spec::{Generated, Source, Sources, generate};

/// The specifications of the repository, with lines added to some of them.
fn generated(added: &[(&str, &str)]) -> Vec<Generated> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let read = |name: &str| {
        let mut text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
        for (_, line) in added.iter().filter(|(file, _)| *file == name) {
            text.push_str(line);
        }
        Source { name: name.into(), text }
    };
    let machines = ["aarch64", "alpha", "mips", "ppc64le", "riscv64", "sparc64", "x86_64"];
    generate(&Sources {
        portable: vec![read("portable.spec"), read("extensions.spec"), read("vectors.spec")],
        machines: machines
            .iter()
            .map(|name| {
                let files = [format!("{name}.spec"), format!("ext/{name}.spec"), format!("vectors/{name}.spec")];
                files.iter().map(|name| read(name)).collect()
            })
            .collect(),
    })
    .expect("the specification holds together")
}

fn mentions(files: &[Generated], path: &str, text: &str) -> bool {
    let file = files.iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no generated file {path}"));
    file.text.contains(text)
}

#[test]
fn a_line_in_terms_of_the_core_adds_a_family_on_every_machine() {
    let line = "unary absolute i l  absolute value  := rsh%i a,s,31; xor% b,s,a; sub% d,b,a\n";
    let (before, after) = (generated(&[]), generated(&[("extensions.spec", line)]));
    for (path, text) in [
        ("crates/vcode/src/generated/core.rs", "fn absolutei("),
        ("crates/vcode/src/generated/mips.rs", "fn absolutel("),
        ("crates/vcode/src/generated/x86_64.rs", "fn absolutei("),
        ("crates/vcode/include/quaject/vcode/generated/sparc64.h", "#define v_absolutel(d, s)"),
        ("tests/machines/src/generated/instructions.rs", "asm.absolutei(o.d, o.s)"),
        ("docs/vcode-instructions.md", "`absolutel`"),
    ] {
        assert!(!mentions(&before, path, text) && mentions(&after, path, text), "{path}: {text}");
    }
}

/// The paper's example: the square root of MIPS, here under another name, is one line for the family and one for what
/// the machine has.
#[test]
fn a_line_maps_a_family_to_machine_instructions() {
    let after = generated(&[
        ("extensions.spec", "unary root f d  square root\n"),
        ("ext/mips.spec", "root {f,d} sqrt.{s,d} d,s\n"),
    ]);
    for (path, text) in [
        ("crates/vcode/src/generated/mips.rs", "fn rootd(&mut self, d: Float, s: Float)"),
        ("crates/vcode/include/quaject/vcode/generated/mips.h", "#define v_rootf(d, s) qjv_rootf(v_cursor(), d, s)"),
        ("docs/vcode-instructions.md", "| `rootf` | Square root. Type `f`. Operands `d, s`. | mips |"),
    ] {
        assert!(mentions(&after, path, text), "{path}: {text}");
    }
    // Only MIPS has it, so it is no instruction that all machines have.
    assert!(!mentions(&after, "crates/vcode/src/generated/core.rs", "fn rootf("));
}

#[test]
fn deleting_an_instruction_removes_it_everywhere() {
    let after = generated(&[]);
    assert!(mentions(&after, "crates/vcode/src/generated/alpha_table.rs", "umulh"));
    let line = "insn toy 4c0007e0 s,t,d\n";
    let with = generated(&[("ext/alpha.spec", line)]);
    assert!(mentions(&with, "crates/vcode/src/generated/alpha_table.rs", "\"toy\""));
    assert!(!mentions(&after, "crates/vcode/src/generated/alpha_table.rs", "\"toy\""));
}
