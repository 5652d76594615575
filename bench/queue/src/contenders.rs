//! What is compared: our queues, Rust peers, and the C and C++ peers of `peers/`. Every contender runs the same loops,
//! compiled with its operations. Knows nothing of time.

use std::ffi::{CStr, c_char, c_void};
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use quaject_queue::shared::{Message, RawBytes, Ring, bytes_needed};
use quaject_queue::{Consumer, FanIn, Multi, Producer, Queue, SpSc};

/// Slots of every queue.
pub const CAPACITY: usize = 1024;

/// Turns before a waiter gives up the processor; the C loops read the same variable.
// SAFETY: no other symbol of this program has the name; `peers/loops.h` declares it as what it is.
#[unsafe(export_name = "bench_spins")]
pub static SPINS: AtomicU32 = AtomicU32::new(2000);

#[inline(always)]
fn pause(turn: &mut u32) {
    if *turn < SPINS.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    } else {
        std::thread::yield_now();
    }
    *turn += 1;
}

/// One queue, used from several threads; each call runs one loop.
pub trait Contender: Send + Sync {
    fn produce(&self, count: u64);
    /// The sum of what was taken.
    fn consume(&self, count: u64) -> u64;
    fn produce8(&self, count: u64);
    fn consume8(&self, count: u64) -> u64;
    /// `self` leads there, `back` is a queue of the same kind.
    fn ping(&self, back: &dyn Contender, trips: u64);
    fn pong(&self, back: &dyn Contender, trips: u64);
    /// What `ping` and `pong` need of `back`.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// A kind of queue.
pub struct Kind {
    pub name: String,
    /// Whether it has operations on eight items.
    pub batches: bool,
    pub make: Box<dyn Fn() -> Box<dyn Contender> + Sync>,
}

// ---- C and C++ ----

#[repr(C)]
struct CContender {
    name: *const c_char,
    make: unsafe extern "C" fn() -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    produce: unsafe extern "C" fn(*mut c_void, u64),
    consume: unsafe extern "C" fn(*mut c_void, u64) -> u64,
    produce8: Option<unsafe extern "C" fn(*mut c_void, u64)>,
    consume8: Option<unsafe extern "C" fn(*mut c_void, u64) -> u64>,
    ping: unsafe extern "C" fn(*mut c_void, *mut c_void, u64),
    pong: unsafe extern "C" fn(*mut c_void, *mut c_void, u64),
}

// SAFETY: a table of constants.
unsafe impl Sync for CContender {}

// SAFETY: as defined in `peers/`.
unsafe extern "C" {
    #[cfg(ck)]
    static bench_ck_sp: CContender;
    #[cfg(ck)]
    static bench_ck_mp: CContender;
    #[cfg(rte_ring)]
    static bench_rte_sp: CContender;
    #[cfg(rte_ring)]
    static bench_rte_mp: CContender;
    #[cfg(rte_ring)]
    static bench_rte_mm: CContender;
    #[cfg(rte_ring)]
    static bench_rte_rts: CContender;
    #[cfg(boost)]
    static bench_boost_sp: CContender;
    #[cfg(boost)]
    static bench_boost_mp: CContender;
    #[cfg(cached)]
    static bench_cached: CContender;
    static bench_qj_sp: CContender;
    static bench_qj_mp: CContender;
}

struct CQueue {
    table: &'static CContender,
    queue: *mut c_void,
}

// SAFETY: these are queues for several threads.
unsafe impl Send for CQueue {}
// SAFETY: as above; the harness calls each loop from as many threads as the queue allows.
unsafe impl Sync for CQueue {}

impl Drop for CQueue {
    fn drop(&mut self) {
        // SAFETY: made by the same table.
        unsafe { (self.table.free)(self.queue) };
    }
}

impl Contender for CQueue {
    fn produce(&self, count: u64) {
        // SAFETY: the queue lives.
        unsafe { (self.table.produce)(self.queue, count) };
    }
    fn consume(&self, count: u64) -> u64 {
        // SAFETY: the queue lives.
        unsafe { (self.table.consume)(self.queue, count) }
    }
    fn produce8(&self, count: u64) {
        // SAFETY: the queue lives.
        unsafe { (self.table.produce8.expect("asked only of those with batches"))(self.queue, count) };
    }
    fn consume8(&self, count: u64) -> u64 {
        // SAFETY: the queue lives.
        unsafe { (self.table.consume8.expect("asked only of those with batches"))(self.queue, count) }
    }
    fn ping(&self, back: &dyn Contender, trips: u64) {
        let back: &CQueue = back.as_any().downcast_ref().expect("two queues of one kind");
        // SAFETY: both queues live and are of one kind.
        unsafe { (self.table.ping)(self.queue, back.queue, trips) };
    }
    fn pong(&self, back: &dyn Contender, trips: u64) {
        let back: &CQueue = back.as_any().downcast_ref().expect("two queues of one kind");
        // SAFETY: both queues live and are of one kind.
        unsafe { (self.table.pong)(self.queue, back.queue, trips) };
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

fn c(table: &'static CContender) -> Kind {
    // SAFETY: the name is a C string constant.
    let name = unsafe { CStr::from_ptr(table.name) }.to_string_lossy().into_owned();
    // SAFETY: takes no arguments.
    let make = move || -> Box<dyn Contender> { Box::new(CQueue { table, queue: unsafe { (table.make)() } }) };
    Kind { name, batches: table.produce8.is_some(), make: Box::new(make) }
}

// ---- Rust ----

/// An end that inserts.
trait Push: Send + 'static {
    fn push(&mut self, item: u64) -> bool;
    fn push8(&mut self, items: &[u64; 8]) -> bool;
}

/// An end that takes.
trait Pop: Send + 'static {
    fn pop(&mut self) -> Option<u64>;
    fn pop8(&mut self, items: &mut [u64; 8]) -> usize;
}

/// The ends of one queue; each thread takes one out, runs its loop and puts it back.
struct RustQueue<P, C> {
    producers: Mutex<Vec<P>>,
    consumers: Mutex<Vec<C>>,
}

fn take<E>(ends: &Mutex<Vec<E>>) -> E {
    ends.lock().expect("no loop panics").pop().expect("the harness asks for as many ends as there are")
}

fn put<E>(ends: &Mutex<Vec<E>>, end: E) {
    ends.lock().expect("no loop panics").push(end);
}

impl<P: Push, C: Pop> Contender for RustQueue<P, C> {
    fn produce(&self, count: u64) {
        let mut end = take(&self.producers);
        for item in 0..count {
            let mut turn = 0;
            while !end.push(item) {
                pause(&mut turn);
            }
        }
        put(&self.producers, end);
    }
    fn consume(&self, count: u64) -> u64 {
        let mut end = take(&self.consumers);
        let mut sum = 0;
        for _ in 0..count {
            let mut turn = 0;
            sum += loop {
                match end.pop() {
                    Some(item) => break item,
                    None => pause(&mut turn),
                }
            };
        }
        put(&self.consumers, end);
        sum
    }
    fn produce8(&self, count: u64) {
        let mut end = take(&self.producers);
        for first in (0..count).step_by(8) {
            let items = std::array::from_fn(|k| first + k as u64);
            let mut turn = 0;
            while !end.push8(&items) {
                pause(&mut turn);
            }
        }
        put(&self.producers, end);
    }
    fn consume8(&self, count: u64) -> u64 {
        let mut end = take(&self.consumers);
        let (mut sum, mut taken) = (0, 0);
        let mut items = [0; 8];
        while taken < count {
            let mut turn = 0;
            let ready = loop {
                match end.pop8(&mut items) {
                    0 => pause(&mut turn),
                    ready => break ready,
                }
            };
            sum += items[..ready].iter().sum::<u64>();
            taken += ready as u64;
        }
        put(&self.consumers, end);
        sum
    }
    fn ping(&self, back: &dyn Contender, trips: u64) {
        let back: &Self = back.as_any().downcast_ref().expect("two queues of one kind");
        let (mut there, mut home) = (take(&self.producers), take(&back.consumers));
        for item in 0..trips {
            let mut turn = 0;
            while !there.push(item) {
                pause(&mut turn);
            }
            while home.pop().is_none() {
                pause(&mut turn);
            }
        }
        put(&self.producers, there);
        put(&back.consumers, home);
    }
    fn pong(&self, back: &dyn Contender, trips: u64) {
        let back: &Self = back.as_any().downcast_ref().expect("two queues of one kind");
        let (mut there, mut home) = (take(&self.consumers), take(&back.producers));
        for _ in 0..trips {
            let mut turn = 0;
            let item = loop {
                match there.pop() {
                    Some(item) => break item,
                    None => pause(&mut turn),
                }
            };
            while !home.push(item) {
                pause(&mut turn);
            }
        }
        put(&self.consumers, there);
        put(&back.producers, home);
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

impl<R: Deref<Target: Queue<Item = u64>> + Send + 'static> Push for Producer<R>
where
    Producer<R>: Send,
{
    #[inline(always)]
    fn push(&mut self, item: u64) -> bool {
        Producer::push(self, item).is_ok()
    }
    #[inline(always)]
    fn push8(&mut self, items: &[u64; 8]) -> bool {
        self.push_all(*items).is_ok()
    }
}

impl<R: Deref<Target: Queue<Item = u64>> + Send + 'static> Pop for Consumer<R>
where
    Consumer<R>: Send,
{
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        Consumer::pop(self).ok()
    }
    #[inline(always)]
    fn pop8(&mut self, items: &mut [u64; 8]) -> usize {
        self.pop_slice(items).unwrap_or(0)
    }
}

/// The ring in shared memory: the item is the first word of a message.
struct Words<E>(E);

type OurRing<P, C> = Arc<Ring<P, C, RawBytes>>;

impl<P: quaject_queue::Side, C: quaject_queue::Side> Push for Words<Producer<OurRing<P, C>>> {
    #[inline(always)]
    fn push(&mut self, item: u64) -> bool {
        self.0.push([item, 0, 0, 0, 0, 0, 0]).is_ok()
    }
    #[inline(always)]
    fn push8(&mut self, items: &[u64; 8]) -> bool {
        self.0.push_all(items.map(|item| -> Message { [item, 0, 0, 0, 0, 0, 0] })).is_ok()
    }
}

impl<P: quaject_queue::Side, C: quaject_queue::Side> Pop for Words<Consumer<OurRing<P, C>>> {
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        self.0.pop().ok().map(|message| message[0])
    }
    #[inline(always)]
    fn pop8(&mut self, items: &mut [u64; 8]) -> usize {
        let mut messages: [Message; 8] = [[0; 7]; 8];
        let ready = self.0.pop_slice(&mut messages).unwrap_or(0);
        for (item, message) in items.iter_mut().zip(messages) {
            *item = message[0];
        }
        ready
    }
}

impl Pop for FanIn<Vec<Consumer<SpSc<u64>>>> {
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        FanIn::pop(self).ok().map(|from| from.value)
    }
    fn pop8(&mut self, items: &mut [u64; 8]) -> usize {
        let ready = items.iter_mut().map_while(|item| Some(*item = Pop::pop(self)?)).count();
        ready
    }
}

impl Push for rtrb::Producer<u64> {
    #[inline(always)]
    fn push(&mut self, item: u64) -> bool {
        rtrb::Producer::push(self, item).is_ok()
    }
    #[inline(always)]
    fn push8(&mut self, items: &[u64; 8]) -> bool {
        let Ok(chunk) = self.write_chunk_uninit(8) else { return false };
        chunk.fill_from_iter(items.iter().copied()) == 8
    }
}

impl Pop for rtrb::Consumer<u64> {
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        rtrb::Consumer::pop(self).ok()
    }
    #[inline(always)]
    fn pop8(&mut self, items: &mut [u64; 8]) -> usize {
        let ready = self.slots().min(8);
        let Ok(chunk) = self.read_chunk(ready) else { return 0 };
        for (item, taken) in items.iter_mut().zip(chunk) {
            *item = taken;
        }
        ready
    }
}

impl Push for Arc<crossbeam_queue::ArrayQueue<u64>> {
    #[inline(always)]
    fn push(&mut self, item: u64) -> bool {
        crossbeam_queue::ArrayQueue::push(self, item).is_ok()
    }
    fn push8(&mut self, _items: &[u64; 8]) -> bool {
        unreachable!("ArrayQueue has no batches")
    }
}

impl Pop for Arc<crossbeam_queue::ArrayQueue<u64>> {
    #[inline(always)]
    fn pop(&mut self) -> Option<u64> {
        crossbeam_queue::ArrayQueue::pop(self)
    }
    fn pop8(&mut self, _items: &mut [u64; 8]) -> usize {
        unreachable!("ArrayQueue has no batches")
    }
}

fn rust<P: Push, C: Pop>(name: &str, batches: bool, ends: impl Fn() -> (Vec<P>, Vec<C>) + Sync + 'static) -> Kind {
    let make = move || -> Box<dyn Contender> {
        let (producers, consumers) = ends();
        Box::new(RustQueue { producers: Mutex::new(producers), consumers: Mutex::new(consumers) })
    };
    Kind { name: name.to_owned(), batches, make: Box::new(make) }
}

fn single_ends<P, C>((producer, consumer): (P, C)) -> (Vec<P>, Vec<C>) {
    (vec![producer], vec![consumer])
}

fn copies<E: Clone>(end: E, count: usize) -> Vec<E> {
    vec![end; count]
}

fn our_ring<P: quaject_queue::Side, C: quaject_queue::Side>() -> OurRing<P, C> {
    let size = bytes_needed(CAPACITY.trailing_zeros());
    // Never freed: the harness makes few of them, and raw bytes have no owner.
    let layout = std::alloc::Layout::from_size_align(size, 128).expect("a small power of two");
    // SAFETY: the size is not 0.
    let start = unsafe { std::alloc::alloc_zeroed(layout) };
    // SAFETY: just allocated for this ring alone.
    let memory = unsafe { RawBytes::new(start, size) };
    Arc::new(Ring::create(memory, CAPACITY.trailing_zeros(), 1).expect("the memory is large enough"))
}

/// Queues of one producer and one consumer; ours first.
pub fn dedicated() -> Vec<Kind> {
    // SAFETY: the tables are constants.
    let tables = unsafe {
        [
            &bench_qj_sp,
            #[cfg(cached)]
            &bench_cached,
            #[cfg(boost)]
            &bench_boost_sp,
            #[cfg(ck)]
            &bench_ck_sp,
            #[cfg(rte_ring)]
            &bench_rte_sp,
        ]
    };
    let mut kinds = vec![
        rust("ours sp_sc", true, || single_ends(quaject_queue::sp_sc(CAPACITY))),
        rust("ours sp_sc_prompt", true, || single_ends(quaject_queue::sp_sc_prompt(CAPACITY))),
        rust("ours sp_sc_dense", true, || single_ends(quaject_queue::sp_sc_dense(CAPACITY))),
        rust("ours shared, Rust, 56-byte messages", true, || {
            let ring = our_ring::<quaject_queue::Single, quaject_queue::Single>();
            let producer = Ring::producer(ring.clone()).expect("the ring is new");
            single_ends((Words(producer), Words(Ring::consumer(ring).expect("the ring is new"))))
        }),
    ];
    kinds.extend(tables.map(c));
    kinds.push(rust("rtrb", true, || single_ends(rtrb::RingBuffer::new(CAPACITY))));
    kinds.push(rust("crossbeam ArrayQueue", false, || {
        let queue = Arc::new(crossbeam_queue::ArrayQueue::new(CAPACITY));
        single_ends((queue.clone(), queue))
    }));
    kinds
}

/// A call and its answer through one place, at the question of the round trip only.
struct Calls {
    caller: Mutex<Vec<quaject_queue::Caller<u64, u64>>>,
    responder: Mutex<Vec<quaject_queue::Responder<u64, u64>>>,
}

impl Contender for Calls {
    fn produce(&self, _count: u64) {
        unreachable!("a call is no queue");
    }
    fn consume(&self, _count: u64) -> u64 {
        unreachable!("a call is no queue");
    }
    fn produce8(&self, _count: u64) {
        unreachable!("a call is no queue");
    }
    fn consume8(&self, _count: u64) -> u64 {
        unreachable!("a call is no queue");
    }
    fn ping(&self, _back: &dyn Contender, trips: u64) {
        let mut caller = take(&self.caller);
        for item in 0..trips {
            let mut turn = 0;
            assert!(caller.call(item).is_ok(), "the answers are taken");
            while caller.take_reply().is_err() {
                pause(&mut turn);
            }
        }
        put(&self.caller, caller);
    }
    fn pong(&self, _back: &dyn Contender, trips: u64) {
        let mut responder = take(&self.responder);
        for _ in 0..trips {
            let mut turn = 0;
            let item = loop {
                match responder.take_request() {
                    Ok(item) => break item,
                    Err(_) => pause(&mut turn),
                }
            };
            assert!(responder.reply(item).is_ok(), "a request was taken");
        }
        put(&self.responder, responder);
    }
    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

/// What has no queues: it carries one item at a time.
pub fn calls() -> Kind {
    let make = || -> Box<dyn Contender> {
        let (caller, responder) = quaject_queue::call();
        Box::new(Calls { caller: Mutex::new(vec![caller]), responder: Mutex::new(vec![responder]) })
    };
    Kind { name: "ours call (one line, no queues)".to_owned(), batches: false, make: Box::new(make) }
}

/// Queues of many producers and one or many consumers; ours first.
pub fn optimistic(producers: usize, consumers: usize) -> Vec<Kind> {
    // SAFETY: the tables are constants.
    let tables = unsafe {
        [
            &bench_qj_mp,
            #[cfg(rte_ring)]
            if consumers == 1 { &bench_rte_mp } else { &bench_rte_mm },
            #[cfg(rte_ring)]
            &bench_rte_rts,
            #[cfg(ck)]
            &bench_ck_mp,
            #[cfg(boost)]
            &bench_boost_mp,
        ]
    };
    let mut kinds = Vec::new();
    if consumers == 1 {
        kinds.push(rust("ours mp_sc", true, move || {
            let (producer, consumer) = quaject_queue::mp_sc(CAPACITY);
            (copies(producer, producers), vec![consumer])
        }));
        kinds.push(rust("ours lanes (FanIn of sp_sc)", false, move || {
            let lanes = (0..producers).map(|_| quaject_queue::sp_sc(CAPACITY / producers));
            let (producers, consumers) = lanes.unzip();
            (producers, vec![FanIn::new(consumers)])
        }));
    }
    kinds.push(rust("ours mp_mc", true, move || {
        let (producer, consumer) = quaject_queue::mp_mc(CAPACITY);
        (copies(producer, producers), copies(consumer, consumers))
    }));
    kinds.push(rust("ours shared MP-MC, Rust", true, move || {
        let ring = our_ring::<Multi, Multi>();
        let producer = || Words(Ring::producer(ring.clone()).expect("the ring is new"));
        let consumer = || Words(Ring::consumer(ring.clone()).expect("the ring is new"));
        ((0..producers).map(|_| producer()).collect(), (0..consumers).map(|_| consumer()).collect())
    }));
    kinds.extend(tables.map(c));
    kinds.push(rust("crossbeam ArrayQueue", false, move || {
        let queue = Arc::new(crossbeam_queue::ArrayQueue::new(CAPACITY));
        (copies(queue.clone(), producers), copies(queue, consumers))
    }));
    kinds
}
