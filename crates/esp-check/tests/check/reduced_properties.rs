//! Properties with and without reduction: random programs and properties have the same answer, and a reduced product
//! stays as small as the program.

use crate::support::{UNREDUCED, explore, model, random_model};
use quaject_esp_check::{Answer, Liveness, Options, Reduction, Report, Verdict};
use quaject_test_support::{Effort, random::Random};
use std::fmt::Write as _;

/// A ring in which one token circulates.
fn ring(nodes: u32, property: &str) -> String {
    format!(
        "channel tok(pid(node));
         process node[{nodes}] {{ var has = int(@) == 0;
           while {{ if (has) {{ out(tok, @node[(int(@) + 1) % {nodes}]); has = false; }}
             idle in(tok, @); has = true; }} }}
         model live {{ ltl \"{property}\"; }}"
    )
}

/// Dining philosophers, the last of whom takes the forks in the other order.
fn philosophers(count: u32, property: &str) -> String {
    format!(
        "channel take(pid(fork)); channel put(pid(fork));
         process fork[{count}] {{ while {{ idle in(take, @); in(put, @); }} }}
         process phil[{count}] {{ var eats = false, left = int(@), right = (int(@) + 1) % {count};
           var first = left < right ? left : right, second = left < right ? right : left;
           while {{ out(take, @fork[first]); out(take, @fork[second]); eats = true; out(put, @fork[first]);
             eats = false; out(put, @fork[second]); }} }}
         model live {{ ltl \"{property}\"; }}"
    )
}

#[test]
fn the_product_of_a_ring_is_as_small_as_the_ring() {
    for property in ["[]<> (node[15]:has)", "[] (node[3]:has -> <> (node[4]:has))"] {
        let report = explore(&model(&ring(16, property), None), &Options::default());
        assert_eq!(report.verdict, Verdict::Holds);
        assert!(report.product.states < 200, "{:?}", report.product);
    }
    let report = explore(&model(&ring(18, "<>[] (node[15]:has == 0)"), None), &Options::default());
    assert!(matches!(report.verdict, Verdict::Violated(_)));
    assert!(report.product.states < 400, "{:?}", report.product);
}

#[test]
fn a_violation_near_the_start_ends_the_product_early() {
    // Philosophers have far more states than are built before the violation is found.
    for property in ["[] (phil[0]:eats == 0)", "<> (phil[3]:eats)"] {
        let text = philosophers(5, property);
        let report = explore(&model(&text, None), &Options::default());
        let unreduced = explore(&model(&text, None), &UNREDUCED);
        assert_eq!(Answer::from(&report.verdict), Answer::from(&unreduced.verdict), "{property}");
        assert!(report.product.states <= unreduced.product.states);
    }
}

#[test]
fn fairness_is_that_of_single_steps() {
    // `s` can send to `i` whenever it waits, but `i` runs local code in between, so that weak fairness does not
    // require it ever to take the message of `s`.
    let one =
        "channel c(int) shared; channel d(int); process s { var done = false; out(c, 1); done = true; out(d, 3); }
        process k { while { out(d, 2); } } process i { while { idle alt { in(c, _) { } in(d, _) { } } } }
        model m { ltl \"<> (s:done)\"; }";
    // With a second partner that only waits, it is.
    let two =
        "channel c(int) shared; channel d(int); process s { var done = false; out(c, 1); done = true; out(d, 3); }
        process k { while { out(d, 2); } } process i { while { idle alt { in(c, _) { } in(d, _) { } } } }
        process w { while { idle in(c, _); } } model m { ltl \"<> (s:done)\"; }";
    for (text, expected) in [(one, Answer::Violated), (two, Answer::Holds)] {
        for options in [Options::default(), UNREDUCED] {
            assert_eq!(Answer::from(&explore(&model(text, None), &options).verdict), expected, "{options:?}");
        }
    }
}

/// With a pool, each step is computed on the complete state, and reduced in another way.
#[test]
fn local_steps_that_a_property_observes_are_in_every_order() {
    let program = "type itemT = record { n: int }; pool itemT 2; channel c(itemT); channel d() shared;
        process a { var item: itemT = { 1 }; out(c, item); } process b { in(c, _); }
        process p { var x = 0; x = 1; idle in(d); } process q { var y = 0; y = 1; idle in(d); }
        process z { while { idle out(d); } }";
    for property in ["[] (p:x == 1 -> q:y == 1)", "[] (q:y == 1 -> p:x == 1)", "(p:x == 0) U (q:y == 1)"] {
        let text = format!("{program} model m {{ ltl \"{property}\"; }}");
        for options in [Options::default(), UNREDUCED] {
            assert_eq!(Answer::from(&explore(&model(&text, None), &options).verdict), Answer::Violated, "{options:?}");
        }
    }
}

fn random_program(random: &mut Random) -> String {
    let mut text = "channel c(u8) shared; channel d(bool) shared;
         channel e(u8) external out shared; channel g(bool) external in shared;\n"
        .to_string();
    let processes = 2 + random.below(3);
    for process in 0..processes {
        writeln!(text, "process p{process} {{ var a = {}, n: u8 = 0;", random.pick(&["true", "false"]))
            .expect("a string");
        if random.below(4) != 0 {
            text += "while {\n";
            for _ in 0..1 + random.below(3) {
                statement(random, &mut text, 2);
            }
            // An operation in each iteration, so that local code ends.
            text += random.pick(&[
                "idle out(c, n);",
                "idle in(c, _);",
                "idle in(d, _);",
                "idle out(d, a);",
                "idle out(g, a);",
            ]);
            text += "}\n";
        } else {
            statement(random, &mut text, 2);
            statement(random, &mut text, 2);
        }
        text += "}\n";
    }
    // Each channel has a reader and a writer.
    text + "process z { idle alt { in(e, _) { } out(g, true) { } } idle in(c, _); idle in(d, _);
         idle out(c, 1); idle out(d, true); }\n"
}

fn statement(random: &mut Random, text: &mut String, depth: u32) {
    let condition = random.pick(&["a", "!a", "n == 0", "n == 1"]);
    let pattern = random.pick(&["_", "n", "$# if # == 0", "$# if # != n"]).replace('#', &format!("x{}", text.len()));
    let idle = random.pick(&["idle ", "idle ", "idle ", "idle ", "idle ", ""]);
    let alt = random.pick(&["alt", "alt", "alt", "pri alt"]);
    let otherwise = if random.below(8) == 0 { "else { n = 0; }" } else { "" };
    let idle_alt = if otherwise.is_empty() { idle } else { "" };
    match random.below(if depth == 0 { 6 } else { 9 }) {
        0 => text.push_str("a = !a;\n"),
        1 => text.push_str("n = (n + 1) % 2;\n"),
        2 => _ = writeln!(text, "{idle}out(c, n);"),
        3 => _ = writeln!(text, "{idle}in(c, {pattern});"),
        4 => {
            _ = writeln!(
                text,
                "{idle}in(d, {});",
                random.pick(&["a", "_", "$y# if y#"]).replace('#', &text.len().to_string())
            )
        }
        5 => _ = writeln!(text, "{idle}out(d, a);"),
        6 => {
            _ = writeln!(text, "if ({condition}) {{");
            statement(random, text, depth - 1);
            text.push_str("} else {\n");
            statement(random, text, depth - 1);
            text.push_str("}\n");
        }
        7 => {
            _ = writeln!(
                text,
                "{idle_alt}{alt} {{ out(d, a) {{ a = !a; }} in(c, {pattern}) {{ n = 0; }} {otherwise} }}"
            )
        }
        _ => {
            _ = writeln!(
                text,
                "{idle_alt}{alt} {{ when ({condition}) out(c, n) {{ }} in(d, a) {{ n = 1; }}
                 in(e, n) {{ n = n % 2; }} {otherwise} }}"
            )
        }
    }
}

fn property(random: &mut Random, processes: usize, depth: u32) -> String {
    if depth == 0 || random.below(5) == 0 {
        let process = random.index(processes);
        let atom = random.pick(&["a", "n == 0", "n == 1", "!"]);
        return if atom == "!" { format!("!(p{process}:a)") } else { format!("(p{process}:{atom})") };
    }
    let (left, right) = (property(random, processes, depth - 1), property(random, processes, depth - 1));
    match random.below(8) {
        0 | 1 => format!("([] {left})"),
        2 | 3 => format!("(<> {left})"),
        4 => format!("({left} -> {right})"),
        5 => format!("({left} U {right})"),
        6 => format!("({left} && {right})"),
        _ => format!("({left} || {right})"),
    }
}

#[test]
fn reduction_does_not_change_random_properties() {
    let mut random = Random(41);
    let count = Effort::wanted().pick(60, 250, 10_000);
    let (mut answers, mut smaller) = ([0; 2], 0);
    for number in 0..count {
        let text = random_program(&mut random);
        let processes = text.matches("process p").count();
        for _ in 0..3 {
            let property = property(&mut random, processes, 3);
            let text = format!("{text}model m {{ abstract range e.0 0..1; ltl \"{property}\"; }}");
            let Some(model) = random_model(&text) else { break };
            let all = explore(&model, &UNREDUCED);
            let is_checked = |report: &Report| report.properties[0].1 != Answer::Open;
            for reduction in [Reduction::On, Reduction::Communications] {
                let reduced = explore(&model, &Options { reduction, ..UNREDUCED });
                assert_eq!(is_checked(&all), is_checked(&reduced));
                if is_checked(&all) {
                    assert_eq!(all.properties, reduced.properties, "program {number}, {reduction:?}\n{text}");
                    smaller += u32::from(reduced.product.states < all.product.states);
                }
            }
            if is_checked(&all) {
                answers[usize::from(all.verdict == Verdict::Holds)] += 1;
            }
        }
        let Some(model) = random_model(&format!("{text}model m {{ abstract range e.0 0..1; }}")) else { continue };
        let starving = |reduction| Options { reduction, liveness: Liveness::StarvationFreedom, ..UNREDUCED };
        let [all, reduced] = [Reduction::Off, Reduction::On].map(|reduction| explore(&model, &starving(reduction)));
        assert_eq!(all.starvation_freedom, reduced.starvation_freedom, "program {number}\n{text}");
    }
    assert!(answers.iter().all(|number| *number > count / 20), "{answers:?} of {count}");
    assert!(smaller > count / 10, "{smaller} products are smaller");
}
