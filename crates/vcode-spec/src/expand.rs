//! Line-level brace expansion: `{a,b}` groups of a line vary together, `<a,b>` groups vary together, the two multiply.

/// Expands one logical line into all the lines it stands for.
pub(crate) fn expand(line: &str) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for line in expand_kind(line, '{', '}')? {
        lines.extend(expand_kind(&line, '<', '>')?);
    }
    Ok(lines)
}

fn expand_kind(line: &str, open: char, close: char) -> Result<Vec<String>, String> {
    let groups = groups(line, open, close);
    let Some(first) = groups.first() else { return Ok(vec![line.to_string()]) };
    let count = first.2.len();
    if let Some(odd) = groups.iter().find(|group| group.2.len() != count) {
        return Err(format!(
            "groups in `{open}{close}` of one line must have the same number of members: {} and {}",
            count,
            odd.2.len()
        ));
    }
    let variants = (0..count).map(|index| {
        let mut text = String::new();
        let mut at = 0;
        for (start, end, members) in &groups {
            text.push_str(&line[at..*start]);
            text.push_str(&members[index]);
            at = *end;
        }
        text.push_str(&line[at..]);
        text
    });
    Ok(variants.collect())
}

/// The groups of one kind: start, end, members. Text between the brackets that has no comma, or holds the bracket
/// again, is not a group (so `i << 3` and `a < b` stay what they are).
fn groups(line: &str, open: char, close: char) -> Vec<(usize, usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = line[at..].find(open).map(|offset| at + offset) {
        at = start + 1;
        let Some(end) = line[at..].find([open, close]).map(|offset| at + offset) else { break };
        if !line[end..].starts_with(close) {
            continue;
        }
        let members = split_members(&line[at..end]);
        if members.len() > 1 {
            found.push((start, end + 1, members));
            at = end + 1;
        }
    }
    found
}

fn split_members(text: &str) -> Vec<String> {
    let mut members = vec![String::new()];
    let mut depth = 0_usize;
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if character == ',' && depth == 0 {
            members.push(String::new());
        } else if let Some(member) = members.last_mut() {
            member.push(character);
        }
    }
    members
}

#[cfg(test)]
mod tests {
    use super::expand;

    #[test]
    fn groups_of_one_kind_vary_together_and_kinds_multiply() {
        assert_eq!(expand("{a,b}.<x,y> {1,2}").unwrap(), ["a.x 1", "a.y 1", "b.x 2", "b.y 2"]);
        assert_eq!(expand("i << 3, <(s,t),u>").unwrap(), ["i << 3, (s,t)", "i << 3, u"]);
        assert!(expand("{a,b} {1,2,3}").is_err());
    }
}
