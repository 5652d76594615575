//! Systems without a set of descriptors in the kernel that serves every kind of them: `poll` is used for every wait.

use super::Interest;
use rustix::event::Timespec;
use rustix::io::Errno;

/// A set that cannot be made.
pub(super) enum DescriptorSet {}

impl DescriptorSet {
    /// Refuses to make a set.
    pub(super) fn new(_watched: &[Interest<'_>]) -> Result<DescriptorSet, Errno> {
        Err(Errno::INVAL)
    }

    /// Cannot be called: there is no set.
    pub(super) fn wait(
        &self,
        _count: usize,
        _timeout: Option<&Timespec>,
        _happened: &mut Vec<bool>,
    ) -> Result<usize, Errno> {
        match *self {}
    }
}
