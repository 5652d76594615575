//! Paths as texts with `/`. Knows no file system.

/// A path without `.` and `x/..`, so that a file has one name on every import path.
pub(crate) fn normal(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            "" if !parts.is_empty() => {}
            ".." if matches!(parts.last(), Some(&last) if last != ".." && !last.is_empty()) => drop(parts.pop()),
            ".." if parts.last() == Some(&"") => {}
            _ => parts.push(part),
        }
    }
    if parts == [""] { "/".to_string() } else { parts.join("/") }
}

/// A path relative to the folder of a file.
pub(crate) fn relative_to(file: &str, path: &str) -> String {
    match file.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') => normal(&format!("{folder}/{path}")),
        _ => normal(path),
    }
}

#[cfg(test)]
mod tests {
    use super::{normal, relative_to};

    #[test]
    fn a_file_has_one_name() {
        for (written, name) in [
            ("/a/./b.esp", "/a/b.esp"),
            ("/a/../b.esp", "/b.esp"),
            ("/../a.esp", "/a.esp"),
            ("../a", "../a"),
            ("a//b", "a/b"),
        ] {
            assert_eq!(normal(written), name, "{written}");
        }
        assert_eq!(relative_to("/p/main.esp", "../lib/ring.esp"), "/lib/ring.esp");
    }
}
