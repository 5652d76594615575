//! `qj explain`

use crate::arguments::Explain;
use crate::terminal::{Status, Stop, print};
use quaject_esp_run::Trouble;
use quaject_esp_syntax::diagnostics::Code;

pub(crate) fn explain(arguments: Explain) -> Result<Status, Stop> {
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
        None => {
            Err(Stop::at(Trouble::usage(format!("there is no code `{wanted}`")).help("`qj explain` lists all codes")))
        }
    }
}
