//! Times in models: all are one value, comparisons have either result, deadlines are not ordered.

use crate::support::{check_verdict, model};
use expect_test::{Expect, expect};
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
