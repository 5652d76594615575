//! `qj filter`: compiles rules and applies them to the packets of a capture or an interface.

mod capture;
mod export;
#[cfg(target_os = "linux")]
mod linux;
mod measure;
#[cfg(not(target_os = "linux"))]
mod other;
mod sources;

use crate::arguments::{Emit, Filter as Arguments, FilterCommand};
use crate::terminal::{CliError, Status, Terminal, print, print_verdict};
use capture::{CaptureFile, ReadUntil, read_capture};
#[cfg(target_os = "linux")]
use linux::{InterfaceCapture, corpus, fuzz};
#[cfg(not(target_os = "linux"))]
use other::{InterfaceCapture, corpus, fuzz};
use quaject_diagnostic::span::{SourceFile, SourceMap};
use quaject_diagnostic::{Message, Severity};
use quaject_esp_run::files::read_text;
use quaject_esp_run::{HostCode, HostError, Signals};
use quaject_filter::capture::CapturedPacket;
use quaject_filter::check::RuleCheck;
use quaject_filter::link::{ByteOrder, LinkLayer};
use quaject_filter::pcap::{Pcap, Target};
use quaject_filter::rules::{Compiled, Rule, RuleCode, RuleDiagnostic, compile, read};
use quaject_filter::{Classifier, Id, Packet};
use sources::{Access, load};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::Path;

pub(crate) fn filter(terminal: &Terminal, arguments: Arguments) -> Result<Status, CliError> {
    match arguments.command {
        Some(FilterCommand::Fuzz(arguments)) => return fuzz(terminal, &arguments),
        Some(FilterCommand::Corpus(arguments)) => return corpus(terminal, &arguments),
        None => {}
    }
    let file = arguments.rules.as_deref().expect("clap asks for the rules where there is no subcommand");
    let text = read_text(file)?;
    let pcap = load()?;
    let (rules, diagnostics) = read(&text);
    let mut sources = SourceMap::default();
    sources.add(SourceFile::new(file.display().to_string(), text));
    let sets = BTreeMap::new();
    // libpcap asks for the address of the interface, which has a netmask.
    let netmask =
        arguments.netmask.or_else(|| arguments.interface.as_deref().and_then(|interface| pcap.netmask(interface)));
    let mut rule_sets = RuleSets { terminal, sources: &sources, pcap: &pcap, rules: &rules, netmask, sets };
    rule_sets.report(&diagnostics)?;
    // What is split is kept; other results can be had again.
    let signals = match (&arguments.read, &arguments.split) {
        (Some(_), Some(_)) => Some(Signals::listen_to_all()?),
        _ => None,
    };
    let until = signals.as_ref().map_or(ReadUntil::End, ReadUntil::Signal);
    let packets = match (&arguments.read, &arguments.interface) {
        (Some(capture), _) => Some(PacketSource::Capture(capture, until)),
        (None, Some(name)) => {
            let access = if arguments.xdp { Access::Exclusive } else { Access::Shared };
            let interface = InterfaceCapture::open(terminal, &pcap, name, access, arguments.packets)?;
            // Reports errors in rules before the first packet.
            rule_sets.set(interface.link())?;
            Some(PacketSource::Interface(Box::new(interface)))
        }
        (None, None) => None,
    };
    match (&arguments, packets) {
        (Arguments { count: true, .. }, Some(packets)) => count(&mut rule_sets, packets),
        (Arguments { split: Some(folder), .. }, Some(packets)) => split(&mut rule_sets, packets, folder),
        (Arguments { check: true, .. }, Some(packets)) => check(&mut rule_sets, packets),
        (Arguments { bench: true, .. }, Some(packets)) => measure::measure(&mut rule_sets, packets),
        (Arguments { emit: Some(Emit::Xdp), output, .. }, _) => export::xdp(&mut rule_sets, output.as_deref()),
        (Arguments { explain: true, .. }, _) => explain(&mut rule_sets, LinkLayer::native(arguments.link_type)),
        // Only reports errors in rules.
        (_, None) => {
            rule_sets.set(LinkLayer::native(arguments.link_type))?;
            Ok(Status::Done)
        }
        (_, Some(_)) => Err(CliError::from(
            HostError::usage(HostCode::Choice, "no operation on the packets is selected")
                .help("add --count, --split DIR, --check or --bench"),
        )),
    }
}

/// The source of packets.
enum PacketSource<'s> {
    Capture(&'s Path, ReadUntil<'s>),
    Interface(Box<InterfaceCapture<'s>>),
}

/// The rules compiled for one link type.
struct RuleSet {
    compiled: Vec<Compiled>,
    /// By rule; ascending, because a new classifier assigns numbers in order.
    ids: Vec<Id>,
    classifier: Classifier,
}

impl RuleSet {
    /// The rule of a filter.
    fn rule(&self, id: Id) -> Option<usize> {
        self.ids.binary_search(&id).ok()
    }
}

/// The rules, compiled for each link type on demand.
struct RuleSets<'w> {
    terminal: &'w Terminal,
    sources: &'w SourceMap,
    pcap: &'w Pcap,
    rules: &'w [Rule],
    netmask: Option<Ipv4Addr>,
    /// None for link layers for which libpcap has no filters.
    sets: BTreeMap<LinkLayer, Option<RuleSet>>,
}

impl RuleSets<'_> {
    /// Prints diagnostics; an error if a rule cannot be used.
    fn report(&self, diagnostics: &[RuleDiagnostic]) -> Result<(), CliError> {
        match self.terminal.print_diagnostics(self.sources, diagnostics) {
            0 => Ok(()),
            _ => Err(CliError::reported(Status::Failed)),
        }
    }

    /// The rules for a link layer.
    fn set(&mut self, link: LinkLayer) -> Result<&RuleSet, CliError> {
        self.set_if_supported(link)?.ok_or_else(|| CliError::reported(Status::Failed))
    }

    /// The rules for a link layer; none if libpcap has no filters for it, which is reported once.
    fn set_if_supported(&mut self, link: LinkLayer) -> Result<Option<&RuleSet>, CliError> {
        if !self.sets.contains_key(&link) {
            let (compiled, diagnostics) = compile(self.pcap, self.rules, &Target { link, netmask: self.netmask });
            let is_unsupported = diagnostics.iter().any(|own| own.code == RuleCode::UnsupportedLinkType);
            let set = match self.report(&diagnostics) {
                Err(_) if is_unsupported => None,
                outcome => {
                    outcome?;
                    let classifier = Classifier::new();
                    let ids = insert(&classifier, &compiled)?;
                    Some(RuleSet { compiled, ids, classifier })
                }
            };
            self.sets.insert(link, set);
        }
        Ok(self.sets[&link].as_ref())
    }

    /// Passes every packet, with the rules for its link layer, to `take`. Packets that libpcap has no filters for are
    /// left out, and are an error at the end.
    fn packets(
        &mut self,
        source: PacketSource<'_>,
        mut take: impl FnMut(&RuleSet, &CapturedPacket<'_>) -> Result<(), HostError>,
    ) -> Result<(), CliError> {
        let terminal = self.terminal;
        let mut stop = None;
        let mut unsupported = 0_u64;
        let take = |packet: CapturedPacket<'_>| match self.set_if_supported(packet.link) {
            Ok(Some(set)) => take(set, &packet),
            Ok(None) => {
                unsupported += 1;
                Ok(())
            }
            Err(other) => {
                // Any error ends the reading; `stop` replaces it below.
                stop = Some(other);
                Err(HostError::new(HostCode::Content, "the rules have errors"))
            }
        };
        let outcome = match source {
            PacketSource::Capture(capture, until) => read_capture(capture, until, take),
            PacketSource::Interface(mut interface) => interface.each(take).map(|lost| {
                if lost > 0 {
                    terminal.print_warning(format!("{lost} packets were lost"));
                }
            }),
        };
        if unsupported > 0 {
            terminal.print_warning(format!("{unsupported} packets were left out: no filter can be applied to them"));
        }
        match (stop, outcome) {
            (Some(stop), _) => Err(stop),
            (None, Err(error)) => Err(CliError::from(error)),
            (None, Ok(())) if unsupported > 0 => Err(CliError::reported(Status::Failed)),
            (None, Ok(())) => Ok(()),
        }
    }
}

/// Inserts rules with descending priorities.
fn insert(classifier: &Classifier, compiled: &[Compiled]) -> Result<Vec<Id>, CliError> {
    let filters = compiled.iter().zip((0..=u32::MAX).rev()).map(|(own, priority)| (&own.filter, priority));
    classifier.insert_all(filters).map_err(|error| {
        let text = error.to_string();
        let cause = text.strip_prefix(&format!("{}: ", error.code())).unwrap_or(&text);
        let message = Message::new(Severity::Error, cause).code(error.code()).help(error.help());
        CliError { status: Status::Failed, error: Some(message) }
    })
}

fn count(rule_sets: &mut RuleSets<'_>, source: PacketSource<'_>) -> Result<Status, CliError> {
    let mut counts = vec![0_u64; rule_sets.rules.len()];
    let mut packets = 0_u64;
    let mut none = 0_u64;
    let mut found = Vec::new();
    let outcome = rule_sets.packets(source, |set, packet| {
        packets += 1;
        let mut reader = set.classifier.reader();
        reader.pin().matches(Packet::captured(packet.data, packet.wire_length), &mut found);
        none += u64::from(found.is_empty());
        for rule in found.iter().filter_map(|found| found.id()).filter_map(|id| set.rule(id)) {
            counts[rule] += 1;
        }
        Ok(())
    });
    // Counts before an error of a capture are printed, unless there are none.
    let outcome = match outcome {
        Err(stop) if packets == 0 || stop.error.is_none() => return Err(stop),
        outcome => outcome,
    };
    let mut text = String::new();
    let width = counts.iter().max().map_or(1, |max| max.to_string().len());
    for (rule, count) in rule_sets.rules.iter().zip(&counts) {
        let _ = writeln!(text, "{count:>width$}  {}", rule.name);
    }
    print(text.as_bytes())?;
    rule_sets.terminal.print_status(format!("{packets} packets, {none} that no filter matches"));
    outcome.map(|()| Status::Done)
}

fn split(rule_sets: &mut RuleSets<'_>, source: PacketSource<'_>, folder: &Path) -> Result<Status, CliError> {
    let failed = |error: &std::io::Error| HostError::file("make", folder.display(), error);
    std::fs::create_dir_all(folder).map_err(|error| failed(&error))?;
    let max_open = raise_open_files_limit();
    let names: Vec<String> = rule_sets.rules.iter().map(|rule| rule.name.clone()).collect();
    let mut files: BTreeMap<(usize, LinkLayer), CaptureFile> = BTreeMap::new();
    // The link layer of the first packet of each rule.
    let mut links: BTreeMap<usize, LinkLayer> = BTreeMap::new();
    let mut is_written = true;
    let outcome = rule_sets.packets(source, |set, packet| {
        let mut reader = set.classifier.reader();
        let found = reader.classify(Packet::captured(packet.data, packet.wire_length));
        let Some(rule) = found.id().and_then(|id| set.rule(id)) else { return Ok(()) };
        let open = files.len() as u64;
        let file = match files.entry((rule, packet.link)) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => {
                let first = *links.entry(rule).or_insert(packet.link);
                let path = folder.join(file_name(&names[rule], packet.link, first));
                CaptureFile::create(&path, packet.link).map(|file| entry.insert(file))
            }
        };
        let written = file.and_then(|file| file.write(packet));
        is_written &= written.is_ok();
        written.map_err(|error| match max_open {
            Some(max) if open + OTHER_FILES >= max => error.help(format!(
                "each rule with packets has an open file, and the limit is {max}: raise `ulimit -Hn`, or use fewer rules"
            )),
            Some(_) | None => error,
        })
    });
    // What was read is kept, whatever ended the reading, but no file gets its final name before all are on disk.
    if !is_written {
        return outcome.map(|()| Status::Failed);
    }
    for file in files.values_mut() {
        file.flush()?;
    }
    let mut text = String::new();
    for ((rule, link), file) in files {
        let _ = writeln!(text, "{}  {}", file.packets, file_name(&names[rule], link, links[&rule]));
        file.finish()?;
    }
    print(text.as_bytes())?;
    outcome.map(|()| Status::Done)
}

/// The name of the file of a rule. A pcap file has one link layer: packets of others than the first one go to files of
/// their own.
fn file_name(rule: &str, link: LinkLayer, first: LinkLayer) -> String {
    let LinkLayer { link_type, byte_order } = link;
    match byte_order {
        _ if link == first => format!("{rule}.pcap"),
        order if order == first.byte_order => format!("{rule}+{link_type}.pcap"),
        ByteOrder::Little => format!("{rule}+{link_type}-little.pcap"),
        ByteOrder::Big => format!("{rule}+{link_type}-big.pcap"),
    }
}

/// Descriptors that are open besides the files of rules: standard streams, the capture, and a reserve.
const OTHER_FILES: u64 = 16;

/// Raises the limit on open files to the maximum that the system allows, for one file per rule. The new limit; none if
/// there is no limit.
#[cfg(unix)]
fn raise_open_files_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If the system refuses, the current limit may suffice.
    match setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    }
}

/// Not known on this system.
#[cfg(not(unix))]
fn raise_open_files_limit() -> Option<u64> {
    None
}

fn explain(rule_sets: &mut RuleSets<'_>, link: LinkLayer) -> Result<Status, CliError> {
    let set = rule_sets.set(link)?;
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

fn check(rule_sets: &mut RuleSets<'_>, source: PacketSource<'_>) -> Result<Status, CliError> {
    let pcap = rule_sets.pcap;
    let terminal = rule_sets.terminal;
    let (mut packets, mut evaluations, mut matches, mut differences) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut checks: BTreeMap<LinkLayer, RuleCheck<'_>> = BTreeMap::new();
    let outcome = rule_sets.packets(source, |set, recorded| {
        let check = match checks.entry(recorded.link) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let check = RuleCheck::new(pcap, &set.compiled);
                entry.insert(check.map_err(|error| HostError::new(HostCode::Size, error.to_string()))?)
            }
        };
        packets += 1;
        evaluations += set.compiled.len() as u64;
        let found = check.packet(Packet::captured(recorded.data, recorded.wire_length));
        matches += found.matches;
        differences += found.differences.len() as u64;
        for difference in found.differences {
            let text = format!("packet {}, {difference}", recorded.number);
            terminal.print_error(&HostError::new(HostCode::Defect, text));
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
