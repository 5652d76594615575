//! Patterns, functions, definite assignment, purity, loops (E04.., E05..).

use super::check;
use expect_test::expect;

#[test]
fn e0401() {
    check(
        r##"
const EOF = 0 - 1; channel c(int); channel d(int);
process P { const K = 3; in(c, EOF); in(c, K); in(c, d); in(c, P); for i in 0..3 { in(c, i); } }
process Q { out(c, 1); out(d, 1); in(d, _); } process R { out(d, 2); }
"##,
        expect![[r#"
            error[E0401]: `EOF` is a constant, not a variable to assign
              at 3:32 `EOF`
              at 2:7 `EOF`: declared here
              help: write `==EOF`
            error[E0401]: `K` is a constant, not a variable to assign
              at 3:44 `K`
              help: write `==K`
            error[E0401]: `d` is a channel, not a variable to assign
              at 3:54 `d`
              at 2:44 `d`: declared here
              help: write `$d_` to declare a name
            error[E0401]: `P` is a process, not a variable to assign
              at 3:64 `P`
              at 3:9 `P`: declared here
              help: write `$P_` to declare a name
            error[E0401]: `i` is the counter of a `for`, which is constant, not a variable to assign
              at 3:90 `i`
              at 3:72 `i`: declared here
              help: write `==i`
        "#]],
    );
}

#[test]
fn e0402() {
    check(
        r##"
type sendT = record { dest: int, flag: bool };
type userT = union { send: sendT, update: u8, eos };
extern fn next() -> userT;
process P {
  var m: userT, n: int, b: bool, s: bytes[<=4];
  m = next(); n = 1; b = true; s = "a";
  match m { send |> _ => { } update |> _ => { } }
  match m { send |> { $d, true } => n = d; update |> 0 => { } update |> 1 => { } eos |> {} => { } }
  match m { send |> _ => { } update |> $u if u > 3 => { } eos |> {} => { } }
  match n { 0 => { } 1 => { } -1 => { } }
  match b { true => { } }
  match s { "" => { } "x" => { } }
  match n { == n => { } }
}
"##,
        expect![[r#"
            error[E0402]: match is not exhaustive: `eos |> {}` is not covered
              at 8:3 `match m`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0402]: match is not exhaustive: `send |> {_, false}` is not covered
              at 9:3 `match m`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0402]: match is not exhaustive: `update |> _` is not covered
              at 10:3 `match m`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0402]: match is not exhaustive: `2` is not covered
              at 11:3 `match n`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0402]: match is not exhaustive: `false` is not covered
              at 12:3 `match b`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0402]: match is not exhaustive: `"xx"` is not covered
              at 13:3 `match s`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0402]: match is not exhaustive: `_` is not covered
              at 14:3 `match n`
              help: add an arm for it, or `_ => { }` for all the rest
        "#]],
    );
}

#[test]
fn exhaustive() {
    check(
        r##"
type sendT = record { dest: int, flag: bool };
type userT = union { send: sendT, update: u8, eos };
extern fn next() -> userT;
process P {
  var m = next(), n = 1;
  match m { send |> { $d, true } => n = d; update |> _ => { } send |> { _, false } => { } eos |> {} => { } }
  match m { send |> { flag: false } => { } send |> { dest: $d } if d > 0 => n = d; _ => { } }
  match n == 1 { true => { } false => { } }
  match n { 0 => { } _ => { } }
}
"##,
        expect![[r##""##]],
    );
}

#[test]
fn e0403() {
    check(
        r##"
channel c(int, int); channel d(int);
process P {
  var q: #array of int = #[0; 4], i = 0, x = 0;
  in(c, i, q[i]); in(c, x, x); in(c, $a, ==a); in(c, $e, $f if f > e && x == 0); in(c, x, $g if g == x); in(c, q[0], q[1]);
  in(c, q[i], ==q[0]);
  assert(e + f + g);
}
process Q { out(c, 1, 2); out(d, 1); } process R { in(d, _); }
"##,
        expect![[r#"
            error[E0403]: `i` is assigned by this pattern and cannot be read in it
              at 5:14 `i`
              at 4:35 `i`: `i` is declared here
              help: write `$i_new` to declare a name
            error[E0403]: `x` is assigned twice by this pattern
              at 5:28 `x`
              at 5:25 `x`: first assigned here
              help: write `_` for the value that is not wanted
            error[E0403]: `a` is declared by this pattern and can be read only after `if`
              at 5:44 `a`
              at 5:39 `a`: `a` is declared here
              help: declare a name here and add `if`, as in `$other if other == a`
            error[E0403]: `x` is assigned by this pattern and cannot be read in it
              at 5:102 `x`
              at 4:42 `x`: `x` is declared here
              help: write `$x_new` to declare a name
            error[E0403]: `q` is assigned by this pattern and cannot be read in it
              at 6:17 `q`
              at 4:7 `q`: `q` is declared here
              help: write `$q_new` to declare a name
        "#]],
    );
}

#[test]
fn e0404_patterns() {
    check(
        r##"
type r = record { x: int, y: int };
channel c(r, array[2] of u8);
process P { in(c, { $a }, [1, 2]); in(c, { y: $b }, [_, _, _]); in(c, _); in(c, { x: 1, 2 }, _); assert(a + b); }
process Q { out(c, { 1, 2 }); }
"##,
        expect![[r#"
            error[E0404]: record `r` has 2 fields, 1 given
              at 4:19 `{ $a }`
              help: its fields are `x`, `y`
            error[E0404]: the array has 2 elements, 3 given
              at 4:53 `[_, _, _]`
            error[E0404]: channel `c` carries 2 values, 1 given
              at 4:65 `in(c, _)`
              at 3:9 `c`: `c` is declared here
            error[E0404]: fields are given by position and by name
              at 4:81 `{ x: 1, 2 }`
              help: name all of them or none
            error[E0404]: channel `c` carries 2 values, 1 given
              at 5:13 `out(c, { 1, 2 })`
              at 3:9 `c`: `c` is declared here
        "#]],
    );
}

#[test]
fn patterns_of_the_wrong_type() {
    check(
        r##"
type u = union { a: int, b };
channel c(u, int, bool, bytes[<=2]);
process P {
  var v: u8, t: #array of int = #[0; 2];
  in(c, 3, true, 1, "abc"); in(c, { 1, 2 }, x |> 1, [1], 5); in(c, b |> 3, v, _, _); in(c, z |> _, 3000000000, @, t);
  assert(v + t[0]);
}
process Q { out(c, b |> {}, 1, true, ""); }
"##,
        expect![[r#"
            error[E0302]: expected `u`, found an integer
              at 6:9 `3`
            error[E0302]: expected `int`, found `bool`
              at 6:12 `true`
            error[E0302]: expected `bool`, found an integer
              at 6:18 `1`
            error[E0303]: a string of 3 bytes does not fit `bytes[<=2]`
              at 6:21 `"abc"`
            error[E0302]: expected `u`, found a record
              at 6:35 `{ 1, 2 }`
            error[E0302]: expected `int`, found the tag `x`
              at 6:45 `x |> 1`
            error[E0302]: expected `bool`, found an array
              at 6:53 `[1]`
            error[E0302]: expected `bytes[<=2]`, found an integer
              at 6:58 `5`
            error[E0404]: `b` has no payload
              at 6:73 `3`
              help: write `b |> {}`
            error[E0302]: `v` is `u8`, the value received is `int`
              at 6:76 `v`
              help: receive `$v` and assign `u8(v)`
            error[E0208]: no tag named `z`
              at 6:92 `z`
            error[E0303]: 3000000000 does not fit `int`
              at 6:100 `3000000000`
              help: `int` holds -2147483648 to 2147483647
            error[E0302]: expected `bool`, found `pid(P)`
              at 6:112 `@`
            error[E0302]: expected `bytes[<=2]`, found `#array[2] of int`
              at 6:115 `t`
              help: receive into a name of its own and `thaw` it, as in `$t_new`
        "#]],
    );
}

#[test]
fn e0501() {
    check(
        r##"
extern fn read(int) -> int;
extern pure fn crc(int) -> int;
channel c(int);
type b = bytes[<=4]; pool b 2;
fn max(a: int) -> int { in(c, $x); out(c, 1); yield; exit(1); alt { after (1 ms) { } } return read(a) + crc(x) + unknown(1) + int(@) + free(b); }
"##,
        expect![[r#"
            error[E0501]: `fn max` may not use `in`
              at 6:25 `in(c, $x);`
              at 6:4 `max`: a pure function computes its result and nothing else
            error[E0501]: `fn max` may not use `out`
              at 6:36 `out(c, 1);`
              at 6:4 `max`: a pure function computes its result and nothing else
            error[E0501]: `fn max` may not use `yield`
              at 6:47 `yield;`
              at 6:4 `max`: a pure function computes its result and nothing else
            error[E0501]: `fn max` may not use `exit`
              at 6:54 `exit(1);`
              at 6:4 `max`: a pure function computes its result and nothing else
            error[E0501]: `fn max` may not use `alt`
              at 6:63 `alt { after (1 ms) { } }`
              at 6:4 `max`: a pure function computes its result and nothing else
            error[E0501]: `fn max` may not use `read`
              at 6:95 `read`
              at 6:4 `max`: a pure function computes its result and nothing else
            error[E0208]: no function named `unknown`
              at 6:114 `unknown`
              help: a function of C is declared, as in `extern fn unknown(int) -> int;`
            error[E0501]: `fn max` may not use `@`
              at 6:131 `@`
              at 6:4 `max`: a pure function computes its result and nothing else
            error[E0501]: `fn max` may not use `free`
              at 6:136 `free(b)`
              at 6:4 `max`: a pure function computes its result and nothing else
        "#]],
    );
}

#[test]
fn e0501_recursion() {
    check(
        r##"
fn a(n: int) -> int { return b(n); }
fn b(n: int) -> int { return c(n) + 1; }
fn c(n: int) -> int { return a(n - 1); }
fn d(n: int) -> int { return n == 0 ? 1 : d(n - 1); }
process P { assert(a(1) + d(1)); }
"##,
        expect![[r#"
            error[E0501]: `fn a` may not call itself: a -> b -> c -> a
              at 2:4 `a`
              at 4:30 `a(n - 1)`: this call closes the cycle
              help: use a loop
            error[E0501]: `fn d` may not call itself: d -> d
              at 5:4 `d`
              at 5:43 `d(n - 1)`: this call closes the cycle
              help: use a loop
        "#]],
    );
}

#[test]
fn e0502() {
    check(
        r##"
fn f(a: int) -> int { if (a) return 1; }
fn g(a: int) -> int { while (a > 0) { return 1; } }
fn h(a: int) -> int { while { if (a) break; return 1; } }
fn ok(a: int) -> int { while { if (a) return 1; } }
fn ok2(a: int) -> int { if (a) return 1; else { return 2; } }
fn ok3(a: bool) -> int { match a { true => return 1; false => return 2; } }
"##,
        expect![[r#"
            error[E0502]: `fn f` can end without `return`
              at 2:4 `f`
              at 2:40 `}`: control can come here
              help: return a value on every path
            error[E0502]: `fn g` can end without `return`
              at 3:4 `g`
              at 3:51 `}`: control can come here
              help: return a value on every path
            error[E0502]: `fn h` can end without `return`
              at 4:4 `h`
              at 4:57 `}`: control can come here
              help: return a value on every path
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 5:24 `while `
              help: bound it by `for` or by a counter that moves by a constant step
        "#]],
    );
}

#[test]
fn e0503() {
    check(
        r##"
channel c(int);
process P {
  var a, b: int, d: int, e: int, f: int, g: int, h: int, k: int;
  if (b == 0) a = 1;
  if (true) d = 1;
  while (a) { e = 1; }
  while { f = 1; break; }
  for i in 0..3 { g = i; }
  alt { in(c, h) { } after (1 s) { h = 2; } }
  alt { in(c, k) { } after (1 s) { } }
  assert(a + d + e + f + g + h + k);
  while { var x: int; if (a) x = 1; assert(x); }
}
process Q { out(c, 1); }
"##,
        expect![[r#"
            error[E0503]: `b` may be read before it is assigned
              at 5:7 `b`
              at 4:10 `b`: `b` is declared here
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 7:3 `while (a) `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            error[E0503]: `a` may be read before it is assigned
              at 7:10 `a`
              at 4:7 `a`: `a` is declared here
            error[E0503]: `d` may be read before it is assigned
              at 12:14 `d`
              at 4:18 `d`: `d` is declared here
            error[E0503]: `e` may be read before it is assigned
              at 12:18 `e`
              at 4:26 `e`: `e` is declared here
            error[E0503]: `g` may be read before it is assigned
              at 12:26 `g`
              at 4:42 `g`: `g` is declared here
            error[E0503]: `k` may be read before it is assigned
              at 12:34 `k`
              at 4:58 `k`: `k` is declared here
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 13:3 `while `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            error[E0503]: `x` may be read before it is assigned
              at 13:44 `x`
              at 13:15 `x`: `x` is declared here
        "#]],
    );
}

#[test]
fn e0503_of_inferred() {
    check(
        r##"
process P { var a; assert(a); a = true; var x; x += 1; var q; q[0] = 1; }
"##,
        expect![[r#"
            error[E0503]: `a` may be read before it is assigned
              at 2:27 `a`
              at 2:17 `a`: `a` is declared here
            error[E0503]: `x` may be read before it is assigned
              at 2:48 `x`
              at 2:45 `x`: `x` is declared here
            error[E0503]: `q` may be read before it is assigned
              at 2:63 `q`
              at 2:60 `q`: `q` is declared here
        "#]],
    );
}

#[test]
fn assigned_on_every_path() {
    check(
        r##"
channel c(int);
process P {
  var a, b, d, e;
  if (int(@) == 0) a = 1; else { a = 2; }
  while { in(c, b); if (b) continue; d = b; if (d) break; }
  match a { 1 => e = 1; _ => exit(a); }
  assert(a + b + d + e);
}
process Q { out(c, 1); }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn e0504() {
    check(
        r##"
extern fn read() -> int;
extern pure fn pureRead() -> int;
channel c(int); channel d(int);
process P {
  alt { when (read()) in(c, ==read()) { } when (pureRead()) out(d, read()) { } }
  in(c, $x if x == read());
  out(d, read());
}
process Q { out(c, 1); in(d, _); }
"##,
        expect![[r#"
            error[E0504]: `read` has effects and cannot be used in a guard
              at 6:15 `read()`
              help: call it before the `alt`, or declare it `pure`
            error[E0504]: `read` has effects and cannot be used in a pattern
              at 6:31 `read()`
              help: call it before the `alt`, or declare it `pure`
            error[E0504]: `read` has effects and cannot be used in the payload of an `alt`
              at 6:68 `read()`
              help: call it before the `alt`, or declare it `pure`
            error[E0504]: `read` has effects and cannot be used in a pattern
              at 7:20 `read()`
              help: call it before the `alt`, or declare it `pure`
        "#]],
    );
}

#[test]
fn e0507() {
    check(
        r##"
type t = bytes[<=4]; pool t 2;
channel c(int) shared; channel d(int) external out; channel e(int) external in;
process P {
  in(c, $n if n < free(t));
  alt { in(c, _ if free(t) == 1) { } when (free(t) == 2) in(c, == free(t)) { } out(c, 1 - free(t)) { } }
  in(d, $m if free(t) > 0);
  alt { out(e, free(t)) { } }
  out(c, free(t) + n + m);
  match n { $k if k < free(t) => { } _ => { } }
}
process Q { while { alt { in(c, _) { } out(c, 1) { } } } }
"##,
        expect![[r#"
            error[E0507]: `free` in a pattern is not asked again when an object is released
              at 5:19 `free(t)`
              help: ask in a guard, as in `when (free(t) > 0)`, or before the operation
            error[E0507]: `free` in a pattern is not asked again when an object is released
              at 6:20 `free(t)`
              help: ask in a guard, as in `when (free(t) > 0)`, or before the operation
            error[E0507]: `free` in the payload of an `alt` is not asked again when an object is released
              at 6:91 `free(t)`
              help: ask in a guard, as in `when (free(t) > 0)`, or before the operation
        "#]],
    );
}

#[test]
fn e0505_e0506() {
    check(
        r##"
process P {
  alt { }
  alt { after (1 ms) { } else { } }
  break; continue;
  if (true) break;
  for i in 0..2 { alt { after (1 s) { break; } } }
  return 3;
}
fn f() -> int { return 1; }
"##,
        expect![[r#"
            error[E0506]: this `alt` has no branch
              at 3:3 `alt { }`
            error[E0505]: `after` can never happen in an `alt` with `else`
              at 4:9 `after (1 ms)`
              at 4:31 `{ }`: this runs at once when nothing else can
              help: drop one of the two
            error[E0506]: `break` outside a loop
              at 5:3 `break;`
              help: `break` and `continue` belong to a `while` or `for`; a process ends behind its last statement
            error[E0506]: `continue` outside a loop
              at 5:10 `continue;`
              help: `break` and `continue` belong to a `while` or `for`; a process ends behind its last statement
            error[E0506]: `break` outside a loop
              at 6:13 `break;`
              help: `break` and `continue` belong to a `while` or `for`; a process ends behind its last statement
            error[E0506]: `return` outside a function
              at 8:3 `return 3;`
              help: a process ends where its body ends; `exit` ends the program
        "#]],
    );
}

#[test]
fn inference_of_variables() {
    check(
        r##"
channel c(u8, bool); channel d(u8, u8, int, bool, bool);
process P { var a, b; var x, y: u8, n = 0; in(c, a, b); x = a; y = x; out(d, x, y, n, b, !b); var z; z = b; assert(z); var never; }
process Q { out(c, 1, true); in(d, _, _, _, _, _); }
"##,
        expect![[r#"
            warning[W0907]: `never` is never read
              at 3:124 `never`
              help: drop it, or call it `_never` if it is meant
        "#]],
    );
}

#[test]
fn e0311() {
    check(
        r##"
const N = 100; const M = N / 2;
layout l { a: 16 }
type idT = array[4] of u16; type nameT = bytes[<=12]; type codeT = enum u16 { a, else b }; type rT = record { a: u8 };
assert(N <= 64, "a node is one bit of a u64");
assert(M == 50 && sizeof(l) == 2);
assert(sizeof(idT) == 8 && sizeof(nameT) == 12 && sizeof(codeT) == 2);
assert(sizeof(rT) == 1);
assert(first == 1);
if N > 10 { assert(false); }
channel c(int) external out;
process p { var first = 1; while { in(c, $n); assert(n + first < N, "n is small"); assert(n < 9, 7); } }
"##,
        expect![[r#"
            error[E0311]: this assertion is false: a node is one bit of a u64
              at 5:8 `N <= 64`
            error[E0302]: `rT` has no number of bytes that is the same on every machine
              at 8:8 `sizeof(rT)`
              help: numbers, `bool`, `bytes` and arrays of these have; what is sent is described by a `layout`
            error[E0208]: no variable named `first`
              at 9:8 `first`
            error[E0311]: this assertion is false
              at 10:20 `false`
            error[E0201]: expected the message, as in `assert(n > 0, "no frame is empty");`, found `7`
              at 12:97 ``
              at 12:98 `7`: unexpected
        "#]],
    );
}

#[test]
fn constants_among_the_items_may_call_functions() {
    check(
        r##"
const SIZE = size(16);
const WRONG = size(0);
fn size(n: int) -> int { return LIMIT / n; }
const LIMIT = 64;
assert(size(16) == 4 && SIZE == 4);
assert(size(32) == 4, "four fit");
assert(size(0) > 0);
assert(WRONG > 0);
if size(8) == 8 { const CHOSEN = 1; } else { const OTHER = 1; }
if SIZE > 4 { const LARGE = 1; }
process p[size(128)] { assert(false); }
process q { assert(CHOSEN > 0); }
process r { assert(OTHER + LARGE > 0); }
"##,
        expect![[r#"
            error[E0303]: division by zero in a constant
              at 4:33 `LIMIT / n`
              at 3:15 `size(0)`: evaluated for this constant
            error[E0303]: division by zero in a constant
              at 4:33 `LIMIT / n`
              at 8:8 `size(0) > 0`: evaluated for this constant
            error[E0311]: this assertion is false: four fit
              at 7:8 `size(32) == 4`
            error[E0208]: no variable named `OTHER`
              at 14:20 `OTHER`
            error[E0208]: no variable named `LARGE`
              at 14:28 `LARGE`
        "#]],
    );
}
