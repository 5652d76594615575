//! Calls of extern functions, which the program makes without a pointer to the environment.

use super::Environment;
use ::std::any::Any;
use ::std::cell::Cell;
use ::std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

::std::thread_local! {
    /// The environment of the step that runs on this thread.
    static CURRENT: Cell<Option<*mut (dyn Environment + 'static)>> = const { Cell::new(None) };
    /// The first panic of an extern function in that step.
    static PANIC: Cell<Option<Box<dyn Any + Send>>> = const { Cell::new(None) };
}

/// Restores the environment of an outer step: an extern function may step another instance of the program.
struct Outer {
    environment: Option<*mut (dyn Environment + 'static)>,
    panic: Option<Box<dyn Any + Send>>,
}

impl Drop for Outer {
    fn drop(&mut self) {
        CURRENT.set(self.environment.take());
        PANIC.set(self.panic.take());
    }
}

/// Runs a step during which extern functions are those of `environment`. A panic of one is the error.
pub(super) fn with_environment<R>(
    environment: &mut dyn Environment,
    step: impl FnOnce() -> R,
) -> Result<R, Box<dyn Any + Send>> {
    let pointer: *mut (dyn Environment + '_) = environment;
    // SAFETY: Only the lifetime changes. The pointer is used while `environment` is borrowed: `Outer` removes it.
    let pointer = unsafe {
        ::core::mem::transmute::<*mut (dyn Environment + '_), *mut (dyn Environment + 'static)>(pointer)
    };
    let outer = Outer { environment: CURRENT.replace(Some(pointer)), panic: PANIC.take() };
    let result = step();
    let panic = PANIC.take();
    drop(outer);
    match panic {
        None => Ok(result),
        Some(panic) => Err(panic),
    }
}

/// Calls an extern function; `otherwise` without an environment, and after a panic, which may not cross C.
pub(super) fn call<R>(otherwise: R, function: impl FnOnce(&mut dyn Environment) -> R) -> R {
    let panic = PANIC.take();
    let may_run = panic.is_none();
    PANIC.set(panic);
    let Some(pointer) = CURRENT.get().filter(|_| may_run) else { return otherwise };
    // SAFETY: `with_environment` has set it, and borrows the environment until its step ends. A function that steps
    // another instance of the program has borrowed its environment from this one, if they overlap.
    let environment = unsafe { &mut *pointer };
    match catch_unwind(AssertUnwindSafe(|| function(environment))) {
        Ok(result) => result,
        Err(panic) => {
            PANIC.set(Some(panic));
            otherwise
        }
    }
}
