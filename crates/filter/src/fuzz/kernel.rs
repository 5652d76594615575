//! The kernel's own verdict: a program is attached to a socket, a packet is sent to it as a datagram, and the received
//! length is the verdict. Needs no privileges. Classic programs have the same semantics there, with the exceptions that
//! [`Kernel::disagrees`] skips.

use crate::bpf::{Arithmetic, Operand, Operation, Program};
use crate::packet::Packet;
use std::cell::{Cell, RefCell};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Longer packets are not sent.
const MAX_PACKET_BYTES: usize = 1 << 16;
/// The kernel refuses longer programs.
const MAX_KERNEL_INSTRUCTIONS: usize = 4096;
/// Offsets from here on may, after additions, reach 2^31, from where the kernel reads them as negative: relative to a
/// header (`SKF_NET_OFF`, `SKF_LL_OFF`) or ancillary data (`SKF_AD_OFF`).
const FAR: u32 = 1 << 30;

/// A pair of connected sockets, the second of which filters.
#[derive(Debug)]
pub struct Kernel {
    sender: OwnedFd,
    receiver: OwnedFd,
    /// The program that was attached last, and whether the kernel took it.
    attached: RefCell<Option<(Program, bool)>>,
    verdicts: Cell<u64>,
}

impl Kernel {
    /// Makes the sockets and attaches a first program.
    ///
    /// # Errors
    /// What the system says if it has no such sockets or does not permit filters.
    pub fn new() -> io::Result<Kernel> {
        let mut ends = [-1; 2];
        let kind = libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: there is room for two descriptors.
        if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, ends.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptors are new, and have no other owner.
        let [sender, receiver] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
        let kernel = Kernel { sender, receiver, attached: RefCell::new(None), verdicts: Cell::new(0) };
        let all =
            Program::new(&[Operation::Return(u32::MAX).instruction()]).expect("a program of one valid instruction");
        kernel.attach(&all)?;
        Ok(kernel)
    }

    /// The number of verdicts so far.
    pub fn verdicts(&self) -> u64 {
        self.verdicts.get()
    }

    fn attach(&self, program: &Program) -> io::Result<()> {
        let own = program.instructions();
        if own.len() > MAX_KERNEL_INSTRUCTIONS {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let mut instructions: Vec<libc::sock_filter> =
            own.iter().map(|own| libc::sock_filter { code: own.code, jt: own.jt, jf: own.jf, k: own.k }).collect();
        let whole = libc::sock_fprog { len: instructions.len() as u16, filter: instructions.as_mut_ptr() };
        // SAFETY: the option is read as the structure it is, whose pointer and length are those of a vector.
        let status = unsafe {
            libc::setsockopt(
                self.receiver.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_ATTACH_FILTER,
                (&raw const whole).cast(),
                size_of::<libc::sock_fprog>() as libc::socklen_t,
            )
        };
        if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Whether the program that is attached is this one.
    fn has(&self, program: &Program) -> bool {
        let mut attached = self.attached.borrow_mut();
        match &*attached {
            Some((own, taken)) if own == program => *taken,
            Some(_) | None => {
                // The kernel refuses some that libpcap runs: those that read scratch memory before they write to it,
                // say, and those that divide by a constant zero.
                let taken = is_comparable(program) && self.attach(program).is_ok();
                *attached = Some((program.clone(), taken));
                taken
            }
        }
    }

    /// The number of bytes that arrive, none if the packet does not, if that is not what the verdict means. Nothing is
    /// said of programs that the kernel refuses, that may load from where it keeps data of its own, or that shift by X;
    /// nor of packets that were longer on the wire.
    pub fn disagrees(&self, program: &Program, packet: Packet<'_>, verdict: u32) -> Option<u32> {
        let data = packet.data();
        if packet.wire_length() as usize != data.len() || data.len() > MAX_PACKET_BYTES || !self.has(program) {
            return None;
        }
        self.verdicts.set(self.verdicts.get() + 1);
        let mut room = [0_u8; 1];
        // SAFETY: pointers and lengths are those of slices.
        let (sent, kept) = unsafe {
            let sent = libc::send(self.sender.as_raw_fd(), data.as_ptr().cast(), data.len(), 0);
            // With this flag it returns the length of the datagram, even if the buffer is shorter.
            let kept = libc::recv(self.receiver.as_raw_fd(), room.as_mut_ptr().cast(), 1, libc::MSG_TRUNC);
            (sent, kept)
        };
        if sent != data.len() as isize {
            return None;
        }
        let kept = u32::try_from(kept).ok();
        let expected = (verdict != 0).then(|| verdict.min(data.len() as u32));
        if kept == expected { None } else { Some(kept.map_or(0, |kept| kept.max(1))) }
    }
}

/// Whether a program has the same semantics in the kernel as in `bpf_filter`.
fn is_comparable(program: &Program) -> bool {
    let operations = program.operations();
    let indirect = operations.iter().any(|own| matches!(own, Operation::LoadIndirect(..)));
    program.is_acyclic()
        && operations.iter().all(|own| match own {
            Operation::LoadAbsolute(_, k) | Operation::LoadIndirect(_, k) | Operation::IndexHeader(k) => *k < FAR,
            Operation::IndexConstant(k) => *k < FAR || !indirect,
            Operation::Tax | Operation::IndexMemory(_) => !indirect,
            Operation::Arithmetic(Arithmetic::Lsh | Arithmetic::Rsh, Operand::Index) => false,
            Operation::LoadConstant(_)
            | Operation::LoadLength
            | Operation::LoadMemory(_)
            | Operation::IndexLength
            | Operation::Store(_)
            | Operation::StoreIndex(_)
            | Operation::Arithmetic(..)
            | Operation::Negate
            | Operation::Jump(_)
            | Operation::Branch(..)
            | Operation::Return(_)
            | Operation::ReturnAccumulator
            | Operation::Txa => true,
        })
}
