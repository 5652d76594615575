//! GDB and perf see generated code: GDB runs this very program and breaks, steps and looks at the stack in it.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::path::PathBuf;
use std::process::Command;

use quaject_vcode::debug::{FunctionInfo, Line, gdb, perf, prologue_bytes};
use quaject_vcode::{Argument, Asm, Class, Core, Kind, Memory, Native, Param, Target, Type, Workspace};

/// Called by generated code with more arguments than there are registers for them.
#[inline(never)]
// SAFETY: nothing else in this program has the name.
#[unsafe(no_mangle)]
extern "C" fn called_by_generated_code(a: i64, b: i64, _: i64, _: i64, _: i64, _: i64, _: i64, last: i64) -> i64 {
    std::hint::black_box(a + b + last)
}

/// Called when GDB has been told of the code: only then it can be broken at by name.
#[inline(never)]
// SAFETY: nothing else in this program has the name.
#[unsafe(no_mangle)]
extern "C" fn generated_code_is_known() {
    std::hint::black_box(());
}

struct Generated {
    memory: Memory,
    entry: usize,
    bytes: Vec<u8>,
    prologue: usize,
    lines: Vec<Line>,
}

impl Generated {
    fn described(&self) -> FunctionInfo<'_> {
        FunctionInfo {
            name: "generated_sum",
            entry: self.entry,
            code: &self.bytes,
            prologue: self.prologue,
            sources: &[
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/debug.vcode"),
                concat!(env!("CARGO_MANIFEST_DIR"), "/tests/debug_end.vcode"),
            ],
            lines: &self.lines,
        }
    }
}

/// A function that keeps values over a call, with the lines of `debug.vcode`.
fn generate() -> Generated {
    let memory = Memory::debuggable(4096).expect("the system gives a page");
    let mut buffer = vec![0_u8; 2048];
    let mut workspace = Workspace::<Native>::new();
    let mut params = [Param::NONE];
    let mut asm = Asm::<Native>::begin((&mut buffer[..]).into(), &mut workspace, "%l", &mut params, Kind::Calls)
        .expect("there is room");
    let mut marks = Vec::new();
    let x = params[0].reg();
    let kept = asm.getreg(Class::Persistent).expect("one is free");
    let mut mark = |asm: &Asm<'_, Native>, line| marks.push((asm.position(), line));
    mark(&asm, 2);
    asm.addli(kept, x, 1);
    mark(&asm, 3);
    let mut arguments = [Argument::Constant(0); 8];
    arguments[0] = Argument::Reg(x);
    arguments[1] = Argument::Reg(kept);
    arguments[7] = Argument::Constant(100);
    asm.call(&[Type::L; 8], Target::Address(called_by_generated_code as *const () as usize), &arguments)
        .expect("eight longs are eight longs");
    mark(&asm, 4);
    asm.addl(kept, kept, asm.result());
    mark(&asm, 1);
    asm.retl(kept);
    let code = asm.end().expect("the function is right");
    let installed = memory.install(&buffer, &code).expect("a page holds it");
    // The last one is of another file.
    let mut lines = vec![Line { offset: 0, source: 0, line: 1 }];
    lines.extend(marks.iter().enumerate().map(|(number, (position, line))| Line {
        offset: position - code.offset,
        source: usize::from(number + 1 == marks.len()),
        line: *line,
    }));
    Generated {
        memory,
        entry: installed.entry,
        bytes: buffer[code.offset..code.offset + code.instructions].to_vec(),
        prologue: prologue_bytes::<Native>(&code),
        lines,
    }
}

/// What GDB runs.
#[test]
fn debugged_process() {
    let generated = generate();
    let registered = gdb::register(&generated.described());
    generated_code_is_known();
    // SAFETY: the code takes and returns a long, and its memory is alive.
    let function: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(generated.entry) };
    assert_eq!(function(10), 11 + 10 + 11 + 100);
    drop(registered);
    assert_eq!(generated.memory.available(), 0);
}

#[test]
fn gdb_breaks_steps_and_shows_the_stack() {
    if quaject_test_support::tool(&["gdb"]).is_none() {
        return;
    }
    let program = std::env::current_exe().expect("a test is a program");
    let commands = [
        "set debuginfod enabled off",
        "break generated_code_is_known",
        "run",
        "break generated_sum",
        "break called_by_generated_code",
        "continue",
        "next",
        "next",
        "continue",
        "backtrace 3",
        "finish",
        "next",
        "backtrace 2",
        "next",
        "info symbol $rip",
        "delete",
        "continue",
    ];
    let mut gdb = Command::new("gdb");
    gdb.args(["--batch", "-nx"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let output = gdb
        .arg("--args")
        .arg(program)
        .args(["--exact", "debugged_process", "--nocapture", "--test-threads=1"])
        .output()
        .expect("gdb starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    let expect = |wanted: &str| assert!(text.contains(wanted), "no `{wanted}` in:\n{text}");
    // Broken at by name, with its lines.
    expect("generated_sum () at ");
    expect("debug.vcode:");
    expect("2\t  addli kept, a0, 1");
    // Stepped over.
    expect("3\t  call called_by_generated_code");
    // Looked through from below, with arguments on the stack between.
    let stack: Vec<&str> = text.lines().filter(|line| line.starts_with('#')).collect();
    assert!(stack[0].contains("called_by_generated_code"), "{text}");
    assert!(stack[1].contains("generated_sum () at ") && stack[1].contains("debug.vcode:3"), "{text}");
    assert!(stack[2].contains("debugged_process"), "{text}");
    // Returned into and stepped on.
    expect("4\t  addl kept, kept, result");
    assert!(stack[3].contains("generated_sum () at ") && stack[4].contains("debugged_process"), "{text}");
    expect("1\t  retl kept, in another file");
    expect("in section .text of <in-memory");
    expect("exited normally");
}

#[test]
fn perf_finds_names_bytes_and_lines() {
    let generated = generate();
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("perf-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder is ours");
    let described = generated.described();
    perf::Map::open_in(&folder).and_then(|mut map| map.add(&described)).expect("the map can be written");
    let map = std::fs::read_to_string(folder.join(format!("perf-{}.map", std::process::id()))).expect("it was written");
    assert_eq!(map, format!("{:x} {:x} generated_sum\n", generated.entry, generated.bytes.len()));

    let mut dump = perf::Dump::create(&folder).expect("the dump can be created");
    dump.add(&described).expect("the dump can be written");
    let bytes = std::fs::read(dump.path()).expect("it was written");
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    assert_eq!([word(0), word(4), word(8), word(20)], [0x4a69_5444, 1, 40, std::process::id()]);
    // Lines come before the code they are of; the records fill the file.
    assert_eq!((word(40), long(56), long(64)), (2, generated.entry as u64, generated.lines.len() as u64));
    let load = 40 + word(44) as usize;
    assert_eq!((word(load), load + word(load + 4) as usize), (0, bytes.len()));
    assert_eq!(long(load + 40), generated.bytes.len() as u64);
    assert!(bytes.ends_with(&generated.bytes));
    let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells the mappings");
    assert!(maps.lines().any(|line| line.contains("r-xp") && line.contains("jit-")), "perf sees the mapping");
    drop(dump);
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}
