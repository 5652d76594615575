//! The refinement check of `qj verify --fastpath`: it holds for Figure 2 with the path of Figure 5, and for filters
//! with their path; and it is violated by each mutant of these paths.

use expect_test::expect;
use quaject_esp::{File, Limits, Loader, ModelSelection, RefinementModel, Source, refinement_models};
use quaject_esp_check::{
    Limit, Limits as Search, Mismatch, ObserverOutcome, Refinement, RefinementInput, RefinementVerdict, Timer,
    build_observer, refine,
};
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela;
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{
    BinaryOp, Block, BlockId, Fault, Instruction, Leave, Op, Program, Terminator, Type, Value, ValueData,
};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;
use quaject_esp_run::monotonic_time;
use quaject_esp_run::spin::{Spin, SpinOutcome, SpinProperty};
use quaject_esp_syntax::span::FileId;
use quaject_test_support::{Effort, quick_run, tool};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

struct Figures;

impl Loader for Figures {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        let text = match path {
            "send.esp" => include_str!("../../../examples/vmmc-send/send.esp"),
            "figure2.esp" => include_str!("../../../examples/vmmc-send/figure2.esp"),
            "functions.esp" => include_str!("../../../examples/vmmc-send/functions.esp"),
            _ => return Err("no such file".to_string()),
        };
        Ok((path.to_string(), text.as_bytes().to_vec()))
    }
}

const FIGURE_2: &str = include_str!("../../../examples/vmmc-send/figure2-model.esp");
const FIGURE_5: &str = include_str!("../../../examples/vmmc-send/figure5.fp");

/// Filters of the paper's program 2 on every array of up to three of three bytes.
const FILTERS: &str = r#"
const END = -1;
channel readC(int);
channel pairC(int);
channel swappedC(int);
channel outputC(int) external in;
extern fn next() -> int;
process read {
  var left = 3;
  while (left > 0) {
    left -= 1;
    const LAST = 2;
    var byte = next();
    if (byte == LAST) break;
    out(readC, byte);
  }
  out(readC, END);
}
process rle {
  var count = 0, last = 0;
  while {
    in(readC, $byte);
    if (count > 0 && (byte != last || count == 2)) {
      out(pairC, count);
      out(pairC, last);
      count = 0;
    }
    if (byte == END) break;
    last = byte;
    count += 1;
  }
  out(pairC, END);
}
process swap {
  while {
    in(pairC, $first);
    if (first == END) break;
    in(pairC, $second);
    if (second == END) { out(swappedC, first); break; }
    out(swappedC, second);
    out(swappedC, first);
  }
  out(swappedC, END);
}
process write {
  while {
    in(swappedC, $byte);
    if (byte == END) break;
    out(outputC, byte);
  }
}
model all { abstract range next 0..3; }
"#;

const FILTER_PATH: &str = "
fastpath stream {
  process read  { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process rle   { statement readC, pairC/out@3; start readC; exit readC; }
  process swap  { statement pairC/in@1 as S, swappedC/out@1, swappedC/out@4; start S; exit S; }
  process write { statement swappedC; start swappedC; exit swappedC; }
}";

/// The first model of a program, without and with its paths.
fn formed(program: &str, paths: &str) -> (ModelProgram, RefinementModel) {
    let file = |name: &str, text: &str| File { name: name.into(), bytes: text.as_bytes().to_vec() };
    let source = Source { root: file("p.esp", program), fast_paths: vec![file("p.fp", paths)] };
    let compared = refinement_models(source, &mut Figures, &ModelSelection::default(), Limits::default())
        .expect("there are models");
    let models = compared.models.unwrap_or_else(|| panic!("{:#?}", compared.modelled.diagnostics));
    let plain = compared.modelled.models.expect("there are models");
    let fast = models.into_iter().next().expect("there is one model");
    for attempt in &fast.path_attempts {
        assert!(attempt.result.is_ok(), "{}", attempt.text(&fast.implementation));
    }
    (plain.into_iter().next().expect("there is one model"), fast)
}

fn compare(plain: &ModelProgram, split: &Program, fast: &Program) -> Refinement {
    let input = RefinementInput { specification: plain, split_specification: split, implementation: fast };
    refine(input, &Search { states: Some(100_000), ..Search::default() }, &mut |_| {}).expect("it is small")
}

fn holds(program: &str, paths: &str) -> Refinement {
    let (plain, fast) = formed(program, paths);
    let report = compare(&plain, &fast.specification, &fast.implementation);
    assert_eq!(report.verdict, RefinementVerdict::Holds, "{}", report.text(&plain));
    report
}

#[test]
fn figure_2_with_the_path_of_figure_5_refines_figure_2() {
    let report = holds(FIGURE_2, FIGURE_5);
    assert!(report.paths.iter().all(|path| path.is_entered && path.exits_taken > 3), "{:?}", report.paths);
    // With exits before every iteration.
    for bound in 1..4 {
        holds(FIGURE_2, &FIGURE_5.replacen('{', &format!("{{ bound {bound};"), 1));
    }
}

#[test]
fn filters_with_their_path_refine_the_filters() {
    let report = holds(FILTERS, FILTER_PATH);
    assert!(report.paths.iter().all(|path| path.is_entered), "{:?}", report.paths);
    for bound in 1..6 {
        holds(FILTERS, &FILTER_PATH.replacen('{', &format!("{{ bound {bound};"), 1));
    }
}

/// Blocks of paths: the process and the block.
fn path_blocks(program: &Program) -> Vec<(usize, usize)> {
    let mut found = BTreeSet::new();
    for (index, process) in program.processes.iter().enumerate() {
        let blocks = &process.body.blocks;
        let entries = blocks.iter().filter_map(|block| match &block.terminator {
            Terminator::Enter(enter) => Some(enter.then),
            _ => None,
        });
        let mut work: Vec<BlockId> = entries.collect();
        while let Some(block) = work.pop() {
            if found.insert((index, block.0 as usize)) {
                work.extend(successors(&blocks[block.0 as usize].terminator, Regions::Include));
            }
        }
    }
    found.into_iter().collect()
}

/// Whether only jumps and branches separate two blocks, in either order: resuming at one or the other may be
/// equivalent.
fn may_reach(blocks: &[Block], one: BlockId, other: BlockId) -> bool {
    let reached = |from: BlockId| {
        let (mut seen, mut work) = (BTreeSet::new(), vec![from]);
        while let Some(block) = work.pop() {
            let terminator = &blocks[block.0 as usize].terminator;
            if !seen.insert(block.0) {
                continue;
            }
            match terminator {
                Terminator::Jump(_) | Terminator::Branch { .. } => {
                    work.extend(successors(terminator, Regions::Include))
                }
                Terminator::Enter(enter) => work.push(enter.otherwise.to),
                _ => {}
            }
        }
        seen
    };
    !reached(one).is_disjoint(&reached(other))
}

/// One more than a value, at the end of a block.
fn one_more(program: &mut Program, (process, block): (usize, usize), of: Value) -> Option<Value> {
    let body = &mut program.processes[process].body;
    let ty = body.values[of.0 as usize].ty;
    if !matches!(program.types.get(ty), Type::Int(_)) {
        return None;
    }
    let first = body.values.len() as u32;
    body.values.extend([ValueData { ty, name: None }, ValueData { ty, name: None }]);
    let (one, sum) = (Value(first), Value(first + 1));
    let location = body.blocks[block].location;
    body.blocks[block].instructions.extend([
        Instruction { result: Some(one), op: Op::Constant(1), location },
        Instruction { result: Some(sum), op: Op::Binary(BinaryOp::Add, of, one), location },
    ]);
    Some(sum)
}

/// The mutants of a program: each has one defect in a reached block of its path. With the kind of the defect.
fn mutants(program: &Program, is_found: &dyn Fn(&Program) -> bool) -> Vec<(&'static str, Program)> {
    let mut mutants = Vec::new();
    for (process, block) in path_blocks(program) {
        let mut trap = program.clone();
        trap.processes[process].body.blocks[block].terminator = Terminator::Fault(Fault::Assert);
        if !is_found(&trap) {
            continue;
        }
        let original = &program.processes[process].body.blocks[block];
        let mut add = |what: &'static str, change: &dyn Fn(&mut Program) -> Option<()>| {
            let mut mutant = program.clone();
            if change(&mut mutant).is_some() && verify(&mutant).is_empty() {
                mutants.push((what, mutant));
            }
        };
        let at = (process, block);
        match &original.terminator {
            Terminator::Leave(leave) => mutate_exit(program, at, leave, &mut add),
            Terminator::Wait(wait) => add("lost message", &|mutant| {
                let to = wait.branches.first()?.then;
                let edge = quaject_esp_ir::ir::Edge { to, arguments: Vec::new() };
                mutant.processes[process].body.blocks[block].terminator = Terminator::Jump(edge);
                Some(())
            }),
            _ => {}
        }
        for (index, instruction) in original.instructions.iter().enumerate() {
            let change = |op: Op| {
                move |mutant: &mut Program| {
                    mutant.processes[process].body.blocks[block].instructions[index].op = op.clone();
                    Some(())
                }
            };
            match &instruction.op {
                Op::Binary(BinaryOp::Add, a, b) => {
                    add("sum", &change(Op::Binary(BinaryOp::Subtract, *a, *b)));
                }
                Op::Store(..) | Op::Copy { .. } => add("lost store", &|mutant| {
                    mutant.processes[process].body.blocks[block].instructions.remove(index);
                    Some(())
                }),
                _ => {}
            }
        }
    }
    mutants
}

/// Adds a mutant if the change applies and its result is well-formed.
type AddMutant<'a> = dyn FnMut(&'static str, &dyn Fn(&mut Program) -> Option<()>) + 'a;

/// Adds the mutants of an exit: a wrong value, a member that is not released, a wrong target with the same values.
fn mutate_exit(program: &Program, at: (usize, usize), exit: &Leave, add: &mut AddMutant<'_>) {
    fn exit_of(program: &mut Program, (process, block): (usize, usize)) -> &mut Leave {
        match &mut program.processes[process].body.blocks[block].terminator {
            Terminator::Leave(leave) => leave,
            _ => unreachable!("it ends a path"),
        }
    }
    for (number, (_, resume)) in exit.members.iter().enumerate() {
        for (index, (_, becomes)) in resume.values.iter().enumerate() {
            add("write-back", &|mutant| {
                let wrong = one_more(mutant, at, *becomes)?;
                exit_of(mutant, at).members[number].1.values[index].1 = wrong;
                Some(())
            });
        }
        add("member left out", &|mutant| {
            exit_of(mutant, at).members.remove(number);
            Some(())
        });
    }
    for (index, (_, becomes)) in exit.trigger.values.iter().enumerate() {
        add("write-back", &|mutant| {
            let wrong = one_more(mutant, at, *becomes)?;
            exit_of(mutant, at).trigger.values[index].1 = wrong;
            Some(())
        });
    }
    let blocks = &program.processes[at.0].body.blocks;
    let first = path_blocks(program)[0].1;
    let differs = |other: &usize| !may_reach(blocks, BlockId(*other as u32), exit.trigger.to);
    for other in (0..blocks.len().min(first)).filter(differs) {
        add("exit", &|mutant| {
            exit_of(mutant, at).trigger.to = BlockId(other as u32);
            Some(())
        });
    }
}

/// The number of mutants of each kind. Checks that the first of every `every` mutants is found.
fn found(program: &str, paths: &str, every: usize) -> BTreeMap<&'static str, usize> {
    let (plain, fast) = formed(program, paths);
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let is_found = |mutant: &Program| {
        matches!(compare(&plain, &fast.specification, mutant).verdict, RefinementVerdict::Violated(_))
    };
    for (what, mutant) in mutants(&fast.implementation, &is_found) {
        let count = counts.entry(what).or_default();
        *count += 1;
        if *count % every != 1 % every {
            continue;
        }
        let report = compare(&plain, &fast.specification, &mutant);
        let RefinementVerdict::Violated(difference) = &report.verdict else {
            panic!("{what}: {}\n{}", report.text(&plain), print(&mutant))
        };
        // The report has a run that shows the defect.
        assert!(report.text(&plain).starts_with("refinement violated: "));
        assert!(!difference.steps.is_empty(), "{what}: {}", report.text(&plain));
    }
    counts
}

#[test]
fn mutants_of_paths_are_found() {
    if quick_run("mutants of fast paths") {
        return;
    }
    let every = Effort::wanted().pick(8, 3, 1);
    let figure = found(FIGURE_2, FIGURE_5, every);
    let filters = found(FILTERS, FILTER_PATH, 2 * every);
    println!("{figure:?} {filters:?}");
    for what in ["exit", "member left out", "write-back"] {
        assert!(figure.contains_key(what) && filters.contains_key(what), "{what}: {figure:?} {filters:?}");
    }
    assert!(filters.contains_key("lost message"), "{filters:?}");
}

/// Spin's verdict on the product of the program with paths and the observer of the program without. Promela
/// over-approximates the program, so that a verdict without error holds for the program.
fn search_with_observer(plain: &ModelProgram, split: &Program, fast: &Program) -> SpinOutcome {
    let input = RefinementInput { specification: plain, split_specification: split, implementation: fast };
    let observed = build_observer(input, &Search::default()).expect("it is small");
    let ObserverOutcome::Automaton(observer) = observed else { panic!("{observed:?}") };
    let with = ModelProgram { program: fast.clone(), properties: Vec::new(), ..plain.clone() };
    let model = promela::generate(&with, Checks::On, Some(&observer)).expect("Promela can say it");
    let spin = Spin { compiler: Some(vec!["tcc".into()]), ..Spin::default() };
    let search = spin.search(&model, fast.instance_count(), SpinProperty::Refinement).expect("Spin runs");
    if search.outcome == SpinOutcome::NoViolation {
        assert_eq!(search.entered, [0], "the path is entered");
    }
    search.outcome
}

#[test]
fn spin_says_so_of_both() {
    if quick_run("refinement by Spin") {
        return;
    }
    let (Some(_), Some(_)) = (tool(&["tcc"]), tool(&["spin"])) else { return };
    let every = Effort::wanted().pick(16, 8, 1);
    for (program, paths) in [(FIGURE_2, FIGURE_5), (FILTERS, FILTER_PATH)] {
        let (plain, fast) = formed(program, paths);
        assert_eq!(search_with_observer(&plain, &fast.specification, &fast.implementation), SpinOutcome::NoViolation);
        let is_wrong = |mutant: &Program| {
            matches!(compare(&plain, &fast.specification, mutant).verdict, RefinementVerdict::Violated(_))
        };
        let (mut seen, mut found) = (0, 0);
        for (what, mutant) in mutants(&fast.implementation, &is_wrong).into_iter().step_by(every) {
            let RefinementVerdict::Violated(difference) = compare(&plain, &fast.specification, &mutant).verdict else {
                continue;
            };
            // The model would be one of another program.
            if matches!(difference.mismatch, Mismatch::Code | Mismatch::InitialState) {
                continue;
            }
            let is_found = search_with_observer(&plain, &fast.specification, &mutant) != SpinOutcome::NoViolation;
            assert!(
                is_found || difference.mismatch != Mismatch::VisibleAction,
                "Spin misses: {what}\n{}",
                print(&mutant)
            );
            seen += 1;
            found += usize::from(is_found);
        }
        println!("Spin finds {found} of {seen}");
        assert!(2 * found > seen, "Spin finds {found} of {seen}");
    }
}

/// The report on a defective path: the example of the book.
#[test]
fn a_lost_count_is_reported() {
    let (plain, fast) = formed(FILTERS, FILTER_PATH);
    let leaves = path_blocks(&fast.implementation).into_iter().find_map(|(process, block)| {
        let terminator = &fast.implementation.processes[process].body.blocks[block].terminator;
        let Terminator::Leave(leave) = terminator else { return None };
        let becomes = leave.members.iter().position(|(_, resume)| !resume.values.is_empty())?;
        Some((process, block, becomes))
    });
    let (process, block, member) = leaves.expect("a path gives values back");
    let mut mutant = fast.implementation.clone();
    let Terminator::Leave(leave) = &fast.implementation.processes[process].body.blocks[block].terminator else {
        unreachable!("it was found as one")
    };
    let wrong = one_more(&mut mutant, (process, block), leave.members[member].1.values[0].1);
    let Terminator::Leave(leave) = &mut mutant.processes[process].body.blocks[block].terminator else {
        unreachable!("it was found as one")
    };
    leave.members[member].1.values[0].1 = wrong.expect("counts are integers");
    let report = compare(&plain, &fast.specification, &mutant);
    let text = report.text(&plain);
    let lines: Vec<&str> = text.lines().filter(|line| !line.contains(" MB")).collect();
    expect![[r#"
        refinement violated: model `all` (4 processes) with fast paths has a behaviour that the original has not
           1  read  (p.esp:9:14), next() = 0
           2  read -> rle: readC(0)  (p.esp:15:5)
           3  read  (p.esp:15:5), next() = 2
        the original never reaches this state: `read` at p.esp:17:3, `rle` at p.esp:22:5, `swap` at p.esp:36:5, `write` at p.esp:47:5
        `rle` never reaches this location with these values
        fast path `stream`: entered, 2 of 16 exits taken
        checked: every message, call, fault and end; the state at each exit of a path; deadlock; divergence
        assumed: `next` returns 0..3"#]].assert_eq(&lines.join("\n"));
}

/// A search that reaches a limit is reported as unfinished.
#[test]
fn a_search_that_reaches_a_limit_is_unfinished() {
    let (plain, fast) = formed(FILTERS, FILTER_PATH);
    let input = RefinementInput {
        specification: &plain,
        split_specification: &fast.specification,
        implementation: &fast.implementation,
    };
    for (limits, expected) in [
        (Search { states: Some(50), ..Search::default() }, Limit::States),
        (Search { bytes: Some(100_000), ..Search::default() }, Limit::Memory),
        (Search { timer: Some(Timer::limited(monotonic_time, Duration::ZERO)), ..Search::default() }, Limit::Time),
    ] {
        let report = refine(input, &limits, &mut |_| {}).expect("it is small");
        assert_eq!(report.verdict, RefinementVerdict::Unfinished(expected));
        assert!(report.text(&plain).starts_with("NOT VERIFIED: "), "{}", report.text(&plain));
    }
}

/// A path that is always entered again without a step of its members diverges.
#[test]
fn a_path_without_progress_is_found() {
    let (plain, fast) = formed(FIGURE_2, FIGURE_5);
    let mut mutant = fast.implementation.clone();
    let body = &mut mutant.processes[0].body;
    let enter = body.blocks.iter().find_map(|block| match &block.terminator {
        Terminator::Enter(enter) => Some(enter.clone()),
        _ => None,
    });
    let enter = enter.expect("there is a path");
    // If the entry is refused, the mutant yields and retries without counting.
    let tries = body.blocks[enter.otherwise.to.0 as usize + 1].parameters[0];
    for block in &mut body.blocks {
        if let Terminator::Enter(enter) = &mut block.terminator {
            assert_eq!(block.parameters, [tries]);
            enter.otherwise = enter.later.clone();
        }
    }
    let Terminator::Branch { then, otherwise, .. } = &mut body.blocks[enter.later.to.0 as usize].terminator else {
        panic!("it counts tries")
    };
    *otherwise = then.clone();
    let again = then.to;
    let Terminator::Yield(edge) = &mut body.blocks[again.0 as usize].terminator else { panic!("it tries again") };
    edge.arguments = vec![tries];
    assert_eq!(verify(&mutant), []);
    let report = compare(&plain, &fast.specification, &mutant);
    let RefinementVerdict::Violated(difference) = &report.verdict else { panic!("{}", report.text(&plain)) };
    assert_eq!(difference.mismatch, Mismatch::Divergence, "{}", report.text(&plain));
}

/// A process holds two objects of a pool, which a path replaces.
const CELLS: &str = "
type cellT = array[1] of int; pool cellT 4;
channel cellC: cellT;
channel sumC(int) external in;
process make { var left = 3; while (left > 0) { left -= 1; var cell: cellT = [CONTENT]; out(cellC, cell); } }
process keep {
  var older: cellT = [7], newer: cellT = [7];
  while {
    in(cellC, $cell);
    out(sumC, 10 * older[0] + newer[0]);
    older = newer;
    newer = cell;
  }
}
model all { }
";

const CELL_PATH: &str = "
fastpath cells {
  process make { statement cellC as C; start C; follows C*; }
  process keep { statement cellC, sumC; start cellC; exit cellC; }
}";

/// Exchanged objects are a violation only if their contents differ.
#[test]
fn objects_are_compared_by_content() {
    for (content, is_seen) in [("7", false), ("left", true)] {
        let program = CELLS.replace("CONTENT", content);
        holds(&program, CELL_PATH);
        let (plain, fast) = formed(&program, CELL_PATH);
        let mut swapped = 0;
        for (process, block) in path_blocks(&fast.implementation) {
            let mut trap = fast.implementation.clone();
            trap.processes[process].body.blocks[block].terminator = Terminator::Fault(Fault::Assert);
            if compare(&plain, &fast.specification, &trap).verdict == RefinementVerdict::Holds {
                continue;
            }
            let mut mutant = fast.implementation.clone();
            let Program { types, processes, .. } = &mut mutant;
            let body = &mut processes[process].body;
            let values = &body.values;
            let is_object = |value: Value| matches!(types.get(values[value.0 as usize].ty), Type::Boxed(_));
            let Terminator::Leave(leave) = &mut body.blocks[block].terminator else { continue };
            let members = leave.members.iter_mut().map(|(_, resume)| resume);
            for resume in members.chain([&mut leave.trigger]) {
                let held: Vec<usize> =
                    (0..resume.values.len()).filter(|index| is_object(resume.values[*index].1)).collect();
                let [one, other] = held[..] else { continue };
                let becomes = resume.values[one].1;
                resume.values[one].1 = std::mem::replace(&mut resume.values[other].1, becomes);
                swapped += 1;
            }
            if print(&mutant) == print(&fast.implementation) {
                continue;
            }
            assert_eq!(verify(&mutant), []);
            let report = compare(&plain, &fast.specification, &mutant);
            let is_found = matches!(report.verdict, RefinementVerdict::Violated(_));
            assert_eq!(is_found, is_seen, "{content}: {}\n{}", report.text(&plain), print(&mutant));
        }
        assert!(swapped > 0, "{}", print(&fast.implementation));
    }
}
