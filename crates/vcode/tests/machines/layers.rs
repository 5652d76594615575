//! The layers above the core on every machine: patch points.

use quaject_vcode::patch::Placed;
use quaject_vcode::{Asm, Class, Core, Kind, Machine, Param, Workspace};

use crate::harness::Batch;

/// Functions that are changed after they were finished.
pub fn add_patches<M: Machine>(batch: &mut Batch<'_>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    for (turns, expected) in [(0, 1), (1, 11), (2, 11), (3, 2)] {
        batch.add_built::<M>("a patched jump", expected, |region, write| {
            let mut workspace = Workspace::<M>::new();
            let mut asm =
                Asm::<M>::begin(region, &mut workspace, "%p", &mut [Param::NONE], Kind::Leaf).expect("there is room");
            let value = asm.getreg(Class::Temporary).expect("one is free");
            let (ten, out) = (asm.label(), asm.label());
            asm.setl(value, 1);
            asm.nop();
            let point = asm.patch_point();
            let jump = asm.patch_jump(out);
            asm.addli(value, value, 1);
            asm.j(out);
            asm.bind(ten);
            asm.addli(value, value, 10);
            let back = asm.patch_point();
            asm.bind(out);
            asm.retl(value);
            let (ten, out) = (asm.label_offset(ten).unwrap(), asm.label_offset(out).unwrap());
            let code = asm.end().expect("the function is right");
            // SAFETY: the code is where it was written, and nobody runs it yet.
            unsafe {
                let place = Placed::from_raw(&code, code.entry, write.add(code.offset));
                if turns == 1 {
                    point.send_within::<M>(&place, ten).unwrap();
                    back.send_within::<M>(&place, out).unwrap();
                    back.pass::<M>(&place).unwrap();
                    jump.pass::<M>(&place).unwrap();
                    let far = back.send::<M>(&place, code.entry.wrapping_add(1 << 40));
                    assert!(far.is_err(), "no branch reaches that far");
                    // Ten more, then out.
                    let after = code.entry - code.offset + out;
                    back.send::<M>(&place, after).unwrap();
                    point.pass::<M>(&place).unwrap();
                    jump.send_within::<M>(&place, ten).unwrap();
                    point.send_within::<M>(&place, ten).unwrap();
                    point.pass::<M>(&place).unwrap();
                }
                if turns == 2 {
                    jump.send_within::<M>(&place, ten).unwrap();
                }
                if turns == 3 {
                    jump.pass::<M>(&place).unwrap();
                }
            }
            code
        });
    }
    for value in [0, 1, -1, 0x1234_5678, -0x1234_5679, i64::MAX, i64::MIN, 0x1234_5678_9abc_def0] {
        let value = if M::LONG_BITS == 32 { i64::from(value as i32) } else { value };
        let bits = if M::LONG_BITS == 32 { u64::from(value as u32) } else { value as u64 };
        for initial in [bits, 77] {
            batch.add_built::<M>("a patched constant", value, |region, write| {
                let mut workspace = Workspace::<M>::new();
                let mut asm = Asm::<M>::begin(region, &mut workspace, "%p", &mut [Param::NONE], Kind::Leaf)
                    .expect("there is room");
                let register = asm.getreg(Class::Temporary).expect("one is free");
                asm.nop();
                let constant = asm.patch_constant(register, initial);
                asm.retl(register);
                let code = asm.end().expect("the function is right");
                // SAFETY: the code is where it was written, and nobody runs it yet.
                unsafe {
                    let place = Placed::from_raw(&code, code.entry, write.add(code.offset));
                    constant.set::<M>(&place, bits).expect("every long fits");
                }
                code
            });
        }
    }
}
