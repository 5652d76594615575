/* What compiled code calls where LANai has no instruction: multiplication, division, shifts of 64 bits, and copies.
 * LLVM has no such library for LANai. Freestanding C; compile with -ffreestanding, which also keeps the compiler from
 * turning the loops below into calls of themselves. */

typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef __SIZE_TYPE__ size;

/* Halves of a number of 64 bits, so that nothing here needs a shift of 64 bits. LANai is big-endian. */
union halves {
    u64 whole;
    struct {
        u32 high, low;
    } half;
};

static u64 join(u32 high, u32 low)
{
    union halves result;
    result.half.high = high;
    result.half.low = low;
    return result.whole;
}

u32 __mulsi3(u32 a, u32 b)
{
    u32 product = 0;
    while (b) {
        if (b & 1) {
            product += a;
        }
        a <<= 1;
        b >>= 1;
    }
    return product;
}

/* The product of 64 bits, by adding the shifted first factor. */
u64 __muldi3(u64 a, u64 b)
{
    union halves x, y;
    u32 high = 0, low = 0;
    x.whole = a;
    y.whole = b;
    while (y.half.low | y.half.high) {
        if (y.half.low & 1) {
            u32 sum = low + x.half.low;
            high += x.half.high + (sum < low);
            low = sum;
        }
        x.half.high = x.half.high << 1 | x.half.low >> 31;
        x.half.low <<= 1;
        y.half.low = y.half.low >> 1 | y.half.high << 31;
        y.half.high >>= 1;
    }
    return join(high, low);
}

/* Quotient; the remainder through the pointer. Division by zero yields a quotient of ones. */
static u32 divide(u32 a, u32 b, u32 *remainder)
{
    u32 quotient = 0, rest = 0;
    for (s32 bit = 31; bit >= 0; bit--) {
        u32 carry = rest >> 31;
        rest = rest << 1 | (a >> bit & 1);
        quotient <<= 1;
        if (carry || rest >= b) {
            rest -= b;
            quotient |= 1;
        }
    }
    *remainder = rest;
    return quotient;
}

u32 __udivsi3(u32 a, u32 b)
{
    u32 rest;
    return divide(a, b, &rest);
}

u32 __umodsi3(u32 a, u32 b)
{
    u32 rest;
    divide(a, b, &rest);
    return rest;
}

s32 __divsi3(s32 a, s32 b)
{
    u32 rest;
    u32 quotient = divide(a < 0 ? -(u32)a : (u32)a, b < 0 ? -(u32)b : (u32)b, &rest);
    return (s32)((a ^ b) < 0 ? -quotient : quotient);
}

s32 __modsi3(s32 a, s32 b)
{
    u32 rest;
    divide(a < 0 ? -(u32)a : (u32)a, b < 0 ? -(u32)b : (u32)b, &rest);
    return (s32)(a < 0 ? -rest : rest);
}

static u64 divide_long(u64 a, u64 b, u64 *remainder)
{
    union halves x, y;
    u32 quotient_high = 0, quotient_low = 0, rest_high = 0, rest_low = 0;
    x.whole = a;
    y.whole = b;
    for (u32 step = 0; step < 64; step++) {
        u32 carry = rest_high >> 31;
        rest_high = rest_high << 1 | rest_low >> 31;
        rest_low = rest_low << 1 | x.half.high >> 31;
        x.half.high = x.half.high << 1 | x.half.low >> 31;
        x.half.low <<= 1;
        quotient_high = quotient_high << 1 | quotient_low >> 31;
        quotient_low <<= 1;
        if (carry || rest_high > y.half.high || (rest_high == y.half.high && rest_low >= y.half.low)) {
            rest_high -= y.half.high + (rest_low < y.half.low);
            rest_low -= y.half.low;
            quotient_low |= 1;
        }
    }
    *remainder = join(rest_high, rest_low);
    return join(quotient_high, quotient_low);
}

static u64 magnitude(s64 value)
{
    return value < 0 ? -(u64)value : (u64)value;
}

u64 __udivdi3(u64 a, u64 b)
{
    u64 rest;
    return divide_long(a, b, &rest);
}

u64 __umoddi3(u64 a, u64 b)
{
    u64 rest;
    divide_long(a, b, &rest);
    return rest;
}

s64 __divdi3(s64 a, s64 b)
{
    u64 rest;
    u64 quotient = divide_long(magnitude(a), magnitude(b), &rest);
    return (s64)((a < 0) != (b < 0) ? -quotient : quotient);
}

s64 __moddi3(s64 a, s64 b)
{
    u64 rest;
    divide_long(magnitude(a), magnitude(b), &rest);
    return (s64)(a < 0 ? -rest : rest);
}

u64 __ashldi3(u64 value, u32 amount)
{
    union halves x;
    x.whole = value;
    if (amount >= 32) {
        return join(x.half.low << (amount - 32), 0);
    }
    return amount ? join(x.half.high << amount | x.half.low >> (32 - amount), x.half.low << amount) : value;
}

u64 __lshrdi3(u64 value, u32 amount)
{
    union halves x;
    x.whole = value;
    if (amount >= 32) {
        return join(0, x.half.high >> (amount - 32));
    }
    return amount ? join(x.half.high >> amount, x.half.low >> amount | x.half.high << (32 - amount)) : value;
}

s64 __ashrdi3(s64 value, u32 amount)
{
    union halves x;
    x.whole = (u64)value;
    s32 high = (s32)x.half.high;
    if (amount >= 32) {
        return (s64)join((u32)(high >> 31), (u32)(high >> (amount - 32)));
    }
    if (!amount) {
        return value;
    }
    return (s64)join((u32)(high >> amount), x.half.low >> amount | x.half.high << (32 - amount));
}

/* Words where both addresses allow it, as a card copies headers and requests all the time. */
void *memcpy(void *restrict to, const void *restrict from, size length)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    if ((((size)target | (size)source) & 3) == 0) {
        for (; length >= 4; length -= 4, target += 4, source += 4) {
            *(u32 *)target = *(const u32 *)source;
        }
    }
    for (; length; length--) {
        *target++ = *source++;
    }
    return to;
}

void *memmove(void *to, const void *from, size length)
{
    unsigned char *target = to;
    const unsigned char *source = from;
    if (target <= source) {
        for (; length; length--) {
            *target++ = *source++;
        }
    } else {
        while (length) {
            length--;
            target[length] = source[length];
        }
    }
    return to;
}

void *memset(void *to, int value, size length)
{
    unsigned char *target = to;
    for (; length; length--) {
        *target++ = (unsigned char)value;
    }
    return to;
}

int memcmp(const void *left, const void *right, size length)
{
    const unsigned char *a = left, *b = right;
    for (; length; length--, a++, b++) {
        if (*a != *b) {
            return *a < *b ? -1 : 1;
        }
    }
    return 0;
}
