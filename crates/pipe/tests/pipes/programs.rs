//! Steps and handlers in text form: their effects, and the diagnostics about malformed ones.

use quaject_pipe::cross;
use quaject_pipe::handler::{Handler, Verdict};
use quaject_pipe::ir::{Element, Instruction, Operand, Operation, Order, Program, Register};
use quaject_pipe::{Composer, Definitions, Error, Pipe, Step, UserStep, read_pipe};
use quaject_test_support::Random;

use quaject_vcode::Features;

fn definitions(text: &str) -> Definitions {
    let (found, diagnostics) = Definitions::read(text);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    found
}

/// The diagnostics about a text, one per line.
fn diagnostics(text: &str) -> Vec<String> {
    Definitions::read(text)
        .1
        .iter()
        .map(|found| {
            let part = &text[found.span.start as usize..found.span.end as usize];
            let help = found.help.as_deref().unwrap_or_default();
            format!("{} ({}); {help}", found.located_message(text), part.chars().count())
        })
        .collect()
}

fn compose(text: &str, steps: &[UserStep]) -> Pipe {
    let (steps, diagnostics) = read_pipe(text, steps);
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    Composer::global().expect("the system gives code memory").compose(&steps).expect("the steps are a pipe")
}

#[test]
fn a_step_changes_elements_and_totals_them() {
    let found = definitions(
        "step bump u32be   # adds 1, keeps the largest\n  add r0, r0, 1\n  total max r0\nend\n\
         step low u8\n  and r0 r0 0x0f\nend\n",
    );
    let pipe = compose("bump | low | copy | checksum", &found.steps);
    let mut target = [0; 9];
    let report = pipe.run(&[0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xfe, 0x77], &mut target).expect("the lengths are equal");
    assert_eq!(target, [0, 0, 1, 0, 0xf, 0xf, 0xf, 0xf, 7]);
    assert_eq!(report.total(), Some(0xffff_ffff));
}

#[test]
fn errors_in_a_text_are_located() {
    for (text, wanted) in [
        ("step\n", "line 1, column 1: a step without a name (4); write `step NAME`"),
        (
            "step a\nend\n",
            "line 1, column 6: a step without an element (1); an element is u8, u16le, u16be, u32le, u32be, u64le or u64be",
        ),
        (
            "add r0, r0, 1\n",
            "line 1, column 1: this is outside of a definition (3); begin one: `step NAME u32be` or `handler NAME`",
        ),
        ("step a u8\n", "line 1, column 1: this definition has no `end` (4); write `end` below its last line"),
        (
            "step a u8\n  add r0, r1, 1\nend\n",
            "line 2, column 3: r1 is read and was never written (13); begin with `set r1, 0`",
        ),
        (
            "step a u8\n  add r0, r0, 300\nend\n",
            "line 2, column 3: 300 does not fit a register of 8 bits (15); use wider elements, or a smaller number",
        ),
        ("step copy u8\nend\n", "line 1, column 6: `copy` is a built-in step (4); give it another name"),
        ("step xor u8\nend\n", "line 1, column 6: `xor` is a built-in step (3); give it another name"),
        ("step a u8\nend\nstep a u8\nend\n", "line 3, column 6: a second step `a` (1); give it another name"),
        (
            "handler h\n  drop\nend\nhandler h\n  drop\nend\n",
            "line 4, column 9: a second handler `h` (1); give it another name",
        ),
        ("step a u16le\n  shl r0, r0, 16\nend\n", "line 2, column 3: a shift by 16 of 16 bits (14); shift by 0 to 15"),
        ("step a u16le\n  shl r0, r0, r0\nend\n", "line 2, column 3: a shift by a register (14); shift by a constant"),
        (
            "step a u8\n  accept\nend\n",
            "line 2, column 3: this instruction is for handlers (6); steps only compute, on one element at a time",
        ),
        (
            "step a u8\n  add r0, r0\nend\n",
            "line 2, column 7: 2 operands; `add` has 3 (6); for example `add r0, r1, 7`",
        ),
        ("step a u8\n  add r0, r8, 1\nend\n", "line 2, column 11: `r8` is not a register (2); a register is r0 to r7"),
        (
            "handler h\n  goto there\nend\n",
            "line 2, column 8: no label `there` (5); write `there:` before the target of the jump",
        ),
        (
            "handler h\n\u{e9}\n  \u{e9}: x\nend\n",
            "line 2, column 1: no instruction `\u{e9}` (1); set add sub mul and or xor min max shl shr, total in steps; load if goto deliver result reply send accept drop in handlers; on floating-point numbers add.f32 and others",
        ),
    ] {
        assert_eq!(diagnostics(text)[0], wanted, "{text}");
    }
    let all = diagnostics("handler h\n  add\n  frob r1\n  set r1, 99999999999999999999\nend\nstep b u7\nend\n");
    assert_eq!(all.len(), 4, "{all:#?}");
}

#[test]
fn errors_in_a_pipe_are_located() {
    for (text, wanted, help) in [
        ("", "line 1, column 1: nothing between two bars", "write a step, or remove a bar"),
        ("copy |", "line 1, column 7: nothing between two bars", "write a step, or remove a bar"),
        ("copy |  swap", "line 1, column 9: no step `swap`", "did you mean `swap16`?"),
        (
            "copy |\n aes",
            "line 2, column 2: no step `aes`",
            "there are copy, checksum, crc32c, swap16, swap32, swap64, count, xor",
        ),
        ("copy fast", "line 1, column 1: `copy` takes no argument; found `fast`", "put a bar between steps"),
        ("copy a b", "line 1, column 1: unexpected `b`", "put a bar between steps"),
    ] {
        let (_, diagnostics) = read_pipe(text, &[]);
        let found = (diagnostics[0].located_message(text), diagnostics[0].help.as_deref());
        assert_eq!(found, (wanted.to_string(), Some(help)));
    }
    for key in ["", "7", "0x", "0x1", "0x123456", "0x+1", "0xgg", "0x0102030405060708ff", "0x\u{e9}"] {
        let (steps, diagnostics) = read_pipe(&format!("xor {key}"), &[]);
        assert_eq!((steps.len(), diagnostics.len()), (0, 1), "{key}");
    }
}

const ECHO: &str = "
handler echo                     # replies with the words after the header, checked
  if lt r0, 4, short
  load u16be r1, 0               # how many bytes
  load u16be r2, 2               # their checksum
  deliver 0, 4, r1, 0, 16
  result r3, 1
  add r4, r2, r3
  if ne r4, 0xffff, short
  send u16be 0xbeef
  reply 4, r1
  accept
short:
  drop
end
";

#[test]
fn a_handler_checks_directs_and_replies() {
    let program = definitions(ECHO).handlers.remove(0);
    let handler = Handler::new(program, vec![compose("copy | checksum", &[])], 1).expect("it is right");
    let mut buffer = [0; 32];
    let mut reply = vec![9];
    let mut message = vec![0, 5, 0, 0, 1, 2, 3, 4, 5];
    let sum = !(0x0102 + 0x0304 + 0x0500_u16);
    message[2..4].copy_from_slice(&sum.to_be_bytes());
    let verdict = handler.run(&message, &mut [&mut buffer], &mut reply, 20);
    assert_eq!((verdict, &reply[..]), (Ok(Verdict::Accepted), &[9, 0xbe, 0xef, 1, 2, 3, 4, 5][..]));
    assert_eq!(buffer[16..22], [1, 2, 3, 4, 5, 0]);

    // A byte that is wrong, a length that is not there, a message that is too short, a buffer that is, fuel that is.
    let mut reply = Vec::new();
    message[8] ^= 1;
    assert_eq!(handler.run(&message, &mut [&mut buffer], &mut reply, 20), Ok(Verdict::Dropped));
    message[1] = 6;
    let rejected = Ok(Verdict::Rejected { instruction: 3 });
    assert_eq!(handler.run(&message, &mut [&mut buffer], &mut reply, 20), rejected);
    assert_eq!(handler.run(&message[..3], &mut [&mut buffer], &mut reply, 20), Ok(Verdict::Dropped));
    message[1] = 5;
    assert_eq!(handler.run(&message, &mut [&mut buffer[..20]], &mut reply, 20), rejected);
    message[8] ^= 1;
    assert_eq!(handler.run(&message, &mut [&mut buffer], &mut reply, 9), Ok(Verdict::OutOfFuel));
    assert_eq!(handler.run(&message, &mut [], &mut reply, 9), Err(Error::Buffers { wanted: 1, given: 0 }));
    assert!(reply.is_empty(), "only what is accepted is replied to");
}

#[test]
fn a_handler_that_never_ends_runs_out_of_fuel() {
    let program = definitions("handler forever\nagain:\n  add r1, r1, 1\n  goto again\nend\n").handlers.remove(0);
    let handler = Handler::new(program, Vec::new(), 0).expect("it is right");
    assert_eq!(handler.run(&[], &mut [], &mut Vec::new(), 1_000_000), Ok(Verdict::OutOfFuel));
    let program = definitions("handler large\nagain:\n  reply 0, r0\n  goto again\nend\n").handlers.remove(0);
    let handler = Handler::new(program, Vec::new(), 0).expect("it is right");
    let mut reply = Vec::new();
    assert_eq!(handler.run(&[0; 65536], &mut [], &mut reply, 10_000), Ok(Verdict::OutOfFuel));
    assert!(reply.capacity() <= 64 * 10_000 * 2, "bytes cost fuel");
}

#[test]
fn handlers_that_could_go_wrong_are_refused() {
    for (text, wanted) in [
        ("handler h\nend\n", "`h` goes on after its last instruction"),
        ("handler h\n  set r1, 1\nend\n", "instruction 0: `h` goes on after its last instruction"),
        ("handler h\n  deliver 1, 0, 1, 0, 0\n  drop\nend\n", "instruction 0: there is no pipe 1"),
        ("handler h\n  deliver 0, 0, 1, 1, 0\n  drop\nend\n", "instruction 0: there is no buffer 1"),
        ("handler h\n  result r1, 8\n  drop\nend\n", "instruction 0: there is no step 8"),
        ("handler h\n  total add r1\n  drop\nend\n", "instruction 0: a total is for steps"),
        ("handler h\n  goto end\nend:\nend\n", "instruction 0: there is no instruction 1"),
    ] {
        let program = definitions(text).handlers.remove(0);
        let flaw = Handler::new(program, vec![compose("copy", &[])], 1).expect_err(text);
        assert_eq!(flaw.to_string(), wanted);
    }
    for bytes in [0, 3, 9, usize::MAX] {
        let element = Element { bytes, order: Order::Big };
        let zero = Operand::Constant(0);
        let load = Instruction::Load { element, d: Register(1), at: zero };
        for instruction in [load, Instruction::Send { element, value: zero }] {
            let program = Program { name: "h".into(), instructions: vec![instruction, Instruction::Drop] };
            let flaw = Handler::new(program, vec![], 0).expect_err("there are no such numbers");
            assert_eq!(flaw.to_string(), format!("instruction 0: an element of {bytes} bytes"));
        }
    }
    let program = definitions("handler h\n  drop\nend\n").handlers.remove(0);
    let flaw = Handler::new(program, vec![compose("xor stream", &[])], 1).expect_err("a handler has no key stream");
    assert_eq!(flaw.to_string(), "pipe 0 wants a key stream, which a handler has not");
}

#[test]
fn the_result_of_a_step_has_a_former_name() {
    let text = "handler h\n  deliver 0, 0, 1, 0, 0\n  result r1, 0\n  drop\nend\n";
    assert_eq!(definitions(text).handlers, definitions(&text.replace("result", "found")).handlers);
}

/// Whatever bytes a text is made of, it is read to its end; whatever a program refers to, it is refused or runs.
#[test]
fn nothing_that_is_read_breaks_the_reader() {
    const WORDS: [&str; 41] = [
        "step",
        "handler",
        "end",
        "add",
        "sub",
        "total",
        "load",
        "if",
        "goto",
        "deliver",
        "result",
        "found",
        "reply",
        "send",
        "accept",
        "drop",
        "set",
        "r0",
        "r1",
        "r7",
        "r8",
        "u8",
        "u32be",
        "u64le",
        "0",
        "1",
        "0xffff",
        "64",
        "max",
        "lt",
        "a",
        "a:",
        ",",
        "\n",
        "\n",
        "\n",
        "#",
        " ",
        "shl",
        "18446744073709551616",
        "\u{e9}",
    ];
    let mut random = Random(99);
    let composer = Composer::global().expect("the system gives code memory");
    let rounds = quaject_test_support::Effort::wanted().pick(5_000, 40_000, 5_000_000);
    for _ in 0..rounds {
        let start = ["handler h\n", "step s u16be\n", ""][random.index(3)];
        let words: Vec<&str> = (0..random.index(40)).map(|_| WORDS[random.index(WORDS.len())]).collect();
        let text = start.to_string() + &words.join(" ");
        let (found, diagnostics) = Definitions::read(&text);
        for found in diagnostics {
            let span = found.span.start as usize..found.span.end as usize;
            assert!(text.get(span).is_some(), "{text}: {found}");
        }
        for step in found.steps {
            composer.compose(&[Step::User(step)]).expect("a step that was checked can be composed");
        }
        for program in found.handlers {
            if let Ok(handler) = Handler::new(program, vec![compose("copy | checksum", &[])], 1) {
                let mut buffer = [0; 16];
                handler.run(&[1; 40], &mut [&mut buffer], &mut Vec::new(), 500).expect("there is one buffer");
            }
        }
    }
}

/// The most that steps may be made of can be composed, on machines whose code for it is longest too.
#[test]
fn the_longest_steps_can_be_composed() {
    let element = Element { bytes: 1, order: Order::Little };
    let d = Register(0);
    let one = Instruction::Compute { operation: Operation::Min, d, s: d, t: Operand::Constant(200) };
    let program = Program { name: "long".into(), instructions: vec![one; quaject_pipe::ir::MAX_STEP_INSTRUCTIONS] };
    let step = Step::User(UserStep::new(program, element).expect("it is right"));
    let two = [step.clone(), step.clone()];
    let mut buffer = vec![0; cross::MAX_BYTES];
    cross::compose::<quaject_vcode::sparc64::Sparc64>(&two, Features::NONE, &mut buffer).expect("there is room");
    cross::compose::<quaject_vcode::mips::Mips>(&two, Features::NONE, &mut buffer).expect("there is room");
    for (name, composer) in crate::support::composers() {
        for count in 1..=2 {
            composer.compose(&vec![step.clone(); count]).unwrap_or_else(|error| panic!("{name} {count}: {error}"));
        }
        assert_eq!(composer.compose(&vec![step.clone(); 3]).err(), Some(Error::TooManyInstructions(96)));
    }
}
