//! Pure extern functions: one answer to an argument for a whole run, wherever it is asked. Random programs are compared
//! with all programs in which the functions are tables.

use crate::support::{UNREDUCED, explore, model, random_model};
use quaject_esp_check::counterexample_file::{CounterexampleFile, write};
use quaject_esp_check::{Counterexample, Liveness, Options, Verdict, check};
use quaject_esp_ir::model::ModelProgram;
use quaject_test_support::{Effort, random::Random};
use std::fmt::Write as _;

fn verdict(text: &str) -> Verdict {
    explore(&model(text, None), &Options::default()).verdict
}

#[track_caller]
fn check_violated(text: &str) -> Counterexample {
    let model = model(text, None);
    let Verdict::Violated(found) = explore(&model, &Options::default()).verdict else {
        panic!("it goes wrong: {text}")
    };
    let file = write(&model, &[("p.esp".into(), String::new())], &found);
    let replayed = CounterexampleFile::parse(&file).expect("it has just been written").replay(&model);
    let replayed = replayed.expect("the program is small").unwrap_or_else(|error| panic!("{error}\n{file}"));
    assert_eq!(found.text(&model), replayed.text(&model));
    assert_eq!(found.answers, replayed.answers);
    found
}

#[test]
fn a_pure_function_answers_an_argument_alike() {
    let program = |purity: &str, again: &str| {
        format!(
            "extern {purity} fn upper(u8) -> bool; channel c(u8) external out; channel d(u8) external in;
             process p {{ while {{ in(c, $x); var a = upper(x), b = upper({again}); assert(a == b); out(d, x); }} }}"
        )
    };
    assert_eq!(verdict(&program("pure", "x")), Verdict::Holds);
    check_violated(&program("pure", "x ^ 1"));
    check_violated(&program("", "x"));
}

#[test]
fn an_answer_holds_for_the_whole_run() {
    let text = |again: &str| {
        format!(
            "extern pure fn f(u8) -> bool; channel c(u8) external in;
             process p {{ var a: #array of bool = #[false; 4];
             for i in 0..4 {{ a[i] = f(u8(i)); }} out(c, 0); out(c, 1);
             for i in 0..4 {{ out(c, 2); assert(a[{again}] == f(u8(i))); }} }}"
        )
    };
    assert_eq!(verdict(&text("i")), Verdict::Holds);
    let found = check_violated(&text("3 - i"));
    assert!(found.answers.len() >= 2, "{:?}", found.answers);
}

#[test]
fn a_condition_of_a_pattern_is_true_or_false() {
    let taken = "extern pure fn ok(u8) -> bool; channel c(u8) external out;
        process p { while { idle in(c, $x if ok(x)); assert(false); } }";
    check_violated(taken);
    let within = "extern pure fn ok(u8) -> bool; fn twice(x: u8) -> bool { return ok(x) && ok(x); }
        channel c(u8) external out; process p { while { idle in(c, $x if twice(x)); assert(ok(x)); } }";
    assert_eq!(verdict(within), Verdict::Holds);
    let internal = "extern pure fn ok(u8) -> bool; channel c(u8);
        process p { out(c, 1); } process q { in(c, $x if ok(x)); }";
    assert_eq!(check_violated(internal).violation.name(), "deadlock");
    let either = "extern pure fn ok(u8) -> bool; channel c(u8);
        process p { out(c, 1); }
        process q { alt { in(c, $x if ok(x)) { assert(ok(1)); } in(c, $y if !ok(y)) { assert(!ok(1)); } } }";
    assert_eq!(verdict(either), Verdict::Holds);
}

#[test]
fn a_message_of_a_waiting_process_is_one_message() {
    let text = |pattern: &str| {
        format!(
            "extern pure fn f(u8) -> bool; channel c(bool) shared; channel d(u8) external out;
             process p {{ alt {{ out(c, f(1)) {{ }} in(d, _) {{ out(c, f(1)); }} }} }}
             process q {{ in(c, {pattern}); }} process r {{ idle in(c, $z if z != z); }}"
        )
    };
    assert_eq!(verdict(&text("_")), Verdict::Holds);
    assert_eq!(check_violated(&text("$x if x")).violation.name(), "deadlock");
}

#[test]
fn a_property_depends_on_one_table() {
    let program = |property: &str| {
        format!(
            "extern pure fn f(bool) -> bool; channel c(bool) external in;
             process p {{ var b = f(true); while {{ out(c, b); b = f(true); }} }} model m {{ ltl \"{property}\"; }}"
        )
    };
    // The value before the first answer is 0.
    assert_eq!(verdict(&program("<>[] (p:b == 1) || <>[] (p:b == 0)")), Verdict::Holds);
    check_violated(&program("<>[] (p:b == 1)"));
}

/// A random program with the pure functions `f` of a `bool` and `h` of a number below 3.
fn random_program(random: &mut Random) -> String {
    let mut text = "channel c(u8) shared; channel d(bool) shared;
         channel e(u8) external out shared; channel g(bool) external in shared;\n"
        .to_string();
    let processes = 2 + random.below(2);
    for process in 0..processes {
        writeln!(text, "process p{process} {{ var a = false, n: u8 = 0;").expect("a string");
        let repeats = random.below(3) == 0;
        if repeats {
            text += "while {\n";
        }
        for _ in 0..2 + random.below(3) {
            statement(random, &mut text, 2);
        }
        // Something visible in each iteration, so that local code ends.
        if repeats {
            text += "idle out(g, a); }\n";
        }
        text += "}\n";
    }
    let property =
        random.pick(&["", "[] (p0:n < 2)", "[]<> (p1:a == 0)", "<> (p0:a == 1)", "[] (p0:n != 1 || p1:a == 0)"]);
    if property.is_empty() {
        text + "model m { abstract range e.0 0..2; }"
    } else {
        text + &format!("model m {{ abstract range e.0 0..2; ltl \"{property}\"; }}")
    }
}

fn condition(random: &mut Random) -> &'static str {
    random.pick(&["f(a)", "h(n)", "!f(n == 1)", "a", "n == 2", "f(true)", "h((n + 1) % 3)", "f(f(a))", "h(0) == h(1)"])
}

fn statement(random: &mut Random, text: &mut String, depth: u32) {
    let (first, second) = (condition(random), condition(random));
    let pattern = random.pick(&["$# if h(# % 3)", "$# if f(# == 0)", "_", "$# if !h(# % 3)", "$# if # == 0", "n"]);
    let pattern = pattern.replace('#', &format!("x{}", text.len()));
    let flag = random.pick(&["$# if f(#)", "_", "$# if #", "a", "$# if # == f(#)"]);
    let flag = flag.replace('#', &format!("y{}", text.len()));
    match random.below(if depth == 0 { 7 } else { 10 }) {
        0 => _ = writeln!(text, "a = {first};"),
        1 => _ = writeln!(text, "n = (n + 1) % 3;"),
        2 => _ = writeln!(text, "assert({first} || {second} || n != 1);"),
        3 => _ = writeln!(text, "idle out(c, n);"),
        4 => _ = writeln!(text, "{}in(c, {pattern});", random.pick(&["idle ", ""])),
        5 => _ = writeln!(text, "idle in(e, {pattern});"),
        6 => _ = writeln!(text, "{}in(d, {flag});", random.pick(&["idle ", ""])),
        7 => {
            _ = writeln!(text, "if ({first}) {{");
            statement(random, text, depth - 1);
            text.push_str("} else {\n");
            statement(random, text, depth - 1);
            text.push_str("}\n");
        }
        8 => {
            let kind = random.pick(&["idle alt", "alt", "idle pri alt"]);
            let message = random.pick(&["a", "f(a)", "h(n)", "f(true)"]);
            _ = writeln!(text, "{kind} {{ out(d, {message}) {{ a = !a; }} in(c, {pattern}) {{ n = 0; }} }}");
        }
        _ => {
            _ = writeln!(text, "idle alt {{ when ({first}) out(d, {second}) {{ }} in(d, {flag}) {{ a = {second}; }} }}")
        }
    }
}

/// The program with this table of answers in place of the extern functions.
fn with_table(text: &str, table: u32) -> ModelProgram {
    let bit = |number: u32| table >> number & 1 == 1;
    let text = format!(
        "fn f(x: bool) -> bool {{ if (x) return {}; return {}; }}
         fn h(x: u8) -> bool {{ if (x == 0) return {}; if (x == 1) return {}; return {}; }}\n{text}",
        bit(0),
        bit(1),
        bit(2),
        bit(3),
        bit(4)
    );
    random_model(&text).unwrap_or_else(|| panic!("it is right with extern functions: {text}"))
}

#[test]
fn random_programs_agree_with_all_tables() {
    let mut random = Random(33);
    let (mut violated, mut contradicted) = (0, 0);
    let count = Effort::wanted().pick(60, 300, 10_000);
    for number in 0..count {
        let text = random_program(&mut random);
        let open = format!("extern pure fn f(bool) -> bool; extern pure fn h(u8) -> bool;\n{text}");
        let Some(model) = random_model(&open) else { continue };
        if check(&model, &UNREDUCED, &mut |_| {}).is_err() {
            // The property names a variable of a process that never waits.
            continue;
        }
        let starves = random.below(4) == 0 && !text.contains("ltl");
        let liveness = if starves { Liveness::StarvationFreedom } else { Liveness::Ignored };
        let options = [Options { liveness, ..UNREDUCED }, Options { liveness, ..Options::default() }];
        let tables: Vec<bool> =
            (0..32).map(|table| explore(&with_table(&text, table), &options[1]).verdict != Verdict::Holds).collect();
        let expected = tables.contains(&true);
        contradicted += u32::from(tables.contains(&false) && expected);
        violated += u32::from(expected);
        for options in &options {
            let report = explore(&model, options);
            let is_violated = matches!(report.verdict, Verdict::Violated(_));
            assert_eq!(
                is_violated, expected,
                "program {number}: {options:?}, {:?}, {tables:?}\n{open}",
                report.verdict
            );
            if let Verdict::Violated(found) = &report.verdict {
                let file = write(&model, &[("p.esp".into(), String::new())], found);
                let replayed = CounterexampleFile::parse(&file).expect("it has just been written").replay(&model);
                let replayed = replayed.expect("it is small").unwrap_or_else(|error| panic!("{error}\n{file}\n{open}"));
                assert_eq!(found.text(&model), replayed.text(&model), "{open}");
            }
        }
    }
    assert!(violated > count / 20 && violated < count, "{violated} of {count} programs are violated");
    assert!(contradicted > count / 20, "{contradicted} of {count} depend on the table");
}
