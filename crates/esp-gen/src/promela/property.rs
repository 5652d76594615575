//! Properties: LTL over labels `P@L1` and variables `P:v` of the program, which are replaced by the names of the model.

use super::Refusal;
use super::label_positions::{LabelPositions, label_positions};
use super::lines::{Lines, Mark};
use super::plan::Plan;
use super::process::ProcessText;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::ltl::{Formula, Proposition, Term, parse, suggestion};
use quaject_esp_ir::model::Role;
use quaject_esp_syntax::diagnostics::Code;

/// A property of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// Its name in the model, for `pan -N`.
    pub name: String,
    /// As it was written.
    pub source: String,
    text: String,
}

struct Translation<'t, 'a> {
    plan: &'t Plan<'a>,
    written: &'t [ProcessText],
    source: &'t str,
    number: usize,
}

pub(super) fn translate(plan: &Plan<'_>, written: &[ProcessText]) -> Vec<Property> {
    let sources = plan.model.properties.iter().enumerate();
    let translated = sources.filter_map(|(index, source)| {
        let text = Translation { plan, written, source, number: index }.text()?;
        Some(Property { name: format!("property_{index}"), source: source.clone(), text })
    });
    translated.collect()
}

/// Writes the properties into a model.
pub(super) fn write(properties: &[Property], lines: &mut Lines) {
    for property in properties {
        lines.plain("");
        // A line break in a property would end its comment.
        lines.push(Mark::None, Location::default(), format!("ltl {} {{ {} }}", property.name, property.text));
    }
}

impl Translation<'_, '_> {
    fn text(&self) -> Option<String> {
        match parse(self.plan.program, self.source) {
            Ok(property) => self.formula(&property),
            Err(error) => {
                self.refuse(Code::E0802, format!("is malformed: {}", error.message), error.help.unwrap_or_default())
            }
        }
    }

    /// A formula with parentheses around each operator, so that its grouping does not depend on Spin's grammar, which
    /// differs between `ltl` blocks and `spin -f`.
    fn formula(&self, formula: &Formula) -> Option<String> {
        Some(match formula {
            Formula::Constant(value) => value.to_string(),
            Formula::Proposition(Proposition::Passed { process, instance, label }) => {
                self.label(*process, *instance, *label)?
            }
            Formula::Proposition(Proposition::Compares(left, comparison, right)) => {
                format!("({} {} {})", self.term(left)?, comparison.sign(), self.term(right)?)
            }
            Formula::Prefix(operator, inner) => format!("({} {})", operator.sign(), self.formula(inner)?),
            Formula::Binary(operator, left, right) => {
                format!("({} {} {})", self.formula(left)?, operator.sign(), self.formula(right)?)
            }
            Formula::Junction(junction, parts) => {
                let parts = parts.iter().map(|part| self.formula(part)).collect::<Option<Vec<String>>>()?;
                format!("({})", parts.join(&format!(" {} ", junction.sign())))
            }
        })
    }

    fn term(&self, term: &Term) -> Option<String> {
        match term {
            // Spin tokenizes the sign separately and then rejects the number.
            Term::Constant(value) if *value < 0 => Some(format!("(0-{})", value.unsigned_abs())),
            Term::Constant(value) => Some(value.to_string()),
            Term::Variable { process, instance, name } => self.variable(*process, *instance, name),
        }
    }

    fn refuse<T>(&self, code: Code, message: String, help: String) -> Option<T> {
        let message = format!("the property `{}` {message}", self.source);
        self.plan.add(Refusal { code, location: Location::default(), property: Some(self.number), message, help });
        None
    }

    fn label(&self, process: ProcessId, instance: u32, label: LabelId) -> Option<String> {
        let data = &self.plan.program.processes[process.0 as usize];
        let own = match self.plan.model.roles[process.0 as usize] {
            Role::Omitted => return Some("false".to_string()),
            Role::Explored | Role::Environment | Role::OpenStub => &self.written[process.0 as usize].waits,
        };
        // A position in the model's text represents the label, so it must determine whether the label is passed.
        let name = &data.labels[label.0 as usize];
        let message = match label_positions(&data.body, label) {
            LabelPositions::Waits(waits) => {
                let proctype = &self.plan.processes[process.0 as usize];
                let names = waits.iter().filter_map(|wait| own.get(wait));
                let texts: Vec<String> = names.map(|wait| format!("{proctype}[{instance}]@{wait}")).collect();
                return Some(if texts.is_empty() { "false".to_string() } else { format!("({})", texts.join(" || ")) });
            }
            LabelPositions::Ambiguous(wait) => {
                let line = data.body.blocks[wait.0 as usize].location.line;
                format!("asks for `#{name}` of `{}`, which some paths to line {line} pass and others do not", data.name)
            }
            LabelPositions::Elsewhere => format!("asks whether `{}` is at `#{name}`, where it never rests", data.name),
        };
        let help = "put the label right before a channel operation, or leave out `--engine spin`".to_string();
        self.refuse(Code::E0804, message, help)
    }

    fn variable(&self, process: ProcessId, instance: u32, name: &str) -> Option<String> {
        let data = &self.plan.program.processes[process.0 as usize];
        let names = &self.written[process.0 as usize].observed;
        match names.get(name) {
            Some(variable) => Some(format!("{}[{instance}]:{variable}", self.plan.processes[process.0 as usize])),
            None => {
                let known: Vec<&str> = names.keys().map(String::as_str).collect();
                let help = suggestion(name, &known).unwrap_or_else(|| "it has no variable that properties name".into());
                let message = format!("names a variable `{name}`, which the model of `{}` does not hold", data.name);
                self.refuse(Code::E0802, message, help)
            }
        }
    }
}
