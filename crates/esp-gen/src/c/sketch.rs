//! The sketch of a program for Arduino: a main loop that steps it, and the functions that it needs from C, so that the
//! sketch compiles before its author has filled them in. The first channel of bytes in each direction is the serial
//! line.

use super::header::extern_signature;
use super::interface;
use super::plan::Plan;
use super::{Options, Style};
use quaject_esp_ir::ir::*;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// Writes the sketch for a program that is generated with these options, in a style with functions.
pub fn sketch(program: &Program, options: &Options) -> String {
    let plan = Plan::new(program, options);
    let (prefix, header) = (&plan.prefix, &options.header_name);
    let mut text = String::new();
    put!(text, "// Runs the ESP program of {header}. Written once: yours to change.\n#include <{header}>\n");
    put!(text, "static {prefix}_t program;\n");
    put!(text, "// Nanoseconds since the start; micros() begins again after 71 minutes.");
    put!(text, "static esp_time now() {{\n  static uint32_t last;\n  static esp_time total;");
    put!(text, "  const uint32_t current = micros();\n  total += (esp_time)(uint32_t)(current - last) * 1000;");
    put!(text, "  last = current;\n  return total;\n}}\n");
    let serial = SerialLine::of(&plan);
    for index in plan.external(Boundary::FromEnvironment) {
        define_source(&plan, index, &serial, &mut text);
    }
    for index in plan.external(Boundary::ToEnvironment) {
        define_sink(&plan, index, &serial, &mut text);
    }
    for function in &program.externs {
        define_extern(&plan, function, &mut text);
    }
    put!(text, "void setup() {{\n  Serial.begin(115200);\n  {prefix}_init(&program);\n}}\n");
    put!(text, "void loop() {{\n  static const {prefix}_input in = {{0}};\n  static {prefix}_output out;");
    if let (Style::Post { .. }, Some(index)) = (options.style, serial.source) {
        let channel = &plan.channels[index];
        put!(text, "  // An interrupt handler may post as well, if no other code posts to the channel.");
        put!(text, "  if (Serial.available() > 0) {{");
        put!(text, "    const {}_message message = {{(uint8_t)Serial.read()}};", channel.name);
        put!(text, "    {prefix}_post_{}(&message);\n  }}", channel.plain);
    }
    put!(text, "  if ({prefix}_step(&program, &in, &out, now()) == ESP_FAULT) {{");
    put!(text, "    const esp_fault_report fault = {prefix}_fault(&program);");
    put!(text, "    Serial.print(\"fault \");\n    Serial.print(fault.code);\n    Serial.print(\", line \");");
    put!(text, "    Serial.println(fault.place.line);\n    while (true) {{}}\n  }}\n}}");
    text
}

/// The channels that the serial line carries.
struct SerialLine {
    /// A channel of single bytes.
    source: Option<usize>,
    /// A channel of single bytes, or of `bytes`.
    sink: Option<usize>,
}

impl SerialLine {
    fn of(plan: &Plan<'_>) -> SerialLine {
        let types = &plan.program.types;
        let payload = |index: &usize| match plan.program.channels[*index].payload[..] {
            [ty] if interface::of_channel(plan, *index).is_empty() => Some(types.get(ty)),
            _ => None,
        };
        let is_byte = |index: &usize| matches!(payload(index), Some(Type::Int(IntType::U8)));
        let is_bytes = |index: &usize| is_byte(index) || matches!(payload(index), Some(Type::Bytes { .. }));
        SerialLine {
            source: plan.external(Boundary::FromEnvironment).into_iter().find(is_byte),
            sink: plan.external(Boundary::ToEnvironment).into_iter().find(is_bytes),
        }
    }
}

/// The functions from which a program in the style `poll` takes messages.
fn define_source(plan: &Plan<'_>, index: usize, serial: &SerialLine, text: &mut String) {
    let (channel, name) = (&plan.program.channels[index], &plan.channels[index].name);
    if plan.options.style != Style::Poll || !interface::of_channel(plan, index).is_empty() {
        return;
    }
    put!(text, "// Channel {}: whether a message is available, and taking it.", channel.name);
    if serial.source == Some(index) {
        let member = &plan.channels[index].members[0];
        put!(text, "bool {name}_ready(void) {{ return Serial.available() > 0; }}");
        put!(text, "void {name}_take({name}_message *message) {{ message->{member} = (uint8_t)Serial.read(); }}\n");
    } else {
        put!(text, "bool {name}_ready(void) {{ return false; }}");
        put!(text, "void {name}_take({name}_message *message) {{ memset(message, 0, sizeof *message); }}\n");
    }
}

/// The functions to which a program gives messages.
fn define_sink(plan: &Plan<'_>, index: usize, serial: &SerialLine, text: &mut String) {
    let (channel, data) = (&plan.program.channels[index], &plan.channels[index]);
    let name = &data.name;
    put!(text, "// Channel {}: whether a message is accepted, and accepting it.", channel.name);
    let interfaces = interface::of_channel(plan, index);
    for interface in &interfaces {
        text.push_str(&interface::stubs(plan, *interface));
    }
    if !interfaces.is_empty() {
        text.push('\n');
        return;
    }
    let write = match plan.program.channels[index].payload[..] {
        [ty] if serial.sink == Some(index) => {
            let (member, types) = (&data.members[0], &plan.program.types);
            match types.get(ty) {
                Type::Bytes { .. } => format!("Serial.write(message->{member}.data, message->{member}.length);"),
                Type::Error
                | Type::Int(_)
                | Type::Bool
                | Type::Pid(_)
                | Type::Array { .. }
                | Type::Record(_)
                | Type::Union(_)
                | Type::Boxed(_) => format!("Serial.write(message->{member});"),
            }
        }
        _ => "(void)message;".to_string(),
    };
    put!(text, "bool {name}_ready(void) {{ return true; }}");
    put!(text, "void {name}_put(const {name}_message *message) {{ {write} }}\n");
}

/// An extern function that does nothing and returns 0.
fn define_extern(plan: &Plan<'_>, function: &Extern, text: &mut String) {
    let signature = extern_signature(plan, function);
    let body = match function.result {
        None => "",
        Some(ty) if plan.program.types.is_scalar(ty) => " return 0; ",
        Some(_) => " memset(result, 0, sizeof *result); ",
    };
    put!(text, "// Extern function {}.\n{signature} {{{body}}}\n", function.name);
}
