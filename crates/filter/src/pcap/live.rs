//! Live packets of an interface, through libpcap, which restores VLAN tags that the kernel has removed.

use super::{ERROR_LENGTH, Pcap, PcapError, SNAPSHOT_LENGTH, text};
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uint, c_void};
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};

/// How long the kernel may keep packets back, so that it gives many at once; in milliseconds.
const BATCH_TIMEOUT_MS: c_int = 100;
/// The kernel's buffer of packets that were not read yet, in bytes.
const BUFFER_BYTES: c_int = 16 << 20;
/// `PCAP_TSTAMP_PRECISION_NANO`.
const NANOSECONDS: c_int = 1;
/// `struct pcap_pkthdr`; the second half of the time is in nanoseconds, which `open` asks for.
#[repr(C)]
struct Header {
    seconds: c_long,
    nanoseconds: c_long,
    captured: c_uint,
    length: c_uint,
}

/// `struct pcap_stat`.
#[repr(C)]
#[derive(Default)]
struct Statistics {
    received: c_uint,
    dropped: c_uint,
    dropped_by_interface: c_uint,
}

type Create = unsafe extern "C" fn(*const c_char, *mut c_char) -> *mut c_void;
type Set = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
type Activate = unsafe extern "C" fn(*mut c_void) -> c_int;
type SetNonblocking = unsafe extern "C" fn(*mut c_void, c_int, *mut c_char) -> c_int;
type Next = unsafe extern "C" fn(*mut c_void, *mut *const Header, *mut *const u8) -> c_int;
type Statistic = unsafe extern "C" fn(*mut c_void, *mut Statistics) -> c_int;

/// A live capture on an interface: packets in both directions from the moment it is opened.
pub struct Live<'p> {
    pcap: &'p Pcap,
    handle: *mut c_void,
    next: Next,
    statistics: Statistic,
    descriptor: c_int,
    link_type: i32,
}

impl fmt::Debug for Live<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("link_type", &self.link_type).finish_non_exhaustive()
    }
}

/// A received packet.
#[derive(Debug)]
pub struct LivePacket<'l> {
    /// When, in seconds since 1970.
    pub seconds: u32,
    /// And nanoseconds.
    pub nanoseconds: u32,
    /// How many bytes it has.
    pub wire_length: u32,
    /// Those that were captured.
    pub data: &'l [u8],
}

impl Pcap {
    /// Listens to an interface; `any` is all of them.
    ///
    /// # Errors
    /// [`PcapError`] if there is no such interface, or it may not be listened to.
    pub fn listen(&self, interface: &str) -> Result<Live<'_>, PcapError> {
        let name = CString::new(interface).map_err(|_| PcapError("the name contains a zero byte".to_owned()))?;
        let absent = |error: libloading::Error| PcapError(format!("this libpcap is too old: {error}"));
        // SAFETY: the types are those of the declarations in <pcap/pcap.h>; the functions are used no longer than the
        // library is loaded, which `self` outlives.
        let (create, activate, set_nonblocking, data_link, descriptor_of) = unsafe {
            (
                *self.loaded.get::<Create>(b"pcap_create\0").map_err(absent)?,
                *self.loaded.get::<Activate>(b"pcap_activate\0").map_err(absent)?,
                *self.loaded.get::<SetNonblocking>(b"pcap_setnonblock\0").map_err(absent)?,
                *self.loaded.get::<Activate>(b"pcap_datalink\0").map_err(absent)?,
                *self.loaded.get::<Activate>(b"pcap_get_selectable_fd\0").map_err(absent)?,
            )
        };
        // SAFETY: as above.
        let (next, statistics) = unsafe {
            (
                *self.loaded.get::<Next>(b"pcap_next_ex\0").map_err(absent)?,
                *self.loaded.get::<Statistic>(b"pcap_stats\0").map_err(absent)?,
            )
        };
        let mut complaint = [0; ERROR_LENGTH];
        // SAFETY: the name ends with zero and lives through the call; the second argument is as long as libpcap says.
        let handle = unsafe { create(name.as_ptr(), complaint.as_mut_ptr()) };
        if handle.is_null() {
            return Err(PcapError(text(&complaint)));
        }
        // From here on it is closed when it is dropped.
        let mut live = Live { pcap: self, handle, next, statistics, descriptor: -1, link_type: 0 };
        let settings: [(&[u8], c_int); 5] = [
            (b"pcap_set_snaplen\0", SNAPSHOT_LENGTH),
            (b"pcap_set_promisc\0", 1),
            (b"pcap_set_timeout\0", BATCH_TIMEOUT_MS),
            (b"pcap_set_buffer_size\0", BUFFER_BYTES),
            (b"pcap_set_tstamp_precision\0", NANOSECONDS),
        ];
        for (setting, value) in settings {
            // SAFETY: all of them have this type; the handle has been created and is not active yet.
            let status = unsafe { self.loaded.get::<Set>(setting).map_err(absent)?(handle, value) };
            if status != 0 {
                return Err(live.refused());
            }
        }
        // SAFETY: the handle has been created. Above zero are warnings.
        if unsafe { activate(handle) } < 0 {
            return Err(live.refused());
        }
        // SAFETY: the handle is active, the text as long as libpcap says.
        if unsafe { set_nonblocking(handle, 1, complaint.as_mut_ptr()) } != 0 {
            return Err(PcapError(text(&complaint)));
        }
        // SAFETY: the handle is active.
        (live.link_type, live.descriptor) = unsafe { (data_link(handle), descriptor_of(handle)) };
        if live.descriptor < 0 {
            return Err(PcapError("it cannot be waited for".to_owned()));
        }
        Ok(live)
    }
}

impl Live<'_> {
    /// The number that libpcap has for the form of its packets (`DLT_..`), as [`Pcap::compile`] takes it.
    pub fn link_type(&self) -> i32 {
        self.link_type
    }

    /// The next packet; none if there is none yet. [`AsFd::as_fd`] becomes readable when there may be one.
    ///
    /// # Errors
    /// [`PcapError`] if the interface was removed or is down.
    pub fn next_packet(&mut self) -> Result<Option<LivePacket<'_>>, PcapError> {
        let (mut header, mut data) = (std::ptr::null(), std::ptr::null());
        // SAFETY: the handle is active; the pointers are written.
        match unsafe { (self.next)(self.handle, &mut header, &mut data) } {
            0 => Ok(None),
            1 => {
                // SAFETY: after 1 both point to a packet, which lives until the next call: that takes `self` anew.
                let (header, data) = unsafe {
                    let header: &Header = &*header;
                    (header, std::slice::from_raw_parts(data, header.captured as usize))
                };
                Ok(Some(LivePacket {
                    seconds: header.seconds as u32,
                    nanoseconds: header.nanoseconds as u32,
                    wire_length: header.length,
                    data,
                }))
            }
            _ => Err(self.refused()),
        }
    }

    /// The number of packets that were dropped because they were not read soon enough.
    pub fn lost(&mut self) -> u64 {
        let mut statistics = Statistics::default();
        // SAFETY: the handle is active; the structure is as <pcap/pcap.h> has it on Unix.
        match unsafe { (self.statistics)(self.handle, &mut statistics) } {
            0 => u64::from(statistics.dropped),
            _ => 0,
        }
    }

    /// The message of the handle's last failure.
    fn refused(&self) -> PcapError {
        // SAFETY: the handle has been created; its text ends with zero and is copied at once.
        PcapError(unsafe { CStr::from_ptr((self.pcap.last_error)(self.handle)) }.to_string_lossy().into_owned())
    }
}

impl AsFd for Live<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it is open until the handle is closed, and `listen` has refused what has none.
        unsafe { BorrowedFd::borrow_raw(self.descriptor) }
    }
}

impl Drop for Live<'_> {
    fn drop(&mut self) {
        // SAFETY: the handle was created and is closed once.
        unsafe { (self.pcap.close)(self.handle) }
    }
}
