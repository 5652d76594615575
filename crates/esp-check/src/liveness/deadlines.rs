//! The deadlines that a step of the product passes over: a Streett pair for each (Emerson and Lei, "Modalities for
//! Model Checking: Branching Time Logic Strikes Back", 1987). If a run passes a deadline over infinitely often, it
//! excuses it infinitely often: it takes the branch, executes its `alt` while the branch is closed, or moves the time.

use super::deadline_events::DeadlineEvents;
use super::product::{Edge, Graph, ProductBuilder};
use crate::exploration_plan::ExplorationPlan;
use crate::instance_set::{instance_bit, participant_set};
use quaject_esp_exec::priority;
use quaject_esp_exec::step::Step;

impl ProductBuilder<'_, '_> {
    /// The number of the set of events of a step from the state that is expanded to the state in `successor`.
    pub(super) fn deadline_events(&mut self, step: Step) -> u32 {
        let plan: &ExplorationPlan<'_> = self.generator.plan;
        if !plan.tracks_deadlines() {
            return 0;
        }
        let mut events = DeadlineEvents::default();
        if let Step::Local { instance } = step
            && let Some((first, _)) = plan.deadlines(instance)
        {
            let moved = self.generator.moved_deadlines_in(instance, self.successor[instance as usize]);
            events.excused |= u128::from(moved) << first;
        }
        for (instance, branch) in priority::participants(step) {
            let Some((first, deadlines)) = plan.deadlines(instance) else { continue };
            let component = self.state_vector[instance as usize];
            let Some(view) = self.event_table.view(&mut self.generator, instance, component) else { continue };
            let generator = &self.generator;
            let has_rendezvous_before = |branch: u32| {
                generator.enabled.iter().map(|transition| generator.get(*transition).step).any(|step| {
                    matches!(step, Step::Communicate { .. })
                        && participant_set(step) & instance_bit(instance as usize) != 0
                        && priority::participants(step).any(|(other, at)| other == instance && at < branch)
                })
            };
            for (number, deadline) in deadlines.iter().enumerate() {
                let bit = 1 << (first + number as u32);
                match view.passes_over(deadline, branch, &has_rendezvous_before) {
                    Some(true) => events.passed_over |= bit,
                    Some(false) => events.excused |= bit,
                    None => {}
                }
            }
        }
        if events == DeadlineEvents::default() {
            return 0;
        }
        let all = &mut self.graph.deadline_events;
        *self.event_table.number_of.entry(events).or_insert_with(|| {
            all.push(events);
            all.len() as u32 - 1
        })
    }
}

impl Graph {
    pub(super) fn events_of(&self, edge: &Edge) -> DeadlineEvents {
        self.deadline_events[edge.deadline_events as usize]
    }

    /// The deadlines that a run through all edges of an SCC passes over, and never excuses.
    pub(super) fn ignored_deadlines(&self, scc: &[u32], keep: &dyn Fn(&Edge) -> bool) -> u128 {
        if self.deadline_events.len() == 1 {
            return 0;
        }
        let mut all = DeadlineEvents::default();
        for edge in self.inner(scc, keep) {
            let events = self.events_of(edge);
            all.passed_over |= events.passed_over;
            all.excused |= events.excused;
        }
        all.passed_over & !all.excused
    }
}
