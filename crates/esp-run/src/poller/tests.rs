//! Waits on descriptors: both ways to wait agree, in time, and short waits are polled for.

use super::{EQUAL_WAITS, Lifetime, MIN_SHORT_WAITS, Poller, SPIN_TIME};
use rustix::event::PollFlags;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

#[test]
fn a_set_reports_what_a_list_reports() {
    let pairs: Vec<_> = (0..5).map(|_| UnixDatagram::pair().expect("sockets are there")).collect();
    let list: Vec<_> = pairs.iter().map(|(here, _)| (here.as_fd(), PollFlags::IN)).collect();
    let (mut by_set, mut by_list) = (Poller::default(), Poller::default());
    let (mut one, mut other) = (Vec::new(), Vec::new());
    for round in 0..4 * EQUAL_WAITS as usize {
        for (number, (here, there)) in pairs.iter().enumerate() {
            if (round + number) % 3 == 0 {
                there.send(&[0]).expect("there is room");
            }
            if (round * 7 + number) % 4 == 0 {
                here.set_nonblocking(true).expect("sockets can be");
                let _ = here.recv(&mut [0]);
            }
        }
        // Fewer descriptors for a while: no others are reported.
        let some = if round / 12 == 1 { &list[..3] } else { &list[..] };
        let counts = (
            by_set.wait(some, Lifetime::Run, Some(Duration::ZERO), &mut one),
            by_list.wait(some, Lifetime::Passing, Some(Duration::ZERO), &mut other),
        );
        assert_eq!(counts.0, counts.1, "round {round}");
        assert_eq!(one, other, "round {round}");
    }
    assert!(by_set.set.is_some() && by_list.set.is_none());
}

#[test]
fn a_wait_ends_in_time() {
    let (here, _there) = UnixDatagram::pair().expect("sockets are there");
    let list = [(here.as_fd(), PollFlags::IN)];
    let mut poller = Poller::default();
    // Not a whole number of milliseconds.
    let short = Duration::from_nanos(1_500_000);
    for _ in 0..2 * EQUAL_WAITS {
        let started = std::time::Instant::now();
        assert_eq!(poller.wait(&list, Lifetime::Run, Some(short), &mut Vec::new()), Ok(0));
        assert!(started.elapsed() >= Duration::from_nanos(1_500_000));
    }
}

#[test]
fn short_waits_are_expected_to_go_on_until_a_long_one() {
    let (here, there) = UnixDatagram::pair().expect("sockets are there");
    let list = [(here.as_fd(), PollFlags::IN)];
    let mut poller = Poller::default();
    poller.expectation.has_other_processors = true;
    let wait = |poller: &mut Poller, timeout: Option<Duration>| {
        poller.wait(&list, Lifetime::Run, timeout, &mut Vec::new()).expect("a socket can be waited for")
    };
    there.send(&[0]).expect("there is room");
    let mut short = 0;
    // On a busy machine now and then one takes long.
    while short < MIN_SHORT_WAITS {
        assert!(!poller.expectation.is_short());
        assert_eq!(wait(&mut poller, None), 1);
        short = poller.expectation.short;
    }
    assert!(poller.expectation.is_short());
    here.recv(&mut [0]).expect("it has come");

    // The poll does not exceed the timeout, and the wait lasts as long.
    for timeout_ns in [0, 1, 5_000, 5 * SPIN_TIME.as_nanos() as u64] {
        poller.expectation.short = MIN_SHORT_WAITS;
        let timeout = Duration::from_nanos(timeout_ns);
        let started = std::time::Instant::now();
        assert_eq!(wait(&mut poller, Some(timeout)), 0);
        assert!(started.elapsed().as_nanos() as u64 >= timeout_ns);
        assert!(!poller.expectation.is_short(), "{timeout_ns} ns without an event");
    }

    // An event during the poll is found, and so is one during the sleep after it.
    for delay in [SPIN_TIME / 5, 40 * SPIN_TIME] {
        poller.expectation.short = MIN_SHORT_WAITS;
        let started = std::time::Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(delay);
                there.send(&[0]).expect("there is room");
            });
            assert_eq!(wait(&mut poller, None), 1);
        });
        here.recv(&mut [0]).expect("it has come");
        assert!(started.elapsed() >= delay);
    }
    assert!(!poller.expectation.is_short(), "the last one was long");

    // On one processor no other thread runs during a poll.
    poller.expectation = super::Expectation { short: MIN_SHORT_WAITS, has_other_processors: false };
    assert!(!poller.expectation.is_short());
}
