//! Fault sites: generated code raises a fault by its number, a constant table has its kind and location.

use quaject_esp_ir::ir::{ChannelId, Fault, InstanceId, Location};
use std::cell::RefCell;
use std::fmt::Write as _;

/// The first number of a fault: functions return 0 for false and 1 for true.
const FIRST: usize = 2;

/// A place at which a fault may be raised.
type Site = (Fault, Location, Option<ChannelId>);

/// The fault sites of a program.
#[derive(Default)]
pub(crate) struct Faults {
    sites: RefCell<Vec<Site>>,
    /// Calls of pure functions by fused processes: the member, and the channel that it calls for.
    calls: RefCell<Vec<(InstanceId, Option<ChannelId>)>>,
}

impl Faults {
    /// The number of a fault at a place, the same for equal ones.
    pub(crate) fn number(&self, fault: Fault, location: Location, channel: Option<ChannelId>) -> usize {
        let mut sites = self.sites.borrow_mut();
        let site = (fault, location, channel);
        let index = sites.iter().position(|other| *other == site).unwrap_or_else(|| {
            sites.push(site);
            sites.len() - 1
        });
        FIRST + index
    }

    /// The number of a call that a fused process makes for a member, counted from 0, the same for equal ones.
    pub(crate) fn call(&self, member: InstanceId, channel: Option<ChannelId>) -> usize {
        let mut calls = self.calls.borrow_mut();
        let call = (member, channel);
        calls.iter().position(|other| *other == call).unwrap_or_else(|| {
            calls.push(call);
            calls.len() - 1
        })
    }

    /// How many such calls there are.
    pub(crate) fn calls(&self) -> usize {
        self.calls.borrow().len()
    }

    /// Whether some fault is that of a member of a fused process.
    pub(crate) fn have_members(&self) -> bool {
        self.sites.borrow().iter().any(|(_, location, _)| location.member.is_some())
    }

    /// Tables of members: of each site, counted from 1; of each call, with its channel.
    pub(crate) fn members(&self) -> String {
        let mut text = String::new();
        if self.have_members() {
            let sites = self.sites.borrow();
            let members = sites.iter().map(|(_, location, _)| location.member.map_or(0, |member| member.number() + 1));
            let members: Vec<String> = members.map(|member| member.to_string()).collect();
            let members = members.join(", ");
            text += &format!("static const esp_pid fault_members[] = {{0, 0, {members}}};\n");
        }
        if self.calls() > 0 {
            let calls = self.calls.borrow();
            let row = |(member, channel): &(InstanceId, Option<ChannelId>)| {
                format!("{{{}, {}}}", member.number(), channel.map_or(-1, |channel| i64::from(channel.0)))
            };
            let calls: Vec<String> = calls.iter().map(row).collect();
            text += "static const struct { esp_pid member; int32_t channel; } fault_calls[] = {";
            text += &format!("{}}};\n", calls.join(", "));
        }
        text
    }

    /// The table.
    pub(crate) fn table(&self, name: &str) -> String {
        let sites = self.sites.borrow();
        let mut text = format!(
            "static const struct {{ uint8_t code; esp_location place; }} {name}[] = {{\n    {{0, {{0, 0, 0, -1}}}}, \
             {{0, {{0, 0, 0, -1}}}}"
        );
        for (fault, location, channel) in sites.iter() {
            let channel = channel.map_or(-1, |channel| i64::from(channel.0));
            write!(
                text,
                ",\n    {{{}, {{{}, {}, {}, {channel}}}}}",
                code(*fault),
                location.file,
                location.column.min(65535),
                location.line
            )
            .expect("writing to a string does not fail");
        }
        text.push_str("\n};\n");
        text
    }
}

/// The name of a fault's code in `quaject/esp.h`.
pub(crate) fn code(fault: Fault) -> &'static str {
    match fault {
        Fault::Assert => "ESP_FAULT_ASSERT",
        Fault::Bounds => "ESP_FAULT_BOUNDS",
        Fault::Div => "ESP_FAULT_DIV",
        Fault::Overflow => "ESP_FAULT_OVERFLOW",
        Fault::Pool => "ESP_FAULT_POOL",
        Fault::Range => "ESP_FAULT_RANGE",
        Fault::Memory => "ESP_FAULT_MEMORY",
        Fault::Alt => "ESP_FAULT_ALT",
        Fault::Deadlock => "ESP_FAULT_DEADLOCK",
        Fault::Extern => "ESP_FAULT_EXTERN",
    }
}
