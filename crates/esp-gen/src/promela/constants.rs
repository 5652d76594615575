//! Constants of a program as arrays that are not in the state vector (`hidden`). Knows no code.

use super::expression::Expr;
use super::memory::{self, Kind};
use quaject_esp_ir::ir::{Constant, Literal, Type, TypeId, TypeTable};

/// How the numbers of a leaf are stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// In one variable.
    Whole,
    /// As halves of 16 bits in two variables: Spin's initialisers have no negative numbers.
    Halves,
}

impl Form {
    pub(super) fn of(leaf: &[i128]) -> Form {
        if leaf.iter().all(|number| (0..=i128::from(i32::MAX)).contains(number)) { Form::Whole } else { Form::Halves }
    }

    /// The number of a variable, with its index in brackets if it is an array.
    pub(super) fn read(self, name: &str, index: &str) -> Expr {
        match self {
            Form::Whole => Expr::tight(format!("{name}{index}")),
            Form::Halves => Expr::tight(format!("(({name}_high{index} << 16) + {name}_low{index})")),
        }
    }
}

/// A constant: its name and, by leaf, its numbers.
pub(super) struct ConstantPlan {
    pub(super) name: String,
    pub(super) leaves: Vec<Vec<i128>>,
}

/// The declaration of a variable.
pub(super) struct Declaration {
    pub(super) name: String,
    pub(super) text: String,
}

impl ConstantPlan {
    pub(super) fn new(types: &TypeTable, name: String, constant: &Constant) -> ConstantPlan {
        ConstantPlan { name, leaves: numbers(types, constant.ty, Some(&constant.content)) }
    }

    pub(super) fn declarations(&self, types: &TypeTable, ty: TypeId) -> Vec<Declaration> {
        let mut declarations = Vec::new();
        for (leaf, numbers) in memory::leaves(types, ty).iter().zip(&self.leaves) {
            let name = format!("{}{}", self.name, leaf.suffix);
            match Form::of(numbers) {
                Form::Whole => {
                    // Spin refuses hidden variables of one bit.
                    let ty = if leaf.kind == Kind::Bool { "byte" } else { leaf.kind.declared() };
                    declarations.push(declaration(ty, name, numbers));
                }
                Form::Halves => {
                    let half = |shift: u32| -> Vec<i128> {
                        numbers.iter().map(|number| i128::from(*number as u32 >> shift & 0xffff)).collect()
                    };
                    declarations.push(declaration("int", format!("{name}_high"), &half(16)));
                    declarations.push(declaration("int", format!("{name}_low"), &half(0)));
                }
            }
        }
        declarations
    }
}

fn declaration(ty: &str, name: String, numbers: &[i128]) -> Declaration {
    let text = match numbers {
        // Spin refuses arrays without elements; the guards of an access fail before it.
        [] => format!("hidden {ty} {name}[1];"),
        [number] => format!("hidden {ty} {name} = {number};"),
        [first, rest @ ..] if rest.iter().all(|number| number == first) => {
            format!("hidden {ty} {name}[{}] = {first};", numbers.len())
        }
        _ => {
            let list: Vec<String> = numbers.iter().map(i128::to_string).collect();
            format!("hidden {ty} {name}[{}] = {{ {} }};", numbers.len(), list.join(", "))
        }
    };
    Declaration { name, text }
}

/// The numbers of each leaf of a value; 0 where there is none.
fn numbers(types: &TypeTable, ty: TypeId, literal: Option<&Literal>) -> Vec<Vec<i128>> {
    match (types.get(ty), literal) {
        (Type::Bytes { bound }, literal) => {
            let bytes = match literal {
                Some(Literal::Bytes(bytes)) => bytes.as_slice(),
                Some(_) | None => &[],
            };
            let mut data: Vec<i128> = bytes.iter().map(|byte| i128::from(*byte)).collect();
            data.resize(*bound as usize, 0);
            vec![vec![bytes.len() as i128], data]
        }
        (Type::Array { length, element }, literal) => {
            let part = |index: usize| match literal {
                Some(Literal::Parts(parts)) => parts.get(index),
                Some(Literal::Repeat(part)) => Some(&**part),
                Some(_) | None => None,
            };
            let mut all = vec![Vec::new(); memory::leaves(types, *element).len()];
            for index in 0..*length as usize {
                let part = numbers(types, *element, part(index));
                all.iter_mut().zip(part).for_each(|(all, part)| all.extend(part));
            }
            all
        }
        (Type::Record(id), literal) => {
            let part = |index: usize| match literal {
                Some(Literal::Parts(parts)) => parts.get(index),
                Some(_) | None => None,
            };
            let fields = types.aggregate(*id).parts.iter().enumerate();
            fields.flat_map(|(index, (_, ty))| ty.map_or_else(Vec::new, |ty| numbers(types, ty, part(index)))).collect()
        }
        (Type::Union(id), literal) => {
            let (tag, payload) = match literal {
                Some(Literal::Tagged(tag, payload)) => (*tag, payload.as_deref()),
                Some(_) | None => (0, None),
            };
            let cases = types.aggregate(*id).parts.iter().enumerate();
            let cases = cases.flat_map(|(index, (_, ty))| {
                let payload = payload.filter(|_| index == tag as usize);
                ty.map_or_else(Vec::new, |ty| numbers(types, ty, payload))
            });
            [vec![i128::from(tag)]].into_iter().chain(cases).collect()
        }
        (Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Boxed(_), Some(Literal::Scalar(number))) => {
            vec![vec![*number]]
        }
        (Type::Int(_) | Type::Bool | Type::Pid(_) | Type::Boxed(_), _) => vec![vec![0]],
        (Type::Error, _) => Vec::new(),
    }
}
