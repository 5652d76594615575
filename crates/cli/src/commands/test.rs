//! `qj test`: runs programs on the input files in their folders, each in a process of its own, and compares their
//! output with the expected output.

use crate::arguments::{Engine, Test};
use crate::coverage::LineCounts;
use crate::project::Project;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_esp_run::files::{is_same_file, read_bytes, read_text, write_file};
use quaject_esp_run::{HostCode, HostError};
use similar::TextDiff;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The limit on the lines of a difference.
const MAX_SHOWN_LINES: usize = 40;

/// The time between SIGTERM and SIGKILL for a program that exceeds its time limit.
#[cfg(unix)]
const TERMINATION_GRACE: Duration = Duration::from_secs(2);

/// A program with the files of its test.
struct Case {
    program: PathBuf,
    /// Names and files of channels, `NAME.CHANNEL.in`.
    inputs: Vec<(String, PathBuf)>,
    /// Names and files of channels, `NAME.CHANNEL.out`.
    outputs: Vec<(String, PathBuf)>,
}

/// The lines of a report on a failed test, none if it passed, and the executed lines; or the reason why the test could
/// not be run.
type Outcome = Result<(Vec<String>, LineCounts), HostError>;

/// What is known of a test after its run.
struct TestResult {
    /// The path of the program, and the engine if there are several.
    name: String,
    engine: Engine,
    program: PathBuf,
    /// The lines of its report, none if it passed.
    report: Vec<String>,
    elapsed: Duration,
}

/// The output of a run.
struct RunOutput {
    status: String,
    output: Vec<u8>,
    error: Vec<u8>,
    channels: Vec<(PathBuf, Vec<u8>)>,
    /// The executed lines, if they were asked for.
    coverage: LineCounts,
}

pub(crate) fn test(terminal: &Terminal, arguments: Test) -> Result<Status, CliError> {
    reject_coverage(&arguments)?;
    let project = Project::find(terminal, &arguments.project, &arguments.paths)?;
    let mut cases = selected_cases(&arguments, &project)?;
    let is_selected = |case: &Case| {
        let path = case.program.to_string_lossy();
        arguments.filter.is_empty() || arguments.filter.iter().any(|text| path.contains(text.as_str()))
    };
    let found = cases.len();
    cases.retain(is_selected);
    if cases.is_empty() && found > 0 {
        let cause = format!("none of {found} tests has `{}` in its path", arguments.filter.join("` or `"));
        let error = HostError::usage(HostCode::Empty, cause).help("`qj test` without `--filter` lists all");
        return Err(CliError::from(error));
    }
    let mut engines: Vec<Engine> = Vec::new();
    for engine in &arguments.engine {
        if !engines.contains(engine) {
            engines.push(*engine);
        }
    }
    let jobs: Vec<(&Case, Engine)> =
        cases.iter().flat_map(|case| engines.iter().map(move |engine| (case, *engine))).collect();
    if jobs.is_empty() {
        return Err(CliError::from(
            HostError::usage(HostCode::Empty, "no tests found")
                .help("a test is a NAME.esp with a NAME.out in the same folder; see `qj test --help`"),
        ));
    }
    let mut coverage = LineCounts::default();
    let mut results = Vec::new();
    for ((case, engine), (outcome, elapsed)) in
        jobs.iter().zip(run_in_parallel(&jobs, &arguments, &project_options(&project)?)?)
    {
        let path = case.program.display();
        let name = if engines.len() > 1 { format!("{path} ({})", engine_name(*engine)) } else { path.to_string() };
        let report = match outcome {
            Ok((lines, counts)) => {
                coverage.add(counts);
                lines
            }
            Err(error) => error.to_string().lines().map(str::to_string).collect(),
        };
        results.push(TestResult { name, engine: *engine, program: case.program.clone(), report, elapsed });
    }
    if let Some(path) = &arguments.junit {
        write_file(path, junit(&results).as_bytes())?;
    }
    let mut report = if arguments.json { json_lines(&results) } else { text(terminal, &results, &arguments) };
    if let Some(path) = &arguments.coverage {
        write_file(path, coverage.lcov().as_bytes())?;
        if !arguments.json {
            report.push_str(&coverage.summary(&std::env::current_dir().unwrap_or_default()));
        }
    }
    print_verdict(report.as_bytes())?;
    Ok(if results.iter().all(TestResult::passed) { Status::Done } else { Status::Failed })
}

/// Rejects options that contradict `--coverage`.
fn reject_coverage(arguments: &Test) -> Result<(), HostError> {
    let other = arguments.engine.iter().any(|engine| *engine != Engine::Interp);
    if arguments.coverage.is_some() && other {
        return Err(HostError::usage(HostCode::Conflict, "`--coverage` needs the interpreter")
            .help("leave out `--engine`: all engines have the same semantics"));
    }
    Ok(())
}

impl TestResult {
    fn passed(&self) -> bool {
        self.report.is_empty()
    }
}

fn counts(results: &[TestResult]) -> (usize, usize) {
    let passed = results.iter().filter(|result| result.passed()).count();
    (passed, results.len() - passed)
}

/// The results for readers.
fn text(terminal: &Terminal, results: &[TestResult], arguments: &Test) -> String {
    let mut report = String::new();
    for result in results {
        let time = if arguments.times { format!("{:>8.3} s  ", result.elapsed.as_secs_f64()) } else { String::new() };
        // Writing to a string does not fail.
        let verdict = if result.passed() { "ok    ".to_string() } else { terminal.bold_red("FAILED") };
        let _ = writeln!(report, "{verdict}  {time}{}", result.name);
        for line in &result.report {
            let _ = writeln!(report, "        {}", terminal.difference(line));
        }
    }
    let (passed, failed) = counts(results);
    let _ = writeln!(report, "{passed} passed, {failed} failed");
    report
}

/// A line of JSON for each result, and one for all.
fn json_lines(results: &[TestResult]) -> String {
    let mut report = String::new();
    for result in results {
        let line = serde_json::json!({
            "test": result.program.display().to_string(),
            "engine": engine_name(result.engine),
            "passed": result.passed(),
            "seconds": result.elapsed.as_secs_f64(),
            "report": result.report,
        });
        // Writing to a string does not fail.
        let _ = writeln!(report, "{line}");
    }
    let (passed, failed) = counts(results);
    let _ = writeln!(report, "{}", serde_json::json!({ "passed": passed, "failed": failed }));
    report
}

/// The results in the form of JUnit: a test suite with a test case for each result. A class is a folder.
fn junit(results: &[TestResult]) -> String {
    let seconds: f64 = results.iter().map(|result| result.elapsed.as_secs_f64()).sum();
    let (_, failed) = counts(results);
    let head = format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\" time=\"{seconds:.3}\"", results.len());
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {head}>\n<testsuite name=\"qj test\" {head}>\n"
    );
    for result in results {
        let class = result.program.parent().filter(|folder| !folder.as_os_str().is_empty());
        let class = class.map_or_else(|| ".".to_string(), |folder| folder.display().to_string());
        let name = result.name.rsplit('/').next().unwrap_or_default();
        // Writing to a string does not fail.
        let _ = write!(
            xml,
            "<testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            escaped(&class),
            escaped(name),
            result.elapsed.as_secs_f64()
        );
        let _ = match result.report.first() {
            None => writeln!(xml, "/>"),
            Some(first) => writeln!(
                xml,
                "><failure message=\"{}\">{}</failure></testcase>",
                escaped(first),
                escaped(&result.report.join("\n"))
            ),
        };
    }
    xml + "</testsuite>\n</testsuites>\n"
}

/// Text in XML 1.0. Characters that it cannot hold are replaced.
fn escaped(text: &str) -> String {
    let mut xml = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\t' | '\n' => xml.push(c),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => xml.push(char::REPLACEMENT_CHARACTER),
            _ => xml.push(c),
        }
    }
    xml
}

/// The tests that the command line selects. With `--bless` a program that is named becomes a test.
fn selected_cases(arguments: &Test, project: &Project) -> Result<Vec<Case>, CliError> {
    let mut cases = Vec::new();
    if arguments.paths.is_empty() {
        let folder = project.folder().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        find_cases(folder, &mut cases)?;
        for root in &project.roots {
            let is_found = cases.iter().any(|case| is_same_file(&case.program, root));
            cases.extend(if is_found { None } else { Case::of(root.clone())? });
        }
    }
    for path in &arguments.paths {
        let metadata =
            path.metadata().map_err(|error| CliError::from(HostError::file("read", path.display(), &error)))?;
        if metadata.is_dir() {
            find_cases(path, &mut cases)?;
            continue;
        }
        match Case::of(path.clone())? {
            Some(case) => cases.push(case),
            None if arguments.bless => {
                cases.push(Case { program: path.clone(), inputs: Vec::new(), outputs: Vec::new() });
            }
            None => {
                let (path, expected) = (path.display(), path.with_extension("out"));
                let cause = format!("`{path}` is no test: there is no `{}`", expected.display());
                let help = "write the expected output to it, or run `qj test --bless`";
                return Err(CliError::from(HostError::usage(HostCode::Empty, cause).help(help)));
            }
        }
    }
    Ok(cases)
}

/// The options of `qj run` that a project has for all its programs.
fn project_options(project: &Project) -> Result<Vec<OsString>, HostError> {
    let import_folders = project.import_folders.iter().map(|folder| ("--import-folder", folder));
    let externs = project.externs.iter().map(|file| ("--extern", file));
    let mut words = Vec::new();
    for (option, path) in import_folders.chain(externs) {
        words.extend([OsString::from(option), absolute(path)?.into_os_string()]);
    }
    Ok(words)
}

/// Runs tests in parallel, each worker taking the next job; the outcomes in the order of the jobs, with their times.
fn run_in_parallel(
    jobs: &[(&Case, Engine)],
    arguments: &Test,
    project_options: &[OsString],
) -> Result<Vec<(Outcome, Duration)>, CliError> {
    let qj = std::env::current_exe()
        .map_err(|error| CliError::from(HostError::new(HostCode::System, format!("cannot find qj itself: {error}"))))?;
    let next = AtomicUsize::new(0);
    let outcomes: Mutex<Vec<Option<(Outcome, Duration)>>> = Mutex::new(jobs.iter().map(|_| None).collect());
    let work = || {
        loop {
            // Relaxed: the number alone matters; outcomes are handed over by the mutex and the end of the scope.
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some((case, engine)) = jobs.get(index) else { return };
            let begun = Instant::now();
            let run = case.run(&qj, *engine, arguments, project_options);
            let elapsed = begun.elapsed();
            let outcome = run.and_then(|mut output| {
                let coverage = std::mem::take(&mut output.coverage);
                let lines = if arguments.bless { case.bless(output) } else { case.compare(&output) };
                lines.map(|lines| (lines, coverage))
            });
            outcomes.lock().expect("no worker panics while it holds the lock")[index] = Some((outcome, elapsed));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(jobs.len()) {
            scope.spawn(work);
        }
    });
    let outcomes = outcomes.into_inner().expect("no worker panics while it holds the lock");
    Ok(outcomes.into_iter().map(|outcome| outcome.expect("the workers have done every job")).collect())
}

fn engine_name(engine: Engine) -> &'static str {
    match engine {
        Engine::Interp => "interp",
        Engine::C => "c",
        Engine::Jit => "jit",
    }
}

/// Finds all tests in a folder and its subfolders, in order of their names. Hidden folders and links are skipped.
fn find_cases(folder: &Path, cases: &mut Vec<Case>) -> Result<(), HostError> {
    let unreadable = |error| HostError::file("read", folder.display(), &error);
    let mut entries: Vec<_> =
        fs::read_dir(folder).map_err(unreadable)?.collect::<Result<_, _>>().map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().map_err(unreadable)?;
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if kind.is_dir() && !hidden && entry.file_name() != "target" {
            find_cases(&path, cases)?;
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

    /// The file `NAME.ENDING`.
    fn file(&self, ending: &str) -> PathBuf {
        self.program.with_extension(ending)
    }

    /// The text of `NAME.ENDING`, if the file exists.
    fn text(&self, ending: &str) -> Result<Option<String>, HostError> {
        let path = self.file(ending);
        let bytes = read_optional(&path)?;
        let not_text = |_| {
            HostError::new(HostCode::Content, format!("`{}` is not UTF-8", path.display())).help("write it as text")
        };
        bytes.map(|bytes| String::from_utf8(bytes).map_err(not_text)).transpose()
    }

    /// Runs the program by `qj run`.
    fn run(
        &self,
        qj: &Path,
        engine: Engine,
        options: &Test,
        project_options: &[OsString],
    ) -> Result<RunOutput, HostError> {
        let limit = Duration::from_secs(options.timeout);
        let failed = |error: io::Error| HostError::new(HostCode::System, format!("cannot run the program: {error}"));
        let folder = match self.program.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            Some(_) | None => Path::new("."),
        };
        let scratch = tempfile::tempdir().map_err(failed)?;
        let mut command = Command::new(qj);
        command.current_dir(folder).args(["run", "--color", "never", "--checked", "--clock", "virtual", "--engine"]);
        command.arg(engine_name(engine)).arg(self.program.file_name().unwrap_or_default());
        command.args(project_options);
        for (channel, path) in &self.inputs {
            command.arg("--bind").arg(format!("{channel}=data:{}", absolute(path)?.display()));
        }
        for (channel, _) in &self.outputs {
            command.arg("--bind").arg(format!("{channel}=data:{}", scratch.path().join(channel).display()));
        }
        let lines = scratch.path().join(".lines");
        if options.coverage.is_some() {
            command.arg("--coverage").arg(&lines);
        }
        if let Some(arguments) = self.text("args")? {
            command.args(arguments.lines().filter(|line| !line.is_empty()));
        }
        let input = open_optional(&self.file("in"))?.map_or_else(Stdio::null, Stdio::from);
        let output = scratch.path().join(".output");
        let error = scratch.path().join(".error");
        command.stdin(input);
        command.stdout(File::create(&output).map_err(failed)?).stderr(File::create(&error).map_err(failed)?);
        let status = wait(command.spawn().map_err(failed)?, limit).map_err(failed)?.ok_or_else(|| {
            HostError::new(HostCode::Size, format!("stopped after {} seconds", limit.as_secs()))
                .help("a test must terminate; `--timeout SECONDS` sets the limit")
        })?;
        let mut channels = Vec::new();
        for (channel, path) in &self.outputs {
            let mut produced = Vec::new();
            if let Ok(mut file) = File::open(scratch.path().join(channel)) {
                file.read_to_end(&mut produced).map_err(failed)?;
            }
            channels.push((path.clone(), produced));
        }
        // A program that cannot be run has none.
        let coverage =
            if lines.is_file() { LineCounts::parse(&read_text(&lines)?, folder) } else { LineCounts::default() };
        Ok(RunOutput {
            status: status_text(status),
            output: read_bytes(&output)?,
            error: read_bytes(&error)?,
            channels,
            coverage,
        })
    }

    /// Compares a run with the expected output.
    fn compare(&self, produced: &RunOutput) -> Result<Vec<String>, HostError> {
        let mut lines = Vec::new();
        let status = self.text("status")?.unwrap_or_else(|| "0".to_string());
        if status.trim() != produced.status {
            lines.push(format!("exit status: expected {}, got {}", status.trim(), produced.status));
        }
        let output = read_optional(&self.file("out"))?.unwrap_or_default();
        difference("standard output", &output, &produced.output, &mut lines);
        for (path, produced) in &produced.channels {
            difference(&path.display().to_string(), &read_bytes(path)?, produced, &mut lines);
        }
        match read_optional(&self.file("err"))? {
            Some(error) => difference("standard error", &error, &produced.error, &mut lines),
            None if lines.is_empty() => {}
            None => {
                // Not compared without an expected text, but it may explain the other differences.
                let error = String::from_utf8_lossy(&produced.error).into_owned();
                lines.extend(error.lines().take(MAX_SHOWN_LINES).map(|line| format!("| {line}")));
            }
        }
        Ok(lines)
    }

    /// Writes the output of a run as the expected output.
    fn bless(&self, produced: RunOutput) -> Result<Vec<String>, HostError> {
        // Status 2 is an error of `qj run` only with its message: a program may `exit(2)`.
        if produced.status == "2" && [&b"error: "[..], b"error["].iter().any(|title| produced.error.starts_with(title))
        {
            let message = String::from_utf8_lossy(&produced.error).into_owned();
            return Ok(["`qj run` rejects the files of the test:"]
                .into_iter()
                .chain(message.lines().take(MAX_SHOWN_LINES))
                .map(str::to_string)
                .collect());
        }
        if !produced.output.is_empty() || self.file("out").exists() || produced.channels.is_empty() {
            write_file(&self.file("out"), &produced.output)?;
        }
        let status = self.file("status");
        if produced.status != "0" {
            write_file(&status, format!("{}\n", produced.status).as_bytes())?;
        } else if status.exists() {
            fs::remove_file(&status).map_err(|error| HostError::file("remove", status.display(), &error))?;
        }
        if self.file("err").exists() {
            write_file(&self.file("err"), &produced.error)?;
        }
        for (path, produced) in &produced.channels {
            write_file(path, produced)?;
        }
        Ok(Vec::new())
    }
}

/// Opens an optional file. Another kind of file is an error: opening a pipe would block.
fn open_optional(path: &Path) -> Result<Option<File>, HostError> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Ok(metadata) if !metadata.is_file() => {
            Err(HostError::new(HostCode::File, format!("`{}` is not a file", path.display()))
                .help("replace it by a file, or remove it"))
        }
        Ok(_) | Err(_) => File::open(path).map(Some).map_err(|error| HostError::file("read", path.display(), &error)),
    }
}

fn read_optional(path: &Path) -> Result<Option<Vec<u8>>, HostError> {
    open_optional(path)?.map(|_| read_bytes(path)).transpose()
}

fn absolute(path: &Path) -> Result<PathBuf, HostError> {
    std::path::absolute(path).map_err(|error| HostError::file("find", path.display(), &error))
}

/// The text of an exit status: the number, or the signal.
fn status_text(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("killed by signal {signal}");
    }
    status.code().map_or_else(|| status.to_string(), |code| code.to_string())
}

/// Waits for a process until a time limit; none if it was exceeded. Such a process receives SIGTERM, so that it can
/// terminate its own children, and then SIGKILL.
fn wait(mut child: Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    if let Some(status) = wait_until(&mut child, Instant::now() + limit)? {
        return Ok(Some(status));
    }
    #[cfg(unix)]
    {
        use rustix::process::{Pid, Signal, kill_process};
        kill_process(Pid::from_child(&child), Signal::TERM)?;
        if wait_until(&mut child, Instant::now() + TERMINATION_GRACE)?.is_some() {
            return Ok(None);
        }
    }
    child.kill()?;
    child.wait()?;
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
    lines.extend(text.split('\n').take(count.min(MAX_SHOWN_LINES)).map(|line| line.replace('\r', "\\r")));
    if count > MAX_SHOWN_LINES {
        lines.push(format!("... {} more lines", count - MAX_SHOWN_LINES));
    }
    if !expected.is_empty() && !produced.is_empty() && expected.ends_with('\n') != produced.ends_with('\n') {
        lines.push("(only one of the two ends with a newline)".to_string());
    }
}
