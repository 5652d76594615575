//! Functions in text form: every instruction for every machine, diagnostics, and stepping.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::fmt::Write as _;

use quaject_diagnostic::Code as _;
use quaject_test_support::Random;
use quaject_vcode::text::step::{ParameterValue, Stepper};
use quaject_vcode::text::{MACHINES, Part, read};
use quaject_vcode::{Family, Instruction, OperandKind, Type};

const SUM: &str = "
function sum %p%l leaf
  reg total, value
  local kept l
  setl total, 0
  bleli a1, 0, done
again:
  ldli value, a0, 0
  addl total, total, value
  stl_local total, kept
  addpi a0, a0, 8
  subli a1, a1, 1
  bgtli a1, 0, again
done:
  ldl_local total, kept
  retl total
";

/// A line with this instruction, on variables that the function of the test has.
fn line(instruction: &Instruction) -> String {
    let mut operands = Vec::new();
    for (index, operand) in instruction.operands.iter().enumerate() {
        operands.push(match operand {
            OperandKind::Reg(_) => ["x", "y", "z"][index % 3].to_string(),
            OperandKind::Float(_) => ["f", "g", "h"][index % 3].to_string(),
            OperandKind::Immediate(_) if instruction.family == Family::Shift => "7".into(),
            OperandKind::Immediate(Type::F | Type::D) => "-2.5".into(),
            OperandKind::Immediate(Type::U) => "4294967295".into(),
            OperandKind::Immediate(_) => "0x12345".into(),
            OperandKind::Offset => "-40".into(),
            OperandKind::Local => "kept".into(),
            OperandKind::Label if instruction.name == "jal" => "local".into(),
            OperandKind::Label => "end".into(),
        });
    }
    format!("  {} {}", instruction.name, operands.join(", ")).trim_end().to_string()
}

#[test]
fn every_instruction_is_read_and_assembled_for_every_machine() {
    let mut text = String::from("function all calls\n  reg x, y, z\n  float f, g, h\n  local kept d\n");
    for instruction in Instruction::all() {
        let _ = writeln!(text, "{}", line(instruction));
    }
    text.push_str("end:\n  retv\nprocedure local y\n  jr y\n");
    let (functions, diagnostics) = read(&text);
    assert_eq!(diagnostics, []);
    let [function] = &functions[..] else { panic!("there is one function") };
    assert_eq!(function.statements.len(), Instruction::all().len() + 2);
    for target in &MACHINES {
        let listing = (target.assemble)(function).unwrap_or_else(|error| panic!("{}: {error}", target.name));
        let rows = listing.rows(target.table);
        assert!(rows.iter().all(|row| row.text != "?"), "{}", target.name);
        assert_eq!(rows.iter().map(|row| row.bytes.len()).sum::<usize>(), listing.bytes.len());
        assert!(rows.iter().any(|row| row.part == Part::Statement(100)));
    }
}

#[test]
fn procedures_have_a_name_and_a_variable() {
    let (functions, diagnostics) = read(
        "function f %l calls\n reg link\n jal plain\n jal ten_more\n retl a0\nplain:\n retv\nprocedure ten_more link\n jr link\n\
         procedure link\nprocedure other nothing\nfunction g %i...%i\n retv\n",
    );
    assert_eq!(functions.len(), 2);
    let found: Vec<String> =
        diagnostics.iter().map(|found| format!("{} {}", found.code.name(), found.message)).collect();
    assert_eq!(
        found,
        [
            "V0004 `plain` is no procedure",
            "V0001 the procedure has no variable for its return address",
            "V0002 no variable named `nothing`",
            "V0001 a variadic function cannot be written: `%i...%i`",
        ]
    );
}

#[test]
fn tables_and_extensions_are_stepped_through() {
    let text = "
function pick %ul leaf
  reg value
  jtab a0
  j none
  j swapped
  setu value, 7
none:
  retl a0
swapped:
  setu value, 0x01020304
  bswapu value, value
  addoui value, value, 0xfc000000, over
  retu value
over:
  movnzu value, a0, a0
  retu value
";
    let (functions, diagnostics) = read(text);
    assert_eq!(diagnostics, []);
    let run = |index: u64| {
        let mut stepper = Stepper::new(&functions[0], &[ParameterValue::Bits(index)]).expect("one argument");
        loop {
            match stepper.step() {
                Ok(Some(step)) if step.returned.is_some() => return step.returned.unwrap(),
                Ok(Some(_)) => {}
                Ok(None) => return "nothing".into(),
                Err(stuck) => return stuck.reason,
            }
        }
    };
    // 0x04030201 + 0xfc000000 overflows.
    assert_eq!([run(0), run(1), run(2)], ["0", "1", "the table has no jump 2"]);
}

#[test]
fn all_errors_of_a_text_are_reported() {
    let text =
        "x\nfunction a %q\n addi a, b\n addz a,b,c\nfoo:\nfoo:\n j bar\n seti a0, 99999999999\nreg 1x\nlocal v w";
    let (_, diagnostics) = read(text);
    let found: Vec<String> = diagnostics
        .iter()
        .map(|found| {
            let part = &text[found.span.start as usize..found.span.end as usize];
            format!("{} {part}: {}", found.code.name(), found.located_message(text))
        })
        .collect();
    assert_eq!(
        found,
        [
            "V0001 x: line 1, column 1: `x` is outside of a function",
            "V0001 %q: line 2, column 12: the signature is malformed: `%q`",
            "V0004 addi: line 3, column 2: `addi` has 2 operands",
            "V0002 addz: line 4, column 2: no instruction named `addz`",
            "V0003 foo: line 6, column 1: `foo` is declared twice",
            "V0002 bar: line 7, column 4: no label named `bar`",
            "V0002 a0: line 8, column 7: no variable named `a0`",
            "V0004 99999999999: line 8, column 11: `99999999999` is not a constant of the type i",
            "V0001 1x: line 9, column 5: `1x` is not a name",
            "V0002 w: line 10, column 9: `w` is not a type",
        ]
    );
}

#[test]
fn mangled_text_never_panics() {
    let mut random = Random(11);
    let pieces =
        ["%", "%i", ",", ":", "#", "-", "0x", "9", "\u{e9}", " ", "\n", "a0", "function", "reg", "local", "leaf", "\0"];
    for _ in 0..if std::env::var("QJ_TEST").as_deref() == Ok("quick") { 300 } else { 5000 } {
        let mut text: Vec<char> = SUM.chars().collect();
        for _ in 0..1 + random.index(6) {
            let at = random.index(text.len());
            let piece = pieces[random.index(pieces.len())];
            text.splice(at..(at + random.index(5)).min(text.len()), piece.chars());
        }
        let text: String = text.into_iter().collect();
        let (functions, _) = read(&text);
        for function in &functions {
            for target in &MACHINES {
                // The result does not matter; the assembler must not panic.
                if let Ok(listing) = (target.assemble)(function) {
                    listing.rows(target.table);
                }
            }
            let arguments: Vec<ParameterValue> =
                function.parameters.iter().map(|_| ParameterValue::Bytes(vec![1; 16])).collect();
            let mut stepper = Stepper::new(function, &arguments).expect("as many arguments as parameters");
            for _ in 0..50 {
                if !matches!(stepper.step(), Ok(Some(_))) {
                    break;
                }
            }
        }
    }
}

/// Steps to the end; every step as one line.
fn steps(text: &str, arguments: &[ParameterValue]) -> Vec<String> {
    let (functions, diagnostics) = read(text);
    assert_eq!(diagnostics, []);
    let mut stepper = Stepper::new(&functions[0], arguments).expect("the arguments match");
    let mut lines = Vec::new();
    loop {
        match stepper.step() {
            Ok(None) => return lines,
            Ok(Some(step)) => {
                let written: Vec<String> = step.written.iter().map(|(name, value)| format!("{name}={value}")).collect();
                let jumped = if step.jumped { " jumps" } else { "" };
                let returned = step.returned.map_or(String::new(), |value| format!(" returns {value}"));
                let name = functions[0].statements[step.statement].instruction.name;
                lines.push(format!("{name} {}{jumped}{returned}", written.join(",")));
            }
            Err(stuck) => {
                lines.push(format!("stuck: {}", stuck.reason));
                return lines;
            }
        }
    }
}

#[test]
fn a_function_is_stepped_through_with_values_by_name() {
    let numbers = ParameterValue::Bytes([5_i64, -7].iter().flat_map(|number| number.to_ne_bytes()).collect());
    let lines = steps(SUM, &[numbers.clone(), ParameterValue::Bits(2)]);
    assert_eq!(
        lines,
        [
            "setl total=0",
            "bleli ",
            "ldli value=5",
            "addl total=5",
            "stl_local ",
            "addpi a0=&a0+8",
            "subli a1=1",
            "bgtli  jumps",
            "ldli value=-7",
            "addl total=-2",
            "stl_local ",
            "addpi a0=&a0+16",
            "subli a1=0",
            "bgtli ",
            "ldl_local total=-2",
            "retl  returns -2",
        ]
    );
    let beyond = steps(SUM, &[numbers, ParameterValue::Bits(3)]);
    assert_eq!(beyond.last().map(String::as_str), Some("stuck: &a0+16 is no memory of the function's"));
}

#[test]
fn undefined_behaviour_is_reported_instead_of_executed() {
    let divide = "function f %i%i leaf\n divi a0, a0, a1\n reti a0\n";
    let bits = |value: i32| ParameterValue::Bits(i64::from(value) as u64);
    assert_eq!(steps(divide, &[bits(7), bits(-2)]), ["divi a0=-3", "reti  returns -3"]);
    assert_eq!(steps(divide, &[bits(7), bits(0)]), ["stuck: division by zero is undefined"]);
    assert_eq!(steps(divide, &[bits(i32::MIN), bits(-1)]), ["stuck: the quotient does not fit"]);
    let shift = "function f %l%l leaf\n lshl a0, a0, a1\n retl a0\n";
    assert_eq!(steps(shift, &[bits(1), bits(64)]), ["stuck: a shift by 64 of 64 bits is undefined"]);
    assert_eq!(steps("function f leaf\n nop\n", &[]), ["nop ", "stuck: the function ends without a return"]);
    let float = "function f %d leaf\n float h\n setd h, 0.5\n muld a0, a0, h\n retd a0\n";
    assert_eq!(
        steps(float, &[ParameterValue::Bits(3.0_f64.to_bits())]),
        ["setd h=0.5", "muld a0=1.5", "retd  returns 1.5"]
    );
}
