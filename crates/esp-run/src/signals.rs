//! Requests to stop: SIGINT and SIGTERM make a descriptor readable, for a sleep, or set a flag, for work that does not
//! sleep. A second signal has its default action, which ends the process, unless results are kept that are lost then.

use crate::error::{HostCode, HostError};
use crate::system::SignalBell;
use rustix::fd::BorrowedFd;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// What a second signal does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SecondSignal {
    /// It ends the process.
    Ends,
    /// Nothing more than the first.
    Waits,
}

/// The signals that have arrived.
pub struct Signals {
    received: Arc<AtomicUsize>,
    bell: SignalBell,
}

impl Signals {
    /// Handles signals from now on. Files are opened before: opening a named pipe without a partner must be
    /// interruptible.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn listen() -> Result<Signals, HostError> {
        Signals::register(SecondSignal::Ends)
    }

    /// Handles signals from now on, all of them: for work that ends soon after the first one, and whose results are to
    /// be kept.
    ///
    /// # Errors
    /// What the system refuses.
    pub fn listen_to_all() -> Result<Signals, HostError> {
        Signals::register(SecondSignal::Waits)
    }

    fn register(second: SecondSignal) -> Result<Signals, HostError> {
        Signals::try_register(second).map_err(|error| {
            HostError::new(HostCode::System, format!("cannot handle signals: {}", crate::error::reason(&error)))
        })
    }

    fn try_register(second: SecondSignal) -> std::io::Result<Signals> {
        let received = Arc::new(AtomicUsize::new(0));
        let again = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // In this order: the first signal finds `again` false, the second one finds it true and ends the process.
            if second == SecondSignal::Ends {
                signal_hook::flag::register_conditional_default(signal, Arc::clone(&again))?;
            }
            signal_hook::flag::register(signal, Arc::clone(&again))?;
            signal_hook::flag::register_usize(signal, Arc::clone(&received), signal as usize)?;
        }
        // After the handlers above: when the bell rings, the number of the signal is already set.
        let bell = SignalBell::register(&[SIGINT, SIGTERM], &received)?;
        Ok(Signals { received, bell })
    }

    /// The signal that has arrived, if one has.
    pub fn pending(&self) -> Option<i32> {
        // Relaxed: the handler runs on this thread or the bell's descriptor orders it before us; no data is handed
        // over.
        match self.received.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// Becomes readable when a signal arrives.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        self.bell.descriptor()
    }
}

/// The signals that have arrived, for work that polls a flag.
#[derive(Clone, Debug)]
pub struct Interrupts {
    asked: Arc<AtomicBool>,
    received: Arc<AtomicUsize>,
}

impl Interrupts {
    /// Handles signals from now on. Files are opened before: opening a named pipe without a partner must be
    /// interruptible.
    pub fn listen() -> Result<Interrupts, HostError> {
        let interrupts = Interrupts { asked: Arc::default(), received: Arc::default() };
        for signal in [SIGINT, SIGTERM] {
            // In this order: a second signal finds the flag set and ends the process.
            signal_hook::flag::register_conditional_default(signal, Arc::clone(&interrupts.asked))
                .and_then(|_| {
                    let received = Arc::clone(&interrupts.received);
                    signal_hook::flag::register_usize(signal, received, signal as usize)
                })
                .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&interrupts.asked)))
                .map_err(|error| {
                    HostError::new(HostCode::System, format!("cannot handle signals: {}", crate::error::reason(&error)))
                })?;
        }
        Ok(interrupts)
    }

    /// The flag, which the first signal sets.
    pub fn asked(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.asked)
    }

    /// The signal that has arrived, if one has.
    pub fn signal(&self) -> Option<i32> {
        // Relaxed: no data is handed over.
        match self.received.load(Ordering::Relaxed) {
            0 => None,
            signal => Some(signal as i32),
        }
    }
}

/// Ends this process by the default action of a signal.
pub fn die_of(signal: i32) -> ! {
    // The default action of both signals ends the process; if that fails, the exit status is the one that a shell
    // reports.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
    std::process::exit(128 + signal)
}
