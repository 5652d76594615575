//! Other forms of a sample's program: its processes fused to state machines, and random fast paths made code. Each
//! behaviour of such a form has to be a behaviour of the program itself.

use crate::environment::{CALLS, ScriptedEnvironment};
use crate::generate::{Outcome as Visible, Sample};
use crate::interpret::Behaviour;
use fastrand::Rng;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Effect, Machine, State};
use quaject_esp_ir::ir::{Fault, HandOff, Location, MemoryMode, Program, SiteId};
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;
use quaject_esp_opt::groups::{fuse_all, fuse_if_schedule_independent};
use quaject_esp_opt::limits::Limits;
use quaject_esp_opt::loop_versioning::unroll_loops;
use quaject_esp_opt::observability::ScheduleIndependence;
use quaject_esp_opt::path::{Options, PathProgram, form_paths};
use quaject_esp_opt::path_exit::IterationCountPlacement;
use quaject_esp_opt::path_spec::{MemberSpec, PathElement, PathRegex, PathSpec, PathStatement};
use std::collections::HashSet;

/// The maximum number of states in the search for a run.
const MAX_STATES: usize = 4_000;

/// The form in which a program becomes code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Each process by itself, after the passes of the optimiser.
    Process,
    /// Likewise, with direct hand-off: a receiver that blocks switches to its sender.
    Direct,
    /// Connected processes fused into one.
    Automata,
    /// Likewise, if it is not observable, with direct hand-off: the same observable sequence as the program, faults
    /// included.
    Auto,
    /// Random fast paths.
    FastPath,
}

/// The program in that form; none if it has no such form.
///
/// # Errors
/// The errors of a form that is not well-formed.
pub fn transform(seed: u64, program: &Program, mode: Mode) -> Result<Option<Program>, String> {
    let made = match mode {
        Mode::Process => Some(quaject_esp::optimise(program.clone(), false)),
        Mode::Direct => {
            let optimised = quaject_esp::optimise(program.clone(), false);
            Some(Program { hand_off: HandOff::Direct, ..optimised })
        }
        Mode::Automata => {
            let mut fused = before(seed, program);
            let first_fused = fused.processes.len();
            let attempts = fuse_all(&mut fused, false, limits());
            let is_fused = attempts.iter().any(|attempt| attempt.is_fused());
            // Loops are unrolled with and without the passes before.
            if !seed.is_multiple_of(3) {
                unroll_loops(&mut fused, first_fused, false);
            }
            is_fused.then_some(fused)
        }
        Mode::Auto => {
            let mut fused = before(seed, program);
            let independence = ScheduleIndependence::analyze(&fused, false);
            let first_fused = fused.processes.len();
            let attempts = fuse_if_schedule_independent(&mut fused, false, limits(), &independence);
            if !seed.is_multiple_of(3) {
                unroll_loops(&mut fused, first_fused, false);
            }
            fused.hand_off = if independence.holds() { HandOff::Direct } else { HandOff::Queued };
            (independence.holds() || attempts.iter().any(|attempt| attempt.is_fused())).then_some(fused)
        }
        Mode::FastPath => {
            // A third of the paths have a forced side exit.
            let forced = seed.is_multiple_of(3).then_some(IterationCountPlacement::Forced((seed / 3 % 24) as u32));
            with_path_counted(seed, &before(seed, program), Checks::Off, forced).map(|made| made.program)
        }
    };
    match made.as_ref().and_then(|made| Some((made, verify(made).into_iter().next()?))) {
        Some((made, error)) => {
            Err(format!("{mode:?} breaks a rule of the flow IR: {}\n{}", error.text(made), print(made)))
        }
        None => Ok(made),
    }
}

/// The program from which other forms are made: half of them are optimised first.
fn before(seed: u64, program: &Program) -> Program {
    if seed.is_multiple_of(2) { quaject_esp::optimise(program.clone(), false) } else { program.clone() }
}

/// The program with a random fast path; none if that path cannot be formed.
pub fn with_path(seed: u64, program: &Program, checks: Checks) -> Option<PathProgram> {
    with_path_counted(seed, program, checks, None)
}

/// Likewise, with this placement of iteration counts, or else a random one.
fn with_path_counted(
    seed: u64,
    program: &Program,
    checks: Checks,
    iteration_counts: Option<IterationCountPlacement>,
) -> Option<PathProgram> {
    let mut rng = Rng::with_seed(seed);
    let specification = specification(&mut rng, program)?;
    let random =
        if rng.bool() { IterationCountPlacement::FeedbackVertices } else { IterationCountPlacement::EveryNode };
    let iteration_counts = iteration_counts.unwrap_or(random);
    let options = Options { checked: checks == Checks::On, limits: limits(), iteration_counts, ..Options::default() };
    let made = form_paths(program, &[specification], options);
    (!made.program.paths.is_empty()).then_some(made)
}

/// The limits for the code of samples.
fn limits() -> Limits {
    Limits { nodes: 500, instructions: 2_000, fuel: 100_000, ..Limits::default() }
}

/// A random specification, mostly of instances that communicate with each other.
fn specification(rng: &mut Rng, program: &Program) -> Option<PathSpec> {
    let sites = |instance: u32| {
        let (process, _) = program.process_of(instance).expect("only instances that there are");
        &program.processes[process.0 as usize].sites
    };
    let all: Vec<u32> = (0..program.instance_count()).filter(|instance| !sites(*instance).is_empty()).collect();
    let mut members = vec![rng.choice(&all).copied()?];
    for _ in 0..rng.usize(0..4) {
        let talks = |instance: &&u32| {
            let has_partner = |member: &u32| {
                sites(*member)
                    .iter()
                    .any(|a| sites(**instance).iter().any(|b| a.channel == b.channel && a.direction != b.direction))
            };
            !members.contains(instance) && members.iter().any(has_partner)
        };
        let near: Vec<u32> = all.iter().filter(talks).copied().collect();
        members.extend(rng.choice(&near).copied());
    }
    let parts: Vec<MemberSpec> =
        members.iter().map(|instance| part(rng, *instance, sites(*instance).len(), members.len())).collect();
    Some(PathSpec {
        name: "path".into(),
        max_iterations: [1, 2, 3, 1024][rng.usize(0..4)],
        bypass_interval: [1, 2, 64][rng.usize(0..3)],
        retry_limit: [0, 1, 8][rng.usize(0..3)],
        members: parts,
        function: None,
        location: Location::default(),
    })
}

fn part(rng: &mut Rng, instance: u32, sites: usize, members: usize) -> MemberSpec {
    let any = |rng: &mut Rng| PathStatement::Site(SiteId(rng.usize(0..sites) as u32));
    let element = |rng: &mut Rng, statement: PathStatement| {
        let yield_to = (rng.u32(0..16) == 0).then(|| rng.usize(0..members));
        PathElement { statement, predicate: None, peer: None, yield_to }
    };
    let start = any(rng);
    let statements: Vec<PathStatement> = (0..sites as u32)
        .map(|site| PathStatement::Site(SiteId(site)))
        .filter(|statement| *statement == start || rng.u32(0..3) > 0)
        .collect();
    // Most words end where they began, so that the path repeats.
    let exit: Vec<PathStatement> = if rng.u32(0..3) > 0 { vec![start] } else { vec![any(rng)] };
    let steps: Vec<PathStatement> = statements.iter().copied().filter(|statement| !exit.contains(statement)).collect();
    let one = |rng: &mut Rng| {
        let statement = *rng.choice(&steps).expect("only if there are steps");
        PathRegex::Element(element(rng, statement))
    };
    let follows = (!steps.is_empty() && rng.u32(0..5) > 0).then(|| match rng.u32(0..4) {
        0 => one(rng),
        1 => PathRegex::Sequence((0..rng.usize(1..4)).map(|_| one(rng)).collect()),
        2 => {
            let max = rng.bool().then(|| rng.u64(1..4));
            PathRegex::Repeat(Box::new(PathRegex::Choice((0..rng.usize(1..3)).map(|_| one(rng)).collect())), 0, max)
        }
        _ => {
            let all = steps.iter().map(|statement| PathRegex::Element(element(rng, *statement))).collect();
            PathRegex::Repeat(Box::new(PathRegex::Choice(all)), 0, None)
        }
    });
    let exit = exit.into_iter().map(|statement| PathElement { yield_to: None, ..element(rng, statement) }).collect();
    MemberSpec {
        instance,
        statements,
        start: PathElement { statement: start, predicate: None, peer: None, yield_to: None },
        follows,
        exit,
    }
}

/// The result of the comparison of a form with its program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agreement {
    /// The program has a run with the same behaviour.
    Included,
    /// No such run was found within the limit of states.
    Unknown,
}

/// Whether the program has a run with the behaviour of its form (trace inclusion); `plain` is its own behaviour under
/// the reference schedule.
///
/// # Errors
/// The difference.
pub fn agree(
    sample: &Sample,
    program: &Program,
    plain: &Behaviour,
    behaviour: &Behaviour,
) -> Result<Agreement, String> {
    let differ = || {
        let (messages, outcome) = (&plain.messages, &plain.outcome);
        format!("{messages:?}\n{outcome:?}\nin its other form:\n{:?}\n{:?}", behaviour.messages, behaviour.outcome)
    };
    if plain.messages == behaviour.messages && is_same(&plain.outcome, &behaviour.outcome) {
        return Ok(Agreement::Included);
    }
    // The order of calls depends on the schedule, even where messages are determined.
    if sample.outcome == Visible::Determined
        && (plain.has_faulted() || behaviour.has_faulted() || same_calls(plain, behaviour))
    {
        let same = match (&plain.outcome, &behaviour.outcome) {
            (Outcome::Faulted(a), Outcome::Faulted(b)) => {
                a.fault == b.fault || schedule_decides(a.fault, b.fault) || [a.fault, b.fault].contains(&Fault::Pool)
            }
            (Outcome::Faulted(report), _) | (_, Outcome::Faulted(report)) => report.fault == Fault::Pool,
            (a, b) => a == b && same_messages(program, plain, behaviour),
        };
        // Which process takes the last object of a pool can decide whether messages of the environment arrive: that
        // depends on the schedule, too.
        match same {
            true => return Ok(Agreement::Included),
            false if is_deadlock(&plain.outcome) || is_deadlock(&behaviour.outcome) => {}
            false => return Err(differ()),
        }
    }
    match search(sample, program, behaviour) {
        Some(true) => Ok(Agreement::Included),
        // The use of a freed object is detected only until it is allocated again: which one is allocated is
        // unspecified.
        Some(false) if uses_freed_object(program, plain) && is_prefix_on_each_channel(program, plain, behaviour) => {
            Ok(Agreement::Included)
        }
        // A deadlock of some members is reported when nothing can wake the other members of their group.
        Some(false) if is_deadlock(&plain.outcome) && is_prefix_on_each_channel(program, plain, behaviour) => {
            Ok(Agreement::Included)
        }
        Some(false) => Err(format!("no run shows it: {}", differ())),
        None => Ok(Agreement::Unknown),
    }
}

/// Whether a form has the same behaviour as the program: messages in their order, and outcome, with equal texts of
/// faults.
///
/// # Errors
/// The difference.
pub fn same(program: &Program, plain: &Behaviour, behaviour: &Behaviour) -> Result<(), String> {
    let same_end = match (&plain.outcome, &behaviour.outcome) {
        (Outcome::Faulted(plain), Outcome::Faulted(behaviour)) => plain.text(program) == behaviour.text(program),
        (plain, behaviour) => is_same(plain, behaviour),
    };
    if same_end && plain.messages == behaviour.messages {
        return Ok(());
    }
    let (messages, outcome) = (&plain.messages, &plain.outcome);
    Err(format!("{messages:?}\n{outcome:?}\nin its other form:\n{:?}\n{:?}", behaviour.messages, behaviour.outcome))
}

fn is_same(a: &Outcome, b: &Outcome) -> bool {
    match (a, b) {
        (Outcome::Faulted(a), Outcome::Faulted(b)) => a.fault == b.fault,
        // The report lists what each instance waits for, which depends on the schedule.
        (Outcome::Quiescent(_), Outcome::Quiescent(_)) => true,
        (a, b) => a == b,
    }
}

/// Whether the order in which processes run can decide which of two faults occurs first.
fn schedule_decides(a: Fault, b: Fault) -> bool {
    a != Fault::Deadlock && b != Fault::Deadlock
}

fn same_calls(a: &Behaviour, b: &Behaviour) -> bool {
    let calls = |behaviour: &Behaviour| {
        let calls = behaviour.messages.iter().filter(|(channel, _)| channel.0 >= CALLS);
        calls.cloned().collect::<Vec<_>>()
    };
    calls(a) == calls(b)
}

fn same_messages(program: &Program, a: &Behaviour, b: &Behaviour) -> bool {
    let channels = program.channels.len();
    a.by_channel(channels) == b.by_channel(channels)
}

fn uses_freed_object(program: &Program, behaviour: &Behaviour) -> bool {
    let has_noticed = matches!(&behaviour.outcome, Outcome::Faulted(report) if report.fault == Fault::Memory);
    program.memory == MemoryMode::Manual && has_noticed
}

fn is_deadlock(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Faulted(report) if report.fault == Fault::Deadlock)
}

/// Whether the messages of `lower` on each channel are a prefix of those of `upper`.
fn is_prefix_on_each_channel(program: &Program, lower: &Behaviour, upper: &Behaviour) -> bool {
    let channels = program.channels.len();
    upper.by_channel(channels).iter().zip(lower.by_channel(channels)).all(|(upper, lower)| upper.starts_with(&lower))
}

/// A node of the search.
#[derive(Clone)]
struct Node<'p> {
    state: State,
    environment: ScriptedEnvironment<'p>,
    /// Whether all held channels are released.
    is_released: bool,
}

/// Whether the program has a run with this behaviour, by depth-first search; none beyond [`MAX_STATES`] states.
fn search(sample: &Sample, program: &Program, wanted: &Behaviour) -> Option<bool> {
    let mut machine = Machine::new(program, Checks::Off).ok()?;
    let environment = ScriptedEnvironment::new(program, &sample.script);
    let mut work = vec![Node { state: machine.start(), environment, is_released: false }];
    let mut seen: HashSet<(State, Vec<usize>, bool, i64)> = HashSet::new();
    let has_diverged = |node: &Node<'_>| !wanted.messages.starts_with(&node.environment.received);
    while let Some(mut node) = work.pop() {
        if has_diverged(&node)
            || !seen.insert((
                node.state.clone(),
                node.environment.position(),
                node.is_released,
                node.environment.now_ns,
            ))
        {
            continue;
        }
        if seen.len() > MAX_STATES {
            return None;
        }
        let steps = machine.enabled(&mut node.state, &mut node.environment);
        if steps.is_empty() {
            let outcome = machine.classify_quiescence(&mut node.state, &mut node.environment);
            match &outcome {
                Outcome::Quiescent(resting) if resting.deadline_ns.is_some() => {
                    node.environment.now_ns = resting.deadline_ns.unwrap_or_default();
                    work.push(node);
                    continue;
                }
                Outcome::Quiescent(_) if node.environment.release() => {
                    node.is_released = true;
                    work.push(node);
                    continue;
                }
                _ => {}
            }
            if is_same(&outcome, &wanted.outcome) && node.environment.received == wanted.messages {
                return Some(true);
            }
            continue;
        }
        for step in steps.into_iter().rev() {
            let mut next = node.clone();
            let mut fuel = 1_000_000;
            let outcome = match machine.step(step, &mut next.state, &mut next.environment, &mut fuel) {
                Effect::Done => {
                    work.push(next);
                    continue;
                }
                Effect::Unfinished => return None,
                Effect::Exited(status) => Outcome::Ended(status),
                Effect::Faulted(report) => Outcome::Faulted(report),
            };
            if is_same(&outcome, &wanted.outcome) && next.environment.received == wanted.messages {
                return Some(true);
            }
        }
    }
    Some(false)
}
