//! Batches: several turns of a fused process's loop at once, where nobody can tell. A way once round the loop is taken
//! that meets no channel of the world, makes no object and cannot fault; then all that several turns have to ask is
//! asked first, and what they store comes after it as straight code, in which constants, keys and positions of state
//! machines are folded. If anything asked is not so, nothing has been stored, and the loop goes on one turn at a time.
//!
//! ```text
//!   batch(p..):  p at its constant? enough elements left? room without wrapping?    -> else loop(p..)
//!                guards of turn 1 and .. and turn n                                 -> else loop(p..)
//!                what turns 1 to n store; batch(p after n turns)
//!   loop(p..):   as it was; back to batch(p..)
//! ```
//!
//! A loop is looked at by what its instructions do. Nothing here knows a program, a filter or a checksum.

mod cycle;
mod fill;
mod insert;
mod linear;
mod rows;
mod unroll;

use crate::facts::Fact;
use crate::limits::code_size;
use crate::ranges::ranges;
use cycle::{Cycle, Loops, Way};
use insert::{Batch, blocks};
use linear::{chains, derive, fits, place, slice, tables_for};
use quaject_esp_ir::cfg::edges;
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{Body, Location, Op, Program, Terminator, TypeTable, Value};
use quaject_esp_ir::simplify_cfg::merge_and_number;
use quaject_esp_ir::text::location_text;
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use unroll::Unrolled;

/// Elements that a batch goes on by, at least, if that is not too much code.
const ELEMENTS: i128 = 16;
/// Turns of a batch.
const MOST_TURNS: usize = 64;
/// Turns after the last one whose guards are asked, too.
const MOST_AHEAD: usize = 3;
/// Instructions of one batch, before what is computed twice is dropped.
const MOST_INSTRUCTIONS: usize = 1500;
/// Batches of one process.
const MOST_BATCHES: usize = 4;
/// Bodies of more instructions and blocks are not looked at.
const LARGEST: usize = 20_000;
/// Constants that a parameter may begin with.
const MOST_CONSTANTS: usize = 8;

/// Why a loop is not batched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// It has something that a batch cannot have.
    Unbatchable(&'static str),
    /// No way round a loop reads a row of elements. One that only stores mostly ends before a batch would.
    NoRow,
    /// Constants are not the same again after few turns.
    NoPeriod,
    /// Too much code.
    TooLarge,
    /// Overflow is a fault, at its own place in the order of all that happens.
    Checked,
}

impl Reason {
    fn text(self) -> String {
        match self {
            Reason::Unbatchable(what) => format!("a loop has {what}"),
            Reason::NoRow => "no loop reads a row of elements".to_string(),
            Reason::NoPeriod => "the constants of a loop are not the same again after few turns".to_string(),
            Reason::TooLarge => format!("it would be more than {MOST_INSTRUCTIONS} instructions"),
            Reason::Checked => "overflow is checked at each operation".to_string(),
        }
    }
}

/// What became of a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attempt {
    /// Its name.
    pub process: SmolStr,
    /// Its batches, or why there are none.
    pub result: Result<Vec<Batched>, Reason>,
}

/// A batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Batched {
    /// Where its loop is.
    pub location: Location,
    /// Turns at once.
    pub turns: usize,
    /// Elements that they go on by.
    pub elements: usize,
    /// Steps of a linear recurrence through a table that are looked up at once; 0 if there is none.
    pub steps: usize,
    /// Instructions and ends of its blocks.
    pub instructions: usize,
}

impl Attempt {
    /// What became of it, in one line.
    pub fn text(&self, program: &Program) -> String {
        match &self.result {
            Err(reason) => format!("not batched: {}: {}", self.process, reason.text()),
            Ok(batches) => {
                let batch = |batch: &Batched| {
                    let place = location_text(program, batch.location);
                    let steps = match batch.steps {
                        0 => String::new(),
                        steps => format!(", {steps} steps of a linear table at once"),
                    };
                    let Batched { turns, elements, instructions, .. } = batch;
                    format!("{elements} elements in {turns} turns at {place}{steps}, {instructions} instructions more")
                };
                let batches: Vec<String> = batches.iter().map(batch).collect();
                format!("batched: {}: {}", self.process, batches.join("; "))
            }
        }
    }
}

/// Makes batches in all processes from this one on; what became of them.
pub fn batch(program: &mut Program, first: usize, checked: bool) -> Vec<Attempt> {
    let Program { types, processes, .. } = program;
    let mut attempts = Vec::new();
    for process in processes.iter_mut().skip(first) {
        let result = match (checked, code_size(&process.body) <= LARGEST) {
            (true, _) => Err(Reason::Checked),
            (false, false) => Err(Reason::TooLarge),
            (false, true) => batch_body(&mut process.body, types),
        };
        attempts.push(Attempt { process: process.name.clone(), result });
    }
    attempts
}

/// Makes batches of a body's loops; at least one, or why there is none.
pub fn batch_body(body: &mut Body, types: &TypeTable) -> Result<Vec<Batched>, Reason> {
    if body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Enter(_) | Terminator::Leave(_))) {
        return Err(Reason::Unbatchable("a fast path"));
    }
    let mut made = Vec::new();
    let mut done = FxHashSet::default();
    // Of the reasons, that of the loop of which most was understood.
    let mut reason = (0, Reason::NoRow);
    while made.len() < MOST_BATCHES {
        let dominators = Dominators::new(body);
        let loops = Loops::new(body, types, &dominators);
        let open = |(header, _): &(usize, Vec<bool>)| !done.contains(header);
        let Some(number) = loops.loops.iter().position(open) else { break };
        let header = loops.loops[number].0;
        done.insert(header);
        let known = ranges(body, types, false, &[]);
        for cycle in loops.cycles(body, number) {
            match batch_cycle(body, types, (&dominators, &loops), &known, &cycle) {
                Ok((batched, entry)) => {
                    made.push(batched);
                    done.insert(entry);
                    break;
                }
                Err((understood, why)) if understood >= reason.0 => reason = (understood, why),
                Err(_) => {}
            }
        }
    }
    if made.is_empty() {
        return Err(reason.1);
    }
    *body = merge_and_number(std::mem::take(body));
    Ok(made)
}

/// A batch of this cycle; its number of instructions that were understood and the reason, if there can be none.
fn batch_cycle(
    body: &mut Body,
    types: &TypeTable,
    (dominators, loops): (&Dominators, &Loops),
    known: &[Option<Fact>],
    cycle: &Cycle,
) -> Result<(Batched, usize), (usize, Reason)> {
    let header = cycle.blocks[0].0;
    let plan = plan(body, types, known, loops, cycle)?;
    let mut unrolled = Unrolled::new((body, types), known, cycle, &plan.at);
    let turns = |unrolled: &mut Unrolled<'_>| (0..plan.turns).try_for_each(|_| unrolled.turn(cycle));
    turns(&mut unrolled).map_err(|reason| (0, reason))?;
    let found = chains(&unrolled, types, body, &unrolled.results(cycle));
    // Tables come first, as their values are there before those of the batch.
    let mut changed = body.clone();
    let mut tables: Vec<linear::Tables> = Vec::new();
    let mut sliced = Vec::new();
    for (number, chain) in found {
        let table = chain.table;
        let index = match tables.iter().position(|tables| tables.table == table) {
            Some(index) => Some(index),
            None => place(body, dominators, table.slot, header)
                .filter(|_| tables.is_empty() && fits(types, &table))
                .map(|at| {
                    tables.push(derive(&mut changed, table, tables_for(&chain), at));
                    tables.len() - 1
                }),
        };
        sliced.extend(index.map(|index| (number, chain, index)));
    }
    let mut unrolled = Unrolled::new((&changed, types), known, cycle, &plan.at);
    turns(&mut unrolled).and_then(|()| unrolled.finish()).map_err(|reason| (unrolled.computed.len(), reason))?;
    let mut results = unrolled.results(cycle);
    let mut steps = 0;
    let again = chains(&unrolled, types, &changed, &results);
    for _ in 0..MOST_AHEAD {
        if unrolled.guards.is_empty() || unrolled.guards().1.len() >= plan.turns {
            break;
        }
        unrolled.look_ahead(cycle).map_err(|reason| (unrolled.computed.len(), reason))?;
    }
    for (number, _, index) in &sliced {
        let Some((_, chain)) = again.iter().find(|(other, _)| other == number) else { continue };
        let tables = &tables[*index];
        let first = unrolled.parameters[*number];
        results[*number] = slice(&mut unrolled, chain, tables, first);
        steps = steps.max(tables.slots.len());
    }
    let understood = unrolled.computed.len();
    let batch = Batch { unrolled, results, at: plan.at, tables };
    let blocks = blocks(&changed, types, header, batch).map_err(|reason| (understood, reason))?;
    let instructions = blocks.size();
    let entry = blocks.insert(&mut changed);
    *body = changed;
    let location = body.blocks[header].location;
    Ok((Batched { location, turns: plan.turns, elements: plan.elements, steps, instructions }, entry))
}

/// How a cycle is batched.
struct Plan {
    /// Parameters of the header that have to be constants, by number.
    at: BTreeMap<usize, i128>,
    /// Turns, after which they are the same again.
    turns: usize,
    /// Elements that all turns go on by.
    elements: usize,
}

fn plan(
    body: &Body,
    types: &TypeTable,
    known: &[Option<Fact>],
    loops: &Loops,
    cycle: &Cycle,
) -> Result<Plan, (usize, Reason)> {
    let header = cycle.blocks[0].0;
    let once = |at: &BTreeMap<usize, i128>| {
        let mut unrolled = Unrolled::new((body, types), known, cycle, at);
        match unrolled.turn(cycle) {
            Ok(()) => Ok(unrolled),
            Err(reason) => Err((unrolled.computed.len(), reason)),
        }
    };
    let unrolled = once(&BTreeMap::new())?;
    // Whoever goes round an inner loop mostly does: a way past it is not the common one.
    if unrolled.asked.iter().any(|(block, holds)| loops.lead_to_inner(body, cycle, *block, Way::If(!holds))) {
        return Err((unrolled.computed.len(), Reason::Unbatchable("an inner loop that its data decide on")));
    }
    let mut at = BTreeMap::new();
    let mut open = Vec::new();
    let mut advance = 0;
    for (number, (before, after)) in unrolled.parameters.iter().zip(unrolled.results(cycle)).enumerate() {
        match (unrolled.offset(after), unrolled.as_constant(after)) {
            (_, Some(constant)) => {
                at.insert(number, constant);
            }
            ((base, offset), None) if base == *before => {
                if unrolled.ranges.keys().any(|(value, _)| value == before) {
                    advance = advance.max(offset);
                }
            }
            ((_, _), None) => open.push(number),
        }
    }
    if advance <= 0 || unrolled.read == 0 {
        return Err((0, Reason::NoRow));
    }
    for number in open {
        let parameter = body.blocks[header].parameters[number];
        for constant in constants(body, header, parameter) {
            let mut with = at.clone();
            with.insert(number, constant);
            let is_constant = |unrolled: Unrolled<'_>| unrolled.as_constant(unrolled.results(cycle)[number]).is_some();
            if once(&with).is_ok_and(is_constant) {
                at = with;
                break;
            }
        }
    }
    let mut unrolled = Unrolled::new((body, types), known, cycle, &at);
    let mut turns = 0;
    for turn in 1..=MOST_TURNS {
        unrolled.turn(cycle).map_err(|reason| (unrolled.computed.len(), reason))?;
        if unrolled.computed.len() + unrolled.stored.len() > MOST_INSTRUCTIONS {
            break;
        }
        let results = unrolled.results(cycle);
        if at.iter().all(|(number, constant)| unrolled.as_constant(results[*number]) == Some(*constant)) {
            turns = turn;
            if turn as i128 * advance >= ELEMENTS {
                break;
            }
        }
    }
    match turns {
        0 if unrolled.computed.len() > MOST_INSTRUCTIONS => Err((unrolled.computed.len(), Reason::TooLarge)),
        0 => Err((unrolled.computed.len(), Reason::NoPeriod)),
        1 => Err((unrolled.computed.len(), Reason::TooLarge)),
        _ => Ok(Plan { at, turns, elements: turns * advance as usize }),
    }
}

/// Constants that flow into a parameter of a block.
fn constants(body: &Body, block: usize, parameter: Value) -> Vec<i128> {
    let mut of: FxHashMap<Value, i128> = FxHashMap::default();
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Constant(constant), Some(result)) = (&instruction.op, instruction.result) {
            of.insert(result, *constant);
        }
    }
    let owner: FxHashMap<Value, (usize, usize)> = body
        .blocks
        .iter()
        .enumerate()
        .flat_map(|(index, block)| block.parameters.iter().enumerate().map(move |(at, value)| (*value, (index, at))))
        .collect();
    let mut incoming: Vec<Vec<Vec<Value>>> = vec![Vec::new(); body.blocks.len()];
    for block in &body.blocks {
        for edge in edges(&block.terminator) {
            incoming[edge.to.0 as usize].push(edge.arguments.clone());
        }
    }
    let position = body.blocks[block].parameters.iter().position(|value| *value == parameter);
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut work: Vec<(usize, usize)> = position.map(|at| (block, at)).into_iter().collect();
    while let Some((block, at)) = work.pop() {
        if !seen.insert((block, at)) {
            continue;
        }
        for value in incoming[block].iter().filter_map(|arguments| arguments.get(at)) {
            match of.get(value) {
                Some(constant) if !found.contains(constant) => found.push(*constant),
                Some(_) => {}
                None => work.extend(owner.get(value)),
            }
        }
    }
    found.truncate(MOST_CONSTANTS);
    found
}
