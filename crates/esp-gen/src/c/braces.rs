//! Braces around bodies of one statement, `if (c) goto l;`, as rule 15.6 of MISRA C:2012 asks for. They are put around
//! the text of a line once it is complete, on the same line, so that the functions that write the text stay short and
//! lines keep their numbers. Knows C's statements; knows nothing of programs.

/// The line, in which each body that begins behind a head on this line, and ends on it, has braces.
pub(crate) fn with_braces(line: &str) -> String {
    let is_directive = line.starts_with('#') && !line.starts_with("#define ");
    if is_directive || !KEYWORDS.iter().any(|keyword| line.contains(keyword)) {
        return line.to_string();
    }
    let mut result = String::with_capacity(line.len() + 8);
    put_in_braces(line, &mut result);
    result
}

/// What a body can follow.
const KEYWORDS: [&str; 4] = ["if", "else", "for", "while"];

fn put_in_braces(text: &str, result: &mut String) {
    let mut at = 0;
    while at < text.len() {
        let Some(head) = head(text, at) else {
            let next = next(text, at);
            result.push_str(&text[at..next]);
            at = next;
            continue;
        };
        result.push_str(&text[at..head]);
        let is_else = text[at..].starts_with("else");
        let start = blanks(text, head);
        let body = &text[start..];
        // Blocks have braces, the `while (c);` of a `do` has no body, and `else if` is one head.
        let has_none = body.is_empty() || body.starts_with(['{', ';', '\\']) || body.starts_with("/*");
        at = head;
        if has_none || (is_else && keyword(text, start) == Some("if")) {
            continue;
        }
        if let Some(end) = statement(text, start) {
            result.push_str(" { ");
            put_in_braces(&text[start..end], result);
            result.push_str(" }");
            at = end;
        }
    }
}

/// The keyword that stands here as a word.
fn keyword(text: &str, at: usize) -> Option<&'static str> {
    let is_part = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let bytes = text.as_bytes();
    let found = KEYWORDS.iter().find(|keyword| text[at..].starts_with(**keyword))?;
    let is_word = !is_part(at.checked_sub(1).and_then(|before| bytes.get(before)));
    (is_word && !is_part(bytes.get(at + found.len()))).then_some(found)
}

/// The end of the head that stands here: a keyword, and its parentheses.
fn head(text: &str, at: usize) -> Option<usize> {
    let keyword = keyword(text, at)?;
    let behind = at + keyword.len();
    match keyword {
        "else" => Some(behind),
        _ => {
            Some(blanks(text, behind)).filter(|open| text[*open..].starts_with('(')).and_then(|open| group(text, open))
        }
    }
}

fn blanks(text: &str, at: usize) -> usize {
    text[at..].find(|c| c != ' ').map_or(text.len(), |blanks| at + blanks)
}

/// The position behind a comment, a literal or a single character.
fn next(text: &str, at: usize) -> usize {
    let rest = &text[at..];
    if rest.starts_with("/*") {
        return rest.find("*/").map_or(text.len(), |end| at + end + 2);
    }
    let mut characters = rest.char_indices();
    let first = characters.next().map_or('\0', |(_, first)| first);
    if first != '"' && first != '\'' {
        return at + first.len_utf8().min(rest.len());
    }
    while let Some((position, character)) = characters.next() {
        match character {
            '\\' => drop(characters.next()),
            _ if character == first => return at + position + 1,
            _ => {}
        }
    }
    text.len()
}

/// The position behind the bracket that closes the one that stands here.
fn group(text: &str, mut at: usize) -> Option<usize> {
    let mut open = 0u32;
    while at < text.len() {
        let end = next(text, at);
        match &text[at..end] {
            "(" | "[" | "{" => open += 1,
            ")" | "]" | "}" => {
                open = open.checked_sub(1)?;
                if open == 0 {
                    return Some(end);
                }
            }
            _ => {}
        }
        at = end;
    }
    None
}

/// The end of the statement that stands here, if it ends on this line.
fn statement(text: &str, start: usize) -> Option<usize> {
    if text[start..].starts_with('{') {
        return group(text, start);
    }
    if let Some(head) = head(text, start) {
        let end = statement(text, blanks(text, head))?;
        let behind = blanks(text, end);
        let has_else = text[start..].starts_with("if") && keyword(text, behind) == Some("else");
        return if has_else { statement(text, blanks(text, behind + "else".len())) } else { Some(end) };
    }
    let mut at = start;
    while at < text.len() {
        let end = next(text, at);
        match &text[at..end] {
            ";" => return Some(end),
            "(" | "[" | "{" => at = group(text, at)?,
            ")" | "]" | "}" => return None,
            _ => at = end,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::with_braces;

    #[test]
    fn bodies_of_one_statement_get_braces() {
        for (line, expected) in [
            ("    if (a) goto l;", "    if (a) { goto l; }"),
            ("if (a) if (b(1)) x = 2; else y;", "if (a) { if (b(1)) { x = 2; } else { y; } }"),
            ("else if (a) f(\";)\", ')');", "else if (a) { f(\";)\", ')'); }"),
            (
                "for (i = 0; i < 2u; i++) while (g(i)) h[i] = 0;",
                "for (i = 0; i < 2u; i++) { while (g(i)) { h[i] = 0; } }",
            ),
            (
                "#define R(n) do { if (polling) goto p; goto d; } while (0)",
                "#define R(n) do { if (polling) { goto p; } goto d; } while (0)",
            ),
            ("    else high = middle;", "    else { high = middle; }"),
        ] {
            assert_eq!(with_braces(line), expected);
            assert_eq!(with_braces(expected), expected);
        }
    }

    #[test]
    fn other_lines_stay_as_they_are() {
        for line in [
            "if (a) {",
            "} else {",
            "} while (again);",
            "#if defined(A) && (B)",
            "/* if (it is late) go home; */",
            "} else",
            "if (a)",
            "x = notif (1); elsewhere = 2;",
            "    do { f(); } while (0)",
            "if (a) f(1,",
        ] {
            assert_eq!(with_braces(line), line);
        }
    }
}
