//! Numbers and names of instances: an instance is one running process, and they are counted in order of text over
//! all replicas. This number is what a `pid` holds. Knows nothing of how instances run.

use crate::ir::{ChannelId, FastPath, Location, ProcessId, Program, SlotId};
use smol_str::SmolStr;

impl Program {
    /// How many instances run.
    pub fn instance_count(&self) -> u32 {
        self.processes.iter().map(|process| process.replicas).sum()
    }

    /// The number of a process's first replica.
    pub fn first_instance(&self, process: ProcessId) -> u32 {
        self.processes[..process.0 as usize].iter().map(|process| process.replicas).sum()
    }

    /// The instance of a process with this replica number, if there is one.
    pub fn instance(&self, process: ProcessId, replica: i128) -> Option<u32> {
        let replicas = self.processes.get(process.0 as usize)?.replicas;
        (0..i128::from(replicas)).contains(&replica).then(|| self.first_instance(process) + replica as u32)
    }

    /// An instance's process and replica number, if there is such an instance.
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

    /// The slots of a process's body that stand for slots of other instances on a fast path.
    pub fn lent_slots(&self, process: ProcessId) -> Vec<SlotId> {
        let own = |path: &&FastPath| self.process_of(path.trigger).is_some_and(|(other, _)| other == process);
        let members = self.paths.iter().filter(own).flat_map(|path| &path.members);
        members.flat_map(|member| member.slots.iter().map(|(_, here)| *here)).collect()
    }

    /// Whose code of a fused instance stands at a place: from each of these places on, in order, that of the process
    /// named beside it. Nothing of other instances.
    pub fn members(&self, instance: u32) -> Vec<(Location, SmolStr)> {
        let fused = self.process_of(instance).map(|(process, _)| &self.processes[process.0 as usize]);
        let Some(fused) = fused.filter(|fused| !fused.members.is_empty()) else { return Vec::new() };
        let processes = self.processes.iter().enumerate().map(|(index, process)| {
            let is_member = fused.members.contains(&ProcessId(index as u32));
            (process.location, if is_member { process.name.clone() } else { fused.name.clone() })
        });
        // What calls a function cannot be told, unless only one could.
        let functions = self.functions.iter().enumerate().map(|(index, function)| {
            let caller = fused.callers.iter().find(|(called, _)| called.0 as usize == index);
            let name = caller.map_or(&fused.name, |(_, process)| &self.processes[process.0 as usize].name);
            (function.location, name.clone())
        });
        let mut members: Vec<(Location, SmolStr)> = processes.chain(functions).collect();
        members.retain(|(location, _)| location.line > 0);
        members.sort();
        members.dedup_by(|later, first| later.0 == first.0);
        members
    }

    /// The name of the instance whose code at a place has faulted: of a fused one, of the member that the place is of.
    pub fn name_at(&self, instance: u32, place: Location) -> String {
        let members = self.members(instance);
        let before = members.iter().take_while(|(location, _)| *location <= place);
        match before.last().filter(|(location, _)| location.file == place.file) {
            Some((_, name)) => name.to_string(),
            None => self.instance_name(instance),
        }
    }

    /// The channel of the operation that code of a fused process at a place is part of. None for other processes, where
    /// operations are no code.
    pub fn channel_at(&self, process: ProcessId, place: Location) -> Option<ChannelId> {
        let operations = &self.processes[process.0 as usize].operations;
        let found = operations.binary_search_by_key(&place, |(location, _)| *location).ok()?;
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
