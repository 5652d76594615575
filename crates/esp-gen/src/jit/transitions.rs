//! Transitions between machine code and the interpreter. An exit writes every live variable to the frame and returns
//! the interpreter's position (deoptimisation); an entry loads the live variables from the frame (on-stack
//! replacement).

use super::Entry;
use super::allocate::MachineLocation;
use super::code_layout::Point;
use super::emit::{Emitter, at};
use super::operand_type::Type;
use super::value_forms::ValueForm;
use quaject_esp_exec::native::Cell;
use quaject_esp_ir::ir::Value;
use quaject_vcode::{Asm, Core, Extension, Machine};

impl<M: Machine> Emitter<'_, '_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    pub(super) fn write_exits(&mut self) {
        for (point, label) in std::mem::take(&mut self.exits) {
            self.asm.bind(label);
            self.emit_exit(point);
        }
    }

    /// Writes every live variable to the frame and returns to the interpreter, which resumes at `point`.
    pub(super) fn emit_exit(&mut self, point: Point) {
        let count = self.analyses.layout.body.values.len();
        if let MachineLocation::Register(number) = self.locations.fuel {
            let fuel = self.register(number);
            self.asm.stii(fuel, self.frame, at(Cell::Fuel.index(count)));
        }
        let values = self.analyses.values;
        let (mut whole, mut low, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        for value in self.analyses.live.before(point) {
            match (self.location(value), values.forms[value.0 as usize]) {
                (MachineLocation::Register(number), ValueForm::Truncated(_)) => low.push((value, number)),
                (MachineLocation::Register(number), _) => whole.push((value, number)),
                (MachineLocation::Cell(_) | MachineLocation::None, _) => rest.push(value),
            }
        }
        // A register may hold a number both as `int` and as `u32`. Machines that keep both sign-extended extend an
        // `int` by nothing, which is wrong behind the zero extension of the `u32`: signed numbers come first.
        whole.sort_by_key(|(value, _)| Type::of(values.width(*value)) != Type::I);
        for (value, number) in whole {
            let register = self.register(number);
            self.extend_and_store(value, register);
        }
        // Truncation keeps the bits that narrower values need: the widest comes first.
        low.sort_by_key(|(value, _)| std::cmp::Reverse(values.width(*value).bits));
        for (value, number) in low {
            let register = self.register(number);
            self.truncate(values.width(value), register, register);
            self.extend_and_store(value, register);
        }
        // All registers are free from here.
        let register = self.register(0);
        for value in rest {
            match (values.constant(value), self.location(value)) {
                (Some(number), _) => {
                    self.asm.setl(register, number);
                    self.asm.stli(register, self.frame, at(value.0 as usize));
                }
                (None, MachineLocation::Cell(cell)) => {
                    let root = values.root(value).expect("a value with a cell has a root");
                    let ty = Type::of(values.width(root));
                    self.load_cell(ty, register, cell);
                    if let ValueForm::Truncated(_) = values.forms[value.0 as usize] {
                        self.truncate(values.width(value), register, register);
                    }
                    self.extend_and_store(value, register);
                }
                (None, MachineLocation::Register(_) | MachineLocation::None) => {}
            }
        }
        self.asm.seti(register, self.analyses.layout.points[point].1 as i32);
        self.asm.reti(register);
    }

    fn extend_and_store(&mut self, value: Value, register: M::Reg) {
        match Type::of(self.analyses.values.width(value)) {
            Type::I => self.asm.cvi2l(register, register),
            Type::U => self.asm.cvu2ul(register, register),
            Type::L | Type::UL => {}
        }
        self.asm.stli(register, self.frame, at(value.0 as usize));
    }

    pub(super) fn write_entries(&mut self) -> Vec<Entry> {
        let mut written = Vec::new();
        for (point, label) in std::mem::take(&mut self.entries) {
            let (_, position) = self.analyses.layout.points[point];
            written.push(Entry { position, offset: self.asm.position() });
            self.fill_constant_slots();
            self.load_variables(point);
            self.asm.j(label);
        }
        written
    }

    /// Loads the variables that are live at a point from the frame.
    fn load_variables(&mut self, point: Point) {
        let values = self.analyses.values;
        // Of several names of one root, the widest determines its bits.
        let mut names: Vec<(Value, u32, Value)> = Vec::new();
        for value in self.analyses.live.before(point) {
            let Some(root) = values.root(value) else { continue };
            let bits = match values.forms[value.0 as usize] {
                ValueForm::Truncated(_) => values.width(value).bits,
                ValueForm::Computed | ValueForm::Alias(_) | ValueForm::Constant(_) | ValueForm::FusedCompare(..) => {
                    64 + u32::from(value == root)
                }
            };
            names.push((root, bits, value));
        }
        names.sort_by_key(|(root, bits, _)| (*root, std::cmp::Reverse(*bits)));
        names.dedup_by_key(|(root, _, _)| *root);
        let scratch = self.register(0);
        for (root, _, value) in &names {
            let ty = Type::of(values.width(*root));
            if let MachineLocation::Cell(cell) = self.locations.of(*root)
                && cell != value.0 as usize
            {
                self.load_cell(ty, scratch, value.0 as usize);
                self.store_cell(ty, scratch, cell);
            }
        }
        for (root, _, value) in &names {
            if let MachineLocation::Register(number) = self.locations.of(*root) {
                let register = self.register(number);
                self.load_cell(Type::of(values.width(*root)), register, value.0 as usize);
            }
        }
        let count = self.analyses.layout.body.values.len();
        if let MachineLocation::Register(number) = self.locations.memory {
            let register = self.register(number);
            self.load_cell(Type::L, register, Cell::Memory.index(count));
        }
        if let MachineLocation::Register(number) = self.locations.fuel {
            let register = self.register(number);
            self.load_cell(Type::I, register, Cell::Fuel.index(count));
        }
    }
}
