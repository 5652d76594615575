//! The tree of a tick: expressions and statements of generated code. Host texts are ranges of tokens, which are
//! copied
//! to the translation.

use crate::scope::Shape;

/// Tokens from one number to in front of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub(crate) from: usize,
    pub(crate) to: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Expression {
    pub(crate) kind: ExpressionKind,
    pub(crate) range: Range,
    pub(crate) shape: Shape,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prefix {
    Plus,
    Negate,
    Complement,
    Not,
    Dereference,
    AddressOf,
}

/// Whether `++` or `--` yields the value before or after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fixity {
    Prefix,
    Postfix,
}

/// What a spliced value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spliced {
    Cspec,
    Vspec,
}

#[derive(Clone, Debug)]
pub(crate) enum ExpressionKind {
    /// A literal, enumerator, `sizeof(type)` or the like: the C compiler knows its value.
    Constant,
    /// The number of an element of an array.
    Ordinal(usize),
    Text,
    /// A compound literal: its variable, and the parts of its value.
    Literal {
        text: String,
        local: usize,
        initial: Box<Initial>,
    },
    /// A variable or function of static code.
    Object,
    Local(usize),
    /// `$`: the value of the operand when the tick is evaluated.
    Dollar(Box<Expression>),
    Splice(Spliced, Box<Expression>),
    Prefix(Prefix, Box<Expression>),
    Step {
        operator: &'static str,
        fixity: Fixity,
        operand: Box<Expression>,
    },
    Binary(&'static str, Box<Expression>, Box<Expression>),
    Assign {
        operator: &'static str,
        target: Box<Expression>,
        value: Box<Expression>,
    },
    Conditional(Box<Expression>, Box<Expression>, Box<Expression>),
    Cast(Range, Box<Expression>),
    Sizeof(Box<Expression>),
    Member {
        base: Box<Expression>,
        is_arrow: bool,
        name: usize,
        is_bit_field: bool,
    },
    Index(Box<Expression>, Box<Expression>),
    Call(Box<Expression>, Vec<Expression>),
    SelfCall(Range, Vec<Expression>),
    Apply(Box<Expression>, Box<Expression>),
    Jump(Box<Expression>),
    /// A construct that was reported.
    Error,
}

#[derive(Clone, Debug)]
pub(crate) struct Statement {
    pub(crate) kind: StatementKind,
    /// Its first token.
    pub(crate) from: usize,
}

/// The initial value of a variable.
#[derive(Clone, Debug)]
pub(crate) enum Initial {
    Value(Expression),
    /// The parts of a list in braces, as places of the variable and their values. The rest is zero.
    Parts(Vec<(Expression, Expression)>),
}

impl Initial {
    /// Visits all values in it.
    fn visit(&self, visitor: &mut dyn FnMut(&Expression)) {
        match self {
            Initial::Value(value) => value.visit(visitor),
            Initial::Parts(parts) => parts.iter().for_each(|(_, value)| value.visit(visitor)),
        }
    }
}

/// A variable that a declaration of a tick makes.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) local: usize,
    pub(crate) initial: Option<Initial>,
}

#[derive(Clone, Debug)]
pub(crate) enum StatementKind {
    Empty,
    Block(Vec<Statement>),
    /// The text without initial values.
    Declaration {
        text: String,
        variables: Vec<Variable>,
    },
    Expression(Expression),
    If(Expression, Box<Statement>, Option<Box<Statement>>),
    While(Expression, Box<Statement>),
    Do(Box<Statement>, Expression),
    For(Box<For>),
    Switch(Expression, Box<Statement>),
    Case(Expression),
    Default,
    Break,
    Continue,
    Return(Option<Expression>),
}

#[derive(Clone, Debug)]
pub(crate) struct For {
    pub(crate) first: Option<Statement>,
    pub(crate) condition: Option<Expression>,
    pub(crate) step: Option<Expression>,
    pub(crate) body: Statement,
}

impl Expression {
    /// The operands.
    pub(crate) fn operands(&self) -> Vec<&Expression> {
        match &self.kind {
            ExpressionKind::Constant
            | ExpressionKind::Ordinal(_)
            | ExpressionKind::Literal { .. }
            | ExpressionKind::Text
            | ExpressionKind::Object
            | ExpressionKind::Local(_)
            | ExpressionKind::Error => Vec::new(),
            ExpressionKind::Dollar(operand)
            | ExpressionKind::Splice(_, operand)
            | ExpressionKind::Prefix(_, operand)
            | ExpressionKind::Step { operand, .. }
            | ExpressionKind::Cast(_, operand)
            | ExpressionKind::Sizeof(operand)
            | ExpressionKind::Member { base: operand, .. }
            | ExpressionKind::Jump(operand) => vec![operand],
            ExpressionKind::Binary(_, left, right)
            | ExpressionKind::Assign { target: left, value: right, .. }
            | ExpressionKind::Index(left, right)
            | ExpressionKind::Apply(left, right) => vec![left, right],
            ExpressionKind::Conditional(condition, left, right) => vec![condition, left, right],
            ExpressionKind::Call(callee, arguments) => std::iter::once(&**callee).chain(arguments).collect(),
            ExpressionKind::SelfCall(_, arguments) => arguments.iter().collect(),
        }
    }

    /// Visits this expression and all in it.
    pub(crate) fn visit(&self, visitor: &mut dyn FnMut(&Expression)) {
        visitor(self);
        if let ExpressionKind::Literal { initial, .. } = &self.kind {
            initial.visit(visitor);
        }
        self.operands().into_iter().for_each(|operand| operand.visit(visitor));
    }

    /// The variables of generated code in it.
    pub(crate) fn locals(&self) -> Vec<usize> {
        let mut locals = Vec::new();
        self.visit(&mut |own| {
            if let ExpressionKind::Local(local) = own.kind {
                locals.push(local);
            }
        });
        locals
    }
}

impl Statement {
    /// Visits all expressions of this statement and of those in it.
    pub(crate) fn visit(&self, visitor: &mut dyn FnMut(&Expression)) {
        match &self.kind {
            StatementKind::Empty
            | StatementKind::Default
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Return(None) => {}
            StatementKind::Block(statements) => statements.iter().for_each(|own| own.visit(visitor)),
            StatementKind::Declaration { variables, .. } => {
                variables.iter().filter_map(|own| own.initial.as_ref()).for_each(|initial| initial.visit(visitor));
            }
            StatementKind::Expression(own) | StatementKind::Case(own) | StatementKind::Return(Some(own)) => {
                own.visit(visitor);
            }
            StatementKind::If(condition, then, otherwise) => {
                condition.visit(visitor);
                then.visit(visitor);
                otherwise.iter().for_each(|own| own.visit(visitor));
            }
            StatementKind::While(condition, body)
            | StatementKind::Do(body, condition)
            | StatementKind::Switch(condition, body) => {
                condition.visit(visitor);
                body.visit(visitor);
            }
            StatementKind::For(own) => {
                own.first.iter().for_each(|first| first.visit(visitor));
                own.condition.iter().chain(&own.step).for_each(|part| part.visit(visitor));
                own.body.visit(visitor);
            }
        }
    }

    /// The jumps in it that end or continue a loop around it.
    pub(crate) fn jumps(&self) -> LoopJumps {
        let all = |statements: &mut dyn Iterator<Item = &Statement>| {
            statements.fold(LoopJumps::default(), |jumps, own| jumps.or(own.jumps()))
        };
        match &self.kind {
            StatementKind::Break => LoopJumps { breaks: true, continues: false },
            StatementKind::Continue => LoopJumps { breaks: false, continues: true },
            StatementKind::Block(statements) => all(&mut statements.iter()),
            StatementKind::If(_, then, otherwise) => {
                all(&mut std::iter::once(&**then).chain(otherwise.iter().map(|own| &**own)))
            }
            StatementKind::Switch(_, body) => LoopJumps { breaks: false, ..body.jumps() },
            StatementKind::Empty
            | StatementKind::Declaration { .. }
            | StatementKind::Expression(_)
            | StatementKind::While(..)
            | StatementKind::Do(..)
            | StatementKind::For(_)
            | StatementKind::Case(_)
            | StatementKind::Default
            | StatementKind::Return(_) => LoopJumps::default(),
        }
    }
}

/// Which jumps out of a loop's body there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct LoopJumps {
    pub(crate) breaks: bool,
    pub(crate) continues: bool,
}

impl LoopJumps {
    fn or(self, other: LoopJumps) -> LoopJumps {
        LoopJumps { breaks: self.breaks || other.breaks, continues: self.continues || other.continues }
    }
}
