//! `qj filter`: rules from a file, packets from a capture, and what is asked of the two.

mod capture;
mod corpus;
mod export;
mod live;
mod measure;

use crate::arguments::{Emit, Filter as Arguments, FilterCommand, FilterFuzz};
use crate::terminal::{CliError, Status, Terminal, print, print_verdict, say};
use capture::{CaptureFile, read_capture};
use quaject_esp_run::HostError;
use quaject_esp_run::files::read_text;
use quaject_filter::bpf::Program;
use quaject_filter::capture::{CapturedPacket, data_link};
use quaject_filter::fuzz::{Counts, Guard, Kernel, Oracle, fingerprints, one_program, round};
use quaject_filter::pcap::{Pcap, Prepared};
use quaject_filter::rules::{Compiled, Mistake, Rule, Severity, compile, read};
use quaject_filter::{Classifier, Engine, Id, Packet};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

pub(crate) fn filter(terminal: &Terminal, arguments: Arguments) -> Result<Status, CliError> {
    match arguments.command {
        Some(FilterCommand::Fuzz(arguments)) => return fuzz(&arguments),
        Some(FilterCommand::Corpus(arguments)) => return corpus::corpus(terminal, &arguments),
        None => {}
    }
    let file = arguments.rules.as_deref().expect("clap asks for the rules where there is no subcommand");
    let text = read_text(file)?;
    let pcap = load()?;
    let (rules, mistakes) = read(&text);
    let mut wanted = Wanted { terminal, file, text: &text, pcap: &pcap, rules: &rules, sets: BTreeMap::new() };
    wanted.say(&mistakes)?;
    let packets = match (&arguments.read, &arguments.interface) {
        (Some(capture), _) => Some(Source::Capture(capture)),
        (None, Some(name)) => {
            let way = if arguments.xdp { live::Way::Take } else { live::Way::Overhear };
            let interface = live::Source::open(&pcap, name, way, arguments.packets)?;
            // Wrong rules are told at once, not with the first packet.
            wanted.set(interface.link_type())?;
            Some(Source::Interface(Box::new(interface)))
        }
        (None, None) => None,
    };
    match (&arguments, packets) {
        (Arguments { count: true, .. }, Some(packets)) => count(&mut wanted, packets),
        (Arguments { split: Some(folder), .. }, Some(packets)) => split(&mut wanted, packets, folder),
        (Arguments { check: true, .. }, Some(packets)) => check(&mut wanted, packets),
        (Arguments { bench: true, .. }, Some(packets)) => measure::measure(&mut wanted, packets),
        (Arguments { emit: Some(Emit::Xdp), output, .. }, _) => export::xdp(&mut wanted, output.as_deref()),
        (Arguments { explain: true, .. }, _) => explain(&mut wanted, arguments.link_type),
        // Nothing more than to find mistakes.
        (_, None) => {
            wanted.set(arguments.link_type)?;
            Ok(Status::Done)
        }
        (_, Some(_)) => Err(CliError::from(
            HostError::usage("it does not say what to do with the packets")
                .help("add --count, --split DIR, --check or --bench"),
        )),
    }
}

/// Where packets come from.
enum Source<'s> {
    Capture(&'s Path),
    Interface(Box<live::Source<'s>>),
}

/// The rules compiled for one link type.
struct Set {
    compiled: Vec<Compiled>,
    /// By rule: in order, as a new classifier gives numbers.
    ids: Vec<Id>,
    classifier: Classifier,
}

impl Set {
    /// The rule of a filter.
    fn rule(&self, id: Id) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }
}

/// The rules, and what was made of them for the link types that occurred.
struct Wanted<'w> {
    terminal: &'w Terminal,
    file: &'w Path,
    text: &'w str,
    pcap: &'w Pcap,
    rules: &'w [Rule],
    sets: BTreeMap<i32, Set>,
}

impl Wanted<'_> {
    /// Says what is wrong, with the place; stops if that makes rules unusable.
    fn say(&self, mistakes: &[Mistake]) -> Result<(), CliError> {
        let mut wrong = false;
        for mistake in mistakes {
            let word = match mistake.severity {
                Severity::Error => self.terminal.bold_red("error"),
                Severity::Warning => "warning".to_owned(),
            };
            wrong |= mistake.severity == Severity::Error;
            let line = self.text.lines().nth(mistake.line - 1).unwrap_or_default();
            let number = mistake.line.to_string();
            let margin = " ".repeat(number.len());
            // Tabulators stay, so that the caret is below what it means.
            let blank = |character: char| if character == '\t' { '\t' } else { ' ' };
            let indent: String = line.chars().take(mistake.column - 1).map(blank).collect();
            let place = format!("{}:{}:{}", self.file.display(), mistake.line, mistake.column);
            say(&format!(
                "{word}: {}\n{margin}--> {place}\n{margin} |\n{number} | {line}\n{margin} | {indent}^\nhelp: {}\n",
                mistake.message, mistake.help
            ));
        }
        if wrong { Err(CliError::reported(Status::Failed)) } else { Ok(()) }
    }

    /// The rules for a link type.
    fn set(&mut self, link_type: i32) -> Result<&Set, CliError> {
        if !self.sets.contains_key(&link_type) {
            let (compiled, mistakes) = compile(self.pcap, self.rules, data_link(link_type));
            self.say(&mistakes)?;
            let classifier = Classifier::new();
            let ids = insert(&classifier, &compiled)?;
            self.sets.insert(link_type, Set { compiled, ids, classifier });
        }
        Ok(&self.sets[&link_type])
    }

    /// Gives every packet, with the rules for it, to `take`.
    fn packets(
        &mut self,
        source: Source<'_>,
        mut take: impl FnMut(&Set, &CapturedPacket<'_>) -> Result<(), HostError>,
    ) -> Result<(), CliError> {
        let mut stop = None;
        let take = |packet: CapturedPacket<'_>| {
            match self.set(packet.link_type) {
                Ok(set) => take(set, &packet),
                Err(other) => {
                    // Anything ends the reading; what was to be said has been said.
                    stop = Some(other);
                    Err(HostError::new("the rules are wrong"))
                }
            }
        };
        let outcome = match source {
            Source::Capture(capture) => read_capture(capture, take),
            Source::Interface(mut interface) => interface.each(take).map(|lost| {
                if lost > 0 {
                    say(&format!("warning: {lost} packets came too fast, and were not looked at\n"));
                }
            }),
        };
        match (stop, outcome) {
            (Some(stop), _) => Err(stop),
            (None, outcome) => outcome.map_err(CliError::from),
        }
    }
}

/// Inserts rules, the first with the highest priority.
fn insert(classifier: &Classifier, compiled: &[Compiled]) -> Result<Vec<Id>, CliError> {
    let filters = compiled.iter().zip((0..=u32::MAX).rev()).map(|(own, priority)| (&own.filter, priority));
    classifier.insert_all(filters).map_err(|error| CliError::from(HostError::new(error.to_string()).help(error.help())))
}

fn count(wanted: &mut Wanted<'_>, source: Source<'_>) -> Result<Status, CliError> {
    let mut counts = vec![0_u64; wanted.rules.len()];
    let mut packets = 0_u64;
    let mut none = 0_u64;
    let mut found = Vec::new();
    let outcome = wanted.packets(source, |set, packet| {
        packets += 1;
        let mut reader = set.classifier.reader();
        reader.pin().matches(Packet::captured(packet.data, packet.wire_length), &mut found);
        none += u64::from(found.is_empty());
        for rule in found.iter().filter_map(|found| found.id()).filter_map(|id| set.rule(id)) {
            counts[rule] += 1;
        }
        Ok(())
    });
    // What was counted before a capture report early is worth telling; nothing is not.
    let outcome = match outcome {
        Err(stop) if packets == 0 || stop.error.is_none() => return Err(stop),
        outcome => outcome,
    };
    let mut text = String::new();
    let width = counts.iter().max().map_or(1, |most| most.to_string().len());
    for (rule, count) in wanted.rules.iter().zip(&counts) {
        let _ = writeln!(text, "{count:>width$}  {}", rule.name);
    }
    print(text.as_bytes())?;
    say(&format!("{packets} packets, {none} that no filter matches\n"));
    outcome.map(|()| Status::Done)
}

fn split(wanted: &mut Wanted<'_>, source: Source<'_>, folder: &Path) -> Result<Status, CliError> {
    let failed = |error: &std::io::Error| HostError::file("make", folder.display(), error);
    std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let most_open = allow_open_files();
    let names: Vec<String> = wanted.rules.iter().map(|rule| rule.name.clone()).collect();
    let mut files: BTreeMap<usize, CaptureFile> = BTreeMap::new();
    // What has passed an interface cannot be read again: it is kept when the interface goes away.
    let is_live = matches!(source, Source::Interface(_));
    let outcome = wanted.packets(source, |set, packet| {
        let mut reader = set.classifier.reader();
        let found = reader.classify(Packet::captured(packet.data, packet.wire_length));
        let Some(rule) = found.id().and_then(|id| set.rule(id)) else { return Ok(()) };
        let path = folder.join(format!("{}.pcap", names[rule]));
        let open = files.len() as u64;
        let explained = |error: HostError| match most_open {
            Some(most) if open + OTHER_FILES >= most => error.help(format!(
                "each rule with packets has a file open, and a process may have {most}: raise `ulimit -Hn`, or take fewer rules"
            )),
            Some(_) | None => error,
        };
        let file = match files.entry(rule) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(CaptureFile::create(&path, packet.link_type).map_err(explained)?)
            }
        };
        if file.link_type != packet.link_type {
            let number = packet.number;
            return Err(HostError::new(format!(
                "packet {number} has another link type than others for `{}`",
                names[rule]
            ))
            .help("pcap files have one link type; split the capture by interface first"));
        }
        file.write(packet)
    });
    let outcome = match outcome {
        Err(stop) if !is_live => return Err(stop),
        outcome => outcome,
    };
    // Nothing has its name before everything was read, and is on its disk.
    for file in files.values_mut() {
        file.flush()?;
    }
    let mut text = String::new();
    for (rule, file) in files {
        let _ = writeln!(text, "{}  {}.pcap", file.packets, names[rule]);
        file.finish()?;
    }
    print(text.as_bytes())?;
    outcome.map(|()| Status::Done)
}

/// What a process has open besides: standard streams, the capture, and some.
const OTHER_FILES: u64 = 16;

/// May have as many files open at once as the system allows, one for each rule: the limit that is in force may be far lower.
/// How many that is; none if there is no limit.
fn allow_open_files() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // Where even that is refused, the limit there is may do.
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

fn explain(wanted: &mut Wanted<'_>, link_type: i32) -> Result<Status, CliError> {
    let set = wanted.set(link_type)?;
    let mut text = String::new();
    for compiled in &set.compiled {
        let _ = writeln!(text, "{}: {}", compiled.rule.name, compiled.rule.expression);
        for line in compiled.filter.to_string().lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    let _ = writeln!(text, "\n{}", set.classifier.explain());
    let stats = set.classifier.stats();
    let _ = writeln!(
        text,
        "{} filters in {} groups, {} programs; {} bytes of code, {} bytes of tables",
        stats.filters, stats.groups, stats.programs, stats.code_bytes, stats.table_bytes
    );
    print(text.as_bytes())?;
    Ok(Status::Done)
}

fn check(wanted: &mut Wanted<'_>, source: Source<'_>) -> Result<Status, CliError> {
    let pcap = wanted.pcap;
    let terminal = wanted.terminal;
    let (mut packets, mut evaluations, mut matches, mut differences) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut interpreters: BTreeMap<i32, Classifier> = BTreeMap::new();
    let mut oracles: BTreeMap<i32, Vec<Option<Prepared<'_>>>> = BTreeMap::new();
    let outcome = wanted.packets(source, |set, recorded| {
        packets += 1;
        let packet = Packet::captured(recorded.data, recorded.wire_length);
        let link_type = recorded.link_type;
        let interpreter = interpreters.entry(link_type).or_insert_with(|| {
            let classifier = Classifier::with_engine(Engine::Interpreter);
            // The same filters in the same order: the same numbers.
            let _ = insert(&classifier, &set.compiled);
            classifier
        });
        let oracles = oracles
            .entry(link_type)
            .or_insert_with(|| set.compiled.iter().map(|own| pcap.prepare(own.program.as_ref()?)).collect());
        let mut expected = Vec::new();
        for ((compiled, oracle), id) in set.compiled.iter().zip(&*oracles).zip(&set.ids) {
            evaluations += 1;
            let run = compiled.program.as_ref().is_some_and(|program| program.run(packet) != 0);
            let theirs = oracle.as_ref().map(|oracle| oracle.run(packet) != 0);
            let tests = compiled.filter.matches(packet);
            if run != tests || theirs.is_some_and(|theirs| theirs != run) {
                differences += 1;
                terminal.print_error(&HostError::new(format!(
                    "packet {}, `{}`: bpf_filter {theirs:?}, program {run}, tests {tests}",
                    recorded.number, compiled.rule.name
                )));
            }
            if run {
                matches += 1;
                expected.push(*id);
            }
        }
        let mut found = Vec::new();
        for (classifier, name) in [(&set.classifier, "generated code"), (&*interpreter, "interpreter")] {
            let mut reader = classifier.reader();
            let mut view = reader.pin();
            let first = view.classify(packet).id();
            view.matches(packet, &mut found);
            let all: Vec<Id> = found.iter().filter_map(|found| found.id()).collect();
            if first != expected.first().copied() || all != expected {
                differences += 1;
                terminal.print_error(&HostError::new(format!(
                    "packet {}: {name} says {first:?} and {all:?}, filters one by one {expected:?}",
                    recorded.number
                )));
            }
        }
        Ok(())
    });
    print_verdict(
        format!("{packets} packets, {evaluations} evaluations, {matches} matches, {differences} differences\n")
            .as_bytes(),
    )?;
    outcome?;
    Ok(if differences == 0 { Status::Done } else { Status::Fault })
}

/// Memory whose end is the end of what may be read.
fn guard() -> Result<Guard, CliError> {
    Guard::new().map_err(|error| CliError::from(HostError::new(format!("the system gives no memory: {error}"))))
}

/// The system's libpcap.
fn load() -> Result<Pcap, CliError> {
    Pcap::load().map_err(|absent| CliError::from(HostError::new(absent.to_string()).help(absent.help())))
}

fn fuzz(arguments: &FilterFuzz) -> Result<Status, CliError> {
    let pcap = Pcap::load().map_err(|absent| say(&format!("warning: {absent}\nhelp: {}\n", absent.help()))).ok();
    let disagrees = |program: &Program, packet: Packet<'_>, verdict: u32| {
        Some(pcap.as_ref()?.prepare(program)?.run(packet)).filter(|other| *other != verdict)
    };
    let oracles = [Oracle { name: "bpf_filter", disagrees: &disagrees }];
    let kernel = Kernel::new().map_err(|error| say(&format!("warning: the kernel is not asked: {error}\n"))).ok();
    let asks =
        |program: &Program, packet: Packet<'_>, verdict: u32| kernel.as_ref()?.disagrees(program, packet, verdict);
    let kernels = [Oracle { name: "the kernel", disagrees: &asks }];
    let mut guard = guard()?;
    let begun = Instant::now();
    let last = arguments.rounds.map(|rounds| arguments.seed.saturating_add(rounds));
    let mut counts = Counts::default();
    let mut distinct = HashSet::new();
    for seed in arguments.seed.. {
        let over = match last {
            Some(last) => seed >= last,
            None => begun.elapsed() >= Duration::from_secs(arguments.seconds),
        };
        if over {
            break;
        }
        // The kernel takes longer to change programs than to run them.
        let outcome = round(seed, &mut guard, &oracles);
        match outcome.and_then(|more| one_program(seed, &mut guard, &kernels).map(|_| more)) {
            Ok(more) => {
                counts += more;
                distinct.extend(fingerprints(seed));
            }
            Err(disagreement) => {
                print_verdict(disagreement.to_string().as_bytes())?;
                say(&format!("help: `qj filter fuzz --seed {seed} --rounds 1` repeats it\n"));
                return Ok(Status::Fault);
            }
        }
    }
    let Counts { rounds, filters, packets, evaluations, matches } = counts;
    let text = format!(
        "{rounds} rounds, {filters} filters ({} distinct), {packets} packets, {evaluations} evaluations, {matches} matches, \
         0 differences\n",
        distinct.len()
    );
    print_verdict(text.as_bytes())?;
    say(&format!("the kernel's verdict {} times\n", kernel.as_ref().map_or(0, Kernel::verdicts)));
    Ok(Status::Done)
}
