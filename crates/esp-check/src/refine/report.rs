//! What a comparison has come to: the verdict, the run that differs, and how far the paths were gone.

use super::Search;
use crate::counterexample::TraceStep;
use crate::options::Limit;
use crate::report::subject;
use quaject_esp_exec::report::FaultReport;
use quaject_esp_ir::ir::{BlockId, Location, PathId, Program, Terminator};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use smol_str::SmolStr;
use std::fmt::Write as _;
use std::time::Duration;

/// What a comparison has come to.
#[derive(Clone, PartialEq, Debug)]
pub struct Refinement {
    /// The verdict.
    pub verdict: RefinementVerdict,
    /// States of the program with fast paths, each with what the one without can be in.
    pub states: u64,
    /// States of the program without.
    pub spec_states: u64,
    /// Steps of the program with fast paths.
    pub transitions: u64,
    /// Steps from the start to the farthest.
    pub depth: u32,
    /// Memory used for the search.
    pub bytes: u64,
    /// Time used.
    pub elapsed: Duration,
    /// How far each path was gone.
    pub paths: Vec<PathCoverage>,
    /// What the environment was held to: what the verdict does not speak of.
    pub restrictions: Vec<String>,
}

/// The verdict.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RefinementVerdict {
    /// Whatever the program does with fast paths, it does without.
    Holds,
    /// Not so.
    Violated(RefinementCounterexample),
    /// No difference was found before the limit, which says nothing of the rest.
    Unfinished(Limit),
}

/// A run of the program with fast paths that differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RefinementCounterexample {
    /// How its end differs.
    pub mismatch: Mismatch,
    /// Its steps.
    pub steps: Vec<TraceStep>,
}

/// How a run of the program with fast paths differs from those of the program without.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Mismatch {
    /// The code of the processes is not that of the program.
    Code,
    /// It begins otherwise.
    InitialState,
    /// Its last step shows what is not seen there.
    VisibleAction,
    /// It ends in another way.
    Termination {
        /// With this fault, if it is one.
        fault: Option<Box<FaultReport>>,
    },
    /// Its last step leaves everybody as they never are there together.
    ExitState {
        /// Where everybody stands.
        at: Vec<(u32, Location)>,
        /// Those who never stand so there, whatever others do.
        never: Vec<u32>,
    },
    /// One of the two can go on, or is deadlocked, where the other is not.
    Quiescence,
    /// Nobody can go on while a path is under way.
    StuckOnPath,
    /// A path is entered and left again and again, while the program would go on.
    Divergence,
}

/// How far a path was gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathCoverage {
    /// Its name.
    pub name: SmolStr,
    /// Whether it was ever entered.
    pub is_entered: bool,
    /// At how many of the places where it can be left it was left.
    pub exits_taken: usize,
    /// How many there are.
    pub exits: usize,
}

impl Search<'_> {
    /// How far each path was gone.
    pub(super) fn path_coverage(&mut self) -> Vec<PathCoverage> {
        let program = &self.generator.plan.model.program;
        let coverage = self.generator.coverage().expect("a mover watches what is executed");
        let of = |(number, path): (usize, &quaject_esp_ir::ir::FastPath)| {
            let mut usage = PathCoverage { name: path.name.clone(), is_entered: false, exits_taken: 0, exits: 0 };
            let Some((process, _)) = program.process_of(path.trigger) else { return usage };
            let body = &program.processes[process.0 as usize].body;
            let mut starts = Vec::new();
            let mut position = 0;
            for block in &body.blocks {
                starts.push(position);
                position += block.instructions.len() + 1;
            }
            let is_reached = |BlockId(block): BlockId| {
                let last = starts[block as usize] + body.blocks[block as usize].instructions.len();
                coverage.has(process, last)
            };
            for (index, block) in body.blocks.iter().enumerate() {
                match &block.terminator {
                    Terminator::Enter(enter) if enter.path == PathId(number as u32) => {
                        usage.is_entered |= is_reached(enter.then);
                    }
                    Terminator::Leave(leave) if leave.path == PathId(number as u32) => {
                        usage.exits += 1;
                        usage.exits_taken += usize::from(is_reached(BlockId(index as u32)));
                    }
                    _ => {}
                }
            }
            usage
        };
        program.paths.iter().enumerate().map(of).collect()
    }
}

impl PathCoverage {
    /// How far it was gone, in words.
    pub fn text(&self) -> String {
        let PathCoverage { name, exits_taken, exits, .. } = self;
        if self.is_entered {
            format!("fast path `{name}`: entered, left at {exits_taken} of {exits} places where it can be left")
        } else {
            format!("fast path `{name}`: NEVER ENTERED in these surroundings, so that nothing is said of it")
        }
    }
}

impl Mismatch {
    /// A word for it, for programs.
    pub fn name(&self) -> &'static str {
        match self {
            Mismatch::Code => "text",
            Mismatch::InitialState => "start",
            Mismatch::VisibleAction => "seen",
            Mismatch::Termination { .. } => "end",
            Mismatch::ExitState { .. } => "left",
            Mismatch::Quiescence => "rest",
            Mismatch::StuckOnPath => "stuck",
            Mismatch::Divergence => "turns",
        }
    }

    /// What differs, in a line or several, without a line end.
    pub fn text(&self, program: &Program) -> String {
        let name = |instance: u32| format!("`{}`", program.instance_name(instance));
        match self {
            Mismatch::Code => "the processes behind the fast paths are not those of the program".to_string(),
            Mismatch::InitialState => "it begins in another state than without fast paths".to_string(),
            Mismatch::VisibleAction => "others never see this after the same run without fast paths".to_string(),
            Mismatch::Termination { fault } => {
                let how = fault.as_ref().map_or_else(String::new, |fault| format!("{}\n", fault.text(program)));
                how + "the program never ends like this after the same run without fast paths"
            }
            Mismatch::ExitState { at, never } => {
                let stands = |(instance, location): &(u32, Location)| match location.line {
                    0 => format!("{} at its end", name(*instance)),
                    _ => format!("{} at {}", name(*instance), location_text(program, *location)),
                };
                let at: Vec<String> = at.iter().map(stands).collect();
                let mut text = format!("the program is never in this state without fast paths: {}", at.join(", "));
                let never: Vec<String> = never.iter().map(|instance| name(*instance)).collect();
                match &never[..] {
                    [] => text += "\neach of them can be so, but not together",
                    [one] => {
                        write!(text, "\n{one} never stands there with such values").expect("a string takes it");
                    }
                    many => {
                        let many = many.join(", ");
                        write!(text, "\n{many} never stand there with such values").expect("a string takes it");
                    }
                }
                text
            }
            Mismatch::Quiescence => "without fast paths it does not rest like this after the same run".to_string(),
            Mismatch::StuckOnPath => "nobody can go on while a fast path is under way".to_string(),
            Mismatch::Divergence => {
                "the last steps can be repeated for ever, and the program does nothing by them: a fast path is entered \
                 and left corresponding_state progress"
                    .to_string()
            }
        }
    }
}

impl Refinement {
    /// The verdict and what it covers, as text that ends with a line end.
    pub fn text(&self, model: &ModelProgram) -> String {
        let mut text = String::new();
        let mut line = |line: String| writeln!(text, "{line}").expect("writing to a string does not fail");
        let subject = subject(model);
        match &self.verdict {
            RefinementVerdict::Holds => {
                line(format!("with fast paths, {subject} does nothing that it does not corresponding_state"))
            }
            RefinementVerdict::Violated(difference) => {
                line(format!("error `fastpath`: with fast paths, {subject} does what it does not corresponding_state"));
                line(difference.text(model));
            }
            RefinementVerdict::Unfinished(Limit::Interrupted) => {
                line(format!("NOT VERIFIED: interrupted before all states of {subject} were compared"));
            }
            RefinementVerdict::Unfinished(limit) => {
                line(format!("NOT VERIFIED: {subject} takes more {} than the limit allows", limit.name()));
            }
        }
        line(format!(
            "{} states beside {} corresponding_state fast paths, {} steps, depth {}, {:.3} s, {:.1} MB",
            self.states,
            self.spec_states,
            self.transitions,
            self.depth,
            self.elapsed.as_secs_f64(),
            self.bytes as f64 / 1e6
        ));
        self.paths.iter().for_each(|path| line(path.text()));
        let covered = match &self.verdict {
            RefinementVerdict::Holds => "covered",
            RefinementVerdict::Violated(_) => "looked for",
            RefinementVerdict::Unfinished(_) => "covered, within the states visited",
        };
        line(format!(
            "{covered}: every message, call, fault and end; the state in which each path is left; deadlock; progress"
        ));
        if !self.restrictions.is_empty() {
            line(format!("not covered: anything but {}", self.restrictions.join("; ")));
        }
        text
    }
}

impl RefinementCounterexample {
    fn text(&self, model: &ModelProgram) -> String {
        let mut text = String::new();
        let last = self.steps.len().wrapping_sub(1);
        let lines = self.steps.iter().enumerate();
        let lines = lines.filter_map(|(index, traced)| traced.text(&model.program, index == last));
        for (number, line) in lines.enumerate() {
            writeln!(text, "{:>4}  {line}", number + 1).expect("writing to a string does not fail");
        }
        text + &self.mismatch.text(&model.program)
    }
}
