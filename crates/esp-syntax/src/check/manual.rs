//! Fast paths that are C functions: what the function itself determines must not be specified (E0708).

use super::fastpaths::PathCheck;
use super::names::Entity;
use crate::ast::{self, FastPathSetting};
use crate::diagnostics::{Code, Diagnostic};
use crate::span::Span;
use smol_str::SmolStr;

impl PathCheck<'_, '_> {
    /// The name of the C function; reports what has no meaning in the path's specification.
    pub(super) fn manual(&mut self, name: &[u8], span: Span) -> SmolStr {
        let item = self.item;
        let name = SmolStr::new(String::from_utf8_lossy(name));
        let written = ast::Name { text: name.clone(), span };
        let mut letters = name.chars();
        let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
        if !begins || !letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_') {
            self.refuse(span, format!("`{name}` is not the name of a C function"), "write letters, digits and `_`");
        } else if let Some(Entity::Extern(_)) = self.checker.find(&written).map(|named| named.entity) {
            self.refuse(span, format!("`{name}` is an `extern fn`"), "a fast path has a C function of its own");
        } else if self.checker.fast_paths.iter().any(|other| other.function.as_ref() == Some(&name)) {
            self.refuse(span, format!("`{name}` is another fast path"), "a fast path has a C function of its own");
        }
        for (setting, _, span) in &item.settings {
            match setting {
                FastPathSetting::Bound | FastPathSetting::Bypass => {
                    self.refuse(*span, "a bound for a path in C".to_string(), "let the C function count")
                }
                FastPathSetting::Retries => {}
            }
        }
        for (number, process) in item.processes.iter().enumerate() {
            if let Some(follows) = &process.follows {
                let mut steps = Vec::new();
                super::fastpaths::collect_elements(follows, &mut steps);
                if let Some(step) = steps.first() {
                    self.refuse(step.span, "`follows` in a path in C".to_string(), "leave it out: C decides");
                }
            }
            self.plain(&process.start, number == 0);
            process.exit.iter().for_each(|exit| self.plain(exit, false));
        }
        let lists = || item.processes.iter().map(|process| &process.exit).filter(|exit| !exit.is_empty());
        let longest = lists().map(Vec::len).max().unwrap_or(0);
        if let Some([.., last]) = lists().find(|exit| exit.len() < longest).map(Vec::as_slice) {
            let message = format!("`exit` lists of different lengths, the longest of {longest}");
            self.refuse(
                last.span,
                message,
                "the k-th exit is the k-th element of each list; write one again if need be",
            );
        }
        name
    }

    /// An element that is only a statement.
    fn plain(&mut self, element: &ast::Element, may_have_predicate: bool) {
        if let (Some(predicate), false) = (&element.predicate, may_have_predicate) {
            let help = "only the start of the first process can have one; the C function can return 0";
            self.refuse(predicate.span, "a predicate in a path in C".to_string(), help);
        }
        if element.peer.is_some() || element.yield_to.is_some() {
            let message = "`<=>` or `yield` in a path in C".to_string();
            self.refuse(element.span, message, "leave it out: C decides");
        }
    }

    fn refuse(&mut self, span: Span, message: String, help: &str) {
        self.checker.report(Diagnostic::new(Code::E0708, span, message).help(help));
    }
}
