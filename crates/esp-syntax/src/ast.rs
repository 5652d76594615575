//! The abstract syntax tree of the grammar in section 2 of the reference, as owned data with source locations.
//! Built from the lossless tree; names are unresolved. Parts that could not be parsed are
//! `Error` nodes, for which later stages report nothing.

use crate::span::Span;
use smol_str::SmolStr;

/// An identifier and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The identifier's text; empty if it was missing and the parser recovered.
    pub text: SmolStr,
    /// Its location.
    pub span: Span,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub struct File {
    /// Its items in order of text.
    pub items: Vec<Item>,
    /// The locations of the names of items that begin with `pub`.
    pub public: Vec<Span>,
    /// The locations of the names of items that begin with `param`.
    pub parameters: Vec<Span>,
}

/// A top-level item.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum Item {
    Import(Import),
    PartOf(PartOf),
    Type(TypeItem),
    Const(Const),
    Channel(Channel),
    Interface(Interface),
    Extern(Extern),
    Fn(Fn),
    Layout(Layout),
    Process(Process),
    Procedure(Procedure),
    Template(Template),
    Instance(Instantiation),
    Conditional(ConditionalItems),
    Assert(StaticAssertion),
    FastPath(FastPath),
    Model(Model),
    Pool(Pool),
    Memory(Memory),
}

impl Item {
    /// The name that the item declares.
    pub fn name(&self) -> Option<&Name> {
        match self {
            Item::Type(item) => Some(&item.name),
            Item::Const(item) => Some(&item.name),
            Item::Channel(item) => Some(&item.name),
            Item::Interface(item) => Some(&item.name),
            Item::Extern(item) => Some(&item.name),
            Item::Fn(item) => Some(&item.name),
            Item::Layout(item) => Some(&item.name),
            Item::Process(item) => Some(&item.name),
            Item::Procedure(item) => Some(&item.name),
            Item::Template(item) => Some(&item.name),
            Item::Instance(item) => Some(&item.name),
            Item::FastPath(item) => Some(&item.name),
            Item::Model(item) => Some(&item.name),
            Item::Import(_)
            | Item::PartOf(_)
            | Item::Conditional(_)
            | Item::Assert(_)
            | Item::Pool(_)
            | Item::Memory(_) => None,
        }
    }

    /// As [`Item::name`], to be changed.
    pub fn name_mut(&mut self) -> Option<&mut Name> {
        match self {
            Item::Type(item) => Some(&mut item.name),
            Item::Const(item) => Some(&mut item.name),
            Item::Channel(item) => Some(&mut item.name),
            Item::Interface(item) => Some(&mut item.name),
            Item::Extern(item) => Some(&mut item.name),
            Item::Fn(item) => Some(&mut item.name),
            Item::Layout(item) => Some(&mut item.name),
            Item::Process(item) => Some(&mut item.name),
            Item::Procedure(item) => Some(&mut item.name),
            Item::Template(item) => Some(&mut item.name),
            Item::Instance(item) => Some(&mut item.name),
            Item::FastPath(item) => Some(&mut item.name),
            Item::Model(item) => Some(&mut item.name),
            Item::Import(_)
            | Item::PartOf(_)
            | Item::Conditional(_)
            | Item::Assert(_)
            | Item::Pool(_)
            | Item::Memory(_) => None,
        }
    }
}

/// `import "ethernet.esp";` or `import "ring.esp"(T = u8) as ring;`
#[derive(Clone, Debug)]
pub struct Import {
    /// The decoded path.
    pub path: Vec<u8>,
    /// The string literal.
    pub span: Span,
    /// What stands for the parameters of the module.
    pub arguments: Vec<ImportArgument>,
    /// The name of the module in this file; none if its items join the importer's.
    pub name: Option<Name>,
}

/// `T = u8` in an import.
#[derive(Clone, Debug)]
pub struct ImportArgument {
    /// The parameter.
    pub name: Name,
    /// What it stands for.
    pub value: ImportValue,
}

/// The argument of a module. A name alone is an expression here; the parameter says whether a type is meant.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum ImportValue {
    Type(Type),
    Value(Expr),
}

/// `assert(N <= 64, "at most 64 nodes");` as an item: checked by the compiler.
#[derive(Clone, Debug)]
pub struct StaticAssertion {
    /// What must be true.
    pub condition: Expr,
    /// What the error says if it is not.
    pub message: Option<SmolStr>,
}

/// `part of "server.esp";`
#[derive(Clone, Debug)]
pub struct PartOf {
    /// The decoded path of the program's root file.
    pub path: Vec<u8>,
    /// The string literal.
    pub span: Span,
}

/// `type sendT = record { .. };`
#[derive(Clone, Debug)]
pub struct TypeItem {
    /// The new name.
    pub name: Name,
    /// Its value.
    pub ty: Type,
}

/// `const MTU: int = 1500;`
#[derive(Clone, Debug)]
pub struct Const {
    /// The new name.
    pub name: Name,
    /// The declared type, if any.
    pub ty: Option<Type>,
    /// Its value.
    pub value: Box<Expr>,
}

/// `channel c(int, u8) external out = "text:-";`
#[derive(Clone, Debug)]
pub struct Channel {
    /// The channel's name.
    pub name: Name,
    /// `(..)`: the list; `: T`: the one type.
    pub types: Vec<Type>,
    /// For each type, the name of the value, if it has one.
    pub value_names: Vec<Option<Name>>,
    /// The attributes in order of text.
    pub attributes: Vec<(ChannelAttribute, Span)>,
    /// The default driver, decoded.
    pub driver: Option<(Vec<u8>, Span)>,
    /// The whole item.
    pub span: Span,
}

/// What may follow a channel's types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelAttribute {
    /// The program writes, the environment reads.
    ExternalIn,
    /// The environment writes, the program reads.
    ExternalOut,
    /// Several instances may take any message.
    Shared,
    /// Which process continues after a rendezvous.
    Policy(Policy),
}

/// Which process continues after a rendezvous (reference, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// The receiver continues, the sender is appended to the ready list: the default.
    #[default]
    Receiver,
    /// The sender continues, the receiver is appended.
    Sender,
    /// Both are appended, the sender first.
    Queue,
}

/// `external interface userReq(out userC) { Send(send |> { $dest, $vAddr }) }`
#[derive(Clone, Debug)]
pub struct Interface {
    /// The C prefix.
    pub name: Name,
    /// Which side the C program plays.
    pub direction: Direction,
    /// The channel it binds.
    pub channel: Name,
    /// One C entry per pattern.
    pub entries: Vec<InterfaceEntry>,
    /// The whole item.
    pub span: Span,
}

/// One C entry of an interface.
#[derive(Clone, Debug)]
pub struct InterfaceEntry {
    /// The C suffix.
    pub name: Name,
    /// One pattern per value of the channel.
    pub patterns: Vec<Pattern>,
    /// The whole entry.
    pub span: Span,
}

/// `in` or `out`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Direction {
    In,
    Out,
}

impl Direction {
    /// That of the partners of an operation.
    pub fn other(self) -> Direction {
        match self {
            Direction::In => Direction::Out,
            Direction::Out => Direction::In,
        }
    }
}

/// `extern pure fn crc32(bytes[<=1514]) -> u32;`
#[derive(Clone, Debug)]
pub struct Extern {
    /// The C function.
    pub name: Name,
    /// Whether its result depends on its arguments only.
    pub purity: Purity,
    /// Parameters; names are optional.
    pub parameters: Vec<(Option<Name>, ValueType)>,
    /// The result, if any.
    pub result: Option<Type>,
}

/// Whether a function has effects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Purity {
    Pure,
    Impure,
}

/// `fn max(a: int, b: int) -> int { .. }`
#[derive(Clone, Debug)]
pub struct Fn {
    /// The function's name.
    pub name: Name,
    /// Its parameters.
    pub parameters: Vec<(Name, Type)>,
    /// Its result.
    pub result: Type,
    /// Its body.
    pub body: Block,
}

/// `layout ipv4 { version: 4, ihl: 4, .. }`
#[derive(Clone, Debug)]
pub struct Layout {
    /// The layout's name.
    pub name: Name,
    /// Its fields, most significant first.
    pub fields: Vec<LayoutField>,
    /// The whole item.
    pub span: Span,
}

/// One field of a layout.
#[derive(Clone, Debug)]
pub struct LayoutField {
    /// Its name.
    pub name: Name,
    /// Its width in bits.
    pub width: Expr,
    /// `le`: little-endian.
    pub order: ByteOrder,
}

/// Order of bytes of a number in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ByteOrder {
    Big,
    Little,
}

/// `process worker[4] { .. }`
#[derive(Clone, Debug)]
pub struct Process {
    /// The process's name.
    pub name: Name,
    /// The number of replicas, if written.
    pub replicas: Option<Expr>,
    /// Its body.
    pub body: Block,
}

/// `proc send(x: int, n: #int, out c: T) -> bool { .. }`
#[derive(Clone, Debug)]
pub struct Procedure {
    /// The procedure's name.
    pub name: Name,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Its result, if any.
    pub result: Option<Type>,
    /// Its body.
    pub body: Block,
}

/// A parameter of a procedure or template.
#[derive(Clone, Debug)]
pub struct Parameter {
    /// Its name.
    pub name: Name,
    /// What it stands for.
    pub kind: ParameterKind,
    /// The whole parameter.
    pub span: Span,
}

/// What a parameter stands for.
#[derive(Clone, Debug)]
pub enum ParameterKind {
    /// `x: T`: a value. `x: #T`: a variable of the caller.
    Value(ValueType),
    /// `in c: T`, `out c(T, U)`: one end of a channel.
    Channel(Direction, Vec<Type>),
}

/// `process worker(in jobC: jobT, n: int) { .. }`
#[derive(Clone, Debug)]
pub struct Template {
    /// The template's name.
    pub name: Name,
    /// Its parameters.
    pub parameters: Vec<Parameter>,
    /// Its body.
    pub body: Block,
}

/// `process w[4] = worker(jobC, 3);`
#[derive(Clone, Debug)]
pub struct Instantiation {
    /// The process's name.
    pub name: Name,
    /// The number of replicas, if written.
    pub replicas: Option<Expr>,
    /// The template.
    pub template: Name,
    /// The arguments of the template.
    pub arguments: Vec<Expr>,
    /// The whole item.
    pub span: Span,
}

/// `if DEBUG { .. } else { .. }` around items.
#[derive(Clone, Debug)]
pub struct ConditionalItems {
    /// A constant.
    pub condition: Expr,
    /// The items if it holds.
    pub then: Vec<Item>,
    /// The items if it does not.
    pub otherwise: Vec<Item>,
}

/// `pool packetT 16;`
#[derive(Clone, Debug)]
pub struct Pool {
    /// The boxed type.
    pub ty: Name,
    /// The number of objects.
    pub capacity: Expr,
}

/// `memory auto;` or `memory manual;`
#[derive(Clone, Debug)]
pub struct Memory {
    /// Which.
    pub mode: MemoryMode,
    /// The whole item.
    pub span: Span,
}

/// How reference counts become zero (reference, section 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum MemoryMode {
    /// By liveness.
    #[default]
    Automatic,
    /// By `link` and `unlink`.
    Manual,
}

/// The integer types, and the two types of the clock. The latter are integers of 64 bits in nanoseconds to every stage
/// after the checks; in the text they are opaque, and no keyword names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum IntType {
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    /// `time`: a moment of the monotonic clock.
    Time,
    /// `duration`: the difference of two moments.
    Duration,
}

/// A type as written.
#[derive(Clone, Debug)]
pub struct Type {
    /// What is written.
    pub kind: TypeKind,
    /// Where.
    pub span: Span,
}

/// The forms of types.
#[derive(Clone, Debug)]
pub enum TypeKind {
    /// Not understood by the parser.
    Error,
    /// `int` (`i32`), `u8`, ...
    Int(IntType),
    /// `bool`
    Bool,
    /// `bytes[<=N]`
    Bytes(Box<Expr>),
    /// `pid(P, Q)`
    Pid(Vec<Name>),
    /// A type's name.
    Named(Name),
    /// `array[N] of T`; the length may be missing only in a `var`.
    Array(Option<Box<Expr>>, Box<Type>),
    /// `record { a: T, .. }`
    Record(Vec<(Name, Type)>),
    /// `union { a: T, b }`
    Union(Vec<(Name, Option<Type>)>),
    /// `enum u8 { a, b = 4, else c }`
    Enum(Box<Enumeration>),
}

/// An enumeration as written.
#[derive(Clone, Debug)]
pub struct Enumeration {
    /// The type of the codes, if written.
    pub base: Option<IntType>,
    /// The cases with a code, in order; without one it is one above that before.
    pub cases: Vec<(Name, Option<Expr>)>,
    /// `else c`: the case of every other code.
    pub other: Option<Name>,
}

/// A type with or without `#`.
#[derive(Clone, Debug)]
pub struct ValueType {
    /// `#T`?
    pub mutability: Mutability,
    /// The type.
    pub ty: Type,
}

/// Whether a variable or literal can be updated in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Mutability {
    Immutable,
    Mutable,
}

/// `{ .. }`
#[derive(Clone, Debug)]
pub struct Block {
    /// Labels, declarations and statements in order.
    pub items: Vec<BlockItem>,
    /// From brace to brace.
    pub span: Span,
}

/// What a block holds.
#[derive(Clone, Debug)]
pub enum BlockItem {
    /// `#1` or `#retry`
    Label(Label),
    /// One declarator of `var`. Those of one `var` share `group`, in order.
    Var(Var),
    /// `const` inside a process.
    Const(Box<Const>),
    /// A statement.
    Stmt(Stmt),
}

/// A label, without its `#`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// `1` or `retry`.
    pub text: SmolStr,
    /// With the `#`.
    pub span: Span,
}

/// One variable of a `var`.
#[derive(Clone, Debug)]
pub struct Var {
    /// Which `var` of the process it belongs to: declarators of one `var` have the same number.
    pub group: u32,
    /// The variable.
    pub name: Name,
    /// Its type, if written.
    pub ty: Option<Box<ValueType>>,
    /// Its first value, if written.
    pub value: Option<Box<Expr>>,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What is written.
    pub kind: StmtKind,
    /// Where.
    pub span: Span,
}

/// The forms of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// Not understood by the parser.
    Error,
    /// `{ .. }`
    Block(Block),
    /// `if (c) a else b`
    If(Expr, Box<Stmt>, Option<Box<Stmt>>),
    /// `while (c) s` or `while { .. }`
    While(Option<Expr>, Box<Stmt>),
    /// `for i in a..b { .. }`
    For(Box<Name>, Box<Expr>, Box<Expr>, Box<Block>),
    /// `match e { pattern => s .. }`
    Match(Expr, Vec<(Pattern, Stmt)>),
    /// `break;`, `break L;`
    Break(Option<Label>),
    /// `continue;`, `continue L;`
    Continue(Option<Label>),
    /// `yield;`
    Yield,
    /// `return e;`, `return;`
    Return(Option<Expr>),
    /// `exit(e);`
    Exit(Expr),
    /// `assert(e);`
    Assert(Expr, Option<SmolStr>),
    /// `in`, `out` or `alt`.
    Communicate(Box<Communicate>),
    /// `f(x);`, which includes `link(x)` and `unlink(x)`.
    Call(Name, Vec<Expr>),
    /// `x[i].f += e;`
    Assign(Box<Place>, AssignOperator, Box<Expr>),
}

/// A channel operation or `alt`.
#[derive(Clone, Debug)]
pub struct Communicate {
    /// The word `idle`, if written.
    pub idle: Option<Span>,
    /// `alt`'s form; a plain `in` or `out` is `Plain` with one branch.
    pub form: CommunicateForm,
    /// The branches in order of text; exactly one for a plain operation.
    pub branches: Vec<Branch>,
    /// `else { .. }` of an `alt`.
    pub otherwise: Option<Block>,
}

/// Plain operation, `alt` or `pri alt`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum CommunicateForm {
    Plain,
    Alt,
    PriAlt,
}

/// One branch of an `alt`, or a plain operation.
#[derive(Clone, Debug)]
pub struct Branch {
    /// `when (e)`
    pub guard: Option<Box<Expr>>,
    /// What it waits for.
    pub operation: Operation,
    /// The attached block; missing for `in(c, x);`.
    pub body: Option<Block>,
    /// The branch without its block.
    pub span: Span,
}

/// What a branch waits for.
#[derive(Clone, Debug)]
pub enum Operation {
    /// `in(c, pattern, ..)`
    In(Name, Vec<Pattern>),
    /// `out(c, e, ..)`
    Out(Name, Vec<Expr>),
    /// `after (e unit)`, or `after (d)` with a duration.
    After(Expr, Option<TimeUnit>),
    /// `until (t)`
    Until(Expr),
}

/// Unit of a duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TimeUnit {
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
}

impl TimeUnit {
    /// How many nanoseconds one of it is.
    pub fn nanoseconds(self) -> i64 {
        match self {
            TimeUnit::Nanoseconds => 1,
            TimeUnit::Microseconds => 1_000,
            TimeUnit::Milliseconds => 1_000_000,
            TimeUnit::Seconds => 1_000_000_000,
        }
    }
}

/// Something that can be assigned: a variable and a path into it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The variable.
    pub base: Name,
    /// Fields, indices and slices, outermost first.
    pub path: Vec<PlaceStep>,
    /// The whole of it.
    pub span: Span,
}

/// One step of a path.
#[derive(Clone, Debug)]
pub enum PlaceStep {
    /// `.f`
    Field(Name),
    /// `[i]`
    Index(Expr),
    /// `[a..b]`
    Slice(Option<Expr>, Option<Expr>),
}

/// `=`, `+=`, ...
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AssignOperator {
    /// `=`
    Set,
    /// `+=` and its like.
    Update(BinaryOperator),
}

/// A pattern with its optional `if`.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What is written.
    pub kind: PatternKind,
    /// `if e`
    pub condition: Option<Box<Expr>>,
    /// Where, with the condition.
    pub span: Span,
}

/// The forms of patterns.
#[derive(Clone, Debug)]
pub enum PatternKind {
    /// Not understood by the parser.
    Error,
    /// `_`
    Any,
    /// `$x`
    Declare(Name),
    /// `== e`
    Equal(Expr),
    /// `@`
    OwnId,
    /// `5`, `-5`, `'a'`
    Int(i128),
    /// `"GET"`
    Bytes(Vec<u8>),
    /// `true`, `false`
    Bool(bool),
    /// `tag |> p`
    Tag(Name, Box<Pattern>),
    /// `x`, `q[tl]`
    Place(Place),
    /// `{ .. }` by position, or by `field:`.
    Record(Vec<(Option<Name>, Pattern)>),
    /// `[ .. ]`
    Array(Vec<Pattern>),
    /// `1..10`, the end excluded.
    Range(RangeEnd, RangeEnd),
    /// `1 | 2`
    Alternatives(Vec<Pattern>),
}

/// An end of a range in a pattern.
#[derive(Clone, Debug)]
pub enum RangeEnd {
    /// Not understood by the parser.
    Error,
    /// `5`, `-5`, `'a'`
    Int(i128),
    /// A constant.
    Name(Box<Expr>),
}

/// An expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What is written.
    pub kind: ExprKind,
    /// Where; parentheses are inside the span and leave no node.
    pub span: Span,
}

/// The forms of expressions.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// Not understood by the parser.
    Error,
    /// `42`
    Int(u64),
    /// `'a'`
    Char(u8),
    /// `true`
    Bool(bool),
    /// `"GET"`, `#"GET"`
    Bytes(Mutability, Vec<u8>),
    /// `{ 1, 2 }`, `#{ a: 1 }`
    Record(Mutability, Vec<(Option<Name>, Expr)>),
    /// `[1, 2]`
    Array(Mutability, Vec<Expr>),
    /// `[0; 64]`
    Repeat(Mutability, Box<Expr>, Box<Expr>),
    /// A variable or constant.
    Name(Name),
    /// `f(x)`, which includes `freeze`, `thaw`, `free`, `sizeof`, `int(b)` excluded.
    Call(Name, Vec<Expr>),
    /// `u8(e)`
    Convert(IntType, Box<Expr>),
    /// `(e ms)`
    Duration(Box<Expr>, TimeUnit),
    /// `!e`, `~e`, `-e`
    Unary(UnaryOperator, Box<Expr>),
    /// `a + b`
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    /// `c ? a : b`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `e.f`
    Field(Box<Expr>, Name),
    /// `e[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `e[a..b]`
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    /// `tag |> e`
    Tag(Name, Box<Expr>),
    /// `@`
    OwnId,
    /// `@P`, `@P[k]`
    ProcessId(Name, Option<Box<Expr>>),
}

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum UnaryOperator {
    Not,
    Complement,
    Negate,
}

/// Infix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum BinaryOperator {
    Multiply,
    Divide,
    Remainder,
    Add,
    Subtract,
    ShiftLeft,
    ShiftRight,
    BitAnd,
    BitXor,
    BitOr,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
}

impl BinaryOperator {
    /// How it is written.
    pub fn sign(self) -> &'static str {
        match self {
            BinaryOperator::Multiply => "*",
            BinaryOperator::Divide => "/",
            BinaryOperator::Remainder => "%",
            BinaryOperator::Add => "+",
            BinaryOperator::Subtract => "-",
            BinaryOperator::ShiftLeft => "<<",
            BinaryOperator::ShiftRight => ">>",
            BinaryOperator::BitAnd => "&",
            BinaryOperator::BitXor => "^",
            BinaryOperator::BitOr => "|",
            BinaryOperator::Equal => "==",
            BinaryOperator::NotEqual => "!=",
            BinaryOperator::Less => "<",
            BinaryOperator::LessEqual => "<=",
            BinaryOperator::Greater => ">",
            BinaryOperator::GreaterEqual => ">=",
            BinaryOperator::And => "&&",
            BinaryOperator::Or => "||",
        }
    }
}

/// `fastpath demo { .. }`
#[derive(Clone, Debug)]
pub struct FastPath {
    /// Its name.
    pub name: Name,
    /// The C function that is the path, if it is written in C.
    pub function: Option<(Vec<u8>, Span)>,
    /// `bound`, `bypass`, `retries`, in order of text.
    pub settings: Vec<(FastPathSetting, u64, Span)>,
    /// Its processes, the trigger first.
    pub processes: Vec<FastPathProcess>,
    /// The whole item.
    pub span: Span,
}

/// A number of a fast path (reference, section 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum FastPathSetting {
    Bound,
    Bypass,
    Retries,
}

/// One process of a fast path.
#[derive(Clone, Debug)]
pub struct FastPathProcess {
    /// The process.
    pub process: Name,
    /// The replica, if the process is replicated.
    pub replica: Option<(u64, Span)>,
    /// The interesting statements and their aliases.
    pub statements: Vec<(StatementRef, Option<Name>)>,
    /// Where the path starts.
    pub start: Element,
    /// The words allowed in between.
    pub follows: Option<PathRegex>,
    /// Where the process's part ends.
    pub exit: Vec<Element>,
    /// The whole block.
    pub span: Span,
}

/// Names a statement of a process.
#[derive(Clone, Debug)]
pub struct StatementRef {
    /// How.
    pub kind: StatementRefKind,
    /// Where.
    pub span: Span,
}

/// The forms of a reference to a statement.
#[derive(Clone, Debug)]
pub enum StatementRefKind {
    /// `#1`
    Label(Label),
    /// `c`, `c/in`, `c/in@2`, or an alias.
    Channel(Name, Option<Direction>, Option<u64>),
}

/// A process, and its replica if written.
pub type Instance = (Name, Option<(u64, Span)>);

/// A statement element: a statement and what must hold at it.
#[derive(Clone, Debug)]
pub struct Element {
    /// The statement.
    pub statement: StatementRef,
    /// `? (e)`
    pub predicate: Option<Box<Expr>>,
    /// `<=> s`
    pub peer: Option<Box<StatementRef>>,
    /// `yield P[k]`
    pub yield_to: Option<Box<Instance>>,
    /// The whole element.
    pub span: Span,
}

/// A regular expression over statement elements.
#[derive(Clone, Debug)]
pub enum PathRegex {
    /// One element.
    Element(Box<Element>),
    /// One after the other; empty is the empty word.
    Sequence(Vec<PathRegex>),
    /// One of them.
    Choice(Vec<PathRegex>),
    /// At least `.1` times, at most `.2` (without: any number); `?` is 0 to 1.
    Repeat(Box<PathRegex>, u64, Option<u64>),
}

/// `model send { .. }`
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name.
    pub name: Name,
    /// Its clauses in order of text.
    pub clauses: Vec<ModelClause>,
    /// The whole item.
    pub span: Span,
}

/// One clause of a model.
#[derive(Clone, Debug)]
pub enum ModelClause {
    /// `process P;`
    Process(Name),
    /// `slice P, Q;`
    Slice(Vec<Name>),
    /// `env host[2] { .. }`
    Environment(Process),
    /// `ltl "..";`
    Property(Vec<u8>, Span),
    /// `bound c 3;`
    Bound(Name, u64),
    /// `abstract drop x;`, `hash`, `forget`.
    Abstract(Abstraction, ModelPath),
    /// `abstract range x a..b;`
    Range(ModelPath, Expr, Expr),
}

/// What an abstraction does to a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Abstraction {
    Drop,
    Hash,
    Forget,
}

/// `P.v`, `c.1` or a function.
#[derive(Clone, Debug)]
pub struct ModelPath {
    /// The first name.
    pub base: Name,
    /// Names and numbers after the dots.
    pub steps: Vec<(SmolStr, Span)>,
    /// The whole path.
    pub span: Span,
}
