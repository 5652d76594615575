//! Explanations of codes: a library keeps those of its codes in one Markdown text, and tools look them up by code.

/// The explanations of a library: Markdown with a section for each code, which starts with the heading `# CODE: title`.
///
/// ```
/// use quaject_diagnostic::Explanations;
///
/// const EXPLANATIONS: Explanations = Explanations::new("# P1: one\n\nFirst.\n\n# P2: two\n\nSecond.\n");
/// assert_eq!(EXPLANATIONS.iter().map(|own| own.title).collect::<Vec<_>>(), ["one", "two"]);
/// assert_eq!(EXPLANATIONS.iter().next().map(|own| own.text), Some("# P1: one\n\nFirst.\n"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Explanations(&'static str);

/// The explanation of a code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Explanation {
    /// The code, as printed.
    pub code: &'static str,
    /// What the code is about, in a few words.
    pub title: &'static str,
    /// The whole section, with its heading, ended by one newline.
    pub text: &'static str,
}

impl Explanations {
    /// The explanations in a text.
    pub const fn new(text: &'static str) -> Explanations {
        Explanations(text)
    }

    /// All explanations, in the order of the text.
    pub fn iter(self) -> impl Iterator<Item = Explanation> {
        let text = self.0;
        let mut starts = Vec::new();
        let (mut at, mut is_in_block) = (0, false);
        for line in text.split_inclusive('\n') {
            // A line of an example may start as a heading does.
            is_in_block ^= line.starts_with("```");
            if !is_in_block && line.starts_with("# ") {
                starts.push(at);
            }
            at += line.len();
        }
        let ends: Vec<usize> = starts.iter().skip(1).copied().chain([text.len()]).collect();
        starts.into_iter().zip(ends).filter_map(move |(start, end)| {
            let section = &text[start..end];
            let (code, title) = section.strip_prefix("# ")?.lines().next()?.split_once(": ")?;
            // One of the newlines in front of the next heading ends the section.
            let length = section.trim_end().len() + 1;
            Some(Explanation { code, title, text: section.get(..length).unwrap_or(section) })
        })
    }
}
