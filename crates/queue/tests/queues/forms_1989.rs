//! The queues as the Synthesis papers print them, statement by statement, as oracles. Figure 1: one producer, one
//! consumer. Figure 2: many producers, one consumer, inserts of several items, a flag next to each item. Both wrap
//! their indices and therefore leave one place of the buffer empty.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::SeqCst};

/// Figure 1.
pub(crate) struct SpSc {
    head: AtomicUsize,
    tail: AtomicUsize,
    buf: Vec<AtomicU64>,
}

impl SpSc {
    pub(crate) fn new(capacity: usize) -> Self {
        let buf = (0..=capacity).map(|_| AtomicU64::new(0)).collect();
        SpSc { head: AtomicUsize::new(0), tail: AtomicUsize::new(0), buf }
    }

    fn next(&self, x: usize) -> usize {
        if x == self.buf.len() - 1 { 0 } else { x + 1 }
    }

    pub(crate) fn put(&self, data: u64) -> bool {
        let t = self.head.load(SeqCst);
        if self.next(t) == self.tail.load(SeqCst) {
            return false;
        }
        self.buf[t].store(data, SeqCst);
        self.head.store(self.next(t), SeqCst);
        true
    }

    pub(crate) fn get(&self) -> Option<u64> {
        let t = self.tail.load(SeqCst);
        if t == self.head.load(SeqCst) {
            return None;
        }
        let data = self.buf[t].load(SeqCst);
        self.tail.store(self.next(t), SeqCst);
        Some(data)
    }
}

/// Figure 2.
pub(crate) struct MpSc {
    head: AtomicUsize,
    tail: AtomicUsize,
    buf: Vec<AtomicU64>,
    flag: Vec<AtomicUsize>,
}

impl MpSc {
    pub(crate) fn new(capacity: usize) -> Self {
        MpSc {
            head: AtomicUsize::new(0),
            tail: AtomicUsize::new(0),
            buf: (0..=capacity).map(|_| AtomicU64::new(0)).collect(),
            flag: (0..=capacity).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    fn add_wrap(&self, x: usize, n: usize) -> usize {
        let x = x + n;
        if x >= self.buf.len() { x - self.buf.len() } else { x }
    }

    fn space_left(&self, h: usize) -> usize {
        let t = self.tail.load(SeqCst);
        if h >= t { t + self.buf.len() - h } else { t - h }
    }

    pub(crate) fn put(&self, data: &[u64]) -> bool {
        let h = loop {
            let h = self.head.load(SeqCst);
            if self.space_left(h) <= data.len() {
                return false;
            }
            let new = self.add_wrap(h, data.len());
            if self.head.compare_exchange(h, new, SeqCst, SeqCst).is_ok() {
                break h;
            }
        };
        for (i, item) in data.iter().enumerate() {
            let place = self.add_wrap(h, i);
            self.buf[place].store(*item, SeqCst);
            self.flag[place].store(1, SeqCst);
        }
        true
    }

    pub(crate) fn get(&self) -> Option<u64> {
        let t = self.tail.load(SeqCst);
        if self.flag[t].load(SeqCst) == 0 {
            return None;
        }
        let data = self.buf[t].load(SeqCst);
        self.flag[t].store(0, SeqCst);
        self.tail.store(self.add_wrap(t, 1), SeqCst);
        Some(data)
    }
}

#[test]
fn figure_1_keeps_order_between_threads() {
    let queue = SpSc::new(4);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..1000).for_each(|item| {
                while !queue.put(item) {
                    std::thread::yield_now()
                }
            })
        });
        for expected in 0..1000 {
            let taken = loop {
                match queue.get() {
                    Some(item) => break item,
                    None => std::thread::yield_now(),
                }
            };
            assert_eq!(taken, expected);
        }
    });
}
