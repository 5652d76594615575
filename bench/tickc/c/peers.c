/* The dot product of `programs.tc` by peers: as text to libtcc, and as calls to libgccjit. Each makes the function and
 * frees it; the result is that of one use. */
#include <stdio.h>
#include <stdlib.h>

#include "programs.h"

#ifdef HAS_LIBTCC
#include <libtcc.h>

long libtcc_dot(long uses) {
    static char text[4096];
    int length = sprintf(text, "int dot(const int *c) { return 0");
    TCCState *state;
    int (*dot)(const int *);
    long sum = 0;
    for (int k = 0; k < ENTRIES; k++)
        if (dp_row[k]) length += sprintf(text + length, " + c[%d] * %d", k, dp_row[k]);
    sprintf(text + length, "; }");
    state = tcc_new();
    tcc_set_options(state, "-nostdlib");
    tcc_set_output_type(state, TCC_OUTPUT_MEMORY);
    if (tcc_compile_string(state, text) < 0 || tcc_relocate(state, TCC_RELOCATE_AUTO) < 0) abort();
    dot = (int (*)(const int *))tcc_get_symbol(state, "dot");
    while (uses--) sum += dot(dp_column);
    tcc_delete(state);
    return sum;
}
#endif

#ifdef HAS_LIBGCCJIT
#include <libgccjit.h>

long libgccjit_dot(long uses) {
    gcc_jit_context *context = gcc_jit_context_acquire();
    gcc_jit_type *type, *pointer;
    gcc_jit_param *column;
    gcc_jit_function *function;
    gcc_jit_block *block;
    gcc_jit_rvalue *value;
    gcc_jit_result *result;
    int (*dot)(const int *);
    long sum = 0;
    gcc_jit_context_set_int_option(context, GCC_JIT_INT_OPTION_OPTIMIZATION_LEVEL, 2);
    type = gcc_jit_context_get_type(context, GCC_JIT_TYPE_INT);
    pointer = gcc_jit_type_get_pointer(type);
    column = gcc_jit_context_new_param(context, 0, pointer, "c");
    function = gcc_jit_context_new_function(context, 0, GCC_JIT_FUNCTION_EXPORTED, type, "dot", 1, &column, 0);
    block = gcc_jit_function_new_block(function, 0);
    value = gcc_jit_context_zero(context, type);
    for (int k = 0; k < ENTRIES; k++) {
        gcc_jit_rvalue *index, *entry, *product;
        if (!dp_row[k]) continue;
        index = gcc_jit_context_new_rvalue_from_int(context, type, k);
        entry = gcc_jit_lvalue_as_rvalue(
            gcc_jit_context_new_array_access(context, 0, gcc_jit_param_as_rvalue(column), index));
        product = gcc_jit_context_new_binary_op(context, 0, GCC_JIT_BINARY_OP_MULT, type, entry,
                                                gcc_jit_context_new_rvalue_from_int(context, type, dp_row[k]));
        value = gcc_jit_context_new_binary_op(context, 0, GCC_JIT_BINARY_OP_PLUS, type, value, product);
    }
    gcc_jit_block_end_with_return(block, 0, value);
    result = gcc_jit_context_compile(context);
    if (!result) abort();
    dot = (int (*)(const int *))gcc_jit_result_get_code(result, "dot");
    while (uses--) sum += dot(dp_column);
    gcc_jit_result_release(result);
    gcc_jit_context_release(context);
    return sum;
}
#endif
