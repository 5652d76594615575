//! An ELF object in memory that describes one function: its symbol, line table and unwind information. It does not
//! contain the code; its section has the address of the code.

use std::vec;
use std::vec::Vec;

use super::bytes::{put_u32, put_uleb};
use super::unwind::eh_frame;
use super::{FunctionInfo, Line};

fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend(value.to_le_bytes());
}

fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend(value.to_le_bytes());
}

fn put_sleb(out: &mut Vec<u8>, mut value: i64) {
    loop {
        let byte = value as u8 & 0x7f;
        value >>= 7;
        let done = (value == 0 && byte & 0x40 == 0) || (value == -1 && byte & 0x40 != 0);
        out.push(if done { byte } else { byte | 0x80 });
        if done {
            return;
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().filter(|byte| *byte != 0));
    out.push(0);
}

struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    address: u64,
    size: u64,
    link: u32,
    info: u32,
    align: u64,
    entry: u64,
    bytes: Vec<u8>,
}

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOBITS: u32 = 8;
const ALLOC: u64 = 2;
const EXECINSTR: u64 = 4;
const HEADER: usize = 64;

#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;
#[cfg(target_arch = "riscv64")]
const MACHINE: u16 = 243;

/// The number that ELF gives this machine.
pub(super) const fn machine() -> u16 {
    MACHINE
}

impl Section {
    fn plain(name: &'static str, bytes: Vec<u8>) -> Section {
        let size = bytes.len() as u64;
        Section { name, kind: PROGBITS, flags: 0, address: 0, size, link: 0, info: 0, align: 1, entry: 0, bytes }
    }
}

/// The object.
pub(super) fn object(described: &FunctionInfo<'_>) -> Vec<u8> {
    let (entry, size) = (described.entry as u64, described.code.len() as u64);
    let mut names = vec![0];
    put_text(&mut names, described.name);
    let mut sections = vec![
        Section {
            kind: NOBITS,
            flags: ALLOC | EXECINSTR,
            address: entry,
            size,
            align: 16,
            ..Section::plain(".text", Vec::new())
        },
        Section { kind: SYMTAB, link: 3, info: 1, align: 8, entry: 24, ..Section::plain(".symtab", symbols(size)) },
        Section { kind: STRTAB, ..Section::plain(".strtab", names) },
        Section::plain(".debug_abbrev", abbreviations()),
        Section::plain(".debug_info", information(described)),
        Section::plain(".debug_line", lines(described)),
    ];
    let frames = eh_frame::<crate::Native>(described);
    sections.push(Section { flags: ALLOC, align: 8, ..Section::plain(".eh_frame", frames) });
    write(sections)
}

/// A global function at the start of section 1, after the empty symbol.
fn symbols(size: u64) -> Vec<u8> {
    let mut out = vec![0; 24];
    put_u32(&mut out, 1);
    out.extend([0x12, 0]);
    put_u16(&mut out, 1);
    put_u64(&mut out, 0);
    put_u64(&mut out, size);
    out
}

fn write(mut sections: Vec<Section>) -> Vec<u8> {
    let mut names = vec![0];
    let mut places = vec![0_u32];
    for section in &sections {
        places.push(names.len() as u32);
        put_text(&mut names, section.name);
    }
    places.push(names.len() as u32);
    put_text(&mut names, ".shstrtab");
    sections.push(Section { kind: STRTAB, ..Section::plain(".shstrtab", names) });
    let count = sections.len() + 1;
    let mut out = Vec::from(&b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0"[..]);
    put_u16(&mut out, 1); // relocatable, with nothing to relocate
    put_u16(&mut out, MACHINE);
    put_u32(&mut out, 1);
    put_u64(&mut out, 0);
    put_u64(&mut out, 0);
    put_u64(&mut out, HEADER as u64);
    put_u32(&mut out, 0);
    for half in [HEADER as u16, 0, 0, 64, count as u16, count as u16 - 1] {
        put_u16(&mut out, half);
    }
    out.extend([0; 64]);
    let mut offset = HEADER + 64 * count;
    for (section, name) in sections.iter().zip(&places[1..]) {
        offset = offset.next_multiple_of(8);
        put_u32(&mut out, *name);
        put_u32(&mut out, section.kind);
        for value in [section.flags, section.address, offset as u64, section.size] {
            put_u64(&mut out, value);
        }
        put_u32(&mut out, section.link);
        put_u32(&mut out, section.info);
        put_u64(&mut out, section.align);
        put_u64(&mut out, section.entry);
        offset += section.bytes.len();
    }
    for section in &sections {
        out.resize(out.len().next_multiple_of(8), 0);
        out.extend(&section.bytes);
    }
    out
}

/// A compilation unit with a function in it.
fn abbreviations() -> Vec<u8> {
    const UNIT: [u8; 17] = [1, 0x11, 1, 0x03, 8, 0x1b, 8, 0x13, 0x0b, 0x11, 1, 0x12, 1, 0x10, 6, 0, 0];
    const FUNCTION: [u8; 13] = [2, 0x2e, 0, 0x03, 8, 0x3f, 0x0c, 0x11, 1, 0x12, 1, 0, 0];
    [&UNIT[..], &FUNCTION, &[0]].concat()
}

fn information(described: &FunctionInfo<'_>) -> Vec<u8> {
    let (entry, end) = (described.entry as u64, (described.entry + described.code.len()) as u64);
    let mut body = Vec::new();
    put_u16(&mut body, 3); // version
    put_u32(&mut body, 0); // abbreviations
    body.push(8);
    put_uleb(&mut body, 1);
    put_text(&mut body, described.source(0));
    put_text(&mut body, folder(described.source(0)));
    body.push(0x0c); // a language in which names stand for themselves: C
    put_u64(&mut body, entry);
    put_u64(&mut body, end);
    put_u32(&mut body, 0); // lines
    put_uleb(&mut body, 2);
    put_text(&mut body, described.name);
    body.push(1); // visible everywhere
    put_u64(&mut body, entry);
    put_u64(&mut body, end);
    body.push(0);
    let mut out = Vec::new();
    put_u32(&mut out, body.len() as u32);
    out.extend(body);
    out
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

fn lines(described: &FunctionInfo<'_>) -> Vec<u8> {
    const COPY: u8 = 1;
    const ADVANCE_ADDRESS: u8 = 2;
    const ADVANCE_LINE: u8 = 3;
    const SET_FILE: u8 = 4;
    let mut header = vec![1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
    header.push(0); // no folders
    for source in described.sources {
        put_text(&mut header, source);
        header.extend([0, 0, 0]); // folder, time, size
    }
    header.push(0); // end of the files
    let mut program = vec![0, 9, 2];
    put_u64(&mut program, described.entry as u64);
    let (mut at, mut file, mut number) = (0, 0, 1_i64);
    for Line { offset, source, line } in described.lines.iter().copied() {
        let offset = offset.clamp(at, described.code.len());
        program.push(ADVANCE_ADDRESS);
        put_uleb(&mut program, (offset - at) as u64);
        if source != file && source < described.sources.len() {
            program.push(SET_FILE);
            put_uleb(&mut program, source as u64 + 1);
            file = source;
        }
        program.push(ADVANCE_LINE);
        put_sleb(&mut program, line as i64 - number);
        program.push(COPY);
        (at, number) = (offset, line as i64);
    }
    program.push(ADVANCE_ADDRESS);
    put_uleb(&mut program, (described.code.len() - at) as u64);
    program.extend([0, 1, 1]);
    let mut body = Vec::new();
    put_u16(&mut body, 2);
    put_u32(&mut body, header.len() as u32);
    body.extend(header);
    body.extend(program);
    let mut out = Vec::new();
    put_u32(&mut out, body.len() as u32);
    out.extend(body);
    out
}
