/* Everything that quaject/pipe.h declares, compared with loops written here. Says "ok" if all is as it should be. */
#include <pthread.h>
#include <quaject/pipe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, qj_pipe_message());                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* Whether the last error says so. */
static int says(const char *part) { return strstr(qj_pipe_message(), part) != NULL; }

static uint16_t checksum(const unsigned char *data, size_t bytes) {
    uint64_t sum = 0;
    for (size_t at = 0; at < bytes; at++) sum += at % 2 ? data[at] : (uint64_t)data[at] << 8;
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void swap32(unsigned char *data, size_t bytes) {
    for (size_t at = 0; at + 4 <= bytes; at += 4) {
        unsigned char a = data[at], b = data[at + 1];
        data[at] = data[at + 3], data[at + 1] = data[at + 2], data[at + 2] = b, data[at + 3] = a;
    }
}

static void fill(unsigned char *data, size_t bytes) {
    static uint32_t state = 1;
    for (size_t at = 0; at < bytes; at++) data[at] = (unsigned char)((state = state * 1664525 + 1013904223) >> 24);
}

static struct qj_pipe *pipe_of(const char *text) {
    struct qj_pipe *pipe = NULL;
    CHECK(qj_pipe_of_text(text, NULL, &pipe) == QJ_PIPE_OK);
    return pipe;
}

static void runs(void) {
    struct qj_pipe *pipe = pipe_of("copy | checksum | swap32");
    CHECK(qj_pipe_writes(pipe) && qj_pipe_streams(pipe) == 0);
    struct qj_runner *runner = qj_runner_new(pipe);
    qj_pipe_free(pipe); /* the runner keeps it */
    for (size_t bytes = 0; bytes <= 300; bytes++) {
        /* As long as they have to be: a byte too far is one that the sanitizer sees. */
        unsigned char *source = malloc(bytes + 1), *target = malloc(bytes + 1), *expected = malloc(bytes + 1);
        source++, target++;
        fill(source, bytes);
        memcpy(expected, source, bytes);
        swap32(expected, bytes);
        for (int store = QJ_STORE_CHOSEN; store <= QJ_STORE_STREAMING; store++) {
            for (int temperature = QJ_UNKNOWN; temperature <= QJ_COLD; temperature++) {
                struct qj_run_options options = {.temperature = temperature, .store = store};
                const struct qj_pipe_report *report;
                memset(target, 0x5a, bytes);
                CHECK(qj_runner_run(runner, source, target, bytes, &options, &report) == QJ_PIPE_OK);
                uint16_t sum;
                CHECK(qj_pipe_checksum(report, &sum) && sum == checksum(source, bytes));
                CHECK(report->steps == 3 && report->findings[0] == QJ_FOUND_NOTHING);
                CHECK(memcmp(target, expected, bytes) == 0);
            }
        }
        /* In place; and piece by piece, without options. */
        CHECK(qj_runner_run(runner, target, target, bytes, NULL, NULL) == QJ_PIPE_OK);
        CHECK(memcmp(target, source, bytes) == 0);
        qj_runner_begin(runner);
        size_t first = bytes / 2 / 8 * 8;
        CHECK(qj_runner_piece(runner, source, target, first, NULL) == QJ_PIPE_OK);
        CHECK(qj_runner_piece(runner, source + first, target + first, bytes - first, NULL) == QJ_PIPE_OK);
        const struct qj_pipe_report *report = qj_runner_end(runner);
        uint16_t sum;
        CHECK(qj_pipe_checksum(report, &sum) && sum == checksum(source, bytes));
        CHECK(memcmp(target, expected, bytes) == 0);
        /* From three places to two. */
        memset(target, 0, bytes);
        size_t third = bytes / 3;
        struct qj_part sources[] = {{source, third}, {source + third, third}, {source + 2 * third, bytes - 2 * third}};
        struct qj_part targets[] = {{target, bytes / 2}, {target + bytes / 2, bytes - bytes / 2}};
        CHECK(qj_runner_run_parts(runner, sources, 3, targets, 2, NULL, &report) == QJ_PIPE_OK);
        CHECK(qj_pipe_checksum(report, &sum) && sum == checksum(source, bytes));
        CHECK(memcmp(target, expected, bytes) == 0);
        free(source - 1), free(target - 1), free(expected);
    }
    qj_runner_free(runner);
}

static void builder(void) {
    struct qj_step steps[] = {
        {.kind = QJ_STEP_COPY},
        {.kind = QJ_STEP_XOR, .key = {1, 2, 3, 4}, .key_bytes = 4},
        {.kind = QJ_STEP_XOR_STREAM},
        {.kind = QJ_STEP_CRC32C},
        {.kind = QJ_STEP_COUNT},
        {.kind = QJ_STEP_SWAP16},
        {.kind = QJ_STEP_SWAP32},
        {.kind = QJ_STEP_SWAP64},
    };
    struct qj_pipe *pipe;
    CHECK(qj_pipe_of_steps(steps, 8, NULL, &pipe) == QJ_PIPE_OK);
    CHECK(qj_pipe_streams(pipe) == 1);
    struct qj_runner *runner = qj_runner_new(pipe);
    unsigned char source[16] = "0123456789abcdef", stream[16], target[16], expected[16];
    fill(stream, 16);
    for (size_t at = 0; at < 16; at++) expected[at] = source[at] ^ (unsigned char)(at % 4 + 1) ^ stream[at];
    const void *streams[] = {stream};
    struct qj_run_options options = {.streams = streams, .stream_count = 1};
    const struct qj_pipe_report *report;
    CHECK(qj_runner_run(runner, source, target, 16, &options, &report) == QJ_PIPE_OK);
    uint64_t count, crc;
    CHECK(qj_pipe_found(report, QJ_FOUND_COUNT, &count) && count == 16);
    CHECK(!qj_pipe_found(report, QJ_FOUND_TOTAL, &count));
    CHECK(qj_pipe_found(report, QJ_FOUND_CRC32C, &crc));
    uint32_t bits = UINT32_MAX;
    for (size_t at = 0; at < 16; at++) {
        bits ^= expected[at];
        for (int bit = 0; bit < 8; bit++) bits = bits >> 1 ^ (bits & 1 ? 0x82f63b78 : 0);
    }
    CHECK((uint32_t)crc == (uint32_t)~bits);
    /* Swaps of 2, 4 and 8: bytes change places within eight. */
    for (size_t at = 0; at < 16; at++) {
        size_t from = at ^ 1 ^ 3 ^ 7;
        CHECK(target[at] == expected[from]);
    }
    char *text = qj_pipe_explain(pipe);
    CHECK(strstr(text, "copy | xor 0x01020304") == text);
    qj_pipe_text_free(text);
    qj_runner_free(runner);
    qj_pipe_free(pipe);
}

static const char USER_STEPS[] = "step bump u32be\n"
                          "  add r0, r0, 1\n"
                          "  total max r0\n"
                          "end\n"
                          "handler store\n"
                          "  if lt r0, 2, wrong\n"
                          "  load u16be r1, 0\n"
                          "  deliver 0, 2, r1, 0, 0\n"
                          "  result r2, 1\n"
                          "  send u16be r2\n"
                          "  accept\n"
                          "wrong:\n"
                          "  drop\n"
                          "end\n"
                          "handler forever\n"
                          "again:\n"
                          "  goto again\n"
                          "end\n";

static void definitions(void) {
    struct qj_definitions *own;
    CHECK(qj_definitions_read(USER_STEPS, &own) == QJ_PIPE_OK);
    struct qj_step steps[] = {{.kind = QJ_STEP_USER, .name = "bump"}};
    struct qj_pipe *pipe, *same;
    CHECK(qj_pipe_of_steps(steps, 1, own, &pipe) == QJ_PIPE_OK);
    CHECK(qj_pipe_of_text("bump", own, &same) == QJ_PIPE_OK);
    unsigned char words[] = {0, 0, 0, 7, 0, 0, 0, 5}, bumped[] = {0, 0, 0, 8, 0, 0, 0, 6}, target[8];
    struct qj_pipe *both[] = {pipe, same};
    for (int at = 0; at < 2; at++) {
        struct qj_runner *runner = qj_runner_new(both[at]);
        const struct qj_pipe_report *report;
        uint64_t total;
        CHECK(qj_runner_run(runner, words, target, 8, NULL, &report) == QJ_PIPE_OK);
        CHECK(memcmp(target, bumped, 8) == 0);
        CHECK(qj_pipe_found(report, QJ_FOUND_TOTAL, &total) && total == 8);
        qj_runner_free(runner);
        qj_pipe_free(both[at]);
    }

    struct qj_pipe *sum = pipe_of("copy | checksum");
    const struct qj_pipe *pipes[] = {sum};
    struct qj_handler *store, *forever;
    CHECK(qj_handler_new(own, "store", pipes, 1, 1, &store) == QJ_PIPE_OK);
    CHECK(qj_handler_new(own, "forever", NULL, 0, 0, &forever) == QJ_PIPE_OK);
    qj_pipe_free(sum);
    unsigned char message[] = {0, 4, 'a', 'b', 'c', 'd'}, buffer[5] = {0};
    struct qj_part buffers[] = {{buffer, 5}};
    struct qj_handled handled;
    CHECK(qj_handler_run(store, message, 6, buffers, 1, 100, &handled) == QJ_PIPE_OK);
    uint16_t expected = (uint16_t)~checksum(message + 2, 4);
    unsigned char reply[] = {(unsigned char)(expected >> 8), (unsigned char)expected};
    CHECK(handled.verdict == QJ_ACCEPTED && handled.reply_bytes == 2 && memcmp(handled.reply, reply, 2) == 0);
    CHECK(memcmp(buffer, "abcd\0", 5) == 0);
    /* Too short for a length; one that is not there; a buffer too small; no fuel. */
    CHECK(qj_handler_run(store, message, 1, buffers, 1, 100, &handled) == QJ_PIPE_OK);
    CHECK(handled.verdict == QJ_DROPPED && handled.reply_bytes == 0);
    CHECK(qj_handler_run(store, message, 5, buffers, 1, 100, &handled) == QJ_PIPE_OK);
    CHECK(handled.verdict == QJ_REJECTED && handled.instruction == 2 && handled.reply_bytes == 0);
    buffers[0].bytes = 3;
    CHECK(qj_handler_run(store, message, 6, buffers, 1, 100, &handled) == QJ_PIPE_OK);
    CHECK(handled.verdict == QJ_REJECTED && handled.instruction == 2);
    CHECK(qj_handler_run(store, message, 6, buffers, 1, 2, &handled) == QJ_PIPE_OK);
    CHECK(handled.verdict == QJ_OUT_OF_FUEL);
    CHECK(qj_handler_run(forever, NULL, 0, NULL, 0, 1000000, &handled) == QJ_PIPE_OK);
    CHECK(handled.verdict == QJ_OUT_OF_FUEL);
    CHECK(qj_handler_run(store, message, 6, NULL, 0, 100, &handled) == QJ_PIPE_BUFFERS);
    struct qj_part shared = {(void *)(uintptr_t)(message + 2), 4};
    CHECK(qj_handler_run(store, message, 6, &shared, 1, 100, &handled) == QJ_PIPE_OVERLAP);
    qj_handler_free(store), qj_handler_free(forever);

    struct qj_handler *none = NULL;
    CHECK(qj_handler_new(own, "stor", NULL, 0, 0, &none) == QJ_PIPE_UNKNOWN && says("there are store, forever"));
    CHECK(qj_handler_new(own, "store", NULL, 0, 1, &none) == QJ_PIPE_VERIFY && says("pipe"));
    CHECK(none == NULL);
    qj_definitions_free(own);
}

static const char FLOAT_STEPS[] = "step calibrate u16le\n"
                                  "  cvt.f32.i16 r0, r0\n"
                                  "  mul.f32 r0, r0, 1.1\n"
                                  "  add.f32 r0, r0, -0.5\n"
                                  "  max.f32 r0, r0, -1000\n"
                                  "  min.f32 r0, r0, 1000\n"
                                  "  total add.f32 r0\n"
                                  "  cvt.i16.f32 r0, r0\n"
                                  "end\n"
                                  "step root u64le\n"
                                  "  sqrt.f64 r1, r0\n"
                                  "  div.f64 r0, r1, 3\n"
                                  "  total add.f64 r0\n"
                                  "end\n"
                                  "handler mean\n"
                                  "  set.f32 r2, 0\n"
                                  "again:\n"
                                  "  if ge r1, r0, done\n"
                                  "  load u16be r3, r1\n"
                                  "  cvt.f32.i16 r3, r3\n"
                                  "  add.f32 r2, r2, r3\n"
                                  "  add r1, r1, 2\n"
                                  "  goto again\n"
                                  "done:\n"
                                  "  shr r3, r0, 1\n"
                                  "  cvt.f32.u64 r3, r3\n"
                                  "  div.f32 r2, r2, r3\n"
                                  "  eq.f32 r3, r2, r2\n"
                                  "  if eq r3, 0, wrong   # not a number\n"
                                  "  send u32be r2\n"
                                  "  accept\n"
                                  "wrong:\n"
                                  "  drop\n"
                                  "end\n";

static float limited(float x) { return x < -1000 ? -1000 : x > 1000 ? 1000 : x; }

/* Floating-point numbers in steps and handlers, as the compiler of this program computes them. */
static void floats(void) {
    enum { SAMPLES = 33 };
    struct qj_definitions *own;
    CHECK(qj_definitions_read(FLOAT_STEPS, &own) == QJ_PIPE_OK);
    struct qj_pipe *calibrate, *root;
    CHECK(qj_pipe_of_text("calibrate", own, &calibrate) == QJ_PIPE_OK);
    CHECK(qj_pipe_of_text("root", own, &root) == QJ_PIPE_OK);
    const struct qj_pipe_report *report;
    uint64_t total;
    struct qj_runner *runner = qj_runner_new(calibrate);
    for (size_t count = 0; count <= SAMPLES; count++) {
        int16_t samples[SAMPLES], target[SAMPLES];
        float sum = 0;
        fill((unsigned char *)samples, sizeof samples);
        for (size_t at = 0; at < count; at += 2) samples[at] /= 40;
        CHECK(qj_runner_run(runner, samples, target, 2 * count, NULL, &report) == QJ_PIPE_OK);
        for (size_t at = 0; at < count; at++) {
            float scaled = (float)samples[at] * 1.1f;
            float expected = limited(scaled - 0.5f);
            sum += expected;
            CHECK(target[at] == (int16_t)expected);
        }
        CHECK(qj_pipe_found(report, QJ_FOUND_TOTAL, &total) && qj_pipe_f32(total) == sum);
    }
    qj_runner_free(runner);
    runner = qj_runner_new(root);
    double numbers[] = {2, 0.1, 1e300, 5e-324, 0}, roots[5];
    /* Square roots of these, by multiplication: none of them is off by more than one bit. */
    CHECK(qj_runner_run(runner, numbers, roots, sizeof numbers, NULL, &report) == QJ_PIPE_OK);
    double sum = 0;
    for (int at = 0; at < 5; at++) {
        double square = 9 * roots[at] * roots[at];
        CHECK(square >= numbers[at] * (1 - 1e-15) && square <= numbers[at] * (1 + 1e-15) + 5e-324);
        sum += roots[at];
    }
    CHECK(qj_pipe_found(report, QJ_FOUND_TOTAL, &total) && qj_pipe_f64(total) == sum);
    qj_runner_free(runner), qj_pipe_free(calibrate), qj_pipe_free(root);

    struct qj_handler *mean;
    CHECK(qj_handler_new(own, "mean", NULL, 0, 0, &mean) == QJ_PIPE_OK);
    unsigned char message[] = {0, 1, 0xff, 0xf8, 0, 2}; /* 1, -8, 2 */
    struct qj_handled handled;
    CHECK(qj_handler_run(mean, message, 6, NULL, 0, 100, &handled) == QJ_PIPE_OK);
    float expected = -5.0f / 3;
    uint32_t bits;
    memcpy(&bits, &expected, 4);
    unsigned char reply[] = {(unsigned char)(bits >> 24), (unsigned char)(bits >> 16), (unsigned char)(bits >> 8),
                             (unsigned char)bits};
    CHECK(handled.verdict == QJ_ACCEPTED && handled.reply_bytes == 4 && memcmp(handled.reply, reply, 4) == 0);
    CHECK(qj_handler_run(mean, NULL, 0, NULL, 0, 100, &handled) == QJ_PIPE_OK);
    CHECK(handled.verdict == QJ_DROPPED); /* the mean of nothing */
    qj_handler_free(mean);
    qj_definitions_free(own);
    CHECK(qj_definitions_read("step a u32le\n  add.f32 r0, r0, 1e40\nend\n", &own) == QJ_PIPE_TEXT && says("1e40"));
}

/* Parts that share bytes are refused, except the same byte of the data on both sides. */
static void overlapping_parts(struct qj_runner *runner, const struct qj_run_options *options) {
    static unsigned char data[64], key[64];
    const void *streams[] = {key};
    struct qj_run_options own = *options;
    own.streams = streams;
    struct qj_part whole = {data, 32}, shifted = {data + 5, 32}, before = {data, 32}, far = {data + 32, 32};
    CHECK(qj_runner_run_parts(runner, &whole, 1, &shifted, 1, &own, NULL) == QJ_PIPE_OVERLAP);
    CHECK(says("the same address twice") && !says("run_in_place"));
    CHECK(qj_runner_run_parts(runner, &shifted, 1, &before, 1, &own, NULL) == QJ_PIPE_OVERLAP);
    CHECK(qj_runner_run_parts(runner, &whole, 1, &far, 1, &own, NULL) == QJ_PIPE_OK);
    /* Halves that change places, halves of which one stays, and two targets that share a byte. */
    struct qj_part halves[] = {{data, 16}, {data + 16, 16}}, swapped[] = {{data + 16, 16}, {data, 16}};
    struct qj_part stays[] = {{data, 16}, {data + 32, 16}}, twice[] = {{data + 32, 16}, {data + 47, 16}};
    struct qj_part none[] = {{NULL, 0}, {data + 7, 0}, {data + 32, 32}};
    CHECK(qj_runner_run_parts(runner, halves, 2, swapped, 2, &own, NULL) == QJ_PIPE_OVERLAP);
    CHECK(qj_runner_run_parts(runner, halves, 2, stays, 2, &own, NULL) == QJ_PIPE_OK);
    CHECK(qj_runner_run_parts(runner, halves, 2, twice, 2, &own, NULL) == QJ_PIPE_OVERLAP);
    CHECK(qj_runner_run_parts(runner, halves, 2, none, 3, &own, NULL) == QJ_PIPE_OK);
    /* Sources may share bytes with each other, but not with a target at another position. */
    struct qj_part same[] = {{data, 16}, {data, 16}};
    CHECK(qj_runner_run_parts(runner, same, 2, &far, 1, &own, NULL) == QJ_PIPE_OK);
    CHECK(qj_runner_run_parts(runner, same, 2, &whole, 1, &own, NULL) == QJ_PIPE_OVERLAP);
    /* In place, with other borders on each side. */
    for (int at = 0; at < 64; at++) data[at] = (unsigned char)(7 * at), key[at] = (unsigned char)(at + 1);
    struct qj_part cuts[] = {{data, 5}, {data + 5, 20}, {data + 25, 7}}, others[] = {{data, 13}, {data + 13, 19}};
    CHECK(qj_runner_run_parts(runner, cuts, 3, others, 2, &own, NULL) == QJ_PIPE_OK);
    for (int at = 0; at < 64; at++) CHECK(data[at] == (unsigned char)(at < 32 ? (7 * at) ^ (at + 1) : 7 * at));
}

static void mistakes(void) {
    struct qj_pipe *none = NULL;
    struct qj_definitions *nothing = NULL;
    CHECK(qj_pipe_of_text("copy | chekcsum", NULL, &none) == QJ_PIPE_TEXT);
    CHECK(says("line 1, column 8") && says("help: did you mean `checksum`?"));
    CHECK(qj_pipe_of_text("\xff", NULL, &none) == QJ_PIPE_ENCODING);
    CHECK(qj_definitions_read("step a u9\nend\nstep b u8\n", &nothing) == QJ_PIPE_TEXT);
    CHECK(says("line 1") && says("line 3"));
    struct qj_step steps[9] = {{.kind = QJ_STEP_COPY}};
    CHECK(qj_pipe_of_steps(steps, 9, NULL, &none) == QJ_PIPE_STEPS);
    for (int at = 0; at < 5; at++) steps[at].kind = QJ_STEP_XOR_STREAM;
    CHECK(qj_pipe_of_steps(steps, 5, NULL, &none) == QJ_PIPE_TOO_MANY_STREAMS);
    steps[0] = (struct qj_step){.kind = QJ_STEP_XOR, .key_bytes = 3};
    CHECK(qj_pipe_of_steps(steps, 1, NULL, &none) == QJ_PIPE_KEY);
    steps[0].key_bytes = SIZE_MAX;
    CHECK(qj_pipe_of_steps(steps, 1, NULL, &none) == QJ_PIPE_KEY);
    steps[0] = (struct qj_step){.kind = 77};
    CHECK(qj_pipe_of_steps(steps, 1, NULL, &none) == QJ_PIPE_UNKNOWN && says("kind 77"));
    steps[0] = (struct qj_step){.kind = QJ_STEP_USER, .name = "bump"};
    CHECK(qj_pipe_of_steps(steps, 1, NULL, &none) == QJ_PIPE_UNKNOWN && says("`bump`"));
    CHECK(none == NULL && nothing == NULL);

    struct qj_pipe *pipe = pipe_of("xor stream | checksum");
    struct qj_runner *runner = qj_runner_new(pipe);
    unsigned char data[64] = {0}, other[64] = {0};
    const void *streams[] = {other, other, other, other, other};
    struct qj_run_options options = {.streams = streams, .stream_count = 1};
    CHECK(qj_runner_run(runner, data, data + 1, 32, &options, NULL) == QJ_PIPE_OVERLAP);
    CHECK(qj_runner_run(runner, data + 31, data, 32, &options, NULL) == QJ_PIPE_OVERLAP);
    CHECK(qj_runner_run(runner, data + 32, data, 32, &options, NULL) == QJ_PIPE_OK);
    CHECK(qj_runner_run(runner, data, NULL, 32, &options, NULL) == QJ_PIPE_TARGET);
    CHECK(qj_runner_run(runner, NULL, NULL, 0, &options, NULL) == QJ_PIPE_OK);
    CHECK(qj_runner_run(runner, data, data, 32, NULL, NULL) == QJ_PIPE_STREAMS);
    for (options.stream_count = 2; options.stream_count <= 5; options.stream_count++) {
        CHECK(qj_runner_run(runner, data, data, 32, &options, NULL) == QJ_PIPE_STREAMS);
    }
    options.stream_count = 1;
    qj_runner_begin(runner);
    CHECK(qj_runner_piece(runner, data, data, 9, &options) == QJ_PIPE_OK);
    CHECK(qj_runner_piece(runner, data, data, 8, &options) == QJ_PIPE_PIECE && says("after 9 bytes"));
    CHECK(qj_runner_run(runner, data, data, 32, &options, NULL) == QJ_PIPE_OK);
    CHECK(qj_runner_piece(runner, data, data, 8, &options) == QJ_PIPE_OK); /* the nine bytes are forgotten */
    struct qj_part parts[] = {{data, 32}}, fewer[] = {{other, 31}};
    CHECK(qj_runner_run_parts(runner, parts, 1, fewer, 1, &options, NULL) == QJ_PIPE_TARGET);
    overlapping_parts(runner, &options);
    qj_runner_free(runner);
    qj_pipe_free(pipe);

    /* A pipe that only observes is given no target. */
    pipe = pipe_of("checksum");
    CHECK(!qj_pipe_writes(pipe));
    runner = qj_runner_new(pipe);
    const struct qj_pipe_report *report;
    uint16_t sum;
    for (int store = QJ_STORE_CHOSEN; store <= QJ_STORE_STREAMING; store++) {
        struct qj_run_options how = {.store = store};
        CHECK(qj_runner_run(runner, "ab", NULL, 2, &how, &report) == QJ_PIPE_OK);
        CHECK(qj_pipe_checksum(report, &sum) && sum == (uint16_t)~0x6162);
    }
    qj_runner_free(runner);
    qj_pipe_free(pipe);
    qj_pipe_free(NULL), qj_runner_free(NULL), qj_handler_free(NULL), qj_definitions_free(NULL), qj_pipe_text_free(NULL);
}

static void *many_runs(void *pipe) {
    struct qj_runner *runner = qj_runner_new(pipe);
    unsigned char source[512], target[512];
    for (int round = 0; round < 1000; round++) {
        memset(source, round, sizeof source);
        const struct qj_pipe_report *report;
        uint16_t sum;
        struct qj_run_options options = {.store = round % 4};
        CHECK(qj_runner_run(runner, source, target, sizeof source, &options, &report) == QJ_PIPE_OK);
        CHECK(qj_pipe_checksum(report, &sum) && sum == checksum(target, sizeof target));
    }
    qj_runner_free(runner);
    return NULL;
}

static void threads(void) {
    struct qj_pipe *pipe = pipe_of("copy | checksum");
    pthread_t thread[4];
    for (int at = 0; at < 4; at++) CHECK(pthread_create(&thread[at], NULL, many_runs, pipe) == 0);
    for (int at = 0; at < 4; at++) CHECK(pthread_join(thread[at], NULL) == 0);
    qj_pipe_free(pipe);
}

int main(void) {
    _Static_assert(sizeof(struct qj_part) == sizeof(struct iovec), "parts are laid out as iovec");
    _Static_assert(offsetof(struct qj_part, bytes) == offsetof(struct iovec, iov_len), "parts are laid out as iovec");
    CHECK(qj_pipe_message()[0] == '\0');
    runs();
    builder();
    definitions();
    floats();
    mistakes();
    threads();
    puts("ok");
    return 0;
}
