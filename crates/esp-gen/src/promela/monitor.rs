//! Refinement check by a monitor automaton: the visible actions of another program, the specification, as a
//! deterministic automaton. A variable holds its state; each visible action of the model must be a transition of it.
//!
//! ```text
//!   inline observe_sendC(observe_sendC_0) {
//!     if
//!     :: monitor_state == 3 && (observe_sendC_0) == 7 -> monitor_state = 4
//!     :: else -> assert(false)
//!     fi
//!   }
//! ```

use super::expression::Expr;
use super::lines::{Lines, Mark};
use super::memory::{self, Kind};
use super::observable::{Monitor, Observable};
use super::plan::Plan;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::observer::{Event, Observer};
use quaject_esp_ir::ir::*;
use std::collections::BTreeMap;

/// The largest number of transitions, at all places of visible actions: each is a line there.
const MAX_LINES: usize = 50_000;

impl<'a> Plan<'a> {
    /// Plans the monitor, or refuses visible actions that Promela cannot compare.
    pub(super) fn plan_monitor(&mut self, observer: &'a Observer) {
        let program = self.program;
        let messages = observer.channels.iter().map(|channel| {
            let data = &program.channels[channel.0 as usize];
            (Observable::Message(*channel), data.name.to_string(), data.payload.clone(), data.location)
        });
        let calls = program.externs.iter().enumerate().map(|(number, data)| {
            let types = data.parameters.iter().map(|(ty, _)| *ty).chain(data.result).collect();
            (Observable::Call(ExternId(number as u32)), data.name.to_string(), types, Location::default())
        });
        let mut inlines = BTreeMap::new();
        for (observable, name, types, location) in messages.chain(calls).collect::<Vec<_>>() {
            inlines.insert(observable, self.names.claim(&format!("observe_{name}")));
            let leaves = |ty: &TypeId| memory::leaves(&program.types, *ty);
            let what = types.iter().flat_map(leaves).find_map(|leaf| match leaf.kind {
                Kind::Reference(_) => Some("objects, which cannot be compared"),
                Kind::Int(IntType::U64 | IntType::I64) => Some("numbers of 64 bits, which Promela has not"),
                Kind::Int(_) | Kind::Bool | Kind::Pid(_) | Kind::Tag | Kind::Length(_) => None,
            });
            if let Some(what) = what {
                let message = format!("the visible action `{name}` has {what}");
                self.refuse(location, message, "the built-in engine does it: leave out `--engine spin`");
            }
        }
        self.monitor = Some(Monitor { observer, variable: self.names.claim("monitor_state"), inlines });
    }

    /// Whether messages of a channel are visible actions.
    pub(super) fn is_observed(&self, channel: ChannelId) -> bool {
        self.monitor.as_ref().is_some_and(|monitor| monitor.inlines.contains_key(&Observable::Message(channel)))
    }

    /// The statement that reports a visible action to the monitor.
    pub(super) fn observe(&self, observable: Observable, numbers: &[String]) -> Option<String> {
        let name = self.monitor.as_ref()?.inlines.get(&observable)?;
        Some(format!("{name}({});", numbers.join(", ")))
    }
}

/// Declares the state of the monitor, and an `inline` of its transitions for each visible action.
pub(super) fn declare(plan: &Plan<'_>, body: &Lines, lines: &mut Lines) {
    let Some(monitor) = &plan.monitor else { return };
    let observer = monitor.observer;
    let mut transitions: BTreeMap<Observable, BTreeMap<(u32, u32), Vec<usize>>> = BTreeMap::new();
    for (from, edges) in observer.edges.iter().enumerate() {
        for (event, to) in edges {
            let observable = match &observer.events[*event as usize] {
                Event::Message(channel, _) => Observable::Message(*channel),
                Event::Call(function, ..) => Observable::Call(*function),
            };
            transitions.entry(observable).or_default().entry((*event, *to)).or_default().push(from);
        }
    }
    let mut total = 0;
    lines.plain(format!("int {};", monitor.variable));
    for (observable, name) in &monitor.inlines {
        let places = body.lines.iter().filter(|line| line.text.starts_with(&format!("{name}("))).count();
        if places == 0 {
            continue;
        }
        let transitions = transitions.get(observable);
        let width = width(plan, *observable);
        let parameters: Vec<String> = (0..width).map(|number| format!("{name}_{number}")).collect();
        lines.plain(format!("inline {name}({}) {{", parameters.join(", ")));
        lines.plain("  if");
        for ((event, to), from) in transitions.into_iter().flatten() {
            total += places;
            let mut conditions = vec![among(&monitor.variable, from)];
            let numbers = numbers(plan, *observable, &observer.events[*event as usize]);
            for (parameter, number) in parameters.iter().zip(numbers) {
                // An argument of an `inline` is substituted as text.
                conditions.extend(number.map(|number| format!("({parameter}) == {}", Expr::number(number).text)));
            }
            lines.plain(format!("  :: {} -> {} = {to}", conditions.join(" && "), monitor.variable));
        }
        lines.push(
            Mark::None,
            Location::default(),
            "  :: else -> assert(false) /* no such action in the specification */",
        );
        lines.plain("  fi");
        lines.plain("}");
    }
    if total > MAX_LINES {
        let message = format!("the visible actions of the program take more than {MAX_LINES} lines");
        plan.refuse(Location::default(), message, "make the model smaller, or leave out `--engine spin`");
    }
}

/// A process that asserts, where the model is quiescent, that the specification can be quiescent too.
pub(super) fn declare_quiescence(plan: &Plan<'_>, lines: &mut Lines) {
    let Some(monitor) = &plan.monitor else { return };
    let quiescent: Vec<usize> =
        (0..monitor.observer.quiescent.len()).filter(|at| monitor.observer.quiescent[*at]).collect();
    let condition = if quiescent.is_empty() { "false".to_string() } else { among(&monitor.variable, &quiescent) };
    lines.plain("");
    lines.plain("active proctype quiescent() {");
    lines.plain(format!("end_quiescent: timeout -> assert({condition})"));
    lines.plain("}");
}

/// The condition that a variable is one of these numbers, which are in order.
fn among(variable: &str, numbers: &[usize]) -> String {
    let mut parts = Vec::new();
    let mut rest = numbers;
    while let [first, ..] = rest {
        let run = rest.iter().enumerate().take_while(|(index, number)| **number == first + index).count();
        parts.push(match run {
            1 => format!("{variable} == {first}"),
            _ => format!("({variable} >= {first} && {variable} <= {})", first + run - 1),
        });
        rest = &rest[run..];
    }
    if parts.len() == 1 { parts.remove(0) } else { format!("({})", parts.join(" || ")) }
}

fn types(plan: &Plan<'_>, observable: Observable) -> Vec<TypeId> {
    match observable {
        Observable::Message(channel) => plan.program.channels[channel.0 as usize].payload.clone(),
        Observable::Call(function) => {
            let data = &plan.program.externs[function.0 as usize];
            data.parameters.iter().map(|(ty, _)| *ty).chain(data.result).collect()
        }
    }
}

/// How many numbers a visible action has.
fn width(plan: &Plan<'_>, observable: Observable) -> usize {
    let leaves = types(plan, observable).into_iter().flat_map(|ty| memory::leaves(&plan.program.types, ty));
    leaves.map(|leaf| leaf.count as usize).sum()
}

/// The numbers of an event; none where the value has no such part.
fn numbers(plan: &Plan<'_>, observable: Observable, event: &Event) -> Vec<Option<i128>> {
    let data: Vec<&Datum> = match event {
        Event::Message(_, message) => message.iter().collect(),
        Event::Call(_, given, result) => given.iter().chain(result).collect(),
    };
    let leaves = types(plan, observable).into_iter().zip(data).flat_map(|(ty, datum)| leaves(plan, ty, Some(datum)));
    leaves.flatten().collect()
}

/// A value's numbers by leaf, as `memory` lays them out.
fn leaves(plan: &Plan<'_>, ty: TypeId, datum: Option<&Datum>) -> Vec<Vec<Option<i128>>> {
    let types = &plan.program.types;
    let part = |ty: &Option<TypeId>, datum: Option<&Datum>| ty.map_or_else(Vec::new, |ty| leaves(plan, ty, datum));
    match (types.get(ty), datum) {
        (_, Some(Datum::Int(number))) => vec![vec![Some(*number)]],
        (_, Some(Datum::Bool(holds))) => vec![vec![Some(i128::from(*holds))]],
        (_, Some(Datum::Pid(instance))) => vec![vec![Some(i128::from(*instance))]],
        (Type::Bytes { bound }, Some(Datum::Bytes(bytes))) => {
            let content = bytes.iter().map(|byte| Some(i128::from(*byte))).chain(std::iter::repeat(None));
            vec![vec![Some(bytes.len() as i128)], content.take(*bound as usize).collect()]
        }
        (Type::Record(id), Some(Datum::Record(fields))) => {
            let parts = types.aggregate(*id).parts.iter().zip(fields);
            parts.flat_map(|((_, ty), field)| part(ty, Some(field))).collect()
        }
        (Type::Union(id), Some(Datum::Union(tag, payload))) => {
            let parts = types.aggregate(*id).parts.iter().enumerate();
            let parts =
                parts.flat_map(|(number, (_, ty))| part(ty, payload.as_deref().filter(|_| number == *tag as usize)));
            std::iter::once(vec![Some(i128::from(*tag))]).chain(parts).collect()
        }
        (Type::Array { element, .. }, Some(Datum::Array(elements))) => {
            let mut columns: Vec<Vec<Option<i128>>> = Vec::new();
            for datum in elements {
                let own = leaves(plan, *element, Some(datum));
                columns.resize(own.len(), Vec::new());
                columns.iter_mut().zip(own).for_each(|(column, own)| column.extend(own));
            }
            columns
        }
        // Parts of a union that its tag excludes.
        (_, _) => memory::leaves(types, ty).iter().map(|leaf| vec![None; leaf.count as usize]).collect(),
    }
}

/// The texts of numbers.
pub(super) fn texts(numbers: &[Expr]) -> Vec<String> {
    numbers.iter().map(|number| number.text.clone()).collect()
}
