//! The C compiler: `cc`, or what the variable CC says. Works in a private folder that vanishes afterwards.

use crate::trouble::{Trouble, reason};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Flags for everything we compile: fast, readable in a debugger, and of its own symbols only what is asked for.
const FLAGS: &[&str] = &["-std=gnu99", "-O2", "-g1", "-fPIC"];

/// A private folder for sources and what is made of them.
pub(crate) struct Workshop {
    folder: tempfile::TempDir,
}

/// What to link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Product {
    /// A shared library to be loaded.
    Library,
    /// A program of its own.
    Executable,
}

impl Workshop {
    pub(crate) fn open() -> Result<Workshop, Trouble> {
        let folder = tempfile::Builder::new().prefix("qj-").tempdir().map_err(|error| {
            Trouble::new(format!("cannot make a temporary folder: {}", reason(&error)))
                .help("make room, or set TMPDIR to a folder that can be written")
        })?;
        Ok(Workshop { folder })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into the folder, with the folders on its way.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<PathBuf, Trouble> {
        let path = self.path(name);
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|error| Trouble::file("write", path.display(), &error))?;
        Ok(path)
    }

    /// Compiles C sources and links them with objects and libraries. Headers are looked for in the folder.
    pub(crate) fn build(
        &self,
        product: Product,
        inputs: &[PathBuf],
        defines: &[&str],
        output: &Path,
    ) -> Result<(), Trouble> {
        let mut words = compiler();
        let program = words.remove(0);
        let mut command = Command::new(&program);
        command.args(words).args(FLAGS).arg("-I").arg(self.folder.path());
        command.args(defines.iter().map(|define| format!("-D{define}")));
        match product {
            Product::Library => command.arg("-shared"),
            Product::Executable => &mut command,
        };
        command.arg("-o").arg(output);
        for input in inputs {
            // A library is looked for again when the product is loaded, so its whole path goes in.
            let input = std::path::absolute(input).unwrap_or_else(|_| input.clone());
            command.arg(input);
        }
        command.arg("-lm").stdin(Stdio::null());
        let result = command.output().map_err(|error| {
            Trouble::new(format!("cannot run the C compiler `{}`: {}", program.display(), reason(&error)))
                .help("install one, as in `apt install gcc`, or name yours in the variable CC")
        })?;
        if result.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&result.stderr);
        let said = said.trim_end();
        Err(Trouble::new(format!("the C compiler `{}` failed:\n{said}", program.display())))
    }
}

/// The words of CC: a compiler may be given with flags.
fn compiler() -> Vec<OsString> {
    let words: Vec<OsString> = match std::env::var("CC") {
        Ok(line) => line.split_whitespace().map(OsString::from).collect(),
        Err(_) => Vec::new(),
    };
    if words.is_empty() { vec![OsString::from("cc")] } else { words }
}
