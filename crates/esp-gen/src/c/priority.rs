//! What a waiting `pri alt` does before another instance meets it by one of its later branches: an earlier one may be
//! able to go, as the world is ready, a time has passed, a guard that asks for free objects has opened, or the other
//! instance could meet that one as well.
//!
//! ```text
//!   P_w4_held(t, self, before)           whether a guard that has opened may let a branch before this one go inside:
//!                                        whoever's it is is on the ready list to look, and the asker queues behind
//!   prefers(t, self, before, other, pc)  whether another instance, which is at the wait with this number and not a
//!                                        `pri alt`, could meet a branch before this one: it passes this one by
//!   P_w4_b0_says(t, self, m)             a branch's message if it is open: 0 it is not, 1 it is in m, else a fault
//!   P_w4_b0_takes(t, self, m, r)         whether a branch is open and takes a message that is or would fault
//! ```

use super::code::{Code, Owner, Scope, line};
use super::functions::Functions;
use super::helpers::Depth;
use super::matching::{
    Source, condition_takes_objects, dead_message, open_condition, payload_takes_objects, processes, ready_message,
};
use super::outside::first_call;
use super::plan::{End, Plan, asks_free, branch_channel};
use super::process::{push, reopen};
use quaject_esp_ir::ir::{AltOrder, Branch, Direction, Operation, Payload};
use std::collections::BTreeSet;

impl Plan<'_> {
    /// Whether a branch of a `pri alt` stands after one on the world or the clock, which comes first if it can commit.
    pub(crate) fn is_outranked(&self, end: End) -> bool {
        let wait = self.wait(end.process, end.wait);
        match wait.order {
            AltOrder::Priority => wait.branches[..end.branch].iter().any(|branch| !self.is_internal(branch)),
            AltOrder::Fair => false,
        }
    }

    /// Whether a branch of a `pri alt` stands after one inside that may become possible while it waits, as a guard at
    /// either end of that asks for free objects.
    pub(crate) fn is_held(&self, end: End) -> bool {
        let wait = self.wait(end.process, end.wait);
        let opens = |branch: &Branch| {
            self.is_internal(branch)
                && (asks_free(branch) || self.opposite(branch).iter().any(|partner| asks_free(self.branch(*partner))))
        };
        match wait.order {
            AltOrder::Priority => wait.branches[..end.branch].iter().any(opens),
            AltOrder::Fair => false,
        }
    }

    /// Whether who is at this wait may pass by a branch of a waiting `pri alt`, as it could meet an earlier one: an alt
    /// that is not `pri` always, a `pri alt` if somebody else can be met there.
    pub(crate) fn is_passed_by(&self, end: End, asker: (usize, usize)) -> bool {
        let others = match branch_channel(self.branch(end)) {
            Some((channel, Direction::In)) => self.channels[channel.0 as usize].reader_words() > 0,
            Some((channel, Direction::Out)) => self.channels[channel.0 as usize].writer_words() > 0,
            None => false,
        };
        let passes = match (self.wait(end.process, end.wait).order, self.wait(asker.0, asker.1).order) {
            (AltOrder::Priority, AltOrder::Fair) => true,
            (AltOrder::Priority, AltOrder::Priority) => others,
            (AltOrder::Fair, _) => false,
        };
        passes && self.rivals(end, asker).next().is_some()
    }

    /// The meetings of a `pri alt` with an instance at another wait that stand before a branch: its own end first.
    fn rivals(&self, end: End, asker: (usize, usize)) -> impl Iterator<Item = (End, End)> {
        let branches = self.wait(end.process, end.wait).branches[..end.branch].iter().enumerate();
        branches.flat_map(move |(branch, data)| {
            let theirs = self.opposite(data).iter().filter(move |other| (other.process, other.wait) == asker);
            theirs.map(move |other| (End { branch, ..end }, *other))
        })
    }

    /// Whether somebody may pass by this branch.
    pub(crate) fn may_be_passed_by(&self, end: End) -> bool {
        let askers = self.opposite(self.branch(end)).iter();
        askers.map(|asker| (asker.process, asker.wait)).any(|asker| self.is_passed_by(end, asker))
    }

    /// Whether one of these ends is asked whether it could meet another.
    pub(crate) fn is_asked(&self, ends: &[End]) -> bool {
        self.asked.iter().any(|(own, other)| ends.contains(own) || ends.contains(other))
    }

    /// All meetings that are asked for before somebody passes by: who waits, and who asks.
    pub(crate) fn asked_ends(&self) -> BTreeSet<(End, End)> {
        let mut all = BTreeSet::new();
        for (process, data) in self.processes.iter().enumerate() {
            for wait in 0..data.waits.len() {
                for branch in 0..self.wait(process, wait).branches.len() {
                    let end = End { process, wait, branch };
                    for asker in self.opposite(self.branch(end)) {
                        if self.is_passed_by(end, (asker.process, asker.wait)) {
                            all.extend(self.rivals(end, (asker.process, asker.wait)));
                        }
                    }
                }
            }
        }
        all
    }
}

/// Whether a search leaves out those that have been passed by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    None,
    /// Their bits are an argument.
    Always,
    /// Their bits are an argument, or null.
    Perhaps,
}

/// Whether an end may pass by one of its partners that waits at a `pri alt`.
pub(crate) fn passes_by(plan: &Plan<'_>, end: End, partners: &[End]) -> bool {
    partners.iter().any(|partner| plan.is_passed_by(*partner, (end.process, end.wait)))
}

/// Whether some writer may pass by a reader of a channel.
pub(crate) fn readers_are_passed_by(plan: &Plan<'_>, channel: usize) -> bool {
    plan.channels[channel].readers.iter().any(|reader| plan.may_be_passed_by(*reader))
}

/// Opens a search that is repeated while those it finds are passed by; `but_` are their bits. A `pri alt` that has passed
/// by everybody takes the first of them after all.
pub(crate) fn open_search(code: &mut Code<'_, '_>, words: u32) {
    code.open("{");
    line!(code, "uint32_t but_[{0}] = {{0}}, passed_ = 0;", words.max(1));
    code.open("for (;;) {");
}

/// Passes by an instance that has been found, if it would rather be met otherwise: `partner` is the C text of its
/// number, `branch` of the one it was found at.
pub(crate) fn pass_by(code: &mut Code<'_, '_>, asker: End, partners: &[End], partner: &str, branch: &str) {
    let plan = code.plan;
    let pc = plan.processes[asker.process].waits[asker.wait].pc;
    let own = plan.own_id(asker.process);
    code.open(&format!("if (passed_ != 2 && prefers(t, {partner}, {branch}, {own}, {pc}u)) {{"));
    let all = processes(partners);
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
    code.line("if (but_[bit_ / 32u] >> bit_ % 32u & 1u) break;");
    code.line("but_[bit_ / 32u] |= 1u << bit_ % 32u;");
    code.line("passed_ = 1;");
    code.line("continue;");
    code.close("}");
}

/// Ends what [`open_search`] has opened.
pub(crate) fn close_search(code: &mut Code<'_, '_>, asker: End) {
    match code.plan.wait(asker.process, asker.wait).order {
        AltOrder::Fair => {}
        AltOrder::Priority => {
            code.open("if (passed_ == 1) {");
            code.line("esp_zero(but_, sizeof but_);");
            code.line("passed_ = 2;");
            code.line("continue;");
            code.close("}");
        }
    }
    code.line("break;");
    code.close("}");
    code.close("}");
}

/// A call of the function that says whether a waiting `pri alt` has to look for itself first.
pub(crate) fn held_call(plan: &Plan<'_>, end: End, instance: &str, branch: &str) -> String {
    format!("{}_held(t, {instance}, {branch})", plan.wait_name(end.process, end.wait))
}

impl Functions<'_, '_> {
    /// Whether a waiting `pri alt` has to look for itself before it is met by one of its later branches.
    pub(crate) fn held(&mut self, process: usize, wait: usize) {
        let plan = self.plan;
        let branches = &plan.wait(process, wait).branches;
        let last = End { process, wait, branch: branches.len() - 1 };
        if !plan.is_held(last) {
            return;
        }
        let name = plan.wait_name(process, wait);
        let head = format!("static uint32_t {name}_held({} *t, esp_pid self, uint32_t before)", self.state());
        let mut code = self.code(Scope::Region(process));
        for (number, branch) in branches[..last.branch].iter().enumerate() {
            if asks_free(branch) && plan.is_internal(branch) {
                line!(code, "if (before > {number} && t->queued[self] == 2) return 1;");
            }
            for partner in plan.opposite(branch).iter().filter(|partner| asks_free(plan.branch(**partner))) {
                let data = &plan.processes[partner.process];
                let pc = data.waits[partner.wait].pc;
                code.open(&format!("if (before > {number}) {{"));
                code.line("esp_pid i;");
                code.open(&format!("for (i = {}u; i < {}u; i++) {{", data.base, data.base + data.replicas));
                line!(code, "if (i != self && t->queued[i] == 2 && t->pc[i] == {pc}) return 1;");
                code.close("}");
                code.close("}");
            }
        }
        code.line("(void)t; (void)self;");
        code.line("return 0;");
        self.add(&head, code);
    }
}

impl Functions<'_, '_> {
    /// What an alt asks before it passes by a `pri alt`.
    pub(crate) fn preferences(&mut self) {
        let plan = self.plan;
        let asked = &plan.asked;
        if asked.is_empty() {
            return;
        }
        let ends: BTreeSet<End> = asked.iter().flat_map(|(own, other)| [*own, *other]).collect();
        ends.into_iter().for_each(|end| self.asked(end));
        let head = format!(
            "static ESP_UNUSED bool prefers({} *t, esp_pid self, uint32_t before, esp_pid other, uint32_t pc)",
            self.state()
        );
        let mut code = self.code(Scope::Function(0));
        for (own, other) in asked.iter().copied() {
            let pc = |end: End| plan.processes[end.process].waits[end.wait].pc;
            code.open(&format!(
                "if (before > {} && t->pc[self] == {} && pc == {}u) {{",
                own.branch,
                pc(own),
                pc(other)
            ));
            let (from, to, sender, receiver) = match &plan.branch(own).operation {
                Operation::Out { .. } => (own, other, "self", "other"),
                Operation::In { .. } | Operation::After { .. } => (other, own, "other", "self"),
            };
            let Operation::Out { channel, .. } = &plan.branch(from).operation else {
                unreachable!("one of two that meet is an `out`")
            };
            line!(code, "{}_view v_;", plan.channels[channel.0 as usize].name);
            code.line("uint32_t r_;");
            let trial = payload_takes_objects(plan, from) || condition_takes_objects(plan, to);
            if trial {
                code.line("pools_save(t);");
            }
            line!(code, "r_ = {}_says(t, {sender}, &v_);", plan.branch_name(from));
            line!(code, "if (r_) r_ = {}_takes(t, {receiver}, &v_, r_);", plan.branch_name(to));
            if trial {
                code.line("pools_restore(t);");
            }
            code.line("if (r_) return true;");
            code.close("}");
        }
        code.line("(void)other;");
        code.line("return false;");
        self.add_of(Owner::Scheduler, &head, code);
    }

    /// One end of a meeting that may be preferred.
    fn asked(&mut self, end: End) {
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
                format!(
                    "static uint32_t {name}_says({} *t, esp_pid self, {}_view *m)",
                    self.state(),
                    plan.channels[channel].name
                )
            }
            Operation::In { channel, .. } => {
                line!(code, "return fault > 1 ? fault : {name}_match(t, self, m);");
                format!(
                    "static uint32_t {name}_takes({} *t, esp_pid self, const {} *m, uint32_t fault)",
                    self.state(),
                    self.message_type(channel.0 as usize)
                )
            }
            Operation::After { .. } => unreachable!("nobody meets a time"),
        };
        self.add(&head, code);
    }
}

/// Asks a function of the wait at which the partner is, one of these; `e_` is what it says, or 0. Whether there is
/// anybody to ask.
fn ask_partner(
    code: &mut Code<'_, '_>,
    partners: &[End],
    partner: &str,
    is_asked: &dyn Fn(End) -> bool,
    call: &dyn Fn(End) -> String,
) -> bool {
    let plan = code.plan;
    let mut waits: Vec<End> = Vec::new();
    for end in partners.iter().filter(|end| is_asked(**end)) {
        if !waits.iter().any(|known| (known.process, known.wait) == (end.process, end.wait)) {
            waits.push(*end);
        }
    }
    if waits.is_empty() {
        return false;
    }
    code.open("{");
    match partners {
        [end] => line!(code, "const uint32_t e_ = {};", call(*end)),
        _ => {
            code.line("uint32_t e_ = 0;");
            code.open(&format!("switch (t->pc[{partner}]) {{"));
            for end in waits {
                line!(code, "case {}:", plan.processes[end.process].waits[end.wait].pc);
                code.indent += 1;
                line!(code, "e_ = {};", call(end));
                code.line("break;");
                code.indent -= 1;
            }
            code.line("default:");
            code.line("    break;");
            code.close("}");
        }
    }
    true
}

/// Before a meeting with a waiting `pri alt`. If a guard has opened that may let an earlier branch of it go inside, the
/// asker queues behind whose guard that is. If one of its earlier branches can commit outside, it takes that one,
/// queues to go on, and the search begins anew. `partner` is the C text of its number, `branch` of the one it is met
/// by.
pub(crate) fn give_way(code: &mut Code<'_, '_>, asker: End, partners: &[End], partner: &str, branch: &str) {
    let plan = code.plan;
    let wait = plan.wait_name(asker.process, asker.wait);
    if ask_partner(code, partners, partner, &|end| plan.is_held(end), &|end| held_call(plan, end, partner, branch)) {
        line!(code, "if (e_) goto {wait}_later;");
        code.close("}");
    }
    let call = |end| first_call(plan, end, partner, branch);
    if !ask_partner(code, partners, partner, &|end| plan.is_outranked(end), &call) {
        return;
    }
    let details = &plan.processes[asker.process].waits[asker.wait];
    code.open("if (e_) {");
    code.open("if (ESP_UNLIKELY(e_ > 1 && e_ != ESP_SENT)) {");
    code.line("where = e_;");
    line!(code, "t->instance = {partner};");
    code.line("goto faulted;");
    code.close("}");
    reopen(code);
    push(code, partner);
    if let Some(pc) = details.resume_pc {
        code.open("if (e_ == ESP_SENT && ++put_ == out->head.limit) {");
        line!(code, "t->asker = {} + 1;", plan.own_id(asker.process));
        line!(code, "t->asker_pc = {pc};");
        code.line("t->asker_left = left;");
        code.line("goto again;");
        code.close("}");
    }
    line!(code, "goto {wait}_try;");
    code.close("}");
    code.close("}");
}
