//! Calls: the ends take turns, requests and replies that are not taken are dropped, both ends run on threads of their
//! own.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use quaject_queue::{Caller, Responder, Spin, TryError, WaitError, Yield, call};

/// Counts itself when it is dropped.
struct Counted(Rc<Cell<u32>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_ends_take_turns() {
    let (mut caller, mut responder) = call::<u32, &str>();
    assert_eq!(responder.take_request(), Err(TryError::NotReady));
    assert_eq!(responder.reply("to what"), Err("to what"));
    assert_eq!(caller.take_reply(), Err(TryError::NotReady));
    for _ in 0..3 {
        assert_eq!(caller.call(1), Ok(()));
        assert_eq!(caller.call(2), Err(2), "one at a time");
        assert_eq!(caller.take_reply(), Err(TryError::NotReady));
        assert_eq!(responder.take_request(), Ok(1));
        assert_eq!(responder.take_request(), Err(TryError::NotReady), "taken once");
        assert_eq!(caller.take_reply(), Err(TryError::NotReady));
        assert_eq!(responder.reply("one"), Ok(()));
        assert_eq!(responder.reply("again"), Err("again"));
        assert_eq!(responder.take_request(), Err(TryError::NotReady));
        assert_eq!(caller.call(3), Err(3), "the reply must be taken first");
        assert_eq!(caller.take_reply(), Ok("one"));
        assert_eq!(caller.take_reply(), Err(TryError::NotReady), "taken once");
    }
}

/// Both ends go after `steps`, the caller first or last; says how often requests and replies were dropped.
fn drops(
    steps: impl Fn(&mut Caller<Counted, Counted>, &mut Responder<Counted, Counted>, &dyn Fn() -> Counted),
) -> [u32; 2] {
    [true, false].map(|caller_first| {
        let count = Rc::new(Cell::new(0));
        let (mut caller, mut responder) = call();
        steps(&mut caller, &mut responder, &|| Counted(count.clone()));
        if caller_first {
            drop(caller);
            drop(responder);
        } else {
            drop(responder);
            drop(caller);
        }
        count.get()
    })
}

#[test]
fn pending_requests_and_replies_are_dropped_once() {
    assert_eq!(drops(|_, _, _| ()), [0, 0]);
    assert_eq!(drops(|caller, _, new| assert!(caller.call(new()).is_ok())), [1, 1]);
    let taken = drops(|caller, responder, new| {
        assert!(caller.call(new()).is_ok());
        assert!(responder.take_request().is_ok());
    });
    assert_eq!(taken, [1, 1], "taken and not replied to");
    let replied = drops(|caller, responder, new| {
        assert!(caller.call(new()).is_ok());
        assert!(responder.take_request().is_ok());
        assert!(responder.reply(new()).is_ok());
    });
    assert_eq!(replied, [2, 2], "replied to and not taken");
    let all = drops(|caller, responder, new| {
        assert!(caller.call(new()).is_ok());
        assert!(responder.take_request().is_ok());
        assert!(responder.reply(new()).is_ok());
        assert!(caller.take_reply().is_ok());
    });
    assert_eq!(all, [2, 2]);
}

#[test]
fn waits_end_when_the_other_end_is_dropped() {
    let (mut caller, responder) = call::<u32, u32>();
    assert!(!caller.is_disconnected());
    assert!(caller.call(1).is_ok());
    drop(responder);
    assert!(caller.is_disconnected());
    assert_eq!(caller.take_reply_wait(Spin), Err(WaitError::Disconnected));

    let (mut caller, mut responder) = call::<u32, u32>();
    assert!(caller.call(1).is_ok());
    drop(caller);
    assert_eq!(responder.take_request_wait(Spin), Ok(1), "sent before it was dropped");
    assert_eq!(responder.reply(2), Ok(()));
    assert_eq!(responder.take_request_wait(Spin), Err(WaitError::Disconnected));
}

#[test]
fn waits_end_when_the_strategy_gives_up() {
    let twice = |turn: u32| if turn < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let gave_up = WaitError::GaveUp(TryError::NotReady);
    let (mut caller, mut responder) = call::<u32, u32>();
    assert_eq!(caller.take_reply_wait(Spin), Err(gave_up), "no request is outstanding");
    assert_eq!(responder.take_request_wait(twice), Err(gave_up));
    assert!(caller.call(1).is_ok());
    assert_eq!(caller.take_reply_wait(twice), Err(gave_up));
    assert_eq!(responder.take_request_wait(Spin), Ok(1));
    assert_eq!(responder.take_request_wait(Spin), Err(gave_up), "the last one was not replied to");
    assert_eq!(responder.reply(2), Ok(()));
    assert_eq!(caller.take_reply_wait(Spin), Ok(2), "a late reply");
}

/// Values larger than a line, of different types.
#[test]
fn a_thread_replies_to_another() {
    const CALLS: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let (mut caller, mut responder) = call::<[u64; 12], String>();
    let responding = std::thread::spawn(move || {
        while let Ok(request) = responder.take_request_wait(Yield) {
            assert!(request.iter().all(|word| *word == request[0]), "torn");
            assert_eq!(responder.reply(request[0].to_string()), Ok(()));
        }
    });
    for number in 0..CALLS {
        assert_eq!(caller.call([number; 12]), Ok(()));
        assert_eq!(caller.take_reply_wait(Yield), Ok(number.to_string()));
    }
    drop(caller);
    responding.join().expect("it ends when the caller is dropped");
}
