//! The ends of external channels as C functions, the same for every style:
//!
//! ```text
//!   received: c_peek (the oldest message or null), c_drop, c_has_objects (whether pools have the objects it needs)
//!   sent:     c_accepts, c_room (where a message is built), c_send, c_try_send
//!   both:     c_is_closed
//! ```

use super::faults::Faults;
use super::helpers::{Helper, Helpers};
use super::plan::Plan;
use super::{Style, interface, names};
use quaject_esp_ir::ir::*;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// What the functions of a channel have in common.
struct Channel<'p, 'a> {
    plan: &'p Plan<'a>,
    index: usize,
    name: &'p str,
    /// Member of `esp_input` or `esp_output`.
    member: String,
    /// Interfaces that the channel has in place of hooks.
    interfaces: Vec<usize>,
    /// Parameters of the functions.
    io: String,
}

const UNUSED: &str = "    (void)t; (void)in; (void)out;";

/// The functions of all external channels.
pub(crate) fn channel_ends(plan: &Plan<'_>, faults: &Faults, helpers: &Helpers) -> String {
    let mut text = String::new();
    let prefix = &plan.prefix;
    let mut sources = 0;
    for (index, data) in plan.program.channels.iter().enumerate() {
        let (name, plain) = (&plan.channels[index].name, &plan.channels[index].plain);
        let channel = Channel {
            plan,
            index,
            name,
            member: names::member(plain),
            interfaces: interface::of_channel(plan, index),
            io: format!("{prefix}_t *t, const {prefix}_input *in, {prefix}_output *out"),
        };
        match data.boundary {
            Boundary::Internal => continue,
            Boundary::FromEnvironment => {
                channel.receiving_end(sources, helpers, &mut text);
                sources += 1;
            }
            Boundary::ToEnvironment => channel.sending_end(faults, helpers, &mut text),
        }
        if !plan.sans_io() {
            put!(text, "\nvoid {prefix}_close_{plain}({prefix}_t *t)\n{{\n    t->{name}_closed = true;\n}}");
        }
    }
    text
}

/// The bodies of the functions of a receiving end.
struct ReceivingEnd {
    /// Declarations before the functions.
    declarations: String,
    peek: String,
    drop: String,
    is_closed: String,
}

/// The bodies of the functions of a sending end.
struct SendingEnd {
    accepts: String,
    room: String,
    send: String,
    is_closed: String,
}

impl Channel<'_, '_> {
    fn receiving_end(&self, source: usize, helpers: &Helpers, text: &mut String) {
        let Channel { plan, name, io, .. } = self;
        let end = match plan.options.style {
            Style::SansIo => self.receive_from_arguments(source),
            Style::Post { ring } => self.receive_from_ring(ring.max(1).next_power_of_two()),
            Style::Poll if self.interfaces.is_empty() => self.receive_by_hooks(),
            Style::Poll => self.receive_by_interfaces(),
        };
        text.push_str(&end.declarations);
        if plan.channels[self.index].has_boxes {
            self.has_objects(helpers, text);
        }
        let several = if plan.channels[self.index].readers.len() > 1 { "ESP_SHARED" } else { "ESP_INLINE" };
        put!(text, "\n{several} const {name}_message *{name}_peek({io})\n{{\n{UNUSED}\n{}\n}}", end.peek);
        put!(text, "\n{several} void {name}_drop({io})\n{{\n{UNUSED}\n{}\n}}", end.drop);
        put!(text, "\nESP_INLINE bool {name}_is_closed({io})\n{{\n{UNUSED}\n    return {};\n}}", end.is_closed);
    }

    /// Messages are an argument of the step.
    fn receive_from_arguments(&self, source: usize) -> ReceivingEnd {
        let member = &self.member;
        ReceivingEnd {
            declarations: String::new(),
            peek: format!(
                "    return in && out->head.taken[{source}] < in->{member}.count ? in->{member}.messages + \
                 out->head.taken[{source}] : NULL;"
            ),
            drop: format!("    out->head.taken[{source}]++;"),
            is_closed: format!("in && in->{member}.closed && out->head.taken[{source}] >= in->{member}.count"),
        }
    }

    /// Messages are in a ring that interrupts fill.
    fn receive_from_ring(&self, ring: u32) -> ReceivingEnd {
        let (name, prefix, plain) = (self.name, &self.plan.prefix, &self.plan.channels[self.index].plain);
        let declarations = format!(
            "\n/* One producer (an interrupt or thread) and one consumer (the step). `posted` is written by the\n * \
             producer alone, `taken` by the consumer alone; each barrier orders a slot's use before its index. \
             */\nstatic struct {{\n    volatile esp_index posted, taken;\n    volatile uint32_t lost;\n    {name}_message at[{ring}];\n}} \
             {name}_ring;\nESP_ASSERT({name}_ring_is_too_long_for_this_machine, {ring}u <= ESP_MAX_RING);\n\nbool {prefix}_post_{plain}(const {name}_message *message)\n{{\n    const esp_index posted = \
             {name}_ring.posted;\n    if ((esp_index)(posted - {name}_ring.taken) >= {ring}u) {{\n        {name}_ring.lost = \
             {name}_ring.lost + 1u;\n        return false;\n    }}\n    ESP_BARRIER(); /* pairs with the one in \
             `drop`: the slot is free before it is written */\n    {name}_ring.at[posted % {ring}u] = *message;\n    \
             ESP_BARRIER(); /* pairs with the one in `peek`: the slot is written before it is offered */\n    \
             {name}_ring.posted = (esp_index)(posted + 1u);\n    return true;\n}}\n\nuint32_t \
             {prefix}_dropped_{plain}(void)\n{{\n    uint32_t lost;\n    do {{\n        lost = {name}_ring.lost;\n    }} while (lost != {name}_ring.lost); \
             /* an interrupt may come between its bytes */\n    return lost;\n}}\n"
        );
        ReceivingEnd {
            declarations,
            peek: format!(
                "    const esp_index taken = {name}_ring.taken;\n    if ({name}_ring.posted == taken) return 0;\n    \
                 ESP_BARRIER();\n    return &{name}_ring.at[taken % {ring}u];"
            ),
            drop: format!("    ESP_BARRIER();\n    {name}_ring.taken = (esp_index)({name}_ring.taken + 1u);"),
            is_closed: format!("t->{name}_closed && {name}_ring.posted == {name}_ring.taken"),
        }
    }

    /// Messages are taken by functions of the user.
    fn receive_by_hooks(&self) -> ReceivingEnd {
        let name = self.name;
        ReceivingEnd {
            declarations: String::new(),
            peek: format!(
                "    if (!t->{name}_full && !t->{name}_closed && {name}_ready()) {{\n        \
                 {name}_take(&t->{name}_head);\n        t->{name}_full = true;\n    }}\n    return t->{name}_full ? \
                 &t->{name}_head : NULL;"
            ),
            drop: format!("    t->{name}_full = false;"),
            is_closed: format!("t->{name}_closed && !t->{name}_full"),
        }
    }

    /// Messages are built by the functions of an interface, one at a time.
    fn receive_by_interfaces(&self) -> ReceivingEnd {
        let name = self.name;
        let mut declarations = format!("\nstatic {name}_message {name}_offer;\nstatic bool {name}_offered;\n");
        for interface in &self.interfaces {
            declarations.push_str(&interface::define(self.plan, self.index, *interface));
        }
        ReceivingEnd {
            declarations,
            peek: format!("    return {name}_offered ? &{name}_offer : NULL;"),
            drop: format!("    {name}_offered = false;"),
            is_closed: format!("t->{name}_closed && !{name}_offered"),
        }
    }

    /// Whether the pools have the objects that a message needs.
    fn has_objects(&self, helpers: &Helpers, text: &mut String) {
        let Channel { plan, name, index, .. } = self;
        let prefix = &plan.prefix;
        put!(text, "\nESP_INLINE bool {name}_has_objects({prefix}_t *t, const {name}_message *m)\n{{");
        put!(text, "    uint32_t need[{}] = {{0}};", plan.pools.len());
        for (number, ty) in plan.program.channels[*index].payload.iter().enumerate() {
            if plan.layouts.has_boxes(*ty) {
                let member = &plan.channels[*index].members[number];
                put!(text, "    {}(need, &m->{member});", helpers.want(plan, Helper::Needs, *ty));
            }
        }
        let pools = plan.pools.iter().enumerate();
        let enough: Vec<String> = pools.map(|(pool, name)| format!("need[{pool}] <= t->{name}.free")).collect();
        put!(text, "    return {};\n}}", enough.join(" && "));
    }

    fn sending_end(&self, faults: &Faults, helpers: &Helpers, text: &mut String) {
        let Channel { plan, name, io, .. } = self;
        let end = if plan.sans_io() { self.send_to_arguments() } else { self.send_to_functions(faults, helpers) };
        put!(text, "\nESP_INLINE bool {name}_accepts({io})\n{{\n{UNUSED}\n    return {};\n}}", end.accepts);
        put!(text, "\nESP_INLINE {name}_message *{name}_room({io})\n{{\n{UNUSED}\n    return {};\n}}", end.room);
        put!(text, "\nESP_INLINE void {name}_send({io})\n{{\n{UNUSED}\n{}\n}}", end.send);
        if plan.channels[self.index].has_shared_send {
            self.try_send(text);
        }
        put!(text, "\nESP_INLINE bool {name}_is_closed({io})\n{{\n{UNUSED}\n    return {};\n}}", end.is_closed);
    }

    /// Room for messages is an argument of the step.
    fn send_to_arguments(&self) -> SendingEnd {
        let member = &self.member;
        SendingEnd {
            accepts: format!("out->{member}.count < out->{member}.capacity && !out->{member}.closed"),
            room: format!("out->{member}.messages + out->{member}.count"),
            send: format!("    ESP_PUT(out->{member});"),
            is_closed: format!("out->{member}.closed"),
        }
    }

    /// Messages are accepted by functions of the user: a hook, or those of an interface.
    fn send_to_functions(&self, faults: &Faults, helpers: &Helpers) -> SendingEnd {
        let Channel { plan, name, index, .. } = self;
        let send = match self.interfaces.first() {
            None => format!("    {name}_put(&t->outgoing.{name});"),
            Some(interface) => format!(
                "    const {name}_message *const m = &t->outgoing.{name};\n{}",
                interface::take_apart(plan, faults, helpers, *index, *interface)
            ),
        };
        let ready = match self.interfaces.first() {
            None => format!("{name}_ready()"),
            Some(interface) => format!("{}IsReady()", plan.interfaces[*interface]),
        };
        SendingEnd {
            accepts: format!("!t->{name}_closed && {ready}"),
            room: format!("&t->outgoing.{name}"),
            send,
            is_closed: format!("t->{name}_closed"),
        }
    }

    /// The function that sends a message if it is accepted.
    fn try_send(&self, text: &mut String) {
        let Channel { plan, name, io, .. } = self;
        let types = &plan.program.types;
        put!(text, "\nESP_SHARED bool {name}_try_send({io}, const {name}_view *v)\n{{");
        put!(text, "    {name}_message *m;\n    if (!{name}_accepts(IO)) return false;\n    m = {name}_room(IO);");
        let payload = &plan.program.channels[self.index].payload;
        for (number, ty) in payload.iter().enumerate() {
            let dereference = if types.is_scalar(*ty) { "" } else { "*" };
            let member = &plan.channels[self.index].members[number];
            put!(text, "    m->{member} = {dereference}v->v{number};");
        }
        if payload.is_empty() {
            put!(text, "    m->unused = v->unused;");
        }
        put!(text, "    {name}_send(IO);\n    return true;\n}}");
    }
}
