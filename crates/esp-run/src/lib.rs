//! Runs ESP programs: drivers at external channels, the event loop, extern functions, the engines.
//! Everything around a program that is not the program: the only ESP crate that does I/O or has `unsafe`.

mod adaptive;
mod binding;
mod clock;
mod code_size;
mod compiled;
mod compiler;
mod debug_info;
pub mod disk;
mod drivers;
mod executable;
mod externs;
mod fault;
mod fault_tables;
mod faults;
pub mod files;
mod machine_code;
mod marshal;
mod ports;
mod record;
mod run;
mod signals;
pub mod spin;
mod trouble;
mod waiting;

pub use adaptive::adapt;
pub use binding::{Binding, Choice, Device, Driver, Endpoint, Interface, Place, Ring};
pub use clock::Time;
pub use code_size::{CodeSizes, SIZE_FLAGS, measure, measure_code};
pub use debug_info::DebugInfo;
pub use executable::build_executable;
pub use externs::Externs;
pub use fault::render as render_fault;
pub use faults::{Faults, Medium, Suffered};
pub use machine_code::MachineCode;
pub use ports::Ports;
pub use record::{Header, Recording};
pub use run::{Ended, Ending, Engine, Memory, Settings, c_options, profile, record, replay, run};
pub use signals::{Interrupts, Signals, die_of};
pub use trouble::{Blame, Trouble};
