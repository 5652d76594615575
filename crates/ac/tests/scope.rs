//! Scopes, handles, panics and futures through the Rust interface.

use quaject_test_support::HANG_TIMEOUT;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use quaject_ac::{Canceled, Scope, Tasks, block_on, block_on_or_cancel, is_canceled, sleep, stop, trim, yield_now};

fn tasks() -> Tasks {
    // SAFETY: these tests use no scoped thread-locals.
    unsafe { Tasks::new() }
}

fn scope<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    tasks().scope(body)
}

fn shield<'env, F, T>(body: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    tasks().shield(body)
}

fn text_of(panic: Box<dyn std::any::Any + Send>) -> String {
    panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).expect("panics of these tests are literals")
}

#[test]
fn tasks_borrow_and_are_joined() {
    let order = RefCell::new(Vec::new());
    let mut total = 0;
    let returned = scope(|s| {
        s.spawn(|| {
            order.borrow_mut().push(1);
            assert_eq!(yield_now(), Ok(()));
            order.borrow_mut().push(3);
        });
        order.borrow_mut().push(2);
        let sum = s.spawn(|| {
            assert_eq!(yield_now(), Ok(()));
            40 + 2
        });
        assert!(!sum.is_finished());
        total = sum.join().expect("the task does not panic");
        "value of the body"
    });
    assert_eq!((returned, total), ("value of the body", 42));
    assert_eq!(order.into_inner(), [1, 2, 3]);
}

#[test]
fn a_task_may_spawn_into_an_outer_scope() {
    let count = Cell::new(0);
    scope(|outer| {
        scope(|inner| {
            inner.spawn(|| {
                outer.spawn(|| {
                    let _ = sleep(Duration::from_millis(2));
                    count.set(count.get() + 1);
                });
                count.set(count.get() + 10);
            });
        });
        assert_eq!(count.get(), 10, "the inner scope does not wait for the outer one's task");
    });
    assert_eq!(count.get(), 11);
}

#[test]
fn thousands_of_nested_scopes() {
    fn tree(depth: u32, leaves: &Cell<u32>) {
        if depth == 0 {
            let _ = yield_now();
            leaves.set(leaves.get() + 1);
            return;
        }
        scope(|s| {
            for _ in 0..4 {
                s.spawn(|| tree(depth - 1, leaves));
            }
        });
    }
    let leaves = Cell::new(0);
    tree(6, &leaves);
    assert_eq!(leaves.get(), 4096);
}

#[test]
fn panics_are_carried_to_the_join() {
    for waits in [false, true] {
        scope(|s| {
            let task = s.spawn(|| {
                if waits {
                    let _ = yield_now();
                }
                panic!("in the task");
            });
            let panic = task.join().err().map(text_of);
            assert_eq!(panic.as_deref(), Some("in the task"));
        });
    }
}

#[test]
fn a_panic_of_an_unjoined_task_leaves_the_scope() {
    for waits in [false, true] {
        let siblings = Cell::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            scope(|s| {
                s.spawn(|| {
                    let _ = sleep(Duration::from_millis(1));
                    siblings.set(siblings.get() + 1);
                });
                s.spawn(|| {
                    if waits {
                        let _ = yield_now();
                    }
                    panic!("unjoined");
                });
            });
        }));
        assert_eq!(result.err().map(text_of).as_deref(), Some("unjoined"));
        assert_eq!(siblings.get(), 1, "the scope has joined all the same");
    }
}

/// Panics when it is dropped, after a wait if so wanted.
struct Bomb {
    waits: bool,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        if self.waits {
            let _ = yield_now();
        }
        panic!("dropped");
    }
}

#[test]
fn a_drop_that_panics_is_a_panic_like_others() {
    for (waits, drop_waits) in [(false, false), (true, false), (false, true), (true, true)] {
        let pause = || {
            if waits {
                let _ = yield_now();
            }
        };
        let message = |run: &dyn Fn()| catch_unwind(AssertUnwindSafe(run)).err().map(text_of);
        // A result that is not taken, a captured variable, and the payload of a second panic.
        let result = message(&|| {
            scope(|s| {
                drop(s.spawn(|| {
                    pause();
                    Bomb { waits: drop_waits }
                }));
            });
        });
        assert_eq!(result.as_deref(), Some("dropped"), "{waits} {drop_waits}");
        let captured = message(&|| {
            let bomb = Bomb { waits: drop_waits };
            scope(|s| {
                s.spawn(move || {
                    let _bomb = &bomb;
                    pause();
                });
            });
        });
        assert_eq!(captured.as_deref(), Some("dropped"), "{waits} {drop_waits}");
        let payload = message(&|| {
            scope(|s| {
                for text in ["first", ""] {
                    s.spawn(move || {
                        pause();
                        if text.is_empty() {
                            std::panic::panic_any(Bomb { waits: drop_waits });
                        }
                        panic!("first");
                    });
                }
            });
        });
        assert_eq!(payload.as_deref(), Some("first"), "{waits} {drop_waits}");
    }
}

/// A waker of another executor, which panics.
struct Rude;

impl std::task::Wake for Rude {
    fn wake(self: Arc<Self>) {
        panic!("woken");
    }
}

#[test]
fn a_waker_that_panics_does_not_end_the_process() {
    let result = catch_unwind(AssertUnwindSafe(|| {
        scope(|s| {
            let mut task = s.spawn(|| {
                let _ = yield_now();
                5
            });
            let waker = Waker::from(Arc::new(Rude));
            assert!(Pin::new(&mut task).poll(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(task.join().ok(), Some(5));
        });
    }));
    assert_eq!(result.err().map(text_of).as_deref(), Some("woken"));
}

#[test]
fn a_panic_of_the_body_cancels_and_joins() {
    let start = Instant::now();
    let seen = Cell::new(None);
    let result = catch_unwind(AssertUnwindSafe(|| {
        scope(|s| {
            s.spawn(|| seen.set(Some(sleep(Duration::from_secs(3600)))));
            panic!("in the body");
        });
    }));
    assert_eq!(result.err().map(text_of).as_deref(), Some("in the body"));
    assert_eq!(seen.get(), Some(Err(Canceled)));
    assert!(start.elapsed() < HANG_TIMEOUT);
}

#[test]
fn cancellation_deadline_shield() {
    scope(|s| {
        let task = s.spawn(|| {
            let inside = shield(|_| (yield_now(), is_canceled()));
            (inside, yield_now(), is_canceled())
        });
        s.cancel();
        let result = task.join().expect("the task does not panic");
        assert_eq!(result, ((Ok(()), false), Err(Canceled), true));
    });
    scope(|s| {
        s.deadline(Duration::from_millis(2));
        assert_eq!(sleep(Duration::from_secs(3600)), Err(Canceled));
        assert!(s.expired());
    });
    assert!(!is_canceled());
}

/// Ready when another thread says so.
#[derive(Clone, Default)]
struct Signal(Arc<Mutex<(bool, Option<Waker>)>>);

impl Signal {
    fn raise(&self) {
        let mut state = self.0.lock().expect("no thread panics with the lock");
        state.0 = true;
        if let Some(waker) = state.1.take() {
            waker.wake();
        }
    }
}

impl Future for Signal {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.lock().expect("no thread panics with the lock");
        if state.0 {
            return Poll::Ready(());
        }
        state.1 = Some(context.waker().clone());
        Poll::Pending
    }
}

#[test]
fn futures_are_woken_by_other_threads_while_tasks_run() {
    for _ in 0..200 {
        let signal = Signal::default();
        let other = std::thread::spawn({
            let signal = signal.clone();
            move || signal.raise()
        });
        let turns = Cell::new(0);
        scope(|s| {
            let waits = s.spawn(|| block_on(signal.clone()));
            for _ in 0..3 {
                let _ = yield_now();
                turns.set(turns.get() + 1);
            }
            waits.join().expect("the task does not panic");
        });
        assert_eq!(turns.get(), 3);
        other.join().expect("the thread does not panic");
    }
}

#[test]
fn a_future_is_dropped_when_its_scope_is_cancelled() {
    scope(|s| {
        let task = s.spawn(|| block_on_or_cancel(Signal::default()));
        s.cancel();
        assert_eq!(task.join().expect("the task does not panic"), Err(Canceled));
    });
    // Its waker outlives the wait.
    let signal = Signal::default();
    let ready = scope(|s| {
        s.deadline(Duration::from_millis(1));
        block_on_or_cancel(signal.clone())
    });
    assert_eq!(ready, Err(Canceled));
    signal.raise();
}

/// Sleeps, and says whether it was as long as asked for.
fn sleeps_enough() -> bool {
    let (start, asked) = (Instant::now(), Duration::from_millis(30));
    sleep(asked) == Ok(()) && start.elapsed() >= asked
}

#[test]
fn a_late_wake_ends_no_other_wait() {
    // The future wakes its task and is ready all the same: no task waits for that wake any more.
    scope(|s| {
        let task = s.spawn(|| {
            block_on(poll_fn(|context| {
                context.waker().wake_by_ref();
                Poll::Ready(())
            }));
            sleeps_enough()
        });
        assert_eq!(task.join().ok(), Some(true));
    });
    // The wake comes from another thread, while the future's own poll waits for something else.
    scope(|s| {
        let task = s.spawn(|| {
            let mut slept = None;
            block_on(poll_fn(|context| {
                if slept.is_some() {
                    return Poll::Ready(());
                }
                let waker = context.waker().clone();
                let other = std::thread::spawn(move || waker.wake());
                slept = Some(sleeps_enough());
                other.join().expect("the thread does not panic");
                Poll::Pending
            }));
            slept
        });
        assert_eq!(task.join().ok(), Some(Some(true)));
    });
}

#[test]
fn a_task_is_a_future() {
    let total = scope(|s| {
        let one = s.spawn(|| {
            let _ = sleep(Duration::from_millis(1));
            1
        });
        let two = s.spawn(|| 2);
        block_on(async { one.await.expect("no panic") + two.await.expect("no panic") })
    });
    assert_eq!(total, 3);
}

#[test]
fn wakers_outlive_threads() {
    let signal = Signal::default();
    let thread = std::thread::spawn({
        let signal = signal.clone();
        move || {
            scope(|s| {
                s.deadline(Duration::from_millis(1));
                block_on_or_cancel(signal)
            })
        }
    });
    assert_eq!(thread.join().expect("no panic"), Err(Canceled));
    signal.raise();
}

/// A failure ends the siblings, unless the handle decides about it.
#[test]
fn a_task_that_panics_cancels_its_siblings() {
    let ended = Cell::new(0);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        scope(|scope| {
            scope.spawn(|| {
                assert_eq!(sleep(std::time::Duration::from_secs(3600)), Err(Canceled));
                ended.set(ended.get() + 1);
            });
            scope.spawn(|| {
                yield_now().expect("not cancelled yet");
                panic!("failed");
            });
        });
    }));
    assert_eq!(panic.expect_err("the scope throws").downcast_ref(), Some(&"failed"));
    assert_eq!(ended.get(), 1);
    scope(|scope| {
        let failing = scope.spawn(|| {
            yield_now().expect("not cancelled");
            panic!("joined");
        });
        assert!(failing.join().is_err());
        assert!(yield_now().is_ok(), "a panic that is joined is the caller's");
    });
}

/// Waits when it is dropped; stores how that ended.
struct WaitsAtItsEnd<'a, F: Fn() -> Result<(), Canceled>>(F, &'a Cell<Option<Result<(), Canceled>>>);

impl<F: Fn() -> Result<(), Canceled>> Drop for WaitsAtItsEnd<'_, F> {
    fn drop(&mut self) {
        self.1.set(Some((self.0)()));
    }
}

/// A task that holds a lock over a wait, next to one that panics and has a destructor that waits. Whether the lock is
/// poisoned, and how the destructor's wait ended.
fn poisons(wait: impl Fn() -> Result<(), Canceled>) -> (bool, Option<Result<(), Canceled>>) {
    let (lock, end) = (Mutex::new(0), Cell::new(None));
    scope(|scope| {
        let holds = scope.spawn(|| {
            let mut held = lock.lock().expect("no task has panicked");
            for _ in 0..2 {
                yield_now().expect("not cancelled");
            }
            *held += 1;
        });
        let panics = scope.spawn(|| {
            let _object = WaitsAtItsEnd(&wait, &end);
            yield_now().expect("not cancelled");
            panic!("in the task");
        });
        assert_eq!(panics.join().err().map(text_of).as_deref(), Some("in the task"));
        holds.join().expect("it does not panic");
        assert!(!std::thread::panicking());
        assert_eq!(yield_now(), Ok(()));
    });
    (lock.is_poisoned(), end.get())
}

/// The standard library counts panics by thread: a destructor of a task that unwinds lets no other task run.
#[test]
fn a_panic_poisons_no_lock_of_another_task() {
    let at_once = (false, Some(Err(Canceled)));
    assert_eq!(poisons(yield_now), at_once);
    assert_eq!(poisons(|| sleep(Duration::from_secs(3600))), at_once);
    assert_eq!(poisons(|| block_on_or_cancel(std::future::pending::<()>())), at_once);
    // A scope whose tasks do not wait is no wait.
    let done = (false, Some(Ok(())));
    assert_eq!(poisons(|| scope(|scope| scope.spawn(|| ()).join().map_err(|_| Canceled))), done);
    // What must be waited for is waited for, as the documentation says, and the other tasks do not stop at their waits.
    let waited = (true, Some(Ok(())));
    let three_rounds = || {
        for _ in 0..3 {
            yield_now()?;
        }
        Ok(())
    };
    assert_eq!(poisons(|| scope(|scope| scope.spawn(three_rounds).join().expect("it does not panic"))), waited);
}

#[test]
fn stacks_are_given_back() {
    assert_eq!(trim(0), 0);
    let burst = || {
        scope(|scope| {
            for _ in 0..100 {
                scope.spawn(yield_now);
            }
        });
    };
    burst();
    assert_eq!(trim(10), 90);
    assert_eq!(trim(10), 0);
    burst();
    stop();
    stop();
    assert_eq!(trim(0), 0);
    burst();
    for stops in [
        (|| scope(|_| stop())) as fn(),
        || scope(|scope| scope.spawn(stop).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))),
        || block_on(async { stop() }),
    ] {
        let panic = catch_unwind(stops).expect_err("a scope is open, or a future driven");
        assert!(text_of(panic).starts_with("the tasks of a thread are stopped while"));
    }
    stop();
}
