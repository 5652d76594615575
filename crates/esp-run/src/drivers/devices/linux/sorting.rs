//! Classification of frames: rules in tcpdump's syntax, one for each case of a union, merged into one classifier
//! ("VCODE" 4.2, DPF). Processes that wait for different cases are the ports; the cost of a frame does not depend on
//! their number.
//!
//! ```text
//! rules     web: tcp port 80                  channel   union { web: bytes[<=1514], dns: bytes[<=1514],
//!           dns: udp port 53                                    other: bytes[<=1514] }
//! ```
//!
//! The first rule that matches determines the case. A frame that no rule matches is the case `other`; without that case
//! it is dropped. A channel of `bytes` receives the frames that any rule matches.

use crate::drivers::message_codec::{Case, FieldKind, MessageCodec, Value};
use crate::error::{HostCode, HostError};
use crate::files::read_text;
use quaject_diagnostic::excerpt;
use quaject_esp_ir::ir::{Channel, Program, Type};
use quaject_esp_syntax::span::{LineColumn, SourceFile};
use quaject_filter::link::LinkLayer;
use quaject_filter::pcap::Pcap;
use quaject_filter::rules::{Compiled, RuleDiagnostic, compile, read};
use quaject_filter::{Classifier, Id, Packet, Reader};
use std::collections::HashMap;
use std::path::Path;

/// The link layer of the frames.
const ETHERNET: LinkLayer = LinkLayer::native(1);
/// The case of frames that no rule matches.
const OTHER: &str = "other";

/// Rules, merged.
pub(super) struct Sorting {
    reader: Reader,
    /// The case of each filter.
    cases: HashMap<Id, usize>,
    kind: SortedMessage,
}

/// The message of a classified frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SortedMessage {
    /// Bytes, if any rule matches.
    Plain,
    /// A case of a union, which may have one for frames that no rule matches.
    Union { other: Option<usize> },
}

impl Sorting {
    /// Reads and merges the rules of a channel, and makes its conversion.
    pub(super) fn open(
        program: &Program,
        channel: &Channel,
        driver: &str,
        rules: &Path,
    ) -> Result<(Sorting, MessageCodec), HostError> {
        let compiled = compiled(rules)?;
        let (codec, kind) = carried(program, channel, driver, rules, &compiled)?;
        let classifier = Classifier::new();
        let filters = compiled.iter().zip((0..=u32::MAX).rev()).map(|(own, priority)| (&own.filter, priority));
        let ids = classifier.insert_all(filters).map_err(|error| {
            HostError::new(HostCode::Content, format!("`{}`: {error}", rules.display())).help(error.help().to_string())
        })?;
        let cases = ids.into_iter().enumerate().map(|(case, id)| (id, case)).collect();
        Ok((Sorting { reader: classifier.reader(), cases, kind }, codec))
    }

    /// The value of a frame; `None` if the program has no case for it.
    pub(super) fn sort(&mut self, frame: &[u8]) -> Option<Value> {
        let found = self.reader.classify(Packet::new(frame)).id();
        let bytes = || Value::Bytes(frame.to_vec());
        match (self.kind, found) {
            (SortedMessage::Plain, found) => found.map(|_| bytes()),
            (SortedMessage::Union { .. }, Some(id)) => Some(Value::Case(*self.cases.get(&id)?, vec![bytes()])),
            (SortedMessage::Union { other }, None) => Some(Value::Case(other?, vec![bytes()])),
        }
    }
}

/// The conversion of a channel of classified frames.
fn carried(
    program: &Program,
    channel: &Channel,
    driver: &str,
    rules: &Path,
    compiled: &[Compiled],
) -> Result<(MessageCodec, SortedMessage), HostError> {
    if !begins_with_union(program, channel) {
        let codec =
            MessageCodec::of_channel(program, channel, driver, &[FieldKind::Bytes], ": bytes[<=1514]`: one frame")?;
        return Ok((codec, SortedMessage::Plain));
    }
    let mut cases: Vec<Case<'_>> = compiled.iter().map(|own| Case::new(&own.rule.name, &[FieldKind::Bytes])).collect();
    let other = cases.len();
    cases.push(Case::new(OTHER, &[FieldKind::Bytes]));
    let example = format!(": union {{ {}: bytes[<=1514], .. }}`: a case for each rule", cases[0].name);
    let codec = MessageCodec::of_channel(program, channel, driver, &[FieldKind::Cases(&cases)], &example)?;
    if let Some(missing) = (0..other).find(|case| !codec.has(*case)) {
        let (name, line, path) = (cases[missing].name, compiled[missing].rule.line, rules.display());
        return Err(HostError::usage(
            HostCode::Type,
            format!("channel `{}` has no case for rule `{name}`, {path}:{line}", channel.name),
        )
        .help(format!("add `{name}: bytes[<=1514]` to its union, or give the rule the name of one of its cases")));
    }
    let kind = SortedMessage::Union { other: codec.has(other).then_some(other) };
    Ok((codec, kind))
}

/// Whether the messages of a channel are a union.
fn begins_with_union(program: &Program, channel: &Channel) -> bool {
    channel.payload.first().is_some_and(|ty| match program.types.get(*ty) {
        Type::Boxed(pool) => matches!(program.types.get(program.types.pool(*pool).content), Type::Union(_)),
        flat => matches!(flat, Type::Union(_)),
    })
}

/// The rules of a file, checked.
fn compiled(path: &Path) -> Result<Vec<Compiled>, HostError> {
    let text = read_text(path)?;
    let pcap = Pcap::load().map_err(|absent| HostError::new(HostCode::Tool, absent.to_string()).help(absent.help()))?;
    let (rules, mut mistakes) = read(&text);
    if mistakes.is_empty() {
        let (compiled, more) = compile(&pcap, &rules, &ETHERNET.into());
        mistakes = more;
        if let Some(own) = compiled.iter().find(|own| own.rule.name == OTHER) {
            return Err(HostError::new(
                HostCode::Content,
                format!("`{}`, line {}: a rule called `{OTHER}`", path.display(), own.rule.line),
            )
            .help("that is the case of frames that no rule matches; give the rule another name"));
        }
        if mistakes.is_empty() && !compiled.is_empty() {
            return Ok(compiled);
        }
    }
    // A rule that can never match is an error: its port would wait forever.
    match mistakes.first() {
        Some(mistake) => Err(shown(path, &text, mistake)),
        None => Err(HostError::new(HostCode::Content, format!("`{}` has no rule", path.display()))
            .help("write a rule in a line, as in `web: tcp port 80`")),
    }
}

/// An error with the line that it is in, and a caret below the location.
fn shown(path: &Path, text: &str, diagnostic: &RuleDiagnostic) -> HostError {
    let LineColumn { line, column } = SourceFile::new("", text).line_column(diagnostic.span.start);
    let content = text.lines().nth(line as usize - 1).unwrap_or_default();
    let place = format!("{}:{line}:{column}", path.display());
    let excerpt = excerpt(line, content, column);
    let error = HostError::new(HostCode::Content, format!("{place}: {}\n{}", diagnostic.message, excerpt.trim_end()));
    match &diagnostic.help {
        Some(help) => error.help(help.clone()),
        None => error,
    }
}
