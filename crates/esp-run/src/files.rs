//! Complete files: read with a limit on their length, written atomically.

use crate::error::{HostCode, HostError, reason};
use crate::system::{self, FileMode, file_identity};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

/// The maximum length of a text: its positions are 32-bit numbers.
pub const MAX_TEXT_BYTES: u64 = 1 << 30;

/// Reads a whole file; `-` is standard input.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, HostError> {
    let mut bytes = Vec::new();
    let (name, outcome) = if path.as_os_str() == "-" {
        ("standard input".to_string(), io::stdin().lock().take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes))
    } else {
        let outcome = File::open(path).and_then(|file| {
            if file.metadata()?.is_dir() {
                return Err(io::Error::from(io::ErrorKind::IsADirectory));
            }
            file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes)
        });
        (path.display().to_string(), outcome)
    };
    if let Err(io_error) = outcome {
        let error = HostError::new(HostCode::File, format!("cannot read `{name}`: {}", reason(&io_error)));
        return Err(match io_error.kind() {
            io::ErrorKind::IsADirectory => error.help("name a file in it"),
            io::ErrorKind::NotFound => error.help("check the name and the folder you are in"),
            _ => error,
        });
    }
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(HostError::new(
            HostCode::Size,
            format!("cannot read `{name}`: it is longer than {MAX_TEXT_BYTES} bytes"),
        )
        .help("split it and `import` the parts"));
    }
    Ok(bytes)
}

/// Reads a text; `-` is standard input.
pub fn read_text(path: &Path) -> Result<String, HostError> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..valid].iter().filter(|byte| **byte == b'\n').count() + 1;
        HostError::new(
            HostCode::Content,
            format!("`{}` is not UTF-8: see line {line}, byte {valid} of the file", path.display()),
        )
        .help("save the file as UTF-8; other bytes are written as escapes, as in \"\\xff\"")
    })
}

/// A file that appears under its name when it is complete (atomic replacement by rename). If it is dropped before,
/// nothing remains.
pub struct NewFile {
    path: PathBuf,
    mode: FileMode,
    target: Target,
}

/// What becomes of an earlier file that has the same content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EqualFile {
    /// It is replaced, so that its modification time is that of the last run.
    Replace,
    /// It stays, with its modification time: Make and Ninja then conclude that nothing has to be made of it again.
    Keep,
}

enum Target {
    /// In the folder of its final path.
    Temporary(io::BufWriter<tempfile::NamedTempFile>),
    /// A device or pipe, which cannot be replaced.
    Direct(io::BufWriter<File>),
}

impl NewFile {
    /// Begins a file.
    pub fn create(path: &Path) -> Result<NewFile, HostError> {
        NewFile::begin(path, FileMode::Data).map_err(|error| {
            HostError::new(HostCode::File, format!("cannot write `{}`: {}", path.display(), reason(&error)))
        })
    }

    /// Begins an executable file: every user with read permission may run it. A running program keeps its old file.
    pub fn create_program(path: &Path) -> Result<NewFile, HostError> {
        NewFile::begin(path, FileMode::Program).map_err(|error| HostError::file("write", path.display(), &error))
    }

    fn begin(path: &Path, mode: FileMode) -> io::Result<NewFile> {
        // Through a symbolic link the file it names is replaced, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        let target = match path.metadata() {
            Ok(metadata) if metadata.is_dir() => return Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(metadata) if !metadata.is_file() => Target::Direct(io::BufWriter::new(File::create(&path)?)),
            old => {
                let folder = match path.parent() {
                    Some(folder) if !folder.as_os_str().is_empty() => folder,
                    Some(_) | None => Path::new("."),
                };
                let mut builder = tempfile::Builder::new();
                builder.prefix(".qj-");
                if let Some(permissions) = system::permissions(mode, old.as_ref().ok()) {
                    builder.permissions(permissions);
                }
                Target::Temporary(io::BufWriter::new(builder.tempfile_in(folder)?))
            }
        };
        Ok(NewFile { path, mode, target })
    }

    /// Gives the complete file its name.
    pub fn finish(self) -> Result<(), HostError> {
        let path = self.path.clone();
        self.complete(EqualFile::Replace).map_err(|error| HostError::file("write", path.display(), &error))
    }

    /// Gives the complete file its name, unless a file of that name has the same content; that one is not touched.
    pub fn finish_if_changed(self) -> Result<(), HostError> {
        let path = self.path.clone();
        self.complete(EqualFile::Keep).map_err(|error| HostError::file("write", path.display(), &error))
    }

    fn complete(self, equal: EqualFile) -> io::Result<()> {
        let NewFile { path, mode, target } = self;
        match target {
            Target::Direct(mut file) => file.flush(),
            Target::Temporary(file) => {
                let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
                if equal == EqualFile::Keep && is_equal_file(file.as_file_mut(), mode, &path)? {
                    return Ok(());
                }
                file.persist(&path).map(|_| ()).map_err(|error| error.error)
            }
        }
    }

    /// The final path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Temporary(file) => file.write(bytes),
            Target::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Temporary(file) => file.flush(),
            Target::Direct(file) => file.flush(),
        }
    }
}

/// Whether the file at `path` can stay in the place of a new one: it has the same content and, if it is a program, the
/// same permissions. One that cannot be read is replaced.
fn is_equal_file(new: &mut File, mode: FileMode, path: &Path) -> io::Result<bool> {
    let Ok(mut old) = File::open(path) else { return Ok(false) };
    let (old_data, new_data) = (old.metadata()?, new.metadata()?);
    let is_runnable = match mode {
        FileMode::Data => true,
        FileMode::Program => old_data.permissions() == new_data.permissions(),
    };
    if !is_runnable || old_data.len() != new_data.len() {
        return Ok(false);
    }
    new.rewind()?;
    let (mut old_bytes, mut new_bytes) = (Vec::new(), Vec::new());
    new.read_to_end(&mut new_bytes)?;
    Ok(old.read_to_end(&mut old_bytes).is_ok() && old_bytes == new_bytes)
}

/// Whether both are names of one regular file: writing one would destroy the other.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    file_identity(one).is_some_and(|file| file_identity(other) == Some(file))
}

/// Writes a whole file.
pub fn write_file(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes).map_err(|error| HostError::file("write", path.display(), &error))?;
    file.finish()
}

/// Writes a whole file, unless it has this content already: then it is not touched.
pub fn update_file(path: &Path, bytes: &[u8]) -> Result<(), HostError> {
    let mut file = NewFile::create(path)?;
    file.write_all(bytes).map_err(|error| HostError::file("write", path.display(), &error))?;
    file.finish_if_changed()
}
