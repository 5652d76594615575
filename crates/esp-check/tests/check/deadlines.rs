//! Deadlines that are passed over: liveness excludes runs on which an `alt` never takes an `until` whose time has come.
//! The oracle is a program without times, whose property excludes these runs by assumptions.

use crate::support::{UNREDUCED, explore, model, random_model};
use quaject_esp_check::counterexample_file::{CounterexampleFile, write};
use quaject_esp_check::{
    Answer, Limits, Liveness, Options, Reduction, ReplayOutcome, Report, Verdict, replay_external_property,
};
use quaject_esp_ir::model::ModelProgram;
use quaject_test_support::{Effort, random::Random};
use std::fmt::Write as _;

/// Checks that the counterexample replays, and that its cycle satisfies fairness itself.
fn replay(model: &ModelProgram, report: &Report) {
    let Verdict::Violated(found) = &report.verdict else { return };
    let file = CounterexampleFile::parse(&write(model, &[("p.esp".into(), String::new())], found));
    let followed = file.expect("it has just been written").replay(model).expect("the program is small");
    assert_eq!(found.text(model), followed.expect("the run can be taken").text(model));
}

/// Whether the property of the program's model holds; the same with every reduction.
fn answer(text: &str) -> Answer {
    let model = model(text, None);
    let answers = [Reduction::Off, Reduction::Communications, Reduction::On].map(|reduction| {
        let report = explore(&model, &Options { reduction, ..UNREDUCED });
        replay(&model, &report);
        report.properties[0].1
    });
    assert_eq!(answers, [answers[0]; 3], "{text}");
    answers[0]
}

/// A process that receives without end, and has a deadline.
fn receiver(declarations: &str, body: &str, property: &str) -> String {
    format!(
        "channel c(); channel d() shared; process s {{ while {{ out(c); }} }}
         process t {{ while {{ out(d); }} }} process u {{ idle in(d); }}
         process p {{ var n = 0; {declarations} while {{ {body} }} }}
         model m {{ ltl \"{property}\"; }}"
    )
}

#[test]
fn a_deadline_is_not_passed_over_forever() {
    let due = "var due = now + (5 s);";
    for (declarations, body, property, expected) in [
        // The rule decides.
        (due, "alt { in(c) { } until (due) { n = 1; } }", "<> (p:n == 1)", Answer::Holds),
        (due, "alt { until (due) { n = 1; } in(c) { } }", "<> (p:n == 1)", Answer::Holds),
        (due, "alt { in(c) { } until (due) { n = 1 - n; } }", "[] <> (p:n == 1)", Answer::Holds),
        (due, "alt { in(c) { } when (n < 1) until (due) { n = 1; } }", "<> (p:n == 1)", Answer::Holds),
        (due, "if (n == 0) { alt { in(c) { } until (due) { n = 1; } } } else in(c);", "<> (p:n == 1)", Answer::Holds),
        // It may take any time.
        (due, "alt { in(c) { } until (due) { n = 1; } }", "[] (p:n == 0)", Answer::Violated),
        // The deadline moves.
        (due, "alt { in(c) { due = now + (5 s); } until (due) { n = 1; } }", "<> (p:n == 1)", Answer::Violated),
        (due, "alt { in(c) { due += (1 ms); } until (due) { n = 1; } }", "<> (p:n == 1)", Answer::Violated),
        (due, "alt { in(c) { } until (now + (5 s)) { n = 1; } }", "<> (p:n == 1)", Answer::Violated),
        ("", "alt { in(c) { } after (5 ms) { n = 1; } }", "<> (p:n == 1)", Answer::Violated),
        // It moves only with what does not happen forever.
        (
            due,
            "alt { in(c) { if (n == 0) { n = 2; due = now + (5 s); } } until (due) { n = 1; } }",
            "<> (p:n == 1)",
            Answer::Holds,
        ),
        (
            due,
            "alt { in(c) { } in(d) { due = now + (5 s); } until (due) { n = 1; } }",
            "<> (p:n == 1)",
            Answer::Violated,
        ),
        // It moves when it is reached.
        (due, "alt { in(c) { } until (due) { n = 1 - n; due = now + (5 s); } }", "[] <> (p:n == 1)", Answer::Holds),
        // It is closed again and again, or in the end.
        (due, "alt { in(c) { n = 2 - n; } when (n == 0) until (due) { n = 1; } }", "<> (p:n == 1)", Answer::Violated),
        (due, "alt { in(c) { n = 2; } when (n == 0) until (due) { n = 1; } }", "<> (p:n == 1)", Answer::Violated),
        // Its `alt` is not executed forever.
        (due, "alt { in(c) { while { in(c); } } until (due) { n = 1; } }", "<> (p:n == 1)", Answer::Violated),
        // One of two `alt`s, or of two deadlines.
        (
            "var due = now; var later = now + (1 s);",
            "alt { in(c) { } until (due) { due = now + (1 ms); } until (later) { n = 1; } }",
            "<> (p:n == 1)",
            Answer::Holds,
        ),
        (
            "var due = now; var later = now + (1 s);",
            "alt { in(c) { } until (due) { later = now + (1 ms); } until (later) { n = 1; } }",
            "<> (p:n == 1)",
            Answer::Violated,
        ),
        // A rendezvous has no such guarantee in a model, and weak fairness does not give it one.
        (
            due,
            "alt { in(c) { } until (due) { due = now + (1 s); } in(d) { n = 1; } }",
            "<> (p:n == 1)",
            Answer::Violated,
        ),
        // A `pri alt` takes an earlier branch forever, and a later one only before the time.
        (due, "pri alt { in(c) { } until (due) { n = 1; } }", "<> (p:n == 1)", Answer::Violated),
        (due, "pri alt { until (due) { n = 1; } in(c) { } }", "<> (p:n == 1)", Answer::Holds),
        (due, "pri alt { when (n == 0) until (due) { n = 1; } in(c) { n = 2 - n; } }", "<> (p:n == 1)", Answer::Holds),
    ] {
        assert_eq!(answer(&receiver(declarations, body, property)), expected, "{declarations} {body} {property}");
    }
}

#[test]
fn a_deadline_may_be_in_a_record_or_a_message() {
    let due = "var x: #connectionT = #{ now, 0 };";
    let with_types = |body: &str, property: &str| {
        format!("type connectionT = record {{ due: time, k: int }}; {}", receiver(due, body, property))
    };
    let keeps = "alt { in(c) { x.k = 1 - x.k; } until (x.due) { n = 1; } }";
    assert_eq!(answer(&with_types(keeps, "<> (p:n == 1)")), Answer::Holds);
    let moves = "alt { in(c) { x.due = now + (1 s); } until (x.due) { n = 1; } }";
    assert_eq!(answer(&with_types(moves, "<> (p:n == 1)")), Answer::Violated);
    let moves = "alt { in(c) { x = #{ now, 1 }; } until (x.due) { n = 1; } }";
    assert_eq!(answer(&with_types(moves, "<> (p:n == 1)")), Answer::Violated);
    // What a message brings may be a new time.
    for (body, expected) in [
        ("alt { in(e, due) { } until (due) { n = 1; } }", Answer::Violated),
        ("if (first) { in(e, due); first = false; } alt { in(e, _) { } until (due) { n = 1; } }", Answer::Holds),
    ] {
        let text = format!(
            "channel e(time); process s {{ while {{ out(e, now + (1 s)); }} }}
             process p {{ var n = 0, due = now, first = true; while {{ {body} }} }}
             model m {{ ltl \"<> (p:n == 1)\"; }}"
        );
        assert_eq!(answer(&text), expected, "{body}");
    }
}

#[test]
fn the_environment_may_pass_its_deadlines_over() {
    let text = "channel c(int) external out;
        process p { var n = 0; while { in(c, n); } }
        model m { abstract range c.0 0..2;
          env host { var due = now; while { alt { out(c, 0) { } until (due) { out(c, 1); } } } }
          ltl \"<> (p:n == 1)\"; }";
    assert_eq!(answer(text), Answer::Violated);
}

#[test]
fn replicas_have_deadlines_of_their_own() {
    let text = |body: &str, property: &str| {
        format!(
            "channel c() shared; process s {{ while {{ out(c); }} }}
             process p[2] {{ var n = 0, due = now; while {{ alt {{ in(c) {{ {body} }} until (due) {{ n = 1; }} }} }} }}
             model m {{ ltl \"{property}\"; }}"
        )
    };
    assert_eq!(answer(&text("", "<> (p[0]:n == 1) && <> (p[1]:n == 1)")), Answer::Holds);
    let moves = text("if (int(@) == 0) due = now;", "<> (p[1]:n == 1)");
    assert_eq!(answer(&moves), Answer::Holds);
    let moves = text("if (int(@) == 0) due = now;", "<> (p[0]:n == 1)");
    assert_eq!(answer(&moves), Answer::Violated);
}

#[test]
fn starvation_excludes_such_runs_as_well() {
    let starvation = |body: &str| {
        let text = format!(
            "channel c(); channel d(); process s {{ while {{ idle out(c); }} }} process q {{ while {{ out(d); }} }}
             process p {{ var due = now; while {{ alt {{ in(c) {{ {body} }} until (due) {{ in(d); }} }} }} }}"
        );
        let model = model(&text, None);
        let answers = [Reduction::Off, Reduction::On].map(|reduction| {
            let options = Options { reduction, liveness: Liveness::StarvationFreedom, ..UNREDUCED };
            let report = explore(&model, &options);
            replay(&model, &report);
            report.starvation_freedom.expect("it was asked for")
        });
        assert_eq!(answers, [answers[0]; 2], "{text}");
        answers[0]
    };
    // `q` waits until the deadline.
    assert_eq!(starvation(""), Answer::Holds);
    assert_eq!(starvation("due = now + (1 s);"), Answer::Violated);
}

#[test]
fn a_trail_that_passes_a_deadline_over_forever_is_no_run() {
    let body = |statement: &str| {
        let text = receiver(
            "var due = now;",
            &format!("alt {{ in(c) {{ {statement} }} until (due) {{ n = 1; }} }}"),
            "<> (p:n == 1)",
        );
        model(&text, None)
    };
    let moves = body("due = now;");
    let report = explore(&moves, &UNREDUCED);
    let Verdict::Violated(found) = &report.verdict else { panic!("{:?}", report.verdict) };
    let steps: Vec<_> = found.steps.iter().map(|traced| traced.step).collect();
    let replayed = |model: &ModelProgram| {
        replay_external_property(model, 0, &steps, found.cycle, &Limits::default()).expect("the program is small")
    };
    assert!(matches!(replayed(&moves), ReplayOutcome::Reproduced(_)));
    assert!(matches!(replayed(&body("")), ReplayOutcome::Infeasible));
}

/// A statement of a random process. Its variable `n` is 0, 1 or 2; it has two deadlines.
enum Statement {
    Flip,
    Set(usize),
    Move(usize),
    If(usize, Vec<Statement>),
    Alt { word: &'static str, branches: Vec<(Branch, Vec<Statement>)> },
}

enum Branch {
    Rendezvous(&'static str),
    Until { open: Option<usize>, due: usize },
}

const RENDEZVOUS: [&str; 3] = ["in(c)", "in(d)", "out(e)"];

fn statements(random: &mut Random, depth: u32) -> Vec<Statement> {
    (0..random.below(3)).map(|_| statement(random, depth)).collect()
}

fn statement(random: &mut Random, depth: u32) -> Statement {
    match random.below(if depth == 0 { 5 } else { 8 }) {
        0 => Statement::Flip,
        1 | 2 => Statement::Set(random.index(3)),
        3 | 4 => Statement::Move(random.index(2)),
        5 | 6 => Statement::If(random.index(3), statements(random, depth - 1)),
        _ => alt(random, depth - 1),
    }
}

fn alt(random: &mut Random, depth: u32) -> Statement {
    let mut branches = vec![(Branch::Rendezvous(random.pick(&RENDEZVOUS)), statements(random, depth))];
    for _ in 0..1 + random.below(2) {
        let branch = match random.below(3) {
            0 => Branch::Rendezvous(random.pick(&RENDEZVOUS)),
            _ => Branch::Until { open: (random.below(2) == 0).then(|| random.index(3)), due: random.index(2) },
        };
        branches.insert(random.index(branches.len() + 1), (branch, statements(random, depth)));
    }
    Statement::Alt { word: random.pick(&["alt", "alt", "alt", "pri alt"]), branches }
}

/// The text of a process, as it is, or without times: with the events of each deadline as variables.
struct Printer {
    has_times: bool,
    text: String,
    deadlines: usize,
}

/// The number of deadlines of a program, at most.
const MAX_DEADLINES: usize = 2;

impl Printer {
    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            match statement {
                Statement::Flip => self.text += "n = 1 - n % 2; ",
                Statement::Set(value) => _ = write!(self.text, "n = {value}; "),
                Statement::Move(due) if self.has_times => _ = write!(self.text, "due{due} = now + (1 s); "),
                Statement::Move(due) => {
                    for deadline in 0..MAX_DEADLINES {
                        _ = write!(self.text, "new{due}{deadline} = true; ");
                    }
                }
                Statement::If(value, inner) => {
                    _ = write!(self.text, "if (n == {value}) {{ ");
                    self.statements(inner);
                    self.text += "} ";
                }
                Statement::Alt { word, branches } => self.alt(word, branches),
            }
        }
    }

    fn alt(&mut self, word: &str, branches: &[(Branch, Vec<Statement>)]) {
        // Position, number, condition and variable of each deadline.
        let mut own = Vec::new();
        for (position, (branch, _)) in branches.iter().enumerate() {
            if let Branch::Until { open, due } = branch {
                own.push((position, self.deadlines, *open, *due));
                self.deadlines += 1;
            }
        }
        if !self.has_times {
            for (_, number, _, due) in &own {
                _ = write!(
                    self.text,
                    "if (new{due}{number}) {{ excused{number} = !excused{number}; new0{number} = false; \
                     new1{number} = false; }} "
                );
            }
        }
        _ = write!(self.text, "{word} {{ ");
        for (position, (branch, body)) in branches.iter().enumerate() {
            match branch {
                Branch::Rendezvous(operation) => self.text += operation,
                Branch::Until { open, due } => {
                    if let Some(value) = open {
                        _ = write!(self.text, "when (n == {value}) ");
                    }
                    match self.has_times {
                        true => _ = write!(self.text, "until (due{due})"),
                        false => self.text += "after (0 ms)",
                    }
                }
            }
            self.text += " { ";
            if !self.has_times {
                self.events(word, position, &own);
            }
            self.statements(body);
            self.text += "} ";
        }
        self.text += "} ";
    }

    /// The events of the deadlines of an `alt` whose branch at this position is taken.
    fn events(&mut self, word: &str, taken: usize, own: &[(usize, usize, Option<usize>, usize)]) {
        for (position, number, open, _) in own {
            let condition = open.map_or("true".to_string(), |value| format!("n == {value}"));
            let event = if taken == *position {
                format!("excused{number} = !excused{number}; ")
            } else if word == "alt" {
                format!("if ({condition}) passed{number} = !passed{number}; else excused{number} = !excused{number}; ")
            } else if taken > *position {
                format!("if ({condition}) passed{number} = !passed{number}; ")
            } else {
                String::new()
            };
            self.text += &event;
        }
    }
}

/// A program with a property, and one without times whose property assumes that each deadline that is passed over
/// infinitely often is excused infinitely often.
fn pair(random: &mut Random) -> Option<(String, String)> {
    let body = [alt(random, 1)];
    let property = random.pick(&[
        "<> (p:n == 1)",
        "[] <> (p:n == 1)",
        "<> [] (p:n == 0)",
        "<> [] (p:n != 2)",
        "[] (p:n == 0 -> <> (p:n == 1))",
        "([] <> (p:n == 1)) -> [] <> (p:n == 2)",
        "(p:n == 0) U (p:n == 2)",
    ]);
    let partner = random.pick(&["while { out(d); }", "out(d); out(d);", "idle in(d);", "while { out(d); in(e); }"]);
    let [with, without] = [true, false].map(|has_times| {
        let mut printer = Printer { has_times, text: String::new(), deadlines: 0 };
        printer.statements(&body);
        printer
    });
    let count = with.deadlines;
    if count == 0 || count > MAX_DEADLINES {
        return None;
    }
    let rest = format!(
        "channel c(); channel d() shared; channel e() shared;
         process s {{ while {{ out(c); }} }} process t {{ {partner} }}
         process z {{ idle alt {{ in(d) {{ }} out(d) {{ }} }} }} process r {{ while {{ idle in(e); }} }}"
    );
    let mut variables = String::new();
    let mut assumptions = Vec::new();
    for number in 0..MAX_DEADLINES {
        _ = write!(variables, "var new0{number} = false, new1{number} = false; ");
    }
    for number in 0..count {
        _ = write!(variables, "var passed{number} = false, excused{number} = false; ");
        let changes = |name: &str| format!("([] <> (p:{name}{number} == 1) && [] <> (p:{name}{number} == 0))");
        assumptions.push(format!("({} -> {})", changes("passed"), changes("excused")));
    }
    let program = format!(
        "{rest} process p {{ var n = 0, due0 = now, due1 = now; while {{ {} }} }} model m {{ ltl \"{property}\"; }}",
        with.text
    );
    let oracle = format!(
        "{rest} process p {{ var n = 0; {variables} while {{ {} }} }} model m {{ ltl \"({}) -> ({property})\"; }}",
        without.text,
        assumptions.join(" && ")
    );
    Some((program, oracle))
}

#[test]
fn random_programs_agree_with_assumptions() {
    let mut random = Random(16);
    let wanted = Effort::wanted().pick(30, 100, 5_000);
    let (mut answers, mut decided_by_rule, mut tries) = ([0; 2], 0, 0);
    while answers.iter().sum::<u32>() < wanted {
        tries += 1;
        assert!(tries < 20 * wanted, "{answers:?} of {tries} samples");
        let Some((program, oracle)) = pair(&mut random) else { continue };
        let Some(oracle_model) = random_model(&oracle) else {
            model(&oracle, None);
            unreachable!("{oracle}")
        };
        let limits = Limits { states: Some(2_000), ..Limits::default() };
        let expected = explore(&oracle_model, &Options { limits, ..Options::default() }).properties[0].1;
        if !matches!(expected, Answer::Holds | Answer::Violated) {
            continue;
        }
        assert_eq!(answer(&program), expected, "{program}\n{oracle}");
        answers[usize::from(expected == Answer::Holds)] += 1;
        let without_rule = program.replace("until (due0)", "after (0 ms)").replace("until (due1)", "after (0 ms)");
        decided_by_rule += u32::from(answer(&without_rule) != expected);
    }
    println!("{answers:?} of {tries} samples, {decided_by_rule} decided by the rule");
    assert!(answers.iter().all(|count| *count > wanted / 10), "{answers:?}");
    assert!(decided_by_rule > wanted / 30, "{decided_by_rule} of {wanted}");
}
