/* The workload on libtcc: C text to machine code in memory. A state serves for one program. */
#include <libtcc.h>
#include <stddef.h>

size_t tcc_function(const char *text, const char *name) {
    static TCCState *state;
    if (state) tcc_delete(state);
    state = tcc_new();
    if (!state) return 0;
    tcc_set_options(state, "-nostdlib");
    tcc_set_output_type(state, TCC_OUTPUT_MEMORY);
    if (tcc_compile_string(state, text) < 0 || tcc_relocate(state, TCC_RELOCATE_AUTO) < 0) return 0;
    return (size_t)tcc_get_symbol(state, name);
}
