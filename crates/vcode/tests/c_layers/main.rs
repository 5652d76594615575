//! `quaject/vcode-layers.h`: C programs against the static library, by both compilers under their sanitizers; the bytes
//! of random programs for every machine compared with those of the Rust layers; exceptions that go through its
//! functions; functions for other machines under emulation.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]

mod random_programs;

use quaject_test_support::{Effort, Random, quick_run, tool};
use quaject_vcode::{Asm, Core, Extension, Machine};
use random_programs::{Layer, Program};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const SOURCES: &str = env!("CARGO_MANIFEST_DIR");

/// The static library, built as Cargo's users do.
fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .current_dir(SOURCES)
            .args(["rustc", "--quiet", "--lib", "--crate-type", "staticlib", "--features", "c"])
            .args(["--message-format", "json-render-diagnostics"])
            .output()
            .expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut words = messages.split('"');
        words.find(|word| word.ends_with("libquaject_vcode.a")).expect("cargo says what it built").into()
    })
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program is there");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Where a test puts a file.
fn scratch(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("layers-{name}-{}", std::process::id()))
}

/// Compiles a program of `tests/c/layers` with the library, under sanitizers.
fn program(compiler: &str, language: &[&str], source: &str) -> PathBuf {
    let name = Path::new(source).file_name().map_or("program".into(), |name| name.to_string_lossy());
    let program = scratch(&format!("{name}-{compiler}"));
    run(Command::new(compiler)
        .args(language)
        .args(["-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"])
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .args([&Path::new(SOURCES).join("include"), &Path::new(SOURCES).join("tests/c/layers").join(source)])
        .args(["-x", "none"])
        .arg(library())
        .args(["-lgcc_s", "-lpthread", "-lm", "-ldl", "-o"])
        .arg(&program));
    program
}

#[test]
fn c_programs_use_everything() {
    if quick_run("a static library for C") {
        return;
    }
    for compiler in ["gcc", "clang"] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let program = program(compiler, &["-std=c11"], "use.c");
        assert_eq!(run(&mut Command::new(&program)), "ok\n", "{compiler}");
    }
}

/// The example of the book, which prints what the book says.
#[test]
fn the_example_of_the_book_runs() {
    if quick_run("a static library for C") {
        return;
    }
    let Some(compiler) = tool(&["gcc"]) else { return };
    let chapter = Path::new(SOURCES).join("../../docs/book/src/vcode.md");
    let chapter = std::fs::read_to_string(chapter).expect("the chapter is there");
    let (_, rest) = chapter.split_once("```c,file=reverse.c\n").expect("the chapter has the example");
    let (example, rest) = rest.split_once("```\n").expect("the example ends");
    let (_, printed) = rest.split_once("&& ./reverse\n").expect("the chapter runs it");
    let (printed, _) = printed.split_once("```\n").expect("what it prints ends");
    let source = scratch("reverse.c");
    std::fs::write(&source, example).expect("the folder is writable");
    let program = program(compiler, &["-std=c11", "-x", "c"], &source.to_string_lossy());
    assert_eq!(run(&mut Command::new(program)), printed);
}

#[test]
fn the_header_is_one_of_cpp_too() {
    for (compiler, standard) in
        [("gcc", "-std=c11"), ("clang", "-std=c11"), ("g++", "-std=c++17"), ("clang++", "-std=c++17")]
    {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let language = if standard.starts_with("-std=c++") { "c++" } else { "c" };
        let include = Path::new(SOURCES).join("include");
        // Alone, and with the other interface of vcode before it.
        for first in ["quaject/vcode-layers.h", "quaject/vcode.h"] {
            run(Command::new(compiler)
                .args([standard, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-I"])
                .arg(&include)
                .args(["-include", first, "-include", "quaject/vcode-layers.h", "-x", language, "/dev/null"]));
        }
        // It does not need C++17, which the other one does.
        let standard = standard.replace("c++17", "c++11");
        run(Command::new(compiler)
            .args([&standard, "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror", "-fsyntax-only", "-I"])
            .arg(&include)
            .args(["-include", "quaject/vcode-layers.h", "-x", language, "/dev/null"]));
    }
}

/// Random programs, each instruction several times in each layer: C and Rust write the same bytes.
fn same_bytes<M: Machine>(random: &mut Random, machine: u32, script: &mut String, expected: &mut String)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    const PARTS: usize = 4;
    for _ in 0..Effort::wanted().pick(1, 3, 100) {
        for (layer, part) in
            [Layer::Virtual, Layer::Window].into_iter().flat_map(|layer| (0..PARTS).map(move |part| (layer, part)))
        {
            let program = Program::random::<M>(random, layer, part, PARTS);
            script.push_str(&program.script(machine, layer));
            program.write::<M>(layer).iter().for_each(|byte| {
                let _ = write!(expected, "{byte:02x}");
            });
            expected.push('\n');
        }
    }
}

#[test]
fn c_writes_the_bytes_that_rust_writes_on_every_machine() {
    if quick_run("a static library for C") {
        return;
    }
    let Some(compiler) = tool(&["gcc"]) else { return };
    let program = program(compiler, &["-std=c11"], "script.c");
    let mut random = Random(11);
    let (mut script, mut expected) = (String::new(), String::new());
    same_bytes::<quaject_vcode::x86_64::X86_64>(&mut random, 1, &mut script, &mut expected);
    same_bytes::<quaject_vcode::aarch64::Aarch64>(&mut random, 2, &mut script, &mut expected);
    same_bytes::<quaject_vcode::riscv64::Riscv64>(&mut random, 3, &mut script, &mut expected);
    same_bytes::<quaject_vcode::mips::Mips>(&mut random, 4, &mut script, &mut expected);
    same_bytes::<quaject_vcode::sparc64::Sparc64>(&mut random, 5, &mut script, &mut expected);
    same_bytes::<quaject_vcode::alpha::Alpha>(&mut random, 6, &mut script, &mut expected);
    same_bytes::<quaject_vcode::ppc64le::Ppc64le>(&mut random, 7, &mut script, &mut expected);
    let file = scratch("script.txt");
    std::fs::write(&file, script).expect("the folder is writable");
    let input = std::fs::File::open(&file).expect("it was just written");
    let found = run(Command::new(&program).stdin(input));
    for (number, (found, expected)) in found.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, expected, "function {number} of {}", file.display());
    }
    assert_eq!(found.lines().count(), expected.lines().count());
}

#[test]
fn exceptions_go_through_functions_of_c_programs() {
    if quick_run("a static library for C") {
        return;
    }
    for compiler in ["g++", "clang++"] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let program = program(compiler, &["-x", "c++", "-std=c++17"], "throws.cpp");
        assert_eq!(run(&mut Command::new(&program)), "ok\n", "{compiler}");
    }
}

/// Where functions for other machines are executed.
const ADDRESS: &str = "0x60000000";

/// A machine that functions are written for here and run on elsewhere.
struct Foreign {
    /// That of `enum qjl_machine`.
    number: &'static str,
    compilers: [&'static str; 2],
    emulator: &'static str,
    /// The folder with the libraries of the machine, where programs are not linked statically.
    libraries: Option<&'static str>,
    /// A compiler of C++, if tests have one.
    cpp: Option<[&'static str; 2]>,
}

const FOREIGN: [Foreign; 6] = [
    Foreign {
        number: "2",
        compilers: ["aarch64-linux-gnu-gcc", "aarch64-linux-gnu-gcc-12"],
        emulator: "qemu-aarch64",
        libraries: None,
        cpp: Some(["aarch64-linux-gnu-g++", "aarch64-linux-gnu-g++-12"]),
    },
    Foreign {
        number: "3",
        compilers: ["riscv64-linux-gnu-gcc", "riscv64-linux-gnu-gcc-12"],
        emulator: "qemu-riscv64",
        libraries: None,
        cpp: Some(["riscv64-linux-gnu-g++", "riscv64-linux-gnu-g++-12"]),
    },
    Foreign {
        number: "4",
        compilers: ["mips-linux-gnu-gcc", "mips-linux-gnu-gcc-12"],
        emulator: "qemu-mips",
        libraries: None,
        cpp: None,
    },
    Foreign {
        number: "5",
        compilers: ["sparc64-linux-gnu-gcc", "sparc64-linux-gnu-gcc-12"],
        emulator: "qemu-sparc64",
        libraries: None,
        cpp: None,
    },
    Foreign {
        number: "6",
        compilers: ["alpha-linux-gnu-gcc", "alpha-linux-gnu-gcc-12"],
        emulator: "qemu-alpha",
        libraries: Some("/usr/alpha-linux-gnu"),
        cpp: None,
    },
    Foreign {
        number: "7",
        compilers: ["powerpc64le-linux-gnu-gcc", "powerpc64le-linux-gnu-gcc-12"],
        emulator: "qemu-ppc64le",
        libraries: None,
        cpp: None,
    },
];

#[test]
fn functions_for_other_machines_run_there() {
    if quick_run("a static library for C") {
        return;
    }
    let Some(compiler) = tool(&["gcc"]) else { return };
    let writer = program(compiler, &["-std=c11"], "foreign.c");
    for Foreign { number, compilers, emulator, libraries, cpp } in FOREIGN {
        let (Some(compiler), Some(emulator)) = (tool(&compilers), tool(&[emulator])) else { continue };
        let (code, frames) = (scratch(&format!("code-{number}")), scratch(&format!("frames-{number}")));
        let compile = |compiler: &str, source: &str, name: &str| {
            let built = scratch(&format!("{name}-{number}"));
            let mut command = Command::new(compiler);
            command
                .args(["-O1", "-fexceptions"])
                .arg(Path::new(SOURCES).join("tests").join(source))
                .arg("-o")
                .arg(&built);
            if libraries.is_none() {
                command.arg("-static");
            }
            run(&mut command);
            built
        };
        let emulated = |program: &Path| {
            let mut command = Command::new(emulator);
            libraries.inspect(|folder| {
                command.args(["-L", folder]);
            });
            command.arg(program).arg(&code);
            command
        };
        let runner = compile(compiler, "c/layers/run.c", "run");
        let unwinder = match cpp.and_then(|compilers| tool(&compilers)) {
            Some(cpp) => compile(cpp, "unwind.cpp", "unwind"),
            None => compile(compiler, "unwind.c", "unwind"),
        };
        for local_bytes in ["0", "70000"] {
            let mut write = Command::new(&writer);
            let entry = run(write.args([number, ADDRESS, local_bytes]).arg(&code).arg(&frames));
            let entry = entry.trim();
            assert_eq!(run(emulated(&runner).args([entry, ADDRESS])), "ok\n", "{emulator}");
            let output = run(emulated(&unwinder).arg(&frames).args([entry, ADDRESS]));
            assert!(output.ends_with("unwound\n"), "{emulator}: {output}");
        }
    }
}
