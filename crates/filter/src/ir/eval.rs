//! The interpreter of filters: the oracle of generated code, and the engine where no code can be generated.

use super::{Base, Conjunction, Field, Filter, Sense, Subject, Test};
use crate::packet::Packet;

impl Base {
    /// Its offset from the start of the packet; `None` if one of its numbers is not inside the packet.
    pub fn eval(&self, packet: Packet<'_>) -> Option<u64> {
        self.terms().iter().try_fold(0, |sum, term| {
            let moved = term.moves(term.field.eval(packet)?);
            // Beyond the length of any packet.
            Some(moved.saturating_add(sum))
        })
    }
}

impl Field {
    /// The number in it; `None` if it is not inside the packet.
    pub fn eval(&self, packet: Packet<'_>) -> Option<u32> {
        packet.load(self.base.eval(packet)?.saturating_add(self.offset.into()), u32::from(self.width))
    }
}

impl Test {
    /// Whether it holds.
    pub fn matches(&self, packet: Packet<'_>) -> bool {
        let number = match &self.subject {
            Subject::Field(field) => field.eval(packet),
            Subject::Length => Some(packet.wire_length()),
        };
        number.is_some_and(|number| self.accepts(number))
    }

    /// Whether it holds for this number.
    pub fn accepts(&self, number: u32) -> bool {
        let inside = (self.low..=self.high).contains(&(number & self.mask));
        inside == (self.sense == Sense::Inside)
    }
}

impl Conjunction {
    /// Whether all tests hold.
    pub fn matches(&self, packet: Packet<'_>) -> bool {
        self.tests().iter().all(|test| test.matches(packet))
    }
}

impl Filter {
    /// Whether the packet matches.
    pub fn matches(&self, packet: Packet<'_>) -> bool {
        match self {
            Filter::Any(conjunctions) => conjunctions.iter().any(|conjunction| conjunction.matches(packet)),
            Filter::Program(program) => program.run(packet) != 0,
        }
    }
}
