//! Executable memory of the host for tests: one file, mapped writable and executable.

use quaject_synth::arena::{Arena, Unit};
use quaject_synth::entry::Call;
use quaject_synth::grace::Grace;
use quaject_synth::stream::Paths;
use quaject_synth::{Builder, Error, Routine};
use quaject_vcode::Workspace;
use quaject_vcode::system::{RAX, RCX, RDI, RDX, RSI};

/// Runs `check` on an arena of so many bytes.
pub fn with_arena<R>(length: usize, check: impl FnOnce(&mut Arena<'_, 4>, &Grace<4>) -> R) -> R {
    // SAFETY: these calls have no preconditions; their results are checked.
    let (writable, executable) = unsafe {
        let file = libc::memfd_create(c"code".as_ptr(), 0);
        assert!(file >= 0 && libc::ftruncate(file, length as i64) == 0);
        let map = |rights| libc::mmap(std::ptr::null_mut(), length, rights, libc::MAP_SHARED, file, 0);
        let maps = (map(libc::PROT_READ | libc::PROT_WRITE), map(libc::PROT_READ | libc::PROT_EXEC));
        libc::close(file);
        maps
    };
    assert!(writable != libc::MAP_FAILED && executable != libc::MAP_FAILED);
    let grace = Grace::new();
    let mut units = vec![Unit::NEW; length / 64];
    // SAFETY: both maps are of the same memory, which nothing else uses, and aligned to pages.
    let mut arena = unsafe { Arena::new(writable.cast(), executable as usize, length, &mut units, &grace) };
    let result = check(&mut arena, &grace);
    // SAFETY: no routine is executed any more.
    unsafe {
        libc::munmap(writable, length);
        libc::munmap(executable, length);
    }
    result
}

/// A function like `read` and `write`.
pub type Stream = extern "C" fn(u64, usize, usize) -> i64;

/// What a routine is called by.
pub fn stream(routine: &Routine) -> Stream {
    // SAFETY: the routines of tests have this signature, and are not freed while they are used.
    unsafe { std::mem::transmute::<usize, Stream>(routine.entry()) }
}

/// A slow path that returns which arguments it got.
pub fn slow_path<const N: usize>(arena: &mut Arena<'_, N>) -> Routine {
    let mut workspace = Workspace::new();
    let mut b = Builder::begin(arena, &mut workspace, "slow", 256).expect("there is room");
    b.mov64(RAX, RDI);
    b.xor64(RAX, RSI);
    b.xor64(RAX, RDX);
    b.mov64_i(RCX, i64::MIN);
    b.or64(RAX, RCX);
    b.retq();
    b.end(arena).expect("the routine is right")
}

/// What the slow path returns.
pub fn slow_result(descriptor: u64, address: usize, length: usize) -> i64 {
    (descriptor ^ address as u64 ^ length as u64) as i64 | i64::MIN
}

/// Synthesises a routine that is called.
pub fn synthesise<const N: usize>(
    arena: &mut Arena<'_, N>,
    slow: &Routine,
    emit: impl FnOnce(&mut Builder<'_>, Call, Paths),
) -> Result<Routine, Error> {
    let mut workspace = Workspace::new();
    let mut b = Builder::begin(arena, &mut workspace, "tested", 1024)?;
    emit(&mut b, Call, Paths { slow: slow.entry(), user_bits: 47 });
    b.end(arena)
}
