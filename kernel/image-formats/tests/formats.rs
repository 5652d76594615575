//! The readers against other readers, on programs that the compiler of this machine links, and on thousands of
//! malformed copies of them. Runs on the host.
#![forbid(unsafe_code)]

use elf::ElfBytes;
use elf::endian::LittleEndian;
use quaject_image_formats::cpio::{self, CpioError, Entry};
use quaject_image_formats::elf::{ElfError, PAGE_BYTES, Placement, Program, SegmentAccess, USER_END};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A generator of pseudo-random numbers (Steele, Lea, Flood 2014, "Fast Splittable Pseudorandom Number Generators").
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ word >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

/// A program that `cc` links in some form.
fn linked(name: &str, options: &[&str]) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    fs::write(&source, "#include <stdio.h>\nint main(void) { return puts(\"hello\") < 0; }\n").expect("a file");
    let output =
        Command::new("cc").args(options).arg("-o").args([&program, &source]).output().expect("cc is installed");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(&program).expect("the compiler has written it")
}

#[test]
fn segments_are_those_that_another_reader_finds() {
    for (name, options, placement) in
        [("fixed", &["-static"][..], Placement::Fixed), ("relocatable", &["-static-pie"][..], Placement::Relocatable)]
    {
        let bytes = linked(name, options);
        let program = Program::parse(&bytes).expect("the compiler links programs");
        let other = ElfBytes::<LittleEndian>::minimal_parse(&bytes).expect("the compiler links programs");
        let headers = other.segments().expect("it has program headers");
        assert_eq!((program.placement, program.entry), (placement, other.ehdr.e_entry));
        assert_eq!(program.header_count(), headers.len());
        let loaded: Vec<_> = headers.iter().filter(|header| header.p_type == elf::abi::PT_LOAD).collect();
        let segments: Vec<_> = program.segments().collect();
        assert_eq!(segments.len(), loaded.len());
        for (segment, header) in segments.iter().zip(loaded) {
            assert_eq!((segment.address, segment.memory_bytes), (header.p_vaddr, header.p_memsz));
            assert_eq!(segment.contents, other.segment_data(&header).expect("it is in the file"));
            let access = match header.p_flags & 7 {
                elf::abi::PF_R => SegmentAccess::Read,
                6 => SegmentAccess::ReadWrite,
                5 => SegmentAccess::ReadExecute,
                other => panic!("flags {other}"),
            };
            assert_eq!(segment.access, access);
        }
        let first = segments[0].address;
        assert_eq!(program.header_address, Some(first + other.ehdr.e_phoff));
    }
}

#[test]
fn programs_that_cannot_run_are_refused_for_their_reason() {
    let fixed = linked("refused", &["-static"]);
    assert_eq!(Program::parse(&linked("dynamic", &[])).err(), Some(ElfError::Dynamic));
    assert_eq!(Program::parse(b"").err(), Some(ElfError::NotElf));
    assert_eq!(Program::parse(&fixed[..63]).err(), Some(ElfError::NotElf));
    let changed = |at: usize, byte: u8| {
        let mut bytes = fixed.clone();
        bytes[at] = byte;
        Program::parse(&bytes).err()
    };
    assert_eq!(changed(4, 1), Some(ElfError::OtherMachine), "32 bits");
    assert_eq!(changed(18, 183), Some(ElfError::OtherMachine), "AArch64");
    assert_eq!(changed(16, 1), Some(ElfError::NotProgram), "an object file");
    assert_eq!(changed(54, 55), Some(ElfError::OutOfRange), "the size of a header");
    assert_eq!(changed(39, 0x7f), Some(ElfError::OutOfRange), "the place of the table");
    assert_eq!(changed(56, 0), Some(ElfError::Empty), "no headers");
    let first = 64;
    assert_eq!(changed(first + 4, 7), Some(ElfError::WritableCode));
    assert_eq!(changed(first + 15, 0x7f), Some(ElfError::OutOfRange), "the place in the file");
    assert_eq!(changed(first + 47, 0x7f), Some(ElfError::OutOfRange), "the size in memory");
    assert_eq!(changed(first + 39, 0x7f), Some(ElfError::OutOfRange), "the size in the file");
    assert_eq!(changed(first + 42, 0x10), Some(ElfError::Overlap), "the size in memory, over the second segment");
}

/// What holds of every program that is accepted.
fn check_program(program: &Program<'_>, bytes: &[u8]) {
    let mut end = 0;
    for segment in program.segments() {
        assert!(segment.first_page() >= end && segment.first_page().is_multiple_of(PAGE_BYTES));
        assert!(segment.contents.len() as u64 <= segment.memory_bytes);
        assert!(segment.contents.len() <= bytes.len());
        end = segment.end_of_pages();
        assert!(end <= USER_END.next_multiple_of(PAGE_BYTES));
    }
}

#[test]
fn malformed_programs_are_refused_or_consistent() {
    const COPIES: u32 = 100_000;
    let mut random = Random(1);
    let mut accepted = 0;
    for original in [linked("mutated", &["-static"]), linked("mutated-pie", &["-static-pie"])] {
        let headers = 64 + 56 * 12;
        let mut bytes = original.clone();
        for _ in 0..COPIES {
            for _ in 0..=random.below(4) {
                let at = random.below(headers);
                // Numbers at the ends of their ranges find more than any byte does.
                bytes[at] = [0, 1, 0x7f, 0x80, 0xff, random.next() as u8][random.below(6)];
            }
            let length = if random.below(8) == 0 { random.below(original.len()) } else { original.len() };
            if let Ok(program) = Program::parse(&bytes[..length]) {
                check_program(&program, &bytes[..length]);
                accepted += 1;
            }
            bytes[..headers].copy_from_slice(&original[..headers]);
        }
    }
    assert!(accepted > 1000, "{accepted} copies are accepted: the test shows little");
}

/// An archive of files, with their modes.
fn archive(files: &[(&str, u32, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (name, mode, contents) in files.iter().chain([&("TRAILER!!!", 0, &b""[..])]) {
        let fields = [7, *mode, 0, 0, 1, 1234, contents.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        bytes.extend_from_slice(b"070701");
        bytes.extend(fields.iter().flat_map(|field| format!("{field:08x}").into_bytes()));
        bytes.extend_from_slice(name.as_bytes());
        bytes.push(0);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(contents);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}

#[test]
fn entries_are_those_that_another_reader_finds() {
    let files = [
        ("folder", 0o40_755, &b""[..]),
        ("folder/a", 0o100_644, b"one"),
        ("folder/long name", 0o100_600, &[7; 1001]),
        ("link", 0o120_777, b"folder/a"),
    ];
    let bytes = archive(&files);
    let own: Vec<Entry<'_>> = cpio::entries(&bytes).map(|entry| entry.expect("the archive is well-formed")).collect();
    let others: Vec<_> = cpio_reader::iter_files(&bytes).collect();
    assert_eq!(own.len(), files.len());
    assert_eq!(others.len(), files.len());
    for ((own, other), (name, mode, contents)) in own.iter().zip(&others).zip(files) {
        assert_eq!((own.name, own.mode, own.contents, own.modified), (name.as_bytes(), mode, contents, 1234));
        assert_eq!((own.name, own.contents), (other.name().as_bytes(), other.file()));
        assert_eq!(own.mode, other.mode().bits());
    }
}

#[test]
fn malformed_archives_end_with_an_error() {
    let good = archive(&[("a", 0o100_644, b"contents")]);
    let first_error = |bytes: &[u8]| cpio::entries(bytes).find_map(Result::err);
    assert_eq!(first_error(&good), None);
    assert_eq!(first_error(b""), Some(CpioError::Truncated));
    assert_eq!(first_error(&good[..100]), Some(CpioError::Truncated));
    assert_eq!(first_error(&good[..115]), Some(CpioError::Truncated));
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        first_error(&bytes)
    };
    assert_eq!(changed(0, b'x'), Some(CpioError::NoHeader));
    assert_eq!(changed(14, b'g'), Some(CpioError::BadNumber));
    assert_eq!(changed(111, b'x'), Some(CpioError::BadName), "no zero byte");
    assert_eq!(changed(110, 0), Some(CpioError::BadName), "an empty name");
    assert_eq!(changed(54, b'f'), Some(CpioError::Truncated), "the size of the contents");
}

#[test]
fn mutated_archives_end() {
    const COPIES: u32 = 100_000;
    let original = archive(&[("a", 0o100_644, b"contents"), ("b/c", 0o100_644, &[1; 300]), ("d", 0o40_755, b"")]);
    let mut random = Random(2);
    let mut complete = 0;
    for _ in 0..COPIES {
        let mut bytes = original.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] = [b'0', b'f', b'7', 0, 0xff, random.next() as u8][random.below(6)];
        }
        bytes.truncate(if random.below(4) == 0 { random.below(bytes.len()) } else { bytes.len() });
        let entries: Vec<_> = cpio::entries(&bytes).collect();
        assert!(entries.iter().rev().skip(1).all(Result::is_ok), "an error ends the archive");
        let total: usize = entries.iter().flatten().map(|entry| entry.contents.len() + entry.name.len()).sum();
        assert!(total <= bytes.len());
        complete += u32::from(entries.iter().all(Result::is_ok));
    }
    assert!(complete > 1000, "{complete} copies are read to the end: the test shows little");
}
