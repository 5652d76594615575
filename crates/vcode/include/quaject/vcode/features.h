/* Detection of the features of the running processor beyond the baseline of its machine: a set of V_HAS_... bits for
   qjv_use_features. Uses CPUID on x86-64 and the identification registers on AArch64, whose reads Linux emulates. */
#ifndef QUAJECT_VCODE_FEATURES_H
#define QUAJECT_VCODE_FEATURES_H

#include "../vcode.h"

#if defined(__x86_64__)
#include <cpuid.h>

static inline __attribute__((unused)) uint64_t qjv_ask_features(void) {
    unsigned eax = 0, ebx = 0, ecx = 0, edx = 0, seven_ebx = 0, seven_ecx = 0, extended = 0;
    uint32_t saved = 0;
    uint64_t found = 0;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) seven_ebx = ebx, seven_ecx = ecx;
    if (__get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx)) extended = ecx;
    ecx = 0;
    if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx)) return 0;
    /* The components of the processor state that the operating system saves (XCR0). */
    if (ecx >> 27 & 1) __asm__("xgetbv" : "=a"(saved), "=d"(edx) : "c"(0));
    if (ecx >> 23 & 1) found |= V_HAS_POPCNT;
    if (extended >> 5 & 1) found |= V_HAS_LZCNT;
    if (seven_ebx >> 3 & 1) found |= V_HAS_BMI1;
    if (ecx >> 22 & 1) found |= V_HAS_MOVBE;
    /* It represents SSSE3 and SSE4.1 too. */
    if ((ecx >> 20 & 1) && (ecx >> 19 & 1) && (ecx >> 9 & 1)) found |= V_HAS_SSE42;
    if ((seven_ebx >> 5 & 1) && (saved & 0x6) == 0x6) found |= V_HAS_AVX2;
    if (ecx >> 1 & 1) found |= V_HAS_PCLMUL;
    if ((seven_ecx >> 10 & 1) && (saved & 0x6) == 0x6) found |= V_HAS_VPCLMUL;
    if ((seven_ebx & 0xc0030000u) == 0xc0030000u && (saved & 0xe6) == 0xe6) {
        found |= V_HAS_AVX512;
        if (seven_ecx >> 11 & 1) found |= V_HAS_VNNI;
    }
    return found;
}

/* Cached per including file, because CPUID exits a virtual machine. Every thread computes the same value, so that no
   ordering is needed. */
static inline __attribute__((unused)) uint64_t qjv_detect_features(void) {
    static const uint64_t asked = UINT64_C(1) << 63;
    static uint64_t found;
    uint64_t known = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (!known) {
        known = qjv_ask_features() | asked;
        __atomic_store_n(&found, known, __ATOMIC_RELAXED);
    }
    return known & ~asked;
}
#elif defined(__aarch64__) && (defined(__linux__) || !__STDC_HOSTED__)
static inline __attribute__((unused)) uint64_t qjv_detect_features(void) {
    uint64_t isar0, found = 0;
    __asm__("mrs %0, ID_AA64ISAR0_EL1" : "=r"(isar0));
    if (isar0 >> 16 & 15) found |= V_HAS_CRC;
    if ((isar0 >> 20 & 15) >= 2) found |= V_HAS_LSE;
    if (isar0 >> 44 & 15) found |= V_HAS_DOTPROD;
    if ((isar0 >> 4 & 15) >= 2) found |= V_HAS_PMULL;
    return found;
}
#else
/* The features that the program was compiled for. */
static inline __attribute__((unused)) uint64_t qjv_detect_features(void) {
#if defined(__riscv_zbb)
    return V_HAS_ZBB;
#elif defined(__alpha_cix__)
    return V_HAS_CIX;
#else
    return 0;
#endif
}
#endif

#endif
