/* Comparisons of all kinds at the borders, as values, as branches and as selections. */
static const int operands[] = {0, 1, -1, 2, -2, 0x7fffffff, -0x7fffffff - 1, -0x7fffffff, 0x10000, -0x10000, 0xffff};
enum { COUNT = sizeof operands / sizeof operands[0] };

unsigned test(void);

static __attribute__((noinline)) unsigned branches(int a, int b)
{
    unsigned s = 0;
    if (a < b) {
        s |= 1;
    }
    if (a <= b) {
        s |= 2;
    }
    if (a == b) {
        s |= 4;
    }
    if ((unsigned)a < (unsigned)b) {
        s |= 8;
    }
    if ((unsigned)a <= (unsigned)b) {
        s |= 16;
    }
    return s;
}

static __attribute__((noinline)) unsigned selections(int a, int b)
{
    unsigned s = a > b ? (unsigned)a : (unsigned)b;
    s = (unsigned)a > (unsigned)b ? s + (unsigned)a : s - (unsigned)b;
    return a >= 0 ? s ^ (unsigned)(b >> 3) : s + 17;
}

static __attribute__((noinline)) int constants(int a)
{
    return (a < 5) + 2 * (a > 0xffff) + 4 * (a >= -1) + 8 * ((unsigned)a > 0x10000u) + 16 * (a != 0) + 32 * (a <= -0x10000);
}

unsigned test(void)
{
    unsigned s = 7;
    for (unsigned i = 0; i < COUNT; i++) {
        s = s * 33 + (unsigned)constants(operands[i]);
        for (unsigned j = 0; j < COUNT; j++) {
            s = s * 33 + branches(operands[i], operands[j]);
            s = s * 33 + selections(operands[i], operands[j]);
            s += (unsigned)(operands[i] < operands[j]);
        }
    }
    return s;
}
