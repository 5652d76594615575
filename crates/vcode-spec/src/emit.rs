//! The emitter of an instruction, independent of the language in which it is printed: a decision tree over operands and
//! features, whose leaves store machine words. `print.rs` prints the tree in Rust and C.

mod print;

pub use print::Print;

use crate::SpecError;
use crate::expr::{BinaryOp, Expr};
use crate::model::*;
use crate::portable::Form;

/// The output language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust, in the crate `quaject-vcode`.
    Rust,
    /// C11 and C++17.
    C,
}

/// A test at emission time.
#[derive(Debug, Clone)]
enum Cond {
    Test(Expr),
    Fits { value: Expr, signed: bool, bits: u32, scale: u32 },
}

/// Part of a decision tree.
#[derive(Debug, Clone)]
enum Node {
    Choice {
        cases: Vec<(Vec<Cond>, Vec<Node>)>,
        otherwise: Vec<Node>,
    },
    Emit {
        insn: usize,
        args: Vec<Arg>,
    },
    SetLong {
        register: u32,
        value: Expr,
    },
    /// Call the portable row of the instruction.
    Portable,
    Fail,
    /// Record the error that the processor lacks the instruction.
    Lacks,
}

/// An emitter: its tree and the most bytes it can store.
#[derive(Debug, Clone)]
pub struct Body {
    nodes: Vec<Node>,
    /// Whether it falls back to the portable row on processors that lack a feature.
    pub falls_back: bool,
    /// The maximum number of bytes that one call stores.
    pub max_bytes: u32,
    /// Whether it refers to a label.
    pub uses_label: bool,
}

/// Builds the emitter of a form of a row.
///
/// # Errors
/// When a constant of the row does not fit its field.
pub fn body(machine: &Machine, row: &Row, form: Form) -> Result<Body, SpecError> {
    let build = Build { machine };
    let result = match form {
        Form::Register => build.alternatives(&row.register, Fixed::default(), build.fallback(row, form)),
        Form::Immediate | Form::Local => {
            let s = (form == Form::Local).then_some(machine.special.stack);
            let featured = row.immediate.iter().any(Alternative::requires_features);
            let fallback = match row.family {
                _ if featured => Ok(build.fallback(row, form)),
                Family::Binary | Family::Checked | Family::Load | Family::Store | Family::Branch
                    if !row.register.is_empty() =>
                {
                    let y = machine.special.y;
                    build.alternatives(&row.register, Fixed { s, t: Some(y) }, build.immediate_fallback(row, form)).map(
                        |mut nodes| {
                            nodes.insert(0, Node::SetLong { register: y, value: Expr::Name("i".into()) });
                            nodes
                        },
                    )
                }
                Family::Binary
                | Family::Load
                | Family::Store
                | Family::Branch
                | Family::Shift
                | Family::Unary
                | Family::Set
                | Family::Convert
                | Family::Return
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
                | Family::Frame => Ok(build.fallback(row, form)),
            };
            fallback.and_then(|fallback| build.alternatives(&row.immediate, Fixed { s, t: None }, fallback))
        }
    };
    let nodes = result.map_err(|message| SpecError { file: machine.file.clone(), line: row.line, message })?;
    let uses_label = any_label(&nodes);
    let max_bytes = build.max_bytes(&nodes);
    let falls_back = falls_back(&nodes);
    Ok(Body { nodes, falls_back, max_bytes, uses_label })
}

fn falls_back(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Choice { cases, otherwise } => cases.iter().any(|(_, nodes)| falls_back(nodes)) || falls_back(otherwise),
        Node::Portable => true,
        Node::Emit { .. } | Node::SetLong { .. } | Node::Fail | Node::Lacks => false,
    })
}

fn any_label(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Choice { cases, otherwise } => cases.iter().any(|(_, nodes)| any_label(nodes)) || any_label(otherwise),
        Node::Emit { args, .. } => args.iter().any(|arg| matches!(arg, Arg::Label)),
        Node::SetLong { .. } | Node::Portable | Node::Fail | Node::Lacks => false,
    })
}

/// Registers that replace operands of a row.
#[derive(Debug, Clone, Copy, Default)]
struct Fixed {
    s: Option<u32>,
    t: Option<u32>,
}

struct Build<'a> {
    machine: &'a Machine,
}

impl Build<'_> {
    /// The fallback when no register alternative applies to an immediate or to a variable on the stack.
    fn immediate_fallback(&self, row: &Row, form: Form) -> Vec<Node> {
        let featured = row.register.iter().any(Alternative::requires_features);
        vec![match (featured, self.is_portable(row, form)) {
            (true, true) => Node::Portable,
            (true, false) => Node::Lacks,
            (false, _) => Node::Fail,
        }]
    }

    /// Whether there is a portable row for the same instruction.
    fn is_portable(&self, row: &Row, form: Form) -> bool {
        self.machine.portable_row(&row.op, row.ty).is_some_and(|row| !row.form(form).is_empty())
    }

    /// The fallback when no alternative applies.
    fn fallback(&self, row: &Row, form: Form) -> Vec<Node> {
        let alternatives = if form == Form::Register { &row.register } else { &row.immediate };
        let featured = alternatives.iter().any(Alternative::requires_features);
        vec![match (featured, self.is_portable(row, form)) {
            (true, true) => Node::Portable,
            (true, false) => Node::Lacks,
            (false, _) => Node::Fail,
        }]
    }

    /// `otherwise` is the subtree for the case that no alternative applies.
    fn alternatives(
        &self,
        alternatives: &[Alternative],
        fixed: Fixed,
        otherwise: Vec<Node>,
    ) -> Result<Vec<Node>, String> {
        let mut cases = Vec::new();
        for alternative in alternatives {
            let mut conds = Vec::new();
            if let Some(guard) = &alternative.guard {
                let names = self.machine.names(Class::Int);
                let mut guard = guard.clone();
                for (operand, number) in [("s", fixed.s), ("t", fixed.t)] {
                    if let Some(number) = number {
                        guard = guard.replace(operand, &Expr::Name(names[number as usize].clone()));
                    }
                }
                conds.push(Cond::Test(guard));
            }
            let mut nodes = Vec::new();
            for step in &alternative.steps {
                match step {
                    Step::SetLong { register, value } => {
                        nodes.push(Node::SetLong { register: *register, value: value.clone() });
                    }
                    Step::Emit { insn, args } => {
                        let args: Vec<Arg> = args.iter().map(|arg| substitute(arg, fixed)).collect();
                        self.add_immediate_tests(*insn, &args, &mut conds)?;
                        nodes.push(Node::Emit { insn: *insn, args });
                    }
                }
            }
            if conds.is_empty() {
                return Ok(choice(cases, nodes));
            }
            cases.push((conds, nodes));
        }
        Ok(choice(cases, otherwise))
    }

    /// Adds the tests that the immediates of an instruction fit.
    fn add_immediate_tests(&self, insn: usize, args: &[Arg], conds: &mut Vec<Cond>) -> Result<(), String> {
        let insn = &self.machine.insns[insn];
        for (operand, arg) in insn.operands.iter().zip(args) {
            let Arg::Value(value) = arg else { continue };
            let (signed, bits, scale) = match operand.kind {
                Kind::Signed { bits, scale } => (true, bits, scale),
                Kind::Unsigned { bits, scale } => (false, bits, scale),
                // Counts are checked by the emitter.
                Kind::Register(_) | Kind::Down { .. } | Kind::Relative { .. } => continue,
            };
            if bits == 64 {
                continue;
            }
            match value.constant() {
                Some(number) if !number_fits(number, signed, bits, scale) => {
                    return Err(format!("{number} does not fit `{}`", insn.name));
                }
                Some(_) => {}
                None if masked_to(value, signed, bits, scale) => {}
                None => conds.push(Cond::Fits { value: value.clone(), signed, bits, scale }),
            }
        }
        Ok(())
    }

    fn max_bytes(&self, nodes: &[Node]) -> u32 {
        nodes
            .iter()
            .map(|node| match node {
                Node::Choice { cases, otherwise } => {
                    let longest = cases.iter().map(|(_, nodes)| self.max_bytes(nodes)).max().unwrap_or(0);
                    longest.max(self.max_bytes(otherwise))
                }
                Node::Emit { insn, .. } => insn_bytes(&self.machine.insns[*insn]),
                Node::SetLong { .. } => match self.machine.row("set", Type::L) {
                    Some(row) => row
                        .immediate
                        .iter()
                        .map(|alternative| {
                            alternative
                                .steps
                                .iter()
                                .map(|step| match step {
                                    Step::Emit { insn, .. } => insn_bytes(&self.machine.insns[*insn]),
                                    Step::SetLong { .. } => 0,
                                })
                                .sum()
                        })
                        .max()
                        .unwrap_or(0),
                    None => 0,
                },
                Node::Portable | Node::Fail | Node::Lacks => 0,
            })
            .sum()
    }
}

fn choice(cases: Vec<(Vec<Cond>, Vec<Node>)>, otherwise: Vec<Node>) -> Vec<Node> {
    if cases.is_empty() { otherwise } else { vec![Node::Choice { cases, otherwise }] }
}

fn substitute(arg: &Arg, fixed: Fixed) -> Arg {
    let number = match arg {
        Arg::Register(RegArg::Operand('s')) => fixed.s,
        Arg::Register(RegArg::Operand('t')) => fixed.t,
        Arg::Register(_) | Arg::Value(_) | Arg::Label | Arg::Data(..) => None,
    };
    number.map_or_else(|| arg.clone(), |number| Arg::Register(RegArg::Fixed(number)))
}

fn number_fits(number: i64, signed: bool, bits: u32, scale: u32) -> bool {
    let range = if signed {
        let half = 1_i64 << (bits - 1);
        (-half..half).contains(&number)
    } else {
        (0..(1_i64 << bits)).contains(&number)
    };
    range && number & ((1 << scale) - 1) == 0
}

/// Whether `value` is masked so that it always fits, like `i & 0xfff` for an unsigned field of twelve bits, or is the
/// low part that a macro computed by sign extension.
fn masked_to(value: &Expr, signed: bool, bits: u32, scale: u32) -> bool {
    if scale != 0 {
        return false;
    }
    match value {
        Expr::Binary(BinaryOp::And, _, mask) => mask.constant().is_some_and(|mask| {
            let room = if signed { bits - 1 } else { bits };
            mask >= 0 && mask < (1_i64 << room)
        }),
        // ((v & mask) ^ half) - half
        Expr::Binary(BinaryOp::Subtract, inner, half) => match (&**inner, half.constant()) {
            (Expr::Binary(BinaryOp::Xor, masked, other), Some(half)) => {
                signed
                    && other.constant() == Some(half)
                    && half == 1_i64 << (bits - 1)
                    && masked_to(masked, false, bits, 0)
            }
            _ => false,
        },
        _ => false,
    }
}

/// The maximum length of an instruction in bytes.
pub(crate) fn insn_bytes(insn: &Insn) -> u32 {
    match &insn.encoding {
        Encoding::Word(_) => 4,
        Encoding::Bytes(tokens) => tokens
            .iter()
            .map(|token| match token {
                Token::Byte(_) | Token::Rex { .. } | Token::ShortRex | Token::Plus { .. } => 1,
                Token::Vex { prefix: Prefix::Vex, .. } => 3,
                Token::Vex { prefix: Prefix::Evex, .. } => 4,
                Token::ModRm { rm, .. } => match rm {
                    Rm::Register(_) | Rm::Digit(_) => 1,
                    Rm::Offset(..) | Rm::AnyBase(..) | Rm::Absolute(_) | Rm::Scaled(..) => 6,
                    Rm::Index { offset: None, .. } => 3,
                    Rm::Index { offset: Some(_), .. } => 6,
                    Rm::Label(_) => 5,
                },
                Token::Immediate { bytes, .. } => *bytes,
            })
            .sum(),
    }
}
