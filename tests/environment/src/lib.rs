//! An environment for tests that follows a script in the comments of the program, and logs the visible actions. Its
//! commands are `; offer c 1`, `; later c 1` (at quiescence), `; close c` (after the messages of c), `; accept c 2` (at
//! most this many), `; extern f 1` (the result of a call), `; checked`, `; confluent` (every schedule sends and ends
//! alike). In ESP the comments begin with `//`.

use quaject_esp_exec::datum::{Datum, parse_message, print_message};
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{ChannelId, ExternId, Mutability, Program, Purity};
use quaject_esp_lower::lower;
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use std::collections::VecDeque;
use std::path::Path;

/// An environment that follows a script and keeps a log.
#[derive(Clone)]
pub struct Script<'p> {
    /// The program.
    pub program: &'p Program,
    /// Per channel: messages on offer.
    pub offers: Vec<VecDeque<Vec<Datum>>>,
    /// Per channel: whether it closes after its messages.
    pub closing: Vec<bool>,
    /// Messages that are offered at quiescence.
    pub later: VecDeque<(ChannelId, Vec<Datum>)>,
    /// Per channel: the number of messages that are accepted.
    pub accepts: Vec<u32>,
    /// Per function: its result; it reverses the bytes it may write. None for an unresolved function.
    pub externs: Vec<Option<i128>>,
    /// Whether overflow faults.
    pub checks: Checks,
    /// Whether every schedule sends and ends alike.
    pub confluent: bool,
    /// The time.
    pub now_ns: i64,
    /// The visible actions, in order.
    pub log: Vec<String>,
}

impl<'p> Script<'p> {
    /// The environment that the comments of this text describe.
    pub fn new(program: &'p Program, text: &str) -> Script<'p> {
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

impl Environment for Script<'_> {
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
        assert!(*left > 0, "a message is put where the environment is not ready");
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
        if declared.purity == Purity::Impure {
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

/// Lets the environment act at quiescence: the next message of the script, else the clock.
pub fn act(environment: &mut Script<'_>, outcome: &Outcome) -> bool {
    let Outcome::Quiescent(awaited) = outcome else { return false };
    if let Some((channel, message)) = environment.later.pop_front() {
        environment.offers[channel.0 as usize].push_back(message);
        return true;
    }
    match awaited.deadline_ns {
        Some(deadline_ns) => {
            assert!(deadline_ns > environment.now_ns, "the program waits for a time that has passed");
            environment.now_ns = deadline_ns;
            environment.log.push(format!("time {deadline_ns}"));
            environment.log.len() < 200
        }
        None => false,
    }
}

/// The log with the order kept on each channel only.
pub fn by_channel(log: &[String]) -> Vec<&str> {
    let mut log: Vec<&str> = log.iter().map(String::as_str).collect();
    log.sort_by_key(|line| line.split(' ').take(2).collect::<Vec<_>>());
    log
}

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("{path} is not imported by any of these programs"))
    }
}

/// Compiles a program without imports.
pub fn compile(path: &Path, text: &str) -> Program {
    let name = path.file_name().expect("a file").to_string_lossy().to_string();
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new(name, text));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let messages: Vec<_> = analysis.diagnostics.iter().map(|diagnostic| &diagnostic.message).collect();
    let Some(program) = analysis.program else { panic!("{}: {messages:#?}", path.display()) };
    lower(&program, &sources)
}
