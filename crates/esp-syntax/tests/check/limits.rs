//! Programs that are too large, too deep or ill-formed: a diagnostic in bounded time.

use super::{analyze, check};
use expect_test::expect;
use quaject_esp_syntax::diagnostics::Code;
use quaject_test_support::HANG_TIMEOUT;
use std::fmt::Write;
use std::time::Instant;

/// The codes reported, each once. A check of exponential time is a hang.
fn codes(source: &str) -> Vec<Code> {
    let start = Instant::now();
    let (analysis, _) = analyze(source, &[], &[]);
    assert!(start.elapsed() < HANG_TIMEOUT, "took {:?}", start.elapsed());
    let mut codes: Vec<Code> = analysis.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
    codes.sort();
    codes.dedup();
    codes
}

#[test]
fn memory_and_instances() {
    check(
        r##"
type a = array[100000] of array[100000] of u8;
type b = bytes[<=2147483647];
type c = array[2147483648] of u8;
process P[60000] { var x: array[60000] of u8; x = [0; 60000]; assert(x[1]); }
process Q[6000] { var y: a; assert(y == y); }
type d = bytes[<=1000000]; pool d 3000;
"##,
        expect![[r#"
            error[E0309]: this type needs 10000000000 bytes, more than the 2147483648 a program may have
              at 2:10 `array[100000] of array[100000] of u8`
            error[E0309]: this type needs 2147483651 bytes, more than the 2147483648 a program may have
              at 3:10 `bytes[<=2147483647]`
            error[E0309]: array length 2147483648 is above 2147483647
              at 4:16 `2147483648`
            error[E0309]: the program has more than 65535 instances
              at 6:9 `Q`
            error[E0309]: this needs 3000012000 bytes of memory, more than the 2147483648 a program may have
              at 7:33 `d`
        "#]],
    );
}

#[test]
fn types_that_double() {
    let mut source = String::from("type t0 = u8;\n");
    for n in 0..200 {
        writeln!(source, "type t{} = record {{ a: t{n}, b: t{n} }};", n + 1).expect("a string takes any text");
    }
    assert_eq!(codes(&source), [Code::E0309]);
    let mut source = String::from("type t0 = u8;\n");
    for n in 0..200 {
        writeln!(source, "type t{} = union {{ a: t{n}, b: t{n} }};", n + 1).expect("a string takes any text");
    }
    assert_eq!(codes(&source), [Code::E0309]);
}

#[test]
fn constants_that_double() {
    let mut source = String::from("const s0 = \"0123456789\"; const r0: array[1] of u8 = [1];\n");
    for n in 0..60 {
        writeln!(source, "const s{} = s{n} + s{n};", n + 1).expect("a string takes any text");
    }
    assert_eq!(codes(&source), [Code::E0303]);
    let mut source = String::from("type t0 = int; const c0: t0 = 1;\n");
    for n in 0..25 {
        writeln!(source, "type t{0} = array[4] of t{n}; const c{0}: t{0} = [c{n}, c{n}, c{n}, c{n}];", n + 1)
            .expect("a string takes any text");
    }
    assert_eq!(codes(&source), [Code::E0309]);
}

#[test]
fn long_chains() {
    let mut source = String::new();
    for n in 0..20_000 {
        writeln!(source, "const c{n} = c{};", n + 1).expect("a string takes any text");
    }
    source.push_str("const c20000 = 1;");
    assert_eq!(codes(&source), []);
    let mut source = String::new();
    for n in 0..20_000 {
        writeln!(source, "fn f{n}(a: int) -> int {{ return f{}(a); }}", n + 1).expect("a string takes any text");
    }
    source.push_str("fn f20000(a: int) -> int { return f0(a); }");
    assert_eq!(codes(&source), [Code::E0501]);
    let mut source = String::new();
    for n in 0..20_000 {
        writeln!(source, "type t{n} = t{};", n + 1).expect("a string takes any text");
    }
    source.push_str("type t20000 = int;");
    assert_eq!(codes(&source), []);
    let mut source = String::from("channel c0(int) external out;\n");
    for n in 0..10_000 {
        writeln!(source, "channel c{0}(int); process p{n} {{ while {{ in(c{n}, $x); out(c{0}, x); }} }}", n + 1)
            .expect("a string takes any text");
    }
    assert_eq!(codes(&source), [Code::W0903]);
}

#[test]
fn many_readers_of_one_channel() {
    let mut names = String::new();
    let mut source = String::new();
    for n in 0..5_000 {
        write!(names, "{}p{n}", if n == 0 { "" } else { ", " }).expect("a string takes any text");
        writeln!(source, "process p{n} {{ out(ask, @, {n}); in(reply, @, $x); assert(x); }}")
            .expect("a string takes any text");
    }
    writeln!(source, "type askerT = pid({names}); channel ask(askerT, int); channel reply(askerT, int);")
        .expect("a string takes any text");
    source.push_str("process server { while { in(ask, $client, $n); out(reply, client, n); } }");
    assert_eq!(codes(&source), []);
}

#[test]
fn patterns_without_end() {
    // Coverage is exponential here: each row fixes two of many columns.
    let mut source = String::from("type r = record {");
    for n in 0..40 {
        write!(source, "f{n}: bool, ").expect("a string takes any text");
    }
    source.push_str("}; channel c(r) external out; process P { in(c, $v); match v {");
    for n in 0..40 {
        write!(source, "{{ f{n}: true, f{}: false }} => {{ }} ", (n * 7 + 3) % 40).expect("a string takes any text");
    }
    source.push_str("} }");
    assert_eq!(codes(&source), [Code::E0402]);
    let list = vec!["1"; 5_000].join(", ");
    let source = format!(
        "channel c(array[5000] of u8) external out; process P {{ in(c, $v); match v {{ [{list}] => {{ }} _ => {{ }} }} }}"
    );
    assert_eq!(codes(&source), []);
}

#[test]
fn nesting() {
    for (open, close) in
        [("(", ")"), ("-", ""), ("!", ""), ("[", "; 1]"), ("f(", ")"), ("1 + (", ")"), ("true ? ", " : 1")]
    {
        for depth in [50, 250, 2_000] {
            let source = format!("process P {{ var x = {}1{}; }}", open.repeat(depth), close.repeat(depth));
            codes(&source);
        }
    }
    for depth in [50, 120, 2_000] {
        codes(&format!("process P {{ {}{} }}", "while { if (1) { ".repeat(depth), "} }".repeat(depth)));
        codes(&format!("process P {{ var x = {} 1; }}", "1 + ".repeat(depth)));
        let mut source = String::from("type t0 = bool;\n");
        for n in 0..depth {
            writeln!(source, "type t{} = record {{ a: t{n} }};", n + 1).expect("a string takes any text");
        }
        let (open, close) = ("{ ".repeat(depth), " }".repeat(depth));
        write!(source, "channel c(t{depth}); process P {{ in(c, {open}true{close}); }}")
            .expect("a string takes any text");
        codes(&source);
    }
}
