//! The calls that there are.

use super::call::{Call, CallResult};
use super::{file, identity, memory, path, process, signal, thread, time};
use syscalls::Sysno;

/// What does the work of a call.
pub(crate) type Handler = fn(&mut Call<'_>) -> CallResult;

/// No call has a larger number.
const NUMBERS: usize = 512;

/// The handlers by number.
pub(super) static HANDLERS: [Option<Handler>; NUMBERS] = {
    let mut handlers = [None; NUMBERS];
    let mut number = 0;
    while number < NUMBERS {
        if let Some(known) = Sysno::new(number) {
            handlers[number] = handler_of(known);
        }
        number += 1;
    }
    handlers
};

/// The handler of a call; nothing for calls that are not implemented.
const fn handler_of(number: Sysno) -> Option<Handler> {
    let handler: Handler = match number {
        Sysno::close => file::close,
        Sysno::dup => file::dup,
        Sysno::dup2 => file::dup2,
        Sysno::dup3 => file::dup3,
        Sysno::fcntl => file::fcntl,
        Sysno::fstat => file::fstat,
        Sysno::fsync | Sysno::fdatasync => file::fsync,
        Sysno::ftruncate => file::ftruncate,
        Sysno::getdents64 => file::getdents64,
        Sysno::ioctl => file::ioctl,
        Sysno::lseek => file::lseek,
        Sysno::pipe => file::pipe,
        Sysno::pipe2 => file::pipe2,
        Sysno::pread64 => file::pread64,
        Sysno::pwrite64 => file::pwrite64,
        Sysno::read => file::read,
        Sysno::readv => file::readv,
        Sysno::write => file::write,
        Sysno::writev => file::writev,

        Sysno::access => path::access,
        Sysno::chdir => path::chdir,
        Sysno::faccessat | Sysno::faccessat2 => path::faccessat,
        Sysno::getcwd => path::getcwd,
        Sysno::lstat => path::lstat,
        Sysno::mkdir => path::mkdir,
        Sysno::mkdirat => path::mkdirat,
        Sysno::newfstatat => path::newfstatat,
        Sysno::open => path::open,
        Sysno::openat => path::openat,
        Sysno::readlink => path::readlink,
        Sysno::readlinkat => path::readlinkat,
        Sysno::rmdir => path::rmdir,
        Sysno::stat => path::stat,
        Sysno::umask => path::umask,
        Sysno::unlink => path::unlink,
        Sysno::unlinkat => path::unlinkat,

        Sysno::brk => memory::brk,
        Sysno::madvise => memory::madvise,
        Sysno::mmap => memory::mmap,
        Sysno::mprotect => memory::mprotect,
        Sysno::munmap => memory::munmap,

        Sysno::getegid | Sysno::geteuid | Sysno::getgid | Sysno::getuid => identity::zero,
        Sysno::getpid => identity::getpid,
        Sysno::getppid => identity::getppid,
        Sysno::gettid => identity::gettid,
        Sysno::uname => identity::uname,

        Sysno::arch_prctl => process::arch_prctl,
        Sysno::exit => process::exit,
        Sysno::exit_group => process::exit_group,
        Sysno::getrandom => process::getrandom,
        Sysno::prlimit64 => process::prlimit64,
        Sysno::wait4 => process::wait4,

        Sysno::clone => thread::clone,
        Sysno::futex => thread::futex,
        Sysno::sched_getaffinity => thread::sched_getaffinity,
        Sysno::sched_setaffinity => thread::sched_setaffinity,
        Sysno::sched_yield => thread::sched_yield,
        Sysno::set_robust_list => thread::set_robust_list,
        Sysno::set_tid_address => thread::set_tid_address,

        Sysno::kill => signal::kill,
        Sysno::pause => signal::pause,
        Sysno::rt_sigaction => signal::rt_sigaction,
        Sysno::rt_sigpending => signal::rt_sigpending,
        Sysno::rt_sigprocmask => signal::rt_sigprocmask,
        Sysno::rt_sigreturn => signal::rt_sigreturn,
        Sysno::sigaltstack => signal::sigaltstack,
        Sysno::tgkill => signal::tgkill,
        Sysno::tkill => signal::tkill,

        Sysno::alarm => time::alarm,
        Sysno::clock_getres => time::clock_getres,
        Sysno::clock_gettime => time::clock_gettime,
        Sysno::clock_nanosleep => time::clock_nanosleep,
        Sysno::getitimer => time::getitimer,
        Sysno::gettimeofday => time::gettimeofday,
        Sysno::nanosleep => time::nanosleep,
        Sysno::setitimer => time::setitimer,
        Sysno::time => time::time,
        // Linux has several hundred calls; the program sees ENOSYS, and a trace names them.
        _ => return None,
    };
    Some(handler)
}
