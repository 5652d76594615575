//! The plan of a model: names, the form of messages on each channel, and refusals. Knows no code.

use super::constants::ConstantPlan;
use super::expression::Expr;
use super::lines::Mark;
use super::memory::{self, Kind};
use super::names::Names;
use super::observable::Monitor;
use super::paths::Paths;
use super::{Approximation, Refusal};
use crate::Checks;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::fault_name;
use quaject_esp_syntax::diagnostics::Code;
use std::cell::RefCell;

/// The maximal number of fields of one message.
const MAX_FIELDS: usize = 64;
/// The maximal number of processes, of channels, and of objects of a pool: Spin numbers them in a byte.
const MAX_NUMBERED: usize = 255;

/// The form of the messages of a channel.
pub(super) struct ChannelPlan {
    pub(super) name: String,
    /// Whether a branch on it has a guard. Such a channel is an array of three: messages go through 1; 0 and 2 are
    /// never used, so that a false guard selects a channel without a partner.
    pub(super) guarded: bool,
    /// The fields of a message, one number each.
    pub(super) fields: Vec<Kind>,
    /// Per value: whether it refers to objects, so that the message has a field for whether their counts are
    /// transferred.
    pub(super) counted: Vec<bool>,
    /// The counter of messages from the environment, if their number is bounded.
    pub(super) sent: Option<String>,
}

pub(super) struct Plan<'a> {
    pub(super) model: &'a ModelProgram,
    pub(super) program: &'a Program,
    pub(super) checks: Checks,
    pub(super) channels: Vec<ChannelPlan>,
    pub(super) pools: Vec<String>,
    pub(super) constants: Vec<ConstantPlan>,
    pub(super) processes: Vec<String>,
    /// The global names. Each process adds its own to a copy.
    pub(super) names: Names,
    /// The plan of fast paths.
    pub(super) paths: Paths,
    /// The monitor automaton, if the model is compared with a specification.
    pub(super) monitor: Option<Monitor<'a>>,
    /// Faults, with their locations, at which a run ends as by `exit`.
    pub(super) excluded: &'a [(Fault, Location)],
    /// Whether a run can end by `exit`, or as by `exit` at an excluded fault.
    pub(super) exits: bool,
    pub(super) refusals: RefCell<Vec<Refusal>>,
    pub(super) approximations: RefCell<Vec<Approximation>>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(model: &'a ModelProgram, checks: Checks, excluded: &'a [(Fault, Location)]) -> Plan<'a> {
        let program = &model.program;
        let mut names = Names::new();
        for reserved in super::expression::MACROS {
            names.reserve(reserved.0);
        }
        [
            "half_u32",
            "over",
            "at",
            "swap",
            "end_ended",
            "end_exited",
            "stutter",
            "excluded_deadlocks",
            super::INPUT_ENDED,
            super::STUTTER,
        ]
        .iter()
        .for_each(|name| names.reserve(name));
        let processes = program.processes.iter().map(|process| names.claim(&process.name)).collect();
        let mut channels = Vec::new();
        for (index, channel) in program.channels.iter().enumerate() {
            let mut fields = Vec::new();
            for ty in &channel.payload {
                for leaf in memory::leaves(&program.types, *ty) {
                    let count = (leaf.count as usize).min(MAX_FIELDS + 1);
                    fields.extend(std::iter::repeat_n(leaf.kind, count));
                }
            }
            let counted: Vec<bool> = channel.payload.iter().map(|ty| refers(&program.types, *ty)).collect();
            fields.extend(counted.iter().filter(|counted| **counted).map(|_| Kind::Bool));
            let name = names.claim(&channel.name);
            let bounded = model.bounds.get(index).copied().flatten().is_some();
            let sent = bounded.then(|| names.claim(&format!("{}_sent", channel.name)));
            channels.push(ChannelPlan { name, guarded: is_guarded(program, index), fields, counted, sent });
        }
        let pools = program.types.pools().iter().map(|pool| names.claim(&pool.name)).collect::<Vec<_>>();
        for pool in &pools {
            names.reserve(&format!("{pool}_free"));
            names.reserve(&format!("{pool}_count"));
        }
        let constants = program
            .constants
            .iter()
            .map(|constant| ConstantPlan::new(&program.types, names.claim(&constant.name), constant));
        let constants = constants.collect();
        let exits = program
            .processes
            .iter()
            .flat_map(|process| &process.body.blocks)
            .any(|block| matches!(block.terminator, Terminator::Exit(_)))
            || !excluded.is_empty();
        Plan {
            model,
            program,
            checks,
            channels,
            pools,
            constants,
            processes,
            names,
            paths: Paths::default(),
            monitor: None,
            excluded,
            exits,
            refusals: RefCell::new(Vec::new()),
            approximations: RefCell::new(Vec::new()),
        }
    }

    /// A line that reports a fault unless a condition holds, and its mark.
    pub(super) fn assertion(&self, fault: Fault, location: Location, condition: &str) -> (Mark, String) {
        let name = fault_name(fault);
        if self.excluded.contains(&(fault, location)) {
            let end = "over = _pid + 1; goto end_exited";
            (Mark::Local, format!("if :: {condition} :: else -> {end} fi; /* {name}, excluded */"))
        } else {
            (Mark::Fault(fault), format!("assert({condition}); /* {name} */"))
        }
    }

    /// Adds the sender to the messages of the channels that fast paths need it on.
    pub(super) fn add_senders(&mut self) {
        for channel in 0..self.program.channels.len() as u32 {
            if self.paths.names_sender(ChannelId(channel)) {
                let data = &mut self.channels[channel as usize];
                data.guarded = true;
                data.fields.push(Kind::Tag);
            }
        }
    }

    /// Refuses what exceeds Promela's limits.
    pub(super) fn check_limits(&self) {
        let used = |channel: &usize| {
            let id = ChannelId(*channel as u32);
            self.program.processes.iter().any(|process| process.sites.iter().any(|site| site.channel == id))
        };
        for index in (0..self.channels.len()).filter(used) {
            if self.channels[index].fields.len() > MAX_FIELDS {
                let channel = &self.program.channels[index];
                let message = format!("a message of `{}` has more than {MAX_FIELDS} numbers", channel.name);
                self.refuse(
                    channel.location,
                    message,
                    "shorten its types in the model: `abstract drop` what it carries",
                );
            }
        }
        let replicas = self.program.processes.iter().map(|process| (process.location, process.replicas as usize));
        if let Some((location, instances)) = beyond(MAX_NUMBERED, replicas) {
            let message = format!("Promela has room for {MAX_NUMBERED} processes, the program has {instances}");
            self.refuse(location, message, "a model with `slice` explores a part");
        }
        let channels = (0..self.channels.len())
            .filter(used)
            .filter(|index| self.is_internal(ChannelId(*index as u32)))
            .map(|index| (self.program.channels[index].location, if self.channels[index].guarded { 3 } else { 1 }));
        if let Some((location, channels)) = beyond(MAX_NUMBERED, channels) {
            let message = format!(
                "Promela has room for {MAX_NUMBERED} channels, the program needs {channels}: one, or three if guarded"
            );
            self.refuse(location, message, "a model with `slice` explores a part");
        }
        for (number, pool) in self.program.types.pools().iter().enumerate() {
            if pool.capacity as usize > MAX_NUMBERED {
                let message = format!("the pool `{}` has more than {MAX_NUMBERED} objects", pool.name);
                let location = self.first_allocation(PoolId(number as u32));
                self.refuse(location, message, "explore the program with a smaller pool");
            }
        }
    }

    /// Where an object of a pool is first taken.
    fn first_allocation(&self, pool: PoolId) -> Location {
        let bodies = self.program.processes.iter().map(|process| &process.body);
        let mut instructions = bodies.flat_map(|body| &body.blocks).flat_map(|block| &block.instructions);
        let taken = instructions.find(|instruction| matches!(instruction.op, Op::Allocate(of) if of == pool));
        taken.map(|instruction| instruction.location).unwrap_or_default()
    }

    pub(super) fn refuse(&self, location: Location, message: impl Into<String>, help: &str) {
        let (message, help) = (message.into(), help.to_string());
        self.add(Refusal { code: Code::E0804, location, property: None, message, help });
    }

    pub(super) fn add(&self, refusal: Refusal) {
        let mut refusals = self.refusals.borrow_mut();
        if !refusals.contains(&refusal) {
            refusals.push(refusal);
        }
    }

    pub(super) fn approximate(&self, location: Location, what: &'static str) {
        let approximation = Approximation { location, what };
        let mut all = self.approximations.borrow_mut();
        if !all.contains(&approximation) {
            all.push(approximation);
        }
    }

    pub(super) fn is_internal(&self, channel: ChannelId) -> bool {
        self.program.channels[channel.0 as usize].boundary == Boundary::Internal
    }

    pub(super) fn count(&self, pool: PoolId, object: &Expr) -> Expr {
        let name = &self.pools[pool.0 as usize];
        match self.program.types.pool(pool).capacity {
            1 => Expr::tight(format!("{name}_count")),
            _ => Expr::tight(format!("{name}_count[{}]", object.text)),
        }
    }
}

/// The place at which a sum exceeds `max`, and the total; nothing if it does not exceed it.
fn beyond(max: usize, parts: impl Iterator<Item = (Location, usize)>) -> Option<(Location, usize)> {
    let mut sum = 0;
    let mut place = None;
    for (location, count) in parts {
        sum += count;
        if sum > max && place.is_none() {
            place = Some(location);
        }
    }
    place.map(|place| (place, sum))
}

/// Whether values of a type refer to objects.
pub(super) fn refers(types: &TypeTable, ty: TypeId) -> bool {
    memory::leaves(types, ty).iter().any(|leaf| matches!(leaf.kind, Kind::Reference(_)))
}

fn is_guarded(program: &Program, channel: usize) -> bool {
    let branches = program
        .processes
        .iter()
        .flat_map(|process| &process.body.blocks)
        .flat_map(|block| block.terminator.as_wait().map_or(&[][..], |wait| &wait.branches));
    branches.into_iter().any(|branch| match &branch.operation {
        Operation::In { channel: of, condition, .. } => {
            of.0 as usize == channel && (branch.guard != Guard::Open || condition.is_some())
        }
        Operation::Out { channel: of, payload, .. } => {
            of.0 as usize == channel && (branch.guard != Guard::Open || matches!(payload, Payload::Region(_)))
        }
        Operation::After { .. } => false,
    })
}
