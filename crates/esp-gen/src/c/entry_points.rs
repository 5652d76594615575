//! The functions of a program other than `init` and `step`, and the table by which loaders call them.

use super::TraceMode;
use super::faults::Faults;
use super::names::member;
use super::plan::Plan;
use super::quiescence::open_function;
use quaject_esp_ir::ir::Boundary;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// All of them.
pub(crate) fn entry_points(plan: &Plan<'_>, faults: &Faults, text: &mut String) {
    let prefix = &plan.prefix;
    fault_function(plan, faults, text);
    put!(text, "\nbool {prefix}_stuck(const {prefix}_t *t, esp_pid instance)\n{{");
    put!(text, "    return t->status == (uint32_t)ESP_FAULT && t->fault == 0u && t->mark[instance] == 2u;\n}}");
    match plan.options.trace {
        TraceMode::Callback => {
            put!(text, "\nvoid {prefix}_trace({prefix}_t *t, esp_trace_function *function, void *user)\n{{");
            put!(text, "    t->trace = function;\n    t->trace_user = user;\n}}");
        }
        TraceMode::None => {}
    }
    if plan.sans_io() {
        layout_assertions(plan, text);
        wrappers(plan, text);
        open_function(plan, text);
        library_table(plan, text);
    }
}

/// The function that reports a fault.
fn fault_function(plan: &Plan<'_>, faults: &Faults, text: &mut String) {
    let prefix = &plan.prefix;
    put!(text, "\nesp_fault_report {prefix}_fault(const {prefix}_t *t)\n{{");
    put!(text, "    esp_fault_report report = {{0, 0, {{0, 0, 0, -1}}}};");
    put!(text, "    if (t->status != (uint32_t)ESP_FAULT) return report;\n    report.instance = t->instance;");
    put!(text, "    if (t->fault == 0u) {{\n        report.code = ESP_FAULT_DEADLOCK;");
    put!(text, "        report.place = {prefix}_place(t, t->instance);\n        return report;\n    }}");
    put!(text, "    report.code = faults[t->fault & (ESP_BIT(FAULT_CALL) - 1u)].code;");
    put!(text, "    report.place = faults[t->fault & (ESP_BIT(FAULT_CALL) - 1u)].place;");
    if faults.have_members() {
        let member = "fault_members[t->fault & (ESP_BIT(FAULT_CALL) - 1u)]";
        put!(text, "    if ({member} != 0u) report.instance = {member} - 1u;");
    }
    let call = "t->fault >> FAULT_CALL";
    if faults.calls() > 0 {
        let first = plan.channels.len() + 1;
        put!(text, "    if (({call}) >= {first}u) {{");
        put!(text, "        report.instance = fault_calls[({call}) - {first}u].member;");
        put!(text, "        report.place.channel = fault_calls[({call}) - {first}u].channel;\n    }} else");
    }
    put!(text, "    if (({call}) != 0u) report.place.channel = (int32_t)({call}) - 1;");
    put!(text, "    return report;\n}}");
}

/// Loaders pass arrays of `esp_source` and `esp_sink`: asserts that the typed members have the same size.
fn layout_assertions(plan: &Plan<'_>, text: &mut String) {
    let prefix = &plan.prefix;
    for (boundary, kind, direction) in
        [(Boundary::FromEnvironment, "source", "input"), (Boundary::ToEnvironment, "sink", "output")]
    {
        for index in plan.external(boundary) {
            let member = member(&plan.channels[index].plain);
            put!(
                text,
                "\nESP_LAYOUT({prefix}_{kind}_{index}, sizeof(((const {prefix}_{direction} *)0)->{member}) == \
                 sizeof(esp_{kind}));"
            );
        }
    }
}

/// The functions of the table, without the program's types.
fn wrappers(plan: &Plan<'_>, text: &mut String) {
    let prefix = &plan.prefix;
    put!(text, "\nstatic void program_init(void *state)\n{{\n    {prefix}_init(({prefix}_t *)state);\n}}");
    put!(
        text,
        "\nstatic esp_status program_step(void *state, const esp_source *in, esp_output_head *out, esp_time now)\n{{\n    \
         return {prefix}_step(({prefix}_t *)state, (const {prefix}_input *)(const void *)in, ({prefix}_output *)(void \
         *)out, now);\n}}"
    );
    put!(
        text,
        "\nstatic esp_fault_report program_fault(const void *state)\n{{\n    return {prefix}_fault((const {prefix}_t \
         *)state);\n}}"
    );
    put!(
        text,
        "\nstatic esp_location program_place(const void *state, esp_pid instance)\n{{\n    return {prefix}_place((const \
         {prefix}_t *)state, instance);\n}}"
    );
    put!(
        text,
        "\nstatic bool program_stuck(const void *state, esp_pid instance)\n{{\n    return {prefix}_stuck((const \
         {prefix}_t *)state, instance);\n}}"
    );
}

/// The table that a shared library exports.
fn library_table(plan: &Plan<'_>, text: &mut String) {
    let prefix = &plan.prefix;
    let trace = match plan.options.trace {
        TraceMode::Callback => {
            put!(
                text,
                "\nstatic void program_trace(void *state, esp_trace_function *function, void *user)\n{{\n    \
                 {prefix}_trace(({prefix}_t *)state, function, user);\n}}"
            );
            "program_trace"
        }
        TraceMode::None => "NULL",
    };
    put!(
        text,
        "\nESP_EXPORT const esp_library {prefix}_program = {{\n    ESP_ABI, {}, {}, {}, sizeof({prefix}_t), \
         program_init, program_step, program_fault,\n    program_place, program_stuck, program_open, {trace}\n}};",
        plan.instances,
        plan.external(Boundary::FromEnvironment).len(),
        plan.external(Boundary::ToEnvironment).len()
    );
}
