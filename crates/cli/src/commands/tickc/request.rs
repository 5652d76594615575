//! What `qj tickc` is asked for: the product, and where it goes. Compiles nothing.

use crate::arguments::{Tickc, TickcForm};
use crate::commands::product::{OutputName, require_target};
use crate::terminal::CliError;
use quaject_esp_run::{HostCode, HostError};
use std::path::{Path, PathBuf};

/// What the command writes.
pub(super) enum Product {
    /// Nothing but its report.
    None,
    /// C; without a file, to standard output.
    Text(Option<PathBuf>),
    /// What the C compiler makes of it.
    Compiled(TickcForm, PathBuf),
}

pub(super) struct Request {
    pub(super) product: Product,
}

impl Request {
    pub(super) fn new(arguments: &Tickc) -> Result<Request, CliError> {
        if arguments.file.as_os_str() == "-" {
            let error = HostError::usage(HostCode::Argument, "a program in 'C cannot be read from standard input");
            return Err(CliError::from(error.help("write it to a file, whose name its errors have")));
        }
        let request = Request { product: product(arguments) };
        let form = arguments.emit.unwrap_or(TickcForm::Object);
        if !arguments.link.is_empty() && form != TickcForm::Exe {
            let error = HostError::usage(HostCode::Conflict, "`-l` has no meaning here");
            return Err(CliError::from(error.help("it is for `--emit exe`")));
        }
        let is_printed = matches!(request.product, Product::Text(None));
        if is_printed && arguments.report {
            let cause = "the C and the report would both be written to standard output";
            let error = HostError::usage(HostCode::Conflict, cause);
            return Err(CliError::from(error.help("name a file for the C, with `-o FILE`")));
        }
        let name = if request.output().is_some() { OutputName::Named } else { OutputName::Unnamed };
        require_target(&arguments.dependencies, name)?;
        Ok(request)
    }

    /// The output file; none for standard output.
    pub(super) fn output(&self) -> Option<&Path> {
        match &self.product {
            Product::None => None,
            Product::Text(output) => output.as_deref(),
            Product::Compiled(_, output) => Some(output),
        }
    }
}

fn product(arguments: &Tickc) -> Product {
    let named = arguments.output.clone();
    let stem = arguments.file.file_stem().map_or_else(|| PathBuf::from("program"), PathBuf::from);
    match arguments.emit {
        None if arguments.report && named.is_none() => Product::None,
        Some(TickcForm::C) => Product::Text(named.filter(|path| path != "-")),
        Some(TickcForm::Exe) => Product::Compiled(TickcForm::Exe, named.unwrap_or(stem)),
        Some(TickcForm::Object) | None => {
            Product::Compiled(TickcForm::Object, named.unwrap_or_else(|| stem.with_extension("o")))
        }
    }
}
