/* The kernel as a peer: a program with a map, run by BPF_PROG_TEST_RUN, which returns the time of a run. */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdint.h>
#include <stdlib.h>

/* A key as the program has it, in network order. */
struct peer_key {
    uint32_t source, destination, ports;
};

struct peer_xdp {
    struct bpf_object *object;
    int look_up, nothing;
};

/* Keys get numbers from one on. */
void *peer_xdp_new(const void *object, size_t length, const struct peer_key *keys, uint32_t count) {
    struct peer_xdp *peer = calloc(1, sizeof *peer);
    peer->object = bpf_object__open_mem(object, length, NULL);
    if (peer->object == NULL) return NULL;
    struct bpf_map *map = bpf_object__find_map_by_name(peer->object, "tuples");
    if (map == NULL || bpf_map__set_max_entries(map, count) != 0 || bpf_object__load(peer->object) != 0) return NULL;
    for (uint32_t at = 0; at < count; at++) {
        uint32_t number = at + 1;
        if (bpf_map__update_elem(map, &keys[at], sizeof keys[at], &number, sizeof number, BPF_ANY) != 0) return NULL;
    }
    peer->look_up = bpf_program__fd(bpf_object__find_program_by_name(peer->object, "look_up"));
    peer->nothing = bpf_program__fd(bpf_object__find_program_by_name(peer->object, "nothing"));
    return peer;
}

void peer_xdp_free(void *context) {
    struct peer_xdp *peer = context;
    bpf_object__close(peer->object);
    free(peer);
}

/* Runs a program so many times; what it returns, and nanoseconds of a run as the kernel has measured them. */
int peer_xdp_run(void *context, int nothing, const uint8_t *packet, uint32_t length, uint32_t times, uint32_t *result,
                 uint32_t *nanoseconds) {
    struct peer_xdp *peer = context;
    LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = packet, .data_size_in = length, .repeat = (int)times);
    int status = bpf_prog_test_run_opts(nothing ? peer->nothing : peer->look_up, &options);
    *result = options.retval;
    *nanoseconds = options.duration;
    return status;
}
