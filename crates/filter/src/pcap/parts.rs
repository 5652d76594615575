//! Divides long expressions into parts that libpcap translates one by one: its time grows with the square of the
//! length. `and` and `or` have one precedence in its language and group to the left.
//!
//! ```text
//! host a or host b or .. and (port c or port d or ..)
//! All(Any("host a or host b", "host ..", ..), Any("port c or port d", ..))
//! ```

use crate::candidates::is_keyword;
use std::ops::Range;

/// The length in bytes up to which an expression is translated as a whole.
const MAX_WHOLE_BYTES: usize = 600;
/// The maximum number of terms that are translated together.
const MAX_TERMS: usize = 16;
/// The maximum depth of parentheses that are divided.
const MAX_DEPTH: usize = 32;
/// What changes the meaning of the rest of an expression, which is therefore not divided.
const STATEFUL: &[&str] = &["geneve", "lane", "mpls", "pppoed", "pppoes", "vlan", "vxlan"];

/// How parts are joined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Connective {
    And,
    Or,
}

/// An expression of parts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Parts {
    /// An expression that is translated as a whole.
    Text(PartText),
    /// The negation.
    Not(Box<Parts>),
    /// Parts that are joined by one connective.
    Join(Connective, Vec<Parts>),
}

/// An expression by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PartText {
    pub(crate) text: String,
    /// How many bytes at its beginning are qualifiers that it has from the part before.
    pub(crate) inherited: usize,
    /// Where the bytes after them begin in the divided expression.
    pub(crate) start: usize,
}

/// Divides an expression; none if it is short, or its parts depend on each other.
pub(crate) fn divide(expression: &str) -> Option<Parts> {
    if expression.len() <= MAX_WHOLE_BYTES || expression.contains(['"', '\'', '\\']) {
        return None;
    }
    let tokens = tokens(expression);
    if tokens.iter().any(|token| STATEFUL.contains(&&expression[token.clone()])) {
        return None;
    }
    match (Divider { expression, tokens }).expression(0..usize::MAX, 0)? {
        Parts::Text(_) => None,
        parts => Some(parts),
    }
}

/// The byte ranges of words, connectives and other signs.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut tokens: Vec<Range<usize>> = Vec::new();
    let mut previous = ' ';
    for (at, character) in text.char_indices() {
        let is_word = |character: char| character.is_alphanumeric() || "._:/-".contains(character);
        let joins = is_word(previous) && is_word(character)
            || matches!((previous, character), ('&', '&') | ('|', '|') | ('!', '='));
        match tokens.last_mut() {
            Some(last) if joins && last.end == at => last.end = at + character.len_utf8(),
            _ if !character.is_whitespace() => tokens.push(at..at + character.len_utf8()),
            _ => {}
        }
        previous = character;
    }
    tokens
}

impl Parts {
    /// The first part, in order, for which a predicate does not hold.
    pub(crate) fn first_without(&self, holds: &mut impl FnMut(&str) -> bool) -> Option<&PartText> {
        match self {
            Parts::Text(part) => (!holds(&part.text)).then_some(part),
            Parts::Not(inner) => inner.first_without(holds),
            Parts::Join(_, parts) => parts.iter().find_map(|part| part.first_without(holds)),
        }
    }
}

struct Divider<'e> {
    expression: &'e str,
    tokens: Vec<Range<usize>>,
}

/// Terms between connectives, in the numbers of tokens.
struct Chain {
    terms: Vec<Range<usize>>,
    connectives: Vec<Connective>,
}

impl Divider<'_> {
    fn token(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &self.expression[token.clone()])
    }

    fn text(&self, tokens: &Range<usize>) -> &str {
        &self.expression[self.tokens[tokens.start].start..self.tokens[tokens.end - 1].end]
    }

    /// The parts of some tokens; none if they are no expression.
    fn expression(&self, tokens: Range<usize>, depth: usize) -> Option<Parts> {
        let tokens = tokens.start..tokens.end.min(self.tokens.len());
        let chain = self.chain(tokens)?;
        let mut qualifiers = "";
        let (mut joined, mut at) = (None::<Parts>, 0);
        while at < chain.terms.len() {
            let connective = at.checked_sub(1).map(|before| chain.connectives[before]);
            // As many terms as are joined by the same connective.
            let within = connective.or(chain.connectives.first().copied());
            let run = chain.connectives[at..].iter().take_while(|own| Some(**own) == within).count() + 1;
            let mut end = at + run.min(MAX_TERMS);
            let part = match self.group(&chain.terms[at], depth)? {
                Some(group) => {
                    end = at + 1;
                    group
                }
                None => {
                    // Groups are divided by themselves.
                    let next_group = chain.terms[at + 1..end].iter().position(|term| self.begins_group(term));
                    end = next_group.map_or(end, |count| at + 1 + count);
                    let text = self.text(&(chain.terms[at].start..chain.terms[end - 1].end));
                    // A term without qualifiers has those of the term before.
                    let begins = self.is_expression(&chain.terms[at]);
                    let inherited = if begins { "" } else { qualifiers };
                    if !begins && inherited.is_empty() && at > 0 {
                        return None;
                    }
                    let inherited = if inherited.is_empty() { String::new() } else { format!("{inherited} ") };
                    Parts::Text(PartText {
                        text: format!("{inherited}{text}"),
                        inherited: inherited.len(),
                        start: self.tokens[chain.terms[at].start].start,
                    })
                }
            };
            for term in &chain.terms[at..end] {
                qualifiers = self.qualifiers(term, qualifiers);
            }
            joined = Some(match (joined, connective) {
                (Some(Parts::Join(own, mut parts)), Some(connective)) if own == connective => {
                    parts.push(part);
                    Parts::Join(own, parts)
                }
                (Some(first), Some(connective)) => Parts::Join(connective, vec![first, part]),
                (_, _) => part,
            });
            at = end;
        }
        joined
    }

    /// The terms of some tokens; none if there is an empty one, or parentheses are not balanced.
    fn chain(&self, tokens: Range<usize>) -> Option<Chain> {
        let mut chain = Chain { terms: Vec::new(), connectives: Vec::new() };
        let (mut start, mut open) = (tokens.start, 0_usize);
        for at in tokens.clone() {
            let connective = match self.token(at) {
                "(" | "[" => {
                    open += 1;
                    continue;
                }
                ")" | "]" => {
                    open = open.checked_sub(1)?;
                    continue;
                }
                "and" | "&&" => Connective::And,
                "or" | "||" => Connective::Or,
                _ => continue,
            };
            if open == 0 {
                chain.terms.push(start..at);
                chain.connectives.push(connective);
                start = at + 1;
            }
        }
        chain.terms.push(start..tokens.end);
        (open == 0 && !chain.terms.iter().any(Range::is_empty)).then_some(chain)
    }

    /// Whether a term is, or begins with, a negation or a parenthesis.
    fn begins_group(&self, term: &Range<usize>) -> bool {
        matches!(self.token(term.start), "(" | "not" | "!")
    }

    /// The parts of a term in parentheses, or of a negation of one; inner none for other terms.
    fn group(&self, term: &Range<usize>, depth: usize) -> Option<Option<Parts>> {
        if depth >= MAX_DEPTH || !self.begins_group(term) {
            return Some(None);
        }
        if self.token(term.start) != "(" {
            let inner = term.start + 1..term.end;
            let inner = if inner.is_empty() { return None } else { self.group(&inner, depth + 1)? };
            return Some(inner.map(|inner| Parts::Not(Box::new(inner))));
        }
        let mut open = 0_usize;
        let closes = term.clone().find(|at| {
            match self.token(*at) {
                "(" => open += 1,
                // The first token opens one, and the search ends where none is open.
                ")" => open -= 1,
                _ => {}
            }
            open == 0
        })?;
        // Arithmetic, or hosts and ports in parentheses, which have their qualifiers from elsewhere.
        let inner = term.start + 1..closes;
        if closes + 1 != term.end || inner.is_empty() || !self.is_expression(&inner) {
            return Some(None);
        }
        self.expression(inner, depth + 1).map(Some)
    }

    /// Whether tokens are an expression by themselves, as opposed to one that has its qualifiers from elsewhere.
    fn is_expression(&self, tokens: &Range<usize>) -> bool {
        let first = tokens.clone().map(|at| self.token(at)).find(|token| !matches!(*token, "(" | "not" | "!"));
        first.is_some_and(is_keyword)
    }

    /// The qualifiers of a term, which the terms after it may leave out.
    fn qualifiers<'q>(&'q self, term: &Range<usize>, before: &'q str) -> &'q str {
        let last = term.end - 1;
        match (is_keyword(self.token(last)), last - term.start) {
            (false, 0) => before,
            (false, _) if (term.start..last).all(|at| is_keyword(self.token(at))) => self.text(&(term.start..last)),
            (true | false, _) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parts as text.
    fn shown(parts: &Parts) -> String {
        match parts {
            Parts::Text(part) => format!("<{}>", part.text),
            Parts::Not(inner) => format!("not {}", shown(inner)),
            Parts::Join(connective, parts) => {
                let parts: Vec<String> = parts.iter().map(shown).collect();
                format!("({})", parts.join(&format!(" {connective:?} ")))
            }
        }
    }

    fn divided(expression: &str) -> Option<String> {
        let tokens = tokens(expression);
        Divider { expression, tokens }.expression(0..usize::MAX, 0).map(|parts| shown(&parts))
    }

    #[test]
    fn chains_group_to_the_left() {
        for (expression, parts) in [
            ("ip or tcp", "<ip or tcp>"),
            ("ip or tcp and udp", "(<ip or tcp> And <udp>)"),
            ("ip and tcp || udp or arp", "(<ip and tcp> Or <udp or arp>)"),
            ("(ip or tcp) and not (udp)", "(<ip or tcp> And not <udp>)"),
            ("ip or (tcp and udp) or arp", "(<ip> Or <tcp and udp> Or <arp>)"),
            (
                "(ip[0] & 0xf) << 2 > 20 and host (10.0.0.1 or 10.0.0.2)",
                "<(ip[0] & 0xf) << 2 > 20 and host (10.0.0.1 or 10.0.0.2)>",
            ),
            ("host 10.0.0.1 or (10.0.0.2 or 10.0.0.3)", "(<host 10.0.0.1> Or <host (10.0.0.2 or 10.0.0.3)>)"),
        ] {
            assert_eq!(divided(expression).as_deref(), Some(parts), "{expression}");
        }
        for wrong in ["ip or", "(ip", "ip) or (tcp", "not", ""] {
            assert_eq!(divided(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn terms_without_qualifiers_have_those_before() {
        let hosts: Vec<String> = (0..40).map(|host| format!("10.0.0.{host}")).collect();
        let parts = divided(&format!("src host {}", hosts.join(" or "))).expect("it is a chain");
        assert_eq!(parts.matches("<src host ").count(), 3);
        assert_eq!(parts.matches("10.0.0.").count(), 40);
    }

    #[test]
    fn what_changes_the_rest_is_not_divided() {
        let hosts: Vec<String> = (0..100).map(|host| format!("host 10.0.0.{host}")).collect();
        assert!(divide(&hosts.join(" or ")).is_some());
        assert_eq!(divide(&format!("vlan and {}", hosts.join(" or "))), None);
        assert_eq!(divide("ip or tcp"), None);
    }
}
