//! The C types and functions of `quaject/esp.h` and `resources/guard.h`, declared again in Rust.

use quaject_esp_ir::ir::{ChannelId, Fault, Location};
use std::ffi::c_void;

/// `esp_source`
#[repr(C)]
pub(super) struct Source {
    pub(super) messages: *const c_void,
    pub(super) count: usize,
    pub(super) closed: bool,
}

/// `esp_sink`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Sink {
    pub(super) messages: *mut c_void,
    pub(super) capacity: usize,
    pub(super) count: usize,
    pub(super) closed: bool,
}

/// `esp_output_head`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) taken: *mut usize,
    pub(super) limit: usize,
    pub(super) wake: i64,
    pub(super) exit_status: i32,
}

/// `esp_location`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct CLocation {
    pub(super) file: u16,
    pub(super) column: u16,
    pub(super) line: u32,
    pub(super) channel: i32,
}

/// `esp_fault_report`
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Report {
    pub(super) code: u32,
    pub(super) instance: u32,
    pub(super) place: CLocation,
}

/// `esp_library`
#[repr(C)]
pub(super) struct Exported {
    pub(super) abi: u32,
    pub(super) instances: u32,
    pub(super) sources: u32,
    pub(super) sinks: u32,
    pub(super) state_size: usize,
    pub(super) init: unsafe extern "C" fn(*mut c_void),
    pub(super) step: unsafe extern "C" fn(*mut c_void, *const Source, *mut Head, i64) -> i32,
    pub(super) fault: unsafe extern "C" fn(*const c_void) -> Report,
    pub(super) place: unsafe extern "C" fn(*const c_void, u32) -> CLocation,
    pub(super) stuck: unsafe extern "C" fn(*const c_void, u32) -> bool,
    pub(super) open: unsafe extern "C" fn(*const c_void, u32, u32) -> bool,
    pub(super) trace: *const c_void,
}

/// The version of `esp_library` declared here.
pub(super) const ABI: u32 = 2;
pub(super) const ESP_SLEEP: i32 = 0;
pub(super) const ESP_AGAIN: i32 = 1;
pub(super) const ESP_DONE: i32 = 2;
pub(super) const ESP_FAULT: i32 = 3;
/// Returned by the guard, in addition to the values of `esp_status`: the step was left in the middle.
pub(super) const QJ_LEFT: i32 = 100;

/// `qj_take_step`
pub(super) type TakeStep = unsafe extern "C" fn(&Exported, *mut c_void, *const Source, *mut Head, i64) -> i32;
/// `qj_leave_step`
pub(super) type LeaveStep = unsafe extern "C" fn();

/// The head of an `esp_output` and its sinks in one block of memory: both halves of the union are 32 bytes, so that the
/// array is the structure C declares.
#[repr(C)]
pub(super) union OutputBlock {
    pub(super) head: Head,
    pub(super) sink: Sink,
}
const _: () = assert!(size_of::<Head>() == size_of::<Sink>() && align_of::<Head>() == align_of::<Sink>());

pub(super) fn location(place: CLocation) -> Location {
    Location { file: place.file, line: place.line, column: u32::from(place.column), member: None }
}

pub(super) fn channel(place: CLocation) -> Option<ChannelId> {
    u32::try_from(place.channel).ok().map(ChannelId)
}

/// `esp_fault_code`
pub(super) fn fault_of(code: u32) -> Fault {
    match code {
        1 => Fault::Assert,
        2 => Fault::Bounds,
        3 => Fault::Div,
        4 => Fault::Overflow,
        5 => Fault::Pool,
        6 => Fault::Range,
        7 => Fault::Memory,
        8 => Fault::Alt,
        9 => Fault::Deadlock,
        _ => Fault::Extern,
    }
}
