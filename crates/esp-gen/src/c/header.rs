//! The header of a generated program: its types, the state, the entry points, and what the program asks of C.

use super::analysis::Home;
use super::interface;
use super::names::member;
use super::plan::{End, Plan, ProcessPlan, is_framed, shared_name};
use super::process::needs_undo;
use super::{Style, TraceMode, types};
use crate::layout::{Extent, View, structure, union};
use quaject_esp_ir::ir::*;
use std::collections::BTreeSet;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// A member of a frame.
pub(crate) struct Member {
    pub(crate) text: String,
    pub(crate) extent: Extent,
}

/// Bytes of a program counter.
pub(crate) fn pc_bits(plan: &Plan<'_>) -> u32 {
    let top = plan.processes.iter().enumerate().flat_map(|(index, process)| {
        process
            .waits
            .iter()
            .enumerate()
            .map(move |(wait, data)| data.pc + 1 + plan.wait(index, wait).branches.len() as u32)
            .chain(process.waits.iter().filter_map(|wait| wait.resume_pc))
            .chain(process.yields.values().copied())
            .chain(process.resumes.values().copied())
            .chain(plan.direct.pcs.values().copied())
            .chain([process.start_pc])
    });
    bits(top.max().unwrap_or(0))
}

/// Bits of the unsigned type that holds numbers up to this one.
pub(crate) fn bits(largest: u32) -> u32 {
    match largest {
        0..=255 => 8,
        256..=65535 => 16,
        65536.. => 32,
    }
}

/// The smallest power of two that holds all instances.
pub(crate) fn ready_capacity(plan: &Plan<'_>) -> u32 {
    plan.instances.max(1).next_power_of_two()
}

/// What a process's frame holds.
pub(crate) fn frame_members(plan: &Plan<'_>, index: usize) -> Vec<Member> {
    let process: &ProcessPlan = &plan.processes[index];
    let body = &plan.program.processes[index].body;
    let typed = |ty: TypeId, name: &str| Member {
        text: format!("{} {name};", plan.types[ty.0 as usize]),
        extent: plan.layouts.extent(ty, View::Program),
    };
    let mut members = Vec::new();
    let mut classes = BTreeSet::new();
    for home in &process.homes.values {
        if let Home::Frame(class) = home
            && classes.insert(*class)
        {
            members.push(typed(body.values[class.0 as usize].ty, &plan.version(body, *class)));
        }
    }
    let overlay = &process.homes.overlay;
    let typed_slot = |slot: SlotId| {
        let mut member = typed(body.slots[slot.0 as usize].ty, &plan.slot_name(body, slot));
        let parts = overlay.inside.iter().filter(|(_, place)| place.base == Base::Slot(slot));
        let parts: Vec<String> = parts.map(|(part, _)| plan.slot_name(body, *part)).collect();
        if !parts.is_empty() {
            write!(member.text, " /* {} in it */", parts.join(", ")).expect("writing to a string does not fail");
        }
        member
    };
    for slot in (0..body.slots.len() as u32).map(SlotId) {
        if !is_framed(&process.homes, slot) || overlay.inside.contains_key(&slot) {
            continue;
        }
        let Some(group) = overlay.group(slot) else {
            members.push(typed_slot(slot));
            continue;
        };
        let shared = &overlay.shared[group];
        if shared[0] == slot {
            let shared: Vec<Member> = shared.iter().map(|slot| typed_slot(*slot)).collect();
            let extents: Vec<Extent> = shared.iter().map(|member| member.extent).collect();
            let lines: String = shared.iter().map(|member| format!("        {}\n", member.text)).collect();
            members.push(Member {
                text: format!("union {{\n{lines}    }} {};", shared_name(group)),
                extent: union(&extents),
            });
        }
    }
    let words = |count: usize, name: &str, bytes: u64| Member {
        text: format!("uint{}_t {name};", bytes * 8),
        extent: Extent { size: bytes * count as u64, align: bytes },
    };
    if process.waits.iter().any(|wait| wait.stamped) {
        members.push(words(1, "stamp", 8));
    }
    if process.deadlines > 0 {
        members.push(Member {
            text: format!("esp_time deadline[{}];", process.deadlines),
            extent: Extent { size: 8 * process.deadlines as u64, align: 8 },
        });
    }
    if process.mask_words > 0 {
        members.push(words(process.mask_words, &format!("open[{}]", process.mask_words), 4));
    }
    for wait in process.waits.iter().filter(|wait| wait.rotates) {
        members.push(words(1, &format!("next{}", wait.block.0), 4));
    }
    let (mut parks, mut parked) = (String::new(), Vec::new());
    for wait in 0..process.waits.len() {
        for branch in 0..plan.wait(index, wait).branches.len() {
            let end = End { process: index, wait, branch };
            let payload = plan.parked_payload(end);
            let payload = payload.iter().map(|(number, value)| (format!("v{number}"), *value));
            let parameters: Vec<Value> = plan.parked_parameters(end);
            let parameters = parameters.iter().map(|value| (format!("p{}", value.0), *value));
            let mut extents = Vec::new();
            let mut text = String::new();
            let paused = plan.paused(end).iter().map(|value| (format!("s{}", value.0), *value));
            for (name, value) in payload.chain(parameters).chain(paused) {
                let ty = body.values[value.0 as usize].ty;
                write!(text, " {} {name};", plan.types[ty.0 as usize]).expect("writing to a string does not fail");
                extents.push(plan.layouts.extent(ty, View::Program));
            }
            if !text.is_empty() {
                put!(parks, "        struct {{{text} }} {};", plan.park_name(end));
                parked.push(structure(&extents).0);
            }
        }
    }
    if !parks.is_empty() {
        members.push(Member { text: format!("union {{\n{parks}    }} park;"), extent: union(&parked) });
    }
    // Small ones first: they are used most, and machines reach the beginning of a structure by shorter instructions.
    members.sort_by_key(|member| member.extent.size);
    members
}

/// Writes the header.
/// What keeps a header of this name from being read twice.
pub(crate) fn guard(header_name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("QJ_{}_", header_name.chars().map(letter).collect::<String>())
}

pub(crate) fn write(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    let program = plan.program;
    let prefix = &plan.prefix;
    let guard = guard(&plan.options.header_name);
    let files: Vec<&str> = program.files.iter().map(String::as_str).collect();
    put!(text, "/* Generated by qj from {}. Do not edit. */", files.join(", ").replace("*/", "* /"));
    put!(text, "#ifndef {guard}\n#define {guard}\n");
    put!(text, "#include \"quaject/esp.h\"\n");
    put!(text, "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n");
    put!(text, "struct {prefix}_t;\ntypedef struct {prefix}_t {prefix}_t;\n");
    put!(text, "/* -- types ---------------------------------------------------------------------------------- */\n");
    text.push_str(&types::declare(plan));
    for index in 0..program.channels.len() {
        if program.channels[index].boundary != Boundary::Internal {
            declare_message(plan, index, &mut text);
        }
    }
    put!(text, "/* -- what the program asks of C -------------------------------------------------------------- */\n");
    for function in &program.externs {
        declare_extern(plan, function, &mut text);
    }
    if !program.externs.is_empty() {
        text.push('\n');
    }
    if !plan.sans_io() {
        for index in 0..program.channels.len() {
            declare_hooks(plan, index, &mut text);
        }
    }
    put!(text, "/* -- the program ------------------------------------------------------------------------------ */\n");
    declare_state(plan, &mut text);
    put!(text, "/* Puts a program at its beginning. */\nvoid {prefix}_init({prefix}_t *t);\n");
    declare_io(plan, &mut text);
    put!(text, "/* Runs until nothing more can happen before an external event. `now` never goes back. */");
    put!(
        text,
        "esp_status {prefix}_step({prefix}_t *t, const {prefix}_input *in, {prefix}_output *out, esp_time now);\n"
    );
    put!(text, "/* After ESP_FAULT: what happened, where. */\nesp_fault_report {prefix}_fault(const {prefix}_t *t);");
    put!(text, "/* Where an instance waits; line 0 if it does not. */");
    put!(text, "esp_location {prefix}_place(const {prefix}_t *t, esp_pid instance);");
    put!(text, "/* After a deadlock: whether the instance is one of those that are stuck. */");
    put!(text, "bool {prefix}_stuck(const {prefix}_t *t, esp_pid instance);");
    put!(text, "/* Names, for messages. */\nextern const char *const {prefix}_files[];");
    put!(text, "extern const char *const {prefix}_channels[];\nextern const char *const {prefix}_instances[];");
    match plan.options.trace {
        TraceMode::Callback => {
            put!(text, "/* Tells a function of each choice. */");
            put!(text, "void {prefix}_trace({prefix}_t *t, esp_trace_function *function, void *user);");
        }
        TraceMode::None => {}
    }
    if plan.sans_io() {
        put!(text, "/* For loaders. */\nextern const esp_library {prefix}_program;");
    }
    put!(text, "\n#ifdef __cplusplus\n}}\n#endif\n\n#endif");
    text
}

fn declare_message(plan: &Plan<'_>, index: usize, text: &mut String) {
    let channel = &plan.program.channels[index];
    let name = format!("{}_message", plan.channels[index].name);
    let (whole, offsets) = plan.layouts.message(channel);
    let direction = match channel.boundary {
        Boundary::FromEnvironment => "from the world",
        Boundary::ToEnvironment | Boundary::Internal => "to the world",
    };
    put!(text, "/* channel {}, {direction} */\ntypedef struct {name} {{", channel.name);
    let mut facts = vec![format!("sizeof({name}) == {}", whole.size)];
    for (number, (ty, offset)) in channel.payload.iter().zip(offsets).enumerate() {
        put!(text, "    {} v{number};", plan.world_type(*ty));
        facts.push(format!("offsetof({name}, v{number}) == {offset}"));
    }
    if channel.payload.is_empty() {
        put!(text, "    uint8_t unused;");
    }
    put!(text, "}} {name};\nESP_LAYOUT({name}, {});\n", facts.join(" && "));
}

fn declare_extern(plan: &Plan<'_>, function: &Extern, text: &mut String) {
    let types = &plan.program.types;
    let by_value = |ty: TypeId| types.is_scalar(ty);
    let mut parameters: Vec<String> = function
        .parameters
        .iter()
        .map(|(ty, mutability)| {
            let name = plan.world_type(*ty);
            match (by_value(*ty), mutability) {
                (true, _) => name.to_string(),
                (false, Mutability::Immutable) => format!("const {name} *"),
                (false, Mutability::Mutable) => format!("{name} *"),
            }
        })
        .collect();
    let result = match function.result {
        None => "void".to_string(),
        Some(ty) if by_value(ty) => plan.world_type(ty).to_string(),
        Some(ty) => {
            parameters.push(format!("{} *result", plan.world_type(ty)));
            "void".to_string()
        }
    };
    let parameters = if parameters.is_empty() { "void".to_string() } else { parameters.join(", ") };
    put!(text, "#ifdef ESP_OPTIONAL_EXTERNS\n{result} {}({parameters}) ESP_WEAK;\n#else", function.name);
    put!(text, "{result} {}({parameters});\n#endif", function.name);
}

fn declare_hooks(plan: &Plan<'_>, index: usize, text: &mut String) {
    let channel = &plan.program.channels[index];
    let (prefix, name, plain) = (&plan.prefix, &plan.channels[index].name, &plan.channels[index].plain);
    let message = format!("{name}_message");
    let faces: Vec<usize> = interface::of_channel(plan, index);
    match (channel.boundary, plan.options.style) {
        (Boundary::Internal, _) => return,
        (Boundary::FromEnvironment, Style::Post { .. }) => {
            put!(
                text,
                "/* {}: call from one interrupt or thread; false: the ring was full, the message dropped. */",
                channel.name
            );
            put!(text, "bool {prefix}_post_{plain}(const {message} *message);");
            put!(text, "uint32_t {prefix}_dropped_{plain}(void);");
        }
        (Boundary::FromEnvironment, Style::Poll | Style::SansIo) if faces.is_empty() => {
            put!(text, "/* {}: whether a message is there, and taking it. Yours to write. */", channel.name);
            put!(text, "bool {name}_ready(void);\nvoid {name}_take({message} *message);");
        }
        (Boundary::ToEnvironment, _) if faces.is_empty() => {
            put!(
                text,
                "/* {}: whether a message would be accepted, and accepting it. Yours to write. */",
                channel.name
            );
            put!(text, "bool {name}_ready(void);\nvoid {name}_put(const {message} *message);");
        }
        (Boundary::FromEnvironment | Boundary::ToEnvironment, _) => {}
    }
    for face in faces {
        text.push_str(&interface::declare(plan, face));
    }
    put!(text, "/* {} will never be ready again. */\nvoid {prefix}_close_{plain}({prefix}_t *t);\n", channel.name);
}

fn declare_state(plan: &Plan<'_>, text: &mut String) {
    let program = plan.program;
    let prefix = &plan.prefix;
    for (index, process) in plan.processes.iter().enumerate() {
        let members = frame_members(plan, index);
        put!(
            text,
            "/* process {}: what survives its waits */\ntypedef struct {}_frame {{",
            program.processes[index].name,
            process.name
        );
        for member in &members {
            put!(text, "    {}", member.text);
        }
        if members.is_empty() {
            put!(text, "    uint8_t unused;");
        }
        put!(text, "}} {}_frame;\n", process.name);
    }
    for (index, pool) in program.types.pools().iter().enumerate() {
        let name = &plan.pools[index];
        let reference = if pool.capacity <= 65535 { "uint16_t" } else { "uint32_t" };
        put!(text, "/* {} objects of type {} */\ntypedef struct {name}_objects {{", pool.capacity, pool.name);
        put!(text, "    {reference} first, free;\n    {reference} next[{}];", pool.capacity);
        put!(text, "    uint32_t count[{}];", pool.capacity);
        put!(text, "    {} content[{}];\n}} {name}_objects;\n", plan.types[pool.content.0 as usize], pool.capacity);
    }
    put!(text, "/* All state. Holds no pointers into itself: it may be copied. */\nstruct {prefix}_t {{");
    put!(text, "    uint{}_t pc[{}];", pc_bits(plan), plan.instances.max(1));
    let ready = if plan.is_direct() { pc_bits(plan) } else { bits(plan.instances) };
    put!(text, "    uint{ready}_t ready[{}];", ready_capacity(plan));
    put!(text, "    uint32_t head, tail, due;");
    put!(text, "    uint8_t status, polling;\n    bool freed;");
    put!(text, "    uint8_t mark[{}];", plan.instances.max(1));
    if plan.retries() {
        put!(
            text,
            "    uint8_t queued[{}]; /* on the ready list: 1; 2 as a guard has opened */",
            plan.instances.max(1)
        );
    }
    if plan.retries_at_quiescence() {
        put!(text, "    uint32_t asked_again;");
    }
    if plan.polls() {
        let bits = bits(plan.instances);
        put!(text, "    uint{bits}_t waiting_next[{0}], waiting_last[{0}];", plan.instances + 1);
    }
    put!(text, "    uint32_t poll_at, fault, instance;\n    int32_t exit_status;\n    esp_time wake;");
    if plan.processes.iter().any(|process| process.waits.iter().any(|wait| wait.stamped)) {
        put!(text, "    uint64_t stamp;");
    }
    if plan.resumes() {
        put!(text, "    uint32_t asker, asker_pc, asker_left;");
    }
    match plan.options.trace {
        TraceMode::Callback => put!(text, "    esp_trace_function *trace;\n    void *trace_user;"),
        TraceMode::None => {}
    }
    for channel in &plan.channels {
        if channel.reader_words() > 0 {
            put!(text, "    uint32_t {}_readers[{}];", member(&channel.name), channel.reader_words());
        }
        if channel.writer_words() > 0 {
            put!(text, "    uint32_t {}_writers[{}];", member(&channel.name), channel.writer_words());
        }
    }
    for (index, channel) in program.channels.iter().enumerate() {
        let name = &plan.channels[index].name;
        match (channel.boundary, plan.sans_io()) {
            (Boundary::Internal, _) | (_, true) => {}
            (Boundary::FromEnvironment | Boundary::ToEnvironment, false) => put!(text, "    bool {name}_closed;"),
        }
    }
    for (index, process) in plan.processes.iter().enumerate() {
        let name = &process.name;
        if plan.is_array(index) {
            put!(text, "    {name}_frame {name}[{}];", process.replicas);
        } else {
            put!(text, "    {name}_frame {name};");
        }
    }
    messages_outside(plan, text);
    for (index, pool) in program.types.pools().iter().enumerate() {
        let name = &plan.pools[index];
        put!(text, "    {name}_objects {name};");
        if needs_undo(plan) {
            let reference = if pool.capacity <= 65535 { "uint16_t" } else { "uint32_t" };
            put!(
                text,
                "    struct {{ {reference} first, free, next[{0}]; uint32_t count[{0}]; }} {name}_saved;",
                pool.capacity
            );
        }
    }
    put!(text, "}};\n");
}

/// What is under way between the program and functions of the world. A message that goes out is made and handed over in one
/// go, so there is one at a time; with `post`, those that come in are read where they were posted.
fn messages_outside(plan: &Plan<'_>, text: &mut String) {
    let channels = || {
        plan.program.channels.iter().enumerate().map(|(index, channel)| (&plan.channels[index].name, index, channel))
    };
    if plan.sans_io() {
        return;
    }
    for (name, index, channel) in channels() {
        if channel.boundary == Boundary::FromEnvironment
            && plan.options.style == Style::Poll
            && interface::of_channel(plan, index).is_empty()
        {
            put!(text, "    bool {name}_full;\n    {name}_message {name}_head;");
        }
    }
    let out: Vec<String> = channels()
        .filter(|(_, _, channel)| channel.boundary == Boundary::ToEnvironment)
        .map(|(name, _, _)| format!("        {name}_message {name};\n"))
        .collect();
    if !out.is_empty() {
        put!(text, "    union {{\n{}    }} going;", out.concat());
    }
}

fn declare_io(plan: &Plan<'_>, text: &mut String) {
    let prefix = &plan.prefix;
    let (sources, sinks) = (plan.external(Boundary::FromEnvironment), plan.external(Boundary::ToEnvironment));
    put!(text, "/* What the world offers. */\ntypedef struct {prefix}_input {{");
    if plan.sans_io() {
        for index in &sources {
            let name = &plan.channels[*index].name;
            put!(
                text,
                "    struct {{ const {name}_message *messages; size_t count; bool closed; }} {};",
                member(&plan.channels[*index].plain)
            );
        }
    }
    if !plan.sans_io() || sources.is_empty() {
        put!(text, "    uint8_t unused;");
    }
    put!(text, "}} {prefix}_input;\n\n/* What became of it, and room for what the program sends. */");
    put!(text, "typedef struct {prefix}_output {{\n    esp_output_head head;");
    if plan.sans_io() {
        for index in &sinks {
            let name = &plan.channels[*index].name;
            put!(
                text,
                "    struct {{ {name}_message *messages; size_t capacity, count; bool closed; }} {};",
                member(&plan.channels[*index].plain)
            );
        }
    }
    put!(text, "}} {prefix}_output;\n");
}
