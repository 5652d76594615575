//! Diagnostics as a SARIF 2.1.0 log (OASIS), which code hosts and editors show next to the lines.

use crate::span::{SourceMap, Span};
use crate::{Code, Diagnostic, Severity};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The log of one run of the tool named `tool`, version `version`: one document, ended by a newline. Columns count
/// Unicode code points.
pub fn sarif<C: Code>(sources: &SourceMap, diagnostics: &[Diagnostic<C>], tool: &str, version: &str) -> String {
    let codes: BTreeSet<&str> = diagnostics.iter().map(|diagnostic| diagnostic.code.name()).collect();
    let rules: Vec<Value> = codes.iter().map(|code| json!({ "id": code })).collect();
    let results: Vec<Value> = diagnostics.iter().map(|diagnostic| result(sources, diagnostic)).collect();
    let log = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": tool, "version": version, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    });
    format!("{log}\n")
}

fn result<C: Code>(sources: &SourceMap, diagnostic: &Diagnostic<C>) -> Value {
    let level = match diagnostic.severity() {
        Severity::Error | Severity::Fault => "error",
        Severity::Warning => "warning",
    };
    let text = match &diagnostic.help {
        Some(help) => format!("{}\nhelp: {help}", diagnostic.message),
        None => diagnostic.message.clone(),
    };
    let related: Vec<Value> = diagnostic.labels.iter().map(|(span, label)| related(sources, *span, label)).collect();
    json!({
        "ruleId": diagnostic.code.name(),
        "level": level,
        "message": { "text": text },
        "locations": [location(sources, diagnostic.span)],
        "relatedLocations": related,
    })
}

fn related(sources: &SourceMap, span: Span, label: &str) -> Value {
    let mut location = location(sources, span);
    location["message"] = json!({ "text": label });
    location
}

fn location(sources: &SourceMap, span: Span) -> Value {
    let file = sources.file(span.file);
    let (start, end) = (file.line_column(span.start), file.line_column(span.end));
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(&file.name) },
            "region": {
                "startLine": start.line, "startColumn": start.column,
                "endLine": end.line, "endColumn": end.column,
            },
        },
    })
}

/// A file name as a URI reference: every byte that RFC 3986 does not allow in a path is escaped.
fn uri(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=@/".contains(&byte);
    name.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::SourceFile;

    #[derive(Clone, Copy)]
    struct E1;

    impl Code for E1 {
        fn name(self) -> &'static str {
            "E1"
        }

        fn severity(self) -> Severity {
            Severity::Error
        }
    }

    #[test]
    fn a_log_has_rules_results_and_related_locations() {
        let mut sources = SourceMap::default();
        let file = sources.add(SourceFile::new("a dir/é.esp", "é x\ny"));
        let diagnostic =
            Diagnostic::new(E1, Span::new(file, 3, 4), "cause").label(Span::new(file, 5, 6), "here").help("way");
        let log: Value = serde_json::from_str(&sarif(&sources, &[diagnostic], "qj", "1")).expect("JSON");
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"], json!([{ "id": "E1" }]));
        let result = &run["results"][0];
        assert_eq!(result["message"]["text"], "cause\nhelp: way");
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "a%20dir/%C3%A9.esp");
        let region = json!({ "startLine": 1, "startColumn": 3, "endLine": 1, "endColumn": 4 });
        assert_eq!(location["region"], region);
        assert_eq!(result["relatedLocations"][0]["message"]["text"], "here");
    }
}
