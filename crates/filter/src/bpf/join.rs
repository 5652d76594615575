//! Joins programs to one: a program that accepts what all accept, what one of them accepts, or what one rejects. They
//! run in order, each until its verdict is known; a load outside of the packet rejects the packet in any of them.

use super::{Operation, Program};

/// A tree of programs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Joined {
    /// A program.
    One(Program),
    /// Accepts what the other rejects, unless that rejects it by a load or a division.
    Not(Box<Joined>),
    /// Accepts what all accept.
    All(Vec<Joined>),
    /// Accepts what one of them accepts.
    Any(Vec<Joined>),
}

/// The number of a position that is not known yet.
type Label = usize;

/// Where verdicts lead.
#[derive(Clone, Copy)]
struct Exits {
    accept: Label,
    reject: Label,
}

#[derive(Default)]
struct Assembler {
    operations: Vec<Operation>,
    /// The position of each label, once it is known.
    positions: Vec<usize>,
    /// Jumps, and the labels that they lead to.
    jumps: Vec<(usize, Label)>,
}

impl Joined {
    /// The operations of one program, which returns `accepted` for what is accepted.
    pub(crate) fn assemble(&self, accepted: u32) -> Vec<Operation> {
        let mut assembler = Assembler::default();
        let exits = Exits { accept: assembler.label(), reject: assembler.label() };
        assembler.join(self, exits);
        assembler.place(exits.accept);
        assembler.operations.push(Operation::Return(accepted));
        assembler.place(exits.reject);
        assembler.operations.push(Operation::Return(0));
        for (at, label) in assembler.jumps {
            assembler.operations[at] = Operation::Jump((assembler.positions[label] - at - 1) as i32);
        }
        assembler.operations
    }
}

impl Assembler {
    fn label(&mut self) -> Label {
        self.positions.push(usize::MAX);
        self.positions.len() - 1
    }

    /// The label is here.
    fn place(&mut self, label: Label) {
        self.positions[label] = self.operations.len();
    }

    fn join(&mut self, joined: &Joined, exits: Exits) {
        match joined {
            Joined::One(program) => self.program(program, exits),
            Joined::Not(inner) => self.join(inner, Exits { accept: exits.reject, reject: exits.accept }),
            Joined::All(parts) => self.chain(parts, exits, |next| Exits { accept: next, ..exits }),
            Joined::Any(parts) => self.chain(parts, exits, |next| Exits { reject: next, ..exits }),
        }
    }

    /// Parts in order: each but the last may lead to the next.
    fn chain(&mut self, parts: &[Joined], exits: Exits, leads_to: impl Fn(Label) -> Exits) {
        let Some((last, before)) = parts.split_last() else { return };
        for part in before {
            let next = self.label();
            self.join(part, leads_to(next));
            self.place(next);
        }
        self.join(last, exits);
    }

    fn program(&mut self, program: &Program, exits: Exits) {
        for operation in program.operations() {
            if let Operation::Return(verdict) = operation {
                let exit = if *verdict == 0 { exits.reject } else { exits.accept };
                self.jumps.push((self.operations.len(), exit));
            }
            self.operations.push(*operation);
        }
    }
}
