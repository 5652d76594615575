//! The executable ready queue: routines that write their number to a log, and threads with stacks of their own.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::host::with_arena;
use quaject_synth::ready::{Member, Place, Ready, Switch};
use quaject_synth::{Arena, Builder, Error, Routine};
use quaject_vcode::Workspace;
use quaject_vcode::system::{RAX, RCX, RSI};

/// How many numbers fit in a log.
const ROOM: usize = 12;

/// The count and the numbers.
#[repr(C)]
struct Log {
    count: u64,
    numbers: [u64; ROOM],
}

/// A routine that appends its number to the log and goes on to the next, or returns when the log is full.
fn numbered(arena: &mut Arena<'_, 4>, log: *mut Log, number: i32) -> (Routine, Member) {
    let mut workspace = Workspace::new();
    let mut b = Builder::begin(arena, &mut workspace, "numbered", 256).unwrap();
    let full = b.label();
    b.mov64_i(RAX, log as i64);
    b.mov64_m(RCX, RAX, 0);
    b.cmp64_i(RCX, ROOM as i32);
    b.j_ae(full);
    b.lea64_x8(RSI, RAX, RCX, 8);
    b.mov64_to_i(RSI, 0, number);
    b.inc64_to(RAX, 0);
    let jump = b.patch_point();
    b.bind(full);
    b.retq();
    let routine = b.end(arena).unwrap();
    // SAFETY: the jump is one of this routine, which stays to the end of the test.
    let member = unsafe { Member::new(arena, &routine, jump) };
    (routine, member)
}

#[test]
fn the_ring_of_jumps_runs_the_threads_of_the_queue() {
    with_arena(1 << 16, |arena, _| {
        let log = Box::into_raw(Box::new(Log { count: 0, numbers: [0; ROOM] }));
        let made: Vec<(Routine, Member)> = (0..4).map(|number| numbered(arena, log, number)).collect();
        let (idle, _) = numbered(arena, log, 99);
        let mut places = [Place::EMPTY; 4];
        let mut ready = Ready::new(&mut places, idle.entry());
        let run = |from: usize| {
            // SAFETY: the routines exist, and take nothing; the log is theirs until they return.
            unsafe {
                (*log).count = 0;
                std::mem::transmute::<usize, extern "C" fn()>(made[from].0.entry())();
                (*log).numbers
            }
        };
        let member = |number: usize| made[number].1;
        assert_eq!(ready.insert_after(0, 1, member(1)), Err(Error::Place), "the queue is empty");
        ready.insert_first(0, member(0)).unwrap();
        assert_eq!(run(0), [0; ROOM]);
        assert_eq!(ready.insert_first(1, member(1)), Err(Error::Place), "the queue is not empty");
        ready.insert_after(0, 1, member(1)).unwrap();
        assert_eq!(run(0), [0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1]);
        // To the front: it is next.
        ready.insert_after(0, 2, member(2)).unwrap();
        assert_eq!(run(0), [0, 2, 1, 0, 2, 1, 0, 2, 1, 0, 2, 1]);
        ready.insert_after(1, 3, member(3)).unwrap();
        assert_eq!(run(2), [2, 1, 3, 0, 2, 1, 3, 0, 2, 1, 3, 0]);
        assert_eq!(ready.insert_after(1, 3, member(3)), Err(Error::Place), "it is in the queue");
        assert_eq!(ready.insert_after(1, 4, member(3)), Err(Error::Place), "there is no such place");
        assert_eq!((ready.after(3), ready.len()), (Some(0), 4));
        ready.remove(2).unwrap();
        assert_eq!(run(0), [0, 1, 3, 0, 1, 3, 0, 1, 3, 0, 1, 3]);
        assert_eq!(
            run(2),
            [2, 1, 3, 0, 1, 3, 0, 1, 3, 0, 1, 3],
            "a thread that is removed while it runs goes on to the others"
        );
        assert_eq!(ready.remove(2), Err(Error::Place));
        ready.remove(3).unwrap();
        ready.remove(0).unwrap();
        assert_eq!(run(1), [1; ROOM]);
        ready.remove(1).unwrap();
        assert!(ready.is_empty());
        assert_eq!(run(1)[..2], [1, 99], "the last one leaves the processor idle");
        // SAFETY: no routine runs any more.
        drop(unsafe { Box::from_raw(log) });
    });
}

/// The thread that runs, set by its switch routine.
static CURRENT: AtomicU64 = AtomicU64::new(0);
/// How each thread is left.
static EXITS: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
/// A decimal digit for each time that a thread ran.
static TRACE: AtomicU64 = AtomicU64::new(0);

/// Notes that the current thread runs.
fn note() {
    TRACE.store(TRACE.load(Ordering::Relaxed) * 10 + CURRENT.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

/// Leaves the current thread, until it is its turn again.
fn yield_thread() {
    let exit = EXITS[CURRENT.load(Ordering::Relaxed) as usize].load(Ordering::Relaxed);
    // SAFETY: the switch routines exist to the end of the test, and are left by such a function.
    unsafe { std::mem::transmute::<usize, extern "C" fn()>(exit)() };
}

extern "C" fn body() {
    // What a thread keeps is on its own stack.
    let own = CURRENT.load(Ordering::Relaxed);
    loop {
        note();
        yield_thread();
        assert_eq!(own, CURRENT.load(Ordering::Relaxed));
    }
}

#[test]
fn threads_switch_by_jumps() {
    with_arena(1 << 16, |arena, _| {
        let mut stacks = vec![vec![0_u64; 1 << 13]; 2];
        let kept: [AtomicUsize; 3] = [const { AtomicUsize::new(0) }; 3];
        let mut workspace = Workspace::new();
        let mut switches = Vec::new();
        for (thread, kept) in kept.iter().enumerate() {
            let switch = Switch::synthesise(arena, &mut workspace, kept.as_ptr() as usize, |b| {
                b.mov64_i(RCX, CURRENT.as_ptr() as i64);
                b.mov64_to_i(RCX, 0, thread as i32);
            })
            .unwrap();
            EXITS[thread].store(switch.exit(), Ordering::Relaxed);
            switches.push(switch);
        }
        for (stack, kept) in stacks.iter_mut().zip(&kept[1..]) {
            let start = body as extern "C" fn() as usize;
            kept.store(Switch::prepare(stack, start).expect("it is long enough"), Ordering::Relaxed);
        }
        assert_eq!(Switch::prepare(&mut [0; 7], 0), None);
        let mut places = [Place::EMPTY; 3];
        // The queue never becomes empty here.
        let mut ready = Ready::new(&mut places, 0);
        // SAFETY: the routines are not freed before the end.
        let members: Vec<Member> = switches.iter().map(|switch| unsafe { switch.member(arena) }).collect();
        let turn = |expected: u64| {
            TRACE.store(0, Ordering::Relaxed);
            for _ in 0..3 {
                note();
                yield_thread();
            }
            assert_eq!(TRACE.load(Ordering::Relaxed), expected);
        };
        ready.insert_first(0, members[0]).unwrap();
        turn(111);
        ready.insert_after(0, 1, members[1]).unwrap();
        turn(121_212);
        ready.insert_after(0, 2, members[2]).unwrap();
        turn(132_132_132);
        ready.remove(1).unwrap();
        turn(131_313);
        ready.insert_after(2, 1, members[1]).unwrap();
        turn(132_132_132);
        let listing = switches[0].routine().listing(arena);
        let exit: Vec<String> = listing
            .skip_while(|row| row.address != switches[0].exit())
            .map(|row| row.decoded.map_or("?".into(), |own| own.to_string()))
            .take_while(|text| !text.starts_with("jmp"))
            .collect();
        assert!(exit.len() == 8 && !exit.contains(&"nop".into()), "no `nop` is executed: {exit:?}");
    });
}
