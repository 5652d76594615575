//! Translation of the flow IR to its executable form: blocks to positions, values to registers, places to offsets.

use crate::code::{
    AfterCode, BaseCode, BodyCode, BranchCode, EdgeCode, EnterCode, GuardCode, IndexCode, Inst, LeaveCode,
    ObservedCode, OperandCode, OperationCode, PassedCode, PatternCode, PayloadCode, Pc, PlaceCode, RegionCode,
    Register, ResumeCode, Time, TypedOperand, WaitCode,
};
use crate::constants;
use crate::layout::{Layouts, ScalarKind};
use quaject_esp_ir::cfg::region_blocks;
use quaject_esp_ir::ir::{
    Base, BinaryOp, Bind, BlockId, Body, Boundary, Branch, Edge, Guard, Location, Op, Operand, Operation, Passed,
    Pattern, Payload, Place, PoolId, Program, Projection, Resume, Terminator, TimeUnit, Type, TypeId, Value, Wait,
};
use quaject_esp_ir::liveness::{DeadAt, OnPaths, dead_at};
use quaject_esp_ir::pool_recheck::PoolRecheck;
use quaject_esp_ir::typing::{operand_type, place_type};
use quaject_esp_ir::visit::{bound_slots, written_place};

pub(super) struct Decoder<'a> {
    program: &'a Program,
    layouts: &'a Layouts,
    pool_recheck: &'a PoolRecheck,
    body: &'a Body,
    starts: Vec<Pc>,
    slots: Vec<(usize, usize)>,
    constants: Vec<usize>,
    on_paths: OnPaths,
    waits: Vec<WaitCode>,
}

impl<'a> Decoder<'a> {
    pub(super) fn new(
        program: &'a Program,
        layouts: &'a Layouts,
        pool_recheck: &'a PoolRecheck,
        body: &'a Body,
        on_paths: OnPaths,
    ) -> Decoder<'a> {
        let mut starts = Vec::new();
        let mut next = 0;
        for block in &body.blocks {
            starts.push(next);
            next += block.instructions.len() as Pc + 1;
        }
        let waits = body.blocks.iter().filter(|block| matches!(block.terminator, Terminator::Wait(_))).count();
        let mut slots = Vec::new();
        let mut end = 0usize;
        for slot in &body.slots {
            let size = layouts.size(slot.ty);
            slots.push((end, size));
            end = end.saturating_add(size);
        }
        let constants = constants::offsets(program, layouts);
        Decoder {
            program,
            layouts,
            pool_recheck,
            body,
            starts,
            slots,
            constants,
            on_paths,
            waits: Vec::with_capacity(waits),
        }
    }

    pub(super) fn decode(mut self) -> BodyCode {
        let count = self.body.blocks.iter().map(|block| block.instructions.len() + 1).sum();
        let mut instructions = Vec::with_capacity(count);
        let mut locations = Vec::with_capacity(count);
        let dead = dead_at(self.body, &self.slots, &self.on_paths);
        for ((index, block), dead) in self.body.blocks.iter().enumerate().zip(dead) {
            for instruction in &block.instructions {
                instructions.push(self.instruction(instruction.result, &instruction.op));
                locations.push(instruction.location);
            }
            let terminator = self.terminator(BlockId(index as u32), &block.terminator, block.location, dead);
            instructions.push(terminator);
            locations.push(block.location);
        }
        let memory = self.slots.last().map_or(0, |(offset, size)| offset.saturating_add(*size));
        let parameters = self.body.blocks.first().map(|block| registers(&block.parameters)).unwrap_or_default();
        BodyCode {
            process: None,
            instructions,
            locations,
            waits: self.waits,
            registers: self.body.values.len(),
            memory,
            slots: self.slots,
            parameters,
        }
    }

    fn ty(&self, value: Value) -> TypeId {
        self.body.values[value.0 as usize].ty
    }

    fn kind(&self, value: Value) -> ScalarKind {
        ScalarKind::of(&self.program.types, self.ty(value))
    }

    fn pool(&self, value: Value) -> PoolId {
        match self.program.types.get(self.ty(value)) {
            Type::Boxed(pool) => *pool,
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => unreachable!("the verifier requires a reference here"),
        }
    }

    fn place(&self, place: &Place) -> PlaceCode {
        let types = &self.program.types;
        let (base, mut ty) = match place.base {
            Base::Slot(slot) => (BaseCode::Frame(self.slots[slot.0 as usize].0), self.body.slots[slot.0 as usize].ty),
            Base::Constant(id, ty) => (BaseCode::Constant(self.constants[id.0 as usize]), ty),
            Base::Object(value) => {
                let pool = self.pool(value);
                (BaseCode::Object(value.0, pool), types.pool(pool).content)
            }
        };
        let mut offset = 0;
        let mut indices: Vec<IndexCode> = Vec::new();
        for (number, step) in place.path.iter().enumerate() {
            let prefix = Place { base: place.base, path: place.path[..=number].to_vec() };
            let next = place_type(types, self.body, &prefix).expect("the verifier types every place");
            let mut skip = 0;
            match step {
                Projection::Field(field) => skip = self.layouts.field(types, ty, *field as usize),
                Projection::Payload(_) => skip = 4,
                // Checked even if it was proved in bounds: the interpreter is the reference for other engines.
                Projection::Element(index) | Projection::Inside(index) => match types.get(ty) {
                    Type::Array { length, .. } => indices.push(IndexCode::Element {
                        index: index.0,
                        length: u64::from(*length),
                        stride: self.layouts.size(next),
                        then: 0,
                    }),
                    Type::Bytes { .. } => indices.push(IndexCode::Byte { index: index.0 }),
                    Type::Error
                    | Type::Int(_)
                    | Type::Bool
                    | Type::Pid(_)
                    | Type::Record(_)
                    | Type::Union(_)
                    | Type::Boxed(_) => unreachable!("the verifier types every place"),
                },
            }
            match indices.last_mut() {
                None => offset += skip,
                Some(IndexCode::Element { then, .. }) => *then += skip,
                Some(IndexCode::Byte { .. }) => {}
            }
            ty = next;
        }
        PlaceCode { base, offset, indices: indices.into(), ty, size: self.layouts.size(ty) }
    }

    fn operand(&self, operand: &Operand) -> OperandCode {
        match operand {
            Operand::Value(value) => OperandCode::Register(value.0),
            Operand::Place(place) => OperandCode::Place(self.place(place)),
        }
    }

    fn typed(&self, operand: &Operand) -> TypedOperand {
        let ty = operand_type(&self.program.types, self.body, operand).expect("the verifier types every operand");
        TypedOperand { operand: self.operand(operand), ty }
    }

    fn passed(&self, passed: &[Passed]) -> Box<[PassedCode]> {
        passed.iter().map(|p| PassedCode { value: self.typed(&p.operand), transfer: p.transfer }).collect()
    }

    fn edge(&self, edge: &Edge) -> EdgeCode {
        let parameters = &self.body.blocks[edge.to.0 as usize].parameters;
        let moves: Box<[_]> = edge.arguments.iter().zip(parameters).map(|(from, to)| (from.0, to.0)).collect();
        let overlapping = (0..moves.len()).any(|i| moves[i + 1..].iter().any(|(from, _)| *from == moves[i].1));
        EdgeCode { to: self.start(edge.to), moves, overlapping }
    }

    fn start(&self, block: BlockId) -> Pc {
        self.starts[block.0 as usize]
    }

    fn instruction(&self, result: Option<Value>, op: &Op) -> Inst {
        let to = result.map_or(0, |value| value.0);
        let result_kind = || self.kind(result.expect("the verifier requires a result here"));
        let pair = |to: &Place, from: &Place| Box::new((self.place(to), self.place(from)));
        match op {
            Op::Constant(value) => Inst::Constant(to, result_kind().wrap(*value as i64)),
            Op::Unary(op, value) => Inst::Unary(*op, result_kind(), to, value.0),
            Op::Binary(op @ (BinaryOp::ShiftLeft | BinaryOp::ShiftRight), a, b) => {
                Inst::Shift(*op, result_kind(), to, a.0, b.0, self.kind(*b))
            }
            Op::Binary(op, a, b) => Inst::Binary(*op, self.kind(*a), to, a.0, b.0),
            Op::Convert(value) => Inst::Convert(result_kind(), to, value.0),
            Op::Load(place) => Inst::Load(to, result_kind(), self.place(place)),
            Op::Store(place, value) => Inst::Store(self.kind(*value), self.place(place), value.0),
            Op::Copy { to, from } => {
                let pair = pair(to, from);
                if pair.0.ty == pair.1.ty { Inst::Copy(pair) } else { Inst::CopyBytes(pair) }
            }
            Op::SetBytes(place, bytes) => Inst::SetBytes(self.place(place), bytes.as_slice().into()),
            Op::Fill(place, operand) => {
                let place = self.place(place);
                let length = match self.program.types.get(place.ty) {
                    Type::Array { length, .. } => *length,
                    Type::Error
                    | Type::Int(_)
                    | Type::Bool
                    | Type::Bytes { .. }
                    | Type::Pid(_)
                    | Type::Record(_)
                    | Type::Union(_)
                    | Type::Boxed(_) => unreachable!("the verifier requires an array here"),
                };
                Inst::Fill(Box::new((place, self.typed(operand), length)))
            }
            Op::SetTag(place, tag) => Inst::SetTag(self.place(place), *tag),
            Op::Tag(place) => Inst::Tag(to, self.place(place)),
            Op::Length(place) => Inst::Length(to, self.place(place)),
            Op::SetLength(place, value) => Inst::SetLength(self.place(place), value.0),
            Op::CopySlice { to, from, start, end } => {
                Inst::CopySlice(pair(to, from), start.map(|v| v.0), end.map(|v| v.0))
            }
            Op::StoreSlice { to, start, end, from } => {
                Inst::StoreSlice(pair(to, from), start.map(|v| v.0), end.map(|v| v.0))
            }
            Op::Append { to, from } => Inst::Append(pair(to, from)),
            Op::LoadNumber { from, offset, bits, order } => {
                Inst::LoadNumber { to, from: self.place(from), offset: offset.0, bits: *bits, order: *order }
            }
            Op::StoreNumber { to, offset, bits, order, value } => {
                Inst::StoreNumber { to: self.place(to), offset: offset.0, bits: *bits, order: *order, value: value.0 }
            }
            Op::LoadBits { from, offset, field } => {
                Inst::LoadBits { to, from: self.place(from), offset: offset.0, field: *field }
            }
            Op::StoreBits { to, offset, field, value } => {
                Inst::StoreBits { to: self.place(to), offset: offset.0, field: *field, value: value.0 }
            }
            Op::Equal(a, b) => Inst::Equal(to, Box::new((self.typed(a), self.typed(b)))),
            Op::CallFunction { function, arguments, to } => Inst::CallFunction {
                function: *function,
                arguments: arguments.iter().map(|argument| self.typed(argument)).collect(),
                result: result.map(|value| value.0),
                to: to.as_ref().map(|place| Box::new(self.place(place))),
            },
            Op::CallExtern { function, arguments, to } => Inst::CallExtern {
                function: *function,
                arguments: arguments.iter().map(|argument| self.typed(argument)).collect(),
                result: result.map(|value| value.0),
                to: to.as_ref().map(|place| Box::new(self.place(place))),
            },
            Op::OwnId => Inst::OwnId(to),
            Op::InstanceOf(process, value) => Inst::InstanceOf(to, *process, value.0),
            Op::ReplicaNumber(value) => Inst::ReplicaNumber(to, value.0),
            Op::Allocate(pool) => Inst::Allocate(to, *pool),
            Op::IsUnique(value) => Inst::IsUnique(to, self.pool(*value), value.0),
            Op::FreeObjects(pool) => Inst::FreeObjects(to, *pool),
            Op::Deadline { amount, unit_ns } => {
                Inst::Deadline(to, Time { amount: amount.0, kind: self.kind(*amount), unit_ns: *unit_ns })
            }
            Op::Retain(operand) => Inst::Retain(self.typed(operand)),
            Op::Release(operand) => Inst::Release(self.typed(operand)),
            Op::Mark(_) | Op::Predicate(..) => Inst::Mark,
        }
    }

    fn terminator(&mut self, block: BlockId, terminator: &Terminator, location: Location, dead: DeadAt) -> Inst {
        match terminator {
            Terminator::Jump(edge) => Inst::Jump(self.edge(edge)),
            Terminator::Branch { condition, then, otherwise } => {
                Inst::Branch(condition.0, Box::new((self.edge(then), self.edge(otherwise))))
            }
            Terminator::Switch { value, cases, default } => {
                let kind = self.kind(*value);
                let cases = cases.iter().map(|(case, edge)| (kind.wrap(*case as i64), self.edge(edge)));
                Inst::Switch(value.0, cases.collect(), Box::new(self.edge(default)))
            }
            Terminator::Wait(wait) => {
                let wait = self.wait(block, wait, location, dead);
                self.waits.push(wait);
                Inst::Wait(self.waits.len() as u32 - 1)
            }
            Terminator::Yield(edge) => Inst::Yield(self.edge(edge), Box::new(dead.here)),
            Terminator::Return(operand) => Inst::Return(self.typed(operand)),
            Terminator::Result(passed) => Inst::Result(self.passed(passed)),
            Terminator::Exit(value) => Inst::Exit(value.0),
            Terminator::End => Inst::End,
            Terminator::Fault(fault) => Inst::Fault(*fault),
            Terminator::Enter(enter) => Inst::Enter(Box::new(EnterCode {
                path: enter.path,
                then: self.start(enter.then),
                parameters: registers(&self.body.blocks[enter.then.0 as usize].parameters),
                later: self.edge(&enter.later),
                otherwise: self.edge(&enter.otherwise),
            })),
            Terminator::Leave(leave) => {
                let path = &self.program.paths[leave.path.0 as usize];
                let member = |(number, resume): &(u32, Resume)| {
                    let instance = path.members[*number as usize].instance;
                    let (process, _) = self.program.process_of(instance).expect("a verified path names instances");
                    let body = &self.program.processes[process.0 as usize].body;
                    (*number, resumed(resume, crate::native::positions(body)[resume.to.0 as usize]))
                };
                Inst::Leave(Box::new(LeaveCode {
                    path: leave.path,
                    exit: leave.exit,
                    trigger: resumed(&leave.trigger, self.start(leave.trigger.to)),
                    members: leave.members.iter().map(member).collect(),
                }))
            }
        }
    }

    /// The observed variables into which a branch receives.
    fn received(&self, branch: &Branch, wait: &Wait) -> Box<[ObservedCode]> {
        let parameters = self.body.blocks[branch.then.0 as usize].parameters.iter();
        let observed = parameters.filter_map(|parameter| {
            let data = &self.body.values[parameter.0 as usize];
            let name = data.name.clone()?;
            wait.observed.iter().any(|(known, _)| *known == name).then_some((name, parameter.0, data.ty))
        });
        observed.collect()
    }

    fn wait(&self, block: BlockId, wait: &Wait, location: Location, dead: DeadAt) -> WaitCode {
        let branches: Box<[_]> = wait
            .branches
            .iter()
            .zip(dead.branches)
            .map(|(branch, dead)| BranchCode {
                guard: match branch.guard {
                    Guard::Open => GuardCode::Open,
                    Guard::Value(value) => GuardCode::Register(value.0),
                    Guard::Region(entry) => GuardCode::Region(self.region(entry, &[])),
                },
                operation: match &branch.operation {
                    Operation::In { channel, patterns, condition, .. } => OperationCode::In {
                        channel: *channel,
                        patterns: patterns.iter().map(|pattern| self.pattern(pattern)).collect(),
                        condition: condition.map(|entry| self.region(entry, patterns)),
                    },
                    Operation::Out { channel, payload, .. } => OperationCode::Out {
                        channel: *channel,
                        payload: match payload {
                            Payload::Ready(passed) => PayloadCode::Ready(self.passed(passed)),
                            Payload::Region(entry) => PayloadCode::Region(self.region(*entry, &[])),
                        },
                    },
                    Operation::After { amount, unit: TimeUnit::Nanoseconds(unit_ns) } => {
                        let time = Time { amount: amount.0, kind: self.kind(*amount), unit_ns: *unit_ns };
                        OperationCode::After(AfterCode::Time(time))
                    }
                    Operation::After { amount, unit: TimeUnit::Absolute } => {
                        OperationCode::After(AfterCode::Absolute(amount.0))
                    }
                },
                then: self.start(branch.then),
                parameters: registers(&self.body.blocks[branch.then.0 as usize].parameters),
                received: self.received(branch, wait),
                location: branch.location,
                dead,
            })
            .collect();
        let has_pool_guards = branches.iter().any(|branch| matches!(branch.guard, GuardCode::Region(_)));
        let awaits_environment = branches.iter().any(|branch| match &branch.operation {
            OperationCode::In { channel, .. } | OperationCode::Out { channel, .. } => {
                self.program.channels[channel.0 as usize].boundary != Boundary::Internal
            }
            OperationCode::After { .. } => true,
        });
        WaitCode {
            order: wait.order,
            blocking: wait.blocking,
            branches,
            otherwise: wait.otherwise.map(|block| (self.start(block), dead.otherwise)),
            dead: dead.here,
            block,
            location,
            has_pool_guards,
            retries_at_quiescence: self.pool_recheck.retries_at_quiescence(self.body, wait),
            awaits_environment,
            observed: wait
                .observed
                .iter()
                .map(|(name, value)| (name.clone(), value.0, self.body.values[value.0 as usize].ty))
                .collect(),
            members: wait.members.as_slice().into(),
        }
    }

    fn pattern(&self, pattern: &Pattern) -> PatternCode {
        let list = |patterns: &[Pattern]| patterns.iter().map(|pattern| self.pattern(pattern)).collect();
        match pattern {
            Pattern::Any => PatternCode::Any,
            Pattern::Bind(Bind::Parameter(number)) => PatternCode::Parameter(*number as usize),
            Pattern::Bind(Bind::Slot(slot)) => PatternCode::Slot(self.slots[slot.0 as usize].0),
            // The low 64 bits are what a register holds, whatever the type.
            Pattern::Constant(value) => PatternCode::Constant(*value as i64),
            Pattern::Bytes(bytes) => PatternCode::Bytes(bytes.as_slice().into()),
            Pattern::OwnId => PatternCode::OwnId,
            Pattern::Equal(operand) => PatternCode::Equal(self.operand(operand)),
            Pattern::Tag(tag, payload) => {
                PatternCode::Tag(*tag, payload.as_ref().map(|payload| Box::new(self.pattern(payload))))
            }
            Pattern::Record(fields) => PatternCode::Record(list(fields)),
            Pattern::Array(items) => PatternCode::Array(list(items)),
        }
    }

    /// Collects the registers and slots of a region: those of all its blocks, and the slots that its patterns bind.
    fn region(&self, entry: BlockId, patterns: &[Pattern]) -> RegionCode {
        let mut slots: Vec<u32> = Vec::new();
        patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot.0)));
        let mut values = Vec::new();
        let mut changes_pools = false;
        for block in region_blocks(self.body, entry) {
            let block = &self.body.blocks[block.0 as usize];
            values.extend(block.parameters.iter().map(|value| value.0));
            for instruction in &block.instructions {
                values.extend(instruction.result.map(|value| value.0));
                changes_pools |= changes_counts(&instruction.op);
                written_place(&instruction.op, &mut |place| match place.base {
                    Base::Slot(slot) => slots.push(slot.0),
                    Base::Object(_) | Base::Constant(..) => {}
                });
            }
        }
        slots.sort_unstable();
        slots.dedup();
        RegionCode {
            entry: self.start(entry),
            parameters: registers(&self.body.blocks[entry.0 as usize].parameters),
            registers: values.into(),
            slots: slots.into_iter().map(|slot| self.slots[slot as usize]).collect(),
            changes_pools,
        }
    }
}

fn resumed(resume: &Resume, to: Pc) -> ResumeCode {
    ResumeCode { to, values: resume.values.iter().map(|(own, becomes)| (own.0, becomes.0)).collect() }
}

fn registers(values: &[Value]) -> Box<[Register]> {
    values.iter().map(|value| value.0).collect()
}

fn changes_counts(op: &Op) -> bool {
    match op {
        Op::Allocate(_) | Op::Retain(_) | Op::Release(_) | Op::CallFunction { .. } | Op::CallExtern { .. } => true,
        Op::Constant(_)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::Convert(_)
        | Op::Load(_)
        | Op::Store(..)
        | Op::Copy { .. }
        | Op::SetBytes(..)
        | Op::Fill(..)
        | Op::SetTag(..)
        | Op::Tag(_)
        | Op::Length(_)
        | Op::SetLength(..)
        | Op::CopySlice { .. }
        | Op::StoreSlice { .. }
        | Op::Append { .. }
        | Op::LoadNumber { .. }
        | Op::StoreNumber { .. }
        | Op::LoadBits { .. }
        | Op::StoreBits { .. }
        | Op::Equal(..)
        | Op::OwnId
        | Op::InstanceOf(..)
        | Op::ReplicaNumber(_)
        | Op::IsUnique(_)
        | Op::FreeObjects(_)
        | Op::Deadline { .. }
        | Op::Mark(_)
        | Op::Predicate(..) => false,
    }
}
