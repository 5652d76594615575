//! Pictures in SVG: boxes, pills and arrows, positioned by `layout`. Knows nothing of their meaning.

use crate::bands::{self, Band, Place};
use crate::layout::{self, Graph, Layout, Point, Rectangle};
use std::fmt::Write;

/// One box or pill of the picture.
pub(crate) struct Node {
    /// How it looks: a class of the style.
    pub(crate) class: &'static str,
    pub(crate) shape: Shape,
    /// Its text.
    pub(crate) label: String,
    /// Smaller text below the label.
    pub(crate) note: String,
    /// The tooltip.
    pub(crate) tip: String,
}

/// The shape of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// A box.
    Box,
    /// Two stacked boxes: a replicated process.
    Stack,
    /// A pill.
    Pill,
}

impl Node {
    /// A state of a process.
    pub(crate) fn state(label: &str, note: &str) -> Node {
        let (label, note) = (shortened(label), shortened(note));
        Node { class: "process", shape: Shape::Box, tip: format!("{label} {note}"), label, note }
    }

    /// An exit or end of code.
    pub(crate) fn end(label: &str, tip: &str) -> Node {
        let class = if label == "exit" { "channel" } else { "environment" };
        Node { class, shape: Shape::Pill, label: shortened(label), note: String::new(), tip: tip.to_string() }
    }
}

/// A text, truncated to [`NOTE_CHARACTERS`]: the tooltip has the full text.
pub(crate) fn shortened(text: &str) -> String {
    let cut = text.chars().count() > NOTE_CHARACTERS;
    if cut { text.chars().take(NOTE_CHARACTERS - 1).chain(['…']).collect() } else { text.to_string() }
}

/// Width of a character of the label and of the note, heights of lines, and padding around text, in pixels.
const LABEL_ADVANCE: f64 = 8.0;
const NOTE_ADVANCE: f64 = 6.3;
const LABEL_LINE: f64 = 18.0;
const NOTE_LINE: f64 = 14.0;
const PADDING: f64 = 11.0;
const MARGIN: f64 = 24.0;
/// The width of a page of paper, A4 landscape, at 96 pixels an inch: wider pictures are split into bands.
const PAGE_WIDTH: f64 = 1122.0;
/// Space between bands.
const BAND_GAP: f64 = 48.0;
/// The offset of the second box of [`Shape::Stack`].
const STACK: f64 = 4.0;
/// The maximal length of labels and notes.
const NOTE_CHARACTERS: usize = 30;

const STYLE: &str = "\
text{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;text-anchor:middle}\
.label{font-size:13px;fill:#17202a}.note{font-size:10.5px;fill:#5d6d7e}\
.process{fill:#e8f1fb;stroke:#2e6da4;stroke-width:1.4}.channel{fill:#ffffff;stroke:#7b8794;stroke-width:1.1}\
.environment{fill:#fff4d9;stroke:#b7791f;stroke-width:1.4}.shared{stroke-dasharray:5 3}.copy{stroke-dasharray:2 3;fill-opacity:0.4}\
.arrow{fill:none;stroke:#56606b;stroke-width:1.3}.head{fill:#56606b}";

/// Draws nodes and the edges between them.
pub(crate) fn draw(nodes: &[Node], edges: Vec<(usize, usize)>) -> String {
    let graph = Graph { sizes: nodes.iter().map(size).collect(), edges };
    // A pill is small, and has few edges.
    let copied_end = |(from, to): (usize, usize)| match (nodes[from].shape, nodes[to].shape) {
        (Shape::Pill, Shape::Box | Shape::Stack) => from,
        (Shape::Pill, Shape::Pill) | (Shape::Box | Shape::Stack, _) => to,
    };
    let bands = bands::split(&graph, PAGE_WIDTH - 2.0 * MARGIN, &copied_end);
    let placed: Vec<(Band, Layout)> = bands
        .into_iter()
        .map(|band| {
            let layout = layout::place(&band.graph);
            (band, layout)
        })
        .collect();

    let width = placed.iter().map(|(_, layout)| layout.size.0).fold(0.0, f64::max) + 2.0 * MARGIN;
    let heights = placed.iter().map(|(_, layout)| layout.size.1 + BAND_GAP).sum::<f64>();
    let height = (heights - BAND_GAP).max(0.0) + 2.0 * MARGIN;
    let mut svg = String::new();
    let _ = write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"{0:.0} {0:.0} {width:.0} {height:.0}\">\n<style>{STYLE}</style>\n\
         <rect x=\"{0:.0}\" y=\"{0:.0}\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        -MARGIN
    );
    let mut top = 0.0;
    for (band, layout) in &placed {
        let _ = writeln!(svg, "<g transform=\"translate(0 {top:.1})\">");
        for route in &layout.routes {
            arrow(&mut svg, route);
        }
        for (member, rectangle) in band.nodes.iter().zip(&layout.nodes) {
            shape(&mut svg, &nodes[member.node], member.place, rectangle);
        }
        svg.push_str("</g>\n");
        top += layout.size.1 + BAND_GAP;
    }
    svg.push_str("</svg>\n");
    svg
}

/// The size of a node, by its text.
fn size(node: &Node) -> (f64, f64) {
    let label = node.label.chars().count() as f64 * LABEL_ADVANCE;
    let note = node.note.chars().count() as f64 * NOTE_ADVANCE;
    let lines = if node.note.is_empty() { LABEL_LINE } else { LABEL_LINE + NOTE_LINE };
    let least = match node.shape {
        Shape::Box | Shape::Stack => 34.0,
        Shape::Pill => 22.0,
    };
    (label.max(note) + 2.0 * PADDING, (lines + PADDING).max(least))
}

fn arrow(svg: &mut String, route: &[Point]) {
    let (Some(first), Some(last)) = (route.first(), route.last()) else { return };
    let _ = write!(svg, "<path class=\"arrow\" d=\"M{:.1} {:.1}", first.x, first.y);
    // The arrow's head is as long as this; the line ends inside it.
    const HEAD: f64 = 8.0;
    let before = route.iter().rev().nth(1).unwrap_or(first);
    let flow = if last.x >= before.x { 1.0 } else { -1.0 };
    for (index, (from, to)) in route.iter().zip(route.iter().skip(1)).enumerate() {
        let end = if index + 2 == route.len() { to.x - flow * HEAD / 2.0 } else { to.x };
        if from.y == to.y {
            let _ = write!(svg, " L{end:.1} {:.1}", to.y);
        } else {
            let bend = (from.x + end) / 2.0;
            let _ = write!(svg, " C{bend:.1} {:.1} {bend:.1} {:.1} {end:.1} {:.1}", from.y, to.y, to.y);
        }
    }
    let (x, y) = (last.x, last.y);
    let back = x - flow * HEAD;
    let (above, below) = (y - 3.6, y + 3.6);
    let _ =
        writeln!(svg, "\"/><path class=\"head\" d=\"M{x:.1} {y:.1} L{back:.1} {above:.1} L{back:.1} {below:.1}Z\"/>");
}

fn shape(svg: &mut String, node: &Node, place: Place, rectangle: &Rectangle) {
    let class = match place {
        Place::Here => node.class.to_string(),
        Place::Above | Place::Below => format!("{} copy", node.class),
    };
    let corner = match node.shape {
        Shape::Box | Shape::Stack => 5.0,
        Shape::Pill => rectangle.height / 2.0,
    };
    let tip = match place {
        Place::Here => node.tip.clone(),
        Place::Above => format!("{}, drawn above", node.tip),
        Place::Below => format!("{}, drawn below", node.tip),
    };
    let _ = write!(svg, "<g><title>{}</title>", escape(&tip));
    let mut outline = |offset: f64| {
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\" rx=\"{corner:.1}\"/>",
            rectangle.left + offset,
            rectangle.top - offset,
            rectangle.width,
            rectangle.height
        );
    };
    if node.shape == Shape::Stack {
        outline(STACK);
    }
    outline(0.0);
    let x = rectangle.left + rectangle.width / 2.0;
    let middle = rectangle.middle();
    // SVG positions text by its baseline, a third of the font size below the middle of the line.
    let (label, note) = if node.note.is_empty() { (middle + 4.5, 0.0) } else { (middle - 2.0, middle + 12.5) };
    let _ = write!(svg, "<text class=\"label\" x=\"{x:.1}\" y=\"{label:.1}\">{}</text>", escape(&node.label));
    if !node.note.is_empty() {
        let _ = write!(svg, "<text class=\"note\" x=\"{x:.1}\" y=\"{note:.1}\">{}</text>", escape(&node.note));
    }
    svg.push_str("</g>\n");
}

fn escape(text: &str) -> String {
    // XML has no way to write these at all.
    let is_none = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r') || matches!(c, '\u{fffe}' | '\u{ffff}');
    let text = text.replace(is_none, "\u{fffd}");
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
