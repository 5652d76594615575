//! Times and durations: what they go into, where `now` is possible, arithmetic, waits.

use super::{accept, check};
use expect_test::expect;

#[test]
fn predeclared_names_are_ordinary_where_a_program_declares_them() {
    accept(
        r##"
type time = int; const duration = 3; channel until(int) external in;
process p {
  var now: time = duration, s = 0, ms = 1;
  while (s < now) { s += ms; out(until, s); }
  alt { out(until, now) { } }
}
"##,
        expect![""],
    );
}

#[test]
fn times_and_durations_are_values_like_others() {
    accept(
        r##"
const RTO = (200 ms); const LIMIT: duration = 3 * RTO + (1 s) / 2; const RATIO = LIMIT / RTO;
type eventT = record { at: time, limits: array[2] of duration };
channel eventC(eventT); channel outC(i64) external in;
fn later(a: time, b: time) -> time { return a < b ? b : a; }
fn longest(limits: array[2] of duration) -> duration { return limits[0] < limits[1] ? limits[1] : limits[0]; }
process p {
  var limits: #array[2] of duration = #[RTO; 2];
  limits[1] *= 2; limits[0] += (5 us); limits[0] -= RTO; limits[1] /= 3;
  out(eventC, { now, freeze(limits) });
}
process q {
  var e: eventT, n = 3, due: time;
  in(eventC, e);
  due = later(e.at, now) + longest(e.limits);
  due += (n ms); due -= RTO; due = RTO + due;
  alt { until (due) { } }
  pri alt { until (due + (n + 1 ms)) { } after (RTO) { } after (n * RTO) { } after (now - due) { } after (n ms) { } }
  out(outC, e.limits[0] / RTO + RATIO + (now - due) / (1 ms));
  if (e.at == due || e.limits[0] != RTO) out(outC, 1);
}
"##,
        expect![""],
    );
}

#[test]
fn numbers_are_no_durations() {
    check(
        r##"
channel c(i64) external in;
process p {
  var d: duration = 5, t: time = 0, n: i64 = (5 ms), m = 5;
  t = (5 ms); d = t; d = now; n = now; m = int(d); m = int(t);
  d = d + 5; d = d * d; d = 5 / d; t = t + t; d = t - 5; t += 5; t *= 2; d %= 3; d = d & d; d = -d;
  if (d) m = 1;
  while (t) m = 2;
  for i in d..d { }
  out(c, d < 5 ? 1 : 0);
  n = d / (1 ms); m = m + (d / (1 ms)); n = 1 + d / (1 ms);
  if (t < d) m = 3;
}
"##,
        expect![[r#"
            error[E0302]: expected `duration`, found `int`
              at 4:21 `5`
              help: a duration has a unit: write `(5 ms)`
            error[E0302]: expected `time`, found `int`
              at 4:34 `0`
              help: a time is made of `now`, as in `now + (250 ms)`
            error[E0302]: expected `i64`, found `duration`
              at 4:46 `(5 ms)`
              help: divide by a unit: write `(5 ms) / (1 ms)`
            error[E0302]: expected `time`, found `duration`
              at 5:7 `(5 ms)`
              help: a time is a moment: write `now + (5 ms)`
            error[E0302]: expected `duration`, found `time`
              at 5:19 `t`
              help: a duration is the difference of two times, as in `now - start`
            error[E0302]: expected `duration`, found `time`
              at 5:26 `now`
              help: a duration is the difference of two times, as in `now - start`
            error[E0302]: expected `i64`, found `time`
              at 5:35 `now`
              help: a time has no number; the difference of two times is a duration, as in `(now - start) / (1 ms)`
            error[E0302]: expected `int`, found `duration`
              at 5:48 `d`
              help: divide by a unit: write `int(d / (1 ms))`
            error[E0302]: expected `int`, found `time`
              at 5:60 `t`
              help: a time has no number; the difference of two times is a duration, as in `(now - start) / (1 ms)`
            error[E0302]: there is no `+` of `duration` and `i64`
              at 6:7 `d + 5`
              help: a duration has a unit: write `(5 ms)`
            error[E0302]: there is no `*` of `duration` and `duration`
              at 6:18 `d * d`
              help: a duration is multiplied by a number, and divided by a number or a duration
            error[E0302]: there is no `/` of `i64` and `duration`
              at 6:29 `5 / d`
              help: divide by a unit: write `d / (1 ms)`
            error[E0302]: there is no `+` of `time` and `time`
              at 6:40 `t + t`
              help: a time and a duration make a time, two times subtracted a duration
            error[E0302]: there is no `-` of `time` and `i64`
              at 6:51 `t - 5`
              help: a duration has a unit: write `(5 ms)`
            error[E0302]: there is no `+` of `time` and `i64`
              at 6:58 `t += 5`
              help: a duration has a unit: write `(5 ms)`
            error[E0302]: there is no `*` of `time` and `i64`
              at 6:66 `t *= 2`
              help: a duration is multiplied by a number, and divided by a number or a duration
            error[E0302]: there is no `%` of `duration` and `i64`
              at 6:74 `d %= 3`
              help: a duration is multiplied by a number, and divided by a number or a duration
            error[E0302]: there is no `&` of `duration` and `duration`
              at 6:86 `d & d`
              help: a duration is multiplied by a number, and divided by a number or a duration
            error[E0302]: expected an integer, found `duration`
              at 6:98 `d`
            error[E0302]: expected `bool`, found `duration`
              at 7:7 `d`
              help: write `d != (0 s)`
            warning[W0905]: this loop has neither a channel operation, a `yield` nor a visible bound: others wait
              at 8:3 `while (t) m = 2;`
              help: add `yield;`, or bound it by `for` or by a counter that moves by a constant step
            error[E0302]: expected `bool`, found `time`
              at 8:10 `t`
              help: a time has no number; the difference of two times is a duration, as in `(now - start) / (1 ms)`
            error[E0302]: expected an integer, found `duration`
              at 9:12 `d`
            error[E0302]: expected `duration`, found `int`
              at 10:14 `5`
              help: a duration has a unit: write `(5 ms)`
            error[E0302]: expected `int`, found `i64`
              at 11:27 `(d / (1 ms))`
              help: write `int((d / (1 ms)))` to keep the low bits
            error[E0302]: expected `time`, found `duration`
              at 12:11 `d`
              help: a time is a moment: write `now + d`
        "#]],
    );
}

#[test]
fn now_is_impure() {
    check(
        r##"
channel a(time); channel b(time); channel c(int) external out;
const START = now;
fn f() -> time { return now; }
process p {
  var t = now;
  alt { when (now > t) in(c, _) { } out(a, now) { } until (now) { } }
  in(b, $u if u < now);
  in(b, ==now);
  in(b, ==t);
}
process q { in(a, _); out(b, now); }
"##,
        expect![[r#"
            error[E0309]: `now` is not a constant
              at 3:15 `now`
              help: a constant has literals, operators, conversions, `sizeof`, `@P[k]`, other constants, and calls of `fn`s with these
            error[E0501]: `fn f` may not use `now`
              at 4:25 `now`
              at 4:4 `f`: a pure function computes its result and nothing else
            error[E0504]: `now` changes while an operation waits and cannot be used in a guard
              at 7:15 `now`
              help: wait with a branch `until (t)`, or read it into a variable before the `alt`
            error[E0504]: `now` changes while an operation waits and cannot be used in the payload of an `alt`
              at 7:44 `now`
              help: wait with a branch `until (t)`, or read it into a variable before the `alt`
            error[E0504]: `now` changes while an operation waits and cannot be used in a pattern
              at 8:19 `now`
              help: wait with a branch `until (t)`, or read it into a variable before the `alt`
            error[E0504]: `now` changes while an operation waits and cannot be used in a pattern
              at 9:11 `now`
              help: wait with a branch `until (t)`, or read it into a variable before the `alt`
        "#]],
    );
}

#[test]
fn waits_take_times_and_durations() {
    check(
        r##"
channel c(int) external out;
process p {
  var n = 5, d = (5 ms), t = now;
  alt { after (n) { } after (t) { } until (d) { } until (5) { } after (d ms) { } until (t) { } after (d) { } }
  alt { in(c, _) { } until (t) { } else { } }
}
"##,
        expect![[r#"
            error[E0302]: expected `duration`, found `int`
              at 5:16 `n`
              help: a duration has a unit: write `(n ms)`
            error[E0302]: expected `duration`, found `time`
              at 5:30 `t`
              help: a duration is the difference of two times, as in `now - start`
            error[E0302]: expected `time`, found `duration`
              at 5:44 `d`
              help: a time is a moment: write `now + d`
            error[E0302]: expected `time`, found `int`
              at 5:58 `5`
              help: a time is made of `now`, as in `now + (250 ms)`
            error[E0302]: expected an integer, found `duration`
              at 5:72 `d`
            error[E0505]: `until` can never happen in an `alt` with `else`
              at 6:22 `until (t)`
              at 6:41 `{ }`: this runs at once when nothing else can
              help: drop one of the two
        "#]],
    );
}

#[test]
fn patterns_compare_times_dynamically() {
    check(
        r##"
channel a(duration) external out; channel b(duration) external out;
process p { while { in(a, == (5 ms)); in(a, _); } }
process q { match (5 ms) { == (5 ms) => { } } in(b, 5); in(b, _); }
"##,
        expect![[r#"
            error[E0402]: match is not exhaustive: `_` is not covered
              at 4:13 `match (5 ms)`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0302]: expected `duration`, found `int`
              at 4:53 `5`
              help: a duration has a unit: write `(5 ms)`
        "#]],
    );
}
