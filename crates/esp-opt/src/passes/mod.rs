//! Passes over one body, one file each. Each leaves a well-formed body that does the same.

mod constants;
mod dead;
mod loads;
mod numbering;
mod parameters;

use quaject_esp_ir::graph::merge_and_number;
use quaject_esp_ir::ir::{Body, TypeTable};

/// Tidies a body that was emitted path by path.
pub(crate) fn clean(mut body: Body, types: &TypeTable, checked: bool) -> Body {
    loop {
        // What stands in one block is seen together.
        body = merge_and_number(body);
        let dropped = parameters::drop_trivial(&mut body);
        let folded = constants::fold(&mut body, types, checked);
        let unified = numbering::unify(&mut body);
        let removed = dead::remove(&mut body, checked);
        if dropped || folded || unified || removed {
            continue;
        }
        // Ranges take longer than all others; what has gone by then need not be looked at.
        if !loads::remove(&mut body, types, checked) {
            return body;
        }
    }
}
