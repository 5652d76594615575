//! Rules of types: operands, results, places and edges have the types that their instruction requires.

use super::{Owner, Verifier};
use crate::cfg::edges;
use crate::ir::{
    Base, BinaryOp, BitField, BlockId, ByteOrder, Edge, Instruction, Mutability, Op, Operand, Place, Terminator, Type,
    TypeId, TypeTable, UnaryOp, Value,
};
use crate::typing::{is_boxed, is_value, operand_type, place_type};
use crate::visit::written_place;

/// The classes of types that instructions require.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    Int,
    Bool,
    Scalar,
    Bytes,
    Boxed,
    Value,
    Flat,
}

impl Class {
    fn text(self) -> &'static str {
        match self {
            Class::Int => "an integer",
            Class::Bool => "a `bool`",
            Class::Scalar => "an integer, `bool` or `pid`",
            Class::Bytes => "`bytes`",
            Class::Boxed => "a reference",
            Class::Value => "a scalar or reference",
            Class::Flat => "a flat aggregate",
        }
    }
}

fn int_type(types: &TypeTable, bits: u32) -> Option<TypeId> {
    (0..types.types().len() as u32)
        .map(TypeId)
        .find(|ty| matches!(types.get(*ty), Type::Int(int) if int.bits() == bits && !int.is_signed()))
}

impl Verifier<'_> {
    pub(super) fn is(&self, ty: TypeId, class: Class) -> bool {
        let types = &self.program.types;
        match class {
            Class::Int => matches!(types.get(ty), Type::Int(_)),
            Class::Bool => matches!(types.get(ty), Type::Bool),
            Class::Scalar => types.is_scalar(ty),
            Class::Bytes => matches!(types.get(ty), Type::Bytes { .. }),
            Class::Boxed => is_boxed(types, ty),
            Class::Value => is_value(types, ty),
            Class::Flat => !is_value(types, ty),
        }
    }

    pub(super) fn expect(&mut self, value: Value, class: Class) {
        let ty = self.ty(value);
        if !self.is(ty, class) {
            self.error(format!("v{} is {}, not {}", value.0, self.name(ty), class.text()));
        }
    }

    pub(super) fn expect_type(&mut self, value: Value, wanted: TypeId) {
        let ty = self.ty(value);
        if !self.is_assignable(ty, wanted) {
            self.error(format!("v{} is {}, not {}", value.0, self.name(ty), self.name(wanted)));
        }
    }

    /// A place's type; indices must be integers.
    pub(super) fn place(&mut self, place: &Place) -> Option<TypeId> {
        for step in &place.path {
            match step {
                crate::ir::Projection::Element(index) | crate::ir::Projection::Inside(index) => {
                    self.expect(*index, Class::Int)
                }
                crate::ir::Projection::Field(_) | crate::ir::Projection::Payload(_) => {}
            }
        }
        let ty = place_type(&self.program.types, self.body, place);
        if ty.is_none() {
            self.error("this place leads nowhere");
        }
        ty
    }

    fn expect_place(&mut self, place: &Place, class: Class) -> Option<TypeId> {
        let ty = self.place(place)?;
        if !self.is(ty, class) {
            self.error(format!("this place holds {}, not {}", self.name(ty), class.text()));
            return None;
        }
        Some(ty)
    }

    fn is_byte_array(&self, place: &Place) -> bool {
        let types = &self.program.types;
        let ty = place_type(types, self.body, place);
        ty.is_some_and(|ty| matches!(types.get(ty), Type::Array { element, .. } if *element == TypeTable::U8))
    }

    pub(super) fn operand(&mut self, operand: &Operand) -> Option<TypeId> {
        match operand {
            Operand::Value(_) => operand_type(&self.program.types, self.body, operand),
            Operand::Place(place) => self.place(place),
        }
    }

    pub(super) fn expect_operand(&mut self, operand: &Operand, wanted: TypeId, what: &str) {
        let Some(ty) = self.operand(operand) else { return };
        if !self.is_assignable(ty, wanted) {
            self.error(format!("{what} is {}, not {}", self.name(ty), self.name(wanted)));
        }
    }

    fn same(&mut self, a: TypeId, b: TypeId) {
        if !self.is_assignable(a, b) && !self.is_assignable(b, a) {
            self.error(format!("{} and {} are not one type", self.name(a), self.name(b)));
        }
    }

    pub(super) fn types(&mut self) {
        let body = self.body;
        for slot in &body.slots {
            if is_value(&self.program.types, slot.ty) {
                self.error("a slot holds what belongs in a value");
            }
        }
        for value in &body.values {
            if !is_value(&self.program.types, value.ty) {
                self.error("a value holds what belongs in a slot");
                return;
            }
        }
        for (index, block) in body.blocks.iter().enumerate() {
            self.block = Some(BlockId(index as u32));
            for instruction in &block.instructions {
                self.location = instruction.location;
                self.instruction(instruction);
            }
            self.location = block.location;
            self.terminator(&block.terminator);
        }
        self.block = None;
    }

    fn result(&mut self, instruction: &Instruction) -> Option<TypeId> {
        match instruction.result {
            Some(value) => Some(self.ty(value)),
            None => {
                self.error("this instruction has a result");
                None
            }
        }
    }

    fn result_class(&mut self, instruction: &Instruction, class: Class) {
        if self.result(instruction).is_some() {
            self.expect(instruction.result.expect("there is a result"), class);
        }
    }

    fn result_type(&mut self, instruction: &Instruction, wanted: TypeId) {
        if let Some(ty) = self.result(instruction)
            && !self.is_assignable(wanted, ty)
        {
            self.error(format!("the result is {}, not {}", self.name(wanted), self.name(ty)));
        }
    }

    fn no_result(&mut self, instruction: &Instruction) {
        if instruction.result.is_some() {
            self.error("this instruction has no result");
        }
    }

    /// A place that is written.
    fn not_a_constant(&mut self, place: &Place) {
        if let Base::Constant(id, _) = place.base {
            self.error(format!("c{} is a constant and is written", id.0));
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        written_place(&instruction.op, &mut |place| self.not_a_constant(place));
        match &instruction.op {
            Op::Constant(constant) => {
                let Some(ty) = self.result(instruction) else { return };
                self.result_class(instruction, Class::Scalar);
                self.constant(ty, *constant);
            }
            Op::Unary(op, value) => {
                let class = match op {
                    UnaryOp::Not => Class::Bool,
                    UnaryOp::Complement | UnaryOp::Negate => Class::Int,
                };
                self.expect(*value, class);
                self.result_type(instruction, self.ty(*value));
            }
            Op::Binary(op, a, b) => self.binary(instruction, *op, *a, *b),
            Op::Convert(value) => {
                self.expect(*value, Class::Scalar);
                self.result_class(instruction, Class::Scalar);
            }
            Op::Load(from) => {
                if let Some(ty) = self.expect_place(from, Class::Value) {
                    self.result_type(instruction, ty);
                }
            }
            Op::Store(to, value) => {
                self.no_result(instruction);
                if let Some(ty) = self.expect_place(to, Class::Value) {
                    self.expect_type(*value, ty);
                }
            }
            Op::Copy { to, from } => {
                self.no_result(instruction);
                let (to, from) = (self.expect_place(to, Class::Flat), self.expect_place(from, Class::Flat));
                if let (Some(to), Some(from)) = (to, from)
                    && !(self.is(to, Class::Bytes) && self.is(from, Class::Bytes))
                {
                    self.same(to, from);
                }
            }
            Op::SetBytes(to, bytes) => {
                self.no_result(instruction);
                if let Some(ty) = self.expect_place(to, Class::Bytes)
                    && let Type::Bytes { bound } = self.program.types.get(ty)
                    && bytes.len() > *bound as usize
                {
                    self.error(format!("{} bytes do not fit {}", bytes.len(), self.name(ty)));
                }
            }
            Op::Fill(to, with) => {
                self.no_result(instruction);
                let Some(ty) = self.place(to) else { return };
                match self.program.types.get(ty) {
                    Type::Array { element, .. } => self.expect_operand(with, *element, "the element"),
                    Type::Error
                    | Type::Int(_)
                    | Type::Bool
                    | Type::Bytes { .. }
                    | Type::Pid(_)
                    | Type::Record(_)
                    | Type::Union(_)
                    | Type::Boxed(_) => self.error(format!("this place holds {}, not an array", self.name(ty))),
                }
            }
            Op::SetTag(to, tag) => {
                self.no_result(instruction);
                if let Some(tags) = self.tags(to)
                    && *tag as usize >= tags
                {
                    self.error(format!("there is no tag {tag}"));
                }
            }
            Op::Tag(from) => {
                self.tags(from);
                self.result_type(instruction, TypeTable::U32);
            }
            Op::Length(from) => {
                self.expect_place(from, Class::Bytes);
                self.result_type(instruction, TypeTable::I32);
            }
            Op::SetLength(to, length) => {
                self.no_result(instruction);
                self.expect_place(to, Class::Bytes);
                self.expect(*length, Class::Int);
            }
            Op::CopySlice { to, from, start, end } | Op::StoreSlice { to, from, start, end } => {
                self.no_result(instruction);
                self.expect_place(to, Class::Bytes);
                self.expect_place(from, Class::Bytes);
                start.iter().chain(end).for_each(|value| self.expect(*value, Class::Int));
            }
            Op::Append { to, from } => {
                self.no_result(instruction);
                self.expect_place(to, Class::Bytes);
                self.expect_place(from, Class::Bytes);
            }
            Op::LoadNumber { from, offset, bits, .. } => {
                if !self.is_byte_array(from) {
                    self.expect_place(from, Class::Bytes);
                }
                self.expect(*offset, Class::Int);
                if let Some(ty) = self.number(*bits) {
                    self.result_type(instruction, ty);
                }
            }
            Op::StoreNumber { to, offset, bits, value, .. } => {
                self.no_result(instruction);
                if !self.is_byte_array(to) {
                    self.expect_place(to, Class::Bytes);
                }
                self.expect(*offset, Class::Int);
                if let Some(ty) = self.number(*bits) {
                    self.expect_type(*value, ty);
                }
            }
            Op::LoadBits { from, offset, field } => {
                self.expect_place(from, Class::Bytes);
                self.expect(*offset, Class::Int);
                self.field(*field);
                self.result_class(instruction, Class::Int);
            }
            Op::StoreBits { to, offset, field, value } => {
                self.no_result(instruction);
                self.expect_place(to, Class::Bytes);
                self.expect(*offset, Class::Int);
                self.field(*field);
                self.expect(*value, Class::Int);
            }
            Op::Equal(a, b) => {
                self.result_type(instruction, TypeTable::BOOL);
                if let (Some(a), Some(b)) = (self.operand(a), self.operand(b))
                    && !(self.is(a, Class::Bytes) && self.is(b, Class::Bytes))
                {
                    self.same(a, b);
                }
            }
            Op::CallFunction { function, arguments, to } => {
                let Some(callee) = self.program.functions.get(function.0 as usize) else {
                    return self.error("this function does not exist");
                };
                let parameters = callee.parameters.clone();
                self.call(instruction, arguments, &parameters, to.as_ref(), Some(callee.result));
            }
            Op::CallExtern { function, arguments, to } => {
                let Some(callee) = self.program.externs.get(function.0 as usize) else {
                    return self.error("this extern function does not exist");
                };
                for ((_, mutability), argument) in callee.parameters.iter().zip(arguments) {
                    match (mutability, argument) {
                        (Mutability::Mutable, Operand::Value(value)) => {
                            self.error(format!("v{} cannot be written by a function", value.0));
                        }
                        (Mutability::Mutable, Operand::Place(place)) => self.not_a_constant(place),
                        (Mutability::Immutable, _) => {}
                    }
                }
                let parameters: Vec<TypeId> = callee.parameters.iter().map(|(ty, _)| *ty).collect();
                self.call(instruction, arguments, &parameters, to.as_ref(), callee.result);
            }
            Op::OwnId => {
                if let Owner::Function(_) = self.owner {
                    self.error("a function has no id");
                }
                self.pid(instruction);
            }
            Op::InstanceOf(process, replica) => {
                if process.0 as usize >= self.program.processes.len() {
                    self.error("this process does not exist");
                }
                self.expect(*replica, Class::Int);
                self.pid(instruction);
            }
            Op::ReplicaNumber(value) => {
                let ty = self.ty(*value);
                if !matches!(self.program.types.get(ty), Type::Pid(_)) {
                    self.error(format!("v{} is {}, not a `pid`", value.0, self.name(ty)));
                }
                self.result_type(instruction, TypeTable::I32);
            }
            Op::Allocate(pool) => {
                if pool.0 as usize >= self.program.types.pools().len() {
                    return self.error("this pool does not exist");
                }
                if let Some(ty) = self.result(instruction)
                    && *self.program.types.get(ty) != Type::Boxed(*pool)
                {
                    self.error(format!("the result is {}, of another pool", self.name(ty)));
                }
            }
            Op::IsUnique(value) => {
                self.expect(*value, Class::Boxed);
                self.result_type(instruction, TypeTable::BOOL);
            }
            Op::FreeObjects(pool) => {
                if pool.0 as usize >= self.program.types.pools().len() {
                    self.error("this pool does not exist");
                }
                self.result_type(instruction, TypeTable::I32);
            }
            Op::Deadline { amount, unit_ns } => {
                self.expect(*amount, Class::Int);
                self.unit_of_time(*unit_ns);
                let result = instruction.result.map(|result| self.ty(result));
                let is_time = result == Some(TypeTable::TIME);
                self.result_type(instruction, if is_time { TypeTable::TIME } else { TypeTable::I64 });
            }
            Op::Retain(operand) | Op::Release(operand) => {
                self.no_result(instruction);
                self.operand(operand);
            }
            Op::Predicate(_, holds) => {
                self.no_result(instruction);
                self.expect(*holds, Class::Bool);
            }
            Op::Mark(label) => {
                self.no_result(instruction);
                match self.owner {
                    Owner::Process(process) if (label.0 as usize) < process.labels.len() => {}
                    Owner::Process(_) | Owner::Function(_) => self.error("this label does not exist"),
                }
            }
        }
    }

    fn pid(&mut self, instruction: &Instruction) {
        if let Some(ty) = self.result(instruction)
            && !matches!(self.program.types.get(ty), Type::Pid(_))
        {
            self.error(format!("the result is {}, not a `pid`", self.name(ty)));
        }
    }

    fn constant(&mut self, ty: TypeId, constant: i128) {
        let is_valid = match self.program.types.get(ty) {
            Type::Int(int) => crate::ir::IntType::min(*int) <= constant && constant <= crate::ir::IntType::max(*int),
            Type::Bool => constant == 0 || constant == 1,
            Type::Pid(_) => constant >= 0 && constant < i128::from(self.program.instance_count()),
            Type::Error
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => false,
        };
        if !is_valid {
            self.error(format!("{constant} is no {}", self.name(ty)));
        }
    }

    fn binary(&mut self, instruction: &Instruction, op: BinaryOp, a: Value, b: Value) {
        match op {
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => {
                self.expect(a, Class::Int);
                self.expect(b, Class::Int);
                self.result_type(instruction, self.ty(a));
            }
            BinaryOp::Add | BinaryOp::Subtract | BinaryOp::Multiply | BinaryOp::Divide | BinaryOp::Remainder => {
                self.expect(a, Class::Int);
                self.expect_type(b, self.ty(a));
                self.result_type(instruction, self.ty(a));
            }
            BinaryOp::SaturatingAdd | BinaryOp::SaturatingSubtract | BinaryOp::SaturatingMultiply => {
                self.expect_type(a, TypeTable::I64);
                self.expect_type(b, TypeTable::I64);
                self.result_type(instruction, TypeTable::I64);
            }
            BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor => {
                self.expect(a, Class::Scalar);
                self.expect_type(b, self.ty(a));
                self.result_type(instruction, self.ty(a));
            }
            BinaryOp::Equal | BinaryOp::NotEqual => {
                self.expect(a, Class::Scalar);
                let (a, b) = (self.ty(a), self.ty(b));
                if !matches!((self.program.types.get(a), self.program.types.get(b)), (Type::Pid(_), Type::Pid(_))) {
                    self.same(a, b);
                }
                self.result_type(instruction, TypeTable::BOOL);
            }
            BinaryOp::Less | BinaryOp::LessEqual | BinaryOp::Greater | BinaryOp::GreaterEqual => {
                self.expect(a, Class::Int);
                self.expect_type(b, self.ty(a));
                self.result_type(instruction, TypeTable::BOOL);
            }
        }
    }

    /// How many tags the union at a place has.
    fn tags(&mut self, place: &Place) -> Option<usize> {
        let ty = self.place(place)?;
        match self.program.types.get(ty) {
            Type::Union(id) => Some(self.program.types.aggregate(*id).parts.len()),
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Boxed(_) => {
                self.error(format!("this place holds {}, not a union", self.name(ty)));
                None
            }
        }
    }

    fn number(&mut self, bits: u32) -> Option<TypeId> {
        match bits {
            16 | 32 | 64 => int_type(&self.program.types, bits),
            _ => {
                self.error(format!("a number has 16, 32 or 64 bits, not {bits}"));
                None
            }
        }
    }

    fn field(&mut self, field: BitField) {
        let BitField { layout_bytes, offset_bits, width_bits, order } = field;
        let inside = u64::from(offset_bits) + u64::from(width_bits) <= u64::from(layout_bytes) * 8;
        let aligned = match order {
            ByteOrder::Big => true,
            ByteOrder::Little => offset_bits.is_multiple_of(8) && matches!(width_bits, 16 | 32 | 64),
        };
        if !(1..=64).contains(&width_bits) || !inside || !aligned {
            self.error("this field does not lie in its layout");
        }
    }

    fn call(
        &mut self,
        instruction: &Instruction,
        arguments: &[Operand],
        parameters: &[TypeId],
        to: Option<&Place>,
        result: Option<TypeId>,
    ) {
        if arguments.len() != parameters.len() {
            self.error(format!("{} arguments for {} parameters", arguments.len(), parameters.len()));
        }
        for (argument, parameter) in arguments.iter().zip(parameters) {
            self.expect_operand(argument, *parameter, "an argument");
        }
        match (result, to) {
            (Some(ty), Some(to)) => {
                self.no_result(instruction);
                if let Some(place) = self.expect_place(to, Class::Flat) {
                    self.same(place, ty);
                }
            }
            (Some(ty), None) if is_value(&self.program.types, ty) => {
                if instruction.result.is_some() {
                    self.result_type(instruction, ty);
                }
            }
            (Some(_), None) => self.no_result(instruction),
            (None, _) => {
                self.no_result(instruction);
                if to.is_some() {
                    self.error("a procedure has no result");
                }
            }
        }
    }

    fn edge(&mut self, edge: &Edge) {
        let parameters = self.body.blocks[edge.to.0 as usize].parameters.clone();
        if parameters.len() != edge.arguments.len() {
            return self.error(format!(
                "{} arguments for the {} parameters of block{}",
                edge.arguments.len(),
                parameters.len(),
                edge.to.0
            ));
        }
        for (argument, parameter) in edge.arguments.iter().zip(parameters) {
            self.expect_type(*argument, self.ty(parameter));
        }
    }

    fn terminator(&mut self, terminator: &Terminator) {
        for edge in edges(terminator) {
            self.edge(edge);
        }
        let in_function = match self.owner {
            Owner::Function(_) => true,
            Owner::Process(_) => false,
        };
        match terminator {
            Terminator::Branch { condition, .. } => self.expect(*condition, Class::Bool),
            Terminator::Switch { value, cases, .. } => {
                self.expect(*value, Class::Scalar);
                let mut constants: Vec<i128> = cases.iter().map(|(case, _)| *case).collect();
                constants.iter().for_each(|case| self.constant(self.ty(*value), *case));
                constants.sort_unstable();
                if constants.windows(2).any(|pair| pair[0] == pair[1]) {
                    self.error("two cases of a switch are equal");
                }
            }
            Terminator::Return(operand) => match self.owner {
                Owner::Function(function) => self.expect_operand(operand, function.result, "the result"),
                Owner::Process(_) => self.error("a process does not return"),
            },
            Terminator::Exit(status) => {
                self.expect(*status, Class::Int);
                if in_function {
                    self.error("a function does not end the program");
                }
            }
            Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::End
            | Terminator::Result(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_)
                if in_function =>
            {
                self.error("a function only returns");
            }
            Terminator::Jump(_)
            | Terminator::Wait(_)
            | Terminator::Yield(_)
            | Terminator::Result(_)
            | Terminator::End
            | Terminator::Fault(_) => {}
            Terminator::Enter(enter) => self.enter(enter),
            Terminator::Leave(leave) => self.leave(leave),
        }
    }
}
