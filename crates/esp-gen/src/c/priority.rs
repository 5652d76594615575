//! What a waiting `pri alt` does before another instance meets it by one of its later branches: an earlier one may be
//! able to go, as the world is ready, a time has passed, or a guard that asks for free objects has opened.
//!
//! ```text
//!   P_w4_held(t, self, before)           whether a guard that has opened may let a branch before this one go inside:
//!                                        whoever's it is is on the ready list to look, and the asker queues behind
//! ```

use super::code::{Code, Scope, line};
use super::functions::Functions;
use super::outside::first_call;
use super::plan::{End, Plan, asks_free};
use super::process::{push, reopen};

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
