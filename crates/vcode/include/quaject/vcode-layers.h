/* The layers above vcode, for C11 and C++: virtual registers, a peephole window, arithmetic with constants, unwinding.
 *
 * quaject/vcode.h writes each instruction in place and needs no library. Here a function is written through a library,
 * which allocates registers or holds instructions back:
 *
 *     qjl_function *f;
 *     qjl_memory *memory;
 *     qjl_reg x;
 *     int (*plus1)(int);
 *     int status = qjl_memory_new(65536, &memory);
 *     status = qjl_begin(NULL, "%i", &x, 1, &f);
 *     qjl_addii(f, x, x, 1);
 *     qjl_reti(f, x);
 *     status = qjl_end(f, NULL);
 *     status = qjl_install(f, memory, (void **)&plus1);
 *     qjl_free(f);                                      the installed function stays
 *     qjl_memory_free(memory);                          and is freed here
 *
 * Functions that return an int return QJL_OK or the code of an error of `enum qjl_status`, unless they say otherwise.
 * The first error of a function sticks: what follows has no effect and returns its code, so that it is enough to look
 * at the result of qjl_end(). qjl_message() says which call was wrong, why, and what to do about it.
 *
 * Registers, labels and variables are values. They belong to the function that made them; every use is checked, and
 * those of another function, or given back, are errors, as is the use of a function that has ended. Not checked: a
 * function, memory or other object after it was freed; and that generated code does what its author means.
 *
 * Pointers must be valid. Where a null pointer is not allowed it is QJL_ERROR_NULL. A function is used by one thread at
 * a time; memory by any number. Link with -lquaject-vcode-layers; pkg-config knows the rest. */
#ifndef QUAJECT_VCODE_LAYERS_H
#define QUAJECT_VCODE_LAYERS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -- Errors -- */

/* Codes below 32 mean what those of `qjv_error` mean. */
enum qjl_status {
    QJL_OK = 0,
    QJL_ERROR_OVERFLOW = 1,         /* the function is longer than `bytes` */
    QJL_ERROR_LABELS = 2,           /* more labels than `labels`; floating constants take one, too */
    QJL_ERROR_FIXUPS = 3,           /* more references to labels that are not bound yet than `references` */
    QJL_ERROR_CONSTANTS = 4,        /* more different floating constants than `constants` */
    QJL_ERROR_UNBOUND_LABEL = 5,    /* a label was used and never bound */
    QJL_ERROR_BOUND_TWICE = 6,      /* a label was bound twice */
    QJL_ERROR_BRANCH_RANGE = 7,     /* a label is further away than a branch reaches */
    QJL_ERROR_IMMEDIATE = 8,        /* a constant or offset does not fit its type */
    QJL_ERROR_CALL_IN_LEAF = 9,     /* a function of the kind QJL_LEAF makes a call */
    QJL_ERROR_REGISTERS = 10,       /* no register of the class is free, or too many parameters */
    QJL_ERROR_SIGNATURE = 11,       /* a type string is malformed */
    QJL_ERROR_FRAME = 12,           /* variables and spilled registers take more than a megabyte */
    QJL_ERROR_FEATURE = 13,         /* an instruction needs features that are not allowed */
    QJL_ERROR_ARGUMENTS = 14,       /* arguments differ from the type string, or do not fit a tail call */
    QJL_ERROR_REGISTER_TAKEN = 15,
    QJL_ERROR_RESULT_PRESERVED = 16,
    QJL_ERROR_PLACE = 17,
    QJL_ERROR_PROCEDURE = 18,       /* qjl_jal calls a label that is not bound by qjl_procedure */
    QJL_ERROR_MEMORY = 32,          /* no memory */
    QJL_ERROR_NO_CODE_MEMORY = 33,  /* this system has no code memory */
    QJL_ERROR_OPTION = 34,          /* an option or number of an enum has an impossible value */
    QJL_ERROR_INSTRUCTION = 35,     /* no instruction has this number */
    QJL_ERROR_OPERANDS = 36,        /* operands are not of the number and kind that the instruction takes */
    QJL_ERROR_REGISTER_CLASS = 37,  /* an integer register where a floating one is wanted, or the reverse */
    QJL_ERROR_REGISTER = 38,        /* a register of another function, or one that was given back */
    QJL_ERROR_LABEL = 39,           /* a label of another function */
    QJL_ERROR_VARIABLE = 40,        /* a variable of another function, or an access outside of it */
    QJL_ERROR_ENDED = 41,           /* the function has ended */
    QJL_ERROR_NOT_ENDED = 42,       /* the function has not ended */
    QJL_ERROR_OTHER_MACHINE = 43,   /* the function is not for the machine that this program runs on */
    QJL_ERROR_NOT_INSTALLED = 44,   /* no function was installed at this address */
    QJL_ERROR_NO_FRAMES = 45,       /* no unwind information on this system */
    QJL_ERROR_NULL = 46,            /* a pointer is null */
    QJL_ERROR_INTERNAL = 47         /* an error of the library */
};

/* What a code means and what to do about it. The text is constant. */
const char *qjl_error_text(int status);

/* -- Functions -- */

/* A function, under construction or finished. */
typedef struct qjl_function qjl_function;

/* A register for integers and pointers, or one for floats and doubles. The members are not for the client. */
typedef struct qjl_reg { uint32_t index, function; } qjl_reg;
/* A place in the code. */
typedef struct qjl_label { uint32_t index, function; } qjl_label;
/* A place on the stack. */
typedef struct qjl_variable { uint32_t index, function; int32_t offset; } qjl_variable;

/* The machine that code is written for. */
enum qjl_machine {
    QJL_NATIVE, /* the one that this program runs on */
    QJL_X86_64,
    QJL_AARCH64,
    QJL_RISCV64,
    QJL_MIPS, /* o32, big-endian */
    QJL_SPARC64,
    QJL_ALPHA,
    QJL_PPC64LE
};

/* The layer that a function is written through. */
enum qjl_layer {
    /* Virtual registers: there are as many as one likes. One gets its place, a machine register or a slot of the stack
     * frame, when it is made, and keeps it until it is given back: make the most used ones first. */
    QJL_VIRTUAL,
    /* Machine registers, and a window over the last instructions: copies, constants, repeated loads and results without
     * a reader disappear. A register that was given back is not read before it is written again; one is read with the
     * type that it was written with; memory is not volatile: see qjl_flush(). */
    QJL_PEEPHOLE
};

/* Whether a function calls others. */
enum qjl_kind {
    QJL_CALLS, /* it may */
    QJL_LEAF   /* it does not: parameters stay where they arrive, and every register keeps its value */
};

/* Whether a register keeps its value across calls. */
enum qjl_class {
    QJL_TEMP, /* a call may destroy it */
    QJL_VAR,  /* it does */
    QJL_COLD  /* it does, and is on the stack from the start: for values that are seldom used. QJL_VIRTUAL only */
};

/* The types of Table 1 of the paper. */
enum qjl_type { QJL_C, QJL_UC, QJL_S, QJL_US, QJL_I, QJL_U, QJL_L, QJL_UL, QJL_P, QJL_F, QJL_D };

/* Zero means the default for every member. */
struct qjl_options {
    int machine; /* enum qjl_machine; QJL_NATIVE */
    int layer;   /* enum qjl_layer; QJL_VIRTUAL */
    int kind;    /* enum qjl_kind; QJL_CALLS */
    size_t bytes;      /* the longest code, prologue included: 4096; at most 2^30. On RISC-V and Power branches are
                          shorter in a function of at most 4 KiB and 32 KiB */
    size_t labels;     /* the most labels: 128 */
    size_t references; /* the most references to labels that are not bound yet: 512 */
    size_t constants;  /* the most different floating constants: 32 */
    uint64_t features; /* as qjl_use_features(): none */
};

/* Begins a function with parameters of these types, "%i%p%d", and stores their registers, of which there is room for
 * `count`: as many as there are types, otherwise the error is QJL_ERROR_ARGUMENTS. Options may be null. The function is
 * freed by qjl_free(); after an error it is null, which every other function refuses. */
int qjl_begin(
    const struct qjl_options *, const char *types, qjl_reg *parameters, size_t count, qjl_function **);

/* May be null. Functions that were installed stay. */
void qjl_free(qjl_function *);

/* The code of the first error so far. */
int qjl_error(const qjl_function *);
/* The last error: the call, the cause and the way out; empty if there was none. Valid until the function is used again
 * or freed. With QJL_PEEPHOLE the error of an instruction that is held back is noticed by a later call. For the null
 * function it is the last error of qjl_begin(), qjl_memory_new() and qjl_uninstall() in this thread. */
const char *qjl_message(const qjl_function *);

/* The code of a finished function. */
struct qjl_code {
    const unsigned char *bytes; /* valid until qjl_free(). Code can be executed anywhere at a multiple of 16 */
    size_t length;              /* instructions, and constants behind them */
    size_t entry;               /* where the function begins in `bytes`: below 16 */
    size_t instructions;        /* bytes of instructions from there */
};

/* Ends a function. The place for its code may be null. Returns the first error. */
int qjl_end(qjl_function *, struct qjl_code *);

/* -- Registers -- */

/* Makes a register for integers and pointers. With QJL_PEEPHOLE the error QJL_ERROR_REGISTERS says that none is free;
 * it does not stick. */
int qjl_getreg(qjl_function *, qjl_reg *, int register_class);
/* The same for floats and doubles. */
int qjl_getfloat(qjl_function *, qjl_reg *, int register_class);
/* Gives a register of either kind back; it must not be used any more. */
int qjl_putreg(qjl_function *, qjl_reg);
/* The number of the machine register it is in; -1 if it is on the stack, or after an error. */
int qjl_register_number(qjl_function *, qjl_reg);

/* -- Control flow -- */

/* Makes a label. */
qjl_label qjl_genlabel(qjl_function *);
/* Binds a label to the next instruction. */
int qjl_bind(qjl_function *, qjl_label);
/* Begins a local procedure, which qjl_jal() calls: binds the label and copies the return address to `link`, by which
 * qjl_jr() returns. */
int qjl_procedure(qjl_function *, qjl_label, qjl_reg link);
/* Jumps to the label that the unsigned long in `index` counts from zero; to `otherwise` if there is no such label. It
 * may be null if there is always one. */
int qjl_jump_table(qjl_function *, qjl_reg index, const qjl_label *labels, size_t count, const qjl_label *otherwise);

/* -- Variables on the stack -- */

/* A variable of a type (enum qjl_type): qjl_ldi_local() and the like load it, qjl_sti_local() and the like store it. */
qjl_variable qjl_local(qjl_function *, int type);
/* A block, aligned to 1, 2, 4, 8 or 16. */
qjl_variable qjl_local_bytes(qjl_function *, size_t bytes, size_t align);
/* The place so many bytes further in a block. An access must be within the block. */
static inline qjl_variable qjl_plus(qjl_variable variable, int32_t bytes) {
    variable.offset += bytes;
    return variable;
}
/* Puts the address of a variable into a register. */
int qjl_local_address(qjl_function *, qjl_reg d, qjl_variable);

/* -- Instructions -- */

enum qjl_operand_kind {
    QJL_IN_REGISTER,
    QJL_CONSTANT,
    QJL_AT_VARIABLE,
    QJL_AT_LABEL,
    QJL_AT_ADDRESS,
    QJL_ITSELF
};

/* An operand of an instruction, an argument or target of a call: made by the functions that follow. */
typedef struct qjl_operand {
    int kind; /* enum qjl_operand_kind */
    int32_t offset;
    uint32_t index, function;
    int64_t value;
} qjl_operand;

static inline qjl_operand qjl_in(qjl_reg reg) {
    const qjl_operand operand = {QJL_IN_REGISTER, 0, reg.index, reg.function, 0};
    return operand;
}
static inline qjl_operand qjl_value(int64_t value) {
    const qjl_operand operand = {QJL_CONSTANT, 0, 0, 0, value};
    return operand;
}
static inline qjl_operand qjl_at_variable(qjl_variable variable) {
    const qjl_operand operand = {QJL_AT_VARIABLE, variable.offset, variable.index, variable.function, 0};
    return operand;
}
static inline qjl_operand qjl_at_label(qjl_label label) {
    const qjl_operand operand = {QJL_AT_LABEL, 0, label.index, label.function, 0};
    return operand;
}
/* An address of the machine that the code is for. */
static inline qjl_operand qjl_at_address(uint64_t address) {
    const qjl_operand operand = {QJL_AT_ADDRESS, 0, 0, 0, (int64_t)address};
    return operand;
}
/* The function that is being written: recursion. */
static inline qjl_operand qjl_itself(void) {
    const qjl_operand operand = {QJL_ITSELF, 0, 0, 0, 0};
    return operand;
}
/* Floating constants as qjl_emit() takes them: their bits. */
static inline int64_t qjl_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return (int64_t)bits;
}
static inline int64_t qjl_double_bits(double value) {
    int64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

/* Adds any instruction, by its number. The functions qjl_addi(), qjl_addii() and so on do it for one instruction each:
 * the names are those of quaject/vcode.h. Constants that do not fit their type are errors, never cut. */
int qjl_emit(qjl_function *, int instruction, const qjl_operand *operands, size_t count);
/* The number of the instruction with this name, "addii"; -1 if there is none. */
int qjl_find_instruction(const char *name);
/* Allows instructions of these features of the processor from here on: those of qjl_detect_features() for functions
 * that run here. */
int qjl_use_features(qjl_function *, uint64_t features);
/* The features of the processor that this program runs on. */
uint64_t qjl_detect_features(void);
/* With QJL_PEEPHOLE, writes the instructions that are held back: between accesses to memory that other threads or
 * devices access too. */
int qjl_flush(qjl_function *);

/* -- Calls -- */

/* Calls a function with up to 32 arguments: registers of both kinds and constants. The target is qjl_at_address(),
 * qjl_in() or qjl_itself(). In the type string `...` stands where it stands in the prototype of a variadic function.
 * Registers of the class QJL_TEMP do not survive. */
int qjl_call(qjl_function *, const char *types, qjl_operand target, const qjl_operand *arguments, size_t count);
/* A call in place of the return: the frame is released first. All arguments travel in registers; the target is not the
 * function itself. */
int qjl_tail_call(qjl_function *, const char *types, qjl_operand target, const qjl_operand *arguments, size_t count);
/* Copies the result of the last call to a register: that of an integer or pointer, or of a float or double, as the
 * register is. The bits above a result of 8 or 16 bits are undefined: convert it with qjl_cvi2uc() or the like. */
int qjl_take_result(qjl_function *, qjl_reg d);

/* -- Arithmetic with constants: strength reduction -- */

/* d = s * constant, d = s / constant and d = s % constant, as shifts, additions and multiplications, exact for every
 * constant. The type is QJL_I, QJL_U, QJL_L or QJL_UL. Division by zero has the behaviour of the machine. */
int qjl_multiply(qjl_function *, int type, qjl_reg d, qjl_reg s, int64_t constant);
int qjl_divide(qjl_function *, int type, qjl_reg d, qjl_reg s, int64_t constant);
int qjl_modulo(qjl_function *, int type, qjl_reg d, qjl_reg s, int64_t constant);

#define QJL_BY_TYPE(suffix, type, constant_type) \
    static inline int qjl_mulk##suffix(qjl_function *f, qjl_reg d, qjl_reg s, constant_type value) { \
        return qjl_multiply(f, type, d, s, (int64_t)value); \
    } \
    static inline int qjl_divk##suffix(qjl_function *f, qjl_reg d, qjl_reg s, constant_type value) { \
        return qjl_divide(f, type, d, s, (int64_t)value); \
    } \
    static inline int qjl_modk##suffix(qjl_function *f, qjl_reg d, qjl_reg s, constant_type value) { \
        return qjl_modulo(f, type, d, s, (int64_t)value); \
    }
/* qjl_mulki(), qjl_divki(), qjl_modki() and those of the other three types. */
QJL_BY_TYPE(i, QJL_I, int64_t)
QJL_BY_TYPE(u, QJL_U, int64_t)
QJL_BY_TYPE(l, QJL_L, int64_t)
QJL_BY_TYPE(ul, QJL_UL, uint64_t)
#undef QJL_BY_TYPE

/* -- Code memory -- */

/* Memory for functions of this machine. It is mapped twice, once writable and once executable; a forked child has a
 * copy of its own. Pages that are not used take no memory. */
typedef struct qjl_memory qjl_memory;

int qjl_memory_new(size_t bytes, qjl_memory **);
/* May be null. Frees the functions in it, too. */
void qjl_memory_free(qjl_memory *);
/* Copies a finished function to memory and stores its address there. It can be installed more than once. */
int qjl_install(qjl_function *, qjl_memory *, void **function);
/* Frees a function that qjl_install() stored; null has no effect. It must not be called any more, and what
 * qjl_frames_register() made for it must be freed before. */
int qjl_uninstall(qjl_memory *, const void *function);

/* -- Unwinding -- */

/* Unwind information that the program knows. */
typedef struct qjl_frames qjl_frames;

/* Makes exceptions of C++ and backtraces (_Unwind_Backtrace, backtrace) go through a function that was installed at
 * this address. The unwinder is that of libgcc. */
int qjl_frames_register(qjl_function *, const void *function, qjl_frames **);
/* May be null. The function that it describes must not be running. */
void qjl_frames_free(qjl_frames *);
/* The section .eh_frame for a function that is executed at an address, of this machine or another: for
 * __register_frame() there. Valid until the next call or qjl_free(). */
int qjl_call_frames(qjl_function *, uint64_t address, const unsigned char **bytes, size_t *length);

#include "vcode/generated/layers.h"

#ifdef __cplusplus
}
#endif

#endif
