//! Where the threads of a search wait for each other between levels. Many levels take less time than it takes to wake a
//! thread that sleeps, above all on a virtual machine; so a thread looks around for a while before it sleeps.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};

/// How often a thread looks before it sleeps: some hundred microseconds.
const SPIN_ITERATIONS: u32 = 8_000;

/// A place where so many threads meet, again and again.
#[derive(Debug)]
pub(crate) struct SpinBarrier {
    threads: usize,
    arrived: AtomicUsize,
    /// How many times all have met.
    times: AtomicUsize,
    /// How many sleep.
    sleepers: Mutex<usize>,
    bell: Condvar,
}

impl SpinBarrier {
    pub(crate) fn new(threads: usize) -> SpinBarrier {
        SpinBarrier {
            threads,
            arrived: AtomicUsize::new(0),
            times: AtomicUsize::new(0),
            sleepers: Mutex::new(0),
            bell: Condvar::new(),
        }
    }

    /// Waits until all are here.
    pub(crate) fn wait(&self) {
        // Relaxed: nobody can change it before this thread has arrived.
        let times = self.times.load(Ordering::Relaxed);
        // Pairs with itself: the last one to arrive sees all that the others have done.
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            // Relaxed: who arrives for the next meeting has seen `times` change.
            self.arrived.store(0, Ordering::Relaxed);
            let sleepers = self.sleepers.lock().expect("no thread panics with it");
            // Pairs with the loads below.
            self.times.store(times + 1, Ordering::Release);
            // To ring is a call of the system, even if nobody hears it.
            if *sleepers > 0 {
                drop(sleepers);
                self.bell.notify_all();
            }
            return;
        }
        for _ in 0..SPIN_ITERATIONS {
            // Pairs with the store above, as does the next one.
            if self.times.load(Ordering::Acquire) != times {
                return;
            }
            std::hint::spin_loop();
        }
        let mut sleepers = self.sleepers.lock().expect("no thread panics with it");
        *sleepers += 1;
        while self.times.load(Ordering::Acquire) == times {
            sleepers = self.bell.wait(sleepers).expect("no thread panics with it");
        }
        *sleepers -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_goes_on_before_all_are_there() {
        for threads in [1, 2, 3, 7] {
            let (meeting, count) = (SpinBarrier::new(threads), AtomicUsize::new(0));
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for round in 1..200 {
                            count.fetch_add(1, Ordering::Relaxed);
                            meeting.wait();
                            assert_eq!(count.load(Ordering::Relaxed), round * threads);
                            meeting.wait();
                            if round % 50 == 0 && count.load(Ordering::Relaxed) % 2 == 0 {
                                // Some are late enough for others to sleep.
                                std::thread::sleep(std::time::Duration::from_millis(1));
                            }
                        }
                    });
                }
            });
        }
    }
}
