//! Where things are installed: a prefix, a library folder, and a staging folder in front of both.

use std::path::{Path, PathBuf};

/// The folders of an installation.
pub(crate) struct Layout {
    /// Where the installation will be used, absolute.
    prefix: PathBuf,
    /// Where libraries are, absolute: `PREFIX/lib`, or `PREFIX/lib/x86_64-linux-gnu` on Debian.
    libdir: PathBuf,
    /// What a packager puts in front of both while the package is built.
    destdir: Option<PathBuf>,
}

impl Layout {
    /// `libdir` is relative to the prefix unless it is absolute; none is `lib`. An empty `destdir` is none.
    ///
    /// # Errors
    /// When the working folder, to which a relative prefix belongs, is not known.
    pub(crate) fn new(prefix: &Path, libdir: Option<&Path>, destdir: Option<&Path>) -> std::io::Result<Layout> {
        let prefix = std::path::absolute(prefix)?;
        let libdir = prefix.join(libdir.unwrap_or(Path::new("lib")));
        let destdir = destdir.filter(|folder| !folder.as_os_str().is_empty()).map(std::path::absolute).transpose()?;
        Ok(Layout { prefix, libdir, destdir })
    }

    /// The prefix as installed files name it.
    pub(crate) fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// The library folder as installed files name it.
    pub(crate) fn libdir(&self) -> &Path {
        &self.libdir
    }

    /// The library folder relative to the prefix; none if it is outside of it.
    pub(crate) fn libdir_below_prefix(&self) -> Option<&Path> {
        self.libdir.strip_prefix(&self.prefix).ok()
    }

    /// Where a file of the prefix is written.
    pub(crate) fn staged(&self, place: &str) -> PathBuf {
        self.behind_destdir(&self.prefix.join(place))
    }

    /// Where a file of the library folder is written.
    pub(crate) fn staged_library(&self, place: &str) -> PathBuf {
        self.behind_destdir(&self.libdir.join(place))
    }

    fn behind_destdir(&self, path: &Path) -> PathBuf {
        match &self.destdir {
            None => path.to_owned(),
            Some(destdir) => destdir.join(path.strip_prefix("/").unwrap_or(path)),
        }
    }
}
