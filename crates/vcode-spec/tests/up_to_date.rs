//! The generated files in the repository are those that the specifications generate.

use std::path::Path;
use std::process::Command;

#[test]
fn generated_files_are_up_to_date() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(env!("CARGO_BIN_EXE_vcode-codegen"))
        .arg(root)
        .arg("--check")
        .output()
        .expect("the generator of this package starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
