//! Synthesises and frees a routine so many times: `cost ROUTINE COUNT`, where the routine is `null`, `read` or `write`
//! (a pipe's), written by the assembler, or `copy-read` and `copy-write`, copied from a template. The difference
//! between the instructions of two counts, as callgrind reports them, is what the routines cost; the README has the
//! command.

use quaject_synth::arena::{Arena, Unit};
use quaject_synth::entry::{Access, Exit, Sysret};
use quaject_synth::grace::Grace;
use quaject_synth::stream::{Paths, Ring, read_null, read_pipe, write_pipe};
use quaject_synth::{Address, Builder, Error, Routine, Template};
use quaject_vcode::Workspace;

type Code = Workspace<quaject_vcode::x86_64::X86_64>;

/// Emits a routine; its pipe is at an address that only the running program knows, or in a hole.
fn emit(b: &mut Builder<'_>, which: &str, slow: usize, pipe: Address) {
    let entry = Sysret { slots: 64, access: Access::Guarded, exit: Exit::Program };
    let paths = Paths { slow, user_bits: 47 };
    let ring = Ring { pipe, size_bits: 16 };
    match which {
        "null" => read_null(b, entry, paths),
        "read" | "copy-read" => read_pipe(b, entry, paths, ring),
        _ => write_pipe(b, entry, paths, ring),
    }
}

fn synthesise<const N: usize>(
    arena: &mut Arena<'_, N>,
    workspace: &mut Code,
    which: &str,
    slow: usize,
) -> Result<Routine, Error> {
    let mut b = Builder::begin(arena, workspace, "cost", 704)?;
    emit(&mut b, which, slow, Address::Known(std::hint::black_box(0xffff_9000_0000_0000)));
    b.end(arena)
}

fn template<const N: usize>(
    arena: &mut Arena<'_, N>,
    workspace: &mut Code,
    which: &str,
    slow: usize,
) -> Result<Template, Error> {
    let mut b = Builder::begin(arena, workspace, "cost", 704)?;
    emit(&mut b, which, slow, Address::Hole(0));
    b.end_template(arena)
}

fn main() -> Result<(), Error> {
    let mut arguments = std::env::args().skip(1);
    let which = arguments.next().unwrap_or_else(|| "read".into());
    let count: usize = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1);
    // Nothing is executed, so that ordinary memory will do.
    let mut memory = vec![0_u64; 1 << 13];
    let mut units = [Unit::NEW; 1024];
    let grace = Grace::<1>::new();
    let address = memory.as_mut_ptr() as usize;
    // SAFETY: the memory lives as long as the arena, and nothing is executed.
    let mut arena = unsafe { Arena::new(address as *mut u8, address, 1 << 16, &mut units, &grace) };
    let mut workspace = Workspace::new();
    let slow = address + (1 << 20);
    let template = template(&mut arena, &mut workspace, &which, slow)?;
    let is_copied = which.starts_with("copy-");
    let mut last = None;
    for _ in 0..count {
        let routine = if is_copied {
            template.instantiate(&mut arena, &[std::hint::black_box(0xffff_9000_0000_0000)])?
        } else {
            synthesise(&mut arena, &mut workspace, &which, slow)?
        };
        if let Some(routine) = last.replace(routine) {
            arena.free_routine(routine);
        }
    }
    if let Some(routine) = last {
        let instructions = routine.listing(&arena).count();
        println!("{which}: {instructions} instructions, {} bytes, {} of memory", routine.length(), routine.memory());
        arena.free_routine(routine);
    }
    Ok(())
}
