//! Types, constants, conversions, mutability (E03.., E0601).

use super::check;
use expect_test::expect;

#[test]
fn e0301() {
    check(
        r##"
type list = record { next: list, value: int };
type a = array[2] of b; type b = union { x: a, y };
pool list 4;
channel c(list, a);
process P { in(c, _, _); } process Q { while { yield; } }
"##,
        expect![[r#"
            error[E0301]: type `list` contains itself
              at 2:6 `list`
              help: types are finite: hold an index or a `pid` instead
            error[E0301]: type `a` contains itself
              at 3:6 `a`
              at 3:30 `b`: by way of `b`
              help: types are finite: hold an index or a `pid` instead
        "#]],
    );
}

#[test]
fn e0302_integers() {
    check(
        r##"
process P {
  var a: u8 = 1, b: int = 2, c: u32 = 3;
  a = b;
  a = b + 1;
  a += b;
  c = b;
  b = c * 2;
  b = a + b;
  assert(a == b);
}
"##,
        expect![[r#"
            error[E0302]: expected `u8`, found `int`
              at 4:7 `b`
              help: write `u8(b)` to keep the low bits
            error[E0302]: expected `u8`, found `int`
              at 5:7 `b`
              help: write `u8(b)` to keep the low bits
            error[E0302]: expected `u32`, found `int`
              at 7:7 `b`
              help: write `u32(b)` to keep the low bits
            error[E0302]: expected `int`, found `u32`
              at 8:7 `c`
              help: write `int(c)` to keep the low bits
        "#]],
    );
}

#[test]
fn e0302_kinds() {
    check(
        r##"
type r = record { x: int };
process P {
  var a: int = true, b: bool = 1, s: bytes[<=4] = 5, v: r = [1], w: array[2] of int = { 1, 2 };
  if (s) a = 1;
  a = s + 1;
  a = -b;
  b = !s;
  a = b ? 1 : s;
  assert(s < "a");
  assert(a == b);
  a = u8(b);
  a = int(s);
  a = s[b];
  a = v[0];
  a += true;
  w.len = 3;
  freeze(w);
}
"##,
        expect![[r#"
            error[E0302]: expected `int`, found `bool`
              at 4:16 `true`
              help: write `int(true)`
            error[E0302]: expected `bool`, found `int`
              at 4:32 `1`
              help: write `1 != 0`
            error[E0302]: expected `bytes[<=4]`, found `int`
              at 4:51 `5`
            error[E0302]: expected `r`, found an array
              at 4:61 `[1]`
            error[E0302]: expected `array[2] of int`, found a record
              at 4:87 `{ 1, 2 }`
            error[E0302]: expected `bool`, found `bytes[<=4]`
              at 5:7 `s`
            error[E0302]: expected `int`, found `bytes[<=4]`
              at 6:7 `s`
              help: a character is in single quotes: write `'s'`
            error[E0302]: expected `int`, found `bool`
              at 7:8 `b`
              help: write `int(b)`
            error[E0302]: expected `bool`, found `bytes[<=4]`
              at 8:8 `s`
            error[E0302]: expected `int`, found `bytes[<=4]`
              at 9:15 `s`
              help: a character is in single quotes: write `'s'`
            error[E0302]: only integers have an order, found `bytes[<=4]`
              at 10:10 `s`
            error[E0302]: expected `int`, found `bool`
              at 11:15 `b`
              help: write `int(b)`
            error[E0302]: `u8` takes an integer, found `bool`
              at 12:7 `u8(b)`
              help: write `u8(int(b))`
            error[E0302]: expected an integer, found `bytes[<=4]`
              at 13:11 `s`
            error[E0302]: expected an integer, found `bool`
              at 14:9 `b`
            error[E0302]: expected an array or `bytes`, found `r`
              at 15:7 `v`
            error[E0302]: expected `int`, found `bool`
              at 16:8 `true`
              help: write `int(true)`
            error[E0306]: `w` is immutable
              at 17:3 `w.len`
              at 4:66 `w`: `w` is declared here
              help: declare it `#array[2] of int`, or replace it whole
            error[E0302]: the value of `freeze` is lost
              at 18:3 `freeze(w);`
              help: assign it to a variable
        "#]],
    );
}

#[test]
fn e0302_mutability() {
    check(
        r##"
type t = array[4] of int;
fn sum(v: t) -> int { return v[0]; }
process P {
  var a: #t = #[0; 4], b: t = [0; 4], c: #t = [1; 4], d: t = #[1; 4], e: #t = b, f: t = a;
  a = b; b = a; a = thaw(b); b = freeze(a);
  b = freeze(b); a = thaw(a); b = thaw(b);
  var n = sum(a) + sum(b);
  n = thaw(n);
  assert(a == b && n == 1);
}
"##,
        expect![[r#"
            error[E0302]: expected `#array[4] of int`, found `array[4] of int`
              at 5:47 `[1; 4]`
              help: write `#` before the literal
            error[E0302]: expected `array[4] of int`, found `#array[4] of int`
              at 5:62 `#[1; 4]`
              help: drop the `#`
            error[E0302]: expected `#array[4] of int`, found `array[4] of int`
              at 5:79 `b`
              help: write `thaw(b)`
            error[E0302]: expected `array[4] of int`, found `#array[4] of int`
              at 5:89 `a`
              help: write `freeze(a)`
            error[E0302]: expected `#array[4] of int`, found `array[4] of int`
              at 6:7 `b`
              help: write `thaw(b)`
            error[E0302]: expected `array[4] of int`, found `#array[4] of int`
              at 6:14 `a`
              help: write `freeze(a)`
            error[E0302]: expected `#array[4] of int`, found `array[4] of int`
              at 7:14 `b`
              help: `b` is immutable already
            error[E0302]: expected `array[4] of int`, found `#array[4] of int`
              at 7:27 `a`
              help: `a` is mutable already
            error[E0302]: expected `array[4] of int`, found `#array[4] of int`
              at 7:35 `thaw(b)`
              help: write `freeze(thaw(b))`
            error[E0302]: `int` has no parts to update
              at 9:12 `n`
              help: drop the `thaw`
        "#]],
    );
}

#[test]
fn e0303_literals() {
    check(
        r##"
const BIG = 1 << 200;
const DIV = 1 / 0;
const OVER: int = 2147483647 + 1;
const MASK: u32 = ~0;
const LOW: i8 = -128;
process P {
  var a: u8 = 300, b: u8 = -1, c = 3000000000, d: i8 = 128, e: u32 = 1 << 40, f: u64 = 0xffff_ffff_ffff_ffff;
  a = u8(300);
  c = 1 << 31;
  d = LOW;
  e = MASK & ~3;
  assert(a == 256);
  assert(e == -1);
  f = 1 << 40;
}
"##,
        expect![[r#"
            error[E0303]: this constant does not fit 128 bits
              at 2:13 `1 << 200`
            error[E0303]: division by zero in a constant
              at 3:13 `1 / 0`
            error[E0303]: 2147483648 does not fit `int`
              at 4:19 `2147483647 + 1`
              help: `int` holds -2147483648 to 2147483647
            error[E0303]: 300 does not fit `u8`
              at 8:15 `300`
              help: `u8` holds 0 to 255
            error[E0303]: -1 does not fit `u8`
              at 8:28 `-1`
              help: `u8` holds 0 to 255
            error[E0303]: 3000000000 does not fit `int`
              at 8:36 `3000000000`
              help: `int` holds -2147483648 to 2147483647
            error[E0303]: 128 does not fit `i8`
              at 8:56 `128`
              help: `i8` holds -128 to 127
            error[E0303]: a shift of `u32` by 40 is outside 0..32
              at 8:70 `1 << 40`
            error[E0303]: 256 does not fit `u8`
              at 13:15 `256`
              help: `u8` holds 0 to 255
            error[E0303]: -1 does not fit `u32`
              at 14:15 `-1`
              help: `u32` holds 0 to 4294967295
        "#]],
    );
}

#[test]
fn e0303_and_e0309_in_calls_of_constants() {
    check(
        r##"
const A = f(0);
const B = g(9);
const C = h();
const D = loops();
const E = e(1);
const X = x();
const Y = big(100);
const Z = z();
channel c(int) external in;
extern pure fn outside(a: int) -> int;
fn f(n: int) -> int { return 6 / n; }
fn g(n: int) -> int { const T = [1, 2, 3]; return T[n]; }
fn h() -> int { return outside(1); }
fn loops() -> int { for i in 0..1000000 { for j in 0..1000000 { assert(i >= 0); } } return 0; }
fn e(n: int) -> int { assert(n == 2); return n; }
fn x() -> int { return X; }
fn big(n: int) -> i8 { var a: i8 = 100; a += i8(n); return a; }
fn z() -> int { return z() + "a"; }
process P { out(c, A + B + C + D + E + X + Y + Z); }
"##,
        expect![[r#"
            error[E0309]: `h()` is not a constant
              at 4:11 `h()`
              help: a constant has literals, operators, conversions, `sizeof`, `@P[k]`, other constants, and calls of `fn`s with these
            error[E0309]: this constant cannot be evaluated: it takes more than 20 million steps
              at 5:11 `loops()`
              at 15:43 `for j in 0..1000000 { assert(i >= 0); }`: at this place
              help: compute it when the program starts, in a variable
            error[E0309]: `X` is defined by itself
              at 7:7 `X`
              at 17:4 `x`: by way of `x`
            error[E0303]: division by zero in a constant
              at 12:30 `6 / n`
              at 2:11 `f(0)`: evaluated for this constant
            error[E0303]: index 9 is outside 0..3 in a constant
              at 13:51 `T[n]`
              at 3:11 `g(9)`: evaluated for this constant
            error[E0303]: this assertion fails in a constant
              at 16:23 `assert(n == 2);`
              at 6:11 `e(1)`: evaluated for this constant
            error[E0303]: 200 does not fit `i8`
              at 18:41 `a`
              at 8:11 `big(100)`: evaluated for this constant
            error[E0501]: `fn z` may not call itself: z -> z
              at 19:4 `z`
              at 19:24 `z()`: this call closes the cycle
              help: use a loop
            error[E0302]: expected `int`, found `bytes[<=1]`
              at 19:30 `"a"`
              help: a character is in single quotes: write `'a'`
        "#]],
    );
}

#[test]
fn e0303_bytes_and_indices() {
    check(
        r##"
process P {
  var a: bytes[<=3] = "abcd", q: array[4] of int = [1, 2, 3, 4];
  q = [0; 4];
  assert(q[4] == q[-1] && a[3] == 0);
  assert("abc"[3] == 'c');
  var id: pid(P) = @P[1];
  assert(id == @);
}
"##,
        expect![[r#"
            error[E0303]: a string of 4 bytes does not fit `bytes[<=3]`
              at 3:23 `"abcd"`
            error[E0303]: index 4 is outside 0..4
              at 5:12 `4`
            error[E0303]: index -1 is outside 0..4
              at 5:20 `-1`
            error[E0303]: index 3 is outside 0..3
              at 5:29 `3`
            error[E0303]: index 3 is outside 0..3
              at 6:16 `3`
            error[E0303]: `P` has 1 replica, no number 1
              at 7:20 `@P[1]`
        "#]],
    );
}

#[test]
fn e0304() {
    check(
        r##"
process P { var a: u32 = 1, b: int = 2; assert(a == b); if (a + b) a = 2; for i in a..b { a = 2; } a += b; b = a > b ? 1 : 2; }
"##,
        expect![[r#"
            error[E0304]: `u32` and `int` have no common type
              at 2:48 `a == b`
              help: convert one, as in `u32(b)`
            error[E0304]: `u32` and `int` have no common type
              at 2:61 `a + b`
              help: convert one, as in `u32(b)`
            error[E0304]: `u32` and `int` have no common type
              at 2:84 `a..b`
              help: convert one, as in `u32(b)`
            error[E0304]: `u32` and `int` have no common type
              at 2:100 `a += b`
              help: convert one, as in `u32(b)`
            error[E0304]: `u32` and `int` have no common type
              at 2:112 `a > b`
              help: convert one, as in `u32(b)`
        "#]],
    );
}

#[test]
fn e0305() {
    check(
        r##"
type r = record { x: int };
channel c(r);
process P { var a = { 1 }, b = eos |> {}; a = { x: 2 }; assert({ 1 } == { 2 }); var v: r = { 1 }; assert(v == { 1 }); out(c, v); }
process Q { in(c, _); }
"##,
        expect![[r#"
            error[E0305]: the type of this record is not known here
              at 4:21 `{ 1 }`
              help: declare the variable's type
            error[E0305]: the type of this union is not known here
              at 4:32 `eos |> {}`
              help: declare the variable's type
            error[E0305]: the type of this record is not known here
              at 4:64 `{ 1 }`
              help: declare the variable's type
        "#]],
    );
}

#[test]
fn e0306() {
    check(
        r##"
type r = record { x: int, p: data };
type data = bytes[<=4];
pool data 4;
fn f(a: int) -> int { a = 2; return a; }
process P {
  const K = 1;
  var v: r = { 1, "a" }, w: #r = #{ 1, "a" }, s: bytes[<=4] = "ab", n = 1;
  v.x = 2; w.x = 2; w.p[0] = 1; w.p = "b"; w.p += "c";
  s.len = 1; s[0] = 1; s += "c"; K = 2; n.x = 1; n[0] = 1;
  for i in 0..2 { i = 1; }
  assert(v == freeze(w) && s == "" && f(n) == K);
}
"##,
        expect![[r#"
            error[E0306]: `a` is a parameter, which is constant: it cannot be assigned
              at 5:23 `a`
              at 5:6 `a`: declared here
            warning[W0904]: this allocation faults when the pool `data` is empty
              at 8:19 `"a"`
              help: put it into a branch with a guard, as in `when (free(data) > 0)`
            warning[W0904]: this allocation faults when the pool `data` is empty
              at 8:40 `"a"`
              help: put it into a branch with a guard, as in `when (free(data) > 0)`
            error[E0306]: `v` is immutable
              at 9:3 `v.x`
              at 8:7 `v`: `v` is declared here
              help: declare it `#r`, or replace it whole
            error[E0306]: this part is boxed (`data`), its content is immutable
              at 9:21 `w.p[0]`
              help: replace the part whole
            warning[W0904]: this allocation faults when the pool `data` is empty
              at 9:39 `"b"`
              help: put it into a branch with a guard, as in `when (free(data) > 0)`
            error[E0306]: this part is boxed (`data`), its content is immutable
              at 9:44 `w.p`
              help: replace the part whole
            error[E0306]: `s` is immutable
              at 10:3 `s.len`
              at 8:47 `s`: `s` is declared here
              help: declare it `#bytes[<=4]`, or replace it whole
            error[E0306]: `s` is immutable
              at 10:14 `s[0]`
              at 8:47 `s`: `s` is declared here
              help: declare it `#bytes[<=4]`, or replace it whole
            error[E0306]: `s` is immutable
              at 10:24 `s`
              at 8:47 `s`: `s` is declared here
              help: declare it `#bytes[<=4]`
            error[E0306]: `K` is a constant: it cannot be assigned
              at 10:34 `K`
            error[E0208]: `int` has no field `x`
              at 10:43 `x`
            error[E0302]: expected an array or `bytes`, found `int`
              at 10:50 `n[0]`
            error[E0306]: `i` is the counter of a `for`, which is constant: it cannot be assigned
              at 11:19 `i`
              at 11:7 `i`: declared here
        "#]],
    );
}

#[test]
fn e0307() {
    check(
        r##"
type r = record { x: array[2] of int };
extern pure fn f(#bytes[<=4]) -> int;
process P { var v: r = { #[1, 2] }, w: #r = #{ #[1, 2] }; assert(v == w); }
type b = bytes[<=4]; pool b 2;
type holder = record { n: int, parts: array[2] of b }; pool holder 2;
extern fn g(#b, #holder);
"##,
        expect![[r#"
            error[E0307]: `f` is pure and cannot write a parameter
              at 3:19 `bytes[<=4]`
              help: drop the `#`, or drop `pure`
            error[E0307]: `#` is allowed only on a variable
              at 4:26 `#[1, 2]`
              help: drop the `#`
            error[E0307]: `#` is allowed only on a variable
              at 4:48 `#[1, 2]`
              help: drop the `#`
            error[E0307]: C cannot write the objects of `b` that are parts of this
              at 7:18 `holder`
              help: drop the `#`, or pass the parts that change by themselves
        "#]],
    );
}

#[test]
fn e0308() {
    check(
        r##"
layout ipv4 { version: 4, ihl: 4, tos: 7 }
layout a { x: 8 le, y: 16 le, z: 4, w: 16 le, v: 4 }
"##,
        expect![[r#"
            error[E0308]: layout `ipv4` has 15 bits, not whole bytes
              at 2:8 `ipv4`
              help: add a field of 1 bit
            error[E0308]: `x` cannot be little-endian
              at 3:12 `x`
              help: a `le` field has 16, 32 or 64 bits and begins on a byte
            error[E0308]: `w` cannot be little-endian
              at 3:37 `w`
              help: a `le` field has 16, 32 or 64 bits and begins on a byte
        "#]],
    );
}

#[test]
fn e0309() {
    check(
        r##"
const n = f(1); const m = x; const o = o + 1; const k = j; const j = k;
extern fn f(int) -> int;
process P[0] { var x: array[n] of int; var y: array[0] of int; var z: array of int; var v = 2; const c = v; var u: array[v] of u8; }
process Q[70000] { }
type t = bytes[<= 0 - 1]; pool t 0; type s = array[2] of array of int;
layout l { a: 0, b: 65, c: 8 }
"##,
        expect![[r#"
            error[E0309]: `f(1)` is not a constant
              at 2:11 `f(1)`
              help: a constant has literals, operators, conversions, `sizeof`, `@P[k]`, other constants, and calls of `fn`s with these
            error[E0208]: no variable named `x`
              at 2:27 `x`
            error[E0309]: `o` is defined by itself
              at 2:36 `o`
            error[E0309]: `k` is defined by itself
              at 2:53 `k`
              at 2:66 `j`: by way of `j`
            error[E0309]: array length 0 is below 1
              at 4:53 `0`
            error[E0309]: the length of `z` is not known
              at 4:68 `z`
              help: write `array[N] of ..`, or give it a first value
            error[E0309]: `v` is not a constant
              at 4:106 `v`
              help: a constant has literals, operators, conversions, `sizeof`, `@P[k]`, other constants, and calls of `fn`s with these
            error[E0309]: `v` is not a constant
              at 4:122 `v`
              help: a constant has literals, operators, conversions, `sizeof`, `@P[k]`, other constants, and calls of `fn`s with these
            error[E0309]: number of replicas 70000 is above 65535
              at 5:11 `70000`
            error[E0309]: bound of `bytes` -1 is below 0
              at 6:19 `0 - 1`
            error[E0309]: pool 0 is below 1
              at 6:34 `0`
            error[E0309]: the length of this array is not known
              at 6:58 `array of int`
              help: write `array[N] of ..`
            error[E0309]: layout width 0 is below 1
              at 7:15 `0`
            error[E0309]: layout width 65 is above 64
              at 7:21 `65`
        "#]],
    );
}

#[test]
fn records_and_arrays_of_the_wrong_size() {
    check(
        r##"
type r = record { x: int, y: int };
type u = union { a: int, b };
process P {
  var v: r = { 1 }, w: r = { 1, 2, 3 }, z: r = { x: 1 }, m: r = { x: 1, 2 }, a: array[3] of int = [1, 2], c: array[3] of u8 = [0; 4];
  var p: u = b |> { 1 }, q: u = a |> {}, s: u = b |> 3;
}
"##,
        expect![[r#"
            error[E0404]: record `r` has 2 fields, 1 given
              at 5:14 `{ 1 }`
              help: its fields are `x`, `y`
            error[E0404]: record `r` has 2 fields, 3 given
              at 5:28 `{ 1, 2, 3 }`
              help: its fields are `x`, `y`
            error[E0404]: record `r` needs `y`
              at 5:48 `{ x: 1 }`
            error[E0404]: fields are given by position and by name
              at 5:65 `{ x: 1, 2 }`
              help: name all of them or none
            error[E0404]: the array has 3 elements, 2 given
              at 5:99 `[1, 2]`
            error[E0404]: the array has 3 elements, 4 given
              at 5:127 `[0; 4]`
            error[E0404]: `b` has no payload
              at 6:19 `{ 1 }`
              help: write `b |> {}`
            error[E0302]: expected `int`, found a record
              at 6:38 `{}`
            error[E0404]: `b` has no payload
              at 6:54 `3`
              help: write `b |> {}`
        "#]],
    );
}

#[test]
fn parts_of_unions_are_not_assigned() {
    check(
        r##"
type u = union { a: int, b }; type r = record { u: u };
channel c(u) external in; channel d(int) external out;
process P {
  var v: u = a |> 1, w: #r = #{ v };
  v.a = 3; v.a += 1; v.z = 2; w.u.b = 3; in(d, v.a); out(c, v);
}
"##,
        expect![[r#"
            error[E0306]: `a` is a tag of the union `u`: its part cannot be assigned alone
              at 6:5 `a`
              help: replace the union whole, by `a |> value`; `match` shows what it holds
            error[E0306]: `a` is a tag of the union `u`: its part cannot be assigned alone
              at 6:14 `a`
              help: replace the union whole, by `a |> value`; `match` shows what it holds
            error[E0208]: `u` has no field `z`
              at 6:24 `z`
              help: take a union apart with `match`
            error[E0306]: `b` is a tag of the union `u`: its part cannot be assigned alone
              at 6:35 `b`
              help: replace the union whole, by `b |> {}`; `match` shows what it holds
            error[E0306]: `a` is a tag of the union `u`: its part cannot be assigned alone
              at 6:50 `a`
              help: replace the union whole, by `a |> value`; `match` shows what it holds
        "#]],
    );
}

#[test]
fn errors_do_not_cascade() {
    check(
        r##"
type r = record { x: missing, y: int };
channel c(missing, r);
extern fn f(missing) -> missing;
const k: missing = 3;
process P {
  var a: missing = 4, b = nothing, d = f(b), v: r = { b, 2 };
  a.b.c[3] = d; b = a + 1; v.x = 3; out(c, a, { 1, 2 }); in(c, $x, { $y, $z });
  x = y + z; z.foo = 3; match a { go |> { $q } => q.w = 1; } for i in a..b { d = i; } assert(k == 3);
}
"##,
        expect![[r#"
            error[E0208]: no type named `missing`
              at 2:22 `missing`
            error[E0208]: no type named `missing`
              at 3:11 `missing`
            error[E0208]: no type named `missing`
              at 4:13 `missing`
            error[E0208]: no type named `missing`
              at 4:25 `missing`
            error[E0208]: no type named `missing`
              at 5:10 `missing`
            error[E0208]: no type named `missing`
              at 7:10 `missing`
            error[E0208]: no variable named `nothing`
              at 7:27 `nothing`
            error[E0306]: `v` is immutable
              at 8:28 `v.x`
              at 7:46 `v`: `v` is declared here
              help: declare it `#r`, or replace it whole
            error[E0208]: `int` has no field `foo`
              at 9:16 `foo`
        "#]],
    );
}

#[test]
fn pools_of_what_cannot_be_boxed() {
    check(
        r##"
type n = int; pool n 4; type b = bytes[<=4]; pool b 2; type c = b; pool c 3; pool x 4;
"##,
        expect![[r#"
            error[E0302]: a pool holds records, unions, arrays or `bytes`, found `int`
              at 2:20 `n`
            error[E0302]: a pool holds records, unions, arrays or `bytes`, found `b`
              at 2:73 `c`
            error[E0208]: no type named `x`
              at 2:83 `x`
        "#]],
    );
}

#[test]
fn link_needs_manual_memory() {
    check(
        r##"
type b = bytes[<=4]; pool b 2;
process P { var x: b = "a"; link(x); unlink(x); }
"##,
        expect![[r#"
            warning[W0904]: this allocation faults when the pool `b` is empty
              at 3:24 `"a"`
              help: put it into a branch with a guard, as in `when (free(b) > 0)`
            error[E0601]: `link` needs `memory manual;`
              at 3:29 `link(x);`
              help: drop it: automatic memory counts by itself
            error[E0601]: `unlink` needs `memory manual;`
              at 3:38 `unlink(x);`
              help: drop it: automatic memory counts by itself
        "#]],
    );
}

#[test]
fn e0602() {
    check(
        r##"
memory manual;
type b = bytes[<=4]; pool b 2;
extern pure fn known(b) -> bool;
fn long(n: int) -> bool { return copied(n) > 3; }
fn copied(n: int) -> int { var x: b = "abc"; return n + x.len; }
channel c(int);
channel e(int) external out;
process P {
    var mine: b = "a";
    alt { in(c, $n if known("x")) { } when (free(b) > 0 && long(1)) in(e, $n if long(n)) { } }
    alt { when (known("y")) in(c, $n if known(mine)) { } }
    match mine { $n if known("z") => { } _ => { } }
}
process Q { while { out(c, 1); } }
"##,
        expect![[r#"
            warning[W0904]: this allocation faults when the pool `b` is empty
              at 10:19 `"a"`
              help: put it into a branch with a guard, as in `when (free(b) > 0)`
            error[E0602]: this condition takes an object of `b` each time a partner is searched
              at 11:29 `"x"`
              help: evaluate this before the operation, into a variable to `unlink` afterwards
            warning[W0904]: this allocation faults when the pool `b` is empty
              at 11:29 `"x"`
              help: put it into a branch with a guard, as in `when (free(b) > 0)`
            error[E0602]: this guard takes an object of `b` each time a partner is searched
              at 11:60 `long(1)`
              help: evaluate this before the operation, into a variable to `unlink` afterwards
            error[E0602]: this condition takes an object of `b` each time a partner is searched
              at 11:81 `long(n)`
              help: evaluate this before the operation, into a variable to `unlink` afterwards
            warning[W0904]: this allocation faults when the pool `b` is empty
              at 12:23 `"y"`
              help: put it into a branch with a guard, as in `when (free(b) > 0)`
            warning[W0904]: this allocation faults when the pool `b` is empty
              at 13:30 `"z"`
              help: put it into a branch with a guard, as in `when (free(b) > 0)`
        "#]],
    );
}

#[test]
fn link_in_manual_memory() {
    check(
        r##"
memory manual; type b = bytes[<=4]; pool b 2;
process P { var x: b = "a", n = 1; link(x); unlink(n); unlink(x, x); unlink(1 + 1); unlink(y); }
"##,
        expect![[r#"
            warning[W0904]: this allocation faults when the pool `b` is empty
              at 3:24 `"a"`
              help: put it into a branch with a guard, as in `when (free(b) > 0)`
            error[E0302]: expected a boxed value, found `int`
              at 3:52 `n`
            error[E0206]: `unlink` takes 1 argument, found 2 arguments
              at 3:56 `unlink(x, x);`
            error[E0302]: `unlink` takes a variable
              at 3:77 `1 + 1`
            error[E0208]: no variable named `y`
              at 3:92 `y`
        "#]],
    );
}
