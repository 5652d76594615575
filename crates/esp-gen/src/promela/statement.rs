//! Instructions as Promela statements. Knows no control flow but loops over parts of memory.

use super::expression::{Demand, Expr};
use super::lines::{Lines, Mark};
use super::memory::Kind;
use super::monitor::texts as numbers_of;
use super::observable::Observable;
use super::scope::{Scope, Spot};
use super::value_usage::Placement;
use crate::Checks;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::model::Values;

/// The maximal number of consecutive numbers that are copied one by one; more are copied by a loop.
const MAX_RUN: u32 = 8;
/// The loop variable.
pub(super) const INDEX: &str = "at";
/// The temporary variable for a number.
pub(super) const SWAP: &str = "swap";

/// The lines that statements are appended to, with the scope of their names and their location.
pub(super) struct Writer<'w, 'a> {
    pub(super) scope: &'w Scope<'a>,
    pub(super) lines: &'w mut Lines,
    pub(super) location: Location,
}

impl<'a> Writer<'_, 'a> {
    pub(super) fn line(&mut self, text: impl Into<String>) {
        self.lines.push(Mark::Local, self.location, text);
    }

    fn assign(&mut self, to: &Expr, value: &Expr) {
        if to != value {
            self.line(format!("{} = {};", to.text, value.text));
        }
    }

    /// Asserts the conditions under which an operation does not fault.
    pub(super) fn demand(&mut self, demands: &[Demand]) {
        for demand in demands {
            let (mark, text) = self.scope.plan.assertion(demand.fault, self.location, &demand.condition.text);
            self.lines.push(mark, self.location, text);
        }
    }

    fn index() -> Expr {
        Expr::tight(INDEX)
    }

    /// Statements for `at` from `from` up to `to`.
    fn repeat(&mut self, from: &Expr, to: &Expr, body: &mut dyn FnMut(&mut Self, &Expr)) {
        self.line(format!("{INDEX} = {};", from.text));
        self.line("do");
        self.lines.indent();
        self.line(format!(":: {INDEX} < {} ->", to.operand()));
        self.lines.indent();
        body(self, &Self::index());
        self.line(format!("{INDEX} = {INDEX} + 1;"));
        self.lines.dedent();
        self.line(":: else -> break");
        self.lines.dedent();
        self.line("od;");
        self.line(format!("{INDEX} = 0;"));
    }

    /// Statements for every position of a run of numbers.
    fn each(&mut self, count: u32, body: &mut dyn FnMut(&mut Self, Option<&Expr>)) {
        match count {
            0 => {}
            1 => body(self, None),
            2..=MAX_RUN => (0..count).for_each(|at| body(self, Some(&Expr::number(i128::from(at))))),
            _ => {
                let end = Expr::number(i128::from(count));
                self.repeat(&Expr::tight("0"), &end, &mut |writer, at| body(writer, Some(at)));
            }
        }
    }

    /// Makes every number of a place 0.
    pub(super) fn zero(&mut self, spot: &Spot) {
        for (leaf, data) in spot.leaves.iter().enumerate() {
            self.each(data.count, &mut |writer, at| writer.assign(&spot.cell(leaf, at), &Expr::tight("0")));
        }
    }

    /// Copies a value; `bytes` may have different bounds.
    pub(super) fn copy(&mut self, to: &Spot, from: &Spot) {
        if let (Type::Bytes { bound: into }, Type::Bytes { bound }) =
            (self.scope.types().get(to.ty), self.scope.types().get(from.ty))
            && into != bound
        {
            let (into, bound) = (*into, *bound);
            if bound > into {
                let condition = Expr::binary(&from.cell(0, None), "<=", &Expr::number(i128::from(into)));
                self.demand(&[Demand { condition, fault: Fault::Range }]);
            }
            self.assign(&to.cell(0, None), &from.cell(0, None));
            let cell = |spot: &Spot, count: u32, at: Option<&Expr>| spot.cell(1, if count == 1 { None } else { at });
            for at in 0..into {
                let here = Expr::number(i128::from(at));
                let value = if at < bound { cell(from, bound, Some(&here)) } else { Expr::tight("0") };
                self.assign(&cell(to, into, Some(&here)), &value);
            }
            return;
        }
        for (leaf, data) in to.leaves.iter().enumerate() {
            self.each(data.count, &mut |writer, at| writer.assign(&to.cell(leaf, at), &from.cell(leaf, at)));
        }
    }

    /// One instruction.
    pub(super) fn instruction(&mut self, instruction: &Instruction) {
        self.location = instruction.location;
        let scope = self.scope;
        if let Some(result) = instruction.result {
            self.refuse_wide(result);
            match scope.usage.placement(result) {
                Placement::Inline(..) => {
                    let (_, demands) = scope.compute(result, &instruction.op);
                    self.demand(&demands);
                    return;
                }
                Placement::Variable(_) => {}
            }
        }
        let target = instruction.result.map(|result| scope.value(result));
        match &instruction.op {
            Op::Constant(_)
            | Op::Unary(..)
            | Op::Binary(..)
            | Op::Convert(_)
            | Op::Load(_)
            | Op::Tag(_)
            | Op::Length(_)
            | Op::OwnId
            | Op::InstanceOf(..)
            | Op::ReplicaNumber(_)
            | Op::FreeObjects(_)
            | Op::Deadline { .. }
            | Op::IsUnique(_) => {
                let result = instruction.result.expect("the verifier gives these results");
                let (expr, demands) = scope.compute(result, &instruction.op);
                self.demand(&demands);
                self.assign(&scope.value(result), &expr);
            }
            Op::Store(place, value) => {
                let spot = scope.place(place);
                self.demand(&spot.demands);
                self.assign(&spot.scalar(), &scope.value(*value));
            }
            Op::Copy { to, from } => {
                let (from, to) = (scope.place(from), scope.place(to));
                self.demand(&from.demands);
                self.demand(&to.demands);
                self.copy(&to, &from);
            }
            Op::SetBytes(place, bytes) => {
                let spot = scope.place(place);
                self.demand(&spot.demands);
                self.assign(&spot.cell(0, None), &Expr::number(bytes.len() as i128));
                for at in 0..spot.leaves[1].count {
                    let byte = bytes.get(at as usize).copied().unwrap_or(0);
                    self.assign(&byte_of(&spot, &Expr::number(i128::from(at))), &Expr::number(i128::from(byte)));
                }
            }
            Op::Fill(place, operand) => self.fill(place, operand),
            Op::SetTag(place, tag) => {
                let spot = scope.place(place);
                self.demand(&spot.demands);
                self.zero(&spot);
                if *tag != 0 {
                    self.assign(&spot.cell(0, None), &Expr::number(i128::from(*tag)));
                }
            }
            Op::SetLength(place, value) => self.set_length(place, *value),
            Op::CopySlice { to, from, start, end } => {
                let (from, to) = (scope.place(from), scope.place(to));
                self.demand(&from.demands);
                self.demand(&to.demands);
                let (start, length) = self.slice(&from, *start, *end);
                self.demand_length(&length, to.leaves[1].count);
                self.move_bytes(&to, &Expr::tight("0"), &from, &start, &length, TailFill::Zero);
            }
            Op::StoreSlice { to, start, end, from } => {
                let (from, to) = (scope.place(from), scope.place(to));
                self.demand(&to.demands);
                self.demand(&from.demands);
                let (start, length) = self.slice(&to, *start, *end);
                let same = Expr::binary(&length, "==", &from.cell(0, None));
                self.demand(&[Demand { condition: same, fault: Fault::Range }]);
                self.move_bytes(&to, &start, &from, &Expr::tight("0"), &length, TailFill::Keep);
            }
            Op::Append { to, from } => {
                let (from, to) = (scope.place(from), scope.place(to));
                self.demand(&to.demands);
                self.demand(&from.demands);
                let (have, more) = (to.cell(0, None), from.cell(0, None));
                self.demand_length(&Expr::binary(&have, "+", &more), to.leaves[1].count);
                self.move_bytes(&to, &have, &from, &Expr::tight("0"), &more, TailFill::Append);
            }
            Op::LoadNumber { from, offset, bits, order } => {
                let spot = scope.place(from);
                self.demand(&spot.demands);
                let offset = scope.value(*offset);
                self.window(&spot, &offset, bits / 8);
                let pieces = pieces(*bits, *order);
                self.assign(&target.expect("the verifier gives these results"), &gather(&spot, &offset, &pieces));
            }
            Op::LoadBits { from, offset, field } => {
                let spot = scope.place(from);
                self.demand(&spot.demands);
                let offset = scope.value(*offset);
                self.window(&spot, &offset, field.layout_bytes);
                let pieces = field_pieces(*field);
                self.assign(&target.expect("the verifier gives these results"), &gather(&spot, &offset, &pieces));
            }
            Op::StoreNumber { to, offset, bits, order, value } => {
                self.refuse_wide(*value);
                let spot = scope.place(to);
                self.demand(&spot.demands);
                let offset = scope.value(*offset);
                self.window(&spot, &offset, bits / 8);
                self.scatter(&spot, &offset, &pieces(*bits, *order), &scope.value(*value));
            }
            Op::StoreBits { to, offset, field, value } => {
                self.refuse_wide(*value);
                let spot = scope.place(to);
                self.demand(&spot.demands);
                let (offset, value) = (scope.value(*offset), scope.value(*value));
                if scope.plan.checks == Checks::On && field.width_bits < 31 {
                    let min = Expr::binary(&value, ">=", &Expr::tight("0"));
                    let max = Expr::binary(&value, "<", &Expr::number(1 << field.width_bits));
                    self.demand(&[Demand { condition: Expr::and(Some(min), max), fault: Fault::Overflow }]);
                }
                self.window(&spot, &offset, field.layout_bytes);
                self.scatter(&spot, &offset, &field_pieces(*field), &value);
            }
            Op::Equal(a, b) => self.equal(a, b, &target.expect("the verifier gives these results")),
            Op::CallFunction { .. } => unreachable!("calls end a run of statements"),
            Op::CallExtern { function, arguments, to, .. } => {
                self.call_extern(*function, arguments, to.as_ref(), target.as_ref());
            }
            Op::Allocate(pool) => self.allocate(*pool, &target.expect("the verifier gives these results")),
            Op::Retain(operand) => self.change_counts(operand, Change::Retain),
            Op::Release(operand) => self.change_counts(operand, Change::Release),
            Op::Mark(_) | Op::Predicate(..) => {}
        }
    }

    /// Promela computes in 32 bits.
    fn refuse_wide(&self, value: Value) {
        if let Kind::Int(int @ (IntType::U64 | IntType::I64)) = self.scope.kind(value) {
            let message = format!("Promela has no numbers of 64 bits, and this is of type `{}`", int.name());
            self.scope.plan.refuse(self.location, message, "use `u32` or `int`, or verify with the built-in engine");
        }
    }

    fn fill(&mut self, place: &Place, operand: &Operand) {
        let scope = self.scope;
        let to = scope.place(place);
        self.demand(&to.demands);
        let (values, ty, demands) = scope.operand(operand);
        self.demand(&demands);
        let Type::Array { length, .. } = scope.types().get(to.ty) else {
            unreachable!("the verifier lets only arrays be filled")
        };
        let single = super::memory::leaves(scope.types(), ty).iter().all(|leaf| leaf.count == 1);
        if single {
            for (leaf, value) in values.iter().enumerate() {
                self.each(*length, &mut |writer, at| writer.assign(&to.cell(leaf, at), value));
            }
            return;
        }
        let Operand::Place(place) = operand else { unreachable!("a value is one number") };
        let from = scope.place(place);
        for at in 0..*length {
            let element = to.element(scope.types(), &Expr::number(i128::from(at)), None);
            self.copy(&element.expect("an array has elements"), &from);
        }
    }

    fn set_length(&mut self, place: &Place, value: Value) {
        let spot = self.scope.place(place);
        self.demand(&spot.demands);
        let length = self.scope.value(value);
        let bound = spot.leaves[1].count;
        let min = Expr::binary(&length, ">=", &Expr::tight("0"));
        let max = Expr::binary(&length, "<=", &Expr::number(i128::from(bound)));
        self.demand(&[Demand { condition: Expr::and(Some(min), max), fault: Fault::Range }]);
        self.assign(&spot.cell(0, None), &length);
        let end = Expr::number(i128::from(bound));
        let start = spot.cell(0, None);
        self.repeat(&start, &end, &mut |writer, at| writer.assign(&byte_of(&spot, at), &Expr::tight("0")));
    }

    /// Start and length of a part of `bytes`.
    fn slice(&mut self, spot: &Spot, start: Option<Value>, end: Option<Value>) -> (Expr, Expr) {
        let length = spot.cell(0, None);
        let zero = Expr::tight("0");
        let first = start.map_or(zero.clone(), |value| self.scope.value(value));
        let last = end.map_or(length.clone(), |value| self.scope.value(value));
        let mut condition = Some(Expr::binary(&first, ">=", &zero)).filter(|_| start.is_some());
        condition = Some(Expr::and(condition, Expr::binary(&first, "<=", &last)));
        let condition = Expr::and(condition, Expr::binary(&last, "<=", &length));
        self.demand(&[Demand { condition, fault: Fault::Bounds }]);
        let taken = if start.is_some() { Expr::binary(&last, "-", &first) } else { last };
        (first, taken)
    }

    fn demand_length(&mut self, length: &Expr, bound: u32) {
        let condition = Expr::binary(length, "<=", &Expr::number(i128::from(bound)));
        self.demand(&[Demand { condition, fault: Fault::Range }]);
    }

    fn move_bytes(
        &mut self,
        to: &Spot,
        to_start: &Expr,
        from: &Spot,
        from_start: &Expr,
        length: &Expr,
        tail: TailFill,
    ) {
        // The bounds of a loop are computed before it, from what it may change.
        let sum = |a: &Expr, b: &Expr| if a.text == "0" { b.clone() } else { Expr::binary(a, "+", b) };
        match tail {
            TailFill::Zero => {
                let end = Expr::number(i128::from(to.leaves[1].count));
                self.line(format!("swap = {};", length.text));
                self.repeat(&Expr::tight("0"), &end, &mut |writer, at| {
                    let inside = Expr::binary(at, "<", &Expr::tight("swap"));
                    let value = Expr::choose(&inside, &byte_of(from, &sum(from_start, at)), &Expr::tight("0"));
                    writer.assign(&byte_of(to, at), &value);
                });
                self.line(format!("{} = swap;", to.cell(0, None).text));
                self.line("swap = 0;");
            }
            TailFill::Keep | TailFill::Append => {
                self.repeat(&Expr::tight("0"), length, &mut |writer, at| {
                    writer.assign(&byte_of(to, &sum(to_start, at)), &byte_of(from, &sum(from_start, at)));
                });
                if tail == TailFill::Append {
                    self.assign(&to.cell(0, None), &Expr::binary(to_start, "+", length));
                }
            }
        }
    }

    /// `length` bytes lie at `offset`.
    fn window(&mut self, spot: &Spot, offset: &Expr, length: u32) {
        let min = Expr::binary(offset, ">=", &Expr::tight("0"));
        let left = Expr::binary(&spot.cell(0, None), "-", &Expr::number(i128::from(length)));
        let condition = Expr::and(Some(min), Expr::binary(offset, "<=", &left));
        self.demand(&[Demand { condition, fault: Fault::Bounds }]);
    }

    fn scatter(&mut self, spot: &Spot, offset: &Expr, pieces: &[Piece], value: &Expr) {
        for piece in pieces {
            let cell = byte_at(spot, offset, piece.byte);
            let mask = (1u32 << piece.width) - 1;
            let number = |value: u32| Expr::number(i128::from(value));
            let bits = match piece.up {
                0 => value.clone(),
                up => Expr::binary(value, ">>", &number(up)),
            };
            let mut bits = Expr::binary(&bits, "&", &number(mask));
            if piece.low > 0 {
                bits = Expr::binary(&bits, "<<", &number(piece.low));
            }
            if piece.width < 8 {
                let kept = Expr::binary(&cell, "&", &number(255 & !(mask << piece.low)));
                bits = Expr::binary(&kept, "|", &bits);
            }
            self.assign(&cell, &bits);
        }
    }

    fn equal(&mut self, a: &Operand, b: &Operand, target: &Expr) {
        let scope = self.scope;
        let ((first, ty, demands), (second, _, more)) = (scope.operand(a), scope.operand(b));
        self.demand(&demands);
        self.demand(&more);
        if super::plan::refers(scope.types(), ty) {
            let message = "objects are compared by content here, which the model cannot";
            scope.plan.refuse(self.location, message, "compare the parts that are numbers");
        }
        let equal = first.iter().zip(&second).map(|(a, b)| Expr::binary(a, "==", b));
        let all = equal.fold(None, |all: Option<Expr>, one| Some(Expr::and(all, one)));
        self.assign(target, &all.unwrap_or_else(|| Expr::tight("true")));
    }

    fn call_extern(&mut self, function: ExternId, arguments: &[Operand], to: Option<&Place>, target: Option<&Expr>) {
        let scope = self.scope;
        for argument in arguments {
            let (_, _, demands) = scope.operand(argument);
            self.demand(&demands);
        }
        let values = scope.plan.model.results.get(function.0 as usize).copied().unwrap_or(Values::One);
        let spot = to.map(|place| scope.place(place));
        let cells = match (&spot, target) {
            (Some(spot), _) => super::scope::cells(spot).into_iter().zip(kinds(spot)).collect(),
            (None, Some(target)) => {
                let ty = scope.plan.program.externs[function.0 as usize].result;
                let kind = ty.and_then(|ty| super::memory::kind(scope.types(), ty)).unwrap_or(Kind::Bool);
                vec![(target.clone(), kind)]
            }
            (None, None) => Vec::new(),
        };
        let data = &scope.plan.program.externs[function.0 as usize];
        let what = format!("the result of `{}`", data.name);
        if scope.plan.monitor.is_none() {
            for (cell, kind) in cells {
                self.any(&cell, &kind, values, &what);
            }
            return;
        }
        let mut seen: Vec<Expr> = arguments.iter().flat_map(|argument| scope.operand(argument).0).collect();
        let kinds: Vec<Kind> = match (&cells[..], data.result) {
            ([], Some(ty)) => {
                let leaves = super::memory::leaves(scope.types(), ty).into_iter();
                leaves.flat_map(|leaf| std::iter::repeat_n(leaf.kind, leaf.count as usize)).collect()
            }
            (cells, _) => cells.iter().map(|(_, kind)| kind.clone()).collect(),
        };
        if kinds.len() > 1 {
            let message = format!("{what} is more than one number, which cannot be compared");
            scope.plan.refuse(self.location, message, "the built-in engine does it: leave out `--engine spin`");
            return;
        }
        // The result may go where an argument is.
        let result = Expr::tight(SWAP);
        for kind in kinds {
            self.any(&result, &kind, values, &what);
            seen.push(result.clone());
        }
        let seen = scope.plan.observe(Observable::Call(function), &numbers_of(&seen));
        seen.into_iter().for_each(|text| self.line(text));
        for (cell, _) in cells {
            self.assign(&cell, &result);
        }
        if data.result.is_some() {
            self.line(format!("{SWAP} = 0;"));
        }
    }

    /// Any of these values.
    pub(super) fn any(&mut self, cell: &Expr, kind: &Kind, values: Values, what: &str) {
        let (min, max) = match (kind, values) {
            (Kind::Int(int), Values::Range(from, to)) => {
                (from.max(IntType::min(*int)), (to - 1).min(IntType::max(*int)))
            }
            (Kind::Bool, Values::All) => (0, 1),
            (Kind::Bool, Values::Range(from, to)) => (from.max(0), (to - 1).min(1)),
            (Kind::Int(int), Values::All) => (IntType::min(*int), IntType::max(*int)),
            (Kind::Pid(processes), _) => {
                let program = self.scope.plan.program;
                let first = processes.first().map_or(0, |process| program.first_instance(*process));
                let last = processes.last().map_or(0, |process| {
                    program.first_instance(*process) + program.processes[process.0 as usize].replicas - 1
                });
                (i128::from(first), i128::from(last))
            }
            (Kind::Reference(_) | Kind::Tag | Kind::Length(_), _) => {
                let message = format!("{what} is not a number, which the model cannot choose");
                self.scope.plan.refuse(self.location, message, "write an `env` process that sends what you want tried");
                return;
            }
            (_, Values::One) => (0, 0),
        };
        if max - min > 1 << 12 {
            let message = format!("{what} can have too many values to try them all");
            self.scope.plan.refuse(
                self.location,
                message,
                "say which in a model, as in `abstract range readRegister 0..4;`",
            );
        } else if min == max {
            self.assign(cell, &Expr::number(min));
        } else if max - min < 4 {
            self.line("if");
            for value in min..=max {
                self.line(format!(":: {} = {};", cell.text, Expr::number(value).text));
            }
            self.line("fi;");
        } else {
            self.line(format!("{} = {};", cell.text, Expr::number(min).text));
            self.line("do");
            let more = format!(":: {0} < {1} -> {0} = {0} + 1;", cell.text, Expr::number(max).text);
            self.line(more);
            self.line(":: break");
            self.line("od;");
        }
    }

    fn allocate(&mut self, pool: PoolId, target: &Expr) {
        let plan = self.scope.plan;
        let name = &plan.pools[pool.0 as usize];
        let condition = Expr::binary(&Expr::tight(format!("{name}_free")), ">", &Expr::tight("0"));
        self.demand(&[Demand { condition, fault: Fault::Pool }]);
        self.line(format!("{name}_free = {name}_free - 1;"));
        self.line(format!("{} = 0;", target.text));
        self.line("do");
        self.line(format!(":: {} != 0 -> {1} = {1} + 1;", plan.count(pool, target).text, target.text));
        self.line(":: else -> break");
        self.line("od;");
        self.line(format!("{} = 1;", plan.count(pool, target).text));
    }

    fn change_counts(&mut self, operand: &Operand, change: Change) {
        let scope = self.scope;
        let (cells, ty, demands) = scope.operand(operand);
        self.demand(&demands);
        self.counts(&cells, ty, change);
    }

    /// Changes the counts of the objects that a value, given as its numbers, refers to.
    pub(super) fn counts(&mut self, cells: &[Expr], ty: TypeId, change: Change) {
        let scope = self.scope;
        let types = scope.types();
        if !super::plan::refers(types, ty) {
            return;
        }
        match types.get(ty) {
            Type::Boxed(pool) => self.count_object(*pool, &cells[0], ty, change),
            Type::Array { length, element } => {
                // Leaf by leaf, each holds its number of every element.
                let leaves = super::memory::leaves(types, *element);
                for at in 0..*length as usize {
                    let mut own = Vec::new();
                    let mut start = 0;
                    for leaf in &leaves {
                        let count = leaf.count as usize;
                        own.extend_from_slice(&cells[start + at * count..start + (at + 1) * count]);
                        start += count * *length as usize;
                    }
                    self.counts(&own, *element, change);
                }
            }
            Type::Record(id) | Type::Union(id) => {
                let union = matches!(types.get(ty), Type::Union(_));
                let mut start = usize::from(union);
                for (number, (_, part)) in types.aggregate(*id).parts.iter().enumerate() {
                    let Some(part) = *part else { continue };
                    let count: usize = super::memory::leaves(types, part).iter().map(|leaf| leaf.count as usize).sum();
                    let own = &cells[start..start + count];
                    start += count;
                    if !super::plan::refers(types, part) {
                        continue;
                    }
                    if union {
                        self.line("if");
                        self.line(format!(":: {} == {number} ->", cells[0].operand()));
                        self.lines.indent();
                        self.counts(own, part, change);
                        self.lines.dedent();
                        self.line(":: else");
                        self.line("fi;");
                    } else {
                        self.counts(own, part, change);
                    }
                }
            }
            Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => {}
        }
    }

    fn count_object(&mut self, pool: PoolId, object: &Expr, ty: TypeId, change: Change) {
        let plan = self.scope.plan;
        let count = plan.count(pool, object).text;
        let held = Demand { condition: Expr::loose(format!("{count} > 0")), fault: Fault::Memory };
        match change {
            Change::Retain => {
                self.demand(&[held]);
                self.line(format!("{count} = {count} + 1;"));
            }
            Change::Release => {
                self.demand(&[held]);
                self.line(format!("{count} = {count} - 1;"));
                self.line("if");
                self.line(format!(":: {count} == 0 ->"));
                self.lines.indent();
                let mut content = self.scope.content(object, ty);
                content.demands.clear();
                self.counts(&super::scope::cells(&content), content.ty, Change::Release);
                self.zero(&content);
                let name = &plan.pools[pool.0 as usize];
                self.line(format!("{name}_free = {name}_free + 1;"));
                self.lines.dedent();
                self.line(":: else");
                self.line("fi;");
            }
        }
    }
}

/// The change of an object's reference count.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Retain,
    Release,
}

/// The treatment of the bytes behind those that a copy writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TailFill {
    /// They become 0.
    Zero,
    /// They keep their values.
    Keep,
    /// There are none: the copy is appended.
    Append,
}

/// Bits of a number that lie in one byte.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// From the offset.
    byte: u32,
    /// The lowest of the bits in the byte, how many, and where they belong in the number.
    low: u32,
    width: u32,
    up: u32,
}

fn pieces(bits: u32, order: ByteOrder) -> Vec<Piece> {
    let bytes = bits / 8;
    (0..bytes)
        .map(|byte| {
            let place = match order {
                ByteOrder::Big => bytes - 1 - byte,
                ByteOrder::Little => byte,
            };
            Piece { byte, low: 0, width: 8, up: place * 8 }
        })
        .collect()
}

fn field_pieces(field: BitField) -> Vec<Piece> {
    let first = field.offset_bits / 8;
    if field.order == ByteOrder::Little {
        return pieces(field.width_bits, ByteOrder::Little)
            .into_iter()
            .map(|piece| Piece { byte: first + piece.byte, ..piece })
            .collect();
    }
    let end = field.offset_bits + field.width_bits;
    (first..end.div_ceil(8))
        .map(|byte| {
            // Bits are counted from the most significant one.
            let (from, to) = (field.offset_bits.max(byte * 8), end.min(byte * 8 + 8));
            Piece { byte, low: byte * 8 + 8 - to, width: to - from, up: end - to }
        })
        .collect()
}

fn gather(spot: &Spot, offset: &Expr, pieces: &[Piece]) -> Expr {
    let number = |value: u32| Expr::number(i128::from(value));
    let bits = pieces.iter().map(|piece| {
        let mut bits = byte_at(spot, offset, piece.byte);
        if piece.low > 0 {
            bits = Expr::binary(&bits, ">>", &number(piece.low));
        }
        if piece.low + piece.width < 8 {
            bits = Expr::binary(&bits, "&", &number((1 << piece.width) - 1));
        }
        if piece.up > 0 { Expr::binary(&bits, "<<", &number(piece.up)) } else { bits }
    });
    bits.reduce(|all, bits| Expr::binary(&all, "|", &bits)).unwrap_or_else(|| Expr::tight("0"))
}

fn byte_of(spot: &Spot, at: &Expr) -> Expr {
    spot.cell(1, if spot.leaves[1].count == 1 { None } else { Some(at) })
}

fn byte_at(spot: &Spot, offset: &Expr, byte: u32) -> Expr {
    let at = match (offset.text.parse::<u32>(), byte) {
        (Ok(offset), byte) => Expr::number(i128::from(offset) + i128::from(byte)),
        (Err(_), 0) => offset.clone(),
        (Err(_), byte) => Expr::binary(offset, "+", &Expr::number(i128::from(byte))),
    };
    byte_of(spot, &at)
}

/// The kind of every number of a place.
fn kinds(spot: &Spot) -> impl Iterator<Item = Kind> {
    spot.leaves.iter().flat_map(|leaf| std::iter::repeat_n(leaf.kind.clone(), leaf.count as usize))
}
