//! `qj lsp` as an editor drives it: messages on standard input and output.

use lsp_server::{Message, Notification, Request, RequestId, Response};
use quaject_test_support::{Effort, Random, tool};
use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A server and what it has reported.
struct Editor {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    folder: PathBuf,
    requests: i32,
    version: i32,
    problems: BTreeMap<String, Vec<Value>>,
}

impl Editor {
    fn start(folder: &Path) -> Editor {
        Editor::start_with(folder, json!({}))
    }

    fn start_with(folder: &Path, capabilities: Value) -> Editor {
        let folder = folder.canonicalize().expect("the folder is there");
        let mut server = Command::new(cargo_bin!("qj"))
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("qj starts");
        let input = server.stdin.take().expect("it is piped");
        let output = BufReader::new(server.stdout.take().expect("it is piped"));
        let (requests, version, problems) = (0, 0, BTreeMap::new());
        let mut editor = Editor { server, input, output, folder, requests, version, problems };
        let root = format!("file://{}", editor.folder.display());
        let offered = editor.ask("initialize", json!({ "rootUri": root, "capabilities": capabilities }));
        assert_eq!(offered["serverInfo"]["name"], json!("qj"));
        editor.notify("initialized", json!({}));
        editor
    }

    fn uri(&self, name: &str) -> String {
        format!("file://{}", self.folder.join(name).display())
    }

    fn send(&mut self, message: Message) {
        message.write(&mut self.input).expect("the server reads");
    }

    fn notify(&mut self, method: &str, parameters: Value) {
        self.send(Message::Notification(Notification { method: method.to_string(), params: parameters }));
    }

    /// Sends a request and reads up to its answer.
    fn respond(&mut self, method: &str, parameters: Value) -> Result<Value, String> {
        self.requests += 1;
        let id = RequestId::from(self.requests);
        self.send(Message::Request(Request { id: id.clone(), method: method.to_string(), params: parameters }));
        loop {
            match Message::read(&mut self.output).expect("a message").expect("the server runs") {
                Message::Response(Response { id: own, response_result }) if own == id => {
                    return response_result.map_err(|error| error.message);
                }
                Message::Notification(Notification { method, params }) if method.ends_with("publishDiagnostics") => {
                    let path = params["uri"].as_str().expect("a URI").to_string();
                    let found = params["diagnostics"].as_array().expect("a list").clone();
                    self.problems.insert(path, found);
                }
                Message::Response(_) | Message::Notification(_) | Message::Request(_) => {}
            }
        }
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.respond(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn open(&mut self, name: &str, text: &str) {
        let document = json!({ "uri": self.uri(name), "languageId": "esp", "version": 0, "text": text });
        self.notify("textDocument/didOpen", json!({ "textDocument": document }));
    }

    fn change(&mut self, name: &str, changes: Value) {
        self.version += 1;
        let document = json!({ "uri": self.uri(name), "version": self.version });
        self.notify("textDocument/didChange", json!({ "textDocument": document, "contentChanges": changes }));
    }

    /// A request at the place of the n-th occurrence of a word.
    fn at(&self, name: &str, text: &str, word: &str, number: usize) -> Value {
        let (offset, _) = text.match_indices(word).nth(number).unwrap_or_else(|| panic!("{number} of {word}"));
        json!({ "textDocument": { "uri": self.uri(name) }, "position": position(text, offset) })
    }

    /// The problems of a file: code and line.
    fn codes(&mut self, name: &str) -> Vec<String> {
        // An answer follows what was reported before.
        self.ask("workspace/symbol", json!({ "query": "no such item" }));
        let found = self.problems.get(&self.uri(name)).cloned().unwrap_or_default();
        let shown = |known: &Value| {
            let line = known["range"]["start"]["line"].as_u64().expect("a line") + 1;
            format!("{} {line}", known["code"].as_str().expect("a code"))
        };
        found.iter().map(shown).collect()
    }

    fn end(mut self) {
        self.ask("shutdown", Value::Null);
        self.notify("exit", Value::Null);
        assert!(self.server.wait().expect("it ends").success());
    }
}

/// The position of an offset, in code units of UTF-16.
fn position(text: &str, offset: usize) -> Value {
    let before = &text[..offset];
    let line = before.matches('\n').count();
    let column = before[before.rfind('\n').map_or(0, |end| end + 1)..].encode_utf16().count();
    json!({ "line": line, "character": column })
}

/// The text that a range names.
fn slice<'t>(text: &'t str, range: &Value) -> &'t str {
    let offset = |place: &Value| {
        let line = place["line"].as_u64().expect("a line") as usize;
        let start: usize = text.split_inclusive('\n').take(line).map(str::len).sum();
        let column = place["character"].as_u64().expect("a column") as usize;
        let mut units = 0;
        let rest = &text[start..];
        start
            + rest
                .char_indices()
                .find(|(_, c)| {
                    units += c.len_utf16();
                    units > column
                })
                .map_or(rest.len(), |(at, _)| at)
    };
    &text[offset(&range["start"])..offset(&range["end"])]
}

/// Applies the edits of an answer.
fn apply(text: &str, edits: &Value) -> String {
    let mut edits: Vec<&Value> = edits.as_array().expect("edits").iter().collect();
    edits.sort_by_key(|edit| edit["range"]["start"]["line"].as_u64().zip(edit["range"]["start"]["character"].as_u64()));
    let mut changed = text.to_string();
    for edit in edits.into_iter().rev() {
        let part = slice(text, &edit["range"]);
        let start = part.as_ptr() as usize - text.as_ptr() as usize;
        changed.replace_range(start..start + part.len(), edit["newText"].as_str().expect("a text"));
    }
    changed
}

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder can be made");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder is ours");
        std::fs::write(path, text).expect("the folder is ours");
    }
    folder
}

/// Columns before the names count two units for the picture, one for the accent.
const PAIR: &str = "// Carries numbers.\nchannel numberC: int;\n\
                    /* \u{1f600}e\u{301} */ type pairT = record { low: int, high: int };\n\
                    process writer {\n  var pair: pairT = { 1, 2 };\n  out(numberC, pair.low);\n}\n\
                    process reader {\n  in(numberC, $n);\n  assert(n == 1);\n}\n";

#[test]
fn names_lead_to_declarations_types_peers_and_uses() {
    let files = folder(&[("pair.esp", PAIR)]);
    let mut editor = Editor::start(files.path());
    editor.open("pair.esp", PAIR);
    let found = |editor: &mut Editor, method: &str, word: &str, number: usize| {
        let place = editor.at("pair.esp", PAIR, word, number);
        let answer = editor.ask(method, place);
        let places = if answer.is_array() { answer.as_array().expect("a list").clone() } else { vec![answer] };
        let texts = places.iter().map(|place| slice(PAIR, &place["range"]).to_string());
        texts.collect::<Vec<_>>()
    };
    assert_eq!(found(&mut editor, "textDocument/definition", "low", 1), ["low"]);
    assert_eq!(found(&mut editor, "textDocument/definition", "n ==", 0), ["n"]);
    assert_eq!(found(&mut editor, "textDocument/typeDefinition", "pair.low", 0), ["pairT"]);
    assert_eq!(found(&mut editor, "textDocument/implementation", "out(", 0), ["in(numberC, $n)"]);
    assert_eq!(found(&mut editor, "textDocument/implementation", "numberC", 0).len(), 2);
    assert_eq!(found(&mut editor, "textDocument/documentHighlight", "numberC", 2), ["numberC"; 3]);
    let hover = |editor: &mut Editor, word: &str, number: usize| {
        let place = editor.at("pair.esp", PAIR, word, number);
        editor.ask("textDocument/hover", place)["contents"]["value"].as_str().expect("a text").to_string()
    };
    assert_eq!(
        hover(&mut editor, "numberC", 2),
        "```esp\nchannel numberC: int;\n```\n\nwritten by `writer`; read by `reader`\n\nCarries numbers."
    );
    assert_eq!(hover(&mut editor, "n ==", 0), "```esp\nvar n: int\n```");
    assert_eq!(hover(&mut editor, "pair.low", 0), "```esp\nvar pair: pairT\n```");
    let symbols =
        editor.ask("textDocument/documentSymbol", json!({ "textDocument": { "uri": editor.uri("pair.esp") } }));
    let names: Vec<&str> =
        symbols.as_array().expect("a list").iter().map(|symbol| symbol["name"].as_str().expect("a name")).collect();
    assert_eq!(names, ["numberC", "pairT", "writer", "reader"]);
    let folds = editor.ask("textDocument/foldingRange", json!({ "textDocument": { "uri": editor.uri("pair.esp") } }));
    assert_eq!(folds.as_array().map(Vec::len), Some(2));
    let tokens =
        editor.ask("textDocument/semanticTokens/full", json!({ "textDocument": { "uri": editor.uri("pair.esp") } }));
    assert!(tokens["data"].as_array().is_some_and(|data| data.len() > 5 * 30), "{tokens}");
    editor.end();
}

#[test]
fn what_has_an_error_is_answered_all_the_same() {
    let broken = PAIR.replace("assert(n == 1)", "assert(m == )");
    let files = folder(&[("pair.esp", PAIR)]);
    let mut editor = Editor::start(files.path());
    editor.open("pair.esp", &broken);
    assert!(!editor.codes("pair.esp").is_empty());
    let place = editor.at("pair.esp", &broken, "pair.low", 0);
    assert_eq!(editor.ask("textDocument/hover", place)["contents"]["value"], json!("```esp\nvar pair: pairT\n```"));
    let response = editor.respond(
        "textDocument/formatting",
        json!({ "textDocument": { "uri": editor.uri("pair.esp") }, "options": { "tabSize": 2, "insertSpaces": true } }),
    );
    assert!(response.is_err_and(|error| error.contains("syntax error")));
    assert!(editor.respond("textDocument/no such request", json!({})).is_err());
    assert!(editor.respond("textDocument/hover", json!({ "position": 3 })).is_err());
    editor.end();
}

#[test]
fn completion_offers_what_fits() {
    let files = folder(&[("pair.esp", PAIR)]);
    let mut editor = Editor::start(files.path());
    editor.open("pair.esp", PAIR);
    let offered = |editor: &mut Editor, from: &str, to: &str| {
        let text = PAIR.replace(from, to);
        editor.change("pair.esp", json!([{ "text": text }]));
        let (offset, _) = text.match_indices(to).next().expect("it was put there");
        let end = position(&text, offset + to.len());
        let parameters = json!({ "textDocument": { "uri": editor.uri("pair.esp") }, "position": end });
        let items = editor.ask("textDocument/completion", parameters);
        let label = |item: &Value| item["label"].as_str().expect("a label").to_string();
        items.as_array().expect("a list").iter().map(label).take(4).collect::<Vec<_>>()
    };
    assert_eq!(offered(&mut editor, "pair.low", "pair."), ["low", "high"]);
    assert_eq!(offered(&mut editor, "out(numberC", "out("), ["numberC"]);
    assert_eq!(offered(&mut editor, "n == 1", "n == "), ["n", "numberC", "pairT", "reader"]);
    editor.end();
}

#[test]
fn renaming_keeps_the_meaning_or_is_refused() {
    let files = folder(&[("pair.esp", PAIR)]);
    let mut editor = Editor::start(files.path());
    editor.open("pair.esp", PAIR);
    let place = editor.at("pair.esp", PAIR, "low", 1);
    let range = editor.ask("textDocument/prepareRename", place.clone());
    assert_eq!(slice(PAIR, &range), "low");
    let mut parameters = place;
    parameters["newName"] = json!("first");
    let edit = editor.ask("textDocument/rename", parameters.clone());
    let renamed = apply(PAIR, &edit["changes"][&editor.uri("pair.esp")]);
    assert_eq!(renamed, PAIR.replace("low", "first"));
    for (name, part) in
        [("high", "would have a problem"), ("process", "not a name"), ("2", "not a name"), ("", "not a name")]
    {
        parameters["newName"] = json!(name);
        let error = editor.respond("textDocument/rename", parameters.clone()).expect_err("it is refused");
        assert!(error.contains(part), "{name}: {error}");
    }
    // A variable that would hide the channel.
    let mut variable = editor.at("pair.esp", PAIR, "n ==", 0);
    variable["newName"] = json!("numberC");
    assert!(editor.respond("textDocument/rename", variable).is_err());
    editor.end();
}

#[test]
fn corrections_remove_their_problem() {
    for (right, wrong) in [("pair.low", "pair.lou"), ("out(numberC", "out(numberD"), ("$n)", "n)")] {
        let text = PAIR.replace(right, wrong);
        let files = folder(&[("pair.esp", &text)]);
        let mut editor = Editor::start(files.path());
        editor.open("pair.esp", &text);
        editor.codes("pair.esp");
        let problem = editor.problems[&editor.uri("pair.esp")]
            .iter()
            .find(|known| known["code"] == json!("E0208"))
            .unwrap_or_else(|| panic!("{wrong}: {:?}", editor.problems))
            .clone();
        let actions = editor.ask(
            "textDocument/codeAction",
            json!({
                "textDocument": { "uri": editor.uri("pair.esp") },
                "range": problem["range"],
                "context": { "diagnostics": [problem] }
            }),
        );
        let edits = &actions[0]["edit"]["changes"][&editor.uri("pair.esp")];
        assert!(edits.is_array(), "{wrong}: {problem} {actions}");
        assert!(apply(&text, edits).contains(right), "{wrong}: {actions}");
        editor.end();
    }
}

#[test]
fn problems_are_those_of_the_programs() {
    let part = "process p { out(c, 1); }\n";
    let main = "import \"lib/part.esp\";\nchannel c: int;\nprocess q { in(c, $n); assert(n == 1); }\n";
    let other = "import \"lib/part.esp\";\nchannel c: bool;\nprocess q { in(c, $n); assert(n); }\n";
    let files = folder(&[("main.esp", main), ("lib/part.esp", part)]);
    let mut editor = Editor::start(files.path());
    editor.open("lib/part.esp", part);
    assert_eq!(editor.codes("lib/part.esp"), [] as [&str; 0]);
    // A second program that has the part.
    std::fs::write(files.path().join("other.esp"), other).expect("the folder is ours");
    let change = json!({ "uri": editor.uri("other.esp"), "type": 1 });
    editor.notify("workspace/didChangeWatchedFiles", json!({ "changes": [change] }));
    assert_eq!(editor.codes("lib/part.esp"), ["E0302 1"]);
    let message = editor.problems[&editor.uri("lib/part.esp")][0]["message"].as_str().expect("a text").to_string();
    assert!(message.contains("in the program") && message.contains("other.esp"), "{message}");
    // A project file names the roots.
    std::fs::write(files.path().join("qj.toml"), "roots = [\"main.esp\"]\n").expect("the folder is ours");
    let change = json!({ "uri": editor.uri("qj.toml"), "type": 1 });
    editor.notify("workspace/didChangeWatchedFiles", json!({ "changes": [change] }));
    assert_eq!(editor.codes("lib/part.esp"), [] as [&str; 0]);
    // Nothing was written.
    let written = std::fs::read_dir(files.path()).expect("the folder is ours").count();
    assert_eq!(written, 4);
    editor.end();
}

#[test]
fn columns_are_those_that_the_editor_counts() {
    let files = folder(&[("pair.esp", PAIR)]);
    let mut editor =
        Editor::start_with(files.path(), json!({ "general": { "positionEncodings": ["utf-8", "utf-16"] } }));
    editor.open("pair.esp", PAIR);
    let line = PAIR.lines().nth(2).expect("the type");
    let column = line.find("pairT").expect("its name");
    let place =
        json!({ "textDocument": { "uri": editor.uri("pair.esp") }, "position": { "line": 2, "character": column } });
    let hover = editor.ask("textDocument/hover", place);
    assert_eq!(hover["range"]["start"]["character"], json!(column));
    editor.end();
}

#[test]
fn formatting_is_that_of_qj_fmt() {
    let text = "channel c : int;\n\n\n\nprocess p{out(c,1);}\nprocess q { in(c, $n); assert(n == 1); }\n";
    let files = folder(&[("p.esp", text)]);
    let mut editor = Editor::start(files.path());
    editor.open("p.esp", text);
    let parameters =
        json!({ "textDocument": { "uri": editor.uri("p.esp") }, "options": { "tabSize": 2, "insertSpaces": true } });
    let edits = editor.ask("textDocument/formatting", parameters);
    let formatted = apply(text, &edits);
    std::fs::write(files.path().join("p.esp"), text).expect("the folder is ours");
    let fmt = Command::new(cargo_bin!("qj")).args(["fmt", "p.esp"]).current_dir(files.path()).status();
    assert!(fmt.expect("qj starts").success());
    assert_eq!(std::fs::read_to_string(files.path().join("p.esp")).expect("the file"), formatted);
    assert!(!edits.to_string().contains("process q"), "{edits}");
    editor.end();
}

/// After random edits the server knows what one knows that has seen the last text only.
#[test]
fn edits_lead_to_the_state_of_a_fresh_server() {
    let files = folder(&[("pair.esp", PAIR)]);
    let mut random = Random(4);
    let mut editor = Editor::start(files.path());
    let mut text = PAIR.to_string();
    editor.open("pair.esp", &text);
    let pieces = ["x", "\u{1f600}", ";", "{", "}", "\n", "\r\n", "in(", "numberC", " process ", "\"", "/*", "", "", ""];
    let count = Effort::wanted().pick(60, 600, 50_000);
    for number in 1..=count {
        let mut ends = [random.index(text.len() + 1), random.index(text.len() + 1)];
        ends.sort();
        ends[1] = ends[1].min(ends[0] + random.index(6));
        let [start, end] = ends.map(|end| (0..=end).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0));
        // Positions count a lone `\r` as a line break, and `position` does not: such texts are begun anew.
        let piece = random.pick(&pieces);
        let range = json!({ "start": position(&text, start), "end": position(&text, end) });
        let mut next = text.clone();
        next.replace_range(start..end, piece);
        let is_plain = |text: &str| text.matches('\r').count() == text.matches("\r\n").count();
        if !is_plain(&next) || next.len() > 2_000 {
            continue;
        }
        editor.change("pair.esp", json!([{ "range": range, "text": piece }]));
        text = next;
        if number % (count / 6) == 0 {
            let mut fresh = Editor::start(files.path());
            fresh.open("pair.esp", &text);
            assert_eq!(editor.codes("pair.esp"), fresh.codes("pair.esp"), "{text:?}");
            assert_eq!(
                editor.problems.get(&editor.uri("pair.esp")).map_or(0, Vec::len),
                fresh.problems.get(&fresh.uri("pair.esp")).map_or(0, Vec::len)
            );
            for offset in (0..text.len()).filter(|offset| text.is_char_boundary(*offset)).step_by(7) {
                let parameters =
                    json!({ "textDocument": { "uri": editor.uri("pair.esp") }, "position": position(&text, offset) });
                let (one, other) = (
                    editor.respond("textDocument/hover", parameters.clone()),
                    fresh.respond("textDocument/hover", parameters),
                );
                assert_eq!(one, other, "{offset} in {text:?}");
            }
            fresh.end();
        }
    }
    editor.end();
}

#[test]
fn neovim_shows_problems_and_follows_names() {
    let Some(nvim) = tool(&["nvim"]) else { return };
    let text = "channel c: int;\nprocess writer { out(c, 1); }\nprocess reader { in(c, $n); assert(m == 1); }\n";
    let files = folder(&[("pair.esp", text)]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lsp.lua");
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../editors/neovim/esp.lua");
    let qj = cargo_bin!("qj").parent().expect("it is in a folder").to_path_buf();
    let path = std::env::var_os("PATH").expect("tests have a path");
    let path = std::env::join_paths(std::iter::once(qj).chain(std::env::split_paths(&path))).expect("plain paths");
    let result = files.path().join("result");
    let status = Command::new(nvim)
        .args(["--headless", "-n", "-i", "NONE", "-u", "NONE", "-c"])
        .arg(format!("luafile {}", script.display()))
        // The script ends Neovim, unless it cannot be read.
        .args(["-c", "cquit"])
        .env("PATH", path)
        .env("XDG_CACHE_HOME", files.path())
        .env("XDG_STATE_HOME", files.path())
        .env("QJ_RESULT", &result)
        .env("QJ_SETTINGS", settings)
        .env("QJ_FILE", files.path().join("pair.esp"))
        .stdin(Stdio::null())
        .status()
        .expect("Neovim starts");
    let seen = std::fs::read_to_string(&result).unwrap_or_default();
    assert!(status.success(), "{seen}");
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].starts_with("2:35 no variable named `m`"), "{seen}");
    assert!(lines.iter().any(|line| line.contains("written by `writer`; read by `reader`")), "{seen}");
    assert_eq!(lines[lines.len() - 2..], ["0:8", "2:17"], "{seen}");
}
