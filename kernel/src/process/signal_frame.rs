//! Frames of signal handlers on the program's stack (Linux, `struct rt_sigframe`), and the way back from them.
//!
//! ```text
//! rsp -> return address | flags link stack[3] registers[32] mask | information[16] | padding | vector registers (512)
//! ```

use super::ending::{kill_process, log_fatal_signal};
use super::signal::{Action, SIGSEGV, SignalStack, UNBLOCKABLE, bit_of};
use super::signal_queue::{Reaction, has_pending, reaction_to, take_pending};
use super::task::Task;
use crate::arch::frame::Frame;
use crate::arch::processor::VectorRegisters;
use crate::arch::segments::{USER_CODE, USER_DATA};
use crate::interruption::is_interrupted;
use crate::memory::layout::USER_END;
use crate::memory::user::{self, BadAddress, Plain};
use crate::schedule::scheduler;
use linux_raw_sys::general::{SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTART, SS_DISABLE};
use syscalls::Errno;

/// The machine registers in the order of Linux's `struct sigcontext`.
const REGISTERS: usize = 32;
const FLAGS_OF_PROGRAMS: u64 = 0x0024_0dd5;
/// Interrupts on, and the bit that is always 1.
const FLAGS_FIXED: u64 = 0x202;
/// Below the stack pointer a function keeps values (System V ABI 3.2.2).
const RED_ZONE: u64 = 128;

#[repr(C)]
#[derive(Clone, Copy)]
struct SignalFrame {
    return_address: u64,
    flags: u64,
    link: u64,
    stack: SignalStack,
    registers: [u64; REGISTERS],
    mask: u64,
    information: [u64; 16],
}

// SAFETY: integers without padding between them.
unsafe impl Plain for SignalFrame {}

/// What the handler learns about a fault.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct FaultInformation {
    /// The kind of the fault (`si_code`).
    pub(crate) code: i32,
    pub(crate) address: u64,
}

/// What becomes of the frame at the return to the program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Delivery {
    /// It is as it was.
    Nothing,
    /// A handler runs, or the call begins again.
    Changed,
}

/// Handles what is pending before the program runs on.
#[inline(always)]
pub(crate) fn deliver_pending(task: &Task, frame: &mut Frame, call_number: Option<u64>) -> Delivery {
    if has_pending(task) || is_interrupted(frame.rax) {
        deliver_all(task, frame, call_number)
    } else {
        Delivery::Nothing
    }
}

#[cold]
fn deliver_all(task: &Task, frame: &mut Frame, call_number: Option<u64>) -> Delivery {
    let mut restarts = call_number.filter(|_| is_interrupted(frame.rax));
    let mut delivery = Delivery::Nothing;
    while let Some(signal) = take_pending(task) {
        match reaction_to(&task.process, signal) {
            Reaction::Ignore => {}
            Reaction::Terminate => {
                log_fatal_signal(task, signal, format_args!("sent by the program"));
                kill_process(signal)
            }
            Reaction::Handle(action) => {
                if let Some(number) = restarts.take() {
                    restart(frame, number, action.flags & u64::from(SA_RESTART) != 0);
                }
                enter_handler(task, frame, signal, action, FaultInformation::default());
                delivery = Delivery::Changed;
            }
        }
    }
    if let Some(number) = restarts {
        restart(frame, number, true);
        delivery = Delivery::Changed;
    }
    delivery
}

/// Lets an interrupted call begin again, or fail.
fn restart(frame: &mut Frame, number: u64, begins_again: bool) {
    /// SYSCALL has two bytes.
    const CALL_BYTES: u64 = 2;
    if begins_again {
        frame.rip -= CALL_BYTES;
        frame.rax = number;
    } else {
        frame.rax = -i64::from(Errno::EINTR.into_raw()) as u64;
    }
}

/// Handles a fault of the program: by its handler, or by its end.
pub(crate) fn deliver_fault(task: &Task, frame: &mut Frame, signal: u8, information: FaultInformation) {
    let is_blocked = task.signals.borrow().blocked & bit_of(signal) != 0;
    match reaction_to(&task.process, signal) {
        Reaction::Handle(action) if !is_blocked => enter_handler(task, frame, signal, action, information),
        Reaction::Handle(_) | Reaction::Ignore | Reaction::Terminate => {
            log_fatal_signal(
                task,
                signal,
                format_args!("a fault at {:#x}, address {:#x}", frame.rip, information.address),
            );
            crate::log::log!("{frame}");
            kill_process(signal)
        }
    }
}

fn enter_handler(task: &Task, frame: &mut Frame, signal: u8, action: Action, information: FaultInformation) {
    if push_frame(task, frame, signal, action, information).is_err() || action.handler >= USER_END {
        log_fatal_signal(task, SIGSEGV, format_args!("no stack for the handler of signal {signal}"));
        kill_process(SIGSEGV);
    }
    let mut signals = task.signals.borrow_mut();
    signals.blocked |= action.mask & !UNBLOCKABLE;
    if action.flags & u64::from(SA_NODEFER) == 0 {
        signals.blocked |= bit_of(signal);
    }
    drop(signals);
    if action.flags & u64::from(SA_RESETHAND) != 0 {
        task.process.actions.borrow_mut().set(signal, Action::default());
    }
}

fn push_frame(
    task: &Task,
    frame: &mut Frame,
    signal: u8,
    action: Action,
    information: FaultInformation,
) -> Result<(), BadAddress> {
    let (mask, stack) = {
        let signals = task.signals.borrow();
        (signals.blocked, signals.stack)
    };
    let is_on_stack = frame.rsp.wrapping_sub(stack.start) < stack.bytes;
    let uses_stack = action.flags & u64::from(SA_ONSTACK) != 0 && stack.flags & SS_DISABLE == 0 && !is_on_stack;
    let top = if uses_stack { stack.start.wrapping_add(stack.bytes) } else { frame.rsp.wrapping_sub(RED_ZONE) };
    let vectors_at = top.wrapping_sub(512) & !63;
    // At the entry of a function the stack pointer is 8 below a multiple of 16.
    let at = (vectors_at.wrapping_sub(size_of::<SignalFrame>() as u64) & !15).wrapping_sub(8);
    let vectors = scheduler::current().vectors();
    let mut words = [0; 16];
    words[0] = u64::from(signal);
    words[1] = u64::from(information.code as u32);
    words[2] = information.address;
    let registers = save_registers(frame, mask, vectors_at, information);
    let contents =
        SignalFrame { return_address: action.restorer, flags: 0, link: 0, stack, registers, mask, information: words };
    user::write(vectors_at, vectors.image())?;
    user::write(at, &contents)?;
    *frame = Frame {
        rdi: u64::from(signal),
        rsi: at + core::mem::offset_of!(SignalFrame, information) as u64,
        rdx: at + core::mem::offset_of!(SignalFrame, flags) as u64,
        rip: action.handler,
        rsp: at,
        cs: u64::from(USER_CODE),
        ss: u64::from(USER_DATA),
        rflags: FLAGS_FIXED,
        ..frame.clone()
    };
    frame.rax = 0;
    Ok(())
}

fn save_registers(frame: &Frame, mask: u64, vectors_at: u64, information: FaultInformation) -> [u64; REGISTERS] {
    let segments = frame.cs & 0xffff | (frame.ss & 0xffff) << 48;
    let mut registers = [0; REGISTERS];
    registers[..24].copy_from_slice(&[
        frame.r8,
        frame.r9,
        frame.r10,
        frame.r11,
        frame.r12,
        frame.r13,
        frame.r14,
        frame.r15,
        frame.rdi,
        frame.rsi,
        frame.rbp,
        frame.rbx,
        frame.rdx,
        frame.rax,
        frame.rcx,
        frame.rsp,
        frame.rip,
        frame.rflags,
        segments,
        frame.error,
        frame.vector,
        mask,
        information.address,
        vectors_at,
    ]);
    registers
}

/// Goes back from a handler (`rt_sigreturn`): the frame is where the handler's return has left the stack pointer.
pub(crate) fn leave_handler(task: &Task, frame: &mut Frame) -> Result<(), BadAddress> {
    let contents: SignalFrame = user::read(frame.rsp.wrapping_sub(size_of::<u64>() as u64))?;
    let r = &contents.registers;
    if r[23] != 0 {
        scheduler::current().set_vectors(VectorRegisters::from_image(user::read(r[23])?));
    }
    task.signals.borrow_mut().blocked = contents.mask & !UNBLOCKABLE;
    *frame = Frame {
        r8: r[0],
        r9: r[1],
        r10: r[2],
        r11: r[3],
        r12: r[4],
        r13: r[5],
        r14: r[6],
        r15: r[7],
        rdi: r[8],
        rsi: r[9],
        rbp: r[10],
        rbx: r[11],
        rdx: r[12],
        rax: r[13],
        rcx: r[14],
        rsp: r[15],
        rip: r[16],
        rflags: r[17] & FLAGS_OF_PROGRAMS | FLAGS_FIXED,
        cs: u64::from(USER_CODE),
        ss: u64::from(USER_DATA),
        ..frame.clone()
    };
    Ok(())
}
