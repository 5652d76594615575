//! A routine whose first instruction is replaced while a thread waits, also under threads that execute it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::host::{slow_path, slow_result, stream, synthesise, with_arena};
use quaject_synth::gate::Gate;
use quaject_synth::stream::write_null;
use quaject_synth::{Builder, Error};
use quaject_vcode::Workspace;

#[test]
fn a_closed_routine_takes_the_slow_path() {
    with_arena(1 << 14, |arena, _| {
        let slow = slow_path(arena);
        let routine = synthesise(arena, &slow, write_null).unwrap();
        let write = stream(&routine);
        let mut gate = Gate::new(arena, &routine, slow.entry()).expect("it begins with a long instruction");
        assert_eq!(write(1, 2, 3), 3);
        // SAFETY: the routine exists.
        unsafe {
            gate.begin_wait();
            assert_eq!((write(1, 2, 3), gate.waiting()), (slow_result(1, 2, 3), 1));
            gate.begin_wait();
            gate.end_wait();
            assert_eq!(write(1, 2, 3), slow_result(1, 2, 3), "another one waits still");
            gate.end_wait();
        }
        assert_eq!(write(1, 2, 3), 3);

        let stop = AtomicBool::new(false);
        let seen = [const { AtomicU64::new(0) }; 2];
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let result = write(1, 2, 3);
                    assert!(result == 3 || result == slow_result(1, 2, 3), "{result} is neither");
                    seen[usize::from(result == 3)].fetch_add(1, Ordering::Relaxed);
                }
            });
            // Both states are seen, however few processors there are.
            for state in [0, 1].into_iter().cycle() {
                // SAFETY: the routine exists.
                unsafe {
                    gate.begin_wait();
                    gate.end_wait();
                    if state == 0 {
                        gate.begin_wait();
                    }
                }
                std::thread::yield_now();
                if state == 0 {
                    // SAFETY: the routine exists.
                    unsafe { gate.end_wait() };
                }
                if thread.is_finished() || seen.iter().all(|seen| seen.load(Ordering::Relaxed) >= 1000) {
                    break;
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
        arena.free_routine(routine);
    });
}

#[test]
fn a_routine_that_begins_with_a_short_instruction_has_no_gate() {
    with_arena(1 << 14, |arena, _| {
        let slow = slow_path(arena);
        let mut workspace = Workspace::new();
        let mut b = Builder::begin(arena, &mut workspace, "short", 256).unwrap();
        b.pause();
        b.retq();
        let routine = b.end(arena).unwrap();
        assert_eq!(Gate::new(arena, &routine, slow.entry()).map(drop), Err(Error::FirstInstruction));
        let routine = synthesise(arena, &slow, write_null).unwrap();
        let far = Error::Code(quaject_vcode::Error::BranchRange);
        assert_eq!(Gate::new(arena, &routine, slow.entry() ^ 1 << 45).map(drop), Err(far));
    });
}
