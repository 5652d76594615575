//! Machine code for a chunk of a classifier: up to sixteen stages, one after the other. Written through `vcode` in
//! portable instructions; enabled where the machine orders loads as tables need it (x86-64: a head before its key).
//!
//! ```text
//! chunk(data, length, wire length, best so far) -> best rank
//!   stage 0   lengths, header, key, hash, slot ─ hit ─> best = max(best, rank); enough? ─> out
//!   stage 1   ..                               ─ miss ─> next stage
//!   out       return best
//!   rare      general forms of what was specialised above, which join it again
//! ```

mod group;
mod lookup;
mod program;
mod ranges;
mod registers;
mod template;

use crate::bpf::Operation;
use crate::group::GroupData;
use crate::stage::{ProgramFilter, Stage};
use quaject_vcode::{Asm, Class, Code, Core, Error, Extension, Features, Kind, Label, Native, Param, Workspace};
use std::sync::atomic::AtomicU64;

pub(crate) type Reg = quaject_vcode::x86_64::Reg;

/// The workspace of the assembler.
pub(crate) type Room = Workspace<Native, 8192, 16384, 1>;

/// The state of emission: the assembler and the registers of the packet.
pub(crate) struct Emitter<'a> {
    asm: Asm<'a, Native>,
    data: Reg,
    length: Reg,
    wire: Option<Reg>,
    /// Parts of the code that are written after the rest.
    rare: Vec<Rare<'a>>,
}

/// A part of a lookup that is written out of line.
enum Rare<'a> {
    /// The general form of a lookup that is specialised for the common case.
    General(group::General),
    /// The code for packets that differ from their template.
    Different(template::Different<'a>),
}

/// Whether the chunk is the first one; otherwise there may be a best rank already.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Position {
    First,
    Later,
}

/// Whether a stage reads the length on the wire.
fn reads_wire_length(stage: &Stage) -> bool {
    match stage {
        Stage::Group(data) => data.layout.shape.checks.iter().any(|check| check.number.is_none()),
        Stage::Program(filter) => {
            let operations = filter.program.operations();
            operations.iter().any(|one| matches!(one, Operation::LoadLength | Operation::IndexLength))
        }
        Stage::Ranges(ranges) => {
            let mut dimensions = ranges.axes.iter().flat_map(|axis| &axis.dimensions);
            ranges.fixed.iter().any(|fixed| fixed.number.is_none()) || dimensions.any(|own| own.number.is_none())
        }
    }
}

/// Writes a chunk that classifies one packet.
pub(crate) fn chunk(
    stages: &[Stage],
    later: &[AtomicU64],
    position: Position,
    features: Features,
    buffer: &mut [u8],
    room: &mut Room,
) -> Result<Code, Error> {
    let mut params = [Param::NONE; 4];
    let mut asm = Asm::begin(buffer.into(), room, "%p%ul%ul%ul", &mut params, Kind::Leaf)?;
    asm.use_features(features);
    let [data, length, wire, best] = params.map(|param| param.reg());
    let reads_length = stages.iter().any(reads_wire_length);
    if !reads_length {
        asm.putreg(wire);
    }
    let result = asm.result();
    asm.claim(result)?;
    if position == Position::First {
        asm.putreg(best);
    }
    let best = (position == Position::Later).then_some(best);
    let wire = reads_length.then_some(wire);
    let mut emitter = Emitter { asm, data, length, wire, rare: Vec::new() };
    emitter.stages(stages, later, best, result, After::Return)?;
    emitter.rare()?;
    emitter.asm.end()
}

/// Writes a loop over packets, see [`ClassifyMany`](crate::types::ClassifyMany).
pub(crate) fn batch(
    stages: &[Stage],
    later: &[AtomicU64],
    features: Features,
    buffer: &mut [u8],
    room: &mut Room,
) -> Result<Code, Error> {
    let mut params = [Param::NONE; 3];
    let mut asm = Asm::begin(buffer.into(), room, "%p%ul%p", &mut params, Kind::Leaf)?;
    asm.use_features(features);
    let [packets, count, out] = params.map(|param| param.reg());
    let result = asm.result();
    asm.claim(result)?;
    let reads_length = stages.iter().any(reads_wire_length);
    let (data, length) = (asm.getreg(Class::Temporary)?, asm.getreg(Class::Temporary)?);
    let wire = if reads_length { Some(asm.getreg(Class::Temporary)?) } else { None };
    let (again, done, next) = (asm.label(), asm.label(), asm.label());
    asm.bequli(count, 0, done);
    // From here on the register of the count holds the end of the ranks.
    asm.lshuli(count, count, 3);
    asm.addul(count, count, out);
    asm.bind(again);
    asm.ldpi(data, packets, 0);
    asm.ldui(length, packets, 8);
    if let Some(wire) = wire {
        asm.ldui(wire, packets, 12);
    }
    let mut emitter = Emitter { asm, data, length, wire, rare: Vec::new() };
    emitter.stages(stages, later, None, result, After::Store { out, next })?;
    emitter.asm.bind(next);
    emitter.asm.addpi(packets, packets, 16);
    emitter.asm.addpi(out, out, 8);
    emitter.asm.bneul(out, count, again);
    emitter.asm.bind(done);
    emitter.asm.retv();
    emitter.rare()?;
    emitter.asm.end()
}

/// Whether no other stage reads the packet after this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Last {
    Yes,
    No,
}

/// The use of the best rank.
#[derive(Clone, Copy)]
enum After {
    Return,
    Store { out: Reg, next: Label },
}

impl<'a> Emitter<'a> {
    /// Writes the stages; `best` is where a best rank is already.
    fn stages(
        &mut self,
        stages: &'a [Stage],
        later: &[AtomicU64],
        best: Option<Reg>,
        result: Reg,
        after: After,
    ) -> Result<(), Error> {
        // With one stage, and nothing found before, its rank is the answer.
        if let ([stage], None) = (stages, best) {
            let miss = self.asm.label();
            self.stage(stage, result, miss, Last::Yes)?;
            self.finish(result, after);
            self.asm.bind(miss);
            self.asm.setul(result, 0);
            self.finish(result, after);
            return Ok(());
        }
        let own = match best {
            Some(best) => best,
            None => {
                let own = self.asm.getreg(Class::Temporary)?;
                self.asm.setul(own, 0);
                own
            }
        };
        let out = self.asm.label();
        for (at, stage) in stages.iter().enumerate() {
            let miss = self.asm.label();
            let last = if at + 1 == stages.len() { Last::Yes } else { Last::No };
            self.stage(stage, result, miss, last)?;
            self.asm.maxul(own, own, result);
            if at + 1 < stages.len() {
                // The best rank of all later stages; it may change.
                self.asm.setul(result, later[at].as_ptr() as u64);
                self.asm.lduli(result, result, 0);
                self.asm.bgeul(own, result, out);
            }
            self.asm.bind(miss);
        }
        self.asm.bind(out);
        // Its register stays taken: the general forms, which are still to be written, join here.
        self.finish(own, after);
        Ok(())
    }

    fn finish(&mut self, rank: Reg, after: After) {
        match after {
            After::Return => self.asm.retul(rank),
            After::Store { out, next } => {
                self.asm.stuli(rank, out, 0);
                self.asm.j(next);
            }
        }
    }

    /// Writes one stage: the rank to `result`, or a jump to `miss`.
    fn stage(&mut self, stage: &'a Stage, result: Reg, miss: Label, last: Last) -> Result<(), Error> {
        match stage {
            Stage::Group(data) => self.group(data, result, miss),
            Stage::Program(filter) => self.program(filter, result, miss),
            Stage::Ranges(own) => ranges::write(self, own, result, miss, last),
        }
    }

    fn group(&mut self, data: &'a GroupData, result: Reg, miss: Label) -> Result<(), Error> {
        if let Some(template) = &data.template
            && template::write(self, data, template, result, miss)?
        {
            return Ok(());
        }
        group::write(self, data, result, miss)
    }

    fn program(&mut self, filter: &ProgramFilter, result: Reg, miss: Label) -> Result<(), Error> {
        program::write(self, &filter.program, miss)?;
        self.asm.setul(result, filter.rank.as_ptr() as u64);
        self.asm.lduli(result, result, 0);
        Ok(())
    }

    /// Writes the out-of-line code.
    fn rare(&mut self) -> Result<(), Error> {
        for rare in std::mem::take(&mut self.rare) {
            match rare {
                Rare::General(general) => group::write_general(self, &general)?,
                Rare::Different(different) => template::write_different(self, &different)?,
            }
        }
        Ok(())
    }

    fn temporary(&mut self) -> Result<Reg, Error> {
        self.asm.getreg(Class::Temporary)
    }
}
