//! The code size of each process: compiles the generated C with debugging information, which maps every byte to a line.
//! Inlined code belongs to the code that contains it. The same C gives the stack of each entry.

use crate::compiled::HEADER_NAME;
use crate::compiler::{BuildDirectory, compiler_name};
use crate::error::{HostCode, HostError};
use crate::stack_usage::CallGraph;
use addr2line::{Loader, Location};
use quaject_esp_gen::c::{self, CodeBytes, LineMarks, Owner, Report, StackBytes, StackUse};
use quaject_esp_gen::{RUNTIME_HEADER, c::Options};
use quaject_esp_ir::ir::Program;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The flags with which firmware is compiled.
pub const SIZE_FLAGS: &[&str] = &["-std=gnu99", "-Os"];

/// Fills in the code bytes and the stack of a program's report, or the reason why they are not known.
pub fn measure_code(program: &Program, options: &Options, report: &mut Report) {
    match measure(program, options, SIZE_FLAGS) {
        Ok(sizes) => sizes.fill(report),
        Err(error) => report.code = CodeBytes::Unknown(error.cause),
    }
    let names: Vec<String> = report.entries.iter().map(|entry| entry.name.clone()).collect();
    match measure_stack(program, options, SIZE_FLAGS, &names) {
        Ok(stacks) => {
            report.stack = StackBytes::Measured;
            report.entries.iter_mut().zip(stacks).for_each(|(entry, stack)| entry.stack = stack);
        }
        Err(reason) => report.stack = StackBytes::Unknown(reason),
    }
}

/// The stack of functions of a program's C, compiled with these flags; none for one that is not there. The error is a
/// reason in words.
pub fn measure_stack(
    program: &Program,
    options: &Options,
    flags: &[&str],
    names: &[String],
) -> Result<Vec<Option<StackUse>>, String> {
    let written = WrittenProgram::new(program, options).map_err(|error| error.cause)?;
    let graph = written.directory.call_graph(&written.source, flags).map_err(|_| {
        let compiler = compiler_name(&[]);
        format!("{} does not write a call graph; gcc does from version 10 on", compiler.trim_end_matches(", ``"))
    })?;
    let graph = CallGraph::parse(&graph);
    names.iter().map(|name| graph.stack_of(name)).collect()
}

/// A program's C in a temporary folder.
struct WrittenProgram {
    directory: BuildDirectory,
    source: PathBuf,
    owners: Vec<Owner>,
}

impl WrittenProgram {
    fn new(program: &Program, options: &Options) -> Result<WrittenProgram, HostError> {
        // Line tables refer to the generated C, whose lines have owners; the code is the same.
        let options = Options { lines: LineMarks::None, header_name: HEADER_NAME.to_string(), ..options.clone() };
        let generated = c::generate(program, &options);
        let bytes = generated.source.len();
        if bytes > MAX_BYTES {
            return Err(HostError::new(
                HostCode::Size,
                format!("{bytes} bytes of C would take a compiler too long; at most {MAX_BYTES} are measured"),
            ));
        }
        let directory = BuildDirectory::open()?;
        directory.write("quaject/esp.h", RUNTIME_HEADER)?;
        directory.write(HEADER_NAME, &generated.header)?;
        let source = directory.write(SOURCE_NAME, &generated.source)?;
        Ok(WrittenProgram { directory, source, owners: generated.owners })
    }
}

/// Bytes of C that a compiler is given to measure code: compile time is superlinear, because all processes are one
/// function: minutes for thousands of processes.
const MAX_BYTES: usize = 1_000_000;

/// Bytes of code, by owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeSizes {
    /// The bytes of each owner.
    pub bytes: BTreeMap<Owner, u64>,
    /// Bytes of the section that holds the code.
    pub text_bytes: u64,
    /// The compiler with its flags.
    pub compiler: String,
}

impl CodeSizes {
    /// The bytes of one owner.
    pub fn of(&self, owner: Owner) -> u64 {
        self.bytes.get(&owner).copied().unwrap_or(0)
    }

    fn fill(&self, report: &mut Report) {
        for (index, process) in report.processes.iter_mut().enumerate() {
            process.code_bytes = Some(self.of(Owner::Process(index)));
        }
        for (index, function) in report.functions.iter_mut().enumerate() {
            function.code_bytes = Some(self.of(Owner::Function(index)));
        }
        let (compiler, scheduler_bytes) = (self.compiler.clone(), self.of(Owner::Scheduler));
        report.code = CodeBytes::Measured { compiler, scheduler_bytes };
    }
}

/// Compiles a program's C with these flags and measures it.
pub fn measure(program: &Program, options: &Options, flags: &[&str]) -> Result<CodeSizes, HostError> {
    let written = WrittenProgram::new(program, options)?;
    let image = written.directory.path("image");
    written.directory.link_alone(&written.source, flags, &image)?;
    let (bytes, text_bytes) = attribute(&image, &written.owners)?;
    Ok(CodeSizes { bytes, text_bytes, compiler: compiler_name(flags) })
}

const SOURCE_NAME: &str = "program.c";

/// The owner of each byte of the code.
fn attribute(image: &Path, owners: &[Owner]) -> Result<(BTreeMap<Owner, u64>, u64), HostError> {
    let unreadable = |error: &dyn std::fmt::Display| {
        HostError::new(
            HostCode::ToolFailure,
            format!("the debugging information of the compiled program cannot be read: {error}"),
        )
    };
    let loader = Loader::new(image).map_err(|error| unreadable(&error))?;
    let Some((start, size)) = text_section(&loader) else {
        return Err(unreadable(&"it has no code"));
    };
    let mut bytes = BTreeMap::new();
    let mut last = Owner::Scheduler;
    for address in start..start + size {
        let mut frames = loader.find_frames(address).map_err(|error| unreadable(&error))?;
        // From the innermost inlined frame outwards: code inlined into a process or function belongs to it, other code
        // to the scheduler.
        let mut owner = None;
        while let Some(frame) = frames.next().map_err(|error| unreadable(&error))? {
            match frame.location.and_then(|location| owner_of(&location, owners)) {
                Some(Owner::Scheduler) => owner = owner.or(Some(Owner::Scheduler)),
                Some(other) => owner = Some(other),
                None => {}
            }
        }
        // Bytes without a line, which the compiler has added, belong to the owner of the bytes before them.
        last = owner.unwrap_or(last);
        *bytes.entry(last).or_insert(0) += 1;
    }
    Ok((bytes, size))
}

/// The owner of a line of the generated file.
fn owner_of(location: &Location<'_>, owners: &[Owner]) -> Option<Owner> {
    let line = location.line?.checked_sub(1)?;
    if location.file?.ends_with(SOURCE_NAME) { owners.get(line as usize).copied() } else { None }
}

/// The address and size of the code.
fn text_section(loader: &Loader) -> Option<(u64, u64)> {
    let range = loader.get_section_range(b".text")?;
    Some((range.begin, range.end - range.begin))
}
