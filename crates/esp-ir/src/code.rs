//! A program made ready to run: each body one flat list of instructions, places with offsets, edges as moves between
//! registers, types as widths. Says nothing new about what instructions mean; `execute` does.

use crate::exhaustion::Exhaustion;
use crate::ir::{
    AltOrder, Base, BinaryOp, BitField, BlockId, Body, Boundary, ByteOrder, ChannelId, Direction, Edge, ExternId,
    Fault, FnId, Guard, Location, Op, Operand, Operation, Passed, PathId, PathMember, Pattern, Payload, Place, PoolId,
    ProcessId, Program, Rest, Resume, Step, Terminator, TimeUnit, Transfer, Type, TypeId, UnaryOp, Value, Wait,
};
use crate::liveness::{Dead, DeadAt, OnPaths, dead_at};
use crate::report::WaitsFor;
use crate::store::{Kind, Layouts};
use crate::typing::{is_value, operand_type, place_type};
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// A register of a frame.
pub(crate) type Register = u32;
/// A position in [`BodyCode::instructions`].
pub(crate) type Pc = u32;

/// Where a path begins.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BaseCode {
    /// At this offset of the frame's memory.
    Frame(usize),
    /// At the content of the object in this register.
    Object(Register, PoolId),
}

/// An index in a path, and the fixed distance from the element to what follows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IndexCode {
    Element { index: Register, length: u64, stride: usize, then: usize },
    Byte { index: Register },
}

#[derive(Clone, Debug)]
pub(crate) struct PlaceCode {
    pub(crate) base: BaseCode,
    pub(crate) offset: usize,
    pub(crate) indices: Box<[IndexCode]>,
    pub(crate) ty: TypeId,
    pub(crate) size: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum OperandCode {
    Register(Register),
    Place(PlaceCode),
}

/// An operand and its type.
#[derive(Clone, Debug)]
pub(crate) struct TypedOperand {
    pub(crate) operand: OperandCode,
    pub(crate) ty: TypeId,
}

#[derive(Clone, Debug)]
pub(crate) struct PassedCode {
    pub(crate) value: TypedOperand,
    pub(crate) transfer: Transfer,
}

#[derive(Clone, Debug)]
pub(crate) struct EdgeCode {
    pub(crate) to: Pc,
    /// From, to.
    pub(crate) moves: Box<[(Register, Register)]>,
    /// Whether a move overwrites what a later one reads.
    pub(crate) overlapping: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Inst {
    Constant(Register, i64),
    Unary(UnaryOp, Kind, Register, Register),
    Binary(BinaryOp, Kind, Register, Register, Register),
    /// Also the kind of the count.
    Shift(BinaryOp, Kind, Register, Register, Register, Kind),
    Convert(Kind, Register, Register),
    Load(Register, Kind, PlaceCode),
    Store(Kind, PlaceCode, Register),
    Copy(Box<(PlaceCode, PlaceCode)>),
    CopyBytes(Box<(PlaceCode, PlaceCode)>),
    SetBytes(PlaceCode, Box<[u8]>),
    Fill(Box<(PlaceCode, TypedOperand, u32)>),
    SetTag(PlaceCode, u32),
    Tag(Register, PlaceCode),
    Length(Register, PlaceCode),
    SetLength(PlaceCode, Register),
    CopySlice(Box<(PlaceCode, PlaceCode)>, Option<Register>, Option<Register>),
    StoreSlice(Box<(PlaceCode, PlaceCode)>, Option<Register>, Option<Register>),
    Append(Box<(PlaceCode, PlaceCode)>),
    LoadNumber {
        to: Register,
        from: PlaceCode,
        offset: Register,
        bits: u32,
        order: ByteOrder,
    },
    StoreNumber {
        to: PlaceCode,
        offset: Register,
        bits: u32,
        order: ByteOrder,
        value: Register,
    },
    LoadBits {
        to: Register,
        from: PlaceCode,
        offset: Register,
        field: BitField,
    },
    StoreBits {
        to: PlaceCode,
        offset: Register,
        field: BitField,
        value: Register,
    },
    Equal(Register, Box<(TypedOperand, TypedOperand)>),
    CallFunction {
        function: FnId,
        arguments: Box<[TypedOperand]>,
        result: Option<Register>,
        to: Option<Box<PlaceCode>>,
    },
    CallExtern {
        function: ExternId,
        arguments: Box<[TypedOperand]>,
        result: Option<Register>,
        to: Option<Box<PlaceCode>>,
    },
    OwnId(Register),
    InstanceOf(Register, ProcessId, Register),
    ReplicaNumber(Register, Register),
    Allocate(Register, PoolId),
    IsUnique(Register, PoolId, Register),
    FreeObjects(Register, PoolId),
    Deadline(Register, Time),
    Retain(TypedOperand),
    Release(TypedOperand),
    Mark,
    Jump(EdgeCode),
    Branch(Register, Box<(EdgeCode, EdgeCode)>),
    Switch(Register, Box<[(i64, EdgeCode)]>, Box<EdgeCode>),
    Wait(u32),
    /// What no longer matters after it.
    Yield(EdgeCode, Box<Dead>),
    Return(TypedOperand),
    Result(Box<[PassedCode]>),
    Exit(Register),
    End,
    Fault(Fault),
    Enter(Box<EnterCode>),
    Leave(Box<LeaveCode>),
}

/// The entry test of a fast path.
#[derive(Clone, Debug)]
pub(crate) struct EnterCode {
    pub(crate) path: PathId,
    pub(crate) then: Pc,
    pub(crate) parameters: Box<[Register]>,
    pub(crate) later: EdgeCode,
    pub(crate) otherwise: EdgeCode,
}

/// The end of a fast path.
#[derive(Clone, Debug)]
pub(crate) struct LeaveCode {
    pub(crate) path: PathId,
    pub(crate) exit: u32,
    pub(crate) trigger: ResumeCode,
    pub(crate) members: Box<[(u32, ResumeCode)]>,
}

/// Where an instance goes on, and its registers: theirs, then the trigger's.
#[derive(Clone, Debug)]
pub(crate) struct ResumeCode {
    pub(crate) to: Pc,
    pub(crate) values: Box<[(Register, Register)]>,
}

/// Code that runs while its instance waits. Its own registers and slots are 0 whenever it does not run, so that
/// trying it leaves no trace.
#[derive(Clone, Debug)]
pub(crate) struct RegionCode {
    pub(crate) entry: Pc,
    /// Parameters of its first block.
    pub(crate) parameters: Box<[Register]>,
    /// Its own values.
    pub(crate) registers: Box<[Register]>,
    /// Its own memory: offset and size.
    pub(crate) slots: Box<[(usize, usize)]>,
    /// Whether it changes counts, so that a trial has to be undone in the pools.
    pub(crate) changes_pools: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum GuardCode {
    Open,
    Register(Register),
    Region(RegionCode),
}

#[derive(Clone, Debug)]
pub(crate) enum PayloadCode {
    Ready(Box<[PassedCode]>),
    Region(RegionCode),
}

/// A time from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    amount: Register,
    kind: Kind,
    unit_ns: i64,
}

impl Time {
    /// When it will have passed.
    pub(crate) fn after(&self, now_ns: i64, registers: &[i64]) -> i64 {
        let amount = self.kind.number(registers[self.amount as usize]);
        let duration = amount.saturating_mul(i128::from(self.unit_ns)).clamp(0, i128::from(i64::MAX));
        now_ns.saturating_add(duration as i64)
    }
}

/// When an `after` is possible.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AfterCode {
    /// So long after arrival.
    Time(Time),
    /// From the moment in this register on.
    Moment(Register),
}

#[derive(Clone, Debug)]
pub(crate) enum OperationCode {
    In { channel: ChannelId, patterns: Box<[PatternCode]>, condition: Option<RegionCode> },
    Out { channel: ChannelId, payload: PayloadCode },
    After(AfterCode),
}

#[derive(Clone, Debug)]
pub(crate) enum PatternCode {
    Any,
    /// The n-th parameter.
    Parameter(usize),
    /// A slot's offset.
    Slot(usize),
    Constant(i64),
    Bytes(Box<[u8]>),
    OwnId,
    Equal(OperandCode),
    Tag(u32, Option<Box<PatternCode>>),
    Record(Box<[PatternCode]>),
    Array(Box<[PatternCode]>),
}

#[derive(Clone, Debug)]
pub(crate) struct BranchCode {
    pub(crate) guard: GuardCode,
    pub(crate) operation: OperationCode,
    pub(crate) then: Pc,
    pub(crate) parameters: Box<[Register]>,
    pub(crate) location: Location,
    /// What no longer matters once it is taken.
    pub(crate) dead: Dead,
}

#[derive(Clone, Debug)]
pub(crate) struct WaitCode {
    pub(crate) order: AltOrder,
    pub(crate) rest: Rest,
    pub(crate) branches: Box<[BranchCode]>,
    pub(crate) otherwise: Option<(Pc, Dead)>,
    /// What no longer matters once its guards are known.
    pub(crate) dead: Dead,
    /// The block it ends.
    pub(crate) block: BlockId,
    pub(crate) location: Location,
    /// Whether a guard asks for free objects.
    pub(crate) retries: bool,
    /// Whether it is asked again when everything rests, as a pool may have become empty.
    pub(crate) asks_again: bool,
    /// Whether a branch waits for the world or a time.
    pub(crate) watches: bool,
    /// Variables that are asked for, where they are, and of which type.
    pub(crate) observed: Box<[(SmolStr, Register, TypeId)]>,
    /// Of a fused process: what its members wait for, if it waits at a branch.
    pub(crate) members: Box<[(u32, WaitsFor)]>,
}

#[derive(Clone, Debug)]
pub(crate) struct BodyCode {
    /// Which process's; none of a function.
    pub(crate) process: Option<ProcessId>,
    pub(crate) instructions: Vec<Inst>,
    pub(crate) locations: Vec<Location>,
    pub(crate) waits: Vec<WaitCode>,
    pub(crate) registers: usize,
    pub(crate) memory: usize,
    /// Per slot: offset and size.
    pub(crate) slots: Vec<(usize, usize)>,
    /// Parameters of the entry block.
    pub(crate) parameters: Box<[Register]>,
}

/// A program ready to run.
#[derive(Debug)]
pub(crate) struct Code {
    pub(crate) layouts: Layouts,
    pub(crate) functions: Vec<BodyCode>,
    pub(crate) processes: Vec<BodyCode>,
    /// Per instance: its process and replica number.
    pub(crate) instances: Vec<(ProcessId, u32)>,
    /// What the text of each process does with which channel.
    uses: Vec<FxHashSet<(ChannelId, Direction)>>,
}

impl Code {
    pub(crate) fn new(program: &Program) -> Code {
        let layouts = Layouts::new(&program.types);
        let exhaustion = Exhaustion::new(program);
        let body =
            |body: &Body, on_paths: OnPaths| Decoder::new(program, &layouts, &exhaustion, body, on_paths).decode();
        let functions = program.functions.iter().map(|function| body(&function.body, OnPaths::default())).collect();
        let numbered = |(index, process): (usize, &crate::ir::Process)| BodyCode {
            process: Some(ProcessId(index as u32)),
            ..body(&process.body, on_paths(program, ProcessId(index as u32)))
        };
        let processes = program.processes.iter().enumerate().map(numbered).collect();
        let mut instances = Vec::new();
        let mut uses = Vec::new();
        for (index, process) in program.processes.iter().enumerate() {
            instances.extend((0..process.replicas).map(|replica| (ProcessId(index as u32), replica)));
            uses.push(process.sites.iter().map(|site| (site.channel, site.direction)).collect());
        }
        Code { layouts, functions, processes, instances, uses }
    }

    /// Whether an instance's text has an operation of this direction on the channel.
    pub(crate) fn uses(&self, instance: u32, channel: ChannelId, direction: Direction) -> bool {
        self.process_uses(self.instances[instance as usize].0, channel, direction)
    }

    /// Whether a process's text has one.
    pub(crate) fn process_uses(&self, process: ProcessId, channel: ChannelId, direction: Direction) -> bool {
        self.uses[process.0 as usize].contains(&(channel, direction))
    }
}

fn on_paths(program: &Program, process: ProcessId) -> OnPaths {
    let lent = program.lent_slots(process).into_iter().map(|slot| slot.0).collect();
    let members = program.paths.iter().flat_map(|path| &path.members);
    let own = |member: &PathMember| program.process_of(member.instance).is_some_and(|(other, _)| other == process);
    OnPaths { lent, keeps_guards: members.into_iter().any(own) }
}

struct Decoder<'a> {
    program: &'a Program,
    layouts: &'a Layouts,
    exhaustion: &'a Exhaustion,
    body: &'a Body,
    starts: Vec<Pc>,
    slots: Vec<(usize, usize)>,
    on_paths: OnPaths,
    waits: Vec<WaitCode>,
}

impl<'a> Decoder<'a> {
    fn new(
        program: &'a Program,
        layouts: &'a Layouts,
        exhaustion: &'a Exhaustion,
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
        Decoder { program, layouts, exhaustion, body, starts, slots, on_paths, waits: Vec::with_capacity(waits) }
    }

    fn decode(mut self) -> BodyCode {
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

    fn kind(&self, value: Value) -> Kind {
        Kind::of(&self.program.types, self.ty(value))
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
            | Type::Union(_) => unreachable!("the verifier asks for a reference here"),
        }
    }

    fn place(&self, place: &Place) -> PlaceCode {
        let types = &self.program.types;
        let (base, mut ty) = match place.base {
            Base::Slot(slot) => (BaseCode::Frame(self.slots[slot.0 as usize].0), self.body.slots[slot.0 as usize].ty),
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
                Step::Field(field) => skip = self.layouts.field(types, ty, *field as usize),
                Step::Payload(_) => skip = 4,
                // Looked at all the same: what runs here is what other engines are compared with.
                Step::Element(index) | Step::Inside(index) => match types.get(ty) {
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
        let result_kind = || self.kind(result.expect("the verifier asks for a result here"));
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
                    | Type::Boxed(_) => unreachable!("the verifier asks for an array here"),
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
            Op::Mark(_) | Op::Test(..) => Inst::Mark,
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
                    Operation::After { amount, unit: TimeUnit::Moment } => {
                        OperationCode::After(AfterCode::Moment(amount.0))
                    }
                },
                then: self.start(branch.then),
                parameters: registers(&self.body.blocks[branch.then.0 as usize].parameters),
                location: branch.location,
                dead,
            })
            .collect();
        let retries = branches.iter().any(|branch| matches!(branch.guard, GuardCode::Region(_)));
        let watches = branches.iter().any(|branch| match &branch.operation {
            OperationCode::In { channel, .. } | OperationCode::Out { channel, .. } => {
                self.program.channels[channel.0 as usize].boundary != Boundary::Internal
            }
            OperationCode::After { .. } => true,
        });
        WaitCode {
            order: wait.order,
            rest: wait.rest,
            branches,
            otherwise: wait.otherwise.map(|block| (self.start(block), dead.otherwise)),
            dead: dead.here,
            block,
            location,
            retries,
            asks_again: self.exhaustion.asks_again(self.body, wait),
            watches,
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
            Pattern::Bind(crate::ir::Bind::Parameter(number)) => PatternCode::Parameter(*number as usize),
            Pattern::Bind(crate::ir::Bind::Slot(slot)) => PatternCode::Slot(self.slots[slot.0 as usize].0),
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

    /// Finds what belongs to a region: all blocks reached from its first, and the slots its patterns bind.
    fn region(&self, entry: BlockId, patterns: &[Pattern]) -> RegionCode {
        let mut slots: Vec<u32> = Vec::new();
        patterns.iter().for_each(|pattern| bound_slots(pattern, &mut slots));
        let mut values = Vec::new();
        let mut changes_pools = false;
        for block in reached(self.body, entry) {
            let block = &self.body.blocks[block.0 as usize];
            values.extend(block.parameters.iter().map(|value| value.0));
            for instruction in &block.instructions {
                values.extend(instruction.result.map(|value| value.0));
                changes_pools |= changes_counts(&instruction.op);
                written_place(&instruction.op, &mut |place| match place.base {
                    Base::Slot(slot) => slots.push(slot.0),
                    Base::Object(_) => {}
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

fn bound_slots(pattern: &Pattern, slots: &mut Vec<u32>) {
    match pattern {
        Pattern::Bind(crate::ir::Bind::Slot(slot)) => slots.push(slot.0),
        Pattern::Tag(_, Some(payload)) => bound_slots(payload, slots),
        Pattern::Record(parts) | Pattern::Array(parts) => parts.iter().for_each(|part| bound_slots(part, slots)),
        Pattern::Any
        | Pattern::Bind(crate::ir::Bind::Parameter(_))
        | Pattern::Constant(_)
        | Pattern::Bytes(_)
        | Pattern::OwnId
        | Pattern::Equal(_)
        | Pattern::Tag(_, None) => {}
    }
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
        | Op::Test(..) => false,
    }
}

/// Calls `visit` with the place an instruction writes.
pub(crate) fn written_place<'a>(op: &'a Op, visit: &mut dyn FnMut(&'a Place)) {
    match op {
        Op::Store(to, _)
        | Op::Copy { to, .. }
        | Op::SetBytes(to, _)
        | Op::Fill(to, _)
        | Op::SetTag(to, _)
        | Op::SetLength(to, _)
        | Op::CopySlice { to, .. }
        | Op::StoreSlice { to, .. }
        | Op::Append { to, .. }
        | Op::StoreNumber { to, .. }
        | Op::StoreBits { to, .. } => visit(to),
        Op::CallFunction { to, .. } | Op::CallExtern { to, .. } => to.iter().for_each(visit),
        Op::Constant(_)
        | Op::Unary(..)
        | Op::Binary(..)
        | Op::Convert(_)
        | Op::Load(_)
        | Op::Tag(_)
        | Op::Length(_)
        | Op::LoadNumber { .. }
        | Op::LoadBits { .. }
        | Op::Equal(..)
        | Op::OwnId
        | Op::InstanceOf(..)
        | Op::ReplicaNumber(_)
        | Op::Allocate(_)
        | Op::IsUnique(_)
        | Op::FreeObjects(_)
        | Op::Deadline { .. }
        | Op::Retain(_)
        | Op::Release(_)
        | Op::Mark(_)
        | Op::Test(..) => {}
    }
}

/// The edges that leave a block within its control flow (those of a wait's branches are not edges).
pub(crate) fn edges(terminator: &Terminator) -> Vec<&Edge> {
    match terminator {
        Terminator::Jump(edge) | Terminator::Yield(edge) => vec![edge],
        Terminator::Enter(enter) => vec![&enter.later, &enter.otherwise],
        Terminator::Branch { then, otherwise, .. } => vec![then, otherwise],
        Terminator::Switch { cases, default, .. } => {
            cases.iter().map(|(_, edge)| edge).chain(std::iter::once(default)).collect()
        }
        Terminator::Wait(_)
        | Terminator::Leave(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_) => Vec::new(),
    }
}

/// All blocks reached from this one by edges, itself first.
pub(crate) fn reached(body: &Body, from: BlockId) -> Vec<BlockId> {
    let mut seen = vec![false; body.blocks.len()];
    let mut order = vec![from];
    seen[from.0 as usize] = true;
    let mut next = 0;
    while next < order.len() {
        for edge in edges(&body.blocks[order[next].0 as usize].terminator) {
            if !std::mem::replace(&mut seen[edge.to.0 as usize], true) {
                order.push(edge.to);
            }
        }
        next += 1;
    }
    order
}

/// Whether an operand of this type is passed in a register.
pub(crate) fn in_register(program: &Program, ty: TypeId) -> bool {
    is_value(&program.types, ty)
}
