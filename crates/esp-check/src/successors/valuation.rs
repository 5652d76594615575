//! Valuation of atomic propositions. Their inputs are part of an instance's component state, in front of its own bytes:
//! the labels passed since its last operation, and variables as they were at its last wait, or as it has received them
//! since; before its first wait, the constants with which they are initialised, or 0.
//!
//! ```text
//!   labels       a byte, if the property names any of the instance: bit n for the n-th of ExplorationPlan::label_atoms
//!   deadlines    a word, if the instance has any: bit n if local code since the last operation may have moved the n-th
//!   variables    16 bytes each, in the order of ExplorationPlan::tracked_variables
//! ```

use super::SuccessorGenerator;
use crate::collapse::ComponentId;
use crate::instance_set::{instance_bit, participant_set};
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ltl::{Proposition, Term};

impl SuccessorGenerator<'_> {
    /// Appends the inputs of an instance.
    pub(crate) fn write_propositions(&mut self, instance: u32) {
        if !self.plan.label_atoms[instance as usize].is_empty() {
            self.scratch.push(self.passed_labels[instance as usize]);
        }
        if self.plan.deadlines(instance).is_some() {
            self.scratch.extend_from_slice(&self.moved_deadlines[instance as usize].to_le_bytes());
        }
        for value in &self.variable_values[instance as usize] {
            self.scratch.extend_from_slice(&value.to_le_bytes());
        }
    }

    /// Reads the inputs from the component in `scratch`; returns where the instance's own bytes begin.
    pub(crate) fn read_propositions(&mut self, instance: u32) -> usize {
        let mut at = 0;
        if !self.plan.label_atoms[instance as usize].is_empty() {
            self.passed_labels[instance as usize] = self.scratch[0];
            at = 1;
        }
        if self.plan.deadlines(instance).is_some() {
            let word = self.scratch[at..at + 8].try_into().expect("a word has 8 bytes");
            self.moved_deadlines[instance as usize] = u64::from_le_bytes(word);
            at += 8;
        }
        for value in &mut self.variable_values[instance as usize] {
            *value = i128::from_le_bytes(self.scratch[at..at + 16].try_into().expect("a value has 16 bytes"));
            at += 16;
        }
        at
    }

    /// The deadlines of an instance that local code may have moved since the last operation, in this component state.
    pub(crate) fn moved_deadlines_in(&mut self, instance: u32, component: ComponentId) -> u64 {
        self.scratch.clear();
        self.plan.components.read(self.plan.table_of_component[instance as usize], component, &mut self.scratch);
        self.read_propositions(instance);
        self.moved_deadlines[instance as usize]
    }

    /// The atomic propositions that hold in a state, as bits.
    pub(crate) fn valuation(&mut self, state_vector: &[u32]) -> u64 {
        let mut valuation = 0;
        for (instance, component) in state_vector.iter().enumerate().take(self.plan.instances) {
            if self.plan.label_atoms[instance].is_empty() && self.plan.tracked_variables[instance].is_empty() {
                continue;
            }
            self.scratch.clear();
            self.plan.components.read(self.plan.table_of_component[instance], *component, &mut self.scratch);
            self.read_propositions(instance as u32);
            for (bit, (atom, _)) in self.plan.label_atoms[instance].iter().enumerate() {
                valuation |= u64::from(self.passed_labels[instance] >> bit & 1) << atom;
            }
        }
        for (number, atom) in self.plan.atoms.iter().enumerate() {
            if let Proposition::Compares(left, comparison, right) = atom {
                valuation |= u64::from(comparison.holds(self.value(left), self.value(right))) << number;
            }
        }
        valuation
    }

    /// The labels and variables of the atomic propositions with their values in a state.
    pub(crate) fn proposition_values(&mut self, state_vector: &[u32]) -> Vec<(String, String)> {
        let valuation = self.valuation(state_vector);
        let program = &self.plan.model.program;
        let mut values: Vec<(String, String)> = Vec::new();
        let mut add = |name: String, value: String| {
            if !values.iter().any(|(known, _)| *known == name) {
                values.push((name, value));
            }
        };
        for (number, atom) in self.plan.atoms.iter().enumerate() {
            match atom {
                Proposition::Passed { process, instance, label } => {
                    let label = &program.processes[process.0 as usize].labels[label.0 as usize];
                    let is_passed = valuation >> number & 1 == 1;
                    add(format!("{}@L{label}", program.instance_name(*instance)), is_passed.to_string());
                }
                Proposition::Compares(left, _, right) => {
                    for term in [left, right] {
                        if let Term::Variable { instance, name, .. } = term {
                            add(format!("{}:{name}", program.instance_name(*instance)), self.value(term).to_string());
                        }
                    }
                }
            }
        }
        values
    }

    fn value(&self, term: &Term) -> i128 {
        match term {
            Term::Constant(value) => *value,
            Term::Variable { instance, name, .. } => {
                let instance = *instance as usize;
                let index = self.plan.tracked_variables[instance].iter().position(|known| known == name);
                index.map_or(0, |index| self.variable_values[instance][index])
            }
        }
    }

    pub(crate) fn begin_recording(&mut self) {
        if self.plan.records_coverage
            && let Some(coverage) = self.machine.coverage()
        {
            match &mut self.executed {
                Some(executed) => executed.add(coverage),
                None => self.executed = Some(coverage.clone()),
            }
            coverage.clear();
        }
    }

    /// Records the labels that a local step has passed and the deadlines that it may have moved; an operation resets
    /// them. Records the variables of instances
    /// that wait now or have received some.
    pub(crate) fn record_propositions(&mut self, step: Step, component_indices: &[u32]) {
        for instance in component_indices.iter().filter(|instance| {
            self.plan.tracked_variables.get(**instance as usize).is_some_and(|names| !names.is_empty())
        }) {
            let mut variables = self.machine.register_variables(&self.state, *instance);
            variables.extend(self.machine.received_variables(&self.state, *instance));
            for (name, _, value) in variables {
                let index = self.plan.tracked_variables[*instance as usize].iter().position(|known| *known == name);
                if let Some(index) = index {
                    self.variable_values[*instance as usize][index] = number(&value);
                }
            }
        }
        if !self.plan.records_coverage {
            return;
        }
        if let Step::Local { instance } = step {
            let process = self.plan.process(instance);
            let Some(coverage) = self.machine.coverage() else { return };
            for (bit, (_, position)) in self.plan.label_atoms[instance as usize].iter().enumerate() {
                self.passed_labels[instance as usize] |= u8::from(coverage.has(process, *position)) << bit;
            }
            for (bit, deadline) in self.plan.deadlines(instance).into_iter().flat_map(|(_, own)| own).enumerate() {
                let is_moved = deadline.movers.iter().any(|position| coverage.has(process, *position));
                self.moved_deadlines[instance as usize] |= u64::from(is_moved) << bit;
            }
            return;
        }
        let acts = participant_set(step);
        for instance in (0..self.plan.instances).filter(|instance| acts & instance_bit(*instance) != 0) {
            self.passed_labels[instance] = 0;
            self.moved_deadlines[instance] = 0;
        }
    }
}

/// A scalar as a number: false and true are 0 and 1, an instance is its number.
fn number(value: &Datum) -> i128 {
    match value {
        Datum::Int(value) => *value,
        Datum::Bool(value) => i128::from(*value),
        Datum::Pid(instance) => i128::from(*instance),
        Datum::Bytes(_) | Datum::Record(_) | Datum::Union(..) | Datum::Array(_) => 0,
    }
}
