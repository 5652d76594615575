//! Control transfer along edges: the arguments of an edge become the parameters of its target by a parallel move, then
//! the code jumps or falls through. Where a conditional branch needs moves, they are emitted out of line, in a stub.

use super::allocate::MachineLocation;
use super::code_layout::chance;
use super::emit::{COMPARES, Emitter, Stub};
use super::operand_type::Type;
use super::value_forms::ValueForm;
use quaject_esp_ir::ir::{BlockId, Instruction, Terminator, Value};
use quaject_vcode::{Asm, Core, Extension, Label, Machine};

impl<M: Machine> Emitter<'_, '_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    /// The arguments of an edge and the live parameters that they become.
    pub(super) fn live_moves(&self, to: BlockId, arguments: &[Value]) -> Vec<(Value, Value)> {
        let start = self.analyses.layout.start[to.0 as usize].expect("an edge leads to compiled code");
        let parameters = &self.analyses.layout.body.blocks[to.0 as usize].parameters;
        let pairs = arguments.iter().copied().zip(parameters.iter().copied());
        pairs.filter(|(_, parameter)| self.analyses.live.is_live(start, *parameter)).collect()
    }

    /// The label to branch to for an edge: the target, or a stub with the moves.
    pub(super) fn edge_label(&mut self, to: BlockId, arguments: &[Value]) -> Label {
        let live_moves = self.live_moves(to, arguments);
        if live_moves.is_empty() {
            return self.label_of(to);
        }
        let label = self.asm.label();
        self.stubs.push(Stub { label, point: self.point, to, live_moves });
        label
    }

    /// Follows an edge from here: its moves, and those of forwarding blocks on the way, then a jump.
    pub(super) fn follow_edge(&mut self, to: BlockId, arguments: &[Value], next: Option<BlockId>) {
        let live_moves = self.live_moves(to, arguments);
        self.emit_parallel_move(to, &live_moves);
        self.emit_jump(to, next);
    }

    /// Jumps to a block whose parameters are set, unless it is emitted `next`.
    fn emit_jump(&mut self, to: BlockId, next: Option<BlockId>) {
        let to = self.final_target(to);
        if next == Some(to) {
            return;
        }
        match self.forwarding_edge(to) {
            // This terminates: every loop has a header, which is not a forwarding block.
            Some(edge) => {
                self.begin(self.analyses.layout.points_of(to).end - 1, None);
                self.follow_edge(edge.to, &edge.arguments, next);
            }
            None if self.duplicate_loop_test(to) => {}
            None => {
                let label = self.label_of(to);
                self.asm.j(label);
            }
        }
    }

    /// Loop inversion: a header that only tests its condition is duplicated at the back edge, which saves a jump.
    fn duplicate_loop_test(&mut self, block: BlockId) -> bool {
        let layout = self.analyses.layout;
        let code = &layout.body.blocks[block.0 as usize];
        let Terminator::Branch { condition, then, otherwise } = &code.terminator else { return false };
        let ValueForm::FusedCompare(op, a, b) = self.analyses.values.forms[condition.0 as usize] else { return false };
        let is_written = |instruction: &Instruction| {
            let result = instruction.result;
            result.is_none_or(|result| self.analyses.values.forms[result.0 as usize] == ValueForm::Computed)
        };
        if !layout.is_loop_header[block.0 as usize] || code.instructions.iter().any(is_written) {
            return false;
        }
        let is_likely = chance(layout.body, block, *condition) >= 0.5;
        let (op, hot, cold) =
            if is_likely { (op, then, otherwise) } else { (op.inverted().expect(COMPARES), otherwise, then) };
        if !self.live_moves(hot.to, &hot.arguments).is_empty() {
            return false;
        }
        let points = layout.points_of(block);
        self.begin(points.start, None);
        let known = self.exits.iter().find(|(point, _)| *point == points.start).map(|(_, label)| *label);
        let out = known.unwrap_or_else(|| self.exit_label());
        self.consume_fuel(out);
        self.begin(points.end - 1, None);
        let label = self.label_of(hot.to);
        self.branch(op, a, b, label);
        self.busy = 0;
        let live_moves = self.live_moves(cold.to, &cold.arguments);
        self.emit_parallel_move(cold.to, &live_moves);
        let label = self.label_of(cold.to);
        self.asm.j(label);
        true
    }

    pub(super) fn write_stubs(&mut self) {
        for Stub { label, point, to, live_moves } in std::mem::take(&mut self.stubs) {
            self.asm.bind(label);
            self.begin(point, None);
            self.emit_parallel_move(to, &live_moves);
            self.emit_jump(to, None);
        }
    }

    /// Emits the moves of an edge as if all were done at once. A cycle is broken by a temporary.
    pub(super) fn emit_parallel_move(&mut self, to: BlockId, live_moves: &[(Value, Value)]) {
        let start = self.analyses.layout.start[to.0 as usize].expect("an edge leads to compiled code");
        let mut moves: Vec<(MachineLocation, MachineLocation, Type)> = Vec::new();
        let mut constants = Vec::new();
        for (argument, parameter) in live_moves {
            let target = self.location(*parameter);
            let ty = Type::of(self.analyses.values.width(*parameter));
            match self.analyses.values.constant(*argument) {
                Some(number) => constants.push((number, target, ty)),
                None if self.location(*argument) == target => {}
                None => moves.push((self.location(*argument), target, ty)),
            }
        }
        self.busy = self.locations.occupied[start];
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
                    // Only cycles are left: a temporary holds the first source.
                    let parked = moves[0].0;
                    let Some(number) = self.temporary_number() else { return };
                    self.copy(parked, MachineLocation::Register(number), Type::L);
                    moves.iter_mut().filter(|(source, _, _)| *source == parked).for_each(|step| {
                        step.0 = MachineLocation::Register(number);
                    });
                }
            }
        }
        for (number, target, ty) in constants {
            match target {
                MachineLocation::Register(target) => {
                    let register = self.register(target);
                    self.set(ty, register, number);
                }
                MachineLocation::Cell(cell) => {
                    let before = self.busy;
                    let register = self.temporary();
                    self.set(ty, register, number);
                    self.store_cell(ty, register, cell);
                    self.busy = before;
                }
                MachineLocation::None => {}
            }
        }
        self.busy = 0;
    }

    fn reserve(&mut self, location: MachineLocation) {
        if let MachineLocation::Register(number) = location {
            self.busy |= 1 << number;
        }
    }

    pub(super) fn copy(&mut self, source: MachineLocation, target: MachineLocation, ty: Type) {
        match (source, target) {
            (MachineLocation::Register(source), MachineLocation::Register(target)) => {
                let (target, source) = (self.register(target), self.register(source));
                self.asm.movl(target, source);
            }
            (MachineLocation::Register(source), MachineLocation::Cell(cell)) => {
                let source = self.register(source);
                self.store_cell(ty, source, cell);
            }
            (MachineLocation::Cell(cell), MachineLocation::Register(target)) => {
                let target = self.register(target);
                self.load_cell(ty, target, cell);
            }
            (MachineLocation::Cell(from), MachineLocation::Cell(to)) => {
                let before = self.busy;
                let register = self.temporary();
                self.load_cell(ty, register, from);
                self.store_cell(ty, register, to);
                self.busy = before;
            }
            (MachineLocation::None, _) | (_, MachineLocation::None) => {}
        }
    }
}
