//! C text under construction. A [`Writer`] owns the indentation, the scope in which names are resolved, and the state
//! that faults and `#line` directives depend on. Each is changed for the duration of a closure ([`Writer::within`],
//! [`Writer::case`], [`Writer::on_channel`], [`Writer::in_loop`]), never set and reset by hand. Knows nothing of
//! instructions, waiting and scheduling.

use super::LineMarks;
use super::faults::Faults;
use super::helpers::Helpers;
use super::names::c_string;
use super::plan::Plan;
use super::storage::StorageMap;
use quaject_esp_ir::ir::{Body, ChannelId, Location, TypeTable};

/// The body in which values and slots are named, and the C function that the text belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scope {
    /// A process, inside the one function that holds all processes.
    Process(usize),
    /// A region of a process: a function of its own.
    Region(usize),
    /// A pure function.
    Function(usize),
}

/// What the `result` terminator of a region returns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RegionResult {
    /// The truth of a guard or condition.
    Boolean,
    /// The values of a message; the location is that of the `out`.
    Message(Location),
}

/// C text under construction.
pub(crate) struct Writer<'p, 'a> {
    pub(crate) plan: &'p Plan<'a>,
    pub(crate) faults: &'p Faults,
    pub(crate) helpers: &'p Helpers,
    pub(crate) text: String,
    pub(crate) region_result: RegionResult,
    /// The fast path whose function is written, if it is one.
    pub(crate) path: Option<usize>,
    scope: Scope,
    indent: usize,
    channel: Option<ChannelId>,
    promoting_loop: Option<usize>,
    /// The source location of the last `#line` directive.
    marked: Location,
}

macro_rules! line {
    ($code:expr, $($arg:tt)*) => { $code.line(&format!($($arg)*)) };
}
pub(crate) use line;

/// Stands for a `#line` directive that leads back to the generated file, whose line numbers are not known yet.
pub(crate) const OWN_LINE: &str = "#line @\n";

impl<'p, 'a> Writer<'p, 'a> {
    pub(crate) fn new(plan: &'p Plan<'a>, faults: &'p Faults, helpers: &'p Helpers, scope: Scope) -> Writer<'p, 'a> {
        Writer {
            plan,
            faults,
            helpers,
            text: String::new(),
            region_result: RegionResult::Boolean,
            path: None,
            scope,
            indent: 1,
            channel: None,
            promoting_loop: None,
            marked: Location::default(),
        }
    }

    /// Writes one line. Labels and preprocessor directives are not indented.
    pub(crate) fn line(&mut self, text: &str) {
        if !text.starts_with('#') && !text.is_empty() {
            let is_label = text.ends_with(':') && !text.starts_with("case ") && text != "default:";
            for _ in 0..if is_label { 0 } else { self.indent } {
                self.text.push_str("    ");
            }
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Opens a block that [`Writer::close`] ends.
    pub(crate) fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 1;
    }

    /// Ends a block.
    pub(crate) fn close(&mut self, text: &str) {
        self.indent -= 1;
        self.line(text);
    }

    /// Writes a block with this head.
    pub(crate) fn block(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.open(head);
        body(self);
        self.close("}");
    }

    /// Writes the body inside `if (condition)`, or as it is if there is no condition.
    pub(crate) fn guarded(&mut self, condition: Option<&str>, body: impl FnOnce(&mut Self)) {
        match condition {
            Some(condition) => self.block(&format!("if ({condition}) {{"), body),
            None => body(self),
        }
    }

    /// Writes one case of a `switch`; `head` is `case N:` or `default:`.
    pub(crate) fn case(&mut self, head: &str, body: impl FnOnce(&mut Self)) {
        self.line(head);
        self.indent += 1;
        body(self);
        self.indent -= 1;
    }

    /// Writes the case that does nothing, and ends the `switch`.
    pub(crate) fn close_switch(&mut self) {
        self.line("default:");
        self.line("    break;");
        self.close("}");
    }

    /// Writes text that the compiler sees only under `#ifdef __OPTIMIZE_SIZE__`.
    pub(crate) fn if_optimizing_for_size(&mut self, small: impl FnOnce(&mut Self)) {
        self.line("#ifdef __OPTIMIZE_SIZE__");
        small(self);
        self.line("#endif");
    }

    /// The scope in which values and slots are named.
    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    /// Names values and slots of another scope while the closure runs.
    pub(crate) fn within<R>(&mut self, scope: Scope, body: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.scope, scope);
        let result = body(self);
        self.scope = outer;
        result
    }

    /// The channel that faults of the text name, if it is written for one.
    pub(crate) fn channel(&self) -> Option<ChannelId> {
        self.channel
    }

    /// Faults name this channel while the closure runs.
    pub(crate) fn on_channel<R>(&mut self, channel: Option<ChannelId>, body: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.channel, channel);
        let result = body(self);
        self.channel = outer;
        result
    }

    /// The loop that is written, if it holds frame values in locals.
    pub(crate) fn promoting_loop(&self) -> Option<usize> {
        self.promoting_loop
    }

    /// Values are where this loop holds them while the closure runs; where the frame holds them, if there is none.
    pub(crate) fn in_loop<R>(&mut self, promoting_loop: Option<usize>, body: impl FnOnce(&mut Self) -> R) -> R {
        let outer = std::mem::replace(&mut self.promoting_loop, promoting_loop);
        let result = body(self);
        self.promoting_loop = outer;
        result
    }

    /// Attributes the following lines to this location of the source.
    pub(crate) fn mark(&mut self, location: Location) {
        match self.plan.options.lines {
            LineMarks::Source => {}
            LineMarks::None => return,
        }
        if location.line == 0 || (location.file, location.line) == (self.marked.file, self.marked.line) {
            return;
        }
        self.marked = location;
        let file = self.plan.program.files.get(usize::from(location.file)).map_or("?", String::as_str);
        let text = format!("#line {} {}", location.line, c_string(file.as_bytes()));
        self.line(&text);
    }

    /// Attributes the following lines to the generated file.
    pub(crate) fn unmark(&mut self) {
        if self.marked != Location::default() {
            self.marked = Location::default();
            self.text.push_str(OWN_LINE);
        }
    }

    /// The body whose values and slots are named.
    pub(crate) fn body(&self) -> &'a Body {
        match self.scope {
            Scope::Process(index) | Scope::Region(index) => &self.plan.program.processes[index].body,
            Scope::Function(index) => &self.plan.program.functions[index].body,
        }
    }

    /// Where that body's values and slots are stored.
    pub(crate) fn storage(&self) -> &'p StorageMap {
        match self.scope {
            Scope::Process(index) | Scope::Region(index) => &self.plan.processes[index].storage,
            Scope::Function(index) => &self.plan.functions[index].storage,
        }
    }

    pub(crate) fn types(&self) -> &'a TypeTable {
        &self.plan.program.types
    }
}
