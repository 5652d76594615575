//! Processes that serve: by requests and replies, and replicas that share work.

use super::Script;
use crate::generate::Outcome;
use crate::generate::body::Body;
use crate::generate::shared::{Context, Kind, Place};

impl Script {
    /// A server that answers every client.
    pub(super) fn request(&mut self, client: usize) {
        let (ask, reply, server) = (self.name("ask"), self.name("reply"), self.name("S"));
        let ty = self.shared.types.any(&mut self.rng, 1);
        let result = self.shared.types.any(&mut self.rng, 1);
        let second = self.any_process();
        let mut clients = vec![client];
        if second != client {
            clients.push(second);
            clients.sort_unstable();
            self.outcome = Outcome::Open;
        }
        let names: Vec<String> = clients.iter().map(|index| format!("P{index}")).collect();
        let names = names.join(", ");
        let (printed, printed_result) = (self.shared.types.print(&ty), self.shared.types.print(&result));
        self.declarations += &format!("channel {ask}(pid({names}), {printed});\n");
        self.declarations += &format!("channel {reply}(pid({names}), {printed_result});\n");
        for client in clients {
            let value = self.value(client, &ty);
            self.processes[client].line(&format!("out({ask}, @, {value});"));
            let pattern = self.patterns(client, std::slice::from_ref(&result));
            self.processes[client].line(&format!("in({reply}, @{pattern});"));
        }
        let mut body = Body::new(Place::Process);
        body.line(&format!("while {{ in({ask}, $client, $question);"));
        body.level += 1;
        body.push("question".into(), ty, Kind::Plain);
        body.statements(&mut self.rng, &self.shared, 1, 1);
        let answer = body.expr(&mut self.rng, &self.shared, &result, 2, Context::Typed);
        body.line(&format!("out({reply}, client, {answer}); }}"));
        self.servers += &format!("process {server} {{\n{}}}\n", body.text);
    }

    /// Work for any of several replicas.
    pub(super) fn jobs(&mut self, sender: usize, receiver: usize) {
        self.outcome = Outcome::Open;
        let (job, done, worker) = (self.name("job"), self.name("done"), self.name("W"));
        let ty = self.shared.types.any(&mut self.rng, 1);
        let result = self.shared.types.any(&mut self.rng, 1);
        let (printed, printed_result) = (self.shared.types.print(&ty), self.shared.types.print(&result));
        self.declarations += &format!("channel {job}({printed}) shared;\nchannel {done}({printed_result});\n");
        let value = self.value(sender, &ty);
        self.processes[sender].line(&format!("out({job}, {value});"));
        let pattern = self.patterns(receiver, std::slice::from_ref(&result));
        self.processes[receiver].line(&format!("in({done}{pattern});"));
        let mut body = Body::new(Place::Process);
        body.line(&format!("while {{ in({job}, $question);"));
        body.level += 1;
        body.push("question".into(), ty, Kind::Plain);
        body.statements(&mut self.rng, &self.shared, 1, 1);
        let answer = body.expr(&mut self.rng, &self.shared, &result, 2, Context::Typed);
        body.line(&format!("out({done}, {answer}); }}"));
        let replicas = self.rng.u32(1..4);
        self.servers += &format!("process {worker}[{replicas}] {{\n{}}}\n", body.text);
    }
}
