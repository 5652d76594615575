//! Builds the plan: the order of the analyses is that of [`Plan::new`].

use super::super::Options;
use super::super::names::{Names, OWN_NAMES, include_guard, member};
use super::super::storage::{Promotion, assign_local_storage};
use super::enumerations::plan_enumerations;
use super::paths::{path_constraints, path_functions};
use super::type_names::type_names;
use super::waits::Numbering;
use super::{ChannelPlan, Features, FunctionPlan, HandOffPlan, Lookup, Plan, ProcessPlan, TurnLimits, unsigned_bits};
use crate::layout::Layouts;
use quaject_esp_ir::cfg::region_entries;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::pool_recheck::PoolRecheck;
use std::collections::BTreeSet;

/// Turns of single instances.
const QUEUED: TurnLimits = TurnLimits { operations: 64, until_poll: 64, until_leave: 16384 };

/// With direct hand-off a turn is that of a chain of processes, and longer; the environment is polled as often.
const DIRECT: TurnLimits = TurnLimits { operations: 1024, until_poll: 4, until_leave: 1024 };

impl<'a> Plan<'a> {
    /// Plans the C of a program.
    pub(crate) fn new(program: &'a Program, options: &'a Options) -> Plan<'a> {
        let mut names = Names::new();
        OWN_NAMES.iter().for_each(|word| names.reserve(word));
        names.reserve(&include_guard(&options.header_name));
        let (mut plan, pc) = Plan::with_processes(program, options, &mut names);
        plan.capture_slots();
        plan.collect_ends();
        plan.plan_priorities();
        let pc = plan.plan_restarts(pc);
        plan.features = plan.find_features();
        plan.find_allocations();
        plan.plan_lookups();
        plan.hand_off = plan.plan_hand_off(pc);
        plan.turns = if plan.hand_off.pcs.is_empty() { QUEUED } else { DIRECT };
        plan.pc_bits = plan.find_pc_bits();
        plan.place_tails();
        plan
    }

    /// Names, storage and program counters; nothing of the partners of waits.
    fn with_processes(program: &'a Program, options: &'a Options, names: &mut Names) -> (Plan<'a>, u32) {
        let prefix = options.prefix.clone().unwrap_or_else(|| "esp".to_string());
        let own = options.prefix.as_ref().map(|prefix| format!("{prefix}_")).unwrap_or_default();
        let layouts = Layouts::of(&program.types);
        let (types, environment_types) = type_names(&program.types, &layouts, &own, names);
        let channels = program.channels.iter().map(|channel| plan_channel(channel, &layouts, &own, names)).collect();
        let pools = program.types.pools().iter().map(|pool| names.claim(&format!("{own}{}_pool", pool.name))).collect();
        let functions = program.functions.iter().map(|function| FunctionPlan {
            name: names.claim(&format!("{own}fn_{}", function.name)),
            storage: assign_local_storage(&function.body),
        });
        let functions = functions.collect();
        let interfaces =
            program.interfaces.iter().map(|interface| names.claim(&format!("{own}{}", interface.name))).collect();
        let enumerations = plan_enumerations(program, &own, names);
        let pool_recheck = PoolRecheck::new(program);
        let mut numbering =
            Numbering { program, layouts: &layouts, pool_recheck: &pool_recheck, next_pc: 1, next_instance: 0 };
        let processes = plan_processes(&mut numbering, options, &own, names);
        let constants = program.constants.iter().map(|constant| names.claim(&format!("{own}const_{}", constant.name)));
        let constants = constants.collect();
        let (next_pc, instances) = (numbering.next_pc, numbering.next_instance);
        let plan = Plan {
            program,
            layouts,
            options,
            processes,
            functions,
            channels,
            pools,
            constants,
            interfaces,
            enumerations,
            instances,
            prefix,
            own,
            types,
            environment_types,
            features: Features::default(),
            turns: QUEUED,
            pc_bits: 8,
            preference_queries: BTreeSet::new(),
            hand_off: HandOffPlan::default(),
        };
        (plan, next_pc)
    }

    fn find_features(&self) -> Features {
        let mut waits = self.processes.iter().flat_map(|process| &process.waits);
        let reevaluates_guards = waits.clone().any(|wait| wait.reevaluates_guards);
        let has_regions = |(process, wait)| !region_entries(self.wait(process, wait)).is_empty();
        Features {
            polls_environment: waits.clone().any(|wait| wait.polls_environment),
            reevaluates_guards,
            retries_at_quiescence: waits.clone().any(|wait| wait.retries_at_quiescence),
            restarts_searches: waits.any(|wait| wait.retry_pc.is_some()),
            undoes_trials: !self.pools.is_empty() && self.waits().any(has_regions),
            queues_pcs: !reevaluates_guards && self.processes.iter().all(|process| process.replicas == 1),
        }
    }

    fn find_pc_bits(&self) -> u32 {
        let of_waits = self.waits().map(|(process, wait)| self.otherwise_pc(process, wait));
        let of_processes = self.processes.iter().flat_map(|process| {
            let restarts = process.waits.iter().filter_map(|wait| wait.retry_pc);
            let others = process.yields.values().chain(process.path_resumptions.values()).copied();
            restarts.chain(others).chain([process.start_pc])
        });
        let all = of_waits.chain(of_processes).chain(self.hand_off.pcs.values().copied());
        unsigned_bits(all.max().unwrap_or(0))
    }
}

fn plan_processes(numbering: &mut Numbering<'_>, options: &Options, own: &str, names: &mut Names) -> Vec<ProcessPlan> {
    let program = numbering.program;
    let mut processes: Vec<ProcessPlan> = Vec::new();
    for (index, process) in program.processes.iter().enumerate() {
        let wanted = format!("{own}{}", process.name);
        let name = if process.replicas > 1 { names.claim_frame(&wanted) } else { names.claim(&wanted) };
        let paths = path_functions(program, &process.body, options.style);
        let constraints = path_constraints(program, index, &paths);
        processes.push(numbering.plan_process(process, &constraints, name, paths));
    }
    if processes.iter().filter(|process| !process.waits.is_empty()).count() > 1 {
        // A process that communicates may enter a loop for each message and repeat it seldom.
        processes.iter_mut().for_each(|process| process.storage.promotion = Promotion::default());
    }
    processes
}

/// The members of a message for the environment: as the channel names its values, else `v` and their number.
fn message_members(channel: &Channel) -> Vec<String> {
    let mut names = Names::new();
    let mut members = vec![String::new(); channel.payload.len()];
    let is_named = |index: &usize| channel.value_names[*index].is_some();
    // What the program names keeps its name.
    let (named, numbered): (Vec<usize>, Vec<usize>) = (0..members.len()).partition(is_named);
    for index in named.into_iter().chain(numbered) {
        let wanted = channel.value_names[index].as_ref().map_or_else(|| format!("v{index}"), |name| member(name));
        members[index] = names.claim(&wanted);
    }
    members
}

fn plan_channel(channel: &Channel, layouts: &Layouts, own: &str, names: &mut Names) -> ChannelPlan {
    let name = names.claim(&format!("{own}{}", channel.name));
    ChannelPlan {
        plain: name.strip_prefix(own).unwrap_or(&name).to_string(),
        name,
        members: message_members(channel),
        readers: Vec::new(),
        writers: Vec::new(),
        reader_instances: 0,
        writer_instances: 0,
        has_boxes: channel.payload.iter().any(|ty| layouts.has_boxes(*ty)),
        writer_lookup: Lookup::Search,
        reader_lookup: Lookup::Search,
        readers_are_searched: false,
        readers_may_be_bypassed: false,
        commit_reopens_guards: false,
        has_shared_send: false,
        has_shared_send_exit: false,
    }
}
