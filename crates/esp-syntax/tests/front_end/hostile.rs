//! Bad input never panics or hangs, and every byte of it is in the tree.

use crate::support::{PIECES, PROGRAMS};
use proptest::prelude::*;
use quaject_diagnostic::{Color, human};
use quaject_esp_syntax::ast::File;
use quaject_esp_syntax::check::analyze;
use quaject_esp_syntax::parser::{Parse, parse, parse_fast_paths};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};

fn check(text: &str) -> (Parse, File) {
    parse_fast_paths(FileId(0), text);
    let result = parse(FileId(0), text);
    assert_eq!(result.tree().text().to_string(), text, "every byte is in the tree");
    for diagnostic in result.diagnostics() {
        let places = std::iter::once(diagnostic.span).chain(diagnostic.labels.iter().map(|(span, _)| *span));
        for span in places {
            assert!(text.get(span.start as usize..span.end as usize).is_some(), "{diagnostic:?} in {text:?}");
        }
        assert!(diagnostic.message.len() < 400, "{}", diagnostic.message);
    }
    let ast = result.ast();
    (result, ast)
}

#[test]
fn every_beginning_and_every_gap_of_a_program_is_survived() {
    for program in PROGRAMS {
        let ends: Vec<usize> = (0..=program.len()).filter(|end| program.is_char_boundary(*end)).collect();
        for end in &ends {
            check(&program[..*end]);
            check(&program[*end..]);
        }
        for pair in ends.windows(8).step_by(3) {
            check(&format!("{}{}", &program[..pair[0]], &program[pair[7]..]));
        }
    }
}

#[test]
fn deep_nesting_is_one_diagnostic() {
    let deep = [
        ("(", "const a = "),
        ("-", "const a = "),
        ("[", "const a = "),
        ("{", "const a = "),
        ("t |> ", "const a = "),
        ("1 ? ", "const a = "),
        ("1 ? 1 : ", "const a = "),
        ("a[", "const a = "),
        ("1 + (", "const a = "),
        ("1 + ", "const a = "),
        ("a(", "const a = "),
        ("u8(", "const a = "),
        ("a.", "const a = b."),
        ("[0]", "const a = b"),
        ("array of ", "type t = "),
        ("record { a: ", "type t = "),
        ("{", "process p "),
        ("if (1) ", "process p { "),
        ("if (1) { } else ", "process p { "),
        ("while { ", "process p { "),
        ("match a { _ => ", "process p { "),
        ("alt { in(c) { ", "process p { "),
        ("{", "process p { in(c, "),
        ("t |> ", "process p { in(c, "),
        ("[", "process p { in(c, "),
        ("(", "fastpath f { process p { statement a; start a; follows "),
        ("(a | ", "fastpath f { process p { statement a; start a; follows "),
    ];
    for (repeated, before) in deep {
        let text = format!("{before}{}", repeated.repeat(100_000));
        let (result, _) = check(&text);
        let deep =
            result.diagnostics().iter().filter(|d| d.message.contains("nested") || d.message.contains("too long"));
        assert_eq!(deep.count(), 1, "{before}{repeated}: {:?}", result.diagnostics());
        assert!(result.diagnostics().len() <= 3, "{before}{repeated}: {:?}", result.diagnostics());
    }
}

#[test]
fn huge_literals_are_survived() {
    check(&format!("const a = {};", "9".repeat(1_000_000)));
    check(&format!("const a = \"{}\";", "\\q".repeat(500_000)));
    check(&format!("const a = \"{}", "x".repeat(1_000_000)));
    check(&format!("const {} = 1;", "x".repeat(1_000_000)));
    check(&format!("/*{}", "/*".repeat(500_000)));
    check(&"\u{1f600}".repeat(200_000));
    check(&"'".repeat(200_000));
    check(&";".repeat(200_000));
}

/// Random sequences of valid tokens, without regard to the grammar.
fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(&PIECES[..]);
    prop::collection::vec((piece, prop::bool::ANY), 0..120).prop_map(|pieces| {
        pieces.into_iter().flat_map(|(piece, spaced)| [piece, if spaced { " " } else { "" }]).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        check(&text);
    }

    #[test]
    fn any_bytes_are_survived(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        check(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn token_soup_is_survived(text in soup()) {
        check(&text);
    }

    #[test]
    fn damaged_programs_are_survived(number in any::<u64>()) {
        check(&crate::support::mutation(number));
    }

    #[test]
    fn a_program_with_soup_in_it_is_survived(
        program in 0..PROGRAMS.len(), place in any::<prop::sample::Index>(), text in soup(),
    ) {
        let program = PROGRAMS[program];
        let place = place.index(program.len());
        check(&format!("{}{text}{}", &program[..place], &program[place..]));
    }
}

#[test]
fn a_program_of_mistakes_is_reported_in_part() {
    let text = format!("process p {{ {} }}", "#1 ".repeat(20_000));
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("p.esp", &text));
    let analysis = analyze(&mut sources, root, &mut crate::support::NoFiles);
    assert!(analysis.program.is_none());
    assert_eq!(analysis.diagnostics.len(), 500);
    assert!(human(&sources, &analysis.diagnostics, Color::Never).contains("E0207"));
}
