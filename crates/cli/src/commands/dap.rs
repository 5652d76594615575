//! `qj dap`: connects a debug session to a client on standard input and output, and finds the run that it asks for.

use super::verify::replay::{OpenError, ReplayedRun, open_counterexample};
use crate::arguments::Dap;
use crate::terminal::{CliError, Status};
use quaject_esp_check::counterexample_file::CounterexampleFile;
use quaject_esp_debug::{DebuggedRun, Launch, LaunchedRun, Request, RunLoader, Session, SourceText};
use quaject_esp_run::files::read_text;
use quaject_esp_run::{HostCode, HostError};
use serde_json::Value;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// The largest message in bytes. Clients send breakpoints and numbers, never texts.
const MAX_MESSAGE_BYTES: usize = 1 << 24;

/// The largest header of a message in bytes.
const MAX_HEADER_BYTES: u64 = 1 << 12;

pub(crate) fn dap(_: &Dap) -> Result<Status, CliError> {
    let mut input = BufReader::new(io::stdin().lock());
    let mut output = io::stdout().lock();
    let mut session = Session::new(VerifiedRuns);
    while let Some(message) = read_message(&mut input)? {
        // An answer to a question of ours would not be a request, and none is asked.
        let Ok(request) = serde_json::from_slice::<Request>(&message) else { continue };
        for message in session.handle(&request) {
            let sent = write_message(&mut output, &message);
            sent.map_err(|error| HostError::new(HostCode::System, format!("the client does not read: {error}")))?;
        }
        if session.is_over() {
            break;
        }
    }
    Ok(Status::Done)
}

/// The content of the next message; none at the end of the input.
fn read_message(input: &mut impl BufRead) -> Result<Option<Vec<u8>>, HostError> {
    let malformed = |cause: &str| {
        HostError::new(HostCode::Message, cause)
            .help("`qj dap` is started by an editor; see the chapter \"Verification\" of the book")
    };
    let unreadable = |error: io::Error| HostError::new(HostCode::System, format!("cannot read requests: {error}"));
    let mut length = None;
    loop {
        let mut line = String::new();
        let count = input.by_ref().take(MAX_HEADER_BYTES).read_line(&mut line).map_err(unreadable)?;
        match line.trim_end() {
            _ if count == 0 && length.is_none() => return Ok(None),
            _ if !line.ends_with('\n') => return Err(malformed("the input ends within the header of a message")),
            "" => break,
            line => {
                let field = line.split_once(':').ok_or_else(|| malformed("a header is `Content-Length: BYTES`"))?;
                if field.0.eq_ignore_ascii_case("content-length") {
                    length = field.1.trim().parse().ok();
                }
            }
        }
    }
    let length: usize = length.ok_or_else(|| malformed("a message has no `Content-Length`"))?;
    if length > MAX_MESSAGE_BYTES {
        return Err(malformed(&format!("a message has {length} bytes; at most {MAX_MESSAGE_BYTES} are accepted")));
    }
    let mut content = vec![0; length];
    input.read_exact(&mut content).map_err(unreadable)?;
    Ok(Some(content))
}

fn write_message(output: &mut impl Write, message: &Value) -> io::Result<()> {
    let content = message.to_string();
    write!(output, "Content-Length: {}\r\n\r\n{content}", content.len())?;
    output.flush()
}

/// Reads counterexamples, and has programs verified by another process, whose memory and end are not the session's.
struct VerifiedRuns;

impl RunLoader for VerifiedRuns {
    fn load(&mut self, launch: &Launch) -> Result<LaunchedRun, String> {
        let path = Path::new(&launch.program);
        let text = read_text(path).map_err(|error| error.to_string())?;
        if CounterexampleFile::has_header(&text) {
            let run = debugged_run(&launch.program, &text)?;
            return Ok(LaunchedRun { run: Some(run), output: String::new() });
        }
        let folder = tempfile::tempdir().map_err(|error| format!("cannot make a folder for the run: {error}"))?;
        let trace = folder.path().join("run.qjt");
        let qj = std::env::current_exe().map_err(|error| format!("cannot find qj itself: {error}"))?;
        let mut verify = Command::new(qj);
        verify.arg("verify").arg(path).arg("--trace").arg(&trace).args(&launch.verify_arguments);
        verify.args(launch.model.iter().flat_map(|model| ["--model", model]));
        let output =
            verify.stdin(Stdio::null()).output().map_err(|error| format!("cannot start qj verify: {error}"))?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        match fs::read_to_string(&trace) {
            Ok(text) => Ok(LaunchedRun { run: Some(debugged_run(&launch.program, &text)?), output: said }),
            Err(_) if output.status.success() => Ok(LaunchedRun { run: None, output: said }),
            Err(_) => Err(said.trim_end().to_string()),
        }
    }
}

/// The run of a counterexample file.
fn debugged_run(name: &str, text: &str) -> Result<DebuggedRun, String> {
    let run = open_counterexample(name, text).map_err(|error| match error {
        OpenError::Host(CliError { error, .. }) => error.map(|message| message.text).unwrap_or_default(),
        OpenError::Program(_) => format!("the program of `{name}` has errors; `qj replay {name}` shows them"),
    })?;
    let ReplayedRun { model, found, configurations, files, modelled: _ } = run;
    let sources = files.into_iter().map(|(name, text)| {
        let same = fs::read_to_string(&name).is_ok_and(|current| current == text);
        let path = if same { fs::canonicalize(&name).ok() } else { None };
        SourceText { path: path.map(|path| path.display().to_string()), name, text }
    });
    Ok(DebuggedRun::new(model, found, configurations, sources.collect()))
}
