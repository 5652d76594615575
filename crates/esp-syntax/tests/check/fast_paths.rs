//! Fast paths and models (E07.., E0801).

use super::{check, check_fast_path};
use expect_test::expect;

#[test]
fn e0701() {
    check_fast_path(
        r##"
fastpath f { process hostRequest { statement translateRequestC, hostSendRequestC; start hostSendRequestC; } process twice { statement c/in, c as x; start c/in@1; } }
"##,
        expect![[r#"
            error[E0701]: `c` names 2 statements in `twice`
              at 0.fp:2:135 `c/in`
              help: write `c/in@1` or use a label
            error[E0701]: `c` names 2 statements in `twice`
              at 0.fp:2:141 `c`
              help: write `c/in@1` or use a label
        "#]],
    );
}

#[test]
fn e0702_without_a_program() {
    check(
        "fastpath f { process P { statement c; start c; } }",
        expect![[r#"
            error[E0702]: no process named `P`
              at 1:22 `P`
              help: check it with its program: `qj check PROGRAM.esp --fast-paths FILE.fp`
        "#]],
    );
}

#[test]
fn e0702() {
    check_fast_path(
        r##"
fastpath f { process hostRequest { statement #4, nothing as N, dataSendC/in, dataSendC/out@2; start M; exit #1; } process hostRequst { statement c; start c; }
 process hostRequest { statement dataSendC; start dataSendC; } process many { statement d; start d; } process many[7] { statement d; start d; } process many[1] { statement d as D; start #x; follows H3 yield networkSend; } process twice[0] { statement c/in@2; start c/in@2; follows D; } }
"##,
        expect![[r#"
            error[E0702]: `#4` is not a label of `hostRequest`
              at 0.fp:2:46 `#4`
            error[E0702]: `nothing` is neither a channel nor an alias
              at 0.fp:2:50 `nothing`
            error[E0702]: `hostRequest` has no such operation on `dataSendC`
              at 0.fp:2:64 `dataSendC/in`
            error[E0702]: `hostRequest` has 1 such operations on `dataSendC`, no number 2
              at 0.fp:2:78 `dataSendC/out@2`
            error[E0702]: `M` is neither a channel nor an alias
              at 0.fp:2:101 `M`
            error[E0702]: no process named `hostRequst`
              at 0.fp:2:123 `hostRequst`
              help: did you mean `hostRequest`?
            error[E0702]: process `hostRequest` is listed twice
              at 0.fp:3:10 `hostRequest`
            error[E0702]: `many` is replicated: which one?
              at 0.fp:3:72 `many`
              help: write `many[0]`
            error[E0702]: `many` has 4 replicas, no number 7
              at 0.fp:3:116 `7`
            error[E0702]: `#x` is not a label of `many`
              at 0.fp:3:187 `#x`
            error[E0702]: `#x` is a label, and a path starts at a channel operation
              at 0.fp:3:187 `#x`
            error[E0702]: `H3` is neither a channel nor an alias
              at 0.fp:3:199 `H3`
            error[E0702]: `networkSend` is not a process of this fast path
              at 0.fp:3:208 `networkSend`
            error[E0702]: `twice` is not replicated
              at 0.fp:3:237 `0`
        "#]],
    );
}

#[test]
fn e0703() {
    check_fast_path(
        r##"
fastpath f { process hostRequest { statement hostSendRequestC as H0, dataSendC as T1; start H0; follows (T1 | #1)*; exit T1, #1; } }
"##,
        expect![[r#"
            error[E0703]: `T1` is both the exit and a step of `follows`
              at 0.fp:2:122 `T1`
              at 0.fp:2:106 `T1`: the step is here
            error[E0703]: `#1` is both the exit and a step of `follows`
              at 0.fp:2:126 `#1`
              at 0.fp:2:111 `#1`: the step is here
        "#]],
    );
}

#[test]
fn e0704() {
    check_fast_path(
        r##"
fastpath f { process hostRequest { statement hostSendRequestC as H0, translateRequestC as H1, translateReplyC as H2; start H0; follows H1 <=> dataSendC H2 <=> #2; }
 process translateAddress { statement translateRequestC as T1; start T1 <=> H2; exit T1 <=> T1; } process many[0] { statement d; start d <=> c; } process twice { statement c/in@1 as C1; start C1; } }
"##,
        expect![[r#"
            error[E0704]: `H1 <=> dataSendC`: these statements never communicate
              at 0.fp:2:136 `H1 <=> dataSendC`
              help: the two sides of `<=>` are an `in` and an `out` on one channel
            error[E0704]: `H2 <=> #2`: these statements never communicate
              at 0.fp:2:153 `H2 <=> #2`
              help: the two sides of `<=>` are an `in` and an `out` on one channel
            error[E0704]: `T1 <=> H2`: these statements never communicate
              at 0.fp:3:70 `T1 <=> H2`
              help: the two sides of `<=>` are an `in` and an `out` on one channel
            error[E0704]: `T1 <=> T1`: these statements never communicate
              at 0.fp:3:86 `T1 <=> T1`
              help: the two sides of `<=>` are an `in` and an `out` on one channel
            error[E0701]: `c` names 2 statements of the listed processes
              at 0.fp:3:142 `c`
              help: give the peer an alias
        "#]],
    );
}

#[test]
fn e0705() {
    check_fast_path(
        r##"
fastpath f { process hostRequest { statement hostSendRequestC as H0; start H0 ? (size < g()); exit #1 ? (packet > 1); } process networkSend { statement dataSendC; start dataSendC ? (packett == 3); exit #3 ? (packet); } }
"##,
        expect![[r#"
            error[E0208]: no function named `g`
              at 0.fp:2:89 `g`
              help: a function of C is declared, as in `extern fn g() -> int;`
            error[E0705]: `packet > 1` reads a variable of another process
              at 0.fp:2:106 `packet > 1`
              at 0.fp:2:106 `packet`: `packet` is not a variable of `hostRequest`
              help: a predicate sees the variables of its own process
            error[E0208]: no variable named `packett`
              at 0.fp:2:183 `packett`
              help: did you mean `packet`?
        "#]],
    );
}

#[test]
fn e0707() {
    check_fast_path(
        r##"
fastpath f { process hostRequest { statement hostSendRequestC as H0, translateReplyC as H2; start H0 yield networkSend; follows H2 yield translateAddress; exit #1 yield hostRequest; }
 process translateAddress { statement translateRequestC as T1; start T1; } process networkSend { statement dataSendC; start dataSendC; } }
"##,
        expect![[r#"
            error[E0707]: `networkSend` can never be ready at this `yield`
              at 0.fp:2:108 `networkSend`
              help: a process is ready after it has sent to a listed one
            error[E0707]: `hostRequest` can never be ready at this `yield`
              at 0.fp:2:170 `hostRequest`
              help: a process is ready after it has sent to a listed one
        "#]],
    );
}

#[test]
fn settings() {
    check_fast_path(
        r##"
fastpath f { bound 0; bypass 3; bypass 4; retries 0; process networkSend { statement dataSendC as A, #3 as A; start A; follows A{3,1}; } }
"##,
        expect![[r#"
            error[E0309]: `bound` 0 is below 1
              at 0.fp:2:14 `bound 0;`
            error[E0204]: `bypass` is given twice
              at 0.fp:2:33 `bypass 4;`
              at 0.fp:2:23 `bypass 3;`: first given here
            error[E0204]: alias `A` is declared twice
              at 0.fp:2:108 `A`
              at 0.fp:2:99 `A`: first declared here
            error[E0309]: a repetition of 3 to 1 times is empty
              at 0.fp:2:128 `A`
        "#]],
    );
}

#[test]
fn e0801() {
    check(
        r##"
extern fn readRegister() -> int; extern fn log(int) -> int; extern fn check() -> bool; extern fn index() -> int; extern pure fn crc(int) -> int;
channel c(int) external in;
process P { var q: array of int = [1, 2]; while { var x = log(3); if (readRegister() > 1) x = q[index()]; out(c, crc(x)); if (check()) out(c, 3); } }
process Q { assert(readRegister()); while { yield; } }
model m { }
model n { process Q; abstract range readRegister 0..4; }
model o { process Q; }
model p { slice P; abstract range readRegister 0..2; abstract range index 0..2; }
"##,
        expect![[r#"
            error[E0801]: model `m` needs a range for `readRegister`
              at 6:7 `m`
              at 2:11 `readRegister`: its result decides what the program does
              help: `abstract range readRegister 0..4;`
            error[E0801]: model `m` needs a range for `index`
              at 6:7 `m`
              at 2:98 `index`: its result decides what the program does
              help: `abstract range index 0..4;`
            error[E0801]: model `o` needs a range for `readRegister`
              at 8:7 `o`
              at 2:11 `readRegister`: its result decides what the program does
              help: `abstract range readRegister 0..4;`
        "#]],
    );
}

#[test]
fn models_names() {
    check(
        r##"
channel c(int) external out; extern fn f() -> int;
process P { var v = f(); while { in(c, $x); assert(x == v); } }
model m { process R; bound d 3; abstract drop P.w; abstract hash P.v; abstract forget c.1; abstract range f 3..3; abstract drop g; abstract drop P; env E[2] { out(c, 1); in(c, $y); out(c, @); } ltl "[] P:v"; }
model m2 { process P; slice P; env E { var x; out(c, x); } abstract range f 0..3; }
"##,
        expect![[r#"
            error[E0208]: no process named `R`
              at 4:19 `R`
            error[E0208]: no channel named `d`
              at 4:28 `d`
            error[E0208]: no variable named `w`
              at 4:49 `w`
            error[E0208]: channel `c` carries 1 value, no number 1
              at 4:89 `1`
              help: values are numbered from 0
            error[E0309]: this range is empty
              at 4:109 `3..3`
              help: the end is excluded: `0..2` is 0 and 1
            error[E0208]: no process, channel or extern function named `g`
              at 4:129 `g`
            error[E0208]: an abstraction names a variable `P.v`, a payload `c.0` or an extern function
              at 4:146 `P`
            error[E0506]: `@` has a meaning only in a process
              at 4:189 `@`
            error[E0204]: what the model explores is given twice
              at 5:29 `P`
              at 5:20 `P`: first given here
            error[E0503]: `x` may be read before it is assigned
              at 5:54 `x`
              at 5:44 `x`: `x` is declared here
        "#]],
    );
}

#[test]
fn models_ranges_and_what_is_said_twice() {
    check(
        r##"
channel c(u8) external out; extern fn f() -> u8;
process P { var v = f(); while { in(c, $x); assert(x == v); } }
process Q { while { yield; } }
model m { slice P, Q, P; abstract range f 250..256; }
model m2 { abstract range f -5..2; abstract range c.0 0..2; abstract range c.0 2..4; }
model m3 { abstract range c.0 300..400; }
"##,
        expect![[r#"
            error[E0204]: `P` is listed twice in this slice
              at 5:23 `P`
            error[E0309]: `f` is a `u8`, which has not all values of -5..2
              at 6:27 `f`
              help: its values are 0..256; the end of a range is excluded
            error[E0204]: `c.0` is abstracted twice in this way
              at 6:76 `c.0`
              at 6:51 `c.0`: the first is here
            error[E0801]: model `m3` needs a range for `f`
              at 7:7 `m3`
              at 2:39 `f`: its result decides what the program does
              help: `abstract range f 0..4;`
            error[E0309]: `c.0` is a `u8`, which has not all values of 300..400
              at 7:27 `c.0`
              help: its values are 0..256; the end of a range is excluded
        "#]],
    );
}

#[test]
fn e0708() {
    check_fast_path(
        r##"
fastpath f extern "f g" { bound 3; bypass 4; retries 5; process hostRequest { start hostSendRequestC ? (size < 3); exit #1 ? (size < 3), #1; } process networkSend { start dataSendC; follows networkSendC; exit #3; } }
fastpath g extern "g" { process hostRequest { start hostSendRequestC; exit #1; } process translateAddress { start translateRequestC <=> translateRequestC; } }
fastpath h extern "g" { process hostRequest { start hostSendRequestC; } }
fastpath k extern { process hostRequest { exit #1; } }
"##,
        expect![[r#"
            error[E0708]: `f g` is not the name of a C function
              at 0.fp:2:12 `extern "f g"`
              help: write letters, digits and `_`
            error[E0708]: a bound for a path in C
              at 0.fp:2:27 `bound 3;`
              help: let the C function count
            error[E0708]: a bound for a path in C
              at 0.fp:2:36 `bypass 4;`
              help: let the C function count
            error[E0708]: a predicate in a path in C
              at 0.fp:2:127 `size < 3`
              help: only the start of the first process can have one; the C function can return 0
            error[E0708]: `follows` in a path in C
              at 0.fp:2:191 `networkSendC`
              help: leave it out: C decides
            error[E0708]: `exit` lists of different lengths, the longest of 2
              at 0.fp:2:210 `#3`
              help: the k-th exit is the k-th element of each list; write one again if need be
            error[E0708]: `<=>` or `yield` in a path in C
              at 0.fp:3:115 `translateRequestC <=> translateRequestC`
              help: leave it out: C decides
            error[E0708]: `g` is another fast path
              at 0.fp:4:12 `extern "g"`
              help: a fast path has a C function of its own
            error[E0201]: expected the name of a C function, as in `"sum_pairs"`, found `{`
              at 0.fp:5:18 ``
              at 0.fp:5:19 `{`: unexpected
            error[E0201]: expected `start`, found `}`
              at 0.fp:5:52 `}`
              help: `start` is needed, `statement` and `exit` can be omitted
        "#]],
    );
}
