//! Breakpoints: lines at which an instance arrives or takes a branch, and communications.

use crate::debugged_run::DebuggedRun;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::{ChannelId, Direction};
use serde::Deserialize;
use serde_json::{Value, json};

/// The source that a client names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceReference {
    pub(crate) name: Option<String>,
    pub(crate) path: Option<String>,
    /// The number of a source, from 1.
    pub(crate) source_reference: Option<usize>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SetBreakpoints {
    source: SourceReference,
    #[serde(default)]
    breakpoints: Vec<RequestedLine>,
}

#[derive(Clone, Debug, Deserialize)]
struct RequestedLine {
    line: u32,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct SetFunctionBreakpoints {
    breakpoints: Vec<RequestedChannel>,
}

#[derive(Clone, Debug, Deserialize)]
struct RequestedChannel {
    name: String,
}

/// The breakpoints of a session.
#[derive(Debug, Default)]
pub(crate) struct Breakpoints {
    lines: Vec<LineBreakpoint>,
    channels: Vec<ChannelBreakpoint>,
    last_id: u32,
}

#[derive(Debug)]
struct LineBreakpoint {
    id: u32,
    source: usize,
    line: u32,
}

#[derive(Debug)]
struct ChannelBreakpoint {
    id: u32,
    channel: ChannelId,
    /// The participant at which it stops; none for either.
    direction: Option<Direction>,
}

impl SourceReference {
    /// The source of the run.
    pub(crate) fn find(&self, run: &DebuggedRun) -> Option<usize> {
        if let Some(number) = self.source_reference.filter(|number| *number > 0) {
            return (number <= run.sources.len()).then(|| number - 1);
        }
        let has_path = |path: &String| run.sources.iter().position(|source| source.path.as_ref() == Some(path));
        let has_name = |name: &String| run.sources.iter().position(|source| source.name == *name);
        self.path.as_ref().and_then(has_path).or_else(|| self.name.as_ref().and_then(has_name))
    }
}

impl Breakpoints {
    /// Replaces the breakpoints of a source. A line without an operation stands for the next one that has one.
    pub(crate) fn set_lines(&mut self, run: &DebuggedRun, request: &SetBreakpoints) -> Vec<Value> {
        let source = request.source.find(run);
        self.lines.retain(|breakpoint| Some(breakpoint.source) != source);
        let lines = source.map(|source| run.waiting_lines(source)).unwrap_or_default();
        let mut answers = Vec::new();
        for requested in &request.breakpoints {
            self.last_id += 1;
            let id = self.last_id;
            answers.push(match (source, lines.range(requested.line..).next()) {
                (Some(source), Some(&line)) => {
                    self.lines.push(LineBreakpoint { id, source, line });
                    json!({ "id": id, "verified": true, "line": line })
                }
                (None, _) => unverified(id, "the program of the run has no such file, or another text of it"),
                (Some(_), None) => unverified(id, "no operation is in this line or after it"),
            });
        }
        answers
    }

    /// Replaces the breakpoints at communications: `c`, `in c` or `out c`.
    pub(crate) fn set_channels(&mut self, run: &DebuggedRun, request: &SetFunctionBreakpoints) -> Vec<Value> {
        self.channels.clear();
        let mut answers = Vec::new();
        for requested in &request.breakpoints {
            self.last_id += 1;
            let id = self.last_id;
            let (direction, name) = match requested.name.trim().split_once(char::is_whitespace) {
                Some(("in", name)) => (Some(Direction::In), name.trim_start()),
                Some(("out", name)) => (Some(Direction::Out), name.trim_start()),
                Some(_) | None => (None, requested.name.trim()),
            };
            let index = run.program().channels.iter().position(|channel| channel.name == name);
            answers.push(match index {
                Some(index) => {
                    let channel = ChannelId(index as u32);
                    self.channels.push(ChannelBreakpoint { id, channel, direction });
                    json!({ "id": id, "verified": true })
                }
                None => unverified(id, "a breakpoint by name is `CHANNEL`, `in CHANNEL` or `out CHANNEL`"),
            });
        }
        answers
    }

    /// The breakpoints that are hit at a stop, and the instance that hits the first.
    pub(crate) fn hit(&self, run: &DebuggedRun, at: usize) -> Option<(Vec<u32>, u32)> {
        let mut ids = Vec::new();
        let mut first = None;
        for breakpoint in &self.lines {
            if let Some(instance) = breakpoint.hitting_instance(run, at) {
                ids.push(breakpoint.id);
                first.get_or_insert(instance);
            }
        }
        for breakpoint in &self.channels {
            if let Some(instance) = breakpoint.hitting_instance(run, at) {
                ids.push(breakpoint.id);
                first.get_or_insert(instance);
            }
        }
        first.map(|instance| (ids, instance))
    }
}

fn unverified(id: u32, message: &str) -> Value {
    json!({ "id": id, "verified": false, "message": message })
}

impl LineBreakpoint {
    /// The participant of the step before the stop that has arrived at the line, or has taken a branch in it while it
    /// waited at another.
    fn hitting_instance(&self, run: &DebuggedRun, at: usize) -> Option<u32> {
        let stop = &run.stops[at];
        let is_here = |location| run.source_line(location) == Some((self.source, self.line));
        let arrives = |instance: &&u32| run.status(at, **instance).is_some_and(|status| is_here(status.location));
        if let Some(instance) = stop.actors.iter().find(arrives) {
            return Some(*instance);
        }
        let before = at.checked_sub(1)?;
        let locations = &run.found.steps[stop.step?].locations;
        let was_here = |instance: u32| run.status(before, instance).is_some_and(|status| is_here(status.location));
        let takes = stop.actors.iter().zip(locations).find(|(actor, at)| is_here(**at) && !was_here(**actor));
        takes.map(|(actor, _)| *actor)
    }
}

impl ChannelBreakpoint {
    fn hitting_instance(&self, run: &DebuggedRun, at: usize) -> Option<u32> {
        let traced = &run.found.steps[run.stops[at].step?];
        let (channel, _) = traced.message.as_ref()?;
        let (sender, receiver) = match traced.step {
            Step::Communicate { sender, receiver, .. } => (Some(sender), Some(receiver)),
            Step::FromEnvironment { instance, .. } => (None, Some(instance)),
            Step::ToEnvironment { instance, .. } => (Some(instance), None),
            Step::Local { .. } | Step::After { .. } | Step::Else { .. } => (None, None),
        };
        if *channel != self.channel {
            return None;
        }
        match self.direction {
            Some(Direction::In) => receiver,
            Some(Direction::Out) => sender,
            None => receiver.or(sender),
        }
    }
}
