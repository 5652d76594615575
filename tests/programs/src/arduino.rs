//! Libraries for Arduino that `qj build --emit arduino` writes: built with Debian's core for AVR as the IDE does, and
//! run on a simulated Uno, whose serial line is that of the sketch.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_run, tool};

use super::repository;

/// Where the package arduino-core-avr has the core.
const CORE: &str = "/usr/share/arduino/hardware/arduino/avr";

/// The core's folder, if it and the tools are on this machine.
fn core() -> Option<PathBuf> {
    for name in ["avr-gcc", "simavr", "gcc"] {
        tool(&[name])?;
    }
    let core = PathBuf::from(CORE);
    if !core.exists() {
        // The package has no command: this says that it is missing, or fails where all must be there.
        tool(&["arduino-core-avr"])?;
    }
    Some(core)
}

fn succeed(command: &mut Command) {
    let output = command.output().expect("the tool starts");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Writes the library of a program into a folder.
fn export(folder: &Path, program: &str, style: &str) {
    let mut command = Command::new(qj_binary());
    command.arg("build").arg(repository(program)).args(["--emit", "arduino", "--style", style, "-o"]).arg(folder);
    succeed(&mut command);
}

/// The compiler for the Uno, with the options of the IDE.
fn compiler(core: &Path, library: &Path) -> Command {
    let mut command = Command::new("avr-gcc");
    command.args([
        "-mmcu=atmega328p",
        "-DF_CPU=16000000L",
        "-DARDUINO=10819",
        "-DARDUINO_AVR_UNO",
        "-DARDUINO_ARCH_AVR",
    ]);
    command.args(["-Os", "-ffunction-sections", "-fdata-sections", "-fno-exceptions", "-Wl,--gc-sections"]);
    command.arg("-I").arg(core.join("cores/arduino")).arg("-I").arg(core.join("variants/standard"));
    command.arg("-I").arg(library.join("src"));
    command
}

/// Builds the sketch of a library; the image.
fn build(core: &Path, library: &Path, name: &str) -> PathBuf {
    let (source, sketch) = (library.join(format!("src/{name}.c")), library.join(format!("examples/{name}/{name}.ino")));
    let warnings = ["-Wall", "-Wextra", "-Werror", "-c", "-o"];
    succeed(compiler(core, library).args(warnings).arg(library.join("program.o")).arg(&source));
    // Its author has not used the parameters yet.
    let of_sketch = ["-Wno-unused-parameter", "-x", "c++", "-std=gnu++11", "-include", "Arduino.h"];
    let mut command = compiler(core, library);
    succeed(command.args(warnings).arg(library.join("sketch.o")).args(of_sketch).arg(&sketch));
    let image = library.join("image.elf");
    let mut link = compiler(core, library);
    // Warnings of the core are no concern; its C++ needs a constant that this compiler defines in C only.
    link.args(["-w", "-DDECIMAL_DIG=__DECIMAL_DIG__", "-std=gnu++11"]);
    link.arg("-o").arg(&image).arg(library.join("program.o")).arg(library.join("sketch.o"));
    let of_language = |language: &str| {
        let sources = fs::read_dir(core.join("cores/arduino")).expect("the package has it");
        let sources = sources.map(|entry| entry.expect("the package has it").path());
        sources.filter(|path| path.extension().is_some_and(|ending| ending == language)).collect::<Vec<_>>()
    };
    link.args(of_language("cpp")).args(["-std=gnu11"]).args(of_language("c"));
    succeed(&mut link);
    image
}

/// What the image writes to its serial line when it reads these bytes from it.
fn simulate(library: &Path, image: &Path, input: &[u8]) -> Vec<u8> {
    let simulator = library.join("simulator");
    let mut gcc = Command::new("gcc");
    gcc.args(["-std=gnu99", "-O2", "-I/usr/include/simavr", "-o"]).arg(&simulator);
    succeed(gcc.arg(repository("tests/programs/src/avr-uart.c")).arg("-lsimavr"));
    let mut command = Command::new(&simulator);
    let mut child = command.arg(image).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it was just built");
    child.stdin.take().expect("it is piped").write_all(input).expect("it reads everything");
    let output = child.wait_with_output().expect("it has been started");
    assert!(output.status.success(), "{}", output.status);
    output.stdout
}

/// Bytes of a SLIP stream arrive on the serial line; packets leave on it.
#[test]
fn a_sketch_decodes_slip_on_a_simulated_uno() {
    if quick_run("sketches for Arduino") {
        return;
    }
    let Some(core) = core() else { return };
    for style in ["poll", "post"] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let library = folder.path();
        export(library, "examples/embed/slip.esp", style);
        let image = build(&core, library, "slip");
        let output = simulate(library, &image, b"one\xc0\xc0t\xdb\xdcwo\xc0\xdb\xdd!\xc0lost");
        assert_eq!(String::from_utf8_lossy(&output), String::from_utf8_lossy(b"onet\xc0wo\xdb!"), "{style}");
    }
}

/// Sketches of programs with interfaces, extern functions and messages of all kinds compile before they are filled in.
#[test]
fn the_sketches_of_all_kinds_of_programs_compile() {
    if quick_run("sketches for Arduino") {
        return;
    }
    let Some(core) = core() else { return };
    let program = r#"
        type userT = union of { send: record of { dest: u8, data: bytes[<=9] }, eos };
        extern fn readRegister(address: u32) -> u32;
        extern fn describe(text: #bytes[<=4]) -> bytes[<=8];
        channel userC: userT external out;
        external interface userReq(out userC) { Send(send |> { $dest, $data }), Eos(eos |> {}) }
        channel wireC: userT external in;
        external interface wire(in wireC) { Put(send |> { $dest, $data }), End(eos |> {}) }
        channel pairC(u8, u16) external out;
        channel sumC(sum: u32, text: bytes[<=8]) external in;
        process p { while { in(userC, $u); out(wireC, u); } }
        process q {
          while {
            in(pairC, $a, $b);
            var text: #bytes[<=4] = #"";
            out(sumC, readRegister(a + b), describe(text));
          }
        }
    "#;
    for style in ["poll", "post"] {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = folder.path().join("kinds.esp");
        fs::write(&file, program).expect("the folder is ours");
        let library = folder.path().join("kinds");
        export(&library, file.to_str().expect("it is text"), style);
        build(&core, &library, "kinds");
    }
}
