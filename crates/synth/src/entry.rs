//! How routines are entered and left. The kernel's are entered by a jump from the handler of `syscall` and end in
//! `sysretq`; those of a test, or of a caller inside the kernel, are called. Between, the routines are the same.
//!
//! A routine receives rdi, rsi and rdx, the first three arguments of a system call and of a C function. It may use rax;
//! between [`Entry::save`] and [`Entry::restore`] also rcx, rdi, rsi and r11, and not the stack; between
//! [`Entry::save_one`] and [`Entry::restore_one`] rcx.

use quaject_vcode::system::{AnyRegister, R8, R9, R11, RCX, RDI, RSI};

use crate::builder::Builder;

/// How routines are entered and left.
pub trait Entry: Copy {
    /// Lets the routine use rcx, rdi, rsi and r11, and memory of the user.
    fn save(self, b: &mut Builder<'_>);
    /// Undoes [`Entry::save`], except for rax.
    fn restore(self, b: &mut Builder<'_>);
    /// Lets the routine use rcx, and memory of the user.
    fn save_one(self, b: &mut Builder<'_>);
    /// Undoes [`Entry::save_one`], except for rax.
    fn restore_one(self, b: &mut Builder<'_>);
    /// Subtracts rsi, as it was at [`Entry::save`], from a register.
    fn subtract_source(self, b: &mut Builder<'_>, register: impl Into<AnyRegister>);
    /// Leaves the routine.
    fn leave(self, b: &mut Builder<'_>);
}

/// Entered by a call of the C convention, and left by a return.
#[derive(Debug, Clone, Copy)]
pub struct Call;

impl Entry for Call {
    #[inline(always)]
    fn save(self, b: &mut Builder<'_>) {
        // Callers preserve all of them. The slow path takes the arguments again.
        b.mov64(R8, RSI);
        b.mov64(R9, RDI);
    }

    #[inline(always)]
    fn restore(self, b: &mut Builder<'_>) {
        b.mov64(RSI, R8);
        b.mov64(RDI, R9);
    }

    #[inline(always)]
    fn save_one(self, _: &mut Builder<'_>) {}

    #[inline(always)]
    fn restore_one(self, _: &mut Builder<'_>) {}

    #[inline(always)]
    fn subtract_source(self, b: &mut Builder<'_>, register: impl Into<AnyRegister>) {
        b.sub64(register, R8);
    }

    #[inline(always)]
    fn leave(self, b: &mut Builder<'_>) {
        b.retq();
    }
}

/// Entered by a jump from the handler of `syscall`, with interrupts off, the gs base of the kernel, and the stack of
/// the user; left as [`Exit`] says. rcx and r11 hold the instruction pointer and the flags of the user.
///
/// A page fault inside a routine must not switch threads: the slots belong to the processor.
#[derive(Debug, Clone, Copy)]
pub struct Sysret {
    /// The offset from the gs base of four slots of eight bytes, of this processor.
    pub slots: i32,
    /// Whether the kernel has SMAP on.
    pub access: Access,
    /// How the routine is left.
    pub exit: Exit,
}

/// How a routine that was entered by `syscall` is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By `swapgs` and `sysretq`.
    Program,
    /// By a jump to code that ends so, within 2 GiB of the arena: for kernels that count what routines cost.
    Through(usize),
}

/// How the kernel may access memory of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// At any time.
    Always,
    /// Between `stac` and `clac` (SMAP).
    Guarded,
}

impl Sysret {
    /// The registers that belong to the user, in the order of their slots.
    #[inline(always)]
    fn registers(self) -> [AnyRegister; 4] {
        [RCX.into(), R11, RDI.into(), RSI.into()]
    }

    /// Saves the first registers.
    #[inline(always)]
    fn save_first(self, b: &mut Builder<'_>, count: usize) {
        for (index, register) in self.registers().into_iter().take(count).enumerate() {
            b.mov64_to_gs(register, self.slots + 8 * index as i32);
        }
        if self.access == Access::Guarded {
            b.stac();
        }
    }

    /// Undoes [`Sysret::save_first`].
    #[inline(always)]
    fn restore_first(self, b: &mut Builder<'_>, count: usize) {
        if self.access == Access::Guarded {
            b.clac();
        }
        for (index, register) in self.registers().into_iter().take(count).enumerate() {
            b.mov64_gs(register, self.slots + 8 * index as i32);
        }
    }
}

impl Entry for Sysret {
    #[inline(always)]
    fn save(self, b: &mut Builder<'_>) {
        self.save_first(b, 4);
    }

    #[inline(always)]
    fn restore(self, b: &mut Builder<'_>) {
        self.restore_first(b, 4);
    }

    #[inline(always)]
    fn save_one(self, b: &mut Builder<'_>) {
        self.save_first(b, 1);
    }

    #[inline(always)]
    fn restore_one(self, b: &mut Builder<'_>) {
        self.restore_first(b, 1);
    }

    #[inline(always)]
    fn subtract_source(self, b: &mut Builder<'_>, register: impl Into<AnyRegister>) {
        b.sub64_gs(register, self.slots + 24);
    }

    #[inline(always)]
    fn leave(self, b: &mut Builder<'_>) {
        match self.exit {
            Exit::Program => {
                b.swapgs();
                b.sysretq();
            }
            Exit::Through(address) => b.jump_outside(address),
        }
    }
}
