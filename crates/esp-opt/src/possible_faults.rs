//! Possible faults: the instructions that are not proved to execute without a fault, whatever the process receives.
//! Each is examined as if those before it did not fault, so that a body without any never faults. An analysis: it
//! changes no program.

use crate::places::bytes_bound;
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::facts::{self, Fact};
use quaject_esp_ir::inequalities::{Inequalities, Side};
use quaject_esp_ir::intervals::{Intervals, intervals_by_block};
use quaject_esp_ir::ir::{
    BinaryOp, Body, Fault, FnId, Function, Guard, Location, Op, Place, ProcessId, Program, Projection, Terminator,
    Type, UnaryOp, Value,
};
use quaject_esp_ir::length_ssa::LengthSsa;
use quaject_esp_ir::typing::place_type;
use quaject_esp_ir::visit::op_places;
use std::cell::OnceCell;

/// What is not proved of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultCause {
    /// An index, or a number at a byte offset, is in bounds.
    Index,
    /// A slice is in bounds.
    Slice,
    /// What is written to a slice has its length.
    SliceLength,
    /// A length is within the bound of its type.
    Length,
    /// A divisor is not 0.
    Divisor,
    /// The result of arithmetic fits in its type.
    Overflow,
    /// A replica number is that of an instance.
    Replica,
    /// A pool has a free object.
    Pool,
    /// An extern function exists.
    Extern,
    /// A function that is called does not fault.
    Function,
    /// The guard of some branch is true.
    Guards,
    /// An assertion holds.
    Assertion,
    /// A statement that always faults is not executed.
    Statement,
}

/// An instruction or terminator that may fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PossibleFault {
    /// What is not proved of it.
    pub cause: FaultCause,
    /// Its location.
    pub location: Location,
}

/// The possible faults of a process, in the order of its blocks. With `checked`, overflow is a fault.
pub fn possible_faults(program: &Program, process: ProcessId, checked: bool) -> Vec<PossibleFault> {
    let functions = faulting_functions(program, checked);
    let function_faults = |function: FnId| functions[function.0 as usize];
    let mut found = Vec::new();
    let body = &program.processes[process.0 as usize].body;
    Examination::with(program, body, checked, &function_faults, &mut |examination| {
        found = examination.faults().collect()
    });
    found
}

/// The first possible fault of a body, by itself or in a function for which `function_faults` holds.
pub(crate) fn first_possible_fault(
    program: &Program,
    body: &Body,
    checked: bool,
    function_faults: &dyn Fn(FnId) -> bool,
) -> Option<PossibleFault> {
    let mut first = None;
    Examination::with(program, body, checked, function_faults, &mut |examination| first = examination.faults().next());
    first
}

/// Per function, whether it or a function that it calls may fault. Each is analysed once.
pub(crate) fn faulting_functions(program: &Program, checked: bool) -> Vec<bool> {
    let by_itself = |function: &Function| first_possible_fault(program, &function.body, checked, &|_| false).is_some();
    let mut may: Vec<bool> = program.functions.iter().map(by_itself).collect();
    let mut callers = vec![Vec::new(); may.len()];
    for (caller, function) in program.functions.iter().enumerate() {
        for instruction in function.body.blocks.iter().flat_map(|block| &block.instructions) {
            if let Op::CallFunction { function: callee, .. } = instruction.op {
                callers[callee.0 as usize].push(caller);
            }
        }
    }
    let mut worklist: Vec<usize> = (0..may.len()).filter(|function| may[*function]).collect();
    while let Some(function) = worklist.pop() {
        for caller in &callers[function] {
            if !may[*caller] {
                may[*caller] = true;
                worklist.push(*caller);
            }
        }
    }
    may
}

/// The analyses of a body from which proofs follow.
struct Proofs<'a> {
    lengths: &'a LengthSsa,
    inequalities: Inequalities<'a>,
    intervals: &'a Intervals,
}

/// The examination of one body.
struct Examination<'a> {
    program: &'a Program,
    body: &'a Body,
    checked: bool,
    function_faults: &'a dyn Fn(FnId) -> bool,
    /// Computed only if an instruction depends on them, as they take longest.
    proofs: &'a dyn Fn() -> &'a Proofs<'a>,
}

/// An instruction of the body.
#[derive(Clone, Copy)]
struct At {
    block: usize,
    position: usize,
}

impl<'a> Examination<'a> {
    /// Calls `visit` with the examination of a body.
    fn with(
        program: &Program,
        body: &Body,
        checked: bool,
        function_faults: &dyn Fn(FnId) -> bool,
        visit: &mut dyn FnMut(&Examination<'_>),
    ) {
        let (dominators, lengths, intervals, proofs) =
            (OnceCell::new(), OnceCell::new(), OnceCell::new(), OnceCell::new());
        let compute = || {
            let types = &program.types;
            let dominators = dominators.get_or_init(|| Dominators::new(body));
            let lengths = lengths.get_or_init(|| LengthSsa::new(body, types, &program.constants, dominators));
            let intervals = intervals.get_or_init(|| intervals_by_block(&lengths.body, types, checked));
            let inequalities = Inequalities::new(&lengths.body, types, intervals, dominators);
            Proofs { lengths, inequalities, intervals }
        };
        let proofs = || proofs.get_or_init(compute);
        visit(&Examination { program, body, checked, function_faults, proofs: &proofs });
    }

    fn faults(&self) -> impl Iterator<Item = PossibleFault> + '_ {
        self.body.blocks.iter().enumerate().flat_map(move |(block, data)| {
            let instructions = data.instructions.iter().enumerate().filter_map(move |(position, instruction)| {
                let cause = self.instruction(At { block, position }, &instruction.op, instruction.result)?;
                Some(PossibleFault { cause, location: instruction.location })
            });
            let terminator = std::iter::once_with(move || {
                let cause = self.terminator(block, &data.terminator)?;
                Some(PossibleFault { cause, location: data.location })
            });
            instructions.chain(terminator.flatten())
        })
    }

    fn terminator(&self, block: usize, terminator: &Terminator) -> Option<FaultCause> {
        match terminator {
            Terminator::Fault(fault) => {
                let cause = if *fault == Fault::Assert { FaultCause::Assertion } else { FaultCause::Statement };
                (self.proofs)().intervals.is_reachable(block).then_some(cause)
            }
            Terminator::Wait(wait) => {
                let may_close =
                    wait.otherwise.is_none() && wait.branches.iter().all(|branch| branch.guard != Guard::Open);
                may_close.then_some(FaultCause::Guards)
            }
            _ => None,
        }
    }

    /// Whether an instruction may fault, and why.
    fn instruction(&self, at: At, op: &Op, result: Option<Value>) -> Option<FaultCause> {
        self.indices(at, op).or_else(|| self.operation(at, op, result))
    }

    /// The indices in the paths of an instruction.
    fn indices(&self, at: At, op: &Op) -> Option<FaultCause> {
        let mut is_outside = false;
        op_places(op, &mut |place| {
            for (number, step) in place.path.iter().enumerate() {
                let Projection::Element(index) = step else { continue };
                let holder = Place { base: place.base, path: place.path[..number].to_vec() };
                is_outside = is_outside || !self.is_inside(at, &holder, *index, 1);
            }
        });
        is_outside.then_some(FaultCause::Index)
    }

    /// Whether an instruction may fault, its indices apart.
    fn operation(&self, at: At, op: &Op, result: Option<Value>) -> Option<FaultCause> {
        let unless = |is_proved: bool, cause: FaultCause| (!is_proved).then_some(cause);
        let bound = |place: &Place| i128::from(bytes_bound(&self.program.types, self.body, place));
        match op {
            Op::Unary(UnaryOp::Negate, value) => {
                let fact = || (self.proofs)().inequalities.fact(at.block, self.value(*value));
                unless(!self.checked || !fact().admits(self.least_of_type(*value)), FaultCause::Overflow)
            }
            Op::Binary(BinaryOp::Divide | BinaryOp::Remainder, _, divisor) => {
                unless(self.is_divisor(at, *divisor), FaultCause::Divisor)
            }
            Op::Binary(op, left, right) => unless(
                !op.may_fault(self.checked) || self.is_in_range(at, *op, (*left, *right), result),
                FaultCause::Overflow,
            ),
            Op::InstanceOf(process, replica) => {
                let last = i128::from(self.program.processes[process.0 as usize].replicas) - 1;
                unless(self.is_between_0_and(at, *replica, Side::Constant(last)), FaultCause::Replica)
            }
            Op::CallFunction { function, .. } => unless(!(self.function_faults)(*function), FaultCause::Function),
            Op::Copy { to, from } => {
                let is_short = bound(from) <= bound(to) || self.is_length_within(at, from, bound(to));
                unless(is_short, FaultCause::Length)
            }
            Op::SetLength(place, length) => {
                unless(self.is_between_0_and(at, *length, Side::Constant(bound(place))), FaultCause::Length)
            }
            Op::CopySlice { to, from, start, end } => {
                let is_short = || bound(from) <= bound(to) || self.is_computed_within(at, bound(to));
                unless(self.is_slice(at, from, *start, *end), FaultCause::Slice)
                    .or_else(|| unless(is_short(), FaultCause::Length))
            }
            Op::StoreSlice { to, start, end, from } => unless(self.is_slice(at, to, *start, *end), FaultCause::Slice)
                .or_else(|| unless(self.has_computed_length(at, from), FaultCause::SliceLength)),
            Op::Append { to, from: _ } => unless(self.is_computed_within(at, bound(to)), FaultCause::Length),
            Op::LoadNumber { from: bytes, offset, bits, .. } | Op::StoreNumber { to: bytes, offset, bits, .. } => {
                unless(self.is_inside(at, bytes, *offset, i128::from(*bits / 8)), FaultCause::Index)
            }
            Op::LoadBits { from: bytes, offset, field } | Op::StoreBits { to: bytes, offset, field, .. } => {
                unless(self.is_inside(at, bytes, *offset, i128::from(field.layout_bytes)), FaultCause::Index)
            }
            Op::CallExtern { .. } => Some(FaultCause::Extern),
            Op::Allocate(_) => Some(FaultCause::Pool),
            Op::Constant(_)
            | Op::Unary(UnaryOp::Not | UnaryOp::Complement, _)
            | Op::Convert(_)
            | Op::Load(_)
            | Op::Store(..)
            | Op::SetBytes(..)
            | Op::Fill(..)
            | Op::SetTag(..)
            | Op::Tag(_)
            | Op::Length(_)
            | Op::Equal(..)
            | Op::OwnId
            | Op::ReplicaNumber(_)
            | Op::FreeObjects(_)
            | Op::IsUnique(_)
            | Op::Retain(_)
            | Op::Release(_)
            | Op::Deadline { .. }
            | Op::Mark(_)
            | Op::Predicate(..) => None,
        }
    }

    fn value(&self, value: Value) -> Value {
        (self.proofs)().lengths.value(value)
    }

    fn side(&self, value: Value) -> Side {
        Side::Value(self.value(value))
    }

    fn is_bounded_by(&self, at: At, a: Side, b: Side, offset: i128) -> bool {
        (self.proofs)().inequalities.is_bounded_by(at.block, a, b, offset)
    }

    /// Whether no dividend faults with this divisor: it is not 0, nor -1 if overflow is a fault.
    fn is_divisor(&self, at: At, divisor: Value) -> bool {
        let fact = || (self.proofs)().inequalities.fact(at.block, self.value(divisor));
        let may_fault = |fact: &Fact| fact.admits(0) || self.checked && fact.admits(-1);
        self.is_bounded_by(at, Side::Constant(1), self.side(divisor), 0) || !may_fault(&fact())
    }

    fn is_between_0_and(&self, at: At, value: Value, last: Side) -> bool {
        let value = self.side(value);
        self.is_bounded_by(at, value, last, 0) && self.is_bounded_by(at, Side::Constant(0), value, 0)
    }

    /// The length of the bytes or array at a place before an instruction.
    fn length(&self, at: At, place: &Place) -> Option<Side> {
        match place_type(&self.program.types, self.body, place).map(|ty| self.program.types.get(ty)) {
            Some(Type::Array { length, .. }) => Some(Side::Constant(i128::from(*length))),
            Some(_) | None => (self.proofs)().lengths.length(at.block, at.position, place).map(Side::Value),
        }
    }

    /// Whether so many bytes or elements from an index on are inside the bytes or array at a place.
    fn is_inside(&self, at: At, place: &Place, index: Value, count: i128) -> bool {
        let Some(length) = self.length(at, place) else { return false };
        let index = self.side(index);
        self.is_bounded_by(at, index, length, -count) && self.is_bounded_by(at, Side::Constant(0), index, 0)
    }

    fn is_length_within(&self, at: At, place: &Place, bound: i128) -> bool {
        self.length(at, place).is_some_and(|length| self.is_bounded_by(at, length, Side::Constant(bound), 0))
    }

    /// Whether `start <= end`, and both are inside the bytes at a place.
    fn is_slice(&self, at: At, place: &Place, start: Option<Value>, end: Option<Value>) -> bool {
        let is_positive = |value: Value| self.is_bounded_by(at, Side::Constant(0), self.side(value), 0);
        let length = || self.length(at, place);
        match (start, end) {
            (None, None) => true,
            (None, Some(end)) => length().is_some_and(|length| self.is_between_0_and(at, end, length)),
            (Some(start), None) => length().is_some_and(|length| self.is_between_0_and(at, start, length)),
            (Some(start), Some(end)) => {
                length().is_some_and(|length| self.is_bounded_by(at, self.side(end), length, 0))
                    && self.is_bounded_by(at, self.side(start), self.side(end), 0)
                    && is_positive(start)
            }
        }
    }

    fn computed(&self, at: At) -> Option<Side> {
        (self.proofs)().lengths.computed(at.block, at.position).map(Side::Value)
    }

    fn is_computed_within(&self, at: At, bound: i128) -> bool {
        self.computed(at).is_some_and(|length| self.is_bounded_by(at, length, Side::Constant(bound), 0))
    }

    /// Whether the bytes at a place are as long as the slice that they replace.
    fn has_computed_length(&self, at: At, place: &Place) -> bool {
        let (Some(length), Some(computed)) = (self.length(at, place), self.computed(at)) else { return false };
        self.is_bounded_by(at, length, computed, 0) && self.is_bounded_by(at, computed, length, 0)
    }

    /// Whether the exact result of arithmetic fits in its type.
    fn is_in_range(&self, at: At, op: BinaryOp, (left, right): (Value, Value), result: Option<Value>) -> bool {
        let Some(result) = result else { return false };
        let fact = |value: Value| (self.proofs)().inequalities.fact(at.block, self.value(value));
        let ty = self.body.values[result.0 as usize].ty;
        !facts::may_overflow(&self.program.types, ty, op, &fact(left), &fact(right))
    }

    fn least_of_type(&self, value: Value) -> i128 {
        Fact::of_type(&self.program.types, self.body.values[value.0 as usize].ty).low
    }
}
