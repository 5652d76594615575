//! Debug information of machine code, for debuggers and profilers: the code of each process is a function of its name,
//! with lines of the program's files. Without a debugger it costs nothing.

/// The debugger or profiler that machine code is registered with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DebugInfo {
    /// None.
    #[default]
    None,
    /// GDB, by its interface for code made at run time. It may set breakpoints, so code is in pages of its own.
    Gdb,
    /// `perf inject --jit`, by `jit-PID.dump` in the folder for temporary files.
    Perf,
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod native {
    use super::DebugInfo;
    use crate::error::{HostCode, HostError};
    use quaject_esp_gen::jit;
    use quaject_esp_ir::ir::{Process, Program};
    use quaject_vcode::debug::gdb::{self, Registered};
    use quaject_vcode::debug::{FunctionInfo, Line, perf, prologue_bytes};
    use quaject_vcode::{Memory, Native};
    use std::io;
    use std::path::Path;
    use std::sync::{Mutex, PoisonError};

    /// The file that `perf` reads, one per system process. `perf record` finds it by its mapping.
    static DUMP: Mutex<Option<perf::Dump>> = Mutex::new(None);

    impl DebugInfo {
        /// Memory for code.
        ///
        /// # Errors
        /// Those of [`Memory`].
        pub(crate) fn memory(self, bytes: usize) -> Result<Memory, quaject_vcode::Error> {
            match self {
                DebugInfo::None | DebugInfo::Perf => Memory::new(bytes),
                DebugInfo::Gdb => Memory::debuggable(bytes),
            }
        }

        /// Registers the code of a process, which `buffer` holds, installed at `entry`. The registration must live as
        /// long as the code.
        ///
        /// # Errors
        /// A file for `perf` cannot be written.
        pub(crate) fn register(
            self,
            (program, process): (&Program, &Process),
            entry: usize,
            (code, buffer): (&jit::Code, &[u8]),
        ) -> Result<Option<Registered>, HostError> {
            if self == DebugInfo::None {
                return Ok(None);
            }
            let paths: Vec<String> = program.files.iter().map(|file| absolute(file)).collect();
            // The file of the process comes first.
            let file = process.location.file as usize;
            let others = paths.iter().enumerate().filter(|(number, _)| *number != file);
            let order: Vec<usize> = std::iter::once(file).chain(others.map(|(number, _)| number)).collect();
            let sources: Vec<&str> = order.iter().filter_map(|number| paths.get(*number)).map(String::as_str).collect();
            let start = code.code.offset;
            let prologue = prologue_bytes::<Native>(&code.code);
            let line = |offset: usize, file: u16, line: u32| Line {
                offset,
                source: order.iter().position(|number| *number == usize::from(file)).unwrap_or(0),
                line: line as usize,
            };
            // A breakpoint at the name of a function is at its second line.
            let head = [0, prologue].map(|offset| line(offset, process.location.file, process.location.line));
            let of = |origin: &jit::Origin| line(origin.offset - start, origin.location.file, origin.location.line);
            let lines: Vec<Line> = head.into_iter().chain(code.origins.iter().map(of)).collect();
            let described = FunctionInfo {
                name: &process.name,
                entry,
                code: &buffer[start..start + code.code.instructions],
                prologue,
                sources: &sources,
                lines: &lines,
            };
            match self {
                DebugInfo::None => Ok(None),
                DebugInfo::Gdb => Ok(Some(gdb::register(&described))),
                DebugInfo::Perf => write_perf(&described).map(|()| None).map_err(|error| {
                    HostError::new(HostCode::File, format!("cannot write what `perf` reads: {error}")).help(format!(
                        "it is written to `{}`; `TMPDIR` says where else",
                        std::env::temp_dir().display()
                    ))
                }),
            }
        }
    }

    fn write_perf(described: &FunctionInfo<'_>) -> io::Result<()> {
        let mut dump = DUMP.lock().unwrap_or_else(PoisonError::into_inner);
        let dump = match &mut *dump {
            Some(dump) => dump,
            none => none.insert(perf::Dump::create(&std::env::temp_dir())?),
        };
        dump.add(described)
    }

    /// The path of a file for a debugger with another working directory.
    fn absolute(file: &str) -> String {
        std::path::absolute(Path::new(file))
            .map_or_else(|_| file.to_string(), |path| path.to_string_lossy().into_owned())
    }
}
