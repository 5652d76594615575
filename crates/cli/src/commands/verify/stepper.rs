//! Steps through a counterexample in a terminal, forwards and backwards: the visible steps, and below them the
//! configuration. Executes nothing itself.

use crossterm::event::{Event, KeyCode, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use crossterm::{cursor, execute, queue};
use quaject_esp_check::{AwaitedEvent, Configuration, Counterexample, InstanceStatus};
use quaject_esp_exec::step::{Control, Step};
use quaject_esp_ir::ir::{Direction, Program};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::text::location_text;
use std::io::{self, Write};

const KEYS: &str = "next: right, space   back: left   first: home   last: end   leave: q";

/// A page: a visible step, and the next configuration in which its participants wait.
struct Page {
    /// The step; empty before the first.
    line: String,
    actors: Vec<u32>,
    configuration: usize,
}

/// Shows a run until the user leaves.
pub(crate) fn step_through(
    model: &ModelProgram,
    found: &Counterexample,
    configurations: &[Configuration],
) -> io::Result<()> {
    let pages = pages(&model.program, found, configurations.len());
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
    pages: &[Page],
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

fn pages(program: &Program, found: &Counterexample, configurations: usize) -> Vec<Page> {
    let mut pages = vec![Page { line: String::new(), actors: Vec::new(), configuration: 0 }];
    for (index, traced) in found.steps.iter().enumerate() {
        let last = index + 1 == found.steps.len();
        let configuration = (index + 1).min(configurations.saturating_sub(1));
        match traced.text(program, last && found.violation.is_step()) {
            Some(mut line) => {
                if found.cycle.is_some_and(|cycle| cycle == index) {
                    line.push_str("   (the cycle starts here)");
                }
                let actors = match traced.step {
                    Step::Communicate { sender, receiver, .. } => vec![sender, receiver],
                    Step::Local { instance }
                    | Step::FromEnvironment { instance, .. }
                    | Step::ToEnvironment { instance, .. }
                    | Step::After { instance, .. }
                    | Step::Else { instance } => vec![instance],
                };
                pages.push(Page { line, actors, configuration });
            }
            // An invisible step belongs to the step before it.
            None => pages.last_mut().expect("there is a first page").configuration = configuration,
        }
    }
    pages
}

fn page_text(
    model: &ModelProgram,
    found: &Counterexample,
    configurations: &[Configuration],
    pages: &[Page],
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
        lines.push(format!("{mark}{number:>4}  {}", page.line));
    }
    lines.push(String::new());
    let Some(configuration) = configurations.get(pages[at].configuration) else { return lines };
    for (instance, status) in configuration.instances.iter().enumerate() {
        // An instance that the model omits is not shown.
        if status.control == Control::Ended && status.variables.is_empty() {
            continue;
        }
        let mark = if pages[at].actors.contains(&(instance as u32)) { '*' } else { ' ' };
        lines.push(format!("{mark}{}  {}", program.instance_name(instance as u32), where_text(program, status)));
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

/// The location of an instance and what it waits for.
fn where_text(program: &Program, status: &InstanceStatus) -> String {
    let at = location_text(program, status.location);
    match status.control {
        Control::Ended => "has ended".into(),
        Control::Running { .. } if status.location.line == 0 => "runs its first local code".into(),
        Control::Running { .. } => format!("runs at {at}"),
        Control::CapturedByPath { .. } => format!("at {at} is on a fast path"),
        Control::Waiting { .. } => {
            let mut waits: Vec<String> = Vec::new();
            for wait in status.waits.iter().map(|wait| awaited_text(program, wait)) {
                if !waits.contains(&wait) {
                    waits.push(wait);
                }
            }
            let waits = if waits.is_empty() { "a guard that stays false".to_string() } else { waits.join("; ") };
            format!("at {at} waits for {waits}")
        }
    }
}

fn awaited_text(program: &Program, awaited: &AwaitedEvent) -> String {
    match awaited {
        AwaitedEvent::Partner(channel, direction, partners) => {
            let verb = match direction {
                Direction::In => "write",
                Direction::Out => "read",
            };
            let names: Vec<String> = partners.iter().map(|partner| program.instance_name(*partner)).collect();
            let partners = if names.is_empty() { "no process".to_string() } else { names.join(" or ") };
            format!("{partners} to {verb} {}", program.channels[channel.0 as usize].name)
        }
        AwaitedEvent::Environment(channel) => {
            format!("the environment at {}", program.channels[channel.0 as usize].name)
        }
        AwaitedEvent::Time => "a time".into(),
    }
}
