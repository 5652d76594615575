//! Pools of reference-counted objects, and addresses in the memory of a frame or a pool.
//!
//! **Generations.** In manual memory a program may keep a reference to a freed object, and another allocation may take
//! that object. A reference therefore holds the generation of its object, and freeing an object advances its
//! generation, so that every use of a dangling reference is detected. At the end of a step `dangling` makes such
//! references null and resets the generations: states do not differ by how often an object was freed.

use crate::constants::ConstantMemory;
use crate::layout::{Layouts, word};
use quaject_esp_ir::ir::{Fault, MemoryMode, PoolId, Program, TypeTable};

/// The objects of one boxed type.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pool {
    /// Per object; 0 means free.
    pub(crate) counts: Vec<u32>,
    /// Contents one after the other.
    pub(crate) memory: Vec<u8>,
    /// Size of one content.
    pub(crate) size: usize,
    /// The number of free objects.
    pub(crate) free: u32,
    /// The free object with the lowest number; the number of objects if none is free.
    lowest: u32,
    /// In manual memory: the generation of each object, from 1.
    generations: Vec<u32>,
    /// The position of the generation in a reference: the number of bits of an object's number.
    generation_shift: u32,
    /// Whether a generation has advanced since the last step.
    pub(crate) has_dangling: bool,
}

impl Pool {
    fn new(capacity: u32, size: usize, memory: MemoryMode) -> Pool {
        let count = capacity as usize;
        let generations = match memory {
            MemoryMode::Automatic => Vec::new(),
            MemoryMode::Manual => vec![1; count],
        };
        let generation_shift = u32::BITS - capacity.saturating_sub(1).leading_zeros();
        let (counts, memory) = (vec![0; count], vec![0; count * size]);
        Pool { counts, memory, size, free: capacity, lowest: 0, generations, generation_shift, has_dangling: false }
    }

    /// The object of a reference, unless it is null or dangling.
    #[inline]
    fn object(&self, reference: u32) -> Option<usize> {
        let object = (reference & ((1 << self.generation_shift) - 1)) as usize;
        let generation = self.generations.get(object).copied().unwrap_or(1);
        let is_allocated = self.counts.get(object).is_some_and(|count| *count > 0);
        (is_allocated && reference >> self.generation_shift == generation).then_some(object)
    }

    /// The current reference to an object.
    pub(crate) fn reference(&self, object: usize) -> u32 {
        self.generations.get(object).copied().unwrap_or(1) << self.generation_shift | object as u32
    }

    /// The last generation is followed by the first.
    fn advance_generation(&mut self, object: usize) {
        if let Some(generation) = self.generations.get_mut(object) {
            let last = u32::MAX >> self.generation_shift;
            *generation = if *generation == last { 1 } else { *generation + 1 };
            self.has_dangling = true;
        }
    }

    /// A reference with its generation reset; null if it is dangling.
    pub(crate) fn normalized(&self, reference: u32) -> u32 {
        self.object(reference).map_or(0, |object| 1 << self.generation_shift | object as u32)
    }

    /// Resets the generations of all objects. Every reference has been replaced by its `normalized` form.
    pub(crate) fn reset_generations(&mut self) {
        self.generations.fill(1);
        self.has_dangling = false;
    }

    /// Recomputes the free objects from the counts, and resets the generations.
    pub(crate) fn count_free(&mut self) {
        self.reset_generations();
        self.free = self.counts.iter().filter(|count| **count == 0).count() as u32;
        let lowest = self.counts.iter().position(|count| *count == 0);
        self.lowest = lowest.unwrap_or(self.counts.len()) as u32;
    }
}

/// Where a value lies: in the memory of the current frame, in a pool, or in the constants, which are never written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemorySpace {
    Frame,
    Pool(PoolId),
    Constants,
}

/// A resolved place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Address {
    pub(crate) space: MemorySpace,
    pub(crate) at: usize,
}

/// All pools of a program, and its constants.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pools {
    pub(crate) pools: Vec<Pool>,
    constants: ConstantMemory,
}

impl Pools {
    pub(crate) fn new(program: &Program, layouts: &Layouts) -> Pools {
        let types = program.types.pools().iter();
        Pools {
            pools: types.map(|ty| Pool::new(ty.capacity, layouts.size(ty.content), program.memory)).collect(),
            constants: ConstantMemory::new(program, layouts),
        }
    }

    pub(crate) fn get(&self, pool: PoolId) -> &Pool {
        &self.pools[pool.0 as usize]
    }

    /// A reference to a new object with count 1: the free one with the lowest number.
    pub(crate) fn allocate(&mut self, pool: PoolId) -> Result<u32, Fault> {
        let pool = &mut self.pools[pool.0 as usize];
        let object = pool.lowest as usize;
        match pool.counts.get_mut(object) {
            None => Err(Fault::Pool),
            Some(count) => {
                *count = 1;
                pool.free -= 1;
                let rest = &pool.counts[object + 1..];
                let next = object + 1 + rest.iter().position(|count| *count == 0).unwrap_or(rest.len());
                pool.lowest = next as u32;
                Ok(pool.reference(object))
            }
        }
    }

    /// The object of a reference, unless it is null or dangling.
    pub(crate) fn object(&self, pool: PoolId, reference: u32) -> Option<usize> {
        self.get(pool).object(reference)
    }

    pub(crate) fn count(&self, pool: PoolId, reference: u32) -> u32 {
        let pool = self.get(pool);
        pool.object(reference).map_or(0, |object| pool.counts[object])
    }

    /// The offset of an object's content. A null or dangling reference is the fault `memory`.
    pub(crate) fn content(&self, pool: PoolId, reference: u32) -> Result<usize, Fault> {
        let pool = self.get(pool);
        pool.object(reference).map(|object| object * pool.size).ok_or(Fault::Memory)
    }

    pub(crate) fn retain(&mut self, pool: PoolId, reference: u32) -> Result<(), Fault> {
        let pool = &mut self.pools[pool.0 as usize];
        let object = pool.object(reference).ok_or(Fault::Memory)?;
        pool.counts[object] = pool.counts[object].checked_add(1).ok_or(Fault::Memory)?;
        Ok(())
    }

    /// Removes one count; at 0 the object is free and its parts are released in turn.
    pub(crate) fn release(
        &mut self,
        types: &TypeTable,
        layouts: &Layouts,
        pool: PoolId,
        reference: u32,
    ) -> Result<(), Fault> {
        let mut pending = Vec::new();
        let mut next = Some((pool, reference));
        while let Some((id, reference)) = next {
            let pool = &mut self.pools[id.0 as usize];
            let object = pool.object(reference).ok_or(Fault::Memory)?;
            pool.counts[object] -= 1;
            if pool.counts[object] == 0 {
                let at = object * pool.size;
                let content = types.pool(id).content;
                let memory = &pool.memory;
                layouts.references(types, content, memory, at, &mut |pool, at| pending.push((pool, word(memory, at))));
                let size = pool.size;
                pool.memory[at..at + size].fill(0);
                pool.free += 1;
                pool.lowest = pool.lowest.min(object as u32);
                pool.advance_generation(object);
            }
            next = pending.pop();
        }
        Ok(())
    }

    pub(crate) fn memory<'a>(&'a self, space: MemorySpace, frame: &'a [u8]) -> &'a [u8] {
        match space {
            MemorySpace::Frame => frame,
            MemorySpace::Pool(pool) => &self.pools[pool.0 as usize].memory,
            MemorySpace::Constants => self.constants.bytes(),
        }
    }

    pub(crate) fn memory_mut<'a>(&'a mut self, space: MemorySpace, frame: &'a mut [u8]) -> &'a mut [u8] {
        match space {
            MemorySpace::Frame => frame,
            MemorySpace::Pool(pool) => &mut self.pools[pool.0 as usize].memory,
            MemorySpace::Constants => unreachable!("the verifier lets nothing write constants"),
        }
    }

    /// Copies bytes between two addresses; the ranges may overlap.
    pub(crate) fn copy(&mut self, frame: &mut [u8], from: Address, to: Address, length: usize) {
        match (from.space, to.space) {
            (MemorySpace::Constants, MemorySpace::Frame) => {
                frame[to.at..to.at + length].copy_from_slice(&self.constants.bytes()[from.at..from.at + length]);
            }
            (MemorySpace::Constants, MemorySpace::Pool(pool)) => self.pools[pool.0 as usize].memory
                [to.at..to.at + length]
                .copy_from_slice(&self.constants.bytes()[from.at..from.at + length]),
            (_, MemorySpace::Constants) => unreachable!("the verifier lets nothing write constants"),
            (MemorySpace::Frame, MemorySpace::Frame) => frame.copy_within(from.at..from.at + length, to.at),
            (MemorySpace::Frame, MemorySpace::Pool(pool)) => self.pools[pool.0 as usize].memory[to.at..to.at + length]
                .copy_from_slice(&frame[from.at..from.at + length]),
            (MemorySpace::Pool(pool), MemorySpace::Frame) => frame[to.at..to.at + length]
                .copy_from_slice(&self.pools[pool.0 as usize].memory[from.at..from.at + length]),
            (MemorySpace::Pool(a), MemorySpace::Pool(b)) if a == b => {
                self.pools[a.0 as usize].memory.copy_within(from.at..from.at + length, to.at);
            }
            (MemorySpace::Pool(a), MemorySpace::Pool(b)) => {
                let [source, target] = self
                    .pools
                    .get_disjoint_mut([a.0 as usize, b.0 as usize])
                    .expect("two different pools of this program");
                target.memory[to.at..to.at + length].copy_from_slice(&source.memory[from.at..from.at + length]);
            }
        }
    }
}
