//! The XDP program that the kernel runs for each frame, and the objects of bpf(2) that it needs: a map from queues to
//! sockets, and a link to the interface.

use super::socket::Segments;
use super::{AfXdpError, Step, owned};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

// Commands of bpf(2), from <linux/bpf.h>, as are the numbers below.
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROGRAM_LOAD: libc::c_long = 5;
const LINK_CREATE: libc::c_long = 28;

const MAP_OF_SOCKETS: u32 = 17;
const PROGRAM_OF_XDP: u32 = 6;
const ATTACH_XDP: u32 = 37;
/// `BPF_F_XDP_HAS_FRAGS`: frames may lie in several pieces.
const HAS_FRAGMENTS: u32 = 1 << 5;
/// `XDP_FLAGS_SKB_MODE`: generic mode: the kernel runs the program after it has allocated a socket buffer.
const GENERIC: u32 = 1 << 1;
/// `XDP_PASS`: what happens to a frame of a queue without a socket.
const PASS: i32 = 2;

/// An instruction: operation, registers written and read, offset, constant.
struct EbpfInstruction(u8, u8, u8, i16, i32);

impl EbpfInstruction {
    fn bytes(&self) -> [u8; 8] {
        let EbpfInstruction(operation, to, from, offset, constant) = *self;
        let registers = if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from };
        let [o0, o1] = offset.to_ne_bytes();
        let [c0, c1, c2, c3] = constant.to_ne_bytes();
        [operation, registers, o0, o1, c0, c1, c2, c3]
    }
}

/// `return bpf_redirect_map(&map, context->rx_queue_index, XDP_PASS);`
fn redirect(map: &OwnedFd) -> Vec<u8> {
    const RX_QUEUE_INDEX: i16 = 16;
    const MAP_DESCRIPTOR: u8 = 1;
    const REDIRECT_MAP: i32 = 51;
    let program = [
        EbpfInstruction(0x61, 2, 1, RX_QUEUE_INDEX, 0),
        // A constant of 64 bits takes two.
        EbpfInstruction(0x18, 1, MAP_DESCRIPTOR, 0, map.as_raw_fd()),
        EbpfInstruction(0, 0, 0, 0, 0),
        EbpfInstruction(0xb7, 3, 0, 0, PASS),
        EbpfInstruction(0x85, 0, 0, 0, REDIRECT_MAP),
        EbpfInstruction(0x95, 0, 0, 0, 0),
    ];
    program.iter().flat_map(EbpfInstruction::bytes).collect()
}

/// Calls bpf(2). The attributes are the beginning of `union bpf_attr`; the rest is zero.
fn bpf<T>(step: Step, command: libc::c_long, attributes: &T) -> Result<libc::c_int, AfXdpError> {
    // SAFETY: 1. The attributes are plain numbers of the length that is said. 2. Addresses among them are those of
    // memory that outlives the call and is only read.
    let answer =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_ref(attributes), size_of::<T>()) as libc::c_int };
    if answer < 0 { Err(AfXdpError::last(step)) } else { Ok(answer) }
}

/// An empty XSKMAP for this number of queues.
pub(super) fn map(queues: u32) -> Result<OwnedFd, AfXdpError> {
    // Kind; bytes of a key and of a value; how many.
    owned(Step::Load, bpf(Step::Load, MAP_CREATE, &[MAP_OF_SOCKETS, 4, 4, queues])?)
}

/// Enters the socket of a queue into the map.
pub(super) fn give(map: &OwnedFd, queue: u32, socket: BorrowedFd<'_>) -> Result<(), AfXdpError> {
    let socket = socket.as_raw_fd();
    // Map, here and in the other half of the word; where key and value are; flags.
    let attributes = [
        u64::from_ne_bytes(halves(map.as_raw_fd() as u32, 0)),
        (&raw const queue) as u64,
        (&raw const socket) as u64,
        0,
    ];
    bpf(Step::Bind, MAP_UPDATE, &attributes).map(|_| ())
}

/// Two numbers in memory order.
fn halves(first: u32, second: u32) -> [u8; 8] {
    let mut both = [0; 8];
    both[..4].copy_from_slice(&first.to_ne_bytes());
    both[4..].copy_from_slice(&second.to_ne_bytes());
    both
}

/// The beginning of the attributes of `BPF_PROG_LOAD`.
#[repr(C)]
struct Load {
    kind: u32,
    length: u32,
    instructions: u64,
    licence: u64,
    log_level: u32,
    log_length: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

/// Loads the program, for multi-buffer frames if the kernel supports them.
pub(super) fn load(map: &OwnedFd) -> Result<(OwnedFd, Segments), AfXdpError> {
    let instructions = redirect(map);
    let mut attributes = Load {
        kind: PROGRAM_OF_XDP,
        length: instructions.len() as u32 / 8,
        instructions: instructions.as_ptr() as u64,
        licence: c"Dual MIT/GPL".as_ptr() as u64,
        log_level: 0,
        log_length: 0,
        log: 0,
        kernel_version: 0,
        flags: HAS_FRAGMENTS,
    };
    let (loaded, segments) = match bpf(Step::Load, PROGRAM_LOAD, &attributes) {
        Err(error) if error.is(libc::EINVAL) => {
            attributes.flags = 0;
            (bpf(Step::Load, PROGRAM_LOAD, &attributes)?, Segments::One)
        }
        other => (other?, Segments::Many),
    };
    Ok((owned(Step::Load, loaded)?, segments))
}

/// A program on an interface, until this is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Link {
    /// The BPF link: the kernel detaches the program when its last descriptor is closed.
    _descriptor: OwnedFd,
    is_in_driver: bool,
}

impl Link {
    pub(super) fn attach(program: &OwnedFd, interface: u32) -> Result<Link, AfXdpError> {
        let attach = |flags| {
            let attributes = [program.as_raw_fd() as u32, interface, ATTACH_XDP, flags];
            owned(Step::Attach, bpf(Step::Attach, LINK_CREATE, &attributes)?)
        };
        const DRIVER: u32 = 1 << 2;
        match attach(DRIVER) {
            Ok(descriptor) => Ok(Link { _descriptor: descriptor, is_in_driver: true }),
            Err(error) if error.is(libc::EBUSY) => Err(error),
            // Drivers refuse native mode if they cannot support it, for instance for frames of this length.
            Err(_) => Ok(Link { _descriptor: attach(GENERIC)?, is_in_driver: false }),
        }
    }

    pub(super) fn is_in_driver(&self) -> bool {
        self.is_in_driver
    }
}
