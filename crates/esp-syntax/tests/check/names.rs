//! Names: declared twice, hidden, unknown, imported (E02.., W0901).

use super::{check, check_imports};
use expect_test::expect;

#[test]
fn e0204_items() {
    check(
        r##"
const a = 1;
channel a(int);
type b = int; const b = 2;
process P { var n = 1; out(a, n); }
"##,
        expect![[r#"
            error[E0204]: `a` is declared twice
              at 3:9 `a`
              at 2:7 `a`: first declared here
            error[E0204]: `b` is declared twice
              at 4:21 `b`
              at 4:6 `b`: first declared here
            error[E0208]: no channel named `a`
              at 5:28 `a`
              at 2:7 `a`: `a` is a constant
        "#]],
    );
}

#[test]
fn e0204_parts() {
    check(
        r##"
type r = record { x: int, y: int, x: u8 };
type u = union { a, b: int, a };
layout l { v: 4, v: 4 }
channel c(int) shared external in shared external out;
memory auto; memory manual;
type t = bytes[<=4]; pool t 2; pool t 3;
"##,
        expect![[r#"
            error[E0204]: field `x` is declared twice
              at 2:35 `x`
              at 2:19 `x`: first declared here
            error[E0204]: tag `a` is declared twice
              at 3:29 `a`
              at 3:18 `a`: first declared here
            error[E0204]: field `v` is declared twice
              at 4:18 `v`
              at 4:12 `v`: first declared here
            error[E0204]: `shared` is given twice for channel `c`
              at 5:35 `shared`
              at 5:16 `shared`: first given here
            error[E0204]: `external` is given twice for channel `c`
              at 5:42 `external out`
              at 5:23 `external in`: first given here
            error[E0204]: `memory` is set twice, and differently
              at 6:14 `memory manual;`
              at 6:1 `memory auto;`: first set here
            error[E0204]: the pool of `t` is declared twice
              at 7:37 `t`
              at 7:27 `t`: first declared here
        "#]],
    );
}

#[test]
fn e0204_fields_given_twice() {
    check(
        r##"
type r = record { x: int, y: int };
process P { var v: r = { x: 1, x: 2, y: 3 }; var w = v; assert(w == v); }
"##,
        expect![[r#"
            error[E0204]: field `x` is given twice
              at 3:32 `x`
              at 3:26 `x`: first given here
        "#]],
    );
}

#[test]
fn e0205() {
    check(
        r##"
process P {
  var n = 1; const K = 2;
  for i in 0..3 { var i = 2; n = i; }
  { var n = 3; assert(n == K); }
  var K = 1;
  assert(n == K);
}
"##,
        expect![[r#"
            error[E0205]: `i` hides the variable `i`
              at 4:23 `i`
              at 4:7 `i`: `i` is declared here
              help: choose another name
            error[E0205]: `n` hides the variable `n`
              at 5:9 `n`
              at 3:7 `n`: `n` is declared here
              help: choose another name
            error[E0205]: `K` hides the constant `K`
              at 6:7 `K`
              at 3:20 `K`: `K` is declared here
              help: choose another name
        "#]],
    );
}

#[test]
fn e0205_received() {
    check(
        r##"
channel c(int, int);
process P { var n = 1; const K = 2; in(c, $n, $K); assert(n == K); }
process Q { out(c, 1, 2); }
"##,
        expect![[r#"
            error[E0205]: `$n` hides the variable `n`
              at 3:44 `n`
              at 3:17 `n`: `n` is declared here
              help: drop the `$` to assign `n`, write `==n` to compare
            error[E0205]: `$K` hides the constant `K`
              at 3:48 `K`
              at 3:30 `K`: `K` is declared here
              help: write `==K` to compare
        "#]],
    );
}

#[test]
fn e0206() {
    check(
        r##"
fn f(a: int) -> int { return a; }
extern fn g(int, int) -> int;
process P {
  var x = f(1, 2) + g(1) + translate(1);
  x += translate(1, 2);
  assert(x == f());
}
"##,
        expect![[r#"
            error[E0206]: `f` is called with 2 arguments here and takes 1
              at 5:11 `f(1, 2)`
              at 2:4 `f`: `f` is declared here
            error[E0206]: `g` is called with 1 argument here and takes 2
              at 5:21 `g(1)`
              at 3:11 `g`: `g` is declared here
            error[E0208]: no function named `translate`
              at 5:28 `translate`
              help: a function of C is declared, as in `extern fn translate(int) -> int;`
            error[E0206]: `f` is called with 0 arguments here and takes 1
              at 7:15 `f()`
              at 2:4 `f`: `f` is declared here
        "#]],
    );
}

#[test]
fn e0207() {
    check(
        r##"
process P { #1 var a = 1; #1 a = 2; { #again } { #again } assert(a == 2); }
"##,
        expect![[r#"
            error[E0207]: label `#1` is used twice in process `P`
              at 2:27 `#1`
              at 2:13 `#1`: first used here
            error[E0207]: label `#again` is used twice in process `P`
              at 2:50 `#again`
              at 2:39 `#again`: first used here
        "#]],
    );
}

#[test]
fn e0208_did_you_mean() {
    check(
        r##"
type sendT = record { dest: int };
channel reqC(sendt);
layout ipv4 { ttl: 8 }
process server {
  var request: #bytes[<=20] = #"";
  in(reqc, $m);
  out(reqC, reqest);
  request.ipv[0].ttl = 1;
  request.ipv4[0].tll = 1;
  request.leng = 3;
  var id: pid(sever) = @servr;
}
"##,
        expect![[r#"
            error[E0208]: no type named `sendt`
              at 3:14 `sendt`
              help: did you mean `sendT`?
            error[E0208]: no channel named `reqc`
              at 7:6 `reqc`
              help: did you mean `reqC`?
            error[E0208]: no variable named `reqest`
              at 8:13 `reqest`
              help: did you mean `request`?
            error[E0208]: no field or layout named `ipv`
              at 9:11 `ipv`
              help: did you mean `ipv4`?
            error[E0208]: no field named `tll`
              at 10:19 `tll`
              help: did you mean `ttl`?
            error[E0208]: no field or layout named `leng`
              at 11:11 `leng`
              help: did you mean `len`?
            error[E0208]: no process named `sever`
              at 12:15 `sever`
              help: did you mean `server`?
            error[E0208]: no process named `servr`
              at 12:25 `servr`
              help: did you mean `server`?
        "#]],
    );
}

#[test]
fn the_id_of_another_process_as_a_pattern_is_reported_once() {
    check(
        r##"
channel c(pid(A), int);
process A { out(c, @, 1); }
process B { in(c, @A, _); }
"##,
        expect![[r#"
            error[E0201]: the pattern `@` is the own id and has no name
              at 4:20 `A`
              help: write `==@A` to match the id of another process
        "#]],
    );
}

#[test]
fn w0902_near_a_word_of_the_language() {
    check(
        r##"
channel c(int) external in;
process P { out(c, freez(1)); unlnk(1); out(c, sizof(2)); out(c, fre(3)); }
"##,
        expect![[r#"
            error[E0208]: no function named `freez`
              at 3:20 `freez`
              help: did you mean `freeze`?
            error[E0208]: no function named `unlnk`
              at 3:31 `unlnk`
              help: did you mean `unlink`?
            error[E0208]: no function named `sizof`
              at 3:48 `sizof`
              help: did you mean `sizeof`?
            error[E0208]: no function named `fre`
              at 3:66 `fre`
              help: did you mean `free`?
        "#]],
    );
}

#[test]
fn e0208_fields_and_tags() {
    check(
        r##"
type r = record { dest: int };
type u = union { send: r, eos };
process P {
  var a: r = { dst: 1 }, b: u = sned |> { 1 };
  match b { eso |> {} => { } _ => { } }
  assert(a.dset == 1 && a.x == 2);
  assert(b.send == a);
}
"##,
        expect![[r#"
            error[E0208]: no field named `dst`
              at 5:16 `dst`
              help: did you mean `dest`?
            error[E0208]: no tag named `sned`
              at 5:33 `sned`
              help: did you mean `send`?
            error[E0208]: no tag named `eso`
              at 6:13 `eso`
              help: did you mean `eos`?
            error[E0208]: no field named `dset`
              at 7:12 `dset`
              help: did you mean `dest`?
            error[E0208]: no field named `x`
              at 7:27 `x`
            error[E0208]: `u` has no field `send`
              at 8:12 `send`
              help: take a union apart with `match`
        "#]],
    );
}

#[test]
fn e0208_other_kinds() {
    check(
        r##"
channel c(int);
type t = int;
fn f() -> int { return 1; }
process P {
  var x = c + f + t;
  out(x, 1);
  x();
  c();
  var y: c = 1;
  in(P, _);
  assert(free(t) == sizeof(t));
}
"##,
        expect![[r#"
            error[E0208]: no variable named `c`
              at 6:11 `c`
              at 2:9 `c`: `c` is a channel
            error[E0208]: no variable named `f`
              at 6:15 `f`
              at 4:4 `f`: `f` is a function
            error[E0208]: no variable named `t`
              at 6:19 `t`
              at 3:6 `t`: `t` is a type
            error[E0208]: no channel named `x`
              at 7:7 `x`
            error[E0208]: no function named `x`
              at 8:3 `x`
            error[E0208]: no function named `c`
              at 9:3 `c`
              at 2:9 `c`: `c` is a channel
            error[E0208]: no type named `c`
              at 10:10 `c`
              at 2:9 `c`: `c` is a channel
            error[E0208]: no channel named `P`
              at 11:6 `P`
              at 5:9 `P`: `P` is a process
            error[E0208]: type `t` has no pool
              at 12:15 `t`
              help: declare one, as in `pool t 16;`
        "#]],
    );
}

#[test]
fn e0209() {
    check_imports(
        r##"
import "a.esp"; import "missing.esp";
process P { out(fromMissing, 1); unknownFn(2); }
"##,
        expect![[r#"
            error[E0209]: cannot read `missing.esp`: no such file
              at 2:24 `"missing.esp"`
        "#]],
    );
}

#[test]
fn import_order_and_cycles() {
    check_imports(
        r##"
import "b.esp";
process Main { out(c, B); }
"##,
        expect![[r#"
            processes: InB Main
        "#]],
    );
}

#[test]
fn w0901() {
    check(
        r##"
channel c(int); process Q { in(c, $c); assert(c); }
process P { var Q = 1; out(c, Q); }
"##,
        expect![[r#"
            warning[W0901]: `c` hides the channel `c`
              at 2:36 `c`
              at 2:9 `c`: the channel is declared here
            warning[W0901]: `Q` hides the process `Q`
              at 3:17 `Q`
              at 2:25 `Q`: the process is declared here
        "#]],
    );
}

#[test]
fn w0902() {
    check(
        r##"
process P { var a = translate(1, 2); log(a); log(translate(a, 3)); }
"##,
        expect![[r#"
            error[E0208]: no function named `translate`
              at 2:21 `translate`
              help: a function of C is declared, as in `extern fn translate(int, int) -> int;`
            error[E0208]: no function named `log`
              at 2:38 `log`
              help: a function of C is declared, as in `extern fn log(int) -> int;`
        "#]],
    );
}

#[test]
fn invalid_utf8_and_missing_files_do_not_cascade() {
    check_imports(
        r##"
import "latin1.esp";
process P { out(elsewhere, 1); }
"##,
        expect![[r#"
            error[E0209]: cannot read `latin1.esp`: no such file
              at 2:8 `"latin1.esp"`
        "#]],
    );
}

#[test]
fn unknown_in_pattern() {
    check(
        r##"
type u = union { go: int, stop };
channel c: u;
process P { var stopped = 0; in(c, stop); in(c, stoped); in(c, whatever); assert(stopped); }
"##,
        expect![[r#"
            error[E0401]: `stop` is a tag, not a variable to assign
              at 4:36 `stop`
              help: write `stop |> {}`
            error[E0208]: no variable named `stoped`
              at 4:49 `stoped`
              help: did you mean `stopped`?
            error[E0208]: no variable named `whatever`
              at 4:64 `whatever`
              help: write `$whatever` to declare it here
        "#]],
    );
}

#[test]
fn predeclared_functions_are_ordinary_names() {
    check(
        r##"
type packetT = bytes[<=8]; pool packetT 2;
type linkT = record { link: int, free: bool };
channel free(int) external in; channel c(packetT) external out;
fn sizeof(n: int) -> int { return n + 1; }
process link { while { var thaw = 1; in(c, _); if (free(packetT) > 0) out(free, sizeof(thaw)); } }
"##,
        expect![[r#""#]],
    );
}
