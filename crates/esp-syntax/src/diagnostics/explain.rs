//! What `qj explain CODE` says: for each code the cause, the smallest program that shows it, and a corrected one.
//! The texts are Markdown, one file per code; tests check that the programs do what they are said to do.

use super::Code;
use quaject_diagnostic::Explanation;

macro_rules! explanations {
    ($($code:ident)*) => {
        impl Code {
            /// The explanation: Markdown, with a failing program in a block marked `esp fails` and a corrected one in
            /// a block marked `esp`.
            pub fn explanation(self) -> &'static str {
                match self { $(Code::$code => include_str!(concat!("explain/", stringify!($code), ".md")),)* }
            }
        }
    };
}

explanations! {
    E0101 E0102 E0201 E0202 E0203 E0204 E0205 E0206 E0207 E0208
    E0209 E0210 E0211 E0212 E0301 E0302 E0303 E0304 E0305 E0306 E0307 E0308 E0309
    E0310 E0311
    E0401 E0402 E0403 E0404 E0405 E0406 E0407 E0408 E0409 E0410 E0501
    E0502 E0503 E0504 E0505 E0506 E0507 E0508 E0509 E0601 E0602 E0701 E0702
    E0703 E0704 E0705 E0707 E0708
    E0801 E0802 E0803 E0804 E0805 W0901 W0903 W0904 W0905
    W0906 W0907 W0908
}

impl Code {
    /// The code with this name, in small or capital letters.
    ///
    /// ```
    /// use quaject_esp_syntax::diagnostics::Code;
    /// assert_eq!(Code::from_name("e0405"), Some(Code::E0405));
    /// assert_eq!(Code::from_name("E9999"), None);
    /// ```
    pub fn from_name(name: &str) -> Option<Code> {
        Code::ALL.iter().copied().find(|code| code.name().eq_ignore_ascii_case(name))
    }
}

/// The explanation of each code, ascending.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    Code::ALL.iter().map(|code| Explanation { code: code.name(), title: code.title(), text: code.explanation() })
}
