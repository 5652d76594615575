/* The functions that compilers call implicitly, for targets without a C library. */
#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    while (size--) *out++ = *in++;
    return to;
}

void *memmove(void *to, const void *from, size_t size)
{
    unsigned char *out = to;
    const unsigned char *in = from;
    if (out <= in) {
        while (size--) *out++ = *in++;
    } else {
        while (size--) out[size] = in[size];
    }
    return to;
}

void *memset(void *to, int value, size_t size)
{
    unsigned char *out = to;
    while (size--) *out++ = (unsigned char)value;
    return to;
}

int memcmp(const void *one, const void *other, size_t size)
{
    const unsigned char *a = one, *b = other;
    for (; size--; a++, b++) {
        if (*a != *b) return *a - *b;
    }
    return 0;
}
