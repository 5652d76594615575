//! Quiescence (reference, section 8): no instance can run. The program sleeps, has ended, or
//! some instances are blocked forever. Generated as a table of the waits and a fixed point over the instances, computed
//! only when the ready list is empty. Also the queues of instances that wait for the environment, and the re-evaluation
//! of guards.

use super::plan::{End, Plan, processes_of, unsigned_bits};
use super::wait_state::open_condition;
use crate::layout::branches;
use quaject_esp_ir::ir::*;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// The functions of the queues: instances that wait for the environment in order of arrival, and instances whose guards
/// depend on free objects.
pub(crate) fn queue_functions(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    if plan.features.polls_environment {
        waiting_list(plan, &mut text);
    }
    if plan.features.reevaluates_guards {
        requeueing(plan, &mut text);
        guard_declarations(plan, &mut text);
        reopening(plan, &mut text);
    }
    text
}

/// A doubly linked ring of the instances that wait for the environment.
fn waiting_list(plan: &Plan<'_>, text: &mut String) {
    let (prefix, end, bits) = (&plan.prefix, plan.instances, unsigned_bits(plan.instances));
    put!(text, "\nESP_INLINE void waiting_append({prefix}_t *t, esp_pid i)\n{{");
    put!(text, "    const uint{bits}_t last = t->waiting_last[{end}];");
    put!(text, "    t->waiting_next[last] = (uint{bits}_t)i;\n    t->waiting_last[{end}] = (uint{bits}_t)i;");
    put!(text, "    t->waiting_last[i] = last;\n    t->waiting_next[i] = {end};\n}}");
    put!(text, "\n/* Does nothing if it is not on the list. */");
    put!(text, "ESP_INLINE void waiting_remove({prefix}_t *t, esp_pid i)\n{{");
    put!(text, "    t->waiting_next[t->waiting_last[i]] = t->waiting_next[i];");
    put!(text, "    t->waiting_last[t->waiting_next[i]] = t->waiting_last[i];");
    put!(text, "    t->waiting_next[i] = (uint{bits}_t)i;\n    t->waiting_last[i] = (uint{bits}_t)i;\n}}");
}

/// Removal from the ready list, and whether an instance is there to search again.
fn requeueing(plan: &Plan<'_>, text: &mut String) {
    let (prefix, bits) = (&plan.prefix, unsigned_bits(plan.instances));
    put!(text, "\nstatic uint32_t unqueue({prefix}_t *t, uint32_t head, uint32_t tail, esp_pid instance)\n{{");
    put!(text, "    uint32_t to = head;\n    t->queued[instance] = 0;\n    for (; head != tail; head++) {{");
    put!(text, "        const uint{bits}_t i = t->ready[head & READY_MASK];");
    put!(text, "        if (i != instance) t->ready[to++ & READY_MASK] = i;\n    }}\n    return to;\n}}");
    put!(text, "\nESP_INLINE bool is_waiting(const {prefix}_t *t, esp_pid instance)\n{{");
    let all = plan.processes.iter().flat_map(|process| &process.waits).filter(|wait| wait.may_be_requeued());
    let all: Vec<String> = all.map(|wait| format!("t->pc[instance] == {}u", wait.pc)).collect();
    put!(text, "    return {};\n}}", all.join(" || "));
}

/// The waits with guards that depend on free objects.
fn reevaluated_waits<'p>(plan: &'p Plan<'_>) -> impl Iterator<Item = (usize, usize)> + 'p {
    plan.waits().filter(|(process, wait)| plan.processes[*process].waits[*wait].reevaluates_guards)
}

/// The branches of a wait with such guards.
fn reevaluated_ends<'p>(plan: &'p Plan<'_>, process: usize, wait: usize) -> impl Iterator<Item = End> + 'p {
    plan.ends(process, wait).filter(|end| matches!(plan.branch(*end).guard, Guard::Region(_)))
}

fn guard_declarations(plan: &Plan<'_>, text: &mut String) {
    for end in reevaluated_waits(plan).flat_map(|(process, wait)| reevaluated_ends(plan, process, wait)) {
        let name = plan.branch_name(end);
        put!(text, "static uint32_t {name}_guard({}_t *t, esp_pid self);", plan.prefix);
    }
}

/// The function that evaluates guards again; instances of which one has opened join the ready list.
fn reopening(plan: &Plan<'_>, text: &mut String) {
    let (prefix, bits) = (&plan.prefix, unsigned_bits(plan.instances));
    put!(text, "\n/* The number of free objects has changed: evaluates the guards that depend on it again. */");
    put!(text, "ESP_OUTLINE uint32_t reopen({prefix}_t *t)\n{{");
    put!(text, "    esp_pid self;\n    uint32_t r;\n    t->freed = false;");
    put!(text, "    for (self = 0; self < {}u; self++) {{", plan.instances);
    put!(text, "        bool opened = false;\n        switch (t->pc[self]) {{");
    for (process, wait) in reevaluated_waits(plan) {
        let data = &plan.processes[process];
        put!(text, "        case {}: {{", data.waits[wait].pc);
        if plan.is_array(process) {
            put!(text, "            {0}_frame *const {0} = &t->{0}[self - {1}u];", data.name, data.base);
        }
        for end in reevaluated_ends(plan, process, wait) {
            let (name, bit) = (plan.branch_name(end), end.branch % 32);
            let open = format!("{}open[{}]", plan.frame(process), end.branch / 32);
            put!(text, "            r = {name}_guard(t, self);");
            put!(
                text,
                "            if (r > 1u) {{\n                t->instance = self;\n                return r;\n            }}"
            );
            put!(text, "            if (r && !({open} >> {bit} & 1u)) opened = true;");
            put!(text, "            {open} = ({open} & ~ESP_BIT({bit})) | r << {bit};");
        }
        put!(text, "            break;\n        }}");
    }
    put!(text, "        default:\n            break;\n        }}");
    put!(text, "        if (opened) {{");
    put!(text, "            if (!t->queued[self]) t->ready[t->tail++ & READY_MASK] = (uint{bits}_t)self;");
    put!(text, "            t->queued[self] = 2;\n        }}\n    }}\n    return 0;\n}}");
}

/// The functions that say where an instance waits and what quiescence means.
pub(crate) fn quiescence_functions(plan: &Plan<'_>) -> String {
    let mut text = String::new();
    place_function(plan, &mut text);
    wakes_function(plan, &mut text);
    quiescence_function(plan, &mut text);
    text
}

/// The rows of the table of places, and the waits whose first open operation varies.
struct Places {
    /// Program counter and `esp_location`.
    rows: Vec<(u32, String)>,
    /// Cases of a `switch`.
    choices: String,
}

/// Where an instance waits: its first open operation on a channel. The places are a table, sorted by program counter;
/// only waits whose first open operation varies test their branches.
fn place_function(plan: &Plan<'_>, text: &mut String) {
    let mut places = Places { rows: Vec::new(), choices: String::new() };
    for (process, wait) in plan.waits() {
        add_place(plan, process, wait, &mut places);
    }
    let Places { rows, choices } = places;
    put!(text, "\nesp_location {0}_place(const {0}_t *t, esp_pid instance)\n{{", plan.prefix);
    put!(text, "    const esp_location nowhere = {{0, 0, 0, -1}};");
    if rows.is_empty() {
        put!(text, "    (void)t; (void)instance;\n    return nowhere;\n}}");
        return;
    }
    let bits = plan.pc_bits;
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
    put!(text, "    while (low < high) {{\n        const uint32_t middle = low + (high - low) / 2u;");
    put!(
        text,
        "        if (places[middle].pc < t->pc[instance]) low = middle + 1u;\n        else high = middle;\n    }}"
    );
    put!(
        text,
        "    return low < {}u && places[low].pc == t->pc[instance] ? places[low].place : nowhere;\n}}",
        rows.len()
    );
}

fn add_place(plan: &Plan<'_>, process: usize, wait: usize, places: &mut Places) {
    let (data, first) = (&plan.processes[process], places.rows.len());
    let details = &data.waits[wait];
    let mut tests = Vec::new();
    for end in plan.ends(process, wait) {
        let branch = plan.branch(end);
        let (Operation::In { channel, .. } | Operation::Out { channel, .. }) = &branch.operation else { continue };
        places.rows.push((details.pc, row(branch.location, i64::from(channel.0))));
        tests.push(open_condition(plan, end));
        if tests.last().is_some_and(Option::is_none) {
            break;
        }
    }
    if tests.last().is_none_or(Option::is_some) {
        let body = &plan.program.processes[process].body;
        places.rows.push((details.pc, row(body.blocks[details.block.0 as usize].location, -1)));
        tests.push(None);
    }
    if let [_] = tests[..] {
        return;
    }
    let choices = &mut places.choices;
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

/// For loaders: whether an instance waits at a branch, by the numbers of [`branches`], and the branch is open.
pub(crate) fn open_function(plan: &Plan<'_>, text: &mut String) {
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
            let count = details.branches.len();
            let first = numbers.iter().position(|(block, _)| *block == details.block).unwrap_or_default();
            let is_of_wait = match first {
                0 => format!("branch < {count}u"),
                _ => format!("branch >= {first}u && branch < {}u", first + count),
            };
            if !details.has_open_mask {
                put!(text, "    case {}:\n        return {is_of_wait};", details.pc);
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
            put!(
                text,
                "        return {is_of_wait} && (({frame}open[i / 32u] | unguarded[i / 32u]) >> i % 32u & 1u) != 0u;"
            );
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

/// The function that says whether another of some instances can still be woken.
fn wakes_function(plan: &Plan<'_>, text: &mut String) {
    put!(
        text,
        "\nstatic ESP_UNUSED bool wakes({}_t *t, uint32_t self, uint32_t base, uint32_t count)\n{{",
        plan.prefix
    );
    put!(text, "    uint32_t i;\n    for (i = base; i < base + count; i++) {{");
    put!(text, "        if (i != self && t->mark[i] == 1u) return true;\n    }}\n    return false;\n}}");
}

/// The fixed point: an instance can still be woken if an event can make one of its branches possible, or another
/// instance that can be woken. All others are blocked forever; unless they idle, that is a deadlock.
fn quiescence_function(plan: &Plan<'_>, text: &mut String) {
    let (prefix, instances) = (&plan.prefix, plan.instances);
    if instances == 0 {
        put!(
            text,
            "\nstatic esp_status quiescence({prefix}_t *t, const {prefix}_input *in, {prefix}_output *out)\n{{\n    \
             (void)t; (void)in; (void)out;\n    return ESP_DONE;\n}}"
        );
        return;
    }
    put!(
        text,
        "\n/* Marks instances: 1 if something can still wake them, 2 if they are blocked forever and do not idle. \
         */\nstatic esp_status quiescence({prefix}_t *t, const {prefix}_input *in, {prefix}_output *out)\n{{"
    );
    put!(text, "    uint32_t i, awake = 0, stuck = 0;\n    bool again;\n    (void)in; (void)out;");
    put!(text, "    t->wake = ESP_NEVER;");
    put!(text, "    for (i = 0; i < {instances}u; i++) t->mark[i] = 0;");
    put!(text, "    do {{\n        again = false;\n        for (i = 0; i < {instances}u; i++) {{");
    put!(text, "            const uint32_t self ESP_UNUSED = i;\n            bool wakeable = false;");
    put!(text, "            if (t->mark[i] != 0u) continue;\n            switch (t->pc[i]) {{");
    for (process, wait) in plan.waits() {
        wakeable_case(plan, process, wait, text);
    }
    put!(text, "            default:\n                break;\n            }}");
    put!(text, "            if (wakeable) {{\n                t->mark[i] = 1;\n                awake++;");
    put!(text, "                again = true;\n            }}\n        }}\n    }} while (again);");
    put!(text, "    for (i = {instances}u; i-- > 0u;) {{\n        if (t->mark[i] != 0u || t->pc[i] == 0u) continue;");
    skip_idle(plan, text);
    put!(text, "        t->mark[i] = 2;\n        t->instance = i;\n        stuck++;\n    }}");
    put!(text, "    if (stuck != 0u) {{\n        t->fault = 0;\n        return ESP_FAULT;\n    }}");
    put!(text, "    return awake == 0u ? ESP_DONE : ESP_SLEEP;\n}}");
}

/// Whether an instance at a wait can still be woken.
fn wakeable_case(plan: &Plan<'_>, process: usize, wait: usize, text: &mut String) {
    let data = &plan.processes[process];
    put!(text, "            case {}: {{", data.waits[wait].pc);
    if plan.is_array(process) {
        put!(text, "                {0}_frame *const {0} ESP_UNUSED = &t->{0}[i - {1}u];", data.name, data.base);
        put!(text, "                const esp_pid {}_self ESP_UNUSED = i;", data.name);
    }
    let mut timer = 0;
    for end in plan.ends(process, wait) {
        let branch = plan.branch(end);
        let cause = match &branch.operation {
            Operation::After { .. } => {
                let deadline = format!("{}deadline[{timer}]", plan.frame(process));
                let open = open_condition(plan, end).map(|open| format!("({open}) && ")).unwrap_or_default();
                put!(text, "                if ({open}{deadline} < t->wake) t->wake = {deadline};");
                timer += 1;
                "true".to_string()
            }
            Operation::In { channel, .. } => wake_condition(plan, channel.0 as usize, Direction::In),
            Operation::Out { channel, .. } => wake_condition(plan, channel.0 as usize, Direction::Out),
        };
        let condition = match (open_condition(plan, end), branch.guard) {
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

/// Skips instances that may wait forever.
fn skip_idle(plan: &Plan<'_>, text: &mut String) {
    let idle = plan.waits().filter(|(process, wait)| plan.wait(*process, *wait).blocking == Blocking::MayBlockForever);
    let idle: Vec<u32> = idle.map(|(process, wait)| plan.processes[process].waits[wait].pc).collect();
    if !idle.is_empty() {
        put!(text, "        switch (t->pc[i]) {{");
        for pc in idle {
            put!(text, "        case {pc}:");
        }
        put!(text, "            continue;\n        default:\n            break;\n        }}");
    }
}

/// The condition under which a branch on a channel can still become possible.
fn wake_condition(plan: &Plan<'_>, channel: usize, direction: Direction) -> String {
    let data = &plan.channels[channel];
    match (plan.program.channels[channel].boundary, direction) {
        (Boundary::Internal, direction) => {
            let ends = match direction {
                Direction::In => &data.writers,
                Direction::Out => &data.readers,
            };
            let wakes = |process: usize| {
                let process = &plan.processes[process];
                format!("wakes(t, self, {}u, {}u)", process.base, process.replicas)
            };
            let all: Vec<String> = processes_of(ends).into_iter().map(wakes).collect();
            if all.is_empty() { "false".to_string() } else { all.join(" || ") }
        }
        (Boundary::ToEnvironment, _) => format!("!{}_is_closed(IO)", data.name),
        (Boundary::FromEnvironment, _) => {
            let open = format!("!{}_is_closed(IO)", data.name);
            if !data.has_boxes {
                return open;
            }
            format!(
                "{open} && (!{0}_peek(IO) || {0}_has_objects(t, {0}_peek(IO)) || wakes(t, self, 0, {1}u))",
                data.name, plan.instances
            )
        }
    }
}
