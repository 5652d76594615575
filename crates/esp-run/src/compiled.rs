//! The engine `c`: a program compiled to a shared library, driven through its sans-IO entry (`esp_gen::layout::Abi`).
//!
//! ```text
//!   drivers -> batch of messages in C form --+                    +--> messages in C form -> drivers
//!                                            +--> step(state) ----+
//!   clock ----------------------------------+                    +--> sleep until, end, or fault
//! ```
//!
//! Messages are taken from the drivers ahead of time, as many as fit a batch: the program sees the same sequence.

use crate::compiler::{Product, Workshop};
use crate::error::{HostError, root_cause};
use crate::externs::check_files;
use crate::fault::{name_at, waits_of};
use crate::marshal;
use crate::outcome::{RunOutcome, WakeReason};
use crate::ports::Ports;
use crate::signals::{Signals, die_of};
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness};
use quaject_esp_exec::report::FaultReport;
use quaject_esp_gen::layout::{Abi, ExternalChannel, Layouts};
use quaject_esp_gen::{RUNTIME_HEADER, c};
use quaject_esp_ir::ir::{Channel, ChannelId, Fault, Location, Program, Purity};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::c_void;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the generated C calls its header, whatever the program is called.
pub(crate) const HEADER_NAME: &str = "program.h";
/// What generated C is told that is run by a guard.
pub(crate) const GUARDED: &[&str] = &["ESP_OPTIONAL_EXTERNS", "ESP_LEAVABLE"];

/// Writes the guard, which leaves a step in the middle (`resources/guard.h`).
pub(crate) fn guard(workshop: &Workshop) -> Result<PathBuf, HostError> {
    workshop.write("guard.h", include_str!("../resources/guard.h"))?;
    workshop.write("guard.c", include_str!("../resources/guard.c"))
}

/// Messages a batch holds at most, and bytes.
const BATCH_MESSAGES: usize = 4096;
const BATCH_BYTES: usize = 1 << 18;

/// How long compiled code may go on computing when a signal has come.
const COMPUTE_GRACE: Timespec = Timespec { tv_sec: 0, tv_nsec: 300_000_000 };

/// `esp_source`
#[repr(C)]
struct Source {
    messages: *const c_void,
    count: usize,
    closed: bool,
}

/// `esp_sink`
#[repr(C)]
#[derive(Clone, Copy)]
struct Sink {
    messages: *mut c_void,
    capacity: usize,
    count: usize,
    closed: bool,
}

/// `esp_output_head`
#[repr(C)]
#[derive(Clone, Copy)]
struct Head {
    taken: *mut usize,
    limit: usize,
    wake: i64,
    exit_status: i32,
}

/// `esp_location`
#[repr(C)]
#[derive(Clone, Copy)]
struct CLocation {
    file: u16,
    column: u16,
    line: u32,
    channel: i32,
}

/// `esp_fault_report`
#[repr(C)]
#[derive(Clone, Copy)]
struct Report {
    code: u32,
    instance: u32,
    place: CLocation,
}

/// `esp_library`
#[repr(C)]
struct Exported {
    abi: u32,
    instances: u32,
    sources: u32,
    sinks: u32,
    state_size: usize,
    init: unsafe extern "C" fn(*mut c_void),
    step: unsafe extern "C" fn(*mut c_void, *const Source, *mut Head, i64) -> i32,
    fault: unsafe extern "C" fn(*const c_void) -> Report,
    place: unsafe extern "C" fn(*const c_void, u32) -> CLocation,
    stuck: unsafe extern "C" fn(*const c_void, u32) -> bool,
    open: unsafe extern "C" fn(*const c_void, u32, u32) -> bool,
    trace: *const c_void,
}

/// The version of `esp_library` written down here.
const ABI: u32 = 2;
const ESP_SLEEP: i32 = 0;
const ESP_AGAIN: i32 = 1;
const ESP_DONE: i32 = 2;
const ESP_FAULT: i32 = 3;
/// Beside those, of the guard: the step was left in the middle.
const QJ_LEFT: i32 = 100;

/// `qj_take_step`
type TakeStep = unsafe extern "C" fn(&Exported, *mut c_void, *const Source, *mut Head, i64) -> i32;
/// `qj_leave_step`
type LeaveStep = unsafe extern "C" fn();

/// The head of an `esp_output` and its sinks, one block of memory: both halves of the union are 32 bytes, so that the
/// array is the structure C declares.
#[repr(C)]
union Output {
    head: Head,
    sink: Sink,
}
const _: () = assert!(size_of::<Head>() == size_of::<Sink>() && align_of::<Head>() == align_of::<Sink>());

/// A program that has been loaded.
pub(crate) struct Library {
    exported: &'static Exported,
    take_step: TakeStep,
    leave_step: LeaveStep,
    abi: Abi,
    // Dropped last: what is above lies in it.
    handle: libloading::Library,
}

impl Library {
    /// Compiles and loads a program with its extern functions.
    pub(crate) fn build(program: &Program, generated: &c::Output, externs: &[PathBuf]) -> Result<Library, HostError> {
        let workshop = Workshop::open()?;
        workshop.write("quaject/esp.h", RUNTIME_HEADER)?;
        workshop.write(HEADER_NAME, &generated.header)?;
        let abi = generated.abi.clone();
        let mut inputs = vec![workshop.write("program.c", &generated.source)?, guard(&workshop)?];
        check_files(externs)?;
        inputs.extend(externs.iter().cloned());
        let output = workshop.path("program.so");
        workshop.build(Product::Library, &inputs, GUARDED, &output)?;
        let unloadable = |error: libloading::Error| {
            HostError::new(format!("cannot load the compiled program: {}", root_cause(&error)))
        };
        // SAFETY: Loading runs the library's initialisers: generated code has none, extern functions are the user's.
        let handle = unsafe { libloading::Library::new(&output) }.map_err(unloadable)?;
        // SAFETY: The symbol is of the C type `esp_library`, which `Exported` repeats; checked below by its version.
        let exported = unsafe { handle.get::<*const Exported>(abi.symbol.as_bytes()) }.map_err(unloadable)?;
        // SAFETY: The symbol lies in the library, which is kept as long as the reference.
        let exported: &'static Exported = unsafe { &**exported };
        // SAFETY: `resources/guard.h` declares it so.
        let take_step = unsafe { *handle.get::<TakeStep>(b"qj_take_step\0").map_err(unloadable)? };
        // SAFETY: Likewise.
        let leave_step = unsafe { *handle.get::<LeaveStep>(b"qj_leave_step\0").map_err(unloadable)? };
        let expected = (ABI, program.instance_count(), abi.sources.len() as u32, abi.sinks.len() as u32);
        let found = (exported.abi, exported.instances, exported.sources, exported.sinks);
        if expected != found {
            return Err(HostError::new(format!("the compiled program is {found:?}, expected was {expected:?}")));
        }
        Ok(Library { exported, take_step, leave_step, abi, handle })
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, program: &Program, ports: &mut Ports<'_>, signals: &Signals) -> RunOutcome {
        let step = Step::default();
        let Ok((running, ended)) = UnixStream::pair() else {
            // Without it the second signal ends what the first one does not.
            return self.steps(program, ports, signals, &step);
        };
        std::thread::scope(|scope| {
            let leave = self.leave_step;
            let (step, ended) = (&step, &ended);
            scope.spawn(move || step.watch(signals, ended, leave));
            let ending = self.steps(program, ports, signals, step);
            drop(running);
            ending
        })
    }

    fn steps(&self, program: &Program, ports: &mut Ports<'_>, signals: &Signals, step: &Step) -> RunOutcome {
        let mut state = vec![0u128; self.exported.state_size.div_ceil(16).max(1)];
        let state: *mut c_void = state.as_mut_ptr().cast();
        // SAFETY: 1. `state` has the size and alignment the library asks for. 2. It is used by this library alone and
        // outlives the last call below.
        unsafe { (self.exported.init)(state) };
        let layouts = &self.abi.layouts;
        let mut sources: Vec<Batch> = self.abi.sources.iter().map(Batch::new).collect();
        let mut sinks: Vec<Batch> = self.abi.sinks.iter().map(Batch::new).collect();
        let has_effects = program.externs.iter().any(|function| match function.purity {
            Purity::Impure => true,
            Purity::Pure => false,
        });
        let limit = usize::from(has_effects || ports.shares_outputs());
        let mut taken = vec![0usize; sources.len()];
        loop {
            for batch in &mut sources {
                batch.fill(program, layouts, ports);
            }
            let offered: Vec<Source> = sources.iter().map(Batch::source).collect();
            let mut output = Vec::with_capacity(sinks.len() + 1);
            taken.fill(0);
            output.push(Output { head: Head { taken: taken.as_mut_ptr(), limit, wake: 0, exit_status: 0 } });
            output.extend(sinks.iter_mut().map(|batch| Output { sink: batch.sink(ports) }));
            let now_ns = ports.now_ns();
            // SAFETY: 1. The arrays have one element per source and sink, in the order of `Abi`, whose number was
            // compared with the library's. 2. Each points to memory for `count` or `capacity` messages of the extent
            // the layout gives, which the generated header asserts. 3. All of it outlives the call.
            // 4. If the step is left in the middle, it is C that is left.
            let status = step.take(|| unsafe {
                (self.take_step)(self.exported, state, offered.as_ptr(), output.as_mut_ptr().cast(), now_ns)
            });
            for (batch, taken) in sources.iter_mut().zip(&taken) {
                batch.take(*taken, ports);
            }
            if has_effects {
                // What extern functions have printed comes before what the program sent after they returned.
                self.flush_c();
            }
            let mut is_full = false;
            for (batch, output) in sinks.iter_mut().zip(&output[1..]) {
                // SAFETY: All but the first were made sinks above.
                let Sink { count, capacity, .. } = unsafe { output.sink };
                batch.drain(program, layouts, ports, count);
                is_full |= count > 0 && count == capacity;
            }
            if has_effects {
                ports.flush();
            }
            let refill = taken.iter().any(|taken| *taken > 0);
            if status == ESP_AGAIN && !refill {
                // It may compute for long, or for ever.
                ports.flush();
            }
            // SAFETY: The first was made the head above.
            let head = unsafe { output[0].head };
            match status {
                ESP_DONE => return RunOutcome::Exit(head.exit_status as u8),
                ESP_FAULT => return RunOutcome::Fault(Box::new(self.fault(program, state))),
                QJ_LEFT if let Some(signal) = signals.pending() => return RunOutcome::Signal(signal),
                _ if ports.is_output_closed() => return RunOutcome::OutputClosed,
                _ => {}
            }
            let wake = match status {
                // There is room for more messages, which may be there already.
                ESP_SLEEP if refill || is_full => WakeReason::Event,
                // A wrong message is one only when the program has taken those before it.
                ESP_SLEEP if let Some(error) = ports.take_error() => return RunOutcome::Failed(error),
                ESP_SLEEP => match ports.sleep((head.wake != i64::MAX).then_some(head.wake), signals) {
                    // It does wait, then: for the last moment there is.
                    WakeReason::Never => ports.sleep(Some(head.wake), signals),
                    wake => wake,
                },
                ESP_AGAIN => signals.pending().map_or(WakeReason::Event, WakeReason::Signal),
                other => return RunOutcome::Failed(HostError::new(format!("the compiled program answers {other}"))),
            };
            match wake {
                WakeReason::Event => {}
                WakeReason::Signal(signal) => return RunOutcome::Signal(signal),
                WakeReason::Never => {
                    return RunOutcome::Failed(HostError::new("the compiled program waits for nothing"));
                }
            }
        }
    }

    /// Writes what C code has printed.
    fn flush_c(&self) {
        // SAFETY: The C library's `fflush` has this type; without it nothing can have been printed.
        if let Ok(flush) = unsafe { self.handle.get::<unsafe extern "C" fn(*mut c_void) -> i32>(b"fflush\0") } {
            // SAFETY: A null pointer means every stream.
            unsafe { flush(std::ptr::null_mut()) };
        }
    }

    fn fault(&self, program: &Program, state: *const c_void) -> FaultReport {
        // SAFETY: `state` is the one `step` returned ESP_FAULT for.
        let report = unsafe { (self.exported.fault)(state) };
        let fault = fault_of(report.code);
        let place = location(report.place);
        let ended = |instance| {
            // SAFETY: As above, and only instances that exist are asked about.
            let place = unsafe { (self.exported.place)(state, instance) };
            place.line == 0
        };
        let open = |instance, branch| {
            // SAFETY: As above; a number that no branch has is not open.
            unsafe { (self.exported.open)(state, instance, branch) }
        };
        let mut stuck = Vec::new();
        if fault == Fault::Deadlock {
            for instance in 0..program.instance_count() {
                // SAFETY: As above, and the instance exists.
                let (is_stuck, place) =
                    unsafe { ((self.exported.stuck)(state, instance), (self.exported.place)(state, instance)) };
                if is_stuck {
                    stuck.push((instance, location(place)));
                }
            }
        }
        FaultReport {
            fault,
            instance: report.instance,
            location: place,
            channel: channel(report.place),
            name: name_at(program, fault, place),
            waits: waits_of(program, &stuck, &open, &ended),
        }
    }
}

fn location(place: CLocation) -> Location {
    Location { file: place.file, line: place.line, column: u32::from(place.column), member: None }
}

fn channel(place: CLocation) -> Option<ChannelId> {
    u32::try_from(place.channel).ok().map(ChannelId)
}

/// `esp_fault_code`
fn fault_of(code: u32) -> Fault {
    match code {
        1 => Fault::Assert,
        2 => Fault::Bounds,
        3 => Fault::Div,
        4 => Fault::Overflow,
        5 => Fault::Pool,
        6 => Fault::Range,
        7 => Fault::Memory,
        8 => Fault::Alt,
        9 => Fault::Deadlock,
        _ => Fault::Extern,
    }
}

/// The compiled code's turns, as another thread sees them: how often one has begun or ended, so an odd number while it
/// computes.
#[derive(Default)]
struct Step(AtomicU64);

impl Step {
    /// Runs the compiled code for a turn.
    fn take(&self, turn: impl FnOnce() -> i32) -> i32 {
        // Relaxed, both: the number says no more than that time passes.
        self.0.fetch_add(1, Ordering::Relaxed);
        let status = turn();
        self.0.fetch_add(1, Ordering::Relaxed);
        status
    }

    /// Some time after a signal, has the turn be left in which it came if the compiled code does not come back from it: a
    /// process that computes without end looks at nothing. If an extern function does not come back either, ends the
    /// process; what that turn has sent is lost then. Returns when the other end of `ended` is closed.
    fn watch(&self, signals: &Signals, ended: &UnixStream, leave: LeaveStep) {
        loop {
            let mut ready = [
                PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(signals.descriptor(), PollFlags::IN),
            ];
            if poll(&mut ready, None).is_err() {
                continue;
            }
            if !ready[0].revents().is_empty() {
                return;
            }
            let turn = self.0.load(Ordering::Relaxed);
            let is_over = || {
                let mut ready = [PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)];
                poll(&mut ready, Some(&COMPUTE_GRACE)).is_ok_and(|ready| ready > 0)
            };
            if is_over() {
                return;
            }
            let (1, Some(signal)) = (turn % 2, signals.pending()) else { continue };
            if turn != self.0.load(Ordering::Relaxed) {
                continue;
            }
            // SAFETY: It may be called from any thread once a step has been taken, and one is being taken.
            unsafe { leave() };
            if is_over() {
                return;
            }
            if turn == self.0.load(Ordering::Relaxed) {
                die_of(signal);
            }
        }
    }
}

/// Messages of one channel in C form.
struct Batch {
    channel: ChannelId,
    size: usize,
    offsets: Vec<usize>,
    /// Room for `capacity` messages, aligned for any.
    memory: Vec<u64>,
    capacity: usize,
    count: usize,
    closed: bool,
    /// Whether the last message is still on offer at its driver: a timer's tick is late by the time it is received,
    /// not by the time it was fetched.
    borrowed: bool,
}

impl Batch {
    fn new(external: &ExternalChannel) -> Batch {
        let size = external.extent.size as usize;
        let capacity = (BATCH_BYTES / size).clamp(1, BATCH_MESSAGES);
        Batch {
            channel: external.channel,
            size,
            offsets: external.offsets.iter().map(|offset| *offset as usize).collect(),
            memory: vec![0; (capacity * size).div_ceil(8)],
            capacity,
            count: 0,
            closed: false,
            borrowed: false,
        }
    }

    fn bytes(&mut self) -> &mut [u8] {
        let length = size_of_val(self.memory.as_slice());
        // SAFETY: Any initialised memory may be seen as bytes, and any bytes are valid words; the lifetime is the same.
        unsafe { std::slice::from_raw_parts_mut(self.memory.as_mut_ptr().cast(), length) }
    }

    fn declared<'p>(&self, program: &'p Program) -> &'p Channel {
        &program.channels[self.channel.0 as usize]
    }

    /// Takes messages from the driver.
    fn fill(&mut self, program: &Program, layouts: &Layouts, ports: &mut Ports<'_>) {
        let keep = ports.is_timer(self.channel);
        if self.borrowed
            && let Offer::Message(message) = ports.peek(self.channel)
        {
            self.count -= 1;
            self.store(program, layouts, message);
            self.count += 1;
        }
        while self.count < self.capacity && !self.closed && !self.borrowed {
            match ports.peek(self.channel) {
                Offer::Pending => return,
                Offer::Closed => self.closed = true,
                Offer::Message(message) => {
                    self.store(program, layouts, message);
                    self.count += 1;
                    if keep {
                        self.borrowed = true;
                    } else {
                        ports.take(self.channel);
                    }
                }
            }
        }
    }

    /// Writes a message behind the others.
    fn store(&mut self, program: &Program, layouts: &Layouts, message: &[Datum]) {
        let types = &self.declared(program).payload;
        let start = self.count * self.size;
        let offsets = std::mem::take(&mut self.offsets);
        let size = self.size;
        let memory = &mut self.bytes()[start..start + size];
        memory.fill(0);
        for ((ty, value), offset) in types.iter().zip(message).zip(&offsets) {
            marshal::store(program, layouts, *ty, value, &mut memory[*offset..]);
        }
        self.offsets = offsets;
    }

    fn source(&self) -> Source {
        Source { messages: self.memory.as_ptr().cast(), count: self.count, closed: self.closed }
    }

    /// The program has taken the first messages.
    fn take(&mut self, taken: usize, ports: &mut Ports<'_>) {
        if taken == 0 {
            return;
        }
        let (size, count) = (self.size, self.count);
        self.bytes().copy_within(taken * size..count * size, 0);
        self.count -= taken;
        if std::mem::take(&mut self.borrowed) {
            ports.take(self.channel);
        }
    }

    fn sink(&mut self, ports: &mut Ports<'_>) -> Sink {
        let capacity = match ports.readiness(self.channel) {
            Readiness::Ready => self.capacity,
            Readiness::Busy | Readiness::Closed => 0,
        };
        Sink { messages: self.memory.as_mut_ptr().cast(), capacity, count: 0, closed: false }
    }

    /// Hands what the program has sent to the driver.
    fn drain(&mut self, program: &Program, layouts: &Layouts, ports: &mut Ports<'_>, count: usize) {
        let types = &self.declared(program).payload;
        let mut message = Vec::with_capacity(types.len());
        for index in 0..count {
            message.clear();
            for (number, ty) in types.iter().enumerate() {
                let start = index * self.size + self.offsets[number];
                let value = marshal::load(program, layouts, *ty, &self.bytes()[start..]);
                message.push(value.expect("generated code sends values of the channel's types"));
            }
            ports.put(self.channel, &message);
        }
    }
}
