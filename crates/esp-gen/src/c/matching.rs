//! Functions beside the one that holds the processes: pure functions, the regions of waits (guards, conditions,
//! payloads), and the search for a partner where several instances may wait at one end of a channel.
//!
//! ```text
//!   P_w4_b0_guard(t, self)               1 open, 0 closed, else a fault's number
//!   P_w4_b0_if(t, self, m)               whether the `if`s of a pattern hold: 0, 1 or a fault's number
//!   P_w4_b0_match(t, self, m)            the whole pattern
//!   P_w4_b1_payload(t, self, m)          computes a message: 1 or a fault's number
//!   P_offers_c(t, self, at, m, b, f)     the next message a waiting P offers on c; 0: no more
//!   P_accepts_c(t, self, m, f, b)        whether a waiting P takes m from c, and by which branch
//!   P_w4_b0_find(t, self, m, b, f)       the writer this `in` meets, counted from 1; 0: none
//!   c_find_reader(t, self, m, f, b, r)   the reader a message of c meets, counted from 1; 0: none
//! ```

use super::analysis::region_blocks;
use super::code::{Code, Lvalue, Owner, Results, Scope, line, owner_line};
use super::faults::Faults;
use super::helpers::{Depth, Helper, Helpers};
use super::outside::{first_body, first_head};
use super::pattern::{Counting, Part, binds, conditions, keep, parts};
use super::plan::{End, Plan};
use crate::layout::{View, has_boxes};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// Writers of the functions share these.
pub(crate) struct Functions<'p, 'a> {
    pub(crate) plan: &'p Plan<'a>,
    pub(crate) faults: &'p Faults,
    pub(crate) helpers: &'p Helpers,
    pub(crate) declarations: String,
    pub(crate) text: String,
    /// Functions that use the ends of external channels, which stand before them.
    pub(crate) outside: String,
}

impl<'p, 'a> Functions<'p, 'a> {
    fn code(&self, scope: Scope) -> Code<'p, 'a> {
        Code::new(self.plan, self.faults, self.helpers, scope)
    }

    fn state(&self) -> String {
        format!("{}_t", self.plan.prefix)
    }

    /// A function of a process, or a pure one.
    fn add(&mut self, head: &str, body: Code<'_, '_>) {
        let owner = match body.scope {
            Scope::Process(index) | Scope::Region(index) => Owner::Process(index),
            Scope::Function(index) => Owner::Function(index),
        };
        self.add_of(owner, head, body);
    }

    fn add_of(&mut self, owner: Owner, head: &str, body: Code<'_, '_>) {
        self.declarations.push_str(&format!("{head};\n"));
        self.text.push_str(&owner_line(owner));
        self.text.push_str(&format!("\n{head}\n{{\n{}}}\n", body.text));
        self.text.push_str(&owner_line(Owner::Scheduler));
    }

    /// Writes everything.
    pub(crate) fn write(&mut self) {
        for index in 0..self.plan.program.functions.len() {
            self.function(index);
        }
        for process in 0..self.plan.processes.len() {
            for wait in 0..self.plan.processes[process].waits.len() {
                for branch in 0..self.plan.wait(process, wait).branches.len() {
                    self.branch(End { process, wait, branch });
                }
                self.first(process, wait);
            }
        }
        for channel in 0..self.plan.channels.len() {
            self.channel(channel);
        }
    }

    fn function(&mut self, index: usize) {
        let function = &self.plan.program.functions[index];
        let types = &self.plan.program.types;
        let mut parameters = vec![format!("{} *t", self.state())];
        let mut code = self.code(Scope::Function(index));
        let (mut scalars, mut slots) = (0, 0);
        let mut skip = BTreeSet::new();
        for ty in &function.parameters {
            if types.is_scalar(*ty) || matches!(types.get(*ty), Type::Boxed(_)) {
                let value = function.body.blocks[0].parameters[scalars];
                parameters.push(format!("{} {} ESP_UNUSED", code.c_type(*ty), code.value(value)));
                skip.insert(value);
                scalars += 1;
            } else {
                let name = self.plan.slot_name(&function.body, SlotId(slots));
                parameters.push(format!("const {} *{name} ESP_UNUSED", code.c_type(*ty)));
                slots += 1;
            }
        }
        parameters.push(format!("{} *result", code.c_type(function.result)));
        let blocks = self.plan.functions[index].1.main.clone();
        let values = defined(&function.body, &blocks).difference(&skip).copied().collect();
        let locals = (slots..function.body.slots.len() as u32).map(SlotId).collect::<Vec<_>>();
        declare_locals(&mut code, &values, &locals);
        code.line("(void)t;");
        body(&mut code, &blocks);
        let head = format!("static ESP_UNUSED uint32_t {}({})", self.plan.functions[index].0, parameters.join(", "));
        self.add(&head, code);
    }

    fn branch(&mut self, end: End) {
        let data = self.plan.branch(end);
        let name = self.plan.branch_name(end);
        let state = self.state();
        let at = match &data.operation {
            Operation::In { channel, .. } | Operation::Out { channel, .. } => Some(*channel),
            Operation::After { .. } => None,
        };
        if let Guard::Region(entry) = data.guard {
            let mut code = self.code(Scope::Region(end.process));
            code.channel = at;
            let head = format!("static uint32_t {name}_guard({state} *t, esp_pid self)");
            self.region_with(code, end.process, entry, &head, None);
        }
        match &data.operation {
            Operation::In { channel, patterns, condition, .. } => {
                let channel = channel.0 as usize;
                let message = self.message_type(channel);
                let view = self.view(channel);
                if let Some(entry) = condition {
                    let tries = view == View::World && self.plan.channel_has_boxes(channel);
                    let test = if tries { "test" } else { "if" };
                    let parameters = format!("({state} *t, esp_pid self, const {message} *m)");
                    let head = format!("static uint32_t {name}_{test}{parameters}");
                    let source = if view == View::Program { "(*m)" } else { "m" };
                    let mut code = self.code(Scope::Region(end.process));
                    code.channel = at;
                    let mut message = parts(&code, channel, source, view);
                    if tries {
                        taken_from_world(&mut code, &mut message);
                    }
                    let kept = binds(&code, patterns, &message);
                    code.line("(void)m;");
                    self.region_with(code, end.process, *entry, &head, Some(&kept));
                    if tries {
                        // The condition sees the message as received: its objects are taken, and given back whatever
                        // it says.
                        let mut code = self.code(Scope::Region(end.process));
                        code.line("uint32_t result;");
                        code.line("pools_save(t);");
                        line!(code, "result = {name}_test(t, self, m);");
                        code.line("pools_restore(t);");
                        code.line("return result;");
                        self.add(&format!("static uint32_t {name}_if{parameters}"), code);
                    }
                }
            }
            Operation::Out { channel, payload: Payload::Region(entry), .. } => {
                let channel = channel.0 as usize;
                let view = self.plan.channels[channel].name.clone();
                let head = format!("static uint32_t {name}_payload({state} *t, esp_pid self, {view}_view *m)");
                let mut code = self.code(Scope::Region(end.process));
                code.channel = at;
                code.results = Results::Message(data.location);
                code.line("(void)m;");
                self.region_with(code, end.process, *entry, &head, None);
            }
            Operation::Out { payload: Payload::Ready(_), .. } | Operation::After { .. } => {}
        }
    }

    /// What a `pri alt` does before it is met by one of its later branches.
    fn first(&mut self, process: usize, wait: usize) {
        let branches = self.plan.wait(process, wait).branches.iter().enumerate();
        let is_met = |branch: usize, channel: ChannelId| {
            self.plan.program.channels[channel.0 as usize].boundary == Boundary::Internal
                && self.plan.is_outranked(End { process, wait, branch })
        };
        let needed = branches.into_iter().any(|(branch, data)| match &data.operation {
            Operation::In { channel, .. } | Operation::Out { channel, .. } => is_met(branch, *channel),
            Operation::After { .. } => false,
        });
        if !needed {
            return;
        }
        let mut code = self.code(Scope::Region(process));
        self.enter(&mut code, process);
        first_body(&mut code, process, wait);
        let head = first_head(self.plan, process, wait);
        self.outside.push_str(&owner_line(Owner::Process(process)));
        self.outside.push_str(&format!("\n{head}\n{{\n{}}}\n", code.text));
        self.outside.push_str(&owner_line(Owner::Scheduler));
        self.declarations.push_str(&format!("{head};\n"));
    }

    fn view(&self, channel: usize) -> View {
        match self.plan.program.channels[channel].boundary {
            Boundary::Internal | Boundary::ToWorld => View::Program,
            Boundary::FromWorld => View::World,
        }
    }

    fn message_type(&self, channel: usize) -> String {
        let name = &self.plan.channels[channel].name;
        match self.view(channel) {
            View::Program => format!("{name}_view"),
            View::World => format!("{name}_message"),
        }
    }

    fn region_with(
        &mut self,
        mut code: Code<'_, '_>,
        process: usize,
        entry: BlockId,
        head: &str,
        kept: Option<&[(Bind, Part)]>,
    ) {
        let data = &self.plan.program.processes[process].body;
        let blocks = region_blocks(data, entry);
        let mut out = self.code(Scope::Region(process));
        declare_locals(&mut out, &defined(data, &blocks), &[]);
        self.enter(&mut out, process);
        out.text.push_str(&code.text);
        code.text = out.text;
        for (bind, part) in kept.unwrap_or_default() {
            let to = match bind {
                Bind::Parameter(index) => {
                    let value = data.blocks[entry.0 as usize].parameters[*index as usize];
                    Lvalue { text: code.value(value), ty: code.value_type(value) }
                }
                Bind::Slot(slot) => Lvalue { text: code.slot(*slot), ty: data.slots[slot.0 as usize].ty },
            };
            keep(&mut code, &to, part, Counting::Borrowed);
        }
        let mut ordered = vec![entry];
        ordered.extend(blocks.into_iter().filter(|block| *block != entry));
        body(&mut code, &ordered);
        self.add(head, code);
    }

    /// Makes the frame of the instance `self` known by the process's name.
    fn enter(&self, code: &mut Code<'_, '_>, process: usize) {
        let plan = &self.plan.processes[process];
        if self.plan.is_array(process) {
            line!(code, "{0}_frame *const {0} = &t->{0}[self - {1}u];", plan.name, plan.base);
            line!(code, "const esp_pid {}_self = self;", plan.name);
            line!(code, "(void){0}; (void){0}_self;", plan.name);
        }
        code.line("(void)t; (void)self;");
    }

    /// Functions for the ends of one channel that are not met in place.
    fn channel(&mut self, channel: usize) {
        let plan = self.plan;
        if plan.program.channels[channel].boundary != Boundary::Internal {
            return;
        }
        let data = &plan.channels[channel];
        let search_writers = !writers_in_place(plan, channel);
        let search_readers = readers_are_searched(plan, channel);
        if search_writers || search_readers {
            for end in &data.readers {
                self.match_function(*end, channel);
            }
        }
        if search_writers {
            for process in processes(&data.writers) {
                self.offers(process, channel);
                self.gives(process, channel);
            }
            for end in &data.readers {
                self.find_writer(*end, channel);
            }
        }
        if search_readers {
            for process in processes(&data.readers) {
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
        let source = parts(&code, channel, "(*m)", View::Program);
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

    fn per_wait(
        &self,
        code: &mut Code<'_, '_>,
        process: usize,
        ends: &[End],
        mut each: impl FnMut(&mut Code<'_, '_>, End),
    ) {
        let plan = &self.plan.processes[process];
        code.open("switch (t->pc[self]) {");
        for (index, wait) in plan.waits.iter().enumerate() {
            let here: Vec<End> =
                ends.iter().copied().filter(|end| end.process == process && end.wait == index).collect();
            if here.is_empty() {
                continue;
            }
            line!(code, "case {}:", wait.pc);
            let count = self.plan.wait(process, index).branches.len();
            let first = if wait.rotates {
                format!("{}next{}", self.plan.frame(process), wait.block.0)
            } else {
                "0".to_string()
            };
            code.indent += 1;
            code.open(&format!("for (; at < {count}u; at++) {{"));
            line!(code, "uint32_t b = {first} + at;");
            line!(code, "if (b >= {count}u) b -= {count}u;");
            code.open("switch (b) {");
            for end in here {
                line!(code, "case {}:", end.branch);
                code.indent += 1;
                each(code, end);
                code.line("break;");
                code.indent -= 1;
            }
            code.line("default:");
            code.line("    break;");
            code.close("}");
            code.close("}");
            code.line("return 0;");
            code.indent -= 1;
        }
        code.line("default:");
        code.line("    return 0;");
        code.close("}");
    }

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
            let open = open_condition(plan, end);
            code.open(&match open {
                Some(open) => format!("if ({open}) {{"),
                None => "{".to_string(),
            });
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
            code.line("return at + 1;");
            code.close("}");
        });
        self.add(&head, code);
    }

    /// Ends the wait of a writer whose message is taken.
    fn gives(&mut self, process: usize, channel: usize) {
        let plan = self.plan;
        let name = &plan.channels[channel].name;
        let head = format!(
            "static void {}_gives_{name}({} *t, esp_pid self, uint32_t branch, {name}_view *m)",
            plan.processes[process].name,
            self.state()
        );
        let mut code = self.code(Scope::Region(process));
        self.enter(&mut code, process);
        code.line("(void)m;");
        line!(code, "const uint{0}_t pc = (uint{0}_t)(t->pc[self] + 1u + branch);", super::header::pc_bits(plan));
        code.open("switch (pc) {");
        for end in plan.channels[channel].writers.iter().filter(|end| end.process == process) {
            line!(code, "case {}:", plan.processes[process].waits[end.wait].pc + 1 + end.branch as u32);
            code.indent += 1;
            if payload_takes_objects(plan, *end) {
                line!(code, "(void){}_payload(t, self, m);", plan.branch_name(*end));
            }
            leave(&mut code, *end);
            code.line("break;");
            code.indent -= 1;
        }
        code.line("default:");
        code.line("    break;");
        code.close("}");
        code.line("t->pc[self] = pc;");
        self.add(&head, code);
    }

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
            code.open(&match open_condition(plan, end) {
                Some(open) => format!("if ({open}) {{"),
                None => "{".to_string(),
            });
            line!(code, "uint32_t r = fault > 1 ? fault : {}_match(t, self, m);", plan.branch_name(end));
            code.open("if (r) {");
            line!(code, "*branch = {};", end.branch);
            code.line("return r;");
            code.close("}");
            code.close("}");
        });
        self.add(&head, code);
    }

    /// Goes through the instances whose bits are set, or the only instance there is.
    fn each_waiting(
        &self,
        code: &mut Code<'_, '_>,
        ends: &[End],
        words: u32,
        bits: &str,
        each: &dyn Fn(&mut Code<'_, '_>, usize),
    ) {
        let plan = self.plan;
        let all = processes(ends);
        if words == 0 {
            for process in all {
                code.open("{");
                line!(code, "const esp_pid id = {}u;", plan.processes[process].base);
                each(code, process);
                code.close("}");
            }
            return;
        }
        code.line("uint32_t word, set;");
        code.open(&format!("for (word = 0; word < {words}u; word++) {{"));
        code.open(&format!("for (set = t->{bits}[word]; set; set &= set - 1) {{"));
        code.line("const uint32_t bit = word * 32u + esp_lowest(set);");
        for (index, process) in all.iter().enumerate() {
            let (first, data) = (plan.first_bit(ends, *process), &plan.processes[*process]);
            let test = format!("if (bit < {}u) {{", first + data.replicas);
            let lead = if index == 0 { "" } else { "else " };
            let test = if index + 1 == all.len() && index > 0 { "{".to_string() } else { test };
            code.open(&format!("{lead}{test}"));
            line!(code, "const esp_pid id = {}u + bit;", data.base.wrapping_sub(first));
            each(code, *process);
            code.close("}");
        }
        code.close("}");
        code.close("}");
    }

    fn find_writer(&mut self, end: End, channel: usize) {
        let plan = self.plan;
        let data = &plan.channels[channel];
        let (name, channel_name) = (plan.branch_name(end), &data.name);
        let head = format!(
            "static uint32_t {name}_find({} *t, esp_pid self, {channel_name}_view *m, uint32_t *branch, \
             uint32_t *fault)",
            self.state()
        );
        let mut code = self.code(Scope::Region(end.process));
        let stamped = data.writer_instances > 1;
        code.line("uint32_t found = 0;");
        if stamped {
            code.line("uint64_t best = 0;");
        }
        let name = &name;
        self.each_waiting(
            &mut code,
            &data.writers,
            data.writer_words(),
            &format!("{channel_name}_writers"),
            &|code, process| {
                let writer = &plan.processes[process];
                line!(code, "uint32_t at = 0, b, f;");
                line!(code, "{channel_name}_view v;");
                line!(code, "if (id == self) {};", if data.writer_words() > 0 { "continue" } else { "return 0" });
                if stamped {
                    let index = if plan.is_array(process) {
                        format!("{}[id - {}u]", writer.name, writer.base)
                    } else {
                        writer.name.clone()
                    };
                    line!(code, "if (found && t->{index}.stamp > best) continue;");
                }
                // What a payload allocates is there while the reader's condition looks at it, and gone afterwards.
                let own = data.writers.iter().filter(|writer| writer.process == process);
                let trial = condition_takes_objects(plan, end)
                    || own.into_iter().any(|writer| payload_takes_objects(plan, *writer));
                code.open(&format!(
                    "while ({}(at = {}_offers_{channel_name}(t, id, at, &v, &b, &f)) != 0) {{",
                    if trial { "pools_save(t), " } else { "" },
                    writer.name
                ));
                line!(code, "const uint32_t r = f > 1 ? f : {name}_match(t, self, &v);");
                if trial {
                    code.line("pools_restore(t);");
                }
                code.open("if (r) {");
                code.line("*m = v;");
                code.line("*branch = b;");
                code.line("*fault = f > 1 ? f | SENDER_FAULT : r;");
                code.line("found = id + 1;");
                if stamped {
                    let index = if plan.is_array(process) {
                        format!("{}[id - {}u]", writer.name, writer.base)
                    } else {
                        writer.name.clone()
                    };
                    line!(code, "best = t->{index}.stamp;");
                }
                code.line("break;");
                code.close("}");
                code.close("}");
            },
        );
        code.line("return found;");
        self.add(&head, code);
    }

    fn find_reader(&mut self, channel: usize) {
        let plan = self.plan;
        let data = &plan.channels[channel];
        let name = &data.name;
        let head = format!(
            "static uint32_t {name}_find_reader({} *t, esp_pid self, const {name}_view *m, uint32_t fault, \
             uint32_t *branch, uint32_t *result)",
            self.state()
        );
        let mut code = self.code(Scope::Function(0));
        let shared = plan.program.channels[channel].sharing == Sharing::Shared && data.reader_instances > 1;
        code.line("uint32_t found = 0;");
        if shared {
            code.line("uint64_t best = 0;");
        }
        self.each_waiting(
            &mut code,
            &data.readers,
            data.reader_words(),
            &format!("{name}_readers"),
            &|code, process| {
                let reader = &plan.processes[process];
                line!(code, "uint32_t b = 0, r;");
                line!(code, "if (id == self) {};", if data.reader_words() > 0 { "continue" } else { "return 0" });
                let index = if plan.is_array(process) {
                    format!("{}[id - {}u]", reader.name, reader.base)
                } else {
                    reader.name.clone()
                };
                if shared {
                    line!(code, "if (found && t->{index}.stamp > best) continue;");
                }
                line!(code, "r = {}_accepts_{name}(t, id, m, fault, &b);", reader.name);
                code.open("if (r) {");
                code.line("*branch = b;");
                code.line("*result = r;");
                if shared {
                    code.line("found = id + 1;");
                    line!(code, "best = t->{index}.stamp;");
                } else {
                    code.line("return id + 1;");
                }
                code.close("}");
            },
        );
        code.line("return found;");
        self.add_of(Owner::Scheduler, &head, code);
    }
}

/// The processes of some ends, each once, in order.
pub(crate) fn processes(ends: &[End]) -> Vec<usize> {
    let mut all = Vec::new();
    for end in ends {
        if !all.contains(&end.process) {
            all.push(end.process);
        }
    }
    all
}

/// Whether a reader finds the only possible writer without a search: one instance, plain `out`s.
pub(crate) fn writers_in_place(plan: &Plan<'_>, channel: usize) -> bool {
    let data = &plan.channels[channel];
    data.writer_instances <= 1
        && !tries_in_vain(plan, channel, &data.writers)
        && data.writers.iter().all(|end| match &plan.branch(*end).operation {
            Operation::Out { payload: Payload::Ready(_), .. } => plan.wait(end.process, end.wait).branches.len() == 1,
            Operation::Out { payload: Payload::Region(_), .. } => false,
            Operation::In { .. } | Operation::After { .. } => unreachable!("a writer is an `out`"),
        })
}

/// Whether a writer finds the only possible reader without a search: one instance, one `in` on the channel per wait.
pub(crate) fn readers_in_place(plan: &Plan<'_>, channel: usize) -> bool {
    let data = &plan.channels[channel];
    data.reader_instances <= 1
        && !tries_in_vain(plan, channel, &data.readers)
        && data.readers.iter().all(|end| {
            let same_wait = data.readers.iter().filter(|other| (other.process, other.wait) == (end.process, end.wait));
            same_wait.count() == 1
        })
}

/// Whether a condition that matches may be tried in vain, as a `pri alt` at one of these ends takes an earlier branch,
/// and changes counts, which a search undoes.
fn tries_in_vain(plan: &Plan<'_>, channel: usize, ends: &[End]) -> bool {
    ends.iter().any(|end| plan.is_outranked(*end))
        && plan.channels[channel].readers.iter().any(|reader| condition_takes_objects(plan, *reader))
}

/// Whether some writer searches for its reader.
pub(crate) fn readers_are_searched(plan: &Plan<'_>, channel: usize) -> bool {
    !readers_in_place(plan, channel)
        || plan.channels[channel]
            .writers
            .iter()
            .any(|end| matches!(&plan.branch(*end).operation, Operation::Out { payload: Payload::Region(_), .. }))
}

/// Where the values of a message computed on arrival are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    /// Still in locals.
    Local,
    /// Beside the frame of the waiting instance.
    Parked,
}

/// Fills a channel's view with a message computed on arrival.
pub(crate) fn ready_message(code: &mut Code<'_, '_>, end: End, parts: &[Passed], to: &str, source: Source) {
    let parked: BTreeSet<usize> = code.plan.parked_payload(end).into_iter().map(|(index, _)| index).collect();
    let mut moved = 0u64;
    let mut holds_boxes = false;
    for (index, part) in parts.iter().enumerate() {
        let value = code.operand(&part.operand, Location::default());
        let boxes = has_boxes(code.types(), value.ty);
        holds_boxes |= boxes;
        if part.transfer == Transfer::Move && boxes {
            moved |= 1 << index;
        }
        let by_value = code.types().is_scalar(value.ty) || matches!(code.types().get(value.ty), Type::Boxed(_));
        let text = match source {
            Source::Parked if parked.contains(&index) => {
                format!("{}park.{}.v{index}", code.plan.frame(end.process), code.plan.park_name(end))
            }
            Source::Parked | Source::Local => value.text,
        };
        line!(code, "{to}v{index} = {}{text};", if by_value { "" } else { "&" });
    }
    if holds_boxes {
        line!(code, "{to}moved = {moved}u;");
    }
}

/// Whether a message that was filled in refers to an object without a count, and the number of the fault that is.
pub(crate) fn dead_message(
    code: &Code<'_, '_>,
    end: End,
    channel: usize,
    message: &str,
    depth: Depth,
) -> Option<(String, usize)> {
    let values: Vec<Lvalue> = parts(code, channel, message, View::Program)
        .into_iter()
        .map(|part| Lvalue { text: part.text, ty: part.ty })
        .collect();
    let dead = code.dead(&values, depth)?;
    let location = code.plan.branch(end).location;
    Some((dead, code.faults.number(Fault::Memory, location, Some(ChannelId(channel as u32)))))
}

fn passes_boxes(code: &Code<'_, '_>, part: &Passed) -> bool {
    let ty = match &part.operand {
        Operand::Value(value) => code.value_type(*value),
        Operand::Place(place) => match place.base {
            Base::Slot(slot) => code.body().slots[slot.0 as usize].ty,
            Base::Object(value) => code.value_type(value),
        },
    };
    has_boxes(code.types(), ty)
}

/// Whether a branch is open, if that can vary; from inside a function or the process's own code.
pub(crate) fn open_condition(plan: &Plan<'_>, end: End) -> Option<String> {
    match plan.branch(end).guard {
        Guard::Open => None,
        Guard::Value(_) | Guard::Region(_) => {
            Some(format!("{}open[{}] >> {} & 1u", plan.frame(end.process), end.branch / 32, end.branch % 32))
        }
    }
}

/// The message of the world whose conditions are asked, in the program's own form: all its objects are taken.
fn taken_from_world(code: &mut Code<'_, '_>, message: &mut [Part]) {
    for (index, part) in message.iter_mut().enumerate() {
        if !has_boxes(code.types(), part.ty) {
            continue;
        }
        let taken = format!("taken{index}_");
        line!(code, "{} {taken};", code.c_type(part.ty));
        let name = code.helpers.want(code.plan, Helper::FromWorld, part.ty);
        line!(code, "{name}(t, &{taken}, &{});", part.text);
        *part = Part { text: taken, ty: part.ty, view: View::Program };
    }
}

/// Whether trying the payload of an `out` changes counts.
pub(crate) fn payload_takes_objects(plan: &Plan<'_>, end: End) -> bool {
    match &plan.branch(end).operation {
        Operation::Out { payload: Payload::Region(entry), .. } => takes_objects(plan, end.process, *entry),
        Operation::Out { payload: Payload::Ready(_), .. } | Operation::In { .. } | Operation::After { .. } => false,
    }
}

/// Whether trying the condition of an `in` changes counts, which stay changed if it faults.
pub(crate) fn condition_takes_objects(plan: &Plan<'_>, end: End) -> bool {
    match &plan.branch(end).operation {
        Operation::In { condition: Some(entry), .. } => takes_objects(plan, end.process, *entry),
        Operation::In { condition: None, .. } | Operation::Out { .. } | Operation::After { .. } => false,
    }
}

/// Whether a region changes counts, so that trying it must be undone.
fn takes_objects(plan: &Plan<'_>, process: usize, entry: BlockId) -> bool {
    let body = &plan.program.processes[process].body;
    region_blocks(body, entry).iter().any(|block| {
        body.blocks[block.0 as usize].instructions.iter().any(|instruction| {
            matches!(
                instruction.op,
                Op::Allocate(_) | Op::Retain(_) | Op::Release(_) | Op::CallFunction { .. } | Op::CallExtern { .. }
            )
        })
    }) && !plan.pools.is_empty()
}

/// Code that ends an instance's wait by one of its branches: where its next search begins, and its blocked bits.
pub(crate) fn leave(code: &mut Code<'_, '_>, end: End) {
    let plan = code.plan;
    let wait = &plan.processes[end.process].waits[end.wait];
    let count = plan.wait(end.process, end.wait).branches.len();
    let frame = plan.frame(end.process);
    if wait.rotates {
        line!(code, "{frame}next{} = {};", wait.block.0, (end.branch + 1) % count);
    }
    for (text, bit) in blocked_bits(plan, end.process, end.wait) {
        line!(code, "{text} &= ~{bit};");
    }
    let own = plan.own_id(end.process);
    if wait.polled {
        line!(code, "waiting_remove(t, {own});");
    }
    if wait.retries {
        line!(code, "t->pc[{own}] = 0;");
    }
}

/// The blocked bits of an instance at a wait: words and bits.
pub(crate) fn blocked_bits(plan: &Plan<'_>, process: usize, wait: usize) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for branch in &plan.wait(process, wait).branches {
        let (channel, ends, words, side) = match &branch.operation {
            Operation::In { channel, .. } => {
                let data = &plan.channels[channel.0 as usize];
                (channel, &data.readers, data.reader_words(), "readers")
            }
            Operation::Out { channel, .. } => {
                let data = &plan.channels[channel.0 as usize];
                (channel, &data.writers, data.writer_words(), "writers")
            }
            Operation::After { .. } => continue,
        };
        if words == 0 || plan.program.channels[channel.0 as usize].boundary != Boundary::Internal {
            continue;
        }
        let name = &plan.channels[channel.0 as usize].name;
        let first = plan.first_bit(ends, process);
        let data = &plan.processes[process];
        let entry = if plan.is_array(process) {
            let bit = format!("({}_self + {}u)", data.name, first.wrapping_sub(data.base));
            (format!("t->{name}_{side}[{bit} / 32]"), format!("(1u << {bit} % 32)"))
        } else {
            (format!("t->{name}_{side}[{}]", first / 32), format!("(1u << {})", first % 32))
        };
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all
}

/// The values some blocks define.
pub(crate) fn defined(body: &Body, blocks: &[BlockId]) -> BTreeSet<Value> {
    let mut values = BTreeSet::new();
    for block in blocks {
        let block = &body.blocks[block.0 as usize];
        values.extend(&block.parameters);
        values.extend(block.instructions.iter().filter_map(|instruction| instruction.result));
    }
    values
}

/// Declares the locals that hold some values and slots.
pub(crate) fn declare_locals(code: &mut Code<'_, '_>, values: &BTreeSet<Value>, slots: &[SlotId]) {
    for value in values {
        if !code.has_variable(*value) {
            continue;
        }
        let (ty, name) = (code.c_type(code.value_type(*value)), code.value(*value));
        line!(code, "{ty} {name} ESP_UNUSED;");
    }
    for slot in slots {
        let (ty, name) = (code.c_type(code.body().slots[slot.0 as usize].ty), code.slot(*slot));
        line!(code, "{ty} {name} ESP_UNUSED;");
    }
}

/// The blocks of a region or function.
fn body(code: &mut Code<'_, '_>, blocks: &[BlockId]) {
    for (index, id) in blocks.iter().enumerate() {
        let block = &code.body().blocks[id.0 as usize];
        line!(code, "L{}:", id.0);
        code.line(";");
        for instruction in &block.instructions {
            code.instruction(instruction);
        }
        let next = blocks.get(index + 1).copied();
        terminator(code, &block.terminator, block.location, next);
    }
    code.unmark();
}

fn go(code: &mut Code<'_, '_>, edge: &Edge, next: Option<BlockId>) {
    code.edge(edge);
    if next != Some(edge.to) {
        line!(code, "goto L{};", edge.to.0);
    }
}

fn terminator(code: &mut Code<'_, '_>, terminator: &Terminator, location: Location, next: Option<BlockId>) {
    code.mark(location);
    match terminator {
        Terminator::Jump(edge) => go(code, edge, next),
        Terminator::Branch { condition, then, otherwise } => {
            code.open(&format!("if ({}) {{", code.value(*condition)));
            go(code, then, None);
            code.close("}");
            go(code, otherwise, next);
        }
        Terminator::Switch { value, cases, default } => {
            switch(code, *value, cases, default, &mut |code, edge| go(code, edge, None));
        }
        Terminator::Return(operand) => {
            let value = code.operand(operand, location);
            let to = Lvalue { text: "(*result)".to_string(), ty: result_type(code) };
            code.copy(&to, &value, location);
            code.line("return 0;");
        }
        Terminator::Result(parts) => match code.results {
            Results::Truth => {
                let value = code.operand(&parts[0].operand, location);
                line!(code, "return {} ? 1 : 0;", value.text);
            }
            Results::Message(sent) => message(code, parts, location, sent),
        },
        Terminator::Fault(fault) => {
            let text = code.raise(*fault, location);
            code.line(&text);
        }
        Terminator::Wait(_) | Terminator::Yield(_) | Terminator::Exit(_) | Terminator::End => {
            unreachable!("the verifier has checked that regions and functions do not wait")
        }
    }
}

fn result_type(code: &Code<'_, '_>) -> TypeId {
    match code.scope {
        Scope::Function(index) => code.plan.program.functions[index].result,
        Scope::Process(_) | Scope::Region(_) => unreachable!("only functions return"),
    }
}

fn message(code: &mut Code<'_, '_>, parts: &[Passed], location: Location, sent: Location) {
    let mut moved = 0u64;
    let values: Vec<Lvalue> = parts.iter().map(|part| code.operand(&part.operand, location)).collect();
    if let Some(dead) = code.dead(&values, Depth::Direct) {
        code.check(&dead, Fault::Memory, sent);
    }
    for (index, (part, value)) in parts.iter().zip(&values).enumerate() {
        if part.transfer == Transfer::Move && has_boxes(code.types(), value.ty) {
            moved |= 1 << index;
        }
        let by_value = code.types().is_scalar(value.ty) || matches!(code.types().get(value.ty), Type::Boxed(_));
        line!(code, "m->v{index} = {}{};", if by_value { "" } else { "&" }, value.text);
    }
    if parts.iter().any(|part| passes_boxes(code, part)) {
        line!(code, "m->moved = {moved}u;");
    }
    code.line("return 1;");
}

/// A `switch`.
pub(crate) fn switch(
    code: &mut Code<'_, '_>,
    value: Value,
    cases: &[(i128, Edge)],
    default: &Edge,
    go: &mut dyn FnMut(&mut Code<'_, '_>, &Edge),
) {
    code.open(&format!("switch ({}) {{", code.value(value)));
    for (constant, edge) in cases {
        let text = code.constant(*constant, code.value_type(value));
        line!(code, "case {text}:");
        code.indent += 1;
        go(code, edge);
        code.indent -= 1;
    }
    code.line("default:");
    code.indent += 1;
    go(code, default);
    code.indent -= 1;
    code.close("}");
}
