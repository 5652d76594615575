//! References to objects that are gone are forgotten when a step is over: from then on they lead to nothing, whoever
//! takes the object next, and all objects are young again. Only manual memory leaves such references.

use crate::ir::Type;
use crate::step::Scene;
use crate::store::{set_word, word};

impl Scene<'_> {
    /// Forgets the references that the step has left without an object.
    pub(crate) fn retire(&mut self) {
        if !self.state.pools.pools.iter().any(|pool| pool.aged) {
            return;
        }
        let (types, layouts) = (&self.program.types, &self.code.layouts);
        for (instance, (process, _)) in self.state.instances.iter_mut().zip(&self.code.instances) {
            let body = &self.program.processes[process.0 as usize].body;
            for (register, value) in instance.frame.registers.iter_mut().zip(&body.values) {
                if let Type::Boxed(pool) = types.get(value.ty) {
                    *register = i64::from(self.state.pools.get(*pool).rejuvenated(*register as u32));
                }
            }
            let slots = &self.code.processes[process.0 as usize].slots;
            for (slot, (at, _)) in body.slots.iter().zip(slots) {
                let mut references = Vec::new();
                layouts.references(types, slot.ty, &instance.frame.memory, *at, &mut |pool, at| {
                    references.push((pool, at));
                });
                for (pool, at) in references {
                    let reference = self.state.pools.get(pool).rejuvenated(word(&instance.frame.memory, at));
                    set_word(&mut instance.frame.memory, at, reference);
                }
            }
        }
        for (index, ty) in types.pools().iter().enumerate() {
            let mut references = Vec::new();
            let pool = &self.state.pools.pools[index];
            for object in 0..pool.counts.len() {
                layouts.references(types, ty.content, &pool.memory, object * pool.size, &mut |pool, at| {
                    references.push((pool, at));
                });
            }
            for (pool, at) in references {
                let reference = word(&self.state.pools.pools[index].memory, at);
                let reference = self.state.pools.get(pool).rejuvenated(reference);
                set_word(&mut self.state.pools.pools[index].memory, at, reference);
            }
        }
        self.state.pools.pools.iter_mut().for_each(crate::store::Pool::rejuvenate);
    }
}
