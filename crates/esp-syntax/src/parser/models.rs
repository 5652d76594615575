//! `model` items: what a verifier explores, and what it abstracts.

use super::{Parser, expressions, items};
use crate::tree::SyntaxKind;

/// `model = "model" ID "{" { clause } "}"`
pub(super) fn model(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::ModelWord);
    p.expect_name("a name for the model");
    p.specification(|p| {
        let opening = p.current_span();
        if p.expect(SyntaxKind::LeftBrace) {
            while !p.at(SyntaxKind::RightBrace) && !p.at_end() && !items::at_certain_item(p) {
                if !clause(p) {
                    p.expected(
                        "a clause or `}`",
                        Some("the clauses are `process`, `slice`, `env`, `ltl`, `bound` and `abstract`".to_string()),
                    );
                    let before = p.position;
                    p.skip_until(|p| p.at(SyntaxKind::Semicolon));
                    if !p.eat(SyntaxKind::Semicolon) && p.position == before {
                        p.bump_error();
                    }
                }
            }
            p.close(opening, "this model");
        }
    });
    p.complete(marker, SyntaxKind::Model);
}

fn clause(p: &mut Parser) -> bool {
    let marker = p.start();
    let kind = match (p.current(), p.current_text()) {
        (SyntaxKind::ProcessKeyword, _) => {
            p.bump();
            p.expect_item_name("the name of a process");
            SyntaxKind::ModelProcess
        }
        (SyntaxKind::Ident, "slice") => {
            p.bump_as(SyntaxKind::SliceWord);
            loop {
                p.expect_item_name("the name of a process");
                if !p.eat(SyntaxKind::Comma) || p.at(SyntaxKind::Semicolon) {
                    break;
                }
            }
            SyntaxKind::ModelSlice
        }
        (SyntaxKind::Ident, "env") => {
            p.bump_as(SyntaxKind::EnvironmentWord);
            if p.at(SyntaxKind::ProcessKeyword) {
                let help = "`env` is followed by a name, as in `env host { .. }`".to_string();
                p.error_here("expected a name for the process, found `process`".to_string(), Some(help));
                p.bump_error();
            }
            items::process_rest(p);
            p.complete(marker, SyntaxKind::ModelEnvironment);
            return true;
        }
        (SyntaxKind::Ident, "ltl") => {
            p.bump_as(SyntaxKind::PropertyWord);
            p.expect_string("a formula, as in `\"[] <> (p@L1)\"`");
            SyntaxKind::ModelProperty
        }
        (SyntaxKind::Ident, "bound") => {
            p.bump_as(SyntaxKind::BoundWord);
            p.expect_item_name("the name of a channel");
            p.expect_int("a number of messages");
            SyntaxKind::ModelBound
        }
        (SyntaxKind::Ident, "abstract") => {
            p.bump_as(SyntaxKind::AbstractWord);
            abstraction(p);
            SyntaxKind::ModelAbstract
        }
        (_, _) => {
            p.abandon(marker);
            return false;
        }
    };
    p.expect_semicolon();
    p.complete(marker, kind);
    true
}

/// `("drop" | "hash" | "forget") path | "range" path expr ".." expr`
fn abstraction(p: &mut Parser) {
    let plain = p.eat_word("drop", SyntaxKind::DropWord)
        || p.eat_word("hash", SyntaxKind::HashWord)
        || p.eat_word("forget", SyntaxKind::ForgetWord);
    if plain {
        path(p);
    } else if p.eat_word("range", SyntaxKind::RangeWord) {
        path(p);
        expressions::expression(p);
        p.expect_help(SyntaxKind::DotDot, Some("a range is written `0..4`, its end is excluded"));
        expressions::expression(p);
    } else {
        p.expected("`drop`, `hash`, `forget` or `range`", None);
    }
}

/// `path = ID {"." (ID | INT)}`
fn path(p: &mut Parser) {
    let marker = p.start();
    p.expect_name("a variable, a part of a message or a function");
    while p.eat(SyntaxKind::Dot) {
        if !p.eat(SyntaxKind::Int) {
            p.expect_name("a name or number");
        }
    }
    p.complete(marker, SyntaxKind::ModelPath);
}
