// Stacks on AArch64, AAPCS64: call on a task's stack, switch, jump. Uses one word of a task, `parent_sp` at 0. A
// context is the stack pointer of a saved frame:
//
//     sp -> [ x29 x30 ][ x19 x20 ] ... [ x27 x28 ][ d8 d9 ] ... [ d14 d15 ]      176 bytes with padding
//
// While a child runs that has not waited, its parent's context is the record, and on top of the child's stack is a
// frame record that leads an unwinder across:
//
//     child's stack:  [ struct qj_ac_task ] <- task; parent_sp = parent's frame
//                     [ x29 of the parent's frame, return address of qj_ac__call ] <- x29 of the child's caller
//
// When the child waits for the first time both words of it become null, where frame-pointer walks and unwinders end.
        .arch armv8-a
        .text

        .macro save
        stp     x29, x30, [sp, #-176]!
        mov     x29, sp
        stp     x19, x20, [sp, #16]
        stp     x21, x22, [sp, #32]
        stp     x23, x24, [sp, #48]
        stp     x25, x26, [sp, #64]
        stp     x27, x28, [sp, #80]
        stp     d8, d9, [sp, #96]
        stp     d10, d11, [sp, #112]
        stp     d12, d13, [sp, #128]
        stp     d14, d15, [sp, #144]
        .endm

        .macro restore
        ldp     x19, x20, [sp, #16]
        ldp     x21, x22, [sp, #32]
        ldp     x23, x24, [sp, #48]
        ldp     x25, x26, [sp, #64]
        ldp     x27, x28, [sp, #80]
        ldp     d8, d9, [sp, #96]
        ldp     d10, d11, [sp, #112]
        ldp     d12, d13, [sp, #128]
        ldp     d14, d15, [sp, #144]
        ldp     x29, x30, [sp], #176
        .endm

        .p2align 4
        .globl  qj_ac__call
        .hidden qj_ac__call
        .type   qj_ac__call, %function
qj_ac__call:                            // x0 = task, x1 = function, x2 = argument
        .cfi_startproc
        hint    #34
        save
        mov     x9, sp
        str     x9, [x0]
        stp     x29, x30, [x0, #-16]
        sub     x29, x0, #16
        mov     sp, x29
        // CFA = [x29 + 16] + 176: the record is the first word of the task, above the frame record.
        .cfi_escape 0x0f, 6, 0x8d, 16, 0x06, 0x23, 0xb0, 0x01
        // x30 = [x29 + 8]; null once the parent has resumed, which ends an unwinding.
        .cfi_escape 0x10, 30, 2, 0x8d, 8
        .cfi_offset 29, -176
        .cfi_offset 19, -160
        .cfi_offset 20, -152
        .cfi_offset 21, -144
        .cfi_offset 22, -136
        .cfi_offset 23, -128
        .cfi_offset 24, -120
        .cfi_offset 25, -112
        .cfi_offset 26, -104
        .cfi_offset 27, -96
        .cfi_offset 28, -88
        .cfi_offset 72, -80
        .cfi_offset 73, -72
        .cfi_offset 74, -64
        .cfi_offset 75, -56
        .cfi_offset 76, -48
        .cfi_offset 77, -40
        .cfi_offset 78, -32
        .cfi_offset 79, -24
        mov     x0, x2
        blr     x1
        add     x0, sp, #16             // the task
        ldr     x9, [x0]
        cbz     x9, 1f
        mov     sp, x9
        ldp     x29, x30, [sp], #176    // the child kept the others
        ret
1:      bl      qj_ac__task_end
        mov     sp, x0
        b       qj_ac__resume
        .cfi_endproc
        .size   qj_ac__call, . - qj_ac__call

        .p2align 4
        .globl  qj_ac__resume
        .hidden qj_ac__resume
        .type   qj_ac__resume, %function
qj_ac__resume:
        hint    #34
        restore
        mov     x0, #0
        ret
        .size   qj_ac__resume, . - qj_ac__resume

        .p2align 4
        .globl  qj_ac__switch
        .hidden qj_ac__switch
        .type   qj_ac__switch, %function
qj_ac__switch:                          // x0 = where to save, x1 = context
        hint    #34
        save
        mov     x9, sp
        str     x9, [x0]
        mov     sp, x1
        b       qj_ac__resume
        .size   qj_ac__switch, . - qj_ac__switch

        .p2align 4
        .globl  qj_ac__switch_first
        .hidden qj_ac__switch_first
        .type   qj_ac__switch_first, %function
qj_ac__switch_first:                    // x0 = task, x1 = context, x2 = where to save
        hint    #34
        stp     xzr, xzr, [x0, #-16]
        save
        mov     x9, sp
        str     x9, [x2]
        mov     sp, x1
        b       qj_ac__resume
        .size   qj_ac__switch_first, . - qj_ac__switch_first

// Here the record of a parent is a context as it is.
        .p2align 4
        .globl  qj_ac__detach_context
        .hidden qj_ac__detach_context
        .type   qj_ac__detach_context, %function
qj_ac__detach_context:
        hint    #34
        ret
        .size   qj_ac__detach_context, . - qj_ac__detach_context

        .globl  qj_ac__set_task_base
        .hidden qj_ac__set_task_base
        .type   qj_ac__set_task_base, %function
qj_ac__set_task_base:                        // x0 = task
        hint    #34
        stp     xzr, xzr, [x0, #-16]
        ret
        .size   qj_ac__set_task_base, . - qj_ac__set_task_base

        .globl  qj_ac__jump
        .hidden qj_ac__jump
        .type   qj_ac__jump, %function
qj_ac__jump:                            // x0 = context
        hint    #34
        mov     sp, x0
        b       qj_ac__resume
        .size   qj_ac__jump, . - qj_ac__jump

// The frame of a function that starts a task with a body (quaject/thc.h, gcc), taken over to the task's stack: each of
// the two frames sees this function return once, 0 in the old one and 1 in the copy.
        .p2align 4
        .globl  qj_ac__fork_frame
        .hidden qj_ac__fork_frame
        .type   qj_ac__fork_frame, %function
qj_ac__fork_frame:                      // x0 = task, x1 = end of the caller's frame (its CFA)
        hint    #34
        mov     x11, sp                 // lowest byte of the caller's frame
        save
        mov     x9, sp
        str     x9, [x0]
        sub     x12, x1, x11            // bytes
        stp     xzr, xzr, [x0, #-16]    // an unwinder stops here
        sub     x13, x0, #16            // end of the copy
        sub     x14, x13, x12           // the copy
        sub     x15, x14, x11           // distance
        ldr     x29, [sp]               // the caller's frame pointer moves with its frame
        cmp     x29, x11
        b.lo    1f
        cmp     x29, x1
        b.hs    1f
        add     x29, x29, x15
1:      mov     sp, x14
        mov     x16, x14
2:      cmp     x16, x13
        b.hs    4f
        ldr     x17, [x11], #8
        str     x17, [x16], #8
        b       2b
4:      mov     x0, #1
        ret
        .size   qj_ac__fork_frame, . - qj_ac__fork_frame

// A call that starts a task, made by the compiler with the type of the task's function: all argument registers and
// STACK_WORDS words of stack arguments are carried to the task's stack, where the function is called with them.
//
//   struct saved_call, at sp + 16:  [ function ][ stack arguments ][ x0 .. x7 ][ q0 .. q7 ]
        .set    STACK_WORDS, 12
        .p2align 4
        .globl  qj_ac__call_converted
        .type   qj_ac__call_converted, %function
qj_ac__call_converted:
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-224]!
        .cfi_def_cfa_offset 224
        .cfi_offset 29, -224
        .cfi_offset 30, -216
        mov     x29, sp
        add     x9, sp, #224
        str     x9, [sp, #24]
        stp     x0, x1, [sp, #32]
        stp     x2, x3, [sp, #48]
        stp     x4, x5, [sp, #64]
        stp     x6, x7, [sp, #80]
        stp     q0, q1, [sp, #96]
        stp     q2, q3, [sp, #128]
        stp     q4, q5, [sp, #160]
        stp     q6, q7, [sp, #192]
        add     x0, sp, #16
        bl      qj_ac__start_saved
        ldp     x29, x30, [sp], #224
        .cfi_def_cfa_offset 0
        .cfi_restore 29
        .cfi_restore 30
        ret
        .cfi_endproc
        .size   qj_ac__call_converted, . - qj_ac__call_converted

        .p2align 4
        .globl  qj_ac__call_saved
        .hidden qj_ac__call_saved
        .type   qj_ac__call_saved, %function
qj_ac__call_saved:                      // x0 = struct saved_call; on the task's stack
        .cfi_startproc
        hint    #34
        stp     x29, x30, [sp, #-16]!
        .cfi_def_cfa_offset 16
        .cfi_offset 29, -16
        .cfi_offset 30, -8
        mov     x29, sp
        .cfi_def_cfa_register 29
        sub     sp, sp, #(8 * STACK_WORDS)
        mov     x9, x0
        ldr     x10, [x9, #8]
        .set    at, 0
        .rept   STACK_WORDS / 2
        ldp     x11, x12, [x10, #at]
        stp     x11, x12, [sp, #at]
        .set    at, at + 16
        .endr
        ldp     x0, x1, [x9, #16]
        ldp     x2, x3, [x9, #32]
        ldp     x4, x5, [x9, #48]
        ldp     x6, x7, [x9, #64]
        ldp     q0, q1, [x9, #80]
        ldp     q2, q3, [x9, #112]
        ldp     q4, q5, [x9, #144]
        ldp     q6, q7, [x9, #176]
        ldr     x9, [x9]
        blr     x9
        mov     sp, x29
        ldp     x29, x30, [sp], #16
        .cfi_def_cfa 31, 0
        .cfi_restore 29
        .cfi_restore 30
        ret
        .cfi_endproc
        .size   qj_ac__call_saved, . - qj_ac__call_saved

        .section .note.GNU-stack, "", %progbits
