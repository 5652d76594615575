//! Filters in the syntax of tcpdump, through the system's libpcap: loaded on demand, so that the rest of the crate
//! works without it. Also its `bpf_filter`, the reference implementation of programs, and the packets of interfaces.

#[cfg(unix)]
mod live;

#[cfg(unix)]
pub use live::{Live, LivePacket};

use crate::bpf::{Instruction, Program};
use crate::error::Error;
use crate::packet::Packet;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::sync::{Mutex, PoisonError};

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

/// `struct bpf_program`.
#[repr(C)]
struct RawProgram {
    length: c_uint,
    instructions: *mut Instruction,
}

type OpenDead = unsafe extern "C" fn(c_int, c_int) -> *mut c_void;
type Compile = unsafe extern "C" fn(*mut c_void, *mut RawProgram, *const c_char, c_int, c_uint) -> c_int;
type LastError = unsafe extern "C" fn(*mut c_void) -> *const c_char;
type Free = unsafe extern "C" fn(*mut RawProgram);
type Close = unsafe extern "C" fn(*mut c_void);
type FilterFn = unsafe extern "C" fn(*const Instruction, *const u8, c_uint, c_uint) -> c_uint;
type Validate = unsafe extern "C" fn(*const Instruction, c_int) -> c_int;
type Version = unsafe extern "C" fn() -> *const c_char;

/// The optimisation argument of `pcap_compile`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Effort {
    Translate = 0,
    Optimize = 1,
}

/// The system's libpcap.
pub struct Pcap {
    open_dead: OpenDead,
    compile: Compile,
    last_error: LastError,
    free: Free,
    close: Close,
    filter: FilterFn,
    validate: Validate,
    version: Version,
    /// Old versions of libpcap compile with global state.
    one_at_a_time: Mutex<()>,
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
            Ok(Pcap {
                open_dead: *library.get(b"pcap_open_dead\0")?,
                compile: *library.get(b"pcap_compile\0")?,
                last_error: *library.get(b"pcap_geterr\0")?,
                free: *library.get(b"pcap_freecode\0")?,
                close: *library.get(b"pcap_close\0")?,
                filter: *library.get(b"bpf_filter\0")?,
                validate: *library.get(b"bpf_validate\0")?,
                version: *library.get(b"pcap_lib_version\0")?,
                one_at_a_time: Mutex::new(()),
                loaded: library,
            })
        }
    }

    /// The version of the library.
    pub fn version(&self) -> String {
        // SAFETY: it returns a string that is never freed.
        unsafe { CStr::from_ptr((self.version)()) }.to_string_lossy().into_owned()
    }

    /// Compiles an expression for packets of a link type (1 is Ethernet).
    ///
    /// # Errors
    /// [`PcapError`] with what libpcap says of the expression.
    pub fn compile(&self, expression: &str, link_type: i32) -> Result<Program, PcapError> {
        self.translate(expression, link_type, Effort::Optimize, |instructions| {
            Program::new(instructions).map_err(PcapError::from)
        })
    }

    /// Whether libpcap can read an expression and write code for it. Without optimisation, which for long expressions
    /// takes hundreds of times as long.
    pub(crate) fn understands(&self, expression: &str, link_type: i32) -> bool {
        self.translate(expression, link_type, Effort::Translate, |_| Ok(())).is_ok()
    }

    /// Has an expression compiled, and the instructions read.
    fn translate<T>(
        &self,
        expression: &str,
        link_type: i32,
        effort: Effort,
        read: impl FnOnce(&[Instruction]) -> Result<T, PcapError>,
    ) -> Result<T, PcapError> {
        let text = CString::new(expression).map_err(|_| PcapError("the expression contains a zero byte".to_owned()))?;
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a handle that was opened is closed once; a program that was compiled is read within its length and
        // freed once; strings end with zero and live through the calls.
        unsafe {
            let handle = (self.open_dead)(link_type, SNAPSHOT_LENGTH);
            if handle.is_null() {
                return Err(PcapError(format!("libpcap knows no packets of link type {link_type}")));
            }
            let mut program = RawProgram { length: 0, instructions: std::ptr::null_mut() };
            let status = (self.compile)(handle, &mut program, text.as_ptr(), effort as c_int, NETMASK_UNKNOWN);
            let result = if status == 0 {
                let result = read(std::slice::from_raw_parts(program.instructions, program.length as usize));
                (self.free)(&mut program);
                result
            } else {
                Err(PcapError(CStr::from_ptr((self.last_error)(handle)).to_string_lossy().into_owned()))
            };
            (self.close)(handle);
            result
        }
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
