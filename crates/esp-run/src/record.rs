//! Recordings of runs: the answers of the environment to all queries, each with the number of the query, and the
//! messages sent. A run of the interpreter is a function of the answers, so that a replay needs no files, clock or C
//! code; it compares the messages.
//!
//! ```text
//!   quaject recording 1
//!   file "count.esp" "channel c: int external in; .."    the program, file by file, the first one being the root
//!   option seed 7
//!   run
//!   4 in numbersC 3                 query 4 found this message on offer
//!   9 close numbersC                query 9 found the channel closed
//!   12 out sumC 3                   query 12 was the program sending this
//!   15 busy sumC                    the environment does not take a message; `ready`: it does again
//!   17 time 1200345                 nanoseconds
//!   18 call translate 0             result and changed arguments of an extern function; `!unresolved` if there is
//!                                   none, `!malformed` if what it left is no value of its type
//!   20 end exit 0                   how it ended
//! ```
//!
//! Knows the queries, not the engine that makes them.

use crate::error::{HostCode, HostError};
use quaject_esp_exec::datum::{self, Datum};
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{ChannelId, ExternId, Mutability, Program, TypeId};
use quaject_esp_ir::text::print_bytes;
use std::collections::VecDeque;
use std::io::Write;

const FIRST_LINE: &str = "quaject recording 1";

// The outcomes of an extern function other than values. No value begins with a `!`.
const UNRESOLVED: &str = "!unresolved";
const MALFORMED: &str = "!malformed";

/// The run a recording was made of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// Name and text of every source file, the root first.
    pub files: Vec<(String, String)>,
    /// The scheduler's seed, if it was random.
    pub seed: Option<u64>,
    /// Whether overflow was a fault.
    pub checks: Checks,
}

/// The last answer of a channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Answer {
    Pending,
    Offered,
    Closed,
    Ready,
    Busy,
}

/// An environment that records the answers of another one.
pub(crate) struct Recorder<'a, W> {
    inner: &'a mut W,
    program: &'a Program,
    to: &'a mut dyn Write,
    query: u64,
    answers: Vec<Option<Answer>>,
    time_ns: Option<i64>,
    failed: Option<std::io::Error>,
}

impl<'a, W: Environment> Recorder<'a, W> {
    /// Begins a recording.
    pub(crate) fn begin(inner: &'a mut W, program: &'a Program, header: &Header, to: &'a mut dyn Write) -> Self {
        let mut recorder = Recorder {
            inner,
            program,
            to,
            query: 0,
            answers: vec![None; program.channels.len()],
            time_ns: None,
            failed: None,
        };
        recorder.line(FIRST_LINE);
        for (name, text) in &header.files {
            let mut line = "file ".to_string();
            print_bytes(name.as_bytes(), &mut line);
            line.push(' ');
            print_bytes(text.as_bytes(), &mut line);
            recorder.line(&line);
        }
        if let Some(seed) = header.seed {
            recorder.line(&format!("option seed {seed}"));
        }
        match header.checks {
            Checks::On => recorder.line("option checked"),
            Checks::Off => {}
        }
        recorder.line("run");
        recorder
    }

    /// The environment that is recorded.
    pub(crate) fn inner(&mut self) -> &mut W {
        self.inner
    }

    /// Ends the recording with the outcome of the run.
    pub(crate) fn end(mut self, ending: &str) -> Result<(), HostError> {
        self.event(&format!("end {ending}"));
        match self.failed {
            None => Ok(()),
            Some(error) => Err(HostError::file("write", "the recording", &error)),
        }
    }

    fn line(&mut self, line: &str) {
        if self.failed.is_none()
            && let Err(error) = writeln!(self.to, "{line}")
        {
            self.failed = Some(error);
        }
    }

    fn event(&mut self, event: &str) {
        self.line(&format!("{} {event}", self.query));
    }

    fn name(&self, channel: ChannelId) -> &'a str {
        &self.program.channels[channel.0 as usize].name
    }

    fn message(&self, channel: ChannelId, message: &[Datum]) -> String {
        datum::print_message(self.program, &self.program.channels[channel.0 as usize].payload, message)
    }
}

impl<W: Environment> Environment for Recorder<'_, W> {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        self.query += 1;
        let (answer, event) = match self.inner.peek(channel) {
            Offer::Message(message) => {
                let new = self.answers[channel.0 as usize] != Some(Answer::Offered);
                let program = self.program;
                let channel = &program.channels[channel.0 as usize];
                let text =
                    || format!("in {} {}", channel.name, datum::print_message(program, &channel.payload, message));
                (Answer::Offered, new.then(text))
            }
            Offer::Pending => (Answer::Pending, None),
            Offer::Closed => {
                let new = self.answers[channel.0 as usize] != Some(Answer::Closed);
                (Answer::Closed, new.then(|| format!("close {}", self.name(channel))))
            }
        };
        self.answers[channel.0 as usize] = Some(answer);
        if let Some(event) = event {
            self.event(&event);
        }
        self.inner.peek(channel)
    }

    fn take(&mut self, channel: ChannelId) {
        self.query += 1;
        self.answers[channel.0 as usize] = Some(Answer::Pending);
        self.inner.take(channel);
    }

    fn readiness(&mut self, channel: ChannelId) -> Readiness {
        self.query += 1;
        let readiness = self.inner.readiness(channel);
        let (answer, word) = match readiness {
            Readiness::Ready => (Answer::Ready, "ready"),
            Readiness::Busy => (Answer::Busy, "busy"),
            Readiness::Closed => (Answer::Closed, "close"),
        };
        // Readers are ready unless something else is written.
        if self.answers[channel.0 as usize].unwrap_or(Answer::Ready) != answer {
            self.event(&format!("{word} {}", self.name(channel)));
        }
        self.answers[channel.0 as usize] = Some(answer);
        readiness
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        self.query += 1;
        self.event(&format!("out {} {}", self.name(channel), self.message(channel, message)));
        self.inner.put(channel, message);
    }

    fn now_ns(&mut self) -> i64 {
        self.query += 1;
        let now_ns = self.inner.now_ns();
        if self.time_ns != Some(now_ns) {
            self.event(&format!("time {now_ns}"));
            self.time_ns = Some(now_ns);
        }
        now_ns
    }

    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply {
        self.query += 1;
        let reply = self.inner.call(function, arguments);
        let name = &self.program.externs[function.0 as usize].name;
        match &reply {
            Reply::Unresolved => self.event(&format!("call {name} {UNRESOLVED}")),
            Reply::Malformed => self.event(&format!("call {name} {MALFORMED}")),
            Reply::Returned(result) => {
                let mut values: Vec<Datum> = result.iter().cloned().collect();
                let extern_ = &self.program.externs[function.0 as usize];
                for ((_, mutability), argument) in extern_.parameters.iter().zip(arguments.iter()) {
                    match mutability {
                        Mutability::Mutable => values.push(argument.clone()),
                        Mutability::Immutable => {}
                    }
                }
                let text = datum::print_message(self.program, &reply_types(self.program, function), &values);
                self.event(&format!("call {name} {text}"));
            }
        }
        reply
    }
}

/// Types of the values that an extern function returns: its result, then its mutable parameters.
fn reply_types(program: &Program, function: ExternId) -> Vec<TypeId> {
    let extern_ = &program.externs[function.0 as usize];
    let changed = extern_.parameters.iter().filter_map(|(ty, mutability)| match mutability {
        Mutability::Mutable => Some(*ty),
        Mutability::Immutable => None,
    });
    extern_.result.into_iter().chain(changed).collect()
}

/// A recording that has been read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recording {
    /// The run it was made of.
    pub header: Header,
    events: Vec<Event>,
}

/// One line after `run`.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Event {
    line: usize,
    query: u64,
    text: String,
}

impl Recording {
    /// Reads a recording; `name` is its name in messages.
    pub fn parse(name: &str, text: &str) -> Result<Recording, HostError> {
        let wrong = |line: usize, cause: &str| {
            HostError::new(HostCode::Content, format!("{name}:{line}: {cause}"))
                .help("recordings are made by `qj run --record FILE`; make this one again")
        };
        let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
        match lines.next() {
            Some((_, FIRST_LINE)) => {}
            Some(_) | None => return Err(wrong(1, &format!("a recording begins with `{FIRST_LINE}`"))),
        }
        let mut header = Header::default();
        let mut last = 1;
        loop {
            let Some((number, line)) = lines.next() else {
                return Err(wrong(last, "the recording ends before `run`"));
            };
            last = number;
            if line == "run" {
                break;
            }
            if let Some(file) = line.strip_prefix("file ") {
                let file = parse_file(file).ok_or_else(|| wrong(number, "a file is its name and its text"))?;
                header.files.push(file);
            } else if line == "option checked" {
                header.checks = Checks::On;
            } else if let Some(seed) = line.strip_prefix("option seed ") {
                header.seed = Some(seed.parse().map_err(|_| wrong(number, "a seed is a number"))?);
            } else {
                return Err(wrong(number, "neither `file`, `option` nor `run`"));
            }
        }
        if header.files.is_empty() {
            return Err(wrong(last, "the recording holds no program"));
        }
        let mut events = Vec::new();
        for (number, line) in lines {
            let event = line.split_once(' ').and_then(|(query, text)| {
                let query = query.parse().ok().filter(|query| *query <= MAX_QUERIES)?;
                Some(Event { line: number, query, text: text.to_string() })
            });
            events.push(event.ok_or_else(|| wrong(number, "an event is a number and what happened"))?);
            last = number;
        }
        match events.last() {
            Some(event) if event.text.starts_with("end ") => Ok(Recording { header, events }),
            Some(_) | None => Err(wrong(last, "the recording was cut off: it does not say how the run ended")),
        }
    }
}

/// Two byte strings.
fn parse_file(text: &str) -> Option<(String, String)> {
    let (name, rest) = datum::parse_string(text)?;
    let (text, rest) = datum::parse_string(rest.strip_prefix(' ')?)?;
    rest.is_empty().then_some((name, text))
}

/// The maximum number of queries: at a billion per second, a run would take a century to exceed it.
const MAX_QUERIES: u64 = 1 << 62;

/// An environment that answers as the recorded one did.
pub(crate) struct Replayer<'a> {
    program: &'a Program,
    events: VecDeque<Event>,
    query: u64,
    answers: Vec<Option<Answer>>,
    messages: Vec<Vec<Datum>>,
    time_ns: i64,
    /// Receives every message sent, as a line `channel message`.
    observer: &'a mut dyn Write,
    /// The numbers of queries, and of remaining events, at the last sleep.
    asleep_at: Option<(u64, usize)>,
    difference: Option<HostError>,
}

impl<'a> Replayer<'a> {
    pub(crate) fn new(program: &'a Program, recording: Recording, observer: &'a mut dyn Write) -> Replayer<'a> {
        Replayer {
            program,
            events: recording.events.into(),
            query: 0,
            answers: vec![None; program.channels.len()],
            messages: vec![Vec::new(); program.channels.len()],
            time_ns: 0,
            observer,
            asleep_at: None,
            difference: None,
        }
    }

    /// The first difference between this run and the recorded one.
    pub(crate) fn take_difference(&mut self) -> Option<HostError> {
        self.difference.take()
    }

    /// Whether the recorded run was stopped by a signal at this point.
    pub(crate) fn was_stopped(&self) -> bool {
        self.events.front().is_some_and(|event| event.query <= self.query && event.text == "end stopped")
    }

    /// The program sleeps. If no event was replayed since its last sleep, the recorded run had spurious wake-ups, after
    /// each of which it made the same queries: these are skipped. A run that made no queries would sleep forever, which
    /// is a difference.
    pub(crate) fn note_sleep(&mut self) {
        if let (Some((query, events)), Some(next)) = (self.asleep_at, self.events.front())
            && events == self.events.len()
        {
            let gap = next.query.saturating_sub(self.query);
            match self.query - query {
                0 => self.differ(&format!("`{}` did not happen", next.text.clone()), next.line),
                asked => self.query += gap / asked * asked,
            }
        }
        self.asleep_at = Some((self.query, self.events.len()));
    }

    /// The recorded end; a difference if there are other events before it.
    pub(crate) fn expect_end(&mut self) -> String {
        let Some(event) = self.events.front().cloned() else { return String::new() };
        match event.text.strip_prefix("end ") {
            Some(ending) => ending.to_string(),
            None => {
                self.differ(&format!("the run has ended, but in the recording `{}` follows", event.text), event.line);
                String::new()
            }
        }
    }

    fn differ(&mut self, what: &str, line: usize) {
        self.difference.get_or_insert_with(|| {
            HostError::new(HostCode::Replay, format!("the replay differs at line {line} of the recording: {what}"))
                .help("was it made by another version of qj, or changed since?")
        });
    }

    /// The next event if it answers the current query.
    fn event(&mut self) -> Option<Event> {
        let event = self.events.front()?;
        if event.query < self.query {
            let (text, line) = (event.text.clone(), event.line);
            self.differ(&format!("`{text}` did not happen"), line);
            return None;
        }
        if event.query > self.query || event.text.starts_with("end ") {
            return None;
        }
        self.events.pop_front()
    }

    /// The parts of an event of a channel; any other event is a difference.
    fn about<'t>(&mut self, event: &'t Event, words: &[&str], name: &str) -> Option<(&'t str, &'t str)> {
        let (word, rest) = event.text.split_once(' ').unwrap_or((&event.text, ""));
        let (subject, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        if words.contains(&word) && subject == name {
            return Some((word, rest));
        }
        self.differ(&format!("the program asks about `{name}`, the recording tells `{}`", event.text), event.line);
        None
    }
}

impl Environment for Replayer<'_> {
    fn peek(&mut self, channel: ChannelId) -> Offer<'_> {
        self.query += 1;
        let index = channel.0 as usize;
        let program = self.program;
        if let Some(event) = self.event() {
            let declared = &program.channels[index];
            match self.about(&event, &["in", "close"], &declared.name) {
                Some(("in", message)) => match datum::parse_message(program, &declared.payload, message) {
                    Ok(message) => {
                        self.messages[index] = message;
                        self.answers[index] = Some(Answer::Offered);
                    }
                    Err(error) => self.differ(&format!("`{message}`: {error}"), event.line),
                },
                Some(_) => self.answers[index] = Some(Answer::Closed),
                None => {}
            }
        }
        match self.answers[index] {
            Some(Answer::Offered) => Offer::Message(&self.messages[index]),
            Some(Answer::Closed) => Offer::Closed,
            Some(Answer::Pending | Answer::Ready | Answer::Busy) | None => Offer::Pending,
        }
    }

    fn take(&mut self, channel: ChannelId) {
        self.query += 1;
        self.answers[channel.0 as usize] = Some(Answer::Pending);
    }

    fn readiness(&mut self, channel: ChannelId) -> Readiness {
        self.query += 1;
        let index = channel.0 as usize;
        if let Some(event) = self.event() {
            let answer = match self.about(&event, &["ready", "busy", "close"], &self.program.channels[index].name) {
                Some(("ready", _)) => Some(Answer::Ready),
                Some(("busy", _)) => Some(Answer::Busy),
                Some(_) => Some(Answer::Closed),
                None => None,
            };
            self.answers[index] = answer;
        }
        match self.answers[index] {
            Some(Answer::Busy) => Readiness::Busy,
            Some(Answer::Closed) => Readiness::Closed,
            Some(Answer::Ready | Answer::Pending | Answer::Offered) | None => Readiness::Ready,
        }
    }

    fn put(&mut self, channel: ChannelId, message: &[Datum]) {
        self.query += 1;
        let declared = &self.program.channels[channel.0 as usize];
        let text = datum::print_message(self.program, &declared.payload, message);
        match self.event() {
            Some(event) => {
                if let Some((_, recorded)) = self.about(&event, &["out"], &declared.name)
                    && recorded != text
                {
                    let what = format!("`{}` sends `{text}`, recorded was `{recorded}`", declared.name);
                    self.differ(&what, event.line);
                }
            }
            None => {
                let line = self.events.front().map_or(0, |event| event.line);
                self.differ(&format!("`{}` sends `{text}`, which was not recorded", declared.name), line);
            }
        }
        // An error of the observer does not end the comparison.
        let _ = writeln!(self.observer, "{} {text}", declared.name);
    }

    fn now_ns(&mut self) -> i64 {
        self.query += 1;
        if let Some(event) = self.event() {
            match event.text.strip_prefix("time ").and_then(|time| time.parse().ok()) {
                Some(time_ns) => self.time_ns = time_ns,
                None => {
                    self.differ(&format!("the program asks for the time, recorded was `{}`", event.text), event.line)
                }
            }
        }
        self.time_ns
    }

    fn call(&mut self, function: ExternId, arguments: &mut [Datum]) -> Reply {
        self.query += 1;
        let program = self.program;
        let extern_ = &program.externs[function.0 as usize];
        let Some(event) = self.event() else {
            let line = self.events.front().map_or(0, |event| event.line);
            self.differ(&format!("`{}` is called, which was not recorded", extern_.name), line);
            return Reply::Unresolved;
        };
        let Some((_, reply)) = self.about(&event, &["call"], &extern_.name) else { return Reply::Unresolved };
        match reply {
            UNRESOLVED => return Reply::Unresolved,
            MALFORMED => return Reply::Malformed,
            _ => {}
        }
        let values = match datum::parse_message(program, &reply_types(program, function), reply) {
            Ok(values) => values,
            Err(error) => {
                self.differ(&format!("`{reply}`: {error}"), event.line);
                return Reply::Unresolved;
            }
        };
        let mut values = values.into_iter();
        let result = extern_.result.and_then(|_| values.next());
        for ((_, mutability), argument) in extern_.parameters.iter().zip(arguments) {
            match mutability {
                Mutability::Mutable => *argument = values.next().expect("one value was parsed for each"),
                Mutability::Immutable => {}
            }
        }
        Reply::Returned(result)
    }
}
