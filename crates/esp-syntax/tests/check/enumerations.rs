//! Enumerations: their codes, conversion that is total, patterns, and what is refused.

use super::{accept, check};
use expect_test::expect;

#[test]
fn codes() {
    let program = accept(
        r##"
const BASE = 0x80;
type a = enum { x, y, z };
type b = enum { x = BASE, y, z = BASE + 8, else w };
type c = enum i16 { low = -1, none = 0, high = 300 };
type d = enum { far = 70000, near = 1 };
type e = enum { minus = -3, zero = 0 };
const START = b.y;
channel k(a, b) external in;
process P { var v: a = a.z; out(k, v, START); v = a.x; out(k, v, b(7)); out(k, a(2), b(BASE)); }
"##,
        expect![[""]],
    );
    let bases: Vec<_> = program
        .types
        .types()
        .iter()
        .enumerate()
        .filter_map(|(id, _)| {
            let found = program.types.enumeration(quaject_esp_syntax::types::TypeId(id as u32))?;
            Some(format!(
                "{}: {} {:?}",
                found.name,
                found.base.name(),
                found.cases.iter().map(|(_, code)| *code).collect::<Vec<_>>()
            ))
        })
        .collect();
    expect![[r#"
        [
            "b: u8 [128, 129, 136]",
            "a: u8 [0, 1, 2]",
            "c: i16 [-1, 0, 300]",
            "d: u32 [70000, 1]",
            "e: i8 [-3, 0]",
        ]
    "#]]
    .assert_debug_eq(&bases);
}

#[test]
fn coverage() {
    check(
        r##"
type code = enum u8 { ok, busy, lost, else other };
type way = enum { left, right, both };
extern fn next() -> code;
channel c(way, code); channel o(int) external in;
process W { out(c, way.left, next()); out(c, way.right, next()); out(c, way.both, next()); }
process A { while { in(c, way.left | way.both, code.ok | code.other); out(o, 1); } }
process B { while { alt { in(c, way.right, _) { } in(c, _, code.busy) { } in(c, way.both, code.lost) { } } } }
process M {
  match next() { code.ok => { } code.busy | code.lost => { } }
  match next() { code.ok => { } code.other => { } code.busy | code.lost => { } }
  match next() { code.ok | code.ok => { } code.other | code.busy => { } _ => { } }
}
"##,
        expect![[r#"
            error[E0406]: no process takes `{way.left, code.lost}` from `c`
              at 5:9 `c`
              at 7:21 `in(c, way.left | way.both, code.ok | code.other)`: `A` takes other messages
              at 8:27 `in(c, way.right, _)`: `B` takes other messages
              at 8:51 `in(c, _, code.busy)`: `B` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
            error[E0402]: match is not exhaustive: `code.other` is not covered
              at 10:3 `match next()`
              help: add an arm for it, or `_ => { }` for all the rest
            warning[W0906]: this alternative is covered by earlier ones
              at 12:28 `code.ok`
              help: drop it
        "#]],
    );
}

#[test]
fn e0310() {
    check(
        r##"
type code = enum u8 { ok = 0, busy = 1 };
type twice = enum { a = 1, b, c = 2 };
type big = enum u8 { a = 256 };
type same = enum { a, b, a };
type open = enum u8 { a, else rest };
extern fn next() -> code;
channel c(code) external out; channel d(open) external in; channel e(u8) external out; channel f(enum { x, y });
process P {
  in(e, $b);
  out(d, open.rest); out(d, open.b); out(d, 1); out(d, b); out(d, open(b));
  var k = code(b); k = code(7); var n: int = open.a;
  if (open.a < open(3)) { }
  if (open.a) { }
  if (open.a == 0 && open.a == open(b)) { n = open.a + 1; }
  match open(b) { a => { } 0 => { } open.aa => { } code.ok => { } $rest => { } }
  n = int(open(b)); n = u8(open.a);
  for i in 0..open.a { }
}
"##,
        expect![[r#"
            error[E0310]: `b` and `c` both have the code 2
              at 3:31 `c`
              at 3:28 `b`: the first is here
              help: a code without `=` is one above that before it
            error[E0303]: 256 does not fit `u8`, the type of the codes
              at 4:12 `enum u8 { a = 256 }`
              help: `u8` holds 0 to 255
            error[E0204]: case `a` is declared twice
              at 5:26 `a`
              at 5:20 `a`: first declared here
            error[E0310]: `code` has no case for other values of `u8`, which may come from outside
              at 7:21 `code`
              help: end it with `else other`, so that every other code is a case of `code`
            error[E0310]: `code` has no case for other values of `u8`, which may come from outside
              at 8:11 `code`
              help: end it with `else other`, so that every other code is a case of `code`
            error[E0310]: an enumeration has a name, by which its cases are called
              at 8:98 `enum { x, y }`
              help: declare it, as in `type code = enum { ok, busy };`, and write `code` here
            error[E0310]: `open.rest` stands for every code without a name and is no value
              at 11:10 `open.rest`
              help: convert one of these codes, as in `open(n)`; in a pattern it takes them all
            error[E0208]: `open` has no case `b`
              at 11:34 `b`
              help: its cases are `a`, `rest`
            error[E0302]: expected `open`, found `int`
              at 11:45 `1`
              help: write `open(1)` to convert a code
            error[E0302]: expected `open`, found `u8`
              at 11:56 `b`
              help: write `open(b)` to convert a code
            error[E0310]: `code` has no case for other values of `u8`
              at 12:11 `code(b)`
              help: end the enumeration with `else other`: then every other code is a case, and keeps its code
            error[E0310]: 7 is no code of `code`
              at 12:24 `code(7)`
              help: end the enumeration with `else other`: then every other code is a case, and keeps its code
            error[E0302]: expected `int`, found `open`
              at 12:46 `open.a`
              help: write `int(open.a)` for the code, which is a `u8`
            error[E0302]: only integers have an order, found `open`
              at 13:7 `open.a`
              help: compare the codes, as in `u8(open.a)`
            error[E0302]: expected `bool`, found `open`
              at 14:7 `open.a`
              help: compare it with a case, as in `open.a == open.a`
            error[E0302]: expected `open`, found `int`
              at 15:17 `0`
              help: write `open.a`
            error[E0302]: expected `int`, found `open`
              at 15:47 `open.a`
              help: write `int(open.a)` for the code, which is a `u8`
            error[E0401]: `a` is a case, not a variable to assign
              at 16:19 `a`
              help: write `open.a`
            error[E0302]: expected `open`, found `int`
              at 16:28 `0`
              help: write `open.a`
            error[E0208]: `open` has no case `aa`
              at 16:42 `aa`
              help: its cases are `a`, `rest`
            error[E0302]: expected `open`, found `code`
              at 16:52 `code.ok`
              help: write `u8(code.ok)` for the code, which is a `u8`
            error[E0302]: expected an integer, found `open`
              at 18:15 `open.a`
        "#]],
    );
}

#[test]
fn labelled_loops() {
    check(
        r##"
channel c(int) external out; channel d(int) external in;
fn f(n: int) -> int {
  #outer while { for i in 0..n { if (i == 3) break outer; if (i == 5) return i; } }
  return 0;
}
fn g(n: int) -> int { #outer while { while { if (n == 3) continue outer; return n; } } }
fn h(n: int) -> int { #outer while { while { if (n == 3) break outer; } } }
process P {
  var x: int, y: int;
  #all #1 while {
    in(c, $n);
    #last for k in 0..3 { x = k; y = n; if (n > 3) break 1; if (n > 2) continue all; break last; }
  }
  out(d, x);
  while { break al; }
  #loop x = 1; while { continue loop; }
  break all;
  while { break #all; }
  while { #lose { break lose; } }
}
process Q { var i = 0; #o while (i < 9) { #m for k in 0..2 { if (i == 3) continue o; } i += 1; } out(d, i); }
"##,
        expect![[r#"
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 4:10 `while `
              help: bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 7:30 `while `
              help: bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 7:38 `while `
              help: bound it by `for` or by a counter that moves by a constant step
            error[E0502]: `fn h` can end without `return`
              at 8:4 `h`
              at 8:75 `}`: control can come here
              help: return a value on every path
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 8:30 `while `
              help: bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 8:38 `while `
              help: bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 16:3 `while `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            error[E0506]: no loop around this `break` has the label `#al`
              at 16:17 `al`
              help: label the loop, as in `#al while { .. }`
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 17:16 `while `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            error[E0506]: no loop around this `continue` has the label `#loop`
              at 17:33 `loop`
              help: label the loop, as in `#loop while { .. }`
            error[E0506]: `break` outside a loop
              at 18:3 `break all;`
              help: `break` and `continue` belong to a `while` or `for`; a process ends behind its last statement
            error[E0201]: `break` names its loop without `#`
              at 19:17 `#`
              help: write `break all;`
            error[E0506]: no loop around this `break` has the label `#all`
              at 19:18 `all`
              help: label the loop, as in `#all while { .. }`
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 20:3 `while `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            error[E0506]: no loop around this `break` has the label `#lose`
              at 20:25 `lose`
              help: label the loop, as in `#lose while { .. }`
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 22:27 `while (i < 9) `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
        "#]],
    );
}

#[test]
fn append_a_byte() {
    check(
        r##"
channel c(u8, int) external out; channel d(bytes[<=8]) external in;
process P { in(c, $a, $n); var p: #bytes[<=8] = #""; p += 'x'; p += a; p += n; p += 256; p += u8(n); p -= 1; out(d, freeze(p)); }
"##,
        expect![[r#"
            error[E0302]: expected `u8`, found `int`
              at 3:77 `n`
              help: write `u8(n)` to keep the low bits
            error[E0303]: 256 does not fit `u8`
              at 3:85 `256`
              help: `u8` holds 0 to 255
            error[E0302]: expected an integer, found `bytes[<=8]`
              at 3:102 `p`
        "#]],
    );
}

#[test]
fn a_wrong_enumeration_is_reported_once() {
    check(
        r##"
type a = enum { x = 1, y = 1 };
channel c(u8) external out;
process p { while { in(c, $n); match a(n) { a.x => assert(n == u8(a.x)); a.y => { } } } }
"##,
        expect![[r#"
            error[E0310]: `x` and `y` both have the code 1
              at 2:24 `y`
              at 2:17 `x`: the first is here
              help: a code without `=` is one above that before it
        "#]],
    );
}
