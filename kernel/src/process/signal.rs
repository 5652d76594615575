//! Signals: their numbers, their actions, and which of a thread's are pending.

use linux_raw_sys::general as linux;

pub(crate) const SIGILL: u8 = 4;
pub(crate) const SIGTRAP: u8 = 5;
pub(crate) const SIGBUS: u8 = 7;
pub(crate) const SIGFPE: u8 = 8;
pub(crate) const SIGKILL: u8 = 9;
pub(crate) const SIGSEGV: u8 = 11;
pub(crate) const SIGPIPE: u8 = 13;
pub(crate) const SIGALRM: u8 = 14;
pub(crate) const SIGCHLD: u8 = 17;
pub(crate) const SIGCONT: u8 = 18;
const SIGSTOP: u8 = 19;
pub(crate) const SIGURG: u8 = 23;
pub(crate) const SIGWINCH: u8 = 28;
/// The number of signals; they are counted from 1.
pub(crate) const SIGNALS: u8 = 64;

/// What a program has asked to be done with a signal: the structure of `rt_sigaction`.
#[repr(C)]
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Action {
    /// The address of the handler, `SIG_DFL` or `SIG_IGN`.
    pub(crate) handler: u64,
    pub(crate) flags: u64,
    pub(crate) restorer: u64,
    /// Signals that are blocked while the handler runs.
    pub(crate) mask: u64,
}

pub(crate) const DEFAULT_HANDLER: u64 = 0;
pub(crate) const IGNORE_HANDLER: u64 = 1;

/// The actions of a process, by signal.
pub(crate) struct Actions([Action; SIGNALS as usize]);

impl Actions {
    pub(crate) fn new() -> Actions {
        Actions([Action::default(); SIGNALS as usize])
    }

    pub(crate) fn get(&self, signal: u8) -> Action {
        self.0[usize::from(signal) - 1]
    }

    pub(crate) fn set(&mut self, signal: u8, action: Action) {
        self.0[usize::from(signal) - 1] = action;
    }
}

/// The bit of a signal in masks.
pub(crate) fn bit_of(signal: u8) -> u64 {
    1 << (signal - 1)
}

/// Signals that cannot be blocked or handled.
pub(crate) const UNBLOCKABLE: u64 = 1 << (SIGKILL - 1) | 1 << (SIGSTOP - 1);

/// The signals of a thread.
#[derive(Default, Debug)]
pub(crate) struct Signals {
    pub(crate) blocked: u64,
    pub(crate) pending: u64,
    /// The stack for handlers that ask for one: its start, its size, and flags (`sigaltstack`).
    pub(crate) stack: SignalStack,
}

/// The structure of `sigaltstack`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalStack {
    pub(crate) start: u64,
    pub(crate) flags: u32,
    pub(crate) padding: u32,
    pub(crate) bytes: u64,
}

impl Default for SignalStack {
    fn default() -> SignalStack {
        SignalStack { start: 0, flags: linux::SS_DISABLE, padding: 0, bytes: 0 }
    }
}
