//! Reads the messages of C compilers, so that they can be shown as those of the translator are.

use crate::diagnostics::Code;

/// An error or warning of a C compiler.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompilerMessage {
    /// The file, as the line markers of the translation name it.
    pub file: String,
    /// The line, from one.
    pub line: u32,
    /// The column in the text that was compiled, in bytes from one.
    pub column: Option<u32>,
    /// [`Code::CompilerError`] or [`Code::CompilerWarning`].
    pub code: Code,
    /// What is wrong.
    pub text: String,
}

const KINDS: &[(&str, Code)] = &[
    (": fatal error: ", Code::CompilerError),
    (": error: ", Code::CompilerError),
    (": warning: ", Code::CompilerWarning),
];

/// The errors and warnings in what GCC or Clang prints, each once: a tick repeats its operands, and with them their
/// errors. Notes and excerpts are left out.
pub fn compiler_messages(output: &str) -> Vec<CompilerMessage> {
    let mut found: Vec<CompilerMessage> = Vec::new();
    for message in output.lines().filter_map(read_line) {
        let is_repeated = found.iter().any(|own| {
            (&own.file, own.line, own.code, &own.text) == (&message.file, message.line, message.code, &message.text)
        });
        if !is_repeated {
            found.push(message);
        }
    }
    found
}

fn read_line(line: &str) -> Option<CompilerMessage> {
    let (at, kind, code) = KINDS.iter().find_map(|(kind, code)| Some((line.find(kind)?, kind, *code)))?;
    let mut place = line[..at].rsplitn(3, ':');
    let (last, before, rest) = (place.next()?, place.next(), place.next());
    let text = assertion(&line[at + kind.len()..]).to_owned();
    let number = |text: &str| text.parse::<u32>().ok();
    match (before.and_then(number), rest) {
        (Some(line), Some(file)) => {
            Some(CompilerMessage { file: file.to_owned(), line, column: number(last), code, text })
        }
        _ => {
            let file = line[..at].rsplit_once(':')?.0.to_owned();
            Some(CompilerMessage { file, line: number(last)?, column: None, code, text })
        }
    }
}

/// The text of a failed static assertion, by which the header says what a type lacks; or the whole message.
fn assertion(text: &str) -> &str {
    let is_assertion = text.starts_with("static assertion failed") || text.starts_with("static_assert failed");
    match (text.find('"'), text.rfind('"')) {
        (Some(from), Some(to)) if is_assertion && from < to => &text[from + 1..to],
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_both_compilers_are_read_once() {
        let output = "In file included from x.h:1:\n\
                      a b.tc:3:14: error: invalid operands to binary * (have 'int *' and 'int')\n    3 |   x * 2;\n\
                      a b.tc:3:9: error: invalid operands to binary * (have 'int *' and 'int')\n\
                      x.tc:7: warning: unused [-Wunused]\n\
                      x.tc:8:1: note: declared here\n\
                      x.tc:9:2: error: static assertion failed: \"no `$` here\"\n\
                      x.tc:9:2: error: static_assert failed due to requirement '0' \"no @ here\"\n\
                      x.tc:1:10: fatal error: none.h: No such file or directory\n\
                      cc: error: unrecognized option\n";
        let read = compiler_messages(output);
        let shown: Vec<String> = read
            .iter()
            .map(|own| format!("{}:{}:{:?} {:?} {}", own.file, own.line, own.column, own.code, own.text))
            .collect();
        assert_eq!(
            shown,
            [
                "a b.tc:3:Some(14) CompilerError invalid operands to binary * (have 'int *' and 'int')",
                "x.tc:7:None CompilerWarning unused [-Wunused]",
                "x.tc:9:Some(2) CompilerError no `$` here",
                "x.tc:9:Some(2) CompilerError no @ here",
                "x.tc:1:Some(10) CompilerError none.h: No such file or directory",
            ]
        );
    }
}
