//! Rules: named filters in tcpdump's syntax, one a line. Reads them, has libpcap compile them, and finds the place in an
//! expression that libpcap refuses, which libpcap does not report.
//!
//! ```text
//! # a comment
//! web:  tcp port 80 or tcp port 443
//! udp port 53                            without a name it is called by its line
//! ```

use crate::bpf::Program;
use crate::ir::Filter;
use crate::pcap::{Pcap, PcapError};
use std::collections::HashMap;

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// What it is called.
    pub name: String,
    /// Its line, from one.
    pub line: usize,
    /// The column at which the expression begins, in characters from one.
    pub column: usize,
    /// The expression.
    pub expression: String,
}

/// How bad something is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Severity {
    /// The rule cannot be used.
    Error,
    /// It can, but hardly means what was meant.
    Warning,
}

/// Something wrong with a rule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mistake {
    /// How bad it is.
    pub severity: Severity,
    /// The line, from one.
    pub line: usize,
    /// The column, in characters from one.
    pub column: usize,
    /// The cause.
    pub message: String,
    /// The way out.
    pub help: &'static str,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.line, self.column, self.message)
    }
}

impl std::error::Error for Mistake {}

/// A rule that can be used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Compiled {
    /// The rule.
    pub rule: Rule,
    /// What libpcap made of it; none if it says that nothing matches.
    pub program: Option<Program>,
    /// What that was taken apart into.
    pub filter: Filter,
}

/// Reads rules. Names are given once.
pub fn read(text: &str) -> (Vec<Rule>, Vec<Mistake>) {
    let (mut rules, mut mistakes) = (Vec::new(), Vec::new());
    let mut names: HashMap<String, usize> = HashMap::new();
    for (index, own) in text.lines().enumerate() {
        let line = index + 1;
        let content = own.trim();
        if content.is_empty() || content.starts_with('#') {
            continue;
        }
        let (name, expression) = split_name(content);
        let before = own.len() - own.trim_start().len() + (content.len() - expression.len());
        let column = own[..before].chars().count() + 1;
        if expression.is_empty() {
            mistakes.push(Mistake {
                severity: Severity::Error,
                line,
                column,
                message: "a name without an expression".to_owned(),
                help: "write an expression behind the name, as in `web: tcp port 80`",
            });
            continue;
        }
        let name = name.map_or_else(|| format!("line-{line}"), str::to_owned);
        if let Some(first) = names.insert(name.clone(), line) {
            mistakes.push(Mistake {
                severity: Severity::Error,
                line,
                column: 1,
                message: format!("`{name}` is the name of the rule in line {first} too"),
                help: "give each rule a name of its own",
            });
        }
        rules.push(Rule { name, line, column, expression: expression.to_owned() });
    }
    (rules, mistakes)
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

/// Compiles rules for packets of a link type. All are checked, also after an error in one.
pub fn compile(pcap: &Pcap, rules: &[Rule], link_type: i32) -> (Vec<Compiled>, Vec<Mistake>) {
    let (mut compiled, mut mistakes) = (Vec::new(), Vec::new());
    for rule in rules {
        let outcome = pcap.compile(&rule.expression, link_type);
        let mistake = |severity, at: usize, message: String, help| Mistake {
            severity,
            line: rule.line,
            column: rule.column + at,
            message,
            help,
        };
        let never = || {
            let message = "no packet can match this".to_owned();
            mistake(Severity::Warning, 0, message, "look for tests that contradict each other, or another link type")
        };
        match outcome {
            Ok(program) => {
                let filter = Filter::of_program(&program);
                if filter.is_empty() {
                    mistakes.push(never());
                }
                compiled.push(Compiled { rule: rule.clone(), program: Some(program), filter });
            }
            Err(PcapError(message)) if message.contains("rejects all packets") => {
                mistakes.push(never());
                compiled.push(Compiled { rule: rule.clone(), program: None, filter: Filter::Any(Vec::new()) });
            }
            Err(PcapError(message)) => {
                let at = place(pcap, &rule.expression, link_type, &message);
                let help = "the syntax is that of `man pcap-filter`";
                mistakes.push(mistake(Severity::Error, at, message, help));
            }
        }
    }
    (compiled, mistakes)
}

/// What could follow a beginning of an expression, so that it is whole.
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
/// The same behind a bracket that is still open, before it is closed.
const ENDINGS_INSIDE: [&str; 3] = ["", " 1", "1"];
/// So many beginnings one after the other may be without an ending in the list, though nothing is wrong with them.
const UNLISTED: usize = 3;

/// Where libpcap stops to understand an expression, in characters: the first word behind the longest beginning that can be
/// completed.
fn place(pcap: &Pcap, expression: &str, link_type: i32, message: &str) -> usize {
    // Some messages quote what they are about.
    let quoted = message.split(['\'', '"']).nth(1).filter(|word| !word.is_empty());
    let words = words(expression);
    let whole = |quoted: &str| words.iter().find(|own| expression[own.start..own.end] == *quoted).map(|own| own.start);
    if let Some(at) = quoted.and_then(|word| whole(word).or_else(|| expression.find(word))) {
        return expression[..at].chars().count();
    }
    // What only the optimizer refuses is wrong as a whole.
    if pcap.understands(expression, link_type) {
        return 0;
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
    // The longest of a beginning and a few after it that can be completed.
    let near = |count: usize| (count..=(count + UNLISTED).min(words.len())).rev().find(|count| completes(*count));
    // Up to what is wrong, there is always one; behind it, none. `good` has one, `bad` has none.
    let (mut good, mut bad) = (0, words.len() + 1);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match near(middle) {
            Some(longest) => good = longest,
            None => bad = middle,
        }
    }
    let at = words.get(good).map_or(expression.len(), |wrong| wrong.start);
    expression[..at].chars().count()
}

/// Words and signs, by their bytes.
fn words(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut words: Vec<std::ops::Range<usize>> = Vec::new();
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
        let (rules, mistakes) =
            read("# none\n\n web:  tcp port 80\nether host 00:11:22:33:44:55\nhost ::1\n a-b.c: udp\nx:\nweb: ip\n");
        let seen: Vec<_> =
            rules.iter().map(|rule| (rule.name.as_str(), rule.line, rule.column, rule.expression.as_str())).collect();
        let expected = [
            ("web", 3, 8, "tcp port 80"),
            ("line-4", 4, 1, "ether host 00:11:22:33:44:55"),
            ("line-5", 5, 1, "host ::1"),
            ("a-b.c", 6, 9, "udp"),
            ("web", 8, 6, "ip"),
        ];
        assert_eq!(seen, expected);
        let lines: Vec<_> = mistakes.iter().map(|mistake| (mistake.line, mistake.message.as_str())).collect();
        assert_eq!(lines, [(7, "a name without an expression"), (8, "`web` is the name of the rule in line 3 too")]);
    }

    #[test]
    fn words_and_signs_are_distinguished() {
        let text = "tcp[13]&2 != 0 and é";
        let found: Vec<&str> = words(text).into_iter().map(|word| &text[word]).collect();
        assert_eq!(found, ["tcp", "[", "13", "]", "&", "2", "!", "=", "0", "and", "é"]);
    }
}
