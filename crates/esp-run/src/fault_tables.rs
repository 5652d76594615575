//! The tables in C from which an executable prints a fault (`print_fault` of `resources/hosted.c`): the words of
//! [`crate::fault`], the waits of all processes with their partners, the names at locations.

use crate::fault::{cause, help, members, names, operations, possible_partners, waits_for_environment};
use quaject_esp_ir::ir::{ChannelId, Direction, Fault, Location, ProcessId, Program};
use quaject_esp_ir::text::fault_name;
use std::fmt::Write;
use std::ops::Range;

/// By the numbers of `esp_fault_code`, from 1.
const FAULTS: [Fault; 10] = [
    Fault::Assert,
    Fault::Bounds,
    Fault::Div,
    Fault::Overflow,
    Fault::Pool,
    Fault::Range,
    Fault::Memory,
    Fault::Alt,
    Fault::Deadlock,
    Fault::Extern,
];

/// The tables; `quoted` makes C strings.
pub(crate) fn write(program: &Program, quoted: &dyn Fn(&str) -> String, text: &mut String) {
    let _ = writeln!(text, "const qj_fault qj_faults[] = {{");
    for fault in FAULTS {
        let (name, cause) = (quoted(fault_name(fault)), quoted(&cause(fault, None)));
        let help = help(fault).map_or("0".to_string(), quoted);
        let _ = writeln!(text, "    {{{name}, {cause}, {help}}},");
    }
    let _ = writeln!(text, "}};\n\nconst qj_cause qj_causes[] = {{");
    for (fault, place, name) in names(program) {
        let code = FAULTS.iter().position(|other| *other == fault).map_or(0, |index| index + 1);
        let cause = quoted(&cause(fault, Some(&name)));
        let _ = writeln!(text, "    {{{code}, {}, {}, {}, {cause}}},", place.file, place.line, place.column);
    }
    // Arrays without elements are not C: an unused one ends each.
    let _ = writeln!(text, "    {{0, 0, 0, 0, 0}}\n}};\n\nconst qj_wait qj_waits[] = {{");
    let (mut partners, mut count) = (String::new(), 0);
    let mut row = |at: String, operation: Option<(ChannelId, Direction)>, ranges: Vec<Range<u32>>| {
        let (channel, verb, environment) = match operation {
            None => ("0".to_string(), "0".to_string(), "0".to_string()),
            Some((channel, direction)) => {
                let verb = match direction {
                    Direction::In => "write",
                    Direction::Out => "read",
                };
                let environment = waits_for_environment(program, channel, direction);
                let name = quoted(&program.channels[channel.0 as usize].name);
                (name, quoted(verb), environment.map_or("0".to_string(), |words| quoted(&words)))
            }
        };
        let _ = writeln!(text, "    {{{at}, {channel}, {verb}, {environment}, {count}, {}}},", ranges.len());
        for range in ranges {
            let _ = write!(partners, "{{{}, {}}}, ", range.start, range.len());
            count += 1;
        }
    };
    let place = |place: Location| format!("{}, {}, {}", place.file, place.line, place.column);
    for (index, process) in program.processes.iter().enumerate() {
        let id = ProcessId(index as u32);
        let instances = format!("{}, {}", program.first_instance(id), process.replicas);
        for (number, at, channel, direction) in operations(process) {
            let ranges = possible_partners(program, channel, direction);
            row(format!("{instances}, {number}, QJ_NO_INSTANCE, {}", place(at)), Some((channel, direction)), ranges);
        }
        for (number, wait) in members(process) {
            let ranges = wait.partners.iter().map(|partner| *partner..*partner + 1).collect();
            let at = format!("{instances}, {number}, {}, {}", wait.instance, place(wait.location));
            row(at, wait.operation, ranges);
        }
    }
    let _ = writeln!(text, "    {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}}\n}};\n");
    let _ = writeln!(text, "const qj_instances_of qj_partners[] = {{{partners}{{0, 0}}}};\n");
}
