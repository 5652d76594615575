//! Calls of pure functions and of extern functions.

use crate::code::{BodyCode, Inst, OperandCode, PlaceCode, Register, TypedOperand, in_register};
use crate::coverage::NoHook;
use crate::datum::{Datum, conforms};
use crate::environment::Reply;
use crate::execute::{CALL_ALLOWANCE, LocalContext, StopReason, Trap};
use crate::frame::Frame;
use crate::pools::Address;
use crate::values::{ValueRef, box_datum, write_datum};
use quaject_esp_ir::ir::{ExternId, Fault, FnId, Location, Mutability, Type, TypeId};

impl<'a> LocalContext<'a> {
    /// Calls a function. Returns a reason only if the call did not complete.
    pub(super) fn call_function(
        &mut self,
        function: FnId,
        arguments: &[TypedOperand],
        result: Option<Register>,
        to: Option<&PlaceCode>,
        frame: &mut Frame,
        fuel: &mut u64,
    ) -> Option<StopReason> {
        let no_location = |fault| Some(StopReason::Trap(Box::new(Trap::at(fault, Location::default()))));
        let body: &'a BodyCode = &self.code.functions[function.0 as usize];
        let mut callee = std::mem::take(&mut self.scratch.frames[function.0 as usize]);
        if callee.registers.len() != body.registers || callee.memory.len() != body.memory {
            callee = Frame::new(body);
        }
        if let Err(fault) = self.pass_arguments(body, arguments, frame, &mut callee) {
            return no_location(fault);
        }
        let before = (*fuel).max(self.scratch.allowance);
        let mut left = before;
        // Functions are not recursive, so that no other call needs the coverage taken out here.
        let stop = match self.scratch.called_of(function).map(std::mem::take) {
            Some(mut recorded) => {
                let stop = self.run_interpreted(body, &mut callee, 0, &mut left, &mut recorded);
                if let Some(executed) = self.scratch.called_of(function) {
                    *executed = recorded;
                }
                stop
            }
            None => self.run_interpreted(body, &mut callee, 0, &mut left, &mut NoHook),
        };
        *fuel = fuel.saturating_sub(before - left);
        let outcome = match stop {
            StopReason::Value(pc) => {
                let Inst::Return(value) = &body.instructions[pc as usize] else {
                    unreachable!("functions hold no regions")
                };
                self.scratch.allowance = CALL_ALLOWANCE;
                match self.returned(value, &callee, result, to, frame) {
                    Ok(()) => None,
                    Err(fault) => no_location(fault),
                }
            }
            StopReason::Fuel(_) => {
                self.scratch.allowance = self.scratch.allowance.saturating_mul(2).max(before);
                *fuel = 0;
                Some(StopReason::Fuel(0))
            }
            stop @ (StopReason::Trap(_)
            | StopReason::Wait(_)
            | StopReason::Yield(_)
            | StopReason::End
            | StopReason::Exit(_)
            | StopReason::Native(_)
            | StopReason::Enter(_)
            | StopReason::Leave(_)) => Some(stop),
        };
        self.scratch.frames[function.0 as usize] = callee;
        outcome
    }

    /// Clears the memory of a function's frame and copies the arguments into it.
    #[inline]
    fn pass_arguments(
        &mut self,
        body: &BodyCode,
        arguments: &[TypedOperand],
        frame: &Frame,
        callee: &mut Frame,
    ) -> Result<(), Fault> {
        callee.memory.fill(0);
        let (mut register, mut slot) = (0, 0);
        for argument in arguments {
            match self.part(&argument.operand, frame)? {
                part if in_register(self.program, argument.ty) => {
                    let value = self.view().scalar(argument.ty, part, &frame.memory);
                    callee.registers[body.parameters[register] as usize] = value;
                    register += 1;
                }
                ValueRef::Memory(address) => {
                    let (offset, size) = body.slots[slot];
                    // An argument may have a smaller bound than the parameter; both lie packed from their start.
                    let size = size.min(self.code.layouts.size(argument.ty));
                    let source = self.pools.memory(address.space, &frame.memory);
                    callee.memory[offset..offset + size].copy_from_slice(&source[address.at..address.at + size]);
                    slot += 1;
                }
                ValueRef::Scalar(_) => unreachable!("the verifier types every argument"),
            }
        }
        Ok(())
    }

    fn returned(
        &mut self,
        value: &TypedOperand,
        callee: &Frame,
        result: Option<Register>,
        to: Option<&PlaceCode>,
        frame: &mut Frame,
    ) -> Result<(), Fault> {
        let part = self.part(&value.operand, callee)?;
        match (result, to, part) {
            (Some(result), _, part) => {
                frame.registers[result as usize] = self.view().scalar(value.ty, part, &callee.memory);
            }
            (None, Some(to), ValueRef::Memory(from)) => {
                let target = self.resolve(to, frame)?;
                let bytes = self.pools.memory(from.space, &callee.memory)[from.at..from.at + to.size].to_vec();
                let memory = self.pools.memory_mut(target.space, &mut frame.memory);
                memory[target.at..target.at + to.size].copy_from_slice(&bytes);
            }
            (None, Some(_) | None, ValueRef::Scalar(_)) | (None, None, ValueRef::Memory(_)) => {}
        }
        Ok(())
    }

    pub(super) fn call_extern(
        &mut self,
        function: ExternId,
        arguments: &[TypedOperand],
        result: Option<Register>,
        to: Option<&PlaceCode>,
        frame: &mut Frame,
    ) -> Result<(), Fault> {
        let declared = &self.program.externs[function.0 as usize];
        let mut data = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let part = self.part(&argument.operand, frame)?;
            data.push(self.view().datum(argument.ty, part, &frame.memory)?);
        }
        let reply = self.environment.call(function, &mut data);
        for ((argument, datum), (_, mutability)) in arguments.iter().zip(&data).zip(&declared.parameters) {
            match (mutability, &argument.operand) {
                (Mutability::Mutable, OperandCode::Place(place)) => {
                    let address = self.resolve(place, frame)?;
                    let before = self.view().datum(argument.ty, ValueRef::Memory(address), &frame.memory)?;
                    if *datum != before {
                        self.release(argument, frame)?;
                        self.write(argument.ty, address, datum, frame)?;
                    }
                }
                (Mutability::Mutable, OperandCode::Register(_)) | (Mutability::Immutable, _) => {}
            }
        }
        match (reply, declared.result) {
            (Reply::Unresolved, _) => return Err(Fault::Extern),
            (Reply::Malformed, _) => return Err(Fault::Range),
            (Reply::Returned(None), None) => {}
            (Reply::Returned(Some(datum)), Some(ty)) => match (result, to) {
                (Some(result), _) => frame.registers[result as usize] = self.register_of(ty, &datum)?,
                (None, Some(to)) => {
                    let address = self.resolve(to, frame)?;
                    self.write(to.ty, address, &datum, frame)?;
                }
                (None, None) => {}
            },
            (Reply::Returned(Some(_)), None) | (Reply::Returned(None), Some(_)) => return Err(Fault::Range),
        }
        Ok(())
    }

    fn register_of(&mut self, ty: TypeId, datum: &Datum) -> Result<i64, Fault> {
        if !conforms(self.program, ty, datum) {
            return Err(Fault::Range);
        }
        match (self.program.types.get(ty), datum) {
            (Type::Boxed(_), datum) => {
                Ok(i64::from(box_datum(self.program, &self.code.layouts, self.pools, ty, datum)?))
            }
            (_, Datum::Int(value)) => Ok(*value as i64),
            (_, Datum::Bool(value)) => Ok(i64::from(*value)),
            (_, Datum::Pid(instance)) => Ok(i64::from(*instance)),
            (_, Datum::Bytes(_) | Datum::Record(_) | Datum::Union(..) | Datum::Array(_)) => Err(Fault::Range),
        }
    }

    fn write(&mut self, ty: TypeId, address: Address, datum: &Datum, frame: &mut Frame) -> Result<(), Fault> {
        if !conforms(self.program, ty, datum) {
            return Err(Fault::Range);
        }
        write_datum(self.program, &self.code.layouts, self.pools, &mut frame.memory, ty, address, datum)
    }
}
