//! Patch points in a function that another thread runs all the time.
#![cfg(all(target_arch = "x86_64", target_os = "linux"))]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quaject_vcode::{Asm, Class, Core, Kind, Memory, Native, Param, Workspace};

#[test]
fn jumps_and_constants_change_under_a_running_thread() {
    let memory = Memory::new(4096).expect("the system gives a page");
    let mut workspace = Workspace::<Native>::new();
    let mut buffer = vec![0_u8; 1024];
    let mut asm = Asm::<Native>::begin((&mut buffer[..]).into(), &mut workspace, "", &mut [Param::NONE; 0], Kind::Leaf)
        .expect("there is room");
    let (value, more) = (asm.getreg(Class::Temporary).unwrap(), asm.getreg(Class::Temporary).unwrap());
    let (over, end) = (asm.label(), asm.label());
    let constant = asm.patch_constant(value, 0x1111_1111_1111_1111);
    let point = asm.patch_point();
    asm.setl(more, 1);
    asm.j(end);
    asm.bind(over);
    asm.setl(more, 2);
    asm.bind(end);
    asm.addl(value, value, more);
    asm.retl(value);
    let over = asm.label_offset(over).expect("it is bound");
    let code = asm.end().expect("the function is right");
    let installed = memory.install(&buffer, &code).expect("a page holds it");
    let place = memory.placed(&code, installed.entry).expect("it is in this memory");
    // SAFETY: the code takes nothing and returns a long; the memory outlives the threads.
    let function: extern "C" fn() -> u64 = unsafe { std::mem::transmute(installed.entry) };
    assert_eq!(function(), 0x1111_1111_1111_1112);

    let stop = AtomicBool::new(false);
    let calls = AtomicU64::new(0);
    let allowed = [0x1111_1111_1111_1112, 0x1111_1111_1111_1113, 0xfefe_fefe_fefe_feff, 0xfefe_fefe_fefe_ff00];
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let value = function();
                assert!(allowed.contains(&value), "{value:#x} is neither the old nor the new");
                calls.fetch_add(1, Ordering::Relaxed);
            }
        });
        for turn in 0..200_000_u32 {
            // SAFETY: the function is at `place`, and stays there.
            unsafe {
                match turn % 4 {
                    0 => point.retarget_to_label::<Native>(&place, over),
                    1 => constant.set::<Native>(&place, 0xfefe_fefe_fefe_fefe),
                    2 => point.fall_through::<Native>(&place),
                    _ => constant.set::<Native>(&place, 0x1111_1111_1111_1111),
                }
                .expect("every change is possible");
            }
        }
        while calls.load(Ordering::Relaxed) < 1000 {
            std::thread::yield_now();
        }
        stop.store(true, Ordering::Relaxed);
    });
}
