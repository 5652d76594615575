//! The ways between machine code and the interpreter: out, with every variable written to the frame; in, with those that
//! matter loaded.

use super::Entry;
use super::allocate::Home;
use super::emit::{Emitter, at};
use super::flow::Point;
use super::operate::Type;
use super::values::Form;
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
            self.leave(point);
        }
    }

    /// Writes every variable to the frame and returns to the interpreter, which goes on at `point`.
    pub(super) fn leave(&mut self, point: Point) {
        let count = self.known.flow.body.values.len();
        if let Home::Register(number) = self.homes.fuel {
            let fuel = self.register(number);
            self.asm.stii(fuel, self.frame, at(Cell::Fuel.index(count)));
        }
        let values = self.known.values;
        let (mut low, mut rest) = (Vec::new(), Vec::new());
        for value in self.known.live.before(point) {
            match (self.home(value), values.forms[value.0 as usize]) {
                (Home::Register(number), Form::Low(_)) => low.push((value, number)),
                (Home::Register(number), _) => {
                    let register = self.register(number);
                    self.extend_and_store(value, register);
                }
                (Home::Cell(_) | Home::Nowhere, _) => rest.push(value),
            }
        }
        // Cutting a register short leaves the bits that narrower values have.
        low.sort_by_key(|(value, _)| std::cmp::Reverse(values.width(*value).bits));
        for (value, number) in low {
            let register = self.register(number);
            self.cut(values.width(value), register, register);
            self.extend_and_store(value, register);
        }
        // All registers are free from here.
        let register = self.register(0);
        for value in rest {
            match (values.constant(value), self.home(value)) {
                (Some(number), _) => {
                    self.asm.setl(register, number);
                    self.asm.stli(register, self.frame, at(value.0 as usize));
                }
                (None, Home::Cell(cell)) => {
                    let root = values.root(value).expect("a value with a cell has a root");
                    let ty = Type::of(values.width(root));
                    self.load_cell(ty, register, cell);
                    if let Form::Low(_) = values.forms[value.0 as usize] {
                        self.cut(values.width(value), register, register);
                    }
                    self.extend_and_store(value, register);
                }
                (None, Home::Register(_) | Home::Nowhere) => {}
            }
        }
        self.asm.seti(register, self.known.flow.points[point].1 as i32);
        self.asm.reti(register);
    }

    fn extend_and_store(&mut self, value: Value, register: M::Reg) {
        match Type::of(self.known.values.width(value)) {
            Type::I => self.asm.cvi2l(register, register),
            Type::U => self.asm.cvu2ul(register, register),
            Type::L | Type::UL => {}
        }
        self.asm.stli(register, self.frame, at(value.0 as usize));
    }

    pub(super) fn write_entries(&mut self) -> Vec<Entry> {
        let mut written = Vec::new();
        for (point, label) in std::mem::take(&mut self.entries) {
            let (_, position) = self.known.flow.points[point];
            written.push(Entry { position, offset: self.asm.position() });
            self.fill_constant_slots();
            self.load_variables(point);
            self.asm.j(label);
        }
        written
    }

    /// Loads what matters at a point from the frame.
    fn load_variables(&mut self, point: Point) {
        let values = self.known.values;
        // Of several names of a value, that with most bits says what it is.
        let mut names: Vec<(Value, u32, Value)> = Vec::new();
        for value in self.known.live.before(point) {
            let Some(root) = values.root(value) else { continue };
            let bits = match values.forms[value.0 as usize] {
                Form::Low(_) => values.width(value).bits,
                Form::Own | Form::Same(_) | Form::Constant(_) | Form::Compared(..) => 64 + u32::from(value == root),
            };
            names.push((root, bits, value));
        }
        names.sort_by_key(|(root, bits, _)| (*root, std::cmp::Reverse(*bits)));
        names.dedup_by_key(|(root, _, _)| *root);
        let scratch = self.register(0);
        for (root, _, value) in &names {
            let ty = Type::of(values.width(*root));
            if let Home::Cell(cell) = self.homes.of(*root)
                && cell != value.0 as usize
            {
                self.load_cell(ty, scratch, value.0 as usize);
                self.store_cell(ty, scratch, cell);
            }
        }
        for (root, _, value) in &names {
            if let Home::Register(number) = self.homes.of(*root) {
                let register = self.register(number);
                self.load_cell(Type::of(values.width(*root)), register, value.0 as usize);
            }
        }
        let count = self.known.flow.body.values.len();
        if let Home::Register(number) = self.homes.memory {
            let register = self.register(number);
            self.load_cell(Type::L, register, Cell::Memory.index(count));
        }
        if let Home::Register(number) = self.homes.fuel {
            let register = self.register(number);
            self.load_cell(Type::I, register, Cell::Fuel.index(count));
        }
    }
}
