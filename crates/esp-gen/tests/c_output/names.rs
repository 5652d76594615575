//! Programs whose names the generated C, its run-time header or C itself uses for something else.

use crate::support::{STRICT, output, succeed, write};
use quaject_esp_gen::RUNTIME_HEADER;
use quaject_esp_gen::c::{Options, Style};
use quaject_test_support::{quick_run, tool};
use std::collections::BTreeSet;
use std::process::Command;

const STYLES: [Style; 3] = [Style::Poll, Style::Post { ring: 4 }, Style::SansIo];

/// A program with one item of each kind, whose names collide with no other word.
const ORDINARY: &str = "type tT = union { tA: int, tB: bytes[<=4] };\npool tT 3;\n\
    channel c1(int, tT);\nchannel c2(int) external in;\nchannel c3(bytes[<=4]) shared external out;\n\
    fn f1(g1: int) -> int { return g1 / 3 + 1; }\n\
    process p1[2] {\n  while {\n    pri alt {\n\
    in(c3, $v1) { out(c1, f1(v1.len), tB |> v1); }\n      after (3 ms) { yield; }\n    }\n  }\n}\n\
    process p2 {\n  var v2: #array of int = #[0; 4];\n  while {\n    in(c1, v2[1], $v3);\n\
    match v3 { tA |> _ => exit(3); _ => { } }\n    out(c2, v2[1] / v2[2]);\n  }\n}\n";

/// Every word of a text of C that could be a name in ESP.
fn words(text: &str, to: &mut BTreeSet<String>) {
    let is_part = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let parts = text.split(|character| !is_part(character));
    let is_name =
        |word: &&str| !word.is_empty() && *word != "_" && !word.starts_with(|first: char| first.is_ascii_digit());
    to.extend(parts.filter(is_name).map(str::to_owned));
}

/// Further words of C.
const OF_C: &str =
    "case default struct switch volatile register goto signed unsigned static inline restrict double float
    class template namespace new delete this operator typename virtual private public";

/// Words that cannot be names in ESP.
const OF_ESP: &str = "after alt array assert bool break bytes channel const constant continue else exit extern false fn for if in int
    i8 i16 i32 i64 match out pid pri process record return true type u8 u16 u32 u64 union var when while yield import layout pool
    free freeze thaw link unlink sizeof";

#[test]
fn no_name_of_a_program_collides() {
    if quick_run("names that collide") {
        return;
    }
    let mut names = BTreeSet::new();
    for style in STYLES {
        let made = output("ordinary.esp", ORDINARY, &Options { style, ..Options::default() });
        words(&made.source, &mut names);
        words(&made.header, &mut names);
    }
    words(RUNTIME_HEADER, &mut names);
    words(OF_C, &mut names);
    names.extend(('a'..='z').map(String::from));
    let mut taken = BTreeSet::new();
    words(OF_ESP, &mut taken);
    let names: Vec<&String> = names.difference(&taken).collect();
    assert!(names.len() > 400 && names.iter().any(|name| *name == "wake"), "{}", names.len());

    // In groups, because large files take compilers long.
    for some in names.chunks(100) {
        for program in programs(some) {
            for style in STYLES {
                let folder = tempfile::tempdir().expect("a temporary folder can be made");
                write(folder.path(), "names.esp", &program, &Options { style, ..Options::default() });
                let Some(compiler) = tool(&["gcc"]) else { return };
                let mut compile = Command::new(compiler);
                compile.current_dir(folder.path()).args(STRICT).args(["-I.", "-fsyntax-only", "program.c"]);
                succeed(&mut compile);
            }
        }
    }
}

/// Programs whose processes, channels, functions, types, fields and values of messages have these names.
fn programs(names: &[&String]) -> [String; 7] {
    let all = |one: &dyn Fn(&str) -> String| names.iter().map(|name| one(name)).collect::<String>();
    let first = names[0];
    [
        all(&|name| format!("process {name} {{ out(c_1, {}); }}\n", name.len()))
            + "channel c_1(int);\nchannel c_2(int) external in;\nprocess p_1 { while { in(c_1, $x_1); out(c_2, x_1); } }\n",
        "channel c_1(int) shared;\nchannel c_2(int);\nchannel c_3(int) external in;\n".to_string()
            // The frame of a process `p_x` could collide with the variable `x` of a process `p`.
            + &all(&|name| match name.trim_end_matches('_').contains('_') {
                true => String::new(),
                false => format!("process {name}[2] {{ while {{ in(c_1, $x_1); out(c_2, x_1 * {} + int(@)); }} }}\n", name.len())
            })
            + "process p_1 { while { out(c_1, 1); } }\nprocess p_2 { while { in(c_2, $x_1); out(c_3, x_1); } }\n",
        all(&|name| format!("channel {name}(int) external in;\n"))
            + "process p_1 {\n"
            + &all(&|name| format!("  out({name}, 1);\n"))
            + "}\n",
        all(&|name| format!("channel {name}(int) external out;\n"))
            + "channel c_2(int) external in;\nprocess p_1 {\n"
            + &all(&|name| format!("  in({name}, $x_{name});\n  out(c_2, x_{name});\n"))
            + "}\n",
        all(&|name| format!("fn {name}(x_1: int) -> int {{ return x_1 + {}; }}\n", name.len()))
            + "channel c_2(int) external in;\nprocess p_1 {\n"
            + &all(&|name| format!("  out(c_2, {name}(1));\n"))
            + "}\n",
        all(&|name| format!("type {name} = record {{ {name}: int, u_1: union {{ {name}: int, t_1 }} }};\n"))
            + &format!("channel c_2({first}) external in;\nprocess p_1 {{ out(c_2, {{ 1, t_1 |> {{}} }}); }}\n"),
        // A message has at most 64 values.
        names
            .chunks(50)
            .enumerate()
            .map(|(number, names)| {
                let values: String = names.iter().map(|name| format!("{name}: u8, ")).collect();
                let (given, bound) = ("1, ".repeat(names.len()), "_, ".repeat(names.len()));
                format!(
                    "channel c_{number}({values}u8) external out;\nchannel d_{number}({values}u8) external in;\n\
                     process p_{number} {{ in(c_{number}, {bound}$x_1); out(d_{number}, {given}x_1); }}\n"
                )
            })
            .collect(),
    ]
}
