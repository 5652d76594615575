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
    /// A type string: `"%i%p%d"`. Characters before the first `%` and blanks between types are ignored, as in `"%i %i"`.
    Text(&'a str),
    /// A list of types.
    Types(&'a [Type]),
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
            Signature::Text(text) => Types { text: text.as_bytes(), types: &[] },
            Signature::Types(types) => Types { text: &[], types },
        }
    }
}

/// Iterator over the types of a signature.
#[derive(Debug, Clone)]
pub struct Types<'a> {
    text: &'a [u8],
    types: &'a [Type],
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
        if self.text.is_empty() { None } else { self.unusual() }
    }
}

impl Types<'_> {
    /// What the fast path of `next` leaves: unsigned types, blanks, errors.
    #[inline(never)]
    fn unusual(&mut self) -> Option<Result<Type, Error>> {
        while let [b' ', rest @ ..] = self.text {
            self.text = rest;
        }
        let (ty, rest) = match self.text {
            [] => return None,
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
