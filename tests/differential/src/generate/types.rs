//! Types of random programs, and random values of them for the environment to send.

use fastrand::Rng;
use quaject_esp_exec::datum::Datum;
use quaject_esp_syntax::types::IntType;

/// Whether programs use what the language has beyond the papers: modules, enumerations, alternatives, procedures,
/// templates, deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Additions {
    /// They do not.
    #[default]
    Off,
    /// They do.
    On,
}

/// A type of a random program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Ty {
    /// Any integer type.
    Int(IntType),
    /// `bool`
    Bool,
    /// `duration`
    Duration,
    /// `bytes[<=n]`
    Bytes(u32),
    /// `array[n] of t`
    Array(u32, Box<Ty>),
    /// Index into [`Types::enumerations`].
    Enumeration(usize),
    /// Index into [`Types::records`].
    Record(usize),
    /// Index into [`Types::unions`].
    Union(usize),
    /// Index into [`Types::boxed`].
    Boxed(usize),
}

/// An enumeration.
#[derive(Clone, Debug)]
pub struct Enumeration {
    /// The type of its codes.
    pub int: IntType,
    /// Names and codes of its cases.
    pub cases: Vec<(String, i128)>,
    /// The name of the case of every other code.
    pub other: Option<String>,
}

/// A type with a pool.
#[derive(Clone, Debug)]
pub struct Boxed {
    /// What its objects hold.
    pub content: Ty,
    /// The number of its objects.
    pub capacity: u32,
}

/// The named types of one program.
#[derive(Default, Debug)]
pub struct Types {
    /// Enumerations.
    pub enumerations: Vec<Enumeration>,
    /// Fields of each record.
    pub records: Vec<Vec<Ty>>,
    /// Payloads of each union's tags.
    pub unions: Vec<Vec<Option<Ty>>>,
    /// Types with a pool.
    pub boxed: Vec<Boxed>,
    /// What the names of the module begin with whose text is made: `m0.`, or nothing in the program's first file.
    pub home: String,
    /// Whether there are enumerations and durations.
    pub additions: Additions,
    enumeration_names: Vec<String>,
    record_names: Vec<String>,
    union_names: Vec<String>,
    boxed_names: Vec<String>,
}

/// Every integer type.
pub const INTS: [IntType; 8] =
    [IntType::U8, IntType::U16, IntType::U32, IntType::U64, IntType::I8, IntType::I16, IntType::I32, IntType::I64];

impl Types {
    /// No types yet.
    pub fn new(additions: Additions) -> Types {
        Types { additions, ..Types::default() }
    }

    /// Up to `count` more named types of the current module; pools have `plenty` times as many objects as a small
    /// program needs.
    pub fn extend(&mut self, rng: &mut Rng, count: usize, plenty: u32) {
        for _ in 0..count {
            match rng.u32(0..5) {
                _ if self.additions == Additions::On && rng.u32(0..3) == 0 => {
                    let name = self.next_name(&self.enumeration_names, "e");
                    self.enumerations.push(enumeration(rng));
                    self.enumeration_names.push(name);
                }
                0 | 1 => {
                    let fields = (0..rng.usize(1..4)).map(|_| self.any(rng, 1)).collect();
                    let name = self.next_name(&self.record_names, "r");
                    self.add_record(name, fields);
                }
                2 => {
                    let tags = (0..rng.usize(1..5)).map(|_| (rng.u32(0..4) > 0).then(|| self.any(rng, 1))).collect();
                    let name = self.next_name(&self.union_names, "u");
                    self.unions.push(tags);
                    self.union_names.push(name);
                }
                3 => {
                    let bound = rng.u32(1..12);
                    self.add_boxed(Boxed { content: Ty::Bytes(bound), capacity: plenty * rng.u32(1..7) });
                }
                _ => {
                    let content = if self.records.is_empty() || rng.bool() {
                        let element = self.scalar(rng);
                        Ty::Array(rng.u32(1..5), Box::new(element))
                    } else {
                        Ty::Bytes(rng.u32(1..20))
                    };
                    self.add_boxed(Boxed { content, capacity: plenty * rng.u32(1..7) });
                }
            }
        }
    }

    /// The next name of a kind in the current module.
    fn next_name(&self, names: &[String], kind: &str) -> String {
        format!("{}{kind}{}", self.home, names.iter().filter(|name| self.is_at_home(name)).count())
    }

    /// Whether the current module declares the item.
    fn is_at_home(&self, name: &str) -> bool {
        name.strip_prefix(self.home.as_str()).is_some_and(|rest| !rest.contains('.'))
    }

    /// A record of this name, as the program's first file calls it.
    pub fn add_record(&mut self, name: String, fields: Vec<Ty>) -> Ty {
        self.records.push(fields);
        self.record_names.push(name);
        Ty::Record(self.records.len() - 1)
    }

    fn add_boxed(&mut self, boxed: Boxed) {
        self.boxed_names.push(self.next_name(&self.boxed_names, "b"));
        self.boxed.push(boxed);
    }

    /// An item's name in the current module.
    pub fn local<'n>(&self, name: &'n str) -> &'n str {
        name.strip_prefix(self.home.as_str()).unwrap_or(name)
    }

    /// An integer type, `bool`, or an addition.
    pub fn scalar(&self, rng: &mut Rng) -> Ty {
        if self.additions == Additions::On && rng.u32(0..6) == 0 {
            if !self.enumerations.is_empty() && rng.u32(0..3) > 0 {
                return Ty::Enumeration(rng.usize(0..self.enumerations.len()));
            }
            return Ty::Duration;
        }
        if rng.u32(0..6) == 0 {
            Ty::Bool
        } else if rng.bool() {
            Ty::Int(IntType::I32)
        } else {
            Ty::Int(INTS[rng.usize(0..INTS.len())])
        }
    }

    /// Any type, aggregates up to a depth.
    pub fn any(&self, rng: &mut Rng, depth: u32) -> Ty {
        match rng.u32(0..12) {
            0 | 1 if !self.records.is_empty() => Ty::Record(rng.usize(0..self.records.len())),
            2 | 3 if !self.unions.is_empty() => Ty::Union(rng.usize(0..self.unions.len())),
            4 | 5 if !self.boxed.is_empty() => Ty::Boxed(rng.usize(0..self.boxed.len())),
            6 => Ty::Bytes(rng.u32(0..10)),
            7 if depth > 0 => Ty::Array(rng.u32(1..4), Box::new(self.any(rng, depth - 1))),
            8 if !self.enumerations.is_empty() => Ty::Enumeration(rng.usize(0..self.enumerations.len())),
            _ => self.scalar(rng),
        }
    }

    /// Any type of which the environment can send a value.
    pub fn any_from_outside(&self, rng: &mut Rng, depth: u32) -> Ty {
        let ty = self.any(rng, depth);
        let is_total = self.has_all_parts(&ty, &|part| match part {
            Ty::Enumeration(id) => self.enumerations[*id].other.is_some(),
            Ty::Int(_) | Ty::Bool | Ty::Duration | Ty::Bytes(_) => true,
            Ty::Array(..) | Ty::Record(_) | Ty::Union(_) | Ty::Boxed(_) => true,
        });
        if is_total { ty } else { Ty::Int(IntType::U8) }
    }

    /// Any type without boxed parts.
    pub fn any_flat(&self, rng: &mut Rng, depth: u32) -> Ty {
        match self.any(rng, depth) {
            ty if self.is_flat(&ty) => ty,
            _ => self.scalar(rng),
        }
    }

    /// Whether a value of the type has no boxed part.
    pub fn is_flat(&self, ty: &Ty) -> bool {
        self.has_all_parts(ty, &|part| !matches!(part, Ty::Boxed(_)))
    }

    /// Whether the type and each part of it has the property.
    fn has_all_parts(&self, ty: &Ty, property: &dyn Fn(&Ty) -> bool) -> bool {
        let has = |part: &Ty| self.has_all_parts(part, property);
        property(ty)
            && match ty {
                Ty::Int(_) | Ty::Bool | Ty::Duration | Ty::Bytes(_) | Ty::Enumeration(_) => true,
                Ty::Array(_, element) => has(element),
                Ty::Record(id) => self.records[*id].iter().all(has),
                Ty::Union(id) => self.unions[*id].iter().flatten().all(has),
                Ty::Boxed(id) => has(&self.boxed[*id].content),
            }
    }

    /// The type as ESP writes it in the current module.
    pub fn print(&self, ty: &Ty) -> String {
        match ty {
            Ty::Int(int) => int.name().to_string(),
            Ty::Bool => "bool".to_string(),
            Ty::Duration => "duration".to_string(),
            // A bound is at least 1.
            Ty::Bytes(bound) => format!("bytes[<={}]", bound + 1),
            Ty::Array(length, element) => format!("array[{length}] of {}", self.print(element)),
            Ty::Enumeration(id) => self.local(&self.enumeration_names[*id]).to_string(),
            Ty::Record(id) => self.local(&self.record_names[*id]).to_string(),
            Ty::Union(id) => self.local(&self.union_names[*id]).to_string(),
            Ty::Boxed(id) => self.local(&self.boxed_names[*id]).to_string(),
        }
    }

    /// The types of a message as ESP writes them; some with names.
    pub fn print_message(&self, rng: &mut Rng, types: &[Ty]) -> String {
        let has_names = self.additions == Additions::On && rng.u32(0..4) == 0;
        let print = |(index, ty): (usize, &Ty)| {
            let printed = self.print(ty);
            if has_names { format!("n{index}: {printed}") } else { printed }
        };
        types.iter().enumerate().map(print).collect::<Vec<_>>().join(", ")
    }

    /// A random value.
    pub fn datum(&self, rng: &mut Rng, ty: &Ty) -> Datum {
        match ty {
            Ty::Int(int) => Datum::Int(int_value(rng, *int)),
            Ty::Duration => Datum::Int(int_value(rng, IntType::I64)),
            Ty::Enumeration(id) => {
                let enumeration = &self.enumerations[*id];
                let known = rng.choice(&enumeration.cases).filter(|_| rng.u32(0..4) > 0).map(|(_, code)| *code);
                Datum::Int(known.unwrap_or_else(|| int_value(rng, enumeration.int)))
            }
            Ty::Bool => Datum::Bool(rng.bool()),
            Ty::Bytes(bound) => Datum::Bytes((0..rng.u32(0..=bound + 1)).map(|_| rng.u8(..)).collect()),
            Ty::Array(length, element) => Datum::Array((0..*length).map(|_| self.datum(rng, element)).collect()),
            Ty::Record(id) => Datum::Record(self.records[*id].iter().map(|field| self.datum(rng, field)).collect()),
            Ty::Union(id) => {
                let tag = rng.usize(0..self.unions[*id].len());
                let payload = self.unions[*id][tag].as_ref().map(|payload| Box::new(self.datum(rng, payload)));
                Datum::Union(tag as u32, payload)
            }
            Ty::Boxed(id) => self.datum(rng, &self.boxed[*id].content),
        }
    }

    /// The declarations of the current module, pools included.
    pub fn declarations(&self) -> String {
        let offered = if self.home.is_empty() { "" } else { "pub " };
        let mut text = String::new();
        let numbered = |names: &[String]| -> Vec<(usize, String)> {
            let own = names.iter().enumerate().filter(|(_, name)| self.is_at_home(name));
            own.map(|(id, name)| (id, self.local(name).to_string())).collect()
        };
        for (id, name) in numbered(&self.enumeration_names) {
            text += &format!("{offered}type {name} = {};\n", self.enumerations[id].text());
        }
        for (id, name) in numbered(&self.boxed_names) {
            let boxed = &self.boxed[id];
            text +=
                &format!("{offered}type {name} = {};  pool {name} {};\n", self.print(&boxed.content), boxed.capacity);
        }
        for (id, name) in numbered(&self.record_names) {
            let fields: Vec<String> = self.records[id]
                .iter()
                .enumerate()
                .map(|(index, field)| format!("f{index}: {}", self.print(field)))
                .collect();
            text += &format!("{offered}type {name} = record {{ {} }};\n", fields.join(", "));
        }
        for (id, name) in numbered(&self.union_names) {
            let tags: Vec<String> = self.unions[id]
                .iter()
                .enumerate()
                .map(|(index, tag)| match tag {
                    Some(payload) => format!("t{index}: {}", self.print(payload)),
                    None => format!("t{index}"),
                })
                .collect();
            text += &format!("{offered}type {name} = union {{ {} }};\n", tags.join(", "));
        }
        text
    }
}

impl Enumeration {
    /// The names of all cases.
    pub fn names(&self) -> Vec<&str> {
        self.cases.iter().map(|(name, _)| name).chain(&self.other).map(String::as_str).collect()
    }

    fn text(&self) -> String {
        let mut next = 0;
        let mut cases: Vec<String> = Vec::new();
        for (name, code) in &self.cases {
            cases.push(if *code == next { name.clone() } else { format!("{name} = {code}") });
            next = code + 1;
        }
        cases.extend(self.other.iter().map(|other| format!("else {other}")));
        format!("enum {} {{ {} }}", self.int.name(), cases.join(", "))
    }
}

/// An enumeration of one to five cases; most have a case of every other code.
fn enumeration(rng: &mut Rng) -> Enumeration {
    let int = if rng.bool() { IntType::U8 } else { INTS[rng.usize(0..INTS.len())] };
    let mut cases: Vec<(String, i128)> = Vec::new();
    let mut code = if rng.bool() { 0 } else { int_value(rng, int) };
    for index in 0..rng.usize(1..6) {
        if code > int.max() || cases.iter().any(|(_, known)| *known == code) {
            break;
        }
        cases.push((format!("s{index}"), code));
        code = if rng.u32(0..3) > 0 { code + 1 } else { int_value(rng, int) };
    }
    let other = (rng.u32(0..3) > 0).then(|| "other".to_string());
    Enumeration { int, cases, other }
}

/// A value that is small, or at the edge of its type.
pub fn int_value(rng: &mut Rng, int: IntType) -> i128 {
    match rng.u32(0..8) {
        0 => int.max(),
        1 => int.min() + i128::from(int == IntType::I64),
        2 => int.wrap(i128::from(rng.u64(..))),
        3 => int.wrap(-1 - i128::from(rng.u32(0..3))).max(int.min() + 1),
        _ => i128::from(rng.u32(0..9)),
    }
}
