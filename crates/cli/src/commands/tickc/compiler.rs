//! The C compiler of `qj tickc`. Works in a temporary folder with the run-time header, and shows messages as those of
//! the translator.

use super::sources::Sources;
use crate::arguments::Tickc;
use crate::terminal::{CliError, Status, Terminal};
use quaject_esp_run::{HostCode, HostError};
use quaject_tickc::{RUNTIME_HEADER, RUNTIME_LIBRARY, compiler_messages};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub(super) struct Compiler<'a> {
    arguments: &'a Tickc,
    /// The command, with its own options.
    words: Vec<OsString>,
    folder: tempfile::TempDir,
}

impl<'a> Compiler<'a> {
    pub(super) fn new(arguments: &'a Tickc) -> Result<Compiler<'a>, CliError> {
        let folder = tempfile::Builder::new().prefix("qj-").tempdir().map_err(|error| {
            HostError::new(HostCode::System, format!("cannot make a temporary folder: {error}"))
                .help("make room, or set TMPDIR to a folder that can be written")
        })?;
        let named = arguments.cc.clone().or_else(|| std::env::var("CC").ok()).unwrap_or_default();
        let mut words: Vec<OsString> = named.split_whitespace().map(OsString::from).collect();
        if words.is_empty() {
            words.push("cc".into());
        }
        let compiler = Compiler { arguments, words, folder };
        compiler.write("include/quaject/tickc.h", RUNTIME_HEADER.as_bytes())?;
        Ok(compiler)
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, HostError> {
        let path = self.folder.path().join(name);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        let written = folder.and_then(|()| std::fs::write(&path, bytes));
        written.map_err(|error| HostError::file("write", path.display(), &error))?;
        Ok(path)
    }

    /// The compiler with the options of all steps.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.words[0]);
        // Messages are read below.
        command.env("LC_ALL", "C").args(&self.words[1..]).arg("-O2").args(self.arguments.debug.then_some("-g"));
        command.args(&self.arguments.cflags).arg("-isystem").arg(self.folder.path().join("include"));
        command
    }

    fn run(&self, mut command: Command) -> Result<Output, CliError> {
        let program = self.words[0].to_string_lossy();
        let output = command.stdin(Stdio::null()).output().map_err(|error| {
            HostError::new(HostCode::Tool, format!("cannot run the C compiler `{program}`: {error}"))
                .help("install one, as in `apt install gcc`, or name yours in `--cc` or the variable CC")
        })?;
        Ok(output)
    }

    /// The program after the preprocessor.
    pub(super) fn preprocess(&self, terminal: &Terminal, file: &Path) -> Result<String, CliError> {
        let mut command = self.command();
        // `$N` is an operator and a name. The header of the run-time library is included once, in the translation.
        command.args(["-E", "-x", "c", "-fno-dollars-in-identifiers", "-D__TICKC__=1", "-DQUAJECT_TICKC_H"]);
        command.args(self.arguments.include.iter().flat_map(|folder| ["-I".as_ref(), folder.as_os_str()]));
        command.args(self.arguments.define.iter().flat_map(|name| ["-D", name])).arg(file);
        let output = self.run(command)?;
        let text = String::from_utf8(output.stdout).map_err(|_| {
            HostError::new(HostCode::Content, format!("`{}` is not UTF-8 after the preprocessor", file.display()))
                .help("save the file and its headers as UTF-8; other bytes are written as escapes, as in \"\\xff\"")
        })?;
        self.show(terminal, &text, &output.stderr, output.status.success())?;
        Ok(text)
    }

    /// The object file of a translation.
    pub(super) fn compile(&self, terminal: &Terminal, text: &str) -> Result<PathBuf, CliError> {
        let source = self.write("translation.c", text.as_bytes())?;
        let object = self.folder.path().join("translation.o");
        let mut command = self.command();
        // The name of the temporary folder would make two objects of one program differ.
        command.arg(format!("-fdebug-prefix-map={}=.", self.folder.path().display()));
        command.arg("-c").arg(source).arg("-o").arg(&object);
        let output = self.run(command)?;
        self.show(terminal, text, &output.stderr, output.status.success())?;
        Ok(object)
    }

    /// The executable of a translation.
    pub(super) fn link(&self, terminal: &Terminal, text: &str) -> Result<PathBuf, CliError> {
        let object = self.compile(terminal, text)?;
        let library = self.write("libquaject-tickc.a", RUNTIME_LIBRARY)?;
        let executable = self.folder.path().join("executable");
        let mut command = self.command();
        command.arg("-o").arg(&executable).arg(object);
        for name in &self.arguments.link {
            let is_file = name.contains(['/', '.']);
            command.arg(if is_file { name.clone() } else { format!("-l{name}") });
        }
        command.arg(library).args(["-lm", "-lpthread"]);
        let output = self.run(command)?;
        self.show(terminal, text, &output.stderr, output.status.success())?;
        Ok(executable)
    }

    /// Prints the messages of a step about a text; an error if it failed.
    fn show(&self, terminal: &Terminal, text: &str, printed: &[u8], is_success: bool) -> Result<(), CliError> {
        let printed = String::from_utf8_lossy(printed);
        let mut sources = Sources::default();
        let diagnostics = sources.compiler_diagnostics(text, &compiler_messages(&printed));
        let errors = terminal.print_diagnostics(sources.map(), &diagnostics);
        if is_success {
            return Ok(());
        }
        if errors > 0 {
            return Err(CliError::reported(Status::Failed));
        }
        let cause = format!("the C compiler `{}` failed:\n{}", self.words[0].to_string_lossy(), printed.trim_end());
        Err(CliError::from(HostError::new(HostCode::ToolFailure, cause)))
    }
}
