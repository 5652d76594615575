//! Priority arbitration at run time: what a requester does about a waiting `pri alt`, its owner, before it takes it at
//! one of its later branches. The plan's module of the same name defines the terms and decides where they apply.
//!
//! ```text
//!   P_w4_must_defer(t, self, before)     whether a guard that has opened may make a branch before this one possible
//!   prefers(t, self, before, other, pc)  whether a requester, which is at the wait with this number, could meet the
//!                                        owner at a branch before this one: it bypasses this one
//!   P_w4_b0_offer(t, self, m)            a branch's message if it is open: 0 closed, 1 it is in m, else a fault
//!   P_w4_b0_accept(t, self, m, r)        whether a branch is open and accepts a message, or would fault on it
//! ```

use super::environment::commit_earlier_call;
use super::functions::Functions;
use super::helpers::Depth;
use super::message::{Source, dead_message, ready_message};
use super::owner::Owner;
use super::plan::{End, Plan, has_free_object_guard, processes_of};
use super::ready_list::{push, reopen};
use super::wait_state::open_condition;
use super::writer::{Scope, Writer, line};
use quaject_esp_ir::ir::{AltOrder, Operation, Payload};
use std::collections::BTreeSet;

/// Whether a search skips owners that have been bypassed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusion {
    /// It skips none.
    None,
    /// Their bits are an argument.
    Always,
    /// Their bits are an argument, or null.
    Optional,
}

impl Exclusion {
    /// The parameter of a search function.
    pub(crate) fn parameter(self) -> &'static str {
        match self {
            Exclusion::None => "",
            Exclusion::Always | Exclusion::Optional => ", const uint32_t *excluded",
        }
    }
}

/// Whether an end may bypass one of its partners.
pub(crate) fn may_bypass_any(plan: &Plan<'_>, end: End, partners: &[End]) -> bool {
    partners.iter().any(|partner| plan.is_bypassed_by(*partner, (end.process, end.wait)))
}

/// Repeats the search for a partner while its result is bypassed; `excluded_` are the bits of those. A `pri alt` that
/// has bypassed all owners takes the first of them after all.
pub(crate) fn repeat_search(
    code: &mut Writer<'_, '_>,
    requester: End,
    words: u32,
    search: impl FnOnce(&mut Writer<'_, '_>),
) {
    code.open("{");
    line!(code, "uint32_t excluded_[{0}] = {{0}}, bypassed_ = 0;", words.max(1));
    code.block("for (;;) {", |code| {
        search(code);
        match code.plan.wait(requester.process, requester.wait).order {
            AltOrder::Fair => {}
            AltOrder::Priority => code.block("if (bypassed_ == 1u) {", |code| {
                code.line("esp_zero(excluded_, sizeof excluded_);");
                code.line("bypassed_ = 2;");
                code.line("continue;");
            }),
        }
        code.line("break;");
    });
    code.close("}");
}

/// Bypasses an owner that was found, if it prefers to be met otherwise: `partner` is the C text of its number, `branch`
/// of the branch that it was found at.
pub(crate) fn bypass(code: &mut Writer<'_, '_>, requester: End, partners: &[End], partner: &str, branch: &str) {
    let plan = code.plan;
    let pc = plan.wait_plan(requester).pc;
    let own = plan.own_id(requester.process);
    code.block(&format!("if (bypassed_ != 2u && prefers(t, {partner}, {branch}, {own}, {pc}u)) {{"), |code| {
        let all = processes_of(partners);
        let mut bit = String::new();
        for (index, process) in all.iter().enumerate() {
            let data = &plan.processes[*process];
            let this = format!("{partner} - {}u + {}u", data.base, plan.first_bit(partners, *process));
            if index + 1 == all.len() {
                bit.push_str(&this);
            } else {
                bit.push_str(&format!("{partner} - {}u < {}u ? {this} : ", data.base, data.replicas));
            }
        }
        line!(code, "const uint32_t bit_ = {bit};");
        code.line("if (excluded_[bit_ / 32u] >> bit_ % 32u & 1u) break;");
        code.line("excluded_[bit_ / 32u] |= ESP_BIT(bit_ % 32u);");
        code.line("bypassed_ = 1;");
        code.line("continue;");
    });
}

/// A call of the function that says whether a requester must defer.
pub(crate) fn must_defer_call(plan: &Plan<'_>, end: End, instance: &str, branch: &str) -> String {
    format!("{}_must_defer(t, {instance}, {branch})", plan.wait_name(end.process, end.wait))
}

impl Functions<'_, '_> {
    /// The function that says whether a requester must defer to a waiting `pri alt`.
    pub(crate) fn must_defer(&mut self, process: usize, wait: usize) {
        let plan = self.plan;
        let branches = &plan.wait(process, wait).branches;
        let last = End { process, wait, branch: branches.len() - 1 };
        if !plan.branch_plan(last).may_be_deferred_to {
            return;
        }
        let name = plan.wait_name(process, wait);
        let head = format!("static uint32_t {name}_must_defer({} *t, esp_pid self, uint32_t before)", self.state());
        let mut code = self.code(Scope::Region(process));
        for (number, branch) in branches[..last.branch].iter().enumerate() {
            if has_free_object_guard(branch) && plan.is_internal(branch) {
                line!(code, "if (before > {number}u && t->queued[self] == 2u) return 1;");
            }
            let partners = plan.opposite(branch).iter();
            for partner in partners.filter(|partner| has_free_object_guard(plan.branch(**partner))) {
                let data = &plan.processes[partner.process];
                let pc = data.waits[partner.wait].pc;
                code.block(&format!("if (before > {number}u) {{"), |code| {
                    code.line("esp_pid i;");
                    let instances = format!("for (i = {}u; i < {}u; i++) {{", data.base, data.base + data.replicas);
                    code.block(&instances, |code| {
                        line!(code, "if (i != self && t->queued[i] == 2u && t->pc[i] == {pc}u) return 1;");
                    });
                });
            }
        }
        code.line("(void)t; (void)self;");
        code.line("return 0;");
        self.add(&head, code);
    }

    /// The functions that answer preference queries.
    pub(crate) fn preferences(&mut self) {
        let plan = self.plan;
        let queries = &plan.preference_queries;
        if queries.is_empty() {
            return;
        }
        let ends: BTreeSet<End> = queries.iter().flat_map(|(owner, requester)| [*owner, *requester]).collect();
        ends.into_iter().for_each(|end| self.query_end(end));
        let head = format!(
            "static ESP_UNUSED bool prefers({} *t, esp_pid self, uint32_t before, esp_pid other, uint32_t pc)",
            self.state()
        );
        let mut code = self.code(Scope::Function(0));
        for (owner, requester) in queries.iter().copied() {
            let test = format!(
                "if (before > {}u && t->pc[self] == {}u && pc == {}u) {{",
                owner.branch,
                plan.wait_plan(owner).pc,
                plan.wait_plan(requester).pc
            );
            code.block(&test, |code| try_pair(code, owner, requester));
        }
        code.line("(void)other;");
        code.line("return false;");
        self.add_of(Owner::Scheduler, &head, code);
    }

    /// The function that evaluates one end of a preferred rendezvous.
    fn query_end(&mut self, end: End) {
        let plan = self.plan;
        let name = plan.branch_name(end);
        let mut code = self.code(Scope::Region(end.process));
        self.enter(&mut code, end.process);
        code.line("(void)m;");
        if let Some(open) = open_condition(plan, end) {
            line!(code, "if (!({open})) return 0;");
        }
        let head = match &plan.branch(end).operation {
            Operation::Out { channel, payload, .. } => {
                let channel = channel.0 as usize;
                match payload {
                    Payload::Ready(parts) => {
                        ready_message(&mut code, end, parts, "m->", Source::Parked);
                        if let Some((dead, number)) = dead_message(&code, end, channel, "(*m)", Depth::Direct) {
                            line!(code, "if (ESP_UNLIKELY({dead})) return {number};");
                        }
                        code.line("return 1;");
                    }
                    Payload::Region(_) => line!(code, "return {name}_payload(t, self, m);"),
                }
                let view = &plan.channels[channel].name;
                format!("static uint32_t {name}_offer({} *t, esp_pid self, {view}_view *m)", self.state())
            }
            Operation::In { channel, .. } => {
                line!(code, "return fault > 1u ? fault : {name}_match(t, self, m);");
                let message = self.message_type(channel.0 as usize);
                let state = self.state();
                format!("static uint32_t {name}_accept({state} *t, esp_pid self, const {message} *m, uint32_t fault)")
            }
            Operation::After { .. } => unreachable!("an `after` has no partner"),
        };
        self.add(&head, code);
    }
}

/// Evaluates whether a pair of ends can meet, and undoes what the evaluation has changed.
fn try_pair(code: &mut Writer<'_, '_>, owner: End, requester: End) {
    let plan = code.plan;
    let (from, to, sender, receiver) = match &plan.branch(owner).operation {
        Operation::Out { .. } => (owner, requester, "self", "other"),
        Operation::In { .. } | Operation::After { .. } => (requester, owner, "other", "self"),
    };
    let Operation::Out { channel, .. } = &plan.branch(from).operation else {
        unreachable!("one end of a rendezvous is an `out`")
    };
    line!(code, "{}_view v_;", plan.channels[channel.0 as usize].name);
    code.line("uint32_t r_;");
    let is_undone = plan.branch_plan(from).payload_takes_objects || plan.branch_plan(to).condition_takes_objects;
    if is_undone {
        code.line("pools_save(t);");
    }
    line!(code, "r_ = {}_offer(t, {sender}, &v_);", plan.branch_name(from));
    line!(code, "if (r_ != 0u) r_ = {}_accept(t, {receiver}, &v_, r_);", plan.branch_name(to));
    if is_undone {
        code.line("pools_restore(t);");
    }
    code.line("if (r_ != 0u) return true;");
}

/// Calls a function of the wait at which the partner is, if it is one of these that have the function, and writes what
/// depends on the result `e_`, which is 0 otherwise.
fn query_partner(
    code: &mut Writer<'_, '_>,
    partners: &[End],
    partner: &str,
    has_function: &dyn Fn(End) -> bool,
    call: &dyn Fn(End) -> String,
    consequence: &dyn Fn(&mut Writer<'_, '_>),
) {
    let plan = code.plan;
    let mut waits: Vec<End> = Vec::new();
    for end in partners.iter().filter(|end| has_function(**end)) {
        if !waits.iter().any(|known| (known.process, known.wait) == (end.process, end.wait)) {
            waits.push(*end);
        }
    }
    if waits.is_empty() {
        return;
    }
    code.open("{");
    match partners {
        [end] => line!(code, "const uint32_t e_ = {};", call(*end)),
        _ => {
            code.line("uint32_t e_ = 0;");
            code.open(&format!("switch (t->pc[{partner}]) {{"));
            for end in waits {
                code.case(&format!("case {}:", plan.wait_plan(end).pc), |code| {
                    line!(code, "e_ = {};", call(end));
                    code.line("break;");
                });
            }
            code.close_switch();
        }
    }
    consequence(code);
    code.close("}");
}

/// Arbitrates before a rendezvous with a waiting `pri alt`: the requester defers if it must, else preempts the owner if
/// it can. A preempted owner joins the ready list, and the requester searches again. `partner` is the C text of the
/// owner's number, `branch` of the branch that it would be met at.
pub(crate) fn arbitrate(code: &mut Writer<'_, '_>, requester: End, partners: &[End], partner: &str, branch: &str) {
    let plan = code.plan;
    let wait = plan.wait_name(requester.process, requester.wait);
    query_partner(
        code,
        partners,
        partner,
        &|end| plan.branch_plan(end).may_be_deferred_to,
        &|end| must_defer_call(plan, end, partner, branch),
        &|code| line!(code, "if (e_ != 0u) goto {wait}_later;"),
    );
    query_partner(
        code,
        partners,
        partner,
        &|end| plan.branch_plan(end).may_be_preempted,
        &|end| commit_earlier_call(plan, end, partner, branch),
        &|code| code.block("if (e_ != 0u) {", |code| preempted(code, requester, partner)),
    );
}

/// After a branch was committed for the owner.
fn preempted(code: &mut Writer<'_, '_>, requester: End, owner: &str) {
    let plan = code.plan;
    code.block("if (ESP_UNLIKELY(e_ > 1u && e_ != ESP_SENT)) {", |code| {
        code.line("where = e_;");
        line!(code, "t->instance = {owner};");
        code.line("goto faulted;");
    });
    reopen(code);
    push(code, owner);
    if let Some(pc) = plan.wait_plan(requester).retry_pc {
        code.block("if (e_ == ESP_SENT && ++put_ == out->head.limit) {", |code| {
            line!(code, "t->requester = {} + 1u;", plan.own_id(requester.process));
            line!(code, "t->requester_pc = {pc};");
            code.line("t->requester_left = left;");
            code.line("goto again;");
        });
    }
    line!(code, "goto {}_try;", plan.wait_name(requester.process, requester.wait));
}
