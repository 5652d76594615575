//! A kernel that runs static Linux programs, after the Synthesis kernel (Massalin, Pu 1989). This file brings the
//! machine up; README.md has the map of the folders.
#![no_std]
#![no_main]

extern crate alloc;

mod arch;
mod calls;
mod cell;
mod checks;
mod counts;
mod first_process;
mod fs;
mod interruption;
mod log;
mod memory;
mod options;
mod outcome;
mod panic;
mod process;
mod schedule;
mod synthesis;
mod trace;
mod traps;

use arch::boot::Boot;
use arch::entry::{call_entry, continue_on, counting_call_entry};
use arch::segments::{KERNEL_CODE, SYSRET_BASE};
use arch::{apic, block, interrupts, processor, segments, serial};
use calls::dispatch;
use cell::Global;
use counts::Counting;
use log::log;
use memory::layout::{DEVICES, DIRECT_MAP};
use memory::stacks::KernelStack;
use memory::{code_area, frames, kernel_space};
use options::Options;
use outcome::{Outcome, end_machine};
use schedule::scheduler;

/// Called by `boot.s`, with the address of the loader's start information.
// SAFETY: no other function has the name.
#[unsafe(no_mangle)]
extern "C" fn kernel_main(start_info: u64) -> ! {
    serial::CONSOLE.initialize();
    serial::log_port().initialize();
    segments::initialize();
    interrupts::initialize();
    block::initialize();
    if let Some(feature) = processor::missing_features().next() {
        log!("the processor lacks {feature}: start QEMU with `-cpu max`");
        end_machine(Outcome::Refused);
    }
    // SAFETY: 1. `boot.s` hands on what the loader gave it. 2. It has mapped 4 GiB.
    let Some(boot) = (unsafe { Boot::read(start_info, DIRECT_MAP) }) else {
        log!("started by a loader without PVH start information");
        end_machine(Outcome::Refused);
    };
    initialize_memory(&boot);
    // SAFETY: the kernel's tables map the registers there.
    unsafe { apic::initialize(DEVICES as usize) }
    BOOT.with(|slot| *slot = Some(boot));
    let stack = KernelStack::new().expect("there is memory for a stack");
    // SAFETY: the stack is mapped and not in use; `continue_start` does not return.
    unsafe { continue_on(stack.end, continue_start) }
}

/// What the loader handed over, between the two stacks.
static BOOT: Global<Option<Boot>> = Global::new(None);

/// Goes on, on a stack that ends at an unmapped page.
extern "C" fn continue_start() -> ! {
    let boot = BOOT.with(Option::take).expect("`kernel_main` has read it");
    let options = Options::read(boot.command_line());
    start(&boot, &options)
}

fn initialize_memory(boot: &Boot) {
    let image = kernel_space::image();
    match boot.ramdisk() {
        Some(ramdisk) => frames::initialize(boot.memory(), &[image, ramdisk]),
        None => frames::initialize(boot.memory(), &[image]),
    }
    kernel_space::initialize().expect("there is memory for the kernel's tables");
    code_area::initialize().expect("there is memory for the code area");
}

fn start(boot: &Boot, options: &Options) -> ! {
    for word in &options.unknown {
        log!("the command line has `{word}`, which means nothing");
    }
    checks::check_protection();
    if options.count {
        counts::enable();
    }
    dispatch::observe(options.trace, counts::counting());
    let entry = match counts::counting() {
        Counting::Off => call_entry as *const () as u64,
        Counting::On => counting_call_entry as *const () as u64,
    };
    // SAFETY: `entry.s` handles calls, and the segments are loaded.
    unsafe { processor::set_call_entry(entry, KERNEL_CODE, SYSRET_BASE) }
    synthesis::initialize(options.trace).expect("the code area has room for the templates");
    scheduler::initialize();
    if let Some(fault) = &options.provoke {
        checks::provoke(fault);
    }
    if options.check {
        checks::run();
    }
    if options.measure {
        checks::measure();
    }
    if let Err(reason) = first_process::start(boot.ramdisk_bytes(), options) {
        log!("cannot start the program: {reason}");
        end_machine(Outcome::Refused);
    }
    scheduler::start()
}
