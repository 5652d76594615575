//! Modules that a random program imports by name: some of random items, and one with parameters, a ring of values.

use super::Size;
use super::body::Body;
use super::items;
use super::shared::{Access, Called, Context, Direction, Function, Place, Procedure, Shared, Template, Timing};
use super::types::Ty;
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

/// The files of a program's modules, and the imports of its first file.
#[derive(Default)]
pub struct Modules {
    /// Names and texts.
    pub files: Vec<(String, String)>,
    /// The imports.
    pub imports: String,
    rings: usize,
}

impl Modules {
    /// A module of random items; it imports the ones before it.
    pub fn add(&mut self, rng: &mut Rng, shared: &mut Shared, size: Size, plenty: u32) {
        let name = format!("m{}", self.files.len());
        let mut text = self.imports.clone();
        shared.types.home = format!("{name}.");
        let named = rng.usize(1..3);
        shared.types.extend(rng, named, plenty);
        text += &shared.types.declarations();
        match rng.u32(0..4) {
            0 => text += &items::limits(rng, shared),
            1 => text += &items::constants(rng, shared),
            2 => text += &items::table(rng, shared),
            _ => {}
        }
        for index in 0..[0, 1, 1, 2][rng.usize(0..4)] {
            text += &items::function(rng, shared, index, size);
        }
        for index in 0..rng.usize(0..2) {
            text += &items::procedure(rng, shared, index, size);
        }
        if rng.u32(0..3) == 0 {
            text += &items::called(rng, shared, 0);
        }
        if rng.u32(0..3) == 0 {
            text += &items::template(rng, shared, 0);
        }
        if rng.bool() {
            text += &items::service(rng, shared, 0);
        }
        shared.types.home.clear();
        self.imports += &format!("import \"{name}.esp\" as {name};\n");
        self.files.push((format!("{name}.esp"), text));
    }

    /// The module with parameters, imported once or several times with other arguments.
    pub fn add_ring(&mut self, rng: &mut Rng, shared: &mut Shared) {
        self.files.push(("ring.esp".into(), RING.into()));
        for _ in 0..rng.usize(1..3) {
            let name = format!("ring{}", self.rings);
            self.rings += 1;
            if rng.u32(0..3) == 0 {
                self.imports += &format!("import \"ring.esp\" as {name};\n");
                offer_ring(shared, &name, Ty::Int(IntType::U8), 3);
                continue;
            }
            let element = shared.types.any_flat(rng, 1);
            let empty = Body::new(Place::Function).expr(rng, shared, &element, 0, Context::Typed);
            let length = rng.u32(1..5);
            self.imports += &format!(
                "import \"ring.esp\"(T = {}, N = {length} + 1 - 1, EMPTY = {empty}) as {name};\n",
                shared.types.print(&element)
            );
            offer_ring(shared, &name, element, length);
        }
    }
}

/// A ring of values, whatever type they have.
const RING: &str = "\
pub param type T = u8;
pub param const N = 3;
param const EMPTY: T = 0;
pub type ringT = record { f0: int, f1: array[N] of T };
pub const NEW: array[1] of ringT = [{ 0, [EMPTY; N] }];
fn limit() -> int { return N; }
fn next(n: int) -> int { return n < 0 || n + 1 >= limit() ? 0 : n + 1; }
pub fn get(ring: ringT, i: int) -> T { return ring.f1[int(u32(i) % N)]; }
pub fn count(ring: ringT, x: T) -> int {
  var n = 0;
  for i in 0..N { if (ring.f1[i] == x) n += 1; }
  return n;
}
pub fn filled(x: T) -> ringT { return { N, [x; N] }; }
pub proc put(ring: #ringT, x: T) -> bool {
  var place = next(ring.f0);
  #search for i in 0..N { for j in 0..N { if (ring.f1[j] == x) break search; } place = i; }
  ring.f1[place] = x;
  ring.f0 = place;
  return place == 0;
}
pub proc rotate(ring: #ringT) {
  var first = ring.f1[0];
  for i in 1..N { ring.f1[i - 1] = ring.f1[i]; }
  ring.f1[N - 1] = first;
}
pub proc forward(in from(T), out to(T), times: int) -> T {
  in(from, $x);
  out(to, x == EMPTY && times > 0 ? EMPTY : x);
  return x;
}
pub process Copy(in from(T), out to(T), other: T) {
  while { idle in(from, $x); out(to, x == EMPTY ? other : x); }
}
";

/// What an import of [`RING`] offers.
fn offer_ring(shared: &mut Shared, name: &str, element: Ty, length: u32) {
    let int = || Ty::Int(IntType::I32);
    let array = Ty::Array(length, Box::new(element.clone()));
    let ring = shared.types.add_record(format!("{name}.ringT"), vec![int(), array]);
    shared.constants.push((format!("{name}.NEW"), 1, ring.clone()));
    shared.limits.push((format!("{name}.N"), i128::from(length)));
    let functions = [
        ("get", vec![ring.clone(), int()], element.clone()),
        ("count", vec![ring.clone(), element.clone()], int()),
        ("filled", vec![element.clone()], ring.clone()),
    ];
    for (local, parameters, result) in functions {
        shared.functions.push(Function { name: format!("{name}.{local}"), parameters, result });
    }
    let procedures = [
        ("put", vec![(ring.clone(), Access::Writes), (element.clone(), Access::Reads)], Some(Ty::Bool)),
        ("rotate", vec![(ring, Access::Writes)], None),
    ];
    for (local, parameters, result) in procedures {
        shared.procedures.push(Procedure { name: format!("{name}.{local}"), parameters, result });
    }
    shared.called.push(Called {
        procedure: Procedure {
            name: format!("{name}.forward"),
            parameters: vec![(int(), Access::Reads)],
            result: Some(element.clone()),
        },
        channels: vec![(Direction::In, vec![element.clone()]), (Direction::Out, vec![element.clone()])],
        timing: Timing::Independent,
    });
    shared.templates.push(Template {
        name: format!("{name}.Copy"),
        question: element.clone(),
        answer: element.clone(),
        values: vec![element],
    });
}
