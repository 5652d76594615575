//! `qj explain`: prints the explanation of a code. Each library explains the codes that it defines.

use crate::arguments::Explain;
use crate::terminal::{CliError, Status, print};
use quaject_diagnostic::Explanation;
use quaject_esp_run::{HostCode, HostError};
use quaject_esp_syntax::diagnostics::explain::explanations as of_programs;

/// The maximum number of codes that the help for an unknown code proposes.
const MAX_PROPOSED: usize = 5;

pub(crate) fn explain(arguments: Explain) -> Result<Status, CliError> {
    let explanations = explanations();
    let Some(wanted) = arguments.code else {
        let width = explanations.iter().map(|own| own.code.len()).max().unwrap_or_default();
        let line = |own: &Explanation| format!("{:<width$}  {}\n", own.code, own.title);
        let lines: String = explanations.iter().map(line).collect();
        print(lines.as_bytes())?;
        return Ok(Status::Done);
    };
    match explanations.iter().find(|own| own.code.eq_ignore_ascii_case(&wanted)) {
        Some(own) => {
            print(own.text.as_bytes())?;
            Ok(Status::Done)
        }
        None => {
            let error = HostError::usage(HostCode::UnknownName, format!("there is no code `{wanted}`"));
            let help = match &proposed(&explanations, &wanted)[..] {
                [] => "`qj explain` lists all codes".to_string(),
                codes => format!("did you mean `{}`? `qj explain` lists all codes", codes.join("`, `")),
            };
            Err(CliError::from(error.help(help)))
        }
    }
}

/// The explanations of all codes and faults.
fn explanations() -> Vec<Explanation> {
    let libraries = [
        quaject_esp_ir::faults::EXPLANATIONS,
        quaject_esp_run::EXPLANATIONS,
        quaject_filter::EXPLANATIONS,
        quaject_pipe::EXPLANATIONS,
        quaject_tickc::EXPLANATIONS,
        quaject_tickc::RUNTIME_EXPLANATIONS,
        quaject_vcode::text::EXPLANATIONS,
    ];
    of_programs().chain(libraries.into_iter().flat_map(|own| own.iter())).collect()
}

/// The codes that share the longest prefix with an unknown one, if they share two characters.
fn proposed(explanations: &[Explanation], wanted: &str) -> Vec<&'static str> {
    let shared = |code: &str| {
        code.bytes().zip(wanted.bytes()).take_while(|(one, other)| one.eq_ignore_ascii_case(other)).count()
    };
    let longest = explanations.iter().map(|own| shared(own.code)).max().unwrap_or_default();
    let nearest = explanations.iter().map(|own| own.code).filter(|code| longest >= 2 && shared(code) == longest);
    nearest.take(MAX_PROPOSED).collect()
}
