//! Calls on the process: its end, its limits, its segment registers.

use super::call::{Call, CallResult, fault};
use crate::arch::processor;
use crate::fs::limits::MAX_DESCRIPTORS;
use crate::fs::random;
use crate::memory::layout::USER_END;
use crate::memory::space::STACK_BYTES;
use crate::memory::user::{self, is_in_range};
use crate::process::ending::{exit_process, exit_thread};
use linux_raw_sys::general::{
    GRND_INSECURE, GRND_NONBLOCK, GRND_RANDOM, RLIM64_INFINITY, RLIMIT_CORE, RLIMIT_NOFILE, RLIMIT_STACK,
};
use syscalls::Errno;

pub(super) fn exit(call: &mut Call<'_>) -> CallResult {
    exit_thread(call.argument(0) as u8)
}

pub(super) fn exit_group(call: &mut Call<'_>) -> CallResult {
    exit_process(call.argument(0) as u8)
}

/// There are no children.
pub(super) fn wait4(_: &mut Call<'_>) -> CallResult {
    Err(Errno::ECHILD)
}

pub(super) fn arch_prctl(call: &mut Call<'_>) -> CallResult {
    const SET_GS: u32 = 0x1001;
    const SET_FS: u32 = 0x1002;
    const GET_FS: u32 = 0x1003;
    const GET_GS: u32 = 0x1004;
    let value = call.argument(1);
    match call.word(0) {
        SET_FS | SET_GS if value >= USER_END => Err(Errno::EPERM),
        SET_FS => {
            processor::set_user_fs(value);
            Ok(0)
        }
        SET_GS => {
            processor::set_user_gs(value);
            Ok(0)
        }
        GET_FS => user::write(value, &processor::user_fs()).map_err(fault).map(|()| 0),
        GET_GS => user::write(value, &processor::user_gs()).map_err(fault).map(|()| 0),
        _ => Err(Errno::EINVAL),
    }
}

pub(super) fn getrandom(call: &mut Call<'_>) -> CallResult {
    const MAX_BYTES: usize = 0x1ff_ffff;
    let flags = call.word(2);
    if flags & !(GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE) != 0
        || flags & (GRND_RANDOM | GRND_INSECURE) == GRND_RANDOM | GRND_INSECURE
    {
        return Err(Errno::EINVAL);
    }
    let length = call.length(1).min(MAX_BYTES);
    if !is_in_range(call.argument(0), length) {
        return Err(Errno::EFAULT);
    }
    let written = random::fill(call.argument(0), length);
    if written == 0 && length > 0 { Err(Errno::EFAULT) } else { Ok(written as u64) }
}

/// Limits can be read; they cannot be changed.
pub(super) fn prlimit64(call: &mut Call<'_>) -> CallResult {
    const LIMITS: u32 = 16;
    let resource = call.word(1);
    let process = call.word(0);
    if process != 0 && process != call.process().id {
        return Err(Errno::ESRCH);
    }
    let limit = match resource {
        RLIMIT_NOFILE => [MAX_DESCRIPTORS as u64; 2],
        RLIMIT_STACK => [STACK_BYTES, RLIM64_INFINITY as u64],
        RLIMIT_CORE => [0; 2],
        0..LIMITS => [RLIM64_INFINITY as u64; 2],
        _ => return Err(Errno::EINVAL),
    };
    if call.argument(2) != 0 {
        let wanted: [u64; 2] = user::read(call.argument(2)).map_err(fault)?;
        if wanted != limit {
            return Err(Errno::EPERM);
        }
    }
    if call.argument(3) != 0 {
        user::write(call.argument(3), &limit).map_err(fault)?;
    }
    Ok(0)
}
