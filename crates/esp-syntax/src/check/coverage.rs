//! Which values patterns leave out and which two patterns share, each with a witness (reference, section 5, "Ports").
//! Usefulness of pattern matrices after Maranget, "Warnings for pattern matching" (2007), on the static parts only.
//! The question is exponential in the worst case; a budget bounds the work, and running out of it is reported.

use super::names::Checker;
use crate::diagnostics::{Code, Diagnostic};
use crate::hir::{self, ChannelId, ExprKind, Operation, PatternKind, ProcessId};
use crate::span::Span;
use crate::types::{AggregateId, Type, TypeId, TypeTable};
use std::collections::BTreeMap;

/// The static part of a pattern.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Static {
    Any,
    /// Integers from the first up to but without the second; a `bool` is 0 or 1, a `pid` its instance number.
    Range(i128, i128),
    Bytes(Vec<u8>),
    Tag(u32, Option<Box<Static>>),
    Product(Vec<Static>),
    /// One of several, none of which is `Any` or `Either`.
    Either(Vec<Static>),
}

/// The pattern of a row without a constraint on the column.
pub(super) static ANY: Static = Static::Any;

/// The maximum number of parts of one message that patterns test: each is one level of recursion.
const MAX_TESTED_PARTS: u32 = 256;

/// A value that no pattern takes, or two do; irrelevant parts are `Any`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Witness {
    Any,
    Text(String),
    Tag(String, Option<Box<Witness>>),
    Record(Vec<Witness>),
    Array(Vec<Witness>),
}

impl std::fmt::Display for Witness {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let list = |f: &mut std::fmt::Formatter, parts: &[Witness], open: &str, close: &str| {
            f.write_str(open)?;
            for (index, part) in parts.iter().take(12).enumerate() {
                let separator = if index == 0 { "" } else { ", " };
                write!(f, "{separator}{part}")?;
            }
            f.write_str(if parts.len() > 12 { ", .." } else { "" })?;
            f.write_str(close)
        };
        match self {
            Witness::Any => f.write_str("_"),
            Witness::Text(text) => f.write_str(text),
            Witness::Tag(tag, None) => write!(f, "{tag} |> {{}}"),
            Witness::Tag(tag, Some(payload)) => write!(f, "{tag} |> {payload}"),
            Witness::Record(parts) if parts.iter().all(|part| *part == Witness::Any) => f.write_str("_"),
            Witness::Array(parts) if parts.iter().all(|part| *part == Witness::Any) => f.write_str("_"),
            Witness::Record(parts) => list(f, parts, "{", "}"),
            Witness::Array(parts) => list(f, parts, "[", "]"),
        }
    }
}

/// The witness for a whole message: a single operand is the message itself.
pub(super) fn message_witness(mut operands: Vec<Witness>) -> Witness {
    if operands.len() == 1 {
        return operands.pop().unwrap_or(Witness::Any);
    }
    if operands.iter().all(|operand| *operand == Witness::Any) {
        let list = vec!["_"; operands.len()].join(", ");
        return Witness::Text(format!("{{{list}}}"));
    }
    Witness::Record(operands)
}

/// The budget is spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct TooComplex;

/// Whether a pattern tests something that is not static.
pub(super) fn is_dynamic(pattern: &hir::Pattern) -> bool {
    pattern.condition.is_some()
        || match &pattern.kind {
            PatternKind::Equal(_) => true,
            PatternKind::Tag(_, payload) => payload.as_ref().is_some_and(|payload| is_dynamic(payload)),
            PatternKind::Record(parts) | PatternKind::Array(parts) => parts.iter().any(is_dynamic),
            PatternKind::Any
            | PatternKind::Declare(_)
            | PatternKind::Assign(_)
            | PatternKind::Constant(_)
            | PatternKind::Bytes(_)
            | PatternKind::Among(_)
            | PatternKind::Either(_)
            | PatternKind::OwnId => false,
        }
}

fn holds_own_id(pattern: &hir::Pattern) -> bool {
    match &pattern.kind {
        PatternKind::OwnId => true,
        PatternKind::Tag(_, payload) => payload.as_ref().is_some_and(|payload| holds_own_id(payload)),
        PatternKind::Record(parts) | PatternKind::Array(parts) => parts.iter().any(holds_own_id),
        PatternKind::Any
        | PatternKind::Declare(_)
        | PatternKind::Assign(_)
        | PatternKind::Constant(_)
        | PatternKind::Bytes(_)
        | PatternKind::Among(_)
        | PatternKind::Either(_)
        | PatternKind::Equal(_) => false,
    }
}

impl Checker<'_> {
    /// Whether each instance takes every value of the pattern's static part: nothing is dynamic, and `@` is not one of
    /// several replicas.
    fn covers_its_static_part(&self, pattern: &hir::Pattern, own: Option<ProcessId>) -> bool {
        let replicated = own.is_some_and(|own| self.processes[own.0 as usize].replicas > 1);
        !(is_dynamic(pattern) || replicated && holds_own_id(pattern))
    }

    /// The static part of a pattern of a process.
    pub(super) fn static_part(&self, pattern: &hir::Pattern, own: Option<ProcessId>) -> Static {
        match &pattern.kind {
            PatternKind::Any | PatternKind::Declare(_) | PatternKind::Assign(_) | PatternKind::Equal(_) => Static::Any,
            PatternKind::Constant(value) => Static::Range(*value, value + 1),
            PatternKind::Bytes(bytes) => Static::Bytes(bytes.clone()),
            PatternKind::OwnId => match own {
                Some(own) => {
                    let entry = &self.processes[own.0 as usize];
                    let first = i128::from(entry.first_instance);
                    Static::Range(first, first + i128::from(entry.replicas))
                }
                None => Static::Any,
            },
            PatternKind::Tag(tag, payload) => {
                Static::Tag(*tag, payload.as_ref().map(|payload| Box::new(self.static_part(payload, own))))
            }
            PatternKind::Record(parts) | PatternKind::Array(parts) => {
                Static::Product(parts.iter().map(|part| self.static_part(part, own)).collect())
            }
            PatternKind::Among(ranges) => match ranges.as_slice() {
                [(low, high)] => Static::Range(*low, *high),
                _ => Static::Either(ranges.iter().map(|(low, high)| Static::Range(*low, *high)).collect()),
            },
            PatternKind::Either(alternatives) => {
                let mut flat = Vec::new();
                for alternative in alternatives {
                    match self.static_part(alternative, own) {
                        Static::Any => return Static::Any,
                        Static::Either(inner) => flat.extend(inner),
                        part => flat.push(part),
                    }
                }
                Static::Either(flat)
            }
        }
    }

    /// What is known of an expression's value in a process without running the program.
    pub(super) fn static_value(&self, expr: &hir::Expr, own: ProcessId) -> Static {
        let instances = |process: ProcessId| {
            let entry = &self.processes[process.0 as usize];
            let first = i128::from(entry.first_instance);
            Static::Range(first, first + i128::from(entry.replicas))
        };
        match &expr.kind {
            ExprKind::Constant(_) if self.types.holds_clock(expr.ty) => Static::Any,
            ExprKind::Constant(value) => Static::Range(*value, value + 1),
            ExprKind::Bytes(bytes) => Static::Bytes(bytes.clone()),
            ExprKind::Stored(id) => self.static_value(&self.stored[id.0 as usize].value, own),
            ExprKind::OwnId => instances(own),
            ExprKind::InstanceOf(process, _) => instances(*process),
            ExprKind::Union(tag, payload) => {
                Static::Tag(*tag, payload.as_ref().map(|payload| Box::new(self.static_value(payload, own))))
            }
            ExprKind::Record(fields) => {
                let mut fields: Vec<(u32, Static)> =
                    fields.iter().map(|(field, value)| (*field, self.static_value(value, own))).collect();
                fields.sort_by_key(|(field, _)| *field);
                Static::Product(fields.into_iter().map(|(_, value)| value).collect())
            }
            ExprKind::Array(elements) => {
                Static::Product(elements.iter().map(|element| self.static_value(element, own)).collect())
            }
            ExprKind::Box(content) | ExprKind::WidenPid(content) => self.static_value(content, own),
            ExprKind::Local(_)
            | ExprKind::Repeat(_)
            | ExprKind::Content(_)
            | ExprKind::Field(..)
            | ExprKind::Index(..)
            | ExprKind::Length(_)
            | ExprKind::Slice(..)
            | ExprKind::Concatenate(..)
            | ExprKind::Fit(_)
            | ExprKind::Number { .. }
            | ExprKind::LayoutField { .. }
            | ExprKind::Convert(_)
            | ExprKind::Test(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Saturating(..)
            | ExprKind::Now
            | ExprKind::Conditional(..)
            | ExprKind::CallFn(..)
            | ExprKind::CallExtern(..)
            | ExprKind::Freeze(_)
            | ExprKind::Thaw(_)
            | ExprKind::ReplicaNumber(_)
            | ExprKind::FreeObjects(_) => Static::Any,
        }
    }

    /// A value among those `query` takes that no row takes.
    pub(super) fn uncovered(
        &mut self,
        rows: Vec<Vec<&Static>>,
        query: &[&Static],
        types: &[TypeId],
    ) -> Result<Option<Vec<Witness>>, TooComplex> {
        // Columns are kept in reverse: the first operand is the last element.
        let rows = rows.into_iter().map(|row| row.into_iter().rev().collect()).collect();
        let columns = types.iter().rev().copied().zip(query.iter().rev().copied()).collect();
        let mut matrix = Matrix { checker: self, depth: 0 };
        let witness = matrix.uncovered(rows, columns)?;
        Ok(witness.map(|mut witness| {
            witness.reverse();
            witness
        }))
    }

    fn number(&self, value: i128, ty: TypeId) -> Witness {
        Witness::Text(match self.types.get(ty) {
            Type::Bool => (if value == 0 { "false" } else { "true" }).to_string(),
            Type::Pid(_) => match self.instance(value) {
                Some((process, replica)) => {
                    let entry = &self.processes[process.0 as usize];
                    match entry.item.replicas {
                        Some(_) => format!("@{}[{replica}]", entry.item.name.text),
                        None => format!("@{}", entry.item.name.text),
                    }
                }
                None => "_".to_string(),
            },
            _ => match self.types.enumeration(ty) {
                Some(enumeration) => match enumeration.case_of(value) {
                    Some(case) => format!("{}.{case}", enumeration.name),
                    None => value.to_string(),
                },
                None => value.to_string(),
            },
        })
    }

    /// A value that both patterns take.
    pub(super) fn shared(&self, left: &Static, right: &Static, ty: TypeId) -> Option<Witness> {
        let ty = self.content(ty);
        match (left, right) {
            (Static::Any, Static::Any) => Some(Witness::Any),
            (Static::Any, other) | (other, Static::Any) => Some(self.example(other, ty)),
            (Static::Either(alternatives), other) | (other, Static::Either(alternatives)) => {
                alternatives.iter().find_map(|alternative| self.shared(alternative, other, ty))
            }
            (Static::Range(a, b), Static::Range(c, d)) => {
                let low = *a.max(c);
                (low < *b.min(d)).then(|| self.number(low, ty))
            }
            (Static::Bytes(a), Static::Bytes(b)) => (a == b).then(|| self.example(left, ty)),
            (Static::Tag(a, x), Static::Tag(b, y)) if a == b => {
                let (tag, part) = self.part(ty, *a);
                let payload = match (x, y) {
                    (Some(x), Some(y)) => Some(Box::new(self.shared(x, y, part)?)),
                    (_, _) => None,
                };
                Some(Witness::Tag(tag, payload))
            }
            (Static::Product(a), Static::Product(b)) => {
                let parts: Option<Vec<Witness>> = a
                    .iter()
                    .zip(b)
                    .enumerate()
                    .map(|(i, (a, b))| self.shared(a, b, self.part(ty, i as u32).1))
                    .collect();
                parts.map(|parts| self.product(ty, parts))
            }
            (_, _) => None,
        }
    }

    fn example(&self, pattern: &Static, ty: TypeId) -> Witness {
        let ty = self.content(ty);
        match pattern {
            Static::Any => Witness::Any,
            Static::Range(low, _) => self.number(*low, ty),
            Static::Bytes(bytes) => Witness::Text(quoted(bytes)),
            Static::Either(alternatives) => {
                alternatives.first().map_or(Witness::Any, |alternative| self.example(alternative, ty))
            }
            Static::Tag(tag, payload) => {
                let (name, part) = self.part(ty, *tag);
                Witness::Tag(name, payload.as_ref().map(|payload| Box::new(self.example(payload, part))))
            }
            Static::Product(parts) => {
                let parts =
                    parts.iter().enumerate().map(|(i, part)| self.example(part, self.part(ty, i as u32).1)).collect();
                self.product(ty, parts)
            }
        }
    }

    fn product(&self, ty: TypeId, parts: Vec<Witness>) -> Witness {
        match self.types.get(ty) {
            Type::Array { .. } => Witness::Array(parts),
            _ => Witness::Record(parts),
        }
    }

    /// Name and type of a tag, field or element.
    fn part(&self, ty: TypeId, index: u32) -> (String, TypeId) {
        match self.types.get(ty) {
            Type::Array { element, .. } => (String::new(), *element),
            Type::Record(id) | Type::Union(id) => {
                let (name, ty) = &self.types.aggregate(*id).parts[index as usize];
                (name.to_string(), ty.unwrap_or(TypeTable::ERROR))
            }
            _ => (String::new(), TypeTable::ERROR),
        }
    }
}

fn quoted(bytes: &[u8]) -> String {
    let text: String = bytes.iter().take(24).flat_map(|byte| byte.escape_ascii()).map(char::from).collect();
    if bytes.len() > 24 { format!("\"{text}..\"") } else { format!("\"{text}\"") }
}

type Rows<'p> = Vec<Vec<&'p Static>>;

/// The type of a column and the pattern that restricts the question to a part of it.
type Columns<'p> = Vec<(TypeId, &'p Static)>;

struct Matrix<'m, 'a> {
    checker: &'m mut Checker<'a>,
    depth: u32,
}

/// What the patterns of a column distinguish.
enum Shape {
    /// Nothing: every pattern is `Any`.
    Nothing,
    Integers {
        low: i128,
        high: i128,
    },
    Bytes,
    Union(AggregateId),
    Product(Vec<TypeId>),
}

impl Matrix<'_, '_> {
    fn spend(&mut self, steps: usize) -> Result<(), TooComplex> {
        match self.checker.coverage_budget.checked_sub(steps) {
            Some(rest) => {
                self.checker.coverage_budget = rest;
                Ok(())
            }
            None => {
                self.checker.coverage_budget = 0;
                Err(TooComplex)
            }
        }
    }

    fn shape(&self, rows: &Rows, ty: TypeId) -> Shape {
        let Some(head) = rows.iter().map(|row| row[row.len() - 1]).find(|head| **head != Static::Any) else {
            return Shape::Nothing;
        };
        match (self.checker.types.get(ty), head) {
            (&Type::Int(int), _) => Shape::Integers { low: int.min(), high: int.max() + 1 },
            (Type::Bool, _) => Shape::Integers { low: 0, high: 2 },
            (Type::Pid(_), _) => Shape::Integers { low: 0, high: 0 },
            (Type::Bytes { .. }, _) => Shape::Bytes,
            (Type::Union(id), _) => Shape::Union(*id),
            (Type::Record(id), _) => Shape::Product(
                self.checker.types.aggregate(*id).parts.iter().map(|(_, ty)| ty.unwrap_or(TypeTable::ERROR)).collect(),
            ),
            (Type::Array { element, .. }, Static::Product(parts)) => Shape::Product(vec![*element; parts.len()]),
            (Type::Array { .. } | Type::Error | Type::Boxed(_), _) => Shape::Nothing,
        }
    }

    /// A value for each column that the query takes and no row does.
    fn uncovered<'p>(
        &mut self,
        mut rows: Rows<'p>,
        mut columns: Columns<'p>,
    ) -> Result<Option<Vec<Witness>>, TooComplex> {
        self.spend(1 + rows.len() * columns.len().max(1))?;
        // Columns on which no row has a constraint need no witness of their own.
        let mut untested = 0;
        let (ty, query, shape) = loop {
            if rows.is_empty() {
                let mut witness: Vec<Witness> =
                    columns.iter().map(|(ty, query)| self.checker.example(query, *ty)).collect();
                witness.extend(std::iter::repeat_n(Witness::Any, untested));
                return Ok(Some(witness));
            }
            if rows.iter().any(|row| row.iter().all(|part| **part == Static::Any)) {
                return Ok(None);
            }
            let Some((ty, query)) = columns.pop() else { return Ok(None) };
            if let Static::Either(alternatives) = query {
                return self.any_uncovered(rows, columns, (ty, alternatives), untested);
            }
            self.split_alternatives(&mut rows)?;
            let ty = self.checker.content(ty);
            match self.shape(&rows, ty) {
                Shape::Nothing => {
                    self.spend(rows.len())?;
                    rows.iter_mut().for_each(|row| {
                        row.pop();
                    });
                    untested += 1;
                }
                shape => break (ty, query, shape),
            }
        };
        if self.depth >= MAX_TESTED_PARTS {
            return Err(TooComplex);
        }
        self.depth += 1;
        let found = match shape {
            Shape::Nothing => None,
            Shape::Integers { low, high } => self.integers(rows, columns, query, ty, (low, high))?,
            Shape::Bytes => self.bytes(rows, columns, query, ty)?,
            Shape::Union(id) => self.union(rows, columns, query, id)?,
            Shape::Product(parts) => self.parts(rows, columns, query, ty, parts)?,
        };
        self.depth -= 1;
        Ok(found.map(|mut witness| {
            witness.extend(std::iter::repeat_n(Witness::Any, untested));
            witness
        }))
    }

    /// The question for each alternative of the query's last column.
    fn any_uncovered<'p>(
        &mut self,
        rows: Rows<'p>,
        columns: Columns<'p>,
        (ty, alternatives): (TypeId, &'p [Static]),
        untested: usize,
    ) -> Result<Option<Vec<Witness>>, TooComplex> {
        for alternative in alternatives {
            self.spend(rows.iter().map(Vec::len).sum())?;
            let mut columns = columns.clone();
            columns.push((ty, alternative));
            if let Some(mut witness) = self.uncovered(rows.clone(), columns)? {
                witness.extend(std::iter::repeat_n(Witness::Any, untested));
                return Ok(Some(witness));
            }
        }
        Ok(None)
    }

    /// Makes a row of each alternative in the last column.
    fn split_alternatives(&mut self, rows: &mut Rows) -> Result<(), TooComplex> {
        let is_split = |row: &Vec<&Static>| matches!(row.last(), Some(Static::Either(_)));
        if !rows.iter().any(is_split) {
            return Ok(());
        }
        let mut split = Vec::with_capacity(rows.len());
        for mut row in std::mem::take(rows) {
            match row.last() {
                Some(Static::Either(alternatives)) => {
                    self.spend(alternatives.len() * row.len())?;
                    row.pop();
                    split.extend(alternatives.iter().map(|alternative| {
                        let mut row = row.clone();
                        row.push(alternative);
                        row
                    }));
                }
                _ => split.push(row),
            }
        }
        *rows = split;
        Ok(())
    }

    /// Rows that take anything here, without this column.
    fn default_rows<'p>(&mut self, rows: &Rows<'p>) -> Result<Rows<'p>, TooComplex> {
        let kept: Rows = rows
            .iter()
            .filter(|row| *row[row.len() - 1] == Static::Any)
            .map(|row| row[..row.len() - 1].to_vec())
            .collect();
        self.spend(rows.len() + kept.iter().map(Vec::len).sum::<usize>())?;
        Ok(kept)
    }

    fn integers<'p>(
        &mut self,
        rows: Rows<'p>,
        columns: Columns<'p>,
        query: &'p Static,
        ty: TypeId,
        (low, high): (i128, i128),
    ) -> Result<Option<Vec<Witness>>, TooComplex> {
        // The domain: one interval, or for `pid` those of the listed processes; within the query.
        let mut domain: Vec<(i128, i128)> = match self.checker.types.get(ty) {
            Type::Pid(processes) => processes
                .iter()
                .map(|process| {
                    let entry = &self.checker.processes[process.0 as usize];
                    (i128::from(entry.first_instance), i128::from(entry.first_instance + entry.replicas))
                })
                .collect(),
            _ => match self.checker.types.enumeration(ty) {
                Some(enumeration) if enumeration.other.is_none() => enumeration.codes(),
                Some(_) | None => vec![(low, high)],
            },
        };
        if let Static::Range(from, to) = query {
            domain = domain.into_iter().map(|(low, high)| (low.max(*from), high.min(*to))).collect();
            domain.retain(|(low, high)| low < high);
        }
        // Cut it where the patterns do. Each segment is taken whole or not at all by every pattern.
        let mut cuts: Vec<i128> = domain.iter().flat_map(|(low, high)| [*low, *high]).collect();
        let mut default = Vec::new();
        let mut ranged = Vec::new();
        for row in &rows {
            match row[row.len() - 1] {
                Static::Range(low, high) => {
                    cuts.extend([*low, *high]);
                    ranged.push((*low, *high, row));
                }
                _ => default.push(row),
            }
        }
        cuts.sort_unstable();
        cuts.dedup();
        let mut segments: Vec<Vec<usize>> = vec![Vec::new(); cuts.len()];
        for (index, (low, high, _)) in ranged.iter().enumerate() {
            let first = cuts.partition_point(|start| start < low);
            for (start, segment) in cuts[first..].iter().zip(&mut segments[first..]) {
                if start >= high {
                    break;
                }
                self.spend(1)?;
                segment.push(index);
            }
        }
        // Segments that only the default rows take are equivalent: the one nearest above 0 represents them.
        let end_of = |index: usize| cuts.get(index + 1).copied().unwrap_or(high);
        let mut order: Vec<usize> = (0..cuts.len())
            .filter(|index| domain.iter().any(|(low, high)| *low <= cuts[*index] && cuts[*index] < *high))
            .collect();
        order.sort_by_key(|index| (!segments[*index].is_empty(), end_of(*index) <= 0, cuts[*index]));
        let mut default_done = false;
        for index in order {
            if segments[index].is_empty() && std::mem::replace(&mut default_done, true) {
                continue;
            }
            let chosen = segments[index].iter().map(|row| ranged[*row].2).chain(default.iter().copied());
            let specialised: Rows = chosen.map(|row| row[..row.len() - 1].to_vec()).collect();
            self.spend((specialised.len() + 1) * (columns.len() + 1))?;
            if let Some(mut witness) = self.uncovered(specialised, columns.clone())? {
                let value = if cuts[index] < 0 && end_of(index) > 0 { 0 } else { cuts[index] };
                witness.push(self.checker.number(value, ty));
                return Ok(Some(witness));
            }
        }
        Ok(None)
    }

    fn bytes<'p>(
        &mut self,
        rows: Rows<'p>,
        columns: Columns<'p>,
        query: &'p Static,
        ty: TypeId,
    ) -> Result<Option<Vec<Witness>>, TooComplex> {
        let mut groups: BTreeMap<&'p [u8], Rows<'p>> = BTreeMap::new();
        for row in &rows {
            if let Static::Bytes(bytes) = row[row.len() - 1] {
                groups.insert(bytes, Vec::new());
            }
        }
        let bound = match self.checker.types.get(ty) {
            Type::Bytes { bound } => *bound as usize,
            _ => 0,
        };
        if let Static::Bytes(bytes) = query {
            groups = BTreeMap::from([(bytes.as_slice(), Vec::new())]);
        } else if let Some(fresh) =
            // A string that is not listed: the shortest run of one letter.
            (0..=bound.min(rows.len()))
                .map(|length| vec![b'x'; length])
                .find(|s| !groups.contains_key(s.as_slice()))
        {
            let default = self.default_rows(&rows)?;
            if let Some(mut witness) = self.uncovered(default, columns.clone())? {
                witness.push(Witness::Text(quoted(&fresh)));
                return Ok(Some(witness));
            }
        }
        for row in &rows {
            let rest = &row[..row.len() - 1];
            match row[row.len() - 1] {
                Static::Bytes(bytes) => {
                    if let Some(group) = groups.get_mut(bytes.as_slice()) {
                        group.push(rest.to_vec());
                    }
                }
                _ => {
                    self.spend(groups.len() * (rest.len() + 1))?;
                    groups.values_mut().for_each(|rows| rows.push(rest.to_vec()));
                }
            }
        }
        for (bytes, rows) in groups {
            if let Some(mut witness) = self.uncovered(rows, columns.clone())? {
                witness.push(Witness::Text(quoted(bytes)));
                return Ok(Some(witness));
            }
        }
        Ok(None)
    }

    fn union<'p>(
        &mut self,
        rows: Rows<'p>,
        columns: Columns<'p>,
        query: &'p Static,
        id: AggregateId,
    ) -> Result<Option<Vec<Witness>>, TooComplex> {
        let parts = self.checker.types.aggregate(id).parts.clone();
        let mut by_tag: BTreeMap<u32, Rows<'p>> = BTreeMap::new();
        for row in &rows {
            if let Static::Tag(tag, _) = row[row.len() - 1] {
                by_tag.entry(*tag).or_default();
            }
        }
        for row in &rows {
            let rest = &row[..row.len() - 1];
            let with = |tag: u32, payload: &'p Static| {
                let mut rest = rest.to_vec();
                rest.extend(parts[tag as usize].1.map(|_| payload));
                rest
            };
            match row[row.len() - 1] {
                Static::Tag(tag, payload) => {
                    by_tag.entry(*tag).or_default().push(with(*tag, payload.as_deref().unwrap_or(&ANY)));
                }
                _ => {
                    self.spend(by_tag.len() * row.len())?;
                    by_tag.iter_mut().for_each(|(tag, rows)| rows.push(with(*tag, &ANY)));
                }
            }
        }
        let mut default = Some(self.default_rows(&rows)?);
        for (index, (name, payload)) in parts.iter().enumerate() {
            let tag = index as u32;
            let asked = match query {
                Static::Tag(asked, _) if *asked != tag => continue,
                Static::Tag(_, payload) => payload.as_deref().unwrap_or(&ANY),
                _ => &ANY,
            };
            let found = match by_tag.remove(&tag) {
                Some(rows) => {
                    let mut columns = columns.clone();
                    columns.extend(payload.map(|payload| (payload, asked)));
                    self.uncovered(rows, columns)?
                }
                // All tags without a row of their own are equivalent: one check is enough.
                None => match default.take() {
                    Some(default) => self.uncovered(default, columns.clone())?.map(|mut witness| {
                        witness.extend(payload.map(|_| Witness::Any));
                        witness
                    }),
                    None => None,
                },
            };
            if let Some(mut witness) = found {
                let payload = payload.and_then(|_| witness.pop()).map(Box::new);
                witness.push(Witness::Tag(name.to_string(), payload));
                return Ok(Some(witness));
            }
        }
        Ok(None)
    }

    fn parts<'p>(
        &mut self,
        rows: Rows<'p>,
        mut columns: Columns<'p>,
        query: &'p Static,
        ty: TypeId,
        parts: Vec<TypeId>,
    ) -> Result<Option<Vec<Witness>>, TooComplex> {
        self.spend((rows.len() + 1) * parts.len())?;
        let count = parts.len();
        let expand = |part: &'p Static| -> Vec<&'p Static> {
            match part {
                Static::Product(parts) => parts.iter().rev().collect(),
                _ => vec![&ANY; count],
            }
        };
        let expanded: Rows = rows
            .iter()
            .map(|row| {
                let mut rest = row[..row.len() - 1].to_vec();
                rest.extend(expand(row[row.len() - 1]));
                rest
            })
            .collect();
        columns.extend(parts.into_iter().rev().zip(expand(query)));
        Ok(self.uncovered(expanded, columns)?.map(|mut witness| {
            let mut parts = witness.split_off(witness.len() - count);
            parts.reverse();
            let whole = self.checker.product(ty, parts);
            witness.push(whole);
            witness
        }))
    }
}

/// The diagnostic after the budget is spent: the program is rejected, because its meaning is undetermined.
pub(super) fn too_complex(checker: &mut Checker, code: Code, span: Span) {
    let message = "these patterns are too many to compare with each other";
    let diagnostic = Diagnostic::new(code, span, message).help("add a pattern that takes the rest, such as `_`");
    checker.report(diagnostic);
}

/// Whether nothing is left for patterns after `earlier` ones. False if the budget is spent: it is for a warning only.
fn is_superfluous<'p>(
    checker: &mut Checker,
    earlier: impl Iterator<Item = Vec<&'p Static>>,
    patterns: &[&'p Static],
    types: &[TypeId],
) -> bool {
    if checker.superfluous_budget == 0 {
        return false;
    }
    let budget = std::mem::replace(&mut checker.coverage_budget, checker.superfluous_budget);
    let left = checker.uncovered(earlier.collect(), patterns, types);
    checker.superfluous_budget = std::mem::replace(&mut checker.coverage_budget, budget);
    matches!(left, Ok(None))
}

/// E0402 and, for arms that can never be chosen, W0906.
pub(super) fn check_match(
    checker: &mut Checker,
    arms: &[(hir::Pattern, Vec<hir::Stmt>)],
    ty: TypeId,
    own: Option<ProcessId>,
    place: Span,
) {
    let parts: Vec<Static> = arms.iter().map(|(pattern, _)| checker.static_part(pattern, own)).collect();
    // An arm with a dynamic part may let a value pass, so it covers nothing for sure.
    let sure: Vec<usize> = (0..arms.len()).filter(|arm| checker.covers_its_static_part(&arms[*arm].0, own)).collect();
    let rows = sure.iter().map(|index| vec![&parts[*index]]).collect();
    match checker.uncovered(rows, &[&ANY], &[ty]) {
        Ok(Some(witness)) => {
            let witness = message_witness(witness);
            let message = format!("match is not exhaustive: `{witness}` is not covered");
            let help = "add an arm for it, or `_ => { }` for all the rest";
            checker.report(Diagnostic::new(Code::E0402, place, message).help(help));
        }
        Ok(None) => {}
        Err(TooComplex) => return too_complex(checker, Code::E0402, place),
    }
    for (index, (pattern, _)) in arms.iter().enumerate() {
        let earlier = sure.iter().take_while(|other| **other < index).map(|other| vec![&parts[*other]]);
        if is_superfluous(checker, earlier, &[&parts[index]], &[ty]) {
            let message = "this arm of `match` is covered by earlier ones";
            checker.report(Diagnostic::new(Code::W0906, pattern.span, message).help("drop it, or move it up"));
        }
    }
}

/// W0906: an alternative of a pattern that earlier ones make superfluous.
pub(super) fn check_alternatives(
    checker: &mut Checker,
    alternatives: &[hir::Pattern],
    ty: TypeId,
    own: Option<ProcessId>,
) {
    let parts: Vec<Static> = alternatives.iter().map(|pattern| checker.static_part(pattern, own)).collect();
    for (index, pattern) in alternatives.iter().enumerate().skip(1) {
        if is_superfluous(checker, parts[..index].iter().map(|part| vec![part]), &[&parts[index]], &[ty]) {
            let message = "this alternative is covered by earlier ones";
            checker.report(Diagnostic::new(Code::W0906, pattern.span, message).help("drop it"));
        }
    }
}

/// W0906: a branch of `pri alt` that earlier ones make superfluous.
pub(super) fn check_priority(checker: &mut Checker, branches: &[hir::Branch], own: Option<ProcessId>) {
    let mut earlier: Vec<(ChannelId, Vec<Static>, Span)> = Vec::new();
    for branch in branches {
        let Operation::In(_, channel, patterns) = &branch.operation else { continue };
        let parts: Vec<Static> = patterns.iter().map(|pattern| checker.static_part(pattern, own)).collect();
        let types: Vec<TypeId> = patterns.iter().map(|pattern| pattern.ty).collect();
        let same = earlier.iter().filter(|(other, ..)| other == channel);
        let rows = same.clone().map(|(_, parts, _)| parts.iter().collect());
        if is_superfluous(checker, rows, &parts.iter().collect::<Vec<_>>(), &types) {
            let message = "this branch of `pri alt` is covered by an earlier one";
            let mut diagnostic = Diagnostic::new(Code::W0906, branch.span, message).help("drop it, or move it up");
            if let Some((.., first)) = same.clone().next() {
                diagnostic = diagnostic.label(*first, "what it takes is taken here");
            }
            checker.report(diagnostic);
        }
        if branch.guard.is_none() && patterns.iter().all(|pattern| checker.covers_its_static_part(pattern, own)) {
            earlier.push((*channel, parts, branch.span));
        }
    }
}
