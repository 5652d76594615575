//! Why a build script has no program.

use std::fmt;
use std::path::PathBuf;

/// Why [`Build::compile`](crate::Build::compile) has no output. As the result of `main` in a build script, it prints as
/// [`Display`](fmt::Display) does.
pub enum Error {
    /// The program has errors. They have been printed, so that Cargo shows them.
    Program {
        /// The root file.
        path: PathBuf,
        /// The number of errors.
        errors: usize,
    },
    /// The program has more instructions than its text justifies.
    TooLarge {
        /// The root file.
        path: PathBuf,
        /// The limit in words.
        cause: String,
    },
    /// A variable that Cargo sets for build scripts is missing.
    Variable(&'static str),
    /// A file cannot be read or written.
    File {
        /// What was tried: `read`, `write`.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        reason: std::io::Error,
    },
    /// The C compiler is missing or fails.
    Compiler(cc::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Program { path, errors: 1 } => write!(f, "`{}` has an error", path.display()),
            Error::Program { path, errors } => write!(f, "`{}` has {errors} errors", path.display()),
            Error::TooLarge { path, cause } => write!(
                f,
                "`{}`: {cause}\nhelp: read long tables from a channel, or write those of bytes as strings",
                path.display()
            ),
            Error::Variable(name) => write!(
                f,
                "the variable {name} is not set\nhelp: Cargo sets it for build scripts; elsewhere use `Build::out_dir`, \
                 `Build::target`, `Build::host` and `Build::opt_level`"
            ),
            Error::File { verb, path, reason } => write!(f, "cannot {verb} `{}`: {reason}", path.display()),
            Error::Compiler(error) => write!(
                f,
                "the C compiler failed: {error}\nhelp: install one, as in `apt install gcc`, or name yours in the variable CC"
            ),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::File { reason, .. } => Some(reason),
            Error::Compiler(error) => Some(error),
            Error::Program { .. } | Error::TooLarge { .. } | Error::Variable(_) => None,
        }
    }
}
