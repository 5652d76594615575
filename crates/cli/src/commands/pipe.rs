//! `qj pipe`: reads steps, applies them to a file, and prints their results.

use crate::arguments::{Pipe as Arguments, StoreChoice};
use crate::terminal::{CliError, Status, Terminal, print};
use quaject_diagnostic::span::{SourceFile, SourceMap};
use quaject_diagnostic::{Message, Severity};
use quaject_esp_ir::text::counted;
use quaject_esp_run::files::{NewFile, read_bytes, read_text};
use quaject_esp_run::{HostCode, HostError};
use quaject_pipe::ir::{FloatFormat, Total};
use quaject_pipe::{
    Composer, Definitions, Error, Options, Outcome, Pipe, Report, Step, Store, TextDiagnostic, UserStep, read_pipe,
};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::time::Instant;

/// The size of a piece of data: a multiple of eight, as a run requires, and within the caches.
const PIECE_BYTES: usize = 256 << 10;

pub(crate) fn pipe(terminal: &Terminal, arguments: Arguments) -> Result<Status, CliError> {
    let Some(steps) = read_steps(terminal, &arguments)? else { return Ok(Status::Failed) };
    let compose = |steps: &[Step]| Composer::global().and_then(|composer| composer.compose(steps)).map_err(pipe_error);
    let pipe = compose(&steps)?;
    if arguments.explain {
        let store = arguments.store.map_or(Store::Cached, Store::from);
        print(pipe.explain(store).map_err(pipe_error)?.as_bytes())?;
        return Ok(Status::Done);
    }
    if arguments.bench {
        let separate = steps.iter().map(|step| compose(std::slice::from_ref(step))).collect::<Result<Vec<_>, _>>()?;
        print(bench(&pipe, &separate).map_err(pipe_error)?.as_bytes())?;
        return Ok(Status::Done);
    }
    run(terminal, &pipe, &arguments)
}

impl From<StoreChoice> for Store {
    fn from(choice: StoreChoice) -> Store {
        match choice {
            StoreChoice::Cached => Store::Cached,
            StoreChoice::Prefetching => Store::Prefetching,
            StoreChoice::Streaming => Store::Streaming,
        }
    }
}

fn pipe_error(error: Error) -> CliError {
    CliError { status: Status::Usage, error: Some(message(&error)) }
}

fn message(error: &Error) -> Message {
    Message::new(Severity::Error, error.to_string()).code(error.code()).help(error.help())
}

/// The steps of the pipe; none if the pipe or a file of steps has an error, which is reported.
fn read_steps(terminal: &Terminal, arguments: &Arguments) -> Result<Option<Vec<Step>>, CliError> {
    let mut sources = SourceMap::default();
    let (mut users, mut diagnostics): (Vec<UserStep>, Vec<TextDiagnostic>) = (Vec::new(), Vec::new());
    let mut is_duplicate = false;
    for path in &arguments.steps {
        let text = read_text(path)?;
        let (found, errors) = Definitions::read(&text);
        let file = sources.add(SourceFile::new(path.display().to_string(), text));
        diagnostics.extend(errors.into_iter().map(|error| error.in_file(file)));
        for step in found.steps {
            if users.iter().any(|own| own.name() == step.name()) {
                let error = format!("`{}` defines the step `{}` of an earlier file", path.display(), step.name());
                terminal.print_error(&HostError::new(HostCode::Content, error).help("give it another name"));
                is_duplicate = true;
            }
            users.push(step);
        }
    }
    let (steps, errors) = read_pipe(&arguments.pipe, &users);
    let file = sources.add(SourceFile::new("PIPE", arguments.pipe.as_str()));
    diagnostics.extend(errors.into_iter().map(|error| error.in_file(file)));
    terminal.print_diagnostics(&sources, &diagnostics);
    Ok((!is_duplicate && diagnostics.is_empty()).then_some(steps))
}

/// Processes a file piece by piece.
fn run(terminal: &Terminal, pipe: &Pipe, arguments: &Arguments) -> Result<Status, CliError> {
    if arguments.write.is_some() && !pipe.writes() {
        let error =
            HostError::usage(HostCode::Conflict, "this pipe writes nothing: none of its steps changes or copies data");
        return Err(CliError::from(error.help("leave `-w` out, or add the step `copy`")));
    }
    let keys = arguments.key.iter().map(|path| read_bytes(path)).collect::<Result<Vec<_>, _>>()?;
    if keys.len() != pipe.streams() {
        let steps = counted(pipe.streams() as u64, "step");
        let error = Error::Streams { wanted: pipe.streams(), given: keys.len() };
        let error = Message::new(Severity::Error, format!("{} key files for {steps} `xor stream`", keys.len()))
            .code(error.code())
            .help("give one `--key FILE` for each, in order");
        return Err(CliError { status: Status::Usage, error: Some(error) });
    }
    let (mut source, name): (Box<dyn Read>, String) = match &arguments.read {
        Some(path) if path.as_os_str() != "-" => {
            let file =
                File::open(path).map_err(|error| CliError::from(HostError::file("open", path.display(), &error)))?;
            (Box::new(file), path.display().to_string())
        }
        Some(_) | None => (Box::new(io::stdin().lock()), "standard input".into()),
    };
    let mut file = match &arguments.write {
        Some(path) if path.as_os_str() != "-" => Some(NewFile::create(path)?),
        Some(_) | None => None,
    };
    let (mut from, mut to) = (vec![0; PIECE_BYTES], vec![0; if pipe.writes() { PIECE_BYTES } else { 0 }]);
    let mut runner = pipe.runner();
    let mut pass = runner.start();
    let mut done = 0;
    loop {
        let bytes =
            fill(&mut *source, &mut from).map_err(|error| CliError::from(HostError::file("read", &name, &error)))?;
        if let Some(stream) = keys.iter().position(|key| key.len() < done + bytes) {
            let error = Error::StreamLength { stream, length: keys[stream].len(), data: done + bytes };
            let error = Message::new(Severity::Error, format!("a key file has fewer bytes than `{name}`"))
                .code(error.code())
                .help("give a key stream as long as the data");
            return Err(CliError { status: Status::Failed, error: Some(error) });
        }
        let streams: Vec<&[u8]> = keys.iter().map(|key| &key[done..]).collect();
        let options = Options { store: arguments.store.map(Store::from), streams: &streams, ..Options::default() };
        let target = if pipe.writes() { &mut to[..bytes] } else { &mut [][..] };
        pass.piece(&from[..bytes], target, options).map_err(pipe_error)?;
        if pipe.writes() {
            match &mut file {
                Some(file) => file
                    .write_all(target)
                    .map_err(|error| CliError::from(HostError::file("write", file.path().display(), &error)))?,
                None => print(target)?,
            }
        }
        done += bytes;
        if bytes < PIECE_BYTES {
            break;
        }
    }
    let text = result_lines(pipe.steps(), pass.end());
    let data_on_output = pipe.writes() && file.is_none();
    if let Some(file) = file {
        file.finish()?;
    }
    if data_on_output {
        // Standard output holds the data, so the results go to standard error.
        text.lines().for_each(|line| terminal.print_status(line));
        return Ok(Status::Done);
    }
    print(text.as_bytes())?;
    Ok(Status::Done)
}

/// Reads until the buffer is full or the data end.
fn fill(source: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match source.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(bytes) => filled += bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// The results of the steps, one per line.
fn result_lines(steps: &[Step], report: &Report) -> String {
    let mut text = String::new();
    for (step, outcome) in steps.iter().zip(report.outcomes()) {
        let _ = match outcome {
            Outcome::Nothing => Ok(()),
            Outcome::Checksum(sum) => writeln!(text, "checksum {:04x}", !sum),
            Outcome::Crc32c(crc) => writeln!(text, "crc32c {crc:08x}"),
            Outcome::Count(bytes) => writeln!(text, "count {bytes}"),
            Outcome::Total(total) => writeln!(text, "{step} {}", total_text(step, total)),
        };
    }
    text
}

/// A total, in the format of its step.
fn total_text(step: &Step, total: u64) -> String {
    let kind = match step {
        Step::User(step) => step.total(),
        Step::Copy
        | Step::Checksum
        | Step::Crc32c
        | Step::Swap16
        | Step::Swap32
        | Step::Swap64
        | Step::Xor(_)
        | Step::Count => None,
    };
    match kind {
        Some(Total::AddFloat(FloatFormat::F32)) => format!("{:?}", f32::from_bits(total as u32)),
        Some(Total::AddFloat(FloatFormat::F64)) => format!("{:?}", f64::from_bits(total)),
        Some(Total::Add | Total::Xor | Total::And | Total::Or | Total::Min | Total::Max) | None => total.to_string(),
    }
}

/// The throughput of the pipe, compared with its steps composed and applied separately.
fn bench(pipe: &Pipe, separate: &[Pipe]) -> Result<String, Error> {
    let mut text = format!("{:>9} {:>12} {:>16} {:>8}\n", "bytes", "pipe GB/s", "separate GB/s", "ratio");
    for bytes in [1536, 4 << 10, 64 << 10, 1 << 20, 16 << 20] {
        let source: Vec<u8> = (0..bytes as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
        let (key, mut target) = (source.clone(), source.clone());
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..11 {
            for (times, pipes) in times.iter_mut().zip([std::slice::from_ref(pipe), separate]) {
                times.push(time(pipes, &source, &mut target, &key)?);
            }
        }
        let [composed, separate] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            bytes as f64 / times[times.len() / 2]
        });
        let _ = writeln!(text, "{bytes:>9} {composed:>12.2} {separate:>16.2} {:>8.2}", composed / separate);
    }
    text.push_str("medians of 11 alternating runs; caches as the previous run leaves them\n");
    Ok(text)
}

/// Nanoseconds of one run of all `pipes`: the first from source to target, the others in place.
fn time(pipes: &[Pipe], source: &[u8], target: &mut [u8], key: &[u8]) -> Result<f64, Error> {
    let calls = ((4 << 20) / source.len()).max(1);
    let mut runners: Vec<_> = pipes.iter().map(|pipe| (pipe, pipe.runner())).collect();
    let start = Instant::now();
    for _ in 0..calls {
        for (index, (pipe, runner)) in runners.iter_mut().enumerate() {
            let streams = vec![key; pipe.streams()];
            let options = Options { streams: &streams, ..Options::default() };
            if index == 0 {
                let target = if pipe.writes() { &mut target[..] } else { &mut [] };
                runner.run_with(source, target, options)?;
            } else {
                runner.run_in_place(target, options)?;
            }
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / calls as f64)
}
