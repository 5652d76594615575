//! Compiles a program of tests/c against the headers and the library, runs it, compares its output with the file next
//! to it. Knows no program.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use quaject_test_support::tool;

/// The static library that build.rs made.
pub(crate) fn library() -> PathBuf {
    Path::new(env!("OUT_DIR")).join("libquaject-ac.a")
}

pub(crate) fn crate_folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn scratch() -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    // The same names in every run: what an earlier one left is overwritten, not added to.
    let name = format!("program-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the scratch folder can be made");
    folder
}

/// One program, one compiler, some options.
pub(crate) struct Program {
    compiler: &'static str,
    name: &'static str,
    flags: Vec<String>,
    /// Compile the library's sources too, with the same options, instead of linking the archive.
    with_sources: Option<&'static str>,
    runner: Vec<String>,
    environment: Vec<(&'static str, String)>,
}

impl Program {
    pub(crate) fn new(compiler: &'static str, name: &'static str) -> Program {
        Program { compiler, name, flags: Vec::new(), with_sources: None, runner: Vec::new(), environment: Vec::new() }
    }

    pub(crate) fn flags(mut self, flags: &[&str]) -> Program {
        self.flags.extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    /// For a machine whose archive does not exist, or options that the library must share.
    pub(crate) fn with_sources(mut self, machine: &'static str) -> Program {
        self.with_sources = Some(machine);
        self
    }

    /// The command that runs the program: valgrind, qemu.
    pub(crate) fn under(mut self, runner: &[&str]) -> Program {
        self.runner = runner.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    pub(crate) fn environment(mut self, key: &'static str, value: &str) -> Program {
        self.environment.push((key, value.to_owned()));
        self
    }

    fn source(&self) -> PathBuf {
        let ending = if self.compiler.contains("++") { "cpp" } else { "c" };
        let folders = ["tests/c", "examples/c"].map(|folder| crate_folder().join(folder));
        let mut sources = folders.map(|folder| folder.join(self.name).with_extension(ending)).into_iter();
        sources.find(|source| source.is_file()).expect("a program of tests/c or examples/c")
    }

    /// The executable; none where the machine lacks the compiler.
    pub(crate) fn build(&self) -> Option<PathBuf> {
        let compiler = tool(&[self.compiler])?;
        let executable = scratch().join(self.name);
        let mut command = Command::new(compiler);
        command.args(["-g", "-Wall", "-Wextra", "-Werror", "-I"]).arg(crate_folder().join("include"));
        command
            .args(["-I", env!("QUAJECT_RING_INCLUDE")])
            .args(&self.flags)
            .arg("-o")
            .arg(&executable)
            .arg(self.source());
        match self.with_sources {
            None => drop(command.arg(library())),
            Some(machine) => {
                command.arg("-I").arg(crate_folder().join("src/c")).arg("-fexceptions");
                // A C++ compiler must hear that these are C; the assembly says so itself.
                for source in sources(machine) {
                    let language = if source.extension().is_some_and(|e| e == "S") { "none" } else { "c" };
                    command.args(["-x", language]).arg(source);
                }
            }
        }
        let result = command.args(["-pthread", "-ldl", "-lm"]).output().expect("the compiler starts");
        assert!(
            result.status.success(),
            "{compiler} {:?} {}:\n{}",
            self.flags,
            self.name,
            String::from_utf8_lossy(&result.stderr)
        );
        Some(executable)
    }

    /// Builds it and runs it with arguments.
    pub(crate) fn output(&self, arguments: &[&str]) -> Option<Output> {
        let executable = self.build()?;
        let mut command = match self.runner.split_first() {
            None => Command::new(&executable),
            Some((runner, rest)) => {
                let mut command = Command::new(runner);
                command.args(rest).arg(&executable);
                command
            }
        };
        command.args(arguments).envs(self.environment.iter().map(|(key, value)| (*key, value.as_str())));
        Some(command.output().expect("the program starts"))
    }

    /// Its output must be that of tests/c/NAME.out.
    pub(crate) fn check(&self) {
        let Some(output) = self.output(&[]) else { return };
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{} {:?} {:?} {}: {}\n{complaints}",
            self.compiler,
            self.flags,
            self.runner,
            self.name,
            output.status
        );
        let expected = std::fs::read_to_string(crate_folder().join("tests/c").join(self.name).with_extension("out"))
            .expect("the expected output is next to the program");
        let actual = String::from_utf8_lossy(&output.stdout);
        assert_eq!(actual, expected, "{} {:?} {:?} {}", self.compiler, self.flags, self.runner, self.name);
    }
}

/// The library's sources for one machine.
fn sources(machine: &str) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(crate_folder().join("src/c")).expect("the crate has C sources");
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.expect("the folder is readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "c"));
    files.push(crate_folder().join("src/asm").join(machine).with_extension("S"));
    files
}

/// An object of a program of tests/c, to be linked to another one.
pub(crate) fn compile_object(compiler: &'static str, name: &'static str, flags: &[&str]) -> Option<PathBuf> {
    tool(&[compiler])?;
    let object = scratch().join(name).with_extension("o");
    let source = Program::new(compiler, name).source();
    let output = Command::new(compiler).args(flags).arg("-c").arg(source).arg("-o").arg(&object).output();
    let output = output.expect("the compiler starts");
    assert!(output.status.success(), "{compiler} {name}: {}", String::from_utf8_lossy(&output.stderr));
    Some(object)
}

/// Compiles a text from standard input; links nothing.
pub(crate) fn compile_text(compiler: &str, language: &str, text: &str, flags: &[&str]) -> Output {
    let mut command = Command::new(compiler);
    command.args(flags).args(["-x", language, "-", "-o"]).arg(scratch().join("text.o"));
    command.arg("-I").arg(crate_folder().join("include")).args(["-I", env!("QUAJECT_RING_INCLUDE")]);
    let mut child = command
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the compiler starts");
    let mut input = child.stdin.take().expect("piped above");
    input.write_all(text.as_bytes()).expect("the compiler reads its input");
    drop(input);
    child.wait_with_output().expect("the compiler ends")
}

/// Runs a program that must succeed; its standard output.
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().expect("the program starts");
    assert!(output.status.success(), "{program} {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("the output is UTF-8")
}
