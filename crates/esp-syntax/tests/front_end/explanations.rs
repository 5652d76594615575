//! `qj explain`: every code has a text of the specified form, and its programs have the described diagnostics.

use crate::support::explained;
use quaject_diagnostic::{Color, human};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::diagnostics::{Code, Diagnostic, Severity};
use quaject_esp_syntax::format::format;
use quaject_esp_syntax::parser::parse;
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};

/// Codes that the lexer and parser report.
const SYNTAX: [Code; 5] = [Code::E0101, Code::E0102, Code::E0201, Code::E0202, Code::E0203];

#[test]
fn every_text_has_its_title_a_cause_and_two_programs() {
    for code in Code::ALL {
        let text = code.explanation();
        assert!(text.starts_with(&format!("# {}: {}\n\n", code.name(), code.title())), "{text}");
        assert_ne!(explained(*code, "esp fails"), explained(*code, "esp"), "{}", code.name());
        assert!(text.lines().all(|line| line.len() <= 120), "{text}");
    }
}

#[test]
fn programs_have_the_syntax_errors_they_show_and_no_others() {
    for code in Code::ALL {
        let syntax = |mark| -> Vec<Diagnostic> { parse(FileId(0), explained(*code, mark)).into_diagnostics() };
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
        let program = explained(*code, "esp");
        assert_eq!(format(&parse(FileId(0), program)).as_deref(), Ok(program), "{}", code.name());
    }
}

/// The one file that the programs of the texts can import.
struct Ring;

impl Loader for Ring {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        match path {
            "ring.esp" => Ok((path.to_string(), b"pub const SIZE = 64; const MASK = SIZE - 1;".to_vec())),
            _ => Err("no such file".to_string()),
        }
    }
}

/// All diagnostics of a program, and its formatted text.
fn complaints(program: &str) -> (Vec<Diagnostic>, String) {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("explained.esp", program));
    let diagnostics = analyze(&mut sources, root, &mut Ring).diagnostics;
    let screen = human(&sources, &diagnostics, Color::Never);
    (diagnostics, screen)
}

/// Codes reported by the verifier and the back end for Spin, which know more than the
/// analysis.
const LATER: [Code; 3] = [Code::E0802, Code::E0804, Code::E0805];

#[test]
fn variables_and_calls_of_c_do_not_size_types_but_local_constants_and_functions_do() {
    let process = |length| format!("process p {{ const N = 4; var n = 4; var a: array[{length}] of int; }}");
    let codes = |program: String| -> Vec<Code> {
        let errors = complaints(&program).0.into_iter().filter(|found| found.severity() == Severity::Error);
        errors.map(|found| found.code).collect()
    };
    assert_eq!(codes(process("N * 2")), []);
    assert_eq!(codes(process("n")), [Code::E0309]);
    assert_eq!(codes(process("f()") + "fn f() -> int { return 4; }"), []);
    assert_eq!(codes(process("f()") + "extern pure fn f() -> int;"), [Code::E0309]);
    assert_eq!(codes("type t = array[f()] of int; fn f() -> int { return 4; }".to_string()), []);
}

#[test]
fn failing_programs_fail_with_the_code_they_explain_alone() {
    for code in Code::ALL.iter().filter(|code| !LATER.contains(code)) {
        let (found, screen) = complaints(explained(*code, "esp fails"));
        assert!(found.iter().any(|found| found.code == *code), "{}:\n{screen}", code.name());
        let errors = found.iter().filter(|found| found.severity() == Severity::Error && found.code != *code);
        assert_eq!(errors.count(), 0, "{}:\n{screen}", code.name());
    }
}

#[test]
fn corrected_programs_are_accepted_without_a_word() {
    for code in Code::ALL {
        let (_, screen) = complaints(explained(*code, "esp"));
        assert!(!screen.contains("error[") && !screen.contains("warning["), "{}:\n{screen}", code.name());
    }
}
