//! The lossless tree: every byte of a source file is in it once, white space, comments and errors included.
//! Defines the kinds of tokens and nodes; the parser defines how they nest. A green tree is immutable and has no
//! offsets; a red node ([`SyntaxNode`]) adds offset and parent.

use rowan::GreenNode;

macro_rules! kinds {
    (
        trivia { $($trivia:ident,)* }
        texts { $($text:ident $text_name:literal,)* }
        punctuation { $($sign:ident $sign_text:literal,)* }
        keywords { $($keyword:ident $keyword_text:literal,)* }
        words { $($word:ident $word_text:literal,)* }
        nodes { $($node:ident,)* }
    ) => {
        /// What a token or node of the tree is.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[repr(u16)]
        #[allow(missing_docs)]
        pub enum SyntaxKind {
            $($trivia,)* $($text,)* $($sign,)* $($keyword,)* $($word,)* $($node,)*
        }

        impl SyntaxKind {
            const ALL: &'static [SyntaxKind] = &[
                $(SyntaxKind::$trivia,)* $(SyntaxKind::$text,)* $(SyntaxKind::$sign,)* $(SyntaxKind::$keyword,)*
                $(SyntaxKind::$word,)* $(SyntaxKind::$node,)*
            ];

            /// The reserved words, for editors and documents.
            pub const RESERVED_WORDS: &[&str] = &[$($keyword_text,)*];

            /// The reserved word with this text.
            pub(crate) fn from_keyword(text: &str) -> Option<SyntaxKind> {
                match text { $($keyword_text => Some(SyntaxKind::$keyword),)* _ => None }
            }

            /// White space or a comment.
            pub fn is_trivia(self) -> bool {
                matches!(self, $(SyntaxKind::$trivia)|*)
            }

            /// A reserved word.
            pub fn is_keyword(self) -> bool {
                matches!(self, $(SyntaxKind::$keyword)|*)
            }

            /// How a message speaks of a token of this kind, as in "expected `;`".
            pub fn describe(self) -> &'static str {
                match self {
                    $(SyntaxKind::$text => $text_name,)*
                    $(SyntaxKind::$sign => concat!("`", $sign_text, "`"),)*
                    $(SyntaxKind::$keyword => concat!("`", $keyword_text, "`"),)*
                    $(SyntaxKind::$word => concat!("`", $word_text, "`"),)*
                    $(SyntaxKind::$trivia => "white space",)*
                    $(SyntaxKind::$node => "a part of the program",)*
                }
            }
        }
    };
}

kinds! {
    trivia { Whitespace, LineComment, BlockComment, }
    texts {
        EndOfFile "the end of the file",
        ErrorToken "an unknown character",
        Ident "a name",
        Int "a number",
        Char "a character",
        String "a string",
    }
    punctuation {
        LeftParen "(", RightParen ")", LeftBrace "{", RightBrace "}", LeftBracket "[", RightBracket "]",
        Comma ",", Semicolon ";", Colon ":", Dot ".", DotDot "..", Hash "#", Dollar "$", At "@", Question "?",
        Slash "/", Star "*", Plus "+", Minus "-", Percent "%", Ampersand "&", Pipe "|", Caret "^", Tilde "~",
        Bang "!", Equal "=", Less "<", Greater ">", EqualEqual "==", BangEqual "!=", LessEqual "<=",
        GreaterEqual ">=", LessLess "<<", GreaterGreater ">>", AndAnd "&&", PipePipe "||", PlusEqual "+=",
        MinusEqual "-=", StarEqual "*=", SlashEqual "/=", PercentEqual "%=", AmpersandEqual "&=", PipeEqual "|=",
        CaretEqual "^=", LessLessEqual "<<=", GreaterGreaterEqual ">>=", TagArrow "|>", FatArrow "=>",
        ThinArrow "->", DoubleArrow "<=>",
    }
    keywords {
        AfterKeyword "after", AltKeyword "alt", ArrayKeyword "array", AssertKeyword "assert", BoolKeyword "bool",
        BreakKeyword "break", BytesKeyword "bytes", ChannelKeyword "channel", ConstKeyword "const",
        ConstantKeyword "constant", ContinueKeyword "continue", ElseKeyword "else", ExitKeyword "exit",
        ExternKeyword "extern", FalseKeyword "false", FnKeyword "fn", ForKeyword "for", IfKeyword "if",
        InKeyword "in", IntKeyword "int", I8Keyword "i8", I16Keyword "i16", I32Keyword "i32", I64Keyword "i64",
        MatchKeyword "match", OutKeyword "out", PidKeyword "pid", PriKeyword "pri", ProcessKeyword "process",
        RecordKeyword "record", ReturnKeyword "return", TrueKeyword "true", TypeKeyword "type", U8Keyword "u8",
        U16Keyword "u16", U32Keyword "u32", U64Keyword "u64", UnionKeyword "union", VarKeyword "var",
        WhenKeyword "when", WhileKeyword "while", YieldKeyword "yield", Underscore "_",
    }
    words {
        ImportWord "import", PoolWord "pool", MemoryWord "memory", AutoWord "auto", ManualWord "manual",
        ExternalWord "external", InterfaceWord "interface", SharedWord "shared", PolicyWord "policy",
        SenderWord "sender", ReceiverWord "receiver", QueueWord "queue", PureWord "pure", LayoutWord "layout",
        LittleWord "le", OfWord "of", IdleWord "idle", UnitWord "ms", UntilWord "until", FastPathWord "fastpath",
        ModelWord "model", BoundWord "bound", BypassWord "bypass", RetriesWord "retries",
        StatementWord "statement", StartWord "start", FollowsWord "follows", AsWord "as", SliceWord "slice",
        EnvironmentWord "env", PropertyWord "ltl", AbstractWord "abstract", DropWord "drop", HashWord "hash",
        ForgetWord "forget", RangeWord "range", ProcedureWord "proc", EnumWord "enum", PublicWord "pub",
        ParameterWord "param", PartWord "part",
    }
    nodes {
        // The file and its items.
        SourceFile, Error, Import, TypeItem, Const, Channel, ChannelAttribute, ChannelDriver, Interface,
        InterfaceEntry, Extern, ExternParameter, Fn, Parameter, Layout, LayoutField, Process, Pool, Memory,
        Procedure, ProcedureParameter, Template, Instance, ConditionalItems, ItemBlock, ImportArgument, ModifiedItem,
        PartOf,
        // Types.
        IntType, BoolType, BytesType, PidType, NamedType, ArrayType, RecordType, UnionType, TypeField, EnumType,
        EnumCase, ValueType,
        // Blocks and statements.
        Block, Label, Var, Declarator, IfStmt, WhileStmt, ForStmt, MatchStmt, MatchArm, BreakStmt, ContinueStmt,
        YieldStmt, ReturnStmt, ExitStmt, AssertStmt, AssertItem, PlainStmt, AltStmt, Branch, Guard, InOperation, OutOperation,
        AfterOperation, UntilOperation, CallStmt, AssignStmt, Place, FieldStep, IndexStep,
        // Patterns.
        AnyPattern, DeclarePattern, EqualPattern, OwnIdPattern, LiteralPattern, TagPattern, PlacePattern,
        RecordPattern, ArrayPattern, PatternField, ConditionalPattern, RangePattern, Alternatives, ParenPattern,
        // Expressions.
        Literal, RecordExpr, RecordField, ArrayExpr, RepeatExpr, NameExpr, CallExpr, ConvertExpr, UnaryExpr,
        BinaryExpr, ConditionalExpr, FieldExpr, IndexExpr, TagExpr, ProcessIdExpr, ParenExpr, DurationExpr,
        // Fast paths.
        FastPath, FastPathExtern, FastPathSetting, FastPathProcess, Replica, StatementList, StatementItem,
        StartField, FollowsField, ExitField, StatementRef, Element, Predicate, Peer, YieldTo, Choice, Sequence, Group,
        Repetition,
        // Models.
        Model, ModelProcess, ModelSlice, ModelEnvironment, ModelProperty, ModelBound, ModelAbstract, ModelPath,
    }
}

impl From<SyntaxKind> for rowan::SyntaxKind {
    fn from(kind: SyntaxKind) -> rowan::SyntaxKind {
        rowan::SyntaxKind(kind as u16)
    }
}

impl SyntaxKind {
    /// The kind of a tree's raw number.
    ///
    /// # Panics
    /// For a number that is not the kind of any node of an ESP tree.
    pub(crate) fn from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        SyntaxKind::ALL[usize::from(raw.0)]
    }
}

/// ESP, as the tree library wants to know it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Esp {}

impl rowan::Language for Esp {
    type Kind = SyntaxKind;

    fn kind_from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        SyntaxKind::from_raw(raw)
    }

    fn kind_to_raw(kind: SyntaxKind) -> rowan::SyntaxKind {
        kind.into()
    }
}

/// A node of the lossless tree.
pub type SyntaxNode = rowan::SyntaxNode<Esp>;
/// A token of the lossless tree.
pub type SyntaxToken = rowan::SyntaxToken<Esp>;

/// The root of a green tree, which can be shared between threads.
pub(crate) type Green = GreenNode;
