//! The executable form of a program: each body is one flat list of instructions; places are offsets, edges are moves
//! between registers, types are widths. `execute` defines what the instructions mean.

mod decode;

use crate::code::decode::Decoder;
use crate::layout::{Layouts, ScalarKind};
use quaject_esp_ir::ir::WaitForEdge;
use quaject_esp_ir::ir::{
    AltOrder, BinaryOp, BitField, BlockId, Blocking, Body, ByteOrder, ChannelId, Direction, ExternId, Fault, FnId,
    Location, PathId, PathMember, PoolId, ProcessId, Program, Transfer, TypeId, UnaryOp,
};
use quaject_esp_ir::liveness::{Dead, OnPaths};
use quaject_esp_ir::pool_recheck::PoolRecheck;
use quaject_esp_ir::typing::is_value;
use rustc_hash::FxHashSet;
use smol_str::SmolStr;

/// A register of a frame.
pub(crate) type Register = u32;
/// A position in [`BodyCode::instructions`].
pub(crate) type Pc = u32;

/// The base of a place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BaseCode {
    /// At this offset of the frame's memory.
    Frame(usize),
    /// At the content of the object in this register.
    Object(Register, PoolId),
    /// At this offset of the constants.
    Constant(usize),
}

/// An index of a place, and the fixed offset from the element to the next projection.
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
    Unary(UnaryOp, ScalarKind, Register, Register),
    Binary(BinaryOp, ScalarKind, Register, Register, Register),
    /// The last is the kind of the count.
    Shift(BinaryOp, ScalarKind, Register, Register, Register, ScalarKind),
    Convert(ScalarKind, Register, Register),
    Load(Register, ScalarKind, PlaceCode),
    Store(ScalarKind, PlaceCode, Register),
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
    /// With the storage that is dead after it.
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

/// Where an instance continues, and moves to its registers (first) from those of the trigger (second).
#[derive(Clone, Debug)]
pub(crate) struct ResumeCode {
    pub(crate) to: Pc,
    pub(crate) values: Box<[(Register, Register)]>,
}

/// The code of a region. Its registers and slots are 0 whenever it is not executed, so that evaluating it does not
/// change a state.
#[derive(Clone, Debug)]
pub(crate) struct RegionCode {
    pub(crate) entry: Pc,
    /// Parameters of its first block.
    pub(crate) parameters: Box<[Register]>,
    /// Its own values.
    pub(crate) registers: Box<[Register]>,
    /// Its own memory: offset and size.
    pub(crate) slots: Box<[(usize, usize)]>,
    /// Whether it changes reference counts, so that speculation has to restore the pools.
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

/// A duration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Time {
    amount: Register,
    kind: ScalarKind,
    unit_ns: i64,
}

impl Time {
    /// The time at which the duration has passed, counted from `now_ns`.
    pub(crate) fn after(&self, now_ns: i64, registers: &[i64]) -> i64 {
        let amount = self.kind.number(registers[self.amount as usize]);
        let duration = amount.saturating_mul(i128::from(self.unit_ns)).clamp(0, i128::from(i64::MAX));
        now_ns.saturating_add(duration as i64)
    }
}

/// The time at which an `after` is enabled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AfterCode {
    /// This long after arrival.
    Time(Time),
    /// At the absolute time in this register.
    Absolute(Register),
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
    /// The observed variables among them.
    pub(crate) received: Box<[ObservedCode]>,
    pub(crate) location: Location,
    /// The storage that is dead once the branch is taken.
    pub(crate) dead: Dead,
}

/// An observed variable: name, register and type.
pub(crate) type ObservedCode = (SmolStr, Register, TypeId);

#[derive(Clone, Debug)]
pub(crate) struct WaitCode {
    pub(crate) order: AltOrder,
    pub(crate) blocking: Blocking,
    pub(crate) branches: Box<[BranchCode]>,
    pub(crate) otherwise: Option<(Pc, Dead)>,
    /// The storage that is dead once the guards are evaluated.
    pub(crate) dead: Dead,
    /// The block it ends.
    pub(crate) block: BlockId,
    pub(crate) location: Location,
    /// Whether a guard reads the number of free objects.
    pub(crate) has_pool_guards: bool,
    /// Whether its branches are tried again at quiescence (see `pool_recheck`).
    pub(crate) retries_at_quiescence: bool,
    /// Whether a branch waits for the environment or a time.
    pub(crate) awaits_environment: bool,
    /// Observed variables.
    pub(crate) observed: Box<[ObservedCode]>,
    /// Of a fused process: by branch, what its members wait for.
    pub(crate) members: Box<[(u32, WaitForEdge)]>,
}

#[derive(Clone, Debug)]
pub(crate) struct BodyCode {
    /// The process; none for a function.
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
    /// The channel ends that the code of each process uses.
    uses: Vec<FxHashSet<(ChannelId, Direction)>>,
}

impl Code {
    pub(crate) fn new(program: &Program) -> Code {
        let layouts = Layouts::new(&program.types);
        let pool_recheck = PoolRecheck::new(program);
        let body =
            |body: &Body, on_paths: OnPaths| Decoder::new(program, &layouts, &pool_recheck, body, on_paths).decode();
        let functions = program.functions.iter().map(|function| body(&function.body, OnPaths::default())).collect();
        let numbered = |(index, process): (usize, &quaject_esp_ir::ir::Process)| BodyCode {
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

    /// Whether the code of an instance has an operation of this direction on the channel.
    pub(crate) fn uses(&self, instance: u32, channel: ChannelId, direction: Direction) -> bool {
        self.process_uses(self.instances[instance as usize].0, channel, direction)
    }

    /// Whether the code of a process has one.
    pub(crate) fn process_uses(&self, process: ProcessId, channel: ChannelId, direction: Direction) -> bool {
        self.uses[process.0 as usize].contains(&(channel, direction))
    }
}

fn on_paths(program: &Program, process: ProcessId) -> OnPaths {
    let captured = program.captured_slots(process).into_iter().map(|slot| slot.0).collect();
    let members = program.paths.iter().flat_map(|path| &path.members);
    let own = |member: &PathMember| program.process_of(member.instance).is_some_and(|(other, _)| other == process);
    OnPaths { captured, keeps_guards: members.into_iter().any(own) }
}

/// Whether an operand of this type is passed in a register.
pub(crate) fn in_register(program: &Program, ty: TypeId) -> bool {
    is_value(&program.types, ty)
}
