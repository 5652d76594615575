//! `fastpath` items and what they are made of ("Fast Paths in Concurrent Programs", section 3).

use super::{Parser, expressions};
use crate::tree::SyntaxKind;

/// `fastpath = "fastpath" ID ["extern" STRING] "{" { ("bound" | "bypass" | "retries") INT ";" } fproc {fproc} "}"`
pub(super) fn fast_path(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::FastPathWord);
    p.expect_name("a name for the fast path");
    let is_manual = p.at(SyntaxKind::ExternKeyword);
    if is_manual {
        let function = p.start();
        p.bump();
        p.expect_string("the name of a C function, as in `\"sum_pairs\"`");
        p.complete(function, SyntaxKind::FastPathExtern);
    }
    p.specification(|p| body(p, is_manual));
    p.complete(marker, SyntaxKind::FastPath);
}

fn body(p: &mut Parser, is_manual: bool) {
    let opening = p.current_span();
    if !p.expect(SyntaxKind::LeftBrace) {
        return;
    }
    let mut any_process = false;
    while !p.at(SyntaxKind::RightBrace) && !p.at_end() && !super::items::at_certain_item(p) {
        match p.current() {
            SyntaxKind::ProcessKeyword => {
                any_process = true;
                process(p, is_manual);
            }
            SyntaxKind::Ident if setting(p.current_text()).is_some() => {
                let kind = setting(p.current_text()).expect("checked by the guard of this arm");
                if any_process {
                    p.error_here(
                        format!("`{}` follows a process", p.current_text()),
                        Some("`bound`, `bypass` and `retries` precede the processes".to_string()),
                    );
                }
                let marker = p.start();
                p.bump_as(kind);
                p.expect_int("a number");
                p.expect_semicolon();
                p.complete(marker, SyntaxKind::FastPathSetting);
            }
            _ => {
                p.expected("`process`, `bound`, `bypass` or `retries`", None);
                skip(p, |p| p.at(SyntaxKind::ProcessKeyword));
            }
        }
    }
    if !any_process {
        p.expected("`process`", Some("a fast path has at least one process, the first one triggers it".to_string()));
    }
    p.close(opening, "this fast path");
}

/// Recovers from an error: skips to where `stop` holds or past a `;`, at least one token.
fn skip(p: &mut Parser, stop: impl Fn(&Parser) -> bool) {
    let before = p.position;
    p.skip_until(|p| p.at(SyntaxKind::Semicolon) || stop(p));
    if !p.eat(SyntaxKind::Semicolon) && p.position == before {
        p.bump_error();
    }
}

fn setting(word: &str) -> Option<SyntaxKind> {
    match word {
        "bound" => Some(SyntaxKind::BoundWord),
        // `decline` and `settle` are the earlier words, which the formatter replaces.
        "bypass" | "decline" => Some(SyntaxKind::BypassWord),
        "retries" | "settle" => Some(SyntaxKind::RetriesWord),
        _ => None,
    }
}

/// The fields of a process, in their required order.
const FIELDS: [&str; 4] = ["statement", "start", "follows", "exit"];

fn field_number(p: &Parser) -> Option<usize> {
    match p.current() {
        SyntaxKind::Ident | SyntaxKind::ExitKeyword => FIELDS.iter().position(|field| *field == p.current_text()),
        _ => None,
    }
}

/// `fproc`; in a path that is written in C, the statements are optional.
fn process(p: &mut Parser, is_manual: bool) {
    let marker = p.start();
    p.bump();
    p.expect_item_name("the name of a process");
    replica(p);
    let opening = p.current_span();
    if p.expect(SyntaxKind::LeftBrace) {
        let mut seen = [false; FIELDS.len()];
        while !p.at(SyntaxKind::RightBrace) && !p.at_end() && !super::items::at_certain_item(p) {
            if p.at(SyntaxKind::ProcessKeyword) {
                break;
            }
            let Some(number) = field_number(p) else {
                p.expected("`statement`, `start`, `follows`, `exit` or `}`", None);
                skip(p, |p| field_number(p).is_some() || p.at(SyntaxKind::ProcessKeyword));
                continue;
            };
            if seen[number] {
                p.error_here(format!("a second `{}`", FIELDS[number]), Some("join the two into one".to_string()));
            } else if let Some(later) = (number + 1..FIELDS.len()).find(|later| seen[*later]) {
                p.error_here(
                    format!("`{}` follows `{}`", FIELDS[number], FIELDS[later]),
                    Some("the order is `statement`, `start`, `follows`, `exit`".to_string()),
                );
            }
            seen[number] = true;
            field(p, number);
        }
        if let Some(missing) = (usize::from(is_manual)..2).find(|required| !seen[*required]) {
            let help = match is_manual {
                true => "`start` is needed, `statement` and `exit` can be omitted",
                false => "`statement` and `start` are needed, `follows` and `exit` can be omitted",
            };
            p.expected(&format!("`{}`", FIELDS[missing]), Some(help.to_string()));
        }
        p.close(opening, "this process");
    }
    p.complete(marker, SyntaxKind::FastPathProcess);
}

/// `["[" INT "]"]`
fn replica(p: &mut Parser) {
    if p.at(SyntaxKind::LeftBracket) {
        let marker = p.start();
        p.bump();
        p.expect_int("the number of a replica");
        p.expect(SyntaxKind::RightBracket);
        p.complete(marker, SyntaxKind::Replica);
    }
}

fn field(p: &mut Parser, number: usize) {
    let marker = p.start();
    let kind = match FIELDS[number] {
        "statement" => {
            p.bump_as(SyntaxKind::StatementWord);
            elements(p, "a statement", |p| {
                let item = p.start();
                if !statement_ref(p) {
                    p.abandon(item);
                    return false;
                }
                if p.eat_word("as", SyntaxKind::AsWord) {
                    p.expect_name("a short name");
                }
                p.complete(item, SyntaxKind::StatementItem);
                true
            });
            SyntaxKind::StatementList
        }
        "start" => {
            p.bump_as(SyntaxKind::StartWord);
            if !element(p) {
                missing_element(p);
            }
            SyntaxKind::StartField
        }
        "follows" => {
            p.bump_as(SyntaxKind::FollowsWord);
            choice(p);
            SyntaxKind::FollowsField
        }
        _ => {
            p.bump();
            elements(p, "a statement", element);
            SyntaxKind::ExitField
        }
    };
    p.expect_semicolon();
    p.complete(marker, kind);
}

/// `list(x)`, up to a `;` that is not taken.
fn elements(p: &mut Parser, what: &str, mut element: impl FnMut(&mut Parser) -> bool) {
    loop {
        if !element(p) {
            p.expected(what, None);
            return;
        }
        if !p.eat(SyntaxKind::Comma) || p.at(SyntaxKind::Semicolon) {
            return;
        }
    }
}

fn missing_element(p: &mut Parser) {
    p.expected("a statement", Some("a statement is a channel, an alias or a label such as `#1`".to_string()));
}

/// `sref = ID ["/" ("in" | "out") ["@" INT]] | "#" (INT | ID)`
fn statement_ref(p: &mut Parser) -> bool {
    let marker = p.start();
    match p.current() {
        SyntaxKind::Hash => {
            p.bump();
            if !p.eat(SyntaxKind::Int) && !p.eat(SyntaxKind::Ident) {
                p.expected("a label's number or name", None);
            }
        }
        SyntaxKind::Ident => {
            p.bump();
            if p.eat(SyntaxKind::Slash) {
                if !p.eat(SyntaxKind::InKeyword) && !p.eat(SyntaxKind::OutKeyword) {
                    p.missing("`in` or `out`", Some("the second receive on `c` is `c/in@2`"));
                }
                if p.eat(SyntaxKind::At) {
                    p.expect_int("a number, counted from 1 in the program's text");
                }
            }
        }
        _ => {
            p.abandon(marker);
            return false;
        }
    }
    p.complete(marker, SyntaxKind::StatementRef);
    true
}

/// `elem = sref { "?" "(" expr ")" | "<=>" sref | "yield" ID ["[" INT "]"] }`, each at most once. A `?` after it
/// that is not its predicate is left to the caller.
fn element(p: &mut Parser) -> bool {
    let marker = p.start();
    if !statement_ref(p) {
        p.abandon(marker);
        return false;
    }
    let (mut predicate, mut peer, mut yield_to) = (false, false, false);
    loop {
        let part = p.start();
        let (seen, kind) = match p.current() {
            SyntaxKind::Question if p.nth(1) == SyntaxKind::LeftParen && !predicate => {
                p.bump();
                p.bump();
                expressions::expression(p);
                p.expect(SyntaxKind::RightParen);
                (&mut predicate, SyntaxKind::Predicate)
            }
            SyntaxKind::DoubleArrow => {
                p.bump();
                if !statement_ref(p) {
                    missing_element(p);
                }
                (&mut peer, SyntaxKind::Peer)
            }
            SyntaxKind::YieldKeyword => {
                p.bump();
                p.expect_item_name("the name of a process");
                replica(p);
                (&mut yield_to, SyntaxKind::YieldTo)
            }
            _ => {
                p.abandon(part);
                break;
            }
        };
        if *seen {
            p.error_here("said twice about the same statement".to_string(), Some("leave one of them out".to_string()));
        }
        *seen = true;
        p.complete(part, kind);
    }
    p.complete(marker, SyntaxKind::Element);
    true
}

/// `regex = seq {"|" seq}`
fn choice(p: &mut Parser) {
    p.nested(|p| {
        let marker = p.start();
        sequence(p);
        if !p.at(SyntaxKind::Pipe) {
            p.abandon(marker);
            return;
        }
        while p.eat(SyntaxKind::Pipe) {
            sequence(p);
        }
        p.complete(marker, SyntaxKind::Choice);
    });
}

/// `seq = rep {rep}`
fn sequence(p: &mut Parser) {
    let marker = p.start();
    let mut any = false;
    while repetition(p) {
        any = true;
    }
    if !any {
        let found_or = match p.current() {
            SyntaxKind::PipePipe => Some("a choice is written with one `|`".to_string()),
            _ => Some("a path is made of statements, `(..)`, `|`, `*`, `+`, `?` and `{n,m}`".to_string()),
        };
        p.expected("a statement or `(`", found_or);
    }
    p.complete(marker, SyntaxKind::Sequence);
}

/// `rep = ( elem | "(" regex ")" ) ["*" | "+" | "?" | "{" INT "," INT "}"]`
fn repetition(p: &mut Parser) -> bool {
    let marker = p.start();
    if p.at(SyntaxKind::LeftParen) {
        let group = p.start();
        p.bump();
        choice(p);
        p.expect(SyntaxKind::RightParen);
        p.complete(group, SyntaxKind::Group);
    } else if !element(p) {
        p.abandon(marker);
        return false;
    }
    match p.current() {
        SyntaxKind::Star | SyntaxKind::Plus | SyntaxKind::Question => p.bump(),
        SyntaxKind::LeftBrace => {
            p.bump();
            p.expect_int("the least number of times");
            p.expect(SyntaxKind::Comma);
            p.expect_int("the largest number of times");
            p.expect(SyntaxKind::RightBrace);
        }
        _ => {
            p.abandon(marker);
            return true;
        }
    }
    p.complete(marker, SyntaxKind::Repetition);
    if matches!(p.current(), SyntaxKind::Star | SyntaxKind::Plus | SyntaxKind::Question | SyntaxKind::LeftBrace) {
        let message = format!("expected a statement or `;`, found {}", p.found());
        p.unexpected(message, Some("one repetition is enough; put parentheses around for more".to_string()));
    }
    true
}
