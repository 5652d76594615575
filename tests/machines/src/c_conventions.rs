//! Functions with random conventions and random contents, written by both languages: the C header hands out the same
//! registers, writes the same bytes and refuses with the same errors.

use std::fmt::Write as _;

use quaject_test_support::Random;
use quaject_vcode::{
    Argument, Asm, Class, Convention, Core, Error, Kind, Machine, Param, Region, Register, RegisterFile, Scratch,
    Signature, Target, Type, Workspace,
};

use crate::c_header::{ADDRESS, LENGTH, same_output};
use crate::harness::Tools;
use crate::is_quick;

fn shuffled(random: &mut Random, mut numbers: Vec<u8>) -> Vec<u8> {
    for index in (1..numbers.len()).rev() {
        numbers.swap(index, random.index(index + 1));
    }
    numbers
}

fn signature(random: &mut Random) -> String {
    (0..random.index(7)).map(|_| random.pick(&["%l", "%i", "%p", "%u", "%d", "%f", "%c", "%uc", "%s", "%us"])).collect()
}

/// The registers of one file, divided at random, and the C code that declares the division.
fn lists(random: &mut Random, own: &RegisterFile, file: &str, c: &mut String) -> RegisterFile {
    let all = shuffled(random, own.temp.iter().chain(own.saved).copied().collect());
    // Mostly a few change their class; sometimes all are of one.
    let kept = random.index(4);
    let (mut temp, mut saved) = (Vec::new(), Vec::new());
    let _ = write!(c, "    memset(&mine.{file}, 0, sizeof mine.{file});\n    {{");
    for number in &all {
        let class = match random.index(8) {
            0 => 0,
            1 if kept != 0 => 1,
            2 if kept != 1 => 2,
            _ if kept < 2 => kept + 1,
            _ => 1 + usize::from(own.saved.contains(number)),
        };
        match class {
            0 => continue,
            1 => temp.push(*number),
            _ => saved.push(*number),
        }
        let _ = write!(c, " qjv_classify(&mine.{file}, qjv_reg({number}), {});", ["V_TEMP", "V_VAR"][class - 1]);
    }
    // Some are classified twice: the last word counts.
    let args = match random.index(3) {
        0 => own.args.to_vec(),
        _ => shuffled(random, all)[..random.index(own.args.len() + 1)].to_vec(),
    };
    let list: String = args.iter().map(|number| format!("qjv_reg({number}), ")).collect();
    let count = args.len();
    let _ = writeln!(c, " v_reg args[] = {{{list}qjv_reg(0)}}; qjv_carry_arguments(&mine.{file}, args, {count}); }}");
    RegisterFile::new(temp.leak(), saved.leak(), args.leak())
}

/// Writes one function in both languages; its code, or the error.
fn function<M: Machine>(random: &mut Random, region: &mut [u8], c: &mut String) -> Result<Vec<u8>, Error>
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    c.push_str("    mine = qjv_own_convention();\n");
    let int = lists(random, &M::INT, "ints", c);
    let float = lists(random, &M::FLOAT, "floats", c);
    let scratch = [Scratch::Free, Scratch::Preserved][random.index(2)];
    if scratch == Scratch::Preserved {
        c.push_str("    mine.scratch = QJV_SCRATCH_PRESERVED;\n");
    }
    let convention: &'static Convention =
        Box::leak(Box::new(Convention { int, float, place: M::CONVENTION.place, scratch }));
    let (kind, text) = [(Kind::Leaf, "QJV_LEAF"), (Kind::Calls, "QJV_CALLS")][random.index(2)];
    let signature = signature(random);
    let _ = writeln!(c, "    qjv_begin_with(&a, &f, region, \"{signature}\", p, {text}, &mine);");
    let types = types(&signature);
    let mut params = vec![Param::NONE; types.len()];
    let mut workspace = Workspace::<M>::new();
    let place = Region::from(&mut *region).executed_at(ADDRESS);
    let mut asm = Asm::<M>::begin_with(place, &mut workspace, &signature[..], &mut params, kind, convention)?;
    let (mut ints, mut floats) = (Vec::new(), Vec::new());
    for (index, (param, ty)) in params.iter().zip(&types).enumerate() {
        let number = if ty.is_float() { param.float().number() } else { param.reg().number() };
        if ty.is_float() {
            floats.push(number)
        } else {
            ints.push(number)
        }
        let _ = writeln!(c, "    if (qjv_number(p[{index}]) != {number}) return 1;");
    }
    let mut refused = None;
    for _ in 0..2 + random.index(12) {
        step::<M>(random, &mut asm, kind, &mut ints, &mut floats, &mut refused, c);
    }
    match ints.first() {
        Some(number) if random.index(2) == 0 => {
            asm.retl(M::Reg::from_number(*number));
            let _ = writeln!(c, "    qjv_retl(&a, qjv_reg({number}));");
        }
        Some(_) | None => {
            asm.retv();
            c.push_str("    qjv_retv(&a);\n");
        }
    }
    let code = asm.end();
    if let Some(error) = refused {
        return Err(error);
    }
    let code = code?;
    Ok(region[code.offset..code.offset + code.length].to_vec())
}

fn types(signature: &str) -> Vec<Type> {
    Signature::from(signature).types().map(|ty| ty.expect("signatures are well-formed")).collect()
}

/// Takes, gives back, claims or sets registers, makes a local, or calls.
fn step<M: Machine>(
    random: &mut Random,
    asm: &mut Asm<'_, M>,
    kind: Kind,
    ints: &mut Vec<u8>,
    floats: &mut Vec<u8>,
    refused: &mut Option<Error>,
    c: &mut String,
) where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let (class, name) = [(Class::Temporary, "V_TEMP"), (Class::Persistent, "V_VAR")][random.index(2)];
    let got = |got: Option<u8>, how: String, into: &mut Vec<u8>, c: &mut String| match got {
        Some(number) => {
            into.push(number);
            let _ = writeln!(c, "    if (!{how} || qjv_number(r) != {number}) return 1;");
        }
        None => _ = writeln!(c, "    if ({how}) return 1;"),
    };
    match random.index(9) {
        0..=2 => {
            let register = asm.getreg(class).ok().map(M::Reg::number);
            got(register, format!("qjv_getreg(&a, &r, {name})"), ints, c);
        }
        3 | 4 => {
            let register = asm.getfloat(class).ok().map(M::Float::number);
            got(register, format!("qjv_getfloat(&a, &r, {name})"), floats, c);
        }
        5 => {
            let special = [M::STACK.number(), M::SCRATCH.number()];
            let numbers: Vec<u8> = M::INT.temp.iter().chain(M::INT.saved).chain(&special).copied().collect();
            let number = numbers[random.index(numbers.len())];
            let claimed = asm.claim(M::Reg::from_number(number)).is_ok().then_some(number);
            got(claimed, format!("((r = qjv_reg({number})), qjv_claim(&a, r))"), ints, c);
        }
        6 => {
            if let Some(number) = ints.pop() {
                asm.putreg(M::Reg::from_number(number));
                let _ = writeln!(c, "    qjv_putreg(&a, qjv_reg({number}));");
            }
        }
        7 => {
            let bytes = 8 * random.index(50) as u32;
            let local = asm.local_bytes(bytes + 8, 8);
            c.push_str("    local = qjv_local_bytes(&f, ");
            let _ = writeln!(c, "{}, 8);", bytes + 8);
            if let Some(number) = ints.last() {
                asm.stl_local(M::Reg::from_number(*number), local);
                let _ = writeln!(c, "    qjv_stl_local(&a, qjv_reg({number}), local);");
            }
        }
        _ => call::<M>(random, asm, kind, ints, floats, refused, c),
    }
}

/// A call, or a tail call, of what is in registers; of constants where there is none.
fn call<M: Machine>(
    random: &mut Random,
    asm: &mut Asm<'_, M>,
    kind: Kind,
    ints: &[u8],
    floats: &[u8],
    refused: &mut Option<Error>,
    c: &mut String,
) {
    let signature = signature(random);
    let (mut list, mut arguments) = (String::new(), Vec::new());
    for ty in types(&signature) {
        let from = if ty.is_float() { floats } else { ints };
        if !from.is_empty() && (ty.is_float() || random.index(3) > 0) {
            let number = from[random.index(from.len())];
            let _ = write!(list, "qjv_in(qjv_reg({number})), ");
            arguments.push(if ty.is_float() {
                Argument::Float(M::Float::from_number(number))
            } else {
                Argument::Reg(M::Reg::from_number(number))
            });
        } else {
            list.push_str("qjv_value(77), ");
            arguments.push(Argument::Constant(77));
        }
    }
    let count = arguments.len();
    let target = Target::Address(0x1234_5678);
    let (result, name) = match kind {
        Kind::Calls => (asm.call(&signature[..], target, &arguments), "call"),
        Kind::Leaf | Kind::Naked => (asm.tail_call(&signature[..], target, &arguments), "tail_call"),
    };
    // Errors of calls stick in C.
    *refused = refused.or(result.err());
    let _ = writeln!(
        c,
        "    {{ const qjv_argument list[] = {{{list}qjv_value(0)}}; \
         qjv_{name}(&a, \"{signature}\", qjv_at_address(0x12345678), list, {count}); }}"
    );
}

/// The number of an error in C.
fn in_c(error: Error) -> &'static str {
    match error {
        Error::RegisterTaken => "QJV_ERROR_REGISTER_TAKEN",
        Error::ResultPreserved => "QJV_ERROR_RESULT_PRESERVED",
        Error::Place => "QJV_ERROR_PLACE",
        Error::Registers => "QJV_ERROR_REGISTERS",
        Error::Arguments => "QJV_ERROR_ARGUMENTS",
        other => panic!("no function of these has the error `{other}`"),
    }
}

/// Writes functions in both languages and compares them.
pub fn compare<M: Machine>(tools: &Tools)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut rust, mut parts, mut calls) = (Vec::new(), String::new(), String::new());
    let mut region = vec![0_u8; LENGTH];
    let mut errors = 0;
    for index in 0..if is_quick() { 60 } else { 400 } {
        let _ = writeln!(parts, "static int part{index}(void) {{");
        let end = match function::<M>(&mut random, &mut region, &mut parts) {
            Ok(code) => {
                rust.extend_from_slice(&code);
                "    return written();\n}\n\n".to_owned()
            }
            Err(error) => {
                errors += 1;
                format!("    return qjv_end(&a) != 0 || f.error != {};\n}}\n\n", in_c(error))
            }
        };
        parts.push_str(&end);
        let _ = writeln!(
            calls,
            "    if (part{index}()) {{ fprintf(stderr, \"part {index}: error %d\\n\", (int)f.error); return 1; }}"
        );
    }
    assert!(errors > 5 && !rust.is_empty(), "{}: {errors} errors", M::NAME);
    let program = format!(
        "#include <quaject/vcode.h>\n#include <stdio.h>\nstatic uint8_t bytes[{LENGTH}];\nstatic qjv_function f;\n\
         static qjv_asm a;\nstatic v_reg p[8], r;\nstatic v_variable local;\nstatic qjv_convention mine;\n\
         static const qjv_region region = {{bytes, {ADDRESS}, sizeof bytes}};\n\n\
         static int written(void) {{\n    void *entry = qjv_end(&a);\n    uint8_t *at = bytes + ((uintptr_t)entry - f.execute);\n    \
         return !entry || fwrite(at, 1, (size_t)(f.end - at), stdout) == 0;\n}}\n\n\
         {parts}int main(void) {{\n    (void)r, (void)local;\n{calls}    return 0;\n}}\n"
    );
    same_output(tools, M::NAME, &program, &rust);
}
