//! Replacements in a text. Knows no program.

use std::ops::Range;

/// A replacement of a part of a text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Edit {
    /// First byte and one past the last.
    pub range: (u32, u32),
    /// What stands there then.
    pub text: String,
}

impl Edit {
    /// Puts a text in the place of a range.
    pub fn new(range: Range<u32>, text: impl Into<String>) -> Edit {
        Edit { range: (range.start, range.end), text: text.into() }
    }
}

/// The text with replacements, which are sorted and do not overlap.
pub(crate) fn apply(text: &str, edits: &[Edit]) -> String {
    let mut changed = String::with_capacity(text.len());
    let mut end = 0;
    for edit in edits {
        changed.push_str(&text[end..edit.range.0 as usize]);
        changed.push_str(&edit.text);
        end = edit.range.1 as usize;
    }
    changed.push_str(&text[end..]);
    changed
}

/// Where an offset of the text before is after replacements; one inside of a replaced part is at its start.
pub(crate) fn moved(offset: u32, edits: &[Edit]) -> u32 {
    let mut shift = 0i64;
    for edit in edits {
        if edit.range.1 <= offset && edit.range.0 < offset {
            shift += edit.text.len() as i64 - i64::from(edit.range.1 - edit.range.0);
        } else if edit.range.0 < offset {
            return (i64::from(edit.range.0) + shift) as u32;
        }
    }
    (i64::from(offset) + shift) as u32
}

/// Few replacements of lines that make one text of another.
pub(crate) fn difference(old: &str, new: &str) -> Vec<Edit> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (old.split_inclusive('\n').collect(), new.split_inclusive('\n').collect());
    let starts = |lines: &[&str]| {
        let mut starts = vec![0u32];
        starts.extend(lines.iter().scan(0u32, |end, line| {
            *end += line.len() as u32;
            Some(*end)
        }));
        starts
    };
    let (old_starts, new_starts) = (starts(&before), starts(&after));
    let operations = similar::capture_diff_slices(similar::Algorithm::Myers, &before, &after);
    let mut edits = Vec::new();
    for operation in operations {
        let (tag, from, to) = operation.as_tag_tuple();
        if tag != similar::DiffTag::Equal {
            let text = &new[new_starts[to.start] as usize..new_starts[to.end] as usize];
            edits.push(Edit::new(old_starts[from.start]..old_starts[from.end], text));
        }
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::{Edit, apply, difference, moved};

    #[test]
    fn differences_lead_to_the_other_text() {
        for (old, new) in [("", "a\n"), ("a\nb\nc\n", "a\nB\nc\nd\n"), ("x", "x\n"), ("a\n\n\nb\n", "a\nb\n")] {
            assert_eq!(apply(old, &difference(old, new)), new);
        }
        assert_eq!(difference("a\nb\nc\n", "a\nB\nc\n"), [Edit::new(2..4, "B\n")]);
    }

    #[test]
    fn offsets_move_with_the_text() {
        let edits = [Edit::new(2..4, "long"), Edit::new(6..6, "x")];
        assert_eq!([0, 2, 4, 6, 7].map(|offset| moved(offset, &edits)), [0, 2, 6, 8, 10]);
    }
}
