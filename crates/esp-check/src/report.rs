//! What a check has come to: the verdict, what was covered to reach it, and what was not.

use crate::counterexample::Counterexample;
use crate::environment::is_read;
use crate::options::{Compaction, Limit, Options, Reduction, Symmetry, omission_bound};
use crate::waits::waits;
use quaject_esp_ir::ir::{Boundary, ChannelId, ExternId, Location, Op, Operation, PoolId, Program, Type, TypeId};
use quaject_esp_ir::model::{ModelProgram, Role, Scope, Values};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::time::Duration;

/// What a check has come to.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// States visited.
    pub states: u64,
    /// Steps taken between them.
    pub transitions: u64,
    /// Steps from the start to the farthest.
    pub depth: u32,
    /// Memory used for the search.
    pub bytes: u64,
    /// Time used.
    pub elapsed: Duration,
    /// Lines of explored processes that no run reaches; only known of a finished search.
    pub unreached: Vec<Location>,
    /// What the environment was held to: what the verdict does not speak of.
    pub restrictions: Vec<String>,
    /// The model's properties, each with what is known of it.
    pub properties: Vec<(String, Answer)>,
    /// Whether nobody waits for ever while others go on, under weak fairness; none if that was not asked.
    pub progress: Option<Answer>,
    /// Which deadlocks were looked for.
    pub deadlocks: Deadlocks,
    /// Which lost objects were looked for.
    pub leaks: Leaks,
}

/// Which objects that are never released an engine looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaks {
    /// All.
    All,
    /// So many that their pool runs out.
    ExhaustingPool,
}

/// Which deadlocks an engine looks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deadlocks {
    /// All.
    All,
    /// Those in which nobody can go on: of some, not while others wait for the world or the clock.
    GlobalOnly,
}

impl Deadlocks {
    /// Those that an engine finds which takes whoever waits for the world or the clock for somebody who can go on.
    pub fn of_engine_without_partial_deadlocks(model: &ModelProgram) -> Deadlocks {
        let program = &model.program;
        let with_world = program.channels.iter().any(|channel| channel.boundary != Boundary::Internal);
        let mut branches = program.processes.iter().flat_map(waits).flat_map(|wait| &wait.branches);
        let with_clock = branches.any(|branch| matches!(branch.operation, Operation::After { .. }));
        if with_world || with_clock { Deadlocks::GlobalOnly } else { Deadlocks::All }
    }
}

/// What is known of a question besides safety.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// It holds.
    Holds,
    /// A run contradicts it.
    Violated,
    /// The search for such a run did not come to its end.
    Unfinished,
    /// It was not looked at, as the search ended before.
    Open,
}

impl Answer {
    /// A word for it, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Answer::Holds => "holds",
            Answer::Violated => "violated",
            Answer::Unfinished => "unfinished",
            Answer::Open => "open",
        }
    }
}

impl From<&Verdict> for Answer {
    fn from(verdict: &Verdict) -> Answer {
        match verdict {
            Verdict::Holds => Answer::Holds,
            Verdict::Violated(_) => Answer::Violated,
            Verdict::Unfinished(_) => Answer::Unfinished,
        }
    }
}

/// The verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// No run goes wrong.
    Holds,
    /// This one does.
    Violated(Counterexample),
    /// None was found before the limit, which says nothing of the others.
    Unfinished(Limit),
}

/// What the model restricts the world to.
pub fn restrictions(model: &ModelProgram) -> Vec<String> {
    let program = &model.program;
    let mut restrictions = Vec::new();
    let mut open = Vec::new();
    for (index, channel) in program.channels.iter().enumerate() {
        let channel_id = ChannelId(index as u32);
        if channel.boundary != Boundary::FromEnvironment || !is_read(model, channel_id) {
            continue;
        }
        open.push(format!("`{}`", channel.name));
        if let Some(bound) = model.bounds[index] {
            restrictions.push(format!("at most {bound} messages on `{}`", channel.name));
        }
        for (number, (ty, values)) in model.message(channel_id).enumerate() {
            if let Values::Range(from, to) = values {
                let zeros = if holds_bytes(program, ty) { ", its bytes 0" } else { "" };
                restrictions.push(format!("`{}.{number}` is in {from}..{to}{zeros}", channel.name));
            }
        }
    }
    match &open[..] {
        [] => {}
        [one] => restrictions.push(format!("{one} stays open")),
        many => restrictions.push(format!("{} stay open", many.join(", "))),
    }
    for (index, function) in program.externs.iter().enumerate().take(model.externs as usize) {
        if let Values::Range(from, to) = model.results[ExternId(index as u32).0 as usize] {
            let zeros = if function.result.is_some_and(|ty| holds_bytes(program, ty)) { ", bytes 0" } else { "" };
            restrictions.push(format!("`{}` returns {from}..{to}{zeros}", function.name));
        }
        let written =
            function.parameters.iter().any(|(_, mutability)| *mutability == quaject_esp_ir::ir::Mutability::Mutable);
        if written {
            restrictions.push(format!("`{}` leaves its arguments as they are", function.name));
        }
    }
    if model.roles.contains(&Role::Outside) {
        restrictions.push("left-out processes come in the end (deadlocks, progress)".to_string());
    }
    let shared: Vec<String> =
        shared_pools(model).into_iter().map(|pool| format!("`{}`", program.types.pool(pool).name)).collect();
    if !shared.is_empty() {
        restrictions.push(format!("left-out processes hold no objects of {}", shared.join(", ")));
    }
    restrictions
}

/// The pools from which explored processes allocate, or ask for free objects, and left-out ones allocate too.
fn shared_pools(model: &ModelProgram) -> Vec<PoolId> {
    let program = &model.program;
    let asked = |role: Role| {
        let mut pools = BTreeSet::new();
        for (process, _) in program.processes.iter().zip(&model.roles).filter(|(_, own)| **own == role) {
            for op in process.body.blocks.iter().flat_map(|block| &block.instructions).map(|one| &one.op) {
                match op {
                    Op::Allocate(pool) | Op::FreeObjects(pool) => pools.insert(pool.0),
                    _ => false,
                };
            }
        }
        pools
    };
    asked(Role::Explored).intersection(&asked(Role::LeftOut)).map(|pool| PoolId(*pool)).collect()
}

/// Whether values of a type hold bytes of variable number, of which one content stands for all.
fn holds_bytes(program: &Program, ty: TypeId) -> bool {
    let (mut open, mut seen) = (vec![ty], FxHashSet::default());
    while let Some(ty) = open.pop() {
        if !seen.insert(ty) {
            continue;
        }
        match program.types.get(ty) {
            Type::Bytes { bound } if *bound > 0 => return true,
            Type::Array { element, .. } => open.push(*element),
            Type::Record(id) | Type::Union(id) => {
                open.extend(program.types.aggregate(*id).parts.iter().filter_map(|(_, ty)| *ty));
            }
            Type::Boxed(pool) => open.push(program.types.pool(*pool).content),
            Type::Bytes { .. } | Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) => {}
        }
    }
    false
}

impl Report {
    /// A bound on the probability that states were left out; none if they were not.
    pub fn omission(&self, options: &Options) -> Option<f64> {
        match options.compaction {
            Compaction::On => Some(omission_bound(self.states)),
            Compaction::Off => None,
        }
    }

    /// The verdict and what it covers, as text that ends with a line end.
    pub fn text(&self, model: &ModelProgram, options: &Options) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string does not fail");
        match &self.verdict {
            Verdict::Holds => match self.omission(options) {
                None => line(format!("no errors in {}", subject(model))),
                Some(bound) => line(format!(
                    "no errors found in {}; a state was left out with probability at most {bound:.1e} (hash compaction)",
                    subject(model)
                )),
            },
            Verdict::Violated(found) => line(format!("error `{}` in {}", found.problem.name(), subject(model))),
            Verdict::Unfinished(limit) => {
                let subject = subject(model);
                let more =
                    |limit| format!("NOT VERIFIED: in {subject} are more states than the limit of {limit} allows");
                line(match limit {
                    Limit::States => more("states"),
                    Limit::Memory => more("memory"),
                    Limit::Time => more("time"),
                    Limit::Interrupted => {
                        format!("NOT VERIFIED: interrupted before all states of {subject} were visited")
                    }
                    Limit::Depth => format!("NOT VERIFIED: some runs of {subject} are longer than the engine follows"),
                    Limit::Broken => format!("NOT VERIFIED: the engine broke off on {subject}"),
                    Limit::Engine => format!("NOT VERIFIED: the engine does not look at all runs of {subject}"),
                });
            }
        }
        if let Verdict::Violated(found) = &self.verdict {
            line(found.text(model).trim_end().to_string());
        }
        let mut how = Vec::new();
        match options.reduction {
            Reduction::On => how.push("reduced"),
            Reduction::Communications => how.push("every order of communications"),
            Reduction::Off => how.push("every interleaving"),
        }
        match options.symmetry {
            Symmetry::On => how.push("replicas interchanged"),
            Symmetry::Off => {}
        }
        match options.compaction {
            Compaction::On => how.push("64 bits kept of each"),
            Compaction::Off => {}
        }
        let seconds = self.elapsed.as_secs_f64();
        line(format!(
            "{} states ({}), {} steps, depth {}, {:.3} s, {:.1} MB",
            self.states,
            how.join(", "),
            self.transitions,
            self.depth,
            seconds,
            self.bytes as f64 / 1e6
        ));
        let covered = match &self.verdict {
            Verdict::Holds if options.compaction == Compaction::On => "covered, but for states left out",
            Verdict::Holds => "covered",
            Verdict::Violated(_) => "looked for",
            Verdict::Unfinished(_) => "covered, within the states visited",
        };
        let partial = match self.deadlocks {
            Deadlocks::All => "",
            Deadlocks::GlobalOnly => " (not of some while others wait for the world or the clock)",
        };
        let memory = match self.leaks {
            Leaks::ExhaustingPool if !model.program.types.pools().is_empty() => {
                "memory (lost objects only where their pool runs out)"
            }
            Leaks::ExhaustingPool | Leaks::All => "memory",
        };
        let mut all =
            vec![format!("deadlock{partial}, assertions, bounds, division, overflow, ranges, pools, {memory}")];
        let progress = "nobody waits for ever while others go on (weak fairness)".to_string();
        let questions = self.properties.iter().cloned().chain(self.progress.map(|answer| (progress, answer)));
        let (hold, rest): (Vec<_>, Vec<_>) = questions.partition(|(_, answer)| *answer == Answer::Holds);
        all.extend(hold.iter().map(|(question, _)| format!("`{question}`")));
        if self.verdict != Verdict::Unfinished(Limit::Broken) {
            line(format!("{covered}: {}", all.join(", ")));
        }
        let undecided = |answer: &Answer| matches!(answer, Answer::Unfinished | Answer::Open);
        let undecided = rest.iter().filter(|(_, answer)| undecided(answer));
        let undecided: Vec<String> = undecided.map(|(question, _)| format!("`{question}`")).collect();
        if !undecided.is_empty() {
            line(format!("not decided: {}", undecided.join(", ")));
        }
        if !self.restrictions.is_empty() {
            line(format!("not covered: anything but {}", self.restrictions.join("; ")));
        }
        if !self.unreached.is_empty() {
            let lines: Vec<String> = self.unreached.iter().map(|at| line_or_place(&model.program, *at)).collect();
            line(format!("never executed: {}", lines.join(", ")));
        }
        text
    }
}

/// A line, or a place in it.
pub fn line_or_place(program: &Program, location: Location) -> String {
    let column = if location.column > 0 { format!(":{}", location.column) } else { String::new() };
    format!("{}:{}{column}", program.files[location.file as usize], location.line)
}

/// What was checked, in words.
pub fn subject(model: &ModelProgram) -> String {
    let name = |process: &quaject_esp_ir::ir::ProcessId| model.program.processes[process.0 as usize].name.to_string();
    let scope = match &model.scope {
        Scope::All => {
            let count = model.roles.iter().filter(|role| **role == Role::Explored).count();
            format!("{count} process{}", if count == 1 { "" } else { "es" })
        }
        Scope::Process(process) => format!("process `{}` alone", name(process)),
        Scope::Slice(processes) => {
            let names: Vec<String> = processes.iter().map(|process| format!("`{}`", name(process))).collect();
            format!("slice {}", names.join(", "))
        }
    };
    match &model.name {
        Some(model) => format!("model `{model}` ({scope})"),
        None => scope,
    }
}
