//! Whether the calls of programs are reported.

/// Whether calls are reported.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Trace {
    #[default]
    Off,
    On,
}
