//! The C libraries: headers, archives and shared objects, and the files by which pkg-config and CMake find them.

use std::path::PathBuf;

use super::Layout;
use super::files::{copy, copy_folder, entries, link, write};
use crate::run::{Failure, cargo, output_of, root};

/// A library that C programs use.
pub(super) struct Library {
    /// What programs link with, without `quaject-`.
    pub(super) name: &'static str,
    description: &'static str,
    form: Form,
}

/// What there is to link with.
enum Form {
    /// Nothing: everything is in the headers.
    Headers,
    /// An archive that the build script of the crate compiles from C.
    Archive,
    /// An archive and a shared object with the functions of the feature `c` of this crate, without `quaject-`.
    Rust(&'static str),
}

pub(super) const LIBRARIES: &[Library] = &[
    Library {
        name: "ac",
        description: "Asynchronous C: blocks of tasks with lazily owned stacks",
        form: Form::Archive,
    },
    Library { name: "esp", description: "Run-time header of C that qj generates", form: Form::Headers },
    Library {
        name: "filter",
        description: "Packet filters by the thousand, merged into one classifier",
        form: Form::Rust("filter"),
    },
    Library {
        name: "pipe",
        description: "Copy, checksum and other steps, composed into one pass over memory",
        form: Form::Rust("pipe"),
    },
    Library { name: "queue", description: "Rings without locks in shared memory", form: Form::Headers },
    Library {
        name: "tickc",
        description: "Run-time library of 'C, whose programs qj tickc compiles",
        form: Form::Archive,
    },
    Library { name: "vcode", description: "Machine code written in place", form: Form::Headers },
    Library {
        name: "vcode-layers",
        description: "Machine code with virtual registers, a peephole window and unwinding",
        form: Form::Rust("vcode"),
    },
];

/// Where the rules for Make are, below the prefix.
const MAKEFILE: &str = "share/quaject/quaject.mk";

/// The version of the packages, `0.1.0`.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The part of the version that programs depend on: before 1.0 each minor version may break.
fn interface_version() -> &'static str {
    VERSION.rsplit_once('.').expect("a version has three parts").0
}

/// Headers, libraries, and the descriptions of all of them.
pub(super) fn install(layout: &Layout) -> Result<(), Failure> {
    install_headers(layout)?;
    LIBRARIES.iter().try_for_each(|library| install_library(layout, library))?;
    install_build_files(layout)
}

/// The files by which builds with CMake and Make find the libraries and run `qj`.
pub(super) fn install_build_files(layout: &Layout) -> Result<(), Failure> {
    let folder = "cmake/quaject";
    let sources = root().join("crates/cli/resources/build");
    copy(&sources.join("quaject-esp.cmake"), &layout.staged_library(&format!("{folder}/quaject-esp.cmake")))?;
    copy(&sources.join("quaject.mk"), &layout.staged(MAKEFILE))?;
    write(&layout.staged_library(&format!("{folder}/quaject-config.cmake")), cmake_config(layout).as_bytes())?;
    write(&layout.staged_library(&format!("{folder}/quaject-config-version.cmake")), cmake_version().as_bytes())
}

/// The C headers of every crate.
pub(super) fn install_headers(layout: &Layout) -> Result<(), Failure> {
    for headers in entries(&root().join("crates"))?.iter().map(|folder| folder.join("include")) {
        if headers.is_dir() {
            copy_folder(&headers, &layout.staged("include"))?;
        }
    }
    Ok(())
}

/// One library with its `.pc` file.
pub(super) fn install_library(layout: &Layout, library: &Library) -> Result<(), Failure> {
    match library.form {
        Form::Headers => {}
        Form::Archive => copy(&built_archive(library.name)?, &layout.staged_library(&archive_name(library.name)))?,
        Form::Rust(package) => install_rust_library(layout, library.name, package)?,
    }
    let place = format!("pkgconfig/quaject-{}.pc", library.name);
    write(&layout.staged_library(&place), pkg_config(layout, library).as_bytes())
}

fn archive_name(name: &str) -> String {
    format!("libquaject-{name}.a")
}

/// The archive that the build script of a crate has compiled.
fn built_archive(name: &str) -> Result<PathBuf, Failure> {
    let package = format!("quaject-{name}");
    let arguments = ["build", "--release", "--package", &package, "--message-format", "json-render-diagnostics"];
    let messages = output_of(&mut cargo(&arguments))?;
    let folder = String::from_utf8_lossy(&messages).lines().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let is_ours =
            message["reason"] == "build-script-executed" && message["package_id"].as_str()?.contains(&package);
        is_ours.then(|| message["out_dir"].as_str().map(PathBuf::from))?
    });
    let folder = folder.ok_or_else(|| Failure(format!("cargo does not name the folder of {}", archive_name(name))))?;
    Ok(folder.join(archive_name(name)))
}

/// A static and a shared library with the functions of the feature `c` of a crate.
fn install_rust_library(layout: &Layout, name: &str, of: &str) -> Result<(), Failure> {
    let package = format!("quaject-{of}");
    let library = format!("libquaject-{name}.so");
    let soname = format!("{library}.{}", interface_version());
    let kinds = ["--lib", "--crate-type", "staticlib,cdylib", "--features", "c"];
    let mut build = cargo(&["rustc", "--release", "--package", &package, "--message-format"]);
    build.arg("json-render-diagnostics").args(kinds);
    build.args(["--", "-C", &format!("link-arg=-Wl,-soname,{soname}")]);
    let messages = String::from_utf8_lossy(&output_of(&mut build)?).into_owned();
    let built = |ending: &str| {
        let file = format!("libquaject_{of}.{ending}");
        let path = messages.split('"').find(|word| word.ends_with(&file)).map(PathBuf::from);
        path.ok_or_else(|| Failure(format!("cargo does not name the place of {file}")))
    };
    copy(&built("a")?, &layout.staged_library(&archive_name(name)))?;
    let file = format!("{library}.{VERSION}");
    copy(&built("so")?, &layout.staged_library(&file))?;
    super::strip(&layout.staged_library(&file))?;
    link(&file, &layout.staged_library(&soname))?;
    link(&soname, &layout.staged_library(&library))
}

/// What a program is linked with, and what else if it is linked statically.
fn link_flags(library: &Library) -> (String, &'static str) {
    match library.form {
        Form::Headers => (String::new(), ""),
        Form::Archive => (format!("-lquaject-{} -pthread -ldl", library.name), ""),
        // What the standard library of Rust asks for; the unwinder as an archive, since `-static` finds no other.
        Form::Rust(_) => (format!("-lquaject-{}", library.name), "-lgcc_eh -lpthread -lm -ldl"),
    }
}

fn pkg_config(layout: &Layout, library: &Library) -> String {
    let Library { name, description, .. } = library;
    let (libraries, private) = link_flags(library);
    let libdir = match layout.libdir_below_prefix() {
        Some(folder) => format!("${{prefix}}/{}", folder.display()),
        None => layout.libdir().display().to_string(),
    };
    let mut text = format!(
        "prefix={}\nincludedir=${{prefix}}/include\nlibdir={libdir}\n\n\
         Name: quaject-{name}\nDescription: {description}\nVersion: {VERSION}\nCflags: -I\"${{includedir}}\"\n",
        layout.prefix().display(),
    );
    if *name == "esp" {
        // For `include` in makefiles.
        text = text.replacen("libdir=", &format!("makefile=${{prefix}}/{MAKEFILE}\nlibdir="), 1);
    }
    if !libraries.is_empty() {
        text += &format!("Libs: -L\"${{libdir}}\" {libraries}\n");
    }
    if !private.is_empty() {
        text += &format!("Libs.private: {private}\n");
    }
    text
}

/// Imported targets, one per library and form. The folders are relative to the file, so that the tree can be moved.
fn cmake_config(layout: &Layout) -> String {
    let place = |name: &str| match layout.libdir_below_prefix() {
        Some(folder) => format!("${{quaject_libdir}}/{}{name}", "../".repeat(folder.components().count())),
        None => layout.prefix().join(name).display().to_string(),
    };
    let (include, programs) = (place("include"), place("bin"));
    let mut text = format!(
        "# find_package(Quaject) defines the targets quaject::NAME, and quaject::NAME-static if NAME is a shared library,\n\
         # and the function quaject_esp_add.\n\
         get_filename_component(quaject_libdir \"${{CMAKE_CURRENT_LIST_DIR}}/../..\" ABSOLUTE)\n\
         get_filename_component(quaject_include \"{include}\" ABSOLUTE)\n\
         get_filename_component(quaject_bindir \"{programs}\" ABSOLUTE)\n\
         include(\"${{CMAKE_CURRENT_LIST_DIR}}/quaject-esp.cmake\")\nfind_package(Threads REQUIRED)\n",
    );
    for library in LIBRARIES {
        let name = library.name;
        let archive = archive_name(name);
        let shared = format!("libquaject-{name}.so");
        match library.form {
            Form::Headers => text += &cmake_target(name, "INTERFACE", None),
            Form::Archive => {
                text += &cmake_target(name, "STATIC", Some((&archive, "Threads::Threads;${CMAKE_DL_LIBS}")));
            }
            Form::Rust(_) => {
                text += &cmake_target(name, "SHARED", Some((&shared, "")));
                let needed = "Threads::Threads;m;${CMAKE_DL_LIBS}";
                text += &cmake_target(&format!("{name}-static"), "STATIC", Some((&archive, needed)));
            }
        }
    }
    text
}

/// One imported target; `library` is its file in the library folder and what that is linked with.
fn cmake_target(name: &str, kind: &str, library: Option<(&str, &str)>) -> String {
    let mut text = format!(
        "\nif(NOT TARGET quaject::{name})\n  add_library(quaject::{name} {kind} IMPORTED)\n  \
         set_target_properties(quaject::{name} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES \"${{quaject_include}}\")\n"
    );
    if let Some((file, needed)) = library {
        text += &format!(
            "  set_target_properties(quaject::{name} PROPERTIES IMPORTED_LOCATION \"${{quaject_libdir}}/{file}\"\n    \
             INTERFACE_LINK_LIBRARIES \"{needed}\")\n"
        );
    }
    text + "endif()\n"
}

/// CMake's protocol of versions: one satisfies a request if the interface is the same.
fn cmake_version() -> String {
    format!(
        "set(PACKAGE_VERSION \"{VERSION}\")\n\
         if(PACKAGE_FIND_VERSION VERSION_GREATER PACKAGE_VERSION OR NOT \"${{PACKAGE_FIND_VERSION}}.\" MATCHES \"^{}[.]\")\n  \
         set(PACKAGE_VERSION_COMPATIBLE FALSE)\nelse()\n  set(PACKAGE_VERSION_COMPATIBLE TRUE)\nendif()\n\
         if(PACKAGE_FIND_VERSION VERSION_EQUAL PACKAGE_VERSION)\n  set(PACKAGE_VERSION_EXACT TRUE)\nendif()\n",
        interface_version().replace('.', "[.]"),
    )
}
