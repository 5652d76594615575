//! What names mean in each scope, as far as a translation of ticks depends on it: typedefs, enumerators, which values
//! are cspecs and vspecs, and the parameters of functions. Leaves all other types to the C compiler.

use std::collections::HashMap;

/// What is known of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// Only the C compiler knows it.
    Plain,
    /// A struct or union, by its number.
    Record(usize),
    Cspec(Box<Shape>),
    Vspec(Box<Shape>),
    Pointer(Box<Shape>),
    Array(Box<Shape>),
    Function {
        result: Box<Shape>,
        parameters: Parameters,
    },
}

/// The parameters of a function.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Parameters {
    /// Not declared, or declared in a form that is no type name.
    Unknown,
    /// The type name of each, which ones are structs or unions, and whether further arguments may follow.
    Known { types: Vec<String>, are_records: Vec<bool>, is_variadic: bool },
}

impl Shape {
    /// The type of what a pointer or array refers to.
    pub(crate) fn target(&self) -> Shape {
        match self {
            Shape::Pointer(target) | Shape::Array(target) => (**target).clone(),
            // A function designator dereferenced is the function.
            Shape::Function { .. } => self.clone(),
            Shape::Plain | Shape::Record(_) | Shape::Cspec(_) | Shape::Vspec(_) => Shape::Plain,
        }
    }

    /// The type of a call's result.
    pub(crate) fn result(&self) -> Shape {
        match self {
            Shape::Function { result, .. } => (**result).clone(),
            Shape::Pointer(target) => target.result(),
            Shape::Plain | Shape::Record(_) | Shape::Cspec(_) | Shape::Vspec(_) | Shape::Array(_) => Shape::Plain,
        }
    }

    /// The parameters of a function or of one that is pointed to.
    pub(crate) fn parameters(&self) -> &Parameters {
        match self {
            Shape::Function { parameters, .. } => parameters,
            Shape::Pointer(target) => target.parameters(),
            Shape::Plain | Shape::Record(_) | Shape::Cspec(_) | Shape::Vspec(_) | Shape::Array(_) => {
                &Parameters::Unknown
            }
        }
    }
}

/// What a name means.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Entity {
    Typedef(Shape),
    Enumerator,
    /// A variable or function of static code.
    Object(Shape),
    /// A variable with the storage class `register`, which has no address.
    Register(Shape),
    /// A variable of generated code, by its number in the tick.
    Local(usize),
}

/// A member of a struct or union.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Member {
    pub(crate) shape: Shape,
    pub(crate) is_bit_field: bool,
}

/// What a positional initial value of a struct or union belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Slot {
    /// A member, by the token with its name.
    Named(usize),
    /// An anonymous struct or union.
    Anonymous(usize),
}

/// A struct or union.
#[derive(Clone, Default, Debug)]
struct Record {
    members: HashMap<String, Member>,
    slots: Vec<Slot>,
    is_union: bool,
}

/// The scopes that are open at one place of the text.
#[derive(Debug)]
pub(crate) struct Scopes {
    names: Vec<HashMap<String, Entity>>,
    tags: Vec<HashMap<String, usize>>,
    records: Vec<Record>,
}

impl Scopes {
    pub(crate) fn new() -> Scopes {
        Scopes { names: vec![HashMap::new()], tags: vec![HashMap::new()], records: Vec::new() }
    }

    pub(crate) fn open(&mut self) {
        self.names.push(HashMap::new());
        self.tags.push(HashMap::new());
    }

    pub(crate) fn close(&mut self) {
        self.names.pop();
        self.tags.pop();
    }

    pub(crate) fn declare(&mut self, name: &str, entity: Entity) {
        let scope = self.names.last_mut().expect("the scope of the file is never closed");
        scope.insert(name.to_owned(), entity);
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Entity> {
        self.names.iter().rev().find_map(|scope| scope.get(name))
    }

    pub(crate) fn is_typedef(&self, name: &str) -> bool {
        matches!(self.find(name), Some(Entity::Typedef(_)))
    }

    /// The struct or union with a tag: the visible one, or a new one of the innermost scope.
    pub(crate) fn tagged(&mut self, tag: &str) -> usize {
        match self.tags.iter().rev().find_map(|scope| scope.get(tag)) {
            Some(record) => *record,
            None => self.declare_tag(tag),
        }
    }

    /// A struct or union that is defined here: the one of that tag of the innermost scope, or a new one.
    pub(crate) fn declare_tag(&mut self, tag: &str) -> usize {
        let fresh = self.records.len();
        let scope = self.tags.last_mut().expect("the scope of the file is never closed");
        let record = *scope.entry(tag.to_owned()).or_insert(fresh);
        if record == fresh {
            self.records.push(Record::default());
        }
        record
    }

    pub(crate) fn untagged(&mut self) -> usize {
        self.records.push(Record::default());
        self.records.len() - 1
    }

    pub(crate) fn add_member(&mut self, record: usize, token: usize, name: &str, member: Member) {
        self.records[record].members.insert(name.to_owned(), member);
        self.records[record].slots.push(Slot::Named(token));
    }

    pub(crate) fn set_union(&mut self, record: usize) {
        self.records[record].is_union = true;
    }

    /// The parts that positional initial values of a struct or union belong to; of a union, the first.
    pub(crate) fn slots(&self, record: usize) -> &[Slot] {
        let Record { slots, is_union, .. } = &self.records[record];
        if *is_union { &slots[..slots.len().min(1)] } else { slots }
    }

    /// Adds the members of an anonymous struct or union to the one that contains it.
    pub(crate) fn absorb(&mut self, record: usize, anonymous: usize) {
        let members = self.records[anonymous].members.clone();
        self.records[record].members.extend(members);
        self.records[record].slots.push(Slot::Anonymous(anonymous));
    }

    pub(crate) fn member(&self, record: usize, name: &str) -> Option<&Member> {
        self.records[record].members.get(name)
    }
}
