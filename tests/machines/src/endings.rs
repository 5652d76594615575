//! How functions end, with a frame and without: run on every machine, and compared with what the C header writes. Where
//! a jump executes the instruction after it, taking a last jump back moves that instruction.

use std::fmt::Write as _;

use quaject_vcode::layers::schedule;
use quaject_vcode::{Asm, Class, Code, Core, Kind, Machine, Param, Region, Register, Workspace};

use crate::c_header::{ADDRESS, LENGTH, same_output};
use crate::harness::{Batch, Tools};

/// What a function does, with the one register that it has.
#[derive(Debug, Clone, Copy)]
enum Step {
    Set(i64),
    Add(i64),
    /// Branches to a label if the register holds this.
    IfEqual(i64, usize),
    Bind(usize),
    /// Copies the register to where results are returned.
    Deliver,
    Return,
    ReturnValue,
    /// A return along with which so much is added to the result.
    ReturnAdding(i64),
}

use Step::{Add, Bind, Deliver, IfEqual, Return, ReturnAdding, ReturnValue, Set};

/// A function and what it returns.
type Ending = (&'static str, i64, &'static [Step]);

/// The first three are as long as each other in a frame: none has a jump.
const ENDINGS: [Ending; 12] = [
    ("no return", 7, &[Set(7), Deliver]),
    ("a return", 7, &[Set(7), Deliver, Return]),
    ("a value", 7, &[Set(7), ReturnValue]),
    ("a return that adds", 9, &[Set(7), Deliver, ReturnAdding(2)]),
    ("a branch to the return", 7, &[Set(7), Deliver, IfEqual(7, 0), Set(8), Deliver, Bind(0), Return]),
    ("a branch to the return of a value", 7, &[Set(7), IfEqual(7, 0), Add(1), Bind(0), ReturnValue]),
    ("a branch in front of the return", 7, &[Set(7), IfEqual(8, 0), Add(1), Bind(0), Add(-1), ReturnValue]),
    ("a branch to the end", 7, &[Set(7), Deliver, IfEqual(7, 0), Add(1), ReturnValue, Bind(0)]),
    ("a branch to the end, not taken", 8, &[Set(7), Deliver, IfEqual(6, 0), Add(1), ReturnValue, Bind(0)]),
    ("two returns at the end", 7, &[Set(7), IfEqual(7, 0), Add(2), ReturnValue, Bind(0), ReturnValue, ReturnValue]),
    (
        "the second of three",
        6,
        &[
            Set(5),
            IfEqual(5, 0),
            ReturnValue,
            Bind(0),
            Add(1),
            IfEqual(5, 1),
            ReturnValue,
            Bind(1),
            Set(9),
            ReturnValue,
        ],
    ),
    (
        "the third of three",
        9,
        &[Set(5), IfEqual(5, 0), ReturnValue, Bind(0), Add(1), IfEqual(6, 1), Return, Bind(1), Set(9), ReturnValue],
    ),
];

/// Writes a function whose register is one that it has to preserve, or a temporary.
fn write<M: Machine>(region: Region<'_>, framed: bool, steps: &[Step]) -> (Code, M::Reg)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let mut workspace = Workspace::<M>::new();
    let mut params = [Param::NONE];
    let mut asm = Asm::<M>::begin(region, &mut workspace, "%p", &mut params, Kind::Leaf).expect("there is room");
    let x = if framed {
        let saved = M::Reg::from_number(M::INT.saved[0]);
        asm.claim(saved).expect("it is free");
        saved
    } else {
        asm.getreg(Class::Temporary).expect("one is free")
    };
    let labels = [asm.label(), asm.label()];
    let result = M::RESULT;
    for step in steps {
        match *step {
            Set(value) => asm.setl(x, value),
            Add(value) => asm.addli(x, x, value),
            IfEqual(value, label) => asm.beqli(x, value, labels[label]),
            Bind(label) => asm.bind(labels[label]),
            Deliver => asm.movl(result, x),
            Return => asm.retv(),
            ReturnValue => asm.retl(x),
            ReturnAdding(value) => {
                schedule::delay(&mut asm, |asm| asm.retv(), |asm| asm.addli(result, result, value));
            }
        }
    }
    (asm.end().expect("the function is valid"), x)
}

/// The same in C.
fn in_c<M: Machine>(framed: bool, x: M::Reg, steps: &[Step]) -> String {
    let (x, result) = (format!("qjv_reg({})", x.number()), format!("qjv_reg({})", M::RESULT.number()));
    let mut text = String::from("    qjv_begin(&a, &f, region, \"%p\", &p, QJV_LEAF);\n");
    if framed {
        let _ = writeln!(text, "    if (!qjv_claim(&a, {x})) return 1;");
    }
    text.push_str("    label[0] = qjv_label(&a);\n    label[1] = qjv_label(&a);\n");
    for step in steps {
        let _ = match *step {
            Set(value) => writeln!(text, "    qjv_setl(&a, {x}, {value});"),
            Add(value) => writeln!(text, "    qjv_addli(&a, {x}, {x}, {value});"),
            IfEqual(value, label) => writeln!(text, "    qjv_beqli(&a, {x}, {value}, label[{label}]);"),
            Bind(label) => writeln!(text, "    qjv_bind(&a, label[{label}]);"),
            Deliver => writeln!(text, "    qjv_movl(&a, {result}, {x});"),
            Return => writeln!(text, "    qjv_retv(&a);"),
            ReturnValue => writeln!(text, "    qjv_retl(&a, {x});"),
            ReturnAdding(value) => {
                writeln!(text, "    qjv_schedule_delay(&a, qjv_retv(&a), qjv_addli(&a, {result}, {result}, {value}));")
            }
        };
    }
    text.push_str(
        "    entry = qjv_end(&a);\n    if (!entry) return 1;\n    at = bytes + ((uintptr_t)entry - f.execute);\n\
         \x20   if (!fwrite(at, 1, (size_t)(f.end - at), stdout)) return 1;\n",
    );
    text
}

/// Adds the functions to what is run, and compares them with those of the C header.
pub fn add<M: Machine>(batch: &mut Batch<'_>, tools: &Tools)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let (mut rust, mut calls) = (Vec::new(), String::new());
    for framed in [true, false] {
        let mut lengths = Vec::new();
        for (name, expected, steps) in ENDINGS {
            let name = format!("{name}, framed: {framed}");
            batch.add_built::<M>(&name, expected, |region, _| write::<M>(region, framed, steps).0);
            let mut region = vec![0_u8; LENGTH];
            let (code, x) = write::<M>(Region::from(&mut region[..]).executed_at(ADDRESS), framed, steps);
            rust.extend_from_slice(&region[code.offset..code.offset + code.length]);
            calls.push_str(&in_c::<M>(framed, x, steps));
            lengths.push(code.length);
        }
        if framed {
            assert_eq!(lengths[..3], [lengths[0]; 3], "a return at the end is no jump");
        }
    }
    let program = format!(
        "#include <quaject/vcode.h>\n#include <stdio.h>\nstatic uint8_t bytes[{LENGTH}];\nstatic qjv_function f;\n\n\
         int main(void) {{\n    qjv_region region = {{bytes, {ADDRESS}, sizeof bytes}};\n    qjv_asm a; v_reg p; \
         v_label label[2]; void *entry; uint8_t *at;\n{calls}    return 0;\n}}\n"
    );
    same_output(tools, M::NAME, &program, &rust);
}
