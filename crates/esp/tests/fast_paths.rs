//! Fast paths preserve behaviour: each program is run with and without its paths, on all prefixes of its input and with
//! every bound on the iterations of a path, so that the path exits wherever it can. The figures of the paper "Fast
//! Paths in Concurrent Programs" have the states, the exit and the abort that the paper lists.

use quaject_esp::{
    Emit, Emitted, ExitReason, File, IterationCountPlacement, Loader, Mode, Options, Outputs, Source, compile,
};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Control, Effect, Machine, State, Step};
use quaject_esp_ir::ir::{Program, Terminator};
use quaject_esp_ir::read::read;
use quaject_esp_ir::text::fault_name;
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;
use quaject_esp_syntax::span::FileId;
use quaject_test_environment::{Script, act, by_channel};
use quaject_test_support::{Random, quick_run};

const BUDGET: u64 = 1_000_000;

/// Consecutive numbers of decisions without a forced exit, after which there are no more decisions on the path.
const MAX_FRUITLESS_STEPS: u32 = 200;

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("{path} is not imported by any of these programs"))
    }
}

fn compiled(program: &str, paths: &str, mode: Mode, iteration_counts: IterationCountPlacement) -> Outputs {
    let file = |name: &str, text: &str| File { name: name.into(), bytes: text.as_bytes().to_vec() };
    let source = Source { root: file("p.esp", program), fast_paths: vec![file("p.fp", paths)] };
    let options = Options { mode, iteration_counts, ..Options::new(Emit::IrText) };
    let compiled = compile(source, &mut NoImports, &options);
    let messages: Vec<String> = compiled.diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect();
    let outputs = compiled.outputs.unwrap_or_else(|reason| panic!("{reason:?}: {messages:#?}\n{program}\n{paths}"));
    let Emitted::IrText(text) = &outputs.emitted else { unreachable!("asked for text") };
    let again = read(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(print(&again), *text, "the text form says everything");
    assert_eq!(verify(&again), [], "{text}");
    outputs
}

/// The visible actions and the end of a run, and its number of rendezvous.
fn run(program: &Program, script: &str) -> (Vec<String>, usize) {
    let mut environment = Script::new(program, script);
    let mut interpreter = Interpreter::new(program, Checks::Off).expect("test programs are small");
    interpreter.record();
    let mut turns = 0;
    let outcome = loop {
        let outcome = interpreter.run(&mut environment, BUDGET);
        turns += 1;
        if !act(&mut environment, &outcome) || turns > 100 {
            break outcome;
        }
    };
    let mut log = environment.log;
    log.push(match outcome {
        Outcome::Budget => "goes on".to_string(),
        Outcome::Ended(status) => format!("ended with {status}"),
        Outcome::Faulted(report) => {
            let at = report.location.line;
            format!("fault {} of {} at {at}", fault_name(report.fault), program.instance_name(report.instance))
        }
        Outcome::Quiescent(_) => "resting".to_string(),
    });
    let steps = interpreter.take_trace();
    // The time at which a message is taken from the environment is not a visible action.
    log.retain(|line| !line.starts_with('<'));
    (log, steps.iter().filter(|step| matches!(step, Step::Communicate { .. })).count())
}

/// The part of a long run that a path serves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Uses {
    Mostly,
    Sometimes,
}

/// Compares runs with and without paths. With [`Uses::Mostly`], the longest run has fewer rendezvous with the paths.
fn same(program: &str, paths: &str, scripts: &[String], bounds: u32, uses: Uses) {
    let slow = compiled(program, "", Mode::Process, IterationCountPlacement::FeedbackVertices).ir;
    let mut programs = vec![(
        "as it is".to_string(),
        compiled(program, paths, Mode::FastPath, IterationCountPlacement::FeedbackVertices),
    )];
    for bound in 1..=bounds {
        for (iteration_counts, name) in
            [(IterationCountPlacement::EveryNode, "nodes"), (IterationCountPlacement::FeedbackVertices, "loops")]
        {
            let bounded = paths.replacen('{', &format!("{{ bound {bound};"), 1);
            programs.push((format!("{bound} {name}"), compiled(program, &bounded, Mode::FastPath, iteration_counts)));
        }
    }
    for (name, fast) in &programs {
        for attempt in &fast.path_attempts {
            assert!(attempt.result.is_ok(), "{}", attempt.text(&fast.ir));
        }
        for script in scripts {
            let (expected, slow_rendezvous) = run(&slow, script);
            let (found, rendezvous) = run(&fast.ir, script);
            assert!(rendezvous <= slow_rendezvous, "{name}: {script}");
            if uses == Uses::Mostly && name == "as it is" && Some(script) == scripts.last() && slow_rendezvous > 20 {
                assert!(
                    3 * rendezvous < 2 * slow_rendezvous,
                    "the path is hardly used: {rendezvous} of {slow_rendezvous}: {script}"
                );
            }
            assert_eq!(found, expected, "{name}: {script}\n{paths}\n{}", fast.path_attempts[0].text(&fast.ir));
        }
    }
}

/// Forces an exit at each decision of the path, one per program, and compares the visible actions with those of the
/// program without the path. Returns the number of forced exits.
fn left_anywhere(program: &str, paths: &str, scripts: &[String]) -> usize {
    let slow = compiled(program, "", Mode::Process, IterationCountPlacement::FeedbackVertices).ir;
    let expected: Vec<_> = scripts.iter().map(|script| run(&slow, script).0).collect();
    let (mut left, mut without) = (0, 0);
    for place in 0.. {
        let fast = compiled(program, paths, Mode::FastPath, IterationCountPlacement::Forced(place));
        let attempt = &fast.path_attempts[0];
        let is_left = match &attempt.result {
            Ok(made) => made.exits.iter().any(|exit| matches!(exit.reason, ExitReason::Forced(_))),
            // The rest of the path is empty, or its exit is unreachable.
            Err(_) => false,
        };
        // Decisions in executions that the exploration discarded are not on the path.
        without = if is_left { 0 } else { without + 1 };
        left += usize::from(is_left);
        if without == MAX_FRUITLESS_STEPS {
            break;
        }
        for (script, expected) in scripts.iter().zip(&expected) {
            assert_eq!(
                run(&fast.ir, script).0,
                *expected,
                "place {place}: {script}\n{paths}\n{}",
                attempt.text(&fast.ir)
            );
        }
    }
    left
}

/// Scripts that offer the first of these messages, from none to all, then close the channel.
fn inputs(channel: &str, messages: &[&str], rest: &str) -> Vec<String> {
    (0..=messages.len())
        .map(|count| {
            let offers: String =
                messages[..count].iter().map(|message| format!("; offer {channel} {message}\n")).collect();
            format!("{offers}; close {channel}\n{rest}")
        })
        .collect()
}

const FIGURE_2: &str = concat!(
    include_str!("../../../examples/vmmc-send/figure2.esp"),
    include_str!("../../../examples/vmmc-send/functions.esp")
);
const FIGURE_5: &str = include_str!("../../../examples/vmmc-send/figure5.fp");

#[test]
fn filters_have_few_states() {
    for (program, paths, max_states) in [
        (
            include_str!("../../../bench/filters-process/esp/program2.esp"),
            include_str!("../../../bench/filters-process/esp/program2.fp"),
            24,
        ),
        (
            include_str!("../../../bench/filters-process/esp/program3.esp"),
            include_str!("../../../bench/filters-process/esp/program3.fp"),
            32,
        ),
    ] {
        let outputs = compiled(program, paths, Mode::FastPath, IterationCountPlacement::FeedbackVertices);
        let made = outputs.path_attempts[0].result.as_ref().expect("the paths of the filters can be made");
        assert!(made.nodes <= max_states, "{} states", made.nodes);
    }
}

#[test]
fn figures_2_and_5() {
    let outputs = compiled(FIGURE_2, FIGURE_5, Mode::FastPath, IterationCountPlacement::FeedbackVertices);
    let made = outputs.path_attempts[0].result.as_ref().expect("the path of the paper can be made");
    let lines = |places: &[quaject_esp_ir::ir::Location]| places.iter().map(|at| at.line).collect::<Vec<u32>>();
    let states: Vec<Vec<u32>> = made.locations.iter().map(|state| lines(state)).collect();
    for wanted in [[13, 32, 50], [15, 35, 50], [15, 41, 50], [19, 32, 50]] {
        assert!(states.contains(&wanted.to_vec()), "{wanted:?} of figure 6 is not reached: {states:?}");
    }
    let exits: Vec<(ExitReason, Vec<u32>)> = made.exits.iter().map(|exit| (exit.reason, lines(&exit.at))).collect();
    let normal: Vec<&Vec<u32>> = exits.iter().filter(|(why, _)| *why == ExitReason::Normal).map(|(_, at)| at).collect();
    assert_eq!(normal, [&vec![19, 32, 50]], "the only exit of figure 6");
    let deviations: Vec<&(ExitReason, Vec<u32>)> = exits
        .iter()
        .filter(|(why, _)| matches!(why, ExitReason::Deviation(_) | ExitReason::PredicateFalse(_)))
        .collect();
    assert_eq!(
        deviations,
        [&(ExitReason::Deviation(1), vec![15, 36, 50])],
        "the only abort by the path's words is at #2"
    );
    assert_eq!(made.bypass_interval, None);
}

#[test]
fn the_path_of_figure_5_preserves_figure_2() {
    let requests = ["0 4096", "8192 12288", "4096 0", "0 16384", "4096 8192"];
    for unavailable in [0, 1] {
        let rest =
            format!("; extern translationUnavailable {unavailable}\n; extern translate 7\n; extern preparePacket 9\n");
        let scripts = inputs("hostSendRequestC", &requests, &rest);
        let uses = if unavailable == 0 { Uses::Mostly } else { Uses::Sometimes };
        same(FIGURE_2, FIGURE_5, &scripts, 6, uses);
    }
}

#[test]
fn the_path_of_figure_5_blocks_where_figure_2_blocks() {
    let rest = "; extern translationUnavailable 0\n; extern translate 7\n; extern preparePacket 9\n";
    let scripts = inputs("hostSendRequestC", &["0 4096", "4096 17", "0 4096"], rest);
    same(FIGURE_2, FIGURE_5, &scripts, 4, Uses::Sometimes);
    // A network that takes one packet and no more.
    let scripts = inputs("hostSendRequestC", &["0 8192", "4096 8192"], &format!("{rest}; accept networkSendC 1\n"));
    same(FIGURE_2, FIGURE_5, &scripts, 4, Uses::Sometimes);
}

const FILTERS: &str = r#"
const END = -1;
channel inputC(bytes[<=16]) external out;
channel readC(int);
channel evenC(int);
channel swappedC(int);
channel outputC(int) external in;
process read {
  in(inputC, $data);
  for i in 0..data.len { out(readC, int(data[i])); }
  out(readC, END);
}
process evener {
  var odd = false;
  while {
    in(readC, $byte);
    if (byte == END) break;
    out(evenC, byte);
    odd = !odd;
  }
  if (odd) out(evenC, 0);
  out(evenC, END);
}
process swap {
  while {
    in(evenC, $first);
    if (first == END) break;
    in(evenC, $second);
    if (second == END) { out(swappedC, first); break; }
    out(swappedC, second);
    out(swappedC, first);
  }
  out(swappedC, END);
}
process write {
  var seen: #array of int = #[0; 4], at = 0;
  while {
    in(swappedC, $byte);
    seen[at] = byte;
    at = (at + 1) % 4;
    out(outputC, byte + seen[(at + 1) % 4]);
    if (byte == END) break;
  }
}
"#;

const STREAM: &str = "
fastpath stream {
  process read   { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process evener { statement readC; start readC; exit readC; }
  process swap   { statement evenC/in@1 as S; start S; exit S; }
  process write  { statement swappedC; start swappedC; exit swappedC; }
}";

#[test]
fn filters() {
    let texts: Vec<String> = (0..8).map(|length| format!("{:?}", &"abcdefgh"[..length])).collect();
    for text in &texts {
        same(FILTERS, STREAM, &inputs("inputC", &[text.as_str()], ""), 9, Uses::Mostly);
    }
}

/// Run-length expansion: an inner loop of the path, whose iterations are counted in its preheader.
const RUNS: &str = r#"
const END = -1;
channel inputC(bytes[<=16]) external out;
channel readC(int);
channel writeC(int);
channel outputC(int) external in;
process read {
  in(inputC, $data);
  for i in 0..data.len { out(readC, int(data[i])); }
  out(readC, END);
}
process rld {
  while {
    in(readC, $count);
    if (count == END) break;
    in(readC, $value);
    if (value == END) break;
    for copy in 0..count { out(writeC, value); }
  }
  out(writeC, END);
}
process write {
  var sum = 0;
  while {
    in(writeC, $byte);
    if (byte == END) break;
    sum = (31 * sum + byte) & 0xffffff;
  }
  out(outputC, sum);
}
"#;

const RUNS_PATH: &str = "
fastpath runs {
  process read  { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process rld   { statement readC/in@1 as C, writeC/out@2; start C; exit C; }
  process write { statement writeC, outputC; start writeC; exit writeC; }
}";

#[test]
fn inner_loops_of_a_path_are_counted_in_their_preheaders() {
    if quick_run("counts of inner loops") {
        return;
    }
    let texts = [
        r"\x00a",
        r"\x01a\x02b",
        r"\x05a\x05b\x05c\x05d",
        r"\x28a\x01b\x03c",
        r"\x03a\x12b\x11c\x10d\x02e",
        r"\x02a\x02",
    ];
    for text in texts {
        same(RUNS, RUNS_PATH, &inputs("inputC", &[&format!("\"{text}\"")], ""), 40, Uses::Sometimes);
    }
    // A loop that has begun is completed if it is short enough. Then the path exits where all members are at their
    // starts, and is entered again without a rendezvous in between.
    let program = RUNS.replace("<=16", "<=64");
    let entries = |bound: u32| {
        let path = RUNS_PATH.replacen('{', &format!("{{ bound {bound};"), 1);
        let program = compiled(&program, &path, Mode::FastPath, IterationCountPlacement::FeedbackVertices).ir;
        let script = format!("; offer inputC \"{}\"\n; close inputC\n", r"\x02a".repeat(32));
        let mut environment = Script::new(&program, &script);
        let mut interpreter = Interpreter::new(&program, Checks::On).expect("the program is small");
        assert!(matches!(interpreter.run(&mut environment, 1_000_000), Outcome::Ended(0) | Outcome::Quiescent(_)));
        let tally = interpreter.tally();
        (tally.entries, tally.communications)
    };
    let (entered, rendezvous) = entries(1024);
    assert_eq!(entered, 1, "{rendezvous} rendezvous are left");
    for bound in 32..48 {
        let (entered, more) = entries(bound);
        assert_eq!(more, rendezvous, "bound {bound}");
        assert!((2..=3).contains(&entered), "bound {bound}: entered {entered} times");
    }
}

/// A sender enciphers and a receiver deciphers, each with a position in the key. At a byte 33 one of them resets its
/// position, so that the two differ from then on.
const KEYS: &str = r#"
const END = -1;
const KEY = "\x11\x22\x44\x08";
channel inputC(bytes[<=16]) external out;
channel readC(int); channel cipherC(int); channel plainC(int);
channel outputC(int) external in;
process read { in(inputC, $data); for i in 0..data.len { out(readC, int(data[i])); } out(readC, END); }
process encipher {
  var at = 0;
  while {
    in(readC, $byte);
    if (byte == END) break;
    out(cipherC, byte ^ KEY[at]);
    at = (at + 1) % 4;
  }
  out(cipherC, END);
}
process decipher {
  var at = 0;
  while {
    in(cipherC, $byte);
    if (byte == END) break;
    out(plainC, byte ^ KEY[at]);
    if ((byte ^ KEY[at]) == 33) { #anew at = 0; } else { at = (at + 1) % 4; }
  }
  out(plainC, END);
}
process write {
  var sum = 0;
  while { in(plainC, $byte); if (byte == END) break; sum = 31 * sum + byte; }
  out(outputC, sum);
}
"#;

const KEYS_PATH: &str = "
fastpath keys {
  process read     { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process encipher { statement readC; start readC; exit readC; }
  process decipher { statement cipherC, #anew; start cipherC; exit cipherC; }
  process write    { statement plainC; start plainC; exit plainC; }
}";

#[test]
fn equal_counters_are_compared_once_at_the_entry() {
    let outputs = compiled(KEYS, KEYS_PATH, Mode::FastPath, IterationCountPlacement::FeedbackVertices);
    let made = outputs.path_attempts[0].result.as_ref().expect("the path can be made");
    assert!(
        made.exits.iter().any(|exit| exit.reason == ExitReason::ValuesDiffer),
        "{}",
        outputs.path_attempts[0].text(&outputs.ir)
    );
    for (text, uses) in [("abcdefghijklmnop", Uses::Mostly), ("!bcdefg!ijkl!!op", Uses::Sometimes)] {
        for length in 0..=text.len() {
            same(KEYS, KEYS_PATH, &inputs("inputC", &[&format!("{:?}", &text[..length])], ""), 3, uses);
        }
    }
}

/// The same program, with the same states, whose entry tests always fail.
fn without_entries(program: &Program) -> Program {
    let mut program = program.clone();
    for block in program.processes.iter_mut().flat_map(|process| &mut process.body.blocks) {
        if let Terminator::Enter(enter) = &block.terminator {
            block.terminator = Terminator::Jump(enter.otherwise.clone());
        }
    }
    program
}

/// A run of a program: its state, and its environment.
#[derive(Clone)]
struct Run<'p> {
    state: State,
    environment: Script<'p>,
}

impl Run<'_> {
    fn step(&mut self, machine: &mut Machine<'_>, step: Step) -> Effect {
        machine.step(step, &mut self.state, &mut self.environment, &mut u64::MAX.clone())
    }

    /// The run after the local code of the members other than the trigger.
    fn after_local_code(&self, machine: &mut Machine<'_>, members: &[u32]) -> Self {
        let mut run = self.clone();
        for instance in members.iter().copied().skip(1) {
            if let Control::Running { .. } = run.state.control(instance) {
                run.step(machine, Step::Local { instance });
            }
        }
        run
    }
}

/// The run of the program without entries from one state to another with the same effects, by steps of the members
/// alone.
fn replay<'p>(slow: &mut Machine<'_>, from: &Run<'p>, to: &Run<'_>, members: &[u32]) -> Option<Run<'p>> {
    let mut seen: Vec<Run<'p>> = Vec::new();
    let mut work = vec![from.clone()];
    while let Some(mut run) = work.pop() {
        let is_known =
            |other: &Run<'_>| other.state == run.state && other.environment.log.len() == run.environment.log.len();
        if run.environment.log.len() > to.environment.log.len() || seen.iter().any(is_known) {
            continue;
        }
        let completed = run.after_local_code(slow, members);
        if completed.state == to.state && by_channel(&completed.environment.log) == by_channel(&to.environment.log) {
            return Some(completed);
        }
        assert!(seen.len() < 5000, "the slow program does not get there: {:?}", to.environment.log);
        for step in slow.enabled(&mut run.state, &mut run.environment) {
            let own = match step {
                Step::Communicate { sender, receiver, .. } => members.contains(&sender) && members.contains(&receiver),
                Step::Local { instance }
                | Step::FromEnvironment { instance, .. }
                | Step::ToEnvironment { instance, .. }
                | Step::After { instance, .. }
                | Step::Else { instance } => members.contains(&instance),
            };
            let mut next = run.clone();
            if own && next.step(slow, step) == Effect::Done {
                work.push(next);
            }
        }
        seen.push(run);
    }
    None
}

/// Executes random steps of a program. After each exit of a path, the program without entries has to reach the same
/// state by steps of the members. Returns the number of replayed runs of the path.
fn replayed(program: &str, paths: &str, script: &str, iteration_counts: IterationCountPlacement, seed: u64) -> u32 {
    let fast_ir = compiled(program, paths, Mode::FastPath, iteration_counts).ir;
    let slow_ir = without_entries(&fast_ir);
    let path = &fast_ir.paths[0];
    let members: Vec<u32> =
        std::iter::once(path.trigger).chain(path.members.iter().map(|member| member.instance)).collect();
    let mut fast = Machine::new(&fast_ir, Checks::Off).expect("it is small");
    let mut slow = Machine::new(&slow_ir, Checks::Off).expect("it is small");
    let environment = Script::new(&fast_ir, script);
    let mut at = Run { state: fast.start(), environment };
    let mut slow_run = at.clone();
    let (mut random, mut runs) = (Random(seed + 1), 0);
    for _ in 0..400 {
        let steps = fast.enabled(&mut at.state, &mut at.environment);
        if steps.is_empty() {
            break;
        }
        // Usually all other instances step first, so that a path can be entered.
        let others: Vec<Step> =
            steps.iter().copied().filter(|step| *step != Step::Local { instance: path.trigger }).collect();
        let steps = if others.is_empty() || random.index(16) == 0 { steps } else { others };
        let step = random.pick(&steps);
        if at.step(&mut fast, step) != Effect::Done {
            break;
        }
        let lent = (0..at.state.instances()).any(|one| matches!(at.state.control(one), Control::CapturedByPath { .. }));
        if lent {
            continue;
        }
        let mut plain = slow_run.clone();
        if slow.enabled(&mut plain.state, &mut plain.environment).contains(&step)
            && plain.step(&mut slow, step) == Effect::Done
            && plain.state == at.state
            && plain.environment.log == at.environment.log
        {
            slow_run = plain;
            continue;
        }
        let to = at.after_local_code(&mut fast, &members);
        let reached = replay(&mut slow, &slow_run, &to, &members);
        let reached = reached.unwrap_or_else(|| panic!("{step:?} leads where the slow program cannot get: {script}"));
        runs += 1;
        // Both programs continue from one state.
        at = reached.clone();
        slow_run = reached;
    }
    runs
}

#[test]
fn every_exit_and_abort_is_replayed() {
    let mut runs = 0;
    let rest = "; extern translationUnavailable 0\n; extern translate 7\n; extern preparePacket 9\n";
    for script in inputs("hostSendRequestC", &["0 4096", "4096 8192"], rest) {
        for seed in 0..40 {
            let paths = FIGURE_5.replacen('{', &format!("{{ retries 0; bound {};", 1 + seed % 8), 1);
            runs += replayed(FIGURE_2, &paths, &script, IterationCountPlacement::EveryNode, seed);
        }
    }
    assert!(runs > 20, "the path was entered {runs} times only");
    runs = 0;
    for text in ["", "a", "ab", "abc", "abcd"] {
        for seed in 0..40 {
            let paths = STREAM.replacen('{', &format!("{{ retries 0; bound {};", 1 + seed % 8), 1);
            let script = format!("; offer inputC {text:?}\n; close inputC\n");
            runs += replayed(FILTERS, &paths, &script, IterationCountPlacement::EveryNode, seed);
        }
    }
    assert!(runs > 20, "the path of filters was entered {runs} times only");
}

#[test]
fn a_path_can_exit_at_every_decision() {
    if quick_run("side exits at every decision") {
        return;
    }
    let rest = "; extern translationUnavailable 0\n; extern translate 7\n; extern preparePacket 9\n";
    let requests = inputs("hostSendRequestC", &["0 4096", "4096 8192", "1 1"], rest);
    let left = left_anywhere(FIGURE_2, FIGURE_5, &requests);
    assert!(left > 20, "Figure 5's is left at {left} places only");
    let texts = ["", "a", "aa", "ab", "abc", "aabbbc"];
    let scripts: Vec<String> = texts.iter().map(|text| format!("; offer inputC {text:?}\n; close inputC\n")).collect();
    let left = left_anywhere(FILTERS, STREAM, &scripts);
    assert!(left > 20, "that of filters is left at {left} places only");
}

const CHOICES: &str = r#"
channel inC(int) external out;
channel evenC(int);
channel oddC(int);
channel sumC(int) external in;
process split {
  while {
    in(inC, $n);
    if (n % 2 == 0) out(evenC, n); else out(oddC, n);
  }
}
process sum {
  var total = 0;
  while {
    alt {
      in(evenC, $even) { total += even; out(sumC, total); }
      in(oddC, $odd) { total -= odd; if (total < -50) { #low total = 0; } out(sumC, total); }
    }
  }
}
"#;

#[test]
fn alternatives_predicates_and_peers() {
    let numbers = ["2", "4", "1", "6", "60", "3", "8", "77", "5", "10", "12", "14"];
    let scripts = inputs("inC", &numbers, "");
    let specifications = [
        // Only one branch of the alternative.
        "fastpath even { process split { statement inC, evenC, oddC; start inC; follows evenC (inC evenC)*; }
         process sum { statement evenC, oddC; start evenC; exit evenC; } }",
        // Both, so that there is a choice; predicates at the start, on what was received and before a statement.
        "fastpath both { bypass 2; process split { statement inC as I, evenC as E, oddC as O; start I ? (n < 50);
           follows (E ? (n != 6) | O) (I ? (n > 1) (E | O))*; }
         process sum { statement evenC as P, sumC/out@1 as S, #low; start P ? (even > 2);
           follows (S | P ? (even < 11))*; } }",
        // The partner is named.
        "fastpath peer { process split { statement inC, oddC as O, evenC as E; start inC; follows (O <=> P | E) inC; }
         process sum { statement oddC as P, #low; start P <=> O; exit P; } }",
        // The sender continues first.
        "fastpath yields { process split { statement inC, evenC; start inC; follows (evenC inC)*; }
         process sum { statement evenC as E; start E yield split; exit E; } }",
    ];
    for paths in specifications {
        same(CHOICES, paths, &scripts, 3, Uses::Sometimes);
    }
    let made = compiled(CHOICES, specifications[1], Mode::FastPath, IterationCountPlacement::FeedbackVertices);
    assert_eq!(made.path_attempts[0].result.as_ref().expect("it can be made").bypass_interval, Some(2));
}

const WORKERS: &str = r#"
channel inC(int) external out;
channel jobC(pid(worker), int);
channel doneC(int);
channel outC(int) external in;
process split { while { in(inC, $n); out(jobC, @worker[n % 2], n); } }
process worker[2] {
  var last = 0;
  while { in(jobC, @, $n); out(doneC, n * 10 + last); last = n; }
}
process collect { while { in(doneC, $n); out(outC, 1000 / (n - 20) + n); } }
"#;

#[test]
fn replicas_and_faults() {
    let paths = "fastpath one {
      process split { statement inC, jobC; start inC; follows (jobC inC)*; }
      process worker[1] { statement jobC; start jobC; exit jobC; }
      process collect { statement doneC; start doneC; exit doneC; } }";
    same(WORKERS, paths, &inputs("inC", &["1", "3", "2", "5", "7", "4", "9"], ""), 4, Uses::Sometimes);
    // The first 2 from worker 0 becomes 20: `collect` divides by zero, on and off the path.
    for worker in [0, 1] {
        let paths = paths.replace("worker[1]", &format!("worker[{worker}]"));
        same(WORKERS, &paths, &inputs("inC", &["1", "3", "2", "5"], ""), 4, Uses::Sometimes);
    }
}

/// Statements of a member that fault once their number is too large.
const TOO_MUCH: [&str; 7] = [
    "p.len = n;",
    "p += \"ab\";",
    "few = whole[1..n];",
    "p[0..n] = few;",
    "p.be16[n] = 7;",
    "total += int(whole.le16[n]);",
    "if (n > 3) { var two: cellT = { n }, three: cellT = { n + 1 }; total += two.a + three.a; } else { var two: cellT = { n }; total += two.a; }",
];

#[test]
fn faults_of_lengths_and_pools_are_attributed_to_their_member() {
    for statement in TOO_MUCH {
        let program = format!(
            "type cellT = record of {{ a: int }}; pool cellT 2;
             channel inC(int) external out; channel workC(int); channel outC(int) external in;
             process read {{ while {{ in(inC, $n); out(workC, n); }} }}
             process work {{
               var one: cellT = {{ 1 }}, total = 0, few: bytes[<=2] = \"ab\", whole: bytes[<=8] = \"abcdefgh\";
               var p: #bytes[<=8] = #\"ab\";
               while {{ in(workC, $n); {statement} out(outC, n + total + p.len + few.len + one.a); }}
             }}"
        );
        let path = "fastpath f {
          process read { statement inC, workC; start inC; follows workC (inC workC)*; }
          process work { statement workC, outC; start workC; follows outC?; exit workC; } }";
        let scripts = inputs("inC", &["2", "2", "1", "3", "2", "9", "-1"], "");
        let (end, _) = run(
            &compiled(&program, "", Mode::Process, IterationCountPlacement::FeedbackVertices).ir,
            scripts.last().expect("several"),
        );
        assert!(end.last().is_some_and(|end| end.starts_with("fault ") && end.contains(" of work ")), "{end:?}");
        same(&program, path, &scripts, 3, Uses::Sometimes);
    }
}

/// The edge behind the start of the path has the loop counter as its argument.
#[test]
fn a_start_at_the_end_of_a_loop() {
    let program = "channel inC(int) external out; channel outC(int) external in;
      process p { in(inC, $count); var n = 0; while (n < count) { n += 1; out(outC, n); } }";
    let path = "fastpath f { process p { statement outC; start outC; follows outC*; } }";
    same(program, path, &inputs("inC", &["5"], ""), 3, Uses::Sometimes);
}

/// Payloads that a region computes while its process waits are computed on the path, in slots of the path.
#[test]
fn payload_regions_are_executed_on_the_path() {
    let program = "channel inC(int) external out; channel outC(int) external in;
      channel pairC(int, array[1] of int) policy queue;
      process p { while { in(inC, $n); alt { out(pairC, n, [n + 4]) { } } } }
      process q { while { in(pairC, $a, $b); out(outC, a + b[0]); } }";
    let path = "fastpath f { process p { statement inC, pairC; start inC; follows pairC; }
      process q { statement pairC, outC; start pairC; follows outC; } }";
    same(program, path, &inputs("inC", &["1", "2", "3", "4", "5"], ""), 3, Uses::Sometimes);
    let leaves = "fastpath f { process p { statement inC, pairC; start inC; follows pairC; } }";
    same(program, leaves, &inputs("inC", &["1", "2", "3"], ""), 2, Uses::Sometimes);
}

#[test]
fn paths_that_cannot_be_formed_are_refused() {
    let refused = |program: &str, paths: &str| {
        let outputs = compiled(program, paths, Mode::FastPath, IterationCountPlacement::FeedbackVertices);
        outputs.path_attempts.iter().map(|attempt| attempt.text(&outputs.ir)).collect::<Vec<_>>().join("\n")
    };
    let pri = CHOICES.replace("    alt {", "    pri alt {");
    let start = "fastpath f { process split { statement inC, evenC; start inC; follows evenC; }
      process sum { statement evenC; start evenC; } }";
    assert_eq!(refused(&pri, start), "no fast path f: `sum` has a `pri alt` at its start at p.esp:16:7");
    let large = "fastpath f { process split { statement inC, evenC; start inC; follows (inC evenC){0,90000}; } }";
    assert_eq!(refused(CHOICES, large), "no fast path f: `split` has a `follows` that is too long at p.esp:8:5");
    // After a side exit, a `pri alt` would observe that a member does not wait yet.
    let passing = "channel c(int);\nchannel x(int) external in;\nchannel go(int) external out;\n\
        process asks { while { in(go, $n); pri alt { in(c, _) {} out(x, n) {} } } }\n\
        process says { while { out(c, 1); } }\n";
    let said = "`asks` observes by `pri alt` or `else` that no process waits at `c`, as is the case after a side exit";
    for members in
        ["process asks { statement go; start go; }", "process asks { statement go, x; start go; follows x; }"]
    {
        let inside = format!("fastpath f {{ {members} process says {{ statement c; start c; }} }}");
        assert_eq!(refused(passing, &inside), format!("no fast path f: {said}"), "{members}");
    }
    // The number of paths of a program is limited.
    let many: String =
        (0..34).map(|number| start.replace("fastpath f", &format!("fastpath f{number}")) + "\n").collect();
    let said = refused(CHOICES, &many);
    let beyond: Vec<&str> = said.lines().filter(|line| line.starts_with("no ")).collect();
    assert_eq!(beyond, ["no fast path f32: more than 32 fast paths", "no fast path f33: more than 32 fast paths"]);
    // A path whose start predicate is always false has no effect.
    let nowhere = "fastpath f { bound 1; bypass 1; retries 0;
      process split { statement inC, evenC; start inC ? (n != n); } process sum { statement evenC; start evenC; } }";
    same(CHOICES, nowhere, &inputs("inC", &["2", "1", "4"], ""), 0, Uses::Sometimes);
}
