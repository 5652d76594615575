//! The outcome of a run, as the last line of the kernel's log states it (`kernel/src/outcome.rs`).

/// What the last line of the log begins with.
pub(super) const PREFIX: &str = "outcome: ";

/// Why the machine has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MachineOutcome {
    /// The program called exit.
    Exited(u8),
    /// A signal ended the program.
    Killed(u8),
    /// The program could not be started.
    Refused,
    /// Every thread waits for ever.
    Deadlock,
    /// The kernel failed.
    KernelFault,
}

impl MachineOutcome {
    /// Reads what stands behind the prefix.
    pub(super) fn read(text: &str) -> Option<MachineOutcome> {
        let (word, number) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        match word {
            "exited" => number.parse().ok().map(MachineOutcome::Exited),
            "killed" => number.parse().ok().filter(|signal| (1..=64).contains(signal)).map(MachineOutcome::Killed),
            "refused" => Some(MachineOutcome::Refused),
            "deadlock" => Some(MachineOutcome::Deadlock),
            "kernel-fault" => Some(MachineOutcome::KernelFault),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_read() {
        assert_eq!(MachineOutcome::read("exited 255\n"), Some(MachineOutcome::Exited(255)));
        assert_eq!(MachineOutcome::read("killed 11"), Some(MachineOutcome::Killed(11)));
        assert_eq!(MachineOutcome::read("refused"), Some(MachineOutcome::Refused));
        assert_eq!(MachineOutcome::read("deadlock"), Some(MachineOutcome::Deadlock));
        assert_eq!(MachineOutcome::read("kernel-fault"), Some(MachineOutcome::KernelFault));
        for text in ["", "exited", "exited 256", "killed 0", "killed 200", "other"] {
            assert_eq!(MachineOutcome::read(text), None, "{text}");
        }
    }
}
