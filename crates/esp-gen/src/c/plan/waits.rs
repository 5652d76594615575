//! Plans one process: storage, program counters, and what each of its waits is by itself, without its partners.

use super::paths::PathFunction;
use super::{BranchPlan, ProcessPlan, WaitPlan};
use crate::layout::Layouts;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::pool_recheck::PoolRecheck;
use std::collections::BTreeMap;

use super::super::storage::{PathConstraints, StorageMap, assign_storage};

/// The channel of a branch and the direction of its messages; none of an `after`.
pub(crate) fn branch_channel(branch: &Branch) -> Option<(ChannelId, Direction)> {
    match &branch.operation {
        Operation::In { channel, .. } => Some((*channel, Direction::In)),
        Operation::Out { channel, .. } => Some((*channel, Direction::Out)),
        Operation::After { .. } => None,
    }
}

/// Whether a branch's guard depends on free objects, so that it may open while its instance waits.
pub(crate) fn has_free_object_guard(branch: &Branch) -> bool {
    match branch.guard {
        Guard::Region(_) => true,
        Guard::Open | Guard::Value(_) => false,
    }
}

/// What the planning of a process depends on, and the next free program counter and instance.
pub(super) struct Numbering<'p> {
    pub(super) program: &'p Program,
    pub(super) layouts: &'p Layouts,
    pub(super) pool_recheck: &'p PoolRecheck,
    pub(super) next_pc: u32,
    pub(super) next_instance: u32,
}

impl Numbering<'_> {
    /// Reserves `count` program counters; returns the first.
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let first = self.next_pc;
        self.next_pc += count;
        first
    }

    /// Plans a process with this name and these fast paths.
    pub(super) fn plan_process(
        &mut self,
        process: &Process,
        constraints: &PathConstraints,
        name: String,
        paths: Vec<PathFunction>,
    ) -> ProcessPlan {
        let storage = assign_storage(&process.body, &self.program.types, self.layouts, constraints);
        let start_pc = self.take(1);
        let base = self.next_instance;
        self.next_instance += process.replicas;
        let mut plan = ProcessPlan {
            name,
            waits: Vec::new(),
            yields: BTreeMap::new(),
            path_resumptions: BTreeMap::new(),
            paths,
            captured: BTreeMap::new(),
            start_pc,
            base,
            replicas: process.replicas,
            mask_words: 0,
            deadlines: 0,
            storage,
        };
        for block in plan.storage.main.clone() {
            match &process.body.blocks[block.0 as usize].terminator {
                Terminator::Wait(wait) => {
                    let is_path_poll = constraints.polls.contains(&block);
                    let wait_plan = self.plan_wait(&process.body, block, wait, is_path_poll, &plan.storage);
                    if wait_plan.has_open_mask {
                        plan.mask_words = plan.mask_words.max(wait.branches.len().div_ceil(32));
                    }
                    let is_timer = |branch: &&Branch| matches!(branch.operation, Operation::After { .. });
                    plan.deadlines = plan.deadlines.max(wait.branches.iter().filter(is_timer).count());
                    plan.waits.push(wait_plan);
                }
                Terminator::Yield(_) => {
                    plan.yields.insert(block, self.take(1));
                }
                Terminator::Jump(_)
                | Terminator::Branch { .. }
                | Terminator::Switch { .. }
                | Terminator::Return(_)
                | Terminator::Result(_)
                | Terminator::Exit(_)
                | Terminator::End
                | Terminator::Fault(_)
                | Terminator::Enter(_)
                | Terminator::Leave(_) => {}
            }
        }
        plan.path_resumptions = constraints.resumptions.iter().map(|block| (*block, self.take(1))).collect();
        plan
    }

    fn plan_wait(
        &mut self,
        body: &Body,
        block: BlockId,
        wait: &Wait,
        is_path_poll: bool,
        storage: &StorageMap,
    ) -> WaitPlan {
        let is_outside = |branch: &Branch| match branch_channel(branch) {
            Some((channel, _)) => self.program.channels[channel.0 as usize].boundary != Boundary::Internal,
            None => true,
        };
        let polls_environment = !is_path_poll && wait.branches.iter().any(is_outside);
        let branches = wait.branches.iter().enumerate().map(|(number, branch)| {
            let paused = storage.paused.get(&(block, number)).cloned().unwrap_or_default();
            match is_path_poll {
                true => BranchPlan { paused, ..BranchPlan::default() },
                false => BranchPlan {
                    parked_payload: parked_payload(branch, storage),
                    parked_parameters: parked_parameters(body, branch, storage),
                    paused,
                    ..BranchPlan::default()
                },
            }
        });
        WaitPlan {
            block,
            branches: branches.collect(),
            pc: self.take(1 + wait.branches.len() as u32 + u32::from(wait.otherwise.is_some())),
            polls_environment,
            is_path_poll,
            rotates: wait.order == AltOrder::Fair && wait.branches.len() > 1,
            has_open_mask: wait.branches.iter().any(|branch| branch.guard != Guard::Open),
            reevaluates_guards: wait.branches.iter().any(has_free_object_guard),
            retries_at_quiescence: self.pool_recheck.retries_at_quiescence(body, wait),
            may_defer: false,
            may_bypass: false,
            has_arrival_stamp: false,
            retry_pc: None,
        }
    }
}

fn parked_payload(branch: &Branch, storage: &StorageMap) -> Vec<(usize, Value)> {
    match &branch.operation {
        Operation::Out { payload: Payload::Ready(parts), .. } => parts
            .iter()
            .enumerate()
            .filter_map(|(index, part)| match part.operand {
                Operand::Value(value) => storage.is_local(value).then_some((index, value)),
                Operand::Place(_) => None,
            })
            .collect(),
        Operation::Out { payload: Payload::Region(_), .. } | Operation::In { .. } | Operation::After { .. } => {
            Vec::new()
        }
    }
}

fn parked_parameters(body: &Body, branch: &Branch, storage: &StorageMap) -> Vec<Value> {
    let parameters = &body.blocks[branch.then.0 as usize].parameters;
    parameters.iter().copied().filter(|value| storage.is_local(*value)).collect()
}
