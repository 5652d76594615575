//! Numbering and naming of instances. An instance is one running process; instances are counted in order of text over
//! all replicas. A `pid` holds this number.

use crate::ir::{ChannelId, FastPath, Location, ProcessId, Program, SlotId};

impl Program {
    /// The number of instances.
    pub fn instance_count(&self) -> u32 {
        self.processes.iter().map(|process| process.replicas).sum()
    }

    /// The number of a process's first replica.
    pub fn first_instance(&self, process: ProcessId) -> u32 {
        self.processes[..process.0 as usize].iter().map(|process| process.replicas).sum()
    }

    /// The instance of a process with this replica number, if there is one.
    #[inline]
    pub fn instance(&self, process: ProcessId, replica: i128) -> Option<u32> {
        let replicas = self.processes.get(process.0 as usize)?.replicas;
        (0..i128::from(replicas)).contains(&replica).then(|| self.first_instance(process) + replica as u32)
    }

    /// An instance's process and replica number, if there is such an instance.
    #[inline]
    pub fn process_of(&self, instance: u32) -> Option<(ProcessId, u32)> {
        let mut first = 0;
        for (index, process) in self.processes.iter().enumerate() {
            if instance.wrapping_sub(first) < process.replicas {
                return Some((ProcessId(index as u32), instance - first));
            }
            first += process.replicas;
        }
        None
    }

    /// The slots of a process's body that replace slots of captured instances on a fast path.
    pub fn captured_slots(&self, process: ProcessId) -> Vec<SlotId> {
        let own = |path: &&FastPath| self.process_of(path.trigger).is_some_and(|(other, _)| other == process);
        let members = self.paths.iter().filter(own).flat_map(|path| &path.members);
        members.flat_map(|member| member.slots.iter().map(|(_, here)| *here)).collect()
    }

    /// The channel of the member operation to which the code of a fused process at a location belongs. None for other
    /// processes.
    #[inline]
    pub fn channel_at(&self, process: ProcessId, place: Location) -> Option<ChannelId> {
        let operations = &self.processes[process.0 as usize].operations;
        let found = operations.binary_search_by_key(&place.in_text(), |(location, _)| *location).ok()?;
        Some(operations[found].1)
    }

    /// An instance's name as messages print it: `P`, or `P[2]` of a replicated process.
    pub fn instance_name(&self, instance: u32) -> String {
        match self.process_of(instance) {
            Some((process, replica)) => {
                let process = &self.processes[process.0 as usize];
                if process.replicated { format!("{}[{replica}]", process.name) } else { process.name.to_string() }
            }
            None => format!("instance {instance}"),
        }
    }
}
