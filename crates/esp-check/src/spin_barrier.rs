//! The barrier at which the threads of a search wait between levels. Many levels take less time than waking a sleeping
//! thread, above all on a virtual machine; so a thread spins for a while before it sleeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

/// Iterations before a thread sleeps: some hundred microseconds.
const SPIN_ITERATIONS: u32 = 8_000;

/// A reusable barrier for a fixed number of threads.
#[derive(Debug)]
pub(crate) struct SpinBarrier {
    threads: usize,
    arrived: AtomicUsize,
    /// The number of times that the barrier was passed.
    generation: AtomicUsize,
    /// How many threads sleep.
    sleepers: Mutex<usize>,
    wakeup: Condvar,
}

impl SpinBarrier {
    pub(crate) fn new(threads: usize) -> SpinBarrier {
        SpinBarrier {
            threads,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            sleepers: Mutex::new(0),
            wakeup: Condvar::new(),
        }
    }

    /// Waits until all threads have arrived.
    pub(crate) fn wait(&self) {
        // Relaxed: `generation` cannot change before this thread has arrived.
        let generation = self.generation.load(Ordering::Relaxed);
        // Pairs with itself: the last one to arrive sees all that the others have done.
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // Relaxed: a thread that arrives for the next round has seen `generation` change.
            self.arrived.store(0, Ordering::Relaxed);
            let sleepers = self.sleepers.lock().expect("no thread panics with it");
            // Pairs with the loads below.
            self.generation.store(generation + 1, Ordering::Release);
            // A wakeup is a system call, even without sleepers.
            if *sleepers > 0 {
                drop(sleepers);
                self.wakeup.notify_all();
            }
            return;
        }
        for _ in 0..SPIN_ITERATIONS {
            // Pairs with the store above, as does the next one.
            if self.generation.load(Ordering::Acquire) != generation {
                return;
            }
            std::hint::spin_loop();
        }
        let mut sleepers = self.sleepers.lock().expect("no thread panics with it");
        *sleepers += 1;
        while self.generation.load(Ordering::Acquire) == generation {
            sleepers = self.wakeup.wait(sleepers).expect("no thread panics with it");
        }
        *sleepers -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_thread_continues_before_all_have_arrived() {
        for threads in [1, 2, 3, 7] {
            let (barrier, count) = (SpinBarrier::new(threads), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for round in 1..200 {
                            count.fetch_add(1, Ordering::Relaxed);
                            barrier.wait();
                            assert_eq!(count.load(Ordering::Relaxed), round * threads);
                            barrier.wait();
                            if round % 50 == 0 && count.load(Ordering::Relaxed) % 2 == 0 {
                                // Late enough for other threads to sleep.
                                std::thread::sleep(std::time::Duration::from_millis(1));
                            }
                        }
                    });
                }
            });
        }
    }
}
