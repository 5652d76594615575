//! Elaboration before any name is known: which items a program has. Constants choose among conditional items, and
//! say which processes have no instance. Their values are computed with the items that are there unconditionally or by
//! an earlier choice; what is chosen does not depend on processes or channels.

use super::body::{Body, BodyKind};
use super::constants::Constant;
use super::copies::Copies;
use super::load::Loaded;
use super::names::{self, Checker};
use super::order;
use crate::ast;
use crate::diagnostics::Code;
use crate::hir::{self, ExprKind};
use crate::types::TypeTable;

/// An item of the program.
#[derive(Clone, Copy)]
pub(super) struct Presence<'a> {
    pub(super) item: &'a ast::Item,
    /// A process with 0 replicas: it is checked and has no instance.
    pub(super) absent: bool,
}

/// The items of a program in order of text.
pub(super) fn items<'a>(checker: &mut Checker<'a>, loaded: &'a Loaded) -> Vec<Presence<'a>> {
    let written: Vec<&'a ast::Item> =
        loaded.order.iter().map(|(file, item)| &loaded.files[*file].items[*item]).collect();
    let is_decided = |item: &ast::Item| match item {
        ast::Item::Conditional(_) => false,
        ast::Item::Process(ast::Process { replicas, .. })
        | ast::Item::Instance(ast::Instantiation { replicas, .. }) => replicas.is_none(),
        _ => true,
    };
    if written.iter().all(|item| is_decided(item)) {
        return written.into_iter().map(|item| Presence { item, absent: false }).collect();
    }
    let copies = Copies::default();
    let of_items = Checker::new(checker.sources, &copies, &loaded.scopes, loaded.integrity, Vec::new());
    let mut choices = Choices { checker: of_items };
    choices.checker.recorder = checker.recorder;
    written.iter().for_each(|item| choices.declare(item));
    let mut items = Vec::new();
    written.iter().for_each(|item| choices.choose(item, &mut items));
    let mut found = std::mem::take(&mut choices.checker.diagnostics);
    checker.diagnostics.append(&mut found);
    items
}

/// The constants, types, layouts and functions that are known so far.
struct Choices<'c> {
    checker: Checker<'c>,
}

impl<'c> Choices<'c> {
    /// Declares what a constant can depend on.
    fn declare(&mut self, item: &'c ast::Item) {
        match item {
            ast::Item::Const(_)
            | ast::Item::Type(_)
            | ast::Item::Layout(_)
            | ast::Item::Fn(_)
            | ast::Item::Extern(_) => {
                names::declare(&mut self.checker, &[Presence { item, absent: false }]);
            }
            _ => {}
        }
    }

    /// Appends an item, or those of the branch that is taken.
    fn choose<'a: 'c>(&mut self, item: &'a ast::Item, items: &mut Vec<Presence<'a>>) {
        match item {
            ast::Item::Conditional(conditional) => {
                let taken = match self.value(&conditional.condition) {
                    Some(0) => &conditional.otherwise,
                    Some(_) | None => &conditional.then,
                };
                taken.iter().for_each(|item| self.declare(item));
                taken.iter().for_each(|item| self.choose(item, items));
            }
            ast::Item::Process(ast::Process { replicas: Some(replicas), .. })
            | ast::Item::Instance(ast::Instantiation { replicas: Some(replicas), .. }) => {
                let absent = order::is_independent_of_processes(&self.checker, replicas) && {
                    // What is wrong with it is reported where replicas are counted.
                    let reported = self.checker.diagnostics.len();
                    let value = self.evaluate(replicas);
                    self.checker.diagnostics.truncate(reported);
                    value == Some(0)
                };
                items.push(Presence { item, absent });
            }
            _ => items.push(Presence { item, absent: false }),
        }
    }

    /// The value of a condition; none after a report.
    fn value(&mut self, condition: &'c ast::Expr) -> Option<i128> {
        if !order::is_independent_of_processes(&self.checker, condition) {
            let message = "which items there are cannot depend on the number of a process";
            self.checker.error(Code::E0309, condition.span, message);
            return None;
        }
        self.evaluate(condition)
    }

    fn evaluate(&mut self, expr: &'c ast::Expr) -> Option<i128> {
        value_of(&mut self.checker, expr)
    }
}

/// The value of a constant, 0 if it is false; none after a report.
fn value_of<'a>(checker: &mut Checker<'a>, expr: &'a ast::Expr) -> Option<i128> {
    order::resolve_for(checker, expr);
    let mut body = Body::new(checker, BodyKind::Constant);
    let value = body.condition(expr);
    if value.ty == TypeTable::ERROR {
        return None;
    }
    match body.typed_constant(value) {
        Constant::Typed(hir::Expr { kind: ExprKind::Constant(number), .. }) => Some(number),
        Constant::Typed(_) | Constant::Untyped(_) | Constant::Error => None,
    }
}

/// E0311: assertions among the items, which are about constants.
pub(super) fn check_assertions(checker: &mut Checker) {
    for ast::StaticAssertion { condition, message } in std::mem::take(&mut checker.static_assertions) {
        if value_of(checker, condition) == Some(0) {
            let text = message.as_ref().map_or(String::new(), |message| format!(": {message}"));
            checker.error(Code::E0311, condition.span, format!("this assertion is false{text}"));
        }
    }
}
