//! Where the kernel's image is.

use quaject_esp_run::{HostCode, HostError};
use std::path::{Path, PathBuf};

/// Names the image in place of `--kernel`.
const VARIABLE: &str = "QJ_KERNEL";
/// Where the image is, relative to the folder of `qj`: installed, and in the target folder of the repository.
const PLACES: [&str; 2] = ["../share/quaject/quaject-kernel", "../kernel/x86_64-unknown-none/release/quaject-kernel"];

/// The image: the given one, else that of the environment, else the first that exists.
pub(super) fn find(given: Option<&Path>) -> Result<PathBuf, HostError> {
    let named = given.map(Path::to_owned).or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from));
    if let Some(path) = named {
        return match path.metadata() {
            Ok(_) => Ok(path),
            Err(error) => Err(HostError::file("read", path.display(), &error)),
        };
    }
    let command = std::env::current_exe().ok().and_then(|path| path.canonicalize().ok());
    let folder = command.as_deref().and_then(Path::parent);
    let mut places = folder.into_iter().flat_map(|folder| PLACES.iter().map(|place| folder.join(place)));
    places.find(|place| place.exists()).ok_or_else(|| {
        HostError::new(HostCode::Tool, "the kernel's image is not installed").help(format!(
            "build it in the repository, `cargo xtask kernel`, and name it with `--kernel FILE` or `{VARIABLE}`"
        ))
    })
}
