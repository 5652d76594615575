//! The C header writes, on every machine, the bytes that the Rust emitters write: those are what the other tests
//! assemble, run and compare.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use quaject_vcode::layers::schedule;
use quaject_vcode::{
    Argument, Asm, Class, Core, Extension, Features, Kind, Machine, Param, Region, Register, Target, Workspace,
};

use crate::harness::{
    Family, Instruction, Operands, Tools, Type, compiler, emit_any, emulated, output_in_time, scratch_folder,
};
use crate::instructions::{EXTENSIONS, INSTRUCTIONS};
use crate::is_quick;

pub const LENGTH: usize = 1 << 20;
pub const ADDRESS: usize = 0x2000_0000;

/// The arguments of an emitter in C, after the assembler: type and value of each.
fn arguments<M: Machine>(instruction: &Instruction, o: &Operands<M::Reg, M::Float>) -> Vec<(&'static str, String)> {
    let (ty, float) = (instruction.ty, instruction.ty.is_float());
    let int = |register: M::Reg| ("v_reg", format!("qjv_reg({})", register.number()));
    let real = |register: M::Float| ("v_reg", format!("qjv_reg({})", register.number()));
    let of = |int_register, float_register, is_float| if is_float { real(float_register) } else { int(int_register) };
    let (d, s, t) = (of(o.d, o.fd, float), of(o.s, o.fs, float), of(o.t, o.ft, float));
    let i = o.immediate;
    let narrow = ("int", format!("{}", i as i32));
    let immediate = match ty {
        Type::U => ("unsigned", format!("{}u", i as u32)),
        Type::L => ("long", format!("(long)INT64_C({i})")),
        Type::Ul => ("unsigned long", format!("(unsigned long)INT64_C({i})")),
        Type::P => ("uintptr_t", format!("(uintptr_t)INT64_C({i})")),
        Type::F => ("float", format!("real32(0x{:x}u)", i as u32)),
        Type::D => ("double", format!("real64(UINT64_C(0x{i:x}))")),
        Type::I | Type::V | Type::C | Type::Uc | Type::S | Type::Us => narrow.clone(),
    };
    let second = if instruction.immediate { immediate.clone() } else { t.clone() };
    let base = int(o.s);
    let offset = if instruction.immediate { narrow.clone() } else { int(o.t) };
    let label = ("v_label", if instruction.op == "jal" { "label_at(1)" } else { "label" }.to_owned());
    match instruction.family {
        Family::Binary | Family::Shift => vec![d, s, second],
        Family::Select | Family::Exchange => vec![d, s, t],
        Family::Checked => vec![d, s, second, label],
        Family::Hint => vec![base, narrow],
        Family::IndexedLoad | Family::IndexedStore => vec![d, base, int(o.t), narrow],
        Family::Unary => vec![d, s],
        Family::Convert => vec![d, of(o.s, o.fs, instruction.source.is_float())],
        Family::Set => vec![d, immediate],
        Family::Load | Family::Store => vec![d, base, offset],
        Family::Return if ty == Type::V => vec![],
        Family::Return => vec![s],
        Family::Branch => vec![s, second, label],
        Family::Label => vec![label],
        Family::Register => vec![base],
        Family::Nullary => vec![],
    }
}

/// A function in C that calls an emitter. The header's functions are always inlined: with one function for all calls of
/// an emitter, its code is compiled once.
fn definition(name: &str, arguments: &[(&str, String)]) -> String {
    let (mut parameters, mut passed) = (String::new(), String::new());
    for (index, (ty, _)) in arguments.iter().enumerate() {
        let _ = write!(parameters, ", {ty} p{index}");
        let _ = write!(passed, ", p{index}");
    }
    format!("static void call_{name}(qjv_asm *a{parameters}) {{ qjv_{name}(a{passed}); }}\n")
}

/// Writes every instruction a few times in both languages and compares the bytes.
pub fn compare<M: Machine>(tools: &Tools)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    const IMMEDIATES: [i64; 12] =
        [0, 1, -1, 7, 127, -128, 2047, -2049, 4096, 65535, -0x1234_5678, 0x1234_5678_9abc_def0];
    let mut region = vec![0_u8; LENGTH];
    let mut workspace = Workspace::<M, 1024, 4096, 64>::with_room();
    let mut params = [Param::NONE];
    let place = Region::from(&mut region[..]).executed_at(ADDRESS);
    let mut asm = Asm::begin(place, &mut workspace, "%p", &mut params, Kind::Calls).expect("there is room");
    let (label, procedure) = (asm.label(), asm.label());
    let (mut definitions, mut calls) = (String::new(), "    (void)qjv_label(&a);\n".to_owned());
    let (ints, floats) = (M::INT.temp, M::FLOAT.temp);
    let mut turn = 0;
    let all = INSTRUCTIONS.iter().chain(EXTENSIONS).enumerate();
    // Compilers take long over the corpus: a quick run has a third of the instructions, once each, which the
    // machine's name chooses. A full run has all of them.
    let thirds = if is_quick() { 3 } else { 1 };
    let third = M::NAME.bytes().map(usize::from).sum::<usize>() % thirds;
    for (index, instruction) in all.filter(|(index, _)| index % thirds == third) {
        for time in 0..if is_quick() { 1 } else { 4 } {
            turn += 1;
            let int = |which: usize| M::Reg::from_number(ints[(turn * 7 + which) % ints.len()]);
            let float = |which: usize| M::Float::from_number(floats[(turn * 5 + which) % floats.len()]);
            let mut immediate = IMMEDIATES[turn % IMMEDIATES.len()];
            if M::LONG_BITS == 32 || !matches!(instruction.ty, Type::L | Type::Ul | Type::P | Type::D) {
                immediate = i64::from(immediate as i32);
            }
            if M::LONG_BITS == 32 && matches!(instruction.ty, Type::Ul | Type::P) {
                immediate &= 0xffff_ffff;
            }
            if instruction.family == Family::Shift {
                immediate &= 31;
            }
            // Some turns repeat a register, so that the special cases are compared too.
            let operands = Operands {
                d: int(0),
                s: int(turn % 2),
                t: int(turn % 3),
                fd: float(0),
                fs: float(turn % 2),
                ft: float(turn % 3),
                immediate,
            };
            let features = if turn % 2 == 0 { M::FEATURES } else { Features::NONE };
            asm.use_features(features);
            let _ = writeln!(calls, "    qjv_use_features(&a, {}u);", features.bits());
            emit_any(&mut asm, index, &operands, if instruction.op == "jal" { procedure } else { label });
            let arguments = arguments::<M>(instruction, &operands);
            if time == 0 {
                definitions += &definition(instruction.name, &arguments);
            }
            let values: String = arguments.iter().map(|(_, value)| format!(", {value}")).collect();
            let _ = writeln!(calls, "    call_{}(&a{values});", instruction.name);
        }
    }
    add_calls(&mut asm, &mut calls);
    add_caller_saves(&mut asm, &mut calls);
    asm.procedure(procedure, M::Reg::from_number(ints[0]));
    asm.jal(procedure);
    asm.call("%l", Target::Itself, &[Argument::Reg(M::Reg::from_number(ints[1]))]).expect("it matches");
    let _ = writeln!(
        calls,
        "    qjv_procedure(&a, label_at(1), qjv_reg({}));\n    qjv_jal(&a, label_at(1));\n\
         \x20   {{ const qjv_argument list[] = {{qjv_in(qjv_reg({}))}}; qjv_call(&a, \"%l\", qjv_itself(), list, 1); }}",
        ints[0], ints[1]
    );
    let (r, s) = (M::Reg::from_number(ints[0]), M::Reg::from_number(ints[1]));
    for immediate in [1, 0x1234_5678] {
        schedule::delay(&mut asm, |asm| asm.blti(r, s, label), |asm| asm.addii(s, s, immediate));
        let (r, s) = (r.number(), s.number());
        let _ = writeln!(
            calls,
            "    qjv_schedule_delay(&a, qjv_blti(&a, qjv_reg({r}), qjv_reg({s}), label), \
             qjv_addii(&a, qjv_reg({s}), qjv_reg({s}), {immediate}));"
        );
    }
    asm.bind(label);
    asm.retv();
    let code = asm.end().expect("the corpus is valid");
    let rust = &region[code.offset..code.offset + code.length];
    same(tools, M::NAME, "vcode.h", &definitions, &calls, rust);
}

/// Calls and tail calls of some signatures: arguments that change places, cross from file to file, go to the stack.
fn add_calls<M: Machine>(asm: &mut Asm<'_, M>, calls: &mut String) {
    const SIGNATURES: [(&str, &str); 10] = [
        ("", ""),
        ("%l%l%i%u", "1023"),
        ("%us%c%l%p%i", "c1cc0"),
        ("%d%f%l%d", "1021"),
        ("%c%uc%s%us%c%uc%s%us%c%uc%s%us", "012301230123"),
        ("%p...%d%i%d%l%d%d%d%d%d%d", "10101023012"),
        ("%f%d%p...%d%uc%d", "100101"),
        ("%l%d%f%i", "2130"),
        ("%l%l%l%l%l%l%l%l%l%d%f%c", "0123012c3012"),
        ("%d%d%d%d%d%d%d%d%d%f%f%f%l", "1032103210320"),
    ];
    for (turn, (signature, arguments)) in SIGNATURES.iter().enumerate() {
        let types: Vec<quaject_vcode::Type> =
            quaject_vcode::Signature::from(*signature).types().map(|ty| ty.expect("they are well-formed")).collect();
        let (mut rust, mut list) = (Vec::new(), String::new());
        for (ty, letter) in types.iter().zip(arguments.bytes()) {
            let at = usize::from(letter.wrapping_sub(b'0'));
            if letter == b'c' {
                rust.push(Argument::Constant(-1234));
                list.push_str("qjv_value(-1234), ");
            } else if ty.is_float() {
                let number = M::FLOAT.args.get(at).copied().unwrap_or(M::FLOAT.temp[at]);
                rust.push(Argument::Float(M::Float::from_number(number)));
                let _ = write!(list, "qjv_in(qjv_reg({number})), ");
            } else {
                rust.push(Argument::Reg(M::Reg::from_number(M::INT.args[at])));
                let _ = write!(list, "qjv_in(qjv_reg({})), ", M::INT.args[at]);
            }
        }
        let target = M::INT.temp[turn % 3];
        for (target, text) in [
            (Target::Address(0x1234_5678), "qjv_at_address(0x12345678)".to_string()),
            (Target::Reg(M::Reg::from_number(target)), format!("qjv_in(qjv_reg({target}))")),
        ] {
            let count = types.len();
            asm.call(*signature, target, &rust).expect("they match");
            let _ = write!(calls, "    {{ const qjv_argument list[] = {{{list}qjv_value(0)}};");
            let _ = write!(calls, " qjv_call(&a, \"{signature}\", {text}, list, {count});");
            if asm.tail_call(*signature, target, &rust).is_ok() {
                let _ = write!(calls, " qjv_tail_call(&a, \"{signature}\", {text}, list, {count});");
            }
            calls.push_str(" }\n");
        }
    }
}

/// Runs functions that the header writes: with many parameters and large frames, and with conventions of a client's.
pub fn run_programs(tools: &Tools) {
    for name in ["frames", "conventions", "narrow", "conversions", "variadic", "constants", "procedures"] {
        let folder = scratch_folder(tools.prefix, name);
        let binary = folder.join(name);
        for mut command in compilers(tools) {
            command.args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-Wall", "-Wextra", "-Werror", "-I"]);
            command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/vcode/include")).arg("-o").arg(&binary);
            command.arg(format!("{}/../../crates/vcode/tests/c/{name}.c", env!("CARGO_MANIFEST_DIR")));
            if tools.sysroot.is_none() && tools.qemu.is_some() {
                command.arg("-static");
            }
            let output = command.output().expect("the compiler starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            run(tools, &binary);
        }
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
    }
}

/// The machine's gcc, and clang where it finds the headers of the machine: the two rely on different parts of a
/// convention.
fn compilers(tools: &Tools) -> Vec<Command> {
    let mut commands = vec![Command::new(compiler(tools))];
    let target = match tools.prefix {
        "" => "x86_64-linux-gnu",
        "aarch64-linux-gnu-" | "mips-linux-gnu-" | "sparc64-linux-gnu-" | "powerpc64le-linux-gnu-" => {
            tools.prefix.trim_end_matches('-')
        }
        _ => return commands,
    };
    if Command::new("clang").arg("--version").output().is_ok() {
        let mut clang = Command::new("clang");
        clang.arg(format!("--target={target}"));
        commands.push(clang);
    }
    commands
}

/// Calls with more persistent registers than the convention has, then with one less.
fn add_caller_saves<M: Machine>(asm: &mut Asm<'_, M>, calls: &mut String) {
    let mut last = 0;
    for _ in 0..M::INT.saved.len() + 2 {
        last = asm.getreg(Class::Persistent).expect("temporaries are used").number();
        let _ = writeln!(calls, "    {{ v_reg r; qjv_getreg(&a, &r, V_VAR); if (qjv_number(r) != {last}) a.ip = 0; }}");
    }
    for _ in 0..M::FLOAT.saved.len() + 2 {
        let number = asm.getfloat(Class::Persistent).expect("temporaries are used").number();
        let _ =
            writeln!(calls, "    {{ v_reg r; qjv_getfloat(&a, &r, V_VAR); if (qjv_number(r) != {number}) a.ip = 0; }}");
    }
    for given_back in [false, true] {
        if given_back {
            asm.putreg(M::Reg::from_number(last));
            let _ = writeln!(calls, "    qjv_putreg(&a, qjv_reg({last}));");
        }
        asm.call("", Target::Address(0x1234_5678), &[]).expect("they match");
        let _ = writeln!(calls, "    qjv_call(&a, \"\", qjv_at_address(0x12345678), 0, 0);");
    }
}

/// Compares what these calls in C write, in a function of one parameter that returns nothing, with what Rust wrote. The
/// calls may use the definitions.
pub fn same(tools: &Tools, name: &str, header: &str, definitions: &str, calls: &str, rust: &[u8]) {
    let mut program = format!(
        "#define QJV_MAX_FIXUPS 4096\n#define QJV_MAX_LABELS 1024\n#include <quaject/{header}>\n#include <stdio.h>\n\
         static inline __attribute__((unused)) float real32(uint32_t bits) {{ float value; memcpy(&value, &bits, 4); return value; }}\n\
         static inline __attribute__((unused)) v_label label_at(uint32_t index) {{ v_label label = {{index}}; return label; }}\n\
         static inline __attribute__((unused)) double real64(uint64_t bits) {{ double value; memcpy(&value, &bits, 8); return value; }}\n",
    );
    let _ = writeln!(program, "static uint8_t bytes[{LENGTH}];\nstatic qjv_function f;\n{definitions}");
    // In parts, because compilers take long over long functions.
    let lines: Vec<&str> = calls.lines().collect();
    let parts: Vec<String> = lines.chunks(50).map(|chunk| chunk.join("\n")).collect();
    for (index, part) in parts.iter().enumerate() {
        let _ = writeln!(
            program,
            "static void part{index}(qjv_asm *at, v_label label) {{\n    qjv_asm a = *at; (void)label;\n{part}\n    *at = a;\n}}"
        );
    }
    let _ = writeln!(
        program,
        "int main(void) {{\n    qjv_region region = {{bytes, {ADDRESS}, sizeof bytes}};\n    qjv_asm a; v_reg p; v_label label;\n\
         \x20   qjv_begin(&a, &f, region, \"%p\", &p, QJV_CALLS);\n    label = qjv_label(&a);"
    );
    for index in 0..parts.len() {
        let _ = writeln!(program, "    part{index}(&a, label);");
    }
    program.push_str(
        "    qjv_bind(&a, label);\n    qjv_retv(&a);\n    void *entry = qjv_end(&a);\n\
         \x20   if (!entry) { fprintf(stderr, \"error %d\\n\", f.error); return 1; }\n\
         \x20   uint8_t *at = bytes + ((uintptr_t)entry - f.execute);\n\
         \x20   return fwrite(at, 1, (size_t)(f.end - at), stdout) == 0;\n}\n",
    );
    same_output(tools, name, &program, rust);
}

/// Compares what a program in C prints with what Rust wrote.
pub fn same_output(tools: &Tools, name: &str, program: &str, rust: &[u8]) {
    let folder = scratch_folder(tools.prefix, "c");
    let (source, binary) = (folder.join("corpus.c"), folder.join("corpus"));
    std::fs::write(&source, program).expect("test files can be written");
    let own = compiler(tools);
    let c11: &[&str] = &["-std=c11"];
    let mut builds = vec![(own.as_str(), c11)];
    if tools.qemu.is_none() {
        // Everything that users have; the foreign machines have gcc alone.
        if !is_quick() {
            builds.push(("clang", c11));
            builds.push(("g++", &["-x", "c++", "-std=c++17"]));
        }
        builds.push(("clang++", &["-x", "c++", "-std=c++17"]));
    }
    for (compiler, language) in builds {
        let mut command = Command::new(compiler);
        command.args(language).args(["-D_GNU_SOURCE", "-O0", "-Wall", "-Wextra", "-Werror", "-I"]);
        command
            .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/vcode/include"))
            .arg("-o")
            .arg(&binary)
            .arg(&source);
        if tools.sysroot.is_none() && tools.qemu.is_some() {
            command.arg("-static");
        }
        let output = command.output().unwrap_or_else(|error| panic!("cannot start {compiler}: {error}"));
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
        let c = run(tools, &binary);
        if let Some(at) = rust.iter().zip(&c).position(|(rust, c)| rust != c) {
            let show = |bytes: &[u8]| format!("{:02x?}", &bytes[at & !3..(at + 16).min(bytes.len())]);
            panic!("{name} {compiler}: byte {at} of {} differs: {}, C {}", rust.len(), show(rust), show(&c));
        }
        assert_eq!(rust.len(), c.len(), "{name} {compiler}: the lengths differ");
    }
    std::fs::remove_dir_all(&folder).expect("the folder is ours");
}

/// What the program prints.
fn run(tools: &Tools, binary: &Path) -> Vec<u8> {
    let output = output_in_time(&mut emulated(tools, binary));
    assert!(output.status.success(), "{}: {}", binary.display(), String::from_utf8_lossy(&output.stderr));
    output.stdout
}
