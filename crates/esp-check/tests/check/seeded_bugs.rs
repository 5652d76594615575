//! Bugs seeded in the examples of the repository: each is found with a shortest run.

use crate::support::{UNREDUCED, explore, model};
use expect_test::{Expect, expect};
use quaject_esp_check::{Options, Reduction, Verdict};

/// Checks the example with one place changed.
fn check_seeded_bug(example: &str, right: &str, wrong: &str, expected: Expect) {
    assert!(example.contains(right), "the example has changed");
    let model = model(&example.replacen(right, wrong, 1), None);
    let (reduced, all) = (explore(&model, &Options::default()), explore(&model, &UNREDUCED));
    match (reduced.verdict, all.verdict) {
        (Verdict::Violated(found), Verdict::Violated(shortest)) => {
            assert_eq!(found.violation.name(), shortest.violation.name());
            assert_eq!(found.steps.len(), shortest.steps.len());
            let merged = explore(&model, &Options { reduction: Reduction::Communications, ..Options::default() });
            let Verdict::Violated(merged) = merged.verdict else { panic!("{:?}", merged.verdict) };
            assert_eq!(merged.steps.len(), shortest.steps.len());
            expected.assert_eq(&found.text(&model));
        }
        (reduced, all) => panic!("{reduced:?} {all:?}"),
    }
}

fn figure2() -> String {
    let program = include_str!("../../../../examples/vmmc-send/figure2.esp");
    let functions = include_str!("../../../../examples/vmmc-send/functions.esp");
    let model = include_str!("../../../../examples/vmmc-send/figure2-model.esp");
    format!("{program}{}{functions}", model.replace("import \"send.esp\";", ""))
}

#[test]
fn a_dropped_final_message() {
    check_seeded_bug(
        &figure2(),
        "out( translateReplyC, 0, 0);",
        "",
        expect![[r#"
           1  host -> hostRequest: hostSendRequestC(0, 0)  (p.esp:62:21)
           2  hostRequest -> translateAddress: translateRequestC(0, 0)  (p.esp:13:9)
        fault `deadlock`, channel `translateReplyC`
          `hostRequest` waits at p.esp:15:11 for `translateAddress` to write `translateReplyC`
    "#]],
    );
}

#[test]
fn a_wrong_guard() {
    let buffer = include_str!("../../../../examples/buffer.esp");
    let program = format!(
        "{buffer} model m {{
           env put {{ for i in 0..7 {{ out(putC, i); }} }}
           env get {{ var n = 0; while {{ in(getC, $x); assert(x == n); n += 1; }} }}
         }}"
    );
    assert_eq!(explore(&model(&program, None), &Options::default()).verdict, Verdict::Holds);
    check_seeded_bug(
        &program,
        "when (used < SIZE)",
        "when (used <= SIZE)",
        expect![[r#"
           1  put -> buffer: putC(0)  (p.esp:15:38)
           2  put -> buffer: putC(1)  (p.esp:15:38)
           3  put -> buffer: putC(2)  (p.esp:15:38)
           4  put -> buffer: putC(3)  (p.esp:15:38)
           5  put -> buffer: putC(4)  (p.esp:15:38)
           6  buffer -> get: getC(4)  (p.esp:10:7)
           7  get  (p.esp:16:62)
        fault `assert` in `get` at p.esp:16:55
    "#]],
    );
}

#[test]
fn a_swapped_order() {
    let buffer = include_str!("../../../../examples/pages.esp");
    check_seeded_bug(
        buffer,
        "out(ptReqC, @, vAddr);\n    in(ptReplyC, @, $pAddr);",
        "in(ptReplyC, @, $pAddr);\n    out(ptReqC, @, vAddr);",
        expect![[r#"
               1  user -> pageTable: userReqC(update |> {4096, 20480})  (p.esp:44:9)
               2  user -> pageTable: userReqC(update |> {4096, 20480})  (p.esp:44:9)
               3  user -> pageTable: userReqC(update |> {4096, 20480})  (p.esp:44:9)
               4  user -> sender: userReqC(send |> {1, 4096, 8})  (p.esp:45:9)
            fault `deadlock`, channel `ptReplyC`
              `sender` waits at p.esp:25:5 for `pageTable` to write `ptReplyC`
        "#]],
    );
}

#[test]
fn a_missing_unlink() {
    let program = include_str!("../../../../examples/frames.esp");
    for process in [None, Some("filter"), Some("sender")] {
        assert_eq!(explore(&model(program, process), &Options::default()).verdict, Verdict::Holds, "{process:?}");
    }
    check_seeded_bug(
        program,
        "unlink(frame);",
        "",
        expect![[r#"
           1  environment -> filter: frameInC("\0\0")  (p.esp:12:5)
        an object of `frameT` is never released: `filter` has lost it
    "#]],
    );
    // The process alone shows it too, whatever the other one does.
    let alone = model(&program.replacen("unlink(frame);", "", 1), Some("filter"));
    let Verdict::Violated(found) = explore(&alone, &Options::default()).verdict else { panic!("it is not found") };
    expect![[r#"
           1  environment -> filter: frameInC("\0\0")  (p.esp:12:5)
        an object of `frameT` is never released: `filter` has lost it
    "#]]
    .assert_eq(&found.text(&alone));
}

#[test]
fn an_unlink_too_many() {
    let program = include_str!("../../../../examples/frames.esp");
    check_seeded_bug(
        program,
        "out(frameOutC, number, frame);",
        "unlink(frame); out(frameOutC, number, frame);",
        expect![[r#"
           1  environment -> filter: frameInC("\0\0\0")  (p.esp:12:5)
           2  filter -> sender: keptC("\0\0\0")  (p.esp:13:25)
           3  sender  (p.esp:22:15), sender.number() = 0, sender.number() = 0
        fault `memory` in `sender` at p.esp:23:20, channel `frameOutC`
    "#]],
    );
}
