/* Every routine of 64 bits, with operands at the borders. */
typedef unsigned long long wide;
typedef long long swide;

static const wide operands[] = {
    0, 1, 2, 3, 31, 32, 33, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x100000001, 0x123456789abcdef,
    0x7fffffffffffffff, 0x8000000000000000, 0x8000000000000001, 0xffffffff00000000, 0xfffffffffffffffe, 0xffffffffffffffff,
};
enum { COUNT = sizeof operands / sizeof operands[0] };

static volatile unsigned amount_source = 1;

unsigned test(void);

static unsigned mix(unsigned s, wide value)
{
    return ((s << 7 | s >> 25) ^ (unsigned)value) + (unsigned)(value >> 32);
}

unsigned test(void)
{
    unsigned s = 1;
    for (unsigned i = 0; i < COUNT; i++) {
        wide a = operands[i];
        for (unsigned amount = 0; amount < 64; amount++) {
            unsigned shift = amount * amount_source;
            s = mix(s, a << shift);
            s = mix(s, a >> shift);
            s = mix(s, (wide)((swide)a >> shift));
        }
        for (unsigned j = 0; j < COUNT; j++) {
            wide b = operands[j];
            s = mix(s, a * b);
            s = mix(s, a + b);
            s = mix(s, a - b);
            s = mix(s, (wide)(a < b) | (wide)((swide)a < (swide)b) << 1 | (wide)(a <= b) << 2 | (wide)(a == b) << 3);
            if (b) {
                s = mix(s, a / b);
                s = mix(s, a % b);
                if (a != 0x8000000000000000 || b != 0xffffffffffffffff) {
                    s = mix(s, (wide)((swide)a / (swide)b));
                    s = mix(s, (wide)((swide)a % (swide)b));
                }
            }
            unsigned x = (unsigned)a, y = (unsigned)b;
            s = mix(s, x * y);
            if (y) {
                s = mix(s, x / y);
                s = mix(s, x % y);
                if (x != 0x80000000 || y != 0xffffffff) {
                    s = mix(s, (wide)((int)x / (int)y));
                    s = mix(s, (wide)((int)x % (int)y));
                }
            }
        }
    }
    return s;
}
