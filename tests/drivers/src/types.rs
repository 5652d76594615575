//! A channel whose type does not match a driver's messages is refused, with a type that does.

use super::{qj, text};

#[test]
fn a_type_that_does_not_match_is_refused_with_one_that_does() {
    let p = "process p { }";
    for (declared, driver, cause, help) in [
        (
            "channel c(int) external out",
            "udp:0",
            "`int` does not hold 4294967295",
            "channel c(u32, u16, bytes[<=1472])`",
        ),
        ("channel c(u32, u16) external out", "udp:0", "something is missing", "channel c(u32, u16, bytes[<=1472])`"),
        ("channel c(u32, u16, bytes[<=8], int) external out", "udp:0", "`int` is too much", "address, port, content"),
        ("channel c(u32, bool, bytes[<=8]) external out", "udp:0", "`bool` is no integer", "address, port, content"),
        (
            "channel c(pid(p), u32, u16, u8) external out",
            "udp:0",
            "`u8` is not `bytes`",
            "(pid(P), u32, u16, bytes[<=1472])`",
        ),
        (
            "channel c(bytes[<=9]) external in",
            "file:.",
            "`bytes[<=9]` is neither a `pid` nor an integer",
            "union { open:",
        ),
        ("channel c(u8, int) external in", "file:.", "`int` is no union", "union { open:"),
        (
            "channel c(u8, union { opne: bytes[<=9] }) external in",
            "file:.",
            "it has no case `opne`, only `open`, `edit`",
            "union { open:",
        ),
        ("channel c(u8, union { read: int }) external in", "file:.", "case `read` holds too little", "union { open:"),
        (
            "channel c(u8, union { open: bytes[<=9] }) external in; channel d(u8, union { failed: u8 }) external out = \"file:.\"",
            "file:.",
            "driver `file` cannot answer `open` on channel `d`: its union has no case `done`",
            "union { done, data:",
        ),
        (
            "channel c(u8, union { data: bytes[<=9] }) external out",
            "tcp:0",
            "driver `tcp` serves two channels, and only one is bound to it",
            "bind the channel of events",
        ),
        ("channel c(int) external out", "tap:tap0", "`int` is not `bytes`", "channel c: bytes[<=1514]`: one frame"),
        ("channel c(u8) external out; channel d(u8) external out = \"pty:t\"", "pty:t", "share one `pty` driver", ""),
    ] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = format!("{declared}; {p}");
        let output = qj(folder.path(), "interp", &program, &["--bind", &format!("c={driver}")]).output().expect("qj");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{declared}: {said}");
        assert!(said.contains(cause) && said.contains(help), "{declared}: {said}");
    }
}
