//! Serialised states: one byte string per instance and one for the shared part. The encoding is canonical: two parts of
//! states are equal exactly if their bytes are. Deadlines are left out, because the checker lets an `after` be taken at
//! any time.
//!
//! ```text
//!   instance   control (0 ended, odd running at, even waiting at), open branches, registers, memory
//!   shared     closed channels, per pool its counts and contents
//!   number     zigzag, 7 bits a byte, the last one below 0x80; a run of n zeros is 0 and n
//! ```

use crate::code::Code;
use crate::frame::Frame;
use crate::state::{BranchState, Control, State};
use crate::step::Machine;

/// Control numbers from here on are captured instances: this plus the wait.
const CAPTURED_BY_PATH: u64 = 1 << 40;

impl State {
    /// Appends one instance's part.
    pub fn save_instance(&self, instance: u32, out: &mut Vec<u8>) {
        let instance = &self.instances[instance as usize];
        let control = match instance.control {
            Control::Ended => 0,
            Control::Running { at } => 2 * u64::from(at) + 1,
            Control::Waiting { wait } => 2 * u64::from(wait) + 2,
            Control::CapturedByPath { wait } => CAPTURED_BY_PATH + u64::from(wait),
        };
        write_number(control, out);
        for branches in instance.branches.chunks(7) {
            out.push(branches.iter().enumerate().map(|(bit, branch)| u8::from(branch.open) << bit).sum());
        }
        let mut zeros = ZeroRuns::default();
        for register in &instance.frame.registers {
            zeros.number(zigzag(*register), out);
        }
        for byte in &instance.frame.memory {
            zeros.byte(*byte, out);
        }
    }

    /// Appends the shared part.
    pub fn save_shared(&self, out: &mut Vec<u8>) {
        let mut zeros = ZeroRuns::default();
        self.closed.iter().for_each(|closed| zeros.byte(u8::from(*closed), out));
        for pool in &self.pools.pools {
            pool.counts.iter().for_each(|count| zeros.number(u64::from(*count), out));
            pool.memory.iter().for_each(|byte| zeros.byte(*byte, out));
        }
    }

    /// Terminates an instance that a model omits.
    pub fn omit_instance(&mut self, instance: u32) {
        let instance = &mut self.instances[instance as usize];
        instance.control = Control::Ended;
        instance.branches.clear();
    }
}

impl Machine<'_> {
    /// Restores one instance from its bytes.
    pub fn load_instance(&self, state: &mut State, instance: u32, bytes: &[u8]) {
        let mut reader = SnapshotReader { bytes, at: 0, zeros: 0 };
        let target = &mut state.instances[instance as usize];
        let control = reader.plain();
        target.control = match control {
            0 => Control::Ended,
            control if control >= CAPTURED_BY_PATH => {
                Control::CapturedByPath { wait: (control - CAPTURED_BY_PATH) as u32 }
            }
            control if control % 2 == 1 => Control::Running { at: (control / 2) as u32 },
            control => Control::Waiting { wait: (control / 2 - 1) as u32 },
        };
        target.branches.clear();
        if let Control::Waiting { wait } | Control::CapturedByPath { wait } = target.control {
            let (process, _) = self.code.instances[instance as usize];
            let count = self.code.processes[process.0 as usize].waits[wait as usize].branches.len();
            let mut open = 0;
            for branch in 0..count {
                if branch % 7 == 0 {
                    open = reader.raw();
                }
                target.branches.push(BranchState { open: open >> (branch % 7) & 1 == 1, deadline_ns: 0 });
            }
        }
        let Frame { registers, memory } = &mut target.frame;
        registers.iter_mut().for_each(|register| *register = unzigzag(reader.number()));
        memory.iter_mut().for_each(|byte| *byte = reader.byte());
    }

    /// Restores the shared part from its bytes.
    pub fn load_shared(&self, state: &mut State, bytes: &[u8]) {
        let mut reader = SnapshotReader { bytes, at: 0, zeros: 0 };
        state.closed.iter_mut().for_each(|closed| *closed = reader.byte() != 0);
        for pool in &mut state.pools.pools {
            pool.counts.iter_mut().for_each(|count| *count = reader.number() as u32);
            pool.memory.iter_mut().for_each(|byte| *byte = reader.byte());
            pool.count_free();
        }
        state.unfinished = None;
        state.free_before.clear();
    }
}

impl Code {
    /// Whether a guard of some process reads the number of free objects, so that a step of one instance can open a
    /// branch of another.
    pub(crate) fn has_pool_guards(&self) -> bool {
        self.processes.iter().flat_map(|process| &process.waits).any(|wait| wait.has_pool_guards)
    }
}

fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn write_number(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Run-length encodes zeros. Within a run the last byte of the output is the length of the run.
#[derive(Default)]
struct ZeroRuns {
    run: u8,
}

impl ZeroRuns {
    fn zero(&mut self, out: &mut Vec<u8>) {
        if self.run == 0 || self.run == u8::MAX {
            out.push(0);
            out.push(1);
            self.run = 1;
        } else {
            self.run += 1;
            *out.last_mut().expect("the last byte is the length of a run") = self.run;
        }
    }

    fn number(&mut self, value: u64, out: &mut Vec<u8>) {
        if value == 0 {
            return self.zero(out);
        }
        self.run = 0;
        write_number(value, out);
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        if byte == 0 {
            return self.zero(out);
        }
        self.run = 0;
        out.push(byte);
    }
}

struct SnapshotReader<'a> {
    bytes: &'a [u8],
    at: usize,
    zeros: u8,
}

impl SnapshotReader<'_> {
    fn raw(&mut self) -> u8 {
        let byte = self.bytes[self.at];
        self.at += 1;
        byte
    }

    fn plain(&mut self) -> u64 {
        let first = self.raw();
        self.rest_of(first)
    }

    fn rest_of(&mut self, first: u8) -> u64 {
        let mut value = u64::from(first & 0x7f);
        let mut shift = 7;
        let mut last = first;
        while last >= 0x80 {
            last = self.raw();
            value |= u64::from(last & 0x7f) << shift;
            shift += 7;
        }
        value
    }

    /// The next byte, or none inside a run of zeros.
    fn next(&mut self) -> Option<u8> {
        if self.zeros > 0 {
            self.zeros -= 1;
            return None;
        }
        match self.raw() {
            0 => {
                self.zeros = self.raw() - 1;
                None
            }
            byte => Some(byte),
        }
    }

    fn number(&mut self) -> u64 {
        match self.next() {
            None => 0,
            Some(first) => self.rest_of(first),
        }
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or(0)
    }
}
