//! The line editor against a model of its keys, and its screen output against the terminal emulator `vt100`.

use super::{engines, run_well};
use quaject_test_support::Effort;
use quaject_test_support::random::Random;
use std::num::NonZero;

/// The specification of a line editor with these keys.
#[derive(Default)]
struct Model {
    line: Vec<u8>,
    cursor: usize,
    history: Vec<Vec<u8>>,
    shown: usize,
    entered: Vec<Vec<u8>>,
}

impl Model {
    fn key(&mut self, key: &[u8]) {
        match key {
            [c @ 32..=126] if self.line.len() < 120 => {
                self.line.insert(self.cursor, *c);
                self.cursor += 1;
            }
            [32..=126] => {}
            b"\x1b[D" | b"\x02" => self.cursor = self.cursor.saturating_sub(1),
            b"\x1b[C" | b"\x06" => self.cursor = (self.cursor + 1).min(self.line.len()),
            b"\x01" | b"\x1b[H" | b"\x1b[1~" => self.cursor = 0,
            b"\x05" | b"\x1b[F" | b"\x1bOF" => self.cursor = self.line.len(),
            b"\x7f" | b"\x08" if self.cursor > 0 => {
                self.cursor -= 1;
                self.line.remove(self.cursor);
            }
            b"\x1b[3~" | b"\x04" if self.cursor < self.line.len() => {
                self.line.remove(self.cursor);
            }
            b"\x0b" => self.line.truncate(self.cursor),
            b"\x15" => {
                self.line.clear();
                self.cursor = 0;
            }
            b"\x17" => {
                let mut start = self.cursor;
                while start > 0 && self.line[start - 1] == b' ' {
                    start -= 1;
                }
                while start > 0 && self.line[start - 1] != b' ' {
                    start -= 1;
                }
                self.line.drain(start..self.cursor);
                self.cursor = start;
            }
            b"\x1b[A" | b"\x10" if self.shown < self.history.len() => self.recall(self.shown + 1),
            b"\x1b[B" | b"\x0e" if self.shown > 0 => self.recall(self.shown - 1),
            b"\r" => {
                if !self.line.is_empty() {
                    self.history.insert(0, self.line.clone());
                    self.history.truncate(16);
                    self.shown = 0;
                }
                self.entered.push(std::mem::take(&mut self.line));
                self.cursor = 0;
            }
            _ => {}
        }
    }

    fn recall(&mut self, shown: usize) {
        self.shown = shown;
        self.line = shown.checked_sub(1).map_or_else(Vec::new, |index| self.history[index].clone());
        self.cursor = self.line.len();
    }
}

/// The terminal is wide enough for the longest line, so that no line wraps.
const ROWS: NonZero<u16> = NonZero::new(24).expect("is not zero");
const COLUMNS: NonZero<u16> = NonZero::new(200).expect("is not zero");

const KEYS: &[&[u8]] = &[
    b"\x1b[D",
    b"\x02",
    b"\x1b[C",
    b"\x06",
    b"\x01",
    b"\x1b[H",
    b"\x1b[1~",
    b"\x05",
    b"\x1b[F",
    b"\x1bOF",
    b"\x7f",
    b"\x08",
    b"\x1b[3~",
    b"\x04",
    b"\x0b",
    b"\x15",
    b"\x17",
    b"\x1b[A",
    b"\x10",
    b"\x1b[B",
    b"\x0e",
    b"\r",
    b"\x1b[5~",
    b"\x1b[38;5;1m",
];

#[test]
fn lines_and_screen_follow_the_model() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let screen_path = directory.path().join("screen");
    let bind = format!("screenC=bytes:{}", screen_path.display());
    for engine in engines() {
        for seed in 1..=Effort::wanted().pick(3, 20, 500) {
            let mut random = Random(seed);
            let mut model = Model::default();
            let mut typed = Vec::new();
            for _ in 0..seed * 40 {
                let key = match random.below(3) {
                    0 => KEYS[random.below(KEYS.len() as u64) as usize].to_vec(),
                    _ => vec![if random.below(6) == 0 { b' ' } else { 33 + random.byte() % 94 }],
                };
                model.key(&key);
                typed.extend(key);
            }
            let (row, column) = (model.line.clone(), model.cursor);
            let mut expected = model.entered;
            if !model.line.is_empty() {
                expected.push(model.line);
            }

            let output = run_well(engine, "examples/line-editor/edit.esp", &["--bind", &bind], &typed);
            let lines: Vec<String> =
                expected.iter().map(|line| format!("{:?}", String::from_utf8_lossy(line))).collect();
            let shown = String::from_utf8(output).expect("text output").replace("\\'", "'");
            assert_eq!(shown.lines().collect::<Vec<_>>(), lines, "seed {seed} on engine {engine}");

            let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
            terminal.process(&std::fs::read(&screen_path).expect("the screen was written"));
            let (at_row, at_column) = terminal.screen().cursor_position();
            assert_eq!(usize::from(at_column), column, "cursor, seed {seed} on engine {engine}");
            let visible = terminal.screen().contents_between(at_row, 0, at_row, COLUMNS.get());
            let wanted = String::from_utf8_lossy(&row).into_owned();
            assert_eq!(visible.trim_end(), wanted.trim_end(), "screen, seed {seed} on engine {engine}");
        }
    }
}
