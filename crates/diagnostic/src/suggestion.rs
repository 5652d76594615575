//! "Did you mean": the nearest name by edit distance. Knows nothing of the items of the names.

use std::cmp::Reverse;

/// The Damerau-Levenshtein distance of two names (optimal string alignment), in halves: a change of case counts one
/// half. None beyond `limit` (in halves).
fn distance(left: &str, right: &str, limit: usize) -> Option<usize> {
    let (a, b) = (left.as_bytes(), right.as_bytes());
    if a.len().abs_diff(b.len()) * 2 > limit {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut previous: Vec<usize> = (0..=b.len()).map(|column| column * 2).collect();
    for i in 0..a.len() {
        let mut row = vec![(i + 1) * 2];
        for j in 0..b.len() {
            let replace = match (a[i] == b[j], a[i].eq_ignore_ascii_case(&b[j])) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => 2,
            };
            let mut best = (previous[j] + replace).min(previous[j + 1] + 2).min(row[j] + 2);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(before[j - 1] + 2);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut previous, row);
    }
    Some(previous[b.len()]).filter(|distance| *distance <= limit)
}

/// The candidate nearest to `wanted`, if one is near: a third of its length, or the case of one letter.
pub fn nearest<'n>(wanted: &str, candidates: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if wanted.is_empty() || wanted.len() > 64 {
        return None;
    }
    // Of one or two letters, only the case may differ: anything else is as near as everything.
    let limit = (wanted.len() / 3 * 2).max(1);
    candidates
        .filter(|candidate| !candidate.is_empty() && *candidate != wanted)
        .filter_map(|candidate| {
            // Of names equally near, the one that begins alike.
            let alike = wanted.bytes().zip(candidate.bytes()).take_while(|(a, b)| a == b).count();
            distance(wanted, candidate, limit).map(|distance| (distance, Reverse(alike), candidate))
        })
        .min()
        .map(|(_, _, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn nearest_name() {
        let names = ["reqC", "replyC", "putC", "x", "free", "freeze"];
        for (wanted, expected) in [
            ("reqc", Some("reqC")),
            ("rpelyC", Some("replyC")),
            ("getC", None),
            ("freez", Some("freeze")),
            ("fre", Some("free")),
            ("pu", None),
            ("y", None),
            ("X", Some("x")),
        ] {
            assert_eq!(nearest(wanted, names.into_iter()), expected, "{wanted}");
        }
    }
}
