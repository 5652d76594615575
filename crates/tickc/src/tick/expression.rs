//! The parser of expressions in ticks: the precedences of C, with `$`, `@`, cspecs and vspecs.

use super::statement::TickParser;
use super::tree::{Expression, ExpressionKind, Fixity, Prefix, Range, Spliced};
use crate::diagnostics::Code;
use crate::lex::TokenKind;
use crate::scope::{Entity, Shape};
use crate::special::SPECIAL;

/// Binary operators by precedence, loosest first.
const BINARY: &[&[&str]] = &[
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<", ">", "<=", ">="],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];
const ASSIGN: &[&str] = &["=", "*=", "/=", "%=", "+=", "-=", "<<=", ">>=", "&=", "^=", "|="];

/// The limit on operators in a row, such as those of a long sum: each one nests what is on its left.
const MAX_CHAIN: usize = 500;

impl TickParser<'_, '_> {
    /// Counts an operator of a row; false at the limit, which is reported.
    fn extend_chain(&mut self, length: &mut usize) -> bool {
        *length += 1;
        if *length == MAX_CHAIN {
            self.parser.report_depth(MAX_CHAIN);
            self.skip_statement();
        }
        *length < MAX_CHAIN
    }

    fn make(&self, kind: ExpressionKind, from: usize, shape: Shape) -> Expression {
        Expression { kind, range: Range { from, to: self.parser.at }, shape }
    }

    /// An expression with commas.
    pub(crate) fn expression(&mut self) -> Expression {
        let from = self.parser.at;
        let mut left = self.assignment();
        let mut length = 0;
        while self.parser.is_next(",") && self.extend_chain(&mut length) {
            self.parser.advance();
            let right = self.assignment();
            let shape = right.shape.clone();
            left = self.make(ExpressionKind::Binary(",", Box::new(left), Box::new(right)), from, shape);
        }
        left
    }

    /// An expression without commas.
    pub(crate) fn assignment(&mut self) -> Expression {
        let from = self.parser.at;
        if !self.parser.enter() {
            return self.make(ExpressionKind::Error, from, Shape::Plain);
        }
        let mut result = self.conditional();
        if let Some(operator) = ASSIGN.iter().find(|sign| self.parser.is_next(sign)) {
            self.parser.advance();
            let (target, value) = (Box::new(result), Box::new(self.assignment()));
            self.mark_assigned(&target);
            let operator = operator.strip_suffix('=').expect("each assignment ends with it");
            let shape = target.shape.clone();
            result = self.make(ExpressionKind::Assign { operator, target, value }, from, shape);
        }
        self.parser.leave();
        result
    }

    pub(crate) fn conditional(&mut self) -> Expression {
        let from = self.parser.at;
        let condition = self.binary(0);
        if !self.parser.accept("?") {
            return condition;
        }
        if self.parser.is_next(":") {
            self.unsupported(self.parser.at, "a conditional without its second operand", "repeat the condition");
        }
        let left = self.expression();
        self.expect(":");
        let right = if self.parser.enter() {
            let right = self.conditional();
            self.parser.leave();
            right
        } else {
            self.make(ExpressionKind::Error, from, Shape::Plain)
        };
        let shape = left.shape.clone();
        let parts = ExpressionKind::Conditional(Box::new(condition), Box::new(left), Box::new(right));
        self.make(parts, from, shape)
    }

    /// Operators of this precedence and tighter ones, by precedence climbing.
    fn binary(&mut self, loosest: usize) -> Expression {
        let from = self.parser.at;
        let mut left = self.unary();
        let mut length = 0;
        loop {
            let sign = self.parser.peek(0);
            let level = BINARY.iter().position(|operators| operators.contains(&sign));
            let Some(level) = level.filter(|level| *level >= loosest) else { return left };
            if !self.extend_chain(&mut length) {
                return left;
            }
            let operator = BINARY[level].iter().find(|own| **own == sign).expect("the level contains it");
            self.parser.advance();
            let right = self.binary(level + 1);
            // Adding to a pointer does not change what it points to.
            let shape = if matches!(*operator, "+" | "-") { left.shape.clone() } else { Shape::Plain };
            left = self.make(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)), from, shape);
        }
    }

    /// A unary expression or cast.
    pub(crate) fn unary(&mut self) -> Expression {
        let from = self.parser.at;
        if !self.parser.enter() {
            return self.make(ExpressionKind::Error, from, Shape::Plain);
        }
        let result = self.unary_operand();
        self.parser.leave();
        result
    }

    fn unary_operand(&mut self) -> Expression {
        let from = self.parser.at;
        let prefix = match self.parser.peek(0) {
            "+" => Some(Prefix::Plus),
            "-" => Some(Prefix::Negate),
            "~" => Some(Prefix::Complement),
            "!" => Some(Prefix::Not),
            "*" => Some(Prefix::Dereference),
            "&" => Some(Prefix::AddressOf),
            _ => None,
        };
        if let Some(prefix) = prefix {
            self.parser.advance();
            let operand = self.unary();
            let shape = match prefix {
                Prefix::Dereference => operand.shape.target(),
                Prefix::AddressOf => {
                    self.mark_address_taken(&operand);
                    Shape::Pointer(Box::new(operand.shape.clone()))
                }
                Prefix::Plus | Prefix::Negate | Prefix::Complement | Prefix::Not => Shape::Plain,
            };
            let result = self.make(ExpressionKind::Prefix(prefix, Box::new(operand)), from, shape);
            return self.spliced(result);
        }
        match self.parser.peek(0) {
            "$" => {
                self.parser.advance();
                let operand = self.host_operand();
                let shape = operand.shape.clone();
                self.make(ExpressionKind::Dollar(Box::new(operand)), from, shape)
            }
            "@" => {
                self.parser.advance();
                let operand = self.host_operand();
                let (kind, shape) = match &operand.shape {
                    Shape::Vspec(target) => (Spliced::Vspec, (**target).clone()),
                    Shape::Cspec(target) => (Spliced::Cspec, (**target).clone()),
                    Shape::Plain | Shape::Record(_) | Shape::Pointer(_) | Shape::Array(_) | Shape::Function { .. } => {
                        (Spliced::Cspec, Shape::Plain)
                    }
                };
                self.make(ExpressionKind::Splice(kind, Box::new(operand)), from, shape)
            }
            sign @ ("++" | "--") => {
                self.parser.advance();
                let operator = if sign == "++" { "+" } else { "-" };
                let operand = Box::new(self.unary());
                self.mark_assigned(&operand);
                let shape = operand.shape.clone();
                let step = ExpressionKind::Step { operator, fixity: Fixity::Prefix, operand };
                self.make(step, from, shape)
            }
            "sizeof" | "_Alignof" | "alignof" | "__alignof__" => self.size(),
            "(" if self.parser.starts_type(1) => self.cast(),
            "__extension__" => {
                self.parser.advance();
                self.unary()
            }
            _ => self.postfix(),
        }
    }

    /// The operand of `$` or `@`, which is evaluated with the tick.
    fn host_operand(&mut self) -> Expression {
        self.host_depth += 1;
        let operand = self.unary();
        self.host_depth -= 1;
        operand
    }

    fn size(&mut self) -> Expression {
        let from = self.parser.at;
        let is_size = self.parser.is_next("sizeof");
        self.parser.advance();
        if self.parser.is_next("(") && self.parser.starts_type(1) {
            self.parser.skip_group();
            if self.parser.is_next("{") {
                self.unsupported(from, "the size of a compound literal in a tick", "use the size of its type");
            }
            return self.make(ExpressionKind::Constant, from, Shape::Plain);
        }
        let operand = self.unary();
        if !is_size {
            self.unsupported(from, "the alignment of an expression in a tick", "use the alignment of its type");
        }
        self.make(ExpressionKind::Sizeof(Box::new(operand)), from, Shape::Plain)
    }

    fn cast(&mut self) -> Expression {
        let from = self.parser.at;
        self.parser.advance();
        let start = self.parser.at;
        let shape = self.parser.specifiers().shape;
        let shape = self.parser.declarator(shape).shape;
        let ty = Range { from: start, to: self.parser.at };
        self.expect(")");
        if self.parser.is_next("{") {
            let literal = self.literal(ty, shape, from);
            return self.postfix_of(literal, from);
        }
        let operand = Box::new(self.unary());
        let result = self.make(ExpressionKind::Cast(ty, operand), from, shape);
        self.spliced(result)
    }

    /// A primary expression with what follows it.
    fn postfix(&mut self) -> Expression {
        let from = self.parser.at;
        let primary = self.primary();
        self.postfix_of(primary, from)
    }

    /// What follows a primary expression that begins at a token.
    fn postfix_of(&mut self, primary: Expression, from: usize) -> Expression {
        let mut result = primary;
        let mut length = 0;
        while self.extend_chain(&mut length) {
            let next = match self.parser.peek(0) {
                "[" => {
                    self.parser.advance();
                    let index = self.expression();
                    self.expect("]");
                    let shape = result.shape.target();
                    self.make(ExpressionKind::Index(Box::new(result), Box::new(index)), from, shape)
                }
                "(" => {
                    self.parser.advance();
                    let arguments = self.arguments();
                    let shape = result.shape.result();
                    self.make(ExpressionKind::Call(Box::new(result), arguments), from, shape)
                }
                sign @ ("." | "->") => {
                    self.parser.advance();
                    self.member(result, from, sign == "->")
                }
                sign @ ("++" | "--") => {
                    self.parser.advance();
                    self.mark_assigned(&result);
                    let operator = if sign == "++" { "+" } else { "-" };
                    let shape = result.shape.clone();
                    let step = ExpressionKind::Step { operator, fixity: Fixity::Postfix, operand: Box::new(result) };
                    self.make(step, from, shape)
                }
                _ => return result,
            };
            result = self.spliced(next);
        }
        result
    }

    fn member(&mut self, base: Expression, from: usize, is_arrow: bool) -> Expression {
        let name = self.parser.at;
        if !self.parser.is_name(0) {
            self.syntax("a name of a member");
            return self.make(ExpressionKind::Error, from, Shape::Plain);
        }
        self.parser.advance();
        let record = match if is_arrow { base.shape.target() } else { base.shape.clone() } {
            Shape::Record(record) => Some(record),
            Shape::Plain
            | Shape::Cspec(_)
            | Shape::Vspec(_)
            | Shape::Pointer(_)
            | Shape::Array(_)
            | Shape::Function { .. } => None,
        };
        let member = record.and_then(|own| self.parser.scopes.member(own, self.parser.token_text(name))).cloned();
        let is_bit_field = member.as_ref().is_some_and(|own| own.is_bit_field);
        let shape = member.map_or(Shape::Plain, |own| own.shape);
        self.make(ExpressionKind::Member { base: Box::new(base), is_arrow, name, is_bit_field }, from, shape)
    }

    fn arguments(&mut self) -> Vec<Expression> {
        let mut arguments = Vec::new();
        while !self.parser.is_at_end() && !self.parser.is_next(")") {
            let before = self.parser.at;
            arguments.push(self.assignment());
            if !self.parser.accept(",") && !self.parser.is_next(")") || self.parser.at == before {
                break;
            }
        }
        self.expect(")");
        arguments
    }

    /// The expression itself, or its splice if it is a cspec or vspec that generated code can use.
    fn spliced(&self, own: Expression) -> Expression {
        let (kind, shape) = match &own.shape {
            Shape::Cspec(target) if self.host_depth == 0 => (Spliced::Cspec, (**target).clone()),
            Shape::Vspec(target) if self.host_depth == 0 => (Spliced::Vspec, (**target).clone()),
            _ => return own,
        };
        let range = own.range;
        Expression { kind: ExpressionKind::Splice(kind, Box::new(own)), range, shape }
    }

    fn primary(&mut self) -> Expression {
        let from = self.parser.at;
        match self.parser.kind(0) {
            Some(TokenKind::Number | TokenKind::Character) => {
                self.parser.advance();
                self.make(ExpressionKind::Constant, from, Shape::Plain)
            }
            Some(TokenKind::Text) => {
                while self.parser.kind(0) == Some(TokenKind::Text) {
                    self.parser.advance();
                }
                self.make(ExpressionKind::Text, from, Shape::Plain)
            }
            Some(TokenKind::Name) => self.name(),
            Some(TokenKind::Sign) if self.parser.is_next("(") => {
                if self.parser.peek(1) == "{" {
                    self.unsupported(from, "a statement expression in a tick", "use a statement, or call a function");
                    self.parser.skip_group();
                    return self.make(ExpressionKind::Error, from, Shape::Plain);
                }
                self.parser.advance();
                let inner = self.expression();
                self.expect(")");
                Expression { range: Range { from, to: self.parser.at }, ..inner }
            }
            Some(TokenKind::Sign) if self.parser.is_next("`") => {
                let help = "name the inner one in front of the outer one, and use the name";
                self.parser.report(Code::NestedTick, from, from + 1, "a tick expression in another one", help);
                self.parser.advance();
                self.unary()
            }
            Some(TokenKind::Sign) | None => {
                self.syntax("an expression");
                self.make(ExpressionKind::Error, from, Shape::Plain)
            }
        }
    }

    fn name(&mut self) -> Expression {
        let from = self.parser.at;
        let name = self.parser.peek(0);
        if self.parser.is_special_call() {
            return self.special();
        }
        if matches!(name, "__builtin_offsetof" | "__builtin_types_compatible_p") {
            self.parser.advance();
            self.parser.skip_group();
            return self.make(ExpressionKind::Constant, from, Shape::Plain);
        }
        if matches!(name, "_Generic" | "__builtin_choose_expr" | "__builtin_va_arg" | "__func__" | "asm" | "__asm__")
            || name.starts_with("__builtin_") && self.parser.peek(1) == "("
        {
            self.unsupported(from, &format!("`{name}` in a tick"), "call a function that uses it");
            self.parser.advance();
            return self.make(ExpressionKind::Error, from, Shape::Plain);
        }
        self.parser.advance();
        let (kind, shape) = match self.parser.scopes.find(name) {
            Some(Entity::Local(local)) => (ExpressionKind::Local(*local), self.locals[*local].shape.clone()),
            Some(Entity::Enumerator) => (ExpressionKind::Constant, Shape::Plain),
            Some(Entity::Object(shape)) => (ExpressionKind::Object, shape.clone()),
            Some(Entity::Register(shape)) => {
                let shape = shape.clone();
                if self.host_depth == 0 && !matches!(shape, Shape::Cspec(_) | Shape::Vspec(_)) {
                    let message = format!("the register variable `{name}` in a tick");
                    self.unsupported(from, &message, "it has no address: use `$`, or leave out `register`");
                }
                (ExpressionKind::Object, shape)
            }
            Some(Entity::Typedef(_)) => {
                self.syntax("an expression instead of a type");
                (ExpressionKind::Error, Shape::Plain)
            }
            // The C compiler reports a name that is not declared.
            None if matches!(name, "true" | "false" | "nullptr") => (ExpressionKind::Constant, Shape::Plain),
            None => (ExpressionKind::Object, Shape::Plain),
        };
        let result = self.make(kind, from, shape);
        self.spliced(result)
    }

    fn special(&mut self) -> Expression {
        let from = self.parser.at;
        let name = self.parser.peek(0);
        let special = *SPECIAL.iter().find(|own| own.name == name).expect("`is_special_call` has found it");
        if !special.is_dynamic {
            if self.host_depth > 0 {
                self.parser.special_call();
                let shape = match name {
                    "local" | "param" => Shape::Vspec(Box::new(Shape::Plain)),
                    _ => Shape::Cspec(Box::new(Shape::Plain)),
                };
                return self.make(ExpressionKind::Object, from, shape);
            }
            self.unsupported(from, &format!("`{name}` in a tick"), "call it in front of the tick");
        }
        self.parser.at += 2;
        let ty = Range { from: self.parser.at, to: self.parser.at };
        let ty = if name == "self" {
            let shape = self.parser.specifiers().shape;
            self.parser.declarator(shape);
            let end = self.parser.at;
            self.parser.accept(",");
            Range { to: end, ..ty }
        } else {
            ty
        };
        if name != "self" {
            self.host_depth += usize::from(name == "jump");
        }
        let mut arguments = if name == "apply" { self.apply_arguments() } else { self.arguments() };
        self.host_depth -= usize::from(name == "jump");
        let count = arguments.len();
        let kind = match (name, count) {
            ("self", _) if ty.to > ty.from => ExpressionKind::SelfCall(ty, arguments),
            ("jump", 1) => ExpressionKind::Jump(Box::new(arguments.remove(0))),
            ("apply", 2) => {
                let list = arguments.remove(1);
                ExpressionKind::Apply(Box::new(arguments.remove(0)), Box::new(list))
            }
            _ => {
                let message = format!("`{name}` with {count} arguments");
                let help = format!("its form is `{}`", special.form);
                self.parser.report(Code::Special, from, self.parser.at, message, &help);
                ExpressionKind::Error
            }
        };
        self.make(kind, from, Shape::Plain)
    }

    /// A callee, and a list that is evaluated with the tick.
    fn apply_arguments(&mut self) -> Vec<Expression> {
        let mut arguments = vec![self.assignment()];
        if self.parser.accept(",") {
            self.host_depth += 1;
            arguments.push(self.assignment());
            self.host_depth -= 1;
        }
        self.expect(")");
        arguments
    }
}
