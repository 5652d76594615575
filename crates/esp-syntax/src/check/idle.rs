//! Idle points: where an instance can wait forever without a deadlock (reference, section 5).

use super::flow;
use super::names::Checker;
use super::walk;
use crate::hir::{Boundary, ChannelId, Direction, Operation, Stmt, StmtKind};

/// Marks the operations whose position in the program makes them idle points.
pub(super) fn mark(checker: &mut Checker) {
    let fed = Fed::compute(checker);
    for index in 0..checker.processes.len() {
        let Some(mut process) = checker.processes[index].hir.take() else { continue };
        mark_loops(&mut process.body, index, &fed);
        checker.processes[index].hir = Some(process);
    }
}

/// Marks the loops that are directly in a process's body. What a procedure holds is where its call is.
fn mark_loops(body: &mut [Stmt], process: usize, fed: &Fed) {
    for stmt in body {
        match &mut stmt.kind {
            StmtKind::While(None, body) => mark_loop(body, process, fed),
            StmtKind::Inline(body) => mark_loops(body, process, fed),
            _ => {}
        }
    }
}

/// Marks the first channel operation of an endless loop's body if it is directly in it and receives from a fed channel.
fn mark_loop(body: &mut [Stmt], process: usize, fed: &Fed) {
    let Some(first) = body.iter_mut().find(|stmt| {
        let mut found = false;
        walk::communications(std::slice::from_ref(&**stmt), &mut |_| found = true);
        found
    }) else {
        return;
    };
    let communicate = match &mut first.kind {
        StmtKind::Communicate(communicate) => communicate,
        StmtKind::Inline(body) => return mark_loop(body, process, fed),
        _ => return,
    };
    let waits = communicate.branches.iter().any(|branch| match &branch.operation {
        Operation::In(_, channel, _) => fed.is_fed(*channel, process),
        Operation::Out(..) | Operation::After(..) | Operation::Until(..) => false,
    });
    communicate.idle |= waits;
}

/// Which channels are fed: by the environment, by a process that has an `in` on a fed channel, or by one that can end.
/// The least fixed point, found by propagating from the sources.
struct Fed {
    external: Vec<bool>,
    /// Processes that feed each channel; two that differ are enough to feed every process.
    feeders: Vec<Vec<usize>>,
    replicated: Vec<bool>,
}

impl Fed {
    /// Whether a channel is fed as seen by a process: only *another* instance feeds it.
    fn is_fed(&self, channel: ChannelId, process: usize) -> bool {
        let channel = channel.0 as usize;
        self.external[channel]
            || self.feeders[channel].iter().any(|feeder| *feeder != process || self.replicated[process])
    }

    fn compute(checker: &Checker) -> Fed {
        let processes = checker.processes.len();
        let mut readers: Vec<Vec<usize>> = vec![Vec::new(); checker.channels.len()];
        let mut writes: Vec<Vec<usize>> = vec![Vec::new(); processes];
        let mut fed = Fed {
            external: checker.channels.iter().map(|entry| entry.hir.boundary == Boundary::FromEnvironment).collect(),
            feeders: vec![Vec::new(); checker.channels.len()],
            replicated: checker.processes.iter().map(|entry| entry.replicas > 1).collect(),
        };
        let mut source = vec![false; processes];
        let mut open = Vec::new();
        for (index, entry) in checker.processes.iter().enumerate() {
            let Some(process) = &entry.hir else { continue };
            let mut starts = flow::can_end(&process.body);
            for site in &process.sites {
                let channel = site.channel.0 as usize;
                match site.direction {
                    Direction::In => {
                        starts |= fed.external[channel];
                        readers[channel].push(index);
                    }
                    Direction::Out => writes[index].push(channel),
                }
            }
            if starts {
                source[index] = true;
                open.push(index);
            }
        }
        while let Some(process) = open.pop() {
            for channel in &writes[process] {
                let feeders = &mut fed.feeders[*channel];
                if feeders.len() >= 2 || feeders.contains(&process) {
                    continue;
                }
                feeders.push(process);
                for reader in &readers[*channel] {
                    if !source[*reader] && fed.is_fed(ChannelId(*channel as u32), *reader) {
                        source[*reader] = true;
                        open.push(*reader);
                    }
                }
            }
        }
        fed
    }
}
