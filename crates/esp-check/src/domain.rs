//! Enumeration of the values that the environment can produce of a type, if there are few enough.

use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{ChannelId, ExternId, IntType, Program, Type, TypeId};
use quaject_esp_ir::model::{ModelProgram, Values};

/// The largest number of values of a message or result.
pub const MAX_VALUES: usize = 1 << 16;
/// The largest number of values of an integer type without a range.
const MAX_VALUES_WITHOUT_RANGE: i128 = 256;

/// A value that needs a range in the model before it can be enumerated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unbounded {
    /// A value of a channel's messages, by its number.
    Message(ChannelId, u32),
    /// The result of an extern function.
    Result(ExternId),
}

/// Every message that the environment can send on a channel; none if the model allows none, whatever its type.
pub(crate) fn messages(model: &ModelProgram, channel: ChannelId) -> Result<Vec<Vec<Datum>>, Unbounded> {
    if model.bounds[channel.0 as usize] == Some(0) {
        return Ok(Vec::new());
    }
    let mut parts = Vec::new();
    for (number, (ty, allowed)) in model.message(channel).enumerate() {
        let unbounded = Unbounded::Message(channel, number as u32);
        parts.push(values(&model.program, ty, allowed).ok_or(unbounded)?);
    }
    combinations(&parts).ok_or(Unbounded::Message(channel, 0))
}

/// Every result of an extern function; a single one for a procedure.
pub(crate) fn results(model: &ModelProgram, function: ExternId) -> Result<Vec<Option<Datum>>, Unbounded> {
    match model.program.externs[function.0 as usize].result {
        None => Ok(vec![None]),
        Some(ty) => {
            let all = values(&model.program, ty, model.results[function.0 as usize]);
            Ok(all.ok_or(Unbounded::Result(function))?.into_iter().map(Some).collect())
        }
    }
}

/// The allowed values of a type; none if there are too many. A range of `bytes` limits the length; one content
/// represents all.
fn values(program: &Program, ty: TypeId, allowed: Values) -> Option<Vec<Datum>> {
    let all = |types: &mut dyn Iterator<Item = TypeId>| {
        let parts: Option<Vec<_>> = types.map(|ty| values(program, ty, allowed)).collect();
        combinations(&parts?)
    };
    let found = match program.types.get(ty) {
        Type::Error => Vec::new(),
        Type::Boxed(pool) => return values(program, program.types.pool(*pool).content, allowed),
        // All times are one value.
        Type::Int(int) if int.is_clock() => vec![Datum::Int(0)],
        Type::Int(_) if program.types.enumeration(ty).is_some_and(|cases| cases.other.is_none()) => {
            let cases = program.types.enumeration(ty).map(|enumeration| enumeration.codes()).unwrap_or_default();
            let codes = cases.into_iter().flat_map(|(low, high)| low..high);
            match allowed {
                Values::One => codes.take(1).map(Datum::Int).collect(),
                Values::All => codes.map(Datum::Int).collect(),
                Values::Range(from, to) => codes.filter(|code| (from..to).contains(code)).map(Datum::Int).collect(),
            }
        }
        Type::Int(int) => {
            let (lowest, highest) = (IntType::min(*int), IntType::max(*int));
            let (first, end) = match allowed {
                Values::One => (0, 1),
                Values::All if highest - lowest < MAX_VALUES_WITHOUT_RANGE => (lowest, highest + 1),
                Values::All => return None,
                Values::Range(from, to) => (from.max(lowest), to.min(highest + 1)),
            };
            if end - first > MAX_VALUES as i128 {
                return None;
            }
            (first..end).map(Datum::Int).collect()
        }
        Type::Bool => match allowed {
            Values::One => vec![Datum::Bool(false)],
            Values::All => vec![Datum::Bool(false), Datum::Bool(true)],
            Values::Range(from, to) => (from.max(0)..to.min(2)).map(|value| Datum::Bool(value != 0)).collect(),
        },
        Type::Pid(processes) => {
            let instances = processes.iter().flat_map(|process| {
                let first = program.first_instance(*process);
                first..first + program.processes[process.0 as usize].replicas
            });
            match allowed {
                Values::One => instances.take(1).map(Datum::Pid).collect(),
                Values::All | Values::Range(..) => instances.map(Datum::Pid).collect(),
            }
        }
        Type::Bytes { bound } => match allowed {
            Values::One => vec![Datum::Bytes(Vec::new())],
            Values::All if *bound == 0 => vec![Datum::Bytes(Vec::new())],
            Values::All => return None,
            Values::Range(from, to) => {
                let end = to.min(i128::from(*bound) + 1);
                if end - from > MAX_VALUES as i128 {
                    return None;
                }
                (from.max(0)..end).map(|length| Datum::Bytes(vec![0; length as usize])).collect()
            }
        },
        Type::Array { length, element } => {
            all(&mut (0..*length).map(|_| *element))?.into_iter().map(Datum::Array).collect()
        }
        Type::Record(id) => {
            let parts = &program.types.aggregate(*id).parts;
            all(&mut parts.iter().filter_map(|(_, ty)| *ty))?.into_iter().map(Datum::Record).collect()
        }
        Type::Union(id) => {
            let mut found = Vec::new();
            for (tag, (_, payload)) in program.types.aggregate(*id).parts.iter().enumerate() {
                match payload {
                    None => found.push(Datum::Union(tag as u32, None)),
                    Some(ty) => {
                        let payloads = values(program, *ty, allowed)?.into_iter();
                        found.extend(payloads.map(|value| Datum::Union(tag as u32, Some(Box::new(value)))));
                    }
                }
                match allowed {
                    Values::One => break,
                    Values::All | Values::Range(..) => {}
                }
            }
            found
        }
    };
    (found.len() <= MAX_VALUES).then_some(found)
}

/// The Cartesian product, the last component varying fastest.
fn combinations(parts: &[Vec<Datum>]) -> Option<Vec<Vec<Datum>>> {
    let count = parts.iter().try_fold(1usize, |count, part| count.checked_mul(part.len()))?;
    if count > MAX_VALUES {
        return None;
    }
    let mut found = vec![Vec::new()];
    for part in parts {
        found = found
            .into_iter()
            .flat_map(|start| part.iter().map(move |value| [&start[..], std::slice::from_ref(value)].concat()))
            .collect();
    }
    Some(found)
}
