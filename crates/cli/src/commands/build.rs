//! `qj build`

use super::build_request::{BuildRequest, build_requests};
use super::product::{BuildProduct, OutputName, reject_overwriting, require_target, write_dependencies};
use super::promela::emit_promela;
use super::run::{checks, chosen, manual, options, paths};
use super::{CompiledProgram, compile};
use crate::arguments::{Build, EmitForm, ModeChoice, StyleChoice, UnrollChoice};
use crate::terminal::{CliError, Status, Terminal, print, update_output};
use quaject_diagnostic::{Message, Severity};
use quaject_esp::{Dump, Dumped, Emit, Emitted, Optimiser, Options, Outputs, Unrolling};
use quaject_esp_gen::{RUNTIME_HEADER, c};
use quaject_esp_run::files::update_file;
use quaject_esp_run::{HostCode, HostError};
use std::fs;
use std::path::{Path, PathBuf};

/// The default of `--ring`.
const RING_MESSAGES: u32 = 16;

pub(crate) fn build(terminal: &Terminal, arguments: Build) -> Result<Status, CliError> {
    let requests = build_requests(terminal, arguments)?;
    requests.iter().try_for_each(|request| require_target(&request.arguments.dependencies, output_name(request)))?;
    let mut status = Status::Done;
    for request in &requests {
        match build_program(terminal, request) {
            Ok(()) => {}
            // The errors of a program do not hide those of the next.
            Err(CliError { status: Status::Failed, error: None }) => status = Status::Failed,
            Err(error) => return Err(error),
        }
    }
    Ok(status)
}

fn build_program(terminal: &Terminal, request: &BuildRequest) -> Result<(), CliError> {
    let build = Compilation { terminal, request };
    let product = match request.emit {
        EmitForm::Ir => build.emit_ir()?,
        EmitForm::Promela => emit_promela(terminal, request)?,
        EmitForm::C => build.emit_c()?,
        EmitForm::Arduino => build.emit_arduino()?,
        EmitForm::Exe => build.emit_executable()?,
    };
    let dependencies = &request.arguments.dependencies;
    reject_overwriting(&product.files, &[dependencies.depfile.as_deref(), dependencies.stamp.as_deref()])?;
    let prerequisites: Vec<PathBuf> = product.files.iter().chain(&request.project_file).cloned().collect();
    write_dependencies(dependencies, product.output.as_deref(), &prerequisites)
}

fn output_name(request: &BuildRequest) -> OutputName {
    let is_named = match request.emit {
        EmitForm::C | EmitForm::Arduino | EmitForm::Exe => true,
        EmitForm::Ir | EmitForm::Promela => request.output.as_ref().is_some_and(|path| path != "-"),
    };
    if is_named { OutputName::Named } else { OutputName::Unnamed }
}

/// One compilation, with the choices of the command line.
struct Compilation<'a> {
    terminal: &'a Terminal,
    request: &'a BuildRequest,
}

impl Compilation<'_> {
    fn options(&self, emit: Emit) -> Result<Options, CliError> {
        let arguments = &self.request.arguments;
        let unrolling = match (arguments.unroll, self.request.mode) {
            (Some(UnrollChoice::Off), _) => Unrolling::Off,
            (Some(UnrollChoice::Auto), _) => Unrolling::On,
            // Unrolling costs more code than `auto` spends by default, and tables.
            (None, ModeChoice::Auto) => Unrolling::Off,
            (None, ModeChoice::Process | ModeChoice::Direct | ModeChoice::Fastpath | ModeChoice::Automata) => {
                Unrolling::On
            }
        };
        let dump = Dump { passes: arguments.dump.clone() };
        let options = options(emit, self.request.mode, &arguments.coding, self.request.checked)?;
        Ok(Options { optimiser: Optimiser::On, unrolling, dump, ..options })
    }

    fn compile(&self, options: &Options) -> Result<CompiledProgram, CliError> {
        compile(self.terminal, self.request.files(), options)
    }

    fn emit_ir(&self) -> Result<BuildProduct, CliError> {
        let CompiledProgram { outputs, files, .. } = self.compile(&self.options(Emit::IrText)?)?;
        let Emitted::IrText(text) = &outputs.emitted else { unreachable!("the options ask for text") };
        let dumped: String = outputs.dumped.iter().map(dumped).collect();
        let text = if self.request.arguments.dump.is_empty() { text } else { &dumped };
        if let Some(path) = &self.request.output {
            self.make_folder_of(path)?;
        }
        update_output(self.request.output.as_deref(), text)?;
        if self.request.arguments.report {
            let note = Message::new(Severity::Note, "`--report` describes generated C, and none is generated");
            self.terminal.print(&note.help("add `--emit c`"));
        }
        Ok(BuildProduct { output: self.request.output.clone().filter(|path| path != "-"), files })
    }

    fn emit_c(&self) -> Result<BuildProduct, CliError> {
        let c_options = self.c_options(c::Style::SansIo);
        let folder = self.output_folder()?;
        let CompiledProgram { outputs, files, .. } = self.compile(&self.options(Emit::C(c_options.clone()))?)?;
        let generated = generated_c(&outputs);
        let output = write_c(&folder, &self.request.stem, generated)?;
        self.report(&outputs, &c_options, generated.report.clone())?;
        Ok(BuildProduct { output: Some(output), files })
    }

    fn emit_arduino(&self) -> Result<BuildProduct, CliError> {
        let stem = &self.request.stem;
        let c_options = self.c_options(c::Style::Poll);
        let folder = self.output_folder()?;
        let CompiledProgram { outputs, files, .. } = self.compile(&self.options(Emit::C(c_options.clone()))?)?;
        let generated = generated_c(&outputs);
        let output = write_c(&folder.join("src"), stem, generated)?;
        let sketch = folder.join("examples").join(stem).join(format!("{stem}.ino"));
        // What its author may have changed stays.
        write_new_file(&folder.join("library.properties"), &library_properties(stem))?;
        write_new_file(&sketch, &c::sketch(&outputs.ir, &c_options))?;
        self.report(&outputs, &c_options, generated.report.clone())?;
        Ok(BuildProduct { output: Some(output), files })
    }

    /// The options of generated C, with this style if none is named.
    fn c_options(&self, style: c::Style) -> c::Options {
        let (arguments, stem) = (&self.request.arguments, &self.request.stem);
        c::Options {
            prefix: arguments.prefix.clone(),
            header_name: format!("{stem}.h"),
            style: match arguments.style {
                Some(StyleChoice::Poll) => c::Style::Poll,
                Some(StyleChoice::Post) => c::Style::Post { ring: arguments.ring.unwrap_or(RING_MESSAGES) },
                Some(StyleChoice::SansIo) => c::Style::SansIo,
                None => style,
            },
            checks: checks(self.request.checked),
            ..c::Options::default()
        }
    }

    /// The folder for several files.
    fn output_folder(&self) -> Result<PathBuf, CliError> {
        let folder = self.request.output.clone().unwrap_or_else(|| PathBuf::from("."));
        refuse_file(&folder, &self.request.stem)?;
        Ok(folder)
    }

    fn emit_executable(&self) -> Result<BuildProduct, CliError> {
        let Build { externs, cflags, dependencies, .. } = &self.request.arguments;
        let CompiledProgram { outputs, mut files, .. } =
            self.compile(&Options { manual: manual(externs), ..self.options(Emit::Ir)? })?;
        let path = self.request.output.clone().unwrap_or_else(|| PathBuf::from(&self.request.stem));
        self.make_folder_of(&path)?;
        let checks = checks(self.request.checked);
        let report = quaject_esp_run::build_executable(&outputs.ir, checks, externs, cflags, &path)?;
        self.report(&outputs, &quaject_esp_run::c_options(checks), report)?;
        files.extend_from_slice(externs);
        if dependencies.depfile.is_some() {
            files.extend(quaject_esp_run::included_headers(externs, cflags));
        }
        Ok(BuildProduct { output: Some(path), files })
    }

    /// Makes the folder of an output, if that folder is what was named.
    fn make_folder_of(&self, output: &Path) -> Result<(), HostError> {
        let is_named = self.request.arguments.output == self.request.output;
        match output.parent().filter(|folder| !is_named && !folder.as_os_str().is_empty()) {
            Some(folder) => {
                fs::create_dir_all(folder).map_err(|error| HostError::file("make", folder.display(), &error))
            }
            None => Ok(()),
        }
    }

    /// Prints the report on the generated C, if the command line asks for it.
    fn report(&self, outputs: &Outputs, options: &c::Options, mut report: c::Report) -> Result<(), CliError> {
        if !self.request.arguments.report {
            return Ok(());
        }
        let mode = chosen(self.request.mode, self.request.mode_reason, outputs).into_iter().chain(paths(outputs));
        let mode: String = mode.map(|item| item + "\n").collect();
        print(if mode.is_empty() { mode } else { mode + "\n" }.as_bytes())?;
        quaject_esp_run::measure_code(&outputs.ir, options, &mut report);
        print(report.to_string().as_bytes())
    }
}

/// The text of a program after a pass.
fn dumped(dumped: &Dumped) -> String {
    format!("== {}, round {}\n{}\n", dumped.pass, dumped.round + 1, dumped.text)
}

fn generated_c(outputs: &Outputs) -> &c::Output {
    let Emitted::C(generated) = &outputs.emitted else { unreachable!("the options ask for C") };
    generated
}

/// The description of a library, to be completed by its author.
fn library_properties(name: &str) -> String {
    format!(
        "name={name}\nversion=0.1.0\nauthor=unknown\nmaintainer=unknown\nsentence=The ESP program {name}.\n\
         paragraph=Generated by qj; the sketch in examples runs it.\ncategory=Other\nurl=https://example.org\n\
         architectures=*\nincludes={name}.h\n"
    )
}

/// Writes a file unless there is one.
fn write_new_file(path: &Path, text: &str) -> Result<(), HostError> {
    if path.exists() {
        return Ok(());
    }
    let folder = path.parent().expect("a file is in a folder");
    fs::create_dir_all(folder).map_err(|error| HostError::file("make", folder.display(), &error))?;
    update_file(path, text.as_bytes())
}

/// Rejects the name of a C file for the output folder, unless there is such a folder.
fn refuse_file(folder: &Path, stem: &str) -> Result<(), CliError> {
    let looks_like_file = folder.extension().is_some_and(|extension| extension == "c" || extension == "h");
    if !looks_like_file || folder.is_dir() {
        return Ok(());
    }
    let parent = match folder.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.display().to_string(),
        Some(_) | None => ".".to_string(),
    };
    let cause = format!("`{}` names a file, and `--emit c` writes several into a folder", folder.display());
    let help = format!("`-o {parent}` writes `{stem}.c`, `{stem}.h` and `quaject/esp.h` there");
    Err(CliError::from(HostError::usage(HostCode::Argument, cause).help(help)))
}

/// Writes the run-time header, the program's header and the C file; the path of the latter.
fn write_c(folder: &Path, stem: &str, generated: &c::Output) -> Result<PathBuf, HostError> {
    let headers = folder.join("quaject");
    fs::create_dir_all(&headers).map_err(|error| HostError::file("make", headers.display(), &error))?;
    update_file(&headers.join("esp.h"), RUNTIME_HEADER.as_bytes())?;
    update_file(&folder.join(format!("{stem}.h")), generated.header.as_bytes())?;
    let source = folder.join(format!("{stem}.c"));
    update_file(&source, generated.source.as_bytes())?;
    Ok(source)
}
