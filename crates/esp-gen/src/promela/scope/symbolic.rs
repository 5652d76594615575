//! Symbolic evaluation of code without loops and effects to one expression: guards and messages that are computed while
//! an instance waits, and calls of small pure functions. Any other code has no such expression.

use super::{Scope, cells};
use crate::promela::expression::{self, Demand, Expr};
use crate::promela::memory::{self, Kind};
use crate::promela::plan::Plan;
use quaject_esp_ir::ir::*;
use std::collections::BTreeMap;

/// The maximal length of an expression; code with a longer one is written as statements.
const MAX_TEXT_BYTES: usize = 600;
const MAX_DEPTH: u32 = 12;

/// The result of code: its values, number by number, and the conditions under which it does not fault.
pub(in crate::promela) type Computed = (Vec<Expr>, Vec<Demand>);

/// Values known so far.
struct Walk<'a, 'b> {
    plan: &'a Plan<'a>,
    body: &'a Body,
    /// For values and places of the code around; none in a function.
    outer: Option<&'b Scope<'a>>,
}

type Known = BTreeMap<Value, Expr>;

/// The result of a region, if it can be written as an expression. `parameters` are those of its first block.
pub(in crate::promela) fn region<'a>(scope: &Scope<'a>, entry: BlockId, parameters: &[Expr]) -> Option<Computed> {
    let walk = Walk { plan: scope.plan, body: scope.body, outer: Some(scope) };
    let known = scope.body.blocks[entry.0 as usize].parameters.iter().copied().zip(parameters.iter().cloned());
    walk.block(entry, known.collect(), MAX_DEPTH).filter(is_short)
}

/// The result of a call of a pure function on scalars, if it can be written as an expression.
pub(in crate::promela) fn call<'a>(
    plan: &'a Plan<'a>,
    function: FnId,
    arguments: Vec<Expr>,
) -> Option<(Expr, Vec<Demand>)> {
    let body = &plan.program.functions[function.0 as usize].body;
    let walk = Walk { plan, body, outer: None };
    let known = body.blocks.first()?.parameters.iter().copied().zip(arguments);
    let (mut values, demands) = walk.block(BlockId(0), known.collect(), MAX_DEPTH).filter(is_short)?;
    if values.len() != 1 || !demands.is_empty() {
        return None;
    }
    Some((values.remove(0), demands))
}

/// Whether calls of a function can be written as expressions.
pub(in crate::promela) fn can_call(plan: &Plan<'_>, function: FnId) -> bool {
    let parameters = plan.program.functions[function.0 as usize].parameters.len();
    let arguments = (0..parameters).map(|index| Expr::tight(format!("argument{index}"))).collect();
    call(plan, function, arguments).is_some()
}

fn is_short((values, demands): &Computed) -> bool {
    values.iter().chain(demands.iter().map(|demand| &demand.condition)).all(|expr| expr.text.len() <= MAX_TEXT_BYTES)
}

impl<'a> Walk<'a, '_> {
    fn value(&self, value: Value, known: &Known) -> Option<Expr> {
        known.get(&value).cloned().or_else(|| self.outer.map(|scope| scope.value(value)))
    }

    fn kind(&self, value: Value) -> Option<Kind> {
        memory::kind(&self.plan.program.types, self.body.values[value.0 as usize].ty)
    }

    fn block(&self, id: BlockId, mut known: Known, depth: u32) -> Option<Computed> {
        let block = &self.body.blocks[id.0 as usize];
        let depth = depth.checked_sub(1)?;
        let mut demands = Vec::new();
        for instruction in &block.instructions {
            if let Some(result) = instruction.result {
                let (expr, more) = self.op(result, &instruction.op, &known)?;
                demands.extend(more);
                known.insert(result, expr);
            } else if !matches!(instruction.op, Op::Mark(_) | Op::Predicate(..)) {
                return None;
            }
        }
        let (values, more) = match &block.terminator {
            Terminator::Jump(edge) => self.edge(edge, &known, depth)?,
            Terminator::Branch { condition, then, otherwise } => {
                let condition = self.value(*condition, &known)?;
                let then = self.edge(then, &known, depth)?;
                let otherwise = self.edge(otherwise, &known, depth)?;
                choose(&condition, then, otherwise)?
            }
            Terminator::Result(parts) => {
                let mut values = Vec::new();
                for part in parts {
                    match &part.operand {
                        Operand::Value(value) => values.push(self.value(*value, &known)?),
                        Operand::Place(place) => {
                            let spot = self.outer?.place(place);
                            demands.extend(spot.demands.iter().cloned());
                            values.extend(cells(&spot));
                        }
                    }
                }
                (values, Vec::new())
            }
            Terminator::Return(Operand::Value(value)) => (vec![self.value(*value, &known)?], Vec::new()),
            Terminator::Return(Operand::Place(_))
            | Terminator::Switch { .. }
            | Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Exit(_)
            | Terminator::End
            | Terminator::Fault(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => return None,
        };
        demands.extend(more);
        Some((values, demands))
    }

    fn edge(&self, edge: &Edge, known: &Known, depth: u32) -> Option<Computed> {
        let mut known = known.clone();
        let parameters = &self.body.blocks[edge.to.0 as usize].parameters;
        let arguments: Option<Vec<Expr>> = edge.arguments.iter().map(|value| self.value(*value, &known)).collect();
        known.extend(parameters.iter().copied().zip(arguments?));
        self.block(edge.to, known, depth)
    }

    fn op(&self, result: Value, op: &Op, known: &Known) -> Option<(Expr, Vec<Demand>)> {
        let checks = self.plan.checks;
        match op {
            Op::Constant(_) => Some((self.constant(result, op)?, Vec::new())),
            Op::Unary(op, a) => {
                let (expr, demand) = expression::unary(*op, &self.kind(*a)?, &self.value(*a, known)?, checks);
                Some((expr, demand.into_iter().collect()))
            }
            Op::Binary(op, a, b) => {
                let (kind, count) = (self.kind(*a)?, self.kind(*b)?);
                Some(expression::binary(*op, &kind, &count, &self.value(*a, known)?, &self.value(*b, known)?, checks))
            }
            Op::Convert(a) => {
                let value = self.value(*a, known)?;
                Some((expression::convert(&self.kind(*a)?, &self.kind(result)?, value), Vec::new()))
            }
            Op::CallFunction { function, arguments, to: None } => {
                let arguments: Option<Vec<Expr>> = arguments
                    .iter()
                    .map(|argument| match argument {
                        Operand::Value(value) => self.value(*value, known),
                        Operand::Place(_) => None,
                    })
                    .collect();
                call(self.plan, *function, arguments?)
            }
            Op::OwnId | Op::FreeObjects(_) => Some(self.outer?.compute(result, op)),
            Op::Load(place) | Op::Tag(place) | Op::Length(place) if self.is_outer(place, known) => {
                Some(self.outer?.compute(result, op))
            }
            Op::Deadline { .. }
            | Op::InstanceOf(..)
            | Op::ReplicaNumber(_)
            | Op::Load(_)
            | Op::Tag(_)
            | Op::Length(_)
            | Op::LoadNumber { .. }
            | Op::LoadBits { .. }
            | Op::Equal(..)
            | Op::CallFunction { .. }
            | Op::CallExtern { .. }
            | Op::Allocate(_)
            | Op::IsUnique(_)
            | Op::Store(..)
            | Op::Copy { .. }
            | Op::SetBytes(..)
            | Op::Fill(..)
            | Op::SetTag(..)
            | Op::SetLength(..)
            | Op::CopySlice { .. }
            | Op::StoreSlice { .. }
            | Op::Append { .. }
            | Op::StoreNumber { .. }
            | Op::StoreBits { .. }
            | Op::Retain(_)
            | Op::Release(_)
            | Op::Mark(_)
            | Op::Predicate(..) => None,
        }
    }

    fn constant(&self, result: Value, op: &Op) -> Option<Expr> {
        let Op::Constant(value) = op else { return None };
        Some(match self.kind(result)? {
            Kind::Bool => Expr::tight(if *value == 0 { "false" } else { "true" }),
            Kind::Int(_) | Kind::Pid(_) | Kind::Reference(_) | Kind::Tag | Kind::Length(_) => Expr::number(*value),
        })
    }

    /// Whether a place involves no value computed here.
    fn is_outer(&self, place: &Place, known: &Known) -> bool {
        let base = match place.base {
            Base::Slot(_) | Base::Constant(..) => true,
            Base::Object(value) => !known.contains_key(&value),
        };
        base && place.path.iter().all(|step| match step {
            Projection::Element(value) | Projection::Inside(value) => !known.contains_key(value),
            Projection::Field(_) | Projection::Payload(_) => true,
        })
    }
}

fn choose(condition: &Expr, then: Computed, otherwise: Computed) -> Option<Computed> {
    if then.0.len() != otherwise.0.len() {
        return None;
    }
    let values = then.0.iter().zip(&otherwise.0).map(|(a, b)| match (a.text.as_str(), b.text.as_str()) {
        (x, y) if x == y => a.clone(),
        (_, "false") => Expr::binary(condition, "&&", a),
        ("true", _) => Expr::binary(condition, "||", b),
        (_, _) => Expr::choose(condition, a, b),
    });
    let when = |condition: Expr| {
        move |demand: Demand| Demand { condition: Expr::binary(&condition, "||", &demand.condition), ..demand }
    };
    let values = values.collect();
    let mut demands: Vec<Demand> = then.1.into_iter().map(when(condition.not())).collect();
    demands.extend(otherwise.1.into_iter().map(when(condition.clone())));
    Some((values, demands))
}
