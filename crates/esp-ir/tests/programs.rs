//! Runs each program of `programs/` (text form of the IR, or ESP) and compares what happens with the file beside it: the
//! choices of the reference schedule, messages, and the outcome. Comments such as `; offer c 1`, `; later c 1` (when all rests),
//! `; close c` (after its messages), `; accept c 2` (no more than these), `; extern f 1` (what a call returns),
//! `; checked`, `; confluent` (every schedule sends and ends alike) in the program say what the world does.
//!
//! Each program is also verified, printed and read back; each trace is replayed; each is run under random schedules.
//! `UPDATE_EXPECT=1` writes the expected files.

use quaject_esp_ir::datum::{Datum, parse_message, print_message};

use quaject_esp_ir::interpreter::Interpreter;
use quaject_esp_ir::ir::{ChannelId, ExternId, Mutability, Program};
use quaject_esp_ir::lower::lower;
use quaject_esp_ir::replay::{RandomScheduler, replay};
use quaject_esp_ir::report::Outcome;
use quaject_esp_ir::world::{Offer, Readiness, Reply, World};
use quaject_esp_ir::{read::read, step::Checks, step::Step, text::print, verify::verify};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A world that follows a script and keeps a log.
#[derive(Clone)]
struct Script<'p> {
    program: &'p Program,
    offers: Vec<VecDeque<Vec<Datum>>>,
    closing: Vec<bool>,
    later: VecDeque<(ChannelId, Vec<Datum>)>,
    accepts: Vec<u32>,
    externs: Vec<Option<i128>>,
    checks: Checks,
    confluent: bool,
    now_ns: i64,
    log: Vec<String>,
}

impl<'p> Script<'p> {
    fn new(program: &'p Program, text: &str) -> Script<'p> {
        let channels = program.channels.len();
        let mut script = Script {
            program,
            offers: vec![VecDeque::new(); channels],
            closing: vec![false; channels],
            later: VecDeque::new(),
            accepts: vec![u32::MAX; channels],
            externs: vec![None; program.externs.len()],
            checks: Checks::Off,
            confluent: false,
            now_ns: 0,
            log: Vec::new(),
        };
        for line in text.lines().filter_map(|line| line.strip_prefix("; ").or(line.strip_prefix("// "))) {
            let (command, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
            let channel = || program.channels.iter().position(|channel| channel.name == name).expect(line);
            let message = |channel: usize| {
                parse_message(program, &program.channels[channel].payload, rest)
                    .unwrap_or_else(|e| panic!("{line}: {e}"))
            };
            match command {
                "offer" => script.offers[channel()].push_back(message(channel())),
                "later" => script.later.push_back((ChannelId(channel() as u32), message(channel()))),
                "close" => script.closing[channel()] = true,
                "accept" => script.accepts[channel()] = rest.parse().expect(line),
                "extern" => {
                    let function = program.externs.iter().position(|function| function.name == name).expect(line);
                    script.externs[function] = Some(rest.parse().expect(line));
                }
                "checked" => script.checks = Checks::On,
                "confluent" => script.confluent = true,
                _ => {}
            }
        }
        script
    }
}

impl World for Script<'_> {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        match self.offers[channel.0 as usize].front() {
            Some(message) => Offer::Message(message),
            None if self.later.iter().any(|(later, _)| *later == channel) => Offer::Pending,
            None if self.closing[channel.0 as usize] => Offer::Closed,
            None => Offer::Pending,
        }
    }

    fn take(&mut self, channel: ChannelId) {
        let message = self.offers[channel.0 as usize].pop_front().expect("a message is taken after it was seen");
        let channel = &self.program.channels[channel.0 as usize];
        self.log.push(format!("< {} {}", channel.name, print_message(self.program, &channel.payload, &message)));
    }

    fn readiness(&mut self, channel: ChannelId) -> Readiness {
        match self.accepts[channel.0 as usize] {
            0 if self.closing[channel.0 as usize] => Readiness::Closed,
            0 => Readiness::Busy,
            _ => Readiness::Ready,
        }
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        let left = &mut self.accepts[channel.0 as usize];
        assert!(*left > 0, "a message is put where the world is not ready");
        *left = left.saturating_sub(u32::from(*left < u32::MAX));
        let channel = &self.program.channels[channel.0 as usize];
        self.log.push(format!("> {} {}", channel.name, print_message(self.program, &channel.payload, message)));
    }

    fn now_ns(&mut self) -> i64 {
        self.now_ns
    }

    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply {
        let declared = &self.program.externs[function.0 as usize];
        let Some(result) = self.externs[function.0 as usize] else { return Reply::Unresolved };
        let types: Vec<_> = declared.parameters.iter().map(|(ty, _)| *ty).collect();
        let text = print_message(self.program, &types, arguments);
        if declared.purity == quaject_esp_ir::ir::Purity::Impure {
            self.log.push(format!("! {} {text}", declared.name));
        }
        for ((_, mutability), argument) in declared.parameters.iter().zip(arguments) {
            if let (Mutability::Mutable, Datum::Bytes(bytes)) = (mutability, argument) {
                bytes.reverse();
            }
        }
        Reply::Returned(declared.result.map(|_| Datum::Int(result)))
    }
}

const BUDGET: u64 = 100_000;

/// Lets the world act where a program rests: the next message of the script, else the clock.
fn act(world: &mut Script<'_>, outcome: &Outcome) -> bool {
    let Outcome::Resting(resting) = outcome else { return false };
    if let Some((channel, message)) = world.later.pop_front() {
        world.offers[channel.0 as usize].push_back(message);
        return true;
    }
    match resting.deadline_ns {
        Some(deadline_ns) => {
            assert!(deadline_ns > world.now_ns, "a time that has passed is waited for");
            world.now_ns = deadline_ns;
            world.log.push(format!("time {deadline_ns}"));
            world.log.len() < 200
        }
        None => false,
    }
}

/// The log with the order kept on each channel only.
fn by_channel(log: &[String]) -> Vec<&str> {
    let mut log: Vec<&str> = log.iter().map(String::as_str).collect();
    log.sort_by_key(|line| line.split(' ').take(2).collect::<Vec<_>>());
    log
}

fn outcome_text(program: &Program, outcome: &Outcome) -> String {
    let names = |channels: &[ChannelId]| {
        channels.iter().map(|id| format!(" {}", program.channels[id.0 as usize].name)).collect::<String>()
    };
    match outcome {
        Outcome::Budget => "budget used up".to_string(),
        Outcome::Ended(status) => format!("ended with {status}"),
        Outcome::Faulted(report) => report.text(program),
        Outcome::Resting(resting) => {
            let time = resting.deadline_ns.map(|time| format!(" until {time}")).unwrap_or_default();
            format!("resting{time}; reading{}; writing{}", names(&resting.readable), names(&resting.writable))
        }
    }
}

/// Runs to the end, the world acting at rest; the trace gets a line for what is visible too.
fn run_reference<'p>(program: &'p Program, text: &str) -> (Vec<Step>, Script<'p>, Outcome, String) {
    let mut world = Script::new(program, text);
    let mut interpreter = Interpreter::new(program, world.checks).expect("test programs are small");
    interpreter.record();
    let (mut trace, mut transcript, mut logged) = (Vec::new(), String::new(), 0);
    loop {
        let outcome = interpreter.run(&mut world, 1);
        for step in interpreter.take_trace() {
            writeln!(transcript, "{step}").unwrap();
            trace.push(step);
        }
        let acted = act(&mut world, &outcome);
        for line in &world.log[logged..] {
            writeln!(transcript, "{line}").unwrap();
        }
        logged = world.log.len();
        let over = interpreter.executed() > BUDGET || trace.len() > 2000;
        if !acted && (outcome != Outcome::Budget || over) {
            return (trace, world, outcome, transcript);
        }
    }
}

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("{path} is not imported by any of these programs"))
    }
}

fn compile(path: &Path, text: &str) -> Program {
    let name = path.file_name().expect("a file").to_string_lossy().to_string();
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new(name, text));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let messages: Vec<_> = analysis.diagnostics.iter().map(|diagnostic| &diagnostic.message).collect();
    let Some(program) = analysis.program else { panic!("{}: {messages:#?}", path.display()) };
    lower(&program, &sources)
}

fn check_file(path: &Path) {
    let text = std::fs::read_to_string(path).expect("a readable program");
    let name = path.display();
    let program = match path.extension() {
        Some(extension) if extension == "esp" => compile(path, &text),
        Some(_) | None => read(&text).unwrap_or_else(|error| panic!("{name}:{error}")),
    };
    let printed = print(&program);
    let again = read(&printed).unwrap_or_else(|error| panic!("{name}: printed: {error}\n{printed}"));
    assert_eq!(print(&again), printed, "{name}: printing and reading changes the program");
    let errors: Vec<String> = verify(&program).iter().map(|error| error.text(&program)).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");

    let (trace, after, outcome, transcript) = run_reference(&program, &text);
    let log = after.log;
    let expected = format!("{transcript}{}\n", outcome_text(&program, &outcome));
    expect_test::expect_file![path.with_extension("out")].assert_eq(&expected);

    // A run in one piece makes the same choices as one in the smallest pieces.
    let mut world = Script::new(&program, &text);
    let checks = world.checks;
    let mut interpreter = Interpreter::new(&program, checks).expect("test programs are small");
    interpreter.record();
    let whole = loop {
        let outcome = interpreter.run(&mut world, BUDGET);
        if !act(&mut world, &outcome) {
            break outcome;
        }
    };
    if whole != Outcome::Budget && outcome != Outcome::Budget {
        assert_eq!((interpreter.take_trace(), &whole), (trace.clone(), &outcome), "{name}: in one piece");
        // What the schedule did, the semantics allows.
        let mut world = Script::new(&program, &text);
        let (offered, unused) = (world.later.len() - after.later.len(), after.later);
        for (channel, message) in world.later.drain(..offered) {
            world.offers[channel.0 as usize].push_back(message);
        }
        assert_eq!(world.later, unused);
        let replayed = replay(&program, checks, &trace, &mut world).expect("test programs are small");
        let replayed = replayed.unwrap_or_else(|error| panic!("{name}: {error}"));
        world.log.retain(|line| !line.starts_with("time"));
        let visible: Vec<_> = log.iter().filter(|line| !line.starts_with("time")).cloned().collect();
        assert_eq!(world.log, visible, "{name}: replay");
        assert_eq!(outcome_text(&program, &replayed), outcome_text(&program, &outcome), "{name}: replay");
    }
    for seed in 0..30 {
        let mut world = Script::new(&program, &text);
        let mut random = RandomScheduler::new(&program, checks, seed).expect("test programs are small");
        let by_chance = loop {
            let outcome = random.run(&mut world, 3000);
            if !act(&mut world, &outcome) {
                break outcome;
            }
        };
        if world.confluent {
            assert_eq!(outcome_text(&program, &by_chance), outcome_text(&program, &outcome), "{name}: seed {seed}");
            assert_eq!(by_channel(&world.log), by_channel(&log), "{name}: seed {seed}");
        }
    }
}

#[test]
fn programs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let entries = std::fs::read_dir(&directory).expect("the programs are there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ir" || extension == "esp"));
    paths.sort();
    paths.iter().for_each(|path| check_file(path));
    assert!(paths.len() >= 60, "{} programs", paths.len());
}

/// While others are always ready, an event outside is seen within 64 turns.
#[test]
fn the_world_is_looked_at_every_64_turns() {
    let text = "channel c(int) external out; process a { while { yield; } } process b { in(c, $x); exit(x); }";
    let program = compile(Path::new("poll.esp"), text);
    for turns_before in [0, 1, 2, 63, 64, 65, 200] {
        let mut world = Script::new(&program, "");
        let mut interpreter = Interpreter::new(&program, Checks::Off).expect("test programs are small");
        interpreter.record();
        let mut turns = 0;
        while turns < turns_before + 2 {
            assert_eq!(interpreter.run(&mut world, 1), Outcome::Budget);
            turns += interpreter.take_trace().len();
        }
        world.offers[0].push_back(vec![Datum::Int(7)]);
        assert_eq!(interpreter.run(&mut world, 10_000), Outcome::Ended(7));
        let waited =
            interpreter.take_trace().iter().position(|step| *step == Step::FromWorld { instance: 1, branch: 0 });
        assert!(waited.is_some_and(|turns| turns <= 64), "{turns_before}: {waited:?}");
    }
}

/// Whether the program is in the same state after either world has had its say.
fn is_same_state(text: &str, worlds: [&str; 2]) -> bool {
    let program = compile(Path::new("state.esp"), text);
    let [first, second] = worlds.map(|script| {
        let mut world = Script::new(&program, script);
        let mut interpreter = Interpreter::new(&program, Checks::Off).expect("test programs are small");
        assert!(matches!(interpreter.run(&mut world, BUDGET), Outcome::Resting(_)), "{script}");
        interpreter.state().clone()
    });
    first == second
}

/// States do not differ by registers and slots that nobody will read.
#[test]
fn states_forget_what_no_longer_matters() {
    let declarations = "channel c(int) external out; channel d(int) external in; channel b(bytes[<=4]) external out;";
    let check = |process: &str, worlds, same| {
        assert_eq!(is_same_state(&format!("{declarations} {process}"), worlds), same, "{process}");
    };
    let ints = ["// offer c 1\n// offer c 2", "// offer c 7"];
    check("process p { while { in(c, $x); out(d, x * 3 + 1); } }", ints, true);
    check("process p { while { in(c, $x); if (x > 1) { yield; out(d, x); } } }", ints, true);
    check("process p { while { in(b, $s); out(d, s.len); } }", ["// offer b \"ab\"", "// offer b \"cd\""], true);
    check("process p { var last = 0; while { in(c, $x); out(d, last); last = x; } }", ints, false);
    check("process p { var sum = 0; while { in(c, $x); sum = sum + 1; out(d, sum); } }", ints, false);
}
