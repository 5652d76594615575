//! Code memory for C, and the registration of unwind information with the program.

use std::boxed::Box;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use core::ptr;

use super::failure::{Failure, Status};
use super::{OK, caught, qjl_function, report_for_thread, store};
use crate::fork::ForkLock;
use crate::memory::Memory;

/// Code memory, and the lengths of the functions in it by address.
struct qjl_memory {
    memory: Memory,
    installed: Mutex<BTreeMap<usize, usize>>,
}

impl qjl_memory {
    /// Accesses the list of functions. A fork waits meanwhile, so that the child finds the lock free.
    fn change<R>(&self, change: impl FnOnce(&mut BTreeMap<usize, usize>) -> R) -> R {
        let _fork = ForkLock::hold();
        change(&mut self.installed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_memory_new(bytes: usize, place: *mut *mut qjl_memory) -> c_int {
    if place.is_null() {
        return report_for_thread("memory_new", &Status::Null.into());
    }
    let made = caught(|| Ok(qjl_memory { memory: Memory::new(bytes)?, installed: Mutex::default() }));
    // SAFETY: there is a place for it, as the header demands.
    unsafe {
        match made {
            Ok(memory) => {
                *place = Box::into_raw(Box::new(memory));
                OK
            }
            Err(failure) => {
                *place = ptr::null_mut();
                report_for_thread("memory_new", &failure)
            }
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_memory_free(memory: *mut qjl_memory) {
    if !memory.is_null() {
        // SAFETY: it comes from `qjl_memory_new`, and the caller gives it back.
        drop(unsafe { Box::from_raw(memory) });
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_install(
    function: *mut qjl_function,
    memory: *mut qjl_memory,
    place: *mut *mut c_void,
) -> c_int {
    // SAFETY: the pointers are valid or null, as the header demands.
    let (function, memory) = unsafe {
        store(place, ptr::null_mut());
        (function.as_mut(), memory.as_ref())
    };
    let Some(function) = function else { return Status::Null as c_int };
    function.calls += 1;
    let installed = caught(|| {
        let memory = memory.filter(|_| !place.is_null()).ok_or(Status::Null)?;
        let (finished, region) = function.finished()?;
        if !function.is_native {
            return Err(Status::OtherMachine.into());
        }
        let installed = memory.memory.install(region, &finished.code)?;
        memory.change(|list| list.insert(installed.entry, installed.length));
        Ok(installed.entry)
    });
    match installed {
        Ok(entry) => {
            // SAFETY: there is a place for it, as was asked above.
            unsafe { store(place, ptr::with_exposed_provenance_mut(entry)) };
            OK
        }
        Err(failure) => function.report("install", &failure),
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_uninstall(memory: *mut qjl_memory, function: *const c_void) -> c_int {
    if function.is_null() {
        return OK;
    }
    // SAFETY: the pointer is valid or null, as the header demands.
    let Some(memory) = (unsafe { memory.as_ref() }) else { return Status::Null as c_int };
    let freed = caught(|| {
        let entry = function.addr();
        let length = memory.change(|list| list.remove(&entry)).ok_or(Status::NotInstalled)?;
        memory.memory.free(entry, length);
        Ok(())
    });
    freed.map_or_else(|failure| report_for_thread("uninstall", &failure), |()| OK)
}

/// Unwind information that the program knows.
struct qjl_frames {
    /// The section `.eh_frame`, which does not move.
    section: Box<[u8]>,
}

// SAFETY: the declarations of the unwinder that the program is linked with.
#[cfg(target_os = "linux")]
unsafe extern "C" {
    fn __register_frame(section: *const c_void);
    fn __deregister_frame(section: *const c_void);
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_frames_register(
    function: *mut qjl_function,
    installed: *const c_void,
    place: *mut *mut qjl_frames,
) -> c_int {
    // SAFETY: the pointers are valid or null, as the header demands.
    let function = unsafe {
        store(place, ptr::null_mut());
        function.as_mut()
    };
    let Some(function) = function else { return Status::Null as c_int };
    function.calls += 1;
    let made = caught(|| {
        if place.is_null() || installed.is_null() {
            return Err(Status::Null.into());
        }
        if !function.is_native {
            return Err(Status::OtherMachine.into());
        }
        registered(super::frames_at(function, installed.addr() as u64)?.into_boxed_slice())
    });
    match made {
        Ok(frames) => {
            // SAFETY: there is a place for it, as was asked above.
            unsafe { store(place, Box::into_raw(Box::new(frames))) };
            OK
        }
        Err(failure) => function.report("frames_register", &failure),
    }
}

#[cfg(target_os = "linux")]
fn registered(section: Box<[u8]>) -> Result<qjl_frames, Failure> {
    // SAFETY: 1. It is a complete section with a terminator. 2. It stays where it is until it is deregistered.
    unsafe { __register_frame(section.as_ptr().cast()) };
    Ok(qjl_frames { section })
}

#[cfg(not(target_os = "linux"))]
fn registered(_: Box<[u8]>) -> Result<qjl_frames, Failure> {
    Err(Status::NoFrames.into())
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_frames_free(frames: *mut qjl_frames) {
    if frames.is_null() {
        return;
    }
    // SAFETY: it comes from `qjl_frames_register`, and the caller gives it back.
    let frames = unsafe { Box::from_raw(frames) };
    #[cfg(target_os = "linux")]
    // SAFETY: it was registered, and no function that it describes is being executed, as the header demands.
    unsafe {
        __deregister_frame(frames.section.as_ptr().cast());
    }
    drop(frames);
}
