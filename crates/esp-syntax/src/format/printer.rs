//! Prints the operations of the layout within a width: a group is on one line if it fits, else it is broken.
//! After Oppen, "Prettyprinting" (1980), and Wadler, "A prettier printer". Knows nothing of ESP.

/// No line is longer, where a line can be broken at all.
const WIDTH: usize = 100;
const INDENTATION: usize = 2;

/// A piece of the source text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) start: u32,
    pub(super) end: u32,
}

/// One step of printing.
#[derive(Debug)]
pub(super) enum Op {
    /// A token.
    Text(Place),
    /// A token with this text in place of that in the source.
    Word(&'static str),
    /// A comment, which does not count for the width.
    Comment(Place),
    /// A blank.
    Space,
    /// A new line if the innermost group is open, with an empty line before if `blank`; else a blank.
    Line { blank: bool },
    /// A new line if the innermost group is open; else nothing.
    SoftLine,
    /// A new line if the innermost group is open and the next piece does not fit; else a blank.
    Fill,
    /// A new line, which opens all groups around.
    Hard { blank: bool },
    /// Lines that begin from here on are indented further.
    Indent,
    /// Ends `Indent`.
    Dedent,
    /// As `Fill`, or `Hard`; if it ends the line what follows is indented.
    BodyStart { hard: bool },
    /// Ends `BodyStart`.
    BodyEnd,
    /// What follows is on one line or open, as a whole; always open if `force`.
    GroupStart { force: bool },
    /// Ends `GroupStart`.
    GroupEnd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Flat,
    Open,
}

/// Prints a sequence of steps.
pub(super) struct Printer<'o> {
    source: &'o str,
    ops: &'o [Op],
    /// For each `GroupStart`: whether it must be open, because of what it holds.
    forced: Vec<bool>,
    text: String,
    line: Line,
    column: usize,
    indent: usize,
}

/// Whether the current line has its indentation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Empty,
    Begun,
}

impl<'o> Printer<'o> {
    /// The text that the steps make of pieces of `source`; it ends with a line end unless it is empty.
    pub(super) fn print(source: &'o str, ops: &'o [Op]) -> String {
        let mut printer =
            Printer { source, ops, forced: forced(ops), text: String::new(), line: Line::Empty, column: 0, indent: 0 };
        printer.run();
        let mut text = printer.text;
        text.truncate(text.trim_end().len());
        if !text.is_empty() {
            text.push('\n');
        }
        text
    }

    fn run(&mut self) {
        let mut modes = vec![Mode::Open];
        let mut bodies = Vec::new();
        for (index, op) in self.ops.iter().enumerate() {
            let mode = *modes.last().expect("the outermost mode is never popped");
            match op {
                Op::Text(place) | Op::Comment(place) => self.write(self.piece(*place)),
                Op::Word(word) => self.write(word),
                Op::Space => self.write(" "),
                Op::Line { .. } if mode == Mode::Flat => self.write(" "),
                Op::Line { blank } => self.new_line(*blank),
                Op::SoftLine if mode == Mode::Flat => {}
                Op::SoftLine => self.new_line(false),
                Op::Fill if mode == Mode::Flat || self.fits_on_line(index + 1, 1, Stop::AtBreak) => self.write(" "),
                Op::Fill => self.new_line(false),
                Op::Hard { blank } => self.new_line(*blank),
                Op::Indent => self.indent += INDENTATION,
                Op::Dedent => self.indent -= INDENTATION,
                Op::BodyStart { hard } => {
                    let same_line = !hard && (mode == Mode::Flat || self.fits_on_line(index + 1, 1, Stop::AtBreak));
                    bodies.push(same_line);
                    if same_line {
                        self.write(" ");
                    } else {
                        self.indent += INDENTATION;
                        self.new_line(false);
                    }
                }
                Op::BodyEnd => {
                    let same_line = bodies.pop().expect("every body that ends has begun");
                    if !same_line {
                        self.indent -= INDENTATION;
                    }
                }
                Op::GroupStart { .. } => {
                    let flat =
                        mode == Mode::Flat || (!self.forced[index] && self.fits_on_line(index, 0, Stop::AfterGroup));
                    modes.push(if flat { Mode::Flat } else { Mode::Open });
                }
                Op::GroupEnd => {
                    modes.pop();
                }
            }
        }
    }

    /// Whether what follows fits on the line, `used` columns of it taken, up to where the line can end.
    fn fits_on_line(&self, from: usize, used: usize, stop: Stop) -> bool {
        let mut column = used
            + match self.line {
                Line::Empty => self.indent,
                Line::Begun => self.column,
            };
        let mut depth = 0usize;
        let mut stop = stop;
        for (index, op) in self.ops.iter().enumerate().skip(from) {
            let inside = depth > 0 && stop == Stop::AfterGroup;
            match op {
                Op::Text(place) => column += self.piece(*place).chars().count(),
                Op::Word(word) => column += word.chars().count(),
                Op::Comment(_) | Op::Indent | Op::Dedent | Op::BodyEnd => {}
                Op::Space => column += 1,
                Op::SoftLine if inside => {}
                Op::Line { .. } | Op::Fill | Op::BodyStart { hard: false } if inside => column += 1,
                Op::Line { .. } | Op::SoftLine | Op::Fill | Op::BodyStart { .. } | Op::Hard { .. } => return true,
                Op::GroupStart { .. } if stop == Stop::AtBreak && self.forced[index] => return true,
                Op::GroupStart { .. } => depth += 1,
                Op::GroupEnd => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        stop = Stop::AtBreak;
                    }
                }
            }
            if column > WIDTH {
                return false;
            }
        }
        true
    }

    fn piece(&self, place: Place) -> &'o str {
        &self.source[place.start as usize..place.end as usize]
    }

    fn write(&mut self, text: &str) {
        if self.line == Line::Empty {
            if text.trim().is_empty() {
                return;
            }
            self.text.extend(std::iter::repeat_n(' ', self.indent));
            self.column = self.indent;
            self.line = Line::Begun;
        }
        self.text.push_str(text);
        match text.rsplit_once('\n') {
            Some((_, last)) => self.column = last.chars().count(),
            None => self.column += text.chars().count(),
        }
    }

    fn new_line(&mut self, blank: bool) {
        while self.text.ends_with(' ') {
            self.text.pop();
        }
        if !self.text.is_empty() {
            self.text.push_str(if blank { "\n\n" } else { "\n" });
        }
        self.column = 0;
        self.line = Line::Empty;
    }
}

/// Where measuring ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stop {
    /// At the first possible line break.
    AtBreak,
    /// At the first possible line break after the group that begins.
    AfterGroup,
}

/// Which groups must be open because a line ends in them in any case.
fn forced(ops: &[Op]) -> Vec<bool> {
    let mut forced = vec![false; ops.len()];
    let mut open = Vec::new();
    for (index, op) in ops.iter().enumerate() {
        let ends_line = match op {
            Op::Hard { .. } => true,
            Op::BodyStart { hard } => *hard,
            Op::GroupStart { force } => {
                open.push(index);
                *force
            }
            Op::GroupEnd => {
                let ended = open.pop();
                // What forces a group forces those around it.
                if let (Some(ended), Some(around)) = (ended, open.last()) {
                    forced[*around] |= forced[ended];
                }
                false
            }
            Op::Text(_)
            | Op::Word(_)
            | Op::Comment(_)
            | Op::Space
            | Op::Line { .. }
            | Op::SoftLine
            | Op::Fill
            | Op::Indent
            | Op::Dedent
            | Op::BodyEnd => false,
        };
        if ends_line && let Some(innermost) = open.last() {
            forced[*innermost] = true;
        }
    }
    forced
}
