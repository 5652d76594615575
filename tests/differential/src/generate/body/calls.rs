//! Random calls of extern functions with effects and of procedures, and communications that a process does itself or
//! by a procedure.

use super::Body;
use crate::generate::shared::{Access, Called, Context, Direction, Kind, Procedure, Shared};
use crate::generate::types::Ty;
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

impl Body {
    /// Calls an extern function with effects, or a procedure that does not communicate.
    pub(super) fn procedure(&mut self, rng: &mut Rng, shared: &Shared) {
        let procedure = &shared.procedures[rng.usize(0..shared.procedures.len())];
        self.call(rng, shared, procedure, &[]);
    }

    /// Calls a procedure that communicates on these channels.
    pub fn call_on(&mut self, rng: &mut Rng, shared: &Shared, called: &Called, channels: &[String]) {
        self.call(rng, shared, &called.procedure, channels);
    }

    fn call(&mut self, rng: &mut Rng, shared: &Shared, procedure: &Procedure, channels: &[String]) {
        let mut arguments = channels.to_vec();
        // Variables without a value have one after the call.
        let mut assigned = Vec::new();
        for (ty, access) in &procedure.parameters {
            arguments.push(match access {
                Access::Reads => self.expr(rng, shared, ty, 1, Context::Typed),
                Access::Writes => self.mutable_argument(rng, shared, ty),
                Access::Replaces => self.variable_argument(rng, shared, ty),
                Access::Assigns if rng.bool() => {
                    let name = self.fresh();
                    let ty_of = if rng.bool() { format!(": {}", shared.types.print(ty)) } else { String::new() };
                    self.line(&format!("var {name}{ty_of};"));
                    assigned.push((name.clone(), ty.clone()));
                    name
                }
                Access::Assigns => self.variable_argument(rng, shared, ty),
            });
        }
        let call = format!("{}({})", shared.types.local(&procedure.name), arguments.join(", "));
        let target = if shared.adds(rng, 2) { procedure.result.as_ref() } else { None };
        match (&procedure.result, target.and_then(|ty| self.target(rng, ty, &[]))) {
            (Some(_), Some(name)) => self.line(&format!("{name} = {call};")),
            (Some(ty), None) if rng.bool() => {
                let name = self.fresh();
                self.line(&format!("var {name}: {} = {call};", shared.types.print(ty)));
                self.push(name, ty.clone(), Kind::Plain);
            }
            (Some(_) | None, _) => self.line(&format!("{call};")),
        }
        for (name, ty) in assigned {
            self.push(name, ty, Kind::Plain);
        }
    }

    /// A mutable variable of the type.
    fn mutable_argument(&mut self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> String {
        if shared.adds(rng, 2) {
            let known: Vec<_> = self.scope.iter().filter(|v| v.kind == Kind::Mutable && v.ty == *ty).collect();
            if let Some(variable) = rng.choice(known) {
                return variable.name.clone();
            }
        }
        let name = self.fresh();
        let value = self.mutable(rng, shared, ty);
        self.line(&format!("var {name}: #{} = {value};", shared.types.print(ty)));
        self.push(name.clone(), ty.clone(), Kind::Mutable);
        name
    }

    /// A variable of the type.
    fn variable_argument(&mut self, rng: &mut Rng, shared: &Shared, ty: &Ty) -> String {
        if rng.bool()
            && let Some(name) = self.target(rng, ty, &[])
        {
            return name;
        }
        let name = self.fresh();
        let value = self.expr(rng, shared, ty, 1, Context::Typed);
        self.line(&format!("var {name}: {} = {value};", shared.types.print(ty)));
        self.push(name.clone(), ty.clone(), Kind::Plain);
        name
    }

    /// Sends or receives one message.
    pub fn communicate(&mut self, rng: &mut Rng, shared: &Shared, direction: Direction, channel: &str, payload: &[Ty]) {
        let operation = match direction {
            Direction::Out => {
                let values = payload.iter().map(|ty| format!(", {}", self.expr(rng, shared, ty, 2, Context::Typed)));
                format!("out({channel}{})", values.collect::<String>())
            }
            Direction::In if rng.u32(0..4) == 0 => {
                let before = self.scope.len();
                let patterns = self.message(rng, shared, payload);
                self.line(&format!("in({channel}{patterns}) {{"));
                self.statements(rng, shared, 1, 1);
                self.line("}");
                self.scope.truncate(before);
                return;
            }
            Direction::In => format!("in({channel}{})", self.message(rng, shared, payload)),
        };
        self.line(&format!("{operation};"));
    }

    /// Receives one message, which is awaited until a deadline up to three times, then without one. The number of
    /// deadlines that passed, and sometimes the time, are in scope after it.
    pub fn receive_by_deadline(&mut self, rng: &mut Rng, shared: &Shared, channel: &str, payload: &[Ty]) {
        let [deadline, got, late, start] = [(); 4].map(|()| self.fresh());
        let wait = rng.u32(0..5) * 150;
        self.line(&format!("var {start} = now, {deadline} = {start} + ({wait} us), {got} = false, {late} = 0;"));
        self.line(&format!("while (!{got} && {late} < 3) {{ {}alt {{", ["", "pri "][rng.usize(0..2)]));
        self.level += 1;
        let before = self.scope.len();
        let patterns = self.message(rng, shared, payload);
        self.line(&format!("in({channel}{patterns}) {{ {got} = true;"));
        if rng.bool() {
            self.statements(rng, shared, 1, 1);
        }
        self.line("}");
        self.scope.truncate(before);
        let next = match rng.u32(0..3) {
            0 => format!("{deadline} = now + ({wait} us);"),
            1 => format!("{deadline} += ({} us);", 100 + wait),
            _ => String::new(),
        };
        self.line(&format!("until ({deadline}) {{ {late} += 1; {next} }}"));
        if rng.u32(0..3) == 0 {
            self.line(&format!("when ({late} > 0) after ({} us) {{ {late} += 1; }}", rng.u32(0..400)));
        }
        self.line("} }");
        self.level -= 1;
        self.line(&format!("if (!{got}) {{"));
        let before = self.scope.len();
        let patterns = self.message(rng, shared, payload);
        self.line(&format!("in({channel}{patterns}); }}"));
        self.scope.truncate(before);
        self.push(late, Ty::Int(IntType::I32), Kind::Constant);
        if rng.bool() {
            let elapsed = self.fresh();
            self.line(&format!("var {elapsed}: duration = now - {start};"));
            self.push(elapsed, Ty::Duration, Kind::Plain);
        }
    }
}
