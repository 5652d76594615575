//! The routines of streams, compared with a model over random operations, with buffers in memory that may fault.

use std::cell::Cell;
use std::collections::VecDeque;

use crate::host::{Stream, slow_path, slow_result, stream, synthesise, with_arena};
use quaject_synth::Arena;
use quaject_synth::entry::{Access, Exit, Sysret};
use quaject_synth::stream::{
    Content, EFAULT, MAX_LENGTH, Open, Paths, Pipe, Ring, dispatch_by_descriptor, read_file, read_null, read_pipe,
    seek_file, seek_null, write_file, write_null, write_pipe,
};
use quaject_synth::{Address, Builder, Error};
use quaject_test_support::Effort;
use quaject_vcode::Workspace;

const PAGE: usize = 4096;

thread_local! {
    /// The arena of the test that runs in this thread, for the handler of faults.
    static ARENA: Cell<*const Arena<'static, 4>> = const { Cell::new(std::ptr::null()) };
}

/// Goes on at the fix-up of the instruction that faulted.
extern "C" fn on_fault(signal: i32, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes the context of the thread that faulted. The arena exists while its routines run, and
    // nothing changes it meanwhile.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let instruction = &mut registers[libc::REG_RIP as usize];
        match ARENA.get().as_ref().and_then(|arena| arena.fix_up(*instruction as usize)) {
            Some(fix_up) => *instruction = fix_up as i64,
            // Not an instruction of a routine: the fault happens again, and ends the test.
            None => drop(libc::signal(signal, libc::SIG_DFL)),
        }
    }
}

/// Lets routines of an arena fault.
fn handle_faults(arena: &Arena<'_, 4>) {
    ARENA.set(std::ptr::from_ref(arena).cast());
    // SAFETY: the handler calls only what may be called in one.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_fault as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
    }
}

/// What a program may do with a page of its buffers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Rights {
    None,
    Read,
    Write,
}

/// The pages of the buffers, between two that are not there.
const PAGES: [Rights; 9] = {
    use Rights::{None, Read, Write};
    [None, Write, Write, None, Write, Read, Write, Write, None]
};

/// Memory of the user.
struct User {
    start: usize,
}

impl User {
    fn new() -> User {
        let length = PAGES.len() * PAGE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: new memory; the pages of which rights are taken are inside.
        unsafe {
            let start = libc::mmap(std::ptr::null_mut(), length, rights, flags, -1, 0);
            assert!(start != libc::MAP_FAILED);
            for at in 0..length {
                start.cast::<u8>().add(at).write(at as u8 ^ (at >> 8) as u8);
            }
            for (index, rights) in PAGES.iter().enumerate() {
                let rights = match rights {
                    Rights::None => libc::PROT_NONE,
                    Rights::Read => libc::PROT_READ,
                    Rights::Write => libc::PROT_READ | libc::PROT_WRITE,
                };
                assert_eq!(libc::mprotect(start.add(index * PAGE), PAGE, rights), 0);
            }
            User { start: start as usize }
        }
    }

    /// How many of the bytes at an address can be accessed, until the first that cannot.
    fn accessible(&self, address: usize, length: usize, may: impl Fn(Rights) -> bool) -> usize {
        let page_of = |at: usize| at.checked_sub(self.start).and_then(|at| PAGES.get(at / PAGE)).copied();
        let mut at = address;
        while at < address + length && page_of(at).is_some_and(&may) {
            at = (at / PAGE + 1) * PAGE;
        }
        at.min(address + length) - address
    }

    /// The bytes at an address, which are accessible.
    fn bytes(&self, address: usize, length: usize) -> &[u8] {
        // SAFETY: the caller has asked `accessible`.
        unsafe { std::slice::from_raw_parts(address as *const u8, length) }
    }

    /// An address and a length: most of them inside, of any alignment.
    fn buffer(&self, random: &mut Random) -> (usize, usize) {
        let address = match random.below(16) {
            0 => 0,
            1 => 1 << 47,
            2 => usize::MAX - random.below(100),
            // Around the borders of pages.
            3..8 => self.start + (1 + random.below(7)) * PAGE + random.below(40) - 20,
            _ => self.start + PAGE + random.below(7 * PAGE),
        };
        let length = match random.below(16) {
            0 => usize::MAX - random.below(10),
            1 => MAX_LENGTH as usize + 1,
            2 | 3 => 1,
            4..9 => random.below(40),
            _ => random.below(5000),
        };
        (address, length)
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// Whether no user can mean the buffer: the last page below 2^47 is never the user's.
fn is_refused((address, length): (usize, usize)) -> bool {
    length > MAX_LENGTH as usize || (address | address.wrapping_add(length).wrapping_add(PAGE - 1)) >> 47 != 0
}

/// The result of copying `done` of `wanted` bytes.
fn result(done: usize, wanted: usize) -> i64 {
    if done == 0 && wanted != 0 { -i64::from(EFAULT) } else { done as i64 }
}

/// Calls a read, and compares with what it should do: nothing, or take the first of these bytes.
fn check_read(user: &User, read: Stream, (address, length): (usize, usize), available: Option<&[u8]>) -> usize {
    let found = read(7, address, length);
    let Some(available) = available.filter(|_| !is_refused((address, length))) else {
        assert_eq!(found, slow_result(7, address, length), "{address:#x} {length}");
        return 0;
    };
    let wanted = available.len().min(length);
    let done = user.accessible(address, wanted, |rights| rights == Rights::Write);
    assert_eq!(found, result(done, wanted), "{address:#x} {length} of {}", available.len());
    assert!(user.bytes(address.max(1), done) == &available[..done], "{address:#x} {length}: other bytes");
    done
}

/// The same of a write; returns the bytes that were written.
fn check_write(user: &User, write: Stream, (address, length): (usize, usize), is_possible: bool) -> Vec<u8> {
    let found = write(8, address, length);
    if !is_possible || is_refused((address, length)) {
        assert_eq!(found, slow_result(8, address, length), "{address:#x} {length}");
        return Vec::new();
    }
    let done = user.accessible(address, length, |rights| rights != Rights::None);
    assert_eq!(found, result(done, length), "{address:#x} {length}");
    user.bytes(address.max(1), done).to_vec()
}

fn turns() -> usize {
    Effort::wanted().pick(20_000, 100_000, 5_000_000)
}

/// A pipe and its bytes.
#[repr(C)]
struct PipeMemory<const SIZE: usize> {
    pipe: Pipe,
    data: [u8; SIZE],
}

/// Compares the routines of a pipe with a queue, over random operations. What reaches the end of the ring, and what
/// faults, is for the slow path, and changes nothing.
fn check_pipe<const SIZE: usize>(arena: &mut Arena<'_, 4>, begin: u64) {
    let slow = slow_path(arena);
    let user = User::new();
    let mut random = Random(1);
    let pipe = Pipe { head: begin, tail: begin };
    let memory = Box::into_raw(Box::new(PipeMemory { pipe, data: [0; SIZE] }));
    let ring = Ring { pipe: Address::Known(memory as usize), size_bits: SIZE.trailing_zeros() as u8 };
    let read = synthesise(arena, &slow, |b, entry, paths| read_pipe(b, entry, paths, ring)).unwrap();
    let write = synthesise(arena, &slow, |b, entry, paths| write_pipe(b, entry, paths, ring)).unwrap();
    handle_faults(arena);
    let mut model: VecDeque<u8> = VecDeque::new();
    let mut moved = 0;
    for _ in 0..turns() {
        let (address, length) = user.buffer(&mut random);
        // SAFETY: no routine runs; raw, because routines write there.
        let now = unsafe { ((*memory).pipe.head, (*memory).pipe.tail) };
        assert_eq!(now.0.wrapping_sub(now.1), model.len() as u64);
        let is_read = random.below(2) == 0;
        let (call, index) = if is_read { (stream(&read), now.1) } else { (stream(&write), now.0) };
        let wanted = if is_read { length.min(model.len()) } else { length };
        let may = |rights| if is_read { rights == Rights::Write } else { rights != Rights::None };
        let is_fast = !is_refused((address, length))
            && if is_read { !model.is_empty() } else { wanted <= SIZE - model.len() }
            && index as usize % SIZE + wanted <= SIZE
            && user.accessible(address, wanted, may) == wanted;
        let found = call(7, address, length);
        if !is_fast {
            assert_eq!(found, slow_result(7, address, length), "{address:#x} {length}");
            continue;
        }
        assert_eq!(found, wanted as i64, "{address:#x} {length}");
        moved += wanted;
        let bytes = user.bytes(address.max(1), wanted);
        if is_read {
            assert!(model.drain(..wanted).eq(bytes.iter().copied()), "{address:#x} {length}: other bytes");
        } else {
            model.extend(bytes);
        }
    }
    assert!(moved > SIZE * 100, "it has wrapped around often");
    // SAFETY: no routine runs any more.
    drop(unsafe { Box::from_raw(memory) });
    for routine in [read, write, slow] {
        arena.free_routine(routine);
    }
}

#[test]
fn pipes_do_what_a_queue_of_bytes_does() {
    with_arena(1 << 16, |arena, _| {
        // The indices count beyond their type.
        check_pipe::<4096>(arena, u64::MAX - 5000);
        check_pipe::<64>(arena, 0);
        check_pipe::<16_384>(arena, 1 << 32);
    });
}

/// Instances of one template, each with the addresses of its own pipe, do what a routine does that was written for it.
#[test]
fn instances_of_a_template_differ_in_their_addresses_only() {
    with_arena(1 << 16, |arena, _| {
        let slow = slow_path(arena);
        let mut pipes: Vec<Box<PipeMemory<64>>> =
            (0..3).map(|_| Box::new(PipeMemory { pipe: Pipe::default(), data: [0; 64] })).collect();
        let begin = |arena: &mut Arena<'_, 4>, pipe, is_read| {
            let mut workspace = Workspace::new();
            let mut b = Builder::begin(arena, &mut workspace, "pipe", 1024).unwrap();
            let (entry, paths) = (quaject_synth::entry::Call, Paths { slow: slow.entry(), user_bits: 47 });
            let ring = Ring { pipe, size_bits: 6 };
            if is_read {
                read_pipe(&mut b, entry, paths, ring)
            } else {
                write_pipe(&mut b, entry, paths, ring)
            }
            b.end_template(arena).unwrap()
        };
        let (reads, writes) = (begin(arena, Address::Hole(0), true), begin(arena, Address::Hole(0), false));
        let mut buffer = [0_u8; 9];
        for (number, pipe) in pipes.iter_mut().enumerate() {
            let address = std::ptr::from_mut(&mut **pipe) as usize;
            let known = begin(arena, Address::Known(address), true);
            let instance = reads.instantiate(arena, &[address]).unwrap();
            let text = |routine: &quaject_synth::Routine, arena: &Arena<'_, 4>| -> Vec<String> {
                routine.listing(arena).map(|row| row.decoded.map_or("?".into(), |own| own.to_string())).collect()
            };
            let length = |lines: &[String]| lines.iter().filter(|line| !line.starts_with('j')).count();
            let (wanted, found) = (text(known.routine(), arena), text(&instance, arena));
            assert_eq!(length(&wanted), length(&found), "{wanted:?} {found:?}");
            let write = writes.instantiate(arena, &[address]).unwrap();
            handle_faults(arena);
            let text = [b'a' + number as u8; 9];
            assert_eq!(stream(&write)(1, text.as_ptr() as usize, 9), 9);
            assert_eq!(stream(&instance)(1, 8, 9), slow_result(1, 8, 9), "a fault goes on in the instance");
            assert_eq!(stream(&instance)(1, buffer.as_mut_ptr() as usize, 9), 9);
            assert_eq!(buffer, text);
            assert_eq!(pipe.pipe.tail, 9);
            let mut gate = writes.gate(arena, &write).expect("the first instruction is long");
            // SAFETY: the routine exists.
            unsafe { gate.begin_wait() }
            assert_eq!(stream(&write)(1, text.as_ptr() as usize, 9), slow_result(1, text.as_ptr() as usize, 9));
            // SAFETY: as above.
            unsafe { gate.end_wait() }
            assert_eq!(stream(&write)(1, text.as_ptr() as usize, 9), 9);
            let found = arena.routine_at(instance.entry() + 40).expect("the address is in it");
            assert_eq!((found.name, found.entry, found.code.len()), ("pipe", instance.entry(), instance.length()));
            assert!(arena.routines().any(|other| other == found));
        }
        assert_eq!(reads.instantiate(arena, &[]), Err(Error::Holes));
        let mut workspace = Workspace::new();
        let mut b = Builder::begin(arena, &mut workspace, "hole", 256).unwrap();
        b.load_address(quaject_vcode::system::RAX, Address::Hole(0));
        b.retq();
        assert_eq!(b.end(arena), Err(Error::Holes), "an address is missing");
    });
}

#[test]
fn files_do_what_an_array_does() {
    with_arena(1 << 16, |arena, _| {
        let slow = slow_path(arena);
        let user = User::new();
        let mut random = Random(2);
        let mut data = vec![0_u8; 9000];
        let open = Box::into_raw(Box::new(Open { position: 0 }));
        let empty = Content { data: data.as_mut_ptr() as usize, size: 0, capacity: 9000, modified: 0 };
        let (content, clock) = (Box::into_raw(Box::new(empty)), Box::into_raw(Box::new(0_u64)));
        let places = [open as usize, content as usize, clock as usize].map(Address::Known);
        let [of_open, of_content, _] = places;
        let read = synthesise(arena, &slow, |b, entry, paths| read_file(b, entry, paths, of_open, of_content)).unwrap();
        let write = synthesise(arena, &slow, |b, entry, paths| write_file(b, entry, paths, places)).unwrap();
        let seek = synthesise(arena, &slow, |b, entry, paths| seek_file(b, entry, paths, of_open)).unwrap();
        handle_faults(arena);
        let (mut model, mut position) = (Vec::<u8>::new(), 0_usize);
        for _ in 0..turns() {
            let buffer = user.buffer(&mut random);
            // SAFETY: no routine runs; raw, because routines write there.
            let now = unsafe { ((*open).position, (*content).size) };
            assert_eq!(now, (position as u64, model.len() as u64));
            match random.below(10) {
                0 => {
                    position = random.below(9100);
                    assert_eq!(stream(&seek)(3, position, 0), position as i64);
                }
                1 => {
                    let (offset, base) = (random.below(100).wrapping_sub(50), random.below(3));
                    let is_slow = base != 0 || offset as isize <= -1;
                    let expected = if is_slow { slow_result(3, offset, base) } else { offset as i64 };
                    assert_eq!(stream(&seek)(3, offset, base), expected);
                    position = if is_slow { position } else { offset };
                }
                2 => model.truncate(random.below(9100)),
                3..6 => {
                    let rest = model.get(position..).unwrap_or_default();
                    position += check_read(&user, stream(&read), buffer, Some(rest));
                }
                _ => {
                    // SAFETY: no routine runs.
                    unsafe { *clock += 1 };
                    let end = position.saturating_add(buffer.1);
                    let bytes = check_write(&user, stream(&write), buffer, position <= model.len() && end <= 9000);
                    let end = position + bytes.len();
                    if !bytes.is_empty() {
                        model.resize(end.max(model.len()), 0);
                        model[position..end].copy_from_slice(&bytes);
                        // SAFETY: no routine runs.
                        unsafe { assert_eq!((*content).modified, *clock) };
                    }
                    position = end;
                }
            }
            // SAFETY: as above.
            unsafe { ((*open).position, (*content).size) = (position as u64, model.len() as u64) };
        }
        assert_eq!(&data[..model.len()], &model[..]);
        // SAFETY: no routine runs any more.
        unsafe {
            drop(Box::from_raw(open));
            drop(Box::from_raw(content));
            drop(Box::from_raw(clock));
        }
        for routine in [read, write, seek] {
            arena.free_routine(routine);
        }
    });
}

#[test]
fn null_reads_nothing_and_writes_everything() {
    with_arena(1 << 16, |arena, _| {
        let slow = slow_path(arena);
        let read = synthesise(arena, &slow, read_null).unwrap();
        let write = synthesise(arena, &slow, write_null).unwrap();
        assert_eq!((stream(&read)(1, 5, 100), stream(&write)(1, 5, 100)), (0, 100));
        let end = (1 << 47) - PAGE;
        for (address, length) in
            [(5, usize::MAX), (5, MAX_LENGTH as usize + 1), (1 << 47, 1), (usize::MAX, 0), (usize::MAX, 9), (end, 1)]
        {
            let expected = slow_result(1, address, length);
            assert_eq!((stream(&read)(1, address, length), stream(&write)(1, address, length)), (expected, expected));
        }
        assert_eq!(stream(&write)(1, end - MAX_LENGTH as usize, MAX_LENGTH as usize), i64::from(MAX_LENGTH));
        let seek = synthesise(arena, &slow, seek_null).unwrap();
        assert_eq!((stream(&seek)(1, 100, 0), stream(&seek)(1, 100, 1)), (0, slow_result(1, 100, 1)));
        for routine in [read, write, seek] {
            arena.free_routine(routine);
        }
    });
}

#[test]
fn the_entry_of_the_kernel_saves_what_the_user_has() {
    with_arena(1 << 16, |arena, _| {
        let slow = slow_path(arena);
        let mut listing = |access, emit: &dyn Fn(&mut Builder<'_>, Sysret, Paths)| {
            let mut workspace = Workspace::new();
            let mut b = Builder::begin(arena, &mut workspace, "kernel", 1024).unwrap();
            emit(
                &mut b,
                Sysret { slots: 64, access, exit: Exit::Program },
                Paths { slow: slow.entry(), user_bits: 47 },
            );
            let routine = b.end(arena).unwrap();
            let text = routine.listing(arena).map(|row| row.decoded.map_or("?".into(), |own| own.to_string()));
            let text: Vec<String> = text.collect();
            assert!(!text.contains(&"?".to_string()), "{text:?}");
            (text, routine.memory())
        };
        let (null, _) = listing(Access::Guarded, &|b, entry, paths| read_null(b, entry, paths));
        let branches = |line: &&String| !line.starts_with('j');
        assert_eq!(
            null.iter().filter(branches).collect::<Vec<_>>(),
            [
                "cmpq $2147479552,%rdx",
                "leaq 4095(%rsi,%rdx,1),%rax",
                "orq %rsi,%rax",
                "shrq $47,%rax",
                "swapgs",
                "sysretq"
            ]
        );
        let ring = Ring { pipe: Address::Known(0x1000), size_bits: 16 };
        let (pipe, _) = listing(Access::Guarded, &|b, entry, paths| read_pipe(b, entry, paths, ring));
        let count = |pipe: &[String], text: &str| pipe.iter().filter(|line| line.contains(text)).count();
        // On the way in once for one byte and once for many; on the way out of each with a result, and to the slow
        // path.
        assert_eq!((count(&pipe, "stac"), count(&pipe, "clac")), (2, 4));
        assert_eq!((count(&pipe, "%gs:64,%rcx"), count(&pipe, "%rcx,%gs:64")), (4, 2));
        assert_eq!((count(&pipe, "%gs:72,%r11"), count(&pipe, "%r11,%gs:72")), (2, 1));
        assert_eq!((count(&pipe, "%gs:88,%rsi"), count(&pipe, "%rsi,%gs:88")), (2, 1));
        let (pipe, _) = listing(Access::Always, &|b, entry, paths| read_pipe(b, entry, paths, ring));
        assert_eq!((count(&pipe, "stac"), count(&pipe, "clac")), (0, 0));
    });
}

/// A descriptor's routine is found by its number; what is no descriptor goes to the slow path.
#[test]
fn descriptors_lead_to_their_routines() {
    with_arena(1 << 16, |arena, _| {
        let slow = slow_path(arena);
        let constants = [-9, 5, i64::MAX].map(|value| {
            synthesise(arena, &slow, |b, entry, _| quaject_synth::constant::constant(b, entry, value)).unwrap()
        });
        let table: Vec<usize> = constants.iter().map(quaject_synth::Routine::entry).collect();
        let dispatch = synthesise(arena, &slow, |b, _, paths| {
            dispatch_by_descriptor(b, paths, Address::Known(table.as_ptr() as usize), 3);
        });
        let dispatch = dispatch.unwrap();
        let call = stream(&dispatch);
        assert_eq!([0, 1, 2].map(|number| call(number, 0, 0)), [-9, 5, i64::MAX]);
        for number in [3, 1 << 32, u64::MAX] {
            assert_eq!(call(number, 1, 2), slow_result(number, 1, 2));
        }
    });
}

#[test]
fn failures_are_values_and_lose_no_memory() {
    with_arena(12 * 64, |arena, grace| {
        let slow = slow_path(arena);
        let used = arena.used();
        let ring = Ring { pipe: Address::Known(0), size_bits: 16 };
        let pipe = |arena: &mut Arena<'_, 4>, bytes| {
            let mut workspace = Workspace::new();
            let mut b = Builder::begin(arena, &mut workspace, "pipe", bytes)?;
            let paths = Paths { slow: slow.entry(), user_bits: 47 };
            read_pipe(&mut b, quaject_synth::entry::Call, paths, ring);
            b.end(arena)
        };
        assert_eq!(pipe(arena, 4096), Err(Error::NoMemory));
        assert_eq!(pipe(arena, 64), Err(Error::Code(quaject_vcode::Error::Overflow)));
        assert_eq!(pipe(arena, 128), Err(Error::Code(quaject_vcode::Error::Overflow)));
        assert_eq!(arena.used(), used);
        let routine = pipe(arena, 11 * 64).expect("it fits");
        arena.free_routine(routine);
        let participant = grace.register().unwrap();
        for _ in 0..1000 {
            let routine = pipe(arena, 11 * 64).expect("the last one is free again");
            arena.free_routine(routine);
            assert_eq!(pipe(arena, 11 * 64), Err(Error::NoMemory), "a thread may be inside");
            grace.quiescent(&participant);
        }
        grace.leave(participant);

        let mut workspace = Workspace::new();
        let mut b = Builder::begin(arena, &mut workspace, "wrong", 256).unwrap();
        let label = b.label();
        b.may_fault(label);
        b.retq();
        assert_eq!(b.end(arena), Err(Error::Code(quaject_vcode::Error::UnboundLabel)));
        let mut workspace = Workspace::new();
        let mut b = Builder::begin(arena, &mut workspace, "wrong", 256).unwrap();
        let label = b.label();
        b.bind(label);
        (0..17).for_each(|_| b.may_fault(label));
        assert_eq!(b.end(arena), Err(Error::Exceptions));
        let mut workspace = Workspace::new();
        Builder::begin(arena, &mut workspace, "abandoned", 256).unwrap().abandon(arena);
        assert_eq!(arena.used(), used);
    });
}
