//! The options that say of which project a program is, and where its imports are.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// The choice of a project.
#[derive(Args, Clone, Debug)]
pub(crate) struct ProjectChoice {
    /// Use the options of the project file `qj.toml` in this folder and, without a FILE, its programs
    ///
    /// [default: without a FILE, the nearest folder upwards that has one]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) project: Option<PathBuf>,
}

/// The folders of imports.
#[derive(Args, Clone, Debug)]
pub(crate) struct ImportFolders {
    /// Search this folder for imports that are not found relative to the importing file; may be repeated
    #[arg(short = 'I', long = "import-folder", value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) import_folders: Vec<PathBuf>,
}
