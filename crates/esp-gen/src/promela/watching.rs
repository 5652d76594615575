//! Another program beside the model, as what others can see of it: a variable says where that one is, and each thing that
//! is seen of the model must be possible there.
//!
//! ```text
//!   inline see_sendC(seen_0) {
//!     if
//!     :: seen == 3 && (seen_0) == 7 -> seen = 4
//!     :: else -> assert(false)
//!     fi
//!   }
//! ```

use super::expression::Expr;
use super::lines::{Lines, Mark};
use super::memory::{self, Kind};
use super::plan::Plan;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::observer::{Event, Observer};
use quaject_esp_ir::ir::*;
use std::collections::BTreeMap;

/// Most ways to go on, at all places where something is seen: each is a line there.
const MOST_LINES: usize = 50_000;

/// Where something is seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Sight {
    Message(ChannelId),
    Call(ExternId),
}

/// The other program.
pub(super) struct Watching<'a> {
    observer: &'a Observer,
    /// The variable that says where it is.
    variable: String,
    sees: BTreeMap<Sight, String>,
}

impl<'a> Plan<'a> {
    /// Plans for another program to be run beside this one.
    pub(super) fn watch(&mut self, observer: &'a Observer) {
        let program = self.program;
        let messages = observer.channels.iter().map(|channel| {
            let data = &program.channels[channel.0 as usize];
            (Sight::Message(*channel), data.name.to_string(), data.payload.clone(), data.location)
        });
        let calls = program.externs.iter().enumerate().map(|(number, data)| {
            let types = data.parameters.iter().map(|(ty, _)| *ty).chain(data.result).collect();
            (Sight::Call(ExternId(number as u32)), data.name.to_string(), types, Location::default())
        });
        let mut sees = BTreeMap::new();
        for (sight, name, types, location) in messages.chain(calls).collect::<Vec<_>>() {
            sees.insert(sight, self.names.claim(&format!("see_{name}")));
            let leaves = |ty: &TypeId| memory::leaves(&program.types, *ty);
            let what = types.iter().flat_map(leaves).find_map(|leaf| match leaf.kind {
                Kind::Reference(_) => Some("objects, which cannot be compared"),
                Kind::Int(IntType::U64 | IntType::I64) => Some("numbers of 64 bits, which Promela has not"),
                Kind::Int(_) | Kind::Bool | Kind::Pid(_) | Kind::Tag | Kind::Length(_) => None,
            });
            if let Some(what) = what {
                let message = format!("what is seen at `{name}` holds {what}");
                self.refuse(location, message, "the built-in engine does it: leave out `--engine spin`");
            }
        }
        self.watching = Some(Watching { observer, variable: self.names.claim("seen"), sees });
    }

    /// Whether messages of a channel are seen.
    pub(super) fn is_watched(&self, channel: ChannelId) -> bool {
        self.watching.as_ref().is_some_and(|watching| watching.sees.contains_key(&Sight::Message(channel)))
    }

    /// The statement by which something is seen.
    pub(super) fn see(&self, sight: Sight, numbers: &[String]) -> Option<String> {
        let name = self.watching.as_ref()?.sees.get(&sight)?;
        Some(format!("{name}({});", numbers.join(", ")))
    }
}

/// Where the other program is, and how it goes on.
pub(super) fn declare(plan: &Plan<'_>, body: &Lines, lines: &mut Lines) {
    let Some(watching) = &plan.watching else { return };
    let observer = watching.observer;
    let mut ways: BTreeMap<Sight, BTreeMap<(u32, u32), Vec<usize>>> = BTreeMap::new();
    for (from, edges) in observer.edges.iter().enumerate() {
        for (event, to) in edges {
            let sight = match &observer.events[*event as usize] {
                Event::Message(channel, _) => Sight::Message(*channel),
                Event::Call(function, ..) => Sight::Call(*function),
            };
            ways.entry(sight).or_default().entry((*event, *to)).or_default().push(from);
        }
    }
    let mut total = 0;
    lines.plain(format!("int {};", watching.variable));
    for (sight, name) in &watching.sees {
        let places = body.lines.iter().filter(|line| line.text.starts_with(&format!("{name}("))).count();
        if places == 0 {
            continue;
        }
        let ways = ways.get(sight);
        let width = width(plan, *sight);
        let parameters: Vec<String> = (0..width).map(|number| format!("{name}_{number}")).collect();
        lines.plain(format!("inline {name}({}) {{", parameters.join(", ")));
        lines.plain("  if");
        for ((event, to), from) in ways.into_iter().flatten() {
            total += places;
            let mut conditions = vec![among(&watching.variable, from)];
            let numbers = numbers(plan, *sight, &observer.events[*event as usize]);
            for (parameter, number) in parameters.iter().zip(numbers) {
                // What is given is put in as it is written.
                conditions.extend(number.map(|number| format!("({parameter}) == {}", Expr::number(number).text)));
            }
            lines.plain(format!("  :: {} -> {} = {to}", conditions.join(" && "), watching.variable));
        }
        lines.push(Mark::None, Location::default(), "  :: else -> assert(false) /* nothing like it there */");
        lines.plain("  fi");
        lines.plain("}");
    }
    if total > MOST_LINES {
        let message = format!("what others see of the program takes more than {MOST_LINES} lines to say");
        plan.refuse(Location::default(), message, "make the model smaller, or leave out `--engine spin`");
    }
}

/// Who looks whether the other program can stand still where this one does.
pub(super) fn stands(plan: &Plan<'_>, lines: &mut Lines) {
    let Some(watching) = &plan.watching else { return };
    let stands: Vec<usize> = (0..watching.observer.stands.len()).filter(|at| watching.observer.stands[*at]).collect();
    let condition = if stands.is_empty() { "false".to_string() } else { among(&watching.variable, &stands) };
    lines.plain("");
    lines.plain("active proctype stands() {");
    lines.plain(format!("end_stands: timeout -> assert({condition})"));
    lines.plain("}");
}

/// That a variable is one of these, which are in order.
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

fn types(plan: &Plan<'_>, sight: Sight) -> Vec<TypeId> {
    match sight {
        Sight::Message(channel) => plan.program.channels[channel.0 as usize].payload.clone(),
        Sight::Call(function) => {
            let data = &plan.program.externs[function.0 as usize];
            data.parameters.iter().map(|(ty, _)| *ty).chain(data.result).collect()
        }
    }
}

/// How many numbers are seen.
fn width(plan: &Plan<'_>, sight: Sight) -> usize {
    let leaves = types(plan, sight).into_iter().flat_map(|ty| memory::leaves(&plan.program.types, ty));
    leaves.map(|leaf| leaf.count as usize).sum()
}

/// What each of them is; nothing for those that mean nothing.
fn numbers(plan: &Plan<'_>, sight: Sight, event: &Event) -> Vec<Option<i128>> {
    let data: Vec<&Datum> = match event {
        Event::Message(_, message) => message.iter().collect(),
        Event::Call(_, given, result) => given.iter().chain(result).collect(),
    };
    let leaves = types(plan, sight).into_iter().zip(data).flat_map(|(ty, datum)| leaves(plan, ty, Some(datum)));
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
        // What a union does not hold now.
        (_, _) => memory::leaves(types, ty).iter().map(|leaf| vec![None; leaf.count as usize]).collect(),
    }
}

/// A number as what is seen.
pub(super) fn texts(numbers: &[Expr]) -> Vec<String> {
    numbers.iter().map(|number| number.text.clone()).collect()
}
