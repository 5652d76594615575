//! A machine specification after checking and name resolution: registers, fields, machine instructions, rows of the
//! mapping.

use crate::expr::Expr;
use crate::extension::PortableRow;
pub use crate::portable::{Class, Family, Layer, PortableOp, Shape, Type};

/// How code is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// 32-bit words.
    Word {
        /// Least significant byte first.
        little: bool,
    },
    /// Bytes, with the prefixes of x86.
    Bytes,
}

/// Names of the registers of one file, as one assembler operand spells them.
#[derive(Debug, Clone)]
pub struct NameSet {
    /// Name of the set, used by fields.
    pub name: String,
    /// Which file.
    pub class: Class,
    /// By register number.
    pub names: Vec<String>,
}

/// The content of a field of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A register, named by this set.
    Register(usize),
    /// A signed number of so many bits, divided by a power of two.
    Signed {
        /// Bits of the number before division.
        bits: u32,
        /// Logarithm of the divisor.
        scale: u32,
    },
    /// An unsigned number.
    Unsigned {
        /// Bits of the number before division.
        bits: u32,
        /// Logarithm of the divisor.
        scale: u32,
    },
    /// Two to the power of `bits` minus the number.
    Down {
        /// Bits of the field.
        bits: u32,
    },
    /// A label, as a signed distance in bytes from the site plus `origin`.
    Relative {
        /// Bits of the distance before division.
        bits: u32,
        /// Logarithm of the divisor.
        scale: u32,
        /// The origin of the distance, relative to the site.
        origin: i32,
        /// Which part of the distance the field holds.
        part: Part,
    },
}

/// Which part of a distance or address a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// The distance from bit `low` up, rounded so that a signed low part of `low` bits completes it.
    High {
        /// Bits of the low part.
        low: u32,
    },
    /// The low bits.
    Low,
}

/// A run of bits inside a word: highest and lowest.
pub type Piece = (u32, u32);

/// A field declared by a specification.
#[derive(Debug, Clone)]
pub struct Field {
    /// Name in operand texts.
    pub name: String,
    /// Its content.
    pub kind: Kind,
    /// Its bits, most significant piece first.
    pub pieces: Vec<Piece>,
}

/// One operand of a machine instruction.
#[derive(Debug, Clone)]
pub struct Operand {
    /// Its kind.
    pub kind: Kind,
    /// Bits of the word (empty for byte encodings, where tokens say).
    pub pieces: Vec<Piece>,
}

/// A part of the assembler text of an instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Segment {
    /// A literal text.
    Text(String),
    /// An operand, spelled by a name set if it is a register.
    Operand {
        /// Index into the operands.
        operand: usize,
        /// The name set of a register.
        set: usize,
    },
}

/// A part of a byte encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// A fixed byte.
    Byte(u8),
    /// A VEX or EVEX prefix: its bytes without registers.
    Vex {
        /// Three bytes, or four.
        bytes: [u8; 4],
        /// Which of the two.
        prefix: Prefix,
    },
    /// A REX prefix.
    Rex {
        /// With W.
        wide: bool,
    },
    /// A REX prefix without W, only where a register needs one. In the system layer only.
    ShortRex,
    /// An opcode with a register in its low bits.
    Plus {
        /// The opcode.
        opcode: u8,
        /// The operand.
        register: usize,
    },
    /// A ModRM byte and what follows it.
    ModRm {
        /// The register field.
        reg: RegField,
        /// The register in the prefix, if there is one.
        second: Option<usize>,
        /// The rest.
        rm: Rm,
    },
    /// An immediate or distance of so many bytes.
    Immediate {
        /// Its size.
        bytes: u32,
        /// The operand.
        operand: usize,
    },
}

impl Token {
    /// Whether only the emitters of the system layer print it.
    pub(crate) fn is_system(&self) -> bool {
        match self {
            Token::ShortRex => true,
            Token::ModRm { rm, .. } => matches!(rm, Rm::AnyBase(..) | Rm::Absolute(_) | Rm::Scaled(..)),
            Token::Byte(_) | Token::Vex { .. } | Token::Rex { .. } | Token::Plus { .. } | Token::Immediate { .. } => {
                false
            }
        }
    }
}

/// A prefix that holds registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// Three bytes.
    Vex,
    /// Four bytes; short displacements count in units of 64.
    Evex,
}

/// The register field of a ModRM byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegField {
    /// An opcode extension.
    Digit(u8),
    /// An operand.
    Operand(usize),
}

/// The register-or-memory side of a ModRM byte. Numbers are operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rm {
    /// A register.
    Register(usize),
    /// A register by number.
    Digit(u8),
    /// Base and displacement.
    Offset(usize, usize),
    /// Base and index, which is shifted left by `scale` first.
    Index {
        /// The base.
        base: usize,
        /// The index.
        index: usize,
        /// By how much it is shifted.
        scale: u32,
        /// The displacement, if there is one.
        offset: Option<usize>,
    },
    /// Any base, rsp and r12 too, and the shortest displacement. In the system layer only.
    AnyBase(usize, usize),
    /// A displacement alone. In the system layer only.
    Absolute(usize),
    /// An index times eight, and a displacement. In the system layer only.
    Scaled(usize, usize),
    /// A label relative to the instruction pointer.
    Label(usize),
}

/// The encoding of a machine instruction.
#[derive(Debug, Clone)]
pub enum Encoding {
    /// The fixed bits of a word.
    Word(u32),
    /// A sequence of bytes.
    Bytes(Vec<Token>),
}

/// A machine instruction.
#[derive(Debug, Clone)]
pub struct Insn {
    /// Name in rows; unique.
    pub name: String,
    /// Name for the assembler.
    pub mnemonic: String,
    /// Layout.
    pub encoding: Encoding,
    /// Operands in the order in which rows give them.
    pub operands: Vec<Operand>,
    /// Operand text for the assembler.
    pub text: Vec<Segment>,
    /// The letters of the operands of a byte encoding.
    pub letters: Vec<char>,
    /// Whether it is for rows, or has an emitter of its own.
    pub layer: InsnLayer,
}

/// What a machine instruction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InsnLayer {
    /// Rows consist of it.
    Rows,
    /// It has an emitter of its own, and no row names it.
    System,
}

/// A register operand of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegArg {
    /// `d`, `s` or `t`.
    Operand(char),
    /// A register by number.
    Fixed(u32),
}

/// An argument of a machine instruction in a row.
#[derive(Debug, Clone)]
pub enum Arg {
    /// A register.
    Register(RegArg),
    /// A number.
    Value(Expr),
    /// The label of the row.
    Label,
    /// Sixteen bytes of data, repeated over the width of a vector, high half first.
    Data(u64, u64),
}

/// One step of a row.
#[derive(Debug, Clone)]
pub enum Step {
    /// Emit an instruction.
    Emit {
        /// Index into the instructions.
        insn: usize,
        /// One per operand.
        args: Vec<Arg>,
    },
    /// Load a constant of any size into a register.
    SetLong {
        /// The register.
        register: u32,
        /// The constant.
        value: Expr,
    },
}

/// One alternative of a row.
#[derive(Debug, Clone)]
pub struct Alternative {
    /// Its condition, in addition to the fit of its immediates.
    pub guard: Option<Expr>,
    /// What it does.
    pub steps: Vec<Step>,
}

impl Alternative {
    /// Whether it requires features that not every processor of the machine has.
    pub fn requires_features(&self) -> bool {
        self.guard.as_ref().is_some_and(|guard| !guard.features().is_empty())
    }
}

/// The rows that functions need besides the portable instructions. Relative to the stack pointer, `save_link` and
/// `restore_link` store and load the return address where it is in no register of the files; `save_special` and
/// `restore_special` the other registers that rows change and that are in no list. `link` copies the return address
/// that `jal` left to a register; `call` calls a function at a label, if `jal` does not do it by the convention.
pub const FRAME_ROWS: [&str; 9] =
    ["enter", "leave", "return", "save_link", "restore_link", "save_special", "restore_special", "link", "call"];

/// The parameter of a frame row.
pub(crate) enum FrameParameter {
    /// None.
    Nothing,
    /// The size of a frame, or an offset from the stack pointer.
    Offset,
    /// The register that receives the return address.
    Register,
    /// The label to call.
    Label,
}

impl FrameParameter {
    /// The parameter of the row with this name.
    pub(crate) fn of(row: &str) -> FrameParameter {
        match row {
            "return" => FrameParameter::Nothing,
            "link" => FrameParameter::Register,
            "call" => FrameParameter::Label,
            _ => FrameParameter::Offset,
        }
    }
}

/// A line of the mapping from portable to machine instructions.
#[derive(Debug, Clone)]
pub struct Row {
    /// Base name of the portable operation, or one of [`FRAME_ROWS`].
    pub op: String,
    /// Its type.
    pub ty: Type,
    /// Its operands.
    pub family: Family,
    /// With a register as last operand (or no immediate form at all).
    pub register: Vec<Alternative>,
    /// With an immediate as last operand.
    pub immediate: Vec<Alternative>,
    /// Line of the specification.
    pub line: usize,
}

/// Registers with a fixed role.
#[derive(Debug, Clone, Default)]
pub struct Special {
    /// The stack pointer.
    pub stack: u32,
    /// The link register, if the machine has one in a register file.
    pub link: Option<u32>,
    /// Scratch of rows.
    pub x: u32,
    /// Scratch for immediates that do not fit.
    pub y: u32,
    /// Floating scratch.
    pub z: u32,
    /// The register of integer results.
    pub result: u32,
    /// The register of float and double results.
    pub fresult: u32,
}

/// A machine.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Its name, also that of its module and header.
    pub name: String,
    /// Name of its file.
    pub file: String,
    /// Layout of code.
    pub code: Code,
    /// Bits of long.
    pub long: u32,
    /// The assembler's prefix of register names.
    pub prefix: String,
    /// Register names; the first of each class is canonical.
    pub sets: Vec<NameSet>,
    /// Fields of words.
    pub fields: Vec<Field>,
    /// Temporary registers in order of allocation.
    pub temp: Vec<u32>,
    /// Callee-saved registers in order of allocation.
    pub saved: Vec<u32>,
    /// Floating temporaries.
    pub ftemp: Vec<u32>,
    /// Callee-saved floating registers.
    pub fsaved: Vec<u32>,
    /// Argument registers.
    pub args: Vec<u32>,
    /// Floating argument registers.
    pub fargs: Vec<u32>,
    /// Registers with a fixed role.
    pub special: Special,
    /// The optional features of processors of this machine, by bit.
    pub features: Vec<String>,
    /// Widths of vectors in bits, with the features that they require.
    pub widths: Vec<(u32, Vec<String>)>,
    /// Machine instructions, those of the system layer last.
    pub insns: Vec<Insn>,
    /// The layer of the instructions that are read next.
    pub layer: InsnLayer,
    /// The mapping.
    pub rows: Vec<Row>,
    /// Portable rows of extensions, for instructions without a row of the machine.
    pub portable_rows: Vec<PortableRow>,
}

impl Machine {
    /// Whether calls leave the return address in a register instead of on the stack.
    pub fn has_link(&self) -> bool {
        self.special.link.is_some() || self.row("save_link", Type::V).is_some()
    }

    /// The distance in bytes that a branch in an alternative with `near` certainly reaches; unlimited if there is none.
    /// The margin to the range of the field allows for the length of a row.
    pub fn reach(&self) -> u32 {
        let alternatives = self.rows.iter().flat_map(|row| row.register.iter().chain(&row.immediate));
        let near = alternatives.filter(|alternative| alternative.guard.as_ref().is_some_and(Expr::uses_near));
        let fields = near.flat_map(|alternative| &alternative.steps).flat_map(|step| match step {
            Step::Emit { insn, args } => {
                let operands = self.insns[*insn].operands.iter().zip(args);
                operands.filter(|(_, arg)| matches!(arg, Arg::Label)).map(|(operand, _)| operand.kind).collect()
            }
            Step::SetLong { .. } => Vec::new(),
        });
        let reaches = fields.filter_map(|kind| match kind {
            Kind::Relative { bits, .. } => Some((1_u32 << (bits - 1)).saturating_sub(64)),
            Kind::Register(_) | Kind::Signed { .. } | Kind::Unsigned { .. } | Kind::Down { .. } => None,
        });
        reaches.min().unwrap_or(u32::MAX)
    }

    /// The bit of a feature.
    pub fn feature(&self, name: &str) -> Option<usize> {
        self.features.iter().position(|own| own == name)
    }

    /// The widths of vectors: bits, the feature that stands for the width, the features that a processor needs for it.
    pub fn vector_widths(&self) -> Vec<(u32, u64, u64)> {
        let bit = |name: &str| 1_u64 << self.feature(name).expect("the reader checked the names of features");
        self.widths
            .iter()
            .map(|(bits, needs)| (*bits, bit(&format!("v{bits}")), needs.iter().map(|name| bit(name)).sum()))
            .collect()
    }

    /// The instructions of the system layer.
    pub fn system(&self) -> impl Iterator<Item = &Insn> {
        self.insns.iter().filter(|insn| insn.layer == InsnLayer::System)
    }

    /// The row of an operation.
    pub fn row(&self, op: &str, ty: Type) -> Option<&Row> {
        self.rows.iter().find(|row| row.op == op && row.ty == ty)
    }

    /// The portable row of an operation, if the machine has none of its own. Where long has 32 bits, types of that
    /// width share their rows.
    pub fn portable_row(&self, op: &str, ty: Type) -> Option<&PortableRow> {
        let find = |ty| self.portable_rows.iter().find(|row| row.op == op && row.ty == ty);
        let short = match ty {
            Type::L if self.long == 32 => find(Type::I),
            Type::Ul | Type::P if self.long == 32 => find(Type::U),
            Type::V
            | Type::C
            | Type::Uc
            | Type::S
            | Type::Us
            | Type::I
            | Type::U
            | Type::F
            | Type::D
            | Type::L
            | Type::Ul
            | Type::P => None,
        };
        short.or_else(|| find(ty))
    }

    /// The canonical names of a register file.
    pub fn names(&self, class: Class) -> &[String] {
        self.sets.iter().find(|set| set.class == class).map_or(&[], |set| &set.names)
    }

    /// The lowest bits of all fields that hold registers of this file, ascending. A register value has its number at
    /// all of these positions, so that an emitter only masks it.
    pub fn register_places(&self, class: Class) -> Vec<u32> {
        let mut places: Vec<u32> = Vec::new();
        for field in &self.fields {
            let Kind::Register(set) = field.kind else { continue };
            for (_, low) in &field.pieces {
                if self.sets[set].class == class && !places.contains(low) {
                    places.push(*low);
                }
            }
        }
        places.sort_unstable();
        places
    }

    /// The factor that copies a register number to all its positions.
    pub fn register_spread(&self, class: Class) -> u32 {
        self.register_places(class).iter().fold(0, |spread, low| spread | 1 << low)
    }

    /// The number and file of a register by any of its names.
    pub fn register(&self, name: &str) -> Option<(u32, Class)> {
        self.sets
            .iter()
            .find_map(|set| set.names.iter().position(|own| own == name).map(|number| (number as u32, set.class)))
    }

    /// The distinct label fields, which are the kinds of fixups of the machine.
    pub fn relative_kinds(&self) -> Vec<(Kind, Vec<Piece>)> {
        let mut kinds: Vec<(Kind, Vec<Piece>)> = Vec::new();
        for operand in self.insns.iter().flat_map(|insn| &insn.operands) {
            let entry = (operand.kind, operand.pieces.clone());
            if matches!(operand.kind, Kind::Relative { .. }) && !kinds.contains(&entry) {
                kinds.push(entry);
            }
        }
        kinds
    }
}

/// The bits that pieces cover.
pub(crate) fn mask_of(pieces: &[Piece]) -> u32 {
    pieces.iter().fold(0, |mask, (high, low)| mask | ((((1_u64 << (high - low + 1)) - 1) << low) as u32))
}
