//! The reasons why a check with Spin has no report.

use crate::error::HostError;
use quaject_esp_check::{Limit, Refusal};
use quaject_esp_gen::promela;
use std::fmt;

/// Why a check with Spin has no report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum VerifyError {
    /// Promela cannot express these parts of the program.
    Inexpressible(Vec<promela::Refusal>),
    /// The model cannot be checked: the observer cannot be built, or a trail cannot be replayed.
    Refused(Refusal),
    /// The construction of the observer ended at a limit; of a refinement check only.
    ObserverUnfinished {
        /// The observer, as the subject of a sentence.
        observer: String,
        /// The limit.
        limit: Limit,
    },
    /// Spin or the C compiler failed, or the check does not support the program.
    Host(HostError),
}

impl fmt::Display for VerifyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            VerifyError::Inexpressible(refusals) => {
                let messages: Vec<&str> = refusals.iter().map(|refusal| refusal.message.as_str()).collect();
                write!(f, "Promela cannot express the model: {}", messages.join("; "))
            }
            VerifyError::Refused(refusal) => write!(f, "{refusal}"),
            VerifyError::ObserverUnfinished { observer, limit } => {
                write!(f, "{observer} is not complete; the limit is `{}`", limit.name())
            }
            VerifyError::Host(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for VerifyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            VerifyError::Refused(refusal) => Some(refusal),
            VerifyError::Host(error) => Some(error),
            VerifyError::Inexpressible(_) | VerifyError::ObserverUnfinished { .. } => None,
        }
    }
}

impl From<Refusal> for VerifyError {
    fn from(refusal: Refusal) -> VerifyError {
        VerifyError::Refused(refusal)
    }
}

impl From<HostError> for VerifyError {
    fn from(error: HostError) -> VerifyError {
        VerifyError::Host(error)
    }
}
