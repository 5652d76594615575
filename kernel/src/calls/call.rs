//! A call: its arguments, and the program that makes it.

use crate::arch::frame::Frame;
use crate::memory::user::BadAddress;
use crate::process::process_state::Process;
use crate::process::task::Task;
use alloc::rc::Rc;
use syscalls::Errno;

/// What a call returns: a value, or an error.
pub(crate) type CallResult = Result<u64, Errno>;

/// A call that is being made.
pub(crate) struct Call<'f> {
    pub(crate) frame: &'f mut Frame,
    pub(crate) task: Rc<Task>,
    /// Whether the call has replaced the registers of the program.
    pub(crate) registers: Registers,
}

/// What a call leaves in the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Registers {
    /// Those of the program; only the result is to be set.
    Kept,
    /// Others, which are complete.
    Replaced,
}

impl Call<'_> {
    /// The argument with a number, counted from 0.
    pub(crate) fn argument(&self, number: usize) -> u64 {
        let frame = &self.frame;
        [frame.rdi, frame.rsi, frame.rdx, frame.r10, frame.r8, frame.r9][number]
    }

    /// An argument that is an address, or a count of bytes.
    pub(crate) fn length(&self, number: usize) -> usize {
        self.argument(number) as usize
    }

    /// An argument that is an `int` or a set of flags: Linux ignores the upper half.
    pub(crate) fn word(&self, number: usize) -> u32 {
        self.argument(number) as u32
    }

    pub(crate) fn process(&self) -> &Process {
        &self.task.process
    }
}

/// The error of a bad address.
pub(crate) fn fault(_: BadAddress) -> Errno {
    Errno::EFAULT
}
