//! The interpreter of local code: executes the code of one instance, function or region until it reaches an operation,
//! a result, a fault or the fuel limit. Knows nothing of channels and other instances.

use crate::code::{BodyCode, Code, EdgeCode, Inst, OperandCode, Pc, PlaceCode, TypedOperand};
use crate::coverage::{Coverage, Executed, ExecutionHook, NoHook};
use crate::environment::Environment;
use crate::frame::{Frame, resolve};
use crate::layout::{bytes_at, load, set_word, store, word};
use crate::matching::{self, release_all};
use crate::native::{Native, NativeFrame};
use crate::pools::{Address, Pools};
use crate::values::{DataView, ValueRef};
use arithmetic::{binary, load_bits, number_of, store_bits, unary};
use bytes::byte_window;
use quaject_esp_ir::ir::{BinaryOp, ByteOrder, Fault, FnId, Location, PoolId, ProcessId, Program, Type};
use smol_str::SmolStr;

mod arithmetic;
mod bytes;
mod calls;
mod repetition;

/// Whether arithmetic that loses bits faults.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Checks {
    /// It wraps.
    #[default]
    Off,
    /// Signed overflow, shift counts outside the width and layout stores that lose bits fault `overflow`.
    On,
}

/// A fault and its location.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Trap {
    pub(crate) fault: Fault,
    pub(crate) location: Location,
    /// The function or pool that the fault concerns.
    pub(crate) name: Option<SmolStr>,
    /// For a fault in a function: the location of the process's call, direct or indirect.
    pub(crate) called_at: Option<Location>,
}

impl Trap {
    pub(crate) fn at(fault: Fault, location: Location) -> Trap {
        Trap { fault, location, name: None, called_at: None }
    }

    /// The location in the process.
    pub(crate) fn in_process(&self) -> Location {
        self.called_at.unwrap_or(self.location)
    }
}

/// Why execution stopped.
#[derive(Debug)]
pub(crate) enum StopReason {
    /// At this wait.
    Wait(u32),
    /// After a `yield`; execution continues at this position.
    Yield(Pc),
    /// The instance has ended.
    End,
    /// The program ends.
    Exit(u8),
    /// At a `Return` or `Result`.
    Value(Pc),
    /// A fault.
    Trap(Box<Trap>),
    /// The fuel is used up; execution continues at this position.
    Fuel(Pc),
    /// At an entry of machine code.
    Native(Pc),
    /// At the entry test of a fast path.
    Enter(Pc),
    /// At the end of a fast path.
    Leave(Pc),
}

/// Buffers and settings that outlive a step but are not part of a state.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    /// Per function: its frame. Functions are not recursive.
    frames: Vec<Frame>,
    staging: Vec<i64>,
    /// The fuel of the next call of a function. A call that runs out is repeated with twice as much.
    allowance: u64,
    /// IR steps executed.
    pub(crate) executed: u64,
    /// The fuel limit of one region, and whether a region has reached it since it was last set.
    pub(crate) region_fuel_limit: u64,
    pub(crate) region_fuel_exhausted: bool,
    /// Whether local code is searched for repetitions, and whether one was found since the fuel limit was last set.
    pub(crate) detects_repetition: bool,
    pub(crate) has_repetition: bool,
    /// The instructions executed so far, if coverage is recorded.
    pub(crate) coverage: Option<Box<Coverage>>,
    /// The machine code of the processes, if there is any.
    pub(crate) native: Option<Box<dyn Native>>,
}

/// Stops at the entries of machine code. The first instruction is exempt, because machine code has just exited there.
struct StopAtNativeEntry<'a> {
    entries: &'a [bool],
    is_first: bool,
}

impl ExecutionHook for StopAtNativeEntry<'_> {
    #[inline]
    fn reach(&mut self, _at: usize) {}

    #[inline]
    fn stops_at(&mut self, at: usize) -> bool {
        !std::mem::replace(&mut self.is_first, false) && self.entries.get(at) == Some(&true)
    }
}

/// The fuel of a call of a function at first; see `Scratch::allowance`.
const CALL_ALLOWANCE: u64 = 1 << 20;

impl Scratch {
    pub(crate) fn new(code: &Code) -> Scratch {
        let frames = code.functions.iter().map(Frame::new).collect();
        Scratch {
            frames,
            staging: Vec::new(),
            allowance: CALL_ALLOWANCE,
            executed: 0,
            region_fuel_limit: u64::MAX,
            region_fuel_exhausted: false,
            detects_repetition: false,
            has_repetition: false,
            coverage: None,
            native: None,
        }
    }

    /// Limits the fuel of each region from now on, and resets the fuel of calls.
    pub(crate) fn set_region_fuel_limit(&mut self, max_steps: u64) {
        (self.region_fuel_limit, self.region_fuel_exhausted, self.allowance) = (max_steps, false, CALL_ALLOWANCE);
        self.has_repetition = false;
    }

    /// The coverage of a process, if it is recorded.
    fn executed_of(&mut self, process: ProcessId) -> Option<&mut Executed> {
        Some(&mut self.coverage.as_mut()?.processes[process.0 as usize])
    }

    /// The coverage of a function, if it is recorded.
    fn called_of(&mut self, function: FnId) -> Option<&mut Executed> {
        Some(&mut self.coverage.as_mut()?.functions[function.0 as usize])
    }

    /// Passes the arguments of an edge. Returns the position of its target.
    #[inline]
    pub(crate) fn follow(&mut self, edge: &EdgeCode, frame: &mut Frame) -> Pc {
        if edge.overlapping {
            self.staging.clear();
            self.staging.extend(edge.moves.iter().map(|(from, _)| frame.registers[*from as usize]));
            for ((_, to), value) in edge.moves.iter().zip(&self.staging) {
                frame.registers[*to as usize] = *value;
            }
        } else {
            for (from, to) in &edge.moves {
                frame.registers[*to as usize] = frame.registers[*from as usize];
            }
        }
        edge.to
    }
}

/// What the execution of local code needs besides its frame.
pub(crate) struct LocalContext<'a> {
    pub(crate) program: &'a Program,
    pub(crate) code: &'a Code,
    pub(crate) checks: Checks,
    pub(crate) pools: &'a mut Pools,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) environment: &'a mut dyn Environment,
    /// The executing instance.
    pub(crate) own: u32,
}

impl<'a> LocalContext<'a> {
    pub(crate) fn view(&self) -> DataView<'_> {
        DataView { program: self.program, layouts: &self.code.layouts, pools: self.pools }
    }

    /// The address of a place.
    #[inline]
    pub(crate) fn resolve(&self, place: &PlaceCode, frame: &Frame) -> Result<Address, Fault> {
        resolve(self.pools, place, frame)
    }

    pub(crate) fn part(&self, operand: &OperandCode, frame: &Frame) -> Result<ValueRef, Fault> {
        match operand {
            OperandCode::Register(register) => Ok(ValueRef::Scalar(frame.registers[*register as usize])),
            OperandCode::Place(place) => Ok(ValueRef::Memory(self.resolve(place, frame)?)),
        }
    }

    fn bytes<'b>(&'b self, place: &PlaceCode, frame: &'b Frame) -> Result<&'b [u8], Fault> {
        let address = self.resolve(place, frame)?;
        Ok(bytes_at(self.pools.memory(address.space, &frame.memory), address.at))
    }

    /// The bytes of a `bytes` value up to its length, or those of an array.
    fn byte_sequence<'b>(&'b self, place: &PlaceCode, frame: &'b Frame) -> Result<&'b [u8], Fault> {
        match self.program.types.get(place.ty) {
            Type::Array { length, .. } => {
                let address = self.resolve(place, frame)?;
                let memory = self.pools.memory(address.space, &frame.memory);
                Ok(&memory[address.at..address.at + *length as usize])
            }
            _ => self.bytes(place, frame),
        }
    }

    /// The references that an operand holds directly.
    fn references(&self, value: &TypedOperand, frame: &Frame) -> Result<Vec<(PoolId, u32)>, Fault> {
        let view = DataView { program: self.program, layouts: &self.code.layouts, pools: self.pools };
        let mut references = Vec::new();
        matching::references(view, value.ty, self.part(&value.operand, frame)?, &frame.memory, &mut references);
        Ok(references)
    }

    pub(crate) fn release(&mut self, value: &TypedOperand, frame: &Frame) -> Result<(), Fault> {
        let references = self.references(value, frame)?;
        release_all(self.program, &self.code.layouts, self.pools, &references)
    }

    /// Runs `body` from `pc` until it stops, `fuel` is used up, or its state is found to repeat.
    pub(crate) fn run(&mut self, body: &'a BodyCode, frame: &mut Frame, pc: Pc, fuel: &mut u64) -> StopReason {
        let before = *fuel;
        let executed = body.process.and_then(|process| self.scratch.executed_of(process));
        let stop = match (executed.map(std::mem::take), self.scratch.native.take(), body.process) {
            (Some(mut recorded), native, Some(process)) => {
                let stop = self.run_interpreted(body, frame, pc, fuel, &mut recorded);
                self.scratch.native = native;
                if let Some(executed) = self.scratch.executed_of(process) {
                    *executed = recorded;
                }
                stop
            }
            (None, Some(mut native), Some(process)) => {
                let stop = self.run_native(&mut *native, process, body, frame, pc, fuel);
                self.scratch.native = Some(native);
                stop
            }
            (_, native, _) => {
                self.scratch.native = native;
                self.run_interpreted(body, frame, pc, fuel, &mut NoHook)
            }
        };
        self.scratch.executed += before - *fuel;
        stop
    }

    fn run_interpreted<W: ExecutionHook>(
        &mut self,
        body: &'a BodyCode,
        frame: &mut Frame,
        pc: Pc,
        fuel: &mut u64,
        hook: &mut W,
    ) -> StopReason {
        if self.scratch.detects_repetition {
            self.run_until_repetition(body, frame, pc, fuel, hook)
        } else {
            self.run_steps(body, frame, pc, fuel, hook)
        }
    }

    /// Alternates between machine code, from its entries on, and the interpreter, from its exits on.
    fn run_native(
        &mut self,
        native: &mut dyn Native,
        process: ProcessId,
        body: &'a BodyCode,
        frame: &mut Frame,
        pc: Pc,
        fuel: &mut u64,
    ) -> StopReason {
        let mut at = pc;
        loop {
            if *fuel > 0 && native.entries(process).get(at as usize) == Some(&true) {
                let Frame { registers, memory } = &mut *frame;
                at = native.run(process, at, NativeFrame { registers, memory, own: self.own }, fuel);
            }
            let mut hook = StopAtNativeEntry { entries: native.entries(process), is_first: true };
            match self.run_steps(body, frame, at, fuel, &mut hook) {
                StopReason::Native(entry) => at = entry,
                stop => return stop,
            }
        }
    }

    fn run_steps<W: ExecutionHook>(
        &mut self,
        body: &'a BodyCode,
        frame: &mut Frame,
        pc: Pc,
        fuel: &mut u64,
        hook: &mut W,
    ) -> StopReason {
        let mut at = pc as usize;
        macro_rules! check {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(fault) => return self.trap(body, at, fault),
                }
            };
        }
        loop {
            if *fuel == 0 {
                return StopReason::Fuel(at as Pc);
            }
            if hook.stops_at(at) {
                return StopReason::Native(at as Pc);
            }
            *fuel -= 1;
            hook.reach(at);
            match &body.instructions[at] {
                Inst::Constant(to, value) => frame.registers[*to as usize] = *value,
                Inst::Unary(op, kind, to, from) => {
                    let value = frame.registers[*from as usize];
                    frame.registers[*to as usize] = check!(unary(self.checks, *op, *kind, value));
                }
                Inst::Binary(op, kind, to, a, b) => {
                    let (a, b) = (frame.registers[*a as usize], frame.registers[*b as usize]);
                    frame.registers[*to as usize] = check!(binary(self.checks, *op, *kind, a, b));
                }
                Inst::Shift(op, kind, to, a, count, count_kind) => {
                    let (a, count) = (frame.registers[*a as usize], frame.registers[*count as usize]);
                    let count = count_kind.number(count);
                    if self.checks == Checks::On && !(0..i128::from(kind.bits)).contains(&count) {
                        return self.trap(body, at, Fault::Overflow);
                    }
                    let count = (count & i128::from(kind.bits - 1)) as u32;
                    let value = match (op, kind.signed) {
                        (BinaryOp::ShiftRight, true) => a >> count,
                        (BinaryOp::ShiftRight, false) => ((a as u64) >> count) as i64,
                        _ => a << count,
                    };
                    frame.registers[*to as usize] = kind.wrap(value);
                }
                Inst::Convert(kind, to, from) => {
                    let value = frame.registers[*from as usize];
                    frame.registers[*to as usize] = if kind.boolean { i64::from(value != 0) } else { kind.wrap(value) };
                }
                Inst::Load(to, kind, place) => {
                    let address = check!(self.resolve(place, frame));
                    let memory = self.pools.memory(address.space, &frame.memory);
                    frame.registers[*to as usize] = load(memory, address.at, *kind);
                }
                Inst::Store(kind, place, value) => {
                    let address = check!(self.resolve(place, frame));
                    let value = frame.registers[*value as usize];
                    store(self.pools.memory_mut(address.space, &mut frame.memory), address.at, *kind, value);
                }
                Inst::Copy(pair) => {
                    let from = check!(self.resolve(&pair.1, frame));
                    let to = check!(self.resolve(&pair.0, frame));
                    self.pools.copy(&mut frame.memory, from, to, pair.0.size);
                }
                Inst::CopyBytes(pair) => check!(self.copy_slice(pair, frame, None, None)),
                Inst::CopySlice(pair, start, end) => check!(self.copy_slice(pair, frame, *start, *end)),
                Inst::SetBytes(place, bytes) => {
                    let address = check!(self.resolve(place, frame));
                    let memory = self.pools.memory_mut(address.space, &mut frame.memory);
                    let memory = &mut memory[address.at..address.at + place.size];
                    set_word(memory, 0, bytes.len() as u32);
                    memory[4..4 + bytes.len()].copy_from_slice(bytes);
                    memory[4 + bytes.len()..].fill(0);
                }
                Inst::Fill(parts) => check!(self.fill(&parts.0, &parts.1, parts.2, frame)),
                Inst::SetTag(place, tag) => {
                    let address = check!(self.resolve(place, frame));
                    let memory = self.pools.memory_mut(address.space, &mut frame.memory);
                    let memory = &mut memory[address.at..address.at + place.size];
                    memory.fill(0);
                    set_word(memory, 0, *tag);
                }
                Inst::Tag(to, place) | Inst::Length(to, place) => {
                    let address = check!(self.resolve(place, frame));
                    let memory = self.pools.memory(address.space, &frame.memory);
                    frame.registers[*to as usize] = i64::from(word(memory, address.at));
                }
                Inst::SetLength(place, length) => {
                    let address = check!(self.resolve(place, frame));
                    let length = frame.registers[*length as usize] as u64;
                    let memory = self.pools.memory_mut(address.space, &mut frame.memory);
                    let memory = &mut memory[address.at..address.at + place.size];
                    if length > place.size as u64 - 4 {
                        return self.trap(body, at, Fault::Range);
                    }
                    set_word(memory, 0, length as u32);
                    memory[4 + length as usize..].fill(0);
                }
                Inst::StoreSlice(pair, start, end) => check!(self.store_slice(pair, frame, *start, *end)),
                Inst::Append(pair) => check!(self.append(pair, frame)),
                Inst::LoadNumber { to, from, offset, bits, order } => {
                    let offset = frame.registers[*offset as usize] as u64;
                    let byte_window =
                        check!(self.byte_sequence(from, frame).and_then(|b| byte_window(b, offset, *bits / 8)));
                    frame.registers[*to as usize] = number_of(byte_window, *order) as i64;
                }
                Inst::StoreNumber { to, offset, bits, order, value } => {
                    let value = frame.registers[*value as usize] as u64;
                    let offset = frame.registers[*offset as usize] as u64;
                    let byte_window = check!(self.window_mut(to, offset, *bits / 8, frame));
                    match order {
                        ByteOrder::Big => byte_window.copy_from_slice(&value.to_be_bytes()[8 - *bits as usize / 8..]),
                        ByteOrder::Little => byte_window.copy_from_slice(&value.to_le_bytes()[..*bits as usize / 8]),
                    }
                }
                Inst::LoadBits { to, from, offset, field } => {
                    let offset = frame.registers[*offset as usize] as u64;
                    let byte_window =
                        check!(self.bytes(from, frame).and_then(|b| byte_window(b, offset, field.layout_bytes)));
                    frame.registers[*to as usize] = load_bits(byte_window, *field) as i64;
                }
                Inst::StoreBits { to, offset, field, value } => {
                    let value = frame.registers[*value as usize] as u64;
                    if self.checks == Checks::On && field.width_bits < 64 && value >> field.width_bits != 0 {
                        return self.trap(body, at, Fault::Overflow);
                    }
                    let offset = frame.registers[*offset as usize] as u64;
                    store_bits(check!(self.window_mut(to, offset, field.layout_bytes, frame)), *field, value);
                }
                Inst::Equal(to, pair) => {
                    let a = check!(self.part(&pair.0.operand, frame));
                    let b = check!(self.part(&pair.1.operand, frame));
                    let equal = self.view().equal(pair.0.ty, (a, &frame.memory), (b, &frame.memory));
                    frame.registers[*to as usize] = i64::from(check!(equal));
                }
                Inst::CallFunction { function, arguments, result, to } => {
                    match self.call_function(*function, arguments, *result, to.as_deref(), frame, fuel) {
                        None => {}
                        Some(StopReason::Fuel(_)) => return StopReason::Fuel(at as Pc),
                        Some(StopReason::Trap(trap)) if trap.location == Location::default() => {
                            return self.trap(body, at, trap.fault);
                        }
                        Some(StopReason::Trap(mut trap)) => {
                            trap.called_at = Some(body.locations[at]);
                            return StopReason::Trap(trap);
                        }
                        Some(stop) => return stop,
                    }
                }
                Inst::CallExtern { function, arguments, result, to } => {
                    check!(self.call_extern(*function, arguments, *result, to.as_deref(), frame));
                }
                Inst::OwnId(to) => frame.registers[*to as usize] = i64::from(self.own),
                Inst::InstanceOf(to, process, replica) => {
                    let replica = frame.registers[*replica as usize];
                    let instance = self.program.instance(*process, i128::from(replica as u64));
                    frame.registers[*to as usize] = i64::from(check!(instance.ok_or(Fault::Range)));
                }
                Inst::ReplicaNumber(to, instance) => {
                    let instance = frame.registers[*instance as usize] as usize;
                    frame.registers[*to as usize] = self.code.instances.get(instance).map_or(0, |i| i64::from(i.1));
                }
                Inst::Allocate(to, pool) => {
                    frame.registers[*to as usize] = i64::from(check!(self.pools.allocate(*pool)));
                }
                Inst::IsUnique(to, pool, object) => {
                    let count = self.pools.count(*pool, frame.registers[*object as usize] as u32);
                    if count == 0 {
                        return self.trap(body, at, Fault::Memory);
                    }
                    frame.registers[*to as usize] = i64::from(count == 1);
                }
                Inst::FreeObjects(to, pool) => {
                    frame.registers[*to as usize] = i64::from(self.pools.get(*pool).free);
                }
                Inst::Deadline(to, time) => {
                    frame.registers[*to as usize] = time.after(self.environment.now_ns(), &frame.registers);
                }
                Inst::Retain(value) => {
                    let references = check!(self.references(value, frame));
                    check!(references.into_iter().try_for_each(|(pool, object)| self.pools.retain(pool, object)));
                }
                Inst::Release(value) => check!(self.release(value, frame)),
                Inst::Mark => {}
                Inst::Jump(edge) => {
                    at = self.follow(edge, frame);
                    continue;
                }
                Inst::Branch(condition, edges) => {
                    let edge = if frame.registers[*condition as usize] != 0 { &edges.0 } else { &edges.1 };
                    at = self.follow(edge, frame);
                    continue;
                }
                Inst::Switch(value, cases, default) => {
                    let value = frame.registers[*value as usize];
                    let edge = cases.iter().find(|(case, _)| *case == value).map_or(&**default, |(_, edge)| edge);
                    at = self.follow(edge, frame);
                    continue;
                }
                Inst::Wait(wait) => return StopReason::Wait(*wait),
                Inst::Yield(edge, dead) => {
                    let at = self.follow(edge, frame);
                    frame.clear(dead);
                    return StopReason::Yield(at as Pc);
                }
                Inst::Return(_) | Inst::Result(_) => return StopReason::Value(at as Pc),
                Inst::Exit(status) => return StopReason::Exit(frame.registers[*status as usize] as u8),
                Inst::End => return StopReason::End,
                Inst::Fault(fault) => return self.trap(body, at, *fault),
                Inst::Enter(_) => return StopReason::Enter(at as Pc),
                Inst::Leave(_) => return StopReason::Leave(at as Pc),
            }
            at += 1;
        }
    }

    #[cold]
    fn trap(&self, body: &BodyCode, at: usize, fault: Fault) -> StopReason {
        let name = match (&body.instructions[at], fault) {
            (Inst::CallExtern { function, .. }, Fault::Extern) => {
                Some(self.program.externs[function.0 as usize].name.clone())
            }
            (Inst::Allocate(_, pool), Fault::Pool) => Some(self.program.types.pool(*pool).name.clone()),
            (_, _) => None,
        };
        StopReason::Trap(Box::new(Trap { name, ..Trap::at(fault, body.locations[at]) }))
    }

    #[inline]
    fn follow(&mut self, edge: &EdgeCode, frame: &mut Frame) -> usize {
        self.scratch.follow(edge, frame) as usize
    }
}
