//! What a property asks for, kept in every part of a state in front of the instance's own bytes: the labels it has
//! passed on its way to where it stands, and variables as they were where it last waited.
//!
//! ```text
//!   labels       a byte, if the property names any of the instance: bit n for the n-th of Space::watched
//!   variables    16 bytes each, in the order of Space::observed
//! ```

use crate::ltl::{Atom, Term};
use crate::moves::Mover;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::step::Step;

impl Mover<'_> {
    /// Appends what is watched of an instance.
    pub(crate) fn write_watched(&mut self, slot: u32) {
        if !self.space.watched[slot as usize].is_empty() {
            self.bytes.push(self.marks[slot as usize]);
        }
        for value in &self.values[slot as usize] {
            self.bytes.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Reads it from the part at hand, and returns where the instance's own bytes begin.
    pub(crate) fn read_watched(&mut self, slot: u32) -> usize {
        let mut at = 0;
        if !self.space.watched[slot as usize].is_empty() {
            self.marks[slot as usize] = self.bytes[0];
            at = 1;
        }
        for value in &mut self.values[slot as usize] {
            *value = i128::from_le_bytes(self.bytes[at..at + 16].try_into().expect("a value has 16 bytes"));
            at += 16;
        }
        at
    }

    /// Which atoms of the property hold.
    pub(crate) fn atoms(&mut self, numbers: &[u32]) -> u64 {
        let mut atoms = 0;
        for (slot, part) in numbers.iter().enumerate().take(self.space.instances) {
            if self.space.watched[slot].is_empty() && self.space.observed[slot].is_empty() {
                continue;
            }
            self.bytes.clear();
            self.space.parts.read(self.space.kinds[slot], *part, &mut self.bytes);
            self.read_watched(slot as u32);
            for (bit, (atom, _)) in self.space.watched[slot].iter().enumerate() {
                atoms |= u64::from(self.marks[slot] >> bit & 1) << atom;
            }
        }
        for (number, atom) in self.space.atoms.iter().enumerate() {
            if let Atom::Compares(left, comparison, right) = atom {
                atoms |= u64::from(comparison.holds(self.value(left), self.value(right))) << number;
            }
        }
        atoms
    }

    fn value(&self, term: &Term) -> i128 {
        match term {
            Term::Constant(value) => *value,
            Term::Variable { instance, name } => {
                let instance = *instance as usize;
                let index = self.space.observed[instance].iter().position(|known| known == name);
                index.map_or(0, |index| self.values[instance][index])
            }
        }
    }

    pub(crate) fn begin_marks(&mut self) {
        if self.space.watches
            && let Some(coverage) = self.machine.coverage()
        {
            match &mut self.executed {
                Some(executed) => executed.add(coverage),
                None => self.executed = Some(coverage.clone()),
            }
            coverage.clear();
        }
    }

    /// Notes the labels passed by whoever ran its own code; whoever leaves an operation has passed none. Notes the
    /// variables of those who wait now.
    pub(crate) fn end_marks(&mut self, step: Step, slots: &[u32]) {
        for slot in slots.iter().filter(|slot| self.space.observed.get(**slot as usize).is_some_and(|o| !o.is_empty()))
        {
            for (name, _, value) in self.machine.observed(&self.state, *slot) {
                let index = self.space.observed[*slot as usize].iter().position(|known| *known == name);
                if let Some(index) = index {
                    self.values[*slot as usize][index] = number(&value);
                }
            }
        }
        if !self.space.watches {
            return;
        }
        match step {
            Step::Local { instance } => {
                let process = self.space.process(instance);
                let Some(coverage) = self.machine.coverage() else { return };
                for (bit, (_, position)) in self.space.watched[instance as usize].iter().enumerate() {
                    self.marks[instance as usize] |= u8::from(coverage.has(process, *position)) << bit;
                }
            }
            Step::Communicate { sender, receiver, .. } => {
                self.marks[sender as usize] = 0;
                self.marks[receiver as usize] = 0;
            }
            Step::FromWorld { instance, .. }
            | Step::ToWorld { instance, .. }
            | Step::After { instance, .. }
            | Step::Else { instance } => self.marks[instance as usize] = 0,
        }
    }
}

/// A scalar as a number: false and true are 0 and 1, an instance is its number.
fn number(value: &Datum) -> i128 {
    match value {
        Datum::Int(value) => *value,
        Datum::Bool(value) => i128::from(*value),
        Datum::Pid(instance) => i128::from(*instance),
        Datum::Bytes(_) | Datum::Record(_) | Datum::Union(..) | Datum::Array(_) => 0,
    }
}
