//! Memory: physical pages, page tables, the kernel's own space and those of programs. Knows no thread and no file.

pub(crate) mod audit;
pub(crate) mod code_area;
pub(crate) mod frames;
pub(crate) mod heap;
pub(crate) mod kernel_space;
pub(crate) mod layout;
pub(crate) mod region;
pub(crate) mod space;
pub(crate) mod stacks;
pub(crate) mod tables;
pub(crate) mod user;
