//! The programs of the repository, and random messages of the types that they take.

use crate::environment::Script;
use quaject_esp::{CodeGrowth, Emit, Mode, Optimiser, Options};
use quaject_esp_exec::datum::{Datum, conforms, parse_message};
use quaject_esp_ir::ir::{Boundary, Channel, Program, Type, TypeId};
use quaject_esp_run::disk::open_program;
use quaject_test_support::random::Random;
use std::path::{Path, PathBuf};

/// Whether a file names the program that it is a part of.
fn is_part(path: &Path) -> bool {
    let text = std::fs::read(path).expect("the repository can be read");
    text.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"part of "))
}

/// Every program below a folder, without the files that are parts of one.
///
/// # Panics
/// When a folder cannot be read.
pub fn programs(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).expect("the repository can be read");
    for path in entries.map(|entry| entry.expect("the repository can be read").path()) {
        if path.is_dir() && !path.ends_with("target") {
            programs(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "esp") && !is_part(&path) {
            found.push(path);
        }
    }
}

/// Compiled as by `qj run`, with its limits on code size; none if the file is no program by itself.
///
/// # Panics
/// When the file cannot be read.
pub fn compile(path: &Path, mode: Mode) -> Option<Program> {
    let (source, mut disk) = open_program(path, &[]).expect("the program can be read");
    let mut options = Options { mode, optimiser: Optimiser::On, ..Options::new(Emit::Ir) };
    options.limits.growth = CodeGrowth::Conservative;
    Some(quaject_esp::compile(source, &mut disk, &options).outputs.ok()?.ir)
}

/// A random value of the type, mostly a small one: those reach the most code.
fn value(program: &Program, ty: TypeId, random: &mut Random) -> Datum {
    match program.types.get(ty) {
        Type::Int(_) => {
            let any = match random.below(4) {
                0 => random.below(4) as i128,
                1 => i128::from(random.byte()),
                2 => i128::from(b'a' + random.below(26) as u8),
                _ => i128::from(random.next() as i64 >> random.below(64)),
            };
            let fits = conforms(program, ty, &Datum::Int(any));
            Datum::Int(if fits { any } else { i128::from(random.below(100)) })
        }
        Type::Bool => Datum::Bool(random.below(2) == 1),
        Type::Pid(processes) => {
            let all: Vec<u32> = (0..program.instance_count())
                .filter(|instance| {
                    program.process_of(*instance).is_some_and(|(process, _)| processes.contains(&process))
                })
                .collect();
            Datum::Pid(all[random.below(all.len() as u64) as usize])
        }
        Type::Bytes { bound } => {
            let length = random.below(u64::from(*bound).min(60) + 1);
            let is_text = random.below(2) == 1;
            let byte = |random: &mut Random| if is_text { b" ab\n0"[random.below(5) as usize] } else { random.byte() };
            Datum::Bytes((0..length).map(|_| byte(random)).collect())
        }
        Type::Array { length, element } => {
            Datum::Array((0..*length).map(|_| value(program, *element, random)).collect())
        }
        Type::Record(id) => {
            let parts = program.types.aggregate(*id).parts.clone();
            Datum::Record(parts.iter().map(|(_, ty)| value(program, ty.expect("fields have types"), random)).collect())
        }
        Type::Union(id) => {
            let parts = program.types.aggregate(*id).parts.clone();
            let tag = random.below(parts.len() as u64) as usize;
            Datum::Union(tag as u32, parts[tag].1.map(|ty| Box::new(value(program, ty, random))))
        }
        Type::Boxed(pool) => value(program, program.types.pool(*pool).content, random),
        Type::Error => unreachable!("a program has no errors"),
    }
}

/// The messages of the environment per channel: those of the file next to the program, or random ones.
pub fn script(path: &Path, program: &Program, turn: u64) -> Script {
    let is_input = |channel: &&Channel| channel.boundary == Boundary::FromEnvironment;
    let mut random = Random(turn + 1);
    random.next();
    let mut messages = |channel: &Channel| {
        let kept = std::fs::read_to_string(path.with_extension("in")).unwrap_or_default();
        let kept: Result<Vec<_>, _> = kept
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| parse_message(program, &channel.payload, line))
            .collect();
        match kept {
            Ok(kept) if turn == 0 && !kept.is_empty() => kept,
            _ => {
                // None at first, to test the end of a stream.
                let count = [0, 1, 2, 40][turn.min(3) as usize];
                let mut message = || channel.payload.iter().map(|ty| value(program, *ty, &mut random)).collect();
                (0..count).map(|_| message()).collect()
            }
        }
    };
    let inputs = program.channels.iter().filter(is_input);
    let inputs = inputs.map(|channel| (channel.name.to_string(), messages(channel))).collect();
    Script { inputs, held: Vec::new() }
}
