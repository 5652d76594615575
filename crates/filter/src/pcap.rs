//! Filters in the syntax of tcpdump, through the system's libpcap: loaded on demand, so that the rest of the crate
//! works without it. Also its `bpf_filter`, the reference implementation of programs, and the packets of interfaces.

#[cfg(unix)]
mod live;
mod parts;

#[cfg(unix)]
pub use live::{Live, LivePacket};

use crate::bpf::{Instruction, Joined, Program};
use crate::error::Error;
use crate::link::{LinkLayer, link_type};
use crate::packet::Packet;
use libloading::Library;
pub(crate) use parts::divide;
use parts::{Connective, Parts};
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names of the library on this system, the most certain first.
const NAMES: &[&str] = if cfg!(windows) {
    &["wpcap.dll"]
} else if cfg!(target_vendor = "apple") {
    &["libpcap.A.dylib", "libpcap.dylib"]
} else {
    &["libpcap.so.0.8", "libpcap.so.1", "libpcap.so"]
};
/// How many bytes of a packet a compiled filter asks for: all, as libpcap's default is.
const SNAPSHOT_LENGTH: c_int = 262_144;
const NETMASK_UNKNOWN: c_uint = u32::MAX;
/// `PCAP_ERRBUF_SIZE`.
const ERROR_LENGTH: usize = 256;

/// `struct bpf_program`.
#[repr(C)]
struct RawProgram {
    length: c_uint,
    instructions: *mut Instruction,
}

/// What the packets are for which an expression is compiled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Target {
    /// Their link layer.
    pub link: LinkLayer,
    /// The netmask of their network; `ip broadcast` needs it.
    pub netmask: Option<Ipv4Addr>,
}

impl From<LinkLayer> for Target {
    fn from(link: LinkLayer) -> Target {
        Target { link, netmask: None }
    }
}

#[cfg(windows)]
type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut c_void;
/// Of the C library: opens memory as a file.
#[cfg(not(windows))]
type OpenMemory = unsafe extern "C" fn(*mut c_void, usize, *const c_char) -> *mut c_void;
#[cfg(not(windows))]
type OpenFile = unsafe extern "C" fn(*mut c_void, *mut c_char) -> *mut c_void;
#[cfg(not(windows))]
type CloseFile = unsafe extern "C" fn(*mut c_void) -> c_int;
type Compile = unsafe extern "C" fn(*mut c_void, *mut RawProgram, *const c_char, c_int, c_uint) -> c_int;
type LastError = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Free = unsafe extern "C" fn(*mut RawProgram);
type Close = unsafe extern "C" fn(*mut c_void);
type FilterFn = unsafe extern "C" fn(*const Instruction, *const u8, c_uint, c_uint) -> c_uint;
type Validate = unsafe extern "C" fn(*const Instruction, c_int) -> c_int;
type LookupNet = unsafe extern "C" fn(*const c_char, *mut c_uint, *mut c_uint, *mut c_char) -> c_int;
type Version = unsafe extern "C" fn() -> *const c_char;

/// The optimisation argument of `pcap_compile`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effort {
    Translate = 0,
    Optimize = 1,
}

/// The system's libpcap.
pub struct Pcap {
    #[cfg(windows)]
    open_dead: OpenDead,
    #[cfg(not(windows))]
    open_memory: OpenMemory,
    #[cfg(not(windows))]
    open_file: OpenFile,
    #[cfg(not(windows))]
    close_file: CloseFile,
    compile: Compile,
    last_error: LastError,
    free: Free,
    close: Close,
    filter: FilterFn,
    validate: Validate,
    version: Version,
    /// Whether threads may compile at the same time: from version 1.8 on.
    is_reentrant: bool,
    alone: Mutex<()>,
    loaded: Library,
}

impl fmt::Debug for Pcap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("Pcap");
        text.field("version", &self.version()).field("library", &self.loaded).finish_non_exhaustive()
    }
}

/// Why libpcap cannot be used.
#[derive(Debug)]
pub struct LoadError(libloading::Error);

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "libpcap, which reads filters in tcpdump's syntax, cannot be loaded: {}", self.0)
    }
}

impl std::error::Error for LoadError {}

impl LoadError {
    /// The help text.
    pub fn help(&self) -> &'static str {
        if cfg!(windows) {
            "install Npcap, and add its folder `System32\\Npcap` to PATH or choose its mode of compatibility with WinPcap"
        } else {
            "install it: `apt install libpcap0.8` on Debian, `libpcap` elsewhere"
        }
    }
}

/// The message of libpcap about a rejected expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PcapError(pub String);

impl fmt::Display for PcapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for PcapError {}

impl From<Error> for PcapError {
    fn from(error: Error) -> PcapError {
        PcapError(error.to_string())
    }
}

impl Pcap {
    /// Loads the library.
    ///
    /// # Errors
    /// [`LoadError`] if the system has none.
    pub fn load() -> Result<Pcap, LoadError> {
        let mut first = None;
        for name in NAMES {
            // SAFETY: loading libpcap runs no code that has conditions.
            match unsafe { Library::new(*name) } {
                Ok(library) => return Pcap::with(library).map_err(LoadError),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(LoadError(first.expect("there are names to try")))
    }

    fn with(library: Library) -> Result<Pcap, libloading::Error> {
        // SAFETY: the types are those of the declarations in <pcap/pcap.h> and <pcap/bpf.h>; the symbols are used no
        // longer than the library is loaded, because the value that has them has the library.
        unsafe {
            let version: Version = *library.get(b"pcap_lib_version\0")?;
            Ok(Pcap {
                #[cfg(windows)]
                open_dead: *library.get(b"pcap_open_dead\0")?,
                // A search in a library includes those that it depends on: here, the C library.
                #[cfg(not(windows))]
                open_memory: *library.get(b"fmemopen\0")?,
                #[cfg(not(windows))]
                open_file: *library.get(b"pcap_fopen_offline\0")?,
                #[cfg(not(windows))]
                close_file: *library.get(b"fclose\0")?,
                compile: *library.get(b"pcap_compile\0")?,
                last_error: *library.get(b"pcap_geterr\0")?,
                free: *library.get(b"pcap_freecode\0")?,
                close: *library.get(b"pcap_close\0")?,
                filter: *library.get(b"bpf_filter\0")?,
                validate: *library.get(b"bpf_validate\0")?,
                is_reentrant: is_reentrant(&CStr::from_ptr(version()).to_string_lossy()),
                version,
                alone: Mutex::new(()),
                loaded: library,
            })
        }
    }

    /// The version of the library.
    pub fn version(&self) -> String {
        // SAFETY: it returns a string that is never freed.
        unsafe { CStr::from_ptr((self.version)()) }.to_string_lossy().into_owned()
    }

    /// Compiles an expression for packets of a link type in libpcap's numbering (`DLT_`; 1 is Ethernet), as
    /// [`Pcap::compile_for`] does.
    ///
    /// # Errors
    /// [`PcapError`] with what libpcap says of the expression.
    pub fn compile(&self, expression: &str, data_link: i32) -> Result<Program, PcapError> {
        self.compile_for(expression, &LinkLayer::native(link_type(data_link)).into())
    }

    /// Compiles an expression for packets. The program is that of libpcap before its optimizer, which is known to
    /// change the meaning of some programs.
    ///
    /// # Errors
    /// [`PcapError`] with what libpcap says of the expression. What is known of packets on their way through the kernel
    /// only, such as their direction on Ethernet, is refused.
    pub fn compile_for(&self, expression: &str, target: &Target) -> Result<Program, PcapError> {
        let handle = self.open(target.link)?;
        // Parts that cannot be compiled by themselves may have a meaning together, or an error with a better message.
        let joined = divide(expression).and_then(|parts| handle.join(&parts, target.netmask).ok());
        match joined {
            Some(joined) => Ok(Program::join(&joined, SNAPSHOT_LENGTH as u32)?),
            None => handle.program(expression, Effort::Translate, target.netmask),
        }
    }

    /// Compiles an expression as other users of libpcap do, with its optimizer; for comparisons.
    ///
    /// # Errors
    /// [`PcapError`] with what libpcap says of the expression.
    pub fn compile_optimized(&self, expression: &str, target: &Target) -> Result<Program, PcapError> {
        self.open(target.link)?.program(expression, Effort::Optimize, target.netmask)
    }

    /// The netmask of an interface's network; none if it has no IPv4 address.
    pub fn netmask(&self, interface: &str) -> Option<Ipv4Addr> {
        let name = CString::new(interface).ok()?;
        let (mut network, mut mask) = (0, 0);
        let mut complaint = [0; ERROR_LENGTH];
        // SAFETY: the type is that of the declaration in <pcap/pcap.h>; the name ends with zero, the numbers and the
        // text are written, and all live through the call.
        let status = unsafe {
            let lookup: LookupNet = *self.loaded.get(b"pcap_lookupnet\0").ok()?;
            lookup(name.as_ptr(), &mut network, &mut mask, complaint.as_mut_ptr())
        };
        // In the order of the network, whose bytes are those of the address.
        (status == 0 && mask != 0).then(|| Ipv4Addr::from(mask.to_ne_bytes()))
    }

    /// A handle for packets of a capture: libpcap then knows their byte order, the numbers of address families on other
    /// systems, and that it cannot ask the kernel.
    fn open(&self, link: LinkLayer) -> Result<Handle<'_>, PcapError> {
        let alone = self.one_at_a_time();
        #[cfg(windows)]
        // SAFETY: the function has no conditions.
        let handle = unsafe { (self.open_dead)(crate::link::data_link(link.link_type), SNAPSHOT_LENGTH) };
        #[cfg(not(windows))]
        let handle = self.open_header(link)?;
        drop(alone);
        if handle.is_null() {
            return Err(PcapError(format!("libpcap knows no packets of link type {}", link.link_type)));
        }
        Ok(Handle { pcap: self, handle })
    }

    /// Opens a capture without packets.
    #[cfg(not(windows))]
    fn open_header(&self, link: LinkLayer) -> Result<*mut c_void, PcapError> {
        let order = link.byte_order;
        let version = if order == crate::link::ByteOrder::Little { 4 << 16 | 2 } else { 2 << 16 | 4 };
        let words = [0xa1b2_c3d4, version, 0, 0, SNAPSHOT_LENGTH as u32, link.link_type as u32];
        let mut header: Vec<u8> = words.into_iter().flat_map(|word| order.bytes(word)).collect();
        let mut complaint = [0; ERROR_LENGTH];
        // SAFETY: the memory is as long as stated and is read before this function returns: what comes after the header
        // is never asked for. A file that libpcap does not take is closed here, else with the handle.
        unsafe {
            let file = (self.open_memory)(header.as_mut_ptr().cast(), header.len(), c"r".as_ptr());
            if file.is_null() {
                return Err(PcapError("the system lacks memory".to_owned()));
            }
            let handle = (self.open_file)(file, complaint.as_mut_ptr());
            if handle.is_null() {
                (self.close_file)(file);
                return Err(PcapError(text(&complaint)));
            }
            Ok(handle)
        }
    }

    /// Old versions of libpcap are used by one thread at a time.
    fn one_at_a_time(&self) -> Option<MutexGuard<'_, ()>> {
        (!self.is_reentrant).then(|| self.alone.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A program for `bpf_filter`. None for one that jumps backwards, which may loop forever there.
    pub fn prepare(&self, program: &Program) -> Option<Prepared<'_>> {
        program.is_acyclic().then(|| Prepared { pcap: self, instructions: program.instructions() })
    }

    /// Whether `bpf_validate` accepts a program.
    pub fn validates(&self, instructions: &[Instruction]) -> bool {
        // SAFETY: the pointer and length are those of a slice.
        unsafe { (self.validate)(instructions.as_ptr(), instructions.len() as c_int) != 0 }
    }
}

/// Whether a version of libpcap compiles without global state. Unknown versions are taken for old ones.
fn is_reentrant(version: &str) -> bool {
    let number = version.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    let mut parts = number.unwrap_or_default().split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (1, 8)
}

/// The text of an error buffer.
#[cfg(not(windows))]
fn text(complaint: &[c_char; ERROR_LENGTH]) -> String {
    let bytes: Vec<u8> = complaint.iter().map(|byte| *byte as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A handle of libpcap for packets of one link layer.
struct Handle<'p> {
    pcap: &'p Pcap,
    handle: *mut c_void,
}

impl Handle<'_> {
    /// The program of an expression.
    fn program(&self, expression: &str, effort: Effort, netmask: Option<Ipv4Addr>) -> Result<Program, PcapError> {
        self.translate(expression, effort, netmask, |instructions| Program::new(instructions).map_err(PcapError::from))
    }

    /// The programs of parts.
    fn join(&self, parts: &Parts, netmask: Option<Ipv4Addr>) -> Result<Joined, PcapError> {
        Ok(match parts {
            Parts::Text(part) => Joined::One(self.program(&part.text, Effort::Translate, netmask)?),
            Parts::Not(inner) => Joined::Not(Box::new(self.join(inner, netmask)?)),
            Parts::Join(connective, parts) => {
                let parts = parts.iter().map(|part| self.join(part, netmask)).collect::<Result<_, _>>()?;
                match connective {
                    Connective::And => Joined::All(parts),
                    Connective::Or => Joined::Any(parts),
                }
            }
        })
    }

    /// Has an expression compiled, and the instructions read.
    fn translate<T: Send>(
        &self,
        expression: &str,
        effort: Effort,
        netmask: Option<Ipv4Addr>,
        read: impl FnOnce(&[Instruction]) -> Result<T, PcapError> + Send,
    ) -> Result<T, PcapError> {
        let text = CString::new(expression).map_err(|_| PcapError("the expression contains a zero byte".to_owned()))?;
        let _alone = self.pcap.one_at_a_time();
        let translation = Translation {
            pcap: self.pcap,
            handle: self.handle,
            text: &text,
            effort,
            // libpcap compares the complement with addresses in the order of numbers.
            netmask: netmask.map_or(NETMASK_UNKNOWN, u32::from),
        };
        match expression.len() {
            0..=MAX_BYTES_ON_STACK => translation.run(read),
            length @ ..=MAX_EXPRESSION_BYTES => std::thread::scope(|scope| {
                let thread = std::thread::Builder::new().stack_size(length * STACK_PER_BYTE);
                let translated = thread.spawn_scoped(scope, move || translation.run(read));
                let translated = translated.map_err(|error| PcapError(format!("the system lacks memory: {error}")))?;
                translated.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            }),
            length => Err(PcapError(format!("an expression of {length} bytes; at most 2^20 are read"))),
        }
    }
}

/// The length up to which an expression is translated on the stack of the caller, in bytes: libpcap visits the tests of
/// an expression by recursion.
const MAX_BYTES_ON_STACK: usize = 4096;
/// The most bytes of an expression.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;
/// The size of the stack for longer expressions, for each byte of the text: `port 1` is a dozen tests.
const STACK_PER_BYTE: usize = 1024;

/// One call of libpcap's compiler.
struct Translation<'t> {
    pcap: &'t Pcap,
    handle: *mut c_void,
    text: &'t CStr,
    effort: Effort,
    netmask: c_uint,
}

// SAFETY: libpcap keeps nothing for each thread, and the thread that created the handle waits for the translation.
unsafe impl Send for Translation<'_> {}

impl Translation<'_> {
    fn run<T>(self, read: impl FnOnce(&[Instruction]) -> Result<T, PcapError>) -> Result<T, PcapError> {
        let Translation { pcap, handle, text, effort, netmask } = self;
        // SAFETY: the handle is open; a program that was compiled is read within its length and freed once; the string
        // ends with zero and lives through the call.
        unsafe {
            let mut program = RawProgram { length: 0, instructions: std::ptr::null_mut() };
            let status = (pcap.compile)(handle, &mut program, text.as_ptr(), effort as c_int, netmask);
            if status != 0 {
                let message = CStr::from_ptr((pcap.last_error)(handle)).to_string_lossy().into_owned();
                return Err(PcapError(explained(message)));
            }
            let result = read(std::slice::from_raw_parts(program.instructions, program.length as usize));
            (pcap.free)(&mut program);
            result
        }
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        let _alone = self.pcap.one_at_a_time();
        // SAFETY: the handle was opened and is closed once.
        unsafe { (self.pcap.close)(self.handle) }
    }
}

/// A message of libpcap for packets of a capture, which are all packets here.
fn explained(message: String) -> String {
    match message.strip_suffix(" when reading savefiles") {
        Some(what) => format!("{what}: it is not in the packets, only the kernel knows it"),
        None => message,
    }
}

/// A program that `bpf_filter` can run.
#[derive(Debug)]
pub struct Prepared<'p> {
    pcap: &'p Pcap,
    /// Those of a valid program without jumps backwards.
    instructions: Vec<Instruction>,
}

impl Prepared<'_> {
    /// The verdict of `bpf_filter`.
    #[inline]
    pub fn run(&self, packet: Packet<'_>) -> u32 {
        // SAFETY: the program is valid, so it ends and loads nothing outside of the packet.
        unsafe { (self.pcap.filter)(self.instructions.as_ptr(), packet.data, packet.wire_length, packet.length) }
    }
}
