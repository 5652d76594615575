//! Patterns against types: what they declare, assign and compare (reference, section 4). Whether they cover and exclude
//! each other is for `coverage`.

use super::body::{Body, BodyKind, PatternState, Role};
use super::coerce::Use;
use super::constants::{Constant, fits_int};
use super::coverage;
use super::literals::{Completeness, counted};
use super::places::{Intent, steps};
use crate::ast;
use crate::diagnostics::{Code, Diagnostic, nearest};
use crate::foreign;
use crate::hir::{self, ExprKind, LocalId, Mutability, PatternKind};
use crate::span::Span;
use crate::types::{Type, TypeId, TypeTable};

impl<'a> Body<'_, 'a> {
    /// The patterns of one operation, arm or entry, whose names count as one pattern's.
    pub(super) fn patterns(&mut self, patterns: &'a [ast::Pattern], types: &[TypeId]) -> Vec<hir::Pattern> {
        let mut state = PatternState { active: true, ..PatternState::default() };
        let mut places = Vec::new();
        patterns.iter().for_each(|pattern| collect_places(pattern, &mut places));
        let mut whole: Vec<(LocalId, Span)> = Vec::new();
        for place in places {
            let Some(super::body::Binding::Local(id)) = self.find(&place.base) else { continue };
            let first = whole.iter().find(|(other, _)| *other == id).map(|(_, span)| *span);
            if let Some(first) = first {
                let message = format!("`{}` is assigned twice by this pattern", place.base.text);
                let diagnostic =
                    Diagnostic::new(Code::E0403, place.base.span, message).label(first, "first assigned here");
                self.checker.report(diagnostic.help("write `_` for the value that is not wanted"));
            } else if place.path.is_empty() {
                whole.push((id, place.base.span));
            }
            state.assigned.insert(id);
        }
        let outer = std::mem::replace(&mut self.pattern, state);
        let resolved = patterns
            .iter()
            .enumerate()
            .map(|(index, pattern)| self.pattern(pattern, types.get(index).copied().unwrap_or(TypeTable::ERROR)))
            .collect();
        self.pattern = outer;
        resolved
    }

    fn pattern(&mut self, pattern: &'a ast::Pattern, ty: TypeId) -> hir::Pattern {
        let kind = self.pattern_kind(pattern, ty);
        let condition = pattern.condition.as_ref().map(|condition| {
            if self.pattern.in_alternatives {
                let message = "an alternative has no condition of its own";
                let help = "put the condition behind the last alternative, or write arms of their own";
                self.checker.report(Diagnostic::new(Code::E0410, condition.span, message).help(help));
            }
            if self.kind == BodyKind::Interface {
                self.checker.error(Code::E0506, condition.span, "an interface entry has no condition");
            }
            self.pattern.condition_depth += 1;
            let condition = self.condition(condition);
            self.pattern.condition_depth -= 1;
            Box::new(condition)
        });
        hir::Pattern { kind, condition, ty, span: pattern.span }
    }

    fn pattern_kind(&mut self, pattern: &'a ast::Pattern, ty: TypeId) -> PatternKind {
        let span = pattern.span;
        let content = self.checker.content(ty);
        match &pattern.kind {
            ast::PatternKind::Error | ast::PatternKind::Any => PatternKind::Any,
            ast::PatternKind::Declare(name) => {
                if self.pattern.in_alternatives {
                    let known = self.find(name);
                    if matches!(known, Some(super::body::Binding::Local(id)) if self.pattern.declared.contains(&id)) {
                        return PatternKind::Any;
                    }
                    self.binds_in_alternative(&name.text, span);
                }
                if name.text.is_empty() {
                    return PatternKind::Any;
                }
                let id = self.declare(name, Some(ty), Mutability::Immutable, Role::Received);
                // In alternatives the missing value has been reported.
                self.facts.locals[id.0 as usize].reported |= self.pattern.in_alternatives;
                self.pattern.declared.insert(id);
                PatternKind::Declare(id)
            }
            ast::PatternKind::Equal(expr) => self.equal_pattern(expr, ty),
            ast::PatternKind::OwnId if self.pattern.in_alternatives => {
                let help = "write an `in` for each id, or take it with `$x` and compare it in a condition";
                let message = "the own id is no alternative of other values";
                self.checker.report(Diagnostic::new(Code::E0410, span, message).help(help));
                PatternKind::Any
            }
            ast::PatternKind::OwnId => match (self.own_process(), self.checker.types.get(content)) {
                (_, Type::Error) => PatternKind::Any,
                // What the ids of its instances would be is not known.
                (Some(own), _) if self.checker.is_unused(own) => PatternKind::Any,
                (Some(own), Type::Pid(processes)) if processes.contains(&own) => PatternKind::OwnId,
                (Some(own), _) => {
                    let id = self.checker.types.intern(Type::Pid([own].into()));
                    self.mismatch(content, id, span);
                    PatternKind::Any
                }
                (None, _) => {
                    self.checker.error(Code::E0506, span, "`@` has a meaning only in a process");
                    PatternKind::Any
                }
            },
            ast::PatternKind::Int(_) if self.checker.types.enumeration(content).is_some() => {
                self.mismatch(content, TypeTable::I32, span);
                PatternKind::Any
            }
            ast::PatternKind::Int(value) => match *self.checker.types.get(content) {
                Type::Int(int) if int.is_clock() => {
                    self.mismatch(content, TypeTable::I32, span);
                    PatternKind::Any
                }
                Type::Int(int) if fits_int(*value, int) => PatternKind::Constant(*value),
                Type::Int(int) => {
                    let message = format!("{value} does not fit `{}`", int.name());
                    let help = format!("`{}` holds {} to {}", int.name(), int.min(), int.max());
                    self.checker.report(Diagnostic::new(Code::E0303, span, message).help(help));
                    PatternKind::Any
                }
                _ => self.wrong_pattern(content, "an integer", span),
            },
            ast::PatternKind::Bool(value) => match self.checker.types.get(content) {
                Type::Bool => PatternKind::Constant(i128::from(*value)),
                _ => self.wrong_pattern(content, "`bool`", span),
            },
            ast::PatternKind::Bytes(bytes) => match self.checker.types.get(content) {
                Type::Bytes { bound } if bytes.len() <= *bound as usize => PatternKind::Bytes(bytes.clone()),
                Type::Bytes { .. } => {
                    let message =
                        format!("a string of {} bytes does not fit `{}`", bytes.len(), self.checker.type_name(content));
                    self.checker.error(Code::E0303, span, message);
                    PatternKind::Any
                }
                _ => self.wrong_pattern(content, "a byte string", span),
            },
            ast::PatternKind::Tag(tag, payload) => self.tag_pattern(tag, payload, content, span),
            ast::PatternKind::Place(place) => self.place_pattern(place, ty),
            ast::PatternKind::Range(first, end) => self.range_pattern(first, end, content, span),
            ast::PatternKind::Alternatives(alternatives) => self.alternatives(alternatives, ty, span),
            ast::PatternKind::Record(fields) => self.record_pattern(fields, content, span),
            ast::PatternKind::Array(elements) => self.array_pattern(elements, content, span),
        }
    }

    fn wrong_pattern(&mut self, expected: TypeId, found: &str, span: Span) -> PatternKind {
        if expected != TypeTable::ERROR {
            let message = format!("expected `{}`, found {found}", self.checker.type_name(expected));
            let mut diagnostic = Diagnostic::new(Code::E0302, span, message);
            if self.pattern.in_alternatives && matches!(self.checker.types.get(expected), Type::Union(_)) {
                diagnostic = diagnostic.help("alternatives of a payload are in parentheses, as in `tag |> (1 | 2)`");
            }
            self.checker.report(diagnostic);
        }
        PatternKind::Any
    }

    /// `== e`: static if e is a constant or `@`.
    fn equal_pattern(&mut self, expr: &'a ast::Expr, ty: TypeId) -> PatternKind {
        let value = self.check(expr, ty, Use::Read);
        if value.ty == TypeTable::ERROR {
            return PatternKind::Any;
        }
        // Durations are compared when the operation is reached: the checker does not know them.
        if !self.checker.types.holds_clock(value.ty)
            && let Some(kind) = constant_pattern(&self.checker.stored, &value)
        {
            return kind;
        }
        if self.kind == BodyKind::Interface {
            self.checker.error(Code::E0506, expr.span, "an interface entry compares with constants only");
        }
        if self.pattern.in_alternatives {
            let message = "alternatives are constants: this value is not known before the program runs";
            let help = "take the value with `$x` and compare it in a condition, as in `$x if x == a || x == b`";
            self.checker.report(Diagnostic::new(Code::E0410, expr.span, message).help(help));
            return PatternKind::Any;
        }
        PatternKind::Equal(value)
    }

    fn binds_in_alternative(&mut self, name: &str, span: Span) {
        let message = format!("an alternative binds nothing: `{name}` would have no value from the others");
        let help = "write `_`, or give each alternative an arm or `in` of its own";
        self.checker.report(Diagnostic::new(Code::E0410, span, message).help(help));
    }

    /// `1..10`
    fn range_pattern(
        &mut self,
        first: &'a ast::RangeEnd,
        end: &'a ast::RangeEnd,
        ty: TypeId,
        span: Span,
    ) -> PatternKind {
        let (low, high) = (self.range_end(first), self.range_end(end));
        if self.kind == BodyKind::Interface {
            self.checker.error(Code::E0506, span, "an interface entry has one value, not a range");
            return PatternKind::Any;
        }
        let Some(int) = self.int_type(ty) else { return self.wrong_pattern(ty, "a range of integers", span) };
        let (Some(low), Some(high)) = (low, high) else { return PatternKind::Any };
        // The excluded end may be one above the largest value.
        for value in [low, high] {
            let is_last_end = value == high && value == int.max() + 1;
            if !fits_int(value, int) && !is_last_end {
                let message = format!("{value} does not fit `{}`", int.name());
                let help = format!("`{}` holds {} to {}", int.name(), int.min(), int.max());
                self.checker.report(Diagnostic::new(Code::E0303, span, message).help(help));
                return PatternKind::Any;
            }
        }
        if low >= high {
            let message = format!("the range {low}..{high} holds no value");
            let help = "its end is excluded: `0..10` is 0 to 9";
            self.checker.report(Diagnostic::new(Code::E0410, span, message).help(help));
            return PatternKind::Any;
        }
        self.among(vec![(low, high)], ty)
    }

    fn range_end(&mut self, end: &'a ast::RangeEnd) -> Option<i128> {
        match end {
            ast::RangeEnd::Error => None,
            ast::RangeEnd::Int(value) => Some(*value),
            ast::RangeEnd::Name(name) => match self.constant_integer(name)? {
                Constant::Error => None,
                Constant::Untyped(value) => Some(value),
                Constant::Typed(hir::Expr { kind: ExprKind::Constant(value), .. }) => Some(value),
                Constant::Typed(_) => None,
            },
        }
    }

    /// The simplest pattern of integers, `bool`s or ids in some ranges.
    fn among(&self, mut ranges: Vec<(i128, i128)>, ty: TypeId) -> PatternKind {
        ranges.sort_unstable();
        let mut merged: Vec<(i128, i128)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some((_, end)) if low <= *end => *end = high.max(*end),
                _ => merged.push((low, high)),
            }
        }
        let whole = match self.checker.types.get(ty) {
            &Type::Int(int) => Some((int.min(), int.max() + 1)),
            Type::Bool => Some((0, 2)),
            _ => None,
        };
        match merged.as_slice() {
            [range] if Some(*range) == whole => PatternKind::Any,
            [(low, high)] if high - low == 1 => PatternKind::Constant(*low),
            _ => PatternKind::Among(merged),
        }
    }

    /// `1 | 2`
    fn alternatives(&mut self, alternatives: &'a [ast::Pattern], ty: TypeId, span: Span) -> PatternKind {
        if self.kind == BodyKind::Interface {
            self.checker.error(Code::E0506, span, "an interface entry has one pattern, without alternatives");
            return PatternKind::Any;
        }
        let outer = std::mem::replace(&mut self.pattern.in_alternatives, true);
        let errors = self.checker.errors;
        let resolved: Vec<hir::Pattern> = alternatives.iter().map(|pattern| self.pattern(pattern, ty)).collect();
        self.pattern.in_alternatives = outer;
        if self.checker.errors > errors {
            return PatternKind::Any;
        }
        coverage::check_alternatives(self.checker, &resolved, ty, self.own_process());
        let content = self.checker.content(ty);
        let ranges = |pattern: &hir::Pattern| match &pattern.kind {
            PatternKind::Constant(value) => Some(vec![(*value, *value + 1)]),
            PatternKind::Among(ranges) => Some(ranges.clone()),
            _ => None,
        };
        if resolved.iter().any(|pattern| matches!(pattern.kind, PatternKind::Any)) {
            return PatternKind::Any;
        }
        match resolved.iter().map(ranges).collect::<Option<Vec<_>>>() {
            Some(ranges) => self.among(ranges.concat(), content),
            None => PatternKind::Either(resolved),
        }
    }

    fn tag_pattern(&mut self, tag: &'a ast::Name, payload: &'a ast::Pattern, ty: TypeId, span: Span) -> PatternKind {
        let Type::Union(id) = *self.checker.types.get(ty) else {
            let found = format!("the tag `{}`", tag.text);
            self.pattern(payload, TypeTable::ERROR);
            return self.wrong_pattern(ty, &found, span);
        };
        let Some((index, part)) = self.tag(tag, id) else {
            self.pattern(payload, TypeTable::ERROR);
            return PatternKind::Any;
        };
        match part {
            Some(part) => PatternKind::Tag(index, Some(Box::new(self.pattern(payload, part)))),
            None => {
                let empty = match &payload.kind {
                    ast::PatternKind::Record(fields) => fields.is_empty(),
                    ast::PatternKind::Any | ast::PatternKind::Error => true,
                    _ => false,
                };
                if !empty {
                    self.no_payload(tag, payload.span);
                    self.pattern(payload, TypeTable::ERROR);
                }
                PatternKind::Tag(index, None)
            }
        }
    }

    fn record_pattern(
        &mut self,
        fields: &'a [(Option<ast::Name>, ast::Pattern)],
        ty: TypeId,
        span: Span,
    ) -> PatternKind {
        let Type::Record(id) = *self.checker.types.get(ty) else {
            fields.iter().for_each(|(_, pattern)| {
                self.pattern(pattern, TypeTable::ERROR);
            });
            return self.wrong_pattern(ty, "a record", span);
        };
        let names = fields.iter().map(|(name, _)| name.as_ref());
        let order = self.record_fields(names, id, span, Completeness::Some);
        let types: Vec<TypeId> =
            self.checker.types.aggregate(id).parts.iter().map(|(_, ty)| ty.unwrap_or(TypeTable::ERROR)).collect();
        let any = |ty| hir::Pattern { kind: PatternKind::Any, condition: None, ty, span };
        let mut parts: Vec<hir::Pattern> = types.iter().map(|ty| any(*ty)).collect();
        for (index, (_, pattern)) in fields.iter().enumerate() {
            match order.as_ref().and_then(|order| order[index]) {
                Some(field) => parts[field as usize] = self.pattern(pattern, types[field as usize]),
                None => {
                    self.pattern(pattern, TypeTable::ERROR);
                }
            }
        }
        PatternKind::Record(parts)
    }

    fn array_pattern(&mut self, elements: &'a [ast::Pattern], ty: TypeId, span: Span) -> PatternKind {
        let Type::Array { length, element } = *self.checker.types.get(ty) else {
            elements.iter().for_each(|pattern| {
                self.pattern(pattern, TypeTable::ERROR);
            });
            return self.wrong_pattern(ty, "an array", span);
        };
        let parts: Vec<hir::Pattern> = elements.iter().map(|pattern| self.pattern(pattern, element)).collect();
        if parts.len() != length as usize {
            let message = format!("the array has {}, {} given", counted(length as usize, "element"), parts.len());
            self.checker.error(Code::E0404, span, message);
            return PatternKind::Any;
        }
        PatternKind::Array(parts)
    }

    /// A bare name: a variable or element to assign.
    fn place_pattern(&mut self, place: &'a ast::Place, ty: TypeId) -> PatternKind {
        let name = &place.base;
        if let Some(kind) = self.enumerator_pattern(place, ty) {
            return kind;
        }
        if self.pattern.in_alternatives && self.find(name).is_some() {
            let text = self.checker.text(place.span).to_string();
            self.binds_in_alternative(&text, place.span);
            return PatternKind::Any;
        }
        if self.kind == BodyKind::Interface {
            if !name.text.is_empty() {
                let help = format!("write `${}` to make it a parameter", name.text);
                let message = "an interface entry has no variables to assign";
                self.checker.report(Diagnostic::new(Code::E0506, place.span, message).help(help));
            }
            return PatternKind::Any;
        }
        if place.path.is_empty() && self.find(name).is_none() && self.reject_undeclared(name, ty) {
            return PatternKind::Any;
        }
        let Some(base) = self.place_base(name, Intent::Pattern) else { return PatternKind::Any };
        if place.path.is_empty() {
            self.infer(base, ty, Mutability::Immutable);
        }
        let path = steps(place);
        let Some(target) = self.place(base, &path, place.span, name.span) else {
            // The variable counts as assigned all the same.
            let path = Vec::new();
            return PatternKind::Assign(hir::Place { base, path, ty: TypeTable::ERROR, span: place.span });
        };
        let whole = path.is_empty();
        if whole && self.effective(target.ty, self.local(base).mutability) == Mutability::Mutable {
            if ty != TypeTable::ERROR {
                let message = format!(
                    "expected `{}`, found `{}`",
                    self.checker.type_name(ty),
                    self.checker.value_type_name(target.ty, Mutability::Mutable)
                );
                let help = format!("receive into a name of its own and `thaw` it, as in `${}_new`", name.text);
                self.checker.report(Diagnostic::new(Code::E0302, place.span, message).help(help));
            }
        } else if ty != TypeTable::ERROR && !self.goes_into(ty, target.ty) {
            let message = format!(
                "`{}` is `{}`, the value received is `{}`",
                self.checker.text(place.span),
                self.checker.type_name(target.ty),
                self.checker.type_name(ty)
            );
            let mut diagnostic = Diagnostic::new(Code::E0302, place.span, message);
            if self.int_type(ty).is_some() && self.int_type(target.ty).is_some() {
                let into = self.checker.type_name(target.ty);
                diagnostic = diagnostic.help(format!("receive `$v` and assign `{into}(v)`"));
            }
            self.checker.report(diagnostic);
        }
        PatternKind::Assign(target)
    }

    /// `code.ok`: the case of an enumeration.
    fn enumerator_pattern(&mut self, place: &'a ast::Place, ty: TypeId) -> Option<PatternKind> {
        let [ast::PlaceStep::Field(case)] = place.path.as_slice() else { return None };
        if self.is_wrong_type(&place.base) {
            return Some(PatternKind::Any);
        }
        let (enumeration, id) = self.enumeration_named(&place.base)?;
        self.checker.record_case(id, &case.text, case.span);
        let ranges = match enumeration.cases.iter().find(|(name, _)| *name == case.text) {
            Some((_, code)) => vec![(*code, *code + 1)],
            None if enumeration.other.as_ref() == Some(&case.text) => enumeration.other_codes(),
            None => {
                self.no_case(&enumeration, case);
                return Some(PatternKind::Any);
            }
        };
        let content = self.checker.content(ty);
        if content != id {
            self.mismatch(content, id, place.span);
            return Some(PatternKind::Any);
        }
        Some(self.among(ranges, content))
    }

    /// An unknown bare name in a pattern: what was meant?
    fn reject_undeclared(&mut self, name: &ast::Name, ty: TypeId) -> bool {
        if name.text.is_empty() || self.checker.find(name).is_some() {
            return false;
        }
        let content = self.checker.content(ty);
        if let Some(enumeration) = self.checker.types.enumeration(content)
            && let Some((case, _)) = enumeration.cases.iter().find(|(case, _)| *case == name.text)
        {
            let message = format!("`{case}` is a case, not a variable to assign");
            let help = format!("write `{}.{case}`", enumeration.name);
            self.checker.report(Diagnostic::new(Code::E0401, name.span, message).help(help));
            return true;
        }
        if let Type::Union(id) = self.checker.types.get(content)
            && let Some((_, payload)) =
                self.checker.types.aggregate(*id).parts.iter().find(|(tag, _)| *tag == name.text)
        {
            let payload = if payload.is_some() { "_" } else { "{}" };
            let message = format!("`{}` is a tag, not a variable to assign", name.text);
            let help = format!("write `{} |> {payload}`", name.text);
            self.checker.report(Diagnostic::new(Code::E0401, name.span, message).help(help));
            return true;
        }
        let names = self.visible_names();
        if nearest(&name.text, names.iter().map(|name| name.as_str())).is_some() {
            return false;
        }
        let declare = || format!("write `${}` to declare it here", name.text);
        let help = foreign::instead_of_value(&name.text).map_or_else(declare, str::to_string);
        let message = format!("no variable named `{}`", name.text);
        let diagnostic = Diagnostic::new(Code::E0208, name.span, message).help(help);
        self.checker.report(diagnostic);
        true
    }

    /// Whether a received value converts implicitly to the type of a place.
    fn goes_into(&self, from: TypeId, to: TypeId) -> bool {
        let (from_ty, to_ty) = (self.checker.content(from), self.checker.content(to));
        from_ty == to_ty
            || match (self.checker.types.get(from_ty), self.checker.types.get(to_ty)) {
                (Type::Error, _) | (_, Type::Error) | (Type::Bytes { .. }, Type::Bytes { .. }) => true,
                (Type::Int(from), Type::Int(to)) => {
                    from.widens_to(*to) && self.int_type(from_ty).is_some() && self.int_type(to_ty).is_some()
                }
                (Type::Pid(from), Type::Pid(to)) => from.iter().all(|process| to.contains(process)),
                _ => false,
            }
    }
}

fn collect_places<'a>(pattern: &'a ast::Pattern, places: &mut Vec<&'a ast::Place>) {
    match &pattern.kind {
        ast::PatternKind::Place(place) => places.push(place),
        ast::PatternKind::Tag(_, payload) => collect_places(payload, places),
        ast::PatternKind::Record(fields) => fields.iter().for_each(|(_, part)| collect_places(part, places)),
        ast::PatternKind::Array(parts) => parts.iter().for_each(|part| collect_places(part, places)),
        ast::PatternKind::Alternatives(parts) => parts.iter().for_each(|part| collect_places(part, places)),
        ast::PatternKind::Error
        | ast::PatternKind::Any
        | ast::PatternKind::Range(..)
        | ast::PatternKind::Declare(_)
        | ast::PatternKind::Equal(_)
        | ast::PatternKind::OwnId
        | ast::PatternKind::Int(_)
        | ast::PatternKind::Bytes(_)
        | ast::PatternKind::Bool(_) => {}
    }
}

/// A constant value as a pattern of constants.
fn constant_pattern(stored: &[hir::Constant], value: &hir::Expr) -> Option<PatternKind> {
    let part = |value: &hir::Expr| {
        let kind = constant_pattern(stored, value)?;
        Some(hir::Pattern { kind, condition: None, ty: value.ty, span: value.span })
    };
    match &value.kind {
        ExprKind::Constant(value) => Some(PatternKind::Constant(*value)),
        ExprKind::Bytes(bytes) => Some(PatternKind::Bytes(bytes.clone())),
        ExprKind::OwnId => Some(PatternKind::OwnId),
        ExprKind::Stored(id) => constant_pattern(stored, &stored[id.0 as usize].value),
        ExprKind::WidenPid(inner) | ExprKind::Box(inner) => constant_pattern(stored, inner),
        ExprKind::Union(tag, None) => Some(PatternKind::Tag(*tag, None)),
        ExprKind::Union(tag, Some(payload)) => Some(PatternKind::Tag(*tag, Some(Box::new(part(payload)?)))),
        ExprKind::Record(fields) => {
            let mut parts: Vec<Option<hir::Pattern>> = vec![None; fields.len()];
            for (field, value) in fields {
                *parts.get_mut(*field as usize)? = Some(part(value)?);
            }
            parts.into_iter().collect::<Option<Vec<_>>>().map(PatternKind::Record)
        }
        ExprKind::Array(elements) => elements.iter().map(part).collect::<Option<Vec<_>>>().map(PatternKind::Array),
        _ => None,
    }
}
