//! Who meets whom: the search for a partner where several instances may wait at one end of a channel, and what both the
//! search and the meeting in place ask of a wait.
//!
//! ```text
//!   P_w4_b0_match(t, self, m)            the whole pattern
//!   P_offers_c(t, self, at, m, b, f)     the next message a waiting P offers on c; 0: no more
//!   P_accepts_c(t, self, m, f, b)        whether a waiting P takes m from c, and by which branch
//!   P_w4_b0_find(t, self, m, b, f)       the writer this `in` meets, counted from 1; 0: none
//!   c_find_reader(t, self, m, f, b, r)   the reader a message of c meets, counted from 1; 0: none
//! ```

use super::code::{Code, Lvalue, Owner, Scope, line};
use super::functions::Functions;
use super::helpers::Depth;
use super::pattern::{conditions, parts};
use super::plan::{End, Plan};
use super::priority::{Passing, passes_by, readers_are_passed_by};
use crate::layout::View;
use quaject_esp_ir::cfg::region_blocks;
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

impl Functions<'_, '_> {
    /// Functions for the ends of one channel that are not met in place.
    pub(crate) fn channel(&mut self, channel: usize) {
        let plan = self.plan;
        if plan.program.channels[channel].boundary != Boundary::Internal {
            return;
        }
        let data = &plan.channels[channel];
        let search_writers = !writers_in_place(plan, channel);
        let search_readers = readers_are_searched(plan, channel);
        if search_writers || search_readers || plan.is_asked(&data.readers) {
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
        but: Passing,
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
        let but = match but {
            Passing::None => "",
            Passing::Always => " & ~but[word]",
            Passing::Perhaps => " & ~(but ? but[word] : 0)",
        };
        code.open(&format!("for (set = t->{bits}[word]{but}; set; set &= set - 1) {{"));
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
        let passing = if passes_by(plan, end, &data.writers) { Passing::Always } else { Passing::None };
        let head = format!(
            "static uint32_t {name}_find({} *t, esp_pid self, {channel_name}_view *m, uint32_t *branch, \
             uint32_t *fault{})",
            self.state(),
            if passing == Passing::Always { ", const uint32_t *but" } else { "" }
        );
        let mut code = self.code(Scope::Region(end.process));
        let stamped = data.writer_instances > 1;
        code.line("uint32_t found = 0;");
        if passing == Passing::Always {
            code.line("(void)but;");
        }
        if stamped {
            code.line("uint64_t best = 0;");
        }
        let name = &name;
        self.each_waiting(
            &mut code,
            &data.writers,
            data.writer_words(),
            &format!("{channel_name}_writers"),
            passing,
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
        let passing = if readers_are_passed_by(plan, channel) { Passing::Perhaps } else { Passing::None };
        let head = format!(
            "static uint32_t {name}_find_reader({} *t, esp_pid self, const {name}_view *m, uint32_t fault, \
             uint32_t *branch, uint32_t *result{})",
            self.state(),
            if passing == Passing::Perhaps { ", const uint32_t *but" } else { "" }
        );
        let mut code = self.code(Scope::Function(0));
        if passing == Passing::Perhaps {
            code.line("(void)but;");
        }
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
            passing,
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
        && !readers_are_passed_by(plan, channel)
        && data.readers.iter().all(|end| {
            let same_wait = data.readers.iter().filter(|other| (other.process, other.wait) == (end.process, end.wait));
            same_wait.count() == 1
        })
}

/// Whether a condition that matches may be tried in vain, as a `pri alt` at one of these ends takes, or looks for, an
/// earlier branch, and changes counts, which a search undoes.
fn tries_in_vain(plan: &Plan<'_>, channel: usize, ends: &[End]) -> bool {
    ends.iter().any(|end| plan.is_outranked(*end) || plan.is_held(*end))
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
        let boxes = code.plan.layouts.has_boxes(value.ty);
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

/// Whether a branch is open, if that can vary; from inside a function or the process's own code.
pub(crate) fn open_condition(plan: &Plan<'_>, end: End) -> Option<String> {
    match plan.branch(end).guard {
        Guard::Open => None,
        Guard::Value(_) | Guard::Region(_) => {
            Some(format!("{}open[{}] >> {} & 1u", plan.frame(end.process), end.branch / 32, end.branch % 32))
        }
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
    leave_channels(code, end);
    let plan = code.plan;
    let wait = &plan.processes[end.process].waits[end.wait];
    let own = plan.own_id(end.process);
    if wait.polled {
        line!(code, "waiting_remove(t, {own});");
    }
    if wait.stays_tried() {
        line!(code, "t->pc[{own}] = 0;");
    }
}

/// The same without the list of those that wait for the world, and the program counter.
pub(crate) fn leave_channels(code: &mut Code<'_, '_>, end: End) {
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
