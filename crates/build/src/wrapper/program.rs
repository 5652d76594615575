//! The struct that owns a program's state and queues, and the tables by which faults name processes and places.

use super::Wrapper;
use super::environment::{receiver, room_query, value_names};
use super::types::assert_layout;
use quaject_esp_ir::ir::{Boundary, Channel, Location, ProcessId, Terminator};
use std::fmt::Write as _;

macro_rules! put {
    ($text:expr, $($arg:tt)*) => {
        writeln!($text, $($arg)*).expect("writing to a string does not fail")
    };
}

/// The name of the structure of a channel's messages.
fn message_type(wrapper: &Wrapper<'_>, index: usize) -> String {
    // No type of the program is called so: it has an underscore.
    format!("Message_{}", wrapper.methods.channels[&index])
}

/// The structures of messages, as C has them.
pub(super) fn declare_messages(wrapper: &Wrapper<'_>) -> String {
    let mut text = String::new();
    let abi = &wrapper.generated.abi;
    for external in abi.sources.iter().chain(&abi.sinks) {
        let index = external.channel.0 as usize;
        let (channel, name) = (&wrapper.program.channels[index], message_type(wrapper, index));
        put!(
            text,
            "\n/// A message of channel `{}`.\n#[repr(C)]\n#[derive(Clone, Copy)]\nstruct {name} {{",
            channel.name
        );
        let names = value_names(channel);
        for (ty, value) in channel.payload.iter().zip(&names) {
            put!(text, "    {value}: {},", wrapper.rust_type(*ty));
        }
        if names.is_empty() {
            put!(text, "    unused: u8,");
        }
        put!(text, "}}");
        let offsets: Vec<_> = names.into_iter().zip(external.offsets.iter().copied()).collect();
        assert_layout(&name, external.extent.size, &offsets, &mut text);
    }
    text
}

/// Whether messages leave one at a time, so that the order among channels and calls is that of the program.
fn leaves_one_by_one(wrapper: &Wrapper<'_>) -> bool {
    wrapper.channels(Boundary::ToEnvironment).len() > 1 || !wrapper.program.externs.is_empty()
}

/// The struct and its methods.
pub(super) fn declare(wrapper: &Wrapper<'_>) -> String {
    let mut text = String::new();
    let (sources, sinks) = (wrapper.channels(Boundary::FromEnvironment), wrapper.channels(Boundary::ToEnvironment));
    put!(
        text,
        "\n/// The program: its state, and the messages that wait for it. A clone continues from the same state."
    );
    put!(text, "#[derive(Clone)]\npub struct Program {{\n    state: State,\n    now: i64,");
    put!(text, "    end: Option<::core::result::Result<Status, Fault>>,");
    for (number, index) in sources.iter().enumerate() {
        put!(text, "    input_{number}: Input<{}>,", message_type(wrapper, *index));
    }
    for (number, index) in sinks.iter().enumerate() {
        put!(text, "    output_{number}: Room<{}>,", message_type(wrapper, *index));
    }
    put!(text, "}}\n\nimpl Program {{\n    /// At its beginning.\n    pub fn new() -> Program {{\n        Program {{");
    put!(
        text,
        "            state: State::new({}, {}),\n            now: 0,\n            end: None,",
        sources.len(),
        sinks.len()
    );
    for number in 0..sources.len() {
        put!(text, "            input_{number}: Input::new(),");
    }
    for (number, index) in sinks.iter().enumerate() {
        let capacity = match leaves_one_by_one(wrapper) {
            true => "1".to_string(),
            false => format!("capacity_of::<{}>()", message_type(wrapper, *index)),
        };
        put!(text, "            output_{number}: Room::new({capacity}),");
    }
    put!(text, "        }}\n    }}");
    for (number, index) in sources.iter().enumerate() {
        declare_input(wrapper, number, *index, &mut text);
    }
    for (number, index) in sinks.iter().enumerate() {
        let (channel, name) = (&wrapper.program.channels[*index].name, &wrapper.methods.channels[index]);
        put!(text, "\n    /// Channel `{channel}` is never read again.");
        put!(text, "    pub fn close_{name}(&mut self) {{\n        self.output_{number}.closed = true;\n    }}");
    }
    declare_step(wrapper, &sources, &sinks, &mut text);
    put!(text, "}}\n\nimpl Default for Program {{\n    fn default() -> Program {{\n        Program::new()\n    }}\n}}");
    text
}

fn declare_input(wrapper: &Wrapper<'_>, number: usize, index: usize, text: &mut String) {
    let (channel, name) = (&wrapper.program.channels[index], &wrapper.methods.channels[&index]);
    let names = value_names(channel);
    let parameters = channel.payload.iter().zip(&names);
    let parameters: String = parameters.map(|(ty, name)| format!(", {name}: {}", wrapper.rust_type(*ty))).collect();
    let members = if names.is_empty() { "unused: 0".to_string() } else { names.join(", ") };
    put!(text, "\n    /// Adds a message to those that wait on channel `{}`.", channel.name);
    put!(text, "    pub fn send_{name}(&mut self{parameters}) {{");
    put!(
        text,
        "        self.input_{number}.waiting.push_back({} {{ {members} }});\n    }}",
        message_type(wrapper, index)
    );
    put!(text, "\n    /// The number of messages that wait on channel `{}`.", channel.name);
    put!(text, "    pub fn waiting_{name}(&self) -> usize {{\n        self.input_{number}.waiting.len()\n    }}");
    put!(text, "\n    /// No message follows those that wait on channel `{}`.", channel.name);
    put!(text, "    pub fn close_{name}(&mut self) {{\n        self.input_{number}.closed = true;\n    }}");
}

/// The arguments with which a message's values are passed to the environment.
fn values(wrapper: &Wrapper<'_>, channel: &Channel) -> String {
    let values = channel.payload.iter().zip(value_names(channel));
    let by_reference = |ty| if wrapper.program.types.is_scalar(ty) { "" } else { "&" };
    values.map(|(ty, name)| format!("{}message.{name}", by_reference(*ty))).collect::<Vec<_>>().join(", ")
}

fn declare_step(wrapper: &Wrapper<'_>, sources: &[usize], sinks: &[usize], text: &mut String) {
    put!(
        text,
        "\n    /// Runs until nothing more can happen before an external event, or until `environment` has to be asked"
    );
    put!(text, "    /// again. `now` is the time since some fixed moment; it never goes back.\n    ///");
    put!(text, "    /// # Errors\n    /// The fault that has stopped the program, also in all later calls.");
    if wrapper.has_rust_externs() {
        put!(
            text,
            "    ///\n    /// # Panics\n    /// When an extern function does; the program is then at the fault `extern`."
        );
    }
    put!(
        text,
        "    pub fn step(&mut self, now: Duration, environment: &mut dyn Environment) -> Result<Status, Fault> {{"
    );
    put!(text, "        if let Some(end) = &self.end {{\n            return end.clone();\n        }}");
    put!(text, "        self.now = self.now.max(nanoseconds(now));\n        let mut taken = [0; {}];", sources.len());
    let offered: Vec<String> = (0..sources.len()).map(|number| format!("self.input_{number}.source()")).collect();
    put!(text, "        let sources: [Source; {}] = [{}];", sources.len(), offered.join(", "));
    let limit = usize::from(leaves_one_by_one(wrapper));
    put!(text, "        let taken_pointer = taken.as_mut_ptr();\n        let mut output = Output {{");
    put!(text, "            head: OutputHead {{ taken: taken_pointer, limit: {limit}, wake: NEVER, exit_status: 0 }},");
    put!(text, "            sinks: [");
    for (number, index) in sinks.iter().enumerate() {
        let query = room_query(&wrapper.methods.channels[index]);
        put!(text, "                self.output_{number}.sink(environment.{query}()),");
    }
    put!(text, "            ],\n        }};");
    let call = "self.state.step(&sources, &mut output, self.now)";
    if wrapper.has_rust_externs() {
        put!(text, "        let status = match externs::with_environment(environment, || {call}) {{");
        put!(text, "            Ok(status) => status,\n            Err(panic) => {{");
        put!(
            text,
            "                let fault = Fault {{\n                    code: FaultCode::Extern,\n                    process: \"?\","
        );
        put!(
            text,
            "                    location: Location {{ file: \"?\", line: 0, column: 0 }},\n                    channel: None,"
        );
        put!(
            text,
            "                    message: Some(\"an extern function has panicked\"),\n                    blocked: Vec::new(),\n                }};"
        );
        put!(
            text,
            "                self.end = Some(Err(fault));\n                ::std::panic::resume_unwind(panic)\n            }}\n        }};"
        );
    } else {
        put!(text, "        let status = {call};");
    }
    for number in 0..sources.len() {
        put!(text, "        self.input_{number}.take(taken[{number}]);");
    }
    for (number, index) in sinks.iter().enumerate() {
        let channel = &wrapper.program.channels[*index];
        put!(text, "        for index in 0..output.sinks[{number}].count {{");
        put!(text, "            // SAFETY: The step has put as many messages there as it counts.");
        put!(text, "            let message = unsafe {{ self.output_{number}.message(index) }};");
        put!(
            text,
            "            environment.{}({});\n        }}",
            receiver(&wrapper.methods.channels[index]),
            values(wrapper, channel)
        );
    }
    put!(text, "        let outcome = outcome(&self.state, status, &output.head);");
    put!(text, "        match &outcome {{\n            Ok(Status::Again | Status::Sleep {{ .. }}) => {{}}");
    put!(
        text,
        "            Ok(Status::Done {{ .. }}) | Err(_) => self.end = Some(outcome.clone()),\n        }}\n        outcome\n    }}"
    );
    put!(
        text,
        "\n    /// Steps while more can happen, so that the result is never [`Status::Again`]: that of a program that never"
    );
    put!(text, "    /// waits does not return.\n    ///\n    /// # Errors\n    /// As [`Program::step`].");
    put!(
        text,
        "    pub fn run(&mut self, now: Duration, environment: &mut dyn Environment) -> Result<Status, Fault> {{"
    );
    put!(
        text,
        "        loop {{\n            match self.step(now, environment)? {{\n                Status::Again => {{}}"
    );
    put!(
        text,
        "                status @ (Status::Sleep {{ .. }} | Status::Done {{ .. }}) => return Ok(status),\n            }}\n        }}\n    }}"
    );
}

/// Names for faults, and the table by which C is called.
pub(super) fn declare_tables(wrapper: &Wrapper<'_>) -> String {
    let mut text = String::new();
    let program = wrapper.program;
    let list =
        |names: &mut dyn Iterator<Item = String>| names.map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
    put!(text, "\nconst FILES: &[&str] = &[{}];", list(&mut program.files.iter().cloned()));
    put!(
        text,
        "const CHANNELS: &[&str] = &[{}];",
        list(&mut program.channels.iter().map(|channel| channel.name.to_string()))
    );
    let instances = (0..program.instance_count()).map(|instance| program.instance_name(instance));
    put!(text, "const INSTANCES: &[&str] = &[{}];", list(&mut { instances }));
    let assertions = program
        .assert_messages
        .iter()
        .map(|(place, message)| format!("({}, {}, {}, {:?})", place.file, place.line, place.column, message.as_str()));
    put!(text, "const ASSERTIONS: &[(u16, u32, u16, &str)] = &[{}];", assertions.collect::<Vec<_>>().join(", "));
    put!(text, "/// Owner, number of a branch at which it waits then, member, place.");
    put!(text, "const MEMBER_WAITS: &[(u32, u32, u32, RawLocation)] = &[{}];", member_waits(wrapper));
    put!(text, "\n// SAFETY: The C of the program, which is linked with this module, defines it with this type.");
    put!(
        text,
        "unsafe extern \"C\" {{\n    #[link_name = \"{}\"]\n    static LIBRARY: Library;\n}}",
        wrapper.generated.abi.symbol
    );
    put!(text, "\nfn library() -> &'static Library {{\n    // SAFETY: It is constant.\n    unsafe {{ &LIBRARY }}\n}}");
    text
}

/// The waits of the members of fused processes, by which a deadlock names processes as written.
fn member_waits(wrapper: &Wrapper<'_>) -> String {
    let program = wrapper.program;
    let mut rows = Vec::new();
    for (index, process) in program.processes.iter().enumerate() {
        let (owner, mut first_branch) = (program.first_instance(ProcessId(index as u32)), 0);
        for block in &process.body.blocks {
            let Terminator::Wait(wait) = &block.terminator else { continue };
            for (branch, member) in &wait.members {
                let Location { file, line, column, member: _ } = member.location;
                rows.push(format!(
                    "({owner}, {}, {}, RawLocation {{ file: {file}, column: {column}, line: {line}, channel: -1 }})",
                    first_branch + branch,
                    member.instance
                ));
            }
            first_branch += wait.branches.len() as u32;
        }
    }
    rows.join(", ")
}
