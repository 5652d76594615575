//! The search for a partner where several instances may wait at one end of a channel.
//!
//! ```text
//!   P_w4_b0_match(t, self, m)            whether an `in` matches a message: pattern and condition
//!   P_offers_c(t, self, at, m, b, f)     the next message that a waiting P offers on c; 0: no more
//!   P_accepts_c(t, self, m, f, b)        whether a waiting P accepts m from c, and at which branch
//!   P_sends_c(t, self, b, m)             ends the wait of a P whose message was taken
//!   P_w4_b0_find(t, self, m, b, f)       the writer that this `in` meets, counted from 1; 0: none
//!   c_find_reader(t, self, m, f, b, r)   the reader that a message of c meets, counted from 1; 0: none
//! ```

use super::functions::Functions;
use super::helpers::Depth;
use super::message::{Source, dead_message, ready_message};
use super::owner::Owner;
use super::pattern::{conditions, message_parts};
use super::plan::{End, Lookup, Plan, processes_of};
use super::priority::{Exclusion, may_bypass_any};
use super::wait_state::{end_wait, open_condition};
use super::writer::{Scope, Writer, line};
use crate::layout::View;
use quaject_esp_ir::ir::*;

impl Functions<'_, '_> {
    /// The search functions of one channel, where partners are not found in place.
    pub(crate) fn channel(&mut self, channel: usize) {
        let plan = self.plan;
        if plan.program.channels[channel].boundary != Boundary::Internal {
            return;
        }
        let data = &plan.channels[channel];
        let search_writers = data.writer_lookup == Lookup::Search;
        let search_readers = data.readers_are_searched && data.is_connected();
        if search_writers || search_readers || plan.is_queried(&data.readers) {
            for end in &data.readers {
                self.match_function(*end, channel);
            }
        }
        if search_writers {
            for process in processes_of(&data.writers) {
                self.offers(process, channel);
                self.sends(process, channel);
            }
            for end in &data.readers {
                self.find_writer(*end, channel);
            }
        }
        if search_readers {
            for process in processes_of(&data.readers) {
                self.accepts(process, channel);
            }
            self.find_reader(channel);
        }
    }

    fn match_function(&mut self, end: End, channel: usize) {
        let Operation::In { patterns, condition, .. } = &self.plan.branch(end).operation else {
            unreachable!("a reader is an `in`")
        };
        let name = self.plan.branch_name(end);
        let message = self.message_type(channel);
        let head = format!("ESP_INLINE uint32_t {name}_match({} *t, esp_pid self, const {message} *m)", self.state());
        let mut code = self.code(Scope::Region(end.process));
        self.enter(&mut code, end.process);
        code.line("(void)m;");
        let source = message_parts(&code, channel, "(*m)", View::Program);
        let all = conditions(&mut code, patterns, &source);
        if !all.is_empty() {
            line!(code, "if (!({})) return 0;", all.join(" && "));
        }
        match condition {
            Some(_) => line!(code, "return {name}_if(t, self, m);"),
            None => code.line("return 1;"),
        }
        self.add(&head, code);
    }

    /// Writes a `switch` over the waits of a process that have some of these ends, and in each a loop over its branches
    /// in the order of its alt, from branch number `at` of that order on.
    fn per_wait(
        &self,
        code: &mut Writer<'_, '_>,
        process: usize,
        ends: &[End],
        mut each: impl FnMut(&mut Writer<'_, '_>, End),
    ) {
        let plan = &self.plan.processes[process];
        code.open("switch (t->pc[self]) {");
        for (index, wait) in plan.waits.iter().enumerate() {
            let here: Vec<End> =
                ends.iter().copied().filter(|end| end.process == process && end.wait == index).collect();
            if here.is_empty() {
                continue;
            }
            let count = wait.branches.len();
            let first = wait.rotates.then(|| format!("{}next{}", self.plan.frame(process), wait.block.0));
            code.case(&format!("case {}:", wait.pc), |code| {
                code.block(&format!("for (; at < {count}u; at++) {{"), |code| {
                    match &first {
                        Some(first) => {
                            line!(code, "uint32_t b = {first} + at;");
                            line!(code, "if (b >= {count}u) b -= {count}u;");
                        }
                        None => code.line("const uint32_t b = at;"),
                    }
                    code.open("switch (b) {");
                    for end in here {
                        code.case(&format!("case {}:", end.branch), |code| {
                            each(code, end);
                            code.line("break;");
                        });
                    }
                    code.close_switch();
                });
                code.line("return 0;");
            });
        }
        code.case("default:", |code| code.line("return 0;"));
        code.close("}");
    }

    /// The function by which an instance of a process offers its messages to a searching reader, one after the other.
    fn offers(&mut self, process: usize, channel: usize) {
        let plan = self.plan;
        let name = &plan.channels[channel].name;
        let head = format!(
            "static uint32_t {}_offers_{name}({} *t, esp_pid self, uint32_t at, {name}_view *m, uint32_t *branch, \
             uint32_t *fault)",
            plan.processes[process].name,
            self.state()
        );
        let mut code = self.code(Scope::Region(process));
        self.enter(&mut code, process);
        code.line("(void)m;");
        self.per_wait(&mut code, process, &plan.channels[channel].writers, |code, end| {
            code.open(&open_block(plan, end));
            match &plan.branch(end).operation {
                Operation::Out { payload: Payload::Ready(parts), .. } => {
                    ready_message(code, end, parts, "m->", Source::Parked);
                    match dead_message(code, end, channel, "(*m)", Depth::Direct) {
                        Some((dead, number)) => line!(code, "*fault = {dead} ? {number} : 1;"),
                        None => code.line("*fault = 1;"),
                    }
                }
                Operation::Out { payload: Payload::Region(_), .. } => {
                    line!(code, "*fault = {}_payload(t, self, m);", plan.branch_name(end));
                }
                Operation::In { .. } | Operation::After { .. } => unreachable!("a writer is an `out`"),
            }
            line!(code, "*branch = {};", end.branch);
            code.line("return at + 1u;");
            code.close("}");
        });
        self.add(&head, code);
    }

    /// The function that ends the wait of a writer whose message was taken.
    fn sends(&mut self, process: usize, channel: usize) {
        let plan = self.plan;
        let name = &plan.channels[channel].name;
        let head = format!(
            "static void {}_sends_{name}({} *t, esp_pid self, uint32_t branch, {name}_view *m)",
            plan.processes[process].name,
            self.state()
        );
        let mut code = self.code(Scope::Region(process));
        self.enter(&mut code, process);
        code.line("(void)m;");
        line!(code, "const uint{0}_t pc = (uint{0}_t)(t->pc[self] + 1u + branch);", plan.pc_bits);
        code.open("switch (pc) {");
        for end in plan.channels[channel].writers.iter().filter(|end| end.process == process) {
            code.case(&format!("case {}:", plan.continuation_pc(*end)), |code| {
                if plan.branch_plan(*end).payload_takes_objects {
                    line!(code, "(void){}_payload(t, self, m);", plan.branch_name(*end));
                }
                end_wait(code, *end);
                code.line("break;");
            });
        }
        code.close_switch();
        code.line("t->pc[self] = pc;");
        self.add(&head, code);
    }

    /// The function that says whether an instance of a process accepts a message, and at which branch.
    fn accepts(&mut self, process: usize, channel: usize) {
        let plan = self.plan;
        let name = &plan.channels[channel].name;
        let head = format!(
            "static uint32_t {}_accepts_{name}({} *t, esp_pid self, const {name}_view *m, uint32_t fault, \
             uint32_t *branch)",
            plan.processes[process].name,
            self.state()
        );
        let mut code = self.code(Scope::Region(process));
        code.line("uint32_t at = 0;");
        self.enter(&mut code, process);
        self.per_wait(&mut code, process, &plan.channels[channel].readers, |code, end| {
            code.open(&open_block(plan, end));
            line!(code, "uint32_t r = fault > 1u ? fault : {}_match(t, self, m);", plan.branch_name(end));
            code.open("if (r != 0u) {");
            line!(code, "*branch = {};", end.branch);
            code.line("return r;");
            code.close("}");
            code.close("}");
        });
        self.add(&head, code);
    }

    /// Goes through the instances whose blocked bits are set, or the only instance there is.
    fn each_waiting(
        &self,
        code: &mut Writer<'_, '_>,
        ends: &[End],
        words: u32,
        bits: &str,
        exclusion: Exclusion,
        each: &dyn Fn(&mut Writer<'_, '_>, usize),
    ) {
        let plan = self.plan;
        let all = processes_of(ends);
        if words == 0 {
            for process in all {
                code.block("{", |code| {
                    line!(code, "const esp_pid id = {}u;", plan.processes[process].base);
                    each(code, process);
                });
            }
            return;
        }
        code.line("uint32_t word, set;");
        code.open(&format!("for (word = 0; word < {words}u; word++) {{"));
        let excluded = match exclusion {
            Exclusion::None => "",
            Exclusion::Always => " & ~excluded[word]",
            Exclusion::Optional => " & ~(excluded != NULL ? excluded[word] : 0u)",
        };
        code.open(&format!("for (set = t->{bits}[word]{excluded}; set != 0u; set &= set - 1u) {{"));
        code.line("const uint32_t bit = word * 32u + esp_lowest(set);");
        for (index, process) in all.iter().enumerate() {
            let (first, data) = (plan.first_bit(ends, *process), &plan.processes[*process]);
            let lead = if index == 0 { "" } else { "else " };
            let is_rest = index + 1 == all.len() && index > 0;
            let test = if is_rest { "{".to_string() } else { format!("if (bit < {}u) {{", first + data.replicas) };
            code.block(&format!("{lead}{test}"), |code| {
                line!(code, "const esp_pid id = {}u + bit;", data.base.wrapping_sub(first));
                each(code, *process);
            });
        }
        code.close("}");
        code.close("}");
    }

    /// The search of an `in` for the writer that arrived first.
    fn find_writer(&mut self, end: End, channel: usize) {
        let plan = self.plan;
        let data = &plan.channels[channel];
        let (name, channel_name) = (plan.branch_name(end), &data.name);
        let exclusion = match may_bypass_any(plan, end, &data.writers) {
            true => Exclusion::Always,
            false => Exclusion::None,
        };
        let head = format!(
            "static uint32_t {name}_find({} *t, esp_pid self, {channel_name}_view *m, uint32_t *branch, \
             uint32_t *fault{})",
            self.state(),
            exclusion.parameter()
        );
        let mut code = self.code(Scope::Region(end.process));
        let by_arrival = data.writer_instances > 1;
        code.line("uint32_t found = 0;");
        if exclusion == Exclusion::Always {
            code.line("(void)excluded;");
        }
        if by_arrival {
            code.line("uint64_t best = 0;");
        }
        let bits = format!("{channel_name}_writers");
        self.each_waiting(&mut code, &data.writers, data.writer_words(), &bits, exclusion, &|code, process| {
            line!(code, "uint32_t at = 0, b, f;");
            line!(code, "{channel_name}_view v;");
            line!(code, "if (id == self) {};", if data.writer_words() > 0 { "continue" } else { "return 0" });
            let stamp = by_arrival.then(|| arrival_stamp(plan, process));
            if let Some(stamp) = &stamp {
                line!(code, "if (found && {stamp} > best) continue;");
            }
            try_offers(code, end, channel, process, stamp.as_deref());
        });
        code.line("return found;");
        self.add(&head, code);
    }

    /// The search of a message for the reader that arrived first, on a shared channel, or for any.
    fn find_reader(&mut self, channel: usize) {
        let plan = self.plan;
        let data = &plan.channels[channel];
        let name = &data.name;
        let exclusion = if data.readers_may_be_bypassed { Exclusion::Optional } else { Exclusion::None };
        let head = format!(
            "static uint32_t {name}_find_reader({} *t, esp_pid self, const {name}_view *m, uint32_t fault, \
             uint32_t *branch, uint32_t *result{})",
            self.state(),
            exclusion.parameter()
        );
        let mut code = self.code(Scope::Function(0));
        if exclusion == Exclusion::Optional {
            code.line("(void)excluded;");
        }
        let by_arrival = plan.program.channels[channel].sharing == Sharing::Shared && data.reader_instances > 1;
        code.line("uint32_t found = 0;");
        if by_arrival {
            code.line("uint64_t best = 0;");
        }
        let bits = format!("{name}_readers");
        self.each_waiting(&mut code, &data.readers, data.reader_words(), &bits, exclusion, &|code, process| {
            let reader = &plan.processes[process];
            line!(code, "uint32_t b = 0, r;");
            line!(code, "if (id == self) {};", if data.reader_words() > 0 { "continue" } else { "return 0" });
            let stamp = arrival_stamp(plan, process);
            if by_arrival {
                line!(code, "if (found && {stamp} > best) continue;");
            }
            line!(code, "r = {}_accepts_{name}(t, id, m, fault, &b);", reader.name);
            code.block("if (r != 0u) {", |code| {
                code.line("*branch = b;");
                code.line("*result = r;");
                if by_arrival {
                    code.line("found = id + 1u;");
                    line!(code, "best = {stamp};");
                } else {
                    code.line("return id + 1u;");
                }
            });
        });
        code.line("return found;");
        self.add_of(Owner::Scheduler, &head, code);
    }
}

/// Compares the messages that writer `id` offers with an `in`. What a payload allocates exists while the reader's
/// condition is evaluated, and is undone afterwards.
fn try_offers(code: &mut Writer<'_, '_>, reader: End, channel: usize, process: usize, stamp: Option<&str>) {
    let plan = code.plan;
    let data = &plan.channels[channel];
    let mut offered = data.writers.iter().filter(|writer| writer.process == process);
    let is_undone = plan.branch_plan(reader).condition_takes_objects
        || offered.any(|writer| plan.branch_plan(*writer).payload_takes_objects);
    code.block("while (true) {", |code| {
        if is_undone {
            code.line("pools_save(t);");
        }
        line!(code, "at = {}_offers_{}(t, id, at, &v, &b, &f);", plan.processes[process].name, data.name);
        code.line("if (at == 0u) break;");
        line!(code, "const uint32_t r = f > 1u ? f : {}_match(t, self, &v);", plan.branch_name(reader));
        if is_undone {
            code.line("pools_restore(t);");
        }
        code.block("if (r != 0u) {", |code| {
            code.line("*m = v;");
            code.line("*branch = b;");
            code.line("*fault = f > 1u ? f | SENDER_FAULT : r;");
            code.line("found = id + 1u;");
            if let Some(stamp) = stamp {
                line!(code, "best = {stamp};");
            }
            code.line("break;");
        });
    });
}

/// When instance `id` of a process has arrived at its wait.
fn arrival_stamp(plan: &Plan<'_>, process: usize) -> String {
    let data = &plan.processes[process];
    match plan.is_array(process) {
        true => format!("t->{}[id - {}u].stamp", data.name, data.base),
        false => format!("t->{}.stamp", data.name),
    }
}

/// The head of a block that runs if a branch is open.
fn open_block(plan: &Plan<'_>, end: End) -> String {
    match open_condition(plan, end) {
        Some(open) => format!("if ({open}) {{"),
        None => "{".to_string(),
    }
}
