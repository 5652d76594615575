//! Synthesised code: the area that it lies in, the templates that it is copied from, and the routines of calls.

mod area;
mod code;
mod identity;
mod measure;
mod shapes;
pub(crate) mod stream;
mod switch;
mod switch_shape;
mod vectors;

pub(crate) use code::{describe_all, describe_at, fix_up, initialize, is_in_area, template_entry};
pub(crate) use identity::ProcessEntries;
pub(crate) use measure::measure_shapes;
pub(crate) use shapes::PIPE_BITS;
pub(crate) use switch::Switch;
pub(crate) use switch_shape::VectorUse;
pub(crate) use vectors::Vectors;
