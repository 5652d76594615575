// Ways into the kernel and out of it. Rust sees a `Frame` (arch/frame.rs) on the kernel stack of the thread.
//
// In the kernel gs leads to the thread block (arch/block.rs); in a program, to whatever the program uses it for.
// Names in braces are constants of `arch/entry.rs`.

.section .text.entry, "ax"

// SYSCALL lands here: rax = number, rcx = rip, r11 = rflags, interrupts off, the user's stack. Every entry of the table
// is jumped to in this state, except that gs is the kernel's. An entry may change rax, rcx and r11 only, and ends with
// `swapgs; sysretq` (rcx and r11 as they were) or with a jump to `general_entry` (rax the number again).
.global call_entry
.p2align 4
call_entry:
  swapgs
  cmp rax, {ENTRY_COUNT}
  jae general_entry
  jmp qword ptr gs:[rax * 8 + {BLOCK_ENTRIES}]

// The same while calls are counted. A routine then ends with a jump to `counting_exit`.
.global counting_call_entry
.p2align 4
counting_call_entry:
  swapgs
  mov gs:[{BLOCK_COUNTED}], rax
  mov gs:[{BLOCK_SLOTS}], rdx
  rdtsc
  shl rdx, 32
  or rax, rdx
  mov gs:[{BLOCK_COUNTED} + 8], rax
  mov rdx, gs:[{BLOCK_SLOTS}]
  mov rax, gs:[{BLOCK_COUNTED}]
  cmp rax, {ENTRY_COUNT}
  jae general_entry
  jmp qword ptr gs:[rax * 8 + {BLOCK_ENTRIES}]

// Adds a call to the counts of its number (counts.rs): calls, calls with a switch, ticks, least ticks.
.global counting_exit
.p2align 4
counting_exit:
  mov gs:[{BLOCK_SLOTS}], rax
  mov gs:[{BLOCK_SLOTS} + 8], rdx
  mov gs:[{BLOCK_SLOTS} + 16], rcx
  rdtsc
  shl rdx, 32
  or rax, rdx
  sub rax, gs:[{BLOCK_COUNTED} + 8]
  mov rdx, gs:[{BLOCK_COUNTED}]
  shl rdx, 5
  lea rcx, [rip + {COUNTS}]
  add rdx, rcx
  inc qword ptr [rdx]
  add [rdx + 16], rax
  cmp rax, [rdx + 24]
  jae 1f
  mov [rdx + 24], rax
1:
  mov rax, gs:[{BLOCK_SLOTS}]
  mov rdx, gs:[{BLOCK_SLOTS} + 8]
  mov rcx, gs:[{BLOCK_SLOTS} + 16]
  swapgs
  sysretq

// The slow paths of routines: what `general_entry` expects in rax is not there any more.
.global general_read
.p2align 4
general_read:
  mov eax, {READ}
  jmp general_entry
.global general_write
general_write:
  mov eax, {WRITE}
  jmp general_entry
.global general_seek
general_seek:
  mov eax, {SEEK}

// The general path: saves all registers and calls `general_call`, which does what the number asks for.
.global general_entry
.p2align 4
general_entry:
  mov gs:[{BLOCK_USER_STACK}], rsp
  mov rsp, gs:[{BLOCK_KERNEL_STACK}]
  push {USER_DATA}
  push gs:[{BLOCK_USER_STACK}]
  push r11
  push {USER_CODE}
  push rcx
  push rax
  push {VECTOR_CALL}
  push rdi
  push rsi
  push rdx
  push rcx
  push rax
  push r8
  push r9
  push r10
  push r11
  push rbx
  push rbp
  push r12
  push r13
  push r14
  push r15
  xor ebp, ebp
  mov rdi, rsp
  call general_call
  test eax, eax
  jnz return_to_program
  // SYSRETQ loads rip from rcx and rflags from r11: for frames whose rcx and r11 need not be kept otherwise.
  pop r15
  pop r14
  pop r13
  pop r12
  pop rbp
  pop rbx
  add rsp, 8
  pop r10
  pop r9
  pop r8
  pop rax
  add rsp, 8
  pop rdx
  pop rsi
  pop rdi
  mov rcx, [rsp + 16]
  mov r11, [rsp + 32]
  mov rsp, [rsp + 40]
  swapgs
  sysretq

// Restores everything from the frame at rsp. A thread that has not run yet starts here.
.global return_to_program
.p2align 4
return_to_program:
  pop r15
  pop r14
  pop r13
  pop r12
  pop rbp
  pop rbx
  pop r11
  pop r10
  pop r9
  pop r8
  pop rax
  pop rcx
  pop rdx
  pop rsi
  pop rdi
  add rsp, 16
  test byte ptr [rsp + 8], 3
  jz 1f
  swapgs
1:
  iretq

// Exceptions and interrupts: one stub for each vector, 16 bytes apart, which makes the frames alike.
.p2align 4
.global trap_stubs
trap_stubs:
.set vector, 0
.rept 256
  .p2align 4
  // The processor pushes an error code for 8, 10 to 14, 17, 21, 29 and 30.
  .if (vector == 8) || ((vector >= 10) && (vector <= 14)) || (vector == 17) || (vector == 21) || (vector == 29) || (vector == 30)
  .else
    push 0
  .endif
  .byte 0x68            // push imm32
  .long vector
  jmp trap_common
  .set vector, vector + 1
.endr

.p2align 4
// Page faults and protection faults start on a stack of their own, because a routine's instruction that faults runs with
// the program's stack pointer. The frame goes to the kernel stack of the thread, or, if other code of the kernel was
// interrupted, to the stack of that.
.macro fault_entry name, vector
.global \name
.p2align 4
\name:
  push rax
  push rcx
  push rdx
  // rdx | rcx | rax | error | rip | cs | rflags | rsp | ss
  test byte ptr [rsp + 40], 3
  jnz 2f
  cmp qword ptr [rsp + 32], {CODE_START}
  jae 3f
  // The copy below may itself fault, when the kernel's stack has ended.
  lea rax, [rip + fault_copies]
  cmp [rsp + 32], rax
  jb 1f
  lea rax, [rip + fault_copies_end]
  cmp [rsp + 32], rax
  jb 5f
1:
  mov rax, [rsp + 56]
  and rax, -16
  jmp 4f
2:
  swapgs
  mov rax, gs:[{BLOCK_KERNEL_STACK}]
  swapgs
  jmp 4f
3:
  mov rax, gs:[{BLOCK_KERNEL_STACK}]
4:
  mov ecx, \vector
  jmp fault_copies
5:
  pop rdx
  pop rcx
  pop rax
  push 8
  jmp trap_common
.endm

fault_entry page_fault_entry 14
fault_entry protection_fault_entry 13

// Pushes ss, rsp, rflags, cs, rip, the error code and the vector in ecx to the stack in rax, and goes on there.
.p2align 4
fault_copies:
  mov rdx, [rsp + 64]
  mov [rax - 8], rdx
  mov rdx, [rsp + 56]
  mov [rax - 16], rdx
  mov rdx, [rsp + 48]
  mov [rax - 24], rdx
  mov rdx, [rsp + 40]
  mov [rax - 32], rdx
  mov rdx, [rsp + 32]
  mov [rax - 40], rdx
  mov rdx, [rsp + 24]
  mov [rax - 48], rdx
  mov [rax - 56], rcx
  mov rdx, [rsp + 16]
  mov [rax - 64], rdx
fault_copies_end:
  mov rdx, [rsp]
  mov rcx, [rsp + 8]
  lea rsp, [rax - 64]
  pop rax
  jmp trap_common

.p2align 4
trap_common:
  push rdi
  push rsi
  push rdx
  push rcx
  push rax
  push r8
  push r9
  push r10
  push r11
  push rbx
  push rbp
  push r12
  push r13
  push r14
  push r15
  cld
  clac
  test byte ptr [rsp + 17 * 8 + 8], 3
  jz 1f
  swapgs
1:
  xor ebp, ebp
  mov rdi, rsp
  call handle_trap
  jmp return_to_program

// continue_on(stack: u64, function): calls a function that does not return on another stack.
.global continue_on
continue_on:
  mov rsp, rdi
  xor ebp, ebp
  call rsi
  ud2

// copy_across(to: *mut u8, from: *const u8, length: usize) -> usize: copies between the kernel and a program and returns
// how many bytes at the end are not copied. A page fault that nothing resolves continues at the address that the
// exception table names: after a fault in a word, with the bytes that are left, so that the count is exact.
.global copy_across
.p2align 4
copy_across:
  mov rcx, rdx
  shr rcx, 3
  and edx, 7
  stac
2:
  rep movsq
  mov ecx, edx
4:
  rep movsb
5:
  clac
  mov rax, rcx
  ret
6:
  lea rcx, [rcx * 8 + rdx]
  jmp 4b

// fill_across(to: *mut u8, length: usize) -> usize: likewise, with zeros.
.global fill_across
.p2align 4
fill_across:
  mov rcx, rsi
  xor eax, eax
  stac
7:
  rep stosb
8:
  clac
  mov rax, rcx
  ret

// read_word_across(from: *const u32, to: *mut u32) -> u64: reads an aligned word at once; 0 done, 1 fault.
.global read_word_across
.p2align 4
read_word_across:
  stac
9:
  mov eax, [rdi]
  clac
  mov [rsi], eax
  xor eax, eax
  ret
10:
  clac
  mov eax, 1
  ret

.section .exceptions, "a"
  .quad 2b, 6b
  .quad 4b, 5b
  .quad 7b, 8b
  .quad 9b, 10b
