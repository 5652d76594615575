//! The checked program: every name resolved, every expression typed, every conversion written out.
//! What semantic analysis produces and lowering to the flow IR consumes; still structured, with source locations.
//! A program is complete only if analysis reported no error.

pub use crate::ast::{
    AssignOperator, BinaryOperator, ByteOrder, CommunicateForm, Direction, IntType, MemoryMode, Mutability, Policy,
    Purity, TimeUnit, UnaryOperator,
};
use crate::span::Span;
pub use crate::types::{PoolId, ProcessId, TypeId, TypeTable};
use smol_str::SmolStr;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)] pub struct $name(pub u32);)*
    };
}

ids! {
    /// A constant that is stored once.
    ConstantId;
    /// A channel, by order of text.
    ChannelId;
    /// A pure function, by order of text.
    FnId;
    /// An extern function, by order of text.
    ExternId;
    /// A layout, by order of text.
    LayoutId;
    /// A variable of one process, function or environment.
    LocalId;
    /// A channel operation of one process, by order of text: each plain operation and each branch of an `alt`
    /// that is an `in` or `out` is one; `after` is none.
    SiteId;
    /// A label of one process, by order of text.
    LabelId;
}

/// A whole program: all files, all items.
#[derive(Clone, Debug)]
pub struct Program {
    /// Every type, and the pools.
    pub types: TypeTable,
    /// How reference counts become zero.
    pub memory: MemoryMode,
    /// Constants that are stored once, by id.
    pub constants: Vec<Constant>,
    /// Channels.
    pub channels: Vec<Channel>,
    /// C interfaces.
    pub interfaces: Vec<Interface>,
    /// Extern functions.
    pub externs: Vec<Extern>,
    /// Pure functions. A callee can come after its caller; there is no recursion.
    pub functions: Vec<Function>,
    /// Layouts.
    pub layouts: Vec<Layout>,
    /// Processes in order of text, an import counting at its first occurrence.
    pub processes: Vec<Process>,
    /// Fast paths.
    pub fast_paths: Vec<FastPath>,
    /// Models for the checker.
    pub models: Vec<Model>,
    /// The use of times and durations.
    pub clock: ClockUse,
    /// The messages of assertions, by their statement.
    pub assert_messages: Vec<(Span, SmolStr)>,
}

/// What a program does with times and durations, as far as it decides how a model abstracts from them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockUse {
    /// Whether the program has a time or a duration.
    pub is_used: bool,
    /// Whether each duration follows from the text.
    pub durations: Durations,
    /// What the quotient of two unknown durations can influence.
    pub quotient: Influence,
}

/// Whether the durations of a program are known without its times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durations {
    /// They are computed of constants and integers.
    Exact,
    /// Some are differences of times, or come from the environment.
    Unknown,
}

/// A constant that is stored once and read in place: one that has an array in it.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its name.
    pub name: SmolStr,
    /// Its value, made of literals only.
    pub value: Expr,
}

/// A channel.
#[derive(Clone, Debug)]
pub struct Channel {
    /// Its name.
    pub name: SmolStr,
    /// Types of the values of one message.
    pub payload: Vec<TypeId>,
    /// The name of each of them, if it has one: that of a member in C.
    pub value_names: Vec<Option<SmolStr>>,
    /// For each of them, whether it can decide what its receivers do.
    pub influences: Vec<Influence>,
    /// The processes at its ends.
    pub boundary: Boundary,
    /// `shared`: several instances may take any message.
    pub sharing: Sharing,
    /// Which process continues after a rendezvous.
    pub policy: Policy,
    /// The default driver's text.
    pub driver: Option<String>,
    /// The name's location.
    pub span: Span,
}

/// Whether the environment is at one end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Boundary {
    /// Processes at both ends.
    Internal,
    /// `external in`: the program writes, the environment reads.
    ToEnvironment,
    /// `external out`: the environment writes, the program reads.
    FromEnvironment,
}

/// Whether a value determines its reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Sharing {
    Ports,
    Shared,
}

/// A C interface of an external channel.
#[derive(Clone, Debug)]
pub struct Interface {
    /// C prefix.
    pub name: SmolStr,
    /// The channel.
    pub channel: ChannelId,
    /// One C function each.
    pub entries: Vec<InterfaceEntry>,
    /// The name's location.
    pub span: Span,
}

/// One entry of a C interface.
#[derive(Clone, Debug)]
pub struct InterfaceEntry {
    /// C suffix.
    pub name: SmolStr,
    /// The entry's `$` names, in order of text: the C parameters.
    pub locals: Vec<Local>,
    /// One pattern per value of the channel.
    pub patterns: Vec<Pattern>,
}

/// An extern function.
#[derive(Clone, Debug)]
pub struct Extern {
    /// Its C name.
    pub name: SmolStr,
    /// Whether it has effects.
    pub purity: Purity,
    /// Parameter types; a mutable one may be written by the function.
    pub parameters: Vec<(Option<SmolStr>, TypeId, Mutability)>,
    /// Result; none for a procedure.
    pub result: Option<TypeId>,
    /// Whether its result can reach a condition, a pattern, an index or arithmetic that can fault.
    pub influence: Influence,
    /// Place of the declaration.
    pub span: Span,
}

/// What a value of the environment can influence (see `check::taint`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Influence {
    /// Only the values of messages and arguments; control is the same for all values.
    DataOnly,
    /// A condition, a pattern, an index or arithmetic that can fault.
    Control,
}

/// A pure function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: SmolStr,
    /// Its variables; the parameters come first.
    pub locals: Vec<Local>,
    /// How many of the locals are parameters.
    pub parameters: u32,
    /// Its result.
    pub result: TypeId,
    /// Its body.
    pub body: Vec<Stmt>,
    /// The name's location.
    pub span: Span,
}

/// A packet layout.
#[derive(Clone, Debug)]
pub struct Layout {
    /// Its name.
    pub name: SmolStr,
    /// Its fields, in order.
    pub fields: Vec<LayoutField>,
    /// Its whole size in bytes.
    pub bytes: u32,
}

/// One field of a layout.
#[derive(Clone, Debug)]
pub struct LayoutField {
    /// Its name.
    pub name: SmolStr,
    /// Where it begins, in bits from the layout's first bit, most significant first.
    pub offset_bits: u32,
    /// Its width in bits, 1 to 64.
    pub width_bits: u32,
    /// Little-endian fields are 16, 32 or 64 bits wide on a byte boundary.
    pub order: ByteOrder,
}

/// A process.
#[derive(Clone, Debug)]
pub struct Process {
    /// Its name.
    pub name: SmolStr,
    /// How many instances run, at least 1.
    pub replicas: u32,
    /// Whether replicas were written: `P[1]` differs from `P` in how it is named.
    pub replicated: bool,
    /// Its variables.
    pub locals: Vec<Local>,
    /// Its labels: text without `#`, and location.
    pub labels: Vec<(SmolStr, Span)>,
    /// Its channel operations.
    pub sites: Vec<Site>,
    /// Its body.
    pub body: Vec<Stmt>,
    /// The name's location.
    pub span: Span,
}

/// A channel operation in a process's text.
#[derive(Clone, Debug)]
pub struct Site {
    /// The channel.
    pub channel: ChannelId,
    /// `in` or `out`.
    pub direction: Direction,
    /// The operation's location.
    pub span: Span,
}

/// A variable.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: SmolStr,
    /// Its type.
    pub ty: TypeId,
    /// Whether it can be updated in place.
    pub mutability: Mutability,
    /// Where it is declared.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Its location.
    pub span: Span,
}

/// The forms of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// A label: a zero-width control point.
    Label(LabelId),
    /// A variable enters its scope without a value (at each entry of a loop anew).
    Declare(LocalId),
    /// `{ .. }`
    Block(Vec<Stmt>),
    /// The expansion of a call of a procedure; control goes on behind it.
    Inline(Vec<Stmt>),
    /// Leaves the nearest expansion: `return` of a procedure.
    Leave,
    /// The condition is a `bool`.
    If(Expr, Vec<Stmt>, Vec<Stmt>),
    /// Without condition: forever.
    While(Option<Expr>, Vec<Stmt>),
    /// Both ends have the variable's type; the end is excluded.
    For(LocalId, Expr, Expr, Vec<Stmt>),
    /// Arms in order; exhaustive.
    Match(Expr, Vec<(Pattern, Vec<Stmt>)>),
    /// Leaves a loop; the number is that of the loops between it and the statement, 0 for the nearest.
    Break(u32),
    /// Goes on with a loop, given as for `Break`.
    Continue(u32),
    /// Ends the quantum.
    Yield,
    /// Of a pure function; has its result type.
    Return(Expr),
    /// Ends the program; any integer type.
    Exit(Expr),
    /// Faults when false.
    Assert(Expr),
    /// `in`, `out` or `alt`.
    Communicate(Communicate),
    /// A call for its effects.
    Call(ExternId, Vec<Argument>),
    /// A call of a pure function whose result is not used; it can still fault.
    CallFn(FnId, Vec<Expr>),
    /// `link(x);` of a boxed variable.
    Link(LocalId),
    /// `unlink(x);` of a boxed variable.
    Unlink(LocalId),
    /// `place = e;` The value has the place's type. Includes the first value of a `var`.
    Assign(Place, Expr),
    /// `place op= e;` The place's indices are evaluated once, after the value. The value is computed in `ty`, the
    /// common type of place and operand, and converted to the place's type, keeping the low bits. For a place of a
    /// clock's type this is its type, and the operation is that of [`ExprKind::Saturating`].
    Update {
        /// What is updated.
        place: Place,
        /// Arithmetic operator, or `Add` on bytes: append.
        operator: BinaryOperator,
        /// The operand, of type `ty` (any integer for a shift).
        value: Expr,
        /// The type the operation is computed in.
        ty: TypeId,
    },
}

/// An argument of an extern function.
#[derive(Clone, Debug)]
pub enum Argument {
    /// By value.
    Value(Expr),
    /// A mutable place the function may write.
    Mutable(Place),
}

/// A channel operation or `alt`.
#[derive(Clone, Debug)]
pub struct Communicate {
    /// Plain, `alt` or `pri alt`.
    pub form: CommunicateForm,
    /// Whether the instance may rest here forever (reference, section 5, both the word and the inferred ones).
    pub idle: bool,
    /// The branches, one for a plain operation.
    pub branches: Vec<Branch>,
    /// `else`.
    pub otherwise: Option<Vec<Stmt>>,
}

/// A branch.
#[derive(Clone, Debug)]
pub struct Branch {
    /// A `bool`.
    pub guard: Option<Expr>,
    /// What it waits for.
    pub operation: Operation,
    /// What follows.
    pub body: Vec<Stmt>,
    /// The operation's location.
    pub span: Span,
}

/// What a branch waits for.
#[derive(Clone, Debug)]
pub enum Operation {
    /// One pattern per value of the channel. `$` names without an attached block live on after the statement.
    In(SiteId, ChannelId, Vec<Pattern>),
    /// One value per value of the channel, each of the channel's type.
    Out(SiteId, ChannelId, Vec<Expr>),
    /// The expression is of any integer type, or a `duration` in nanoseconds.
    After(Expr, TimeUnit),
    /// The `time` from which on the branch is possible; evaluated on arrival.
    Until(Expr),
}

/// A pattern.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// What it accepts.
    pub kind: PatternKind,
    /// `if e`, a `bool`; may read what this pattern declares.
    pub condition: Option<Box<Expr>>,
    /// The type of the part it is matched against.
    pub ty: TypeId,
    /// Its location.
    pub span: Span,
}

/// The forms of patterns. *Static* ones are `Any`, constants, `Among`, `OwnId`, and `Tag`, `Record`, `Array`, `Either`
/// of static ones;
/// everything else counts as `Any` for ports (reference, section 5).
#[derive(Clone, Debug)]
pub enum PatternKind {
    /// Anything.
    Any,
    /// Anything; declares a variable of the part's type.
    Declare(LocalId),
    /// Anything; assigned to the place, converted by [`Pattern::ty`] to the place's type.
    Assign(Place),
    /// Equal to an integer or `bool` (0, 1), or to a `pid` given as instance number (`@P[k]`).
    Constant(i128),
    /// Equal to these bytes.
    Bytes(Vec<u8>),
    /// Equal to the own id.
    OwnId,
    /// Equal to a value computed when the operation is reached; of the part's type.
    Equal(Expr),
    /// This tag; the payload pattern is absent for a tag without payload.
    Tag(u32, Option<Box<Pattern>>),
    /// All fields, in order of declaration.
    Record(Vec<Pattern>),
    /// All elements.
    Array(Vec<Pattern>),
    /// An integer, `bool` or `pid` in one of these ranges, the ends excluded. The ranges ascend and do not touch.
    Among(Vec<(i128, i128)>),
    /// One of several static patterns, which bind nothing; not all of them are of integers.
    Either(Vec<Pattern>),
}

/// A variable and a path into it.
#[derive(Clone, Debug)]
pub struct Place {
    /// The variable.
    pub base: LocalId,
    /// The path, outermost step first.
    pub path: Vec<PlaceStep>,
    /// The type of what the path leads to.
    pub ty: TypeId,
    /// Its location in the text.
    pub span: Span,
}

/// One step of a path. Index expressions are of any integer type.
#[derive(Clone, Debug)]
pub enum PlaceStep {
    /// From a boxed object to its content; only the first step, on a mutable variable, when assigned.
    Content,
    /// A record's field.
    Field(u32),
    /// An array's element or a byte of `bytes`.
    Index(Box<Expr>),
    /// The length of `bytes`, an `int`. Last step.
    Length,
    /// Part of `bytes`. Last step.
    Slice(Option<Box<Expr>>, Option<Box<Expr>>),
    /// `.be16[i]` and its like: an unsigned number of `bits` bits at byte `offset`. Last step.
    Number {
        /// Byte order.
        order: ByteOrder,
        /// 16, 32 or 64.
        bits: u32,
        /// Byte offset.
        offset: Box<Expr>,
    },
    /// `.ipv4[i].ttl`. Last step.
    LayoutField {
        /// The layout.
        layout: LayoutId,
        /// Its field.
        field: u32,
        /// Byte offset of the layout.
        offset: Box<Expr>,
    },
}

/// A typed expression.
#[derive(Clone, Debug)]
pub struct Expr {
    /// What it computes.
    pub kind: ExprKind,
    /// Its type.
    pub ty: TypeId,
    /// Its location.
    pub span: Span,
}

/// The forms of expressions. Operands of arithmetic have the expression's type, those of comparisons have one
/// common type; conversions are explicit.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// An integer or `bool` (0, 1) constant, or a `pid` constant as instance number.
    Constant(i128),
    /// A byte string of type `bytes[<=its length or more]`.
    Bytes(Vec<u8>),
    /// A constant of the program, of a flat type.
    Stored(ConstantId),
    /// A variable's value.
    Local(LocalId),
    /// Field number and value, in order of evaluation; all fields.
    Record(Vec<(u32, Expr)>),
    /// All elements.
    Array(Vec<Expr>),
    /// As many copies as the type's length.
    Repeat(Box<Expr>),
    /// Tag number and payload.
    Union(u32, Option<Box<Expr>>),
    /// The content of a boxed object, not copied.
    Content(Box<Expr>),
    /// A new object with this content (allocates); also a literal of a boxed type.
    Box(Box<Expr>),
    /// Record field.
    Field(Box<Expr>, u32),
    /// Array element or byte.
    Index(Box<Expr>, Box<Expr>),
    /// Length of `bytes`, an `int`.
    Length(Box<Expr>),
    /// Part of `bytes`, copied.
    Slice(Box<Expr>, Option<Box<Expr>>, Option<Box<Expr>>),
    /// `p + q` on `bytes`.
    Concatenate(Box<Expr>, Box<Expr>),
    /// `bytes` into a place with another bound: faults `range` if too long.
    Fit(Box<Expr>),
    /// `.be16[i]` and its like.
    Number {
        /// The `bytes`.
        base: Box<Expr>,
        /// Byte order.
        order: ByteOrder,
        /// 16, 32 or 64.
        bits: u32,
        /// Byte offset.
        offset: Box<Expr>,
    },
    /// `.ipv4[i].ttl`
    LayoutField {
        /// The `bytes`.
        base: Box<Expr>,
        /// The layout.
        layout: LayoutId,
        /// Its field.
        field: u32,
        /// Byte offset of the layout.
        offset: Box<Expr>,
    },
    /// Integer to integer keeping the low bits, or `bool` to integer; from the operand's type to `ty`.
    Convert(Box<Expr>),
    /// A `pid` to one that lists more processes: the same value.
    WidenPid(Box<Expr>),
    /// Integer (not 0) to `bool`.
    Test(Box<Expr>),
    /// `!` on `bool`, `~` and `-` on integers.
    Unary(UnaryOperator, Box<Expr>),
    /// Arithmetic, comparison, `&&`, `||`. A shift's count has any integer type. `==` works on all types.
    Binary(BinaryOperator, Box<Expr>, Box<Expr>),
    /// Arithmetic on the clock's types: `+ - * /` of a `time`, a `duration` or an `i64` on the left, and a `time`, a
    /// `duration` or an `i64` on the right. A result outside 64 bits is the nearest number inside.
    Saturating(BinaryOperator, Box<Expr>, Box<Expr>),
    /// `now`: the present time.
    Now,
    /// `c ? a : b`
    Conditional(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A call of a pure function.
    CallFn(FnId, Vec<Expr>),
    /// A call of an extern function with a result.
    CallExtern(ExternId, Vec<Argument>),
    /// `freeze(x)`
    Freeze(Box<Expr>),
    /// `thaw(v)`
    Thaw(Box<Expr>),
    /// `@`
    OwnId,
    /// `@P[e]` with an index that is not constant: faults `range`.
    InstanceOf(ProcessId, Box<Expr>),
    /// `int(pid)`: replica number.
    ReplicaNumber(Box<Expr>),
    /// `free(T)`, an `int`.
    FreeObjects(PoolId),
}

/// A fast path (reference, section 10).
#[derive(Clone, Debug)]
pub struct FastPath {
    /// Its name.
    pub name: SmolStr,
    /// The C function that is the path, if it is written in C.
    pub function: Option<SmolStr>,
    /// The maximum number of iterations per run.
    pub bound: u64,
    /// The interval, in entry tests, at which a path with a choice is bypassed.
    pub bypass_interval: u64,
    /// The maximum number of attempts to bring every process to its start statement.
    pub retry_limit: u64,
    /// Its processes, the trigger first.
    pub processes: Vec<FastPathProcess>,
    /// The name's location.
    pub span: Span,
}

/// One process's part of a fast path.
#[derive(Clone, Debug)]
pub struct FastPathProcess {
    /// The process.
    pub process: ProcessId,
    /// The replica; 0 if not replicated.
    pub replica: u32,
    /// The interesting statements.
    pub statements: Vec<ControlPoint>,
    /// Where it starts.
    pub start: Element,
    /// Words allowed in between; absent: the empty word.
    pub follows: Option<PathRegex>,
    /// Where it ends.
    pub exit: Vec<Element>,
}

/// A statement that a fast path or property can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ControlPoint {
    Site(SiteId),
    Label(LabelId),
}

/// A statement element.
#[derive(Clone, Debug)]
pub struct Element {
    /// The statement.
    pub point: ControlPoint,
    /// A `bool` over the process's variables.
    pub predicate: Option<Expr>,
    /// The partner: index into [`FastPath::processes`] and its operation.
    pub peer: Option<(u32, SiteId)>,
    /// The process that runs next: index into [`FastPath::processes`].
    pub yield_to: Option<u32>,
    /// Its location.
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
    /// At least, at most (none: any number).
    Repeat(Box<PathRegex>, u64, Option<u64>),
}

/// A model for the checker (reference, section 11).
#[derive(Clone, Debug)]
pub struct Model {
    /// Its name.
    pub name: SmolStr,
    /// What is explored.
    pub scope: ModelScope,
    /// Environment processes, which may use external channels from the environment's side.
    pub environment: Vec<Process>,
    /// LTL properties, in Spin's syntax.
    pub properties: Vec<String>,
    /// Their locations.
    pub property_spans: Vec<Span>,
    /// The maximum number of messages on a channel.
    pub bounds: Vec<(ChannelId, u64)>,
    /// What is abstracted away, and how.
    pub abstractions: Vec<ModelAbstraction>,
}

impl Model {
    /// The variables that properties name as `P:v` or `P[n]:v`: process and variable.
    pub fn observed(&self) -> Vec<(SmolStr, SmolStr)> {
        self.properties.iter().flat_map(|property| variables_of(property)).collect()
    }
}

fn variables_of(property: &str) -> Vec<(SmolStr, SmolStr)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for (at, _) in property.match_indices(':') {
        let before = property[..at].trim_end();
        let before = match before.strip_suffix(']').and_then(|replica| replica.rfind('[')) {
            Some(open) => before[..open].trim_end(),
            None => before,
        };
        let process = &before[before.rfind(|c| !is_word(c)).map_or(0, |end| end + 1)..];
        let after = property[at + 1..].trim_start();
        let variable = &after[..after.find(|c| !is_word(c)).unwrap_or(after.len())];
        if !process.is_empty() && !variable.is_empty() {
            found.push((process.into(), variable.into()));
        }
    }
    found
}

/// A part that a model abstracts.
#[derive(Clone, Debug)]
pub struct ModelAbstraction {
    /// How.
    pub kind: AbstractionKind,
    /// What.
    pub path: ModelPath,
    /// Whether its value can decide what the program does.
    pub influence: Influence,
    /// Its location.
    pub span: Span,
}

/// What a model explores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelScope {
    /// All processes.
    All,
    /// Memory of one process.
    Process(ProcessId),
    /// A part with its environment.
    Slice(Vec<ProcessId>),
}

/// How a part is abstracted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum AbstractionKind {
    Drop,
    Hash,
    Forget,
    /// From the first, up to but without the second.
    Range(i128, i128),
}

/// What is abstracted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ModelPath {
    Variable(ProcessId, LocalId),
    Payload(ChannelId, u32),
    Extern(ExternId),
}
