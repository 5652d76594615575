//! Random items before the processes: layouts, extern functions, constants, functions, procedures, templates.

use super::Size;
use super::body::Body;
use super::shared::{
    Access, Called, Context, Direction, Function, Kind, Place, Procedure, Return, Service, Shared, Template, Timing,
};
use super::types::{INTS, Ty};
use crate::externs::MORE;
use fastrand::Rng;

/// A layout.
pub fn layout(rng: &mut Rng, shared: &mut Shared) -> String {
    let mut widths = Vec::new();
    let mut left = rng.u32(1..5) * 8;
    let mut text = format!("layout l{} {{ ", shared.layouts.len());
    while left > 0 {
        let width = rng.u32(1..=left.min(20));
        text += &format!("g{}: {width}, ", widths.len());
        widths.push(width);
        left -= width;
    }
    shared.layouts.push(widths);
    text + "}\n"
}

/// Extern functions: pure ones, those with effects, and [`MORE`].
pub fn externs(rng: &mut Rng, shared: &mut Shared, size: Size) -> String {
    let mut text = format!("extern fn {MORE}();\n");
    shared.procedures.push(Procedure { name: MORE.into(), parameters: Vec::new(), result: None });
    for index in 0..rng.usize(0..=size.events.min(3)) {
        let absent = if rng.u32(0..12) == 0 { "absent" } else { "" };
        let has_effects = rng.bool();
        let parameters: Vec<(Ty, Access)> = (0..rng.usize(0..3))
            .map(|_| match shared.types.any(rng, 1) {
                ty @ Ty::Bytes(_) if has_effects && rng.bool() => (ty, Access::Writes),
                ty => (ty, Access::Reads),
            })
            .collect();
        let result = (!has_effects || rng.bool()).then(|| shared.types.any_from_outside(rng, 1));
        let printed: Vec<String> = parameters
            .iter()
            .map(|(ty, access)| match access {
                Access::Reads => shared.types.print(ty),
                Access::Writes | Access::Replaces | Access::Assigns => format!("#{}", shared.types.print(ty)),
            })
            .collect();
        let arrow = result.as_ref().map(|ty| format!(" -> {}", shared.types.print(ty))).unwrap_or_default();
        let (pure, kind) = if has_effects { ("", "do") } else { ("pure ", "get") };
        let name = format!("{absent}{kind}{index}");
        text += &format!("extern {pure}fn {name}({}){arrow};\n", printed.join(", "));
        match (has_effects, result) {
            (false, Some(result)) => {
                let parameters = parameters.into_iter().map(|(ty, _)| ty).collect();
                shared.functions.push(Function { name, parameters, result });
            }
            (_, result) => shared.procedures.push(Procedure { name, parameters, result }),
        }
    }
    text
}

/// An item's full name, and `pub` in a module.
fn named(shared: &Shared, local: &str) -> (String, &'static str) {
    (format!("{}{local}", shared.types.home), if shared.types.home.is_empty() { "" } else { "pub " })
}

/// Constant arrays without boxed parts; some are filled by a function that the compiler executes.
pub fn constants(rng: &mut Rng, shared: &mut Shared) -> String {
    let mut text = String::new();
    for index in 0..rng.usize(1..4) {
        let element = shared.types.any_flat(rng, 1);
        let length = rng.u32(1..6);
        let ty = Ty::Array(length, Box::new(element.clone()));
        let printed = shared.types.print(&ty);
        let value = Body::new(Place::Function).expr(rng, shared, &ty, 0, Context::Typed);
        let (name, offered) = named(shared, &format!("k{index}"));
        let local = shared.types.local(&name);
        if rng.bool() {
            text += &format!("{offered}const {local}: {printed} = {value};\n");
        } else {
            text += &format!(
                "fn make{index}() -> {printed} {{ var t: #{printed} = thaw(from{index}()), i = 0;\n\
                 while (i < {length}) {{ t[i] = from{index}()[{length} - 1 - i]; i += 1; }} return freeze(t); }}\n\
                 fn from{index}() -> {printed} {{ return {value}; }}\n{offered}const {local} = make{index}();\n"
            );
        }
        shared.constants.push((name, length, element));
    }
    text
}

/// A table that a pure function computes as those of checksums: unsigned, so that nothing overflows.
pub fn table(rng: &mut Rng, shared: &mut Shared) -> String {
    let int = INTS[rng.usize(0..4)];
    let (name, offered) = named(shared, "table");
    let (local, printed) = (shared.types.local(&name), int.name());
    let (length, rounds) = (rng.u32(1..40), rng.u32(0..9));
    let polynomial = rng.u64(..) as u128 & int.max() as u128;
    let step = match rng.u32(0..3) {
        0 => format!("x & 1 != 0 ? x >> 1 ^ {polynomial} : x >> 1"),
        1 => format!("x * {} + {printed}(i)", rng.u32(1..100)),
        _ => "mix(x, round)".to_string(),
    };
    shared.constants.push((name.clone(), length, Ty::Int(int)));
    format!(
        "{offered}const {local} = computed();\n\
         fn mix(x: {printed}, n: int) -> {printed} {{ return n > 2 ? ~x : x << n | 1; }}\n\
         fn computed() -> array[{length}] of {printed} {{\n\
         var t: #array[{length}] of {printed} = #[0; {length}];\n\
         for i in 0..{length} {{ var x = {printed}(i); for round in 0..{rounds} {{ x = {step}; }} t[i] = x; }}\n\
         return freeze(t); }}\nassert({local}.len == {length}, \"the table has {length} elements\");\n"
    )
}

/// Constant numbers, which also bound ranges, static assertions on them, and items under conditions.
pub fn limits(rng: &mut Rng, shared: &mut Shared) -> String {
    let mut text = String::new();
    for index in 0..rng.usize(2..5) {
        let value = rng.u32(1..9);
        let (name, offered) = named(shared, &format!("limit{index}"));
        let local = shared.types.local(&name);
        if rng.u32(0..4) == 0 {
            // A call has a type, so that the constant has one and is no limit of other types.
            let (condition, first, second) =
                if rng.bool() { ("true", "n", "absent(n)") } else { ("false", "absent(n)", "n") };
            text += &format!(
                "const WIDE{index} = {condition};\n\
                 if WIDE{index} {{ fn chosen{index}(n: int) -> int {{ return {first}; }} }} else {{\n\
                 fn chosen{index}(n: int) -> int {{ return {second}; }} }}\n\
                 {offered}const {local} = chosen{index}({value});\nassert({local} == {value});\n"
            );
            continue;
        }
        let expression = if rng.bool() { format!("{} - 7", value + 7) } else { value.to_string() };
        text += &format!("{offered}const {local} = {expression};\nassert({local} < 9, \"limits are small\");\n");
        shared.limits.push((name, i128::from(value)));
    }
    text
}

/// A pure function.
pub fn function(rng: &mut Rng, shared: &mut Shared, index: usize, size: Size) -> String {
    let mut body = Body::new(Place::Function);
    let parameters: Vec<Ty> = (0..rng.usize(0..3)).map(|_| shared.types.any(rng, 1)).collect();
    let mut printed = Vec::new();
    for ty in &parameters {
        let name = body.fresh();
        printed.push(format!("{name}: {}", shared.types.print(ty)));
        body.push(name, ty.clone(), Kind::Constant);
    }
    let result = shared.types.any(rng, 1);
    body.returns = Return::Value(result.clone());
    let count = rng.u32(0..=size.statements);
    body.statements(rng, shared, count, 1);
    let value = body.expr(rng, shared, &result, 2, Context::Typed);
    body.line(&format!("return {value};"));
    let (name, offered) = named(shared, &format!("f{index}"));
    let text = format!(
        "{offered}fn f{index}({}) -> {} {{\n{}}}\n",
        printed.join(", "),
        shared.types.print(&result),
        body.text
    );
    shared.functions.push(Function { name, parameters, result });
    text
}

/// The parameters of a procedure, and their text.
fn parameters(rng: &mut Rng, shared: &Shared, body: &mut Body) -> (Vec<(Ty, Access)>, Vec<String>) {
    let (mut parameters, mut printed) = (Vec::new(), Vec::new());
    for _ in 0..rng.usize(0..4) {
        let ty = shared.types.any(rng, 1);
        let name = body.fresh();
        let (access, kind) = match (&ty, rng.u32(0..4)) {
            (_, 0) | (Ty::Union(_), _) => (Access::Reads, Kind::Constant),
            (Ty::Bytes(_) | Ty::Array(..) | Ty::Record(_) | Ty::Boxed(_), _) => (Access::Writes, Kind::Mutable),
            (Ty::Int(_) | Ty::Bool | Ty::Duration | Ty::Enumeration(_), 1) => (Access::Assigns, Kind::Plain),
            (Ty::Int(_) | Ty::Bool | Ty::Duration | Ty::Enumeration(_), _) => (Access::Replaces, Kind::Plain),
        };
        let sign = if access == Access::Reads { "" } else { "#" };
        printed.push(format!("{name}: {sign}{}", shared.types.print(&ty)));
        body.push(name, ty.clone(), kind);
        parameters.push((ty, access));
    }
    (parameters, printed)
}

/// Assigns the parameters that have no value yet.
fn assign_first(rng: &mut Rng, shared: &Shared, body: &mut Body, parameters: &[(Ty, Access)]) {
    let all = body.scope.len();
    for (index, (ty, access)) in parameters.iter().enumerate() {
        if *access == Access::Assigns {
            let name = body.scope[index].name.clone();
            // Of the parameters, those before it have a value.
            let later = body.scope.split_off(index);
            let value = body.expr(rng, shared, ty, 1, Context::Typed);
            body.scope.extend(later);
            body.line(&format!("{name} = {value};"));
        }
    }
    debug_assert_eq!(body.scope.len(), all, "an assignment declares nothing");
}

/// The end of a procedure: its result, if it has one.
fn finish(rng: &mut Rng, shared: &Shared, body: &mut Body) {
    if let Return::Value(ty) = body.returns.clone() {
        let value = body.expr(rng, shared, &ty, 2, Context::Typed);
        body.line(&format!("return {value};"));
    }
}

fn result(rng: &mut Rng, shared: &Shared, body: &mut Body) -> (Option<Ty>, String) {
    let result = rng.bool().then(|| shared.types.any(rng, 1));
    body.returns = result.clone().map_or(Return::Empty, Return::Value);
    let arrow = result.as_ref().map(|ty| format!(" -> {}", shared.types.print(ty))).unwrap_or_default();
    (result, arrow)
}

/// A procedure that does not communicate.
pub fn procedure(rng: &mut Rng, shared: &mut Shared, index: usize, size: Size) -> String {
    let mut body = Body::new(Place::Process);
    let (parameters, printed) = parameters(rng, shared, &mut body);
    let (result, arrow) = result(rng, shared, &mut body);
    assign_first(rng, shared, &mut body, &parameters);
    let count = rng.u32(0..=size.statements);
    body.statements(rng, shared, count, 2);
    finish(rng, shared, &mut body);
    let (name, offered) = named(shared, &format!("q{index}"));
    let text = format!("{offered}proc q{index}({}){arrow} {{\n{}}}\n", printed.join(", "), body.text);
    shared.procedures.push(Procedure { name, parameters, result });
    text
}

/// A procedure that communicates.
pub fn called(rng: &mut Rng, shared: &mut Shared, index: usize) -> String {
    let mut body = Body::new(Place::Process);
    let (parameters, values) = parameters(rng, shared, &mut body);
    let (result, arrow) = result(rng, shared, &mut body);
    assign_first(rng, shared, &mut body, &parameters);
    let mut timing = Timing::Independent;
    let (mut channels, mut printed) = (Vec::new(), Vec::new());
    for number in 0..rng.usize(1..3) {
        let payload: Vec<Ty> = (0..rng.usize(0..3)).map(|_| shared.types.any(rng, 1)).collect();
        let direction = if rng.bool() { Direction::In } else { Direction::Out };
        let types: Vec<String> = payload.iter().map(|ty| shared.types.print(ty)).collect();
        let word = if direction == Direction::In { "in" } else { "out" };
        printed.push(format!("{word} on{number}({})", types.join(", ")));
        // What the partner waits for is sent in any case: before a communication, there is no early return.
        let returns = std::mem::replace(&mut body.returns, Return::Never);
        body.statements(rng, shared, 1, 1);
        if direction == Direction::In && rng.u32(0..3) == 0 {
            timing = Timing::Observed;
            body.receive_by_deadline(rng, shared, &format!("on{number}"), &payload);
        } else {
            body.communicate(rng, shared, direction, &format!("on{number}"), &payload);
        }
        body.returns = returns;
        channels.push((direction, payload));
    }
    body.statements(rng, shared, 1, 1);
    finish(rng, shared, &mut body);
    printed.extend(values);
    let (name, offered) = named(shared, &format!("c{index}q"));
    let text = format!("{offered}proc c{index}q({}){arrow} {{\n{}}}\n", printed.join(", "), body.text);
    shared.called.push(Called { procedure: Procedure { name, parameters, result }, channels, timing });
    text
}

/// A process with parameters.
pub fn template(rng: &mut Rng, shared: &mut Shared, index: usize) -> String {
    let [question, answer] = [0, 1].map(|_| shared.types.any(rng, 1));
    let values: Vec<Ty> = (0..rng.usize(0..3)).map(|_| shared.types.any_flat(rng, 1)).collect();
    let mut body = Body::new(Place::Process);
    let mut printed = vec![
        format!("in work({})", shared.types.print(&question)),
        format!("out done({})", shared.types.print(&answer)),
    ];
    for ty in &values {
        let name = body.fresh();
        let printed_type = shared.types.print(ty);
        printed.push(format!("{name}: {printed_type}"));
        // A copy, because the compiler computes with constants, and reports what would fault.
        let copy = body.fresh();
        body.line(&format!("var {copy}: {printed_type} = {name};"));
        body.push(copy, ty.clone(), Kind::Plain);
    }
    // It holds no object while it waits forever: a fused program ends then, and all objects have to be free.
    serve(rng, shared, &mut body, ("work", &question), ("done", &answer));
    let (name, offered) = named(shared, &format!("T{index}"));
    let text = format!("{offered}process T{index}({}) {{\n{}}}\n", printed.join(", "), body.text);
    shared.templates.push(Template { name, question, answer, values });
    text
}

/// A process of a module that answers on channels of the module.
pub fn service(rng: &mut Rng, shared: &mut Shared, index: usize) -> String {
    let [question, answer] = [0, 1].map(|_| shared.types.any(rng, 1));
    let mut body = Body::new(Place::Process);
    let ((ask, _), (reply, _)) = (named(shared, &format!("ask{index}")), named(shared, &format!("reply{index}")));
    let (local_ask, local_reply) = (format!("ask{index}"), format!("reply{index}"));
    // Nothing may use it: it waits forever.
    serve(rng, shared, &mut body, (&local_ask, &question), (&local_reply, &answer));
    let text = format!(
        "pub channel {local_ask}({});\npub channel {local_reply}({});\nprocess S{index} {{\n{}}}\n",
        shared.types.print(&question),
        shared.types.print(&answer),
        body.text
    );
    shared.services.push(Service { ask, reply, question, answer });
    text
}

/// A loop that answers each question.
fn serve(rng: &mut Rng, shared: &Shared, body: &mut Body, (ask, question): (&str, &Ty), (reply, answer): (&str, &Ty)) {
    body.line(&format!("while {{ idle in({ask}, $question);"));
    body.level += 1;
    body.push("question".into(), question.clone(), Kind::Plain);
    body.statements(rng, shared, 1, 1);
    let value = body.expr(rng, shared, answer, 2, Context::Typed);
    body.line(&format!("out({reply}, {value}); }}"));
    body.level -= 1;
}
