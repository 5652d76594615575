//! The standard modules, which programs import as `"std:NAME"`. They are part of the compiler: no file is read.

/// What the path of a standard module begins with.
pub const PREFIX: &str = "std:";

/// Name and text of each module, in alphabetical order.
pub const MODULES: &[(&str, &str)] = &[
    ("checksum", include_str!("../std/checksum.esp")),
    ("fixed", include_str!("../std/fixed.esp")),
    ("format", include_str!("../std/format.esp")),
];

/// The text of the module with this name, which has no prefix.
pub fn text(name: &str) -> Option<&'static str> {
    MODULES.iter().find(|(module, _)| *module == name).map(|(_, text)| *text)
}
