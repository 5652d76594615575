//! Passes over one body, one file each. Each leaves a well-formed body that does the same.

mod dead;
mod parameters;

use quaject_esp_ir::graph::merge_and_number;
use quaject_esp_ir::ir::Body;

/// Tidies a body that was emitted path by path.
pub(crate) fn clean(mut body: Body, checked: bool) -> Body {
    loop {
        let dropped = parameters::drop_trivial(&mut body);
        let removed = dead::remove(&mut body, checked);
        if !dropped && !removed {
            return merge_and_number(body);
        }
    }
}
