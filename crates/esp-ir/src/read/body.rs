//! Bodies in the text form: blocks, instructions, terminators, patterns.

use super::{Reader, Result};
use crate::ir::*;
use crate::lexer::Token;
use crate::text::fault_name;
use crate::text::{BINARY_OPS, FAULTS, UNARY_OPS};
use smol_str::SmolStr;

impl Reader<'_> {
    /// Slots, values and blocks up to the closing brace.
    pub(super) fn body(&mut self, labels: &[SmolStr]) -> Result<Body> {
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

    pub(super) fn source_name(&mut self) -> Result<Option<SmolStr>> {
        if self.is(":") { Ok(None) } else { Ok(Some(self.word("a name")?.into())) }
    }

    pub(super) fn value(&mut self) -> Result<Value> {
        Ok(Value(self.numbered("v")?))
    }

    pub(super) fn optional(&mut self) -> Result<Option<Value>> {
        if self.eat_word("_") { Ok(None) } else { Ok(Some(self.value()?)) }
    }

    /// `v3 name: type`
    pub(super) fn definition(&mut self, values: &mut Vec<Option<ValueData>>) -> Result<Value> {
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

    pub(super) fn block_id(&mut self) -> Result<BlockId> {
        Ok(BlockId(self.numbered("block")?))
    }

    pub(super) fn edge(&mut self) -> Result<Edge> {
        let to = self.block_id()?;
        let arguments = if self.eat("(") { self.list(")", Reader::value)? } else { Vec::new() };
        Ok(Edge { to, arguments })
    }

    pub(super) fn block(
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

    pub(super) fn place(&mut self) -> Result<Place> {
        let base = if self.eat("*") {
            Base::Object(self.value()?)
        } else if self.is_numbered("c") {
            let id = ConstantId(self.numbered("c")?);
            let Some(constant) = self.program.constants.get(id.0 as usize) else {
                return self.fail("a constant of the program before");
            };
            Base::Constant(id, constant.ty)
        } else {
            Base::Slot(SlotId(self.numbered("s")?))
        };
        let mut path = Vec::new();
        loop {
            if self.eat(".") {
                path.push(Projection::Field(self.number("a field's number")?));
            } else if self.eat("[") {
                let step = if self.eat_word("inside") { Projection::Inside } else { Projection::Element };
                path.push(step(self.value()?));
                self.sign("]")?;
            } else if self.eat("|") {
                path.push(Projection::Payload(self.number("a tag's number")?));
            } else {
                return Ok(Place { base, path });
            }
        }
    }

    pub(super) fn operand(&mut self) -> Result<Operand> {
        if self.is_numbered("v") { Ok(Operand::Value(self.value()?)) } else { Ok(Operand::Place(self.place()?)) }
    }

    pub(super) fn passed(&mut self) -> Result<Passed> {
        let transfer = if self.eat_word("move") {
            Transfer::Move
        } else {
            self.keyword("keep")?;
            Transfer::Keep
        };
        Ok(Passed { operand: self.operand()?, transfer })
    }

    pub(super) fn order(&mut self) -> Result<ByteOrder> {
        if self.eat_word("be") {
            return Ok(ByteOrder::Big);
        }
        self.keyword("le")?;
        Ok(ByteOrder::Little)
    }

    /// `be(16)`
    pub(super) fn number_form(&mut self) -> Result<(ByteOrder, u32)> {
        let order = self.order()?;
        self.sign("(")?;
        let bits = self.number("a width")?;
        self.sign(")")?;
        Ok((order, bits))
    }

    pub(super) fn field(&mut self) -> Result<BitField> {
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

    pub(super) fn call(&mut self) -> Result<(Vec<Operand>, Option<Place>)> {
        self.sign("(")?;
        let arguments = self.list(")", Reader::operand)?;
        let to = if self.eat_word("to") { Some(self.place()?) } else { None };
        Ok((arguments, to))
    }

    pub(super) fn comma(&mut self) -> Result<()> {
        self.sign(",")
    }

    pub(super) fn op(&mut self, word: &str, labels: &[SmolStr]) -> Result<Op> {
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
            "deadline" => {
                let amount = self.value()?;
                self.sign("*")?;
                Op::Deadline { amount, unit_ns: self.number("nanoseconds")? }
            }
            "retain" => Op::Retain(self.operand()?),
            "release" => Op::Release(self.operand()?),
            "test" => {
                let number = self.number("a predicate's number")?;
                self.comma()?;
                Op::Predicate(number, self.value()?)
            }
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
    pub(super) fn terminator(&mut self, word: &str) -> Result<Option<(Terminator, Location)>> {
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
            "enter" => {
                let path = PathId(self.numbered("path")?);
                self.sign("->")?;
                let then = BlockId(self.numbered("block")?);
                self.comma()?;
                let later = self.edge()?;
                self.comma()?;
                Terminator::Enter(Enter { path, then, later, otherwise: self.edge()? })
            }
            "leave" => {
                let path = PathId(self.numbered("path")?);
                let exit = self.numbered("exit")?;
                let trigger = self.resume()?;
                let mut members = Vec::new();
                while self.eat(",") {
                    self.keyword("member")?;
                    let member = self.number("a member")?;
                    members.push((member, self.resume()?));
                }
                Terminator::Leave(Leave { path, exit, trigger, members })
            }
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

    fn resume(&mut self) -> Result<Resume> {
        let to = BlockId(self.numbered("block")?);
        self.sign("(")?;
        let values = self.list(")", |reader| {
            let own = reader.value()?;
            reader.sign("=")?;
            Ok((own, reader.value()?))
        })?;
        Ok(Resume { to, values })
    }

    pub(super) fn wait(&mut self) -> Result<(Terminator, Location)> {
        let order = if self.eat_word("priority") {
            AltOrder::Priority
        } else {
            self.keyword("fair")?;
            AltOrder::Fair
        };
        let blocking = if self.eat_word("idle") { Blocking::MayBlockForever } else { Blocking::Deadlock };
        let location = self.location()?;
        let mut branches = Vec::new();
        let mut otherwise = None;
        loop {
            if self.eat_word("else") {
                self.sign("->")?;
                otherwise = Some(self.block_id()?);
                break;
            }
            let starts = ["when", "in", "out", "after", "until"].into_iter().any(|word| self.is_word(word));
            if !starts {
                break;
            }
            branches.push(self.branch()?);
        }
        let mut observed = Vec::new();
        while self.eat_word("observe") {
            observed.push((self.string()?.into(), self.value()?));
        }
        let mut members = Vec::new();
        while self.eat_word("member") {
            members.push(self.blocked_member()?);
        }
        Ok((Terminator::Wait(Wait { order, blocking, branches, otherwise, observed, members }), location))
    }

    /// What a member of a fused process waits for, and the branch at which it does.
    fn blocked_member(&mut self) -> Result<(u32, WaitForEdge)> {
        let instance = self.number("an instance")?;
        self.keyword("at")?;
        let branch = self.number("a branch")?;
        let direction =
            if self.eat_word("in") { Some(Direction::In) } else { self.eat_word("out").then_some(Direction::Out) };
        let operation = direction.map(|direction| Ok((self.channel_id()?, direction))).transpose()?;
        self.sign("(")?;
        let partners = self.list(")", |reader| reader.number("an instance"))?;
        Ok((branch, WaitForEdge { instance, location: self.location()?, operation, partners }))
    }

    pub(super) fn branch(&mut self) -> Result<Branch> {
        let mut guard = Guard::Open;
        if self.eat_word("when") {
            guard = if self.is_numbered("v") { Guard::Value(self.value()?) } else { Guard::Region(self.block_id()?) };
        }
        let operation = match self.word("`in`, `out`, `after` or `until`")?.as_str() {
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
                Operation::After { amount, unit: TimeUnit::Nanoseconds(self.number("nanoseconds")?) }
            }
            "until" => Operation::After { amount: self.value()?, unit: TimeUnit::Absolute },
            _ => return self.fail("`in`, `out`, `after` or `until` before"),
        };
        self.sign("->")?;
        let then = self.block_id()?;
        Ok(Branch { guard, operation, then, location: self.location()? })
    }

    pub(super) fn pattern(&mut self) -> Result<Pattern> {
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
    pub(super) fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if !self.lexer.enter() {
            return self.fail("less nesting");
        }
        let result = inner(self);
        self.lexer.leave();
        result
    }
}
