//! libtcc, which compiles C text, see `tcc.c`.

use std::ffi::{CString, c_char};

// SAFETY: the signature is that of `tcc.c`.
unsafe extern "C" {
    fn tcc_function(text: *const c_char, name: *const c_char) -> usize;
}

fn compiler(text: &str, name: &str) -> impl FnMut(&mut [u8]) -> usize {
    let text = CString::new(text).expect("no zero is in it");
    let name = CString::new(name).expect("no zero is in it");
    // SAFETY: both are strings that end with a zero.
    move |_| unsafe { tcc_function(text.as_ptr(), name.as_ptr()) }
}

pub fn table() -> impl FnMut(&mut [u8]) -> usize {
    compiler(include_str!(concat!(env!("OUT_DIR"), "/thousand.c")), "thousand")
}

pub fn plus1() -> impl FnMut(&mut [u8]) -> usize {
    compiler("int plus1(int x) { return x + 1; }", "plus1")
}

pub fn dot() -> impl FnMut(&mut [u8]) -> usize {
    compiler(
        "int dot(int *a, int *b, long n) { int s = 0; for (long i = 0; i < n; i++) s += a[i] * b[i]; return s; }",
        "dot",
    )
}
