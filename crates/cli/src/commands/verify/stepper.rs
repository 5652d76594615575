//! Steps through a counterexample in a terminal, forwards and backwards: the visible steps, and below them the
//! configuration. Executes nothing itself.

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{cursor, execute, queue};
use quaject_esp_check::{Configuration, Counterexample, Stop, stops};
use quaject_esp_exec::step::Control;
use quaject_esp_ir::model::ModelProgram;
use std::io::{self, Write};

const KEYS: &str = "next: right, space   back: left   first: home   last: end   leave: q";

/// Shows a run until the user leaves.
pub(crate) fn step_through(
    model: &ModelProgram,
    found: &Counterexample,
    configurations: &[Configuration],
) -> io::Result<()> {
    let pages = stops(&model.program, found, configurations.len());
    let mut out = io::stdout();
    enable_raw_mode()?;
    let shown = execute!(out, EnterAlternateScreen, cursor::Hide)
        .and_then(|()| turn_pages(&mut out, model, found, configurations, &pages));
    // The terminal is restored in any case.
    let left = execute!(out, cursor::Show, LeaveAlternateScreen);
    disable_raw_mode()?;
    shown.and(left)
}

fn turn_pages(
    out: &mut impl Write,
    model: &ModelProgram,
    found: &Counterexample,
    configurations: &[Configuration],
    pages: &[Stop],
) -> io::Result<()> {
    let mut at = 0;
    loop {
        let (width, height) = size()?;
        let text = page_text(model, found, configurations, pages, at, height.into());
        queue!(out, cursor::MoveTo(0, 0), Clear(ClearType::All))?;
        for (row, line) in text.iter().take(height.into()).enumerate() {
            let line: String = line.chars().take(width.into()).collect();
            queue!(out, cursor::MoveTo(0, row as u16))?;
            write!(out, "{line}")?;
        }
        out.flush()?;
        at = match read()? {
            Event::Key(key) if key.kind == KeyEventKind::Release => at,
            Event::Key(key) => match key.code {
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(()),
                KeyCode::Char('q') | KeyCode::Esc => return Ok(()),
                KeyCode::Right | KeyCode::Down | KeyCode::Char(' ' | 'n' | 'j' | 'l') | KeyCode::Enter => {
                    (at + 1).min(pages.len() - 1)
                }
                KeyCode::Left | KeyCode::Up | KeyCode::Char('p' | 'k' | 'h') | KeyCode::Backspace => {
                    at.saturating_sub(1)
                }
                KeyCode::Home | KeyCode::Char('g') => 0,
                KeyCode::End | KeyCode::Char('G') => pages.len() - 1,
                _other => at,
            },
            Event::FocusGained | Event::FocusLost | Event::Mouse(_) | Event::Resize(..) => at,
        };
    }
}

fn page_text(
    model: &ModelProgram,
    found: &Counterexample,
    configurations: &[Configuration],
    pages: &[Stop],
    at: usize,
    height: usize,
) -> Vec<String> {
    let program = &model.program;
    let mut lines = vec![format!("step {at} of {}   {KEYS}", pages.len() - 1), String::new()];
    // The steps around this one take at most a third of the screen.
    let room = (height / 3).max(3);
    let first = at.saturating_sub(room / 2).min(pages.len().saturating_sub(room)).max(1);
    for (number, page) in pages.iter().enumerate().skip(first).take(room) {
        let mark = if number == at { '>' } else { ' ' };
        let is_cycle = found.cycle.is_some() && found.cycle == page.step;
        let cycle = if is_cycle { "   (the cycle starts here)" } else { "" };
        lines.push(format!("{mark}{number:>4}  {}{cycle}", page.text));
    }
    lines.push(String::new());
    let Some(configuration) = configurations.get(pages[at].configuration) else { return lines };
    for (instance, status) in configuration.instances.iter().enumerate() {
        // An instance that the model omits is not shown.
        if status.control == Control::Ended && status.variables.is_empty() {
            continue;
        }
        let mark = if pages[at].actors.contains(&(instance as u32)) { '*' } else { ' ' };
        lines.push(format!("{mark}{}  {}", program.instance_name(instance as u32), status.text(program)));
        if !status.variables.is_empty() {
            let variables: Vec<String> =
                status.variables.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            lines.push(format!("     {}", variables.join(", ")));
        }
    }
    if at + 1 == pages.len() {
        lines.push(String::new());
        lines.extend(found.violation.text(program).lines().map(str::to_string));
    }
    lines
}
