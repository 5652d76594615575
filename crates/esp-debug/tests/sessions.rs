//! Sessions with a client: what each request does at each place of a run.

use quaject_esp::{File, Loader, ModelSelection, Source, models_with_variables};
use quaject_esp_check::counterexample_file::{CounterexampleFile, write};
use quaject_esp_check::{Options, Verdict, check};
use quaject_esp_debug::{DebuggedRun, Launch, LaunchedRun, Request, RunLoader, Session, SourceText};
use quaject_esp_syntax::span::FileId;
use quaject_test_support::Effort;
use serde_json::{Value, json};

/// Two processes that wait for each other after two rounds.
const ROUNDS: &str = "channel ask(int);
channel reply(int);
channel start(int) shared;
process client {
  var number = 7;
  while {
    out(ask, number);
    in(reply, $answer);
    number = answer + 1;
  }
}
process server {
  var seen = 0;
  while {
    in(ask, $n);
    seen += 1;
    if (seen == 3) in(ask, _);
    out(reply, n);
  }
}
process idle[2] { while { in(start, _); } }
";

/// A switch that is never turned off for good.
const TOGGLE: &str = "channel flip(int);
process toggle {
  var on = 0;
  while {
    in(flip, _);
    on = 1 - on;
  }
}
process finger { while { out(flip, 1); } }
model m { ltl \"<> [] (toggle:on == 0)\"; }
";

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("no file `{path}`"))
    }
}

/// The run that the checker finds in a program.
fn run_of(text: &str) -> DebuggedRun {
    let source = || Source { root: File { name: "p.esp".into(), bytes: text.into() }, fast_paths: Vec::new() };
    let subject = ModelSelection { model: None, scope: None };
    let model = || {
        let lowered = models_with_variables(source(), &mut NoImports, &subject).expect("it has no names to miss");
        lowered.models.unwrap_or_else(|| panic!("{:?}", lowered.diagnostics)).remove(0)
    };
    let report = check(&model(), &Options::default(), &mut |_| {}).expect("the model is bounded");
    let Verdict::Violated(found) = report.verdict else { panic!("it holds") };
    let file = write(&model(), &[("p.esp".into(), text.into())], &found);
    let file = CounterexampleFile::parse(&file).expect("it was just written");
    let replayed = file.configurations(&model()).expect("it is small");
    let (found, configurations) = replayed.expect("it is a run of the program");
    let source = SourceText { name: "p.esp".into(), text: text.into(), path: Some("/p/p.esp".into()) };
    DebuggedRun::new(model(), found, configurations, vec![source])
}

/// Programs by their text.
struct Texts;

impl RunLoader for Texts {
    fn load(&mut self, launch: &Launch) -> Result<LaunchedRun, String> {
        match launch.program.as_str() {
            "" => Err("no program".to_string()),
            "holds" => Ok(LaunchedRun { run: None, output: "it holds\n".to_string() }),
            text => Ok(LaunchedRun { run: Some(run_of(text)), output: String::new() }),
        }
    }
}

struct Client {
    session: Session<Texts>,
    seq: i64,
    /// The messages of the last request.
    messages: Vec<Value>,
}

impl Client {
    fn new() -> Client {
        Client { session: Session::new(Texts), seq: 0, messages: Vec::new() }
    }

    /// A client whose run has stopped at its start.
    fn launched(text: &str) -> Client {
        let mut client = Client::new();
        client.ask("initialize", json!({ "adapterID": "qj" }));
        client.send("launch", json!({ "program": text }));
        assert_eq!(client.messages.last().expect("an event")["event"], "initialized");
        client.ask("configurationDone", json!({}));
        client
    }

    fn send(&mut self, command: &str, arguments: Value) {
        self.seq += 1;
        let request = Request { seq: self.seq, command: command.to_string(), arguments };
        self.messages = self.session.handle(&request);
    }

    /// The body of the answer.
    fn ask(&mut self, command: &str, arguments: Value) -> Value {
        self.send(command, arguments);
        let answer = self.messages.iter().find(|message| message["request_seq"] == self.seq).expect("an answer");
        assert_eq!(answer["success"], true, "{answer}");
        answer["body"].clone()
    }

    /// The reason of the error that answers a request.
    fn refused(&mut self, command: &str, arguments: Value) -> String {
        self.send(command, arguments);
        assert_eq!(self.messages.len(), 1, "{:?}", self.messages);
        assert_eq!(self.messages[0]["success"], false, "{}", self.messages[0]);
        self.messages[0]["message"].as_str().expect("a text").to_string()
    }

    /// Moves, and returns the reason and the thread of the stop.
    fn move_by(&mut self, command: &str, thread: i64) -> (String, i64) {
        self.ask(command, json!({ "threadId": thread }));
        self.stop()
    }

    fn stop(&self) -> (String, i64) {
        let stopped = self.messages.last().expect("an event");
        assert_eq!(stopped["event"], "stopped", "{stopped}");
        let reason = stopped["body"]["reason"].as_str().expect("a reason");
        (reason.to_string(), stopped["body"]["threadId"].as_i64().expect("a thread"))
    }

    fn line(&mut self, thread: i64) -> i64 {
        let stack = self.ask("stackTrace", json!({ "threadId": thread }));
        stack["stackFrames"][0]["line"].as_i64().expect("a line")
    }

    fn value(&mut self, expression: &str) -> String {
        let answer = self.ask("evaluate", json!({ "expression": expression, "context": "watch" }));
        answer["result"].as_str().expect("a text").to_string()
    }

    /// Everything that a client can see.
    fn everything(&mut self) -> Vec<Value> {
        let threads = self.ask("threads", json!({}));
        let ids: Vec<i64> =
            threads["threads"].as_array().expect("threads").iter().filter_map(|thread| thread["id"].as_i64()).collect();
        let mut seen = vec![threads];
        for id in ids {
            let stack = self.ask("stackTrace", json!({ "threadId": id }));
            let scopes = self.ask("scopes", json!({ "frameId": stack["stackFrames"][0]["id"] }));
            for scope in scopes["scopes"].as_array().expect("scopes") {
                seen.push(self.ask("variables", json!({ "variablesReference": scope["variablesReference"] })));
            }
            seen.push(stack);
        }
        seen
    }
}

const CLIENT: i64 = 1;
const SERVER: i64 = 2;

#[test]
fn a_session_starts_in_the_order_of_the_protocol() {
    let mut client = Client::new();
    let capabilities = client.ask("initialize", json!({ "adapterID": "qj" }));
    assert_eq!(capabilities["supportsStepBack"], true);
    client.send("launch", json!({ "program": ROUNDS }));
    // The launch is answered when breakpoints are configured.
    assert!(client.messages.iter().all(|message| message["type"] == "event"), "{:?}", client.messages);
    client.ask("configurationDone", json!({}));
    let kinds: Vec<String> = client.messages.iter().map(|message| message["type"].to_string()).collect();
    assert_eq!(kinds, ["\"response\"", "\"response\"", "\"event\""]);
    assert_eq!(client.messages[1]["command"], "launch");
    assert_eq!(client.stop().0, "entry");
    let numbers: Vec<i64> = client.messages.iter().filter_map(|message| message["seq"].as_i64()).collect();
    assert_eq!(numbers, [3, 4, 5]);
}

#[test]
fn threads_are_instances_with_what_they_wait_for() {
    let mut client = Client::launched(ROUNDS);
    let threads = client.ask("threads", json!({}));
    let names: Vec<&str> =
        threads["threads"].as_array().expect("threads").iter().filter_map(|thread| thread["name"].as_str()).collect();
    assert_eq!(
        names,
        [
            "client waits for server to read ask",
            "server waits for client to write ask",
            "idle[0] waits for no process to write start",
            "idle[1] waits for no process to write start"
        ]
    );
    assert_eq!((client.line(CLIENT), client.line(SERVER)), (7, 15));
}

#[test]
fn steps_go_forwards_and_backwards() {
    let mut client = Client::launched(ROUNDS);
    assert_eq!(client.move_by("stepIn", CLIENT).0, "step");
    assert_eq!((client.line(CLIENT), client.line(SERVER)), (8, 18));
    assert_eq!((client.value("client:number"), client.value("server:seen")), ("7".into(), "1".into()));
    assert_eq!(client.move_by("next", CLIENT), ("step".into(), CLIENT));
    assert_eq!((client.line(CLIENT), client.value("client:number")), (7, "8".into()));
    assert_eq!(client.move_by("stepBack", CLIENT).0, "step");
    assert_eq!((client.line(CLIENT), client.value("client:number")), (8, "7".into()));
    assert_eq!(client.move_by("stepBack", SERVER).0, "entry");
    assert_eq!(client.move_by("stepBack", SERVER).0, "entry");
    assert_eq!(client.line(SERVER), 15);
}

#[test]
fn the_end_is_the_violation() {
    let mut client = Client::launched(ROUNDS);
    assert_eq!(client.move_by("continue", CLIENT).0, "exception");
    let info = client.ask("exceptionInfo", json!({ "threadId": CLIENT }));
    assert_eq!(info["exceptionId"], "deadlock");
    let text = info["description"].as_str().expect("a text").to_string();
    assert!(text.contains("`client` waits at p.esp:8:5 for `server` to write `reply`"), "{text}");
    assert_eq!((client.line(SERVER), client.value("server:seen")), (17, "3".into()));
    // There is nothing behind it.
    assert_eq!(client.move_by("stepIn", CLIENT).0, "exception");
    assert_eq!(client.move_by("reverseContinue", CLIENT).0, "entry");
    client.ask("restart", json!({}));
    assert_eq!(client.stop().0, "entry");
}

#[test]
fn lines_and_communications_stop_a_run() {
    let mut client = Client::launched(ROUNDS);
    let lines = json!([{ "line": 16 }, { "line": 8 }, { "line": 90 }]);
    let set = client.ask("setBreakpoints", json!({ "source": { "path": "/p/p.esp" }, "breakpoints": lines }));
    let of = |key: &str| set["breakpoints"].as_array().expect("each").iter().map(|each| each[key].clone()).collect();
    let (lines, verified): (Vec<Value>, Vec<Value>) = (of("line"), of("verified"));
    // There is no operation in line 16: the next one is in line 17.
    assert_eq!(
        (lines, verified),
        (vec![json!(17), json!(8), Value::Null], vec![json!(true), json!(true), json!(false)])
    );
    assert_eq!(client.move_by("continue", CLIENT), ("breakpoint".into(), CLIENT));
    assert_eq!(client.messages.last().expect("an event")["body"]["hitBreakpointIds"], json!([2]));
    assert_eq!(client.line(CLIENT), 8);
    // The other one is at the violation.
    client.ask("setBreakpoints", json!({ "source": { "path": "/p/p.esp" }, "breakpoints": [{ "line": 17 }] }));
    assert_eq!(client.move_by("continue", CLIENT).0, "exception");
    assert_eq!(client.move_by("reverseContinue", CLIENT).0, "entry");

    let names = json!([{ "name": "in reply" }, { "name": "nothing" }]);
    let set = client.ask("setFunctionBreakpoints", json!({ "breakpoints": names }));
    assert_eq!((&set["breakpoints"][0]["verified"], &set["breakpoints"][1]["verified"]), (&json!(true), &json!(false)));
    assert_eq!(client.move_by("continue", SERVER), ("breakpoint".into(), CLIENT));
    assert_eq!(client.value("client:number"), "8");
    assert_eq!(client.move_by("continue", SERVER), ("breakpoint".into(), CLIENT));
    assert_eq!(client.move_by("reverseContinue", SERVER), ("breakpoint".into(), CLIENT));
    assert_eq!(client.value("client:number"), "8");
    let found =
        client.ask("breakpointLocations", json!({ "source": { "path": "/p/p.esp" }, "line": 7, "endLine": 15 }));
    assert_eq!(found["breakpoints"], json!([{ "line": 7 }, { "line": 8 }, { "line": 15 }]));
}

#[test]
fn a_cycle_starts_again() {
    let mut client = Client::launched(TOGGLE);
    assert_eq!(client.move_by("continue", 1).0, "exception");
    let end = client.value("toggle:on");
    let mut values = Vec::new();
    for _ in 0..4 {
        client.move_by("stepIn", 1);
        values.push(client.value("toggle:on"));
    }
    values.sort();
    assert_eq!(values, ["0", "0", "1", "1"], "after {end}");
}

#[test]
fn every_stop_looks_the_same_from_both_sides() {
    let mut random = fastrand::Rng::with_seed(1);
    for text in [ROUNDS, TOGGLE] {
        for _ in 0..Effort::wanted().pick(2, 20, 2_000) {
            let mut client = Client::launched(text);
            // Not into the repetition of a cycle, whose start has another stop before it.
            let count = random.usize(1..=2);
            let mut seen = vec![client.everything()];
            for _ in 0..count {
                client.move_by("stepIn", 1);
                seen.push(client.everything());
            }
            for expected in seen.iter().rev().skip(1) {
                // Some thread has taken the last step.
                let before = client.everything();
                for thread in 1..=4 {
                    client.send("stepBack", json!({ "threadId": thread }));
                    if client.everything() == *expected {
                        break;
                    }
                    // It was not this one: forwards again.
                    while client.everything() != before {
                        client.move_by("stepIn", 1);
                    }
                }
                assert_eq!(client.everything(), *expected);
            }
        }
    }
}

#[test]
fn wrong_requests_are_refused_with_a_reason() {
    let mut client = Client::new();
    assert!(client.refused("threads", json!({})).contains("`launch`"));
    assert!(client.refused("setBreakpoints", json!({ "source": {} })).contains("`launch`"));
    assert!(client.refused("launch", json!({})).contains("malformed"));
    assert_eq!(client.refused("launch", json!({ "program": "" })), "no program");
    let mut client = Client::launched(ROUNDS);
    assert!(client.refused("launch", json!({ "program": ROUNDS })).contains("already"));
    assert!(client.refused("stackTrace", json!({ "threadId": 99 })).contains("99"));
    assert!(client.refused("scopes", json!({ "frameId": -1 })).contains("-1"));
    assert!(client.refused("variables", json!({ "variablesReference": i64::MAX })).contains("no variables"));
    assert!(client.refused("source", json!({ "sourceReference": 9 })).contains("no such source"));
    assert!(client.refused("setVariable", json!({})).contains("not supported"));
    let cause = client.refused("evaluate", json!({ "expression": "client:numbre" }));
    assert_eq!(cause, "`client` has no variable `numbre` here; it has `number`, `answer`");
    assert!(client.refused("evaluate", json!({ "expression": "x:y" })).contains("no instance `x`"));
}

#[test]
fn a_program_without_violation_ends_the_session() {
    let mut client = Client::new();
    client.ask("launch", json!({ "program": "holds" }));
    assert_eq!(client.messages[0]["body"]["output"], "it holds\n");
    assert_eq!(client.messages.last().expect("an event")["event"], "terminated");
}

#[test]
fn arbitrary_requests_are_answered() {
    const COMMANDS: [&str; 24] = [
        "initialize",
        "launch",
        "configurationDone",
        "threads",
        "stackTrace",
        "scopes",
        "variables",
        "evaluate",
        "exceptionInfo",
        "source",
        "loadedSources",
        "breakpointLocations",
        "setBreakpoints",
        "setFunctionBreakpoints",
        "setExceptionBreakpoints",
        "continue",
        "next",
        "stepIn",
        "stepOut",
        "stepBack",
        "reverseContinue",
        "pause",
        "restart",
        "unknown",
    ];
    let mut random = fastrand::Rng::with_seed(2);
    let mut client = Client::launched(ROUNDS);
    for _ in 0..Effort::wanted().pick(500, 5_000, 500_000) {
        let command = COMMANDS[random.usize(..COMMANDS.len())];
        let number = random.choice([-1, 0, 1, 2, 3, 4, 5, 9, 256, 257, 512, 700, i64::MAX, i64::MIN]);
        let number = number.expect("there are some");
        let arguments = match random.u32(..8) {
            0 => Value::Null,
            1 => json!([number]),
            2 => json!({ "threadId": "1", "frameId": [], "variablesReference": {} }),
            _ => json!({
                "program": "", "threadId": number, "frameId": number, "variablesReference": number,
                "sourceReference": number.unsigned_abs(), "source": { "path": "/p/p.esp" },
                "line": number.unsigned_abs() as u32, "endLine": 20,
                "breakpoints": [{ "line": number.unsigned_abs() as u32, "name": "out ask" }],
                "expression": "client:number",
            }),
        };
        client.send(command, arguments);
        let answers = client.messages.iter().filter(|message| message["type"] == "response").count();
        assert!(answers >= 1, "{command}: {:?}", client.messages);
    }
    assert!(!client.session.is_over());
    client.ask("disconnect", json!({}));
    assert!(client.session.is_over());
}
