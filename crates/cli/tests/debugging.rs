//! `qj dap` on standard input and output, as an editor runs it.

mod support;

use serde_json::{Value, json};
use snapbox::cmd::cargo_bin;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use support::Folder;

const CROSSED: &str = "channel ask(int);
channel reply(int);
process client {
  var number = 7;
  out(ask, number);
  number += 1;
  out(ask, number);
}
process server {
  in(ask, $n);
  out(reply, n);
}
model m { }
";

/// A client, which ends the adapter with itself.
struct Editor {
    adapter: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    seq: i64,
}

impl Editor {
    fn start(folder: &Folder) -> Editor {
        let mut adapter = Command::new(cargo_bin!("qj"))
            .arg("dap")
            .current_dir(folder.path("."))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("qj starts");
        let requests = adapter.stdin.take();
        let answers = BufReader::new(adapter.stdout.take().expect("it is piped"));
        Editor { adapter, requests, answers, seq: 0 }
    }

    fn send(&mut self, command: &str, arguments: &Value) {
        self.seq += 1;
        let request = json!({ "seq": self.seq, "type": "request", "command": command, "arguments": arguments });
        let text = request.to_string();
        self.write(&format!("Content-Length: {}\r\n\r\n{text}", text.len()));
    }

    fn write(&mut self, text: &str) {
        let requests = self.requests.as_mut().expect("the input is open");
        requests.write_all(text.as_bytes()).and_then(|()| requests.flush()).expect("the adapter reads");
    }

    fn message(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.answers.read_line(&mut line).expect("the adapter answers");
            match line.trim_end().split_once(": ") {
                Some((_, value)) => length = value.parse().expect("a length"),
                None => break,
            }
        }
        let mut text = vec![0; length];
        self.answers.read_exact(&mut text).expect("the adapter answers");
        serde_json::from_slice(&text).expect("messages are JSON")
    }

    /// The next message of this kind: a command that is answered, or an event.
    fn await_message(&mut self, name: &str) -> Value {
        loop {
            let message = self.message();
            assert!(message["success"] != false || message["command"] == name, "{message}");
            if message["command"] == name || message["event"] == name {
                return message;
            }
        }
    }

    fn ask(&mut self, command: &str, arguments: &Value) -> Value {
        self.send(command, arguments);
        self.await_message(command)["body"].clone()
    }

    /// Ends the input; exit status and errors of the adapter.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.requests.take());
        let mut rest = Vec::new();
        self.answers.read_to_end(&mut rest).expect("the adapter ends");
        let output = self.adapter.wait_with_output().expect("the adapter ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// From the launch to the first stop.
fn launch(editor: &mut Editor, arguments: &Value) {
    editor.ask("initialize", &json!({ "adapterID": "qj" }));
    editor.send("launch", arguments);
    editor.await_message("initialized");
    editor.ask("configurationDone", &json!({}));
    assert_eq!(editor.await_message("stopped")["body"]["reason"], "entry");
}

fn debug_to_the_end(editor: &mut Editor, path: &Value) {
    let stack = editor.ask("stackTrace", &json!({ "threadId": 1 }));
    let frame = &stack["stackFrames"][0];
    assert_eq!((&frame["name"], &frame["line"]), (&json!("client"), &json!(5)));
    assert_eq!(&frame["source"]["path"], path);
    editor.ask("stepIn", &json!({ "threadId": 1 }));
    assert_eq!(editor.await_message("output")["body"]["output"], "   1  client -> server: ask(7)  (crossed.esp:5:3)\n");
    let stopped = editor.await_message("stopped");
    assert_eq!(
        (&stopped["body"]["reason"], &stopped["body"]["description"]),
        (&json!("exception"), &json!("deadlock"))
    );
    let value = editor.ask("evaluate", &json!({ "expression": "client:number" }));
    assert_eq!(value["result"], "8");
}

#[test]
fn a_program_is_verified_and_its_violation_debugged() {
    let folder = Folder::with(&[("crossed.esp", CROSSED)]);
    let mut editor = Editor::start(&folder);
    launch(&mut editor, &json!({ "program": "crossed.esp", "model": "m" }));
    let path = folder.path("crossed.esp").canonicalize().expect("it is there");
    debug_to_the_end(&mut editor, &json!(path.display().to_string()));
    editor.ask("disconnect", &json!({}));
    assert_eq!(editor.end(), (Some(0), String::new()));
}

/// The source is that of the run, not of a file that has changed.
#[test]
fn a_run_is_debugged_after_its_program_has_changed() {
    let folder = Folder::with(&[("crossed.esp", CROSSED)]);
    folder.qj("verify crossed.esp --trace run.qjt").assert().code(1);
    std::fs::write(folder.path("crossed.esp"), "changed").expect("a file can be written");
    let mut editor = Editor::start(&folder);
    launch(&mut editor, &json!({ "program": "run.qjt" }));
    debug_to_the_end(&mut editor, &Value::Null);
    let source = editor.ask("source", &json!({ "sourceReference": 1 }));
    assert_eq!(source["content"], CROSSED);
    // The end of the input ends the session, too.
    assert_eq!(editor.end(), (Some(0), String::new()));
}

#[test]
fn errors_of_a_launch_are_shown() {
    let folder = Folder::with(&[
        ("wrong.esp", "process p { out(c, 1); }\n"),
        ("right.esp", "channel c(int);\nprocess p { out(c, 1); }\nprocess q { in(c, _); }\n"),
        ("cut.qjt", "quaject counterexample 1\nrun\n"),
    ]);
    let mut editor = Editor::start(&folder);
    for (program, cause) in [
        ("wrong.esp", "no channel named `c`"),
        ("missing.esp", "cannot read `missing.esp`"),
        ("cut.qjt", "it holds no program"),
    ] {
        editor.send("launch", &json!({ "program": program }));
        let answer = editor.await_message("launch");
        assert_eq!(answer["success"], false);
        let message = answer["message"].as_str().expect("a text");
        assert!(message.contains(cause), "{message}");
    }
    editor.send("launch", &json!({ "program": "right.esp" }));
    let output = editor.await_message("output")["body"]["output"].clone();
    assert!(output.as_str().is_some_and(|text| text.contains("no errors")), "{output}");
    editor.await_message("terminated");
    assert_eq!(editor.end(), (Some(0), String::new()));
}

#[test]
fn malformed_messages_end_the_adapter_with_an_error() {
    let folder = Folder::with(&[]);
    for (input, cause) in [
        ("Content-Length: 99999999\r\n\r\n", "at most 16777216"),
        ("Length: 2\r\n\r\n{}", "no `Content-Length`"),
        ("nonsense\r\n", "a header is"),
        ("Content-Length: 2\r\n\r\n{", "cannot read requests"),
        ("Content-", "ends within the header"),
    ] {
        let mut editor = Editor::start(&folder);
        editor.write(input);
        let (status, error) = editor.end();
        assert_eq!(status, Some(1), "{input}");
        assert!(error.contains(cause), "{input}: {error}");
    }
    // What is no request is skipped.
    let mut editor = Editor::start(&folder);
    editor.write("Content-Length: 3\r\n\r\n{}\n");
    editor.write("Content-Length: 1\r\n\r\n7");
    assert_eq!(editor.ask("initialize", &json!({}))["supportsStepBack"], true);
    assert_eq!(editor.end(), (Some(0), String::new()));
}
