//! Entries and exits of fast paths within a macro step: capture of the members, and where each resumes.

use super::macro_step::MacroStep;
use crate::promela::expression::Expr;
use crate::promela::lines::{Lines, Mark};
use crate::promela::paths::{CAPTURED, RESUMED};
use quaject_esp_ir::ir::*;

impl<'a> MacroStep<'_, 'a> {
    /// Captures the members if all are at their waits. If not, either edge is taken: the choice depends on which
    /// instances are ready, and changes only when the path is tried again.
    pub(super) fn enter(&mut self, enter: &Enter, location: Location, lines: &mut Lines) {
        let plan = self.scope.plan;
        let path = &plan.program.paths[enter.path.0 as usize];
        let mut in_place = None;
        if self.scope.own.text != path.trigger.to_string() {
            in_place = Some(Expr::binary(&self.scope.own, "==", &Expr::number(i128::from(path.trigger))));
        }
        let mut taken = Lines::default();
        let mut values = Vec::new();
        for member in &path.members {
            let (id, _) = plan.program.process_of(member.instance).expect("a verified path names instances");
            let scope = plan.member_scope(id).expect("members are captured");
            let place = plan.paths.place(&scope.own);
            let number = plan.paths.start(id, member.start.0).expect("starts are numbered");
            in_place = Some(Expr::and(in_place, Expr::binary(&place, "==", &Expr::number(i128::from(number)))));
            if let Terminator::Wait(wait) = &scope.body.blocks[member.start.0.0 as usize].terminator
                && let Some(guard) = self.process.guard(&scope, member.start.1, &wait.branches[member.start.1 as usize])
            {
                in_place = Some(Expr::and(in_place, guard));
            }
            taken.push(Mark::Local, location, format!("{} = {CAPTURED};", place.text));
            values.extend(member.values.iter().map(|value| scope.value(*value)));
        }
        for (parameter, value) in self.body().blocks[enter.then.0 as usize].parameters.iter().zip(values) {
            if let Some(name) = self.scope.variable(*parameter) {
                taken.push(Mark::Local, location, format!("{name} = {};", value.text));
            }
        }
        let in_place = in_place.map_or_else(|| "true".to_string(), |all| all.text);
        lines.push(Mark::Local, location, "if");
        lines.push(Mark::Local, location, format!(":: {in_place} ->"));
        lines.indent();
        // Spin merges the statement behind a guard with the guard and never lists it as unreached, so it is repeated.
        let entered = format!("{} = 1;", plan.paths.entered);
        lines.push(Mark::Local, location, &entered);
        lines.append(taken);
        lines.push(Mark::Enter { path: enter.path.0 }, location, entered);
        self.continue_at(enter.then, location, lines);
        lines.dedent();
        // The path may be declined nevertheless, for reasons that are not modelled.
        lines.push(Mark::Local, location, format!(":: {in_place} ->"));
        lines.indent();
        self.follow(&enter.otherwise, location, lines);
        lines.dedent();
        lines.push(Mark::Local, location, ":: else ->");
        lines.indent();
        lines.push(Mark::Local, location, "if");
        for edge in [&enter.later, &enter.otherwise] {
            lines.push(Mark::Local, location, ":: true ->");
            lines.indent();
            self.follow(edge, location, lines);
            lines.dedent();
        }
        lines.push(Mark::Local, location, "fi;");
        lines.dedent();
        lines.push(Mark::Local, location, "fi;");
    }

    /// Exits a path: sets where the members resume, and continues the trigger.
    pub(super) fn leave(&mut self, leave: &Leave, location: Location, lines: &mut Lines) {
        let plan = self.scope.plan;
        let path = &plan.program.paths[leave.path.0 as usize];
        for (number, resume) in &leave.members {
            let member = &path.members[*number as usize];
            let (id, _) = plan.program.process_of(member.instance).expect("a verified path names instances");
            let scope = plan.member_scope(id).expect("members are captured");
            for (own, becomes) in &resume.values {
                if let Some(name) = scope.variable(*own) {
                    let value = self.scope.value(*becomes);
                    lines.push(Mark::Local, location, format!("{name} = {};", value.text));
                }
            }
            let place = RESUMED + plan.paths.resumes[&id][&resume.to];
            lines.push(Mark::Local, location, format!("{} = {place};", plan.paths.place(&scope.own).text));
        }
        self.assign(&leave.trigger.values, location, lines);
        self.continue_at(leave.trigger.to, location, lines);
    }
}
