//! The models of the firmware: `qj verify` finds no error in them, and finds each planted defect.

use quaject_test_support::Effort;
use quaject_test_support::qj::qj_binary;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn firmware() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("firmware")
}

/// What `qj verify` prints for a model below a folder of the firmware.
fn verify(folder: &Path, model: &str) -> String {
    let model = folder.join("models").join(model).with_extension("esp");
    let output = Command::new(qj_binary()).arg("verify").arg(&model).output().expect("Cargo has built qj");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("reports are UTF-8")
}

#[track_caller]
fn assert_verified(model: &str) {
    let report = verify(&firmware(), model);
    assert!(report.starts_with(&format!("no errors in model `{model}`")), "{report}");
}

#[test]
fn small_messages_arrive_once_and_in_order() {
    assert_verified("sends");
}

#[test]
fn pages_arrive_once_and_in_order() {
    assert_verified("pages");
}

#[test]
fn fetches_are_answered_once() {
    assert_verified("fetches");
}

#[test]
fn arbitrary_packets_reach_exported_memory_only() {
    assert_verified("hostile");
}

#[test]
fn arbitrary_requests_reach_imported_memory_only() {
    assert_verified("requests");
}

/// 1.3 million states.
#[test]
fn two_nodes_send_to_each_other() {
    if Effort::wanted() == Effort::Soak {
        assert_verified("both");
    }
}

/// Verifies a copy of the firmware in which a text is replaced.
#[track_caller]
fn assert_defect_is_found(model: &str, text: &str, replacement: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    fs::create_dir(folder.path().join("models")).expect("the folder is writable");
    for name in ["interface.esp", "models/environment.esp", &format!("models/{model}.esp")] {
        fs::copy(firmware().join(name), folder.path().join(name)).expect("the firmware is readable");
    }
    let source = fs::read_to_string(firmware().join("firmware.esp")).expect("the firmware is readable");
    assert_eq!(source.matches(text).count(), 1, "`{text}` is in the firmware once");
    fs::write(folder.path().join("firmware.esp"), source.replace(text, replacement)).expect("the folder is writable");
    let report = verify(folder.path(), model);
    assert!(report.starts_with(&format!("error `assert` in model `{model}`")), "{text}: {report}");
}

#[test]
fn a_packet_taken_twice_is_found() {
    assert_defect_is_found("sends", "header.seq == expected[node]", "true");
}

#[test]
fn a_packet_that_is_acknowledged_and_expected_again_is_found() {
    assert_defect_is_found("sends", "expected[node] = after_seq(header.seq)", "expected[node] = header.seq");
}

#[test]
fn an_offset_beyond_the_exported_buffer_is_found() {
    assert_defect_is_found("hostile", "offset <= length - count", "offset <= length");
}

#[test]
fn a_write_across_pages_is_found() {
    assert_defect_is_found("hostile", "header.length <= rest_of_page(header.offset)", "true");
}

#[test]
fn a_buffer_of_another_node_is_found() {
    assert_defect_is_found("hostile", "(export.nodes >> node & 1)", "1");
}

#[test]
fn a_request_for_the_buffer_of_another_process_is_found() {
    assert_defect_is_found("requests", "import.user == r.user", "true");
}
