//! The messages of the Debug Adapter Protocol: requests as they are read, and the messages that a session sends.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// A request of the client.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct Request {
    /// The number of the message.
    pub seq: i64,
    /// The command.
    pub command: String,
    /// The arguments, if the command has any.
    #[serde(default)]
    pub arguments: Value,
}

/// The arguments of `launch`.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    /// A file of `qj verify --trace`, or a program, which is verified.
    pub program: String,
    /// The model of the program.
    #[serde(default)]
    pub model: Option<String>,
    /// Further words of the command line of `qj verify`.
    #[serde(default)]
    pub verify_arguments: Vec<String>,
    /// Whether the session stops at the start of the run.
    #[serde(default = "yes")]
    pub stop_on_entry: bool,
}

fn yes() -> bool {
    true
}

/// The arguments of a request, or why they cannot be read.
pub(crate) fn arguments<T: DeserializeOwned>(request: &Request) -> Result<T, String> {
    serde_json::from_value(request.arguments.clone())
        .map_err(|error| format!("the arguments of `{}` are malformed: {error}", request.command))
}

/// The messages that are sent, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    last: i64,
    messages: Vec<Value>,
}

impl Outbox {
    /// The messages since the last call.
    pub(crate) fn take(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.messages)
    }

    /// Answers a request.
    pub(crate) fn respond(&mut self, request: &Request, body: Value) {
        self.push(json!({
            "type": "response",
            "request_seq": request.seq,
            "success": true,
            "command": request.command,
            "body": body,
        }));
    }

    /// Answers a request with an error, which the client shows.
    pub(crate) fn refuse(&mut self, request: &Request, cause: &str) {
        self.push(json!({
            "type": "response",
            "request_seq": request.seq,
            "success": false,
            "command": request.command,
            "message": cause,
            // `format` has placeholders in braces.
            "body": { "error": {
                "id": 1,
                "format": "{cause}",
                "variables": { "cause": cause },
                "showUser": true,
            } },
        }));
    }

    /// Sends an event.
    pub(crate) fn event(&mut self, name: &str, body: Value) {
        self.push(json!({ "type": "event", "event": name, "body": body }));
    }

    /// Sends a line to the client's console.
    pub(crate) fn print(&mut self, line: &str) {
        self.event("output", json!({ "category": "console", "output": format!("{line}\n") }));
    }

    fn push(&mut self, mut message: Value) {
        self.last += 1;
        message["seq"] = self.last.into();
        self.messages.push(message);
    }
}
