//! The parser of initial values in ticks: lists in braces become assignments to the parts of a variable, which the
//! shape of its type names.

use super::statement::{Local, TickParser};
use super::tree::{Expression, ExpressionKind, Initial, Range};
use crate::diagnostics::Code;
use crate::lex::TokenKind;
use crate::parser::Edit;
use crate::scope::{Entity, Shape, Slot};

/// A list in braces that is read: what is known of the object that it belongs to.
struct List {
    base: Expression,
    /// The parts of a struct or union in order; none for arrays and scalars.
    slots: Option<Vec<Slot>>,
    /// The number of the next part.
    next: usize,
    /// One more than the highest number of an element.
    length: usize,
}

impl TickParser<'_, '_> {
    /// The initial value that is next, of a variable of this shape; and the length that it gives an array.
    pub(super) fn initial_value(&mut self, local: Option<usize>, shape: &Shape) -> (Option<Initial>, Option<String>) {
        let from = self.parser.at;
        let Some(local) = local else {
            self.parser.skip_group();
            return (None, None);
        };
        let is_text = matches!(shape, Shape::Array(_)) && self.parser.kind(0) == Some(TokenKind::Text);
        if is_text {
            let value = self.assignment();
            let length = format!("sizeof({})", self.parser.rewritten(from, self.parser.at, &[]));
            let place = self.variable_place(local, shape, from);
            return (Some(Initial::Parts(vec![(place, value)])), Some(length));
        }
        if !self.parser.is_next("{") {
            return (Some(Initial::Value(self.assignment())), None);
        }
        let base = self.variable_place(local, shape, from);
        let mut parts = Vec::new();
        let length = self.list(base, &mut parts);
        (Some(Initial::Parts(parts)), Some(length.max(1).to_string()))
    }

    /// The variable as a place.
    fn variable_place(&self, local: usize, shape: &Shape, from: usize) -> Expression {
        Expression { kind: ExpressionKind::Local(local), range: Range { from, to: from + 1 }, shape: shape.clone() }
    }

    /// The length of an array that is declared without one: an edit in its brackets, which begin at a token.
    pub(super) fn missing_length(&self, bracket: usize, length: Option<String>) -> Option<Edit> {
        let is_empty = self.parser.token_text(bracket) == "[" && self.parser.token_text(bracket + 1) == "]";
        let at = self.parser.start_of(bracket + 1);
        length.filter(|_| is_empty).map(|text| Edit { start: at, end: at, text })
    }

    /// A compound literal: its type has been read, and its braces are next.
    pub(super) fn literal(&mut self, ty: Range, shape: Shape, from: usize) -> Expression {
        self.parser.next_name += 1;
        let name = format!("qjt_m{}", self.parser.next_name);
        let local = self.locals.len();
        self.locals.push(Local { name, shape: shape.clone(), has_address: true });
        let (initial, length) = self.initial_value(Some(local), &shape);
        let bracket = (ty.from..ty.to).find(|at| self.parser.token_text(*at) == "[").unwrap_or(ty.to);
        let edit = self.missing_length(bracket, length);
        let text = self.parser.rewritten(ty.from, ty.to, edit.as_slice());
        let initial = Box::new(initial.expect("it has a variable"));
        let range = Range { from, to: self.parser.at };
        Expression { kind: ExpressionKind::Literal { text, local, initial }, range, shape }
    }

    /// Reads a list in braces into assignments to the parts of `base`; one more than the number of the last element.
    fn list(&mut self, base: Expression, parts: &mut Vec<(Expression, Expression)>) -> usize {
        let slots = match base.shape {
            Shape::Record(record) => Some(self.parser.scopes.slots(record).to_vec()),
            Shape::Plain
            | Shape::Cspec(_)
            | Shape::Vspec(_)
            | Shape::Pointer(_)
            | Shape::Array(_)
            | Shape::Function { .. } => None,
        };
        let mut list = List { base, slots, next: 0, length: 0 };
        if !self.parser.enter() {
            return 0;
        }
        self.parser.advance();
        while !self.parser.is_at_end() && !self.parser.is_next("}") {
            let before = self.parser.at;
            self.element(&mut list, parts);
            list.length = list.length.max(list.next);
            if !self.parser.accept(",") || self.parser.at == before {
                break;
            }
        }
        self.expect("}");
        self.parser.leave();
        list.length
    }

    /// One element of a list, with its designator.
    fn element(&mut self, list: &mut List, parts: &mut Vec<(Expression, Expression)>) {
        let place = if matches!(self.parser.peek(0), "." | "[") {
            self.designated(list)
        } else {
            match self.positional(list) {
                Position::Place(place) => Some(place),
                Position::Anonymous(record) => {
                    list.next += 1;
                    let base = Expression { shape: Shape::Record(record), ..list.base.clone() };
                    return self.sublist(base, parts);
                }
                Position::Unknown => None,
            }
        };
        let Some(place) = place else {
            let help = "assign to the parts, which the type of the variable names";
            self.unsupported(self.parser.at, "this initial value in a tick", help);
            self.skip_element();
            return;
        };
        list.next += 1;
        let is_text = self.parser.kind(0) == Some(TokenKind::Text);
        if self.parser.is_next("{") || matches!(place.shape, Shape::Array(_)) && !is_text {
            return self.sublist(place, parts);
        }
        let value = self.assignment();
        parts.push((place, value));
    }

    /// A list for a part, which must have braces of its own.
    fn sublist(&mut self, base: Expression, parts: &mut Vec<(Expression, Expression)>) {
        if self.parser.is_next("{") {
            self.list(base, parts);
            return;
        }
        let help = "put the values of an inner array or struct into braces";
        self.unsupported(self.parser.at, "an initial value without its inner braces in a tick", help);
        self.skip_element();
    }

    fn skip_element(&mut self) {
        while !self.parser.is_at_end() && !matches!(self.parser.peek(0), "," | "}" | ";") {
            if matches!(self.parser.peek(0), "(" | "[" | "{") {
                self.parser.skip_group()
            } else {
                self.parser.advance()
            }
        }
    }

    /// The part that has the next number.
    fn positional(&mut self, list: &List) -> Position {
        let range = list.base.range;
        match (&list.slots, &list.base.shape) {
            (Some(slots), _) => match slots.get(list.next) {
                Some(Slot::Named(name)) => {
                    let name = *name;
                    Position::Place(self.member_place(list.base.clone(), name))
                }
                Some(Slot::Anonymous(record)) => Position::Anonymous(*record),
                None => Position::Unknown,
            },
            (None, Shape::Array(element)) => {
                let ordinal = Expression { kind: ExpressionKind::Ordinal(list.next), range, shape: Shape::Plain };
                let kind = ExpressionKind::Index(Box::new(list.base.clone()), Box::new(ordinal));
                Position::Place(Expression { kind, range, shape: (**element).clone() })
            }
            // A scalar, or a type that only the compiler knows.
            (None, _) if list.next == 0 => Position::Place(list.base.clone()),
            (None, _) => Position::Unknown,
        }
    }

    fn member_place(&self, base: Expression, name: usize) -> Expression {
        let member = match base.shape {
            Shape::Record(record) => self.parser.scopes.member(record, self.parser.token_text(name)).cloned(),
            _ => None,
        };
        let is_bit_field = member.as_ref().is_some_and(|own| own.is_bit_field);
        let (range, shape) = (base.range, member.map_or(Shape::Plain, |own| own.shape));
        let kind = ExpressionKind::Member { base: Box::new(base), is_arrow: false, name, is_bit_field };
        Expression { kind, range, shape }
    }

    /// The part that designators such as `.a[2] =` name; none if it is not known. The next one follows it.
    fn designated(&mut self, list: &mut List) -> Option<Expression> {
        let mut place = list.base.clone();
        let mut is_first = true;
        while matches!(self.parser.peek(0), "." | "[") {
            if self.parser.accept(".") {
                let name = self.parser.at;
                self.parser.advance();
                place = self.member_place(place, name);
                if is_first {
                    list.next = self.slot_number(list, name);
                }
            } else {
                let number = self.parser.peek(1).parse::<usize>().ok().filter(|_| self.parser.peek(2) == "]");
                self.parser.advance();
                let index = self.conditional();
                self.expect("]");
                // Without a number, elements that follow and the length would not be known.
                list.next = if is_first { number? } else { list.next };
                let (range, shape) = (place.range, place.shape.target());
                let kind = ExpressionKind::Index(Box::new(place), Box::new(index));
                place = Expression { kind, range, shape };
            }
            is_first = false;
        }
        self.expect("=");
        Some(place)
    }

    /// The number of the part of a struct that has a name, or that contains it.
    fn slot_number(&self, list: &List, name: usize) -> usize {
        let text = self.parser.token_text(name);
        let has = |slot: &Slot| match slot {
            Slot::Named(own) => self.parser.token_text(*own) == text,
            Slot::Anonymous(record) => self.parser.scopes.member(*record, text).is_some(),
        };
        list.slots.as_ref().and_then(|slots| slots.iter().position(has)).unwrap_or(list.next)
    }

    /// Refuses an array whose length is no constant. The name of the variable is the token with this number.
    pub(super) fn refuse_variable_length(&mut self, name: usize) {
        let mut brackets = 0;
        for at in name + 1..self.parser.at {
            let text = self.parser.token_text(at);
            match text {
                "[" => brackets += 1,
                "]" => brackets -= 1,
                "sizeof" | "_Alignof" | "alignof" | "__alignof__" | "__builtin_offsetof" => return,
                _ => {}
            }
            let entity = self.parser.scopes.find(text);
            if brackets > 0 && matches!(entity, Some(Entity::Local(_) | Entity::Object(_) | Entity::Register(_))) {
                let message = "an array of variable length in a tick";
                self.parser.report(Code::Unsupported, name, at + 1, message, "give it a constant length");
                return;
            }
        }
    }
}

/// What a value without a designator belongs to.
enum Position {
    Place(Expression),
    /// A struct or union without a name.
    Anonymous(usize),
    Unknown,
}
