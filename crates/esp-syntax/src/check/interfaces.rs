//! C interfaces: each entry is a pattern of its channel's messages (reference, section 5, "C side").

use super::body::{Body, BodyKind};
use super::coverage::{ANY, Static, TooComplex, message_witness, too_complex};
use super::literals::counted;
use super::names::Checker;
use crate::ast;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, Boundary, ChannelId, Direction};
use crate::span::Span;
use crate::types::TypeId;
use rustc_hash::FxHashMap;

/// Checks every interface.
pub(super) fn check(checker: &mut Checker) {
    let mut bound: FxHashMap<ChannelId, Span> = FxHashMap::default();
    for item in checker.interface_items.clone() {
        let Some(channel) = checker.channel(&item.channel) else { continue };
        if let Some(first) = bound.insert(channel, item.name.span) {
            let message = format!("channel `{}` has two interfaces", item.channel.text);
            let diagnostic = Diagnostic::new(Code::E0204, item.name.span, message).label(first, "the first is here");
            checker.report(diagnostic);
        }
        check_direction(checker, item, channel);
        check_interface(checker, item, channel);
    }
}

/// `in` and `out` are the C program's: it sends on an `external out` channel.
fn check_direction(checker: &mut Checker, item: &ast::Interface, channel: ChannelId) {
    let entry = &checker.channels[channel.0 as usize].hir;
    let (wanted, word) = match item.direction {
        Direction::Out => (Boundary::FromEnvironment, "out"),
        Direction::In => (Boundary::ToEnvironment, "in"),
    };
    if entry.boundary == wanted {
        return;
    }
    let message = match entry.boundary {
        Boundary::Internal => format!("`{}` is not external, `{word}` of the C program is not possible", entry.name),
        Boundary::ToEnvironment => format!("`{}` is read by the environment, its `out` is not possible", entry.name),
        Boundary::FromEnvironment => {
            format!("`{}` is written by the environment, its `in` is not possible", entry.name)
        }
    };
    let diagnostic = Diagnostic::new(Code::E0408, item.channel.span, message)
        .label(entry.span, format!("`{}` is declared here", entry.name))
        .help(format!("declare it `external {word}`"));
    checker.report(diagnostic);
}

fn check_interface<'a>(checker: &mut Checker<'a>, item: &'a ast::Interface, channel: ChannelId) {
    let hir = &checker.channels[channel.0 as usize].hir;
    let (types, declared, name) = (hir.payload.clone(), hir.span, hir.name.clone());
    let errors = checker.errors;
    let mut entries: Vec<hir::InterfaceEntry> = Vec::new();
    let mut names: FxHashMap<&str, Span> = FxHashMap::default();
    for entry in &item.entries {
        if let Some(first) = names.insert(&entry.name.text, entry.name.span)
            && !entry.name.text.is_empty()
        {
            let message = format!("entry `{}` is declared twice", entry.name.text);
            let diagnostic = Diagnostic::new(Code::E0204, entry.name.span, message).label(first, "first declared here");
            checker.report(diagnostic);
        }
        if entry.patterns.len() != types.len() {
            let given = entry.patterns.len();
            let message = format!("channel `{name}` carries {}, {given} given", counted(types.len(), "value"));
            let diagnostic =
                Diagnostic::new(Code::E0404, entry.span, message).label(declared, format!("`{name}` is declared here"));
            checker.report(diagnostic);
        }
        let mut body = Body::new(checker, BodyKind::Interface);
        let patterns = body.patterns(&entry.patterns, &types);
        let locals = body.hir_locals();
        entries.push(hir::InterfaceEntry { name: entry.name.text.clone(), locals, patterns });
    }
    if errors == checker.errors {
        check_entries(checker, item, &entries, &types);
    }
    checker.interfaces.push(hir::Interface { name: item.name.text.clone(), channel, entries, span: item.name.span });
}

/// Entries are disjoint; what the C program has to take, they also cover.
fn check_entries(checker: &mut Checker, item: &ast::Interface, entries: &[hir::InterfaceEntry], types: &[TypeId]) {
    let rows: Vec<Vec<Static>> = entries
        .iter()
        .map(|entry| entry.patterns.iter().map(|pattern| checker.static_part(pattern, None)).collect())
        .collect();
    let channel = &item.channel.text;
    for (index, row) in rows.iter().enumerate() {
        if rows.len() * index > checker.coverage_budget {
            return too_complex(checker, Code::E0405, item.entries[index].name.span);
        }
        for (other, earlier) in rows[..index].iter().enumerate() {
            let shared: Option<Vec<_>> = earlier
                .iter()
                .zip(row)
                .zip(types)
                .map(|((left, right), ty)| checker.shared(left, right, *ty))
                .collect();
            let Some(witness) = shared else { continue };
            let witness = if witness.is_empty() { "{}".to_string() } else { message_witness(witness).to_string() };
            let (first, second) = (&item.entries[other].name, &item.entries[index].name);
            let message = format!("`{}` and `{}` can both take `{witness}` from `{channel}`", first.text, second.text);
            let diagnostic = Diagnostic::new(Code::E0405, second.span, message)
                .label(first.span, format!("`{}` takes it here", first.text))
                .help("make the patterns disjoint");
            checker.report(diagnostic);
            return;
        }
    }
    if item.direction == Direction::Out || types.is_empty() {
        return;
    }
    let query = vec![&ANY; types.len()];
    match checker.uncovered(rows.iter().map(|row| row.iter().collect()).collect(), &query, types) {
        Ok(None) => {}
        Ok(Some(witness)) => {
            let message = format!("no entry takes `{}` from `{channel}`", message_witness(witness));
            let help = "add an entry for it: the C program must take whatever is sent";
            checker.report(Diagnostic::new(Code::E0406, item.name.span, message).help(help));
        }
        Err(TooComplex) => too_complex(checker, Code::E0406, item.name.span),
    }
}
