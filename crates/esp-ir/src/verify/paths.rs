//! Rules of fast paths: the instances, blocks, values and slots that they name exist, values have the types of their
//! targets, and an exit sets every value that is live where a member resumes.

use super::{Owner, Verifier, VerifyError};
use crate::ir::{Enter, FastPath, Leave, Location, PathId, Program, Resume, Terminator, TypeId};
use crate::liveness::live_values;

/// Checks the declarations of the program's fast paths.
pub(super) fn paths(program: &Program, errors: &mut Vec<VerifyError>) {
    for path in &program.paths {
        let mut error = |what: &str| {
            let message = format!("fast path `{}`: {what}", path.name);
            errors.push(VerifyError { body: None, block: None, location: Location::default(), message });
        };
        let Some((trigger, _)) = program.process_of(path.trigger) else {
            error("its first instance does not exist");
            continue;
        };
        let mut seen = vec![path.trigger];
        for member in &path.members {
            let Some((process, _)) = program.process_of(member.instance) else {
                error("an instance does not exist");
                continue;
            };
            if seen.contains(&member.instance) {
                error("an instance is listed twice");
            }
            seen.push(member.instance);
            let body = &program.processes[process.0 as usize].body;
            let (block, branch) = member.start;
            let branches = match body.blocks.get(block.0 as usize).map(|block| &block.terminator) {
                Some(Terminator::Wait(wait)) => wait.branches.len(),
                Some(_) | None => 0,
            };
            if branch as usize >= branches {
                error("a member starts where it does not wait");
            }
            if member.values.iter().any(|value| value.0 as usize >= body.values.len()) {
                error("a value does not exist");
            }
            let here = &program.processes[trigger.0 as usize].body.slots;
            for (own, stand_in) in &member.slots {
                let types = (body.slots.get(own.0 as usize), here.get(stand_in.0 as usize));
                if types.0.is_none() || types.0.map(|slot| slot.ty) != types.1.map(|slot| slot.ty) {
                    error("a slot has another type than the one it replaces");
                }
            }
        }
    }
}

impl<'a> Verifier<'a> {
    /// The path, if it is one of this process.
    fn path(&mut self, id: PathId) -> Option<&'a FastPath> {
        let program = self.program;
        let path = program.paths.get(id.0 as usize);
        let process = path.and_then(|path| program.process_of(path.trigger));
        let own = match (self.owner, process) {
            (Owner::Process(own), Some((process, _))) => std::ptr::eq(own, &program.processes[process.0 as usize]),
            (Owner::Process(_) | Owner::Function(_), _) => false,
        };
        if !own {
            self.error(format!("path{} is not a path of this process", id.0));
            return None;
        }
        path
    }

    pub(super) fn enter(&mut self, enter: &Enter) {
        let Some(path) = self.path(enter.path) else { return };
        let taken: Vec<TypeId> = path
            .members
            .iter()
            .flat_map(|member| {
                let (process, _) = self.program.process_of(member.instance).expect("checked with the items");
                let body = &self.program.processes[process.0 as usize].body;
                member.values.iter().map(|value| body.values[value.0 as usize].ty)
            })
            .collect();
        let parameters = &self.body.blocks[enter.then.0 as usize].parameters;
        let given: Vec<TypeId> = parameters.iter().map(|parameter| self.ty(*parameter)).collect();
        if taken != given {
            self.error(format!("block{} does not take what the members give", enter.then.0));
        }
    }

    pub(super) fn leave(&mut self, leave: &Leave) {
        let Some(path) = self.path(leave.path) else { return };
        self.resume(path.trigger, &leave.trigger);
        for (number, resume) in &leave.members {
            match path.members.get(*number as usize) {
                Some(member) => self.resume(member.instance, resume),
                None => self.error(format!("the path has no member {number}")),
            }
        }
    }

    fn resume(&mut self, instance: u32, resume: &Resume) {
        let (process, _) = self.program.process_of(instance).expect("checked with the items");
        let body = &self.program.processes[process.0 as usize].body;
        if resume.to.0 as usize >= body.blocks.len() {
            return self.error(format!("block{} of instance {instance} does not exist", resume.to.0));
        }
        for (own, becomes) in &resume.values {
            match body.values.get(own.0 as usize) {
                Some(data) => self.expect_type(*becomes, data.ty),
                None => self.error(format!("v{} of instance {instance} does not exist", own.0)),
            }
        }
        let is_set = |value: &&u32| resume.values.iter().any(|(own, _)| own.0 == **value);
        let live = self.live.entry(process).or_insert_with(|| live_values(body));
        if let Some(missing) = live[resume.to.0 as usize].iter().find(|value| !is_set(value)) {
            let message = format!("v{missing} of instance {instance} is live at block{} and not set", resume.to.0);
            self.error(message);
        }
    }
}
