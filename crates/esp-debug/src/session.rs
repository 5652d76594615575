//! A session: the state between requests, and what each request does.

use crate::breakpoints::{Breakpoints, SetBreakpoints, SetFunctionBreakpoints, SourceReference};
use crate::debugged_run::DebuggedRun;
use crate::navigation::{Arrival, Position, Target};
use crate::protocol::{Launch, Outbox, Request, arguments};
use crate::view;
use serde::Deserialize;
use serde_json::{Value, json};

/// Finds the run that a client wants to debug.
pub trait RunLoader {
    /// Loads the run of a `launch`. The error is a message for the user.
    fn load(&mut self, launch: &Launch) -> Result<LaunchedRun, String>;
}

/// The result of loading a run.
#[derive(Debug)]
pub struct LaunchedRun {
    /// The run; none if there is nothing to debug: the program was verified and has no violation.
    pub run: Option<DebuggedRun>,
    /// Lines for the user.
    pub output: String,
}

/// A session with a client.
#[derive(Debug)]
pub struct Session<L> {
    loader: L,
    outbox: Outbox,
    /// The run, from its `launch` on.
    run: Option<DebuggedRun>,
    position: Position,
    breakpoints: Breakpoints,
    /// The `launch` that is answered when the client has configured its breakpoints.
    launching: Option<(Request, Launch)>,
    is_over: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfThread {
    thread_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFrame {
    frame_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfVariables {
    variables_reference: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluate {
    expression: String,
    frame_id: Option<i64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfSource {
    #[serde(default)]
    source: SourceReference,
    #[serde(default)]
    source_reference: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LocationsOfSource {
    source: SourceReference,
    line: u32,
    end_line: Option<u32>,
}

const NO_RUN: &str = "no run is loaded: the first request is `launch`";

impl<L: RunLoader> Session<L> {
    /// A session before its first request.
    pub fn new(loader: L) -> Session<L> {
        Session {
            loader,
            outbox: Outbox::default(),
            run: None,
            position: Position::default(),
            breakpoints: Breakpoints::default(),
            launching: None,
            is_over: false,
        }
    }

    /// Whether the client has ended the session.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Handles a request and returns the messages for the client, in order.
    pub fn handle(&mut self, request: &Request) -> Vec<Value> {
        if let Err(cause) = self.dispatch(request) {
            self.outbox.refuse(request, &cause);
        }
        self.outbox.take()
    }

    fn dispatch(&mut self, request: &Request) -> Result<(), String> {
        match request.command.as_str() {
            "initialize" => self.outbox.respond(request, capabilities()),
            "launch" => self.launch(request)?,
            "configurationDone" => self.start(request)?,
            "disconnect" | "terminate" => self.end(request),
            "restart" => {
                self.run()?;
                self.position = Position::default();
                self.outbox.respond(request, json!({}));
                self.report(Arrival::Start);
            }
            "setBreakpoints" => {
                let wanted: SetBreakpoints = arguments(request)?;
                let run = self.run.as_ref().ok_or(NO_RUN)?;
                let set = self.breakpoints.set_lines(run, &wanted);
                self.outbox.respond(request, json!({ "breakpoints": set }));
            }
            "setFunctionBreakpoints" => {
                let wanted: SetFunctionBreakpoints = arguments(request)?;
                let run = self.run.as_ref().ok_or(NO_RUN)?;
                let set = self.breakpoints.set_channels(run, &wanted);
                self.outbox.respond(request, json!({ "breakpoints": set }));
            }
            // The violation always stops: it is the end of the run.
            "setExceptionBreakpoints" => self.outbox.respond(request, json!({})),
            "continue" => self.advance(request, Target::Breakpoint, json!({ "allThreadsContinued": true }))?,
            "next" => self.advance(request, Target::Instance(self.instance(request)?), json!({}))?,
            "stepIn" => self.advance(request, Target::Any, json!({}))?,
            "stepOut" => self.advance(request, Target::Communication(self.instance(request)?), json!({}))?,
            "stepBack" => self.go_back(request, Target::Instance(self.instance(request)?))?,
            "reverseContinue" => self.go_back(request, Target::Breakpoint)?,
            "pause" => {
                let instance = self.instance(request)?;
                self.outbox.respond(request, json!({}));
                self.stopped("pause", instance, json!({}));
            }
            _ => {
                let answer = self.answer(request)?;
                self.outbox.respond(request, answer);
            }
        }
        Ok(())
    }

    /// The answer to a question, which changes nothing.
    fn answer(&self, request: &Request) -> Result<Value, String> {
        let (run, at) = (self.run()?, self.position.at);
        Ok(match request.command.as_str() {
            "threads" => view::threads(run, at),
            "stackTrace" => view::stack(run, at, self.instance(request)?),
            "scopes" => {
                let OfFrame { frame_id } = arguments(request)?;
                let instance = view::instance_of_frame(run, frame_id);
                view::scopes(instance.ok_or_else(|| format!("there is no stack frame {frame_id}"))?)
            }
            "variables" => {
                let OfVariables { variables_reference } = arguments(request)?;
                let variables = view::variables(run, at, variables_reference);
                variables.ok_or_else(|| format!("there are no variables {variables_reference}"))?
            }
            "evaluate" => {
                let Evaluate { expression, frame_id } = arguments(request)?;
                let instance = frame_id.and_then(|frame| view::instance_of_frame(run, frame));
                json!({ "result": view::evaluate(run, at, instance, &expression)?, "variablesReference": 0 })
            }
            "exceptionInfo" => json!({
                "exceptionId": run.found.violation.name(),
                "description": run.found.violation.text(run.program()),
                "breakMode": "always",
            }),
            "source" => {
                let OfSource { source, source_reference } = arguments(request)?;
                let number = SourceReference { source_reference: Some(source_reference), ..source }.find(run);
                json!({ "content": run.sources[number.ok_or("the run has no such source")?].text })
            }
            "loadedSources" => {
                json!({ "sources": (0..run.sources.len()).map(|number| view::source(run, number)).collect::<Vec<_>>() })
            }
            "breakpointLocations" => {
                let LocationsOfSource { source, line, end_line } = arguments(request)?;
                let lines = source.find(run).map(|source| run.waiting_lines(source)).unwrap_or_default();
                let end = end_line.unwrap_or(line);
                let found: Vec<Value> = lines
                    .into_iter()
                    .filter(|other| (line..=end).contains(other))
                    .map(|line| json!({ "line": line }))
                    .collect();
                json!({ "breakpoints": found })
            }
            command => return Err(format!("the request `{command}` is not supported")),
        })
    }

    fn run(&self) -> Result<&DebuggedRun, String> {
        self.run.as_ref().ok_or_else(|| NO_RUN.to_string())
    }

    /// The instance of the thread that a request names.
    fn instance(&self, request: &Request) -> Result<u32, String> {
        let OfThread { thread_id } = arguments(request)?;
        view::instance_of(self.run()?, thread_id).ok_or_else(|| format!("there is no thread {thread_id}"))
    }

    /// Loads the run. Clients configure their breakpoints before the answer.
    fn launch(&mut self, request: &Request) -> Result<(), String> {
        if self.run.is_some() {
            return Err("a run is loaded already".to_string());
        }
        let launch: Launch = arguments(request)?;
        let LaunchedRun { run, output } = self.loader.load(&launch)?;
        output.lines().for_each(|line| self.outbox.print(line));
        let Some(run) = run else {
            self.outbox.respond(request, json!({}));
            self.outbox.event("terminated", json!({}));
            return Ok(());
        };
        self.run = Some(run);
        self.launching = Some((request.clone(), launch));
        self.outbox.event("initialized", json!({}));
        Ok(())
    }

    /// Answers `configurationDone` and then `launch`, and stops for the first time.
    fn start(&mut self, request: &Request) -> Result<(), String> {
        self.run()?;
        self.outbox.respond(request, json!({}));
        if let Some((pending, launch)) = self.launching.take() {
            self.outbox.respond(&pending, json!({}));
            if launch.stop_on_entry {
                self.report(Arrival::Start);
            } else {
                self.go_on(Target::Breakpoint)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, request: &Request) {
        self.is_over = true;
        self.outbox.respond(request, json!({}));
        if request.command == "terminate" {
            self.outbox.event("terminated", json!({}));
        }
    }

    fn advance(&mut self, request: &Request, target: Target, answer: Value) -> Result<(), String> {
        self.run()?;
        self.outbox.respond(request, answer);
        self.go_on(target)
    }

    fn go_on(&mut self, target: Target) -> Result<(), String> {
        let run = self.run.as_ref().ok_or(NO_RUN)?;
        let before = self.position;
        let arrival = self.position.forward(run, target, &self.breakpoints);
        if before.at == run.last() {
            let line = if run.cycle().is_some() { "the cycle starts again" } else { "the run ends here" };
            self.outbox.print(line);
        }
        self.report(arrival);
        Ok(())
    }

    fn go_back(&mut self, request: &Request, target: Target) -> Result<(), String> {
        let run = self.run.as_ref().ok_or(NO_RUN)?;
        let arrival = self.position.backward(run, target, &self.breakpoints);
        self.outbox.respond(request, json!({}));
        self.report(arrival);
        Ok(())
    }

    /// Prints the step before the stop and sends the event that the run has stopped.
    fn report(&mut self, arrival: Arrival) {
        let Some(run) = &self.run else { return };
        let stop = &run.stops[self.position.at];
        if stop.step.is_some() {
            self.outbox.print(&format!("{:>4}  {}", self.position.at, stop.text));
        }
        let actor = stop.actors.last().copied().or_else(|| run.instances().next()).unwrap_or(0);
        let violation = &run.found.violation;
        let (name, text) = (violation.name(), violation.text(run.program()));
        match arrival {
            Arrival::Start => self.stopped("entry", actor, json!({})),
            Arrival::Step(instance) => self.stopped("step", instance, json!({})),
            Arrival::Breakpoint(ids, instance) => {
                self.stopped("breakpoint", instance, json!({ "hitBreakpointIds": ids }));
            }
            Arrival::End => {
                self.outbox.print(&text);
                self.stopped("exception", actor, json!({ "description": name, "text": text }));
            }
        }
    }

    fn stopped(&mut self, reason: &str, instance: u32, mut body: Value) {
        body["reason"] = reason.into();
        body["threadId"] = view::thread_of(instance).into();
        body["allThreadsStopped"] = true.into();
        self.outbox.event("stopped", body);
    }
}

fn capabilities() -> Value {
    json!({
        "supportsConfigurationDoneRequest": true,
        "supportsFunctionBreakpoints": true,
        "supportsEvaluateForHovers": true,
        "supportsStepBack": true,
        "supportsRestartRequest": true,
        "supportsExceptionInfoRequest": true,
        "supportsLoadedSourcesRequest": true,
        "supportsTerminateRequest": true,
        "supportsBreakpointLocationsRequest": true,
    })
}
