//! Writes the machine code of one process: blocks in order, moves along edges, ways in from the interpreter and out to
//! it. What single instructions become is said by `operate` and `access`.
//!
//! ```text
//!   entry(registers, target):  jump target
//!   blocks ..                  faults, operations, unknown instructions jump to a way out
//!   ways out                   every variable to the frame, return the position
//!   ways in                    constant slots, variables from the frame, jump to a block
//! ```

use super::allocate::{Home, Homes};
use super::constant_slots::ConstantSlots;
use super::edges::Stub;
use super::flow::{Flow, Point};
use super::guards::{Guards, Lengths};
use super::live::Live;
use super::operate::Type;
use super::ranges::Range;
use super::values::{Form, Values, wrap};
use super::{Code, Origin};
use crate::Checks;
use quaject_esp_exec::native::Extents;
use quaject_esp_ir::ir::{BinaryOp, BlockId, Edge, Instruction, Location, Program, Terminator, Value};
use quaject_vcode::{Asm, Class, Core, Error, Extension, Label, Machine, Param, Region, Workspace};

/// How many labels, and references to labels that come later, the code of a process may have.
pub(super) const LABELS: usize = 1 << 13;
pub(super) const FIXUPS: usize = 1 << 14;

/// Memory for what is being written.
pub type Room<M> = Workspace<M, LABELS, FIXUPS, 16>;

/// What is known of a process before it is written.
pub(super) struct Known<'k> {
    pub(super) program: &'k Program,
    pub(super) extents: &'k Extents,
    pub(super) slots: &'k [usize],
    pub(super) flow: &'k Flow<'k>,
    pub(super) values: &'k Values,
    pub(super) live: &'k Live,
    pub(super) constant_slots: &'k ConstantSlots,
    pub(super) guards: &'k Guards,
    pub(super) lengths: &'k Lengths,
    pub(super) checks: Checks,
}

/// Why nothing was written.
pub(super) enum Failure {
    /// At this point one more register is needed.
    Shortage(Point),
    Error(Error),
}

/// The code being written.
pub(super) struct Emitter<'e, 'a, M: Machine> {
    pub(super) asm: Asm<'a, M>,
    pub(super) known: &'e Known<'e>,
    pub(super) homes: &'e Homes,
    /// The address of the frame's registers.
    pub(super) frame: M::Reg,
    /// By number: those asked for so far.
    registers: Vec<M::Reg>,
    most_registers: u8,
    labels: Vec<Option<Label>>,
    /// Per block: where code that leads to it leads in the end. Blocks that only lead on are not written.
    ends: Vec<BlockId>,
    pub(super) exits: Vec<(Point, Label)>,
    pub(super) entries: Vec<(Point, Label)>,
    pub(super) stubs: Vec<Stub>,
    origins: Vec<Origin>,
    /// The instruction at hand, the registers that hold something for it, the one of its result.
    pub(super) point: Point,
    pub(super) busy: u32,
    pub(super) result: Option<u8>,
    shortage: Option<Point>,
}

/// How many registers the allocator may use on a machine: all but the one with the frame's address.
pub(super) fn register_count<M: Machine>() -> u8 {
    (M::INT.temp.len() + M::INT.saved.len() - 1).min(31) as u8
}

/// Writes the code, if no point lacks a register.
pub(super) fn emit<M: Machine>(
    known: &Known<'_>,
    homes: &Homes,
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
    let mut labels = vec![None; known.flow.body.blocks.len()];
    for block in &known.flow.order {
        labels[block.0 as usize] = Some(asm.label());
    }
    let mut emitter = Emitter {
        asm,
        known,
        homes,
        frame,
        registers: Vec::new(),
        most_registers: register_count::<M>(),
        labels,
        ends: (0..known.flow.body.blocks.len() as u32).map(BlockId).collect(),
        exits: Vec::new(),
        entries: Vec::new(),
        stubs: Vec::new(),
        origins: Vec::new(),
        point: 0,
        busy: 0,
        result: None,
        shortage: None,
    };
    emitter.find_ends();
    let order: Vec<BlockId> = known.flow.order.iter().copied().filter(|block| emitter.end(*block) == *block).collect();
    for (index, block) in order.iter().enumerate() {
        emitter.block(*block, order.get(index + 1).copied());
    }
    emitter.comes_from(Location::default());
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
    /// Finds the blocks that do nothing but lead on.
    fn find_ends(&mut self) {
        let flow = self.known.flow;
        for block in flow.order.iter().rev() {
            if let Some(edge) = self.leads_on(*block)
                && self
                    .handed(edge.to, &edge.arguments)
                    .iter()
                    .all(|(from, to)| self.known.values.root(*from).is_some() && self.home(*from) == self.home(*to))
            {
                self.ends[block.0 as usize] = edge.to;
            }
        }
    }

    /// The edge that a block does nothing but lead along.
    pub(super) fn leads_on(&self, block: BlockId) -> Option<&'e Edge> {
        let flow = self.known.flow;
        let code = &flow.body.blocks[block.0 as usize];
        let does_nothing = |instruction: &Instruction| {
            let form = instruction.result.map(|result| self.known.values.forms[result.0 as usize]);
            form.is_some_and(|form| form != Form::Own)
        };
        let is_entered = flow.resumed[block.0 as usize] || flow.turns[block.0 as usize];
        match &code.terminator {
            Terminator::Jump(edge) if !is_entered && code.instructions.iter().all(does_nothing) => Some(edge),
            _ => None,
        }
    }

    /// Where code that leads to a block leads in the end. Every loop has a block where turns are counted, so there is one.
    pub(super) fn end(&self, block: BlockId) -> BlockId {
        let next = self.ends[block.0 as usize];
        if next == block { block } else { self.end(next) }
    }

    fn block(&mut self, block: BlockId, next: Option<BlockId>) {
        let flow = self.known.flow;
        let points = flow.points_of(block);
        let label = self.label_of(block);
        self.asm.bind(label);
        self.begin(points.start, None);
        if flow.resumed[block.0 as usize] || flow.turns[block.0 as usize] {
            self.entries.push((points.start, label));
        }
        if flow.turns[block.0 as usize] {
            let out = self.exit();
            self.count_turn(out);
        }
        for (point, instruction) in points.clone().zip(&flow.body.blocks[block.0 as usize].instructions) {
            self.begin(point, instruction.result);
            self.comes_from(instruction.location);
            if self.instruction(instruction) == Written::Nothing {
                self.leave(point);
                let label = self.asm.label();
                self.asm.bind(label);
                self.entries.push((point + 1, label));
            }
        }
        self.begin(points.end - 1, None);
        self.comes_from(flow.body.blocks[block.0 as usize].location);
        self.terminator(block, next);
    }

    /// What is written from here on stands for this place in the text.
    fn comes_from(&mut self, location: Location) {
        let line = |location: Location| (location.file, location.line);
        let offset = self.asm.position();
        // Whatever has become no code has no line: nobody would come by.
        self.origins.pop_if(|last| last.offset == offset);
        if self.origins.last().is_none_or(|last| line(last.location) != line(location)) {
            self.origins.push(Origin { offset, location });
        }
    }

    pub(super) fn begin(&mut self, point: Point, result: Option<Value>) {
        self.point = point;
        self.busy = 0;
        self.result = result.and_then(|value| match self.home(value) {
            Home::Register(number) => Some(number),
            Home::Cell(_) | Home::Nowhere => None,
        });
    }

    /// The range of a value at the instruction at hand.
    pub(super) fn range(&self, value: Value) -> Range {
        let known = |value: Value| Some(self.known.values.range(value));
        let block = self.known.flow.points[self.point].0;
        self.known.guards.narrow(block, value, &known).expect("every value has a range")
    }

    pub(super) fn home(&self, value: Value) -> Home {
        self.known.values.root(value).map_or(Home::Nowhere, |root| self.homes.of(root))
    }

    pub(super) fn label_of(&self, block: BlockId) -> Label {
        self.labels[self.end(block).0 as usize].expect("an edge leads to compiled code")
    }

    /// Counts a turn of a loop; after the last one the interpreter looks around.
    pub(super) fn count_turn(&mut self, out: Label) {
        match self.homes.fuel {
            Home::Register(number) => {
                let fuel = self.register(number);
                self.asm.suboui(fuel, fuel, 1, out);
            }
            Home::Cell(cell) => {
                let fuel = self.temporary();
                self.asm.ldii(fuel, self.frame, at(cell));
                self.asm.suboui(fuel, fuel, 1, out);
                self.asm.stii(fuel, self.frame, at(cell));
            }
            Home::Nowhere => {}
        }
        self.busy = 0;
    }

    fn terminator(&mut self, block: BlockId, next: Option<BlockId>) {
        let flow = self.known.flow;
        match &flow.body.blocks[block.0 as usize].terminator {
            Terminator::Jump(edge) => self.go(edge.to, &edge.arguments, next),
            Terminator::Branch { condition, then, otherwise } => {
                if let Some(known) = self.known.values.constant(*condition) {
                    let edge = if known != 0 { then } else { otherwise };
                    return self.go(edge.to, &edge.arguments, next);
                }
                let (op, a, b) = match self.known.values.forms[condition.0 as usize] {
                    Form::Compared(op, a, b) => (op, Some(a), b),
                    Form::Own | Form::Constant(_) | Form::Same(_) | Form::Low(_) => {
                        (BinaryOp::NotEqual, None, *condition)
                    }
                };
                let (op, to, inline) = if next == Some(self.end(then.to)) && next != Some(self.end(otherwise.to)) {
                    (inverse(op), otherwise, then)
                } else {
                    (op, then, otherwise)
                };
                let label = self.way(to.to, &to.arguments);
                match a {
                    Some(a) => self.branch(op, a, b, label),
                    None => {
                        let condition = self.read(b);
                        match op {
                            BinaryOp::Equal => self.asm.beqii(condition, 0, label),
                            _ => self.asm.bneii(condition, 0, label),
                        }
                    }
                }
                self.busy = 0;
                self.go(inline.to, &inline.arguments, next);
            }
            Terminator::Switch { value, cases, default } => {
                let width = self.known.values.width(*value);
                let register = self.read(*value);
                for (case, edge) in cases {
                    let label = self.way(edge.to, &edge.arguments);
                    self.branch_constant(BinaryOp::Equal, Type::of(width), register, wrap(width, *case as i64), label);
                }
                self.busy = 0;
                self.go(default.to, &default.arguments, next);
            }
            Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => self.leave(self.point),
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

    /// A register that nothing needs before or behind the instruction at hand, or the one of its result.
    pub(super) fn temporary(&mut self) -> M::Reg {
        match self.temporary_number() {
            Some(number) => self.register(number),
            None => self.frame,
        }
    }

    pub(super) fn temporary_number(&mut self) -> Option<u8> {
        let before = self.homes.occupied[self.point];
        let behind = self.homes.occupied.get(self.point + 1).copied().unwrap_or(0);
        let own = self.result.map_or(0, |number| 1u32 << number) & !before;
        let free = !(before | behind & !own | self.busy);
        let number = free.trailing_zeros() as u8;
        if number >= self.most_registers {
            self.shortage = self.shortage.or(Some(self.point));
            return None;
        }
        self.busy |= 1 << number;
        Some(number)
    }

    /// A register that holds this value now.
    pub(super) fn read(&mut self, value: Value) -> M::Reg {
        let ty = Type::of(self.known.values.width(value));
        if let Some(number) = self.known.values.constant(value) {
            let register = self.temporary();
            self.set(ty, register, number);
            return register;
        }
        match self.home(value) {
            Home::Register(number) => self.register(number),
            Home::Cell(cell) => {
                let root = self.known.values.root(value).expect("a value with a cell has a root");
                let register = self.temporary();
                self.load_cell(Type::of(self.known.values.width(root)), register, cell);
                register
            }
            // It is not read where this could matter: code that is never reached.
            Home::Nowhere => self.temporary(),
        }
    }

    /// The register to write this result to; `finish` follows.
    pub(super) fn target(&mut self, value: Value) -> M::Reg {
        match self.home(value) {
            Home::Register(number) => self.register(number),
            Home::Cell(_) | Home::Nowhere => self.temporary(),
        }
    }

    /// Stores the result if its home is no register.
    pub(super) fn finish(&mut self, value: Value, register: M::Reg) {
        if let Home::Cell(cell) = self.home(value) {
            self.store_cell(Type::of(self.known.values.width(value)), register, cell);
        }
    }

    /// The way out before the instruction at hand.
    pub(super) fn exit(&mut self) -> Label {
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

/// Whether an instruction was written, or the interpreter has to execute it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Written {
    All,
    Nothing,
}

/// The distance of a cell from the frame's address.
pub(super) fn at(cell: usize) -> i32 {
    (cell * 8) as i32
}

pub(super) fn inverse(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Equal => BinaryOp::NotEqual,
        BinaryOp::NotEqual => BinaryOp::Equal,
        BinaryOp::Less => BinaryOp::GreaterEqual,
        BinaryOp::LessEqual => BinaryOp::Greater,
        BinaryOp::Greater => BinaryOp::LessEqual,
        BinaryOp::GreaterEqual => BinaryOp::Less,
        other => other,
    }
}
