//! Tick expressions: parsed whole, and translated to C that builds their tree when it is evaluated.

mod emit;
mod emit_aggregate;
mod emit_loop;
mod expression;
mod initial;
mod statement;
mod tree;

use crate::diagnostics::Code;
use crate::parser::{Edit, Parser};
use crate::report::{Event, Remark};
use emit::Emitter;
use statement::TickParser;

impl Parser<'_> {
    /// The tick that is next: a back quote with an operand or block.
    pub(crate) fn tick(&mut self) {
        let first = self.at;
        self.advance();
        let reported = self.diagnostics.len();
        self.scopes.open();
        let mut tick = TickParser::new(self);
        let body = tick.operand();
        let locals = tick.locals;
        self.scopes.close();
        if self.at == first + 1 {
            self.report(
                Code::Syntax,
                first,
                first + 1,
                "a back quote without an operand",
                "an expression or block follows",
            );
        }
        if self.diagnostics.len() > reported {
            return;
        }
        let after = self.at;
        let mut emitter = Emitter::new(self, &locals);
        let text = emitter.tick(&body);
        let nodes = emitter.nodes;
        let lines = self.resynchronized(first, after, &text);
        let text = text + &lines;
        let (start, end) = (self.start_of(first), self.end_before(after));
        self.edits.retain(|edit| edit.start < start || edit.end > end);
        self.edits.push(Edit { start, end, text });
        self.remarks.push(Remark { offset: start, event: Event::Tick { nodes } });
    }
}
