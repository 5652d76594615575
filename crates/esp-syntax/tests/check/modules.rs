//! Imports: standard modules, names of modules, what they offer.

use super::{analyze, check_imports, everything};
use expect_test::expect;
use quaject_esp_syntax::{format, parser, span::FileId, standard};

#[test]
fn standard_modules_are_formatted_and_free_of_warnings() {
    for (name, text) in standard::MODULES {
        let parsed = parser::parse(FileId(0), text);
        assert_eq!(format::format(&parsed).as_deref(), Ok(*text), "{name}");
        let (analysis, sources) = analyze(&format!("import \"std:{name}\"; process P {{ }}"), &[], &[]);
        assert_eq!(everything(&analysis, &sources), "", "{name}");
    }
    assert!(standard::MODULES.is_sorted());
}

#[test]
fn an_unknown_standard_module_has_a_way_out() {
    check_imports(
        "import \"std:checksums\"; import \"std:nothing_like_it\"; process P { }",
        expect![[r#"
            error[E0209]: cannot read `std:checksums`: no such standard module
              at 1:8 `"std:checksums"`
              help: did you mean `std:checksum`?
            error[E0209]: cannot read `std:nothing_like_it`: no such standard module
              at 1:32 `"std:nothing_like_it"`
              help: the standard modules are `checksum`
        "#]],
    );
}

/// The loader counts the files that it gave: a standard module in between does not shift its numbers.
#[test]
fn files_behind_a_standard_module_are_found() {
    check_imports(
        "import \"std:checksum\"; import \"b.esp\"; process P { out(c, i32(crc32(0, 1)) + A); }",
        expect![[r#"
        processes: InB P
    "#]],
    );
}
