//! Scopes: finish blocks with lifetimes. A scope joins its tasks on every exit, so a task may borrow values that
//! outlive the scope. [`Tasks`] holds the promise that makes them sound.

use std::any::Any;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::ffi::c_void;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::sys;

/// Why a wait ended early: the enclosing scope, or one further out, was cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canceled;

impl fmt::Display for Canceled {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the scope was cancelled")
    }
}

impl std::error::Error for Canceled {}

/// Converts the result of a C function, whose only error is the cancellation.
fn canceled_unless_zero(code: i32) -> Result<(), Canceled> {
    if code == 0 { Ok(()) } else { Err(Canceled) }
}

type Panic = Box<dyn Any + Send>;

/// What tasks and handles need of their scope when a task has panicked.
struct Failures {
    block: UnsafeCell<sys::RawBlock>,
    /// The first panic of a task whose handle was not joined.
    panic: RefCell<Option<Panic>>,
}

impl Failures {
    /// Cancels the scope, as a task of it has failed, and keeps the panic if it is the first. Otherwise it is dropped;
    /// a panic of that drop is forgotten.
    fn fail(&self, panic: Panic) {
        // SAFETY: tasks, and handles of the lifetime of the scope, exist only while its block is open.
        unsafe { sys::qj_ac_cancel(self.block.get()) };
        let mut first = self.panic.borrow_mut();
        if first.is_none() {
            *first = Some(panic);
            return;
        }
        drop(first);
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(panic))) {
            std::mem::forget(again);
        }
    }
}

/// The right to run tasks on a thread, which needs a promise that the compiler cannot check.
///
/// A scope is opened by its methods; everything else is safe.
#[derive(Clone, Copy, Debug)]
pub struct Tasks {
    not_send: PhantomData<*mut ()>,
}

impl Tasks {
    /// Promises that tasks do not wait where other code relies on the order of calls and returns of the thread.
    ///
    /// # Safety
    /// While a scope is open, no code that runs in it (its body, its tasks and what they call) waits between the
    /// installation of a value in a thread-local and its restoration, where unsafe code relies on their being last in,
    /// first out. Waits are [`yield_now`], [`sleep`], [`block_on`](crate::block_on),
    /// [`block_on_or_cancel`](crate::block_on_or_cancel), [`Task::join`] and the end of a scope.
    ///
    /// An example of what must not be done is a wait inside of `scoped_tls::ScopedKey::set`. Two tasks `a` and `b` each
    /// set the key to a local variable, wait, and restore what was there before: `a` saves nothing, `b` saves the
    /// address of `a`'s variable; `a` ends; `b` restores that address, and `ScopedKey::with` then hands out a reference
    /// to a variable that does not exist any more, without `unsafe` in the program. Thread-locals that only hand out
    /// owned values, as [`std::thread::LocalKey`] does, are not concerned.
    #[must_use]
    pub const unsafe fn new() -> Tasks {
        Tasks { not_send: PhantomData }
    }

    /// Runs `body` and waits for every task that was spawned in its scope. When the body panics the scope is cancelled
    /// first. So it is when a task panics whose handle was dropped; that panic is resumed here.
    pub fn scope<'env, F, T>(self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        run(body, sys::qj_ac_ffi_finish_begin)
    }

    /// A scope that outer cancellations do not reach, for work that must be completed.
    pub fn shield<'env, F, T>(self, body: F) -> T
    where
        F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
    {
        run(body, sys::qj_ac_ffi_finish_begin_shielded)
    }
}

/// A block of tasks; made by [`Tasks::scope`].
pub struct Scope<'scope, 'env: 'scope> {
    failures: Failures,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
    /// Tasks belong to their thread.
    not_send: PhantomData<*mut ()>,
}

fn run<'env, F, T>(body: F, begin: unsafe extern "C" fn(*mut sys::RawBlock)) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let scope = Scope {
        failures: Failures { block: UnsafeCell::new(sys::RawBlock::closed()), panic: RefCell::new(None) },
        scope: PhantomData,
        env: PhantomData,
        not_send: PhantomData,
    };
    // SAFETY: the block stays where it is until `finish_end` below, which is reached on every path: the body's panics
    // are caught, and nothing else runs in between.
    unsafe { begin(scope.failures.block.get()) };
    let result = catch_unwind(AssertUnwindSafe(|| body(&scope)));
    if result.is_err() {
        scope.cancel();
    }
    let waits = UnwindingWait::begin();
    // SAFETY: begun above by this task; bodies close the blocks they open, so it is the innermost.
    unsafe { sys::qj_ac_ffi_finish_end(scope.failures.block.get()) };
    drop(waits);
    match result {
        Err(panic) => resume_unwind(panic),
        Ok(value) => match scope.failures.panic.take() {
            Some(panic) => resume_unwind(panic),
            None => value,
        },
    }
}

/// The state that a task and its handle share.
struct Packet<T> {
    result: Cell<Option<Result<T, Panic>>>,
    ended: Cell<bool>,
    joiner: Cell<Option<*mut sys::RawTask>>,
    waker: RefCell<Option<Waker>>,
}

/// The closure that `spawn` passes to the task's stack.
struct Start<'scope, 'env, F, T> {
    function: F,
    packet: Rc<Packet<T>>,
    scope: &'scope Scope<'scope, 'env>,
}

extern "C-unwind" fn base<'scope, F, T>(start: *mut c_void)
where
    F: FnOnce() -> T + 'scope,
{
    // SAFETY: `spawn` passes a `Start` of these types, forgets it, and does not go on before this line has run.
    let Start { function, packet, scope } = unsafe { ptr::read(start.cast::<Start<'scope, '_, F, T>>()) };
    let result = catch_unwind(AssertUnwindSafe(function));
    // Results, panics and wakers may panic when they are dropped or woken. Below a task that has waited there is no
    // frame to unwind to.
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| packet.end(result, &scope.failures))) {
        scope.failures.fail(panic);
    }
}

impl<T> Packet<T> {
    /// The task has ended: wakes the task that joins it. A panic without a handle goes to the scope.
    fn end(self: Rc<Self>, result: Result<T, Panic>, scope: &Failures) {
        match result {
            // The handle was dropped: the task is never joined.
            Err(panic) if Rc::strong_count(&self) == 1 => scope.fail(panic),
            result => self.result.set(Some(result)),
        }
        self.ended.set(true);
        if let Some(joiner) = self.joiner.take() {
            // SAFETY: the joiner is suspended in `Task::join` and leaves only when it is scheduled here.
            unsafe { sys::qj_ac_schedule_back(joiner) };
        }
        let waker = self.waker.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Runs `function` as a task of this scope: at once, until it first waits. A panic whose handle was dropped cancels
    /// the scope, which throws it at its end.
    pub fn spawn<F, T>(&'scope self, function: F) -> Task<'scope, T>
    where
        F: FnOnce() -> T + 'scope,
        T: 'scope,
    {
        let packet = Rc::new(Packet {
            result: Cell::new(None),
            ended: Cell::new(false),
            joiner: Cell::new(None),
            waker: RefCell::new(None),
        });
        let mut start = std::mem::ManuallyDrop::new(Start { function, packet: Rc::clone(&packet), scope: self });
        let argument: *mut Start<'scope, 'env, F, T> = &mut *start;
        let _waits = UnwindingWait::begin();
        // SAFETY: 1. the block is open: `'scope` ends before `run` closes it. 2. `base` moves the start out before it
        // can wait, and it never unwinds. 3. What the closure borrows outlives `'scope`.
        unsafe { sys::qj_ac_ffi_async_in(self.failures.block.get(), base::<F, T>, argument.cast()) };
        Task { packet, scope: &self.failures }
    }

    /// Cancels the scope and the scopes below it up to shields. Cancellation is cooperative: waits return [`Canceled`],
    /// present and future ones; no task is killed.
    pub fn cancel(&self) {
        // SAFETY: a `&Scope` exists only while its block is open.
        unsafe { sys::qj_ac_cancel(self.failures.block.get()) };
    }

    /// Cancels the scope after a time unless it has ended. A second call replaces the first.
    pub fn deadline(&self, after: Duration) {
        // SAFETY: a `&Scope` exists only while its block is open.
        unsafe { sys::qj_ac_deadline(self.failures.block.get(), nanoseconds(after)) };
    }

    /// Whether the deadline cancelled the scope.
    pub fn expired(&self) -> bool {
        // SAFETY: a `&Scope` exists only while its block is open.
        unsafe { sys::qj_ac_ffi_expired(self.failures.block.get()) != 0 }
    }
}

/// A spawned task. Dropping it detaches nothing: the scope still waits for the task. As a future it yields what
/// [`Task::join`] returns.
pub struct Task<'scope, T> {
    packet: Rc<Packet<T>>,
    scope: &'scope Failures,
}

impl<T> Task<'_, T> {
    /// Whether the task has ended.
    pub fn is_finished(&self) -> bool {
        self.packet.ended.get()
    }

    /// Waits for the task. The error is what it panicked with.
    ///
    /// # Errors
    /// When the task panicked.
    pub fn join(self) -> Result<T, Box<dyn Any + Send>> {
        let _waits = UnwindingWait::begin();
        while !self.packet.ended.get() {
            // SAFETY: the function has no preconditions.
            self.packet.joiner.set(Some(unsafe { sys::qj_ac_ffi_current() }));
            // SAFETY: this code runs in the task that is suspended; the base of the joined one schedules it.
            unsafe { sys::qj_ac_ffi_suspend() };
        }
        self.packet.result.take().expect("a task that has ended left a result, and only `join` takes it")
    }
}

impl<T> Drop for Task<'_, T> {
    fn drop(&mut self) {
        if let Some(Err(panic)) = self.packet.result.take() {
            self.scope.fail(panic);
        }
    }
}

impl<T> Future for Task<'_, T> {
    type Output = Result<T, Box<dyn Any + Send>>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.packet.ended.get() {
            Poll::Ready(self.packet.result.take().expect("a future is not polled again when it was ready"))
        } else {
            self.packet.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        }
    }
}

thread_local! {
    /// Tasks of the thread that wait while they unwind.
    static UNWINDING_WAITS: Cell<usize> = const { Cell::new(0) };
}

/// A call in which other tasks may run even if the caller unwinds.
pub(crate) struct UnwindingWait(bool);

impl UnwindingWait {
    pub(crate) fn begin() -> UnwindingWait {
        let unwinds = std::thread::panicking();
        if unwinds {
            UNWINDING_WAITS.set(UNWINDING_WAITS.get() + 1);
        }
        UnwindingWait(unwinds)
    }
}

impl Drop for UnwindingWait {
    fn drop(&mut self) {
        if self.0 {
            UNWINDING_WAITS.set(UNWINDING_WAITS.get() - 1);
        }
    }
}

/// Whether the running task unwinds because of a panic, as far as is known: while another task waits in this state, the
/// standard library, whose count is the thread's, cannot say whose panic it counts.
pub(crate) fn unwinds() -> bool {
    std::thread::panicking() && UNWINDING_WAITS.get() == 0
}

/// Lets every other runnable task of the thread go first.
///
/// # Errors
/// When the enclosing scope is cancelled; and, without a wait, in a destructor that runs because of a panic.
pub fn yield_now() -> Result<(), Canceled> {
    if unwinds() {
        return Err(Canceled);
    }
    // SAFETY: the function has no preconditions.
    canceled_unless_zero(unsafe { sys::qj_ac_ffi_yield() })
}

/// Waits; other tasks run.
///
/// # Errors
/// As soon as the enclosing scope is cancelled; and, without a wait, in a destructor that runs because of a panic.
pub fn sleep(duration: Duration) -> Result<(), Canceled> {
    if unwinds() {
        return Err(Canceled);
    }
    // SAFETY: the function has no preconditions.
    canceled_unless_zero(unsafe { sys::qj_ac_sleep(nanoseconds(duration)) })
}

/// Whether the enclosing scope, or one further out up to the next shield, is cancelled.
pub fn is_canceled() -> bool {
    // SAFETY: the function has no preconditions.
    unsafe { sys::qj_ac_ffi_is_canceled() != 0 }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
