//! `expr` and what it is made of: precedence climbing over a table of operators.

use super::types::is_int_type;
use super::{Completed, Parser};
use crate::diagnostics::{Code, Diagnostic};
use crate::foreign;
use crate::literal::shorten;
use crate::tree::SyntaxKind;

/// How tightly an infix operator binds; a larger number binds tighter (reference, section 3).
fn binding(kind: SyntaxKind) -> Option<u8> {
    let power = match kind {
        SyntaxKind::PipePipe => 1,
        SyntaxKind::AndAnd => 2,
        kind if is_comparison(kind) => COMPARISON,
        SyntaxKind::Pipe => BIT_OR,
        SyntaxKind::Caret => 5,
        SyntaxKind::Ampersand => 6,
        SyntaxKind::LessLess | SyntaxKind::GreaterGreater => 7,
        SyntaxKind::Plus | SyntaxKind::Minus => 8,
        SyntaxKind::Star | SyntaxKind::Slash | SyntaxKind::Percent => 9,
        _ => return None,
    };
    Some(power)
}

const COMPARISON: u8 = 3;
const BIT_OR: u8 = 4;

fn is_comparison(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::EqualEqual
            | SyntaxKind::BangEqual
            | SyntaxKind::Less
            | SyntaxKind::LessEqual
            | SyntaxKind::Greater
            | SyntaxKind::GreaterEqual
    )
}

/// `expr`; reports it if there is none.
pub(super) fn expression(p: &mut Parser) {
    let from = p.position;
    let Some(number) = parse(p) else { return };
    // No name can follow an expression, except behind a number in parentheses.
    if at_unit(p) && !p.starts_something_new() {
        let help = format!("write `({} {})`", shorten(p.source(from, p.position - 1)), p.current_text());
        p.error_here("a duration is written in parentheses".to_string(), Some(help));
        let marker = p.precede(number);
        unit(p);
        p.complete(marker, SyntaxKind::DurationExpr);
    }
}

/// `expr`, behind which a unit of time may follow.
pub(super) fn amount(p: &mut Parser) {
    parse(p);
}

/// `expr` as an element of a list; reports it if there is none.
pub(super) fn listed(p: &mut Parser) -> bool {
    expression(p);
    true
}

/// `expr`. False if none begins here; then nothing was taken or reported.
pub(super) fn optional_expression(p: &mut Parser) -> bool {
    if !starts_expression(p.current()) {
        return false;
    }
    parse(p);
    true
}

/// `bor`, the operand of a comparison, as `==` in a pattern takes it.
pub(super) fn bit_or(p: &mut Parser) {
    p.nested(|p| operators(p, BIT_OR));
}

/// Whether an expression can begin with this token.
pub(super) fn starts_expression(kind: SyntaxKind) -> bool {
    is_int_type(kind)
        || matches!(
            kind,
            SyntaxKind::Int
                | SyntaxKind::Char
                | SyntaxKind::String
                | SyntaxKind::TrueKeyword
                | SyntaxKind::FalseKeyword
                | SyntaxKind::Ident
                | SyntaxKind::LeftParen
                | SyntaxKind::LeftBrace
                | SyntaxKind::LeftBracket
                | SyntaxKind::At
                | SyntaxKind::Hash
                | SyntaxKind::Bang
                | SyntaxKind::Tilde
                | SyntaxKind::Minus
        )
}

fn parse(p: &mut Parser) -> Option<Completed> {
    p.nested(|p| {
        if p.at(SyntaxKind::Ident) && p.nth(1) == SyntaxKind::TagArrow {
            return Some(tag(p));
        }
        let condition = operators(p, 0)?;
        if !p.at(SyntaxKind::Question) {
            return Some(condition);
        }
        let marker = p.precede(condition);
        p.bump();
        parse(p);
        if p.expect_help(SyntaxKind::Colon, Some("a condition chooses one of two values, `c ? a : b`")) {
            parse(p);
        }
        Some(p.complete_around(marker, SyntaxKind::ConditionalExpr, condition.height))
    })?
}

/// `tag |> e`
fn tag(p: &mut Parser) -> Completed {
    let marker = p.start();
    p.bump();
    p.bump();
    if starts_expression(p.current()) {
        parse(p);
    } else {
        p.expected("a payload", Some("a case without a payload is written `tag |> {}`".to_string()));
    }
    p.complete(marker, SyntaxKind::TagExpr)
}

/// Operands joined by operators that bind at least as tightly as `least`.
fn operators(p: &mut Parser, least: u8) -> Option<Completed> {
    let mut from = p.position;
    let mut left = unary(p)?;
    let mut comparison_before = None;
    // A chain is reported once; a missing operand is a different error.
    let mut chain_reported = false;
    while let Some(power) = binding(p.current()) {
        // In a pattern `== a | == b` has two alternatives; no operand begins with `==`.
        let is_alternative = p.at(SyntaxKind::Pipe) && p.nth(1) == SyntaxKind::EqualEqual;
        if power < least || is_alternative || p.gave_up {
            break;
        }
        if power == COMPARISON {
            if let Some((first, operator)) = comparison_before.filter(|_| !chain_reported) {
                report_chain(p, first, operator);
                chain_reported = true;
            }
            comparison_before = Some((from, p.position));
        }
        let operator = p.position;
        let marker = p.precede(left);
        p.bump();
        let right = p.nested(|p| operators(p, power + 1)).flatten();
        let height = left.height.max(right.map_or(0, |right| right.height));
        left = p.complete_around(marker, SyntaxKind::BinaryExpr, height);
        chain_reported |= p.position == operator + 1;
        if power < COMPARISON {
            chain_reported = false;
            comparison_before = None;
            from = operator + 1;
        }
    }
    Some(left)
}

/// `a < b < c`: the second operator is the current token, `first` the first operand, `operator` the first operator.
fn report_chain(p: &mut Parser, first: usize, operator: usize) {
    let left = shorten(p.source(first, operator - 1));
    let middle = shorten(p.source(operator + 1, p.position - 1));
    let (sign, second) = (p.text_at(operator), p.current_text());
    let help = if p.at(SyntaxKind::EqualEqual) || p.at(SyntaxKind::BangEqual) {
        format!("write `({left} {sign} {middle}) {second} ..`, or join two comparisons with `&&`")
    } else {
        let right = match p.nth(1) {
            SyntaxKind::Ident | SyntaxKind::Int | SyntaxKind::Char => p.text_at(p.position + 1),
            _ => "..",
        };
        format!("write `{left} {sign} {middle} && {middle} {second} {}`", shorten(right))
    };
    let diagnostic = Diagnostic::new(Code::E0202, p.current_span(), "comparisons do not chain")
        .label(p.span_at(operator), "the first comparison")
        .help(help);
    p.report(diagnostic);
}

fn unary(p: &mut Parser) -> Option<Completed> {
    match p.current() {
        SyntaxKind::Bang | SyntaxKind::Tilde | SyntaxKind::Minus => {
            let marker = p.start();
            p.bump();
            p.nested(unary);
            Some(p.complete(marker, SyntaxKind::UnaryExpr))
        }
        _ => {
            let primary = primary(p)?;
            Some(suffixes(p, primary))
        }
    }
}

fn suffixes(p: &mut Parser, mut inner: Completed) -> Completed {
    loop {
        match p.current() {
            SyntaxKind::Dot => {
                let marker = p.precede(inner);
                p.bump();
                if p.at(SyntaxKind::Int) && p.nth(0) == SyntaxKind::Int {
                    p.unexpected(
                        format!("expected the name of a field, found {}", p.found()),
                        Some("ESP has no floating-point numbers, and fields are named, not numbered".to_string()),
                    );
                } else {
                    p.expect_field_name();
                }
                if p.at(SyntaxKind::LeftParen) {
                    let method = p.text_at(p.position - 1);
                    let help = foreign::instead_of_call(method);
                    let help = help.unwrap_or(
                        "a call is written `f(x)`, or `ring.f(x)` of a module: `import \"ring.esp\" as ring;`",
                    );
                    p.error_here(format!("there are no methods, such as `{method}`"), Some(help.to_string()));
                    arguments(p);
                    inner = p.complete_around(marker, SyntaxKind::Error, inner.height);
                    continue;
                }
                inner = p.complete_around(marker, SyntaxKind::FieldExpr, inner.height);
            }
            SyntaxKind::LeftBracket => {
                let marker = p.precede(inner);
                p.bump();
                index(p);
                inner = p.complete_around(marker, SyntaxKind::IndexExpr, inner.height);
            }
            SyntaxKind::ThinArrow if p.nth(1) == SyntaxKind::Ident && p.joins_previous() => {
                let marker = p.precede(inner);
                p.arrow_of_pointer();
                p.expect_field_name();
                inner = p.complete_around(marker, SyntaxKind::FieldExpr, inner.height);
            }
            SyntaxKind::Colon if p.at_path() => {
                let marker = p.precede(inner);
                p.path();
                if p.at(SyntaxKind::LeftParen) {
                    arguments(p);
                }
                inner = p.complete_around(marker, SyntaxKind::Error, inner.height);
            }
            SyntaxKind::Ident if p.at_word("as") && is_int_type(p.nth(1)) => {
                let help = format!("write `{}(e)`", p.text_at(p.position + 1));
                p.error_here("a conversion is written like a call".to_string(), Some(help));
                let marker = p.precede(inner);
                p.bump();
                p.bump();
                inner = p.complete_around(marker, SyntaxKind::Error, inner.height);
            }
            _ => return inner,
        }
        if p.gave_up {
            return inner;
        }
    }
}

/// `index = ".." [expr] | expr [".." [expr]]`, and the `]` after it.
pub(super) fn index(p: &mut Parser) {
    if !p.at(SyntaxKind::DotDot) {
        expression(p);
    }
    if p.eat(SyntaxKind::DotDot) {
        optional_expression(p);
    }
    if !p.at(SyntaxKind::RightBracket) {
        p.missing("`]`", None);
        p.skip_until(|p| p.at(SyntaxKind::Semicolon) || p.starts_something_new());
    }
    p.eat(SyntaxKind::RightBracket);
}

fn primary(p: &mut Parser) -> Option<Completed> {
    let marker = p.start();
    let kind = match p.current() {
        SyntaxKind::Int | SyntaxKind::Char if is_malformed(p) => {
            p.bump();
            SyntaxKind::Error
        }
        SyntaxKind::Int
        | SyntaxKind::Char
        | SyntaxKind::TrueKeyword
        | SyntaxKind::FalseKeyword
        | SyntaxKind::String => {
            p.bump();
            SyntaxKind::Literal
        }
        SyntaxKind::Ident if p.nth(1) == SyntaxKind::TagArrow => {
            p.abandon(marker);
            return Some(tag_as_operand(p));
        }
        SyntaxKind::Ident if p.at_word("not") && is_operand_of_word(p.nth(1)) => {
            p.unexpected("there is no operator `not`".to_string(), Some("write `!`".to_string()));
            p.nested(unary);
            SyntaxKind::Error
        }
        SyntaxKind::Ident => {
            p.bump_name();
            if p.at(SyntaxKind::LeftParen) {
                arguments(p);
                SyntaxKind::CallExpr
            } else {
                SyntaxKind::NameExpr
            }
        }
        kind if is_int_type(kind) => {
            p.bump();
            if p.at(SyntaxKind::RightParen) {
                let ty = p.text_at(p.position - 1);
                p.error_here(
                    "a conversion has its operand in parentheses".to_string(),
                    Some(format!("write `{ty}(e)`")),
                );
                p.complete(marker, SyntaxKind::Error);
                return None;
            }
            if p.expect_help(SyntaxKind::LeftParen, Some("a conversion is written `u8(e)`")) {
                expression(p);
                p.expect(SyntaxKind::RightParen);
            }
            SyntaxKind::ConvertExpr
        }
        SyntaxKind::LeftParen if at_cast(p) => {
            let ty = p.text_at(p.position + 1);
            let help = match p.nth(1) {
                SyntaxKind::BoolKeyword => "write `e != 0`".to_string(),
                _ => format!("write `{ty}(e)`"),
            };
            p.error_here("a conversion has its operand in parentheses".to_string(), Some(help));
            for _ in 0..3 {
                p.bump();
            }
            p.nested(unary);
            SyntaxKind::Error
        }
        SyntaxKind::LeftParen => {
            p.bump();
            amount(p);
            let kind = if unit(p) { SyntaxKind::DurationExpr } else { SyntaxKind::ParenExpr };
            p.expect(SyntaxKind::RightParen);
            kind
        }
        SyntaxKind::At => {
            p.bump();
            if p.at(SyntaxKind::Ident) {
                p.bump_name();
                if p.eat(SyntaxKind::LeftBracket) {
                    expression(p);
                    p.expect(SyntaxKind::RightBracket);
                }
            }
            SyntaxKind::ProcessIdExpr
        }
        SyntaxKind::Hash => {
            p.bump();
            match p.current() {
                SyntaxKind::String => {
                    p.bump();
                    SyntaxKind::Literal
                }
                SyntaxKind::LeftBrace => record(p),
                SyntaxKind::LeftBracket => array(p),
                _ => {
                    p.expected(
                        "a literal behind `#`",
                        Some(
                            "`#` makes a literal mutable: `#\"..\"`, `#{..}`, `#[..]`; a value is made so by `thaw(v)`"
                                .to_string(),
                        ),
                    );
                    SyntaxKind::Error
                }
            }
        }
        SyntaxKind::LeftBrace => record(p),
        SyntaxKind::LeftBracket => array(p),
        _ => {
            p.abandon(marker);
            return missing(p);
        }
    };
    Some(p.complete(marker, kind))
}

/// Whether C's conversion `(u8)e` is here.
fn at_cast(p: &Parser) -> bool {
    let is_type = is_int_type(p.nth(1)) || p.nth(1) == SyntaxKind::BoolKeyword;
    is_type && p.nth(2) == SyntaxKind::RightParen && starts_expression(p.nth(3))
}

/// Whether the lexer has reported this number or character, so that its type is not known: `200ms`, `'word'`.
fn is_malformed(p: &Parser) -> bool {
    let text = p.current_text();
    match p.current() {
        SyntaxKind::Char => !text.starts_with("'\\") && text.chars().count() > 3,
        _ => text.ends_with('s'),
    }
}

/// Whether this token, behind a word that is no operator, can only be its operand.
fn is_operand_of_word(kind: SyntaxKind) -> bool {
    matches!(kind, SyntaxKind::Ident | SyntaxKind::TrueKeyword | SyntaxKind::FalseKeyword)
}

fn at_unit(p: &Parser) -> bool {
    p.at(SyntaxKind::Ident) && matches!(p.current_text(), "ns" | "us" | "ms" | "s")
}

/// The unit of a duration, if there is one here.
pub(super) fn unit(p: &mut Parser) -> bool {
    let is_unit = at_unit(p);
    if is_unit {
        p.bump_as(SyntaxKind::UnitWord);
    }
    is_unit
}

/// `a + tag |> e`: understood, but not allowed.
fn tag_as_operand(p: &mut Parser) -> Completed {
    let help = format!("write `({} |> ..)`", shorten(p.current_text()));
    p.error_here("a tag and its payload need parentheses as an operand".to_string(), Some(help));
    p.nested(|p| tag(p)).unwrap_or(Completed { start: p.events.len() - 1, height: 0 })
}

/// No expression begins here: leaves an empty error node, and takes the token if nothing else could want it.
fn missing(p: &mut Parser) -> Option<Completed> {
    let kind = p.current();
    let before = p.position.checked_sub(1).map(|position| p.text_at(position));
    let help = match kind {
        SyntaxKind::Star if before == Some("*") => Some("there is no `**`: multiply in a loop, or shift 1 to the left"),
        SyntaxKind::Equal if before == Some("..") => {
            Some("a range ends before its second number: write `0..4` for 0 to 3")
        }
        SyntaxKind::Plus => Some("there is no `+` before an operand, and no `++`"),
        SyntaxKind::Star | SyntaxKind::Ampersand => Some("ESP has no pointers"),
        SyntaxKind::Dollar => Some("`$` declares a name in a pattern; here write the name alone"),
        SyntaxKind::Underscore => Some("`_` matches anything in a pattern; it has no value"),
        SyntaxKind::Equal => Some("`==` compares, and there is no assignment inside an expression"),
        SyntaxKind::BoolKeyword => Some("a condition needs no conversion: not 0 is true; or write `e != 0`"),
        SyntaxKind::InKeyword => Some("`in` is a statement: `in(c, x);` assigns `x`, and `in(c, $x);` declares it"),
        SyntaxKind::Less if p.nth(1) == SyntaxKind::Minus => {
            Some("a message is received by a statement: `in(c, x);` assigns `x`, and `in(c, $x);` declares it")
        }
        _ => None,
    };
    p.expected("an expression", help.map(str::to_string));
    let marker = p.start();
    if matches!(kind, SyntaxKind::InKeyword | SyntaxKind::Less) {
        // One mistake: the rest of the statement belongs to it.
        p.skip_until(|p| p.at(SyntaxKind::Semicolon) || p.starts_something_new());
        return Some(p.complete(marker, SyntaxKind::Error));
    }
    let harmless = matches!(
        kind,
        SyntaxKind::Plus
            | SyntaxKind::Star
            | SyntaxKind::Slash
            | SyntaxKind::Percent
            | SyntaxKind::Ampersand
            | SyntaxKind::Dollar
            | SyntaxKind::Underscore
            | SyntaxKind::ErrorToken
    );
    if harmless {
        p.bump();
        if starts_expression(p.current()) && kind != SyntaxKind::Underscore {
            p.nested(|p| operators(p, 0));
        }
    }
    Some(p.complete(marker, SyntaxKind::Error))
}

/// `"(" [list(expr)] ")"`
pub(super) fn arguments(p: &mut Parser) {
    p.bump();
    p.list(SyntaxKind::RightParen, "an expression", listed);
}

/// `"{" [list([ID ":"] expr)] "}"`
fn record(p: &mut Parser) -> SyntaxKind {
    p.bump();
    p.list(SyntaxKind::RightBrace, "an expression", |p| {
        let marker = p.start();
        let has_dot = p.at(SyntaxKind::Dot) && p.nth(1) == SyntaxKind::Ident && p.nth(2) == SyntaxKind::Equal;
        if has_dot || (p.at(SyntaxKind::Ident) && p.nth(1) == SyntaxKind::Equal) {
            let name = p.text_at(p.position + usize::from(has_dot));
            p.error_here(
                format!("the field `{name}` and its value are joined by `:`"),
                Some(format!("write `{name}: e`")),
            );
            if has_dot {
                p.bump_error();
            }
            p.bump();
            p.bump_as(SyntaxKind::Colon);
            expression(p);
        } else if p.at(SyntaxKind::Ident) && p.nth(1) == SyntaxKind::Colon && p.nth(2) != SyntaxKind::Colon {
            p.bump();
            p.bump();
            expression(p);
        } else {
            expression(p);
        }
        p.complete(marker, SyntaxKind::RecordField);
        true
    });
    SyntaxKind::RecordExpr
}

/// `"[" expr (";" expr | {"," expr} [","]) "]"`
fn array(p: &mut Parser) -> SyntaxKind {
    p.bump();
    if p.at(SyntaxKind::RightBracket) {
        p.expected("an expression", Some("an array has at least one element".to_string()));
        p.bump();
        return SyntaxKind::ArrayExpr;
    }
    expression(p);
    if p.eat(SyntaxKind::Semicolon) {
        expression(p);
        p.expect(SyntaxKind::RightBracket);
        return SyntaxKind::RepeatExpr;
    }
    if p.at(SyntaxKind::RightBracket) || p.eat(SyntaxKind::Comma) {
        p.list(SyntaxKind::RightBracket, "an expression", listed);
    } else {
        p.missing("`,`, `;` or `]`", None);
        p.skip_until(|p| p.at(SyntaxKind::Semicolon) || p.starts_something_new());
        p.eat(SyntaxKind::RightBracket);
    }
    SyntaxKind::ArrayExpr
}
