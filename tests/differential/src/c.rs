//! Runs many samples as one file of generated C: the names of each program get a suffix, and a driver
//! gives each program its input and prints its choices and its output.

use crate::environment::CALLS;
use crate::externs;
use crate::generate::Sample;
use crate::machine::{ByteOrder, Compiler};
use crate::marshal::{decode, encode};
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::step::Step;
use quaject_esp_gen::Checks;
use quaject_esp_gen::RUNTIME_HEADER;
use quaject_esp_gen::c::{LineMarks, Options, Style, TraceMode, generate};
use quaject_esp_gen::layout::{Abi, ExternalChannel};
use quaject_esp_ir::ir::{ChannelId, Op, Operation, Program, Terminator};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

const DRIVER: &str = include_str!("driver.c");

/// The run of a C program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CRun {
    /// Its choices.
    pub trace: Vec<Step>,
    /// Its output, in order.
    pub messages: Vec<(ChannelId, Vec<Datum>)>,
    /// Whether it ended after the environment released all held channels.
    pub released: bool,
    /// How it ended, as the driver prints it: `done 0`, `fault 2 0 7 3 -1`.
    pub end: String,
}

/// Generates, compiles and runs the programs; one result each.
pub fn run(
    compiler: &Compiler,
    folder: &Path,
    programs: &[(&Sample, &Program)],
) -> Result<Vec<Result<CRun, String>>, String> {
    let order = compiler.machine.order;
    let (text, abis) = source(programs, order, compiler.machine.max_align);
    let (file, binary) = (folder.join("programs.c"), folder.join("programs"));
    std::fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let compiled = Command::new(&compiler.command)
        .args(&compiler.options)
        .arg("-o")
        .arg(&binary)
        .arg(&file)
        .output()
        .map_err(|error| format!("cannot run {}: {error}", compiler.command))?;
    if !compiled.status.success() {
        let text = String::from_utf8_lossy(&compiled.stderr);
        return Err(text.lines().take(30).collect::<Vec<_>>().join("\n"));
    }
    let output =
        compiler.machine.command(&binary).output().map_err(|error| format!("cannot run the programs: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut sections: Vec<Result<CRun, String>> =
        programs.iter().map(|_| Err(format!("it did not end ({})", output.status))).collect();
    for section in text.split("P ").skip(1) {
        let (number, lines) = section.split_once('\n').unwrap_or((section, ""));
        let Ok(number) = number.parse::<usize>() else { continue };
        if let (Some((_, program)), Some(abi)) = (programs.get(number), abis.get(number)) {
            sections[number] = parse(program, abi, order, lines).map_err(|error| {
                let errors = String::from_utf8_lossy(&output.stderr);
                format!("{error} ({}) {}", output.status, errors.lines().take(12).collect::<Vec<_>>().join("\n"))
            });
        }
    }
    Ok(sections)
}

fn parse(program: &Program, abi: &Abi, order: ByteOrder, lines: &str) -> Result<CRun, String> {
    let mut c_run = CRun { trace: Vec::new(), messages: Vec::new(), released: false, end: String::new() };
    for line in lines.lines() {
        if let Some(end) = line.strip_prefix("E ") {
            c_run.end += end;
        } else if line == "z" {
            c_run.released = true;
        } else if let Some(message) = line.strip_prefix("x ") {
            let (sink, hex) = message.split_once(' ').ok_or("the driver's line was cut off")?;
            let sink = &abi.sinks[sink.parse::<usize>().map_err(|_| "the driver's line was cut off")?];
            let bytes: Option<Vec<u8>> =
                (0..hex.len() / 2).map(|at| u8::from_str_radix(hex.get(2 * at..2 * at + 2)?, 16).ok()).collect();
            let bytes = bytes.ok_or("the driver's line was cut off")?;
            let payload = &program.channels[sink.channel.0 as usize].payload;
            let values = payload.iter().zip(&sink.offsets);
            let values: Option<Vec<Datum>> = values
                .map(|(ty, offset)| decode(&program.types, &abi.layouts, order, *ty, bytes.get(*offset as usize..)?))
                .collect();
            let values = values.ok_or_else(|| format!("the message {hex} is no value"))?;
            c_run.messages.push((sink.channel, values));
        } else if let Some(call) = line.strip_prefix("y ") {
            let numbers = call.split_once(' ').and_then(|(function, number)| {
                Some((function.parse::<u32>().ok()?, u64::from_str_radix(number, 16).ok()?))
            });
            let (function, number) = numbers.ok_or("the driver's line was cut off")?;
            c_run.messages.push((ChannelId(CALLS + function), vec![Datum::Int(i128::from(number))]));
        } else {
            c_run.trace.push(line.parse().map_err(|_| format!("`{line}` is no step"))?);
        }
    }
    if c_run.end.is_empty() { Err("it did not end".into()) } else { Ok(c_run) }
}

fn source(programs: &[(&Sample, &Program)], order: ByteOrder, max_align: u64) -> (String, Vec<Abi>) {
    let texts = without_comments(RUNTIME_HEADER) + &without_comments(DRIVER);
    let known: HashSet<&str> = identifiers(&texts).chain(C_WORDS).collect();
    let mut text = RUNTIME_HEADER.to_string();
    text += DRIVER;
    let mut main = String::from("\nint main(void)\n{\n    driver_start();\n");
    let mut abis = Vec::new();
    for (number, (sample, program)) in programs.iter().enumerate() {
        let options = Options {
            prefix: Some("p".into()),
            header_name: "program.h".into(),
            style: Style::SansIo,
            lines: LineMarks::None,
            checks: Checks::Off,
            trace: TraceMode::Callback,
        };
        let output = generate(program, &options);
        for part in [&output.header, &output.source] {
            let part: String =
                part.lines().filter(|line| !line.starts_with("#include")).fold(String::new(), |mut text, line| {
                    text += line;
                    text.push('\n');
                    text
                });
            rename(&part, number, &known, &mut text);
        }
        rename(&externs::define(program, &output.header), number, &known, &mut text);
        let abi = Abi::on_machine(program, "p", max_align);
        inputs(&mut text, &mut main, number, sample, program, (&abi, order));
        abis.push(abi);
    }
    (text + &main + "    driver_end();\n    return 0;\n}\n", abis)
}

/// The limit of messages per step: 3 for every other sample in which the time of a message is unobservable (one sink,
/// no clock, no extern functions), else 1.
fn limit(sample: &Sample, program: &Program, abi: &Abi) -> u64 {
    let mut blocks = program.processes.iter().flat_map(|process| &process.body.blocks);
    let observes_time = blocks.any(|block| {
        let waits_for_time = match &block.terminator {
            Terminator::Wait(wait) => {
                wait.branches.iter().any(|branch| matches!(branch.operation, Operation::After { .. }))
            }
            _no_wait => false,
        };
        waits_for_time || block.instructions.iter().any(|instruction| matches!(instruction.op, Op::Deadline { .. }))
    });
    if abi.sinks.len() > 1 || observes_time || !program.externs.is_empty() { 1 } else { 1 + sample.seed % 2 * 2 }
}

/// Input, sizes, and the call of the driver.
fn inputs(
    text: &mut String,
    main: &mut String,
    number: usize,
    sample: &Sample,
    program: &Program,
    (abi, order): (&Abi, ByteOrder),
) {
    let mut sources = String::new();
    let mut source_sizes = String::new();
    for (index, source) in abi.sources.iter().enumerate() {
        let channel = &program.channels[source.channel.0 as usize];
        let messages =
            sample.script.inputs.iter().find(|(name, _)| *name == channel.name.as_str()).map_or(&[][..], |(_, m)| m);
        let size = source.extent.size as usize;
        let mut bytes = vec![0u8; (size * messages.len()).max(1)];
        for (position, message) in messages.iter().enumerate() {
            for ((ty, offset), datum) in channel.payload.iter().zip(&source.offsets).zip(message) {
                encode(
                    &program.types,
                    &abi.layouts,
                    order,
                    *ty,
                    datum,
                    &mut bytes[position * size + *offset as usize..],
                );
            }
        }
        let list: Vec<String> = bytes.iter().map(u8::to_string).collect();
        writeln!(
            text,
            "static const union {{ uint8_t bytes[{}]; uint64_t aligned; }} driver_input_{number}_{index} = {{ {{ {} }} }};",
            bytes.len(),
            list.join(", ")
        )
        .expect("writing to a string does not fail");
        write!(sources, "{{ driver_input_{number}_{index}.bytes, {}, true }}, ", messages.len())
            .expect("writing to a string does not fail");
        write!(source_sizes, "{size}, ").expect("writing to a string does not fail");
    }
    let held = |channels: &[ExternalChannel]| -> String {
        let name = |channel: &ExternalChannel| program.channels[channel.channel.0 as usize].name.as_str();
        channels
            .iter()
            .map(|channel| if sample.script.held.iter().any(|n| n == name(channel)) { "1, " } else { "0, " })
            .collect()
    };
    let (held_sources, held_sinks) = (held(&abi.sources), held(&abi.sinks));
    let sink_sizes: String = abi.sinks.iter().map(|sink| format!("{}, ", sink.extent.size)).collect();
    write!(
        main,
        "    {{\n        esp_source sources[] = {{ {sources}{{ NULL, 0, true }} }};\n        \
         size_t source_sizes[] = {{ {source_sizes}0 }}, sink_sizes[] = {{ {sink_sizes}0 }};\n        \
         unsigned char held_sources[] = {{ {held_sources}0 }}, held_sinks[] = {{ {held_sinks}0 }};\n        \
         driver_run({number}, &{}_{number}, sources, source_sizes, sink_sizes, held_sources, held_sinks, {});\n    }}\n",
        abi.symbol,
        limit(sample, program, abi)
    )
    .expect("writing to a string does not fail");
}

/// Identifiers of C, its library and its preprocessor that generated code uses.
const C_WORDS: [&str; 77] = [
    "auto",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "do",
    "double",
    "else",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
    "bool",
    "true",
    "false",
    "NULL",
    "size_t",
    "uint8_t",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "int8_t",
    "int16_t",
    "int32_t",
    "int64_t",
    "uintptr_t",
    "UINT32_MAX",
    "INT64_MAX",
    "INT64_MIN",
    "INT32_MIN",
    "INT32_MAX",
    "UINT64_C",
    "INT64_C",
    "UINT32_C",
    "INT32_C",
    "offsetof",
    "ifdef",
    "ifndef",
    "define",
    "endif",
    "undef",
    "include",
    "defined",
    "elif",
    "error",
    "__cplusplus",
    "C",
    "UINT8_MAX",
    "UINT16_MAX",
    "UINT64_MAX",
    "__attribute__",
    "memset",
    "memcpy",
    "line",
    "pragma",
];

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| text + part.split_once("*/").map_or("", |(_, rest)| rest))
}

fn identifiers(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_'))
}

/// Appends C text in which every name of the program has the suffix `_number`.
fn rename(text: &str, number: usize, known: &HashSet<&str>, to: &mut String) {
    let suffix = format!("_{number}");
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        match bytes[at] {
            b'"' | b'\'' => {
                let quote = bytes[at];
                at += 1;
                while at < bytes.len() && bytes[at] != quote {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
                at += 1;
                to.push_str(&text[start..at.min(bytes.len())]);
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at += text[at..].find("*/").map_or(bytes.len() - at, |length| length + 2);
            }
            byte if byte.is_ascii_alphanumeric() || byte == b'_' => {
                while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || bytes[at] == b'_') {
                    at += 1;
                }
                let word = &text[start..at];
                to.push_str(word);
                if !byte.is_ascii_digit() && !known.contains(word) {
                    to.push_str(&suffix);
                }
            }
            _ => {
                at += 1;
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                to.push_str(&text[start..at]);
            }
        }
    }
}
