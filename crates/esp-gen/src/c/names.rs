//! The names that generated C uses for its own, and the text of C string literals. [`crate::common::names`] says how
//! the names of a program are chosen.

pub(crate) use crate::common::names::{Names, member};

use std::fmt::Write as _;

/// Names that the generated C uses for its own.
pub(crate) const OWN_NAMES: &[&str] = &[
    "t",
    "io",
    "now",
    "self",
    "from",
    "to",
    "left",
    "turns",
    "head",
    "tail",
    "where",
    "polling",
    "dispatch",
    "enter",
    "idle",
    "quiescent",
    "poll",
    "pc",
    "ready",
    "left_",
    "bind",
    "next",
    "result",
    "branch",
    "found",
    "input",
    "output",
    "at",
    "due",
    "last",
    "faults",
    "fault_members",
    "fault_calls",
    "prefers",
    "wakes",
    "quiescence",
    "reopen",
    "requeue_members",
    "back",
    "unqueue",
    "is_waiting",
    "pools_save",
    "pools_restore",
    "waiting_append",
    "waiting_remove",
    "program_init",
    "program_step",
    "program_fault",
    "program_place",
    "program_stuck",
    "program_open",
    "program_trace",
    "retry_next",
    "requester",
    "requester_pc",
    "requester_left",
    "resume",
    "poll_at",
    "poll_after",
    "poll_next",
    "put_",
    "excluded",
    "excluded_",
    "bypassed_",
    "bit_",
    "run",
    "leave",
    "again",
    "status",
    "stamp",
    "stuck",
    "carry_on",
    "requeue",
    "await_environment",
    "REQUEUE",
    "AWAIT_ENVIRONMENT",
    "SEND",
    "finished",
    "faulted",
    "later",
    "moved",
    "exit_status",
    "fault",
    "freed",
    "outgoing",
    "instance",
    "mark",
    "wakeable",
    "waiting_last",
    "waiting_next",
    "wake",
    "IO",
    "FAULT_CALL",
    "SENDER_FAULT",
    "READY_MASK",
    "QUAJECT_ESP_H",
];

/// The macro that protects a header of this name from being included twice.
pub(crate) fn include_guard(header_name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("QJ_{}_", header_name.chars().map(letter).collect::<String>())
}

/// A C string literal with these bytes.
pub(crate) fn c_string(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for byte in bytes {
        match byte {
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b'?' => text.push_str("\\?"),
            0x20..=0x7e => text.push(char::from(*byte)),
            0..=0x1f | 0x7f..=0xff => {
                write!(text, "\\{byte:03o}").expect("writing to a string does not fail");
            }
        }
    }
    text.push('"');
    text
}
