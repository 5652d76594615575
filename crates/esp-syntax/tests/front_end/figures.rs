//! The programs of the paper and of the language reference are accepted unchanged.

use quaject_esp_syntax::ast::{Item, PathRegex};
use quaject_esp_syntax::parser::{Parse, parse, parse_fast_paths};
use quaject_esp_syntax::span::FileId;

fn accept(text: &str, parse: fn(FileId, &str) -> Parse) -> Parse {
    let result = parse(FileId(0), text);
    assert_eq!(result.diagnostics(), &[], "no complaint about\n{text}");
    assert_eq!(result.tree().text().to_string(), text, "every byte is in the tree");
    result
}

#[test]
fn programs_are_accepted() {
    for text in [
        include_str!("../data/figure2.esp"),
        include_str!("../data/page_table.esp"),
        include_str!("../data/bounded_buffer.esp"),
        include_str!("../data/stop_and_wait.esp"),
    ] {
        accept(text, parse);
    }
}

#[test]
fn figure_5_is_accepted_in_a_file_of_its_own_and_together_with_figure_2() {
    let figure_5 = include_str!("../data/figure5.fp");
    accept(figure_5, parse_fast_paths);
    let both = format!("{}{figure_5}", include_str!("../data/figure2.esp"));
    let ast = accept(&both, parse).ast();
    let Some(Item::FastPath(demo)) = ast.items.last() else { panic!("the fast path is the last item") };
    let starred = demo.processes[0].follows.as_ref().expect("hostRequest has a path");
    let PathRegex::Sequence(parts) = starred else { panic!("H1 ( H2 H3 )* is a sequence, not {starred:?}") };
    assert!(matches!(&parts[..], [PathRegex::Element(_), PathRegex::Repeat(_, 0, None)]), "{parts:?}");
}
