//! Dependency files: the rule of Make that says of which files an output was made, as `gcc -MD -MP` writes it. Make
//! includes them, Ninja reads them.

use crate::error::{HostCode, HostError};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// A rule whose targets depend on all prerequisites, and an empty rule for each prerequisite but the first: when an
/// imported file is removed together with its import, Make finds that rule instead of an error. A prerequisite that
/// is named twice is written once.
pub fn dependency_file(targets: &[PathBuf], prerequisites: &[PathBuf]) -> Result<Vec<u8>, HostError> {
    let mut seen = HashSet::new();
    let distinct = prerequisites.iter().filter(|path| seen.insert(*path));
    let names: Vec<Vec<u8>> = distinct.map(|path| escaped(path)).collect::<Result<_, _>>()?;
    let mut text = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        text.extend_from_slice(if index == 0 { b"" } else { b" " });
        text.extend(escaped(target)?);
    }
    text.push(b':');
    for name in &names {
        text.extend_from_slice(b" \\\n  ");
        text.extend_from_slice(name);
    }
    text.push(b'\n');
    for name in names.iter().skip(1) {
        text.push(b'\n');
        text.extend_from_slice(name);
        text.extend_from_slice(b":\n");
    }
    Ok(text)
}

/// A path as a word of a rule. Make has no escape for the end of a line.
fn escaped(path: &Path) -> Result<Vec<u8>, HostError> {
    let mut word = Vec::new();
    let mut backslashes = 0;
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'\n' | b'\r' => {
                let cause = format!("a dependency file cannot name {path:?}, which has the end of a line in it");
                return Err(HostError::usage(HostCode::Argument, cause).help("rename the file"));
            }
            // Backslashes are themselves, except in front of a blank, where Make halves them.
            b' ' | b'\t' => {
                word.extend(std::iter::repeat_n(b'\\', backslashes + 1));
            }
            b'#' | b':' => word.push(b'\\'),
            b'$' => word.push(b'$'),
            _ => {}
        }
        backslashes = if *byte == b'\\' { backslashes + 1 } else { 0 };
        word.push(*byte);
    }
    Ok(word)
}

/// The prerequisites of a rule that a C compiler has written.
pub(crate) fn prerequisites(rule: &[u8]) -> Vec<PathBuf> {
    let words = words(rule);
    let targets = words.iter().position(|word| word.ends_with(b":")).map_or(0, |last| last + 1);
    words.into_iter().skip(targets).map(|word| PathBuf::from(String::from_utf8_lossy(&word).as_ref())).collect()
}

/// The words of a rule, without escapes and continuations of lines.
fn words(rule: &[u8]) -> Vec<Vec<u8>> {
    let mut words = vec![Vec::new()];
    let mut bytes = rule.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let last = words.last_mut().expect("it starts with one");
        match (byte, bytes.peek()) {
            (b'\\', Some(b'\n')) => drop(bytes.next()),
            (b'\\', Some(b' ' | b'#' | b':')) | (b'$', Some(b'$')) => last.extend(bytes.next()),
            (b' ' | b'\n' | b'\t', _) if last.is_empty() => {}
            (b' ' | b'\n' | b'\t', _) => words.push(Vec::new()),
            _ => last.push(byte),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_rule_names_each_file_once_and_has_an_empty_rule_for_each_but_the_first() {
        let text = dependency_file(&paths(&["out/a b.c"]), &paths(&["a.esp", "b.esp", "a.esp"])).expect("plain names");
        assert_eq!(String::from_utf8_lossy(&text), "out/a\\ b.c: \\\n  a.esp \\\n  b.esp\n\nb.esp:\n");
    }

    #[test]
    fn signs_of_make_are_escaped_and_read_again() {
        let names = ["a b", "#", "$x", "c:d", "back\\slash", "end\\ of", "\\\\ two"];
        let escaped: Vec<String> = names
            .iter()
            .map(|name| String::from_utf8(escaped(Path::new(name)).expect("one line")).expect("ASCII"))
            .collect();
        let expected = ["a\\ b", "\\#", "$$x", "c\\:d", "back\\slash", "end\\\\\\ of", "\\\\\\\\\\ two"];
        assert_eq!(escaped, expected);
        let rule = dependency_file(&paths(&["t:"]), &paths(&names[..5])).expect("one line");
        let rule = rule.split(|byte| *byte == b'\n').take(6).collect::<Vec<_>>().join(&b'\n');
        assert_eq!(prerequisites(&rule), paths(&names[..5]));
        assert_eq!(prerequisites(b"main.o: main.c \\\n a\\ b.h\n"), paths(&["main.c", "a b.h"]));
        assert!(dependency_file(&paths(&["t"]), &paths(&["a\nb"])).is_err());
    }
}
