//! `qj asm`: shows the machine code of portable instructions, or executes them step by step.

use crate::arguments::Asm;
use crate::terminal::{CliError, Status, Terminal, print};
use quaject_diagnostic::span::{SourceFile, SourceMap};
use quaject_esp_run::files::read_text;
use quaject_esp_run::{HostCode, HostError};
use quaject_vcode::text::step::{ParameterValue, Stepper};
use quaject_vcode::text::{Function, Listing, MACHINES, Part, TargetMachine, read};
use quaject_vcode::{Error, Type};
use std::fmt::Write as _;

/// The column of the machine instructions.
const COLUMN: usize = 34;

pub(crate) fn asm(terminal: &Terminal, arguments: Asm) -> Result<Status, CliError> {
    let text = read_text(&arguments.file)?;
    let (functions, diagnostics) = read(&text);
    let mut sources = SourceMap::default();
    sources.add(SourceFile::new(arguments.file.display().to_string(), text));
    if terminal.print_diagnostics(&sources, &diagnostics) > 0 {
        return Ok(Status::Failed);
    }
    let mut status = Status::Done;
    if let Some(values) = &arguments.step {
        return step(terminal, &functions, values);
    }
    let mut output = String::new();
    for target in targets(&arguments.machine)? {
        for function in &functions {
            match (target.assemble)(function) {
                Ok(listing) => show(&mut output, target, function, &listing, arguments.hex),
                Err(error) => {
                    terminal.print_error(&HostError::new(
                        HostCode::Assembly,
                        format!("`{}` for {}: {error}", function.name, target.name),
                    ));
                    status = Status::Failed;
                }
            }
        }
    }
    print(output.as_bytes())?;
    Ok(status)
}

fn targets(names: &[String]) -> Result<Vec<&'static TargetMachine>, CliError> {
    if names.is_empty() {
        return Ok(MACHINES.iter().filter(|target| target.name == std::env::consts::ARCH).collect());
    }
    let mut targets = Vec::new();
    for name in names {
        match MACHINES.iter().find(|target| target.name == name) {
            Some(target) => targets.push(target),
            None if name == "all" => targets.extend(&MACHINES),
            None => {
                let known: Vec<&str> = MACHINES.iter().map(|target| target.name).collect();
                let error = HostError::usage(HostCode::UnknownName, format!("no machine named `{name}`"));
                return Err(CliError::from(error.help(format!("known machines: {}, and `all`", known.join(", ")))));
            }
        }
    }
    Ok(targets)
}

/// Portable instructions on the left, machine instructions on the right.
fn show(output: &mut String, target: &'static TargetMachine, function: &Function, listing: &Listing, hex: bool) {
    if !output.is_empty() {
        output.push('\n');
    }
    let _ = writeln!(output, "{} for {}: {} bytes", function.name, target.name, listing.bytes.len());
    let mut before = None;
    let mut shown = 0;
    for row in listing.rows(target.table) {
        let portable = match row.part {
            part if before == Some(part) => "",
            Part::Prologue => "(prologue)",
            Part::Epilogue => "(epilogue)",
            Part::Constants => "(constants)",
            Part::Statement(number) => {
                // Statements without machine code are shown too.
                for skipped in &function.statements[shown..number] {
                    line(output, &skipped.text, "");
                }
                shown = number + 1;
                &function.statements[number].text
            }
        };
        before = Some(row.part);
        let mut machine = format!("{:4x}  ", row.at);
        if hex {
            let bytes: Vec<String> = row.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let _ = write!(machine, "{:<30}", bytes.join(" "));
        }
        machine.push_str(&row.text);
        line(output, portable, &machine);
    }
}

fn line(output: &mut String, portable: &str, machine: &str) {
    let text = format!("  {portable:<width$}{machine}", width = COLUMN - 2);
    output.push_str(text.trim_end());
    output.push('\n');
}

/// The limit on steps: a function may not terminate.
const MAX_STEPS: usize = 10_000;

fn step(terminal: &Terminal, functions: &[Function], values: &[String]) -> Result<Status, CliError> {
    let Some(function) = functions.first() else { return Ok(Status::Done) };
    if values.len() != function.parameters.len() {
        let error = HostError::usage(
            HostCode::Argument,
            format!("`{}` has {} parameters", function.name, function.parameters.len()),
        );
        return Err(CliError::from(error.help("give an argument for each: `--step 5 2.5 [1,2,3]`")));
    }
    let mut arguments = Vec::new();
    for (value, ty) in values.iter().zip(&function.parameters) {
        match argument(*ty, value) {
            Some(argument) => arguments.push(argument),
            None => {
                return Err(CliError::from(HostError::usage(
                    HostCode::Argument,
                    format!("`{value}` is not an argument of this type"),
                )));
            }
        }
    }
    let mut stepper = Stepper::new(function, &arguments).map_err(|error| match error {
        Error::NoCodeMemory => HostError::unsupported("`--step` executes machine code, which needs Linux")
            .help("leave it out to see the code"),
        error => HostError::new(HostCode::Assembly, error.to_string()),
    })?;
    for (variable, ty) in function.variables.iter().zip(&function.parameters) {
        let value = stepper.value(&variable.name).unwrap_or_default();
        let letters = format!("{ty:?}").to_lowercase();
        print(format!("{} = {value}  ({letters})\n", variable.name).as_bytes())?;
    }
    for _ in 0..MAX_STEPS {
        match stepper.step() {
            Ok(None) => return Ok(Status::Done),
            Ok(Some(step)) => {
                let mut effects: Vec<String> =
                    step.written.iter().map(|(name, value)| format!("{name} = {value}")).collect();
                if step.jumped {
                    effects.push("jumps".to_owned());
                }
                effects.extend(step.returned.map(|value| format!("returns {value}")));
                let mut output = String::new();
                line(&mut output, &function.statements[step.statement].text, &effects.join(", "));
                print(output.as_bytes())?;
            }
            Err(stuck) => {
                let statement = function.statements.get(stuck.statement);
                let place = statement.map_or(String::new(), |statement| format!("`{}`: ", statement.text));
                terminal.print_error(&HostError::new(HostCode::Assembly, format!("{place}{}", stuck.reason)));
                return Ok(Status::Fault);
            }
        }
    }
    terminal.print_error(&HostError::new(HostCode::Assembly, format!("stopped after {MAX_STEPS} steps")));
    Ok(Status::Fault)
}

/// Parses an argument: a number, or numbers in brackets as the target of a pointer.
fn argument(ty: Type, text: &str) -> Option<ParameterValue> {
    match ty {
        Type::F => text.parse::<f32>().ok().map(|value| ParameterValue::Bits(u64::from(value.to_bits()))),
        Type::D => text.parse::<f64>().ok().map(|value| ParameterValue::Bits(value.to_bits())),
        Type::P => {
            let (letters, list) = text.strip_suffix(']')?.split_once('[')?;
            let mut bytes = Vec::new();
            for number in list.split(',').map(str::trim).filter(|number| !number.is_empty()) {
                match letters {
                    "" | "l" => bytes.extend(number.parse::<i64>().ok()?.to_ne_bytes()),
                    "i" => bytes.extend(number.parse::<i32>().ok()?.to_ne_bytes()),
                    "uc" => bytes.push(number.parse::<u8>().ok()?),
                    "d" => bytes.extend(number.parse::<f64>().ok()?.to_ne_bytes()),
                    _ => return None,
                }
            }
            Some(ParameterValue::Bytes(bytes))
        }
        Type::Ul => text.parse::<u64>().ok().map(ParameterValue::Bits),
        Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::U | Type::L => {
            let value = text.parse::<i64>().ok()?;
            let is_in_range = match ty {
                Type::U => u32::try_from(value).is_ok(),
                Type::L => true,
                _ => i32::try_from(value).is_ok(),
            };
            is_in_range.then_some(ParameterValue::Bits(value as u64))
        }
    }
}
