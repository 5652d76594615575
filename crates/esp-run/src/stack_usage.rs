//! The worst-case stack of a function, from the call graph that gcc writes with `-fcallgraph-info=su`: a node for each
//! function with the bytes of its frame, an edge for each call. Knows nothing of ESP.
//!
//! ```text
//! node: { title: "program.c:f" label: "f\\nprogram.c:2:49\\n64 bytes (static)" }
//! node: { title: "memmove" label: "memmove\\n<built-in>" shape : ellipse }
//! edge: { sourcename: "program.c:f" targetname: "memmove" label: "program.c:2:65" }
//! ```

use quaject_esp_gen::c::StackUse;
use std::collections::{BTreeMap, BTreeSet};

/// The title of the node to which calls by an address lead.
const INDIRECT: &str = "__indirect_call";

/// Functions by title.
pub(crate) struct CallGraph {
    /// The bytes of the frame; none for a function outside of the file.
    frames: BTreeMap<String, StackFrame>,
    calls: BTreeMap<String, BTreeSet<String>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum StackFrame {
    Bytes(u64),
    /// It depends on values.
    Unbounded,
    /// The function is not part of the file.
    Outside,
}

impl CallGraph {
    pub(crate) fn parse(text: &str) -> CallGraph {
        let (mut frames, mut calls) = (BTreeMap::new(), BTreeMap::<String, BTreeSet<String>>::new());
        for line in text.lines() {
            if let (Some(title), Some(label)) = (attribute(line, "node: { title: "), attribute(line, "label: ")) {
                frames.insert(title.to_string(), frame(label));
            }
            if let (Some(from), Some(to)) = (attribute(line, "sourcename: "), attribute(line, "targetname: ")) {
                calls.entry(from.to_string()).or_default().insert(to.to_string());
            }
        }
        CallGraph { frames, calls }
    }

    /// The stack of a function; none if the file does not have it. The error is a reason in words.
    pub(crate) fn stack_of(&self, function: &str) -> Result<Option<StackUse>, String> {
        match self.frames.get(function) {
            None | Some(StackFrame::Outside) => Ok(None),
            Some(StackFrame::Bytes(_) | StackFrame::Unbounded) => {
                let stack = self.depth(function, &mut Vec::new(), &mut BTreeMap::new())?;
                let outside = stack.outside.into_iter();
                let named = |(title, bytes)| match title == INDIRECT {
                    true => ("a function by its address".to_string(), bytes),
                    false => (format!("`{title}`"), bytes),
                };
                Ok(Some(StackUse { bytes: stack.bytes, outside: outside.map(named).collect() }))
            }
        }
    }

    /// The stack from a function on, each function computed once. `chain` has the functions that lead to it.
    fn depth<'g>(
        &'g self,
        function: &'g str,
        chain: &mut Vec<&'g str>,
        known: &mut BTreeMap<&'g str, Depth>,
    ) -> Result<Depth, String> {
        if let Some(depth) = known.get(function) {
            return Ok(depth.clone());
        }
        if chain.contains(&function) {
            return Err(format!("`{function}` is recursive"));
        }
        let own = match self.frames.get(function) {
            Some(StackFrame::Bytes(bytes)) => *bytes,
            Some(StackFrame::Unbounded) => return Err(format!("the frame of `{function}` depends on values")),
            Some(StackFrame::Outside) | None => {
                return Ok(Depth { bytes: 0, outside: BTreeMap::from([(function.to_string(), 0)]) });
            }
        };
        chain.push(function);
        let mut depth = Depth { bytes: own, outside: BTreeMap::new() };
        for callee in self.calls.get(function).into_iter().flatten() {
            let below = self.depth(callee, chain, known)?;
            depth.bytes = depth.bytes.max(own + below.bytes);
            for (name, bytes) in below.outside {
                let deepest = depth.outside.entry(name).or_default();
                *deepest = (*deepest).max(own + bytes);
            }
        }
        chain.pop();
        known.insert(function, depth.clone());
        Ok(depth)
    }
}

/// Bytes on the deepest chain of calls, and those in use when a function outside is called.
#[derive(Clone)]
struct Depth {
    bytes: u64,
    outside: BTreeMap<String, u64>,
}

/// The text in quotes behind a key.
fn attribute<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    let rest = line.split_once(key)?.1.strip_prefix('"')?;
    rest.split_once('"').map(|(text, _)| text)
}

/// The frame in a label: its last part, as `64 bytes (static)`.
fn frame(label: &str) -> StackFrame {
    let part = label.split("\\n").find_map(|part| part.split_once(" bytes ("));
    match part {
        Some((bytes, "static)" | "dynamic,bounded)")) => bytes.parse().map_or(StackFrame::Unbounded, StackFrame::Bytes),
        Some(_) => StackFrame::Unbounded,
        None => StackFrame::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(lines: &[&str]) -> CallGraph {
        let node = |line: &&str| match line.split_once(' ') {
            Some((from, to)) if to.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') => {
                format!("edge: {{ sourcename: \"{from}\" targetname: \"{to}\" label: \"a.c:1:1\" }}\n")
            }
            Some((name, frame)) => format!("node: {{ title: \"{name}\" label: \"{name}\\na.c:1:1\\n{frame}\" }}\n"),
            None => format!("node: {{ title: \"{line}\" label: \"{line}\\na.c:1:1\" shape : ellipse }}\n"),
        };
        CallGraph::parse(&lines.iter().map(node).collect::<String>())
    }

    #[test]
    fn the_deepest_chain_of_calls_counts() {
        let graph = graph(&[
            "top 16 bytes (static)",
            "a 100 bytes (static)",
            "b 8 bytes (static)",
            "c 120 bytes (dynamic,bounded)",
            "memmove",
            "top a",
            "top b",
            "b c",
            "a memmove",
            "top memmove",
            "b __indirect_call",
        ]);
        let outside = vec![("a function by its address".to_string(), 24), ("`memmove`".to_string(), 116)];
        assert_eq!(graph.stack_of("top"), Ok(Some(StackUse { bytes: 144, outside })));
        assert_eq!(graph.stack_of("memmove"), Ok(None));
        assert_eq!(graph.stack_of("none"), Ok(None));
    }

    #[test]
    fn recursion_and_frames_of_any_size_have_no_bound() {
        let recursive = graph(&["a 8 bytes (static)", "b 8 bytes (static)", "a b", "b a"]);
        assert_eq!(recursive.stack_of("a"), Err("`a` is recursive".to_string()));
        let dynamic = graph(&["a 8 bytes (static)", "b 8 bytes (dynamic)", "a b"]);
        assert_eq!(dynamic.stack_of("a"), Err("the frame of `b` depends on values".to_string()));
    }
}
