//! A static linker: relocatable ELF objects of `clang --target=lanai -c` to an image at fixed addresses. Knows no
//! instruction beyond the fields that relocations change.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use object::read::elf::{ElfFile32, FileHeader, Rela, SectionHeader};
use object::{
    BigEndian, Object, ObjectSection, ObjectSymbol, SectionFlags, SectionKind, SymbolIndex, SymbolSection, elf,
};

/// A relocatable object and the name that messages call it.
#[derive(Clone, Copy, Debug)]
pub struct ObjectFile<'data> {
    /// The name in messages, for instance of its file.
    pub name: &'data str,
    /// The content of the file.
    pub bytes: &'data [u8],
}

/// A linked program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The address of the first byte.
    pub base: u32,
    /// Code and data, zeroed data included.
    pub bytes: Vec<u8>,
    /// How many of the bytes are code.
    pub code_bytes: u32,
    /// The addresses of global symbols.
    pub symbols: BTreeMap<String, u32>,
}

impl Image {
    /// The address after the last byte.
    pub fn end(&self) -> u32 {
        self.base + self.bytes.len() as u32
    }
}

/// Where and why objects cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    /// The name of the object.
    pub object: String,
    /// The section and the offset in it, where there is one.
    pub place: Option<(String, u64)>,
    /// What is wrong.
    pub cause: LinkErrorCause,
}

/// Why objects cannot be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkErrorCause {
    /// The file is no relocatable big-endian ELF object of LANai, or is broken.
    Object(String),
    /// A section of memory is neither bytes nor zeros, or is thread-local.
    Section(String),
    /// No object defines the symbol.
    Undefined(String),
    /// Two objects define the symbol: this one and the one that is named.
    Duplicate(String, String),
    /// The symbol is common to objects; `-fno-common`, the default of compilers, avoids that.
    Common(String),
    /// The relocation has a kind that LLVM's LANai does not have.
    RelocationKind(u32),
    /// The relocation is for another format than this word has: clang 14 emits such code for the address of a label
    /// (`&&label`) outside of initialisers.
    RelocationFormat(&'static str, u32),
    /// The relocation's bytes are not in its section.
    RelocationOffset,
    /// The relocation's symbol is not in the table.
    RelocationSymbol,
    /// The value does not fit the instruction: relocation, symbol, value.
    RelocationValue(&'static str, String, u32),
    /// The program does not fit memory: its end, and the end of memory.
    TooLarge(u64, u32),
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.object)?;
        if let Some((section, offset)) = &self.place {
            write!(f, ":{section}+{offset:#x}")?;
        }
        match &self.cause {
            LinkErrorCause::Object(reason) => write!(f, ": not a relocatable object of LANai: {reason}"),
            LinkErrorCause::Section(name) => write!(f, ": section `{name}` has a type that cannot be linked"),
            LinkErrorCause::Undefined(symbol) => write!(f, ": symbol `{symbol}` is defined by no object"),
            LinkErrorCause::Duplicate(symbol, other) => {
                write!(f, ": symbol `{symbol}` is also defined by `{other}`")
            }
            LinkErrorCause::Common(symbol) => {
                write!(f, ": symbol `{symbol}` is common; compile with `-fno-common`")
            }
            LinkErrorCause::RelocationKind(kind) => write!(f, ": relocation kind {kind} is unknown"),
            LinkErrorCause::RelocationFormat(kind, word) => {
                write!(
                    f,
                    ": relocation {kind} is not for the instruction {word:#010x}; clang 14 emits it for `&&label`"
                )
            }
            LinkErrorCause::RelocationOffset => write!(f, ": relocation outside of its section"),
            LinkErrorCause::RelocationSymbol => write!(f, ": relocation without a symbol"),
            LinkErrorCause::RelocationValue(kind, symbol, value) => {
                write!(f, ": the address {value:#x} of `{symbol}` does not fit relocation {kind}")
            }
            LinkErrorCause::TooLarge(end, limit) => {
                write!(f, ": the program ends at {end:#x}, after the end {limit:#x} of memory")
            }
        }
    }
}

impl Error for LinkError {}

/// The machine number of LANai, which the crate `object` does not name.
const EM_LANAI: u16 = 244;

type Elf<'data> = ElfFile32<'data, BigEndian>;

/// A place that is the same in all sections of one kind: code comes first, zeros last.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Code,
    Constant,
    Data,
    Zero,
}

struct Input<'data> {
    name: &'data str,
    elf: Elf<'data>,
    /// The addresses of the sections that are in memory.
    addresses: BTreeMap<usize, u32>,
}

impl Input<'_> {
    fn error(&self, cause: LinkErrorCause) -> LinkError {
        LinkError { object: self.name.to_owned(), place: None, cause }
    }
}

/// Links objects to an image at `base` that ends at `limit` at the latest.
///
/// Sections are in the order code, constants, data, zeros, and within each in the order of the objects. A weak symbol
/// yields to a global one and is 0 without any definition.
///
/// # Errors
/// Everything that is wrong with the objects, up to the first stage that cannot be passed: reading, placing, symbols,
/// relocations.
pub fn link(objects: &[ObjectFile<'_>], base: u32, limit: u32) -> Result<Image, Vec<LinkError>> {
    let mut inputs = read(objects)?;
    let mut image = place(&mut inputs, base, limit)?;
    image.symbols = collect_symbols(&inputs)?;
    relocate(&inputs, &mut image)?;
    Ok(image)
}

fn unless_errors<T>(value: T, errors: Vec<LinkError>) -> Result<T, Vec<LinkError>> {
    if errors.is_empty() { Ok(value) } else { Err(errors) }
}

fn read<'data>(objects: &[ObjectFile<'data>]) -> Result<Vec<Input<'data>>, Vec<LinkError>> {
    let (mut inputs, mut errors) = (Vec::new(), Vec::new());
    for object in objects {
        match read_object(object.bytes) {
            Ok(elf) => inputs.push(Input { name: object.name, elf, addresses: BTreeMap::new() }),
            Err(reason) => errors.push(LinkError {
                object: object.name.to_owned(),
                place: None,
                cause: LinkErrorCause::Object(reason),
            }),
        }
    }
    unless_errors(inputs, errors)
}

fn read_object(bytes: &[u8]) -> Result<Elf<'_>, String> {
    let elf = Elf::parse(bytes).map_err(|error| error.to_string())?;
    let header = elf.elf_header();
    let machine = header.e_machine(elf.endian());
    if machine.0 != EM_LANAI {
        return Err(format!("its machine is number {}", machine.0));
    }
    if header.e_type(elf.endian()) != elf::ET_REL {
        return Err("it is linked already".to_owned());
    }
    Ok(elf)
}

/// Gives addresses to all sections, and copies their bytes.
fn place(inputs: &mut [Input<'_>], base: u32, limit: u32) -> Result<Image, Vec<LinkError>> {
    let mut errors = Vec::new();
    let mut end = u64::from(base);
    let mut bytes = Vec::new();
    let mut code_bytes = 0;
    for wanted in [Kind::Code, Kind::Constant, Kind::Data, Kind::Zero] {
        for input in inputs.iter_mut() {
            let mut addresses = Vec::new();
            for section in input.elf.sections() {
                let kind = match kind_of(&section) {
                    Ok(Some(kind)) if kind == wanted => kind,
                    Ok(_) => continue,
                    // Reported once, in the first round.
                    Err(()) if wanted == Kind::Code => {
                        let name = String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned();
                        errors.push(input.error(LinkErrorCause::Section(name)));
                        continue;
                    }
                    Err(()) => continue,
                };
                let start = end.checked_next_multiple_of(section.align().max(4)).unwrap_or(u64::MAX);
                end = start.saturating_add(section.size());
                if end > u64::from(limit) {
                    errors.push(input.error(LinkErrorCause::TooLarge(end, limit)));
                    return Err(errors);
                }
                let content = if kind == Kind::Zero { Ok(&[][..]) } else { section.data() };
                match content {
                    Ok(content) => {
                        bytes.resize((start - u64::from(base)) as usize, 0);
                        bytes.extend_from_slice(content);
                        bytes.resize((end - u64::from(base)) as usize, 0);
                    }
                    Err(error) => errors.push(input.error(LinkErrorCause::Object(error.to_string()))),
                }
                addresses.push((section.index().0, start as u32));
            }
            input.addresses.extend(addresses);
        }
        if wanted == Kind::Code {
            code_bytes = bytes.len() as u32;
        }
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    unless_errors(Image { base, bytes, code_bytes, symbols: BTreeMap::new() }, errors)
}

/// What of memory a section is, if it is in memory at all.
fn kind_of<'data>(section: &impl ObjectSection<'data>) -> Result<Option<Kind>, ()> {
    let SectionFlags::Elf { sh_flags, .. } = section.flags() else { return Err(()) };
    if !sh_flags.contains(elf::SHF_ALLOC) {
        return Ok(None);
    }
    if sh_flags.contains(elf::SHF_TLS) {
        return Err(());
    }
    Ok(Some(match section.kind() {
        SectionKind::UninitializedData => Kind::Zero,
        SectionKind::Text => Kind::Code,
        SectionKind::Data => Kind::Data,
        SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => Kind::Constant,
        _ => return Err(()),
    }))
}

/// The name of a symbol in messages.
fn symbol_name<'data>(symbol: &impl ObjectSymbol<'data>) -> String {
    String::from_utf8_lossy(symbol.name_bytes().unwrap_or_default()).into_owned()
}

/// The address of a symbol that this object defines, unless it is in a section that is not in memory.
fn own_address<'data>(input: &Input<'_>, symbol: &impl ObjectSymbol<'data>) -> Option<u32> {
    match symbol.section() {
        SymbolSection::Absolute => Some(symbol.address() as u32),
        SymbolSection::Section(section) => {
            input.addresses.get(&section.0).map(|start| start.wrapping_add(symbol.address() as u32))
        }
        // Undefined and common symbols, names of files. The type may grow.
        _ => None,
    }
}

/// The addresses of all global and weak symbols.
fn collect_symbols(inputs: &[Input<'_>]) -> Result<BTreeMap<String, u32>, Vec<LinkError>> {
    struct Definition<'data> {
        address: u32,
        object: &'data str,
        is_weak: bool,
    }
    let mut definitions: BTreeMap<String, Definition<'_>> = BTreeMap::new();
    let mut errors = Vec::new();
    for input in inputs {
        for symbol in input.elf.symbols().filter(|symbol| !symbol.is_local()) {
            let name = symbol_name(&symbol);
            if symbol.is_common() {
                errors.push(input.error(LinkErrorCause::Common(name)));
                continue;
            }
            let Some(address) = own_address(input, &symbol) else { continue };
            let is_weak = symbol.is_weak();
            match definitions.get(&name) {
                Some(_) if is_weak => continue,
                Some(earlier) if !earlier.is_weak => {
                    errors.push(input.error(LinkErrorCause::Duplicate(name, earlier.object.to_owned())));
                    continue;
                }
                Some(_) | None => {}
            }
            definitions.insert(name, Definition { address, object: input.name, is_weak });
        }
    }
    let symbols = definitions.into_iter().map(|(name, definition)| (name, definition.address)).collect();
    unless_errors(symbols, errors)
}

/// Writes the addresses of symbols into code and data.
fn relocate(inputs: &[Input<'_>], image: &mut Image) -> Result<(), Vec<LinkError>> {
    let mut errors = Vec::new();
    for input in inputs {
        if let Err(error) = relocate_object(input, image, &mut errors) {
            errors.push(input.error(LinkErrorCause::Object(error.to_string())));
        }
    }
    unless_errors((), errors)
}

fn relocate_object(input: &Input<'_>, image: &mut Image, errors: &mut Vec<LinkError>) -> object::Result<()> {
    let (endian, data) = (input.elf.endian(), input.elf.data());
    for header in input.elf.elf_section_table().iter() {
        let target = header.sh_info(endian) as usize;
        let Some(&start) = input.addresses.get(&target) else { continue };
        let section = input.elf.section_by_index(object::SectionIndex(target))?;
        let name = String::from_utf8_lossy(section.name_bytes().unwrap_or_default()).into_owned();
        if header.rel(endian, data)?.is_some() {
            errors.push(input.error(LinkErrorCause::Section(format!(".rel{name}"))));
        }
        let Some((relocations, _)) = header.rela(endian, data)? else { continue };
        for relocation in relocations {
            let offset = u64::from(relocation.r_offset.get(endian));
            let result = match u32::try_from(offset) {
                Ok(offset) if offset.saturating_add(4) as u64 <= section.size() => {
                    let index = relocation.symbol(endian, false);
                    let kind = relocation.r_type(endian).0;
                    let addend = relocation.r_addend(endian) as u32;
                    value_of(input, index, addend, &image.symbols).and_then(|(symbol, value)| {
                        let position = (start - image.base + offset) as usize;
                        let field = &mut image.bytes[position..position + 4];
                        let word = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
                        field.copy_from_slice(&apply(kind, word, &symbol, value)?.to_be_bytes());
                        Ok(())
                    })
                }
                _ => Err(LinkErrorCause::RelocationOffset),
            };
            if let Err(cause) = result {
                errors.push(LinkError { object: input.name.to_owned(), place: Some((name.clone(), offset)), cause });
            }
        }
    }
    Ok(())
}

/// The name of a relocation's symbol, and the address that the relocation stands for.
fn value_of(
    input: &Input<'_>,
    index: Option<SymbolIndex>,
    addend: u32,
    globals: &BTreeMap<String, u32>,
) -> Result<(String, u32), LinkErrorCause> {
    let Some(index) = index else { return Ok((String::new(), addend)) };
    let symbol = input.elf.symbol_by_index(index).map_err(|_| LinkErrorCause::RelocationSymbol)?;
    let name = symbol_name(&symbol);
    let address = match own_address(input, &symbol) {
        Some(address) if symbol.is_local() => address,
        _ => match globals.get(&name) {
            Some(address) => *address,
            None if symbol.is_weak() => 0,
            None => return Err(LinkErrorCause::Undefined(name)),
        },
    };
    Ok((name, address.wrapping_add(addend)))
}

/// A word with an address in the field of a relocation: the kinds of LLVM's `ELFRelocs/Lanai.def`.
fn apply(kind: u32, word: u32, symbol: &str, value: u32) -> Result<u32, LinkErrorCause> {
    let misfit = |kind| Err(LinkErrorCause::RelocationValue(kind, symbol.to_owned(), value));
    let other_format = |kind| Err(LinkErrorCause::RelocationFormat(kind, word));
    let (is_immediate, is_branch) = (word >> 31 == 0, word >> 28 == 14 && word & 2 == 0);
    let is_long = word >> 28 == 15 && word >> 16 & 3 != 3;
    match kind {
        // R_LANAI_NONE
        0 => Ok(word),
        1 if !is_long => other_format("R_LANAI_21"),
        1 if value >= 1 << 21 => misfit("R_LANAI_21"),
        2 if !is_long => other_format("R_LANAI_21_F"),
        2 if value >= 1 << 21 || value & 3 != 0 => misfit("R_LANAI_21_F"),
        1 | 2 => Ok(word & !0x007c_ffff | (value >> 16 & 31) << 18 | value & 0xffff),
        3 if !is_branch => other_format("R_LANAI_25"),
        3 if value >= 1 << 25 || value & 3 != 0 => misfit("R_LANAI_25"),
        3 => Ok(word & !0x01ff_fffc | value),
        // R_LANAI_32
        4 => Ok(value),
        5 if !is_immediate => other_format("R_LANAI_HI16"),
        5 => Ok(word & !0xffff | value >> 16),
        6 if !is_immediate => other_format("R_LANAI_LO16"),
        6 => Ok(word & !0xffff | value & 0xffff),
        _ => Err(LinkErrorCause::RelocationKind(kind)),
    }
}
