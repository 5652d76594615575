//! Procedures, templates and their instances, conditional items, processes without an instance.

use super::{accept, check};
use expect_test::expect;

const OUT: &str = "channel o(int) external in; channel i(int) external out;";

/// Checks a program with one channel to the environment, `o`, and one from it, `i`.
fn check_with_channels(source: &str, expected: expect_test::Expect) {
    check(&format!("{OUT} {source}"), expected);
}

#[test]
fn calls_are_statements_and_right_sides() {
    check_with_channels(
        "proc put(x: int) { out(o, x); }
         proc next(in c(int)) -> int { in(c, $n); return n + 1; }
         proc twice(in c(int)) -> int { return next(c); }
         process p {
           put(1);
           var a = next(i), b: i64 = next(i), v: array[2] of int = [0, 0];
           var r: #array[2] of int = #[0, 0];
           a = next(i); a += twice(i); r[a] = next(i);
           put(a + int(b) + v[0] + r[1]);
         }",
        expect![[""]],
    );
}

#[test]
fn parameters_by_reference_are_variables_of_the_caller() {
    check_with_channels(
        "proc inc(n: #int) { n += 1; }
         proc set(r: #array[2] of int, k: int) { r[k] = 1; }
         proc init(n: #int) { n = 5; }
         process p {
           var n = 0, fresh, u: u8 = 0, r: #array[2] of int = #[0, 0], s: array[2] of int = [0, 0];
           inc(n); set(r, n); init(fresh);
           inc(u); inc(3); inc(r[0]); set(s, 1);
           out(o, n + r[0] + fresh + int(u) + s[0]);
         }",
        expect![[r#"
            error[E0306]: `s` is immutable
              at 2:50 `r[k]`
              at 5:72 `s`: `s` is declared here
              at 7:39 `set(s, 1);`: in `set`, called here
              help: declare it `#array[2] of int`, or replace it whole
            error[E0302]: expected `int`, found `u8`
              at 6:36 `fresh`
              at 5:23 `fresh`: `fresh` is declared here
              help: a variable that is passed by reference has the type of the parameter
            error[E0302]: expected `int`, found `u8`
              at 7:16 `u`
              at 5:30 `u`: `u` is declared here
              help: a variable that is passed by reference has the type of the parameter
            error[E0302]: expected a variable of type `#int`
              at 7:24 `3`
              help: a part is passed by a variable: assign it before, and back behind the call
            error[E0302]: expected a variable of type `#int`
              at 7:32 `r[0]`
              help: a part is passed by a variable: assign it before, and back behind the call
            error[E0503]: `fresh` may be read before it is assigned
              at 8:30 `fresh`
              at 5:23 `fresh`: `fresh` is declared here
        "#]],
    );
}

#[test]
fn the_names_of_the_caller_are_not_visible() {
    check_with_channels(
        "proc f(x: int) -> int { var y = x + hidden; return y; }
         process p { var hidden = 1, x = 2, y = f(x); out(o, y + hidden); }",
        expect![[r#"
            error[E0208]: no variable named `hidden`
              at 1:94 `hidden`
              at 2:49 `f(x)`: in `f`, called here
        "#]],
    );
}

#[test]
fn what_a_procedure_does_is_done_by_the_process() {
    check_with_channels(
        "channel c(int);
         proc send(out c: int, n: int) { out(c, n); }
         process p { send(c, 1); send(c, 2); }
         process q { while { in(c, $n); out(o, n); } }
         process r { in(c, _); }",
        expect![[r#"
            warning[W0903]: nothing reads `i`
              at 1:37 `i`
            error[E0405]: `q` and `r` can both take `_` from `c`
              at 5:22 `in(c, _)`
              at 4:30 `in(c, $n)`: `q` takes it here
              help: make the patterns disjoint or the channel `shared`
        "#]],
    );
}

#[test]
fn channels_are_passed_with_their_types_and_directions() {
    check_with_channels(
        "proc send(out c: int) { out(c, 1); }
         proc take(in c(int, int)) { in(c, _, _); }
         proc wrong(in c(int)) { out(c, 1); }
         proc forward(in c(int)) { send(c); }
         process p { send(i); take(i); wrong(i); forward(i); send(3); send(nothing); }",
        expect![[r#"
            error[E0408]: `c` is an `in` parameter, `out` is not possible
              at 3:34 `out(c, 1)`
              at 1:37 `i`: `i` is declared here
              at 5:40 `wrong(i);`: in `wrong`, called here
            error[E0408]: `c` is an `in` parameter, `out` is not possible
              at 4:41 `c`
              at 1:37 `i`: `i` is declared here
              at 5:50 `forward(i);`: in `forward`, called here
            error[E0408]: `i` is written by the environment, `out` is not possible
              at 5:27 `i`
              at 1:37 `i`: `i` is declared here
            error[E0302]: channel `i` carries (int), and `c` expects (int, int)
              at 5:36 `i`
              at 1:37 `i`: `i` is declared here
            error[E0302]: `c` takes a channel
              at 5:67 `3`
            error[E0208]: no channel named `nothing`
              at 5:76 `nothing`
        "#]],
    );
}

#[test]
fn errors_inside_are_reported_once_with_a_call() {
    check_with_channels(
        "proc bad(n: int) { out(o, n, n); }
         proc outer(n: int) { bad(n); }
         process p { outer(1); outer(2); bad(3); }",
        expect![[r#"
            error[E0404]: channel `o` carries 1 value, 2 given
              at 1:77 `out(o, n, n)`
              at 1:9 `o`: `o` is declared here
              at 2:31 `bad(n);`: in `bad`, called here
              at 3:22 `outer(1);`: in `outer`, called here
        "#]],
    );
}

#[test]
fn misplaced_calls_and_returns() {
    check_with_channels(
        "proc f() -> int { return 1; }
         proc g() { return 1; }
         proc h() -> int { return; }
         proc k(n: int) -> int { if (n > 0) return 1; }
         fn pure(n: int) -> int { g(); return n; }
         process p { var x = f() + 1; x = g(); f(1); x = k(x); x = h(); assert(f() == 1); out(o, x); }",
        expect![[r#"
            error[E0302]: `proc h` has to return a value of type `int`
              at 3:28 `return;`
              at 6:68 `h()`: in `h`, called here
            error[E0502]: `proc k` can end without `return`
              at 4:15 `k`
              at 4:55 `}`: control can come here
              at 6:58 `k(x)`: in `k`, called here
              help: return a value on every path
            error[E0501]: `fn pure` may not use `g`
              at 5:35 `g`
              at 5:13 `pure`: a pure function computes its result and nothing else
            error[E0508]: `f` is a procedure and cannot be called inside of an expression
              at 6:30 `f()`
              help: assign its result first, as in `var x = f(..);`
            error[E0302]: `g` has no result
              at 6:43 `g()`
            error[E0206]: `f` is called with 1 argument here and takes 0
              at 6:48 `f(1);`
              at 1:63 `f`: `f` is declared here
            error[E0508]: `f` is a procedure and cannot be called inside of an expression
              at 6:80 `f()`
              help: assign its result first, as in `var x = f(..);`
        "#]],
    );
}

#[test]
fn procedures_do_not_call_themselves() {
    check_with_channels(
        "proc a(n: int) { b(n); }
         proc b(n: int) { a(n - 1); }
         process p { a(3); }",
        expect![[r#"
            error[E0501]: `proc a` may not call itself: a -> b -> a
              at 2:27 `a`
              at 1:63 `a`: `a` is declared here
              at 1:75 `b(n);`: in `b`, called here
              at 3:22 `a(3);`: in `a`, called here
              help: use a loop
        "#]],
    );
}

#[test]
fn a_procedure_without_a_call_is_checked() {
    check_with_channels(
        "proc unused(x: int, r: #int, in c(int)) -> u8 { in(c, $n); out(c, n); r = x + true; x = 1; var z: int; out(o, z); }
         process p { out(o, 1); }",
        expect![[r#"
            error[E0502]: `proc unused` can end without `return`
              at 1:63 `unused`
              at 1:172 `}`: control can come here
              help: return a value on every path
            error[E0408]: `c` is an `in` parameter, `out` is not possible
              at 1:117 `out(c, n)`
              at 1:90 `c`: `c` is declared here
            error[E0302]: expected `int`, found `bool`
              at 1:136 `true`
              help: write `int(true)`
            error[E0306]: `x` is a parameter, which is constant: it cannot be assigned
              at 1:142 `x`
              at 1:70 `x`: declared here
            error[E0503]: `z` may be read before it is assigned
              at 1:168 `z`
              at 1:153 `z`: `z` is declared here
        "#]],
    );
}

#[test]
fn the_result_and_its_paths() {
    check_with_channels(
        "proc first(in c(int)) -> int {
           while {
             in(c, $n);
             if (n > 0) return n;
           }
         }
         process p { while { var n = first(i); out(o, n); } }",
        expect![[""]],
    );
}

#[test]
fn a_server_in_a_procedure_may_rest() {
    let program = accept(
        &format!(
            "{OUT} proc serve() {{ while {{ in(i, $n); out(o, n); }} }}
         proc step() {{ in(i, $n); out(o, n); }}
         process p {{ serve(); }}
         process q {{ while {{ step(); }} }}"
        )
        .replace("channel i(int)", "channel i(int) shared"),
        expect![[""]],
    );
    let text = format!("{:?}", program.processes);
    assert_eq!(text.matches("idle: true").count(), 2);
}

#[test]
fn instances_of_templates() {
    let program = accept(
        "channel jobA(int); channel jobB(int) shared; channel done(pid(w1, w2, w3), int) external in;
         process worker(in job: int, out done(pid(w1, w2, w3), int), n: int) {
           var data: #array[n] of int = #[0; n];
           while { in(job, data[n - 1]); out(done, @, data[0]); }
         }
         process w1 = worker(jobA, done, 3);
         process w2[4] = worker(jobB, done, 2 + 3);
         process w3[2] = worker(jobB, done, 1);
         process main { out(jobA, 1); out(jobB, 2); }",
        expect![""],
    );
    let names: Vec<String> =
        program.processes.iter().map(|process| format!("{}[{}]", process.name, process.replicas)).collect();
    assert_eq!(names, ["w1[1]", "w2[4]", "w3[2]", "main[1]"]);
}

#[test]
fn wrong_instances() {
    check_with_channels(
        "process worker(in c(int), n: int, big: u8) { while { in(c, $x); out(o, x + n + int(big)); } }
         process unused(n: #int) { out(o, n + true); }
         process a = worker(i, 1);
         process b = worker(i, 1, 300);
         process c = worker(o, 1, 2);
         process d = wroker(i, 1, 2);
         process e = worker(i, f(), 2);
         process worker2 { var x = @worker; }",
        expect![[r#"
            error[E0405]: `b` and `e` can both take `_` from `i`
              at 1:111 `in(c, $x)`
              at 1:111 `in(c, $x)`: `b` takes it here
              at 7:10 `process e = worker(i, f(), 2);`: in `worker`, called here
              help: make the patterns disjoint or the channel `shared`
            error[E0307]: `n` is a parameter of a template, which is constant
              at 2:25 `n: #int`
              help: drop the `#`: a process has no variables of others
            error[E0302]: expected `int`, found `bool`
              at 2:47 `true`
              help: write `int(true)`
            error[E0206]: `worker` is called with 2 arguments here and takes 3
              at 3:10 `process a = worker(i, 1);`
              at 1:66 `worker`: `worker` is declared here
            error[E0303]: 300 does not fit `u8`
              at 4:35 `300`
              help: `u8` holds 0 to 255
            error[E0408]: `o` is read by the environment, `in` is not possible
              at 5:29 `o`
              at 1:9 `o`: `o` is declared here
            error[E0208]: no template named `wroker`
              at 6:22 `wroker`
              help: did you mean `worker`?
            error[E0309]: `f()` is not a constant
              at 7:32 `f()`
              help: a constant has literals, operators, conversions, `sizeof`, `@P[k]`, other constants, and calls of `fn`s with these
            error[E0208]: no process named `worker`
              at 8:37 `worker`
              at 1:66 `worker`: `worker` is a template
              help: did you mean `worker2`?
        "#]],
    );
}

#[test]
fn a_process_without_an_instance_is_checked() {
    check_with_channels(
        "const N = 0;
         channel idle1(pid(p, q), int) external in;
         process q[N] { out(o, 1); out(idle1, @, 2); out(o, true); }
         process p { out(idle1, @, 1); out(o, int(@q[0])); }
         process r[0 - 1] { }",
        expect![[r#"
            error[E0302]: expected `int`, found `bool`
              at 3:61 `true`
              help: write `int(true)`
            error[E0208]: no process named `q`
              at 4:52 `q`
              at 3:18 `q`: `q` is a process without an instance
            error[E0309]: number of replicas -1 is below 0
              at 5:20 `0 - 1`
        "#]],
    );
}

#[test]
fn conditional_items() {
    let program = accept(
        "const DEBUG = 0; const LEVEL = 2;
         if DEBUG { process p { nothing(unknown); } const N = 3; } else if LEVEL == 2 { const N = 4; } else { const N = 5; }
         if (N == 4) { channel o(int) external in; process q[N] { out(o, N); } }",
        expect![[""]],
    );
    assert_eq!(program.processes[0].replicas, 4);
}

#[test]
fn wrong_conditions() {
    check(
        "channel o(int) external in;
         if o { } if UNKNOWN { } if 1 / 0 { } if true && \"x\" { }
         if 1 { import \"a.esp\"; process p { out(o, 1); } }
         process q { if 1 { } }",
        expect![[r#"
            error[E0208]: no variable named `o`
              at 2:13 `o`
            error[E0208]: no variable named `UNKNOWN`
              at 2:22 `UNKNOWN`
            error[E0303]: division by zero in a constant
              at 2:37 `1 / 0`
            error[E0302]: expected `bool`, found `bytes[<=1]`
              at 2:58 `"x"`
            error[E0201]: an import is not conditional
              at 3:17 `import`
              help: put it outside of the `if`
            error[E0201]: expected `(`, found `1`
              at 4:24 ``
              at 4:25 `1`: unexpected
              help: `if` takes its condition in parentheses, `if (c) ..`
        "#]],
    );
}

#[test]
fn a_result_that_is_not_used_is_reported_at_the_call() {
    check(
        "channel c(int) external in;
proc put(n: int) -> bool {
  if (n > 3) return false;
  out(c, n);
  return true;
}
process p { put(1); var _done = put(2); if (true) put(4); }",
        expect![[r#"
            warning[W0907]: the result of this call is never read
              at 7:13 `put(1);`
              help: assign it, to a name like `_done` if that is meant
            warning[W0907]: the result of this call is never read
              at 7:51 `put(4);`
              help: assign it, to a name like `_done` if that is meant
        "#]],
    );
}
