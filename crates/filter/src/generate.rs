//! Generates the code of chunks, where the machine and the engine allow it. Knows no filter.

use crate::stage::{Chunk, Stage};
use crate::types::Engine;
use std::sync::atomic::AtomicU64;

#[cfg(target_arch = "x86_64")]
pub(crate) use native::Generator;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) use none::Generator;

#[cfg(target_arch = "x86_64")]
mod native {
    use super::{AtomicU64, Chunk, Engine, Stage};
    use crate::chunk_code::ChunkCode;
    use crate::emit::{self, Position, Room};
    use quaject_vcode::{Error, Features, Memory};
    use std::sync::Arc;

    /// Code memory of a classifier; pages that are never written take no memory.
    const MEMORY: usize = 1 << 28;
    /// The most bytes of code of a chunk.
    const MAX_CHUNK_BYTES: usize = 1 << 19;

    /// The code generator of a classifier.
    pub(crate) struct Generator {
        tools: Option<Tools>,
        generations: u64,
    }

    struct Tools {
        memory: Arc<Memory>,
        buffer: Vec<u8>,
        room: Box<Room>,
        /// Detected once, because detection is slow.
        features: Features,
    }

    // SAFETY: the workspace holds addresses, of itself and of the buffer, that mean something only while a function is
    // written, and that is done by one call.
    unsafe impl Send for Tools {}

    impl std::fmt::Debug for Generator {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("Generator").field("generations", &self.generations).finish_non_exhaustive()
        }
    }

    impl Generator {
        /// Generates nothing if the system refuses code memory or has none.
        pub(crate) fn new(engine: Engine) -> Generator {
            let tools = match engine {
                Engine::Interpreter => None,
                Engine::Code => Memory::new(MEMORY).ok().map(|memory| Tools {
                    memory: Arc::new(memory),
                    buffer: vec![0; MAX_CHUNK_BYTES],
                    room: Box::new(Room::with_room()),
                    features: Features::detect(),
                }),
            };
            Generator { tools, generations: 0 }
        }

        /// A chunk of these stages, with code if code is generated. Returns the chunk without code as an error if its
        /// generation failed.
        pub(crate) fn chunk(
            &mut self,
            stages: Vec<Stage>,
            later: Box<[AtomicU64]>,
            first: bool,
        ) -> Result<Chunk, Chunk> {
            let mut chunk = Chunk { stages, later, after: AtomicU64::new(0), code: None };
            let Some(tools) = &mut self.tools else { return Ok(chunk) };
            self.generations += 1;
            match tools.write(&chunk, if first { Position::First } else { Position::Later }) {
                Ok(code) => {
                    chunk.code = Some(code);
                    Ok(chunk)
                }
                Err(_) => Err(chunk),
            }
        }

        pub(crate) fn generations(&self) -> u64 {
            self.generations
        }
    }

    impl Tools {
        fn write(&mut self, chunk: &Chunk, position: Position) -> Result<ChunkCode, Error> {
            let Tools { memory, buffer, room, features } = self;
            let code = emit::chunk(&chunk.stages, &chunk.later, position, *features, buffer, room)?;
            let one = memory.install(buffer, &code)?;
            let many = match position {
                Position::Later => None,
                Position::First => emit::batch(&chunk.stages, &chunk.later, *features, buffer, room)
                    .and_then(|code| memory.install(buffer, &code))
                    .ok(),
            };
            // SAFETY: `emit` has written functions with these signatures.
            Ok(unsafe { ChunkCode::new(Arc::clone(memory), one, many) })
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod none {
    use super::{AtomicU64, Chunk, Engine, Stage};

    /// Generates nothing.
    #[derive(Debug)]
    pub(crate) struct Generator;

    impl Generator {
        pub(crate) fn new(_: Engine) -> Generator {
            Generator
        }

        pub(crate) fn chunk(&mut self, stages: Vec<Stage>, later: Box<[AtomicU64]>, _: bool) -> Result<Chunk, Chunk> {
            Ok(Chunk { stages, later, after: AtomicU64::new(0), code: None })
        }

        pub(crate) fn generations(&self) -> u64 {
            0
        }
    }
}
