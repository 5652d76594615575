//! Translates what concerns parts of objects: initial values in braces, compound literals, bit-fields, and calls with
//! structs by value.

use super::emit::{Emitter, Value};
use super::tree::{Expression, ExpressionKind, Initial};
use crate::lex::line_marker;
use crate::parser::Edit;
use crate::scope::{Parameters, Shape};
use std::fmt::Write as _;

impl Emitter<'_, '_> {
    /// Code that gives a variable, whose type has this number, its initial value.
    pub(super) fn initialize(&mut self, local: usize, ty: usize, initial: &Initial) -> String {
        let handle = self.variable(local);
        match initial {
            Initial::Value(value) => {
                let (value, dummy) = self.operand(value);
                // As an initial value, because the variable may be `const`.
                self.define("QJT_VALUE", &format!("((qjt_q{ty} [1]){{{dummy}}})[0]"));
                format!("qjt_assign(qjt_t{ty}, sizeof(qjt_q{ty}), {handle}, {value})")
            }
            Initial::Parts(parts) => {
                let mut code = format!("qjt_zero({handle}, sizeof(qjt_q{ty}))");
                for (place, value) in parts {
                    let part = self.part(place, value);
                    code = format!("qjt_comma(QJT_VOID, {code}, QJT_VOID, {part})");
                }
                code
            }
        }
    }

    /// The assignment of an initial value to a part.
    fn part(&mut self, place: &Expression, value: &Expression) -> String {
        if let ExpressionKind::Member { is_bit_field: true, .. } = place.kind {
            return self.assign("", place, value).code;
        }
        let target = self.expression(place);
        let (ty, code) = (target.ty, target.code);
        if let (Shape::Array(_), ExpressionKind::Text) = (&place.shape, &value.kind) {
            let text = self.host_text(value.range);
            let size = format!("(sizeof(qjt_q{ty}) < sizeof({text}) ? sizeof(qjt_q{ty}) : sizeof({text}))");
            return format!("qjt_assign(QJT_AGGREGATE, {size}, {code}, QJT_AGGREGATE, qjt_at({text}))");
        }
        let (value, dummy) = self.operand(value);
        self.define("QJT_VALUE", &format!("((qjt_q{ty} [1]){{{dummy}}})[0]"));
        format!("qjt_assign(qjt_t{ty}, sizeof(qjt_q{ty}), {code}, {value})")
    }

    /// A compound literal: a variable that has its value from here on.
    pub(super) fn literal(&mut self, text: &str, local: usize, initial: &Initial) -> Value {
        let (name, handle) = (self.locals[local].name.clone(), self.variable(local));
        let _ = write!(self.out, "__attribute__((unused)) __typeof__({text}) {name}; ");
        let ty = self.define("QJT_PLACE", &name);
        let _ =
            write!(self.out, "qjt_node *{handle} = qjt_temporary(qjt_t{ty}, sizeof(qjt_q{ty}), _Alignof(qjt_q{ty})); ");
        let value = self.initialize(local, ty, initial);
        self.place(&name, format!("qjt_comma(QJT_VOID, {value}, qjt_t{ty}, {handle})"))
    }

    /// A bit-field, which the library finds by setting it in an object of its type.
    pub(super) fn bit_field(&mut self, base: &Expression, is_arrow: bool, name: usize) -> Value {
        let name = self.parser.token_text(name);
        let base = self.expression(base);
        let (object, dummy) = if is_arrow {
            (format!("*{}", base.dummy), format!("{}->{name}", base.dummy))
        } else {
            (base.dummy.clone(), format!("{}.{name}", base.dummy))
        };
        let place = if is_arrow { format!("qjt_dereference({})", self.loaded(base)) } else { base.code };
        let whole = self.define("QJT_VALUE", &object);
        let field = self.value(&format!("+{dummy}"), |ty| format!("QJT_FIELD({whole}, qjt_t{ty}, {place}, {name})"));
        Value { dummy, is_place: true, ..field }
    }

    /// A call of a declared function with structs or unions as parameters or result; none for other calls. A forwarder,
    /// which is a function of the host, has their addresses as parameters.
    pub(super) fn record_call(&mut self, callee: &Expression, arguments: &[Expression]) -> Option<Value> {
        let (Parameters::Known { types, are_records, is_variadic: false }, Shape::Function { result, .. }) =
            (callee.shape.parameters().clone(), &callee.shape)
        else {
            return None;
        };
        let has_record_result = matches!(**result, Shape::Record(_));
        let is_named = matches!(callee.kind, ExpressionKind::Object) && types.len() == arguments.len();
        if !is_named || !(has_record_result || are_records.contains(&true)) {
            return None;
        }
        let function = self.host_text(callee.range);
        let forwarder = self.forwarder(&function, &types, &are_records, has_record_result);
        let (mut numbers, mut nodes, mut dummies) = (String::new(), String::new(), Vec::new());
        for (argument, (text, is_record)) in arguments.iter().zip(types.iter().zip(&are_records)) {
            let value = self.expression(argument);
            let (ty, dummy) = (value.ty, value.dummy.clone());
            let code = self.loaded(value);
            if *is_record {
                numbers.push_str("QJT_POINTER, ");
                let _ = write!(nodes, "qjt_address({code}), ");
            } else {
                let wanted = self.define("QJT_PLACE", &format!("*(__typeof__({text}) *)0"));
                let _ = write!(numbers, "qjt_t{wanted}, ");
                let _ = write!(nodes, "qjt_convert(qjt_t{wanted}, qjt_t{ty}, {code}), ");
            }
            dummies.push(dummy);
        }
        let dummy = format!("{function}({})", dummies.join(", "));
        let count = arguments.len();
        let list = format!("{count}, (const unsigned char []){{{numbers}0}}, (qjt_node *[]){{{nodes}0}}");
        Some(self.value(&dummy, |ty| {
            if has_record_result {
                format!("qjt_call_into(QJT_SIZE({ty}), (const void *){forwarder}, {list})")
            } else {
                format!("qjt_call(qjt_t{ty}, qjt_address(qjt_at((const void *){forwarder})), -1, {list})")
            }
        }))
    }

    /// Writes the function in between, in front of the function with the tick; its name.
    fn forwarder(&mut self, function: &str, types: &[String], are_records: &[bool], has_record_result: bool) -> String {
        let name = format!("qjt_forward{}", self.fresh());
        let (mut parameters, mut values, mut dummies) = (Vec::new(), Vec::new(), Vec::new());
        for (index, (text, is_record)) in types.iter().zip(are_records).enumerate() {
            let (pointer, star) = if *is_record { ("const", "*") } else { ("", "") };
            parameters.push(format!("{pointer} __typeof__({text}) {star}qjt_{index}"));
            values.push(format!("{star}qjt_{index}"));
            dummies.push(format!("*(__typeof__({text}) *)0"));
        }
        let (values, ty) = (values.join(", "), format!("__typeof__({function}({}))", dummies.join(", ")));
        let (result, statement) = if has_record_result {
            parameters.insert(0, format!("{ty} *qjt_result"));
            ("void".to_owned(), format!("*qjt_result = {function}({values})"))
        } else {
            (ty, format!("return {function}({values})"))
        };
        let start = self.parser.start_of(self.parser.declaration_start);
        let location = self.parser.lines.locate(start);
        let marker = if location.file.is_empty() { "\n".to_owned() } else { line_marker(location) };
        let text = format!("static {result} {name}({}) {{ {statement}; }}{marker}", parameters.join(", "));
        self.parser.preludes.push(Edit { start, end: start, text });
        name
    }
}
