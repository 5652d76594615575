//! The window of held instructions, and the rules that apply when a live range ends: dead code elimination, copy
//! coalescing, folding into an immediate.

use super::constants::{canonical, class, mirrored};
use super::{Form, Held, NONE, Shape};
use crate::generated::peephole::{NUMBERS, Op, SHAPES};
use crate::instruction::Family;
use crate::signature::Type;

/// How many instructions are held.
const WINDOW_SIZE: usize = 4;

const EMPTY: Held = Held { constant: 0, label: 0, number: 0, to: NONE, from: [NONE; 3] };

/// The effect of a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pushed {
    /// The instruction is held, or was redundant.
    Held,
    /// The instruction is held, and the oldest has left the window and must be written.
    Full(Held),
    /// The instruction is held and is a branch: no other may be pushed after it.
    Branch,
    /// The instruction is held, and the whole window must be written.
    End,
}

/// The instructions that are held, oldest first.
#[derive(Debug)]
pub(super) struct Window {
    held: [Held; WINDOW_SIZE + 1],
    count: usize,
    pub(super) long: u32,
    written: Registers,
    /// The written registers whose value is a copy, a constant or an operation with an immediate.
    traceable: Registers,
}

/// A set of registers of both files.
#[derive(Debug, Clone, Copy, Default)]
struct Registers([u64; 2]);

impl Registers {
    fn has(&self, register: u8) -> bool {
        self.0[usize::from(register >> 7)] >> (register & 63) & 1 == 1
    }

    fn add(&mut self, register: u8) {
        self.0[usize::from(register >> 7)] |= 1 << (register & 63);
    }
}

impl Held {
    pub(super) fn shape(&self) -> &'static Shape {
        &SHAPES[usize::from(self.number)]
    }

    /// Whether it reads this register.
    pub(super) fn reads(&self, register: u8) -> bool {
        self.from.contains(&register) || self.to == register && self.updates()
    }

    /// Whether it reads what it writes, besides its sources.
    fn updates(&self) -> bool {
        matches!(self.shape().family, Family::Select | Family::Exchange)
    }

    /// The index of the source that the immediate form replaces.
    fn last_source(&self) -> Option<usize> {
        match self.shape().family {
            Family::Binary | Family::Shift | Family::Load | Family::Branch => Some(1),
            Family::Store => Some(2),
            Family::Unary
            | Family::Set
            | Family::Convert
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
}

/// The number of an instruction, if all machines have it.
pub(super) fn number(op: Op, ty: Option<Type>, form: Form) -> Option<u16> {
    let number = NUMBERS[op as usize][ty.map_or(0, |ty| ty as usize + 1)][form as usize];
    (number != u16::MAX).then_some(number)
}

impl Window {
    pub(super) fn new(long: u32) -> Window {
        Window {
            held: [EMPTY; WINDOW_SIZE + 1],
            count: 0,
            long,
            written: Registers::default(),
            traceable: Registers::default(),
        }
    }

    /// The held instructions, in order.
    pub(super) fn held(&self) -> &[Held] {
        &self.held[..self.count]
    }

    /// Clears the window after its instructions were written.
    pub(super) fn clear(&mut self) {
        self.count = 0;
        (self.written, self.traceable) = (Registers::default(), Registers::default());
    }

    /// The last held instruction that writes a register, if it is in `traceable`.
    pub(super) fn writer(&self, register: u8) -> Option<(usize, &Held)> {
        if !self.traceable.has(register) {
            return None;
        }
        let held = self.held();
        held.iter().rposition(|held| held.to == register).map(|at| (at, &held[at]))
    }

    /// Records the register that a held instruction writes.
    fn note(&mut self, held: &Held) {
        if held.to == NONE {
            return;
        }
        self.written.add(held.to);
        let shape = held.shape();
        if matches!(shape.op, Op::Mov | Op::Set) || shape.form == Form::Immediate {
            self.traceable.add(held.to);
        }
    }

    pub(super) fn ends_in_branch(&self) -> bool {
        self.held().last().is_some_and(|last| last.shape().family == Family::Branch)
    }

    /// Simplifies an instruction and adds it.
    pub(super) fn push(&mut self, new: Held) -> Pushed {
        let Some(new) = self.simplify(new) else { return Pushed::Held };
        let overwrites = new.to != NONE && self.written.has(new.to);
        self.held[self.count] = new;
        self.count += 1;
        self.note(&new);
        match new.shape().family {
            Family::Binary
            | Family::Shift
            | Family::Unary
            | Family::Set
            | Family::Convert
            | Family::Load
            | Family::Store
            | Family::Select
            | Family::Hint => {}
            Family::Branch => return Pushed::Branch,
            // A fence and an indexed access invalidate all knowledge of memory.
            Family::Return
            | Family::Label
            | Family::Register
            | Family::Checked
            | Family::Exchange
            | Family::IndexedLoad
            | Family::IndexedStore
            | Family::Nullary => return Pushed::End,
        }
        if overwrites {
            self.end_live_range_before(new.to, self.count - 1);
        }
        if self.count <= WINDOW_SIZE {
            return Pushed::Held;
        }
        let oldest = self.held[0];
        self.remove(0);
        Pushed::Full(oldest)
    }

    /// The value of the register is dead from here on.
    pub(super) fn end_live_range(&mut self, register: u8) {
        if self.written.has(register) {
            self.end_live_range_before(register, self.count);
        }
    }

    /// The value that the first `end` instructions gave the register is read by held instructions only.
    fn end_live_range_before(&mut self, register: u8, mut end: usize) {
        while let Some(at) = self.held[..end].iter().rposition(|held| held.to == register) {
            let mut readers = (at + 1..self.count).filter(|index| self.held[*index].reads(register));
            let done = match (readers.next(), readers.next()) {
                (None, _) => self.is_pure(at) && self.remove(at),
                (Some(reader), None) => self.coalesce_copy(at, reader) || self.fold_immediate(at, reader),
                (Some(_), Some(_)) => false,
            };
            if !done {
                return;
            }
            end = at;
        }
    }

    /// Whether its only effect is its result. A load is not pure, because it may fault.
    fn is_pure(&self, at: usize) -> bool {
        let computes = match self.held[at].shape().family {
            Family::Binary | Family::Shift | Family::Unary | Family::Set | Family::Convert | Family::Select => true,
            Family::Load
            | Family::Store
            | Family::Return
            | Family::Branch
            | Family::Label
            | Family::Register
            | Family::Nullary
            | Family::Checked
            | Family::Exchange
            | Family::IndexedLoad
            | Family::IndexedStore
            | Family::Hint => false,
        };
        computes && self.is_valid(&self.held[at])
    }

    /// Computes a result that is only copied into the destination of the copy.
    fn coalesce_copy(&mut self, at: usize, copy: usize) -> bool {
        let (from, to) = (self.held[at], self.held[copy]);
        let (shape, copied) = (from.shape(), to.shape());
        let (Some(ty), Some(copied_ty)) = (shape.ty, copied.ty) else { return false };
        if copied.op != Op::Mov || class(ty) != class(copied_ty) || from.updates() || has_fixed_registers(&from) {
            return false;
        }
        if self.held[at + 1..copy].iter().any(|held| held.reads(to.to) || held.to == to.to) {
            return false;
        }
        self.held[at].to = to.to;
        self.remove(copy)
    }

    /// Makes a constant with one reader the immediate of the reader.
    fn fold_immediate(&mut self, at: usize, reader: usize) -> bool {
        let (set, held) = (self.held[at], self.held[reader]);
        let (Some(ty), Some(last)) = (set.shape().ty, held.last_source()) else { return false };
        let shape = held.shape();
        if set.shape().op != Op::Set || shape.form != Form::Register || !self.is_valid(&set) {
            return false;
        }
        // Offsets have the type of addresses.
        let wanted = match shape.family {
            Family::Load | Family::Store => Some(Type::L),
            _ => shape.ty,
        };
        let Some(wanted) = wanted.filter(|wanted| class(*wanted) == class(ty)) else { return false };
        let (op, from) = if held.from.iter().filter(|from| **from == set.to).count() > 1 {
            return false;
        } else if held.from[last] == set.to {
            let mut from = held.from;
            from[last] = NONE;
            (Some(shape.op), from)
        } else if held.from[0] == set.to && last == 1 && shape.family != Family::Load {
            (mirrored(shape.op), [held.from[1], NONE, NONE])
        } else {
            return false;
        };
        let Some(number) = op.and_then(|op| number(op, shape.ty, Form::Immediate)) else { return false };
        let immediate = Held { constant: canonical(wanted, self.long, set.constant), number, from, ..held };
        if !self.is_valid(&immediate) {
            return false;
        }
        self.held[reader] = immediate;
        self.remove(at)
    }

    /// Removes an instruction; returns true, so that it can end a condition.
    pub(super) fn remove(&mut self, at: usize) -> bool {
        self.count -= 1;
        for index in at..self.count {
            self.held[index] = self.held[index + 1];
        }
        (self.written, self.traceable) = (Registers::default(), Registers::default());
        for index in 0..self.count {
            let held = self.held[index];
            self.note(&held);
        }
        true
    }
}

/// Whether some machine encodes an instruction in fewer bytes with its present registers, so that none may be replaced.
pub(super) fn has_fixed_registers(held: &Held) -> bool {
    let shape = held.shape();
    match (shape.op, shape.form) {
        // x86-64 shifts by rcx alone.
        (Op::Lsh | Op::Rsh | Op::Rotl | Op::Rotr, Form::Register) => true,
        // x86-64 has two operands, and these do not commute.
        (Op::Sub | Op::Div, Form::Register) => shape.ty.is_some_and(Type::is_float) && held.to == held.from[0],
        (_, _) => false,
    }
}
