//! Warnings that need a whole program (W09..).

use super::check;
use expect_test::expect;

#[test]
fn w0903() {
    check(
        r##"
channel a(int); channel b(int); channel c(int); channel d(int) external in; channel e(int) external out;
process P { in(a, _); out(b, 1); }
"##,
        expect![[r#"
            warning[W0903]: nothing writes `a`
              at 2:9 `a`
            warning[W0903]: nothing reads `b`
              at 2:25 `b`
            warning[W0903]: nothing reads or writes `c`
              at 2:41 `c`
            warning[W0903]: nothing writes `d`
              at 2:57 `d`
            warning[W0903]: nothing reads `e`
              at 2:85 `e`
        "#]],
    );
}

/// The environment of a model may be the only one that uses a channel.
#[test]
fn channels_of_an_environment() {
    check(
        r##"
channel c(int) external out; channel readyC();
process P { in(c, _); in(c, _); }
model m { env e { out(c, 1); out(readyC); } env f { in(readyC); out(c, 2); } }
"##,
        expect![[r#""#]],
    );
}

#[test]
fn w0903_of_a_port() {
    check(
        r##"
type m = union of { a: int, b: bool };
channel c(bool, int); channel d(m); channel e(pid(P, R), int);
process P { var x = 0; out(c, false, 1); out(d, a |> x); in(e, @, _); }
process Q { alt { in(c, true, 1) { } in(c, true, _) { } } in(d, b |> $y); out(e, @R[1], int(y)); }
process S { in(c, false, _); in(d, a |> _); }
process R[2] { while { idle in(e, @, _); } }
"##,
        expect![[r#"
            warning[W0903]: nothing writes a message on `e` that this takes
              at 4:58 `in(e, @, _)`
              help: it waits forever: correct the pattern, or add the `out`
            warning[W0903]: nothing writes a message on `c` that this takes
              at 5:19 `in(c, true, 1)`
              help: it waits forever: correct the pattern, or add the `out`
            warning[W0903]: nothing writes a message on `c` that this takes
              at 5:38 `in(c, true, _)`
              help: it waits forever: correct the pattern, or add the `out`
            warning[W0903]: nothing writes a message on `d` that this takes
              at 5:59 `in(d, b |> $y)`
              help: it waits forever: correct the pattern, or add the `out`
        "#]],
    );
}

#[test]
fn w0904() {
    check(
        r##"
type t = bytes[<=4]; pool t 2;
channel in1(int) external out; channel c(t) external in;
extern fn make() -> t;
process P {
  var b: #t = #"a", v: t = "b";
  while {
    alt {
      when (free(t) > 0) in(in1, _) { v = "x"; out(c, v); out(c, "y"); }
      when (free(t) > 1) out(c, "z") { }
      out(c, freeze(b)) { v = make(); }
    }
    if (free(t) > 0) { b = thaw(v); out(c, freeze(b)); }
  }
}
"##,
        expect![[r#"
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 6:15 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 6:28 `"b"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 9:66 `"y"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 11:14 `freeze(b)`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 11:31 `make()`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
        "#]],
    );
}

/// Only a `freeze` that copies gets a warning; every literal does.
#[test]
fn w0904_of_a_freeze() {
    check(
        r##"
type t = bytes[<=4]; pool t 9; channel c(t) shared; channel d(t) shared;
process Moved { var b: #t = #"a"; out(c, freeze(b)); }
process UsedAgain { var b: #t = #"a"; out(c, freeze(b)); assert(b.len == 1); }
process NewAgain { var b: #t = #"a"; out(c, freeze(b)); b = #"b"; assert(b.len == 1); }
process Loop { var b: #t = #"a"; while { out(c, freeze(b)); } }
process LeftLoop { var b: #t = #"a"; while { out(c, freeze(b)); break; } }
process Arms { var b: #t = #"a"; if (free(t) == 9) { out(c, freeze(b)); } else { out(d, freeze(b)); } }
process OneArm { var b: #t = #"a"; if (b.len == 1) { out(c, freeze(b)); assert(b.len == 1); } else { out(d, freeze(b)); } }
process Alt { var b: #t = #"a"; alt { out(c, freeze(b)) { } out(d, freeze(b)) { b[0] = 1; } } }
process Readers { while { alt { in(c, _) { } in(d, _) { } } } }
"##,
        expect![[r#"
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 3:29 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 4:33 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 4:46 `freeze(b)`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 5:32 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 5:61 `#"b"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 6:28 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 6:49 `freeze(b)`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 7:32 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 8:28 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 9:30 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 9:61 `freeze(b)`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 10:27 `#"a"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 10:68 `freeze(b)`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
        "#]],
    );
}

#[test]
fn w0905() {
    check(
        r##"
channel c(int) external in;
fn f(n: int) -> int { var i = 0; while (i < n) { i += 1; } while (i != 0) { i -= 1; } return i; }
process P {
  var n = 0, m = 10, k: u8 = 0;
  while (n < 10) { n += 1; }
  while (n >= 0) { if (n == 5) { n -= 1; continue; } n = n - 2; }
  while (n < m) { if (n == 3) continue; n += 1; }
  while (n < m) { n += 1; m += 1; }
  while (n < m) { n -= 1; }
  while (k < m && m > 0) { k += 1; }
  while (n == 0) { n = f(n); }
  while (m > 0) { out(c, m); }
  while { n += 1; break; }
  while { n += 1; if (n == 3) break; }
  while { yield; }
}
"##,
        expect![[r#"
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 3:60 `while (i != 0) `
              help: bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 8:3 `while (n < m) `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 9:3 `while (n < m) `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 10:3 `while (n < m) `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 12:3 `while (n == 0) `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 15:3 `while `
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
        "#]],
    );
}

#[test]
fn w0906() {
    check(
        r##"
channel c(int, bool) external out;
process P {
  var n = 0, x;
  pri alt { in(c, 1, _) { } when (n) in(c, _, _) { } in(c, $m if m > 3, _) { n = m; } in(c, 1, true) { } in(c, x, _) { n = x; } in(c, 2, $f) { n = int(f); } }
  match n { 1 => { } _ => { } 2 => { } }
  alt { in(c, _, _) { } in(c, 1, _) { } }
}
"##,
        expect![[r#"
            warning[W0906]: this branch of `pri alt` is covered by an earlier one
              at 5:87 `in(c, 1, true)`
              at 5:13 `in(c, 1, _)`: what it takes is taken here
              help: drop it, or move it up
            warning[W0906]: this branch of `pri alt` is covered by an earlier one
              at 5:129 `in(c, 2, $f)`
              at 5:13 `in(c, 1, _)`: what it takes is taken here
              help: drop it, or move it up
            warning[W0906]: this arm of `match` is covered by earlier ones
              at 6:31 `2`
              help: drop it, or move it up
        "#]],
    );
}

#[test]
fn w0907() {
    check(
        r##"
fn f(a: int, b: int) -> int { return a; }
channel c(int, int, int) external out;
process P {
  var unused = 1, _meant = 2, written; written = 3; written += 1;
  in(c, $a, $b, written);
  for i in 0..3 { yield; }
  assert(f(a, 1));
}
"##,
        expect![[r#"
            warning[W0907]: `b` is never read
              at 2:14 `b`
              help: drop it, or call it `_b` if it is meant
            warning[W0907]: `unused` is never read
              at 5:7 `unused`
              help: drop it, or call it `_unused` if it is meant
            warning[W0907]: `written` is never read
              at 5:31 `written`
              help: drop it, or call it `_written` if it is meant
            warning[W0907]: `b` is never read
              at 6:14 `b`
              help: write `_` instead
        "#]],
    );
}

#[test]
fn w0908() {
    check(
        r##"
process P {
  var a: u8 = 200, b: u8 = 100, n = 3, w: i64;
  var sum: int = a + b, low: u8 = a + b;
  n = int(a + b);
  if (a + b == n) n = 2;
  if (a + b == 300 - 256) n = 2;
  w = i64(n * n);
  w = n * n;
  n += a * b;
  assert(int((a + b) & 1) == sum + low + int(w));
}
"##,
        expect![[r#"
            warning[W0908]: `u8` arithmetic wraps before it is widened to `int`
              at 5:11 `a + b`
              help: convert an operand first, as in `int(x)`
            warning[W0908]: `u8` arithmetic wraps before it is widened to `int`
              at 6:7 `a + b`
              help: convert an operand first, as in `int(x)`
            error[E0303]: 300 does not fit `u8`
              at 7:16 `300`
              help: `u8` holds 0 to 255
            error[E0303]: 256 does not fit `u8`
              at 7:22 `256`
              help: `u8` holds 0 to 255
            warning[W0908]: `int` arithmetic wraps before it is widened to `i64`
              at 8:11 `n * n`
              help: convert an operand first, as in `i64(x)`
            warning[W0908]: `u8` arithmetic wraps before it is widened to `int`
              at 10:8 `a * b`
              help: convert an operand first, as in `int(x)`
        "#]],
    );
}

#[test]
fn nothing_more_after_errors() {
    check(
        r##"
channel c(int);
process P { var unused = 1, x = nothing; in(c, 3); }
"##,
        expect![[r#"
            error[E0406]: no process takes `0` from `c`
              at 2:9 `c`
              at 3:42 `in(c, 3)`: `P` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
            error[E0208]: no variable named `nothing`
              at 3:33 `nothing`
        "#]],
    );
}
