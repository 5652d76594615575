//! Deleting a line of a specification removes the instruction from Rust, C, decoder, documentation and tests, and
//! changes no other machine. Lines that stand on the deleted one are errors until they are deleted too.
//!
//! What the generated files hold is read from their text, not from the generator's own model.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use quaject_vcode_spec::{Generated, Source, Sources, SpecError, generate};

/// Beside the machine a line is taken from: what must not change.
const WITNESS: &str = "sparc64";

type Names = BTreeSet<String>;

/// The specifications of some machines, whole.
fn sources(machines: &[&str]) -> Sources {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
    let read = |folder_and_name: String| {
        let path = folder.join(&folder_and_name);
        path.exists().then(|| Source {
            text: std::fs::read_to_string(&path).expect("a specification of the repository is text"),
            name: folder_and_name,
        })
    };
    let layers = ["portable.spec", "extensions.spec", "vectors.spec"];
    Sources {
        portable: layers.iter().filter_map(|name| read((*name).into())).collect(),
        machines: machines
            .iter()
            .map(|name| ["", "ext/", "vectors/"].iter().filter_map(|at| read(format!("{at}{name}.spec"))).collect())
            .collect(),
    }
}

/// Where the lines of a specification begin that declare something, and what they say; continued lines are joined.
fn lines(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut continued = false;
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim_end();
        let start = line.strip_suffix('\\');
        match found.last_mut() {
            Some((_, whole)) if continued => whole.push_str(start.unwrap_or(line)),
            _ => found.push((index + 1, start.unwrap_or(line).to_owned())),
        }
        continued = start.is_some();
    }
    found.retain(|(_, line)| !line.trim().is_empty());
    found
}

/// Empties the line that begins at `number`, with what continues it; the others keep their numbers. False if it is
/// empty already.
fn delete(source: &mut Source, number: usize) -> bool {
    let mut rest: Vec<&str> = source.text.lines().collect();
    let mut index = number - 1;
    let mut deleted = false;
    while let Some(line) = rest.get_mut(index) {
        let continues = line.split('#').next().unwrap_or_default().trim_end().ends_with('\\');
        deleted |= !line.is_empty();
        *line = "";
        index += 1;
        if !continues {
            break;
        }
    }
    source.text = rest.join("\n");
    deleted
}

/// Everything that is generated without a line and without those that stand on it; how many that were. An error if some
/// of them is none that can be deleted.
fn without(mut sources: Sources, file: &str, line: usize) -> Result<(Vec<Generated>, usize), SpecError> {
    let mut at = SpecError { file: file.into(), line, message: String::new() };
    for deleted in 1.. {
        let all = sources.portable.iter_mut().chain(sources.machines.iter_mut().flatten());
        let source = all.into_iter().find(|source| source.name == at.file);
        if !source.is_some_and(|source| at.line != 0 && delete(source, at.line)) {
            return Err(at);
        }
        match generate(&sources) {
            Ok(files) => return Ok((files, deleted)),
            Err(error) => at = error,
        }
    }
    unreachable!("every round deletes a line, and there are finitely many")
}

/// What stands between `before` and the next character that no name has.
fn names_after<'t>(text: &'t str, before: &'t str) -> impl Iterator<Item = &'t str> {
    text.split(before)
        .skip(1)
        .map(|rest| rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default())
}

/// The instructions of each generated file, by what it says.
struct Contents {
    /// Per machine: what the documentation says that it has.
    documented: BTreeMap<String, Names>,
    /// Per machine: methods of the assembler.
    rust: BTreeMap<String, Names>,
    /// Per machine: macros of the header.
    c: BTreeMap<String, Names>,
    /// Per machine: mnemonics of the decoder.
    decoded: BTreeMap<String, Names>,
    /// What the tests, the trait, and the layers know, which all machines have.
    common: Vec<(&'static str, Names)>,
}

fn contents(files: &[Generated], machines: &[&str]) -> Contents {
    let text = |path: &str| files.iter().find(|file| file.path == path).map_or("", |file| &file.text);
    let emitters = |path: &str| -> Names {
        let portable = |name: &&str| !name.starts_with("portable_");
        let core = |name: &&str| !["getvector", "putvector", "vector_width"].contains(name);
        let methods = text(path).split("fn ").skip(1).filter_map(|rest| {
            let (name, rest) = rest.split_once('(')?;
            rest.trim_start().starts_with("&mut self").then_some(name)
        });
        methods.filter(portable).filter(core).map(str::to_owned).collect()
    };
    let mut documented: BTreeMap<String, Names> = machines.iter().map(|name| ((*name).into(), Names::new())).collect();
    for row in text("docs/vcode-instructions.md").lines().filter_map(|line| line.strip_prefix("| `")) {
        let (name, rest) = row.split_once('`').expect("a row begins with the name of an instruction");
        let on = rest.trim_end_matches(" |").rsplit("| ").next().unwrap_or_default();
        for (machine, names) in &mut documented {
            if on == "all" || on.split(", ").any(|other| other == machine) {
                names.insert(name.into());
            }
        }
    }
    let each = |of: &dyn Fn(&str) -> Names| machines.iter().map(|name| ((*name).to_owned(), of(name))).collect();
    let listed = |path: &str| names_after(text(path), "name: \"").map(str::to_owned).collect::<Names>();
    Contents {
        documented,
        rust: each(&|machine| emitters(&format!("crates/vcode/src/generated/{machine}.rs"))),
        c: each(&|machine| {
            ["", "vectors/"]
                .iter()
                .flat_map(|at| {
                    names_after(
                        text(&format!("crates/vcode/include/quaject/vcode/generated/{at}{machine}.h")),
                        "#define v_",
                    )
                })
                .map(str::to_owned)
                .collect()
        }),
        decoded: each(&|machine| {
            let table = text(&format!("crates/vcode/src/generated/{machine}_table.rs"));
            table.split("mnemonic: \"").skip(1).filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect()
        }),
        common: vec![
            ("core", emitters("crates/vcode/src/generated/core.rs")),
            ("tests", listed("tests/machines/src/generated/instructions.rs")),
            ("instructions", listed("crates/vcode/src/generated/instructions.rs")),
            ("virtual registers", emitters("crates/vcode/src/generated/virtual_registers.rs")),
            ("peephole", emitters("crates/vcode/src/generated/peephole.rs")),
        ],
    }
}

/// Whether all files speak of the same instructions; `place` says what was deleted.
fn agree(contents: &Contents, place: &str) {
    let scalar = |names: &Names| names.iter().filter(|name| !is_vector(name)).cloned().collect::<Names>();
    for (machine, documented) in &contents.documented {
        let (rust, c) = (&contents.rust[machine], &contents.c[machine]);
        assert_eq!(scalar(documented), scalar(rust), "{place}: documentation and Rust of {machine}");
        assert_eq!(scalar(documented), scalar(c), "{place}: documentation and C of {machine}");
        // Vectors are one trait: what a machine has none of is there and fails.
        assert!(documented.is_subset(rust) && documented.is_subset(c), "{place}: vectors of {machine}");
    }
    let all = contents.documented.values().cloned().reduce(|all, one| &all & &one).unwrap_or_default();
    for (what, names) in &contents.common {
        // Tests reach variables on the stack in functions with frames, not one by one.
        let mut expected = scalar(&all);
        expected.retain(|name| *what != "tests" || !name.ends_with("_local"));
        assert_eq!(scalar(names), expected, "{place}: documentation and {what}");
    }
}

/// Whether a name is a vector instruction's: these are in a trait of their own, for machines that have vectors.
fn is_vector(name: &str) -> bool {
    name.starts_with('v')
}

/// The alternatives of `{a,b}c<d,e>`.
fn alternatives(word: &str) -> Vec<String> {
    let Some(open) = word.find(['{', '<']) else { return vec![word.to_owned()] };
    let close = open + word[open..].find(['}', '>']).expect("a brace is closed");
    let (first, last) = (&word[..open], &word[close + 1..]);
    word[open + 1..close].split(',').flat_map(|one| alternatives(&format!("{first}{one}{last}"))).collect()
}

/// The instructions without immediate that a row gives: its operation with every type it names.
fn names_of(line: &str, op: &str) -> Vec<String> {
    const TYPES: [&str; 11] = ["c", "uc", "s", "us", "i", "u", "l", "ul", "p", "f", "d"];
    let mut names = Vec::new();
    for word in line.split_whitespace().skip(1) {
        let letters: Vec<&str> = word.split(['{', '}', '<', '>', ',']).filter(|part| !part.is_empty()).collect();
        if !letters.iter().all(|letters| TYPES.contains(letters)) {
            break;
        }
        names.extend(letters.into_iter().map(|letters| format!("{op}{letters}")));
    }
    names
}

/// Whether a row is for prologues, not for clients.
fn is_frame(op: &str) -> bool {
    ["enter", "leave", "return", "save_link", "restore_link", "save_special", "restore_special", "link", "call"]
        .contains(&op)
}

/// The text of a generated file.
fn text<'f>(files: &'f [Generated], path: &str) -> &'f str {
    files.iter().find(|file| file.path == path).map_or("", |file| &file.text)
}

/// Deletes every `step`th line of the files of a machine, one at a time.
fn check_machine(machine: &str, step: usize) {
    let witness = if machine == WITNESS { "mips" } else { WITNESS };
    let (alone, pair) = ([machine], [machine, witness]);
    let before_of = |machines: &[&str]| {
        let files = generate(&sources(machines)).expect("the specification holds together");
        let before = contents(&files, machines);
        agree(&before, "nothing deleted");
        (files, before)
    };
    let of_machines = [(sources(&alone), before_of(&alone)), (sources(&pair), before_of(&pair))];
    let in_other_words: Names = lines(&of_machines[0].0.portable[1].text)
        .into_iter()
        .filter(|(_, line)| line.contains(":="))
        .filter_map(|(_, line)| line.split_whitespace().nth(1).map(str::to_owned))
        .collect();
    let (mut tried, mut removed) = (0, 0);
    for source in &of_machines[0].0.machines[0] {
        let deletable = lines(&source.text).into_iter().filter(|(_, line)| {
            // What the machine is, not what it can do.
            let first = line.split_whitespace().next().unwrap_or_default();
            let header = ["machine", "code", "long", "names", "prefix", "temp", "saved", "ftemp", "fsaved", "args"];
            let more = ["fargs", "special", "field", "def", "features", "vector"];
            !header.contains(&first) && !more.contains(&first)
        });
        for (number, line) in deletable.step_by(step) {
            // The other machine costs as much again, so it is asked now and then.
            let is_witnessed = tried % 8 == 0;
            tried += 1;
            let (whole, (before_files, before)) = &of_machines[usize::from(is_witnessed)];
            let machines = if is_witnessed { &pair[..] } else { &alone[..] };
            let place = format!("{}:{number}: {line}", source.name);
            let Ok((files, deleted)) = without(whole.clone(), &source.name, number) else {
                // Frames are made of it.
                continue;
            };
            removed += 1;
            let after = contents(&files, machines);
            agree(&after, &place);
            let own = |contents: &Contents| (contents.rust[machine].clone(), contents.decoded[machine].clone());
            let ((rust, decoded), (old_rust, old_decoded)) = (own(&after), own(before));
            assert!(rust.is_subset(&old_rust) && decoded.is_subset(&old_decoded), "{place}: something appears");
            let mut words = line.split_whitespace();
            if words.next() == Some("insn") {
                let name = words.next().and_then(|word| word.split(':').next()).expect("an instruction has a name");
                let path = format!("crates/vcode/src/generated/{machine}_table.rs");
                let [old, new] = [before_files, &files].map(|files| text(files, &path).matches("mnemonic: ").count());
                assert!(old >= new + alternatives(name).len(), "{place}: the decoder keeps an instruction");
            } else if deleted == 1 {
                let head = line.split_whitespace().next().unwrap_or_default();
                for op in alternatives(head).into_iter().filter(|op| !in_other_words.contains(op) && !is_frame(op)) {
                    for name in names_of(&line, &op) {
                        assert!(!after.documented[machine].contains(&name), "{place}: `{name}` is still there");
                    }
                }
                // What another line still gives in terms of other instructions stays, in other words.
                let path = format!("crates/vcode/src/generated/{machine}.rs");
                assert_ne!(text(before_files, &path), text(&files, &path), "{place}: nothing changes");
            }
            if !is_witnessed {
                continue;
            }
            // Neither the code of the other machine nor how it is read back; in Rust an instruction may move from the
            // trait of what all machines have.
            assert_eq!(before.rust[witness], after.rust[witness], "{place}: {witness} changes");
            for path in [
                format!("crates/vcode/src/generated/{witness}_table.rs"),
                format!("crates/vcode/include/quaject/vcode/generated/{witness}.h"),
            ] {
                assert_eq!(text(before_files, &path), text(&files, &path), "{place}: {path} changes");
            }
        }
    }
    assert!(removed * 2 > tried, "{machine}: {removed} of {tried} lines could be deleted");
}

/// Deletes every `step`th family of the portable set and of the layers above it, with all rows that machines have for
/// it.
fn check_families(step: usize) {
    let machines = ["aarch64", "alpha"];
    let whole = sources(&machines);
    let before = contents(&generate(&whole).expect("the specification holds together"), &machines);
    let mut removed = 0;
    for source in &whole.portable {
        let families = lines(&source.text).into_iter().filter(|(_, line)| !line.starts_with("default "));
        for (number, line) in families.step_by(step) {
            let place = format!("{}:{number}: {line}", source.name);
            let Ok((files, _)) = without(whole.clone(), &source.name, number) else {
                // Frames are made of it, or rows of the generator's own layers.
                continue;
            };
            removed += 1;
            let after = contents(&files, &machines);
            agree(&after, &place);
            let (_, rest) = line.trim_start().split_once(char::is_whitespace).expect("a family, and what it is");
            let op = rest.split_whitespace().next().expect("an operation has a name");
            for name in names_of(rest, op) {
                for (machine, names) in &before.documented {
                    assert!(
                        names.contains(&name) || source.name == "vectors.spec",
                        "{place}: no `{name}` on {machine}"
                    );
                }
                let of_machines = [&after.documented, &after.rust, &after.c].map(|of| of.values());
                let common = after.common.iter().map(|(_, names)| names);
                for names in of_machines.into_iter().flatten().chain(common) {
                    assert!(!names.contains(&name), "{place}: `{name}` is still there");
                }
            }
        }
    }
    assert!(removed > 5, "{removed} families could be deleted");
}

/// Of so many lines one is deleted.
fn step() -> usize {
    if std::env::var("QJ_TEST").as_deref() == Ok("quick") { 16 } else { 2 }
}

#[test]
fn families() {
    check_families(step());
}

#[test]
fn lines_of_aarch64() {
    check_machine("aarch64", step());
}

#[test]
fn lines_of_alpha() {
    check_machine("alpha", step());
}

#[test]
fn lines_of_mips() {
    check_machine("mips", step());
}

#[test]
fn lines_of_ppc64le() {
    check_machine("ppc64le", step());
}

#[test]
fn lines_of_riscv64() {
    check_machine("riscv64", step());
}

#[test]
fn lines_of_sparc64() {
    check_machine("sparc64", step());
}

#[test]
fn lines_of_x86_64() {
    check_machine("x86_64", step());
}
