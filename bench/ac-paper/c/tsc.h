/* The processor's time stamp, fenced on both sides. */
#ifndef TSC_H
#define TSC_H
#include <stdint.h>
static inline uint64_t tsc(void) {
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
}
#endif
