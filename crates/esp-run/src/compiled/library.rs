//! A compiled program that has been loaded: its steps, and the report of its fault.

use super::abi::{
    ABI, ESP_AGAIN, ESP_DONE, ESP_FAULT, ESP_SLEEP, Exported, Head, LeaveStep, OutputBlock, QJ_LEFT, Sink, Source,
    TakeStep, channel, fault_of, location,
};
use super::batch::Batch;
use super::watchdog::StepCounter;
use super::{GUARDED, HEADER_NAME, guard};
use crate::compiler::{BuildDirectory, Product};
use crate::error::{HostCode, HostError, root_cause};
use crate::externs::check_files;
use crate::fault::{name_at, waits_of};
use crate::outcome::{RunOutcome, WakeReason};
use crate::ports::Ports;
use crate::signals::Signals;
use quaject_esp_exec::environment::Environment;
use quaject_esp_exec::report::FaultReport;
use quaject_esp_gen::layout::Abi;
use quaject_esp_gen::{RUNTIME_HEADER, c};
use quaject_esp_ir::ir::{Fault, Program, Purity};
use std::ffi::c_void;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A program that has been loaded.
pub(crate) struct Library {
    exported: &'static Exported,
    take_step: TakeStep,
    leave_step: LeaveStep,
    abi: Abi,
    // Dropped last: the fields above point into it.
    handle: libloading::Library,
}

impl Library {
    /// Compiles and loads a program with its extern functions.
    pub(crate) fn build(program: &Program, generated: &c::Output, externs: &[PathBuf]) -> Result<Library, HostError> {
        let directory = BuildDirectory::open()?;
        directory.write("quaject/esp.h", RUNTIME_HEADER)?;
        directory.write(HEADER_NAME, &generated.header)?;
        let abi = generated.abi.clone();
        let mut inputs = vec![directory.write("program.c", &generated.source)?, guard(&directory)?];
        check_files(externs)?;
        inputs.extend(externs.iter().cloned());
        let output = directory.path("program.so");
        directory.build(Product::Library, &inputs, GUARDED, &[], &output)?;
        let unloadable = |error: libloading::Error| {
            HostError::new(HostCode::ToolFailure, format!("cannot load the compiled program: {}", root_cause(&error)))
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
            return Err(HostError::new(
                HostCode::Defect,
                format!("the compiled program is {found:?}, expected was {expected:?}"),
            ));
        }
        Ok(Library { exported, take_step, leave_step, abi, handle })
    }

    /// Runs the program to its end.
    pub(crate) fn run(&self, program: &Program, ports: &mut Ports<'_>, signals: &Signals) -> RunOutcome {
        let counter = StepCounter::default();
        let Ok((running, ended)) = UnixStream::pair() else {
            // Without the watchdog, a second signal ends a step that the first one does not end.
            return self.steps(program, ports, signals, &counter);
        };
        std::thread::scope(|scope| {
            let leave = self.leave_step;
            let (counter, ended) = (&counter, &ended);
            scope.spawn(move || counter.watch(signals, ended, leave));
            let outcome = self.steps(program, ports, signals, counter);
            drop(running);
            outcome
        })
    }

    fn steps(&self, program: &Program, ports: &mut Ports<'_>, signals: &Signals, counter: &StepCounter) -> RunOutcome {
        let mut state = vec![0u128; self.exported.state_size.div_ceil(16).max(1)];
        let state: *mut c_void = state.as_mut_ptr().cast();
        // SAFETY: 1. `state` has the size and alignment the library asks for. 2. It is used by this library alone and
        // outlives the last call below.
        unsafe { (self.exported.init)(state) };
        let mut batches = Batches::new(self, program, ports);
        loop {
            for batch in &mut batches.sources {
                batch.fill(program, &self.abi.layouts, ports);
            }
            let step = self.step(program, state, &mut batches, ports, counter);
            if step.status == ESP_AGAIN && step.progress != Progress::Received {
                // The step may compute for long, or forever.
                ports.flush();
            }
            match step.status {
                ESP_DONE => return RunOutcome::Exit(step.head.exit_status as u8),
                ESP_FAULT => return RunOutcome::Fault(Box::new(self.fault(program, state))),
                QJ_LEFT if let Some(signal) = signals.pending() => return RunOutcome::Signal(signal),
                _ if ports.is_output_closed() => return RunOutcome::OutputClosed,
                _ => {}
            }
            match after_step(&step, ports, signals) {
                Ok(WakeReason::Event) => {}
                Ok(WakeReason::Signal(signal)) => return RunOutcome::Signal(signal),
                Ok(WakeReason::Never) => {
                    return RunOutcome::Failed(HostError::new(
                        HostCode::Defect,
                        "the compiled program waits for nothing",
                    ));
                }
                Err(error) => return RunOutcome::Failed(error),
            }
        }
    }

    /// Takes one step with the messages in the batches, and hands what it has sent to the drivers.
    fn step(
        &self,
        program: &Program,
        state: *mut c_void,
        batches: &mut Batches,
        ports: &mut Ports<'_>,
        counter: &StepCounter,
    ) -> Step {
        let Batches { sources, sinks, taken, flushes_each_step, limit } = batches;
        let offered: Vec<Source> = sources.iter().map(Batch::source).collect();
        let mut output = Vec::with_capacity(sinks.len() + 1);
        taken.fill(0);
        output.push(OutputBlock { head: Head { taken: taken.as_mut_ptr(), limit: *limit, wake: 0, exit_status: 0 } });
        output.extend(sinks.iter_mut().map(|batch| OutputBlock { sink: batch.sink(ports) }));
        let now_ns = ports.now_ns();
        // SAFETY: 1. The arrays have one element per source and sink, in the order of `Abi`, whose number was
        // compared with the library's. 2. Each points to memory for `count` or `capacity` messages of the extent
        // the layout gives, which the generated header asserts. 3. All of it outlives the call.
        // 4. If the step is left in the middle, only C frames are skipped.
        let status = counter.count(|| unsafe {
            (self.take_step)(self.exported, state, offered.as_ptr(), output.as_mut_ptr().cast(), now_ns)
        });
        for (batch, taken) in sources.iter_mut().zip(&*taken) {
            batch.take(*taken, ports);
        }
        if *flushes_each_step {
            // Output of extern functions precedes messages that the program sent after they returned.
            self.flush_c();
        }
        let mut is_full = false;
        for (batch, output) in sinks.iter_mut().zip(&output[1..]) {
            // SAFETY: All but the first were made sinks above.
            let Sink { count, capacity, .. } = unsafe { output.sink };
            batch.drain(program, &self.abi.layouts, ports, count);
            is_full |= count > 0 && count == capacity;
        }
        if *flushes_each_step {
            ports.flush();
        }
        let progress = match (taken.iter().any(|taken| *taken > 0), is_full) {
            (true, _) => Progress::Received,
            (false, true) => Progress::FilledBatch,
            (false, false) => Progress::None,
        };
        // SAFETY: The first was made the head above.
        Step { status, head: unsafe { output[0].head }, progress }
    }

    /// Flushes the output of C code.
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
            // SAFETY: As above, and the instance exists.
            let place = unsafe { (self.exported.place)(state, instance) };
            place.line == 0
        };
        let open = |instance, branch| {
            // SAFETY: As above; for a number of no branch it returns false.
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

/// The batches of messages between the drivers and the compiled program.
struct Batches {
    sources: Vec<Batch>,
    sinks: Vec<Batch>,
    /// By source; how many messages the last step has received.
    taken: Vec<usize>,
    /// Whether extern functions may print, so that output is written after each step, in order.
    flushes_each_step: bool,
    /// The most messages that a step may send, 0 without a limit: with 1, messages of several channels keep their
    /// order.
    limit: usize,
}

impl Batches {
    fn new(library: &Library, program: &Program, ports: &Ports<'_>) -> Batches {
        let flushes_each_step = program.externs.iter().any(|function| match function.purity {
            Purity::Impure => true,
            Purity::Pure => false,
        });
        Batches {
            sources: library.abi.sources.iter().map(Batch::new).collect(),
            sinks: library.abi.sinks.iter().map(Batch::new).collect(),
            taken: vec![0; library.abi.sources.len()],
            flushes_each_step,
            limit: usize::from(flushes_each_step || ports.shares_outputs()),
        }
    }
}

/// The result of a step.
struct Step {
    status: i32,
    head: Head,
    progress: Progress,
}

/// The progress of a step, by its use of the batches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// It received messages, so that there is room for more.
    Received,
    /// It received none, and sent as many as a batch holds.
    FilledBatch,
    /// Neither.
    None,
}

/// Waits after a step, if the program does.
fn after_step(step: &Step, ports: &mut Ports<'_>, signals: &Signals) -> Result<WakeReason, HostError> {
    match step.status {
        ESP_SLEEP => {}
        ESP_AGAIN => return Ok(signals.pending().map_or(WakeReason::Event, WakeReason::Signal)),
        other => return Err(HostError::new(HostCode::Defect, format!("the compiled program answers {other}"))),
    }
    match step.progress {
        // The drivers may have messages for the room that there is now.
        Progress::Received | Progress::FilledBatch => return Ok(WakeReason::Event),
        Progress::None => {}
    }
    // An error in an input takes effect when the program has received the messages before it.
    if let Some(error) = ports.take_error() {
        return Err(error);
    }
    let deadline_ns = (step.head.wake != i64::MAX).then_some(step.head.wake);
    Ok(match ports.sleep(deadline_ns, signals) {
        // The program waits for the largest representable time.
        WakeReason::Never => ports.sleep(Some(step.head.wake), signals),
        wake => wake,
    })
}
