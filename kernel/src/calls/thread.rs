//! Calls on threads.

use super::call::{Call, CallResult, fault};
use super::time::{Clock, deadline};
use crate::arch::processor;
use crate::memory::layout::USER_END;
use crate::memory::user;
use crate::process::task::{Task, new_id};
use crate::schedule::scheduler::{self, MAX_THREADS};
use crate::schedule::thread::{Thread, ThreadStart};
use alloc::rc::Rc;
use linux_raw_sys::general::{
    CLONE_CHILD_CLEARTID, CLONE_CHILD_SETTID, CLONE_DETACHED, CLONE_FILES, CLONE_FS, CLONE_PARENT_SETTID, CLONE_SETTLS,
    CLONE_SIGHAND, CLONE_SYSVSEM, CLONE_THREAD, CLONE_VM, FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE, FUTEX_PRIVATE_FLAG,
    FUTEX_REQUEUE, FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAKE, FUTEX_WAKE_BITSET,
};
use syscalls::Errno;

/// Makes a thread. Processes with an address space of their own (`fork`) are not implemented.
pub(super) fn clone(call: &mut Call<'_>) -> CallResult {
    const OF_THREADS: u32 = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
    // CLONE_DETACHED has no meaning since Linux 2.6.2; musl sets it.
    const KNOWN: u32 = OF_THREADS
        | CLONE_SYSVSEM
        | CLONE_SETTLS
        | CLONE_PARENT_SETTID
        | CLONE_CHILD_CLEARTID
        | CLONE_CHILD_SETTID
        | CLONE_DETACHED;
    let flags = call.word(0);
    if flags & OF_THREADS != OF_THREADS || flags & !KNOWN != 0 {
        return Err(Errno::ENOSYS);
    }
    if flags & CLONE_SETTLS != 0 && call.argument(4) >= USER_END {
        return Err(Errno::EPERM);
    }
    if scheduler::thread_count() >= MAX_THREADS {
        return Err(Errno::EAGAIN);
    }
    let id = new_id();
    let task = Rc::new(Task::new(id, call.task.process.clone()));
    task.signals.borrow_mut().blocked = call.task.signals.borrow().blocked;
    if flags & CLONE_CHILD_CLEARTID != 0 {
        task.clear_at.set(call.argument(3));
    }
    if flags & CLONE_PARENT_SETTID != 0 {
        user::write(call.argument(2), &id).map_err(fault)?;
    }
    if flags & CLONE_CHILD_SETTID != 0 {
        user::write(call.argument(3), &id).map_err(fault)?;
    }
    let mut registers = call.frame.clone();
    registers.rax = 0;
    if call.argument(1) != 0 {
        registers.rsp = call.argument(1);
    }
    let vectors = scheduler::current().vectors();
    let user_fs = if flags & CLONE_SETTLS != 0 { call.argument(4) } else { processor::user_fs() };
    let process = call.task.process.clone();
    let start = ThreadStart {
        id,
        entries: &process.entries.entries,
        task,
        page_root: call.process().space.borrow().root(),
        registers,
        vectors,
        user_fs,
        user_gs: processor::user_gs(),
    };
    scheduler::add(Thread::new(start).map_err(|_| Errno::EAGAIN)?);
    Ok(u64::from(id))
}

pub(super) fn set_tid_address(call: &mut Call<'_>) -> CallResult {
    call.task.clear_at.set(call.argument(0));
    Ok(u64::from(call.task.id))
}

/// The list is not used: a mutex whose owner ends stays locked.
pub(super) fn set_robust_list(call: &mut Call<'_>) -> CallResult {
    const HEAD_BYTES: u64 = 24;
    if call.argument(1) == HEAD_BYTES { Ok(0) } else { Err(Errno::EINVAL) }
}

pub(super) fn sched_yield(_: &mut Call<'_>) -> CallResult {
    scheduler::yield_now();
    Ok(0)
}

/// There is one processor, and its number is 0.
pub(super) fn sched_getaffinity(call: &mut Call<'_>) -> CallResult {
    const MASK_BYTES: usize = 8;
    if call.length(1) < MASK_BYTES || !call.length(1).is_multiple_of(MASK_BYTES) {
        return Err(Errno::EINVAL);
    }
    user::write(call.argument(2), &1_u64).map_err(fault)?;
    Ok(MASK_BYTES as u64)
}

pub(super) fn sched_setaffinity(call: &mut Call<'_>) -> CallResult {
    if call.length(1) == 0 {
        return Err(Errno::EINVAL);
    }
    let first: u8 = user::read(call.argument(2)).map_err(fault)?;
    if first & 1 == 0 { Err(Errno::EINVAL) } else { Ok(0) }
}

pub(super) fn futex(call: &mut Call<'_>) -> CallResult {
    let (address, value, other) = (call.argument(0), call.word(2), call.argument(4));
    let operation = call.word(1) & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    let clock = if call.word(1) & FUTEX_CLOCK_REALTIME == 0 { Clock::Monotonic } else { Clock::Real };
    let futexes = &call.task.process.futexes;
    match operation {
        FUTEX_WAIT => {
            let until = deadline(call.argument(3), Clock::Relative)?;
            futexes.wait(address, value, u32::MAX, until).map(|()| 0)
        }
        FUTEX_WAIT_BITSET => {
            let until = deadline(call.argument(3), clock)?;
            futexes.wait(address, value, call.word(5), until).map(|()| 0)
        }
        FUTEX_WAKE => Ok(futexes.wake(address, value, u32::MAX)),
        FUTEX_WAKE_BITSET => Ok(futexes.wake(address, value, call.word(5))),
        FUTEX_REQUEUE => Ok(futexes.requeue(address, value, other, call.word(3))),
        FUTEX_CMP_REQUEUE => {
            if user::read_word(address).map_err(fault)? != call.word(5) {
                return Err(Errno::EAGAIN);
            }
            Ok(futexes.requeue(address, value, other, call.word(3)))
        }
        _ => Err(Errno::ENOSYS),
    }
}
