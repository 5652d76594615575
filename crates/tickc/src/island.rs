//! Static code: finds the declarations and the ticks in it and copies the rest byte for byte. What it does not know
//! is
//! copied, never an error.

use crate::diagnostics::Code;
use crate::parser::Parser;
use crate::scope::{Entity, Shape};
use crate::special::SPECIAL;

impl Parser<'_> {
    /// A whole translation unit.
    pub(crate) fn translation_unit(&mut self) {
        while !self.is_at_end() {
            let before = self.at;
            self.external_declaration();
            if self.at == before {
                self.advance();
            }
        }
    }

    fn external_declaration(&mut self) {
        self.declaration_start = self.at;
        match self.peek(0) {
            ";" => self.advance(),
            "asm" | "__asm__" | "__asm" | "_Static_assert" | "static_assert" => self.static_expression(&[";"]),
            _ => self.declaration(),
        }
    }

    /// A declaration or function definition.
    fn declaration(&mut self) {
        let specifiers = self.specifiers();
        while !self.is_at_end() && !self.is_next(";") {
            let before = self.at;
            let declarator = self.declarator(specifiers.shape.clone());
            self.declare(&specifiers, &declarator);
            self.skip_attributes();
            let is_function = matches!(declarator.shape, Shape::Function { .. });
            if is_function && (self.is_next("{") || self.starts_type(0) || self.is_old_style_parameter()) {
                self.function_body(&declarator.parameters);
                return;
            }
            if self.accept("=") {
                self.static_expression(&[",", ";"]);
            }
            if !self.accept(",") && (self.at == before || !self.is_next(";")) {
                // Something that this parser does not know.
                self.static_expression(&[";", "}"]);
                break;
            }
        }
        self.accept(";");
    }

    /// Whether a declaration of a parameter of an old function definition comes next, of a type that is not known.
    fn is_old_style_parameter(&self) -> bool {
        self.is_name(0) && self.is_name(1) && matches!(self.peek(2), ";" | ",")
    }

    fn function_body(&mut self, parameters: &[(usize, Shape)]) {
        self.scopes.open();
        for (name, shape) in parameters {
            self.scopes.declare(self.token_text(*name), Entity::Object(shape.clone()));
        }
        while !self.is_at_end() && !self.is_next("{") {
            let before = self.at;
            self.declaration();
            self.at += usize::from(self.at == before);
        }
        self.static_block();
        self.scopes.close();
    }

    /// A compound statement.
    fn static_block(&mut self) {
        if !self.enter() {
            return;
        }
        self.advance();
        self.scopes.open();
        while !self.is_at_end() && !self.is_next("}") {
            let before = self.at;
            self.static_statement();
            self.at += usize::from(self.at == before);
        }
        self.scopes.close();
        self.advance();
        self.leave();
    }

    fn static_statement(&mut self) {
        match self.peek(0) {
            "{" => self.static_block(),
            "for" => {
                self.advance();
                self.scopes.open();
                if self.accept("(") {
                    if self.starts_declaration() {
                        self.declaration()
                    } else {
                        self.static_expression(&[";"])
                    }
                    self.accept(";");
                    self.static_expression(&[")"]);
                    self.accept(")");
                }
                self.nested_statement();
                self.scopes.close();
            }
            "if" | "while" | "switch" => {
                self.advance();
                self.static_expression(&[]);
                self.nested_statement();
            }
            "else" | "do" => {
                self.advance();
                self.nested_statement();
            }
            "case" => {
                self.static_expression(&[":"]);
                self.accept(":");
            }
            "_Static_assert" | "static_assert" => self.static_expression(&[";"]),
            _ if self.is_name(0) && self.peek(1) == ":" => self.at += 2,
            _ if self.starts_declaration() => self.declaration(),
            _ => {
                self.static_expression(&[";", "}"]);
                self.accept(";");
            }
        }
    }

    fn nested_statement(&mut self) {
        if self.enter() {
            self.static_statement();
            self.leave();
        }
    }

    /// Whether a declaration comes next: a type that is no label and no operand.
    fn starts_declaration(&self) -> bool {
        self.starts_type(0)
            || self.is_name(0) && self.is_name(1) && !self.is_statement_word()
            || self.is_name(0) && matches!(self.peek(1), "cspec" | "vspec")
    }

    fn is_statement_word(&self) -> bool {
        matches!(
            self.peek(0),
            "return" | "goto" | "case" | "else" | "do" | "sizeof" | "asm" | "__asm__" | "__asm" | "__builtin_va_arg"
        )
    }

    /// Copies an expression up to one of these signs outside of brackets; without signs, the one group in parentheses
    /// that is next. Ticks, special functions and types in it are translated.
    pub(crate) fn static_expression(&mut self, ends: &[&str]) {
        let mut conditionals = 0usize;
        while !self.is_at_end() {
            let text = self.peek(0);
            if ends.contains(&text) && !(text == ":" && conditionals > 0) {
                return;
            }
            match text {
                "?" => {
                    conditionals += 1;
                    self.advance();
                }
                ":" => {
                    conditionals = conditionals.saturating_sub(1);
                    self.advance();
                }
                "(" if self.peek(1) == "{" => {
                    self.advance();
                    self.static_block();
                    self.accept(")");
                }
                "(" => self.static_group(")"),
                "[" => self.static_group("]"),
                "{" => self.static_group("}"),
                ")" | "]" | "}" => return,
                _ => self.static_token(),
            }
            if ends.is_empty() {
                return;
            }
        }
    }

    fn static_group(&mut self, close: &str) {
        if self.enter() {
            self.advance();
            while !self.is_at_end() && !self.is_next(close) {
                let before = self.at;
                self.static_expression(&[close]);
                if self.at == before {
                    self.advance();
                }
            }
            self.advance();
            self.leave();
        }
    }

    /// One token of an expression, or a construct that begins with it.
    fn static_token(&mut self) {
        let text = self.peek(0);
        match text {
            "`" => self.tick(),
            "$" | "@" => {
                let help = "put it into a tick expression, or leave it out";
                self.report(
                    Code::Outside,
                    self.at,
                    self.at + 1,
                    format!("`{text}` outside of a tick expression"),
                    help,
                );
                self.advance();
            }
            "cspec" | "vspec" if self.scopes.find(text).is_none() => {
                self.declarator(Shape::Plain);
            }
            _ if self.is_special_call() => self.special_call(),
            "." | "->" => self.at += 2,
            _ => {
                self.check_vspec_use();
                self.advance();
            }
        }
    }

    /// Whether a call of a special function comes next. The names are common: they are special in files of the user
    /// only, and only where no declaration of the name is visible.
    pub(crate) fn is_special_call(&self) -> bool {
        let name = self.peek(0);
        self.peek(1) == "("
            && SPECIAL.iter().any(|special| special.name == name)
            && self.scopes.find(name).is_none()
            && self.is_user_code()
    }

    /// Reports arithmetic with a vspec, which the C compiler would take for arithmetic with a pointer.
    fn check_vspec_use(&mut self) {
        const ARITHMETIC: &[&str] = &["+", "-", "*", "/", "%", "[", "->", "++", "--", "+=", "-="];
        let name = self.peek(0);
        let is_tag = self.at > 0 && matches!(self.token_text(self.at - 1), "struct" | "union" | "enum");
        let is_vspec = !is_tag && matches!(self.scopes.find(name), Some(Entity::Object(Shape::Vspec(_))));
        if is_vspec && self.is_name(0) && ARITHMETIC.contains(&self.peek(1)) {
            let message = format!("the value of the vspec `{name}` is used outside of a tick expression");
            let help = "it has a value only in generated code: put the expression into a tick";
            self.report(Code::VspecValue, self.at, self.at + 2, message, help);
        }
    }
}
