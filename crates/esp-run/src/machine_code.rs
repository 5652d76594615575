//! The engine `jit`: machine code for the local code of processes, which the interpreter calls at its entries. The code
//! returns to the interpreter before an operation that it does not have.

use crate::debug_info::DebugInfo;
use crate::error::HostError;
use crate::settings::{Engine, Settings};
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::Program;

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
mod native {
    use super::*;
    use crate::error::HostCode;
    use quaject_esp_exec::native::{Cell, Extents, Native, NativeFrame};
    use quaject_esp_gen::jit;
    use quaject_esp_ir::ir::ProcessId;
    use quaject_vcode::debug::gdb::Registered;
    use quaject_vcode::{Memory, Workspace};

    /// The longest code of one process, in bytes.
    const MAX_BYTES: usize = 1 << 20;
    /// The longest code of a program.
    const MAX_PROGRAM_BYTES: usize = 1 << 28;
    /// The maximum of loop iterations between two checks of the fuel.
    const MAX_TURNS: u64 = 1 << 30;

    /// Machine code for the processes of a program.
    #[derive(Debug)]
    pub struct MachineCode {
        processes: Vec<Unit>,
        /// The registrations with GDB.
        _registered: Vec<Registered>,
        /// The constants that the code reads.
        _constants: Box<[u8]>,
        /// Owns the code that `processes` point to.
        _memory: Memory,
    }

    /// Machine code of one process.
    #[derive(Debug)]
    struct Unit {
        /// The address of the function.
        function: usize,
        /// By position: whether it is an entry.
        entries: Vec<bool>,
        /// By position: the address of the entry, or 0.
        addresses: Vec<usize>,
        /// The number of values of the body: the registers of a frame before its cells.
        values: usize,
    }

    impl MachineCode {
        /// Compiles the processes of a verified program. A process that is too large is interpreted.
        ///
        /// # Errors
        /// There is no memory for code, or the debug information cannot be written.
        pub fn compile(program: &Program, checks: Checks, debug_info: DebugInfo) -> Result<MachineCode, HostError> {
            let no_memory = |error: quaject_vcode::Error| {
                HostError::new(HostCode::System, format!("there is no room for machine code: {error}"))
                    .help("use `--engine interp`")
            };
            // Pages that are never written take no memory.
            let bytes = program.processes.len().saturating_mul(MAX_BYTES).min(MAX_PROGRAM_BYTES);
            let memory = debug_info.memory(bytes).map_err(no_memory)?;
            let mut registered = Vec::new();
            let extents = Extents::new(program);
            let (offsets, constants) = extents.constants(program);
            let constants = constants.into_boxed_slice();
            let addresses = jit::ConstantAddresses { base: constants.as_ptr() as u64, offsets };
            let mut buffer = vec![0u8; MAX_BYTES];
            let mut room: Box<jit::Room<quaject_vcode::Native>> = Box::new(Workspace::with_room());
            let mut processes = Vec::new();
            for process in &program.processes {
                let code = jit::compile(program, process, &extents, &addresses, checks, &mut buffer, &mut room);
                let Ok(code) = code else {
                    processes.push(Unit::interpreted());
                    continue;
                };
                let installed = memory.install(&buffer, &code.code).map_err(no_memory)?;
                registered.extend(debug_info.register((program, process), installed.entry, (&code, &buffer))?);
                processes.push(Unit::new(installed.entry, &code, process.body.values.len()));
            }
            Ok(MachineCode { processes, _registered: registered, _constants: constants, _memory: memory })
        }
    }

    impl Unit {
        /// Without any code.
        fn interpreted() -> Unit {
            Unit { function: 0, entries: Vec::new(), addresses: Vec::new(), values: 0 }
        }

        fn new(function: usize, code: &jit::Code, values: usize) -> Unit {
            let last = code.entries.iter().map(|entry| entry.position as usize + 1).max().unwrap_or(0);
            let mut unit = Unit { function, entries: vec![false; last], addresses: vec![0; last], values };
            for entry in &code.entries {
                unit.entries[entry.position as usize] = true;
                // `function` is the address of the buffer's byte at `offset`.
                unit.addresses[entry.position as usize] = function + entry.offset - code.code.offset;
            }
            unit
        }
    }

    impl Native for MachineCode {
        fn entries(&self, process: ProcessId) -> &[bool] {
            &self.processes[process.0 as usize].entries
        }

        fn run(&mut self, process: ProcessId, at: u32, frame: NativeFrame<'_>, fuel: &mut u64) -> u32 {
            let unit = &self.processes[process.0 as usize];
            assert_eq!(frame.registers.len(), unit.values + Cell::COUNT, "the frame is the process's");
            let target = unit.addresses[at as usize];
            assert!(target != 0, "only entries are entered");
            let turns = (*fuel).min(MAX_TURNS);
            frame.registers[Cell::Fuel.index(unit.values)] = turns as i64;
            frame.registers[Cell::Memory.index(unit.values)] = frame.memory.as_mut_ptr() as i64;
            frame.registers[Cell::Own.index(unit.values)] = i64::from(frame.own);
            // SAFETY: 1. `function` is code that `jit::compile` wrote with this signature; `_memory` keeps it. 2.
            // `target` is an entry of it. 3. The code touches the registers and cells of the frame, whose number was
            // checked, memory at offsets inside the slots, which it checks itself, and reads `_constants` likewise. 4.
            // All are borrowed or owned for the call.
            let position = unsafe {
                let function: extern "C" fn(*mut i64, usize) -> i32 = std::mem::transmute(unit.function);
                function(frame.registers.as_mut_ptr(), target)
            };
            let left = (frame.registers[Cell::Fuel.index(unit.values)] as i32).max(0) as u64;
            *fuel -= turns - left;
            position as u32
        }
    }
}

#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64"))))]
mod unsupported {
    use super::*;
    use quaject_esp_exec::native::{Native, NativeFrame};
    use quaject_esp_ir::ir::ProcessId;

    /// Machine code for the processes of a program: there is none for this machine.
    #[derive(Debug)]
    pub enum MachineCode {}

    impl MachineCode {
        /// Refuses: there is no code memory, or no code generator.
        pub fn compile(_program: &Program, _checks: Checks, _debug_info: DebugInfo) -> Result<MachineCode, HostError> {
            let error = HostError::unsupported("engine `jit` needs Linux on x86-64, AArch64 or RISC-V 64");
            Err(error.help("leave out `--engine`, or use `--engine interp`"))
        }
    }

    impl Native for MachineCode {
        fn entries(&self, _process: ProcessId) -> &[bool] {
            match *self {}
        }

        fn run(&mut self, _process: ProcessId, _at: u32, _frame: NativeFrame<'_>, _fuel: &mut u64) -> u32 {
            match *self {}
        }
    }
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]
pub use native::MachineCode;
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
)))]
pub use unsupported::MachineCode;

impl MachineCode {
    /// The machine code of a program, if the engine uses machine code and this machine has a code generator.
    ///
    /// # Errors
    /// [`HostError`] if the engine requires machine code and there is none.
    pub(crate) fn of_engine(program: &Program, settings: &Settings) -> Result<Option<MachineCode>, HostError> {
        match settings.engine {
            Engine::Interpreter | Engine::C => Ok(None),
            Engine::Jit => MachineCode::compile(program, settings.checks, settings.debug_info).map(Some),
            Engine::Best => Ok(MachineCode::compile(program, settings.checks, settings.debug_info).ok()),
        }
    }
}
