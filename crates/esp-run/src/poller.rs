//! Waiting for many descriptors. A list of descriptors that stay open and are asked about time after time becomes a set
//! that the kernel keeps (epoll): then a wait costs as much as has happened, not as much as is watched. Any other list
//! goes to `poll`. Knows no driver.
//!
//! To put a thread to sleep and wake it costs both sides more than a short answer takes. Where the last waits were short,
//! the next one looks again and again for a moment before it sleeps; a program that waits for long never does.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Equal lists in a row after which a set is made: to make one costs a system call for each descriptor.
const HABIT: u32 = 8;
/// Events taken at once; the others are there at the next wait.
const EVENTS: usize = 32;

/// How long a wait looks before it sleeps: about what it costs to sleep and be woken.
const MOMENT: Duration = Duration::from_micros(50);
/// Short waits in a row after which the next one is expected to be short, too.
const SHORT_IN_A_ROW: u32 = 4;

const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

/// A descriptor and what to wait for.
pub(crate) type Interest<'d> = (BorrowedFd<'d>, PollFlags);

/// Whether the descriptors of a list may be closed before the run ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lifetime {
    /// All are open to the end.
    Run,
    /// Some may be closed, and their numbers given to others: the kernel would forget them in a set, unseen.
    Passing,
}

/// The way to wait, and what is known of earlier waits.
#[derive(Default)]
pub(crate) struct Poller {
    /// What was asked for last, and how often in a row.
    last: Vec<(RawFd, PollFlags)>,
    times: u32,
    /// A set of what is in `last`.
    set: Option<OwnedFd>,
    expectation: Expectation,
}

/// How long the next wait will be, by those before it.
struct Expectation {
    /// Short waits in a row.
    short: u32,
    /// Whether whoever answers can run while we look.
    company: bool,
}

impl Default for Expectation {
    fn default() -> Expectation {
        let processors = std::thread::available_parallelism();
        Expectation { short: 0, company: processors.is_ok_and(|count| count.get() > 1) }
    }
}

impl Expectation {
    fn is_short(&self) -> bool {
        self.company && self.short >= SHORT_IN_A_ROW
    }

    /// Learns of a wait. One that slept took longer than what it waited for, by the time it takes to wake up.
    fn learn(&mut self, ended: &Result<usize, Errno>, took: Duration) {
        let short = ended.is_ok_and(|count| count > 0) && took < 2 * MOMENT;
        self.short = if short { self.short.saturating_add(1) } else { 0 };
    }
}

impl Poller {
    /// Waits until something happens or the time is over. Tells how much has happened, and writes down for each of the
    /// descriptors whether it was there.
    pub(crate) fn wait(
        &mut self,
        watched: &[Interest<'_>],
        lifetime: Lifetime,
        timeout: Option<&Timespec>,
        happened: &mut Vec<bool>,
    ) -> Result<usize, Errno> {
        if lifetime == Lifetime::Run {
            self.remember(watched);
        } else {
            self.forget();
        }
        let started = Instant::now();
        let patience = timeout.map(|timeout| Duration::new(timeout.tv_sec as u64, timeout.tv_nsec as u32));
        let mut ended = Ok(0);
        let mut took = Duration::ZERO;
        if self.expectation.is_short() {
            while ended == Ok(0) && took < MOMENT && patience.is_none_or(|patience| took < patience) {
                ended = self.look(watched, Some(&NOW), happened);
                took = started.elapsed();
            }
        }
        if ended == Ok(0) {
            let left = patience.map(|patience| patience.saturating_sub(took));
            let left = left.map(|left| Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() });
            ended = self.look(watched, left.as_ref(), happened);
            took = started.elapsed();
        }
        self.expectation.learn(&ended, took);
        ended
    }

    /// Waits as [`Poller::wait`] does, asleep.
    fn look(
        &self,
        watched: &[Interest<'_>],
        timeout: Option<&Timespec>,
        happened: &mut Vec<bool>,
    ) -> Result<usize, Errno> {
        happened.clear();
        if let Some(set) = &self.set {
            return in_set(set, watched, timeout, happened);
        }
        let mut asked: Vec<PollFd<'_>> =
            watched.iter().map(|(descriptor, flags)| PollFd::from_borrowed_fd(*descriptor, *flags)).collect();
        let count = poll(&mut asked, timeout);
        happened.extend(asked.iter().map(|asked| !asked.revents().is_empty()));
        count
    }

    fn remember(&mut self, watched: &[Interest<'_>]) {
        let same = self.last.len() == watched.len()
            && self.last.iter().zip(watched).all(|(last, (fd, flags))| *last == (fd.as_raw_fd(), *flags));
        if !same {
            self.forget();
            self.last.extend(watched.iter().map(|(fd, flags)| (fd.as_raw_fd(), *flags)));
        }
        self.times = self.times.saturating_add(1);
        if self.times == HABIT {
            // Without a set, `poll` does the same.
            self.set = make(watched).ok();
        }
    }

    fn forget(&mut self) {
        self.last.clear();
        self.times = 0;
        self.set = None;
    }
}

/// A set of these descriptors; an error if one is in the list twice, or is a file that never waits.
fn make(watched: &[Interest<'_>]) -> Result<OwnedFd, Errno> {
    let set = epoll::create(CreateFlags::CLOEXEC)?;
    for (place, (descriptor, flags)) in watched.iter().enumerate() {
        let mut wanted = EventFlags::empty();
        wanted.set(EventFlags::IN, flags.contains(PollFlags::IN));
        wanted.set(EventFlags::OUT, flags.contains(PollFlags::OUT));
        epoll::add(&set, descriptor, EventData::new_u64(place as u64), wanted)?;
    }
    Ok(set)
}

fn in_set(
    set: &OwnedFd,
    watched: &[Interest<'_>],
    timeout: Option<&Timespec>,
    happened: &mut Vec<bool>,
) -> Result<usize, Errno> {
    happened.resize(watched.len(), false);
    let mut events = [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
    let count = epoll::wait(set, events.as_mut_slice(), timeout)?;
    for event in &events[..count] {
        // Every number in the set is a place in this list.
        happened[event.data.u64() as usize] = true;
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::{HABIT, Lifetime, MOMENT, NOW, Poller, SHORT_IN_A_ROW};
    use rustix::event::{PollFlags, Timespec};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixDatagram;

    #[test]
    fn a_set_tells_what_a_list_tells() {
        let pairs: Vec<_> = (0..5).map(|_| UnixDatagram::pair().expect("sockets are there")).collect();
        let list: Vec<_> = pairs.iter().map(|(here, _)| (here.as_fd(), PollFlags::IN)).collect();
        let (mut by_set, mut by_list) = (Poller::default(), Poller::default());
        let (mut one, mut other) = (Vec::new(), Vec::new());
        for round in 0..4 * HABIT as usize {
            for (number, (here, there)) in pairs.iter().enumerate() {
                if (round + number) % 3 == 0 {
                    there.send(&[0]).expect("there is room");
                }
                if (round * 7 + number) % 4 == 0 {
                    here.set_nonblocking(true).expect("sockets can be");
                    let _ = here.recv(&mut [0]);
                }
            }
            // Fewer descriptors for a while: what is not asked about is not told.
            let some = if round / 12 == 1 { &list[..3] } else { &list[..] };
            let counts = (
                by_set.wait(some, Lifetime::Run, Some(&NOW), &mut one),
                by_list.wait(some, Lifetime::Passing, Some(&NOW), &mut other),
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
        let short = Timespec { tv_sec: 0, tv_nsec: 1_500_000 };
        for _ in 0..2 * HABIT {
            let started = std::time::Instant::now();
            assert_eq!(poller.wait(&list, Lifetime::Run, Some(&short), &mut Vec::new()), Ok(0));
            assert!(started.elapsed() >= std::time::Duration::from_nanos(1_500_000));
        }
    }

    #[test]
    fn short_waits_are_expected_to_go_on_until_a_long_one() {
        let (here, there) = UnixDatagram::pair().expect("sockets are there");
        let list = [(here.as_fd(), PollFlags::IN)];
        let mut poller = Poller::default();
        poller.expectation.company = true;
        let wait = |poller: &mut Poller, timeout: Option<Timespec>| {
            poller.wait(&list, Lifetime::Run, timeout.as_ref(), &mut Vec::new()).expect("a socket can be waited for")
        };
        there.send(&[0]).expect("there is room");
        let mut short = 0;
        // On a busy machine now and then one takes long.
        while short < SHORT_IN_A_ROW {
            assert!(!poller.expectation.is_short());
            assert_eq!(wait(&mut poller, None), 1);
            short = poller.expectation.short;
        }
        assert!(poller.expectation.is_short());
        here.recv(&mut [0]).expect("it has come");

        // A look does not take longer than the wait may, and a wait no longer than that either.
        for timeout_ns in [0, 1, 5_000, 5 * MOMENT.as_nanos() as i64] {
            poller.expectation.short = SHORT_IN_A_ROW;
            let timeout = Timespec { tv_sec: 0, tv_nsec: timeout_ns };
            let started = std::time::Instant::now();
            assert_eq!(wait(&mut poller, Some(timeout)), 0);
            assert!(started.elapsed().as_nanos() as i64 >= timeout_ns);
            assert!(!poller.expectation.is_short(), "{timeout_ns} ns in vain");
        }

        // What comes during the look is found, and so is what comes during the sleep behind it.
        for delay in [MOMENT / 5, 40 * MOMENT] {
            poller.expectation.short = SHORT_IN_A_ROW;
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

        // Alone on a processor nobody else runs while we look.
        poller.expectation = super::Expectation { short: SHORT_IN_A_ROW, company: false };
        assert!(!poller.expectation.is_short());
    }
}
