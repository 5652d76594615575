//! Exceptions and backtraces go through generated code, on every machine.
#![cfg(target_os = "linux")]

use std::process::Command;

use quaject_test_support::HANG_TIMEOUT;
use quaject_vcode::debug::{FunctionInfo, call_frames, prologue_bytes};
use quaject_vcode::{Argument, Asm, Class, Core, Kind, Machine, Param, Region, Target, Type, Workspace};

/// Where `unwind.cpp` maps the code.
const ADDRESS: usize = 0x6000_0000;

/// A function whose address, number and double come as parameters: it keeps all of them and a sum over a call with
/// arguments on the stack, and has so many bytes of locals.
fn generate<M: Machine>(local_bytes: u32) -> (Vec<u8>, usize, Vec<u8>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let mut bytes = vec![0_u8; 4096];
    let mut workspace = Workspace::<M>::new();
    let mut params = [Param::NONE; 3];
    let region = Region::from(&mut bytes[..]).executed_at(ADDRESS);
    let mut asm = Asm::<M>::begin(region, &mut workspace, "%p%l%d", &mut params, Kind::Calls).expect("there is room");
    if local_bytes != 0 {
        asm.local_bytes(local_bytes, 8);
    }
    let (callback, x, kept_double) = (params[0].reg(), params[1].reg(), params[2].float());
    asm.addd(kept_double, kept_double, kept_double);
    let kept = asm.getreg(Class::Persistent).expect("one is free");
    let other = asm.getreg(Class::Persistent).expect("one is free");
    asm.addli(kept, x, 1);
    asm.setl(other, 100);
    let mut arguments = [Argument::Constant(0); 10];
    arguments[0] = Argument::Reg(x);
    arguments[1] = Argument::Reg(kept);
    arguments[9] = Argument::Reg(other);
    asm.call(&[Type::L; 10], Target::Reg(callback), &arguments).expect("ten longs are ten longs");
    asm.addl(kept, kept, asm.result());
    asm.retl(kept);
    let code = asm.end().expect("the function is right");
    let described = FunctionInfo {
        name: "generated",
        entry: code.entry,
        code: &bytes[code.offset..code.offset + code.instructions],
        prologue: prologue_bytes::<M>(&code),
        sources: &["generated"],
        lines: &[],
    };
    let frames = call_frames::<M>(&described);
    (bytes, code.offset, frames)
}

/// The machines whose tests have a compiler of C++, and those that have one of C only.
enum Language {
    Cpp,
    C,
}

/// Where programs are executed.
enum Runner {
    Here,
    /// By an emulator, statically linked.
    Emulator(&'static str),
    /// By an emulator, with the libraries in a folder: the unwinder of statically linked programs crashes.
    EmulatorWithLibraries(&'static str, &'static str),
}

fn unwinds<M: Machine>(language: Language, compilers: &[&'static str], runner: Runner)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let Some(compiler) = quaject_test_support::tool(compilers) else { return };
    let (linking, words) = match runner {
        Runner::Here => ("-static", Vec::new()),
        Runner::Emulator(emulator) => ("-static", vec![emulator]),
        Runner::EmulatorWithLibraries(emulator, folder) => ("-no-pie", vec![emulator, "-L", folder]),
    };
    if words.first().is_some_and(|emulator| quaject_test_support::tool(&[*emulator]).is_none()) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("vcode-unwind-{}-{}", M::NAME, std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for temporary files is writable");
    let program = folder.join("unwind");
    let source = match language {
        Language::Cpp => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unwind.cpp"),
        Language::C => concat!(env!("CARGO_MANIFEST_DIR"), "/tests/unwind.c"),
    };
    let built = Command::new(compiler)
        .args(["-O2", "-fexceptions", linking, "-o"])
        .arg(&program)
        .arg(source)
        .output()
        .expect("the compiler starts");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    // Frames that are entered by an immediate, and those that are by the scratch register.
    for local_bytes in [0, 24, 2000, 6000, 70_000, 300_008] {
        let (code, entry, frames) = generate::<M>(local_bytes);
        let (code_path, frames_path) = (folder.join("code"), folder.join("frames"));
        std::fs::write(&code_path, code).expect("the folder is writable");
        std::fs::write(&frames_path, frames).expect("the folder is writable");
        let mut command = Command::new("timeout");
        command.arg(HANG_TIMEOUT.as_secs().to_string()).args(&words).arg(&program);
        command.arg(&code_path).arg(&frames_path).args([entry.to_string(), ADDRESS.to_string()]);
        let output = command.output().expect("the program starts");
        assert!(
            output.status.success() && output.stdout.ends_with(b"unwound\n"),
            "{} with {local_bytes} bytes of locals: {}\n{}{}",
            M::NAME,
            output.status,
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn exceptions_go_through_code_of_x86_64() {
    unwinds::<quaject_vcode::x86_64::X86_64>(Language::Cpp, &["g++", "g++-12"], Runner::Here);
    unwinds::<quaject_vcode::x86_64::X86_64>(Language::C, &["gcc", "gcc-12"], Runner::Here);
}

#[test]
fn exceptions_go_through_code_of_aarch64() {
    unwinds::<quaject_vcode::aarch64::Aarch64>(
        Language::Cpp,
        &["aarch64-linux-gnu-g++", "aarch64-linux-gnu-g++-12"],
        Runner::Emulator("qemu-aarch64"),
    );
}

#[test]
fn exceptions_go_through_code_of_riscv64() {
    unwinds::<quaject_vcode::riscv64::Riscv64>(
        Language::Cpp,
        &["riscv64-linux-gnu-g++", "riscv64-linux-gnu-g++-12"],
        Runner::Emulator("qemu-riscv64"),
    );
}

#[test]
fn cleanups_run_above_code_of_mips() {
    unwinds::<quaject_vcode::mips::Mips>(
        Language::C,
        &["mips-linux-gnu-gcc", "mips-linux-gnu-gcc-12"],
        Runner::Emulator("qemu-mips"),
    );
}

#[test]
fn cleanups_run_above_code_of_sparc64() {
    unwinds::<quaject_vcode::sparc64::Sparc64>(
        Language::C,
        &["sparc64-linux-gnu-gcc", "sparc64-linux-gnu-gcc-12"],
        Runner::Emulator("qemu-sparc64"),
    );
}

#[test]
fn cleanups_run_above_code_of_alpha() {
    unwinds::<quaject_vcode::alpha::Alpha>(
        Language::C,
        &["alpha-linux-gnu-gcc", "alpha-linux-gnu-gcc-12"],
        Runner::EmulatorWithLibraries("qemu-alpha", "/usr/alpha-linux-gnu"),
    );
}

#[test]
fn cleanups_run_above_code_of_ppc64le() {
    unwinds::<quaject_vcode::ppc64le::Ppc64le>(
        Language::C,
        &["powerpc64le-linux-gnu-gcc", "powerpc64le-linux-gnu-gcc-12"],
        Runner::Emulator("qemu-ppc64le"),
    );
}
