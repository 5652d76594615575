//! Rules: named filters in the syntax of tcpdump, one per line. Reads them, compiles them with libpcap, and finds the
//! location of an error in an expression, which libpcap does not report.
//!
//! ```text
//! # a comment
//! web:  tcp port 80 or tcp port 443
//! udp port 53                            a rule without a name is named after its line
//! ```

use crate::bpf::Program;
use crate::ir::Filter;
use crate::pcap::{Pcap, PcapError};
use crate::xdp::XdpError;
use quaject_diagnostic::span::Span;
use quaject_diagnostic::{Code, Diagnostic, Severity};
use std::collections::HashMap;
use std::ops::Range;

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// The name.
    pub name: String,
    /// The line, from one.
    pub line: usize,
    /// The location of the expression.
    pub span: Span,
    /// The expression.
    pub expression: String,
}

/// The kinds of diagnostics about rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RuleCode {
    /// A name without an expression.
    MissingExpression,
    /// Two rules have one name.
    DuplicateName,
    /// libpcap rejects an expression.
    InvalidExpression,
    /// No packet matches an expression.
    Unsatisfiable,
    /// The program of an expression has a loop, for which no XDP program is generated.
    Unbounded,
}

impl Code for RuleCode {
    fn name(self) -> &'static str {
        match self {
            RuleCode::MissingExpression => "F0101",
            RuleCode::DuplicateName => "F0102",
            RuleCode::InvalidExpression => "F0103",
            RuleCode::Unsatisfiable => "F0104",
            RuleCode::Unbounded => "F0105",
        }
    }

    fn severity(self) -> Severity {
        match self {
            RuleCode::MissingExpression
            | RuleCode::DuplicateName
            | RuleCode::InvalidExpression
            | RuleCode::Unbounded => Severity::Error,
            RuleCode::Unsatisfiable => Severity::Warning,
        }
    }
}

/// A diagnostic about a rule. Its locations are in the first file of a source map.
pub type RuleDiagnostic = Diagnostic<RuleCode>;

/// A compiled rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The rule.
    pub rule: Rule,
    /// The program that libpcap compiled it to; none if libpcap reports that no packet matches.
    pub program: Option<Program>,
    /// The tests of the program.
    pub filter: Filter,
}

/// Reads rules. Their names are unique.
pub fn read(text: &str) -> (Vec<Rule>, Vec<RuleDiagnostic>) {
    let (mut rules, mut diagnostics) = (Vec::new(), Vec::new());
    let mut names: HashMap<String, Span> = HashMap::new();
    for (index, own) in text.lines().enumerate() {
        let line = index + 1;
        let content = own.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let (name, expression) = split_name(content);
        if expression.is_empty() {
            let span = Span::of_slice(text, content);
            let diagnostic = Diagnostic::new(RuleCode::MissingExpression, span, "a name without an expression");
            diagnostics.push(diagnostic.help("write an expression after the name, as in `web: tcp port 80`"));
            continue;
        }
        let span = name.map_or_else(|| Span::of_slice(text, content), |name| Span::of_slice(text, name));
        let name = name.map_or_else(|| format!("line-{line}"), str::to_owned);
        if let Some(first) = names.insert(name.clone(), span) {
            let diagnostic = Diagnostic::new(RuleCode::DuplicateName, span, format!("`{name}` names two rules"));
            diagnostics.push(diagnostic.label(first, "the first rule").help("give each rule a name of its own"));
        }
        rules.push(Rule { name, line, span: Span::of_slice(text, expression), expression: expression.to_owned() });
    }
    (rules, diagnostics)
}

/// A word before a colon and a blank is a name; expressions have no such thing.
fn split_name(line: &str) -> (Option<&str>, &str) {
    let named = line.split_once(':').filter(|(name, rest)| {
        let begins = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
        let word = |character: char| character.is_ascii_alphanumeric() || "_.-".contains(character);
        begins && name.chars().all(word) && (rest.is_empty() || rest.starts_with(char::is_whitespace))
    });
    match named {
        Some((name, rest)) => (Some(name), rest.trim_start()),
        None => (None, line),
    }
}

/// Compiles rules for packets of a link type. An error in a rule does not prevent the check of the others.
pub fn compile(pcap: &Pcap, rules: &[Rule], link_type: i32) -> (Vec<Compiled>, Vec<RuleDiagnostic>) {
    let (mut compiled, mut diagnostics) = (Vec::new(), Vec::new());
    for rule in rules {
        let unsatisfiable = || {
            Diagnostic::new(RuleCode::Unsatisfiable, rule.span, "no packet can match this expression")
                .help("look for contradictory tests, or use another link type")
        };
        match pcap.compile(&rule.expression, link_type) {
            Ok(program) => {
                let filter = Filter::of_program(&program);
                if filter.is_empty() {
                    diagnostics.push(unsatisfiable());
                }
                compiled.push(Compiled { rule: rule.clone(), program: Some(program), filter });
            }
            Err(PcapError(message)) if message.contains("rejects all packets") => {
                diagnostics.push(unsatisfiable());
                compiled.push(Compiled { rule: rule.clone(), program: None, filter: Filter::Any(Vec::new()) });
            }
            Err(PcapError(message)) => {
                let at = error_range(pcap, &rule.expression, link_type, &message);
                let start = rule.span.start + at.start as u32;
                let span = Span { start, end: start + at.len() as u32, ..rule.span };
                let diagnostic = Diagnostic::new(RuleCode::InvalidExpression, span, message);
                diagnostics.push(diagnostic.help("the syntax is described in `man pcap-filter`"));
            }
        }
    }
    (compiled, diagnostics)
}

impl XdpError {
    /// The error as a diagnostic about the rule of the filter.
    pub fn diagnostic(&self, rule: &Rule) -> RuleDiagnostic {
        Diagnostic::new(RuleCode::Unbounded, rule.span, self.to_string()).help(self.help())
    }
}

/// Completions of a prefix of an expression.
const ENDINGS: [&str; 16] = [
    "",
    " ip",
    " 1",
    " = 0",
    " 1 = 0",
    "= 0",
    " 1.2.3.4",
    " host 1.2.3.4",
    " port 1",
    " proto 1",
    " 0:1:2:3:4:5",
    " ::1",
    "/8",
    " 1-2",
    " 1/8",
    " mask 255.0.0.0",
];
/// Completions within an open bracket.
const ENDINGS_INSIDE: [&str; 3] = ["", " 1", "1"];
/// The limit on consecutive correct prefixes that no completion of the list completes.
const MAX_INCOMPLETE: usize = 3;

/// The byte range of the error in an expression: the first word after the longest prefix that has a completion. Found
/// by binary search over prefixes.
fn error_range(pcap: &Pcap, expression: &str, link_type: i32, message: &str) -> Range<usize> {
    // Some messages quote the word in question.
    let quoted = message.split(['\'', '"']).nth(1).filter(|word| !word.is_empty());
    let words = words(expression);
    let word = |quoted: &str| words.iter().find(|own| expression[own.start..own.end] == *quoted).cloned();
    let substring = |quoted: &str| expression.find(quoted).map(|at| at..at + quoted.len());
    if let Some(range) = quoted.and_then(|quoted| word(quoted).or_else(|| substring(quoted))) {
        return range;
    }
    // An expression that only the optimizer rejects is wrong as a whole.
    if pcap.understands(expression, link_type) {
        return 0..expression.len();
    }
    let completes = |count: usize| {
        let Some(last) = count.checked_sub(1).and_then(|last| words.get(last)) else { return true };
        let beginning = &expression[..last.end];
        let open = |opens: char, closes: char| {
            beginning.matches(opens).count().saturating_sub(beginning.matches(closes).count())
        };
        let (parentheses, brackets) = (")".repeat(open('(', ')')), "]".repeat(open('[', ']')));
        let understands = |ending: String| pcap.understands(&format!("{beginning}{ending}{parentheses}"), link_type);
        if brackets.is_empty() {
            ENDINGS.iter().any(|ending| understands((*ending).to_owned()))
        } else {
            ENDINGS_INSIDE.iter().any(|ending| understands(format!("{ending}{brackets} = 0")))
        }
    };
    // The longest prefix with a completion among a prefix and the next few.
    let near = |count: usize| (count..=(count + MAX_INCOMPLETE).min(words.len())).rev().find(|count| completes(*count));
    // Every prefix before the error has such a neighbour, none after it has: `good` has one, `bad` has none.
    let (mut good, mut bad) = (0, words.len() + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match near(middle) {
            Some(longest) => good = longest,
            None => bad = middle,
        }
    }
    words.get(good).cloned().unwrap_or(expression.len()..expression.len())
}

/// The byte ranges of words and signs.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut joins = false;
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        let of_word = character.is_alphanumeric() || "._:/-\\".contains(character);
        match words.last_mut() {
            Some(last) if joins && of_word => last.end = end,
            _ if !character.is_whitespace() => words.push(at..end),
            _ => {}
        }
        joins = of_word;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_before_a_colon_and_a_blank() {
        let text = "# none\n\n web:  tcp port 80\nether host 00:11:22:33:44:55\nhost ::1\n a-b.c: udp\nx:\nweb: ip\n";
        let (rules, diagnostics) = read(text);
        let seen: Vec<_> = rules.iter().map(|rule| (rule.name.as_str(), rule.line, rule.expression.as_str())).collect();
        let expected = [
            ("web", 3, "tcp port 80"),
            ("line-4", 4, "ether host 00:11:22:33:44:55"),
            ("line-5", 5, "host ::1"),
            ("a-b.c", 6, "udp"),
            ("web", 8, "ip"),
        ];
        assert_eq!(seen, expected);
        assert!(rules.iter().all(|rule| text[rule.span.start as usize..rule.span.end as usize] == rule.expression));
        let messages: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.located_message(text)).collect();
        let expected = ["line 7, column 1: a name without an expression", "line 8, column 1: `web` names two rules"];
        assert_eq!(messages, expected);
    }

    #[test]
    fn words_and_signs_are_separated() {
        let text = "tcp[13]&2 != 0 and é";
        let found: Vec<&str> = words(text).into_iter().map(|word| &text[word]).collect();
        assert_eq!(found, ["tcp", "[", "13", "]", "&", "2", "!", "=", "0", "and", "é"]);
    }
}
