//! Instruction budgets, counted by callgrind: they do not depend on the load of the machine, so that a regression is
//! detected in one run. Each count is the difference of two runs.

use std::process::Command;

use crate::build::Program;
use quaject_test_support::{Effort, tool};

/// The operation, as tests/c/budget.c names it, and how many instructions it may take, call and loop included.
const BUDGETS: &[(&str, u64)] =
    &[("async", 54), ("finish-yield", 216), ("yield", 51), ("yield-direct", 40), ("yield-id", 60), ("call", 740)];

fn instructions(program: &std::path::Path, operation: &str, count: u64) -> u64 {
    let log = program.with_extension(format!("{operation}-{count}"));
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--quiet"]).arg(format!("--callgrind-out-file={}", log.display()));
    let output = valgrind.arg(program).args([operation, &count.to_string()]).output().expect("valgrind starts");
    assert!(output.status.success(), "{operation}: {}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&log).expect("callgrind writes its log");
    let line = text.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
    let words = line.expect("the log has a total").split_whitespace().next().expect("a number").to_owned();
    words.parse().expect("a number")
}

#[test]
fn operations_keep_their_budgets() {
    if tool(&["valgrind"]).is_none() {
        return;
    }
    let compilers: &[&str] = Effort::wanted().pick(&["gcc"], &["gcc", "clang"], &["gcc", "clang"]);
    for compiler in compilers {
        let Some(program) = Program::new(compiler, "budget").flags(&["-O2"]).build() else { continue };
        for (operation, budget) in BUDGETS {
            let (few, many) = (1000, 5000);
            let spent = instructions(&program, operation, many) - instructions(&program, operation, few);
            let each = spent / (many - few);
            eprintln!("{compiler} {operation}: {each} of {budget}");
            assert!(each > 4, "{compiler}: {operation} counts nothing");
            assert!(each <= *budget, "{compiler}: {operation} takes {each} instructions; {budget} are allowed");
        }
    }
}
