//! Executables: the C of a program, the main function of `resources/hosted.c`, and tables of the program's channels and
//! types. The executable behaves as [`run`](crate::run()) does, without this crate.

use crate::compiled::{GUARDED, HEADER_NAME, guard};
use crate::compiler::{BuildDirectory, Product};
use crate::drivers::type_name;
use crate::error::HostError;
use crate::externs::check_files;
use crate::fault_tables;
use crate::files::NewFile;
use crate::run::c_options;
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::layout::{self, ExternalChannel, Layouts, View};
use quaject_esp_gen::{RUNTIME_HEADER, c};
use quaject_esp_ir::ir::{Program, Purity, Type, TypeId};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const HOSTED_HEADER: &str = include_str!("../resources/hosted.h");
const HOSTED_MAIN: &str = include_str!("../resources/hosted.c");

/// Builds an executable of a program at `path`, with more flags for the C compiler; returns its memory and bounds.
pub fn build_executable(
    program: &Program,
    checks: Checks,
    externs: &[PathBuf],
    flags: &[String],
    path: &Path,
) -> Result<c::Report, HostError> {
    let generated = c::generate(program, &c_options(checks));
    let directory = BuildDirectory::open()?;
    directory.write("quaject/esp.h", RUNTIME_HEADER)?;
    directory.write(HEADER_NAME, &generated.header)?;
    directory.write("hosted.h", HOSTED_HEADER)?;
    let name = path.file_name().map_or_else(|| "program".into(), |name| name.to_string_lossy());
    let mut inputs = vec![
        directory.write("program.c", &generated.source)?,
        directory.write("tables.c", &tables(program, &generated, &name))?,
        directory.write("hosted.c", HOSTED_MAIN)?,
        guard(&directory)?,
    ];
    check_files(externs)?;
    inputs.extend(externs.iter().cloned());
    let built = directory.path("executable");
    directory.build(Product::Executable, &inputs, GUARDED, flags, &built)?;
    install(&built, path)?;
    Ok(generated.report)
}

/// Copies the executable to its place, unless it is there already.
fn install(built: &Path, path: &Path) -> Result<(), HostError> {
    let mut file = NewFile::create_program(path)?;
    let copied = std::fs::File::open(built).and_then(|mut built| std::io::copy(&mut built, &mut file));
    copied.map_err(|error| HostError::file("write", path.display(), &error))?;
    file.finish_if_changed()
}

/// `tables.c`.
fn tables(program: &Program, generated: &c::Output, name: &str) -> String {
    let mut text = format!("#include \"{HEADER_NAME}\"\n#include \"hosted.h\"\n\n");
    let types = program.types.types().len() as u32;
    let layouts = Layouts::of(&program.types);
    let mut descriptions = String::new();
    for ty in (0..types).map(TypeId) {
        describe(program, &layouts, ty, &mut text, &mut descriptions);
    }
    let _ = writeln!(text, "const qj_type qj_types[] = {{\n{descriptions}}};\n");
    let abi = &generated.abi;
    let external = abi.sources.iter().map(|source| (source, true)).chain(abi.sinks.iter().map(|sink| (sink, false)));
    let mut channels = String::new();
    for (channel, from_environment) in external {
        declare(program, channel, from_environment, &mut text, &mut channels);
    }
    fault_tables::write(program, &quoted, &mut text);
    let has_effects = program.externs.iter().any(|function| match function.purity {
        Purity::Impure => true,
        Purity::Pure => false,
    });
    let prefix = abi.symbol.strip_suffix("_program").unwrap_or("esp");
    // An array without elements is not C: an unused one ends it.
    let _ = write!(
        text,
        "const qj_channel qj_channels[] = {{\n{channels}    {{\"\", \"\", false, 1, 0, 0}}\n}};\n\
         const uint32_t qj_sources = {}, qj_sinks = {}, qj_instances = {};\n\
         const bool qj_has_effects = {has_effects};\n\
         const char *const qj_program_name = {};\n\
         const char *const *const qj_file_names = {prefix}_files;\n\
         const char *const *const qj_instance_names = {prefix}_instances;\n\
         const char *const *const qj_channel_names = {prefix}_channels;\n\
         const esp_library *const qj_program = &{prefix}_program;\n",
        abi.sources.len(),
        abi.sinks.len(),
        program.instance_count(),
        quoted(name),
    );
    text
}

/// One line of `qj_types`, and before it the parts it refers to.
fn describe(program: &Program, layouts: &Layouts, ty: TypeId, parts_text: &mut String, text: &mut String) {
    let types = &program.types;
    // The environment sees the content of a boxed type.
    let seen = match types.get(ty) {
        Type::Boxed(pool) => types.pool(*pool).content,
        Type::Error
        | Type::Int(_)
        | Type::Bool
        | Type::Bytes { .. }
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_) => ty,
    };
    let size = layouts.extent(seen, View::Environment).size;
    let mut parts: Vec<(String, u64, i64)> = Vec::new();
    let (kind, count, element, width) = match types.get(seen) {
        Type::Int(int) => {
            let kind = if int.is_signed() { "QJ_SIGNED" } else { "QJ_UNSIGNED" };
            (kind, 0, -1, u64::from(int.bits() / 8))
        }
        Type::Error | Type::Bool | Type::Boxed(_) => ("QJ_BOOL", 0, -1, 1),
        Type::Pid(processes) => {
            for process in processes {
                let data = &program.processes[process.0 as usize];
                let first = u64::from(program.first_instance(*process));
                parts.push((data.name.to_string(), first, i64::from(data.replicas)));
            }
            ("QJ_PID", parts.len() as u64, -1, 4)
        }
        Type::Bytes { bound } => ("QJ_BYTES", u64::from(*bound), -1, layout::length_bytes(*bound)),
        Type::Array { length, element } => ("QJ_ARRAY", u64::from(*length), i64::from(element.0), 0),
        Type::Record(id) => {
            let offsets = layouts.field_offsets(seen, View::Environment);
            for ((name, part), offset) in types.aggregate(*id).parts.iter().zip(offsets) {
                parts.push((name.to_string(), *offset, part.map_or(-1, |part| i64::from(part.0))));
            }
            ("QJ_RECORD", parts.len() as u64, -1, 0)
        }
        Type::Union(id) => {
            let offset = layouts.payload_offset(seen, View::Environment).unwrap_or(0);
            for (name, part) in &types.aggregate(*id).parts {
                parts.push((name.to_string(), offset, part.map_or(-1, |part| i64::from(part.0))));
            }
            ("QJ_UNION", parts.len() as u64, -1, layout::tag_bytes(parts.len()))
        }
    };
    let array = write_parts(&format!("type_{}_parts", ty.0), &parts, parts_text);
    let name = quoted(&type_name(program, ty));
    let _ = writeln!(text, "    {{{kind}, {name}, {size}, {count}, {element}, {width}, {array}}},");
}

/// One line of `qj_channels`.
fn declare(
    program: &Program,
    external: &ExternalChannel,
    from_environment: bool,
    parts_text: &mut String,
    text: &mut String,
) {
    let channel = &program.channels[external.channel.0 as usize];
    let values: Vec<(String, u64, i64)> = channel
        .payload
        .iter()
        .zip(&external.offsets)
        .map(|(ty, offset)| (String::new(), *offset, i64::from(ty.0)))
        .collect();
    let array = write_parts(&format!("channel_{}_values", external.channel.0), &values, parts_text);
    let driver = channel.driver.as_deref().unwrap_or("text:-");
    let _ = writeln!(
        text,
        "    {{{}, {}, {from_environment}, {}, {}, {array}}},",
        quoted(&channel.name),
        quoted(driver),
        external.extent.size,
        values.len(),
    );
}

/// An array of parts; returns its name, or a null pointer for none.
fn write_parts(name: &str, parts: &[(String, u64, i64)], text: &mut String) -> String {
    if parts.is_empty() {
        return "0".to_string();
    }
    let _ = write!(text, "static const qj_part {name}[] = {{");
    for (part, offset, ty) in parts {
        let _ = write!(text, " {{{}, {offset}, {ty}}},", quoted(part));
    }
    let _ = writeln!(text, " }};");
    name.to_string()
}

/// A C string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend(['\\', char::from(byte)]),
            b' '..=b'~' if byte != b'?' => quoted.push(char::from(byte)),
            // Three octal digits end an escape, whatever follows; `?` might begin a trigraph.
            _ => {
                let _ = write!(quoted, "\\{byte:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}
