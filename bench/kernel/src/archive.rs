//! An initial ramdisk for Linux: a cpio archive (newc) with a program as `/init`.

/// An entry of an archive.
fn entry(archive: &mut Vec<u8>, name: &str, mode: u32, device: (u32, u32), contents: &[u8]) {
    let number = archive.len() as u32 + 1;
    let name_bytes = name.len() as u32 + 1;
    let fields = [number, mode, 0, 0, 1, 0, contents.len() as u32, 0, 0, device.0, device.1, name_bytes, 0]
        .map(|field| format!("{field:08x}"));
    archive.extend_from_slice(format!("070701{}{name}\0", fields.concat()).as_bytes());
    pad(archive);
    archive.extend_from_slice(contents);
    pad(archive);
}

/// Names and contents begin at multiples of four.
fn pad(archive: &mut Vec<u8>) {
    archive.resize(archive.len().next_multiple_of(4), 0);
}

/// An archive with the program as the first process, and the console that Linux opens for it.
pub(crate) fn with_init(program: &[u8]) -> Vec<u8> {
    const DIRECTORY: u32 = 0o040_755;
    const DEVICE: u32 = 0o020_600;
    const PROGRAM: u32 = 0o100_755;
    let mut archive = Vec::new();
    for name in ["dev", "tmp"] {
        entry(&mut archive, name, DIRECTORY, (0, 0), &[]);
    }
    entry(&mut archive, "dev/console", DEVICE, (5, 1), &[]);
    entry(&mut archive, "init", PROGRAM, (0, 0), program);
    entry(&mut archive, "TRAILER!!!", 0, (0, 0), &[]);
    archive
}
