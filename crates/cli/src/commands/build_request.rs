//! What `qj build` is asked for: the programs, each with the options of the command line and, where that leaves them
//! out, those of the project. Compiles nothing.

use super::run::FAST_PATHS;
use super::{ProgramFiles, reject_aliased_files, run::DEFAULT_MODE};
use crate::arguments::{Build, EmitForm, ModeChoice, StyleChoice};
use crate::project::{BuildTable, Project};
use crate::terminal::{CliError, Terminal};
use quaject_esp_run::{HostCode, HostError};
use std::path::{Path, PathBuf};

/// A program to build.
pub(super) struct BuildRequest {
    pub(super) file: PathBuf,
    pub(super) emit: EmitForm,
    pub(super) mode: ModeChoice,
    /// Of the mode, if neither the command line nor the project names it.
    pub(super) mode_reason: Option<&'static str>,
    /// The name of the output without its ending.
    pub(super) stem: String,
    /// The output file, or the folder for C.
    pub(super) output: Option<PathBuf>,
    /// Whether overflow is a fault.
    pub(super) checked: bool,
    pub(super) import_folders: Vec<PathBuf>,
    /// The project file, on which the output depends.
    pub(super) project_file: Option<PathBuf>,
    /// The options of the command line, with those of the project.
    pub(super) arguments: Build,
}

impl BuildRequest {
    pub(super) fn files(&self) -> ProgramFiles<'_> {
        let fast_paths = &self.arguments.coding.fast_paths;
        ProgramFiles { root: &self.file, fast_paths, import_folders: &self.import_folders }
    }
}

/// The programs to build.
pub(super) fn build_requests(terminal: &Terminal, arguments: Build) -> Result<Vec<BuildRequest>, CliError> {
    let project = Project::find(terminal, &arguments.project, arguments.file.as_slice())?;
    let programs = project.programs(arguments.file.as_slice())?;
    let Some(emit) = arguments.emit.or(project.build.emit) else {
        let error = HostError::usage(HostCode::CommandLine, "`--emit FORM` is missing");
        return Err(CliError::from(
            error.help("the forms are `c`, `arduino`, `exe`, `ir` and `promela`; see `qj build --help`"),
        ));
    };
    let (mode, mode_reason) = mode(&arguments, emit, &project.build);
    refuse_options_without_effect(&arguments, emit, mode, &project.build)?;
    refuse_one_file_of_several(&arguments, &programs)?;
    let import_folders = project.import_folders(&arguments.imports);
    let arguments = with_project(arguments, emit, &project);
    let request = |file: &PathBuf| {
        let stem = stem(file);
        let output = output(&arguments, emit, &project, programs.len(), &stem);
        BuildRequest {
            file: file.clone(),
            emit,
            mode,
            mode_reason,
            stem,
            output,
            checked: arguments.checked.unwrap_or(project.build.checked),
            import_folders: import_folders.clone(),
            project_file: project.file.clone(),
            arguments: arguments.clone(),
        }
    };
    let requests: Vec<BuildRequest> = programs.iter().map(request).collect();
    requests.iter().try_for_each(|request| reject_programs_as_outputs(request, &programs))?;
    Ok(requests)
}

/// The command line's options, and the project's where it leaves them out.
fn with_project(mut arguments: Build, emit: EmitForm, project: &Project) -> Build {
    match emit {
        EmitForm::C | EmitForm::Arduino => arguments.style = arguments.style.or(project.build.style),
        EmitForm::Exe => {
            if arguments.externs.is_empty() {
                arguments.externs.clone_from(&project.externs);
            }
            if arguments.cflags.is_empty() {
                arguments.cflags.clone_from(&project.build.cflags);
            }
        }
        EmitForm::Ir | EmitForm::Promela => {}
    }
    arguments
}

/// The name of a program's outputs.
fn stem(file: &Path) -> String {
    let stem = file.file_stem().filter(|stem| *stem != "-");
    stem.map_or_else(|| "program".to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// The output of a program. A project's, and one for several programs, is a folder.
fn output(arguments: &Build, emit: EmitForm, project: &Project, programs: usize, stem: &str) -> Option<PathBuf> {
    let folder = match &arguments.output {
        Some(output) if programs == 1 => return Some(output.clone()),
        Some(output) => output.clone(),
        None => match (&project.build.output, project.folder()) {
            (Some(output), _) => output.clone(),
            (None, Some(folder)) => folder.to_path_buf(),
            (None, None) => return None,
        },
    };
    Some(match emit {
        EmitForm::C if folder.as_os_str().is_empty() => PathBuf::from("."),
        EmitForm::C => folder,
        // A library has a folder of its own.
        EmitForm::Arduino if programs == 1 => folder,
        EmitForm::Arduino => folder.join(stem),
        EmitForm::Exe => folder.join(stem),
        EmitForm::Ir => folder.join(format!("{stem}.ir")),
        EmitForm::Promela => folder.join(format!("{stem}.pml")),
    })
}

/// The mode, with the reason if nothing names it. IR and models show the processes as written.
fn mode(arguments: &Build, emit: EmitForm, table: &BuildTable) -> (ModeChoice, Option<&'static str>) {
    match (arguments.coding.mode.or(table.mode), emit) {
        (Some(mode), _) => (mode, None),
        (None, EmitForm::C | EmitForm::Arduino | EmitForm::Exe) if !arguments.coding.fast_paths.is_empty() => {
            (ModeChoice::Fastpath, Some(FAST_PATHS))
        }
        (None, EmitForm::C | EmitForm::Arduino | EmitForm::Exe) => (ModeChoice::Auto, Some(DEFAULT_MODE)),
        (None, EmitForm::Ir | EmitForm::Promela) => (ModeChoice::Process, None),
    }
}

/// Rejects options that the output format or the mode would ignore.
fn refuse_options_without_effect(
    arguments: &Build,
    emit: EmitForm,
    mode: ModeChoice,
    table: &BuildTable,
) -> Result<(), CliError> {
    let is_c = emit == EmitForm::C || emit == EmitForm::Arduino;
    let options = [
        ("--style", arguments.style.is_some(), is_c, "c"),
        ("--ring", arguments.ring.is_some(), is_c, "c"),
        ("--prefix", arguments.prefix.is_some(), is_c, "c"),
        ("--extern", !arguments.externs.is_empty(), emit == EmitForm::Exe, "exe"),
        ("--cflag", !arguments.cflags.is_empty(), emit == EmitForm::Exe, "exe"),
        ("--dump", !arguments.dump.is_empty(), emit == EmitForm::Ir, "ir"),
        ("--model", arguments.model.is_some(), emit == EmitForm::Promela, "promela"),
    ];
    match options.iter().find(|(_, is_given, has_meaning, _)| *is_given && !has_meaning) {
        Some((option, _, _, form)) => {
            let error = HostError::usage(HostCode::Conflict, format!("`{option}` has no meaning here"));
            Err(CliError::from(error.help(format!("it is for `--emit {form}`"))))
        }
        None if emit == EmitForm::Arduino && arguments.style.or(table.style) == Some(StyleChoice::SansIo) => {
            let error = HostError::usage(HostCode::Conflict, "a library for Arduino has no style `sans-io`");
            Err(CliError::from(error.help("leave out `--style`, or give `--style post` for interrupts")))
        }
        None if arguments.unroll.is_some() && !fuses(mode) => {
            let error = HostError::usage(HostCode::Conflict, "`--unroll` has no meaning here");
            Err(CliError::from(error.help("it is for `--mode automata` and `--mode auto`")))
        }
        None if arguments.ring.is_some() && arguments.style.or(table.style) != Some(StyleChoice::Post) => {
            let error = HostError::usage(HostCode::Conflict, "`--ring` has no meaning here");
            Err(CliError::from(error.help("it is for `--style post`, whose interrupts post messages to rings")))
        }
        None => Ok(()),
    }
}

/// Whether a mode fuses processes.
fn fuses(mode: ModeChoice) -> bool {
    match mode {
        ModeChoice::Automata | ModeChoice::Auto => true,
        ModeChoice::Process | ModeChoice::Direct | ModeChoice::Fastpath => false,
    }
}

/// Rejects options that name one file, and programs of one name, if there are several programs.
fn refuse_one_file_of_several(arguments: &Build, programs: &[PathBuf]) -> Result<(), CliError> {
    let wanted = &arguments.dependencies;
    let of_one = [("--depfile", wanted.depfile.is_some()), ("--stamp", wanted.stamp.is_some())];
    if let (Some((option, _)), true) = (of_one.iter().find(|(_, is_given)| *is_given), programs.len() > 1) {
        let cause = format!("`{option}` is of one program, and the project has several");
        let error = HostError::usage(HostCode::Choice, cause);
        return Err(CliError::from(error.help("name one of them: `qj build --project DIR FILE`")));
    }
    for (index, program) in programs.iter().enumerate() {
        if let Some(other) = programs[..index].iter().find(|other| stem(other) == stem(program)) {
            let (one, other) = (other.display(), program.display());
            let cause = format!("the outputs of `{one}` and `{other}` would have the same names");
            let error = HostError::usage(HostCode::Overwrite, cause);
            return Err(CliError::from(error.help("rename one of the programs, or build them one by one with `-o`")));
        }
    }
    Ok(())
}

/// Rejects outputs that are a program.
fn reject_programs_as_outputs(request: &BuildRequest, programs: &[PathBuf]) -> Result<(), CliError> {
    let wanted = &request.arguments.dependencies;
    for output in [&request.output, &wanted.depfile, &wanted.stamp] {
        programs.iter().try_for_each(|program| reject_aliased_files(program, output.as_deref()))?;
    }
    Ok(())
}
