//! Every kind of queue behind one face, so that each test runs on all.

use std::ops::Deref;
use std::sync::Arc;

use quaject_queue::shared::{Message, Ring, bytes_needed};
use quaject_queue::{Consumer, Multi, Producer, Queue, Side, Single};

/// An end that inserts numbers.
pub(crate) trait Push: Send {
    fn push(&mut self, item: u64) -> bool;
    /// All or none.
    fn push_all(&mut self, items: &[u64]) -> bool;
    fn twin(&self) -> Box<dyn Push>;
}

/// An end that takes numbers.
pub(crate) trait Pop: Send {
    fn pop(&mut self) -> Option<u64>;
    fn pop_some(&mut self, max: usize) -> Vec<u64>;
    fn twin(&self) -> Box<dyn Pop>;
}

/// Makes another end where the side allows it.
type Twin<E> = fn(&E) -> Option<E>;

struct Plain<E> {
    end: E,
    twin: Twin<E>,
}

fn none<E>(_end: &E) -> Option<E> {
    None
}

fn cloned<E: Clone>(end: &E) -> Option<E> {
    Some(end.clone())
}

impl<R> Push for Plain<Producer<R>>
where
    R: Deref<Target: Queue<Item = u64>> + 'static,
    Producer<R>: Send,
{
    fn push(&mut self, item: u64) -> bool {
        self.end.push(item).is_ok()
    }
    fn push_all(&mut self, items: &[u64]) -> bool {
        self.end.push_slice(items).is_ok()
    }
    fn twin(&self) -> Box<dyn Push> {
        Box::new(Plain { end: (self.twin)(&self.end).expect("a side of many"), twin: self.twin })
    }
}

impl<R> Pop for Plain<Consumer<R>>
where
    R: Deref<Target: Queue<Item = u64>> + 'static,
    Consumer<R>: Send,
{
    fn pop(&mut self) -> Option<u64> {
        self.end.pop().ok()
    }
    fn pop_some(&mut self, max: usize) -> Vec<u64> {
        let mut items = vec![0; max];
        let ready = self.end.pop_slice(&mut items).unwrap_or(0);
        items.truncate(ready);
        items
    }
    fn twin(&self) -> Box<dyn Pop> {
        Box::new(Plain { end: (self.twin)(&self.end).expect("a side of many"), twin: self.twin })
    }
}

/// The rings of shared memory carry the number as the first word.
struct Words<E> {
    end: E,
    twin: Twin<E>,
}

fn message(item: u64) -> Message {
    [item, !item, item, !item, item, !item, item]
}

fn number(message: Message) -> u64 {
    assert_eq!(message, self::message(message[0]), "a torn message");
    message[0]
}

impl<R> Push for Words<Producer<R>>
where
    R: Deref<Target: Queue<Item = Message>> + 'static,
    Producer<R>: Send,
{
    fn push(&mut self, item: u64) -> bool {
        self.end.push(message(item)).is_ok()
    }
    fn push_all(&mut self, items: &[u64]) -> bool {
        self.end.push_slice(&items.iter().map(|item| message(*item)).collect::<Vec<_>>()).is_ok()
    }
    fn twin(&self) -> Box<dyn Push> {
        Box::new(Words { end: (self.twin)(&self.end).expect("a side of many"), twin: self.twin })
    }
}

impl<R> Pop for Words<Consumer<R>>
where
    R: Deref<Target: Queue<Item = Message>> + 'static,
    Consumer<R>: Send,
{
    fn pop(&mut self) -> Option<u64> {
        self.end.pop().ok().map(number)
    }
    fn pop_some(&mut self, max: usize) -> Vec<u64> {
        let mut items = vec![[0; 7]; max];
        let ready = self.end.pop_slice(&mut items).unwrap_or(0);
        items.into_iter().take(ready).map(number).collect()
    }
    fn twin(&self) -> Box<dyn Pop> {
        Box::new(Words { end: (self.twin)(&self.end).expect("a side of many"), twin: self.twin })
    }
}

/// One or many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    One,
    Many,
}

/// The two ends of a new queue.
pub(crate) type Ends = (Box<dyn Push>, Box<dyn Pop>);

/// A kind of queue.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) producers: Users,
    pub(crate) consumers: Users,
    /// Makes one with that many slots, a power of two.
    pub(crate) make: fn(usize) -> Ends,
}

fn plain<R, S>(ends: (Producer<R>, Consumer<S>), push: Twin<Producer<R>>, pop: Twin<Consumer<S>>) -> Ends
where
    R: Deref<Target: Queue<Item = u64>> + 'static,
    S: Deref<Target: Queue<Item = u64>> + 'static,
    Producer<R>: Send,
    Consumer<S>: Send,
{
    (Box::new(Plain { end: ends.0, twin: push }), Box::new(Plain { end: ends.1, twin: pop }))
}

type SharedRing<P, C> = Arc<Ring<P, C, Memory>>;

/// Zeroed memory that is freed with the ring.
pub(crate) struct Memory {
    start: *mut u8,
    layout: std::alloc::Layout,
}

// SAFETY: only rings use it, through atomics.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

// SAFETY: allocated until it is dropped, and only rings use it.
unsafe impl quaject_queue::shared::Bytes for Memory {
    fn start(&self) -> *mut u8 {
        self.start
    }
    fn size(&self) -> usize {
        self.layout.size()
    }
}

impl Memory {
    pub(crate) fn new(bytes: usize) -> Memory {
        let layout = std::alloc::Layout::from_size_align(bytes, 128).expect("rings are small");
        // SAFETY: a ring has a header, so the size is not 0.
        let start = unsafe { std::alloc::alloc_zeroed(layout) };
        assert!(!start.is_null(), "out of memory");
        Memory { start, layout }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated by `new` with this layout.
        unsafe { std::alloc::dealloc(self.start, self.layout) };
    }
}

fn ring<P: Side, C: Side>(capacity: usize) -> SharedRing<P, C> {
    let log2 = capacity.trailing_zeros();
    Arc::new(Ring::create(Memory::new(bytes_needed(log2)), log2, 1).expect("the memory is large enough"))
}

fn shared<P: Side, C: Side>(
    capacity: usize,
    push: Twin<Producer<SharedRing<P, C>>>,
    pop: Twin<Consumer<SharedRing<P, C>>>,
) -> Ends {
    let ring = ring::<P, C>(capacity);
    let producer = Ring::producer(ring.clone()).expect("the ring is new");
    let consumer = Ring::consumer(ring).expect("the ring is new");
    (Box::new(Words { end: producer, twin: push }), Box::new(Words { end: consumer, twin: pop }))
}

pub(crate) const KINDS: &[Kind] = &[
    Kind {
        name: "sp_sc",
        producers: Users::One,
        consumers: Users::One,
        make: |slots| plain(quaject_queue::sp_sc(slots), none, none),
    },
    Kind {
        name: "sp_sc_prompt",
        producers: Users::One,
        consumers: Users::One,
        make: |slots| plain(quaject_queue::sp_sc_prompt(slots), none, none),
    },
    Kind {
        name: "sp_sc_dense",
        producers: Users::One,
        consumers: Users::One,
        make: |slots| plain(quaject_queue::sp_sc_dense(slots), none, none),
    },
    Kind {
        name: "mp_sc",
        producers: Users::Many,
        consumers: Users::One,
        make: |slots| plain(quaject_queue::mp_sc(slots), cloned, none),
    },
    Kind {
        name: "sp_mc",
        producers: Users::One,
        consumers: Users::Many,
        make: |slots| plain(quaject_queue::sp_mc(slots), none, cloned),
    },
    Kind {
        name: "mp_mc",
        producers: Users::Many,
        consumers: Users::Many,
        make: |slots| plain(quaject_queue::mp_mc(slots), cloned, cloned),
    },
    Kind {
        name: "shared SP-SC",
        producers: Users::One,
        consumers: Users::One,
        make: |slots| shared::<Single, Single>(slots, none, none),
    },
    Kind {
        name: "shared MP-SC",
        producers: Users::Many,
        consumers: Users::One,
        make: |slots| shared::<Multi, Single>(slots, cloned, none),
    },
    Kind {
        name: "shared SP-MC",
        producers: Users::One,
        consumers: Users::Many,
        make: |slots| shared::<Single, Multi>(slots, none, cloned),
    },
    Kind {
        name: "shared MP-MC",
        producers: Users::Many,
        consumers: Users::Many,
        make: |slots| shared::<Multi, Multi>(slots, cloned, cloned),
    },
];
