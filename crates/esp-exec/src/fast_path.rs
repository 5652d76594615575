//! Fast paths: an instance, the trigger, captures other instances, executes their work as its own code, and resumes
//! them at the end (reference, section 10; "Fast Paths in Concurrent Programs", section 4.2).
//!
//! ```text
//!   trigger  --enter--> code of the path --leave--> continues at once
//!   member   Waiting -> CapturedByPath ---------->  Running at a block of its own
//! ```

use crate::code::{EnterCode, LeaveCode, Pc, ResumeCode};
use crate::state::Control;
use crate::step::StepContext;
use quaject_esp_ir::ir::{PathMember, SlotId};

/// The result of an entry test.
pub(crate) enum EntryResult {
    /// All members are captured.
    Entered,
    /// A member is not at its start, and some member is about to run.
    Retry,
    /// A member is not at its start, and no member is about to run.
    Bypassed,
}

impl StepContext<'_> {
    /// The entry test: captures the members if each of them waits at its start.
    pub(crate) fn enter_path(&mut self, instance: u32, enter: &EnterCode) -> EntryResult {
        let path = &self.program.paths[enter.path.0 as usize];
        if path.trigger != instance {
            return EntryResult::Bypassed;
        }
        if !path.members.iter().all(|member| self.is_in_place(member)) {
            let runs = |member: &PathMember| matches!(self.state.control(member.instance), Control::Running { .. });
            return if path.members.iter().any(runs) { EntryResult::Retry } else { EntryResult::Bypassed };
        }
        if self.environment.declines_path_entry() {
            return EntryResult::Bypassed;
        }
        let mut parameters = enter.parameters.iter();
        for member in &path.members {
            for value in &member.values {
                let taken = *self.register(member.instance, value.0);
                let parameter = parameters.next().expect("a verified entry has a parameter for each value");
                *self.register(instance, *parameter) = taken;
            }
            for (own, here) in &member.slots {
                self.copy_slot((member.instance, *own), (instance, *here));
            }
            let control = &mut self.state.instances[member.instance as usize].control;
            if let Control::Waiting { wait } = *control {
                *control = Control::CapturedByPath { wait };
                self.work.captured.push((member.instance, wait));
            }
        }
        EntryResult::Entered
    }

    /// Whether an instance is on a fast path that it has entered.
    pub(crate) fn is_on_path(&self, instance: u32) -> bool {
        self.program.paths.iter().any(|path| {
            let captured =
                |member: &PathMember| matches!(self.state.control(member.instance), Control::CapturedByPath { .. });
            path.trigger == instance && path.members.first().is_some_and(captured)
        })
    }

    /// Resumes the members with their new values at the end of a path. Returns where the trigger continues.
    pub(crate) fn leave_path(&mut self, instance: u32, leave: &LeaveCode) -> Pc {
        let path = &self.program.paths[leave.path.0 as usize];
        for (number, resume) in &leave.members {
            let PathMember { instance: member, values, .. } = &path.members[*number as usize];
            let member = *member;
            // Dead storage is 0, so that states with equal futures are equal.
            values.iter().for_each(|value| *self.register(member, value.0) = 0);
            for (own, becomes) in &resume.values {
                let value = *self.register(instance, *becomes);
                *self.register(member, *own) = value;
            }
            let member = &mut self.state.instances[member as usize];
            member.control = Control::Running { at: resume.to };
            member.branches.clear();
        }
        for member in &path.members {
            for (own, here) in &member.slots {
                self.copy_slot((instance, *here), (member.instance, *own));
                let (at, size) = self.body(instance).slots[here.0 as usize];
                self.state.instances[instance as usize].frame.memory[at..at + size].fill(0);
            }
        }
        self.work.resumed.extend(leave.members.iter().map(|(number, _)| path.members[*number as usize].instance));
        self.resume_trigger(instance, &leave.trigger)
    }

    /// Sets the trigger's values. All are read before the first is written, because a value may be both.
    fn resume_trigger(&mut self, instance: u32, resume: &ResumeCode) -> Pc {
        let values: Vec<i64> = resume.values.iter().map(|(_, becomes)| *self.register(instance, *becomes)).collect();
        for ((own, _), value) in resume.values.iter().zip(values) {
            *self.register(instance, *own) = value;
        }
        resume.to
    }

    fn is_in_place(&self, member: &PathMember) -> bool {
        let (block, branch) = member.start;
        let (process, _) = self.code.instances[member.instance as usize];
        let body = &self.code.processes[process.0 as usize];
        match self.state.control(member.instance) {
            Control::Waiting { wait } => {
                body.waits[wait as usize].block == block
                    && self.state.instances[member.instance as usize].branches[branch as usize].open
            }
            Control::Running { .. } | Control::CapturedByPath { .. } | Control::Ended => false,
        }
    }

    fn register(&mut self, instance: u32, register: u32) -> &mut i64 {
        &mut self.state.instances[instance as usize].frame.registers[register as usize]
    }

    fn copy_slot(&mut self, (from, from_slot): (u32, SlotId), (to, to_slot): (u32, SlotId)) {
        let (from_at, size) = self.body(from).slots[from_slot.0 as usize];
        let (to_at, _) = self.body(to).slots[to_slot.0 as usize];
        let source = std::mem::take(&mut self.state.instances[from as usize].frame.memory);
        self.state.instances[to as usize].frame.memory[to_at..to_at + size]
            .copy_from_slice(&source[from_at..from_at + size]);
        self.state.instances[from as usize].frame.memory = source;
    }
}
