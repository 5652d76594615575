//! Symmetry reduction of the heap: states that differ only in the numbers of their objects are equivalent, because a
//! program observes the content and sharing of objects but not their numbers. The canonical representative numbers the
//! objects in the order in which a traversal from the instances reaches them (Iosif, "Exploiting Heap Symmetries in
//! Explicit-State Model Checking of Software").

use crate::layout::word;
use crate::state::State;
use crate::step::Machine;
use quaject_esp_ir::ir::{PoolId, Type};

/// The new number of each object, per pool.
struct Numbers {
    pools: Vec<Vec<Option<usize>>>,
    next: Vec<usize>,
    /// The numbered objects of all pools, in order.
    reached: Vec<(PoolId, usize)>,
}

impl Numbers {
    fn reach(&mut self, state: &State, pool: PoolId, reference: u32) {
        if let Some(object) = state.pools.object(pool, reference) {
            self.add(pool, object);
        }
    }

    fn add(&mut self, pool: PoolId, object: usize) {
        let number = &mut self.pools[pool.0 as usize][object];
        if number.is_none() {
            let next = &mut self.next[pool.0 as usize];
            *number = Some(*next);
            *next += 1;
            self.reached.push((pool, object));
        }
    }
}

impl Machine<'_> {
    /// Renumbers the objects of every pool canonically. States between steps that a bijection of the objects of each
    /// pool maps to each other become equal if every allocated object is reachable. The result is always equivalent to
    /// the original state.
    pub fn canonicalize_heap(&self, state: &mut State) {
        if state.pools.pools.iter().all(|pool| pool.counts.len() <= 1) {
            return;
        }
        let numbers = self.numbers(state);
        state.replace_references(self.program(), &self.code, |pools, pool, reference| {
            match pools.object(pool, reference) {
                Some(object) => pools.get(pool).reference(numbers[pool.0 as usize][object]),
                None => reference,
            }
        });
        for (pool, numbers) in state.pools.pools.iter_mut().zip(&numbers) {
            let (counts, memory) = (pool.counts.clone(), pool.memory.clone());
            for (object, number) in numbers.iter().enumerate() {
                let (from, to) = (object * pool.size, number * pool.size);
                pool.counts[*number] = counts[object];
                pool.memory[to..to + pool.size].copy_from_slice(&memory[from..from + pool.size]);
            }
            pool.count_free();
        }
    }

    /// The new numbers: first the reachable objects, then the leaked ones, then the free ones.
    fn numbers(&self, state: &State) -> Vec<Vec<usize>> {
        let (program, layouts) = (self.program(), &self.code.layouts);
        let pools = &state.pools.pools;
        let mut numbers = Numbers {
            pools: pools.iter().map(|pool| vec![None; pool.counts.len()]).collect(),
            next: vec![0; pools.len()],
            reached: Vec::new(),
        };
        for (instance, (process, _)) in state.instances.iter().zip(&self.code.instances) {
            let body = &program.processes[process.0 as usize].body;
            for (register, value) in instance.frame.registers.iter().zip(&body.values) {
                if let Type::Boxed(pool) = program.types.get(value.ty) {
                    numbers.reach(state, *pool, *register as u32);
                }
            }
            let memory = &instance.frame.memory;
            for (slot, (at, _)) in body.slots.iter().zip(&self.code.processes[process.0 as usize].slots) {
                layouts.references(&program.types, slot.ty, memory, *at, &mut |pool, at| {
                    numbers.reach(state, pool, word(memory, at));
                });
            }
        }
        let mut next = 0;
        while let Some((id, object)) = numbers.reached.get(next).copied() {
            next += 1;
            let pool = state.pools.get(id);
            let content = program.types.pool(id).content;
            layouts.references(&program.types, content, &pool.memory, object * pool.size, &mut |pool_inside, at| {
                numbers.reach(state, pool_inside, word(&pool.memory, at));
            });
        }
        for (index, pool) in pools.iter().enumerate() {
            let (taken, free): (Vec<usize>, Vec<usize>) =
                (0..pool.counts.len()).partition(|object| pool.counts[*object] > 0);
            taken.into_iter().chain(free).for_each(|object| numbers.add(PoolId(index as u32), object));
        }
        let assigned = |number: Option<usize>| number.expect("every object has a number by now");
        numbers.pools.into_iter().map(|pool| pool.into_iter().map(assigned).collect()).collect()
    }
}
