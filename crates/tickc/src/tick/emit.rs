//! Translates the tree of a tick to C that builds it in the run-time library when the tick is evaluated.
//!
//! For each node the C compiler infers a type from an expression that is never evaluated, its *dummy*: an operand of
//! type
//! `q3` is `QJT_L(3)` there, which is `*(q3 *)0`. Each node has one typedef, so that the text grows with the tick,
//! not with
//! its square. Type errors are those of the C compiler, at the line of the source.

use super::statement::{Local, TickBody};
use super::tree::{Expression, ExpressionKind, Fixity, Prefix, Range, Spliced, Statement, StatementKind};
use crate::diagnostics::Code;
use crate::lex::{TokenKind, line_marker};
use crate::parser::{Edit, Parser};
use crate::report::{Event, Remark};
use crate::scope::Parameters;
use std::collections::HashSet;
use std::fmt::Write as _;

/// A translated expression.
pub(super) struct Value {
    /// C that makes its node.
    pub(super) code: String,
    /// The number of its type.
    pub(super) ty: usize,
    /// What stands for it in the dummies of others.
    pub(super) dummy: String,
    /// Whether the node is a place in memory or a variable, not a value.
    pub(super) is_place: bool,
}

pub(super) struct Emitter<'p, 't> {
    pub(super) parser: &'p mut Parser<'t>,
    pub(super) locals: &'p [Local],
    pub(super) out: String,
    /// Induction variables of loops that are being unrolled: variables of the host.
    pub(super) unrolled: HashSet<usize>,
    /// The loops around the place that are generated as loops although they could be unrolled.
    pub(super) alternatives: usize,
    /// The number that the variable with the number 0 of this tick has in generated names.
    first_local: usize,
    pub(super) nodes: usize,
}

impl<'p, 't> Emitter<'p, 't> {
    pub(super) fn new(parser: &'p mut Parser<'t>, locals: &'p [Local]) -> Emitter<'p, 't> {
        let first_local = parser.next_name;
        parser.next_name += locals.len();
        Emitter { parser, locals, out: String::new(), unrolled: HashSet::new(), alternatives: 0, first_local, nodes: 0 }
    }

    /// The C expression that stands for a tick.
    pub(super) fn tick(&mut self, body: &TickBody) -> String {
        let frame = self.fresh();
        let _ = write!(self.out, "({{ qjt_frame qjt_f{frame}; qjt_open(&qjt_f{frame}); ");
        match body {
            TickBody::Expression(own) => {
                let value = self.expression(own);
                let ty = self.define("QJT_VALUE", &value.dummy);
                let code = self.loaded(value);
                let _ = write!(self.out, "(qjt_q{ty} (*)(qjt_c))qjt_close(&qjt_f{frame}, qjt_t{ty}, {code}); }})");
            }
            TickBody::Block(statement) => {
                self.statement(statement);
                let _ = write!(self.out, "\n(void (*)(qjt_c))qjt_close(&qjt_f{frame}, QJT_VOID, 0); }})");
            }
        }
        std::mem::take(&mut self.out)
    }

    pub(super) fn fresh(&mut self) -> usize {
        self.parser.next_name += 1;
        self.parser.next_name
    }

    /// Defines a type by a macro of the header and an unevaluated expression; its number.
    pub(super) fn define(&mut self, macro_name: &str, expression: &str) -> usize {
        let ty = self.fresh();
        let _ = write!(self.out, "{macro_name}({ty}, {expression}); ");
        ty
    }

    pub(super) fn place(&mut self, expression: &str, code: String) -> Value {
        let ty = self.define("QJT_PLACE", expression);
        self.nodes += 1;
        Value { code, ty, dummy: format!("QJT_L({ty})"), is_place: true }
    }

    /// A value whose type the dummy expression has; `code` makes the node from the number of the type.
    pub(super) fn value(&mut self, expression: &str, code: impl FnOnce(usize) -> String) -> Value {
        let ty = self.define("QJT_VALUE", expression);
        self.nodes += 1;
        Value { code: code(ty), ty, dummy: format!("QJT_R({ty})"), is_place: false }
    }

    /// The code of a value: of what is in a place, unless it is an array or function, whose value is its address.
    pub(super) fn loaded(&mut self, value: Value) -> String {
        if value.is_place {
            format!("qjt_load(qjt_t{}, QJT_DECAYS({}), {})", value.ty, value.ty, value.code)
        } else {
            value.code
        }
    }

    /// Host text: tokens with their edits, and without `$`, which changes nothing there.
    pub(super) fn host_text(&mut self, range: Range) -> String {
        let dollars: Vec<Edit> = (range.from..range.to)
            .filter(|at| self.parser.tokens[*at].kind == TokenKind::Sign && self.parser.token_text(*at) == "$")
            .map(|at| {
                let token = self.parser.tokens[at];
                Edit { start: token.start, end: token.end, text: String::new() }
            })
            .collect();
        self.parser.rewritten(range.from, range.to, &dollars)
    }

    /// The text of an expression that is evaluated with the tick. Reports variables of generated code in it.
    fn evaluated_text(&mut self, own: &Expression) -> String {
        if let Some(local) = own.locals().into_iter().find(|local| !self.unrolled.contains(local)) {
            let message = format!("`{}` has a value only when the generated code runs", self.locals[local].name);
            let help = "a `$` or splice is evaluated with the tick: use variables outside of it, or counters of unrolled loops";
            self.parser.report(Code::DynamicConstant, own.range.from, own.range.to, message, help);
        }
        self.host_text(own.range)
    }

    /// Whether the value is known when the tick is evaluated.
    pub(super) fn is_constant(&self, own: &Expression) -> bool {
        match &own.kind {
            ExpressionKind::Constant | ExpressionKind::Ordinal(_) => true,
            ExpressionKind::Local(local) => self.unrolled.contains(local),
            ExpressionKind::Dollar(operand) => operand.locals().iter().all(|local| self.unrolled.contains(local)),
            ExpressionKind::Prefix(Prefix::Plus | Prefix::Negate | Prefix::Complement | Prefix::Not, operand)
            | ExpressionKind::Cast(_, operand) => self.is_constant(operand),
            ExpressionKind::Binary(_, left, right) => self.is_constant(left) && self.is_constant(right),
            ExpressionKind::Conditional(condition, left, right) => {
                [condition, left, right].into_iter().all(|part| self.is_constant(part))
            }
            ExpressionKind::Text
            | ExpressionKind::Literal { .. }
            | ExpressionKind::Object
            | ExpressionKind::Splice(..)
            | ExpressionKind::Prefix(Prefix::Dereference | Prefix::AddressOf, _)
            | ExpressionKind::Step { .. }
            | ExpressionKind::Assign { .. }
            | ExpressionKind::Sizeof(_)
            | ExpressionKind::Member { .. }
            | ExpressionKind::Index(..)
            | ExpressionKind::Call(..)
            | ExpressionKind::SelfCall(..)
            | ExpressionKind::Apply(..)
            | ExpressionKind::Jump(_)
            | ExpressionKind::Error => false,
        }
    }

    /// `ty, node` of a value, as arguments of the library.
    pub(super) fn operand(&mut self, own: &Expression) -> (String, String) {
        let value = self.expression(own);
        let dummy = value.dummy.clone();
        let ty = value.ty;
        let code = self.loaded(value);
        (format!("qjt_t{ty}, {code}"), dummy)
    }

    /// The same with the size of what a pointer points to, for arithmetic.
    fn scaled(&mut self, own: &Expression) -> (String, String) {
        let value = self.expression(own);
        let (dummy, ty) = (value.dummy.clone(), value.ty);
        let code = self.loaded(value);
        (format!("qjt_t{ty}, QJT_STEP(qjt_t{ty}, {dummy}), {code}"), dummy)
    }

    pub(super) fn expression(&mut self, own: &Expression) -> Value {
        match &own.kind {
            ExpressionKind::Constant => self.constant(own.range),
            ExpressionKind::Ordinal(number) => {
                let value = self.value(&number.to_string(), |ty| format!("qjt_integer(qjt_t{ty}, {number})"));
                Value { dummy: number.to_string(), ..value }
            }
            ExpressionKind::Literal { text, local, initial } => self.literal(text, *local, initial),
            ExpressionKind::Text => {
                let text = self.host_text(own.range);
                self.place(&text, format!("qjt_at({text})"))
            }
            ExpressionKind::Object => {
                let text = self.host_text(own.range);
                self.place(&format!("({text})"), format!("qjt_at((const void *)&({text}))"))
            }
            ExpressionKind::Local(local) => {
                let name = self.locals[*local].name.clone();
                if self.unrolled.contains(local) {
                    return self.value(&name, |ty| format!("qjt_captured(qjt_t{ty}, &{name})"));
                }
                let code = self.variable(*local);
                self.place(&name, code)
            }
            ExpressionKind::Dollar(operand) => {
                let text = self.evaluated_text(operand);
                self.value(&format!("{}({text})", promotion(operand)), |ty| {
                    format!("qjt_captured(QJT_SCALAR(qjt_t{ty}), (qjt_q{ty} [1]){{{text}}})")
                })
            }
            ExpressionKind::Splice(Spliced::Cspec, operand) => {
                let text = self.evaluated_text(operand);
                self.value(&format!("({text})((qjt_c){{0}})"), |ty| {
                    format!("qjt_splice(qjt_t{ty}, (const void *)({text}))")
                })
            }
            ExpressionKind::Splice(Spliced::Vspec, operand) => {
                let text = self.evaluated_text(operand);
                self.place(&format!("*({text})((qjt_v){{0}})"), format!("qjt_vspec((const void *)({text}))"))
            }
            ExpressionKind::Prefix(prefix, operand) => self.prefix(*prefix, operand),
            ExpressionKind::Step { operator, fixity, operand } => self.step(operator, *fixity, operand),
            ExpressionKind::Binary(operator, left, right) => self.binary(operator, left, right),
            ExpressionKind::Assign { operator, target, value } => self.assign(operator, target, value),
            ExpressionKind::Conditional(condition, left, right) => self.conditional(condition, left, right),
            ExpressionKind::Cast(ty, operand) => self.cast(*ty, operand),
            ExpressionKind::Sizeof(operand) => {
                let dummy = self.expression(operand).dummy;
                self.value(&format!("sizeof({dummy})"), |ty| {
                    format!("qjt_integer(qjt_t{ty}, (long long)sizeof({dummy}))")
                })
            }
            ExpressionKind::Member { base, is_arrow, name, is_bit_field: true } => {
                self.bit_field(base, *is_arrow, *name)
            }
            ExpressionKind::Member { base, is_arrow, name, is_bit_field: false } => self.member(base, *is_arrow, *name),
            ExpressionKind::Index(base, index) => {
                let (left, left_dummy) = self.scaled(base);
                let (right, right_dummy) = self.scaled(index);
                self.place(&format!("{left_dummy}[{right_dummy}]"), format!("qjt_index({left}, {right})"))
            }
            ExpressionKind::Call(callee, arguments) => self.call(callee, arguments),
            ExpressionKind::SelfCall(ty, arguments) => self.self_call(*ty, arguments),
            ExpressionKind::Apply(callee, list) => self.apply(callee, list),
            ExpressionKind::Jump(operand) => {
                let text = self.evaluated_text(operand);
                self.value("(void)0", |ty| format!("qjt_splice(qjt_t{ty}, qjt_jump((const void *)({text})))"))
            }
            // It was reported, and the text is not used.
            ExpressionKind::Error => self.value("0", |_| "0".to_owned()),
        }
    }

    pub(super) fn variable(&self, local: usize) -> String {
        format!("qjt_v{}", self.first_local + local)
    }

    /// A literal or the like. It stays itself in dummies, because `0` is a null pointer, too.
    fn constant(&mut self, range: Range) -> Value {
        let text = self.host_text(range);
        let first = self.parser.token_text(range.from);
        let is_hexadecimal = first.starts_with("0x") || first.starts_with("0X");
        let is_number = self.parser.tokens[range.from].kind == TokenKind::Number;
        let exponents: &[char] = if is_hexadecimal { &['p', 'P', '.'] } else { &['e', 'E', '.'] };
        let is_floating = is_number && range.to == range.from + 1 && first.contains(exponents);
        let value = self.value(&format!("({text})"), |ty| match is_floating {
            true => format!("qjt_floating(qjt_t{ty}, (double)({text}))"),
            false => format!("qjt_integer(qjt_t{ty}, (long long)({text}))"),
        });
        Value { dummy: format!("({text})"), ..value }
    }

    fn prefix(&mut self, prefix: Prefix, operand: &Expression) -> Value {
        match prefix {
            Prefix::Dereference => {
                let value = self.expression(operand);
                let dummy = format!("*{}", value.dummy);
                let code = self.loaded(value);
                self.place(&dummy, format!("qjt_dereference({code})"))
            }
            Prefix::AddressOf => {
                let value = self.expression(operand);
                let code = value.code;
                self.value(&format!("&{}", value.dummy), |_| format!("qjt_address({code})"))
            }
            Prefix::Not => {
                let (code, dummy) = self.operand(operand);
                self.value(&format!("!{dummy}"), |_| format!("qjt_not({code})"))
            }
            Prefix::Plus | Prefix::Negate | Prefix::Complement => {
                let (code, dummy) = self.operand(operand);
                let (sign, operation) = match prefix {
                    Prefix::Negate => ("-", "QJT_NEGATE"),
                    Prefix::Complement => ("~", "QJT_COMPLEMENT"),
                    _ => ("+", "QJT_CONVERT"),
                };
                self.value(&format!("{sign}{dummy}"), |ty| format!("qjt_unary({operation}, qjt_t{ty}, {code})"))
            }
        }
    }

    fn binary(&mut self, operator: &str, left: &Expression, right: &Expression) -> Value {
        match operator {
            "+" | "-" => {
                let (left, left_dummy) = self.scaled(left);
                let (right, right_dummy) = self.scaled(right);
                let operation = operation(operator);
                self.value(&format!("{left_dummy} {operator} {right_dummy}"), |ty| {
                    format!("qjt_add({operation}, qjt_t{ty}, {left}, {right})")
                })
            }
            "," => {
                let (left, left_dummy) = self.operand(left);
                let (right, right_dummy) = self.operand(right);
                let dummy = format!("((void){left_dummy}, {right_dummy})");
                self.value(&dummy, |_| format!("qjt_comma({left}, {right})"))
            }
            "&&" | "||" => {
                let (left, left_dummy) = self.operand(left);
                let (right, right_dummy) = self.operand(right);
                let operation = operation(operator);
                let dummy = format!("{left_dummy} {operator} {right_dummy}");
                self.value(&dummy, |_| format!("qjt_logical({operation}, {left}, {right})"))
            }
            "==" | "!=" | "<" | ">" | "<=" | ">=" => {
                let (left, left_dummy) = self.operand(left);
                let (right, right_dummy) = self.operand(right);
                let common = self.define("QJT_VALUE", &format!("1 ? {left_dummy} : {right_dummy}"));
                let operation = operation(operator);
                self.value(&format!("{left_dummy} {operator} {right_dummy}"), |_| {
                    format!("qjt_compare({operation}, qjt_t{common}, {left}, {right})")
                })
            }
            _ => {
                let (left, left_dummy) = self.operand(left);
                let (right, right_dummy) = self.operand(right);
                let operation = operation(operator);
                self.value(&format!("{left_dummy} {operator} {right_dummy}"), |ty| {
                    format!("qjt_arithmetic({operation}, qjt_t{ty}, {left}, {right})")
                })
            }
        }
    }

    pub(super) fn assign(&mut self, operator: &str, target: &Expression, value: &Expression) -> Value {
        let promotion = promotion(target);
        let target = self.expression(target);
        let (value, dummy) = self.operand(value);
        let Value { code, ty: to, dummy: target_dummy, .. } = target;
        if operator.is_empty() {
            return self.value(&format!("{promotion}({target_dummy} = {dummy})"), |ty| {
                format!("qjt_assign(qjt_t{to}, QJT_SIZE({ty}), {code}, {value})")
            });
        }
        let operation_type = self.define("QJT_VALUE", &format!("{target_dummy} {operator} {dummy}"));
        let operation = operation(operator);
        self.value(&format!("{promotion}({target_dummy} {operator}= {dummy})"), |_| {
            format!(
                "qjt_update({operation}, qjt_t{to}, qjt_t{operation_type}, QJT_STEP(qjt_t{to}, {target_dummy}), {code}, \
                 {value}, QJT_AFTER)"
            )
        })
    }

    fn step(&mut self, operator: &str, fixity: Fixity, operand: &Expression) -> Value {
        let promotion = promotion(operand);
        let Value { code, ty: to, dummy, .. } = self.expression(operand);
        let operation_type = self.define("QJT_VALUE", &format!("{dummy} {operator} 1"));
        let operation = operation(operator);
        let (expression, when) = match fixity {
            Fixity::Prefix => (format!("{promotion}({operator}{operator}{dummy})"), "QJT_AFTER"),
            Fixity::Postfix => (format!("{promotion}({dummy}{operator}{operator})"), "QJT_BEFORE"),
        };
        self.value(&expression, |_| {
            format!(
                "qjt_update({operation}, qjt_t{to}, qjt_t{operation_type}, QJT_STEP(qjt_t{to}, {dummy}), {code}, QJT_INT, \
                 qjt_integer(QJT_INT, 1), {when})"
            )
        })
    }

    fn conditional(&mut self, condition: &Expression, left: &Expression, right: &Expression) -> Value {
        let is_decided = self.is_constant(condition);
        let host = is_decided.then(|| self.host_text(condition.range));
        let (condition, condition_dummy) = match &host {
            Some(text) => (String::new(), format!("({text})")),
            None => self.operand(condition),
        };
        let (left, left_dummy) = self.operand(left);
        let (right, right_dummy) = self.operand(right);
        let dummy = format!("{condition_dummy} ? {left_dummy} : {right_dummy}");
        self.value(&dummy, |ty| match host {
            Some(text) => {
                format!("(({text}) ? qjt_convert(qjt_t{ty}, {left}) : qjt_convert(qjt_t{ty}, {right}))")
            }
            None => format!("qjt_choose(QJT_NO_AGGREGATE(qjt_t{ty}), {condition}, {left}, {right})"),
        })
    }

    fn cast(&mut self, ty: Range, operand: &Expression) -> Value {
        let text = self.parser.rewritten(ty.from, ty.to, &[]);
        let is_literal = matches!(operand.kind, ExpressionKind::Constant | ExpressionKind::Cast(..));
        let (code, dummy) = self.operand(operand);
        let cast = format!("(({text}){dummy})");
        let value = self.value(&cast, |ty| format!("qjt_convert(qjt_t{ty}, {code})"));
        // A null pointer constant stays one.
        if is_literal { Value { dummy: cast, ..value } } else { value }
    }

    fn member(&mut self, base: &Expression, is_arrow: bool, name: usize) -> Value {
        let name = self.parser.token_text(name);
        let base = self.expression(base);
        let dummy = base.dummy.clone();
        if is_arrow {
            let code = self.loaded(base);
            let offset = format!("__builtin_offsetof(__typeof__(*{dummy}), {name})");
            return self.place(&format!("{dummy}->{name}"), format!("qjt_member(qjt_dereference({code}), {offset})"));
        }
        let offset = format!("__builtin_offsetof(__typeof__({dummy}), {name})");
        self.place(&format!("{dummy}.{name}"), format!("qjt_member({}, {offset})", base.code))
    }

    /// Types and nodes of arguments, and their dummies.
    fn arguments(&mut self, arguments: &[Expression], types: &[String]) -> (String, Vec<String>) {
        let (mut numbers, mut nodes, mut dummies) = (String::new(), String::new(), Vec::new());
        for (index, argument) in arguments.iter().enumerate() {
            let value = self.expression(argument);
            let (ty, dummy) = (value.ty, value.dummy.clone());
            let code = self.loaded(value);
            let wanted = match types.get(index) {
                Some(text) => format!("qjt_t{}", self.define("QJT_PLACE", &format!("*(__typeof__({text}) *)0"))),
                None => format!("QJT_PROMOTED(qjt_t{ty})"),
            };
            let _ = write!(numbers, "QJT_ARGUMENT({wanted}), ");
            let _ = write!(nodes, "qjt_convert({wanted}, qjt_t{ty}, {code}), ");
            dummies.push(dummy);
        }
        let count = arguments.len();
        (format!("{count}, (const unsigned char []){{{numbers}0}}, (qjt_node *[]){{{nodes}0}}"), dummies)
    }

    fn call(&mut self, callee: &Expression, arguments: &[Expression]) -> Value {
        let parameters = callee.shape.parameters().clone();
        if let Some(call) = self.record_call(callee, arguments) {
            return call;
        }
        let callee = self.expression(callee);
        let callee_dummy = callee.dummy.clone();
        let callee = self.loaded(callee);
        let (types, fixed) = match &parameters {
            Parameters::Known { types, is_variadic, .. } => {
                (types.as_slice(), if *is_variadic { types.len() as i64 } else { -1 })
            }
            Parameters::Unknown => (&[][..], -1),
        };
        let (code, dummies) = self.arguments(arguments, types);
        let value = self.value(&format!("{callee_dummy}({})", dummies.join(", ")), |ty| {
            format!("qjt_call(QJT_NO_AGGREGATE(qjt_t{ty}), {callee}, {fixed}, {code})")
        });
        if parameters == Parameters::Unknown {
            let promoted: Vec<String> =
                dummies.iter().map(|dummy| format!("__typeof__(QJT_PROMOTE({dummy}))")).collect();
            let list = if promoted.is_empty() { "void".to_owned() } else { promoted.join(", ") };
            let _ = write!(self.out, "QJT_CHECK_CALL({callee_dummy}, {}, ({list})); ", value.ty);
        }
        value
    }

    fn self_call(&mut self, ty: Range, arguments: &[Expression]) -> Value {
        let text = self.parser.rewritten(ty.from, ty.to, &[]);
        let (code, _) = self.arguments(arguments, &[]);
        self.value(&format!("(*(__typeof__({text}) (*)(void))0)()"), |ty| {
            format!("qjt_self(QJT_NO_AGGREGATE(qjt_t{ty}), {code})")
        })
    }

    fn apply(&mut self, callee: &Expression, list: &Expression) -> Value {
        let types = match callee.shape.parameters() {
            Parameters::Known { types, .. } => types.clone(),
            Parameters::Unknown => Vec::new(),
        };
        let callee = self.expression(callee);
        let dummies: Vec<String> = types.iter().map(|text| format!("*(__typeof__({text}) *)0")).collect();
        let dummy = format!("{}({})", callee.dummy, dummies.join(", "));
        let callee = self.loaded(callee);
        let list = self.evaluated_text(list);
        self.value(&dummy, |ty| format!("qjt_apply(QJT_NO_AGGREGATE(qjt_t{ty}), {callee}, (const void *)({list}))"))
    }

    /// A line marker in front of code for a statement, so that errors of the C compiler have its line.
    fn mark_line(&mut self, from: usize) {
        let location = self.parser.lines.locate(self.parser.start_of(from));
        if !location.file.is_empty() {
            self.out.push_str(&line_marker(location));
        }
    }

    pub(super) fn statement(&mut self, own: &Statement) {
        self.mark_line(own.from);
        match &own.kind {
            StatementKind::Empty => {}
            StatementKind::Block(statements) => {
                self.out.push_str("{ qjt_block(); ");
                statements.iter().for_each(|own| self.statement(own));
                self.out.push_str("qjt_end(); } ");
            }
            StatementKind::Declaration { text, variables } => self.declaration(text, variables),
            StatementKind::Expression(value) => self.effect(value),
            StatementKind::If(condition, then, otherwise) => {
                self.branch(own.from, condition, then, otherwise.as_deref())
            }
            StatementKind::While(condition, body) => {
                self.out.push_str("{ qjt_loop(QJT_TEST_FIRST); ");
                let (condition, _) = self.operand(condition);
                let _ = write!(self.out, "qjt_condition({condition}); ");
                self.statement(body);
                self.out.push_str("qjt_end(); } ");
            }
            StatementKind::Do(body, condition) => {
                self.out.push_str("{ qjt_loop(QJT_TEST_LAST); ");
                self.statement(body);
                let (condition, _) = self.operand(condition);
                let _ = write!(self.out, "qjt_condition({condition}); qjt_end(); }} ");
            }
            StatementKind::For(parts) => self.for_loop(own.from, parts),
            StatementKind::Switch(value, body) => {
                let (value, dummy) = self.operand(value);
                let promoted = self.define("QJT_VALUE", &format!("+{dummy}"));
                let _ = write!(self.out, "{{ qjt_switch(qjt_t{promoted}, {value}); ");
                self.statement(body);
                self.out.push_str("qjt_end(); } ");
            }
            StatementKind::Case(value) => {
                if self.is_constant(value) {
                    let text = self.host_text(value.range);
                    let _ = write!(self.out, "qjt_case((long long)({text})); ");
                } else {
                    let help = "use `$`, a literal, or `if`";
                    let (from, to) = (value.range.from, value.range.to);
                    self.parser.report(Code::DynamicConstant, from, to, "a case that is no run-time constant", help);
                }
            }
            StatementKind::Default => self.out.push_str("qjt_default(); "),
            StatementKind::Break => self.out.push_str("qjt_break(); "),
            StatementKind::Continue => self.out.push_str("qjt_continue(); "),
            StatementKind::Return(None) => self.out.push_str("qjt_return(QJT_VOID, 0); "),
            StatementKind::Return(Some(value)) => {
                self.out.push_str("{ ");
                let (value, _) = self.operand(value);
                let _ = write!(self.out, "qjt_return({value}); }} ");
            }
        }
    }

    /// An expression whose value is not used.
    fn effect(&mut self, own: &Expression) {
        self.out.push_str("{ ");
        let value = self.expression(own);
        let _ = write!(self.out, "qjt_do(qjt_t{}, {}); }} ", value.ty, value.code);
    }

    fn declaration(&mut self, text: &str, variables: &[super::tree::Variable]) {
        let _ = write!(self.out, "__attribute__((unused)) {text}; ");
        for variable in variables {
            let local = &self.locals[variable.local];
            let (name, has_address) = (local.name.clone(), u8::from(local.has_address));
            let handle = self.variable(variable.local);
            let ty = self.define("QJT_PLACE", &name);
            let _ = write!(
                self.out,
                "__attribute__((unused)) qjt_node *{handle} = qjt_variable(qjt_t{ty}, QJT_DECAYS({ty}), {has_address}, \
                 sizeof(qjt_q{ty}), _Alignof(qjt_q{ty})); "
            );
            if let Some(initial) = &variable.initial {
                let code = self.initialize(variable.local, ty, initial);
                let _ = write!(self.out, "qjt_do(QJT_VOID, {code}); ");
            }
        }
    }

    fn branch(&mut self, from: usize, condition: &Expression, then: &Statement, otherwise: Option<&Statement>) {
        if self.is_constant(condition) {
            let text = self.host_text(condition.range);
            self.remark(from, Event::Decided);
            let _ = write!(self.out, "if ({text}) {{ ");
            self.statement(then);
            self.out.push_str("} ");
            if let Some(otherwise) = otherwise {
                self.out.push_str("else { ");
                self.statement(otherwise);
                self.out.push_str("} ");
            }
            return;
        }
        self.out.push_str("{ ");
        let (condition, _) = self.operand(condition);
        let _ = write!(self.out, "qjt_if({condition}); ");
        self.statement(then);
        if let Some(otherwise) = otherwise {
            self.out.push_str("qjt_else(); ");
            self.statement(otherwise);
        }
        self.out.push_str("qjt_end(); } ");
    }

    pub(super) fn remark(&mut self, from: usize, event: Event) {
        let offset = self.parser.start_of(from);
        self.parser.remarks.push(Remark { offset, event });
    }
}

/// What makes a type of the value of an assignment to a place: that of a bit-field has none of its own.
fn promotion(target: &Expression) -> &'static str {
    match target.kind {
        ExpressionKind::Member { is_bit_field: true, .. } => "+",
        _ => "",
    }
}

/// The operation of the library for a binary operator.
fn operation(operator: &str) -> &'static str {
    match operator {
        "+" => "QJT_ADD",
        "-" => "QJT_SUBTRACT",
        "*" => "QJT_MULTIPLY",
        "/" => "QJT_DIVIDE",
        "%" => "QJT_REMAINDER",
        "&" => "QJT_AND",
        "|" => "QJT_OR",
        "^" => "QJT_XOR",
        "<<" => "QJT_LEFT",
        ">>" => "QJT_RIGHT",
        "==" => "QJT_EQUAL",
        "!=" => "QJT_UNEQUAL",
        "<" => "QJT_LESS",
        ">" => "QJT_GREATER",
        "<=" => "QJT_LESS_EQUAL",
        ">=" => "QJT_GREATER_EQUAL",
        "&&" => "QJT_BOTH",
        "||" => "QJT_EITHER",
        other => unreachable!("the parser knows no operator `{other}`"),
    }
}
