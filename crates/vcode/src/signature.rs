//! Signatures: the paper's type strings and typed slices. Knows no machine.

use crate::error::Error;

/// The types of the portable instruction set (the paper's Table 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Type {
    /// `signed char`.
    C,
    /// `unsigned char`.
    Uc,
    /// `short`.
    S,
    /// `unsigned short`.
    Us,
    /// `int`.
    I,
    /// `unsigned`.
    U,
    /// `long`.
    L,
    /// `unsigned long`.
    Ul,
    /// `void *`.
    P,
    /// `float`.
    F,
    /// `double`.
    D,
}

impl Type {
    /// Whether values live in floating registers.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F | Type::D)
    }

    /// Whether values have 8 or 16 bits. Registers hold them as ints.
    pub const fn is_narrow(self) -> bool {
        matches!(self, Type::C | Type::Uc | Type::S | Type::Us)
    }

    /// Size in bytes where long has `long_bits` bits.
    pub const fn bytes(self, long_bits: u32) -> u32 {
        match self {
            Type::C | Type::Uc => 1,
            Type::S | Type::Us => 2,
            Type::I | Type::U | Type::F => 4,
            Type::L | Type::Ul | Type::P => long_bits / 8,
            Type::D => 8,
        }
    }
}

/// The parameter types of a function.
#[derive(Debug, Clone, Copy)]
pub enum Signature<'a> {
    /// A type string: `"%i%p%d"`. Blanks between types are ignored, as in `"%i %i"`. In a call `...` says where the
    /// arguments begin that the prototype of a variadic function does not name: `"%p...%d"` calls `printf`.
    Text(&'a str),
    /// A list of types.
    Types(&'a [Type]),
    /// The types of the call of a variadic function.
    Variadic {
        /// Those before the `...` of its prototype.
        fixed: &'a [Type],
        /// Those of the arguments that `...` stands for. A float among them is an error: C passes a double.
        rest: &'a [Type],
    },
}

impl<'a> From<&'a str> for Signature<'a> {
    fn from(text: &'a str) -> Self {
        Signature::Text(text)
    }
}

impl<'a> From<&'a [Type]> for Signature<'a> {
    fn from(types: &'a [Type]) -> Self {
        Signature::Types(types)
    }
}

impl<'a, const N: usize> From<&'a [Type; N]> for Signature<'a> {
    fn from(types: &'a [Type; N]) -> Self {
        Signature::Types(types)
    }
}

impl<'a> Signature<'a> {
    /// The types in order, or an error where the text is malformed.
    #[inline]
    pub fn types(self) -> Types<'a> {
        match self {
            Signature::Text(text) => Types { text: text.as_bytes(), types: &[], rest: &[], is_rest: false },
            Signature::Types(types) => Types { text: &[], types, rest: &[], is_rest: false },
            Signature::Variadic { fixed, rest } => Types { text: &[], types: fixed, rest, is_rest: false },
        }
    }

    /// Whether it is the signature of a call of a variadic function.
    pub(crate) fn is_variadic(self) -> bool {
        match self {
            Signature::Text(text) => text.as_bytes().contains(&b'.'),
            Signature::Types(_) => false,
            Signature::Variadic { .. } => true,
        }
    }
}

/// The types of a type string, parsed at compile time: a `&'static [Type; N]`. A malformed string does not compile, and
/// [`Asm::begin`](crate::Asm::begin) is faster with it than with a string.
///
/// ```
/// use quaject_vcode::{Type, signature};
/// assert_eq!(signature!("%p%ul%d"), &[Type::P, Type::Ul, Type::D]);
/// ```
#[macro_export]
macro_rules! signature {
    ($text:expr) => {
        const { &$crate::__private::read::<{ $crate::__private::count($text) }>($text) }
    };
}

/// What [`signature!`] expands to.
#[doc(hidden)]
pub mod compile_time {
    use super::Type;

    /// The type that starts at `at`, and where the next one starts.
    const fn next(text: &[u8], at: usize) -> (Type, usize) {
        assert!(text[at] == b'%' && at + 1 < text.len(), "a type string is `%` and a type, again and again");
        let unsigned = text[at + 1] == b'u';
        let letter = if unsigned && at + 2 < text.len() { text[at + 2] } else { text[at + 1] };
        match (unsigned, letter) {
            (true, b'c') => (Type::Uc, at + 3),
            (true, b's') => (Type::Us, at + 3),
            (true, b'l') => (Type::Ul, at + 3),
            (true, _) => (Type::U, at + 2),
            (false, b'c') => (Type::C, at + 2),
            (false, b's') => (Type::S, at + 2),
            (false, b'i') => (Type::I, at + 2),
            (false, b'l') => (Type::L, at + 2),
            (false, b'p') => (Type::P, at + 2),
            (false, b'f') => (Type::F, at + 2),
            (false, b'd') => (Type::D, at + 2),
            (false, _) => panic!("no such type in this type string"),
        }
    }

    /// How many types `text` has.
    pub const fn count(text: &str) -> usize {
        let text = text.as_bytes();
        let (mut at, mut count) = (0, 0);
        while at < text.len() {
            if text[at] == b' ' {
                at += 1;
                continue;
            }
            at = next(text, at).1;
            count += 1;
        }
        count
    }

    /// The types of `text`.
    pub const fn read<const N: usize>(text: &str) -> [Type; N] {
        let text = text.as_bytes();
        let mut types = [Type::I; N];
        let (mut at, mut count) = (0, 0);
        while at < text.len() {
            if text[at] == b' ' {
                at += 1;
                continue;
            }
            (types[count], at) = next(text, at);
            count += 1;
        }
        types
    }
}

/// Iterator over the types of a signature.
#[derive(Debug, Clone)]
pub struct Types<'a> {
    text: &'a [u8],
    types: &'a [Type],
    /// The types after `...`, if they are in a list.
    rest: &'a [Type],
    is_rest: bool,
}

impl Iterator for Types<'_> {
    type Item = Result<Type, Error>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if let [first, rest @ ..] = self.types {
            self.types = rest;
            return Some(Ok(*first));
        }
        if let [b'%', letter, rest @ ..] = self.text {
            let ty = match letter {
                b'i' => Type::I,
                b'l' => Type::L,
                b'p' => Type::P,
                b'f' => Type::F,
                b'd' => Type::D,
                b'c' => Type::C,
                b's' => Type::S,
                _ => return self.unusual(),
            };
            self.text = rest;
            return Some(Ok(ty));
        }
        if self.text.is_empty() && self.rest.is_empty() { None } else { self.unusual() }
    }
}

impl Types<'_> {
    /// Whether the last type comes after `...`.
    #[inline]
    pub(crate) fn is_rest(&self) -> bool {
        self.is_rest
    }

    /// The cases outside of the fast path of `next`: unsigned types, blanks, `...`, errors.
    #[inline(never)]
    fn unusual(&mut self) -> Option<Result<Type, Error>> {
        if !self.rest.is_empty() {
            self.types = core::mem::take(&mut self.rest);
            self.is_rest = true;
            return self.next();
        }
        while let [b' ', rest @ ..] = self.text {
            self.text = rest;
        }
        let (ty, rest) = match self.text {
            [] => return None,
            [b'.', b'.', b'.', rest @ ..] if !self.is_rest => {
                self.text = rest;
                self.is_rest = true;
                return self.next();
            }
            [b'%', b'u', b'c', rest @ ..] => (Type::Uc, rest),
            [b'%', b'u', b's', rest @ ..] => (Type::Us, rest),
            [b'%', b'u', b'l', rest @ ..] => (Type::Ul, rest),
            [b'%', b'u', rest @ ..] => (Type::U, rest),
            [b'%', b'i' | b'l' | b'p' | b'f' | b'd' | b'c' | b's', ..] => return self.next(),
            _ => {
                self.text = &[];
                return Some(Err(Error::Signature));
            }
        };
        self.text = rest;
        Some(Ok(ty))
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::vec;
    use std::vec::Vec;

    use super::*;

    fn types(text: &str) -> Result<Vec<Type>, Error> {
        Signature::from(text).types().collect()
    }

    #[test]
    fn type_strings_are_read_as_the_paper_writes_them() {
        assert_eq!(types(""), Ok(vec![]));
        assert_eq!(types("%i"), Ok(vec![Type::I]));
        assert_eq!(types("%uc%us%ul%u%p %f%d"), {
            Ok(vec![Type::Uc, Type::Us, Type::Ul, Type::U, Type::P, Type::F, Type::D])
        });
    }

    #[test]
    fn types_read_at_compile_time_are_those_read_at_run_time() {
        assert_eq!(crate::signature!(""), &[]);
        let all = crate::signature!("%uc%us%ul%u%p %f%d%c%s%i%l%u");
        assert_eq!(types("%uc%us%ul%u%p %f%d%c%s%i%l%u").as_deref(), Ok(&all[..]));
    }

    #[test]
    fn malformed_type_strings_are_errors_and_end() {
        for text in ["i", "%", "%x", "%i,", "%i%", "%%i", "\u{e9}"] {
            assert_eq!(types(text), Err(Error::Signature), "{text}");
        }
    }

    #[test]
    fn every_two_byte_text_ends() {
        for first in 0..=127_u8 {
            for second in 0..=127_u8 {
                let bytes = [b'%', first, second];
                let text = core::str::from_utf8(&bytes).expect("ascii is text");
                assert!(Signature::from(text).types().count() <= 3);
            }
        }
    }
}
