//! A folder of files and `qj` run in it.

use snapbox::cmd::{Command, cargo_bin};
use std::path::PathBuf;

/// A folder that vanishes with the value.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    /// A folder with these files: name and content.
    pub(crate) fn with(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().expect("a folder can be made");
        for (name, content) in files {
            std::fs::write(folder.path().join(name), content).expect("a file can be written");
        }
        Folder { folder }
    }

    /// The path of a file in it.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `qj` with these arguments, split at blanks, in the folder.
    pub(crate) fn qj(&self, arguments: &str) -> Command {
        Command::new(cargo_bin!("qj"))
            .current_dir(self.folder.path())
            .env_remove("CLICOLOR_FORCE")
            .env("CC", quaject_test_support::quick_compiler())
            .env("NO_COLOR", "1")
            .args(arguments.split_whitespace())
    }
}
