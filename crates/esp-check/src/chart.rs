//! A run as a message-sequence chart in SVG: a line per instance, an arrow per message, time runs down.
//!
//! ```text
//!     host        hostRequest     environment
//!      |  c(0, 4096)   |            |
//!      |-------------->|            |
//!      |               |-- d(1) --->|
//!      |               x  waits here
//! ```

use crate::counterexample::{Counterexample, TraceStep, ViolationKind};
use crate::report::{MAX_CALLS, message_text};
use quaject_esp_exec::message_log::MessageLog;
use quaject_esp_exec::report::FaultReport;
use quaject_esp_exec::step::Step;
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::{counted, location_text};
use std::fmt::Write as _;

/// Distances in pixels.
const COLUMN: f64 = 170.0;
const ROW: f64 = 34.0;
const HEAD: f64 = 30.0;
const MARGIN: f64 = 24.0;
/// Longer texts are truncated; the tooltip shows them in full.
const MAX_CHARACTERS: usize = 26;

const STYLE: &str = "\
text{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;text-anchor:middle;font-size:11px;fill:#17202a}\
.process{fill:#e8f1fb;stroke:#2e6da4;stroke-width:1.4}.environment{fill:#fff4d9;stroke:#b7791f;stroke-width:1.4}\
.life{stroke:#b6c0ca;stroke-dasharray:3 3}.arrow{stroke:#56606b;stroke-width:1.3}.head{fill:#56606b}\
.own{fill:#ffffff;stroke:#7b8794}.violation{fill:#fdecea;stroke:#b3261e;stroke-width:1.4}.error{fill:#b3261e}\
.cycle{stroke:#b3261e;stroke-width:1.2;fill:none}";

/// A row of the chart.
struct Row {
    from: usize,
    to: usize,
    label: String,
    tip: String,
}

/// Draws a counterexample.
pub fn chart(model: &ModelProgram, counterexample: &Counterexample) -> String {
    let program = &model.program;
    let mut rows = Vec::new();
    let mut cycle = None;
    for (index, traced) in counterexample.steps.iter().enumerate() {
        if counterexample.cycle == Some(index) {
            cycle = Some(rows.len());
        }
        let is_violation = index + 1 == counterexample.steps.len() && counterexample.violation.is_step();
        rows.extend(row(program, traced, is_violation));
    }
    let violation = &counterexample.violation;
    let ending = Ending { instances: violating_instances(violation), text: violation.text(program) };
    draw(program, &rows, cycle, &ending)
}

/// Draws the messages of a run, and the fault it ended with, if it did.
pub fn run_chart(program: &Program, log: &MessageLog, fault: Option<&FaultReport>) -> String {
    let steps = log.steps.iter().map(|logged| TraceStep {
        step: logged.step,
        message: logged.message.clone(),
        calls: Vec::new(),
        locations: vec![logged.location],
    });
    let rows: Vec<Row> = steps.filter_map(|traced| row(program, &traced, false)).collect();
    let omitted = match log.omitted {
        0 => String::new(),
        omitted => format!("{} not drawn\n", counted(omitted, "later message")),
    };
    let fault = fault.map(|report| ViolationKind::Fault(Box::new(report.clone())));
    let text = fault.as_ref().map_or_else(String::new, |fault| fault.text(program));
    let instances = fault.as_ref().map_or_else(Vec::new, violating_instances);
    draw(program, &rows, None, &Ending { instances, text: omitted + &text })
}

/// What stands below the last row, and the instances it marks.
struct Ending {
    instances: Vec<usize>,
    text: String,
}

fn draw(program: &Program, rows: &[Row], cycle: Option<usize>, ending: &Ending) -> String {
    let environment = program.instance_count() as usize;
    let mut columns: Vec<usize> =
        rows.iter().flat_map(|row| [row.from, row.to]).chain(ending.instances.iter().copied()).collect();
    columns.sort_unstable();
    columns.dedup();
    let bottom = MARGIN + HEAD + ROW * (rows.len() as f64 + 1.0);
    let width = 2.0 * MARGIN + COLUMN * columns.len().max(1) as f64;
    let height = bottom + ROW + 16.0 * ending.text.lines().count() as f64 + MARGIN;
    let svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <style>{STYLE}</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    let mut drawing = Drawing { svg, columns, bottom };
    for instance in drawing.columns.clone() {
        let (class, name) = if instance == environment {
            ("environment", "environment".to_string())
        } else {
            ("process", program.instance_name(instance as u32))
        };
        drawing.life_line(instance, class, &name);
    }
    for (number, row) in rows.iter().enumerate() {
        drawing.row(number, row);
    }
    if let Some(first) = cycle {
        drawing.cycle(first);
    }
    drawing.ending(ending);
    drawing.svg + "</svg>\n"
}

/// The picture so far, the instances of its columns, and the lower end of their life lines.
struct Drawing {
    svg: String,
    columns: Vec<usize>,
    bottom: f64,
}

impl Drawing {
    fn put(&mut self, line: &str) {
        writeln!(self.svg, "{line}").expect("writing to a string does not fail");
    }

    /// The horizontal position of an instance.
    fn x(&self, instance: usize) -> f64 {
        let column = self.columns.iter().position(|other| *other == instance).unwrap_or(0);
        MARGIN + COLUMN * (column as f64 + 0.5)
    }

    fn life_line(&mut self, instance: usize, class: &str, name: &str) {
        let (x, bottom) = (self.x(instance), self.bottom);
        self.put(&format!("<line class=\"life\" x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{bottom}\"/>", MARGIN + HEAD));
        let left = x - COLUMN * 0.4;
        self.put(&format!(
            "<rect class=\"{class}\" x=\"{left}\" y=\"{MARGIN}\" width=\"{}\" height=\"{HEAD}\" rx=\"4\"/>",
            COLUMN * 0.8
        ));
        self.put(&format!("<text x=\"{x}\" y=\"{}\">{}</text>", MARGIN + 19.0, escaped(&cut(name))));
    }

    fn row(&mut self, number: usize, row: &Row) {
        let y = MARGIN + HEAD + ROW * (number as f64 + 1.0);
        let (from, to) = (self.x(row.from), self.x(row.to));
        let label = escaped(&cut(&row.label));
        self.put(&format!("<g><title>{}</title>", escaped(&row.tip)));
        if row.from == row.to {
            self.put(&format!("<circle class=\"own\" cx=\"{from}\" cy=\"{y}\" r=\"5\"/>"));
            self.put(&format!("<text x=\"{}\" y=\"{}\">{label}</text>", from + 60.0, y + 4.0));
        } else {
            let tip = if to > from { -7.0 } else { 7.0 };
            self.put(&format!("<line class=\"arrow\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>"));
            let (x, above, below) = (to + tip, y - 4.0, y + 4.0);
            self.put(&format!("<path class=\"head\" d=\"M{to} {y} L{x} {above} L{x} {below} Z\"/>"));
            self.put(&format!("<text x=\"{}\" y=\"{}\">{label}</text>", (from + to) / 2.0, y - 5.0));
        }
        self.put("</g>");
    }

    /// The bracket of the cycle, from this row on.
    fn cycle(&mut self, first: usize) {
        let top = MARGIN + HEAD + ROW * (first as f64 + 0.4);
        let (bottom, m, l) = (self.bottom, MARGIN, MARGIN / 2.0);
        self.put(&format!("<path class=\"cycle\" d=\"M{m} {bottom} H{l} V{top} H{m}\"/>"));
    }

    fn ending(&mut self, ending: &Ending) {
        let bottom = self.bottom;
        for instance in &ending.instances {
            let x = self.x(*instance);
            self.put(&format!("<circle class=\"violation\" cx=\"{x}\" cy=\"{bottom}\" r=\"8\"/>"));
        }
        for (number, line) in ending.text.lines().enumerate() {
            let y = bottom + ROW + 16.0 * number as f64;
            self.put(&format!(
                "<text class=\"error\" style=\"text-anchor:start\" x=\"{MARGIN}\" y=\"{y}\">{}</text>",
                escaped(line)
            ));
        }
    }
}

/// The row of a step; none for an invisible step that is not the violation.
fn row(program: &Program, traced: &TraceStep, is_violation: bool) -> Option<Row> {
    let environment = program.instance_count() as usize;
    let message = traced.message.as_ref();
    let text = message.map_or(String::new(), |(channel, message)| message_text(program, *channel, message));
    let places: Vec<String> = traced.locations.iter().map(|location| location_text(program, *location)).collect();
    let tip = format!("{text} {}", places.join(" -> "));
    let row = |from: u32, to: usize, label: String| Some(Row { from: from as usize, to, label, tip: tip.clone() });
    match traced.step {
        Step::Communicate { sender, receiver, .. } => row(sender, receiver as usize, text),
        Step::FromEnvironment { instance, .. } => {
            Some(Row { from: environment, to: instance as usize, label: text, tip })
        }
        Step::ToEnvironment { instance, .. } => row(instance, environment, text),
        Step::After { instance, .. } => row(instance, instance as usize, "after".into()),
        Step::Else { instance } => row(instance, instance as usize, "else".into()),
        Step::Local { instance } if is_violation || !traced.calls.is_empty() => {
            let different = traced.calls.chunk_by(|(a, _), (b, _)| a == b).take(MAX_CALLS);
            let calls: Vec<String> =
                different.map(|same| format!("{}()", program.externs[same[0].0.0 as usize].name)).collect();
            row(instance, instance as usize, calls.join(", "))
        }
        Step::Local { .. } => None,
    }
}

/// The instances that the violation names.
fn violating_instances(violation: &ViolationKind) -> Vec<usize> {
    let mut instances: Vec<usize> = match violation {
        ViolationKind::Fault(report) if report.waits.is_empty() => vec![report.instance as usize],
        ViolationKind::Fault(report) => report.waits.iter().map(|wait| wait.instance as usize).collect(),
        ViolationKind::NonTermination { instance, .. }
        | ViolationKind::Starvation { instance, .. }
        | ViolationKind::Leak { instance, .. } => {
            vec![*instance as usize]
        }
        ViolationKind::Property { .. } => Vec::new(),
    };
    instances.dedup();
    instances
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_CHARACTERS {
        return text.to_string();
    }
    text.chars().take(MAX_CHARACTERS - 1).chain(['…']).collect()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
