/* Structures by value, copies and fills of memory, recursion with parameters on the stack. */
struct block {
    unsigned words[9];
    unsigned char tail[5];
};

static struct block blocks[4];

unsigned test(void);

static __attribute__((noinline)) struct block step(struct block in, unsigned by)
{
    for (unsigned i = 0; i < 9; i++) {
        in.words[i] = in.words[i] * 5 + by + i;
    }
    for (unsigned i = 0; i < 5; i++) {
        in.tail[i] = (unsigned char)(in.tail[i] + by);
    }
    return in;
}

static __attribute__((noinline)) unsigned depth(unsigned n, unsigned a, unsigned b, unsigned c, unsigned d, unsigned e)
{
    return n == 0 ? a ^ b ^ c ^ d ^ e : depth(n - 1, b + n, c, d ^ n, e, a) + n;
}

unsigned test(void)
{
    unsigned s = 0;
    for (unsigned i = 0; i < 40; i++) {
        blocks[(i + 1) & 3] = step(blocks[i & 3], i);
        if (i % 9 == 8) {
            blocks[i & 3] = (struct block){{1, 2, 3}, {4}};
        }
    }
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned j = 0; j < 9; j++) {
            s = s * 31 + blocks[i].words[j];
        }
        for (unsigned j = 0; j < 5; j++) {
            s = s * 31 + blocks[i].tail[j];
        }
    }
    return s + depth(100, 1, 2, 3, 4, 5);
}
