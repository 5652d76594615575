//! Liveness: properties of models, and starvation.

use crate::support::{UNREDUCED, check_verdict, explore, model};
use expect_test::{Expect, expect};
use quaject_esp_check::{Liveness, Options, Refusal, Verdict, check};

const CLIENTS: &str = "
    channel ask(pid(a, b)); channel reply(pid(a, b));
    process a { while { out(ask, @); #wait in(reply, @); #got } }
    process b { while { out(ask, @); #wait in(reply, @); #got } }
";

#[test]
fn every_request_is_answered() {
    check_verdict(
        &format!(
            "{CLIENTS} process s {{ while {{ in(ask, $client); out(reply, client); }} }}
             model m {{ ltl \"[] (a@Lwait -> <> a@Lgot)\"; }}"
        ),
        expect![[r#"
            holds, 45 states, 3 reduced
        "#]],
    );
}

#[test]
fn a_request_is_forgotten() {
    check_verdict(
        &format!(
            "{CLIENTS} process s {{ while {{ in(ask, $client); if (client == @a) {{ in(ask, $other); out(reply, other); }} out(reply, client); }} }}
             model m {{ ltl \"[] (a@Lwait -> <> a@Lgot)\"; }}"
        ),
        expect![[r#"
            holds, 58 states, 5 reduced
        "#]],
    );
}

#[test]
fn a_server_may_always_serve_the_other() {
    check_verdict(
        &format!(
            "{CLIENTS} process s {{ while {{ in(ask, $client); while (client == @b) {{ out(reply, client); in(ask, client); }} out(reply, client); }} }}
             model m {{ ltl \"[] <> b@Lgot\"; }}"
        ),
        expect![[r#"
            error property
               cycle: the steps from here on repeat forever
               1  a -> s: ask(@a)  (p.esp:3:25)
               2  s -> a: reply(@a)  (p.esp:5:102)
            property `[] <> b@Lgot` does not hold
        "#]],
    );
}

#[test]
fn a_finite_run_stutters() {
    check_verdict(
        "channel c(int); process p { out(c, 1); #done } process q { in(c, _); }
         model m { ltl \"<> [] p@Ldone\"; }",
        expect![[r#"
            holds, 8 states, 2 reduced
        "#]],
    );
    check_verdict(
        "channel c(int); process p { out(c, 1); #done } process q { in(c, _); }
         model m { ltl \"[] !p@Ldone\"; }",
        expect![[r#"
            error property
               1  p -> q: c(1)  (p.esp:1:29)
               2  p  (p.esp:1:40)   <- violates the property
            property `[] !p@Ldone` is violated here, whatever follows: p@Ldone = true
        "#]],
    );
}

#[test]
fn until_and_release() {
    let program = "channel c(int); process p { #1 out(c, 1); #2 out(c, 2); #3 } process q { in(c, _); in(c, _); }";
    for (property, holds) in [
        ("<> p@L1", true),
        ("!p@L3 U p@L2", true),
        ("!p@L2 U p@L3", false),
        ("!p@L3 W p@L2", true),
        ("p@L2 V !p@L3", true),
        ("[] (p@L2 -> <> p@L3)", true),
        ("[] (p@L3 -> [] p@L3)", true),
        ("[] (p@L2 -> [] p@L2)", false),
        ("<> p@L3 && <> p@L1", true),
        ("[] <> (p@L1 || p@L2)", false),
        ("(<> p@L2) <-> (<> p@L3)", true),
        ("false", false),
        ("true", true),
    ] {
        let model = model(&format!("{program} model m {{ ltl \"{property}\"; }}"), None);
        let report = explore(&model, &UNREDUCED);
        assert_eq!(report.verdict == Verdict::Holds, holds, "{property}");
    }
}

#[test]
fn variables_in_properties() {
    let program = "channel c(u8); channel d(u8);
        process buffer {
          var used: u8 = 0, unread = 7;
          while { alt {
            when (used < 2) in(c, _)    { used += 1; unread = -1; }
            when (used > 0) out(d, used) { used -= 1; }
          } }
        }
        process put[2] { var own = int(@); while { out(c, u8(own)); } }
        process get { var last: u8 = 0; while { in(d, $x); last = x; } }";
    for (property, holds) in [
        ("[] (buffer:used <= 2)", true),
        ("[] (buffer:used < 2)", false),
        ("[] (0 <= buffer:used && 3 > buffer:used)", true),
        ("<> (buffer:used == 2)", false),
        ("<> buffer:used", true),
        ("(buffer:used == 0) U (buffer:used == 1)", true),
        ("[] (get:last >= buffer:used)", false),
        ("[] <> (get:last == 2)", false),
        ("[] (get:last == 2 -> <> (get:last != 2))", false),
        ("[] (buffer:unread == 7 || buffer:unread == -1 || buffer:unread == 0)", true),
        ("<> [] (buffer:unread == -1)", true),
        ("<> (put[1]:own == 1) && [] (put[0]:own != 1) && [] (put:own == 0)", true),
        ("[] (put[1]:own <-> put[0]:own)", false),
        ("[] (1 -> buffer:used<>0)", false),
    ] {
        let model = model(&format!("{program} model m {{ ltl \"{property}\"; }}"), None);
        let Ok(report) = check(&model, &UNREDUCED, &mut |_| {}) else {
            assert_eq!(property, "[] (1 -> buffer:used<>0)");
            continue;
        };
        assert_eq!(report.verdict == Verdict::Holds, holds, "{property}: {}", report.text(&model, &UNREDUCED));
    }
}

#[test]
fn unknown_variables_are_errors() {
    let refused = |property: &str, expected: Expect| {
        let text = "channel c(int); process q { while { in(c, _); } }
            process proc { var count = 0, list: #array of int = #[0; 2]; { var t = 1; out(c, t); } { var t = 2; out(c, t); }
              list[0] = count; out(c, list[0]); }";
        let model = model(&format!("{text} model m {{ ltl \"{property}\"; }}"), None);
        match check(&model, &Options::default(), &mut |_| {}) {
            Err(Refusal::Property(bad)) => {
                expected.assert_eq(&format!("{}\n{}\n", bad.message, bad.help.unwrap_or_default()));
            }
            other => panic!("{other:?}"),
        }
    };
    refused(
        "[] (proc:cuont < 3)",
        expect![[r#"
        `proc` has no variable `cuont`
        did you mean `count`?
    "#]],
    );
    refused(
        "[] (proc:list < 3)",
        expect![[r#"
            `list` of `proc` is not a number that a property can refer to
            only integers, `bool`s and ids can be
        "#]],
    );
    refused(
        "[] (proc:t < 3)",
        expect![[r#"
            `proc` has several variables `t`
            give the one that the property refers to a name that no other variable of the process has
        "#]],
    );
    refused(
        "[] (proc:count < )",
        expect![[r#"
        expected a formula, found `)`
        a label is written `P@L1` for `#1` of process `P`, a variable `P:v`
    "#]],
    );
    refused(
        "[] (proc:count < q)",
        expect![[r#"
        expected a number or a variable to compare with
        a label is written `P@L1` for `#1` of process `P`, a variable `P:v`
    "#]],
    );
    refused(
        "[] 3",
        expect![[r#"
        3 alone is not a proposition
        a label is written `P@L1` for `#1` of process `P`, a variable `P:v`
    "#]],
    );
}

fn refused(property: &str, expected: Expect) {
    refused_by(&format!("process proc {{ #1 yield; #retry }} model m {{ ltl \"{property}\"; }}"), expected);
}

fn refused_by(program: &str, expected: Expect) {
    let model = model(program, None);
    match check(&model, &Options::default(), &mut |_| {}) {
        Err(Refusal::Property(bad)) => {
            expected.assert_eq(&format!("{}\n{}\n", bad.message, bad.help.unwrap_or_default()));
        }
        other => panic!("{other:?}"),
    }
}

/// The second call passes its label only.
#[test]
fn a_label_of_a_procedure_is_that_of_any_call() {
    let text = "channel c(u8) external in;
        proc wait(n: u8) { out(c, n); #sent }
        process p { wait(1); wait(2); }
        model m { ltl \"[] !p@Lsent\"; }";
    let verdict = |text: &str| match explore(&model(text, None), &Options::default()).verdict {
        Verdict::Holds => "holds",
        Verdict::Violated(_) => "violated",
        Verdict::Unfinished(_) => "unfinished",
    };
    assert_eq!(verdict(text), "violated");
    // The instance has ended at the label of the second call.
    assert_eq!(verdict(&text.replace("[] !p@Lsent", "<> [] p@Lsent")), "holds");
}

#[test]
fn processes_outside_of_a_slice_have_no_propositions() {
    refused_by(
        "process p { #1 yield; } process q { var v = 1; #2 yield; } model m { slice p; ltl \"<> p@L1 && <> q:v == 1\"; }",
        expect![[r#"
        `q` is not part of this model
        it is omitted: add it to the `slice`, or state the property in a model of the whole program
    "#]],
    );
}

#[test]
fn malformed_properties_are_errors() {
    refused(
        "[] (prc@L1)",
        expect![[r#"
        no process named `prc`
        did you mean `proc`?
    "#]],
    );
    refused(
        "[] proc@Lretyr",
        expect![[r#"
        `proc` has no label `#retyr`
        did you mean `Lretry`?
    "#]],
    );
    refused(
        "[] (proc@L1",
        expect![[r#"
        a parenthesis is not closed

    "#]],
    );
    refused(
        "proc@L1 proc@L1",
        expect![[r#"
        expected an operator or the end of the property, found `proc@L1`

    "#]],
    );
    refused(
        "[] proc",
        expect![[r#"
            `proc` alone is not a proposition
            a label is written `P@L1` for `#1` of process `P`, a variable `P:v`
        "#]],
    );
    refused(
        "",
        expect![[r#"
            expected a formula, found the end
            a label is written `P@L1` for `#1` of process `P`, a variable `P:v`
        "#]],
    );
    refused(
        "proc[3]@L1",
        expect![[r#"
        `proc` has no such replica
        they are numbered 0..1
    "#]],
    );
}

fn progress(text: &str, expected: Expect) {
    let model = model(text, None);
    let report = explore(&model, &Options { liveness: Liveness::StarvationFreedom, ..Options::default() });
    let text = match &report.verdict {
        Verdict::Holds => "holds\n".to_string(),
        Verdict::Violated(found) => found.text(&model),
        Verdict::Unfinished(limit) => format!("{limit:?}\n"),
    };
    expected.assert_eq(&text);
}

#[test]
fn starvation_is_found() {
    progress(
        "channel c(int) shared; channel d(int);
         process p { while { out(c, 1); } } process q { while { in(c, _); } }
         process r { out(d, 1); } process s { in(c, _); in(d, _); }",
        expect![[r#"
               cycle: the steps from here on repeat forever
               1  p -> q: c(1)  (p.esp:2:30)
            `r` starves at p.esp:3:22: it can wait forever while other processes continue
        "#]],
    );
    progress(
        "channel c(int);
         process p { while { out(c, 1); } } process q { while { in(c, _); } }",
        expect![[r#"
            holds
        "#]],
    );
}

/// By fairness the program ends, and its last state stutters; labels passed before count.
#[test]
fn a_run_ended_by_exit_stutters() {
    let check_verdict = |property: &str, expected: Expect| {
        let text = format!(
            "channel c(); process p {{ #done exit(0); }}
             process q {{ while {{ #1 idle out(c); }} }} process r {{ while {{ idle in(c); }} }}
             model m {{ ltl \"{property}\"; }}"
        );
        let found = explore(&model(&text, None), &Options::default());
        let text = match &found.verdict {
            Verdict::Holds => "holds".to_string(),
            Verdict::Violated(run) => run.text(&model(&text, None)),
            Verdict::Unfinished(limit) => format!("{limit:?}"),
        };
        expected.assert_eq(&text);
    };
    check_verdict("<> [] q@L1 || <> [] !q@L1", expect!["holds"]);
    check_verdict("<> p@Ldone", expect!["holds"]);
    check_verdict(
        "[] <> !q@L1",
        expect![[r#"
               cycle: the last state repeats forever
            property `[] <> !q@L1` does not hold
        "#]],
    );
    check_verdict(
        "[] !p@Ldone",
        expect![[r#"
               1  p  (p.esp:1:26)   <- violates the property
            property `[] !p@Ldone` is violated here, whatever follows: p@Ldone = true
        "#]],
    );
}

/// A loop that polls an extern function may never end; each of its choices is as long.
#[test]
fn polling_that_never_succeeds_does_not_terminate() {
    let model = model("extern fn ready() -> bool; channel c(); process p { while (!ready()) { } out(c); }", None);
    let report = explore(&model, &Options::default());
    let Verdict::Violated(found) = report.verdict else { panic!("{:?}", report.verdict) };
    assert_eq!(found.violation.name(), "nontermination");
    let text = found.text(&model);
    assert!(text.contains("ready() = false, ") && text.contains(" times\n") && text.len() < 300, "{text}");
}
