//! A picture of the state machines of a program: the states of fused processes, and of fast paths with their exits. It
//! is drawn from the flow IR, so that it shows the code.

use crate::picture::{self, Node};
use quaject_esp_ir::cfg::{Regions, successors};
use quaject_esp_ir::ir::{BlockId, Body, Location, Operation, PathId, Process, Program, Terminator};
use quaject_esp_ir::text::location_text;
use quaject_esp_opt::path::{FormedPath, PathAttempt};
use quaject_esp_opt::path_exit::PathExit;
use std::collections::BTreeMap;

/// The maximal number of states of one picture.
const MAX_STATES: usize = 400;

/// Why a program cannot be drawn.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DrawError {
    /// No process is fused, and there is no fast path.
    Empty,
    /// There are too many states.
    TooLarge {
        /// The number of states.
        states: usize,
        /// The maximum.
        max: usize,
    },
}

impl std::fmt::Display for DrawError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DrawError::Empty => f.write_str("no process is fused, and there is no fast path"),
            DrawError::TooLarge { states, max } => write!(f, "more than {max} states, at least {states}"),
        }
    }
}

impl std::error::Error for DrawError {}

/// Draws the fused processes and fast paths of a program.
///
/// # Errors
/// Why a program cannot be drawn.
pub fn states(program: &Program, path_attempts: &[PathAttempt]) -> Result<String, DrawError> {
    let mut picture = Picture { program, nodes: Vec::new(), edges: Vec::new() };
    for process in program.processes.iter().filter(|process| !process.members.is_empty()) {
        let first = picture.add(Node::state(&process.name, "begins"));
        picture.code(&process.body, BlockId(0), first, &[]);
    }
    for process in &program.processes {
        for block in &process.body.blocks {
            let Terminator::Enter(enter) = &block.terminator else { continue };
            picture.path(process, enter.path, enter.then, path_attempts);
        }
    }
    match picture.nodes.len() {
        0 => Err(DrawError::Empty),
        states if states > MAX_STATES => Err(DrawError::TooLarge { states, max: MAX_STATES }),
        _ => Ok(picture::draw(&picture.nodes, picture.edges)),
    }
}

struct Picture<'a> {
    program: &'a Program,
    nodes: Vec<Node>,
    edges: Vec<(usize, usize)>,
}

impl Picture<'_> {
    fn add(&mut self, node: Node) -> usize {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    fn connect(&mut self, from: usize, to: usize) {
        if from != to && !self.edges.contains(&(from, to)) {
            self.edges.push((from, to));
        }
    }

    fn path(&mut self, trigger: &Process, path: PathId, then: BlockId, path_attempts: &[PathAttempt]) {
        let name = &self.program.paths[path.0 as usize].name;
        let made = path_attempts.iter().find(|attempt| attempt.name == *name);
        let (exits, members): (&[PathExit], &[String]) = match made {
            Some(PathAttempt { result: Ok(FormedPath { exits, .. }), members, .. }) => (exits, members),
            Some(_) | None => (&[], &[]),
        };
        let first = self.add(Node::state(&format!("fast path {name}"), "entered"));
        let exits: Vec<(Location, usize)> = exits
            .iter()
            .map(|exit| {
                let reason = exit.reason.text(members);
                let at: Vec<String> = members
                    .iter()
                    .zip(&exit.at)
                    .map(|(member, at)| format!("{member} at {}", location_text(self.program, *at)))
                    .collect();
                let tip = format!("{reason}: {}", at.join(", "));
                (exit.at.first().copied().unwrap_or_default(), Node::end(&reason, &tip))
            })
            .collect::<Vec<(Location, Node)>>()
            .into_iter()
            .map(|(at, node)| (at, self.add(node)))
            .collect();
        self.code(&trigger.body, then, first, &exits);
    }

    /// Draws the code from a block on. `exits` are the locations at which the trigger resumes after a path.
    fn code(&mut self, body: &Body, from: BlockId, first: usize, exits: &[(Location, usize)]) {
        let mut states: BTreeMap<BlockId, usize> = BTreeMap::new();
        let mut worklist = vec![(from, first)];
        while let Some((from, state)) = worklist.pop() {
            if self.nodes.len() > MAX_STATES {
                return;
            }
            let mut visited = vec![false; body.blocks.len()];
            let mut stack = vec![from];
            let mut is_first = true;
            while let Some(block) = stack.pop() {
                if std::mem::replace(&mut visited[block.0 as usize], true) {
                    continue;
                }
                let stops =
                    matches!(body.blocks[block.0 as usize].terminator, Terminator::Wait(_) | Terminator::Leave(_));
                if stops && !(is_first && states.contains_key(&block)) {
                    self.connect_to_block(body, block, state, exits, &mut states, &mut worklist);
                } else {
                    stack.extend(successors_outside_regions(body, block));
                }
                is_first = false;
            }
        }
    }

    /// Draws the edge from a state to a block that waits or exits a path.
    fn connect_to_block(
        &mut self,
        body: &Body,
        block: BlockId,
        from: usize,
        exits: &[(Location, usize)],
        states: &mut BTreeMap<BlockId, usize>,
        worklist: &mut Vec<(BlockId, usize)>,
    ) {
        let code = &body.blocks[block.0 as usize];
        if let Terminator::Leave(leave) = &code.terminator {
            let to = &body.blocks[leave.trigger.to.0 as usize];
            let at = |location: Location| exits.iter().filter(move |(exit, _)| *exit == location);
            let own = at(to.location).chain(to.instructions.first().into_iter().flat_map(|first| at(first.location)));
            let own: Vec<usize> = own.map(|(_, node)| *node).collect();
            // Exits to one location are not distinguishable in the code: all are drawn.
            let all = exits.iter().map(|(_, node)| *node).filter(|_| own.is_empty());
            own.iter().copied().chain(all).for_each(|exit| self.connect(from, exit));
            return;
        }
        let state = match states.get(&block) {
            Some(state) => *state,
            None => {
                let state = self.add(self.wait(code));
                states.insert(block, state);
                worklist.push((block, state));
                state
            }
        };
        self.connect(from, state);
    }

    fn wait(&self, block: &quaject_esp_ir::ir::Block) -> Node {
        let Terminator::Wait(wait) = &block.terminator else { unreachable!("states are waits") };
        let operations: Vec<String> = wait
            .branches
            .iter()
            .map(|branch| match &branch.operation {
                Operation::In { channel, .. } => format!("in {}", self.program.channels[channel.0 as usize].name),
                Operation::Out { channel, .. } => format!("out {}", self.program.channels[channel.0 as usize].name),
                Operation::After { .. } => "after".to_string(),
            })
            .chain(wait.otherwise.map(|_| "else".to_string()))
            .collect();
        Node::state(&operations.join(", "), &location_text(self.program, block.location))
    }
}

/// The successors of a block without regions.
fn successors_outside_regions(body: &Body, block: BlockId) -> Vec<BlockId> {
    match &body.blocks[block.0 as usize].terminator {
        Terminator::Wait(wait) => wait.branches.iter().map(|branch| branch.then).chain(wait.otherwise).collect(),
        terminator => successors(terminator, Regions::Include),
    }
}
