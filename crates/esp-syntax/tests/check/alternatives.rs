//! Alternatives and ranges in patterns: exact coverage and disjointness, with witnesses, and what is refused.

use super::check;
use expect_test::expect;

#[test]
fn coverage_is_exact() {
    check(
        r##"
type m = union { data: u8, text: bytes[<=4], flag: bool, eos };
extern fn next() -> m; extern fn number() -> u8;
process P {
  match next() { data |> (0..10 | 11..256) => { } text |> _ | flag |> _ | eos |> {} => { } }
  match next() { data |> _ => { } text |> "" | flag |> true => { } text |> _ | eos |> {} => { } }
  match number() { 0..128 => { } 128..200 | 201 | 203..256 => { } }
  match number() { 0..128 | 128..256 => { } }
  match number() { 'a'..'z' | 'z' => { } _ => { } }
}
"##,
        expect![[r#"
            error[E0402]: match is not exhaustive: `data |> 10` is not covered
              at 5:3 `match next()`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0402]: match is not exhaustive: `flag |> false` is not covered
              at 6:3 `match next()`
              help: add an arm for it, or `_ => { }` for all the rest
            error[E0402]: match is not exhaustive: `200` is not covered
              at 7:3 `match number()`
              help: add an arm for it, or `_ => { }` for all the rest
        "#]],
    );
}

#[test]
fn superfluous_alternatives() {
    check(
        r##"
extern fn number() -> u8;
process P {
  match number() { 0..10 | 3 | 5..20 | 7..12 => { } 15 | 4 => { } _ => { } }
}
"##,
        expect![[r#"
            warning[W0906]: this alternative is covered by earlier ones
              at 4:28 `3`
              help: drop it
            warning[W0906]: this alternative is covered by earlier ones
              at 4:40 `7..12`
              help: drop it
            warning[W0906]: this arm of `match` is covered by earlier ones
              at 4:53 `15 | 4`
              help: drop it, or move it up
        "#]],
    );
}

#[test]
fn ports_of_ranges_are_compared() {
    let readers = |left: &str, right: &str| {
        format!(
            "channel c(int, u8); process W {{ out(c, 1, 2); }} process A {{ in(c, {left}); }} process B {{ in(c, {right}); }}
             process C {{ in(c, -1, _); }} process D {{ in(c, -2, _); }} process E {{ in(c, -3, _); }}
             process F {{ in(c, -4, _); }} process G {{ in(c, -5, _); }} process H {{ in(c, -6, _); }}
             process I {{ in(c, -7, _); }} process J {{ in(c, -8, _); }}"
        )
    };
    let uncovered = "no process takes";
    for (left, right, shared) in [
        ("0..10, _", "5..20, _", Some("{5, _}")),
        ("0..10, _", "3, _", Some("{3, _}")),
        ("0..10 | 30..40, _", "10..31, _", Some("{30, _}")),
        ("0..10, _", "10..20, _", None),
        ("0..10 | 20..30, 1 | 3", "5..25, 2 | 4..9", None),
        ("0..10 | 20..30, 1 | 3", "10..20 | 25, 0..4", Some("{25, 1}")),
    ] {
        let (analysis, sources) = super::analyze(&readers(left, right), &[], &[]);
        let text = super::everything(&analysis, &sources);
        match shared {
            Some(witness) => assert!(text.contains(&format!("`A` and `B` can both take `{witness}`")), "{text}"),
            None => assert!(text.contains(uncovered) && !text.contains("can both take"), "{text}"),
        }
    }
}

#[test]
fn replicas_with_ranges() {
    check(
        r##"
channel c(pid(P), int, int);
process W { out(c, @P[0], 1, 2); }
process P[4] { while { alt { in(c, @, 0..4, _) { } in(c, @, _, 0..4) { } } } }
channel d(int, pid(Q));
process V { out(d, 1, @Q[1]); }
process Q[4] { while { alt { in(d, 0..4, _) { } in(d, _, @) { } } } }
"##,
        expect![[r#"
            error[E0406]: no process takes `{@P[0], 4, 4}` from `c`
              at 2:9 `c`
              at 4:30 `in(c, @, 0..4, _)`: `P` takes other messages
              at 4:52 `in(c, @, _, 0..4)`: `P` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
            error[E0405]: two replicas of `Q` can both take `{0, _}` from `d`
              at 7:30 `in(d, 0..4, _)`
              help: tell them apart by `@`, or make the channel `shared`: `channel d(..) shared;`
        "#]],
    );
}

#[test]
fn e0410() {
    check(
        r##"
const LOW = 3; const HIGH = 9;
type m = union { data: u8, more: u8 };
channel c: m external out; channel n(int) external out; channel o(int) external in;
process P {
  var x = 0;
  while {
    alt {
      in(c, data |> $a | more |> $a) { out(o, x); }
      in(n, x | 1) { }
      in(n, 1 if x > 0 | 2) { }
      in(n, ==x | ==LOW) { }
      in(n, 5..5 | HIGH..LOW) { }
      in(n, LOW..HIGH | ==LOW | ==HIGH) { }
      in(c, data |> 1 | 2) { }
      in(n, 1 || 2) { }
      in(n, 1..=2) { }
      in(n, 0..x) { }
      in(n, 0..3000000000) { }
    }
  }
}
external interface ci(out c) { Data(data |> $v), More(more |> 0..10), Rest(more |> (10 | 11)) }
"##,
        expect![[r#"
            error[E0410]: an alternative binds nothing: `a` would have no value from the others
              at 9:21 `$a`
              help: write `_`, or give each alternative an arm or `in` of its own
            error[E0410]: an alternative binds nothing: `x` would have no value from the others
              at 10:13 `x`
              help: write `_`, or give each alternative an arm or `in` of its own
            error[E0410]: alternatives are constants: this value is not known before the program runs
              at 12:15 `x`
              help: take the value with `$x` and compare it in a condition, as in `$x if x == a || x == b`
            error[E0410]: the range 5..5 holds no value
              at 13:13 `5..5`
              help: its end is excluded: `0..10` is 0 to 9
            error[E0410]: the range 9..3 holds no value
              at 13:20 `HIGH..LOW`
              help: its end is excluded: `0..10` is 0 to 9
            warning[W0906]: this alternative is covered by earlier ones
              at 14:25 `==LOW`
              help: drop it
            error[E0302]: expected `m`, found an integer
              at 15:25 `2`
              help: alternatives of a payload are in parentheses, as in `tag |> (1 | 2)`
            error[E0201]: alternatives of a pattern are separated by `|`, found `||`
              at 16:15 `||`
              help: write `|`
            error[E0201]: the end of a range is excluded, and there is no `..=`
              at 17:17 `2`
              help: write the number after the last one, as in `0..10` for 0 to 9
            error[E0309]: `x` is not a constant
              at 18:16 `x`
              help: a constant has literals, operators, conversions, `sizeof`, `@P[k]`, other constants, and calls of `fn`s with these
            error[E0303]: 3000000000 does not fit `int`
              at 19:13 `0..3000000000`
              help: `int` holds -2147483648 to 2147483647
            error[E0506]: an interface entry has one value, not a range
              at 23:63 `0..10`
            error[E0506]: an interface entry has one pattern, without alternatives
              at 23:84 `(10 | 11)`
        "#]],
    );
}
