//! `qj explain`: every code has a text of the promised form, and its programs do what it says.

use quaject_esp_syntax::diagnostics::{Code, Diagnostic};
use quaject_esp_syntax::format::format;
use quaject_esp_syntax::parser::parse;
use quaject_esp_syntax::span::FileId;

/// The code block with this mark.
fn block(code: Code, mark: &str) -> &'static str {
    let text = code.explanation();
    let (_, rest) =
        text.split_once(&format!("```{mark}\n")).unwrap_or_else(|| panic!("{} has a `{mark}`", code.name()));
    rest.split_once("```").expect("a code block is closed").0
}

/// Codes that the lexer and parser report.
const SYNTAX: [Code; 5] = [Code::E0101, Code::E0102, Code::E0201, Code::E0202, Code::E0203];

#[test]
fn every_text_has_its_title_a_cause_and_two_programs() {
    for code in Code::ALL {
        let text = code.explanation();
        assert!(text.starts_with(&format!("# {}: {}\n\n", code.name(), code.title())), "{text}");
        assert_ne!(block(*code, "esp fails"), block(*code, "esp"), "{}", code.name());
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    }
}

#[test]
fn programs_have_the_syntax_errors_they_show_and_no_others() {
    for code in Code::ALL {
        let syntax = |mark| -> Vec<Diagnostic> { parse(FileId(0), block(*code, mark)).into_diagnostics() };
        assert_eq!(syntax("esp"), [], "{}", code.name());
        let failing = syntax("esp fails");
        if SYNTAX.contains(code) {
            assert!(!failing.is_empty() && failing.iter().all(|found| found.code == *code), "{failing:?}");
        } else {
            assert!(failing.iter().all(|found| found.code == *code), "{failing:?}");
        }
    }
}

#[test]
fn corrected_programs_are_laid_out_as_fmt_does() {
    for code in Code::ALL {
        let program = block(*code, "esp");
        assert_eq!(format(&parse(FileId(0), program)).as_deref(), Ok(program), "{}", code.name());
    }
}
