//! One body's values and places as Promela: names of variables, expressions of values, cells of places. Knows no
//! statements and no channels.

pub(super) mod symbolic;

use super::constants::{ConstantPlan, Form};
use super::expression::{self, Demand, Expr};
use super::memory::{self, Kind, Leaf};
use super::names::Names;
use super::plan::Plan;
use super::value_usage::{Placement, Set, Unit, Usage};
use quaject_esp_ir::ir::*;
use quaject_esp_ir::typing::operand_type;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The names of a body's variables and slots in the model.
#[derive(Clone)]
pub(super) struct Scope<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) body: &'a Body,
    pub(super) usage: Rc<Usage>,
    /// By the value a variable is named after.
    pub(super) variables: BTreeMap<Value, String>,
    pub(super) slots: Vec<String>,
    /// The number of the executing instance.
    pub(super) own: Expr,
    /// Slots that alias those of another instance.
    pub(super) kept: BTreeSet<SlotId>,
}

/// The variable of a leaf.
#[derive(Clone, Debug)]
struct Variable {
    name: String,
    /// The size of the array, 1 for none.
    count: u32,
    form: Form,
}

/// A place in Promela memory: consecutive leaves, and within their arrays one of several parts of equal size.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// Per leaf: its variable.
    names: Vec<Variable>,
    /// Leaves of the place's own type.
    pub(super) leaves: Vec<Leaf>,
    /// The index of the part; none if the place is the complete arrays.
    prefix: Option<Expr>,
    pub(super) ty: TypeId,
    /// The conditions under which the access does not fault.
    pub(super) demands: Vec<Demand>,
}

impl Spot {
    /// A slot, or the memory of a pool with the object's index.
    pub(super) fn of_memory(types: &TypeTable, name: &str, ty: TypeId, object: Option<(Expr, u32)>) -> Spot {
        let leaves = memory::leaves(types, ty);
        let times = object.as_ref().map_or(1, |(_, capacity)| *capacity);
        let variable = |leaf: &Leaf| Variable {
            name: format!("{name}{}", leaf.suffix),
            count: leaf.count.saturating_mul(times),
            form: Form::Whole,
        };
        let names = leaves.iter().map(variable);
        Spot { names: names.collect(), leaves, prefix: object.map(|(index, _)| index), ty, demands: Vec::new() }
    }

    /// A constant of the program.
    fn of_constant(types: &TypeTable, constant: &ConstantPlan, ty: TypeId) -> Spot {
        let mut spot = Spot::of_memory(types, &constant.name, ty, None);
        for (variable, leaf) in spot.names.iter_mut().zip(&constant.leaves) {
            variable.form = Form::of(leaf);
        }
        spot
    }

    /// One number of a leaf, at this position in it.
    pub(super) fn cell(&self, leaf: usize, position: Option<&Expr>) -> Expr {
        let Variable { name, count: total, form } = &self.names[leaf];
        let count = self.leaves[leaf].count;
        if *total == 1 {
            return form.read(name, "");
        }
        let index = match (&self.prefix, position) {
            (None, None) => Expr::tight("0"),
            (None, Some(position)) => position.clone(),
            (Some(prefix), None) if count == 1 => prefix.clone(),
            (Some(prefix), Some(_)) if count == 1 => prefix.clone(),
            (Some(prefix), position) => {
                let start = Expr::binary(prefix, "*", &Expr::number(i128::from(count)));
                position.map_or(start.clone(), |position| Expr::binary(&start, "+", position))
            }
        };
        form.read(name, &format!("[{}]", index.text))
    }

    /// A place that is one number.
    pub(super) fn scalar(&self) -> Expr {
        self.cell(0, None)
    }

    /// A record's field or a union's payload.
    pub(super) fn part(&self, types: &TypeTable, number: u32) -> Option<Spot> {
        let (first, ty) = memory::part(types, self.ty, number)?;
        let leaves = memory::leaves(types, ty);
        let names = self.names[first..first + leaves.len()].to_vec();
        Some(Spot { names, leaves, prefix: self.prefix.clone(), ty, demands: self.demands.clone() })
    }

    /// An element of an array, or a byte.
    pub(super) fn element(&self, types: &TypeTable, index: &Expr, demand_index: Option<&Kind>) -> Option<Spot> {
        let unsigned = matches!(demand_index, Some(Kind::Int(IntType::U8 | IntType::U16)));
        let (length, limit, skip, ty) = match types.get(self.ty) {
            Type::Array { length, element } => (*length, Expr::number(i128::from(*length)), 0, *element),
            Type::Bytes { bound } => (*bound, self.cell(0, None), 1, TypeTable::U8),
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Pid(_)
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => {
                return None;
            }
        };
        let mut demands = self.demands.clone();
        let constant = index.text.parse::<u32>().ok();
        if demand_index.is_some() && (skip == 1 || constant.is_none_or(|index| index >= length)) {
            let min = (!unsigned && constant.is_none()).then(|| Expr::binary(index, ">=", &Expr::tight("0")));
            let condition = Expr::and(min, Expr::binary(index, "<", &limit));
            demands.push(Demand { condition, fault: Fault::Bounds });
        }
        let prefix = match &self.prefix {
            Some(prefix) if length > 1 => {
                Expr::binary(&Expr::binary(prefix, "*", &Expr::number(i128::from(length))), "+", index)
            }
            Some(prefix) => prefix.clone(),
            None => index.clone(),
        };
        let leaves = memory::leaves(types, ty);
        let names = self.names[skip..skip + leaves.len()].to_vec();
        Some(Spot { names, leaves, prefix: Some(prefix), ty, demands })
    }
}

/// Names for a body's variables and slots.
pub(super) fn scope<'a>(plan: &'a Plan<'a>, body: &'a Body, prefix: &str, own: Expr, names: &mut Names) -> Scope<'a> {
    let (usage, variables, slots) = names_of(plan, body, prefix, names);
    Scope { plan, body, usage, variables, slots, own, kept: BTreeSet::new() }
}

/// Claims names for a body's variables and slots; returns them with the placement of its values.
pub(super) fn names_of(
    plan: &Plan<'_>,
    body: &Body,
    prefix: &str,
    names: &mut Names,
) -> (Rc<Usage>, BTreeMap<Value, String>, Vec<String>) {
    let usage = Rc::new(Usage::new(body, &|function| symbolic::can_call(plan, function)));
    let mut variables = BTreeMap::new();
    for value in usage.variables() {
        let wanted = body.values[value.0 as usize].name.as_deref().unwrap_or("t");
        variables.insert(value, names.claim(&format!("{prefix}{wanted}")));
    }
    let mut slots = Vec::new();
    for slot in &body.slots {
        let name = names.claim(&format!("{prefix}{}", slot.name.as_deref().unwrap_or("m")));
        for leaf in memory::leaves(&plan.program.types, slot.ty) {
            names.reserve(&format!("{name}{}", leaf.suffix));
        }
        slots.push(name);
    }
    (usage, variables, slots)
}

/// The variables of a body, by name, and their declarations.
pub(super) fn declarations(scope: &Scope<'_>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (value, name) in &scope.variables {
        all.push((name.clone(), format!("{} {name};", scope.kind(*value).declared())));
    }
    let slots = scope.body.slots.iter().zip(&scope.slots).enumerate();
    for (_, (slot, name)) in slots.filter(|(number, _)| !scope.kept.contains(&SlotId(*number as u32))) {
        for leaf in memory::leaves(scope.types(), slot.ty) {
            let name = format!("{name}{}", leaf.suffix);
            let text = declaration(&leaf.kind, &name, leaf.count);
            all.push((name, text));
        }
    }
    all
}

/// A variable's declaration.
pub(super) fn declaration(kind: &memory::Kind, name: &str, count: u32) -> String {
    match count {
        // Spin refuses arrays without elements; the guards of an access fail before it.
        0 => format!("{} {name}[1];", kind.declared()),
        1 => format!("{} {name};", kind.declared()),
        _ => format!("{} {name}[{count}];", kind.declared()),
    }
}

/// Everything that a body's code may leave behind.
pub(super) fn everything(scope: &Scope<'_>) -> Set {
    let variables = scope.usage.variables().into_iter().map(Unit::Variable);
    variables.chain((0..scope.body.slots.len() as u32).map(|slot| Unit::Slot(SlotId(slot)))).collect()
}

impl<'a> Plan<'a> {
    /// A member's scope, as in its own code.
    pub(super) fn member_scope(&'a self, process: ProcessId) -> Option<Scope<'a>> {
        let captured = self.paths.captured.get(&process)?;
        Some(Scope {
            plan: self,
            body: &self.program.processes[process.0 as usize].body,
            usage: Rc::clone(&captured.usage),
            variables: captured.variables.clone(),
            slots: captured.slots.clone(),
            own: Expr::number(i128::from(captured.instance)),
            kept: BTreeSet::new(),
        })
    }
}

impl<'a> Scope<'a> {
    pub(super) fn types(&self) -> &'a TypeTable {
        &self.plan.program.types
    }

    pub(super) fn kind(&self, value: Value) -> Kind {
        memory::kind(self.types(), self.body.values[value.0 as usize].ty).unwrap_or(Kind::Bool)
    }

    /// The variable that holds a value, if it is in one.
    pub(super) fn variable(&self, value: Value) -> Option<&str> {
        match self.usage.placement(value) {
            Placement::Variable(value) => self.variables.get(&value).map(String::as_str),
            Placement::Inline(..) => None,
        }
    }

    /// A value, as its uses write it.
    pub(super) fn value(&self, value: Value) -> Expr {
        match self.usage.placement(value) {
            Placement::Variable(variable) => {
                Expr::tight(self.variables.get(&variable).map_or("unnamed", |name| name.as_str()))
            }
            Placement::Inline(block, position) => {
                let instruction = &self.body.blocks[block.0 as usize].instructions[position];
                self.refuse_long_duration(value, instruction);
                self.compute(value, &instruction.op).0
            }
        }
    }

    /// A constant duration is used. Promela computes in 32 bits.
    fn refuse_long_duration(&self, value: Value, instruction: &Instruction) {
        if let (Op::Constant(number), Kind::Int(IntType::Duration)) = (&instruction.op, self.kind(value))
            && i32::try_from(*number).is_err()
        {
            let message = "Promela has no numbers of 64 bits, and this duration is longer than 2^31 ns";
            self.plan.refuse(instruction.location, message, "verify with the built-in engine");
        }
    }

    /// What an instruction computes and what must hold for that; nothing to compute for one that is a statement.
    pub(super) fn compute(&self, result: Value, op: &Op) -> (Expr, Vec<Demand>) {
        let none = |expr| (expr, Vec::new());
        let checks = self.plan.checks;
        match op {
            Op::Constant(value) => none(match self.kind(result) {
                Kind::Bool => Expr::tight(if *value == 0 { "false" } else { "true" }),
                Kind::Int(_) | Kind::Pid(_) | Kind::Reference(_) | Kind::Tag | Kind::Length(_) => Expr::number(*value),
            }),
            Op::Unary(op, a) => {
                let (expr, demand) = expression::unary(*op, &self.kind(*a), &self.value(*a), checks);
                (expr, demand.into_iter().collect())
            }
            Op::Binary(op, a, b) => {
                let (kind, count) = (self.kind(*a), self.kind(*b));
                expression::binary(*op, &kind, &count, &self.value(*a), &self.value(*b), checks)
            }
            Op::Convert(a) => none(expression::convert(&self.kind(*a), &self.kind(result), self.value(*a))),
            Op::Load(place) => {
                let spot = self.place(place);
                (spot.scalar(), spot.demands)
            }
            Op::Tag(place) | Op::Length(place) => {
                let spot = self.place(place);
                (spot.cell(0, None), spot.demands)
            }
            Op::OwnId => none(self.own.clone()),
            Op::InstanceOf(process, replica) => {
                let first = self.plan.program.first_instance(*process);
                let replicas = self.plan.program.processes[process.0 as usize].replicas;
                let replica = self.value(*replica);
                let min = Expr::binary(&replica, ">=", &Expr::tight("0"));
                let max = Expr::binary(&replica, "<", &Expr::number(i128::from(replicas)));
                let demand = Demand { condition: Expr::and(Some(min), max), fault: Fault::Range };
                (Expr::binary(&Expr::number(i128::from(first)), "+", &replica), vec![demand])
            }
            Op::ReplicaNumber(pid) => none(self.replica_number(*pid)),
            Op::FreeObjects(pool) => none(Expr::tight(format!("{}_free", self.plan.pools[pool.0 as usize]))),
            Op::IsUnique(object) => none(Expr::binary(&self.count(*object), "==", &Expr::tight("1"))),
            Op::CallFunction { function, arguments, .. } => {
                let arguments = arguments.iter().filter_map(|argument| match argument {
                    Operand::Value(value) => Some(self.value(*value)),
                    Operand::Place(_) => None,
                });
                match symbolic::call(self.plan, *function, arguments.collect()) {
                    Some((expr, demands)) => (expr, demands),
                    None => none(Expr::tight("0")),
                }
            }
            Op::Deadline { .. }
            | Op::LoadNumber { .. }
            | Op::LoadBits { .. }
            | Op::Equal(..)
            | Op::CallExtern { .. }
            | Op::Allocate(_)
            | Op::Store(..)
            | Op::Copy { .. }
            | Op::SetBytes(..)
            | Op::Fill(..)
            | Op::SetTag(..)
            | Op::SetLength(..)
            | Op::CopySlice { .. }
            | Op::StoreSlice { .. }
            | Op::Append { .. }
            | Op::StoreNumber { .. }
            | Op::StoreBits { .. }
            | Op::Retain(_)
            | Op::Release(_)
            | Op::Mark(_)
            | Op::Predicate(..) => none(Expr::tight("0")),
        }
    }

    /// The count of the object a value refers to.
    pub(super) fn count(&self, object: Value) -> Expr {
        match self.kind(object) {
            Kind::Reference(pool) => self.plan.count(pool, &self.value(object)),
            Kind::Int(_) | Kind::Bool | Kind::Pid(_) | Kind::Tag | Kind::Length(_) => Expr::tight("1"),
        }
    }

    fn replica_number(&self, pid: Value) -> Expr {
        let Kind::Pid(processes) = self.kind(pid) else { return Expr::tight("0") };
        let value = self.value(pid);
        let program = self.plan.program;
        // Instances are numbered process by process: the last process that begins at or before it is the pid's.
        processes.iter().fold(Expr::tight("0"), |otherwise, process| {
            let first = program.first_instance(*process);
            let number = if program.processes[process.0 as usize].replicas == 1 {
                Expr::tight("0")
            } else if first == 0 {
                value.clone()
            } else {
                Expr::binary(&value, "-", &Expr::number(i128::from(first)))
            };
            if processes.first() == Some(process) || number == otherwise {
                return number;
            }
            Expr::choose(&Expr::binary(&value, ">=", &Expr::number(i128::from(first))), &number, &otherwise)
        })
    }

    /// A place in memory.
    pub(super) fn place(&self, place: &Place) -> Spot {
        let types = self.types();
        let mut spot = match place.base {
            Base::Slot(slot) => {
                Spot::of_memory(types, &self.slots[slot.0 as usize], self.body.slots[slot.0 as usize].ty, None)
            }
            Base::Constant(id, ty) => Spot::of_constant(types, &self.plan.constants[id.0 as usize], ty),
            Base::Object(object) => self.content(&self.value(object), self.body.values[object.0 as usize].ty),
        };
        for step in &place.path {
            spot = match step {
                Projection::Field(number) | Projection::Payload(number) => spot.part(types, *number),
                Projection::Element(index) | Projection::Inside(index) => {
                    spot.element(types, &self.value(*index), Some(&self.kind(*index)))
                }
            }
            .expect("the verifier types every place");
        }
        spot
    }

    /// The content of a boxed object.
    pub(super) fn content(&self, object: &Expr, ty: TypeId) -> Spot {
        let Some(Kind::Reference(pool)) = memory::kind(self.types(), ty) else {
            unreachable!("the verifier types every place")
        };
        let data = self.types().pool(pool);
        let name = &self.plan.pools[pool.0 as usize];
        let mut spot = Spot::of_memory(self.types(), name, data.content, Some((object.clone(), data.capacity)));
        if self.plan.program.memory == MemoryMode::Manual {
            let condition = Expr::binary(&self.plan.count(pool, object), ">", &Expr::tight("0"));
            spot.demands.push(Demand { condition, fault: Fault::Memory });
        }
        spot
    }

    /// A value of any type as its leaves: a scalar's one number, or a place's.
    pub(super) fn operand(&self, operand: &Operand) -> (Vec<Expr>, TypeId, Vec<Demand>) {
        let ty = operand_type(self.types(), self.body, operand).expect("the verifier types every operand");
        match operand {
            Operand::Value(value) => (vec![self.value(*value)], ty, Vec::new()),
            Operand::Place(place) => {
                let spot = self.place(place);
                (cells(&spot), ty, spot.demands)
            }
        }
    }
}

/// Every number of a place, in order.
pub(super) fn cells(spot: &Spot) -> Vec<Expr> {
    let mut cells = Vec::new();
    for (index, leaf) in spot.leaves.iter().enumerate() {
        match leaf.count {
            1 => cells.push(spot.cell(index, None)),
            count => cells.extend((0..count).map(|at| spot.cell(index, Some(&Expr::number(i128::from(at)))))),
        }
    }
    cells
}
