//! Deadlocks and every fault of the language.

use crate::support::{check_process, check_verdict, model, verdict_text};
use expect_test::expect;

#[test]
fn an_empty_process_holds() {
    check_verdict(
        "process p { }",
        expect![[r#"
        holds, 2 states, 1 reduced
    "#]],
    );
}

#[test]
fn one_message_holds() {
    check_verdict(
        "channel c(int); process p { out(c, 1); } process q { in(c, $n); assert(n == 1); }",
        expect![[r#"
        holds, 8 states, 2 reduced
    "#]],
    );
}

#[test]
fn a_send_without_a_receiver_is_a_deadlock() {
    check_verdict(
        "channel c(int); process p { out(c, 1); out(c, 2); } process q { in(c, $n); }",
        expect![[r#"
        error deadlock
           1  p -> q: c(1)  (p.esp:1:29)
        fault `deadlock`, channel `c`
          `p` waits at p.esp:1:40 for no instance to read `c`
    "#]],
    );
}

#[test]
fn crossed_requests_are_a_deadlock() {
    check_verdict(
        "channel a(int); channel b(int);
         process p { out(a, 1); in(b, $x); }
         process q { out(b, 1); in(a, $x); }",
        expect![[r#"
            error deadlock
            fault `deadlock`, channel `a`
              `p` waits at p.esp:2:22 for `q` to read `a`
              `q` waits at p.esp:3:22 for `p` to read `b`
        "#]],
    );
}

/// A third process waits for the environment or the clock: the state is quiescent, and a part of it is deadlocked.
#[test]
fn a_partial_deadlock_is_found_while_a_server_waits() {
    for (external, server) in [
        ("channel asked() external out;", "in(asked)"),
        ("channel reported() external in;", "out(reported)"),
        ("", "after (1 s)"),
    ] {
        let text = format!(
            "channel a(int); channel b(int); {external}
             process p {{ out(a, 1); in(b, _); }}
             process q {{ out(b, 1); in(a, _); }}
             process r {{ while {{ alt {{ {server} {{ }} }} }} }}"
        );
        let said = verdict_text(&model(&text, None));
        assert!(said.starts_with("error deadlock\nfault `deadlock`, channel `a`\n"), "{said}");
    }
}

/// The message of the environment leads into a loop without quiescent states.
#[test]
fn a_message_of_the_environment_does_not_hide_a_deadlock() {
    check_verdict(
        "channel a(int); channel b(int); channel external(u8) external out;
         process r { in(external, _); while { yield; } }
         process p { out(a, 1); out(a, 1); }
         process q { in(a, _); in(b, _); }
         process s { out(b, 1); }",
        expect![[r#"
            error deadlock
               1  p -> q: a(1)  (p.esp:3:22)
               2  s -> q: b(1)  (p.esp:5:22)
            fault `deadlock`, channel `a`
              `p` waits at p.esp:3:33 for no instance to read `a`
        "#]],
    );
}

#[test]
fn an_assertion_that_depends_on_the_schedule() {
    check_verdict(
        "channel c(int);
         process p { out(c, 1); } process q { out(c, 2); }
         process r { in(c, $x); in(c, $y); assert(x < y); }",
        expect![[r#"
            error assert
               1  q -> r: c(2)  (p.esp:2:47)
               2  p -> r: c(1)  (p.esp:2:22)
               3  r  (p.esp:3:51)
            fault `assert` in `r` at p.esp:3:44
        "#]],
    );
}

#[test]
fn waiting_for_the_environment_is_no_deadlock() {
    check_verdict(
        "channel c(int) external out; channel d(int) external in;
         process p { while { in(c, $x); out(d, 0); } }",
        expect![[r#"
            holds, 5 states, 2 reduced
        "#]],
    );
}

#[test]
fn the_environment_sends_every_byte() {
    check_verdict(
        "channel c(u8) external out;
         process p { var a: #array of int = #[0; 255]; while { in(c, $x); a[x] = 1; } }",
        expect![[r#"
            error bounds
               1  environment -> p: c(255)  (p.esp:2:64)
               2  p  (p.esp:2:82)
            fault `bounds` in `p` at p.esp:2:75
        "#]],
    );
}

#[test]
fn division_by_a_value_of_the_environment() {
    check_verdict(
        "channel c(u8) external out; process p { while { in(c, $x); assert(100 / x >= 0); } }",
        expect![[r#"
        error div
           1  environment -> p: c(0)  (p.esp:1:49)
           2  p  (p.esp:1:67)
        fault `div` in `p` at p.esp:1:67
    "#]],
    );
}

#[test]
fn overflow_is_a_fault_when_verifying() {
    check_verdict(
        "extern fn f() -> i8; process p { var x: i8 = f(); if (x > 0) { x = x + 1; assert(x > 0); } }",
        expect![[r#"
        error overflow
           1  p  (p.esp:1:46), f() = 127
        fault `overflow` in `p` at p.esp:1:68
    "#]],
    );
}

#[test]
fn an_exhausted_pool() {
    check_verdict(
        "type t = bytes[<=4]; pool t 2; channel c(int) external out; channel d: t;
         process p { while { in(c, _); out(d, \"x\"); } }
         process q { in(d, $a); in(d, $b); in(d, $e); assert(a == b && b == e); }",
        expect![[r#"
            error pool
               1  environment -> p: c(0)  (p.esp:2:30)
               2  p -> q: d("x")  (p.esp:2:40)
               3  environment -> p: c(0)  (p.esp:2:30)
               4  p -> q: d("x")  (p.esp:2:40)
               5  environment -> p: c(0)  (p.esp:2:30)
               6  p  (p.esp:2:47)
            fault `pool` in `p` at p.esp:2:47: no free object of `t`
        "#]],
    );
}

#[test]
fn a_double_release() {
    check_process(
        "memory manual; type t = bytes[<=4]; pool t 2; channel d: t;
         process p { out(d, \"x\"); }
         process q { while { in(d, $a); unlink(a); unlink(a); } }
         model m { process q; abstract range d.0 0..2; }",
        "q",
        expect![[r#"
            error memory
               1  environment -> q: d("")  (p.esp:3:30)
               2  q  (p.esp:3:41)
            fault `memory` in `q` at p.esp:3:52
        "#]],
    );
}

#[test]
fn a_use_after_release_and_reallocation() {
    check_process(
        "memory manual; type t = bytes[<=4]; pool t 2; channel d: t;
         process p { out(d, \"x\"); }
         process q { while { in(d, $a); unlink(a); var b: t = \"y\"; assert(a.len < 4); unlink(b); } }
         model m { process q; abstract range d.0 0..2; }",
        "q",
        expect![[r#"
            error memory
               1  environment -> q: d("")  (p.esp:3:30)
               2  q  (p.esp:3:41)
            fault `memory` in `q` at p.esp:3:75
        "#]],
    );
}

#[test]
fn a_leak() {
    check_verdict(
        "memory manual; type t = bytes[<=4]; pool t 2; channel d: t;
         process p { out(d, \"x\"); }
         process q { while { in(d, $a); assert(a.len < 2); } }
         model m { process q; abstract range d.0 0..2; }",
        expect![[r#"
            error leak
               1  environment -> q: d("")  (p.esp:3:30)
            an object of `t` is never released: `q` has lost it
        "#]],
    );
}

/// Code of called functions that no call executes, including nested calls.
#[test]
fn unreachable_code_of_functions() {
    check_verdict(
        "channel c(u8);
         fn small(x: u8) -> u8 {
         if (x > 100) {
         return 100;
         }
         return x;
         }
         fn twice(x: u8) -> u8 {
         if (x == 0) { return 0; }
         return small(x) * 2;
         }
         fn other(x: u8) -> u8 {
         return small(x) + 1;
         }
         process p { out(c, 1); out(c, 2); }
         process q { while { idle in(c, $x);
         if (x > 7) {
         assert(other(x) > 0);
         }
         assert(twice(x) > 1); } }",
        expect![[r#"
            holds, 12 states, 3 reduced
            never: line 4
            never: line 9
            never: line 18
        "#]],
    );
}

#[test]
fn unreachable_code() {
    check_verdict(
        "channel c(bool) external out;
         process p {
           while { in(c, $x);
             if (x && !x)
               assert(false);
           }
         }",
        expect![[r#"
            holds, 4 states, 1 reduced
            never: line 5
        "#]],
    );
}

#[test]
fn a_timeout_can_come_at_any_time() {
    check_verdict(
        "channel c(int); process p { out(c, 1); }
         process q { var got = false; alt { in(c, $x) { got = true; } after (1 s) { } } assert(got); }",
        expect![[r#"
            error assert
               1  q: timeout  (p.esp:2:71)
               2  q  (p.esp:2:71)
            fault `assert` in `q` at p.esp:2:89
        "#]],
    );
}

#[test]
fn priority_is_respected() {
    check_verdict(
        "channel a(); channel b(); channel done();
         process p { out(a); out(done); } process q { out(b); out(done); }
         process r { var n = 0; in(done) { } in(done) { } }
         process s { pri alt { in(a) { in(b); } in(b) { in(a); } } }",
        expect![[r#"
            holds, 176 states, 27 reduced
        "#]],
    );
}

#[test]
fn else_is_taken_only_if_no_branch_is_enabled() {
    check_verdict(
        "channel a(); process p { out(a); }
         process q { var tries = 0; var got = false;
           while (!got && tries < 3) { alt { in(a) { got = true; } else { tries += 1; yield; } } } 
           if (!got) in(a);
         }",
        expect![[r#"
            holds, 32 states, 13 reduced
        "#]],
    );
}

#[test]
fn an_environment_process_drives_the_program() {
    check_verdict(
        "channel c(int) external out; channel d(int) external in;
         process p { while { in(c, $x); out(d, x * 2); } }
         model m { env host { for i in 0..3 { out(c, i); } } env sink { var n = 0; while { in(d, $y); assert(y == 2 * n); n += 1; } } }",
        expect![[r#"
            holds, 56 states, 7 reduced
        "#]],
    );
}

#[test]
fn a_bound_limits_the_messages() {
    check_verdict(
        "channel c(bool) external out;
         process p { var n = 0; while { in(c, $x); n += 1; assert(n < 4); } }
         model m { bound c 3; }",
        expect![[r#"
            holds, 8 states, 4 reduced
        "#]],
    );
}

/// Messages that the model does not allow need no range.
#[test]
fn a_bound_of_zero_excludes_messages_of_any_type() {
    check_verdict(
        "channel c(int, u64) external out; channel d(bool) external out;
         process p { while { alt { in(c, _, _) { assert(false); } in(d, _) { } } } }
         model m { bound c 0; }",
        expect![[r#"
            holds, 3 states, 1 reduced
            never: line 2
        "#]],
    );
}

/// Each process prefers the rendezvous that the other one ranks second; neither is excluded.
#[test]
fn contradictory_priorities_of_two_processes_do_not_block() {
    let program = |wrong: &str| {
        format!(
            "channel a(int); channel b(int);
             process p {{ pri alt {{ out(a, 1) {{ }} out(b, 2) {{ }} }} }}
             process q {{ pri alt {{ in(b, $n) {{ assert(n != {wrong}); }} in(a, $n) {{ assert(n != {wrong}); }} }} }}"
        )
    };
    check_verdict(
        &program("3"),
        expect![[r#"
        holds, 11 states, 11 reduced
    "#]],
    );
    check_verdict(
        &program("1"),
        expect![[r#"
        error assert
           1  p -> q: a(1)  (p.esp:2:36)
           2  q  (p.esp:3:90)
        fault `assert` in `q` at p.esp:3:78
    "#]],
    );
    check_verdict(
        &program("2"),
        expect![[r#"
        error assert
           1  p -> q: b(2)  (p.esp:2:50)
           2  q  (p.esp:3:60)
        fault `assert` in `q` at p.esp:3:48
    "#]],
    );
}

#[test]
fn a_false_assertion_shows_its_message() {
    check_verdict(
        "proc f(n: int) { assert(n > 0, \"n is positive\"); }
process p { f(1); f(0); }",
        expect![[r#"
            error assert
               1  p  (p.esp:2:15)
            fault `assert` in `p` at p.esp:1:18, in `f`, called at p.esp:2:19: n is positive
        "#]],
    );
}

#[test]
fn cyclic_priorities_do_not_block() {
    check_verdict(
        "channel a(int); channel b(int); channel c(int);
         process p { pri alt { out(a, 1) { } in(c, _) { } } idle in(c, _); }
         process q { pri alt { out(b, 2) { } in(a, _) { } } idle in(a, _); }
         process r { pri alt { out(c, 3) { } in(b, _) { } } idle in(b, _); }",
        expect![[r#"
            holds, 56 states, 56 reduced
        "#]],
    );
}

/// An `alt` without `pri` does not choose the branch.
#[test]
fn a_pri_alt_communicates_at_its_first_branch() {
    check_verdict(
        "channel a(int); channel b(int);
         process p { pri alt { out(a, 1) { } out(b, 2) { } } }
         process q { alt { in(b, $n) { assert(n != 2); } in(a, $n) { assert(n != 2); } } }",
        expect![[r#"
            holds, 8 states, 4 reduced
            never: line 3
        "#]],
    );
}

/// With symmetry, the run and its violation name the same replicas.
#[test]
fn symmetry_keeps_the_names_of_replicas_in_a_run() {
    check_verdict(
        "channel a(u8) shared; channel go() shared;
         process src { out(a, 0); out(a, 2); out(go); out(go); }
         process w[2] { in(a, $x); in(go); assert(x > 0); }",
        expect![[r#"
            error assert
               1  src -> w[0]: a(0)  (p.esp:2:24)
               2  src -> w[1]: a(2)  (p.esp:2:35)
               3  src -> w[0]: go()  (p.esp:2:46)
               4  w[0]  (p.esp:3:55)
            fault `assert` in `w[0]` at p.esp:3:44
        "#]],
    );
    check_verdict(
        "channel a(int) shared;
         process src { out(a, 0); out(a, 1); out(a, 2); }
         process w[3] { in(a, $x); if (x == 1) { in(a, _); } }",
        expect![[r#"
            error deadlock
               1  src -> w[0]: a(0)  (p.esp:2:24)
               2  src -> w[1]: a(1)  (p.esp:2:35)
               3  src -> w[1]: a(2)  (p.esp:2:46)
            fault `deadlock`, channel `a`
              `w[2]` waits at p.esp:3:25 for no instance to write `a`
        "#]],
    );
}

/// The reduced search takes all steps of `p` and `q` first.
#[test]
fn irrelevant_steps_are_minimized_away() {
    check_verdict(
        "channel a(); channel b();
         process p { for i in 0..5 { out(a); } }
         process q { for i in 0..5 { in(a); } }
         process r { out(b); }
         process s { in(b); assert(false); }",
        expect![[r#"
            error assert
               1  r -> s: b()  (p.esp:4:22)
               2  s  (p.esp:5:36)
            fault `assert` in `s` at p.esp:5:29
        "#]],
    );
}

#[test]
fn a_line_of_a_template_is_listed_once_if_no_instance_executes_it() {
    check_verdict(
        "import \"std:format\" as format;
         channel c(int); channel d(int);
         process worker(out to(int), n: int) {
           var m = n;
           if (m > 2) {
             m = 3;
           }
           if (m > 7) {
             m = 7;
           }
           var text: bytes[<=10] = format.decimal(m);
           out(to, m + text.len);
         }
         process low = worker(c, 1);
         process high = worker(d, 3);
         process reader { in(c, _); in(d, _); }",
        expect![[r#"
            holds, 24 states, 3 reduced
            never: line 9
        "#]],
    );
}
