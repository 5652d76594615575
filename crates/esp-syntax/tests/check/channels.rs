//! Channels, ports, C interfaces (E04..).

use super::check;
use expect_test::expect;

#[test]
fn e0404() {
    check(
        r##"
channel c(int, u8);
process P { out(c, 1, 2, 3); } process Q { in(c, $a); assert(a); }
"##,
        expect![[r#"
            error[E0404]: channel `c` carries 2 values, 3 given
              at 3:13 `out(c, 1, 2, 3)`
              at 2:9 `c`: `c` is declared here
            error[E0404]: channel `c` carries 2 values, 1 given
              at 3:44 `in(c, $a)`
              at 2:9 `c`: `c` is declared here
        "#]],
    );
}

#[test]
fn values_have_different_names() {
    check(
        r##"
channel c(a: int, u8, a: int);
process P { out(c, 1, 2, 3); } process Q { in(c, $a, _, _); assert(a); }
"##,
        expect![[r#"
            error[E0204]: two values of `c` are named `a`
              at 2:23 `a`
              at 2:11 `a`: first declared here
        "#]],
    );
}

#[test]
fn e0405() {
    check(
        r##"
channel c(int, int);
process A { in(c, _, 5); } process B { in(c, 0, _); } process C { out(c, 1, 1); }
"##,
        expect![[r#"
            error[E0406]: no process takes `{1, 0}` from `c`
              at 2:9 `c`
              at 3:13 `in(c, _, 5)`: `A` takes other messages
              at 3:40 `in(c, 0, _)`: `B` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
            error[E0405]: `A` and `B` can both take `{0, 5}` from `c`
              at 3:40 `in(c, 0, _)`
              at 3:13 `in(c, _, 5)`: `A` takes it here
              help: make the patterns disjoint or the channel `shared`
        "#]],
    );
}

#[test]
fn e0405_same_process_may_overlap() {
    check(
        r##"
channel c(int);
process A { alt { in(c, 5) { } in(c, _) { } } } process B { out(c, 1); }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn e0405_replicas() {
    check(
        r##"
channel c(int); channel d(pid(W), int); channel s(int) shared; channel e(pid(W), int);
process W[3] { in(c, _); in(d, @, _); in(s, _); alt { in(e, @, 1) { } in(e, ==@W[1], _) { } } }
process C { out(c, 1); out(d, @W[2], 1); out(s, 1); out(e, @W, 2); }
"##,
        expect![[r#"
            error[E0406]: no process takes `{@W[0], 0}` from `e`
              at 2:72 `e`
              at 3:55 `in(e, @, 1)`: `W` takes other messages
              at 3:71 `in(e, ==@W[1], _)`: `W` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
            error[E0405]: two replicas of `W` can both take `_` from `c`
              at 3:16 `in(c, _)`
              help: tell them apart by `@`, or make the channel `shared`: `channel c(..) shared;`
            error[E0405]: two replicas of `W` can both take `{@W[1], 1}` from `e`
              at 3:71 `in(e, ==@W[1], _)`
              at 3:55 `in(e, @, 1)`: `W` takes it here
              help: tell them apart by `@`, or make the channel `shared`: `channel e(..) shared;`
        "#]],
    );
}

#[test]
fn e0405_conditions_do_not_count() {
    check(
        r##"
channel c(int);
process A { in(c, $x if x > 0); assert(x); } process B { var k = 1; in(c, ==k); } process C { out(c, 1); }
"##,
        expect![[r#"
            error[E0405]: `A` and `B` can both take `_` from `c`
              at 3:69 `in(c, ==k)`
              at 3:13 `in(c, $x if x > 0)`: `A` takes it here
              help: make the patterns disjoint or the channel `shared`
        "#]],
    );
}

#[test]
fn e0405_nested() {
    check(
        r##"
type sendT = record { dest: int, flag: bool };
type userT = union { send: sendT, eos };
channel c(userT, bytes[<=4]);
process A { in(c, send |> { 1, _ }, "a"); } process B { in(c, send |> { flag: true }, _); } process C { out(c, eos |> {}, ""); }
"##,
        expect![[r#"
            error[E0406]: no process takes `{send |> {0, false}, _}` from `c`
              at 4:9 `c`
              at 5:13 `in(c, send |> { 1, _ }, "a")`: `A` takes other messages
              at 5:57 `in(c, send |> { flag: true }, _)`: `B` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
            error[E0405]: `A` and `B` can both take `{send |> {1, true}, "a"}` from `c`
              at 5:57 `in(c, send |> { flag: true }, _)`
              at 5:13 `in(c, send |> { 1, _ }, "a")`: `A` takes it here
              help: make the patterns disjoint or the channel `shared`
        "#]],
    );
}

#[test]
fn e0406() {
    check(
        r##"
type sendT = record { dest: int };
type userT = union { send: sendT, update: sendT, eos };
channel userC: userT external out;
process A { in(userC, send |> _); } process B { in(userC, eos |> {}); }
"##,
        expect![[r#"
            error[E0406]: no process takes `update |> _` from `userC`
              at 4:9 `userC`
              at 5:13 `in(userC, send |> _)`: `A` takes other messages
              at 5:49 `in(userC, eos |> {})`: `B` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
        "#]],
    );
}

#[test]
fn e0406_pid() {
    check(
        r##"
channel c(pid(W, X), bool);
process W[3] { in(c, @, _); } process X { in(c, ==@X, true); } process C { out(c, @X, true); out(c, @W, true); }
"##,
        expect![[r#"
            error[E0406]: no process takes `{@X, false}` from `c`
              at 2:9 `c`
              at 3:16 `in(c, @, _)`: `W` takes other messages
              at 3:43 `in(c, ==@X, true)`: `X` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
        "#]],
    );
}

#[test]
fn e0406_two_own_ids() {
    check(
        r##"
channel c(pid(W), pid(W));
process W[2] { in(c, @, @); } process C { out(c, @W[0], @W[1]); }
"##,
        expect![[r#"
            error[E0406]: no process takes `{@W[0], @W[1]}` from `c`
              at 2:9 `c`
              at 3:16 `in(c, @, @)`: `W` takes other messages
              help: add an `in` that takes it, so that its writer does not wait forever
        "#]],
    );
}

#[test]
fn covered_by_pids() {
    check(
        r##"
channel c(pid(W, X), bool);
process W[3] { in(c, @, _); } process X { in(c, @, _); } process C { out(c, @X, true); out(c, @W, true); }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn e0407() {
    check(
        r##"
channel c(int); channel d(int); channel e(int) shared;
process p { out(c, 1); in(c, _); out(d, 1); in(d, 0); out(e, 1); in(e, _); }
process q { in(d, 1); in(d, $x if x > 1); in(d, _); in(e, _); }
"##,
        expect![[r#"
            error[E0407]: `p` can only talk to itself on `c`
              at 3:24 `in(c, _)`
              at 3:13 `out(c, 1)`: this is the only writer
              help: a process waits at one operation at a time: keep the value in a variable
            error[E0407]: `p` can only talk to itself on `d`
              at 3:45 `in(d, 0)`
              at 3:34 `out(d, 1)`: this is the only writer
              help: a process waits at one operation at a time: keep the value in a variable
            error[E0405]: `p` and `q` can both take `0` from `d`
              at 4:23 `in(d, $x if x > 1)`
              at 3:45 `in(d, 0)`: `p` takes it here
              help: make the patterns disjoint or the channel `shared`
        "#]],
    );
}

#[test]
fn e0407_replicas_are_others() {
    check(
        r##"
channel c(int) shared;
process p[2] { alt { out(c, 1) { } in(c, _) { } } }
"##,
        expect![[r##""##]],
    );
}

#[test]
fn e0408() {
    check(
        r##"
channel c(int) external out; channel d(int) external in;
process P { out(c, 1); in(d, _); }
"##,
        expect![[r#"
            error[E0408]: `c` is written by the environment, `out` is not possible
              at 3:13 `out(c, 1)`
              at 2:9 `c`: `c` is declared here
            error[E0408]: `d` is read by the environment, `in` is not possible
              at 3:24 `in(d, _)`
              at 2:38 `d`: `d` is declared here
        "#]],
    );
}

#[test]
fn e0409() {
    check(
        r##"
type t = bytes[<=4]; pool t 2;
channel c(bytes[<=4]); channel d(t);
process P { var p: #bytes[<=4] = #"a", q: #t = #"b"; out(c, p); out(c, #"x"); out(d, q); out(c, freeze(p)); out(d, freeze(q)); }
process Q { in(c, _); in(d, _); }
"##,
        expect![[r#"
            warning[W0904]: this allocation faults when the pool `t` is empty
              at 4:48 `#"b"`
              help: put it into a branch with a guard, as in `when (free(t) > 0)`
            error[E0409]: `out` sends `#bytes[<=4]`
              at 4:61 `p`
              help: write `freeze(p)`
            error[E0409]: `out` sends `#bytes[<=1]`
              at 4:72 `#"x"`
              help: drop the `#`
            error[E0409]: `out` sends `#t`
              at 4:86 `q`
              help: write `freeze(q)`
        "#]],
    );
}

#[test]
fn interfaces() {
    check(
        r##"
type sendT = record { dest: int, vAddr: u32 };
type userT = union { send: sendT, eos };
channel userC: userT external out; channel wireC(int, bool) external in; channel i(int);
external interface userReq(out userC) { Send(send |> { $dest, $vAddr }), Eos(eos |> {}) }
external interface userReq2(out userC) { A(send |> _), B(_) }
external interface wire(in wireC) { Put(0, $flag), More($n, true) }
external interface wrong(in userC) { A(_), A(==x), C(@), D($a if a == 1), E(_, _), F(y) }
external interface inner(out i) { A(_) }
process P { in(userC, _); out(wireC, 1, true); in(i, _); } process Q { out(i, 1); }
"##,
        expect![[r#"
            error[E0204]: channel `userC` has two interfaces
              at 6:20 `userReq2`
              at 5:20 `userReq`: the first is here
            error[E0405]: `A` and `B` can both take `send |> _` from `userC`
              at 6:56 `B`
              at 6:42 `A`: `A` takes it here
              help: make the patterns disjoint
            error[E0405]: `Put` and `More` can both take `{0, true}` from `wireC`
              at 7:52 `More`
              at 7:37 `Put`: `Put` takes it here
              help: make the patterns disjoint
            error[E0204]: channel `userC` has two interfaces
              at 8:20 `wrong`
              at 6:20 `userReq2`: the first is here
            error[E0408]: `userC` is written by the environment, its `in` is not possible
              at 8:29 `userC`
              at 4:9 `userC`: `userC` is declared here
              help: declare it `external in`
            error[E0204]: entry `A` is declared twice
              at 8:44 `A`
              at 8:38 `A`: first declared here
            error[E0208]: no variable named `x`
              at 8:48 `x`
            error[E0506]: `@` has a meaning only in a process
              at 8:54 `@`
            error[E0506]: an interface entry has no condition
              at 8:66 `a == 1`
            error[E0302]: expected `userT`, found `int`
              at 8:71 `1`
            error[E0404]: channel `userC` carries 1 value, 2 given
              at 8:75 `E(_, _)`
              at 4:9 `userC`: `userC` is declared here
            error[E0506]: an interface entry has no variables to assign
              at 8:86 `y`
              help: write `$y` to make it a parameter
            error[E0408]: `i` is not external, `out` of the C program is not possible
              at 9:30 `i`
              at 4:82 `i`: `i` is declared here
              help: declare it `external out`
        "#]],
    );
}

#[test]
fn bounded_work_on_readers() {
    check(
        r##"
channel c(int) shared;
process P { while { in(c, _); } } process Q { out(c, 3); }
"##,
        expect![[r##""##]],
    );
}
