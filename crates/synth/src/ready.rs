//! The executable ready queue: each thread that can run has a switch routine, whose end jumps to the beginning of the
//! next one. The processor passes from thread to thread without looking at any data structure ("The Synthesis Kernel",
//! executable data structures).
//!
//! ```text
//!      thread A                      thread B                      thread C
//!  +-> enter: load registers     +-> enter: load registers     +-> enter: load registers
//!  |          return             |          return             |          return
//!  |   exit:  save registers     |   exit:  save registers     |   exit:  save registers
//!  |          jump ------------- +          jump --------------+          jump ---+
//!  +------------------------------------------------------------------------------+
//! ```
//!
//! To insert or remove a thread changes one jump of another, by one store.

use quaject_vcode::patch::{PatchJump, Placed};
use quaject_vcode::system::{R12, R13, R14, R15, RAX, RBP, RBX, RSP};
use quaject_vcode::x86_64::X86_64;
use quaject_vcode::{Asm, Code, Core, Kind, Param, Workspace};

use crate::arena::Arena;
use crate::builder::Builder;
use crate::error::Error;
use crate::routine::Routine;

/// No place.
const NONE: u32 = u32::MAX;

/// A member of the ready queue: where it is entered, and the jump at its end.
#[derive(Debug, Clone, Copy)]
pub struct Member {
    enter: usize,
    jump: PatchJump,
    placed: Placed,
}

impl Member {
    /// A routine that is entered at its beginning, and ends with `jump`.
    ///
    /// # Safety
    /// `jump` was made by the builder of `routine`, which is not freed while the member is in a queue.
    pub unsafe fn new<const N: usize>(arena: &Arena<'_, N>, routine: &Routine, jump: PatchJump) -> Member {
        let code = Code { entry: routine.entry(), offset: 0, length: routine.length(), instructions: routine.length() };
        // SAFETY: the routine is in memory of the arena, by the caller's promise as long as this value is used.
        let placed = unsafe { Placed::from_raw(&code, routine.entry(), arena.writable_routine(routine)) };
        Member { enter: routine.entry(), jump, placed }
    }

    /// Lets a member that is in no queue jump to an address.
    ///
    /// # Errors
    /// [`Error::Code`] if it is too far away.
    ///
    /// # Safety
    /// The address is where a member is entered.
    pub unsafe fn link(&self, address: usize) -> Result<(), Error> {
        self.jump_to(address)
    }

    fn jump_to(&self, address: usize) -> Result<(), Error> {
        // SAFETY: the routine exists, and the address is where another member is entered, by the promises of `new`; or
        // the address of `Ready::new`.
        Ok(unsafe { self.jump.retarget::<X86_64>(&self.placed, address) }?)
    }
}

/// A place of a thread in the ready queue.
#[derive(Debug, Clone, Copy)]
pub struct Place {
    member: Option<Member>,
    next: u32,
    previous: u32,
}

impl Place {
    /// A value to fill the array with that [`Ready::new`] borrows.
    pub const EMPTY: Place = Place { member: None, next: NONE, previous: NONE };
}

/// The ready queue of a processor: the ring of jumps, and its mirror in data, by numbers of threads.
#[derive(Debug)]
pub struct Ready<'a> {
    places: &'a mut [Place],
    idle: usize,
    length: usize,
}

impl<'a> Ready<'a> {
    /// An empty queue for threads with numbers below the length of `places`. The last thread that is removed jumps to
    /// `idle`, which must stay code that can be jumped to.
    pub fn new(places: &'a mut [Place], idle: usize) -> Self {
        places.fill(Place::EMPTY);
        Ready { places, idle, length: 0 }
    }

    /// The number of threads that can run.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether no thread can run.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The thread after another.
    pub fn after(&self, thread: usize) -> Option<usize> {
        let place = self.places.get(thread)?;
        place.member.and((place.next != NONE).then_some(place.next as usize))
    }

    fn member(&self, thread: usize) -> Result<&Member, Error> {
        self.places.get(thread).and_then(|place| place.member.as_ref()).ok_or(Error::Place)
    }

    /// Inserts the only thread of an empty queue.
    ///
    /// # Errors
    /// [`Error::Place`] if the queue is not empty, or has no such number.
    pub fn insert_first(&mut self, thread: usize, member: Member) -> Result<(), Error> {
        let place = self.places.get_mut(thread).filter(|_| self.length == 0).ok_or(Error::Place)?;
        member.jump_to(member.enter)?;
        *place = Place { member: Some(member), next: thread as u32, previous: thread as u32 };
        self.length = 1;
        Ok(())
    }

    /// Inserts a thread so that it runs after `current`: the front of the queue, if that is running now.
    ///
    /// # Errors
    /// [`Error::Place`] if `current` is not in the queue, or `thread` is; [`Error::Code`] if the routines are too far
    /// from each other. The queue is unchanged then.
    pub fn insert_after(&mut self, current: usize, thread: usize, member: Member) -> Result<(), Error> {
        let before = self.member(current)?;
        if self.places.get(thread).is_none_or(|place| place.member.is_some()) {
            return Err(Error::Place);
        }
        let next = self.places[current].next;
        // First the jump that nothing executes yet.
        member.jump_to(self.member(next as usize)?.enter)?;
        before.jump_to(member.enter)?;
        self.places[thread] = Place { member: Some(member), next, previous: current as u32 };
        self.places[current].next = thread as u32;
        self.places[next as usize].previous = thread as u32;
        self.length += 1;
        Ok(())
    }

    /// Whether a thread is in the queue.
    pub fn contains(&self, thread: usize) -> bool {
        self.places.get(thread).is_some_and(|place| place.member.is_some())
    }

    /// Where a thread of the queue is entered.
    pub fn entry_of(&self, thread: usize) -> Option<usize> {
        self.member(thread).ok().map(|member| member.enter)
    }

    /// Gives a thread of the queue another switch routine. The old one may run to its end once more.
    ///
    /// # Errors
    /// [`Error::Place`] if the thread is not in the queue.
    pub fn replace(&mut self, thread: usize, member: Member) -> Result<(), Error> {
        self.member(thread)?;
        let Place { next, previous, .. } = self.places[thread];
        if next as usize == thread {
            member.jump_to(member.enter)?;
        } else {
            member.jump_to(self.member(next as usize)?.enter)?;
            self.member(previous as usize)?.jump_to(member.enter)?;
        }
        self.places[thread].member = Some(member);
        Ok(())
    }

    /// Removes a thread, which may be the one that runs: its own jump still leads to the rest of the queue.
    ///
    /// # Errors
    /// [`Error::Place`] if the thread is not in the queue.
    pub fn remove(&mut self, thread: usize) -> Result<(), Error> {
        let member = self.member(thread)?;
        let (next, previous) = (self.places[thread].next, self.places[thread].previous);
        if self.length == 1 {
            member.jump_to(self.idle)?;
        } else {
            let enter = self.member(next as usize)?.enter;
            self.member(previous as usize)?.jump_to(enter)?;
            self.places[previous as usize].next = next;
            self.places[next as usize].previous = previous;
        }
        self.places[thread].member = None;
        self.length -= 1;
        Ok(())
    }
}

/// The registers that a function preserves, in the order in which they are pushed.
const PRESERVED: usize = 6;

/// The switch routine of a thread.
#[derive(Debug)]
pub struct Switch {
    routine: Routine,
    jump: PatchJump,
    exit: usize,
}

impl Switch {
    /// Synthesises a switch routine for a thread whose stack pointer is kept at the address `stack_pointer` while it
    /// does not run. `enter` emits what else is done when the thread begins to run, such as loading its address space;
    /// it may use rax, rcx and rdx.
    ///
    /// # Errors
    /// [`Error::NoMemory`], [`Error::Code`].
    pub fn synthesise<const N: usize>(
        arena: &mut Arena<'_, N>,
        workspace: &mut Workspace<X86_64>,
        stack_pointer: usize,
        enter: impl FnOnce(&mut Builder<'_>),
    ) -> Result<Switch, Error> {
        let length = exit_length(stack_pointer)?;
        let mut b = Builder::begin(arena, workspace, "switch", 512)?;
        enter(&mut b);
        b.mov64_i(RAX, stack_pointer as i64);
        b.mov64_m(RSP, RAX, 0);
        b.pop64(R15);
        b.pop64(R14);
        b.pop64(R13);
        b.pop64(R12);
        b.pop64(RBP);
        b.pop64(RBX);
        b.retq();
        // So that the jump, which is aligned, follows without any `nop` that is executed.
        while !(b.position() + length).is_multiple_of(8) {
            b.nop();
        }
        let exit = b.position();
        emit_exit(&mut b, stack_pointer);
        let jump = b.patch_point();
        let routine = b.end(arena)?;
        let exit = routine.entry() + exit;
        Ok(Switch { routine, jump, exit })
    }

    /// The function that leaves the thread: `extern "C" fn()`. It returns when the thread runs again.
    pub fn exit(&self) -> usize {
        self.exit
    }

    /// The routine, which is entered to go on with the thread.
    pub fn routine(&self) -> &Routine {
        &self.routine
    }

    /// The routine alone, to free it.
    pub fn into_routine(self) -> Routine {
        self.routine
    }

    /// The member of a ready queue.
    ///
    /// # Safety
    /// The routine is not freed while the member is in a queue.
    pub unsafe fn member<const N: usize>(&self, arena: &Arena<'_, N>) -> Member {
        // SAFETY: the jump belongs to the routine; the caller's promise.
        unsafe { Member::new(arena, &self.routine, self.jump) }
    }

    /// Prepares the stack of a thread that begins with a jump to `start`, with the stack pointer that a called function
    /// has. Returns the stack pointer to keep until then; none if the stack is too short.
    pub fn prepare(stack: &mut [u64], start: usize) -> Option<usize> {
        // `start` returns to nowhere: a word for its return address, aligned as calls align it.
        let aligned = (stack.as_ptr_range().end as usize / 8) % 2;
        let first = stack.len().checked_sub(PRESERVED + 2 + aligned)?;
        let frame = &mut stack[first..first + PRESERVED + 2];
        frame.fill(0);
        frame[PRESERVED] = start as u64;
        Some(frame.as_ptr() as usize)
    }
}

#[inline(always)]
fn emit_exit(b: &mut Asm<'_, X86_64>, stack_pointer: usize) {
    b.push64(RBX);
    b.push64(RBP);
    b.push64(R12);
    b.push64(R13);
    b.push64(R14);
    b.push64(R15);
    b.mov64_i(RAX, stack_pointer as i64);
    b.mov64_to(RSP, RAX, 0);
}

/// The bytes of what [`emit_exit`] emits.
fn exit_length(stack_pointer: usize) -> Result<usize, Error> {
    let mut buffer = [0_u8; 128];
    let mut workspace = Workspace::<X86_64, 1, 1, 1>::with_room();
    let mut asm = Asm::begin((&mut buffer[..]).into(), &mut workspace, "", &mut [Param::NONE; 0], Kind::Naked)?;
    emit_exit(&mut asm, stack_pointer);
    Ok(asm.position())
}
