/* Function pointers, a switch, part words, multiplication and remainders. */
static unsigned words[64];
static unsigned char bytes[256];

static __attribute__((noinline)) unsigned rotate(unsigned x, unsigned y)
{
    return (x << 5 | x >> 27) ^ y;
}

static __attribute__((noinline)) unsigned scale(unsigned x, unsigned y)
{
    return x * 3 + y;
}

static unsigned (*functions[2])(unsigned, unsigned) = {rotate, scale};

unsigned test(void);

unsigned test(void)
{
    unsigned s = 42;
    for (unsigned i = 0; i < 1000; i++) {
        s = functions[i & 1](s, i);
        words[s & 63] += i;
        bytes[s & 255] ^= (unsigned char)(s >> 3);
        switch (s % 7) {
        case 0: s += 1; break;
        case 1: s ^= 0x1234; break;
        case 2: s -= bytes[i & 255]; break;
        case 3: s = s << 1 | 1; break;
        case 4: s += words[i & 63]; break;
        case 5: s = (int)s < 0 ? -s : s; break;
        default: s += s >> 4;
        }
    }
    for (unsigned i = 0; i < 64; i++) {
        s = rotate(s, words[i]);
    }
    for (unsigned i = 0; i < 256; i++) {
        s = rotate(s, bytes[i]);
    }
    return s;
}
