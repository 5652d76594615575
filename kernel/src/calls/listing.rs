//! Files that show synthesised code: `/proc/<process>/fd/<descriptor>/code`, and `/proc/synth` with all of it. They are
//! made when they are opened.

use super::call::Call;
use crate::synthesis;
use alloc::string::String;
use alloc::vec::Vec;

/// The contents of the file at a path; nothing if the path is none of these.
pub(super) fn contents_at(call: &Call<'_>, path: &[u8]) -> Option<Vec<u8>> {
    let mut names = path.strip_prefix(b"/proc/")?.split(|byte| *byte == b'/');
    let text = match (names.next()?, names.next(), names.next(), names.next(), names.next()) {
        (b"synth", None, ..) => synthesis::describe_all(),
        (process, Some(b"fd"), Some(number), Some(b"code"), None) => {
            let is_own = process == b"self" || read_number(process) == Some(call.process().id);
            let number = read_number(number).filter(|_| is_own)?;
            let entries = call.process().files.borrow().file(u64::from(number)).ok()?.entries();
            entries.addresses().into_iter().map(describe).collect()
        }
        _ => return None,
    };
    Some(text.into_bytes())
}

/// The routine at an address as text.
fn describe(address: u64) -> String {
    synthesis::describe_at(address).unwrap_or_else(|| "the general path\n".into())
}

fn read_number(text: &[u8]) -> Option<u32> {
    core::str::from_utf8(text).ok()?.parse().ok()
}
