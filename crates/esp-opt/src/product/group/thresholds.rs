//! The thresholds of intervals: the constants to which their ends are moved (Blanchet et al. 2003). They are
//! the constants that decide branches of the members, and the limits of integer types: an interval between two of them
//! decides no branch that the wider one leaves open.

use super::Member;
use super::liveness::constants;
use quaject_esp_ir::ir::{BinaryOp, Op, Operation, Pattern, Terminator};
use rustc_hash::FxHashSet;
use std::collections::BTreeSet;

/// The thresholds of a group.
pub(in super::super) struct IntervalThresholds {
    /// The constants that members compare with for equality: facts keep them apart.
    pub(in super::super) compared: FxHashSet<i128>,
    /// The thresholds of lower and of upper ends, ascending.
    pub(in super::super) lower: Vec<i128>,
    pub(in super::super) upper: Vec<i128>,
}

impl IntervalThresholds {
    /// Collects the constants that the members compare with.
    pub(super) fn new(members: &[Member<'_>]) -> IntervalThresholds {
        let mut compared = FxHashSet::default();
        let mut thresholds = BTreeSet::new();
        for member in members {
            let constants = constants(member.body);
            for block in &member.body.blocks {
                for instruction in &block.instructions {
                    let Op::Binary(op, a, b) = &instruction.op else { continue };
                    for value in [a, b] {
                        let Some(value) = constants[value.0 as usize] else { continue };
                        if let BinaryOp::Equal | BinaryOp::NotEqual = op {
                            compared.insert(value);
                        }
                        thresholds.extend(operation_thresholds(*op, value));
                    }
                }
                add_terminator_constants(&block.terminator, &mut compared);
            }
        }
        thresholds.extend(&compared);
        for bits in [7, 8, 15, 16, 31, 32, 63, 64] {
            thresholds.insert((1 << bits) - 1);
            if bits % 8 == 7 {
                thresholds.insert(-(1 << bits));
            }
        }
        let upper = thresholds.iter().copied().collect();
        thresholds.insert(0);
        IntervalThresholds { compared, lower: thresholds.into_iter().collect(), upper }
    }
}

/// The ends of intervals at which an operation with a constant changes its result.
fn operation_thresholds(op: BinaryOp, constant: i128) -> Vec<i128> {
    match op {
        BinaryOp::Equal | BinaryOp::NotEqual | BinaryOp::BitAnd => vec![constant],
        BinaryOp::Less | BinaryOp::GreaterEqual => vec![constant - 1, constant],
        BinaryOp::LessEqual | BinaryOp::Greater => vec![constant, constant + 1],
        BinaryOp::Remainder => vec![constant - 1],
        BinaryOp::Add
        | BinaryOp::Subtract
        | BinaryOp::Multiply
        | BinaryOp::Divide
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::SaturatingAdd
        | BinaryOp::SaturatingSubtract
        | BinaryOp::SaturatingMultiply => Vec::new(),
    }
}

/// Adds the constants of cases and patterns.
fn add_terminator_constants(terminator: &Terminator, compared: &mut FxHashSet<i128>) {
    match terminator {
        Terminator::Switch { value: _, cases, default: _ } => compared.extend(cases.iter().map(|(case, _)| *case)),
        Terminator::Wait(wait) => {
            for branch in &wait.branches {
                if let Operation::In { patterns, .. } = &branch.operation {
                    patterns.iter().for_each(|pattern| add_pattern_constants(pattern, compared));
                }
            }
        }
        Terminator::Jump(_)
        | Terminator::Branch { .. }
        | Terminator::Yield(_)
        | Terminator::Return(_)
        | Terminator::Result(_)
        | Terminator::Exit(_)
        | Terminator::End
        | Terminator::Fault(_)
        | Terminator::Enter(_)
        | Terminator::Leave(_) => {}
    }
}

fn add_pattern_constants(pattern: &Pattern, compared: &mut FxHashSet<i128>) {
    match pattern {
        Pattern::Constant(value) => {
            compared.insert(*value);
        }
        Pattern::Tag(_, Some(part)) => add_pattern_constants(part, compared),
        Pattern::Record(parts) | Pattern::Array(parts) => {
            parts.iter().for_each(|part| add_pattern_constants(part, compared));
        }
        Pattern::Any
        | Pattern::Bind(_)
        | Pattern::Bytes(_)
        | Pattern::OwnId
        | Pattern::Equal(_)
        | Pattern::Tag(_, None) => {}
    }
}
