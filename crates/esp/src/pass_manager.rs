//! The pass manager: the passes of the optimiser by name, in their order, run over every body until nothing changes.
//! What a pass does is in its file in `esp-opt`; this is the only module that knows all of them.

use quaject_esp_ir::ir::{Body, Program};
use quaject_esp_ir::text;
use quaject_esp_opt::limits::code_size;
use quaject_esp_opt::passes::{self, AnalysisCache, Context};

/// One pass over one body.
struct Pass {
    name: &'static str,
    run: fn(&mut Body, Context<'_>) -> bool,
}

const fn pass(name: &'static str, run: fn(&mut Body, Context<'_>) -> bool) -> Pass {
    Pass { name, run }
}

/// Passes that run over each process and function, repeatedly until nothing changes.
const ITERATED: [Pass; 9] = [
    pass("simplify-cfg", passes::simplify_cfg),
    pass("copy-prop", passes::copy_prop),
    pass("const-fold", passes::const_fold),
    pass("gvn", passes::gvn),
    pass("vrp", passes::vrp),
    pass("strength-reduce", passes::strength_reduce),
    pass("rc-elim", passes::rc_elim),
    pass("dse", passes::dse),
    pass("dce", passes::dce),
];

/// Passes that run once, over the final processes. Once bounds checks are eliminated, loads cannot fault, so that dead
/// code elimination is dead load elimination.
const FINAL: [Pass; 2] = [pass("bounds-check-elim", passes::bounds_check_elim), pass("dle", passes::dce)];

/// A pass as `--dump` names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PassName {
    /// The name.
    pub name: &'static str,
    /// The name in earlier versions, still accepted.
    pub alias: Option<&'static str>,
    /// What the pass does.
    pub purpose: &'static str,
}

const fn named(name: &'static str, alias: Option<&'static str>, purpose: &'static str) -> PassName {
    PassName { name, alias, purpose }
}

/// The passes in their order, as `--dump` names them.
pub const PASSES: [PassName; 15] = [
    named("lower", None, "the program as written"),
    named("simplify-cfg", Some("join"), "merges blocks with their only predecessor, removes unreachable ones"),
    named("copy-prop", Some("copies"), "replaces values that always equal another one"),
    named("const-fold", Some("constants"), "folds operations and branches on constants"),
    named("gvn", Some("numbering"), "global value numbering: unifies congruent values, cancels inverse operations"),
    named("vrp", Some("ranges"), "value range propagation: folds results that ranges decide"),
    named("strength-reduce", Some("strength"), "replaces operations by cheaper ones"),
    named("rc-elim", Some("counts"), "removes reference counts that cancel, unobserved"),
    named("dse", Some("stores"), "dead store elimination, by liveness"),
    named("dce", Some("dead"), "dead code elimination"),
    named("fuse", None, "fuses processes that channels connect (--mode automata, auto)"),
    named("unroll", Some("batch"), "unrolls loops of fused processes, with guards (--unroll auto)"),
    named("fast-paths", Some("paths"), "forms fast paths (--mode fastpath, auto)"),
    named("bounds-check-elim", Some("bounds"), "removes checks of indices that are in range"),
    named("dle", Some("unread"), "dead load elimination: unused loads that cannot fault any more"),
];

/// Bodies of more instructions and terminators are not optimised: the time of passes is superlinear.
const MAX_BODY_SIZE: usize = 20_000;

/// Rounds after which a body remains as it is. Most need two; every round preserves the behaviour.
const MAX_ROUNDS: usize = 8;

/// Whether passes run, besides those that make a program's form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Optimiser {
    /// The program remains as written: the reference of comparisons.
    #[default]
    Off,
    /// They run.
    On,
}

/// The passes whose results are printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dump {
    /// Names of [`PASSES`], or `all`.
    pub passes: Vec<String>,
}

impl Dump {
    fn includes(&self, pass: &str) -> bool {
        let alias = PASSES.iter().find(|known| known.name == pass).and_then(|known| known.alias);
        self.passes.iter().any(|wanted| wanted == pass || Some(wanted.as_str()) == alias || wanted == "all")
    }
}

/// The program after a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dumped {
    /// The pass.
    pub pass: &'static str,
    /// How many times it ran before in this iteration to a fixed point.
    pub round: usize,
    /// The IR as text.
    pub text: String,
}

/// A program under optimisation.
pub(crate) struct PassManager<'a> {
    pub(crate) program: Program,
    checked: bool,
    optimiser: Optimiser,
    dump: &'a Dump,
    pub(crate) dumped: Vec<Dumped>,
}

impl<'a> PassManager<'a> {
    pub(crate) fn new(program: Program, checked: bool, optimiser: Optimiser, dump: &'a Dump) -> PassManager<'a> {
        PassManager { program, checked, optimiser, dump, dumped: Vec::new() }
    }

    /// Records the result of a pass if it is to be printed. Verifies it in debug builds.
    pub(crate) fn record(&mut self, pass: &'static str, round: usize) {
        crate::expect_well_formed(&self.program);
        if self.dump.includes(pass) {
            self.dumped.push(Dumped { pass, round, text: text::print(&self.program) });
        }
    }

    /// Runs the iterated passes over each process from `first` on, and over each function.
    pub(crate) fn run_to_fixed_point(&mut self, first: usize) {
        match self.optimiser {
            Optimiser::Off => return,
            Optimiser::On => {}
        }
        let mut history = PassHistory::default();
        for round in 0..MAX_ROUNDS {
            let mut any = false;
            for (number, pass) in ITERATED.iter().enumerate() {
                let has_changed = self.run(pass, first, |body, run| history.run_unless_idle(body, number, run));
                any |= has_changed;
                if has_changed || round == 0 {
                    self.record(pass.name, round);
                }
            }
            if !any {
                break;
            }
        }
    }

    /// Runs the final passes.
    pub(crate) fn run_final_passes(&mut self) {
        match self.optimiser {
            Optimiser::Off => return,
            Optimiser::On => {}
        }
        for pass in &FINAL {
            self.run(pass, 0, |(_, body), run| run(body, &AnalysisCache::default()));
            self.record(pass.name, 0);
        }
    }

    /// Runs a pass over each body, through a function that receives its number; whether any has changed.
    fn run(&mut self, pass: &Pass, first: usize, mut over: impl FnMut((usize, &mut Body), Run<'_>) -> bool) -> bool {
        let Program { types, memory, functions, processes, .. } = &mut self.program;
        let (memory, checked) = (*memory, self.checked);
        let functions = functions.iter_mut().map(|function| &mut function.body);
        let processes = processes.iter_mut().skip(first).map(|process| &mut process.body);
        let mut any = false;
        for (number, body) in functions.chain(processes).enumerate() {
            if code_size(body) <= MAX_BODY_SIZE {
                any |= over((number, body), &|body, cache| (pass.run)(body, Context { types, memory, checked, cache }));
            }
        }
        any
    }
}

/// A pass over one body.
type Run<'r> = &'r dyn Fn(&mut Body, &AnalysisCache) -> bool;

/// Which passes changed nothing in a body that has not changed since.
#[derive(Default)]
struct PassHistory(Vec<BodyHistory>);

#[derive(Default)]
struct BodyHistory {
    /// The number of changes so far.
    version: usize,
    /// Per pass, the version in which it changed nothing.
    idle_at: [Option<usize>; ITERATED.len()],
    cache: AnalysisCache,
}

impl PassHistory {
    /// Runs a pass over a body unless it is known to change nothing; whether it has changed something.
    fn run_unless_idle(&mut self, (number, body): (usize, &mut Body), pass: usize, run: Run<'_>) -> bool {
        if number >= self.0.len() {
            self.0.resize_with(number + 1, BodyHistory::default);
        }
        let BodyHistory { version, idle_at, cache } = &mut self.0[number];
        if idle_at[pass] == Some(*version) {
            return false;
        }
        let any = run(body, cache);
        // The first pass renumbers a body, which it does not report as a change but which invalidates analyses.
        if any || pass == 0 {
            *version += 1;
            *cache = AnalysisCache::default();
        }
        idle_at[pass] = (!any).then_some(*version);
        any
    }
}

/// The program after all passes that run in `--mode process`: the input of the C back end and the JIT.
pub fn optimise(program: Program, checked: bool) -> Program {
    let dump = Dump::default();
    let mut passes = PassManager::new(program, checked, Optimiser::On, &dump);
    passes.run_to_fixed_point(0);
    passes.run_final_passes();
    passes.program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_can_be_dumped_by_name() {
        for pass in ITERATED.iter().chain(&FINAL) {
            assert!(PASSES.iter().any(|known| known.name == pass.name), "{}", pass.name);
        }
    }
}
