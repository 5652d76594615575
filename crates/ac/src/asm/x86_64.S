// Stacks on x86-64, System V: call on a task's stack, switch, jump. Uses one word of a task, `parent_sp` at 0. The
// picture of a context is in include/quaject/ac/switch.h.
//
//   qj_ac__call, while the child runs and has not waited:
//
//     parent's stack                        child's stack
//       [ return address      ]               [ struct qj_ac_task      ] <- task; parent_sp -+
//       [ rbp                 ] <- rbp        [ address of .Lreturned  ]                     |
//       [ rbx r12 r13 r14 r15 ]               [ frames of the function ] <- rsp              |
//       [ qj_ac__resume       ] <------------------------------------------------------------+
//
// A child that returns reaches .Lreturned with rsp = task and, by the calling convention, every saved register
// unchanged: no test, no restore. When it waits for the first time, the word below the task changes to
// qj_ac__task_ended, which ends an unwinding, because the frames of the parent have then moved on.
//
// qj_ac__resume_parent resumes from the record. qj_ac__call_inline of include/quaject/ac/switch.h leaves one that needs
// only two registers.
        .text

        .p2align 5
        .globl  qj_ac__call
        .hidden qj_ac__call
        .type   qj_ac__call, @function
qj_ac__call:                            // rdi = task, rsi = function, rdx = argument
        .cfi_startproc
        endbr64
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        // In the red zone: nothing runs on this stack before the record is taken.
        lea     qj_ac__resume(%rip), %rax
        mov     %rbx, -8(%rbp)
        .cfi_offset %rbx, -24
        mov     %r12, -16(%rbp)
        .cfi_offset %r12, -32
        mov     %r13, -24(%rbp)
        .cfi_offset %r13, -40
        mov     %r14, -32(%rbp)
        .cfi_offset %r14, -48
        mov     %r15, -40(%rbp)
        .cfi_offset %r15, -56
        mov     %rax, -48(%rbp)
        lea     -48(%rbp), %rcx
        mov     %rcx, (%rdi)
        mov     %rdi, %rsp
        mov     %rdx, %rdi
        call    *%rsi
.Lreturned:
        mov     %rsp, %rax
        mov     %rbp, %rsp
        pop     %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   qj_ac__call, . - qj_ac__call

// Resumes contexts that a function saved. Ends in a jump: see switch.h.
        .p2align 5
        .globl  qj_ac__resume
        .hidden qj_ac__resume
        .type   qj_ac__resume, @function
qj_ac__resume:
        .cfi_startproc
        .cfi_def_cfa %rsp, 64
        .cfi_offset %rbp, -16
        .cfi_offset %rbx, -24
        .cfi_offset %r12, -32
        .cfi_offset %r13, -40
        .cfi_offset %r14, -48
        .cfi_offset %r15, -56
        endbr64
        lea     8(%rsp), %rsp           // this very address
        pop     %r15
        pop     %r14
        pop     %r13
        pop     %r12
        pop     %rbx
        pop     %rbp
        xor     %eax, %eax
        pop     %rcx
        jmp     *%rcx
        .cfi_endproc
        .size   qj_ac__resume, . - qj_ac__resume

        .p2align 5
        .globl  qj_ac__switch
        .hidden qj_ac__switch
        .type   qj_ac__switch, @function
qj_ac__switch:                          // rdi = where to save, rsi = context, rdx = the task that runs there
        endbr64
        push    %rbp
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        lea     qj_ac__resume(%rip), %rax
        push    %rax
        mov     %rsp, (%rdi)
        mov     %rsi, %rsp
        jmp     *(%rsi)
        .size   qj_ac__switch, . - qj_ac__switch

// Makes a record a context that any switch can resume, with a word below it.
        .p2align 4
        .globl  qj_ac__detach_context
        .hidden qj_ac__detach_context
        .type   qj_ac__detach_context, @function
qj_ac__detach_context:                             // rdi = record
        endbr64
        lea     qj_ac__detached_context(%rip), %rcx
        lea     -8(%rdi), %rax
        mov     %rcx, (%rax)
        ret
        .size   qj_ac__detach_context, . - qj_ac__detach_context

// Resumes a parent: rsp = its record. The two registers are those that qj_ac__call_inline saves.
        .p2align 4
        .globl  qj_ac__resume_parent
        .hidden qj_ac__resume_parent
        .type   qj_ac__resume_parent, @function
qj_ac__detached_context:
        endbr64
        lea     8(%rsp), %rsp           // this very address
qj_ac__resume_parent:
        mov     8(%rsp), %rbp
        mov     16(%rsp), %rbx
        xor     %eax, %eax
        jmp     *(%rsp)
        .size   qj_ac__resume_parent, . - qj_ac__resume_parent

// A task's first wait. Two more words are on the context: the address of qj_ac__task_base, and one that keeps the stack
// aligned.
        .p2align 5
        .globl  qj_ac__switch_first
        .hidden qj_ac__switch_first
        .type   qj_ac__switch_first, @function
qj_ac__switch_first:                    // rdi = task, rsi = record, rdx = where to save
        endbr64
        push    %rbp
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        lea     qj_ac__resume(%rip), %rax
        push    %rax
        sub     $8, %rsp
        lea     qj_ac__task_ended(%rip), %rax
        mov     %rax, -8(%rdi)
        lea     qj_ac__task_base(%rip), %rax
        push    %rax
        mov     %rsp, (%rdx)
        mov     %rsi, %rsp
        jmp     qj_ac__resume_parent
        .size   qj_ac__switch_first, . - qj_ac__switch_first

// The first resumption. The call writes the address of qj_ac__task_ended below the task, where it is already; its
// purpose is the processor's return stack, which then predicts the return of the task's function.
        .p2align 5
        .globl  qj_ac__task_base
        .hidden qj_ac__task_base
        .globl  qj_ac__task_ended
        .hidden qj_ac__task_ended
        .type   qj_ac__task_base, @function
qj_ac__task_base:                            // rdx = task
        .cfi_startproc
        .cfi_def_cfa %rsp, 0
        .cfi_undefined %rip
        endbr64
        lea     16(%rsp), %rcx          // the context proper, above this very address
        mov     %rdx, %rsp
        call    1f
qj_ac__task_ended:
        mov     %rsp, %rdi
        call    qj_ac__task_end
        mov     %rax, %rsp
        jmp     *(%rax)
1:
        mov     %rcx, %rsp
        jmp     *(%rcx)
        .cfi_endproc
        .size   qj_ac__task_base, . - qj_ac__task_base

        .globl  qj_ac__set_task_base
        .hidden qj_ac__set_task_base
        .type   qj_ac__set_task_base, @function
qj_ac__set_task_base:                        // rdi = task
        endbr64
        lea     qj_ac__task_ended(%rip), %rax
        mov     %rax, -8(%rdi)
        ret
        .size   qj_ac__set_task_base, . - qj_ac__set_task_base

        .globl  qj_ac__jump
        .hidden qj_ac__jump
        .type   qj_ac__jump, @function
qj_ac__jump:                            // rdi = context, rsi = the task that runs there
        endbr64
        mov     %rsi, %rdx
        mov     %rdi, %rsp
        jmp     *(%rdi)
        .size   qj_ac__jump, . - qj_ac__jump

// Where functions marked QJ_AC__RETURNS_BY_JUMP go to return. The name is the compiler's; a program may have its own.
        .p2align 4
        .weak   __x86_return_thunk
        .hidden __x86_return_thunk
        .type   __x86_return_thunk, @function
__x86_return_thunk:
        pop     %rcx
        notrack jmp *%rcx
        .size   __x86_return_thunk, . - __x86_return_thunk

// The frame of a function that starts a task with a body (quaject/thc.h, gcc), taken over to the task's stack: each of
// the two frames sees this function return once, 0 in the old one and 1 in the copy.
        .p2align 5
        .globl  qj_ac__fork_frame
        .hidden qj_ac__fork_frame
        .type   qj_ac__fork_frame, @function
qj_ac__fork_frame:                      // rdi = task, rsi = end of the caller's frame (its CFA)
        endbr64
        push    %rbp
        push    %rbx
        push    %r12
        push    %r13
        push    %r14
        push    %r15
        lea     qj_ac__resume(%rip), %rax
        push    %rax
        mov     %rsp, (%rdi)
        mov     %rdi, %r10
        lea     56(%rsp), %rdx          // lowest word to copy: the return address into the caller
        mov     %rsi, %rcx
        sub     %rdx, %rcx              // bytes
        mov     %rdi, %r8
        sub     %rsi, %r8               // distance between the frames
        lea     (%rdx, %r8), %r9        // the copy
        // A frame pointer into the frame moves with it.
        cmp     %rdx, %rbp
        jb      1f
        cmp     %rsi, %rbp
        jae     1f
        add     %r8, %rbp
1:      mov     %r9, %rsp
        mov     %rdx, %rsi
        mov     %r9, %rdi
        rep movsb
        lea     qj_ac__task_ended(%rip), %rax     // in place of the return address: an unwinder stops here
        mov     %rax, -8(%r10)
        mov     $1, %eax
        pop     %rcx
        jmp     *%rcx
        .size   qj_ac__fork_frame, . - qj_ac__fork_frame

// A call that starts a task, made by the compiler with the type of the task's function: all argument registers and
// STACK_WORDS words of stack arguments are carried to the task's stack, where the function is called with them.
//
//   frame of qj_ac__call_converted, struct saved_call:
//     0 function   8 stack arguments   24 number of vector registers (of a variadic call)
//     32 rdi rsi rdx rcx r8 r9         80 xmm0 .. xmm7
        .set    STACK_WORDS, 12
        .p2align 4
        .globl  qj_ac__call_converted
        .type   qj_ac__call_converted, @function
qj_ac__call_converted:
        .cfi_startproc
        endbr64
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub     $208, %rsp
        mov     %rax, 24(%rsp)
        lea     16(%rbp), %rax
        mov     %rax, 8(%rsp)
        mov     %rdi, 32(%rsp)
        mov     %rsi, 40(%rsp)
        mov     %rdx, 48(%rsp)
        mov     %rcx, 56(%rsp)
        mov     %r8, 64(%rsp)
        mov     %r9, 72(%rsp)
        movaps  %xmm0, 80(%rsp)
        movaps  %xmm1, 96(%rsp)
        movaps  %xmm2, 112(%rsp)
        movaps  %xmm3, 128(%rsp)
        movaps  %xmm4, 144(%rsp)
        movaps  %xmm5, 160(%rsp)
        movaps  %xmm6, 176(%rsp)
        movaps  %xmm7, 192(%rsp)
        mov     %rsp, %rdi
        call    qj_ac__start_saved
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   qj_ac__call_converted, . - qj_ac__call_converted

        .p2align 4
        .globl  qj_ac__call_saved
        .hidden qj_ac__call_saved
        .type   qj_ac__call_saved, @function
qj_ac__call_saved:                      // rdi = struct saved_call; on the task's stack
        .cfi_startproc
        endbr64
        push    %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        mov     %rsp, %rbp
        .cfi_def_cfa_register %rbp
        sub     $(8 * STACK_WORDS), %rsp
        mov     %rdi, %r11
        mov     8(%r11), %rsi
        mov     %rsp, %rdi
        mov     $STACK_WORDS, %ecx
        rep movsq
        mov     24(%r11), %rax
        mov     32(%r11), %rdi
        mov     40(%r11), %rsi
        mov     48(%r11), %rdx
        mov     56(%r11), %rcx
        mov     64(%r11), %r8
        mov     72(%r11), %r9
        movaps  80(%r11), %xmm0
        movaps  96(%r11), %xmm1
        movaps  112(%r11), %xmm2
        movaps  128(%r11), %xmm3
        movaps  144(%r11), %xmm4
        movaps  160(%r11), %xmm5
        movaps  176(%r11), %xmm6
        movaps  192(%r11), %xmm7
        call    *(%r11)
        leave
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .size   qj_ac__call_saved, . - qj_ac__call_saved

        .section .note.GNU-stack, "", @progbits
