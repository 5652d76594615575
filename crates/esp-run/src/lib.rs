//! Runs ESP programs: drivers of external channels, the event loop, extern functions, the engines. It is the only ESP
//! crate that does I/O or has `unsafe`.

#![cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "parts of the drivers serve devices of Linux only"))]

/// The examples of the README are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod adaptive;
mod binding;
mod clock;
mod code_size;
mod compiled;
mod compiler;
mod debug_info;
mod dependency_file;
pub mod disk;
mod drivers;
mod error;
mod executable;
mod externs;
mod fault;
mod fault_injection;
mod fault_tables;
pub mod files;
mod frame_log;
#[cfg(target_os = "linux")]
mod link_monitor;
mod machine_code;
mod marshal;
mod outcome;
mod poller;
mod ports;
mod record;
mod run;
mod settings;
mod signals;
pub mod spin;
mod stack_usage;
mod system;

pub use adaptive::adapt;
pub use binding::{
    Binding, CanEndpoint, Choice, DeviceEndpoint, Driver, Interface, Ring, SocketEndpoint, StreamEndpoint,
};
pub use clock::{Time, monotonic_time};
pub use code_size::{CodeSizes, SIZE_FLAGS, measure, measure_code, measure_stack};
pub use compiler::included_headers;
pub use debug_info::DebugInfo;
pub use dependency_file::dependency_file;
pub use error::{EXPLANATIONS, ErrorKind, HostCode, HostError};
pub use executable::build_executable;
pub use externs::Externs;
pub use fault::{diagnostic as fault_diagnostic, render as render_fault};
pub use fault_injection::{FaultCounts, FaultInjector, FaultPlan};
#[cfg(target_os = "linux")]
pub use link_monitor::LinkMonitor;
pub use machine_code::MachineCode;
pub use outcome::{RunOutcome, RunReport};
pub use ports::Ports;
pub use record::{Header, Recording};
pub use run::{LineCoverage, c_options, cover, log_messages, profile, record, replay, run};
pub use settings::{Engine, Memory, Settings};
pub use signals::{Interrupts, Signals, die_of};
