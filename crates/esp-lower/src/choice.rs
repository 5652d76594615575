//! Lowering of `match`: arms are tested in order, or by a jump table of tags or constants if there are several.

use crate::builder::{Builder, Storage, Write, object};
use crate::expression::step;
use quaject_esp_ir::ir::{
    Base, BinaryOp, BlockId, Edge, Fault, Op, Operand, Place, Projection, Terminator, Type, TypeId, TypeTable, Value,
};
use quaject_esp_syntax::hir::{self, Expr, ExprKind, Pattern, PatternKind, Stmt};
use quaject_esp_syntax::span::Span;

/// The minimal number of distinct heads for a jump table: fewer are tested in order as fast.
const TABLE_HEADS: usize = 3;

/// The maximal number of values of a pattern that a jump table lists: wider ranges are tested by their ends.
const LISTED_VALUES: i128 = 32;

/// One of the outermost requirements of an arm's pattern.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Head {
    Tag(u32),
    Constant(i128),
    Anything,
    Else,
}

/// An assignment that is deferred until the entire pattern has matched.
struct Pending<'p> {
    place: &'p hir::Place,
    value: Operand,
    ty: TypeId,
}

/// What a pattern is compared with.
#[derive(Clone)]
struct Subject {
    operand: Operand,
    ty: TypeId,
    /// Whether it is an object that can be updated in place, so that it must not be shared.
    sharing: Sharing,
    /// Whether a table has already decided on the head.
    head: Known,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    Free,
    Mutable,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    Nothing,
    Head,
}

impl<'p> Builder<'_, '_, 'p> {
    /// `match`
    pub(super) fn choose(&mut self, scrutinee: &'p Expr, arms: &'p [(Pattern, Vec<Stmt>)], span: Span) {
        let sharing = match &scrutinee.kind {
            ExprKind::Local(local) if self.is_mutable_object(*local) => Sharing::Mutable,
            _other => Sharing::Free,
        };
        let operand = self.operand(scrutinee);
        let subject = Subject { operand, ty: scrutinee.ty, sharing, head: Known::Nothing };
        let bodies: Vec<BlockId> = arms.iter().map(|_| self.block()).collect();
        let all: Vec<usize> = (0..arms.len()).collect();
        let heads: Vec<Vec<Head>> = arms.iter().map(|(pattern, _)| heads(pattern)).collect();
        let mut keys = Vec::new();
        for head in heads.iter().flatten() {
            match head {
                Head::Tag(_) | Head::Constant(_) if !keys.contains(head) => keys.push(*head),
                Head::Tag(_) | Head::Constant(_) | Head::Anything | Head::Else => {}
            }
        }
        if keys.len() >= TABLE_HEADS && !heads.iter().flatten().any(|head| *head == Head::Else) {
            self.table(&subject, arms, &heads, &keys, &bodies, span);
        } else {
            self.in_order(&subject, arms, &all, &bodies, span);
        }
        let join = self.block();
        for (body, (_, statements)) in bodies.into_iter().zip(arms) {
            self.enter(body);
            self.statements(statements);
            self.jump_to_join(join, statements, span);
        }
        self.enter(join);
    }

    fn table(
        &mut self,
        subject: &Subject,
        arms: &'p [(Pattern, Vec<Stmt>)],
        heads: &[Vec<Head>],
        keys: &[Head],
        bodies: &[BlockId],
        span: Span,
    ) {
        let select = |wanted: Option<Head>| -> Vec<usize> {
            let is_selected = |head: &Head| *head == Head::Anything || Some(*head) == wanted;
            (0..arms.len()).filter(|arm| heads[*arm].iter().any(is_selected)).collect()
        };
        let subject = self.open(subject.clone());
        let value = match keys[0] {
            Head::Tag(_) => {
                let place = as_place(&subject.operand);
                self.define(TypeTable::U32, Op::Tag(place), span)
            }
            Head::Constant(_) | Head::Anything | Head::Else => self.scalar(&subject, span),
        };
        let rest = select(None);
        let (last, listed) = keys.split_last().expect("a table has heads");
        let (listed, default) = if rest.is_empty() { (listed, select(Some(*last))) } else { (keys, rest) };
        let targets: Vec<(BlockId, Vec<usize>, Known)> = listed
            .iter()
            .map(|key| (select(Some(*key)), Known::Head))
            .chain([(default, Known::Head)])
            .map(|(arms, known)| (self.block(), arms, known))
            .collect();
        let mut edges: Vec<Edge> = targets.iter().map(|(block, _, _)| self.edge_to(*block)).collect();
        let default = edges.pop().expect("the default comes last");
        let constants = listed.iter().map(|key| match key {
            Head::Tag(tag) => i128::from(*tag),
            Head::Constant(constant) => *constant,
            Head::Anything | Head::Else => unreachable!("only tags and constants are listed"),
        });
        let cases = constants.zip(edges).collect();
        self.end(Terminator::Switch { value, cases, default }, span);
        for (block, selected, head) in targets {
            self.enter(block);
            let subject = Subject { head, ..subject.clone() };
            self.in_order(&subject, arms, &selected, bodies, span);
        }
    }

    fn in_order(
        &mut self,
        subject: &Subject,
        arms: &'p [(Pattern, Vec<Stmt>)],
        selected: &[usize],
        bodies: &[BlockId],
        span: Span,
    ) {
        for (position, arm) in selected.iter().enumerate() {
            if self.context.is_too_large {
                return;
            }
            let pattern = &arms[*arm].0;
            let is_last = position + 1 == selected.len();
            // Arms are exhaustive by their static parts, so the last one matches if it is reached.
            let otherwise = if is_last && is_static(pattern) { None } else { Some(self.block()) };
            let mut pending = Vec::new();
            self.require(subject.clone(), pattern, otherwise, &mut pending);
            for Pending { place, value, ty } in pending {
                let value = self.coerce(value, ty, place.ty, pattern.span);
                let target = self.target(place);
                self.store(target, value, pattern.span);
            }
            self.jump(bodies[*arm], span);
            let Some(otherwise) = otherwise else { return };
            self.enter(otherwise);
            if !self.is_reachable() {
                return;
            }
        }
        self.end(Terminator::Fault(Fault::Assert), span);
    }

    /// Jumps to `otherwise` unless the pattern matches. Without `otherwise` the pattern is known to match.
    fn require(
        &mut self,
        subject: Subject,
        pattern: &'p Pattern,
        otherwise: Option<BlockId>,
        pending: &mut Vec<Pending<'p>>,
    ) {
        let span = pattern.span;
        if let (PatternKind::Among(_) | PatternKind::Either(_), None) = (&pattern.kind, otherwise) {
            return;
        }
        let decide = if subject.head == Known::Head { None } else { otherwise };
        match &pattern.kind {
            PatternKind::Any => {}
            PatternKind::Declare(local) => self.bind_declared(&subject, *local, span),
            PatternKind::Assign(place) => {
                let value = self.captured_part(&subject, pattern);
                pending.push(Pending { place, value, ty: pattern.ty });
            }
            PatternKind::Constant(constant) => {
                if let Some(otherwise) = decide {
                    let subject = self.open(subject);
                    let value = self.scalar(&subject, span);
                    let constant = self.define(subject.ty, Op::Constant(*constant), span);
                    let equal = self.equal(Operand::Value(value), Operand::Value(constant), subject.ty, span);
                    self.unless(equal, otherwise, span);
                }
            }
            PatternKind::Among(ranges) => {
                if let Some(otherwise) = decide {
                    let subject = self.open(subject);
                    let value = self.scalar(&subject, span);
                    let holds = self.block();
                    self.test_ranges((value, subject.ty), ranges, holds, otherwise, span);
                    self.enter(holds);
                }
            }
            PatternKind::Either(alternatives) => {
                let Some(otherwise) = otherwise else { return };
                let holds = self.block();
                for (index, alternative) in alternatives.iter().enumerate() {
                    let next = if index + 1 == alternatives.len() { otherwise } else { self.block() };
                    // A table has decided on the head of the whole, not of each alternative.
                    let subject = Subject { head: Known::Nothing, ..subject.clone() };
                    self.require(subject, alternative, Some(next), pending);
                    self.jump(holds, span);
                    if index + 1 < alternatives.len() {
                        self.enter(next);
                        if !self.is_reachable() {
                            break;
                        }
                    }
                }
                self.enter(holds);
            }
            PatternKind::OwnId => {
                if let Some(otherwise) = decide {
                    let value = self.scalar(&subject, span);
                    let own = self.define(subject.ty, Op::OwnId, span);
                    let equal = self.equal(Operand::Value(value), Operand::Value(own), subject.ty, span);
                    self.unless(equal, otherwise, span);
                }
            }
            PatternKind::Bytes(bytes) => {
                if let Some(otherwise) = decide {
                    let subject = self.open(subject);
                    let literal = self.bytes_within(bytes, subject.ty, span);
                    let equal = match literal {
                        Some(literal) => self.equal(subject.operand, Operand::Place(literal), subject.ty, span),
                        None => self.define(TypeTable::BOOL, Op::Constant(0), span),
                    };
                    self.unless(equal, otherwise, span);
                }
            }
            PatternKind::Equal(expr) => {
                if let Some(otherwise) = otherwise {
                    let left = self.part(&subject, span);
                    let right = self.operand(expr);
                    let equal = self.equal(left, right, subject.ty, span);
                    self.unless(equal, otherwise, span);
                }
            }
            PatternKind::Tag(tag, payload) => {
                let subject = self.open(subject);
                let place = as_place(&subject.operand);
                if let Some(otherwise) = decide {
                    self.require_tag(&place, *tag, otherwise, span);
                }
                if let Some(payload) = payload {
                    let part = part_of(step(&place, Projection::Payload(*tag)), payload.ty);
                    self.require(part, payload, otherwise, pending);
                }
            }
            PatternKind::Record(parts) => {
                let place = as_place(&self.open(subject).operand);
                for (field, part) in parts.iter().enumerate() {
                    let subject = part_of(step(&place, Projection::Field(field as u32)), part.ty);
                    self.require(subject, part, otherwise, pending);
                }
            }
            PatternKind::Array(parts) => {
                let place = as_place(&self.open(subject).operand);
                for (index, part) in parts.iter().enumerate() {
                    let index = self.define(TypeTable::I32, Op::Constant(index as i128), part.span);
                    let subject = part_of(step(&place, Projection::Element(index)), part.ty);
                    self.require(subject, part, otherwise, pending);
                }
            }
        }
        if let Some(condition) = &pattern.condition {
            let otherwise = otherwise.expect("a pattern with a condition can fail");
            let holds = self.block();
            self.test(condition, holds, otherwise);
            self.enter(holds);
        }
    }

    /// Jumps to `holds` if an integer, `bool` or id is in one of the ranges, else to `otherwise`.
    pub(super) fn test_ranges(
        &mut self,
        (value, ty): (Value, TypeId),
        ranges: &[(i128, i128)],
        holds: BlockId,
        otherwise: BlockId,
        span: Span,
    ) {
        let int = match self.context.types.get(ty) {
            Type::Int(int) => Some(*int),
            Type::Error
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => None,
        };
        let values = |(low, high): &(i128, i128)| (*low..*high).map(|value| (value, value + 1)).collect();
        // Only integers have an order.
        let ranges: Vec<(i128, i128)> = match int {
            Some(_) => ranges.to_vec(),
            None => ranges.iter().flat_map::<Vec<_>, _>(values).collect(),
        };
        for (index, (low, high)) in ranges.iter().enumerate() {
            let next = if index + 1 == ranges.len() { otherwise } else { self.block() };
            let compare = |builder: &mut Self, operator, constant| {
                let constant = builder.define(ty, Op::Constant(constant), span);
                builder.define(TypeTable::BOOL, Op::Binary(operator, value, constant), span)
            };
            if high - low == 1 {
                let equal = compare(self, BinaryOp::Equal, *low);
                self.branch(equal, holds, next, span);
            } else {
                if int.is_none_or(|int| *low > int.min()) {
                    let above = compare(self, BinaryOp::GreaterEqual, *low);
                    let inner = self.block();
                    self.branch(above, inner, next, span);
                    self.enter(inner);
                }
                if int.is_none_or(|int| *high <= int.max()) {
                    let below = compare(self, BinaryOp::Less, *high);
                    self.branch(below, holds, next, span);
                } else {
                    self.jump(holds, span);
                }
            }
            if index + 1 < ranges.len() {
                self.enter(next);
            }
        }
    }

    /// Gives a part of the scrutinee to the variable that its pattern declares.
    fn bind_declared(&mut self, subject: &Subject, local: hir::LocalId, span: Span) {
        let mut operand = self.part(subject, span);
        if let (Sharing::Mutable, Operand::Value(value)) = (subject.sharing, &operand) {
            operand = Operand::Value(self.freeze(*value, span));
        }
        match (operand, self.storage(local)) {
            (Operand::Value(value), Storage::Ssa) => {
                self.check_variable_range(local, value, span);
                self.write(local, value);
            }
            (Operand::Place(from), Storage::Slot(slot)) => {
                self.begin(slot);
                let to = Place { base: Base::Slot(slot), path: Vec::new() };
                self.effect(Op::Copy { to, from }, Write::Initial, span);
            }
            (Operand::Value(_), Storage::Slot(_)) | (Operand::Place(_), Storage::Ssa) => {
                unreachable!("a declared variable has the type of its part")
            }
        }
    }

    /// The part of the scrutinee that is assigned once the whole pattern has matched.
    fn captured_part(&mut self, subject: &Subject, pattern: &Pattern) -> Operand {
        let span = pattern.span;
        match self.part(subject, span) {
            Operand::Value(value) if subject.sharing == Sharing::Mutable => Operand::Value(self.freeze(value, span)),
            Operand::Value(value) => Operand::Value(value),
            // A later assignment must not change what an earlier one reads.
            Operand::Place(from) => {
                let to = self.temporary(pattern.ty);
                self.effect(Op::Copy { to: to.clone(), from }, Write::Initial, span);
                Operand::Place(to)
            }
        }
    }

    /// Jumps to `otherwise` unless the union in a place has this tag.
    fn require_tag(&mut self, place: &Place, tag: u32, otherwise: BlockId, span: Span) {
        let present = self.define(TypeTable::U32, Op::Tag(place.clone()), span);
        let wanted = self.define(TypeTable::U32, Op::Constant(i128::from(tag)), span);
        let equal = self.equal(Operand::Value(present), Operand::Value(wanted), TypeTable::U32, span);
        self.unless(equal, otherwise, span);
    }

    fn unless(&mut self, condition: Value, otherwise: BlockId, span: Span) {
        let holds = self.block();
        self.branch(condition, holds, otherwise, span);
        self.enter(holds);
    }

    /// A temporary with a byte string; none if the type cannot hold it.
    fn bytes_within(&mut self, bytes: &[u8], ty: TypeId, span: Span) -> Option<Place> {
        match self.context.types.get(ty) {
            Type::Bytes { bound } if bytes.len() > *bound as usize => None,
            Type::Bytes { .. }
            | Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => {
                let place = self.temporary(ty);
                self.effect(Op::SetBytes(place.clone(), bytes.to_vec()), Write::Initial, span);
                Some(place)
            }
        }
    }

    /// From a boxed object to its content.
    fn open(&mut self, subject: Subject) -> Subject {
        let Some((_, content)) = self.context.boxed(subject.ty) else { return subject };
        let operand = match self.part(&subject, Span::default()) {
            Operand::Value(value) => Operand::Place(object(value)),
            Operand::Place(_) => unreachable!("references are held in SSA form"),
        };
        Subject { operand, ty: content, sharing: Sharing::Free, head: subject.head }
    }

    /// The part itself: loaded if it is a scalar or a reference.
    fn part(&mut self, subject: &Subject, span: Span) -> Operand {
        match &subject.operand {
            Operand::Place(place) if self.context.in_register(subject.ty) => {
                Operand::Value(self.define(subject.ty, Op::Load(place.clone()), span))
            }
            other => other.clone(),
        }
    }

    fn scalar(&mut self, subject: &Subject, span: Span) -> Value {
        match self.part(subject, span) {
            Operand::Value(value) => value,
            Operand::Place(_) => unreachable!("the part is a scalar"),
        }
    }

    /// Converts a value to the expected type: wider integers, `bytes` of another bound, boxed from flat and back.
    pub(super) fn coerce(&mut self, operand: Operand, from: TypeId, to: TypeId, span: Span) -> Operand {
        if from == to {
            return operand;
        }
        match (operand, self.context.boxed(from), self.context.boxed(to)) {
            (Operand::Value(value), None, None) => Operand::Value(self.convert(value, to, span)),
            (Operand::Value(value), Some(_), None) => Operand::Place(object(value)),
            (Operand::Place(place), None, None) => Operand::Place(place),
            (operand, _, Some((pool, _))) => {
                let content = match operand {
                    Operand::Value(value) => object(value),
                    Operand::Place(place) => place,
                };
                let result = self.define(to, Op::Allocate(pool), span);
                self.effect(Op::Copy { to: object(result), from: content }, Write::Initial, span);
                Operand::Value(result)
            }
            (Operand::Place(_), Some(_), None) => unreachable!("references are held in SSA form"),
        }
    }
}

fn as_place(operand: &Operand) -> Place {
    match operand {
        Operand::Place(place) => place.clone(),
        Operand::Value(_) => unreachable!("aggregates are held in memory"),
    }
}

fn part_of(place: Place, ty: TypeId) -> Subject {
    Subject { operand: Operand::Place(place), ty, sharing: Sharing::Free, head: Known::Nothing }
}

fn heads(pattern: &Pattern) -> Vec<Head> {
    let head = match &pattern.kind {
        PatternKind::Among(ranges) => {
            let count: i128 = ranges.iter().map(|(low, high)| high - low).sum();
            if count <= LISTED_VALUES {
                return ranges.iter().flat_map(|(low, high)| (*low..*high).map(Head::Constant)).collect();
            }
            Head::Else
        }
        PatternKind::Either(alternatives) => return alternatives.iter().flat_map(heads).collect(),
        PatternKind::Tag(tag, _) => Head::Tag(*tag),
        PatternKind::Constant(constant) => Head::Constant(*constant),
        PatternKind::Any | PatternKind::Declare(_) | PatternKind::Assign(_) => Head::Anything,
        PatternKind::Bytes(_)
        | PatternKind::OwnId
        | PatternKind::Equal(_)
        | PatternKind::Record(_)
        | PatternKind::Array(_) => Head::Else,
    };
    vec![head]
}

/// Whether a pattern has no part that depends on values computed at run time.
fn is_static(pattern: &Pattern) -> bool {
    pattern.condition.is_none()
        && match &pattern.kind {
            PatternKind::Any
            | PatternKind::Declare(_)
            | PatternKind::Assign(_)
            | PatternKind::Constant(_)
            | PatternKind::Bytes(_)
            | PatternKind::Among(_)
            | PatternKind::Either(_)
            | PatternKind::OwnId => true,
            PatternKind::Equal(_) => false,
            PatternKind::Tag(_, payload) => payload.as_ref().is_none_or(|payload| is_static(payload)),
            PatternKind::Record(parts) | PatternKind::Array(parts) => parts.iter().all(is_static),
        }
}
