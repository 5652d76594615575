//! Constants that are stored once: literals of the checked program as literals of the flow IR. Knows no instructions.

use super::Context;
use quaject_esp_ir::ir::{Base, Constant, ConstantId, Literal, Place};
use quaject_esp_syntax::hir::{self, Expr, ExprKind};

/// The constants of a program, by id.
pub(super) fn constants(program: &hir::Program) -> Vec<Constant> {
    let constant = |hir::Constant { name, value }: &hir::Constant| Constant {
        name: name.clone(),
        ty: value.ty,
        content: literal(&program.constants, value),
    };
    program.constants.iter().map(constant).collect()
}

impl Context<'_> {
    /// A constant without a name that holds a literal.
    pub(super) fn store_literal(&mut self, value: &Expr) -> Place {
        let content = literal(&self.program.constants, value);
        let id = ConstantId(self.constants.len() as u32);
        self.constants.push(Constant { name: "literal".into(), ty: value.ty, content });
        Place { base: Base::Constant(id, value.ty), path: Vec::new() }
    }
}

/// Whether an expression is made of literals only, of a type without references.
pub(super) fn is_literal(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Constant(_) | ExprKind::Bytes(_) | ExprKind::Stored(_) => true,
        ExprKind::WidenPid(inner) | ExprKind::Repeat(inner) => is_literal(inner),
        ExprKind::Record(fields) => fields.iter().all(|(_, value)| is_literal(value)),
        ExprKind::Array(elements) => elements.iter().all(is_literal),
        ExprKind::Union(_, payload) => payload.as_ref().is_none_or(|payload| is_literal(payload)),
        _other => false,
    }
}

fn literal(stored: &[hir::Constant], value: &Expr) -> Literal {
    match &value.kind {
        ExprKind::Constant(number) => Literal::Scalar(*number),
        ExprKind::Bytes(bytes) => Literal::Bytes(bytes.clone()),
        ExprKind::Stored(id) => literal(stored, &stored[id.0 as usize].value),
        ExprKind::WidenPid(inner) => literal(stored, inner),
        ExprKind::Repeat(element) => Literal::Repeat(Box::new(literal(stored, element))),
        ExprKind::Array(elements) => Literal::Parts(elements.iter().map(|part| literal(stored, part)).collect()),
        ExprKind::Record(fields) => {
            let mut fields: Vec<&(u32, Expr)> = fields.iter().collect();
            fields.sort_by_key(|(field, _)| *field);
            Literal::Parts(fields.into_iter().map(|(_, value)| literal(stored, value)).collect())
        }
        ExprKind::Union(tag, payload) => {
            Literal::Tagged(*tag, payload.as_ref().map(|payload| Box::new(literal(stored, payload))))
        }
        _other => unreachable!("analysis lets literals only into constants"),
    }
}
