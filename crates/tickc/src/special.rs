//! The special functions of 'C in static code: their calls become calls of the run-time library, with the types that
//! their arguments name.

use crate::diagnostics::Code;
use crate::lex::line_marker;
use crate::parser::Parser;

/// A special function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Special {
    pub(crate) name: &'static str,
    /// Its form, for messages.
    pub(crate) form: &'static str,
    /// Whether it is one of tick expressions; the others are of static code.
    pub(crate) is_dynamic: bool,
}

/// All special functions.
pub(crate) const SPECIAL: &[Special] = &[
    Special { name: "compile", form: "compile(cspec, type)", is_dynamic: false },
    Special { name: "free_code", form: "free_code(function)", is_dynamic: false },
    Special { name: "local", form: "local(type)", is_dynamic: false },
    Special { name: "param", form: "param(type, number)", is_dynamic: false },
    Special { name: "label", form: "label()", is_dynamic: false },
    Special { name: "push_init", form: "push_init()", is_dynamic: false },
    Special { name: "push", form: "push(list, cspec)", is_dynamic: false },
    Special { name: "jump", form: "jump(label)", is_dynamic: true },
    Special { name: "apply", form: "apply(function, list)", is_dynamic: true },
    Special { name: "self", form: "self(type, arguments)", is_dynamic: true },
];

impl Parser<'_> {
    /// The call of a special function that is next in static code, or in what a tick evaluates at once.
    pub(crate) fn special_call(&mut self) {
        let first = self.at;
        let name = self.peek(0);
        let special = *SPECIAL.iter().find(|own| own.name == name).expect("`is_special_call` has found it");
        if special.is_dynamic && name != "jump" {
            let help = "put the call into a tick expression";
            self.report(Code::Outside, first, first + 1, format!("`{name}` outside of a tick expression"), help);
            self.at += 2;
            return;
        }
        let arguments = self.special_arguments();
        let after = self.at;
        let is_right = match name {
            "compile" | "param" | "push" => arguments.len() == 2,
            "free_code" | "local" | "jump" => arguments.len() == 1,
            _ => arguments.is_empty(),
        };
        if !is_right {
            let message = format!("`{name}` with {} arguments", arguments.len());
            self.report(Code::Special, first, after, message, &format!("its form is `{}`", special.form));
            return;
        }
        let texts: Vec<String> = arguments.iter().map(|(from, to)| self.rewritten(*from, *to, &[])).collect();
        let text = |index: usize| texts.get(index).map_or("", String::as_str);
        let one = text(0);
        let replacement = match name {
            "compile" => {
                let ty = text(1);
                format!("((__typeof__({ty}) (*)())qjt_compile((const void *)({one}), QJT_RESULT({ty})))")
            }
            "free_code" => format!("qjt_free_code((const void *)({one}))"),
            "local" => format!("((__typeof__({one}) *(*)(qjt_v))qjt_local(QJT_OBJECT({one})))"),
            "param" => {
                let number = text(1);
                format!("((__typeof__({one}) *(*)(qjt_v))qjt_param(QJT_RESULT({one}), {number}))")
            }
            "label" => "((void (*)(qjt_c))qjt_label())".to_owned(),
            "push_init" => "((void (*)(qjt_c))qjt_push_init())".to_owned(),
            "push" => format!("qjt_push((const void *)({one}), (const void *)({}))", text(1)),
            _ => format!("((void (*)(qjt_c))qjt_jump((const void *)({one})))"),
        };
        let (start, end) = (self.start_of(first), self.end_before(after));
        self.edits.retain(|edit| edit.start < start || edit.end > end);
        let lines = self.resynchronized(first, after, &replacement);
        self.edits.push(crate::parser::Edit { start, end, text: replacement + &lines });
    }

    /// A line marker for what follows a range of tokens that a text replaces, if either has more than one line.
    pub(crate) fn resynchronized(&self, first: usize, after: usize, text: &str) -> String {
        let from = self.lines.locate(self.start_of(first));
        let to = self.lines.locate(self.end_before(after));
        let is_in_step = from == to && !text.contains('\n');
        if is_in_step || to.file.is_empty() { String::new() } else { line_marker(to) }
    }

    /// Passes the arguments of a call, and translates what is in them; returns the tokens of each.
    fn special_arguments(&mut self) -> Vec<(usize, usize)> {
        self.at += 2;
        let mut arguments = Vec::new();
        while !self.is_at_end() && !self.is_next(")") {
            let from = self.at;
            self.static_expression(&[",", ")"]);
            arguments.push((from, self.at));
            if !self.accept(",") && !self.is_next(")") {
                self.advance();
            }
        }
        self.accept(")");
        arguments
    }
}
