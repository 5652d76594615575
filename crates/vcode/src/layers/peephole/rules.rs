//! Simplification of a new instruction by the held ones. Each rule is correct by itself, and none makes the code longer
//! on any machine.

use super::constants::{
    Identity, ValueClass, binary, bits, canonical, class, identity, identity_of_equals, is_short_constant,
    is_short_offset, is_signed, is_taken, low_bits, mirrored, unary,
};
use super::window::{Window, has_fixed_registers, number};
use super::{Form, Held, NONE, Shape};
use crate::generated::peephole::Op;
use crate::instruction::Family;
use crate::signature::Type;

/// The class of a source of an instruction, by its index, if copies may be propagated to it.
fn source_class(shape: &Shape, place: usize) -> Option<ValueClass> {
    match shape.family {
        // Its sources differ in type.
        Family::Binary if shape.op == Op::Crc32c => None,
        Family::Binary | Family::Shift | Family::Unary | Family::Branch => shape.ty.map(class),
        Family::Convert => shape.source.map(class),
        Family::Store if place == 0 => shape.ty.map(class),
        Family::Load | Family::Store => Some(ValueClass::Long),
        Family::Set
        | Family::Return
        | Family::Label
        | Family::Register
        | Family::Nullary
        | Family::Select
        | Family::Checked
        | Family::Exchange
        | Family::IndexedLoad
        | Family::IndexedStore
        | Family::Hint => None,
    }
}

impl Window {
    /// The simplified instruction; `None` if it is redundant.
    pub(super) fn simplify(&mut self, mut new: Held) -> Option<Held> {
        if !self.is_valid(&new) {
            return Some(new);
        }
        self.propagate_copies(&mut new);
        let shape = new.shape();
        match shape.family {
            Family::Binary | Family::Shift if shape.ty.is_some_and(|ty| !ty.is_float()) => new = self.operation(new),
            Family::Unary | Family::Convert => new = self.conversion(new).unwrap_or(new),
            Family::Load => new = self.forward_load(self.fold_address(new, 0)),
            Family::Store => {
                new = self.fold_address(new, 1);
                return (!self.is_redundant_store(&new)).then(|| {
                    self.remove_dead_store(&new);
                    new
                });
            }
            Family::Branch => return self.branch(new),
            Family::Binary
            | Family::Shift
            | Family::Set
            | Family::Return
            | Family::Label
            | Family::Register
            | Family::Nullary
            | Family::Select
            | Family::Checked
            | Family::Exchange
            | Family::IndexedLoad
            | Family::IndexedStore
            | Family::Hint => {}
        }
        if new.shape().op == Op::Mov {
            self.propagate_copies(&mut new);
        }
        (!self.is_known(&new)).then_some(new)
    }

    /// Whether the core emits it without an error: a constant fits its type, a count its width.
    pub(super) fn is_valid(&self, held: &Held) -> bool {
        let shape = held.shape();
        let Some(ty) = shape.ty.filter(|_| shape.form == Form::Immediate) else { return true };
        match (shape.family, shape.form) {
            (Family::Shift, Form::Immediate) => (0..i64::from(bits(ty, self.long))).contains(&held.constant),
            (Family::Load | Family::Store | Family::IndexedLoad | Family::IndexedStore, Form::Immediate) => {
                i32::try_from(held.constant).is_ok()
            }
            (_, Form::Immediate) if !ty.is_float() => canonical(ty, self.long, held.constant) == held.constant,
            (_, Form::Register | Form::Immediate | Form::Local) => true,
        }
    }

    /// Whether nothing that is held from `at` on writes the register.
    fn is_kept(&self, register: u8, at: usize) -> bool {
        self.held()[at..].iter().all(|held| held.to != register)
    }

    /// The constant that a register of this class holds.
    fn constant(&self, register: u8, wanted: ValueClass) -> Option<i64> {
        let (_, held) = self.writer(register)?;
        let shape = held.shape();
        let known = shape.op == Op::Set && shape.ty.map(class) == Some(wanted) && self.is_valid(held);
        known.then_some(held.constant)
    }

    /// Replaces sources that are copies by their originals.
    fn propagate_copies(&self, new: &mut Held) {
        let shape = new.shape();
        let keeps = has_fixed_registers(new);
        for (place, register) in new.from.iter_mut().enumerate().take_while(|(_, register)| **register != NONE) {
            let Some((at, held)) = self.writer(*register) else { continue };
            let copied = held.shape();
            let is_copy = copied.op == Op::Mov && !keeps && copied.ty.map(class) == source_class(shape, place);
            if is_copy && self.is_kept(held.from[0], at + 1) {
                *register = held.from[0];
            }
        }
    }

    /// `to = constant`.
    fn set(&self, new: Held, ty: Type, constant: i64) -> Option<Held> {
        let number = number(Op::Set, Some(held_type(ty)), Form::Immediate)?;
        Some(Held { constant, number, from: [NONE; 3], ..new })
    }

    /// `to = from`.
    fn copy(&self, new: Held, ty: Type, from: u8) -> Option<Held> {
        let number = number(Op::Mov, Some(held_type(ty)), Form::Register)?;
        Some(Held { constant: 0, number, from: [from, NONE, NONE], ..new })
    }

    fn simplified(&self, new: Held, ty: Type, identity: Identity, left: u8) -> Option<Held> {
        match identity {
            Identity::Left => self.copy(new, ty, left),
            Identity::Constant(constant) => self.set(new, ty, constant),
        }
    }

    /// Binary operations and shifts on integers.
    fn operation(&mut self, new: Held) -> Held {
        self.fold_operation(new).or_else(|| self.reassociate(new)).unwrap_or(new)
    }

    fn fold_operation(&self, new: Held) -> Option<Held> {
        let shape = new.shape();
        let (op, ty) = (shape.op, shape.ty?);
        let kind = source_class(shape, 0)?;
        let constant = |register| self.constant(register, kind).map(|value| canonical(ty, self.long, value));
        let left = constant(new.from[0]);
        let right = if shape.form == Form::Immediate { Some(new.constant) } else { constant(new.from[1]) };
        if let (Some(left), Some(right)) = (left, right)
            && let Some(value) = binary(op, ty, self.long, left, right).filter(|value| is_short_constant(*value))
        {
            return self.set(new, ty, value);
        }
        if let Some(identity) = right.and_then(|right| identity(op, ty, self.long, right)) {
            return self.simplified(new, ty, identity, new.from[0]);
        }
        if shape.form == Form::Register
            && mirrored(op) == Some(op)
            && let Some(identity) = left.and_then(|left| identity(op, ty, self.long, left))
        {
            return self.simplified(new, ty, identity, new.from[1]);
        }
        if shape.form == Form::Register && new.from[0] == new.from[1] {
            return self.simplified(new, ty, identity_of_equals(op)?, new.from[0]);
        }
        None
    }

    /// The constant addend of a held sum or difference, if every machine adds it in one instruction.
    fn addend(&self, held: &Held, wanted: ValueClass) -> Option<i64> {
        let shape = held.shape();
        let fits =
            shape.form == Form::Immediate && shape.ty.map(class) == Some(wanted) && is_short_offset(held.constant);
        match shape.op {
            Op::Add if fits => Some(held.constant),
            Op::Sub if fits => Some(-held.constant),
            _ => None,
        }
    }

    /// A sum of a sum: the constants are added at emission time.
    fn reassociate(&mut self, new: Held) -> Option<Held> {
        let ty = new.shape().ty?;
        let (at, held) = self.writer(new.from[0])?;
        let total = self.addend(&new, class(ty))? + self.addend(held, class(ty))?;
        let source = held.from[0];
        let in_place = held.to == source;
        let takes_over = new.to == source && !self.held()[at + 1..].iter().any(|held| held.reads(source));
        let usable = if in_place { takes_over } else { self.is_kept(source, at + 1) };
        if !usable || !is_short_offset(total) {
            return None;
        }
        let joined = match total {
            0 => self.copy(new, ty, source)?,
            1.. => Held { constant: total, number: number(Op::Add, Some(ty), Form::Immediate)?, ..new },
            _ => Held { constant: -total, number: number(Op::Sub, Some(ty), Form::Immediate)?, ..new },
        };
        if in_place {
            self.remove(at);
        }
        let from = [source, NONE, NONE];
        Some(Held { from, ..joined })
    }

    /// Copies, complements and conversions of constants.
    fn conversion(&self, new: Held) -> Option<Held> {
        let shape = new.shape();
        let (ty, source) = (shape.ty?, shape.source?);
        if ty.is_float() || source.is_float() {
            return None;
        }
        let constant = self.constant(new.from[0], source_class(shape, 0)?)?;
        let value = match shape.family {
            Family::Convert => canonical(ty, self.long, low_bits(ty, constant)),
            _ => unary(shape.op, ty, self.long, canonical(ty, self.long, constant))?,
        };
        if !is_short_constant(value) {
            return None;
        }
        self.set(new, if ty.is_narrow() { Type::I } else { ty }, value)
    }

    /// Folds a constant index, and a constant that was added to the base, into the offset of a load or store whose base
    /// is source number `base`.
    fn fold_address(&self, mut new: Held, base: usize) -> Held {
        let shape = new.shape();
        if shape.form == Form::Register
            && let Some(offset) =
                self.constant(new.from[base + 1], ValueClass::Long).filter(|offset| is_short_offset(*offset))
            && let Some(number) = number(shape.op, shape.ty, Form::Immediate)
        {
            new.number = number;
            new.constant = offset;
            new.from[base + 1] = NONE;
        }
        if new.shape().form == Form::Immediate
            && let Some((at, held)) = self.writer(new.from[base])
            && let Some(offset) = self.addend(held, ValueClass::Long).map(|addend| addend + new.constant)
            && is_short_offset(offset)
            && self.is_kept(held.from[0], at)
        {
            new.constant = offset;
            new.from[base] = held.from[0];
        }
        new
    }

    /// The memory that a load or store accesses, if a held instruction may access the same.
    fn pending_access(&self, new: &Held) -> Option<AccessedMemory> {
        let place = AccessedMemory::of(new, self.long)?;
        let is_same = |held: &Held| {
            held.constant == place.offset && AccessedMemory::of(held, self.long).is_some_and(|other| other.is(&place))
        };
        self.held().iter().any(is_same).then_some(place)
    }

    /// Replaces a load of a value that is in a register by a copy.
    fn forward_load(&self, new: Held) -> Held {
        let copied = new.shape().ty.zip(self.available_value(&new)).and_then(|(ty, from)| self.copy(new, ty, from));
        copied.unwrap_or(new)
    }

    fn available_value(&self, new: &Held) -> Option<u8> {
        let place = self.pending_access(new)?;
        for (at, held) in self.held().iter().enumerate().rev() {
            let shape = held.shape();
            let same = AccessedMemory::of(held, self.long).is_some_and(|other| other.is(&place))
                && self.is_base_kept(&place, held, at);
            match shape.family {
                Family::Load if same && shape.ty == new.shape().ty => {
                    return self.is_kept(held.to, at + 1).then_some(held.to);
                }
                // A narrow value is extended by its load.
                Family::Store if same && shape.ty.map(class) == Some(class(place.ty)) && !place.is_narrow() => {
                    return self.is_kept(held.from[0], at + 1).then_some(held.from[0]);
                }
                Family::Store if !self.is_disjoint(&place, held, at) => return None,
                _ => {}
            }
        }
        None
    }

    /// Whether the stored value is in memory already.
    fn is_redundant_store(&self, new: &Held) -> bool {
        let Some(place) = self.pending_access(new) else { return false };
        for (at, held) in self.held().iter().enumerate().rev() {
            let shape = held.shape();
            let same = AccessedMemory::of(held, self.long).is_some_and(|other| other.is(&place))
                && self.is_base_kept(&place, held, at);
            let value = if shape.family == Family::Load { held.to } else { held.from[0] };
            match shape.family {
                Family::Load | Family::Store if same && shape.ty == new.shape().ty && value == new.from[0] => {
                    return self.is_kept(value, at + 1);
                }
                Family::Store if !self.is_disjoint(&place, held, at) => return false,
                _ => {}
            }
        }
        false
    }

    /// Removes an earlier store to the same memory, if no load is between.
    fn remove_dead_store(&mut self, new: &Held) {
        let Some(place) = self.pending_access(new) else { return };
        for (at, held) in self.held().iter().enumerate().rev() {
            match held.shape().family {
                Family::Store if AccessedMemory::of(held, self.long).is_some_and(|other| other.is(&place)) => {
                    if self.is_base_kept(&place, held, at) {
                        self.remove(at);
                    }
                    return;
                }
                Family::Load if !self.is_disjoint(&place, held, at) => return,
                _ => {}
            }
        }
    }

    /// Whether the base register has not been written since the instruction at `at`, which uses it too.
    fn is_base_kept(&self, place: &AccessedMemory, held: &Held, at: usize) -> bool {
        place.base == NONE || held.to != place.base && self.is_kept(place.base, at + 1)
    }

    /// Whether the access at `at` certainly does not overlap this memory.
    fn is_disjoint(&self, place: &AccessedMemory, held: &Held, at: usize) -> bool {
        AccessedMemory::of(held, self.long).is_some_and(|other| {
            other.base == place.base
                && self.is_base_kept(place, held, at)
                && (other.offset + other.bytes <= place.offset || place.offset + place.bytes <= other.offset)
        })
    }

    /// Turns a branch that is always or never taken into a jump or nothing, and a comparison with zero into its special
    /// form.
    fn branch(&self, new: Held) -> Option<Held> {
        let shape = new.shape();
        let Some(ty) = shape.ty.filter(|ty| !ty.is_float()) else { return Some(new) };
        let constant = |register| self.constant(register, class(ty)).map(|value| canonical(ty, self.long, value));
        let left = constant(new.from[0]);
        let right = if shape.form == Form::Immediate { Some(new.constant) } else { constant(new.from[1]) };
        let equal = shape.form == Form::Register && new.from[0] == new.from[1];
        let known = if equal { Some((0, 0)) } else { left.zip(right) };
        if let Some((left, right)) = known
            && let Some(taken) = is_taken(shape.op, ty, left, right)
            && let Some(jump) = number(Op::J, None, Form::Register)
        {
            let jump = Held { constant: 0, number: jump, from: [NONE; 3], ..new };
            return taken.then_some(jump);
        }
        if shape.form == Form::Immediate {
            return Some(new);
        }
        let on_zero = |op: Option<Op>, from: u8| {
            // Some machines have a signed comparison with zero only.
            if !is_signed(ty) && !matches!(shape.op, Op::Beq | Op::Bne) {
                return None;
            }
            let number = number(op?, shape.ty, Form::Immediate)?;
            Some(Held { constant: 0, number, from: [from, NONE, NONE], ..new })
        };
        let zero = match (left, right) {
            (_, Some(0)) => on_zero(Some(shape.op), new.from[0]),
            (Some(0), _) => on_zero(mirrored(shape.op), new.from[1]),
            (_, _) => None,
        };
        Some(zero.unwrap_or(new))
    }

    /// Whether its register holds the value already.
    fn is_known(&self, new: &Held) -> bool {
        let shape = new.shape();
        if shape.op == Op::Mov && new.to == new.from[0] {
            return true;
        }
        let Some((at, held)) = self.writer(new.to) else { return false };
        let known = held.shape();
        let same = known.op == shape.op && known.ty.map(class) == shape.ty.map(class);
        match shape.op {
            Op::Mov => same && held.from[0] == new.from[0] && self.is_kept(held.from[0], at + 1),
            Op::Set => same && held.constant == new.constant,
            _ => false,
        }
    }
}

/// The type of a register that holds a value of this type.
fn held_type(ty: Type) -> Type {
    match ty {
        Type::C | Type::Uc | Type::S | Type::Us => Type::I,
        Type::I | Type::U | Type::L | Type::Ul | Type::P | Type::F | Type::D => ty,
    }
}

/// Memory that a load or store of the core touches.
#[derive(Debug, Clone, Copy)]
struct AccessedMemory {
    /// The register of the base; none for the stack pointer.
    base: u8,
    offset: i64,
    bytes: i64,
    ty: Type,
}

impl AccessedMemory {
    fn of(held: &Held, long: u32) -> Option<AccessedMemory> {
        let shape = held.shape();
        let base = match (shape.op, shape.form) {
            (Op::Ld | Op::St, Form::Local) => NONE,
            (Op::Ld, Form::Immediate) => held.from[0],
            (Op::St, Form::Immediate) => held.from[1],
            (_, Form::Register | Form::Immediate | Form::Local) => return None,
        };
        let ty = shape.ty?;
        Some(AccessedMemory { base, offset: held.constant, bytes: i64::from(ty.bytes(long)), ty })
    }

    /// Whether both have the same base and offset.
    fn is(&self, other: &AccessedMemory) -> bool {
        (self.base, self.offset, self.bytes) == (other.base, other.offset, other.bytes)
    }

    fn is_narrow(&self) -> bool {
        match self.ty {
            Type::C | Type::Uc | Type::S | Type::Us => true,
            Type::I | Type::U | Type::L | Type::Ul | Type::P | Type::F | Type::D => false,
        }
    }
}
