//! `pattern`, `prim` and `lval`.

use super::{Completed, Parser, expressions};
use crate::tree::SyntaxKind;

/// `pattern = prim ["if" expr]`. False if none begins here; then nothing was taken or reported.
pub(super) fn pattern(p: &mut Parser) -> bool {
    if !starts_pattern(p.current()) {
        return false;
    }
    p.nested(|p| {
        let inner = primitive(p);
        if p.at(SyntaxKind::IfKeyword) {
            let marker = p.precede(inner);
            p.bump();
            expressions::expression(p);
            p.complete(marker, SyntaxKind::ConditionalPattern);
        }
    });
    true
}

/// A pattern that is required here.
pub(super) fn expect_pattern(p: &mut Parser) {
    if !pattern(p) {
        let help = match p.current() {
            kind if kind.is_keyword() => Some("a reserved word cannot be a variable"),
            _ => None,
        };
        p.expected("a pattern", help.map(str::to_string));
    }
}

fn starts_pattern(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::Underscore
            | SyntaxKind::Dollar
            | SyntaxKind::EqualEqual
            | SyntaxKind::At
            | SyntaxKind::Minus
            | SyntaxKind::Int
            | SyntaxKind::Char
            | SyntaxKind::String
            | SyntaxKind::TrueKeyword
            | SyntaxKind::FalseKeyword
            | SyntaxKind::Ident
            | SyntaxKind::LeftBrace
            | SyntaxKind::LeftBracket
    )
}

fn primitive(p: &mut Parser) -> Completed {
    let marker = p.start();
    let kind = match p.current() {
        SyntaxKind::Underscore => {
            p.bump();
            SyntaxKind::AnyPattern
        }
        SyntaxKind::Dollar => {
            p.bump();
            if p.at(SyntaxKind::Underscore) {
                let help = "`_` alone takes any value and names nothing".to_string();
                p.error_here("expected a name to declare, found `_`".to_string(), Some(help));
                p.bump_error();
            } else {
                p.expect_name("a name to declare");
            }
            SyntaxKind::DeclarePattern
        }
        SyntaxKind::EqualEqual => {
            p.bump();
            expressions::bit_or(p);
            SyntaxKind::EqualPattern
        }
        SyntaxKind::At => {
            p.bump();
            if p.at(SyntaxKind::Ident) {
                let help = format!("write `==@{}` to match the id of another process", p.current_text());
                p.unexpected("the pattern `@` is the own id and has no name".to_string(), Some(help));
                // Not intended as the own id: no hint from its type.
                SyntaxKind::Error
            } else {
                SyntaxKind::OwnIdPattern
            }
        }
        SyntaxKind::Minus => {
            p.bump();
            p.expect_int("a number");
            SyntaxKind::LiteralPattern
        }
        SyntaxKind::Ident if p.nth(1) == SyntaxKind::TagArrow => {
            p.bump();
            p.bump();
            expect_pattern(p);
            SyntaxKind::TagPattern
        }
        SyntaxKind::Ident => {
            place(p);
            SyntaxKind::PlacePattern
        }
        SyntaxKind::LeftBrace => {
            p.bump();
            p.list(SyntaxKind::RightBrace, "a pattern", pattern_field);
            SyntaxKind::RecordPattern
        }
        SyntaxKind::LeftBracket => {
            p.bump();
            if p.at(SyntaxKind::RightBracket) {
                p.expected("a pattern", Some("an array has at least one element".to_string()));
            }
            p.list(SyntaxKind::RightBracket, "a pattern", pattern);
            SyntaxKind::ArrayPattern
        }
        _ => {
            p.bump();
            SyntaxKind::LiteralPattern
        }
    };
    p.complete(marker, kind)
}

/// `[ ID ":" ] pattern`; false, and nothing read, if there is no pattern.
fn pattern_field(p: &mut Parser) -> bool {
    let marker = p.start();
    if p.at(SyntaxKind::Ident) && p.nth(1) == SyntaxKind::Colon {
        p.bump();
        p.bump();
        expect_pattern(p);
    } else if !pattern(p) {
        p.abandon(marker);
        return false;
    }
    p.complete(marker, SyntaxKind::PatternField);
    true
}

/// `lval = ID { "." ID | "[" index "]" }`; the current token is its name.
pub(super) fn place(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    loop {
        let step = p.start();
        let kind = match p.current() {
            SyntaxKind::Dot => {
                p.bump();
                p.expect_name("the name of a field");
                SyntaxKind::FieldStep
            }
            SyntaxKind::LeftBracket => {
                p.bump();
                expressions::index(p);
                SyntaxKind::IndexStep
            }
            _ => {
                p.abandon(step);
                break;
            }
        };
        p.complete(step, kind);
    }
    p.complete(marker, SyntaxKind::Place);
}
