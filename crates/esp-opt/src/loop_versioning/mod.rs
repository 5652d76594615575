//! Loop versioning: an unrolled version of a loop, in front of the original, which executes several iterations at once.
//! The version follows one path through the loop body: a path that communicates on no channel of the environment,
//! allocates nothing and cannot fault. All guards of its iterations are evaluated before any of their stores, which
//! follow as straight-line code with constants folded. If a guard fails nothing has been stored, and the original loop
//! executes one iteration; it is also the remainder loop.
//!
//! ```text
//!   unrolled(p..): p at its constant? enough elements? index does not wrap?    -> else original(p..)
//!                  guards of iterations 1 to n                                 -> else original(p..)
//!                  stores of iterations 1 to n; unrolled(p after n iterations)
//!   original(p..): unchanged; its back edge leads to unrolled(p..)
//! ```
//!
//! ```text
//!   loop_paths        the candidates: paths once through a loop body
//!   memset_idiom      inner loops that only store one byte repeatedly
//!   unrolled          symbolic evaluation of the iterations: constants, base plus offset, guards, stores
//!     memset_stores     a memset loop as two wide stores
//!   recurrences       linear recurrences through a table: independent lookups (slicing)
//!   superwords        bytes combined into words (superword-level parallelism)
//!   emit              the blocks of the version
//! ```
//!
//! Candidates are recognised by their instructions alone; no program, filter or checksum is known here.

mod emit;
mod loop_paths;
mod memset_idiom;
mod memset_stores;
mod recurrences;
mod superwords;
mod unrolled;

use crate::facts::Fact;
use crate::limits::code_size;
use emit::{UnrolledVersion, version_blocks};
use loop_paths::{EdgeChoice, LoopPath, Loops};
use quaject_esp_ir::cfg::edges;
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::intervals::intervals;
use quaject_esp_ir::ir::{Body, Location, Op, Program, Terminator, TypeTable, Value};
use quaject_esp_ir::simplify_cfg::merge_and_number;
use recurrences::{derive_tables, emit_lookups, final_definition, has_index_type, recurrences, table_count};
use rustc_hash::{FxHashMap, FxHashSet};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use unrolled::Unrolled;

/// The minimal number of elements that an unrolled version processes, if the code size allows it.
const MIN_ELEMENTS: i128 = 16;
/// The maximal number of iterations of an unrolled version.
const MAX_ITERATIONS: usize = 64;
/// The maximal number of iterations after the last one whose guards are evaluated as well.
const MAX_LOOKAHEAD: usize = 3;
/// The maximal number of instructions of one unrolled version, before common subexpressions are dropped.
pub(crate) const MAX_INSTRUCTIONS: usize = 1500;
/// The maximal number of unrolled loops of one process.
const MAX_LOOPS: usize = 4;
/// Bodies with more instructions and terminators are not analysed.
const MAX_BODY_SIZE: usize = 20_000;
/// The maximal number of constants that are tried as the initial value of a parameter.
const MAX_INITIAL_CONSTANTS: usize = 8;

/// Why a loop is not unrolled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UnrollRefusal {
    /// The loop has a construct that the unrolled version cannot express.
    Unsupported(&'static str),
    /// No path through a loop reads consecutive elements. The trip count of a loop that only stores is usually below
    /// that of an unrolled version.
    NoStream,
    /// The constants of the loop do not recur within few iterations.
    NoPeriod,
    /// The code would be too large.
    TooLarge,
    /// Overflow is a fault, which has to occur in program order.
    Checked,
}

/// The result for a process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnrollAttempt {
    /// Its name.
    pub process: SmolStr,
    /// Its unrolled loops, or why there are none.
    pub result: Result<Vec<UnrolledLoop>, UnrollRefusal>,
}

/// An unrolled loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnrolledLoop {
    /// The location of the loop.
    pub location: Location,
    /// Iterations at once.
    pub iterations: usize,
    /// Elements that they process.
    pub elements: usize,
    /// Steps of a linear recurrence through a table that are looked up at once; 0 if there is none.
    pub recurrence_steps: usize,
    /// Instructions and terminators of the unrolled version.
    pub instructions: usize,
}

/// Unrolls loops of all processes from `first` on.
pub fn unroll_loops(program: &mut Program, first: usize, checked: bool) -> Vec<UnrollAttempt> {
    let Program { types, processes, .. } = program;
    let mut attempts = Vec::new();
    for process in processes.iter_mut().skip(first) {
        let result = match (checked, code_size(&process.body) <= MAX_BODY_SIZE) {
            (true, _) => Err(UnrollRefusal::Checked),
            (false, false) => Err(UnrollRefusal::TooLarge),
            (false, true) => unroll_body(&mut process.body, types),
        };
        attempts.push(UnrollAttempt { process: process.name.clone(), result });
    }
    attempts
}

/// Unrolls loops of a body; at least one, or why there is none.
pub fn unroll_body(body: &mut Body, types: &TypeTable) -> Result<Vec<UnrolledLoop>, UnrollRefusal> {
    if body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Enter(_) | Terminator::Leave(_))) {
        return Err(UnrollRefusal::Unsupported("a fast path"));
    }
    let mut unrolled_loops = Vec::new();
    let mut visited_headers = FxHashSet::default();
    // The reported reason is that of the loop in which the most instructions were analysed.
    let mut reason = (0, UnrollRefusal::NoStream);
    while unrolled_loops.len() < MAX_LOOPS {
        let dominators = Dominators::new(body);
        let loops = Loops::new(body, types, &dominators);
        let is_unvisited = |(header, _): &(usize, Vec<bool>)| !visited_headers.contains(header);
        let Some(number) = loops.loops.iter().position(is_unvisited) else { break };
        let header = loops.loops[number].0;
        visited_headers.insert(header);
        let known = intervals(body, types, false, &[]);
        for path in loops.paths(body, number) {
            match unroll_path(body, types, (&dominators, &loops), &known, &path) {
                Ok((unrolled_loop, entry)) => {
                    unrolled_loops.push(unrolled_loop);
                    visited_headers.insert(entry);
                    break;
                }
                Err((analysed, refusal)) if analysed >= reason.0 => reason = (analysed, refusal),
                Err(_) => {}
            }
        }
    }
    if unrolled_loops.is_empty() {
        return Err(reason.1);
    }
    *body = merge_and_number(std::mem::take(body));
    Ok(unrolled_loops)
}

/// Unrolls this path. The error has the number of instructions that were analysed and the reason.
fn unroll_path(
    body: &mut Body,
    types: &TypeTable,
    (dominators, loops): (&Dominators, &Loops),
    known: &[Option<Fact>],
    path: &LoopPath,
) -> Result<(UnrolledLoop, usize), (usize, UnrollRefusal)> {
    let header = path.blocks[0].0;
    let plan = plan(body, types, known, loops, path)?;
    let mut unrolled = Unrolled::new((body, types), known, path, &plan.entry_constants);
    let iterations = |unrolled: &mut Unrolled<'_>| (0..plan.iterations).try_for_each(|_| unrolled.iteration(path));
    iterations(&mut unrolled).map_err(|reason| (0, reason))?;
    let first_pass = recurrences(&unrolled, types, body, &unrolled.results(path));
    // Tables are emitted first: their values are defined before the unrolled version.
    let mut changed = body.clone();
    let mut tables: Vec<recurrences::Tables> = Vec::new();
    let mut sliced = Vec::new();
    for (number, recurrence) in first_pass {
        let table = recurrence.table;
        let index = match tables.iter().position(|tables| tables.table == table) {
            Some(index) => Some(index),
            None => final_definition(body, dominators, table.slot, header)
                .filter(|_| tables.is_empty() && has_index_type(types, &table))
                .map(|at| {
                    tables.push(derive_tables(&mut changed, table, table_count(&recurrence), at));
                    tables.len() - 1
                }),
        };
        sliced.extend(index.map(|index| (number, recurrence, index)));
    }
    let mut unrolled = Unrolled::new((&changed, types), known, path, &plan.entry_constants);
    iterations(&mut unrolled).and_then(|()| unrolled.finish()).map_err(|reason| (unrolled.computed.len(), reason))?;
    let mut results = unrolled.results(path);
    let mut recurrence_steps = 0;
    let second_pass = recurrences(&unrolled, types, &changed, &results);
    for _ in 0..MAX_LOOKAHEAD {
        if unrolled.guards.is_empty() || unrolled.guards().1.len() >= plan.iterations {
            break;
        }
        unrolled.look_ahead(path).map_err(|reason| (unrolled.computed.len(), reason))?;
    }
    for (number, _, index) in &sliced {
        let Some((_, recurrence)) = second_pass.iter().find(|(other, _)| other == number) else { continue };
        let tables = &tables[*index];
        let first = unrolled.parameters[*number];
        results[*number] = emit_lookups(&mut unrolled, recurrence, tables, first);
        recurrence_steps = recurrence_steps.max(tables.slots.len());
    }
    let analysed = unrolled.computed.len();
    let version = UnrolledVersion { unrolled, results, entry_constants: plan.entry_constants, tables };
    let blocks = version_blocks(&changed, types, header, version).map_err(|reason| (analysed, reason))?;
    let instructions = blocks.size();
    let entry = blocks.insert(&mut changed);
    *body = changed;
    let location = body.blocks[header].location;
    Ok((
        UnrolledLoop { location, iterations: plan.iterations, elements: plan.elements, recurrence_steps, instructions },
        entry,
    ))
}

/// How a path is unrolled.
struct Plan {
    /// Parameters of the header that have to be constants, by number.
    entry_constants: BTreeMap<usize, i128>,
    /// Iterations after which the constants recur.
    iterations: usize,
    /// Elements that all iterations process.
    elements: usize,
}

fn plan(
    body: &Body,
    types: &TypeTable,
    known: &[Option<Fact>],
    loops: &Loops,
    path: &LoopPath,
) -> Result<Plan, (usize, UnrollRefusal)> {
    let header = path.blocks[0].0;
    let unroll_once = |constants: &BTreeMap<usize, i128>| {
        let mut unrolled = Unrolled::new((body, types), known, path, constants);
        match unrolled.iteration(path) {
            Ok(()) => Ok(unrolled),
            Err(reason) => Err((unrolled.computed.len(), reason)),
        }
    };
    let unrolled = unroll_once(&BTreeMap::new())?;
    // A path around an inner loop is rarely the frequent one.
    if unrolled
        .guarded_branches
        .iter()
        .any(|(block, holds)| loops.leads_to_inner_loop(body, path, *block, EdgeChoice::If(!holds)))
    {
        return Err((
            unrolled.computed.len(),
            UnrollRefusal::Unsupported("an inner loop whose execution depends on the data"),
        ));
    }
    let (entry_constants, stride) = entry_constants(&unrolled, body, header, path, &unroll_once)?;
    let mut unrolled = Unrolled::new((body, types), known, path, &entry_constants);
    let iterations = unroll_factor(&mut unrolled, path, &entry_constants, stride)?;
    Ok(Plan { entry_constants, iterations, elements: iterations * stride as usize })
}

/// Executes one iteration symbolically under the assumption that these parameters of the header are constants. An error
/// carries how many values were computed before it.
type UnrollOnce<'f, 'a> = &'f dyn Fn(&BTreeMap<usize, i128>) -> Result<Unrolled<'a>, (usize, UnrollRefusal)>;

/// The header's parameters that are constants after one iteration, by number, with these constants; and the elements
/// that an iteration processes. `unrolled` is one iteration without any assumption.
fn entry_constants<'a>(
    unrolled: &Unrolled<'_>,
    body: &Body,
    header: usize,
    path: &LoopPath,
    unroll_once: UnrollOnce<'_, 'a>,
) -> Result<(BTreeMap<usize, i128>, i128), (usize, UnrollRefusal)> {
    let mut constants = BTreeMap::new();
    let mut undecided = Vec::new();
    let mut stride = 0;
    for (number, (before, after)) in unrolled.parameters.iter().zip(unrolled.results(path)).enumerate() {
        match (unrolled.offset(after), unrolled.as_constant(after)) {
            (_, Some(constant)) => {
                constants.insert(number, constant);
            }
            ((base, offset), None) if base == *before => {
                if unrolled.ranges.keys().any(|(value, _)| value == before) {
                    stride = stride.max(offset);
                }
            }
            ((_, _), None) => undecided.push(number),
        }
    }
    if stride <= 0 || unrolled.read == 0 {
        return Err((0, UnrollRefusal::NoStream));
    }
    for number in undecided {
        let parameter = body.blocks[header].parameters[number];
        for constant in reaching_constants(body, header, parameter) {
            let mut assumed = constants.clone();
            assumed.insert(number, constant);
            let is_constant = |unrolled: Unrolled<'_>| unrolled.as_constant(unrolled.results(path)[number]).is_some();
            if unroll_once(&assumed).is_ok_and(is_constant) {
                constants = assumed;
                break;
            }
        }
    }
    Ok((constants, stride))
}

/// The number of iterations to unroll: the constants recur after them, and they process [`MIN_ELEMENTS`] elements if
/// the code size allows it.
fn unroll_factor(
    unrolled: &mut Unrolled<'_>,
    path: &LoopPath,
    entry_constants: &BTreeMap<usize, i128>,
    stride: i128,
) -> Result<usize, (usize, UnrollRefusal)> {
    let mut iterations = 0;
    for iteration in 1..=MAX_ITERATIONS {
        unrolled.iteration(path).map_err(|reason| (unrolled.computed.len(), reason))?;
        if unrolled.computed.len() + unrolled.stored.len() > MAX_INSTRUCTIONS {
            break;
        }
        let results = unrolled.results(path);
        if entry_constants.iter().all(|(number, constant)| unrolled.as_constant(results[*number]) == Some(*constant)) {
            iterations = iteration;
            if iteration as i128 * stride >= MIN_ELEMENTS {
                break;
            }
        }
    }
    match iterations {
        0 if unrolled.computed.len() > MAX_INSTRUCTIONS => Err((unrolled.computed.len(), UnrollRefusal::TooLarge)),
        0 => Err((unrolled.computed.len(), UnrollRefusal::NoPeriod)),
        1 => Err((unrolled.computed.len(), UnrollRefusal::TooLarge)),
        _ => Ok(iterations),
    }
}

/// Constants that flow into a parameter of a block, through other parameters as well.
fn reaching_constants(body: &Body, block: usize, parameter: Value) -> Vec<i128> {
    let mut constants: FxHashMap<Value, i128> = FxHashMap::default();
    for instruction in body.blocks.iter().flat_map(|block| &block.instructions) {
        if let (Op::Constant(constant), Some(result)) = (&instruction.op, instruction.result) {
            constants.insert(result, *constant);
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
    let mut reaching = Vec::new();
    let mut visited = FxHashSet::default();
    let mut worklist: Vec<(usize, usize)> = position.map(|at| (block, at)).into_iter().collect();
    while let Some((block, at)) = worklist.pop() {
        if !visited.insert((block, at)) {
            continue;
        }
        for value in incoming[block].iter().filter_map(|arguments| arguments.get(at)) {
            match constants.get(value) {
                Some(constant) if !reaching.contains(constant) => reaching.push(*constant),
                Some(_) => {}
                None => worklist.extend(owner.get(value)),
            }
        }
    }
    reaching.truncate(MAX_INITIAL_CONSTANTS);
    reaching
}
