//! A fused filter program as machine code in memory. Arguments: program, times. Prints nanoseconds per input byte, the
//! result, and how long it took to compile, from the fused program on.

use quaject_bench_filters_process::{LENGTH, data, result};
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{ChannelId, ExternId};
use quaject_esp_lower::lower;
use quaject_esp_opt::groups::fuse_all;
use quaject_esp_opt::limits::Limits;
use quaject_esp_run::{DebugInfo, MachineCode};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use std::error::Error;
use std::time::Instant;

/// Imports come from the folder of the programs.
struct Folder(String);

impl Loader for Folder {
    fn load(&mut self, path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        let bytes = std::fs::read(format!("{}/{path}", self.0)).map_err(|error| error.to_string())?;
        Ok((path.to_string(), bytes))
    }
}

/// Offers the array once and keeps what is sent.
struct Once {
    message: Option<Vec<Datum>>,
    received: Vec<Datum>,
}

impl Environment for Once {
    fn peek(&mut self, _channel: ChannelId) -> Offer<'_> {
        self.message.as_deref().map_or(Offer::Closed, Offer::Message)
    }

    fn take(&mut self, _channel: ChannelId) {
        self.message = None;
    }

    fn readiness(&mut self, _channel: ChannelId) -> Readiness {
        Readiness::Ready
    }

    fn put(&mut self, _channel: ChannelId, message: &[Datum]) {
        self.received = message.to_vec();
    }

    fn now_ns(&mut self) -> i64 {
        0
    }

    fn call(&mut self, _function: ExternId, _arguments: &mut [Datum]) -> Reply {
        Reply::Unresolved
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let number = |index: usize| std::env::args().nth(index).and_then(|text| text.parse::<i128>().ok());
    let (program, times) = (number(1).ok_or("which program?")?, number(2).unwrap_or(1));
    let mut sources = SourceMap::default();
    let folder = format!("{}/esp", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(format!("{folder}/program{program}.esp"))?;
    let root = sources.add(SourceFile::new("program.esp", text));
    let analysis = analyze(&mut sources, root, &mut Folder(folder));
    let whole = Instant::now();
    let mut program = lower(&analysis.program.ok_or("the program has mistakes")?, &sources);
    fuse_all(&mut program, false, Limits::default());
    let begin = Instant::now();
    let code =
        MachineCode::compile(&program, Checks::Off, DebugInfo::None).map_err(|trouble| format!("{trouble:?}"))?;
    let compiled = begin.elapsed();
    let whole = whole.elapsed();
    let mut interpreter = Interpreter::new(&program, Checks::Off)?;
    interpreter.use_native(Box::new(code));
    let mut world = Once { message: Some(vec![Datum::Bytes(data()), Datum::Int(times)]), received: Vec::new() };
    let begin = Instant::now();
    let outcome = loop {
        match interpreter.run(&mut world, 200_000) {
            Outcome::Budget => {}
            outcome => break outcome,
        }
    };
    let nanoseconds = begin.elapsed().as_nanos() as f64 / (times as f64 * LENGTH as f64);
    let [Datum::Array(written), Datum::Int(count)] = &world.received[..] else {
        return Err(format!("nothing was sent: {outcome:?}").into());
    };
    let byte = |datum: &Datum| match datum {
        Datum::Int(byte) => *byte as u8,
        _ => 0,
    };
    let written: Vec<u8> = written.iter().map(byte).collect();
    println!("{nanoseconds:.3}\n{}", result(&written, *count as u32));
    eprintln!("machine code in {} us, with lowering and fusing {} us", compiled.as_micros(), whole.as_micros());
    Ok(())
}
