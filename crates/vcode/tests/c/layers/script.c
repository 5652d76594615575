/* Writes functions as a script says and prints their bytes: the other half is in Rust. A line is a command, its words
   are numbers except for type strings. Registers, labels and variables are numbered in the order in which they are made. */
#include <quaject/vcode-layers.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { MAX_OBJECTS = 256 };
static qjl_function *f;
static qjl_reg regs[MAX_OBJECTS];
static qjl_label labels[MAX_OBJECTS];
static qjl_variable variables[MAX_OBJECTS];
static size_t reg_count, label_count, variable_count;

static void stop(const char *what) {
    fprintf(stderr, "%s: %s\n", what, f ? qjl_message(f) : "");
    exit(1);
}

static int64_t number(void) {
    int64_t value;
    if (scanf("%" SCNd64, &value) != 1) stop("a number is missing");
    return value;
}

static size_t below(size_t count) {
    const size_t index = (size_t)number();
    if (index >= count) stop("no such object");
    return index;
}

static qjl_reg reg(void) { return regs[below(reg_count)]; }

/* `r N`, `c VALUE`, `v N OFFSET`, `l N`, `a ADDRESS`, `i` */
static qjl_operand operand(void) {
    char kind;
    if (scanf(" %c", &kind) != 1) stop("an operand is missing");
    switch (kind) {
    case 'r': return qjl_in(reg());
    case 'c': return qjl_value(number());
    case 'v': {
        const qjl_variable variable = variables[below(variable_count)];
        return qjl_at_variable(qjl_plus(variable, (int32_t)number()));
    }
    case 'l': return qjl_at_label(labels[below(label_count)]);
    case 'a': return qjl_at_address((uint64_t)number());
    case 'i': return qjl_itself();
    default: stop("no such operand");
    }
    return qjl_itself();
}

static size_t operands(qjl_operand *list) {
    const size_t count = (size_t)number();
    for (size_t index = 0; index < count && index < 32; index++) list[index] = operand();
    return count;
}

static void begin(void) {
    struct qjl_options options = {0};
    char types[64];
    options.machine = (int)number();
    options.layer = (int)number();
    options.kind = (int)number();
    options.bytes = (size_t)number();
    options.features = (uint64_t)number();
    reg_count = (size_t)number();
    label_count = variable_count = 0;
    if (scanf("%63s", types) != 1 || qjl_begin(&options, types, regs, reg_count, &f)) stop("begin");
}

static void end(void) {
    struct qjl_code code;
    if (qjl_end(f, &code)) stop("end");
    for (size_t at = code.entry; at < code.length; at++) printf("%02x", code.bytes[at]);
    putchar('\n');
    qjl_free(f);
    f = NULL;
}

int main(void) {
    char command[16], types[128];
    qjl_operand list[32], target;
    while (scanf("%15s", command) == 1) {
        int status = QJL_OK;
        if (reg_count >= MAX_OBJECTS || label_count >= MAX_OBJECTS || variable_count >= MAX_OBJECTS) stop("too many");
        switch (command[0]) {
        case 'B': begin(); break;
        case 'E': end(); break;
        case 'I': status = qjl_getreg(f, &regs[reg_count++], (int)number()); break;
        case 'F': status = qjl_getfloat(f, &regs[reg_count++], (int)number()); break;
        case 'P': status = qjl_putreg(f, reg()); break;
        case 'L': labels[label_count++] = qjl_genlabel(f); break;
        case 'b': status = qjl_bind(f, labels[below(label_count)]); break;
        case 'p': {
            const qjl_label label = labels[below(label_count)];
            status = qjl_procedure(f, label, reg());
            break;
        }
        case 'V': {
            const size_t bytes = (size_t)number();
            variables[variable_count++] = qjl_local_bytes(f, bytes, (size_t)number());
            break;
        }
        case 'A': {
            const qjl_reg d = reg();
            status = qjl_local_address(f, d, variables[below(variable_count)]);
            break;
        }
        case 'e': {
            const int instruction = (int)number();
            const size_t count = operands(list);
            status = qjl_emit(f, instruction, list, count);
            break;
        }
        case 'c':
        case 't': {
            if (scanf("%127s", types) != 1) stop("types are missing");
            if (strcmp(types, "-") == 0) types[0] = 0;
            target = operand();
            const size_t count = operands(list);
            status = command[0] == 'c' ? qjl_call(f, types, target, list, count)
                                       : qjl_tail_call(f, types, target, list, count);
            break;
        }
        case 'r': status = qjl_take_result(f, reg()); break;
        case 's': {
            const int operation = (int)number(), type = (int)number();
            const qjl_reg d = reg(), s = reg();
            const int64_t constant = number();
            status = operation == 0   ? qjl_multiply(f, type, d, s, constant)
                     : operation == 1 ? qjl_divide(f, type, d, s, constant)
                                      : qjl_modulo(f, type, d, s, constant);
            break;
        }
        case 'j': {
            const qjl_reg index = reg();
            status = qjl_jump_table(f, index, labels, label_count, &labels[0]);
            break;
        }
        default: stop(command);
        }
        if (status) stop(command);
    }
    return 0;
}
