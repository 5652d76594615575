//! Conversion between the messages of a channel and those of a device. A device declares the values of its messages; a
//! channel's type matches if it has the same values in order, those of records included. So `(u32, u16, bytes[<=512])`,
//! `(peerT, bytes[<=512])` and one record of all three are equal to a device. Knows no device.

use super::type_name;
use crate::error::{HostCode, HostError};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::{Channel, IntType, Program, Type, TypeId};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The kind of a value of a device's message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldKind<'c> {
    /// An identity: a `pid`, or an integer.
    Id,
    /// A number from 0 to at least this.
    Number(u64),
    /// An address of the Internet: an integer that holds an IPv4 address, or bytes that hold an IPv6 one.
    Address,
    /// Bytes, of any bound above 0.
    Bytes,
    /// One of several, a union: each has a name of its own.
    Cases(&'c [Case<'c>]),
}

/// One case of a union.
#[derive(Debug)]
pub(crate) struct Case<'c> {
    /// Its name in the program.
    pub(crate) name: &'c str,
    /// Its values; a program may omit the last ones, down to `least`.
    pub(crate) fields: &'c [FieldKind<'c>],
    /// The minimum number of its values.
    pub(crate) least: usize,
}

impl<'c> Case<'c> {
    /// A case with exactly these values.
    pub(crate) const fn new(name: &'c str, fields: &'c [FieldKind<'c>]) -> Case<'c> {
        Case { name, fields, least: fields.len() }
    }
}

/// A value of a device's message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    /// A number, or an index in the list of instances that a `pid` may name.
    Number(i128),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A case, by its number in the device's list, and its values.
    Case(usize, Vec<Value>),
    /// An address; in messages of programs, none if the bytes are not one.
    Address(Option<IpAddr>),
}

impl Value {
    /// The number; 0 for any other value, which [`MessageCodec::of_channel`] excludes.
    pub(crate) fn number(&self) -> i128 {
        match self {
            Value::Number(number) => *number,
            Value::Bytes(_) | Value::Case(..) | Value::Address(_) => 0,
        }
    }

    /// The address, if it is one.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        match self {
            Value::Address(address) => *address,
            Value::Number(_) | Value::Bytes(_) | Value::Case(..) => None,
        }
    }

    /// The bytes; empty for any other value, likewise.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Value::Bytes(bytes) => bytes,
            Value::Number(_) | Value::Case(..) | Value::Address(_) => Vec::new(),
        }
    }
}

/// A number or a length that exceeds the channel's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("it is larger than the channel's type holds")
    }
}

impl std::error::Error for TooLarge {}

/// The conversion of one channel.
#[derive(Debug)]
pub(crate) struct MessageCodec {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Number(IntType),
    /// The instances that the `pid` may name.
    Instance(Vec<u32>),
    Bytes(usize),
    Address(AddressForm),
    Record(Vec<Part>),
    /// By tag: the number of the case, and its parts.
    Union(Vec<(usize, Option<Box<Part>>)>),
}

/// The form of an address in a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum AddressForm {
    /// An integer: IPv4 only.
    Number,
    /// Four bytes of an IPv4 address, or sixteen of an IPv6 one.
    Bytes,
}

/// The bytes of the longest address.
const ADDRESS_BYTES: u32 = 16;

/// The reason why a type does not match, for the cause of an error.
type Mismatch = String;

impl MessageCodec {
    /// The conversion of messages with these `fields`. `example` is a type that the program could declare instead.
    pub(crate) fn of_channel(
        program: &Program,
        channel: &Channel,
        driver: &str,
        fields: &[FieldKind<'_>],
        example: &str,
    ) -> Result<MessageCodec, HostError> {
        let mut rest = fields;
        let parts: Result<Vec<Part>, Mismatch> =
            channel.payload.iter().map(|ty| part(program, *ty, &mut rest)).collect();
        let parts = parts.and_then(|parts| match rest {
            [] => Ok(parts),
            [_, ..] => Err("something is missing".to_string()),
        });
        match parts {
            Ok(parts) => Ok(MessageCodec { parts }),
            Err(mismatch) => {
                let types: Vec<String> = channel.payload.iter().map(|ty| type_name(program, *ty)).collect();
                Err(HostError::usage(
                    HostCode::Type,
                    format!(
                        "driver `{driver}` cannot serve channel `{}`, whose messages are `({})`: {mismatch}",
                        channel.name,
                        types.join(", ")
                    ),
                )
                .help(format!("declare it `channel {}{example}; records of the same values fit, too", channel.name)))
            }
        }
    }

    /// A message of the channel.
    pub(crate) fn encode(&self, values: Vec<Value>) -> Result<Vec<Datum>, TooLarge> {
        let mut values = values.into_iter();
        self.parts.iter().map(|part| part.encode(&mut values)).collect()
    }

    /// The values of a message of the channel.
    pub(crate) fn decode(&self, message: &[Datum]) -> Vec<Value> {
        let mut values = Vec::with_capacity(4);
        for (part, datum) in self.parts.iter().zip(message) {
            part.decode(datum, &mut values);
        }
        values
    }

    /// The instances its `pid` may name, if it has one.
    pub(crate) fn instances(&self) -> Option<&[u32]> {
        find(&self.parts, &|part| match part {
            Part::Instance(instances) => Some(instances.as_slice()),
            Part::Number(_) | Part::Address(_) | Part::Bytes(_) | Part::Record(_) | Part::Union(_) => None,
        })
    }

    /// The bound of its first bytes; 0 without any.
    pub(crate) fn bytes_bound(&self) -> usize {
        let bound = find(&self.parts, &|part| match part {
            Part::Bytes(bound) => Some(*bound),
            Part::Number(_) | Part::Address(_) | Part::Instance(_) | Part::Record(_) | Part::Union(_) => None,
        });
        bound.unwrap_or(0)
    }

    /// The largest number that its first value can be, if that is a number: an identity, in the messages of devices
    /// that have one.
    pub(crate) fn largest_id(&self) -> i128 {
        let largest = find(&self.parts, &|part| match part {
            Part::Number(int) => Some(IntType::max(*int)),
            Part::Instance(instances) => Some(instances.len() as i128 - 1),
            Part::Address(_) | Part::Bytes(_) | Part::Record(_) | Part::Union(_) => None,
        });
        largest.unwrap_or(0)
    }

    /// Refuses an endpoint of IPv6 if the messages have no room for its addresses.
    pub(crate) fn check_family(&self, channel: &Channel, driver: &str, at: SocketAddr) -> Result<(), HostError> {
        let narrow = find(&self.parts, &|part| match part {
            Part::Address(form) => (*form == AddressForm::Number).then_some(()),
            Part::Number(_) | Part::Instance(_) | Part::Bytes(_) | Part::Record(_) | Part::Union(_) => None,
        });
        if at.is_ipv4() || narrow.is_none() {
            return Ok(());
        }
        Err(HostError::usage(
            HostCode::Type,
            format!("driver `{driver}:{at}` cannot serve channel `{}`: an integer holds no IPv6 address", channel.name),
        )
        .help("declare the address as `bytes[<=16]`: four bytes of an IPv4 address, sixteen of an IPv6 one"))
    }

    /// The bound of the bytes of a case of its union; 0 without any.
    pub(crate) fn bytes_bound_in(&self, case: usize) -> usize {
        let bound = find(&self.parts, &|part| match part {
            Part::Union(cases) => {
                let (_, payload) = cases.iter().find(|(number, _)| *number == case)?;
                find(std::slice::from_ref(payload.as_deref()?), &|part| match part {
                    Part::Bytes(bound) => Some(*bound),
                    Part::Number(_) | Part::Address(_) | Part::Instance(_) | Part::Record(_) | Part::Union(_) => None,
                })
            }
            Part::Number(_) | Part::Address(_) | Part::Bytes(_) | Part::Instance(_) | Part::Record(_) => None,
        });
        bound.unwrap_or(0)
    }

    /// Whether its union has an optional case.
    pub(crate) fn has(&self, case: usize) -> bool {
        let found = find(&self.parts, &|part| match part {
            Part::Union(cases) => cases.iter().find(|(number, _)| *number == case),
            Part::Number(_) | Part::Address(_) | Part::Bytes(_) | Part::Instance(_) | Part::Record(_) => None,
        });
        found.is_some()
    }
}

/// Whether the messages of a channel begin with a `pid`.
pub(crate) fn begins_with_pid(program: &Program, channel: &Channel) -> bool {
    let mut first = channel.payload.first().copied();
    while let Some(ty) = first {
        first = match program.types.get(ty) {
            Type::Record(id) => program.types.aggregate(*id).parts.first().and_then(|(_, field)| *field),
            Type::Boxed(pool) => Some(program.types.pool(*pool).content),
            Type::Pid(_) => return true,
            Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Array { .. } | Type::Union(_) => {
                return false;
            }
        };
    }
    false
}

/// The first result in depth-first order.
fn find<'f, T>(parts: &'f [Part], ask: &dyn Fn(&'f Part) -> Option<T>) -> Option<T> {
    parts.iter().find_map(|part| {
        ask(part).or_else(|| match part {
            Part::Record(parts) => find(parts, ask),
            Part::Union(cases) => {
                cases.iter().find_map(|(_, payload)| find(std::slice::from_ref(payload.as_deref()?), ask))
            }
            Part::Number(_) | Part::Address(_) | Part::Instance(_) | Part::Bytes(_) => None,
        })
    })
}

impl Part {
    fn encode(&self, values: &mut impl Iterator<Item = Value>) -> Result<Datum, TooLarge> {
        if let Part::Record(parts) = self {
            return parts.iter().map(|part| part.encode(values)).collect::<Result<_, _>>().map(Datum::Record);
        }
        match (self, values.next()) {
            (Part::Number(int), Some(Value::Number(number))) => {
                let is_in_range = IntType::min(*int) <= number && number <= IntType::max(*int);
                if is_in_range { Ok(Datum::Int(number)) } else { Err(TooLarge) }
            }
            (Part::Instance(instances), Some(Value::Number(number))) => {
                instances.get(number as usize).map(|instance| Datum::Pid(*instance)).ok_or(TooLarge)
            }
            (Part::Address(form), Some(Value::Address(Some(address)))) => match (form, address) {
                (AddressForm::Number, IpAddr::V4(address)) => Ok(Datum::Int(i128::from(u32::from(address)))),
                (AddressForm::Number, IpAddr::V6(_)) => Err(TooLarge),
                (AddressForm::Bytes, IpAddr::V4(address)) => Ok(Datum::Bytes(address.octets().to_vec())),
                (AddressForm::Bytes, IpAddr::V6(address)) => Ok(Datum::Bytes(address.octets().to_vec())),
            },
            (Part::Bytes(bound), Some(Value::Bytes(bytes))) => {
                if bytes.len() <= *bound {
                    Ok(Datum::Bytes(bytes))
                } else {
                    Err(TooLarge)
                }
            }
            (Part::Union(cases), Some(Value::Case(number, values))) => {
                let tag = cases.iter().position(|(case, _)| *case == number).ok_or(TooLarge)?;
                let mut values = values.into_iter();
                let payload = cases[tag].1.as_ref().map(|part| part.encode(&mut values)).transpose()?;
                Ok(Datum::Union(tag as u32, payload.map(Box::new)))
            }
            (
                Part::Number(_)
                | Part::Address(_)
                | Part::Instance(_)
                | Part::Bytes(_)
                | Part::Record(_)
                | Part::Union(_),
                _,
            ) => Err(TooLarge),
        }
    }

    fn decode(&self, datum: &Datum, values: &mut Vec<Value>) {
        match (self, datum) {
            (Part::Number(_), Datum::Int(number)) => values.push(Value::Number(*number)),
            (Part::Instance(instances), Datum::Pid(instance)) => {
                let place = instances.iter().position(|listed| listed == instance);
                values.push(Value::Number(place.map_or(-1, |place| place as i128)));
            }
            (Part::Address(AddressForm::Number), Datum::Int(number)) => {
                values.push(Value::Address(Some(Ipv4Addr::from(*number as u32).into())));
            }
            (Part::Address(AddressForm::Bytes), Datum::Bytes(bytes)) => {
                let short = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
                let long = <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from);
                values.push(Value::Address(short.or(long).ok()));
            }
            (Part::Bytes(_), Datum::Bytes(bytes)) => values.push(Value::Bytes(bytes.clone())),
            (Part::Record(parts), Datum::Record(members)) => {
                for (part, member) in parts.iter().zip(members) {
                    part.decode(member, values);
                }
            }
            (Part::Union(cases), Datum::Union(tag, payload)) => {
                let (number, part) = &cases[*tag as usize];
                let mut held = Vec::new();
                if let (Some(part), Some(payload)) = (part, payload) {
                    part.decode(payload, &mut held);
                }
                values.push(Value::Case(*number, held));
            }
            (
                Part::Number(_)
                | Part::Address(_)
                | Part::Instance(_)
                | Part::Bytes(_)
                | Part::Record(_)
                | Part::Union(_),
                _,
            ) => {}
        }
    }
}

/// Matches one type with the next fields, which it consumes.
fn part(program: &Program, ty: TypeId, fields: &mut &[FieldKind<'_>]) -> Result<Part, Mismatch> {
    let name = || format!("`{}`", type_name(program, ty));
    let content = match program.types.get(ty) {
        Type::Boxed(pool) => program.types.get(program.types.pool(*pool).content),
        flat => flat,
    };
    if let Type::Record(id) = content {
        let members = &program.types.aggregate(*id).parts;
        let parts = members.iter().map(|(_, member)| part(program, member.ok_or_else(name)?, fields));
        return parts.collect::<Result<_, _>>().map(Part::Record);
    }
    let Some((field, rest)) = fields.split_first() else { return Err(format!("{} is too much", name())) };
    *fields = rest;
    match (field, content) {
        (FieldKind::Id, Type::Pid(processes)) => {
            let instances = processes.iter().flat_map(|process| {
                let first = program.first_instance(*process);
                first..first + program.processes[process.0 as usize].replicas
            });
            Ok(Part::Instance(instances.collect()))
        }
        (FieldKind::Id, Type::Int(int)) => Ok(Part::Number(*int)),
        (FieldKind::Address, Type::Int(int)) if IntType::max(*int) >= i128::from(u32::MAX) => {
            Ok(Part::Address(AddressForm::Number))
        }
        (FieldKind::Address, Type::Bytes { bound }) if *bound >= ADDRESS_BYTES => Ok(Part::Address(AddressForm::Bytes)),
        (FieldKind::Address, Type::Int(_)) => Err(format!("{} does not hold {}", name(), u32::MAX)),
        (FieldKind::Address, Type::Bytes { .. }) => Err(format!("{} does not hold an IPv6 address", name())),
        (FieldKind::Number(max), Type::Int(int)) if IntType::max(*int) >= i128::from(*max) => Ok(Part::Number(*int)),
        (FieldKind::Number(max), Type::Int(_)) => Err(format!("{} does not hold {max}", name())),
        (FieldKind::Bytes, Type::Bytes { bound }) if *bound > 0 => Ok(Part::Bytes(*bound as usize)),
        (FieldKind::Cases(cases), Type::Union(id)) => union(program, &program.types.aggregate(*id).parts, cases),
        (FieldKind::Id, _) => Err(format!("{} is neither a `pid` nor an integer", name())),
        (FieldKind::Address, _) => Err(format!("{} is neither `u32` nor `bytes[<=16]`", name())),
        (FieldKind::Number(_), _) => Err(format!("{} is no integer", name())),
        (FieldKind::Bytes, _) => Err(format!("{} is not `bytes`", name())),
        (FieldKind::Cases(_), _) => Err(format!("{} is no union", name())),
    }
}

fn union(
    program: &Program,
    declared: &[(smol_str::SmolStr, Option<TypeId>)],
    cases: &[Case<'_>],
) -> Result<Part, Mismatch> {
    let mut by_tag = Vec::with_capacity(declared.len());
    for (name, payload) in declared {
        let Some(number) = cases.iter().position(|case| case.name == name) else {
            let known: Vec<&str> = cases.iter().map(|case| case.name).collect();
            return Err(format!("it has no case `{name}`, only `{}`", known.join("`, `")));
        };
        let case = &cases[number];
        let mut fields = case.fields;
        let part = payload.map(|ty| part(program, ty, &mut fields)).transpose();
        let part = part.map_err(|mismatch| format!("in case `{name}`, {mismatch}"))?;
        if case.fields.len() - fields.len() < case.least {
            return Err(format!("case `{name}` holds too little"));
        }
        by_tag.push((number, part.map(Box::new)));
    }
    Ok(Part::Union(by_tag))
}
