//! `cargo xtask install --prefix DIR`: the release build and what belongs to it, in the folders a Unix user expects.
//!
//! ```text
//! DIR/bin/qj                                               stripped
//! DIR/include/quaject/*.h                                  from crates/*/include
//! LIB/libquaject-{ac,tickc}.a
//! LIB/libquaject-{filter,pipe,vcode-layers}.{a,so}         the shared ones as .so -> .so.MAJOR.MINOR -> .so.VERSION
//! LIB/pkgconfig/quaject-{ac,esp,filter,pipe,queue,tickc,vcode,vcode-layers}.pc
//! LIB/cmake/quaject/quaject-{config{,-version},esp}.cmake  find_package(Quaject): targets quaject::{ac,esp,...}
//! DIR/share/quaject/quaject.mk                             rules of Make that run `qj`
//! DIR/share/man/man1/*.1                                   written by `qj` itself
//! DIR/share/bash-completion/completions/qj                 likewise, and for fish and zsh
//! DIR/share/quaject/examples, DIR/share/quaject/editors
//! DIR/share/quaject/quaject-kernel                         the image of `qj kernel run`
//! DIR/share/quaject/gdb/quaject-ac.py                      lists tasks in the debugger
//! DIR/share/doc/quaject/{README.md,CHANGELOG.md,LICENSE-*}
//! ```

mod files;
mod layout;
mod libraries;
#[cfg(test)]
mod tests;

use std::process::Command;

use crate::run::{Failure, cargo, output_of, root, succeed};
use files::{copy, copy_folder, write};
pub(crate) use layout::Layout;

/// Shells `qj completions SHELL` knows, and where each looks.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/qj"),
    ("fish", "share/fish/vendor_completions.d/qj.fish"),
    ("zsh", "share/zsh/site-functions/_qj"),
];

/// Folders of the repository that are installed whole.
const FOLDERS: &[(&str, &str)] = &[
    ("examples", "share/quaject/examples"),
    ("editors", "share/quaject/editors"),
    ("crates/ac/examples/c", "share/quaject/examples/ac"),
    ("crates/tickc/examples/c", "share/quaject/examples/tickc"),
    ("crates/ac/gdb", "share/quaject/gdb"),
];

const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds, installs and prints where.
pub(crate) fn run(layout: &Layout) -> Result<(), Failure> {
    install_command(layout)?;
    libraries::install(layout)?;
    for (folder, place) in FOLDERS {
        if root().join(folder).is_dir() {
            copy_folder(&root().join(folder), &layout.staged(place))?;
        }
    }
    copy(&crate::kernel::build()?, &layout.staged("share/quaject/quaject-kernel"))?;
    for document in DOCUMENTS {
        copy(&root().join(document), &layout.staged("share/doc/quaject").join(document))?;
    }
    println!("installed qj below {}", layout.staged("").display());
    Ok(())
}

/// The command without symbols, its manual and its completions.
fn install_command(layout: &Layout) -> Result<(), Failure> {
    succeed(&mut cargo(&["build", "--release", "--package", "quaject-cli"]))?;
    let built = files::target_folder().join("release/qj");
    let command = layout.staged("bin/qj");
    copy(&built, &command)?;
    strip(&command)?;
    write(&layout.staged("share/man/man1/qj.1"), &output_of(Command::new(&built).arg("man"))?)?;
    for (shell, place) in COMPLETIONS {
        write(&layout.staged(place), &output_of(Command::new(&built).args(["completions", shell]))?)?;
    }
    Ok(())
}

/// Removes symbols and debug information: five sixths of `qj`. The build keeps its own.
fn strip(file: &std::path::Path) -> Result<(), Failure> {
    succeed(Command::new("strip").arg("--strip-unneeded").arg(file))
}
