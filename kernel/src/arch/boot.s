// From the PVH entry (32-bit protected mode, no paging, ebx = start information) to Rust in 64-bit mode.
// The tables built here map the first 4 GiB three times, everything writable and executable:
//   0                     identity, for this code
//   0xffff800000000000    the direct map, by which Rust reads start information and builds the final tables
//   -2 GiB                the kernel's image (the first GiB)
// `memory::kernel_space` replaces them.

.section .note.Xen, "a", @note
.p2align 2
.long 4                 // length of the name
.long 8                 // length of the description
.long 18                // XEN_ELFNOTE_PHYS32_ENTRY
.asciz "Xen"
.quad boot_entry

.set KERNEL_BASE, 0xffffffff80000000

.section .boot, "ax"
.code32
.global boot_entry
boot_entry:
  cld
  mov edi, ebx
  mov esp, offset boot_stack_top - KERNEL_BASE

  // One level-3 table serves all three places: its entries 0..4 lead to 4 GiB, its entry 510 to the first GiB.
  mov eax, offset boot_level3 - KERNEL_BASE + 3
  mov [boot_level4 - KERNEL_BASE], eax
  mov [boot_level4 - KERNEL_BASE + 256 * 8], eax
  mov [boot_level4 - KERNEL_BASE + 511 * 8], eax
  mov eax, offset boot_level2 - KERNEL_BASE + 3
  mov [boot_level3 - KERNEL_BASE + 510 * 8], eax
  xor ecx, ecx
1:
  mov [boot_level3 - KERNEL_BASE + ecx * 8], eax
  add eax, 4096
  inc ecx
  cmp ecx, 4
  jne 1b

  // 2048 pages of 2 MiB: present, writable, large.
  xor ecx, ecx
2:
  mov eax, ecx
  shl eax, 21
  or eax, 0x83
  mov [boot_level2 - KERNEL_BASE + ecx * 8], eax
  inc ecx
  cmp ecx, 2048
  jne 2b

  mov eax, offset boot_level4 - KERNEL_BASE
  mov cr3, eax
  mov eax, cr4
  or eax, 0x620         // PAE, OSFXSR, OSXMMEXCPT
  mov cr4, eax
  mov ecx, 0xc0000080   // EFER
  rdmsr
  or eax, 0x901         // NXE, LME, SCE
  wrmsr
  mov eax, 0x80010033   // PG, WP, NE, ET, MP, PE
  mov cr0, eax
  lgdt [boot_gdt_register]
  .byte 0xea            // jmp 8:boot_long_mode
  .long boot_long_mode
  .word 8

.code64
boot_long_mode:
  xor eax, eax
  mov ds, ax
  mov es, ax
  mov ss, ax
  mov fs, ax
  mov gs, ax
  mov rsp, offset boot_stack_top
  xor ebp, ebp
  mov edi, edi          // the argument: the physical address of the start information
  mov rax, offset kernel_main
  call rax
  ud2

.p2align 3
boot_gdt:
  .quad 0
  .quad 0x00af9b000000ffff
boot_gdt_register:
  .word 15
  .long boot_gdt
  .long 0

.section .bss
.p2align 12
boot_level4: .skip 4096
boot_level3: .skip 4096
boot_level2: .skip 4 * 4096
boot_stack: .skip 65536
.global boot_stack_top
boot_stack_top:
