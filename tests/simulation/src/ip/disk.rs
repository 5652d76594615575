//! The driver `file:` for programs that read: a folder with a file for every page name.

use super::service::page;
use crate::node::Node;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::ChannelId;
use std::collections::HashMap;

/// The files that are open, by instance.
#[derive(Default)]
pub(crate) struct Disk(HashMap<u32, Vec<u8>>);

impl Disk {
    /// Executes a request of the program.
    pub(crate) fn execute(&mut self, node: &mut Node<'_>, channel: ChannelId, message: &[Datum]) {
        let [Datum::Pid(instance), Datum::Union(call, content)] = message else { panic!("{message:?}") };
        let reply = node.channel("fileReplyC");
        let is = |name: &str| node.case(channel, 1, name) == *call;
        let says = |name: &str, content: Option<Datum>| Datum::Union(node.case(reply, 1, name), content.map(Box::new));
        let answer = if is("open") {
            let Some(Datum::Bytes(name)) = content.as_deref() else { panic!("{message:?}") };
            match page(&String::from_utf8_lossy(name)) {
                Some(page) => {
                    let before = self.0.insert(*instance, page);
                    assert!(before.is_none(), "{instance} has not closed its file");
                    says("done", None)
                }
                None => says("failed", Some(Datum::Int(1))),
            }
        } else if is("size") {
            says("size", Some(Datum::Int(self.0[instance].len() as i128)))
        } else if is("read") {
            let Some(Datum::Record(fields)) = content.as_deref() else { panic!("{message:?}") };
            let [Datum::Int(at), Datum::Int(count)] = fields[..] else { panic!("{message:?}") };
            let rest = &self.0[instance][at as usize..];
            says("data", Some(Datum::Bytes(rest[..rest.len().min(count as usize)].to_vec())))
        } else {
            self.0.remove(instance).expect("it has a file");
            says("done", None)
        };
        node.offer(reply, vec![Datum::Pid(*instance), answer]);
    }
}
