//! `--fault`.

use super::{engines, qj, text};

const COPY: &str = "
channel inC(int) external out = \"text:numbers\";
channel outC(int) external in = \"text:-\";
process copy { while { in(inC, $n); out(outC, n); } }
";

fn passed(engine: &str, fault: &str) -> (Vec<u32>, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let numbers: Vec<String> = (0..1_000).map(|n| n.to_string()).collect();
    std::fs::write(folder.path().join("numbers"), numbers.join("\n")).expect("the folder is writable");
    let arguments = ["--clock", "virtual", "--fault", fault];
    let output = qj(folder.path(), engine, COPY, &arguments).output().expect("cargo built qj");
    assert!(output.status.success(), "{engine}, {fault}: {}", text(&output.stderr));
    let numbers = text(&output.stdout).lines().map(|line| line.parse().expect("a number")).collect();
    (numbers, text(&output.stderr))
}

#[test]
fn every_engine_has_the_same_faults() {
    for fault in ["inC:loss=5%,dup=5%,seed=7", "outC:loss=5%,dup=5%,reorder=10%,delay=1ms..20ms,seed=7"] {
        let (expected, note) = passed("interp", fault);
        assert!(note.starts_with("note: faults on channel `"), "{note}");
        let mut sorted = expected.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert!((900..990).contains(&sorted.len()), "{fault}: {} of 1000 arrived", sorted.len());
        for engine in engines() {
            assert_eq!(passed(engine, fault), (expected.clone(), note.clone()), "{engine}, {fault}");
        }
    }
    assert_ne!(passed("interp", "inC:loss=5%,seed=7"), passed("interp", "inC:loss=5%,seed=8"));
}

#[test]
fn a_fault_without_a_target_is_wrong_usage() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (fault, cause) in [
        ("udp:loss=5%", "no channel is called `udp` or bound to a driver `udp`"),
        ("text", "`text` does not say what messages suffer"),
        ("text:loss=5", "`loss=5` is no fault"),
    ] {
        let output = qj(folder.path(), "interp", COPY, &["--fault", fault]).output().expect("cargo built qj");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(cause), "{said}");
    }
}
