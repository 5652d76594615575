//! Reads the text form of the flow IR back: `read(print(program))` is the program. Items begin in column 1. Checks
//! only what it needs to build the program; `verify` does the rest.

mod body;
mod tokens;

use crate::ir::*;
use crate::lexer::{Lexer, Token};
use quaject_esp_syntax::types::{Aggregate, AggregateId, Pool};
use smol_str::SmolStr;
use std::collections::HashMap;
use std::fmt;

/// Why a text is not a program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected {}, found {}", self.line, self.column, self.expected, self.found)
    }
}

impl std::error::Error for ReadError {}

/// Parses the text form of a program.
pub fn read(text: &str) -> Result<Program, ReadError> {
    let mut reader = Reader::new(text);
    reader.keyword("esp")?;
    reader.sign("-")?;
    reader.keyword("ir")?;
    reader.number::<u32>("1").and_then(|version| if version == 1 { Ok(()) } else { reader.fail("version 1") })?;
    reader.declare();
    while reader.token != Token::End {
        reader.item()?;
    }
    Ok(reader.program)
}

type Result<T, E = ReadError> = std::result::Result<T, E>;

struct Reader<'a> {
    lexer: Lexer<'a>,
    token: Token,
    /// Values, slots and blocks are counted without gaps, so that none has a number above the text's length.
    max_ids: usize,
    program: Program,
    aggregates: HashMap<String, (AggregateKind, u32)>,
    pools: HashMap<String, PoolId>,
    channels: HashMap<String, ChannelId>,
    functions: HashMap<String, FnId>,
    externs: HashMap<String, ExternId>,
    processes: HashMap<String, ProcessId>,
}

#[derive(Clone, Copy)]
enum AggregateKind {
    Record,
    Union,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        let mut lexer = Lexer::new(text);
        let token = lexer.next();
        let program = Program {
            files: Vec::new(),
            calls: Vec::new(),
            types: TypeTable::new(),
            memory: MemoryMode::Automatic,
            constants: Vec::new(),
            channels: Vec::new(),
            interfaces: Vec::new(),
            externs: Vec::new(),
            functions: Vec::new(),
            processes: Vec::new(),
            paths: Vec::new(),
            hand_off: HandOff::default(),
            assert_messages: Vec::new(),
        };
        Reader {
            lexer,
            token,
            max_ids: text.len(),
            program,
            aggregates: HashMap::new(),
            pools: HashMap::new(),
            channels: HashMap::new(),
            functions: HashMap::new(),
            externs: HashMap::new(),
            processes: HashMap::new(),
        }
    }

    /// Assigns ids to all named items first, because the text may use names before their declarations.
    fn declare(&mut self) {
        let mut lexer = self.lexer.clone();
        let mut token = self.token.clone();
        let mut counts = [0u32; 4];
        let mut next = |count: usize| {
            counts[count] += 1;
            counts[count] - 1
        };
        while token != Token::End {
            let at_start = lexer.column() == 1;
            let Token::Word(keyword) = &token else {
                token = lexer.next();
                continue;
            };
            let keyword = keyword.clone();
            token = lexer.next();
            if !at_start {
                continue;
            }
            if token == Token::Word("pure".into()) && keyword == "extern" {
                token = lexer.next();
            }
            if token == Token::Sign("^") && keyword == "pool" {
                token = lexer.next();
            }
            let Token::Word(name) = &token else { continue };
            let mut name = name.clone();
            let placeholder = TypeTable::ERROR;
            match keyword.as_str() {
                "channel" => drop(self.channels.insert(name, ChannelId(next(0)))),
                "extern" => drop(self.externs.insert(name, ExternId(next(1)))),
                "function" => drop(self.functions.insert(name, FnId(next(2)))),
                "process" => {
                    // A fused process may have the name of its only member. The name then refers to the member, the
                    // first.
                    let id = ProcessId(next(3));
                    self.processes.entry(name).or_insert(id);
                }
                "pool" => {
                    let pool = Pool { name: name.as_str().into(), content: placeholder, capacity: 0 };
                    let id = self.program.types.add_pool(pool);
                    self.pools.insert(name, id);
                }
                "record" | "union" => {
                    let own = (name != "_").then(|| SmolStr::from(name.as_str()));
                    token = lexer.next();
                    if token == Token::Sign(".") {
                        token = lexer.next();
                        if let Token::Int(number) = token {
                            name = format!("{name}.{number}");
                        }
                    }
                    let id = self.program.types.add_aggregate(Aggregate { name: own, parts: Vec::new() });
                    let (kind, ty) = match keyword.as_str() {
                        "record" => (AggregateKind::Record, Type::Record(id)),
                        _ => (AggregateKind::Union, Type::Union(id)),
                    };
                    self.program.types.intern(ty);
                    self.aggregates.insert(name, (kind, id.0));
                }
                _ => {}
            }
        }
    }

    fn item(&mut self) -> Result<()> {
        match self.word("an item")?.as_str() {
            "memory" => {
                self.program.memory = match self.word("`auto` or `manual`")?.as_str() {
                    "auto" => MemoryMode::Automatic,
                    "manual" => MemoryMode::Manual,
                    _ => return self.fail("`auto` or `manual` before"),
                };
            }
            "hand_off" => {
                self.keyword("direct")?;
                self.program.hand_off = HandOff::Direct;
            }
            "assert" => {
                let message = self.string()?.into();
                let location = self.location()?;
                self.program.assert_messages.push((location, message));
            }
            "file" => {
                let file = self.string()?;
                self.program.files.push(file);
            }
            "call" => {
                let file = self.string()?;
                self.keyword("of")?;
                let callee = self.string()?.into();
                let location = self.location()?;
                // An earlier one, so that calls have no cycle.
                if usize::from(location.file) >= self.program.files.len() {
                    return self.fail("a location in an earlier file before");
                }
                self.program.files.push(file);
                self.program.calls.push(Call { callee, location });
            }
            "record" | "union" => self.aggregate()?,
            "pool" => {
                let pool = self.pool()?;
                let capacity = self.number("how many objects")?;
                self.keyword("of")?;
                let content = self.ty()?;
                let name = self.program.types.pool(pool).name.clone();
                self.program.types.set_pool(pool, Pool { name, content, capacity });
            }
            "constant" => self.constant()?,
            "channel" => self.channel()?,
            "interface" => self.interface()?,
            "extern" => self.external()?,
            "function" => self.function()?,
            "process" => self.process()?,
            "path" => self.path()?,
            _ => return self.fail("an item before"),
        }
        Ok(())
    }

    fn aggregate_name(&mut self) -> Result<String> {
        let mut name = self.word("a name")?;
        if self.eat(".") {
            let number: u32 = self.number("a number")?;
            name = format!("{name}.{number}");
        }
        Ok(name)
    }

    fn aggregate(&mut self) -> Result<()> {
        let name = self.aggregate_name()?;
        let Some((_, index)) = self.aggregates.get(&name).copied() else { return self.fail("a name before") };
        self.sign("{")?;
        let parts = self.list("}", |reader| {
            let name = reader.word("a name")?;
            let ty = if reader.eat(":") { Some(reader.ty()?) } else { None };
            Ok((SmolStr::from(name), ty))
        })?;
        self.program.types.set_parts(AggregateId(index), parts);
        Ok(())
    }

    fn pool(&mut self) -> Result<PoolId> {
        self.sign("^")?;
        self.name(|reader| &reader.pools, "a pool")
    }

    fn ty(&mut self) -> Result<TypeId> {
        if self.is("^") {
            let pool = self.pool()?;
            return Ok(self.program.types.intern(Type::Boxed(pool)));
        }
        let name = self.aggregate_name()?;
        if let Some((kind, index)) = self.aggregates.get(&name) {
            let id = AggregateId(*index);
            let ty = match kind {
                AggregateKind::Record => Type::Record(id),
                AggregateKind::Union => Type::Union(id),
            };
            return Ok(self.program.types.intern(ty));
        }
        let ints = [IntType::U8, IntType::U16, IntType::U32, IntType::U64];
        let signed = [IntType::I8, IntType::I16, IntType::I32, IntType::I64];
        let clock = [IntType::Time, IntType::Duration];
        if let Some(int) = ints.into_iter().chain(signed).chain(clock).find(|int| int.name() == name) {
            return Ok(TypeTable::int(int));
        }
        match name.as_str() {
            "bool" => Ok(TypeTable::BOOL),
            "error" => Ok(TypeTable::ERROR),
            "bytes" => {
                self.sign("[")?;
                self.sign("<=")?;
                let bound = self.number("a bound")?;
                self.sign("]")?;
                Ok(self.program.types.intern(Type::Bytes { bound }))
            }
            "pid" => {
                self.sign("(")?;
                let processes = self.list(")", |reader| reader.name(|reader| &reader.processes, "a process"))?;
                Ok(self.program.types.intern(Type::Pid(processes.into())))
            }
            "array" => {
                self.sign("[")?;
                let length = self.number("a length")?;
                self.sign("]")?;
                self.keyword("of")?;
                let element = self.ty()?;
                Ok(self.program.types.intern(Type::Array { length, element }))
            }
            _ => self.fail("a type before"),
        }
    }

    fn constant(&mut self) -> Result<()> {
        if self.numbered("c")? as usize != self.program.constants.len() {
            return self.fail("constants in order before");
        }
        let name = self.word("a name")?.into();
        self.sign(":")?;
        let ty = self.ty()?;
        self.sign("=")?;
        let content = self.literal()?;
        self.program.constants.push(Constant { name, ty, content });
        Ok(())
    }

    fn literal(&mut self) -> Result<Literal> {
        if let Token::Bytes(_) = self.token {
            return Ok(Literal::Bytes(self.bytes()?));
        }
        if self.eat("[") {
            return Ok(Literal::Parts(self.list("]", Reader::literal)?));
        }
        if self.eat_word("fill") {
            return Ok(Literal::Repeat(Box::new(self.literal()?)));
        }
        if self.eat_word("tag") {
            let tag = self.number("a tag's number")?;
            let payload = if self.eat("=>") { Some(Box::new(self.literal()?)) } else { None };
            return Ok(Literal::Tagged(tag, payload));
        }
        Ok(Literal::Scalar(self.number("a literal")?))
    }

    fn channel(&mut self) -> Result<()> {
        let name = self.word("a name")?.into();
        self.sign("(")?;
        let payload = self.list(")", Reader::ty)?;
        let mut value_names = vec![None; payload.len()];
        if self.eat_word("names") {
            self.sign("(")?;
            let names = self.list(")", |reader| reader.word("a name, or `_`"))?;
            if names.len() != payload.len() {
                return self.fail("as many names as values before");
            }
            value_names = names.into_iter().map(|name| (name != "_").then(|| name.into())).collect();
        }
        let boundary = if self.eat_word("to_environment") {
            Boundary::ToEnvironment
        } else if self.eat_word("from_environment") {
            Boundary::FromEnvironment
        } else {
            Boundary::Internal
        };
        let sharing = if self.eat_word("shared") { Sharing::Shared } else { Sharing::Ports };
        let mut policy = Policy::Receiver;
        if self.eat_word("policy") {
            policy = match self.word("a policy")?.as_str() {
                "receiver" => Policy::Receiver,
                "sender" => Policy::Sender,
                "queue" => Policy::Queue,
                _ => return self.fail("`sender`, `receiver` or `queue` before"),
            };
        }
        let driver = if self.eat("=") { Some(self.string()?) } else { None };
        let location = self.location()?;
        self.program.channels.push(Channel { name, payload, value_names, boundary, sharing, policy, driver, location });
        Ok(())
    }

    fn channel_id(&mut self) -> Result<ChannelId> {
        self.name(|reader| &reader.channels, "a channel")
    }

    fn interface(&mut self) -> Result<()> {
        let name = self.word("a name")?.into();
        self.sign("(")?;
        let channel = self.channel_id()?;
        self.sign(")")?;
        self.sign("{")?;
        let mut entries = Vec::new();
        while !self.eat("}") {
            let name = self.word("a name")?.into();
            self.sign("(")?;
            let parameters = self.list(")", |reader| {
                let name = SmolStr::from(reader.word("a name")?);
                reader.sign(":")?;
                Ok((name, reader.ty()?))
            })?;
            self.sign("(")?;
            let patterns = self.list(")", Reader::pattern)?;
            entries.push(InterfaceEntry { name, parameters, patterns });
        }
        self.program.interfaces.push(Interface { name, channel, entries });
        Ok(())
    }

    fn external(&mut self) -> Result<()> {
        let mut name = self.word("a name")?;
        let mut purity = Purity::Impure;
        if name == "pure" && !self.is("(") {
            purity = Purity::Pure;
            name = self.word("a name")?;
        }
        self.sign("(")?;
        let parameters = self.list(")", |reader| {
            let mutability = if reader.eat("#") { Mutability::Mutable } else { Mutability::Immutable };
            Ok((reader.ty()?, mutability))
        })?;
        let result = if self.eat("->") { Some(self.ty()?) } else { None };
        self.program.externs.push(Extern { name: name.into(), purity, parameters, result });
        Ok(())
    }

    fn function(&mut self) -> Result<()> {
        let name = self.word("a name")?.into();
        self.sign("(")?;
        let parameters = self.list(")", Reader::ty)?;
        self.sign("->")?;
        let result = self.ty()?;
        let location = self.location()?;
        self.sign("{")?;
        let body = self.body(&[])?;
        self.program.functions.push(Function { name, parameters, result, body, location });
        Ok(())
    }

    fn process(&mut self) -> Result<()> {
        let name = self.word("a name")?.into();
        let (mut replicas, mut replicated) = (1, false);
        if self.eat("[") {
            replicas = self.number("how many replicas")?;
            replicated = true;
            self.sign("]")?;
        }
        let location = self.location()?;
        self.sign("{")?;
        let mut labels = Vec::new();
        while self.eat_word("label") {
            labels.push(self.label()?);
        }
        let mut sites = Vec::new();
        while self.is_numbered("site") {
            if self.numbered("site")? as usize != sites.len() {
                return self.fail("sites in order before");
            }
            let direction = match self.word("`in` or `out`")?.as_str() {
                "in" => Direction::In,
                "out" => Direction::Out,
                _ => return self.fail("`in` or `out` before"),
            };
            let channel = self.channel_id()?;
            sites.push(Site { channel, direction, location: self.location()? });
        }
        let mut members = Vec::new();
        if self.eat_word("members") {
            self.sign("(")?;
            members = self.list(")", |reader| reader.name(|reader| &reader.processes, "a process"))?;
        }
        let mut operations = Vec::new();
        while self.eat_word("operation") {
            let channel = self.channel_id()?;
            operations.push((self.location()?, channel));
        }
        let body = self.body(&labels)?;
        self.program.processes.push(Process {
            name,
            replicas,
            replicated,
            labels,
            sites,
            body,
            members,
            operations,
            location,
        });
        Ok(())
    }

    fn path(&mut self) -> Result<()> {
        let name = self.word("a name")?.into();
        let trigger = self.number("an instance")?;
        self.sign("{")?;
        let mut members = Vec::new();
        while self.eat_word("member") {
            let instance = self.number("an instance")?;
            self.keyword("at")?;
            let block = BlockId(self.numbered("block")?);
            let branch = self.number("a branch")?;
            self.keyword("values")?;
            self.sign("(")?;
            let values = self.list(")", Reader::value)?;
            self.keyword("slots")?;
            self.sign("(")?;
            let slots = self.list(")", |reader| {
                let own = SlotId(reader.numbered("s")?);
                reader.sign("=>")?;
                Ok((own, SlotId(reader.numbered("s")?)))
            })?;
            members.push(PathMember { instance, start: (block, branch), values, slots });
        }
        self.sign("}")?;
        self.program.paths.push(FastPath { name, trigger, members });
        Ok(())
    }

    fn label(&mut self) -> Result<SmolStr> {
        self.sign("#")?;
        if let Token::Int(number) = self.token {
            self.advance();
            return Ok(number.to_string().into());
        }
        Ok(self.word("a label")?.into())
    }
}
