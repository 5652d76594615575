//! The default mode on every program of the repository: the same behaviour as the unoptimised program, on the
//! interpreter, as machine code and as C. The environment sends random messages of the types that the program takes.

use quaject_differential::c::run;
use quaject_differential::compare::compare_runs;
use quaject_differential::generate::{Outcome, Sample};
use quaject_differential::interpret::{Local, interpret, run_locally};
use quaject_differential::machine::Compiler;
use quaject_differential::modes::same;
use quaject_differential::repository::{compile, programs, script};
use quaject_esp::Mode;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::text::print;
use quaject_test_support::{Effort, tool};
use std::path::Path;

/// A maximum of IR steps that no terminating program reaches.
const BUDGET: u64 = 20_000_000;

#[test]
fn default_mode_preserves_behaviour() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    ["examples", "tests", "bench", "crates"].iter().for_each(|folder| programs(&root.join(folder), &mut paths));
    paths.sort();
    let turns = Effort::wanted().pick(2, 6, 200);
    let (mut compared, mut differ) = (Vec::new(), Vec::new());
    for path in paths.iter().step_by(Effort::wanted().pick(7, 1, 1)) {
        let Some(written) = compile(path, Mode::Process) else { continue };
        let made = compile(path, Mode::Auto).expect("what compiles, compiles in every mode");
        if print(&written) == print(&made) {
            continue;
        }
        for turn in 0..turns {
            let script = script(path, &written, turn);
            let sample =
                Sample { seed: turn, source: String::new(), files: Vec::new(), script, outcome: Outcome::Determined };
            // Some do not terminate for any input.
            let Ok(plain) = interpret(&sample, &written) else { break };
            // A random number can be a count of messages; the C driver has a limit.
            if plain.messages.len() > 10_000 {
                continue;
            }
            for local in [Local::Interpreted, Local::Native] {
                let (behaviour, _) = run_locally(&sample, &made, Checks::Off, local, BUDGET);
                if let Err(error) = behaviour.and_then(|behaviour| same(&written, &plain, &behaviour)) {
                    differ.push(format!("{}, input {turn}, {local:?}: {error}", path.display()));
                }
            }
            compared.push((path, sample, written.clone(), made.clone(), plain));
        }
    }
    println!("{} runs are compared", compared.len());
    assert!(compared.len() > Effort::wanted().pick(4, 40, 40), "the programs have moved, or none is changed");
    if let Some(compiler) = tool(&["gcc", "clang", "cc"]) {
        let compiler = Compiler::native(compiler, &["-O1", "-w"]);
        let temporary = tempfile::tempdir().expect("a temporary folder can be made");
        for some in compared.chunks(40) {
            let programs: Vec<_> = some.iter().map(|(_, sample, _, made, _)| (sample, made)).collect();
            // Identifiers of the driver are not renamed, so that two programs can share them.
            let alone = |program| {
                let mut c_run = run(&compiler, temporary.path(), &[program]).expect("the C compiler accepts it");
                c_run.pop().expect("one program, one result")
            };
            let results = run(&compiler, temporary.path(), &programs)
                .unwrap_or_else(|_| programs.iter().map(|program| alone(*program)).collect());
            for ((path, sample, written, made, plain), result) in some.iter().zip(results) {
                let behaviour = result.and_then(|c_run| compare_runs(sample, made, &c_run));
                if let Err(error) = behaviour.and_then(|(_, behaviour)| same(written, plain, &behaviour)) {
                    differ.push(format!("{}, input {}, C: {error}", path.display(), sample.seed));
                }
            }
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n\n"));
}
