//! `qj test`: runs programs that lie beside their input and expected output, each in a process of its own, as its
//! user would run it.

use crate::arguments::{Engine, Test};
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp_run::HostError;
use quaject_esp_run::files::{read_bytes, write_file};
use rustix::process::{Pid, Signal, kill_process};
use similar::TextDiff;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Differences longer than this are cut: the first lines tell what is wrong.
const SHOWN_LINES: usize = 40;

/// How long a program that was asked to stop may take.
const MERCY: Duration = Duration::from_secs(2);

/// A program and what lies beside it.
struct Case {
    program: PathBuf,
    /// Names and files of channels, `NAME.CHANNEL.in`.
    inputs: Vec<(String, PathBuf)>,
    /// Likewise `NAME.CHANNEL.out`.
    outputs: Vec<(String, PathBuf)>,
}

/// The lines that tell what is wrong, or why the test could not be made.
type Outcome = Result<Vec<String>, HostError>;

/// What a run produced.
struct Produced {
    status: String,
    output: Vec<u8>,
    error: Vec<u8>,
    channels: Vec<(PathBuf, Vec<u8>)>,
}

pub(crate) fn test(terminal: &Terminal, arguments: Test) -> Result<Status, CliError> {
    let mut cases = Vec::new();
    for path in &arguments.paths {
        let metadata =
            path.metadata().map_err(|error| CliError::from(HostError::file("read", path.display(), &error)))?;
        if metadata.is_dir() {
            search(path, &mut cases)?;
        } else {
            match Case::of(path.clone())? {
                Some(case) => cases.push(case),
                None => {
                    let expected = path.with_extension("out");
                    if !arguments.bless {
                        return Err(CliError::from(
                            HostError::usage(format!(
                                "`{}` is no test: there is no `{}`",
                                path.display(),
                                expected.display()
                            ))
                            .help("write what the program should say into it, or let `qj test --bless` do so"),
                        ));
                    }
                    cases.push(Case { program: path.clone(), inputs: Vec::new(), outputs: Vec::new() });
                }
            }
        }
    }
    let mut engines = arguments.engine.clone();
    engines.dedup();
    let jobs: Vec<(&Case, Engine)> =
        cases.iter().flat_map(|case| engines.iter().map(move |engine| (case, *engine))).collect();
    if jobs.is_empty() {
        return Err(CliError::from(
            HostError::usage("there are no tests here")
                .help("a test is a NAME.esp with a NAME.out beside it; `qj test --help` tells more"),
        ));
    }
    let myself = std::env::current_exe()
        .map_err(|error| CliError::from(HostError::new(format!("cannot find qj itself: {error}"))))?;
    let limit = Duration::from_secs(arguments.timeout);

    // Each worker takes the next job; results are printed in the order of jobs.
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<Outcome>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        loop {
            // Relaxed: the number alone matters; results are handed over by the mutex and the end of the scope.
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((case, engine)) = jobs.get(index) else { return };
            let result = case
                .run(&myself, *engine, limit)
                .and_then(|produced| if arguments.bless { case.bless(produced) } else { case.compare(&produced) });
            results.lock().expect("no worker panics while it holds the lock")[index] = Some(result);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len()) {
            scope.spawn(work);
        }
    });

    let mut failed = 0;
    let mut report = String::new();
    let results = results.into_inner().expect("no worker panics while it holds the lock");
    for ((case, engine), result) in jobs.iter().zip(results) {
        let name = if engines.len() > 1 {
            format!("{} ({})", case.program.display(), engine_name(*engine))
        } else {
            case.program.display().to_string()
        };
        let lines = match result.expect("the workers have done every job") {
            Ok(lines) => lines,
            Err(error) => error.to_string().lines().map(str::to_string).collect(),
        };
        if lines.is_empty() {
            report.push_str(&format!("ok      {name}\n"));
        } else {
            failed += 1;
            report.push_str(&format!("{}  {name}\n", terminal.bold_red("FAILED")));
            for line in lines {
                report.push_str(&format!("        {}\n", terminal.difference(&line)));
            }
        }
    }
    let passed = jobs.len() - failed;
    report.push_str(&format!("{passed} passed, {failed} failed\n"));
    print_verdict(report.as_bytes())?;
    Ok(if failed == 0 { Status::Done } else { Status::Failed })
}

fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Interp => "interp",
        Engine::C => "c",
        Engine::Jit => "jit",
    }
}

/// All tests in a folder and those below it, in order of their names. Hidden folders and links are passed over.
fn search(folder: &Path, cases: &mut Vec<Case>) -> Result<(), HostError> {
    let unreadable = |error| HostError::file("read", folder.display(), &error);
    let mut entries: Vec<_> =
        fs::read_dir(folder).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(unreadable)?;
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if kind.is_dir() && !hidden && entry.file_name() != "target" {
            search(&path, cases)?;
        } else if kind.is_file() && path.extension() == Some(OsStr::new("esp")) {
            cases.extend(Case::of(path)?);
        }
    }
    Ok(())
}

impl Case {
    /// The test whose program this is, if it is one.
    fn of(program: PathBuf) -> Result<Option<Case>, HostError> {
        let stem = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = match program.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
            Some(_) | None => PathBuf::from("."),
        };
        let unreadable = |error| HostError::file("read", folder.display(), &error);
        let mut case = Case { program: program.clone(), inputs: Vec::new(), outputs: Vec::new() };
        for entry in fs::read_dir(&folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(rest) = name.strip_prefix(&stem).and_then(|rest| rest.strip_prefix('.')) else { continue };
            match rest.split_once('.') {
                Some((channel, "in")) => case.inputs.push((channel.to_string(), path)),
                Some((channel, "out")) => case.outputs.push((channel.to_string(), path)),
                Some(_) | None => {}
            }
        }
        case.inputs.sort();
        case.outputs.sort();
        let is_test =
            !case.outputs.is_empty() || ["out", "status"].iter().any(|ending| program.with_extension(ending).is_file());
        Ok(is_test.then_some(case))
    }

    fn beside(&self, ending: &str) -> PathBuf {
        self.program.with_extension(ending)
    }

    /// A text beside the program, if there is one.
    fn text_beside(&self, ending: &str) -> Result<Option<String>, HostError> {
        let path = self.beside(ending);
        let bytes = read_if_there(&path)?;
        let not_text = |_| HostError::new(format!("`{}` is not UTF-8", path.display())).help("write it as text");
        bytes.map(|bytes| String::from_utf8(bytes).map_err(not_text)).transpose()
    }

    /// Runs the program as its user would.
    fn run(&self, myself: &Path, engine: Engine, limit: Duration) -> Result<Produced, HostError> {
        let failed = |error: io::Error| HostError::new(format!("cannot run it: {error}"));
        let folder = match self.program.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let scratch = tempfile::tempdir().map_err(failed)?;
        let mut command = Command::new(myself);
        command.current_dir(folder).args(["run", "--color", "never", "--checked", "--clock", "virtual", "--engine"]);
        command.arg(engine_name(engine)).arg(self.program.file_name().unwrap_or_default());
        for (channel, path) in &self.inputs {
            command.arg("--bind").arg(format!("{channel}=data:{}", absolute(path)?.display()));
        }
        for (channel, _) in &self.outputs {
            command.arg("--bind").arg(format!("{channel}=data:{}", scratch.path().join(channel).display()));
        }
        if let Some(arguments) = self.text_beside("args")? {
            command.args(arguments.lines().filter(|line| !line.is_empty()));
        }
        let input = open_if_there(&self.beside("in"))?.map_or_else(Stdio::null, Stdio::from);
        let output = scratch.path().join(".output");
        let error = scratch.path().join(".error");
        command.stdin(input);
        command.stdout(File::create(&output).map_err(failed)?).stderr(File::create(&error).map_err(failed)?);
        let status = wait(command.spawn().map_err(failed)?, limit).map_err(failed)?.ok_or_else(|| {
            HostError::new(format!("it was stopped after {} seconds", limit.as_secs()))
                .help("a test has to end by itself; `--timeout SECONDS` gives it longer")
        })?;
        let mut channels = Vec::new();
        for (channel, path) in &self.outputs {
            let mut produced = Vec::new();
            if let Ok(mut file) = File::open(scratch.path().join(channel)) {
                file.read_to_end(&mut produced).map_err(failed)?;
            }
            channels.push((path.clone(), produced));
        }
        Ok(Produced { status: describe(status), output: read_bytes(&output)?, error: read_bytes(&error)?, channels })
    }

    /// The lines that tell how a run differs from what was expected: none if it does not.
    fn compare(&self, produced: &Produced) -> Outcome {
        let mut lines = Vec::new();
        let status = self.text_beside("status")?.unwrap_or_else(|| "0".to_string());
        if status.trim() != produced.status {
            lines.push(format!("exit status: expected {}, got {}", status.trim(), produced.status));
        }
        let output = read_if_there(&self.beside("out"))?.unwrap_or_default();
        difference("standard output", &output, &produced.output, &mut lines);
        for (path, produced) in &produced.channels {
            difference(&path.display().to_string(), &read_bytes(path)?, produced, &mut lines);
        }
        match read_if_there(&self.beside("err"))? {
            Some(error) => difference("standard error", &error, &produced.error, &mut lines),
            None if lines.is_empty() => {}
            None => {
                // Nobody said what it should be, but it may tell why the rest is wrong.
                let error = String::from_utf8_lossy(&produced.error).into_owned();
                lines.extend(error.lines().take(SHOWN_LINES).map(|line| format!("| {line}")));
            }
        }
        Ok(lines)
    }

    /// Makes what was produced what is expected.
    fn bless(&self, produced: Produced) -> Outcome {
        // A program may `exit(2)`, but then nobody complains.
        if produced.status == "2" && produced.error.starts_with(b"error: ") {
            let complaint = String::from_utf8_lossy(&produced.error).into_owned();
            return Ok(["`qj run` refuses what lies beside the program:"]
                .into_iter()
                .chain(complaint.lines().take(SHOWN_LINES))
                .map(str::to_string)
                .collect());
        }
        if !produced.output.is_empty() || self.beside("out").exists() || produced.channels.is_empty() {
            write_file(&self.beside("out"), &produced.output)?;
        }
        let status = self.beside("status");
        if produced.status != "0" {
            write_file(&status, format!("{}\n", produced.status).as_bytes())?;
        } else if status.exists() {
            fs::remove_file(&status).map_err(|error| HostError::file("remove", status.display(), &error))?;
        }
        if self.beside("err").exists() {
            write_file(&self.beside("err"), &produced.error)?;
        }
        for (path, produced) in &produced.channels {
            write_file(path, produced)?;
        }
        Ok(Vec::new())
    }
}

/// A file that need not be there. What is there must be a file: nobody waits for the other end of a pipe.
fn open_if_there(path: &Path) -> Result<Option<File>, HostError> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(metadata) if !metadata.is_file() => {
            Err(HostError::new(format!("`{}` is not a file", path.display())).help("put a file there, or nothing"))
        }
        Ok(_) | Err(_) => File::open(path).map(Some).map_err(|error| HostError::file("read", path.display(), &error)),
    }
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, HostError> {
    open_if_there(path)?.map(|_| read_bytes(path)).transpose()
}

fn absolute(path: &Path) -> Result<PathBuf, HostError> {
    std::path::absolute(path).map_err(|error| HostError::file("find", path.display(), &error))
}

/// An exit status in words: the number, or the signal.
fn describe(status: ExitStatus) -> String {
    match (status.code(), std::os::unix::process::ExitStatusExt::signal(&status)) {
        (Some(code), _) => code.to_string(),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// Waits for a process, but not for ever: one that is late is asked to stop, so that it puts its own children away, and
/// then made to.
fn wait(mut child: Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = wait_until(&mut child, Instant::now() + limit)? {
        return Ok(Some(status));
    }
    kill_process(Pid::from_child(&child), Signal::TERM)?;
    if wait_until(&mut child, Instant::now() + MERCY)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(None)
}

fn wait_until(child: &mut Child, end: Instant) -> io::Result<Option<ExitStatus>> {
    let mut pause = Duration::from_millis(1);
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() > end {
            return Ok(status);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Adds the lines that differ: `-` was expected, `+` was produced.
fn difference(what: &str, expected: &[u8], produced: &[u8], lines: &mut Vec<String>) {
    if expected == produced {
        return;
    }
    let (Ok(expected), Ok(produced)) = (std::str::from_utf8(expected), std::str::from_utf8(produced)) else {
        let same = expected.iter().zip(produced).take_while(|(one, other)| one == other).count();
        lines.push(format!(
            "{what} differs from byte {same} on ({} bytes expected, {} produced)",
            expected.len(),
            produced.len()
        ));
        return;
    };
    lines.push(format!("{what} differs (- expected, + produced):"));
    let diff = TextDiff::configure().timeout(Duration::from_secs(1)).diff_lines(expected, produced);
    let text = diff.unified_diff().context_radius(2).to_string();
    let count = text.lines().count();
    lines.extend(text.split('\n').take(count.min(SHOWN_LINES)).map(|line| line.replace('\r', "\\r")));
    if count > SHOWN_LINES {
        lines.push(format!("... {} more lines", count - SHOWN_LINES));
    }
    if !expected.is_empty() && !produced.is_empty() && expected.ends_with('\n') != produced.ends_with('\n') {
        lines.push("(only one of the two ends with a line end)".to_string());
    }
}
