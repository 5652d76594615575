// Exceptions and backtraces go through an installed function whose frames are registered, and no longer after that.
#include "function.h"
#include <cstdio>
#include <cstdlib>
#include <unwind.h>

static uintptr_t code_begin, code_end;
static int generated_frames, frames_above;

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *) {
    const uintptr_t at = _Unwind_GetIP(context);
    if (at >= code_begin && at < code_end) generated_frames++;
    else if (generated_frames) frames_above++;
    return _URC_NO_REASON;
}

struct Thrown {
    long value;
    explicit Thrown(long value) : value(value) {}
};

static int destroyed;
struct Destroyed {
    ~Destroyed() { destroyed++; }
};

extern "C" long throws(long a, long b, long, long, long, long, long, long, long, long last) {
    _Unwind_Backtrace(look, nullptr);
    if (a % 2) throw Thrown(a + b + last);
    return a + b + last;
}

using Function = long (*)(void *, long, double);

static long call(Function function, long x) {
    const Destroyed here;
    return function(reinterpret_cast<void *>(throws), x, double(x) + 1.5);
}

static void check(bool condition, const char *what) {
    if (condition) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

int main() {
    qjl_memory *memory;
    check(qjl_memory_new(1 << 20, &memory) == QJL_OK, "memory");
    const size_t sizes[] = {0, 24, 6000, 70000};
    for (const size_t local_bytes : sizes) {
        qjl_function *f;
        qjl_code code;
        void *installed;
        qjl_frames *frames;
        check(write_function(QJL_NATIVE, local_bytes, &f, &code) == QJL_OK, qjl_message(f));
        check(qjl_install(f, memory, &installed) == QJL_OK, qjl_message(f));
        check(qjl_frames_register(f, nullptr, &frames) == QJL_ERROR_NULL && !frames, "frames without a function");
        check(qjl_frames_register(f, installed, &frames) == QJL_OK, qjl_message(f));
        code_begin = reinterpret_cast<uintptr_t>(installed);
        code_end = code_begin + code.instructions;
        qjl_free(f);
        for (long x = 0; x < 20; x++) {
            const long called = x + (x + 1) + 100;
            generated_frames = frames_above = destroyed = 0;
            long found;
            try {
                found = call(reinterpret_cast<Function>(installed), x);
                check(x % 2 == 0, "nothing was thrown");
                check(found == called + x + 1, "the result");
            } catch (const Thrown &thrown) {
                check(thrown.value == called, "what was thrown");
            }
            check(destroyed == 1 && generated_frames == 1 && frames_above >= 2, "the frames");
        }
        qjl_frames_free(frames);
        check(qjl_uninstall(memory, installed) == QJL_OK, "uninstall");
    }
    qjl_frames_free(nullptr);
    qjl_memory_free(memory);
    std::puts("ok");
}
