//! `qj filter corpus`: applies the filters of a folder to the packets of its captures, and compares every engine with
//! the others and with `bpf_filter`.

use super::guard;
use crate::arguments::FilterCorpus;
use crate::commands::filter::capture::read_capture;
use crate::commands::filter::sources::load;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp_run::{HostCode, HostError};
use quaject_filter::Packet;
use quaject_filter::bpf::Program;
use quaject_filter::candidates::candidates;
use quaject_filter::capture::{data_link, is_capture};
use quaject_filter::fuzz::{self, Captured, Counts, Kernel, Oracle, Random, Written};
use quaject_filter::pcap::Pcap;
use quaject_filter::rules::read;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The approximate limit on packets per filter for the kernel, which takes twenty times as long as the other engines.
const MAX_KERNEL_PACKETS: usize = 500;
/// The limit on the part of a text file that is searched.
const MAX_TEXT_BYTES: u64 = 1 << 24;

/// The captures and expressions of a folder.
#[derive(Default)]
struct Corpus {
    captures: usize,
    /// Captures that are truncated or damaged; their packets before the error are used.
    broken: usize,
    /// By link type, in the numbering of libpcap.
    packets: BTreeMap<i32, Vec<Captured>>,
    expressions: BTreeSet<String>,
}

pub(crate) fn corpus(terminal: &Terminal, arguments: &FilterCorpus) -> Result<Status, CliError> {
    let pcap = load()?;
    let mut guard = guard()?;
    let mut found = Corpus::default();
    for file in files(&arguments.folder)? {
        found.add(&file)?;
    }
    if found.packets.is_empty() || found.expressions.is_empty() {
        let missing = if found.packets.is_empty() { "packet" } else { "expression" };
        let error =
            HostError::new(HostCode::Empty, format!("no file in `{}` has a {missing}", arguments.folder.display()));
        return Err(CliError::from(error.help("captures are pcap or pcapng files; see `qj help filter corpus`")));
    }
    let Corpus { captures, broken, packets, expressions } = found;
    terminal.print_status(format!(
        "{captures} captures ({broken} broken), {} expressions; {}",
        expressions.len(),
        pcap.version()
    ));
    let disagrees = |program: &Program, packet: Packet<'_>, verdict: u32| {
        Some(pcap.prepare(program)?.run(packet)).filter(|other| *other != verdict)
    };
    let kernel =
        Kernel::new().map_err(|error| terminal.print_warning(format!("the kernel is not compared: {error}"))).ok();
    let (turn, interval) = (Cell::new(0_usize), Cell::new(1_usize));
    let kernel_disagrees = |program: &Program, packet: Packet<'_>, verdict: u32| {
        turn.set(turn.get().wrapping_add(1));
        let is_sampled = turn.get().is_multiple_of(interval.get());
        kernel.as_ref().filter(|_| is_sampled)?.disagrees(program, packet, verdict)
    };
    let oracles = [
        Oracle { name: "bpf_filter", disagrees: &disagrees },
        Oracle { name: "the kernel", disagrees: &kernel_disagrees },
    ];
    let mut random = Random::new(arguments.seed);
    let mut total = Counts::default();
    for (link_type, packets) in &packets {
        let filters = compile(&pcap, &expressions, *link_type);
        interval.set(packets.len().div_ceil(MAX_KERNEL_PACKETS));
        match fuzz::corpus(&filters, packets, arguments.sets, &mut guard, &mut random, &oracles) {
            Ok(counts) => {
                let Counts { filters, packets, evaluations, .. } = counts;
                terminal.print_status(format!(
                    "link type {link_type}: {packets} packets, {filters} filters, {evaluations} evaluations"
                ));
                total += counts;
            }
            Err(disagreement) => {
                terminal.print_error(&HostError::new(
                    HostCode::Defect,
                    format!("engines disagree on packets of link type {link_type}"),
                ));
                print_verdict(disagreement.to_string().as_bytes())?;
                return Ok(Status::Fault);
            }
        }
    }
    terminal.print_status(format!("{} verdicts of the kernel", kernel.as_ref().map_or(0, Kernel::verdicts)));
    let Counts { rounds, filters, packets, evaluations, matches } = total;
    let text = format!(
        "{packets} packets, {filters} filters, {evaluations} evaluations, {matches} matches, {rounds} merged sets, \
         0 differences\n"
    );
    print_verdict(text.as_bytes())?;
    Ok(Status::Done)
}

/// The files of a folder and its subfolders, in order. Links to folders are not followed, because they may form cycles.
fn files(folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    let error = |error: std::io::Error| CliError::from(HostError::file("read", folder.display(), &error));
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder).map_err(error)? {
        let entry = entry.map_err(error)?;
        entries.push((entry.path(), entry.file_type().map_err(error)?));
    }
    entries.sort_by(|one, other| one.0.cmp(&other.0));
    let mut all = Vec::new();
    for (path, kind) in entries {
        if kind.is_dir() {
            all.extend(files(&path)?);
        } else if kind.is_file() || kind.is_symlink() && path.is_file() {
            all.push(path);
        }
    }
    Ok(all)
}

/// The expressions that libpcap can compile, without those of equal programs.
fn compile(pcap: &Pcap, expressions: &BTreeSet<String>, link_type: i32) -> Vec<Written> {
    let mut seen = BTreeSet::new();
    let programs = expressions.iter().filter_map(|text| Some((text, pcap.compile(text, link_type).ok()?)));
    let new = programs.filter(|(_, program)| {
        let words = program.instructions().into_iter().map(|own| (own.code, own.jt, own.jf, own.k));
        seen.insert(words.collect::<Vec<_>>())
    });
    new.map(|(text, program)| Written { name: text.clone(), program }).collect()
}

impl Corpus {
    /// Adds the packets or expressions of a file.
    fn add(&mut self, path: &Path) -> Result<(), CliError> {
        let error = |error: std::io::Error| CliError::from(HostError::file("read", path.display(), &error));
        let mut file = fs::File::open(path).map_err(error)?;
        let mut first = Vec::new();
        file.by_ref().take(4).read_to_end(&mut first).map_err(error)?;
        if is_capture(&first) {
            self.capture(path);
            return Ok(());
        }
        let mut text = first;
        file.take(MAX_TEXT_BYTES).read_to_end(&mut text).map_err(error)?;
        let Ok(text) = String::from_utf8(text) else { return Ok(()) };
        if path.extension().is_some_and(|ending| ending == "rules") {
            self.expressions.extend(read(&text).0.into_iter().map(|rule| rule.expression));
        } else {
            self.expressions.extend(candidates(&text));
        }
        Ok(())
    }

    fn capture(&mut self, path: &Path) {
        self.captures += 1;
        let outcome = read_capture(path, |packet| {
            let place = format!("{}, packet {}", path.display(), packet.number);
            let captured = Captured { place, data: packet.data.to_vec(), wire_length: packet.wire_length };
            self.packets.entry(data_link(packet.link_type)).or_default().push(captured);
            Ok(())
        });
        self.broken += usize::from(outcome.is_err());
    }
}
