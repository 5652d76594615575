//! Waits, signals, batches, lanes, and the drop of items and ends.

use std::cell::Cell;
use std::ops::{ControlFlow, Deref};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use quaject_queue::{
    BatchingConsumer, BatchingProducer, Bell, Consumer, FanIn, FromLane, MpScArray, Producer, Queue, Signalling,
    SpScDenseArray, Spin, TryError, Until, WaitError, Yield, mp_mc, mp_sc, sp_sc, sp_sc_dense, sp_sc_prompt,
};

/// Counts itself when it is dropped.
struct Counted(Rc<Cell<u32>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn items_are_dropped_once() {
    let drops = Rc::new(Cell::new(0));
    let counted = || Counted(drops.clone());
    {
        let (mut producer, mut consumer) = mp_mc(8);
        assert!(producer.push_all([counted(), counted(), counted()]).is_ok());
        drop(consumer.pop());
        assert_eq!(drops.get(), 1);
    }
    assert_eq!(drops.get(), 3, "items that were not taken are dropped with the queue");
    drops.set(0);
    {
        let (mut producer, mut consumer) = sp_sc_dense(4);
        (0..4).for_each(|_| assert!(producer.push(counted()).is_ok()));
        drop(producer.push(counted()));
        assert_eq!(drops.get(), 1, "what was refused comes back");
        drop(consumer.pop());
    }
    assert_eq!(drops.get(), 5);
}

/// Things that one thread at a time may use, as most closures are.
#[test]
fn what_is_send_travels_though_it_is_not_sync() {
    type Job = Box<dyn FnOnce() -> u32 + Send>;
    fn travels<P, C>((mut producer, mut consumer): (Producer<P>, Consumer<C>))
    where
        P: Deref<Target: Queue<Item = Job>> + Send + 'static,
        C: Deref<Target: Queue<Item = Job>> + Send + 'static,
        Producer<P>: Send,
        Consumer<C>: Send,
    {
        std::thread::scope(|scope| {
            scope.spawn(move || assert!(producer.push(Box::new(|| 42)).is_ok()));
            let job = scope.spawn(move || consumer.pop_wait(Yield).expect("one was pushed"));
            assert_eq!(job.join().expect("it does not panic")(), 42);
        });
    }
    travels(sp_sc::<Job>(4));
    travels(sp_sc_dense::<Job>(4));
    travels(mp_mc::<Job>(4));
}

#[test]
fn a_panic_in_the_middle_of_a_run_loses_the_run_and_nothing_else() {
    let drops = Rc::new(Cell::new(0));
    let (mut producer, mut consumer) = sp_sc(4);
    for _ in 0..4 {
        assert!(producer.push(Counted(drops.clone())).is_ok());
    }
    let result = catch_unwind(AssertUnwindSafe(|| consumer.pop_each(3, |_item| panic!("a consumer's mistake"))));
    assert!(result.is_err());
    assert_eq!(drops.get(), 3);
    assert_eq!(consumer.pop_each(3, drop), Ok(1));
    assert!(producer.push_all([(); 4].map(|()| Counted(drops.clone()))).is_ok(), "the slots were given back");
}

#[test]
fn a_panic_in_the_drop_of_one_item_loses_no_other() {
    struct Panics {
        _counted: Counted,
        panics: bool,
    }
    impl Drop for Panics {
        fn drop(&mut self) {
            assert!(!self.panics, "in the drop of an item");
        }
    }
    fn left<P: Deref<Target: Queue<Item = Panics>>, C: Deref<Target: Queue<Item = Panics>>>(
        (mut producer, consumer): (Producer<P>, Consumer<C>),
    ) -> u32 {
        let drops = Rc::new(Cell::new(0));
        for number in 0..4 {
            assert!(producer.push(Panics { _counted: Counted(drops.clone()), panics: number == 1 }).is_ok());
        }
        drop(producer);
        assert!(catch_unwind(AssertUnwindSafe(|| drop(consumer))).is_err());
        4 - drops.get()
    }
    assert_eq!([left(sp_sc(4)), left(mp_mc(4)), left(sp_sc_dense(4))], [0; 3]);
}

#[test]
fn an_insert_larger_than_the_queue_panics() {
    let (mut producer, _consumer) = mp_sc(4);
    let result = catch_unwind(AssertUnwindSafe(|| producer.push_slice(&[0; 5])));
    let text = *result.expect_err("five do not fit into four").downcast::<String>().expect("a formatted message");
    assert_eq!(text, "an insert of 5 items can never succeed: this queue takes 4 at once");
    assert_eq!(producer.push_slice(&[]), Ok(()));
}

#[test]
fn queues_lie_in_statics_and_are_split_once() {
    static QUEUE: MpScArray<u32, 4> = MpScArray::new();
    static DENSE: SpScDenseArray<u32, 4> = SpScDenseArray::new();
    let (mut producer, mut consumer) = QUEUE.split().expect("it was not split before");
    assert!(QUEUE.split().is_none());
    producer.push(1).expect("there is room");
    assert_eq!(consumer.pop(), Ok(1));
    let (mut producer, mut consumer) = DENSE.split().expect("it was not split before");
    assert!(DENSE.split().is_none());
    producer.push_all([1, 2, 3, 4]).expect("there is room");
    assert_eq!(producer.push(5).expect_err("it is full").error, TryError::NotReady);
    assert_eq!(consumer.pop(), Ok(1));
}

#[test]
fn waits_end_as_the_strategy_says() {
    let (mut producer, mut consumer) = sp_sc(1);
    assert_eq!(
        consumer.pop_wait(|turn| if turn < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }),
        Err(WaitError::GaveUp(TryError::NotReady))
    );
    assert_eq!(
        consumer.pop_wait(Until::passed(Duration::from_millis(1), Spin)),
        Err(WaitError::GaveUp(TryError::NotReady))
    );
    producer.push_wait(1, Spin).expect("there is room");
    let stopped = producer.push_wait(2, Until::passed(Duration::from_millis(1), Yield)).expect_err("it is full");
    assert_eq!((stopped.item, stopped.error), (2, WaitError::GaveUp(TryError::NotReady)));
}

#[test]
fn no_end_waits_for_a_dropped_one() {
    let (mut producer, mut consumer) = mp_sc(2);
    let other = producer.clone();
    producer.push(1).expect("there is room");
    drop(producer);
    assert!(!consumer.is_disconnected());
    drop(other);
    assert_eq!(consumer.pop_wait(Spin), Ok(1), "what was pushed before is still there");
    assert_eq!(consumer.pop_wait(Spin), Err(WaitError::Disconnected));
    let (mut producer, consumer) = sp_sc_prompt(1);
    producer.push(1).expect("there is room");
    drop(consumer);
    assert_eq!(producer.push_wait(2, Spin).expect_err("there is no consumer").error, WaitError::Disconnected);
}

#[test]
fn a_bell_rings_once_per_arming() {
    let bell = Bell::new();
    let rings = AtomicU32::new(0);
    let (producer, mut consumer) = sp_sc(8);
    let mut producer = Signalling::new(producer, &bell, || {
        rings.fetch_add(1, Ordering::Relaxed);
    });
    producer.push(1).expect("there is room");
    assert_eq!(rings.load(Ordering::Relaxed), 0, "the bell is not armed");
    bell.arm();
    producer.push(2).expect("there is room");
    producer.after(|end| end.push_slice(&[3, 4])).expect("there is room");
    assert_eq!(rings.load(Ordering::Relaxed), 1);
    assert_eq!(consumer.pop_each(8, drop), Ok(4));
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn a_sleeper_at_a_futex_is_woken() {
    use quaject_queue::{Futex, wake};
    use quaject_test_support::HANG_TIMEOUT;
    let (bell, nap) = (Bell::new(), HANG_TIMEOUT);
    let (mut producer, mut consumer) = sp_sc(1);
    let begin = std::time::Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for item in 0..20 {
                std::thread::sleep(Duration::from_millis(1));
                producer.push_wait(item, Yield).expect("the consumer takes");
                bell.ring(|| wake(&bell));
            }
        });
        for item in 0..20 {
            assert_eq!(consumer.pop_wait(Futex::new(&bell, nap)), Ok(item));
        }
    });
    assert!(begin.elapsed() < nap, "a wake-up was missed and the nap slept out");
}

#[test]
fn blocks_travel_when_they_are_full_or_flushed() {
    let (producer, consumer) = mp_sc(8);
    let (mut producer, mut consumer) =
        (BatchingProducer::<_, 4>::new(producer), BatchingConsumer::<_, 4>::new(consumer));
    for item in 0..3 {
        producer.put(item).expect("the block has room");
    }
    assert_eq!((producer.pending(), consumer.get()), (3, Err(TryError::NotReady)));
    producer.put(3).expect("the block has room");
    assert_eq!(producer.pending(), 0);
    (4..12).for_each(|item| producer.put(item).expect("eight in the queue, four in the block"));
    for item in 0..4 {
        assert_eq!(consumer.get(), Ok(item));
    }
    producer.flush().expect("the consumer has taken a block");
    drop(producer);
    assert_eq!((4..12).map(|_| consumer.get()).collect::<Vec<_>>(), (4..12).map(Ok).collect::<Vec<_>>());
    assert_eq!(consumer.get(), Err(TryError::NotReady));
}

#[test]
fn a_full_block_refuses_until_there_is_room() {
    let (producer, mut consumer) = sp_sc(2);
    let mut producer = BatchingProducer::<_, 2>::new(producer);
    (0..4).for_each(|item| producer.put(item).expect("two in the queue, two in the block"));
    assert_eq!(producer.put(4).expect_err("both are full").item, 4);
    assert_eq!(consumer.pop_each(2, drop), Ok(2));
    producer.put(4).expect("the block has moved on");
    assert_eq!(consumer.pop(), Ok(2));
}

#[test]
fn items_in_blocks_are_dropped_once() {
    let drops = Rc::new(Cell::new(0));
    let (producer, consumer) = sp_sc(4);
    let (mut producer, mut consumer) =
        (BatchingProducer::<_, 4>::new(producer), BatchingConsumer::<_, 4>::new(consumer));
    (0..6).for_each(|_| assert!(producer.put(Counted(drops.clone())).is_ok()));
    drop(consumer.get());
    assert_eq!(drops.get(), 1);
    drop((producer, consumer));
    assert_eq!(drops.get(), 6);
}

#[test]
fn lanes_are_served_in_turn_and_keep_their_order() {
    let (mut producers, consumers): (Vec<_>, Vec<_>) = (0..3).map(|_| sp_sc(128)).unzip();
    let mut lanes = FanIn::new(consumers);
    assert_eq!(lanes.pop(), Err(FromLane { lane: 0, value: TryError::NotReady }));
    for item in 0..100 {
        producers[0].push(item).expect("there is room");
        producers[2].push(item).expect("there is room");
    }
    let mut next = [0, 0, 0];
    let mut first_of_other_lane = None;
    for turn in 0..200 {
        let FromLane { lane, value: what } = lanes.pop().expect("there are 200 items");
        assert_eq!(what, next[lane]);
        next[lane] += 1;
        if lane == 2 && first_of_other_lane.is_none() {
            first_of_other_lane = Some(turn);
        }
    }
    assert_eq!(next, [100, 0, 100]);
    assert_eq!(first_of_other_lane, Some(64), "a busy lane does not starve the others");
}

/// Naps of an hour: only the limit, the bell and the dropped end are quick.
#[cfg(target_os = "linux")]
mod naps {
    use std::time::Instant;

    use quaject_queue::{Futex, wake};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_limit_ends_a_nap() {
        let (_producer, mut consumer) = sp_sc::<u32>(4);
        let bell = Bell::new();
        let begin = Instant::now();
        let limit = Duration::from_millis(30);
        for nap in [HOUR, Duration::MAX] {
            let wait = Until::passed(limit, Futex::new(&bell, nap));
            assert_eq!(consumer.pop_wait(wait), Err(WaitError::GaveUp(TryError::NotReady)));
            let inner = Until::passed(HOUR, Until::passed(limit, Futex::new(&bell, nap)));
            assert_eq!(consumer.pop_wait(inner), Err(WaitError::GaveUp(TryError::NotReady)));
            let outer = Until::passed(limit, Until::passed(HOUR, Futex::new(&bell, nap)));
            assert_eq!(consumer.pop_wait(outer), Err(WaitError::GaveUp(TryError::NotReady)));
        }
        assert!(begin.elapsed() < HOUR && begin.elapsed() >= 6 * limit);
    }

    #[test]
    fn the_longest_limit_is_none() {
        let (mut producer, mut consumer) = sp_sc(4);
        let bell = Bell::new();
        producer.push(1).expect("there is room");
        let wait = || Until::passed(Duration::MAX, Futex::new(&bell, Duration::MAX));
        assert_eq!(consumer.pop_wait(wait()), Ok(1));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| consumer.pop_wait(wait()));
            let mut producer = Signalling::new(producer, &bell, || wake(&bell));
            std::thread::sleep(Duration::from_millis(20));
            producer.push(2).expect("there is room");
            assert_eq!(waiting.join().expect("it does not panic"), Ok(2));
        });
    }

    #[test]
    fn a_dropped_end_rings() {
        let (producer, mut consumer) = sp_sc::<u32>(4);
        let bell = Bell::new();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| consumer.pop_wait(Futex::new(&bell, HOUR)));
            let producer = Signalling::new(producer, &bell, || wake(&bell));
            std::thread::sleep(Duration::from_millis(20));
            drop(producer);
            assert_eq!(waiting.join().expect("it does not panic"), Err(WaitError::Disconnected));
        });
    }
}
