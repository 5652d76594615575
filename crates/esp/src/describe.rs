//! Names of types, for messages and pictures.

use quaject_esp_syntax::types::{AggregateId, ProcessId, Type, TypeId, TypeTable};

/// A type as it is written in ESP: by its name if it has one. `process` names processes, for `pid`.
pub fn type_name<'a>(types: &TypeTable, process: &dyn Fn(ProcessId) -> &'a str, ty: TypeId) -> String {
    match types.get(ty) {
        Type::Error => "?".to_string(),
        Type::Int(int) => int.name().to_string(),
        Type::Bool => "bool".to_string(),
        Type::Bytes { bound } => format!("bytes[<={bound}]"),
        Type::Pid(processes) => {
            let names: Vec<&str> = processes.iter().map(|id| process(*id)).collect();
            format!("pid({})", names.join(", "))
        }
        Type::Array { length, element } => format!("array[{length}] of {}", type_name(types, process, *element)),
        Type::Record(id) => aggregate_name(types, process, *id, "record"),
        Type::Union(id) => aggregate_name(types, process, *id, "union"),
        Type::Boxed(pool) => types.pool(*pool).name.to_string(),
    }
}

fn aggregate_name<'a>(
    types: &TypeTable,
    process: &dyn Fn(ProcessId) -> &'a str,
    id: AggregateId,
    keyword: &str,
) -> String {
    let aggregate = types.aggregate(id);
    if let Some(name) = &aggregate.name {
        return name.to_string();
    }
    let parts: Vec<String> = aggregate
        .parts
        .iter()
        .map(|(name, ty)| match ty {
            Some(ty) => format!("{name}: {}", type_name(types, process, *ty)),
            None => name.to_string(),
        })
        .collect();
    format!("{keyword} {{ {} }}", parts.join(", "))
}
