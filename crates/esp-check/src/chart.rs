//! A run as a message-sequence chart in SVG: a line per instance, an arrow per message, time runs down.
//!
//! ```text
//!     host        hostRequest     world
//!      |  c(0, 4096)   |            |
//!      |-------------->|            |
//!      |               |-- d(1) --->|
//!      |               x  waits here
//! ```

use crate::counterexample::{Counterexample, MAX_CALLS, Problem, TraceStep, message_text};
use quaject_esp_exec::step::Step;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use std::fmt::Write as _;

/// Distances in pixels.
const COLUMN: f64 = 170.0;
const ROW: f64 = 34.0;
const HEAD: f64 = 30.0;
const MARGIN: f64 = 24.0;
/// Longer texts are cut: the whole one is told to a pointer that rests on the arrow.
const MAX_CHARACTERS: usize = 26;

const STYLE: &str = "\
text{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;text-anchor:middle;font-size:11px;fill:#17202a}\
.process{fill:#e8f1fb;stroke:#2e6da4;stroke-width:1.4}.environment{fill:#fff4d9;stroke:#b7791f;stroke-width:1.4}\
.life{stroke:#b6c0ca;stroke-dasharray:3 3}.arrow{stroke:#56606b;stroke-width:1.3}.head{fill:#56606b}\
.own{fill:#ffffff;stroke:#7b8794}.wrong{fill:#fdecea;stroke:#b3261e;stroke-width:1.4}.error{fill:#b3261e}\
.cycle{stroke:#b3261e;stroke-width:1.2;fill:none}";

/// A row of the chart.
struct Row {
    from: usize,
    to: usize,
    label: String,
    tip: String,
}

/// Draws a run.
pub fn chart(model: &ModelProgram, found: &Counterexample) -> String {
    let program = &model.program;
    let world = program.instance_count() as usize;
    let mut rows = Vec::new();
    let mut cycle = None;
    for (index, traced) in found.steps.iter().enumerate() {
        if found.cycle == Some(index) {
            cycle = Some(rows.len());
        }
        let wrong = index + 1 == found.steps.len() && found.problem.is_step();
        rows.extend(row(model, traced, world, wrong));
    }
    let wrong = violating_instances(&found.problem);
    let mut shown: Vec<usize> = rows.iter().flat_map(|row| [row.from, row.to]).chain(wrong.clone()).collect();
    shown.sort_unstable();
    shown.dedup();
    let column = |instance: usize| {
        let place = shown.iter().position(|other| *other == instance).unwrap_or(0);
        MARGIN + COLUMN * (place as f64 + 0.5)
    };
    let width = 2.0 * MARGIN + COLUMN * shown.len().max(1) as f64;
    let bottom = MARGIN + HEAD + ROW * (rows.len() as f64 + 1.0);
    let problem = found.problem.text(program);
    let height = bottom + ROW + 16.0 * problem.lines().count() as f64 + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <style>{STYLE}</style>\n"
    );
    let mut put = |line: String| writeln!(svg, "{line}").expect("writing to a string does not fail");
    for instance in &shown {
        let x = column(*instance);
        let (class, name) = if *instance == world {
            ("environment", "environment".to_string())
        } else {
            ("process", program.instance_name(*instance as u32))
        };
        put(format!("<line class=\"life\" x1=\"{x}\" y1=\"{}\" x2=\"{x}\" y2=\"{bottom}\"/>", MARGIN + HEAD));
        let left = x - COLUMN * 0.4;
        put(format!(
            "<rect class=\"{class}\" x=\"{left}\" y=\"{MARGIN}\" width=\"{}\" height=\"{HEAD}\" rx=\"4\"/>",
            COLUMN * 0.8
        ));
        put(format!("<text x=\"{x}\" y=\"{}\">{}</text>", MARGIN + 19.0, escaped(&cut(&name))));
    }
    for (number, row) in rows.iter().enumerate() {
        let y = MARGIN + HEAD + ROW * (number as f64 + 1.0);
        let (from, to) = (column(row.from), column(row.to));
        put(format!("<g><title>{}</title>", escaped(&row.tip)));
        if row.from == row.to {
            put(format!("<circle class=\"own\" cx=\"{from}\" cy=\"{y}\" r=\"5\"/>"));
            put(format!("<text x=\"{}\" y=\"{}\">{}</text>", from + 60.0, y + 4.0, escaped(&cut(&row.label))));
        } else {
            let tip = if to > from { -7.0 } else { 7.0 };
            put(format!("<line class=\"arrow\" x1=\"{from}\" y1=\"{y}\" x2=\"{to}\" y2=\"{y}\"/>"));
            put(format!(
                "<path class=\"head\" d=\"M{to} {y} L{} {} L{} {} Z\"/>",
                to + tip,
                y - 4.0,
                to + tip,
                y + 4.0
            ));
            put(format!("<text x=\"{}\" y=\"{}\">{}</text>", (from + to) / 2.0, y - 5.0, escaped(&cut(&row.label))));
        }
        put("</g>".into());
    }
    if let Some(first) = cycle {
        let top = MARGIN + HEAD + ROW * (first as f64 + 0.4);
        put(format!("<path class=\"cycle\" d=\"M{m} {bottom} H{l} V{top} H{m}\"/>", m = MARGIN, l = MARGIN / 2.0));
    }
    for instance in wrong {
        let x = column(instance);
        put(format!("<circle class=\"wrong\" cx=\"{x}\" cy=\"{bottom}\" r=\"8\"/>"));
    }
    for (number, line) in problem.lines().enumerate() {
        let y = bottom + ROW + 16.0 * number as f64;
        put(format!(
            "<text class=\"error\" style=\"text-anchor:start\" x=\"{MARGIN}\" y=\"{y}\">{}</text>",
            escaped(line)
        ));
    }
    svg.push_str("</svg>\n");
    svg
}

/// A step as a row; none for one that nobody else can see, unless it is the one that goes wrong.
fn row(model: &ModelProgram, traced: &TraceStep, environment: usize, is_violation: bool) -> Option<Row> {
    let program = &model.program;
    let said = traced.message.as_ref();
    let said = said.map_or(String::new(), |(channel, message)| message_text(program, *channel, message));
    let places: Vec<String> = traced.locations.iter().map(|location| location_text(program, *location)).collect();
    let tip = format!("{said} {}", places.join(" -> "));
    let row = |from: u32, to: usize, label: String| Some(Row { from: from as usize, to, label, tip: tip.clone() });
    match traced.step {
        Step::Communicate { sender, receiver, .. } => row(sender, receiver as usize, said),
        Step::FromEnvironment { instance, .. } => {
            Some(Row { from: environment, to: instance as usize, label: said, tip })
        }
        Step::ToEnvironment { instance, .. } => row(instance, environment, said),
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

/// The instances that are wrong at the end.
fn violating_instances(problem: &Problem) -> Vec<usize> {
    let mut is_violation: Vec<usize> = match problem {
        Problem::Fault(report) if report.waits.is_empty() => vec![report.instance as usize],
        Problem::Fault(report) => report.waits.iter().map(|wait| wait.instance as usize).collect(),
        Problem::NonTermination { instance, .. }
        | Problem::Starvation { instance, .. }
        | Problem::Leak { instance, .. } => {
            vec![*instance as usize]
        }
        Problem::Property { .. } => Vec::new(),
    };
    is_violation.dedup();
    is_violation
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
