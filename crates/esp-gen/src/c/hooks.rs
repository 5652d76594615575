//! The ends of external channels as C functions, the same for every style: the oldest message and its removal, room and
//! its use, whether it is closed.

use super::faults::Faults;
use super::helpers::{Helper, Helpers};
use super::outside::is_given;
use super::plan::Plan;
use super::{Style, interface};
use quaject_esp_ir::ir::*;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// The ends of external channels, the same for every style: the oldest message and its removal, room and its use.
pub(crate) fn hooks(plan: &Plan<'_>, faults: &Faults, helpers: &Helpers) -> String {
    let mut text = String::new();
    let prefix = &plan.prefix;
    let io = format!("{prefix}_t *t, const {prefix}_input *in, {prefix}_output *out");
    let unused = "    (void)t; (void)in; (void)out;";
    let mut source = 0;
    for (index, channel) in plan.program.channels.iter().enumerate() {
        let name = &plan.channels[index].name;
        let plain = &plan.channels[index].plain;
        let member = super::names::member(plain);
        let message = format!("{name}_message");
        let faces = interface::of_channel(plan, index);
        match channel.boundary {
            Boundary::Internal => continue,
            Boundary::FromEnvironment => {
                let (before, peek, drop, closed) = match plan.options.style {
                    Style::SansIo => (
                        String::new(),
                        format!(
                            "    return in && out->head.taken[{source}] < in->{member}.count ? \
                             in->{member}.messages + out->head.taken[{source}] : 0;"
                        ),
                        format!("    out->head.taken[{source}]++;"),
                        format!("in && in->{member}.closed && out->head.taken[{source}] >= in->{member}.count"),
                    ),
                    Style::Post { ring } => {
                        let ring = ring.max(1).next_power_of_two();
                        (
                            format!(
                                "\n/* One producer (an interrupt or thread) and one consumer (the step). `posted` is \
                                 written by the\n * producer alone, `taken` by the consumer alone; each barrier orders \
                                 a slot's use before its index. */\nstatic struct {{\n    \
                                 volatile uint32_t posted, taken, lost;\n    {message} at[{ring}];\n}} \
                                 {name}_ring;\n\nbool \
                                 {prefix}_post_{plain}(const {message} *message)\n{{\n    uint32_t posted = \
                                 {name}_ring.posted;\n    if (posted - {name}_ring.taken >= {ring}u) {{\n        \
                                 {name}_ring.lost = {name}_ring.lost + 1u;\n        return false;\n    }}\n    \
                                 ESP_BARRIER(); /* pairs with the one in `drop`: the slot is free before it is \
                                 written */\n    {name}_ring.at[posted % {ring}u] = *message;\n    ESP_BARRIER(); /* \
                                 pairs with the one in `peek`: the slot is written before it is offered */\n    \
                                 {name}_ring.posted = posted + 1u;\n    return true;\n}}\n\nuint32_t \
                                 {prefix}_dropped_{plain}(void)\n{{\n    return {name}_ring.lost;\n}}\n"
                            ),
                            format!(
                                "    uint32_t taken = {name}_ring.taken;\n    if ({name}_ring.posted == taken) return 0;\n    \
                                 ESP_BARRIER();\n    return &{name}_ring.at[taken % {ring}u];"
                            ),
                            format!("    ESP_BARRIER();\n    {name}_ring.taken = {name}_ring.taken + 1u;"),
                            format!("t->{name}_closed && {name}_ring.posted == {name}_ring.taken"),
                        )
                    }
                    Style::Poll if faces.is_empty() => (
                        String::new(),
                        format!(
                            "    if (!t->{name}_full && !t->{name}_closed && {name}_ready()) {{\n        \
                             {name}_take(&t->{name}_head);\n        t->{name}_full = true;\n    }}\n    return \
                             t->{name}_full ? &t->{name}_head : 0;"
                        ),
                        format!("    t->{name}_full = false;"),
                        format!("t->{name}_closed && !t->{name}_full"),
                    ),
                    Style::Poll => {
                        let mut before = format!("\nstatic {message} {name}_offer;\nstatic bool {name}_offered;\n");
                        for face in &faces {
                            before.push_str(&interface::define(plan, index, *face));
                        }
                        (
                            before,
                            format!("    return {name}_offered ? &{name}_offer : 0;"),
                            format!("    {name}_offered = false;"),
                            format!("t->{name}_closed && !{name}_offered"),
                        )
                    }
                };
                text.push_str(&before);
                if plan.channel_has_boxes(index) {
                    put!(text, "\nESP_INLINE bool {name}_fits({prefix}_t *t, const {message} *m)\n{{");
                    put!(text, "    uint32_t need[{}] = {{0}};", plan.pools.len());
                    for (number, ty) in channel.payload.iter().enumerate() {
                        if plan.layouts.has_boxes(*ty) {
                            put!(text, "    {}(need, &m->v{number});", helpers.want(plan, Helper::Needs, *ty));
                        }
                    }
                    let enough: Vec<String> = plan
                        .pools
                        .iter()
                        .enumerate()
                        .map(|(pool, name)| format!("need[{pool}] <= t->{name}.free"))
                        .collect();
                    put!(text, "    return {};\n}}", enough.join(" && "));
                }
                let several = if plan.channels[index].readers.len() > 1 { "ESP_SHARED" } else { "ESP_INLINE" };
                put!(text, "\n{several} const {message} *{name}_peek({io})\n{{\n{unused}\n{peek}\n}}");
                put!(text, "\n{several} void {name}_drop({io})\n{{\n{unused}\n{drop}\n}}");
                put!(text, "\nESP_INLINE bool {name}_is_closed({io})\n{{\n{unused}\n    return {closed};\n}}");
                source += 1;
            }
            Boundary::ToEnvironment => {
                let (accepts, room, sent, closed) = if plan.sans_io() {
                    (
                        format!("out->{member}.count < out->{member}.capacity && !out->{member}.closed"),
                        format!("out->{member}.messages + out->{member}.count"),
                        format!("    ESP_PUT(out->{member});"),
                        format!("out->{member}.closed"),
                    )
                } else {
                    let put_it = match faces.first() {
                        None => format!("    {name}_put(&t->going.{name});"),
                        Some(face) => format!(
                            "    const {message} *const m = &t->going.{name};\n{}",
                            interface::take_apart(plan, faults, helpers, index, *face)
                        ),
                    };
                    let ready = match faces.first() {
                        None => format!("{name}_ready()"),
                        Some(face) => format!("{}IsReady()", plan.interfaces[*face]),
                    };
                    (
                        format!("!t->{name}_closed && {ready}"),
                        format!("&t->going.{name}"),
                        put_it,
                        format!("t->{name}_closed"),
                    )
                };
                put!(text, "\nESP_INLINE bool {name}_accepts({io})\n{{\n{unused}\n    return {accepts};\n}}");
                put!(text, "\nESP_INLINE {message} *{name}_room({io})\n{{\n{unused}\n    return {room};\n}}");
                put!(text, "\nESP_INLINE void {name}_send({io})\n{{\n{unused}\n{sent}\n}}");
                if is_given(plan, index) {
                    give(plan, index, &mut text);
                }
                put!(text, "\nESP_INLINE bool {name}_is_closed({io})\n{{\n{unused}\n    return {closed};\n}}");
            }
        }
        if !plan.sans_io() {
            put!(text, "\nvoid {prefix}_close_{plain}({prefix}_t *t)\n{{\n    t->{name}_closed = true;\n}}");
        }
    }
    text
}

/// The function that hands a message to the world, if that takes one.
fn give(plan: &Plan<'_>, index: usize, text: &mut String) {
    let (prefix, name, types) = (&plan.prefix, &plan.channels[index].name, &plan.program.types);
    put!(
        text,
        "\nESP_SHARED bool {name}_give({prefix}_t *t, const {prefix}_input *in, {prefix}_output *out, const {name}_view *v)\n{{"
    );
    put!(text, "    {name}_message *m;\n    if (!{name}_accepts(IO)) return false;\n    m = {name}_room(IO);");
    let payload = &plan.program.channels[index].payload;
    for (number, ty) in payload.iter().enumerate() {
        let pointed = if types.is_scalar(*ty) { "" } else { "*" };
        put!(text, "    m->v{number} = {pointed}v->v{number};");
    }
    if payload.is_empty() {
        put!(text, "    m->unused = v->unused;");
    }
    put!(text, "    {name}_send(IO);\n    return true;\n}}");
}
