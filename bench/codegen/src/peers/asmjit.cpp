// The workload on AsmJit's assembler. The code holder is used again, so that no function pays for its memory.
#include <asmjit/x86.h>
#include <cstring>

#include "sites.h"

using namespace asmjit;
using namespace asmjit::x86;

struct Entry {
    uint8_t kind, d, s;
    int32_t displacement;
};

static const Gp registers[8] = {r10d, eax, r9d, r8d, ecx, edx, esi, edi};

template <class Write>
static size_t function(uint8_t *bytes, size_t length, Write write) {
    static CodeHolder code;
    static const Environment environment = Environment::host();
    code.reset(ResetPolicy::kSoft);
    if (code.init(environment)) return 0;
    Assembler a(&code);
    write(a);
    if (code.flatten() || code.resolveUnresolvedLinks() || code.relocateToBase((uintptr_t)bytes)) return 0;
    if (code.copyFlattenedData(bytes, length)) return 0;
    return (size_t)bytes;
}

static void open(Assembler &a) {
    a.push(rbx);
    a.mov(rbx, rdi);
    for (int index = 0; index < 8; index++) a.mov(registers[index], dword_ptr(rbx, 4 * index));
}

static void close(Assembler &a) {
    for (int index = 0; index < 8; index++) a.mov(dword_ptr(rbx, 4 * index), registers[index]);
    a.pop(rbx);
    a.ret();
}

extern "C" size_t asmjit_constant(uint8_t *bytes, size_t length) {
    return function(bytes, length, [](Assembler &a) {
        a.push(rbx);
        a.mov(rbx, rdi);
        ASMJIT_SITES
        a.pop(rbx);
        a.ret();
    });
}

extern "C" size_t asmjit_table(uint8_t *bytes, size_t length, const Entry *entries, size_t count) {
    return function(bytes, length, [=](Assembler &a) {
        open(a);
        for (size_t index = 0; index < count; index++) {
            const Entry &entry = entries[index];
            const Gp &d = registers[entry.d & 7], &s = registers[entry.s & 7];
            switch (entry.kind) {
            case 0: a.add(d, s); break;
            case 1: a.sub(d, s); break;
            case 2: a.xor_(d, s); break;
            case 3: a.mov(d, dword_ptr(rbx, entry.displacement)); break;
            default: a.mov(dword_ptr(rbx, entry.displacement), d);
            }
        }
        close(a);
    });
}

extern "C" size_t asmjit_plus1(uint8_t *bytes, size_t length) {
    return function(bytes, length, [](Assembler &a) {
        a.lea(eax, ptr(rdi, 1));
        a.ret();
    });
}

extern "C" size_t asmjit_dot(uint8_t *bytes, size_t length) {
    return function(bytes, length, [](Assembler &a) {
        Label again = a.newLabel(), done = a.newLabel();
        a.xor_(eax, eax);
        a.test(rdx, rdx);
        a.jle(done);
        a.xor_(ecx, ecx);
        a.bind(again);
        a.mov(r8d, dword_ptr(rdi, rcx, 2));
        a.imul(r8d, dword_ptr(rsi, rcx, 2));
        a.add(eax, r8d);
        a.add(rcx, 1);
        a.cmp(rcx, rdx);
        a.jl(again);
        a.bind(done);
        a.ret();
    });
}
