//! Emits the machine code of one process. Single instructions are in `arithmetic` and `memory`, edges in `edge_moves`,
//! exits and entries in `transitions`.
//!
//! ```text
//!   entry(registers, target):  jump target
//!   blocks ..                  faults, channel operations and instructions without machine code jump to an exit
//!   stubs ..                   moves of edges, then a jump
//!   exits ..                   live variables to the frame, return the position
//!   entries ..                 constant slots, live variables from the frame, jump to a block
//! ```

use super::allocate::{Assignment, MachineLocation};
use super::branch_facts::BranchFacts;
use super::code_layout::{CodeLayout, Point};
use super::constant_slots::ConstantSlots;
use super::liveness::Liveness;
use super::operand_type::Type;
use super::slot_lengths::SlotLengths;
use super::value_forms::{Interval, ValueForm, ValueForms, wrap};
use super::{Code, Origin};
use crate::Checks;
use quaject_esp_exec::native::Extents;
use quaject_esp_ir::ir::{BinaryOp, BlockId, ConstantId, Edge, Instruction, Location, Program, Terminator, Value};
use quaject_vcode::{Asm, Class, Core, Error, Extension, Label, Machine, Param, Region, Workspace};

/// How many labels, and forward references to labels, the code of a process may have.
pub(super) const MAX_LABELS: usize = 1 << 13;
pub(super) const MAX_FIXUPS: usize = 1 << 14;

/// Why the operation that is fused with a branch can be inverted.
pub(super) const COMPARES: &str = "only comparisons are fused with branches";

/// Working memory of the assembler.
pub type Room<M> = Workspace<M, MAX_LABELS, MAX_FIXUPS, 16>;

/// The analyses of a process that the emitter reads.
pub(super) struct Analyses<'k> {
    pub(super) program: &'k Program,
    pub(super) extents: &'k Extents,
    pub(super) slots: &'k [usize],
    pub(super) layout: &'k CodeLayout<'k>,
    pub(super) values: &'k ValueForms,
    pub(super) live: &'k Liveness,
    pub(super) constant_slots: &'k ConstantSlots,
    pub(super) constants: &'k ConstantAddresses,
    pub(super) guards: &'k BranchFacts,
    pub(super) lengths: &'k SlotLengths,
    pub(super) checks: Checks,
}

/// Where the constants of a program are in memory while its machine code is executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConstantAddresses {
    /// The address of their bytes.
    pub base: u64,
    /// The offset of each constant.
    pub offsets: Vec<usize>,
}

impl ConstantAddresses {
    pub(super) fn address(&self, id: ConstantId) -> u64 {
        self.base + self.offsets[id.0 as usize] as u64
    }
}

/// Why no code was emitted.
pub(super) enum Failure {
    /// At this point one more scratch register is needed.
    Shortage(Point),
    Error(Error),
}

/// The moves of an edge, out of line: the target of a conditional branch.
pub(super) struct Stub {
    pub(super) label: Label,
    /// The branch.
    pub(super) point: Point,
    pub(super) to: BlockId,
    /// Arguments and the parameters that they become.
    pub(super) live_moves: Vec<(Value, Value)>,
}

/// The state of emission.
pub(super) struct Emitter<'e, 'a, M: Machine> {
    pub(super) asm: Asm<'a, M>,
    pub(super) analyses: &'e Analyses<'e>,
    pub(super) locations: &'e Assignment,
    /// The address of the frame's registers.
    pub(super) frame: M::Reg,
    /// By number: the registers requested so far.
    registers: Vec<M::Reg>,
    max_registers: u8,
    labels: Vec<Option<Label>>,
    /// Per block: its final target after jump threading. Forwarding blocks are not emitted.
    final_targets: Vec<BlockId>,
    pub(super) exits: Vec<(Point, Label)>,
    pub(super) entries: Vec<(Point, Label)>,
    pub(super) stubs: Vec<Stub>,
    origins: Vec<Origin>,
    /// The current instruction, the scratch registers it uses (a bit each), the register of its result.
    pub(super) point: Point,
    pub(super) busy: u32,
    pub(super) result: Option<u8>,
    shortage: Option<Point>,
}

/// The number of registers for allocation: all but the one with the frame's address.
pub(super) fn register_count<M: Machine>() -> u8 {
    (M::INT.temp.len() + M::INT.saved.len() - 1).min(31) as u8
}

/// Emits the code, if no point lacks a register.
pub(super) fn emit<M: Machine>(
    analyses: &Analyses<'_>,
    locations: &Assignment,
    buffer: &mut [u8],
    room: &mut Room<M>,
) -> Result<Code, Failure>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    let mut parameters = [Param::NONE, Param::NONE];
    let kind = quaject_vcode::Kind::Leaf;
    let mut asm = Asm::begin(Region::from(buffer), room, "%p%p", &mut parameters, kind).map_err(Failure::Error)?;
    let [frame, target] = parameters.map(|parameter| parameter.reg());
    asm.jr(target);
    asm.putreg(target);
    let mut labels = vec![None; analyses.layout.body.blocks.len()];
    for block in &analyses.layout.order {
        labels[block.0 as usize] = Some(asm.label());
    }
    let mut emitter = Emitter {
        asm,
        analyses,
        locations,
        frame,
        registers: Vec::new(),
        max_registers: register_count::<M>(),
        labels,
        final_targets: (0..analyses.layout.body.blocks.len() as u32).map(BlockId).collect(),
        exits: Vec::new(),
        entries: Vec::new(),
        stubs: Vec::new(),
        origins: Vec::new(),
        point: 0,
        busy: 0,
        result: None,
        shortage: None,
    };
    emitter.thread_jumps();
    let order: Vec<BlockId> =
        analyses.layout.order.iter().copied().filter(|block| emitter.final_target(*block) == *block).collect();
    for (index, block) in order.iter().enumerate() {
        emitter.block(*block, order.get(index + 1).copied());
    }
    emitter.note_origin(Location::default());
    emitter.write_stubs();
    emitter.write_exits();
    let entries = emitter.write_entries();
    if let Some(point) = emitter.shortage {
        return Err(Failure::Shortage(point));
    }
    let origins = emitter.origins;
    let code = emitter.asm.end().map_err(Failure::Error)?;
    Ok(Code { code, entries, origins })
}

impl<'e, M: Machine> Emitter<'e, '_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    /// Jump threading: finds blocks that only jump on and need no moves.
    fn thread_jumps(&mut self) {
        let layout = self.analyses.layout;
        for block in layout.order.iter().rev() {
            if let Some(edge) = self.forwarding_edge(*block)
                && self.live_moves(edge.to, &edge.arguments).iter().all(|(from, to)| {
                    self.analyses.values.root(*from).is_some() && self.location(*from) == self.location(*to)
                })
            {
                self.final_targets[block.0 as usize] = edge.to;
            }
        }
    }

    /// The edge of a block that does nothing but jump.
    pub(super) fn forwarding_edge(&self, block: BlockId) -> Option<&'e Edge> {
        let layout = self.analyses.layout;
        let code = &layout.body.blocks[block.0 as usize];
        let does_nothing = |instruction: &Instruction| {
            let form = instruction.result.map(|result| self.analyses.values.forms[result.0 as usize]);
            form.is_some_and(|form| form != ValueForm::Computed)
        };
        let is_entered = layout.is_entry[block.0 as usize] || layout.is_loop_header[block.0 as usize];
        match &code.terminator {
            Terminator::Jump(edge) if !is_entered && code.instructions.iter().all(does_nothing) => Some(edge),
            _ => None,
        }
    }

    /// The final target of jumps to a block. Every loop has a header, which is not threaded, so this ends.
    pub(super) fn final_target(&self, block: BlockId) -> BlockId {
        let next = self.final_targets[block.0 as usize];
        if next == block { block } else { self.final_target(next) }
    }

    fn block(&mut self, block: BlockId, next: Option<BlockId>) {
        let layout = self.analyses.layout;
        let points = layout.points_of(block);
        let label = self.label_of(block);
        self.asm.bind(label);
        self.begin(points.start, None);
        if layout.is_entry[block.0 as usize] || layout.is_loop_header[block.0 as usize] {
            self.entries.push((points.start, label));
        }
        if layout.is_loop_header[block.0 as usize] {
            let out = self.exit_label();
            self.consume_fuel(out);
        }
        for (point, instruction) in points.clone().zip(&layout.body.blocks[block.0 as usize].instructions) {
            self.begin(point, instruction.result);
            self.note_origin(instruction.location);
            if self.instruction(instruction) == Written::Nothing {
                self.emit_exit(point);
                let label = self.asm.label();
                self.asm.bind(label);
                self.entries.push((point + 1, label));
            }
        }
        self.begin(points.end - 1, None);
        self.note_origin(layout.body.blocks[block.0 as usize].location);
        self.terminator(block, next);
    }

    /// Notes the source of the instructions that follow.
    fn note_origin(&mut self, location: Location) {
        let line = |location: Location| (location.file, location.line);
        let offset = self.asm.position();
        // A source without instructions of its own gets no entry.
        self.origins.pop_if(|last| last.offset == offset);
        if self.origins.last().is_none_or(|last| line(last.location) != line(location)) {
            self.origins.push(Origin { offset, location });
        }
    }

    pub(super) fn begin(&mut self, point: Point, result: Option<Value>) {
        self.point = point;
        self.busy = 0;
        self.result = result.and_then(|value| match self.location(value) {
            MachineLocation::Register(number) => Some(number),
            MachineLocation::Cell(_) | MachineLocation::None => None,
        });
    }

    /// The interval of a value at the current instruction.
    pub(super) fn range(&self, value: Value) -> Interval {
        let block = self.analyses.layout.points[self.point].0;
        self.analyses.values.range_in(block, value)
    }

    pub(super) fn location(&self, value: Value) -> MachineLocation {
        self.analyses.values.root(value).map_or(MachineLocation::None, |root| self.locations.of(root))
    }

    pub(super) fn label_of(&self, block: BlockId) -> Label {
        self.labels[self.final_target(block).0 as usize].expect("an edge leads to compiled code")
    }

    /// Consumes one unit of fuel; without fuel the code exits to the interpreter.
    pub(super) fn consume_fuel(&mut self, out: Label) {
        match self.locations.fuel {
            MachineLocation::Register(number) => {
                let fuel = self.register(number);
                self.asm.suboui(fuel, fuel, 1, out);
            }
            MachineLocation::Cell(cell) => {
                let fuel = self.temporary();
                self.asm.ldii(fuel, self.frame, at(cell));
                self.asm.suboui(fuel, fuel, 1, out);
                self.asm.stii(fuel, self.frame, at(cell));
            }
            MachineLocation::None => {}
        }
        self.busy = 0;
    }

    fn terminator(&mut self, block: BlockId, next: Option<BlockId>) {
        let layout = self.analyses.layout;
        match &layout.body.blocks[block.0 as usize].terminator {
            Terminator::Jump(edge) => self.follow_edge(edge.to, &edge.arguments, next),
            Terminator::Branch { condition, then, otherwise } => {
                if let Some(known) = self.analyses.values.constant(*condition) {
                    let edge = if known != 0 { then } else { otherwise };
                    return self.follow_edge(edge.to, &edge.arguments, next);
                }
                let (op, a, b) = match self.analyses.values.forms[condition.0 as usize] {
                    ValueForm::FusedCompare(op, a, b) => (op, Some(a), b),
                    ValueForm::Computed | ValueForm::Constant(_) | ValueForm::Alias(_) | ValueForm::Truncated(_) => {
                        (BinaryOp::NotEqual, None, *condition)
                    }
                };
                let (op, to, inline) =
                    if next == Some(self.final_target(then.to)) && next != Some(self.final_target(otherwise.to)) {
                        (op.inverted().expect(COMPARES), otherwise, then)
                    } else {
                        (op, then, otherwise)
                    };
                let label = self.edge_label(to.to, &to.arguments);
                match a {
                    Some(a) => self.branch(op, a, b, label),
                    None => {
                        let condition = self.operand_register(b);
                        match op {
                            BinaryOp::Equal => self.asm.beqii(condition, 0, label),
                            _ => self.asm.bneii(condition, 0, label),
                        }
                    }
                }
                self.busy = 0;
                self.follow_edge(inline.to, &inline.arguments, next);
            }
            Terminator::Switch { value, cases, default } => {
                let width = self.analyses.values.width(*value);
                let register = self.operand_register(*value);
                for (case, edge) in cases {
                    let label = self.edge_label(edge.to, &edge.arguments);
                    self.branch_constant(BinaryOp::Equal, Type::of(width), register, wrap(width, *case as i64), label);
                }
                self.busy = 0;
                self.follow_edge(default.to, &default.arguments, next);
            }
            Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => self.emit_exit(self.point),
        }
    }

    pub(super) fn load_cell(&mut self, ty: Type, register: M::Reg, cell: usize) {
        match ty {
            Type::I => self.asm.ldii(register, self.frame, at(cell)),
            Type::U => self.asm.ldui(register, self.frame, at(cell)),
            Type::L | Type::UL => self.asm.ldli(register, self.frame, at(cell)),
        }
    }

    pub(super) fn store_cell(&mut self, ty: Type, register: M::Reg, cell: usize) {
        match ty {
            Type::I | Type::U => self.asm.stii(register, self.frame, at(cell)),
            Type::L | Type::UL => self.asm.stli(register, self.frame, at(cell)),
        }
    }

    /// The machine register of this number.
    pub(super) fn register(&mut self, number: u8) -> M::Reg {
        while self.registers.len() <= usize::from(number) {
            match self.asm.getreg(Class::Temporary) {
                Ok(register) => self.registers.push(register),
                Err(_) => {
                    self.shortage = self.shortage.or(Some(self.point));
                    return self.frame;
                }
            }
        }
        self.registers[usize::from(number)]
    }

    /// A scratch register: free before and behind the current instruction, or that of its result.
    pub(super) fn temporary(&mut self) -> M::Reg {
        match self.temporary_number() {
            Some(number) => self.register(number),
            None => self.frame,
        }
    }

    pub(super) fn temporary_number(&mut self) -> Option<u8> {
        let before = self.locations.occupied[self.point];
        let behind = self.locations.occupied.get(self.point + 1).copied().unwrap_or(0);
        let own = self.result.map_or(0, |number| 1u32 << number) & !before;
        let free = !(before | behind & !own | self.busy);
        let number = free.trailing_zeros() as u8;
        if number >= self.max_registers {
            self.shortage = self.shortage.or(Some(self.point));
            return None;
        }
        self.busy |= 1 << number;
        Some(number)
    }

    /// A register that holds an operand.
    pub(super) fn operand_register(&mut self, value: Value) -> M::Reg {
        let ty = Type::of(self.analyses.values.width(value));
        if let Some(number) = self.analyses.values.constant(value) {
            let register = self.temporary();
            self.set(ty, register, number);
            return register;
        }
        match self.location(value) {
            MachineLocation::Register(number) => self.register(number),
            MachineLocation::Cell(cell) => {
                let root = self.analyses.values.root(value).expect("a value with a cell has a root");
                let register = self.temporary();
                self.load_cell(Type::of(self.analyses.values.width(root)), register, cell);
                register
            }
            // Only unreachable code reads such a value.
            MachineLocation::None => self.temporary(),
        }
    }

    /// The register for a result; `store_result` follows.
    pub(super) fn result_register(&mut self, value: Value) -> M::Reg {
        match self.location(value) {
            MachineLocation::Register(number) => self.register(number),
            MachineLocation::Cell(_) | MachineLocation::None => self.temporary(),
        }
    }

    /// Stores a result whose location is a cell.
    pub(super) fn store_result(&mut self, value: Value, register: M::Reg) {
        if let MachineLocation::Cell(cell) = self.location(value) {
            self.store_cell(Type::of(self.analyses.values.width(value)), register, cell);
        }
    }

    /// The label of the exit before the current instruction.
    pub(super) fn exit_label(&mut self) -> Label {
        match self.exits.last() {
            Some((point, label)) if *point == self.point => *label,
            Some(_) | None => {
                let label = self.asm.label();
                self.exits.push((self.point, label));
                label
            }
        }
    }
}

/// Whether machine code was emitted, or the interpreter has to execute the instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    All,
    Nothing,
}

/// The distance of a cell from the frame's address.
pub(super) fn at(cell: usize) -> i32 {
    (cell * 8) as i32
}
