//! Rules: named filters in the syntax of tcpdump, one per line. Reads them, compiles them with libpcap, and finds the
//! location of an error in an expression, which libpcap does not report.
//!
//! ```text
//! # a comment
//! web:  tcp port 80 or tcp port 443
//! udp port 53                            a rule without a name is named after its line
//! ```

use crate::bpf::Program;
use crate::candidates::{is_keyword, is_of_language};
use crate::ir::Filter;
use crate::pcap::{Pcap, PcapError, Target, divide};
use crate::xdp::{XdpError, XdpProblem};
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
    /// libpcap has no filters for the link type of the packets.
    UnsupportedLinkType,
    /// The program of an expression reads scratch memory that it has not written.
    Undefined,
    /// The rules up to this one are more than an XDP program can have.
    Oversized,
}

impl Code for RuleCode {
    fn name(self) -> &'static str {
        match self {
            RuleCode::MissingExpression => "F0101",
            RuleCode::DuplicateName => "F0102",
            RuleCode::InvalidExpression => "F0103",
            RuleCode::Unsatisfiable => "F0104",
            RuleCode::Unbounded => "F0105",
            RuleCode::UnsupportedLinkType => "F0106",
            RuleCode::Undefined => "F0107",
            RuleCode::Oversized => "F0108",
        }
    }

    fn severity(self) -> Severity {
        match self {
            RuleCode::MissingExpression
            | RuleCode::DuplicateName
            | RuleCode::InvalidExpression
            | RuleCode::Unbounded
            | RuleCode::UnsupportedLinkType
            | RuleCode::Oversized => Severity::Error,
            RuleCode::Unsatisfiable | RuleCode::Undefined => Severity::Warning,
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
    /// The program that libpcap translates it to.
    pub program: Program,
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

/// Compiles rules for packets. An error in a rule does not prevent the check of the others.
pub fn compile(pcap: &Pcap, rules: &[Rule], target: &Target) -> (Vec<Compiled>, Vec<RuleDiagnostic>) {
    let (mut compiled, mut diagnostics) = (Vec::new(), Vec::new());
    let mut unsupported = false;
    for rule in rules {
        match pcap.compile_for(&rule.expression, target) {
            Ok(program) => {
                let filter = Filter::of_program(&program);
                if let Some(at) = program.unwritten_read() {
                    let cause = format!(
                        "the meaning of this expression is undefined: instruction {at} of its program reads scratch \
                         memory that was not written"
                    );
                    let diagnostic = Diagnostic::new(RuleCode::Undefined, rule.span, cause);
                    diagnostics.push(diagnostic.help(
                        "put the part that moves the offsets of what follows, such as `geneve`, into a rule of its own",
                    ));
                }
                if filter.is_empty() {
                    let diagnostic =
                        Diagnostic::new(RuleCode::Unsatisfiable, rule.span, "no packet can match this expression");
                    diagnostics.push(diagnostic.help("look for contradictory tests, or use another link type"));
                }
                compiled.push(Compiled { rule: rule.clone(), program, filter });
            }
            Err(PcapError(message)) if is_about_link_type(&message) => {
                // It would be the same for the other rules.
                if !unsupported {
                    unsupported = true;
                    let diagnostic = Diagnostic::new(RuleCode::UnsupportedLinkType, rule.span, message);
                    diagnostics.push(diagnostic.help(
                        "libpcap has no such filters for these packets: compare their bytes, as in `link[0] = 1`, if it \
                         knows the link type at all",
                    ));
                }
            }
            Err(PcapError(message)) => {
                let at = error_range(pcap, &rule.expression, target, &message);
                let start = rule.span.start + at.start as u32;
                let span = Span { start, end: start + at.len() as u32, ..rule.span };
                let diagnostic = Diagnostic::new(RuleCode::InvalidExpression, span, message);
                diagnostics.push(diagnostic.help("the syntax is described in `man pcap-filter`"));
            }
        }
    }
    (compiled, diagnostics)
}

/// Whether a message of libpcap is about the link type of the packets, not about the expression.
fn is_about_link_type(message: &str) -> bool {
    message.contains("unknown data link type") || message.contains("link-layer type filtering not implemented")
}

impl XdpError {
    /// The error as a diagnostic about the rule of the filter.
    pub fn diagnostic(&self, rule: &Rule) -> RuleDiagnostic {
        let code = match self.problem {
            XdpProblem::Loop => RuleCode::Unbounded,
            XdpProblem::TooLong => RuleCode::Oversized,
        };
        Diagnostic::new(code, rule.span, self.to_string()).help(self.help())
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

/// The byte range of the error in an expression.
fn error_range(pcap: &Pcap, expression: &str, target: &Target, message: &str) -> Range<usize> {
    let understands = |expression: &str| pcap.compile_for(expression, target).is_ok();
    let wrong = divide(expression).and_then(|parts| parts.first_without(&mut |part| understands(part)).cloned());
    // In a long expression, the error is looked for in one of its parts.
    match wrong {
        Some(part) => {
            let range = error_range_of_part(understands, &part.text, message);
            let shifted = |at: usize| part.start + at.saturating_sub(part.inherited);
            shifted(range.start)..shifted(range.end)
        }
        None => error_range_of_part(understands, expression, message),
    }
}

/// The byte range of the error in an expression: the first word after the longest prefix that has a completion. Found
/// by binary search over prefixes.
fn error_range_of_part(understands: impl Fn(&str) -> bool, expression: &str, message: &str) -> Range<usize> {
    // Some messages quote the word in question.
    let quoted = message.split(['\'', '"']).nth(1).filter(|word| !word.is_empty());
    let words = words(expression);
    let word = |quoted: &str| words.iter().find(|own| expression[own.start..own.end] == *quoted).cloned();
    let substring = |quoted: &str| expression.find(quoted).map(|at| at..at + quoted.len());
    if let Some(range) = quoted.and_then(|quoted| word(quoted).or_else(|| substring(quoted))) {
        return range;
    }
    // The search compiles many prefixes: no name in them is to be looked up in the network each time.
    let nameless = without_names(expression, &words);
    let spelled = |count: usize| nameless[..count].concat();
    // An error that depends on the names, or that libpcap does not find, is one of the expression as a whole.
    if understands(&spelled(words.len())) {
        return 0..expression.len();
    }
    let completes = |count: usize| {
        if count == 0 {
            return true;
        }
        let beginning = spelled(count);
        let open = |opens: char, closes: char| {
            beginning.matches(opens).count().saturating_sub(beginning.matches(closes).count())
        };
        let (parentheses, brackets) = (")".repeat(open('(', ')')), "]".repeat(open('[', ']')));
        let completes_with = |ending: String| understands(&format!("{beginning}{ending}{parentheses}"));
        if brackets.is_empty() {
            ENDINGS.iter().any(|ending| completes_with((*ending).to_owned()))
        } else {
            ENDINGS_INSIDE.iter().any(|ending| completes_with(format!("{ending}{brackets} = 0")))
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

/// The words of an expression, each with the blanks before it. Names of hosts and networks, whose addresses libpcap
/// asks the name servers for, are replaced by an address.
fn without_names(expression: &str, words: &[Range<usize>]) -> Vec<String> {
    let mut end = 0;
    let (mut local, mut station) = (false, false);
    let mut spelled = Vec::with_capacity(words.len());
    for word in words {
        let blanks = &expression[std::mem::replace(&mut end, word.end)..word.start];
        let own = &expression[word.clone()];
        let is_name =
            own.starts_with(|first: char| first.is_alphanumeric()) && !is_literal(own) && !is_of_language(own);
        let own = if is_name && !local { "192.0.2.1" } else { own };
        spelled.push(format!("{blanks}{own}"));
        // Names of ports, protocols and stations are looked up in files.
        if is_keyword(own) {
            (local, station) = match own {
                "port" | "portrange" | "proto" | "protochain" => (true, false),
                "ether" | "fddi" | "tr" | "wlan" | "link" => (true, true),
                "src" | "dst" | "host" => (station, station),
                // What follows may have the qualifiers of what is before.
                "and" | "or" | "not" => (local, false),
                _ => (false, false),
            };
        }
    }
    spelled
}

/// Whether a word is a number or an address.
fn is_literal(word: &str) -> bool {
    let decimal = |text: &str| text.chars().all(|own| own.is_ascii_digit() || "./-".contains(own));
    let hexadecimal = |text: &str| text.chars().all(|own| own.is_ascii_hexdigit() || ":./-".contains(own));
    decimal(word) || word.contains(':') && hexadecimal(word) || word.strip_prefix("0x").is_some_and(hexadecimal)
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
    fn names_that_are_asked_for_in_the_network_are_replaced() {
        for (expression, spelled) in [
            ("host a.example and port http", "host 192.0.2.1 and port http"),
            ("port domain or src b", "port domain or src 192.0.2.1"),
            ("port domain or smtp and host 80x", "port domain or smtp and host 192.0.2.1"),
            ("ether src host c and net d", "ether src host c and net 192.0.2.1"),
            ("ip proto e or f", "ip proto e or f"),
            ("host 10.0.0.1 or fe80::1 or net 10.0/16", "host 10.0.0.1 or fe80::1 or net 10.0/16"),
            ("tcp[0x0d] & 2 != 0  and (b)", "tcp[0x0d] & 2 != 0  and (192.0.2.1)"),
        ] {
            assert_eq!(without_names(expression, &words(expression)).concat(), spelled);
        }
    }

    #[test]
    fn words_and_signs_are_separated() {
        let text = "tcp[13]&2 != 0 and é";
        let found: Vec<&str> = words(text).into_iter().map(|word| &text[word]).collect();
        assert_eq!(found, ["tcp", "[", "13", "]", "&", "2", "!", "=", "0", "and", "é"]);
    }
}
