//! Words of other languages, and what is written in ESP instead: help for users of those languages. A word is
//! recognised only in the position that it has there: elsewhere, `size` can be a variable that is not declared.

/// What to write instead of the name of a type, which may begin a declaration.
pub(crate) fn instead_of_type(word: &str) -> Option<&'static str> {
    Some(match word {
        "struct" | "class" => "a structure is a `record`, as in `record { a: int, b: bool }`",
        "enum" => "names of codes are an `enum`, as in `type color = enum { red, green };`",
        "variant" => "a choice is a `union`, as in `union { red, green, other: int }`",
        "string" | "String" | "str" => "text is `bytes[<=N]`, of at most N bytes",
        "char" | "byte" => "a byte is `u8`",
        "float" | "double" | "f32" | "f64" => "there are no floating-point numbers: count in a smaller unit",
        "long" | "short" | "unsigned" | "signed" | "usize" | "uint" | "size_t" | "uint8_t" | "uint16_t"
        | "uint32_t" | "uint64_t" | "int8_t" | "int16_t" | "int32_t" | "int64_t" | "uint8" | "uint16" | "uint32"
        | "uint64" | "int8" | "int16" | "int32" | "int64" => {
            "integers are `u8` to `u64` and `i8` to `i64`; `int` is `i32`"
        }
        "void" => "a channel that carries nothing is `channel c();`",
        _ => return None,
    })
}

/// What to write instead of a word that begins an item.
pub(crate) fn instead_of_item(word: &str) -> Option<&'static str> {
    Some(match word {
        "struct" | "class" => "a structure is a type, as in `type point = record { x: int, y: int };`",
        "enum" => "an enumeration is a type, as in `type color = enum { red, green };`",
        "typedef" | "using" => "a type gets a name with `type word = u32;`",
        "chan" => "a channel is declared with `channel c(int);`",
        "active" | "proctype" | "proc" | "task" | "thread" | "actor" | "PROC" => {
            "a process is written `process p { .. }`, and runs from the start"
        }
        "void" | "func" | "def" | "function" | "inline" | "static" => {
            "a function is written `fn f(a: int) -> int { .. }`; what has effects is a `process`"
        }
        "let" | "mut" | "auto" => "variables are declared inside a process",
        "include" | "use" | "require" => "other files are read with `import \"file.esp\";`",
        "from" => "other files are read with `import \"file.esp\" as file;`, whose items are `file.name`",
        "export" | "public" => "`pub` before an item offers it to other modules",
        "static_assert" | "_Static_assert" => "write `assert(e, \"message\");`",
        _ => return None,
    })
}

/// What to write instead of a word that begins a statement.
pub(crate) fn instead_of_statement(word: &str) -> Option<&'static str> {
    Some(match word {
        "goto" => "there is no `goto`: use `while`, `break` and `continue`",
        "go" | "spawn" | "thread" | "async" => "each `process` runs from the start; `process p[8]` is eight of them",
        "try" | "catch" | "finally" => "there are no exceptions: what may fail is tested before, with `if` or `match`",
        "throw" | "raise" | "panic" => "`assert(e);` stops the program if e is false",
        _ => return instead_of_type(word),
    })
}

/// What to write instead of the name of a value, or of a pattern.
pub(crate) fn instead_of_value(word: &str) -> Option<&'static str> {
    Some(match word {
        "null" | "NULL" | "nil" | "None" => {
            "there is no null: give a union a case for it, as in `union { some: int, none }`"
        }
        "True" | "TRUE" => "write `true`",
        "False" | "FALSE" => "write `false`",
        "default" => "`_` takes the rest",
        _ => return None,
    })
}

/// What to write instead of an operator.
pub(crate) fn instead_of_operator(word: &str) -> Option<&'static str> {
    Some(match word {
        "and" => "write `&&`",
        "or" => "write `||`",
        "not" => "write `!`",
        _ => return None,
    })
}

/// What to write instead of a word that begins a branch of an `alt`.
pub(crate) fn instead_of_branch(word: &str) -> &'static str {
    match word {
        "if" => "a guard is written `when (c) in(..) { .. }`",
        "timeout" | "sleep" | "delay" | "wait" => "a branch that waits for a while is `after (10 ms) { .. }`",
        "default" => "what happens if no branch is possible is `else { .. }`, the last branch",
        _ => {
            "a branch begins with `in`, `out`, `after` or `until`, before them may be a guard: `when (c) in(..) { .. }`"
        }
    }
}

/// Whether a word means the length of a value.
pub(crate) fn is_length(word: &str) -> bool {
    matches!(word, "len" | "length" | "size" | "count" | "strlen")
}

/// What to write instead of a call.
pub(crate) fn instead_of_call(word: &str) -> Option<&'static str> {
    Some(match word {
        "send" | "write" | "put" | "emit" => "a message is sent with `out(c, e);`",
        "recv" | "receive" | "read" | "get" => "a message is received with `in(c, $x);`, which declares `x`",
        "elif" | "elsif" | "elseif" => "write `else if (c) ..`",
        "not" => "write `!`",
        "range" => "a range is `0..4`, in a `for` and in patterns",
        "print" | "printf" | "println" | "puts" | "echo" => {
            "send it to the environment: `out(c, e);` with `channel c(int) external in;`"
        }
        "sleep" | "delay" | "usleep" => "wait with `alt { after (10 ms) { } }`",
        word if is_length(word) => "the length of `a` is `a.len`",
        "panic" => "`assert(e);` stops the program if e is false",
        _ => return None,
    })
}
