//! Identifiers of generated C: readable, taken from the source, never a word of C or of the run-time header, unique in
//! their scope. The Promela back end uses them too, because Spin translates Promela to C.

use std::collections::BTreeSet;

const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "atomic",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "class",
    "compl",
    "concept",
    "const",
    "const_cast",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "errno",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "linux",
    "long",
    "main",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unix",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "offsetof",
    "ptrdiff_t",
    "size_t",
    "NULL",
    "assert",
    "memcpy",
    "memmove",
    "memset",
    "memcmp",
    "i386",
];

/// A set of names in one C scope.
#[derive(Clone)]
pub(crate) struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    pub(crate) fn new() -> Names {
        Names { taken: RESERVED.iter().map(|name| (*name).to_string()).collect() }
    }

    /// A free name as close to the wanted one as can be, which is then taken.
    pub(crate) fn claim(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_string();
        let header = name.starts_with("esp_") || name.starts_with("ESP_") || name.ends_with("_t");
        if self.taken.contains(&name) || header || name.starts_with("__") || is_stdint(&name) {
            name.push('_');
        }
        let stem = name.clone();
        let mut number = 2;
        while self.taken.contains(&name) {
            name = format!("{stem}{number}");
            number += 1;
        }
        self.taken.insert(name.clone());
        name
    }

    /// Likewise for a process of several instances, whose frame has the name in every function that needs it: next to
    /// locals, which are letters and what ends in `_`.
    pub(crate) fn claim_frame(&mut self, wanted: &str) -> String {
        let is_local = wanted.len() == 1 || wanted.ends_with('_');
        self.claim(&if is_local { format!("{wanted}_frame_of") } else { wanted.to_string() })
    }

    /// Takes a name that generated code uses whatever the program says.
    pub(crate) fn reserve(&mut self, name: &str) {
        self.taken.insert(name.to_string());
    }
}

fn is_stdint(name: &str) -> bool {
    ["INT", "UINT", "SIZE_", "SIG_ATOMIC_", "PTRDIFF_", "WCHAR_", "WINT_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Macros that generated C defines for itself, besides those that begin with `ESP_`.
const MACROS: [&str; 8] =
    ["AWAIT_ENVIRONMENT", "FAULT_CALL", "IO", "QUAJECT_ESP_H", "READY_MASK", "REQUEUE", "SEND", "SENDER_FAULT"];

/// A member's name: members have a scope of their own, so only C's words, and macros, are in the way.
pub(crate) fn member(name: &str) -> String {
    let is_macro = MACROS.contains(&name) || name.starts_with("ESP_") || name.starts_with("QJ_");
    if RESERVED.contains(&name) || is_macro || name.starts_with("__") || is_stdint(name) {
        format!("{name}_")
    } else {
        name.to_string()
    }
}
