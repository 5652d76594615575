//! The C header as its users compile it: Figure 1 of the paper in C11 and C++17, with gcc and clang, at -O0 and -O2;
//! including it is quick, and what is not used adds nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("c-header-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for test files can be made");
    folder
}

fn compile(compiler: &str, language: &[&str], flags: &[&str], source: &Path, output: &Path) {
    let result = Command::new(compiler)
        .args(language)
        .args(flags)
        .args(["-Wall", "-Wextra", "-Werror", "-I"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg("-o")
        .arg(output)
        .arg(source)
        .output();
    match result {
        Ok(result) => assert!(result.status.success(), "{compiler}: {}", String::from_utf8_lossy(&result.stderr)),
        Err(error) => assert!(std::env::var("CI").as_deref() != Ok("true"), "cannot start {compiler}: {error}"),
    }
}

#[test]
fn figure_1_runs_as_printed() {
    if quaject_test_support::quick_run("figure 1 of VCODE") {
        return;
    }
    run_everywhere("figure1", None);
}

#[test]
fn conventions_of_a_client_work_in_c() {
    if quaject_test_support::quick_run("conventions of clients in C") {
        return;
    }
    run_everywhere("conventions", None);
}

#[test]
fn forked_children_have_code_memory_of_their_own() {
    if quaject_test_support::quick_run("code memory of forked children in C") {
        return;
    }
    run_everywhere("fork", None);
}

#[test]
fn values_of_8_and_16_bits_are_extended_in_c() {
    run_everywhere("narrow", Some(""));
}

#[test]
fn unsigned_longs_and_floating_point_convert_as_in_c() {
    run_everywhere("conversions", Some(""));
}

#[test]
fn constants_that_do_not_fit_are_errors_in_c() {
    run_everywhere("constants", Some(""));
}

#[test]
fn functions_and_local_procedures_are_recursive_in_c() {
    run_everywhere("procedures", Some(""));
}

#[test]
fn variadic_functions_are_called_in_c() {
    run_everywhere("variadic", Some(""));
}

#[test]
#[cfg(target_arch = "x86_64")]
fn calls_tables_features_and_vectors_work_in_c() {
    let features = quaject_vcode::Features::detect().bits();
    run_everywhere("layers", Some(&format!("{features}\n")));
}

#[test]
fn names_of_the_paper_without_a_function_are_errors() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/misuse.c");
    let folder = folder();
    for (language, compiler) in compilers() {
        for level in ["-O0", "-O2"] {
            let file = |name: &str| folder.join(format!("misuse-{name}-{compiler}{level}"));
            let (first, second, program) = (file("first"), file("second"), file("program"));
            compile(compiler, language, &[level, "-c"], &source, &first);
            compile(compiler, language, &[level, "-c", "-DSECOND"], &source, &second);
            if !second.exists() {
                continue;
            }
            let linked = Command::new(compiler).arg(&first).arg(&second).arg("-o").arg(&program).status();
            assert!(linked.is_ok_and(|status| status.success()), "{compiler} {level}: it does not link");
            let output = Command::new(&program).output().expect("the program starts");
            let stdout = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && stdout.is_empty(), "{compiler} {level}: {}: {stdout}", output.status);
        }
    }
}

/// Compiles and runs a program of `tests/c` with every compiler; it prints this.
fn run_everywhere(name: &str, prints: Option<&str>) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/c/{name}.c"));
    let folder = folder();
    for (language, compiler) in compilers() {
        for level in ["-O0", "-O2"] {
            let program = folder.join(format!("{name}-{compiler}{level}"));
            compile(compiler, language, &[level], &source, &program);
            if program.exists() {
                let output = Command::new(&program).output().expect("the program starts");
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{compiler} {level}: {}: {stderr}", output.status);
                if let Some(prints) = prints {
                    assert_eq!(String::from_utf8_lossy(&output.stdout), prints, "{compiler} {level}");
                }
            }
        }
    }
}

/// The languages and compilers that users have.
const COMPILERS: [(&[&str], &str); 4] = [
    (&["-std=c11"], "gcc"),
    (&["-std=c11"], "clang"),
    (&["-x", "c++", "-std=c++17"], "g++"),
    (&["-x", "c++", "-std=c++17"], "clang++"),
];

/// All of them, or one of each language and maker in a quick run.
fn compilers() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    let is_quick = std::env::var("QJ_TEST").as_deref() == Ok("quick");
    COMPILERS.into_iter().filter(move |(_, compiler)| !is_quick || matches!(*compiler, "gcc" | "clang++"))
}

/// Two sources: without the header and with it.
fn sources(name: &str) -> [PathBuf; 2] {
    let folder = folder();
    let (without, with) = (folder.join(format!("{name}-without.c")), folder.join(format!("{name}-with.c")));
    let body = "int main(void) { return 1; }\n";
    std::fs::write(&without, body).expect("files can be written");
    std::fs::write(&with, format!("#include <quaject/vcode.h>\n{body}")).expect("files can be written");
    [without, with]
}

/// What a tool prints about an object.
fn ask(tool: &str, object: &Path) -> String {
    let output = Command::new(tool).arg(object).output().unwrap_or_else(|error| panic!("cannot start {tool}: {error}"));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn unused_emitters_add_nothing() {
    let [without, with] = sources("size");
    for (language, compiler) in compilers() {
        let object = with.with_extension("o");
        let size = |source: &Path| {
            compile(compiler, language, &["-O2", "-c"], source, &object);
            let text = ask("size", &object);
            let line = text.lines().nth(1).expect("size prints a line per file").to_string();
            line.split_whitespace().take(3).map(|word| word.parse::<u64>().expect("a number")).sum::<u64>()
        };
        // C has no inline variable: the word that all files share is in each.
        let shared = if language[0] == "-std=c11" { 4 } else { 0 };
        assert_eq!(size(&without) + shared, size(&with), "{compiler} -O2: bytes without and with the header");
        // Without optimisation compilers may keep tables of registers, but no function.
        compile(compiler, language, &["-O0", "-c"], &with, &object);
        let symbols = ask("nm", &object);
        let functions: Vec<&str> =
            symbols.lines().filter(|line| line.contains(" T ") || line.contains(" t ")).collect();
        assert!(matches!(functions[..], [main] if main.ends_with(" main")), "{compiler} -O0: {symbols}");
    }
}

/// The most that a compiler reads because of the header, in bytes after preprocessing: some 0.1 to 0.4 s without
/// optimisation. A limit on time would depend on the machine.
const MAX_PREPROCESSED_BYTES: usize = 450_000;

#[test]
fn including_is_quick() {
    let [without, with] = sources("time");
    for (language, compiler) in compilers() {
        let bytes = |source: &Path| {
            let mut preprocessor = Command::new(compiler);
            preprocessor.args(language).args(["-E", "-P", "-I", concat!(env!("CARGO_MANIFEST_DIR"), "/include")]);
            let output = preprocessor.arg(source).output().expect("the compiler starts");
            assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
            output.stdout.len()
        };
        let cost = bytes(&with) - bytes(&without);
        assert!(cost <= MAX_PREPROCESSED_BYTES, "{compiler}: the header has {cost} bytes after preprocessing");
    }
}
