//! Every fenced block of the book and of the READMEs is a test: programs are checked and run, commands typed and their
//! output compared. `UPDATE_EXPECT=1 cargo test -p quaject-test-book` writes what was printed into the documents.

mod blocks;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use blocks::{Block, Outcome, Promise, blocks, matches, program, steps};
use quaject_esp_syntax::diagnostics::Code;
use quaject_esp_syntax::tree::SyntaxKind;
use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_compiler, quick_run, tool};

/// Seconds after which a command counts as hung. Far above what any takes, even on a busy machine.
const HANG_LIMIT: &str = "1200";

#[test]
fn every_block_of_the_documents_holds() {
    let documents = documents();
    assert!(documents.len() > 1, "the book has no chapters");
    let failures: Vec<String> = std::thread::scope(|scope| {
        let runs: Vec<_> = documents.iter().map(|document| scope.spawn(|| Document::open(document).test())).collect();
        runs.into_iter().flat_map(|run| run.join().expect("a document's test reports, it does not panic")).collect()
    });
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// The test above can fail: a document that promises too much is reported line by line.
#[test]
fn a_broken_promise_is_reported() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("broken.md");
    let text = "```sh\n$ echo 1\n2\n$ echo 3\n...\n$ exit 4\n```\n```esp,run\n```\n```text\n";
    fs::write(&path, text).expect("the scratch folder is ours");
    let unclosed = Document::open(&path).test();
    assert_eq!(unclosed.len(), 1);
    assert!(unclosed[0].ends_with("broken.md:10: the block is never closed"), "{unclosed:?}");
    fs::write(&path, text.replace("```text\n", "")).expect("the scratch folder is ours");
    let failures = Document::open(&path).test();
    assert_eq!(failures.len(), 3, "{failures:?}");
    assert!(failures[0].ends_with(":2: prints something else\n- 2\n+ 1\n"), "{failures:?}");
    assert!(failures[1].ends_with(":6: prints something else\n+ # exit status 4\n"), "{failures:?}");
    assert!(failures[2].ends_with(":8: no `output` block follows the program"), "{failures:?}");
}

#[test]
fn the_summary_lists_every_chapter() {
    let summary = fs::read_to_string(root().join("docs/book/src/SUMMARY.md")).expect("the book has a summary");
    for chapter in documents().iter().filter_map(|path| path.strip_prefix(root().join("docs/book/src")).ok()) {
        let link = format!("]({})", chapter.display());
        assert!(summary.contains(&link), "SUMMARY.md does not list {}", chapter.display());
    }
}

/// The table of section 7 names the codes the compiler has, in its order, no fewer and no more.
#[test]
fn the_reference_lists_every_code() {
    let reference = fs::read_to_string(root().join("docs/book/src/reference.md")).expect("the book has a reference");
    let rows = reference.lines().filter(|line| line.starts_with("| E") || line.starts_with("| W"));
    let cells = rows.map(|line| line.split('|').nth(1).expect("a row has a first cell"));
    let codes = cells.flat_map(|cell| cell.split(',')).map(str::trim);
    let listed: Vec<&str> = codes.filter(|code| code.len() == 5).collect();
    let known: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    assert_eq!(listed, known);
}

#[test]
fn the_reference_lists_the_reserved_words() {
    let reference = fs::read_to_string(root().join("docs/book/src/reference.md")).expect("the book has a reference");
    let line = reference.lines().find_map(|line| line.strip_prefix("Reserved: `")).expect("section 1 lists them");
    let (words, _) = line.split_once('`').expect("the list is one code span");
    let listed: BTreeSet<&str> = words.split_whitespace().collect();
    assert_eq!(listed, SyntaxKind::RESERVED_WORDS.iter().copied().collect());
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .expect("the crate lies two folders below the root")
}

/// The READMEs and the chapters of the book.
fn documents() -> Vec<PathBuf> {
    let chapters = fs::read_dir(root().join("docs/book/src")).expect("the book has chapters");
    let mut paths: Vec<PathBuf> = chapters.map(|entry| entry.expect("chapters are readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "md") && !path.ends_with("SUMMARY.md"));
    paths.extend(["README.md", "crates/cli/README.md", "examples/README.md"].map(|path| root().join(path)));
    paths.sort();
    paths
}

/// A document under test, and the folder in which its commands run.
struct Document {
    path: PathBuf,
    text: String,
    folder: PathBuf,
    failures: Vec<String>,
    /// Lines of the document to replace, by index: what was printed in place of what was expected.
    corrections: Vec<(std::ops::Range<usize>, Vec<String>)>,
}

impl Document {
    fn open(path: &Path) -> Document {
        let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("book").join(name.replace('/', "-"));
        if folder.exists() {
            fs::remove_dir_all(&folder).expect("the scratch folder belongs to this test");
        }
        fs::create_dir_all(&folder).expect("the scratch folder belongs to this test");
        for entry in fs::read_dir(root()).expect("the repository is readable") {
            let entry = entry.expect("the repository is readable");
            // What a reader in the repository sees, without what Cargo and Git write there.
            if entry.file_name() != "target" && entry.file_name() != ".git" {
                symlink(entry.path(), folder.join(entry.file_name())).expect("the scratch folder is new");
            }
        }
        let text = fs::read_to_string(path).expect("documents are readable");
        Document { path: path.to_owned(), text, folder, failures: Vec::new(), corrections: Vec::new() }
    }

    fn test(mut self) -> Vec<String> {
        match blocks(&self.text) {
            Ok(blocks) => {
                for (index, block) in blocks.iter().enumerate() {
                    self.test_block(block, &blocks[index + 1..]);
                }
            }
            Err((line, reason)) => self.fail(line, &reason),
        }
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            self.correct();
        }
        self.failures
    }

    fn test_block(&mut self, block: &Block, rest: &[Block]) {
        match &block.promise {
            Promise::Program { outcome, file } => self.test_program(block, outcome, file.as_deref(), rest),
            Promise::Session { needs } => self.test_session(block, needs.as_deref()),
            Promise::File { name } => self.save(name, &block.body),
            Promise::Input | Promise::Output | Promise::Prose => {}
        }
    }

    fn test_program(&mut self, block: &Block, outcome: &Outcome, file: Option<&str>, rest: &[Block]) {
        let name = file.map_or_else(|| format!("line-{}.esp", block.line), str::to_owned);
        self.save(&name, &block.body);
        match outcome {
            Outcome::Checks => {
                let output = self.run(&format!("qj check {name} 2>&1"), "");
                if !output.status.success() {
                    self.fail(block.line, &format!("`qj check` refuses the program\n{}", text_of(&output)));
                }
            }
            Outcome::Fails(code) => {
                let output = self.run(&format!("qj check {name} 2>&1"), "");
                let text = text_of(&output);
                if output.status.code() != Some(1) || !text.contains(&format!("[{code}]")) {
                    self.fail(block.line, &format!("`qj check` does not report {code}\n{text}"));
                }
            }
            Outcome::Runs => {
                let input = rest.first().filter(|next| next.promise == Promise::Input);
                let Some(expected) = rest.get(usize::from(input.is_some())).filter(|b| b.promise == Promise::Output)
                else {
                    return self.fail(block.line, "no `output` block follows the program");
                };
                let output =
                    self.run(&format!("qj run {name}"), &input.map_or(String::new(), |block| program(&block.body)));
                let actual = lines_of(&output);
                if !matches(&expected.body, &actual) {
                    self.differ(expected.line, &expected.body, &actual, &String::from_utf8_lossy(&output.stderr));
                }
            }
        }
    }

    fn test_session(&mut self, block: &Block, needs: Option<&str>) {
        // Tools are named by the documents, which live as long as the test.
        if let Some(needed) = needs.map(|needed| -> &'static str { String::from(needed).leak() })
            && (tool(&[needed]).is_none() || needed == "cargo" && quick_run("what Cargo builds for a chapter"))
        {
            return;
        }
        let steps = match steps(&block.body) {
            Ok(steps) => steps,
            Err(reason) => return self.fail(block.line, &reason),
        };
        let mut line = block.line;
        for step in steps {
            line += 1;
            let output = self.run(&format!("{{ {}\n}} 2>&1", step.command), "");
            let actual = lines_of(&output);
            if !matches(&step.expected, &actual) {
                self.differ(line, &step.expected, &actual, "");
            }
            line += step.expected.len();
        }
    }

    /// Runs a command line as a reader would type it: `qj` is the one under test, files of the chapter lie around it.
    fn run(&self, command: &str, input: &str) -> Output {
        let commands = Path::new(qj_binary()).parent().expect("programs lie in folders");
        let path = format!("{}:{}", commands.display(), std::env::var("PATH").unwrap_or_default());
        // The quickest compiler is none of GNU C, which the translation of 'C is.
        let compiler = if command.contains("qj tickc") { "cc" } else { quick_compiler() };
        let mut shell = Command::new("timeout");
        shell.args([HANG_LIMIT, "sh", "-c", command]).current_dir(&self.folder).env("PATH", path);
        shell
            .env("NO_COLOR", "1")
            .env("CC", compiler)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = shell.spawn().expect("`timeout` and `sh` are part of every Unix");
        let mut standard_input = child.stdin.take().expect("piped above");
        // A program may end without reading its input.
        let _ = standard_input.write_all(input.as_bytes());
        drop(standard_input);
        child.wait_with_output().expect("the program has been started")
    }

    fn save(&mut self, name: &str, body: &[String]) {
        let path = self.folder.join(name);
        assert!(!path.is_symlink(), "{name} is a file of the repository; choose another name");
        fs::create_dir_all(path.parent().expect("files lie in folders")).expect("the scratch folder is ours");
        fs::write(path, program(body)).expect("the scratch folder is ours");
    }

    fn fail(&mut self, line: usize, reason: &str) {
        let path = self.path.strip_prefix(root()).unwrap_or(&self.path);
        self.failures.push(format!("{}:{line}: {reason}", path.display()));
    }

    /// Reports that the lines behind line number `line` should have been `actual`.
    fn differ(&mut self, line: usize, expected: &[String], actual: &[String], complaint: &str) {
        let mut reason = String::from("prints something else\n");
        for (mark, lines) in [('-', expected), ('+', actual)] {
            for line in lines {
                writeln!(reason, "{mark} {line}").expect("writing to a string succeeds");
            }
        }
        reason.push_str(complaint);
        self.fail(line, &reason);
        self.corrections.push((line..line + expected.len(), actual.to_vec()));
    }

    fn correct(&mut self) {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        for (place, actual) in self.corrections.drain(..).rev() {
            lines.splice(place, actual);
        }
        fs::write(&self.path, lines.join("\n") + "\n").expect("documents are writable");
    }
}

fn text_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What a reader sees: the output without empty lines at its end, then the exit status unless it is 0.
fn lines_of(output: &Output) -> Vec<String> {
    let mut lines: Vec<String> = text_of(output).trim_end().lines().map(str::to_owned).collect();
    match output.status.code() {
        Some(0) => {}
        Some(status) => lines.push(format!("# exit status {status}")),
        None => lines.push("# ended by a signal".to_owned()),
    }
    lines
}
