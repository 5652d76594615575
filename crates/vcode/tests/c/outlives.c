/* Sets what is in no register that functions are given, calls the function at m[0] as an interrupt would happen, and says
   what has changed: a bit each. Where the processor itself keeps all that for a handler there is nothing to ask. */
#include <stdint.h>

long outlives(uint64_t *m) {
#if defined(__powerpc64__)
    uint64_t r0, cr, ctr, xer;
    /* Called through the link register: an interrupt leaves the other. Below the stack pointer gcc may keep something. */
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
