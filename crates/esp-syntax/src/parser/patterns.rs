//! `pattern`, its alternatives, `prim` and `lval`.

use super::{Completed, Parser, expressions};
use crate::tree::SyntaxKind;

/// `pattern = prim {"|" prim} ["if" expr]`. False if none begins here; then nothing was taken or reported.
pub(super) fn pattern(p: &mut Parser) -> bool {
    if !starts_pattern(p.current()) {
        return false;
    }
    p.nested(|p| {
        let inner = alternatives(p);
        condition(p, inner);
    });
    true
}

/// `["if" expr]` behind a pattern.
fn condition(p: &mut Parser, inner: Completed) {
    if p.at(SyntaxKind::IfKeyword) {
        let marker = p.precede(inner);
        p.bump();
        expressions::expression(p);
        p.complete(marker, SyntaxKind::ConditionalPattern);
    }
}

/// `prim {"|" prim}`
fn alternatives(p: &mut Parser) -> Completed {
    let first = primitive(p);
    if !at_alternative(p) {
        return first;
    }
    let marker = p.precede(first);
    while at_alternative(p) {
        p.bump();
        if starts_pattern(p.current()) {
            p.nested(primitive);
        } else {
            p.expected("a pattern", Some("alternatives are written `1 | 2`".to_string()));
        }
    }
    p.complete(marker, SyntaxKind::Alternatives)
}

/// Whether another alternative follows; `||` is reported and taken as `|`.
fn at_alternative(p: &mut Parser) -> bool {
    if p.at(SyntaxKind::PipePipe) && starts_pattern(p.nth(1)) {
        p.error_here(
            "alternatives of a pattern are separated by `|`, found `||`".to_string(),
            Some("write `|`".to_string()),
        );
        return true;
    }
    p.at(SyntaxKind::Pipe)
}

/// A pattern that is required here.
pub(super) fn expect_pattern(p: &mut Parser) {
    if !pattern(p) {
        let help = match p.current() {
            SyntaxKind::Ampersand | SyntaxKind::Star => {
                Some("there are no pointers: `n` assigns a variable, `$n` declares one")
            }
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
            | SyntaxKind::LeftParen
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
        SyntaxKind::Minus | SyntaxKind::Int | SyntaxKind::Char => {
            p.abandon(marker);
            return number_or_range(p);
        }
        SyntaxKind::Ident if p.nth(p.name_length()) == SyntaxKind::DotDot => {
            p.abandon(marker);
            return number_or_range(p);
        }
        SyntaxKind::LeftParen => {
            p.bump();
            expect_pattern(p);
            p.expect(SyntaxKind::RightParen);
            SyntaxKind::ParenPattern
        }
        SyntaxKind::Ident if p.nth(1) == SyntaxKind::TagArrow => {
            p.bump();
            p.bump();
            payload(p);
            SyntaxKind::TagPattern
        }
        SyntaxKind::Ident => {
            place(p);
            if p.at_path() {
                p.path();
                SyntaxKind::Error
            } else {
                SyntaxKind::PlacePattern
            }
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

/// `prim ["if" expr]`: alternatives of a payload are in parentheses, for `|` separates those of the whole union.
fn payload(p: &mut Parser) {
    if starts_pattern(p.current()) {
        p.nested(|p| {
            let inner = primitive(p);
            condition(p, inner);
        });
    } else {
        expect_pattern(p);
    }
}

/// `number [".." number]`
fn number_or_range(p: &mut Parser) -> Completed {
    let first = number(p);
    if !p.at(SyntaxKind::DotDot) {
        return first;
    }
    let marker = p.precede(first);
    p.bump();
    if p.eat(SyntaxKind::Equal) {
        p.error_here(
            "the end of a range is excluded, and there is no `..=`".to_string(),
            Some("write the number after the last one, as in `0..10` for 0 to 9".to_string()),
        );
    }
    match p.current() {
        SyntaxKind::Minus | SyntaxKind::Int | SyntaxKind::Char | SyntaxKind::Ident => {
            number(p);
        }
        _ => p.expected("the end of the range", Some("a range is written `0..10`, its end is excluded".to_string())),
    }
    p.complete(marker, SyntaxKind::RangePattern)
}

/// `["-"] INT | CHAR | ID`, the last as an end of a range.
fn number(p: &mut Parser) -> Completed {
    let marker = p.start();
    if p.at(SyntaxKind::Ident) {
        place(p);
        return p.complete(marker, SyntaxKind::PlacePattern);
    }
    if p.eat(SyntaxKind::Minus) {
        p.expect_int("a number");
    } else {
        p.bump();
    }
    p.complete(marker, SyntaxKind::LiteralPattern)
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
    p.bump_name();
    loop {
        let step = p.start();
        let kind = match p.current() {
            SyntaxKind::Dot => {
                p.bump();
                p.expect_field_name();
                SyntaxKind::FieldStep
            }
            SyntaxKind::LeftBracket => {
                p.bump();
                expressions::index(p);
                SyntaxKind::IndexStep
            }
            SyntaxKind::ThinArrow if p.nth(1) == SyntaxKind::Ident && p.joins_previous() => {
                p.arrow_of_pointer();
                p.expect_field_name();
                SyntaxKind::FieldStep
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
