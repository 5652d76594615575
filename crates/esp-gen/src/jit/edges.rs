//! From block to block: what an edge hands over is moved, all at once; then the code goes there, or goes on. Where a
//! branch's edge asks for moves, they are out of line.

use super::allocate::Home;
use super::emit::{Emitter, inverse};
use super::flow::{Point, chance};
use super::operate::Type;
use super::values::Form;
use quaject_esp_ir::ir::{BlockId, Instruction, Terminator, Value};
use quaject_vcode::{Asm, Core, Extension, Label, Machine};

/// Moves that an edge asks for, out of line: a branch leads here.
pub(super) struct Stub {
    label: Label,
    /// The branch.
    point: Point,
    to: BlockId,
    /// What becomes which parameter.
    handed: Vec<(Value, Value)>,
}

impl<M: Machine> Emitter<'_, '_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    /// What is handed to those parameters of a block that matter.
    pub(super) fn handed(&self, to: BlockId, arguments: &[Value]) -> Vec<(Value, Value)> {
        let start = self.known.flow.start[to.0 as usize].expect("an edge leads to compiled code");
        let parameters = &self.known.flow.body.blocks[to.0 as usize].parameters;
        let pairs = arguments.iter().copied().zip(parameters.iter().copied());
        pairs.filter(|(_, parameter)| self.known.live.is_live(start, *parameter)).collect()
    }

    /// A label that leads along an edge.
    pub(super) fn way(&mut self, to: BlockId, arguments: &[Value]) -> Label {
        let handed = self.handed(to, arguments);
        if handed.is_empty() {
            return self.label_of(to);
        }
        let label = self.asm.label();
        self.stubs.push(Stub { label, point: self.point, to, handed });
        label
    }

    /// Goes along an edge from here. What blocks that only lead on hand over is handed over on the way.
    pub(super) fn go(&mut self, to: BlockId, arguments: &[Value], next: Option<BlockId>) {
        let handed = self.handed(to, arguments);
        self.hand_over(to, &handed);
        self.arrive(to, next);
    }

    /// Goes to a block of which the parameters have been handed over.
    fn arrive(&mut self, to: BlockId, next: Option<BlockId>) {
        let to = self.end(to);
        if next == Some(to) {
            return;
        }
        match self.leads_on(to) {
            // Every loop has a block where turns are counted, so this ends.
            Some(edge) => {
                self.begin(self.known.flow.points_of(to).end - 1, None);
                self.go(edge.to, &edge.arguments, next);
            }
            None if self.decide_at_once(to) => {}
            None => {
                let label = self.label_of(to);
                self.asm.j(label);
            }
        }
    }

    /// Where a loop begins with nothing but a decision, that is made where it comes round, too: one jump, not two.
    fn decide_at_once(&mut self, block: BlockId) -> bool {
        let flow = self.known.flow;
        let code = &flow.body.blocks[block.0 as usize];
        let Terminator::Branch { condition, then, otherwise } = &code.terminator else { return false };
        let Form::Compared(op, a, b) = self.known.values.forms[condition.0 as usize] else { return false };
        let is_written = |instruction: &Instruction| {
            let result = instruction.result;
            result.is_none_or(|result| self.known.values.forms[result.0 as usize] == Form::Own)
        };
        if !flow.turns[block.0 as usize] || code.instructions.iter().any(is_written) {
            return false;
        }
        let is_likely = chance(flow.body, block, *condition) >= 0.5;
        let (op, hot, cold) = if is_likely { (op, then, otherwise) } else { (inverse(op), otherwise, then) };
        if !self.handed(hot.to, &hot.arguments).is_empty() {
            return false;
        }
        let points = flow.points_of(block);
        self.begin(points.start, None);
        let known = self.exits.iter().find(|(point, _)| *point == points.start).map(|(_, label)| *label);
        let out = known.unwrap_or_else(|| self.exit());
        self.count_turn(out);
        self.begin(points.end - 1, None);
        let label = self.label_of(hot.to);
        self.branch(op, a, b, label);
        self.busy = 0;
        let handed = self.handed(cold.to, &cold.arguments);
        self.hand_over(cold.to, &handed);
        let label = self.label_of(cold.to);
        self.asm.j(label);
        true
    }

    pub(super) fn write_stubs(&mut self) {
        for Stub { label, point, to, handed } in std::mem::take(&mut self.stubs) {
            self.asm.bind(label);
            self.begin(point, None);
            self.hand_over(to, &handed);
            self.arrive(to, None);
        }
    }

    /// Moves what an edge hands over, all at once.
    pub(super) fn hand_over(&mut self, to: BlockId, handed: &[(Value, Value)]) {
        let start = self.known.flow.start[to.0 as usize].expect("an edge leads to compiled code");
        let mut moves: Vec<(Home, Home, Type)> = Vec::new();
        let mut constants = Vec::new();
        for (argument, parameter) in handed {
            let target = self.home(*parameter);
            let ty = Type::of(self.known.values.width(*parameter));
            match self.known.values.constant(*argument) {
                Some(number) => constants.push((number, target, ty)),
                None if self.home(*argument) == target => {}
                None => moves.push((self.home(*argument), target, ty)),
            }
        }
        self.busy = self.homes.occupied[start];
        moves.iter().for_each(|(_, target, _)| self.reserve(*target));
        constants.iter().for_each(|(_, target, _)| self.reserve(*target));
        while !moves.is_empty() {
            let free = moves.iter().position(|(_, target, _)| moves.iter().all(|(source, _, _)| source != target));
            match free {
                Some(index) => {
                    let (source, target, ty) = moves.swap_remove(index);
                    self.copy(source, target, ty);
                }
                None => {
                    // A circle: the first source waits somewhere else.
                    let parked = moves[0].0;
                    let Some(number) = self.temporary_number() else { return };
                    self.copy(parked, Home::Register(number), Type::L);
                    moves.iter_mut().filter(|(source, _, _)| *source == parked).for_each(|step| {
                        step.0 = Home::Register(number);
                    });
                }
            }
        }
        for (number, target, ty) in constants {
            match target {
                Home::Register(target) => {
                    let register = self.register(target);
                    self.set(ty, register, number);
                }
                Home::Cell(cell) => {
                    let before = self.busy;
                    let register = self.temporary();
                    self.set(ty, register, number);
                    self.store_cell(ty, register, cell);
                    self.busy = before;
                }
                Home::Nowhere => {}
            }
        }
        self.busy = 0;
    }

    fn reserve(&mut self, home: Home) {
        if let Home::Register(number) = home {
            self.busy |= 1 << number;
        }
    }

    pub(super) fn copy(&mut self, source: Home, target: Home, ty: Type) {
        match (source, target) {
            (Home::Register(source), Home::Register(target)) => {
                let (target, source) = (self.register(target), self.register(source));
                self.asm.movl(target, source);
            }
            (Home::Register(source), Home::Cell(cell)) => {
                let source = self.register(source);
                self.store_cell(ty, source, cell);
            }
            (Home::Cell(cell), Home::Register(target)) => {
                let target = self.register(target);
                self.load_cell(ty, target, cell);
            }
            (Home::Cell(from), Home::Cell(to)) => {
                let before = self.busy;
                let register = self.temporary();
                self.load_cell(ty, register, from);
                self.store_cell(ty, register, to);
                self.busy = before;
            }
            (Home::Nowhere, _) | (_, Home::Nowhere) => {}
        }
    }
}
