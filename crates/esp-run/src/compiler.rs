//! The C compiler: `cc`, or the variable CC. Works in a temporary folder.

use crate::dependency_file::prerequisites;
use crate::error::{HostCode, HostError, reason};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Flags for all C that is compiled here: optimised, with line tables, position-independent.
const FLAGS: &[&str] = &["-std=gnu99", "-O2", "-g1", "-fPIC"];

/// A temporary folder for sources and products.
pub(crate) struct BuildDirectory {
    folder: tempfile::TempDir,
}

/// The kind of link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Product {
    /// A shared library to be loaded.
    Library,
    /// A program of its own.
    Executable,
}

impl BuildDirectory {
    pub(crate) fn open() -> Result<BuildDirectory, HostError> {
        let folder = tempfile::Builder::new().prefix("qj-").tempdir().map_err(|error| {
            HostError::new(HostCode::System, format!("cannot make a temporary folder: {}", reason(&error)))
                .help("make room, or set TMPDIR to a folder that can be written")
        })?;
        Ok(BuildDirectory { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder, and creates the folders of its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, HostError> {
        let path = self.path(name);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| HostError::file("write", path.display(), &error))?;
        Ok(path)
    }

    /// Compiles C sources and links them with objects and libraries. Headers are looked for in the folder.
    pub(crate) fn build(
        &self,
        product: Product,
        inputs: &[PathBuf],
        defines: &[&str],
        flags: &[String],
        output: &Path,
    ) -> Result<(), HostError> {
        let mut words = compiler();
        let program = words.remove(0);
        let mut command = Command::new(&program);
        command.args(words).args(FLAGS).args(flags).arg("-I").arg(self.folder.path());
        command.args(defines.iter().map(|define| format!("-D{define}")));
        match product {
            Product::Library => command.arg("-shared"),
            // The name of the temporary folder would make two builds of one program differ.
            Product::Executable => command.arg(format!("-fdebug-prefix-map={}=.", self.folder.path().display())),
        };
        command.arg("-o").arg(output);
        for input in inputs {
            // A library is searched for again when the product is loaded, so that its absolute path is recorded. By
            // default linkers omit a library of which only weak symbols are used.
            let input = std::path::absolute(input).unwrap_or_else(|_| input.clone());
            if is_library(&input) {
                command.arg("-Wl,--no-as-needed");
                command.args(input.parent().map(|folder| format!("-Wl,-rpath,{}", folder.display())));
            }
            command.arg(input);
        }
        // The second is for the guard (`resources/guard.c`), with C libraries whose threads are in a separate library.
        command.args(["-lm", "-lpthread"]);
        run(command)
    }
}

impl BuildDirectory {
    /// Compiles one C file with debugging information and assigns addresses; undefined symbols are allowed.
    pub(crate) fn link_alone(&self, source: &Path, flags: &[&str], output: &Path) -> Result<(), HostError> {
        let mut words = compiler();
        let mut command = Command::new(words.remove(0));
        command.args(words).args(flags).args(["-g", "-fno-pic", "-no-pie", "-static", "-nostdlib"]);
        command.args(["-Wl,--unresolved-symbols=ignore-all", "-Wl,--entry=0", "-I"]).arg(self.folder.path());
        command.arg("-o").arg(output).arg(source);
        run(command)
    }
}

impl BuildDirectory {
    /// Compiles one C file and returns the call graph with the stack of each function, as gcc writes it.
    pub(crate) fn call_graph(&self, source: &Path, flags: &[&str]) -> Result<String, HostError> {
        let mut words = compiler();
        let mut command = Command::new(words.remove(0));
        let object = self.path("stack.o");
        command.args(words).args(flags).args(["-c", "-fcallgraph-info=su", "-I"]).arg(self.folder.path());
        command.arg("-o").arg(&object).arg(source);
        run(command)?;
        let path = object.with_extension("ci");
        std::fs::read_to_string(&path).map_err(|error| HostError::file("read", path.display(), &error))
    }
}

/// The headers that C sources include, except those of the system and those that are generated. Without a compiler that
/// lists them (`-MM`) there are none.
pub fn included_headers(sources: &[PathBuf], flags: &[String]) -> Vec<PathBuf> {
    let is_c = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "c");
    let rule = |source: &PathBuf| {
        let mut words = compiler();
        let mut command = Command::new(words.remove(0));
        command.args(words).args(FLAGS).args(flags).args(["-MM", "-MG"]).arg(source);
        let output = command.stdin(Stdio::null()).output().ok().filter(|output| output.status.success())?;
        Some(prerequisites(&output.stdout))
    };
    // A missing header is listed by its name: it is a generated one.
    sources.iter().filter(is_c).filter_map(rule).flatten().filter(|path| path.is_file()).collect()
}

/// Whether a file is a shared library, by its name: `libm.so`, `libm.so.6`.
fn is_library(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().split('.').skip(1).any(|part| part == "so"))
}

/// The first line of the compiler's version, and the flags.
pub(crate) fn compiler_name(flags: &[&str]) -> String {
    let mut words = compiler();
    let name = words[0].to_string_lossy().into_owned();
    let asked = Command::new(words.remove(0)).args(&words).arg("--version").stdin(Stdio::null()).output();
    let said = asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let name = said.lines().next().filter(|line| !line.is_empty()).map_or(name, str::to_string);
    let own = words.iter().map(|word| word.to_string_lossy());
    let flags: Vec<_> = own.chain(flags.iter().map(|flag| (*flag).into())).collect();
    format!("{name}, `{}`", flags.join(" "))
}

/// Runs the compiler.
fn run(mut command: Command) -> Result<(), HostError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let result = command.stdin(Stdio::null()).output().map_err(|error| {
        HostError::new(HostCode::Tool, format!("cannot run the C compiler `{program}`: {}", reason(&error)))
            .help("install one, as in `apt install gcc`, or name yours in the variable CC")
    })?;
    if result.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&result.stderr);
    let said = said.trim_end();
    Err(HostError::new(HostCode::ToolFailure, format!("the C compiler `{program}` failed:\n{said}")))
}

/// The words of CC: a compiler may be given with flags.
pub(crate) fn compiler() -> Vec<OsString> {
    let words: Vec<OsString> = match std::env::var("CC") {
        Ok(line) => line.split_whitespace().map(OsString::from).collect(),
        Err(_) => Vec::new(),
    };
    if words.is_empty() { vec![OsString::from("cc")] } else { words }
}
