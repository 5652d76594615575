//! The diagnostic codes of ESP, with their explanations. Diagnostics are found elsewhere, and rendered by
//! `quaject-diagnostic`.

pub mod explain;

pub use quaject_diagnostic::{Severity, nearest};

macro_rules! codes {
    ($($code:ident $title:literal,)*) => {
        /// A stable code (reference, section 7).
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[allow(missing_docs)]
        pub enum Code { $($code,)* }

        impl Code {
            /// Every code, ascending.
            pub const ALL: &'static [Code] = &[$(Code::$code,)*];

            /// The code as printed, such as `E0405`.
            pub fn name(self) -> &'static str {
                match self { $(Code::$code => stringify!($code),)* }
            }

            /// What the code is about, in a few words.
            pub fn title(self) -> &'static str {
                match self { $(Code::$code => $title,)* }
            }
        }
    };
}

codes! {
    E0101 "unterminated or unknown text",
    E0102 "malformed number",
    E0201 "syntax error",
    E0202 "comparisons do not chain",
    E0203 "a label needs a block",
    E0204 "declared twice",
    E0205 "hides a visible local",
    E0206 "wrong number of arguments",
    E0207 "label used twice",
    E0208 "unknown name",
    E0209 "import cannot be read",
    E0210 "private to its module",
    E0211 "part of a program that does not import it",
    E0212 "argument that fits no parameter of a module",
    E0301 "type contains itself",
    E0302 "type mismatch",
    E0303 "constant does not fit",
    E0304 "no common type",
    E0305 "type of a literal is not known",
    E0306 "assignment to something immutable",
    E0307 "`#` in a place that cannot be mutable",
    E0308 "layout is not whole bytes",
    E0309 "not a usable constant",
    E0310 "enumeration without a case for a code",
    E0311 "assertion about constants is false",
    E0401 "a constant as a pattern",
    E0402 "match is not exhaustive",
    E0403 "pattern reads what it assigns",
    E0404 "wrong number of values",
    E0405 "two readers can take the same message",
    E0406 "no process takes a message",
    E0407 "a process can only talk to itself",
    E0408 "wrong direction of an external channel",
    E0409 "a mutable value is sent",
    E0410 "alternatives that bind, or a range without values",
    E0501 "an effect in a pure function",
    E0502 "function can end without `return`",
    E0503 "read before assignment",
    E0504 "an effect in a guard",
    E0505 "`after` together with `else`",
    E0506 "statement without its context",
    E0507 "`free` where it is not asked again",
    E0508 "procedure called inside of an expression",
    E0509 "calls make the program too large",
    E0601 "`link` or `unlink` in automatic memory",
    E0602 "an object taken each time a partner is searched",
    E0701 "ambiguous statement reference",
    E0702 "unknown statement reference",
    E0703 "a statement is both exit and step",
    E0704 "statements never communicate",
    E0705 "predicate is not local and pure",
    E0707 "`yield` to a process that cannot run",
    E0708 "fast path in C says what C decides",
    E0801 "model lacks a range",
    E0802 "property says nothing",
    E0803 "cannot be abstracted",
    E0804 "not expressible in Promela",
    E0805 "times are compared where a model cannot",
    W0901 "hides an item",
    W0903 "channel without a writer or reader",
    W0904 "unguarded allocation",
    W0905 "unbounded quantum",
    W0906 "branch is never taken",
    W0907 "variable is never read",
    W0908 "arithmetic wraps before it is widened",
}

impl quaject_diagnostic::Code for Code {
    fn name(self) -> &'static str {
        Code::name(self)
    }

    /// Error or warning, by the code's letter.
    fn severity(self) -> Severity {
        if Code::name(self).starts_with('W') { Severity::Warning } else { Severity::Error }
    }
}

/// One message about a program.
pub type Diagnostic = quaject_diagnostic::Diagnostic<Code>;
