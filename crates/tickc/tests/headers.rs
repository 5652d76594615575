//! Static code passes unchanged: every header of the system, after the preprocessor, and constructs of C23 and GNU C.

use quaject_test_support::{Effort, tool};
use quaject_tickc::translate;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

fn assert_unchanged(name: &str, text: &str) {
    let translation = translate(text);
    let messages: Vec<String> = translation.diagnostics.iter().map(|own| own.located_message(text)).collect();
    assert!(messages.is_empty(), "{name}: {messages:#?}");
    let differs = || {
        let at = text.bytes().zip(translation.text.bytes()).take_while(|(one, other)| one == other).count();
        text.get(at.saturating_sub(80)..).map(|rest| rest.chars().take(200).collect::<String>())
    };
    assert!(translation.text == text, "{name} is changed near {:?}", differs());
}

/// The headers below a folder, in a stable order.
fn headers(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        let is_c = !path.components().any(|part| part.as_os_str() == "c++");
        if path.is_dir() && is_c {
            headers(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "h") {
            found.push(path);
        }
    }
}

/// The text of a header after the preprocessor; none if it cannot be included alone.
fn preprocessed(compiler: &str, header: &Path) -> Option<String> {
    let mut command = Command::new(compiler);
    command.args(["-E", "-fno-dollars-in-identifiers", "-x", "c", "-std=gnu17"]).arg(header);
    let output = command.stdin(Stdio::null()).output().expect("the compiler starts");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn headers_of_the_system_pass_unchanged() {
    let Some(compiler) = tool(&["cc"]) else { return };
    let mut all = Vec::new();
    headers(Path::new("/usr/include"), &mut all);
    let wanted = Effort::wanted().pick(40, 100, usize::MAX);
    let stride = all.len().div_ceil(wanted).max(1);
    let mut passed = 0;
    for header in all.iter().step_by(stride) {
        if let Some(text) = preprocessed(compiler, header) {
            assert_unchanged(&header.display().to_string(), &text);
            passed += 1;
        }
    }
    assert!(passed > 20, "only {passed} headers can be included");
}

#[test]
fn fifty_thousand_lines_are_read_quickly() {
    let line = "static inline int f(int a, char *b) { return a * (b[0] + g(a, b)) << 3; }\n";
    let text = line.repeat(50_000);
    let start = Instant::now();
    assert_unchanged("the long text", &text);
    // The bar is 50 ms in a release build on a quiet machine; this one finds quadratic time.
    assert!(start.elapsed().as_secs() < 10, "{:?}", start.elapsed());
}

#[test]
fn constructs_of_static_c_pass_unchanged() {
    for text in [
        "int f(a, b) int a; char *b; { return a + *b; }\n",
        "typeof(1 ? 2 : 3) x = ({ int y = 1; y + 1; });\n",
        "[[nodiscard]] constexpr auto bits = 0b1010'1010;\n",
        "struct s { int a : 3, : 0, b; struct { int c; }; } v = { .a = 1, [0] = 2 };\n",
        "void f(void) { __asm__ volatile (\"nop\" ::: \"memory\"); l: goto l; switch (1) { case 1 ... 3: default:; } }\n",
        "_Static_assert(sizeof(int) == 4, \"int\");\nint (*(*g)(int))[3];\n",
        "_Atomic(int) a; _Atomic int b; _Alignas(16) char c[32]; int d __attribute__((aligned(8)));\n",
        "enum e : unsigned char { A, B = (1, 2) }; int x = A ? B : A;\n",
        "int compile(int local) { int param = local; return compile(param); }\n",
        "int label(void), jump(int); int f(void) { return jump(label()); }\n",
        "void f(void) { int self; self = (int)(self); apply: ; }\n",
        "typedef int T; void f(void) { T T = 1; T = T * 2; }\n",
        "#pragma once\n#define LEFT `\nint x;\n",
        "char *s = \"`$@ cspec\"; char c = '`';\n",
        "int f(void) { int g(int x) { return x; } return g(1); }\n",
    ] {
        assert_unchanged(text, text);
    }
}

#[test]
fn unfinished_texts_end() {
    let text = "struct s { int a; } *f(int (*g)(void), ...) { for (int i = 0; i < 3; i++) { if (a[i]) return `{ int x = $i; }; } }";
    for end in 0..text.len() {
        translate(&text[..end]);
        translate(&text[end..]);
    }
    for bracket in ["(", "[", "{", "`(", "*(", "if (1) ", "int (", "-", "x = ", "a ? b : "] {
        translate(&bracket.repeat(20_000));
        translate(&format!("int f(void) {{ return `({}", bracket.repeat(20_000)));
    }
    for operand in ["+ x", ", x", "[0]", "(1)", ".x", "++"] {
        translate(&format!("int f(void) {{ return `(x {}", operand.repeat(20_000)));
    }
}
