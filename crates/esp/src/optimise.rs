//! The passes of the optimiser, in the order in which they run, by name. What each does is in a file of its own in
//! `esp-opt`; this is the one place that knows all of them.

use quaject_esp_ir::ir::{Body, Program};
use quaject_esp_ir::text;
use quaject_esp_opt::passes::{self, Context, Found};

/// One pass over one body.
struct Pass {
    name: &'static str,
    run: fn(&mut Body, Context<'_>) -> bool,
}

const fn pass(name: &'static str, run: fn(&mut Body, Context<'_>) -> bool) -> Pass {
    Pass { name, run }
}

/// Over each process and function by itself, again and again until nothing changes.
const EACH: [Pass; 9] = [
    pass("join", passes::join),
    pass("copies", passes::copies),
    pass("constants", passes::constants),
    pass("numbering", passes::numbering),
    pass("ranges", passes::ranges),
    pass("strength", passes::strength),
    pass("counts", passes::counts),
    pass("stores", passes::stores),
    pass("dead", passes::dead),
];

/// Once, when processes are what they will be.
const LAST: [Pass; 2] = [pass("bounds", passes::bounds), pass("unread", passes::dead)];

/// The names by which `--dump` knows the passes, in order, with what each does.
pub const PASSES: [(&str, &str); 15] = [
    ("lower", "the program as it was written"),
    ("join", "blocks that only one other leads to are part of that one"),
    ("copies", "values that always are another one"),
    ("constants", "operations on constants, branches on them"),
    ("numbering", "values that are computed twice, operations that undo each other"),
    ("ranges", "operations and branches that the ranges of values decide"),
    ("strength", "operations that a cheaper one can do"),
    ("counts", "reference counts that are added and taken away again, unseen"),
    ("stores", "writes to memory that nobody reads, by liveness"),
    ("dead", "values that nobody uses"),
    ("fuse", "processes that channels connect become one (--mode automata, auto)"),
    ("batch", "several turns of a fused process's loop at once (--batch auto)"),
    ("paths", "fast paths (--mode fastpath, auto)"),
    ("bounds", "indices that are inside, and need not be checked"),
    ("unread", "loads that are now known not to fault, and that nobody reads"),
];

/// Bodies of more instructions and blocks than these stay as they are: passes take longer than in proportion.
const LARGEST: usize = 20_000;

/// Rounds after which a body is left as it is. Most need two; each round leaves a program that does the same.
const MOST_ROUNDS: usize = 8;

/// Whether passes run, beside those that make a program's form.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Optimiser {
    /// The program stays as it is written: what others are compared with.
    #[default]
    Off,
    /// They run.
    On,
}

/// Which passes' results are printed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Dump {
    /// Names of [`PASSES`], or `all`.
    pub passes: Vec<String>,
}

impl Dump {
    fn wants(&self, pass: &str) -> bool {
        self.passes.iter().any(|wanted| wanted == pass || wanted == "all")
    }
}

/// The program after a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dumped {
    /// The pass.
    pub pass: &'static str,
    /// How often it has run before on what it runs on until nothing changes.
    pub round: usize,
    /// The IR as text.
    pub text: String,
}

/// A program on its way through the passes.
pub(crate) struct Optimising<'a> {
    pub(crate) program: Program,
    pub(crate) checked: bool,
    pub(crate) optimiser: Optimiser,
    pub(crate) dump: &'a Dump,
    pub(crate) dumped: Vec<Dumped>,
}

impl Optimising<'_> {
    /// Notes what a pass has made, which is verified in debug builds.
    pub(crate) fn done(&mut self, pass: &'static str, round: usize) {
        crate::expect_well_formed(&self.program);
        if self.dump.wants(pass) {
            self.dumped.push(Dumped { pass, round, text: text::print(&self.program) });
        }
    }

    /// The passes over each of the processes from this one on, and over each function.
    pub(crate) fn each(&mut self, first: usize) {
        match self.optimiser {
            Optimiser::Off => return,
            Optimiser::On => {}
        }
        let mut settled = Settled::default();
        for round in 0..MOST_ROUNDS {
            let mut any = false;
            for (number, pass) in EACH.iter().enumerate() {
                let has_changed = self.run(pass, first, |body, run| settled.unless(body, number, run));
                any |= has_changed;
                if has_changed || round == 0 {
                    self.done(pass.name, round);
                }
            }
            if !any {
                break;
            }
        }
    }

    /// The passes that come last.
    pub(crate) fn last(&mut self) {
        match self.optimiser {
            Optimiser::Off => return,
            Optimiser::On => {}
        }
        for pass in &LAST {
            self.run(pass, 0, |(_, body), run| run(body, &Found::default()));
            self.done(pass.name, 0);
        }
    }

    /// Runs a pass over each body, as its number and itself are handed over; whether any has changed.
    fn run(&mut self, pass: &Pass, first: usize, mut over: impl FnMut((usize, &mut Body), Run<'_>) -> bool) -> bool {
        let Program { types, memory, functions, processes, .. } = &mut self.program;
        let (memory, checked) = (*memory, self.checked);
        let functions = functions.iter_mut().map(|function| &mut function.body);
        let processes = processes.iter_mut().skip(first).map(|process| &mut process.body);
        let mut any = false;
        for (number, body) in functions.chain(processes).enumerate() {
            let size: usize = body.blocks.iter().map(|block| block.instructions.len() + 1).sum();
            if size <= LARGEST {
                any |= over((number, body), &|body, found| (pass.run)(body, Context { types, memory, checked, found }));
            }
        }
        any
    }
}

/// A pass over one body.
type Run<'r> = &'r dyn Fn(&mut Body, &Found) -> bool;

/// Which passes have nothing to do on which bodies, as they had nothing to do on the same body before.
#[derive(Default)]
struct Settled(Vec<SettledBody>);

#[derive(Default)]
struct SettledBody {
    /// How often it has changed, and per pass after how many changes it has found nothing.
    changes: usize,
    nothing: [Option<usize>; EACH.len()],
    found: Found,
}

impl Settled {
    /// Runs a pass over a body unless it would find nothing; whether it has found something.
    fn unless(&mut self, (number, body): (usize, &mut Body), pass: usize, run: Run<'_>) -> bool {
        if number >= self.0.len() {
            self.0.resize_with(number + 1, SettledBody::default);
        }
        let SettledBody { changes, nothing, found } = &mut self.0[number];
        if nothing[pass] == Some(*changes) {
            return false;
        }
        let any = run(body, found);
        // The first pass numbers a body anew, which it does not call a change, but others see it.
        if any || pass == 0 {
            *changes += 1;
            *found = Found::default();
        }
        nothing[pass] = (!any).then_some(*changes);
        any
    }
}

/// The program after all passes that run in `--mode process`: what the C back end and machine code are made of.
pub fn optimise(program: Program, checked: bool) -> Program {
    let dump = Dump::default();
    let mut work = Optimising { program, checked, optimiser: Optimiser::On, dump: &dump, dumped: Vec::new() };
    work.each(0);
    work.last();
    work.program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pass_has_a_name_that_can_be_asked_for() {
        for pass in EACH.iter().chain(&LAST) {
            assert!(PASSES.iter().any(|(name, _)| *name == pass.name), "{}", pass.name);
        }
    }
}
