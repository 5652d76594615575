//! `type` and `vtype`.

use super::Parser;
use crate::diagnostics::{Code, Diagnostic};
use crate::foreign;
use crate::tree::SyntaxKind;

/// Whether a token is the name of an integer type.
pub(super) fn is_int_type(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::IntKeyword
            | SyntaxKind::U8Keyword
            | SyntaxKind::U16Keyword
            | SyntaxKind::U32Keyword
            | SyntaxKind::U64Keyword
            | SyntaxKind::I8Keyword
            | SyntaxKind::I16Keyword
            | SyntaxKind::I32Keyword
            | SyntaxKind::I64Keyword
    )
}

/// Whether a type begins here that is not an expression as well, as a name and a conversion are.
pub(super) fn begins_type_only(p: &Parser) -> bool {
    match p.current() {
        SyntaxKind::BoolKeyword
        | SyntaxKind::BytesKeyword
        | SyntaxKind::PidKeyword
        | SyntaxKind::ArrayKeyword
        | SyntaxKind::RecordKeyword
        | SyntaxKind::UnionKeyword => true,
        kind if is_int_type(kind) => p.nth(1) != SyntaxKind::LeftParen,
        _ => at_enumeration(p),
    }
}

/// `type`, where `#` is not allowed. False if none begins here; then nothing is consumed or reported.
pub(super) fn ty(p: &mut Parser) -> bool {
    if p.at(SyntaxKind::Hash) {
        p.report(
            Diagnostic::new(Code::E0307, p.current_span(), "`#` is allowed only on a variable")
                .help("messages and parts are immutable; use `freeze`"),
        );
        p.bump_error();
    }
    p.nested(immutable).unwrap_or(true)
}

/// `vtype = ["#"] type`
pub(super) fn value_type(p: &mut Parser) -> bool {
    let marker = p.start();
    let mutable = p.eat(SyntaxKind::Hash);
    if p.nested(immutable).unwrap_or(true) || mutable {
        p.complete(marker, SyntaxKind::ValueType);
        return true;
    }
    p.abandon(marker);
    false
}

/// A type that is required here.
pub(super) fn expect_type(p: &mut Parser) {
    if !ty(p) {
        missing_type(p);
    }
}

/// A type, with or without `#`, that is required here.
pub(super) fn expect_value_type(p: &mut Parser) {
    if !value_type(p) {
        missing_type(p);
    }
}

fn missing_type(p: &mut Parser) {
    if matches!(p.current(), SyntaxKind::Star | SyntaxKind::Ampersand) {
        let help = "there are no pointers: variables and messages hold values, and are copied".to_string();
        p.unexpected(format!("expected a type, found {}", p.found()), Some(help));
        p.nested(immutable);
        return;
    }
    let help = match p.current() {
        SyntaxKind::LeftBrace => foreign::instead_of_type("struct"),
        SyntaxKind::LeftBracket => Some("an array's type is `array[N] of T`"),
        SyntaxKind::ChannelKeyword => Some("a procedure or template has its channels as `in c: T` or `out c(T, U)`"),
        _ => None,
    };
    if let Some(help) = help {
        p.expected("a type", Some(help.to_string()));
        match p.current() {
            SyntaxKind::LeftBrace => p.skip_braces(),
            SyntaxKind::LeftBracket => {
                p.bump_error();
                p.skip_until(|p| p.at(SyntaxKind::RightBracket));
                p.bump_error();
                p.nested(immutable);
            }
            _ => {
                p.bump_error();
                p.skip_until(|p| p.at(SyntaxKind::Comma));
            }
        }
        return;
    }
    p.expected(
        "a type",
        Some("a type is `int`, `u8` .. `i64`, `bool`, `bytes[<=N]`, `array[N] of T`, `pid(P)` or a name".to_string()),
    );
}

fn immutable(p: &mut Parser) -> bool {
    let marker = p.start();
    let kind = match p.current() {
        kind if is_int_type(kind) => {
            p.bump();
            SyntaxKind::IntType
        }
        SyntaxKind::BoolKeyword => {
            p.bump();
            SyntaxKind::BoolType
        }
        SyntaxKind::Ident if at_enumeration(p) => {
            enumeration(p);
            SyntaxKind::EnumType
        }
        SyntaxKind::Ident if matches!(p.current_text(), "struct" | "class" | "variant") && at_aggregate(p) => {
            let help = foreign::instead_of_type(p.current_text()).map(str::to_string);
            p.expected("a type", help);
            p.bump();
            p.eat(SyntaxKind::Ident);
            p.skip_braces();
            SyntaxKind::Error
        }
        SyntaxKind::Ident => {
            p.expect_item_name("the name of a type");
            SyntaxKind::NamedType
        }
        SyntaxKind::BytesKeyword => {
            p.bump();
            bound(p);
            SyntaxKind::BytesType
        }
        SyntaxKind::PidKeyword => {
            p.bump();
            if p.expect(SyntaxKind::LeftParen) {
                if p.at(SyntaxKind::RightParen) {
                    p.expected("the name of a process", None);
                }
                p.list(SyntaxKind::RightParen, "the name of a process", |p| {
                    let is_name = p.at(SyntaxKind::Ident);
                    if is_name {
                        p.expect_item_name("the name of a process");
                    }
                    is_name
                });
            }
            SyntaxKind::PidType
        }
        SyntaxKind::ArrayKeyword => {
            p.bump();
            if p.eat(SyntaxKind::LeftBracket) {
                super::expressions::expression(p);
                p.expect(SyntaxKind::RightBracket);
            }
            if !p.eat_word("of", SyntaxKind::OfWord) {
                p.missing("`of`", None);
            }
            expect_type(p);
            SyntaxKind::ArrayType
        }
        SyntaxKind::RecordKeyword => {
            fields(p, SyntaxKind::RecordType, "a field, as in `size: int`");
            SyntaxKind::RecordType
        }
        SyntaxKind::UnionKeyword => {
            fields(p, SyntaxKind::UnionType, "a tag, as in `eos` or `send: sendT`");
            SyntaxKind::UnionType
        }
        _ => {
            p.abandon(marker);
            return false;
        }
    };
    p.complete(marker, kind);
    true
}

/// Whether the word here begins `struct {` or `struct name {`.
fn at_aggregate(p: &Parser) -> bool {
    p.nth(1) == SyntaxKind::LeftBrace || (p.nth(1) == SyntaxKind::Ident && p.nth(2) == SyntaxKind::LeftBrace)
}

/// `enum` is a word only before `{` or an integer type.
fn at_enumeration(p: &Parser) -> bool {
    p.at_word("enum") && (p.nth(1) == SyntaxKind::LeftBrace || is_int_type(p.nth(1)))
}

/// `"enum" [inttype] "{" list(ID ["=" expr] | "else" ID) "}"`, `else` last.
fn enumeration(p: &mut Parser) {
    const WHAT: &str = "a case, as in `ok` or `busy = 4`";
    p.bump_as(SyntaxKind::EnumWord);
    if is_int_type(p.current()) {
        let marker = p.start();
        p.bump();
        p.complete(marker, SyntaxKind::IntType);
    }
    if !p.expect(SyntaxKind::LeftBrace) {
        return;
    }
    if p.at(SyntaxKind::RightBrace) {
        p.expected(WHAT, Some("at least one is needed".to_string()));
    }
    let mut has_other = false;
    p.list(SyntaxKind::RightBrace, WHAT, |p| {
        if !p.at(SyntaxKind::Ident) && !p.at(SyntaxKind::ElseKeyword) {
            return false;
        }
        if has_other {
            let help = "it takes every code that has no name, so it is the last case and the only one of its kind";
            p.error_here("a case follows the `else` case".to_string(), Some(help.to_string()));
        }
        let marker = p.start();
        if p.eat(SyntaxKind::ElseKeyword) {
            has_other = true;
            p.expect_name("a name for every other code");
        } else {
            p.bump();
            if p.eat(SyntaxKind::Equal) {
                super::expressions::expression(p);
            } else if p.at(SyntaxKind::Colon) {
                let help = "a case of an `enum` has a code, `busy = 4`; a choice with values is a `union`";
                p.expected("`=`, `,` or `}`", Some(help.to_string()));
            }
        }
        p.complete(marker, SyntaxKind::EnumCase);
        true
    });
}

fn bound(p: &mut Parser) {
    const HELP: &str = "`bytes` needs its largest length, as in `bytes[<=1514]`";
    if !p.at(SyntaxKind::LeftBracket) {
        p.missing("`[`", Some(HELP));
        return;
    }
    p.bump();
    if !p.eat(SyntaxKind::LessEqual) {
        p.expected("`<=`", Some(HELP.to_string()));
    }
    super::expressions::expression(p);
    p.expect(SyntaxKind::RightBracket);
}

/// The braces of a record (every part has a type) or union (a part can go without).
fn fields(p: &mut Parser, aggregate: SyntaxKind, what: &str) {
    p.bump();
    p.eat_word("of", SyntaxKind::OfWord);
    if !p.expect(SyntaxKind::LeftBrace) {
        return;
    }
    if p.at(SyntaxKind::RightBrace) {
        p.expected(what, Some("at least one is needed".to_string()));
    }
    p.list(SyntaxKind::RightBrace, what, |p| {
        if p.nth(1) == SyntaxKind::Ident && (is_int_type(p.current()) || p.at(SyntaxKind::BoolKeyword)) {
            let help = format!("write `{}: {}`, and a `,` between fields", p.text_at(p.position + 1), p.current_text());
            p.expected(what, Some(help));
            p.skip_until(|_| false);
            return true;
        }
        if !p.at(SyntaxKind::Ident) {
            return false;
        }
        let marker = p.start();
        p.bump();
        if p.at(SyntaxKind::Colon) {
            p.bump();
            expect_type(p);
        } else if aggregate == SyntaxKind::RecordType {
            p.missing("`:` and the field's type", Some("a field is written `size: int`"));
        }
        p.complete(marker, SyntaxKind::TypeField);
        true
    });
}
