//! The runners of `include/quaject/pipe.h`, and the parameters of a run.

use super::{Failure, OK, array, failed, qj_pipe, status, take_back};
use crate::error::Error;
use crate::lists::{RawPart, check_overlap, total};
use crate::pipe::{Options, Pipe};
use crate::policy::{Store, Temperature};
use crate::report::Report;
use crate::runner::Runner;
use crate::step::MAX_STREAMS;
use std::ffi::c_int;
use std::sync::Arc;
use std::{ptr, slice};

#[repr(C)]
pub(crate) struct qj_run_options {
    temperature: c_int,
    store: c_int,
    streams: *const *const u8,
    stream_count: usize,
}

/// Key streams as Rust has them.
type Streams<'s> = [&'s [u8]; MAX_STREAMS];

/// Options for a run over this number of bytes; `room` holds its streams.
///
/// # Safety
/// They are valid or null, and every stream has as many bytes.
#[inline(always)]
unsafe fn options<'s>(
    own: *const qj_run_options,
    bytes: usize,
    room: &'s mut Streams<'_>,
) -> Result<Options<'s>, Error> {
    // SAFETY: the caller says so.
    let Some(own) = (unsafe { own.as_ref() }) else { return Ok(Options::default()) };
    // SAFETY: the caller says so.
    let given = unsafe { array(own.streams, own.stream_count) };
    let Some(room) = room.get_mut(..given.len()) else {
        return Err(Error::Streams { wanted: MAX_STREAMS, given: given.len() });
    };
    for (place, stream) in room.iter_mut().zip(given) {
        // SAFETY: the caller says so.
        *place = unsafe { array(*stream, bytes) };
    }
    let temperature = match own.temperature {
        1 => Temperature::Hot,
        2 => Temperature::Cold,
        _ => Temperature::Unknown,
    };
    let store = match own.store {
        1 => Some(Store::Cached),
        2 => Some(Store::Prefetching),
        3 => Some(Store::Streaming),
        _ => None,
    };
    Ok(Options { temperature, store, streams: room })
}

/// A runner and the pipe that it runs.
pub(crate) struct qj_runner {
    runner: Runner<'static>,
    /// The bytes of the pieces so far.
    bytes: u64,
    /// The owner of what `runner` borrows; fields are dropped in this order.
    _pipe: Arc<Pipe>,
}

impl qj_runner {
    /// Runs over bytes: a complete run if `whole`, or the next piece of one.
    ///
    /// # Safety
    /// As the header says of the pointers.
    #[inline(always)]
    unsafe fn pass(
        &mut self,
        source: *const u8,
        target: *mut u8,
        bytes: usize,
        own: *const qj_run_options,
        whole: bool,
    ) -> c_int {
        let outcome = if own.is_null() {
            // SAFETY: the caller says so.
            unsafe { self.pass_with(source, target, bytes, Options::default(), whole) }
        } else {
            // SAFETY: the caller says so.
            unsafe { self.pass_requested(source, target, bytes, own, whole) }
        };
        match outcome {
            Ok(()) => OK,
            Err(error) => failed(error.into()),
        }
    }

    /// Runs with options; a separate function, so that room for them is reserved only here.
    ///
    /// # Safety
    /// As [`qj_runner::pass`].
    #[inline(never)]
    unsafe fn pass_requested(
        &mut self,
        source: *const u8,
        target: *mut u8,
        bytes: usize,
        own: *const qj_run_options,
        whole: bool,
    ) -> Result<(), Error> {
        let mut room: Streams<'_> = [&[]; MAX_STREAMS];
        // SAFETY: the caller says so.
        unsafe { self.pass_with(source, target, bytes, options(own, bytes, &mut room)?, whole) }
    }

    /// # Safety
    /// As [`qj_runner::pass`].
    #[inline(always)]
    unsafe fn pass_with(
        &mut self,
        source: *const u8,
        target: *mut u8,
        bytes: usize,
        options: Options<'_>,
        whole: bool,
    ) -> Result<(), Error> {
        let pipe = self.runner.pipe();
        pipe.check_streams(bytes, options.streams)?;
        let target = if pipe.writes() { target } else { ptr::dangling_mut() };
        if pipe.writes() && target.is_null() {
            pipe.check_target(bytes, 0)?;
        }
        let distance = (target as usize).abs_diff(source as usize);
        if pipe.writes() && distance != 0 && distance < bytes {
            return Err(Error::Overlap);
        }
        // SAFETY: 1. Source and target, if the pipe writes, have so many bytes. 2. Streams are as many as wanted and
        // long enough. 3. If source and target share bytes they are the same.
        unsafe {
            if whole {
                self.runner.run_at_once(source, target, bytes, options).map(|_| ())
            } else {
                self.runner.piece(source, target, bytes, bytes, options)
            }
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_runner_new(pipe: *const qj_pipe) -> *mut qj_runner {
    // SAFETY: the pointer is valid, as the header demands.
    let pipe = Arc::clone(&unsafe { &*pipe }.0);
    // SAFETY: what is behind an `Arc` stays where it is, and this one is kept longer than the runner.
    let runner = unsafe { &*Arc::as_ptr(&pipe) }.runner();
    Box::into_raw(Box::new(qj_runner { runner, bytes: 0, _pipe: pipe }))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_runner_free(runner: *mut qj_runner) {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { take_back(runner) }
}

/// Lends the report, if it is wanted.
///
/// # Safety
/// There is a place for it, or none.
#[inline(always)]
unsafe fn lend(report: &Report, place: *mut *const Report) {
    if !place.is_null() {
        // SAFETY: the caller says so.
        unsafe { *place = report };
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_runner_run(
    runner: *mut qj_runner,
    source: *const u8,
    target: *mut u8,
    bytes: usize,
    options: *const qj_run_options,
    report: *mut *const Report,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let own = &mut *runner;
        own.bytes = 0;
        let status = own.pass(source, target, bytes, options, true);
        if status == OK {
            lend(own.runner.report(), report);
        }
        status
    }
}

#[repr(C)]
pub(crate) struct qj_part {
    data: *mut u8,
    bytes: usize,
}

/// Parts as the run has them.
pub(super) fn raw(parts: &[qj_part]) -> Vec<RawPart> {
    parts.iter().map(|part| RawPart { data: part.data, bytes: part.bytes }).collect()
}

/// # Safety
/// Parts are valid for writes, and share no byte with each other, as long as the slices are used.
pub(super) unsafe fn writable<'p>(parts: &[qj_part]) -> Vec<&'p mut [u8]> {
    // SAFETY: the caller says so.
    let slice = |part: &qj_part| unsafe { slice::from_raw_parts_mut(part.data, part.bytes) };
    parts.iter().map(|part| if part.bytes == 0 { &mut [] } else { slice(part) }).collect()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_runner_run_parts(
    runner: *mut qj_runner,
    sources: *const qj_part,
    source_count: usize,
    targets: *const qj_part,
    target_count: usize,
    own: *const qj_run_options,
    report: *mut *const Report,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let runner = &mut *runner;
        runner.bytes = 0;
        let sources = raw(array(sources, source_count));
        let targets = raw(array(targets, target_count));
        let mut room: Streams<'_> = [&[]; MAX_STREAMS];
        let is_apart = if runner.runner.pipe().writes() { check_overlap(&sources, &targets) } else { Ok(()) };
        let outcome = is_apart.and_then(|()| {
            let options = options(own, total(&sources), &mut room)?;
            lend(runner.runner.run_raw_lists(&sources, &targets, options)?.report(), report);
            Ok(())
        });
        status(outcome.map_err(Failure::from))
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_runner_begin(runner: *mut qj_runner) {
    // SAFETY: the pointer is valid, as the header demands.
    let own = unsafe { &mut *runner };
    own.runner.begin();
    own.bytes = 0;
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_runner_piece(
    runner: *mut qj_runner,
    source: *const u8,
    target: *mut u8,
    bytes: usize,
    options: *const qj_run_options,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let own = &mut *runner;
        if !own.bytes.is_multiple_of(8) {
            return failed(Error::Piece { before: own.bytes }.into());
        }
        let status = own.pass(source, target, bytes, options, false);
        if status == OK {
            own.bytes += bytes as u64;
        }
        status
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_runner_end(runner: *mut qj_runner) -> *const Report {
    // SAFETY: the pointer is valid, as the header demands.
    let own = unsafe { &mut *runner };
    own.runner.end(own.bytes)
}
