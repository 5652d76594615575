//! Code on x86-64.

use crate::packet::Packet;
use crate::types::{Classify, ClassifyMany};
use quaject_vcode::decode::X86_64;
use quaject_vcode::{Installed, Memory};
use std::fmt::Write as _;
use std::sync::Arc;

/// The code of a chunk.
#[derive(Debug)]
pub(crate) struct ChunkCode {
    one: Classify,
    many: Option<ClassifyMany>,
    /// That of `one` first.
    installed: Vec<Installed>,
    memory: Arc<Memory>,
}

impl ChunkCode {
    /// Code that was installed in this memory.
    ///
    /// # Safety
    /// The first is code with the signature of [`Classify`], the second with that of [`ClassifyMany`].
    pub(crate) unsafe fn new(memory: Arc<Memory>, one: Installed, many: Option<Installed>) -> ChunkCode {
        let installed = [one].into_iter().chain(many).collect();
        // SAFETY: the caller's promise; the code is freed with this value.
        let one = unsafe { std::mem::transmute::<usize, Classify>(one.entry) };
        // SAFETY: the caller's promise; the code is freed with this value.
        let many = many.map(|many| unsafe { std::mem::transmute::<usize, ClassifyMany>(many.entry) });
        ChunkCode { one, many, installed, memory }
    }

    /// The best rank of a packet, given the best so far.
    ///
    /// # Safety
    /// The caller is pinned.
    #[inline(always)]
    pub(crate) unsafe fn classify(&self, packet: Packet<'_>, best: u64) -> u64 {
        // SAFETY: the code reads `length` bytes of `data` at most, and tables and lists that the pin keeps.
        unsafe { (self.one)(packet.data, packet.length.into(), packet.wire_length.into(), best) }
    }

    /// The function that [`ChunkCode::classify`] calls: a [`Classify`].
    pub(crate) fn entry(&self) -> *mut () {
        self.one as *mut ()
    }

    /// The function for arrays of packets, if there is one.
    #[inline(always)]
    pub(crate) fn batch(&self) -> Option<ClassifyMany> {
        self.many
    }

    /// Bytes of all functions.
    pub(crate) fn length(&self) -> usize {
        self.installed.iter().map(|installed| installed.length).sum()
    }

    /// Writes the instructions of the first function.
    pub(crate) fn write_listing(&self, text: &mut String) {
        let Some(installed) = self.installed.first() else { return };
        // SAFETY: the code is installed as long as this value lives, and the execute view is readable.
        let code = unsafe { std::slice::from_raw_parts(installed.entry as *const u8, installed.length) };
        let mut at = 0;
        let mut lines = Vec::new();
        while let Some(decoded) = code.get(at..).and_then(|rest| X86_64.decode(rest)) {
            lines.push(format!("    {at:4x}  {decoded}"));
            at += decoded.length;
        }
        let _ = writeln!(text, "  code     {} bytes, {} instructions", installed.length, lines.len());
        for line in lines {
            let _ = writeln!(text, "{line}");
        }
    }
}

impl Drop for ChunkCode {
    fn drop(&mut self) {
        for code in &self.installed {
            self.memory.free(code.entry, code.length);
        }
    }
}
