//! Rust's coroutines and executors at the same questions. Each function does `n` operations and returns the cycles they
//! took.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

/// The processor's time stamp, fenced on both sides.
fn tsc() -> u64 {
    use std::arch::x86_64::{_mm_lfence, _rdtsc};
    // SAFETY: every x86-64 has both.
    unsafe {
        _mm_lfence();
        let now = _rdtsc();
        _mm_lfence();
        now
    }
}

/// Cycles of the time stamp per nanosecond.
pub(crate) fn cycles_per_nanosecond() -> f64 {
    let (start, first) = (Instant::now(), tsc());
    while start.elapsed() < Duration::from_millis(50) {}
    (tsc() - first) as f64 / start.elapsed().as_nanos() as f64
}

/// Our own Rust face, for comparison with the C one.
pub(crate) extern "C" fn scope_create(n: i64) -> u64 {
    // SAFETY: the task uses no thread-local.
    let tasks = unsafe { quaject_ac::Tasks::new() };
    let start = tsc();
    for round in 0..n {
        tasks.scope(|scope| {
            scope.spawn(|| {
                quaject_ac::yield_now().expect("it is never cancelled");
                std::hint::black_box(round);
            });
        });
    }
    tsc() - start
}

pub(crate) extern "C" fn corosensei_switch(n: i64) -> u64 {
    let mut other = Coroutine::new(|yielder, ()| {
        loop {
            yielder.suspend(());
        }
        #[expect(unreachable_code, reason = "the closure must have a type")]
        ()
    });
    other.resume(());
    let start = tsc();
    for _ in 0..n / 2 {
        other.resume(());
    }
    let cycles = tsc() - start;
    // SAFETY: nothing on the coroutine's stack needs to be dropped.
    unsafe { other.force_reset() };
    cycles
}

pub(crate) extern "C" fn corosensei_create(n: i64) -> u64 {
    let mut stack = DefaultStack::new(64 * 1024).expect("a stack can be mapped");
    let start = tsc();
    for round in 0..n {
        let mut task = Coroutine::with_stack(stack, move |yielder, ()| {
            yielder.suspend(());
            std::hint::black_box(round);
        });
        while let CoroutineResult::Yield(()) = task.resume(()) {}
        stack = task.into_stack();
    }
    tsc() - start
}

/// Pending once; wakes itself.
struct YieldOnce(bool);

impl Future for YieldOnce {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0 {
            return Poll::Ready(());
        }
        self.0 = true;
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

thread_local! {
    static QUEUE: RefCell<VecDeque<async_task::Runnable>> = RefCell::default();
    static CYCLES: Cell<u64> = const { Cell::new(0) };
}

fn spawn(future: impl Future<Output = ()> + 'static) -> async_task::Task<()> {
    let schedule = |runnable| QUEUE.with_borrow_mut(|queue| queue.push_back(runnable));
    let (runnable, task) = async_task::spawn_local(future, schedule);
    runnable.schedule();
    task
}

fn run_all() {
    while let Some(runnable) = QUEUE.with_borrow_mut(VecDeque::pop_front) {
        runnable.run();
    }
}

pub(crate) extern "C" fn async_task_yield(n: i64) -> u64 {
    spawn(async move {
        YieldOnce(false).await;
        let start = tsc();
        for _ in 0..n / 2 {
            YieldOnce(false).await;
        }
        CYCLES.set(tsc() - start);
    })
    .detach();
    spawn(async move {
        for _ in 0..=n / 2 {
            YieldOnce(false).await;
        }
    })
    .detach();
    run_all();
    CYCLES.get()
}

pub(crate) extern "C" fn async_task_create(n: i64) -> u64 {
    let start = tsc();
    for _ in 0..n {
        spawn(YieldOnce(false)).detach();
        run_all();
    }
    tsc() - start
}

fn on_tokio<F: Future<Output = u64>>(future: F) -> u64 {
    let runtime =
        tokio::runtime::Builder::new_current_thread().build().expect("a current-thread runtime needs nothing");
    runtime.block_on(future)
}

pub(crate) extern "C" fn tokio_yield(n: i64) -> u64 {
    on_tokio(async move {
        let first = tokio::spawn(async move {
            YieldOnce(false).await;
            let start = tsc();
            for _ in 0..n / 2 {
                YieldOnce(false).await;
            }
            tsc() - start
        });
        let second = tokio::spawn(async move {
            for _ in 0..=n / 2 {
                YieldOnce(false).await;
            }
        });
        second.await.expect("the task does not panic");
        first.await.expect("the task does not panic")
    })
}

pub(crate) extern "C" fn tokio_create(n: i64) -> u64 {
    on_tokio(async move {
        let start = tsc();
        for _ in 0..n {
            tokio::spawn(YieldOnce(false)).await.expect("the task does not panic");
        }
        tsc() - start
    })
}
