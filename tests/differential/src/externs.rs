//! Extern functions of random programs, twice: as C text and in Rust, for the interpreter's environment. Each hashes
//! its arguments and derives its result from the hash; `more` advances the held channels; those named `absent..` are
//! not defined.

use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Extern, Mutability, Program, Purity, Type, TypeId, TypeTable};
use std::fmt::Write as _;

/// The function at whose call each held channel offers or accepts one more message.
pub const MORE: &str = "more";

/// Whether nothing supplies the function.
pub fn is_absent(function: &Extern) -> bool {
    function.name.starts_with("absent")
}

/// Whether calls of the function are observable.
pub fn is_seen(function: &Extern) -> bool {
    match function.purity {
        Purity::Impure => true,
        Purity::Pure => false,
    }
}

const START: u64 = 0x9e37_79b9_7f4a_7c15;

fn mix(state: u64, value: u64) -> u64 {
    (state ^ value).wrapping_mul(0x0100_0000_01b3)
}

/// The hash of a call's arguments, and its result.
pub fn call(program: &Program, number: u32, arguments: &mut [Datum]) -> (u64, Option<Datum>) {
    let function = &program.externs[number as usize];
    let types = &program.types;
    let mut state = START ^ u64::from(number);
    for ((ty, _), argument) in function.parameters.iter().zip(arguments.iter()) {
        state = fold(types, *ty, argument, state);
    }
    let seen = state;
    for ((ty, mutability), argument) in function.parameters.iter().zip(arguments.iter_mut()) {
        if let (Type::Bytes { bound }, Mutability::Mutable, Datum::Bytes(bytes)) =
            (types.get(content(types, *ty)), mutability, argument)
        {
            if let Some(first) = bytes.first_mut() {
                *first ^= (state >> 9) as u8;
            }
            if bytes.len() < *bound as usize {
                bytes.push(7);
            }
        }
    }
    (seen, function.result.map(|ty| make(types, ty, &mut state)))
}

fn content(types: &TypeTable, ty: TypeId) -> TypeId {
    match types.get(ty) {
        Type::Boxed(pool) => types.pool(*pool).content,
        Type::Error
        | Type::Int(_)
        | Type::Bool
        | Type::Bytes { .. }
        | Type::Pid(_)
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_) => ty,
    }
}

fn fold(types: &TypeTable, ty: TypeId, datum: &Datum, state: u64) -> u64 {
    match (types.get(content(types, ty)), datum) {
        (_, Datum::Int(value)) => mix(state, *value as u64),
        (_, Datum::Bool(value)) => mix(state, u64::from(*value)),
        (_, Datum::Pid(instance)) => mix(state, u64::from(*instance)),
        (_, Datum::Bytes(bytes)) => {
            bytes.iter().fold(mix(state, bytes.len() as u64), |state, byte| mix(state, u64::from(*byte)))
        }
        (Type::Array { element, .. }, Datum::Array(elements)) => {
            elements.iter().fold(state, |state, datum| fold(types, *element, datum, state))
        }
        (Type::Record(id), Datum::Record(fields)) => {
            let parts = types.aggregate(*id).parts.iter().zip(fields);
            parts.fold(state, |state, ((_, ty), datum)| fold(types, ty.expect("fields have types"), datum, state))
        }
        (Type::Union(id), Datum::Union(tag, payload)) => {
            let state = mix(state, u64::from(*tag));
            match (payload, types.aggregate(*id).parts[*tag as usize].1) {
                (Some(payload), Some(ty)) => fold(types, ty, payload, state),
                (None, _) | (Some(_), None) => state,
            }
        }
        (ty, datum) => panic!("{datum:?} is no {ty:?}"),
    }
}

fn make(types: &TypeTable, ty: TypeId, state: &mut u64) -> Datum {
    let mut take = || {
        let value = *state >> 7;
        *state = mix(*state, 1);
        value
    };
    match types.get(content(types, ty)) {
        Type::Int(int) => Datum::Int(int.wrap(i128::from(take()))),
        Type::Bool => Datum::Bool(take() & 1 == 1),
        Type::Bytes { bound } => {
            let length = take() % (u64::from(*bound) + 1);
            Datum::Bytes((0..length).map(|_| take() as u8).collect())
        }
        Type::Array { length, element } => Datum::Array((0..*length).map(|_| make(types, *element, state)).collect()),
        Type::Record(id) => {
            let parts = types.aggregate(*id).parts.iter();
            Datum::Record(parts.map(|(_, ty)| make(types, ty.expect("fields have types"), state)).collect())
        }
        Type::Union(id) => {
            let parts = &types.aggregate(*id).parts;
            let tag = take() % parts.len() as u64;
            let payload = parts[tag as usize].1.map(|ty| Box::new(make(types, ty, state)));
            Datum::Union(tag as u32, payload)
        }
        ty @ (Type::Error | Type::Pid(_) | Type::Boxed(_)) => unreachable!("no sample's function returns {ty:?}"),
    }
}

/// C text of the functions, absent ones too, given the header that declares them. `driver.c` supplies `driver_mix`,
/// `driver_call` and `driver_more`.
pub fn define(program: &Program, header: &str) -> String {
    let mut text = String::new();
    for (number, function) in program.externs.iter().enumerate() {
        let head = format!(" {}(", function.name);
        let line = header.lines().find(|line| line.contains(&head) && line.ends_with("ESP_WEAK;"));
        let line = line.expect("the header declares every extern function");
        let (result, parameters) = line.split_once(&head).expect("the line was found by this");
        let parameters = parameters.split_once(')').expect("a declaration's list ends").0;
        let parameters = parameters.strip_suffix("result").unwrap_or(parameters);
        let names = parameters.split(", ").enumerate().map(|(index, ty)| format!("{ty} a{index}"));
        let list = if parameters == "void" { "void".to_string() } else { names.collect::<Vec<_>>().join(", ") };
        text += &format!("{result} {}({list})\n{{\nuint64_t h = {START:#x}u ^ {number}u;\n", function.name);
        let types = &program.types;
        for (index, (ty, _)) in function.parameters.iter().enumerate() {
            let place = if types.is_scalar(*ty) { format!("a{index}") } else { format!("(*a{index})") };
            fold_text(types, *ty, &place, 0, &mut text);
        }
        if is_seen(function) {
            put(&mut text, &format!("driver_call({number}, h);"));
        }
        if function.name == MORE {
            put(&mut text, "driver_more();");
        }
        for (index, (ty, mutability)) in function.parameters.iter().enumerate() {
            if let (Type::Bytes { bound }, Mutability::Mutable) = (types.get(content(types, *ty)), mutability) {
                put(&mut text, &format!("if (a{index}->length > 0) a{index}->data[0] ^= (uint8_t)(h >> 9);"));
                put(&mut text, &format!("if (a{index}->length < {bound}) a{index}->data[a{index}->length++] = 7;"));
            }
        }
        match function.result {
            None => {}
            Some(ty) if types.is_scalar(ty) => {
                put(&mut text, &format!("{result} r;"));
                make_text(types, ty, "r", 0, &mut text);
                put(&mut text, "return r;");
            }
            // The result's place is the last parameter.
            Some(ty) => make_text(types, ty, &format!("(*a{})", function.parameters.len()), 0, &mut text),
        }
        put(&mut text, "}");
    }
    text
}

fn put(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string does not fail");
}

fn fold_text(types: &TypeTable, ty: TypeId, place: &str, depth: u32, text: &mut String) {
    match types.get(content(types, ty)) {
        Type::Int(_) | Type::Bool | Type::Pid(_) => put(text, &format!("h = driver_mix(h, (uint64_t){place});")),
        Type::Bytes { .. } => {
            put(text, &format!("{{ uint32_t i{depth}; h = driver_mix(h, {place}.length);"));
            put(text, &format!("for (i{depth} = 0; i{depth} < {place}.length; i{depth}++)"));
            put(text, &format!("h = driver_mix(h, {place}.data[i{depth}]); }}"));
        }
        Type::Array { length, element } => {
            put(text, &format!("{{ uint32_t i{depth}; for (i{depth} = 0; i{depth} < {length}; i{depth}++) {{"));
            fold_text(types, *element, &format!("{place}.at[i{depth}]"), depth + 1, text);
            put(text, "} }");
        }
        Type::Record(id) => {
            for (name, ty) in &types.aggregate(*id).parts {
                fold_text(types, ty.expect("fields have types"), &format!("{place}.{name}"), depth, text);
            }
        }
        Type::Union(id) => {
            put(text, &format!("h = driver_mix(h, {place}.tag); switch ({place}.tag) {{"));
            for (tag, (name, ty)) in types.aggregate(*id).parts.iter().enumerate() {
                put(text, &format!("case {tag}:"));
                if let Some(ty) = ty {
                    fold_text(types, *ty, &format!("{place}.as.{name}"), depth, text);
                }
                put(text, "break;");
            }
            put(text, "default: break; }");
        }
        ty @ (Type::Error | Type::Boxed(_)) => unreachable!("no sample's function takes {ty:?}"),
    }
}

fn make_text(types: &TypeTable, ty: TypeId, place: &str, depth: u32, text: &mut String) {
    let next = "h = driver_mix(h, 1);";
    match types.get(content(types, ty)) {
        Type::Int(int) => {
            let sign = if int.is_signed() { "" } else { "u" };
            put(text, &format!("{place} = ({sign}int{}_t)(h >> 7); {next}", int.bits()));
        }
        Type::Bool => put(text, &format!("{place} = (h >> 7 & 1) != 0; {next}")),
        Type::Bytes { bound } => {
            put(text, &format!("{{ uint32_t i{depth}, n{depth} = (uint32_t)((h >> 7) % {}u);", u64::from(*bound) + 1));
            put(text, &format!("{place}.length = (uint16_t)n{depth}; {next}"));
            put(text, &format!("for (i{depth} = 0; i{depth} < n{depth}; i{depth}++) {{"));
            put(text, &format!("{place}.data[i{depth}] = (uint8_t)(h >> 7); {next} }} }}"));
        }
        Type::Array { length, element } => {
            put(text, &format!("{{ uint32_t i{depth}; for (i{depth} = 0; i{depth} < {length}; i{depth}++) {{"));
            make_text(types, *element, &format!("{place}.at[i{depth}]"), depth + 1, text);
            put(text, "} }");
        }
        Type::Record(id) => {
            for (name, ty) in &types.aggregate(*id).parts {
                make_text(types, ty.expect("fields have types"), &format!("{place}.{name}"), depth, text);
            }
        }
        Type::Union(id) => {
            let parts = &types.aggregate(*id).parts;
            put(text, &format!("{place}.tag = (h >> 7) % {}u; {next} switch ({place}.tag) {{", parts.len()));
            for (tag, (name, ty)) in parts.iter().enumerate() {
                put(text, &format!("case {tag}:"));
                if let Some(ty) = ty {
                    make_text(types, *ty, &format!("{place}.as.{name}"), depth, text);
                }
                put(text, "break;");
            }
            put(text, "default: break; }");
        }
        ty @ (Type::Error | Type::Pid(_) | Type::Boxed(_)) => unreachable!("no sample's function returns {ty:?}"),
    }
}
