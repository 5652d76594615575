//! Diagnostics as a SARIF 2.1.0 log (OASIS), which code hosts and editors show next to the lines.

use crate::span::{SourceMap, Span};
use crate::{Code, Diagnostic, Message, Severity};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The log of one run of a tool, to which diagnostics and messages are added in order. Columns count Unicode code
/// points.
#[derive(Clone, Default, Debug)]
pub struct SarifLog {
    codes: BTreeSet<&'static str>,
    results: Vec<Value>,
}

impl SarifLog {
    /// Adds diagnostics about texts.
    pub fn add<C: Code>(&mut self, sources: &SourceMap, diagnostics: &[Diagnostic<C>]) {
        for diagnostic in diagnostics {
            let help = diagnostic.help.as_deref();
            let mut result =
                self.result(diagnostic.severity(), Some(diagnostic.code.name()), &diagnostic.message, help);
            let related: Vec<Value> =
                diagnostic.labels.iter().map(|(span, label)| related(sources, *span, label)).collect();
            result["locations"] = json!([location(sources, diagnostic.span)]);
            result["relatedLocations"] = related.into();
            self.results.push(result);
        }
    }

    /// Adds a message without a location.
    pub fn add_message(&mut self, message: &Message) {
        let result = self.result(message.severity, message.code, &message.text, message.help.as_deref());
        self.results.push(result);
    }

    /// The log as one document, ended by a newline, of the tool named `tool`, version `version`.
    pub fn document(&self, tool: &str, version: &str) -> String {
        let rules: Vec<Value> = self.codes.iter().map(|code| json!({ "id": code })).collect();
        let log = json!({
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [{
                "tool": { "driver": { "name": tool, "version": version, "rules": rules } },
                "columnKind": "unicodeCodePoints",
                "results": self.results,
            }],
        });
        format!("{log}\n")
    }

    /// A result without locations.
    fn result(&mut self, severity: Severity, code: Option<&'static str>, text: &str, help: Option<&str>) -> Value {
        let level = match severity {
            Severity::Error | Severity::Fault => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let text = help.map_or_else(|| text.to_string(), |help| format!("{text}\nhelp: {help}"));
        let mut result = json!({ "level": level, "message": { "text": text } });
        if let Some(code) = code {
            self.codes.insert(code);
            result["ruleId"] = code.into();
        }
        result
    }
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
        let mut log = SarifLog::default();
        log.add(&sources, &[diagnostic]);
        log.add_message(&Message::new(Severity::Note, "done"));
        let log: Value = serde_json::from_str(&log.document("qj", "1")).expect("JSON");
        let run = &log["runs"][0];
        assert_eq!(run["tool"]["driver"]["rules"], json!([{ "id": "E1" }]));
        let result = &run["results"][0];
        assert_eq!(result["message"]["text"], "cause\nhelp: way");
        let location = &result["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"]["uri"], "a%20dir/%C3%A9.esp");
        let region = json!({ "startLine": 1, "startColumn": 3, "endLine": 1, "endColumn": 4 });
        assert_eq!(location["region"], region);
        assert_eq!(result["relatedLocations"][0]["message"]["text"], "here");
        assert_eq!(run["results"][1], json!({ "level": "note", "message": { "text": "done" } }));
    }
}
