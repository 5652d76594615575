//! Dangling references of manual memory: at the end of a step, references to freed objects become null and the
//! generations of all objects are reset. States then do not differ by how often an object was freed.

use crate::code::Code;
use crate::layout::{set_word, word};
use crate::pools::Pools;
use crate::state::State;
use crate::step::StepContext;
use quaject_esp_ir::ir::{PoolId, Program, Type};

impl StepContext<'_> {
    /// Makes the references null whose objects the step has freed.
    pub(crate) fn clear_dangling(&mut self) {
        if !self.state.pools.pools.iter().any(|pool| pool.has_dangling) {
            return;
        }
        self.state.replace_references(self.program, self.code, |pools, pool, reference| {
            pools.get(pool).normalized(reference)
        });
        self.state.pools.pools.iter_mut().for_each(crate::pools::Pool::reset_generations);
    }
}

impl State {
    /// Replaces every reference in registers, slots and objects by what `becomes` returns for its pool and value.
    pub(crate) fn replace_references(
        &mut self,
        program: &Program,
        code: &Code,
        becomes: impl Fn(&Pools, PoolId, u32) -> u32,
    ) {
        let (types, layouts) = (&program.types, &code.layouts);
        for (instance, (process, _)) in self.instances.iter_mut().zip(&code.instances) {
            let body = &program.processes[process.0 as usize].body;
            for (register, value) in instance.frame.registers.iter_mut().zip(&body.values) {
                if let Type::Boxed(pool) = types.get(value.ty) {
                    *register = i64::from(becomes(&self.pools, *pool, *register as u32));
                }
            }
            let slots = &code.processes[process.0 as usize].slots;
            for (slot, (at, _)) in body.slots.iter().zip(slots) {
                let mut references = Vec::new();
                layouts.references(types, slot.ty, &instance.frame.memory, *at, &mut |pool, at| {
                    references.push((pool, at));
                });
                for (pool, at) in references {
                    let reference = becomes(&self.pools, pool, word(&instance.frame.memory, at));
                    set_word(&mut instance.frame.memory, at, reference);
                }
            }
        }
        for (index, ty) in types.pools().iter().enumerate() {
            let mut references = Vec::new();
            let pool = &self.pools.pools[index];
            for object in 0..pool.counts.len() {
                layouts.references(types, ty.content, &pool.memory, object * pool.size, &mut |pool, at| {
                    references.push((pool, at));
                });
            }
            for (pool, at) in references {
                let reference = becomes(&self.pools, pool, word(&self.pools.pools[index].memory, at));
                set_word(&mut self.pools.pools[index].memory, at, reference);
            }
        }
    }
}
