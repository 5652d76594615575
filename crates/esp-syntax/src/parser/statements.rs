//! Blocks, declarations, statements and communication.

use super::{Parser, expressions, items, patterns, types};
use crate::diagnostics::{Code, Diagnostic};
use crate::foreign;
use crate::literal::shorten;
use crate::tree::SyntaxKind;

/// A block that is required here; `help` is for the case that only the braces are missing.
pub(super) fn expect_block(p: &mut Parser, help: &str) {
    if p.at(SyntaxKind::LeftBrace) {
        p.nested(block);
    } else {
        p.missing("`{`", Some(help));
    }
}

/// `block = "{" { label | decl | const | stmt } "}"`
fn block(p: &mut Parser) {
    let marker = p.start();
    let opening = p.current_span();
    p.bump();
    while !p.at(SyntaxKind::RightBrace) && !p.at_end() {
        if items::at_certain_item(p) {
            break;
        }
        block_item(p);
    }
    p.close(opening, "this block");
    p.complete(marker, SyntaxKind::Block);
}

fn block_item(p: &mut Parser) {
    match p.current() {
        SyntaxKind::Hash => label(p),
        SyntaxKind::VarKeyword => variables(p),
        SyntaxKind::ConstKeyword | SyntaxKind::ConstantKeyword => items::constant(p),
        SyntaxKind::Semicolon => {
            p.unexpected(
                "expected a statement, found `;`".to_string(),
                Some("leave out the `;`, or write `{ }` for a statement that does nothing".to_string()),
            );
        }
        SyntaxKind::ElseKeyword => {
            p.error_here(
                "this `else` belongs to no `if`".to_string(),
                Some("an `else` follows the statement or block of its `if` at once".to_string()),
            );
            let marker = p.start();
            p.bump();
            p.complete(marker, SyntaxKind::Error);
        }
        _ => {
            if !statement(p) {
                not_a_statement(p);
            }
        }
    }
}

/// `label = "#" (INT | ID)`
fn label(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    if !p.eat(SyntaxKind::Int) && !p.eat(SyntaxKind::Ident) {
        p.expected("a label's number or name", Some("a label is written `#1` or `#retry`".to_string()));
    }
    p.complete(marker, SyntaxKind::Label);
    if p.at(SyntaxKind::Colon) || p.at(SyntaxKind::Semicolon) {
        let message = format!("expected a statement, found {}", p.found());
        p.unexpected(message, Some("nothing follows a label".to_string()));
    }
}

/// `decl = "var" vdecl {"," vdecl} ";"`
fn variables(p: &mut Parser) {
    let marker = p.start();
    p.bump();
    loop {
        let declarator = p.start();
        p.type_before_name("var");
        p.expect_name("a name for the variable");
        if p.eat(SyntaxKind::Colon) {
            types::expect_value_type(p);
        }
        if p.eat(SyntaxKind::Equal) {
            expressions::expression(p);
        }
        p.complete(declarator, SyntaxKind::Declarator);
        if !p.eat(SyntaxKind::Comma) {
            break;
        }
    }
    p.expect_semicolon();
    p.complete(marker, SyntaxKind::Var);
}

/// A statement that is required here, such as the one after `if (c)`.
fn expect_statement(p: &mut Parser, what: &str) {
    match p.current() {
        SyntaxKind::Hash => {
            let from = p.position;
            let is_named = matches!(p.nth(1), SyntaxKind::Int | SyntaxKind::Ident);
            let text = match labelled(p) {
                Some(end) => shorten(p.source(from, end)),
                None if is_named => p.source(from, from + 1).to_string(),
                None => "#1".to_string(),
            };
            let span = p.current_span().to(p.span_at(from + 1));
            let diagnostic =
                Diagnostic::new(Code::E0203, span, "a label needs a block here").help(format!("write `{{ {text} }}`"));
            p.report(diagnostic);
            let marker = p.start();
            label(p);
            if is_named && !p.starts_something_new() {
                statement(p);
            }
            p.complete(marker, SyntaxKind::Block);
        }
        SyntaxKind::VarKeyword | SyntaxKind::ConstKeyword | SyntaxKind::ConstantKeyword => {
            p.error_here(
                "a declaration needs a block here".to_string(),
                Some("put it and the statements that use it between `{` and `}`".to_string()),
            );
            let marker = p.start();
            block_item(p);
            p.complete(marker, SyntaxKind::Error);
        }
        SyntaxKind::Semicolon => {
            p.unexpected(
                format!("expected {what}, found `;`"),
                Some("write `{ }` for a statement that does nothing".to_string()),
            );
        }
        _ => {
            if !statement(p) {
                p.expected(what, None);
                if !p.at(SyntaxKind::RightBrace) && !p.starts_something_new() {
                    recover(p);
                }
            }
        }
    }
}

/// The `;` that ends the statement behind the label that is here, if it is on the same line.
fn labelled(p: &Parser) -> Option<usize> {
    let mut ahead = 2;
    loop {
        match p.nth(ahead) {
            SyntaxKind::Semicolon => break,
            SyntaxKind::LeftBrace | SyntaxKind::RightBrace | SyntaxKind::EndOfFile => return None,
            _ => ahead += 1,
        }
    }
    let end = p.position + ahead;
    (ahead > 2 && !p.source(p.position, end).contains('\n')).then_some(end)
}

/// `stmt`. False if none begins here; then nothing was taken or reported.
fn statement(p: &mut Parser) -> bool {
    p.nested(statement_once).unwrap_or(true)
}

fn statement_once(p: &mut Parser) -> bool {
    if p.at(SyntaxKind::LeftBrace) {
        block(p);
        return true;
    }
    let marker = p.start();
    let kind = match p.current() {
        SyntaxKind::IfKeyword => if_statement(p),
        SyntaxKind::WhileKeyword => {
            p.bump();
            if !p.at(SyntaxKind::LeftBrace) {
                condition(
                    p,
                    "`while` takes its condition in parentheses, `while (c) ..`; without one it is `while { .. }`",
                );
            }
            expect_statement(p, "a statement");
            SyntaxKind::WhileStmt
        }
        SyntaxKind::ForKeyword => for_statement(p),
        SyntaxKind::MatchKeyword => match_statement(p),
        SyntaxKind::BreakKeyword => leave(p, SyntaxKind::BreakStmt),
        SyntaxKind::ContinueKeyword => leave(p, SyntaxKind::ContinueStmt),
        SyntaxKind::YieldKeyword => word(p, SyntaxKind::YieldStmt),
        SyntaxKind::ReturnKeyword => {
            p.bump();
            if p.at(SyntaxKind::Semicolon) {
                if !p.in_procedure {
                    p.expected(
                        "an expression",
                        Some("a `fn` has a result; a process ends behind its last statement".to_string()),
                    );
                }
            } else {
                expressions::expression(p);
            }
            p.expect_semicolon();
            SyntaxKind::ReturnStmt
        }
        SyntaxKind::ExitKeyword => with_argument(p, SyntaxKind::ExitStmt, "`exit` takes a status, as in `exit(0);`"),
        SyntaxKind::AssertKeyword => {
            assertion(p);
            SyntaxKind::AssertStmt
        }
        SyntaxKind::InKeyword | SyntaxKind::OutKeyword | SyntaxKind::AltKeyword | SyntaxKind::PriKeyword => {
            communicate(p)
        }
        SyntaxKind::Ident => match p.nth(1) {
            SyntaxKind::InKeyword | SyntaxKind::OutKeyword | SyntaxKind::AltKeyword | SyntaxKind::PriKeyword
                if p.at_word("idle") =>
            {
                p.bump_as(SyntaxKind::IdleWord);
                communicate(p)
            }
            _ if p.nth(p.name_length()) == SyntaxKind::LeftParen => call(p),
            SyntaxKind::Colon if matches!(p.nth(2), SyntaxKind::WhileKeyword | SyntaxKind::ForKeyword) => {
                let name = p.current_text();
                p.error_here(format!("`{name}:` is no label"), Some(format!("write `#{name}` before the loop")));
                p.bump();
                p.bump();
                SyntaxKind::Label
            }
            SyntaxKind::Colon if p.nth(2) == SyntaxKind::Colon => {
                p.bump();
                p.path();
                recover(p);
                SyntaxKind::Error
            }
            SyntaxKind::Colon => {
                let name = p.current_text();
                let help = match p.nth(2) {
                    SyntaxKind::Equal => format!("a variable is declared with `var {name} = ..;`"),
                    _ => format!("a variable is declared with `var {name}: ..;`"),
                };
                undeclared(p, help)
            }
            _ => assignment(p),
        },
        _ => {
            p.abandon(marker);
            return false;
        }
    };
    p.complete(marker, kind);
    true
}

/// A declaration in the form of another language, at the name: reports it, and declares the name, so that its uses are
/// no mistakes.
fn undeclared(p: &mut Parser, help: String) -> SyntaxKind {
    let declarator = p.start();
    p.bump();
    p.expected("an assignment or a call", Some(help));
    if p.at(SyntaxKind::Colon) {
        p.bump();
        types::value_type(p);
    }
    if p.eat(SyntaxKind::Equal) {
        expressions::expression(p);
    }
    p.complete(declarator, SyntaxKind::Declarator);
    p.expect_semicolon();
    SyntaxKind::Var
}

fn word(p: &mut Parser, kind: SyntaxKind) -> SyntaxKind {
    p.bump();
    p.expect_semicolon();
    kind
}

/// `("break" | "continue") [INT | ID] ";"`
fn leave(p: &mut Parser, kind: SyntaxKind) -> SyntaxKind {
    let keyword = p.current_text();
    p.bump();
    if p.at(SyntaxKind::Hash) {
        p.error_here(
            format!("`{keyword}` names its loop without `#`"),
            Some(format!("write `{keyword} {};`", p.text_at(p.position + 1))),
        );
        p.bump_error();
    }
    if !p.starts_something_new() {
        let _ = p.eat(SyntaxKind::Int) || p.eat(SyntaxKind::Ident);
    }
    p.expect_semicolon();
    kind
}

fn with_argument(p: &mut Parser, kind: SyntaxKind, help: &str) -> SyntaxKind {
    p.bump();
    condition(p, help);
    p.expect_semicolon();
    kind
}

/// `"assert" "(" expr ["," STRING] ")" ";"`
pub(super) fn assertion(p: &mut Parser) {
    const HELP: &str = "`assert` takes a condition, as in `assert(n > 0);`";
    p.bump();
    condition_with(p, HELP, |p| {
        if p.eat(SyntaxKind::Comma) {
            p.expect_string("the message, as in `assert(n > 0, \"no frame is empty\");`");
        }
    });
    p.expect_semicolon();
}

/// `"(" expr ")"`
fn condition(p: &mut Parser, help: &str) {
    condition_with(p, help, |_| {});
}

/// `"(" expr rest ")"`
fn condition_with(p: &mut Parser, help: &str, rest: impl FnOnce(&mut Parser)) {
    if p.at(SyntaxKind::LeftParen) {
        p.bump();
        expressions::expression(p);
        rest(p);
        if !p.eat(SyntaxKind::RightParen) {
            let help = match p.current() {
                SyntaxKind::Equal => Some("write `==` to compare"),
                _ => None,
            };
            p.missing("`)`", help);
            p.skip_until(|p| p.at(SyntaxKind::Semicolon) || p.starts_something_new() || p.at(SyntaxKind::LeftBrace));
            p.eat(SyntaxKind::RightParen);
        }
    } else {
        p.missing("`(`", Some(help));
        expressions::optional_expression(p);
        if p.at_word("then") || p.at_word("do") {
            p.bump_error();
        }
    }
}

fn if_statement(p: &mut Parser) -> SyntaxKind {
    p.bump();
    condition(p, "`if` takes its condition in parentheses, `if (c) ..`");
    expect_statement(p, "a statement");
    if p.eat(SyntaxKind::ElseKeyword) {
        expect_statement(p, "a statement");
    }
    SyntaxKind::IfStmt
}

fn for_statement(p: &mut Parser) -> SyntaxKind {
    const HELP: &str = "a `for` is written `for i in 0..4 { .. }`, its end is excluded";
    p.bump();
    if p.at(SyntaxKind::LeftParen) {
        c_counter(p, HELP);
        if !p.at(SyntaxKind::LeftBrace) {
            statement(p);
            return SyntaxKind::ForStmt;
        }
    } else {
        p.expect_name("a name for the counter");
        if p.expect_help(SyntaxKind::InKeyword, Some(HELP)) {
            range(p, HELP);
        }
    }
    expect_block(p, "the body of a `for` is a block");
    SyntaxKind::ForStmt
}

/// `expr ".." expr`, the range of a `for`.
fn range(p: &mut Parser, help: &str) {
    if p.at_word("range") && p.nth(1) == SyntaxKind::LeftParen {
        p.expected("the first number", Some(help.to_string()));
        p.skip_until(|p| p.at(SyntaxKind::LeftBrace));
        return;
    }
    expressions::expression(p);
    if p.expect_help(SyntaxKind::DotDot, Some(help)) {
        if matches!(p.current(), SyntaxKind::Equal | SyntaxKind::Dot) {
            let message = format!("there is no `..{}`", p.current_text());
            p.unexpected(message, Some("a range ends before its second number: write `0..4` for 0 to 3".to_string()));
        }
        expressions::expression(p);
    }
    if p.at(SyntaxKind::Ident) {
        let help = "a `for` counts by one: compute the number in its body, as in `2 * i`, or use `while`";
        p.expected("`{`", Some(help.to_string()));
        p.skip_until(|p| p.at(SyntaxKind::LeftBrace));
    }
}

/// `(int i = 0; i < 4; i++)`: reports it, and takes the name of the counter, so that its uses are no mistakes.
fn c_counter(p: &mut Parser, help: &str) {
    p.expected("a name", Some(help.to_string()));
    p.bump_error();
    if p.nth(1) == SyntaxKind::Ident {
        p.bump_error();
    }
    p.eat(SyntaxKind::Ident);
    p.skip_until(|p| p.at(SyntaxKind::LeftBrace));
    if p.at(SyntaxKind::RightParen) {
        p.bump_error();
    }
}

fn match_statement(p: &mut Parser) -> SyntaxKind {
    p.bump();
    expressions::expression(p);
    let opening = p.current_span();
    if !p.expect_help(SyntaxKind::LeftBrace, Some("a `match` is written `match e { pattern => statement .. }`")) {
        return SyntaxKind::MatchStmt;
    }
    if p.at_word("case") && !matches!(p.nth(1), SyntaxKind::FatArrow | SyntaxKind::TagArrow | SyntaxKind::Pipe) {
        let help =
            "an arm is written `1 => statement`, and `_ => statement` takes the rest; none goes on with the next";
        p.error_here("`match` has no `case`".to_string(), Some(help.to_string()));
        p.skip_until(|_| false);
    }
    let mut has_wrong_arrow = false;
    while !p.at(SyntaxKind::RightBrace) && !p.at_end() && !items::at_certain_item(p) {
        let before = p.position;
        let marker = p.start();
        if patterns::pattern(p) {
            let help = match p.current() {
                SyntaxKind::Comma => "alternatives are written `1 | 2 => statement`",
                _ => "an arm is written `pattern => statement`",
            };
            if p.at(SyntaxKind::Colon) || p.at(SyntaxKind::ThinArrow) {
                if !has_wrong_arrow {
                    p.missing("`=>`", Some(help));
                }
                has_wrong_arrow = true;
                p.bump_error();
                expect_statement(p, "a statement");
            } else if p.expect_help(SyntaxKind::FatArrow, Some(help)) {
                expect_statement(p, "a statement");
            } else {
                p.skip_until(|p| p.at(SyntaxKind::FatArrow) || p.at(SyntaxKind::Semicolon));
                if p.eat(SyntaxKind::FatArrow) {
                    expect_statement(p, "a statement");
                } else {
                    p.eat(SyntaxKind::Semicolon);
                }
            }
            p.complete(marker, SyntaxKind::MatchArm);
            if p.at(SyntaxKind::Comma) {
                p.unexpected(
                    "expected a pattern or `}`, found `,`".to_string(),
                    Some("leave out the `,`: arms follow each other".to_string()),
                );
            }
            continue;
        }
        p.abandon(marker);
        let help = p.at(SyntaxKind::ElseKeyword).then(|| "`_ => statement` takes the rest".to_string());
        p.expected("a pattern or `}`", help);
        p.skip_until(|p| p.at(SyntaxKind::FatArrow) || p.at(SyntaxKind::Semicolon) || p.starts_something_new());
        if p.eat(SyntaxKind::FatArrow) {
            statement(p);
        } else {
            p.eat(SyntaxKind::Semicolon);
        }
        if p.position == before {
            p.bump_error();
        }
    }
    p.close(opening, "this `match`");
    SyntaxKind::MatchStmt
}

/// `comm`, after an optional `idle`.
fn communicate(p: &mut Parser) -> SyntaxKind {
    match p.current() {
        SyntaxKind::PriKeyword | SyntaxKind::AltKeyword => {
            p.eat(SyntaxKind::PriKeyword);
            if p.expect_help(SyntaxKind::AltKeyword, Some("`pri` is a prefix of `alt` only")) {
                alternatives(p);
            }
            SyntaxKind::AltStmt
        }
        _ => {
            operation(p);
            match p.current() {
                SyntaxKind::Semicolon => p.bump(),
                SyntaxKind::LeftBrace => {
                    p.nested(block);
                }
                _ => {
                    p.missing("`;` or `{`", None);
                    if !p.starts_something_new() {
                        recover(p);
                    }
                }
            }
            SyntaxKind::PlainStmt
        }
    }
}

/// `inop` or `outop`; the current token is `in` or `out`.
fn operation(p: &mut Parser) {
    let marker = p.start();
    let kind = if p.at(SyntaxKind::InKeyword) { SyntaxKind::InOperation } else { SyntaxKind::OutOperation };
    p.bump();
    let help = match kind {
        SyntaxKind::InOperation => "a receive is written `in(channel, pattern, ..)`",
        _ => "a send is written `out(channel, value, ..)`",
    };
    if p.expect_help(SyntaxKind::LeftParen, Some(help)) {
        p.expect_item_name("the name of a channel");
        if p.at(SyntaxKind::LeftBracket) {
            items::channel_array(p);
        }
        if p.eat(SyntaxKind::Comma) {
            if p.at(SyntaxKind::RightParen) {
                let what = if kind == SyntaxKind::InOperation { "a pattern" } else { "an expression" };
                p.expected(what, Some("leave out the `,` if the channel carries no value".to_string()));
            }
            match kind {
                SyntaxKind::InOperation => p.list(SyntaxKind::RightParen, "a pattern", patterns::pattern),
                _ => p.list(SyntaxKind::RightParen, "an expression", expressions::listed),
            }
        } else if !p.eat(SyntaxKind::RightParen) {
            p.missing("`,` or `)`", None);
            p.skip_until(|p| p.at(SyntaxKind::Semicolon) || p.at(SyntaxKind::LeftBrace) || p.starts_something_new());
            p.eat(SyntaxKind::RightParen);
        }
    }
    p.complete(marker, kind);
}

/// `"{" { branch } ["else" block] "}"`
fn alternatives(p: &mut Parser) {
    let opening = p.current_span();
    if !p.expect_help(SyntaxKind::LeftBrace, Some("an `alt` is written `alt { in(c, $x) { .. } out(d, e) { .. } }`")) {
        return;
    }
    while !p.at(SyntaxKind::RightBrace) && !p.at_end() && !items::at_certain_item(p) {
        match p.current() {
            SyntaxKind::WhenKeyword | SyntaxKind::InKeyword | SyntaxKind::OutKeyword | SyntaxKind::AfterKeyword => {
                branch(p);
            }
            SyntaxKind::Ident if at_until(p) => branch(p),
            SyntaxKind::ElseKeyword => {
                p.bump();
                expect_block(p, "`else` in an `alt` is written `else { .. }`");
                if !p.at(SyntaxKind::RightBrace) && !p.at_end() {
                    p.expected("`}`", Some("`else` is the last branch, and the only one of its kind".to_string()));
                }
            }
            SyntaxKind::Semicolon | SyntaxKind::Comma => {
                let message = format!("expected a branch or `}}`, found {}", p.found());
                p.unexpected(message, Some("branches follow each other without anything between".to_string()));
            }
            SyntaxKind::ForKeyword => {
                let help = "an `alt` has the branches of its text: `in(c, $from, $x)` takes a message of any process, \
                     and `out` has a branch for each";
                p.expected("a branch or `}`", Some(help.to_string()));
                p.bump_error();
                p.skip_until(|p| p.at(SyntaxKind::LeftBrace));
                if p.at(SyntaxKind::LeftBrace) {
                    p.skip_braces();
                }
            }
            _ => {
                let help = foreign::instead_of_branch(p.current_text());
                p.expected("a branch or `}`", Some(help.to_string()));
                let before = p.position;
                p.skip_until(|p| {
                    at_until(p)
                        || matches!(
                            p.current(),
                            SyntaxKind::WhenKeyword
                                | SyntaxKind::InKeyword
                                | SyntaxKind::OutKeyword
                                | SyntaxKind::AfterKeyword
                                | SyntaxKind::ElseKeyword
                        )
                });
                if p.position == before {
                    p.bump_error();
                }
            }
        }
    }
    p.close(opening, "this `alt`");
}

/// Whether the contextual word `until` is here, where a branch is expected.
fn at_until(p: &Parser) -> bool {
    p.at(SyntaxKind::Ident) && p.current_text() == "until" && p.nth(1) == SyntaxKind::LeftParen
}

/// `branch = ["when" "(" expr ")"] ( inop | outop | "after" "(" expr [unit] ")" | "until" "(" expr ")" ) block`
fn branch(p: &mut Parser) {
    let marker = p.start();
    if p.at(SyntaxKind::WhenKeyword) {
        let guard = p.start();
        p.bump();
        condition(p, "a guard is written `when (c)`");
        p.complete(guard, SyntaxKind::Guard);
    }
    match p.current() {
        SyntaxKind::InKeyword | SyntaxKind::OutKeyword => operation(p),
        SyntaxKind::AfterKeyword => after(p),
        SyntaxKind::Ident if at_until(p) => until(p),
        _ => p.expected("`in`, `out`, `after` or `until`", None),
    }
    match p.current() {
        SyntaxKind::LeftBrace => {
            p.nested(block);
        }
        SyntaxKind::Semicolon => {
            p.unexpected(
                "expected `{`, found `;`".to_string(),
                Some("every branch of an `alt` has a block: write `{ }`".to_string()),
            );
        }
        SyntaxKind::FatArrow | SyntaxKind::ThinArrow | SyntaxKind::Colon => {
            p.missing("`{`", Some("every branch of an `alt` has a block, without an arrow"));
            p.bump_error();
            expect_statement(p, "a statement");
        }
        _ => p.missing("`{`", Some("every branch of an `alt` has a block")),
    }
    p.complete(marker, SyntaxKind::Branch);
}

fn after(p: &mut Parser) {
    const HELP: &str = "write `after (250 ms)`; the units are `ns`, `us`, `ms` and `s`";
    let marker = p.start();
    p.bump();
    if p.expect_help(SyntaxKind::LeftParen, Some(HELP)) {
        let (amount, is_number) = (p.position, p.at(SyntaxKind::Int));
        expressions::amount(p);
        if !expressions::unit(p) {
            if p.at(SyntaxKind::Ident) {
                p.unexpected(format!("`{}` is not a unit of time", p.current_text()), Some(HELP.to_string()));
            } else if p.position == amount + 1 && is_number && !p.text_at(amount).ends_with('s') {
                // `5ms` has been reported as a malformed number.
                p.missing("a unit of time", Some(HELP));
            }
        }
        p.expect(SyntaxKind::RightParen);
    }
    p.complete(marker, SyntaxKind::AfterOperation);
}

/// `until (t)`
fn until(p: &mut Parser) {
    let marker = p.start();
    p.bump_as(SyntaxKind::UntilWord);
    if p.expect(SyntaxKind::LeftParen) {
        let moment = p.start();
        let from = p.position;
        expressions::amount(p);
        let to = p.position;
        if expressions::unit(p) {
            let duration = shorten(p.source(from, to));
            p.error_at(
                p.span_at(from).to(p.span_at(to)),
                "`until` waits for a moment, not for a while".to_string(),
                format!("write `after ({duration})`, or `until (t)` with `var t = now + ({duration});` before"),
            );
            p.complete(moment, SyntaxKind::Error);
        } else {
            p.abandon(moment);
        }
        p.expect(SyntaxKind::RightParen);
    }
    p.complete(marker, SyntaxKind::UntilOperation);
}

/// `ID "(" [list(expr)] ")" ";"`
fn call(p: &mut Parser) -> SyntaxKind {
    let name = p.current_text();
    p.bump_name();
    expressions::arguments(p);
    if p.at(SyntaxKind::LeftBrace)
        && matches!(name, "switch" | "select" | "loop" | "foreach" | "until" | "elif" | "elsif" | "elseif")
    {
        let help = match name {
            "switch" | "select" => "use `match` for values, `alt` for channels",
            "elif" | "elsif" | "elseif" => "write `else if (c) ..`",
            _ => "loops are `while { .. }`, `while (c) ..` and `for i in a..b { .. }`",
        };
        p.error_here(format!("there is no statement `{name}`"), Some(help.to_string()));
        p.skip_braces();
        return SyntaxKind::Error;
    }
    p.expect_semicolon();
    SyntaxKind::CallStmt
}

/// `lval asgop expr ";"`; the current token is its name.
fn assignment(p: &mut Parser) -> SyntaxKind {
    let from = p.position;
    patterns::place(p);
    let place = |p: &Parser| shorten(p.source(from, p.position - 1));
    match p.current() {
        SyntaxKind::Equal
        | SyntaxKind::PlusEqual
        | SyntaxKind::MinusEqual
        | SyntaxKind::StarEqual
        | SyntaxKind::SlashEqual
        | SyntaxKind::PercentEqual
        | SyntaxKind::AmpersandEqual
        | SyntaxKind::PipeEqual
        | SyntaxKind::CaretEqual
        | SyntaxKind::LessLessEqual
        | SyntaxKind::GreaterGreaterEqual => {
            p.bump();
            expressions::expression(p);
            p.expect_semicolon();
            return SyntaxKind::AssignStmt;
        }
        SyntaxKind::EqualEqual => {
            let help = format!("write `{} = ..`", place(p));
            p.unexpected("`==` compares and is not a statement".to_string(), Some(help));
            expressions::optional_expression(p);
            p.expect_semicolon();
            return SyntaxKind::Error;
        }
        sign @ (SyntaxKind::Plus | SyntaxKind::Minus) if p.nth(1) == sign => {
            let sign = p.current_text();
            let help = format!("write `{} {sign}= 1`", place(p));
            p.error_here(format!("there is no `{sign}{sign}`"), Some(help));
        }
        SyntaxKind::Less if p.nth(1) == SyntaxKind::Minus => {
            let help = format!("a message is sent with `out({}, e);`", place(p));
            p.expected("an assignment or a call", Some(help));
        }
        SyntaxKind::Bang => {
            let help = format!("a message is sent with `out({}, e);`", place(p));
            p.expected("an assignment or a call", Some(help));
        }
        SyntaxKind::Question => {
            let what = place(p);
            let help = format!("a message is received with `in({what}, x);`, which assigns `x`, or `in({what}, $x);`");
            p.expected("an assignment or a call", Some(help));
        }
        SyntaxKind::LeftParen => {
            let method = p.text_at(p.position - 1);
            let help = foreign::instead_of_call(method).unwrap_or("there are no methods: a call is written `f(x)`");
            p.expected("an assignment or a call", Some(help.to_string()));
        }
        SyntaxKind::TagArrow => {
            p.error_here("a tagged value is not a statement".to_string(), Some("send it or assign it".to_string()));
        }
        _ if p.starts_something_new() || p.at(SyntaxKind::Semicolon) => {
            let what = place(p);
            let help = format!("write `{what} = ..;` to assign, `{what}(..);` to call");
            p.missing("an assignment or a call", Some(&help));
        }
        SyntaxKind::Ident if p.position == from + 1 && follows_number_sign(p, from) => {
            p.expected("a statement", Some("a comment begins with `//`".to_string()));
            p.skip_until(|p| p.starts_something_new());
            return SyntaxKind::Error;
        }
        SyntaxKind::Ident if p.position == from + 1 && declares(p) => {
            let (word, name) = (p.text_at(from), p.current_text());
            let help = match word {
                "let" | "int" | "auto" => "a variable is declared with `var`".to_string(),
                _ => match foreign::instead_of_statement(word) {
                    Some(help) => help.to_string(),
                    None => format!("a variable is declared with `var {name}: {word};`"),
                },
            };
            return undeclared_here(p, help);
        }
        SyntaxKind::Ident if p.position == from + 1 => {
            let word = p.text_at(from);
            let help = match word {
                "let" | "int" | "auto" => Some("a variable is declared with `var`".to_string()),
                "loop" | "do" => {
                    Some("loops are `while { .. }`, `while (c) ..` and `for i in a..b { .. }`".to_string())
                }
                _ => Some(match foreign::instead_of_statement(word) {
                    Some(help) => help.to_string(),
                    None => format!("a variable is declared with `var {}: {word};`", p.current_text()),
                }),
            };
            p.expected("an assignment or a call", help);
        }
        SyntaxKind::LeftBrace if p.text_at(from) == "do" => {
            let help = "a loop that tests at its end is `while { ..; if (!(c)) break; }`";
            p.expected("an assignment or a call", Some(help.to_string()));
            p.nested(block);
            if p.eat(SyntaxKind::WhileKeyword) {
                condition(p, help);
                p.eat(SyntaxKind::Semicolon);
            }
            return SyntaxKind::Error;
        }
        SyntaxKind::LeftBrace if matches!(p.text_at(from), "loop" | "forever") => {
            p.expected("an assignment or a call", Some("an endless loop is `while { .. }`".to_string()));
        }
        SyntaxKind::LeftBrace if matches!(p.text_at(from), "try" | "catch" | "finally") => {
            let help = foreign::instead_of_statement(p.text_at(from)).map(str::to_string);
            p.error_here(format!("there is no statement `{}`", p.text_at(from)), help);
            p.nested(block);
            while p.at_word("catch") || p.at_word("finally") {
                p.skip_until(|p| p.at(SyntaxKind::LeftBrace));
                if p.at(SyntaxKind::LeftBrace) {
                    p.nested(block);
                }
            }
            return SyntaxKind::Error;
        }
        SyntaxKind::LeftBrace if p.text_at(from) == "switch" || p.text_at(from) == "select" => {
            p.expected("an assignment or a call", Some("use `match` for values, `alt` for channels".to_string()));
            p.skip_braces();
            return SyntaxKind::Error;
        }
        SyntaxKind::Int if p.position == from + 1 => {
            let help = foreign::instead_of_statement(p.text_at(from)).map(str::to_string);
            p.expected("an assignment or a call", help);
        }
        _ => p.expected("an assignment or a call", None),
    }
    if !p.starts_something_new() {
        recover(p);
    }
    SyntaxKind::Error
}

/// Whether the word at a position follows a `#` and a blank: a comment of another language.
fn follows_number_sign(p: &Parser, position: usize) -> bool {
    position > 0 && p.text_at(position - 1) == "#" && p.span_at(position - 1).end < p.span_at(position).start
        || position > 1 && p.text_at(position - 2) == "#" && p.span_at(position - 2).end < p.span_at(position - 1).start
}

/// Whether the current name is declared in the form of another language, `let n = 0;`.
fn declares(p: &Parser) -> bool {
    matches!(p.nth(1), SyntaxKind::Equal | SyntaxKind::Colon)
}

/// Reports a declaration at its name, and declares it.
fn undeclared_here(p: &mut Parser, help: String) -> SyntaxKind {
    p.expected("an assignment or a call", Some(help));
    let declarator = p.start();
    p.bump();
    if p.eat(SyntaxKind::Colon) {
        types::value_type(p);
    }
    if p.eat(SyntaxKind::Equal) {
        expressions::expression(p);
    }
    p.complete(declarator, SyntaxKind::Declarator);
    p.expect_semicolon();
    SyntaxKind::Var
}

/// Behind an error in a statement: skips to the end of the statement, as far as it is known.
fn recover(p: &mut Parser) {
    p.skip_until(|p| {
        p.at(SyntaxKind::Semicolon)
            || p.at(SyntaxKind::LeftBrace)
            || (p.starts_something_new() && starts_statement(p.current()))
    });
    if !p.eat(SyntaxKind::Semicolon) && p.at(SyntaxKind::LeftBrace) {
        p.nested(block);
    }
}

fn starts_statement(kind: SyntaxKind) -> bool {
    matches!(
        kind,
        SyntaxKind::Ident
            | SyntaxKind::Hash
            | SyntaxKind::VarKeyword
            | SyntaxKind::ConstKeyword
            | SyntaxKind::ConstantKeyword
            | SyntaxKind::IfKeyword
            | SyntaxKind::WhileKeyword
            | SyntaxKind::ForKeyword
            | SyntaxKind::MatchKeyword
            | SyntaxKind::BreakKeyword
            | SyntaxKind::ContinueKeyword
            | SyntaxKind::YieldKeyword
            | SyntaxKind::ReturnKeyword
            | SyntaxKind::ExitKeyword
            | SyntaxKind::AssertKeyword
            | SyntaxKind::InKeyword
            | SyntaxKind::OutKeyword
            | SyntaxKind::AltKeyword
            | SyntaxKind::PriKeyword
            | SyntaxKind::ElseKeyword
    )
}

/// Reports that no statement begins here, and skips to the next one.
fn not_a_statement(p: &mut Parser) {
    let help = match p.current() {
        kind if types::is_int_type(kind) || kind == SyntaxKind::BoolKeyword => match p.nth(1) {
            SyntaxKind::Ident => {
                let name = p.text_at(p.position + 1);
                Some(format!("a variable is declared with `var {name}: {};`", p.current_text()))
            }
            _ => Some("a variable is declared with `var`".to_string()),
        },
        SyntaxKind::AfterKeyword | SyntaxKind::WhenKeyword => Some("it is part of an `alt`".to_string()),
        SyntaxKind::Dollar => Some("`$` declares a name in a pattern; elsewhere use `var`".to_string()),
        SyntaxKind::Minus if p.nth(1) == SyntaxKind::Minus => Some("a comment begins with `//`".to_string()),
        _ => None,
    };
    p.expected("a statement", help);
    let before = p.position;
    let is_type = types::is_int_type(p.current()) || p.at(SyntaxKind::BoolKeyword);
    if (is_type || p.at(SyntaxKind::Dollar)) && p.nth(1) == SyntaxKind::Ident && p.nth(2) == SyntaxKind::Equal {
        // The name is declared, so that its uses are no mistakes.
        let marker = p.start();
        p.bump_error();
        let declarator = p.start();
        p.bump();
        p.bump();
        expressions::expression(p);
        p.complete(declarator, SyntaxKind::Declarator);
        p.expect_semicolon();
        p.complete(marker, SyntaxKind::Var);
        return;
    }
    recover(p);
    if p.position == before && !p.at(SyntaxKind::RightBrace) {
        p.bump_error();
    }
}
