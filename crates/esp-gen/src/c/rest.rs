//! What it means when no instance can run (reference, section 8, "Blocking"): the program sleeps, has ended, or is stuck.
//! Generated as tables of the waits and a fixed point over the instances; runs only at rest.

use super::header::{bits, pc_bits};
use super::matching::{open_condition, processes};
use super::plan::{End, Plan};
use crate::layout::branches;
use quaject_esp_ir::ir::*;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// The list of instances that wait for something outside, in order of arrival, and the guards that ask for objects.
pub(crate) fn queues(plan: &Plan<'_>) -> String {
    let prefix = &plan.prefix;
    let mut text = String::new();
    let bits = bits(plan.instances);
    if plan.polls() {
        let end = plan.instances;
        put!(text, "\nESP_INLINE void waiting_append({prefix}_t *t, esp_pid i)\n{{");
        put!(text, "    const uint{bits}_t last = t->waiting_last[{end}];");
        put!(text, "    t->waiting_next[last] = t->waiting_last[{end}] = (uint{bits}_t)i;");
        put!(text, "    t->waiting_last[i] = last;\n    t->waiting_next[i] = {end};\n}}");
        put!(text, "\n/* Does nothing if it is not on the list. */");
        put!(text, "ESP_INLINE void waiting_remove({prefix}_t *t, esp_pid i)\n{{");
        put!(text, "    t->waiting_next[t->waiting_last[i]] = t->waiting_next[i];");
        put!(text, "    t->waiting_last[t->waiting_next[i]] = t->waiting_last[i];");
        put!(text, "    t->waiting_next[i] = t->waiting_last[i] = (uint{bits}_t)i;\n}}");
    }
    if !plan.retries() {
        return text;
    }
    put!(text, "\nstatic uint32_t unqueue({prefix}_t *t, uint32_t head, uint32_t tail, esp_pid instance)\n{{");
    put!(text, "    uint32_t to = head;\n    t->queued[instance] = 0;\n    for (; head != tail; head++) {{");
    put!(text, "        const uint{bits}_t i = t->ready[head & READY_MASK];");
    put!(text, "        if (i != instance) t->ready[to++ & READY_MASK] = i;\n    }}\n    return to;\n}}");
    put!(text, "\nESP_INLINE bool is_waiting(const {prefix}_t *t, esp_pid instance)\n{{");
    let waits = || {
        plan.processes.iter().enumerate().flat_map(|(process, data)| {
            data.waits
                .iter()
                .enumerate()
                .filter(|(_, wait)| wait.retries)
                .map(move |(index, wait)| (process, index, wait))
        })
    };
    let all = plan.processes.iter().flat_map(|process| &process.waits).filter(|wait| wait.is_retried());
    let all: Vec<String> = all.map(|wait| format!("t->pc[instance] == {}", wait.pc)).collect();
    put!(text, "    return {};\n}}", all.join(" || "));
    for (process, index, _) in waits() {
        for (branch, data) in plan.wait(process, index).branches.iter().enumerate() {
            if let Guard::Region(_) = data.guard {
                let name = plan.branch_name(End { process, wait: index, branch });
                put!(text, "static uint32_t {name}_guard({prefix}_t *t, esp_pid self);");
            }
        }
    }
    put!(text, "\n/* The number of free objects has changed: guards that ask for it are evaluated again. */");
    put!(text, "ESP_OUTLINE uint32_t reopen({prefix}_t *t)\n{{");
    put!(text, "    esp_pid self;\n    uint32_t r;\n    t->freed = false;");
    put!(text, "    for (self = 0; self < {}u; self++) {{", plan.instances);
    put!(text, "        bool opened = false;\n        switch (t->pc[self]) {{");
    for (process, index, wait) in waits() {
        put!(text, "        case {}: {{", wait.pc);
        let data = &plan.processes[process];
        if plan.is_array(process) {
            put!(text, "            {0}_frame *const {0} = &t->{0}[self - {1}u];", data.name, data.base);
        }
        for (branch, data) in plan.wait(process, index).branches.iter().enumerate() {
            if let Guard::Region(_) = data.guard {
                let name = plan.branch_name(End { process, wait: index, branch });
                let open = format!("{}open[{}]", plan.frame(process), branch / 32);
                put!(text, "            r = {name}_guard(t, self);");
                put!(
                    text,
                    "            if (r > 1) {{\n                t->instance = self;\n                return r;\n            }}"
                );
                put!(text, "            if (r && !({open} >> {} & 1u)) opened = true;", branch % 32);
                put!(text, "            {open} = ({open} & ~(1u << {0})) | r << {0};", branch % 32);
            }
        }
        put!(text, "            break;\n        }}");
    }
    put!(text, "        default:\n            break;\n        }}");
    put!(text, "        if (opened) {{");
    put!(text, "            if (!t->queued[self]) t->ready[t->tail++ & READY_MASK] = (uint{bits}_t)self;");
    put!(text, "            t->queued[self] = 2;\n        }}\n    }}\n    return 0;\n}}");
    text
}

/// Writes `place` and `at_rest`.
pub(crate) fn write(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    place(plan, &mut text);
    ends(plan, &mut text);
    at_rest(plan, &mut text);
    text
}

/// Where an instance waits: its first open operation on a channel. The places are a table, by program counter; only
/// waits whose first operation varies look at their open branches.
fn place(plan: &Plan<'_>, text: &mut String) {
    let prefix = &plan.prefix;
    let mut rows: Vec<(u32, String)> = Vec::new();
    let mut choices = String::new();
    for (process, data) in plan.processes.iter().enumerate() {
        for (wait, details) in data.waits.iter().enumerate() {
            let first = rows.len();
            let mut tests = Vec::new();
            for (branch, data) in plan.wait(process, wait).branches.iter().enumerate() {
                let (Operation::In { channel, .. } | Operation::Out { channel, .. }) = &data.operation else {
                    continue;
                };
                rows.push((details.pc, row(data.location, i64::from(channel.0))));
                tests.push(open_condition(plan, End { process, wait, branch }));
                if tests.last().is_some_and(Option::is_none) {
                    break;
                }
            }
            if tests.last().is_none_or(Option::is_some) {
                let body = &plan.program.processes[process].body;
                rows.push((details.pc, row(body.blocks[details.block.0 as usize].location, -1)));
                tests.push(None);
            }
            if let [_] = tests[..] {
                continue;
            }
            put!(choices, "    case {}: {{", details.pc);
            if plan.is_array(process) {
                put!(
                    choices,
                    "        const {0}_frame *const {0} ESP_UNUSED = &t->{0}[instance - {1}u];",
                    data.name,
                    data.base
                );
            }
            for (number, test) in tests.iter().enumerate() {
                let test = test.as_ref().map(|open| format!("if ({open}) ")).unwrap_or_default();
                put!(choices, "        {test}return places[{}].place;", first + number);
            }
            put!(choices, "    }}");
        }
    }
    put!(text, "\nesp_location {prefix}_place(const {prefix}_t *t, esp_pid instance)\n{{");
    put!(text, "    const esp_location nowhere = {{0, 0, 0, -1}};");
    if rows.is_empty() {
        put!(text, "    (void)t; (void)instance;\n    return nowhere;\n}}");
        return;
    }
    let bits = pc_bits(plan);
    put!(text, "    /* By program counter. */");
    put!(text, "    static const struct {{\n        esp_location place;\n        uint{bits}_t pc;");
    put!(text, "    }} places[{}] = {{", rows.len());
    for (pc, row) in &rows {
        put!(text, "        {{{row}, {pc}}},");
    }
    put!(text, "    }};\n    uint32_t low = 0, high = {}u;", rows.len());
    if !choices.is_empty() {
        put!(text, "    switch (t->pc[instance]) {{\n{choices}    default:\n        break;\n    }}");
    }
    put!(text, "    while (low < high) {{\n        const uint32_t middle = low + (high - low) / 2;");
    put!(
        text,
        "        if (places[middle].pc < t->pc[instance]) low = middle + 1;\n        else high = middle;\n    }}"
    );
    put!(
        text,
        "    return low < {}u && places[low].pc == t->pc[instance] ? places[low].place : nowhere;\n}}",
        rows.len()
    );
}

/// For loaders: whether an instance waits at a branch, by the numbers of [`branches`], and the branch is open.
pub(crate) fn open(plan: &Plan<'_>, text: &mut String) {
    let prefix = &plan.prefix;
    put!(text, "\nstatic bool program_open(const void *state, esp_pid instance, uint32_t branch)\n{{");
    if plan.processes.iter().all(|process| process.waits.is_empty()) {
        put!(text, "    (void)state; (void)instance; (void)branch;\n    return false;\n}}");
        return;
    }
    put!(text, "    const {prefix}_t *const t = (const {prefix}_t *)state;\n    switch (t->pc[instance]) {{");
    for (process, data) in plan.processes.iter().enumerate() {
        let numbers = branches(&plan.program.processes[process]);
        for (wait, details) in data.waits.iter().enumerate() {
            let count = plan.wait(process, wait).branches.len();
            let first = numbers.iter().position(|(block, _)| *block == details.block).unwrap_or_default();
            let is_there = format!("branch - {first}u < {count}u");
            if !details.masked {
                put!(text, "    case {}:\n        return {is_there};", details.pc);
                continue;
            }
            put!(text, "    case {}: {{", details.pc);
            if plan.is_array(process) {
                put!(text, "        const {0}_frame *const {0} = &t->{0}[instance - {1}u];", data.name, data.base);
            }
            let unguarded: Vec<String> = plan.wait(process, wait).branches.chunks(32).map(always_open).collect();
            put!(text, "        static const uint32_t unguarded[] = {{{}}};", unguarded.join(", "));
            put!(text, "        const uint32_t i = branch - {first}u;");
            let frame = plan.frame(process);
            put!(text, "        return {is_there} && (({frame}open[i / 32] | unguarded[i / 32]) >> i % 32 & 1u) != 0;");
            put!(text, "    }}");
        }
    }
    put!(text, "    default:\n        return false;\n    }}\n}}");
}

/// A word with a bit for each branch that has no guard.
fn always_open(branches: &[Branch]) -> String {
    let bits = branches.iter().enumerate().filter(|(_, branch)| branch.guard == Guard::Open);
    format!("{:#x}u", bits.fold(0u32, |word, (number, _)| word | 1 << number))
}

/// An `esp_location`.
fn row(location: Location, channel: i64) -> String {
    format!("{{{}, {}, {}, {channel}}}", location.file, location.column.min(65535), location.line)
}

/// Whether another wakeable instance has an operation of the given direction on a channel.
fn ends(plan: &Plan<'_>, text: &mut String) {
    put!(
        text,
        "\nstatic ESP_UNUSED bool wakes({}_t *t, uint32_t self, uint32_t base, uint32_t count)\n{{",
        plan.prefix
    );
    put!(text, "    uint32_t i;\n    for (i = base; i < base + count; i++) {{");
    put!(text, "        if (i != self && t->mark[i] == 1) return true;\n    }}\n    return false;\n}}");
}

fn at_rest(plan: &Plan<'_>, text: &mut String) {
    let prefix = &plan.prefix;
    let instances = plan.instances;
    if instances == 0 {
        put!(
            text,
            "\nstatic esp_status at_rest({prefix}_t *t, const {prefix}_input *in, {prefix}_output *out)\n{{\n    \
             (void)t; (void)in; (void)out;\n    return ESP_DONE;\n}}"
        );
        return;
    }
    put!(
        text,
        "\n/* Marks 1 what something can still wake, then 2 what nothing will and should. */\nstatic esp_status \
         at_rest({prefix}_t *t, const {prefix}_input *in, {prefix}_output *out)\n{{"
    );
    put!(text, "    uint32_t i, awake = 0, stuck = 0;\n    bool again;\n    (void)in; (void)out;");
    put!(text, "    t->wake = ESP_NEVER;");
    put!(text, "    for (i = 0; i < {instances}u; i++) t->mark[i] = 0;");
    put!(text, "    do {{\n        again = false;\n        for (i = 0; i < {instances}u; i++) {{");
    put!(text, "            const uint32_t self ESP_UNUSED = i;\n            bool wakeable = false;");
    put!(text, "            if (t->mark[i] != 0) continue;\n            switch (t->pc[i]) {{");
    for (process, data) in plan.processes.iter().enumerate() {
        for (wait, details) in data.waits.iter().enumerate() {
            put!(text, "            case {}: {{", details.pc);
            if plan.is_array(process) {
                put!(
                    text,
                    "                {0}_frame *const {0} ESP_UNUSED = &t->{0}[i - {1}u];",
                    data.name,
                    data.base
                );
                put!(text, "                const esp_pid {}_self ESP_UNUSED = i;", data.name);
            }
            let mut timer = 0;
            for (branch, data) in plan.wait(process, wait).branches.iter().enumerate() {
                let end = End { process, wait, branch };
                let cause = match &data.operation {
                    Operation::After { .. } => {
                        let frame = plan.frame(process);
                        let open = open_condition(plan, end).map(|open| format!("({open}) && ")).unwrap_or_default();
                        put!(
                            text,
                            "                if ({open}{frame}deadline[{timer}] < t->wake) t->wake = \
                             {frame}deadline[{timer}];"
                        );
                        timer += 1;
                        "true".to_string()
                    }
                    Operation::In { channel, .. } => cause(plan, channel.0 as usize, Direction::In),
                    Operation::Out { channel, .. } => cause(plan, channel.0 as usize, Direction::Out),
                };
                let condition = match (open_condition(plan, end), data.guard) {
                    (Some(open), Guard::Region(_)) => {
                        format!("({open}) ? ({cause}) : wakes(t, self, 0, {}u)", plan.instances)
                    }
                    (Some(open), Guard::Open | Guard::Value(_)) => format!("({open}) && ({cause})"),
                    (None, _) => cause,
                };
                put!(text, "                if ({condition}) wakeable = true;");
            }
            put!(text, "                break;\n            }}");
        }
    }
    put!(text, "            default:\n                break;\n            }}");
    put!(text, "            if (wakeable) {{\n                t->mark[i] = 1;\n                awake++;");
    put!(text, "                again = true;\n            }}\n        }}\n    }} while (again);");
    put!(text, "    for (i = {instances}u; i-- > 0;) {{\n        if (t->mark[i] != 0 || t->pc[i] == 0) continue;");
    let idle: Vec<u32> = plan
        .processes
        .iter()
        .enumerate()
        .flat_map(|(process, data)| {
            data.waits
                .iter()
                .enumerate()
                .filter(move |(wait, _)| plan.wait(process, *wait).blocking == Blocking::MayBlockForever)
                .map(|(_, details)| details.pc)
        })
        .collect();
    if !idle.is_empty() {
        put!(text, "        switch (t->pc[i]) {{");
        for pc in idle {
            put!(text, "        case {pc}:");
        }
        put!(text, "            continue;\n        default:\n            break;\n        }}");
    }
    put!(text, "        t->mark[i] = 2;\n        t->instance = i;\n        stuck++;\n    }}");
    put!(text, "    if (stuck != 0) {{\n        t->fault = 0;\n        return ESP_FAULT;\n    }}");
    put!(text, "    return awake == 0 ? ESP_DONE : ESP_SLEEP;\n}}");
}

/// When a branch on a channel can still be served.
fn cause(plan: &Plan<'_>, channel: usize, direction: Direction) -> String {
    let data = &plan.channels[channel];
    match (plan.program.channels[channel].boundary, direction) {
        (Boundary::Internal, direction) => {
            let ends = match direction {
                Direction::In => &data.writers,
                Direction::Out => &data.readers,
            };
            let all: Vec<String> = processes(ends)
                .into_iter()
                .map(|process| {
                    let process = &plan.processes[process];
                    format!("wakes(t, self, {}u, {}u)", process.base, process.replicas)
                })
                .collect();
            if all.is_empty() { "false".to_string() } else { all.join(" || ") }
        }
        (Boundary::ToEnvironment, _) => format!("!{}_is_closed(IO)", data.name),
        (Boundary::FromEnvironment, _) => {
            let open = format!("!{}_is_closed(IO)", data.name);
            if !plan.channel_has_boxes(channel) {
                return open;
            }
            format!(
                "{open} && (!{0}_peek(IO) || {0}_fits(t, {0}_peek(IO)) || wakes(t, self, 0, {1}u))",
                data.name, plan.instances
            )
        }
    }
}
