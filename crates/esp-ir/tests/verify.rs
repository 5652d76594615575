//! Programs that break one rule each, and what the verifier says; reading errors of the text form.

use quaject_esp_ir::{read::read, verify::verify};

/// Reads a text, which begins with the header by itself, and compares what the verifier finds.
fn check(text: &str, expected: &[&str]) {
    let text = format!("esp-ir 1\n{text}");
    let program = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let errors: Vec<String> = verify(&program).iter().map(|error| error.text(&program)).collect();
    assert_eq!(errors, expected, "{text}");
}

/// A process with this code, some channels, types, slots s0 (`bytes[<=4]`), s1 (an array), s2 (a record), s3 (a union)
/// and sites 0 to 5.
fn check_code(code: &str, expected: &[&str]) {
    let text = format!(
        "\
file \"a.esp\"
record pair {{ a: int, b: u8 }}
union maybe {{ some: int, none }}
pool ^box 2 of bytes[<=4]
channel c(int)
channel w(int) to_environment
channel r(int) from_environment
channel m(pair, maybe)
extern f(int, #bytes[<=4]) -> int
extern pure g(int) -> int
function h(int, bytes[<=4]) -> int {{
  slot s0: bytes[<=4]
block0(v0: int):
  return v0
}}
process q[2] {{
block0:
  end
}}
process p {{
  label #L
  site0 in c
  site1 out c
  site2 out w
  site3 in r
  site4 in m
  site5 out r
  slot s0: bytes[<=4]
  slot s1: array[3] of int
  slot s2: pair
  slot s3: maybe
{code}}}
"
    );
    check(&text, expected);
}

#[test]
fn well_formed() {
    check("", &[]);
    check_code("block0:\nend\n", &[]);
    check_code(
        "block0:
          v0: int = constant 1
          v1: bool = constant 1
          wait fair
            when v1 in site0 c(p0) if block1 -> block2
            when block6 out site1 c block3 -> block4
            in site4 m({p0, 3}, tag 0 => p1) -> block5
            after v0 * 1000 -> block7
         block1(v2: int):
          v3: bool = less v2, v0
          result(keep v3)
         block2(v4: int):
          end
         block3:
          v5: int = add v0, v0
          result(keep v5)
         block4:
          end
         block5(v6: int, v7: int):
          jump block8
         block6:
          v8: int = free ^box
          v9: int = constant 0
          v10: bool = greater v8, v9
          result(keep v10)
         block7:
          jump block8
         block8:
          v11: u8 = load s2.1
          v12: u8 = load s0[v0]
          v13: int = call h(v0, s0)
          v14: int = call_extern f(v0, s0)
          v15: bool = same s0, s0
          v16: pid(p, q) = instance q, v0
          v17: u32 = tag s3
          end
        ",
        &[],
    );
}

#[test]
fn ids() {
    check("process p {\n}\n", &["process `p`: there is no entry block"]);
    check_code("block0:\nexit v0\n", &["process `p`, block0: v0 is used and never defined"]);
    check_code("block0:\nv0: int = constant 1\nv1: int = constant 1\njump block1\nblock1:\nexit v0\n", &[]);
    check_code("block0:\njump block3\n", &["process `p`, block0: block3 does not exist"]);
    check_code("block0:\nset_tag s9, 0\nend\n", &["process `p`, block0: s9 does not exist"]);
    check_code(
        "block0:\nwait fair\n in site4 m(s9, _) -> block1\nblock1:\nend\n",
        &["process `p`, block0: s9 does not exist"],
    );
}

#[test]
fn dominance() {
    check_code(
        "block0:
          v0: bool = constant 1
          branch v0, block1, block2
         block1:
          v1: int = constant 1
          jump block2
         block2:
          exit v1 @0:7:3
        ",
        &["process `p`, block2 (a.esp:7:3): v1 is used where its definition does not reach"],
    );
    check_code(
        "block0:
          v1: int = add v0, v0
          v0: int = constant 1
          end
        ",
        &[
            "process `p`, block0: v0 is used where its definition does not reach",
            "process `p`, block0: v0 is used where its definition does not reach",
        ],
    );
    // A loop: what the body defines does not reach its own first instruction.
    check_code(
        "block0:
          jump block1
         block1:
          v0: int = load s1[v1]
          v1: int = constant 1
          jump block1
        ",
        &["process `p`, block1: v1 is used where its definition does not reach"],
    );
    // A region's value is its own.
    check_code(
        "block0:
          wait fair
            out site1 c block1 -> block2
         block1:
          v0: int = constant 1
          result(keep v0)
         block2:
          exit v0
        ",
        &["process `p`, block2: v0 is used where its definition does not reach"],
    );
    // Unreachable code is not executed, so that nothing has to reach it.
    check_code("block0:\nend\nblock1:\nv0: int = constant 1\njump block2\nblock2:\nexit v0\n", &[]);
}

/// One instruction in a body that defines v0: int, v1: u8, v2: bool, v3: ^box and v4: pid(p).
fn check_instruction(instruction: &str, expected: &[&str]) {
    let code = format!(
        "block0:
          v0: int = constant 1
          v1: u8 = constant 1
          v2: bool = constant 1
          v3: ^box = allocate ^box
          v4: pid(p) = own_id
          {instruction}
          end
        "
    );
    let expected: Vec<String> = expected.iter().map(|text| format!("process `p`, block0: {text}")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_code(&code, &expected);
}

#[test]
fn operands() {
    check_instruction("v5: int = constant 2147483648", &["2147483648 is no `int`"]);
    check_instruction("v5: bool = constant 2", &["2 is no `bool`"]);
    check_instruction("v5: pid(p) = constant 3", &["3 is no `pid(p)`"]);
    check_instruction("v5: int = add v0, v1", &["v1 is `u8`, not `int`"]);
    check_instruction("v5: u8 = add v0, v0", &["the result is `int`, not `u8`"]);
    check_instruction("v5: bool = add v2, v2", &["v2 is `bool`, not an integer"]);
    check_instruction("v5: int = shift_left v0, v1", &[]);
    check_instruction("v5: bool = less v2, v2", &["v2 is `bool`, not an integer"]);
    check_instruction("v5: int = less v0, v0", &["the result is `bool`, not `int`"]);
    check_instruction("v5: bool = equal v0, v1", &["`int` and `u8` are not one type"]);
    check_instruction("v5: bool = equal v3, v3", &["v3 is `^box`, not an integer, `bool` or `pid`"]);
    check_instruction("v5: bool = not v0", &["v0 is `int`, not a `bool`", "the result is `int`, not `bool`"]);
    check_instruction("v5: int = negate v2", &["v2 is `bool`, not an integer", "the result is `bool`, not `int`"]);
    check_instruction("v5: int = convert v3", &["v3 is `^box`, not an integer, `bool` or `pid`"]);
    check_instruction("store s1[v0], v1", &["v1 is `u8`, not `int`"]);
    check_instruction("store s1, v0", &["this place holds `array[3] of int`, not a scalar or reference"]);
    check_instruction("v5: int = load s1[v2]", &["v2 is `bool`, not an integer"]);
    check_instruction("v5: int = load s2.7", &["this place leads nowhere"]);
    check_instruction("v5: int = load s3|1", &["this place leads nowhere"]);
    check_instruction("v5: int = load *v0", &["this place leads nowhere"]);
    check_instruction("v5: u8 = load *v3[v0]", &[]);
    check_instruction("copy s0, *v3", &[]);
    check_instruction("copy s0, s1", &["`bytes[<=4]` and `array[3] of int` are not one type"]);
    check_instruction("set_bytes s0, \"12345\"", &["5 bytes do not fit `bytes[<=4]`"]);
    check_instruction("set_bytes s1, \"\"", &["this place holds `array[3] of int`, not `bytes`"]);
    check_instruction("fill s1, v1", &["the element is `u8`, not `int`"]);
    check_instruction("fill s2, v0", &["this place holds `pair`, not an array"]);
    check_instruction("set_tag s3, 2", &["there is no tag 2"]);
    check_instruction("v5: u32 = tag s2", &["this place holds `pair`, not a union"]);
    check_instruction("v5: u32 = length s0", &["the result is `int`, not `u32`"]);
    check_instruction("set_length s0, v2", &["v2 is `bool`, not an integer"]);
    check_instruction("copy_slice s0, s0, v2, _", &["v2 is `bool`, not an integer"]);
    check_instruction("append s0, s1", &["this place holds `array[3] of int`, not `bytes`"]);
    check_instruction("v5: u16 = load_number be(16) s0, v0", &[]);
    check_instruction("v5: u16 = load_number be(8) s0, v0", &["a number has 16, 32 or 64 bits, not 8"]);
    check_instruction("v5: int = load_number le(32) s0, v0", &["the result is `u32`, not `int`"]);
    check_instruction("store_number be(16) s0, v0, v1", &["v1 is `u8`, not `u16`"]);
    check_instruction("v5: u8 = load_bits be(1, 4, 5) s0, v0", &["this field does not lie in its layout"]);
    check_instruction("v5: u8 = load_bits le(4, 4, 16) s0, v0", &["this field does not lie in its layout"]);
    check_instruction("v5: bool = same v0, s0", &["`int` and `bytes[<=4]` are not one type"]);
    check_instruction("v5: int = call h(v0)", &["1 arguments for 2 parameters"]);
    check_instruction("v5: int = call h(v1, s0)", &["an argument is `u8`, not `int`"]);
    check_instruction("call h(v0, s0)", &[]);
    check_instruction("call h(v0, s0) to s0", &["`bytes[<=4]` and `int` are not one type"]);
    check_instruction("v5: int = call_extern g(v0)", &[]);
    check_instruction("v5: u8 = call_extern g(v0)", &["the result is `int`, not `u8`"]);
    check_instruction("v5: int = own_id", &["the result is `int`, not a `pid`"]);
    check_instruction("v5: int = replica v0", &["v0 is `int`, not a `pid`"]);
    check_instruction("v5: bool = is_unique v0", &["v0 is `int`, not a reference"]);
    check_instruction("v5: int = allocate ^box", &["the result is `int`, of another pool"]);
    check_instruction("v5: int = retain v3", &["this instruction has no result"]);
    check_instruction("constant 1", &["this instruction has a result"]);
    check_instruction("mark #L", &[]);
}

#[test]
fn terminators() {
    check_code(
        "block0:\nv0: int = constant 1\nbranch v0, block0, block0\n",
        &["process `p`, block0: v0 is `int`, not a `bool`"],
    );
    check_code(
        "block0:\nv0: int = constant 1\nswitch v0, 1 => block0, 1 => block0, else block0\n",
        &["process `p`, block0: two cases of a switch are equal"],
    );
    check_code(
        "block0:\njump block1\nblock1(v0: int):\nend\n",
        &["process `p`, block0: 0 arguments for the 1 parameters of block1"],
    );
    check_code(
        "block0:\nv0: bool = constant 1\njump block1(v0)\nblock1(v1: int):\nend\n",
        &["process `p`, block0: v0 is `bool`, not `int`"],
    );
    check_code("block0:\nv0: int = constant 1\nreturn v0\n", &["process `p`, block0: a process does not return"]);
    check_code("block0:\nresult()\n", &["process `p`, block0: a result outside a region"]);
    check("function f() -> int {\nblock0:\nend\n}\n", &["function `f`, block0: a function only returns"]);
    check(
        "function f(int) -> int {\nblock0:\nv0: int = constant 1\nreturn v0\n}\n",
        &["function `f`, block0: the entry block has 0 parameters of other types"],
    );
    check(
        "function f(bytes[<=2]) -> int {\nblock0:\nv0: int = constant 1\nreturn v0\n}\n",
        &["function `f`, block0: the first slots are not the aggregate parameters"],
    );
    check(
        "function f() -> int {\nblock0:\nv0: pid(p) = own_id\nv1: int = replica v0\nreturn v1\n}\nprocess p {\nblock0:\nend\n}\n",
        &["function `f`, block0: a function has no id"],
    );
    check(
        "function f() -> int {\nblock0:\nv0: u8 = constant 1\nreturn v0\n}\n",
        &["function `f`, block0: the result is `u8`, not `int`"],
    );
}

/// A wait with these branches, and blocks 1 (no parameters), 2 (an int), 3 (an int, ending in a bool result) after it.
fn check_wait(branches: &str, expected: &[&str]) {
    let code = format!(
        "block0:
          v0: int = constant 1
          v1: bool = constant 1
          wait fair
          {branches}
         block1:
          end
         block2(v2: int):
          end
         block3(v3: int):
          v4: bool = equal v3, v0
          result(keep v4)
         block4:
          end
         block5:
          result(keep v0)
        "
    );
    let mut expected: Vec<String> = expected.iter().map(|text| format!("process `p`, {text}")).collect();
    // Regions that no branch uses hold results outside a region.
    for (block, name) in [("block3", "block3"), ("block5", "block5")] {
        if !branches.contains(name) {
            expected.push(format!("process `p`, {block}: a result outside a region"));
        }
    }
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    check_code(&code, &expected);
}

#[test]
fn waits() {
    check_wait("in site0 c(p0) if block3 -> block2", &[]);
    check_wait("", &["block0: a wait without branches"]);
    check_wait("in site1 c(p0) -> block2", &["block0: site1 is another operation"]);
    check_wait("in site9 c(p0) -> block2", &["block0: site9 is another operation"]);
    check_wait("in site3 c(p0) -> block2", &["block0: site3 is another operation"]);
    check_wait("out site5 r ready(keep v0) -> block1", &["block0: `r` is written by the environment"]);
    check_wait("out site1 c ready() -> block1", &["block0: 0 values for 1"]);
    check_wait("out site1 c ready(keep v1) -> block1", &["block0: a value is `bool`, not `int`"]);
    check_wait("out site1 c block5 -> block1", &[]);
    check_wait("in site0 c() -> block1", &["block0: 0 patterns for 1 values"]);
    check_wait("in site0 c(_) -> block2", &["block0: block2 does not take the 0 values that arrive"]);
    check_wait("in site0 c(p0) -> block1", &["block0: block1 does not take the 1 values that arrive"]);
    check_wait("in site0 c(p1) -> block2", &["block0: a pattern does not fit `int`"]);
    check_wait("in site0 c(\"a\") -> block1", &["block0: a pattern does not fit `int`"]);
    check_wait("in site0 c(s0) -> block1", &["block0: a pattern does not fit `int`"]);
    check_wait("in site0 c(@) -> block1", &["block0: a pattern does not fit `int`"]);
    check_wait("in site0 c(== v1) -> block1", &["block0: a pattern does not fit `int`"]);
    check_wait("in site4 m({_}, _) -> block1", &["block0: a pattern does not fit `pair`"]);
    check_wait("in site4 m(s2, tag 1 => _) -> block1", &["block0: a pattern does not fit `maybe`"]);
    check_wait("in site4 m(s2, s3) -> block1", &[]);
    check_wait("when v0 in site0 c(_) -> block1", &["block0: v0 is `int`, not a `bool`"]);
    check_wait("after v1 * 1 -> block1", &["block0: v1 is `bool`, not an integer"]);
    check_wait("after v0 * 0 -> block1", &["block0: a unit of time is positive"]);
    check_wait("in site0 c(_) -> block1\nelse -> block2", &["block0: block2 has parameters and follows an `else`"]);
    check_wait("in site0 c(_) -> block1\nelse -> block1", &["block0: block1 is entered from elsewhere too"]);
    check_wait("when block5 in site0 c(_) -> block1", &["block5: a value is `int`, not `bool`"]);
    check_wait(
        "out site1 c block5 -> block1\nout site1 c block5 -> block4",
        &[
            "block0: the region block5 is entered from elsewhere too",
            "block0: the region block5 is entered from elsewhere too",
        ],
    );
    check_wait("out site1 c block4 -> block1", &["block4: a region ends in a result"]);
}

#[test]
fn regions_have_no_effects() {
    let check_region = |instruction: &str, expected: &[&str]| {
        let code = format!(
            "block0:
              v0: int = constant 1
              set_bytes s0, \"\"
              wait fair
                out site1 c block1 -> block2
             block1:
              {instruction}
              result(keep v0)
             block2:
              end
            "
        );
        check_code(&code, expected);
    };
    check_region("store s2.0, v0", &[]);
    check_region("set_bytes s0, \"a\"", &["process `p`, block1: a region writes s0, which belongs to the process"]);
    check_region("v1: int = call_extern f(v0, s0)", &["process `p`, block1: a region calls `f`, which has effects"]);
    check_region("v1: int = call_extern g(v0)", &[]);
    check_region("mark #L", &["process `p`, block1: a region has no labels"]);
}

#[test]
fn items() {
    check("process p[0] {\nblock0:\nend\n}\n", &["`p` has 0 instances"]);
    check("pool ^b 0 of int\n", &["pool `b` has no objects"]);
}

#[test]
fn reading_errors() {
    let check = |text: &str, expected: &str| {
        let error = read(text).expect_err("a text with an error");
        assert_eq!(error.to_string(), expected, "{text}");
    };
    check("", "1:1: expected `esp`, found the end");
    check("esp-ir 2", "1:9: expected version 1, found the end");
    check("esp-ir 1\nfoo", "2:4: expected an item before, found the end");
    check("esp-ir 1\nchannel c(foo)", "2:14: expected a type before, found `)`");
    check("esp-ir 1\nprocess p {\nblock0:\n  jump x\n}\n", "4:8: expected `block` and a number, found `x`");
    check("esp-ir 1\nprocess p {\nblock0:\n  frob v0\n}\n", "4:8: expected an instruction before, found `v0`");
    check("esp-ir 1\nprocess p {\nblock1:\n", "3:7: expected blocks in order before, found `:`");
    check(
        "esp-ir 1\nprocess p {\nblock0:\nv5: int = constant 1\nend\n}",
        "6:2: expected a definition of v0 before, found the end",
    );
    check(
        "esp-ir 1\nprocess p {\nblock0:\nv0: int = constant 1\nv0: int = constant 1\nend\n}",
        "5:9: expected one definition of v0 before, found `=`",
    );
    check(
        "esp-ir 1\nprocess p {\nblock0:\n  mark #no\nend\n}",
        "5:1: expected a label of this process before, found `end`",
    );
}

#[test]
fn no_text_panics() {
    let good = include_str!("../../esp-exec/tests/programs/words.ir");
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..20_000 {
        let mut bytes = good.as_bytes().to_vec();
        for _ in 0..random.usize(1..4) {
            if bytes.is_empty() {
                break;
            }
            let at = random.usize(0..bytes.len());
            match random.u32(0..3) {
                0 => bytes[at] = *random.choice(good.as_bytes()).expect("not empty"),
                1 => drop(bytes.remove(at)),
                _ => bytes.truncate(at.max(1)),
            }
        }
        if let Ok(program) = read(&String::from_utf8_lossy(&bytes)) {
            verify(&program);
        }
    }
}
