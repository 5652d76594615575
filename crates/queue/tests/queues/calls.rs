//! Calls: whose turn it is, what becomes of requests and answers that nobody takes, and both ends on threads of their own.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use quaject_queue::{Answerer, Caller, Refusal, Spin, Stopped, Yield, call};

/// Counts itself when it is dropped.
struct Counted(Rc<Cell<u32>>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn the_ends_take_turns() {
    let (mut caller, mut answerer) = call::<u32, &str>();
    assert_eq!(answerer.request(), Err(Refusal::NotReady));
    assert_eq!(answerer.reply("to what"), Err("to what"));
    assert_eq!(caller.answer(), Err(Refusal::NotReady));
    for _ in 0..3 {
        assert_eq!(caller.ask(1), Ok(()));
        assert_eq!(caller.ask(2), Err(2), "one at a time");
        assert_eq!(caller.answer(), Err(Refusal::NotReady));
        assert_eq!(answerer.request(), Ok(1));
        assert_eq!(answerer.request(), Err(Refusal::NotReady), "taken once");
        assert_eq!(caller.answer(), Err(Refusal::NotReady));
        assert_eq!(answerer.reply("one"), Ok(()));
        assert_eq!(answerer.reply("again"), Err("again"));
        assert_eq!(answerer.request(), Err(Refusal::NotReady));
        assert_eq!(caller.ask(3), Err(3), "the answer comes first");
        assert_eq!(caller.answer(), Ok("one"));
        assert_eq!(caller.answer(), Err(Refusal::NotReady), "taken once");
    }
}

/// Both ends go after `steps`, the caller first or last; says how often requests and answers were dropped.
fn drops(
    steps: impl Fn(&mut Caller<Counted, Counted>, &mut Answerer<Counted, Counted>, &dyn Fn() -> Counted),
) -> [u32; 2] {
    [true, false].map(|caller_first| {
        let count = Rc::new(Cell::new(0));
        let (mut caller, mut answerer) = call();
        steps(&mut caller, &mut answerer, &|| Counted(count.clone()));
        if caller_first {
            drop(caller);
            drop(answerer);
        } else {
            drop(answerer);
            drop(caller);
        }
        count.get()
    })
}

#[test]
fn what_nobody_takes_is_dropped_once() {
    assert_eq!(drops(|_, _, _| ()), [0, 0]);
    assert_eq!(drops(|caller, _, new| assert!(caller.ask(new()).is_ok())), [1, 1]);
    let taken = drops(|caller, answerer, new| {
        assert!(caller.ask(new()).is_ok());
        assert!(answerer.request().is_ok());
    });
    assert_eq!(taken, [1, 1], "taken and not answered");
    let answered = drops(|caller, answerer, new| {
        assert!(caller.ask(new()).is_ok());
        assert!(answerer.request().is_ok());
        assert!(answerer.reply(new()).is_ok());
    });
    assert_eq!(answered, [2, 2], "answered and not looked at");
    let all = drops(|caller, answerer, new| {
        assert!(caller.ask(new()).is_ok());
        assert!(answerer.request().is_ok());
        assert!(answerer.reply(new()).is_ok());
        assert!(caller.answer().is_ok());
    });
    assert_eq!(all, [2, 2]);
}

#[test]
fn nobody_waits_for_an_end_that_is_gone() {
    let (mut caller, answerer) = call::<u32, u32>();
    assert!(!caller.is_abandoned());
    assert!(caller.ask(1).is_ok());
    drop(answerer);
    assert!(caller.is_abandoned());
    assert_eq!(caller.answer_wait(Spin), Err(Stopped::Abandoned));

    let (mut caller, mut answerer) = call::<u32, u32>();
    assert!(caller.ask(1).is_ok());
    drop(caller);
    assert_eq!(answerer.request_wait(Spin), Ok(1), "asked before it left");
    assert_eq!(answerer.reply(2), Ok(()));
    assert_eq!(answerer.request_wait(Spin), Err(Stopped::Abandoned));
}

#[test]
fn waits_end_when_the_strategy_gives_up() {
    let twice = |turn: u32| if turn < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) };
    let gave_up = Stopped::GaveUp(Refusal::NotReady);
    let (mut caller, mut answerer) = call::<u32, u32>();
    assert_eq!(caller.answer_wait(Spin), Err(gave_up), "nothing was asked");
    assert_eq!(answerer.request_wait(twice), Err(gave_up));
    assert!(caller.ask(1).is_ok());
    assert_eq!(caller.answer_wait(twice), Err(gave_up));
    assert_eq!(answerer.request_wait(Spin), Ok(1));
    assert_eq!(answerer.request_wait(Spin), Err(gave_up), "the last one was not answered");
    assert_eq!(answerer.reply(2), Ok(()));
    assert_eq!(caller.answer_wait(Spin), Ok(2), "it came late");
}

/// Values larger than a line, of different types.
#[test]
fn a_thread_answers_another() {
    const CALLS: u64 = if cfg!(miri) { 20 } else { 20_000 };
    let (mut caller, mut answerer) = call::<[u64; 12], String>();
    let answering = std::thread::spawn(move || {
        while let Ok(request) = answerer.request_wait(Yield) {
            assert!(request.iter().all(|word| *word == request[0]), "torn");
            assert_eq!(answerer.reply(request[0].to_string()), Ok(()));
        }
    });
    for number in 0..CALLS {
        assert_eq!(caller.ask([number; 12]), Ok(()));
        assert_eq!(caller.answer_wait(Yield), Ok(number.to_string()));
    }
    drop(caller);
    answering.join().expect("it ends when the caller is gone");
}
