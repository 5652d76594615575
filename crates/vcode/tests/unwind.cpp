// Unwinds through generated code: it calls back, what it calls looks at the stack and throws, and this catches. What the
// registers that survive calls held has to be there again.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unwind.h>

extern "C" void __register_frame(void *);

static uintptr_t code_begin, code_end;
static int generated_frames, frames_above;

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *) {
    uintptr_t at = _Unwind_GetIP(context);
    if (at >= code_begin && at < code_end) generated_frames++;
    else if (generated_frames) frames_above++;
    return _URC_NO_REASON;
}

struct Thrown {
    long value;
};

extern "C" long throws(long a, long b, long, long, long, long, long, long, long, long last) {
    _Unwind_Backtrace(look, nullptr);
    if (a % 2) throw Thrown{a + b + last};
    return a + b + last;
}

using Function = long (*)(void *, long, double);

// The first floating register that survives calls: the generated function keeps a double in it. The compiler has no use
// for it here.
static uint64_t first_saved_float() {
    uint64_t bits = 0;
#if defined(__aarch64__)
    asm volatile("fmov %0, d8" : "=r"(bits));
#elif defined(__riscv)
    asm volatile("fmv.x.d %0, fs0" : "=r"(bits));
#endif
    return bits;
}

// Values in registers while the call is under way; the compiler cannot make them again afterwards.
static __attribute__((noinline)) long call(Function function, long x) {
    long a = x * 3, b = x * 5, c = x * 7, d = x * 11, e = x * 13, f = x * 17;
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    uint64_t before = first_saved_float();
    long result;
    try {
        result = function(reinterpret_cast<void *>(throws), x, double(x) + 1.5);
    } catch (const Thrown &thrown) {
        result = -thrown.value;
    }
    asm volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    if (a != x * 3 || b != x * 5 || c != x * 7 || d != x * 11 || e != x * 13 || f != x * 17) return 1000;
    if (first_saved_float() != before) return 1001;
    return result;
}

static void *read_all(const char *path, size_t *length, void *at) {
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(2); }
    void *bytes = mmap(at, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *length = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    __builtin___clear_cache(static_cast<char *>(bytes), static_cast<char *>(bytes) + *length);
    return bytes;
}

// unwind CODE FRAMES ENTRY ADDRESS
int main(int argc, char **argv) {
    if (argc != 5) return 2;
    size_t length, frames_length;
    uintptr_t at = strtoul(argv[4], nullptr, 0);
    void *code = read_all(argv[1], &length, reinterpret_cast<void *>(at));
    if (reinterpret_cast<uintptr_t>(code) != at) { fprintf(stderr, "no memory at %#lx\n", long(at)); return 2; }
    __register_frame(read_all(argv[2], &frames_length, nullptr));
    code_begin = at;
    code_end = at + length;
    Function function = reinterpret_cast<Function>(at + strtoul(argv[3], nullptr, 0));
    for (long x = 0; x < 20; x++) {
        generated_frames = frames_above = 0;
        long called = x + (x + 1) + 100, expected = x % 2 ? -called : called + x + 1;
        long found = call(function, x);
        if (found != expected) { printf("%ld: %ld instead of %ld\n", x, found, expected); return 1; }
        if (generated_frames != 1 || frames_above < 2) {
            printf("%ld: %d generated frames, %d above\n", x, generated_frames, frames_above);
            return 1;
        }
    }
    puts("unwound");
    return 0;
}
