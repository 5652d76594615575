//! Functions beside the one that holds the processes: pure functions, and the regions of waits (guards, conditions,
//! payloads). The search for a partner, functions as well, is in `matching`.
//!
//! ```text
//!   P_w4_b0_guard(t, self)               1 open, 0 closed, else a fault's number
//!   P_w4_b0_if(t, self, m)               whether the `if`s of a pattern hold: 0, 1 or a fault's number
//!   P_w4_b1_payload(t, self, m)          computes a message: 1 or a fault's number
//! ```

use super::code::{Code, Lvalue, Owner, Results, Scope, line, owner_line};
use super::faults::Faults;
use super::helpers::{Depth, Helper, Helpers};
use super::outside::{first_body, first_head};
use super::pattern::{Counting, Part, binds, keep, parts};
use super::plan::{End, Plan};
use crate::layout::View;
use quaject_esp_ir::cfg::region_blocks;
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
    pub(crate) fn code(&self, scope: Scope) -> Code<'p, 'a> {
        Code::new(self.plan, self.faults, self.helpers, scope)
    }

    pub(crate) fn state(&self) -> String {
        format!("{}_t", self.plan.prefix)
    }

    /// A function of a process, or a pure one.
    pub(crate) fn add(&mut self, head: &str, body: Code<'_, '_>) {
        let owner = match body.scope {
            Scope::Process(index) | Scope::Region(index) => Owner::Process(index),
            Scope::Function(index) => Owner::Function(index),
        };
        self.add_of(owner, head, body);
    }

    pub(crate) fn add_of(&mut self, owner: Owner, head: &str, body: Code<'_, '_>) {
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
            self.paths(process);
            for wait in 0..self.plan.processes[process].waits.len() {
                for branch in 0..self.plan.wait(process, wait).branches.len() {
                    self.branch(End { process, wait, branch });
                }
                self.first(process, wait);
                self.held(process, wait);
            }
        }
        for channel in 0..self.plan.channels.len() {
            self.channel(channel);
        }
        self.preferences();
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
            Boundary::Internal | Boundary::ToEnvironment => View::Program,
            Boundary::FromEnvironment => View::World,
        }
    }

    pub(crate) fn message_type(&self, channel: usize) -> String {
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
    pub(crate) fn enter(&self, code: &mut Code<'_, '_>, process: usize) {
        let plan = &self.plan.processes[process];
        if self.plan.is_array(process) {
            line!(code, "{0}_frame *const {0} = &t->{0}[self - {1}u];", plan.name, plan.base);
            line!(code, "const esp_pid {}_self = self;", plan.name);
            line!(code, "(void){0}; (void){0}_self;", plan.name);
        }
        code.line("(void)t; (void)self;");
    }
}

/// The message of the world whose conditions are asked, in the program's own form: all its objects are taken.
fn taken_from_world(code: &mut Code<'_, '_>, message: &mut [Part]) {
    for (index, part) in message.iter_mut().enumerate() {
        if !code.plan.layouts.has_boxes(part.ty) {
            continue;
        }
        let taken = format!("taken{index}_");
        line!(code, "{} {taken};", code.c_type(part.ty));
        let name = code.helpers.want(code.plan, Helper::FromEnvironment, part.ty);
        line!(code, "{name}(t, &{taken}, &{});", part.text);
        *part = Part { text: taken, ty: part.ty, view: View::Program };
    }
}

fn passes_boxes(code: &Code<'_, '_>, part: &Passed) -> bool {
    let ty = match &part.operand {
        Operand::Value(value) => code.value_type(*value),
        Operand::Place(place) => match place.base {
            Base::Slot(slot) => code.body().slots[slot.0 as usize].ty,
            Base::Object(value) => code.value_type(value),
        },
    };
    code.plan.layouts.has_boxes(ty)
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
        Terminator::Wait(_)
        | Terminator::Yield(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Enter(_)
        | Terminator::Leave(_) => {
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
        if part.transfer == Transfer::Move && code.plan.layouts.has_boxes(value.ty) {
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
