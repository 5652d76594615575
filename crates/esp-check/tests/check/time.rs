//! Times in models: all are one value, comparisons have either result, deadlines are not ordered.

use crate::support::{check_verdict, explore, model};
use expect_test::{Expect, expect};
use quaject_esp_check::{Options, Verdict};
use quaject_esp_ir::model::UndecidedKind;

#[test]
fn a_deadline_adds_no_states() {
    check_verdict(
        "channel c(int) external out;
         process p { var n = 0, due = now;
           while { alt { in(c, _) { } until (due) { due = now + (5 s); n = 1 - n; } } } }",
        expect![[r#"
            holds, 7 states, 2 reduced
        "#]],
    );
}

#[test]
fn deadlines_are_not_ordered() {
    check_verdict(
        "channel c();
         process p { alt { after (1 ms) { } } out(c); }
         process q { var due = now + (1 s); alt { in(c) { } until (due) { assert(false); } } idle in(c); }",
        expect![[r#"
            error assert
               1  q: timeout  (p.esp:3:61)
               2  q  (p.esp:3:82)
            fault `assert` in `q` at p.esp:3:75
        "#]],
    );
}

#[test]
fn a_comparison_of_times_has_either_result() {
    check_verdict(
        "process p { var start = now, n = 0;
           if (now > start) n += 1;
           if (now - start < (5 ms)) n += 2;
           if (start != start) n += 4;
           assert(n < 7); }",
        expect![[r#"
            error assert
               1  p  (p.esp:1:25), time-order() = true, time-order() = true, time-order() = true
            fault `assert` in `p` at p.esp:5:12
        "#]],
    );
}

#[test]
fn a_part_that_is_a_time_may_differ() {
    check_verdict(
        "type eventT = record { at: time, n: int };
         process p { var a: eventT = { now, 1 }, b: eventT = { now, 1 }, c: eventT = { now, 2 };
           assert(a != c); assert(b == b || a != c); assert(a == b); }",
        expect![[r#"
            error assert
               1  p  (p.esp:2:40), time-order() = false, 4 times
            fault `assert` in `p` at p.esp:3:54
        "#]],
    );
    check_verdict(
        "type eventT = record { at: time, n: int };
         process p { var a: eventT = { now, 1 }, c: eventT = { now, 2 }; assert(a != c); }",
        expect![[r#"
            holds, 2 states, 2 reduced
        "#]],
    );
}

#[test]
fn durations_are_exact_without_differences_of_times() {
    check_verdict(
        "process p { var rto = (200 ms), n = 0;
           while (rto < (2 s)) { alt { until (now + rto) { } } rto *= 2; n += 1; }
           assert(n == 4 && rto / (1 ms) == 3200); }",
        expect![[r#"
            holds, 10 states, 5 reduced
        "#]],
    );
    check_verdict(
        "process p { var rto = (200 ms), start = now;
           if (now - start > rto) rto = now - start;
           assert(rto >= (200 ms)); }",
        expect![[r#"
            error assert
               1  p  (p.esp:1:23), time-order() = false, time-order() = false
            fault `assert` in `p` at p.esp:3:12
        "#]],
    );
}

#[test]
fn a_measured_time_can_be_reported() {
    check_verdict(
        "channel ms(i64) external in; channel go() external out;
         process p { while { var start = now; in(go); out(ms, (now - start) / (1 ms)); } }",
        expect![[r#"
            holds, 5 states, 2 reduced
        "#]],
    );
}

#[test]
fn a_guard_compares_times_on_arrival() {
    check_verdict(
        "channel c() external out; channel late() external in;
         process p { var due = now, n = 0;
           while { var here = now, early = here < due;
             alt { when (early) in(c) { } when (!early) out(late) { due += (1 s); } } } }",
        expect![[r#"
            holds, 5 states, 5 reduced
        "#]],
    );
}

#[test]
fn an_empty_alt_by_time_is_a_fault() {
    check_verdict(
        "channel c() external out;
         process p { var due = now; while { var here = now; alt { when (here < due) in(c) { } } } }",
        expect![[r#"
            error alt
               1  p  (p.esp:2:32), time-order() = false
            fault `alt` in `p` at p.esp:2:61
        "#]],
    );
}

/// A program that measures and decides by the number; a model that forgets it tries each value.
#[test]
fn a_forgotten_number_of_a_duration_is_chosen() {
    let text = "channel c() external out;
        process p { var began = now, n = 0; in(c); n = int((now - began) / (1 ms)); assert(n < 7); }
        model m { abstract forget p.n; abstract range p.n 0..LIMIT; }";
    assert_eq!(model(&text.replace("LIMIT", "8"), None).undecided_times.len(), 0);
    check_verdict(
        &text.replace("LIMIT", "7"),
        expect![[r#"
            holds, 4 states, 3 reduced
        "#]],
    );
    check_verdict(
        &text.replace("LIMIT", "8"),
        expect![[r#"
            error assert
               1  environment -> p: c()  (p.esp:2:45)
               2  p  (p.esp:2:61), p.n() = 0, p.n() = 7
            fault `assert` in `p` at p.esp:2:85
        "#]],
    );
    // A property sees the number that is chosen.
    let property = text.replace("LIMIT;", "7; ltl \"[] p:n < 5\";");
    assert!(matches!(explore(&model(&property, None), &Options::default()).verdict, Verdict::Violated(_)));
    // The number is in the range, and only it is chosen: what a program does with it at once is not known.
    let from_three = text.replace("n = 0", "n = 3").replace("0..LIMIT", "3..7");
    assert_eq!(explore(&model(&from_three, None), &Options::default()).verdict, Verdict::Holds);
    let index = text.replace("int((now", "T[int((now").replace("(1 ms))", "(1 ms))]").replace("LIMIT", "7");
    let index = format!("const T: array[2] of int = [1, 2]; {index}");
    assert_eq!(model(&index, None).undecided_times.len(), 1);
    // Without the abstraction it is not known.
    assert_eq!(model(text.split("model").next().expect("a part"), None).undecided_times.len(), 1);
}

/// A forgotten duration may be longer or shorter than any other.
#[test]
fn a_forgotten_duration_that_decides_is_not_known() {
    let text = "channel c() external out;
        process p { var rto = (200 ms); while { in(c); rto *= 2; if (rto > (1 s)) rto = (200 ms); assert(rto != (0 s)); } }
        model m { abstract forget p.rto; }";
    check_verdict(
        text,
        expect![[r#"
            error assert
               1  environment -> p: c()  (p.esp:2:49)
               2  p  (p.esp:2:63), p.rto() = 0, p.rto() = 0, time-order() = false, p.rto() = 0, time-order() = false
            fault `assert` in `p` at p.esp:2:99
        "#]],
    );
}

fn undecided(text: &str, expected: Expect) {
    let kinds: Vec<(u32, UndecidedKind)> =
        model(text, None).undecided_times.iter().map(|undecided| (undecided.location.line, undecided.kind)).collect();
    expected.assert_debug_eq(&kinds);
}

#[test]
fn what_is_evaluated_while_a_partner_is_searched_is_undecided() {
    undecided(
        "channel c(time) external out; channel d(bool) external in; channel e(time) external out;
         channel i(i64) external in;
         fn later(a: time, b: time) -> time {
           return a < b ? b : a; }
         process p {
           var t = now;
           in(c, $u
             if u < t);
           in(e,
             == t);
           alt { out(d,
             t == t) { } }
           t = later(t, now);
           var n = (now - t)
             / (now - t);
           if ((now - t)
             / (1 ms) > 3) t = now;
           out(i, n);
         }",
        expect![[r#"
            [
                (
                    4,
                    Function,
                ),
                (
                    8,
                    Matching,
                ),
                (
                    10,
                    Matching,
                ),
                (
                    12,
                    Matching,
                ),
                (
                    14,
                    Divisor,
                ),
                (
                    16,
                    Quotient,
                ),
            ]
        "#]],
    );
}
