//! What routines are copied from, and those that exist once. The assembler writes all of it at the start.

use super::area::CodeArena;
use super::switch_shape::{SwitchShape, VectorUse, make_switch};
use crate::arch::block::ThreadBlock;
use crate::arch::entry::{counting_exit, general_read, general_seek, general_write};
use crate::arch::time;
use crate::counts::{Counting, counting};
use crate::fs::limits::MAX_DESCRIPTORS;
use core::mem::offset_of;
use quaject_synth::constant::{constant, word_of_thread};
use quaject_synth::entry::{Access, Exit, Sysret};
use quaject_synth::stream::{
    Paths, Ring, dispatch_by_descriptor, read_file, read_null, read_pipe, seek_file, seek_null, write_file, write_null,
    write_pipe,
};
use quaject_synth::{Address, Builder, Error, Routine, Template};
use quaject_vcode::Workspace;
use quaject_vcode::x86_64::X86_64;
use syscalls::Errno;

/// What a pipe holds: two to this power bytes.
pub(crate) const PIPE_BITS: u8 = 16;

/// Templates, and routines without objects.
pub(super) struct Shapes {
    pub(super) switch: SwitchShape,
    pub(super) switch_with_vectors: SwitchShape,
    pub(super) read_file: Template,
    pub(super) write_file: Template,
    pub(super) seek_file: Template,
    pub(super) read_pipe: Template,
    pub(super) write_pipe: Template,
    /// From the number of a descriptor to its routine, in the order read, write, seek.
    pub(super) dispatch: [Template; 3],
    pub(super) read_null: Routine,
    pub(super) write_null: Routine,
    pub(super) seek_null: Routine,
    /// What is no descriptor, or not for this.
    pub(super) bad_descriptor: Routine,
    pub(super) thread_id: Routine,
    /// What has no position.
    pub(super) no_position: Routine,
}

/// How the kernel's routines are entered and left.
fn entry() -> Sysret {
    let exit = match counting() {
        Counting::Off => Exit::Program,
        Counting::On => Exit::Through(counting_exit as *const () as usize),
    };
    Sysret { slots: offset_of!(ThreadBlock, slots) as i32, access: Access::Guarded, exit }
}

fn paths(slow: unsafe extern "C" fn()) -> Paths {
    const USER_BITS: u8 = 47;
    Paths { slow: slow as *const () as usize, user_bits: USER_BITS }
}

/// More than any of these routines has.
const MAX_ROUTINE_BYTES: usize = 1024;

/// Builds templates and routines.
struct Maker<'m> {
    arena: &'m mut CodeArena,
    workspace: Workspace<X86_64>,
}

impl Maker<'_> {
    fn template(&mut self, name: &'static str, emit: impl FnOnce(&mut Builder<'_>)) -> Result<Template, Error> {
        let mut builder = Builder::begin(self.arena, &mut self.workspace, name, MAX_ROUTINE_BYTES)?;
        emit(&mut builder);
        builder.end_template(self.arena)
    }

    fn routine(&mut self, name: &'static str, emit: impl FnOnce(&mut Builder<'_>)) -> Result<Routine, Error> {
        let mut builder = Builder::begin(self.arena, &mut self.workspace, name, MAX_ROUTINE_BYTES)?;
        emit(&mut builder);
        builder.end(self.arena)
    }
}

/// A routine that returns a number.
pub(super) fn make_constant(arena: &mut CodeArena, name: &'static str, value: i64) -> Result<Routine, Error> {
    Maker { arena, workspace: Workspace::new() }.routine(name, |b| constant(b, entry(), value))
}

/// Makes everything.
pub(super) fn make_shapes(arena: &mut CodeArena) -> Result<Shapes, Error> {
    let (read, write, seek) = (paths(general_read), paths(general_write), paths(general_seek));
    let entry = entry();
    let [first, second] = [0, 1].map(Address::Hole);
    let clock = Address::Known(time::coarse_clock_address());
    let ring = Ring { pipe: first, size_bits: PIPE_BITS };
    let error = |errno: Errno| -i64::from(errno.into_raw());
    let count = MAX_DESCRIPTORS as i32;
    let switch = make_switch(arena, VectorUse::Forbidden)?;
    let switch_with_vectors = make_switch(arena, VectorUse::Allowed)?;
    let mut make = Maker { arena, workspace: Workspace::new() };
    Ok(Shapes {
        switch,
        switch_with_vectors,
        read_file: make.template("read_file", |b| read_file(b, entry, read, first, second))?,
        write_file: make.template("write_file", |b| write_file(b, entry, write, [first, second, clock]))?,
        seek_file: make.template("seek_file", |b| seek_file(b, entry, seek, first))?,
        read_pipe: make.template("read_pipe", |b| read_pipe(b, entry, read, ring))?,
        write_pipe: make.template("write_pipe", |b| write_pipe(b, entry, write, ring))?,
        dispatch: [
            make.template("read", |b| dispatch_by_descriptor(b, read, first, count))?,
            make.template("write", |b| dispatch_by_descriptor(b, write, first, count))?,
            make.template("lseek", |b| dispatch_by_descriptor(b, seek, first, count))?,
        ],
        read_null: make.routine("read_null", |b| read_null(b, entry, read))?,
        write_null: make.routine("write_null", |b| write_null(b, entry, write))?,
        seek_null: make.routine("seek_null", |b| seek_null(b, entry, seek))?,
        bad_descriptor: make.routine("bad_descriptor", |b| constant(b, entry, error(Errno::EBADF)))?,
        thread_id: make.routine("gettid", |b| word_of_thread(b, entry, offset_of!(ThreadBlock, thread_id) as i32))?,
        no_position: make.routine("no_position", |b| constant(b, entry, error(Errno::ESPIPE)))?,
    })
}
