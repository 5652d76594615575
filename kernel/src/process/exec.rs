//! The start of a program: its segments, its stack, its registers.

use super::initial_stack::{Auxiliary, StackContents, build};
use crate::arch::frame::Frame;
use crate::arch::segments::{USER_CODE, USER_DATA};
use crate::fs::random::random_word;
use crate::memory::layout::{PAGE_BYTES, USER_END};
use crate::memory::region::Protection;
use crate::memory::space::{AddressSpace, MapError, STACK_BYTES};
use crate::memory::tables::Permission;
use alloc::vec::Vec;
use core::arch::x86_64::__cpuid;
use linux_raw_sys::auxvec;
use quaject_image_formats::elf::{PROGRAM_HEADER_BYTES, Placement, Program, Segment, SegmentAccess};

/// Where position-independent programs are loaded: as Linux does without randomisation.
const RELOCATED_BASE: u64 = 0x5555_5555_4000;
/// Interrupts are on in programs.
const INITIAL_FLAGS: u64 = 0x202;
/// Ticks a second as `times` would count them.
const CLOCK_TICKS: u64 = 100;

/// A program ready to run.
pub(crate) struct LoadedProgram {
    pub(crate) space: AddressSpace,
    pub(crate) registers: Frame,
}

/// Loads a program with its arguments and environment.
pub(crate) fn load(
    program: &Program<'_>,
    arguments: &[Vec<u8>],
    environment: &[Vec<u8>],
) -> Result<LoadedProgram, MapError> {
    let mut space = AddressSpace::new()?;
    let base = match program.placement {
        Placement::Fixed => 0,
        Placement::Relocatable => RELOCATED_BASE,
    };
    let mut end = 0;
    for segment in program.segments() {
        load_segment(&mut space, &segment, base)?;
        end = base + segment.end_of_pages();
    }
    space.set_break_start(end);
    let auxiliary = auxiliary_vector(program, base);
    let stack = build(&StackContents { arguments, environment, auxiliary: &auxiliary }, USER_END);
    space.map(USER_END - STACK_BYTES, USER_END, Protection::Only(Permission::ReadWrite))?;
    if stack.len() as u64 > STACK_BYTES / 4 {
        return Err(MapError::NoRoom);
    }
    let stack_pointer = USER_END - stack.len() as u64;
    space.write_initial(stack_pointer, &stack)?;
    let registers = Frame {
        rip: base + program.entry,
        cs: u64::from(USER_CODE),
        rflags: INITIAL_FLAGS,
        rsp: stack_pointer,
        ss: u64::from(USER_DATA),
        ..Frame::default()
    };
    Ok(LoadedProgram { space, registers })
}

fn load_segment(space: &mut AddressSpace, segment: &Segment<'_>, base: u64) -> Result<(), MapError> {
    let permission = match segment.access {
        SegmentAccess::Read => Permission::Read,
        SegmentAccess::ReadWrite => Permission::ReadWrite,
        SegmentAccess::ReadExecute => Permission::ReadExecute,
    };
    let (start, end) = (base + segment.first_page(), base + segment.end_of_pages());
    if !space.is_free(start, end) {
        return Err(MapError::NoRoom);
    }
    space.map(start, end, Protection::Only(permission))?;
    space.write_initial(base + segment.address, segment.contents)
}

fn auxiliary_vector(program: &Program<'_>, base: u64) -> Vec<(u64, Auxiliary)> {
    use Auxiliary::{Bytes, ProgramName, Random, Value};
    let mut random = [0; 16];
    random[..8].copy_from_slice(&random_word().to_ne_bytes());
    random[8..].copy_from_slice(&random_word().to_ne_bytes());
    let mut vector = alloc::vec![
        (auxvec::AT_HWCAP, Value(u64::from(__cpuid(1).edx))),
        (auxvec::AT_PAGESZ, Value(PAGE_BYTES)),
        (auxvec::AT_CLKTCK, Value(CLOCK_TICKS)),
        (auxvec::AT_PHENT, Value(PROGRAM_HEADER_BYTES as u64)),
        (auxvec::AT_PHNUM, Value(program.header_count() as u64)),
        (auxvec::AT_BASE, Value(0)),
        (auxvec::AT_FLAGS, Value(0)),
        (auxvec::AT_ENTRY, Value(base + program.entry)),
        (auxvec::AT_UID, Value(0)),
        (auxvec::AT_EUID, Value(0)),
        (auxvec::AT_GID, Value(0)),
        (auxvec::AT_EGID, Value(0)),
        (auxvec::AT_SECURE, Value(0)),
        (auxvec::AT_RANDOM, Random(random)),
        (auxvec::AT_EXECFN, ProgramName),
        (auxvec::AT_PLATFORM, Bytes(b"x86_64")),
    ];
    vector.extend(program.header_address.map(|address| (auxvec::AT_PHDR, Value(base + address))));
    vector.into_iter().map(|(key, entry)| (u64::from(key), entry)).collect()
}
