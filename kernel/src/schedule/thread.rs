//! A thread: its registers, its kernel stack, and its vector table.

use crate::arch::block::{ENTRY_COUNT, ThreadBlock};
use crate::arch::entry::return_to_program;
use crate::arch::frame::Frame;
use crate::arch::processor::{self, VectorRegisters};
use crate::cell::Global;
use crate::memory::frames::OutOfMemory;
use crate::memory::stacks::KernelStack;
use crate::synthesis::{Switch, VectorUse};
use alloc::alloc::{Layout, alloc_zeroed};
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::any::Any;
use core::cell::{Cell, RefCell};
use core::ptr::NonNull;
use quaject_synth::ready::Member;

/// Why a blocked thread runs again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WakeReason {
    /// What it waited for has happened, or may have.
    Woken,
    /// Its deadline has passed.
    TimedOut,
    /// A signal is to be handled.
    Interrupted,
}

/// Whether a thread can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// It runs or waits for its turn.
    Ready,
    /// It waits, until a moment of the monotonic clock if there is one.
    Blocked { deadline_ns: Option<u64> },
    /// It will not run again.
    Ended,
}

/// A thread.
pub(crate) struct Thread {
    pub(crate) id: u32,
    /// What the process layer knows of the thread; nothing for the idle thread.
    pub(crate) task: Option<Rc<dyn Any>>,
    /// The physical address of the page tables that it runs with.
    pub(crate) page_root: Cell<u64>,
    pub(crate) state: Cell<State>,
    pub(crate) wake_reason: Cell<WakeReason>,
    pub(super) vector_use: Cell<VectorUse>,
    /// Its place in the ready queue.
    place: Cell<usize>,
    switch: RefCell<Switch>,
    /// Held until the thread is dropped.
    _stack: KernelStack,
    block: Block,
}

/// What a new thread starts with.
pub(crate) struct ThreadStart<'s> {
    pub(crate) id: u32,
    /// Where its calls lead.
    pub(crate) entries: &'s [u64; ENTRY_COUNT],
    pub(crate) task: Rc<dyn Any>,
    pub(crate) page_root: u64,
    pub(crate) registers: Frame,
    pub(crate) vectors: VectorRegisters,
    pub(crate) user_fs: u64,
    pub(crate) user_gs: u64,
}

/// What a switch routine pops before it returns to the address behind.
const SAVED_REGISTERS: usize = 6;

impl Thread {
    /// A thread that starts in the program with the registers of `start`. Vector registers are its own from their first
    /// use on.
    pub(crate) fn new(start: ThreadStart<'_>) -> Result<Rc<Thread>, OutOfMemory> {
        let stack = KernelStack::new()?;
        let block = Block::new(start.entries)?;
        let saved_stack = prepare_stack(&stack, start.registers);
        let task = Rc::as_ptr(&start.task).cast::<()>();
        block.change(|block| {
            block.kernel_stack = stack.end;
            block.saved_stack = saved_stack;
            block.user_fs = start.user_fs;
            block.user_gs = start.user_gs;
            block.vectors = start.vectors;
            block.task = task as u64;
            block.thread_id = u64::from(start.id);
        });
        Thread::with(start.id, Some(start.task), start.page_root, stack, block)
    }

    /// The thread that runs when no other can: the start of the machine becomes it.
    pub(crate) fn idle(stack: KernelStack) -> Result<Rc<Thread>, OutOfMemory> {
        let block = Block::new(&[0; ENTRY_COUNT])?;
        let idle = Thread::with(0, None, 0, stack, block)?;
        // The start of the machine has another stack, so that exceptions of routines find this one empty.
        let stack_end = idle._stack.end;
        idle.block.change(|block| {
            block.kernel_stack = stack_end;
            block.thread = 0;
        });
        Ok(idle)
    }

    fn with(
        id: u32,
        task: Option<Rc<dyn Any>>,
        page_root: u64,
        stack: KernelStack,
        block: Block,
    ) -> Result<Rc<Thread>, OutOfMemory> {
        let switch = Switch::new(block.address(), VectorUse::Forbidden).ok_or(OutOfMemory)?;
        let thread = Rc::new(Thread {
            id,
            task,
            page_root: Cell::new(page_root),
            state: Cell::new(State::Ready),
            wake_reason: Cell::new(WakeReason::Woken),
            vector_use: Cell::new(VectorUse::Forbidden),
            place: Cell::new(usize::MAX),
            switch: RefCell::new(switch),
            _stack: stack,
            block,
        });
        thread.block.change(|block| block.thread = Rc::as_ptr(&thread) as u64);
        Ok(thread)
    }

    /// Its place in the ready queue.
    pub(super) fn place(&self) -> usize {
        self.place.get()
    }

    pub(super) fn set_place(&self, place: usize) {
        self.place.set(place);
    }

    /// The address of the thread block.
    pub(super) fn block_address(&self) -> u64 {
        self.block.address()
    }

    /// Where its switch routine is entered.
    pub(super) fn switch_entry(&self) -> usize {
        self.switch.borrow().enter()
    }

    /// Its member of the ready queue.
    ///
    /// # Safety
    /// The thread is not dropped while the member is in the queue.
    pub(super) unsafe fn member(&self) -> Member {
        // SAFETY: by the contract; `allow_vectors` returns the old routine, which its caller takes out of the queue.
        unsafe { self.switch.borrow().member() }
    }

    /// Leaves the thread, which runs, for the next one of the ready queue; returns when it runs again.
    ///
    /// # Safety
    /// The thread runs, and is not dropped meanwhile.
    pub(super) unsafe fn switch_away(&self) {
        let exit = self.switch.borrow().exit();
        // SAFETY: the routine is a function that keeps the registers of its caller's convention.
        unsafe {
            let exit: extern "C" fn() = core::mem::transmute(exit);
            exit();
        }
    }

    /// Leaves the idle thread for a thread.
    ///
    /// # Safety
    /// The idle thread runs, and `next` is where a thread is entered.
    pub(super) unsafe fn switch_to(&self, next: usize) {
        // SAFETY: by the contract; the member is in no queue.
        unsafe {
            let member = self.member();
            member.link(next).expect("the code area is small");
            self.switch_away();
        }
    }

    /// Lets the thread, which runs, use the vector registers, and loads its own. Returns the switch routine that it
    /// had.
    pub(super) fn allow_vectors(&self) -> Option<Switch> {
        let switch = Switch::new(self.block.address(), VectorUse::Allowed)?;
        processor::allow_vectors();
        self.block.change(|block| block.vectors.load());
        self.vector_use.set(VectorUse::Allowed);
        Some(self.switch.replace(switch))
    }

    /// The vector registers of the thread, which runs.
    pub(crate) fn vectors(&self) -> VectorRegisters {
        self.block.change(|block| {
            if self.vector_use.get() == VectorUse::Allowed {
                block.vectors.save();
            }
            block.vectors.clone()
        })
    }

    /// Sets the vector registers of the thread, which runs.
    pub(crate) fn set_vectors(&self, vectors: VectorRegisters) {
        self.block.change(|block| {
            block.vectors = vectors;
            if self.vector_use.get() == VectorUse::Allowed {
                block.vectors.load();
            }
        });
    }
}

/// A thread block, in memory that routines use, too.
struct Block(NonNull<ThreadBlock>);

/// Blocks that no thread uses, each with the entries that it was made with.
static FREE_BLOCKS: Global<Vec<Block>> = Global::new(Vec::new());

impl Block {
    /// A block whose entries are these; that of a thread which has ended has them already.
    fn new(entries: &[u64; ENTRY_COUNT]) -> Result<Block, OutOfMemory> {
        let block = match FREE_BLOCKS.with(Vec::pop) {
            Some(block) => block,
            None => Block::allocate()?,
        };
        block.change(|block| block.take_entries(entries));
        Ok(block)
    }

    fn allocate() -> Result<Block, OutOfMemory> {
        let layout = Layout::new::<ThreadBlock>();
        // SAFETY: the layout has a size, and zeros are a thread block.
        unsafe {
            let memory = NonNull::new(alloc_zeroed(layout).cast::<ThreadBlock>()).ok_or(OutOfMemory)?;
            (*memory.as_ptr()).address = memory.as_ptr() as u64;
            Ok(Block(memory))
        }
    }

    fn address(&self) -> u64 {
        self.0.as_ptr() as u64
    }

    /// Changes the block; `work` does not use it otherwise.
    fn change<R>(&self, work: impl FnOnce(&mut ThreadBlock) -> R) -> R {
        // SAFETY: no other reference exists: stubs and routines do not run while the kernel's code does.
        work(unsafe { &mut *self.0.as_ptr() })
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        let block = Block(self.block.0);
        FREE_BLOCKS.with(|blocks| blocks.push(block));
    }
}

/// Puts a frame at the end of the stack, and in front of it what a switch routine takes; returns the stack pointer.
fn prepare_stack(stack: &KernelStack, registers: Frame) -> u64 {
    let frame = stack.end - size_of::<Frame>() as u64;
    let return_address = frame - size_of::<u64>() as u64;
    let saved = return_address - (SAVED_REGISTERS * size_of::<u64>()) as u64;
    // SAFETY: the stack is mapped, is not in use yet, and has room for a frame and some words.
    unsafe {
        (frame as *mut Frame).write(registers);
        (return_address as *mut u64).write(return_to_program as *const () as u64);
        (saved as *mut [u64; SAVED_REGISTERS]).write([0; SAVED_REGISTERS]);
    }
    saved
}
