//! The generator of `quaject-vcode`: from `machines/*.spec` to Rust emitters, C emitters, decoder tables and the
//! reference page, as VCODE's preprocessor generates its emitters from a machine specification ("VCODE" 5.4).
//!
//! ```text
//! text ── read ──> portable (operations, forms), model (machines), extension (portable rows)
//!                                  │
//!                                emit (decision tree of a row, printed in Rust or C)
//!                                  │
//!            print_rust, print_system, print_c, print_c_layers, print_vectors, print_layers, print_peephole,
//!            print_tables, print_tests, print_docs
//! ```
//!
//! The printers for Rust and C share [`emit`], so an instruction cannot differ between the two. Functions, frames and
//! calling conventions are part of `quaject-vcode`.
//!
#![doc = include_str!("../README.md")]

mod availability;
mod c_spelling;
pub mod emit;
mod expand;
pub mod expr;
pub mod extension;
pub mod model;
pub mod portable;
mod print_c;
mod print_c_layers;
mod print_docs;
mod print_extension;
mod print_layers;
mod print_peephole;
mod print_rust;
mod print_system;
mod print_tables;
mod print_tests;
mod print_vectors;
mod read;
mod rust_spelling;
mod scatter;

use extension::PortableRow;
use model::{Machine, PortableOp};

/// An error in a specification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpecError {
    /// Name of the specification file.
    pub file: String,
    /// Line, counted from one.
    pub line: usize,
    /// The message.
    pub message: String,
}

impl std::fmt::Display for SpecError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl std::error::Error for SpecError {}

/// A specification file: its name without folder, and its text.
#[derive(Debug, Clone)]
pub struct Source {
    /// File name, for errors.
    pub name: String,
    /// The text.
    pub text: String,
}

/// A generated file: path below the root of the workspace, and its text.
#[derive(Debug, Clone)]
pub struct Generated {
    /// Path relative to the root of the workspace.
    pub path: String,
    /// The whole text of the file.
    pub text: String,
}

/// The sources of the specifications: the portable instruction set, the layers above it, the machines, and their
/// extensions.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// `portable.spec` first, then extension layers.
    pub portable: Vec<Source>,
    /// One per machine, with the files that extend it.
    pub machines: Vec<Vec<Source>>,
}

/// All specifications after reading.
#[derive(Debug, Clone)]
pub struct Specification {
    /// The portable instructions, extensions last.
    pub ops: Vec<PortableOp>,
    /// Rows of extensions in terms of other portable instructions.
    pub rows: Vec<PortableRow>,
    /// The machines.
    pub machines: Vec<Machine>,
}

/// Reads the portable instruction set and every machine.
///
/// # Errors
/// The first error in a specification.
pub fn read_all(sources: &Sources) -> Result<Specification, SpecError> {
    let (ops, rows) = read::portable(&sources.portable)?;
    let machines = sources.machines.iter().map(|files| read::machine(files, &ops, &rows)).collect::<Result<_, _>>()?;
    Ok(Specification { ops, rows, machines })
}

/// Everything that is generated from the specifications, as files relative to the root of the workspace.
///
/// # Errors
/// The first error in a specification.
pub fn generate(sources: &Sources) -> Result<Vec<Generated>, SpecError> {
    let Specification { ops, machines, .. } = read_all(sources)?;
    let mut files = vec![Generated {
        path: "crates/vcode/src/generated/core.rs".into(),
        text: print_rust::core_trait(&ops, &machines),
    }];
    for machine in &machines {
        let name = &machine.name;
        files.push(Generated {
            path: format!("crates/vcode/src/generated/{name}.rs"),
            text: print_rust::machine(&ops, &machines, machine)?,
        });
        files.push(Generated {
            path: format!("crates/vcode/src/generated/{name}_table.rs"),
            text: print_tables::table(machine),
        });
        files.push(Generated {
            path: format!("crates/vcode/include/quaject/vcode/generated/{name}.h"),
            text: print_c::machine(&ops, machine)?,
        });
    }
    for machine in machines.iter().filter(|machine| !machine.widths.is_empty()) {
        files.push(Generated {
            path: format!("crates/vcode/include/quaject/vcode/generated/vectors/{}.h", machine.name),
            text: print_vectors::c(&ops, machine)?,
        });
    }
    for machine in machines.iter().filter(|machine| machine.system().next().is_some()) {
        files.push(Generated {
            path: format!("crates/vcode/src/generated/{}_system.rs", machine.name),
            text: print_system::emitters(machine),
        });
        files.push(Generated {
            path: format!("tests/machines/src/generated/{}_system.rs", machine.name),
            text: print_system::list(machine),
        });
        files.push(Generated {
            path: format!("docs/vcode-system-{}.md", machine.name),
            text: print_system::page(machine),
        });
    }
    files.push(Generated {
        path: "tests/machines/src/generated/instructions.rs".into(),
        text: print_tests::list(&ops, &machines),
    });
    files.push(Generated {
        path: "crates/vcode/src/generated/instructions.rs".into(),
        text: print_layers::instructions(&ops, &machines),
    });
    files.push(Generated {
        path: "crates/vcode/src/generated/virtual_registers.rs".into(),
        text: print_layers::virtual_registers(&ops, &machines),
    });
    files.push(Generated {
        path: "crates/vcode/include/quaject/vcode/generated/layers.h".into(),
        text: print_c_layers::header(&ops, &machines),
    });
    files.push(Generated {
        path: "crates/vcode/src/generated/peephole.rs".into(),
        text: print_peephole::window(&ops, &machines),
    });
    files.push(Generated { path: "docs/vcode-instructions.md".into(), text: print_docs::page(&ops, &machines) });
    Ok(files)
}
