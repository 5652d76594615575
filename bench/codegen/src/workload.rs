//! The straight line of a thousand operations as a table, what it computes, and calling what was written.

/// An operation of the workload.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Add,
    Sub,
    Xor,
    Load,
    Store,
}

/// An entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub kind: Kind,
    pub d: u8,
    pub s: u8,
    pub displacement: i32,
}

include!(concat!(env!("OUT_DIR"), "/operations.rs"));

/// Portable instructions of the straight line: eight loads, a thousand operations, eight stores, a return.
pub const LINE: u64 = 1017;

/// What is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `void line(unsigned *memory)`.
    Line,
    /// `int plus1(int)`.
    Plus1,
    /// `int dot(int *, int *, long)`.
    Dot,
}

impl Shape {
    /// What instruction counts are divided by.
    pub fn unit(self) -> u64 {
        match self {
            Shape::Line => LINE,
            Shape::Plus1 | Shape::Dot => 1,
        }
    }
}

fn line(memory: &mut [u32; 64]) {
    let mut registers: [u32; 8] = std::array::from_fn(|index| memory[index]);
    for o in &OPERATIONS {
        let (d, s, word) = (o.d as usize, o.s as usize, o.displacement as usize / 4);
        match o.kind {
            Kind::Add => registers[d] = registers[d].wrapping_add(registers[s]),
            Kind::Sub => registers[d] = registers[d].wrapping_sub(registers[s]),
            Kind::Xor => registers[d] ^= registers[s],
            Kind::Load => registers[d] = memory[word],
            Kind::Store => memory[word] = registers[d],
        }
    }
    memory[..8].copy_from_slice(&registers);
}

/// Whether the function at `entry` computes what it should.
///
/// # Safety
/// `entry` is the address of a function of this shape for this machine.
pub unsafe fn is_right(shape: Shape, entry: usize) -> bool {
    let pointer = entry as *const ();
    match shape {
        Shape::Line => {
            let mut expected: [u32; 64] = std::array::from_fn(|index| (index as u32).wrapping_mul(0x9e37_79b9));
            let mut memory = expected;
            line(&mut expected);
            // SAFETY: the caller says that it is such a function; the displacements are inside the memory.
            let function: extern "C" fn(*mut u32) = unsafe { std::mem::transmute(pointer) };
            function(memory.as_mut_ptr());
            memory == expected
        }
        Shape::Plus1 => {
            // SAFETY: the caller says that it is such a function.
            let function: extern "C" fn(i32) -> i32 = unsafe { std::mem::transmute(pointer) };
            function(41) == 42 && function(-1) == 0
        }
        Shape::Dot => {
            let (a, b) = ([1, 2, 3, 4, 5], [10, 20, 30, 40, 50]);
            // SAFETY: the caller says that it is such a function, and the arrays are that long.
            unsafe { dot(entry, &a, &b) == 550 && dot(entry, &[], &[]) == 0 }
        }
    }
}

/// Calls a function that computes the dot product.
///
/// # Safety
/// `entry` is the address of such a function.
pub unsafe fn dot(entry: usize, a: &[i32], b: &[i32]) -> i32 {
    // SAFETY: the caller says that it is such a function.
    let function: extern "C" fn(*const i32, *const i32, i64) -> i32 =
        unsafe { std::mem::transmute(entry as *const ()) };
    function(a.as_ptr(), b.as_ptr(), a.len().min(b.len()) as i64)
}
