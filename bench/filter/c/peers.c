/* What DPDK offers for the question: rte_acl, a classifier for rules of fields, and rte_bpf, which compiles programs of
 * the BSD packet filter to machine code. Answers are numbers of filters from one on; zero is none. */
#include <pcap/pcap.h>
#include <rte_acl.h>
#include <rte_bpf.h>
#include <rte_eal.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int peers_start(void) {
    /* Without the last one the library never uses vectors of 512 bits, not even if it is set to. */
    char *arguments[] = {"bench", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m", "512",
                         "-l", "0", "--force-max-simd-bitwidth=512", NULL};
    return rte_eal_init(10, arguments) < 0 ? -1 : 0;
}

/* Exact five-tuples: protocol first, then addresses, then both ports as one input word, as the library wants it. */
enum { FIELDS = 5 };
RTE_ACL_RULE_DEF(tuple_rule, FIELDS);

static struct rte_acl_field_def definitions[FIELDS] = {
    {.type = RTE_ACL_FIELD_TYPE_BITMASK, .size = 1, .field_index = 0, .input_index = 0, .offset = 23},
    {.type = RTE_ACL_FIELD_TYPE_MASK, .size = 4, .field_index = 1, .input_index = 1, .offset = 26},
    {.type = RTE_ACL_FIELD_TYPE_MASK, .size = 4, .field_index = 2, .input_index = 2, .offset = 30},
    {.type = RTE_ACL_FIELD_TYPE_RANGE, .size = 2, .field_index = 3, .input_index = 3, .offset = 34},
    {.type = RTE_ACL_FIELD_TYPE_RANGE, .size = 2, .field_index = 4, .input_index = 3, .offset = 36},
};

/* A rule: addresses with the lengths of their prefixes, ranges of ports, protocol or none. In host order. */
struct peer_rule {
    uint32_t source, destination;
    uint32_t source_bits, destination_bits;
    uint16_t source_low, source_high, destination_low, destination_high;
    uint32_t protocol, any_protocol;
};

void *peer_acl_new(const struct peer_rule *rules, uint32_t count) {
    /* Of one name there is one context. */
    static unsigned number;
    char name[16];
    snprintf(name, sizeof name, "bench%u", number++);
    struct rte_acl_param parameters = {
        .name = name, .socket_id = -1, .rule_size = RTE_ACL_RULE_SZ(FIELDS), .max_rule_num = count};
    struct rte_acl_ctx *context = rte_acl_create(&parameters);
    if (context == NULL) return NULL;
    for (uint32_t at = 0; at < count; at++) {
        const struct peer_rule *own = &rules[at];
        struct tuple_rule rule = {.data = {.userdata = at + 1, .category_mask = 1, .priority = (int)(count - at)}};
        rule.field[0].value.u8 = (uint8_t)own->protocol;
        rule.field[0].mask_range.u8 = own->any_protocol ? 0 : 0xff;
        rule.field[1].value.u32 = own->source;
        rule.field[1].mask_range.u32 = own->source_bits;
        rule.field[2].value.u32 = own->destination;
        rule.field[2].mask_range.u32 = own->destination_bits;
        rule.field[3].value.u16 = own->source_low;
        rule.field[3].mask_range.u16 = own->source_high;
        rule.field[4].value.u16 = own->destination_low;
        rule.field[4].mask_range.u16 = own->destination_high;
        if (rte_acl_add_rules(context, (struct rte_acl_rule *)&rule, 1) != 0) return NULL;
    }
    struct rte_acl_config config = {.num_categories = 1, .num_fields = FIELDS};
    memcpy(config.defs, definitions, sizeof definitions);
    if (rte_acl_build(context, &config) != 0) return NULL;
    return context;
}

/* Vectors of 256 bits are what the library chooses by itself where there are such; those of 512 must be asked for. */
int peer_acl_choose(void *context, int wide) {
    return rte_acl_set_ctx_classify(context, wide ? RTE_ACL_CLASSIFY_AVX512X32 : RTE_ACL_CLASSIFY_AVX2);
}

void peer_acl_free(void *context) { rte_acl_free(context); }

void peer_acl_classify(void *context, const uint8_t **packets, uint32_t *found, uint32_t count, uint32_t batch) {
    for (uint32_t at = 0; at < count; at += batch)
        rte_acl_classify(context, packets + at, found + at, batch, 1);
}

/* Programs: converted, loaded and compiled one by one; the caller asks one after the other. */
struct peer_bpf {
    uint32_t count;
    struct rte_bpf **programs;
    struct rte_bpf_jit *code;
};

void *peer_bpf_new(struct bpf_program *programs, uint32_t count) {
    struct peer_bpf *all = calloc(1, sizeof *all);
    all->count = count;
    all->programs = calloc(count, sizeof *all->programs);
    all->code = calloc(count, sizeof *all->code);
    for (uint32_t at = 0; at < count; at++) {
        struct rte_bpf_prm *converted = rte_bpf_convert(&programs[at]);
        if (converted == NULL) return NULL;
        all->programs[at] = rte_bpf_load(converted);
        rte_free(converted);
        if (all->programs[at] == NULL || rte_bpf_get_jit(all->programs[at], &all->code[at]) != 0 ||
            all->code[at].func == NULL)
            return NULL;
    }
    return all;
}

void peer_bpf_free(void *context) {
    struct peer_bpf *all = context;
    for (uint32_t at = 0; at < all->count; at++) rte_bpf_destroy(all->programs[at]);
    free(all->programs);
    free(all->code);
    free(all);
}

/* A packet as DPDK has it: the data is in the caller's memory. */
void peer_bpf_classify(void *context, const uint8_t **packets, uint32_t length, uint32_t *found, uint32_t count) {
    struct peer_bpf *all = context;
    struct rte_mbuf buffer;
    memset(&buffer, 0, sizeof buffer);
    buffer.data_len = buffer.pkt_len = length;
    buffer.nb_segs = 1;
    for (uint32_t at = 0; at < count; at++) {
        buffer.buf_addr = (void *)packets[at];
        found[at] = 0;
        for (uint32_t own = 0; own < all->count; own++) {
            if (all->code[own].func(&buffer) != 0) {
                found[at] = own + 1;
                break;
            }
        }
    }
}
