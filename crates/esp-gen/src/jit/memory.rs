//! Instructions that access an instance's memory: places become addresses, and indices are compared with lengths unless
//! their interval shows that they are in bounds. Objects of pools are left to the interpreter.

use super::allocate::MachineLocation;
use super::branch_facts::BranchFact;
use super::emit::{Emitter, Written, at};
use super::operand_type::Type;
use quaject_esp_exec::native::{Cell, Width, width};
use quaject_esp_ir::ir::{self, Base, BinaryOp, Op, Place, Projection, TypeId, Value};
use quaject_esp_ir::typing::place_type;
use quaject_vcode::{Asm, Core, Extension, Machine};

/// The maximal size of values in memory that are copied and cleared by inline instructions.
const MAX_INLINE_BYTES: usize = 64;

/// An address: a register, elements from it, and a distance from there.
struct Address<R> {
    base: R,
    index: Option<Index<R>>,
    distance: usize,
}

/// So many elements of this size, in bytes.
#[derive(Clone, Copy)]
struct Index<R> {
    register: R,
    size: usize,
}

impl<R: Copy> Address<R> {
    /// The index, if what is accessed is an element: the one instruction that accesses it scales the index.
    fn of_element(&self, bytes: usize) -> Option<R> {
        self.index.filter(|index| index.size == bytes).map(|index| index.register)
    }
}

impl<M: Machine> Emitter<'_, '_, M>
where
    for<'x> Asm<'x, M>: Core<Reg = M::Reg, Float = M::Float> + Extension,
{
    /// Emits an instruction that accesses memory.
    pub(super) fn memory_instruction(&mut self, op: &Op, result: Option<Value>) -> Written {
        let written = match (op, result) {
            (Op::Load(place), Some(result)) => self.load(place, result),
            (Op::Store(place, value), _) => self.store(place, *value),
            (Op::Length(place), Some(result)) => match self.constant_string(place) {
                Some(length) => {
                    let d = self.result_register(result);
                    self.set(Type::I, d, length as i64);
                    self.store_result(result, d);
                    Some(())
                }
                None => self.word(place, result),
            },
            (Op::Tag(place), Some(result)) => self.word(place, result),
            (Op::Copy { to, from }, _) => self.copy_value(to, from),
            (Op::SetTag(place, tag), _) => self.set_tag(place, *tag),
            (Op::SetBytes(place, bytes), _) => match self.constant_string(place) {
                Some(_) => Some(()),
                None => self.set_bytes(place, bytes),
            },
            (_, _) => None,
        };
        if written.is_some() { Written::All } else { Written::Nothing }
    }

    fn type_of(&self, place: &Place) -> TypeId {
        let types = &self.analyses.program.types;
        place_type(types, self.analyses.layout.body, place).expect("the verifier types every place")
    }

    /// The length of a constant slot, if the place is one.
    fn constant_string(&self, place: &Place) -> Option<usize> {
        match place.base {
            Base::Slot(slot) if place.path.is_empty() => self.analyses.constant_slots.string(slot).map(<[u8]>::len),
            Base::Slot(_) | Base::Object(_) | Base::Constant(..) => None,
        }
    }

    fn memory_register(&mut self) -> M::Reg {
        match self.locations.memory {
            MachineLocation::Register(number) => self.register(number),
            MachineLocation::Cell(cell) => {
                let register = self.temporary();
                self.asm.ldpi(register, self.frame, at(cell));
                register
            }
            MachineLocation::None => self.frame,
        }
    }

    /// The address of a place. None if the interpreter has to execute the access; nothing is emitted then that has
    /// effects.
    fn address(&mut self, place: &Place) -> Option<Address<M::Reg>> {
        let (slot, mut address) = match place.base {
            Base::Slot(slot) => {
                let base = self.memory_register();
                (Some(slot), Address { base, index: None, distance: self.analyses.slots[slot.0 as usize] })
            }
            Base::Constant(id, _) => {
                let base = self.temporary();
                self.asm.setp(base, self.analyses.constants.address(id));
                (None, Address { base, index: None, distance: 0 })
            }
            Base::Object(_) => return None,
        };
        let mut path = Place { base: place.base, path: Vec::new() };
        for step in &place.path {
            if matches!(step, Projection::Element(_) | Projection::Inside(_)) {
                address = self.unscaled(address);
            }
            let ty = self.type_of(&path);
            match (*step, self.analyses.program.types.get(ty)) {
                (Projection::Field(field), _) => {
                    address.distance += self.analyses.extents.field(self.analyses.program, ty, field);
                }
                (Projection::Payload(_), _) => address.distance += 4,
                (Projection::Element(index) | Projection::Inside(index), ir::Type::Array { length, element }) => {
                    let size = self.analyses.extents.size(*element);
                    self.element(&mut address, index, *length as usize, size)?;
                }
                (Projection::Element(index) | Projection::Inside(index), _) => {
                    let whole = slot.filter(|_| path.path.is_empty());
                    match whole.and_then(|slot| self.analyses.constant_slots.string(slot)).map(<[u8]>::len) {
                        Some(length) => {
                            self.element(&mut address, index, length, 1)?;
                            address.distance += 4;
                        }
                        None if whole.is_some_and(|slot| self.is_inside(slot, index)) => {
                            let register = self.operand_register(index);
                            address.index = Some(Index { register, size: 1 });
                            address.distance += 4;
                        }
                        None => self.byte(&mut address, index)?,
                    }
                }
            }
            path.path.push(*step);
        }
        // What is copied from there is in reach too.
        (address.distance < i32::MAX as usize - MAX_INLINE_BYTES).then_some(address)
    }

    /// The address in a register and a distance.
    fn unscaled(&mut self, Address { base, index, distance }: Address<M::Reg>) -> Address<M::Reg> {
        let Some(Index { register, size }) = index else { return Address { base, index, distance } };
        let sum = self.temporary();
        match size {
            1 => self.asm.addl(sum, register, base),
            size if size.is_power_of_two() => {
                self.asm.lshli(sum, register, i64::from(size.trailing_zeros()));
                self.asm.addl(sum, sum, base);
            }
            size => {
                self.asm.mulli(sum, register, size as i64);
                self.asm.addl(sum, sum, base);
            }
        }
        Address { base: sum, index: None, distance }
    }

    /// Likewise the address of a place.
    fn unscaled_address(&mut self, place: &Place) -> Option<Address<M::Reg>> {
        let address = self.address(place)?;
        Some(self.unscaled(address))
    }

    fn element(&mut self, address: &mut Address<M::Reg>, index: Value, length: usize, size: usize) -> Option<()> {
        if let Some(number) = self.analyses.values.constant(index) {
            let number = usize::try_from(number).ok().filter(|number| *number < length)?;
            address.distance += number * size;
            return Some(());
        }
        let bound = i32::try_from(length).ok().filter(|length| *length > 0)?;
        let register = self.operand_register(index);
        let range = self.range(index);
        if range.0 < 0 || range.1 >= length as i128 {
            let out = self.exit_label();
            match self.analyses.values.width(index).bits {
                64 => self.asm.bgeuli(register, bound as u64, out),
                _ => self.asm.bgeui(register, bound as u32, out),
            }
        }
        address.index = Some(Index { register, size });
        Some(())
    }

    /// Whether a branch has shown the index to be below the length of the slot.
    fn is_inside(&self, slot: ir::SlotId, index: Value) -> bool {
        let block = self.analyses.layout.points[self.point].0;
        let is_below = |guard: BranchFact| {
            guard.op == BinaryOp::Less && guard.a == index && self.analyses.lengths.is_length(slot, guard.b)
        };
        self.analyses.values.constant(index).is_none()
            && self.range(index).0 >= 0
            && self.analyses.guards.of(block).any(is_below)
    }

    fn byte(&mut self, address: &mut Address<M::Reg>, index: Value) -> Option<()> {
        let distance = i32::try_from(address.distance).ok()?;
        let out = self.exit_label();
        let length = self.temporary();
        self.asm.ldui(length, address.base, distance);
        if let Some(number) = self.analyses.values.constant(index) {
            let number = u32::try_from(number).ok().filter(|number| *number < i32::MAX as u32)?;
            self.asm.bleui(length, number, out);
            address.distance += 4 + number as usize;
            return Some(());
        }
        let register = self.operand_register(index);
        match self.analyses.values.width(index).bits {
            64 => self.asm.bgeul(register, length, out),
            _ => self.asm.bgeu(register, length, out),
        }
        address.index = Some(Index { register, size: 1 });
        address.distance += 4;
        Some(())
    }

    fn load(&mut self, place: &Place, result: Value) -> Option<()> {
        let Width { bits, signed, .. } = self.analyses.values.width(result);
        let address = self.address(place)?;
        if let Some(index) = address.of_element(bits as usize / 8) {
            let (base, distance) = (address.base, address.distance as i32);
            let d = self.result_register(result);
            match (bits, signed) {
                (8, true) => self.asm.ldxc(d, base, index, distance),
                (8, false) => self.asm.ldxuc(d, base, index, distance),
                (16, true) => self.asm.ldxs(d, base, index, distance),
                (16, false) => self.asm.ldxus(d, base, index, distance),
                (32, true) => self.asm.ldxi(d, base, index, distance),
                (32, false) => self.asm.ldxu(d, base, index, distance),
                (_, _) => self.asm.ldxl(d, base, index, distance),
            }
            self.store_result(result, d);
            return Some(());
        }
        let Address { base, distance, .. } = self.unscaled(address);
        let distance = distance as i32;
        let d = self.result_register(result);
        match (bits, signed) {
            (8, true) => self.asm.ldci(d, base, distance),
            (8, false) => self.asm.lduci(d, base, distance),
            (16, true) => self.asm.ldsi(d, base, distance),
            (16, false) => self.asm.ldusi(d, base, distance),
            (32, true) => self.asm.ldii(d, base, distance),
            (32, false) => self.asm.ldui(d, base, distance),
            (_, _) => self.asm.ldli(d, base, distance),
        }
        self.store_result(result, d);
        Some(())
    }

    fn store(&mut self, place: &Place, value: Value) -> Option<()> {
        let bytes = width(self.analyses.program, self.type_of(place))?.bits as usize / 8;
        let address = self.address(place)?;
        if let Some(index) = address.of_element(bytes) {
            let (base, distance) = (address.base, address.distance as i32);
            let s = self.operand_register(value);
            match bytes {
                1 => self.asm.stxuc(s, base, index, distance),
                2 => self.asm.stxus(s, base, index, distance),
                4 => self.asm.stxu(s, base, index, distance),
                _ => self.asm.stxul(s, base, index, distance),
            }
            return Some(());
        }
        let Address { base, distance, .. } = self.unscaled(address);
        let s = self.operand_register(value);
        self.store_bytes(s, base, distance as i32, bytes);
        Some(())
    }

    fn store_bytes(&mut self, s: M::Reg, base: M::Reg, distance: i32, bytes: usize) {
        match bytes {
            1 => self.asm.stuci(s, base, distance),
            2 => self.asm.stusi(s, base, distance),
            4 => self.asm.stui(s, base, distance),
            _ => self.asm.stuli(s, base, distance),
        }
    }

    fn load_bytes(&mut self, d: M::Reg, base: M::Reg, distance: i32, bytes: usize) {
        match bytes {
            1 => self.asm.lduci(d, base, distance),
            2 => self.asm.ldusi(d, base, distance),
            4 => self.asm.ldui(d, base, distance),
            _ => self.asm.lduli(d, base, distance),
        }
    }

    /// A length or tag.
    fn word(&mut self, place: &Place, result: Value) -> Option<()> {
        let Address { base, distance, .. } = self.unscaled_address(place)?;
        let d = self.result_register(result);
        self.asm.ldui(d, base, distance as i32);
        self.store_result(result, d);
        Some(())
    }

    fn copy_value(&mut self, to: &Place, from: &Place) -> Option<()> {
        let ty = self.type_of(to);
        let size = self.analyses.extents.size(ty);
        if ty != self.type_of(from) || size > MAX_INLINE_BYTES {
            return None;
        }
        let source = self.unscaled_address(from)?;
        let target = self.unscaled_address(to)?;
        let register = self.temporary();
        for (offset, bytes) in chunks(size) {
            self.load_bytes(register, source.base, (source.distance + offset) as i32, bytes);
            self.store_bytes(register, target.base, (target.distance + offset) as i32, bytes);
        }
        Some(())
    }

    fn set_tag(&mut self, place: &Place, tag: u32) -> Option<()> {
        self.set_content(place, &tag.to_le_bytes())
    }

    fn set_bytes(&mut self, place: &Place, bytes: &[u8]) -> Option<()> {
        let mut content = (bytes.len() as u32).to_le_bytes().to_vec();
        content.extend(bytes);
        self.set_content(place, &content)
    }

    /// Stores these bytes, and zeros behind them.
    fn set_content(&mut self, place: &Place, content: &[u8]) -> Option<()> {
        let size = self.analyses.extents.size(self.type_of(place));
        if size > MAX_INLINE_BYTES {
            return None;
        }
        let Address { base, distance, .. } = self.unscaled_address(place)?;
        let register = self.temporary();
        let mut content = content.to_vec();
        content.resize(size, 0);
        self.write_content(register, base, distance, &content);
        Some(())
    }

    fn write_content(&mut self, register: M::Reg, base: M::Reg, distance: usize, content: &[u8]) {
        let mut held = None;
        for (offset, bytes) in chunks(content.len()) {
            let mut number = [0u8; 8];
            number[..bytes].copy_from_slice(&content[offset..offset + bytes]);
            let number = i64::from_le_bytes(number);
            if held != Some(number) {
                self.asm.setl(register, number);
                held = Some(number);
            }
            self.store_bytes(register, base, (distance + offset) as i32, bytes);
        }
    }

    /// Initialises the constant slots, at an entry.
    pub(super) fn fill_constant_slots(&mut self) {
        let strings = &self.analyses.constant_slots.strings;
        if strings.iter().all(|string| string.is_none()) {
            return;
        }
        let (memory, register) = (self.register(0), self.register(1));
        let count = self.analyses.layout.body.values.len();
        self.asm.ldpi(memory, self.frame, at(Cell::Memory.index(count)));
        for (slot, string) in strings.iter().enumerate() {
            let Some(string) = string else { continue };
            let mut content = (string.len() as u32).to_le_bytes().to_vec();
            content.extend(string);
            self.write_content(register, memory, self.analyses.slots[slot], &content);
        }
    }
}

/// A size as chunks that one instruction loads or stores: offset and size of each.
fn chunks(size: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut offset = 0;
    std::iter::from_fn(move || {
        let bytes = [8, 4, 2, 1].into_iter().find(|bytes| offset + bytes <= size)?;
        offset += bytes;
        Some((offset - bytes, bytes))
    })
}
