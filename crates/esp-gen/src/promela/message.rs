//! A branch of a wait as options of Promela's `if`: ports, messages, patterns. Knows nothing of the code behind it.

use super::INPUT_ENDED;
use super::expression::{Demand, Expr};
use super::lines::{Lines, Mark};
use super::memory::{self, Kind};
use super::monitor::texts as numbers_of;
use super::names::Names;
use super::observable::Observable;
use super::plan::{Plan, refers};
use super::scope::{Scope, cells, symbolic};
use super::statement::{Change, Writer};
use super::value_usage::Unit;
use quaject_esp_ir::cfg::region_blocks;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::visit::bound_slots;

/// One option.
pub(super) struct Choice {
    /// `:: ..` up to the code behind the branch.
    pub(super) head: Lines,
    pub(super) then: OptionBody,
}

/// The continuation of an option.
pub(super) enum OptionBody {
    /// These statements, then the code behind the branch.
    Continues(Lines),
    /// None: the option is a fault.
    Faults,
}

struct Branching<'b, 'a> {
    plan: &'a Plan<'a>,
    scope: &'b Scope<'a>,
    number: u32,
    branch: &'b Branch,
    start: Option<u32>,
    /// The parameters of the code behind the branch that properties observe, with the variables that hold them.
    received: &'b [(u32, String)],
    /// The names in use, and the temporaries for parts of messages.
    names: &'b mut Names,
    spares: &'b mut Vec<String>,
}

/// The options of a branch. `start`: the number of the wait, if fast paths can capture the instance there.
pub(super) fn options<'a>(
    plan: &'a Plan<'a>,
    scope: &Scope<'a>,
    (number, branch): (u32, &Branch),
    start: Option<u32>,
    received: &[(u32, String)],
    (names, spares): (&mut Names, &mut Vec<String>),
) -> Vec<Choice> {
    Branching { plan, scope, number, branch, start, received, names, spares }.options()
}

/// The condition under which a branch can be taken, if it has one.
pub(super) fn guard<'a>(
    plan: &'a Plan<'a>,
    scope: &Scope<'a>,
    number: u32,
    branch: &Branch,
    names: &mut Names,
    spares: &mut Vec<String>,
) -> Option<Expr> {
    Branching { plan, scope, number, branch, start: None, received: &[], names, spares }.guard()
}

/// The translation of a pattern, number by number of the received value.
struct Fields {
    /// The arguments of the receive statement.
    texts: Vec<String>,
    /// Boxed values that are bound, by the cell that receives them.
    bound: Vec<(Vec<Expr>, TypeId)>,
    /// What is copied out of received objects afterwards.
    copies: Vec<(Expr, Expr)>,
}

impl<'a> Branching<'_, 'a> {
    fn options(mut self) -> Vec<Choice> {
        let guard = self.guard();
        match &self.branch.operation {
            Operation::After { .. } => vec![self.plain(guard, Mark::After { branch: self.number }, Lines::default())],
            Operation::Out { channel, payload, .. } => match self.plan.is_internal(*channel) {
                true => self.send(*channel, payload, guard),
                false => {
                    let mut first = Lines::default();
                    if self.plan.is_observed(*channel) {
                        let fields = self.fields(payload).0;
                        let text = self.plan.observe(Observable::Message(*channel), &numbers_of(&fields));
                        text.into_iter().for_each(|text| first.push(Mark::Local, self.branch.location, text));
                    }
                    vec![self.plain(guard, Mark::ToEnvironment { branch: self.number }, first)]
                }
            },
            Operation::In { channel, patterns, condition, .. } => {
                let guard = match condition {
                    Some(entry) => self.own_condition(*entry, patterns, guard),
                    None => guard,
                };
                match self.plan.is_internal(*channel) {
                    true => vec![self.receive(*channel, patterns, guard)],
                    false => vec![self.receive_from_environment(*channel, patterns, guard)],
                }
            }
        }
    }

    /// The guard, if there is one.
    fn guard(&self) -> Option<Expr> {
        let place = self
            .start
            .map(|start| Expr::binary(&self.plan.paths.place(&self.scope.own), "==", &Expr::number(i128::from(start))));
        match (place, self.own_guard()) {
            (place, Some(guard)) => Some(Expr::and(place, guard)),
            (place, None) => place,
        }
    }

    fn own_guard(&self) -> Option<Expr> {
        match self.branch.guard {
            Guard::Open => None,
            Guard::Value(value) => Some(self.scope.value(value)).filter(|guard| guard.text != "true"),
            Guard::Region(entry) => match symbolic::region(self.scope, entry, &[]) {
                Some((mut values, _)) if values.len() == 1 => Some(values.remove(0)),
                Some(_) | None => {
                    let message = "this guard is computed in more steps than the model can take while waiting";
                    self.plan.refuse(self.branch.location, message, "write it as one condition");
                    None
                }
            },
        }
    }

    /// A condition on own variables joins the guard; one on received values is dropped.
    fn own_condition(&self, entry: BlockId, patterns: &[Pattern], guard: Option<Expr>) -> Option<Expr> {
        let parameters = &self.scope.body.blocks[entry.0 as usize].parameters;
        let unknown = "received_value";
        let arguments = vec![Expr::tight(unknown); parameters.len()];
        let mut received = vec![unknown.to_string()];
        let mut slots = Vec::new();
        patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)));
        for slot in slots {
            let name = &self.scope.slots[slot.0 as usize];
            let leaves = memory::leaves(self.scope.types(), self.scope.body.slots[slot.0 as usize].ty);
            received.extend(leaves.into_iter().map(|leaf| format!("{name}{}", leaf.suffix)));
        }
        match symbolic::region(self.scope, entry, &arguments) {
            Some((mut values, demands)) if values.len() == 1 && demands.is_empty() => {
                let condition = values.remove(0);
                let mut probe = Lines::default();
                probe.plain(condition.text.clone());
                if !received.iter().any(|name| probe.mentions(name)) {
                    return Some(Expr::and(guard, condition));
                }
            }
            Some(_) | None => {}
        }
        self.plan.approximate(self.branch.location, "the pattern's `if` on received values is taken to hold");
        guard
    }

    fn plain(&self, guard: Option<Expr>, mark: Mark, first: Lines) -> Choice {
        let mut head = Lines::default();
        let guard = guard.map_or_else(|| "true".to_string(), |guard| guard.text);
        match self.start {
            None => head.push(mark, self.branch.location, format!(":: {guard} ->")),
            Some(_) => {
                // Only one of the two statements is the step.
                head.push(mark, self.branch.location, format!(":: atomic {{ {guard} ->"));
                head.push(Mark::None, self.branch.location, format!("     {} }} ->", self.leave_start()));
            }
        }
        Choice { head, then: OptionBody::Continues(first) }
    }

    /// An instance that takes a branch leaves the wait at which a path could capture it.
    fn leave_start(&self) -> String {
        format!("{} = 0", self.plan.paths.place(&self.scope.own).text)
    }

    /// The channel; of a guarded one, the element that has partners only while the guard holds.
    fn port(&self, channel: ChannelId, guard: Option<&Expr>, never: u32) -> String {
        let plan = &self.plan.channels[channel.0 as usize];
        match (plan.guarded, guard) {
            (false, _) => plan.name.clone(),
            (true, None) => format!("{}[1]", plan.name),
            (true, Some(guard)) => format!("{}[({} -> 1 : {never})]", plan.name, guard.operand()),
        }
    }

    /// A message's numbers, and what must hold for them to be computed.
    fn fields(&self, payload: &Payload) -> (Vec<Expr>, Vec<Demand>) {
        let parts: &[Passed] = match payload {
            Payload::Ready(parts) => parts,
            Payload::Region(entry) => self.result_of(*entry),
        };
        let computed = match payload {
            Payload::Ready(_) => None,
            Payload::Region(entry) => symbolic::region(self.scope, *entry, &[]),
        };
        computed.unwrap_or_else(|| {
            (parts.iter().flat_map(|part| self.scope.operand(&part.operand).0).collect(), Vec::new())
        })
    }

    fn send(&mut self, channel: ChannelId, payload: &Payload, guard: Option<Expr>) -> Vec<Choice> {
        let mut fine: Option<Expr> = None;
        let mut fault = None;
        let parts: &[Passed] = match payload {
            Payload::Ready(parts) => parts,
            Payload::Region(entry) => self.result_of(*entry),
        };
        let (mut fields, demands) = self.fields(payload);
        for demand in demands {
            fault.get_or_insert(demand.fault);
            fine = Some(Expr::and(fine, demand.condition));
        }
        if let Some(fine) = &fine {
            // Spin computes a message before it checks whether a receiver matches.
            for field in fields.iter_mut().filter(|field| field.divides()) {
                *field = Expr::choose(fine, field, &Expr::tight("0"));
            }
        }
        let plan = &self.plan.channels[channel.0 as usize];
        for (part, counted) in parts.iter().zip(&plan.counted) {
            if *counted {
                let moves = part.transfer == Transfer::Move;
                fields.push(Expr::tight(if moves { "true" } else { "false" }));
            }
        }
        if self.plan.paths.names_sender(channel) {
            fields.push(self.scope.own.clone());
        }
        if fields.is_empty() {
            fields.push(Expr::tight("true"));
        }
        let both = match (&guard, &fine) {
            (_, None) => guard.clone(),
            (guard, Some(fine)) => Some(Expr::and(guard.clone(), fine.clone())),
        };
        let fields: Vec<String> = fields.into_iter().map(|field| field.text).collect();
        let mut head = Lines::default();
        let mark = Mark::Rendezvous { branch: self.number, sends: true };
        let port = self.port(channel, both.as_ref(), 0);
        head.push(mark, self.branch.location, format!(":: {port}!{} ->", fields.join(",")));
        let mut options = vec![Choice { head, then: OptionBody::Continues(Lines::default()) }];
        if let (Some(fine), Some(fault)) = (fine, fault) {
            self.plan.approximate(self.branch.location, "a message that faults needs no reader");
            let mut head = Lines::default();
            let condition = Expr::and(guard, fine.not());
            let (mark, assertion) = self.plan.assertion(fault, self.branch.location, "false");
            head.push(mark, self.branch.location, format!(":: {} -> {assertion}", condition.text));
            options.push(Choice { head, then: OptionBody::Faults });
        }
        options
    }

    /// What the region of a message results in.
    fn result_of(&self, entry: BlockId) -> &'a [Passed] {
        let body = self.scope.body;
        let blocks = region_blocks(body, entry);
        blocks
            .into_iter()
            .find_map(|id| match &body.blocks[id.0 as usize].terminator {
                Terminator::Result(parts) => Some(parts.as_slice()),
                Terminator::Jump(_)
                | Terminator::Branch { .. }
                | Terminator::Switch { .. }
                | Terminator::Yield(_)
                | Terminator::Wait(_)
                | Terminator::Return(_)
                | Terminator::Exit(_)
                | Terminator::End
                | Terminator::Fault(_)
                | Terminator::Enter(_)
                | Terminator::Leave(_) => None,
            })
            .unwrap_or(&[])
    }

    fn receive(&mut self, channel: ChannelId, patterns: &[Pattern], guard: Option<Expr>) -> Choice {
        let types = &self.plan.program.channels[channel.0 as usize].payload;
        let counted = self.plan.channels[channel.0 as usize].counted.clone();
        let mut texts = Vec::new();
        let mut all = Vec::new();
        let mut used = 0;
        for (index, (pattern, ty)) in patterns.iter().zip(types).enumerate() {
            let mut fields = Fields { texts: Vec::new(), bound: Vec::new(), copies: Vec::new() };
            self.pattern(pattern, *ty, &mut fields);
            if counted[index] || self.plan.is_observed(channel) || self.received_variable(pattern).is_some() {
                // Every number has to be known, so that counts of what is not kept can be given back.
                for text in &mut fields.texts {
                    if text == "_" {
                        *text = self.spare(used);
                        used += 1;
                    }
                }
            }
            texts.extend(fields.texts.iter().cloned());
            all.push((fields, *ty));
        }
        let seen: Vec<String> = texts.iter().map(|text| strip(text)).collect();
        let mut transferred = Vec::new();
        for _ in counted.iter().filter(|counted| **counted) {
            let spare = self.spare(used);
            used += 1;
            texts.push(spare.clone());
            transferred.push(spare);
        }
        let location = self.branch.location;
        let mut after = Lines::default();
        if self.plan.paths.names_sender(channel) {
            let sender = self.spare(used);
            used += 1;
            let mut writer = Writer { scope: self.scope, lines: &mut after, location };
            writer.line(format!("{} = 0;", self.plan.paths.place(&Expr::tight(sender.clone())).text));
            writer.line(format!("{};", self.leave_start()));
            texts.push(sender);
        }
        if let Some(text) = self.plan.observe(Observable::Message(channel), &seen) {
            Writer { scope: self.scope, lines: &mut after, location }.line(text);
        }
        for (pattern, (fields, _)) in patterns.iter().zip(&all) {
            self.store_received(pattern, fields, &mut after);
        }
        if texts.is_empty() {
            texts.push("true".to_string());
        }
        let mut transferred = transferred.into_iter();
        for ((fields, ty), counted) in all.iter().zip(&counted) {
            let transferred = counted.then(|| transferred.next().expect("one per value that is counted"));
            let mut writer = Writer { scope: self.scope, lines: &mut after, location };
            accept(&mut writer, fields, *ty, transferred.as_deref());
        }
        for spare in self.spares.iter().take(used) {
            Writer { scope: self.scope, lines: &mut after, location }.line(format!("{spare} = 0;"));
        }
        let port = self.port(channel, guard.as_ref(), 2);
        let head = self.receive_head(&port, &texts, after);
        Choice { head, then: OptionBody::Continues(Lines::default()) }
    }

    /// The variable that holds what a pattern binds, if properties observe it.
    fn received_variable(&self, pattern: &Pattern) -> Option<&str> {
        let Pattern::Bind(Bind::Parameter(parameter)) = pattern else { return None };
        self.received.iter().find(|(number, _)| number == parameter).map(|(_, variable)| variable.as_str())
    }

    /// Stores what a pattern has received for the properties that observe it.
    fn store_received(&self, pattern: &Pattern, fields: &Fields, after: &mut Lines) {
        if let (Some(variable), [text]) = (self.received_variable(pattern), &fields.texts[..]) {
            after.push(Mark::Local, self.branch.location, format!("{variable} = {};", strip(text)));
        }
    }

    /// The option that receives, with what follows in the step of the rendezvous.
    fn receive_head(&self, port: &str, texts: &[String], mut after: Lines) -> Lines {
        let mark = Mark::Rendezvous { branch: self.number, sends: false };
        let location = self.branch.location;
        let mut head = Lines::default();
        if after.lines.is_empty() {
            head.push(mark, location, format!(":: {port}?{} ->", texts.join(",")));
        } else {
            head.push(mark, location, format!(":: atomic {{ {port}?{} ->", texts.join(",")));
            head.indent();
            head.indent();
            join_step(&mut after);
            head.append(after);
            head.dedent();
            head.plain("} ->");
            head.dedent();
        }
        head
    }

    fn spare(&mut self, number: usize) -> String {
        while self.spares.len() <= number {
            let name = self.names.claim("spare");
            self.spares.push(name);
        }
        self.spares[number].clone()
    }

    /// The options that receive a message which the environment chooses.
    fn receive_from_environment(&mut self, channel: ChannelId, patterns: &[Pattern], guard: Option<Expr>) -> Choice {
        let mut guard = guard;
        let data = &self.plan.program.channels[channel.0 as usize];
        let (mut used, mut seen) = (0, Vec::new());
        let mut first = Lines::default();
        let location = self.branch.location;
        for (pattern, (ty, values)) in patterns.iter().zip(self.plan.model.message(channel)) {
            let mut fields = Fields { texts: Vec::new(), bound: Vec::new(), copies: Vec::new() };
            self.pattern(pattern, ty, &mut fields);
            let kinds = memory::leaves(self.scope.types(), ty)
                .into_iter()
                .flat_map(|leaf| std::iter::repeat_n(leaf.kind, leaf.count as usize));
            for (text, kind) in fields.texts.iter_mut().zip(kinds) {
                if text == "_" && (self.plan.is_observed(channel) || self.received_variable(pattern).is_some()) {
                    *text = self.spare(used);
                    used += 1;
                }
                let is_variable = text != "_" && !text.starts_with("eval(") && text.parse::<i64>().is_err();
                let constant = text == "true" || text == "false";
                if let Kind::Reference(_) = kind {
                    let message = format!("messages of `{}` hold objects, which the model cannot make", data.name);
                    self.plan.refuse(location, message, "write an `env` process that sends what you want tried");
                } else if is_variable && !constant {
                    let what = format!("what the environment sends on `{}`", data.name);
                    Writer { scope: self.scope, lines: &mut first, location }.any(
                        &Expr::tight(text.clone()),
                        &kind,
                        values,
                        &what,
                    );
                }
                seen.push(strip(text));
            }
            self.store_received(pattern, &fields, &mut first);
        }
        if let Some(text) = self.plan.observe(Observable::Message(channel), &seen) {
            Writer { scope: self.scope, lines: &mut first, location }.line(text);
        }
        for spare in self.spares.iter().take(used) {
            Writer { scope: self.scope, lines: &mut first, location }.line(format!("{spare} = 0;"));
        }
        let is_received = patterns.iter().any(|pattern| self.received_variable(pattern).is_some());
        let mark = Mark::FromEnvironment { branch: self.number };
        if !self.plan.model.properties.is_empty() {
            guard = Some(Expr::and(guard, Expr::tight(format!("!{INPUT_ENDED}"))));
        }
        if let Some(sent) = &self.plan.channels[channel.0 as usize].sent {
            let bound = self.plan.model.bounds[channel.0 as usize].unwrap_or(0);
            guard = Some(Expr::and(guard, Expr::loose(format!("{sent} < {bound}"))));
            if is_received {
                let mut counted = Lines::default();
                counted.push(Mark::None, location, format!("{sent} = {sent} + 1;"));
                counted.append(first);
                return self.receive_visibly(guard, mark, counted);
            }
            let mut head = Lines::default();
            let text = guard.map_or_else(|| "true".to_string(), |guard| guard.text);
            // Only one of the two statements is the step.
            head.push(mark, location, format!(":: atomic {{ {text} ->"));
            let left = self.start.map_or_else(String::new, |_| format!("; {}", self.leave_start()));
            head.push(Mark::None, location, format!("     {sent} = {sent} + 1{left} }} ->"));
            return Choice { head, then: OptionBody::Continues(first) };
        }
        if is_received { self.receive_visibly(guard, mark, first) } else { self.plain(guard, mark, first) }
    }

    /// The option that receives what the environment sends, where properties observe it: the choice of the message is
    /// part of the step.
    fn receive_visibly(&self, guard: Option<Expr>, mark: Mark, mut first: Lines) -> Choice {
        let location = self.branch.location;
        let mut head = Lines::default();
        let text = guard.map_or_else(|| "true".to_string(), |guard| guard.text);
        head.push(mark, location, format!(":: atomic {{ {text} ->"));
        head.indent();
        head.indent();
        if self.start.is_some() {
            head.push(Mark::None, location, format!("{};", self.leave_start()));
        }
        join_step(&mut first);
        head.append(first);
        head.dedent();
        head.plain("} ->");
        head.dedent();
        Choice { head, then: OptionBody::Continues(Lines::default()) }
    }

    /// Appends what a pattern receives, number by number.
    fn pattern(&mut self, pattern: &Pattern, ty: TypeId, fields: &mut Fields) {
        let types = self.scope.types();
        let width: usize = memory::leaves(types, ty).iter().map(|leaf| leaf.count as usize).sum();
        let boxed = matches!(types.get(ty), Type::Boxed(_));
        match pattern {
            Pattern::Any => fields.texts.extend(std::iter::repeat_n("_".to_string(), width)),
            Pattern::Bind(bind) => self.bind(*bind, ty, width, fields),
            Pattern::Constant(_) | Pattern::Bytes(_) | Pattern::Tag(..) | Pattern::Record(_) | Pattern::Array(_)
                if boxed =>
            {
                self.inside(pattern, ty, fields);
            }
            Pattern::Constant(value) => fields.texts.push(constant(*value)),
            Pattern::OwnId => fields.texts.push(match self.scope.own.text.as_str() {
                "_pid" => "eval(_pid)".to_string(),
                number => number.to_string(),
            }),
            Pattern::Bytes(bytes) => {
                fields.texts.push(bytes.len().to_string());
                let padded = bytes.iter().copied().chain(std::iter::repeat(0)).take(width - 1);
                fields.texts.extend(padded.map(|byte| byte.to_string()));
            }
            Pattern::Equal(operand) => {
                if refers(types, ty) {
                    let message = "objects are compared by content here, which the model cannot";
                    self.plan.refuse(self.branch.location, message, "compare the parts that are numbers");
                }
                let (values, _, _) = self.scope.operand(operand);
                fields.texts.extend(values.into_iter().map(|value| format!("eval({})", value.text)));
            }
            Pattern::Tag(tag, inner) => {
                fields.texts.push(tag.to_string());
                let Type::Union(id) = types.get(ty) else { unreachable!("the verifier types every pattern") };
                for (number, (_, part)) in types.aggregate(*id).parts.iter().enumerate() {
                    let Some(part) = *part else { continue };
                    match inner {
                        Some(inner) if number == *tag as usize => self.pattern(inner, part, fields),
                        Some(_) | None => self.pattern(&Pattern::Any, part, fields),
                    }
                }
            }
            Pattern::Record(parts) => {
                let Type::Record(id) = types.get(ty) else { unreachable!("the verifier types every pattern") };
                for (pattern, (_, part)) in parts.iter().zip(&types.aggregate(*id).parts) {
                    self.pattern(pattern, part.expect("fields have types"), fields);
                }
            }
            Pattern::Array(parts) => {
                let Type::Array { element, .. } = types.get(ty) else {
                    unreachable!("the verifier types every pattern")
                };
                let counts: Vec<usize> =
                    memory::leaves(types, *element).iter().map(|leaf| leaf.count as usize).collect();
                let mut columns = vec![Vec::new(); counts.len()];
                for pattern in parts {
                    let start = fields.texts.len();
                    self.pattern(pattern, *element, fields);
                    let mut own = fields.texts.drain(start..);
                    for (column, count) in columns.iter_mut().zip(&counts) {
                        column.extend(own.by_ref().take(*count));
                    }
                }
                fields.texts.extend(columns.into_iter().flatten());
            }
        }
    }

    fn bind(&mut self, bind: Bind, ty: TypeId, width: usize, fields: &mut Fields) {
        let then = self.branch.then;
        let needed = self.scope.usage.live_in(then);
        let cells: Option<Vec<Expr>> = match bind {
            Bind::Parameter(number) => {
                let parameter = self.scope.body.blocks[then.0 as usize].parameters[number as usize];
                let alive = match self.scope.usage.placement(parameter) {
                    super::value_usage::Placement::Variable(variable) => needed.contains(&Unit::Variable(variable)),
                    super::value_usage::Placement::Inline(..) => false,
                };
                alive.then(|| vec![self.scope.value(parameter)])
            }
            Bind::Slot(slot) => needed.contains(&Unit::Slot(slot)).then(|| {
                let place = Place { base: Base::Slot(slot), path: Vec::new() };
                cells(&self.scope.place(&place))
            }),
        };
        match cells {
            Some(cells) => {
                fields.texts.extend(cells.iter().map(|cell| cell.text.clone()));
                if refers(self.scope.types(), ty) {
                    fields.bound.push((cells, ty));
                }
            }
            None => fields.texts.extend(std::iter::repeat_n("_".to_string(), width)),
        }
    }

    /// A pattern on the content of an object: what it binds is copied out afterwards.
    fn inside(&mut self, pattern: &Pattern, ty: TypeId, fields: &mut Fields) {
        let Type::Boxed(pool) = self.scope.types().get(ty) else { unreachable!("only boxed values have an inside") };
        let content = self.scope.types().pool(*pool).content;
        let mut inner = Fields { texts: Vec::new(), bound: Vec::new(), copies: Vec::new() };
        self.pattern(pattern, content, &mut inner);
        // The last variable of its kind: those of the message itself are counted from the first.
        let name = self.spare(7);
        let object = Expr::tight(name.clone());
        let from = cells(&self.scope.content(&object, ty));
        for (text, from) in inner.texts.iter().zip(from) {
            if text == "_" {
                continue;
            }
            if text.starts_with("eval(") || text.parse::<i64>().is_ok() {
                let message = "the pattern compares the content of an object, which the model cannot";
                self.plan.refuse(self.branch.location, message, "bind the content and compare it afterwards");
            }
            fields.copies.push((Expr::tight(text.clone()), from));
        }
        fields.bound.extend(inner.bound);
        fields.texts.push(name);
    }
}

fn constant(value: i128) -> String {
    match value {
        0..=0x7fff_ffff => value.to_string(),
        _ => format!("eval({})", Expr::number(value).text),
    }
}

/// The expression of a field's text.
fn strip(text: &str) -> String {
    text.strip_prefix("eval(").and_then(|text| text.strip_suffix(')')).unwrap_or(text).to_string()
}

/// Makes lines a part of the communication before them.
fn join_step(lines: &mut Lines) {
    for line in &mut lines.lines {
        line.mark = match line.mark {
            Mark::Local => Mark::None,
            Mark::Fault(fault) => Mark::FaultInRendezvous(fault),
            other => other,
        };
    }
}

/// Writes the receiver's part of a rendezvous for one value: copies of what the pattern binds, and the counts of its
/// objects. `transferred` says at run time whether the sender's counts come with it; none if the value holds no
/// objects.
fn accept(writer: &mut Writer<'_, '_>, fields: &Fields, ty: TypeId, transferred: Option<&str>) {
    for (to, from) in &fields.copies {
        writer.line(format!("{} = {};", to.text, from.text));
    }
    let Some(transferred) = transferred else { return };
    for (cells, ty) in &fields.bound {
        writer.counts(cells, *ty, Change::Retain);
    }
    let numbers: Vec<Expr> = fields.texts.iter().map(|text| Expr::tight(strip(text))).collect();
    writer.line("if");
    writer.line(format!(":: {transferred} ->"));
    writer.lines.indent();
    writer.counts(&numbers, ty, Change::Release);
    writer.lines.dedent();
    writer.line(":: else");
    writer.line("fi;");
}
