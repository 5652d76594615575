//! The functions that `include/quaject/pipe.h` declares, on the Rust ones. Knows nothing that those do not.
//!
//! Every function demands of its pointers what the header says: that they are valid, and null only where it says so.
#![allow(non_camel_case_types, reason = "types are called as the header calls them")]

mod runner;

use crate::error::{Error, TextDiagnostic};
use crate::handler::{Handler, Verdict};
use crate::ir::VerifyError;
use crate::ir::text::Definitions;
use crate::lists::{RawPart, check_overlap};
use crate::pipe::{Composer, Pipe};
use crate::policy::Store;
use crate::step::{Key, Step};
use crate::text::read_pipe;
use runner::{qj_part, raw, writable};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::Arc;
use std::{ptr, slice};

const OK: c_int = 0;
const TEXT: c_int = 13;
const ENCODING: c_int = 14;
const UNKNOWN: c_int = 15;
const VERIFY: c_int = 16;

/// An error for C: its code and its message.
struct Failure(c_int, String);

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let number = match error {
            Error::TooManySteps(_) => 1,
            Error::KeyLength(_) => 2,
            Error::TooManyStreams(_) => 3,
            Error::WideElement => 4,
            Error::TooManyInstructions(_) => 5,
            Error::Target { .. } => 6,
            Error::Overlap => 7,
            Error::Streams { .. } => 8,
            Error::StreamLength { .. } => 9,
            Error::Buffers { .. } => 10,
            Error::Piece { .. } => 11,
            Error::Code(_) => 12,
        };
        Failure(number, format!("{error}\nhelp: {}", help(&error)))
    }
}

/// The help text in terms of the header.
fn help(error: &Error) -> String {
    match error {
        Error::Overlap => "give memory that shares nothing, or the same address twice to run in place".into(),
        Error::KeyLength(_) => {
            "use a key of 1, 2, 4 or 8 bytes, or a key stream as long as the data (QJ_STEP_XOR_STREAM)".into()
        }
        Error::Streams { wanted, .. } => {
            format!("set `streams` to {wanted}, one for each QJ_STEP_XOR_STREAM, in order")
        }
        Error::Code(quaject_vcode::Error::NoCodeMemory) => error.help(),
        Error::Code(_) => "free pipes that are no longer used: qj_pipe_free() and qj_runner_free()".into(),
        Error::TooManySteps(_)
        | Error::TooManyStreams(_)
        | Error::WideElement
        | Error::TooManyInstructions(_)
        | Error::Target { .. }
        | Error::StreamLength { .. }
        | Error::Buffers { .. }
        | Error::Piece { .. } => error.help(),
    }
}

impl From<VerifyError> for Failure {
    fn from(error: VerifyError) -> Failure {
        Failure(VERIFY, format!("{error}\nhelp: {}", error.help))
    }
}

/// The failure of reading a text.
fn text_failure(text: &str, diagnostics: &[TextDiagnostic]) -> Failure {
    let mut lines = Vec::new();
    for diagnostic in diagnostics {
        lines.push(diagnostic.located_message(text));
        lines.extend(diagnostic.help.iter().map(|help| format!("help: {help}")));
    }
    Failure(TEXT, lines.join("\n"))
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Stores the message of a failure for the thread; returns its code.
#[inline(always)]
fn status(outcome: Result<(), Failure>) -> c_int {
    match outcome {
        Ok(()) => OK,
        Err(failure) => failed(failure),
    }
}

#[cold]
fn failed(Failure(number, text): Failure) -> c_int {
    let text = CString::new(text.replace('\0', " ")).expect("zero bytes were replaced");
    MESSAGE.with_borrow_mut(|message| *message = text);
    number
}

/// Passes a new object to the caller.
///
/// # Safety
/// There is a place for it.
unsafe fn give<T>(made: Result<T, Failure>, place: *mut *mut T) -> c_int {
    status(made.map(|made| {
        // SAFETY: the caller says so.
        unsafe { *place = Box::into_raw(Box::new(made)) };
    }))
}

/// Frees an object from [`give`] or `Box::into_raw`.
///
/// # Safety
/// It is null, or was given and has not been taken back.
unsafe fn take_back<T>(given: *mut T) {
    if !given.is_null() {
        // SAFETY: the caller says so.
        drop(unsafe { Box::from_raw(given) });
    }
}

/// Elements behind a pointer that may be null if there are none.
///
/// # Safety
/// There are as many, for as long as the slice is used.
unsafe fn array<'a, T>(first: *const T, count: usize) -> &'a [T] {
    // SAFETY: the caller says so.
    if count == 0 { &[] } else { unsafe { slice::from_raw_parts(first, count) } }
}

/// # Safety
/// It is a string that ends with zero, for as long as it is used.
unsafe fn string<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    // SAFETY: the caller says so.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure(ENCODING, "the text is not UTF-8".to_owned()))
}

// SAFETY: no other library has functions that begin so.
#[unsafe(no_mangle)]
extern "C" fn qj_pipe_message() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

pub(crate) struct qj_definitions(Definitions);

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_definitions_read(text: *const c_char, place: *mut *mut qj_definitions) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let made = string(text).and_then(|text| match Definitions::read(text) {
            (definitions, diagnostics) if diagnostics.is_empty() => Ok(qj_definitions(definitions)),
            (_, diagnostics) => Err(text_failure(text, &diagnostics)),
        });
        give(made, place)
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_definitions_free(definitions: *mut qj_definitions) {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { take_back(definitions) }
}

/// A pipe, which its runners keep.
pub(crate) struct qj_pipe(Arc<Pipe>);

impl qj_pipe {
    fn of(steps: &[Step]) -> Result<qj_pipe, Failure> {
        Ok(qj_pipe(Arc::new(Composer::global()?.compose(steps)?)))
    }
}

#[repr(C)]
pub(crate) struct qj_step {
    kind: c_int,
    key: [u8; 8],
    key_bytes: usize,
    name: *const c_char,
}

impl qj_step {
    /// # Safety
    /// If it is one of the user's, its name is a string.
    unsafe fn step(&self, definitions: Option<&qj_definitions>) -> Result<Step, Failure> {
        Ok(match self.kind {
            0 => Step::Copy,
            1 => Step::Checksum,
            2 => Step::Crc32c,
            3 => Step::Swap16,
            4 => Step::Swap32,
            5 => Step::Swap64,
            6 => Step::Xor(Key::repeat(self.key.get(..self.key_bytes).ok_or(Error::KeyLength(self.key_bytes))?)?),
            7 => Step::Xor(Key::Stream),
            8 => Step::Count,
            9 => {
                // SAFETY: the caller says so.
                let name = unsafe { string(self.name)? };
                let steps = definitions.map_or(&[][..], |definitions| &definitions.0.steps);
                let step = steps.iter().find(|step| step.name() == name);
                Step::User(step.ok_or_else(|| absent("step", name, steps.iter().map(|step| step.name())))?.clone())
            }
            other => {
                return Err(Failure(UNKNOWN, format!("no step is of kind {other}\nhelp: see `enum qj_step_kind`")));
            }
        })
    }
}

/// The failure for a name that the definitions lack.
fn absent<'n>(what: &str, name: &str, names: impl Iterator<Item = &'n str>) -> Failure {
    let names: Vec<_> = names.collect();
    let help = if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) };
    Failure(UNKNOWN, format!("the definitions have no {what} `{name}`\nhelp: {help}"))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_pipe_of_steps(
    steps: *const qj_step,
    count: usize,
    definitions: *const qj_definitions,
    place: *mut *mut qj_pipe,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let definitions = definitions.as_ref();
        let steps: Result<Vec<Step>, Failure> = array(steps, count).iter().map(|own| own.step(definitions)).collect();
        give(steps.and_then(|steps| qj_pipe::of(&steps)), place)
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_pipe_of_text(
    text: *const c_char,
    definitions: *const qj_definitions,
    place: *mut *mut qj_pipe,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let steps = definitions.as_ref().map_or(&[][..], |definitions| &definitions.0.steps);
        let made = string(text).and_then(|text| match read_pipe(text, steps) {
            (steps, diagnostics) if diagnostics.is_empty() => qj_pipe::of(&steps),
            (_, diagnostics) => Err(text_failure(text, &diagnostics)),
        });
        give(made, place)
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_pipe_free(pipe: *mut qj_pipe) {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { take_back(pipe) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_pipe_writes(pipe: *const qj_pipe) -> bool {
    // SAFETY: the pointer is valid, as the header demands.
    unsafe { &*pipe }.0.writes()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_pipe_streams(pipe: *const qj_pipe) -> usize {
    // SAFETY: the pointer is valid, as the header demands.
    unsafe { &*pipe }.0.streams()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_pipe_explain(pipe: *const qj_pipe) -> *mut c_char {
    // SAFETY: the pointer is valid, as the header demands.
    match unsafe { &*pipe }.0.explain(Store::Cached) {
        Ok(text) => CString::new(text).expect("explanations have no zero bytes").into_raw(),
        Err(error) => {
            failed(error.into());
            ptr::null_mut()
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_pipe_text_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: it comes from `CString::into_raw`, and the caller gives it back.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// A handler and its last reply.
pub(crate) struct qj_handler {
    handler: Handler,
    reply: Vec<u8>,
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_handler_new(
    definitions: *const qj_definitions,
    name: *const c_char,
    pipes: *const *const qj_pipe,
    pipe_count: usize,
    buffers: usize,
    place: *mut *mut qj_handler,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    let (definitions, name, pipes) = unsafe { (&(*definitions).0, string(name), array(pipes, pipe_count)) };
    let made = name.and_then(|name| {
        let program = definitions.handlers.iter().find(|own| own.name == name);
        let names = definitions.handlers.iter().map(|own| own.name.as_str());
        let program = program.ok_or_else(|| absent("handler", name, names))?.clone();
        let composer = Composer::global()?;
        // SAFETY: every pipe is valid.
        let own = pipes.iter().map(|pipe| composer.compose(unsafe { &**pipe }.0.steps()));
        let handler = Handler::new(program, own.collect::<Result<_, _>>()?, buffers)?;
        Ok(qj_handler { handler, reply: Vec::new() })
    });
    // SAFETY: there is a place for it, as the header demands.
    unsafe { give(made, place) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_handler_free(handler: *mut qj_handler) {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { take_back(handler) }
}

#[repr(C)]
pub(crate) struct qj_handled {
    verdict: c_int,
    instruction: usize,
    reply: *const u8,
    reply_bytes: usize,
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qj_handler_run(
    handler: *mut qj_handler,
    message: *const c_void,
    bytes: usize,
    buffers: *const qj_part,
    buffer_count: usize,
    fuel: u64,
    handled: *mut qj_handled,
) -> c_int {
    // SAFETY: the pointers are valid, as the header demands.
    unsafe {
        let own = &mut *handler;
        own.reply.clear();
        let buffers = array(buffers, buffer_count);
        let mut apart = raw(buffers);
        apart.push(RawPart { data: message.cast_mut().cast(), bytes });
        if let Err(error) = check_overlap(&[], &apart) {
            return failed(error.into());
        }
        let mut buffers = writable(buffers);
        let verdict = own.handler.run(array(message.cast(), bytes), &mut buffers, &mut own.reply, fuel);
        status(verdict.map_err(Failure::from).map(|verdict| {
            let (verdict, instruction) = match verdict {
                Verdict::Accepted => (0, 0),
                Verdict::Dropped => (1, 0),
                Verdict::Rejected { instruction } => (2, instruction),
                Verdict::OutOfFuel => (3, 0),
            };
            let (reply, reply_bytes) = (own.reply.as_ptr(), own.reply.len());
            *handled = qj_handled { verdict, instruction, reply, reply_bytes };
        }))
    }
}
