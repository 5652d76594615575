//! Reads the fenced blocks of a Markdown file and knows what each promises. Runs nothing.

/// A fenced block.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// Number of the opening fence's line, from 1.
    pub(crate) line: usize,
    pub(crate) promise: Promise,
    /// The lines between the fences.
    pub(crate) body: Vec<String>,
}

/// What a block's info string says about its body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Promise {
    /// `esp`: passes `qj check`. `esp,fails=CODE`: `qj check` reports that code. `esp,run`: does what the `input` and
    /// `output` blocks behind it say. With `file=NAME` later commands of the chapter find it under that name.
    Program { outcome: Outcome, file: Option<String> },
    /// `input`: standard input of the program before it.
    Input,
    /// `output`: standard output of the program before it.
    Output,
    /// `sh`: each line that starts with `$ ` is run, the lines behind it are what it prints. With `needs=TOOL` it is
    /// skipped where the tool is missing.
    Session { needs: Option<String> },
    /// `c,file=NAME`, `toml,file=NAME` and the like: a file that later commands of the chapter find.
    File { name: String },
    /// `text`, `rust`, ...: prose in a box.
    Prose,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Checks,
    Fails(String),
    Runs,
}

/// Languages of which the book shows excerpts that no test can hold.
const PROSE: &[&str] = &["text", "rust", "c", "json", "ebnf"];

/// The blocks of a document in order, or the number of the line that promises something impossible.
pub(crate) fn blocks(markdown: &str) -> Result<Vec<Block>, (usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (index, line) in markdown.lines().enumerate() {
        let number = index + 1;
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => {
                let promise = promise(info).map_err(|reason| (number, reason))?;
                open = Some(Block { line: number, promise, body: Vec::new() });
            }
            (Some(_), Some("")) => blocks.extend(open.take()),
            (Some(block), _) => block.body.push(line.to_owned()),
            (None, None) if line.trim_start().starts_with("```") => {
                return Err((number, "a fence inside a list is not tested; start it in the first column".into()));
            }
            (None, None) => {}
        }
    }
    match open {
        Some(block) => Err((block.line, "the block is never closed".into())),
        None => Ok(blocks),
    }
}

fn promise(info: &str) -> Result<Promise, String> {
    let mut words = info.split(',');
    let language = words.next().expect("split gives at least one part");
    let mut fails = None;
    let mut file = None;
    let mut needs = None;
    let mut runs = false;
    for word in words {
        match word.split_once('=') {
            Some(("fails", code)) => fails = Some(code.to_owned()),
            Some(("file", name)) => file = Some(name.to_owned()),
            Some(("needs", tool)) => needs = Some(tool.to_owned()),
            None if word == "run" => runs = true,
            _ => return Err(format!("`{word}` promises nothing this test knows")),
        }
    }
    match (language, fails, file, needs, runs) {
        ("esp", None, file, None, false) => Ok(Promise::Program { outcome: Outcome::Checks, file }),
        ("esp", None, file, None, true) => Ok(Promise::Program { outcome: Outcome::Runs, file }),
        ("esp", Some(code), file, None, false) => Ok(Promise::Program { outcome: Outcome::Fails(code), file }),
        ("input", None, None, None, false) => Ok(Promise::Input),
        ("output", None, None, None, false) => Ok(Promise::Output),
        ("sh", None, None, needs, false) => Ok(Promise::Session { needs }),
        (_, None, Some(name), None, false) => Ok(Promise::File { name }),
        (language, None, None, None, false) if PROSE.contains(&language) => Ok(Promise::Prose),
        _ => Err(format!("`{info}` promises nothing this test knows")),
    }
}

/// One command of a session and what it prints.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) command: String,
    pub(crate) expected: Vec<String>,
}

/// The commands of an `sh` block.
pub(crate) fn steps(body: &[String]) -> Result<Vec<Step>, String> {
    let mut steps: Vec<Step> = Vec::new();
    for line in body {
        match (line.strip_prefix("$ "), steps.last_mut()) {
            (Some(command), _) => steps.push(Step { command: command.to_owned(), expected: Vec::new() }),
            (None, Some(step)) => step.expected.push(line.clone()),
            (None, None) => return Err(format!("`{line}` stands before the first `$ ` of its block")),
        }
    }
    Ok(steps)
}

/// Lines that start with this are context: `qj` sees them, the rendered book hides them.
const HIDDEN: char = '~';

/// The program a block stands for: hidden lines lose their mark.
pub(crate) fn program(body: &[String]) -> String {
    body.iter().map(|line| format!("{}\n", line.strip_prefix(HIDDEN).unwrap_or(line))).collect()
}

/// Whether `actual` is what `expected` describes; a line `...` stands for any number of lines.
pub(crate) fn matches(expected: &[String], actual: &[String]) -> bool {
    match expected.split_first() {
        None => actual.is_empty(),
        Some((dots, rest)) if dots == "..." => (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..])),
        Some((line, rest)) => actual.first() == Some(line) && matches(rest, &actual[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn blocks_carry_their_promises() {
        let read = blocks("# A\n```esp,run,file=a.esp\n~x\ny\n```\n```output\n1\n```\n").expect("well formed");
        let file = Some("a.esp".to_owned());
        assert_eq!(read[0].line, 2);
        assert_eq!(read[0].promise, Promise::Program { outcome: Outcome::Runs, file });
        assert_eq!(program(&read[0].body), "x\ny\n");
        assert_eq!(read[1].promise, Promise::Output);
    }

    #[test]
    fn unknown_promises_are_refused() {
        for text in ["```\nx\n```", "```esp,rum\n```", "```sh,run\n```", "```esp\n", " ```esp\n```", "```bash\n```"] {
            assert!(blocks(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_session_is_commands_and_what_they_print() {
        let steps = steps(&lines("$ a | b\n1\n$ c")).expect("well formed");
        assert_eq!(steps[0], Step { command: "a | b".into(), expected: vec!["1".into()] });
        assert_eq!(steps[1], Step { command: "c".into(), expected: vec![] });
        assert!(super::steps(&lines("1\n$ a")).is_err());
    }

    #[test]
    fn dots_stand_for_any_lines() {
        assert!(matches(&lines("a\n...\nd"), &lines("a\nb\nc\nd")));
        assert!(matches(&lines("a\n..."), &lines("a")));
        assert!(!matches(&lines("a\n...\nd"), &lines("a\nb")));
        assert!(!matches(&lines("a"), &lines("a\nb")));
    }
}
