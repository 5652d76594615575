//! Self-tests that only the machine itself can make, and faults on purpose, which show that the protections and the
//! reports work. The command line asks for them.

use crate::arch::entry::{copy_across, fill_across};
use crate::arch::processor;
use crate::log::log;
use crate::memory::audit::audit;
use crate::memory::frames;
use crate::memory::layout::{CODE_EXECUTE, CODE_WRITE, PAGE_BYTES, USER_START};
use crate::outcome::{Outcome, end_machine};
use crate::synthesis;
use alloc::vec::Vec;
use core::arch::asm;

/// Checks the active page tables and the protections; both must hold before a program runs.
///
/// # Panics
/// When they do not.
pub(crate) fn check_protection() {
    let missing: Vec<&str> = processor::missing_protections().collect();
    assert!(missing.is_empty(), "protections are off: {missing:?}");
    let found = audit(processor::page_root());
    assert!(found.is_clean(), "page tables allow what they must not: {found:x?}");
}

/// Runs every self-test.
pub(crate) fn run() -> ! {
    check_protection();
    let found = audit(processor::page_root());
    log!("page tables: {} leaves, {} executable, none writable too", found.leaves, found.executable);
    check_code_area();
    check_exception_table();
    check_frames();
    log!("{} KiB are free", frames::free_bytes() >> 10);
    end_machine(Outcome::Checked)
}

/// Reports what the synthesis of each kind of routine costs, in ticks, as `counts.rs` does, and the instructions that
/// are executed on the way through a switch routine.
pub(crate) fn measure() -> ! {
    for cost in synthesis::measure_shapes() {
        log!("synthesis: {} {} {} {}", cost.name, cost.instructions, cost.bytes, cost.ticks);
    }
    end_machine(Outcome::Checked)
}

/// Code that is written through one alias runs through the other, also after a change.
fn check_code_area() {
    // mov eax, N; ret
    const ROUTINE: [u8; 6] = [0xb8, 0, 0, 0, 0, 0xc3];
    for number in [42_u8, 7] {
        let mut code = ROUTINE;
        code[1] = number;
        // SAFETY: the area is mapped, nothing else uses it yet, and the routine follows the calling convention.
        let result = unsafe {
            (CODE_WRITE as *mut [u8; 6]).write_volatile(code);
            let routine: extern "C" fn() -> u32 = core::mem::transmute(CODE_EXECUTE as *const ());
            routine()
        };
        assert!(result == u32::from(number), "the routine returns {result} and not {number}");
    }
    log!("code area: written through one alias, run through the other");
}

/// A copy from and to memory of programs that is not mapped ends with the exact count.
fn check_exception_table() {
    const LENGTH: usize = 100;
    let mut bytes = [1_u8; LENGTH];
    let hole = USER_START as *mut u8;
    // SAFETY: the addresses of programs are empty, which the functions are for; the array is our own.
    let left = unsafe {
        [
            copy_across(bytes.as_mut_ptr(), hole, LENGTH),
            copy_across(hole, bytes.as_ptr(), LENGTH),
            fill_across(hole, LENGTH),
        ]
    };
    assert!(left == [LENGTH; 3], "a copy across a hole leaves {left:?} bytes");
    assert!(bytes == [1; LENGTH], "a copy from a hole changes nothing");
    log!("exception table: copies across a hole end with the exact count");
}

/// Pages are zero, differ, and come back.
fn check_frames() {
    let before = frames::free_bytes();
    let pages: Vec<_> = (0..100).map(|_| frames::allocate().expect("there is memory")).collect();
    let mut addresses: Vec<u64> = pages.iter().map(|page| page.0).collect();
    addresses.sort_unstable();
    addresses.dedup();
    assert!(addresses.len() == pages.len(), "pages differ");
    for page in pages {
        // SAFETY: the page is ours.
        unsafe { frames::free(page) }
    }
    assert!(frames::free_bytes() + 100 * PAGE_BYTES > before, "pages come back");
    log!("physical pages: allocated and freed");
}

/// Does on purpose what a protection forbids.
///
/// # Panics
/// When the fault has no name here, and when the protection does not hold.
pub(crate) fn provoke(fault: &str) -> ! {
    const WORD: u64 = 0xc3;
    static CONSTANT: u64 = WORD;
    // SAFETY: each access is meant to fault; if it does not, the kernel ends.
    unsafe {
        match fault {
            "panic" => panic!("as requested"),
            "write-text" => (provoke as *const () as *mut u8).write_volatile(0xc3),
            "write-constant" => (&raw const CONSTANT).cast_mut().write_volatile(0),
            "write-code" => (CODE_EXECUTE as *mut u8).write_volatile(0xc3),
            "execute-data" => {
                (CODE_WRITE as *mut u8).write_volatile(0xc3);
                let routine: extern "C" fn() = core::mem::transmute(CODE_WRITE as *const ());
                routine();
            }
            "read-hole" => {
                (CODE_WRITE as *mut u64).write_volatile(((CODE_WRITE - PAGE_BYTES) as *const u64).read_volatile());
            }
            "routine" => call_template(),
            "stack" => {
                overflow_stack(0);
            }
            _ => panic!("there is no fault `{fault}` to provoke"),
        }
    }
    panic!("`{fault}` did not fault")
}

/// Executes the template of a routine, whose addresses are missing, as SYSCALL would enter it.
fn call_template() {
    let entry = synthesis::template_entry();
    // SAFETY: the routine faults when it uses a placeholder; the kernel ends then.
    unsafe { asm!("call {}", in(reg) entry, in("rsi") 0x1000, in("rdx") 8, clobber_abi("sysv64")) }
}

/// Recurs until the stack ends.
#[inline(never)]
fn overflow_stack(depth: u64) -> u64 {
    let room = core::hint::black_box([depth; 64]);
    if room[0] == u64::MAX { 0 } else { overflow_stack(depth + 1) + room[1] }
}
