//! The steps of a build script: compile ESP to C, C to a library, and write the Rust module around it.

use crate::directives::{self, diagnostic_line, rerun_lines};
use crate::error::Error;
use crate::files::{SourceFiles, update_file};
use crate::wrapper::{self, ExternHome};
use quaject_esp::{CodeGrowth, CompileError, Compiled, Emit, Limits, ManualPaths, Mode, Optimiser, Options, Outputs};
use quaject_esp_gen::{Checks, RUNTIME_HEADER, c};
use quaject_esp_ir::text;
use quaject_esp_syntax::diagnostics::Severity;
use std::env;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// The options with which a program is compiled.
#[derive(Clone, Debug)]
pub struct Build {
    import_folders: Vec<PathBuf>,
    fast_paths: Vec<PathBuf>,
    c_files: Vec<PathBuf>,
    mode: Option<Mode>,
    checked: bool,
    name: Option<String>,
    out_dir: Option<PathBuf>,
    target: Option<String>,
    host: Option<String>,
    opt_level: Option<String>,
}

impl Default for Build {
    fn default() -> Build {
        Build::new()
    }
}

impl Build {
    /// As `qj build --emit c` compiles without options.
    pub fn new() -> Build {
        Build {
            import_folders: Vec::new(),
            fast_paths: Vec::new(),
            c_files: Vec::new(),
            mode: None,
            checked: false,
            name: None,
            out_dir: None,
            target: None,
            host: None,
            opt_level: None,
        }
    }

    /// Adds a folder in which imports are searched that are not found relative to the importing file.
    pub fn import_folder(&mut self, folder: impl Into<PathBuf>) -> &mut Build {
        self.import_folders.push(folder.into());
        self
    }

    /// Adds a file of fast paths; the mode is then [`Mode::FastPath`] unless it is set.
    pub fn fast_paths(&mut self, file: impl Into<PathBuf>) -> &mut Build {
        self.fast_paths.push(file.into());
        self
    }

    /// Adds a C file that defines extern functions, all of which then come from C. It finds the program's header,
    /// `NAME.h`, and is as trusted as any C: what it does can be undefined behaviour.
    pub fn c_file(&mut self, file: impl Into<PathBuf>) -> &mut Build {
        self.c_files.push(file.into());
        self
    }

    /// How processes become code; by default [`Mode::Auto`].
    pub fn mode(&mut self, mode: Mode) -> &mut Build {
        self.mode = Some(mode);
        self
    }

    /// Whether signed overflow, wide shifts and stores that lose bits are faults; by default they are not.
    pub fn checked(&mut self, checked: bool) -> &mut Build {
        self.checked = checked;
        self
    }

    /// The name of the module's file; by default that of the program. `NAME.rs` is in `OUT_DIR`.
    pub fn name(&mut self, name: impl Into<String>) -> &mut Build {
        self.name = Some(name.into());
        self
    }

    /// The folder of the output, by default the variable `OUT_DIR`.
    pub fn out_dir(&mut self, folder: impl Into<PathBuf>) -> &mut Build {
        self.out_dir = Some(folder.into());
        self
    }

    /// The target triple, by default the variable `TARGET`.
    pub fn target(&mut self, target: impl Into<String>) -> &mut Build {
        self.target = Some(target.into());
        self
    }

    /// The host triple, by default the variable `HOST`.
    pub fn host(&mut self, host: impl Into<String>) -> &mut Build {
        self.host = Some(host.into());
        self
    }

    /// The level of optimisation of the C, by default the variable `OPT_LEVEL`.
    pub fn opt_level(&mut self, level: impl Into<String>) -> &mut Build {
        self.opt_level = Some(level.into());
        self
    }

    /// Compiles a program and prints for Cargo what it depends on, its diagnostics, and the library to link. Include
    /// the module where it shall be:
    ///
    /// ```text
    /// mod slip {
    ///     include!(concat!(env!("OUT_DIR"), "/slip.rs"));
    /// }
    /// ```
    ///
    /// # Errors
    /// If the program has errors, a file cannot be read or written, or the C compiler fails.
    pub fn compile(&self, program: impl AsRef<Path>) -> Result<(), Error> {
        let program = program.as_ref();
        let out_dir = match &self.out_dir {
            Some(folder) => folder.clone(),
            None => env::var_os("OUT_DIR").map(PathBuf::from).ok_or(Error::Variable("OUT_DIR"))?,
        };
        let name = self.name.clone().unwrap_or_else(|| stem(program));
        let outputs = self.compile_esp(program)?;
        let prefix = prefix_of(&name, &outputs, self.checked);
        let generated = c::generate(&outputs.ir, &self.c_options(&name, &prefix));
        let folder = out_dir.join(format!("{name}-c"));
        update_file(&folder.join("quaject/esp.h"), RUNTIME_HEADER)?;
        update_file(&folder.join(format!("{name}.h")), &generated.header)?;
        let source = folder.join(format!("{name}.c"));
        update_file(&source, &generated.source)?;
        self.compile_c(&outputs, &folder, &source, &prefix, &out_dir)?;
        let module = wrapper::write(&outputs.ir, &generated, &prefix, self.extern_home());
        update_file(&out_dir.join(format!("{name}.rs")), &module)
    }

    /// Where extern functions are defined.
    fn extern_home(&self) -> ExternHome {
        if self.c_files.is_empty() { ExternHome::Rust } else { ExternHome::C }
    }

    fn compile_esp(&self, program: &Path) -> Result<Outputs, Error> {
        let opened = SourceFiles::open(program, &self.fast_paths, &self.import_folders);
        let (source, mut files) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                directives::print(&rerun_lines(&[program.to_path_buf()]));
                return Err(error);
            }
        };
        let Compiled { sources, diagnostics, outputs } = quaject_esp::compile(source, &mut files, &self.options());
        directives::print(&rerun_lines(&files.dependencies));
        let lines: Vec<String> = diagnostics.iter().map(|diagnostic| diagnostic_line(&sources, diagnostic)).collect();
        directives::print(&lines);
        let path = program.to_path_buf();
        outputs.map_err(|error| match error {
            CompileError::Diagnostics => {
                let errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity() == Severity::Error).count();
                Error::Program { path, errors }
            }
            CompileError::TooLarge { .. } => Error::TooLarge { path, cause: error.to_string() },
        })
    }

    /// The options of the ESP compiler, with the defaults of `qj build`.
    fn options(&self) -> Options {
        let default = if self.fast_paths.is_empty() { Mode::Auto } else { Mode::FastPath };
        let mode = self.mode.unwrap_or(default);
        let growth = match mode {
            Mode::Auto => CodeGrowth::Conservative,
            Mode::Process | Mode::Direct | Mode::FastPath | Mode::Automata => Limits::default().growth,
        };
        let manual = match self.extern_home() {
            ExternHome::Rust => ManualPaths::Omit,
            ExternHome::C => ManualPaths::Call,
        };
        let (checked, optimiser) = (self.checked, Optimiser::On);
        let limits = Limits { growth, ..Limits::default() };
        Options { mode, checked, manual, limits, optimiser, ..Options::new(Emit::Ir) }
    }

    fn c_options(&self, name: &str, prefix: &str) -> c::Options {
        c::Options {
            prefix: Some(prefix.to_string()),
            header_name: format!("{name}.h"),
            style: c::Style::SansIo,
            checks: if self.checked { Checks::On } else { Checks::Off },
            ..c::Options::default()
        }
    }

    fn compile_c(
        &self,
        outputs: &Outputs,
        folder: &Path,
        source: &Path,
        prefix: &str,
        out_dir: &Path,
    ) -> Result<(), Error> {
        directives::print(&rerun_lines(&self.c_files));
        let mut compiler = cc::Build::new();
        compiler.file(source).files(&self.c_files).include(folder).out_dir(out_dir).std("gnu99");
        // Warnings of generated C are no concern of its users.
        compiler.warnings(!self.c_files.is_empty());
        if let Some(target) = &self.target {
            compiler.target(target);
        }
        if let Some(host) = &self.host {
            compiler.host(host);
        }
        if let Some(level) = &self.opt_level {
            compiler.opt_level_str(level);
        }
        if self.extern_home() == ExternHome::Rust {
            // Their names have no prefix in C, where a function of the C library may have the same.
            for function in &outputs.ir.externs {
                compiler.define(&function.name, wrapper::extern_symbol(prefix, &function.name).as_str());
            }
        }
        compiler.try_compile(prefix).map_err(Error::Compiler)
    }
}

/// The name of a file without its ending.
fn stem(path: &Path) -> String {
    path.file_stem().map_or_else(|| "program".to_string(), |stem| stem.to_string_lossy().into_owned())
}

/// The prefix of all symbols. Packages may have programs of one name, and one version of a package another program of
/// that name than the next; both can be linked into one executable.
fn prefix_of(name: &str, outputs: &Outputs, checked: bool) -> String {
    let mut hasher = DefaultHasher::new();
    for variable in ["CARGO_PKG_NAME", "CARGO_PKG_VERSION"] {
        env::var(variable).ok().hash(&mut hasher);
    }
    (name, checked, env!("CARGO_PKG_VERSION"), text::print(&outputs.ir)).hash(&mut hasher);
    format!("qj_{}_{:016x}", directives::identifier(name), hasher.finish())
}
