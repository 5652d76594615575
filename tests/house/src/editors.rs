//! The editor files know the words of the language: no fewer, no more than the reference reserves.

use std::collections::BTreeSet;

/// The words after `Reserved:` in the language reference, `_` left out: editors treat it as a name.
pub fn reserved_words(reference: &str) -> BTreeSet<String> {
    let line = reference.lines().find_map(|line| line.strip_prefix("Reserved: `"));
    let words = line.and_then(|line| line.split_once('`')).map_or("", |(words, _)| words);
    words.split_whitespace().filter(|word| *word != "_").map(str::to_owned).collect()
}

/// The words of Vim's `syntax keyword` lines.
pub fn vim_keywords(syntax: &str) -> BTreeSet<String> {
    let lines = syntax.lines().filter_map(|line| line.strip_prefix("syntax keyword "));
    lines.flat_map(|line| line.split_whitespace().skip(1)).map(str::to_owned).collect()
}

/// The words of the patterns under `repository.reserved` of a TextMate grammar, each of the form `\b(?:a|b)\b`.
pub fn textmate_keywords(grammar: &serde_json::Value) -> BTreeSet<String> {
    let patterns = grammar["repository"]["reserved"]["patterns"].as_array();
    let matches = patterns.into_iter().flatten().filter_map(|pattern| pattern["match"].as_str());
    let lists = matches.filter_map(|text| text.strip_prefix("\\b(?:")?.strip_suffix(")\\b"));
    lists.flat_map(|list| list.split('|')).map(str::to_owned).collect()
}

/// The special functions of 'C, by their table in the translator.
pub fn special_functions(table: &str) -> Vec<String> {
    let entries = table.split("Special { name: \"").skip(1);
    entries.filter_map(|entry| Some(entry.split_once('"')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::root;

    fn text_of(path: &str) -> String {
        std::fs::read_to_string(root().join(path)).expect("the file is part of the repository")
    }

    fn json_of(path: &str) -> serde_json::Value {
        serde_json::from_str(&text_of(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    #[test]
    fn both_editors_know_the_reserved_words() {
        let reserved = reserved_words(&text_of("docs/book/src/reference.md"));
        assert!(reserved.contains("process"), "the reference lists its reserved words");
        assert_eq!(vim_keywords(&text_of("editors/vim/syntax/esp.vim")), reserved);
        assert_eq!(textmate_keywords(&json_of("editors/vscode/syntaxes/esp.tmLanguage.json")), reserved);
    }

    #[test]
    fn the_extension_names_files_that_exist() {
        let manifest = json_of("editors/vscode/package.json");
        let contributes = &manifest["contributes"];
        for (list, key) in [("languages", "configuration"), ("grammars", "path")] {
            let entries = contributes[list].as_array().expect("a list");
            assert_eq!(entries.len(), 2, "ESP and 'C");
            for entry in entries {
                json_of(&format!("editors/vscode/{}", entry[key].as_str().expect("a path")));
            }
        }
    }

    #[test]
    fn both_editors_know_the_special_functions() {
        let functions = special_functions(&text_of("crates/tickc/src/special.rs"));
        assert!(functions.len() > 5 && functions[0] == "compile", "the translator has a table");
        let vim = text_of("editors/vim/syntax/tickc.vim");
        assert!(vim.contains(&format!(r"\<\({}\)\ze", functions.join(r"\|"))), "{functions:?}");
        let grammar = text_of("editors/vscode/syntaxes/tickc.tmLanguage.json");
        assert!(grammar.contains(&format!(r"\\b(?:{})\\b", functions.join("|"))), "{functions:?}");
        assert_eq!(special_functions("[Special { name: \"a\", x }, Special { name: \"b\" }]"), ["a", "b"]);
    }

    #[test]
    fn word_lists_are_found() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>();
        assert_eq!(reserved_words("x\nReserved: `alt in _`. More"), words(&["alt", "in"]));
        assert_eq!(vim_keywords("syntax keyword espControl alt in\nsyntax match x /y/"), words(&["alt", "in"]));
        let grammar = serde_json::json!({"repository": {"reserved": {"patterns": [{"match": "\\b(?:alt|in)\\b"}]}}});
        assert_eq!(textmate_keywords(&grammar), words(&["alt", "in"]));
    }
}
