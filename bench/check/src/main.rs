//! Times `qj check` of generated programs and `qj run` of hello, as whole processes.

use quaject_bench_harness::{Contender, compare, instructions, print};
use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNS: usize = 11;

/// A program of about `lines` lines that uses what programs use: types, patterns, alts, functions, loops. Each unit is
/// a client, a server and their channels.
fn program(lines: usize) -> String {
    let mut text = String::from("// Generated: many clients and servers.\n");
    let mut unit = 0;
    while text.lines().count() + UNIT_LINES <= lines {
        write_unit(&mut text, unit).expect("a String takes everything");
        unit += 1;
    }
    text
}

const UNIT_LINES: usize = 46;

fn write_unit(text: &mut String, n: usize) -> std::fmt::Result {
    write!(
        text,
        r#"
type read{n}T = record {{ address: u32, count: int }};
type write{n}T = record {{ address: u32, data: bytes[<=64] }};
type request{n}T = union {{ read: read{n}T, write: write{n}T, stop }};
const SIZE{n} = 64;
channel request{n}C: request{n}T;
channel reply{n}C(u32, int);
channel log{n}C(int) external in;

fn slot{n}(address: u32) -> u32 {{
  return (address >> 4) % SIZE{n};
}}

process server{n} {{
  var memory: #array of u32 = #[0; SIZE{n}], served = 0, total: u32 = 0;
  while {{
    in(request{n}C, $request);
    served += 1;
    match request {{
      read |> {{ $address, $count }} if count > 0 => {{
        for i in 0..count {{ total += memory[slot{n}(address + u32(i))]; }}
        out(reply{n}C, total, served);
      }}
      read |> _ => out(reply{n}C, 0, served);
      write |> {{ address: $address, data: $data }} => {{
        for i in 0..data.len {{ memory[slot{n}(address)] = u32(data[i]) << 8 | 1; }}
        if (data.len > 4 && data.be32[0] == 0xdead_beef) total = 0;
      }}
      stop |> {{}} => break;
    }}
  }}
}}

process client{n} {{
  var answers = 0, last: u32 = 0;
  for i in 0..100 {{
    if (i % 3 == 0) out(request{n}C, write |> {{ address: u32(i * 16), data: "0123456789" }});
    else {{
      out(request{n}C, read |> {{ u32(i), i % 5 }});
      alt {{
        in(reply{n}C, last, $count) {{ answers += count; }}
        after (10 ms) {{ answers -= 1; }}
      }}
    }}
  }}
  out(log{n}C, answers + int(last & 0xff));
}}
"#
    )
}

fn main() -> io::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = Command::new("cargo")
        .args(["build", "--release", "--quiet", "--package", "quaject-cli"])
        .current_dir(&repository)
        .status()?;
    if !status.success() {
        return Err(io::Error::other("qj could not be built"));
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository.join("target"), PathBuf::from);
    let qj = target.join("release/qj");
    let directory = tempfile::tempdir()?;

    let mut contenders = vec![Contender::new("true", || Command::new("true"))];
    for lines in [0, 200, 20_000] {
        let text = program(lines);
        let path = directory.path().join(format!("lines{lines}.esp"));
        std::fs::write(&path, &text)?;
        let qj = qj.clone();
        contenders.push(Contender::new(format!("qj check, {} lines", text.lines().count()), move || {
            let mut command = Command::new(&qj);
            command.arg("check").arg(&path).stderr(std::process::Stdio::null());
            command
        }));
    }
    let hello = repository.join("examples/hello.esp");
    contenders.push(Contender::new("qj run hello (interpreter)", move || {
        let mut command = Command::new(&qj);
        command.args(["run", "--engine", "interp"]).arg(&hello);
        command
    }));

    let mut measurements = compare(RUNS, &contenders)?;
    for (contender, measurement) in contenders.iter().zip(&mut measurements) {
        measurement.instructions = instructions(&(contender.command)(), None, directory.path());
    }
    print(&measurements);
    Ok(())
}
