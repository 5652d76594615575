//! Reads the text form of the flow IR back: `read(print(program))` is the program. Items begin in column 1. Checks
//! only what it needs to build the program; `verify` does the rest.

use crate::ir::*;
use crate::lexer::{Lexer, Token};
use crate::report::fault_name;
use crate::text::{BINARY_OPS, FAULTS, UNARY_OPS};
use quaject_esp_syntax::types::{Aggregate, AggregateId, Pool};
use smol_str::SmolStr;
use std::collections::HashMap;
use std::fmt;

/// Why a text is no program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadError {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// What could stand there.
    pub expected: String,
    /// What stands there.
    pub found: String,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: expected {}, found {}", self.line, self.column, self.expected, self.found)
    }
}

impl std::error::Error for ReadError {}

/// The program a text says.
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
    most: usize,
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
            types: TypeTable::new(),
            memory: MemoryMode::Automatic,
            channels: Vec::new(),
            interfaces: Vec::new(),
            externs: Vec::new(),
            functions: Vec::new(),
            processes: Vec::new(),
        };
        Reader {
            lexer,
            token,
            most: text.len(),
            program,
            aggregates: HashMap::new(),
            pools: HashMap::new(),
            channels: HashMap::new(),
            functions: HashMap::new(),
            externs: HashMap::new(),
            processes: HashMap::new(),
        }
    }

    /// Gives every named item its id, as text may use names before it says what they are.
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
                "process" => drop(self.processes.insert(name, ProcessId(next(3)))),
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

    fn fail<T>(&self, expected: &str) -> Result<T> {
        let (line, column) = self.lexer.position();
        Err(ReadError { line, column, expected: expected.to_string(), found: self.token.to_string() })
    }

    fn advance(&mut self) -> Token {
        let next = self.lexer.next();
        std::mem::replace(&mut self.token, next)
    }

    fn is(&self, sign: &'static str) -> bool {
        self.token == Token::Sign(sign)
    }

    fn eat(&mut self, sign: &'static str) -> bool {
        let is = self.is(sign);
        if is {
            self.advance();
        }
        is
    }

    fn sign(&mut self, sign: &'static str) -> Result<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(&format!("`{sign}`")) }
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(other) if other == word)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let is = self.is_word(word);
        if is {
            self.advance();
        }
        is
    }

    fn keyword(&mut self, word: &str) -> Result<()> {
        if self.eat_word(word) { Ok(()) } else { self.fail(&format!("`{word}`")) }
    }

    fn word(&mut self, expected: &str) -> Result<String> {
        match self.advance() {
            Token::Word(word) => Ok(word),
            other @ (Token::Int(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End) => {
                self.token = other;
                self.fail(expected)
            }
        }
    }

    fn number<T: TryFrom<i128>>(&mut self, expected: &str) -> Result<T> {
        match self.token {
            Token::Int(value) => match T::try_from(value) {
                Ok(value) => {
                    self.advance();
                    Ok(value)
                }
                Err(_) => self.fail(expected),
            },
            Token::Word(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End => self.fail(expected),
        }
    }

    fn bytes(&mut self) -> Result<Vec<u8>> {
        match &mut self.token {
            Token::Bytes(bytes) => {
                let bytes = std::mem::take(bytes);
                self.advance();
                Ok(bytes)
            }
            Token::Word(_) | Token::Int(_) | Token::Sign(_) | Token::Bad(_) | Token::End => {
                self.fail("a string in double quotes")
            }
        }
    }

    fn string(&mut self) -> Result<String> {
        match String::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text),
            Err(_) => self.fail("UTF-8 in the string before"),
        }
    }

    /// `x, x, .. close`
    fn list<T>(&mut self, close: &'static str, mut each: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = Vec::new();
        while !self.eat(close) {
            items.push(each(self)?);
            if !self.eat(",") {
                self.sign(close)?;
                break;
            }
        }
        Ok(items)
    }

    fn name<T: Copy>(&mut self, names: fn(&Self) -> &HashMap<String, T>, what: &str) -> Result<T> {
        let known = match &self.token {
            Token::Word(word) => names(self).get(word).copied(),
            Token::Int(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End => None,
        };
        match known {
            Some(id) => {
                self.advance();
                Ok(id)
            }
            None => self.fail(what),
        }
    }

    /// A letter or word directly followed by a number: `v3`, `block0`.
    fn numbered(&mut self, prefix: &str) -> Result<u32> {
        let number = match &self.token {
            Token::Word(word) => word.strip_prefix(prefix).and_then(|number| number.parse::<u32>().ok()),
            Token::Int(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End => None,
        };
        match number {
            Some(number) if (number as usize) < self.most => {
                self.advance();
                Ok(number)
            }
            Some(_) | None => self.fail(&format!("`{prefix}` and a number")),
        }
    }

    fn is_numbered(&self, prefix: &str) -> bool {
        match &self.token {
            Token::Word(word) => word.strip_prefix(prefix).is_some_and(|number| number.parse::<u32>().is_ok()),
            Token::Int(_) | Token::Bytes(_) | Token::Sign(_) | Token::Bad(_) | Token::End => false,
        }
    }

    fn location(&mut self) -> Result<Location> {
        if !self.eat("@") {
            return Ok(Location::default());
        }
        let file = self.number("a file number")?;
        self.sign(":")?;
        let line = self.number("a line")?;
        self.sign(":")?;
        let column = self.number("a column")?;
        Ok(Location { file, line, column })
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
            "file" => {
                let file = self.string()?;
                self.program.files.push(file);
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
            "channel" => self.channel()?,
            "interface" => self.interface()?,
            "extern" => self.external()?,
            "function" => self.function()?,
            "process" => self.process()?,
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
        if let Some(int) = ints.into_iter().chain(signed).find(|int| int.name() == name) {
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

    fn channel(&mut self) -> Result<()> {
        let name = self.word("a name")?.into();
        self.sign("(")?;
        let payload = self.list(")", Reader::ty)?;
        let boundary = if self.eat_word("to_world") {
            Boundary::ToWorld
        } else if self.eat_word("from_world") {
            Boundary::FromWorld
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
        self.program.channels.push(Channel { name, payload, boundary, sharing, policy, driver, location });
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
        let body = self.body(&labels)?;
        self.program.processes.push(Process { name, replicas, replicated, labels, sites, body, location });
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

    /// Slots, values and blocks up to the closing brace.
    fn body(&mut self, labels: &[SmolStr]) -> Result<Body> {
        let mut body = Body::default();
        let mut values: Vec<Option<ValueData>> = Vec::new();
        while self.eat_word("slot") {
            if self.numbered("s")? as usize != body.slots.len() {
                return self.fail("slots in order before");
            }
            let name = self.source_name()?;
            self.sign(":")?;
            body.slots.push(Slot { ty: self.ty()?, name });
        }
        while self.eat_word("value") {
            self.definition(&mut values)?;
        }
        while !self.eat("}") {
            if self.numbered("block")? as usize != body.blocks.len() {
                return self.fail("blocks in order before");
            }
            let mut parameters = Vec::new();
            if self.eat("(") {
                parameters = self.list(")", |reader| reader.definition(&mut values))?;
            }
            self.sign(":")?;
            let block = self.block(parameters, labels, &mut values)?;
            body.blocks.push(block);
        }
        for (number, value) in values.into_iter().enumerate() {
            match value {
                Some(value) => body.values.push(value),
                None => return self.fail(&format!("a definition of v{number} before")),
            }
        }
        Ok(body)
    }

    fn source_name(&mut self) -> Result<Option<SmolStr>> {
        if self.is(":") { Ok(None) } else { Ok(Some(self.word("a name")?.into())) }
    }

    fn value(&mut self) -> Result<Value> {
        Ok(Value(self.numbered("v")?))
    }

    fn optional(&mut self) -> Result<Option<Value>> {
        if self.eat_word("_") { Ok(None) } else { Ok(Some(self.value()?)) }
    }

    /// `v3 name: type`
    fn definition(&mut self, values: &mut Vec<Option<ValueData>>) -> Result<Value> {
        let value = self.value()?;
        let name = self.source_name()?;
        self.sign(":")?;
        let ty = self.ty()?;
        let index = value.0 as usize;
        if index >= values.len() {
            values.resize(index + 1, None);
        }
        if values[index].replace(ValueData { ty, name }).is_some() {
            return self.fail(&format!("one definition of v{index} before"));
        }
        Ok(value)
    }

    fn block_id(&mut self) -> Result<BlockId> {
        Ok(BlockId(self.numbered("block")?))
    }

    fn edge(&mut self) -> Result<Edge> {
        let to = self.block_id()?;
        let arguments = if self.eat("(") { self.list(")", Reader::value)? } else { Vec::new() };
        Ok(Edge { to, arguments })
    }

    fn block(
        &mut self,
        parameters: Vec<Value>,
        labels: &[SmolStr],
        values: &mut Vec<Option<ValueData>>,
    ) -> Result<Block> {
        let mut instructions = Vec::new();
        loop {
            let mut result = None;
            if self.is_numbered("v") {
                result = Some(self.definition(values)?);
                self.sign("=")?;
            }
            let word = self.word("an instruction")?;
            if result.is_none()
                && let Some((terminator, location)) = self.terminator(&word)?
            {
                return Ok(Block { parameters, instructions, terminator, location });
            }
            let op = self.op(&word, labels)?;
            instructions.push(Instruction { result, op, location: self.location()? });
        }
    }

    fn place(&mut self) -> Result<Place> {
        let base = if self.eat("*") { Base::Object(self.value()?) } else { Base::Slot(SlotId(self.numbered("s")?)) };
        let mut path = Vec::new();
        loop {
            if self.eat(".") {
                path.push(Step::Field(self.number("a field's number")?));
            } else if self.eat("[") {
                path.push(Step::Element(self.value()?));
                self.sign("]")?;
            } else if self.eat("|") {
                path.push(Step::Payload(self.number("a tag's number")?));
            } else {
                return Ok(Place { base, path });
            }
        }
    }

    fn operand(&mut self) -> Result<Operand> {
        if self.is_numbered("v") { Ok(Operand::Value(self.value()?)) } else { Ok(Operand::Place(self.place()?)) }
    }

    fn passed(&mut self) -> Result<Passed> {
        let transfer = if self.eat_word("move") {
            Transfer::Move
        } else {
            self.keyword("keep")?;
            Transfer::Keep
        };
        Ok(Passed { operand: self.operand()?, transfer })
    }

    fn order(&mut self) -> Result<ByteOrder> {
        if self.eat_word("be") {
            return Ok(ByteOrder::Big);
        }
        self.keyword("le")?;
        Ok(ByteOrder::Little)
    }

    /// `be(16)`
    fn number_form(&mut self) -> Result<(ByteOrder, u32)> {
        let order = self.order()?;
        self.sign("(")?;
        let bits = self.number("a width")?;
        self.sign(")")?;
        Ok((order, bits))
    }

    fn field(&mut self) -> Result<BitField> {
        let order = self.order()?;
        self.sign("(")?;
        let layout_bytes = self.number("the layout's bytes")?;
        self.sign(",")?;
        let offset_bits = self.number("the field's first bit")?;
        self.sign(",")?;
        let width_bits = self.number("the field's width")?;
        self.sign(")")?;
        Ok(BitField { layout_bytes, offset_bits, width_bits, order })
    }

    fn call(&mut self) -> Result<(Vec<Operand>, Option<Place>)> {
        self.sign("(")?;
        let arguments = self.list(")", Reader::operand)?;
        let to = if self.eat_word("to") { Some(self.place()?) } else { None };
        Ok((arguments, to))
    }

    fn comma(&mut self) -> Result<()> {
        self.sign(",")
    }

    fn op(&mut self, word: &str, labels: &[SmolStr]) -> Result<Op> {
        if let Some((_, op)) = UNARY_OPS.iter().find(|(other, _)| *other == word) {
            return Ok(Op::Unary(*op, self.value()?));
        }
        if let Some((_, op)) = BINARY_OPS.iter().find(|(other, _)| *other == word) {
            let a = self.value()?;
            self.comma()?;
            return Ok(Op::Binary(*op, a, self.value()?));
        }
        Ok(match word {
            "constant" => Op::Constant(self.number("a number")?),
            "convert" => Op::Convert(self.value()?),
            "load" => Op::Load(self.place()?),
            "store" => {
                let to = self.place()?;
                self.comma()?;
                Op::Store(to, self.value()?)
            }
            "copy" => {
                let to = self.place()?;
                self.comma()?;
                Op::Copy { to, from: self.place()? }
            }
            "set_bytes" => {
                let to = self.place()?;
                self.comma()?;
                Op::SetBytes(to, self.bytes()?)
            }
            "fill" => {
                let to = self.place()?;
                self.comma()?;
                Op::Fill(to, self.operand()?)
            }
            "set_tag" => {
                let to = self.place()?;
                self.comma()?;
                Op::SetTag(to, self.number("a tag's number")?)
            }
            "tag" => Op::Tag(self.place()?),
            "length" => Op::Length(self.place()?),
            "set_length" => {
                let to = self.place()?;
                self.comma()?;
                Op::SetLength(to, self.value()?)
            }
            "copy_slice" => {
                let to = self.place()?;
                self.comma()?;
                let from = self.place()?;
                self.comma()?;
                let start = self.optional()?;
                self.comma()?;
                Op::CopySlice { to, from, start, end: self.optional()? }
            }
            "store_slice" => {
                let to = self.place()?;
                self.comma()?;
                let start = self.optional()?;
                self.comma()?;
                let end = self.optional()?;
                self.comma()?;
                Op::StoreSlice { to, start, end, from: self.place()? }
            }
            "append" => {
                let to = self.place()?;
                self.comma()?;
                Op::Append { to, from: self.place()? }
            }
            "load_number" => {
                let (order, bits) = self.number_form()?;
                let from = self.place()?;
                self.comma()?;
                Op::LoadNumber { from, offset: self.value()?, bits, order }
            }
            "store_number" => {
                let (order, bits) = self.number_form()?;
                let to = self.place()?;
                self.comma()?;
                let offset = self.value()?;
                self.comma()?;
                Op::StoreNumber { to, offset, bits, order, value: self.value()? }
            }
            "load_bits" => {
                let field = self.field()?;
                let from = self.place()?;
                self.comma()?;
                Op::LoadBits { from, offset: self.value()?, field }
            }
            "store_bits" => {
                let field = self.field()?;
                let to = self.place()?;
                self.comma()?;
                let offset = self.value()?;
                self.comma()?;
                Op::StoreBits { to, offset, field, value: self.value()? }
            }
            "same" => {
                let a = self.operand()?;
                self.comma()?;
                Op::Equal(a, self.operand()?)
            }
            "call" => {
                let function = self.name(|reader| &reader.functions, "a function")?;
                let (arguments, to) = self.call()?;
                Op::CallFunction { function, arguments, to }
            }
            "call_extern" => {
                let function = self.name(|reader| &reader.externs, "an extern function")?;
                let (arguments, to) = self.call()?;
                Op::CallExtern { function, arguments, to }
            }
            "own_id" => Op::OwnId,
            "instance" => {
                let process = self.name(|reader| &reader.processes, "a process")?;
                self.comma()?;
                Op::InstanceOf(process, self.value()?)
            }
            "replica" => Op::ReplicaNumber(self.value()?),
            "allocate" => Op::Allocate(self.pool()?),
            "is_unique" => Op::IsUnique(self.value()?),
            "free" => Op::FreeObjects(self.pool()?),
            "retain" => Op::Retain(self.operand()?),
            "release" => Op::Release(self.operand()?),
            "mark" => {
                let label = self.label()?;
                match labels.iter().position(|other| *other == label) {
                    Some(number) => Op::Mark(LabelId(number as u32)),
                    None => return self.fail("a label of this process before"),
                }
            }
            _ => return self.fail("an instruction before"),
        })
    }

    /// The terminator with this word and its place, if it is one.
    fn terminator(&mut self, word: &str) -> Result<Option<(Terminator, Location)>> {
        let terminator = match word {
            "jump" => Terminator::Jump(self.edge()?),
            "branch" => {
                let condition = self.value()?;
                self.comma()?;
                let then = self.edge()?;
                self.comma()?;
                Terminator::Branch { condition, then, otherwise: self.edge()? }
            }
            "switch" => {
                let value = self.value()?;
                let mut cases = Vec::new();
                loop {
                    self.comma()?;
                    if self.eat_word("else") {
                        break Terminator::Switch { value, cases, default: self.edge()? };
                    }
                    let case = self.number("a case or `else`")?;
                    self.sign("=>")?;
                    cases.push((case, self.edge()?));
                }
            }
            "wait" => return Ok(Some(self.wait()?)),
            "yield" => Terminator::Yield(self.edge()?),
            "return" => Terminator::Return(self.operand()?),
            "result" => {
                self.sign("(")?;
                Terminator::Result(self.list(")", Reader::passed)?)
            }
            "exit" => Terminator::Exit(self.value()?),
            "end" => Terminator::End,
            "fault" => {
                let name = self.word("a fault")?;
                match FAULTS.into_iter().find(|fault| fault_name(*fault) == name) {
                    Some(fault) => Terminator::Fault(fault),
                    None => return self.fail("a fault before"),
                }
            }
            _ => return Ok(None),
        };
        Ok(Some((terminator, self.location()?)))
    }

    fn wait(&mut self) -> Result<(Terminator, Location)> {
        let order = if self.eat_word("priority") {
            AltOrder::Priority
        } else {
            self.keyword("fair")?;
            AltOrder::Fair
        };
        let rest = if self.eat_word("idle") { Rest::Idle } else { Rest::Stuck };
        let location = self.location()?;
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            if self.eat_word("else") {
                self.sign("->")?;
                otherwise = Some(self.block_id()?);
                break;
            }
            let starts = ["when", "in", "out", "after"].into_iter().any(|word| self.is_word(word));
            if !starts {
                break;
            }
            branches.push(self.branch()?);
        }
        Ok((Terminator::Wait(Wait { order, rest, branches, otherwise }), location))
    }

    fn branch(&mut self) -> Result<Branch> {
        let mut guard = Guard::Open;
        if self.eat_word("when") {
            guard = if self.is_numbered("v") { Guard::Value(self.value()?) } else { Guard::Region(self.block_id()?) };
        }
        let operation = match self.word("`in`, `out` or `after`")?.as_str() {
            "in" => {
                let site = SiteId(self.numbered("site")?);
                let channel = self.channel_id()?;
                self.sign("(")?;
                let patterns = self.list(")", Reader::pattern)?;
                let condition = if self.eat_word("if") { Some(self.block_id()?) } else { None };
                Operation::In { site, channel, patterns, condition }
            }
            "out" => {
                let site = SiteId(self.numbered("site")?);
                let channel = self.channel_id()?;
                let payload = if self.eat_word("ready") {
                    self.sign("(")?;
                    Payload::Ready(self.list(")", Reader::passed)?)
                } else {
                    Payload::Region(self.block_id()?)
                };
                Operation::Out { site, channel, payload }
            }
            "after" => {
                let amount = self.value()?;
                self.sign("*")?;
                Operation::After { amount, unit_ns: self.number("nanoseconds")? }
            }
            _ => return self.fail("`in`, `out` or `after` before"),
        };
        self.sign("->")?;
        let then = self.block_id()?;
        Ok(Branch { guard, operation, then, location: self.location()? })
    }

    fn pattern(&mut self) -> Result<Pattern> {
        if self.is_numbered("p") {
            return Ok(Pattern::Bind(Bind::Parameter(self.numbered("p")?)));
        }
        if self.is_numbered("s") {
            return Ok(Pattern::Bind(Bind::Slot(SlotId(self.numbered("s")?))));
        }
        if self.eat_word("_") {
            return Ok(Pattern::Any);
        }
        if self.eat_word("tag") {
            let tag = self.number("a tag's number")?;
            let payload = if self.eat("=>") { Some(Box::new(self.nested(Reader::pattern)?)) } else { None };
            return Ok(Pattern::Tag(tag, payload));
        }
        if self.eat("@") {
            return Ok(Pattern::OwnId);
        }
        if self.eat("==") {
            return Ok(Pattern::Equal(self.operand()?));
        }
        if self.eat("{") {
            return Ok(Pattern::Record(self.nested(|reader| reader.list("}", Reader::pattern))?));
        }
        if self.eat("[") {
            return Ok(Pattern::Array(self.nested(|reader| reader.list("]", Reader::pattern))?));
        }
        match self.token {
            Token::Int(value) => {
                self.advance();
                Ok(Pattern::Constant(value))
            }
            Token::Bytes(_) => Ok(Pattern::Bytes(self.bytes()?)),
            Token::Word(_) | Token::Sign(_) | Token::Bad(_) | Token::End => self.fail("a pattern"),
        }
    }

    /// Goes one level down, not without end.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if !self.lexer.enter() {
            return self.fail("less nesting");
        }
        let result = inner(self);
        self.lexer.leave();
        result
    }
}
