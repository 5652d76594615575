//! Declarations: specifiers and declarators, with the scopes they fill, and the translation of `cspec` and `vspec`.
//!
//! Both are type constructors like `*`. `T cspec D` becomes `T (*D)(qjt_c)`, a pointer to a function that is never
//! called,
//! and `T vspec D` becomes `T *(*D)(qjt_v)`, so that the C compiler checks their types. Everything else is copied.

use crate::parser::{Edit, Parser};
use crate::scope::{Entity, Member, Parameters, Shape};

/// What the specifiers of a declaration say.
#[derive(Clone, Debug)]
pub(crate) struct Specifiers {
    pub(crate) shape: Shape,
    pub(crate) is_typedef: bool,
    /// The first storage class that a variable of generated code cannot have.
    pub(crate) storage: Option<usize>,
    pub(crate) is_register: bool,
}

/// A declarator.
#[derive(Clone, Debug)]
pub(crate) struct Declarator {
    /// The number of the token with the name; none in a type name.
    pub(crate) name: Option<usize>,
    pub(crate) shape: Shape,
    /// The parameters of a function definition with this declarator.
    pub(crate) parameters: Vec<(usize, Shape)>,
}

const QUALIFIERS: &[&str] = &[
    "const",
    "volatile",
    "restrict",
    "__const",
    "__const__",
    "__volatile",
    "__volatile__",
    "__restrict",
    "__restrict__",
    "__extension__",
    "_Nonnull",
    "_Nullable",
    "__signed",
    "__signed__",
];
const STORAGE: &[&str] =
    &["extern", "static", "auto", "register", "_Thread_local", "__thread", "thread_local", "constexpr"];
const FUNCTION_SPECIFIERS: &[&str] = &["inline", "__inline", "__inline__", "_Noreturn", "__noreturn__"];
const TYPE_WORDS: &[&str] = &[
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "bool",
    "_Complex",
    "__complex__",
    "_Imaginary",
    "__int128",
    "__int128_t",
    "__uint128_t",
    "_Float16",
    "_Float32",
    "_Float64",
    "_Float128",
    "_Float32x",
    "_Float64x",
    "__float128",
    "__float80",
    "__ibm128",
    "__bf16",
    "__builtin_va_list",
    "_Decimal32",
    "_Decimal64",
    "_Decimal128",
    "__auto_type",
];
/// Words with an argument in parentheses, or names for it, that say nothing of the type.
const ATTRIBUTES: &[&str] =
    &["__attribute__", "__attribute", "__declspec", "_Alignas", "alignas", "__asm__", "asm", "__asm", "_Atomic"];
const TYPE_OPERATORS: &[&str] = &["typeof", "__typeof__", "__typeof", "typeof_unqual", "_BitInt", "_Atomic"];

impl Parser<'_> {
    /// Whether a declaration or type name begins at a token.
    pub(crate) fn starts_type(&self, ahead: usize) -> bool {
        let word = self.peek(ahead);
        if !self.is_name(ahead) {
            return false;
        }
        let is_keyword = [QUALIFIERS, STORAGE, FUNCTION_SPECIFIERS, TYPE_WORDS, TYPE_OPERATORS]
            .iter()
            .any(|words| words.contains(&word))
            || matches!(word, "struct" | "union" | "enum" | "typedef" | "_Alignas" | "alignas");
        if word == "__extension__" {
            return self.starts_type(ahead + 1);
        }
        is_keyword || self.scopes.is_typedef(word)
    }

    /// Passes attributes: `__attribute__((..))`, `[[..]]`, `asm("..")`.
    pub(crate) fn skip_attributes(&mut self) {
        loop {
            if ATTRIBUTES.contains(&self.peek(0)) {
                self.advance();
                while matches!(self.peek(0), "volatile" | "goto" | "inline" | "__volatile__") {
                    self.advance();
                }
                if self.is_next("(") {
                    self.skip_group();
                }
            } else if self.is_next("[") && self.peek(1) == "[" {
                self.skip_group();
            } else {
                return;
            }
        }
    }

    /// Reads the specifiers of a declaration.
    pub(crate) fn specifiers(&mut self) -> Specifiers {
        let mut found = Specifiers { shape: Shape::Plain, is_typedef: false, storage: None, is_register: false };
        let mut has_type = false;
        loop {
            let word = self.peek(0);
            if word == "typedef" {
                found.is_typedef = true;
                self.advance();
            } else if STORAGE.contains(&word) {
                found.is_register |= word == "register";
                if !matches!(word, "auto" | "register") {
                    found.storage.get_or_insert(self.at);
                }
                self.advance();
            } else if TYPE_OPERATORS.contains(&word) && self.peek(1) == "(" {
                has_type = true;
                found.shape = self.type_of_name();
                self.advance();
                self.skip_group();
            } else if QUALIFIERS.contains(&word) || FUNCTION_SPECIFIERS.contains(&word) {
                self.advance();
            } else if ATTRIBUTES.contains(&word) || word == "[" && self.peek(1) == "[" {
                self.skip_attributes();
            } else if TYPE_WORDS.contains(&word) {
                has_type = true;
                self.advance();
            } else if matches!(word, "struct" | "union") {
                has_type = true;
                found.shape = self.record();
            } else if word == "enum" {
                has_type = true;
                self.enumeration();
            } else if !has_type && self.is_name(0) && !matches!(word, "cspec" | "vspec") {
                match self.scopes.find(word) {
                    Some(Entity::Typedef(shape)) => found.shape = shape.clone(),
                    // A type that only the compiler knows, or none at all: `f() {` of old C.
                    _ if self.is_name(1) || self.peek(1) == "*" => {}
                    _ => return found,
                }
                has_type = true;
                self.advance();
            } else {
                return found;
            }
        }
    }

    /// The shape that `typeof(name)`, which is next, has; of other operands only the compiler knows the type.
    fn type_of_name(&self) -> Shape {
        match self.scopes.find(self.peek(2)) {
            Some(Entity::Object(shape) | Entity::Typedef(shape)) if self.peek(3) == ")" => shape.clone(),
            _ => Shape::Plain,
        }
    }

    /// Reads a struct or union, whose members become known if they are here.
    fn record(&mut self) -> Shape {
        let is_union = self.is_next("union");
        self.advance();
        self.skip_attributes();
        let tag = self.is_name(0).then(|| self.peek(0));
        self.at += usize::from(tag.is_some());
        self.skip_attributes();
        if !self.is_next("{") {
            return tag.map_or(Shape::Plain, |tag| Shape::Record(self.scopes.tagged(tag)));
        }
        let record = match tag {
            Some(tag) => self.scopes.declare_tag(tag),
            None => self.scopes.untagged(),
        };
        if is_union {
            self.scopes.set_union(record);
        }
        if self.enter() {
            self.advance();
            while !self.is_at_end() && !self.is_next("}") {
                self.members(record);
            }
            self.advance();
            self.leave();
        }
        Shape::Record(record)
    }

    /// Reads the members of one declaration.
    fn members(&mut self, record: usize) {
        let before = self.at;
        if matches!(self.peek(0), "_Static_assert" | "static_assert") {
            self.advance();
            self.skip_group();
        }
        let specifiers = self.specifiers();
        let mut is_anonymous = true;
        while !self.is_at_end() && !matches!(self.peek(0), ";" | "}") {
            let declarator = self.declarator(specifiers.shape.clone());
            let is_bit_field = self.is_next(":");
            if let Some(name) = declarator.name {
                is_anonymous = false;
                let member = Member { shape: declarator.shape, is_bit_field };
                self.scopes.add_member(record, name, self.token_text(name), member);
            }
            while !self.is_at_end() && !matches!(self.peek(0), "," | ";" | "}") {
                if matches!(self.peek(0), "(" | "[" | "{") { self.skip_group() } else { self.advance() }
            }
            if !self.accept(",") {
                break;
            }
        }
        if let (true, Shape::Record(anonymous)) = (is_anonymous, &specifiers.shape) {
            self.scopes.absorb(record, *anonymous);
        }
        if !self.accept(";") && self.at == before {
            self.advance();
        }
    }

    fn enumeration(&mut self) {
        self.advance();
        self.skip_attributes();
        if self.is_name(0) {
            self.advance();
        }
        self.skip_attributes();
        if self.is_next(":") {
            self.advance();
            self.specifiers();
        }
        if !self.accept("{") {
            return;
        }
        while !self.is_at_end() && !self.is_next("}") {
            if self.is_name(0) {
                self.scopes.declare(self.peek(0), Entity::Enumerator);
            }
            while !self.is_at_end() && !matches!(self.peek(0), "," | "}") {
                if matches!(self.peek(0), "(" | "[" | "{") { self.skip_group() } else { self.advance() }
            }
            self.accept(",");
        }
        self.advance();
    }

    /// Reads a declarator, with or without a name.
    pub(crate) fn declarator(&mut self, base: Shape) -> Declarator {
        let mut shape = base;
        // What is inserted behind the declarator, last prefix first.
        let mut endings = Vec::new();
        loop {
            match self.peek(0) {
                "*" | "^" => shape = Shape::Pointer(Box::new(shape)),
                "cspec" => {
                    self.replace_token(self.at, "(*");
                    endings.push(")(qjt_c)");
                    shape = Shape::Cspec(Box::new(shape));
                }
                "vspec" => {
                    self.replace_token(self.at, "*(*");
                    endings.push(")(qjt_v)");
                    shape = Shape::Vspec(Box::new(shape));
                }
                word if QUALIFIERS.contains(&word) => {}
                word if ATTRIBUTES.contains(&word) => {
                    self.skip_attributes();
                    continue;
                }
                _ => break,
            }
            self.advance();
        }
        let mut found = Declarator { name: None, shape: Shape::Plain, parameters: Vec::new() };
        let mut inner = None;
        if self.is_next("(") && self.is_grouped() {
            inner = Some(self.at);
            self.skip_group();
        } else if self.is_name(0) && !self.starts_type_word() {
            found.name = Some(self.at);
            self.advance();
            self.skip_attributes_of_name();
        }
        let shape = self.suffixes(shape, &mut found.parameters);
        let end = self.end_before(self.at);
        endings.iter().rev().for_each(|text| self.insert_at(end, *text));
        match inner {
            None => found.shape = shape,
            Some(open) => {
                let after = std::mem::replace(&mut self.at, open + 1);
                if self.enter() {
                    let outer = std::mem::take(&mut found.parameters);
                    found = self.declarator(shape);
                    if found.parameters.is_empty() && found.name.is_some_and(|name| name + 1 == after - 1) {
                        // `int (f)(int x) { .. }`
                        found.parameters = outer;
                    }
                    self.leave();
                }
                self.at = after;
            }
        }
        found
    }

    /// Whether the next word cannot be a declared name.
    fn starts_type_word(&self) -> bool {
        let word = self.peek(0);
        TYPE_WORDS.contains(&word) || matches!(word, "struct" | "union" | "enum" | "sizeof" | "return")
    }

    fn skip_attributes_of_name(&mut self) {
        while self.is_next("[") && self.peek(1) == "[" {
            self.skip_group();
        }
    }

    /// Whether the parenthesis that is next begins a nested declarator, not parameters.
    fn is_grouped(&self) -> bool {
        let mut ahead = 1;
        if ATTRIBUTES.contains(&self.peek(ahead)) {
            return true;
        }
        while QUALIFIERS.contains(&self.peek(ahead)) {
            ahead += 1;
        }
        match self.peek(ahead) {
            "*" | "^" | "cspec" | "vspec" | "(" => true,
            "[" | ")" | "..." | "" => false,
            _ => self.is_name(ahead) && !self.starts_type(ahead),
        }
    }

    /// Reads what follows the name: lengths of arrays and parameters of functions.
    fn suffixes(&mut self, base: Shape, parameters: &mut Vec<(usize, Shape)>) -> Shape {
        enum Suffix {
            Array,
            Function(Parameters),
        }
        let mut suffixes = Vec::new();
        loop {
            if self.is_next("[") {
                self.skip_group();
                suffixes.push(Suffix::Array);
            } else if self.is_next("(") {
                let (known, names) = self.parameters();
                if suffixes.is_empty() {
                    *parameters = names;
                }
                suffixes.push(Suffix::Function(known));
            } else {
                break;
            }
        }
        suffixes.into_iter().rev().fold(base, |shape, suffix| match suffix {
            Suffix::Array => Shape::Array(Box::new(shape)),
            Suffix::Function(parameters) => Shape::Function { result: Box::new(shape), parameters },
        })
    }

    /// Reads the parameters of a function: their types, and the names with their shapes.
    fn parameters(&mut self) -> (Parameters, Vec<(usize, Shape)>) {
        let (mut types, mut are_records, mut names) = (Vec::new(), Vec::new(), Vec::new());
        if !self.enter() {
            return (Parameters::Unknown, names);
        }
        self.advance();
        let (mut is_variadic, mut is_known) = (false, !self.is_next(")"));
        while !self.is_at_end() && !self.is_next(")") {
            let start = self.at;
            if self.accept("...") {
                is_variadic = true;
            } else if self.is_next("void") && self.peek(1) == ")" {
                self.advance();
            } else {
                is_known &= self.starts_type(0) || self.is_name(1) || self.peek(1) == "*";
                let specifiers = self.specifiers();
                let declarator = self.declarator(specifiers.shape);
                self.skip_attributes();
                let unnamed = declarator.name.map(|name| {
                    let token = self.tokens[name];
                    Edit { start: token.start, end: token.end, text: String::new() }
                });
                // `int a[static 3]` and `register int a` are no type names.
                is_known &= (start..self.at).all(|at| !matches!(self.token_text(at), "static" | "register"));
                are_records.push(matches!(declarator.shape, Shape::Record(_)));
                types.push(self.rewritten(start, self.at, unnamed.as_slice()));
                names.extend(declarator.name.map(|name| (name, declarator.shape)));
            }
            while !self.is_at_end() && !matches!(self.peek(0), "," | ")") {
                is_known = false;
                if matches!(self.peek(0), "(" | "[" | "{") { self.skip_group() } else { self.advance() }
            }
            self.accept(",");
        }
        self.advance();
        self.leave();
        let parameters =
            if is_known { Parameters::Known { types, are_records, is_variadic } } else { Parameters::Unknown };
        (parameters, names)
    }

    /// Declares what a declarator names.
    pub(crate) fn declare(&mut self, specifiers: &Specifiers, declarator: &Declarator) {
        let Some(name) = declarator.name else { return };
        let shape = declarator.shape.clone();
        let entity = match specifiers {
            Specifiers { is_typedef: true, .. } => Entity::Typedef(shape),
            Specifiers { is_register: true, .. } => Entity::Register(shape),
            Specifiers { .. } => Entity::Object(shape),
        };
        self.scopes.declare(self.token_text(name), entity);
    }
}
