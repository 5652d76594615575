//! Promela names: those of the source where they are free, never a word of Promela or of the C that Spin makes of it,
//! unique in their scope.

use crate::common::names::Names as CNames;

const WORDS: &[&str] = &[
    "D_proctype",
    "X",
    "U",
    "V",
    "W",
    "accept",
    "active",
    "always",
    "atomic",
    "bit",
    "byte",
    "c_code",
    "c_decl",
    "c_expr",
    "c_state",
    "c_track",
    "chan",
    "d_step",
    "empty",
    "enabled",
    "end",
    "equivalent",
    "eval",
    "eventually",
    "fi",
    "full",
    "get_p_priority",
    "hidden",
    "implies",
    "init",
    "len",
    "local",
    "ltl",
    "mtype",
    "nempty",
    "never",
    "next",
    "nfull",
    "notrace",
    "np_",
    "of",
    "od",
    "pc_value",
    "pid",
    "print",
    "printf",
    "printm",
    "priority",
    "proctype",
    "progress",
    "provided",
    "release",
    "run",
    "select",
    "set_p_priority",
    "show",
    "skip",
    "stronguntil",
    "timeout",
    "trace",
    "unless",
    "until",
    "weakuntil",
    "xr",
    "xs",
    "now",
    "trpt",
    "Q0",
    "P0",
];

/// A set of names in one scope.
#[derive(Clone)]
pub(super) struct Names {
    taken: CNames,
}

impl Names {
    pub(super) fn new() -> Names {
        let mut taken = CNames::new();
        WORDS.iter().for_each(|word| taken.reserve(word));
        Names { taken }
    }

    /// A free name as close to the wanted one as can be, which is then taken.
    pub(super) fn claim(&mut self, wanted: &str) -> String {
        // A name in capitals with a digit may be one of the macros that Spin writes; a leading `_` one of its
        // variables.
        let wanted = wanted.trim_start_matches('_');
        self.taken.claim(if wanted.is_empty() { "unnamed" } else { wanted })
    }

    /// Takes a name that generated text uses whatever the program says.
    pub(super) fn reserve(&mut self, name: &str) {
        self.taken.reserve(name);
    }
}
