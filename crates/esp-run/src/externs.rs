//! Extern functions for the interpreter: each is called through a generated C function, the shim, which loads its
//! arguments from memory, so that this crate needs no knowledge of calling conventions.
//!
//! ```text
//!   Datum -> layout of C (marshal) -> shim: result = f(*(int32_t *)a[0], a[1]) -> Datum
//! ```
//!
//! The convention is that of the generated header: integers, `bool` and `pid` by value; everything else by pointer; a
//! result that is not one of the former through a pointer behind the arguments.

use crate::compiler::{BuildDirectory, Product};
use crate::error::{HostCode, HostError, reason, root_cause};
use crate::marshal;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::Reply;
use quaject_esp_gen::layout::{Layouts, View};
use quaject_esp_ir::ir::{Extern, ExternId, Mutability, Program, Purity, Type, TypeId};
use std::ffi::c_void;
use std::fmt::Write;
use std::path::PathBuf;

/// The extern functions of one program.
pub struct Externs {
    files: Vec<PathBuf>,
    headers: Vec<(String, String)>,
    state: State,
}

enum State {
    /// Nothing has been called yet.
    Unloaded,
    /// Functions are called through these.
    Loaded(Loaded),
    /// There is no C compiler for the shims: no function can be called.
    Missing,
}

/// Calls one function: arguments, result. Returns 0 if there is no such function.
type Shim = unsafe extern "C" fn(*const *mut c_void, *mut c_void) -> i32;

/// Checks that the files of `--extern` can be read, for a better message than that of the C compiler.
pub(crate) fn check_files(files: &[PathBuf]) -> Result<(), HostError> {
    for file in files {
        let is_folder = |file: std::fs::File| file.metadata().map(|metadata| metadata.is_dir());
        let cause = match std::fs::File::open(file).and_then(is_folder) {
            Ok(false) => continue,
            Ok(true) => "it is a directory".to_string(),
            Err(error) => reason(&error),
        };
        return Err(HostError::new(HostCode::Extern, format!("cannot read `{}`: {cause}", file.display()))
            .help("`--extern` takes a C source, an object or a shared library"));
    }
    Ok(())
}

struct Loaded {
    shims: Vec<Shim>,
    layouts: Layouts,
    // Dropped last: the shims point into it. It is mapped, so that its file may be removed.
    _library: libloading::Library,
}

impl Externs {
    /// The functions in C sources, objects and libraries. `headers` are the generated ones that sources may include:
    /// name and text. Sources are compiled now, so that their errors come before the program runs; without any, the
    /// C library's own functions are found when one is called.
    pub fn new(program: &Program, files: &[PathBuf], headers: Vec<(String, String)>) -> Result<Externs, HostError> {
        check_files(files)?;
        let mut externs = Externs { files: files.to_vec(), headers, state: State::Unloaded };
        if !files.is_empty() {
            externs.state = State::Loaded(externs.load(program)?);
        }
        Ok(externs)
    }

    /// No functions: for engines that link them themselves.
    pub(crate) fn none() -> Externs {
        Externs { files: Vec::new(), headers: Vec::new(), state: State::Missing }
    }

    fn load(&self, program: &Program) -> Result<Loaded, HostError> {
        let directory = BuildDirectory::open()?;
        for (name, text) in &self.headers {
            directory.write(name, text)?;
        }
        let mut inputs = vec![directory.write("qj-shims.c", &shims(program))?];
        inputs.extend(self.files.iter().cloned());
        let output = directory.path("externs.so");
        directory.build(Product::Library, &inputs, &[], &[], &output)?;
        let unloadable = |error: libloading::Error| {
            HostError::new(HostCode::Extern, format!("cannot load the extern functions: {}", root_cause(&error)))
                .help("do the files given with `--extern` have all they call?")
        };
        // SAFETY: Loading runs the library's initialisers: code that the user asked us to run by `--extern`, and our
        // shims, which have none.
        let library = unsafe { libloading::Library::new(&output) }.map_err(unloadable)?;
        // SAFETY: `qj_shims` is defined by the source just compiled as an array with one function of type `Shim` for
        // each of the program's externs.
        let table = unsafe { library.get::<*const Shim>(b"qj_shims\0") }.map_err(unloadable)?;
        let table: *const Shim = *table;
        // SAFETY: As above; the array has this length, and the functions stay as long as the library, which is kept.
        let shims = unsafe { std::slice::from_raw_parts(table, program.externs.len()) }.to_vec();
        Ok(Loaded { shims, layouts: Layouts::of(&program.types), _library: library })
    }

    /// Calls a function.
    pub(crate) fn call(&mut self, program: &Program, function: ExternId, arguments: &mut [Datum]) -> Reply {
        if let State::Unloaded = self.state {
            self.state = match self.load(program) {
                Ok(loaded) => State::Loaded(loaded),
                Err(_) => State::Missing,
            };
        }
        let State::Loaded(loaded) = &self.state else { return Reply::Unresolved };
        let shim = loaded.shims[function.0 as usize];
        let data = &program.externs[function.0 as usize];
        let mut memory: Vec<Vec<u64>> = Vec::with_capacity(arguments.len());
        for (argument, (ty, _)) in arguments.iter().zip(&data.parameters) {
            let mut words = room(&loaded.layouts, *ty);
            marshal::store(program, &loaded.layouts, *ty, argument, bytes_mut(&mut words));
            memory.push(words);
        }
        let mut result = data.result.map(|ty| room(&loaded.layouts, ty)).unwrap_or_else(|| vec![0]);
        let pointers: Vec<*mut c_void> = memory.iter_mut().map(|words| words.as_mut_ptr().cast()).collect();
        // SAFETY: 1. The shim reads one pointer per parameter, each to memory of the parameter's size and alignment
        // (`room`), filled as C expects it. 2. It writes at most the result's size to `result`. 3. It is in a library
        // that is loaded. Effects of the user's function beyond its signature are the user's responsibility.
        let found = unsafe { shim(pointers.as_ptr(), result.as_mut_ptr().cast()) };
        if found == 0 {
            return Reply::Unresolved;
        }
        for ((argument, (ty, mutability)), words) in arguments.iter_mut().zip(&data.parameters).zip(&mut memory) {
            match mutability {
                Mutability::Mutable => match marshal::load(program, &loaded.layouts, *ty, bytes_mut(words)) {
                    Some(left) => *argument = left,
                    None => return Reply::Malformed,
                },
                Mutability::Immutable => {}
            }
        }
        match data.result.map(|ty| marshal::load(program, &loaded.layouts, ty, bytes_mut(&mut result))) {
            Some(None) => Reply::Malformed,
            returned => Reply::Returned(returned.flatten()),
        }
    }
}

/// Zeroed memory for a value of a type, aligned for any type.
fn room(layouts: &Layouts, ty: TypeId) -> Vec<u64> {
    let size = layouts.extent(ty, View::Environment).size;
    vec![0; size.div_ceil(8).max(1) as usize]
}

fn bytes_mut(words: &mut [u64]) -> &mut [u8] {
    let length = std::mem::size_of_val(words);
    // SAFETY: Any initialised memory may be seen as bytes, and any bytes are valid words; the lifetime is the same.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), length) }
}

/// One C function per extern function, and the array of them.
fn shims(program: &Program) -> String {
    let mut text = String::from("#include <stdbool.h>\n#include <stdint.h>\n#include <stdio.h>\n\n");
    let mut table = String::new();
    for (index, function) in program.externs.iter().enumerate() {
        shim(&mut text, program, index, function);
        let _ = write!(table, "qj_shim_{index}, ");
    }
    let _ = writeln!(text, "int (*const qj_shims[])(void *const *, void *) = {{ {table}0 }};");
    text
}

fn shim(text: &mut String, program: &Program, index: usize, function: &Extern) {
    let by_value = |ty: TypeId| scalar(program, ty);
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    for (number, (ty, _)) in function.parameters.iter().enumerate() {
        match by_value(*ty) {
            Some(name) => {
                parameters.push(name.to_string());
                arguments.push(format!("*({name} *)a[{number}]"));
            }
            None => {
                parameters.push("void *".to_string());
                arguments.push(format!("a[{number}]"));
            }
        }
    }
    let (result, store) = match function.result.map(by_value) {
        None => ("void", String::new()),
        Some(Some(name)) => (name, format!("*({name} *)r = ")),
        Some(None) => {
            parameters.push("void *".to_string());
            arguments.push("r".to_string());
            ("void", String::new())
        }
    };
    let parameters = if parameters.is_empty() { "void".to_string() } else { parameters.join(", ") };
    // The C name is bound by assembler name: the compiler may know a function of this name and warn of its type.
    let _ = writeln!(
        text,
        "extern {result} qj_extern_{index}({parameters}) __asm__(\"{}\") __attribute__((weak));",
        function.name
    );
    let flush = match function.purity {
        Purity::Pure => "",
        // Its output precedes the next message of the program.
        Purity::Impure => " fflush(stdout);",
    };
    let _ = writeln!(
        text,
        "static int qj_shim_{index}(void *const *a, void *r) {{ (void)a; (void)r; if (!qj_extern_{index}) return 0; \
         {store}qj_extern_{index}({});{flush} return 1; }}",
        arguments.join(", ")
    );
}

/// The C type of values that are passed by value.
fn scalar(program: &Program, ty: TypeId) -> Option<&'static str> {
    use quaject_esp_ir::ir::IntType;
    match program.types.get(ty) {
        Type::Int(int) => Some(match int {
            IntType::U8 => "uint8_t",
            IntType::U16 => "uint16_t",
            IntType::U32 => "uint32_t",
            IntType::U64 => "uint64_t",
            IntType::I8 => "int8_t",
            IntType::I16 => "int16_t",
            IntType::I32 => "int32_t",
            IntType::I64 | IntType::Time | IntType::Duration => "int64_t",
        }),
        Type::Bool => Some("bool"),
        Type::Pid(_) => Some("uint32_t"),
        Type::Error | Type::Bytes { .. } | Type::Array { .. } | Type::Record(_) | Type::Union(_) | Type::Boxed(_) => {
            None
        }
    }
}
