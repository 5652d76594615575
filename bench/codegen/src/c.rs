//! The functions of `ours.c`, which is compiled with gcc.

// SAFETY: the signatures are those of `ours.c`.
unsafe extern "C" {
    fn c_plus1(bytes: *mut u8, length: usize, function: *mut u64) -> usize;
    fn c_paper_plus1(bytes: *mut u8) -> usize;
    fn c_dot(bytes: *mut u8, length: usize, function: *mut u64) -> usize;
    fn c_paper_dot(bytes: *mut u8) -> usize;
    fn c_constant(bytes: *mut u8, length: usize, function: *mut u64) -> usize;
    fn c_run_time(bytes: *mut u8, length: usize, function: *mut u64, registers: *const u64) -> usize;
    fn c_function_bytes() -> usize;
    fn c_registers() -> *const u64;
    fn c_gcc_dot(a: *const i32, b: *const i32, n: i64) -> i32;
}

/// Memory of a function under construction.
pub struct Function(Vec<u64>);

impl Function {
    pub fn new() -> Self {
        // SAFETY: it takes nothing and returns a number.
        Self(vec![0; unsafe { c_function_bytes() } / 8 + 1])
    }
}

pub fn plus1(bytes: &mut [u8], function: &mut Function) -> usize {
    // SAFETY: both memories are ours, and as long as the given length.
    unsafe { c_plus1(bytes.as_mut_ptr(), bytes.len(), function.0.as_mut_ptr()) }
}

pub fn paper_plus1(bytes: &mut [u8]) -> usize {
    // SAFETY: the function is shorter than the memory.
    unsafe { c_paper_plus1(bytes.as_mut_ptr()) }
}

pub fn dot(bytes: &mut [u8], function: &mut Function) -> usize {
    // SAFETY: both memories are ours, and as long as the given length.
    unsafe { c_dot(bytes.as_mut_ptr(), bytes.len(), function.0.as_mut_ptr()) }
}

pub fn paper_dot(bytes: &mut [u8]) -> usize {
    // SAFETY: the function is shorter than the memory.
    unsafe { c_paper_dot(bytes.as_mut_ptr()) }
}

pub fn constant(bytes: &mut [u8], function: &mut Function) -> usize {
    // SAFETY: both memories are ours, and as long as the given length.
    unsafe { c_constant(bytes.as_mut_ptr(), bytes.len(), function.0.as_mut_ptr()) }
}

pub fn run_time(bytes: &mut [u8], function: &mut Function) -> usize {
    // SAFETY: the memories are ours, and as long as the given length.
    unsafe { c_run_time(bytes.as_mut_ptr(), bytes.len(), function.0.as_mut_ptr(), c_registers()) }
}

/// The address of what gcc made of `dot`.
pub fn gcc_dot() -> usize {
    c_gcc_dot as *const () as usize
}
