//! C names of a program's types, in both forms where they differ.

use super::super::names::Names;
use crate::layout::Layouts;
use quaject_esp_ir::ir::{IntType, Type, TypeId, TypeTable};

/// Names of records and unions are taken from the source; structural types are named by what they hold.
/// Where the two forms of a type differ, the environment's has the plain name.
pub(crate) fn type_names(
    types: &TypeTable,
    layouts: &Layouts,
    own: &str,
    names: &mut Names,
) -> (Vec<String>, Vec<String>) {
    let mut result: Vec<String> = vec![String::new(); types.types().len()];
    let mut environment: Vec<String> = vec![String::new(); types.types().len()];
    for (index, form) in environment.iter_mut().enumerate() {
        let ty = TypeId(index as u32);
        let name = type_name(types, ty, own, names, &mut result);
        if layouts.has_boxes(ty) && !matches!(types.get(ty), Type::Boxed(_)) {
            *form = name;
        }
    }
    for (form, name) in environment.iter().zip(&mut result) {
        if !form.is_empty() {
            *name = names.claim(&format!("{form}_boxed"));
        }
    }
    (result, environment)
}

fn type_name(types: &TypeTable, ty: TypeId, own: &str, names: &mut Names, result: &mut Vec<String>) -> String {
    let known = &result[ty.0 as usize];
    if !known.is_empty() {
        return known.clone();
    }
    let name = match types.get(ty) {
        Type::Error => "uint8_t".to_string(),
        Type::Bool => "bool".to_string(),
        Type::Int(IntType::Time) => "esp_time".to_string(),
        Type::Int(int) => format!("{}int{}_t", if int.is_signed() { "" } else { "u" }, int.bits()),
        Type::Pid(_) => "esp_pid".to_string(),
        Type::Bytes { bound } => names.claim(&format!("{own}bytes_{bound}")),
        Type::Array { length, element } => {
            let element = type_name(types, *element, own, names, result);
            let element = element.strip_suffix("_t").unwrap_or(&element).to_string();
            let element = element.strip_prefix(own).unwrap_or(&element);
            names.claim(&format!("{own}array_{length}_{element}"))
        }
        Type::Record(id) => match &types.aggregate(*id).name {
            Some(name) => names.claim(&format!("{own}{name}")),
            None => names.claim(&format!("{own}record_{}", id.0)),
        },
        Type::Union(id) => match &types.aggregate(*id).name {
            Some(name) => names.claim(&format!("{own}{name}")),
            None => names.claim(&format!("{own}union_{}", id.0)),
        },
        Type::Boxed(pool) => {
            if types.pool(*pool).capacity <= 65535 {
                "uint16_t".to_string()
            } else {
                "uint32_t".to_string()
            }
        }
    };
    result[ty.0 as usize] = name.clone();
    name
}
