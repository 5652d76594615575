// Stacks on RISC-V, 64 bits, hard floating point: call on a task's stack, switch, jump. Uses one word of a task,
// `parent_sp` at 0. A context is the stack pointer of a saved frame:
//
//     sp -> [ ra s0 s1 .. s11 ][ fs0 .. fs11 ][ padding ]      208 bytes
//
// While a child runs that has not waited, its parent's context is the record, and on top of the child's stack lie the
// parent's frame pointer and return address, which lead an unwinder across; both become null with the first wait.
        .text

        .macro save
        addi    sp, sp, -208
        sd      ra, 0(sp)
        sd      s0, 8(sp)
        sd      s1, 16(sp)
        sd      s2, 24(sp)
        sd      s3, 32(sp)
        sd      s4, 40(sp)
        sd      s5, 48(sp)
        sd      s6, 56(sp)
        sd      s7, 64(sp)
        sd      s8, 72(sp)
        sd      s9, 80(sp)
        sd      s10, 88(sp)
        sd      s11, 96(sp)
#ifdef __riscv_float_abi_double
        fsd     fs0, 104(sp)
        fsd     fs1, 112(sp)
        fsd     fs2, 120(sp)
        fsd     fs3, 128(sp)
        fsd     fs4, 136(sp)
        fsd     fs5, 144(sp)
        fsd     fs6, 152(sp)
        fsd     fs7, 160(sp)
        fsd     fs8, 168(sp)
        fsd     fs9, 176(sp)
        fsd     fs10, 184(sp)
        fsd     fs11, 192(sp)
#endif
        .endm

        .macro restore
        ld      ra, 0(sp)
        ld      s0, 8(sp)
        ld      s1, 16(sp)
        ld      s2, 24(sp)
        ld      s3, 32(sp)
        ld      s4, 40(sp)
        ld      s5, 48(sp)
        ld      s6, 56(sp)
        ld      s7, 64(sp)
        ld      s8, 72(sp)
        ld      s9, 80(sp)
        ld      s10, 88(sp)
        ld      s11, 96(sp)
#ifdef __riscv_float_abi_double
        fld     fs0, 104(sp)
        fld     fs1, 112(sp)
        fld     fs2, 120(sp)
        fld     fs3, 128(sp)
        fld     fs4, 136(sp)
        fld     fs5, 144(sp)
        fld     fs6, 152(sp)
        fld     fs7, 160(sp)
        fld     fs8, 168(sp)
        fld     fs9, 176(sp)
        fld     fs10, 184(sp)
        fld     fs11, 192(sp)
#endif
        addi    sp, sp, 208
        .endm

        .p2align 2
        .globl  qj_ac__call
        .hidden qj_ac__call
        .type   qj_ac__call, @function
qj_ac__call:                            // a0 = task, a1 = function, a2 = argument
        .cfi_startproc
        save
        sd      sp, 0(a0)
        sd      s0, -16(a0)
        sd      ra, -8(a0)
        mv      s0, a0                  // frame pointer: the task itself
        addi    sp, a0, -16
        // CFA = [s0] + 208: the record. s0 is x8, ra is x1 and lies at s0 - 8.
        .cfi_escape 0x0f, 6, 0x78, 0, 0x06, 0x23, 0xd0, 0x01
        .cfi_escape 0x10, 1, 2, 0x78, 0x78
        .cfi_offset s1, -192
        .cfi_offset s2, -184
        .cfi_offset s3, -176
        .cfi_offset s4, -168
        .cfi_offset s5, -160
        .cfi_offset s6, -152
        .cfi_offset s7, -144
        .cfi_offset s8, -136
        .cfi_offset s9, -128
        .cfi_offset s10, -120
        .cfi_offset s11, -112
        .cfi_offset s0, -200
        mv      a0, a2
        jalr    a1
        addi    a0, sp, 16              // the task
        ld      t0, 0(a0)
        beqz    t0, 1f
        mv      sp, t0
        ld      ra, 0(sp)
        ld      s0, 8(sp)
        addi    sp, sp, 208             // the child kept the others
        ret
1:      call    qj_ac__task_end
        mv      sp, a0
        tail    qj_ac__resume
        .cfi_endproc
        .size   qj_ac__call, . - qj_ac__call

        .p2align 2
        .globl  qj_ac__resume
        .hidden qj_ac__resume
        .type   qj_ac__resume, @function
qj_ac__resume:
        restore
        li      a0, 0
        ret
        .size   qj_ac__resume, . - qj_ac__resume

        .p2align 2
        .globl  qj_ac__switch
        .hidden qj_ac__switch
        .type   qj_ac__switch, @function
qj_ac__switch:                          // a0 = where to save, a1 = context
        save
        sd      sp, 0(a0)
        mv      sp, a1
        tail    qj_ac__resume
        .size   qj_ac__switch, . - qj_ac__switch

        .p2align 2
        .globl  qj_ac__switch_first
        .hidden qj_ac__switch_first
        .type   qj_ac__switch_first, @function
qj_ac__switch_first:                    // a0 = task, a1 = context, a2 = where to save
        sd      zero, -8(a0)
        sd      zero, -16(a0)
        save
        sd      sp, (a2)
        mv      sp, a1
        tail    qj_ac__resume
        .size   qj_ac__switch_first, . - qj_ac__switch_first

// Here the record of a parent is a context as it is.
        .p2align 2
        .globl  qj_ac__detach_context
        .hidden qj_ac__detach_context
        .type   qj_ac__detach_context, @function
qj_ac__detach_context:
        ret
        .size   qj_ac__detach_context, . - qj_ac__detach_context

        .p2align 2
        .globl  qj_ac__set_task_base
        .hidden qj_ac__set_task_base
        .type   qj_ac__set_task_base, @function
qj_ac__set_task_base:                        // a0 = task
        sd      zero, -8(a0)
        sd      zero, -16(a0)
        ret
        .size   qj_ac__set_task_base, . - qj_ac__set_task_base

        .p2align 2
        .globl  qj_ac__jump
        .hidden qj_ac__jump
        .type   qj_ac__jump, @function
qj_ac__jump:                            // a0 = context
        mv      sp, a0
        tail    qj_ac__resume
        .size   qj_ac__jump, . - qj_ac__jump

// The frame of a function that starts a task with a body (quaject/thc.h, gcc), taken over to the task's stack: each of
// the two frames sees this function return once, 0 in the old one and 1 in the copy.
        .p2align 2
        .globl  qj_ac__fork_frame
        .hidden qj_ac__fork_frame
        .type   qj_ac__fork_frame, @function
qj_ac__fork_frame:                      // a0 = task, a1 = end of the caller's frame (its CFA)
        mv      t1, sp                  // lowest byte of the caller's frame
        save
        sd      sp, 0(a0)
        sd      zero, -8(a0)            // an unwinder stops here
        sd      zero, -16(a0)
        sub     t2, a1, t1              // bytes
        addi    t3, a0, -16             // end of the copy
        sub     t4, t3, t2              // the copy
        bltu    s0, t1, 1f
        bltu    a1, s0, 1f              // the frame pointer is the CFA itself here
        sub     t5, t4, t1
        add     s0, s0, t5              // it moves with the frame
1:      mv      sp, t4
2:      bgeu    t4, t3, 4f
        ld      t5, 0(t1)
        sd      t5, 0(t4)
        addi    t1, t1, 8
        addi    t4, t4, 8
        j       2b
4:      li      a0, 1
        ret
        .size   qj_ac__fork_frame, . - qj_ac__fork_frame

// A call that starts a task, made by the compiler with the type of the task's function: all argument registers and
// STACK_WORDS words of stack arguments are carried to the task's stack, where the function is called with them.
//
//   struct saved_call, at sp:  [ function ][ stack arguments ][ a0 .. a7 ][ fa0 .. fa7 ]
        .set    STACK_WORDS, 12
        .p2align 2
        .globl  qj_ac__call_converted
        .type   qj_ac__call_converted, @function
qj_ac__call_converted:
        .cfi_startproc
        addi    sp, sp, -160
        .cfi_def_cfa_offset 160
        sd      ra, 152(sp)
        .cfi_offset ra, -8
        addi    t0, sp, 160
        sd      t0, 8(sp)
        sd      a0, 16(sp)
        sd      a1, 24(sp)
        sd      a2, 32(sp)
        sd      a3, 40(sp)
        sd      a4, 48(sp)
        sd      a5, 56(sp)
        sd      a6, 64(sp)
        sd      a7, 72(sp)
#ifdef __riscv_float_abi_double
        fsd     fa0, 80(sp)
        fsd     fa1, 88(sp)
        fsd     fa2, 96(sp)
        fsd     fa3, 104(sp)
        fsd     fa4, 112(sp)
        fsd     fa5, 120(sp)
        fsd     fa6, 128(sp)
        fsd     fa7, 136(sp)
#endif
        mv      a0, sp
        call    qj_ac__start_saved
        ld      ra, 152(sp)
        .cfi_restore ra
        addi    sp, sp, 160
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   qj_ac__call_converted, . - qj_ac__call_converted

        .p2align 2
        .globl  qj_ac__call_saved
        .hidden qj_ac__call_saved
        .type   qj_ac__call_saved, @function
qj_ac__call_saved:                      // a0 = struct saved_call; on the task's stack
        .cfi_startproc
        addi    sp, sp, -(8 * STACK_WORDS + 16)
        .cfi_def_cfa_offset 8 * STACK_WORDS + 16
        sd      ra, 8 * STACK_WORDS + 8(sp)
        .cfi_offset ra, -8
        mv      t0, a0
        ld      t1, 8(t0)
        .set    at, 0
        .rept   STACK_WORDS
        ld      t2, at(t1)
        sd      t2, at(sp)
        .set    at, at + 8
        .endr
        ld      a0, 16(t0)
        ld      a1, 24(t0)
        ld      a2, 32(t0)
        ld      a3, 40(t0)
        ld      a4, 48(t0)
        ld      a5, 56(t0)
        ld      a6, 64(t0)
        ld      a7, 72(t0)
#ifdef __riscv_float_abi_double
        fld     fa0, 80(t0)
        fld     fa1, 88(t0)
        fld     fa2, 96(t0)
        fld     fa3, 104(t0)
        fld     fa4, 112(t0)
        fld     fa5, 120(t0)
        fld     fa6, 128(t0)
        fld     fa7, 136(t0)
#endif
        ld      t1, 0(t0)
        jalr    t1
        ld      ra, 8 * STACK_WORDS + 8(sp)
        .cfi_restore ra
        addi    sp, sp, 8 * STACK_WORDS + 16
        .cfi_def_cfa_offset 0
        ret
        .cfi_endproc
        .size   qj_ac__call_saved, . - qj_ac__call_saved

        .section .note.GNU-stack, "", @progbits
