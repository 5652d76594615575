//! File tests, in the manner of Cranelift's: a file for each case has a program, a transformation, runs of the program,
//! and the result. Every run is checked before and after the transformation: by the interpreter, as machine code, and
//! as C where there is a compiler. `UPDATE_EXPECT=1` writes the results.
//!
//! ```text
//!   tests/filetests/PASS/CASE.ir
//!     ; what the case shows
//!     ; pass: PASS                 a pass over one body, `unroll`, `fuse` or `fuse-if-schedule-independent`
//!     ; checked                    overflow is a fault
//!     ; limits: nodes=5 fuel=100   of the product
//!     ; omit program               the result is the report alone
//!     ; run: c 1 | c 2 => d 3 | ended 0      inputs, outputs, and how it ends
//!     program
//!     == after
//!     ; the report of the transformation
//!     program, unless it is unchanged
//!
//!   tests/filetests/fast-paths/CASE.esp      the same in ESP; comments begin with `//`
//!     // mode: fastpath            or `auto`
//!     program
//!     == fast paths
//!     specifications
//!     == after
//!     ...
//! ```

use quaject_differential::c::run as run_in_c;
use quaject_differential::environment::Script as Inputs;
use quaject_differential::generate::{Outcome as SampleOutcome, Sample};
use quaject_differential::machine::Compiler;
use quaject_esp::{Emit, File, Loader, Mode, Options, Source, compile};
use quaject_esp_exec::datum::{parse_message, print_message};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{Body, ChannelId, Program};
use quaject_esp_ir::read::read;
use quaject_esp_ir::text::{fault_name, print};
use quaject_esp_ir::verify::verify;
use quaject_esp_opt::groups::{FusionAttempt, fuse_all, fuse_if_schedule_independent};
use quaject_esp_opt::limits::{CodeGrowth, Limits};
use quaject_esp_opt::loop_versioning::unroll_loops;
use quaject_esp_opt::observability::ScheduleIndependence;
use quaject_esp_opt::passes::{self, AnalysisCache, Context};
use quaject_esp_run::{DebugInfo, MachineCode};
use quaject_esp_syntax::span::FileId;
use quaject_test_environment::Script;
use quaject_test_support::tool;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const AFTER: &str = "== after\n";
const FAST_PATHS: &str = "== fast paths\n";
const MAX_STEPS: u64 = 1_000_000;

/// Programs that are compiled as one C file.
const PROGRAMS_PER_FILE: usize = 32;

type Pass = fn(&mut Body, Context<'_>) -> bool;

const PASSES: [(&str, Pass); 10] = [
    ("simplify-cfg", passes::simplify_cfg),
    ("copy-prop", passes::copy_prop),
    ("const-fold", passes::const_fold),
    ("gvn", passes::gvn),
    ("vrp", passes::vrp),
    ("strength-reduce", passes::strength_reduce),
    ("rc-elim", passes::rc_elim),
    ("dse", passes::dse),
    ("dce", passes::dce),
    ("bounds-check-elim", passes::bounds_check_elim),
];

/// The transformations of whole programs.
const TRANSFORMATIONS: [&str; 4] = ["unroll", "fuse", "fuse-if-schedule-independent", "fast-paths"];

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("{path} is not imported by any of these programs"))
    }
}

/// A file, parsed.
struct Case {
    path: PathBuf,
    /// What begins a comment.
    comment: &'static str,
    /// The comment lines before the program.
    directives: Vec<String>,
    /// The program, and in ESP the specifications of its fast paths.
    before: String,
    fast_paths: Option<String>,
    after: String,
}

impl Case {
    fn open(path: PathBuf) -> Case {
        let comment = if path.extension().is_some_and(|extension| extension == "esp") { "// " } else { "; " };
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let (before, after) = text.split_once(AFTER).unwrap_or((&text, ""));
        let (program, fast_paths) = match before.split_once(FAST_PATHS) {
            Some((program, fast_paths)) => (program, Some(fast_paths.to_string())),
            None => (before, None),
        };
        let directives = program.lines().map_while(|line| line.strip_prefix(comment)).map(str::to_string).collect();
        let is_directive = |line: &&str| line.starts_with(comment);
        let before = program.lines().skip_while(is_directive).map(|line| format!("{line}\n")).collect();
        let after = after.to_string();
        Case { path, comment, directives, before, fast_paths, after }
    }

    /// The text of the file, with these directives and this result.
    fn text(&self, directives: &[String], after: &str) -> String {
        let mut text: String = directives.iter().map(|line| format!("{}{line}\n", self.comment)).collect();
        text += &self.before;
        if let Some(fast_paths) = &self.fast_paths {
            text += FAST_PATHS;
            text += fast_paths;
        }
        text + AFTER + after
    }

    fn directive(&self, name: &str) -> Option<&str> {
        self.directives.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }

    fn checks(&self) -> Checks {
        if self.directives.iter().any(|line| line == "checked") { Checks::On } else { Checks::Off }
    }

    fn is_checked(&self) -> bool {
        self.checks() == Checks::On
    }

    fn verified(&self, program: Program) -> Program {
        let errors: Vec<String> = verify(&program).iter().map(|error| error.text(&program)).collect();
        assert!(errors.is_empty(), "{}: {errors:?}", self.path.display());
        program
    }

    fn read(&self, text: &str) -> Program {
        self.verified(read(text).unwrap_or_else(|error| panic!("{}: {error:?}", self.path.display())))
    }

    fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        for assignment in self.directive("limits").unwrap_or_default().split_whitespace() {
            let (name, value) = assignment.split_once('=').expect("NAME=VALUE");
            let number = || value.parse().expect("a number");
            match name {
                "members" => limits.members = number(),
                "nodes" => limits.nodes = number(),
                "instructions" => limits.instructions = number(),
                "fuel" => limits.fuel = number(),
                "growth" if value == "conservative" => limits.growth = CodeGrowth::Conservative,
                "growth" => limits.growth = CodeGrowth::Factor(number()),
                _ => panic!("{}: no limit {name}", self.path.display()),
            }
        }
        limits
    }

    /// The program before the transformation.
    fn program(&self) -> Program {
        match &self.fast_paths {
            Some(_) => self.compile("", Mode::Process).0,
            None => self.read(&self.before),
        }
    }

    /// Compiles a program in ESP; the program, and the report on its fast paths.
    fn compile(&self, fast_paths: &str, mode: Mode) -> (Program, Vec<String>) {
        let file = |name: &str, text: &str| File { name: name.into(), bytes: text.as_bytes().to_vec() };
        let source = Source { root: file("p.esp", &self.before), fast_paths: vec![file("p.fp", fast_paths)] };
        let options = Options { mode, checked: self.is_checked(), limits: self.limits(), ..Options::new(Emit::Ir) };
        let compiled = compile(source, &mut NoImports, &options);
        let messages: Vec<&str> = compiled.diagnostics.iter().map(|diagnostic| diagnostic.message.as_str()).collect();
        let outputs =
            compiled.outputs.unwrap_or_else(|reason| panic!("{}: {reason:?}: {messages:#?}", self.path.display()));
        let report = outputs.path_attempts.iter().map(|attempt| attempt.text(&outputs.ir));
        let report = report.flat_map(|text| text.lines().map(str::to_string).collect::<Vec<_>>()).collect();
        (self.verified(outputs.ir), report)
    }

    /// The program after the transformation, and the text of the section `after`.
    fn transform(&self) -> (Program, String) {
        let (checked, limits) = (self.is_checked(), self.limits());
        let before = self.program();
        let mut program = before.clone();
        let fusion_report = |program: &Program, attempts: Vec<FusionAttempt>| {
            attempts.iter().map(|attempt| attempt.text(program)).collect::<Vec<_>>()
        };
        let report = match self.directive("pass").expect("a line `pass: NAME`") {
            "fuse" => {
                let attempts = fuse_all(&mut program, checked, limits);
                fusion_report(&program, attempts)
            }
            "fuse-if-schedule-independent" => {
                let independence = ScheduleIndependence::analyze(&program, checked);
                let attempts = fuse_if_schedule_independent(&mut program, checked, limits, &independence);
                fusion_report(&program, attempts)
            }
            "unroll" => {
                let attempts = unroll_loops(&mut program, 0, checked);
                attempts.iter().map(|attempt| attempt.text(&program)).collect()
            }
            "fast-paths" => {
                let mode = match self.directive("mode") {
                    Some("auto") => Mode::Auto,
                    Some("fastpath") => Mode::FastPath,
                    mode => panic!("{}: no mode {mode:?}", self.path.display()),
                };
                let (transformed, report) = self.compile(self.fast_paths.as_deref().unwrap_or_default(), mode);
                program = transformed;
                report
            }
            name => {
                let pass = PASSES.iter().find(|(known, _)| *known == name);
                let (_, pass) = pass.unwrap_or_else(|| panic!("{}: no pass {name}", self.path.display()));
                self.run_pass(&mut program, *pass);
                Vec::new()
            }
        };
        let mut after: String = report.iter().map(|line| format!("{}{line}\n", self.comment)).collect();
        let text = print(&program);
        // The text form keeps everything.
        assert_eq!(print(&self.read(&text)), text, "{}", self.path.display());
        let is_omitted = self.directives.iter().any(|line| line == "omit program");
        if !is_omitted && (report.is_empty() || text != print(&before)) {
            after += &text;
        }
        (program, after)
    }

    fn run_pass(&self, program: &mut Program, pass: Pass) {
        let before = print(program);
        let Program { types, memory, functions, processes, .. } = program;
        let cache = AnalysisCache::default();
        let context = Context { types, memory: *memory, checked: self.is_checked(), cache: &cache };
        let functions = functions.iter_mut().map(|function| &mut function.body);
        let bodies: Vec<&mut Body> = functions.chain(processes.iter_mut().map(|process| &mut process.body)).collect();
        let mut has_changed = false;
        for body in bodies {
            has_changed |= pass(body, context);
        }
        let is_different = print(program) != before;
        assert_eq!(has_changed, is_different, "{}: the pass reports whether it changed", self.path.display());
    }
}

/// The text after `=>` of a run, on one engine.
fn observe(case: &Case, program: &Program, inputs: &str, native: Option<MachineCode>) -> String {
    let mut script = String::new();
    for input in inputs.split(" | ").filter(|input| !input.is_empty()) {
        writeln!(script, "; offer {input}").expect("strings grow");
    }
    let mut environment = Script::new(program, &script);
    // All inputs are available from the start: a channel without further ones is closed.
    environment.closing.fill(true);
    let mut interpreter = Interpreter::new(program, case.checks()).expect("test programs are small");
    if let Some(code) = native {
        interpreter.use_native(Box::new(code));
    }
    let outcome = match interpreter.run(&mut environment, MAX_STEPS) {
        Outcome::Budget => "runs forever".to_string(),
        Outcome::Ended(status) => format!("ended {status}"),
        Outcome::Faulted(report) => format!("fault {}", fault_name(report.fault)),
        Outcome::Quiescent(_) => "waits".to_string(),
    };
    let outputs = environment.log.iter().filter_map(|line| line.strip_prefix("> "));
    outputs.chain([outcome.as_str()]).collect::<Vec<_>>().join(" | ")
}

/// A run that generated C has to reproduce.
struct RunInC {
    at: String,
    program: Program,
    sample: Sample,
    outputs: Vec<String>,
}

/// What the driver of C programs sends to a program for these inputs.
fn sample(program: &Program, inputs: &str) -> Sample {
    let mut script = Inputs::default();
    for input in inputs.split(" | ").filter(|input| !input.is_empty()) {
        let (name, message) = input.split_once(' ').unwrap_or((input, ""));
        let channel = program.channels.iter().find(|channel| channel.name == name).expect("a channel");
        let message = parse_message(program, &channel.payload, message).expect("a message");
        match script.inputs.iter_mut().find(|(known, _)| known == name) {
            Some((_, messages)) => messages.push(message),
            None => script.inputs.push((name.to_string(), vec![message])),
        }
    }
    Sample { seed: 0, source: String::new(), files: Vec::new(), script, outcome: SampleOutcome::Open }
}

/// Checks a run before and after the transformation by the interpreter and as machine code; returns its line, and the
/// runs that are to be checked as C.
fn check_run(case: &Case, run: &str, after: &Program) -> (String, Vec<RunInC>) {
    let inputs = run.split("=>").next().unwrap_or_default().trim();
    let before = case.program();
    let expected = observe(case, &before, inputs, None);
    let mut runs_in_c = Vec::new();
    let is_changed = print(&before) != print(after);
    for (which, program) in [("before", &before), ("after", after)].into_iter().take(1 + usize::from(is_changed)) {
        let at = format!("{}: {which} the pass, run: {inputs}", case.path.display());
        assert_eq!(observe(case, program, inputs, None), expected, "{at}: interpreter");
        if let Ok(code) = MachineCode::compile(program, case.checks(), DebugInfo::None) {
            assert_eq!(observe(case, program, inputs, Some(code)), expected, "{at}: machine code");
        }
        // The driver of C programs is for those without checks that end or wait.
        if !case.is_checked() && !expected.contains("fault") && !expected.contains("runs forever") {
            let mut outputs: Vec<String> = expected.split(" | ").map(str::to_string).collect();
            outputs.pop();
            runs_in_c.push(RunInC { at, program: program.clone(), sample: sample(program, inputs), outputs });
        }
    }
    (format!("run: {inputs} => {expected}"), runs_in_c)
}

/// Checks runs as C, where there is a compiler.
fn check_in_c(runs: &[RunInC]) {
    let Some(compiler) = tool(&["gcc", "cc", "clang"]) else { return };
    let compiler = Compiler::native(compiler, &["-O0", "-w"]);
    for chunk in runs.chunks(PROGRAMS_PER_FILE) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let programs: Vec<(&Sample, &Program)> = chunk.iter().map(|run| (&run.sample, &run.program)).collect();
        let results = run_in_c(&compiler, folder.path(), &programs).unwrap_or_else(|error| panic!("{error}"));
        for (RunInC { at, program, outputs, .. }, result) in chunk.iter().zip(results) {
            let ran = result.unwrap_or_else(|error| panic!("{at}: C: {error}"));
            let text = |(channel, message): &(ChannelId, Vec<_>)| {
                let channel = &program.channels[channel.0 as usize];
                format!("{} {}", channel.name, print_message(program, &channel.payload, message))
            };
            assert_eq!(ran.messages.iter().map(text).collect::<Vec<_>>(), *outputs, "{at}: C");
        }
    }
}

fn cases() -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable entry").path()).collect();
        paths.sort();
        paths
    };
    entries(&folder).iter().flat_map(|folder| entries(folder)).map(Case::open).collect()
}

#[test]
fn transformations_have_the_expected_result_and_preserve_every_run() {
    let is_update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut runs_in_c = Vec::new();
    for case in cases() {
        let (after, text) = case.transform();
        let mut directives = Vec::new();
        for directive in &case.directives {
            match directive.strip_prefix("run:") {
                Some(run) => {
                    let (line, runs) = check_run(&case, run, &after);
                    directives.push(line);
                    runs_in_c.extend(runs);
                }
                None => directives.push(directive.clone()),
            }
        }
        if is_update {
            std::fs::write(&case.path, case.text(&directives, &text)).expect("a writable file");
        } else {
            assert_eq!(directives, case.directives, "{}", case.path.display());
            assert_eq!(text, case.after, "{}", case.path.display());
        }
    }
    check_in_c(&runs_in_c);
}

#[test]
fn every_transformation_and_every_refusal_has_a_case() {
    let cases = cases();
    let folder =
        |case: &Case| case.path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().to_string());
    for case in &cases {
        assert_eq!(case.directive("pass").map(str::to_string), folder(case), "{}", case.path.display());
    }
    let passes: BTreeSet<&str> = cases.iter().filter_map(|case| case.directive("pass")).collect();
    for pass in PASSES.iter().map(|(name, _)| *name).chain(TRANSFORMATIONS) {
        assert!(passes.contains(pass), "no file for `{pass}`");
    }
    let missing: Vec<String> = REFUSALS
        .iter()
        .flat_map(|(pass, refusals)| refusals.iter().map(move |refusal| (*pass, *refusal)))
        .filter(|(pass, refusal)| {
            let mut of_pass = cases.iter().filter(|case| case.directive("pass") == Some(*pass));
            !of_pass.any(|case| case.after.contains(refusal))
        })
        .map(|(pass, refusal)| format!("{pass}: {refusal}"))
        .collect();
    assert!(missing.is_empty(), "no file for these refusals: {missing:#?}");
}

/// By transformation: a part of the text of each refusal, in the order in which the sources define them.
const REFUSALS: [(&str, &[&str]); 4] = [
    (
        "fuse",
        &[
            "processes outside of the group use channel",
            "has a guard that reads `free`",
            "has a choice of several within an operation",
            "has an object made for a message that may not match",
            "has a `pri alt` that waits for the environment together with other members",
            "more than 1 instance",
            "more than 2 states",
            "more than 3 instructions",
            "the fused code would be much larger than the separate processes",
            "there are too many combinations of states to analyse",
            "might never run again while the others go on",
            "no channel leads to another process",
        ],
    ),
    (
        "fuse-if-schedule-independent",
        &[
            "acts on the environment, as another process does,",
            "has several instances that act on the environment",
            "may fault, as an assertion may fail, while another process acts on the environment or may fault",
            "may fault, as a slice is not proved to be in bounds, while",
            "frees objects by hand",
            "allocates from a pool of which other processes may hold objects",
            "uses a channel that others use in the same direction",
            "tests `free`",
            "has an `else` at",
            "has an `after` at",
            "has a guard that reads `free`",
            "takes whichever comes first at",
        ],
    ),
    (
        "fast-paths",
        &[
            "has a start that is never reached",
            "has a `pri alt` at its start",
            "has an `after` at its start",
            "has a guard that reads `free` at its start",
            "has a `follows` that is too long",
            "has an exit that is never reached",
            "has several variables of one name at its start or exit",
            "has a value at its exit that cannot be passed to C",
            "more than 1 state",
            "more than 0 instructions",
            "more than 32 fast paths",
            "there are too many combinations of states to analyse",
            "has been fused with others already",
            "it is the C function",
            "observes by `pri alt` or `else`",
            "the order in which processes run can be seen there",
        ],
    ),
    (
        "unroll",
        &[
            "a loop has a fast path",
            "a loop has an inner loop whose execution depends on the data",
            "a loop has fewer elements than an unrolled version",
            "a loop has a literal indexed by a variable",
            "a loop has a length that changes",
            "a loop has a store",
            "a loop has a literal",
            "a loop has a division",
            "a loop has a load",
            "a loop has a load of what it stores",
            "a loop has an index that may be out of range",
            "a loop has a branch that is never taken",
            "a loop has several inner fill loops",
            "a loop has an inner fill loop without a wide equivalent",
            "a loop has a boxed object",
            "a loop has a call",
            "a loop has a label",
            "a loop has an operation on aggregates",
            "no loop reads consecutive elements",
            "the constants of a loop do not recur within few iterations",
            "it would be more than",
            "overflow is checked at each operation",
        ],
    ),
];
