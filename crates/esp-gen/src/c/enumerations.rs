//! The cases of enumerations as constants for the environment. In generated C an enumeration is its integer type.

use super::plan::EnumerationPlan;
use super::values::literal;
use quaject_esp_ir::ir::Program;
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// The constants, which may stand behind `case`. Those that an `int` of 32 bits does not hold are macros.
pub(crate) fn declare(program: &Program, plans: &[EnumerationPlan], c_types: &[String]) -> String {
    let mut text = String::new();
    for plan in plans {
        let Some(enumeration) = program.types.enumeration(plan.ty) else { continue };
        let c_type = &c_types[plan.ty.0 as usize];
        let other =
            enumeration.other.as_ref().map(|name| format!("; `{name}` is every other code")).unwrap_or_default();
        put!(text, "/* enumeration {}, carried as {c_type}{other} */", enumeration.name);
        let cases = plan.constants.iter().zip(&enumeration.cases).map(|(name, (_, code))| (name, *code));
        let (narrow, wide): (Vec<_>, Vec<_>) = cases.partition(|(_, code)| i32::try_from(*code).is_ok());
        if !narrow.is_empty() {
            let members: Vec<String> = narrow.iter().map(|(name, code)| format!("    {name} = {code}")).collect();
            put!(text, "enum {{\n{}\n}};", members.join(",\n"));
        }
        for (name, code) in wide {
            put!(text, "#define {name} (({c_type}){})", literal(&program.types, code, plan.ty));
        }
        text.push('\n');
    }
    text
}
