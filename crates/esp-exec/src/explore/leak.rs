//! Leaked objects: their count is above 0, but no live variable leads to them. Found by reachability from the live
//! registers and slots (the roots of a tracing collector), in states in which every instance waits or has terminated.

use crate::matching::references;
use crate::pools::{Address, MemorySpace};
use crate::state::{Control, State};
use crate::step::Machine;
use crate::values::{DataView, ValueRef};
use quaject_esp_ir::ir::{PoolId, SlotId, Terminator, Type, TypeId, Value};
use quaject_esp_ir::liveness::{OnPaths, live_at_waits};
use quaject_esp_ir::sets::Set;

/// The roots: for each process and each of its waits, the live registers and slots that hold references, with their
/// types.
#[derive(Debug)]
pub struct LeakRoots(Vec<Vec<Vec<(Root, TypeId)>>>);

#[derive(Clone, Copy, Debug)]
enum Root {
    Register(u32),
    Slot(usize),
}

impl Machine<'_> {
    /// Computes the roots of a program.
    pub fn leak_roots(&self) -> LeakRoots {
        let program = self.program();
        let processes = program.processes.iter().zip(&self.code.processes).map(|(process, code)| {
            let body = &process.body;
            let counted = |ty: TypeId| self.code.layouts.has_boxes(ty);
            let waits = body.blocks.iter().filter(|block| matches!(block.terminator, Terminator::Wait(_)));
            let live = live_at_waits(body, &code.slots, &OnPaths::default());
            debug_assert_eq!(waits.count(), live.len());
            let of = |live: Set| {
                let first_slot = body.values.len() as u32;
                let values = (0..first_slot).filter(|value| live.contains(*value)).filter_map(|value| {
                    let ty = body.values[Value(value).0 as usize].ty;
                    counted(ty).then_some((Root::Register(value), ty))
                });
                let slots = (0..body.slots.len() as u32).filter(|slot| live.contains(first_slot + *slot));
                let slots = slots.filter_map(|slot| {
                    let ty = body.slots[SlotId(slot).0 as usize].ty;
                    counted(ty).then_some((Root::Slot(code.slots[slot as usize].0), ty))
                });
                values.chain(slots).collect()
            };
            live.into_iter().map(of).collect()
        });
        LeakRoots(processes.collect())
    }

    /// The pool of a leaked object; none while an instance runs.
    pub fn leaked_object(&self, state: &State, leak_roots: &LeakRoots) -> Option<PoolId> {
        let view = DataView { program: self.program(), layouts: &self.code.layouts, pools: &state.pools };
        let mut open = Vec::new();
        for (instance, (process, _)) in state.instances.iter().zip(&self.code.instances) {
            let wait = match instance.control {
                Control::Running { .. } | Control::CapturedByPath { .. } => return None,
                Control::Ended => continue,
                Control::Waiting { wait } => wait,
            };
            for (holder, ty) in &leak_roots.0[process.0 as usize][wait as usize] {
                let part = match holder {
                    Root::Register(register) => ValueRef::Scalar(instance.frame.registers[*register as usize]),
                    Root::Slot(at) => ValueRef::Memory(Address { space: MemorySpace::Frame, at: *at }),
                };
                references(view, *ty, part, &instance.frame.memory, &mut open);
            }
        }
        let mut reached: Vec<Vec<bool>> = state.pools.pools.iter().map(|pool| vec![false; pool.counts.len()]).collect();
        while let Some((pool, reference)) = open.pop() {
            let Some(object) = state.pools.object(pool, reference) else { continue };
            if std::mem::replace(&mut reached[pool.0 as usize][object], true) {
                continue;
            }
            let content = self.program().types.pool(pool).content;
            if matches!(self.program().types.get(content), Type::Boxed(_)) || self.code.layouts.has_boxes(content) {
                let at = object * state.pools.get(pool).size;
                let part = ValueRef::Memory(Address { space: MemorySpace::Pool(pool), at });
                references(view, content, part, &[], &mut open);
            }
        }
        let mut pools = state.pools.pools.iter().zip(&reached).enumerate();
        pools.find_map(|(index, (pool, reached))| {
            let leaked = pool.counts.iter().zip(reached).any(|(count, reached)| *count > 0 && !reached);
            leaked.then_some(PoolId(index as u32))
        })
    }
}
