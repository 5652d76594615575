//! The parser of statements in ticks, and its state.

use super::tree::{Expression, ExpressionKind, For, Statement, StatementKind, Variable};
use crate::diagnostics::Code;
use crate::parser::{Edit, Parser};
use crate::scope::{Entity, Shape};

/// What is known of a variable of generated code.
#[derive(Clone, Debug)]
pub(crate) struct Local {
    pub(crate) name: String,
    pub(crate) shape: Shape,
    pub(crate) has_address: bool,
}

/// What a tick generates.
#[derive(Clone, Debug)]
pub(crate) enum TickBody {
    Expression(Expression),
    Block(Statement),
}

/// What `break` and `continue` refer to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Enclosing {
    Loop,
    Switch,
}

pub(crate) struct TickParser<'p, 't> {
    pub(crate) parser: &'p mut Parser<'t>,
    pub(crate) locals: Vec<Local>,
    /// How many operands of `$` and `@` contain the place that is read.
    pub(crate) host_depth: usize,
    enclosing: Vec<Enclosing>,
}

impl<'p, 't> TickParser<'p, 't> {
    pub(crate) fn new(parser: &'p mut Parser<'t>) -> TickParser<'p, 't> {
        TickParser { parser, locals: Vec::new(), host_depth: 0, enclosing: Vec::new() }
    }

    /// The operand of a back quote.
    pub(crate) fn operand(&mut self) -> TickBody {
        if self.parser.is_next("{") { TickBody::Block(self.statement()) } else { TickBody::Expression(self.unary()) }
    }

    pub(crate) fn unsupported(&mut self, from: usize, what: &str, help: &str) {
        self.parser.report(Code::Unsupported, from, self.parser.at.max(from + 1), what, help);
    }

    pub(crate) fn syntax(&mut self, wanted: &str) {
        let at = self.parser.at;
        let message = match self.parser.peek(0) {
            "" => format!("{wanted} is expected at the end of the file"),
            text => format!("{wanted} is expected instead of `{text}`"),
        };
        let is_new = self.parser.diagnostics.last().is_none_or(|last| last.span != self.parser.span(at, at + 1));
        if is_new {
            self.parser.report(Code::Syntax, at, at + 1, message, "a tick is an expression or a block of C");
        }
    }

    pub(crate) fn expect(&mut self, sign: &str) {
        if !self.parser.accept(sign) {
            self.syntax(&format!("`{sign}`"));
        }
    }

    /// The variable that an lvalue is or is a part of.
    fn base_local(own: &Expression) -> Option<usize> {
        match &own.kind {
            ExpressionKind::Local(local) => Some(*local),
            ExpressionKind::Member { base, is_arrow: false, .. } | ExpressionKind::Index(base, _) => {
                TickParser::base_local(base)
            }
            _ => None,
        }
    }

    pub(crate) fn mark_address_taken(&mut self, own: &Expression) {
        if let ExpressionKind::Member { is_bit_field: true, name, .. } = own.kind {
            let message = format!("the address of the bit-field `{}`", self.parser.token_text(name));
            self.parser.report(Code::BitField, name, name + 1, message, "copy its value into a variable");
        }
        if let Some(local) = TickParser::base_local(own) {
            self.locals[local].has_address = true;
        }
    }

    /// Reports an assignment to a value of the time when the tick is evaluated.
    pub(crate) fn mark_assigned(&mut self, target: &Expression) {
        if let ExpressionKind::Dollar(_) = target.kind {
            let message = "an assignment to a run-time constant";
            self.unsupported(target.range.from, message, "leave out the `$`");
        }
    }

    /// A statement.
    pub(crate) fn statement(&mut self) -> Statement {
        let from = self.parser.at;
        let kind = if self.parser.enter() {
            let kind = self.statement_kind();
            self.parser.leave();
            kind
        } else {
            StatementKind::Empty
        };
        Statement { kind, from }
    }

    fn statement_kind(&mut self) -> StatementKind {
        match self.parser.peek(0) {
            "{" => self.block(),
            ";" => {
                self.parser.advance();
                StatementKind::Empty
            }
            "if" => {
                let condition = self.condition();
                let then = Box::new(self.statement());
                let otherwise = self.parser.accept("else").then(|| Box::new(self.statement()));
                StatementKind::If(condition, then, otherwise)
            }
            "while" => {
                let condition = self.condition();
                StatementKind::While(condition, Box::new(self.body(Enclosing::Loop)))
            }
            "do" => {
                self.parser.advance();
                let body = Box::new(self.body(Enclosing::Loop));
                if !self.parser.is_next("while") {
                    self.syntax("`while`");
                    return StatementKind::Empty;
                }
                let condition = self.condition();
                self.expect(";");
                StatementKind::Do(body, condition)
            }
            "for" => self.for_loop(),
            "switch" => {
                let value = self.condition();
                StatementKind::Switch(value, Box::new(self.body(Enclosing::Switch)))
            }
            "case" => {
                let from = self.parser.at;
                self.parser.advance();
                let value = self.conditional();
                if self.parser.is_next("...") {
                    self.unsupported(from, "a range of cases in a tick", "write each case");
                    self.parser.advance();
                    self.conditional();
                }
                self.expect(":");
                self.need_switch(from);
                StatementKind::Case(value)
            }
            "default" => {
                let from = self.parser.at;
                self.parser.advance();
                self.expect(":");
                self.need_switch(from);
                StatementKind::Default
            }
            word @ ("break" | "continue") => self.loop_jump(word),
            "return" => {
                self.parser.advance();
                let value = (!self.parser.is_next(";")).then(|| self.expression());
                self.expect(";");
                StatementKind::Return(value)
            }
            word @ ("goto" | "asm" | "__asm__" | "__asm") => self.refused(word),
            _ if self.parser.is_name(0) && self.parser.peek(1) == ":" => self.refused("a label"),
            _ if self.parser.starts_type(0) => self.declaration(),
            _ => {
                let value = self.expression();
                let before = self.parser.at;
                self.expect(";");
                if self.parser.at == before {
                    // The rest of the statement would be reported again.
                    self.skip_statement();
                }
                StatementKind::Expression(value)
            }
        }
    }

    /// Passes the rest of a statement that was reported.
    pub(crate) fn skip_statement(&mut self) {
        while !self.parser.is_at_end() && !matches!(self.parser.peek(0), ";" | "}") {
            if matches!(self.parser.peek(0), "(" | "[" | "{") {
                self.parser.skip_group()
            } else {
                self.parser.advance()
            }
        }
        self.parser.accept(";");
    }

    fn refused(&mut self, what: &str) -> StatementKind {
        let help = "use a loop, or `label()` and `jump()`; assembly can be in a function that the tick calls";
        self.unsupported(self.parser.at, &format!("`{what}` in a tick"), help);
        self.skip_statement();
        StatementKind::Empty
    }

    fn loop_jump(&mut self, word: &str) -> StatementKind {
        let is_break = word == "break";
        let is_right = if is_break { !self.enclosing.is_empty() } else { self.enclosing.contains(&Enclosing::Loop) };
        if !is_right {
            let message = format!("`{word}` outside of a loop of the tick");
            let help = "a tick cannot jump out of itself: use `label()` and `jump()`";
            self.parser.report(Code::NoLoop, self.parser.at, self.parser.at + 1, message, help);
        }
        self.parser.advance();
        self.expect(";");
        if is_break { StatementKind::Break } else { StatementKind::Continue }
    }

    fn need_switch(&mut self, from: usize) {
        if !self.enclosing.contains(&Enclosing::Switch) {
            let message = "a case outside of a `switch` of the tick";
            self.parser.report(Code::NoLoop, from, self.parser.at, message, "put the `switch` into the same tick");
        }
    }

    fn block(&mut self) -> StatementKind {
        self.parser.advance();
        self.parser.scopes.open();
        let mut statements = Vec::new();
        while !self.parser.is_at_end() && !self.parser.is_next("}") {
            let before = self.parser.at;
            statements.push(self.statement());
            self.parser.at += usize::from(self.parser.at == before);
        }
        self.parser.scopes.close();
        self.expect("}");
        StatementKind::Block(statements)
    }

    fn body(&mut self, enclosing: Enclosing) -> Statement {
        self.enclosing.push(enclosing);
        self.parser.scopes.open();
        let body = self.statement();
        self.parser.scopes.close();
        self.enclosing.pop();
        body
    }

    /// A keyword with an expression in parentheses.
    fn condition(&mut self) -> Expression {
        self.parser.advance();
        self.expect("(");
        let condition = self.expression();
        self.expect(")");
        condition
    }

    fn for_loop(&mut self) -> StatementKind {
        self.parser.advance();
        self.parser.scopes.open();
        self.expect("(");
        let from = self.parser.at;
        let first = if self.parser.accept(";") {
            None
        } else if self.parser.starts_type(0) {
            Some(Statement { kind: self.declaration(), from })
        } else {
            let value = self.expression();
            self.expect(";");
            Some(Statement { kind: StatementKind::Expression(value), from })
        };
        let condition = (!self.parser.is_next(";")).then(|| self.expression());
        self.expect(";");
        let step = (!self.parser.is_next(")")).then(|| self.expression());
        self.expect(")");
        let body = self.body(Enclosing::Loop);
        self.parser.scopes.close();
        StatementKind::For(Box::new(For { first, condition, step, body }))
    }

    fn declaration(&mut self) -> StatementKind {
        let from = self.parser.at;
        let specifiers = self.parser.specifiers();
        if let Some(storage) = specifiers.storage {
            let word = self.parser.token_text(storage);
            self.unsupported(storage, &format!("`{word}` in a tick"), "declare it outside of the tick");
        }
        let (mut variables, mut values) = (Vec::new(), Vec::new());
        while !self.parser.is_at_end() && !self.parser.is_next(";") {
            let before = self.parser.at;
            let declarator = self.parser.declarator(specifiers.shape.clone());
            self.parser.skip_attributes();
            let local = self.declare_variable(specifiers.is_typedef, &declarator);
            let start = self.parser.at;
            let mut initial = None;
            if self.parser.accept("=") {
                let (value, length) = self.initial_value(local, &declarator.shape);
                initial = value;
                values.extend(declarator.name.and_then(|name| self.missing_length(name + 1, length)));
                let (start, end) = (self.parser.start_of(start), self.parser.end_before(self.parser.at));
                values.push(Edit { start, end, text: String::new() });
            }
            variables.extend(local.map(|local| Variable { local, initial }));
            if !self.parser.accept(",") || self.parser.at == before {
                break;
            }
        }
        let end = self.parser.at;
        self.expect(";");
        StatementKind::Declaration { text: self.parser.rewritten(from, end, &values), variables }
    }

    /// Declares a name of a tick; its number if it is a variable.
    fn declare_variable(&mut self, is_typedef: bool, declarator: &crate::declare::Declarator) -> Option<usize> {
        let name = declarator.name?;
        let text = self.parser.token_text(name);
        let shape = declarator.shape.clone();
        if is_typedef {
            self.parser.scopes.declare(text, Entity::Typedef(shape));
            return None;
        }
        if matches!(shape, Shape::Function { .. } | Shape::Cspec(_) | Shape::Vspec(_)) {
            let help = "declare it outside of the tick";
            self.unsupported(name, "a function, cspec or vspec that is declared in a tick", help);
        }
        self.refuse_variable_length(name);
        let local = self.locals.len();
        self.locals.push(Local { name: text.to_owned(), shape, has_address: false });
        self.parser.scopes.declare(text, Entity::Local(local));
        Some(local)
    }
}
