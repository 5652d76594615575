//! Numbers of fault sites: generated code names a fault by its number, a constant table says where it stands.

use quaject_esp_ir::ir::{ChannelId, Fault, Location};
use std::cell::RefCell;
use std::fmt::Write as _;

/// Numbers below this are no faults: 0 is "nothing", 1 is "yes".
const FIRST: usize = 2;

/// Where a fault may be raised.
type Site = (Fault, Location, Option<ChannelId>);

/// The fault sites of a program.
#[derive(Default)]
pub(crate) struct Faults {
    sites: RefCell<Vec<Site>>,
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
