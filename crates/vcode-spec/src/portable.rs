//! The portable instruction set as `portable.spec`, `extensions.spec` and `vectors.spec` declare it: operations, their
//! types, forms and operands ("VCODE", Table 2). Does not know any machine.

/// The kind of a portable operation, which determines its operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// `d, s, t` or `d, s, i`.
    Binary,
    /// Like [`Family::Binary`], the immediate being a count below the width.
    Shift,
    /// `d, s`.
    Unary,
    /// `d, i`.
    Set,
    /// `d, s` of different types.
    Convert,
    /// `d, s, t` or `d, s, i`: destination, base, index or offset.
    Load,
    /// `d, s, t` or `d, s, i`: value, base, index or offset.
    Store,
    /// `s`, or nothing for void.
    Return,
    /// `s, t, b` or `s, i, b`.
    Branch,
    /// `b`.
    Label,
    /// `s`.
    Register,
    /// Nothing.
    Nullary,
    /// `d, s, t`; the destination is read too.
    Select,
    /// `d, s, t, b` or `d, s, i, b`.
    Checked,
    /// `d, s, t`: the expected and then the previous value, an address, the new value (compare-and-swap).
    Exchange,
    /// `d, s, t, i`: value, base, index in elements of the type, offset.
    IndexedLoad,
    /// `d, s, t, i`, likewise.
    IndexedStore,
    /// `s, i`: base and offset of a hint.
    Hint,
    /// A vector instruction.
    Vector(Shape),
    /// `i`: the size of a frame. Not part of the portable set.
    Frame,
}

/// The operands of a vector instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `d, s, t`.
    Binary,
    /// `d, s, t`; the destination is read too.
    Accumulate,
    /// `d, s`.
    Unary,
    /// `d, s`; the destination is read too.
    Widen,
    /// `d, s, i`: a count below the width of an element.
    Shift,
    /// `d`.
    Clear,
    /// `d, s, i`: destination, base, offset.
    Load,
    /// `d, s, i`: value, base, offset.
    Store,
    /// `d, s, t`: destination, base, mask.
    MaskedLoad,
    /// `d, s, t`: value, base, mask.
    MaskedStore,
    /// `d, s`: a vector from a register.
    Splat,
    /// `d, s`: a register from a vector.
    Reduce,
    /// `s, t, label`.
    Branch,
}

/// The layer that an instruction belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layer {
    /// The core: on every machine, by rows of the machine.
    Core,
    /// Extensions: on every machine, by rows of the machine or by portable rows.
    Extension,
    /// Vectors: on the machines that have them.
    Vector,
}

/// A type letter of the paper's Table 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// Void.
    V,
    /// Signed char.
    C,
    /// Unsigned char.
    Uc,
    /// Signed short.
    S,
    /// Unsigned short.
    Us,
    /// Int.
    I,
    /// Unsigned.
    U,
    /// Long.
    L,
    /// Unsigned long.
    Ul,
    /// Pointer.
    P,
    /// Float.
    F,
    /// Double.
    D,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 12] =
        [Type::V, Type::C, Type::Uc, Type::S, Type::Us, Type::I, Type::U, Type::L, Type::Ul, Type::P, Type::F, Type::D];

    /// The suffix of instruction names.
    pub fn letters(self) -> &'static str {
        match self {
            Type::V => "v",
            Type::C => "c",
            Type::Uc => "uc",
            Type::S => "s",
            Type::Us => "us",
            Type::I => "i",
            Type::U => "u",
            Type::L => "l",
            Type::Ul => "ul",
            Type::P => "p",
            Type::F => "f",
            Type::D => "d",
        }
    }

    /// The type with this suffix.
    pub fn from_letters(letters: &str) -> Option<Type> {
        Type::ALL.into_iter().find(|ty| ty.letters() == letters)
    }

    /// The register file that holds it.
    pub fn class(self) -> Class {
        match self {
            Type::F | Type::D => Class::Float,
            Type::V | Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::U | Type::L | Type::Ul | Type::P => {
                Class::Int
            }
        }
    }

    /// Width in bits on a machine whose long has `long` bits.
    pub fn bits(self, long: u32) -> u32 {
        match self {
            Type::V => 0,
            Type::C | Type::Uc => 8,
            Type::S | Type::Us => 16,
            Type::I | Type::U | Type::F => 32,
            Type::L | Type::Ul | Type::P => long,
            Type::D => 64,
        }
    }
}

/// A line of `portable.spec`.
#[derive(Debug, Clone)]
pub struct PortableOp {
    /// The kind of its operands.
    pub family: Family,
    /// Base name, `add`.
    pub name: String,
    /// The types it takes, in the order of the table.
    pub types: Vec<Type>,
    /// Its meaning, for the documentation.
    pub doc: String,
    /// The layer it belongs to.
    pub layer: Layer,
}

impl PortableOp {
    /// An operation outside of the portable set, for prologues and epilogues.
    pub fn internal(family: Family, name: &str, ty: Type) -> PortableOp {
        PortableOp { family, name: name.into(), types: vec![ty], doc: String::new(), layer: Layer::Core }
    }

    /// The type of the source register when it differs from the type of the instruction: conversions.
    pub fn source_type(&self, ty: Type) -> Type {
        match self.family {
            Family::Convert => self
                .name
                .strip_prefix("cv")
                .and_then(|rest| rest.strip_suffix('2'))
                .and_then(Type::from_letters)
                .unwrap_or(ty),
            Family::Binary
            | Family::Shift
            | Family::Unary
            | Family::Set
            | Family::Load
            | Family::Store
            | Family::Return
            | Family::Branch
            | Family::Label
            | Family::Register
            | Family::Nullary
            | Family::Select
            | Family::Checked
            | Family::Exchange
            | Family::IndexedLoad
            | Family::IndexedStore
            | Family::Hint
            | Family::Vector(_)
            | Family::Frame => ty,
        }
    }
}

/// A register file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Integers and pointers.
    Int,
    /// Floats and doubles.
    Float,
    /// Vectors: whole registers of the floating file.
    Vector,
}

impl Class {
    /// The file that the machine keeps it in.
    pub fn file(self) -> Class {
        match self {
            Class::Int => Class::Int,
            Class::Float | Class::Vector => Class::Float,
        }
    }
}

/// The form of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// The last operand is a register, or there is only one form.
    Register,
    /// The last operand is an immediate.
    Immediate,
    /// The base is the stack pointer and the offset that of a local.
    Local,
}

/// A parameter of an emitter: name and what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    /// A register of this file.
    Register(char, Class),
    /// An immediate of this type.
    Immediate(Type),
    /// A 32-bit offset.
    Offset,
    /// A variable on the stack.
    Local,
    /// A label.
    Label,
}

/// The parameters of an emitter.
pub fn parameters(op: &PortableOp, ty: Type, form: Form) -> Vec<Parameter> {
    let register = |letter| Parameter::Register(letter, operand_class(op, ty, letter));
    let second = |immediate| match form {
        Form::Register => register('t'),
        Form::Immediate | Form::Local => immediate,
    };
    match op.family {
        Family::Binary | Family::Shift => vec![register('d'), register('s'), second(Parameter::Immediate(ty))],
        Family::Unary | Family::Convert => vec![register('d'), register('s')],
        Family::Set => vec![register('d'), Parameter::Immediate(ty)],
        Family::Load | Family::Store if form == Form::Local => vec![register('d'), Parameter::Local],
        Family::Load | Family::Store => vec![register('d'), register('s'), second(Parameter::Offset)],
        Family::Return if ty == Type::V => Vec::new(),
        Family::Return => vec![register('s')],
        Family::Branch => vec![register('s'), second(Parameter::Immediate(ty)), Parameter::Label],
        Family::Label => vec![Parameter::Label],
        Family::Register => vec![register('s')],
        Family::Nullary => Vec::new(),
        Family::Select | Family::Exchange => vec![register('d'), register('s'), register('t')],
        Family::Checked => vec![register('d'), register('s'), second(Parameter::Immediate(ty)), Parameter::Label],
        Family::IndexedLoad | Family::IndexedStore => {
            vec![register('d'), register('s'), register('t'), Parameter::Offset]
        }
        Family::Hint => vec![register('s'), Parameter::Offset],
        Family::Vector(shape) => match shape {
            Shape::Binary | Shape::Accumulate | Shape::MaskedLoad | Shape::MaskedStore => {
                vec![register('d'), register('s'), register('t')]
            }
            Shape::Unary | Shape::Widen | Shape::Splat | Shape::Reduce => vec![register('d'), register('s')],
            Shape::Shift => vec![register('d'), register('s'), Parameter::Immediate(Type::U)],
            Shape::Clear => vec![register('d')],
            Shape::Branch => vec![register('s'), register('t'), Parameter::Label],
            Shape::Load | Shape::Store => vec![register('d'), register('s'), Parameter::Offset],
        },
        Family::Frame => vec![Parameter::Offset],
    }
}

/// The forms an operation has, with the suffix of the instruction name.
pub fn forms(op: &PortableOp, ty: Type) -> Vec<(Form, &'static str)> {
    match op.family {
        Family::Binary | Family::Branch if ty.class() == Class::Float => vec![(Form::Register, "")],
        Family::Binary | Family::Shift | Family::Branch | Family::Checked => {
            vec![(Form::Register, ""), (Form::Immediate, "i")]
        }
        Family::Load | Family::Store => {
            vec![(Form::Register, ""), (Form::Immediate, "i"), (Form::Local, "_local")]
        }
        Family::Set if ty.class() == Class::Float => vec![(Form::Register, "")],
        Family::Set
        | Family::IndexedLoad
        | Family::IndexedStore
        | Family::Hint
        | Family::Frame
        | Family::Vector(Shape::Load | Shape::Store) => vec![(Form::Immediate, "")],
        Family::Vector(Shape::Shift) => vec![(Form::Immediate, "i")],
        Family::Unary
        | Family::Convert
        | Family::Return
        | Family::Label
        | Family::Register
        | Family::Nullary
        | Family::Select
        | Family::Exchange
        | Family::Vector(_) => {
            vec![(Form::Register, "")]
        }
    }
}

/// The name of an instruction: `addii`; operations without types keep their plain name.
pub fn instruction_name(op: &PortableOp, ty: Type, suffix: &str) -> String {
    let letters = match op.family {
        Family::Label | Family::Register | Family::Nullary | Family::Hint => "",
        Family::Vector(_) if ty == Type::V => "",
        Family::Binary
        | Family::Shift
        | Family::Unary
        | Family::Set
        | Family::Convert
        | Family::Load
        | Family::Store
        | Family::Return
        | Family::Branch
        | Family::Select
        | Family::Checked
        | Family::Exchange
        | Family::IndexedLoad
        | Family::IndexedStore
        | Family::Vector(_)
        | Family::Frame => ty.letters(),
    };
    format!("{}{letters}{suffix}", op.name)
}

/// The register file of operand `d`, `s` or `t`.
pub(crate) fn operand_class(op: &PortableOp, ty: Type, letter: char) -> Class {
    match (op.family, letter) {
        (Family::Vector(Shape::Load | Shape::Store | Shape::MaskedLoad | Shape::MaskedStore | Shape::Splat), 's')
        | (Family::Vector(Shape::Reduce), 'd') => Class::Int,
        (Family::Vector(_), _) => Class::Vector,
        (Family::Load | Family::Store | Family::IndexedLoad | Family::IndexedStore, 's' | 't')
        | (Family::Exchange, 's')
        | (Family::Register | Family::Hint, _) => Class::Int,
        (Family::Convert, 's') => op.source_type(ty).class(),
        _ => ty.class(),
    }
}

/// A sentence for the documentation of an instruction.
pub(crate) fn sentence(op: &PortableOp, ty: Type, form: Form) -> String {
    let operands: Vec<String> = parameters(op, ty, form)
        .into_iter()
        .map(|parameter| match parameter {
            Parameter::Register(letter, _) => letter.to_string(),
            Parameter::Immediate(_) | Parameter::Offset => "i".into(),
            Parameter::Label => "b".into(),
            Parameter::Local => "local".into(),
        })
        .collect();
    let mut doc = op.doc.clone();
    if let Some(first) = doc.get(..1) {
        doc = first.to_uppercase() + &doc[1..];
    }
    let ty = match ty {
        Type::V => String::new(),
        _ => format!(" Type `{}`.", ty.letters()),
    };
    match (op.family, operands.is_empty()) {
        (_, true) => format!("{doc}.{ty}"),
        (_, false) => format!("{doc}.{ty} Operands `{}`.", operands.join(", ")),
    }
}
