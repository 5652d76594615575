//! What synthesis costs: each template is copied and freed so many times.

use super::code::with_arena;
use crate::arch::time::ticks;
use alloc::vec::Vec;
use quaject_synth::Template;

/// The cost of one kind of routine.
pub(crate) struct SynthesisCost {
    pub(crate) name: &'static str,
    /// Those of the routine.
    pub(crate) instructions: usize,
    /// The memory that it takes.
    pub(crate) bytes: usize,
    /// The ticks of making and freeing it.
    pub(crate) ticks: u64,
}

const TURNS: u64 = 100;

/// Measures the templates of streams and of switch routines.
pub(crate) fn measure_shapes() -> Vec<SynthesisCost> {
    with_arena(|code| {
        let shapes = &code.shapes;
        let templates: [&Template; 7] = [
            &shapes.read_file,
            &shapes.write_file,
            &shapes.seek_file,
            &shapes.read_pipe,
            &shapes.write_pipe,
            shapes.switch.template(),
            shapes.switch_with_vectors.template(),
        ];
        let measured = templates.map(|template| {
            let start = ticks();
            for _ in 0..TURNS {
                if let Ok(routine) = template.instantiate(&mut code.arena, &[0; 2]) {
                    code.arena.free_routine(routine);
                }
            }
            let ticks = (ticks() - start) / TURNS;
            let routine = template.routine();
            let instructions = routine.listing(&code.arena).count();
            SynthesisCost { name: routine.name(), instructions, bytes: routine.memory(), ticks }
        });
        measured.into()
    })
}
