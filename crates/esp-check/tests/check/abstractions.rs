//! Abstractions of models: they keep every run of the program, and runs that the program does not have are spurious.

use crate::support::{concrete, explore, model};
use expect_test::{Expect, expect};
use quaject_esp_check::{Limits, Options, Refusal, Spuriousness, Verdict, check, concretize};
use quaject_esp_ir::text::counted;
use quaject_esp_ir::verify::verify;

/// The verdict on a program's model, and a counterexample with its spuriousness.
fn check_spuriousness(text: &str, expected: Expect) {
    let model = model(text, None);
    let errors = verify(&model.program);
    assert!(errors.is_empty(), "{:?}", errors.iter().map(|error| error.text(&model.program)).collect::<Vec<_>>());
    let report = explore(&model, &Options::default());
    let text = match &report.verdict {
        Verdict::Holds => format!("holds, {}\n", counted(report.states, "state")),
        Verdict::Violated(found) => {
            let limits = Limits { states: Some(2_000), ..Limits::default() };
            let label = concretize(&concrete(text), &model, found, &limits).expect("the program can be explored");
            format!("{}{}\n", found.text(&model), label.text())
        }
        Verdict::Unfinished(limit) => format!("unfinished {limit:?}\n"),
    };
    expected.assert_eq(&text);
}

#[test]
fn an_irrelevant_counter_can_be_forgotten() {
    let program = "channel c(u8); process p { var n: u32 = 0; while { out(c, 1); n += 1; } }
        process q { while { in(c, _); } }";
    let exact = explore(&model(program, None), &Options { limits: limits(500), ..Options::default() });
    assert!(matches!(exact.verdict, Verdict::Unfinished(_)), "{exact:?}");
    check_spuriousness(
        &format!("{program} model m {{ abstract forget p.n; }}"),
        expect![[r#"
        holds, 1 state
    "#]],
    );
}

#[test]
fn a_forgotten_array_is_not_in_the_states() {
    let program = |element: &str, first: &str, step: &str| {
        format!(
            "channel c(); process p {{ var a: #array[4] of {element} = #[{first}; 4], i = 0;
               while {{ out(c); a[i] += {step}; a[3 - i] = {first}; i = (i + 1) % 4; }} }}
             process q {{ while {{ in(c); }} }} model m {{ abstract forget p.a; }}"
        )
    };
    for text in [program("u8", "0", "1"), program("duration", "(0 ms)", "(1 ms)")] {
        check_spuriousness(
            &text,
            expect![[r#"
                holds, 4 states
            "#]],
        );
    }
}

#[test]
fn an_index_of_a_forgotten_array_can_be_out_of_bounds() {
    check_spuriousness(
        "channel c(u8) external out; type pointT = record { x: int, y: array[2] of int };
         process p { var a: #array[3] of pointT = #[{ 0, [0; 2] }; 3]; while { in(c, $i); a[0].y[i] = 1; } }
         model m { abstract forget p.a; abstract range c.0 0..3; }",
        expect![[r#"
               1  environment -> p: c(2)  (p.esp:2:80)
               2  p  (p.esp:2:103)
            fault `bounds` in `p` at p.esp:2:91
            the program itself has the same violation
        "#]],
    );
}

#[test]
fn a_forgotten_aggregate_that_decides_has_any_value() {
    check_spuriousness(
        "channel c(); process p { var a: #array[2] of bool = #[false; 2]; out(c); a[1] = false; assert(!a[1]); }
         process q { in(c); } model m { abstract forget p.a; }",
        expect![[r#"
               1  p -> q: c()  (p.esp:1:66)
               2  p  (p.esp:1:81), p.a() = [false, true]
            fault `assert` in `p` at p.esp:1:88
            SPURIOUS: no run of the program itself has this violation; `forget p.a` over-approximates here
        "#]],
    );
}

#[test]
fn what_only_sets_the_time_of_a_wait_can_be_forgotten() {
    for (first, set, wait) in
        [("1 + u32(0)", "n = n * 2 + 1", "(n ms)"), ("(200 ms)", "n *= 2", "(n)"), ("(200 ms)", "n += (1 ms)", "(n)")]
    {
        let text = format!(
            "channel c() external out; process p {{ var n = {first};
               while {{ alt {{ in(c) {{ {set}; }} after {wait} {{ }} }} }} }}
             model m {{ abstract forget p.n; }}"
        );
        check_spuriousness(
            &text,
            expect![[r#"
                holds, 1 state
            "#]],
        );
    }
}

fn limits(states: u64) -> Limits {
    Limits { states: Some(states), ..Limits::default() }
}

#[test]
fn a_forgotten_variable_has_any_value() {
    let program = |sent| {
        format!(
            "channel c(bool); process p {{ var on = true; in(c, on); assert(on); }} process q {{ out(c, {sent}); }}
             model m {{ abstract forget p.on; }}"
        )
    };
    check_spuriousness(
        &program("true"),
        expect![[r#"
           1  q -> p: c(true)  (p.esp:1:82)
           2  p  (p.esp:1:63), p.on() = false
        fault `assert` in `p` at p.esp:1:56
        SPURIOUS: no run of the program itself has this violation; `forget p.on` over-approximates here
    "#]],
    );
    check_spuriousness(
        &program("false"),
        expect![[r#"
           1  q -> p: c(false)  (p.esp:1:82)
           2  p  (p.esp:1:63), p.on() = false
        fault `assert` in `p` at p.esp:1:56
        the program itself has the same violation
    "#]],
    );
}

#[test]
fn a_waiting_process_keeps_its_choices() {
    // The guard, the condition and the message each see one value while they wait.
    check_spuriousness(
        "channel c(bool); channel d(bool);
         process p { var on = true; alt { when (on) in(c, $x if x == on) { assert(x); } out(d, on) { } } }
         process q { alt { out(c, true) { } in(d, $y) { assert(y); } } }
         model m { abstract forget p.on; }",
        expect![[r#"
               1  p  (p.esp:2:31), p.on() = false, p.on() = false
               2  p -> q: d(false)  (p.esp:2:89)
               3  q  (p.esp:3:64)
            fault `assert` in `q` at p.esp:3:57
            SPURIOUS: no run of the program itself has this violation; `forget p.on` over-approximates here
        "#]],
    );
}

#[test]
fn leaving_a_range_is_a_fault() {
    check_spuriousness(
        "channel c(int); process p { var n = 0; while { out(c, n); n += 1; } } process q { while { in(c, _); } }
         model m { abstract range p.n 0..3; }",
        expect![[r#"
               1  p -> q: c(0)  (p.esp:1:48)
               2  p -> q: c(1)  (p.esp:1:48)
               3  p -> q: c(2)  (p.esp:1:48)
               4  p  (p.esp:1:64)
            fault `range` in `p` at p.esp:1:59
            SPURIOUS: the program itself does not have this run; `range p.n 0..3` over-approximates here; whether another run has the violation is not known: the limit was reached
        "#]],
    );
    check_spuriousness(
        "channel c(int); process p { var n = 0; while { out(c, n); n = (n + 1) % 3; } } process q { while { in(c, _); } }
         model m { abstract range p.n 0..3; abstract forget p.n; }",
        expect![[r#"
            holds, 5 states
        "#]],
    );
    check_spuriousness(
        "channel c(int); process p { for i in 0..4 { out(c, i); } } process q { while { idle in(c, $x); assert(x < 3); } }
         model m { abstract range p.i 0..4; abstract range q.x 0..4; abstract range c.0 -1..4; }",
        expect![[r#"
               1  p -> q: c(0)  (p.esp:1:45)
               2  p -> q: c(1)  (p.esp:1:45)
               3  p -> q: c(2)  (p.esp:1:45)
               4  p -> q: c(3)  (p.esp:1:45)
               5  q  (p.esp:1:91)
            fault `assert` in `q` at p.esp:1:96
            the program itself has the same violation
        "#]],
    );
}

#[test]
fn forgotten_messages() {
    check_spuriousness(
        "type pair = record { a: bool, b: bool }; channel c(pair, u8); channel d(u8);
         process p { out(c, { true, true }, 1); alt { out(d, 1) { } } }
         process q { in(c, { a: $x, b: _ }, $n); in(d, $m); assert(m == 1); assert(n == 1); assert(x); }
         model m { abstract drop c.0; }",
        expect![[r#"
               1  p  (p.esp:2:31), c.0() = {false, false}
               2  p -> q: c({false, false}, 1)  (p.esp:2:22)
               3  p -> q: d(1)  (p.esp:2:55)
               4  q  (p.esp:3:73)
            fault `assert` in `q` at p.esp:3:93
            SPURIOUS: no run of the program itself has this violation; `drop c.0` over-approximates here
        "#]],
    );
    check_spuriousness(
        "channel d(u8); process p { alt { out(d, 1) { } } } process q { in(d, $m); assert(m == 1); }
         model m { abstract forget d.0; abstract range d.0 0..3; }",
        expect![[r#"
               1  p  (p.esp:1:41), d.0() = 0
               2  p -> q: d(0)  (p.esp:1:34)
               3  q  (p.esp:1:87)
            fault `assert` in `q` at p.esp:1:75
            SPURIOUS: no run of the program itself has this violation; `forget d.0` over-approximates here
        "#]],
    );
}

#[test]
fn a_hash_that_never_collides_changes_nothing() {
    check_spuriousness(
        "channel c(u8); process p { var n: u8 = 1; out(c, n); } process q { in(c, $x); assert(x == 1); }
         model m { abstract hash p.n; abstract hash c.0; }",
        expect![[r#"
            holds, 2 states
        "#]],
    );
}

#[test]
fn a_property_keeps_its_variables_exact() {
    let text = "channel c(u8) external out; process p { var n: u8 = 0; while { in(c, n); } }
        model m { ltl \"[] (p:n < 3)\"; }";
    let Verdict::Violated(_) = explore(&model(text, None), &Options::default()).verdict else {
        panic!("the environment can send 3");
    };
}

#[test]
fn a_property_violated_by_an_abstraction_is_spurious() {
    check_spuriousness(
        "channel c(bool); process p { var on = true; while { if (on) { #yes out(c, true); } else { #no out(c, true); } } }
         process q { while { in(c, _); } }
         model m { abstract forget p.on; ltl \"[] !(p@Lno)\"; }",
        expect![[r#"
               1  p  (p.esp:1:39), p.on() = false   <- violates the property
            property `[] !(p@Lno)` is violated here, whatever follows: p@Lno = true
            SPURIOUS: no run of the program itself has this violation; `forget p.on` over-approximates here
        "#]],
    );
}

#[test]
fn a_variable_with_too_many_values_needs_a_range() {
    let text = "channel c(int); process p { var n = 0; while { out(c, n); if (n > 3) n = 0; else n += 1; } }
        process q { while { in(c, _); } } model m { abstract forget p.n; }";
    let Err(Refusal::Unbounded(missing)) = check(&model(text, None), &Options::default(), &mut |_| {}) else {
        panic!("an `int` has more values than can be tried");
    };
    assert_eq!(missing.len(), 1);
}

#[test]
fn a_run_of_the_program_itself_is_real() {
    let text = "channel c(u8); process p { var n: u8 = 0; while { in(c, $x); assert(x < 2); n += x; } }
        process q { out(c, 1); out(c, 2); } model m { abstract forget p.n; }";
    let part = model(text, None);
    let Verdict::Violated(found) = explore(&part, &Options::default()).verdict else { panic!("it goes wrong") };
    let label = concretize(&concrete(text), &part, &found, &limits(1)).expect("a small program");
    assert_eq!((label.spuriousness, label.causes), (Spuriousness::Real, Vec::new()));
}
