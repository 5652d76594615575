//! `qj filter corpus`: reads the captures and expressions of a folder, on which the library compares every engine with
//! the others, with `bpf_filter` and with the kernel.

use super::guard;
use crate::arguments::FilterCorpus;
use crate::commands::filter::capture::{ReadUntil, read_capture};
use crate::commands::filter::sources::load;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp_run::{HostCode, HostError};
use quaject_filter::capture::is_capture;
use quaject_filter::fuzz::{Captured, Corpus, CorpusComparison, Counts, Kernel};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The limit on the part of a text file that is searched.
const MAX_TEXT_BYTES: u64 = 1 << 24;

/// The captures and expressions of a folder.
#[derive(Default)]
struct FolderContents {
    captures: usize,
    /// Captures that are truncated or damaged; their packets before the error are used.
    broken: usize,
    corpus: Corpus,
}

pub(crate) fn corpus(terminal: &Terminal, arguments: &FilterCorpus) -> Result<Status, CliError> {
    let pcap = load()?;
    let mut guard = guard()?;
    let mut found = FolderContents::default();
    for file in files(&arguments.folder)? {
        found.add(&file)?;
    }
    let FolderContents { captures, broken, corpus } = found;
    if !corpus.has_packets() || corpus.expressions() == 0 {
        let missing = if corpus.has_packets() { "expression" } else { "packet" };
        let error =
            HostError::new(HostCode::Empty, format!("no file in `{}` has a {missing}", arguments.folder.display()));
        return Err(CliError::from(error.help("captures are pcap or pcapng files; see `qj help filter corpus`")));
    }
    terminal.print_status(format!(
        "{captures} captures ({broken} broken), {} expressions; {}",
        corpus.expressions(),
        pcap.version()
    ));
    let kernel =
        Kernel::new().map_err(|error| terminal.print_warning(format!("the kernel is not compared: {error}"))).ok();
    let comparison =
        CorpusComparison { pcap: &pcap, kernel: kernel.as_ref(), sets: arguments.sets, seed: arguments.seed };
    let compared = comparison.run(&corpus, &mut guard, |link, counts| {
        let Counts { filters, packets, evaluations, .. } = counts;
        terminal.print_status(format!(
            "link type {}: {packets} packets, {filters} filters, {evaluations} evaluations",
            link.link_type
        ));
    });
    let Counts { rounds, filters, packets, evaluations, matches } = match compared {
        Ok(total) => total,
        Err(error) => {
            terminal.print_error(&HostError::new(HostCode::Defect, error.to_string()));
            print_verdict(error.disagreement.to_string().as_bytes())?;
            return Ok(Status::Fault);
        }
    };
    terminal.print_status(format!("{} verdicts of the kernel", kernel.as_ref().map_or(0, Kernel::verdicts)));
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

impl FolderContents {
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
            self.corpus.add_rules(&text);
        } else {
            self.corpus.add_text(&text);
        }
        Ok(())
    }

    fn capture(&mut self, path: &Path) {
        self.captures += 1;
        let outcome = read_capture(path, ReadUntil::End, |packet| {
            let place = format!("{}, packet {}", path.display(), packet.number);
            let captured = Captured { place, data: packet.data.to_vec(), wire_length: packet.wire_length };
            self.corpus.add_packet(packet.link, captured);
            Ok(())
        });
        self.broken += usize::from(outcome.is_err());
    }
}
