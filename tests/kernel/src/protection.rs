//! The kernel's self-tests, and faults that it commits on purpose: each has to be stopped by a protection, and
//! reported.

use crate::harness::{Machine, boot, emulator, word};

/// QEMU ends with twice the exit value plus 1.
const CHECKED: i32 = 0x15 << 1 | 1;
const KERNEL_FAULT: i32 = 0x12 << 1 | 1;

#[test]
fn page_tables_and_the_code_area_are_as_they_should_be() {
    let Some(emulator) = emulator() else { return };
    let machine = boot(emulator, "check", None);
    assert_eq!((machine.outcome.as_str(), machine.status), ("checked", Some(CHECKED)), "{}", machine.log);
    for line in ["none writable too", "code area: ", "exception table: ", "physical pages: "] {
        assert!(machine.log.contains(line), "{}", machine.log);
    }
}

fn provoke(emulator: &str, fault: &str) -> Machine {
    let machine = boot(emulator, &word("provoke", fault), None);
    assert_eq!((machine.outcome.as_str(), machine.status), ("kernel-fault", Some(KERNEL_FAULT)), "{}", machine.log);
    machine
}

/// The error code of a page fault tells a protected page (1), a write (2) and the fetch of an instruction (16).
#[test]
fn accesses_of_the_kernel_that_a_protection_forbids_are_reported() {
    let Some(emulator) = emulator() else { return };
    let faults =
        [("write-text", 3), ("write-constant", 3), ("write-code", 3), ("execute-data", 0x11), ("read-hole", 0)];
    for (fault, error) in faults {
        let log = provoke(emulator, fault).log;
        assert!(log.starts_with("kernel fault: page fault (vector 14)\naddress "), "{fault}: {log}");
        assert!(log.contains(&format!("error  {error:016x}")), "{fault}: {log}");
        assert!(log.contains("\nr13 "), "the registers are reported: {log}");
    }
}

/// A fault in synthesised code that has no fix-up is reported with the routine.
#[test]
fn a_fault_in_a_routine_is_reported_with_its_name_and_its_code() {
    let Some(emulator) = emulator() else { return };
    let log = provoke(emulator, "routine").log;
    assert!(log.starts_with("kernel fault: general protection (vector 13)"), "{log}");
    assert!(log.contains("in the routine read_file: ") && log.contains("rep movsq"), "{log}");
}

#[test]
fn an_overflow_of_the_kernel_s_stack_is_a_double_fault() {
    let Some(emulator) = emulator() else { return };
    let log = provoke(emulator, "stack").log;
    assert!(log.starts_with("kernel fault: double fault (vector 8)"), "{log}");
}

#[test]
fn a_panic_says_where_and_why() {
    let Some(emulator) = emulator() else { return };
    let log = provoke(emulator, "panic").log;
    assert!(log.starts_with("kernel fault: panicked at src/checks.rs:") && log.contains("as requested"), "{log}");
}
