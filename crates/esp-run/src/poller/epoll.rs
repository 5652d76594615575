//! A set of descriptors that the kernel keeps (epoll(7)): the cost of a wait is proportional to the number of events,
//! not of descriptors.

use super::Interest;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFlags, Timespec};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

/// Events fetched at once; the others are reported by the next wait.
const EVENTS: usize = 32;

/// The set of an epoll instance; each event carries the index of its descriptor.
pub(super) struct DescriptorSet(OwnedFd);

impl DescriptorSet {
    /// A set of these descriptors; an error if one is in the list twice, or is a file that never blocks.
    pub(super) fn new(watched: &[Interest<'_>]) -> Result<DescriptorSet, Errno> {
        let set = epoll::create(CreateFlags::CLOEXEC)?;
        for (index, (descriptor, flags)) in watched.iter().enumerate() {
            let mut wanted = EventFlags::empty();
            wanted.set(EventFlags::IN, flags.contains(PollFlags::IN));
            wanted.set(EventFlags::OUT, flags.contains(PollFlags::OUT));
            epoll::add(&set, descriptor, EventData::new_u64(index as u64), wanted)?;
        }
        Ok(DescriptorSet(set))
    }

    /// Waits for an event on one of the `count` descriptors; sets `happened` for each that has one.
    pub(super) fn wait(
        &self,
        count: usize,
        timeout: Option<&Timespec>,
        happened: &mut Vec<bool>,
    ) -> Result<usize, Errno> {
        happened.resize(count, false);
        let mut events = [epoll::Event { flags: EventFlags::empty(), data: EventData::new_u64(0) }; EVENTS];
        let count = epoll::wait(&self.0, events.as_mut_slice(), timeout)?;
        for event in &events[..count] {
            // Every number in the set is an index of this list.
            happened[event.data.u64() as usize] = true;
        }
        Ok(count)
    }
}
