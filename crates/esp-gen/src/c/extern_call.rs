//! Calls of extern functions. Arguments and results have the environment's form; C is trusted with what it does, but
//! not with the range of what it returns, which is validated.

use super::helpers::Helper;
use super::values::Lvalue;
use super::writer::{Writer, line};
use quaject_esp_ir::ir::*;

/// The arguments of a call.
#[derive(Default)]
struct Arguments {
    list: Vec<String>,
    /// Statements that copy arguments to the environment's form.
    copies: Vec<String>,
    /// What C may have written: type and C lvalue in the environment's form.
    written: Vec<(TypeId, String)>,
}

impl Writer<'_, '_> {
    pub(crate) fn call_extern(
        &mut self,
        function: ExternId,
        arguments: &[Operand],
        to: Option<&Place>,
        result: Option<Value>,
        at: Location,
    ) {
        let data = &self.plan.program.externs[function.0 as usize];
        self.block("{", |code| {
            let Arguments { mut list, copies, mut written } = code.extern_arguments(data, arguments, at);
            let raise = code.raise(Fault::Extern, at);
            copies.iter().for_each(|copy| code.line(copy));
            line!(code, "if (ESP_MISSING({})) {raise}", data.name);
            let call = |list: &[String]| format!("{}({})", data.name, list.join(", "));
            match (data.result, result) {
                (None, _) => line!(code, "ESP_OUTSIDE({});", call(&list)),
                (Some(ty), Some(result)) if code.types().is_scalar(ty) => {
                    let target = code.value(result);
                    line!(code, "ESP_OUTSIDE({target} = {});", call(&list));
                    written.push((ty, target));
                }
                (Some(ty), None) if code.types().is_scalar(ty) => line!(code, "ESP_OUTSIDE((void){});", call(&list)),
                (Some(ty), _) => {
                    let (content, pool) = code.extern_content(ty);
                    line!(code, "{} r_;", code.plan.environment_type(content));
                    list.push("&r_".to_string());
                    line!(code, "ESP_OUTSIDE({});", call(&list));
                    written.push((content, "r_".to_string()));
                    code.validate(&written, at);
                    code.store_extern_result(content, pool, to, result, at);
                    return;
                }
            }
            code.validate(&written, at);
        });
    }

    /// The type of what C sees of a value, and its pool if it is boxed.
    fn extern_content(&self, ty: TypeId) -> (TypeId, Option<PoolId>) {
        match self.types().get(ty) {
            Type::Boxed(pool) => (self.types().pool(*pool).content, Some(*pool)),
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Pid(_)
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_) => (ty, None),
        }
    }

    /// Scalars are passed by value, all else by address; what holds boxed parts is copied to a local first.
    fn extern_arguments(&mut self, data: &Extern, arguments: &[Operand], at: Location) -> Arguments {
        let mut all = Arguments::default();
        for (index, (argument, (parameter, mutability))) in arguments.iter().zip(&data.parameters).enumerate() {
            let value = self.operand(argument, at);
            if self.types().is_scalar(*parameter) {
                all.list.push(value.text);
                continue;
            }
            let (content, pool) = self.extern_content(value.ty);
            let lvalue = match pool {
                Some(pool) => self.object(pool, &value.text),
                None => value.text,
            };
            if self.plan.layouts.has_boxes(content) {
                let name = self.helpers.want(self.plan, Helper::ToEnvironment, content);
                line!(self, "{} a{index}_;", self.plan.environment_type(content));
                all.copies.push(format!("{name}(t, &a{index}_, &{lvalue});"));
                all.list.push(format!("&a{index}_"));
            } else {
                match mutability {
                    Mutability::Mutable => all.written.push((content, lvalue.clone())),
                    Mutability::Immutable => {}
                }
                all.list.push(format!("&{lvalue}"));
            }
        }
        all
    }

    /// Copies the result `r_` of a call to where the program wants it, taking objects for its boxed parts.
    fn store_extern_result(
        &mut self,
        content: TypeId,
        pool: Option<PoolId>,
        to: Option<&Place>,
        result: Option<Value>,
        at: Location,
    ) {
        let to = match (pool, to, result) {
            (Some(pool), None, Some(result)) => {
                let target = self.value(result);
                self.allocate(pool, &target, at);
                Lvalue { text: self.object(pool, &target), ty: content }
            }
            (_, Some(to), _) => self.place(to, at),
            (None, None, _) | (Some(_), None, None) => {
                unreachable!("the verifier has checked that a call's result has a place")
            }
        };
        if !self.plan.layouts.has_boxes(to.ty) {
            line!(self, "{} = r_;", to.text);
            return;
        }
        let has_objects = self.helpers.want(self.plan, Helper::HasObjects, to.ty);
        let raise = self.raise(Fault::Pool, at);
        line!(self, "if (ESP_UNLIKELY(!{has_objects}(t, &r_))) {raise}");
        let name = self.helpers.want(self.plan, Helper::FromEnvironment, to.ty);
        line!(self, "{name}(t, &{}, &r_);", to.text);
    }

    /// Raises `range` unless these values in the environment's form are values of their types.
    fn validate(&mut self, written: &[(TypeId, String)], at: Location) {
        for (ty, value) in written {
            if self.plan.layouts.has_gaps(*ty) {
                let is_valid = self.helpers.validity(self.plan, *ty, value);
                self.check(&format!("!({is_valid})"), Fault::Range, at);
            }
        }
    }
}
