//! Which deadlines the branch that an instance takes passes over or excuses.

use crate::deadlines::Deadline;
use crate::successors::SuccessorGenerator;
use quaject_esp_exec::explore::OpenBranch;
use quaject_esp_exec::step::Control;
use quaject_esp_ir::ir::AltOrder;
use rustc_hash::FxHashMap;
use std::rc::Rc;

/// The deadlines that a step passes over, and those that it excuses, as bits in the order of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct DeadlineEvents {
    pub(super) passed_over: u128,
    pub(super) excused: u128,
}

/// The numbers of sets of events; 0 is the empty one.
#[derive(Default)]
pub(super) struct DeadlineEventTable {
    pub(super) number_of: FxHashMap<DeadlineEvents, u32>,
    views: FxHashMap<(u32, u32), Option<Rc<WaitView>>>,
}

/// The wait of an instance in a component state.
pub(super) struct WaitView {
    wait: u32,
    order: AltOrder,
    is_open: Vec<bool>,
}

impl DeadlineEventTable {
    /// The wait of an instance; none if it does not wait.
    pub(super) fn view(
        &mut self,
        generator: &mut SuccessorGenerator<'_>,
        instance: u32,
        component: u32,
    ) -> Option<Rc<WaitView>> {
        let view = self.views.entry((instance, component)).or_insert_with(|| {
            generator.load(instance, component);
            let (machine, state, _) = generator.execution();
            let view = machine.instance_view(state, instance);
            let Control::Waiting { wait } = view.control else { return None };
            let is_open = view.branches.iter().map(Option::<OpenBranch>::is_some).collect();
            Some(Rc::new(WaitView { wait, order: view.order, is_open }))
        });
        view.clone()
    }
}

impl WaitView {
    /// Whether taking this branch passes a deadline over (`Some(true)`), or excuses it (`Some(false)`).
    /// `has_rendezvous_before` says whether another instance could communicate at a branch before the one given.
    pub(super) fn passes_over(
        &self,
        deadline: &Deadline,
        taken: u32,
        has_rendezvous_before: &dyn Fn(u32) -> bool,
    ) -> Option<bool> {
        if deadline.receipts.contains(&(self.wait, taken)) {
            return Some(false);
        }
        if deadline.wait != self.wait {
            return None;
        }
        if deadline.branch == taken {
            return Some(false);
        }
        let is_open = self.is_open[deadline.branch as usize];
        match self.order {
            AltOrder::Fair => Some(is_open),
            // Steps that precede each other in a cycle are all possible; a cycle with the deadline has a rendezvous at
            // a branch before it.
            AltOrder::Priority => {
                let is_later = deadline.branch < taken;
                (is_open && is_later && !has_rendezvous_before(deadline.branch)).then_some(true)
            }
        }
    }
}
