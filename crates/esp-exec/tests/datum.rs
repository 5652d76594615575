//! Values as text: literals in ESP's own syntax, errors, and the round trip of random values of random types.

use quaject_esp_exec::datum::{Datum, conforms, parse_message, print_message};
use quaject_esp_ir::ir::{
    Body, HandOff, IntType, Location, MemoryMode, PoolId, Process, ProcessId, Program, Type, TypeId, TypeTable,
};
use quaject_esp_syntax::types::{Aggregate, Pool};

fn program() -> Program {
    let process = |name: &str, replicas, replicated| Process {
        name: name.into(),
        replicas,
        replicated,
        labels: vec![],
        sites: vec![],
        body: Body::default(),
        members: vec![],
        operations: vec![],
        location: Location::default(),
    };
    Program {
        files: vec![],
        calls: vec![],
        types: TypeTable::new(),
        memory: MemoryMode::Automatic,
        constants: vec![],
        channels: vec![],
        interfaces: vec![],
        externs: vec![],
        functions: vec![],
        processes: vec![process("P", 1, false), process("Q", 3, true), process("R", 2, true)],
        paths: Vec::new(),
        hand_off: HandOff::default(),
        assert_messages: Vec::new(),
    }
}

/// The types of the tests by name: `send`, `user`, `boxed` and the scalar ones.
fn types(program: &mut Program, names: &str) -> Vec<TypeId> {
    let part = |name: &str, ty| (name.into(), ty);
    let table = &mut program.types;
    let send = table.add_aggregate(Aggregate {
        name: Some("send".into()),
        parts: vec![part("dest", Some(TypeTable::I32)), part("size", Some(TypeTable::U32))],
    });
    let send = table.intern(Type::Record(send));
    let user = table.add_aggregate(Aggregate {
        name: Some("user".into()),
        parts: vec![part("send", Some(send)), part("n", Some(TypeTable::I64)), part("eos", None)],
    });
    let user = table.intern(Type::Union(user));
    let pool = table.add_pool(Pool { name: "boxed".into(), content: send, capacity: 1 });
    names
        .split_whitespace()
        .map(|name| match name {
            "send" => send,
            "user" => user,
            "boxed" => table.intern(Type::Boxed(pool)),
            "bytes" => table.intern(Type::Bytes { bound: 8 }),
            "array" => table.intern(Type::Array { length: 3, element: TypeTable::U8 }),
            "users" => table.intern(Type::Array { length: 2, element: user }),
            "pid" => table.intern(Type::Pid([ProcessId(0), ProcessId(1)].into())),
            "bool" => TypeTable::BOOL,
            "u8" => TypeTable::U8,
            "u64" => TypeTable::U64,
            "int" => TypeTable::I32,
            "i64" => TypeTable::I64,
            other => panic!("no test type {other}"),
        })
        .collect()
}

/// Parses `text` as values of the named types and prints what was read, or the error.
fn check(names: &str, text: &str, expected: &str) {
    let mut program = program();
    let types = types(&mut program, names);
    let printed = match parse_message(&program, &types, text) {
        Ok(message) => {
            assert!(types.iter().zip(&message).all(|(ty, datum)| conforms(&program, *ty, datum)), "{text}");
            let printed = print_message(&program, &types, &message);
            assert_eq!(parse_message(&program, &types, &printed), Ok(message), "{printed}");
            printed
        }
        Err(error) => error.to_string(),
    };
    assert_eq!(printed, expected, "{names}: {text}");
}

#[test]
fn literals() {
    check("", "", "");
    check("", "  \t", "");
    check("int int", "3 -7", "3 -7");
    check("int", "  -0x80 ", "-128");
    check("u64", "18_446_744_073_709_551_615", "18446744073709551615");
    check("i64", "-9223372036854775808", "-9223372036854775808");
    check("u8 u8 u8", r"'a' '\n' '\xff'", "97 10 255");
    check("u8 u8", "0b11 0o17", "3 15");
    check("bool bool", "true false", "true false");
    check("bytes", r#""GET\r\n""#, r#""GET\r\n""#);
    check("bytes", r#""\xff\x00a\"\\""#, r#""\xff\0a\"\\""#);
    check("bytes", "\"é\"", "\"é\"");
    check("send", "{1, 2}", "{1, 2}");
    check("send", "{ size: 2 , dest: -1, }", "{-1, 2}");
    check("boxed", "{1,2}", "{1, 2}");
    check("user user user", "send |> {7, 4096} eos n|>-3", "send |> {7, 4096} eos n |> -3");
    check("user", "eos |> {}", "eos");
    check("array", "[1, 2, 3]", "[1, 2, 3]");
    check("array", "[7; 3]", "[7, 7, 7]");
    check("users", "[eos, send |> {1, 2}]", "[eos, send |> {1, 2}]");
    check("pid pid pid", "@P @Q[2] @Q", "@P @Q[2] @Q[0]");
}

#[test]
fn errors() {
    check("int", "", "column 1: expected `int`, found the end of the line");
    check("int", "x", "column 1: expected `int`, found `x`");
    check("int", "3 4", "column 3: expected the end of the line, found `4`");
    check("int int", "3,4", "column 2: expected a blank between values, found `,`");
    check("u8", "300", "column 1: expected `u8`, 0 to 255, found `300`");
    check("u8", "-1", "column 1: expected `u8`, 0 to 255, found `-1`");
    check("int", "010", "column 1: expected `int` (a decimal number does not start with 0), found `010`");
    check("int", "-", "column 1: expected `int`, found `-`");
    check("u8", "'é'", "column 1: expected one byte between `'`, found `'`");
    check("bool", "1", "column 1: expected `true` or `false`, found `1`");
    check("bytes", "é", "column 1: expected `bytes` in double quotes, found `é`");
    check("bytes", "\"ab", "column 4: expected `\"`, found the end of the line");
    check("bytes", "\"123456789\"", "column 1: expected at most 8 bytes, found 9 bytes");
    check("bytes", r#""\q""#, "column 2: expected an escape: one of `\\n \\r \\t \\0 \\\\ \\' \\\" \\xHH`, found `\\`");
    check("bytes", r#""\x4""#, "column 2: expected two hexadecimal digits after `\\x`, found `\\`");
    check("send", "{1}", "column 1: expected 2 fields, found 1");
    check("send", "{1, 2, 3}", "column 8: expected `}` after 2 fields, found `3`");
    check("send", "{dest: 1, dest: 2}", "column 11: expected `size:`, found `dest`");
    check("send", "{size: 1, 2}", "column 11: expected a field name, as before, found `2`");
    check("user", "sned", "column 1: expected `send` or `n` or `eos`, found `sned`");
    check("user", "send", "column 5: expected `|>`, found the end of the line");
    check("array", "[1, 2]", "column 1: expected 3 elements, found 2");
    check("array", "[1, 2, 3, 4]", "column 11: expected `]` after 3 elements, found `4`");
    check("array", "[1; 4]", "column 5: expected `3` elements, found `4`");
    check("pid", "@R", "column 2: expected `P` or `Q`, found `R`");
    check("pid", "@Q[3]", "column 1: expected a replica number below 3, found number 3");
    check(
        "int",
        "99999999999999999999999999999999999999999",
        "column 1: expected `int`, -2147483648 to 2147483647, found `99999999999999999999...`",
    );
}

fn random_type(program: &mut Program, depth: u32, random: &mut fastrand::Rng) -> TypeId {
    let ints = [TypeTable::U8, TypeTable::U16, TypeTable::U32, TypeTable::U64];
    let signed = [TypeTable::I8, TypeTable::I16, TypeTable::I32, TypeTable::I64];
    let parts = |program: &mut Program, random: &mut fastrand::Rng, empty: bool| -> Vec<_> {
        (0..random.u32(1..4))
            .map(|n| {
                let ty = random_type(program, depth - 1, random);
                (format!("f{n}").into(), (!empty || random.bool()).then_some(ty))
            })
            .collect()
    };
    match if depth == 0 { random.u32(0..5) } else { random.u32(0..9) } {
        0 => *random.choice(ints).as_ref().unwrap(),
        1 => *random.choice(signed).as_ref().unwrap(),
        2 => TypeTable::BOOL,
        3 => program.types.intern(Type::Bytes { bound: random.u32(0..6) }),
        4 => program.types.intern(Type::Pid([ProcessId(0), ProcessId(2)].into())),
        5 => {
            let element = random_type(program, depth - 1, random);
            program.types.intern(Type::Array { length: random.u32(1..4), element })
        }
        6 => {
            let parts = parts(program, random, false);
            let id = program.types.add_aggregate(Aggregate { name: None, parts });
            program.types.intern(Type::Record(id))
        }
        7 => {
            let parts = parts(program, random, true);
            let id = program.types.add_aggregate(Aggregate { name: None, parts });
            program.types.intern(Type::Union(id))
        }
        _ => {
            let content = random_type(program, 0, random);
            let pool: PoolId = program.types.add_pool(Pool { name: "t".into(), content, capacity: 2 });
            program.types.intern(Type::Boxed(pool))
        }
    }
}

fn random_datum(program: &Program, ty: TypeId, random: &mut fastrand::Rng) -> Datum {
    let int = |int: IntType, random: &mut fastrand::Rng| {
        let (min, max) = (IntType::min(int), IntType::max(int));
        Datum::Int(match random.u32(0..4) {
            0 => min,
            1 => max,
            2 => 0,
            _ => random.i128(min..=max),
        })
    };
    match program.types.get(ty) {
        Type::Int(ty) => int(*ty, random),
        Type::Bool => Datum::Bool(random.bool()),
        Type::Pid(processes) => {
            let process = processes[random.usize(0..processes.len())];
            let replica = random.u32(0..program.processes[process.0 as usize].replicas);
            Datum::Pid(program.instance(process, i128::from(replica)).unwrap())
        }
        Type::Bytes { bound } => {
            let length = random.u32(0..=*bound);
            Datum::Bytes(
                (0..length)
                    .map(|_| if random.bool() { random.u8(..) } else { *b"\"\\\xc3\xa9"[..].first().unwrap() })
                    .collect(),
            )
        }
        Type::Array { length, element } => {
            Datum::Array((0..*length).map(|_| random_datum(program, *element, random)).collect())
        }
        Type::Record(id) => {
            let parts = &program.types.aggregate(*id).parts;
            Datum::Record(parts.iter().map(|(_, ty)| random_datum(program, ty.unwrap(), random)).collect())
        }
        Type::Union(id) => {
            let parts = &program.types.aggregate(*id).parts;
            let tag = random.usize(0..parts.len());
            Datum::Union(tag as u32, parts[tag].1.map(|ty| Box::new(random_datum(program, ty, random))))
        }
        Type::Boxed(pool) => random_datum(program, program.types.pool(*pool).content, random),
        Type::Error => unreachable!("never generated"),
    }
}

#[test]
fn random_values_survive_the_round_trip() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..20_000 {
        let mut program = program();
        let types: Vec<_> = (0..random.u32(0..4)).map(|_| random_type(&mut program, 3, &mut random)).collect();
        let message: Vec<_> = types.iter().map(|ty| random_datum(&program, *ty, &mut random)).collect();
        assert!(types.iter().zip(&message).all(|(ty, datum)| conforms(&program, *ty, datum)));
        let text = print_message(&program, &types, &message);
        assert_eq!(parse_message(&program, &types, &text), Ok(message), "{text}");
    }
}

#[test]
fn no_text_panics() {
    let mut random = fastrand::Rng::with_seed(2);
    let alphabet: Vec<char> = "0x-_19'\"\\né{}[]|>;:,@PQ sendos tru\u{0}".chars().collect();
    for _ in 0..50_000 {
        let mut program = program();
        let types = types(&mut program, ["send user", "bytes", "pid array", "u8 bool", "users"][random.usize(0..5)]);
        let text: String = (0..random.usize(0..20)).map(|_| alphabet[random.usize(0..alphabet.len())]).collect();
        if let Ok(message) = parse_message(&program, &types, &text) {
            let printed = print_message(&program, &types, &message);
            assert_eq!(parse_message(&program, &types, &printed), Ok(message), "{text} -> {printed}");
        }
    }
}
