//! The memory that the data of a program takes in the interpreter. It is known before the program runs, because only
//! what is declared is allocated. Limits are set by engines and commands.

use crate::datum::Datum;
use crate::layout::Layouts;
use quaject_esp_ir::ir::{Body, Boundary, Program, Type, TypeId};

/// The maximum size of a scalar as text, with its separator.
const SCALAR_TEXT: usize = 24;
/// The maximum size of a byte of a string as text: `\xff`.
const BYTE_TEXT: usize = 4;

/// Bytes of the variables of all instances, the frames of functions, the pools, and the messages and arguments that
/// cross the boundary of the program.
pub fn data_bytes(program: &Program) -> usize {
    let layouts = Layouts::new(&program.types);
    let frame = |body: &Body| {
        let slots = body.slots.iter().map(|slot| layouts.size(slot.ty));
        sum(slots).saturating_add(body.values.len().saturating_mul(size_of::<i64>()))
    };
    let instances = sum(program.processes.iter().map(|process| {
        let frame = frame(&process.body).saturating_add(size_of::<crate::state::State>());
        frame.saturating_mul(process.replicas as usize)
    }));
    let functions = sum(program.functions.iter().map(|function| frame(&function.body)));
    let pools = sum(program.types.pools().iter().map(|pool| {
        let object = layouts.size(pool.content).saturating_add(size_of::<u32>());
        // A message that allocates is evaluated on a copy of the pools.
        object.saturating_mul(pool.capacity as usize).saturating_mul(2)
    }));
    let mut boundary_values = BoundaryValues { program, known: vec![None; program.types.types().len()] };
    let channels = program.channels.iter().filter(|channel| match channel.boundary {
        Boundary::Internal => false,
        Boundary::ToEnvironment | Boundary::FromEnvironment => true,
    });
    let messages = sum(channels.flat_map(|channel| &channel.payload).map(|ty| boundary_values.bytes(*ty)));
    let calls = program.externs.iter().map(|function| {
        sum(function.parameters.iter().map(|(ty, _)| *ty).chain(function.result).map(|ty| boundary_values.bytes(ty)))
    });
    let calls = calls.max().unwrap_or(0);
    let constants = sum(program.constants.iter().map(|constant| layouts.size(constant.ty)));
    sum([instances, functions, pools, constants, messages, calls].into_iter())
}

fn sum(parts: impl Iterator<Item = usize>) -> usize {
    parts.fold(0, usize::saturating_add)
}

/// Sizes of values in the environment, as data and as text.
struct BoundaryValues<'p> {
    program: &'p Program,
    known: Vec<Option<usize>>,
}

impl BoundaryValues<'_> {
    fn bytes(&mut self, ty: TypeId) -> usize {
        if let Some(known) = self.known[ty.0 as usize] {
            return known;
        }
        let types = &self.program.types;
        let parts = match types.get(ty) {
            Type::Error | Type::Int(_) | Type::Bool | Type::Pid(_) => SCALAR_TEXT,
            Type::Bytes { bound } => (*bound as usize).saturating_mul(1 + BYTE_TEXT),
            Type::Boxed(pool) => self.bytes(types.pool(*pool).content),
            Type::Array { length, element } => self.bytes(*element).saturating_mul(*length as usize),
            Type::Record(id) => {
                let parts = types.aggregate(*id).parts.iter().filter_map(|(_, part)| *part);
                sum(parts.map(|part| self.bytes(part)))
            }
            Type::Union(id) => {
                let parts = types.aggregate(*id).parts.iter().filter_map(|(_, part)| *part);
                parts.map(|part| self.bytes(part)).max().unwrap_or(0)
            }
        };
        let bytes = parts.saturating_add(size_of::<Datum>());
        self.known[ty.0 as usize] = Some(bytes);
        bytes
    }
}
