//! The C functions other than the one that holds the processes. This file writes pure functions and the regions
//! of waits (guards, conditions, payloads); search, priority arbitration and fast paths add theirs.
//!
//! ```text
//!   P_w4_b0_guard(t, self)               1 open, 0 closed, else a fault's number
//!   P_w4_b0_if(t, self, m)               whether the `if`s of a pattern hold: 0, 1 or a fault's number
//!   P_w4_b1_payload(t, self, m)          computes a message: 1 or a fault's number
//! ```

use super::control::write_switch;
use super::faults::Faults;
use super::helpers::{Depth, Helper, Helpers};
use super::owner::{Owner, owner_line};
use super::pattern::{Counting, MessagePart, bind_part, binds, message_parts};
use super::plan::{End, Plan, defined_values};
use super::values::Lvalue;
use super::writer::{RegionResult, Scope, Writer, line};
use crate::layout::View;
use quaject_esp_ir::cfg::region_blocks;
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;

/// The functions of a program, under construction.
pub(crate) struct Functions<'p, 'a> {
    pub(crate) plan: &'p Plan<'a>,
    pub(crate) faults: &'p Faults,
    pub(crate) helpers: &'p Helpers,
    pub(crate) declarations: String,
    pub(crate) text: String,
    /// Functions that use the ends of external channels, to be written behind those.
    pub(crate) behind_channel_ends: String,
}

impl<'p, 'a> Functions<'p, 'a> {
    pub(crate) fn code(&self, scope: Scope) -> Writer<'p, 'a> {
        Writer::new(self.plan, self.faults, self.helpers, scope)
    }

    pub(crate) fn state(&self) -> String {
        format!("{}_t", self.plan.prefix)
    }

    /// Adds a function whose owner is that of its scope.
    pub(crate) fn add(&mut self, head: &str, body: Writer<'_, '_>) {
        let owner = match body.scope() {
            Scope::Process(index) | Scope::Region(index) => Owner::Process(index),
            Scope::Function(index) => Owner::Function(index),
        };
        self.add_of(owner, head, body);
    }

    /// Adds a function.
    pub(crate) fn add_of(&mut self, owner: Owner, head: &str, body: Writer<'_, '_>) {
        self.declarations.push_str(&format!("{head};\n"));
        self.text.push_str(&definition(owner, head, &body.text));
    }

    /// Adds a function of a process that uses the ends of external channels.
    pub(crate) fn add_behind_channel_ends(&mut self, process: usize, head: &str, body: Writer<'_, '_>) {
        self.behind_channel_ends.push_str(&definition(Owner::Process(process), head, &body.text));
        self.declarations.push_str(&format!("{head};\n"));
    }

    /// Adds a pure function.
    pub(crate) fn function(&mut self, index: usize) {
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
        // Code that always faults has no result.
        let returns = function.body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Result(_)));
        let unused = if returns { "" } else { " ESP_UNUSED" };
        parameters.push(format!("{} *result{unused}", code.c_type(function.result)));
        let blocks = self.plan.functions[index].storage.main.clone();
        let values = defined_values(&function.body, &blocks).difference(&skip).copied().collect();
        let locals = (slots..function.body.slots.len() as u32).map(SlotId).collect::<Vec<_>>();
        declare_locals(&mut code, &values, &locals);
        code.line("(void)t;");
        body(&mut code, &blocks);
        let head = format!("static ESP_UNUSED uint32_t {}({})", self.plan.functions[index].name, parameters.join(", "));
        self.add(&head, code);
    }

    /// Adds the functions of a branch's regions.
    pub(crate) fn branch(&mut self, end: End) {
        let data = self.plan.branch(end);
        let name = self.plan.branch_name(end);
        let state = self.state();
        let at = match &data.operation {
            Operation::In { channel, .. } | Operation::Out { channel, .. } => Some(*channel),
            Operation::After { .. } => None,
        };
        let region = Region { process: end.process, channel: at, result: RegionResult::Boolean };
        if let Guard::Region(entry) = data.guard {
            let head = format!("static uint32_t {name}_guard({state} *t, esp_pid self)");
            self.region(region, entry, &head, |_| Vec::new());
        }
        match &data.operation {
            Operation::In { channel, patterns, condition: Some(entry), .. } => {
                self.condition(end, channel.0 as usize, patterns, *entry, region);
            }
            Operation::Out { channel, payload: Payload::Region(entry), .. } => {
                let view = &self.plan.channels[channel.0 as usize].name;
                let head = format!("static uint32_t {name}_payload({state} *t, esp_pid self, {view}_view *m)");
                let region = Region { result: RegionResult::Message(data.location), ..region };
                self.region(region, *entry, &head, |code| {
                    code.line("(void)m;");
                    Vec::new()
                });
            }
            Operation::In { condition: None, .. }
            | Operation::Out { payload: Payload::Ready(_), .. }
            | Operation::After { .. } => {}
        }
    }

    /// Adds the function of an `in`'s condition. It sees a message of the environment as received: the objects of that
    /// are taken for the evaluation, and returned whatever the result is.
    fn condition(&mut self, end: End, channel: usize, patterns: &[Pattern], entry: BlockId, region: Region) {
        let (name, state, message) = (self.plan.branch_name(end), self.state(), self.message_type(channel));
        let view = self.view(channel);
        let takes_objects = view == View::Environment && self.plan.channels[channel].has_boxes;
        let stem = if takes_objects { "test" } else { "if" };
        let parameters = format!("({state} *t, esp_pid self, const {message} *m)");
        let source = if view == View::Program { "(*m)" } else { "m" };
        self.region(region, entry, &format!("static uint32_t {name}_{stem}{parameters}"), |code| {
            let mut parts = message_parts(code, channel, source, view);
            if takes_objects {
                take_from_environment(code, &mut parts);
            }
            code.line("(void)m;");
            binds(code, patterns, &parts)
        });
        if takes_objects {
            let mut code = self.code(Scope::Region(end.process));
            code.line("uint32_t result;");
            code.line("pools_save(t);");
            line!(code, "result = {name}_test(t, self, m);");
            code.line("pools_restore(t);");
            code.line("return result;");
            self.add(&format!("static uint32_t {name}_if{parameters}"), code);
        }
    }

    fn view(&self, channel: usize) -> View {
        match self.plan.program.channels[channel].boundary {
            Boundary::Internal | Boundary::ToEnvironment => View::Program,
            Boundary::FromEnvironment => View::Environment,
        }
    }

    pub(crate) fn message_type(&self, channel: usize) -> String {
        let name = &self.plan.channels[channel].name;
        match self.view(channel) {
            View::Program => format!("{name}_view"),
            View::Environment => format!("{name}_message"),
        }
    }

    /// Adds the function of a region. `prologue` writes what precedes its blocks and returns the parts of a message
    /// that the region's patterns bind.
    fn region(
        &mut self,
        region: Region,
        entry: BlockId,
        head: &str,
        prologue: impl FnOnce(&mut Writer<'_, '_>) -> Vec<(Bind, MessagePart)>,
    ) {
        let data = &self.plan.program.processes[region.process].body;
        let blocks = region_blocks(data, entry);
        let mut code = self.code(Scope::Region(region.process));
        code.region_result = region.result;
        declare_locals(&mut code, &defined_values(data, &blocks), &[]);
        self.enter(&mut code, region.process);
        code.on_channel(region.channel, |code| {
            for (bind, part) in prologue(code) {
                let to = match bind {
                    Bind::Parameter(index) => {
                        let value = data.blocks[entry.0 as usize].parameters[index as usize];
                        Lvalue { text: code.value(value), ty: code.value_type(value) }
                    }
                    Bind::Slot(slot) => Lvalue { text: code.slot(slot), ty: data.slots[slot.0 as usize].ty },
                };
                bind_part(code, &to, &part, Counting::Borrowed);
            }
            let mut ordered = vec![entry];
            ordered.extend(blocks.into_iter().filter(|block| *block != entry));
            body(code, &ordered);
        });
        self.add(head, code);
    }

    /// Declares the frame of instance `self` by the process's name.
    pub(crate) fn enter(&self, code: &mut Writer<'_, '_>, process: usize) {
        let plan = &self.plan.processes[process];
        if self.plan.is_array(process) {
            line!(code, "{0}_frame *const {0} = &t->{0}[self - {1}u];", plan.name, plan.base);
            line!(code, "const esp_pid {}_self = self;", plan.name);
            line!(code, "(void){0}; (void){0}_self;", plan.name);
        }
        code.line("(void)t; (void)self;");
    }
}

/// A region of a process.
#[derive(Clone, Copy)]
struct Region {
    process: usize,
    channel: Option<ChannelId>,
    result: RegionResult,
}

/// A function with its owner.
fn definition(owner: Owner, head: &str, body: &str) -> String {
    format!("{}\n{head}\n{{\n{body}}}\n{}", owner_line(owner), owner_line(Owner::Scheduler))
}

/// Takes the objects of a message of the environment; its parts then have the program's form.
fn take_from_environment(code: &mut Writer<'_, '_>, message: &mut [MessagePart]) {
    for (index, part) in message.iter_mut().enumerate() {
        if !code.plan.layouts.has_boxes(part.ty) {
            continue;
        }
        let taken = format!("taken{index}_");
        line!(code, "{} {taken};", code.c_type(part.ty));
        let name = code.helpers.want(code.plan, Helper::FromEnvironment, part.ty);
        line!(code, "{name}(t, &{taken}, &{});", part.text);
        *part = MessagePart { text: taken, ty: part.ty, view: View::Program };
    }
}

fn passes_boxes(code: &Writer<'_, '_>, part: &Passed) -> bool {
    let ty = match &part.operand {
        Operand::Value(value) => code.value_type(*value),
        Operand::Place(place) => match place.base {
            Base::Slot(slot) => code.body().slots[slot.0 as usize].ty,
            Base::Object(value) => code.value_type(value),
            Base::Constant(_, ty) => ty,
        },
    };
    code.plan.layouts.has_boxes(ty)
}

/// Declares the locals that hold some values and slots.
pub(crate) fn declare_locals(code: &mut Writer<'_, '_>, values: &BTreeSet<Value>, slots: &[SlotId]) {
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
fn body(code: &mut Writer<'_, '_>, blocks: &[BlockId]) {
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

fn jump_in_function(code: &mut Writer<'_, '_>, edge: &Edge, next: Option<BlockId>) {
    code.edge(edge);
    if next != Some(edge.to) {
        line!(code, "goto L{};", edge.to.0);
    }
}

fn terminator(code: &mut Writer<'_, '_>, terminator: &Terminator, location: Location, next: Option<BlockId>) {
    code.mark(location);
    match terminator {
        Terminator::Jump(edge) => jump_in_function(code, edge, next),
        Terminator::Branch { condition, then, otherwise } => {
            let head = format!("if ({}) {{", code.value(*condition));
            code.block(&head, |code| jump_in_function(code, then, None));
            jump_in_function(code, otherwise, next);
        }
        Terminator::Switch { value, cases, default } => {
            write_switch(code, *value, cases, default, &mut |code, edge| jump_in_function(code, edge, None));
        }
        Terminator::Return(operand) => {
            let value = code.operand(operand, location);
            let to = Lvalue { text: "(*result)".to_string(), ty: result_type(code) };
            code.copy(&to, &value, location);
            code.line("return 0;");
        }
        Terminator::Result(parts) => match code.region_result {
            RegionResult::Boolean => {
                let value = code.operand(&parts[0].operand, location);
                line!(code, "return {} ? 1 : 0;", value.text);
            }
            RegionResult::Message(sent) => message(code, parts, location, sent),
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

fn result_type(code: &Writer<'_, '_>) -> TypeId {
    match code.scope() {
        Scope::Function(index) => code.plan.program.functions[index].result,
        Scope::Process(_) | Scope::Region(_) => unreachable!("only functions return"),
    }
}

fn message(code: &mut Writer<'_, '_>, parts: &[Passed], location: Location, sent: Location) {
    let mut moved = 0u64;
    let values: Vec<Lvalue> = parts.iter().map(|part| code.operand(&part.operand, location)).collect();
    if let Some(dead) = code.dead(&values, Depth::Direct) {
        code.check(&dead, Fault::Memory, sent);
    }
    for (index, (part, value)) in parts.iter().zip(&values).enumerate() {
        if part.transfer == Transfer::Move && code.plan.layouts.has_boxes(value.ty) {
            moved |= 1 << index;
        }
        let by_value = code.is_passed_by_value(value.ty);
        line!(code, "m->v{index} = {}{};", if by_value { "" } else { "&" }, value.text);
    }
    if parts.iter().any(|part| passes_boxes(code, part)) {
        line!(code, "m->moved = {moved}u;");
    }
    code.line("return 1;");
}
