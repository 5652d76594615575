//! Options of the C back end.

use crate::Checks;

/// What to generate.
#[derive(Clone, Debug)]
pub struct Options {
    /// Prefix of every public name, so that several programs link together: `foo_t`, `foo_step`, `foo_c_ready`.
    /// Without one they are `esp_t`, `esp_step`, `c_ready`.
    pub prefix: Option<String>,
    /// The header's file name, as the source includes it; the source has the same stem.
    pub header_name: String,
    /// How messages reach the program and leave it.
    pub style: Style,
    /// Whether debuggers and compilers see the ESP source.
    pub lines: LineMarks,
    /// Which arithmetic faults.
    pub checks: Checks,
    /// Whether choices are traced.
    pub trace: TraceMode,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            prefix: None,
            header_name: "program.h".to_string(),
            style: Style::Poll,
            lines: LineMarks::Source,
            checks: Checks::Off,
            trace: TraceMode::None,
        }
    }
}

/// How messages reach the program and leave it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// The program calls C functions: `c_ready`, `c_take`, `c_put`.
    Poll,
    /// Interrupts call `esp_post_c`; the program takes from a ring. Output is as in [`Style::Poll`].
    Post {
        /// Messages in each ring, rounded up to a power of two.
        ring: u32,
    },
    /// Messages go in and out through the arguments of `esp_step`; all state is in `esp_t`.
    SansIo,
}

impl Style {
    /// Whether messages go in and out through the arguments of `esp_step`.
    pub(crate) fn is_sans_io(self) -> bool {
        match self {
            Style::SansIo => true,
            Style::Poll | Style::Post { .. } => false,
        }
    }
}

/// Whether `#line` leads debuggers and compilers to the ESP source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LineMarks {
    /// It does.
    Source,
    /// They see the C.
    None,
}

/// Whether each choice is reported to a callback.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TraceMode {
    /// To the function set with `esp_trace`.
    Callback,
    /// Not at all; costs nothing.
    None,
}

impl TraceMode {
    /// Whether there is a callback.
    pub(crate) fn is_callback(self) -> bool {
        match self {
            TraceMode::Callback => true,
            TraceMode::None => false,
        }
    }
}
