//! What a push and a pop of 56 bytes may cost in instructions, counted by callgrind: unlike times, the same on every
//! machine of a kind. A change that needs more has to say so here.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use std::path::{Path, PathBuf};
use std::process::Command;

use quaject_test_support::{Effort, tool};

/// Operation and the most instructions per message, push and pop together, with gcc and clang at `-O2`.
const BUDGETS: &[(&str, f64)] = &[("sp", 93.0), ("mp", 120.0), ("eight", 115.0)];

fn instructions(program: &Path, operation: &str, count: u32) -> f64 {
    let log = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("budget-{}-{operation}", std::process::id()));
    let status = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", &format!("--callgrind-out-file={}", log.display())])
        .arg(program)
        .args([operation, &count.to_string()])
        .status()
        .expect("`tool` has started it");
    assert!(status.success(), "{operation}: {status}");
    let text = std::fs::read_to_string(&log).expect("callgrind writes its counts");
    let line = text.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
    line.expect("callgrind sums up").trim().parse().expect("one number")
}

#[test]
fn operations_stay_within_their_budgets() {
    let (Some(_valgrind), sources) = (tool(&["valgrind"]), Path::new(env!("CARGO_MANIFEST_DIR"))) else { return };
    for compiler in Effort::wanted().pick(&["gcc"][..], &["gcc", "clang"], &["gcc", "clang"]) {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("budget-{compiler}-{}", std::process::id()));
        let output = Command::new(compiler)
            .args(["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-I"])
            .args([&sources.join("include"), Path::new("-o"), &program, &sources.join("tests/c/budget.c")])
            .output()
            .expect("`tool` has started it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        for (operation, budget) in BUDGETS {
            let (more, less) = (instructions(&program, operation, 12_800), instructions(&program, operation, 2_560));
            let each = (more - less) / 10_240.0;
            assert!(each <= *budget, "{compiler}, {operation}: {each:.1} instructions, the budget is {budget}");
        }
    }
}
