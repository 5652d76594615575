//! `qj explain`: prints the explanation of a diagnostic's code.

use crate::arguments::Explain;
use crate::terminal::{CliError, Status, print};
use quaject_esp_run::HostError;
use quaject_esp_syntax::diagnostics::Code;

pub(crate) fn explain(arguments: Explain) -> Result<Status, CliError> {
    let Some(wanted) = arguments.code else {
        let lines: String = Code::ALL.iter().map(|code| format!("{}  {}\n", code.name(), code.title())).collect();
        print(lines.as_bytes())?;
        return Ok(Status::Done);
    };
    match Code::from_name(&wanted) {
        Some(code) => {
            print(code.explanation().as_bytes())?;
            Ok(Status::Done)
        }
        None => Err(CliError::from(
            HostError::usage(format!("there is no code `{wanted}`")).help("`qj explain` lists all codes"),
        )),
    }
}
