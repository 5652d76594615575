//! The text form of a pipe: steps between bars, as in `copy | checksum | swap32`.

use crate::error::{TextCode, TextDiagnostic};
use crate::ir::UserStep;
use crate::step::{Key, Step};
use quaject_diagnostic::span::Span;
use quaject_diagnostic::{Diagnostic, nearest};

/// The steps by name, except `xor`, which has a key.
const STEPS: [(&str, Step); 7] = [
    ("copy", Step::Copy),
    ("checksum", Step::Checksum),
    ("crc32c", Step::Crc32c),
    ("swap16", Step::Swap16),
    ("swap32", Step::Swap32),
    ("swap64", Step::Swap64),
    ("count", Step::Count),
];

/// Whether a step of this name is built in.
pub(crate) fn is_built_in(name: &str) -> bool {
    name == "xor" || STEPS.iter().any(|(own, _)| *own == name)
}

/// Reads a pipe. `steps` are the user's steps, referenced by their names. A malformed step is omitted and reported.
///
/// ```
/// use quaject_pipe::{Key, Step, read_pipe};
///
/// let (steps, diagnostics) = read_pipe("copy | checksum | xor 0xa5", &[]);
/// assert_eq!(steps, [Step::Copy, Step::Checksum, Step::Xor(Key::repeat(&[0xa5])?)]);
/// assert!(diagnostics.is_empty());
/// let text = "copy | chekcsum";
/// let (_, diagnostics) = read_pipe(text, &[]);
/// assert_eq!(diagnostics[0].located_message(text), "line 1, column 8: no step `chekcsum`");
/// assert_eq!(diagnostics[0].help.as_deref(), Some("did you mean `checksum`?"));
/// # Ok::<(), quaject_pipe::Error>(())
/// ```
pub fn read_pipe(text: &str, steps: &[UserStep]) -> (Vec<Step>, Vec<TextDiagnostic>) {
    let (mut found, mut diagnostics) = (Vec::new(), Vec::new());
    for part in text.split('|') {
        // The location of an empty part is after its blanks.
        let start = part.trim_start();
        match read_step(part.trim(), steps) {
            Ok(step) => found.push(step),
            Err((message, help)) => {
                let span = Span::of_slice(text, start.trim_end());
                diagnostics.push(Diagnostic::new(TextCode::Pipe, span, message).help(help));
            }
        }
    }
    (found, diagnostics)
}

/// A step, or a message and a help text.
fn read_step(text: &str, users: &[UserStep]) -> Result<Step, (String, String)> {
    let mut words = text.split_whitespace();
    let Some(name) = words.next() else {
        return Err(("nothing between two bars".into(), "write a step, or remove a bar".into()));
    };
    let argument = words.next();
    if let Some(more) = words.next() {
        return Err((format!("unexpected `{more}`"), "put a bar between steps".into()));
    }
    if name == "xor" {
        return xor(argument);
    }
    let built_in = STEPS.iter().find(|(own, _)| *own == name).map(|(_, step)| step.clone());
    let user = || users.iter().find(|step| step.name() == name).map(|step| Step::User(step.clone()));
    match (built_in.or_else(user), argument) {
        (Some(step), None) => Ok(step),
        (Some(_), Some(argument)) => {
            Err((format!("`{name}` takes no argument; found `{argument}`"), "put a bar between steps".into()))
        }
        (None, _) => {
            let names = STEPS.iter().map(|(own, _)| *own).chain(["xor"]).chain(users.iter().map(UserStep::name));
            let extended = || names.clone().find(|own| own.starts_with(name));
            let help = match nearest(name, names.clone()).or_else(extended) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("there are {}", names.collect::<Vec<_>>().join(", ")),
            };
            Err((format!("no step `{name}`"), help))
        }
    }
}

fn xor(argument: Option<&str>) -> Result<Step, (String, String)> {
    let help = "write 1, 2, 4 or 8 bytes as `xor 0xa5` or `xor 0x01020304`, or `xor stream` for a key stream";
    let Some(argument) = argument else { return Err(("`xor` without a key".into(), help.into())) };
    if argument == "stream" {
        return Ok(Step::Xor(Key::Stream));
    }
    let no_key = || (format!("`{argument}` is not a key"), help.to_string());
    let digits = argument.strip_prefix("0x").filter(|digits| digits.is_ascii() && digits.len() % 2 == 0);
    let digits = digits.ok_or_else(no_key)?;
    let byte = |at: usize| digits.get(at..at + 2).filter(|two| !two.starts_with('+'));
    let bytes: Option<Vec<u8>> =
        (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(byte(at)?, 16).ok()).collect();
    let key = Key::repeat(&bytes.ok_or_else(no_key)?);
    key.map(Step::Xor).map_err(|error| (error.to_string(), help.to_string()))
}
