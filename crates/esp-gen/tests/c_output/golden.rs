//! Two small programs and the complete C that is generated for them, which is meant to be read. `UPDATE_EXPECT=1 cargo
//! test` rewrites the files.

use crate::support::output;
use expect_test::{ExpectFile, expect_file};
use quaject_esp_gen::c::{LineMarks, Options, Style};

fn check(source: &str, options: &Options, c: ExpectFile, header: ExpectFile) {
    let generated = output("program.esp", source, options);
    c.assert_eq(&generated.source);
    header.assert_eq(&generated.header);
}

#[test]
fn a_filter() {
    check(
        "channel i(int) external out;\nchannel o(int) external in;\nchannel c(int);\n\
         process twice {\n  while {\n    in(i, $n);\n    out(c, 2 * n);\n  }\n}\n\
         process sum {\n  var total = 0;\n  while {\n    in(c, $n);\n    total += n;\n    out(o, total);\n  }\n}\n",
        &Options::default(),
        expect_file!["../golden/filter.c"],
        expect_file!["../golden/filter.h"],
    );
}

#[test]
fn a_bounded_buffer() {
    check(
        "channel putC(int) external out;\nchannel getC(int) external in;\n\
         process buffer {\n  var q: #array of int = #[0; 4], hd = 0, tl = 0, used = 0;\n  while {\n    alt {\n      \
         when (used < 4) in(putC, q[tl]) { tl = (tl + 1) % 4; used += 1; }\n      \
         when (used > 0) out(getC, q[hd]) { hd = (hd + 1) % 4; used -= 1; }\n    }\n  }\n}\n",
        &Options { style: Style::SansIo, lines: LineMarks::None, ..Options::default() },
        expect_file!["../golden/buffer.c"],
        expect_file!["../golden/buffer.h"],
    );
}
