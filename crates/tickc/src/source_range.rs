//! Finds in a line of a source file what a range of the same line means after the preprocessor.

use crate::lex::lex;
use std::ops::Range;

/// The bytes of a line of a source file that correspond to bytes of the preprocessed line: by the tokens in front of
/// them, which the preprocessor keeps unless there are macros, or else by their texts. The whole line without its
/// margins if neither finds them.
pub fn source_range(preprocessed: &str, range: Range<usize>, source: &str) -> Range<usize> {
    let whole = source.len() - source.trim_start().len()..source.trim_end().len();
    let whole = if whole.start < whole.end { whole } else { 0..source.len() };
    let (from, to) = (tokens(preprocessed), tokens(source));
    let Some(first) = from.iter().position(|(place, _)| place.end > range.start) else { return whole };
    let last = from.iter().rposition(|(place, _)| place.start < range.end).unwrap_or(first).max(first);
    let texts = |list: &[(Range<usize>, &str)]| list.iter().map(|(_, text)| (*text).to_owned()).collect::<Vec<_>>();
    let is_prefix = to.len() > last && texts(&from[..=last]) == texts(&to[..=last]);
    let found = if is_prefix { Some(first) } else { occurrence(&from, first, &to) };
    let Some(start) = found else { return whole };
    let end = start + (last - first);
    let has_end = to.len() > end && texts(&from[first..=last]) == texts(&to[start..=end]);
    to[start].0.start..to[if has_end { end } else { start }].0.end
}

/// The token of `to` with the text of a token of `from`, if both lines have it as often.
fn occurrence(from: &[(Range<usize>, &str)], wanted: usize, to: &[(Range<usize>, &str)]) -> Option<usize> {
    let text = from[wanted].1;
    let places = |list: &[(Range<usize>, &str)]| -> Vec<usize> {
        (0..list.len()).filter(|index| list[*index].1 == text).collect()
    };
    let (from, to) = (places(from), places(to));
    let number = from.iter().position(|index| *index == wanted)?;
    (from.len() == to.len()).then(|| to[number])
}

/// The tokens of a line. A directive is none.
fn tokens(line: &str) -> Vec<(Range<usize>, &str)> {
    let range = |start: u32, end: u32| start as usize..end as usize;
    lex(line).0.iter().map(|own| (range(own.start, own.end), &line[range(own.start, own.end)])).collect()
}

#[cfg(test)]
mod tests {
    use super::source_range;

    /// What is found for the first place of a text in a preprocessed line.
    fn found<'s>(preprocessed: &str, part: &str, source: &'s str) -> &'s str {
        let start = preprocessed.find(part).expect("the part is in the line");
        &source[source_range(preprocessed, start..start + part.len(), source)]
    }

    #[test]
    fn ranges_are_found_behind_blanks_comments_and_macros() {
        assert_eq!(found(" return `(x + $i);", "$i", "\treturn   `(x + /* $i */ $i); // $i"), "$i");
        assert_eq!(found("f(1 + 2, $i);", "$i", "f(SUM, $i);"), "$i");
        assert_eq!(found("f(1 + 2, $i);", "+ 2", "f(SUM, $i);"), "f(SUM, $i);");
        assert_eq!(found("g(a, a);", "a);", "g(a, a );"), "a );");
        assert_eq!(found("", "", "  x;  "), "x;");
        assert_eq!(found("x", "x", ""), "");
    }
}
