//! The small programs, once for each version of the algorithm's files.

/// Makes the module `$name` of models over the algorithm in `$version`.
macro_rules! models {
    ($version:ident, $name:ident) => {
        #[allow(unused, reason = "not every version runs every model")]
        mod $name {
            use std::marker::PhantomData;
            use std::sync::Arc;

            use crate::$version::bell::Bell;
            use crate::$version::call_cell::CallCell;
            use crate::$version::dense_end::DenseEnd;
            use crate::$version::slots::{FaultModel, Memory, Multi, Run, Side, Single, TryError, View};
            use crate::$version::sync::{AtomicU64, Cell};
            use loom::thread;

            pub(crate) trait Kind: Send + Sync + 'static {
                const FAULT_MODEL: FaultModel;
            }
            pub(crate) struct Threads;
            pub(crate) struct Processes;
            impl Kind for Threads {
                const FAULT_MODEL: FaultModel = FaultModel::Threads;
            }
            impl Kind for Processes {
                const FAULT_MODEL: FaultModel = FaultModel::Processes;
            }

            struct Slot<K> {
                state: AtomicU64,
                item: Cell<u32>,
                kind: PhantomData<K>,
            }

            impl<K: Kind> Memory for Slot<K> {
                type Item = u32;
                const FAULT_MODEL: FaultModel = K::FAULT_MODEL;
                fn state(&self) -> &AtomicU64 {
                    &self.state
                }
                // SAFETY: loom checks what the trait asks of the caller.
                unsafe fn write(&self, item: u32) {
                    // SAFETY: claimed, says the caller; loom checks it.
                    unsafe { self.item.write(item) }
                }
                // SAFETY: loom checks what the trait asks of the caller.
                unsafe fn read(&self) -> u32 {
                    // SAFETY: acquired, says the caller; loom checks it.
                    unsafe { self.item.read() }
                }
            }

            struct Queue<K> {
                slots: Vec<Slot<K>>,
                claim: AtomicU64,
                take: AtomicU64,
            }

            fn queue<K: Kind>(capacity: usize) -> Arc<Queue<K>> {
                let slot = || Slot { state: AtomicU64::new(0), item: Cell::new(), kind: PhantomData };
                let slots = (0..capacity).map(|_| slot()).collect();
                Arc::new(Queue { slots, claim: AtomicU64::new(0), take: AtomicU64::new(0) })
            }

            struct End<K: Kind, P, C> {
                queue: Arc<Queue<K>>,
                view: View<Slot<K>>,
                local_position: u64,
                owner: u8,
                sides: PhantomData<(P, C)>,
            }

            impl<K: Kind, P: Side, C: Side> End<K, P, C> {
                fn new(queue: &Arc<Queue<K>>, owner: u8) -> Self {
                    // SAFETY: the end keeps the queue alive.
                    let view = unsafe {
                        View::new(
                            queue.slots.as_ptr(),
                            queue.slots.len(),
                            &raw const queue.claim,
                            &raw const queue.take,
                        )
                    };
                    End { queue: queue.clone(), view, local_position: 0, owner, sides: PhantomData }
                }
                fn try_push<const N: usize>(&mut self, items: [u32; N]) -> bool {
                    match self.view.claim::<P, C>(&mut self.local_position, self.owner, N as u64) {
                        // SAFETY: just claimed; written, then published.
                        Ok(run) => unsafe {
                            for (offset, item) in items.into_iter().enumerate() {
                                self.view.write(run.first + offset as u64, item);
                            }
                            self.view.publish(run);
                            true
                        },
                        Err(TryError::Broken) => panic!("honest peers broke the ring"),
                        Err(TryError::NotReady | TryError::Held { .. }) => false,
                    }
                }
                fn try_pop(&mut self) -> Option<u32> {
                    match self.view.acquire::<P, C>(&mut self.local_position, self.owner, 1) {
                        // SAFETY: just acquired; read once, then given back.
                        Ok(run) => unsafe {
                            let item = self.view.read(run.first);
                            self.view.give_back(run);
                            Some(item)
                        },
                        Err(TryError::Broken) => panic!("honest peers broke the ring"),
                        Err(TryError::NotReady | TryError::Held { .. }) => None,
                    }
                }
                fn push<const N: usize>(&mut self, items: [u32; N]) {
                    while !self.try_push(items) {
                        thread::yield_now();
                    }
                }
                fn pop(&mut self) -> u32 {
                    loop {
                        match self.try_pop() {
                            Some(item) => return item,
                            None => thread::yield_now(),
                        }
                    }
                }
                fn drain(&mut self, taken: &mut Vec<u32>) {
                    while let Some(item) = self.try_pop() {
                        taken.push(item);
                    }
                }
            }

            fn explore(preemptions: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
                let mut builder = loom::model::Builder::new();
                builder.preemption_bound = preemptions;
                builder.check(model);
            }

            /// Three items through two slots, so that one is used twice.
            pub(crate) fn one_to_one() {
                explore(None, || {
                    let queue = queue::<Threads>(2);
                    let mut producer = End::<_, Single, Single>::new(&queue, 1);
                    let mut consumer = End::<_, Single, Single>::new(&queue, 2);
                    let producing = thread::spawn(move || {
                        producer.push([1, 2]);
                        producer.push([3]);
                    });
                    assert_eq!([consumer.pop(), consumer.pop(), consumer.pop()], [1, 2, 3]);
                    producing.join().expect("the producer ends");
                });
            }

            /// The same through indices.
            pub(crate) fn dense() {
                explore(None, || {
                    let shared = Arc::new(([Cell::new(), Cell::new()], AtomicU64::new(0), AtomicU64::new(0)));
                    let lane = |shared: &Arc<([Cell<u32>; 2], AtomicU64, AtomicU64)>| {
                        // SAFETY: both threads keep the memory alive.
                        unsafe { DenseEnd::new(shared.0.as_ptr(), 2, &raw const shared.1, &raw const shared.2) }
                    };
                    let theirs = shared.clone();
                    let producing = thread::spawn(move || {
                        let mut producer = lane(&theirs);
                        for items in [&[1, 2][..], &[3]] {
                            let run = loop {
                                match producer.claim(items.len() as u64) {
                                    Ok(run) => break run,
                                    Err(_) => thread::yield_now(),
                                }
                            };
                            // SAFETY: just claimed; written, then published.
                            unsafe {
                                for (offset, item) in items.iter().enumerate() {
                                    producer.cell(run.first + offset as u64).write(*item);
                                }
                                producer.publish(run);
                            }
                        }
                    });
                    let mut consumer = lane(&shared);
                    for expected in 1..=3 {
                        let run = loop {
                            match consumer.acquire(1) {
                                Ok(run) => break run,
                                Err(_) => thread::yield_now(),
                            }
                        };
                        // SAFETY: just acquired; read once, then given back.
                        unsafe {
                            assert_eq!(consumer.cell(run.first).read(), expected);
                            consumer.give_back(run);
                        }
                    }
                    producing.join().expect("the producer ends");
                });
            }

            /// An insert of two and one of one, into two slots; nothing between the two.
            pub(crate) fn many_to_one<K: Kind>() {
                explore(Some(4), || {
                    let queue = queue::<K>(2);
                    let mut pair = End::<_, Multi, Single>::new(&queue, 1);
                    let mut single = End::<_, Multi, Single>::new(&queue, 2);
                    let mut consumer = End::<_, Multi, Single>::new(&queue, 3);
                    let first = thread::spawn(move || pair.try_push([1, 2]));
                    let second = thread::spawn(move || single.try_push([9]));
                    let mut taken = Vec::new();
                    taken.extend(consumer.try_pop());
                    taken.extend(consumer.try_pop());
                    let pair = first.join().expect("the producer ends");
                    let single = second.join().expect("the producer ends");
                    consumer.drain(&mut taken);
                    let expected: &[&[u32]] = match (pair, single) {
                        (true, true) => &[&[1, 2, 9], &[9, 1, 2]],
                        (true, false) => &[&[1, 2]],
                        (false, true) => &[&[9]],
                        (false, false) => &[],
                    };
                    assert!(expected.contains(&&taken[..]), "{pair} {single}: {taken:?}");
                });
            }

            /// Two items, two consumers that each try twice.
            pub(crate) fn one_to_many<K: Kind>() {
                explore(Some(4), || {
                    let queue = queue::<K>(2);
                    let mut producer = End::<_, Single, Multi>::new(&queue, 1);
                    let mut consumer = End::<_, Single, Multi>::new(&queue, 2);
                    let mut other = End::<_, Single, Multi>::new(&queue, 3);
                    let producing = thread::spawn(move || assert!(producer.try_push([1, 2]), "the queue is empty"));
                    let taking = thread::spawn(move || [other.try_pop(), other.try_pop()]);
                    let mine = [consumer.try_pop(), consumer.try_pop()];
                    let theirs = taking.join().expect("the consumer ends");
                    producing.join().expect("the producer ends");
                    // Each sees the items in order.
                    assert!(mine != [Some(2), Some(1)] && theirs != [Some(2), Some(1)]);
                    let mut taken: Vec<u32> = mine.into_iter().chain(theirs).flatten().collect();
                    consumer.drain(&mut taken);
                    taken.sort();
                    assert_eq!(taken, [1, 2]);
                });
            }

            /// Two producers and a consumer contend for one slot, and the last follows them.
            pub(crate) fn many_to_many<K: Kind>() {
                explore(Some(3), || {
                    let queue = queue::<K>(1);
                    let pushing = |item: u32| {
                        let mut producer = End::<_, Multi, Multi>::new(&queue, item as u8);
                        thread::spawn(move || producer.try_push([item]).then_some(item))
                    };
                    let producing = [pushing(1), pushing(2)];
                    let mut consumer = End::<_, Multi, Multi>::new(&queue, 3);
                    let mut other = End::<_, Multi, Multi>::new(&queue, 4);
                    let taking = thread::spawn(move || other.try_pop());
                    let mut taken: Vec<u32> = consumer.try_pop().into_iter().collect();
                    taken.extend(taking.join().expect("the consumer ends"));
                    let pushed = producing.map(|thread| thread.join().expect("the producer ends"));
                    consumer.drain(&mut taken);
                    taken.sort();
                    assert_eq!(taken, pushed.into_iter().flatten().collect::<Vec<u32>>());
                });
            }

            /// Two calls; each reply is its request plus one.
            pub(crate) fn calls() {
                explore(None, || {
                    let cell = Arc::new(CallCell::<u32, u32>::new());
                    let theirs = cell.clone();
                    let responding = thread::spawn(move || {
                        for _ in 0..2 {
                            // SAFETY: this thread replies, to one request after the other; loom checks it.
                            let request = until(|| unsafe { theirs.take_request() });
                            // SAFETY: as above.
                            unsafe { theirs.send_reply(request + 1) };
                        }
                    });
                    for request in [10, 20] {
                        // SAFETY: this thread calls, and takes each reply before it calls again; loom checks it.
                        unsafe { cell.send_request(request) };
                        // SAFETY: as above.
                        assert_eq!(until(|| unsafe { cell.take_reply() }), request + 1);
                    }
                    responding.join().expect("the responder ends");
                });
            }

            fn until<T>(attempt: impl Fn() -> Option<T>) -> T {
                loop {
                    if let Some(done) = attempt() {
                        return done;
                    }
                    thread::yield_now();
                }
            }

            /// A consumer that finds nothing after it has armed the bell is rung.
            pub(crate) fn bells() {
                explore(None, || {
                    let queue = queue::<Threads>(1);
                    let shared = Arc::new((Bell(loom::sync::atomic::AtomicU32::new(0)), AtomicU64::new(0)));
                    let mut producer = End::<_, Single, Single>::new(&queue, 1);
                    let mut consumer = End::<_, Single, Single>::new(&queue, 2);
                    let theirs = shared.clone();
                    let producing = thread::spawn(move || {
                        producer.push([1]);
                        theirs.0.ring(|| theirs.1.store(1, loom::sync::atomic::Ordering::Relaxed));
                    });
                    shared.0.arm();
                    let found = consumer.view.acquire::<Single, Single>(&mut consumer.local_position, 0, 1).is_ok();
                    producing.join().expect("the producer ends");
                    let rung = shared.1.load(loom::sync::atomic::Ordering::Relaxed) == 1;
                    assert!(found || rung, "slept through it");
                });
            }
        }
    };
}
pub(crate) use models;

/// Memory of one item, watched by loom.
pub(crate) struct Cell<T>(loom::cell::UnsafeCell<Option<T>>);

// SAFETY: loom reports every use that is not ordered.
unsafe impl<T: Send> Sync for Cell<T> {}
// SAFETY: it owns what it holds.
unsafe impl<T: Send> Send for Cell<T> {}

impl<T> Cell<T> {
    pub(crate) fn new() -> Self {
        Cell(loom::cell::UnsafeCell::new(None))
    }

    /// # Safety
    /// None: loom checks that no other thread uses the cell meanwhile.
    pub(crate) unsafe fn write(&self, item: T) {
        // SAFETY: loom has checked that no other thread uses the cell.
        self.0.with_mut(|cell| unsafe { *cell = Some(item) });
    }

    /// # Safety
    /// None: loom checks that no other thread uses the cell meanwhile.
    pub(crate) unsafe fn read(&self) -> T {
        // SAFETY: loom has checked that no other thread uses the cell.
        self.0.with_mut(|cell| unsafe { (*cell).take() }).expect("an acquired cell holds an item")
    }
}
