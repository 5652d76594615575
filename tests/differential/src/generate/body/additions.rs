//! Random statements that use what the language has beyond the papers: labelled loops, early returns, messages of
//! assertions, text of numbers, durations that change.

use super::Body;
use crate::generate::shared::{Context, Kind, Return, Shared};
use crate::generate::types::Ty;
use fastrand::Rng;
use quaject_esp_syntax::types::IntType;

impl Body {
    /// One statement of these.
    pub(super) fn addition(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        match rng.u32(0..9) {
            0 | 1 if depth > 0 && self.loops.is_empty() => {
                self.labels += 1;
                let label = format!("loop{}", self.labels);
                self.looping(rng, shared, depth, Some(label));
            }
            2 => self.early_return(rng, shared),
            3 => {
                let condition = self.expr(rng, shared, &Ty::Bool, 1, Context::Bare);
                let or = if rng.u32(0..30) == 0 { "" } else { " || true" };
                self.line(&format!("assert({condition}{or}, \"statement {}\");", self.next));
            }
            4 | 5 => self.append(rng, shared),
            6 => self.number_of_text(rng, shared, depth),
            7 if depth > 0 => self.matching(rng, shared, depth),
            _ => self.change_duration(rng, shared),
        }
    }

    /// A `return` under a condition, if the body has one.
    fn early_return(&mut self, rng: &mut Rng, shared: &Shared) {
        let value = match self.returns.clone() {
            Return::Never => return,
            Return::Empty => String::new(),
            Return::Value(ty) => format!(" {}", self.expr(rng, shared, &ty, 1, Context::Typed)),
        };
        let condition = self.expr(rng, shared, &Ty::Bool, 2, Context::Bare);
        self.line(&format!("if ({condition}) return{value};"));
    }

    /// Appends bytes, constants and other `bytes`.
    fn append(&mut self, rng: &mut Rng, shared: &Shared) {
        let is_text = |ty: &Ty| match ty {
            Ty::Bytes(_) => true,
            Ty::Boxed(id) => matches!(shared.types.boxed[*id].content, Ty::Bytes(_)),
            _other => false,
        };
        let texts: Vec<_> = self.scope.iter().filter(|v| v.kind == Kind::Mutable && is_text(&v.ty)).collect();
        let name = match rng.choice(texts) {
            Some(variable) if rng.bool() => variable.name.clone(),
            Some(_) | None => {
                let name = self.fresh();
                self.line(&format!("var {name}: #bytes[<=16] = #\"\";"));
                self.push(name.clone(), Ty::Bytes(15), Kind::Mutable);
                name
            }
        };
        for _ in 0..rng.u32(1..4) {
            let value = match rng.u32(0..4) {
                0 => "'x'".to_string(),
                1 => rng.u8(..).to_string(),
                2 => self.expr(rng, shared, &Ty::Bytes(1), 1, Context::Typed),
                _ => format!("u8({})", self.expr(rng, shared, &Ty::Int(IntType::U8), 1, Context::Bare)),
            };
            // An append beyond the bound is a fault.
            let is_short = if rng.u32(0..12) == 0 { String::new() } else { format!("if ({name}.len == 0) ") };
            self.line(&format!("{is_short}{name} += {value};"));
        }
    }

    /// Reads a number from text, if the program imports `std:format`.
    fn number_of_text(&mut self, rng: &mut Rng, shared: &Shared, depth: u32) {
        let Some(format) = &shared.format else { return self.append(rng, shared) };
        let base = ["decimal", "hexadecimal"][rng.usize(0..2)];
        let text = match rng.u32(0..3) {
            0 => format!("\"{}\"", rng.i32(-300..70_000)),
            1 => format!("{format}.decimal({})", self.expr(rng, shared, &Ty::Int(IntType::I32), 1, Context::Typed)),
            _ => self.expr(rng, shared, &Ty::Bytes(11), 1, Context::Typed),
        };
        let [name, number] = [(); 2].map(|()| self.fresh());
        self.line(&format!("var {name}: i64 = {};", rng.i32(-3..9)));
        self.line(&format!("match {format}.read_{base}({text}) {{ number |> ${number} => {{ {name} = {number};"));
        self.push(name, Ty::Int(IntType::I64), Kind::Plain);
        if depth > 0 && rng.bool() {
            self.scoped(|body| body.statement(rng, shared, depth - 1));
        }
        self.line("} invalid |> _ => { } }");
    }

    /// Adds to a duration, or scales it.
    fn change_duration(&mut self, rng: &mut Rng, shared: &Shared) {
        let durations: Vec<_> = self.scope.iter().filter(|v| v.kind == Kind::Plain && v.ty == Ty::Duration).collect();
        let Some(name) = rng.choice(durations).map(|variable| variable.name.clone()) else {
            return self.declare(rng, shared, &Ty::Duration);
        };
        let line = match rng.u32(0..4) {
            0 => format!("{name} += {};", self.expr(rng, shared, &Ty::Duration, 1, Context::Typed)),
            1 => format!("{name} -= {};", self.expr(rng, shared, &Ty::Duration, 1, Context::Typed)),
            2 => format!("{name} *= {};", rng.i32(-3..4)),
            _ => format!("{name} /= {};", rng.i32(1..9)),
        };
        self.line(&line);
    }
}
