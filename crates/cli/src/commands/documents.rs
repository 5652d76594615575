//! `qj completions` and `qj man`: documents generated from the command line's definition.

use crate::arguments::{Arguments, Completions};
use crate::terminal::{CliError, Status, print};
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use quaject_esp_run::HostError;
use std::io;

pub(crate) fn completions(arguments: Completions) -> Result<Status, CliError> {
    let mut text = Vec::new();
    clap_complete::generate(arguments.shell, &mut Arguments::command(), "qj", &mut text);
    print(&text).map(|()| Status::Done)
}

pub(crate) fn man() -> Result<Status, CliError> {
    let page = page().map_err(|error| CliError::from(HostError::file("make", "the manual page", &error)))?;
    print(&page).map(|()| Status::Done)
}

/// One page for all commands, with a section of description, options and examples for each.
fn page() -> io::Result<Vec<u8>> {
    let mut command = Arguments::command();
    command.build();
    let mut page = Vec::new();
    let man = Man::new(command.clone());
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    add_commands(&command, "QJ", &mut page)?;
    let mut section = Vec::new();
    man.render_extra_section(&mut section)?;
    let section = String::from_utf8_lossy(&section).replace(".SH EXTRA\nExit status:\n", ".SH \"EXIT STATUS\"\n");
    page.extend_from_slice(unfilled(&section).as_bytes());
    man.render_version_section(&mut page)?;
    Ok(page)
}

/// Adds a section for each subcommand, recursively.
fn add_commands(above: &Command, path: &str, page: &mut Vec<u8>) -> io::Result<()> {
    for command in above.get_subcommands().filter(|command| command.get_name() != "help") {
        let mut section = Vec::new();
        let man = Man::new(command.clone());
        man.render_synopsis_section(&mut section)?;
        man.render_description_section(&mut section)?;
        man.render_options_section(&mut section)?;
        man.render_extra_section(&mut section)?;
        let section = String::from_utf8_lossy(&section).replace(".SH EXTRA\nExamples:\n", ".SH EXAMPLES\n");
        let section = unfilled(&section.replace("\n.SH ", "\n.SS "));
        let section = section.strip_prefix(".SH ").map_or(section.clone(), |rest| format!(".SS {rest}"));
        let path = format!("{path} {}", command.get_name().to_uppercase());
        page.extend_from_slice(format!(".SH \"{path}\"\n{section}").as_bytes());
        add_commands(command, &path, page)?;
    }
    Ok(())
}

/// Keeps the lines of tables and examples, which begin with blanks, from being filled.
fn unfilled(section: &str) -> String {
    let mut text = String::new();
    let mut is_unfilled = false;
    for line in section.lines() {
        let indented = line.starts_with("  ");
        if indented != is_unfilled {
            text.push_str(if indented { ".nf\n" } else { ".fi\n" });
            is_unfilled = indented;
        }
        text.push_str(line);
        text.push('\n');
    }
    if is_unfilled {
        text.push_str(".fi\n");
    }
    text
}
