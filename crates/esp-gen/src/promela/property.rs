//! Properties: LTL in Spin's syntax over labels `P@L1` and variables `P:v` of the program, which are replaced by the
//! names of the model. Knows the tokens of LTL, not its grammar.

use super::Refusal;
use super::label_positions::{LabelPositions, label_positions};
use super::lines::{Lines, Mark};
use super::plan::Plan;
use super::process::ProcessText;
use quaject_esp_ir::ir::*;
use quaject_esp_ir::model::Role;
use quaject_esp_syntax::diagnostics::{Code, nearest};

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
        let mut text = String::new();
        let mut rest = self.source;
        while let Some(first) = rest.chars().next() {
            let number = rest.strip_prefix('-').map_or("", |number| word(number));
            if number.starts_with(|c: char| c.is_ascii_digit()) {
                // Spin tokenizes the sign separately and then rejects the number.
                text.push_str(&format!("(0-{number})"));
                rest = &rest[1 + number.len()..];
                continue;
            }
            if !(first.is_ascii_alphabetic() || first == '_') {
                text.push(if first.is_whitespace() { ' ' } else { first });
                rest = &rest[first.len_utf8()..];
                continue;
            }
            let name = word(rest);
            rest = &rest[name.len()..];
            let (replica, after) = match rest.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
                Some((number, after)) if number.trim().parse::<u32>().is_ok() => (number.trim().parse().ok(), after),
                Some(_) | None => (None, rest),
            };
            let separator = after.chars().next().filter(|sign| matches!(sign, '@' | ':'));
            let (Some(sign), member) = (separator, word(after.get(1..).unwrap_or_default())) else {
                text.push_str(name);
                continue;
            };
            if member.is_empty() {
                text.push_str(name);
                continue;
            }
            rest = &after[1 + member.len()..];
            let (process, instance) = self.process(name, replica)?;
            text.push_str(&match sign {
                '@' => self.label(process, instance, member)?,
                _ => self.variable(process, instance, member)?,
            });
        }
        Some(text)
    }

    /// Reports a name in a property that does not exist.
    fn misses<T>(&self, message: String, help: String) -> Option<T> {
        self.refuse(Code::E0802, message, help)
    }

    fn refuse<T>(&self, code: Code, message: String, help: String) -> Option<T> {
        let message = format!("the property `{}` {message}", self.source);
        self.plan.add(Refusal { code, location: Location::default(), property: Some(self.number), message, help });
        None
    }

    fn process(&self, name: &str, replica: Option<u32>) -> Option<(ProcessId, u32)> {
        let program = self.plan.program;
        let names = || program.processes.iter().map(|process| process.name.as_str());
        let Some(index) = names().position(|process| process == name) else {
            let help = suggestion(nearest(name, names()), "processes are named as in the text");
            return self.misses(format!("names a process `{name}`, which does not exist"), help);
        };
        let process = ProcessId(index as u32);
        match program.instance(process, i128::from(replica.unwrap_or(0))) {
            Some(instance) => Some((process, instance)),
            None => {
                let count = program.processes[index].replicas;
                self.misses(
                    format!("names an instance that does not exist: `{name}` has {count}"),
                    format!("`{name}[0]` is the first"),
                )
            }
        }
    }

    fn label(&self, process: ProcessId, instance: u32, name: &str) -> Option<String> {
        let data = &self.plan.program.processes[process.0 as usize];
        // `#1` is written `L1`, `#retry` is `Lretry`.
        let plain = name.strip_prefix('L').unwrap_or(name);
        let Some(label) = data.labels.iter().position(|label| label == plain || label == name) else {
            let near = nearest(plain, data.labels.iter().map(|label| label.as_str()))
                .map(|near| format!("{}@L{near}", data.name));
            let help = suggestion(near.as_deref(), "a label `#1` of `P` is named `P@L1`");
            return self.misses(format!("names a label `{name}`, which `{}` does not have", data.name), help);
        };
        let own = match self.plan.model.roles[process.0 as usize] {
            Role::Omitted => return Some("false".to_string()),
            Role::Explored | Role::Environment | Role::OpenStub => &self.written[process.0 as usize].waits,
        };
        // A position in the model's text represents the label, so it must determine whether the label is passed.
        let message = match label_positions(&data.body, LabelId(label as u32)) {
            LabelPositions::Waits(waits) => {
                let proctype = &self.plan.processes[process.0 as usize];
                let names = waits.iter().filter_map(|wait| own.get(wait));
                let texts: Vec<String> = names.map(|wait| format!("{proctype}[{instance}]@{wait}")).collect();
                return Some(if texts.is_empty() { "false".to_string() } else { format!("({})", texts.join(" || ")) });
            }
            LabelPositions::Ambiguous(wait) => {
                let line = data.body.blocks[wait.0 as usize].location.line;
                format!(
                    "asks for `#{plain}` of `{}`, which some paths to line {line} pass and others do not",
                    data.name
                )
            }
            LabelPositions::Elsewhere => format!("asks whether `{}` is at `#{plain}`, where it never rests", data.name),
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
                let help =
                    suggestion(nearest(name, names.keys().map(String::as_str)), "a variable `v` of `P` is named `P:v`");
                let message = format!("names a variable `{name}`, which the model of `{}` does not hold", data.name);
                self.misses(message, help)
            }
        }
    }
}

fn suggestion(near: Option<&str>, otherwise: &str) -> String {
    near.map_or_else(|| otherwise.to_string(), |near| format!("did you mean `{near}`?"))
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    &text[..end]
}
