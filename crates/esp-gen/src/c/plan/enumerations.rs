//! The enumerations that messages and functions of the environment carry, at any depth, and the names of their cases.

use super::super::names::Names;
use quaject_esp_ir::ir::{Boundary, Program, TypeId};
use smol_str::SmolStr;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// An enumeration that the environment uses.
pub(crate) struct EnumerationPlan {
    pub(crate) ty: TypeId,
    /// The name of each case, in order of text.
    pub(crate) constants: Vec<String>,
}

/// The enumerations that the environment uses; `own` is the prefix of the program's names.
pub(super) fn plan_enumerations(program: &Program, own: &str, names: &mut Names) -> Vec<EnumerationPlan> {
    let types = &program.types;
    let channels = program.channels.iter().filter(|channel| channel.boundary != Boundary::Internal);
    let parameters = program.externs.iter().flat_map(|function| function.parameters.iter().map(|(ty, _)| ty));
    let results = program.externs.iter().filter_map(|function| function.result.as_ref());
    let found = RefCell::new(BTreeSet::new());
    for ty in channels.flat_map(|channel| channel.payload.iter()).chain(parameters).chain(results) {
        // Visits every part, because none satisfies the test.
        types.find_part(*ty, &|part| {
            if types.enumeration(part).is_some() {
                found.borrow_mut().insert(part);
            }
            false
        });
    }
    let plan_of = |ty: TypeId| {
        let enumeration = types.enumeration(ty).expect("only enumerations were found");
        let name = |case: &SmolStr| names.claim(&format!("{own}{}_{case}", enumeration.name));
        EnumerationPlan { ty, constants: enumeration.cases.iter().map(|(case, _)| case).map(name).collect() }
    };
    found.into_inner().into_iter().map(plan_of).collect()
}
