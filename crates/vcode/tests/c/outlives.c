/* Sets what is in no register that functions are given, calls the function at m[0] as an interrupt would happen, and
   says what has changed: a bit each. Where the processor itself keeps all that for a handler there is nothing to ask.
   Where functions without a frame keep things below their stack pointer, it is how many of those have changed. */
#include <stdint.h>

long outlives(uint64_t *m) {
#if defined(__x86_64__)
    long changed;
    /* All of the red zone but for what holds the return address. */
    __asm__ volatile("subq $1024,%%rsp\n\tmovq $-16,%%rcx\n1:\tmovq %%rcx,(%%rsp,%%rcx,8)\n\tincq %%rcx\n\t"
                     "cmpq $-1,%%rcx\n\tjne 1b\n\tcall *%1\n\txorl %%eax,%%eax\n\tmovq $-16,%%rcx\n"
                     "2:\tcmpq %%rcx,(%%rsp,%%rcx,8)\n\tje 3f\n\tincq %%rax\n3:\tincq %%rcx\n\tcmpq $-1,%%rcx\n\t"
                     "jne 2b\n\taddq $1024,%%rsp"
                     : "=&a"(changed)
                     : "r"(m[0])
                     : "rcx", "memory", "cc");
    return changed;
#elif defined(__powerpc64__)
    uint64_t r0, cr, ctr, xer, changed;
    __asm__ volatile("stdu 1,-2048(1)\n\tli 8,-512\n1:\tstdx 8,1,8\n\taddi 8,8,8\n\tcmpdi 8,0\n\tbne 1b\n\t"
                     "mtlr %1\n\tblrl\n\tli %0,0\n\tli 8,-512\n2:\tldx 9,1,8\n\tcmpd 9,8\n\tbeq 3f\n\t"
                     "addi %0,%0,1\n3:\taddi 8,8,8\n\tcmpdi 8,0\n\tbne 2b\n\taddi 1,1,2048"
                     : "=&b"(changed)
                     : "r"(m[0])
                     : "r8", "r9", "lr", "cr0", "memory");
    if (changed) return (long)(changed << 8);
    /* Called through the link register: an interrupt leaves the other. Below the stack pointer gcc may keep
     * something. */
    __asm__ volatile("stdu 1,-512(1)\n\tmtlr %4\n\tlis 0,0x1234\n\tori 0,0,0x5678\n\tmtcrf 255,0\n\tmtctr 0\n\t"
                     "li 0,0\n\tmtxer 0\n\tli 0,77\n\tblrl\n\tmr %0,0\n\tmfcr %1\n\tmfctr %2\n\tmfxer %3\n\taddi 1,1,512"
                     : "=&r"(r0), "=&r"(cr), "=&r"(ctr), "=&r"(xer)
                     : "r"(m[0])
                     : "r0", "lr", "ctr", "cr0", "cr1", "cr5", "cr6", "cr7", "memory");
    return (r0 != 77) + 2 * (cr != 0x12345678) + 4 * (ctr != 0x12345678) + 8 * (xer != 0);
#elif defined(__mips__)
    unsigned hi, lo, flags;
    __asm__ volatile("move $25,%3\n\tli $8,5\n\tmthi $8\n\tli $8,6\n\tmtlo $8\n\tmtc1 $0,$f0\n\tc.eq.s $f0,$f0\n\t"
                     "jalr $25\n\tmfhi %0\n\tmflo %1\n\tcfc1 %2,$31"
                     : "=&r"(hi), "=&r"(lo), "=&r"(flags)
                     : "r"((unsigned)m[0])
                     : "$8", "$25", "$31", "$f0", "hi", "lo", "memory");
    return (hi != 5) + 2 * (lo != 6) + 4 * !(flags & 1u << 23);
#elif defined(__sparc__)
    uint64_t g5, before = 0x800, after;
    __asm__ volatile("ldx %3,%%fsr\n\tmov 77,%%g5\n\tjmpl %2,%%o7\n\tnop\n\tmov %%g5,%0\n\tstx %%fsr,%1"
                     : "=&r"(g5), "=m"(after)
                     : "r"(m[0]), "m"(before)
                     : "g5", "o7", "memory");
    return (g5 != 77) + 2 * ((after & 0xc00) != 0x800);
#else
    (void)m;
    return 0;
#endif
}
