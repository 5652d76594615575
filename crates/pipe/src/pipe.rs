//! Pipes: composed and installed functions, and the composer that makes them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use quaject_vcode::fork::ForkLock;
use quaject_vcode::{Features, Installed, Memory, Native};

use crate::compose::{self, Composed, MAX_BYTES, Space};
use crate::error::Error;
use crate::frame::Frame;
use crate::plan::Plan;
use crate::policy::{Store, Temperature};
use crate::step::Step;

/// Bytes of code memory of a composer; pages that are not used take nothing.
const MEMORY_BYTES: usize = 64 << 20;

/// The decoder table of this machine, for [`Pipe::explain`].
const TABLE: &quaject_vcode::decode::Table = {
    #[cfg(target_arch = "x86_64")]
    const TABLE: &quaject_vcode::decode::Table = &quaject_vcode::decode::X86_64;
    #[cfg(target_arch = "aarch64")]
    const TABLE: &quaject_vcode::decode::Table = &quaject_vcode::decode::AARCH64;
    #[cfg(target_arch = "riscv64")]
    const TABLE: &quaject_vcode::decode::Table = &quaject_vcode::decode::RISCV64;
    TABLE
};

/// The registers that data pass through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registers {
    /// The widest vectors of the processor.
    Widest,
    /// Integer registers, as on machines without vectors.
    Integer,
}

/// Runs the steps of a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Engine {
    /// Composed code.
    Code,
    /// The reference implementation.
    Reference,
}

/// Composes pipes. One for a whole program is enough; [`Composer::global`] is that one.
///
/// A forked child has a copy of the composer and of all its pipes: it runs those that were composed before, and
/// composes and drops its own, whatever other threads of the parent did at the fork (see [`quaject_vcode::fork`]).
///
/// On systems without code memory, which are those other than Linux, its pipes run by the [reference
/// implementation](mod@crate::reference), with the same results.
#[derive(Debug, Clone)]
pub struct Composer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// None if pipes run by the reference implementation.
    generator: Option<Generator>,
}

#[derive(Debug)]
struct Generator {
    memory: Memory,
    features: Features,
    registers: Registers,
    /// The buffer in which code is written before it is installed.
    buffer: Mutex<Box<[u8]>>,
}

impl Composer {
    /// Composes for the processor at hand.
    ///
    /// # Errors
    /// [`Error::Code`] if the system gives no memory for code.
    pub fn new() -> Result<Composer, Error> {
        Composer::with_features(Features::detect())
    }

    /// Composes for a processor with these features, which the one at hand must have.
    ///
    /// # Errors
    /// Those of [`Composer::new`].
    pub fn with_features(features: Features) -> Result<Composer, Error> {
        Composer::with(features, Registers::Widest)
    }

    pub(crate) fn with(features: Features, registers: Registers) -> Result<Composer, Error> {
        let memory = match Memory::new(MEMORY_BYTES) {
            Ok(memory) => memory,
            Err(quaject_vcode::Error::NoCodeMemory) => return Ok(Composer::reference()),
            Err(error) => return Err(error.into()),
        };
        let buffer = Mutex::new(vec![0; MAX_BYTES].into());
        let generator = Some(Generator { memory, features, registers, buffer });
        Ok(Composer { inner: Arc::new(Inner { generator }) })
    }

    /// A composer whose pipes run by the reference implementation, as on systems without code memory.
    pub(crate) fn reference() -> Composer {
        Composer { inner: Arc::new(Inner { generator: None }) }
    }

    fn engine(&self) -> Engine {
        if self.inner.generator.is_some() { Engine::Code } else { Engine::Reference }
    }

    /// The composer of this program.
    ///
    /// # Errors
    /// Those of [`Composer::new`], the first time.
    pub fn global() -> Result<&'static Composer, Error> {
        static GLOBAL: OnceLock<Result<Composer, Error>> = OnceLock::new();
        let _fork = ForkLock::hold();
        GLOBAL.get_or_init(Composer::new).as_ref().map_err(Clone::clone)
    }

    /// Composes a pipe.
    ///
    /// # Errors
    /// [`Error::TooManySteps`], [`Error::TooManyStreams`], or [`Error::Code`] if there is no room for more code.
    pub fn compose(&self, steps: &[Step]) -> Result<Pipe, Error> {
        let pipe = Pipe {
            plan: Plan::new(steps)?,
            composer: self.clone(),
            functions: [const { OnceLock::new() }; Store::ALL.len()],
        };
        match self.engine() {
            Engine::Code => drop(pipe.composed(Store::Cached)?),
            Engine::Reference => {}
        }
        Ok(pipe)
    }
}

/// The type of a composed function: of frame, source, target, length and remainder. The last argument is used, and the
/// result is defined, as [`InRegister`](crate::plan::InRegister) says.
pub(crate) type Call = unsafe extern "C" fn(*mut Frame, *const u8, *mut u8, usize, u32) -> u64;

/// A composed function and where it is installed.
#[derive(Debug, Clone, Copy)]
struct Function {
    call: Call,
    installed: Installed,
    composed: Composed,
}

/// Steps composed into one function. Any number of threads may run it at once.
///
/// There is one function per store policy, up to three; those for large data are composed at their first use.
#[derive(Debug)]
pub struct Pipe {
    plan: Plan,
    composer: Composer,
    functions: [OnceLock<Function>; Store::ALL.len()],
}

/// The parameters of a run besides the data.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options<'a> {
    /// What the caller knows of the location of the data.
    pub temperature: Temperature,
    /// The store policy, overriding size and temperature. A target that cannot be streamed to is prefetched instead.
    pub store: Option<Store>,
    /// The keys of the steps with a key stream, in order, each at least as long as the data.
    pub streams: &'a [&'a [u8]],
}

impl Pipe {
    /// The steps.
    pub fn steps(&self) -> &[Step] {
        self.plan.steps()
    }

    /// Whether the pipe writes to a target. A pipe that only observes takes an empty target.
    pub fn writes(&self) -> bool {
        self.plan.writes
    }

    /// The number of key streams of a run.
    pub fn streams(&self) -> usize {
        self.plan.streams
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(crate) fn engine(&self) -> Engine {
        self.composer.engine()
    }

    #[inline(always)]
    pub(crate) fn check_target(&self, source: usize, target: usize) -> Result<(), Error> {
        let source = if self.plan.writes { source } else { 0 };
        if source == target { Ok(()) } else { Err(Error::Target { source, target }) }
    }

    #[inline(always)]
    pub(crate) fn check_streams(&self, bytes: usize, streams: &[&[u8]]) -> Result<(), Error> {
        if streams.len() != self.plan.streams {
            return Err(Error::Streams { wanted: self.plan.streams, given: streams.len() });
        }
        match streams.iter().position(|stream| stream.len() < bytes) {
            Some(stream) => Err(Error::StreamLength { stream, length: streams[stream].len(), data: bytes }),
            None => Ok(()),
        }
    }

    /// The machine code for a store policy as text; composed at the first use.
    ///
    /// # Errors
    /// [`Error::Code`] if there is no room for more code, or no code memory on this system.
    pub fn explain(&self, store: Store) -> Result<String, Error> {
        let function = self.composed(store)?;
        let Composed { code, vector_bits, block_bytes } = function.composed;
        let bytes = &self.code_bytes(store)?[..code.instructions];
        let width =
            if vector_bits == 0 { "integer registers".into() } else { format!("vectors of {vector_bits} bits") };
        let steps: Vec<String> = self.steps().iter().map(ToString::to_string).collect();
        let mut text = format!(
            "{}\n{width}, {block_bytes} bytes at a time, {store}; {} bytes of code\n",
            steps.join(" | "),
            code.length
        );
        let mut at = 0;
        while at < bytes.len() {
            let decoded = TABLE.decode(&bytes[at..]);
            let length = decoded.as_ref().map_or(1, |decoded| decoded.length);
            text.push_str(&format!("{at:6x}  {}\n", decoded.map_or("?".into(), |decoded| decoded.to_string())));
            at += length;
        }
        Ok(text)
    }

    /// The machine code for a store policy, constants included.
    pub(crate) fn code_bytes(&self, store: Store) -> Result<&[u8], Error> {
        let Function { installed, composed, .. } = self.composed(store)?;
        // SAFETY: the code is installed as long as the pipe lives, and code memory can be read.
        Ok(unsafe { std::slice::from_raw_parts(installed.entry as *const u8, composed.code.length) })
    }

    /// The bits of the vectors that it uses; 0 if it uses none.
    pub(crate) fn vector_bits(&self, store: Store) -> Result<u32, Error> {
        Ok(self.composed(store)?.composed.vector_bits)
    }

    /// The function for a store policy, if it is composed.
    #[inline(always)]
    pub(crate) fn composed_call(&self, store: Store) -> Option<Call> {
        self.functions[store as usize].get().map(|function| function.call)
    }

    /// The function for a store policy.
    pub(crate) fn call(&self, store: Store) -> Result<Call, Error> {
        Ok(self.composed(store)?.call)
    }

    /// Composes the function at its first use. If several threads do so concurrently, one installs its function and the
    /// others drop theirs.
    fn composed(&self, store: Store) -> Result<&Function, Error> {
        let place = &self.functions[store as usize];
        if let Some(function) = place.get() {
            return Ok(function);
        }
        let generator = self.composer.inner.generator.as_ref().ok_or(quaject_vcode::Error::NoCodeMemory)?;
        // A forked child finds the buffer and this cell free.
        let _fork = ForkLock::hold();
        let own = generator.compose(&self.plan, store)?;
        let kept = place.get_or_init(|| own);
        if kept.installed != own.installed {
            generator.memory.free(own.installed.entry, own.installed.length);
        }
        Ok(kept)
    }
}

impl Generator {
    fn compose(&self, plan: &Plan, store: Store) -> Result<Function, Error> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut space = Space::<Native>::with_room();
        let region = (&mut buffer[..]).into();
        let composed = match self.registers {
            Registers::Widest => compose::compose_native(region, &mut space, plan, self.features, store)?,
            Registers::Integer => compose::compose_integer(region, &mut space, plan, self.features)?,
        };
        let installed = self.memory.install(&buffer, &composed.code)?;
        // SAFETY: the code is a function that takes three pointers, a number of bytes and perhaps a remainder; another
        // argument in a register is not looked at, and whatever the register for results holds after it is a number.
        let call = unsafe { std::mem::transmute::<usize, Call>(installed.entry) };
        Ok(Function { call, installed, composed })
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let Some(generator) = &self.composer.inner.generator else { return };
        for function in self.functions.iter().filter_map(OnceLock::get) {
            generator.memory.free(function.installed.entry, function.installed.length);
        }
    }
}
