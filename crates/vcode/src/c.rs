//! The functions that `include/quaject/vcode-layers.h` declares, on the layers of Rust. Knows nothing that those do
//! not.
//!
//! ```text
//! C ── handles, numbers ──> c.rs ──> Writer (any machine, any layer) ──> Virtual or Peephole of one machine
//! ```
//!
//! Every function demands of its pointers what the header says: that they are valid, and null only where it says so. No
//! panic crosses into C: it becomes an error.
#![allow(non_camel_case_types, reason = "types are called as the header calls them")]

mod failure;
mod layer;
mod memory;
mod storage;
mod writer;

use std::boxed::Box;
use std::ffi::{CStr, CString, c_char, c_int};
use std::format;
use std::vec::Vec;

use core::cell::RefCell;
use core::panic::AssertUnwindSafe;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::asm::{Asm, Code};
use crate::features::Features;
use crate::frame::Param;
use crate::generated::core::{Core, Extension};
use crate::instruction::Instruction;
use crate::kind::Kind;
use crate::layers::peephole::Peephole;
use crate::layers::strength::Integer;
use crate::layers::virtual_registers::Virtual;
use crate::machine::Machine;
use crate::registers::Class;
use crate::signature::{Signature, Type};
use failure::{Failure, Status};
use layer::{Layer, Transfer};
use storage::{Room, Storage};
use writer::{Allocation, File, GivenOperand, Handle, StackPlace, Strength, Writer, Writing};

const OK: c_int = Status::Ok as c_int;

/// `struct qjl_options`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct qjl_options {
    machine: c_int,
    layer: c_int,
    kind: c_int,
    bytes: usize,
    labels: usize,
    references: usize,
    constants: usize,
    features: u64,
}

/// `struct qjl_operand`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct qjl_operand {
    kind: c_int,
    offset: i32,
    handle: Handle,
    value: i64,
}

impl qjl_operand {
    fn read(&self) -> Result<GivenOperand, Failure> {
        Ok(match self.kind {
            0 => GivenOperand::Register(self.handle),
            1 => GivenOperand::Constant(self.value),
            2 => GivenOperand::Variable(StackPlace { handle: self.handle, offset: self.offset }),
            3 => GivenOperand::Label(self.handle),
            4 => GivenOperand::Address(self.value as u64),
            5 => GivenOperand::Itself,
            other => return Err(Failure::new(Status::Operands, format!("no operand is of kind {other}"))),
        })
    }
}

/// `struct qjl_code`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct qjl_code {
    bytes: *const u8,
    length: usize,
    entry: usize,
    instructions: usize,
}

/// A finished function.
struct Finished {
    code: Code,
    /// Its call frame information, if it is executed at this address.
    frames: fn(&Code, &[u8], usize) -> Option<Vec<u8>>,
    /// The section `.eh_frame` that C has asked for last.
    call_frames: Vec<u8>,
}

/// The state of a function.
enum Stage {
    Writing(Box<dyn Writer>),
    Finished(Finished),
    /// It ended with an error, which is recorded.
    Failed,
}

/// A function: under construction, or finished.
pub(super) struct qjl_function {
    /// Uses what `storage` lends; declared before it, so that it is dropped first.
    state: Stage,
    storage: Storage,
    is_native: bool,
    frames: fn(&Code, &[u8], usize) -> Option<Vec<u8>>,
    /// The code of the first error.
    status: Status,
    /// The text of the last error.
    message: CString,
    /// The number of calls for this function so far: the place of an error.
    calls: u64,
}

impl qjl_function {
    /// Stores an error for [`qjl_message`]; returns its code.
    #[cold]
    fn report(&mut self, place: &str, failure: &Failure) -> c_int {
        let text = format!("call {} for this function, `{place}`: {}", self.calls, failure.text());
        self.message = CString::new(text.replace('\0', " ")).unwrap_or_default();
        failure.status as c_int
    }

    /// Records an error: the function cannot be finished any more.
    #[cold]
    fn record(&mut self, place: &str, failure: &Failure) -> c_int {
        if self.status == Status::Ok {
            self.status = failure.status;
        }
        self.report(place, failure)
    }

    /// The finished function and its region.
    fn finished(&self) -> Result<(&Finished, &[u8]), Failure> {
        match &self.state {
            // SAFETY: the assembler is dropped, and with it all that was lent.
            Stage::Finished(finished) => Ok((finished, unsafe { self.storage.code() })),
            Stage::Writing(_) => Err(Status::NotEnded.into()),
            Stage::Failed => Err(self.status.into()),
        }
    }
}

/// Runs a step of a function under construction. An error is recorded; after it, steps have no effect and return its
/// code.
///
/// # Safety
/// The function is valid or null.
#[inline]
unsafe fn step<'f, T>(
    function: *mut qjl_function,
    place: &str,
    work: impl FnOnce(&mut dyn Writer) -> Result<T, Failure> + 'f,
) -> Result<T, c_int> {
    // SAFETY: the caller says so.
    let Some(function) = (unsafe { function.as_mut() }) else { return Err(Status::Null as c_int) };
    function.calls += 1;
    if function.status != Status::Ok {
        return Err(function.status as c_int);
    }
    let Stage::Writing(writer) = &mut function.state else {
        return Err(function.report(place, &Status::Ended.into()));
    };
    let outcome = caught(|| {
        let made = work(&mut **writer)?;
        match writer.error() {
            Some(error) => Err(error.into()),
            None => Ok(made),
        }
    });
    outcome.map_err(|failure| function.record(place, &failure))
}

std::thread_local! {
    /// The text of the last error that has no function.
    static MESSAGE: RefCell<CString> = RefCell::default();
}

/// Stores an error that has no function for [`qjl_message`]; returns its code.
#[cold]
fn report_for_thread(place: &str, failure: &Failure) -> c_int {
    let text = format!("`{place}`: {}", failure.text());
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread whose variables are destroyed has no message any more.
    let _ = MESSAGE.try_with(|message| message.replace(text));
    failure.status as c_int
}

/// The outcome of some work, a panic being an error.
fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What the panic left behind is not used again: the function is given up.
    std::panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(Status::Internal.into()))
}

fn code_of<T>(outcome: Result<T, c_int>) -> c_int {
    outcome.err().unwrap_or(OK)
}

/// Elements behind a pointer that may be null if there are none.
///
/// # Safety
/// There are as many, for as long as the slice is used.
unsafe fn array<'a, T>(first: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(Status::Null.into());
    }
    // SAFETY: the caller says so.
    Ok(unsafe { core::slice::from_raw_parts(first, count) })
}

/// # Safety
/// It is a string that ends with zero, for as long as it is used, or null.
unsafe fn string<'a>(text: *const c_char) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Status::Null.into());
    }
    // SAFETY: the caller says so.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| Status::Signature.into())
}

/// Stores a value for C, if there is a place for it.
///
/// # Safety
/// The place is valid or null.
unsafe fn store<T>(place: *mut T, value: T) {
    if !place.is_null() {
        // SAFETY: the caller says so.
        unsafe { place.write(value) };
    }
}

fn type_of(number: c_int) -> Result<Type, Failure> {
    const TYPES: [Type; 11] =
        [Type::C, Type::Uc, Type::S, Type::Us, Type::I, Type::U, Type::L, Type::Ul, Type::P, Type::F, Type::D];
    let ty = usize::try_from(number).ok().and_then(|index| TYPES.get(index));
    ty.copied().ok_or_else(|| Failure::new(Status::Option, format!("{number} is not of `enum qjl_type`")))
}

fn integer_of(number: c_int) -> Result<Integer, Failure> {
    match type_of(number)? {
        Type::I => Ok(Integer::I),
        Type::U => Ok(Integer::U),
        Type::L => Ok(Integer::L),
        Type::Ul | Type::P => Ok(Integer::Ul),
        Type::C | Type::Uc | Type::S | Type::Us | Type::F | Type::D => {
            Err(Failure::new(Status::Option, "arithmetic with a constant takes QJL_I, QJL_U, QJL_L or QJL_UL"))
        }
    }
}

/// The machine of a number of `enum qjl_machine`, and whether this program runs on it.
fn begin_any(options: &qjl_options, begin: &mut Begin<'_>) -> Result<Begun, Failure> {
    let native = if cfg!(target_arch = "x86_64") {
        1
    } else if cfg!(target_arch = "aarch64") {
        2
    } else if cfg!(target_arch = "riscv64") {
        3
    } else {
        0
    };
    let machine = if options.machine == 0 { native } else { options.machine };
    begin.is_native = machine == native;
    match machine {
        1 => begin.on::<crate::x86_64::X86_64>(),
        2 => begin.on::<crate::aarch64::Aarch64>(),
        3 => begin.on::<crate::riscv64::Riscv64>(),
        4 => begin.on::<crate::mips::Mips>(),
        5 => begin.on::<crate::sparc64::Sparc64>(),
        6 => begin.on::<crate::alpha::Alpha>(),
        7 => begin.on::<crate::ppc64le::Ppc64le>(),
        other => Err(Failure::new(Status::Option, format!("`machine` is {other}"))),
    }
}

/// What begins a function.
struct Begin<'a> {
    options: &'a qjl_options,
    signature: &'a str,
    is_native: bool,
    parameters: usize,
}

/// A function that has begun.
struct Begun {
    function: qjl_function,
    parameters: Vec<Handle>,
}

/// The last serial number of a function.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// A serial number that is not 0, different from the last four thousand millions.
fn next_serial() -> u32 {
    // Relaxed: only the number itself matters.
    loop {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        if serial != 0 {
            return serial;
        }
    }
}

impl Begin<'_> {
    fn on<M: Machine>(&mut self) -> Result<Begun, Failure>
    where
        for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        match self.options.layer {
            0 => self.with::<Virtual<'static, 'static, M>>(),
            1 => self.with::<Peephole<'static, M>>(),
            other => Err(Failure::new(Status::Option, format!("`layer` is {other}"))),
        }
    }

    fn with<L: Layer + 'static>(&mut self) -> Result<Begun, Failure> {
        let options = self.options;
        let kind = match options.kind {
            0 => Kind::Calls,
            1 => Kind::Leaf,
            other => return Err(Failure::new(Status::Option, format!("`kind` is {other}"))),
        };
        let or = |own: usize, default: usize| if own == 0 { default } else { own };
        let mut storage = Storage::new(Room {
            bytes: or(options.bytes, 4096),
            labels: or(options.labels, 128),
            references: or(options.references, 512),
            constants: or(options.constants, 32),
        })?;
        // More parameters than any machine has registers are refused below.
        let mut params = std::vec![Param::NONE; self.parameters.min(256)];
        // SAFETY: called once; the state is dropped before the storage.
        let lent = unsafe { storage.lend() };
        let convention = const { &<L::Machine as crate::abi::Abi>::CONVENTION };
        let asm = Asm::begin_in(lent.region, lent.tables, self.signature, &mut params, kind, convention)?;
        let mut layer = L::over(asm, lent.slots);
        if options.features != 0 {
            layer.allow(Features::of::<L::Machine>(options.features));
        }
        let registers: Vec<_> = params.into_iter().map(|param| layer.parameter(param)).collect();
        let (writing, parameters) = Writing::new(layer, next_serial(), registers.into_iter())?;
        let frames = writer::frames::<L::Machine>;
        let function = qjl_function {
            state: Stage::Writing(Box::new(writing)),
            storage,
            is_native: self.is_native,
            frames,
            status: Status::Ok,
            message: CString::default(),
            calls: 0,
        };
        Ok(Begun { function, parameters })
    }
}

// SAFETY: no other library has functions that begin so.
#[unsafe(no_mangle)]
extern "C" fn qjl_error_text(status: c_int) -> *const c_char {
    Status::of_code(status).map_or(c"an unknown error", Status::text).as_ptr()
}

// SAFETY: no other library has functions that begin so.
#[unsafe(no_mangle)]
extern "C" fn qjl_detect_features() -> u64 {
    Features::detect().bits()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_begin(
    options: *const qjl_options,
    signature: *const c_char,
    parameters: *mut Handle,
    count: usize,
    place: *mut *mut qjl_function,
) -> c_int {
    if place.is_null() {
        return report_for_thread("begin", &Status::Null.into());
    }
    // SAFETY: the pointers are valid or null, as the header demands.
    let (options, signature) = unsafe {
        place.write(ptr::null_mut());
        (options.as_ref().copied().unwrap_or_default(), string(signature))
    };
    let begun = caught(|| {
        let signature = signature?;
        let types = Signature::from(signature).types().count();
        if count != types {
            return Err(Failure::new(Status::Arguments, format!("{count} parameters for `{signature}`")));
        }
        if count > 0 && parameters.is_null() {
            return Err(Status::Null.into());
        }
        let mut begin = Begin { options: &options, signature, is_native: false, parameters: types };
        begin_any(&options, &mut begin)
    });
    match begun {
        Ok(Begun { function, parameters: registers }) => {
            for (index, register) in registers.into_iter().enumerate() {
                // SAFETY: there are so many places, as was compared above.
                unsafe { parameters.add(index).write(register) };
            }
            // SAFETY: there is a place for it, as the header demands.
            unsafe { *place = Box::into_raw(Box::new(function)) };
            OK
        }
        Err(failure) => report_for_thread("begin", &failure),
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_free(function: *mut qjl_function) {
    if !function.is_null() {
        // SAFETY: it comes from `qjl_begin`, and the caller gives it back.
        drop(unsafe { Box::from_raw(function) });
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_error(function: *const qjl_function) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { function.as_ref() }.map_or(Status::Null, |function| function.status) as c_int
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_message(function: *const qjl_function) -> *const c_char {
    // SAFETY: the pointer is valid or null, as the header demands.
    match unsafe { function.as_ref() } {
        Some(function) => function.message.as_ptr(),
        None => MESSAGE.try_with(|message| message.borrow().as_ptr()).unwrap_or(c"".as_ptr()),
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_find_instruction(name: *const c_char) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    let name = unsafe { string(name) };
    let found = name.ok().and_then(Instruction::named);
    found.map_or(-1, |instruction| c_int::from(instruction.number))
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_emit(
    function: *mut qjl_function,
    number: c_int,
    operands: *const qjl_operand,
    count: usize,
) -> c_int {
    let instruction = u16::try_from(number).ok().and_then(Instruction::numbered);
    let place = instruction.map_or("emit", |instruction| instruction.name);
    // SAFETY: the pointers are valid or null, as the header demands.
    code_of(unsafe {
        step(function, place, |writer| {
            let instruction =
                instruction.ok_or_else(|| Failure::new(Status::Instruction, format!("instruction {number}")))?;
            let given = array(operands, count)?;
            let mut read = [GivenOperand::Itself; 4];
            for (place, operand) in read.iter_mut().zip(given) {
                *place = operand.read()?;
            }
            // As many as the instruction has, or the count is an error.
            writer.emit(instruction, read.get(..given.len()).unwrap_or(&[]))
        })
    })
}

/// Makes a register.
///
/// # Safety
/// As the header says.
unsafe fn get(function: *mut qjl_function, place: *mut Handle, class: c_int, file: File, name: &str) -> c_int {
    let mut refused = OK;
    // SAFETY: the pointers are valid or null, as the header demands.
    unsafe {
        store(place, Handle::default());
        let made = step(function, name, |writer| {
            let allocation = match class {
                0 => Allocation::Class(Class::Temporary),
                1 => Allocation::Class(Class::Persistent),
                2 => Allocation::Cold,
                other => return Err(Failure::new(Status::Option, format!("{other} is not of `enum qjl_class`"))),
            };
            match writer.allocate(file, allocation) {
                // The caller can do without one.
                Err(failure) if failure.status == Status::Registers && writer.error().is_none() => {
                    refused = Status::Registers as c_int;
                    Ok(Handle::default())
                }
                other => other,
            }
        });
        match made {
            Ok(handle) => {
                store(place, handle);
                refused
            }
            Err(code) => code,
        }
    }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_getreg(function: *mut qjl_function, place: *mut Handle, class: c_int) -> c_int {
    // SAFETY: the pointers are valid or null, as the header demands.
    unsafe { get(function, place, class, File::Int, "getreg") }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_getfloat(function: *mut qjl_function, place: *mut Handle, class: c_int) -> c_int {
    // SAFETY: the pointers are valid or null, as the header demands.
    unsafe { get(function, place, class, File::Float, "getfloat") }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_putreg(function: *mut qjl_function, register: Handle) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    code_of(unsafe { step(function, "putreg", |writer| writer.give_back(register)) })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_register_number(function: *mut qjl_function, register: Handle) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    let number = unsafe { step(function, "register_number", |writer| writer.number(register)) };
    number.ok().flatten().map_or(-1, c_int::from)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_genlabel(function: *mut qjl_function) -> Handle {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { step(function, "genlabel", |writer| writer.label()) }.unwrap_or_default()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_bind(function: *mut qjl_function, label: Handle) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    code_of(unsafe { step(function, "bind", |writer| writer.bind(label)) })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_procedure(function: *mut qjl_function, label: Handle, link: Handle) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    code_of(unsafe { step(function, "procedure", |writer| writer.procedure(label, link)) })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_local(function: *mut qjl_function, ty: c_int) -> StackPlace {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { step(function, "local", |writer| writer.local(type_of(ty)?)) }.unwrap_or_default()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_local_bytes(function: *mut qjl_function, bytes: usize, align: usize) -> StackPlace {
    let fits = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { step(function, "local_bytes", |writer| writer.local_bytes(fits(bytes), fits(align))) }.unwrap_or_default()
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_local_address(function: *mut qjl_function, d: Handle, variable: StackPlace) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    code_of(unsafe { step(function, "local_address", |writer| writer.local_address(d, variable)) })
}

/// # Safety
/// As the header says.
unsafe fn transfer(
    function: *mut qjl_function,
    kind: Transfer,
    signature: *const c_char,
    target: qjl_operand,
    arguments: *const qjl_operand,
    count: usize,
) -> c_int {
    let place = match kind {
        Transfer::Call => "call",
        Transfer::TailCall => "tail_call",
    };
    // SAFETY: the pointers are valid or null, as the header demands.
    code_of(unsafe {
        step(function, place, |writer| {
            let signature = string(signature)?;
            if count > layer::MAX_ARGUMENTS {
                return Err(Failure::new(Status::Arguments, format!("{count} arguments, the most is 32")));
            }
            let arguments = array(arguments, count)?.iter().map(qjl_operand::read).collect::<Result<Vec<_>, _>>()?;
            writer.transfer(kind, signature, target.read()?, &arguments)
        })
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_call(
    function: *mut qjl_function,
    signature: *const c_char,
    target: qjl_operand,
    arguments: *const qjl_operand,
    count: usize,
) -> c_int {
    // SAFETY: the pointers are valid or null, as the header demands.
    unsafe { transfer(function, Transfer::Call, signature, target, arguments, count) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_tail_call(
    function: *mut qjl_function,
    signature: *const c_char,
    target: qjl_operand,
    arguments: *const qjl_operand,
    count: usize,
) -> c_int {
    // SAFETY: the pointers are valid or null, as the header demands.
    unsafe { transfer(function, Transfer::TailCall, signature, target, arguments, count) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_take_result(function: *mut qjl_function, d: Handle) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    code_of(unsafe { step(function, "take_result", |writer| writer.take_result(d)) })
}

/// Multiplication, division or remainder by a constant.
///
/// # Safety
/// As the header says.
unsafe fn with_constant(
    function: *mut qjl_function,
    operation: Strength,
    ty: c_int,
    (d, s): (Handle, Handle),
    constant: i64,
) -> c_int {
    let place = match operation {
        Strength::Multiply => "multiply",
        Strength::Divide => "divide",
        Strength::Modulo => "modulo",
    };
    // SAFETY: the pointer is valid or null, as the header demands.
    code_of(unsafe { step(function, place, |writer| writer.strength(operation, integer_of(ty)?, d, s, constant)) })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_multiply(
    function: *mut qjl_function,
    ty: c_int,
    d: Handle,
    s: Handle,
    constant: i64,
) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { with_constant(function, Strength::Multiply, ty, (d, s), constant) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_divide(function: *mut qjl_function, ty: c_int, d: Handle, s: Handle, constant: i64) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { with_constant(function, Strength::Divide, ty, (d, s), constant) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_modulo(function: *mut qjl_function, ty: c_int, d: Handle, s: Handle, constant: i64) -> c_int {
    // SAFETY: the pointer is valid or null, as the header demands.
    unsafe { with_constant(function, Strength::Modulo, ty, (d, s), constant) }
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_jump_table(
    function: *mut qjl_function,
    index: Handle,
    labels: *const Handle,
    count: usize,
    otherwise: *const Handle,
) -> c_int {
    // SAFETY: the pointers are valid or null, as the header demands.
    code_of(unsafe {
        step(function, "jump_table", |writer| {
            writer.jump_table(index, array(labels, count)?, otherwise.as_ref().copied())
        })
    })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_flush(function: *mut qjl_function) -> c_int {
    let flush = |writer: &mut dyn Writer| {
        writer.write_held();
        Ok(())
    };
    // SAFETY: the pointer is valid or null, as the header demands.
    code_of(unsafe { step(function, "flush", flush) })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_use_features(function: *mut qjl_function, features: u64) -> c_int {
    let allow = |writer: &mut dyn Writer| {
        writer.allow(features);
        Ok(())
    };
    // SAFETY: the pointer is valid or null, as the header demands.
    code_of(unsafe { step(function, "use_features", allow) })
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_end(function: *mut qjl_function, place: *mut qjl_code) -> c_int {
    let nothing = qjl_code { bytes: ptr::null(), length: 0, entry: 0, instructions: 0 };
    // SAFETY: the pointers are valid or null, as the header demands.
    let function = unsafe {
        store(place, nothing);
        function.as_mut()
    };
    let Some(function) = function else { return Status::Null as c_int };
    function.calls += 1;
    match core::mem::replace(&mut function.state, Stage::Failed) {
        Stage::Writing(writer) if function.status == Status::Ok => match caught(|| writer.finish()) {
            Ok(code) => {
                let frames = function.frames;
                function.state = Stage::Finished(Finished { code, frames, call_frames: Vec::new() });
                let (bytes, pad) = placed(function, &code);
                let made = qjl_code { bytes: bytes.0, length: bytes.1, entry: pad, instructions: code.instructions };
                // SAFETY: there is a place for it or none, as the header demands.
                unsafe { store(place, made) };
                OK
            }
            Err(failure) => function.record("end", &failure),
        },
        Stage::Writing(_) => function.status as c_int,
        Stage::Finished(finished) => {
            function.state = Stage::Finished(finished);
            function.report("end", &Status::Ended.into())
        }
        Stage::Failed => function.status as c_int,
    }
}

/// The bytes of a finished function, from a multiple of 16 on, and where it begins in them.
fn placed(function: &qjl_function, code: &Code) -> ((*const u8, usize), usize) {
    let pad = code.offset % 16;
    // SAFETY: the assembler is dropped, and with it all that was lent.
    let bytes = unsafe { function.storage.code() }.get(code.offset - pad..code.offset + code.length);
    (bytes.map_or((ptr::null(), 0), |bytes| (bytes.as_ptr(), bytes.len())), pad)
}

/// # Safety
/// As the header says.
#[unsafe(no_mangle)]
unsafe extern "C" fn qjl_call_frames(
    function: *mut qjl_function,
    address: u64,
    bytes: *mut *const u8,
    length: *mut usize,
) -> c_int {
    // SAFETY: the pointers are valid or null, as the header demands.
    let function = unsafe {
        store(bytes, ptr::null());
        store(length, 0);
        function.as_mut()
    };
    let Some(function) = function else { return Status::Null as c_int };
    function.calls += 1;
    let made = caught(|| frames_at(function, address));
    let made = match made {
        Ok(made) => made,
        Err(failure) => return function.report("call_frames", &failure),
    };
    if let Stage::Finished(finished) = &mut function.state {
        finished.call_frames = made;
        // SAFETY: the pointers are valid or null, as the header demands.
        unsafe {
            store(bytes, finished.call_frames.as_ptr());
            store(length, finished.call_frames.len());
        }
    }
    OK
}

/// The call frame information of a finished function that is executed at an address.
fn frames_at(function: &qjl_function, address: u64) -> Result<Vec<u8>, Failure> {
    let (finished, region) = function.finished()?;
    let code = &finished.code;
    let instructions = region.get(code.offset..code.offset + code.instructions).ok_or(Status::Internal)?;
    let address = usize::try_from(address).map_err(|_| Failure::from(Status::Immediate))?;
    (finished.frames)(code, instructions, address).ok_or_else(|| Status::NoFrames.into())
}
